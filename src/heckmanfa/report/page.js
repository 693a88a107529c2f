// Draws the figures of the report when they are near the window, in the reader's theme.
(function () {
  "use strict";
  const THEMES = {
    light: { ink: "#1c2430", muted: "#68737f", grid: "#e3e7ec", blue: "#0072b2",
      orange: "#c24f00", band: "#dcebf7", paper: "#ffffff" },
    dark: { ink: "#e3e7ed", muted: "#94a0af", grid: "#2b333e", blue: "#62b6ee",
      orange: "#f5a04c", band: "#1d3347", paper: "#14181e" },
  };
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif";
  // Without its bar of buttons, which would be unlabelled stops for the Tab key.
  const CONFIG = { displaylogo: false, displayModeBar: false, responsive: true, showTips: false };
  // SVG is slow with more points than this.
  const MANY = 1500;
  const PRINT_WIDTH = 660;
  const page = JSON.parse(document.getElementById("report-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  function bytes(text) {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  }
  const floats = (text) => new Float32Array(bytes(text).buffer);

  // The candidates: which of them a name stands for, and which features each holds.
  const known = {};
  const c = page.candidates;
  const bit = (packed, index) => (packed[index >> 3] >> (7 - (index & 7))) & 1;
  if (c) {
    c.value = floats(c.value);
    c.rho = floats(c.rho);
    c.masks = bytes(c.masks);
    c.inside = bytes(c.inside);
    c.text = new Array(c.n);
  }
  function members(which) {
    if (known[which]) return known[which];
    if (which === "chosen") return (known[which] = [c.chosen]);
    const found = [];
    const column = which.startsWith("held:") ? Number(which.slice(5)) : -1;
    for (let i = 0; i < c.n; i++) {
      const held = column >= 0 ? bit(c.masks, i * c.labels.length + column)
        : which === "all" || bit(c.inside, i) === (which === "inside" ? 1 : 0);
      if (held) found.push(i);
    }
    return (known[which] = found);
  }
  function names(index) {
    if (c.text[index] !== undefined) return c.text[index];
    const held = [];
    for (let k = 0; k < c.labels.length; k++) {
      if (bit(c.masks, index * c.labels.length + k) && !held.includes(c.labels[k])) {
        held.push(c.labels[k]);
      }
    }
    let text = held.length + (held.length === 1 ? " feature: " : " features: ");
    let width = text.length;
    held.forEach(function (name, k) {
      const last = k === held.length - 1;
      if (width + name.length > 44 && k > 0) { text += "<br>"; width = 0; }
      text += name + (last ? "" : ", ");
      width += name.length + 2;
    });
    return (c.text[index] = text);
  }

  function alpha(colour, a) {
    const n = parseInt(colour.slice(1), 16);
    return "rgba(" + (n >> 16) + "," + ((n >> 8) & 255) + "," + (n & 255) + "," + a + ")";
  }
  // Fills in colours, arrays and what is known of the candidates.
  function revive(part, theme) {
    if (Array.isArray(part)) return part.map((item) => revive(item, theme));
    if (part === null || typeof part !== "object") return part;
    if ("$c" in part) return "a" in part ? alpha(theme[part.$c], part.a) : theme[part.$c];
    if ("$f" in part) return floats(part.$f);
    if ("$rank" in part) return members(part.$rank).map((index) => index + 1);
    if ("$take" in part) return members(part.$take[1]).map((index) => c[part.$take[0]][index]);
    if ("$names" in part) return members(part.$names).map(names);
    const out = {};
    for (const key of Object.keys(part)) out[key] = revive(part[key], theme);
    return out;
  }
  let gl = null;
  function webgl() {
    if (gl === null) {
      try {
        const canvas = document.createElement("canvas");
        const context = canvas.getContext("webgl");
        gl = Boolean(context);
        const lose = context && context.getExtension("WEBGL_lose_context");
        if (lose) lose.loseContext();
      } catch (error) { gl = false; }
    }
    return gl;
  }
  function drawable(trace) {
    if (trace.type === "points") trace.type = c.n > MANY && webgl() ? "scattergl" : "scatter";
    return trace;
  }
  function styled(layout, theme, spec, narrow) {
    const out = Object.assign({}, layout, {
      height: printing ? 0.72 * spec.height : spec.height + (narrow ? 30 : 0), autosize: !printing,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: FONT, size: narrow ? 11 : 13, color: theme.ink },
      margin: { l: narrow ? 52 : 70, r: 10, t: 46, b: 48 },
      hoverlabel: { bgcolor: theme.paper, bordercolor: theme.muted, align: "left",
        font: { family: FONT, size: 12, color: theme.ink } },
      dragmode: narrow ? false : "zoom",
    });
    if (printing) out.width = PRINT_WIDTH;
    for (const key of Object.keys(layout)) {
      if (!/^[xy]axis/.test(key)) continue;
      const title = Object.assign({ font: { size: narrow ? 11 : 13 } }, layout[key].title);
      out[key] = Object.assign({ gridcolor: theme.grid, linecolor: theme.muted,
        zerolinecolor: theme.muted, zerolinewidth: 1, automargin: true, ticks: "",
        zeroline: key !== "xaxis" }, layout[key], { title: title });
    }
    return out;
  }

  const figures = page.figures.map(function (spec) {
    const box = document.getElementById("plot-" + spec.name);
    return { spec: spec, box: box, choice: 0, drawn: false,
      select: document.getElementById("pick-" + spec.name) };
  });
  function made(figure, theme, narrow) {
    const spec = figure.spec;
    const shown = spec.options ? spec.options[figure.choice] : spec;
    return { data: revive(shown.data, theme).map(drawable),
      layout: styled(revive(shown.layout, theme), theme, spec, narrow) };
  }
  function draw(figure) {
    const theme = !printing && dark.matches ? THEMES.dark : THEMES.light;
    const drawing = made(figure, theme, !printing && figure.box.clientWidth < 520);
    // A figure of another option starts with its own axes.
    drawing.layout.uirevision = String(figure.choice);
    figure.box.style.minHeight = "";
    window.Plotly.react(figure.box, drawing.data, drawing.layout, CONFIG);
    figure.drawn = true;
    figure.box.dataset.drawn = "yes";
  }
  function save(figure) {
    load();
    const drawing = made(figure, THEMES.light, false);
    Object.assign(drawing.layout, { width: 900, autosize: false, paper_bgcolor: "#ffffff" });
    window.Plotly.downloadImage(drawing, { format: "svg", width: 900,
      height: drawing.layout.height, filename: figure.spec.name });
  }
  function load() {
    if (window.Plotly) return;
    // It is plain text until now, so the words appear before the library runs.
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly-source").textContent;
    document.head.appendChild(script);
  }
  function drawAll(again) {
    load();
    figures.forEach((figure) => { if (again || !figure.drawn) draw(figure); });
  }
  const later = window.requestIdleCallback
    ? (job) => window.requestIdleCallback(job, { timeout: 800 })
    : (job) => window.setTimeout(job, 60);

  function start() {
    const seen = new window.IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        const figure = figures.find((candidate) => candidate.box === entry.target);
        if (entry.isIntersecting && !figure.drawn) { load(); draw(figure); }
        if (figure.drawn) seen.unobserve(entry.target);
      });
    }, { rootMargin: "300px" });
    figures.forEach(function (figure) {
      seen.observe(figure.box);
      const button = document.getElementById("save-" + figure.spec.name);
      button.addEventListener("click", () => save(figure));
      button.hidden = false;
      if (figure.select) {
        figure.select.addEventListener("change", function () {
          figure.choice = figure.select.selectedIndex;
          load();
          draw(figure);
        });
      }
    });
    // The others one by one, whenever there is time.
    later(function next() {
      load();
      const figure = figures.find((waiting) => !waiting.drawn);
      if (!figure) return;
      draw(figure);
      later(next);
    });
  }
  function redraw() { figures.forEach((figure) => { if (figure.drawn) draw(figure); }); }
  dark.addEventListener("change", redraw);
  window.addEventListener("beforeprint", function () { printing = true; drawAll(true); });
  window.addEventListener("afterprint", function () { printing = false; redraw(); });
  if (figures.length) {
    if (document.readyState === "complete") start();
    else window.addEventListener("load", () => window.setTimeout(start, 0));
  }
})();

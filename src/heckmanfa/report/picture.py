"""A figure of the page: a Plotly figure for the script, and its words and table for the reader.

The figures are plain dictionaries of Plotly's ``data`` and ``layout``. The script fills in three
things when it draws: colours (``{"$c": name}``), since they follow the reader's theme; long arrays
(``{"$f": text}``), which travel as 32-bit floats; and what it derives from the table of
candidates (``$rank``, ``$take``, ``$names``; see `candidate_payload`).
"""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.errors import needs_extra
from heckmanfa.results.render_html import escape, render_page
from heckmanfa.text.printable import printable, shown
from heckmanfa.text.table import PictureText

_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


@dataclass(frozen=True)
class Picture:
    """A figure with everything around it."""

    name: str
    """unique on the page"""
    text: PictureText
    spec: dict[str, Any]
    """data and layout; or options, of which one is shown at a time; height in pixels"""
    choices: tuple[str, ...] = ()
    """labels of the options"""


def axes(x: dict[str, Any], y: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Lay out a figure with a title for each axis, and the legend above it."""
    return {
        "xaxis": {**x, "title": {"text": x["title"]}},
        "yaxis": {**y, "title": {"text": y["title"]}},
        "legend": dict(_LEGEND),
        "hovermode": "closest",
        **others,
    }


def trace(x: Any, y: Any, name: str, hover: str, **others: Any) -> dict[str, Any]:
    """Draw points or lines; without a ``hover`` text they ignore the pointer."""
    pointed = {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    return {"type": "scatter", "name": name, "x": x, "y": y} | pointed | others


def line(
    x: Any,
    y: Any,
    name: str,
    tint: str,
    hover: str = "",
    *,
    width: int = 2,
    dash: str = "solid",
    shape: str = "linear",
    **others: Any,
) -> dict[str, Any]:
    """Draw a line through points."""
    style = {"color": colour(tint), "width": width, "dash": dash, "shape": shape}
    return trace(x, y, name, hover, line=style, **({"mode": "lines"} | others))


def colour(name: str, alpha: float = 1.0) -> dict[str, Any]:
    """Name a colour of the theme: ink, muted, grid, blue, orange or band."""
    return {"$c": name} if alpha == 1.0 else {"$c": name, "a": alpha}


def floats(values: Any) -> dict[str, str]:
    """Pack numbers as little-endian 32-bit floats."""
    packed = np.asarray(values, dtype=np.float64).astype("<f4").tobytes()
    return {"$f": base64.b64encode(packed).decode("ascii")}


def bits(flags: Any) -> str:
    """Pack flags, eight to a byte, the first in the highest bit."""
    return base64.b64encode(np.packbits(np.asarray(flags, dtype=bool)).tobytes()).decode("ascii")


def plain(value: float, digits: int = 7) -> float | None:
    """Round a number for JSON, in which only finite numbers exist."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def plain_list(values: Iterable[float], digits: int = 7) -> list[float | None]:
    """Round numbers for JSON."""
    return [plain(value, digits) for value in values]


def plot_text(text: str) -> str:
    """Escape text for a figure: Plotly reads a few tags and entities."""
    return html.escape(shown(text), quote=False)


def payload(pictures: Sequence[Picture], candidates: dict[str, Any] | None) -> str:
    """Write what the script reads, safe inside a script element."""
    figures = [{"name": picture.name, **picture.spec} for picture in pictures]
    content = {"figures": figures, "candidates": candidates}
    text = json.dumps(_printable(content), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _printable(content: Any) -> Any:
    """Neutralise control characters in texts that are not printable yet."""
    if isinstance(content, dict):
        return {key: _printable(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_printable(value) for value in content]
    return printable(content, None) if isinstance(content, str) else content


def figures_html(pictures: Sequence[Picture]) -> str:
    """Render the figures, each with its caption and a table of the same numbers."""
    parts = [
        "<noscript><p>The pictures need JavaScript; the tables under them do not.</p></noscript>",
        '<p class="note screen">Point at a mark for its numbers; drag to zoom, and double-click to '
        "zoom out.</p>",
    ]
    for picture in pictures:
        name, text = picture.name, picture.text
        title = escape(text.title)
        choice = ""
        if picture.choices:
            options = "".join(
                f"<option>{escape(shown(label))}</option>" for label in picture.choices
            )
            choice = (
                f'<p class="pick"><label for="pick-{name}">Feature</label>'
                f'<select id="pick-{name}">{options}</select></p>'
            )
        parts.append(
            f'<figure id="figure-{name}"><h3>{title}</h3>{choice}'
            f'<div class="picture" id="plot-{name}" role="img" aria-label="{escape(text.alt)}" '
            f'style="min-height:{picture.spec["height"]}px"></div>'
            f"<figcaption>{escape(text.caption)}</figcaption><details>"
            f"<summary>The same as a table</summary>{render_page([text.table])}</details>"
            f'<button type="button" class="save" id="save-{name}" hidden>Save as SVG'
            f'<span class="unseen">: {title}</span></button></figure>'
        )
    return "".join(parts)


def plotly_source() -> str:
    """Return the text of plotly.js, which goes into the page."""
    with needs_extra("the report needs Plotly", "plots"):
        from plotly.offline import get_plotlyjs
    return str(get_plotlyjs())

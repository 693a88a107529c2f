"""The colours of pictures, of the report and of the card in notebooks, in light and in dark.

They live here alone. Drawings name a colour by a class, and Matplotlib's pictures take `LIGHT`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

LIGHT = {
    "paper": "#ffffff",
    "soft": "#f3f6fa",
    "ink": "#17202c",
    "muted": "#4f5b6b",
    "line": "#d5dbe3",
    "this": "#0a58a6",
    "ols": "#a34100",
    "all": "#5a6472",
    "pos": "#006a63",
    "neg": "#a0246b",
    "ok": "#17663a",
    "caution": "#7d4b00",
    "problem": "#a3201c",
    "absent": "#e9edf2",
    "ok-tint": "#e5f3ea",
    "caution-tint": "#fbf0dc",
    "problem-tint": "#fce9e7",
    "wash": "#e4eefa",
}
"""on white; every colour of text and marks has a contrast of at least 5.1 with every tint"""
DARK = {
    "paper": "#12161c",
    "soft": "#1b2129",
    "ink": "#e6eaf0",
    "muted": "#aab4c2",
    "line": "#37404c",
    "this": "#7fbdf5",
    "ols": "#f0a35e",
    "all": "#a9b3c1",
    "pos": "#5ccfc2",
    "neg": "#f29ac8",
    "ok": "#7fd39d",
    "caution": "#efbe6b",
    "problem": "#ff9d95",
    "absent": "#232a33",
    "ok-tint": "#16291d",
    "caution-tint": "#2c2414",
    "problem-tint": "#331c1b",
    "wash": "#182838",
}
"""the same on a dark ground"""
PALE = "#b0b5bc"
"""between muted and paper, where there is no style sheet to mix them"""
# Notebooks have themes of their own, whatever the reader's system prefers.
# Those of JupyterLab, VS Code, Colab, and pages that Sphinx and Quarto make of notebooks.
_DARK_NOTEBOOK = (
    '[data-jp-theme-light="false"] .hfa, .vscode-dark .hfa, [theme="dark"] .hfa, '
    '[data-theme="dark"] .hfa, .quarto-dark .hfa'
)
_LIGHT_NOTEBOOK = (
    '[data-jp-theme-light="true"] .hfa, .vscode-light .hfa, [theme="light"] .hfa, '
    '[data-theme="light"] .hfa, .quarto-light .hfa'
)


@cache
def picture_style() -> str:
    """Return the style sheet of drawings: colours as variables, and what each class looks like.

    It applies inside elements of the class ``hfa``, so it leaves the rest of a notebook alone.
    """
    light, dark = _variables(LIGHT, "light"), _variables(DARK, "dark")
    rules = files("heckmanfa.plots").joinpath("pictures.css").read_text(encoding="utf-8")
    return (
        f".hfa {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ .hfa {{ {dark} }} }}\n"
        f"{_LIGHT_NOTEBOOK} {{ {light} }}\n"
        f"{_DARK_NOTEBOOK} {{ {dark} }}\n"
        f"@media print {{ .hfa.hfa.hfa {{ {light} }} }}\n"
        f"{rules}"
    )


@cache
def file_style() -> str:
    """Return the style sheet of a drawing that is a file of its own, in light colours."""
    rules = files("heckmanfa.plots").joinpath("pictures.css").read_text(encoding="utf-8")
    fonts = 'font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif;'
    ground = f"svg {{ {_variables(LIGHT, 'light')} background: var(--paper); {fonts} }}"
    return f"{ground}\n{rules.replace('.hfa svg', 'svg')}"


def _variables(colours: dict[str, str], scheme: str) -> str:
    values = " ".join(f"--{name}: {colour};" for name, colour in colours.items())
    return f"color-scheme: {scheme}; {values} --accent: var(--this);"

"""What a figure of the page is made of: a Plotly figure for the script, and its words and table.

The figures are plain dictionaries of Plotly's ``data`` and ``layout``. The script fills in three
things when it draws: colours (``{"$c": name}``), since they follow the reader's theme; long arrays
(``{"$f": text}``), which travel as 32-bit floats; and whatever it can derive from the table of
candidates (``$rank``, ``$take``, ``$names``; see `curves`).
"""

from __future__ import annotations

import base64
import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.plots.picture_text import PictureText
from heckmanfa.text.printable import shown

_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


@dataclass(frozen=True)
class Picture:
    """A figure with everything around it."""

    name: str
    """what no other figure of the page is called"""
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


def line(x: Any, y: Any, **others: Any) -> dict[str, Any]:
    """Draw a line through points."""
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, **others}


def colour(name: str, alpha: float = 1.0) -> dict[str, Any]:
    """Name a colour of the theme: ink, muted, grid, blue, orange, green or band."""
    return {"$c": name} if alpha == 1.0 else {"$c": name, "a": alpha}


def floats(values: Any) -> dict[str, str]:
    """Pack numbers as little-endian 32-bit floats."""
    packed = np.asarray(values, dtype=np.float64).astype("<f4").tobytes()
    return {"$f": base64.b64encode(packed).decode("ascii")}


def bits(flags: Any) -> str:
    """Pack flags, eight to a byte, the first in the highest place."""
    return base64.b64encode(np.packbits(np.asarray(flags, dtype=bool)).tobytes()).decode("ascii")


def plain(value: float, digits: int = 7) -> float | None:
    """Round a number for JSON, which has none that are not finite."""
    value = float(value)
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def plot_text(text: str) -> str:
    """Write text for a figure, in which Plotly reads a few tags and entities."""
    return html.escape(shown(text), quote=False)

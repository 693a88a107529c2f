"""Figures over the candidates of a search: the specification curve, and each coefficient.

The table of candidates goes into the page once, best first: a bit for each feature, the criterion
and rho. The script derives names, ranks and subsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.plots.candidate_points import CandidatePoints
from heckmanfa.report.picture import Picture, axes, bits, colour, floats, plain, plot_text
from heckmanfa.text.printable import shown

# Coefficients in the page, four bytes each.
_MOST_VALUES = 300_000


def candidate_payload(found: CandidatePoints) -> dict[str, Any]:
    """Return what the script reads."""
    held = np.flatnonzero(found.masks.any(axis=0))
    return {
        "n": len(found),
        "labels": [plot_text(found.labels[int(column)]) for column in held],
        "masks": bits(found.masks[:, held]),
        "inside": bits(found.inside),
        "chosen": found.chosen,
        "value": floats(found.value)["$f"],
        "rho": floats(found.rho)["$f"],
    }


def _points(
    found: CandidatePoints, which: str, y: Any, label: str, tint: str, axis: str
) -> dict[str, Any]:
    """Draw a subset of the candidates; the script knows it by name."""
    size = 9 if len(found) <= 60 else 6 if len(found) <= 1000 else 4
    symbol = "circle-open" if which == "outside" else "circle"
    return {
        "type": "points",
        "mode": "markers",
        "name": label,
        "legendgroup": label,
        "showlegend": axis == "y",
        "x": {"$rank": which},
        "y": y,
        "text": {"$names": which},
        "yaxis": axis,
        "marker": {"color": colour(tint), "size": size, "symbol": symbol},
    }


def _mark(place: int, y: float, axis: str) -> dict[str, Any]:
    """Mark the assignment of the model."""
    return {
        "type": "points",
        "mode": "markers",
        "name": "chosen",
        "legendgroup": "chosen",
        "showlegend": axis == "y",
        "x": [place + 1],
        "y": [plain(y)],
        "text": {"$names": "chosen"},
        "yaxis": axis,
        "marker": {
            "color": colour("orange"),
            "size": 12,
            "symbol": "diamond",
            "line": {"color": colour("ink"), "width": 1},
        },
    }


def specification_curve(found: CandidatePoints) -> Picture:
    """Draw the criterion and rho of every candidate, best first."""
    words = found.criterion_name
    groups = [("all", "candidate", "blue")]
    if found.window is not None:
        groups = [
            ("outside", "rho outside the window", "muted"),
            ("inside", "rho in the window", "blue"),
        ]
        groups = [group for group in groups if (found.inside == (group[0] == "inside")).any()]
    data: list[dict[str, Any]] = []
    for axis, array, label in (("y", "value", words), ("y2", "rho", "rho")):
        for which, name, tint in groups:
            trace = _points(found, which, {"$take": [array, which]}, name, tint, axis)
            data.append(trace | {"hovertemplate": _hover(label)})
        if found.chosen is not None:
            y = (found.value if axis == "y" else found.rho)[found.chosen]
            trace = _mark(found.chosen, y, axis)
            data.append(trace | {"hovertemplate": _hover(label, "chosen; ")})
    better = "higher" if found.criterion == "adjusted_r2" else "lower"
    layout = axes(
        _ranks(len(found)) | {"anchor": "y2"},
        {"title": f"{words} ({better} is better)", "domain": [0.56, 1.0]},
        yaxis2={"title": {"text": "rho"}, "domain": [0.0, 0.44]},
    )
    if found.window is not None:
        low, high = found.window
        band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "layer": "below"}
        layout["shapes"] = [
            band | {"y0": low, "y1": high, "fillcolor": colour("band"), "line": {"width": 0}}
        ]
    return Picture("curve", found.text(), {"height": 520, "data": data, "layout": layout})


def _ranks(n: int) -> dict[str, Any]:
    """Return the axis of ranks: integers, with some space at the ends."""
    space = max(0.02 * n, 0.6)
    axis = {"title": "candidates, best first", "range": [1 - space, n + space], "zeroline": False}
    return axis | ({"dtick": 1} if n <= 12 else {})


def _hover(label: str, before: str = "") -> str:
    digits = ".4f" if label in ("rho", "adjusted R2") else ".6~g"
    return f"{before}place %{{x}}<br>{label} %{{y:{digits}}}<br>%{{text}}<extra></extra>"


def coefficient_picture(found: CandidatePoints, predicting: list[int]) -> Picture:
    """Draw each coefficient over the candidates that hold the feature.

    The columns in ``predicting``, those of the model, are offered first.
    """
    held = np.isfinite(found.coef).sum(axis=0)
    others = [int(k) for k in np.argsort(-held, kind="stable") if k not in predicting]
    offered: list[int] = []
    for column in [*predicting, *others]:
        fits = sum(held[k] for k in offered) + held[column] <= _MOST_VALUES
        if held[column] and (fits or not offered):
            offered.append(column)
    n_left = int(np.count_nonzero(held)) - len(offered)
    return Picture(
        name="coefficients-over",
        text=found.coefficient_text(offered, predicting, n_left),
        spec={"height": 380, "options": [_option(found, column) for column in offered]},
        choices=tuple(
            shown(found.names[column]) + (" (predicts)" if column in predicting else "")
            for column in offered
        ),
    )


def _option(found: CandidatePoints, column: int) -> dict[str, Any]:
    # The script finds those that hold it, in their order, by its position among columns held.
    which = f"held:{int(np.count_nonzero(found.masks[:, :column].any(axis=0)))}"
    held = found.masks[:, column]
    hover = "place %{x}<br>coefficient %{y:.4~g}<br>%{text}<extra></extra>"
    y = floats(found.coef[held, column])
    data = [_points(found, which, y, "candidate", "blue", "y") | {"hovertemplate": hover}]
    if found.chosen is not None and held[found.chosen]:
        mark = _mark(found.chosen, found.coef[found.chosen, column], "y")
        data.append(mark | {"hovertemplate": "chosen; " + hover})
    layout = axes(_ranks(len(found)), {"title": "coefficient", "zeroline": True})
    return {"data": data, "layout": layout}

"""Pictures over the candidates of a search: the specification curve, and each coefficient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.report.picture import Picture, colour, floats, plain
from heckmanfa.results.document import Column, Table
from heckmanfa.search.candidates import KEPT
from heckmanfa.text.numbers import count, number, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import CRITERIA, listed

if TYPE_CHECKING:
    from heckmanfa.data.arrays import Floats
    from heckmanfa.report.candidate_data import Candidates

__all__ = ["coefficient_picture", "specification_curve"]

_RUNNER_UPS = 10
# Of coefficients in the page, four bytes each.
_MOST_VALUES = 300_000


def _points(
    which: str, y: Any, label: str, tint: str, axis: str, size: int, shown: bool
) -> dict[str, Any]:
    return {
        "type": "points",
        "mode": "markers",
        "name": label,
        "legendgroup": label,
        "showlegend": shown,
        "x": {"$rank": which},
        "y": y,
        "text": {"$names": which},
        "yaxis": axis,
        "marker": {"color": colour(tint), "size": size, "symbol": _symbol(which)},
    }


def _symbol(which: str) -> str:
    return "circle-open" if which == "outside" else "circle"


def _mark(place: int, y: float, axis: str, shown: bool) -> dict[str, Any]:
    """Mark the assignment of the model."""
    return {
        "type": "points",
        "mode": "markers",
        "name": "chosen",
        "legendgroup": "chosen",
        "showlegend": shown,
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


def specification_curve(found: Candidates) -> Picture:
    """Draw the criterion and rho of every candidate, best first.

    Parameters
    ----------
    found : Candidates

    Returns
    -------
    Picture
    """
    words, n = CRITERIA[found.criterion], len(found)
    groups = [("all", "candidate", "blue")]
    if found.window is not None:
        groups = [
            ("outside", "rho outside the window", "muted"),
            ("inside", "rho in the window", "blue"),
        ]
        groups = [one for one in groups if (found.inside == (one[0] == "inside")).any()]
    data: list[dict[str, Any]] = []
    for axis, array, label in (("y", "value", words), ("y2", "rho", "rho")):
        for which, name, tint in groups:
            taken = {"$take": [array, which]}
            trace = _points(which, taken, name, tint, axis, found.dot, axis == "y")
            data.append(trace | {"hovertemplate": _hover(label)})
        if found.chosen is not None:
            y = (found.value if axis == "y" else found.rho)[found.chosen]
            trace = _mark(found.chosen, y, axis, axis == "y")
            data.append(trace | {"hovertemplate": _hover(label, "chosen; ")})
    better = "higher" if found.criterion == "adjusted_r2" else "lower"
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": "candidates, best first"}, "anchor": "y2"} | _ranks(n),
        "yaxis": {"title": {"text": f"{words} ({better} is better)"}, "domain": [0.56, 1.0]},
        "yaxis2": {"title": {"text": "rho"}, "domain": [0.0, 0.44]},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
    }
    if found.window is not None:
        low, high = found.window
        band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "layer": "below"}
        layout["shapes"] = [
            band | {"y0": low, "y1": high, "fillcolor": colour("band"), "line": {"width": 0}}
        ]
    return Picture(
        name="curve",
        title="Every candidate, best first",
        alt=_curve_alt(found),
        caption=_curve_caption(found),
        spec={"height": 520, "data": data, "layout": layout},
        fallback=_runner_ups(found),
    )


def _ranks(n: int) -> dict[str, Any]:
    """Set the axis of ranks: whole numbers, and some air at the ends."""
    air = max(0.02 * n, 0.6)
    return {"range": [1 - air, n + air], "zeroline": False} | ({"dtick": 1} if n <= 12 else {})


def _hover(label: str, before: str = "") -> str:
    digits = ".4f" if label in ("rho", "adjusted R2") else ".6~g"
    return f"{before}place %{{x}}<br>{label} %{{y:{digits}}}<br>%{{text}}<extra></extra>"


def _span(values: Floats) -> str:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "unknown"
    return f"{number(finite.min(), 3)} to {number(finite.max(), 3)}"


def _curve_alt(found: Candidates) -> str:
    words, n = CRITERIA[found.criterion], len(found)
    text = (
        f"{plural(n, 'assignment')} in the order of their {words}, which runs from "
        f"{number(found.value[0], 5)} for the best to "
        f"{number(found.value[np.isfinite(found.value)][-1], 5)}; their rho is from "
        f"{_span(found.rho)}."
    )
    if found.window is not None:
        text += f" {count(int(found.inside.sum()))} of them have rho in the window."
    if found.chosen is not None:
        text += (
            f" The chosen one is in place {count(found.chosen + 1)}, with {words} "
            f"{number(found.value[found.chosen], 5)} and rho {number(found.rho[found.chosen], 3)}."
        )
    return text


def _curve_caption(found: Candidates) -> str:
    n = len(found)
    words = CRITERIA[found.criterion]
    kept = f"{count(n)} of the {count(found.n_looked)} looked at"
    if found.tolerance is not None:
        kept = f"those within {found.tolerance:g} of the best"
    if n == KEPT:
        kept = f"the best {count(n)}"
    text = (
        f"Each point is one way to say which features predict: {kept}, by {words} above and by "
        "the two-step rho below. Where points near the left have a rho of either sign, the data "
        "do not settle which way selection goes."
    )
    if found.window is not None:
        text += " The shaded band is the window of rho; open circles lie outside of it."
    if found.chosen is None:
        text += " The features of the model, chosen over splits of the rows, are not among them."
    unsolved = int(np.count_nonzero(~np.isfinite(found.value)))
    if unsolved:
        text += f" {plural(unsolved, 'candidate')} cannot be fitted and cannot be seen."
    return text


def _runner_ups(found: Candidates) -> Table:
    rows = []
    for place in range(min(_RUNNER_UPS, len(found))):
        held = [found.labels[int(one)] for one in np.flatnonzero(found.masks[place])]
        mark = " (chosen)" if place == found.chosen else ""
        row = [
            f"{place + 1}{mark}",
            number(found.value[place], 6),
            number(found.rho[place]),
            str(int(found.masks[place].sum())),
            listed(list(dict.fromkeys(held))),
        ]
        if found.window is not None:
            row.insert(3, "yes" if found.inside[place] else "no")
        rows.append(row)
    columns = [
        Column("Place", is_number=False),
        Column(CRITERIA[found.criterion]),
        Column("rho"),
        Column("Features"),
        Column("Which", is_number=False),
    ]
    if found.window is not None:
        columns.insert(3, Column("In the window", is_number=False))
    return Table(tuple(columns), tuple(rows), "The best candidates", "curve-table")


def coefficient_picture(found: Candidates, first: list[int]) -> Picture:
    """Draw how each coefficient moves over the candidates that hold the feature.

    Parameters
    ----------
    found : Candidates
    first : list of int
        Columns to be offered first: those of the model.

    Returns
    -------
    Picture
    """
    held = np.isfinite(found.coef).sum(axis=0)
    others = [int(one) for one in np.argsort(-held, kind="stable") if one not in first]
    offered: list[int] = []
    for column in [*(one for one in first if held[one]), *(one for one in others if held[one])]:
        if sum(held[one] for one in offered) + held[column] <= _MOST_VALUES or not offered:
            offered.append(column)
    n_left = int(np.count_nonzero(held)) - len(offered)
    options = [_option(found, column) for column in offered]
    labels = [shown(found.names[one]) + (" (predicts)" if one in first else "") for one in offered]
    first_one = offered[0]
    values = found.coef[:, first_one]
    finite = values[np.isfinite(values)]
    return Picture(
        name="coefficients-over",
        title="How a coefficient moves over the candidates",
        alt=(
            f"The coefficient of {shown(found.names[first_one])} in the "
            f"{count(int(held[first_one]))} candidates that hold it is from "
            f"{_span(values)}, and has the sign of the best in "
            f"{100 * float(np.mean(np.sign(finite) == np.sign(finite[0]))):.0f}% of them. Other "
            "features are in the table."
        ),
        caption=(
            "Two-step estimates of one coefficient in every candidate that holds the feature, "
            "best first. A coefficient that keeps its sign and size does not hang on which other "
            "features predict."
            + (f" {plural(n_left, 'feature')} that few hold can not be picked." if n_left else "")
        ),
        spec={"height": 380, "options": options},
        fallback=_spread(found, offered, first),
        choices=tuple(labels),
        choice_label="Feature",
    )


def _option(found: Candidates, column: int) -> dict[str, Any]:
    # The script finds those that hold it, in their order.
    which = f"held:{found.place(column)}"
    held = found.masks[:, column]
    hover = "place %{x}<br>coefficient %{y:.4~g}<br>%{text}<extra></extra>"
    y = floats(found.coef[held, column])
    trace = _points(which, y, "candidate", "blue", "y", found.dot, True)
    data = [trace | {"hovertemplate": hover}]
    if found.chosen is not None and held[found.chosen]:
        mark = _mark(found.chosen, found.coef[found.chosen, column], "y", True)
        data.append(mark | {"hovertemplate": "chosen; " + hover})
    layout = {
        "xaxis": {"title": {"text": "candidates, best first"}} | _ranks(len(found)),
        "yaxis": {"title": {"text": "coefficient"}, "zeroline": True},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
    }
    return {"data": data, "layout": layout}


def _spread(found: Candidates, offered: list[int], first: list[int]) -> Table:
    rows = []
    for column in offered:
        values = found.coef[:, column]
        finite = values[np.isfinite(values)]
        quartiles = np.quantile(finite, [0.0, 0.5, 1.0])
        chosen = "" if found.chosen is None else number(values[found.chosen])
        rows.append(
            [
                found.names[column],
                "yes" if column in first else "no",
                f"{100 * len(finite) / len(found):.0f}%",
                chosen,
                *(number(one) for one in quartiles),
                f"{100 * float(np.mean(finite > 0)):.0f}%",
            ]
        )
    columns = [
        Column("Feature", is_number=False),
        Column("Predicts", is_number=False),
        Column("Held by"),
        Column("Chosen"),
        Column("Lowest"),
        Column("Median"),
        Column("Highest"),
        Column("Positive"),
    ]
    return Table(
        tuple(columns),
        tuple(rows),
        "Coefficients over the candidates that hold them",
        "spread-table",
    )

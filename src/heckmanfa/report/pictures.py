"""Pictures of the fitted model: training, lambda, and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.report.picture import Picture, colour, floats, plain, plot_text
from heckmanfa.results.document import Column, Table
from heckmanfa.text.numbers import count, number, plural
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.analysis.prepared import Loaded
    from heckmanfa.data.arrays import Floats
    from heckmanfa.data.rows import Mask

__all__ = [
    "lambda_picture",
    "path_picture",
    "prediction_picture",
    "selected_rows",
]

_MOST_PATHS = 150
_BINS = 40
_LONG_TAIL = 4.0
_GROUPS = 20
_MOST_POINTS = 1500
_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def selected_rows(rows: Loaded) -> Mask:
    """Rows of X that have an outcome and count as selected."""
    observed = ~np.isnan(rows.y)
    if rows.selected is not None:
        observed &= rows.selected
    if rows.weight is not None:
        observed &= rows.weight > 0
    return np.asarray(observed)


def path_picture(analysis: Analysis) -> Picture | None:
    """Draw the probabilities of Heckman-FA over its training; None without a record of it.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    Picture or None
    """
    model: Any = analysis.model
    path = getattr(model, "path_", {})
    if not path or not len(path["epoch"]):
        return None
    epochs, pi = np.asarray(path["epoch"]), np.asarray(path["inclusion_prob"])
    known = [int(one) for one in np.flatnonzero(np.isfinite(pi[-1]))]
    order = sorted(known, key=lambda one: -pi[-1, one])
    followed = order[:_MOST_PATHS]
    data: list[dict[str, Any]] = []
    # Those that predict are drawn last, over the others.
    for group, tint in (("does not predict", "muted"), ("predicts", "blue")):
        first = True
        for column in followed:
            if bool(model.support_[column]) != (group == "predicts"):
                continue
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": group,
                    "legendgroup": group,
                    "showlegend": first,
                    "x": floats(epochs),
                    "y": floats(pi[:, column]),
                    "line": {"color": colour(tint), "width": 2 if tint == "blue" else 1},
                    "text": [plot_text(model.fit_.labels[column])] * len(epochs),
                    "hovertemplate": "%{text}<br>epoch %{x}<br>probability %{y:.3f}<extra></extra>",
                }
            )
            first = False
    layout = {
        "xaxis": {"title": {"text": "epoch"}},
        "yaxis": {"title": {"text": "probability to predict"}, "range": [-0.02, 1.02]},
        "legend": dict(_LEGEND),
        "hovermode": "closest",
    }
    top = ", ".join(f"{shown(model.fit_.labels[one])} {pi[-1, one]:.2f}" for one in order[:5])
    rows = [
        [
            model.fit_.labels[one],
            "yes" if model.support_[one] else "no",
            f"{pi[0, one]:.3f}",
            f"{pi[-1, one]:.3f}",
        ]
        for one in order
    ]
    columns = [Column("Feature", False), Column("Predicts", False), Column("First"), Column("Last")]
    last = int(epochs[-1])
    return Picture(
        name="path",
        title="How the probabilities were trained",
        alt=(
            f"Probability of each of {plural(len(known), 'feature')} over {count(last)} epochs. "
            f"At the end the highest are {top}."
        ),
        caption=(
            "The probability with which Heckman-FA lets each feature predict, over its training. "
            "The features of the model are those of the best assignment proposed, which need not "
            "be those of the highest probability."
        ),
        spec={"height": 380, "data": data, "layout": layout},
        fallback=Table(tuple(columns), tuple(rows), "Probability to predict", "path-table"),
    )


def lambda_picture(analysis: Analysis, rows: Loaded) -> Picture | None:
    """Draw lambda among the selected rows beside that among the others; None without selection.

    Parameters
    ----------
    analysis : Analysis
    rows : Loaded
        Those of the fit.

    Returns
    -------
    Picture or None
    """
    model = analysis.model
    if model.fit_.probit is None:
        return None
    ratio = model.inverse_mills(rows.X)
    chosen = selected_rows(rows)
    fitted, rest = ratio[chosen], ratio[~chosen]
    low, high = analysis.diagnostics.imr_range
    # A long tail would leave one bar for all that was fitted, and is put into the last one.
    top = min(float(ratio.max()), _LONG_TAIL * high)
    beyond = int(np.count_nonzero(ratio > top))
    edges = np.linspace(0.0, top, _BINS + 1)
    data = []
    for values, name, tint, dash in (
        (fitted, "selected rows, which the fit is on", "blue", "solid"),
        (rest, "other rows, to predict for", "orange", "dash"),
    ):
        share = 100.0 * np.histogram(np.minimum(values, top), edges)[0] / max(len(values), 1)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [plain(one, 5) for one in edges],
                "y": [plain(one, 5) for one in [*share, share[-1]]],
                "line": {"shape": "hv", "color": colour(tint), "width": 2, "dash": dash},
                "fill": "tozeroy",
                "fillcolor": colour(tint, 0.12),
                "hovertemplate": "lambda from %{x:.3~g}<br>%{y:.3~g}% of rows<extra></extra>",
            }
        )
    ends = [
        {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": plain(one), "x1": plain(one)}
        | {"line": {"color": colour("muted"), "width": 1, "dash": "dot"}}
        for one in (low, high)
    ]
    layout = {
        "xaxis": {"title": {"text": "lambda (inverse Mills ratio)"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "% of rows"}, "rangemode": "tozero"},
        "legend": dict(_LEGEND),
        "shapes": ends,
        "hovermode": "closest",
    }
    outside = 100 * (analysis.diagnostics.share_outside or 0.0)
    quantiles = [0.0, 0.25, 0.5, 0.75, 1.0]
    groups = [("Selected", fitted), ("Others", rest), ("All", ratio)]
    cells = [
        [name, count(len(part)), *(number(one) for one in np.quantile(part, quantiles))]
        for name, part in groups
        if len(part)
    ]
    heads = ["Rows", "Lowest", "Quartile", "Median", "Quartile", "Highest"]
    return Picture(
        name="lambda",
        title="Lambda in the fit and in prediction",
        alt=(
            f"Lambda of the {count(len(fitted))} selected rows is from {number(fitted.min(), 3)} "
            f"to {number(fitted.max(), 3)}, with median {number(float(np.median(fitted)), 3)}"
            + (
                f"; of the {count(len(rest))} others it is from {number(rest.min(), 3)} to "
                f"{number(rest.max(), 3)}, with median {number(float(np.median(rest)), 3)}. "
                if len(rest)
                else ". "
            )
            + f"{outside:.1f}% of all rows are outside the range of the fit."
        ),
        caption=(
            "Lambda is large where selection is unlikely. Its coefficient is learned from the "
            "selected rows, between the dotted lines; beyond them a prediction given selection "
            f"extrapolates ({outside:.1f}% of all rows)."
            + (
                f" {plural(beyond, 'row')} with lambda above {number(top, 3)}, up to "
                f"{number(ratio.max(), 3)}, are counted in the last bar."
                if beyond
                else ""
            )
        ),
        spec={"height": 340, "data": data, "layout": layout},
        fallback=Table(
            (Column("Rows that are", False), *(Column(head) for head in heads)),
            tuple(cells),
            "Lambda by rows",
            "lambda-table",
        ),
    )


def prediction_picture(analysis: Analysis, rows: Loaded) -> Picture:
    """Draw observed outcomes over predicted ones.

    Parameters
    ----------
    analysis : Analysis
    rows : Loaded
        Those of the fit.

    Returns
    -------
    Picture
    """
    chosen = selected_rows(rows)
    fitted = analysis.model.predict(rows.X[chosen], kind="selected")
    seen = rows.y[chosen]
    points = np.arange(len(seen))
    if len(seen) > _MOST_POINTS:
        source = np.random.default_rng(analysis.question.seed)
        points = np.sort(source.permutation(len(seen))[:_MOST_POINTS])
    table_rows, middle, average = _groups(fitted, seen)
    ends = [float(fitted.min()), float(fitted.max())]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "row",
            "x": floats(fitted[points]),
            "y": floats(seen[points]),
            "marker": {"color": colour("muted", 0.55), "size": 4},
            "hovertemplate": "predicted %{x:.4~g}<br>observed %{y:.4~g}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "as predicted",
            "x": [plain(one) for one in ends],
            "y": [plain(one) for one in ends],
            "line": {"color": colour("ink"), "width": 1, "dash": "dash"},
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "average of rows alike",
            "x": [plain(one) for one in middle],
            "y": [plain(one) for one in average],
            "line": {"color": colour("blue"), "width": 2},
            "marker": {"color": colour("blue"), "size": 7},
            "hovertemplate": "predicted %{x:.4~g}<br>observed %{y:.4~g}, on average<extra></extra>",
        },
    ]
    layout = {
        "xaxis": {"title": {"text": "predicted, given selection"}, "zeroline": False},
        "yaxis": {"title": {"text": "observed"}, "zeroline": False},
        "legend": dict(_LEGEND),
        "hovermode": "closest",
    }
    # An outcome that every row shares has no correlation with anything.
    with np.errstate(invalid="ignore", divide="ignore"):
        together = float(np.corrcoef(fitted, seen)[0, 1]) if len(seen) > 1 else float("nan")
    thinned = (
        f" {count(len(points))} of {count(len(seen))} rows are drawn; the averages are of all."
        if len(points) < len(seen)
        else ""
    )
    columns = [
        Column("Rows from low to high", False),
        Column("Rows"),
        Column("Predicted"),
        Column("Observed"),
    ]
    return Picture(
        name="predicted",
        title="Observed against predicted",
        alt=(
            f"Observed outcomes of {count(len(seen))} selected rows over what is predicted for "
            f"them; their correlation is {number(together, 3) or 'not defined'}. Averages are in "
            "the table."
        ),
        caption=(
            "Each grey point is a selected row. Blue points are averages of rows with similar "
            "predictions: where they leave the dashed line, a straight line is not the right form "
            f"for some feature.{thinned}"
        ),
        spec={"height": 400, "data": data, "layout": layout},
        fallback=Table(
            tuple(columns), tuple(table_rows), "Average outcome by prediction", "predicted-table"
        ),
    )


def _groups(fitted: Floats, seen: Floats) -> tuple[list[list[str]], list[float], list[float]]:
    """Average rows of similar predictions."""
    parts = np.array_split(np.argsort(fitted, kind="stable"), min(_GROUPS, max(len(seen) // 5, 1)))
    middle = [float(np.mean(fitted[part])) for part in parts]
    average = [float(np.mean(seen[part])) for part in parts]
    rows = [
        [f"group {place}", count(len(part)), number(a), number(b)]
        for place, (part, a, b) in enumerate(zip(parts, middle, average, strict=True), start=1)
    ]
    return rows, middle, average

"""The figures of the report, from the data of their pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.row_rules import decide_rows
from heckmanfa.data.rows import Mask
from heckmanfa.plots.candidate_points import CandidatePoints, read_candidates
from heckmanfa.plots.mills_ratios import MillsRatios
from heckmanfa.plots.outcomes_predicted import PredictedOutcomes
from heckmanfa.plots.rho_curves import RhoCurves
from heckmanfa.plots.training_path import read_path
from heckmanfa.report.picture import (
    Picture,
    axes,
    bits,
    colour,
    floats,
    line,
    plain,
    plain_list,
    plot_text,
    trace,
)
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

# Coefficients over the candidates in the page, four bytes each.
_MOST_VALUES = 300_000
_MOST_PATHS = 150
_BINS = 40
_MOST_CURVES = 60
_WIDEST_RHO = 0.9


def draw_pictures(analysis: Analysis) -> tuple[list[Picture], dict[str, Any] | None]:
    """Make every picture of the analysis; return also the candidates for the script."""
    fit = analysis.model.fit_
    found = read_candidates(fit, [analysis.source_of(name) for name in fit.labels])
    order = _clearest_first(analysis, len(fit.features))
    pictures: list[Picture | None] = []
    if found is not None:
        predicting = [fit.features[position] for position in order]
        pictures += [_specification_curve(found), _coefficient_picture(found, predicting)]
    pictures.append(_path_picture(analysis))
    rows = analysis.loaded
    if rows is not None:
        status = decide_rows(rows.y, rows.selected, rows.weight)
        fitted = status.selected & status.kept
        pictures.append(_lambda_picture(analysis, rows.X, fitted))
        pictures.append(_prediction_picture(analysis, rows.X[fitted], rows.y[fitted]))
    pictures.append(_rho_picture(analysis, order))
    candidates = None if found is None else candidate_payload(found)
    return [picture for picture in pictures if picture is not None], candidates


def _clearest_first(analysis: Analysis, n_features: int) -> list[int]:
    """Order the prediction features by their statistic: the answer reports the first."""
    statistic = analysis.estimates["statistic"].abs().fillna(0.0).to_numpy()
    # The intercept comes before the features.
    order = np.argsort(-statistic[1 : 1 + n_features], kind="stable")
    return [int(position) for position in order]


def candidate_payload(found: CandidatePoints) -> dict[str, Any]:
    """Return the candidates, best first: a bit for each feature, the criterion and rho.

    They go into the page once. The script derives names, ranks and subsets.
    """
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
    found: CandidatePoints, which: str, y: Any, name: str, tint: str, axis: str, hover: str
) -> dict[str, Any]:
    """Draw a subset of the candidates; the script knows it by name."""
    size = 9 if len(found) <= 60 else 6 if len(found) <= 1000 else 4
    symbol = "circle-open" if which == "outside" else "circle"
    marker = {"color": colour(tint), "size": size, "symbol": symbol}
    if which == "chosen":
        edge = {"color": colour("ink"), "width": 1}
        marker |= {"size": 12, "symbol": "diamond", "line": edge}
        hover = f"chosen; {hover}"
    return trace(
        {"$rank": which},
        y,
        name,
        hover,
        type="points",
        mode="markers",
        legendgroup=name,
        showlegend=axis == "y",
        text={"$names": which},
        yaxis=axis,
        marker=marker,
    )


def _specification_curve(found: CandidatePoints) -> Picture:
    """Draw the criterion and rho of every candidate, best first."""
    words = found.criterion_name
    groups = [("all", "candidate", "blue")]
    if found.window is not None:
        groups = [
            ("outside", "rho outside the window", "muted"),
            ("inside", "rho in the window", "blue"),
        ]
        groups = [group for group in groups if (found.inside == (group[0] == "inside")).any()]
    if found.chosen is not None:
        groups.append(("chosen", "chosen", "orange"))
    exact = ".4f" if found.criterion == "adjusted_r2" else ".6~g"
    data = [
        _points(found, which, {"$take": [array, which]}, name, tint, axis, hover)
        for axis, array, hover in (
            ("y", "value", f"rank %{{x}}<br>{words} %{{y:{exact}}}<br>%{{text}}"),
            ("y2", "rho", "rank %{x}<br>rho %{y:.4f}<br>%{text}"),
        )
        for which, name, tint in groups
    ]
    better = "higher" if found.criterion == "adjusted_r2" else "lower"
    layout = axes(
        _ranks(found) | {"anchor": "y2"},
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


def _ranks(found: CandidatePoints) -> dict[str, Any]:
    limits = list(found.rank_limits)
    axis = {"title": "candidates, best first", "range": limits, "zeroline": False}
    return axis | ({"dtick": 1} if len(found) <= 12 else {})


def _coefficient_picture(found: CandidatePoints, predicting: list[int]) -> Picture:
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
    hover = "rank %{x}<br>coefficient %{y:.4~g}<br>%{text}"
    y = floats(found.coef[held, column])
    data = [_points(found, which, y, "candidate", "blue", "y", hover)]
    if found.chosen is not None and held[found.chosen]:
        y_chosen = plain_list([found.coef[found.chosen, column]])
        data.append(_points(found, "chosen", y_chosen, "chosen", "orange", "y", hover))
    layout = axes(_ranks(found), {"title": "coefficient", "zeroline": True})
    return {"data": data, "layout": layout}


def _path_picture(analysis: Analysis) -> Picture | None:
    """Draw the probabilities of Heckman-FA over its training; None without a record of it."""
    fit = analysis.model.fit_
    found = read_path(getattr(analysis.model, "path_", None), fit.labels, fit.support)
    if found is None:
        return None
    hover = "%{text}<br>epoch %{x}<br>probability %{y:.3f}"
    data: list[dict[str, Any]] = []
    # Those that predict are drawn last, over the others.
    for group, tint, predicts in (("does not predict", "muted", False), ("predicts", "blue", True)):
        members = [k for k in found.order[:_MOST_PATHS] if bool(found.support[k]) == predicts]
        data += [
            line(
                floats(found.epochs),
                floats(found.probability[:, column]),
                group,
                tint,
                hover,
                width=2 if predicts else 1,
                legendgroup=group,
                showlegend=rank == 0,
                text=[plot_text(found.names[column])] * len(found.epochs),
            )
            for rank, column in enumerate(members)
        ]
    layout = axes({"title": "epoch"}, {"title": "probability to predict", "range": [-0.02, 1.02]})
    return Picture("path", found.text(), {"height": 380, "data": data, "layout": layout})


def _lambda_picture(analysis: Analysis, X: pd.DataFrame, fitted: Mask) -> Picture | None:
    """Draw lambda among the selected rows beside that among the others; None without selection."""
    if not analysis.is_corrected:
        return None
    ratio, diagnostics = analysis.model.inverse_mills(X), analysis.diagnostics
    found = MillsRatios(
        fitted=ratio[fitted],
        others=ratio[~fitted],
        range=diagnostics.imr_range,
        share_outside=diagnostics.share_outside or 0.0,
    )
    edges = np.linspace(0.0, found.top, _BINS + 1)
    data = []
    for values, name, tint, dash in (
        (found.fitted, "selected rows, in the fit", "blue", "solid"),
        (found.others, "other rows, to predict for", "orange", "dash"),
    ):
        share = 100.0 * np.histogram(np.minimum(values, found.top), edges)[0] / max(len(values), 1)
        data.append(
            line(
                plain_list(edges, 5),
                plain_list([*share, share[-1]], 5),
                name,
                tint,
                "lambda from %{x:.3~g}<br>%{y:.3~g}% of rows",
                shape="hv",
                dash=dash,
                fill="tozeroy",
                fillcolor=colour(tint, 0.12),
            )
        )
    ends = [
        {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": plain(end), "x1": plain(end)}
        | {"line": {"color": colour("muted"), "width": 1, "dash": "dot"}}
        for end in found.range
    ]
    layout = axes(
        {"title": "lambda (inverse Mills ratio)", "rangemode": "tozero"},
        {"title": "% of rows", "rangemode": "tozero"},
        shapes=ends,
    )
    return Picture("lambda", found.text(), {"height": 340, "data": data, "layout": layout})


def _prediction_picture(analysis: Analysis, X: pd.DataFrame, observed: Floats) -> Picture:
    """Draw observed outcomes over predicted ones."""
    predicted = analysis.model.predict(X, kind="selected")
    found = PredictedOutcomes(predicted, observed, seed=analysis.question.seed)
    x, y = found.points()
    _, middle, average = found.averages()
    ends = plain_list([found.predicted.min(), found.predicted.max()])
    hover = "predicted %{x:.4~g}<br>observed %{y:.4~g}"
    dots = {"color": colour("muted", 0.55), "size": 4}
    data = [
        line(floats(x), floats(y), "row", "muted", hover, mode="markers", marker=dots),
        line(ends, ends, "as predicted", "ink", width=1, dash="dash"),
        line(
            plain_list(middle),
            plain_list(average),
            "average of similar rows",
            "blue",
            hover + ", on average",
            mode="lines+markers",
            marker={"color": colour("blue"), "size": 7},
        ),
    ]
    layout = axes(
        {"title": "predicted, given selection", "zeroline": False},
        {"title": "observed", "zeroline": False},
    )
    return Picture("predicted", found.text(), {"height": 400, "data": data, "layout": layout})


def _rho_picture(analysis: Analysis, order: list[int]) -> Picture | None:
    """Draw each coefficient over a range of rho; None without selection."""
    model, narrow = analysis.model, analysis.uncertainty
    if narrow is None or not order:
        return None
    reach = min(_WIDEST_RHO, 0.98 * narrow.curve.reach)
    wide = model.uncertainty_interval(rho=(-reach, reach), n_grid=61)
    found = replace(narrow.curves(), path=wide.path())
    # The intercept comes before the features.
    terms = [1 + position for position in order][:_MOST_CURVES]
    text = found.text(terms)
    if narrow.averaged:
        only = "Only features with a BIC share of 50% or more are in this equation."
        text = replace(text, caption=f"{text.caption} {only}")
    return Picture(
        name="over-rho",
        text=text,
        spec={"height": 360, "options": [_rho_option(found, position) for position in terms]},
        choices=tuple(shown(found.bounds["term"].iloc[position]) for position in terms),
    )


def _rho_option(found: RhoCurves, position: int) -> dict[str, Any]:
    curve = found.curve(position)
    x = plain_list(curve["rho"], 4)
    low, high, middle = (plain_list(curve[name], 5) for name in ("ci_low", "ci_high", "estimate"))
    interval = f"{100 * found.conf_level:g}% interval"
    band = colour("blue", 0.16)
    data = [
        line(x, low, interval, "blue", width=0, showlegend=False),
        line(x, high, interval, "blue", width=0, fill="tonexty", fillcolor=band),
        line(x, middle, "coefficient", "blue", "rho %{x:.2f}<br>coefficient %{y:.4~g}"),
    ]
    if abs(found.rho_hat) <= float(curve["rho"].max()):
        ends = plain_list([curve["ci_low"].min(), curve["ci_high"].max()])
        estimated = plain_list([found.rho_hat] * 2)
        name = "rho as estimated"
        data.append(line(estimated, ends, name, "orange", f"{name}, %{{x:.3f}}", dash="dash"))
    layout = axes({"title": "rho", "zeroline": False}, {"title": "coefficient", "zeroline": True})
    return {"data": data, "layout": layout}

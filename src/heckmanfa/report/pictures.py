"""Figures of the fitted model: training, lambda, predictions, and coefficients over rho."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.plots.mills_ratios import MillsRatios
from heckmanfa.plots.outcomes_predicted import PredictedOutcomes
from heckmanfa.plots.rho_curves import RhoCurves
from heckmanfa.plots.training_path import read_path
from heckmanfa.report.picture import Picture, axes, colour, floats, line, plain, plot_text
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.analysis.prepared import Loaded
    from heckmanfa.data.rows import Mask

_MOST_PATHS = 150
_BINS = 40
_MOST_CURVES = 60
_WIDEST_RHO = 0.9


def path_picture(analysis: Analysis) -> Picture | None:
    """Draw the probabilities of Heckman-FA over its training; None without a record of it."""
    fit = analysis.model.fit_
    found = read_path(getattr(analysis.model, "path_", None), fit.labels, fit.support)
    if found is None:
        return None
    hover = "%{text}<br>epoch %{x}<br>probability %{y:.3f}<extra></extra>"
    data: list[dict[str, Any]] = []
    # Those that predict are drawn last, over the others.
    for group, tint, predicts in (("does not predict", "muted", False), ("predicts", "blue", True)):
        members = [k for k in found.order[:_MOST_PATHS] if bool(found.support[k]) == predicts]
        data += [
            line(
                floats(found.epochs),
                floats(found.probability[:, column]),
                name=group,
                legendgroup=group,
                showlegend=place == 0,
                line={"color": colour(tint), "width": 2 if predicts else 1},
                text=[plot_text(found.names[column])] * len(found.epochs),
                hovertemplate=hover,
            )
            for place, column in enumerate(members)
        ]
    layout = axes({"title": "epoch"}, {"title": "probability to predict", "range": [-0.02, 1.02]})
    return Picture("path", found.text(), {"height": 380, "data": data, "layout": layout})


def _selected(rows: Loaded) -> Mask:
    """Rows of X that have an outcome and count as selected."""
    observed = ~np.isnan(rows.y)
    if rows.selected is not None:
        observed &= rows.selected
    if rows.weight is not None:
        observed &= rows.weight > 0
    return np.asarray(observed)


def lambda_picture(analysis: Analysis, rows: Loaded) -> Picture | None:
    """Draw lambda among the selected rows beside that among the others; None without selection."""
    if not analysis.is_corrected:
        return None
    ratio, chosen = analysis.model.inverse_mills(rows.X), _selected(rows)
    diagnostics = analysis.diagnostics
    found = MillsRatios(
        fitted=ratio[chosen],
        others=ratio[~chosen],
        range=diagnostics.imr_range,
        share_outside=diagnostics.share_outside or 0.0,
    )
    edges = np.linspace(0.0, found.top, _BINS + 1)
    data = []
    for values, name, tint, dash in (
        (found.fitted, "selected rows, which the fit is on", "blue", "solid"),
        (found.others, "other rows, to predict for", "orange", "dash"),
    ):
        share = 100.0 * np.histogram(np.minimum(values, found.top), edges)[0] / max(len(values), 1)
        data.append(
            line(
                [plain(edge, 5) for edge in edges],
                [plain(height, 5) for height in [*share, share[-1]]],
                name=name,
                line={"shape": "hv", "color": colour(tint), "width": 2, "dash": dash},
                fill="tozeroy",
                fillcolor=colour(tint, 0.12),
                hovertemplate="lambda from %{x:.3~g}<br>%{y:.3~g}% of rows<extra></extra>",
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


def prediction_picture(analysis: Analysis, rows: Loaded) -> Picture:
    """Draw observed outcomes over predicted ones."""
    chosen = _selected(rows)
    found = PredictedOutcomes(
        predicted=analysis.model.predict(rows.X[chosen], kind="selected"),
        observed=rows.y[chosen],
        seed=analysis.question.seed,
    )
    x, y = found.points()
    _, middle, average = found.averages()
    ends = [plain(found.predicted.min()), plain(found.predicted.max())]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "row",
            "x": floats(x),
            "y": floats(y),
            "marker": {"color": colour("muted", 0.55), "size": 4},
            "hovertemplate": "predicted %{x:.4~g}<br>observed %{y:.4~g}<extra></extra>",
        },
        line(
            ends,
            ends,
            name="as predicted",
            line={"color": colour("ink"), "width": 1, "dash": "dash"},
            hoverinfo="skip",
        ),
        line(
            [plain(value) for value in middle],
            [plain(value) for value in average],
            name="average of rows alike",
            line={"color": colour("blue"), "width": 2},
            marker={"color": colour("blue"), "size": 7},
            hovertemplate="predicted %{x:.4~g}<br>observed %{y:.4~g}, on average<extra></extra>",
        )
        | {"mode": "lines+markers"},
    ]
    layout = axes(
        {"title": "predicted, given selection", "zeroline": False},
        {"title": "observed", "zeroline": False},
    )
    return Picture("predicted", found.text(), {"height": 400, "data": data, "layout": layout})


def rho_picture(analysis: Analysis) -> Picture | None:
    """Draw each coefficient over a range of rho; None without selection."""
    model, narrow = analysis.model, analysis.uncertainty
    if narrow is None or not np.any(model.support_):
        return None
    reach = min(_WIDEST_RHO, 0.98 * narrow.curve.reach)
    wide = model.uncertainty_interval(rho=(-reach, reach), n_grid=61)
    found = RhoCurves(wide.path(), narrow.tidy(), narrow.rho, narrow.conf_level, model.rho_)
    z = analysis.estimates["statistic"].abs().fillna(0.0).to_numpy()[1 : len(found.bounds)]
    # Positions among the terms, that of the intercept being 0.
    order = [1 + int(place) for place in np.argsort(-z, kind="stable")][:_MOST_CURVES]
    return Picture(
        name="over-rho",
        text=found.text(order),
        spec={"height": 360, "options": [_rho_option(found, position) for position in order]},
        choices=tuple(shown(found.bounds["term"].iloc[position]) for position in order),
    )


def _rho_option(found: RhoCurves, position: int) -> dict[str, Any]:
    curve = found.curve(position)
    x = [plain(rho, 4) for rho in curve["rho"]]
    low, high, middle = (
        [plain(value, 5) for value in curve[name]] for name in ("ci_low", "ci_high", "estimate")
    )
    edge = {"color": colour("blue"), "width": 0}
    data = [
        line(x, low, line=edge, showlegend=False, hoverinfo="skip"),
        line(
            x,
            high,
            name=f"{100 * found.conf_level:g}% interval",
            line=edge,
            fill="tonexty",
            fillcolor=colour("blue", 0.16),
            hoverinfo="skip",
        ),
        line(
            x,
            middle,
            name="coefficient",
            line={"color": colour("blue"), "width": 2},
            hovertemplate="rho %{x:.2f}<br>coefficient %{y:.4~g}<extra></extra>",
        ),
    ]
    if abs(found.rho_hat) <= float(curve["rho"].max()):
        data.append(
            line(
                [plain(found.rho_hat)] * 2,
                [plain(curve["ci_low"].min()), plain(curve["ci_high"].max())],
                name="rho as estimated",
                line={"color": colour("orange"), "width": 2, "dash": "dash"},
                hovertemplate="rho as estimated, %{x:.3f}<extra></extra>",
            )
        )
    layout = axes({"title": "rho", "zeroline": False}, {"title": "coefficient", "zeroline": True})
    return {"data": data, "layout": layout}

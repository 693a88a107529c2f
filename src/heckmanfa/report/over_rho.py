"""The picture of coefficients for a rho that is assumed rather than estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.report.picture import Picture, colour, plain
from heckmanfa.results.document import Column, Table
from heckmanfa.text.numbers import number, plural
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

__all__ = ["rho_picture"]

_MOST_CURVES = 60
_WIDEST_RHO = 0.9


def rho_picture(analysis: Analysis) -> Picture | None:
    """Draw each coefficient over a range of rho; None without selection.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    Picture or None
    """
    model = analysis.model
    narrow = analysis.uncertainty
    if narrow is None or not np.any(model.support_):
        return None
    reach = min(_WIDEST_RHO, 0.98 * narrow.curve.reach)
    wide = model.uncertainty_interval(rho=(-reach, reach), n_grid=61)
    path, bounds = wide.path(), narrow.tidy()
    width = len(bounds)
    z = analysis.estimates["statistic"].abs().fillna(0.0).to_numpy()[1:width]
    # Places among the terms, the intercept's being 0: names need not be distinct from it.
    order = [1 + int(one) for one in np.argsort(-z, kind="stable")][:_MOST_CURVES]
    terms = [shown(bounds["term"].iloc[one]) for one in order]
    options, rows = [], []
    for place, term in zip(order, terms, strict=True):
        options.append(_rho_option(path.iloc[place::width], model.rho_))
        row = bounds.iloc[place]
        change = float(row["sign_change"])
        rows.append(
            [
                term,
                number(row["ols"]),
                f"{number(row['bound_low'])} to {number(row['bound_high'])}",
                f"{number(row['ui_low'])} to {number(row['ui_high'])}",
                "never" if np.isnan(change) else number(change, 3),
            ]
        )
    low, high = narrow.rho
    columns = [
        Column("Feature", False),
        Column("At rho = 0"),
        Column(f"Estimates, rho {low:g} to {high:g}"),
        Column("With 95% intervals"),
        Column("Sign changes at rho"),
    ]
    first = bounds.iloc[order[0]]
    turning = int(bounds["sign_change"].iloc[order].between(low, high).sum())
    return Picture(
        name="over-rho",
        title="Coefficients for any rho",
        alt=(
            f"The coefficient of {terms[0]} is from {number(first['bound_low'], 3)} to "
            f"{number(first['bound_high'], 3)} for rho from {low:g} to {high:g}. "
            f"{turning} of {plural(len(terms), 'coefficient')} "
            f"{'changes' if 1 in (turning, len(terms)) else 'change'} sign in that range; all are "
            "in the table."
        ),
        caption=(
            "What each coefficient would be for a rho that is assumed rather than estimated, with "
            "its 95% interval: no exclusion is needed for this. rho = 0 is least squares on the "
            "selected rows."
        ),
        spec={"height": 360, "options": options},
        fallback=Table(tuple(columns), tuple(rows), "Coefficients over rho", "over-rho-table"),
        choices=tuple(terms),
        choice_label="Feature",
    )


def _rho_option(part: Any, rho_hat: float) -> dict[str, Any]:
    x = [plain(one, 4) for one in part["rho"]]
    line = {"color": colour("blue"), "width": 0}
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": [plain(one, 5) for one in part["ci_low"]],
            "line": line,
            "showlegend": False,
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "95% interval",
            "x": x,
            "y": [plain(one, 5) for one in part["ci_high"]],
            "line": line,
            "fill": "tonexty",
            "fillcolor": colour("blue", 0.16),
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "coefficient",
            "x": x,
            "y": [plain(one, 5) for one in part["estimate"]],
            "line": {"color": colour("blue"), "width": 2},
            "hovertemplate": "rho %{x:.2f}<br>coefficient %{y:.4~g}<extra></extra>",
        },
    ]
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": "rho"}, "zeroline": False},
        "yaxis": {"title": {"text": "coefficient"}, "zeroline": True},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
    }
    if abs(rho_hat) <= float(part["rho"].max()):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "rho as estimated",
                "x": [plain(rho_hat)] * 2,
                "y": [plain(float(part["ci_low"].min())), plain(float(part["ci_high"].max()))],
                "line": {"color": colour("orange"), "width": 2, "dash": "dash"},
                "hovertemplate": "rho as estimated, %{x:.3f}<extra></extra>",
            }
        )
    return {"data": data, "layout": layout}

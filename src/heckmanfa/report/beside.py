"""The chosen model beside others: least squares, and the Heckman model of all features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from heckmanfa.model.least_squares import fit_least_squares

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

__all__ = ["Comparison", "compare_models"]

_ESTIMATES = ["estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The prediction equation of three models, term by term."""

    table: pd.DataFrame
    """kind ("prediction", "errors", "left out" or "fit"), term, then those of `Heckman.tidy`, and
    all_features and least_squares; NaN where a model does not have the term"""
    n_all: int
    """features of the all-features model; 0 where there is nothing to choose from"""
    is_whole: bool
    """whether the model at hand holds every feature that may predict"""
    is_solved: bool
    """whether the all-features model can be fitted"""


def compare_models(analysis: Analysis) -> Comparison:
    """Set the prediction equation beside that of least squares and of all features.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    Comparison
        Least squares is on the same features and the selected rows. The all-features model holds
        every feature that may predict: what a search chose from, or all but those that are only
        to drive selection.
    """
    model = analysis.model
    moments, names = model._moments, model._names
    features = [int(one) for one in np.flatnonzero(model.support_)]
    candidates = _may_predict(analysis)
    tidy = model.tidy()
    naive = fit_least_squares(moments, features)
    whole = np.zeros(len(names), dtype=bool)
    whole[candidates] = True
    is_whole = set(candidates) <= set(features)
    corrected = model._probit is not None
    full = moments.solve(whole) if corrected and candidates and not is_whole else None

    kept = [one for one in candidates if one not in features] if full is not None else []
    rows: list[dict[str, object]] = []
    for equation in ("prediction", "errors"):
        for row in tidy[tidy["equation"] == equation].to_dict("records"):
            rows.append({"kind": equation, "term": row["term"]} | {k: row[k] for k in _ESTIMATES})
    rows += [{"kind": "left out", "term": names[one]} for one in kept]
    for term, value in (("adjusted_r2", model.adjusted_r2_), ("bic", model.bic_)):
        rows.append({"kind": "fit", "term": term, "estimate": value})
    table = pd.DataFrame(rows)
    nan = float("nan")
    of_naive = {"sigma": naive.sigma, "adjusted_r2": naive.adjusted_r2, "bic": naive.bic}
    table["least_squares"] = _column(table, [*naive.coef, *(nan for _ in kept)], of_naive)
    if full is None or not bool(full.feasible):
        table["all_features"] = nan
    else:
        slopes = [float(full.intercept), *full.coef[features], *full.coef[kept]]
        of_full = {"imr": full.imr_coef, "rho": full.rho, "sigma": full.sigma}
        of_full |= {"adjusted_r2": full.adjusted_r2, "bic": full.bic}
        table["all_features"] = _column(table, slopes, of_full)
    return Comparison(
        table=table,
        n_all=len(candidates),
        is_whole=is_whole,
        is_solved=full is not None and bool(full.feasible),
    )


def _column(table: pd.DataFrame, slopes: Sequence[float], others: dict[str, Any]) -> list[float]:
    """Values of another model: its slopes in the order of the rows, and the rest by name."""
    left = iter(slopes)
    return [
        float(others.get(term, "nan") if kind in ("errors", "fit") else next(left))
        for kind, term in zip(table["kind"], table["term"], strict=True)
    ]


def _may_predict(analysis: Analysis) -> list[int]:
    """Positions of the columns that may predict."""
    model: Any = analysis.model
    if model._is_search:
        return [int(one) for one in model._candidates]
    never: set[str] = set()
    for name in analysis.question.select_only:
        never |= {str(one) for one in analysis.encoding.groups.get(name, [name])}
    constant = set(model._moments.constant_columns())
    return [
        int(one)
        for one in model._moments.columns
        if model._names[one] not in never and one not in constant
    ]

"""Worst-case bounds beside the estimates of several methods: what is left without a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.estimates_compared import Everyone
from heckmanfa.data.sample import DecidedRows
from heckmanfa.errors import HeckmanfaError
from heckmanfa.estimators.baselines import NaiveOLS
from heckmanfa.fit.family import Family
from heckmanfa.inference import bounds
from heckmanfa.text.wording import number

_ENDS = ["low", "high", "ci_low", "ci_high"]


@dataclass(frozen=True, repr=False, eq=False)
class WithoutModel:
    """Worst-case bounds of what methods estimate."""

    table: pd.DataFrame
    """term, low, high, ci_low, ci_high: what is estimated of everyone, then coefficients, if any"""
    noun: str
    """what is estimated of everyone, in a sentence"""
    assumes: str
    """what they rest on, in a clause"""

    @property
    def words(self) -> str:
        """Say the bounds of what is estimated of everyone, with the interval of that itself."""
        low, high, first, last = (number(self.table[name].iloc[0], 3) for name in _ENDS)
        return (
            f"Without a model, {self.noun} lies between {low} and {high} (95% interval "
            f"of Imbens and Manski: {first} to {last})."
        )

    def beside(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table that has a row for each term, with columns of the bounds."""
        own = self.table.set_index("term").reindex(table["term"])
        titles = {f"bounds, {name}": own[name].to_numpy(dtype=float) for name in _ENDS[:2]}
        return table.assign(**titles)


def bounds_of(
    rows: DecidedRows, X: pd.DataFrame, family: Family, fitted: Iterable[Any], everyone: Everyone
) -> WithoutModel | None:
    """Bound the mean of everyone, and coefficients of the columns of naive least squares if any.

    The mean of ordered classes is a probability. None if the outcome shows no range. Coefficients
    are of the rows with all of these columns.
    """
    span = (0.0, 1.0) if family.reads_labels else None
    outcome = np.asarray(rows.outcome)
    if family.is_ordered:
        outcome = np.where(np.isnan(outcome), np.nan, outcome >= everyone.place)
    columns: dict[str, Any] = {"selected": rows.status.selected, "sample_weight": rows.weight}
    try:
        mean = bounds.mean(outcome, y_range=span, **columns)
    except HeckmanfaError:
        return None
    tables = [mean.tidy().assign(quantity=everyone.term)]
    naive = next((model for model in fitted if isinstance(model, NaiveOLS)), None)
    if naive is not None:
        features = X[list(naive.prediction_features_)]
        whole = features.notna().all(axis=1).to_numpy()
        kept: dict[str, Any] = {
            name: held if held is None else held[whole] for name, held in columns.items()
        }
        try:
            slopes = bounds.projection(features[whole], outcome[whole], y_range=mean.span, **kept)
            tables.append(slopes.tidy())
        except HeckmanfaError:
            # As where columns are collinear among all rows: the mean is known nevertheless.
            pass
    table = pd.concat(tables, ignore_index=True).rename(columns={"quantity": "term"})
    return WithoutModel(table[["term", *_ENDS]], everyone.noun, _assumed(mean))


def _assumed(mean: bounds.Bounds) -> str:
    """Say what bounds rest on; the range of a binary outcome assumes nothing."""
    assert mean.span is not None
    if not mean.span_observed:
        return "no model, and nothing about who has an outcome: a missing one may be of any class"
    low, high = (number(end, 3) for end in mean.span)
    return (
        "no model, and nothing about who has an outcome: only that every outcome lies between "
        f"{low} and {high}, as those that are known do"
    )

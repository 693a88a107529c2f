"""Features kept out of the prediction equation, and which of them the data show to drive selection.

That a feature is in the selection equation alone does not make it a driver of selection: its
coefficient there may be anything. A feature *drives selection* where the test that its selection
coefficient is zero rejects at 5%; columns that belong together, as the dummies of one category,
are tested jointly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.fit import Fit
from heckmanfa.results.problems import stopped
from heckmanfa.results.reference import LEVEL, Wald, reference_of
from heckmanfa.text.wording import listed


@dataclass(frozen=True)
class KeptOut:
    """The features of the selection equation that are not in the prediction equation."""

    features: tuple[Any, ...]
    """names (or positions), in the order of X"""
    driving: tuple[Any, ...]
    """those of them with evidence that they drive selection"""
    without_evidence: tuple[Any, ...]
    """those that were tested, and have no such evidence"""
    not_tested: tuple[Any, ...] = ()
    """those whose test could not be made"""
    why_not: str = ""
    """why it could not"""

    def words(self) -> str:
        """Say which of them drive selection, in whole sentences."""
        driving = [str(one) for one in self.driving]
        others = [str(one) for one in self.without_evidence]
        unknown = [str(one) for one in self.not_tested]
        parts = []
        if driving:
            verb = "drives" if len(driving) == 1 else "drive"
            does = "does" if len(others) == 1 else "do"
            rest = f"; there is no evidence that {listed(others)} {does}" if others else ""
            parts.append(f"At {100 * LEVEL:g}%, {listed(driving)} {verb} selection{rest}.")
        elif others:
            which = "it drives" if len(others) == 1 else "any of them drives"
            if unknown:
                which = f"{listed(others)} {'drives' if len(others) == 1 else 'drive'}"
            parts.append(f"At {100 * LEVEL:g}%, there is no evidence that {which} selection.")
        if unknown:
            which = "it drives" if len(unknown) == 1 else "they drive"
            if parts:
                which = f"{listed(unknown)} {'drives' if len(unknown) == 1 else 'drive'}"
            parts.append(f"Whether {which} selection was not tested: {self.why_not}.")
        return " ".join(parts)


def kept_out(fit: Fit, groups: Iterable[Sequence[Any]] | None = None) -> KeptOut:
    """Tell features that drive selection from those without evidence of it.

    Parameters
    ----------
    fit : Fit
    groups : iterable of sequences, optional
        Names of columns that are tested jointly: unless given, the terms of the selection formula
        or the ``feature_groups`` of a search.

    Returns
    -------
    KeptOut
    """
    if fit.probit is None:
        return KeptOut((), (), ())
    out = [int(one) for one in fit.probit.features if not fit.support[one]]
    label = dict(zip(fit.probit.features, fit.selection_features, strict=True))
    together = _columns_together(fit, groups)
    driving: set[int] = set()
    unknown: dict[int, str] = {}
    for unit in {tuple(sorted({*together.get(one, (one,))} & {*out})) for one in out}:
        test = selection_test(fit, unit)
        if test.note:
            unknown |= dict.fromkeys(unit, test.note)
        elif test.p_value < LEVEL:
            driving.update(unit)
    return KeptOut(
        tuple(label[one] for one in out),
        tuple(label[one] for one in out if one in driving),
        tuple(label[one] for one in out if one not in driving and one not in unknown),
        tuple(label[one] for one in out if one in unknown),
        "; ".join(dict.fromkeys(unknown[one] for one in out if one in unknown)),
    )


def selection_test(fit: Fit, columns: Sequence[int]) -> Wald:
    """Test jointly that some columns of X have no coefficient in the selection equation.

    Parameters
    ----------
    fit : Fit
        With a selection equation that holds the columns.
    columns : sequence of int

    Returns
    -------
    Wald
    """
    assert fit.probit is not None
    first = fit.terms.index(("selection", "Intercept"))
    held = [int(one) for one in fit.probit.features]
    places = [first + 1 + held.index(one) for one in columns]
    covariance = fit.covariance[np.ix_(places, places)]
    return reference_of(fit).wald(fit.selection_coef[list(columns)], covariance, stopped(fit))


def _columns_together(
    fit: Fit, groups: Iterable[Sequence[Any]] | None
) -> dict[int, tuple[int, ...]]:
    """Positions of the columns that each column is tested with."""
    units = fit.spec.groups
    if groups is not None:
        table = FeatureTable(fit.spec.columns.names, (0, fit.n_features), None)
        units = tuple(tuple(resolve(table, list(group), "groups")) for group in groups)
    return {column: unit for unit in units for column in unit}

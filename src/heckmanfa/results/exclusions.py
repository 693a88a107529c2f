"""Features kept out of the prediction equation, and which of them the data show to drive selection.

A feature in the selection equation alone need not drive selection: its coefficient there may be
zero. A feature *drives selection* if the test that its selection coefficient is zero rejects at
5%; columns that belong together, such as the dummies of one category, are tested jointly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.fit import Fit
from heckmanfa.results.fit_tests import why_untested
from heckmanfa.results.reference import LEVEL, Wald, reference_of
from heckmanfa.text.wording import listed


@dataclass(frozen=True)
class Exclusions:
    """The features of the selection equation that are not in the prediction equation."""

    features: tuple[Any, ...] = ()
    """names (or positions), in the order of X"""
    driving: tuple[Any, ...] = ()
    """those with evidence that they drive selection"""
    without_evidence: tuple[Any, ...] = ()
    """those that were tested, and have no such evidence"""
    not_tested: tuple[Any, ...] = ()
    """those that could not be tested"""
    why_not: str = ""
    """why they could not"""

    def words(self) -> str:
        """Say which of them drive selection, in whole sentences."""
        driving, others, unknown = map(
            _drive, (self.driving, self.without_evidence, self.not_tested)
        )
        parts = []
        if self.driving:
            do = "does" if len(self.without_evidence) == 1 else "do"
            names = listed([str(name) for name in self.without_evidence])
            rest = f"; there is no evidence that {names} {do}" if names else ""
            parts.append(f"At {100 * LEVEL:g}%, {driving} selection{rest}.")
        elif self.without_evidence:
            if not self.not_tested:
                others = "it drives" if len(self.features) == 1 else "any of them drives"
            parts.append(f"At {100 * LEVEL:g}%, there is no evidence that {others} selection.")
        if self.not_tested:
            if not parts:
                unknown = "it drives" if len(self.features) == 1 else "they drive"
            parts.append(f"Whether {unknown} selection was not tested: {self.why_not}.")
        return " ".join(parts)


def _drive(features: Sequence[Any]) -> str:
    names = [str(name) for name in features]
    return f"{listed(names)} {'drives' if len(names) == 1 else 'drive'}"


def find_exclusions(fit: Fit, groups: Iterable[Sequence[Any]] | None = None) -> Exclusions:
    """Test which features outside the prediction equation drive selection.

    ``groups`` holds names of columns that are tested jointly: by default the terms of the
    selection formula or the ``feature_groups`` of a search.
    """
    if fit.probit is None:
        return Exclusions()
    columns = [column for column in fit.driving if not fit.support[column]]
    together = _columns_together(fit, groups)
    driving: set[int] = set()
    unknown: dict[int, str] = {}
    for unit in {
        tuple(sorted({*together.get(column, (column,))} & {*columns})) for column in columns
    }:
        test = selection_test(fit, unit)
        if test.note:
            unknown |= dict.fromkeys(unit, test.note)
        elif test.p_value < LEVEL:
            driving.update(unit)
    tested = [column for column in columns if column not in unknown]
    names_of = fit.spec.feature_names
    return Exclusions(
        tuple(names_of(columns)),
        tuple(names_of([column for column in tested if column in driving])),
        tuple(names_of([column for column in tested if column not in driving])),
        tuple(names_of([column for column in columns if column in unknown])),
        "; ".join(dict.fromkeys(unknown[column] for column in columns if column in unknown)),
    )


def selection_test(fit: Fit, columns: Sequence[int]) -> Wald:
    """Test jointly that columns of X have no coefficient in the selection equation.

    An average over selection equations is a mixture, which has no test: then the test is that of
    the model with everything in it.
    """
    assert fit.probit is not None
    first = fit.terms.index(("selection", "Intercept"))
    features = [int(column) for column in fit.probit.features]
    positions = [first + 1 + features.index(column) for column in columns]
    coef, covariance = fit.selection_coef[list(columns)], fit.covariance
    form = fit.way.form_of_both
    if fit.way.is_average and form is not None:
        coef, covariance = form.estimates[positions], form.covariance
    covariance = covariance[np.ix_(positions, positions)]
    return reference_of(fit).wald(coef, covariance, why_untested(fit))


def _columns_together(
    fit: Fit, groups: Iterable[Sequence[Any]] | None
) -> dict[int, tuple[int, ...]]:
    """Return the columns that each column is tested with, by position."""
    units = fit.spec.groups
    if groups is not None:
        table = FeatureTable.without_rows(fit.spec.columns)
        units = tuple(tuple(resolve(table, list(group), "groups")) for group in groups)
    return {column: unit for unit in units for column in unit}

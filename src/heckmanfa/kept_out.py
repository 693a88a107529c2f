"""Features kept out of the prediction equation, and which of them the data show to drive selection.

That a feature is in the selection equation alone does not make it a driver of selection: its
coefficient there may be anything. A feature *drives selection* where the test that its selection
coefficient is zero rejects at 5%; columns that belong together, as the dummies of one category,
are tested jointly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.features import FeatureTable, resolve
from heckmanfa.reference import Wald, reference_of
from heckmanfa.sections import listed

if TYPE_CHECKING:
    from heckmanfa.fitted import FittedSelectionModel

__all__ = ["LEVEL", "KeptOut", "kept_out", "selection_test"]

LEVEL = 0.05
"""of the test by which a feature is said to drive selection"""


@dataclass(frozen=True)
class KeptOut:
    """The features of the selection equation that are not in the prediction equation."""

    features: tuple[Any, ...]
    """names (or positions), in the order of X"""
    driving: tuple[Any, ...]
    """those of them with evidence that they drive selection"""
    without_evidence: tuple[Any, ...]
    """the others"""

    def words(self) -> str:
        """Say which of them drive selection, as the end of a sentence."""
        driving = [str(one) for one in self.driving]
        others = [str(one) for one in self.without_evidence]
        if not driving:
            which = "it drives" if len(others) == 1 else "any of them drives"
            return f"there is no evidence that {which} selection"
        verb = "drives" if len(driving) == 1 else "drive"
        does = "does" if len(others) == 1 else "do"
        rest = f"; there is no evidence that {listed(others)} {does}" if others else ""
        return f"{listed(driving)} {verb} selection{rest}"


def kept_out(model: FittedSelectionModel, groups: Iterable[Sequence[Any]] | None = None) -> KeptOut:
    """Tell features that drive selection from those without evidence of it.

    Parameters
    ----------
    model : FittedSelectionModel
    groups : iterable of sequences, optional
        Names of columns that are tested jointly: unless given, the terms of the selection formula
        or the ``feature_groups`` of a search.

    Returns
    -------
    KeptOut
    """
    if model._probit is None:
        return KeptOut((), (), ())
    out = [int(one) for one in model._probit.features if not model.support_[one]]
    label = dict(zip(model._probit.features, model.selection_features_, strict=True))
    together = _columns_together(model, groups)
    driving: set[int] = set()
    for unit in {tuple(sorted({*together.get(one, (one,))} & {*out})) for one in out}:
        if selection_test(model, unit).p_value < LEVEL:
            driving.update(unit)
    return KeptOut(
        tuple(label[one] for one in out),
        tuple(label[one] for one in out if one in driving),
        tuple(label[one] for one in out if one not in driving),
    )


def selection_test(model: FittedSelectionModel, columns: Sequence[int]) -> Wald:
    """Test jointly that some columns of X have no coefficient in the selection equation.

    Parameters
    ----------
    model : FittedSelectionModel
        With a selection equation that holds the columns.
    columns : sequence of int

    Returns
    -------
    Wald
    """
    assert model._probit is not None
    first = model._terms.index(("selection", "Intercept"))
    held = [int(one) for one in model._probit.features]
    places = [first + 1 + held.index(one) for one in columns]
    covariance = model._covariance[np.ix_(places, places)]
    return reference_of(model).wald(model.selection_coef_[list(columns)], covariance)


def _columns_together(
    model: FittedSelectionModel, groups: Iterable[Sequence[Any]] | None
) -> dict[int, tuple[int, ...]]:
    """Positions of the columns that each column is tested with."""
    if groups is None:
        given = getattr(model, "feature_groups", None) or model._together
        if model._design is not None:
            given = model._design.selection_terms
        groups = given.values() if isinstance(given, Mapping) else given
    names = getattr(model, "feature_names_in_", None)
    table = FeatureTable(None if names is None else tuple(names), (0, model.n_features_in_), None)
    found: dict[int, tuple[int, ...]] = {}
    for group in groups:
        unit = tuple(resolve(table, list(group), "groups"))
        found |= dict.fromkeys(unit, unit)
    return found

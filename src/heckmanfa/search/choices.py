"""What a search may decide: which columns may predict, which must, and which move together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.rows import Mask, Positions
from heckmanfa.errors import CollinearError, DroppedFeaturesWarning, InputError, warn
from heckmanfa.model.linalg import Dependency, dependencies, describe_dependencies
from heckmanfa.model.moments import Moments
from heckmanfa.text.printable import quoted

__all__ = ["Choices", "all_features", "feasible_choices", "read_choices"]

_SHOWN = 5
_GROUP = "group; a group is in or out as a whole"
_DUMMIES = (
    "column; its dummies are in or out as a whole: name all of them, or put each in a group of "
    "its own in feature_groups"
)


@dataclass(frozen=True)
class Choices:
    """The assignments that a search may look at: every one that holds a column, and not too many.

    `all_features` makes the one in which each compressed feature may be in or out.
    """

    n_features: int
    """K, the number of columns of X"""
    always: tuple[int, ...]
    """columns of every assignment"""
    units: tuple[tuple[int, ...], ...]
    """U units of columns that are in or out together, in column order"""
    max_features: int
    """the most columns of an assignment"""

    @property
    def columns(self) -> tuple[int, ...]:
        """Every column that an assignment may hold, in order."""
        return tuple(sorted([*self.always, *(one for unit in self.units for one in unit)]))

    @property
    def sizes(self) -> Any:
        """Number of columns of each unit, (U,)."""
        return np.array([len(unit) for unit in self.units], dtype=np.intp)

    @property
    def n_assignments(self) -> int:
        """How many assignments there are."""
        by_size = [1] + [0] * self.max_features
        for unit in self.units:
            for size in range(self.max_features, len(unit) - 1, -1):
                by_size[size] += by_size[size - len(unit)]
        room = self.max_features - len(self.always)
        return sum(by_size[: room + 1]) - (not self.always)

    def masks(self, inside: Mask) -> Mask:
        """Turn units in or out, (..., U), into masks over the columns of X, (..., K)."""
        spread = np.zeros((*inside.shape[:-1], self.n_features), dtype=bool)
        for place, unit in enumerate(self.units):
            spread[..., list(unit)] = inside[..., place, None]
        spread[..., list(self.always)] = True
        return spread

    def allowed(self, inside: Mask) -> Mask:
        """Whether assignments of units (B, U) hold a column, and not too many."""
        size = inside @ self.sizes + len(self.always)
        return np.asarray((size >= 1) & (size <= self.max_features))

    def without_columns(self, columns: Positions) -> Choices:
        """Leave out some columns, and units of which nothing is left."""
        away = {*columns}
        units = [tuple(one for one in unit if one not in away) for unit in self.units]
        return replace(
            self,
            always=tuple(one for one in self.always if one not in away),
            units=tuple(unit for unit in units if unit),
        )


def all_features(moments: Moments) -> Choices:
    """Every compressed feature may be in or out, each for itself."""
    return Choices(
        n_features=moments.n_features,
        always=(),
        units=tuple((column,) for column in moments.columns),
        max_features=len(moments.columns),
    )


def read_choices(
    table: FeatureTable,
    candidates: Positions,
    *,
    always: Any = (),
    never: Any = (),
    feature_groups: Any = None,
    default_groups: Sequence[Sequence[str]] = (),
    max_features: int | None = None,
) -> Choices:
    """Resolve what the user says about a search.

    Parameters
    ----------
    candidates : sequence of int
        Columns that may predict.
    always, never : sequence of str, int or bool
        Columns forced in and out.
    feature_groups : sequence of sequences, or mapping to sequences
        Columns that are in or out together.
    default_groups : sequence of sequences of str
        The dummies of each column of the data. Of a column that ``feature_groups`` names, its
        groups hold and no other. Dummies that may not predict are taken out, and the rest is a
        group, of which ``always`` and ``never`` name all or none.
    """
    if not candidates:
        raise InputError("prediction_features is empty: a search needs features that may predict")
    inside = resolve(table, () if always is None else always, "always")
    outside = resolve(table, () if never is None else never, "never")
    label = table.label
    for one in inside:
        if one in outside:
            raise InputError(f"{quoted(label(one))} is in both always and never")
        if one not in candidates:
            raise InputError(
                f"always names {quoted(label(one))}, which may not predict: it is not in "
                "prediction_features (or in the prediction formula)"
            )
    free = [one for one in candidates if one not in outside and one not in inside]
    units: list[tuple[int, ...]] = []
    grouped: set[int] = set()
    for group in _groups(table, feature_groups):
        for one in group:
            if one in grouped:
                raise InputError(f"feature_groups names {quoted(label(one))} in two groups")
            if one not in candidates:
                raise InputError(
                    f"feature_groups names {quoted(label(one))}, which may not predict: it is not "
                    "in "
                    "prediction_features (or in the prediction formula)"
                )
        grouped |= {*group}
        _refuse_part(table, group, {"always": inside, "never": outside}, _GROUP)
        if group and group[0] in free:
            units.append(tuple(group))
    for group in _groups(table, default_groups):
        left = [one for one in group if one in free]
        if grouped.isdisjoint(group):
            may = [one for one in group if one in candidates]
            _refuse_part(table, may, {"always": inside, "never": outside}, _DUMMIES)
        if left and grouped.isdisjoint(group):
            grouped |= {*group}
            units.append(tuple(left))
    units += [(one,) for one in free if one not in grouped]
    if not units and not inside:
        raise InputError("no feature may predict: never leaves none of prediction_features")
    most = len(free) + len(inside) if max_features is None else max_features
    if most < max(len(inside), 1):
        raise InputError(
            f"max_features is {most}, but always names {len(inside)} features"
            if inside
            else f"max_features must be at least 1; got {most}"
        )
    return Choices(table.shape[1], tuple(inside), tuple(sorted(units)), most)


def _refuse_part(
    table: FeatureTable, group: Positions, forced: Mapping[str, Positions], why: str
) -> None:
    """Refuse to force in or out a part of what moves as one."""
    for name, columns in forced.items():
        held = [one for one in group if one in columns]
        rest = [one for one in group if one not in columns]
        if held and rest:
            listed = ", ".join(quoted(table.label(one)) for one in rest[:_SHOWN])
            more = f" and {len(rest) - _SHOWN} more" if len(rest) > _SHOWN else ""
            raise InputError(
                f"{name} names {quoted(table.label(held[0]))}, but not {listed}{more} of the same "
                f"{why}"
            )


def _groups(table: FeatureTable, feature_groups: Any) -> list[list[int]]:
    if feature_groups is None:
        return []
    if isinstance(feature_groups, Mapping):
        feature_groups = list(feature_groups.values())
    if isinstance(feature_groups, str) or not isinstance(feature_groups, Sequence):
        raise InputError(
            "feature_groups must be a list of lists of columns, or a dictionary of them; got "
            f"{quoted(feature_groups)}"
        )
    for group in feature_groups:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise InputError(
                "feature_groups must be a list of lists of columns: write [['a', 'b'], ['c', "
                f"'d']]; got {quoted(group)} in place of a list"
            )
    return [resolve(table, group, "feature_groups") for group in feature_groups]


def feasible_choices(
    choices: Choices, moments: Moments, separating: Positions, names: Sequence[str]
) -> Choices:
    """Leave out what cannot predict, with a warning that names it.

    Columns that separate were left out before. What is constant among the selected rows, or
    collinear within its group, can be in no feasible assignment; the rest of a group stays.
    """
    choices = choices.without_columns(separating)
    found = _dependent(moments, choices.always)
    if found:
        words = describe_dependencies(found, ["constant", *(names[one] for one in choices.always)])
        raise CollinearError(
            f"always cannot be held among the selected rows: {'; '.join(words)}",
            "Leave a column out of always.",
            [choices.always[item.column - 1] for item in found],
        )
    away: list[int] = []
    clauses: list[str] = []
    for unit in choices.units:
        found = _dependent(moments, unit)
        away += [unit[item.column - 1] for item in found]
        clauses += describe_dependencies(found, ["constant", *(names[one] for one in unit)])
    if away:
        warn(
            "among the selected rows " + "; ".join(clauses) + ": left out of the search for "
            "prediction features",
            DroppedFeaturesWarning,
        )
    feasible = choices.without_columns(away)
    _refuse_large_groups(feasible, names)
    return feasible


def _refuse_large_groups(choices: Choices, names: Sequence[str]) -> None:
    """Refuse a group that no assignment could hold: it would be left out without a word."""
    room = choices.max_features - len(choices.always)
    for unit in choices.units if room > 0 else ():
        if len(unit) > room:
            listed = ", ".join(quoted(names[one]) for one in unit[:_SHOWN])
            more = f" and {len(unit) - _SHOWN} more" if len(unit) > _SHOWN else ""
            beside = f" beside the {len(choices.always)} of always" if choices.always else ""
            raise InputError(
                f"max_features is {choices.max_features}, but {listed}{more} predict together or "
                f"not at all: {len(unit)} columns{beside}, which could never predict. Raise "
                f"max_features to {len(unit) + len(choices.always)} or more, split the group by "
                "feature_groups, or name its columns in never."
            )


def _dependent(moments: Moments, columns: Positions) -> list[Dependency]:
    """Which of some columns are constant or collinear among the selected rows."""
    return dependencies(moments.subset(columns, imr=False, outcome=False))

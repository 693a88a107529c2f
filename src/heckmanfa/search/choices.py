"""The choices of a search: which columns may predict, which must, and which move together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.data.rows import Mask, Positions
from heckmanfa.errors import DroppedFeaturesWarning, InputError, warn
from heckmanfa.model.linalg import Dependency, collinear_error, dependencies, describe_dependencies
from heckmanfa.model.moments import Moments
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.printable import quoted, quoted_list

_SHOWN = 5
_GROUP = "group; a group is in or out as a whole"
_DUMMIES = (
    "column; its dummies are in or out as a whole: name all of them, "
    f"{instead('or put each in its own group in feature_groups', 'or none')}"
)


@dataclass(frozen=True)
class _Names:
    """What the parameters of an equation are called, and what its columns do."""

    always: str
    never: str
    features: str
    equation: str
    does: str

    @property
    def outside(self) -> str:
        """Why a column may not be named."""
        return f"which may not {self.does}: it is not in {self.features}" + instead(
            f" (or in the {self.equation} formula)", ""
        )


_PREDICTION = _Names(
    option("always"), option("never"), option("prediction_features"), "prediction", "predict"
)
_SELECTION = _Names(
    option("selection_always"),
    option("selection_never"),
    option("selection_features"),
    "selection",
    "drive selection",
)


@dataclass(frozen=True)
class Choices:
    """The assignments that a search may evaluate: those of at most ``max_features`` columns.

    The empty assignment, in which no feature predicts, is one of them.
    """

    n_features: int
    """K, the number of columns of X"""
    always: tuple[int, ...]
    """columns in every assignment"""
    units: tuple[tuple[int, ...], ...]
    """U units of columns that are in or out together, in column order"""
    max_features: int
    """the most columns in an assignment"""
    min_features: int = 0
    """the fewest: 1 in the paper's protocol, which has no empty assignment"""

    @property
    def columns(self) -> tuple[int, ...]:
        """Every column that may predict, in order."""
        return tuple(sorted([*self.always, *(column for unit in self.units for column in unit)]))

    @property
    def sizes(self) -> Any:
        """Number of columns of each unit, (U,)."""
        return np.array([len(unit) for unit in self.units], dtype=np.intp)

    @property
    def n_assignments(self) -> int:
        """The number of assignments."""
        by_size = [1] + [0] * self.max_features
        for unit in self.units:
            for size in range(self.max_features, len(unit) - 1, -1):
                by_size[size] += by_size[size - len(unit)]
        room = self.max_features - len(self.always)
        least = max(self.min_features - len(self.always), 0)
        return sum(by_size[least : room + 1])

    def masks(self, inside: Mask) -> Mask:
        """Convert masks over the units, (..., U), to masks over the columns of X, (..., K)."""
        spread = np.zeros((*inside.shape[:-1], self.n_features), dtype=bool)
        for index, unit in enumerate(self.units):
            spread[..., list(unit)] = inside[..., index, None]
        spread[..., list(self.always)] = True
        return spread

    def allowed(self, inside: Mask) -> Mask:
        """Which of the assignments of units, (B, U), have an allowed number of columns."""
        size = inside @ self.sizes + len(self.always)
        return np.asarray((size >= self.min_features) & (size <= self.max_features))

    def without_columns(self, columns: Positions) -> Choices:
        """Leave out some columns, and the units that become empty."""
        away = {*columns}
        units = [tuple(column for column in unit if column not in away) for unit in self.units]
        return replace(
            self,
            always=tuple(column for column in self.always if column not in away),
            units=tuple(unit for unit in units if unit),
        )


def join_equations(choices: Choices, selecting: Choices | None) -> Choices:
    """Return the choices of both equations as those of one, over 2 K columns.

    Column c of the selection equation is column K + c. None leaves the selection equation as it
    is.
    """
    if selecting is None:
        return choices
    k = choices.n_features
    units = [tuple(k + column for column in unit) for unit in selecting.units]
    return Choices(
        n_features=2 * k,
        always=(*choices.always, *(k + column for column in selecting.always)),
        units=(*choices.units, *units),
        max_features=choices.max_features + selecting.max_features,
    )


def in_each_equation(choices: Choices, n_equations: int) -> Choices:
    """Return choices over the columns of several outcome equations, in all of them or in none.

    Column c of the second equation is column K + c.
    """
    k = choices.n_features

    def everywhere(columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(k * equation + c for equation in range(n_equations) for c in columns)

    return Choices(
        n_features=k * n_equations,
        always=everywhere(choices.always),
        units=tuple(everywhere(unit) for unit in choices.units),
        max_features=choices.max_features * n_equations,
        min_features=choices.min_features * n_equations,
    )


def all_features(moments: Moments) -> Choices:
    """Let every compressed feature be in or out on its own."""
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
    selecting: bool = False,
    features: str = "prediction_features",
) -> Choices:
    """Resolve the user's constraints on a search of the prediction equation.

    ``candidates`` are the columns that may predict. ``default_groups`` are the dummies of each
    column of the data, which form a group unless ``feature_groups`` names one of them; dummies that
    may not predict are left out. ``features`` is the parameter that lists the candidates. The
    other parameters are those of the searching estimators.

    With ``selecting``, the constraints are those on the selection equation. Groups are then left
    without the columns that may not drive selection.
    """
    names, groups = _PREDICTION, _groups(table, feature_groups)
    if features != "prediction_features":
        names = replace(names, features=option(features))
    if selecting:
        names = _SELECTION
        may = {*candidates}
        groups = [[column for column in group if column in may] for group in groups]
    if not candidates:
        raise InputError(
            f"{names.features} is empty: a search needs features that may {names.does}"
        )
    inside = resolve(table, () if always is None else always, names.always)
    outside = resolve(table, () if never is None else never, names.never)
    label, held, away, may = table.label, {*inside}, {*outside}, {*candidates}
    for column in inside:
        if column in away:
            raise InputError(f"{quoted(label(column))} is in both {names.always} and {names.never}")
        if column not in may:
            raise InputError(f"{names.always} names {quoted(label(column))}, {names.outside}")
    forced = {names.always: held, names.never: away}
    free = [column for column in candidates if column not in away and column not in held]
    left_free = {*free}
    units: list[tuple[int, ...]] = []
    grouped: set[int] = set()
    for group in groups:
        for column in group:
            if column in grouped:
                raise InputError(f"feature_groups names {quoted(label(column))} in two groups")
            if column not in may:
                raise InputError(f"feature_groups names {quoted(label(column))}, {names.outside}")
        grouped |= {*group}
        _refuse_part(table, group, forced, _GROUP)
        if group and group[0] in left_free:
            units.append(tuple(group))
    for group in _groups(table, default_groups):
        if not grouped.isdisjoint(group):
            continue
        allowed = [column for column in group if column in may]
        _refuse_part(table, allowed, forced, _DUMMIES)
        left = [column for column in group if column in left_free]
        if left:
            grouped |= {*group}
            units.append(tuple(left))
    units += [(column,) for column in free if column not in grouped]
    if not units and not inside:
        raise InputError(
            f"no feature may {names.does}: {names.never} leaves none of {names.features}"
        )
    most = len(free) + len(inside) if max_features is None else max_features
    if most < max(len(inside), 1):
        raise InputError(
            f"max_features is {most}, but always names {len(inside)} features"
            if inside
            else f"max_features must be at least 1; got {most}"
        )
    return Choices(table.shape[1], tuple(inside), tuple(sorted(units)), most)


def _refuse_part(
    table: FeatureTable, group: Positions, forced: Mapping[str, Set[int]], why: str
) -> None:
    """Refuse to force only part of a group in or out."""
    for name, columns in forced.items():
        held = [column for column in group if column in columns]
        rest = [table.label(column) for column in group if column not in columns]
        if held and rest:
            raise InputError(
                f"{name} names {quoted(table.label(held[0]))}, but not "
                f"{quoted_list(rest, _SHOWN)} of the same {why}"
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
    choices: Choices,
    moments: Moments,
    separating: Positions,
    dropped: Positions,
    names: Sequence[str],
) -> Choices:
    """Leave out columns that cannot predict, with a warning that names them.

    Columns that are constant among the selected rows, or collinear within their group, are in no
    feasible assignment; the rest of a group stays. Separating columns were reported before, as
    were those dropped from the selection equation: of a column and its copy, one may predict.
    """
    choices = choices.without_columns(separating)
    choices = choices.without_columns(_copies(choices, moments, dropped))
    dependent = _dependent(moments, choices.always)
    if dependent:
        raise collinear_error(
            dependent,
            ["constant", *(names[column] for column in choices.always)],
            choices.always,
            f"{option('always')} cannot be held among the selected rows",
            f"Leave a column out of {option('always')}.",
        )
    away: list[int] = []
    clauses: list[str] = []
    # Far from collinear, no unit needs a look.
    clear = moments.gram_is_safe and not moments.constant_columns()
    for unit in () if clear else choices.units:
        dependent = _dependent(moments, unit)
        away += [unit[item.column - 1] for item in dependent]
        clauses += describe_dependencies(
            dependent, ["constant", *(names[column] for column in unit)]
        )
    if away:
        warn(
            "among the selected rows " + "; ".join(clauses) + ": left out of the search for "
            "prediction features",
            DroppedFeaturesWarning,
        )
    feasible = choices.without_columns(away)
    _refuse_large_groups(feasible, names)
    return feasible


def _copies(choices: Choices, moments: Moments, dropped: Positions) -> list[int]:
    """Find dropped columns that others make up which may predict, and that need not."""
    away = [column for column in choices.columns if column in {*dropped} - {*choices.always}]
    # The others come first, so these are the ones found to depend.
    order = [column for column in choices.columns if column not in away] + away
    dependent = {order[item.column - 1] for item in _dependent(moments, order)} if away else set()
    return [column for column in away if column in dependent]


def _refuse_large_groups(choices: Choices, names: Sequence[str]) -> None:
    """Refuse a group larger than ``max_features``: it would be left out silently."""
    room = choices.max_features - len(choices.always)
    for unit in choices.units if room > 0 else ():
        if len(unit) > room:
            listed = quoted_list([names[column] for column in unit], _SHOWN)
            beside = f" beside the {len(choices.always)} of always" if choices.always else ""
            raise InputError(
                f"max_features is {choices.max_features}, but {listed} predict together or "
                f"not at all: {len(unit)} columns{beside}, which could never predict. Raise "
                f"max_features to {len(unit) + len(choices.always)} or more, split the group with "
                "feature_groups, or name its columns in never."
            )


def _dependent(moments: Moments, columns: Positions) -> list[Dependency]:
    """Find which of the columns are constant or collinear among the selected rows."""
    return dependencies(moments.subset(columns, imr=False, outcome=False))


def check_window(rho_range: Any) -> tuple[float, float] | None:
    """Check a window of rho."""
    if rho_range is None:
        return None
    try:
        low, high = (float(end) for end in rho_range)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{option('rho_range')} must be two numbers (low, high) or None; got {rho_range!r}"
        ) from error
    if not (low > -1.0 and high < 1.0):
        raise InputError(
            f"{option('rho_range')} must lie inside (-1, 1), ends excluded; got ({low:g}, "
            f"{high:g}). To allow any valid correlation, write "
            f"{option('rho_range', (-0.999, 0.999))}."
        )
    if not low < high:
        raise InputError(
            f"{option('rho_range')} must be (low, high) with low < high; got ({low:g}, {high:g})"
        )
    return low, high

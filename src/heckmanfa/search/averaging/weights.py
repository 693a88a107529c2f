"""What an assignment of an average holds, and what it weighs.

Its columns are those of the regression that `heckmanfa.search.form.Form` describes: what every
assignment holds first, then the units, then the outcome.

An assignment with J columns in u of the U units has p = J + 1 coefficients, the intercept among
them, and one more each if it holds the correction and the index. If both equations are searched, J
and U are those of both, p counts all parameters of the likelihood, and m is the number of all rows.
With r outcome equations, a column has r coefficients, and so has the index; all parameters of the
correction count.
Its criterion is what dropping the others costs, plus a penalty:

- aic: 2 p m / (m - p - 1), the small-sample form
- bic: p log m
- ebic: p log m + 2 log C(U, u)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.model.linalg import DEPENDENT, column_norms
from heckmanfa.search.choices import Choices, check_window, join_equations
from heckmanfa.search.form import Form

WeightCriterion = Literal["aic", "bic", "ebic"]
WEIGHT_CRITERIA: tuple[WeightCriterion, ...] = get_args(WeightCriterion)
Weighting = Literal["aic", "bic", "ebic", "mean"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
Correction = Literal["optional", "always", "never"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)

# An assignment with more columns than this share of the rows weighs nothing.
MOST_COLUMNS = 1.0 / 3.0

ALL_FEATURES_SHARE = 0.5
"""What the assignment that holds everything gets of the weight of an interval.

With one half, a tail of 2.5% holds at most 5% of the model of all features, so the interval
contains that model's interval of 90%, whatever the weights say.
"""
LEAST_DROPPED = 2
"""The index is offered where at least so many of its columns are dropped: with fewer, it says
nothing that these do not say."""


@dataclass(frozen=True, eq=False)
class Rule:
    """What an average weighs by, for one data set; build it with `Rule.of`."""

    weights: Weighting
    """the average's own weights"""
    rho_range: tuple[float, float] | None
    n_selected: float
    """m"""
    penalties: dict[WeightCriterion, Floats]
    """(k + 1, 1 + c + r, U + 1) each: by J, by how many parameters of the correction and the index
    are held, and by u; infinite for assignments with too many columns"""

    @classmethod
    def of(
        cls,
        m: float,
        choices: Choices,
        weights: str,
        rho_range: object = None,
        form: Form | None = None,
    ) -> Rule:
        """Check the kind of weights and the window; ``form`` is as in `penalties`."""
        if weights not in WEIGHTINGS:
            raise InputError(f"weights must be one of {', '.join(WEIGHTINGS)}; got {weights!r}")
        window = check_window(rho_range)
        return cls(weights, window, m, penalties(m, choices, form))

    @property
    def own(self) -> tuple[WeightCriterion, ...]:
        """The kinds whose weights are averaged to give the average's own."""
        return ("aic", "bic") if self.weights == "mean" else (self.weights,)

    def in_range(self, rho: Floats) -> Mask:
        """Whether rho lies in the window."""
        if self.rho_range is None:
            return np.ones(rho.shape, dtype=bool)
        low, high = self.rho_range
        return np.asarray((rho >= low) & (rho <= high))


def penalties(
    m: float, choices: Choices, form: Form | None = None
) -> dict[WeightCriterion, Floats]:
    """Return what each criterion adds to the cost of an assignment, as `Rule` has it.

    The ``form`` says how many parameters all assignments have, such as the intercept, and how many
    a column, the correction and the index are; by default each is one.
    """
    n_fixed, each, n_corrections = 1, 1, 1
    if form is not None:
        n_fixed, each, n_corrections = form.n_fixed, form.n_equations, form.n_corrections
    n_units = len(choices.units)
    columns = np.arange(len(choices.always) + int(choices.sizes.sum()) + 1)[:, None, None]
    extra = np.arange(1 + n_corrections + each)[None, :, None]
    units = np.arange(n_units + 1)[None, None, :]
    p = each * columns + extra + float(n_fixed)
    allowed = (columns >= len(choices.always) + units) & (columns <= choices.max_features)
    allowed = allowed & (columns <= MOST_COLUMNS * m) & (m - p > 1.0)
    small_sample = np.where(allowed, m - p - 1.0, 1.0)
    binomial = -np.log(n_units + 1.0) - special.betaln(n_units - units + 1.0, units + 1.0)
    tables: dict[WeightCriterion, Floats] = {
        "aic": 2.0 * p * m / small_sample + 0.0 * units,
        "bic": p * np.log(m) + 0.0 * units,
        "ebic": p * np.log(m) + 2.0 * binomial,
    }
    return {kind: np.where(allowed, table, np.inf) for kind, table in tables.items()}


def as_counts(sums: Floats) -> tuple[Any, ...]:
    """Split sums of `Columns.tally`, (..., 5): four numbers of units and columns, and a cost."""
    whole = sums[..., :4].astype(np.intp)
    return (*np.moveaxis(whole, -1, 0), sums[..., 4])


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns [fixed, units, R theta-hat] of a form, scaled to length one.

    Fixed are the features that are always in, and the correction if it is. The index, if it is
    offered, is the first unit; the correction, if it is optional, is the next; groups of features
    come before single ones.
    """

    form: Form
    choices: Choices
    """those of both equations as one, if both are searched: see `join_equations`"""
    equations: tuple[Choices, Choices | None]
    """those of the prediction equation, and of the selection equation if that is searched"""
    correction: Correction
    has_index: bool
    order: tuple[int, ...]
    """the unit of the choices that each unit here is, (U,); -1 the correction, -2 the index"""
    places: NDArray[np.intp]
    """(c,) which free parameter each column is; -2 the index, and -3 that of a second equation"""
    n_fixed: int
    matrix: Floats
    """(c + 1, c + 1) triangular factor of the c columns and R theta-hat"""
    norms: Floats
    """(c + 1,) lengths before scaling"""
    costs: Floats
    """(U,) what the likelihood ratio of the correction adds to the criterion of an assignment that
    holds a unit"""

    @classmethod
    def of(
        cls,
        form: Form,
        choices: Choices,
        correction: Correction = "optional",
        selecting: Choices | None = None,
    ) -> Columns:
        """Arrange the columns of the choices; ``selecting`` are those of the selection equation."""
        equations = choices, selecting
        choices = join_equations(*equations)
        units = choices.units
        corrections = [form.n_slopes + place for place in range(form.n_corrections)]
        indexes = [-2 - equation for equation in range(form.n_equations)]
        order = sorted(range(len(units)), key=lambda unit: (-len(units[unit]), unit))
        moved = {c for c, drives in zip(form.columns, form.drives, strict=True) if drives}
        in_index = [c for unit in units for c in unit if c in moved]
        has_index = len(in_index) >= LEAST_DROPPED
        fixed = [place for column in choices.always for place in form.free_of(column)]
        if correction == "always":
            fixed += corrections
        if correction == "optional":
            order.insert(0, -1)
        if has_index:
            order.insert(0, -2)
        special = {-1: corrections, -2: indexes}
        free = [
            at
            for unit in order
            for at in special.get(unit) or [at for c in units[unit] for at in form.free_of(c)]
        ]
        places = np.array([*fixed, *free], dtype=np.intp)
        ends = form.estimates[form.free]
        raw = np.column_stack(
            [
                form.root[:, i] if i >= 0 else form.root @ form.directions[-2 - i]
                for i in places.tolist()
            ]
            + [form.root @ ends]
        )
        norms = column_norms(raw)
        norms = np.where(norms > 0, norms, 1.0)
        square = np.zeros((len(norms), len(norms)))
        reduced: Floats = np.asarray(np.linalg.qr(raw / norms, mode="r"))
        square[: len(reduced)] = reduced
        return cls(
            form=form,
            choices=choices,
            equations=equations,
            correction=correction,
            has_index=has_index,
            order=tuple(order),
            places=places,
            n_fixed=len(fixed),
            matrix=square,
            norms=norms,
            costs=np.where(np.array(order) == -1, form.correction_excess, 0.0),
        )

    @cached_property
    def sizes(self) -> list[int]:
        """Number of columns of each unit, (U,)."""
        special = {-1: self.form.n_corrections, -2: self.form.n_equations}
        return [
            special[unit]
            if unit < 0
            else sum(len(self.form.free_of(c)) for c in self.choices.units[unit])
            for unit in self.order
        ]

    @cached_property
    def n_columns(self) -> NDArray[np.intp]:
        """(U,) columns of features in each unit: none in the correction and the index."""
        return np.array([0 if unit < 0 else len(self.choices.units[unit]) for unit in self.order])

    @cached_property
    def n_in_index(self) -> NDArray[np.intp]:
        """(U,) columns of each unit that the index has too."""
        form = self.form
        moved = {c for c, drives in zip(form.columns, form.drives, strict=True) if drives}
        units = self.choices.units
        return np.array([0 if unit < 0 else len(moved & {*units[unit]}) for unit in self.order])

    @cached_property
    def is_feature(self) -> Mask:
        """(U,) whether a unit is a feature or a group."""
        return np.array(self.order) >= 0

    @property
    def least(self) -> Floats:
        """(c,) a residual this short or shorter makes a column collinear."""
        return np.full(len(self.places), DEPENDENT)

    @property
    def scale(self) -> Floats:
        """(c,) what undoes the scaling of coefficients."""
        return np.asarray(self.norms[-1] / self.norms[:-1])

    @property
    def indexes(self) -> slice:
        """Which columns are the indexes: those of the first unit, if it is the index."""
        return slice(self.n_fixed, self.n_fixed + self.form.n_equations * self.has_index)

    @cached_property
    def index_effects(self) -> Floats:
        """(r, c) what each index adds to the scaled effects of columns, per scaled coefficient."""
        effects = np.zeros((self.form.n_equations, len(self.places)))
        if self.has_index:
            own = self.places >= 0
            effects[:, own] = self.form.directions[:, self.places[own]] / self.scale[own]
            effects *= self.scale[self.indexes][:, None]
        return effects

    @cached_property
    def last_estimates(self) -> tuple[Floats, Floats]:
        """The last estimates if nothing is held, (e,), and their slopes, (e, c), in the effects."""
        form = self.form
        follow = form.moves[form.correction :]
        slopes = np.zeros((len(follow), len(self.places)))
        own = self.places >= 0
        slopes[:, own] = follow[:, self.places[own]] * self.scale[own]
        return form.estimates[form.correction :] - follow @ form.estimates[form.free], slopes

    @cached_property
    def partners(self) -> NDArray[np.intp] | None:
        """(c,) the column of the same feature in the other outcome equation, or the column itself.

        None if there is one outcome equation.
        """
        form, k = self.form, len(self.form.columns)
        if form.n_equations == 1:
            return None
        at = {int(place): i for i, place in enumerate(self.places)}
        others = [(p + k) % (2 * k) if 0 <= p < 2 * k else p for p in self.places.tolist()]
        return np.array([at[place] for place in others], dtype=np.intp)

    def signs(self, effects: Floats) -> tuple[Mask, Mask]:
        """Return whether effects, (c, ...), are above zero, and below: in both of two equations."""
        above, below = effects > 0.0, effects < 0.0
        if self.partners is not None:
            above, below = above & above[self.partners], below & below[self.partners]
        return above, below

    def counts(self, bits: Any, first: int) -> tuple[Any, ...]:
        """Count what some units hold, those from ``first`` on, by masks over them, (..., units).

        They are columns of features, parameters of the correction and the index, units of features,
        columns that the index has too, and what their `costs` add.
        """
        return as_counts(bits @ self.tally[first : first + bits.shape[-1]])

    @cached_property
    def tally(self) -> Floats:
        """(U, 5) what `counts` sums over the units."""
        feature = self.is_feature.astype(int)
        special = (1 - feature) * np.array(self.sizes, dtype=np.intp)
        parts = self.n_columns, special, feature, self.n_in_index, self.costs
        return np.column_stack(parts).astype(np.float64)

    def penalty(self, table: Floats, counts: Sequence[Any], holds_index: Any) -> Floats:
        """Look penalties up for the `counts` of all units, and whether the index is held.

        A table of chains, with a fourth axis in front, has a row for each of the last axis.
        """
        n_columns, extra, n_units, in_index, cost = counts
        key = (
            n_columns + len(self.choices.always),
            extra + (self.correction == "always") * self.form.n_corrections,
            n_units,
        )
        penalty = table[key] if table.ndim == 3 else table[np.arange(len(table)), *key]
        few = self.n_in_index.sum() - in_index < LEAST_DROPPED
        return np.where(few & holds_index, np.inf, penalty + cost)

    def place_of(self, free: int) -> int | None:
        """Which column a free parameter, or the index, is here; None if it is not."""
        at = np.flatnonzero(self.places == free)
        return int(at[0]) if len(at) else None

    def states(self, inside: Mask) -> Mask:
        """Convert masks over the units here, (B, U), to states, (B, K + 2) or (B, 2 K + 2).

        A state says which columns of X are held on their own, in the selection equation as well if
        that is searched, then whether the correction and the index are.
        """
        k = self.choices.n_features
        states = np.zeros((len(inside), k + 2), dtype=bool)
        features = [unit for unit in self.order if unit >= 0]
        units = np.empty((len(inside), len(features)), dtype=bool)
        units[:, features] = inside[:, self.is_feature]
        states[:, :k] = self.choices.masks(units)
        states[:, k] = self.correction == "always"
        for place, unit in enumerate(self.order):
            if unit < 0:
                states[:, k - 1 - unit] = inside[:, place]
        return states

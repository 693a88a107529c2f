"""What a search optimises: a `Goal` says which assignment is better, by a criterion.

Every criterion is compared on one scale, where smaller is better: loss = log SSE + penalty.
Adjusted R^2 is 1 - (m - 1) / TSS exp(loss) with penalty -log(m - J - 1); AIC and BIC are
m loss, up to a constant, with the penalties 2 (J + 2) / m and (J + 2) log(m) / m. EBIC adds
2 log C(U, u) to BIC: there are C(U, u) ways to choose u of U features or groups. So it favours
few or nearly all of them.

The corrected BIC has no SSE: it is Q + J log m, with Q the quadratic form of a `Form`, what it
costs to drop the features outside S from the model of all features. Its loss is that over m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, NoFeasibleAssignmentError
from heckmanfa.model.moments import Moments, Solutions
from heckmanfa.search.choices import Choices, all_features, check_window
from heckmanfa.search.form import Form
from heckmanfa.text.option_types import Criterion as Criterion
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import shown

CRITERIA: tuple[Criterion, ...] = get_args(Criterion)

NEARLY: dict[Criterion, float] = {
    "adjusted_r2": 0.001,
    "bic": 2.0,
    "aic": 2.0,
    "ebic": 2.0,
    "corrected_bic": 2.0,
}
"""An assignment this much worse than the best is nearly as good."""

# Assignments whose SSE differ by less than this share are tied: rounding must not choose.
TIE = 1e-10
# A squared error below this share of the total is a perfect fit.
_PERFECT = 1e-24
# A batch is solved to ten digits; assignments closer than this are solved again by QR.
_OPEN = 1e-8
_MOST_REFINED = 1000

KEPT = 10_000
"""The most assignments that a `Search` keeps."""


@dataclass(frozen=True)
class Goal:
    """What a search optimises, for one data set; build it with `Goal.of`."""

    criterion: Criterion
    rho_range: tuple[float, float] | None
    """window that must contain rho-hat, or None"""
    n_selected: float
    """m"""
    total_squares: float
    """the outcome's sum of squares about its mean, over the selected rows"""
    units: tuple[tuple[int, ...], ...] | None = None
    """the U features or groups of columns that may be in or out, which EBIC counts; None if not
    known"""
    form: Form | None = None
    """what it costs to drop features, for the corrected BIC"""

    @classmethod
    def of(
        cls,
        moments: Moments,
        criterion: str,
        rho_range: Any = None,
        form: Form | None = None,
    ) -> Goal:
        """Check a criterion and a window, for the data behind the moments.

        Every compressed feature is a unit; `among` sets those of a search. The corrected BIC needs
        the ``form`` that `form_of_all` returns.
        """
        if criterion not in CRITERIA:
            raise InputError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}")
        if (criterion == "corrected_bic") != (form is not None):
            raise InputError("criterion 'corrected_bic' needs a form, which no other uses")
        window = check_window(rho_range)
        units = all_features(moments).units
        return cls(criterion, window, moments.n_selected, moments.total_squares, units, form)

    @classmethod
    def of_form(cls, form: Form, choices: Choices, criterion: Criterion) -> Goal:
        """Return the goal of a likelihood's quadratic approximation."""
        total = form.as_moments().total_squares
        return cls(criterion, None, form.n_selected, total, choices.units, form)

    def searched(self, moments: Moments) -> Moments:
        """Return what a search of regressions works on: the rows, or the quadratic form."""
        return moments if self.form is None else self.form.as_moments()

    def among(self, choices: Choices) -> Goal:
        """Return the same goal for the units of a search."""
        return replace(self, units=choices.units)

    def penalty(self, n_features: Any) -> Floats:
        """Return the penalty that a loss adds for J columns."""
        j = np.asarray(n_features, dtype=np.float64)
        m = self.n_selected
        if self.criterion == "adjusted_r2":
            penalty = -np.log(np.maximum(m - j - 1.0, np.finfo(float).tiny))
        else:
            each = 2.0 if self.criterion == "aic" else np.log(m)
            penalty = (j if self.form is not None else j + 2.0) * each / m
        return np.where(m > j + 2, penalty, np.inf)

    def unit_penalty(self, n_units: Any) -> Floats:
        """Return the penalty that a loss adds for u units: EBIC's, or zero."""
        if self.criterion != "ebic":
            return np.zeros(np.shape(n_units))
        return self.log_ways(n_units) * 2.0 / self.n_selected

    def log_ways(self, n_units: Any) -> Floats:
        """Return log C(U, u), the logarithm of the number of ways to choose u units."""
        assert self.units is not None
        total, chosen = float(len(self.units)), np.asarray(n_units, dtype=np.float64)
        ways = gammaln(total + 1.0) - gammaln(chosen + 1.0) - gammaln(total - chosen + 1.0)
        return np.asarray(ways, dtype=np.float64)

    def count_units(self, masks: Mask) -> NDArray[np.int64]:
        """Count the units in assignments, (..., K): those that are in by choice."""
        assert self.units is not None
        return np.asarray(masks[..., [unit[0] for unit in self.units]].sum(axis=-1))

    def loss(self, sse: Any, n_features: Any, n_units: Any = 0) -> Floats:
        """Return losses on the common scale; smaller is better, and NaN becomes infinite."""
        loss = self.misfit(sse) + self.penalty(n_features) + self.unit_penalty(n_units)
        return np.where(np.isnan(loss), np.inf, loss)

    def losses(self, solutions: Solutions, masks: Mask) -> Floats:
        """Return the losses of solved assignments, (B, K)."""
        units = self.count_units(masks) if self.criterion == "ebic" else 0
        sse = solutions.sse if self.form is None else self.form.dropped(masks)
        return self.loss(sse, solutions.n_features, units)

    def misfit(self, sse: Any) -> Floats:
        """Return a loss without its penalties: log SSE, or Q / m if Q is given in its place."""
        if self.form is not None:
            return np.asarray(sse) / self.n_selected
        # Floored, so all perfect fits are tied.
        least = max(_PERFECT * self.total_squares, np.finfo(float).tiny)
        return np.asarray(np.log(np.maximum(sse, least)))

    def value(self, loss: Any) -> Floats:
        """Convert a loss to the criterion."""
        m = self.n_selected
        if self.criterion == "adjusted_r2":
            return np.asarray(1.0 - np.exp(loss) * (m - 1.0) / self.total_squares)
        return np.asarray(m * (loss if self.form is not None else loss - np.log(m)))

    def within(self, loss: float, tolerance: float) -> float:
        """Return the loss of an assignment worse by ``tolerance`` in the criterion."""
        if not np.isfinite(loss):
            return loss
        m = self.n_selected
        if self.criterion == "adjusted_r2":
            return float(np.log(np.exp(loss) + tolerance * self.total_squares / (m - 1.0)))
        return loss + tolerance / m

    def in_range(self, rho: Any) -> Mask:
        """Whether rho-hat exists and lies in the window, ends included."""
        rho = np.asarray(rho)
        if self.rho_range is None:
            return np.asarray(np.isfinite(rho))
        low, high = self.rho_range
        return np.asarray((rho >= low) & (rho <= high))

    def distance(self, rho: Any) -> Floats:
        """Distance of rho-hat from the window: zero inside, infinite if rho-hat is NaN."""
        rho = np.asarray(rho, dtype=np.float64)
        if self.rho_range is None:
            return np.where(np.isfinite(rho), 0.0, np.inf)
        low, high = self.rho_range
        away = np.maximum(np.maximum(low - rho, rho - high), 0.0)
        return np.where(np.isnan(away), np.inf, away)

    def sample_of(self, rho: Floats, stride: int) -> Any:
        """Indices of every stride-th rho, of the nearest to the window, and of the extremes."""
        nearest = np.argsort(self.distance(rho), kind="stable")[:3]
        finite = np.flatnonzero(np.isfinite(rho))
        ends = finite[np.argsort(rho[finite], kind="stable")[[0, -1] if len(finite) else []]]
        return np.unique(np.concatenate([np.arange(0, len(rho), stride), nearest, ends]))

    def order(self, solutions: Solutions, masks: Mask) -> Any:
        """Sort assignments: those in the window first, best first, ties by `first_of_ties`."""
        loss = np.where(solutions.feasible, self.losses(solutions, masks), np.inf)
        inside = self.in_range(solutions.rho)
        ranked = first_of_ties(loss, masks)
        return ranked[np.argsort(~inside[ranked], kind="stable")]


def first_of_ties(loss: Floats, masks: Mask) -> Any:
    """Sort assignments by loss; ties by fewer features, then by column order.

    Of two tied assignments of the same size, the one with the first column in which they differ
    comes first.
    """
    if len(loss) == 0:
        return np.zeros(0, dtype=np.intp)
    by_loss = np.argsort(loss, kind="stable")
    ordered = loss[by_loss]
    with np.errstate(invalid="ignore"):
        apart = np.diff(ordered) > TIE
    step = np.cumsum(np.append(0, apart))
    tied = np.empty(len(loss), dtype=np.intp)
    tied[by_loss] = step
    columns = np.packbits(~masks, axis=1)
    return np.lexsort((*columns.T[::-1], masks.sum(axis=1), tied))


def distinct(masks: Mask) -> Mask:
    """Drop repeated rows."""
    packed = np.unique(np.packbits(masks, axis=1), axis=0)
    return np.unpackbits(packed, axis=1, count=masks.shape[1]).astype(bool)


def refined(moments: Moments, goal: Goal, masks: Mask, solved: Solutions) -> Solutions:
    """Solve by QR what a batch leaves open: which assignments lead, and which are in the window."""
    if not moments.gram_is_safe:
        return solved
    loss = goal.losses(solved, masks)
    inside = goal.in_range(solved.rho)
    open_ = np.zeros(len(masks), dtype=bool)
    if goal.rho_range is not None:
        ends = np.array(goal.rho_range)
        open_ = (np.abs(solved.rho[:, None] - ends) < _OPEN).any(axis=1)
    if (inside | open_).any():
        open_ |= inside & (loss <= loss[inside | open_].min() + _OPEN)
    rows = np.flatnonzero(open_)[:_MOST_REFINED]
    exact = moments.solve(masks[rows], exact=True)
    parts = {}
    for field in fields(solved):
        parts[field.name] = np.array(getattr(solved, field.name))
        parts[field.name][rows] = getattr(exact, field.name)
    return Solutions(**parts)


def no_feasible(
    goal: Goal, n_evaluated: int, rho: Floats, masks: Mask, names: Sequence[str], extra: str = ""
) -> NoFeasibleAssignmentError:
    """Explain that no assignment is feasible, and which rho were found instead.

    ``rho``, (B,), are the estimates, or an even sample that includes the nearest to the window, and
    ``masks`` their assignments. ``extra`` is appended to the message.
    """
    seen = np.isfinite(rho)
    if goal.rho_range is None or not seen.any():
        return NoFeasibleAssignmentError(
            f"none of the {n_evaluated} assignments evaluated can be solved: their features are "
            "constant or collinear among the selected rows, or too many for these rows." + extra
        )
    low, high = goal.rho_range
    quantiles = np.quantile(rho[seen], [0.0, 0.25, 0.5, 0.75, 1.0])
    away = goal.distance(rho)
    nearest = np.argsort(away, kind="stable")[:3]
    listed = "; ".join(
        f"{rho[row]:.4g} with "
        + (", ".join(shown(names[int(k)]) for k in np.flatnonzero(masks[row])) or "no feature")
        for row in nearest
    )
    return NoFeasibleAssignmentError(
        f"none of the {n_evaluated} assignments evaluated has rho in [{low:g}, {high:g}]. "
        f"Their rho runs from {quantiles[0]:.4g} to {quantiles[4]:.4g}, with quartiles "
        f"{quantiles[1]:.4g}, {quantiles[2]:.4g} and {quantiles[3]:.4g}; the nearest: "
        f"{listed}. Widen {option('rho_range')} or leave it out." + extra
    )

"""Which of two assignments is better: criterion, window of rho, and how ties are broken.

Every criterion is compared on one scale, where smaller is better: loss = log SSE + penalty(J).
Adjusted R^2 is 1 - (m - 1) / TSS exp(loss) with penalty -log(m - J - 1); AIC and BIC are
m loss, up to a constant, with the penalties 2 (J + 2) / m and (J + 2) log(m) / m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.model.moments import Moments, Solutions

Criterion = Literal["adjusted_r2", "bic", "aic"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)

NEARLY: dict[Criterion, float] = {"adjusted_r2": 0.001, "bic": 2.0, "aic": 2.0}
"""An assignment this much worse than the best is nearly as good."""

# Assignments whose SSE differ by less than this share are tied: rounding must not choose.
TIE = 1e-10
# A squared error below this share of the total is a perfect fit.
_PERFECT = 1e-24


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

    @classmethod
    def of(cls, moments: Moments, criterion: str, rho_range: Any = None) -> Goal:
        """Check a criterion and a window, for the data behind the moments."""
        if criterion not in CRITERIA:
            raise InputError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}")
        window = check_window(rho_range)
        return cls(criterion, window, moments.n_selected, moments.total_squares)

    def penalty(self, n_features: Any) -> Floats:
        """Return the penalty that a loss adds to log SSE for J features."""
        j = np.asarray(n_features, dtype=np.float64)
        m = self.n_selected
        if self.criterion == "adjusted_r2":
            penalty = -np.log(np.maximum(m - j - 1.0, np.finfo(float).tiny))
        elif self.criterion == "bic":
            penalty = (j + 2.0) * np.log(m) / m
        else:
            penalty = (j + 2.0) * 2.0 / m
        return np.where(m > j + 2, penalty, np.inf)

    def loss(self, sse: Any, n_features: Any) -> Floats:
        """Return losses on the common scale; smaller is better, and NaN becomes infinite."""
        loss = self.log_fit(sse) + self.penalty(n_features)
        return np.where(np.isnan(loss), np.inf, loss)

    def log_fit(self, sse: Any) -> Floats:
        """Return log SSE, floored so that all perfect fits are tied."""
        least = max(_PERFECT * self.total_squares, np.finfo(float).tiny)
        return np.asarray(np.log(np.maximum(sse, least)))

    def value(self, loss: Any) -> Floats:
        """Convert a loss to the criterion."""
        m = self.n_selected
        if self.criterion == "adjusted_r2":
            return np.asarray(1.0 - np.exp(loss) * (m - 1.0) / self.total_squares)
        return np.asarray(m * (loss - np.log(m)))

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

    def order(self, solutions: Solutions, masks: Mask) -> Any:
        """Sort assignments: those in the window first, best first, ties by `first_of_ties`."""
        loss = np.where(solutions.feasible, self.loss(solutions.sse, solutions.n_features), np.inf)
        inside = self.in_range(solutions.rho)
        ranked = first_of_ties(loss, masks)
        return ranked[np.argsort(~inside[ranked], kind="stable")]


def check_window(rho_range: Any) -> tuple[float, float] | None:
    """Check a window of rho."""
    if rho_range is None:
        return None
    try:
        low, high = (float(end) for end in rho_range)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"rho_range must be two numbers (low, high) or None; got {rho_range!r}"
        ) from error
    if not (low > -1.0 and high < 1.0):
        raise InputError(
            f"rho_range must lie inside (-1, 1), ends excluded; got ({low:g}, {high:g}). To allow "
            "any valid correlation, write (-0.999, 0.999)."
        )
    if not low < high:
        raise InputError(f"rho_range must be (low, high) with low < high; got ({low:g}, {high:g})")
    return low, high


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

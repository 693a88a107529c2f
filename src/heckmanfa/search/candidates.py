"""The result of every search: the assignments that it evaluated, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import NoFeasibleAssignmentError
from heckmanfa.model.moments import Moments, Solutions
from heckmanfa.search.criteria import Goal
from heckmanfa.text.printable import shown

if TYPE_CHECKING:
    import pandas as pd

# A batch is solved to ten digits; assignments closer than this are solved again by QR.
_OPEN = 1e-8
_MOST_REFINED = 1000

KEPT = 10_000
"""The most assignments that a `Search` keeps."""


@dataclass(frozen=True)
class Search:
    """The best N of the distinct assignments that a search evaluated.

    Assignments in the window of rho come first, and each part is sorted best first.
    """

    goal: Goal
    packed: NDArray[np.uint8]
    """(N, ceil(K / 8)) masks over the columns of X, eight to a byte"""
    n_columns: int
    """K"""
    n_features: NDArray[np.int64]
    """(N,)"""
    rho: Floats
    """(N,), NaN if an assignment cannot be solved; so are the criteria"""
    adjusted_r2: Floats
    aic: Floats
    bic: Floats
    in_range: Mask
    """(N,)"""
    n_assignments: int
    """distinct assignments evaluated"""
    n_in_range: int
    """those with rho-hat in the window"""
    optimal: bool | None = None
    """whether the first is proven to be the best of all assignments; None if not claimed"""
    gap: float | None = None
    """by how much another assignment's criterion could be better"""
    tolerance: float | None = None
    """the search finds every assignment at most this much worse than the best; None if it only
    evaluates draws or ranks"""
    n_nodes: int | None = None
    """nodes visited in the search tree"""
    early_stop: str = ""
    """a sentence that says why the search stopped early; empty if it finished"""
    interrupted: bool = False
    """whether the user interrupted it"""

    @property
    def masks(self) -> Mask:
        """(N, K) masks over the columns of X."""
        return np.unpackbits(self.packed, axis=1, count=self.n_columns).astype(bool)

    @property
    def values(self) -> Floats:
        """The criterion, (N,)."""
        return np.asarray(getattr(self, self.goal.criterion))

    @property
    def found(self) -> bool:
        """Whether an assignment is in the window."""
        return bool(len(self.in_range)) and bool(self.in_range[0])

    @property
    def best(self) -> Mask:
        """Mask of the chosen assignment, (K,)."""
        return np.asarray(self.masks[0])

    def nearly_best(self, tolerance: float) -> int:
        """Count the kept assignments in the window that are within a tolerance of the best."""
        better = 1.0 if self.goal.criterion == "adjusted_r2" else -1.0
        values = better * self.values[self.in_range]
        return int(np.count_nonzero(values >= values[0] - tolerance))

    def to_frame(self, names: Sequence[Any]) -> pd.DataFrame:
        """Return one row per kept assignment."""
        import pandas as pd

        masks = self.masks
        return pd.DataFrame(
            {
                "features": [
                    tuple(names[int(column)] for column in np.flatnonzero(mask)) for mask in masks
                ],
                "n_features": self.n_features,
                "rho": self.rho,
                "adjusted_r2": self.adjusted_r2,
                "aic": self.aic,
                "bic": self.bic,
                "in_range": self.in_range,
            }
        )


def distinct(masks: Mask) -> Mask:
    """Drop repeated rows."""
    packed = np.unique(np.packbits(masks, axis=1), axis=0)
    return np.unpackbits(packed, axis=1, count=masks.shape[1]).astype(bool)


def evaluate(
    moments: Moments,
    goal: Goal,
    masks: Mask,
    *,
    names: Sequence[str],
    counts: tuple[int, int] | None = None,
    **details: Any,
) -> Search:
    """Solve distinct assignments, (B, K), and sort them; none in the window is an error.

    ``counts`` are the numbers of assignments evaluated and in the window, if ``masks`` are not all
    of them; ``details`` are other fields of `Search`.
    """
    solved = _refined(moments, goal, masks, moments.solve(masks))
    order = goal.order(solved, masks)
    inside = goal.in_range(solved.rho)
    if counts is None:
        counts = len(masks), int(np.count_nonzero(inside))
    if not inside.any():
        raise no_feasible(goal, counts[0], np.asarray(solved.rho), masks, names)
    order = order[:KEPT]
    return Search(
        goal=goal,
        packed=np.packbits(masks[order], axis=1),
        n_columns=masks.shape[1],
        n_features=np.asarray(solved.n_features)[order],
        rho=solved.rho[order],
        adjusted_r2=solved.adjusted_r2[order],
        aic=solved.aic[order],
        bic=solved.bic[order],
        in_range=inside[order],
        n_assignments=counts[0],
        n_in_range=counts[1],
        **details,
    )


def _refined(moments: Moments, goal: Goal, masks: Mask, solved: Solutions) -> Solutions:
    """Solve by QR what a batch leaves open: which assignments lead, and which are in the window."""
    if not moments.gram_is_safe:
        return solved
    loss = goal.loss(solved.sse, solved.n_features)
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
        f"{rho[row]:.4g} with {', '.join(shown(names[int(k)]) for k in np.flatnonzero(masks[row]))}"
        for row in nearest
    )
    return NoFeasibleAssignmentError(
        f"none of the {n_evaluated} assignments evaluated has rho in [{low:g}, {high:g}]. "
        f"Their rho runs from {quantiles[0]:.4g} to {quantiles[4]:.4g}, with quartiles "
        f"{quantiles[1]:.4g}, {quantiles[2]:.4g} and {quantiles[3]:.4g}; the nearest: {listed}. "
        "Widen rho_range or leave it out." + extra
    )

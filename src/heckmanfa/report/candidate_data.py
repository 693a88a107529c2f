"""The candidates of a search, for pictures of them.

The table of candidates goes into the page once, best first: a bit for each feature, the criterion
and rho. Names, ranks and subsets are worked out by the script.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.report.picture import bits, floats, plot_text

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.data.arrays import Floats
    from heckmanfa.data.rows import Mask

__all__ = ["Candidates", "read_candidates"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The assignments that a search kept, best first by its criterion, whatever their rho."""

    criterion: str
    window: tuple[float, float] | None
    masks: Mask
    """(N, K)"""
    value: Floats
    """(N,) the criterion"""
    rho: Floats
    inside: Mask
    """(N,) whether rho is in the window"""
    coef: Floats
    """(N, K) two-step coefficients, NaN where a feature is not held"""
    chosen: int | None
    """place of the assignment of the model; None where it is not among them"""
    n_looked: int
    """assignments that the search looked at"""
    tolerance: float | None
    """how much worse than the best they are at most, where the search kept only such"""
    names: tuple[str, ...]
    """(K,) of the columns of X"""
    labels: tuple[str, ...]
    """(K,) the column of the table behind each"""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.masks)

    @property
    def dot(self) -> int:
        """Size of a point, in pixels."""
        return 9 if len(self) <= 60 else 6 if len(self) <= 1000 else 4

    def payload(self) -> dict[str, Any]:
        """Return what the script reads."""
        held = np.flatnonzero(self.masks.any(axis=0))
        return {
            "n": len(self),
            "labels": [plot_text(self.labels[int(one)]) for one in held],
            "masks": bits(self.masks[:, held]),
            "inside": bits(self.inside),
            "chosen": self.chosen,
            "value": floats(self.value)["$f"],
            "rho": floats(self.rho)["$f"],
        }

    def place(self, column: int) -> int:
        """Place of a column among those that any candidate holds."""
        return int(np.count_nonzero(self.masks[:, :column].any(axis=0)))


def read_candidates(analysis: Analysis) -> Candidates | None:
    """Return the candidates of a search; None where nothing was searched.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    Candidates or None
    """
    model: Any = analysis.model
    if model.fit_.search is None or model.fit_.search.result is None:
        return None
    search = model.fit_.search.result
    sign = -1.0 if search.goal.criterion == "adjusted_r2" else 1.0
    order = np.argsort(sign * search.values, kind="stable")
    masks = search.masks[order]
    coef = np.where(masks, model.fit_.moments.solve(masks).coef, np.nan)
    same = np.flatnonzero((masks == np.asarray(model.support_)).all(axis=1))
    return Candidates(
        criterion=search.goal.criterion,
        window=search.goal.rho_range,
        masks=masks,
        value=search.values[order],
        rho=search.rho[order],
        inside=search.in_range[order],
        coef=coef,
        chosen=int(same[0]) if len(same) else None,
        n_looked=search.n_assignments,
        tolerance=search.tolerance,
        names=tuple(model.fit_.labels),
        labels=tuple(analysis._sources([name])[0] for name in model.fit_.labels),
    )

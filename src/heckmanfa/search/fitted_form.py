"""The model of all candidates as its family fits it, for a search that refits the best by its form.

A family whose assignments share no pass over the rows fits each on its own. One without a
likelihood has no refits: its assignments are ranked by the form alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, Rows
from heckmanfa.model.refit_together import Refit
from heckmanfa.search.form import Form

RefitOf = Callable[[tuple[int, ...]], tuple[float, Floats, float] | None]
"""(columns): the log-likelihood of a set of features, its coefficients (K,) and rho; None if it has
no maximum"""


@dataclass(frozen=True, eq=False)
class FittedForm:
    """The estimates of all candidates, and how other sets of them are fitted."""

    form: Form
    log_likelihood: float
    """NaN if there is none"""
    refit_of: RefitOf | None
    """None if there is no likelihood"""

    held_rho: ClassVar[None] = None
    offset: ClassVar[float] = 0.0
    n_fixed: ClassVar[int] = 0

    def refit(
        self, rows: Rows, masks: Mask, progress: Callable[[int], None] | None = None
    ) -> list[Refit]:
        """Maximise the likelihood of some assignments, (N, K), one after another."""
        refits = []
        for done, mask in enumerate(masks[:, : self.form.n_features]):
            refits.append(self._refit(mask))
            if progress is not None:
                progress(done + 1)
        return refits

    def _refit(self, mask: Mask) -> Refit:
        assert self.refit_of is not None
        found = self.refit_of(tuple(int(column) for column in np.flatnonzero(mask)))
        if found is None:
            return Refit(np.full(self.form.n_features + 1, np.nan), float("nan"), False)
        log_likelihood, coef, rho = found
        return Refit(np.append(coef, rho), log_likelihood, True)

    def coef(self, theta: Floats, n_features: int) -> Floats:
        """Return the coefficients of the columns of X, (K,), of a refit."""
        return theta[:n_features]

    def rho_of(self, theta: Floats) -> float:
        """Return the rho of a refit; NaN if there is not one."""
        return float(theta[-1])

    def all_features(self, rows: Rows) -> None:
        """Return nothing beside the form."""

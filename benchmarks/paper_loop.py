"""Heckman-FA as the paper describes it: both equations are fitted again at every epoch and draw.

The probit and the least-squares fits are statsmodels'. What does not change (the matrix with its
intercept, which rows are selected) is computed once, outside the loop.
"""

from __future__ import annotations

import numpy as np
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

Floats = NDArray[np.float64]

# log pi stays below 0, where the logarithm of 1 - pi ends.
_HIGHEST = np.log1p(-1e-12)


class PaperLoop:
    """One training on one data set, an epoch or a draw at a time."""

    def __init__(self, X: Floats, y: Floats, *, init_prob: float, learning_rate: float) -> None:
        self._Z = sm.add_constant(X)
        self._seen = ~np.isnan(y)
        self._X, self._y = X[self._seen], y[self._seen]
        self._learning_rate = learning_rate
        self.log_pi = np.log(np.outer([1.0 - init_prob, init_prob], np.ones(X.shape[1])))

    def mills(self) -> tuple[Floats, Floats]:
        """Fit the probit; the index and the inverse Mills ratio of the selected rows."""
        coef = sm.Probit(self._seen.astype(float), self._Z).fit(disp=0).params
        index = (self._Z @ coef)[self._seen]
        return index, norm.pdf(index) / norm.cdf(index)

    def design(self, assigned: NDArray[np.bool_], ratio: Floats) -> Floats:
        return np.column_stack([np.ones(len(ratio)), self._X[:, assigned], ratio])

    def epoch(self, gumbel: Floats) -> None:
        """Draw, fit, and step against the gradient of the mean absolute error, in log space."""
        odds = np.subtract(*(self.log_pi + gumbel)[::-1])
        assigned = odds > 0
        _, ratio = self.mills()
        fitted = sm.OLS(self._y, self.design(assigned, ratio)).fit()
        gradient = np.zeros(len(odds))
        gradient[assigned] = -fitted.params[1:-1] * (
            np.sign(fitted.resid) @ self._X[:, assigned] / len(ratio)
        )
        soft = expit(odds)
        moved = self.log_pi[1] - self._learning_rate * gradient * soft * (1.0 - soft)
        self.log_pi[1] = np.minimum(moved, _HIGHEST)
        self.log_pi[0] = np.log1p(-np.exp(self.log_pi[1]))

    def draw(self, gumbel: Floats) -> tuple[NDArray[np.bool_], float, float]:
        """Draw and fit; the assignment, its rho-hat and its adjusted R^2."""
        assigned = np.subtract(*(self.log_pi + gumbel)[::-1]) > 0
        index, ratio = self.mills()
        fitted = sm.OLS(self._y, self.design(assigned, ratio)).fit()
        delta = ratio * (ratio + index)
        m = len(ratio)
        sigma = np.sqrt(fitted.ssr / m + fitted.params[-1] ** 2 * delta.mean())
        adjusted = 1.0 - (1.0 - fitted.rsquared) * (m - 1) / (m - assigned.sum() - 1)
        return assigned, float(fitted.params[-1] / sigma), float(adjusted)

"""The distribution that tests and intervals go by: normal, or t where rows come in clusters.

With G clusters, a cluster covariance is an average over G totals, however many rows there are. An
estimate over its standard error is then compared with t(G - 1), and q estimates together with
F(q, G - 1), in place of the normal and the chi-squared distribution. Everything that tests or
bounds an estimate asks here.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import stats

from heckmanfa.errors import InputError
from heckmanfa.fit import Fit

FEW_CLUSTERS = 40
"""with fewer, tests by a cluster covariance reject too often (Angrist and Pischke, 2009, 8.2)"""

LEVEL = 0.05
"""at which a test is said to have found something"""


@dataclass(frozen=True)
class Wald:
    """Result of a Wald test."""

    statistic: float
    """chi-squared; with ``df_denominator``, F"""
    df: int
    p_value: float
    df_denominator: int | None = None
    """the number of clusters less one, where the test is by a cluster covariance"""
    note: str = ""
    """why there is no result"""

    @property
    def chi2(self) -> float:
        """The statistic as a chi-squared one: an F times its degrees of freedom."""
        return self.statistic if self.df_denominator is None else self.statistic * self.df

    @property
    def lacks_clusters(self) -> bool:
        """Whether there is no result because the clusters are too few for so many coefficients."""
        return self.df_denominator is not None and self.df > self.df_denominator

    def __str__(self) -> str:
        """Say the result in a line."""
        if self.note:
            return f"not tested: {self.note}"
        law = f"chi2({self.df})" if self.df_denominator is None else self._f
        return f"{law} = {self.statistic:.4f}, p = {self.p_value:.4g}"

    @property
    def _f(self) -> str:
        return f"F({self.df}, {self.df_denominator})"


@dataclass(frozen=True)
class Reference:
    """What an estimate over its standard error is compared with."""

    n_clusters: int | None = None
    """None unless the covariance is clustered"""

    @property
    def df(self) -> int | None:
        """Degrees of freedom of the t distribution; None where it is the normal one."""
        return None if self.n_clusters is None else self.n_clusters - 1

    @property
    def letter(self) -> str:
        """What a statistic is called: z or t."""
        return "z" if self.df is None else "t"

    @property
    def name(self) -> str:
        """Name the distribution: normal, or t(9)."""
        return "normal" if self.df is None else f"t({self.df})"

    def notes(self, *, joint: bool = False) -> list[str]:
        """Say what tests and intervals go by, where that is not the normal distribution.

        Parameters
        ----------
        joint : bool
            Whether joint tests are there, too.

        Returns
        -------
        list of str
            One sentence or none.
        """
        if self.df is None:
            return []
        together = f", joint tests by F(q, {self.df})" if joint else ""
        return [
            f"With {self.n_clusters:,} clusters, tests and intervals are by {self.name}{together}. "
            f"Stata uses the normal {'and chi-squared distributions' if joint else 'distribution'} "
            "there."
        ]

    def quantile(self, conf_level: float) -> float:
        """Half the width of an interval of this probability, in standard errors."""
        check_level(conf_level)
        level = 0.5 + 0.5 * float(conf_level)
        return float(stats.norm.ppf(level) if self.df is None else stats.t.ppf(level, self.df))

    def p_value(self, statistic: Any) -> Any:
        """Two-sided p-values of estimates over their standard errors."""
        size = np.abs(statistic)
        return 2.0 * (stats.norm.sf(size) if self.df is None else stats.t.sf(size, self.df))

    def wald(self, estimate: Any, covariance: Any, why_not: str = "") -> Wald:
        """Test that a vector of estimates is zero.

        Parameters
        ----------
        estimate : (q,) array_like
        covariance : (q, q) array_like
        why_not : str
            Why these estimates cannot be tested, if they cannot.

        Returns
        -------
        Wald
            With NaN and a reason where there is one, or where the covariance has no inverse.
        """
        estimate = np.asarray(estimate, dtype=np.float64)
        q, nan = len(estimate), float("nan")
        if self.df is not None and q > self.df:
            return Wald(nan, q, nan, self.df, self._too_few(q))
        if why_not:
            return Wald(nan, q, nan, self.df, why_not)
        if not np.all(np.isfinite(covariance)):
            return Wald(nan, q, nan, self.df, "the covariance of the estimates is not known")
        if np.linalg.matrix_rank(covariance) < q:
            return Wald(nan, q, nan, self.df, "the covariance of the estimates is singular")
        statistic = float(estimate @ np.linalg.solve(covariance, estimate))
        if statistic < 0:
            why = "the covariance of the estimates is not positive definite"
            return Wald(nan, q, nan, self.df, why)
        if self.df is None:
            return Wald(statistic, q, float(stats.chi2.sf(statistic, q)))
        statistic /= q
        return Wald(statistic, q, float(stats.f.sf(statistic, q, self.df)), self.df)

    def _too_few(self, q: int) -> str:
        # The clusters' total scores sum to zero, so that one of them is a function of the others.
        return (
            f"the covariance from {self.n_clusters} clusters has rank {self.df} at most, too "
            f"little for a joint test of {q} coefficients"
        )


def check_level(conf_level: float) -> None:
    """Refuse a level of confidence that is none."""
    if not isinstance(conf_level, Real) or not 0 < conf_level < 1:
        raise InputError(f"conf_level must lie between 0 and 1; got {conf_level!r}")


def reference_of(fit: Fit) -> Reference:
    """Return what the estimates of a fitted model are compared with."""
    return Reference(fit.n_clusters if fit.spec.cov_type == "cluster" else None)


def n_parameters(fit: Fit) -> int:
    """Return how many parameters the covariance of a fitted model is of."""
    terms = fit.terms
    # After maximum likelihood, imr is rho times sigma and no parameter of its own.
    errors = [term for equation, term in terms if equation == "errors"]
    return len(terms) - int(len(errors) == 3)

"""The null distribution of tests and intervals: normal, or t with a cluster or survey covariance.

With G clusters, a cluster covariance is an average over G totals, however many rows there are. An
estimate over its standard error is then compared with t(G - 1), and q estimates together with
F(q, G - 1), in place of the normal and the chi-squared distribution. With two clusterings, G is the
smaller number. A survey has as many degrees of freedom as primary sampling units less strata.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import stats

from heckmanfa.data.arrays import Floats
from heckmanfa.data.survey_design import SurveyDesign
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.text.option_words import option
from heckmanfa.text.wording import number, p_equals

FEW_CLUSTERS = 40
"""with fewer, tests with a cluster covariance reject too often (Angrist and Pischke, 2009, 8.2)"""

LEVEL = 0.05
"""significance level of every test that is judged in words"""

FEW_UNITS = 20
"""with fewer degrees of freedom of a survey's design, its intervals are too narrow

In the study of docs/surveys.md, they hold with 24 and fall short with 8.
"""
LINEARIZED = (
    "Only the fitted model was estimated again with each of the replicate weights; other standard "
    "errors are linearized, by the strata and sampling units that are named, or else by rows."
)
"""what replicate weights are not used for"""
ALL_AGAIN = (
    "Least squares and the difference of means were estimated again with each of the replicate "
    "weights, as the model was."
)
"""what they are used for beside a model of a treatment"""


@dataclass(frozen=True)
class Wald:
    """Result of a Wald test."""

    statistic: float
    """chi-squared; with ``df_denominator``, F"""
    df: int
    p_value: float
    df_denominator: float | None = None
    """the number of clusters less one, with a cluster covariance"""
    note: str = ""
    """why there is no result"""
    lacks_clusters: bool = False
    """whether there are too few clusters to test so many coefficients together"""

    @property
    def chi2(self) -> float:
        """The statistic on the chi-squared scale: F times its degrees of freedom."""
        return self.statistic if self.df_denominator is None else self.statistic * self.df

    def __str__(self) -> str:
        """Return the result in one line."""
        if self.note:
            return f"not tested: {self.note}"
        name = f"chi2({self.df})"
        if self.df_denominator is not None:
            name = f"F({self.df}, {round(self.df_denominator, 1):.10g})"
        return f"{name} = {number(self.statistic)}, {p_equals(self.p_value)}"


@dataclass(frozen=True)
class NullDistribution:
    """The distribution that an estimate over its standard error is compared with."""

    n_clusters: int | None = None
    """None unless the covariance is clustered; the smaller number of two clusterings"""
    counts: tuple[int, ...] = ()
    """clusters of each clustering, if there are two"""
    design: SurveyDesign | None = None
    """of a survey"""
    effective: float | None = None
    """degrees of freedom where few of the units carry an estimate"""

    @property
    def rank(self) -> int | None:
        """Degrees of freedom that the units leave; None without clusters or a survey."""
        if self.design is not None:
            return self.design.df
        return None if self.n_clusters is None else self.n_clusters - 1

    @property
    def df(self) -> float | None:
        """Degrees of freedom of the t distribution; None if it is the normal one."""
        return self.rank if self.effective is None else self.effective

    @property
    def letter(self) -> str:
        """Name of the statistic: z or t."""
        return "z" if self.df is None else "t"

    @property
    def name(self) -> str:
        """Name of the distribution: normal, or t(9)."""
        return "normal" if self.df is None else f"t({self.df})"

    def notes(
        self, *, joint: bool = False, others: bool = False, in_stata: bool = True
    ) -> list[str]:
        """Name the distribution of tests and intervals in a sentence, unless it is the normal one.

        ``joint`` is whether joint tests are also reported, ``others`` whether standard errors are
        those of other models than the one that was fitted, and ``in_stata`` whether Stata has the
        same estimates.
        """
        if self.df is None:
            return []
        together = f", and joint tests F(q, {self.df})" if joint else ""
        words = f"With {self.units}, tests and intervals use {self.name}{together}."
        if self.design is not None:
            # As Stata and R do.
            return [f"{words} {LINEARIZED}" if others and self.design.n_replicates else words]
        # Its models are clustered by one column.
        if in_stata and not self.counts:
            kinds = "and chi-squared distributions" if joint else "distribution"
            words += f" Stata uses the normal {kinds} there."
        return [words]

    @property
    def units(self) -> str:
        """What the covariance is made of, in words."""
        if self.design is not None:
            return self.design.words
        return f"{clusters_text(self.n_clusters, self.counts)} clusters"

    def quantile(self, conf_level: float) -> float:
        """Return half the width of a confidence interval, in standard errors."""
        check_level(conf_level)
        level = 0.5 + 0.5 * float(conf_level)
        return float(stats.norm.ppf(level) if self.df is None else stats.t.ppf(level, self.df))

    def p_value(self, statistic: Any) -> Any:
        """Return two-sided p-values of estimates over their standard errors."""
        size = np.abs(statistic)
        return 2.0 * (stats.norm.sf(size) if self.df is None else stats.t.sf(size, self.df))

    def columns(
        self, estimate: Floats, std_error: Floats, conf_level: float, *, tests: bool = True
    ) -> dict[str, Any]:
        """Return estimates as the columns of a table, with confidence intervals and tests."""
        reach = self.quantile(conf_level) * std_error
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic = estimate / std_error
        tested = {"statistic": statistic, "p_value": self.p_value(statistic)} if tests else {}
        ends = {"ci_low": estimate - reach, "ci_high": estimate + reach}
        return {"estimate": estimate, "std_error": std_error, **tested, **ends}

    def wald(self, estimate: Any, covariance: Any, why_not: str = "") -> Wald:
        """Test that a vector of estimates, (q,), is zero.

        ``why_not`` says why these estimates cannot be tested, if they cannot. The result is then
        NaN, with that reason; likewise if the covariance, (q, q), has no inverse.
        """
        estimate = np.asarray(estimate, dtype=np.float64)
        q, nan = len(estimate), float("nan")
        if self.rank is not None and q > self.rank:
            # The clusters' total scores sum to zero, so one is a function of the others.
            too_few = (
                f"{self.units} are too few for a joint test of {q} coefficients"
                if self.counts
                else f"the covariance from {self.units} has rank {self.rank} at most, too "
                f"little for a joint test of {q} coefficients"
            )
            return Wald(nan, q, nan, self.df, too_few, lacks_clusters=True)
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
        p_value = float(self.joint_p_value(statistic, q))
        return Wald(statistic if self.df is None else statistic / q, q, p_value, self.df)

    def joint_p_value(self, statistic: Any, q: int) -> Any:
        """Return p-values of Wald statistics of q estimates, before they are divided by q."""
        if self.df is None:
            return stats.chi2.sf(statistic, q)
        return stats.f.sf(statistic / q, q, self.df)


def check_level(conf_level: float) -> None:
    """Raise an error unless this is a valid confidence level."""
    if not isinstance(conf_level, Real) or not 0 < conf_level < 1:
        raise InputError(f"{option('conf_level')} must lie between 0 and 1; got {conf_level!r}")


def tails(conf_level: float) -> Floats:
    """Return the probabilities of an equal-tailed interval's ends."""
    return np.array([0.5 - 0.5 * conf_level, 0.5 + 0.5 * conf_level])


def distribution_of(fit: Fit) -> NullDistribution:
    """Return the reference distribution of the estimates of a fitted model."""
    if fit.design is not None:
        return NullDistribution(design=fit.design)
    if fit.spec.cov_type != "cluster":
        return NullDistribution()
    return NullDistribution(fit.n_clusters, fit.cluster_counts)


def clusters_text(n_clusters: int | None, counts: tuple[int, ...] = ()) -> str:
    """Return the number of clusters as text, of two clusterings that of each."""
    return " and ".join(f"{n:,}" for n in counts or (n_clusters or 0,))


def n_parameters(fit: Fit) -> int:
    """Count the parameters in the covariance of a fitted model."""
    # After maximum likelihood, imr is rho times sigma, not a parameter of its own, and neither is a
    # rho that is held.
    errors = {term for equation, term in fit.terms if equation == "errors"}
    products = sum(f"rho{term[3:]}" in errors for term in errors if term.startswith("imr"))
    return len(fit.terms) - products - int(fit.held_rho is not None)

"""Estimates as tables, sensitivity analyses and tests of every selection model."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.exclusion_tests import ExclusionTest, exclusion_test
from heckmanfa.inference.specification import specification_tests
from heckmanfa.inference.specification_report import BinarySpecificationTests, SpecificationTests
from heckmanfa.inference.uncertainty import UncertaintyInterval, uncertainty_interval
from heckmanfa.inference.what_if import WhatIf, what_if
from heckmanfa.inference.wild_clusters import WildTest, wild_test
from heckmanfa.results import estimates, hypotheses
from heckmanfa.results.distribution import Wald
from heckmanfa.text.option_types import Method, WildWeights

if TYPE_CHECKING:
    import pandas as pd


class Inferred:
    """What may be claimed of a fitted selection model.

    Some methods take the rows of the fit: X, y, selected, sample_weight and groups are then as
    passed to `fit`. A linear outcome has compressed data that do in their place where X may be
    left out; an outcome of classes has none, and X is needed.
    """

    _fit: Fit

    @property
    def fit_(self) -> Fit:
        """All results of the fit, in one frozen object."""
        check_is_fitted(self)
        return self._fit

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` succeeded."""
        return hasattr(self, "_fit")

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Estimates, standard errors, tests and intervals as a data frame.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Columns equation ("prediction", "selection", "errors"), term, estimate, std_error,
            statistic, p_value, ci_low, ci_high. The coefficient of the inverse Mills ratio, if the
            model has one, is "imr" in "errors", with "rho" and "sigma". The statistic is z, or
            t(G - 1) with G clusters. The two-step rho and sigma have no standard error; those of
            maximum likelihood use the delta method, with intervals and the test of rho = 0 on the
            scale of atanh rho, and those of sigma on that of log sigma.
        """
        return estimates.tidy(self.fit_, conf_level)

    def vcov(self) -> pd.DataFrame:
        """Joint covariance of both equations, labelled (equation, term) as in `tidy`.

        With maximum likelihood of a linear outcome, the three error terms are functions of two
        parameters, so the matrix does not have full rank.
        """
        return estimates.vcov(self.fit_)

    def wald_test(self, hypothesis: str | ArrayLike, value: ArrayLike | None = None) -> Wald:
        """Wald test of linear restrictions on the coefficients.

        Parameters
        ----------
        hypothesis : str or array_like
            Such as ``"educ = exper"``, ``"educ = 0, exper = 0"`` or ``"selection.educ = educ"``:
            plain names refer to the prediction equation, those with "selection." to the selection
            equation, and "imr" to the inverse Mills ratio (of two classes, "rho" to the
            correlation). Or a list of these, or a matrix with one column for each row of `vcov`.
        value : array_like, optional
            Right-hand sides for a matrix; zero by default.

        Returns
        -------
        Wald
            With statistic, degrees of freedom and p-value: chi-squared, or F(q, G - 1) with G
            clusters, which allow at most G - 1 restrictions.
        """
        return hypotheses.wald_test(self.fit_, hypothesis, value)

    def wild_test(
        self,
        hypothesis: str | ArrayLike,
        X: Any,
        y: Any = None,
        selected: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        value: ArrayLike | None = None,
        weights: WildWeights = "rademacher",
        n_boot: int = 999,
        conf_level: float | None = None,
        random_state: Any = None,
    ) -> WildTest:
        """Test linear restrictions by the score (wild) cluster bootstrap, for few clusters.

        A cluster covariance from few clusters rejects true hypotheses too often. Here the scores
        of each cluster, at the estimates under the hypothesis, are multiplied by random weights
        (Kline and Santos, 2012). Only the estimates under the hypothesis are computed.

        Parameters
        ----------
        hypothesis, value
            As in `wald_test`. After maximum likelihood, about coefficients of both equations;
            after two steps, about the prediction equation and "imr".
        X, y, selected, sample_weight
            The rows of the fit, as they were passed to it, in memory.
        groups : str or array_like, optional
            The clusters: a column of X or of the data frame, or one entry per row. By default
            those of the fit, if it remembers their column. The model's ``cov_type`` has no part
            in the test.
        weights : {"rademacher", "webb"}
            Signs, or Webb's six points, which give more different draws with fewer than ten
            clusters.
        n_boot : int
            Number of draws. If there are no more patterns of signs than that, each is taken once.
        conf_level : float, optional
            Also find the values of a single restriction that are not rejected at this level, in
            some 25 estimations of the model.
        random_state
            Seed or generator.

        Returns
        -------
        WildTest
            With ``statistic``, ``p_value``, ``interval``, ``n_clusters`` and ``enumerated``.
        """
        rows = PassedRows(X, y, selected, sample_weight, groups)
        return wild_test(
            self.fit_,
            hypothesis,
            rows,
            value=value,
            weights=weights,
            n_boot=n_boot,
            random_state=random_state,
            conf_level=conf_level,
        )

    def uncertainty_interval(
        self,
        X: Any = None,
        y: Any = None,
        rho: Any = (-0.3, 0.3),
        conf_level: float = 0.95,
        n_grid: int = 61,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> UncertaintyInterval:
        """Vary rho instead of estimating it: the range of each coefficient for a range of rho.

        This needs no exclusion restriction. Standard errors take rho as given; they are of the
        model's ``cov_type``. Of a linear outcome, least squares on the selected rows is corrected
        for the selection bias at each rho (Genback, Stanghellini and de Luna, 2015), without a
        pass over the rows: estimates are those of ``Heckman(rho=...)`` in two steps, for any
        method. Of two classes, the likelihood is maximised over all other parameters with rho held,
        as ui.probit in R does (Genback, Ng, Stanghellini and de Luna, 2018).

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`; a linear outcome needs none of them.
        rho : (float, float)
            The range, inside (-1, 1). Without rows it may come first, before conf_level and
            n_grid: ``uncertainty_interval((-0.5, 0.5))``.
        conf_level : float
            Confidence level of the interval at each rho.
        n_grid : int
            Number of values of rho to report, including the ends. Of two classes, about 20 values
            are refitted, the ends and zero among them; cubics with the slopes of both neighbours
            give the values in between.

        Returns
        -------
        UncertaintyInterval
            With `tidy` (identification bounds, the union of the confidence intervals, and the
            rho at which a sign or its significance changes), `path` and `plot`.
        """
        if isinstance(X, tuple | list) and all(isinstance(end, Real) for end in X):
            # A range first, as for a linear outcome, is followed by conf_level and n_grid.
            n_grid = int(rho) if isinstance(rho, Integral) else n_grid
            X, y, rho, conf_level = None, None, X, conf_level if y is None else y
        rows = PassedRows(X, y, selected, sample_weight, groups)
        return uncertainty_interval(self.fit_, rows, rho, conf_level, n_grid)

    def what_if(
        self,
        X: Any = None,
        y: Any = None,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> WhatIf:
        """Change one exclusion at a time: include each excluded feature, drop each included one.

        No data can prove that an exclusion is valid. The result has `tidy` (the feature's t
        value, rho) and `coefficients` (the change in every other coefficient). Of a linear outcome,
        both equations are two-step estimates, and only t values that are robust or for clusters
        need the rows: without, these are classical, and the report says so. Of two classes, each
        change is a fit by maximum likelihood, with the covariance of the model.
        """
        return what_if(self.fit_, PassedRows(X, y, selected, sample_weight, groups))

    def exclusion_test(
        self,
        X: Any = None,
        y: Any = None,
        features: Sequence[Any] | None = None,
        *,
        method: Method | None = None,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> ExclusionTest:
        """Test whether excluded features belong in the prediction equation, while one stays out.

        The model that includes these features is fitted, and their coefficients are tested
        jointly (Wald), with the covariance of the model; of two classes, by the likelihood ratio
        where the covariance is classical. The features that stay excluded identify the model: that
        they do not predict is an assumption that cannot be tested.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`. The two-step test with a classical covariance needs none of them.
        features : sequence of str or int, optional
            Excluded features to include; at least one other must stay excluded. By default,
            each excluded feature stays out in turn, and all others are tested together.
        method : {None, "two-step", "ml"}
            How the model with these features is estimated; None is "two-step" for a linear outcome
            and "ml" for two classes. At 5%, the two-step test rejects valid exclusions in 2 to 6%
            of simulated samples. Maximum likelihood of a linear outcome rejects them in up to 14%
            if what stays out hardly drives selection, and in 66 to 99% if the outcome's error is
            skewed.
        """
        rows = PassedRows(X, y, selected, sample_weight, groups)
        return exclusion_test(self.fit_, rows, features, method)

    def specification_tests(
        self, X: Any, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> SpecificationTests | BinarySpecificationTests:
        """Test what the model assumes about its errors and its functional form.

        In the selection equation, normality (Bera, Jarque and Lee, 1984) and equal variances
        (Davidson and MacKinnon, 1984), by score tests. In the prediction equation of a linear
        outcome, normality (a conditional-moment test; Newey, 1985; Pagan and Vella, 1989), the form
        of the correction for selection (Pagan and Vella, 1989), and RESET (Ramsey, 1969); of two
        classes, normality and equal variances by likelihood ratios. Powers or products of features
        that are missing from an equation show in them as well. Arguments are as passed to `fit`.
        Sampling weights are refused.
        """
        return specification_tests(self.fit_, PassedRows(X, y, selected, sample_weight))

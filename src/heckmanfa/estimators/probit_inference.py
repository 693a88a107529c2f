"""Inference of the Heckman probit that needs the rows of the fit, unlike the linear model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heckmanfa.estimators.base import SelectionModel
from heckmanfa.inference.binary_specification import binary_specification_tests
from heckmanfa.inference.exclusion_tests import ExclusionTest, exclusion_test
from heckmanfa.inference.specification_report import BinarySpecificationTests
from heckmanfa.inference.uncertainty import UncertaintyInterval, binary_uncertainty_interval
from heckmanfa.inference.what_if import WhatIf, binary_what_if


class ProbitInference(SelectionModel):
    """Sensitivity analyses and tests of a selection model of two classes.

    A binary outcome has no compressed data that would do in place of its rows: X, y, selected and
    sample_weight are as passed to `fit`.
    """

    def uncertainty_interval(
        self,
        X: Any,
        y: Any = None,
        rho: tuple[float, float] = (-0.3, 0.3),
        conf_level: float = 0.95,
        n_grid: int = 61,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> UncertaintyInterval:
        """Vary rho instead of estimating it: the range of each coefficient for a range of rho.

        The likelihood is maximised over all other parameters with rho held, as ui.probit in R does
        (Genback, Ng, Stanghellini and de Luna, 2018). This needs no exclusion restriction. Standard
        errors take rho as given; they are of the model's ``cov_type``.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`.
        rho : (float, float)
            The range, inside (-1, 1).
        conf_level : float
            Confidence level of the interval at each rho.
        n_grid : int
            Number of values of rho to report, including the ends. About 20 values of rho are
            refitted, the ends and zero among them; cubics with the slopes of both neighbours give
            the values in between.

        Returns
        -------
        UncertaintyInterval
            With `tidy` (identification bounds, the union of the confidence intervals, and the
            rho at which a sign or its significance changes), `path` and `plot`.
        """
        given = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        return binary_uncertainty_interval(self.fit_, X, y, rho, conf_level, n_grid, **given)

    def what_if(
        self,
        X: Any,
        y: Any = None,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> WhatIf:
        """Change one exclusion at a time: include each excluded feature, drop each included one.

        Each change is a fit by maximum likelihood to the same rows, with the covariance of the
        model. No data can prove that an exclusion is valid. The result has `tidy` (the feature's t
        value, rho) and `coefficients` (the change in every other coefficient). Arguments are as
        passed to `fit`.
        """
        given = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        return binary_what_if(self.fit_, X, y, **given)

    def exclusion_test(
        self,
        X: Any,
        y: Any = None,
        features: Sequence[Any] | None = None,
        *,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> ExclusionTest:
        """Test whether excluded features belong in the prediction equation, while one stays out.

        The model that includes these features is fitted by maximum likelihood, and compared by the
        likelihood ratio. With sampling weights, or a robust or cluster covariance, their
        coefficients are tested jointly instead (Wald). The features that stay excluded identify the
        model: that they do not predict is an assumption that cannot be tested.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`.
        features : sequence of str or int, optional
            Excluded features to include; at least one other must stay excluded. By default,
            each excluded feature stays out in turn, and all others are tested together.
        """
        given = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        return exclusion_test(self.fit_, X, y, features, method="ml", **given)

    def specification_tests(
        self, X: Any, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> BinarySpecificationTests:
        """Test what the model assumes about its errors and its functional form.

        Normality in both equations (Bera, Jarque and Lee, 1984), and equal variances in both
        (Davidson and MacKinnon, 1984): score tests in the selection equation, likelihood ratios in
        the prediction equation. Powers or products of features that are missing from an equation
        show in them as well. Arguments are as passed to `fit`. Sampling weights are refused.
        """
        given = {"selected": selected, "sample_weight": sample_weight}
        return binary_specification_tests(self.fit_, X, y, **given)

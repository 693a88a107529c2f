"""What a fitted selection model assumes, changed and tested: with one signature in every family."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckmanfa.errors import InputError
from heckmanfa.estimators.scoring import ScoredModel
from heckmanfa.fit import Fit
from heckmanfa.inference.binary_specification import binary_specification_tests
from heckmanfa.inference.exclusion_tests import ExclusionTest, exclusion_test
from heckmanfa.inference.specification import specification_tests
from heckmanfa.inference.specification_report import BinarySpecificationTests, SpecificationTests
from heckmanfa.inference.uncertainty import (
    UncertaintyInterval,
    binary_uncertainty_interval,
    uncertainty_interval,
)
from heckmanfa.inference.what_if import WhatIf, binary_what_if, what_if
from heckmanfa.model.option_types import Method


class SensitivityModel(ScoredModel):
    """Sensitivity analyses and tests of a fitted selection model.

    X, y, selected, sample_weight and groups are as passed to `fit`. A linear outcome has compressed
    data in place of its rows; a binary one has not, and its rows must be passed.
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

    def _has_compressed(self, method: str, X: Any) -> bool:
        """Whether compressed data will do in place of rows; refuse to go on without either."""
        compressed = "compressed data" in self.fit_.family.supports
        if X is None and not compressed:
            raise InputError(
                f"{method} of the {self.fit_.family.words.model} needs the rows of the fit: pass X "
                "and y as they were passed to fit"
            )
        return compressed

    def uncertainty_interval(
        self,
        X: Any = None,
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

        Of a linear outcome, least squares on the selected rows is corrected for the selection bias
        at each rho (Genback, Stanghellini and de Luna, 2015), without a pass over the rows:
        estimates are those of ``Heckman(rho=...)`` in two steps, for any method. Of a binary
        outcome, the likelihood is maximised over all other parameters with rho held, as ui.probit
        in R does (Genback, Ng, Stanghellini and de Luna, 2018). Neither needs an exclusion
        restriction. Standard errors take rho as given; they are of the model's ``cov_type``.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`; only a binary outcome needs them. Without rows, ``rho``,
            ``conf_level`` and ``n_grid`` may come first: ``uncertainty_interval((-0.3, 0.3))``.
        rho : (float, float)
            The range, inside (-1, 1).
        conf_level : float
            Confidence level of the interval at each rho.
        n_grid : int
            Number of values of rho to report, including the ends. A binary outcome is refitted at
            about 20 of them; cubics with the slopes of both neighbours give the others.

        Returns
        -------
        UncertaintyInterval
            With `tidy` (identification bounds, the union of the confidence intervals, and the
            rho at which a sign or its significance changes), `path` and `plot`.
        """
        if _is_no_rows(X):
            conf_level = conf_level if y is None else y
            third: Any = rho
            n_grid = int(third) if isinstance(third, Integral) else n_grid
            X, y, rho = None, None, X
        if self._has_compressed("uncertainty_interval", X):
            return uncertainty_interval(self.fit_, rho, conf_level, n_grid)
        given = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        return binary_uncertainty_interval(self.fit_, X, y, rho, conf_level, n_grid, **given)

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

        No data can prove that an exclusion is valid. The result has `tidy` (the feature's t value,
        rho) and `coefficients` (the change in every other coefficient).

        Of a linear outcome, both use the two-step estimator, and only t values that are robust or
        for clusters need rows: without, these are classical, and the report says so. Of a binary
        outcome, each change is a fit by maximum likelihood to the rows, with the covariance of the
        model. Arguments are as passed to `fit`.
        """
        given = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        if self._has_compressed("what_if", X):
            return what_if(self.fit_, X, y, **given)
        return binary_what_if(self.fit_, X, y, **given)

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
        jointly (Wald), with the covariance of the model; those of a binary outcome by the
        likelihood ratio if that covariance is classical. The features that stay excluded identify
        the model: that they do not predict is an assumption that cannot be tested.

        Parameters
        ----------
        X, y, selected, sample_weight, groups
            As passed to `fit`. The two-step test with a classical covariance needs none of them.
        features : sequence of str or int, optional
            Excluded features to include; at least one other must stay excluded. By default,
            each excluded feature stays out in turn, and all others are tested together.
        method : {"two-step", "ml"}, optional
            How the model with these features is estimated: by default in two steps, and that of a
            binary outcome by maximum likelihood, its only method. At 5%, the two-step test rejects
            valid exclusions in 2 to 6% of simulated samples. Maximum likelihood rejects them in
            up to 14% if what stays out hardly drives selection, and in 66 to 99% if the outcome's
            error is skewed.
        """
        self._has_compressed("exclusion_test", X)
        method = method or self.fit_.family.methods[0]
        given = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        return exclusion_test(self.fit_, X, y, features, method=method, **given)

    def specification_tests(
        self, X: Any, y: Any = None, *, selected: Any = None, sample_weight: Any = None
    ) -> SpecificationTests | BinarySpecificationTests:
        """Test what the model assumes about its errors and its functional form.

        Normality in both equations (Bera, Jarque and Lee, 1984; of a linear outcome, a
        conditional-moment test: Newey, 1985; Pagan and Vella, 1989), and equal variances in the
        selection equation and for a binary outcome in both (Davidson and MacKinnon, 1984). A linear
        outcome also has tests of the form of the correction for selection (Pagan and Vella, 1989),
        and RESET (Ramsey, 1969). Arguments are as passed to `fit`. Sampling weights are refused.
        """
        given = {"selected": selected, "sample_weight": sample_weight}
        if self._has_compressed("specification_tests", X):
            return specification_tests(self.fit_, X, y, **given)
        return binary_specification_tests(self.fit_, X, y, **given)


def _is_no_rows(value: Any) -> bool:
    """Whether a value is one number or a few, such as a range."""
    if isinstance(value, tuple | list):
        return all(isinstance(end, Real) for end in value)
    return isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim < 2)

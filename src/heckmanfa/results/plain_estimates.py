"""Estimates of a model without error terms: coefficients by name, with their joint covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.results.distribution import NullDistribution, Wald
from heckmanfa.results.estimates import prefixed
from heckmanfa.results.hypotheses import restrictions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Terms = tuple[tuple[str, str], ...]
"""equation and name of each estimate"""


@dataclass(frozen=True, eq=False)
class PlainEstimates:
    """Coefficients, their covariance, and what kind of covariance it is."""

    terms: Terms
    values: Floats
    """(T,)"""
    covariance: Floats
    """(T, T); NaN where it is not known"""
    cov_type: str
    n_clusters: int | None = None
    """clusters of a cluster covariance"""
    weights: str = ""
    """what the weights given were: "frequency", "sampling", or nothing"""

    @property
    def distribution(self) -> NullDistribution:
        """What an estimate over its standard error is compared with."""
        return NullDistribution(self.n_clusters)

    def tidy(self, conf_level: float) -> pd.DataFrame:
        """Return estimates, standard errors, tests and intervals."""
        error = np.sqrt(np.diag(self.covariance))
        table = pd.DataFrame(self.terms, columns=["equation", "term"])
        return table.assign(**self.distribution.columns(self.values, error, conf_level))

    def vcov(self) -> pd.DataFrame:
        """Return the joint covariance with labels."""
        labels = pd.MultiIndex.from_tuples(self.terms, names=["equation", "term"])
        return pd.DataFrame(self.covariance.copy(), index=labels, columns=labels)

    def wald_test(self, hypothesis: str | ArrayLike, value: ArrayLike | None) -> Wald:
        """Test linear restrictions; see `Heckman.wald_test`."""
        names = [prefixed(*term) for term in self.terms]
        matrix, right = restrictions(hypothesis, value, names)
        gap = matrix @ self.values - right
        test = self.distribution.wald(gap, matrix @ self.covariance @ matrix.T)
        if test.lacks_clusters:
            raise NotIdentifiedError(f"{test.note}; test fewer at a time")
        return test

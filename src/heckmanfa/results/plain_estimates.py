"""Estimates of a model without error terms: coefficients by name, with their joint covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.survey_design import SurveyDesign
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.results.cluster_facts import lost_rank
from heckmanfa.results.distribution import NullDistribution, Wald
from heckmanfa.results.estimates import prefixed
from heckmanfa.results.hypotheses import restrictions
from heckmanfa.results.words_of_rows import REPAIRED

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
    df: Floats | None = None
    """(T,) effective degrees of freedom of each variance; None in files of earlier versions"""
    n_first_clusters: int | None = None
    """of the first of two clusterings"""
    n_second_clusters: int | None = None
    design: SurveyDesign | None = None
    """of a survey"""

    @property
    def cluster_counts(self) -> tuple[int, ...]:
        """Clusters of each clustering, if there are two; empty otherwise."""
        if self.n_first_clusters is None or self.n_second_clusters is None:
            return ()
        return self.n_first_clusters, self.n_second_clusters

    @property
    def units(self) -> NullDistribution:
        """What the covariance is made of, which bounds the degrees of freedom."""
        return NullDistribution(self.n_clusters, self.cluster_counts, self.design)

    @property
    def distributions(self) -> list[NullDistribution]:
        """What each estimate over its standard error is compared with."""
        if self.df is None:
            return [self.units] * len(self.terms)
        most = np.inf if self.units.df is None else self.units.df
        return [replace(self.units, effective=min(float(df), most)) for df in self.df]

    @property
    def letter(self) -> str:
        """Name of the statistic: z or t."""
        return "t" if any(each.letter == "t" for each in self.distributions) else "z"

    def notes(self) -> list[str]:
        """Name the distributions in a sentence, after what was done to the covariance."""
        known = [each.df for each in self.distributions if each.df is not None]
        repaired = self.cluster_counts and lost_rank(self.covariance, len(self.terms))
        notes = [REPAIRED] if repaired else []
        if not known or np.isnan(known).any():
            return notes
        ends = dict.fromkeys(f"{round(end):,}" for end in (min(known), max(known)))
        made = f"With {self.units.units}, tests" if self.units.df is not None else "Tests"
        return [
            *notes,
            f"{made} and intervals use t distributions with the effective degrees of freedom of "
            f"each estimate, {' to '.join(ends)}, and joint tests F with the fewest of theirs.",
        ]

    def tidy(self, conf_level: float) -> pd.DataFrame:
        """Return estimates, standard errors, tests and intervals."""
        error = np.sqrt(np.diag(self.covariance))
        table = pd.DataFrame(self.terms, columns=["equation", "term"])
        rows = [
            each.columns(value, std_error, conf_level)
            for each, value, std_error in zip(self.distributions, self.values, error, strict=True)
        ]
        return pd.concat([table, pd.DataFrame(rows, dtype=float)], axis=1)

    def vcov(self) -> pd.DataFrame:
        """Return the joint covariance with labels."""
        labels = pd.MultiIndex.from_tuples(self.terms, names=["equation", "term"])
        return pd.DataFrame(self.covariance.copy(), index=labels, columns=labels)

    def wald_test(self, hypothesis: str | ArrayLike, value: ArrayLike | None) -> Wald:
        """Test linear restrictions; see `Heckman.wald_test`."""
        names = [prefixed(*term) for term in self.terms]
        matrix, right = restrictions(hypothesis, value, names)
        gap = matrix @ self.values - right
        tested = np.flatnonzero(matrix.any(axis=0))
        least = min(
            (self.distributions[place] for place in tested),
            key=lambda each: np.inf if each.df is None else each.df,
            default=self.units,
        )
        test = least.wald(gap, matrix @ self.covariance @ matrix.T)
        if test.lacks_clusters:
            raise NotIdentifiedError(f"{test.note}; test fewer at a time")
        return test

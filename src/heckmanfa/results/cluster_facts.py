"""Facts of what a covariance rests on: clusters, two clusterings, or the design of a survey."""

from __future__ import annotations

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.survey_design import SurveyDesign
from heckmanfa.fit import Fit
from heckmanfa.results.distribution import (
    FEW_CLUSTERS,
    FEW_UNITS,
    NullDistribution,
    clusters_text,
    distribution_of,
    n_parameters,
)
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact, Level
from heckmanfa.results.words_of_rows import WILD

# Eigenvalues of a correlation matrix below this share of the largest are rounding.
_ZERO = 1e-11


def cluster_facts(fit: Fit) -> list[Fact]:
    """Say how many clusters a covariance rests on, and whether they are enough."""
    n, parameters = fit.n_clusters, n_parameters(fit)
    if fit.design is not None:
        return [_design_fact(fit, fit.design, parameters)]
    if n is None:
        return []
    level: Level = "caution" if n < FEW_CLUSTERS else "ok"
    case = ""
    counts = fit.cluster_counts
    clusters, distribution = clusters_text(n, counts), NullDistribution(n, counts)
    if is_repaired(fit):
        level, case = "caution", "repaired"
    # The clusters' total scores sum to zero: they span one dimension less than there are clusters.
    elif n <= parameters and not fit.cluster_counts:
        level, case = "problem", "too few"
    return [
        tell(
            fit,
            "clusters",
            level,
            f"{clusters}; {parameters:,} parameters",
            case=case,
            clusters=clusters,
            parameters=f"{parameters:,}",
            rank=n - 1,
            distribution=distribution.name,
            wild=wild_advice(fit),
        )
    ]


def _design_fact(fit: Fit, design: SurveyDesign, parameters: int) -> Fact:
    """Say how many degrees of freedom the design of a survey leaves."""
    level: Level = "ok"
    case = "units"
    if design.df < parameters:
        level, case = "problem", "too few units"
    elif design.df < FEW_UNITS:
        level, case = "caution", "few units"
    return tell(
        fit,
        "clusters",
        level,
        f"{design.words}; {parameters:,} parameters",
        case=case,
        name="design of the survey",
        clusters=design.words,
        parameters=f"{parameters:,}",
        rank=design.df,
        distribution=distribution_of(fit).name,
        wild="",
    )


def wild_advice(fit: Fit) -> str:
    """Advise the wild cluster test, for models that have one set of scores."""
    is_tested = not fit.cluster_counts and fit.way.is_one_fit and fit.family.can("profiles")
    return WILD if is_tested else ""


def is_repaired(fit: Fit) -> bool:
    """Whether negative eigenvalues of two clusterings' covariance were set to zero."""
    return bool(fit.cluster_counts) and lost_rank(fit.covariance, n_parameters(fit))


def lost_rank(covariance: Floats, n_parameters: int) -> bool:
    """Whether a covariance of so many parameters is singular, as zero eigenvalues leave it."""
    if not np.all(np.isfinite(covariance)):
        return False
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = spread > 0
    correlation = covariance[np.ix_(known, known)] / np.outer(spread[known], spread[known])
    values = np.linalg.eigvalsh(correlation)
    return int(np.count_nonzero(values > _ZERO * values.max(initial=0.0))) < min(
        n_parameters, len(values)
    )

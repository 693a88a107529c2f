"""What a survey adds to a fit: the count of its design, and the covariance over replicate weights.

With replicate weights r = 1..R, the model is estimated again with each set of weights, with the
features of the fit. The covariance is the sum over r of scale_r (e_r - c)(e_r - c)', where c is the
mean of the e_r, or the estimate itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.replicates import n_replicates, replicate_blocks, replicate_sample
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.data.sample import Sample
from heckmanfa.data.survey_design import SurveyDesign, linearized_design
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning, InputError, NotIdentifiedError
from heckmanfa.fit.fitted import Fit, Spec
from heckmanfa.model.covariance import seen_cells
from heckmanfa.model.linalg import block_factor, stack
from heckmanfa.text.option_words import option

Refit = Callable[[Spec, Sample], Fit]
_RANK_TOLERANCE = 1e-5
"""beside the largest singular value, as in R's survey: published weights are rounded"""


def survey_design(spec: Spec, sample: Sample) -> SurveyDesign:
    """Count the design of a survey's rows."""
    assert spec.survey is not None
    n = n_replicates(sample)
    rank = replicate_rank(sample) if n else 0
    if n and rank < 2:
        raise InputError(
            f"the {n} replicate weights are multiples of one column, so they tell no variance: "
            "name those that the survey's producer made from samples of its units"
        )
    if n and spec.survey.psu is None and spec.survey.strata is None:
        return SurveyDesign(0, 0, rank - 1, n_replicates=n)
    assert sample.cells is not None
    design = linearized_design(sample.cells, seen_cells(sample.rows, sample.cells))
    return replace(design, n_replicates=n)


def replicate_rank(sample: Sample) -> int:
    """Return how many replicate weights are linearly independent, over all rows."""
    triangle = stack(replicate_blocks(sample, block_factor), n_replicates(sample))
    sizes = np.linalg.svd(triangle, compute_uv=False)
    return int(np.count_nonzero(sizes > _RANK_TOLERANCE * sizes.max()))


def with_replicate_covariance(fit: Fit, sample: Sample, refit: Refit) -> Fit:
    """Return a fit with the covariance of its estimates over the replicate weights of its rows."""
    survey = fit.spec.survey
    assert survey is not None
    if fit.average is not None or (fit.search is not None and fit.search.halves is not None):
        raise InputError(
            "replicate weights estimate one model again, and this one is made of many: name its "
            "features, or use the design of the survey"
        )
    if survey.replicate_kind == "brr" and not survey.fay:
        _refuse_fay(sample)
    again = replace(
        fit.spec.for_replicates(), prediction=tuple(fit.features), selection=_selecting(fit)
    )
    estimates = []
    for place in range(n_replicates(sample)):
        try:
            with warnings.catch_warnings(), one_blas_thread():
                warnings.simplefilter("ignore", HeckmanfaWarning)
                other = refit(again, replicate_sample(sample, place))
        except HeckmanfaError as error:
            raise type(error)(f"with replicate weights {place + 1}: {error}") from error
        lost = {*other.dropped} - {*fit.dropped} or (other.probit is None) != (fit.probit is None)
        if not other.converged or lost:
            raise NotIdentifiedError(
                f"with replicate weights {place + 1}, the model has no estimates: the fit did not "
                "converge, no outcome is missing, or a column had to be left out. Use fewer "
                "features, or the design of the survey"
            )
        estimates.append(_in_order(other, fit))
    values, own = np.array(estimates), _in_order(fit, fit)
    about = values - (own if survey.mse else values.mean(axis=0))
    scales = survey.scales(len(values))
    n, details = len(fit.terms), fit.details
    covariance = np.asarray((about * scales[:, None]).T @ about)
    errors = {}
    for place, (name, (value, _)) in enumerate(_transformed(fit).items()):
        spread = float(np.sqrt(covariance[n + place, n + place]))
        errors[name] = replace(fit.errors[name], transformed=(value, spread))
    if details is not None and details.beside:
        spreads = np.sqrt(np.diag(covariance)[-len(details.beside) :])
        details = details.with_errors_beside(spreads)
    return replace(fit, covariance=covariance[:n, :n], details=details).with_errors(**errors)


def _refuse_fay(sample: Sample) -> None:
    """Refuse weights of Fay's method without his factor: plain BRR leaves out half of the units."""
    if not any(replicate_blocks(sample, _has_zero)):
        raise InputError(
            "no replicate weight is zero, so they are not those of plain BRR, which leaves half of "
            f"the units out: pass {option('fay', ...)}, which the survey's documentation tells, "
            "such as 0.5"
        )


def _has_zero(weights: Floats) -> bool:
    return bool((weights == 0).any())


def _selecting(fit: Fit) -> tuple[int, ...]:
    return fit.spec.selection if fit.probit is None else tuple(map(int, fit.probit.features))


def _transformed(fit: Fit) -> dict[str, tuple[float, float]]:
    """Return the error terms that were estimated on another scale."""
    known = {name: error.transformed for name, error in fit.errors.items()}
    return {name: pair for name, pair in known.items() if pair is not None}


def _in_order(other: Fit, fit: Fit) -> Floats:
    """Return the estimates of one fit in the order of the covariance of another.

    Those of the errors on their transformed scale follow, then those beside the model's.
    """
    values: list[float] = []
    constants = {each.name: each.constant for each in fit.family.equations}
    for equation, term in fit.terms:
        if equation == "errors":
            values.append(other.errors[term].value)
        elif term == constants[equation]:
            values.append(other.equations[equation].intercept)
        else:
            values.append(float(other.equations[equation].coef[fit.labels.index(term)]))
    for name in _transformed(fit):
        pair = other.errors[name].transformed
        values.append(np.nan if pair is None else pair[0])
    if other.details is not None:
        values += other.details.beside
    return np.array(values)

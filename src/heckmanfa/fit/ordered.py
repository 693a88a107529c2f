"""Ordered probit with sample selection: an ordered outcome, by maximum likelihood.

The prediction equation has an intercept and the first cut point is zero, so Stata's first cut is
minus the intercept. How many cut points there are depends on the data: the family is that of a
number of classes, `Spec.number`, once the data have told it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from heckmanfa.data.arrays import Floats, host
from heckmanfa.data.ordered_classes import MOST_CLASSES, refuse_rare
from heckmanfa.data.rows import Block, Positions, Rows, total
from heckmanfa.data.sample import Sample
from heckmanfa.errors import (
    ConvergenceWarning,
    InputError,
    SeparationError,
    TooFewRowsError,
    warn,
)
from heckmanfa.fit.binary import BINARY
from heckmanfa.fit.classes import ClassLikelihood
from heckmanfa.fit.family import Family, register
from heckmanfa.fit.fitted import Fit, Spec
from heckmanfa.fit.making import FirstStep, Inputs, count, fit_of_maximum
from heckmanfa.fit.ordered_cut import REACHED, OrderedOutcome, at_class, cuts_by
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection, fit_selection, gather
from heckmanfa.model.error_terms import RHO
from heckmanfa.model.expectation_parts import Parts, linear_parts
from heckmanfa.model.linalg import Coordinates
from heckmanfa.model.moments import Moments
from heckmanfa.model.ordered_likelihood import (
    OrderedApart,
    cuts_of,
    fit_ordered_likelihood,
    ordered_apart,
    sides_of,
    step_terms,
)
from heckmanfa.model.ordered_slopes import naive_covariance, slopes_at_cuts
from heckmanfa.model.outcome_probit import OutcomeRows, independent_columns
from heckmanfa.model.probit import Probit, fit_probit
from heckmanfa.model.rectangles import log_strip_probability
from heckmanfa.model.separation import find_separation, listed
from heckmanfa.model.two_step import refuse_unidentified
from heckmanfa.text.option_words import FEWER_PREDICTING
from heckmanfa.text.wording import plural

_ONLY_HECKMAN_PROBIT = "HeckmanProbit has, for an outcome of two classes"


# The first step. -----------------------------------------------------------------------------


def select_and_check(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None]
) -> tuple[Selection, Moments]:
    """Fit the selection equation, compress the selected rows, and make sure of the classes."""
    n_classes = spec.number
    assert n_classes is not None
    selection = fit_selection(
        sample.rows,
        spec.selection,
        spec.labels,
        on_collinear=spec.on_collinear,
        on_separation=spec.on_separation,
        check_left=check_left,
    )
    columns = [column for column in spec.prediction if column not in selection.separating]
    counts = _count_rows(selection.rows, n_classes)[0]
    known = sample.classes or tuple(range(n_classes))
    refuse_rare(known, counts.astype(int).tolist())
    n_selected = int(counts.sum())
    moments = gather(selection, columns, spec.labels, n_selected, binary=True)
    kept = independent_columns(moments, columns)
    if n_selected <= len(kept) + n_classes:
        raise TooFewRowsError(
            f"{plural(len(kept), 'prediction feature')} and {plural(n_classes - 1, 'cut point')} "
            f"need more than {plural(len(kept) + n_classes, 'selected row')}; there are "
            f"{n_selected:,}. {FEWER_PREDICTING}, or collect more rows."
        )
    _refuse_separation(spec, moments, selection.rows, kept, n_classes)
    return selection, moments


def _refuse_separation(
    spec: Spec, moments: Moments, rows: Rows, features: Positions, n_classes: int
) -> None:
    """Refuse columns that decide the class: then they decide every cut, so one says if not."""
    root = moments.subset(features, imr=False, outcome=False)
    coordinates = Coordinates.from_factor(root)
    deciding: list[int] = []
    # A cut in the middle has many rows on both sides, and is seldom separated by chance.
    for cut in sorted(range(1, n_classes), key=lambda cut: abs(cut - n_classes / 2)):
        above = OutcomeRows(rows, cut - 0.5)
        if fit_probit(above, features, coordinates).certified:
            return
        separation = find_separation(above, features, coordinates)
        if separation is None:
            return
        deciding += [features[place] for place in separation.columns]
    columns = tuple(dict.fromkeys(deciding))
    verb = "decides" if len(columns) == 1 else "together decide"
    raise SeparationError(
        f"{listed(columns, spec.labels)} {verb} on which side of every cut point selected rows "
        "are, so the likelihood has no finite maximum: leave such columns out of the prediction "
        "equation, or merge classes",
        columns,
    )


def _count_rows(rows: Rows, n_classes: int) -> tuple[Floats, Floats]:
    """Count the selected rows of each class, and the sums of their weights."""
    both = total(rows.map(_block_counts, n_classes, columns=[], merge=total))
    return both[0], both[1]


def _block_counts(block: Block, n_classes: int) -> tuple[Floats, Floats]:
    chosen = block.only_selected()
    codes = host(chosen.outcome).astype(np.intp)
    rows = np.bincount(codes, minlength=n_classes).astype(np.float64)
    if chosen.weight is None:
        return rows, rows
    weights = np.bincount(codes, host(chosen.weight), minlength=n_classes)
    return rows, weights.astype(np.float64)


# Estimates. ----------------------------------------------------------------------------------


def apart_by_classes(
    n_classes: int, moments: Moments, probit: Probit, features: Positions, rows: Rows
) -> OrderedApart:
    """Fit the ordered probit of the selected rows, beside the probit of selection."""
    weights = _count_rows(rows, n_classes)[1]
    return ordered_apart(moments, probit, features, rows, weights / weights.sum())


def likelihood_of(n_classes: int) -> ClassLikelihood:
    """Return the likelihood of an outcome of so many classes."""
    return ClassLikelihood(partial(apart_by_classes, n_classes), fit_ordered_likelihood)


def fit_ordered(inputs: Inputs) -> Fit:
    """Maximise the joint likelihood for the chosen features."""
    spec, kind, rows = inputs.spec, inputs.kind, inputs.rows
    assert spec.number is not None
    if not spec.held:
        refuse_unidentified(inputs.moments.subset(inputs.features, outcome=False))
    apart = apart_by_classes(spec.number, inputs.moments, inputs.probit, inputs.features, rows)
    if not apart.converged:
        warn(
            "the ordered probit of the selected rows, from which maximum likelihood starts, did "
            "not converge: look for a feature that nearly decides the class",
            ConvergenceWarning,
        )
    maximum = likelihood_of(spec.number).maximum_of(inputs, apart)
    fit = fit_of_maximum(inputs, maximum)
    own = np.array([fit.intercept, *fit.coef[fit.equation]])
    slopes = [
        slopes_at_cuts(rows, inputs.features, coef, cuts)
        for coef, cuts in (
            (own, cuts_by(fit.error_values)),
            (apart.coef, cuts_of(apart.steps)),
        )
    ]
    counts = zip(*_count_rows(rows, spec.number), strict=True)
    details = OrderedOutcome(
        class_counts=tuple(float(count(weight, int(n), kind)) for n, weight in counts),
        independent_log_likelihood=apart.log_likelihood,
        naive_coef=apart.coef,
        naive_steps=apart.steps,
        naive_covariance=naive_covariance(apart, kind, rows),
        mean_slopes=np.array([each.mean for each in slopes]),
        mean_slope_gradients=np.array([each.gradient for each in slopes]),
    )
    return replace(fit, details=details)


def averaged_outcome(
    fit: Fit, groups: Sequence[tuple[float, Fit]], first: FirstStep
) -> OrderedOutcome:
    """Return the details of an average, with the slopes of its own probabilities."""
    details = fit.details
    assert isinstance(details, OrderedOutcome)
    slopes, features = [], fit.equation
    for _, own in groups:
        coef = np.array([own.intercept, *own.coef[features]])
        slopes.append(slopes_at_cuts(first.rows, features, coef, cuts_by(own.error_values)))
    weights = np.array([weight for weight, _ in groups])
    means, gradients = details.mean_slopes.copy(), details.mean_slope_gradients.copy()
    means[0] = weights @ np.array([each.mean for each in slopes])
    gradients[0] = np.tensordot(weights, np.array([each.gradient for each in slopes]), axes=1)
    return replace(details, mean_slopes=means, mean_slope_gradients=gradients)


def _refuse_complete(spec: Spec, sample: Sample, kind: CovarianceKind) -> Fit:
    """Refuse rows of which no outcome is missing."""
    raise InputError(
        f"no outcome is missing among the {sample.row_counts['selected']} rows, so there is no "
        "selection to correct for: fit an ordered probit, as OrderedModel of statsmodels does, or "
        "mark outcomes that were not seen as missing"
    )


# What it says of rows. -----------------------------------------------------------------------


def apart(fit: Fit) -> tuple[Floats, float]:
    """Coefficients of the ordered probit, and the log-likelihood of both equations apart."""
    assert isinstance(fit.details, OrderedOutcome)
    return fit.details.naive_coef, fit.details.independent_log_likelihood


def ordered_log_density(
    index: Floats, mean: Floats, outcome: Floats, errors: Mapping[str, float]
) -> Floats:
    """Log-likelihood of selected rows: of their selection and their classes."""
    low, high, _ = sides_of(mean, outcome, cuts_by(errors))
    return np.asarray(log_strip_probability(low, high, index, errors["rho"]))


def latent_parts(kind: str, mean: Floats, index: Floats, rho: float) -> Parts:
    """Evaluate an expectation of the latent outcome, whose error has variance one."""
    return linear_parts(kind, mean, index, rho)


def of_classes(family: Family, n_classes: int) -> Family:
    """Return the family of an outcome of so many classes."""
    if not 2 <= n_classes <= MOST_CLASSES:
        raise InputError(f"an ordered outcome has 2 to {MOST_CLASSES} classes; got {n_classes}")
    likelihood = likelihood_of(n_classes)
    return replace(
        family,
        error_terms=(RHO, *step_terms(n_classes)),
        begin=likelihood.begin,
        refit=likelihood.refit,
    )


ORDERED = register(
    replace(
        BINARY,
        name="ordered",
        words=replace(
            REACHED.words,
            effect="An effect on the latent outcome",
            changes="the probabilities of the classes by its average marginal effects",
            unit="",
            factor=1.0,
            lacking={
                **REACHED.words.lacking,
                "calibration": f"no calibration picture, which {_ONLY_HECKMAN_PROBIT}: compare "
                "predict_proba with the shares of the classes",
            },
        ),
        error_terms=(RHO,),
        supports=frozenset(),
        naive=apart,
        parts=latent_parts,
        log_density=ordered_log_density,
        has_classes=False,
        is_ordered=True,
        of_number=of_classes,
        answered=at_class,
        average_details=averaged_outcome,
        first_step=select_and_check,
        estimate=fit_ordered,
        estimate_alone=_refuse_complete,
    )
)

"""The numbers behind the picture of lambda's coefficient, estimated in several ways."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import FitRows
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.likelihood import fit_likelihood
from heckmanfa.model.two_step import fit_two_step
from heckmanfa.plots.correction_pictures import ImrEstimate, ImrEstimates
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.average_tables import TermMixture
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.reference import reference_of, tails


def imr_estimates_of(evidence: Evidence, read: FitRows | None) -> ImrEstimates | None:
    """Return the coefficient of lambda, several ways; None without selection, or if rho is held."""
    fit = evidence.fit
    if fit.probit is None or fit.held_rho is not None:
        return None
    note = ""
    if not evidence.way.searched:
        ways = [
            _own(evidence, "this model"),
            *_other_method(evidence, None if read is None else read.rows),
        ]
    else:
        ways = _ways(evidence)
        several = not fit.way.is_average and len(ways) > 1
        if several and fit.spec.method == "ml":
            note = "All but the first are two-step estimates."
        elif several and fit.spec.errors_differ:
            note = "All but the first have classical intervals."
        if evidence.window is None:
            untested = "Where the data chose the features, this is no test."
            note = " ".join(filter(None, (note, untested)))
    if evidence.window is not None:
        # An interval would reflect the window.
        ways = [replace(way, low=math.nan, high=math.nan) for way in ways]
    return ImrEstimates(tuple(ways), evidence.naming.outcome, evidence.window, note)


def _own(evidence: Evidence, label: str, detail: str = "") -> ImrEstimate:
    """Return the model's own coefficient."""
    features = None if detail else _names(evidence, np.asarray(evidence.fit.support, dtype=bool))
    imr = evidence.imr
    return ImrEstimate(label, imr.estimate, imr.low, imr.high, features, detail)


def _names(evidence: Evidence, mask: Mask) -> tuple[str, ...]:
    return tuple(one.name for one in evidence.features if mask[list(one.columns)].any())


def _ways(evidence: Evidence) -> list[ImrEstimate]:
    """Return the ways of a model that chose or averaged."""
    own = np.asarray(evidence.fit.support, dtype=bool)
    masks: list[Mask] = []
    words = evidence.way.words
    note = _averaged_over(evidence.fit) if evidence.way.is_average else words.note
    ways = [_own(evidence, words.label, note)]
    if evidence.way.ignores_search:
        masks.append(own)
    if evidence.way.chose:
        ways += _averaged(evidence)
    alone = evidence.n_assignments == 1
    for label, one in (("best", evidence.best), ("second best", evidence.second)):
        # Without the correction, it has no coefficient.
        if one is None or alone or not one.corrected:
            continue
        if any(np.array_equal(one.mask, mask) for mask in masks):
            continue
        ends = one.imr.estimate, one.imr.low, one.imr.high
        ways.append(ImrEstimate(label, *ends, _names(evidence, one.mask)))
        masks.append(one.mask)
    return ways + _with_all(evidence, masks)


def _averaged_over(fit: Fit) -> str:
    """Say over what an average is."""
    return "all assignments" if fit.way.averaging.mixture.exhaustive else "a sample"


def _averaged(evidence: Evidence) -> list[ImrEstimate]:
    """Average over the assignments that a search allows, by BIC weights."""
    fit = evidence.fit
    if evidence.window is not None or fit.spec.errors_differ:
        return []
    weighed = evidence.weights
    if not isinstance(weighed, AssignmentWeights):
        return []
    found, place = weighed.mixture, weighed.form.correction
    mean, members = found.members(weighed.form).mean_imr, found.interval_members(weighed.form)
    values, errors = members.terms[:, place], members.term_errors[:, place]
    mixture = TermMixture(members.weights, values[:, None], errors[:, None])
    chance = math.nan if weighed.corrected is None else weighed.corrected
    ends = mixture.intervals(tails(CONF_LEVEL), None, np.array([chance]))
    low, high = (float(end) for end in ends[0])
    return [ImrEstimate("averaged", mean, low, high, None, "BIC weights")]


def _with_all(evidence: Evidence, others: Sequence[Mask]) -> list[ImrEstimate]:
    """Estimate with every feature that may predict, unless that was done or cannot be."""
    whole, window = evidence.all_features, evidence.window
    same = whole is not None and any(np.array_equal(whole.mask, other) for other in others)
    if whole is None or same or evidence.n_assignments == 1:
        return []
    if window is not None and not window[0] <= whole.rho <= window[1]:
        return []
    count = len(_names(evidence, whole.mask))
    imr = whole.imr
    return [
        ImrEstimate(
            *("all features", imr.estimate, imr.low, imr.high),
            detail=f"{count} features" if count > 1 else "",
            sets_range=False,
        )
    ]


def _other_method(evidence: Evidence, rows: Rows | None) -> list[ImrEstimate]:
    """Estimate the same features by the method that the model did not use."""
    fit = evidence.fit
    assert fit.probit is not None
    kind = fit.spec.covariance_kind(0)
    ml = fit.spec.method == "two-step"
    # Clusters are not among what was read, and robust standard errors take a pass over the rows.
    if kind.cov_type == "cluster" or (rows is None and (ml or fit.spec.errors_differ)):
        return []
    features = fit.features
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        try:
            found = fit_two_step(fit.moments, fit.probit, features, CLASSICAL if ml else kind, rows)
            place = 1 + len(features)
            estimate, variance = float(found.coef[place]), float(found.covariance[place, place])
            if ml and rows is not None:
                other = fit_likelihood(fit.moments, fit.probit, found, kind, rows)
                if not other.converged:
                    return []
                estimate = other.rho * other.sigma
                variance = float(other.reported_covariance()[-3, -3])
        except HeckmanfaError:
            return []
    reach = reference_of(fit).quantile(CONF_LEVEL) * math.sqrt(max(variance, 0.0))
    label, detail = ("ML" if ml else "two-step"), "same features"
    return [ImrEstimate(label, estimate, estimate - reach, estimate + reach, None, detail)]

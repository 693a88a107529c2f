"""Did selection matter? Decided here, once for a fit; every output reads it.

Where sets of features were chosen or averaged, the correction has a chance, like a feature: the
share of weight that holds it, in competition with every feature and with the index of selection. It
says what chances say (`heckmanfa.text.chances`). A test of lambda after the same rows chose the
features proves nothing, and decides nothing. After maximum likelihood of a linear outcome, two-step
estimates must confirm a yes: a likelihood finds selection where errors are not normal.

Where the features were named beforehand, the test of rho = 0 at 5% decides: rejected, selection
mattered, given that what is excluded does not predict; otherwise it cannot be told. With nothing
excluded it cannot be told either.

What a model says that is not to be relied on is not relied on here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.average_tables import OFTEN_OUTSIDE, has_pseudo_weights
from heckmanfa.results.distribution import LEVEL, Wald, distribution_of
from heckmanfa.results.effects import separating_columns
from heckmanfa.results.facts import Fact
from heckmanfa.results.fit_facts import problems_of
from heckmanfa.results.fit_tests import is_crowded, rho_lr, rho_wald, series_wald
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.form import Form
from heckmanfa.text.chances import CHANCES_BY, Says, says
from heckmanfa.text.wording import NO_EXCLUSION, chance_text, percent

VerdictKind = Literal[
    "yes", "no sign", "unknown", "unreliable", "not weighed", "not asked", "nothing missing"
]


@dataclass(frozen=True)
class AllFeaturesTest:
    """The test of rho = 0 in the model of all features, which no search had a part in."""

    estimate: float
    """coefficient of lambda after two steps, otherwise rho"""
    test: Wald


@dataclass(frozen=True)
class Judgement:
    """Whether selection mattered, and why."""

    kind: VerdictKind
    chance: float | None = None
    """of the correction; None if sets of features were not weighed"""
    rival: Literal["index", ""] = ""
    """what rather takes the correction's place: the index, or nothing in particular"""
    exclusion_named: bool = False
    """whether a feature was kept out of the prediction before these rows were seen; otherwise only
    the normality of the errors tells the correction from the features"""
    test: Wald | None = None
    """of rho = 0, or of the terms of a series, where features were named beforehand"""
    all_features: AllFeaturesTest | None = None
    """the test with all features; None if sets of features were not weighed"""
    doubt: str = ""
    """why the model is not to be relied on, as a clause; empty if nothing is known against it"""

    def doubted(self, why: str) -> Judgement:
        """Return what is left of it if the model is not to be relied on."""
        settled = self.kind in ("yes", "no sign")
        return replace(self, doubt=why, kind="unreliable" if settled else self.kind)


def judgement_of(fit: Fit, weights: AssignmentWeights | str | None = None) -> Judgement:
    """Judge whether selection mattered.

    ``weights`` are those of all sets of features behind a search, or why there are none.
    """
    if fit.probit is None:
        return Judgement("nothing missing")
    if fit.held_rho is not None or fit.rho_is_conditioned:
        return Judgement("not asked")
    if fit.way.is_average:
        averaging = fit.way.averaging
        if not averaging.form.knows_correction:
            return Judgement("unknown", doubt="the likelihood of all features does not tell rho")
        if averaging.mixture.correction != "optional":
            return Judgement("not asked")
    judged = replace(_judged(fit, weights), exclusion_named=names_exclusion(fit))
    why = doubt_of(fit) or _doubt_of_average(fit)
    return judged.doubted(why) if why else judged


def _judged(fit: Fit, weights: AssignmentWeights | str | None) -> Judgement:
    """Judge by the test of rho = 0, or by the chance of the correction."""
    way = fit.way
    if not way.searched:
        return _by_test(fit)
    if way.is_average:
        judged = _by_weights(fit, way.averaging.form, way.averaging.mixture)
        pseudo = Judgement("not weighed", all_features=judged.all_features)
        return pseudo if has_pseudo_weights(fit) else judged
    if isinstance(weights, AssignmentWeights) and weights.correction is not None:
        return _by_weights(fit, weights.form, weights.mixture)
    return Judgement("not weighed")


def names_exclusion(fit: Fit) -> bool:
    """Whether a feature that drives selection was kept out of the prediction beforehand."""
    return not {*fit.driving} <= {*fit.way.allowed}


def lacks_exclusion(fit: Fit) -> bool:
    """Whether one set of features predicts, and nothing but normality tells lambda from it.

    An average has the correction beside all features: its chance allows for that.
    """
    if fit.probit is None or fit.held_rho is not None or fit.way.is_average:
        return False
    return {*fit.driving} <= {*fit.features}


def doubt_of(fit: Fit) -> str:
    """Say why a fit is not to be relied on, in a clause; empty if nothing is known against it."""
    grave = [problem for problem in problems_of(fit) if problem.level == "problem"]
    if grave:
        return clause_of(grave[0])
    if separating_columns(fit):
        return "columns decide the outcome"
    if lacks_exclusion(fit):
        return NO_EXCLUSION
    return "there are too few rows for so many features" if is_crowded(fit) else ""


def clause_of(problem: Fact) -> str:
    """Return a problem as a clause."""
    return f"{problem.name}: {problem.short or problem.value}"


def correction_test(fit: Fit) -> Wald:
    """Test whether a correction is needed, for features named beforehand.

    It is of rho = 0, by likelihood ratio if that is all there is, or of all terms of a series.
    """
    if not fit.family.can("single rho"):
        return series_wald(fit)
    ratio = None if "two steps" in fit.family.supports else rho_lr(fit)
    return rho_wald(fit) if ratio is None or ratio.note else ratio


def _by_test(fit: Fit) -> Judgement:
    """Judge a model of features that were named beforehand."""
    test = correction_test(fit)
    if lacks_exclusion(fit):
        return Judgement("unknown", test=test)
    return Judgement("yes" if test.p_value < LEVEL else "unknown", test=test)


def _doubt_of_average(fit: Fit) -> str:
    """Say what speaks against the chances of an average by a likelihood, in a clause.

    Two-step estimates of the same rows must confirm a yes. A sampler may draw many assignments near
    the bounds of rho; where every assignment is evaluated, these weigh nothing.
    """
    if not fit.way.is_average or fit.way.averaging.form.errors == "two-step":
        return ""
    averaging, mixture = fit.way.averaging, fit.way.averaging.mixture
    other = averaging.two_step_chance
    sure = says(mixture.correction_share[CHANCES_BY]) == "sure"
    if sure and other is not None and says(other) != "sure":
        return f"two-step estimates do not confirm it, with a chance of {chance_text(other)}"
    if mixture.outside < OFTEN_OUTSIDE:
        return ""
    return f"assignments with rho near its bounds carry {percent(mixture.outside, 0)} of the weight"


def _by_weights(fit: Fit, form: Form, mixture: Average) -> Judgement:
    """Judge a search or an average by the chance of the correction."""
    kinds: dict[Says, VerdictKind] = {"sure": "yes", "unknown": "unknown", "no sign": "no sign"}
    chance = mixture.correction_share[CHANCES_BY]
    # It has most of the weight that the correction leaves.
    rival: Literal["index", ""] = ""
    if mixture.index_share[CHANCES_BY] > 0.5 * (1.0 - chance):
        rival = "index"
    return Judgement(kinds[says(chance)], chance, rival, all_features=_all_features(fit, form))


def _all_features(fit: Fit, form: Form) -> AllFeaturesTest | None:
    """Test the correction in the model in which everything predicts; None of several terms."""
    if form.n_corrections > 1:
        return None
    place = form.correction
    estimate, variance = form.estimates[place], form.covariance[place, place]
    test = distribution_of(fit).wald([estimate], np.array([[variance]]))
    shown = estimate if form.errors == "two-step" else np.tanh(estimate)
    return AllFeaturesTest(float(shown), test)

"""Facts of a fitted model: each is decided here, once, from the fit and its diagnostics."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from heckmanfa.fit import Fit
from heckmanfa.model.likelihood import NEAR_ONE, higher_maximum, rho_text
from heckmanfa.results import fit_tests
from heckmanfa.results.cluster_facts import cluster_facts
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.distribution import (
    LEVEL,
    Wald,
    distribution_of,
)
from heckmanfa.results.effects import (
    CONF_LEVEL,
    class_counts,
    naive_slopes,
    own_slopes,
    probability_of,
    rho_of,
    separating_columns,
)
from heckmanfa.results.estimates import tidy
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import UNTESTED, Fact, Level
from heckmanfa.results.logs import logarithm_of
from heckmanfa.results.naming import EffectWords, class_label, held_value, outcome_of, scale_of_log
from heckmanfa.results.tail_facts import tail_facts
from heckmanfa.text.chances import BY
from heckmanfa.text.labels import said, said_all
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import (
    effects,
    number,
    p_equals,
    percent,
    plural,
    points,
    some,
)

# Beyond this, a fit is practically exact.
_NEARLY_ALL = 0.999
# Rules of thumb of the literature on collinearity, and one of ours.
_HIGH_CONDITION = 30.0
_MANY_OUTSIDE = 0.05
# Wald intervals of rho whose end is beyond this lean on the boundary.
_NEAR_BOUNDARY = 0.95
# A mean ratio is far from 1 if predictions are off by so much and chance hardly explains it;
# beyond the last, a ratio that chance may explain rests on a few rows.
_MUCH, _MANY_ERRORS, _VERY_MUCH = 0.05, 2.58, 0.2

_CRITERIA = (
    "AIC and BIC are of the joint likelihood of both equations, and count every parameter that is "
    "estimated."
)


# What can be wrong with a finished fit. ---------------------------------------------------------


def problems_of(fit: Fit) -> list[Fact]:
    """Return the problems of a fitted model, the most serious first.

    A second maximum, few clusters and unequal variances are among them, even if they are only
    cautions.
    """
    facts = [*validity_facts(fit), *cluster_facts(fit)]
    facts += tail_facts(fit)
    known = fit.family.can("single rho") and not np.isnan(fit.rho)
    if known and fit.held_rho is None:
        facts += [rho_fact(fit), *maxima_facts(fit), *guard_facts(fit)]
    return [fact for fact in facts if fact.level != "ok" and fact.case != UNTESTED]


def validity_facts(fit: Fit) -> list[Fact]:
    """Say that iterations did not converge, errors are missing, or the outcome is reproduced."""
    facts = []
    which = fit_tests.unconverged(fit)
    if which:
        other = fit.held_rho is None and fit.family.can("single rho")
        start = "start from another rho, " if other else ""
        cures = {
            "probit": "rescale or leave out extreme features of the selection equation, and look "
            "for one that nearly decides who is selected",
            "likelihood": f"{start}{fit.family.words.likelihood_cure}",
            "plain probit": "rescale or leave out extreme features, and look for one that nearly "
            "decides the outcome",
        }
        cure = "; ".join(cures[name] for name in which)
        why = fit_tests.why_untested(fit)
        facts.append(tell(fit, "convergence", "problem", why, cure=cure))
    if fit_tests.lacks_errors(fit):
        case = "withheld" if fit_tests.withholds_errors(fit) else ""
        facts.append(tell(fit, "standard_errors", "problem", "missing", case=case))
    r2 = fit_tests.r2_of(fit)
    if r2 > _NEARLY_ALL:
        case = "saturated" if fit_tests.is_saturated(fit) else ""
        facts.append(tell(fit, "leakage", "problem", f"{r2:.6f}", case=case))
    return facts


def rho_fact(fit: Fit) -> Fact:
    """Say whether rho is a correlation, inside its bounds, and known, or at which value held."""
    rho = fit.rho
    if fit.held_rho is not None:
        sigma = " and of sigma" if fit.family.has_sigma else ""
        return tell(fit, "rho", "note", held_value(rho), case="held", and_sigma=sigma)
    if not abs(rho) < 1:
        return tell(fit, "rho", "problem", number(rho), case="outside", short=number(rho))
    if abs(rho) > NEAR_ONE:
        value = rho_text(rho)
        return tell(fit, "rho", "problem", value, case="near one", short=value, limit=NEAR_ONE)
    if "flat" in fit.doubts:
        return tell(fit, "rho", "problem", number(rho), case="flat", short=number(rho))
    return tell(fit, "rho", "ok", number(rho), short=f"{number(rho, 2)}, inside (-1, 1)")


def maxima_facts(fit: Fit) -> list[Fact]:
    """Say that the likelihood has two maxima, and which of them the estimates are at."""
    second = fit.second_maximum
    if second is None:
        return []
    height, other = second
    mine = "" if fit.log_likelihood is None else f"log-likelihood {fit.log_likelihood:.4f}, "
    value = (
        f"reported: {mine}rho {rho_text(fit_tests.rho_of_maximum(fit))}; another: log-likelihood "
        f"{height:.4f}, rho {rho_text(other)}"
    )
    if higher_maximum(fit.log_likelihood, second) is None:
        words: dict[str, Any] = {"which": "higher", "ratio": "", "start": "the other"}
        return [tell(fit, "maxima", "caution", value, other=rho_text(other), **words)]
    words = {"which": "lower", "ratio": "", "start": "the higher one"}
    if fit_tests.has_ratio(fit):
        uses = "The likelihood-ratio test of rho = 0 uses the higher one. "
        words |= {"ratio": uses, "start": "that one"}
    return [tell(fit, "maxima", "problem", value, other=rho_text(other), **words)]


def guard_facts(fit: Fit) -> list[Fact]:
    """Say what the guards of a maximum-likelihood fit found; nothing for other fits."""
    guards, facts = fit.guards, []
    hausman, variance = fit_tests.hausman_test(fit), fit_tests.equal_variance_test(fit)
    where = " (in the model of all features)" if fit.way.is_average else ""
    if hausman is not None:
        level, value, short, case = _judged(hausman, "problem")
        if guards is not None and not hausman.note:
            likelihood = guards.two_step - guards.difference
            both = f"{number(guards.two_step)} and {number(likelihood)}; {hausman}"
            value, short = f"beta_H {both}", f"coefficient of lambda {both}"
        facts.append(tell(fit, "hausman", level, value + where, case=case, short=short))
    if variance is not None:
        level, value, _, case = _judged(variance, "caution")
        per_feature = guards is None or guards.per_feature
        what = "the prediction features" if per_feature else "the fitted outcome"
        facts.append(tell(fit, "equal_variance", level, value + where, case=case, what=what))
    return facts


def _judged(test: Wald, rejected: Level) -> tuple[Level, str, str, str]:
    """Return the level of a test at 5%, its value, no short one, and its case."""
    if test.note:
        return "caution", str(test), "", UNTESTED
    return rejected if test.p_value < LEVEL else "ok", str(test), "", ""


# What identifies it. ------------------------------------------------------------------------------


def imr_facts(fit: Fit, measured: Diagnostics) -> list[Fact]:
    """Say how much of lambda the prediction features explain, and how far apart these are."""
    if fit.held_rho is not None:
        # Its coefficient follows from sigma.
        return []
    if not fit.family.has_imr:
        return [tell(fit, "no_imr", "ok", "none")] if len(fit.dependence_terms) < 2 else []
    name = f"lambda on the features with a {BY} share of 50% or more"
    return [
        tell(
            fit,
            "imr_r2",
            "caution" if measured.imr_collinear else "ok",
            f"R2 {measured.imr_r2:.4f}, VIF {measured.imr_vif:.2f}",
            name=name if measured.averaged else "",
            claims=measured.n_excluded > 0,
            vif=number(measured.imr_vif, 3),
        )
    ]


def condition_fact(fit: Fit, measured: Diagnostics) -> Fact:
    """Say how far apart the columns of the prediction equation are."""
    condition = measured.condition_number
    if condition < _HIGH_CONDITION:
        return tell(fit, "condition", "ok", f"{condition:.1f}")
    value = number(condition, 3)
    return tell(fit, "condition", "caution", value, short=f"condition number {value}")


def range_facts(fit: Fit, measured: Diagnostics) -> list[Fact]:
    """Give the range of lambda in the fit, and the share of the rows given outside it."""
    first, last = measured.index_range
    ends = f"{number(first)} to {number(last)}"
    if fit.family.has_imr:
        value = "{} to {}".format(*map(number, measured.imr_range))
        fitted = tell(fit, "imr_range", "ok", value, low=number(first), high=number(last))
    else:
        chances = " to ".join(percent(float(ndtr(end))) for end in (first, last))
        name = "range of the selection index"
        fitted = tell(fit, "imr_range", "ok", ends, case="index", name=name, chances=chances)
    share = measured.share_outside
    if share is None:
        return [fitted]
    value = percent(share)
    if measured.n_without_index:
        value += f" ({measured.n_without_index} rows lack a feature and are not counted)"
    level: Level = "ok" if share <= _MANY_OUTSIDE else "caution"
    return [fitted, tell(fit, "outside_range", level, value, share=percent(share, 0))]


# rho. ---------------------------------------------------------------------------------------------


def rho_facts(fit: Fit, measured: Diagnostics, *, profiled: bool) -> list[Fact]:
    """Judge rho, the maxima of the likelihood, and the tests of rho = 0, if there is one rho.

    ``profiled`` is whether a profile of the likelihood, which knows more about its maxima, is told
    as well.
    """
    if not fit.family.can("single rho"):
        return []
    first, maxima = rho_fact(fit), maxima_facts(fit)
    if fit.held_rho is not None:
        return [first]
    guards = measured.hausman, measured.equal_variance
    rejected = any(test is not None and test.p_value < LEVEL for test in guards)
    doubtful = first.level == "problem" or bool(maxima) or profiled or rejected
    facts = [first, *([] if profiled else maxima)]
    higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    for key, test in (("rho_test", measured.rho_wald), ("rho_lr_test", measured.rho_lr)):
        if test is None:
            continue
        case, level = _rho_test(test, measured, doubtful=doubtful)
        which, rho = ("lower", measured.maximum_rho)
        if higher is not None and test is measured.rho_lr:
            which, rho = "higher", higher[1]
        maximum = f" This is about the {which} maximum, rho {rho_text(rho)}."
        words: dict[str, Any] = {"rho": number(fit.rho, 3), "p": p_equals(test.p_value)}
        words["maximum"] = "" if higher is None else maximum
        claims = test is (measured.rho_lr or measured.rho_wald)
        facts.append(tell(fit, key, level, str(test), case=case, claims=claims, **words))
    return facts


def _rho_test(test: Wald, measured: Diagnostics, *, doubtful: bool) -> tuple[str, Level]:
    """Return the case and the level of a test of rho = 0."""
    level: Level = "caution" if doubtful else "ok"
    rejected = test.p_value < LEVEL
    if test.note:
        return UNTESTED, "caution"
    if measured.searched:
        return "searched", "caution" if rejected else level
    if not rejected:
        return "not rejected", level
    if not measured.n_excluded:
        return "rejected, no exclusion", "caution"
    return "rejected, doubtful" if doubtful else "rejected", level


# Classes, and logarithms. -------------------------------------------------------------------------


def class_facts(fit: Fit) -> list[Fact]:
    """Return what only a model of probabilities is asked; nothing for other models."""
    known = probability_of(fit)
    if known is None:
        return []
    facts = [*_events(fit), *_separation(fit)]
    n, deciding = fit.row_counts.get("left_out_separation", 0), known.deciding
    if n:
        others = [column for column in fit.dropped if column not in deciding]
        which = {"outcome decided by": deciding, "columns left out": others}
        parts = [plural(n, "row") + " left out"]
        for words, columns in which.items():
            names = [said(str(name)) for name in fit.spec.feature_names(columns)]
            parts += [f"{words} {some(names)}"] if names else []
        decided = "selection or outcome" if deciding else "selection"
        facts.append(tell(fit, "decided_rows", "caution", "; ".join(parts), decided=decided))
    return [*facts, *_moved(fit)]


def events_per_coefficient(fit: Fit) -> float:
    """Selected rows of the rarer class, for each coefficient that predicts."""
    positive, negative = class_counts(fit)
    rarer = min(positive or 0.0, negative or 0.0)
    return float(rarer) / len(fit.features) if fit.features else float("inf")


def _events(fit: Fit) -> list[Fact]:
    """Compare the rows of the rarer class with the number of coefficients."""
    if fit.classes is None or not fit.features:
        return []
    positive, negative = (count or 0 for count in class_counts(fit))
    n = min(positive, negative)
    each = events_per_coefficient(fit)
    label = shown(class_label(fit.classes[1 if positive <= negative else 0]), 40)
    amount = f"{each:,.0f}" if each >= 100.0 else f"{each:.1f}"
    value = (
        f"{n:,.10g} selected with {label} for {plural(len(fit.features), 'coefficient')}, "
        f"{amount} each"
    )
    level: Level = "caution" if each < fit_tests.ENOUGH_ROWS else "ok"
    short = f"{amount} for each coefficient"
    return [tell(fit, "events", level, value, short=short, enough=fit_tests.ENOUGH_ROWS)]


def _separation(fit: Fit) -> list[Fact]:
    """Name the columns that decide the outcome among the selected rows."""
    names = tuple(str(name) for name in fit.spec.feature_names(separating_columns(fit)))
    return (
        [tell(fit, "outcome_separation", "problem", some(said_all(names)), names=names)]
        if names
        else []
    )


def _moved(fit: Fit) -> list[Fact]:
    """Say how far the correction moves the average slopes of the probability."""
    if fit.probit is None or not fit.features:
        return []
    own, covariance = own_slopes(fit)
    naive, _ = naive_slopes(fit)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.abs(own - naive) / np.sqrt(np.diag(covariance))
    if not np.isfinite(moved).any():
        return []
    most = int(np.nanargmax(moved))
    mine, other = points(float(own[most]), float(naive[most]))
    value = (
        f"{said(fit.labels[fit.equation[most]])}: {mine} percentage points with the correction, "
        f"{other} without; {number(float(moved[most]), 2)} standard errors apart"
    )
    target = EffectWords.of(fit, outcome_of(fit)).target
    return [tell(fit, "naive_probit", "ok", value, target=str(target))]


def boundary_facts(fit: Fit) -> list[Fact]:
    """Say that the interval of rho leans on the boundary, where rho is all that is corrected by."""
    # Other facts say of such a rho that it is not estimated at all.
    if fit.family.has_imr or fit.probit is None or not fit.converged or fit.doubts:
        return []
    if not fit.family.can("single rho"):
        return []
    rho = rho_of(fit, tidy(fit, CONF_LEVEL))
    if not rho.has_interval or max(-rho.low, rho.high) <= _NEAR_BOUNDARY:
        return []
    value = "{} to {}".format(*effects(rho.low, rho.high))
    return [tell(fit, "rho_near_boundary", "caution", value)]


def ratio_facts(ratio: tuple[float, float] | None, best: str = "") -> list[Fact]:
    """Judge the mean over the selected rows of the outcome over its mean given selection.

    An average has none of its own. ``best`` names its best set, if the ratio is of that model.
    """
    if ratio is None:
        return []
    level: Level = "ok"
    case, apart = "", abs(ratio[0] - 1.0)
    if not np.isfinite(ratio[0]) or (apart > _MUCH and not apart <= _MANY_ERRORS * ratio[1]):
        level = "caution"
    elif apart > _VERY_MUCH:
        level, case = "caution", "few rows"
    value = ratio_text(ratio) + (", of the best set" if best else "")
    whose = f"This is of the best set alone, {best}: an average has none. " if best else ""
    return [tell(None, "transform_ratio", level, value, case=case, whose=whose)]


def ratio_text(ratio: tuple[float, float]) -> str:
    """Format a mean ratio with its standard error."""
    value, error = ratio
    return f"{value:.3f} (s.e. {error:.3f})"


# What the numbers are. ----------------------------------------------------------------------------


def note_facts(fit: Fit) -> list[Fact]:
    """Say what standard errors, criteria and scales are of."""
    facts = []
    if fit.dropped:
        names = tuple(map(str, fit.spec.feature_names(fit.dropped)))
        facts.append(tell(fit, "dropped_features", "caution", names=names))
    estimated = fit.way.is_corrected and not fit.way.is_average and fit.held_rho is None
    if estimated and fit.spec.method == "two-step":
        facts.append(tell(fit, "two_step_errors", "note"))
    elif estimated and fit.family.likelihood_terms and not fit.rho_is_conditioned:
        facts.append(tell(fit, "rho_scale", "note"))
    if fit.probit is not None and fit.family.has_sigma:
        case = "" if fit.log_likelihood is None else "likelihood"
        if fit.log_likelihood is None and fit.held_rho is not None:
            case = "held"
        facts.append(tell(fit, "adjusted_r2", "note", case=case, criteria=_CRITERIA))
    averaged = fit.way.is_average
    if fit.probit is not None and fit.spec.errors_differ and (averaged or fit.search is not None):
        case = "averaged" if averaged else ""
        facts.append(tell(fit, "classical_beside", "note", case=case))
    if fit.spec.outcome_transform is not None:
        log = logarithm_of(fit, outcome_of(fit))
        assert log is not None
        outcome = said(outcome_of(fit))
        facts.append(tell(fit, "log_scale", "note", outcome=outcome, percents=scale_of_log(log)))
    facts += boundary_facts(fit)
    if fit.family.reads_labels:
        case = "ordered" if fit.family.is_ordered else ""
        facts.append(tell(fit, "slopes", "note", case=case))
        facts.append(tell(fit, "criteria", "note", criteria=_CRITERIA))
    notes = distribution_of(fit).notes(joint=True)
    return [*facts, *(tell(fit, "reference_distribution", "note", note) for note in notes)]

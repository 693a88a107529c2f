"""What can be wrong with a finished fit: each problem is decided and worded here, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.model.covariance import is_classical
from heckmanfa.model.likelihood import NEAR_ONE, higher_maximum, rho_text
from heckmanfa.model.two_step import fit_least_squares
from heckmanfa.results.document import Finding, Verdict
from heckmanfa.results.reference import (
    FEW_CLUSTERS,
    LEVEL,
    Reference,
    Wald,
    n_parameters,
    reference_of,
)
from heckmanfa.text.wording import number

# Beyond this, a fit is practically exact.
_NEARLY_ALL = 0.999

_USE_TWO_STEP = (
    "Robust standard errors do not remove that. Use method='two-step' with cov_type='robust'."
)

ENOUGH_ROWS = 10
"""rows of the rarer kind for each feature, below which a probit's coefficients are too large
(Peduzzi et al., 1996)"""
MAXIMA = "maxima of the likelihood"
"""name of the finding about them"""


def unconverged(fit: Fit) -> tuple[str, ...]:
    """Name the iterations of a fit that did not converge.

    Where a column decides a binary outcome there is nothing to converge to; another finding says
    so.
    """
    if fit.converged or (fit.binary is not None and fit.binary.separated):
        return ()
    if fit.probit is None:
        return ("plain probit",)
    return ("likelihood",) if fit.probit.converged else ("probit",)


def why_untested(fit: Fit) -> str:
    """Say why a fit that did not converge cannot be tested; empty after convergence."""
    return _describe(unconverged(fit))


def _describe(which: Sequence[str]) -> str:
    return f"the {' and the '.join(which)} did not converge" if which else ""


def about_convergence(
    which: Sequence[str], *, binary: bool = False, held: bool = False
) -> list[Finding]:
    """Say which iterations did not converge, and what to do about it."""
    if not which:
        return []
    start = "" if held else "start from another rho, or " if binary else "start from another rho, "
    two_steps = "" if binary else "use the two-step estimates, or "
    cures = {
        "probit": "rescale or leave out extreme features of the selection equation, and look for "
        "one that nearly decides who is selected",
        "likelihood": f"{start}{two_steps}predict with fewer features",
        "plain probit": "rescale or leave out extreme features, and look for one that nearly "
        "decides the outcome",
    }
    if binary:
        cures["likelihood"] += ", and look for one that nearly decides the outcome"
    words = (
        "The estimates are where the iteration stopped; do not trust them: "
        f"{'; '.join(cures[name] for name in which)}."
    )
    return [Finding("convergence", "convergence", _describe(which), "problem", words)]


def about_errors(missing: bool, *, withheld: bool = False) -> list[Finding]:
    """Say that standard errors are missing, or withheld: their estimates say little about rho."""
    words = (
        "The variance of an estimate is negative or not a number: the model is hardly identified. "
        "Look for a stronger exclusion, or predict with fewer features."
    )
    if withheld:
        words = (
            "The curvature of the likelihood at these estimates does not give standard errors of "
            "prediction and rho, so there are none. Those of the selection equation are of its "
            "probit alone. Look for a stronger exclusion, or predict with fewer features; see "
            "profile() for intervals."
        )
    finding = Finding("standard_errors", "standard errors", "missing", "problem", words)
    return [finding] if missing else []


def about_rho(rho: float, *, binary: bool = False, flat: bool = False) -> Finding:
    """Say whether rho is a correlation, inside its bounds, and known.

    ``flat`` is whether the likelihood hardly depends on it.
    """
    verdict: Verdict = "problem"
    value, short, case = number(rho), number(rho), ""
    if not abs(rho) < 1:
        words = "Outside (-1, 1): the model does not fit, or is hardly identified."
    elif abs(rho) > NEAR_ONE:
        value, case = rho_text(rho), "near one"
        short = value
        words = (
            f"Beyond {NEAR_ONE}, practically one, which usually means that the model does "
            "not fit: look for outliers and skewness in the outcome (take its logarithm?), look "
            "for a stronger exclusion, and compare with the two-step estimates. Do not rely on its "
            "standard error."
        )
        if binary:
            words = (
                f"Beyond {NEAR_ONE}, practically one: the likelihood may rise up to the boundary, "
                "and the model is hardly identified. Look for a stronger exclusion, or let fewer "
                "features predict. See profile_rho(). Standard errors would be those of a known "
                "rho, and are not given."
            )
    elif flat:
        case, words = (
            "flat",
            "The likelihood is flat in rho: the data do not tell it from other values. Look for a "
            "stronger exclusion, or let fewer features predict. See profile_rho(). Standard errors "
            "are not given.",
        )
    else:
        verdict, words = "ok", "Inside (-1, 1)."
        short = f"{number(rho, 2)}, inside (-1, 1)"
    return Finding("rho", "rho", value, verdict, words, case=case, short=short)


def about_maxima(
    log_likelihood: float | None,
    rho: float,
    second: tuple[float, float] | None,
    *,
    ratio: bool,
) -> list[Finding]:
    """Say that the likelihood has two maxima, and which of them the estimates are at.

    ``log_likelihood`` and ``rho`` are those of the estimates, ``second`` those of the other
    maximum. ``ratio`` is whether a likelihood-ratio test of rho = 0 is reported, which uses the
    higher one.
    """
    if second is None:
        return []
    height, other = second
    mine = "" if log_likelihood is None else f"log-likelihood {log_likelihood:.4f}, "
    value = (
        f"reported: {mine}rho {rho_text(rho)}; another: log-likelihood {height:.4f}, "
        f"rho {rho_text(other)}"
    )
    reported, uses, start = "higher", "", "the other"
    verdict: Verdict = "caution"
    if higher_maximum(log_likelihood, second) is not None:
        reported, verdict, start = "lower", "problem", "that one" if ratio else "the higher one"
        uses = "The likelihood-ratio test of rho = 0 uses the higher one. " if ratio else ""
    words = (
        f"The estimates are at the {reported} of two maxima. {uses}A start of {rho_text(other)} "
        f"fits {start}; report both. One near |rho| = 1 is often a sign of a model that does not "
        "fit."
    )
    return [Finding("maxima", MAXIMA, value, verdict, words)]


def about_r2(r2: float, *, saturated: bool = False) -> list[Finding]:
    """Say that the features reproduce the outcome almost exactly."""
    if not r2 > _NEARLY_ALL:
        return []
    words = (
        "The features reproduce the outcome almost exactly. Look for one that was made from the "
        "outcome, or is known only with it, and leave it out."
    )
    case = ""
    if saturated:
        case, words = (
            "saturated",
            "There are as many coefficients as rows, so any outcome would be reproduced: use fewer "
            "features.",
        )
    return [Finding("leakage", "R2 of the outcome", f"{r2:.6f}", "problem", words, case=case)]


def about_clusters(n_clusters: int | None, parameters: int) -> list[Finding]:
    """Say how many clusters a covariance rests on, and whether they are enough."""
    if n_clusters is None:
        return []
    verdict, words = _enough(n_clusters, parameters)
    words = f"{words} Tests and intervals use {Reference(n_clusters).name}.".strip()
    value = f"{n_clusters:,}; {parameters:,} parameters"
    case = "too few" if verdict == "problem" else ""
    return [Finding("clusters", "clusters", value, verdict, words, case=case)]


def clusters_note(n_clusters: int, parameters: int) -> str:
    """Say that clusters are few; another note names the distribution that tests use."""
    head = f"There are {n_clusters:,} clusters for {parameters:,} parameters."
    return f"{head} {_enough(n_clusters, parameters)[1]}"


def _enough(n_clusters: int, parameters: int) -> tuple[Verdict, str]:
    """Judge a number of clusters."""
    # The clusters' total scores sum to zero: they span one dimension less than there are clusters.
    if n_clusters <= parameters:
        return (
            "problem",
            f"With no more clusters than parameters, the covariance has rank {n_clusters - 1} at "
            "most, and no more coefficients than that can be tested together. Do not rely on "
            "these standard errors.",
        )
    if n_clusters < FEW_CLUSTERS:
        return (
            "caution",
            f"With fewer than {FEW_CLUSTERS} clusters, standard errors tend to be too small, and "
            "tests reject too often.",
        )
    return "ok", ""


Basis = Literal["exclusions", "normality", "search"]
"""what a test of rho = 0 rests on: exclusions named beforehand, none, or what a search chose"""


def about_rho_test(
    key: str, name: str, test: Wald, *, doubtful: bool, which: str, basis: Basis
) -> Finding:
    """Say what a test of rho = 0 found, if it was made.

    ``doubtful`` is whether rho is near one or outside its bounds, or the likelihood has two
    maxima: a model that does not fit may then reject rho = 0. ``which`` is a sentence on the
    maximum that the test is about, or empty; ``basis`` is what the test rests on.
    """
    if test.note:
        words = "Whether there is selection on unobservables was not tested."
        return Finding(key, name, str(test), "caution", words, case="untested")
    at_level = f"at {100 * LEVEL:g}%"
    if basis == "search":
        words = (
            "The data chose the exclusions, so this proves nothing: the chance that selection "
            "mattered decides."
        )
        rejected = test.p_value < LEVEL or doubtful
        return Finding(key, name, str(test), "caution" if rejected else "ok", words + which)
    if not test.p_value < LEVEL:
        words = f"rho = 0 is not rejected {at_level}, which does not show that it is 0."
    elif basis == "normality":
        words = f"rho = 0 is rejected {at_level}, but nothing is excluded: only normality says so."
        return Finding(key, name, str(test), "caution", words + which)
    elif doubtful:
        words = (
            f"rho = 0 is rejected {at_level}, which may come from a model that does not fit rather "
            "than from selection on unobservables."
        )
    else:
        words = f"rho = 0 is rejected {at_level}, if what is excluded does not predict."
    return Finding(key, name, str(test), "caution" if doubtful else "ok", words + which)


def about_hausman(test: Wald, two_step: float, likelihood: float) -> Finding:
    """Say whether beta_H of maximum likelihood agrees with the two-step estimate."""
    name = "two-step against ML"
    verdict: Verdict = "caution"
    if test.note:
        words = "Whether maximum likelihood is biased was not tested."
        return Finding("hausman", name, str(test), verdict, words, case="untested")
    both = f"{number(two_step)} and {number(likelihood)}; {test}"
    value, short = f"beta_H {both}", f"coefficient of lambda {both}"
    if not test.p_value < LEVEL:
        verdict, words = "ok", "The two estimates of beta_H differ by no more than chance."
    else:
        verdict = "problem"
        words = (
            "The two estimates of beta_H differ by more than chance: maximum likelihood is "
            "biased, and its slopes with it. The errors are not normal, or their variance "
            f"changes. {_USE_TWO_STEP}"
        )
    return Finding("hausman", name, value, verdict, words, short=short)


def about_equal_variance(test: Wald, *, per_feature: bool) -> Finding:
    """Say whether the outcome's variance depends on the features, beyond selection.

    ``per_feature`` is whether every prediction feature was tested.
    """
    name = "equal variance, outcome"
    what = "the prediction features" if per_feature else "the fitted outcome"
    verdict: Verdict = "caution"
    if test.note:
        words = "Whether the outcome's variance changes was not tested."
    elif not test.p_value < LEVEL:
        verdict = "ok"
        words = f"The variance is not seen to change with {what} or the selection index."
    else:
        words = (
            f"Rejected at {100 * LEVEL:g}%: the variance changes with {what} or the selection "
            "index, which biases the slopes and beta_H of maximum likelihood. "
            f"{_USE_TWO_STEP}"
        )
    case = "untested" if test.note else ""
    return Finding("equal_variance", name, str(test), verdict, words, case=case)


def hausman_test(fit: Fit) -> Wald | None:
    """Test that two-step and maximum likelihood estimate the same beta_H; None if not known."""
    guards, why_not = fit.guards, _why_unguarded(fit)
    if guards is None:
        return Wald(float("nan"), 1, float("nan"), note=why_not) if why_not else None
    return reference_of(fit).wald([guards.difference], np.array([[guards.variance]]), why_not)


def equal_variance_test(fit: Fit) -> Wald | None:
    """Test that the outcome's variance is the same for all rows; None if not known."""
    guards, why_not = fit.guards, _why_unguarded(fit)
    if guards is None or not len(guards.spread):
        why_not = why_not or ("" if guards is None else "the variance of the test is not known")
        return Wald(float("nan"), 1, float("nan"), note=why_not) if why_not else None
    return reference_of(fit).wald(guards.spread, np.eye(len(guards.spread)), why_not)


def guard_findings(fit: Fit) -> list[Finding]:
    """Return what the guards of a maximum-likelihood fit found; empty for other fits."""
    return [finding for _, finding in _guards(fit)]


def _guards(fit: Fit) -> list[tuple[Wald, Finding]]:
    hausman, variance, guards = hausman_test(fit), equal_variance_test(fit), fit.guards
    found = []
    if hausman is not None:
        both = (np.nan, np.nan)
        if guards is not None:
            both = guards.two_step, guards.two_step - guards.difference
        found.append((hausman, about_hausman(hausman, *both)))
    if variance is not None:
        per_feature = guards is None or guards.per_feature
        found.append((variance, about_equal_variance(variance, per_feature=per_feature)))
    if fit.average is None:
        return found
    where = "in the model of all features"
    return [(test, replace(item, value=f"{item.value} ({where})")) for test, item in found]


def _why_unguarded(fit: Fit) -> str:
    """Say why a maximum-likelihood fit cannot be tested; empty if it can, or is another fit."""
    if fit.spec.method != "ml" or fit.probit is None or fit.is_binary or fit.held_rho is not None:
        return ""
    unknown = "the covariance of the estimates is not known" if lacks_errors(fit) else ""
    return why_untested(fit) or unknown


def has_ratio(fit: Fit) -> bool:
    """Whether a likelihood-ratio test of rho = 0 can be reported for a fitted model."""
    return (
        fit.log_likelihood is not None
        and fit.probit is not None
        and is_classical(fit.spec.cov_type)
        and fit.held_rho is None
        and not fit.rho_is_conditioned
    )


def problems_of(fit: Fit) -> list[Finding]:
    """Return the problems of a fitted model, the most serious first.

    A second maximum, few clusters and unequal variances are among them, even if they are only
    cautions.
    """
    found = [
        *about_convergence(unconverged(fit), binary=fit.is_binary, held=fit.held_rho is not None),
        *about_errors(lacks_errors(fit), withheld=withholds_errors(fit)),
        *about_r2(r2_of(fit), saturated=is_saturated(fit)),
        *about_clusters(fit.n_clusters, n_parameters(fit)),
    ]
    if not np.isnan(fit.rho) and fit.held_rho is None:
        found.append(about_rho(fit.rho, binary=fit.is_binary, flat="flat" in fit.doubts))
        found += about_maxima(
            fit.log_likelihood, rho_of_maximum(fit), fit.second_maximum, ratio=has_ratio(fit)
        )
        found += [finding for test, finding in _guards(fit) if test.p_value < LEVEL]
    return [finding for finding in found if finding.verdict != "ok"]


def is_crowded(fit: Fit) -> bool:
    """Whether the selection equation has too many features for its rows."""
    return rows_per_feature(fit) < ENOUGH_ROWS


def rows_per_feature(fit: Fit) -> float:
    """Rows of the rarer kind, selected or not, for each feature of the selection equation."""
    if fit.probit is None or not len(fit.probit.features):
        return float("inf")
    counts = fit.row_counts
    return min(counts["selected"], counts["unselected"]) / len(fit.probit.features)


def r2_of(fit: Fit) -> float:
    """R^2 of the prediction equation among the selected rows, lambda included if it is there.

    A binary outcome has none.
    """
    if fit.is_binary:
        return float("nan")
    if fit.probit is None:
        return fit_least_squares(fit.moments, fit.features).r2
    if fit.held_rho is not None:
        m = fit.moments.n_selected
        return 1.0 - (1.0 - fit.adjusted_r2) * (m - len(fit.features) - 1.0) / (m - 1.0)
    return float(fit.moments.solve(np.asarray(fit.support, dtype=bool)).r2)


def is_saturated(fit: Fit) -> bool:
    """Whether there are as many prediction coefficients as rows with an outcome, or more."""
    return bool(fit.row_counts["selected"] <= np.count_nonzero(fit.support) + 1)


def lacks_errors(fit: Fit) -> bool:
    """Whether some variance of a selection model is unknown."""
    if fit.average is not None:
        # Averages have intervals, and no covariance in the fit.
        return False
    return fit.probit is not None and not np.all(np.diag(fit.covariance) >= 0)


def withholds_errors(fit: Fit) -> bool:
    """Whether the likelihood says too little about rho for standard errors but of selection."""
    own = np.array([equation == "selection" for equation, _ in fit.terms], dtype=bool)
    known = np.diag(fit.covariance) >= 0
    return bool(fit.doubts) and lacks_errors(fit) and bool(np.all(known[own]))


def rho_of_maximum(fit: Fit) -> float:
    """Return rho at the maximum that was reached; honest estimates move away from it."""
    return fit.rho if fit.params is None else float(np.tanh(fit.params[-1]))

"""What can be wrong with a fit that did end: each problem is decided and worded here, once.

Diagnostics, summary, command line, JSON and report take it from here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.model.covariance import is_classical
from heckmanfa.model.least_squares import fit_least_squares
from heckmanfa.model.maxima import higher_maximum, rho_text
from heckmanfa.results.document import Finding, Verdict
from heckmanfa.results.reference import FEW_CLUSTERS, LEVEL, Reference, Wald, n_parameters

# Beyond these a rho is as good as one, and a fit as good as exact.
_NEAR_ONE = 0.98
_NEARLY_ALL = 0.999

MAXIMA = "maxima of the likelihood"
"""name of the line about them"""


def is_near_one(rho: float) -> bool:
    """Whether a rho inside (-1, 1) is so near to its bounds that it is no estimate."""
    return bool(_NEAR_ONE < abs(rho) < 1)


def unconverged(fit: Fit) -> tuple[str, ...]:
    """Name the iterations of a fit that did not converge."""
    if fit.converged:
        return ()
    if fit.probit is not None and not fit.probit.converged:
        return ("probit",)
    return ("likelihood",)


def stopped(fit: Fit) -> str:
    """Say why nothing can be tested where the iteration stopped; empty after convergence."""
    return _did_not(unconverged(fit))


def _did_not(which: Sequence[str]) -> str:
    return f"the {' and the '.join(which)} did not converge" if which else ""


def about_convergence(which: Sequence[str]) -> Finding | None:
    """Say which iterations did not converge, and what to do about it."""
    if not which:
        return None
    cures = {
        "probit": "rescale or leave out extreme features of the selection equation, and look for "
        "one that nearly decides who is selected",
        "likelihood": "start from another rho, use the two-step estimates, or predict with fewer "
        "features",
    }
    return Finding(
        "convergence",
        "convergence",
        _did_not(which),
        "problem",
        "The estimates are where the iteration stopped, and are not to be trusted: "
        f"{'; '.join(cures[one] for one in which)}.",
    )


def about_errors(missing: bool) -> Finding | None:
    """Say that standard errors could not be given."""
    if not missing:
        return None
    return Finding(
        "standard_errors",
        "standard errors",
        "missing",
        "problem",
        "The variance of an estimate is negative or not a number: the model is hardly identified. "
        "Look for a stronger exclusion, or predict with fewer features.",
    )


def about_rho(rho: float) -> Finding:
    """Say whether rho is a correlation, and inside its bounds."""
    verdict: Verdict
    if not abs(rho) < 1:
        verdict, words = (
            "problem",
            "Outside (-1, 1): the model does not fit, or is hardly identified.",
        )
    elif is_near_one(rho):
        verdict, words = (
            "problem",
            f"Beyond {_NEAR_ONE}, as good as one, which is most often a sign of a model that does "
            "not fit: look for outliers and skewness in the outcome (take its logarithm?), look "
            "for a stronger exclusion, and compare with the two-step estimates. Do not rely on its "
            "standard error.",
        )
    else:
        verdict, words = "ok", "Inside (-1, 1)."
    value = rho_text(rho) if is_near_one(rho) else f"{rho:.4f}"
    return Finding("rho", "rho", value, verdict, words)


def about_maxima(
    log_likelihood: float | None,
    rho: float,
    second: tuple[float, float] | None,
    *,
    ratio: bool,
) -> Finding | None:
    """Say that the likelihood has two maxima, and which of them the estimates are at.

    Parameters
    ----------
    log_likelihood : float or None
    rho : float
        Where the estimates are.
    second : (float, float) or None
        Log-likelihood and rho of the other maximum.
    ratio : bool
        Whether a likelihood-ratio test of rho = 0 is reported, which uses the higher one.

    Returns
    -------
    Finding or None
    """
    if second is None:
        return None
    height, other = second
    mine = "" if log_likelihood is None else f"log-likelihood {log_likelihood:.4f}, "
    value = (
        f"reported: {mine}rho {rho_text(rho)}; another: log-likelihood {height:.4f}, "
        f"rho {rho_text(other)}"
    )
    near = " One near |rho| = 1 is often a sign of a model that does not fit."
    if higher_maximum(log_likelihood, second) is None:
        return Finding(
            "maxima",
            MAXIMA,
            value,
            "caution",
            "The estimates are at the higher of two maxima. A start of "
            f"{rho_text(other)} fits the other; report both.{near}",
        )
    return Finding(
        "maxima",
        MAXIMA,
        value,
        "problem",
        "The estimates are at the lower of two maxima. "
        + ("The likelihood-ratio test of rho = 0 uses the higher one. " if ratio else "")
        + f"A start of {rho_text(other)} fits {'that one' if ratio else 'the higher one'}; "
        f"report both.{near}",
    )


def about_r2(r2: float, *, saturated: bool = False) -> Finding | None:
    """Say that the features reproduce the outcome almost exactly."""
    if not r2 > _NEARLY_ALL:
        return None
    return Finding(
        "leakage",
        "R2 of the outcome",
        f"{r2:.6f}",
        "problem",
        "There are as many coefficients as rows, so any outcome would be reproduced: use "
        "fewer features."
        if saturated
        else "The features reproduce the outcome almost exactly. Look for one that was made from "
        "the outcome, or is known only with it, and leave it out.",
    )


def about_clusters(n_clusters: int | None, parameters: int) -> Finding | None:
    """Say how many clusters a covariance rests on, and whether they are enough."""
    if n_clusters is None:
        return None
    verdict, words = _enough(n_clusters, parameters)
    law = f"Tests and intervals are by {Reference(n_clusters).name}."
    value = f"{n_clusters:,}; {parameters:,} parameters"
    return Finding("clusters", "clusters", value, verdict, f"{words} {law}" if words else law)


def clusters_note(n_clusters: int, parameters: int) -> str:
    """Say in whole sentences that clusters are few; another note says what tests go by."""
    head = f"There are {n_clusters:,} clusters for {parameters:,} parameters."
    return f"{head} {_enough(n_clusters, parameters)[1]}"


def _enough(n_clusters: int, parameters: int) -> tuple[Verdict, str]:
    """Verdict on a number of clusters, and what to say of it."""
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


def about_exclusions(
    names: str, n_excluded: int, test: Wald, *, strong: bool, clustered: bool
) -> Finding:
    """Say whether the excluded features drive selection, as far as that was tested.

    Parameters
    ----------
    names : str
        The features, in words.
    n_excluded : int
    test : Wald
        That none of them has a coefficient in the selection equation.
    strong : bool
        Whether the test says that they drive selection, for their number.
    clustered : bool
        Whether a line on clusters follows.

    Returns
    -------
    Finding
    """
    one = n_excluded == 1
    they, drive = ("it", "it drives") if one else ("they", "they drive")
    if test.note:
        # The line on clusters says why a covariance from few of them tests little.
        see = ": see the line on clusters" if clustered and test.lacks_clusters else ""
        words = f"Whether {drive} selection was not tested{see}."
    elif strong:
        words = (
            f"{'It drives' if one else 'Together they drive'} selection. That {they} "
            f"{'does' if one else 'do'} not predict cannot be tested here."
        )
    elif not test.p_value < LEVEL:
        words = f"There is no evidence that {drive} selection: little identifies the model."
    elif one:
        words = "It drives selection weakly: little identifies the model."
    else:
        words = "For their number they drive selection weakly: little identifies the model."
    value = f"{n_excluded} ({names}); {test}"
    return Finding("exclusions", "excluded features", value, "ok" if strong else "caution", words)


def about_rho_test(key: str, name: str, test: Wald, *, doubtful: bool, which: str) -> Finding:
    """Say what a test of rho = 0 found, if it was made.

    Parameters
    ----------
    key, name : str
        Key and name of the finding.
    test : Wald
    doubtful : bool
        Whether rho is near one or outside its bounds, or the likelihood has two maxima: what
        rejects rho = 0 may then be a model that does not fit.
    which : str
        A sentence on the maximum that it is about, or nothing.

    Returns
    -------
    Finding
    """
    if test.note:
        words = "Whether there is selection on unobservables was not tested."
        return Finding(key, name, str(test), "caution", words)
    if not test.p_value < LEVEL:
        words = (
            f"No selection on unobservables is found at {100 * LEVEL:g}%; it may still be there."
        )
    elif doubtful:
        words = (
            f"rho = 0 is rejected at {100 * LEVEL:g}%, which may come from a model that does not "
            "fit rather than from selection on unobservables."
        )
    else:
        words = f"Selection on unobservables is found at {100 * LEVEL:g}%."
    return Finding(key, name, str(test), "caution" if doubtful else "ok", words + which)


def has_ratio(fit: Fit) -> bool:
    """Whether a likelihood-ratio test of rho = 0 can be reported of a fitted model."""
    return (
        fit.log_likelihood is not None
        and fit.probit is not None
        and is_classical(fit.spec.cov_type)
        and not fit.rho_is_conditioned
    )


def problems_of(fit: Fit) -> list[Finding]:
    """Return what is wrong with a fitted model, the gravest first.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    list of Finding
        Problems, and the cautions of a second maximum and of few clusters.
    """
    found = [about_convergence(unconverged(fit)), about_errors(lacks_errors(fit))]
    found.append(about_r2(r2_of(fit), saturated=is_saturated(fit)))
    found.append(about_clusters(fit.n_clusters, n_parameters(fit)))
    if not np.isnan(fit.rho):
        found += [
            about_rho(fit.rho),
            about_maxima(
                fit.log_likelihood,
                rho_of_maximum(fit),
                fit.second_maximum,
                ratio=has_ratio(fit),
            ),
        ]
    return [one for one in found if one is not None and one.verdict != "ok"]


def r2_of(fit: Fit) -> float:
    """R^2 of the prediction equation among the selected rows, lambda included where it is."""
    if fit.probit is None:
        return fit_least_squares(fit.moments, fit.features).r2
    return float(fit.moments.solve(np.asarray(fit.support, dtype=bool)).r2)


def is_saturated(fit: Fit) -> bool:
    """Whether there are as many prediction coefficients as rows with an outcome, or more."""
    return bool(fit.row_counts["selected"] <= np.count_nonzero(fit.support) + 1)


def lacks_errors(fit: Fit) -> bool:
    """Whether some variance of a selection model is not known."""
    return fit.probit is not None and not np.all(np.diag(fit.covariance) >= 0)


def rho_of_maximum(fit: Fit) -> float:
    """Return the rho where the likelihood has the maximum reached; honest estimates move off it."""
    return fit.rho if fit.params is None else float(np.tanh(fit.params[-1]))

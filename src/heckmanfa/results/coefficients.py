"""Tidy estimates, Wald tests and the summary of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.model.covariance import is_classical
from heckmanfa.results.answer import opening
from heckmanfa.results.average_tables import (
    average_facts,
    inclusion_section,
    refuse_test,
)
from heckmanfa.results.estimates import estimates_in_order, tidy, vcov
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.hypotheses import read_hypothesis
from heckmanfa.results.reference import Wald, reference_of
from heckmanfa.results.reports import Report
from heckmanfa.results.side_by_side import CANNOT_SOLVE, side_by_side
from heckmanfa.results.summary import Summary

_ROW_WORDS = {
    "left_out_outcome_missing": "selected, but the outcome is missing",
    "left_out_regressor_missing": "a regressor is missing",
    "left_out_zero_weight": "weight zero",
    "left_out_separation": "selection determined exactly",
}
_COMPARISON = {"estimate": "chosen", "all_features": "all_features", "least_squares": "naive"}
_COMPARISON_NOTE = (
    "All features: the two-step model in which every allowed feature predicts. Least "
    "squares: the {} features on the selected rows, with no correction."
)
__all__ = ["PREFIX", "likelihood_name", "summarize", "tidy", "vcov", "wald_test"]

# The equation of a term in hypotheses; "selection:educ" would be read as an interaction.
PREFIX = {"prediction": "", "selection": "selection.", "errors": ""}


def wald_test(fit: Fit, hypothesis: str | ArrayLike, value: ArrayLike | None) -> Wald:
    """Test linear restrictions; see `Heckman.wald_test`."""
    if isinstance(hypothesis, list | tuple) and all(isinstance(part, str) for part in hypothesis):
        hypothesis = ", ".join(str(part) for part in hypothesis)
    if isinstance(hypothesis, str):
        names = [PREFIX[equation] + term for equation, term in fit.terms]
        matrix, right = read_hypothesis(hypothesis, names)
    else:
        matrix = np.atleast_2d(np.asarray(hypothesis, dtype=np.float64))
        right = np.zeros(len(matrix)) if value is None else np.atleast_1d(np.asarray(value, float))
        if matrix.shape[1] != len(fit.terms) or len(right) != len(matrix):
            raise InputError(
                f"a restriction matrix needs {len(fit.terms)} columns, one for each row of "
                f"vcov(), and as many rows as values; got {matrix.shape} and {len(right)} values"
            )
    about_rho = [equation == "errors" and term != "sigma" for equation, term in fit.terms]
    if fit.rho_is_conditioned and np.any(matrix[:, about_rho]):
        raise NotIdentifiedError(
            "rho was conditioned on by rho_range, so no hypothesis about it can be tested; "
            "fit with rho_range=None to test it"
        )
    if fit.average is not None:
        refuse_test(fit, matrix)
    if not matrix.any(axis=1).all():
        raise InputError("a restriction names no coefficient; write for example 'educ = 0'")
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise InputError("the restrictions repeat one another; leave out the redundant ones")
    gap = matrix @ estimates_in_order(fit) - right
    covariance = fit.covariance
    if fit.average is not None:
        # What was averaged has none, and is not tested.
        covariance = np.nan_to_num(covariance)
    test = reference_of(fit).wald(gap, matrix @ covariance @ matrix.T)
    if test.lacks_clusters:
        raise NotIdentifiedError(f"{test.note}; test fewer at a time")
    return test


def summarize(
    fit: Fit, conf_level: float, reports: Sequence[Report], caveats: list[str]
) -> Summary:
    """Summarize a fitted model, with other reports below, and the sentences of its caveats."""
    counts = fit.row_counts
    left_out = {words: counts[key] for key, words in _ROW_WORDS.items() if counts.get(key)}
    # The criteria compare sets of prediction features; they do not use the joint likelihood
    # that is reported beside them after maximum likelihood.
    step = " of step 2" if fit.spec.method == "ml" and fit.probit is not None else ""
    judged = [(f"AIC{step}", f"{fit.aic:.2f}"), (f"BIC{step}", f"{fit.bic:.2f}")]
    if fit.average is not None:
        judged = average_facts(fit)
    facts = [
        ("Rows given", str(counts["total"])),
        ("Selected", str(counts["selected"])),
        ("Not selected", str(counts["unselected"])),
        ("Left out", str(sum(left_out.values()))),
        ("Covariance", fit.spec.cov_type or "classical"),
        *([("Clusters", f"{fit.n_clusters:,}")] if fit.n_clusters is not None else []),
        ("Adjusted R2", f"{fit.adjusted_r2:.4f}"),
        *judged,
    ]
    if fit.log_likelihood is not None:
        facts.append((likelihood_name(fit), f"{fit.log_likelihood:.4f}"))
    if fit.weighted:
        facts.append(("Weights", fit.spec.weight_kind))
    if fit.n_obs != counts["selected"] + counts["unselected"]:
        facts.append(("Sum of weights", f"{fit.n_obs}"))
    title = "Least squares (no outcome is missing)"
    if fit.probit is not None:
        how = "maximum likelihood" if fit.spec.method == "ml" else "two-step"
        title = f"Heckman selection model, {how}"
        if fit.average is not None:
            title += ", averaged over assignments"
    notes = [*caveats, *(f"{n} rows left out: {words}." for words, n in left_out.items())]
    comparison = None
    if fit.average is not None or (fit.search is not None and fit.search.result is not None):
        beside = side_by_side(fit)
        which = "chosen" if fit.average is None else "same"
        comparison = beside.terms[["term", *_COMPARISON]].rename(columns=_COMPARISON)
        notes += [*([] if beside.is_solved else [CANNOT_SOLVE]), _COMPARISON_NOTE.format(which)]
    evidence = evidence_of(fit, thorough=False)
    searched = evidence.mode in ("average", "chosen")
    sections = [section for report in reports for section in report.sections()]
    if fit.average is not None:
        sections.insert(0, inclusion_section(fit))
    return Summary(
        title=title,
        facts=facts,
        table=tidy(fit, conf_level),
        conf_level=conf_level,
        notes=notes,
        comparison=comparison,
        sections=tuple(sections),
        beside="chosen" if fit.average is None else "average",
        letter=reference_of(fit).letter,
        opening=str(opening(evidence)) if searched else "",
    )


def likelihood_name(fit: Fit) -> str:
    """Name what maximum likelihood maximised, as Stata does.

    A robust or cluster covariance, which sampling weights need, does not trust the model: what was
    maximised is then not a log-likelihood of the data.
    """
    return "Log-likelihood" if is_classical(fit.spec.cov_type) else "Log pseudolikelihood"

"""Tidy estimates, Wald tests and the summary of a fitted model."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.results.answer import opening
from heckmanfa.results.average_tables import all_features_terms, refuse_averaged
from heckmanfa.results.estimates import estimates_in_order, tidy, vcov
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.facts import Fact
from heckmanfa.results.fit_tests import refuse_test_of_held_rho
from heckmanfa.results.hypotheses import read_hypothesis
from heckmanfa.results.inclusion import selection_sections
from heckmanfa.results.naming import name_on_scale
from heckmanfa.results.reference import Wald, reference_of
from heckmanfa.results.reports import Report
from heckmanfa.results.search_facts import summary_sentences
from heckmanfa.results.side_by_side import CANNOT_SOLVE, side_by_side
from heckmanfa.results.summary import Summary
from heckmanfa.results.summary_facts import (
    likelihood_name,
    rows_left_out,
    summary_facts,
    summary_title,
)

_COMPARISON = {"estimate": "chosen", "all_features": "all_features", "least_squares": "naive"}
_COMPARISON_NOTE = (
    "All features: the two-step model in which every allowed feature predicts. Least "
    "squares: the chosen features on the selected rows, with no correction."
)
_OF_BOTH = (
    "the two-step model in which every allowed feature predicts",
    "the maximum-likelihood model in which both equations have every allowed feature",
)
_PROBIT_NOTE = (
    "All features: the Heckman probit in which every allowed feature predicts, where the search "
    "starts. Naive probit: the chosen features on the selected rows, with no correction. Its "
    "log-likelihood is that of two separate probits."
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
        if not fit.family.has_imr:
            _refuse_linear_terms(hypothesis, names)
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
    if np.any(matrix[:, about_rho]):
        refuse_test_of_held_rho(fit)
    if fit.rho_is_conditioned and np.any(matrix[:, about_rho]):
        raise NotIdentifiedError(
            "rho was conditioned on by rho_range, so no hypothesis about it can be tested; "
            "fit with rho_range=None to test it"
        )
    refuse_averaged(fit, matrix)
    if not matrix.any(axis=1).all():
        raise InputError("a restriction names no coefficient; write for example 'educ = 0'")
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise InputError("the restrictions repeat one another; leave out the redundant ones")
    gap = matrix @ estimates_in_order(fit) - right
    # What was averaged has no covariance, and is not tested.
    covariance = np.nan_to_num(fit.covariance) if fit.way.is_average else fit.covariance
    test = reference_of(fit).wald(gap, matrix @ covariance @ matrix.T)
    if test.lacks_clusters:
        raise NotIdentifiedError(f"{test.note}; test fewer at a time")
    return test


def _refuse_linear_terms(hypothesis: str, names: Sequence[str]) -> None:
    """Say why a binary outcome has no coefficient of lambda and no sigma."""
    asked = {*re.findall(r"(?<![\w.`])(?:imr|sigma)(?![\w.`\[(:])", hypothesis)} - {*names}
    if asked:
        raise InputError(
            f"the Heckman probit has no {' and no '.join(sorted(asked))}: the errors of a binary "
            "outcome have variance one, and nothing but rho links both equations; test 'rho = 0'"
        )


def summarize(
    evidence: Evidence, conf_level: float, reports: Sequence[Report], facts: Sequence[Fact]
) -> Summary:
    """Summarize a fitted model, with other reports below, and what its facts say."""
    fit = evidence.fit
    left_out = rows_left_out(fit)
    notes = summary_sentences(fit, facts)
    notes += [f"{n} rows left out: {words}." for words, n in left_out.items()]
    comparison = None
    if fit.search is not None and fit.search.result is not None:
        beside = side_by_side(fit)
        comparison = beside.terms[["term", *_COMPARISON]].rename(columns=_COMPARISON)
        if "two steps" not in fit.family.supports:
            comparison = comparison if beside.is_solved else comparison.drop(columns="all_features")
            notes.append(_PROBIT_NOTE)
        else:
            notes += [] if beside.is_solved else [CANNOT_SOLVE]
            both = fit.way.form_of_both is not None
            notes.append(_COMPARISON_NOTE.replace(*_OF_BOTH) if both else _COMPARISON_NOTE)
    sections = [section for report in reports for section in report.sections()]
    all_features = None
    if fit.way.is_average:
        sections = [*selection_sections(fit, fit.way.averaging.mixture), *sections]
        all_features = all_features_terms(fit)
    return Summary(
        title=summary_title(fit),
        facts=summary_facts(fit, sum(left_out.values())),
        table=tidy(fit, conf_level),
        headings={equation.name: equation.heading for equation in fit.family.equations}
        | {"errors": "Errors"},
        conf_level=conf_level,
        notes=notes,
        comparison=comparison,
        sections=tuple(sections),
        all_features=all_features,
        letter=reference_of(fit).letter,
        opening=str(opening(evidence)) if fit.way.searched else "",
        naive=evidence.words.naive_short,
        outcome=name_on_scale("outcome", fit.spec.outcome_transform),
    )

"""`Heckman.diagnostics`: a fit, rows to predict for, and reports on it, put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from heckmanfa.data.arrays import host
from heckmanfa.data.sample import read_weights
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference import prediction
from heckmanfa.inference.rows_of_fit import column_or_values
from heckmanfa.inference.uncertainty import UncertaintyInterval, bounds_of, uncertainty_interval
from heckmanfa.inference.what_if import WhatIf, what_if
from heckmanfa.results.answer import Answer, answer_of
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.catalogue import diagnose
from heckmanfa.results.checks import Check, checks_of
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.facts import Fact
from heckmanfa.results.may_write import may_write
from heckmanfa.results.reports import Report, Untested, report_or_why

_RHO_RANGE, _LEVEL, _GRID = (-0.3, 0.3), 0.95, 61

QUICK_ROWS, QUICK_FEATURES = 20_000, 26
"""up to so many rows and features, a model that reads its rows is fitted again and again"""

what_if_or_why = partial(report_or_why, WhatIf, "what_if", "excluded features put back")
uncertainty_or_why = partial(report_or_why, UncertaintyInterval, "uncertainty", "signs over rho")


def is_quick(fit: Fit) -> bool:
    """Whether a model that reads its rows can be fitted many times while someone waits."""
    return fit.n_obs <= QUICK_ROWS and fit.n_features <= QUICK_FEATURES


def answer_of_facts(evidence: Evidence, facts: Iterable[Fact]) -> tuple[tuple[Check, ...], Answer]:
    """Return the checks of a fitted model, and its answer in sentences."""
    fit = evidence.whole
    checks = checks_of(facts, fit, evidence.outcome)
    asked = evidence.no_exclusion and "bounds of rho" in fit.family.supports
    bounds = bounds_of(fit, evidence.naming) if asked else None
    written = may_write(evidence, checks)
    return checks, answer_of(evidence, checks, bounds=bounds, may_write=written)


def diagnose_fit(
    fit: Fit,
    X: Any,
    reports: Sequence[Report],
    weights: AssignmentWeights | str | None,
    sample_weight: Any = None,
) -> Diagnostics:
    """Return the diagnostics of a fit, with reports that need no rows added to those given.

    X holds rows to predict for, or is None. ``weights`` are those of all assignments, and
    ``sample_weight`` those of the rows: frequencies say how many rows each stands for.
    """
    index = counts = None
    if X is not None and fit.probit is not None:
        table = prediction.read_rows(fit, X, prediction=False, selection=True, missing="nan")
        index = host(prediction.selection_index(fit, table))
        if sample_weight is not None and fit.spec.weight_kind == "frequency":
            values = column_or_values(X, sample_weight, "sample_weight")
            counts = read_weights(values, len(index))
    reported = {report.of if isinstance(report, Untested) else type(report) for report in reports}
    added: list[Report] = []
    # Without compressed data, both need the rows.
    rowless = fit.probit is not None and "compressed data" in fit.family.supports
    if rowless and UncertaintyInterval not in reported:
        asked = fit, PassedRows(), _RHO_RANGE, _LEVEL, _GRID
        added.append(uncertainty_or_why(uncertainty_interval, *asked))
    if rowless and not fit.way.is_average and fit.held_rho is None and WhatIf not in reported:
        added.append(what_if_or_why(what_if, fit, PassedRows()))
    return diagnose(fit, index, [*added, *reports], weights, counts)

"""`Heckman.diagnostics`: a fit, rows to predict for, and reports on it, put together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from heckmanfa.data.arrays import host
from heckmanfa.fit import Fit
from heckmanfa.inference import prediction
from heckmanfa.inference.uncertainty import UncertaintyInterval, uncertainty_interval
from heckmanfa.inference.what_if import WhatIf, what_if
from heckmanfa.results.catalogue import diagnose
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.reports import Report, Untested, report_or_why

_RHO_RANGE, _LEVEL, _GRID = (-0.3, 0.3), 0.95, 61

what_if_or_why = partial(report_or_why, WhatIf, "what_if", "excluded features put back")
uncertainty_or_why = partial(report_or_why, UncertaintyInterval, "uncertainty", "signs over rho")


def diagnose_fit(fit: Fit, X: Any, reports: Sequence[Report]) -> Diagnostics:
    """Return the diagnostics of a fit, with reports that need no rows added to those given.

    X holds rows to predict for, or is None.
    """
    index = None
    if X is not None and fit.probit is not None:
        table = prediction.read_rows(fit, X, prediction=False, selection=True, missing="nan")
        index = host(prediction.selection_index(fit, table))
    given = {report.of if isinstance(report, Untested) else type(report) for report in reports}
    added: list[Report] = []
    # Of a binary outcome, both need its rows.
    rowless = fit.probit is not None and not fit.is_binary
    if rowless and UncertaintyInterval not in given:
        added.append(uncertainty_or_why(uncertainty_interval, fit, _RHO_RANGE, _LEVEL, _GRID))
    if rowless and fit.average is None and fit.held_rho is None and WhatIf not in given:
        added.append(what_if_or_why(what_if, fit))
    return diagnose(fit, index, [*added, *reports])

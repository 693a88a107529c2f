"""Inverse Mills ratios of the rows of a fit, and of rows to predict for."""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.data.rows import held
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import read_again
from heckmanfa.inference.prediction import read_rows, selection_index
from heckmanfa.model.normal import inverse_mills
from heckmanfa.plots.mills_ratios import MillsRatios
from heckmanfa.results.diagnostics import share_outside


def mills_ratios(
    fit: Fit, X: Any, y: Any, X_new: Any, *, selected: Any, sample_weight: Any
) -> MillsRatios:
    """Return what `heckmanfa.plots.imr_overlap` draws."""
    again = read_again(fit, X, y, selected=selected, sample_weight=sample_weight)
    rows = held(again.selection.rows, "this picture")
    index = selection_index(fit, again.table)
    kept = np.ones(len(index), dtype=bool) if rows.kept is None else rows.kept
    chosen = kept & rows.selected
    index_new = index
    if X_new is not None or again.design is not None:
        # As in diagnostics, rows that miss a feature are not counted; the legend has the number.
        given = X if X_new is None else X_new
        table = read_rows(fit, given, prediction=False, selection=True, missing="nan")
        index_new = selection_index(fit, table)
    low, high = fit.index_range
    return MillsRatios(
        fitted=inverse_mills(index[chosen]),
        others=inverse_mills(index_new[np.isfinite(index_new)]),
        range=(float(inverse_mills(high)), float(inverse_mills(low))),
        share_outside=share_outside(index_new, low, high),
        weight=None if rows.weight is None else rows.weight[chosen],
    )

"""Monotone instruments: a column that can only raise the mean outcome tightens worst-case bounds.

Manski and Pepper (2000), "Monotone instrumental variables: with an application to the returns to
schooling", Econometrica 68. If E[y | z] does not fall in z, it is at least the largest of the lower
ends at z and below, and at most the smallest of the upper ends at z and above. The mean is the
average of these over z.

A largest of estimates is too large on average, and a smallest too small, so plain estimates are
too narrow. Twice the estimate less its mean over bootstrap samples corrects most of that (Kreider
and Pepper, 2007).
"""

from __future__ import annotations

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.model.worst_case import Codes, SeenRows, Span


def instrument_ends(rows: SeenRows, cells: Codes, n_cells: int, span: Span) -> Floats:
    """Return the lower and the upper end of the mean, (2,), given cells in the instrument's order.

    Cells in which the rows have no weight are passed over.
    """
    totals = np.bincount(cells, weights=rows.weight, minlength=n_cells)
    known = totals > 0
    low, high = (
        np.bincount(cells, weights=rows.weight * rows.filled(value), minlength=n_cells)[known]
        / totals[known]
        for value in span
    )
    low = np.maximum.accumulate(low)
    high = np.minimum.accumulate(high[::-1])[::-1]
    shares = totals[known] / totals.sum()
    return np.array([shares @ low, shares @ high])


def corrected(estimate: Floats, draws: Floats) -> Floats:
    """Return estimates (2,) corrected for the bias that bootstrap samples (b, 2) show."""
    return np.asarray(2.0 * estimate - draws.mean(axis=0))

"""Bounds of a mean with a monotone instrument (Manski and Pepper, 2000)."""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.inference.bounds.cells import ordered_cells
from heckmanfa.inference.bounds.reading import in_memory, read_conf_level, read_span
from heckmanfa.inference.bounds.resampling import check_n_boot, resample
from heckmanfa.inference.bounds.rows import mean_rows, read_given, seen_mean
from heckmanfa.model.monotone_instrument import corrected, instrument_ends
from heckmanfa.results.bound_table import BoundRow, Bounds
from heckmanfa.results.imbens_manski import interval
from heckmanfa.text.option_types import WeightKind
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import number, plural

_FEWEST = 50


def monotone_instrument(
    y: Any,
    instrument: Any,
    *,
    increasing: bool = True,
    bins: int | None = None,
    n_boot: int = 500,
    random_state: Any = 0,
    selected: Any = None,
    y_range: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    conf_level: float = 0.95,
) -> Bounds:
    """Bound a mean with a column along which the mean outcome does not fall.

    The worst-case bounds at each value of the instrument are tightened by those at the values
    below and above it, and averaged. Highest and lowest estimates are biased inwards; the bounds
    are corrected by the bootstrap (Kreider and Pepper, 2007), which also gives standard errors.

    Parameters
    ----------
    y : array_like of shape (n,)
    instrument : array_like of shape (n,)
        Numbers, known in every row. Each value is a cell.
    increasing : bool
        Whether the mean outcome does not fall where the instrument rises; False if it does not
        rise.
    bins : int, optional
        Cut an instrument of many values at its quantiles into so many cells.
    n_boot : int
        Number of bootstrap samples.
    random_state : int, Generator, RandomState or None
    selected, y_range, sample_weight, weight_kind, groups, survey, conf_level
        As in `mean`.

    Returns
    -------
    Bounds
        With the instrument, and without it.
    """
    level, n_boot = read_conf_level(conf_level), check_n_boot(n_boot, _FEWEST)
    if not n_boot:
        raise InputError(
            f"{option('n_boot')} must be {_FEWEST} or more: bounds are corrected by the bootstrap"
        )
    given = in_memory(
        y=y, instrument=instrument, selected=selected, sample_weight=sample_weight, groups=groups
    )
    found = read_given(given, weight_kind, survey)
    span, rows = read_span(y_range, found.rows), found.rows
    cells = ordered_cells(given["instrument"], bins, found, "instrument")
    n_cells = len(cells.labels)
    if n_cells < 2:
        raise InputError(
            f"{option('instrument')} has one value in all rows, which says nothing of the mean"
        )
    codes = cells.codes if increasing else n_cells - 1 - cells.codes

    def ends(weight: Floats) -> Floats:
        return instrument_ends(rows.weighing(weight), codes, n_cells, span)

    plain, drawn = ends(rows.weight), resample(found, ends, n_boot, random_state)
    better = np.clip(corrected(plain, drawn.values), *span)
    low, high = map(float, better)
    errors = float(drawn.errors[0]), float(drawn.errors[1])
    reach = interval((low, high), errors, level, found.reference, ordered=False)
    row = BoundRow(
        *("mean", "rising" if increasing else "falling", (low, high), errors, reach),
        found.count(),
        observed=seen_mean(rows),
    )
    before = " to ".join(map(number, map(float, plain)))
    notes = [
        f"The instrument has {plural(n_cells, 'cell')}. Before the correction of their bias the "
        f"bounds were {before}.",
        f"Their standard errors are from {plural(len(drawn.values), 'bootstrap sample')}.",
    ]
    if low > high:
        notes.insert(
            0, "The bounds cross: chance, or the mean outcome is not monotone in the instrument."
        )
    return found.result(
        f"Bounds of the mean of {shown(found.name)}, with a monotone instrument",
        (row, *mean_rows(found, span, None, level)),
        level,
        span,
        observed=y_range is None,
        notes=notes,
    )

"""Lee's (2009) trimming bounds of the effect of a treatment on those observed in any case."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.inference.bounds.cells import Cells, combinations, probability_bins
from heckmanfa.inference.bounds.reading import Read, in_memory, one_of, read_conf_level
from heckmanfa.inference.bounds.resampling import Draws, check_n_boot, resample
from heckmanfa.inference.bounds.rows import errors_of, read_given, read_treated, seen_mean
from heckmanfa.model.trimming import Direction, Trimmed, trim
from heckmanfa.results.bound_table import TRIMMING, BoundRow, Bounds
from heckmanfa.results.imbens_manski import interval
from heckmanfa.text.option_types import WeightKind
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import percent, plural

DIRECTIONS: tuple[str, ...] = get_args(Direction)
_QUANTITY = "effect on the always observed"
_NOUN = "the effect on {outcome} among those observed with treatment and without"
_FEWEST = 50


def lee(
    y: Any,
    treated: Any,
    *,
    covariates: Any = None,
    bins: int | None = None,
    more_observed: Direction | None = None,
    selected: Any = None,
    n_boot: int = 0,
    random_state: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    conf_level: float = 0.95,
) -> Bounds:
    """Bound the effect of a treatment on those whose outcome is observed whichever way (Lee, 2009).

    Two assumptions: treatment is as if by lot (within cells of the covariates, if there are any),
    and it makes an outcome more likely to be observed for all, or less likely for all. The range
    of the outcome plays no part.

    Parameters
    ----------
    y : array_like of shape (n,)
        The outcome, NaN where missing.
    treated : array_like of shape (n,)
        Who is treated: booleans, or 0 and 1.
    covariates : array or data frame, optional
        Columns that treatment does not change, which tighten the bounds: every combination of
        their values is a cell.
    bins : int, optional
        Cut the probability of being observed, by a probit on the covariates, into so many cells in
        place of combinations.
    more_observed : {"treated", "untreated"}, optional
        Which group treatment lets be observed more; by default that with the larger share.
    n_boot : int
        Bootstrap samples for standard errors; 0 takes Lee's analytic ones.
    random_state : int, Generator, RandomState or None
    selected, sample_weight, weight_kind, groups, survey, conf_level
        As in `mean`.

    Returns
    -------
    Bounds
        Without covariates and, if there are any, within their cells.

    Examples
    --------
    >>> from heckmanfa import bounds
    >>> y, d = [1, 2, 3, 4, 2, 4, None, None], [1, 1, 1, 1, 0, 0, 0, 0]
    >>> bounds.lee(y, d).tidy()[["low", "high"]].to_numpy().tolist()
    [[-1.5, 0.5]]
    """
    direction = one_of(more_observed, DIRECTIONS, "more_observed")
    level, n_boot = read_conf_level(conf_level), check_n_boot(n_boot, _FEWEST)
    given = in_memory(
        y=y,
        treated=treated,
        covariates=covariates,
        selected=selected,
        sample_weight=sample_weight,
        groups=groups,
    )
    found = read_given(given, weight_kind, survey)
    chosen = read_treated(given["treated"], found)
    _check_seen(found, chosen)
    kinds: list[Cells | None] = [None]
    if covariates is not None:
        kinds.append(_cells(given["covariates"], bins, found))
    elif bins is not None:
        raise InputError(
            f"{option('bins')} cuts what a probit on covariates gives: pass {option('covariates')}"
        )
    rows, notes = [], []
    for cells in kinds:
        row, said = lee_row(found, chosen, cells, direction, level, n_boot, random_state)
        rows.append(row)
        notes += said
    title = f"Trimming bounds of the effect on {shown(found.name)}"
    return found.result(title, rows, level, notes=notes, told=len(rows) - 1)


def lee_row(
    found: Read,
    treated: Mask,
    cells: Cells | None,
    direction: Direction | None,
    conf_level: float,
    n_boot: int = 0,
    random_state: Any = None,
    group: str = "",
    sides: tuple[str, str] = ("the treated", "the untreated"),
) -> tuple[BoundRow, list[str]]:
    """Return trimming bounds, and what to know about them."""
    rows = found.rows
    codes = np.zeros(found.n, dtype=np.intp) if cells is None else cells.codes
    n_cells = 1 if cells is None else len(cells.labels)
    if cells is not None:
        _check_cells(cells, treated)
    trimmed = trim(rows, treated, codes, n_cells, direction)
    low, high = trimmed.ends
    errors = errors_of(found, trimmed.ends, [rows.seen & side for side in (treated, ~treated)])
    drawn: Draws | None = None
    if n_boot:

        def again(weight: Floats) -> Floats | None:
            occupied = np.bincount(2 * codes + treated, weights=weight, minlength=2 * n_cells)
            seen = [(weight * rows.seen * side).any() for side in (treated, ~treated)]
            if not (occupied.all() and all(seen)):
                return None
            ends = trim(rows.weighing(weight), treated, codes, n_cells, direction).ends
            return np.array([end.value for end in ends])

        drawn = resample(found, again, n_boot, random_state)
        errors = float(drawn.errors[0]), float(drawn.errors[1])
    values = low.value, high.value
    reach = interval(values, errors, conf_level, found.reference)
    within = "" if cells is None else f"within {plural(n_cells, 'cell')}"
    row = BoundRow(
        *(_QUANTITY, TRIMMING, values, errors, reach, found.count()),
        group=group or within,
        noun=_NOUN,
        observed=seen_mean(rows, treated) - seen_mean(rows, ~treated),
    )
    notes = _notes(trimmed, sides) + (drawn.notes if drawn else _alone(found, treated, cells))
    return row, notes


def _notes(trimmed: Trimmed, sides: tuple[str, str]) -> list[str]:
    """Say how much was trimmed, and whom the bounds are about; ``sides`` name the groups."""
    cells = trimmed.cells
    one, zero = (
        sum(cell.share * share for cell, share in zip(cells, shares, strict=True))
        for shares in ([cell.treated for cell in cells], [cell.untreated for cell in cells])
    )
    first = "former" if trimmed.direction == "treated" else "latter"
    where = "" if len(cells) == 1 else f" Within {plural(len(cells), 'cell')}:"
    notes = [
        f"{where} {percent(one)} of {sides[0]} have an outcome, and {percent(zero)} of {sides[1]}: "
        f"{percent(trimmed.trimmed)} of the observed of the {first} are trimmed. The bounds are "
        f"about the {percent(trimmed.always)} of all who have one either way.".strip()
    ]
    n_against = sum(cell.contradicts for cell in cells)
    if n_against:
        notes.append(
            f"In {plural(n_against, 'cell')} the other group is observed more often; nobody is "
            "trimmed there. If that is more than chance, the bounds do not hold."
        )
    return notes


def _alone(found: Read, treated: Mask, cells: Cells | None) -> list[str]:
    """Say in how many cells formulas do not know how the outcomes of a group vary."""
    if cells is None:
        return []
    seen, n_cells = found.rows.seen, len(cells.labels)
    counts = np.bincount(2 * cells.codes[seen] + treated[seen], minlength=2 * n_cells)
    n_alone = int((counts.reshape(n_cells, 2) == 1).any(axis=1).sum())
    if not n_alone:
        return []
    return [
        f"In {plural(n_alone, 'cell')} a group has a single outcome, which tells no variance: "
        "standard errors are too small. Use coarser covariates, or a bootstrap."
    ]


def _check_seen(found: Read, treated: Mask) -> None:
    """Refuse a group without any outcome."""
    for side, name in ((treated, "treated"), (~treated, "untreated")):
        if not (found.rows.seen & side).any():
            raise InputError(
                f"none of the {name} has an outcome, so nobody is always observed: there is "
                "no effect to bound"
            )


def _cells(covariates: Any, bins: int | None, found: Read) -> Cells:
    if bins is None:
        return combinations(covariates, found)
    return probability_bins(covariates, bins, found)


def _check_cells(cells: Cells, treated: Mask) -> None:
    """Refuse cells without treated or without untreated rows."""
    n_cells = len(cells.labels)
    sides = np.bincount(2 * cells.codes + treated, minlength=2 * n_cells).reshape(n_cells, 2)
    lacking = np.flatnonzero((sides == 0).any(axis=1))
    if len(lacking):
        first = lacking[0]
        lacks = "untreated" if sides[first, 0] == 0 else "treated"
        raise InputError(
            f"{plural(len(lacking), 'cell')} of the covariates without treated or untreated rows: "
            f"{quoted(cells.labels[first])} has no {lacks} row. Use coarser covariates, or "
            f"{option('bins', 5)}"
        )

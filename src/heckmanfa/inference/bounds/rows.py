"""Rows of a table of bounds: of means, differences and effects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import known_flags
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.inference.bounds.reading import (
    Groups,
    Read,
    read,
    read_groups,
)
from heckmanfa.model.worst_case import (
    Ends,
    Relation,
    SeenRows,
    Span,
    average,
    effect_ends,
    mean_ends,
)
from heckmanfa.results.bound_table import CHOICE, NOTHING, BoundRow
from heckmanfa.results.imbens_manski import interval
from heckmanfa.text.option_types import WeightKind
from heckmanfa.text.wording import plural

RELATIONS: tuple[str, ...] = get_args(Relation)


def row_of_ends(
    ends: Ends,
    read_rows: Read,
    conf_level: float,
    *,
    quantity: str,
    noun: str = "",
    assumption: str = NOTHING,
    parts: Sequence[Mask] = (),
    limits: Span = (-math.inf, math.inf),
    group: str = "",
    observed: float = math.nan,
) -> BoundRow:
    """Return the row of a table of bounds, with standard errors and the interval.

    ``parts`` are the groups that it is of, all rows by default, and ``limits`` are what the number
    cannot be beyond, and its interval neither.
    """
    values = ends.low.value, ends.high.value
    errors = errors_of(read_rows, ends, parts)
    low, high = interval(values, errors, conf_level, read_rows.reference)
    reach = (float(np.maximum(low, limits[0])), float(np.minimum(high, limits[1])))
    counts = read_rows.count(np.any(parts, axis=0) if len(parts) else None)
    return BoundRow(
        *(quantity, assumption, values, errors, reach, counts, group, observed),
        noun=noun,
        averaged=read_rows.averaged,
    )


def errors_of(read_rows: Read, ends: Ends, parts: Sequence[Mask]) -> tuple[float, float]:
    """Return the standard errors of the ends of a number; NaN if one of its parts was drawn once.

    A single row, or cluster, would seem to vary by nothing.
    """
    sampling = read_rows.sampling
    if any(sampling.n_draws(part) < 2 for part in parts):
        return math.nan, math.nan
    return sampling.error(ends.low.pull), sampling.error(ends.high.pull)


def seen_mean(rows: SeenRows, inside: Mask | None = None) -> float:
    """Return the mean of the outcomes that are known, NaN if there are none."""
    weight = rows.weight * rows.seen if inside is None else rows.weight * (rows.seen & inside)
    return average(rows.outcome, weight).value if weight.any() else math.nan


def mean_rows(
    read_rows: Read,
    span: Span,
    groups: Groups | None,
    conf_level: float,
    quantity: str = "mean",
    relation: Relation | None = None,
    noun: str = "",
) -> Iterator[BoundRow]:
    """Yield the bounds of the mean of all rows, or of each group."""
    rows = read_rows.rows
    for place in range(1 if groups is None else len(groups.labels)):
        inside = None if groups is None else groups.mask(place)
        yield row_of_ends(
            mean_ends(rows, inside, span, relation),
            read_rows,
            conf_level,
            quantity=quantity,
            noun=noun,
            assumption=relation or NOTHING,
            parts=() if inside is None else (inside,),
            limits=span,
            group="" if groups is None else groups.said(place),
            observed=seen_mean(rows, inside),
        )


def difference_rows(
    read_rows: Read,
    span: Span,
    groups: Groups,
    base: int,
    conf_level: float,
    relation: Relation | None = None,
    noun: str = "the mean of {outcome}",
) -> Iterator[BoundRow]:
    """Yield the bounds of the difference of each group's mean from that of one of them.

    ``noun`` is what the means are called, as in `BoundRow`.
    """
    rows, reference = read_rows.rows, groups.mask(base)
    for place in range(len(groups.labels)):
        if place == base:
            continue
        inside = groups.mask(place)
        ends = (mean_ends(rows, chosen, span, relation) for chosen in (inside, reference))
        first, second = ends
        yield row_of_ends(
            first.minus(second),
            read_rows,
            conf_level,
            quantity="difference",
            noun=f"the difference in {noun}",
            assumption=relation or NOTHING,
            parts=(inside, reference),
            limits=(span[0] - span[1], span[1] - span[0]),
            group=f"{groups.said(place)} less {groups.labels[base]}",
            observed=seen_mean(rows, inside) - seen_mean(rows, reference),
        )


def effect_row(read_rows: Read, treated: Mask, span: Span, conf_level: float) -> BoundRow:
    """Return the bounds of the average effect of a treatment."""
    rows = read_rows.rows
    return row_of_ends(
        effect_ends(rows, treated, span),
        read_rows,
        conf_level,
        quantity="average effect",
        noun="the average effect of treatment on {outcome}",
        assumption=CHOICE,
        limits=(span[0] - span[1], span[1] - span[0]),
        observed=seen_mean(rows, treated) - seen_mean(rows, ~treated),
    )


def read_treated(treated: Any, found: Read) -> Mask:
    """Read who is treated among the rows that are used; refuse what is not known, or one group."""
    if treated is None:
        raise InputError("treated is missing: pass 0 and 1, or booleans, for every row")
    chosen, unknown = known_flags(treated, len(found.used))
    n_unknown = int((unknown & found.used).sum())
    if n_unknown:
        raise InputError(f"treated is missing in {plural(n_unknown, 'row')}; every row needs it")
    mask = np.asarray(chosen[found.used], dtype=bool)
    if mask.all() or not mask.any():
        raise InputError(f"all {len(mask):,} rows are {'' if mask.all() else 'un'}treated")
    return mask


def read_given(
    given: dict[str, Any],
    weight_kind: WeightKind,
    survey: Survey | None = None,
    outcome: Floats | None = None,
) -> Read:
    """Read rows of columns by name."""
    return read(
        given["y"],
        given["selected"],
        given["sample_weight"],
        weight_kind,
        given["groups"],
        survey,
        outcome,
    )


def groups_given(given: dict[str, Any], found: Read, relation: str | None) -> Groups | None:
    """Read the groups, if there are any; with a relation, each needs an outcome."""
    if given["group"] is None:
        return None
    observed = found.rows.seen if relation else None
    return read_groups(given["group"], found.used, observed=observed)

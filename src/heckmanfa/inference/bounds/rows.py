"""Rows of a table of bounds: of means, differences and effects."""

from __future__ import annotations

import math
from collections.abc import Iterator
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
    inside: Mask | None = None,
    group: str = "",
    observed: float = math.nan,
) -> BoundRow:
    """Return the row of a table of bounds, with standard errors and the interval."""
    values, error = (ends.low.value, ends.high.value), read_rows.sampling.error
    errors = error(ends.low.pull), error(ends.high.pull)
    reach = interval(values, errors, conf_level, read_rows.reference)
    counts = read_rows.count(inside)
    return BoundRow(quantity, assumption, values, errors, reach, counts, group, observed, noun=noun)


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
            inside=inside,
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
            inside=inside | reference,
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

"""The rows of bounds: outcomes of which some are missing, weights, clusters, groups and a range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from heckmanfa.data.arrays import Floats, is_dask, on_host
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.group_cells import Cells, labelled_groups, read_cells
from heckmanfa.data.outcomes import refuse_infinite_outcomes
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import flags, read_outcome, read_weights
from heckmanfa.data.survey import Survey, SurveyUnits
from heckmanfa.data.survey_design import linearized_design
from heckmanfa.data.survey_rows import survey_rows
from heckmanfa.errors import InputError, InputTypeError, NoOutcomeError
from heckmanfa.inference.effect_cells import declared_order
from heckmanfa.model.worst_case import Codes, Sampling, SeenRows, Span
from heckmanfa.results.bound_table import Averaged, BoundRow, Bounds
from heckmanfa.results.distribution import NullDistribution, check_level
from heckmanfa.text.option_types import WeightKind
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import nearest, plural

_MOST_GROUPS = 100
_SHOWN = 6


CLUSTERS = instead("groups", option("cluster"))
"""what names the clusters"""
_ALONE = "A group of a single row, or cluster, has no standard errors and no interval."
OUTCOME = "the outcome"
"""what an outcome without a name is called"""


@dataclass(frozen=True, eq=False)
class Read:
    """Rows as bounds need them; rows of weight zero are left out."""

    rows: SeenRows
    sampling: Sampling
    used: Mask
    """(n given,) which of the rows given these are"""
    notes: tuple[str, ...] = ()
    name: str = OUTCOME
    """of the outcome"""
    averaged: Averaged = "a mean"
    """what the average of the outcome is"""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.rows.outcome)

    @property
    def reference(self) -> NullDistribution:
        """What an estimate over its standard error is compared with."""
        cells = self.sampling.cells
        if cells is None:
            return NullDistribution()
        if cells.strata is not None:
            return NullDistribution(design=linearized_design(cells, self.sampling.seen))
        counts = cells.counts(self.sampling.seen)
        return NullDistribution(min(counts), counts if cells.ways else ())

    def count(self, inside: Mask | None = None) -> tuple[int, int]:
        """Return how many rows there are in a group, or in all, and how many have an outcome."""
        seen = self.rows.seen
        if inside is None:
            return len(seen), int(seen.sum())
        return int(inside.sum()), int((seen & inside).sum())

    def result(
        self,
        title: str,
        rows: Iterable[BoundRow],
        conf_level: float,
        span: Span | None = None,
        *,
        observed: bool = False,
        notes: Iterable[str] = (),
        told: int = 0,
    ) -> Bounds:
        """Return a report of bounds; ``observed`` says whether the range is."""
        rows = tuple(rows)
        alone = any(np.isfinite(row.bounds[0]) and np.isnan(row.errors[0]) for row in rows)
        notes = (*notes, *self.notes, *[_ALONE] * alone, *self.reference.notes(in_stata=False))
        notes = dict.fromkeys(notes)
        counts = self.count()
        return Bounds(
            *(title, rows, conf_level, counts, span, observed, (*notes,)),
            outcome=self.name,
            told=told,
        )


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows, in the order of their labels."""

    codes: Codes
    """(n,)"""
    labels: tuple[str, ...]
    name: str = ""
    """of the column; empty if it has none"""

    def mask(self, group: int) -> Mask:
        """Return who is in a group."""
        return np.asarray(self.codes == group)

    def said(self, group: int) -> str:
        """Name a group: "city = 1", or its label."""
        return f"{self.name} = {self.labels[group]}" if self.name else self.labels[group]

    def place(self, label: Any, what: str) -> int:
        """Return the place of a label; refuse one that is not there."""
        if label_of(label) not in self.labels:
            raise InputError(
                f"{option(what)} {quoted(label)} is not a group: there are "
                f"{quoted_list(self.labels, _SHOWN)}{nearest(label_of(label), self.labels)}"
            )
        return self.labels.index(label_of(label))


def in_memory(**columns: Any) -> dict[str, Any]:
    """Return columns in memory, those of Dask computed; refuse rows of files, and other labels."""
    for name, values in columns.items():
        if isinstance(values, RowSource):
            raise InputTypeError(
                f"{name} holds rows of files, which bounds do not read: pass columns in memory, "
                "as in y=frame['y']"
            )
    if columns.get("y") is None:
        raise InputError("y is missing: pass the outcome, NaN where it is not known")
    columns = {name: on_host(_computed(values)) for name, values in columns.items()}
    match_rows(columns)
    return columns


def _computed(values: Any) -> Any:
    """Return a Dask collection in memory, with the names of its columns; others unchanged."""
    if not is_dask(values):
        return values
    computed = values.compute()
    # Every partition may number its rows from zero.
    return computed.reset_index(drop=True) if hasattr(computed, "reset_index") else computed


def length_of(values: Any, what: str) -> int:
    """Return how many rows a column has."""
    try:
        return len(values)
    except TypeError as error:
        raise InputTypeError(
            f"{what} must have an entry for each row; got {type(values).__name__}"
        ) from error


def check_lengths(columns: Mapping[str, Any]) -> int:
    """Return the number of rows; refuse columns that differ in it."""
    (first, values), *others = ((name, it) for name, it in columns.items() if it is not None)
    n = length_of(values, first)
    for name, other in others:
        if np.ndim(other) and length_of(other, name) != n:
            raise InputError(f"{name} has {length_of(other, name):,} rows, and {first} {n:,}")
    return n


def read(
    y: Any,
    selected: Any,
    sample_weight: Any,
    weight_kind: WeightKind,
    groups: Any,
    survey: Survey | None = None,
    outcome: Floats | None = None,
) -> Read:
    """Read rows: who has an outcome, their weights, and their clusters or units of a survey.

    With ``selected``, only selected rows have one; any other row is missing, and none is left out.
    ``outcome`` is what y was read as, if it is not a column of numbers.
    """
    if survey is not None:
        sample_weight, groups = _of_survey(survey, sample_weight, groups)
        weight_kind = "sampling"
    given = {"y": y, "selected": selected, "sample_weight": sample_weight, "groups": groups}
    n = check_lengths(given)
    values = read_outcome(y, n) if outcome is None else outcome
    seen = ~np.isnan(values)
    if selected is not None:
        seen &= flags(selected, n)
    refuse_infinite_outcomes(int(np.isinf(values[seen]).sum()))
    if not seen.any():
        raise NoOutcomeError(
            f"none of the {n:,} rows has an outcome: check {instead('y', option('outcome'))} and "
            f"{option('selected')}"
        )
    if weight_kind not in get_args(WeightKind):
        known = list(get_args(WeightKind))
        raise InputError(f"weight_kind must be {quoted_list(known, 2)}; got {quoted(weight_kind)}")
    weight = np.ones(n) if sample_weight is None else read_weights(sample_weight, n)
    if weight_kind == "frequency" and (weight != np.floor(weight)).any():
        raise InputError(
            "frequency weights are counts of rows, and these are not integers: pass "
            f"{option('weight_kind', 'sampling')} if they come from a survey"
        )
    used = weight > 0
    if not seen[used].any():
        raise NoOutcomeError("no row with an outcome has a weight above zero")
    units, cells, outside = _units(groups, used)
    rows = SeenRows(np.where(seen, values, 0.0)[used], seen[used], weight[used])
    lost = {"outside of the subpopulation": outside, "of weight zero": ~used & ~outside}
    counts = {why: int(np.count_nonzero(which)) for why, which in lost.items()}
    notes = [f"{plural(n, 'row')} {why} left out." for why, n in counts.items() if n]
    sampling, name = Sampling(rows.weight, weight_kind, units, cells), getattr(y, "name", None)
    named = name if isinstance(name, str) and name else OUTCOME
    return Read(rows, sampling, used, tuple(notes), named)


def _of_survey(survey: Survey, sample_weight: Any, groups: Any) -> tuple[Any, SurveyUnits]:
    """Return the weights and the units of a survey, whose columns a frame holds."""
    if survey.replicate_weights is not None:
        raise InputError(
            "bounds have standard errors by strata and units, not by replicate weights: name the "
            "columns of strata and psu in Survey, if the data have them"
        )
    if groups is None:
        raise InputError(
            "a Survey names columns of a data frame: pass the frame that holds them as groups"
        )
    return survey_rows(survey, None, sample_weight, groups)[1:]


def _units(groups: Any, used: Mask) -> tuple[Codes | None, Cells | None, Mask]:
    """Return the unit of each row that is used, what units belong to, and who is out of scope."""
    nobody = np.zeros(len(used), dtype=bool)
    if groups is None:
        return None, None, nobody
    if isinstance(groups, SurveyUnits):
        outside = nobody if groups.outside is None else groups.outside
        return groups.codes[used], groups.cells, outside
    codes, cells = read_cells(groups, used)
    units = codes[used]
    if min(cells.counts(np.bincount(units, minlength=cells.n) > 0)) < 2:
        raise InputError(f"{CLUSTERS} has one cluster, and standard errors need at least two")
    return units, cells, nobody


def read_groups(
    group: Any, used: Mask, what: str = "group", *, observed: Mask | None = None
) -> Groups:
    """Read the group of each row that is used.

    Of these rows, those ``observed`` have an outcome; every group needs one if that is given.
    """
    if length_of(group, what) != len(used):
        raise InputError(f"{what} has {len(group):,} rows, and y {len(used):,}")
    codes, raw = labelled_groups(group, used, what)
    if len(raw) > _MOST_GROUPS:
        raise InputError(
            f"{option(what)} has {len(raw):,} groups, and at most {_MOST_GROUPS} are allowed: cut "
            "a column of numbers into classes first"
        )
    declared, codes = declared_order(group), codes[used]
    if declared is not None:
        order = sorted(range(len(raw)), key=lambda place: declared.index(raw[place]))
        codes, raw = np.argsort(order)[codes], raw[order]
    labels = tuple(label_of(label) for label in raw)
    found = Groups(codes, labels, str(getattr(group, "name", None) or ""))
    if observed is not None:
        for place, label in enumerate(labels):
            if not (observed & found.mask(place)).any():
                raise NoOutcomeError(
                    f"no row of the group {quoted(label)} has an outcome, and the assumption is "
                    "about their mean: leave the group out, or assume nothing"
                )
    return found


def read_span(y_range: Any, rows: SeenRows) -> Span:
    """Return the range of the outcome: that given, which must hold all outcomes, or the observed.

    A range that is observed has a width, since no bound would say anything without one.
    """
    low, high = float(rows.outcome[rows.seen].min()), float(rows.outcome[rows.seen].max())
    if y_range is None:
        if low == high:
            raise InputError(
                f"every known outcome is {low:g}, which shows no range: pass {option('y_range')}, "
                "the lowest and the highest value that an outcome may have"
            )
        return low, high
    try:
        bottom, top = map(float, y_range)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{option('y_range')} must be two numbers, as in (0, 1); got {quoted(y_range)}"
        ) from error
    if not (np.isfinite([bottom, top]).all() and bottom < top):
        raise InputError(
            f"{option('y_range')} must be two finite numbers, the lower one first; got "
            f"{quoted(y_range)}"
        )
    if low < bottom or high > top:
        known = rows.outcome[rows.seen]
        beyond = int(((known < bottom) | (known > top)).sum())
        raise InputError(
            f"{option('y_range')} is {bottom:g} to {top:g}, and {plural(beyond, 'outcome')} "
            f"{'is' if beyond == 1 else 'are'} beyond it: outcomes run from {low:g} to {high:g}"
        )
    return bottom, top


def read_conf_level(conf_level: float) -> float:
    """Return the confidence level; refuse one that is not between 0 and 1."""
    check_level(conf_level)
    return float(conf_level)


def one_of(value: Any, known: Sequence[str], what: str) -> Any:
    """Return a word, or None; refuse one that is not known."""
    if value is not None and value not in known:
        raise InputError(
            f"{option(what)} must be {quoted_list(list(known), len(known))}; got {quoted(value)}"
            + nearest(str(value), known)
        )
    return value

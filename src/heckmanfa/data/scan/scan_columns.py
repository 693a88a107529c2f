"""Which columns a scan asks for, by role, and what those of features are.

The rules are those of `columns.kinds`; the schema says how each column is stored. `count_columns`
feeds the batches of all rows to tallies in one pass. `learn_encoding` uses it for scans, which
read only text and numbers that may identify rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from heckmanfa.data.columns.column_hints import is_identifier_name
from heckmanfa.data.columns.column_names import refuse_absent, repeated
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.columns.kinds import (
    Asked,
    ColumnKind,
    ColumnSpec,
    asked_for,
    may_count_rows,
)
from heckmanfa.data.columns.tally import GapTally, NumberTally, Tally
from heckmanfa.data.fitted_levels import read_references, with_references
from heckmanfa.data.rows import Mask
from heckmanfa.data.scan.arrow_columns import (
    FLAGS,
    Needed,
    floats_of,
    is_category,
    kind_of,
    text_in,
    time_of,
    was_category,
)
from heckmanfa.data.scan.engines import Engine, Piece
from heckmanfa.data.survey import Survey
from heckmanfa.data.threads import in_order
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, quoted_list, shown

Role = Literal[
    "outcome",
    "selected",
    "sample_weight",
    "full_weight",
    "subpop",
    "groups",
    "groups 2",
    "groups 3",
    "groups 4",
]
Opened = TypeVar("Opened", bound=Engine)

_GROUPS: tuple[Role, ...] = ("groups", "groups 2", "groups 3", "groups 4")
_WANTED = {
    "outcome": "numbers or two classes",
    "selected": FLAGS,
    "subpop": FLAGS,
    **dict.fromkeys(_GROUPS, "labels"),
}


@dataclass(frozen=True)
class ScanColumns:
    """What the user says about the columns of a scan: the arguments of `scan`, in their order."""

    outcome: str | None
    features: Sequence[str] | None
    """None for all columns without another role"""
    selected: str | None
    sample_weight: str | None
    groups: str | Sequence[str] | None
    missing: str
    categorical: Sequence[str]
    numeric: Sequence[str]
    reference: Mapping[str, Any] | None
    """levels that are to be the references of categories"""
    encoding: Encoding | None
    """how columns become features, if that was learned before"""
    survey: Survey | None = None
    """names the weights, the groups and more, in place of the user"""

    def __post_init__(self) -> None:
        """Refuse arguments that are not valid, or contradict each other."""
        if self.missing not in ("error", "drop"):
            raise InputError(f"missing must be 'error' or 'drop'; got {quoted(self.missing)}")
        if self.encoding is not None and (len(self.categorical) or len(self.numeric)):
            raise InputError(
                "an encoding already defines the categories; leave categorical and numeric out"
            )
        for name in ("sample_weight", "groups"):
            if self.survey is not None and getattr(self, name) is not None:
                raise InputError(f"the survey names its own columns: leave {name} out")
        for name in ("features", "categorical", "numeric"):
            columns = getattr(self, name)
            if isinstance(columns, str):
                raise InputError(f"{name} must be a list of columns: write [{quoted(columns)}]")
        if len(self.groupings) > len(_GROUPS):
            raise InputError(
                f"groups names {len(self.groupings)} columns; a clustering is one, two clusterings "
                "are two, and a survey has no more than a stratum, a unit and a population"
            )

    @property
    def groupings(self) -> tuple[str, ...]:
        """The columns of groups."""
        if self.survey is not None:
            return self.survey.design_columns
        if self.groups is None:
            return ()
        return (self.groups,) if isinstance(self.groups, str) else tuple(self.groups)

    @property
    def roles(self) -> dict[Role, str]:
        """The column of each role that has one."""
        columns: dict[Role, str | None] = {
            "outcome": self.outcome,
            "selected": self.selected,
            "sample_weight": self.sample_weight,
        }
        if self.survey is not None:
            columns |= {"sample_weight": self.survey.weights, "subpop": self.survey.subpop}
        columns |= dict(zip(_GROUPS, self.groupings, strict=False))
        return {role: name for role, name in columns.items() if name is not None}

    def opened(
        self, open_engine: Callable[[Needed], Opened]
    ) -> tuple[Opened, list[str], Encoding | None]:
        """Open an engine, and return it with the columns of features and how they are encoded.

        ``open_engine`` gets what says which columns matter, given a schema.
        """
        sources: list[str] = []

        def needed(schema: Any, what: Any) -> list[str] | None:
            sources.extend(self.sources(schema, what))
            return self.needed(sources, schema.names)

        engine = open_engine(needed)
        self.check(engine.schema)
        learned = self.learn(engine, sources)
        if learned is not None:
            columns = FittedColumns.of(learned)
            learned = with_references(learned, read_references(columns, self.reference))
        return engine, sources, learned

    def sources(self, schema: Any, what: Any) -> list[str]:
        """Return the columns that features are made from; refuse those that are not there.

        Messages call the table ``what``.
        """
        taken = [*self.roles.values(), *self.replicates(schema.names)]
        sources = list(self.encoding.sources if self.encoding is not None else self.features or [])
        if self.encoding is None and self.features is None:
            sources = [name for name in schema.names if name not in taken]
        elif self.features is not None and {*self.features} != {*sources}:
            raise InputError("an encoding already defines the features; leave features out")
        refuse_absent([*taken, *sources], schema.names, shown(what))
        if twice := repeated(sources):
            raise InputError(f"the feature {quoted(twice[0])} is named twice")
        if self.outcome in sources:
            raise InputError(f"{quoted(self.outcome)} is the outcome, and cannot also be a feature")
        designed = {*self.replicates(schema.names)}
        designed |= {*(() if self.survey is None else self.survey.main_columns)}
        if both := [name for name in sources if name in designed]:
            raise InputError(
                f"{quoted(both[0])} is a column of the survey's design, and cannot also be a "
                "feature"
            )
        if not sources:
            besides = f" besides {quoted_list(taken, 4)}" if taken else ""
            raise InputError(f"{shown(what)} has no column{besides} that could be a feature")
        return sources

    def replicates(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of replicate weights, given those of the table."""
        return () if self.survey is None else self.survey.replicate_columns(names)

    def needed(self, sources: Sequence[str], names: Sequence[str]) -> list[str] | None:
        """Return the columns that the scan reads, given those of the table; None for all."""
        if self.features is None and self.encoding is None:
            return None
        return list(dict.fromkeys([*sources, *self.roles.values(), *self.replicates(names)]))

    def check(self, schema: Any) -> None:
        """Refuse columns of a type that their role cannot have."""
        for role, name in self.roles.items():
            kind = kind_of(schema.field(name).type)
            fits = kind != "other" if role in _GROUPS else kind in ("number", "empty")
            fits = fits or (role in ("outcome", "selected", "subpop") and kind == "text")
            if not fits:
                wanted = _WANTED.get(role, "numbers")
                raise InputError(wrong_type(role, name, schema.field(name).type, wanted))
        for name in self.replicates(schema.names):
            if kind_of(schema.field(name).type) not in ("number", "empty"):
                stored = schema.field(name).type
                raise InputError(wrong_type("replicate_weights", name, stored, "numbers"))

    def learn(self, engine: Engine, sources: Sequence[str]) -> Encoding | None:
        """Decide how columns become features; None if there is no outcome, so nothing is fitted."""
        if self.encoding is not None or self.outcome is None:
            return self.encoding
        return learn_encoding(
            engine,
            sources,
            categorical=self.categorical,
            numeric=self.numeric,
            named=self.features is not None,
        )


def wrong_type(role: str, name: str, stored: Any, wanted: str) -> str:
    """Explain that a column has a type that its role cannot have."""
    return (
        f"{role} names the column {quoted(name)}, which must hold {wanted}; its type is "
        f"{shown(stored)}"
    )


MOST_SEEN = 2**29
"""most distinct integers, at a byte each, in a column that may count the rows"""

_ROWS_AT_ONCE = 2**13
# How often progress is told: this many times, and not more often than after so many rows.
_STEPS, _ROWS_BETWEEN = 10, 2**16


def stored_column(
    schema: Any, name: str, asked: Asked | None = None, *, named: bool = False
) -> ColumnSpec:
    """Return what the schema of files says about a column; the others are those of `ColumnSpec`."""
    from pyarrow import types

    stored = schema.field(name).type
    kinds: dict[str, Literal["text", "time", "objects"]] = {
        "text": "text",
        "date": "time",
        "other": "objects",
    }
    kind = kind_of(stored)
    is_declared = asked != "number" and kind == "number" and declares_category(schema, name)
    return ColumnSpec(
        name,
        "text" if is_declared else kinds.get(kind, "number"),
        asked,
        boolean=bool(types.is_boolean(stored)),
        time=time_of(stored) if kind == "date" else "dates",
        declared=is_category(stored) and (stored.ordered or was_category(schema.field(name))),
        of_numbers=is_declared,
        named=named,
    )


def declares_category(schema: Any, name: str) -> bool:
    """Whether a schema says that a column is a category, whatever its values are.

    Parquet stores a category of numbers as numbers; only the metadata of pandas says what it was.
    """
    field = schema.field(name)
    is_number = kind_of(field.type) == "number"
    return is_category(field.type) or (is_number and was_category(field))


def count_columns(
    engine: Engine,
    columns: Mapping[str, ColumnSpec],
    starts: Mapping[str, Callable[[], Tally]],
    tell: Callable[[str], None] = lambda words: None,
) -> dict[str, Tally]:
    """Count columns in one pass over all rows; refuse columns of text that hold lists or the like.

    ``starts`` makes an empty tally for each column, and ``columns`` is what is known about them.
    Plain text is read with its dictionary: this compares texts once per level instead of once per
    row. ``tell`` gets a few words about progress.
    """
    if not starts:
        return {}
    texts = [
        name
        for name in starts
        if name in columns
        and kind_of(engine.schema.field(name).type) == "text"
        and not columns[name].declared
    ]

    def count(piece: Piece) -> tuple[int, dict[str, Tally]]:
        row = piece.start
        tallies = {name: start() for name, start in starts.items()}
        for batch in piece.batches:
            for name, tally in tallies.items():
                _add(tally, batch.column(name), name, row)
            row += batch.num_rows
        return piece.start, tallies

    total = {name: start() for name, start in starts.items()}
    told = 0
    with closing(engine.pieces(tuple(starts), tuple(texts), _ROWS_AT_ONCE)) as pieces:
        for first, of_piece in in_order(count, pieces):
            if first >= told:
                of = "" if engine.n_rows is None else f" of {engine.n_rows:,}"
                tell(f"counting the columns' values, row {first:,}{of}")
                told = first + max((engine.n_rows or 0) // _STEPS, _ROWS_BETWEEN)
            for name, tally in of_piece.items():
                # Both are of the same class: the column's own start made them.
                total[name].merge(tally)  # type: ignore[arg-type]
    return total


def _add(tally: Tally, array: Any, name: str, row: int) -> None:
    if isinstance(tally, NumberTally):
        tally.add(floats_of(array))
    elif isinstance(tally, GapTally):
        tally.add(array.to_pandas())
    else:
        try:
            tally.add(text_in(array), row)
        except TypeError:
            ColumnSpec(name, "objects", "category").kind_of_objects()


def seen_in(engine: Engine, names: Sequence[str]) -> dict[str, Mask]:
    """Return a mask to mark integers in, for each column of numbers that may count the rows."""
    from pyarrow import types

    kinds = {name: engine.schema.field(name).type for name in names}
    numbers = [
        name
        for name, stored in kinds.items()
        if kind_of(stored) == "number" and not types.is_boolean(stored)
    ]
    return {
        name: np.zeros(int(high) + 1, dtype=bool)
        for name, (low, high, n_given) in engine.ranges(numbers).items()
        if may_count_rows(n_given, low, high) and high < MOST_SEEN
    }


def learn_encoding(
    engine: Engine,
    sources: Sequence[str],
    *,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    named: bool = True,
) -> Encoding:
    """Decide how the columns ``sources`` become features; missing values stay NaN.

    Dictionaries are categories unless the user says otherwise, as in memory. If the user ``named``
    the columns, all numbers are features. Otherwise numbers that identify rows are refused.
    """
    schema = engine.schema
    asked: dict[str, Asked] = {
        name: "category" for name in sources if declares_category(schema, name)
    }
    asked |= asked_for(categorical, numeric, sources)
    columns = {
        name: stored_column(schema, name, asked.get(name), named=name in categorical)
        for name in sources
    }
    for name, column in columns.items():
        if column.stored == "objects" and column.asked != "category":
            reason = f"is {schema.field(name).type}, which no model can use"
            _refuse(ColumnKind(name, "text", reason, can_override=False), named)
        kind = column.kind_of_objects() if column.stored == "objects" else column.kind_by_type()
        if kind is not None:
            _refuse(kind, named)
    texts = [name for name, column in columns.items() if column.is_text]
    numbers = [name for name in sources if not named and name not in texts and name not in asked]
    seen = seen_in(engine, numbers)
    identifiers = [name for name in numbers if name in seen or is_identifier_name(name)]
    counted = count_columns(
        engine,
        columns,
        {
            name: partial(columns[name].start, capped=True, seen=seen.get(name))
            for name in (*texts, *identifiers)
        },
    )
    levels = {}
    for name, tally in counted.items():
        assert not isinstance(tally, GapTally)
        kind = columns[name].kind(tally)
        if isinstance(tally, NumberTally):
            # The fit refuses constants, but not identifiers.
            if kind.kind == "identifier":
                _refuse(kind, named)
        elif kind.kind == "constant" and tally.counts and columns[name].asked != "number":
            # As any other constant column: the fit decides (on_collinear).
            levels[name] = tally.levels
        elif not kind.is_feature:
            _refuse(kind, named)
        elif kind.kind == "category":
            levels[name] = tally.levels
    return Encoding.plain(sources, levels)


def _refuse(kind: ColumnKind, named: bool) -> None:
    """Refuse a column that is not a feature, with the reason that the command line gives.

    ``named`` says whether the user named the features.
    """
    ways = "leave it out of `features`" if named else "name the features to use in `features`"
    if kind.can_override:
        ways += ", or say what it is in `numeric` or `categorical`"
    raise InputError(f"column {quoted(kind.name)} {kind.reason}; {ways}")

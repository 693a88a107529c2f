"""Reading and encoding the table of a question, in memory or in passes over files and queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoDataFrame

from heckmanfa.analysis.column_roles import (
    check_counted,
    counted_target,
    number_tally,
    read_outcome,
    read_roles,
)
from heckmanfa.analysis.labelling import codebook_of
from heckmanfa.analysis.prepared import (
    EXCLUDE,
    Loaded,
    Prepared,
    decide_flagged,
    refuse_leaks,
    refuse_rows,
    switches_after,
)
from heckmanfa.analysis.request import (
    Question,
    check_question,
    feature_names,
    question_of_family,
    references_in,
    refuse_given,
    refuse_text_options,
)
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_hints import CodedNumbers, find_coded_numbers, is_code_name
from heckmanfa.data.columns.column_names import repeated
from heckmanfa.data.columns.dropped_rows import (
    columns_dropped_by,
    notes_on_rows,
    without_rows,
)
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.feature_reading import find_device
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.columns.missing_codes import (
    Blanked,
    Suspicion,
    blank,
    codes_of,
    columns_with_codes,
    find_suspicions,
    notes_on_codes,
    notes_on_suspicions,
)
from heckmanfa.data.columns.tally import NumberTally
from heckmanfa.data.columns.total_rows import find_total_rows
from heckmanfa.data.columns.values import frame_as_declared
from heckmanfa.data.fitted_levels import (
    count_levels_in,
    read_references,
    recoded,
    with_fitted_levels,
    with_references,
)
from heckmanfa.data.missing_features import GapCounts
from heckmanfa.data.row_parts import count_parts
from heckmanfa.data.row_rules import explain_known_only
from heckmanfa.data.rows import Mask
from heckmanfa.data.scan.scanning import scan
from heckmanfa.data.survey import groups_at
from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError, needs_extra
from heckmanfa.tables.codebook import Codebook, schema_codebook, stored_codebook
from heckmanfa.tables.reading import Table, is_piped, open_table
from heckmanfa.tables.streamed import (
    GIGABYTE,
    Learned,
    StoredTable,
    arrow_frame,
    find_stored,
    learn_streamed,
    stored_source,
)
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted

_NO_ORDER = (
    "The query gives its rows in no stable order: results of two runs agree up to rounding, not to "
    "the last bit."
)


def prepare(
    question: Question, tell: Callable[[str], None], frame: IntoDataFrame | None = None
) -> Prepared:
    """Read and encode the table, or learn how to encode it if it is too large to load.

    Parameters are those of `analyse`; ``tell`` is called with a few words at each step.
    """
    check_question(question)
    if question.device != "cpu":
        find_device(question.device)
    return _prepare(question, tell, frame, GIGABYTE * question.stream_above)


def load(
    question: Question, tell: Callable[[str], None], frame: IntoDataFrame | None = None
) -> Prepared:
    """Read and encode the table, however large it is; parameters as in `prepare`."""
    check_question(question)
    return _prepare(question, tell, frame, math.inf)


def _prepare(
    question: Question, tell: Callable[[str], None], frame: IntoDataFrame | None, most_bytes: float
) -> Prepared:
    """Read and encode the table; files and queries with more bytes are read in passes."""
    table = find_stored(question.data) if frame is None else stored_source(frame)
    if table is None:
        return _read_text(question, tell) if frame is None else _take_frame(question, frame, tell)
    refuse_text_options(vars(question), table.format)
    names = feature_names(question, table.columns)
    roles = [name for _, name in question.roles_in(table.columns)]
    needed = [*names, *roles, *filter(None, [question.by])]
    needed += columns_dropped_by(question.drop_rows, table.columns)
    size = table.size(needed)
    if size <= most_bytes:
        tell(f"reading {question.called}")
        codebook = codebook_of(question, table.columns, schema_codebook(table.schema))
        loaded = table.load([name for name in table.columns if name in needed])
        data = typed_table(question, loaded)
        read = data, names, table.columns, table.paths
        return _encode(question, *read, codebook, tell)
    if question.device != "cpu":
        raise InputError(
            f"{option('device', question.device)} needs the rows loaded, which would take about "
            f"{size / GIGABYTE:.3g} GB: pass a larger {option('stream_above')} if memory and the "
            f"GPU have room, or leave {option('device')} out to read them in passes"
        )
    passes = f"rows are read from {table.described} in passes, not loaded: they would take about "
    tell(told(f"{passes}{size / GIGABYTE:.3g} GB (see {option('stream_above')})", keywords=True))
    return _prepare_stream(question, table, names, tell)


def _read_text(question: Question, tell: Callable[[str], None]) -> Prepared:
    """Read a file of another format."""
    piped = is_piped(question.data)
    if not piped:
        tell(f"reading {question.called}")
    table = open_text(question, tell)
    columns = [str(name) for name in table.frame.columns]
    try:
        names = feature_names(question, columns)
    except UnknownFeatureError as error:
        raise UnknownFeatureError(f"{error}{table.hint}") from error
    categories = {*question.categorical}
    numbers = [name for name in names if name not in categories]
    table.refuse_doubts(
        [question.outcome, *([question.weights] if question.weights else []), *numbers]
    )
    files = () if piped else (Path(question.data),)
    stored = Codebook() if piped else stored_codebook(question.data)
    codebook = codebook_of(question, columns, stored)
    return _encode(question, table, names, columns, files, codebook, tell)


def open_text(
    question: Question, tell: Callable[[str], None] | None = None, *, number_repeats: bool = False
) -> Table:
    """Read the file of a question that is not Parquet or Arrow; see `open_table`."""
    return open_table(
        question.data,
        decimal=question.decimal,
        thousands=question.thousands,
        sheet=question.sheet,
        header_row=question.header_row,
        na_values=question.na_values,
        literal=_literal(question),
        drop_rows=question.drop_rows,
        number_repeats=number_repeats,
        tell=tell,
    )


def _literal(question: Question) -> list[str]:
    """Return the columns of which the user says that they are categories, or what is missing."""
    # Which columns a file has is not known yet, so any "=" may end a name; it is checked later.
    named = [
        item[:place].strip()
        for item in question.na_values
        for place, sign in enumerate(item)
        if sign == "="
    ]
    return [*question.categorical, *named]


def as_pandas(frame: IntoDataFrame) -> pd.DataFrame:
    """Return a frame of any library as one of pandas."""
    if isinstance(frame, pd.DataFrame):
        return frame
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputTypeError(
            "the table must be a data frame, a lazy frame, a relation, a dataset, rows of scan, or "
            f"a path; got a {type(frame).__name__}"
        ) from error
    if table.implementation.is_polars():
        # Categories without a declared order would come in the order of the rows.
        kinds = enumerate(table.schema.values())
        loose = [table[:, place] for place, kind in kinds if kind == nw.Categorical]
        table = table.with_columns(*(series.cast(nw.String) for series in loose))
    if table.implementation.is_pyarrow():
        return arrow_frame(table.to_native())
    with needs_extra("frames that are not pandas need pyarrow", "parquet"):
        return table.to_pandas()


def take_frame(frame: IntoDataFrame) -> pd.DataFrame:
    """Return a frame of any library as one of pandas, with distinct names that are text."""
    frame = as_pandas(frame)
    columns = [str(name) for name in frame.columns]
    if twice := repeated(columns):
        raise InputError(
            f"the frame has several columns {quoted(twice[0])}; give each its own name"
        )
    return frame.set_axis(columns, axis="columns").reset_index(drop=True)


def _take_frame(question: Question, frame: IntoDataFrame, tell: Callable[[str], None]) -> Prepared:
    """Encode a frame, whose dtypes say what its columns hold."""
    schema = getattr(frame, "schema", None)
    # Of the frames with a schema, only those of Arrow have metadata.
    stored = schema_codebook(schema) if hasattr(schema, "metadata") else None
    frame = take_frame(frame)
    columns = list(frame.columns)
    refuse_text_options(vars(question), "a frame")
    names = feature_names(question, columns)
    codebook = codebook_of(question, columns, stored)
    table = typed_table(question, frame)
    return _encode(question, table, names, columns, (), codebook, tell)


def typed_table(question: Question, frame: pd.DataFrame) -> Table:
    """Return a table whose columns have types, without the rows that are not data."""
    kept = without_rows(frame, question.drop_rows)
    notes = tuple(notes_on_rows(kept.counts))
    return Table(kept.frame, notes=notes, n_dropped=kept.n_dropped)


def _encode(
    question: Question,
    table: Table,
    names: list[str],
    columns: list[str],
    files: tuple[Path, ...],
    codebook: Codebook,
    tell: Callable[[str], None],
) -> Prepared:
    """Encode the features ``names`` of a table in memory; leave out rows that lack one."""
    read = blanked(question, table, names, columns)
    frame, counts = read.frame, table.blanked | read.counts
    notes = notes_on_codes(question.na_values, columns, counts)
    selected, weight, groups = read_roles(question, frame)
    outcome, target = read_outcome(question, frame[question.outcome], selected)
    question = question_of_family(question, target.family)
    tell(f"encoding {len(names)} columns")
    encoding, X = learn(question, frame, names, columns, untyped=table.untyped)
    if question.dates is not None and not encoding.dates:
        notes.append(f"{option('dates')} does nothing here: no feature holds dates.")
    encoding = replace(
        encoding,
        decimal=table.decimal,
        thousands=question.thousands,
        percent=tuple(name for name in encoding.sources if name in table.percent),
        money={name: table.money[name] for name in encoding.sources if name in table.money},
    )
    suspicions, coded = find_codes(question, encoding, X, target.amounts(outcome))
    totals = find_total_rows(table.frame)
    gaps = X.isna().to_numpy(dtype=bool)
    kept: Mask = np.asarray(~gaps.any(axis=1))
    made_from = encoding.made_from
    lost = GapCounts.of(gaps).lost(made_from)
    refuse_leaks(encoding, frame, X, outcome, selected, everyone=question.family.sees_everyone)
    status = decide_flagged(outcome, selected, kept, everyone=question.family.sees_everyone)
    refuse_rows(
        encoding,
        n_rows=len(frame),
        kept=int(np.count_nonzero(kept)),
        selected=int(np.count_nonzero(status.selected & kept)),
        observed=int(np.count_nonzero(status.with_outcome & status.selected)),
        lost=lost,
        everyone=question.family.sees_everyone,
    )
    fitted = status.kept if weight is None else status.kept & (weight > 0)
    encoding, X = settle(question, encoding, X, fitted)
    kept = np.asarray(X.notna().all(axis="columns"), dtype=bool)
    X = X.loc[kept]
    return Prepared(
        question=question,
        encoding=encoding,
        rows=Loaded(
            X=X,
            y=outcome[kept],
            selected=None if selected is None else selected[kept],
            weight=None if weight is None else weight[kept],
            groups=groups_at(groups, kept),
            flagged=question.flagged or "selected",
            by=None if question.by is None else frame[question.by].to_numpy()[kept],
        ),
        n_rows=len(frame),
        n_dropped=table.n_dropped,
        n_columns=len(columns),
        switches=frozenset(str(name) for name in X.columns if _is_switch(X[name].to_numpy())),
        files=files,
        notes=_told((*table.notes, *notes, *map(str, totals), *notes_on_suspicions(suspicions))),
        suspicions=suspicions,
        coded_numbers=coded,
        total_rows=totals,
        target=target,
        lost=lost,
        codebook=codebook,
    )


def blanked(question: Question, table: Table, names: list[str], columns: list[str]) -> Blanked:
    """Return a table in which the values that mean missing are missing."""
    categories = {*names} - {*question.numeric}
    codes = codes_of(question.na_values, columns)
    return blank(frame_as_declared(table.frame, categories), codes)


def learn(
    question: Question, frame: pd.DataFrame, names: list[str], columns: list[str], *, untyped: bool
) -> tuple[Encoding, pd.DataFrame]:
    """Learn how the features ``names`` become numbers, and encode them."""
    return Encoding.learn(
        frame[names],
        names,
        categorical=question.categorical,
        numeric=question.numeric,
        missing=question.missing,
        untyped=untyped,
        missing_codes=codes_of(question.na_values, columns),
        dates=question.dates,
        min_level_rows=question.min_level_rows,
        literal=columns_with_codes(question.na_values, columns),
        ignore_case=question.ignore_case,
    )


def find_codes(
    question: Question, encoding: Encoding, X: pd.DataFrame, outcome: Floats
) -> tuple[tuple[Suspicion, ...], tuple[CodedNumbers, ...]]:
    """Find numbers that may mean missing, and columns of numbers that may be categories."""
    numbers = [name for name in encoding.sources if name not in encoding.levels]
    tallies = {name: number_tally(X[name].to_numpy()) for name in numbers}
    # What the user calls a number is one.
    amounts = {*encoding.dates, *question.numeric}
    coded = {
        name: number_tally(X[name].to_numpy(), distinct=True)
        for name in numbers
        if name not in amounts and is_code_name(name)
    }
    tallies = {question.outcome: number_tally(outcome)} | tallies
    return find_suspicions(tallies, question.outcome), find_coded_numbers(coded)


def settle(
    question: Question, encoding: Encoding, X: pd.DataFrame, fitted: Mask
) -> tuple[Encoding, pd.DataFrame]:
    """Let categories have the levels of the rows that will be fitted."""
    asked = _references(question, encoding)
    rows = count_levels_in(encoding, X, fitted)
    settled = with_fitted_levels(encoding, rows, asked)
    return settled, recoded(X, encoding, settled)


def _references(question: Question, encoding: Encoding) -> dict[str, str]:
    """Return the reference that a question names for each of some categories, or refuse it."""
    asked = references_in(question, [*encoding.sources, *encoding.left_out])
    for name in asked:
        if name in encoding.left_out:
            raise InputError(
                f"{option('reference')} names {quoted(name)}, which cannot be used: "
                f"{encoding.reasons[name]}"
            )
    return read_references(FittedColumns.of(encoding), asked)


def _told(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(told(note, keywords=True) for note in notes)


def _is_switch(values: Floats) -> bool:
    # The first rows of most columns already show that they are not binary.
    return all(bool(np.all((some == 0) | (some == 1))) for some in (values[:1000], values))


def _prepare_stream(
    question: Question, table: StoredTable, names: list[str], tell: Callable[[str], None]
) -> Prepared:
    """Learn the encoding of the features ``names`` in one pass over the files."""
    needed = "needs the rows in memory, and these are read in passes:"
    larger = f"pass a larger {option('stream_above')} to load the rows"
    refuse_given(
        question,
        ["honest", "by"],
        f"{needed} leave it out, name fewer files, or {larger}",
    )
    stored = "store missing values as null, dates as numbers and only rows of data"
    store = f"{needed} {stored}, or {larger}"
    refuse_given(question, ["na_values", "dates", "drop_rows"], store)
    codebook = codebook_of(question, table.columns, schema_codebook(table.schema))
    roles = [name for _, name in question.roles_in(table.columns)]
    learned = learn_streamed(
        table,
        names,
        categorical=question.categorical,
        numeric=question.numeric,
        missing=question.missing,
        min_level_rows=question.min_level_rows,
        ignore_case=question.ignore_case,
        roles=[name for name in roles if name not in question.unit_columns],
        groups=question.unit_columns,
        tell=tell,
    )
    target = counted_target(
        question,
        learned.roles[question.outcome],
        booleans=str(table.schema.field(question.outcome).type) == "bool",
    )
    question = question_of_family(question, target.family)
    check_counted(question, learned.roles, table.n_rows)
    if question.missing == "mean":
        _refuse_filled(question, table, learned)
    encoding = with_references(learned.encoding, _references(question, learned.encoding))
    rows = scan(
        table.engine,
        question.outcome,
        selected=question.flags,
        sample_weight=question.weights if question.survey is None else None,
        groups=list(question.cluster) or None,
        survey=question.survey,
        missing="drop",
        encoding=encoding,
    )
    if target.classes is not None:
        rows = rows.reading_outcome(target.classes)
    counted = {question.outcome: learned.roles[question.outcome], **learned.numbers}
    suspicions = find_suspicions(
        {name: tally for name, tally in counted.items() if isinstance(tally, NumberTally)},
        question.outcome,
    )
    return Prepared(
        question=question,
        encoding=encoding,
        rows=rows,
        n_rows=table.n_rows,
        n_dropped=0,
        n_columns=len(table.columns),
        switches=switches_after(learned.switches, learned.encoding, encoding),
        files=table.paths,
        notes=_told(
            (*([] if rows.order_is_stable else [_NO_ORDER]), *notes_on_suspicions(suspicions))
        ),
        suspicions=suspicions,
        coded_numbers=find_coded_numbers(
            {name: tally for name, tally in learned.numbers.items() if name not in question.numeric}
        ),
        target=target,
        total_rows=(),
        lost=None,
        codebook=codebook,
    )


def _refuse_filled(question: Question, table: StoredTable, learned: Learned) -> None:
    """Refuse columns that are known for selected rows only, before means fill their gaps.

    Counts of missing values tell which columns may be such; the files are read again only if
    there is one.
    """
    gaps = learned.encoding.n_missing
    if question.flags is None:
        unselected = learned.roles[question.outcome].gaps
        gaps = {name: count for name, count in gaps.items() if count >= unselected}
    if not gaps:
        return
    encoding = replace(learned.encoding, missing="drop")
    rows = scan(
        table.engine,
        question.outcome,
        selected=question.flags,
        missing="drop",
        encoding=encoding,
    )
    first = {encoding.groups.get(name, [name])[0]: name for name in gaps}
    columns = [index for index, column in enumerate(encoding.columns) if column in first]
    _, counts = count_parts(rows, columns, np.ones(len(columns), dtype=bool))
    features = [first[encoding.columns[column]] for column in columns]
    everyone = question.family.sees_everyone
    known_only = explain_known_only(features, counts.features, everyone=everyone)
    if known_only is not None:
        raise InputError(f"{known_only} {EXCLUDE}")

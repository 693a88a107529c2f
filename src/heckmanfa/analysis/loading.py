"""The rows and columns that a question is about, with every one of them accounted for.

Rows are in memory, or, where they are many and in Parquet files, stay there and are read in passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import (
    check_counted,
    read_groups,
    read_outcome,
    read_selected,
    read_weights,
)
from heckmanfa.analysis.column_sources import errors_in_sources
from heckmanfa.analysis.request import Question, check_question, feature_names
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.declared import frame_as_stored, told_of_numbers
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.parquet.parquet_rows import ParquetRows, scan_parquet
from heckmanfa.data.row_checks import is_known_only, known_only_for_selected
from heckmanfa.data.row_counts import count_parts
from heckmanfa.data.rows import Mask
from heckmanfa.data.tensors import find_device, to_device
from heckmanfa.errors import InputError, MissingValueError, NoOutcomeError, UnknownFeatureError
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.model.leakage import refuse_partial_copies
from heckmanfa.tables.piped import is_piped
from heckmanfa.tables.reading import Table, open_table
from heckmanfa.tables.stored import GIGABYTE, StoredTable, find_stored
from heckmanfa.tables.streamed import Learned, learn_streamed
from heckmanfa.text.printable import quoted

__all__ = ["Loaded", "Prepared", "load", "prepare"]


@dataclass(frozen=True, eq=False)
class Loaded:
    """The rows that miss no feature, in memory."""

    X: pd.DataFrame
    """(n, K) encoded features"""
    y: Floats
    """(n,) NaN where missing"""
    selected: Mask | None
    weight: Floats | None
    groups: Any


@dataclass(frozen=True, eq=False)
class Prepared:
    """The rows and columns that a question is about, encoded."""

    question: Question
    encoding: Encoding
    rows: Loaded | ParquetRows
    """in memory, or in files that are read in passes"""
    n_rows: int
    """rows of the table"""
    n_columns: int
    """columns of the table"""
    missing_counts: dict[str, int]
    """rows left out because a column is missing, by column; a row may count in several"""
    binary: frozenset[str]
    """features that hold only 0 and 1"""
    files: tuple[Path, ...]
    """where the table is; none where it was given in memory, or came through a pipe"""
    notes: tuple[str, ...]
    """sentences about how the table was read, where there was a choice"""

    @property
    def loaded(self) -> Loaded | None:
        """The rows, where they are in memory."""
        return self.rows if isinstance(self.rows, Loaded) else None

    @property
    def streamed(self) -> bool:
        """Whether rows are read in passes, and not loaded."""
        return self.loaded is None

    @property
    def how_read(self) -> str:
        """How the rows of files that were not loaded were read, in words."""
        many = f"{len(self.files)} Parquet file{'s' if len(self.files) > 1 else ''}"
        return f"rows were read from {many} in passes, not loaded"

    def fit(self, model: Heckman) -> None:
        """Fit a model to the rows; what is refused is said of the columns of the table."""
        with errors_in_sources(self.encoding):
            self._fit(model)

    def _fit(self, model: Heckman) -> None:
        if isinstance(self.rows, ParquetRows):
            _fit_streamed(self.rows, model, self.missing_counts)
            return
        device = self.question.device
        model.fit(
            self.rows.X if device == "cpu" else to_device(self.rows.X, device),
            self.rows.y,
            selected=self.rows.selected,
            sample_weight=self.rows.weight,
            groups=self.rows.groups,
        )


def prepare(
    question: Question, tell: Callable[[str], None], frame: pd.DataFrame | None = None
) -> Prepared:
    """Read and encode the table, or find out how to where it is too large to be loaded.

    Parameters
    ----------
    question : Question
    tell : callable
        Told in a few words what is going on.
    frame : DataFrame, optional
        The table itself, where it is in memory; ``question.data`` is its name then.

    Returns
    -------
    Prepared
    """
    check_question(question)
    if question.device != "cpu":
        find_device(question.device)
    if frame is not None:
        return _given(question, frame, tell)
    table = find_stored(question.data)
    if table is None:
        return _read(question, tell)
    _refuse_options(question, "Parquet")
    names = feature_names(question, table.columns)
    size = table.size([*names, *question.roles.values()])
    if size > GIGABYTE * question.stream_above:
        if question.device != "cpu":
            raise InputError(
                f"--device {question.device} needs the rows loaded, which would take about "
                f"{size / GIGABYTE:.3g} GB: pass a larger --stream-above where memory and the "
                "card have room, or leave --device out to read them in passes"
            )
        tell(
            f"rows are read from {table.described} in passes, not loaded: they would take about "
            f"{size / GIGABYTE:.3g} GB (see --stream-above)"
        )
        return _streamed(question, table, names, tell)
    return _loaded(question, table, tell)


def load(
    question: Question, tell: Callable[[str], None], frame: pd.DataFrame | None = None
) -> Prepared:
    """Read and encode the table, however large it is; parameters are those of `prepare`."""
    check_question(question)
    if frame is not None:
        return _given(question, frame, tell)
    table = find_stored(question.data)
    if table is None:
        return _read(question, tell)
    _refuse_options(question, "Parquet")
    return _loaded(question, table, tell)


def _loaded(question: Question, table: StoredTable, tell: Callable[[str], None]) -> Prepared:
    """Read those columns of Parquet files that are asked about."""
    needed = [*feature_names(question, table.columns), *question.roles.values()]
    tell(f"reading {Path(question.data).name}")
    frame = table.load([one for one in table.columns if one in needed])
    return _encoded(question, Table(frame), table.columns, tuple(table.paths), tell)


def _read(question: Question, tell: Callable[[str], None]) -> Prepared:
    """Read a file of another format."""
    if not is_piped(question.data):
        tell(f"reading {question.called}")
    table = open_table(
        question.data,
        decimal=question.decimal,
        thousands=question.thousands,
        sheet=question.sheet,
        tell=tell,
    )
    columns = [str(one) for one in table.frame.columns]
    try:
        names = feature_names(question, columns)
    except UnknownFeatureError as error:
        raise UnknownFeatureError(f"{error}{table.hint}") from error
    numbers = [one for one in names if one not in question.categorical]
    table.refuse_doubts(
        [question.outcome, *([question.weights] if question.weights else []), *numbers]
    )
    files = () if is_piped(question.data) else (Path(question.data),)
    return _encoded(question, table, columns, files, tell)


def _refuse_options(question: Question, what: str) -> None:
    """Refuse options about how cells are written, where there are types."""
    for option in ("decimal", "thousands", "sheet"):
        if getattr(question, option) is not None:
            raise InputError(f"--{option} is for text and Excel files, and the data is {what}")


def _given(question: Question, frame: pd.DataFrame, tell: Callable[[str], None]) -> Prepared:
    """Take a frame whose types say what its columns are, as those of a Parquet file do."""
    columns = [str(one) for one in frame.columns]
    twice = sorted({one for one in columns if columns.count(one) > 1})
    if twice:
        raise InputError(
            f"the frame has several columns {quoted(twice[0])}; give each its own name"
        )
    _refuse_options(question, "a frame")
    frame = frame.set_axis(columns, axis="columns").reset_index(drop=True)
    return _encoded(question, Table(frame), columns, (), tell)


def _encoded(
    question: Question,
    table: Table,
    columns: list[str],
    files: tuple[Path, ...],
    tell: Callable[[str], None],
) -> Prepared:
    """Encode a table in memory, and leave out rows that miss a feature."""
    names = feature_names(question, columns)
    frame = frame_as_stored(table.frame)
    asked = {*question.categorical, *question.numeric}
    notes = told_of_numbers(table.frame, [one for one in names if one not in asked])
    outcome = read_outcome(question, frame)
    selected = read_selected(question, frame)
    weight = read_weights(question, frame)
    groups = read_groups(question, frame)
    tell(f"encoding {len(names)} columns")
    encoding, X = Encoding.learn(
        frame[names],
        names,
        categorical=question.categorical,
        numeric=question.numeric,
        missing=question.missing,
        untyped=table.untyped,
    )
    encoding = replace(
        encoding,
        decimal=table.decimal,
        thousands=question.thousands,
        percent=tuple(one for one in encoding.sources if one in table.percent),
    )
    shortage = X.isna().to_numpy(dtype=bool)
    kept: Mask = np.asarray(~shortage.any(axis=1))
    missing_counts = _missing_counts(encoding, shortage, list(X.columns))
    _refuse_told(encoding, frame, X, outcome, selected)
    observed = kept & ~np.isnan(outcome)
    chosen = observed if selected is None else selected & kept
    _refuse_rows(
        n_rows=len(frame),
        kept=int(np.count_nonzero(kept)),
        selected=int(np.count_nonzero(chosen)),
        observed=int(np.count_nonzero(chosen & observed)),
        missing_counts=missing_counts,
    )
    X = X.loc[kept]
    return Prepared(
        question=question,
        encoding=encoding,
        rows=Loaded(
            X=X,
            y=outcome[kept],
            selected=None if selected is None else selected[kept],
            weight=None if weight is None else weight[kept],
            groups=None if groups is None else groups[kept],
        ),
        n_rows=len(frame),
        n_columns=len(columns),
        missing_counts=missing_counts,
        binary=frozenset(str(name) for name in X.columns if _is_binary(X[name].to_numpy())),
        files=files,
        notes=(*table.notes, *notes),
    )


def _is_binary(values: Floats) -> bool:
    # Most columns are not, and their first rows say so.
    return all(bool(np.all((part == 0) | (part == 1))) for part in (values[:1000], values))


def _missing_counts(encoding: Encoding, shortage: Mask, columns: list[str]) -> dict[str, int]:
    of = {dummy: name for name, dummies in encoding.groups.items() for dummy in dummies}
    counts: dict[str, int] = {}
    for place, column in enumerate(columns):
        count = int(np.count_nonzero(shortage[:, place]))
        if count:
            counts[of.get(column, column)] = count
    return counts


def _streamed(
    question: Question, table: StoredTable, names: list[str], tell: Callable[[str], None]
) -> Prepared:
    """Find out in one pass over files how their rows are encoded."""
    if question.honest:
        raise InputError(
            "--honest needs the rows in memory, and these are read in passes: leave it out, name "
            "fewer files, or let --stream-above be large enough for the rows to be loaded"
        )
    roles = list(question.roles.values())
    learned = learn_streamed(
        table,
        names,
        categorical=question.categorical,
        numeric=question.numeric,
        missing=question.missing,
        roles=[one for one in roles if one != question.cluster],
        groups=[] if question.cluster is None else [question.cluster],
        tell=tell,
    )
    check_counted(question, learned.roles, table.n_rows)
    if question.missing == "mean":
        _refuse_filled(question, table, learned)
    rows = scan_parquet(
        table.paths,
        question.outcome,
        selected=question.selected,
        sample_weight=question.weights,
        groups=question.cluster,
        missing="drop",
        encoding=learned.encoding,
    )
    return Prepared(
        question=question,
        encoding=learned.encoding,
        rows=rows,
        n_rows=table.n_rows,
        n_columns=len(table.columns),
        missing_counts=learned.encoding.n_missing if question.missing == "drop" else {},
        binary=learned.binary,
        files=tuple(table.paths),
        notes=(),
    )


def _refuse_filled(question: Question, table: StoredTable, learned: Learned) -> None:
    """Refuse columns of files that are known only for the rows that are selected.

    A fit cannot see this once means are put in. Counts say which columns may be; only where there
    is one are the files read for it.
    """
    gaps = learned.encoding.n_missing
    if question.selected is None:
        unselected = learned.roles[question.outcome].gaps
        gaps = {name: count for name, count in gaps.items() if count >= unselected}
    if not gaps:
        return
    encoding = replace(learned.encoding, missing="drop")
    rows = scan_parquet(
        table.paths,
        question.outcome,
        selected=question.selected,
        missing="drop",
        encoding=encoding,
    )
    first = {encoding.groups.get(name, [name])[0]: name for name in gaps}
    columns = [place for place, one in enumerate(encoding.columns) if one in first]
    census = count_parts(rows, columns, [True] * len(columns))
    known = np.flatnonzero(census.known_only_for_selected())
    only = [first[encoding.columns[columns[one]]] for one in known]
    if only:
        also = [int(np.atleast_1d(census.gaps_selected)[one]) for one in known]
        raise InputError(f"{known_only_for_selected(only, census.not_chosen, also)} {_EXCLUDE}")


def _refuse_rows(
    *, n_rows: int, kept: int, selected: int, observed: int, missing_counts: dict[str, int]
) -> None:
    """Refuse rows without a missing feature that tell nothing about selection.

    Of ``n_rows`` rows, ``kept`` miss no feature; of these some are selected, and of those some
    have an outcome, too.
    """
    if kept == 0:
        raise InputError(
            f"no row is left: every one of the {n_rows} rows misses a feature. "
            f"{_advice(missing_counts)}"
        )
    if selected == kept or observed == 0:
        what = (
            "no outcome is missing in" if selected == kept else "no outcome is observed in any of"
        )
        raise InputError(
            f"{what} the {kept} rows that miss no feature; {n_rows - kept} rows miss one. "
            f"{_advice(missing_counts)}"
        )


def _gaps(encoding: Encoding, frame: pd.DataFrame, X: pd.DataFrame) -> dict[str, Mask]:
    """Find the rows in which each column is missing, before a mean was put in."""
    first = {name: encoding.groups.get(name, [name])[0] for name in encoding.n_missing}
    first = {name: column for name, column in first.items() if column in X}
    if encoding.missing == "mean" and first:
        filled = {name: X[one].to_numpy() == encoding.means[one] for name, one in first.items()}
        counts = {name: int(np.count_nonzero(one)) for name, one in filled.items()}
        if all(counts[name] == encoding.n_missing[name] for name in first):
            return filled
        # Some rows hold the mean itself.
        X = replace(encoding, missing="drop").transform(frame)
    return {name: np.isnan(X[one].to_numpy()) for name, one in first.items()}


def _refuse_told(
    encoding: Encoding,
    frame: pd.DataFrame,
    X: pd.DataFrame,
    outcome: Floats,
    selected: Mask | None,
) -> None:
    """Refuse columns with gaps, filled in or not, that the outcome gives away.

    They are known only for the rows that are selected, or are copies of the outcome where they
    are known, which a fit cannot see once means are put in.
    """
    chosen = ~np.isnan(outcome) if selected is None else selected
    n_chosen = int(np.count_nonzero(chosen))
    n_others = len(chosen) - n_chosen
    if n_others == 0:
        return
    gaps = _gaps(encoding, frame, X)
    names = list(gaps)
    inside = np.array([np.count_nonzero(gaps[one] & chosen) for one in names], dtype=np.int64)
    outside = np.array([np.count_nonzero(gaps[one] & ~chosen) for one in names], dtype=np.int64)
    only = np.flatnonzero(is_known_only(outside, inside, n_others, n_chosen))
    if len(only):
        found, also = [names[one] for one in only], [int(inside[one]) for one in only]
        raise InputError(f"{known_only_for_selected(found, n_others, also)} {_EXCLUDE}")
    told = chosen & ~np.isnan(outcome)
    refuse_partial_copies(
        (name, X[name].to_numpy()[told & ~gaps[name]], outcome[told & ~gaps[name]])
        for name in names
        if name not in encoding.levels
    )


_EXCLUDE = "Leave such columns out with --exclude."


def _advice(missing_counts: dict[str, int]) -> str:
    advice = "Pass --missing mean, or --exclude the columns with the gaps."
    if not missing_counts:
        return advice
    worst = max(missing_counts, key=lambda name: missing_counts[name])
    return f"{quoted(worst)} is missing in {missing_counts[worst]}. {advice}"


def _fit_streamed(rows: ParquetRows, model: Heckman, missing_counts: dict[str, int]) -> None:
    """Fit a model to rows in files; what is wrong with the rows that are kept shows only now."""
    try:
        model.fit(rows)
    except MissingValueError as error:
        raise InputError(f"{error} {_EXCLUDE}") from error
    except NoOutcomeError as error:
        if not missing_counts:
            raise
        raise InputError(
            f"no outcome is observed in any row that misses no feature. {_advice(missing_counts)}"
        ) from error
    counts = model.row_counts_
    kept = rows.n_rows - counts["left_out_regressor_missing"]
    _refuse_rows(
        n_rows=rows.n_rows,
        kept=kept,
        selected=kept if counts["unselected"] == 0 else counts["selected"],
        observed=counts["selected"],
        missing_counts=missing_counts,
    )

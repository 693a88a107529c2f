"""Parquet files that are too large to load: one pass learns how their rows are encoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from heckmanfa.analysis.column_roles import check_counted
from heckmanfa.analysis.prepared import Prepared
from heckmanfa.analysis.request import Question
from heckmanfa.analysis.usable_rows import EXCLUDE
from heckmanfa.data.parquet.parquet_rows import scan_parquet
from heckmanfa.data.row_checks import explain_known_only
from heckmanfa.data.row_parts import count_parts
from heckmanfa.errors import InputError
from heckmanfa.tables.stored import StoredTable
from heckmanfa.tables.streamed import Learned, learn_streamed


def prepare_stream(
    question: Question, table: StoredTable, names: list[str], tell: Callable[[str], None]
) -> Prepared:
    """Learn the encoding of the features ``names`` in one pass over the files."""
    if question.honest:
        raise InputError(
            "--honest needs the rows in memory, and these are read in passes: leave it out, name "
            "fewer files, or let --stream-above be large enough for the rows to be loaded"
        )
    learned = learn_streamed(
        table,
        names,
        categorical=question.categorical,
        numeric=question.numeric,
        missing=question.missing,
        roles=[name for name in question.roles.values() if name != question.cluster],
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
    """Refuse columns that are known for selected rows only, before means fill their gaps.

    Counts of missing values tell which columns may be such; the files are read again only if
    there is one.
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
    columns = [index for index, column in enumerate(encoding.columns) if column in first]
    _, counts = count_parts(rows, columns, np.ones(len(columns), dtype=bool))
    features = [first[encoding.columns[column]] for column in columns]
    known_only = explain_known_only(features, counts.features)
    if known_only is not None:
        raise InputError(f"{known_only} {EXCLUDE}")

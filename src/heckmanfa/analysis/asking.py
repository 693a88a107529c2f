"""From a question about a table to a fitted model that accounts for every row and column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from os import PathLike
from typing import Any

from narwhals.typing import IntoDataFrame

from heckmanfa.analysis.column_roles import in_sources
from heckmanfa.analysis.loading import prepare
from heckmanfa.analysis.pipeline import Analysis
from heckmanfa.analysis.prepared import fit_question
from heckmanfa.analysis.request import Question, naming_keywords, question_about
from heckmanfa.analysis.table_check import explaining_table
from heckmanfa.analysis.treatment_analysis import TreatmentAnalysis
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.estimators.fitting import attach_encoding
from heckmanfa.results.funnel import LACKING, NOT_DATA
from heckmanfa.text.option_words import told


def analyse(
    question: Question | str | PathLike[str] | IntoDataFrame,
    say: Callable[[str], None] | None = None,
    *,
    frame: IntoDataFrame | None = None,
    **options: Any,
) -> Analysis:
    """Read the table, encode it, and fit the model of a question.

    Parameters
    ----------
    question : Question, table or path
        A question, or the table that it is about: a data frame (pandas, Polars, …), a Polars
        LazyFrame, a DuckDB relation, a pyarrow Dataset, rows of `heckmanfa.scan`, or a file, a
        folder, a pattern or a URL. What would take more gigabytes than ``stream_above`` is read in
        passes.
    say : callable, optional
        Called with a few words at each step.
    frame : table, optional
        The table of a `Question`, if it is not in files; ``question.data`` is then its name. Its
        dtypes say which columns are text, as the schema of a Parquet file does, so both give the
        same model.
    **options
        With a table: ``outcome``, the name of its column, and other fields of `Question`.

    Returns
    -------
    Analysis
        With ``answer`` (sentences), ``roles`` (a frame) and ``checks``.

    Examples
    --------
    >>> from heckmanfa.analysis import analyse
    >>> from heckmanfa.datasets import load_mroz
    >>> table = load_mroz()[["lwage", "educ", "exper", "age", "kids5"]]
    >>> analysis = analyse(table, outcome="lwage", select_only=["kids5", "age"])
    >>> print(analysis.answer.headline)
    educ and exper predict lwage.
    """
    in_python = not isinstance(question, Question) or bool(options) or isinstance(say, str)
    with naming_keywords(in_python or frame is not None):
        if not isinstance(question, Question) or in_python:
            question, frame = question_about(question, frame, say, options)
        return _analyse(question, say or (lambda words: None), frame)


def _analyse(question: Question, tell: Callable[[str], None], frame: Any) -> Analysis:
    with explaining_table(question, frame):
        loaded = (prepared := prepare(question, tell, frame)).loaded
        tell(f"fitting {prepared.n_rows if loaded is None else len(loaded.y):,} rows")
        prepared, model, caught = fit_question(prepared)
    messages: dict[str, type[HeckmanfaWarning]] = {
        told(in_sources(warning.message.words, prepared.encoding), keywords=True): type(
            warning.message
        )
        for warning in caught
        if isinstance(warning.message, HeckmanfaWarning)
    }
    if prepared.encoding.has_rules:
        # Whoever loads the model predicts from the columns of a table, not from dummies.
        attach_encoding(model, prepared.encoding)
    counts = model.row_counts_ | {"total": prepared.n_rows + prepared.n_dropped}
    if prepared.n_dropped:
        counts[NOT_DATA] = prepared.n_dropped
    # The fit counted the rows that are not in memory.
    lost = counts.pop(LACKING, 0)
    if loaded is not None:
        lost = prepared.n_rows - len(loaded.y)
    known = {field.name: getattr(prepared, field.name) for field in fields(prepared)}
    if loaded is None:
        said = (getattr(warning.message, "lost", None) for warning in caught)
        known["lost"] = next((lost_rows for lost_rows in said if lost_rows is not None), None)
    # Where everyone has an outcome, the question is what a treatment does.
    made = TreatmentAnalysis if prepared.target.family.sees_everyone else Analysis
    analysis = made(
        **known,
        model=model,
        row_counts=counts | {LACKING: lost},
        warnings=tuple(messages),
        warning_kinds=tuple(messages.values()),
    )
    if question.profile:
        # A value that cannot be used is refused before anything is written.
        analysis.people  # noqa: B018
    return analysis

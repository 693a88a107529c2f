"""A check of a table: every problem at once, and the command that fits it all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from typing import Any

import pandas as pd
from narwhals.typing import IntoDataFrame

from heckmanfa.analysis.request import Question, naming_keywords, question_about
from heckmanfa.analysis.table_findings import Finding, Walk
from heckmanfa.errors import DataError, HeckmanfaError, InputError
from heckmanfa.tables.reading import is_piped, spooled
from heckmanfa.text.option_words import told
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import plural


@dataclass(frozen=True, eq=False)
class TableCheck:
    """What a check found in a table; made by `check_table`.

    ``print(check)`` names everything, ``check.findings`` is a frame, and ``check.command`` the
    command that fits the table.
    """

    question: Question
    """what was asked, with every option that the findings add"""
    problems: tuple[Finding, ...]
    """everything that was found, in the order in which a table is read"""
    notes: tuple[str, ...]
    """sentences about how the table is read"""
    n_rows: int
    """rows of data, without those that the options leave out"""
    n_columns: int
    in_memory: bool
    """whether the table was passed as a frame, which has no name at the command line"""

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row for each finding: key, level, columns, rows, found, do and options."""
        names = ["key", "level", "columns", "rows", "found", "do", "options"]
        return pd.DataFrame(self.records, columns=names).astype({"rows": "Int64"})

    @property
    def records(self) -> list[dict[str, Any]]:
        """The findings in plain types."""
        return [
            {
                "key": finding.key,
                "level": finding.level,
                "columns": list(finding.columns),
                "rows": finding.rows,
                "found": told(finding.words, keywords=True),
                "do": told(finding.do, keywords=True),
                "options": {
                    name: list(value) if isinstance(value, tuple) else value
                    for name, value in finding.options.items()
                },
            }
            for finding in self.problems
        ]

    @property
    def options(self) -> dict[str, Any]:
        """The keywords of `analyse` that fit the table, those that were asked for included."""
        defaults = {field.name: field.default for field in fields(self.question)}
        values = {name: getattr(self.question, name) for name in defaults if name != "data"}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != defaults[name]
        }

    @property
    def command(self) -> str:
        """The command that fits the table; of a frame, the call of `analyse` that does."""
        if not self.in_memory:
            return self.question.command()
        words = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"analyse(frame, {words})"

    @property
    def is_blocked(self) -> bool:
        """Whether the table itself must change before the command can run."""
        return any(finding.blocks for finding in self.problems)

    @property
    def headline(self) -> str:
        """The table, and how much is wrong with it."""
        counts = {"problem": 0, "caution": 0}
        for finding in self.problems:
            counts[finding.level] += 1
        said = [plural(n, level) for level, n in counts.items() if n]
        return (
            f"{shown(self.question.called)}: {plural(self.n_rows, 'row')}, "
            f"{plural(self.n_columns, 'column')}; {' and '.join(said) or 'no problem found'}"
        )

    @property
    def last_words(self) -> str:
        """What to do with the command."""
        if self.is_blocked:
            return "Settle what this command has no option for, then run:"
        return "Run:"

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield each finding as its level and its sentences."""
        for finding in self.problems:
            yield finding.level, told(f"{finding.words} {finding.do}".rstrip(), keywords=True)

    def __str__(self) -> str:
        """Return everything that was found, and the command."""
        found = [f"{level}: {words}" for level, words in self.lines()]
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([self.headline, *found, *notes, self.last_words, f"  {self.command}"])

    def __repr__(self) -> str:
        return f"<TableCheck of {self.headline}>"


def check_table(
    table: Question | str | PathLike[str] | IntoDataFrame,
    say: Callable[[str], None] | None = None,
    *,
    frame: IntoDataFrame | None = None,
    **options: Any,
) -> TableCheck:
    """Find every problem of a table at once, and the options that fit it.

    Parameters are those of `analyse`, which refuses a table by the same findings. Rows must fit in
    memory. Options that a finding adds are suggestions: read what it found before you use them.

    Returns
    -------
    TableCheck
        With ``findings`` (a frame), ``command`` and ``options``; ``print`` shows all of it.

    Examples
    --------
    >>> from heckmanfa.analysis import check_table
    >>> from heckmanfa.datasets import load_mroz
    >>> table = load_mroz()[["lwage", "educ", "age", "kids5"]].fillna({"lwage": -99})
    >>> print(check_table(table, outcome="lwage"))
    frame: 753 rows, 4 columns; 1 problem
    problem: The outcome 'lwage' holds -99 in 325 of 753 rows, and -2.054 to 3.219 elsewhere. If it means missing, pass na_values=['lwage=-99'].
    Run:
      analyse(frame, outcome='lwage', na_values=['lwage=-99'])
    """  # noqa: E501
    in_python = not isinstance(table, Question) or bool(options) or isinstance(say, str)
    with naming_keywords(in_python or frame is not None):
        if not isinstance(table, Question) or in_python:
            question, frame = question_about(table, frame, say, options, "check_table")
        else:
            question = table
        tell = say or (lambda words: None)
        if frame is None and is_piped(question.data):
            with spooled(question.data, tell) as copy:
                check = _check(replace(question, data=str(copy)), tell, None)
            return replace(check, question=replace(check.question, data=question.data))
        return _check(question, tell, frame)


def _check(question: Question, tell: Callable[[str], None], frame: Any) -> TableCheck:
    walk = Walk(question, frame)
    walk.run(tell)
    return TableCheck(
        question=walk.question,
        problems=tuple(walk.findings),
        notes=tuple(told(note, keywords=True) for note in walk.notes),
        n_rows=walk.n_rows,
        n_columns=walk.n_columns,
        in_memory=frame is not None,
    )


@contextmanager
def explaining_table(question: Question, frame: Any) -> Iterator[None]:
    """Add to an error what else is wrong with the table, and the command with every option.

    A table that came through a pipe is gone, and one that is read in passes is not loaded for this.
    """
    try:
        yield
    except (InputError, DataError) as error:
        if frame is not None or not is_piped(question.data):
            _explain(error, question, frame)
        raise


def _explain(error: HeckmanfaError, question: Question, frame: Any) -> None:
    try:
        check = _check(question, lambda words: None, frame)
    except Exception:
        # What is wrong is the question, or the error itself says it: nothing may hide that.
        return
    said = told(error.words, keywords=True)
    others = [
        finding
        for finding in check.problems
        if not finding.is_told_in(said) and finding.words != error.words
    ]
    for finding in others:
        error.add_note("also: " + told(f"{finding.words} {finding.do}".rstrip(), keywords=True))
    if check.question != question:
        first = "after that" if check.is_blocked else "run"
        error.add_note(f"{first}: {check.command}")

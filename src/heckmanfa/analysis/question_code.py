"""A question about a table in Python, R and Stata: code that gives the numbers of its report."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from heckmanfa.analysis.fitted_question import FittedQuestion
from heckmanfa.analysis.request import Question
from heckmanfa.data.columns.dropped_rows import LAST
from heckmanfa.data.columns.missing_codes import codes_of, split_item
from heckmanfa.errors import HeckmanfaError
from heckmanfa.report.plain_model import Reading, Roles
from heckmanfa.report.programs import Programs, call, literal, programs_of
from heckmanfa.tables.delimited import Layout, find_layout
from heckmanfa.text.option_words import option

_ENDINGS = (".csv", ".tsv", ".txt", ".tab")
_ROWS = "# table is the data frame, or another source of rows, that was analysed."
_OF_FEATURES = (
    "print(analysis.roles.to_string())  # chances, roles and effects of features",
    "print(analysis.estimates.to_string())  # coefficients of both equations",
)
_PRINTED = {
    "treatment": (
        "print(analysis.effects.to_string())  # average effects, and those of groups",
        "print(analysis.estimates.to_string())  # coefficients of all equations",
    )
}
"""what code prints of an answer, by the model that was asked for"""


def code_of(fitted: FittedQuestion) -> Programs:
    """Return code that answers a question again."""
    question = fitted.question
    # With two clusterings there is no code but in Python.
    cluster = next(iter(question.cluster), None)
    roles = Roles(question.outcome, question.flags, question.weights, cluster)
    python = python_code(question, in_files=bool(fitted.files))
    return programs_of(fitted.model.fit_, fitted.encoding, roles, _reading(fitted), python)


def python_code(question: Question, *, in_files: bool) -> str:
    """Return code in Python that asks a question; its table is ``table`` unless it is in files."""
    options = {"outcome": question.outcome} | question.asked()
    written = {name: literal(value) for name, value in options.items()}
    known = {name: value for name, value in written.items() if value is not None}
    table = repr(question.place) if in_files else "table"
    return "\n".join(
        [
            "from heckmanfa.analysis import analyse",
            "",
            *([] if in_files else [_ROWS]),
            f"analysis = {call('analyse', table, **known)}",
            "print(analysis)  # the sentences of the answer",
            *_PRINTED.get(question.model or "", _OF_FEATURES),
        ]
    )


def _reading(fitted: FittedQuestion) -> Reading | None:
    """Return how other programs read the table; None if it is not a plain text file."""
    question, encoding = fitted.question, fitted.encoding
    layout = _layout(question) if len(fitted.files) == 1 else None
    if layout is None or encoding.percent or encoding.money or question.thousands is not None:
        return None
    columns = layout.names
    dropped = [
        None if item.strip().lower() == LAST else split_item(item, columns, option("drop_rows"))
        for item in question.drop_rows
    ]
    packed = question.place.endswith(".gz")
    return Reading(
        question.place.removesuffix(".gz"),
        columns,
        first="First unpack the file." if packed else "",
        delimiter=layout.delimiter,
        decimal=encoding.decimal or ".",
        skipped=layout.skipped,
        encoding=layout.encoding,
        codes=codes_of(question.na_values, columns),
        dropped=dropped,
    )


def _layout(question: Question) -> Layout | None:
    """Return how the file of a question is written; None if it is not text, or is gone."""
    path = Path(question.data)
    if not path.name.lower().removesuffix(".gz").endswith(_ENDINGS):
        return None
    with suppress(OSError, HeckmanfaError):
        return find_layout(path, question.header_row)
    return None

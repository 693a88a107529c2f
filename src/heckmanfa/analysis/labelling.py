"""What readers call the columns of a question: what the user says, and what the table stores."""

from __future__ import annotations

from collections.abc import Sequence

from heckmanfa.analysis.request import Question, steps_in, units_in
from heckmanfa.results.labelling import given_codebook
from heckmanfa.tables.codebook import Codebook, ColumnWords
from heckmanfa.text.option_words import option


def codebook_of(
    question: Question, columns: Sequence[str], stored: Codebook | None = None
) -> Codebook:
    """Return what the user says about columns, over what their table stores about them.

    Steps of columns that are not there are refused with labels and units of such.
    """
    given = given_codebook(question.labels)
    given.refuse_absent(columns, f"{option('labels')}: the data")
    steps_in(question, columns)
    units = {name: ColumnWords(unit=unit) for name, unit in units_in(question, columns).items()}
    return Codebook(units).over(given).over(stored or Codebook())

"""What readers call the columns of a question: its codebook, and the labels of its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from heckmanfa.analysis.request import Question, units_in
from heckmanfa.errors import InputTypeError
from heckmanfa.results.naming import Naming, name_on_scale
from heckmanfa.tables.codebook import Codebook, ColumnWords, read_codebook
from heckmanfa.text.labels import Labels
from heckmanfa.text.option_words import option


def codebook_of(
    question: Question, columns: Sequence[str], stored: Codebook | None = None
) -> Codebook:
    """Return what the user says about columns, over what their table stores about them."""
    given = _given(question.labels)
    given.refuse_absent(columns, f"{option('labels')}: the data")
    units = {name: ColumnWords(unit=unit) for name, unit in units_in(question, columns).items()}
    return Codebook(units).over(given).over(stored or Codebook())


def _given(labels: Any) -> Codebook:
    if labels is None or isinstance(labels, Codebook):
        return labels or Codebook()
    if isinstance(labels, str):
        return read_codebook(labels)
    if not isinstance(labels, Mapping):
        raise InputTypeError(
            f"{option('labels')} must be a dictionary of labels by column, the path of a codebook, "
            f"or a Codebook; got a {type(labels).__name__}"
        )
    for name, label in labels.items():
        if not isinstance(label, str):
            raise InputTypeError(
                f"{option('labels')}: the label of {name!r} must be text; got a "
                f"{type(label).__name__}"
            )
    return Codebook({str(name): ColumnWords(label.strip()) for name, label in labels.items()})


def labels_of(
    question: Question, codebook: Codebook, columns: Sequence[str], naming: Naming
) -> Labels:
    """Return the labels of an answer.

    Parameters
    ----------
    question : Question
    codebook : Codebook
    columns : sequence of str
        Names of the K columns of X.
    naming : Naming
        What these columns are made from.
    """
    words = codebook.columns
    names = {name: known.label for name, known in words.items() if known.label}
    # What several columns are called tells none of them from the others.
    times = Counter(names.values())
    names = {
        name: f"{label} ({name})" if times[label] > 1 else label for name, label in names.items()
    }
    levels = {
        (name, level): meaning
        for name, known in words.items()
        for level, meaning in known.levels.items()
    }
    for column, source, level in zip(columns, naming.sources, naming.levels, strict=True):
        if level and (source in names or (source, level) in levels):
            meaning = levels.get((source, level), level)
            names[column] = f"{names.get(source, source)}: {meaning}"
    if question.outcome in names:
        label = names[question.outcome]
        names[question.fitted] = name_on_scale(label, question.outcome_transform)
    units = {name: known.unit for name, known in words.items() if known.unit}
    return Labels(names, levels, units)

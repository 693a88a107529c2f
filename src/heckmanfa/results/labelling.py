"""What readers call the columns of an answer, from what a codebook says about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from heckmanfa.errors import InputError, InputTypeError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.results.logs import unlogged
from heckmanfa.results.naming import Naming, name_on_scale
from heckmanfa.results.steps import read_step
from heckmanfa.tables.codebook import Codebook, ColumnWords, read_codebook
from heckmanfa.text.labels import Labels
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest


def given_codebook(labels: Any) -> Codebook:
    """Return what a user says about columns: labels by column, the path of a codebook, or one."""
    if labels is None or isinstance(labels, Codebook):
        return labels or Codebook()
    if isinstance(labels, str | PathLike):
        return read_codebook(fspath(labels))
    if not isinstance(labels, Mapping):
        raise InputTypeError(
            f"{option('labels')} must be a dictionary of labels by column, the path of a codebook, "
            f"or a Codebook; got a {type(labels).__name__}"
        )
    for name, label in labels.items():
        if not isinstance(label, str):
            raise InputTypeError(
                f"{option('labels')}: the label of {quoted(name)} must be text; got a "
                f"{type(label).__name__}"
            )
    return Codebook({str(name): ColumnWords(label.strip()) for name, label in labels.items()})


def name_columns(
    fit: Fit, steps: Mapping[str, float] | None = None, *, log_outcome: bool = False
) -> Naming:
    """Name the columns of a fit, with the steps that a user gives for some of them.

    ``log_outcome`` says that the outcome holds logarithms.
    """
    if not isinstance(steps, Mapping | None):
        raise InputTypeError(
            f"steps must be a dictionary of numbers by column; got a {type(steps).__name__}"
        )
    if log_outcome and fit.spec.outcome_transform is not None:
        raise InputError(
            "log_outcome says that the outcome holds logarithms already, and outcome_transform "
            "takes them: leave it out"
        )
    if log_outcome and fit.family.has_classes:
        raise InputError("log_outcome is for amounts, and the outcome is binary: leave it out")
    naming = Naming.of(fit)
    given = {name: read_step(name, step, "steps") for name, step in (steps or {}).items()}
    for name in given:
        if name not in naming.sources:
            raise UnknownFeatureError(
                f"steps: the model has no column {quoted(name)}{nearest(name, naming.sources)}"
            )
        if naming.is_switch(naming.sources.index(name)):
            raise InputError(
                f"steps: {quoted(name)} is a category or holds only 0 and 1, so its effect is that "
                "of a level rather than its reference"
            )
    return naming.with_steps(fit, given, log=log_outcome) if given or log_outcome else naming


def labels_in(codebook: Codebook) -> Labels:
    """Return what a codebook says, whatever model it is about."""
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
    return Labels(names, levels, {name: known.unit for name, known in words.items() if known.unit})


def labels_of(codebook: Codebook, fit: Fit, naming: Naming, outcome: str) -> Labels:
    """Return the labels of an answer.

    Parameters
    ----------
    codebook : Codebook
    fit : Fit
    naming : Naming
        What the columns of X are made from, and what is fitted.
    outcome : str
        The column of the outcome, on whatever scale it is fitted.
    """
    plain = labels_in(codebook)
    names, levels = {**plain.names}, plain.levels
    for column, source, level in zip(fit.labels, naming.sources, naming.levels, strict=True):
        if level and (source in names or (source, level) in levels):
            meaning = levels.get((source, level), level)
            names[column] = f"{names.get(source, source)}: {meaning}"
    log = naming.log
    if log is not None and log.of not in names and outcome in names:
        names[log.of] = unlogged(names[outcome])
    if outcome in names:
        names[naming.outcome] = name_on_scale(names[outcome], fit.spec.outcome_transform)
    return Labels(names, levels, plain.units)

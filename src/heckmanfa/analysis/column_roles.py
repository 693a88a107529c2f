"""Columns that are not features: the outcome, the selection indicator, weights and clusters.

Columns in memory and columns of files that are read in passes follow the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.designs import check_subpop, read_units
from heckmanfa.analysis.ordered_targets import counted_ordered, read_ordered
from heckmanfa.analysis.request import Question
from heckmanfa.analysis.targets import (
    AS_AMOUNTS,
    Target,
    are_texts,
    codes_beside_classes,
    held_codes,
    if_missing,
    target_of_numbers,
    target_of_texts,
)
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.missing_codes import find_suspicions, na_option
from heckmanfa.data.columns.tally import NumberTally, Tally, TextTally
from heckmanfa.data.columns.values import (
    FALSE_WORDS,
    TRUE_WORDS,
    NotNumbers,
    as_number,
    in_one_case,
    is_plain_number,
    is_text,
    levels_of,
    nearly_all,
    numbers_of,
    shape_of,
    spellings_of,
    time_in,
    to_numbers,
)
from heckmanfa.data.rows import Mask
from heckmanfa.data.survey import refuse_unplaced
from heckmanfa.errors import HeckmanfaError, InputError, NoOutcomeError, TooFewRowsError
from heckmanfa.tables.marks import amount
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import number, plural

# Characters of a text that a message quotes.
_SHORT = 30
# Texts among numbers that may be marks for missing, and levels that may be categories.
_FEW_WORDS, _FEW_LEVELS = 3, 20


def read_outcome(
    question: Question, series: pd.Series[Any], selected: Mask | Floats | None = None
) -> tuple[Floats, Target]:
    """Return the outcome, and what it is; a missing one is NaN, and classes are numbered from 0.

    Of rows that are not ``selected``, if that is given, the classes say nothing.
    """
    asked = question.asked_family
    if asked is not None and asked.is_ordered:
        known = None if selected is None else np.asarray(selected, dtype=bool)
        outcome, target = read_ordered(question, asked, series, known)
        _check_gaps(question, int(np.count_nonzero(np.isnan(outcome))), len(outcome))
        return outcome, target
    name, booleans = question.outcome, bool(pd.api.types.is_bool_dtype(series))
    if not is_plain_number(series) and time_in(series) is None:
        booleans = pd.api.types.infer_dtype(series, skipna=True) == "boolean"
        counts, levels = {}, None
        with suppress(TypeError):
            # Lists and other objects are refused below.
            levels = levels_of(series)
            counts = dict(zip(levels.labels, levels.counts().tolist(), strict=True))
            if question.ignore_case:
                spelled = pd.Series([in_one_case(counts)[label] for label in levels.labels])
                series = spelled.reindex(levels.codes).reset_index(drop=True)
                levels = levels_of(series)
                counts = dict(zip(levels.labels, levels.counts().tolist(), strict=True))
        if levels is not None and not booleans and _may_be_classes(question, counts):
            target = target_of_texts(question, counts)
            assert target.classes is not None
            codes = [float(label == target.classes[1]) for label in levels.labels]
            outcome = np.array([*codes, np.nan])[levels.codes]
            _check_gaps(question, int(np.count_nonzero(np.isnan(outcome))), len(outcome))
            return outcome, target
        booleans |= bool(counts) and spellings_of(list(counts)).booleans
    # A treatment has no other model of the same outcome.
    amounts = _asks_for_amounts(question) and not question.family.sees_everyone
    outcome = numbers_in(series, name, "outcome", amounts=amounts)
    counted = number_tally(outcome)
    _check_outcome(question, counted)
    target = target_of_numbers(question, counted, booleans=booleans)
    return target.codes(outcome), target


def _may_be_classes(question: Question, counts: Mapping[str, int]) -> bool:
    """Whether texts are classes: not if numbers were asked for, nor true and false in any case."""
    if _asks_for_amounts(question) or not are_texts(counts) or len(counts) > _FEW_LEVELS:
        return False
    return len(counts) == 2 or not spellings_of(list(counts)).booleans


def _asks_for_amounts(question: Question) -> bool:
    asked = question.asked_family
    return asked is not None and not asked.has_classes


def read_roles(
    question: Question, frame: pd.DataFrame
) -> tuple[Mask | Floats | None, Floats | None, Any]:
    """Return whether each row is selected or treated, the weights, and the clusters or units.

    A role without a column is None. Of a treatment, NaN is not known.
    """
    selected: Mask | Floats | None = None
    weights: Floats | None = None
    groups: Any = None
    if question.flags is not None:
        words = frame[question.flags].astype("string").str.strip().str.lower()
        distinct, missing = {*words.dropna().unique()}, int(words.isna().sum())
        _check_flags(question, distinct, missing, len(frame))
        selected = words.isin(TRUE_WORDS).to_numpy(dtype=bool)
        if question.family.sees_everyone:
            selected = np.where(words.isna().to_numpy(dtype=bool), np.nan, selected)
    if question.weights is not None:
        weights = numbers_in(frame[question.weights], question.weights, "weights")
        _check_weights(question, number_tally(weights))
    for name in question.cluster:
        _check_groups(name, int(frame[name].isna().sum()))
    if question.cluster:
        names = [*question.cluster]
        groups = frame[names if len(names) > 1 else names[0]].to_numpy()
    if (survey := question.survey) is not None:
        numbers = {} if weights is None else {str(survey.weights): weights}
        if survey.fpc is not None:
            numbers[survey.fpc] = numbers_in(frame[survey.fpc], survey.fpc, "fpc")
        for name in survey.replicate_columns(frame.columns):
            numbers[name] = numbers_in(frame[name], name, "replicate_weights")
        groups, weights = read_units(survey, frame, numbers)
    return selected, weights, groups


def count_texts(series: pd.Series[Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Count the values of a column of text: all of them, and those that are not numbers.

    Amounts and percentages are numbers, once the other texts are gone.
    """
    levels = levels_of(series)
    counts = dict(zip(levels.labels, levels.counts().tolist(), strict=True))
    bad = {
        label: n
        for label, n in counts.items()
        if as_number(label) is None and shape_of(amount(label)) is None
    }
    return counts, bad


def numbers_in(series: pd.Series[Any], name: str, role: str, *, amounts: bool = False) -> Floats:
    """Return a column as numbers; refuse one that holds text only, or much of it.

    ``amounts`` says that these were asked for, and that two classes have another model.
    """
    if not is_plain_number(series) and is_text(series):
        values, numbers = numbers_of(series)
        if numbers.n_bad and not nearly_all(numbers.n_given - numbers.n_bad, numbers.n_given):
            counts, bad = count_texts(series)
            n_bad = sum(bad.values())
            words = _text_of(role, name, bad, replace(numbers, n_bad=n_bad))
            if amounts and len(counts) == len(bad) == 2:
                words += f". Without {AS_AMOUNTS}, a Heckman probit takes it as it is"
            raise InputError(words)
        if not numbers.n_bad:
            return values
    return to_numbers(series, name)


def _text_of(role: str, name: str, bad: Mapping[str, int], numbers: NotNumbers) -> str:
    """Explain what to do about a column of text that must hold numbers."""
    words = sorted(bad, key=lambda label: -bad[label])
    example = quoted(words[0], _SHORT)
    start = f"{option(role)} needs numbers; column {quoted(name)} holds"
    if {word.lower() for word in words} <= TRUE_WORDS | FALSE_WORDS:
        ways = "write 1 and 0 in every row"
        if role == "outcome":
            ways = "write 1 and 0, and leave cells of unobserved outcomes empty"
            ways += f", or pass it as {option('selected')} if it says whose outcome is observed"
        return f"{start} {example}, a yes or a no: {ways}"
    if numbers.n_bad < numbers.n_given and len(words) <= _FEW_WORDS:
        listed = " and ".join(f"{quoted(word, _SHORT)} in {bad[word]:,}" for word in words)
        return (
            f"{start} {listed} of {numbers.n_given:,} rows, and numbers elsewhere: if that means "
            f"missing, pass {na_option(name, words)}"
        )
    if numbers.n_bad < numbers.n_given:
        return (
            f"{start} {len(words):,} different texts such as {example} in {numbers.n_bad:,} of "
            f"{numbers.n_given:,} rows: write them as numbers, or leave the cells empty"
        )
    if len(words) <= _FEW_LEVELS:
        return (
            f"{start} text such as {example}: {plural(len(words), 'category', 'categories')}, not "
            "amounts. Name a column of numbers, or write a number for each category"
        )
    return f"{start} text such as {example}. Name a column of numbers"


def counted_target(question: Question, counted: Tally, *, booleans: bool) -> Target:
    """Return what the outcome is, by its tally, made in a pass over files."""
    asked = question.asked_family
    if asked is not None and asked.is_ordered:
        n_given = counted.gaps
        if isinstance(counted, NumberTally):
            n_given += counted.n
        elif isinstance(counted, TextTally):
            n_given = counted.n_given
        _check_gaps(question, counted.gaps, n_given)
        return counted_ordered(question, asked, counted, booleans=booleans)
    if isinstance(counted, TextTally):
        if _may_be_classes(question, counted.counts) and not counted.more:
            _check_gaps(question, counted.gaps, counted.n_given)
            return target_of_texts(question, counted.counts)
        raise InputError(_stored_text("outcome", question.outcome))
    assert isinstance(counted, NumberTally)
    _check_outcome(question, counted)
    return target_of_numbers(question, counted, booleans=booleans)


def _stored_text(role: str, name: str) -> str:
    return (
        f"{option(role)}: column {quoted(name)} is text; if rows are read in passes, it must be "
        f"stored as numbers. Store it so, or pass a larger {option('stream_above')} to load the "
        "rows"
    )


def check_counted(question: Question, counted: dict[str, Tally], n_rows: int) -> None:
    """Check the columns with another role by their tallies, made in a pass over files."""
    if question.weights is not None and isinstance(counted[question.weights], TextTally):
        raise InputError(_stored_text("weights", question.weights))
    if question.flags is not None:
        flags = counted[question.flags]
        _check_flags(question, _words(flags), flags.gaps, n_rows)
    if question.weights is not None:
        weights = counted[question.weights]
        assert isinstance(weights, NumberTally)
        _check_weights(question, weights)
    for name in question.cluster:
        _check_groups(name, counted[name].gaps)
    if question.survey is not None:
        for name in question.unit_columns:
            refuse_unplaced(counted[name].gaps, name)
        if question.subpop is not None:
            check_subpop(question.subpop, _words(counted[question.subpop]))
        for name in question.survey.replicate_columns(list(counted)):
            if isinstance(counted[name], TextTally):
                raise InputError(_stored_text("replicate_weights", name))


def number_tally(values: Floats, *, distinct: bool = False) -> NumberTally:
    """Count the numbers of a column; NaN is missing. ``distinct`` is as in `NumberTally`."""
    counted = NumberTally(few=True, distinct=distinct)
    counted.add(values)
    return counted


def _words(flags: Tally) -> set[str]:
    """Return the distinct values of a selection indicator, in lower case."""
    if isinstance(flags, TextTally):
        return {label.lower() for label in flags.counts}
    assert isinstance(flags, NumberTally)
    if flags.two_valued:
        counts = {"0": flags.zeros, "1": flags.n - flags.zeros}
        return {word for word, rows in counts.items() if rows}
    odd = [value for value in (flags.low, flags.high) if value not in (0, 1)]
    return {f"{odd[0]:g}" if odd else "other numbers"}


def _check_outcome(question: Question, values: NumberTally) -> None:
    name, n_rows = question.outcome, values.n + values.gaps
    if values.n == 0:
        raise NoOutcomeError(
            f"{option('outcome')}: column {quoted(name)} is missing in all {n_rows} rows; is it "
            "the right column?"
        )
    _check_gaps(question, values.gaps, n_rows, values)


def _check_gaps(
    question: Question, gaps: int, n_rows: int, values: NumberTally | None = None
) -> None:
    """Refuse an outcome that is never missing, unless another column says who is selected."""
    if question.flags is None and gaps == 0:
        raise InputError(
            f"{option('outcome')}: column {quoted(question.outcome)} is never missing in {n_rows} "
            f"rows, so there is no selection to model. {_where_missing(question.outcome, values)}"
        )


def _where_missing(name: str, values: NumberTally | None) -> str:
    """Say how a column that is never missing may say which outcomes are; None for classes."""
    codes = () if values is None else find_suspicions({name: values}, name)
    if codes:
        held = " and ".join(f"{code.code:g} in {plural(code.rows, 'row')}" for code in codes)
        means = f"{codes[0].code:g} means" if len(codes) == 1 else "these mean"
        return (
            f"It holds {held}, and {number(codes[0].low)} to {number(codes[0].high)} elsewhere: if "
            f"{means} missing, pass {na_option(name, [code.code for code in codes])}."
        )
    counts = {} if values is None or values.few is None else values.few
    classes = codes_beside_classes(counts)
    if classes:
        two = " and ".join(f"{value:g}" for value in sorted({*counts} - {*classes}))
        return (
            f"It holds {held_codes(counts, classes)}, and {two} elsewhere. "
            f"{if_missing(name, classes)}."
        )
    empty = "Leave the cells of unobserved outcomes empty"
    if values is None or values.two_valued:
        return (
            f"{empty}, name a column that says who is selected with {option('selected')}, or pass "
            f"it as {option('selected')} if it says whose outcome is observed."
        )
    if values.zeros:
        empty = f"{values.zeros} rows hold 0: if that means missing, pass {na_option(name, [0])}"
    return (
        f"{empty}, or name a column that says who is selected with {option('selected')}. If "
        "everyone has an outcome, and some chose a treatment: pass "
        f"{option('model', 'treatment')} and name it in {option('treated')}."
    )


def _check_flags(question: Question, words: set[str], missing: int, n_rows: int) -> None:
    """Refuse a column that does not say who is selected, or treated."""
    name, role = question.flags, str(question.flagged)
    everyone = question.family.sees_everyone
    if missing and not everyone:
        raise InputError(
            f"{option(role)}: column {quoted(name)} is missing in {missing} rows; it must "
            "say for every row whether it is selected"
        )
    strange = sorted(words - TRUE_WORDS - FALSE_WORDS)
    if strange:
        also = f" and {len(strange) - 1} other values" if len(strange) > 2 else ""
        also = also or (f" and {quoted(strange[1])}" if len(strange) == 2 else "")
        raise InputError(
            f"{option(role)}: column {quoted(name)} must hold 0 and 1 (or yes and no, true "
            f"and false); it holds {quoted(strange[0])}{also if everyone else ''}"
        )
    if everyone:
        _check_both(question, words, n_rows - missing)
        return
    if words <= TRUE_WORDS:
        raise InputError(
            f"{option('selected')}: column {quoted(name)} says that all {n_rows} rows are "
            "selected, so there is no selection to model"
        )


def _check_both(question: Question, words: set[str], n_rows: int) -> None:
    """Refuse a treatment that everybody or nobody has, or of which nothing is known."""
    start = f"{option('treated')}: column {quoted(question.flags)}"
    if not words:
        raise InputError(f"{start} is missing in every row; is it the right column?")
    for these, who in ((TRUE_WORDS, "everybody"), (FALSE_WORDS, "nobody")):
        if words <= these:
            raise InputError(
                f"{start} says that {who} is treated, in {plural(n_rows, 'row')}: there is "
                "nobody to compare with. Name a column that says who is treated and who is not"
            )


def _check_weights(question: Question, values: NumberTally) -> None:
    name = question.weights
    if values.gaps:
        raise InputError(
            f"{option('weights')}: column {quoted(name)} is missing in {values.gaps} rows"
        )
    if question.counts_as == "frequency" and not values.integers:
        raise InputError(
            f"{option('weights')}: column {quoted(name)} holds fractions, and frequency weights "
            "count rows; if rows stand for shares of a population, use fit with "
            f"{option('weight_kind', 'sampling')}"
        )


def _check_groups(name: str, missing: int) -> None:
    if missing:
        raise InputError(f"{option('cluster')}: column {quoted(name)} is missing in {missing} rows")


def source_columns(encoding: Encoding) -> dict[str, str]:
    """Return the column of the table that each dummy was made from."""
    return {dummy: name for name, dummies in encoding.groups.items() for dummy in dummies}


def joint_groups(encoding: Encoding) -> dict[str, list[str]]:
    """Return the dummies of each category that has several, which belong together."""
    return {name: dummies for name, dummies in encoding.groups.items() if len(dummies) > 1}


def in_sources(text: str, encoding: Encoding) -> str:
    """Replace each quoted dummy in a message with its column and level."""
    for name, dummies in encoding.groups.items():
        levels = encoding.levels[name]
        for dummy, level in zip(dummies, levels[1:] or levels, strict=True):
            text = text.replace(quoted(dummy), f"column {quoted(name)} (level {quoted(level)})")
    return text


@contextmanager
def errors_in_sources(encoding: Encoding) -> Iterator[None]:
    """Make errors of a fit to encoded columns name the columns of the table."""
    try:
        yield
    except HeckmanfaError as error:
        text = in_sources(error.words, encoding)
        if isinstance(error, TooFewRowsError):
            text += _most_dummies(encoding)
        error.args = (text,)
        raise


def _most_dummies(encoding: Encoding) -> str:
    """Name the category that most features come from, if any."""
    for name, dummies in joint_groups(encoding).items():
        if 2 * len(dummies) > len(encoding.columns):
            levels = len(encoding.levels[name])
            return (
                f" {len(dummies)} of the {len(encoding.columns)} features are dummies of column "
                f"{quoted(name)}, a category of {levels} levels."
            )
    return ""

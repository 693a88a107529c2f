"""What an outcome is, amounts or two classes, and so the kind of model that fits it.

Columns in memory and columns of files that are read in passes follow the same rules, from counts
of what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.outcome_models import OUTCOME_MODELS, as_kind
from heckmanfa.analysis.request import Question
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.missing_codes import na_option
from heckmanfa.data.columns.tally import MOST_FEW, NumberTally
from heckmanfa.data.columns.values import FALSE_WORDS, TRUE_WORDS, as_number, label_of, shape_of
from heckmanfa.data.outcome_classes import misspellings
from heckmanfa.errors import InputError
from heckmanfa.fit.family import Family, family_named
from heckmanfa.results.logs import unlogged
from heckmanfa.results.naming import EffectWords
from heckmanfa.tables.marks import amount
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest, plural

Label = str | int | float | bool
Classes = tuple[Label, ...]
"""the negative and the positive class, or all classes of an ordered outcome, the lowest first"""


def _first(*, classes: bool) -> Family:
    families = [family_named(kind) for kind, models in OUTCOME_MODELS.items() if models.decides]
    return next(family for family in families if family.has_classes is classes)


OF_AMOUNTS, OF_CLASSES = _first(classes=False), _first(classes=True)
"""the models of outcomes unless another is given"""
AS_AMOUNTS, AS_CLASSES = as_kind(OF_AMOUNTS.name), as_kind(OF_CLASSES.name)

# Values that a message lists with their counts, and characters of a text that it quotes.
_LISTED = 6
_SHORT = 30
_MISSING_WORDS = frozenset(
    [
        *("not", "unknown", "missing", "refused", "pending", "none", "untested", "declined"),
        *("rejected", "n/a", "n.a.", "?", ".", "-"),
    ]
)
# Codes of questionnaires for no answer: 7, 8 and 9, 97 to 99, and negative ones.
_LEAST_CODE = 7.0


@dataclass(frozen=True)
class Target:
    """What the outcome of a question is, and the model that fits it."""

    family: Family
    """the model of such outcomes"""
    classes: Classes | None = None
    """the classes of an outcome that has some, two or more"""
    words: str = ""
    """which model is fitted, and how to get another; empty if the outcome leaves no choice"""
    place: int = 1
    """of the class that effects are about: they are on the probability of it or a higher one"""

    @property
    def positive(self) -> Label | None:
        """The class that effects are about; None if the outcome is an amount."""
        return None if self.classes is None else self.classes[self.place]

    def amounts(self, codes: Floats) -> Floats:
        """Return the numbers that an outcome holds, codes where its classes are texts."""
        if self.classes is None or any(isinstance(label, str) for label in self.classes):
            return codes
        places = np.where(np.isnan(codes), -1, codes).astype(np.intp)
        return np.array([*map(float, self.classes), np.nan])[places]

    def codes(self, values: Floats) -> Floats:
        """Return 1 for the class that the model is about, 0 for the other, and NaN for missing."""
        if self.classes is None:
            return values
        is_positive = (values == float(self.classes[1])).astype(np.float64)
        return np.where(np.isnan(values), np.nan, is_positive)

    def labels(self, codes: Floats) -> Any:
        """Return the outcome as a model takes it: amounts, or classes in their order."""
        if self.classes is None:
            return codes
        places = np.where(np.isnan(codes), -1, codes).astype(np.intp)
        order: Any = pd.Index(list(self.classes))
        return pd.Categorical.from_codes(places, order, ordered=True)


def are_texts(labels: Mapping[str, int]) -> bool:
    """Whether the values of a column are texts, none of which spells a number."""
    return bool(labels) and all(
        as_number(label) is None and shape_of(amount(label)) is None for label in labels
    )


def target_of_texts(question: Question, counts: Mapping[str, int]) -> Target:
    """Return what a column of texts is, by the rows of each of them."""
    name = question.outcome
    if len(counts) == 1:
        raise InputError(_one_class(name, *next(iter(counts.items()))))
    if len(counts) > 2:
        raise InputError(_too_many(name, counts))
    first, second = sorted(counts)
    if first.lower() in TRUE_WORDS and second.lower() in FALSE_WORDS:
        # Upper case comes before lower case: Yes before no.
        first, second = second, first
    return _of_classes(question, (first, second), are_numbers=False)


def _too_many(name: str, counts: Mapping[str, int]) -> str:
    """Say how more than two texts may become two classes, without losing any that is misspelled."""
    spelled = misspellings(counts)
    asked = "".join(f" {question}" for question in spelled.values())
    others = [label for label in counts if label not in spelled]
    ways = "write each class in one way" if spelled else "correct the others"
    if len(others) > 2:
        marked = na_option(name, [_missing_text(others, counts)])
        ways += f", or mark a text that means missing with {option('na_values')}, as in {marked}"
    start = "A binary outcome has two" + (f".{asked} Then " if spelled else ": ")
    return (
        f"{option('outcome')}: column {quoted(name)} holds {len(counts):,} different texts: "
        f"{_held(counts)}. {start}{ways}; a linear model needs numbers, and classes with an order "
        f"are fitted with {option('outcome_kind', 'ordered')} and {option('classes', [...])}"
    )


def _missing_text(labels: Sequence[str], counts: Mapping[str, int]) -> str:
    """Return the text of several that means missing most likely: by its words, or the rarest."""
    strange = [label for label in labels if label.lower() not in TRUE_WORDS | FALSE_WORDS]
    marks = [label for label in strange if label.lower().split()[0] in _MISSING_WORDS]
    return min(marks or strange or labels, key=lambda label: counts[label])


def codes_beside_classes(counts: Mapping[float, int]) -> list[float]:
    """Return the numbers that may mean missing in a column that is otherwise 0 and 1.

    Beside two other numbers, only negative ones may.
    """
    others = sorted({*counts} - {0.0, 1.0})
    if len(counts) - len(others) == 2:
        # Several of them are codes such as -8 and -9, or 8 and 9; 2 and 3 are counts.
        coded = len(others) == 1 or all(value < 0 or value >= _LEAST_CODE for value in others)
        return others if coded else []
    negative = [value for value in others if value < -1]
    return negative if len(counts) - len(negative) == 2 else []


def target_of_numbers(
    question: Question, counted: NumberTally, *, booleans: bool = False
) -> Target:
    """Return what a column of numbers is, by the rows of each of them.

    ``booleans`` says that 0 and 1 stand for false and true.
    """
    counts, asked = counted.few, question.asked_family
    values = [] if counts is None else sorted(counts)
    coded = bool(values) and {*values} <= {0.0, 1.0}
    if not (coded if asked is None else asked.has_classes):
        return _of_amounts(question, values, counts or {})
    if len(values) == 1:
        raise InputError(_one_class(question.outcome, values[0], counted.n))
    if len(values) != 2:
        raise InputError(_not_two(question.outcome, counted))
    low, high = (int(value) if value.is_integer() else value for value in values)
    return _of_classes(question, (False, True) if booleans else (low, high))


def _of_amounts(question: Question, values: list[float], counts: Mapping[float, int]) -> Target:
    name, asked = question.outcome, question.asked_family
    two = len(values) == 2 and asked is None
    held = " and ".join(f"{value:g}" for value in values[:2])
    if question.positive is not None:
        change = f"leave {option('positive')} out"
        if two:
            change = f"add {AS_CLASSES}"
        so = f"holds {held}, which are taken as amounts" if two else "is taken as amounts"
        raise InputError(
            f"{option('positive')} is the class of a binary outcome, and {quoted(name)} {so}: "
            f"{change}"
        )
    words = ""
    if two:
        words = (
            f"Linear model: {shown(name)} holds {held}, which are taken as amounts. For the "
            f"probability of {values[1]:g}, pass {AS_CLASSES} and "
            f"{option('positive', label_of(values[1]))}."
        )
    elif {0.0, 1.0} <= {*values} and asked is None:
        codes = codes_beside_classes(counts)
        if codes:
            words = (
                f"Linear model: {shown(name)} holds {held_codes(counts, codes)}, and 0 and 1 "
                f"elsewhere. {if_missing(name, codes)} to fit a Heckman probit."
            )
    if question.outcome_transform is not None:
        scale = f"The model is of {shown(question.fitted)}; its predictions are means of "
        words = f"{words} {scale}{shown(name)} itself.".lstrip()
    if question.log_outcome:
        scale = f"{shown(name)} holds logarithms: effects are in percent of"
        words = f"{words} {scale} {shown(unlogged(name))}, and predictions are of {shown(name)}."
    return Target(asked or OF_AMOUNTS, words=told(words.lstrip(), keywords=True))


def held_codes(counts: Mapping[float, int], codes: list[float]) -> str:
    """Name numbers with the rows that hold them."""
    return " and ".join(f"{code:g} in {plural(counts[code], 'row')}" for code in codes)


def if_missing(name: str, codes: list[float]) -> str:
    """Say how numbers are marked as missing, as the start of a sentence."""
    means = f"{codes[0]:g} means" if len(codes) == 1 else "these mean"
    return f"If {means} missing, pass {na_option(name, codes)}"


def _of_classes(question: Question, classes: Classes, *, are_numbers: bool = True) -> Target:
    """Return two classes, the second of which is the one that the question is about."""
    first, second = classes
    asked = question.asked_family
    family = asked or OF_CLASSES
    if question.positive is not None:
        wanted = label_of(question.positive).casefold()
        labels = {label_of(label): label for label in classes}
        # Spelled as they are, or in another case if that leaves no doubt.
        meant = [
            label for spelled, label in labels.items() if spelled == label_of(question.positive)
        ]
        meant = meant or [
            label for spelled, label in labels.items() if spelled.casefold() == wanted
        ]
        if len(meant) != 1:
            raise InputError(
                f"{option('positive')}: column {quoted(question.outcome)} does not hold "
                f"{quoted(question.positive, _SHORT)}; its classes are {quoted(first, _SHORT)} "
                f"and {quoted(second, _SHORT)}{nearest(label_of(question.positive), labels)}"
            )
        second = meant[0]
        first = next(label for label in classes if label != second)
    about = EffectWords(question.outcome, (first, second)).target
    words = (
        f"{family.words.title} of {about}. For the other class, pass "
        f"{option('positive', label_of(first))}"
    )
    if are_numbers and asked is None:
        words += f"; for a linear model, {AS_AMOUNTS}"
    words += "."
    return Target(family, (first, second), told(words, keywords=True))


def _one_class(name: str, value: str | float, rows: int) -> str:
    held = quoted(value, _SHORT) if isinstance(value, str) else f"{value:g}"
    return (
        f"{option('outcome')}: column {quoted(name)} holds {held} in all {plural(rows, 'row')} "
        "that have a value. A binary outcome needs rows of both classes: if an empty cell means "
        "the other, write it there, and name a column that says who is selected with "
        f"{option('selected')}"
    )


def _not_two(name: str, counted: NumberTally) -> str:
    """Explain that numbers are not two classes."""
    start = f"{AS_CLASSES} needs two values; column {quoted(name)} holds"
    if (few := counted.few) is not None:
        codes = codes_beside_classes(few) or [min(few, key=few.__getitem__)]
        return f"{start} {len(few)}: {_held(few)}. {if_missing(name, codes)}"
    what = f"more than {MOST_FEW} different numbers, from {counted.low:g} to {counted.high:g}"
    if counted.low >= 0 and counted.high <= 1:
        what += ", as probabilities and shares are"
    return (
        f"{start} {what}. Write 1 where the event happened and 0 where it did not, or fit a "
        f"linear model with {AS_AMOUNTS}"
    )


def _held(counts: Mapping[str, int] | Mapping[float, int]) -> str:
    """Name values with their rows, the most frequent first; of many, the rarest last."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    said = [
        f"{quoted(value, _SHORT) if isinstance(value, str) else f'{value:g}'} in {rows:,}"
        for value, rows in ordered
    ]
    said[0] += " rows"
    if len(said) > _LISTED:
        more = len(said) - _LISTED
        said = [*said[: _LISTED - 1], f"{more:,} more", said[-1]]
    return f"{', '.join(said[:-1])} and {said[-1]}"

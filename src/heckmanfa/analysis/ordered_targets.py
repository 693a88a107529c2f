"""An outcome of ordered classes: which labels a column holds, and which of them is lower.

Numbers, booleans and ordered categories know their order; that of other texts is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.request import Question
from heckmanfa.analysis.targets import Label, Target
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.tally import MOST_FEW, NumberTally, Tally, TextTally
from heckmanfa.data.columns.values import (
    as_number,
    in_one_case,
    label_of,
    levels_of,
    numeric_label,
    time_in,
)
from heckmanfa.data.ordered_classes import MOST_CLASSES, OrderedClasses
from heckmanfa.data.outcome_classes import LabelCounts
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.fit.family import Family
from heckmanfa.results.naming import EffectWords, said_class
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import nearest

_FEWEST_CLASSES = 3


def read_ordered(
    question: Question, family: Family, series: pd.Series[Any], selected: Mask | None
) -> tuple[Floats, Target]:
    """Return the places of the classes of an outcome, NaN where it is missing, and what it is."""
    if time_in(series) is not None:
        raise InputError(
            f"{option('outcome')}: column {quoted(question.outcome)} holds dates, which are not "
            "classes: write the classes themselves"
        )
    try:
        levels = levels_of(series)
    except TypeError as error:
        raise InputError(
            f"column {quoted(question.outcome)} holds lists or other objects, not classes"
        ) from error
    texts = list(levels.labels)
    if question.ignore_case:
        counts = dict(zip(texts, levels.counts().tolist(), strict=True))
        texts = [in_one_case(counts)[text] for text in texts]
    order = _order_of(series)
    labels = texts if order else _as_numbers(texts)
    chosen = levels.codes if selected is None else levels.codes[selected]
    rows = np.bincount(chosen[chosen >= 0], minlength=len(labels)).tolist()
    held: Counter[Any] = Counter()
    for label, n in zip(labels, rows, strict=True):
        held[label] += n
    target = _target(question, family, +held, [one for one in order if held[one]])
    assert target.classes is not None
    places = [
        float(target.classes.index(label)) if label in target.classes else np.nan
        for label in labels
    ]
    return np.array([*places, np.nan])[levels.codes], target


def counted_ordered(
    question: Question, family: Family, counted: Tally, *, booleans: bool
) -> Target:
    """Return what an outcome of files is, by its tally, made in a pass over them."""
    counts: Mapping[Any, int]
    order: Sequence[str] = ()
    if isinstance(counted, TextTally):
        counts = counted.counts
        order = [label for label in counted.declared or () if label in counts]
    else:
        assert isinstance(counted, NumberTally)
        if counted.few is None:
            raise InputError(
                f"column {quoted(question.outcome)} holds more than {MOST_FEW} different numbers, "
                f"and classes are at most {MOST_CLASSES}: fit an amount with "
                f"{option('outcome_kind', 'linear')}"
            )
        as_label = bool if booleans else numeric_label
        counts = {as_label(value): n for value, n in counted.few.items()}
    return _target(question, family, Counter(counts), order)


def _order_of(series: pd.Series[Any]) -> list[str]:
    """Return the labels of an ordered category in their order; of no other column."""
    dtype = series.dtype
    if not isinstance(dtype, pd.CategoricalDtype) or not dtype.ordered:
        return []
    return [label_of(level) for level in dtype.categories]


def _as_numbers(texts: Sequence[str]) -> list[Any]:
    """Return labels as numbers or booleans if all of them spell these, else as they are."""
    words = {"true": True, "false": False}
    if {text.lower() for text in texts} <= {*words}:
        return [words[text.lower()] for text in texts]
    numbers = [as_number(text) for text in texts]
    if any(number is None for number in numbers):
        return list(texts)
    return [numeric_label(number) for number in numbers if number is not None]


def _target(question: Question, family: Family, held: Counter[Any], order: Sequence[str]) -> Target:
    """Return the classes in their order, and the one that effects are about."""
    name = question.outcome
    declared = _declared(question, list(held))
    counts = LabelCounts(held, held, order=tuple(order))
    classes = OrderedClasses(declared, f"column {quoted(name)}").of(counts)
    place = _reached(question, classes)
    pair = classes[place - 1], classes[place]
    words = EffectWords(name, pair, or_higher=place < len(classes) - 1)
    in_order = " < ".join(said_class(name, label) for label in classes)
    told_words = f"{family.words.title}: {in_order}. Effects are on {words.target}."
    if len(classes) >= _FEWEST_CLASSES:
        other = classes[-2] if place == len(classes) - 1 else classes[-1]
        more = "" if other == classes[-1] else " or higher"
        about = f"{said_class(name, other)}{more}"
        told_words += f" For that of {about}, pass {option('positive', label_of(other))}."
    return Target(family, classes, told(told_words, keywords=True), place)


def _declared(question: Question, labels: Sequence[Label]) -> tuple[Any, ...]:
    """Return the classes that the user lists, as the column has them; empty if none are listed."""
    known: dict[str, Any] = {label_of(label): label for label in labels}
    loose = {text.casefold(): label for text, label in known.items()}
    listed: list[Any] = []
    for item in question.classes:
        label = known.get(label_of(item), loose.get(label_of(item).casefold(), item))
        if label in listed:
            raise InputError(f"{option('classes')} lists {quoted(item)} twice")
        listed.append(label)
    if len(listed) == 1:
        raise InputError(
            f"{option('classes')} lists one class, {quoted(listed[0])}: list all of them, the "
            "lowest first"
        )
    absent = [item for item in listed if item not in labels]
    unlisted = [label for label in labels if label not in listed]
    if absent and unlisted:
        # A typo: the column has neither what is listed nor what it holds listed.
        texts = [label_of(label) for label in unlisted]
        raise InputError(
            f"{option('classes')}: column {quoted(question.outcome)} does not hold "
            f"{quoted(absent[0])}; it holds {quoted_list(list(labels), MOST_CLASSES)}"
            f"{nearest(label_of(absent[0]), texts)}"
        )
    return tuple(listed)


def _reached(question: Question, classes: Sequence[Any]) -> int:
    """Return the place of the class that effects are about: this class or a higher one."""
    if question.positive is None:
        return len(classes) - 1
    wanted = label_of(question.positive)
    texts = [label_of(label) for label in classes]
    meant = [text for text in texts if text == wanted]
    meant = meant or [text for text in texts if text.casefold() == wanted.casefold()]
    if len(meant) != 1:
        raise InputError(
            f"{option('positive')}: column {quoted(question.outcome)} does not hold "
            f"{quoted(wanted)}; its classes are {quoted_list(list(classes), MOST_CLASSES)}"
            f"{nearest(wanted, texts)}"
        )
    place = texts.index(meant[0])
    if place == 0:
        raise InputError(
            f"{option('positive')}: every row with an outcome has {quoted(classes[0])} or a higher "
            f"class; name a higher one, such as {quoted(classes[1])}"
        )
    return place

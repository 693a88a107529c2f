"""Ordered classes as an outcome: which labels there are, and which of them is lower.

Numbers and booleans have an order. Texts have one if they are an ordered category, or if the user
lists them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.columns.values import label_of
from heckmanfa.data.outcome_classes import Classes, Label, LabelCounts
from heckmanfa.data.outcomes import refuse_infinite_outcomes
from heckmanfa.errors import (
    ConstantOutcomeError,
    InputError,
    InputTypeError,
    NoOutcomeError,
    TooFewRowsError,
)
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import plural

_FOR_AMOUNTS = instead(
    "use Heckman for an amount", f"fit an amount with {option('outcome_kind', 'linear')}"
)
_HOW_TO_ORDER = instead(
    "pass an ordered category (pandas.Categorical(..., ordered=True), or an Enum of Polars), or "
    f"{option('classes', [...])} with the lowest first",
    f"list all of them with {option('classes', [...])}, the lowest first",
)
MOST_CLASSES = 50
"""an outcome of more labels is an amount, or a name"""
_SHOWN = 6


def plain_classes(classes: Any) -> tuple[Label, ...]:
    """Return the classes that a user lists, as plain labels; refuse what is not a list of them."""
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise InputError(
            f"classes must be a list of all classes, the lowest first; got {quoted(classes)}"
        )
    plain: list[Label] = []
    for each in classes:
        label = each.item() if isinstance(each, np.generic) else each
        if not isinstance(label, bool | int | float | str):
            raise InputTypeError(
                f"classes holds a {type(label).__name__}, {quoted(label)}: list numbers or texts"
            )
        if label in plain:
            raise InputError(f"classes lists {quoted(label)} twice")
        plain.append(label)
    if len(plain) < 2:
        raise InputError(f"classes lists {plural(len(plain), 'class', 'classes')}: two are needed")
    if len(plain) > MOST_CLASSES:
        raise InputError(
            f"classes lists {len(plain)} classes, and at most {MOST_CLASSES} are fitted"
        )
    return tuple(plain)


@dataclass(frozen=True)
class OrderedClasses:
    """What a user says of the order of classes."""

    declared: tuple[Label, ...] = ()
    """all of them, the lowest first; empty if the data tell"""
    outcome: str = "y"
    """what messages call the outcome"""

    def of(self, counts: LabelCounts) -> Classes:
        """Return the classes of the selected rows in their order, or say what is wrong."""
        selected = counts.selected
        if not selected:
            raise NoOutcomeError(
                f"no row has an observed outcome: {self.outcome} is missing in every selected row. "
                "Check the outcome column and `selected`."
            )
        infinite = [label for label in selected if isinstance(label, float) and math.isinf(label)]
        refuse_infinite_outcomes(sum(selected[label] for label in infinite))
        declared = self.declared or counts.order
        if not declared:
            classes = self._sorted(selected, more=counts.more)
        else:
            classes = self._in_order(declared, selected)
        return self._checked(classes, selected)

    def _in_order(self, declared: tuple[Any, ...], selected: Counter[Any]) -> Classes:
        """Return declared classes, all of which the selected rows must have."""
        unknown = [label for label in selected if label not in declared]
        if unknown:
            verb = "is not" if len(unknown) == 1 else "are not"
            raise InputError(
                f"{quoted_list(unknown, _SHOWN)} in {self.outcome} {verb} among the classes, which "
                f"are {quoted_list(list(declared), MOST_CLASSES)}: list it, or mark such outcomes "
                f"as missing with {instead('None or NaN', option('na_values'))}"
            )
        empty = [label for label in declared if label not in selected]
        if empty:
            where = (
                f"leave {'it' if len(empty) == 1 else 'them'} out of {option('classes', [...])}"
                if self.declared
                else instead(
                    "drop unused categories, as with y.cat.remove_unused_categories()",
                    f"mark it as missing with {option('na_values')}, or keep rows that lack a "
                    f"feature with {option('missing', 'mean')}",
                )
            )
            verb = "class has" if len(empty) == 1 else "classes have"
            raise InputError(
                f"{quoted_list(empty, _SHOWN)}: this {verb} no selected row, so where it begins "
                f"is not known; {where}"
            )
        return tuple(label for label in declared if label in selected)

    def _sorted(self, selected: Counter[Any], *, more: bool) -> Classes:
        """Return numbers or booleans in their order; refuse texts, amounts and mixtures."""
        labels = list(selected)
        texts = [label for label in labels if isinstance(label, str)]
        if texts:
            mixed = len(texts) < len(labels)
            kind = "texts and numbers" if mixed else "texts"
            raise InputTypeError(
                f"the classes in {self.outcome} are {kind}, {quoted_list(labels, _SHOWN)}, and "
                f"nothing says which is lower: {_HOW_TO_ORDER}"
            )
        fraction = next((label for label in labels if label % 1), None)
        if fraction is not None or len(labels) > MOST_CLASSES:
            many = f"more than {len(labels):,}" if more else f"{len(labels):,}"
            example = "" if fraction is None else f", such as {label_of(fraction)}"
            raise InputError(
                f"{self.outcome} holds {many} different numbers{example}, and classes are at most "
                f"{MOST_CLASSES} integers: {_FOR_AMOUNTS}, or make classes that keep missing "
                "values missing, as with pandas.cut"
            )
        return tuple(sorted(labels))

    def _checked(self, classes: Classes, selected: Counter[Any]) -> Classes:
        """Refuse a single class, too many, and classes that one row has."""
        if len(classes) == 1:
            raise ConstantOutcomeError(
                f"{self.outcome} holds one class, {quoted(classes[0])}, in all "
                f"{selected[classes[0]]} selected rows, and two classes are needed. Check that "
                "it is the right column."
            )
        if len(classes) > MOST_CLASSES:
            raise InputError(
                f"{self.outcome} holds {len(classes)} classes, and at most {MOST_CLASSES} are "
                "fitted: merge some"
            )
        refuse_rare(classes, [selected[label] for label in classes])
        return classes


def refuse_rare(classes: Classes | list[str], counts: list[int]) -> None:
    """Refuse classes that fewer than two selected rows have."""
    for label, count in zip(classes, counts, strict=True):
        if count < 2:
            raise TooFewRowsError(
                f"class {quoted(label)} has {plural(count, 'selected row')}, and each needs two or "
                "more: merge it with its neighbour, or mark its outcomes as missing"
            )

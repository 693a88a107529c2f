"""How sentences name columns of X, the outcome and effects on it.

Effects on a continuous outcome are in its units, beside least squares. Effects on a binary outcome
are average slopes of the probability of its positive class, in percentage points, beside a probit
of the rows with an outcome. Sentences take what differs from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.fit import LINEAR, Fit
from heckmanfa.fit.family import FamilyWords
from heckmanfa.model.linalg import column_norms
from heckmanfa.model.moments import Moments
from heckmanfa.text.labels import level_label, one_unit, switch_levels, with_unit
from heckmanfa.text.option_types import OutcomeTransform
from heckmanfa.text.passage import Name, Passage, passage
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import capitalised, effects, percent, points, signed, true_minus

OUTCOME = "y"
"""name of an outcome that came without one"""

# A group of columns from more sources than this is named by the first of them.
_NAMED = 3
# Sums of squares are right to this share.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Naming:
    """Names of the K columns of X, and what one of them is compared with."""

    outcome: str
    sources: tuple[str, ...]
    """(K,) the column of the user's table behind each column of X"""
    levels: tuple[str, ...]
    """(K,) the level of a category that a dummy marks, otherwise empty"""
    references: tuple[str, ...]
    """(K,) the level it is compared with, otherwise empty"""
    switches: frozenset[int]
    """columns that hold only 0 and 1, dummies of categories left out"""
    groups: tuple[tuple[int, ...], ...] = ()
    """columns that are one column of the table, such as the dummies of one category"""
    cluster: str = ""
    """the column of the clusters, if the covariance is clustered by one with a name"""

    @classmethod
    def of(cls, fit: Fit) -> Naming:
        """Name columns as the fit knows them: by terms of formulas, or by categories of X."""
        design, labels, encoding = fit.origin.design, fit.labels, fit.spec.columns.encoding
        binary = binary_columns(fit.moments)
        cluster = fit.origin.group_column or ""
        if encoding is not None:
            named = name_dummies(labels, encoding)
            return cls(
                outcome=outcome_of(fit),
                sources=named.sources,
                levels=named.levels,
                references=named.references,
                switches=frozenset(column for column in binary if not named.levels[column]),
                groups=fit.spec.groups,
                cluster=cluster,
            )
        sources = list(labels)
        if design is not None:
            for term, columns in design.selection_terms.items():
                for column in columns if len(columns) > 1 else ():
                    if column in labels:
                        sources[labels.index(column)] = term
        levels = [
            "" if source == label else _level(source, label)
            for source, label in zip(sources, labels, strict=True)
        ]
        return cls(
            outcome=outcome_of(fit),
            sources=tuple(sources),
            levels=tuple(levels),
            references=("",) * len(labels),
            switches=binary,
            groups=fit.spec.groups,
            cluster=cluster,
        )

    def name_of(self, columns: Sequence[int]) -> str:
        """Name a feature, or a group of columns."""
        names = list(dict.fromkeys(self.sources[column] for column in columns))
        if len(names) > _NAMED:
            names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
        return " + ".join(names)

    def change_of(self, column: int) -> Passage:
        """Say what one more of a column is: 'one more educ', 'city = 1 rather than 0'.

        With labels it is 'one more year (Years of schooling)', or without a unit 'one more unit of
        Years of schooling', and 'Lives in a city: yes rather than no'.
        """
        source = self.sources[column]
        name = Name(source)
        is_is = ": " if name.is_labelled else " = "
        if self.levels[column]:
            level, reference = self._level(source, self.levels[column]), self.references[column]
            if not reference:
                return passage(name, is_is, level, " rather than otherwise")
            return passage(name, is_is, level, " rather than ", self._level(source, reference))
        if column in self.switches:
            return passage(name, is_is, "{} rather than {}".format(*switch_levels(source)))
        unit = one_unit(source)
        if unit:
            return passage(f"one more {unit} (", name, ")")
        return passage("one more unit of " if name.is_labelled else "one more ", name)

    @staticmethod
    def _level(source: str, level: str) -> Name:
        return Name(level, level_label(source, level))

    def is_switch(self, column: int) -> bool:
        """Whether a column is 0 or 1."""
        return column in self.switches or bool(self.levels[column])


class NamedDummies(NamedTuple):
    """What an encoding says about K columns: the fields of a `Naming`."""

    sources: tuple[str, ...]
    levels: tuple[str, ...]
    references: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    """the dummies of each category that has several of them"""


def name_dummies(labels: Sequence[str], encoding: Encoding) -> NamedDummies:
    """Name columns after those of the table that an encoding makes them from."""
    sources, levels, references = list(labels), [""] * len(labels), [""] * len(labels)
    groups: list[tuple[int, ...]] = []
    places = {label: place for place, label in enumerate(labels)}
    for name in encoding.levels:
        reference = encoding.references.get(name, "")
        inside = []
        for dummy, code in encoding.dummies(name).items() if encoding.levels[name] else ():
            place = places.get(dummy)
            if place is not None:
                sources[place], references[place] = name, reference
                levels[place] = encoding.levels[name][code]
                inside.append(place)
        if len(inside) > 1:
            groups.append(tuple(inside))
    return NamedDummies(tuple(sources), tuple(levels), tuple(references), tuple(groups))


def binary_columns(moments: Moments) -> frozenset[int]:
    """Find the columns that hold only 0 and 1 among the rows with an outcome.

    Their sum is that of their squares. Other columns have such sums by coincidence only.
    """
    k, first = len(moments.columns), float(moments.factor[0, 0])
    total = moments.factor[0, 1 : k + 1] * first
    squares = column_norms(moments.factor[:, 1 : k + 1]) ** 2
    constant = {*moments.constant_columns()}
    alike = np.abs(total - squares) <= _ROUNDING * squares
    return frozenset(
        column
        for column, same in zip(moments.columns, alike, strict=True)
        if same and column not in constant
    )


def outcome_of(fit: Fit, unnamed: str = OUTCOME) -> str:
    """Return the name of what is fitted; ``unnamed`` if the outcome came without one."""
    design = fit.origin.design
    name = fit.origin.outcome or unnamed
    if design is not None:
        name = design.texts[0].split("~")[0].strip()
    return name_on_scale(name, fit.spec.outcome_transform)


def name_on_scale(outcome: str, transform: OutcomeTransform | None) -> str:
    """Name an outcome on the scale that it is fitted on: 'log(wage)'."""
    if transform is None:
        return outcome
    return f"log({outcome})" if transform == "log" else f"log(1 + {outcome})"


def _level(term: str, label: str) -> str:
    """Return what a formula's dummy adds to its term, such as 'north' in 'region[T.north]'."""
    rest = label.removeprefix(term)
    if rest.startswith("[") and rest.endswith("]"):
        return rest[1:-1].removeprefix("T.")
    return label


# A formula's outcome that is a comparison already says which class is meant.
_COMPARISON = re.compile(r"[<>=!]=|[<>]")


def class_label(label: Any) -> str:
    """Write a class as it can be read in a sentence: 1, True or 'yes'."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return quoted(label)


def said_class(outcome: str, label: Any) -> str:
    """Name a class to a reader: what a codebook says that it means, or the class itself."""
    # A codebook writes 1, not 1.0.
    text = str(int(label) if isinstance(label, float) and label.is_integer() else label)
    meaning = level_label(outcome, text)
    return class_label(label) if meaning == text else shown(meaning)


_WHOLE: dict[OutcomeTransform, str] = {"log": "the outcome", "log1p": "one plus the outcome"}


def log_points(transform: OutcomeTransform | None) -> str:
    """Say what an effect on a logarithm means, in a sentence; empty on other scales."""
    if transform is None:
        return ""
    return f"Effects b are in log points: {_WHOLE[transform]} changes by the share exp(b) − 1."


def scale_notes(
    transform: OutcomeTransform | None, scale: str, predictions: bool = False
) -> list[str]:
    """Say which scale effects, or predictions, are on, if there are two."""
    if transform is None:
        return []
    if scale == "link":
        return ["Predictions are of the logarithm." if predictions else log_points(transform)]
    return [
        f"{'Predictions' if predictions else 'Effects'} are on the outcome's own scale, by the "
        "model's formula for its mean: errors are normal on the log scale, and standard errors "
        "allow for sigma."
    ]


def held_value(rho: float) -> str:
    """Return "held at" and the value, with the digits that the user gave."""
    return f"held at {rho:.10g}"


def held_in_words(rho: float) -> str:
    """Return the same with a proper minus sign, for sentences about an answer."""
    return true_minus(held_value(rho))


@dataclass(frozen=True)
class EffectWords:
    """The words and the unit of effects on one outcome."""

    outcome: str
    classes: tuple[Any, Any] | None = None
    """negative and positive class of a binary outcome"""
    transform: OutcomeTransform | None = None
    """the scale of the fit, if it is not that of the outcome; ``outcome`` names it"""
    family: FamilyWords = LINEAR.words

    @classmethod
    def of(cls, fit: Fit, outcome: str) -> EffectWords:
        """Return the words for a fit with this outcome."""
        return cls(outcome, fit.classes, fit.spec.outcome_transform, fit.family.words)

    @property
    def target(self) -> Passage:
        """What effects are on: lwage, or P(recid = 'yes')."""
        return passage(Name(self.outcome)) if self.classes is None else self._probability(1)

    def _probability(self, which: int) -> Passage:
        assert self.classes is not None
        label = self.classes[which]
        if not isinstance(label, str) and label == 1 and _COMPARISON.search(self.outcome):
            return passage("P(", Name(self.outcome), ")")
        return passage("P(", Name(self.outcome), f" = {said_class(self.outcome, label)})")

    def numbers(self, *values: float) -> list[str]:
        """Format effects for a sentence, all with one number of decimals; NaN is empty."""
        return points(*values) if self.unit else effects(*values)

    def amount(self, estimate: float, *others: float) -> Passage:
        """Say how much more or less of the target an effect is.

        ``others`` are numbers with which it shares its decimals.
        """
        if self.unit:
            size = signed(points(estimate, *others)[0])
            return passage(f"{size} {self.unit} in ", self.target)
        size = effects(abs(estimate), *others)[0]
        size = with_unit(size, self.outcome)
        return passage(f"{size} {'more' if estimate >= 0.0 else 'less'} ", self.target)

    @property
    def unit(self) -> str:
        """What numbers are in, after a number and a blank; empty in units of the outcome."""
        return self.family.unit

    @property
    def averaged(self) -> str:
        """Which rows effects are averaged over, after a blank; empty if every row has the same."""
        return " over the rows with an outcome" if self.unit else ""

    @property
    def scale(self) -> Passage:
        """What a column of effects holds, as a sentence; empty in units of the outcome."""
        if not self.unit:
            return passage()
        return passage(
            f"Points: {self.unit} in ",
            self.target,
            f" for one more, or from a category's reference level to this one, "
            f"averaged{self.averaged}.",
        )

    def in_percent(self, estimate: float, low: float, high: float) -> Passage:
        """Say what an effect on a logarithm is in per cent; empty on other scales."""
        if self.transform is None or not math.isfinite(estimate):
            return passage()
        more = "more" if estimate >= 0.0 else "less"
        shares = [percent(abs(math.expm1(estimate)))]
        shares += [true_minus(percent(math.expm1(end))) for end in (low, high)]
        ends = f" ({shares[1]} to {shares[2]})" if math.isfinite(low + high) else ""
        return passage(f"In per cent: {shares[0]} {more} of {_WHOLE[self.transform]}{ends}.")

    @property
    def factor(self) -> float:
        """What turns an effect into that unit."""
        return self.family.factor

    @property
    def naive(self) -> str:
        """The model of the rows with an outcome that ignores selection."""
        return self.family.naive

    @property
    def naive_start(self) -> str:
        """The same, at the start of a sentence."""
        return capitalised(self.naive)

    @property
    def naive_short(self) -> str:
        """The same, as a label."""
        return self.family.naive_short

    @property
    def correction(self) -> str:
        """What corrects for selection, as a subject."""
        return self.family.correction_subject

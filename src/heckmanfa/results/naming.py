"""How sentences name columns of X, the outcome and effects on it.

Effects on a continuous outcome are in its units, beside least squares. Effects on a binary outcome
are average slopes of the probability of its positive class, in percentage points, beside a probit
of the rows with an outcome. Sentences take what differs from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.fit import LINEAR, Fit
from heckmanfa.fit.family import FamilyWords
from heckmanfa.model.linalg import column_norms
from heckmanfa.model.moments import Moments
from heckmanfa.results.logs import Logarithm, in_percent, logarithm_of, looks_logged
from heckmanfa.results.steps import more_of, steps_of
from heckmanfa.text.labels import label, level_label, one_unit, said_level, switch_levels, with_unit
from heckmanfa.text.option_types import OutcomeTransform
from heckmanfa.text.option_words import option
from heckmanfa.text.passage import Name, Passage, join, passage
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import (
    MINUS,
    PERCENT,
    capitalised,
    effects,
    percentages,
    points,
    signed,
    true_minus,
)

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
    clusterings: tuple[str, ...] = ()
    """the columns of the clusters, if the covariance is clustered by columns with names"""
    steps: tuple[float, ...] = ()
    """(K,) the change of each column that effects are of; one if there are none"""
    log: Logarithm | None = None
    """what the outcome is the logarithm of, if it is one"""

    @classmethod
    def of(cls, fit: Fit) -> Naming:
        """Name columns as the fit knows them: by terms of formulas, or by categories of X."""
        design, labels, encoding = fit.origin.design, fit.labels, fit.spec.columns.encoding
        binary = binary_columns(fit.moments)
        clusterings = fit.origin.clusterings
        if encoding is not None:
            named = name_dummies(labels, encoding)
            return cls(
                outcome=outcome_of(fit),
                sources=named.sources,
                levels=named.levels,
                references=named.references,
                switches=frozenset(column for column in binary if not named.levels[column]),
                groups=fit.spec.groups,
                clusterings=clusterings,
            ).with_steps(fit)
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
            references=tuple(_references(design, sources, levels)),
            switches=binary,
            groups=fit.spec.groups,
            clusterings=clusterings,
        ).with_steps(fit)

    def with_steps(
        self, fit: Fit, given: Mapping[str, float] | None = None, *, log: bool = False
    ) -> Naming:
        """Choose the step of each column, by its spread in a fit unless it is given by name.

        ``log`` says that the outcome is a logarithm; whether the fit took one is found out.
        """
        single = {column for column in range(len(self.sources)) if self.is_switch(column)}
        steps = steps_of(fit, single)
        if given:
            steps = tuple(
                step if column in single else given.get(self.sources[column], step)
                for column, step in enumerate(steps)
            )
        return replace(self, steps=steps, log=logarithm_of(fit, self.outcome, stated=log))

    def step_of(self, column: int) -> float:
        """Return the change of a column that its effects are of, in its units."""
        return self.steps[column] if self.steps else 1.0

    def name_of(self, columns: Sequence[int]) -> str:
        """Name a feature, or a group of columns."""
        names = list(dict.fromkeys(self.sources[column] for column in columns))
        if len(names) > _NAMED:
            names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
        return " + ".join(names)

    def change_of(self, column: int) -> Passage:
        """Say what a step of a column is: 'one more educ', 'city = 1 rather than 0'.

        With labels it is '10,000 dollars more (Household income)', or without a unit 'one more unit
        of Years of schooling', and 'Lives in a city: yes rather than no'.
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
        step = self.step_of(column)
        more = more_of(source, step)
        if one_unit(source):
            return passage(f"{more} (", name, ")")
        of = (" unit of " if step == 1.0 else " in ") if name.is_labelled else " "
        return passage(f"{more}{of}", name)

    def step_words(self, column: int) -> str:
        """Say the step beside a column's name: 'one more year', 'south rather than north'."""
        source = self.sources[column]
        if self.levels[column]:
            return rather(source, self.levels[column], self.references[column])
        if column in self.switches:
            return "{} rather than {}".format(*switch_levels(source))
        return more_of(source, self.step_of(column))

    @staticmethod
    def _level(source: str, level: str) -> Name:
        return Name(level, level_label(source, level))

    def is_switch(self, column: int) -> bool:
        """Whether a column is 0 or 1."""
        return column in self.switches or bool(self.levels[column])


def rather(column: str, level: str, reference: str) -> str:
    """Compare a level with the reference of its category: 'south rather than north'."""
    other = said_level(column, reference) if reference else "otherwise"
    return f"{said_level(column, level)} rather than {other}"


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


def _references(
    design: FormulaDesign | None, terms: Sequence[str], levels: Sequence[str]
) -> Iterator[str]:
    """Yield the level of each term's factor that no dummy marks, empty if there is not one."""
    known = {} if design is None else design.prediction.encodings | design.selection.encodings
    for term, level in zip(terms, levels, strict=True):
        _, categories = known.get(term, ("", None))
        marked = {own for own, name in zip(levels, terms, strict=True) if name == term}
        left = [str(each) for each in categories or () if str(each) not in marked]
        yield left[0] if level and len(left) == 1 else ""


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


def scale_of_log(log: Logarithm) -> str:
    """Say what coefficients on a logarithm mean, in a sentence."""
    whole = "one plus the outcome" if log.plus_one else "the outcome"
    return f"Coefficients b are on the logarithm: {whole} changes by exp(b) \u2212 1, in percent."


def scale_notes(
    transform: OutcomeTransform | None, scale: str, predictions: bool = False
) -> list[str]:
    """Say which scale effects, or predictions, are on, if there are two."""
    if transform is None:
        return []
    if scale == "link":
        log = Logarithm("", transform == "log1p")
        return ["Predictions are of the logarithm." if predictions else scale_of_log(log)]
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
    log: Logarithm | None = None
    """what the outcome is the logarithm of; effects are then in percent of that"""
    family: FamilyWords = LINEAR.words
    or_higher: bool = False
    """whether the positive class stands for higher ones, too"""

    @classmethod
    def of(cls, fit: Fit, outcome: str, log: Logarithm | None = None) -> EffectWords:
        """Return the words for a fit with this outcome."""
        higher = fit.details is not None and fit.details.or_higher
        return cls(outcome, fit.classes, log, fit.family.words, higher)

    @property
    def changed(self) -> str:
        """Name of what effects are on in a picture: wage of log(wage), or P(recid = 'yes')."""
        if self.log is not None:
            return f"1 + {label(self.log.of)}" if self.log.plus_one else self.log.of
        return str(self.target) if self.unit else self.outcome

    @property
    def target(self) -> Passage:
        """What effects are on: lwage, or P(recid = 'yes')."""
        return passage(Name(self.outcome)) if self.classes is None else self._probability(1)

    def _probability(self, which: int) -> Passage:
        assert self.classes is not None
        label = self.classes[which]
        if not isinstance(label, str) and label == 1 and _COMPARISON.search(self.outcome):
            return passage("P(", Name(self.outcome), ")")
        more = " or higher" if self.or_higher else ""
        return passage("P(", Name(self.outcome), f" = {said_class(self.outcome, label)}{more})")

    def numbers(self, *values: float) -> list[str]:
        """Format effects for a sentence, all with one number of decimals; NaN is empty."""
        if self.log is not None:
            return percentages(*map(in_percent, values))
        return points(*values) if self.unit else effects(*values)

    def drawn(self, value: float) -> float:
        """Return an effect in the unit that readers see it in."""
        return in_percent(value) if self.log is not None else self.factor * value

    def amount(self, estimate: float, *others: float) -> Passage:
        """Say how much more or less of the target an effect is.

        ``others`` are numbers with which it shares its decimals.
        """
        if self.log is not None:
            more = "more" if estimate >= 0.0 else "less"
            size = self.numbers(estimate, *others)[0].removeprefix(MINUS)
            return passage(f"{size} {more} ", self.log.target)
        if self.unit:
            size = signed(points(estimate, *others)[0])
            return passage(f"{size} {self.unit} in ", self.target)
        size = effects(abs(estimate), *others)[0]
        size = with_unit(size, self.outcome)
        return passage(f"{size} {'more' if estimate >= 0.0 else 'less'} ", self.target)

    def amounts(self, low: float, high: float) -> Passage:
        """Say between which amounts more of the target an effect lies; less, if both are below."""
        more = "more" if high > 0.0 else "less"
        first, last = self.numbers(low, high)
        if more == "less":
            first, last = (end.removeprefix(MINUS) for end in (last, first))
        if self.log is not None:
            return passage(f"{first} to {last} {more} ", self.log.target)
        return passage(f"{first} to {with_unit(last, self.outcome)} {more} ", self.target)

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
        """What a column of effects holds, as a sentence."""
        step = "for one more of a feature, or for the step beside its name"
        if self.log is not None:
            return passage("Percent: ", self.log.target, f", {step}.")
        if not self.unit:
            return join([passage(f"Effects are {step}."), self.hint])
        return passage(
            f"Points: {self.unit} in ", self.target, f" {step}, averaged{self.averaged}."
        )

    @property
    def hint(self) -> Passage:
        """How to have percentages, if the outcome has the name of a logarithm; else empty."""
        if self.log is not None or self.classes is not None or not looks_logged(self.outcome):
            return passage()
        says = f" is a logarithm, {option('log_outcome', True)} says effects in percent."
        return passage("If ", Name(self.outcome), says)

    @property
    def drawn_unit(self) -> str:
        """What `drawn` effects are in; empty in units of the outcome."""
        return PERCENT if self.log is not None else self.unit

    @property
    def title(self) -> str:
        """What a narrow column of effects is called."""
        return PERCENT if self.log is not None else "points" if self.unit else "effect"

    def on_log(self, estimate: float, low: float, high: float) -> Passage:
        """Give an effect on a logarithm as it was estimated; empty on other scales."""
        if self.log is None or not math.isfinite(estimate):
            return passage()
        value, start, end = effects(estimate, low, high)
        ends = f" ({start} to {end})" if math.isfinite(low + high) else ""
        return passage("On ", Name(self.outcome), f", which was fitted, it is {value}{ends}.")

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

"""How an effect on the outcome is written: in units of the outcome, or of a probability.

Effects on a continuous outcome are in its units, beside least squares. Effects on a binary outcome
are average slopes of the probability of its positive class, in percentage points, beside a probit
of the rows with an outcome. Sentences take what differs from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from heckmanfa.fit import LINEAR, Fit
from heckmanfa.fit.family import FamilyWords
from heckmanfa.text.numerals import signed
from heckmanfa.text.option_types import OutcomeTransform
from heckmanfa.text.passage import Name, Passage, passage
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import effects, points, true_minus

_POINTS = "percentage points"
# A formula's outcome that is a comparison already says which class is meant.
_COMPARISON = re.compile(r"[<>=!]=|[<>]")


def class_label(label: Any) -> str:
    """Write a class as it can be read in a sentence: 1, True or 'yes'."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return quoted(label)


def log_points(transform: OutcomeTransform | None) -> str:
    """Say what an effect on a logarithm means, in a sentence; empty on other scales."""
    if transform is None:
        return ""
    whole = "the outcome" if transform == "log" else "one plus the outcome"
    return f"Effects are in log points: 0.05 is about 5% of {whole}."


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
        return passage("P(", Name(self.outcome), f" = {class_label(label)})")

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

    @property
    def log_points(self) -> Passage:
        """What an effect on a logarithm means, as a sentence; empty on other scales."""
        said = log_points(self.transform)
        return passage(said) if said else passage()

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
        return self.naive[0].upper() + self.naive[1:]

    @property
    def naive_short(self) -> str:
        """The same, as a label."""
        return self.family.naive_short

    @property
    def correction(self) -> str:
        """What corrects for selection, as a subject."""
        return self.family.correction_subject

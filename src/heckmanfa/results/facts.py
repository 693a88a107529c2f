"""Facts: what is worth telling about a fit, decided once and told by every output.

A `Fact` has a key, a level, its numbers and its names. `heckmanfa.results.fact_words` has the words
of each key; summary, diagnostics, checks, claims, JSON and report show them. CONTRIBUTING.md says
how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from heckmanfa.text.option_words import IN_NEVER, option

Level = Literal["problem", "caution", "note", "ok"]
LEVELS: tuple[Level, ...] = ("problem", "caution", "note", "ok")
"""the gravest first"""

UNTESTED = "untested"
"""case of a fact whose test could not be made"""

Text = str | Mapping[str, str]
"""words with the fact's values in braces, or several, by case or level; "" is for all others"""

# Options and advice that the words of several facts name.
ALWAYS = option("always", [...])
EXCLUDE = option("exclude", [...])
NEVER = option("never", [...])
PREDICT_WITH = option("prediction_features", [...])
STRONGER = (
    "Look for a feature that drives selection strongly and has no reason to predict, and name it "
    f"{IN_NEVER}."
)
FEWER = f"Use more rows, or fewer features: {PREDICT_WITH} names those that may predict."


@dataclass(frozen=True)
class FactWords:
    """The words of one kind of fact."""

    name: Text = ""
    """its label among the checks; empty if it only says what an estimate is"""
    title: Text = ""
    """what is not fine, in a sentence; a check without one is fine"""
    do: Text = ""
    """what to do about it"""
    why: Text = ""
    """why it matters, among the checks; empty takes ``meaning``"""
    line: str = ""
    """its label among the diagnostics; empty if it has no line there"""
    meaning: Text = ""
    """what its value means; empty takes ``sentence``"""
    sentence: Text = ""
    """what a summary says of it; empty if it says nothing"""
    note: Text = ""
    """what a table for a paper says of it; empty takes ``sentence``"""
    claim: Text = ""
    """what may not be claimed, from "That" on"""
    because: Text = ""
    """why that may not be claimed"""
    levels: tuple[Level, Level] = ("problem", "note")
    """the gravest and the mildest level of a check that is not fine"""


@dataclass(frozen=True)
class Fact:
    """Something worth telling about a fit."""

    key: str
    """which fact it is, for programs"""
    level: Level
    value: str = ""
    """the number behind it"""
    meaning: str = ""
    """what it means, in a sentence or two"""
    name: str = ""
    """its label among the diagnostics; empty if it has no line there"""
    sentence: str = ""
    """what a summary says of it"""
    claim: str = ""
    """the claim that it rules out, a clause that begins with "That" """
    because: str = ""
    """why that may not be claimed"""
    case: str = ""
    """which of several things it tells, for programs"""
    short: str = ""
    """the value without names, where it has many"""
    names: tuple[str, ...] = ()
    """the features that it is about"""
    values: Mapping[str, str] | None = None
    """words that its title, its advice and its note hold"""

    @property
    def verdict(self) -> Level:
        """The level in the diagnostics, which have no notes."""
        return "ok" if self.level == "note" else self.level

    @property
    def text(self) -> str:
        """The claim with its reason, or the sentence."""
        return f"{self.claim}: {self.because}" if self.claim else self.sentence

"""What a check can be about, and the words that each check has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from heckmanfa.results.document import Level


class Kind(IntEnum):
    """What a check is about; the gravest kind first."""

    INVALID = 0
    """the estimates are not those of the model"""
    ASSUMPTION = 1
    """what the model assumes is rejected"""
    SEARCH = 2
    """the choice of features is not stable"""
    IDENTIFICATION = 3
    """little tells selection from prediction"""
    EXCLUSION = 4
    """an exclusion is doubtful"""
    ROWS = 5
    """the rows, the columns, and what was not done"""


@dataclass(frozen=True)
class CheckWords:
    """A check in plain words."""

    kind: Kind
    name: str
    """its label if it is fine"""
    title: str
    """what is wrong if it is not fine, in a sentence"""
    do: str
    """what to do then"""
    why: str = ""
    """why it matters, in place of what the finding means; empty keeps that"""
    titles: Mapping[str, str] = field(default_factory=dict)
    """other titles, by the case of the finding"""
    dos: Mapping[str, str] = field(default_factory=dict)
    """what to do instead, by the case of the finding"""
    whys: Mapping[str, str] = field(default_factory=dict)
    """why it matters instead, by the case of the finding"""
    gravest: Level = "problem"
    """the level that it never passes"""
    mildest: Level = "note"
    """the level of what is not fine is at least this grave"""


UNTESTED = "untested"
"""case of a finding whose test could not be made"""

# Words of several checks.
STRONGER = (
    "Look for a feature that drives selection strongly and has no reason to predict, and name it "
    "with --select-only."
)
RELY = (
    "Rely on one or two features that drive selection strongly and have no reason to predict, and "
    "name them with --select-only."
)
FEWER_FEATURES = "Use more rows, or fewer features: --predict-with names those that may predict."
LITTLE = "Little then tells selection from prediction."

# --always is an option of searches.
DO_WITHOUT_SEARCH = {
    "what_if": "Let it predict (--predict-with), or argue why it should not, and compare.",
    "exclusion_test": "Let those that you can defend least predict (--predict-with), and compare.",
    "derived": "Interpret their coefficients together, or leave the derived ones out with "
    "--exclude. The picture of who is selected moves them together.",
}
"""what to do instead where the question named the features that predict"""

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
    gravest: Level = "problem"
    """the level that it never passes"""
    mildest: Level = "note"
    """the level of what is not fine is at least this grave"""


UNTESTED = "untested"
"""case of a finding whose test could not be made"""

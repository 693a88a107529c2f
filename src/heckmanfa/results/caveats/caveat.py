"""What a caveat is, and what a table tells of a fit beyond the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from heckmanfa.results.exclusions import KeptOut

Severity = Literal["note", "caution", "problem"]


@dataclass(frozen=True)
class Caveat:
    """Something that limits what an estimate says."""

    key: str
    severity: Severity
    sentence: str
    claim: str = ""
    """what may not be claimed because of it, a sentence that begins with "That"; a note has none"""

    @property
    def text(self) -> str:
        """What the answer to a question prints: the claim, or a note's sentence."""
        return self.claim or self.sentence


@dataclass(frozen=True)
class Table:
    """What is known of a table of people beyond the model that was fitted to it."""

    outcome: str
    n_rows: int
    n_missing: int
    """rows left out because they miss a feature"""
    filled: bool
    """whether missing cells were filled in"""
    sources: Callable[[Sequence[Any]], list[str]]
    """the columns of the table behind columns of X"""
    exclusions: KeptOut
    """the features kept out of the prediction equation, the dummies of a column tested jointly"""

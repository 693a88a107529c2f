"""What a page shows: the answer of a fitted model, and what backs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from heckmanfa.fit import Fit
from heckmanfa.inference.pictures import Pictures
from heckmanfa.plots.picture import Picture
from heckmanfa.report.settings import today
from heckmanfa.results.answer import Answer
from heckmanfa.results.checks import Check
from heckmanfa.results.claims import Claim
from heckmanfa.results.document import PageBlock
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.facts import Fact
from heckmanfa.results.funnel import Funnel
from heckmanfa.results.side_by_side import SideBySide
from heckmanfa.text.labels import Labels


class Backing(Protocol):
    """The numbers behind an answer."""

    @property
    def fit(self) -> Fit:
        """The fitted model."""
        ...

    @property
    def outcome_names(self) -> Sequence[str]:
        """Names of the outcome."""
        ...


class Drawn(Protocol):
    """The pictures of an answer."""

    def known(self, name: str) -> Picture | None:
        """Return a picture by its name; None if there is none, or it needs rows not given."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportedAnswer:
    """What the page of any answer shows."""

    evidence: Backing
    pictures: Drawn
    answer: Answer
    checks: tuple[Check, ...]
    claims: tuple[Claim, ...]
    caveats: Sequence[Fact]
    outcome_column: str
    """the column of the outcome, before any transform"""
    title: str
    """of the window"""
    called: str
    """the table, or what else the rows are called"""
    row_counts: Mapping[str, int]
    """rows by how they were used, or why they were left out; with their total"""
    funnel: Funnel
    """the same, from the table to the answer"""
    n_features: int
    """columns of the table that are features"""
    settings: Sequence[tuple[str, str]]
    """what was asked, as pairs of a label and a sentence"""
    rows: Sequence[PageBlock]
    """an account of the rows and columns"""
    again: Sequence[PageBlock]
    """how to run it again"""
    without_rows: str = ""
    """why there are no pictures of rows, in a sentence; empty if there are"""
    heading: str = ""
    """what the user calls the report, above its first sentence"""
    labels: Labels = field(default_factory=Labels)
    """what readers call columns"""
    made_on: str = field(default_factory=today)
    """the date of the analysis, or of the report if there is none"""

    @property
    def fit(self) -> Fit:
        """The fitted model."""
        return self.evidence.fit

    @property
    def outcome_names(self) -> Sequence[str]:
        """Names of the outcome, which are not marked as features are."""
        return self.evidence.outcome_names


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported(ReportedAnswer):
    """What a page shows. An `Analysis` and every fitted selection model can make one."""

    evidence: Evidence
    pictures: Pictures
    comparison: SideBySide
    held_out: Picture | None = None
    """scores of rows by fits without them, in place of those in sample"""
    held_out_note: str = ""
    """how rows were held out, or why they were not"""

    @property
    def outcome(self) -> str:
        """Name of what is fitted."""
        return self.evidence.outcome

    @property
    def is_corrected(self) -> bool:
        """Whether the model has a selection equation: some outcome was missing in the fit."""
        return self.fit.probit is not None

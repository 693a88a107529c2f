"""Rows as a funnel: read, left out by reason, used, and with an outcome.

Decided once from the counts of a fit; the first screen, console, JSON and details print it. Its
counts add up: what was read is what was left out and what was used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from heckmanfa.fit import Fit
from heckmanfa.text.labels import said
from heckmanfa.text.wording import count, listed, percent, plural

NOT_DATA = "left_out_not_data"
"""rows of a table that its user says are not data, such as totals"""
LACKING = "left_out_regressor_missing"
"""rows that lack a feature"""
SUBPOPULATION = "left_out_subpopulation"
"""rows that the question is not about"""
LARGE_LOSS = 0.2
"""A first screen says so if a larger share of the rows is lost."""


@dataclass(frozen=True)
class _Reason:
    """Why rows are left out."""

    label: str
    one: str
    """a clause after "1" or "it" """
    many: str
    """a clause after a number or "they" """


_REASONS = {
    NOT_DATA: _Reason(
        "not data, as the user says", "is not data, as you said", "are not data, as you said"
    ),
    LACKING: _Reason("a feature is missing", "lacks a feature", "lack a feature"),
    "left_out_outcome_missing": _Reason(
        "selected, but the outcome is missing",
        "is selected, but lacks the outcome",
        "are selected, but lack the outcome",
    ),
    "left_out_treatment_missing": _Reason(
        "the treatment is missing",
        "does not say whether it is treated",
        "do not say whether they are treated",
    ),
    "left_out_zero_weight": _Reason(
        "the weight is zero", "has a weight of zero", "have a weight of zero"
    ),
    SUBPOPULATION: _Reason(
        "outside of the subpopulation",
        "is outside of the subpopulation",
        "are outside of the subpopulation",
    ),
    "left_out_separation": _Reason(
        "a feature determines {} exactly",
        "has a feature that determines {} exactly",
        "have a feature that determines {} exactly",
    ),
}
_OF_EVERYONE = {
    "left_out_outcome_missing": _Reason(
        "the outcome is missing", "lacks the outcome", "lack the outcome"
    ),
}
_NAMED = 3
"""columns that a clause names"""
_NAME_ROOM = 24


@dataclass(frozen=True)
class LeftOut:
    """Rows that were left out for one reason."""

    reason: str
    """for programs, as ``row_counts`` has it"""
    rows: int
    label: str
    """why, as a label"""
    why: str
    """why, as a clause after the number of rows"""
    columns: tuple[tuple[str, int], ...] = ()
    """columns that cost most rows, and how many rows lack each; a row may lack several"""

    @property
    def costs(self) -> str:
        """Name the columns that cost most rows, each with its rows; empty without any."""
        first = [f"{said(name, _NAME_ROOM)}: {count(n)}" for name, n in self.columns[:_NAMED]]
        rest = len(self.columns) - len(first)
        return ", ".join([*first, *([f"{rest} more"] if rest else [])])

    @property
    def clause(self) -> str:
        """Say why, and name the columns that cost most rows."""
        return f"{self.why} ({self.costs})" if self.costs else self.why

    @property
    def words(self) -> str:
        """Say how many rows, and why."""
        return f"{count(self.rows)} {self.clause}"


@dataclass(frozen=True)
class Funnel:
    """How many rows of a table are behind an answer, and where the others went."""

    read: int
    left_out: tuple[LeftOut, ...]
    """by reason, those left out first come first"""
    used: int
    observed: int
    """of those used, the rows with an outcome"""
    outcome: str
    """column of the outcome"""
    parts: tuple[str, str] = ("", "")
    """what the rows with an outcome and the others are called instead, as where all have one"""

    @property
    def shares(self) -> list[tuple[int, str]]:
        """The two kinds of rows that are used, each with its number."""
        first, second = self.parts
        others = self.used - self.observed
        return [
            (self.observed, first or f"with {said(self.outcome)}"),
            (others, second or "without"),
        ]

    @property
    def lost(self) -> int:
        """Rows left out for any reason."""
        return sum(loss.rows for loss in self.left_out)

    @property
    def lost_share(self) -> float:
        """Their share of the rows that were read."""
        return self.lost / self.read

    @property
    def is_large_loss(self) -> bool:
        """Whether so many rows are lost that a first screen says so."""
        outside = sum(loss.rows for loss in self.left_out if loss.reason == SUBPOPULATION)
        return self.lost - outside > LARGE_LOSS * (self.read - outside)

    @property
    def lacking(self) -> int:
        """Rows left out because they lack a feature."""
        return sum(loss.rows for loss in self.left_out if loss.reason == LACKING)

    @property
    def reasons(self) -> str:
        """Say why rows were left out, after their number; a single reason needs no other."""
        if len(self.left_out) == 1:
            return f"{'it' if self.lost == 1 else 'they'} {self.left_out[0].clause}"
        return listed([loss.words for loss in self.left_out])

    @property
    def words(self) -> str:
        """Count the rows from the table to the answer, in a sentence."""
        n, first = self.shares[0]
        with_outcome = f"{count(n)} {first}"
        if not self.lost:
            return f"{plural(self.read, 'row')} read and used, {with_outcome}."
        return (
            f"{plural(self.read, 'row')} read, {count(self.used)} used, {with_outcome}. "
            f"{count(self.lost)} left out: {self.reasons}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and the sentence in plain types."""
        losses = [asdict(loss) | {"columns": dict(loss.columns)} for loss in self.left_out]
        return {
            "read": self.read,
            "left_out": self.lost,
            "left_out_share": self.lost_share,
            "reasons": losses,
            "used": self.used,
            self.parts[0] or "with_outcome": self.observed,
            "words": self.words,
        }

    def by_use(self) -> list[tuple[str, int]]:
        """Return how rows were used, in words, with their numbers, which add up to all rows."""
        return [
            (f"In the fit: {self.parts[0] or 'selected, with an outcome'}", self.observed),
            (f"In the fit: {self.parts[1] or 'not selected'}", self.used - self.observed),
            *((f"Left out: {loss.label}", loss.rows) for loss in self.left_out),
        ]


def funnel_of(
    fit: Fit, counts: Mapping[str, int], missing: Mapping[str, int], outcome: str
) -> Funnel:
    """Return the funnel of a fit.

    Parameters
    ----------
    fit : Fit
    counts : mapping of str to int
        Rows by how they were used, or why they were left out; with their total.
    missing : mapping of str to int
        Rows that lack each column, of those left out for that.
    outcome : str
        Column of the outcome.
    """
    costly = tuple(sorted(missing.items(), key=lambda item: -item[1]))
    separates = fit.family.words.separates
    everyone = fit.family.sees_everyone
    reasons = _REASONS | (_OF_EVERYONE if everyone else {})
    left_out = [
        LeftOut(
            key,
            counts[key],
            reason.label.format(separates),
            (reason.one if counts[key] == 1 else reason.many).format(separates),
            tuple(column for column in costly if column[1]) if key == LACKING else (),
        )
        for key, reason in reasons.items()
        if counts.get(key)
    ]
    used = counts["selected"] + counts["unselected"]
    first, second = (words.lower() for words in fit.family.words.rows)
    parts = (first, second) if everyone else ("", "")
    return Funnel(counts["total"], tuple(left_out), used, counts["selected"], outcome, parts)


def share_words(funnel: Funnel) -> str:
    """Say which share of the rows was left out, such as 38%."""
    return percent(funnel.lost_share, 0)

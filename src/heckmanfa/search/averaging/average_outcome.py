"""What a fit keeps of an average: the form, and the weights of its assignments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from heckmanfa.search.averaging.members import Gathered, Members
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form

PROBABLE = 0.5
"""A feature with at least this BIC share is a prediction feature of an average."""

# Ends of intervals are then within 1% of half their width on average over rows, and 6% at worst.
_GROUPS = 24


@dataclass(frozen=True, eq=False)
class AverageOutcome:
    """The average over assignments behind the estimates of a fit."""

    choices: Choices
    """what the user allowed"""
    average: Average
    form: Form
    """the model with everything in it, from which all assignments follow"""
    selecting: Choices | None = None
    """what the user allowed in the selection equation, if both equations are searched"""
    two_step_chance: float | None = None
    """chance of the correction by two-step estimates of the same rows; None unless a linear outcome
    is averaged by maximum likelihood, which finds selection where errors are not normal"""

    def without_candidates(self) -> AverageOutcome:
        """Return what a small model file keeps: few leading assignments.

        The components, which predictions average over, stay.
        """
        return replace(self, average=self.average.with_few_leading())

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns that could predict in these rows."""
        return self.form.columns

    @cached_property
    def members(self) -> Members:
        """The assignments behind averages of functions, by own weights."""
        return self.average.members(self.form)

    @cached_property
    def groups(self) -> list[Gathered]:
        """Those assignments, taken together where they agree on what is most in doubt."""
        return self.members.groups(_GROUPS)

    @cached_property
    def interval_members(self) -> Members:
        """The same and, last, everything, by the weights of intervals."""
        return self.average.interval_members(self.form)

"""What a fit keeps of an average: the form, and the weights of its assignments."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form


@dataclass(frozen=True, eq=False)
class AverageOutcome:
    """The average over assignments behind the estimates of a fit."""

    choices: Choices
    """what the user allowed"""
    average: Average
    form: Form
    """the model with everything in it, from which all assignments follow"""

    def without_candidates(self) -> AverageOutcome:
        """Return what a small model file keeps: few leading assignments.

        The components, which predictions average over, stay.
        """
        return replace(self, average=self.average.with_few_leading())

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns that could predict in these rows."""
        return self.form.columns

    def members(self) -> Members:
        """Return the assignments that intervals use."""
        found = self.average
        return Members(self.form, found.component_states, found.component_weights)

"""Results of methods such as ``margins()``: they print as text, and as HTML in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from heckmanfa.errors import InputError
from heckmanfa.results.document import Finding, Section
from heckmanfa.results.render_html import render_notebook
from heckmanfa.results.render_text import render_text

BY_CLASSICAL = " by classical standard errors"
"""appended to classical tests if the model has other standard errors"""


class Report:
    """Base of the results that print themselves."""

    @abstractmethod
    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""

    def findings(self) -> list[Finding]:
        """Return the findings that it adds to the diagnostics of the model."""
        return []

    def __str__(self) -> str:
        """Return the text form."""
        return render_text(self.sections())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        blocks = (block for section in self.sections() for block in section.blocks())
        return render_notebook(blocks, "report")


def read_reports(include: Any) -> list[Report]:
    """Return one report or several as a list."""
    reports = [include] if isinstance(include, Report) else list(include)
    for report in reports:
        if not isinstance(report, Report):
            raise InputError(
                "include takes what bootstrap(), margins(), uncertainty_interval() and the other "
                f"methods return; got {type(report).__name__}"
            )
    return reports

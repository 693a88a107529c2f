"""Results of methods such as ``margins()``: they print as text, and as HTML in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from heckmanfa.errors import InputError
from heckmanfa.results.document import Finding, Part, Section
from heckmanfa.results.render_html import render_notebook
from heckmanfa.results.render_text import render_text

BY_CLASSICAL = " by classical standard errors"
"""appended to classical tests if the model has other standard errors"""


class Printed:
    """Base of the results that print themselves."""

    _kind: ClassVar[str]
    """class in HTML"""

    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """Return the contents, in reading order."""

    def __str__(self) -> str:
        """Return the text form."""
        return render_text(self.parts())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_notebook(self.parts(), self._kind)


class Report(Printed):
    """Base of the results that a summary can include."""

    _kind = "report"

    @abstractmethod
    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""

    def parts(self) -> Sequence[Part]:
        """Return the sections."""
        return self.sections()

    def findings(self) -> list[Finding]:
        """Return the findings that it adds to the diagnostics of the model."""
        return []


def read_reports(include: Any) -> list[Report]:
    """Return one report or several as a list."""
    several = isinstance(include, Iterable) and not isinstance(include, Report)
    reports = list(include) if several else [include]
    for report in reports:
        if not isinstance(report, Report):
            raise InputError(
                "include takes what bootstrap(), margins(), uncertainty_interval() and the other "
                f"methods return; got {type(report).__name__}"
            )
    return reports

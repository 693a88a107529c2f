"""Results of methods such as ``margins()``: they print as text, and as HTML in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.results.document import Part, Section
from heckmanfa.results.facts import UNTESTED, Fact
from heckmanfa.results.render_html import render_notebook
from heckmanfa.results.render_text import render_text
from heckmanfa.text.wording import capitalised

BY_CLASSICAL = " by classical standard errors"
"""appended to classical tests if the model has other standard errors"""


R = TypeVar("R", bound="Report")


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

    def findings(self) -> list[Fact]:
        """Return the facts that it adds to those of the model."""
        return []


@dataclass(frozen=True, repr=False, eq=False)
class Untested(Report):
    """Why a report could not be made, in its place."""

    of: type[Report]
    """the report"""
    key: str
    """which diagnostic it would have been"""
    name: str
    why: str

    def sections(self) -> list[Section]:
        """Return the reason."""
        return [Section(self.name, notes=(self.why,))]

    def findings(self) -> list[Fact]:
        """Return the reason as a line of the diagnostics."""
        return [Fact(self.key, "caution", "not known", self.why, self.name, case=UNTESTED)]


def report_or_why(
    of: type[R], key: str, name: str, make: Callable[..., R], *rows: Any, **options: Any
) -> R | Untested:
    """Make a report of a fit, or say why the data do not allow it."""
    try:
        return make(*rows, **options)
    except NotIdentifiedError as error:
        said = str(error).rstrip(".")
        return Untested(of, key, name, f"{capitalised(said)}.")


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

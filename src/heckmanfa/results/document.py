"""Documents: headings, paragraphs, facts, tables and notes, as plain frozen values.

Every report builds such values; `render_text`, `render_html`, `render_latex` and
`render_markdown` turn them into output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.text.printable import printable, shown
from heckmanfa.text.table import Column, Table
from heckmanfa.text.wording import number, p_value

if TYPE_CHECKING:
    import pandas as pd

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Heading:
    """A heading below the title of a page."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str
    kind: str = ""
    """its class in HTML"""


@dataclass(frozen=True)
class Facts:
    """Labels, each with a value."""

    pairs: Pairs
    is_number: bool = False
    """whether Markdown aligns the values as numbers"""


@dataclass(frozen=True)
class Notes:
    """A list of sentences."""

    items: tuple[str, ...]
    kind: str = ""
    """its class in HTML"""


@dataclass(frozen=True)
class Findings:
    """Lines of the diagnostics."""

    lines: tuple[tuple[str, str, str, str], ...]
    """name, value, verdict and meaning of each"""

    def blocks(self) -> list[Block]:
        """Return them as a table."""
        titles = ("diagnostic", "value", "verdict", "meaning")
        columns = tuple(Column(title, is_number=False) for title in titles)
        return [Table(columns, self.lines)]


@dataclass(frozen=True)
class Code:
    """A command to copy."""

    text: str


@dataclass(frozen=True)
class CodeTabs:
    """The same program in several languages, of which a page shows one at a time."""

    title: str
    programs: Pairs
    """the name of each language, and the code"""


@dataclass(frozen=True)
class RegressionTable:
    """The estimates of a model, laid out as econometricians expect.

    Text has rules between its parts, and LaTeX puts the facts under the estimates.
    """

    title: str
    facts: Pairs
    estimates: Table
    comparison: Table | None
    notes: tuple[str, ...]
    opening: str = ""
    """the answer in a few sentences, above the title"""

    def blocks(self) -> list[Block]:
        """Return the contents in reading order."""
        opening = [Paragraph(self.opening)] if self.opening else []
        others = [] if self.comparison is None else [self.comparison]
        notes = [Notes(self.notes)] if self.notes else []
        facts = Facts(self.facts, is_number=True)
        return [*opening, Heading(self.title), facts, self.estimates, *others, *notes]


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    title: str = ""
    facts: Pairs = ()
    table: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    def blocks(self) -> list[Block]:
        """Return the contents in reading order."""
        blocks: list[Block] = []
        if self.title:
            blocks.append(Heading(self.title))
        if self.facts:
            blocks.append(Facts(self.facts))
        if self.table is not None:
            blocks.append(table_of_frame(self.table))
        if self.notes:
            blocks.append(Notes(self.notes))
        return blocks


Block = Heading | Paragraph | Facts | Table | Notes
"""blocks that every renderer supports"""
Part = Section | RegressionTable | Findings
"""blocks of printed results; text and LaTeX lay out some of them as a whole"""
PageBlock = Block | Code | CodeTabs
"""blocks on the page of the report"""


def table_of_frame(frame: pd.DataFrame) -> Table:
    """Format the cells of a data frame."""
    columns, cells = [], []
    for name in frame.columns:
        values = list(frame[name])
        has_sets = any(isinstance(value, tuple) for value in values)
        is_text = has_sets or any(isinstance(value, str) for value in values)
        title = str(name).replace("_", " ")
        columns.append(Column(title, is_number=not is_text, is_long=has_sets))
        cells.append([_cell(value, is_p=name == "p_value") for value in values])
    return Table(tuple(columns), tuple(zip(*cells, strict=True)))


def _cell(value: Any, *, is_p: bool) -> str:
    if isinstance(value, tuple):
        return ", ".join(shown(part) for part in value) or "none"
    if isinstance(value, str):
        # A name is shortened if it is long; a sentence is not.
        return shown(value) if " " not in value else printable(value)
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return p_value(float(value)) if is_p else number(float(value), 5)
    return str(value)

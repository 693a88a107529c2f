"""P2, the chances: how much of the weight of all assignments holds each feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from heckmanfa.plots.picture import Picture, first_lines
from heckmanfa.plots.scene import Axis, Bar, Point, Row, Rows, Rule
from heckmanfa.text.chances import HIGH, LOW, NO_SIGN_BELOW, SURE_FROM
from heckmanfa.text.labels import label, said
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import cut
from heckmanfa.text.table import MOST_LINES, LegendItem, Table, lay_out
from heckmanfa.text.wording import chance_text, rest_text

ROW = 24.0
"""Height of a row, in px, as in the picture of assignments."""
# Room above the first one.
_LEAD = 4.0

MOST_ROWS = 30
FEWEST_ROWS = 5
"""With more features than the first, those without a sign that they predict are one line, after
the likeliest few."""

_BAR = 14.0 / ROW
# Characters of the alternative at most.
_ALT = 270
_ROW_INCHES, _MARGIN_INCHES = 0.17, 0.95


@dataclass(frozen=True)
class RoleRow:
    """A feature or group, its role, and the share of weight or of halves that holds it."""

    name: str
    role: str
    share: float
    """one for a feature that is always included"""
    is_forced: bool = False
    """whether it is always included"""

    @property
    def heading(self) -> str:
        """The role, above the rows that have it."""
        return self.role[:1].upper() + self.role[1:]


@dataclass(frozen=True)
class Shown:
    """The rows that pictures draw, and one line about the others."""

    rows: tuple[int, ...]
    """positions among all rows"""
    rest: str
    """empty if all are drawn"""


def shown_rows(rows: Sequence[RoleRow]) -> Shown:
    """Choose the rows that are drawn: all, or those of many likely enough to predict."""
    if len(rows) <= MOST_ROWS:
        return Shown(tuple(range(len(rows))), "")
    by_share = sorted(range(len(rows)), key=lambda place: -rows[place].share)
    n_likely = sum(row.share >= NO_SIGN_BELOW for row in rows)
    drawn = sorted(by_share[: min(max(n_likely, FEWEST_ROWS), MOST_ROWS)])
    rest = by_share[len(drawn) :]
    return Shown(tuple(drawn), rest_text(len(rest), rows[rest[0]].share, NO_SIGN_BELOW))


def role_inches(rows: Sequence[Row]) -> float:
    """Return the height of a figure with these rows and their headings."""
    heads = len({row.head for row in rows if row.head})
    return _MARGIN_INCHES + _ROW_INCHES * max(len(rows) + heads, 1)


@dataclass(frozen=True)
class ChanceRow(RoleRow):
    """The chance of a feature or group, in several ways."""

    least_squares: float = math.nan
    """without the correction for selection"""
    by_aic: float = math.nan
    by_ebic: float = math.nan


@dataclass(frozen=True)
class Chances(Picture):
    """How sure it is that each feature predicts, by roles."""

    kind: ClassVar[str] = "chances"
    does: ClassVar[str] = "predicts"
    """what the chances are about"""

    rows: tuple[ChanceRow, ...]
    """by role, then by chance; the picture draws those that matter, and the table holds all"""
    about: str = ""
    """what a feature that says nothing gets, and how the chances were found, in sentences"""
    halves: int = 0
    """in an honest search, how many halves chose; shares are then counts of them"""

    def _title(self) -> str:
        if self.halves:
            return "How often it was chosen to predict"
        return f"How sure: the chance that it {self.does}"

    def _look(self) -> str:
        if self.halves:
            return "Look for bars beyond the dashed line: most halves chose these features."
        what = self.does.replace("predicts", "predict").replace("drives", "drive")
        return f"Look for bars that reach the dashed line at {HIGH}: these features {what}."

    @property
    def has_least_squares(self) -> bool:
        """Whether there are chances without the correction for selection."""
        return any(not math.isnan(row.least_squares) for row in self.rows)

    @property
    def cuts(self) -> tuple[float, ...]:
        """Where the roles change."""
        return (0.5,) if self.halves else (NO_SIGN_BELOW, SURE_FROM)

    def value(self, row: ChanceRow) -> str:
        """Write how sure a feature is: a percentage, or a count of halves."""
        if row.is_forced:
            return "always"
        if self.halves:
            return f"{round(row.share * self.halves)} of {self.halves}"
        return chance_text(row.share)

    # Words. -----------------------------------------------------------------------------------

    def _legend(self) -> tuple[LegendItem, ...]:
        bar = LegendItem("halves that chose it" if self.halves else "this model", "bar", "this")
        diamond = LegendItem("least squares, no correction", "diamond", "ols")
        return (bar, diamond) if self.has_least_squares else (bar,)

    def _caption(self) -> str:
        lines = "Dashed line at half." if self.halves else f"Dashed lines at {LOW} and {HIGH}."
        rest = first_lines(len(self.rows), f"pictures().{self.kind}.rows")
        return " ".join(filter(None, (lines, self.about, rest)))

    def _alt(self) -> str:
        """Say which roles the features have, with the likeliest by name."""
        what = "how many halves chose each feature" if self.halves else "chances"
        kind = f"Bar chart of {what}"
        roles: dict[str, list[ChanceRow]] = {}
        for row in self.rows:
            roles.setdefault(row.role, []).append(row)
        by_role = []
        for role, rows in roles.items():
            first = rows[0]
            named = f"{cut(label(first.name), 24)} {self.value(first)}"
            few = f", likeliest {named}" if len(rows) > 1 else f", {named}"
            by_role.append(f"{role or 'features'}: {len(rows)}{few}")
        text = f"{kind}. {'; '.join(by_role)}."
        if len(text) > _ALT:
            counts = "; ".join(f"{role}: {len(rows)}" for role, rows in roles.items())
            text = f"{kind}. {counts}."
        return text

    def _columns(self) -> list[tuple[str, Any]]:
        """Return the columns of numbers: their titles, and how a row fills them."""
        if self.halves:
            return [("Chosen in halves", self.value)]
        columns: list[tuple[str, Any]] = [("Chance", self.value)]
        if self.has_least_squares:
            columns.append(
                ("Least squares, no correction", lambda row: chance_text(row.least_squares))
            )
        if any(not math.isnan(row.by_aic) for row in self.rows):
            columns.append(("By AIC weights", lambda row: chance_text(row.by_aic)))
        if any(not math.isnan(row.by_ebic) for row in self.rows):
            columns.append(("By EBIC weights", lambda row: chance_text(row.by_ebic)))
        return columns

    def _table(self) -> Table:
        columns = self._columns()
        lines = [
            (Name(row.name).key, row.role, *(fill(row) for _, fill in columns))
            for row in self.rows[:MOST_LINES]
        ]
        name = f"{self.kind.replace('_', '-')}-table"
        return lay_out(
            ["Feature", "Role"], [title for title, _ in columns], lines, self._title(), name
        )

    def _label(self, row: ChanceRow) -> str:
        """Return the words of a row's tooltip, a line each."""
        numbers = [(title, fill(row)) for title, fill in self._columns()]
        lines = [f"{said(row.name)}: {row.role}" if row.role else said(row.name)]
        lines += [f"{title}: {value}" for title, value in numbers if value]
        return "\n".join(lines)

    def _body(self) -> Rows:
        """Return a bar for each feature, under headings for their roles."""
        picked, half, rows = shown_rows(self.rows), _BAR / 2, []
        for row in (self.rows[place] for place in picked.rows):
            bar = Bar((0.0, 100 * row.share), (-half, half), "this")
            diamond = Point(100 * row.least_squares, 0.0, "ols", "diamond")
            words = self._label(row), row.name, self.value(row), row.heading
            rows.append(Row(label(row.name), (bar, diamond), *words))
        cuts = [100 * share for share in self.cuts]
        title = "share of the halves" if self.halves else f"chance that it {self.does}"
        printed = "% of the halves" if self.halves else f"{title}, %"
        ticks = tuple((share, f"{share:.0f}%") for share in sorted({*cuts, 50.0}))
        x = Axis(0.0, 100.0, title, printed=printed, ticks=ticks, grid=False)
        rules = [Rule(share, kind="line") for share in (50.0, 100.0)]
        rules += [Rule(share, kind="cut") for share in cuts]
        body = x, tuple(rows), ROW, role_inches(rows), (*rules, Rule(0.0)), _LEAD
        return Rows(*body, rest=picked.rest, in_columns=True)


@dataclass(frozen=True)
class SelectionChances(Chances):
    """How sure it is that each feature drives selection, if both equations were searched."""

    kind: ClassVar[str] = "selection_chances"
    does: ClassVar[str] = "drives selection"

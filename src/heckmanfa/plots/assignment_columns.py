"""P3, the assignments: a column for each of the heaviest, as wide as its weight."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.plots.chance_bars import ROW, RoleRow, role_inches, shown_rows
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.scene import Axis, Bar, ColumnTip, Mark, Row, Rows, Runs
from heckmanfa.text.labels import label, said, said_all
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import cut
from heckmanfa.text.table import MOST_LINES, LegendItem, Table, lay_out
from heckmanfa.text.wording import (
    count,
    listed,
    p_value,
    plural,
    sets_count,
    share_text,
    some,
    with_minus,
)

MOST_COLUMNS = 400
SHOWN_WEIGHT = 0.9
"""Columns are drawn until they carry this weight, or are so many."""
MOST_DRAWS = 200
"""Columns of a draw in proportion to weight."""

POSITIVE, NEGATIVE, ABSENT, MIXED = 1, -1, 0, 2
"""What a cell says: the sign of the coefficient, that the feature is not in, or that the columns of
a group have both signs."""

_CELL = 20.0 / ROW
# Room above the first row for the numbers of columns, in px.
_ROOM = 22.0
# Lighter columns are too narrow to be pointed at, unless they are among the first.
_TOLD_WEIGHT, _TOLD = 0.005, 10
_NUMBERED = 3
_CLASSES = {POSITIVE: "pos", NEGATIVE: "neg", MIXED: "all"}
_SIGNS = {
    frozenset(): "",
    frozenset({POSITIVE}): "+",
    frozenset({NEGATIVE}): "\N{MINUS SIGN}",
}


def n_drawn(weight: Floats) -> int:
    """Return how many of the heaviest assignments are drawn, of weights in falling order."""
    carried = np.cumsum(weight)
    enough = int(np.searchsorted(carried, SHOWN_WEIGHT - 1e-12)) + 1
    return min(enough, len(weight), MOST_COLUMNS)


@dataclass(frozen=True, eq=False)
class AssignmentColumns(Picture):
    """The heaviest assignments, best first, and which features each holds."""

    kind: ClassVar[str] = "assignments"

    rows: tuple[RoleRow, ...]
    """features and groups in the order of the picture of chances"""
    weight: Floats
    """(N,) of the assignments that are drawn, in falling order"""
    cells: NDArray[np.int8]
    """(rows, N) what each assignment says of each feature"""
    bic: Floats
    """(N,)"""
    rho: Floats
    """(N,)"""
    imr_p: Floats
    """(N,) p-value of the coefficient of lambda; like BIC, NaN where it is not known"""
    n_others: int
    """assignments that are not drawn"""
    n_half: int
    """how many of the heaviest carry half of the weight"""
    weights: str = "BIC"
    """by which criterion assignments are weighed and ordered"""
    is_sampled: bool = False
    """whether a sampler found the assignments, so that there may be more"""
    is_draw: bool = False
    """whether columns are drawn in proportion to weight, since none carries much"""
    best: float = math.nan
    """weight of the heaviest assignment, if columns are drawn"""
    halves: int = 0
    """in an honest search, how many halves chose; weights are then shares of them"""

    @property
    def n(self) -> int:
        """How many assignments are drawn."""
        return len(self.weight)

    @cached_property
    def edges(self) -> Floats:
        """(N + 1,) where columns begin and end, as shares of all weight."""
        return np.asarray(np.minimum(np.concatenate([[0.0], np.cumsum(self.weight)]), 1.0))

    @property
    def carried(self) -> float:
        """Weight of the assignments that are drawn."""
        return float(self.edges[-1])

    @property
    def n_told(self) -> int:
        """How many of the assignments have numbers of their own; none of a draw."""
        if self.is_draw:
            return 0
        return max(int(np.count_nonzero(self.weight >= _TOLD_WEIGHT)), min(_TOLD, self.n))

    def sign(self, place: int) -> str:
        """Return the sign of a feature in what is drawn; both where it turns."""
        signs = frozenset(int(cell) for cell in np.unique(self.cells[place])) - {ABSENT}
        return _SIGNS.get(signs, "±")

    def members(self, column: int) -> list[str]:
        """Name the features of an assignment."""
        return [self.rows[int(place)].name for place in np.flatnonzero(self.cells[:, column])]

    # Words. -----------------------------------------------------------------------------------

    def _legend(self) -> tuple[LegendItem, ...]:
        legend = [
            LegendItem("more goes with more", "bar", "pos"),
            LegendItem("with less", "bar", "neg"),
        ]
        if np.any(self.cells == MIXED):
            legend.append(LegendItem("both, by level", "bar", "all"))
        legend.append(LegendItem("not in", "bar", "absent"))
        if self._rest():
            legend.append(LegendItem(self._rest(), "hatch", ""))
        return tuple(legend)

    def _title(self) -> str:
        if self.halves:
            return "What halves chose, each as wide as its share"
        if self.is_draw:
            return "A draw of assignments, by their weight"
        return "The best assignments, each as wide as its weight"

    def _look(self) -> str:
        return "Look for features that run through from left to right: all good sets hold them."

    @property
    def _of_all(self) -> str:
        return "of what the halves chose" if self.halves else "of the weight"

    def _rest(self) -> str:
        """Say what the hatched part is; empty if nothing is left."""
        if self.carried > 1.0 - 1e-9:
            return ""
        return plural(self.n_others, "other") if self.n_others else "others, not found"

    def _alt(self) -> str:
        if not self.n:
            return "Columns for assignments, of which none has weight."
        steady = sum(bool(np.all(row != ABSENT)) for row in self.cells)
        in_all = f"In every column: {plural(steady, 'feature')}."
        if self.is_draw:
            return f"{plural(self.n, 'column')} for assignments drawn by weight. {in_all}"
        best = some([cut(label(name), 24) for name in self.members(0)], 4) or "no feature"
        drawn = f"{plural(self.n, 'column')} for assignments, {share_text(self.carried)}"
        return (
            f"{drawn} {self._of_all}. "
            f"The first holds {best}: {share_text(float(self.weight[0]))}. {self._half()}. {in_all}"
        )

    def _half(self) -> str:
        noun = "assignment" if self.n_half == 1 else "assignments"
        many = f"{sets_count(self.n_half, sampled=self.is_sampled)} {noun}"
        verb = "makes up" if self.n_half == 1 else "make up"
        return f"{many[0].upper()}{many[1:]} {verb} half {self._of_all}"

    def _caption(self) -> str:
        sure = "all halves chose" if self.halves else "predicts for sure"
        text = (
            f"A column is an assignment; a feature that {sure} runs through from left to right. "
            f"{self._numbered()}At the right its sign: ± where it turns. {self._half()}"
        )
        if self.is_draw:
            text += (
                f", and the heaviest has {share_text(self.best)}: no assignment stands out, so "
                f"{count(self.n)} are drawn in proportion to their weight."
            )
        else:
            verb = "makes" if self.n == 1 else "make"
            text += f", {count(self.n)} {verb} up {share_text(self.carried)}."
            if self.is_sampled:
                text += " A sampler found these assignments; there may be heavier ones."
        if self.weights != "BIC":
            text += f" They are weighed by {self.weights} here."
        return text

    def _numbered(self) -> str:
        """Say what the numbers above the columns are; nothing without any."""
        ranks = ("the best", "the second best", "the third best")[: min(self.n_told, _NUMBERED)]
        if not ranks:
            return ""
        are = [f"{number} is {rank}" for number, rank in enumerate(ranks, start=1)]
        return f"Above the columns, {listed(are)}. "

    def _table(self) -> Table:
        lines = [
            (Name(row.name).key, row.role, self.sign(place), *self._held(place))
            for place, row in enumerate(self.rows[:MOST_LINES])
        ]
        title = self._title()
        caption = f"Features in the columns: {title[0].lower()}{title[1:]}"
        shares = [f"Drawn {how}" for how in self._ways]
        return lay_out(["Feature", "Role", "Sign"], shares, lines, caption, "columns-table")

    @cached_property
    def _ways(self) -> dict[str, int]:
        """How a feature can be held, and what cells say so."""
        ways = {"with more": POSITIVE, "with less": NEGATIVE, "with both": MIXED}
        return ways if np.any(self.cells == MIXED) else dict(list(ways.items())[:2])

    def _held(self, place: int) -> list[str]:
        """Return the weight of the assignments that hold a feature, by sign."""
        row = self.cells[place]
        return [share_text(float(self.weight[row == cell].sum())) for cell in self._ways.values()]

    def _numbers(self, column: int) -> dict[str, str]:
        """Return what is known of an assignment, by name."""
        numbers = {
            "Share" if self.halves else "Weight": share_text(float(self.weight[column])),
            "BIC": with_minus(f"{self.bic[column]:,.2f}"),
            "rho": with_minus(f"{self.rho[column]:z.2f}"),
            "p of lambda": p_value(float(self.imr_p[column])),
        }
        unknown = {"BIC": self.bic, "rho": self.rho, "p of lambda": self.imr_p}
        for name, values in unknown.items():
            if math.isnan(values[column]):
                numbers[name] = ""
            if np.isnan(values).all():
                del numbers[name]
        return numbers

    def _more(self) -> tuple[Table, ...]:
        if not self.n_told:
            return ()
        numbers = [self._numbers(column) for column in range(self.n_told)]
        lines = [
            (str(column + 1), listed(self.members(column)) or "none", *known.values())
            for column, known in enumerate(numbers)
        ]
        caption = self._title()
        if self.n > self.n_told:
            least = share_text(_TOLD_WEIGHT)
            caption += f": those drawn beyond these {self.n_told} have less than {least} each"
        titles = ["Number", "Features"], [*numbers[0]]
        return (lay_out(*titles, lines, caption, "assignments-table"),)

    def _label(self, place: int) -> str:
        """Return the words of a row's tooltip, a line each."""
        row = self.rows[place]
        lines = [f"{said(row.name)}: {row.role}" if row.role else said(row.name)]
        lines += [
            f"drawn {how}: {share} {self._of_all}"
            for how, share in zip(self._ways, self._held(place), strict=True)
        ]
        return "\n".join(lines)

    def _column_label(self, column: int) -> str:
        numbers = [f"{name} {value}" for name, value in self._numbers(column).items() if value]
        names = some(said_all(self.members(column))) or "no feature"
        lines = [f"Number {column + 1}: {names}", ", ".join(numbers[:2]), ", ".join(numbers[2:])]
        return "\n".join(line for line in lines if line)

    @property
    def _axis_title(self) -> str:
        if self.is_draw:
            return "share of the assignments drawn"
        what = "share of the halves" if self.halves else "weight of the assignments"
        return f"{what}, the best at the left"

    def _body(self) -> Rows:
        """Return a row of cells for each feature, and a column for each assignment."""
        picked, title, edges = shown_rows(self.rows), self._axis_title, self._edges
        ticks = tuple((share, f"{share}%") for share in (0, 25, 50, 75, 100))
        x = Axis(*(0.0, 100.0, title), printed=f"{title}, %", ticks=ticks, grid=False, strokes=True)
        columns = tuple(
            ColumnTip(
                (edges[column], edges[column + 1]),
                self._column_label(column),
                str(column + 1) * (column < _NUMBERED),
            )
            for column in range(self.n_told)
        )
        hatched = (edges[-1], 100.0) if self._rest() else None
        rows = tuple(map(self._row, picked.rows))
        body = x, rows, ROW, role_inches(rows), (), _ROOM
        return Rows(*body, rest=picked.rest, hatched=hatched, columns=columns)

    @property
    def _edges(self) -> list[float]:
        """Where columns begin and end, in percent."""
        return [100 * edge for edge in self.edges.tolist()]

    def _row(self, place: int) -> Row:
        row, edges = self.rows[place], self._edges
        marks: list[Mark] = [Bar((0.0, edges[-1]), (-_CELL / 2, _CELL / 2), "absent")]
        for sign, color in _CLASSES.items():
            runs = _runs(self.cells[place] == sign)
            marks.append(Runs(tuple((edges[first], edges[last]) for first, last in runs), color))
        words = self._label(place), row.name, self.sign(place), row.heading
        return Row(label(row.name), tuple(marks), *words)


def _runs(held: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Return first and last (exclusive) of neighbours that are held."""
    steps = np.diff(np.concatenate([[0], held.astype(np.int8), [0]]))
    yield from zip(
        np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True
    )

"""P3, the assignments: a column for each of the heaviest, as wide as its weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.plots._canvas import canvas
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.role_rows import (
    ROW,
    RoleRow,
    Shown,
    draw_heads,
    label_role_rows,
    label_width,
    lay_out_rows,
    role_places,
    shown_rows,
)
from heckmanfa.plots.svg.drawing import Drawing, Scale, Tick, cut, label_cells
from heckmanfa.text.numerals import with_minus
from heckmanfa.text.passage import Name
from heckmanfa.text.printable import shown
from heckmanfa.text.table import MOST_LINES, Column, LegendItem, PictureText, Table
from heckmanfa.text.wording import count, listed, p_value, plural, sets_count, share_text, some

MOST_COLUMNS = 400
SHOWN_WEIGHT = 0.9
"""Columns are drawn until they carry this weight, or are so many."""
MOST_DRAWS = 200
"""Columns of a draw in proportion to weight."""

POSITIVE, NEGATIVE, ABSENT, MIXED = 1, -1, 0, 2
"""What a cell says: the sign of the coefficient, that the feature is not in, or that the columns of
a group have both signs."""

_BELOW = 44.0
_RIGHT = 26.0
_CELL = 20.0
# Lighter columns are too narrow to be pointed at, unless they are among the first.
_TOLD_WEIGHT, _TOLD = 0.005, 10
_NUMBERED = 3
# Changes between neighbouring cells beyond which the drawing is coarser.
_MANY_CHANGES = 2000
_HATCH = 8.0
_LEAST_APART = 14.0
_CLASSES = {POSITIVE: "pos", NEGATIVE: "neg", MIXED: "all"}
_SIGNS = {
    frozenset(): "",
    frozenset({POSITIVE}): "+",
    frozenset({NEGATIVE}): "\N{MINUS SIGN}",
}
_ROW_INCHES, _MARGIN_INCHES = 0.17, 0.95


def n_drawn(weight: Floats) -> int:
    """Return how many of the heaviest assignments are drawn, of weights in falling order."""
    carried = np.cumsum(weight)
    enough = int(np.searchsorted(carried, SHOWN_WEIGHT - 1e-12)) + 1
    return min(enough, len(weight), MOST_COLUMNS)


@dataclass(frozen=True, eq=False)
class AssignmentColumns:
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

    def text(self) -> PictureText:
        """Return the words around the picture, and its numbers as tables."""
        used = {int(cell) for cell in np.unique(self.cells)}
        legend = [
            LegendItem("more goes with more", "bar", "pos"),
            LegendItem("with less", "bar", "neg"),
        ]
        if MIXED in used:
            legend.append(LegendItem("both, by level", "bar", "all"))
        legend.append(LegendItem("not in", "bar", "absent"))
        if self._rest():
            legend.append(LegendItem(self._rest(), "hatch", ""))
        return PictureText(
            title=self._title,
            alt=self._alt(),
            caption=self._caption(),
            table=self._features(),
            legend=tuple(legend),
            more=(self._assignments(),) if self.n_told else (),
        )

    @property
    def _title(self) -> str:
        if self.halves:
            return "What halves chose, each as wide as its share"
        if self.is_draw:
            return "A draw of assignments, by their weight"
        return "The best assignments, each as wide as its weight"

    @property
    def _of_all(self) -> str:
        return "of what the halves chose" if self.halves else "of the weight"

    def _rest(self) -> str:
        """Say what the hatched part is; empty if nothing is left."""
        if self.carried > 1.0 - 1e-9:
            return ""
        return plural(self.n_others, "other") if self.n_others else "others, not found"

    def _alt(self) -> str:
        """Say what the picture shows, with the number that matters most."""
        if not self.n:
            return "Columns for assignments, of which none has weight."
        steady = sum(bool(np.all(row != ABSENT)) for row in self.cells)
        in_all = f"In every column: {plural(steady, 'feature')}. All numbers are in the table."
        if self.is_draw:
            return f"{plural(self.n, 'column')} for assignments drawn by weight. {in_all}"
        best = some([cut(name, 24) for name in self.members(0)], 4) or "no feature"
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
            f"At the right its sign: ± where it turns. {self._half()}"
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

    def _features(self) -> Table:
        columns = (
            Column("Feature", is_number=False, is_feature=True),
            Column("Role", is_number=False),
            Column("Sign", is_number=False),
            *(Column(f"Drawn {how}") for how in self._ways),
        )
        lines = [
            (Name(row.name).key, row.role, self.sign(place), *self._held(place))
            for place, row in enumerate(self.rows[:MOST_LINES])
        ]
        caption = f"Features in the columns: {self._title[0].lower()}{self._title[1:]}"
        return Table(columns, tuple(lines), caption, "columns-table")

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
        found = {
            "Share" if self.halves else "Weight": share_text(float(self.weight[column])),
            "BIC": with_minus(f"{self.bic[column]:,.2f}"),
            "rho": with_minus(f"{self.rho[column]:z.2f}"),
            "p of lambda": p_value(float(self.imr_p[column])),
        }
        unknown = {"BIC": self.bic, "rho": self.rho, "p of lambda": self.imr_p}
        for name, values in unknown.items():
            if math.isnan(values[column]):
                found[name] = ""
            if np.isnan(values).all():
                del found[name]
        return found

    def _assignments(self) -> Table:
        numbers = [self._numbers(column) for column in range(self.n_told)]
        columns = (
            Column("Number", is_number=False),
            Column("Features", is_number=False),
            *(Column(name) for name in (numbers[0] if numbers else {})),
        )
        lines = [
            (str(column + 1), listed(self.members(column)) or "none", *numbers[column].values())
            for column in range(self.n_told)
        ]
        caption = self._title
        if self.n > self.n_told:
            least = share_text(_TOLD_WEIGHT)
            caption += f": those drawn beyond these {self.n_told} have less than {least} each"
        return Table(columns, tuple(lines), caption, "assignments-table")

    def _label(self, place: int) -> str:
        """Return the words of a row's tooltip, a line each."""
        row = self.rows[place]
        lines = [f"{shown(row.name)}: {row.role}" if row.role else shown(row.name)]
        lines += [
            f"drawn {how}: {share} {self._of_all}"
            for how, share in zip(self._ways, self._held(place), strict=True)
        ]
        return "\n".join(lines)

    def _column_label(self, column: int) -> str:
        numbers = [f"{name} {value}" for name, value in self._numbers(column).items() if value]
        names = some(self.members(column)) or "no feature"
        lines = [f"Number {column + 1}: {names}", ", ".join(numbers[:2]), ", ".join(numbers[2:])]
        return "\n".join(line for line in lines if line)

    # Drawings. --------------------------------------------------------------------------------

    @property
    def _axis_title(self) -> str:
        if self.is_draw:
            return "share of the assignments drawn"
        what = "share of the halves" if self.halves else "weight of the assignments"
        return f"{what}, the best at the left"

    def svg(self, width: int) -> str:
        """Draw the picture as SVG, this many px wide."""
        picked = shown_rows(self.rows)
        layout = lay_out_rows(self.rows, picked)
        left = label_width([self.rows[place].name for place in picked.rows], width)
        axis = Scale(0.0, 1.0, left, width - _RIGHT)
        at = self._places(axis)
        drawn = Drawing(width, layout.bottom + _BELOW, self._alt())
        draw_heads(drawn, layout, picked.rest)
        for place, top in zip(picked.rows, layout.tops, strict=True):
            self._draw_row(drawn, place, top, left, at, width)
        if layout.tops:
            start = at[-1] / 10.0
            for top, bottom in layout.blocks:
                wide, high = axis.end - start, bottom - top - 4.0
                drawn.hatch(start, top + 2.0, wide, high, step=_HATCH)
            self._draw_columns(drawn, at, layout.tops[0], layout.tops[-1] + ROW)
        ticks = [Tick(share, axis(share), f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)]
        end = layout.tops[-1] + ROW if layout.tops else layout.bottom
        for tick in ticks:
            drawn.line(tick.at, end, tick.at, end + 4.0, "axis")
        title = self._axis_title
        drawn.x_axis(axis, end, layout.bottom, ticks, title, grid=False, zero=False)
        return drawn.svg()

    def _places(self, axis: Scale) -> list[int]:
        """Return where columns begin and end, in tenths of a px.

        Neighbours meet whatever they are rounded to: to half a px if there is much to draw.
        """
        changes = int(np.count_nonzero(np.diff(self.cells, axis=1)))
        step = 5 if changes > _MANY_CHANGES else 1
        return [step * round(10.0 * axis(float(edge)) / step) for edge in self.edges]

    def _draw_row(
        self, drawn: Drawing, place: int, top: float, left: float, at: Sequence[int], width: int
    ) -> None:
        row, middle = self.rows[place], top + ROW / 2
        with drawn.group("row", data_f=row.name, label=self._label(place)):
            drawn.hit(top, ROW)
            name = cut(row.name, label_cells(width))
            drawn.text(left - 10, middle + 4.5, name, "lab", "end")
            drawn.rect(left, middle - _CELL / 2, at[-1] / 10.0 - left, _CELL, "absent")
            for sign, cls in _CLASSES.items():
                d = _strokes(self.cells[place] == sign, at, middle)
                drawn.path(d, f"cell {cls}")
            drawn.text(width - 10, middle + 4.5, self.sign(place), "value", "middle")

    def _draw_columns(self, drawn: Drawing, at: Sequence[int], top: float, bottom: float) -> None:
        """Draw what answers to a pointer over a column, and the numbers of the first ones."""
        written = -math.inf
        for column in range(self.n_told):
            x, wide = at[column] / 10.0, (at[column + 1] - at[column]) / 10.0
            with drawn.group("columns", title=self._column_label(column)):
                drawn.rect(x, top - 1.0, wide, bottom - top + 2.0, "column")
                middle = x + wide / 2
                if column < _NUMBERED and middle - written >= _LEAST_APART:
                    drawn.text(middle, top - 30.0, column + 1, "tick", "middle")
                    written = middle

    def draw(self, ax: Any = None) -> Any:
        """Draw the picture with Matplotlib; return its Axes."""
        picked: Shown = shown_rows(self.rows)
        rows = [self.rows[place] for place in picked.rows]
        places, heads = role_places(rows)
        marks: dict[str, Any] = {}
        words = {POSITIVE: "more goes with more", NEGATIVE: "with less", MIXED: "both, by level"}
        with canvas(ax, _MARGIN_INCHES + _ROW_INCHES * (max(places, default=0) + 1)) as drawn:
            (panel,) = drawn.axes
            for place, y in zip(picked.rows, places, strict=True):
                absent = panel.barh(
                    y, 100 * self.carried, height=0.82, color=LIGHT["absent"], zorder=1
                )
                marks.setdefault("not in", absent)
                for sign, cls in _CLASSES.items():
                    runs = [
                        (100 * self.edges[first], 100 * (self.edges[last] - self.edges[first]))
                        for first, last in _runs(self.cells[place] == sign)
                    ]
                    if runs:
                        band = (y - 0.41, 0.82)
                        bars = panel.broken_barh(
                            runs, band, color=LIGHT[cls], linewidth=0, zorder=2
                        )
                        marks.setdefault(words[sign], bars)
                panel.text(
                    1.02, y, self.sign(place), va="center", transform=panel.get_yaxis_transform()
                )
            rest = self._rest()
            for first, last in _blocks(places) if rest else ():
                marks[rest] = panel.barh(
                    (first + last) / 2,
                    100 * (1.0 - self.carried),
                    left=100 * self.carried,
                    height=last - first + 0.82,
                    facecolor="none",
                    edgecolor=LIGHT["muted"],
                    hatch="////",
                    linewidth=0.0,
                    zorder=1,
                )
            label_role_rows(drawn, rows, places, heads)
            panel.set_xlim(0, 100)
            panel.set_xlabel(f"{self._axis_title}, %")
            if picked.rest:
                panel.set_title(picked.rest, loc="left")
            drawn.legend(
                {name: marks[name] for name in (*words.values(), "not in", rest) if name in marks}
            )
        return panel


def _runs(held: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Return first and last (exclusive) of neighbours that are held."""
    steps = np.diff(np.concatenate([[0], held.astype(np.int8), [0]]))
    yield from zip(
        np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True
    )


def _blocks(places: Sequence[float]) -> list[tuple[float, float]]:
    """Return first and last of places without a free one between them."""
    blocks: list[tuple[float, float]] = []
    for place in places:
        if blocks and place - blocks[-1][1] < 1.5:
            blocks[-1] = (blocks[-1][0], place)
        else:
            blocks.append((place, place))
    return blocks


def _strokes(held: NDArray[np.bool_], at: Sequence[int], y: float) -> str:
    """Write the cells of a row as strokes that are as thick as a cell is high."""
    parts: list[str] = []
    here = 0
    for first, last in _runs(held):
        start, end = at[first], at[last]
        if start == end:
            continue
        move = f"m{_tenths(start - here)} 0" if parts else f"M{_tenths(start)} {y:g}"
        parts.append(f"{move}h{_tenths(end - start)}")
        here = end
    return "".join(parts)


def _tenths(value: int) -> str:
    whole, rest = divmod(value, 10)
    return f"{whole}.{rest}" if rest else str(whole)

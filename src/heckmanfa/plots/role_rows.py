"""Rows of features under headings for their roles, which two pictures share side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from heckmanfa.plots._canvas import Canvas, label_of
from heckmanfa.plots.palette import LIGHT
from heckmanfa.plots.svg.drawing import Drawing, cut, label_cells, label_px
from heckmanfa.text.chances import NO_SIGN_BELOW
from heckmanfa.text.wording import rest_text

ROW, HEAD = 24.0, 26.0
"""Heights of a row and of a heading, in px."""

BAR = 14.0
"""Height of what a row draws."""

MOST_ROWS = 30
FEWEST_ROWS = 5
"""With more features than the first, those without a sign that they predict are one line, after
the likeliest few."""

TOP = 22.0
"""Where the rows begin, below the numbers of columns."""


@dataclass(frozen=True)
class RoleRow:
    """A feature or group, its role, and the share of weight or of halves that holds it."""

    name: str
    role: str
    share: float
    """one for a feature that is always included"""
    is_forced: bool = False
    """whether it is always included"""


@dataclass(frozen=True)
class Shown:
    """The rows that pictures draw, and one line about the others."""

    rows: tuple[int, ...]
    """positions among all rows"""
    rest: str
    """empty if all are drawn"""


@dataclass(frozen=True)
class Layout:
    """Where rows and headings are, in px from the top."""

    heads: tuple[tuple[str, float], ...]
    """words of each heading, and the top of its line"""
    tops: tuple[float, ...]
    """top of each row that is drawn"""
    bottom: float

    @property
    def blocks(self) -> tuple[tuple[float, float], ...]:
        """Top and bottom of rows without a heading between them."""
        blocks: list[tuple[float, float]] = []
        for top in self.tops:
            if blocks and abs(blocks[-1][1] - top) < 0.5:
                blocks[-1] = (blocks[-1][0], top + ROW)
            else:
                blocks.append((top, top + ROW))
        return tuple(blocks)


def shown_rows(rows: Sequence[RoleRow]) -> Shown:
    """Choose the rows that are drawn: all, or those of many likely enough to predict."""
    if len(rows) <= MOST_ROWS:
        return Shown(tuple(range(len(rows))), "")
    by_share = sorted(range(len(rows)), key=lambda place: -rows[place].share)
    n_likely = sum(row.share >= NO_SIGN_BELOW for row in rows)
    drawn = sorted(by_share[: min(max(n_likely, FEWEST_ROWS), MOST_ROWS)])
    rest = by_share[len(drawn) :]
    return Shown(tuple(drawn), rest_text(len(rest), rows[rest[0]].share, NO_SIGN_BELOW))


def lay_out_rows(rows: Sequence[RoleRow], shown: Shown) -> Layout:
    """Place the rows that are drawn, under a heading for each role."""
    heads, tops, y = [], [], TOP
    for role, members in groupby((rows[place] for place in shown.rows), key=lambda row: row.role):
        if role:
            heads.append((role[:1].upper() + role[1:], y))
            y += HEAD
        for _ in members:
            tops.append(y)
            y += ROW
    return Layout(tuple(heads), tuple(tops), y + (ROW if shown.rest else 0.0))


def label_width(names: Sequence[str], width: int) -> float:
    """Return the room that names need at the left, in px."""
    longest = max((label_px(cut(name, label_cells(width))) for name in names), default=0.0)
    return max(longest + 12.0, 60.0)


def draw_heads(drawn: Drawing, layout: Layout, rest: str) -> None:
    """Write the headings, and the line about features that are not drawn."""
    for words, top in layout.heads:
        drawn.text(0.0, top + 18.0, words, "head")
    if rest:
        drawn.text(0.0, layout.bottom - 8.0, rest, "sub")


def role_places(rows: Sequence[RoleRow]) -> tuple[list[float], list[tuple[str, float]]]:
    """Return the places of rows on an axis, with a free place for the heading of each role."""
    places: list[float] = []
    heads: list[tuple[str, float]] = []
    place, role = 0.0, None
    for row in rows:
        if row.role != role and row.role:
            heads.append((row.role[:1].upper() + row.role[1:], place))
            place += 1
        role = row.role
        places.append(place)
        place += 1
    return places, heads


def label_role_rows(
    drawn: Canvas,
    rows: Sequence[RoleRow],
    places: Sequence[float],
    heads: Sequence[tuple[str, float]],
) -> None:
    """Name rows and headings along the y axis of Axes."""
    (panel,) = drawn.axes
    panel.set_yticks(list(places), [label_of(cut(row.name, 24)) for row in rows])
    panel.tick_params(axis="y", length=0)
    last = max(places, default=0.0)
    panel.set_ylim(last + 0.6, -0.6)
    for words, place in heads:
        # Beside long names, only the whole width of a figure has room for a heading.
        x = drawn.at_left(panel) if drawn.is_new else panel.get_yaxis_transform()
        panel.text(
            0.01,
            place,
            words,
            va="center",
            color=LIGHT["muted"],
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            transform=x,
            in_layout=not drawn.is_new,
        )

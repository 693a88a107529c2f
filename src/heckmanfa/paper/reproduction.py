"""A table as a list of rows, and the reproduced table with our figures beside the printed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from heckmanfa.paper.protocol import Dataset

COLUMNS = ["part", "dataset", "row", "quantity", "ours", "printed", "spread", "status", "note"]
_DIGITS = 4


def _silent(what: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Options:
    """How much to run."""

    quick: bool = False
    """run only what is deterministic"""
    as_published: bool = False
    """imitate the published run's underflow of lambda and lost sign"""
    seeds: int = 5
    """number of runs of experiments that depend on a seed"""
    splits: int = 20
    """number of random splits, which the paper does not have"""
    ru: bool = True
    """whether to run Rockafellar-Uryasev regression, which needs Torch"""
    say: Callable[[str], None] = _silent
    """called with a description of what runs next"""


@dataclass(frozen=True)
class Figure:
    """One figure that an experiment found."""

    quantity: str
    value: float
    spread: float | None = None
    """standard deviation between runs, unless the note says otherwise"""
    note: str = ""
    is_time: bool = False
    """whether the figure depends on the machine"""


@dataclass(frozen=True)
class Reason:
    """Why a figure differs from the printed one, and what it must be instead."""

    value: float
    note: str


@dataclass(frozen=True)
class Row:
    """One row of a table: an experiment on a data set, and what the paper prints for it."""

    dataset: Dataset
    label: str
    experiment: Callable[[Dataset, Options], Iterable[Figure]]
    printed: Mapping[str, float] = field(default_factory=dict)
    """the printed figure of each quantity; the paper does not have the other quantities"""
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    """quantities whose printed figure is known to be something else"""
    reasons_as_published: Mapping[str, Reason] = field(default_factory=dict)
    """the same if the published run is imitated"""
    deterministic: bool = False
    """whether all printed digits must match"""


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper; call it with `Options` to reproduce it.

    The status of a row of the data frame is "match" or "OFF" for what is deterministic, to the
    printed digits; "differs" for what is known to differ, with the reason as a note; "random" and
    "time" for what depends on seeds or machines; "beyond" for what the paper does not have.
    """

    title: str
    rows: tuple[Row, ...]

    @property
    def is_printed(self) -> bool:
        """Whether the paper has any of the table's figures."""
        return any(row.printed for row in self.rows)

    @property
    def is_deterministic(self) -> bool:
        """Whether any row depends on neither a seed nor a machine."""
        return any(row.deterministic for row in self.rows)

    def __call__(self, options: Options | None = None) -> pd.DataFrame:
        """Run the experiments; return one row per quantity, with our figure and the printed one."""
        options = Options() if options is None else options
        rows = [row for row in self.rows if row.deterministic or not options.quick]
        records = [record for row in rows for record in _records(row, options)]
        frame = pd.DataFrame(records, columns=COLUMNS)
        for name in ("ours", "printed", "spread"):
            frame[name] = pd.to_numeric(frame[name])
        return frame


def _records(row: Row, options: Options) -> Iterator[tuple[object, ...]]:
    """Run the experiment of a row, and put its figures beside the printed ones."""

    def say(what: str) -> None:
        options.say(f"{row.dataset.name}: {row.label}, {what}")

    reasons = row.reasons_as_published if options.as_published else row.reasons
    for figure in row.experiment(row.dataset, replace(options, say=say)):
        printed = row.printed.get(figure.quantity)
        reason = reasons.get(figure.quantity)
        yield (
            "beyond" if printed is None else "paper",
            row.dataset.name,
            row.label,
            figure.quantity,
            figure.value,
            printed,
            figure.spread,
            _status(row, figure, printed, reason),
            figure.note if reason is None else reason.note,
        )


def _status(row: Row, figure: Figure, printed: float | None, reason: Reason | None) -> str:
    if printed is None:
        return "beyond"
    if not row.deterministic:
        return "time" if figure.is_time else "random"
    expected = printed if reason is None else reason.value
    if round(figure.value, _DIGITS) != round(expected, _DIGITS):
        return "OFF"
    return "match" if expected == printed else "differs"

"""What help says about an option: its words, its group, and whether it is one of every day."""

from __future__ import annotations

from dataclasses import dataclass

TABLE, OUTCOME, FEATURES, SEARCH = "Table", "Outcome", "Features", "Search"
MODEL, READING = "Model", "Reading the table"
WORDS = "Words for readers"
COMPARE, PREDICT, BOUNDS = (frozenset([command]) for command in ("compare", "predict", "bounds"))

Names = tuple[str, ...]
"""names of columns; one name, and any sequence of names, also count"""


@dataclass(frozen=True)
class About:
    """What the command line says about an option, beside its name, type and default."""

    help: str
    group: str
    """title under which help lists it"""
    also_in: frozenset[str] = frozenset()
    """commands that have it, beside ``fit``"""
    least: float | None = None
    """smallest value"""
    metavar: str | None = None
    """what help shows in place of a value"""
    brief: str = ""
    """the same in one line, for the first screen of help; empty if only its topic shows it"""

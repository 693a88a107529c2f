"""What is written around a picture."""

from __future__ import annotations

from dataclasses import dataclass

from heckmanfa.text.table import Table


@dataclass(frozen=True)
class PictureText:
    """The words and numbers of a picture."""

    title: str
    alt: str
    """the main numbers, for screen readers"""
    caption: str
    table: Table
    """the same numbers"""

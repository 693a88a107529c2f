"""Sentences in which names of features can be found again, so that a page can mark them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from heckmanfa.text.labels import label
from heckmanfa.text.option_words import told
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import MAX_NAMES

_KEY = 300
"""characters of a name that tell it from others"""


@dataclass(frozen=True)
class Name:
    """A column of the user's table, as it is called there, and to a reader by its label."""

    text: str
    label: str = field(default="", compare=False)
    """that of `heckmanfa.text.labels` when the name is made, unless given"""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", label(self.text))

    def __str__(self) -> str:
        return shown(self.label)

    @property
    def is_labelled(self) -> bool:
        """Whether a reader knows it by another name."""
        return self.label != self.text

    @property
    def key(self) -> str:
        """The name in full but printable: what marks of one feature on a page have in common."""
        return shown(self.text, _KEY)


@dataclass(frozen=True)
class Passage:
    """A sentence or a few: words of ours, and names of the user's."""

    parts: tuple[str | Name, ...] = ()

    def __str__(self) -> str:
        """Return plain text; names are made printable, and options are told to the reader."""
        return told("".join(str(part) for part in self.parts))

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __add__(self, other: Passage | str) -> Passage:
        more = other.parts if isinstance(other, Passage) else (other,)
        return Passage((*self.parts, *more))


def passage(*parts: str | Name | Passage) -> Passage:
    """Join words, names and other passages."""
    pieces: list[str | Name] = []
    for part in parts:
        pieces += part.parts if isinstance(part, Passage) else (part,)
    return Passage(tuple(pieces))


def join(passages: Iterable[Passage], between: str = " ") -> Passage:
    """Join passages that say something, with words between them."""
    pieces: list[str | Name] = []
    for words in passages:
        if words:
            pieces += (between, *words.parts) if pieces else words.parts
    return Passage(tuple(pieces))


def named(names: Sequence[str], most: int = MAX_NAMES) -> Passage:
    """Name all, as in 'a, b and c', or only the first of a long list."""
    first = [Name(name) for name in names[: most if len(names) <= most else most - 2]]
    rest = len(names) - len(first)
    if rest:
        return passage(join((passage(name) for name in first), ", "), f" and {rest} more")
    if len(first) < 2:
        return passage(*first)
    return passage(join((passage(name) for name in first[:-1]), ", "), " and ", first[-1])

"""Names cut to the room that a line or a picture has, in the middle and never to nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from heckmanfa.text.printable import shown

_WIDE = ("W", "F")


def cells(text: str) -> int:
    """Count the cells that text takes: two for wide characters, none for combining marks."""
    return sum(map(_cells_of, text))


def cut(name: object, most: int) -> str:
    """Make a foreign name printable and shorten it in the middle to a number of cells.

    A letter keeps its combining marks. The first letter always stays, and the last one where
    there is room for it.
    """
    # Wide letters and escapes only make text longer, so a few times the room is enough to read.
    text = shown(name)
    if cells(text) <= most:
        return text
    letters = _letters(text)
    tail = max(most - 1, 0) // 2
    last = _as_wide(reversed(letters[1:]), tail)
    rest = letters[1 : len(letters) - len(last)]
    first = letters[0]
    room = most - 1 - cells(first) - sum(map(cells, last))
    return first + "".join(_as_wide(rest, room)) + "…" + "".join(reversed(last))


def cut_names(names: Sequence[str], most: int) -> str:
    """Join names by plus signs, or name the first and count the others if that is too long."""
    whole = " + ".join(shown(name) for name in names)
    if cells(whole) <= most:
        return whole
    more = f" + {len(names) - 1} more" if len(names) > 1 else ""
    return cut(names[0], max(most - len(more), 4)) + more


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def _letters(text: str) -> list[str]:
    """Split text into letters, each with the marks on it."""
    letters: list[str] = []
    for character in text:
        if letters and unicodedata.category(character).startswith("M"):
            letters[-1] += character
        else:
            letters.append(character)
    return letters


def _as_wide(letters: Iterable[str], room: int) -> list[str]:
    """Return as many of the letters, from the first, as there is room for."""
    kept: list[str] = []
    for letter in letters:
        room -= cells(letter)
        if room < 0:
            break
        kept.append(letter)
    return kept

r"""Text that comes from a user's file, made safe to show.

Names of columns, categories and files can hold anything: escape sequences that a terminal obeys,
marks that reverse what follows, invisible characters, megabytes. Wherever a
message, a table or a page shows such text, it goes through one of these functions:

- ``shown(name)`` in running text and in tables: ``Größe``, ``年収``, ``a\x1b[2Jb``;
- ``quoted(name)`` in place of ``{name!r}``: ``'Größe'``, ``"it's"``, ``3``;
- ``printable(message)`` for a whole text of our own, line breaks included. It is the net under the
  other two: errors, warnings, the command line and the report pass all they say through it.

Data that is written for programs (predictions, JSON) keeps names as they are.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

LINE = 100
"""how many characters of a foreign value are shown: about a line's worth"""

_MESSAGE = 5000
"""no message of ours is longer; one that is holds a value that should have gone through shown"""

_called: dict[str, str] = {}
"""what paths are called in place of their names"""

# Letters, marks and symbols by their category, which nobody sees all the same: Unicode's
# Default_Ignorable_Code_Point, and some that its fonts leave blank (Braille of no dots, the Khitan
# filler, Duployan's selector, the note without a head, the stand-in for an object).
_UNSEEN = frozenset(
    chr(code)
    for first, last in (
        (0x00AD, 0x00AD),
        (0x034F, 0x034F),
        (0x061C, 0x061C),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x200B, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFEFF, 0xFEFF),
        (0xFFA0, 0xFFA0),
        (0xFFF0, 0xFFF8),
        (0xFFFC, 0xFFFC),
        (0x16FE4, 0x16FE4),
        (0x1BC9D, 0x1BC9D),
        (0x1BCA0, 0x1BCA3),
        (0x1D159, 0x1D159),
        (0x1D173, 0x1D17A),
        (0xE0000, 0xE0FFF),
    )
    for code in range(first, last + 1)
)

_MARKS = 4
"""how many marks stand on one letter: no script needs more, and a heap of them hides other lines"""

# The first combining mark is U+0300.
_MAY_BE_HEAPED = re.compile(f"[\u0300-\U0010ffff]{{{_MARKS + 1},}}")


def shown(value: object, limit: int = LINE) -> str:
    r"""Make a foreign value printable on one line, and no longer than about a line.

    Parameters
    ----------
    value : object
        A name, a category, a path; what is not text is turned into text by ``str``.
    limit : int
        Longer text is shortened in the middle, with an ellipsis.

    Returns
    -------
    str
        Letters of all scripts and blanks stay. Control and escape characters, marks of direction,
        characters of no width, variation selectors, line breaks, unassigned and private ones
        become visible escapes such as ``\x1b`` and ``\u202e``; so do combining marks beyond the
        fourth on one letter.
    """
    return _shortened(_text(value), limit, _visible)


def quoted(value: object, limit: int = LINE) -> str:
    """Make a foreign value printable as ``repr`` writes it: text in quotes, the rest as it is.

    Unlike with `shown`, a reader sees where text begins and ends, and which of several blanks and
    backslashes it holds. Text beyond the limit is shortened in the middle, and its length given.
    """
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        # NumPy writes np.int64(3), which says more than a reader wants to know.
        value = value.item()
    if not isinstance(value, str | os.PathLike):
        return shown(repr(value), limit)
    text = _text(value)
    mark = '"' if "'" in text and '"' not in text else "'"
    inner = _shortened(text, limit, lambda c: "\\" + c if c == mark else _as_in_code(c))
    length = f" ({len(text):,} characters)" if len(text) > limit else ""
    return f"{mark}{inner}{mark}{length}"


def quoted_list(names: Sequence[object], most: int) -> str:
    """Quote the first ``most`` names, and count the rest: ``'a', 'b' and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(quoted(name) for name in names[:most]) + more


def printable(text: str, limit: int | None = _MESSAGE) -> str:
    """Neutralise whatever a terminal or a page would obey in a text of ours; line breaks stay.

    Parameters
    ----------
    text : str
    limit : int or None
        A longer text is shortened in the middle: no message has more than a few pages. None for
        what may be long, such as a summary.

    Returns
    -------
    str
        Made printable once more, it stays as it is.
    """
    limit = len(text) if limit is None else limit
    if len(text) <= limit and all(map(str.isprintable, text.split("\n"))) and _is_seen(text):
        return text
    if len(text) <= limit:
        return "".join(_pieces(text, _visible_or_break))
    return _shortened(text, limit, _visible_or_break)


@contextmanager
def called(path: os.PathLike[str], name: str) -> Iterator[None]:
    """Show a path by another name meanwhile: that of what the user gave, and we keep there."""
    _called[os.fsdecode(path)] = name
    try:
        yield
    finally:
        del _called[os.fsdecode(path)]


def _text(value: object) -> str:
    if not isinstance(value, os.PathLike):
        return str(value)
    path = os.fsdecode(value)
    return _called.get(path, path)


def _is_seen(text: str) -> bool:
    if text.isascii():
        return True
    heaps = _MAY_BE_HEAPED.finditer(text)
    return _UNSEEN.isdisjoint(text) and not any(_is_heaped(heap[0]) for heap in heaps)


def _is_heaped(text: str) -> bool:
    return any(count > _MARKS for count in _marks_so_far(text))


def _marks_so_far(text: str) -> Iterator[int]:
    """Count, for each character, the marks in a row that end with it."""
    count = 0
    for character in text:
        # Marks that take room of their own (Mc) heap up nowhere.
        is_mark = character >= "\u0300" and unicodedata.category(character) in ("Mn", "Me")
        count = count + 1 if is_mark else 0
        yield count


def _pieces(text: str, written: Callable[[str], str]) -> list[str]:
    """Write each character of a text."""
    return [
        _escape(character) if count > _MARKS else written(character)
        for character, count in zip(text, _marks_so_far(text), strict=True)
    ]


def _visible_or_break(character: str) -> str:
    return character if character in "\n\t" else _visible(character)


def _visible(character: str) -> str:
    if character in _UNSEEN:
        return _as_in_code(character)
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return _as_in_code(character)


def _as_in_code(character: str) -> str:
    if character in _UNSEEN and character.isprintable():
        return _escape(character)
    if character in "'\"":
        return character
    return repr(character)[1:-1]


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _shortened(text: str, limit: int, written: Callable[[str], str]) -> str:
    """Write a text of at most so many characters; of a longer one, the beginning and the end.

    No escape is cut, and of a text of megabytes only the part shown is read.
    """
    if len(text) <= limit:
        whole = _pieces(text, written)
        if sum(map(len, whole)) <= limit:
            return "".join(whole)
    tail = (limit - 1) // 2
    head = limit - 1 - tail
    first = _as_many(_pieces(text[:head], written), head)
    last = _as_many(reversed(_pieces(text[-tail:] if tail else "", written)), tail)
    return "".join(first) + "…" + "".join(reversed(last))


def _as_many(pieces: Iterable[str], limit: int) -> list[str]:
    kept: list[str] = []
    for piece in pieces:
        limit -= len(piece)
        if limit < 0:
            break
        kept.append(piece)
    return kept

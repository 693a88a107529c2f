r"""Text that comes from a user's file, made safe to show.

Names of columns, categories and files can hold anything: escape sequences that a terminal obeys,
marks that reverse the text after them, invisible characters, megabytes. Every message, table and
page passes such text through one of these functions:

- ``shown(name)`` in running text and in tables: ``Größe``, ``年収``, ``a\x1b[2Jb``;
- ``quoted(name)`` in place of ``{name!r}``: ``'Größe'``, ``"it's"``, ``3``;
- ``printable(message)`` for a whole text of our own, line breaks included. It is the safety net:
  errors, warnings, the command line and the report pass all their text through it.

Data that is written for programs (predictions, JSON) keeps names as they are.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

LINE = 100
"""how many characters of a foreign value are shown: about a line's worth"""

_MESSAGE = 5000
"""a longer message holds a value that should have gone through `shown`"""

_called: dict[str, str] = {}
"""names to show in place of paths"""

# Characters that are invisible, although their category is letter, mark or symbol: Unicode's
# Default_Ignorable_Code_Point, and some that fonts leave blank (the Braille pattern without dots,
# the Khitan filler, the Duployan selector, the note without a head, the object replacement).
_UNSEEN = re.compile(
    r"[\u00AD\u034F\u061C\u115F-\u1160\u17B4-\u17B5\u180B-\u180F\u200B-\u200F\u202A-\u202E"
    r"\u2060-\u206F\u2800\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFF8\uFFFC\U00016FE4"
    r"\U0001BC9D\U0001BCA0-\U0001BCA3\U0001D159\U0001D173-\U0001D17A\U000E0000-\U000E0FFF]"
)

_MARKS = 4
"""the most marks on one letter: no script needs more, and a pile of them hides other lines"""

# The first combining mark is U+0300.
_MAY_BE_HEAPED = re.compile(f"[\u0300-\U0010ffff]{{{_MARKS + 1},}}")


def shown(value: object, limit: int = LINE) -> str:
    r"""Make a foreign value printable on one line; longer text is shortened in the middle.

    Letters of all scripts and blanks stay. Control and escape characters, direction marks,
    zero-width characters, variation selectors, line breaks, unassigned and private characters
    become visible escapes such as ``\x1b`` and ``\u202e``; so do combining marks beyond the
    fourth on one letter.
    """
    return _shortened(_text(value), limit, _visible)


def quoted(value: object, limit: int = LINE) -> str:
    """Make a foreign value printable as ``repr`` writes it: text in quotes, the rest as it is.

    Quotes show where text begins and ends, and escapes which blanks and backslashes it holds. Text
    beyond the limit is shortened in the middle, and its length given.
    """
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        # NumPy would write np.int64(3).
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
    """Neutralise whatever a terminal or a page would obey in our own text; line breaks stay.

    A longer text is shortened in the middle; None for text that may be long, such as a summary.
    Printable text stays as it is.
    """
    limit = len(text) if limit is None else limit
    if len(text) <= limit and all(map(str.isprintable, text.split("\n"))) and _is_seen(text):
        return text
    if len(text) <= limit:
        return "".join(_pieces(text, _visible_or_break))
    return _shortened(text, limit, _visible_or_break)


@contextmanager
def called(path: os.PathLike[str], name: str) -> Iterator[None]:
    """Show a temporary path under the name that the user gave."""
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
    return not _UNSEEN.search(text) and all(max(_marks_so_far(heap[0])) <= _MARKS for heap in heaps)


def _marks_so_far(text: str) -> Iterator[int]:
    """Count, for each character, the marks in a row that end with it."""
    count = 0
    for character in text:
        # Marks with a width of their own (Mc) do not pile up.
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
    is_blank = unicodedata.category(character) == "Zs"
    if (character.isprintable() or is_blank) and not _UNSEEN.match(character):
        return character
    return _as_in_code(character)


def _as_in_code(character: str) -> str:
    if _UNSEEN.match(character) and character.isprintable():
        return _escape(character)
    if character in "'\"":
        return character
    return repr(character)[1:-1]


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _shortened(text: str, limit: int, written: Callable[[str], str]) -> str:
    """Write a text, or the beginning and the end of one that is longer than the limit.

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


# How a terminal without these characters gets them: a minus sign must not be lost.
_IN_ASCII = {"−": "-", "–": "-", "·": "-", "χ": "chi", "²": "2", "…": "..."}


def take_any_encoding() -> None:
    """Let output go to terminals and pipes that lack some characters, as on older Windows."""
    codecs.register_error("heckmanfa.in_ascii", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="heckmanfa.in_ascii")


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write the next character in ASCII: a sign that stands for it, or an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    escape = character.encode("ascii", "backslashreplace").decode("ascii")
    return _IN_ASCII.get(character, escape), error.start + 1

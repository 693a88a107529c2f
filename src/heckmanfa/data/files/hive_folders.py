"""Hive partitions: folders named ``key=value`` above files, which are columns of these files.

Values are read as pyarrow reads them: integers if all values of a key are 32-bit integers, else
text. Folders above the one that the user names do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from urllib.parse import unquote

Value = int | str | None

# Python refuses to read integers of thousands of digits.
_INTEGER = re.compile(r"-?[0-9]{1,400}")
_LARGEST = 2**31 - 1
# Hive's name for a missing value.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


def keys_of(folders: Iterable[str]) -> dict[str, str | None]:
    """Return the values that the names of folders give to columns, as text; None is missing."""
    found: dict[str, str | None] = {}
    for folder in folders:
        key, equals, value = folder.partition("=")
        if equals and key:
            found[unquote(key)] = None if value == _MISSING else unquote(value)
    return found


def typed_keys(files: Sequence[Mapping[str, str | None]]) -> list[dict[str, Value]]:
    """Return the values of each file's keys, of one type for each key."""
    names = dict.fromkeys(name for keys in files for name in keys)
    integers = {name for name in names if _all_integers(keys.get(name) for keys in files)}
    return [
        {
            name: int(text) if name in integers and text is not None else text
            for name, text in keys.items()
        }
        for keys in files
    ]


def _all_integers(texts: Iterable[str | None]) -> bool:
    given = [text for text in texts if text is not None]
    return bool(given) and all(
        _INTEGER.fullmatch(text) and -_LARGEST <= int(text) <= _LARGEST for text in given
    )


def folders_below(file: PurePath, base: PurePath) -> tuple[str, ...]:
    """Return the names of the folders between a base and a file in it."""
    return file.relative_to(base).parts[:-1]

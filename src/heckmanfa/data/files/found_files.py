"""Finds the files that a path, a folder or a pattern names, and the Hive partitions they are in.

Hive partitions are folders named ``key=value`` above files, which are columns of these files.
Values are read as pyarrow reads them: integers if all values of a key are 32-bit integers, else
text. Folders above the one that the user names do not count.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from urllib.parse import unquote

from heckmanfa.data.files.outputs import existing
from heckmanfa.data.files.paths import PARQUET_ENDINGS, matching, refuse_foreign_links
from heckmanfa.errors import InputError
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import nearest_file

PathLike = str | os.PathLike[str]
Value = int | str | None

# Python refuses to read integers of thousands of digits.
_INTEGER = re.compile(r"-?[0-9]{1,400}")
_LARGEST = 2**31 - 1
# Hive's name for a missing value.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class FoundFile:
    """A file, and what the folders between it and the one that was named say about its rows."""

    path: Path
    keys: Mapping[str, str | None] = field(default_factory=dict)
    """values of its Hive partitions, as text"""


def find_files(
    path: PathLike | Sequence[PathLike], endings: Sequence[str] = PARQUET_ENDINGS
) -> list[FoundFile]:
    """Return the files, folders and patterns named, as files in sorted order, each once.

    Of a folder, the files with some endings count, at any depth. Folders below it, or below the
    first folder of a pattern that has a wildcard, are Hive partitions if they are called
    ``key=value``.
    """
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not all(os.fspath(item) for item in given) or not given:
        # An empty name would be the current folder, which nobody means by it.
        raise InputError("no file is named: pass a path, a folder, a pattern, or several of these")
    found: dict[Path, FoundFile] = {}
    for item in given:
        for file in _files_of(item, endings):
            # A file that is also named without its folders keeps their values.
            if file.path not in found or file.keys:
                found[file.path] = file
    for place in found:
        refuse_foreign_links(place)
    return [found[place] for place in sorted(found)]


def is_hidden(folders: Sequence[str]) -> bool:
    """Whether a path is one that programs give to files that are not data, or not yet."""
    return any(name.startswith((".", "_")) for name in folders)


def refuse_empty_folder(folder: object, endings: Sequence[str]) -> InputError:
    """Return the error for a folder in which no file is data."""
    return InputError(
        f"the folder {shown(folder)} holds no file that ends in {' or '.join(endings)}"
    )


def refuse_no_match(pattern: object) -> InputError:
    """Return the error for a pattern that matches nothing."""
    return InputError(
        f"there is no file {shown(pattern)}, and no file matches this pattern; check the folder "
        "and the name"
    )


def _files_of(path: PathLike, endings: Sequence[str]) -> list[FoundFile]:
    place = Path(path)
    if place.is_dir():
        return _files_in(place, place, endings)
    if place.exists():
        return [FoundFile(existing(place))]
    if glob.has_magic(str(place)):
        # The folder before the first wildcard.
        base = next(part for part in place.parents if not glob.has_magic(str(part)))
        found = [
            file
            for match in matching(place)
            for file in (
                _files_in(match, base, endings) if match.is_dir() else [_below(match, base)]
            )
        ]
        if not found:
            raise refuse_no_match(path)
        return found
    if not place.parent.is_dir():
        raise InputError(
            f"there is no file {shown(path)}: there is no folder {shown(place.parent)}"
        )
    names = [file.name for file in place.parent.iterdir()]
    raise InputError(f"there is no file {shown(path)}{nearest_file(place.name, names)}")


def _below(file: Path, base: Path) -> FoundFile:
    return FoundFile(file, keys_of(folders_below(file, base)))


def _files_in(folder: Path, base: Path, endings: Sequence[str]) -> list[FoundFile]:
    found = [
        _below(file, base)
        for file in folder.rglob("*")
        if file.suffix.lower() in endings
        and file.is_file()
        and not is_hidden(file.relative_to(folder).parts)
    ]
    if not found:
        raise refuse_empty_folder(folder, endings)
    return found


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


_READERS = {
    (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"): (
        "scan polars.scan_csv(...), or read it with pandas.read_csv"
    ),
    (".xlsx", ".xls"): "read it with pandas.read_excel",
    (".dta",): "read it with pandas.read_stata",
}


def refuse_other_format(path: PathLike) -> InputError:
    """Build the error for a file that is neither Parquet nor Arrow by its name and content."""
    name = str(path).lower()
    reader = next((said for endings, said in _READERS.items() if name.endswith(endings)), None)
    return InputError(
        f"{shown(path)} is neither a Parquet nor an Arrow file, which is what scans read: "
        f"{reader or 'read it into a data frame'}"
    )

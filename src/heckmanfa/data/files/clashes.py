"""Refuses to write a file that the same call reads, or to write two outputs to one file."""

from __future__ import annotations

import glob
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from heckmanfa.data.files.patterns import matches, matching
from heckmanfa.errors import InputError
from heckmanfa.text.printable import shown

PathLike = str | os.PathLike[str]
Reads = PathLike | Sequence[PathLike] | None
"""a file, a folder, a pattern, or several of these"""

_STDIN = "-"
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
"""endings of the files that are read from a folder"""


def local_path(path: PathLike) -> PathLike:
    """Return a path of this machine that may be written as a URL."""
    if isinstance(path, str) and path.startswith("file://"):
        return url2pathname(unquote(urlsplit(path).path))
    return path


def refuse_clashes(reads: Mapping[str, Reads], writes: Mapping[str, PathLike | None]) -> None:
    """Refuse to write a file that is read, or two outputs to one file, before any work is done.

    Two names are the same file if links lead to one place, or the file system says so (hard
    links, names that it does not tell apart). Two outputs are also the same file if they differ
    only in upper and lower case, since many file systems ignore case. A Parquet file in a folder
    that is read as a whole, and a file that a pattern matches, would be read the next time, so they
    are refused as well.

    Both mappings have the option or parameter as key; an output that was not given is None.
    """
    given = {option: Path(path) for option, path in writes.items() if path is not None}
    for path in given.values():
        refuse_standard_output(path)
    for source, named in reads.items():
        if "" in _each(named):
            raise InputError(f"{source} is empty; name a file")
    options = list(given)
    for index, option in enumerate(options):
        for other in options[:index]:
            first, second = given[other], given[option]
            if _same_file(first, second):
                raise InputError(
                    f"{other} and {option} both name {_names(first, second)}, and one would "
                    "replace the other; name two files"
                )
            if _folded(real_path(first)) == _folded(real_path(second)):
                raise InputError(
                    f"{other} and {option} name {shown(first)} and {shown(second)}, which "
                    "many file systems take for one file: they differ only in upper and lower "
                    "case, or in how accents are stored; name two files"
                )
    for source, named in reads.items():
        for item in _each(named):
            for option, path in given.items():
                how = _read_by(source, item, path)
                if how:
                    raise InputError(
                        f"{option} would write {shown(path)}, which {how}; name another file for "
                        f"{option}"
                    )


def refuse_standard_output(path: PathLike) -> None:
    """Refuse to write a file called ``-``, by which users mean the terminal."""
    if os.fspath(path) == _STDIN:
        raise InputError("name a file to write; '-' is for input only")


def _each(named: Reads) -> list[str]:
    if named is None:
        return []
    if isinstance(named, str | os.PathLike):
        named = [named]
    return [os.fspath(local_path(item)) for item in named]


def _names(first: Path, other: Path) -> str:
    if str(first) == str(other):
        return shown(first)
    return f"one file ({shown(first)} and {shown(other)})"


def _read_by(source: str, named: str, path: Path) -> str:
    """Describe how an input reads an output; empty if it does not."""
    if named == _STDIN:
        return f"{source} reads (as the standard input)" if _is_stdin(path) else ""
    location = Path(named)
    if _same_file(location, path):
        return f"{source} reads"
    if location.is_dir():
        return f"is in the folder that {source} reads, {shown(named)}" * _in_folder(path, location)
    if glob.has_magic(named) and not os.path.lexists(location):
        if any(_same_file(match, path) or _in_folder(path, match) for match in matching(named)):
            return f"{source} reads by its pattern, {shown(named)}"
        if _would_match(named, path):
            return f"matches the pattern that {source} reads, {shown(named)}"
    return ""


def _in_folder(path: Path, folder: Path) -> bool:
    """Whether a file is, or would be, among those read from a folder."""
    if not folder.is_dir():
        return False
    if path.suffix.lower() in PARQUET_ENDINGS and any(
        _same_file(parent, folder) for parent in real_path(path).parents
    ):
        return True
    # Entries of the folder may be links to elsewhere.
    linked = (file for file in folder.rglob("*") if file.suffix.lower() in PARQUET_ENDINGS)
    return path.exists() and any(_same_file(file, path) for file in linked)


def real_path(path: Path) -> Path:
    """Follow all links; a link that leads nowhere or to itself stays."""
    return Path(os.path.realpath(path))


def _same_file(path: Path, other: Path) -> bool:
    if real_path(path) == real_path(other):
        return True
    try:
        return path.samefile(other)
    except OSError:
        return False


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", str(path)).casefold()


def _is_stdin(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.__stdin__.fileno()), path.stat())  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return False


def _would_match(pattern: str, path: Path) -> bool:
    """Whether a file would match a pattern if it existed."""
    parts = Path(pattern).parts
    first = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    base = real_path(Path(*parts[:first]))
    wanted = parts[first:]
    real = real_path(path)
    # The name may be that of a link, or of the file that it leads to.
    candidates = {real, real_path(path.parent) / path.name}
    return any(
        matches(candidate.relative_to(base).parts, wanted)
        for candidate in candidates
        if candidate.is_relative_to(base)
    )

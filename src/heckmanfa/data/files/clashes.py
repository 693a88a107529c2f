"""Whether files that a call writes are files that it reads, or one another."""

from __future__ import annotations

import glob
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from heckmanfa.errors import InputError
from heckmanfa.text.printable import shown

__all__ = ["PathLike", "Reads", "refuse_clashes", "refuse_standard_output"]

PathLike = str | os.PathLike[str]
Reads = PathLike | Sequence[PathLike] | None
"""a file, a folder, a pattern, or several of these"""

_STDIN = "-"
# What is read of a folder: Parquet files, which have these endings.
_IN_FOLDERS = (".parquet", ".parq", ".pq")


def refuse_clashes(reads: Mapping[str, Reads], writes: Mapping[str, PathLike | None]) -> None:
    """Refuse to write a file that is read, or two outputs to one file, before any work is done.

    Two names are one file where they lead to the same place by links, where the file system says
    so (hard links, names that it does not tell apart), and for two outputs also where they differ
    in upper and lower case only, since many systems take these for one. A Parquet file in a folder
    that is read as a whole, and a file that a pattern matches, would be read the next time, and
    are refused too.

    Parameters
    ----------
    reads : mapping
        Of the option or parameter to what it names. A folder or a pattern stands for what is in
        it now and later.
    writes : mapping
        Of the option or parameter to the file; None where it was not given.
    """
    given = {option: Path(path) for option, path in writes.items() if path is not None}
    for path in given.values():
        refuse_standard_output(path)
    for source, named in reads.items():
        if "" in _each(named):
            raise InputError(f"{source} is empty; name a file")
    options = list(given)
    for place, option in enumerate(options):
        for other in options[:place]:
            first, second = given[other], given[option]
            if _same_file(first, second):
                raise InputError(
                    f"{other} and {option} both name {_names(first, second)}, and one would "
                    "replace the other; name two files"
                )
            if _folded(_real(first)) == _folded(_real(second)):
                raise InputError(
                    f"{other} and {option} name {shown(first)} and {shown(second)}, which "
                    "many file systems take for one file: they differ only in upper and lower "
                    "case, or in how accents are stored; name two files"
                )
    for source, named in reads.items():
        for one in _each(named):
            for option, path in given.items():
                how = _read_by(source, one, path)
                if how:
                    raise InputError(
                        f"{option} would write {shown(path)}, which {how}; name another file for "
                        f"{option}"
                    )


def refuse_standard_output(path: PathLike) -> None:
    """Refuse to write a file called ``-``, which whoever asks for it takes for the terminal."""
    if os.fspath(path) == _STDIN:
        raise InputError("name a file to write; '-' is for input only")


def _each(named: Reads) -> list[str]:
    if named is None:
        return []
    if isinstance(named, str | os.PathLike):
        return [os.fspath(named)]
    return [os.fspath(one) for one in named]


def _names(one: Path, other: Path) -> str:
    return shown(one) if str(one) == str(other) else f"one file ({shown(one)} and {shown(other)})"


def _read_by(source: str, named: str, path: Path) -> str:
    """Say how an input reads an output, or nothing where it does not."""
    if named == _STDIN:
        return f"{source} reads (as the standard input)" if _is_stdin(path) else ""
    place = Path(named)
    if _same_file(place, path):
        return f"{source} reads"
    if place.is_dir():
        return f"is in the folder that {source} reads, {shown(named)}" * _in_folder(path, place)
    if glob.has_magic(named) and not os.path.lexists(place):
        found = map(Path, glob.iglob(named, recursive=True))  # noqa: PTH207
        if any(_same_file(one, path) or _in_folder(path, one) for one in found):
            return f"{source} reads by its pattern, {shown(named)}"
        if _would_match(named, path):
            return f"matches the pattern that {source} reads, {shown(named)}"
    return ""


def _in_folder(path: Path, folder: Path) -> bool:
    """Whether a file is, or would be, among those that are read of a folder."""
    if not folder.is_dir():
        return False
    if path.suffix.lower() in _IN_FOLDERS and any(
        _same_file(one, folder) for one in _real(path).parents
    ):
        return True
    # What is in the folder may be a link to elsewhere.
    linked = (one for one in folder.rglob("*") if one.suffix.lower() in _IN_FOLDERS)
    return path.exists() and any(_same_file(one, path) for one in linked)


def _real(path: Path) -> Path:
    """Follow all links; one that leads nowhere or to itself stays."""
    return Path(os.path.realpath(path))


def _same_file(one: Path, other: Path) -> bool:
    if _real(one) == _real(other):
        return True
    try:
        return one.samefile(other)
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
    """Whether a file would match a pattern if it were there."""
    parts = Path(pattern).parts
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    base = _real(Path(*parts[:first]))
    wanted = parts[first:]
    real = _real(path)
    # The name may be a link's, or what the link leads to.
    candidates = {real, _real(path.parent) / path.name}
    return any(
        _matches(wanted, one.relative_to(base).parts)
        for one in candidates
        if one.is_relative_to(base)
    )


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Match parts of a path as glob does."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(pattern[1:], parts[start:]) for start in range(len(parts) + 1))
    if not parts:
        return False
    # As glob does, leave hidden names to patterns that say so.
    if parts[0].startswith(".") and not pattern[0].startswith("."):
        return False
    return fnmatchcase(parts[0], pattern[0]) and _matches(pattern[1:], parts[1:])

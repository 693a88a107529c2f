"""Paths: the files that a path, a folder or a pattern names, and what is not read or written.

Hive partitions are folders named ``key=value`` above files, which are columns of these files.
Values are read as pyarrow reads them: integers if all values of a key are 32-bit integers, else
text. Folders above the one that the user names do not count.

In a folder where everybody may write, such as /tmp, another user can make a link under the name of
a file that we are about to read or write. As in Linux with ``fs.protected_symlinks``, a link in
such a folder counts only if we made it, or the owner of the folder did.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest_file

PathLike = str | os.PathLike[str]
Reads = PathLike | Sequence[PathLike] | None
"""a file, a folder, a pattern, or several of these"""

_STDIN = "-"
PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
"""endings of the files that are read from a folder"""
Value = int | str | None
"""of a Hive partition"""
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)

# How a URL begins, even after its slashes were tidied; a letter alone is a drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/)")


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
    outputs = {option: Path(path) for option, path in writes.items() if path is not None}
    for path in outputs.values():
        refuse_standard_output(path)
    for source, named in reads.items():
        if "" in _each(named):
            raise InputError(f"{source} is empty; name a file")
    for (other, first), (option, second) in combinations(outputs.items(), 2):
        if _same_file(first, second):
            raise InputError(
                f"{other} and {option} both name {_names(first, second)}, and one would replace "
                "the other; name two files"
            )
        if _folded(real_path(first)) == _folded(real_path(second)):
            raise InputError(
                f"{other} and {option} name {shown(first)} and {shown(second)}, which many file "
                "systems take for one file: they differ only in upper and lower case, or in how "
                "accents are stored; name two files"
            )
    for source, named in reads.items():
        for item in _each(named):
            for option, path in outputs.items():
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


# As many links as Linux follows.
_MOST_LINKS = 40


def refuse_foreign_links(path: PathLike, links: int = _MOST_LINKS) -> None:
    """Refuse a path that leads through a link of another user in a folder open to all.

    What is missing, or leads through more than ``links`` links, is left to whoever opens it.
    """
    if not hasattr(os, "geteuid") or not links:
        return
    place = Path(path).absolute()
    for step in (*reversed(place.parents), place):
        try:
            status = step.lstat()
            if not stat.S_ISLNK(status.st_mode):
                continue
            folder, target = step.parent.stat(), step.parent / step.readlink()
        except OSError:
            return
        if _is_foreign(status, folder):
            raise InputError(
                f"{shown(step)} is a link that another user made in a folder where everybody may "
                f"write, and it is not followed; name the file itself, {shown(target)}, if you "
                "trust it"
            )
        refuse_foreign_links(target / place.relative_to(step), links - 1)
        return


def _is_foreign(link: os.stat_result, folder: os.stat_result) -> bool:
    open_to_all = stat.S_ISVTX | stat.S_IWOTH
    is_open = folder.st_mode & open_to_all == open_to_all
    return is_open and link.st_uid not in (os.geteuid(), folder.st_uid)


def matching(pattern: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the files and folders of this machine that match a pattern.

    Hidden names match only what begins with a dot. Like a folder that is read as a whole, ``**``
    does not enter linked folders: a link to a folder above would repeat every file.
    """
    parts = Path(pattern).parts
    if "**" not in parts:
        # Unlike a path's own method, it leaves hidden files alone.
        yield from map(Path, glob.iglob(str(Path(pattern))))  # noqa: PTH207
        return
    at = parts.index("**")
    rest = parts[at + 1 :]
    for base in matching(Path(*parts[:at])) if at else [Path()]:
        for folder in _folders(base):
            if not rest and folder == base:
                yield base
            yield from matching(Path(glob.escape(str(folder)), *(rest or "*")))


def _folders(base: Path) -> Iterator[Path]:
    """Yield a folder and those below it that are neither hidden nor links."""
    for folder, inside, _ in os.walk(base):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield Path(folder)


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path match those of a pattern, where ``**`` is any number of folders.

    Hidden names match only what begins with a dot.
    """
    if not pattern:
        return not parts
    if pattern[0] == "**":
        hidden = (place for place, part in enumerate(parts) if part.startswith("."))
        most = next(hidden, len(parts))
        return any(matches(parts[skip:], pattern[1:]) for skip in range(most + 1))
    if not parts or not fnmatchcase(parts[0], pattern[0]):
        return False
    if parts[0].startswith(".") and not pattern[0].startswith("."):
        return False
    return matches(parts[1:], pattern[1:])


def refuse_address(path: PathLike) -> None:
    """Refuse a URL where a path of this machine is needed; passwords in it are not shown."""
    scheme = _SCHEME.match(os.fspath(path))
    if scheme is not None and not Path(scheme[0]).is_dir():
        raise InputError(
            f"a URL that begins with {quoted(scheme[0] + '//')} cannot be used here: name a path "
            "of this machine, and copy the file from or to other machines yourself"
        )


def kind_of_file(status: os.stat_result) -> str:
    """Say what is at a path, if it is not an ordinary file."""
    return next((name for test, name in _KINDS if test(status.st_mode)), "not an ordinary file")


def existing(path: str | os.PathLike[str]) -> Path:
    """Return the path of an existing file; refuse anything else."""
    refuse_address(path)
    path = Path(path)
    refuse_foreign_links(path)
    if path.is_dir():
        raise InputError(f"{shown(path)} is a folder; name a file in it")
    if path.is_file():
        return path
    if path.exists():
        # Reading from anything but a file may wait forever, or never end.
        raise InputError(f"{shown(path)} is {kind_of_file(path.stat())}, not a file; name a file")
    if not path.parent.is_dir():
        raise InputError(f"there is no file {shown(path)}: there is no folder {shown(path.parent)}")
    names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    raise InputError(f"there is no file {shown(path)}{nearest_file(path.name, names)}")


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
    items = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not all(os.fspath(item) for item in items) or not items:
        # An empty name would be the current folder, which nobody means by it.
        raise InputError("no file is named: pass a path, a folder, a pattern, or several of these")
    files: dict[Path, FoundFile] = {}
    for item in items:
        for file in _files_of(item, endings):
            # A file that is also named without its folders keeps their values.
            if file.path not in files or file.keys:
                files[file.path] = file
    for place in files:
        refuse_foreign_links(place)
    return [files[place] for place in sorted(files)]


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
    if not place.exists() and glob.has_magic(str(place)):
        # The folder before the first wildcard.
        base = next(part for part in place.parents if not glob.has_magic(str(part)))
        files = [
            file
            for match in matching(place)
            for file in (
                _files_in(match, base, endings) if match.is_dir() else [_below(match, base)]
            )
        ]
        if not files:
            raise refuse_no_match(path)
        return files
    return [FoundFile(existing(path))]


def _below(file: Path, base: Path) -> FoundFile:
    return FoundFile(file, keys_of(folders_below(file, base)))


def _files_in(folder: Path, base: Path, endings: Sequence[str]) -> list[FoundFile]:
    files = [
        _below(file, base)
        for file in folder.rglob("*")
        if file.suffix.lower() in endings
        and file.is_file()
        and not is_hidden(file.relative_to(folder).parts)
    ]
    if not files:
        raise refuse_empty_folder(folder, endings)
    return files


def keys_of(folders: Iterable[str]) -> dict[str, str | None]:
    """Return the values that the names of folders give to columns, as text; None is missing."""
    keys: dict[str, str | None] = {}
    for folder in folders:
        key, equals, value = folder.partition("=")
        if equals and key:
            keys[unquote(key)] = None if value == _MISSING else unquote(value)
    return keys


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
    known = [text for text in texts if text is not None]
    return bool(known) and all(
        _INTEGER.fullmatch(text) and -_LARGEST <= int(text) <= _LARGEST for text in known
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

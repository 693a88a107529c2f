"""Files that exist, and files and folders that are written completely or not at all.

Data is written to a temporary file beside its target (`temporary`), which is moved into place at
the end.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from heckmanfa.data.files.paths import (
    PathLike,
    Reads,
    real_path,
    refuse_clashes,
    refuse_foreign_links,
    refuse_standard_output,
)
from heckmanfa.data.files.temporary import remove_leftovers, temporary_file, temporary_folder
from heckmanfa.errors import InputError, needs_extra
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest_file

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)

# How a URL begins, even after its slashes were tidied; a letter alone is a drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/)")

# Errors of file systems without hard links.
_NO_LINKS = frozenset(
    getattr(errno, name)
    for name in ("EPERM", "EACCES", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EMLINK", "EINVAL")
)


@dataclass(frozen=True)
class Place:
    """A file to write, and the part that holds it until it is complete."""

    target: Path
    """as the user named it"""
    part: Path
    """where to write: a temporary file beside the target"""
    made: os.stat_result
    """status of the part when it was made, with the permissions of any new file"""

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Write the part; an error of the system becomes an error about this file."""
        with _explained(self.target):
            yield self.part


_written: dict[Path, Place] = {}
"""what this process is writing, by part"""


@contextmanager
def outputs(
    writes: Mapping[str, PathLike | None],
    reads: Mapping[str, Reads] | None = None,
    *,
    force: bool,
) -> Iterator[dict[str, Place]]:
    """Write all files of a call, or none of them; yield a place for each option that names a file.

    Obstacles are reported at once: clashes of paths (`refuse_clashes`), files that exist and that
    ``force`` does not allow to replace, targets that are not ordinary files. At the end, all files
    are moved into place together; if anything fails, none is.
    """
    given = {option: Path(path) for option, path in writes.items() if path is not None}
    refuse_clashes(reads or {}, given)
    for path in given.values():
        check_place(path, force)
    with ExitStack() as parts:
        places = {option: parts.enter_context(_part_of(path)) for option, path in given.items()}
        yield places
        for place in places.values():
            check_place(place.target, force)
        with ExitStack() as undo:
            for place in places.values():
                _move(place, force)
                if not force:
                    undo.callback(_take_back, place)
            undo.pop_all()


@contextmanager
def replacing(path: PathLike, force: bool) -> Iterator[Path]:
    """Write a file completely or not at all; yield where to write, as in `outputs`.

    Only ordinary files are ever replaced; for a link, the file that it leads to.
    """
    part = Path(path)
    if part in _written:
        # The caller named a part, which is moved into place as a whole already.
        with _written[part].writing():
            yield part
        return
    with outputs({"path": path}, force=force) as places, places["path"].writing() as part:
        yield part


@contextmanager
def new_folder(path: PathLike) -> Iterator[Path]:
    """Make a folder of files completely or not at all; yield where to write, a folder beside it.

    An existing folder is never replaced, since it may hold other files.
    """
    refuse_standard_output(path)
    target = Path(path)
    refuse_foreign_links(target)
    _refuse_folder(target)
    _refuse_no_parent(target, target)
    with _beside(target, target, temporary_folder) as place, place.writing() as part:
        yield part
        _refuse_folder(target)
        part.chmod(stat.S_IMODE(place.made.st_mode))
        part.rename(target)


def make_folder(path: PathLike) -> Path:
    """Make a folder and its parents, unless they exist."""
    refuse_standard_output(path)
    folder = Path(path)
    refuse_foreign_links(folder)
    with _explained(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise InputError(f"{shown(folder)} is not a folder; name a folder") from error
    return folder


def check_place(path: PathLike, force: bool) -> None:
    """Refuse a target without a folder, one that is not an ordinary file, or one to keep.

    A link stands for what it leads to.
    """
    refuse_address(path)
    target = Path(path)
    refuse_foreign_links(target)
    with _explained(target):
        try:
            found = target.stat()
        except FileNotFoundError:
            _refuse_no_parent(target, real_path(target))
            return
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise InputError(f"{shown(target)} is a link that leads to itself") from error
            raise
    if not stat.S_ISREG(found.st_mode):
        leads = f"leads to {shown(real_path(target))}, which is" if target.is_symlink() else "is"
        raise InputError(f"{shown(target)} {leads} {_kind(found)}; name a file to write")
    if not force:
        raise InputError(_exists(target))


def refuse_address(path: PathLike) -> None:
    """Refuse a URL where a path of this machine is needed; passwords in it are not shown."""
    found = _SCHEME.match(os.fspath(path))
    if found is not None and not Path(found[0]).is_dir():
        raise InputError(
            f"a URL that begins with {quoted(found[0] + '//')} cannot be used here: name a path of "
            "this machine, and copy the file from or to other machines yourself"
        )


def _kind(found: os.stat_result) -> str:
    return next((name for test, name in _KINDS if test(found.st_mode)), "not an ordinary file")


def _exists(target: Path) -> str:
    return f"{shown(target)} exists; pass {option('force', True)} to replace it"


def _refuse_no_parent(target: Path, real: Path) -> None:
    if not real.parent.is_dir():
        raise InputError(
            f"{shown(target)} cannot be written: there is no folder {shown(real.parent)}"
        )


def _refuse_folder(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{shown(target)} exists; name a new folder, or remove that one first")


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Turn an error of the system into one about a file that cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{shown(target)} cannot be written: {reason}") from error


@contextmanager
def _beside(
    target: Path,
    real: Path,
    make: Callable[[Path], AbstractContextManager[tuple[Path, os.stat_result]]],
) -> Iterator[Place]:
    """Make the part of a target, and remove it at the end if it was not moved."""
    remove_leftovers(real.parent)
    with ExitStack() as stack:
        with _explained(target):
            part, made = stack.enter_context(make(real))
        yield Place(target, part, made)


@contextmanager
def _part_of(target: Path) -> Iterator[Place]:
    """Make the part of a file, which `replacing` then knows."""
    refuse_foreign_links(target)
    # A link stays a link; the file that it points to is replaced.
    with _beside(target, real_path(target), temporary_file) as place:
        _written[place.part] = place
        try:
            yield place
        finally:
            del _written[place.part]


def _move(place: Place, force: bool) -> None:
    refuse_foreign_links(place.target)
    real = real_path(place.target)
    with place.writing() as part:
        part.chmod(_mode(place, real))
        if not force:
            if _linked(place.target, part, real):
                return
            # This check can race, but such a file system offers nothing better.
            check_place(place.target, force)
        part.replace(real)


def _linked(target: Path, part: Path, real: Path) -> bool:
    """Link a part into place unless a file exists by now; False if the system cannot do that."""
    try:
        os.link(part, real)
    except FileExistsError as error:
        raise InputError(_exists(target)) from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _take_back(place: Place) -> None:
    """Remove a new file again, since another file of the same call could not be written."""
    real = real_path(place.target)
    with suppress(OSError):
        if os.path.samestat(place.made, real.lstat()):
            real.unlink()


def _mode(place: Place, real: Path) -> int:
    """Return the permissions of a new file, or those of the file that it replaces.

    The setuid, setgid and sticky bits are dropped. A file of another owner becomes ours, and its
    permissions may then remove some of a new file's permissions, but add none.
    """
    made = place.made
    try:
        old = real.stat()
    except FileNotFoundError:
        return stat.S_IMODE(made.st_mode)
    mode = old.st_mode & 0o777
    return mode if (old.st_uid, old.st_gid) == (made.st_uid, made.st_gid) else mode & made.st_mode


_PIECE = 2**20


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
        raise InputError(f"{shown(path)} is {_kind(path.stat())}, not a file; name a file")
    if not path.parent.is_dir():
        raise InputError(f"there is no file {shown(path)}: there is no folder {shown(path.parent)}")
    names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    raise InputError(f"there is no file {shown(path)}{nearest_file(path.name, names)}")


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in lower case; ``.csv.gz`` counts as one ending."""
    endings = [suffix.lower() for suffix in path.suffixes]
    return "".join(endings[-2:] if endings[-1:] == [".gz"] else endings[-1:])


def words_of(error: Exception) -> str:
    """Return the first sentence of an error's message."""
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = message.strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table without its row labels to a ``.csv`` or ``.parquet`` file."""
    check_ending(path)
    path = Path(path)
    if ending_of(path) == ".csv":
        frame.to_csv(path, index=False)
        return
    with needs_extra(".parquet files need pyarrow", "parquet"):
        frame.to_parquet(path, index=False)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse to write a table in a format that `write_table` does not support."""
    refuse_standard_output(path)
    if ending_of(Path(path)) not in (".csv", ".parquet"):
        raise InputError(f"{shown(path)} must end in .csv or .parquet to be written")


_FORMATS = {
    ".html": ("HTML", "; a browser prints it as PDF"),
    ".heckmanfa": ("a model file, which runs no code when it is opened", ""),
    ".json": ("JSON", ""),
}
# Endings of formats that people may expect, and that nothing here writes.
_FOREIGN = frozenset(
    [
        ".pdf",
        ".skops",
        ".pkl",
        ".pickle",
        ".joblib",
        ".doc",
        ".docx",
        ".xls",
        ".xlsx",
        ".rtf",
        ".tex",
        ".png",
    ]
)


def check_format(
    path: PathLike | None, ending: Literal[".html", ".heckmanfa", ".json"], what: str
) -> None:
    """Refuse a name that promises another format; ``what`` is the option, or what is written."""
    if path is None:
        return
    found = ending_of(Path(path))
    if found in _FOREIGN:
        written, more = _FORMATS[ending]
        raise InputError(
            f"{what} writes {written}, and {shown(path)} ends in {found}: name a file that ends in "
            f"{ending}{more}"
        )


def sha256_of(*paths: str | os.PathLike[str]) -> str:
    """Return the hexadecimal SHA-256 of the contents of files, in order."""
    total = hashlib.sha256()
    for path in paths:
        with existing(path).open("rb") as file:
            while piece := file.read(_PIECE):
                total.update(piece)
    return total.hexdigest()

"""Files and folders that are written completely or not at all.

Data is written to a temporary file beside its target, which is moved into place at the end. The
process that writes a temporary file locks it; the system releases the lock when that process ends,
however it ends. So a temporary file without a lock was left behind by a killed run, and the next
run that writes to the folder removes it. A temporary folder is locked in the same way.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from heckmanfa.data.files.paths import (
    PathLike,
    Reads,
    existing,
    kind_of_file,
    real_path,
    refuse_address,
    refuse_clashes,
    refuse_foreign_links,
    refuse_standard_output,
)
from heckmanfa.errors import InputError, needs_extra
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import shown

try:
    import fcntl
except ImportError:  # on Windows, where leftovers stay
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True


@dataclass(frozen=True)
class Place:
    """A file to write, and the part that holds it until it is complete."""

    target: Path
    """as the user named it"""
    part: Path
    """where to write: a temporary file beside the target"""
    mode: int
    """permissions of a new file"""

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
    paths = {option: Path(path) for option, path in writes.items() if path is not None}
    refuse_clashes(reads or {}, paths)
    for path in paths.values():
        check_place(path, force)
    with ExitStack() as parts:
        places = {option: parts.enter_context(_beside(path)) for option, path in paths.items()}
        yield places
        for place in places.values():
            check_place(place.target, force)
        with ExitStack() as undo:
            for place in places.values():
                _move(place, force)
                if not force:
                    undo.callback(_remove, real_path(place.target))
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
    with _beside(target, is_folder=True) as place, place.writing() as part:
        yield part
        _refuse_folder(target)
        part.chmod(place.mode)
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
            status = target.stat()
        except FileNotFoundError:
            _refuse_no_parent(target, real_path(target))
            return
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise InputError(f"{shown(target)} is a link that leads to itself") from error
            raise
    if not stat.S_ISREG(status.st_mode):
        leads = f"leads to {shown(real_path(target))}, which is" if target.is_symlink() else "is"
        raise InputError(f"{shown(target)} {leads} {kind_of_file(status)}; name a file to write")
    if not force:
        raise InputError(_exists(target))


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
def _beside(target: Path, *, is_folder: bool = False) -> Iterator[Place]:
    """Make the part of a target, which `replacing` then knows; remove it unless it was moved."""
    refuse_foreign_links(target)
    # A link stays a link; the file that it points to is replaced.
    real = target if is_folder else real_path(target)
    remove_leftovers(real.parent)
    with ExitStack() as stack:
        with _explained(target):
            part, mode = stack.enter_context(temp_beside(real, is_folder=is_folder))
        place = _written[part] = Place(target, part, mode)
        stack.callback(_written.pop, part)
        yield place


def _move(place: Place, force: bool) -> None:
    refuse_foreign_links(place.target)
    real = real_path(place.target)
    with place.writing() as part:
        part.chmod(_mode(place, real))
        if not force:
            try:
                # Unlike a move, a link never replaces a file.
                os.link(part, real)
                return
            except FileExistsError as error:
                raise InputError(_exists(place.target)) from error
            except OSError:
                # This check can race, but a file system without links offers nothing better.
                check_place(place.target, force)
        part.replace(real)


def _mode(place: Place, real: Path) -> int:
    """Return the permissions of a new file, or those of the file that it replaces.

    The setuid, setgid and sticky bits are dropped. A file of another owner becomes ours, and its
    permissions may then remove some of a new file's permissions, but add none.
    """
    try:
        old = real.stat()
    except FileNotFoundError:
        return place.mode
    ours, mode = place.part.stat(), old.st_mode & 0o777
    return mode if (old.st_uid, old.st_gid) == (ours.st_uid, ours.st_gid) else mode & place.mode


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in lower case; ``.csv.gz`` counts as one ending."""
    endings = [suffix.lower() for suffix in path.suffixes]
    return "".join(endings[-2:] if endings[-1:] == [".gz"] else endings[-1:])


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table without its row labels to a ``.csv`` or ``.parquet`` file."""
    check_ending(path)
    path = Path(path)
    if ending_of(path) == ".csv":
        frame.to_csv(path, index=False)
        return
    with needs_extra(".parquet files need pyarrow", "parquet"):
        frame.to_parquet(path, index=False)


def check_ending(
    path: str | os.PathLike[str], endings: Sequence[str] = (".csv", ".parquet")
) -> None:
    """Refuse to write a table in another format than these; `write_table` supports two."""
    refuse_standard_output(path)
    if ending_of(Path(path)) not in endings:
        *others, last = endings
        raise InputError(f"{shown(path)} must end in {', '.join(others)} or {last} to be written")


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
    actual = ending_of(Path(path))
    if actual in _FOREIGN:
        written, more = _FORMATS[ending]
        raise InputError(
            f"{what} writes {written}, and {shown(path)} ends in {actual}: name a file that ends "
            f"in {ending}{more}"
        )


def sha256_of(*paths: str | os.PathLike[str]) -> str:
    """Return the hexadecimal SHA-256 of the contents of files, in order."""
    total = hashlib.sha256()
    for path in paths:
        with existing(path).open("rb") as file:
            hashlib.file_digest(file, lambda: total)
    return total.hexdigest()


_NAME = re.compile(r"\.heckmanfa-[0-9a-f]{16}\..+", re.DOTALL)
# The longest name that file systems take, in bytes.
_LONGEST_NAME = 255


@contextmanager
def temp_beside(target: Path, *, is_folder: bool = False) -> Iterator[tuple[Path, int]]:
    """Make an empty file or folder beside a target that only its owner can open; remove it at last.

    Yields its path, and the permissions that new files or folders get.
    """
    with ExitStack() as held:
        is_locked = False
        while not is_locked:
            path = target.with_name(_temporary_name(target.name))
            if is_folder:
                path.mkdir()
            else:
                path.touch(exist_ok=False)
            held.callback(_remove, path)
            try:
                mode = stat.S_IMODE(path.stat().st_mode)
                path.chmod(0o700 if is_folder else 0o600)
                held.callback(os.close, _lock(path))
            except (BlockingIOError, FileNotFoundError):
                continue  # another process has just taken it for a leftover
            except OSError:
                pass  # in a file system without locks, nobody can take it for a leftover
            is_locked = True
        yield path, mode


def remove_leftovers(folder: Path) -> None:
    """Remove what killed runs left in a folder."""
    if not _HAS_LOCKS:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_leftover(Path(entry.path))


def _lock(path: Path) -> int:
    """Open and lock a file or folder of ours; fail if it is gone, or a process holds its lock."""
    if not _HAS_LOCKS:
        raise OSError(errno.ENOSYS, "there are no locks")
    # Some file systems lock only files that are open for writing.
    access = os.O_RDONLY if path.is_dir() else os.O_RDWR
    handle = os.open(path, access | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(handle), path.lstat()):
            raise FileNotFoundError(errno.ENOENT, "it was replaced")
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove_leftover(path: Path) -> None:
    """Remove a temporary file or folder, unless a process holds its lock or it is not ours."""
    status = path.lstat()
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if not is_plain or status.st_uid != os.geteuid():
        return
    handle = _lock(path)
    try:
        _remove(path)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _temporary_name(name: str) -> str:
    """Return a random name that ends in another, which tells people what is written there."""
    start = f".heckmanfa-{secrets.token_hex(8)}."
    while len(os.fsencode(start + name)) > _LONGEST_NAME:
        name = name[1:]
    return start + name

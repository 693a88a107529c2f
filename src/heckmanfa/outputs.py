"""Files and folders that are written whole or not at all.

What is written goes into a part beside its place, and is moved there at the end. A part is locked
by the process that writes it; the system gives the lock back when that process ends, however it
ends. So a part that nobody locks is what a killed run left behind, and the next run that writes
into the folder removes it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from heckmanfa.clashes import PathLike, Reads, refuse_clashes, refuse_standard_output
from heckmanfa.errors import InputError
from heckmanfa.foreign import shown

try:
    import fcntl
except ImportError:  # Windows, where nothing is known about the parts of others
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

__all__ = ["Place", "check_place", "make_folder", "new_folder", "outputs", "replacing"]

_PART = re.compile(r"\.heckmanfa-([0-9a-f]{8})-([0-9a-f]{8})\.(.+)", re.DOTALL)
# The longest name that file systems take, in bytes.
_LONGEST_NAME = 255
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)

_written: dict[Path, Path] = {}
"""parts that this process is writing, and the files that they will be"""


@dataclass(frozen=True)
class Place:
    """A file to be, and the part that is written meanwhile."""

    target: Path
    """as the user named it"""
    part: Path
    """where to write: beside the file, with the same ending"""

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Write the part; what the system refuses meanwhile is said of this file and no other."""
        try:
            yield self.part
        except OSError as error:
            raise _unwritable(self.target, error) from error


@contextmanager
def outputs(
    writes: Mapping[str, PathLike | None],
    reads: Mapping[str, Reads] | None = None,
    *,
    force: bool,
) -> Iterator[dict[str, Place]]:
    """Write all files of a call, or none of them.

    What cannot be written is said at once: clashes of paths, files that are there already, places
    that are not ordinary files. At the end all files are moved into place together; where
    anything goes wrong, none is.

    Parameters
    ----------
    writes : mapping
        Of the option to the file that it names, or None.
    reads : mapping, optional
        Of the option to the file, folder or pattern that the call reads.
    force : bool
        Whether files that are there already may be replaced.

    Yields
    ------
    dict of str to Place
        By option, of those that name a file.
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
        for place in places.values():
            _move(place)


@contextmanager
def replacing(path: PathLike, force: bool) -> Iterator[Path]:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or path
        What is to be written. Only ordinary files are ever replaced; of a link, what it leads to.
    force : bool
        Whether a file that is there already may be replaced.

    Yields
    ------
    Path
        Where to write: beside ``path``, with the same ending. It is moved into place at the end,
        and removed where anything goes wrong.
    """
    part = Path(path)
    if part in _written:
        # It is written whole already by whoever named it.
        with Place(_written[part], part).writing():
            yield part
        return
    with outputs({"path": path}, force=force) as places, places["path"].writing() as part:
        yield part


@contextmanager
def new_folder(path: PathLike) -> Iterator[Path]:
    """Make a folder of files whole or not at all.

    Parameters
    ----------
    path : str or path
        What is to be made. A folder that is there already is never replaced: nobody knows what
        else is in it.

    Yields
    ------
    Path
        Where to write: a folder beside ``path``. It is moved into place at the end, and removed
        where anything goes wrong.
    """
    refuse_standard_output(path)
    target = Path(path)
    _refuse_folder(target)
    _refuse_no_parent(target, target)
    _remove_leftovers(target.parent)
    part, lock = _locked(target, target, is_folder=True)
    try:
        with Place(target, part).writing():
            yield part
            _refuse_folder(target)
            part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        _close(lock)


def make_folder(path: PathLike) -> Path:
    """Make a folder, and those that it is in, where it is not there yet."""
    refuse_standard_output(path)
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise InputError(f"{shown(folder)} is not a folder; name a folder to write to") from error
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder


def check_place(path: PathLike, force: bool) -> None:
    """Refuse to write where there is no folder, no ordinary file, or a file that is to stay.

    Parameters
    ----------
    path : str or path
        A link stands for what it leads to.
    force : bool
    """
    target = Path(path)
    try:
        found = target.stat()
    except FileNotFoundError:
        _refuse_no_parent(target, _real(target))
        return
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{shown(target)} is a link that leads to itself") from error
        raise _unwritable(target, error) from error
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for test, name in _KINDS if test(found.st_mode)), "no ordinary file")
        leads = f"leads to {shown(_real(target))}, which is" if target.is_symlink() else "is"
        raise InputError(f"{shown(target)} {leads} {kind}; name a file to write")
    if not force:
        raise InputError(f"{shown(target)} exists; pass force=True to replace it")


def _refuse_no_parent(target: Path, real: Path) -> None:
    if not real.parent.is_dir():
        raise InputError(
            f"{shown(target)} cannot be written: there is no folder {shown(real.parent)}"
        )


def _refuse_folder(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{shown(target)} exists; name a new folder, or remove that one first")


def _unwritable(target: Path, error: OSError) -> InputError:
    said = error.strerror or " ".join(str(error).split()) or type(error).__name__
    return InputError(f"{shown(target)} cannot be written: {said}")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


@contextmanager
def _part_of(target: Path) -> Iterator[Place]:
    """Make the part of a file, and remove it at the end where it was not moved away."""
    # A link stays one; what it points to is replaced.
    real = _real(target)
    _remove_leftovers(real.parent)
    part, lock = _locked(target, real, is_folder=False)
    _written[part] = target
    try:
        yield Place(target, part)
    finally:
        del _written[part]
        # Where it was moved into place, there is none.
        with suppress(OSError):
            part.unlink()
        _close(lock)


def _move(place: Place) -> None:
    real = _real(place.target)
    with place.writing() as part:
        if real.exists():
            shutil.copymode(real, part)
        part.replace(real)


def _locked(target: Path, real: Path, *, is_folder: bool) -> tuple[Path, int | None]:
    """Make an empty part that nobody else has, and lock it."""
    while True:
        part = real.with_name(_part_name(real.name))
        try:
            if is_folder:
                part.mkdir()
                lock = os.open(part, os.O_RDONLY) if _HAS_LOCKS else None
            else:
                lock = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        except OSError as error:
            raise _unwritable(target, error) from error
        if lock is None or not _HAS_LOCKS:
            _close(lock)
            return part, None
        # Where a file system has no locks, nobody gets one, and nobody removes this part.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        # Between its making and its lock, another run may have taken it for a leftover.
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), part.lstat()):
                return part, lock
        _close(lock)


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _part_name(name: str) -> str:
    """Name a part such that it can be known for one of ours: no other name has the right digest."""
    random = secrets.token_hex(4)
    # The ending stays, since it says how a table is written.
    room = _LONGEST_NAME - len(f".heckmanfa-{random}-{random}.")
    while len(os.fsencode(name)) > room:
        name = name[1:]
    return f".heckmanfa-{random}-{_digest(random, name)}.{name}"


def _digest(random: str, name: str) -> str:
    whole = b"a part of heckmanfa " + random.encode() + b" " + os.fsencode(name)
    return hashlib.sha256(whole).hexdigest()[:8]


def _remove_leftovers(folder: Path) -> None:
    """Remove parts in a folder whose process has ended."""
    if not _HAS_LOCKS:
        return
    with suppress(OSError), os.scandir(folder) as found:
        for one in found:
            match = _PART.fullmatch(one.name)
            if match is None or match[2] != _digest(match[1], match[3]):
                continue
            with suppress(OSError):
                _remove_dead(Path(one.path))


def _remove_dead(part: Path) -> None:
    """Remove a part, unless a process that is alive holds its lock."""
    kind = part.lstat().st_mode
    is_folder = stat.S_ISDIR(kind)
    if not (is_folder or stat.S_ISREG(kind)):
        return
    # Some file systems lock only what is open for writing.
    way = os.O_RDONLY if is_folder else os.O_RDWR
    handle = os.open(part, way | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(handle), part.lstat()):
            return
        if is_folder:
            shutil.rmtree(part)
        else:
            part.unlink()
    finally:
        os.close(handle)

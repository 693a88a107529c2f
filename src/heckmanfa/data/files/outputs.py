"""Files and folders that are written completely or not at all.

Data is written to a temporary file beside its target, which is moved into place at the end. The
process that writes a temporary file locks it; the system releases the lock when that process ends,
however it ends. So a temporary file without a lock was left behind by a killed run, and the next
run that writes to the folder removes it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
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
    paths = {option: Path(path) for option, path in writes.items() if path is not None}
    refuse_clashes(reads or {}, paths)
    for path in paths.values():
        check_place(path, force)
    with ExitStack() as parts:
        places = {option: parts.enter_context(_part_of(path)) for option, path in paths.items()}
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
            while piece := file.read(_PIECE):
                total.update(piece)
    return total.hexdigest()


_NAME = re.compile(r"\.heckmanfa-([0-9a-f]{8})-([0-9a-f]{8})\.(.+)", re.DOTALL)
# The longest name that file systems take, in bytes.
_LONGEST_NAME = 255
# How the name of a temporary folder goes on after that of its lock file.
_FOLDER = ".folder"
_TRIES = 100


@contextmanager
def temporary_file(target: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Make an empty file beside a target that only its owner can open; remove it at the end.

    Yields its path, and its status with the permissions that new files get.
    """
    for _ in range(_TRIES):
        path = target.with_name(_temporary_name(target.name))
        with ExitStack() as held:
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                continue
            held.callback(_remove, path)
            status = os.fstat(handle)
            if not _HAS_LOCKS:
                os.close(handle)  # an open file cannot be renamed on Windows
            else:
                held.callback(os.close, handle)
                os.fchmod(handle, 0o600)
                if not _is_locked(handle, path):
                    continue
            yield path, status
            return
    raise OSError(errno.EBUSY, "another program takes away every file that is made beside it")


@contextmanager
def temporary_folder(target: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Make an empty folder beside a target, as `temporary_file` does for a file, which locks it."""
    with temporary_file(target) as (lock, _):
        folder = lock.with_name(lock.name + _FOLDER)
        folder.mkdir()
        try:
            status = folder.lstat()
            # Only a folder that its lock file names is removed with everything in it.
            lock.write_bytes(_identity(status))
            folder.chmod(0o700)
            yield folder, status
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed runs left in a folder."""
    if not _HAS_LOCKS:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is not None and match[2] == _digest(match[1], match[3]):
                with suppress(OSError):
                    _remove_leftover(Path(entry.path))


def _is_locked(handle: int, path: Path) -> bool:
    """Lock a new file; False if another process has just taken it for a leftover."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # In a file system without locks, nobody can take it for a leftover.
        return True
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), path.lstat())
    return False


def _remove_leftover(path: Path) -> None:
    """Remove a temporary file and its folder, unless a process holds its lock or it is not ours."""
    # Some file systems lock only files that are open for writing.
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(status, path.lstat()):
            folder = path.with_name(path.name + _FOLDER)
            with suppress(OSError):
                if os.read(handle, 100) == _identity(folder.lstat()):
                    shutil.rmtree(folder)
                else:
                    folder.rmdir()
            path.unlink()
    finally:
        os.close(handle)


def _identity(status: os.stat_result) -> bytes:
    return f"heckmanfa writes the folder {status.st_dev} {status.st_ino}\n".encode()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _temporary_name(name: str) -> str:
    """Return a name that is recognizably ours: no other name has the right digest."""
    random = secrets.token_hex(4)
    # The target's name tells people what is written there.
    most = _LONGEST_NAME - len(f".heckmanfa-{random}-{random}.{_FOLDER}")
    while len(os.fsencode(name)) > most:
        name = name[1:]
    return f".heckmanfa-{random}-{_digest(random, name)}.{name}"


def _digest(random: str, name: str) -> str:
    whole = b"a part of heckmanfa " + random.encode() + b" " + os.fsencode(name)
    return hashlib.sha256(whole).hexdigest()[:8]

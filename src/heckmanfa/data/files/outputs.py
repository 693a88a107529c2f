"""Files that exist, and files and folders that are written completely or not at all.

Data is written to a part beside its target, which is moved into place at the end. Parts are made in
private folders (`private_folders`), since other users may also be able to write to the folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from heckmanfa.data.files.clashes import (
    PathLike,
    Reads,
    real_path,
    refuse_clashes,
    refuse_standard_output,
)
from heckmanfa.data.files.links import refuse_foreign_links
from heckmanfa.data.files.private_folders import remove_leftovers, room_for
from heckmanfa.errors import InputError, needs_extra
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
    """where to write: a file of the same name in a private folder beside the target"""
    made: os.stat_result
    """status of the part when it was made"""

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
    with _room(target, target) as room:
        part = room / target.name
        with _explained(target):
            part.mkdir()
            place = Place(target, part, part.lstat())
        with place.writing():
            yield part
            _refuse_another(place)
            _refuse_folder(target)
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
        kind = next((name for test, name in _KINDS if test(found.st_mode)), "not an ordinary file")
        leads = f"leads to {shown(real_path(target))}, which is" if target.is_symlink() else "is"
        raise InputError(f"{shown(target)} {leads} {kind}; name a file to write")
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


def _exists(target: Path) -> str:
    return f"{shown(target)} exists; pass force=True to replace it"


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
def _room(target: Path, real: Path) -> Iterator[Path]:
    """Make a private folder beside a target, and remove it at the end."""
    remove_leftovers(real.parent)
    with ExitStack() as stack:
        with _explained(target):
            room = stack.enter_context(room_for(real))
        yield room


@contextmanager
def _part_of(target: Path) -> Iterator[Place]:
    """Make the part of a file, and remove it at the end if it was not moved."""
    # A link stays a link; the file that it points to is replaced.
    real = real_path(target)
    refuse_foreign_links(target)
    with _room(target, real) as room:
        part = room / real.name
        with _explained(target):
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            place = Place(target, part, os.fstat(handle))
        finally:
            os.close(handle)
        _written[part] = place
        try:
            yield place
        finally:
            del _written[part]


def _refuse_another(place: Place) -> None:
    """Refuse to move anything but the part that was made, such as a link put in its place."""
    try:
        found = place.part.lstat()
        # A link can get the inode of a file that was removed just before.
        same_kind = stat.S_IFMT(found.st_mode) == stat.S_IFMT(place.made.st_mode)
        if same_kind and os.path.samestat(place.made, found):
            return
    except FileNotFoundError:
        pass
    raise InputError(
        f"{shown(place.target)} is not written: another program moved or replaced what was being "
        f"written beside it; see who else may write to {shown(real_path(place.target).parent)}"
    )


def _move(place: Place, force: bool) -> None:
    refuse_foreign_links(place.target)
    real = real_path(place.target)
    with place.writing() as part:
        _refuse_another(place)
        if force:
            _take_mode(real, part)
        elif _linked(place.target, part, real):
            return
        else:
            # This check can race, but such a file system offers nothing better.
            check_place(place.target, force)
        part.replace(real)


def _linked(target: Path, part: Path, real: Path) -> bool:
    """Move a part into place unless a file exists by now; False if the system cannot do that."""
    try:
        os.link(part, real)
    except FileExistsError as error:
        raise InputError(_exists(target)) from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    part.unlink()
    return True


def _take_back(place: Place) -> None:
    """Remove a new file again, since another file of the same call could not be written."""
    real = real_path(place.target)
    with suppress(OSError):
        if os.path.samestat(place.made, real.lstat()):
            real.unlink()


def _take_mode(real: Path, part: Path) -> None:
    """Give a part the permissions of the file that it replaces, but no privilege.

    The setuid, setgid and sticky bits are dropped. A file of another owner becomes ours, and its
    permissions may then remove some of the part's permissions, but add none.
    """
    try:
        old = real.stat()
    except FileNotFoundError:
        return
    new = part.stat()
    mode = old.st_mode & 0o777
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        mode &= new.st_mode
    part.chmod(mode)


_PIECE = 2**20
_NOT_FILES: tuple[tuple[Callable[[Path], bool], str], ...] = (
    (Path.is_fifo, "pipe"),
    (Path.is_socket, "socket"),
    (Path.is_char_device, "device"),
    (Path.is_block_device, "device"),
)


def existing(path: str | os.PathLike[str]) -> Path:
    """Return the path of an existing file; refuse anything else."""
    refuse_address(path)
    path = Path(path)
    refuse_foreign_links(path)
    if path.is_dir():
        raise InputError(f"{shown(path)} is a folder; name a file in it")
    if path.is_file():
        return path
    # Reading from anything but a file may wait forever, or never end.
    for is_kind, what in _NOT_FILES:
        if is_kind(path):
            raise InputError(f"{shown(path)} is a {what}, not a file; name a file")
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

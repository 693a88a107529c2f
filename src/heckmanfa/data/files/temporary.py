"""Temporary files and folders beside a target, to be renamed to it once they are complete.

The process that writes a temporary file locks it; the system releases the lock when that process
ends, however it ends. So a temporary file without a lock was left behind by a killed run, and the
next run that writes to the folder removes it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows, where leftovers stay
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

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

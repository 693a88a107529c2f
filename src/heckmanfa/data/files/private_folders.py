"""Private folders in which files are written before they are moved into place.

A room is a folder beside the target that only its owner can enter. The process that writes in it
locks it; the system releases the lock when that process ends, however it ends. So a room without a
lock was left behind by a killed run, and the next run that writes to the folder removes it.

Other users who may write to the folder can rename a room and put another in its place. So if the
system has ``/proc``, a room is reached through its open handle and not through its name. A room
counts as ours only if its lock file says so, which nobody else can write.
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
except ImportError:  # on Windows, which does not show who else uses a room
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

_NAME = re.compile(r"\.heckmanfa-([0-9a-f]{8})-([0-9a-f]{8})\.(.+)", re.DOTALL)
# The longest name that file systems take, in bytes.
_LONGEST_NAME = 255
# Parts have their own folder, so a part may have the name of the lock.
_LOCK, _PARTS = "lock", "part"
_TRIES = 100
_HANDLES = Path("/proc/self/fd")


@contextmanager
def room_for(real: Path) -> Iterator[Path]:
    """Make a private folder beside a target, all links followed; lock it, and remove it at the end.

    Yields an empty folder in the room, reached through the room's handle if the system can.
    """
    for _ in range(_TRIES):
        name = real.with_name(_room_name(real.name))
        try:
            name.mkdir(0o700)
        except FileExistsError:
            continue
        with ExitStack() as held:
            held.callback(_remove_if_empty, name)
            try:
                way = _entered(name, held)
                held.callback(_empty, way)
                if not _is_locked(name, way, held):
                    continue
                inner = way / _PARTS
                inner.mkdir()
            except FileNotFoundError:
                # Somebody has already removed or renamed it.
                continue
            yield inner
            return
    raise OSError(errno.EBUSY, "another program takes away every file that is made beside it")


def remove_leftovers(folder: Path) -> None:
    """Remove rooms in a folder whose process has ended."""
    if not _HAS_LOCKS:
        return
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            match = _NAME.fullmatch(entry.name)
            if match is None or match[2] != _digest(match[1], match[3]):
                continue
            with suppress(OSError), ExitStack() as held:
                _remove_dead(Path(entry.path), held)


def _entered(name: Path, held: ExitStack) -> Path:
    """Open a room, and return a path that leads there even if the room is renamed."""
    if not _HAS_LOCKS:
        return name
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    held.callback(os.close, handle)
    way = _HANDLES / str(handle)
    with suppress(OSError):
        if os.path.samestat(way.stat(), os.fstat(handle)):
            return way
    return name


def _is_locked(name: Path, way: Path, held: ExitStack) -> bool:
    """Lock a new room; False if another process was faster."""
    if not _HAS_LOCKS:
        return True
    if not _is_ours(way.stat()):
        return False
    lock = os.open(way / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    held.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Without locks in a file system, nobody can take this room for a leftover.
        return True
    # Written only now: until then, nobody takes the room for a leftover.
    os.write(lock, _marker(way.stat()))
    with suppress(OSError):
        return os.path.samestat(way.stat(), name.lstat())
    return False


def _remove_dead(name: Path, held: ExitStack) -> None:
    """Remove a room, unless it is not ours or a live process holds its lock."""
    if not stat.S_ISDIR(name.lstat().st_mode):
        return
    way = _entered(name, held)
    room = way.stat()
    # Some file systems lock only files that are open for writing.
    lock = os.open(way / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    held.callback(os.close, lock)
    if not (_is_ours(room) and _is_ours(os.fstat(lock)) and stat.S_ISREG(os.fstat(lock).st_mode)):
        return
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if os.read(lock, 200) == _marker(room) and os.path.samestat(room, name.lstat()):
        _empty(way)
        name.rmdir()


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid()


def _marker(room: os.stat_result) -> bytes:
    """Return the text of a lock file, which names the folder that it was made in."""
    return f"a part of heckmanfa in {room.st_dev} {room.st_ino}\n".encode()


def _empty(way: Path) -> None:
    """Remove everything in a room, its lock file last."""
    with suppress(OSError):
        for name in sorted(os.listdir(way), key=lambda name: name == _LOCK):  # noqa: PTH208
            item = way / name
            with suppress(OSError):
                if stat.S_ISDIR(item.lstat().st_mode):
                    shutil.rmtree(item, ignore_errors=True)
                else:
                    item.unlink()


def _remove_if_empty(name: Path) -> None:
    with suppress(OSError):
        name.rmdir()


def _room_name(name: str) -> str:
    """Return a name for a room that is recognizably ours: no other name has the right digest."""
    random = secrets.token_hex(4)
    # The target's name tells people what is written there.
    room = _LONGEST_NAME - len(f".heckmanfa-{random}-{random}.")
    while len(os.fsencode(name)) > room:
        name = name[1:]
    return f".heckmanfa-{random}-{_digest(random, name)}.{name}"


def _digest(random: str, name: str) -> str:
    whole = b"a part of heckmanfa " + random.encode() + b" " + os.fsencode(name)
    return hashlib.sha256(whole).hexdigest()[:8]

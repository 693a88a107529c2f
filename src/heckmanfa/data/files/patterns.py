"""Patterns of paths, as glob reads them, in which ``**`` ends although links lead in circles."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path


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

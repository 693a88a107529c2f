"""Links that somebody else may have put there: they are not followed.

In a folder where everybody may write, such as /tmp, another user can make a link under the name of
a file that we are about to read or write. As in Linux with ``fs.protected_symlinks``, a link in
such a folder counts only if we made it, or the owner of the folder did.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from heckmanfa.errors import InputError
from heckmanfa.text.printable import shown

# As many links as Linux follows.
_MOST_LINKS = 40


def refuse_foreign_links(path: str | os.PathLike[str]) -> None:
    """Refuse a path that leads through a link of another user in a folder open to all.

    What is missing or leads in circles is left to whoever opens it.
    """
    if not hasattr(os, "geteuid"):
        return
    parts = list(reversed(Path(path).absolute().parts))
    here, links = Path(parts.pop()), 0
    while parts:
        part = parts.pop()
        if part == "..":
            here = here.parent
            continue
        step = here / part
        try:
            found = step.lstat()
            if not stat.S_ISLNK(found.st_mode):
                here = step
                continue
            folder, target = here.stat(), Path(os.readlink(step))  # noqa: PTH115
        except OSError:
            return
        if _is_foreign(found, folder):
            raise InputError(
                f"{shown(step)} is a link that another user made in a folder where everybody may "
                f"write, and it is not followed; name the file itself, {shown(here / target)}, if "
                "you trust it"
            )
        links += 1
        if links > _MOST_LINKS:
            return
        if target.is_absolute():
            here = Path(target.anchor)
        parts += reversed([name for name in target.parts if name != target.anchor])


def _is_foreign(link: os.stat_result, folder: os.stat_result) -> bool:
    open_to_all = stat.S_ISVTX | stat.S_IWOTH
    is_open = folder.st_mode & open_to_all == open_to_all
    return is_open and link.st_uid not in (os.geteuid(), folder.st_uid)

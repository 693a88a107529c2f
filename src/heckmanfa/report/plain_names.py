"""Names of columns that another program reads as names, whatever a table calls them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence


def plain_names(
    names: Sequence[str],
    is_name: Callable[[str], bool],
    most: int | None = None,
    *,
    lower: bool = False,
) -> dict[str, str]:
    """Return a distinct name for each column: its own where that is one, or a plain one.

    A plain name has letters (in ``lower`` case), digits and single underscores, begins with a
    letter, and has ``most`` characters at most; a number at its end makes it distinct.
    """
    names = list(dict.fromkeys(names))
    made = {name: name for name in names if is_name(name)}
    taken = {*made.values()}
    for name in names:
        if name not in made:
            plain = _plain(name.lower() if lower else name)
            made[name] = _distinct(plain, taken, is_name, most)
            taken.add(made[name])
    return made


def _plain(name: str) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return words if words[:1].isalpha() else f"x_{words}".rstrip("_")


def _distinct(name: str, taken: set[str], is_name: Callable[[str], bool], most: int | None) -> str:
    made = name[:most].rstrip("_")
    number = 1
    while made in taken or not is_name(made):
        number += 1
        end = f"_{number}"
        made = f"{name if most is None else name[: most - len(end)]}{end}"
    return made

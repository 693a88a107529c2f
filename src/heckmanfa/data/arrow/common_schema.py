"""One schema for many files, whose columns must be of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from heckmanfa.data.arrow.arrow_columns import is_category, kind_of, same_kind
from heckmanfa.data.arrow.engines import was_category
from heckmanfa.errors import DataError
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

Needed = Callable[[Any, Any], Sequence[str] | None]
"""gets the schema of the first file and its name; returns the columns that matter, None for all"""


def take_all(schema: Any, place: Any) -> None:
    """Need all columns, whatever they are."""


def common_schema(stored: Iterable[tuple[Any, Any]], needed: Needed = take_all) -> Any:
    """Return the common schema of files; refuse files whose columns differ.

    ``stored`` are the name and the schema of each file. The type of a column comes from the first
    file with values of it.
    """
    import pyarrow as pa

    files = iter(stored)
    opening = next(files)
    names = needed(opening[1], opening[0])
    # The file that decides the type of each column.
    deciding = dict.fromkeys(opening[1].names, opening)
    for place, schema in files:
        for name in dict.fromkeys([*deciding, *schema.names]) if names is None else names:
            first = deciding.get(name, opening)
            _check_column(name, first, (place, schema))
            if _tells_more(schema.field(name), first[1].field(name)):
                deciding[name] = (place, schema)
    return pa.schema([found.field(name) for name, (_, found) in deciding.items()])


def _tells_more(field: Any, known: Any) -> bool:
    """Whether a column in another file decides what it is."""
    if kind_of(known.type) == "empty" or kind_of(field.type) == "empty":
        return kind_of(field.type) != "empty"
    # Categories declared in some files only are none, or have no order, in the others.
    return (is_category(known.type) and not is_category(field.type)) or (
        was_category(known) and not was_category(field)
    )


def _check_column(name: str, first: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    """Refuse a file in which a column is not as in the first file."""
    for here, there in ((first, other), (other, first)):
        if name not in here[1].names:
            raise DataError(
                f"{shown(here[0])} has no column {quoted(name)}, which {shown(there[0])} has; "
                f"the files must have the same columns{nearest(name, here[1].names)}"
            )
    mine, theirs = first[1].field(name).type, other[1].field(name).type
    if not same_kind(mine, theirs):
        raise DataError(
            f"column {quoted(name)} is {theirs} in {shown(other[0])}, but {mine} in "
            f"{shown(first[0])}; write it with one type"
        )

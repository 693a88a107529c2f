"""What the columns of Arrow are: their kinds, their values in NumPy and pandas, their schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_names import tidy_names
from heckmanfa.data.columns.values import (
    FALSE_WORDS,
    TRUE_WORDS,
    Time,
    levels_of,
    pandas_categories,
)
from heckmanfa.data.outcome_classes import Labels, labels_of, order_in_arrow
from heckmanfa.errors import DataError, InputError
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

FLAGS = "true and false, 0 and 1, or words such as yes and no"
"""what says who is selected"""

# Bytes of text that rows may share, whatever is stored; and how many for each byte that is.
_DECODED, _DECODED_PER_BYTE = 2**28, 64

ArrowKind = Literal["number", "text", "date", "empty", "other"]


def kind_of(stored: Any) -> ArrowKind:
    """Return the kind of a column of some Arrow type.

    Booleans are numbers. Dictionaries (categories in pandas) are text unless their values are
    numbers or dates. An "empty" column holds only nulls, and agrees with any other kind.
    """
    from pyarrow import types

    if types.is_dictionary(stored):
        inside = kind_of(stored.value_type)
        return inside if inside in ("number", "date") else "text"
    # Earlier versions of pyarrow have no views.
    is_view = getattr(types, "is_string_view", types.is_string)
    tests: dict[ArrowKind, tuple[Any, ...]] = {
        "number": (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal),
        "text": (types.is_string, types.is_large_string, is_view),
        "date": (types.is_temporal,),
        "empty": (types.is_null,),
    }
    for kind, ways in tests.items():
        if any(way(stored) for way in ways):
            return kind
    return "other"


def is_category(stored: Any) -> bool:
    """Whether an Arrow type holds distinct values and a code per row."""
    from pyarrow import types

    return bool(types.is_dictionary(stored))


def time_of(stored: Any) -> Time:
    """Return what a column of a temporal Arrow type holds."""
    from pyarrow import types

    stored = stored.value_type if types.is_dictionary(stored) else stored
    if types.is_duration(stored) or types.is_interval(stored):
        return "spans of time"
    return "times of day" if types.is_time(stored) else "dates"


def same_kind(first: Any, second: Any) -> bool:
    """Whether columns of two Arrow types can be read as one."""
    kinds = {kind_of(first), kind_of(second)}
    return first == second or "empty" in kinds or (len(kinds) == 1 and "other" not in kinds)


def numbers_of(array: Any) -> NDArray[Any]:
    """Return a column of numbers, without a copy if it has no null; nulls are NaN."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    stored = array.type
    if pa.types.is_null(stored):
        return np.full(len(array), np.nan)
    if not (pa.types.is_integer(stored) or pa.types.is_floating(stored)):
        array = array.cast(pa.float64())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def floats_of(array: Any) -> Floats:
    """Return a column of numbers as float64, NaN where null."""
    return np.asarray(numbers_of(array), dtype=np.float64)


def flags_of(array: Any, name: str, role: str = "selected") -> Floats:
    """Return who is selected as 1 and 0, from booleans, numbers, or words such as yes and no.

    Nulls are NaN. Other numbers stay as they are; other words are refused. ``role`` may be another.
    """
    if kind_of(array.type) != "text":
        return floats_of(array)
    levels = levels_of(text_in(array))
    words = [label.lower() for label in levels.labels]
    known = TRUE_WORDS | FALSE_WORDS
    odd = next((label for label in levels.labels if label.lower() not in known), None)
    if odd is not None:
        raise InputError(
            f"{role} names the column {quoted(name)}, which must hold {FLAGS}; it holds "
            f"{quoted(odd)}"
        )
    value = np.array([1.0 if word in TRUE_WORDS else 0.0 for word in words] + [np.nan])
    return np.asarray(value[levels.codes])


def text_in(array: Any) -> Any:
    """Return a column as pandas has it; plain text as distinct values and a code per row."""
    import pyarrow as pa

    if kind_of(array.type) == "text" and not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    stored = array.type
    if pa.types.is_dictionary(stored) and pa.types.is_unsigned_integer(stored.index_type):
        # Earlier versions of pyarrow make no pandas categories of unsigned codes.
        array = pa.DictionaryArray.from_arrays(
            array.indices.cast(pa.int64()), array.dictionary, ordered=stored.ordered
        )
    return array.to_pandas(date_as_object=False)


def labels_in(array: Any, stored: Any) -> Labels:
    """Return an outcome of classes; in text, missing marks are missing, as in features.

    ``stored`` is the type in the files, which says whether categories are ordered.
    """
    import pyarrow as pa

    order = order_in_arrow(array, stored)
    if kind_of(array.type) == "text":
        levels = levels_of(text_in(array))
        return Labels(levels.codes, list(levels.labels), order)
    if pa.types.is_null(array.type):
        return Labels(np.full(len(array), -1, dtype=np.intp), [])
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return replace(labels_of(pa.chunked_array([array]), len(array)), order=order)


def decoded(array: Any, name: str, before: dict[str, tuple[int, int]] | None = None) -> Any:
    """Return an array or a chunked array without its dictionary; refuse what becomes huge by that.

    A file can hold a long text once, and refer to it from every row. ``before`` counts the bytes of
    arrays that are held together, decoded and stored, by the name of their column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind_of(array.type) == "text":
        size, stored = (before or {}).get(name, (0, 0))
        for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
            lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
            size += pc.sum(lengths.take(chunk.indices)).as_py() or 0
            stored += chunk.nbytes
        if size > max(_DECODED, _DECODED_PER_BYTE * stored):
            raise DataError(
                f"column {quoted(name)} holds {size:,} bytes of text or more, most of it the same: "
                "leave the column out, or make its texts shorter"
            )
        if before is not None:
            before[name] = size, stored
    return array.cast(array.type.value_type)


def groups_of(array: Any, name: str) -> NDArray[Any]:
    """Return labels of any type that can be sorted; None (or NaN) where null."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = decoded(array, name)
    if array.null_count and pa.types.is_integer(array.type):
        # As floats, large labels would lose their last digits.
        return np.array(array.to_pylist(), dtype=object)
    return np.asarray(array.to_numpy(zero_copy_only=False))


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
    return pa.schema([decided.field(name) for name, (_, decided) in deciding.items()])


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


DECLARED = {b"heckmanfa.levels": b"declared"}
"""metadata of a field that was a category of pandas, which its type may not say"""


ROW_LABELS = "__index_level_"
"""how the names of columns begin in which pandas keeps its row labels"""


def tidy_columns(stored: Sequence[str], what: Any) -> dict[str, str]:
    """Return the columns of a table by their tidy names, without the row labels of pandas."""
    kept = [name for name in stored if not name.startswith(ROW_LABELS)]
    return dict(zip(tidy_names(kept, what), kept, strict=True))


def tidy_schema(
    raw: Any,
    names: Mapping[str, str],
    declared: Iterable[str] = (),
    what: Any = "the table",
) -> Any:
    """Return a schema under tidy names, which are the keys of ``names``.

    A category of pandas declares the order of its levels, which Arrow's type does not say; so do
    the columns ``declared``, such as an ENUM of DuckDB.
    """
    import pyarrow as pa

    ordered = {*declared} | pandas_categories(raw, what)
    fields = []
    for name, stored in names.items():
        field = raw.field(stored).with_name(name)
        fields.append(field.with_metadata(DECLARED) if stored in ordered else field)
    return pa.schema(fields)


def was_category(field: Any) -> bool:
    """Whether pandas wrote a field as a category."""
    return DECLARED.items() <= (field.metadata or {}).items()

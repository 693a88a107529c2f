"""What the columns of record batches are, and their values as NumPy and pandas hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import FALSE_WORDS, TRUE_WORDS, Time, levels_of
from heckmanfa.data.outcome_classes import Labels, labels_of, order_in_arrow
from heckmanfa.errors import DataError, InputError
from heckmanfa.text.printable import quoted

FLAGS = "true and false, 0 and 1, or words such as yes and no"
"""what says who is selected"""

# Bytes of text that rows may share, whatever is stored; and how many for each byte that is.
_DECODED, _DECODED_PER_BYTE = 2**28, 64

ColumnKind = Literal["number", "text", "date", "empty", "other"]


def kind_of(stored: Any) -> ColumnKind:
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
    tests: dict[ColumnKind, tuple[Any, ...]] = {
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


def flags_of(array: Any, name: str) -> Floats:
    """Return who is selected as 1 and 0, from booleans, numbers, or words such as yes and no.

    Nulls are NaN. Other numbers stay as they are; other words are refused.
    """
    if kind_of(array.type) != "text":
        return floats_of(array)
    found = levels_of(text_in(array))
    words = [label.lower() for label in found.labels]
    known = TRUE_WORDS | FALSE_WORDS
    odd = next((label for label in found.labels if label.lower() not in known), None)
    if odd is not None:
        raise InputError(
            f"selected names the column {quoted(name)}, which must hold {FLAGS}; it holds "
            f"{quoted(odd)}"
        )
    value = np.array([1.0 if word in TRUE_WORDS else 0.0 for word in words] + [np.nan])
    return np.asarray(value[found.codes])


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
        found = levels_of(text_in(array))
        return Labels(found.codes, list(found.labels), order)
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

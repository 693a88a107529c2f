"""Which columns of a data frame in memory are categories, and the levels that they have.

``categorical_features`` follows scikit-learn's convention (`HistGradientBoostingRegressor`): by
default the types of the columns decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.columns.encoded_columns import EncodedColumns, to_pandas_column
from heckmanfa.data.columns.encoding import Encoding, refuse_same_names
from heckmanfa.data.columns.kinds import Column
from heckmanfa.data.columns.level_order import order_levels
from heckmanfa.data.columns.tally import TextTally
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted


def categories_by_type(frame: nw.DataFrame[Any]) -> dict[int, bool]:
    """Find the columns of a frame that are categories by their type.

    The values say whether the type itself is that of a category; the others are text.
    """
    found = {}
    for position, dtype in enumerate(frame.schema.values()):
        if dtype.is_numeric() or dtype == nw.Boolean or dtype.is_temporal():
            continue
        is_category = _is_category(frame[:, position])
        if is_category is not None:
            found[position] = is_category
    return found


def _is_category(series: nw.Series[Any]) -> bool | None:
    """Whether the type of a column is a category (True) or text (False); None if neither."""
    native, dtype = series.to_native(), series.dtype
    stored = getattr(native, "dtype", getattr(native, "type", None))
    stored = getattr(stored, "pyarrow_dtype", stored)
    if isinstance(stored, pd.CategoricalDtype) or isinstance(dtype, nw.Categorical | nw.Enum):
        return True
    if str(stored).startswith("dictionary<"):
        return True
    if isinstance(dtype, nw.String) or str(stored) == "string_view":
        return False
    is_text = (
        stored is np.dtype(object) and pd.api.types.infer_dtype(native, skipna=True) == "string"
    )
    return False if is_text else None


def _declares_levels(series: nw.Series[Any]) -> bool:
    """Whether a column declares its levels and their order, whatever rows it has."""
    native = series.to_native()
    stored: Any = getattr(native, "dtype", getattr(native, "type", None))
    stored = getattr(stored, "pyarrow_dtype", stored)
    if isinstance(stored, pd.CategoricalDtype):
        return True
    if str(stored).startswith("dictionary<"):
        return bool(stored.ordered)
    return isinstance(series.dtype, nw.Enum)


def learn_categories(
    frame: nw.DataFrame[Any], names: tuple[str, ...], categories: Mapping[int, bool]
) -> EncodedColumns:
    """Learn the levels of some columns, and return the frame encoded.

    ``names`` are those of all columns. The values of ``categories`` say which columns the user or a
    type declares as categories; the others are text, which is refused if it labels rows.
    """
    levels: dict[str, tuple[str, ...]] = {}
    codes: dict[str, NDArray[Any]] = {}
    plain = Encoding.plain(names)
    for position, is_declared in categories.items():
        name, series = names[position], frame[:, position]
        values = to_pandas_column(series)
        found = plain.levels_in(values, name)
        column = Column(
            name,
            "text",
            "category" if is_declared else None,
            declared=_declares_levels(series),
        )
        tally = column.start(capped=False)
        assert isinstance(tally, TextTally)
        tally.add_levels(found, values)
        kind = column.kind(tally)
        if not kind.is_feature and kind.kind != "constant":
            ways = "leave it out"
            if kind.can_override:
                ways += ", or name it in categorical_features to use it all the same"
            raise InputError(f"column {quoted(name)} {kind.reason}; {ways}")
        levels[name] = order_levels(tally)
        codes[name] = Encoding.plain([name], {name: levels[name]}).codes(found, name)
    encoding = Encoding.plain(names, levels)
    refuse_same_names(encoding.columns)
    return EncodedColumns(frame, encoding, codes=codes)

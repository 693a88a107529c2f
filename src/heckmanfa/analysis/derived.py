"""Columns of a table that are the square of another column, or the product of two others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckmanfa.data.columns.column_hints import MOST_ROWS, find_products
from heckmanfa.data.columns.encoding import Encoding


def derived_columns(X: pd.DataFrame, encoding: Encoding) -> dict[str, tuple[str, ...]]:
    """Find columns of numbers that follow from others; see `find_products`."""
    dummies = {column for columns in encoding.groups.values() for column in columns}
    names = [str(name) for name in X.columns if name not in dummies]
    # Of many rows, evenly spaced ones are read.
    step = max(len(X) // MOST_ROWS, 1)
    values = X[names].iloc[::step].to_numpy(dtype=np.float64)
    if encoding.missing == "mean":
        # An average that fills a gap follows from nothing.
        means = np.array(
            [encoding.means[name] if name in encoding.n_missing else np.nan for name in names]
        )
        values = values[~(values == means).any(axis=1)]
    return find_products(values, names)

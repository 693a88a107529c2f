"""The tables of Mai and Wu's paper as data, the experiments behind their rows, and two more tables.

A table is a list of rows (`printed`); a row names its data set (`protocol`), its experiment
(`experiments`) and the printed figures. Calling a table runs it.
"""

from __future__ import annotations

from heckmanfa.paper.printed import (
    TABLES,
    beyond,
    execution_times,
    initial_values,
    more_top_features,
    random_splits,
    sampling,
    selection_features,
    significance,
    top_features,
)
from heckmanfa.paper.protocol import Options, PaperTable

__all__ = [
    "BEYOND",
    "DETERMINISTIC",
    "TABLES",
    "Options",
    "PaperTable",
    "beyond",
    "execution_times",
    "initial_values",
    "more_top_features",
    "random_splits",
    "sampling",
    "selection_features",
    "significance",
    "top_features",
]

BEYOND = tuple(name for name, table in TABLES.items() if not table.is_printed)
"""The tables that the paper does not have."""

DETERMINISTIC = tuple(name for name, table in TABLES.items() if table.is_deterministic)
"""The tables with rows that depend on neither a seed nor a machine."""

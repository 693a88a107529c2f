"""The paper, reproduced: a module for each table, and what lies beyond them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from heckmanfa.paper.beyond import beyond, random_splits
from heckmanfa.paper.execution_times import execution_times
from heckmanfa.paper.initial_values import initial_values
from heckmanfa.paper.more_top_features import more_top_features
from heckmanfa.paper.request import Options
from heckmanfa.paper.sampling import sampling
from heckmanfa.paper.selection_features import selection_features
from heckmanfa.paper.significance import significance
from heckmanfa.paper.top_features import top_features

__all__ = [
    "BEYOND",
    "DETERMINISTIC",
    "TABLES",
    "Options",
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

TABLES: dict[str, tuple[str, Callable[[Options | None], pd.DataFrame]]] = {
    "selfeatures": ("Features used for selection", selection_features),
    "sampling": ("Heckman-FA against the baselines", sampling),
    "topjfeats": ("Heckman-FA* against the baselines", top_features),
    "moretopj": ("Heckman-C against Heckman-FA*, over J", more_top_features),
    "testingmsespi0": ("Heckman-FA over T and c", initial_values),
    "significance": ("Paired t-tests over ten assignments", significance),
    "executiontimes": ("Heckman-FA over T and B, with seconds", execution_times),
    "beyond": ("Other methods on the paper's split", beyond),
    "splits": ("The same over random splits", random_splits),
}
"""Each table by its label in the paper: a title, and the function that reproduces it."""

BEYOND = ("beyond", "splits")
"""The tables that the paper does not have."""

DETERMINISTIC = ("selfeatures", "sampling", "topjfeats", "moretopj")
"""The tables that have rows which do not depend on a seed or a machine."""

"""Which features predict? Each search evaluates assignments and returns a `Search`, best first."""

from __future__ import annotations

from heckmanfa.search.best_subset.branch_and_bound import best_subset
from heckmanfa.search.choices import Choices, all_features
from heckmanfa.search.goal import Goal
from heckmanfa.search.searched import Search
from heckmanfa.search.strategies import correlations, rank, sample

__all__ = [
    "Choices",
    "Goal",
    "Search",
    "all_features",
    "best_subset",
    "correlations",
    "rank",
    "sample",
]

"""Which assignment? Strategies that look at assignments and return a `Search`, best first."""

from __future__ import annotations

from heckmanfa.choices import Choices, all_features
from heckmanfa.extraction.best_subset import best_subset
from heckmanfa.extraction.criteria import Goal
from heckmanfa.extraction.rank import correlations, rank
from heckmanfa.extraction.sample import sample
from heckmanfa.extraction.search import Search

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

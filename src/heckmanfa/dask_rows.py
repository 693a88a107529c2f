"""Rows in the partitions of a Dask collection, on whatever cluster is active."""

from __future__ import annotations

from typing import Any

from heckmanfa.parts import Home

__all__ = ["home_of"]


def home_of(X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any) -> Home:
    """Return the home of a Dask DataFrame or Array of features and what goes with it."""
    raise NotImplementedError

"""Averages over assignments: each assignment weighs exp(-criterion / 2), and none is chosen.

Up to 22 units, every assignment is evaluated; beyond that, a Gibbs sampler visits them.
"""

from __future__ import annotations

from heckmanfa.search.averaging.averages import average, imr_shares
from heckmanfa.search.averaging.result import Average, ImrShares
from heckmanfa.search.averaging.weights import KINDS, Kind, Weighting

__all__ = ["KINDS", "Average", "ImrShares", "Kind", "Weighting", "average", "imr_shares"]

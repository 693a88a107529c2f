"""Averages over assignments: each assignment weighs exp(-criterion / 2), and none is chosen.

All follow from one `Form`. Up to 22 units, every assignment is evaluated; beyond that, a Gibbs
sampler visits them.
"""

from __future__ import annotations

from heckmanfa.search.averaging.averages import average
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.averaging.weights import WEIGHT_CRITERIA, WeightCriterion, Weighting

__all__ = ["WEIGHT_CRITERIA", "Average", "WeightCriterion", "Weighting", "average"]

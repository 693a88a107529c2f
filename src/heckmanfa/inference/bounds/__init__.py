"""Bounds without a model: what the rows say of a number if little or nothing is assumed.

``from heckmanfa import bounds`` gives this package. `mean`, `share`, `quantile`, `difference`,
`effect` and `projection` are worst-case bounds (Manski): a missing outcome may be anything in its
range. `lee` trims a treatment's effect, and `monotone_instrument` uses a column along which the
mean does not fall. Rows are read in memory; columns of Dask are computed. Each returns a `Bounds`.
"""

from __future__ import annotations

from heckmanfa.inference.bounds.averages import difference, effect, mean, share
from heckmanfa.inference.bounds.instruments import monotone_instrument
from heckmanfa.inference.bounds.regressions import projection, quantile
from heckmanfa.inference.bounds.trimming import lee
from heckmanfa.results.bound_table import Bounds

__all__ = [
    "Bounds",
    "difference",
    "effect",
    "lee",
    "mean",
    "monotone_instrument",
    "projection",
    "quantile",
    "share",
]

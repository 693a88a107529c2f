"""heckmanfa: the Heckman selection model, and which features predict and which only select."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heckmanfa import assignment
    from heckmanfa.baselines import InverseProbabilityWeighted, NaiveOLS
    from heckmanfa.compressed import Compressed, compress
    from heckmanfa.estimators import Heckman
    from heckmanfa.homes.parquet import predict_parquet, scan_parquet
    from heckmanfa.lasso import HeckmanLasso
    from heckmanfa.ru import RURegressor
    from heckmanfa.searches import HeckmanBestSubset, HeckmanFA
    from heckmanfa.tensors import to_device

__version__ = "0.1.0"

__all__ = [
    "Compressed",
    "Heckman",
    "HeckmanBestSubset",
    "HeckmanFA",
    "HeckmanLasso",
    "InverseProbabilityWeighted",
    "NaiveOLS",
    "RURegressor",
    "__version__",
    "assignment",
    "compress",
    "predict_parquet",
    "scan_parquet",
    "to_device",
]

# Names load on first use, so that importing the package is quick.
_HOMES = {
    "Heckman": "heckmanfa.estimators",
    "HeckmanBestSubset": "heckmanfa.searches",
    "HeckmanFA": "heckmanfa.searches",
    "HeckmanLasso": "heckmanfa.lasso",
    "InverseProbabilityWeighted": "heckmanfa.baselines",
    "NaiveOLS": "heckmanfa.baselines",
    "RURegressor": "heckmanfa.ru",
    "Compressed": "heckmanfa.compressed",
    "compress": "heckmanfa.compressed",
    "predict_parquet": "heckmanfa.homes.parquet",
    "scan_parquet": "heckmanfa.homes.parquet",
    "to_device": "heckmanfa.tensors",
}


def __getattr__(name: str) -> Any:
    if name == "assignment":
        return import_module("heckmanfa.assignment")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'heckmanfa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

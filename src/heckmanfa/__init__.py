"""heckmanfa: the Heckman selection model, and which features predict and which select."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heckmanfa.analysis.model_file import load, save
    from heckmanfa.analysis.prediction_batches import predict_batches, predict_parquet
    from heckmanfa.data.columns.feature_reading import to_device
    from heckmanfa.data.scan.scanning import scan, scan_parquet
    from heckmanfa.data.survey import Survey
    from heckmanfa.estimators.averaged import HeckmanAverage, HeckmanProbitAverage
    from heckmanfa.estimators.baselines import InverseProbabilityWeighted, NaiveOLS
    from heckmanfa.estimators.heckman import Heckman
    from heckmanfa.estimators.heckman_ordered import HeckmanOrdered
    from heckmanfa.estimators.heckman_probit import HeckmanProbit
    from heckmanfa.estimators.probit_searches import HeckmanProbitBestSubset
    from heckmanfa.estimators.ru import RURegressor
    from heckmanfa.estimators.searches import HeckmanBestSubset, HeckmanFA, HeckmanLasso
    from heckmanfa.estimators.treatment import TreatmentModel
    from heckmanfa.model.compressed import Compressed, compress
    from heckmanfa.search import training as assignment

__version__ = "0.1.0"

__all__ = [
    "Compressed",
    "Heckman",
    "HeckmanAverage",
    "HeckmanBestSubset",
    "HeckmanFA",
    "HeckmanLasso",
    "HeckmanOrdered",
    "HeckmanProbit",
    "HeckmanProbitAverage",
    "HeckmanProbitBestSubset",
    "InverseProbabilityWeighted",
    "NaiveOLS",
    "RURegressor",
    "Survey",
    "TreatmentModel",
    "__version__",
    "assignment",
    "compress",
    "load",
    "predict_batches",
    "predict_parquet",
    "save",
    "scan",
    "scan_parquet",
    "to_device",
]

# Where each name is defined. Names load on first use, so importing the package is fast.
_MODULES = {
    "Heckman": "heckmanfa.estimators.heckman",
    "HeckmanAverage": "heckmanfa.estimators.averaged",
    "HeckmanBestSubset": "heckmanfa.estimators.searches",
    "HeckmanFA": "heckmanfa.estimators.searches",
    "HeckmanLasso": "heckmanfa.estimators.searches",
    "HeckmanOrdered": "heckmanfa.estimators.heckman_ordered",
    "HeckmanProbit": "heckmanfa.estimators.heckman_probit",
    "HeckmanProbitAverage": "heckmanfa.estimators.averaged",
    "HeckmanProbitBestSubset": "heckmanfa.estimators.probit_searches",
    "InverseProbabilityWeighted": "heckmanfa.estimators.baselines",
    "NaiveOLS": "heckmanfa.estimators.baselines",
    "RURegressor": "heckmanfa.estimators.ru",
    "TreatmentModel": "heckmanfa.estimators.treatment",
    "Survey": "heckmanfa.data.survey",
    "Compressed": "heckmanfa.model.compressed",
    "compress": "heckmanfa.model.compressed",
    "load": "heckmanfa.analysis.model_file",
    "predict_batches": "heckmanfa.analysis.prediction_batches",
    "predict_parquet": "heckmanfa.analysis.prediction_batches",
    "save": "heckmanfa.analysis.model_file",
    "scan": "heckmanfa.data.scan.scanning",
    "scan_parquet": "heckmanfa.data.scan.scanning",
    "to_device": "heckmanfa.data.columns.feature_reading",
}


def __getattr__(name: str) -> Any:
    if name == "assignment":
        return import_module("heckmanfa.search.training")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'heckmanfa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

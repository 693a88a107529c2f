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
    from heckmanfa.estimators.baselines import NaiveOLS
    from heckmanfa.estimators.doubly_robust import DoublyRobust
    from heckmanfa.estimators.etable import etable
    from heckmanfa.estimators.heckman import Heckman
    from heckmanfa.estimators.heckman_ordered import HeckmanOrdered
    from heckmanfa.estimators.heckman_probit import HeckmanProbit
    from heckmanfa.estimators.ordered_searches import (
        HeckmanOrderedAverage,
        HeckmanOrderedBestSubset,
    )
    from heckmanfa.estimators.probit_searches import HeckmanProbitBestSubset
    from heckmanfa.estimators.ru import RURegressor
    from heckmanfa.estimators.searches import HeckmanBestSubset, HeckmanFA, HeckmanLasso
    from heckmanfa.estimators.treatment import TreatmentModel
    from heckmanfa.estimators.treatment_searches import TreatmentAverage, TreatmentBestSubset
    from heckmanfa.estimators.weighted import InverseProbabilityWeighted
    from heckmanfa.inference import bounds
    from heckmanfa.model.compressed import Compressed, compress
    from heckmanfa.search import training as assignment

__version__ = "0.1.0"

__all__ = [
    "Compressed",
    "DoublyRobust",
    "Heckman",
    "HeckmanAverage",
    "HeckmanBestSubset",
    "HeckmanFA",
    "HeckmanLasso",
    "HeckmanOrdered",
    "HeckmanOrderedAverage",
    "HeckmanOrderedBestSubset",
    "HeckmanProbit",
    "HeckmanProbitAverage",
    "HeckmanProbitBestSubset",
    "InverseProbabilityWeighted",
    "NaiveOLS",
    "RURegressor",
    "Survey",
    "TreatmentAverage",
    "TreatmentBestSubset",
    "TreatmentModel",
    "__version__",
    "assignment",
    "bounds",
    "compress",
    "etable",
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
    "DoublyRobust": "heckmanfa.estimators.doubly_robust",
    "Heckman": "heckmanfa.estimators.heckman",
    "HeckmanAverage": "heckmanfa.estimators.averaged",
    "HeckmanBestSubset": "heckmanfa.estimators.searches",
    "HeckmanFA": "heckmanfa.estimators.searches",
    "HeckmanLasso": "heckmanfa.estimators.searches",
    "HeckmanOrdered": "heckmanfa.estimators.heckman_ordered",
    "HeckmanOrderedAverage": "heckmanfa.estimators.ordered_searches",
    "HeckmanOrderedBestSubset": "heckmanfa.estimators.ordered_searches",
    "HeckmanProbit": "heckmanfa.estimators.heckman_probit",
    "HeckmanProbitAverage": "heckmanfa.estimators.averaged",
    "HeckmanProbitBestSubset": "heckmanfa.estimators.probit_searches",
    "InverseProbabilityWeighted": "heckmanfa.estimators.weighted",
    "NaiveOLS": "heckmanfa.estimators.baselines",
    "RURegressor": "heckmanfa.estimators.ru",
    "TreatmentAverage": "heckmanfa.estimators.treatment_searches",
    "TreatmentBestSubset": "heckmanfa.estimators.treatment_searches",
    "TreatmentModel": "heckmanfa.estimators.treatment",
    "Survey": "heckmanfa.data.survey",
    "Compressed": "heckmanfa.model.compressed",
    "compress": "heckmanfa.model.compressed",
    "etable": "heckmanfa.estimators.etable",
    "load": "heckmanfa.analysis.model_file",
    "predict_batches": "heckmanfa.analysis.prediction_batches",
    "predict_parquet": "heckmanfa.analysis.prediction_batches",
    "save": "heckmanfa.analysis.model_file",
    "scan": "heckmanfa.data.scan.scanning",
    "scan_parquet": "heckmanfa.data.scan.scanning",
    "to_device": "heckmanfa.data.columns.feature_reading",
}
_PACKAGES = {
    "assignment": "heckmanfa.search.training",
    "bounds": "heckmanfa.inference.bounds",
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(_PACKAGES[name])
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'heckmanfa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""A question about a table and its answer: loading, fitting, comparing methods, model files."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heckmanfa.analysis.asking import analyse
    from heckmanfa.analysis.comparison import Comparison, compare_methods
    from heckmanfa.analysis.loading import load, prepare
    from heckmanfa.analysis.model_file import Saved, load_model, save_model
    from heckmanfa.analysis.pipeline import Analysis
    from heckmanfa.analysis.prediction_batches import predict_batches, predict_parquet
    from heckmanfa.analysis.prepared import Prepared
    from heckmanfa.analysis.request import SEARCHES, Question
    from heckmanfa.analysis.table_check import TableCheck, check_table

__all__ = [
    "SEARCHES",
    "Analysis",
    "Comparison",
    "Prepared",
    "Question",
    "Saved",
    "TableCheck",
    "analyse",
    "check_table",
    "compare_methods",
    "load",
    "load_model",
    "predict_batches",
    "predict_parquet",
    "prepare",
    "save_model",
]

# Where each name is defined. Names load on first use, so the command line starts fast.
_MODULES = {
    "asking": ("analyse",),
    "comparison": ("Comparison", "compare_methods"),
    "loading": ("load", "prepare"),
    "model_file": ("Saved", "load_model", "save_model"),
    "pipeline": ("Analysis",),
    "prediction_batches": ("predict_batches", "predict_parquet"),
    "prepared": ("Prepared",),
    "request": ("SEARCHES", "Question"),
    "table_check": ("TableCheck", "check_table"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"heckmanfa.analysis.{module}"), name)
    raise AttributeError(f"module 'heckmanfa.analysis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

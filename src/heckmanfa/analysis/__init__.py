"""A question about a table answered: loading, fitting, comparing methods, model files."""

from __future__ import annotations

from heckmanfa.analysis.comparison import Comparison, compare_methods
from heckmanfa.analysis.model_file import Saved, load_model, save_model
from heckmanfa.analysis.parquet_predictions import predict_parquet
from heckmanfa.analysis.pipeline import (
    SEARCHES,
    Analysis,
    Prepared,
    Question,
    analyse,
    load,
    prepare,
)

__all__ = [
    "SEARCHES",
    "Analysis",
    "Comparison",
    "Prepared",
    "Question",
    "Saved",
    "analyse",
    "compare_methods",
    "load",
    "load_model",
    "predict_parquet",
    "prepare",
    "save_model",
]

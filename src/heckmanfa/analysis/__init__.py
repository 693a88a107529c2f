"""A question about a table and its answer: loading, fitting, comparing methods, model files."""

from __future__ import annotations

from heckmanfa.analysis.comparison import Comparison, compare_methods
from heckmanfa.analysis.loading import load, prepare
from heckmanfa.analysis.model_file import Saved, load_model, save_model
from heckmanfa.analysis.pipeline import Analysis, analyse
from heckmanfa.analysis.prepared import Prepared
from heckmanfa.analysis.request import SEARCHES, Question
from heckmanfa.analysis.streamed_predictions import predict_batches, predict_parquet

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
    "predict_batches",
    "predict_parquet",
    "prepare",
    "save_model",
]

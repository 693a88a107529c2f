"""Fits: `fit_model` combines the model and the search, and a `Fit` holds all results."""

from heckmanfa.fit.binary import BINARY
from heckmanfa.fit.family import Family
from heckmanfa.fit.fitted import Fit, Fitted, Origin, Spec
from heckmanfa.fit.linear import LINEAR
from heckmanfa.fit.making import (
    Choice,
    Choose,
    FirstStep,
    Inputs,
    PassedRows,
    compress_sample,
    fit_model,
    label_terms,
    sample_of,
)
from heckmanfa.fit.ordered import ORDERED
from heckmanfa.fit.series import SERIES
from heckmanfa.fit.student import SELECTION_T
from heckmanfa.fit.treatment import COMMON, SEPARATE
from heckmanfa.fit.way import Way, WayName, WayWords

__all__ = [
    "BINARY",
    "COMMON",
    "LINEAR",
    "ORDERED",
    "SELECTION_T",
    "SEPARATE",
    "SERIES",
    "Choice",
    "Choose",
    "Family",
    "FirstStep",
    "Fit",
    "Fitted",
    "Inputs",
    "Origin",
    "PassedRows",
    "Spec",
    "Way",
    "WayName",
    "WayWords",
    "compress_sample",
    "fit_model",
    "label_terms",
    "sample_of",
]

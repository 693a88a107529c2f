"""Fits: `fit_model` combines the model and the search, and a `Fit` holds all results."""

from heckmanfa.fit.binary import BINARY
from heckmanfa.fit.family import Family
from heckmanfa.fit.fitted import Choice, Choose, FirstStep, Fit, Fitted, Origin, Spec, label_terms
from heckmanfa.fit.from_sample import compress_sample, fit_model
from heckmanfa.fit.linear import LINEAR
from heckmanfa.fit.way import Way, WayName, WayWords

__all__ = [
    "BINARY",
    "LINEAR",
    "Choice",
    "Choose",
    "Family",
    "FirstStep",
    "Fit",
    "Fitted",
    "Origin",
    "Spec",
    "Way",
    "WayName",
    "WayWords",
    "compress_sample",
    "fit_model",
    "label_terms",
]

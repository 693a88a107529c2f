"""Fits: `fit_model` combines the model and the search, and a `Fit` holds all results."""

from heckmanfa.fit.fitted import Choice, Choose, Fit, Fitted, Origin, Spec, label_terms
from heckmanfa.fit.from_sample import compress_sample, fit_model

__all__ = [
    "Choice",
    "Choose",
    "Fit",
    "Fitted",
    "Origin",
    "Spec",
    "compress_sample",
    "fit_model",
    "label_terms",
]

"""Types of the options that the model and the rooms above it share."""

from __future__ import annotations

from typing import Literal

from sklearn.utils._param_validation import StrOptions

from heckmanfa.data.columns.encoding import Unknown as Unknown
from heckmanfa.data.outcome_scale import OutcomeTransform as OutcomeTransform

Method = Literal["two-step", "ml"]
"""how the model is estimated"""
OutcomeKind = Literal["linear", "binary"]
"""a number, or one of two classes"""
CovType = Literal["classical", "robust", "cluster"]
WeightKind = Literal["frequency", "sampling"]
OnProblem = Literal["error", "drop"]
"""what to do with collinear or separating columns"""
Standardize = bool | Literal["features"]
"""whether to centre and scale features and outcome, only the features, or nothing"""


def one_of(*choices: str) -> StrOptions:
    """Return scikit-learn's check of a parameter, whose message lists the choices in this order."""
    # A view of keys is a set that keeps its order.
    return StrOptions(dict.fromkeys(choices).keys())

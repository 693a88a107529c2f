"""Types of the options that the model and the rooms above it share."""

from __future__ import annotations

from typing import Literal

Method = Literal["two-step", "ml"]
"""how the model is estimated"""
OutcomeKind = Literal["linear", "binary"]
"""a number, or one of two classes"""
CovType = Literal["classical", "robust", "cluster"]
OutcomeTransform = Literal["log", "log1p"]
"""the scale that an outcome is fitted on; predictions are on its own"""
Unknown = Literal["error", "missing"]
"""what to do with a level of a category that the fit did not have"""
WeightKind = Literal["frequency", "sampling"]
OnProblem = Literal["error", "drop"]
"""what to do with collinear or separating columns"""
Standardize = bool | Literal["features"]
"""whether to centre and scale features and outcome, only the features, or nothing"""

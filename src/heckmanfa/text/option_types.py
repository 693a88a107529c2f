"""The words that options take, as types.

They are at the bottom of the package, and import nothing, so the command line starts fast.
"""

from __future__ import annotations

from typing import Literal

CovType = Literal["classical", "robust", "cluster", "survey"]
Criterion = Literal["adjusted_r2", "bic", "aic", "ebic", "corrected_bic"]
Errors = Literal["normal", "t"]
"""the joint distribution of the errors"""
InterceptAt = Literal["at infinity"]
"""where a series identifies the intercept of the outcome"""
Method = Literal["two-step", "ml", "series"]
"""how the model is estimated"""
Missing = Literal["drop", "mean"]
"""what to do with rows that lack a feature"""
OnProblem = Literal["error", "drop"]
"""what to do with collinear or separating columns"""
OutcomeTransform = Literal["log", "log1p"]
"""the scale that an outcome is fitted on; predictions are on its own"""
Regimes = Literal["common", "separate"]
"""whether treated and untreated share the equation of their outcome"""
Search = Literal["average", "best-subset", "fa", "fa-star", "correlation", "lasso", "none"]
"""how prediction features are found"""
SearchIn = Literal["prediction", "both"]
"""which equations a search may leave features out of"""
ReplicateKind = Literal["brr", "jackknife", "bootstrap"]
"""how the replicate weights of a survey were made"""
SinglePsu = Literal["error", "certainty", "centered"]
"""what to do with strata of a survey that have a single primary sampling unit"""
Standardize = bool | Literal["features"]
"""whether to centre and scale features and outcome, only the features, or nothing"""
Under = Literal["se", "interval", "t", "p"]
"""what stands under an estimate in a table of models"""
Unit = Literal["days", "years"]
"""unit of dates that become numbers"""
WildWeights = Literal["rademacher", "webb"]
"""what a wild bootstrap multiplies scores by: -1 and 1, or Webb's six points"""
WeightKind = Literal["frequency", "sampling"]

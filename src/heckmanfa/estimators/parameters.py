"""What every parameter of an estimator may be; a name means the same in all of them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval

from heckmanfa.estimators.fitting import one_of
from heckmanfa.search.averaging.weights import CORRECTIONS, WEIGHTINGS
from heckmanfa.text.wording import CRITERIA

_COLUMNS = ["array-like", None]
_AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_CORRELATION = Interval(Real, -1, 1, closed="neither")

PARAMETERS: dict[str, list[Any]] = {
    # Of every model.
    "prediction_features": _COLUMNS,
    "selection_features": _COLUMNS,
    "method": [one_of("two-step", "ml")],
    "cov_type": [one_of("classical", "robust", "cluster"), None],
    "weight_kind": [one_of("frequency", "sampling")],
    "on_collinear": [one_of("error", "drop")],
    "on_separation": [one_of("error", "drop")],
    "start": [_CORRELATION, "array-like", None],
    "rho": [_CORRELATION, None],
    "outcome_transform": [one_of("log", "log1p"), None],
    "categorical_features": ["array-like", one_of("from_dtype"), None],
    "reference": [dict, None],
    "unknown": [one_of("error", "missing")],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    # Of searches and averages.
    "rho_range": _COLUMNS,
    "always": _COLUMNS,
    "never": _COLUMNS,
    "max_features": [_AT_LEAST_ONE, None],
    "feature_groups": ["array-like", dict, None],
    "search_in": [one_of("prediction", "both")],
    "selection_always": _COLUMNS,
    "selection_never": _COLUMNS,
    "criterion": [one_of(*CRITERIA)],
    "honest": ["boolean"],
    "n_splits": [_AT_LEAST_ONE],
    "max_nodes": [_AT_LEAST_ONE, None],
    "tolerance": [_NOT_NEGATIVE, None],
    "n_refits": [_AT_LEAST_ONE],
    "power": [_NOT_NEGATIVE],
    "weights": [one_of(*WEIGHTINGS)],
    "all_features_share": [Interval(Real, 0, 1, closed="left")],
    "correction": [one_of(*CORRECTIONS)],
    # Of training.
    "extraction": [one_of("sample", "rank", "correlation")],
    "init_prob": [Interval(Real, 0, 1, closed="neither")],
    "epochs": [_AT_LEAST_ONE],
    "learning_rate": [_POSITIVE],
    "temperature": [_POSITIVE],
    "n_draws": [_AT_LEAST_ONE],
    "standardize": ["boolean", one_of("features")],
    "step_on": [one_of("log_pi", "pi")],
    "record_path": [Interval(Integral, 0, None, closed="left")],
    "train_rows": [_AT_LEAST_ONE, None],
    # Of baselines.
    "clip": [Interval(Real, 1, None, closed="left")],
    "gamma": [Interval(Real, 1, None, closed="left")],
    "batch_size": [_AT_LEAST_ONE, None],
}

"""Rows and models that tests of the other families share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from heckmanfa import Heckman, HeckmanOrdered, TreatmentModel

FEATURES = ["x1", "x2", "z"]
BOTH, DRIVING = ["x1", "x2"], ["x1", "z"]
MODELS: dict[str, Any] = {
    "treatment, common, two steps": TreatmentModel(BOTH, DRIVING),
    "treatment, separate, ML": TreatmentModel(BOTH, DRIVING, regimes="separate", method="ml"),
    "ordered": HeckmanOrdered(BOTH),
    "t errors": Heckman(BOTH, method="ml", errors="t"),
    "series": Heckman(BOTH, method="series", n_terms=2),
}
OUTCOMES = {"ordered": "rating"}
"""the outcome's column, if it is not "y" """


def outcome_of(name: str) -> str:
    """Return the column of a model's outcome; a treatment has one for everyone."""
    return "everyone" if name.startswith("treatment") else OUTCOMES.get(name, "y")


def rows(n: int = 700, seed: int = 1) -> pd.DataFrame:
    """Simulate features, outcomes of every kind, a treatment, weights and clusters."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=FEATURES)
    scale = np.sqrt(rng.chisquare(4, n) / 4)
    u, v = rng.normal(size=(2, n)) / scale
    e = 0.5 * u + np.sqrt(0.75) * v
    taken = 0.2 + 0.5 * table["x1"] + table["z"] + u > 0
    latent = 0.7 * table["x1"] - 0.5 * table["x2"] + e
    table["d"] = taken.astype(float)
    table["everyone"] = 1.0 + latent + 0.8 * taken * (1.0 + 0.3 * table["x1"])
    table["y"] = table["everyone"].where(taken)
    table["rating"] = pd.Series(np.digitize(latent, [-0.8, 0.2, 1.0]) + 1.0).where(taken)
    table["weight"] = rng.integers(0, 4, n).astype(float)
    table["team"] = rng.integers(0, 60, n)
    return table


def fitted(name: str, table: Any, *, X: Any = None, **options: Any) -> Any:
    """Fit a model to a table; ``options`` name columns of weights and clusters, or parameters."""
    roles = {
        role: table[options.pop(role)] for role in ("sample_weight", "groups") if role in options
    }
    if name.startswith("treatment"):
        roles["treated"] = table["d"]
    model = clone(MODELS[name]).set_params(**options)
    return model.fit(table[FEATURES] if X is None else X, table[outcome_of(name)], **roles)

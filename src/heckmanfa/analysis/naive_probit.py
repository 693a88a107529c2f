"""The probit of selected rows alone, which comparisons of binary outcomes start from."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.estimators.heckman_probit import HeckmanProbit


class NaiveProbit(BaseEstimator):
    """A probit of the selected rows, without a correction for selection."""

    def fit(self, X: pd.DataFrame, y: Floats, *, selected: Mask, sample_weight: Any = None) -> Self:
        """Fit the rows that are selected and have an outcome, NaN in y where it is missing."""
        kept = selected & ~np.isnan(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)[kept]
        self.model_ = HeckmanProbit(on_collinear="drop").fit(
            X.loc[kept], y[kept], sample_weight=weight
        )
        return self

    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return the probabilities of both classes, (n, 2), for anyone."""
        return np.asarray(self.model_.predict_proba(X))

    @property
    def coef_(self) -> Floats:
        """Coefficients, (K,)."""
        return np.asarray(self.model_.coef_)

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return float(self.model_.intercept_)

    @property
    def support_(self) -> Mask:
        """Which columns predict, (K,)."""
        return np.asarray(self.model_.support_)

    @property
    def prediction_features_(self) -> list[Any]:
        """Names of the columns that predict."""
        return list(self.model_.prediction_features_)

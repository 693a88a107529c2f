"""Features as large as a double can be are predicted, without a warning of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from heckmanfa import Heckman


@pytest.mark.parametrize("interval", ["confidence", "prediction"])
@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected"])
def test_limits_of_the_largest_features_are_infinite(kind, interval):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 2] + rng.normal(size=200) > 0, X[:, 0] + rng.normal(size=200), np.nan)
    model = Heckman([0, 1]).fit(X, y)
    rows = X[:2].copy()
    rows[0, 0] = 1e308
    _, ends = model.predict(rows, kind=kind, return_interval=interval)
    assert not np.isfinite(ends[0]).any()
    np.testing.assert_allclose(
        ends[1], model.predict(X[1:2], kind=kind, return_interval=interval)[1][0], rtol=1e-9
    )

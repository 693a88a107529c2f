"""Units, origins and orders say nothing about treatments, ordered outcomes, tails and series."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.siblings import FEATURES, MODELS, fitted, rows


@functools.cache
def _model(name: str) -> Any:
    return fitted(name, rows())


def _by_term(model: Any) -> pd.DataFrame:
    """Estimates and standard errors; an equation's slopes are found by the names of features."""
    return model.tidy().set_index(["equation", "term"])[["estimate", "std_error"]]


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_rows_and_columns_does_not_matter(name: str) -> None:
    table = rows()
    mixed = table.iloc[np.random.default_rng(3).permutation(len(table))]
    again = _by_term(fitted(name, mixed, X=mixed[FEATURES[::-1]]))
    own = _by_term(_model(name))
    np.testing.assert_allclose(again.loc[own.index], own, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_units_and_origins_of_features_scale_their_slopes_alone(name: str) -> None:
    """In thousandths, and counted from elsewhere, a slope is a thousandth."""
    table = rows()
    X = table[FEATURES] * [1000.0, 0.01, 1.0] + [5.0, 0.0, -300.0]
    again, own = _by_term(fitted(name, table, X=X)), _by_term(_model(name))
    factor = pd.Series({"x1": 0.001, "x2": 100.0, "z": 1.0})
    slopes = own.index.get_level_values("term").isin(FEATURES)
    expected = own[slopes].mul(
        factor.reindex(own[slopes].index.get_level_values("term")).to_numpy(), axis=0
    )
    np.testing.assert_allclose(again[slopes], expected, rtol=1e-6)
    # What is neither a slope nor an intercept (s0 has that of a series) has no units of a feature.
    rest = ~slopes & ~own.index.get_level_values("term").isin(["Intercept", "s0"])
    assert rest.any()
    np.testing.assert_allclose(again[rest], own[rest], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_a_constant_added_to_the_outcome_moves_intercepts_alone(name: str) -> None:
    table = rows()
    shift = 1.0 if name == "ordered" else 25.0
    moved = table.assign(everyone=table["everyone"] + shift, y=table["y"] + shift)
    moved["rating"] += shift
    again, own = _by_term(fitted(name, moved)), _by_term(_model(name))
    changed = ~np.isclose(again["estimate"], own["estimate"], rtol=1e-6, atol=1e-9)
    terms = {pair for pair, is_changed in zip(own.index, changed, strict=True) if is_changed}
    intercepts = {pair for pair in own.index if pair[1] == "Intercept" and pair[0] != "selection"}
    # The classes of an ordered outcome have names, and a series has no intercept of its own.
    assert terms <= intercepts | {("errors", "s0")}
    np.testing.assert_allclose(again["std_error"], own["std_error"], rtol=1e-5, atol=1e-9)
    if name not in ("ordered", "series"):
        assert terms == intercepts

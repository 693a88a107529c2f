"""Honest estimates: choose on one half, estimate on the other, and take the median."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso, compress
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import InputError, NoFeasibleAssignmentError
from heckmanfa.inference.honest import Honest, _half

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


@pytest.fixture(scope="module")
def data():
    made = make_selection(900, 6, 3, strength=0.6, correlation=0.3, random_state=5)
    return pd.DataFrame(made.X.copy(), columns=list("abcdef")), made.y, made


@pytest.fixture(scope="module")
def model(data):
    X, y, _ = data
    return HeckmanBestSubset(honest=True, n_splits=21, random_state=0).fit(X, y)


def halves(X, y, splits, seed):
    """The halves that a fit with this seed makes."""
    entropy = [int(one) for one in np.random.default_rng(seed).integers(2**31, size=4)] + [1]
    rows = compress(X, y).rows
    for stream in np.random.SeedSequence(entropy).spawn(splits):
        yield _half(rows, np.random.default_rng(stream))


def test_each_split_is_a_search_in_one_half_and_a_fit_in_the_other(data, model):
    X, y, _ = data
    honest = model.honest_
    assert len(honest.estimates) == 21
    for place, half in enumerate(halves(X, y, 21, 0)):
        # Stratified: each half has half of the selected and half of the other rows.
        assert abs(np.count_nonzero(half & ~np.isnan(y)) - (~np.isnan(y)).sum() / 2) <= 0.5
        chosen = HeckmanBestSubset().fit(X[half], y[half]).prediction_features_
        other = Heckman(chosen).fit(X[~half], y[~half])
        inside = honest.support[place]
        assert [*X.columns[inside]] == chosen
        np.testing.assert_allclose(
            honest.estimates[place, 1:7][inside], other.coef_[inside], rtol=1e-7
        )
        errors = other.tidy().set_index(["equation", "term"])["std_error"]
        np.testing.assert_allclose(
            np.sqrt(honest.variances[place, 1:7][inside]), errors["prediction"][chosen], rtol=1e-7
        )
        assert honest.estimates[place, 8] == pytest.approx(other.rho_, rel=1e-7)


def test_the_model_holds_the_medians_over_the_splits(data, model):
    X, _, _ = data
    honest = model.honest_
    share = honest.support.mean(axis=0)
    assert np.array_equal(model.support_, share >= 0.5)
    for place in np.flatnonzero(model.support_):
        held = honest.support[:, place]
        assert model.coef_[place] == pytest.approx(np.median(honest.estimates[held, place + 1]))
    assert model.rho_ == pytest.approx(np.median(honest.estimates[:, 8]))
    table = model.tidy().set_index(["equation", "term"])
    told = honest.tidy().set_index("term")
    for name in model.prediction_features_:
        row = table.loc[("prediction", name)]
        assert row["std_error"] == pytest.approx(told.loc[name, "std_error"])
        assert row["ci_low"] == pytest.approx(told.loc[name, "ci_low"])
        assert told.loc[name, "quartile_low"] <= row["estimate"] <= told.loc[name, "quartile_high"]
    # Every median has a row: the intercept, each candidate, and the parameters of the errors.
    assert [*told.index] == ["Intercept", *X.columns, "imr", "rho", "sigma"]
    for place, term in enumerate(("imr", "rho", "sigma"), 7):
        assert told.loc[term, "estimate"] == pytest.approx(np.median(honest.estimates[:, place]))
    assert told.loc["sigma", "estimate"] == pytest.approx(model.sigma_)
    # The level of predictions is the median one at the average selected row.
    covariance = model.vcov().to_numpy()
    assert np.all(np.linalg.eigvalsh(covariance) > -1e-12)
    assert model.score(X, data[1]) > 0.2


def test_the_standard_error_lies_between_that_of_half_and_of_all_rows(model):
    told = model.honest_.tidy().set_index("term").loc[model.prediction_features_]
    single = told["split_std_error"]
    assert (told["std_error"] >= single / np.sqrt(2.0)).all()
    assert (told["std_error"] <= 1.1 * single).all()


def test_the_variance_of_the_median_follows_the_law_of_total_variance():
    # R estimates with a common part of variance 1 and parts of their own of variance 1: the
    # single variance is 2, that among splits 1, and of the median 1 + (pi / 2) / R.
    rng = np.random.default_rng(0)
    own = rng.standard_normal((400, 6))
    own = (own - own.mean(axis=0)) / own.std(axis=0, ddof=1)
    honest = Honest(
        labels=("a", "b"),
        names=("a", "b"),
        candidates=(0, 1),
        n_splits=400,
        estimates=own,
        variances=np.full((400, 6), 2.0),
        failures={},
    )
    np.testing.assert_allclose(honest.std_errors() ** 2, 1.0 + 0.5 * np.pi / 400, rtol=1e-12)


@pytest.mark.parametrize(
    "search",
    [
        HeckmanFA(epochs=40, n_draws=30, honest=True, n_splits=4, random_state=2),
        HeckmanLasso(honest=True, n_splits=4, random_state=2),
        HeckmanBestSubset(honest=True, n_splits=4, random_state=2, method="ml"),
        HeckmanBestSubset(honest=True, n_splits=4, random_state=2, cov_type="robust"),
    ],
)
def test_every_search_can_be_honest_and_is_reproducible(data, search):
    X, y, _ = data
    first = search.fit(X, y)
    estimates, table = first.honest_.estimates.copy(), first.tidy()
    second = search.fit(X, y)
    assert np.array_equal(estimates, second.honest_.estimates, equal_nan=True)
    known = table[table["equation"] != "errors"]
    assert known["std_error"].gt(0).all()
    if search.method == "ml":
        rho = table.set_index("term").loc["rho"]
        assert rho["std_error"] > 0
        assert -1 < rho["ci_low"] < rho["ci_high"] < 1


def test_groups_stay_whole(data):
    X, y, _ = data
    groups = np.arange(len(X)) // 10
    model = HeckmanBestSubset(honest=True, n_splits=3, random_state=1, cov_type="cluster")
    model.fit(X, y, groups=groups)
    assert len(model.honest_.estimates) == 3


def test_rho_is_tested_again_where_the_window_was_applied_to_the_other_half(data):
    X, y, made = data
    window = (made.rho - 0.4, made.rho + 0.4)
    plain = HeckmanBestSubset(rho_range=window).fit(X, y)
    assert np.isnan(plain.tidy().set_index("term").loc["imr", "p_value"])
    honest = HeckmanBestSubset(rho_range=window, honest=True, n_splits=9, random_state=0).fit(X, y)
    assert np.isfinite(honest.tidy().set_index("term").loc["imr", "p_value"])


def test_the_words_state_the_target_and_the_splits(model):
    assert "21 splits" in " ".join(str(model.summary()).split())
    assert "21 of 21" in str(model.honest_)
    assert "honest splits" in set(model.diagnostics(include=model.honest_).to_frame()["diagnostic"])
    splits = model.honest_.splits()
    assert len(splits) == 21
    assert {*splits["features"].iloc[0]} <= {*"abcdef"}


def test_splits_that_fail_are_counted_and_too_many_are_refused():
    frame = load_mroz()
    X = frame[["educ", "exper", "age", "kids5", "nwifeinc"]].head(60)
    X = X.assign(rare=(np.arange(60) == 7).astype(float) + (np.arange(60) == 21))
    y = frame["lwage"].head(60).where(np.arange(60) % 3 > 0)
    y.iloc[21] = np.nan
    search = HeckmanBestSubset(honest=True, n_splits=30, random_state=0)
    with pytest.raises(NoFeasibleAssignmentError, match=r"of 30 splits into halves.*times"):
        search.fit(X, y)
    fitted = search.set_params(on_separation="drop", on_collinear="drop").fit(X, y)
    counted = sum(fitted.honest_.failures.values()) + len(fitted.honest_.estimates)
    assert counted == 30
    with pytest.raises(InputError, match="n_splits"):
        HeckmanBestSubset(honest=True, n_splits=0).fit(X, y)


def test_an_honest_model_can_be_saved(model, data, reloaded):
    X, _, _ = data
    back = reloaded(model)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert str(back.honest_) == str(model.honest_)

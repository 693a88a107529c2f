"""What algebra says must not change, for random data (hypothesis)."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heckmanfa import Heckman
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.rows import ArrayRows
from heckmanfa.data.sample import read_sample
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import fit_selection, gather
from heckmanfa.model.likelihood import fit_likelihood
from heckmanfa.model.two_step import fit_two_step

K = 5
PREDICTION = [0, 1, 3]


def data(seed, n=250):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, K)) @ (np.eye(K) + 0.3 * rng.normal(size=(K, K)))
    u = rng.normal(size=n)
    s = X @ rng.uniform(0.3, 0.8, K) + 0.2 + u > 0
    e = 0.5 * u + np.sqrt(0.75) * rng.normal(size=n)
    return X, np.where(s, 1.0 + X[:, PREDICTION].sum(axis=1) + 1.5 * e, np.nan)


def fit(X, y, method="two-step", prediction=PREDICTION, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return Heckman(prediction, method=method, **options).fit(X, y)


def errors(model):
    return model.tidy()["std_error"].dropna().to_numpy()


seeds = st.integers(0, 10**6)
methods = st.sampled_from(["two-step", "ml"])
covariances = st.sampled_from([None, "robust"])


@given(seeds, methods, covariances)
def test_permuting_rows_changes_nothing(seed, method, cov_type):
    X, y = data(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    one = fit(X, y, method, cov_type=cov_type)
    other = fit(X[order], y[order], method, cov_type=cov_type)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(errors(other), errors(one), rtol=1e-6)


@given(seeds, methods)
def test_permuting_columns_permutes_coefficients(seed, method):
    X, y = data(seed)
    order = np.random.default_rng(seed).permutation(K)
    mask = np.isin(np.arange(K), PREDICTION)
    one, other = fit(X, y, method), fit(X[:, order], y, method, mask[order])
    np.testing.assert_allclose(other.coef_, one.coef_[order], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        other.selection_coef_, one.selection_coef_[order], rtol=1e-7, atol=1e-8
    )
    assert other.rho_ == pytest.approx(one.rho_, rel=1e-6, abs=1e-8)


@given(seeds, methods, st.lists(st.floats(-6, 6), min_size=K, max_size=K), st.floats(-100, 100))
def test_units_and_origins_of_features_do_not_matter(seed, method, powers, shift):
    X, y = data(seed)
    scale = 10.0 ** np.array(powers)
    one, other = fit(X, y, method), fit((X + shift) * scale, y, method)
    np.testing.assert_allclose(other.coef_ * scale, one.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        other.selection_coef_ * scale, one.selection_coef_, rtol=1e-5, atol=1e-7
    )
    slopes = [f"x{i}" for i in PREDICTION]
    ours, theirs = (
        m.tidy().set_index(["equation", "term"])["std_error"]["prediction"][slopes].to_numpy()
        for m in (other, one)
    )
    np.testing.assert_allclose(ours * scale[PREDICTION], theirs, rtol=1e-5)
    assert other.rho_ == pytest.approx(one.rho_, rel=1e-5, abs=1e-7)


@given(seeds, methods, st.floats(-1e4, 1e4), st.floats(-4, 4), st.booleans())
def test_an_affine_outcome_transforms_the_estimates(seed, method, a, power, negative):
    X, y = data(seed)
    b = 10.0**power * (-1 if negative else 1)
    one, other = fit(X, y, method), fit(X, a + b * y, method)
    np.testing.assert_allclose(other.coef_, b * one.coef_, rtol=1e-5, atol=1e-6 * abs(b))
    assert other.intercept_ == pytest.approx(a + b * one.intercept_, rel=1e-5, abs=1e-6 * abs(b))
    assert other.sigma_ == pytest.approx(abs(b) * one.sigma_, rel=1e-5)
    assert other.rho_ == pytest.approx(np.sign(b) * one.rho_, rel=1e-4, abs=1e-6)
    np.testing.assert_allclose(other.selection_coef_, one.selection_coef_, rtol=1e-6, atol=1e-7)
    if method == "ml":
        moved = one.log_likelihood_ - one.n_selected_ * np.log(abs(b))
        assert other.log_likelihood_ == pytest.approx(moved, rel=1e-8, abs=1e-6)


# Blocks of a few rows make many passes long; one example has blocks of one row.
@example(0, 1, "two-step")
@given(seeds, st.integers(20, 300), methods)
def test_the_size_of_blocks_does_not_matter(seed, block_rows, method):
    X, y = data(seed)
    fits = []
    for size in (None, block_rows):
        table = read_features(X, "Heckman")
        sample = read_sample(
            table,
            y,
            selected=None,
            sample_weight=None,
            groups=None,
            sampling=False,
            selection=range(K),
            prediction=range(K),
        )
        rows = sample.rows
        rows = ArrayRows(rows.source, rows.outcome, rows.selected, block_rows=size)
        names = table.labels(range(K))
        selection = fit_selection(rows, range(K), names)
        moments = gather(selection, range(K), names, sample.row_counts["selected"])
        kind = CovarianceKind("classical", False)
        result = fit_two_step(moments, selection.probit, PREDICTION, kind, rows)
        covariance, coef = result.covariance, result.coef
        if method == "ml":
            ml = fit_likelihood(moments, selection.probit, result, kind, rows)
            covariance, coef = ml.covariance, ml.coef
        fits.append((coef, np.sqrt(np.diag(covariance))))
    (one, one_error), (other, other_error) = fits
    # The design promises 1e-8 standard errors between backends; blocks are no worse.
    assert np.abs((one - other) / one_error[: len(one)]).max() < 1e-8
    np.testing.assert_allclose(other_error, one_error, rtol=1e-8)


@given(seeds, methods, st.floats(0.01, 1e4))
def test_sampling_weights_have_no_scale(seed, method, factor):
    X, y = data(seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    one, other = (
        Heckman(PREDICTION, method=method, weight_kind="sampling", cov_type="robust")
        for _ in range(2)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        one.fit(X, y, sample_weight=weight)
        other.fit(X, y, sample_weight=factor * weight)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(errors(other), errors(one), rtol=1e-6)
    assert other.bic_ == pytest.approx(one.bic_, rel=1e-9)

import itertools

import numpy as np
import pytest

from heckmanfa import compress
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError
from heckmanfa.model.normal import inverse_mills


@pytest.fixture(scope="module")
def compressed(simulated):
    return compress(simulated.X, simulated.y)


def by_hand(data, gamma, mask):
    """Algorithm 1 and Eqs. sigmasq and adjustedr2, row by row."""
    s = data.selected
    index = gamma[0] + data.X[s] @ gamma[1:]
    ratio = inverse_mills(index)
    y, m, j = data.y[s], s.sum(), mask.sum()
    design = np.column_stack([np.ones(m), data.X[s][:, mask], ratio])
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    residual = y - design @ beta
    sse = residual @ residual
    sigma2 = sse / m - beta[-1] ** 2 / m * np.sum(ratio * (-index) - ratio**2)
    r2 = 1 - sse / np.sum((y - y.mean()) ** 2)
    coef = np.zeros(data.X.shape[1])
    coef[mask] = beta[1:-1]
    return {
        "coef": coef,
        "intercept": beta[0],
        "imr_coef": beta[-1],
        "sse": sse,
        "sigma": np.sqrt(sigma2),
        "rho": beta[-1] / np.sqrt(sigma2),
        "r2": r2,
        "adjusted_r2": 1 - (1 - r2) * (m - 1) / (m - j - 1),
        "aic": m * np.log(sse / m) + 2 * (j + 2),
        "bic": m * np.log(sse / m) + (j + 2) * np.log(m),
        "n_features": j,
        "feasible": True,
    }


ALL_MASKS = np.array(list(itertools.product([False, True], repeat=6)))


def test_every_assignment_solved_from_the_factor_equals_a_fit_on_the_rows(compressed, simulated):
    batch = compressed.moments.solve(ALL_MASKS)
    for row, mask in enumerate(ALL_MASKS):
        one = compressed.moments.solve(mask)
        for name, value in by_hand(simulated, compressed.probit.coef, mask).items():
            np.testing.assert_allclose(getattr(one, name), value, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(getattr(batch, name)[row], value, rtol=1e-8, atol=1e-10)


def test_few_of_many_columns_are_solved_as_alone():
    data = make_selection(400, 40, 3, random_state=0)
    moments = compress(data.X, data.y).moments
    masks = np.random.default_rng(0).random((6, 40)) < 0.1
    masks[0], masks[1] = False, True
    batch = moments.solve(masks)
    assert moments.gram_is_safe
    for row, mask in enumerate(masks):
        alone = moments.solve(mask)
        np.testing.assert_allclose(batch.coef[row], alone.coef, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(batch.rho[row], alone.rho, rtol=1e-8)
        np.testing.assert_allclose(batch.sse[row], alone.sse, rtol=1e-10)


def test_a_badly_conditioned_batch_is_solved_by_qr(simulated):
    X = np.column_stack([simulated.X, simulated.X[:, 0] + 1e-5 * np.cos(np.arange(800))])
    moments = compress(X, simulated.y).moments
    assert not moments.gram_is_safe
    masks = np.ones((3, 7), dtype=bool)
    masks[1, 6] = masks[2, 0] = False
    batch = moments.solve(masks)
    for row, mask in enumerate(masks):
        np.testing.assert_allclose(batch.coef[row], moments.solve(mask).coef, rtol=1e-12)


def test_a_column_constant_among_the_selected_rows_is_infeasible_not_fatal(simulated):
    X = np.column_stack([simulated.X, np.where(simulated.selected, 0.0, simulated.X[:, 0] > 0.5)])
    moments = compress(X, simulated.y, selection_features=range(6)).moments
    masks = np.zeros((2, 7), dtype=bool)
    masks[:, 0] = True
    masks[1, 6] = True
    solved = moments.solve(masks)
    assert solved.feasible.tolist() == [True, False]
    assert np.isnan(solved.rho[1])
    assert np.isnan(moments.solve(masks[1]).adjusted_r2)


def test_frequency_weights_equal_repeated_rows(simulated):
    times = np.random.default_rng(0).integers(0, 4, len(simulated.y))
    weighted = compress(simulated.X, simulated.y, sample_weight=times).moments
    repeated = compress(
        np.repeat(simulated.X, times, axis=0), np.repeat(simulated.y, times)
    ).moments
    assert weighted.n_selected == repeated.n_selected
    one, other = weighted.solve(ALL_MASKS), repeated.solve(ALL_MASKS)
    for name in ("coef", "rho", "sigma", "adjusted_r2", "aic", "bic"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("what", [True, "features"])
def test_standardizing_changes_units_and_nothing_else(what, simulated):
    X = simulated.X * [1, 10, 100, 1, 1, 1] + [0, 5, -300, 0, 0, 0]
    y = 50 + 20 * simulated.y
    plain, standard = compress(X, y).moments, compress(X, y, standardize=what).moments
    one, other = plain.solve(ALL_MASKS), standard.solve(ALL_MASKS)
    for name in ("rho", "r2", "adjusted_r2"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-10)
    s = simulated.selected
    unit = y[s].std() if what is True else 1.0
    np.testing.assert_allclose(one.coef * X[s].std(axis=0) / unit, other.coef, rtol=1e-8, atol=1e-9)
    centred = next(iter(compress(X, y, standardize=what).rows.map(lambda b: b, columns=range(6))))
    np.testing.assert_allclose(centred.features[centred.selected].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(centred.features[centred.selected].std(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.ones(5, bool), np.ones(6), np.ones((2, 2, 6), bool)])
def test_assignments_of_the_wrong_form_are_refused(bad, compressed):
    with pytest.raises(InputError, match="assignments must be boolean with 6 entries"):
        compressed.moments.solve(bad)


def test_an_assignment_beyond_the_compressed_columns_is_refused(simulated):
    moments = compress(
        simulated.X, simulated.y, prediction_features=[0], selection_features=[0, 1]
    ).moments
    with pytest.raises(InputError, match="column 5 of X is not among the compressed features"):
        moments.solve(np.eye(6, dtype=bool)[5])


def test_compress_refuses_data_without_a_missing_outcome(simulated):
    with pytest.raises(InputError, match="outcome"):
        compress(simulated.X, simulated.complete_y)
    with pytest.raises(InputError, match="standardize"):
        compress(simulated.X, simulated.y, standardize="outcome")

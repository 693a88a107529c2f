"""Training of the assignment function: the recorded run, the paper's equations, and its edges."""

import signal

import numpy as np
import pytest

from heckmanfa import assignment, compress
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError, SearchWarning
from heckmanfa.model.normal import inverse_mills
from heckmanfa.search.choices import Choices, all_features


@pytest.fixture(scope="module")
def data():
    return make_selection(700, 5, 3, rho=0.5, correlation=0.4, random_state=3)


@pytest.fixture(scope="module")
def held(data):
    return compress(data.X, data.y)


def train(held, **options):
    return assignment.train(held.moments, held.rows, **{"epochs": 60, "random_state": 0, **options})


def test_a_recorded_run_of_the_published_code_is_followed_at_every_epoch(compas, recorded_training):
    run = recorded_training
    held = compress(compas.X, compas.y)
    trained = assignment.train(
        held.moments,
        held.rows,
        init_prob=float(run["init_prob"]),
        epochs=80,
        learning_rate=float(run["learning_rate"]),
        temperature=1.0,
        noise=run["gumbel"],
        record_path=1,
    )
    after = np.concatenate([run["log_pi_before"][1:], run["log_pi_final"][None]])
    assert trained.n_epochs == 80
    np.testing.assert_allclose(trained.path, np.exp(after[:, 1]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(trained.log_pi, run["log_pi_final"], rtol=0, atol=1e-6)


# The paper's equations. ---------------------------------------------------------------------------


def test_the_relaxation_is_a_softmax_that_becomes_the_draw_as_the_temperature_falls():
    rng = np.random.default_rng(0)
    log_pi = np.log(np.stack([1 - (pi := rng.uniform(0.1, 0.9, 6)), pi]))
    gumbel = rng.gumbel(size=(20, 2, 6))
    weights = np.exp((log_pi + gumbel) / 0.7)
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(assignment.relaxation(log_pi, gumbel, 0.7), expected, rtol=1e-12)
    cold = assignment.relaxation(log_pi, gumbel, 1e-4)[:, 1]
    np.testing.assert_allclose(cold, assignment.assign(log_pi, gumbel), atol=1e-6)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("q", [0, 1])
def test_eq_tildezpartial_equals_finite_differences(temperature, q):
    rng = np.random.default_rng(1)
    pi = rng.uniform(0.1, 0.9, (2, 6))
    gumbel = rng.gumbel(size=(2, 6))
    step = 1e-6
    moved = []
    for sign in (1.0, -1.0):
        other = pi.copy()
        other[q] += sign * step
        moved.append(assignment.relaxation(np.log(other), gumbel, temperature)[q])
    slope = assignment.relaxation_slope(np.log(pi), gumbel, temperature)[q]
    np.testing.assert_allclose(slope, (moved[0] - moved[1]) / (2 * step), rtol=1e-7)


def loss_with_relaxed_psi(data, held, mask, psi, loss):
    """The loss where assigned features are multiplied by psi and beta-hat stays as it is."""
    solved = held.moments.solve(mask)
    X, y = data.X[data.selected], data.y[data.selected]
    lam = inverse_mills(held.probit.coef[0] + X @ held.probit.coef[1:])
    fitted = solved.intercept + (X * psi) @ solved.coef + lam * solved.imr_coef
    return np.mean(np.abs(y - fitted) if loss == "mae" else (y - fitted) ** 2)


@pytest.mark.parametrize("columns", [[0], [1, 3], [0, 1, 2, 3, 4]])
def test_eq_lmaegrad_equals_finite_differences_with_beta_held_fixed(data, held, columns):
    mask = np.isin(np.arange(5), columns)
    gradient = assignment.psi_gradient(held.moments, held.rows, mask)
    step = 1e-7
    for k in range(5):
        move = np.where(np.arange(5) == k, step, 0.0)
        up = loss_with_relaxed_psi(data, held, mask, mask + move, "mae")
        down = loss_with_relaxed_psi(data, held, mask, mask - move, "mae")
        assert gradient[k] == pytest.approx((up - down) / (2 * step), abs=1e-6), k


def test_one_step_is_the_whole_of_eq_lmaegrad(data, held):
    gumbel = np.random.default_rng(5).gumbel(size=(2, 5))
    log_pi = np.log(np.stack([np.full(5, 0.4), np.full(5, 0.6)]))
    mask = assignment.assign(log_pi, gumbel)
    by_psi = assignment.psi_gradient(held.moments, held.rows, mask)
    slope = assignment.relaxation_slope(log_pi, gumbel, 2.0)[1]
    options = {"init_prob": 0.6, "temperature": 2.0, "learning_rate": 0.01, "noise": [gumbel]}
    printed = train(held, step_on="pi", **options)
    np.testing.assert_allclose(printed.inclusion_prob, 0.6 - 0.01 * by_psi * slope, rtol=1e-9)
    in_logs = train(held, **options)
    np.testing.assert_allclose(
        in_logs.log_pi[1], np.log(0.6) - 0.01 * by_psi * slope * 0.6, rtol=1e-9
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_of_the_mean_squared_error_is_zero_as_the_appendix_says(seed):
    rng = np.random.default_rng(seed)
    data = make_selection(300, 6, 3, rho=0.3, correlation=0.5, random_state=seed)
    held = compress(data.X + rng.normal(size=6), data.y)
    for _ in range(5):
        mask = rng.random(6) < 0.6
        by_psi = assignment.psi_gradient(held.moments, held.rows, mask, loss="mse")
        absolute = assignment.psi_gradient(held.moments, held.rows, mask)
        mse = held.moments.solve(mask).sse / held.moments.n_selected
        assert np.abs(by_psi).max() < 1e-12
        # The root of the mean squared error has this gradient over twice the root.
        assert np.abs(by_psi / (2 * np.sqrt(mse))).max() < 1e-12
        assert np.abs(absolute).max() > 1e-6 or not mask.any()


# What training promises. --------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(held):
    assert train(held).log_pi.tobytes() == train(held).log_pi.tobytes()
    assert train(held).log_pi.tobytes() != train(held, random_state=1).log_pi.tobytes()


def test_probabilities_add_up_to_one_and_stay_inside_whatever_the_step(held):
    trained = train(held, learning_rate=1e4, epochs=200, record_path=1)
    pi = np.exp(trained.log_pi)
    assert np.isfinite(trained.log_pi).all()
    assert np.all((pi > 0) & (pi < 1))
    np.testing.assert_allclose(pi.sum(axis=0), 1.0, rtol=1e-12)
    assert np.all((trained.path > 0) & (trained.path < 1))
    printed = train(held, learning_rate=1e4, epochs=200, step_on="pi")
    assert np.all((np.exp(printed.log_pi) > 0) & (np.exp(printed.log_pi) < 1))


def test_an_empty_assignment_makes_no_step(held):
    gumbel = np.zeros((2, 5))
    gumbel[0] = 50.0  # nothing is assigned
    trained = train(held, noise=[gumbel] * 3, record_path=1)
    np.testing.assert_allclose(trained.inclusion_prob, 0.75, rtol=1e-12)
    assert trained.n_epochs == 3
    assert trained.mae > 0


def test_the_path_is_recorded_at_intervals(held):
    trained = train(held, epochs=50, record_path=20)
    assert trained.path_epochs.tolist() == [20, 40]
    assert trained.path.shape == (2, 5)
    assert trained.path_mae.shape == (2,)
    again = train(held, epochs=40)
    np.testing.assert_array_equal(trained.path[1], again.inclusion_prob)
    assert train(held).path.shape == (0, 5)


def test_units_of_measurement_do_not_matter_when_standardized(data, held):
    other = compress(
        data.X * [1e3, 1.0, 1e-2, 5.0, 1.0] + [7.0, -3.0, 0.0, 1.0, 100.0], 40 * data.y
    )
    one, two = train(held, standardize=True), train(other, standardize=True)
    np.testing.assert_allclose(one.log_pi, two.log_pi, rtol=1e-8)


def test_standardizing_equals_training_on_standardized_data(data, held):
    for option in (True, "features"):
        other = compress(data.X, data.y, standardize=option)
        np.testing.assert_allclose(
            train(held, standardize=option).log_pi, train(other).log_pi, rtol=1e-8
        )


def test_weights_are_rows(data):
    weight = np.random.default_rng(2).integers(1, 4, len(data.y))
    repeated = compress(np.repeat(data.X, weight, axis=0), np.repeat(data.y, weight))
    weighted = compress(data.X, data.y, sample_weight=weight)
    np.testing.assert_allclose(train(weighted).log_pi, train(repeated).log_pi, rtol=1e-8)


def test_rows_that_are_not_held_give_the_same_training(held, monkeypatch):
    expected = train(held)
    monkeypatch.setattr("heckmanfa.search.training.gradient._HOLD_BYTES", 0)
    np.testing.assert_allclose(train(held).log_pi, expected.log_pi, rtol=1e-10)


@pytest.mark.parametrize("hold", [0, 2**29])
def test_the_bits_are_the_same_on_one_and_two_workers(hold, monkeypatch):
    monkeypatch.setattr("heckmanfa.search.training.gradient._HOLD_BYTES", hold)
    data = make_selection(60_000, 6, 3, random_state=0)
    held = compress(data.X, data.y)
    runs = []
    for workers in ("1", "2"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", workers)
        runs.append(train(held, epochs=10).log_pi.tobytes())
    assert runs[0] == runs[1]


def test_collinear_columns_train_without_a_wrong_step():
    data = make_selection(400, 4, 2, random_state=1)
    X = data.X.copy()
    X[data.selected, 3] = X[data.selected, 2]  # equal where the outcome is seen, and only there
    held = compress(X, data.y)
    trained = train(held, epochs=50)
    assert 0 < trained.n_unsolved < 50
    assert np.isfinite(trained.log_pi).all()


def test_groups_share_a_probability_and_forced_features_have_none(held):
    choices = Choices(5, always=(0,), units=((1, 4), (2,)), max_features=5)
    trained = train(held, choices=choices)
    pi = trained.inclusion_prob
    assert pi[0] == 1.0
    assert pi[3] == 0.0
    assert pi[1] == pi[4]
    assert 0 < pi[1] < 1
    gumbel = np.random.default_rng(0).gumbel(size=(2, 5))
    one_step = train(held, choices=choices, noise=[gumbel], init_prob=0.5).log_pi[1, 1]
    mask = np.array([True, *assignment.assign(np.log(np.full((2, 5), 0.5)), gumbel)[1:]])
    mask[4], mask[3] = mask[1], False
    by_psi = assignment.psi_gradient(held.moments, held.rows, mask)
    soft = assignment.relaxation(np.log(np.full((2, 5), 0.5)), gumbel)[1, 1]
    expected = np.log(0.5) - 0.1 * (by_psi[1] + by_psi[4]) * soft * (1 - soft)
    assert one_step == pytest.approx(expected, rel=1e-9)


def test_a_column_constant_among_the_selected_rows_is_never_assigned():
    data = make_selection(400, 4, 2, random_state=1)
    X = data.X.copy()
    X[data.selected, 2] = 1.0
    held = compress(X, data.y, selection_features=[0, 1, 3])
    assert train(held, epochs=10).inclusion_prob[2] == 0.0
    assert all_features(held.moments).columns == (0, 1, 2, 3)


def test_a_start_near_zero_or_one_is_warned_about(held):
    for init_prob in (0.01, 0.99):
        with pytest.warns(SearchWarning, match=f"init_prob is {init_prob}"):
            train(held, init_prob=init_prob, epochs=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"init_prob": 1.0}, "init_prob must lie between 0 and 1"),
        ({"step_on": "psi"}, "step_on must be"),
        ({"temperature": 0.0}, "must be positive"),
        ({"learning_rate": -1.0}, "must be positive"),
        ({"noise": [np.zeros((2, 4))]}, r"noise must yield arrays of shape \(2, 5\)"),
    ],
)
def test_what_cannot_be_trained_is_refused(held, options, words):
    with pytest.raises(InputError, match=words):
        train(held, **options)


def test_ctrl_c_ends_the_training_with_what_it_had(held):
    def noise():
        rng = np.random.default_rng(0)
        for epoch in range(1000):
            if epoch == 30:
                signal.raise_signal(signal.SIGINT)
            yield rng.gumbel(size=(2, 5))

    trained = train(held, epochs=1000, noise=noise())
    assert trained.interrupted
    assert trained.n_epochs == 30


def test_progress_reports_epochs_and_error(held):
    seen = []
    train(held, epochs=120, progress=lambda epoch, mae: seen.append((epoch, mae)))
    assert [epoch for epoch, _ in seen] == [50, 100]
    assert all(mae > 0 for _, mae in seen)

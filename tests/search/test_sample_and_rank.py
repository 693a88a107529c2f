"""Draws and ranks: what they evaluate, and how ties are broken."""

from dataclasses import replace

import numpy as np
import pytest

from heckmanfa import Heckman, compress
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError, NoFeasibleAssignmentError
from heckmanfa.search import Goal, correlations, rank, sample
from heckmanfa.search.choices import Choices, all_features, check_window
from heckmanfa.search.goal import first_of_ties
from heckmanfa.search.training import assign

NAMES = [f"x{column}" for column in range(6)]


@pytest.fixture(scope="module")
def data():
    return make_selection(600, 6, 3, rho=0.5, correlation=0.3, random_state=7)


@pytest.fixture(scope="module")
def moments(data):
    return compress(data.X, data.y).moments


def log_pi(*probabilities):
    pi = np.array(probabilities)
    return np.log(np.stack([1 - pi, pi]))


def sets(search):
    return [tuple(np.flatnonzero(mask)) for mask in search.masks]


def test_every_distinct_draw_is_evaluated_once_and_the_best_comes_first(moments):
    goal = Goal.of(moments, "bic")
    noise = np.random.default_rng(0).gumbel(size=(300, 2, 6))
    probabilities = log_pi(0.3, 0.5, 0.7, 0.5, 0.5, 0.6)
    found = sample(moments, all_features(moments), goal, probabilities, names=NAMES, noise=noise)
    scores = probabilities + noise
    drawn = {tuple(np.flatnonzero(mask)) for mask in scores[:, 1] > scores[:, 0]}
    assert set(sets(found)) == drawn
    assert found.n_assignments == len(drawn) == len(found.bic)
    assert found.n_in_range == len(drawn)
    assert np.all(np.diff(found.bic) >= -1e-9)
    for mask, bic, rho in zip(found.masks, found.bic, found.rho, strict=True):
        solved = moments.solve(mask)
        assert bic == pytest.approx(float(solved.bic), rel=1e-10)
        assert rho == pytest.approx(float(solved.rho), rel=1e-8)


def test_draws_follow_the_probabilities(moments):
    pi = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.5])
    inside = []
    for seed in range(40):
        noise = np.random.default_rng(seed).gumbel(size=(500, 2, 6))
        inside.append(assign(log_pi(*pi), noise).mean(axis=0))
    np.testing.assert_allclose(np.mean(inside, axis=0), pi, atol=0.015)


def test_the_window_decides_who_may_be_first_and_the_others_follow(moments):
    everything = sample(
        moments, all_features(moments), Goal.of(moments, "adjusted_r2"), log_pi(*[0.5] * 6),
        names=NAMES, n_draws=2000, random_state=0,
    )  # fmt: skip
    low, high = np.quantile(everything.rho, [0.4, 0.6])
    goal = Goal.of(moments, "adjusted_r2", (low, high))
    found = sample(
        moments, all_features(moments), goal, log_pi(*[0.5] * 6),
        names=NAMES, n_draws=2000, random_state=0,
    )  # fmt: skip
    inside = (everything.rho >= low) & (everything.rho <= high)
    assert found.n_assignments == everything.n_assignments
    assert found.n_in_range == inside.sum()
    assert found.in_range[: found.n_in_range].all()
    assert not found.in_range[found.n_in_range :].any()
    assert found.adjusted_r2[0] == pytest.approx(everything.adjusted_r2[inside].max())


def test_a_draw_is_cut_to_its_likeliest_features_and_forced_ones_stay(moments):
    choices = Choices(6, always=(3,), units=((0,), (1, 2), (4,), (5,)), max_features=3)
    goal = Goal.of(moments, "bic")
    found = sample(moments, choices, goal, log_pi(*[0.9] * 6), names=NAMES, random_state=1)
    assert found.n_features.max() == 3
    assert found.masks[:, 3].all()
    np.testing.assert_array_equal(found.masks[:, 1], found.masks[:, 2])
    noise = np.zeros((1, 2, 6))
    noise[0, 1] = [1.0, 0.5, 9.0, 0.0, 3.0, 2.0]  # a group has the noise of its first column
    one = sample(moments, choices, goal, log_pi(*[0.9] * 6), names=NAMES, noise=noise)
    assert sets(one) == [(3, 4, 5)]


def test_draws_that_are_all_empty_are_an_error_only_if_a_feature_must_predict(moments):
    choices, goal = all_features(moments), Goal.of(moments, "bic")
    options = {"names": NAMES, "n_draws": 20, "random_state": 0}
    found = sample(moments, choices, goal, log_pi(*[1e-9] * 6), **options)
    assert sets(found) == [()]
    choices = replace(choices, min_features=1)
    with pytest.raises(NoFeasibleAssignmentError, match="each of the 20 draws is empty"):
        sample(moments, choices, goal, log_pi(*[1e-9] * 6), **options)


def test_noise_of_the_wrong_shape_is_refused(moments):
    with pytest.raises(InputError, match=r"noise must have the shape \(B, 2, 6\)"):
        sample(
            moments, all_features(moments), Goal.of(moments, "bic"), log_pi(*[0.5] * 6),
            names=NAMES, noise=np.zeros((5, 6)),
        )  # fmt: skip


def test_a_recorded_extraction_of_the_published_code_finds_the_same_features(
    compas, recorded_training
):
    run = recorded_training
    held = compress(compas.X, compas.y)
    found = sample(
        held.moments,
        all_features(held.moments),
        Goal.of(held.moments, "adjusted_r2", (0.3, 0.5)),
        run["log_pi_final"].astype(float),
        names=[str(column) for column in range(10)],
        noise=run["extraction_gumbel"].astype(float),
    )
    assert tuple(run["extracted"]) == tuple(np.flatnonzero(found.best))
    solved = held.moments.solve(found.best)
    assert solved.sse / 2585 == pytest.approx(float(run["train_mse"]), rel=1e-5)
    model = Heckman(found.best).fit(compas.X, compas.y)
    error = np.mean((compas.y_test - model.predict(compas.X_test, kind="selected")) ** 2)
    assert error == pytest.approx(float(run["test_mse"]), rel=1e-5)


def test_rank_evaluates_the_top_j_for_every_j_but_all(moments):
    scores = np.array([0.3, 0.9, 0.9, 0.1, 0.5, 0.0])
    found = rank(moments, all_features(moments), Goal.of(moments, "bic"), scores, names=NAMES)
    assert sorted(sets(found), key=len) == [
        *[(), (1,), (1, 2), (1, 2, 4)],
        *[(0, 1, 2, 4), (0, 1, 2, 3, 4)],
    ]


def test_rank_moves_groups_as_one_and_keeps_forced_features(moments):
    choices = Choices(6, always=(5,), units=((0, 3), (1,), (2,)), max_features=4)
    scores = np.array([0.9, 0.5, 0.2, 0.9, 0.0, 0.0])
    found = rank(moments, choices, Goal.of(moments, "bic"), scores, names=NAMES)
    assert sorted(sets(found), key=len) == [(5,), (0, 3, 5), (0, 1, 3, 5)]


def test_a_single_feature_can_be_ranked(moments):
    choices = Choices(6, (), ((2,),), 1)
    found = rank(moments, choices, Goal.of(moments, "bic"), np.zeros(6), names=NAMES)
    assert sorted(sets(found)) == [(), (2,)]


def test_correlations_are_those_of_the_selected_rows(data, moments):
    X, y = data.X[data.selected], data.y[data.selected]
    expected = [abs(np.corrcoef(X[:, k], y)[0, 1]) for k in range(6)]
    np.testing.assert_allclose(correlations(moments, all_features(moments)), expected, rtol=1e-9)
    choices = Choices(6, (), ((0, 1), (2,)), 6)
    design = np.column_stack([np.ones(len(y)), X[:, :2]])
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    multiple = np.corrcoef(fitted, y)[0, 1]
    np.testing.assert_allclose(
        correlations(moments, choices), [multiple, multiple, expected[2], 0, 0, 0], rtol=1e-9
    )


def test_ties_go_to_fewer_features_then_to_the_first_column_in_which_they_differ():
    masks = np.array(
        [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0]], bool
    )
    loss = np.array([1.0, 1.0 + 1e-13, 1.0 - 1e-13, 1.0, 0.5, 2.0])
    assert first_of_ties(loss, masks).tolist() == [4, 3, 2, 1, 0, 5]
    # The order that they come in does not matter.
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(6)
        assert order[first_of_ties(loss[order], masks[order])].tolist() == [4, 3, 2, 1, 0, 5]


def test_criteria_are_the_textbook_ones(moments):
    mask = np.array([True, False, True, True, False, False])
    solved = moments.solve(mask)
    for criterion in ("adjusted_r2", "bic", "aic"):
        goal = Goal.of(moments, criterion)
        loss = goal.loss(solved.sse, solved.n_features)
        value = float(getattr(solved, criterion))
        assert float(goal.value(loss)) == pytest.approx(value, rel=1e-10)
        worse = float(goal.value(goal.within(float(loss), 0.5)))
        assert abs(worse - value) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ((0.5, 0.1), "low < high"),
        ((0.2, 0.2), "low < high"),
        ((-1.0, 0.5), r"inside \(-1, 1\)"),
        ((0.1, 1.5), r"inside \(-1, 1\)"),
        ((float("nan"), 0.5), r"inside \(-1, 1\)"),
        (0.3, "two numbers"),
        ((0.1, 0.2, 0.3), "two numbers"),
        (("a", "b"), "two numbers"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(window, words):
    with pytest.raises(InputError, match=words):
        check_window(window)

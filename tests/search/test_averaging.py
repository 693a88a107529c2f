"""Averages over assignments, against plain least squares on every one of them."""

import itertools
import re
import warnings
from math import comb

import numpy as np
import pytest

from heckmanfa import Heckman, compress
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    HeckmanfaWarning,
    InputError,
    NoFeasibleAssignmentError,
    SearchWarning,
)
from heckmanfa.model.normal import inverse_mills, mills
from heckmanfa.search import all_features
from heckmanfa.search.averaging import KINDS, average, averages, enumeration, gibbs, imr_shares
from heckmanfa.search.choices import Choices

WEIGHTINGS = ("aic", "bic", "ebic", "mean")


def criteria(sse, m, j, units, n_units, *, imr=1):
    """AIC in its small-sample form, BIC and EBIC."""
    p = j + 1 + imr
    fit = m * np.log(sse / m)
    bic = fit + p * np.log(m)
    return fit + 2 * p * m / (m - p - 1), bic, bic + 2 * np.log(comb(n_units, units))


def everything(X, y, weight, gamma, choices, window, *, imr=1):
    """Weigh every assignment by least squares on the selected rows: a row for each."""
    index = gamma[0] + X @ gamma[1:]
    lam, delta = inverse_mills(index), np.average(mills(index)[1], weights=weight)
    m, root = weight.sum(), np.sqrt(weight)
    total = np.sum(weight * (y - np.average(y, weights=weight)) ** 2)
    found = []
    for inside in itertools.product([False, True], repeat=len(choices.units)):
        held = [unit for unit, use in zip(choices.units, inside, strict=True) if use]
        columns = sorted([*choices.always, *itertools.chain(*held)])
        j = len(columns)
        if j > choices.max_features or j > m / 3 or m <= j + 3:
            continue
        design = np.column_stack([np.ones(len(y)), X[:, columns], *([lam] * imr)])
        design, outcome = root[:, None] * design, root * y
        scale = np.linalg.norm(design, axis=0)
        beta, _, rank, _ = np.linalg.lstsq(design / scale, outcome, rcond=1e-12)
        if rank < design.shape[1]:
            continue
        sse = np.sum((outcome - design / scale @ beta) ** 2)
        beta = beta / scale
        slope = beta[-1] if imr else 0.0
        sigma = np.sqrt(sse / m + delta * slope**2)
        rho = slope / sigma
        if imr and window is not None and not window[0] <= rho <= window[1]:
            continue
        mask, coef = np.zeros(X.shape[1], dtype=bool), np.zeros(X.shape[1])
        mask[columns], coef[columns] = True, beta[1 : j + 1]
        adjusted = 1 - sse / total * (m - 1) / (m - j - 1)
        values = criteria(sse, m, j, len(held), len(choices.units), imr=imr)
        found.append((mask, coef, [beta[0], slope, rho, sigma, adjusted, abs(rho) >= 1], values))
    return [np.array(part, dtype=float) for part in zip(*found, strict=True)] if found else None


def relative(values):
    weight = np.exp(-0.5 * (values - values.min(axis=0)))
    return weight / weight.sum(axis=0)


def problem(seed):
    """A random problem: rows and their weights, forced and grouped features, a window."""
    rng = np.random.default_rng(seed)
    k = 10 if seed in (30, 61) else (1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 3, 8)[seed % 12]
    data = make_selection(
        int(rng.integers(40, 120)) + 10 * k,
        k,
        int(rng.integers(0, k + 1)),
        rho=rng.uniform(-0.8, 0.8),
        correlation=rng.choice([0.0, 0.5, 0.9]),
        strength=rng.uniform(0.3, 1.0),
        random_state=rng,
    )
    if k > 2 and seed % 7 == 0:  # nearly collinear columns
        data.X[:, 1] = data.X[:, 0] + 10.0 ** rng.uniform(-3, -1) * data.X[:, 1]
    units, always = [[column] for column in range(k)], ()
    if k > 3 and rng.random() < 0.4:
        units = [[0, k - 1], *([column] for column in range(1, k - 1))]
        if k > 6:
            units = [[0, k - 1], [2, 3, 4], [1], *([column] for column in range(5, k - 1))]
    if k > 2 and rng.random() < 0.3:
        always = tuple(units.pop(int(rng.integers(len(units)))))
    if k > 3 and rng.random() < 0.2:
        units.pop(int(rng.integers(len(units))))
    columns = len(always) + sum(len(unit) for unit in units)
    limit = columns if rng.random() < 0.7 else max(len(always), 1, columns // 2)
    choices = Choices(k, always, tuple(sorted(tuple(unit) for unit in units)), limit)
    window = None
    if seed % 3 == 0:
        middle = rng.uniform(-0.5, 0.5)
        window = (middle - rng.uniform(0.02, 0.5), middle + rng.uniform(0.02, 0.5))
    kind = seed // 4 % 3
    weight = np.ones(len(data.X))
    if kind == 1:
        weight = rng.integers(1, 4, size=len(data.X)).astype(float)
    if kind == 2:
        weight = rng.uniform(0.2, 3.0, size=len(data.X))
        weight /= weight.mean()
    return data, weight, choices, window, WEIGHTINGS[seed // 3 % 4]


def compressed(data, weight):
    """The moments of the selected rows; weights that are not integers are sampling weights."""
    if np.all(weight == np.round(weight)):
        return compress(data.X, data.y, sample_weight=weight).moments
    model = Heckman(weight_kind="sampling", cov_type="robust")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(data.X, data.y, sample_weight=weight).fit_.moments


@pytest.mark.parametrize("part", range(4))
def test_equals_brute_force_on_random_problems(part):
    for seed in range(part, 104, 4):
        data, weight, choices, window, weights = problem(seed)
        moments = compressed(data, weight)
        chosen = data.selected
        rows = data.X[chosen], data.y[chosen], weight[chosen]
        brute = everything(*rows, moments.probit.coef, choices, window)
        if brute is None:
            with pytest.raises(NoFeasibleAssignmentError, match="none of the "):
                average(moments, choices, weights=weights, rho_range=window)
            continue
        result = average(moments, choices, weights=weights, rho_range=window)
        masks, coef, others, values = brute
        by_kind = relative(values)
        own = by_kind[:, :2].mean(axis=1) if weights == "mean" else by_kind[:, KINDS.index(weights)]
        close = {"abs": 1e-10, "rel": 1e-10}
        for kind, column in zip(KINDS, by_kind.T, strict=True):
            assert result.shares[kind] == pytest.approx(column @ masks, **close), seed
            assert result.best_weight[kind] == pytest.approx(column.max(), **close)
            heaviest = np.cumsum(np.sort(column)[::-1])
            assert result.n_half[kind] == np.count_nonzero(heaviest < 0.5 - 1e-10) + 1
        assert result.n_assignments == len(masks)
        assert result.own_share == pytest.approx(own @ masks, **close)
        size = np.abs(coef).max() + 1.0
        assert result.coef == pytest.approx(own @ coef, rel=1e-9, abs=1e-10 * size), seed
        assert result.positive == pytest.approx(own @ (coef > 0), **close), seed
        assert result.negative == pytest.approx(own @ (coef < 0), **close), seed
        averages = [result.intercept, result.imr_coef, result.rho, result.sigma]
        averages += [result.adjusted_r2, result.outside]
        assert averages == pytest.approx(own @ others, rel=1e-9, abs=1e-10), seed
        _check_leading(result, masks.astype(bool), own, others[:, 2])


def _check_leading(result, masks, own, rho):
    """The leading assignments are all of them here, heaviest first, with weight and rho."""
    places = {mask.tobytes(): place for place, mask in enumerate(masks)}
    order = [places[mask.tobytes()] for mask in result.leading_masks]
    positive = own > 1e-300
    assert sorted(order) == [place for place in range(len(own)) if positive[place]]
    assert result.leading_weight == pytest.approx(own[order], rel=1e-9, abs=1e-10)
    assert result.leading_rho == pytest.approx(rho[order], rel=1e-8, abs=1e-9)
    assert np.all(np.diff(result.leading_weight) <= 1e-9)
    carried = np.cumsum(result.leading_weight)
    count = len(result.component_weights)
    assert carried[count - 1] >= 0.99 - 1e-12
    assert count == 1 or carried[count - 2] < 0.99
    assert result.component_weights == pytest.approx(
        result.leading_weight[:count] / carried[count - 1]
    )
    assert np.array_equal(result.component_masks, result.leading_masks[:count])


def test_collinear_assignments_weigh_nothing_and_their_parts_do():
    rng = np.random.default_rng(0)
    data = make_selection(400, 5, 2, random_state=rng)
    dummies = np.eye(3)[rng.integers(3, size=400)]
    X = np.column_stack([data.X, data.X[:, 0], dummies])  # column 5 repeats column 0
    probit = compress(data.X, data.y).probit
    moments = compress(X, data.y, selection_features=range(5)).moments
    found = average(moments, all_features(moments), weights="bic")
    masks = found.leading_masks
    assert not np.any(masks[:, 0] & masks[:, 5])
    assert not np.any(masks[:, 6:].all(axis=1))
    # 2^4 sets of the other four, three choices of the repeated ones, seven of the dummies
    assert found.n_assignments == len(masks) == 16 * 3 * 7
    assert found.shares["bic"][0] == pytest.approx(found.shares["bic"][5], abs=1e-12)
    chosen = data.selected
    gamma = np.append(probit.coef, np.zeros(4))
    rows = X[chosen], data.y[chosen], np.ones(chosen.sum())
    brute = everything(*rows, gamma, all_features(moments), None)
    weight = relative(brute[3])[:, 1]
    assert found.shares["bic"] == pytest.approx(weight @ brute[0], abs=1e-10)
    assert found.coef == pytest.approx(weight @ brute[1], abs=1e-10)


def test_assignments_agree_with_those_solved_one_by_one_where_columns_are_almost_collinear():
    data = make_selection(300, 6, 3, random_state=3)
    data.X[:, 1] = data.X[:, 0] + 1e-9 * data.X[:, 1]
    moments = compress(data.X, data.y, selection_features=[0, 2, 3, 4, 5]).moments
    assert not moments.gram_is_safe
    found = average(moments, all_features(moments), weights="bic")
    solved = moments.solve(found.leading_masks, exact=True)
    assert solved.feasible.all()
    assert found.n_assignments == 64
    assert found.leading_sse == pytest.approx(solved.sse, rel=1e-7)
    assert found.leading_rho == pytest.approx(solved.rho, rel=1e-6)
    assert found.coef == pytest.approx(found.leading_weight @ solved.coef, rel=1e-4)


def test_many_columns_for_the_rows_weigh_nothing():
    data = make_selection(45, 12, 3, random_state=1)
    moments = compress(data.X, data.y, selection_features=range(4)).moments
    found = average(moments, all_features(moments), weights="aic")
    assert found.leading_masks.sum(axis=1).max() == moments.n_selected // 3
    assert found.leading_weight.sum() == pytest.approx(1.0)


def test_always_may_not_hold_more_than_a_third_of_the_rows():
    data = make_selection(45, 12, 3, random_state=1)
    moments = compress(data.X, data.y, selection_features=range(4)).moments
    most = int(moments.n_selected) // 3
    always = tuple(range(most + 1))
    for max_units in (22, 0):
        with pytest.raises(
            NoFeasibleAssignmentError, match=f"always holds {most + 1} .* Name at most {most} in"
        ):
            average(moments, Choices(12, always, ((11,),), 12), max_units=max_units)


def test_lambda_competes_with_assignments_without_it():
    for seed, rho, window in ((0, 0.0, None), (1, 0.8, None), (2, 0.5, (0.3, 0.6))):
        data = make_selection(500, 5, 2, rho=rho, random_state=seed)
        found = compress(data.X, data.y)
        choices = all_features(found.moments)
        chosen = data.selected
        rows = data.X[chosen], data.y[chosen], np.ones(chosen.sum())
        masks, _, _, held = everything(*rows, found.probit.coef, choices, window)
        others, _, _, free = everything(*rows, found.probit.coef, choices, window, imr=0)
        same = (others[:, None] == masks).all(axis=2).any(axis=1)
        weight = relative(np.concatenate([held, free[same]]))
        expected = weight[: len(held)].sum(axis=0)
        features = weight.T @ np.concatenate([masks, others[same]])
        shares = imr_shares(found.moments, choices, rho_range=window)
        assert [shares.imr[kind] for kind in KINDS] == pytest.approx(expected, abs=1e-10)
        for kind, own in zip(KINDS, features, strict=True):
            assert shares.features[kind] == pytest.approx(own, abs=1e-10)
    sampled = imr_shares(found.moments, choices, rho_range=window, max_units=0, random_state=0)
    assert [sampled.imr[kind] for kind in KINDS] == pytest.approx(expected, abs=1e-3)
    for kind, own in zip(KINDS, features, strict=True):
        assert sampled.features[kind] == pytest.approx(own, abs=5e-3)


def test_components_are_the_heaviest_or_draws_by_weight_that_a_seed_repeats():
    data = make_selection(400, 15, 0, random_state=0)
    moments = compress(data.X, data.y).moments
    choices = all_features(moments)
    few = average(moments, choices, weights="ebic")
    assert not few.components_drawn
    assert len(few.component_weights) <= 5_000
    carried = np.cumsum(few.leading_weight)[len(few.component_weights) - 1]
    assert 0.99 <= carried < 0.99 + few.leading_weight[len(few.component_weights) - 1]
    many = average(moments, choices, weights="aic", random_state=7)
    assert many.components_drawn
    assert np.cumsum(many.leading_weight)[4_999] < 0.99
    assert len(many.leading_weight) == 10_000
    assert many.component_weights.sum() == pytest.approx(1.0, abs=1e-12)
    times = many.component_weights * 5_000
    assert times == pytest.approx(np.round(times), abs=1e-9)
    # Draws by weight hold each column as often as the weights say.
    held = many.component_weights @ many.component_masks
    assert held == pytest.approx(many.shares["aic"], abs=0.01)
    again = average(moments, choices, weights="aic", random_state=7)
    assert np.array_equal(again.components, many.components)
    other = average(moments, choices, weights="aic", random_state=8)
    assert not np.array_equal(other.components, many.components)
    assert np.array_equal(other.coef, many.coef)


def test_more_than_one_step_sums_to_the_same(monkeypatch):
    data = make_selection(300, 8, 3, random_state=2)
    moments = compress(data.X, data.y).moments
    choices = Choices(8, (5,), ((0, 7), (1,), (2, 3, 4), (6,)), 8)
    whole = average(moments, choices, weights="mean", rho_range=(-0.9, 0.9))
    monkeypatch.setattr(enumeration, "_INNER", 2)
    parts = average(moments, choices, weights="mean", rho_range=(-0.9, 0.9))
    for name in ("coef", "positive", "own_share", "leading_weight", "leading_rho", "outside"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), abs=1e-12), name
    assert np.array_equal(parts.leading, whole.leading)


def test_strange_weights_and_impossible_windows_are_refused():
    data = make_selection(300, 3, 2, random_state=0)
    moments = compress(data.X, data.y).moments
    with pytest.raises(InputError, match="weights must be one of aic, bic, ebic, mean; got 'r2'"):
        average(moments, all_features(moments), weights="r2")
    with pytest.raises(
        NoFeasibleAssignmentError, match=r"none of the 8 .* rho in \[-0.99, -0.98\]"
    ):
        average(moments, all_features(moments), rho_range=(-0.99, -0.98), names=["a", "b", "c"])


@pytest.fixture(scope="module")
def eighteen():
    """Eighteen correlated features, their exact average, and one by the sampler."""
    data = make_selection(600, 18, 5, correlation=0.6, random_state=3)
    moments = compress(data.X, data.y).moments
    choices = all_features(moments)
    exact = average(moments, choices, weights="aic")
    return exact, average(moments, choices, weights="aic", max_units=17, random_state=0)


def test_the_sampler_agrees_with_the_enumeration_of_eighteen_features(eighteen):
    exact, sampled = eighteen
    assert exact.exhaustive
    assert not sampled.exhaustive
    assert sampled.disagreement <= gibbs.AGREEMENT
    for kind in KINDS:
        assert sampled.shares[kind] == pytest.approx(exact.shares[kind], abs=0.01), kind
        assert sampled.best_weight[kind] == pytest.approx(exact.best_weight[kind], rel=0.15)
        assert sampled.n_half[kind] == pytest.approx(exact.n_half[kind], rel=0.4)
    assert sampled.positive == pytest.approx(exact.positive, abs=0.02)
    assert sampled.coef == pytest.approx(exact.coef, abs=0.005)
    for name, close in (("intercept", 0.005), ("imr_coef", 0.01), ("rho", 0.01), ("sigma", 0.005)):
        assert getattr(sampled, name) == pytest.approx(getattr(exact, name), abs=close), name
    assert sampled.adjusted_r2 == pytest.approx(exact.adjusted_r2, abs=1e-3)
    assert sampled.outside == pytest.approx(exact.outside, abs=0.01)


def test_the_assignments_that_the_sampler_keeps_are_those_of_the_enumeration(eighteen):
    exact, sampled = eighteen
    assert np.array_equal(sampled.leading[:5], exact.leading[:5])
    assert sampled.leading_rho[:5] == pytest.approx(exact.leading_rho[:5], rel=1e-6)
    assert sampled.leading_sse[:5] == pytest.approx(exact.leading_sse[:5], rel=1e-8)
    assert sampled.leading_weight.sum() <= 1.0 + 1e-12
    assert sampled.component_weights.sum() == pytest.approx(1.0)
    assert len(sampled.component_weights) <= 5_000
    held = sampled.component_weights @ sampled.component_masks
    assert held == pytest.approx(exact.own_share, abs=0.05)


def test_the_sampler_respects_groups_forced_features_windows_and_limits():
    data = make_selection(400, 12, 4, correlation=0.3, random_state=5)
    moments = compress(data.X, data.y).moments
    choices = Choices(12, (2, 5), ((0, 1), (3, 4, 6), (7,), (8, 9), (10,), (11,)), 9)
    free = average(moments, choices, weights="bic")
    window = (free.rho - 0.05, free.rho + 0.3)
    exact = average(moments, choices, weights="mean", rho_range=window)
    sampled = average(
        moments, choices, weights="mean", rho_range=window, max_units=0, random_state=1
    )
    assert exact.n_assignments < free.n_assignments < 64
    assert window[0] <= sampled.leading_rho.min() <= sampled.leading_rho.max() <= window[1]
    assert sampled.leading_masks.sum(axis=1).max() <= 9
    for kind in KINDS:
        assert sampled.shares[kind] == pytest.approx(exact.shares[kind], abs=0.01), kind
    assert sampled.own_share == pytest.approx(exact.own_share, abs=0.01)
    assert sampled.coef == pytest.approx(exact.coef, abs=0.01)
    assert sampled.positive == pytest.approx(exact.positive, abs=0.02)
    places = {mask.tobytes(): place for place, mask in enumerate(exact.leading_masks)}
    rows = [places[mask.tobytes()] for mask in sampled.leading_masks]
    assert sampled.leading_weight == pytest.approx(exact.leading_weight[rows], abs=0.02)


def test_a_seed_repeats_the_sampler_and_chains_that_differ_are_reported(monkeypatch):
    data = make_selection(200, 9, 3, random_state=1)
    rng = np.random.default_rng(1)
    # Repeated columns that never share an assignment, so the sampler must let them swap.
    X = np.column_stack([data.X, data.X[:, :2], 1e-3 * rng.normal(size=200) + data.X[:, 2]])
    moments = compress(X, data.y, selection_features=range(9)).moments
    choices = all_features(moments)
    for name, value in (("LEAST_SWEEPS", 100), ("_STEPS", 0), ("_CHAINS", 2), ("_BURN_IN", 20)):
        monkeypatch.setattr(gibbs, name, value)
    monkeypatch.setattr(averages, "AGREEMENT", 1.0)
    first, other = (
        average(moments, choices, weights="bic", max_units=0, random_state=seed) for seed in (4, 5)
    )
    assert not np.array_equal(first.coef, other.coef)
    exact = average(moments, choices, weights="bic")
    assert first.shares["bic"] == pytest.approx(exact.shares["bic"], abs=0.15)
    assert not np.any(first.leading_masks[:, 0] & first.leading_masks[:, 9])
    monkeypatch.setattr(averages, "AGREEMENT", 0.0)
    with pytest.warns(SearchWarning, match="halves of the sampled chains differ by up to 0.0"):
        again = average(moments, choices, weights="bic", max_units=0, random_state=4)
    assert np.array_equal(first.coef, again.coef)
    assert np.array_equal(first.leading, again.leading)
    assert again.disagreement == first.disagreement > 0.0


def test_the_sampler_says_that_no_assignment_is_in_the_window():
    data = make_selection(300, 6, 2, random_state=0)
    moments = compress(data.X, data.y).moments
    words = r"rho in \[-0.99, -0.98\]. Their rho runs from (\S+) to (\S+), .* nearest: (\S+) with"
    found = []
    for max_units in (0, 22):
        with pytest.raises(NoFeasibleAssignmentError, match=words) as caught:
            average(moments, all_features(moments), rho_range=(-0.99, -0.98), max_units=max_units)
        found.append(re.search(words, str(caught.value)).groups())
    (low, high, near), (least, most, nearest) = np.array(found, dtype=float)
    assert near == nearest
    # The chains end in the nearest assignments; those where they begin are seen as well.
    assert least <= low < high - 0.1 <= most

"""Averages over the assignments of a form, against a plain loop over all of them."""

import itertools
import warnings
from dataclasses import dataclass
from math import comb, log

import numpy as np
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanProbit, HeckmanProbitAverage
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    HeckmanfaWarning,
    InputError,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    SearchWarning,
)
from heckmanfa.search.averaging import WEIGHT_CRITERIA, average, averages, enumeration, gibbs
from heckmanfa.search.averaging.averages import without_correction
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form

WEIGHTINGS = ("aic", "bic", "ebic", "mean")
ERRORS = ("two-step", "likelihood", "binary")


@dataclass
class Loop:
    """All assignments with a weight."""

    states: np.ndarray
    """(N, k + 2) candidates held on their own, the correction, the index"""
    criteria: dict
    free: list
    estimates: np.ndarray
    """(N, d)"""
    covariances: np.ndarray
    """(N, d, d)"""
    rho: np.ndarray

    def weights(self, kind):
        if kind == "mean":
            return (self.weights("aic") + self.weights("bic")) / 2
        values = self.criteria[kind]
        raw = np.exp(-(values - values.min()) / 2)
        return raw / raw.sum()

    def mean(self, kind):
        return self.weights(kind) @ self.estimates

    def covariance(self, kind, share=0.5):
        """By the weights of intervals: a share of them goes to the assignment of everything."""
        whole = self.states[:, :-1].all(axis=1) & ~self.states[:, -1]
        weight = (1 - share) * self.weights(kind) + share * whole
        away = self.estimates - weight @ self.estimates
        return np.einsum("n,nij->ij", weight, self.covariances) + away.T @ (weight[:, None] * away)

    def shares(self, kind, direction):
        """Shares of weight in which each candidate predicts: in either way, and on its own."""
        weight, own = self.weights(kind), self.states[:, :-2]
        either = own | (self.states[:, -1:] & (direction != 0.0))
        return weight @ either, weight @ own


def every_assignment(
    theta,
    V,
    k,
    p,
    direction,
    m,
    errors,
    *,
    mean_delta=0.0,
    units=None,
    always=(),
    limit=None,
    window=None,
    corrections=(False, True),
    ratio=None,
):
    """Weigh all assignments of k candidates, given by position.

    ``ratio`` is the likelihood ratio of rho = 0 in the model of everything, if there is one.

    ``theta`` and ``V`` are intercept, candidates, selection intercept, p selection features, the
    correction and, unless the errors are "binary", the log scale.
    """
    units = [(j,) for j in range(k)] if units is None else units
    d, last = len(theta), 2 + k + p
    free = [*range(1, k + 1), last]
    P = np.linalg.inv(V[np.ix_(free, free)])
    A = V[:, free] @ P
    if errors == "two-step":
        A[1 + k : last] = 0.0
    pick = np.eye(d)[free]
    excess = 0.0 if ratio is None else theta[last] ** 2 / V[last, last] - ratio
    most = max(0.98, abs(np.tanh(theta[last])) * (1 + 1e-9))
    offered = [j for unit in units for j in unit if direction[j] != 0.0]
    rows = []
    for inside in itertools.product([False, True], repeat=len(units)):
        held = [unit for unit, use in zip(units, inside, strict=True) if use]
        own = np.zeros(k, dtype=bool)
        own[[*always, *itertools.chain(*held)]] = True
        j = int(own.sum())
        if (limit is not None and j > limit) or j > m / 3:
            continue
        dropped = sum(not own[column] for column in offered)
        for corrected, index in itertools.product(corrections, [False, True]):
            if index and (dropped < 2 or len(offered) < 2):
                continue
            columns = [np.eye(k + 1)[place] for place in np.flatnonzero(own)]
            columns += [np.eye(k + 1)[k]] * corrected + [np.append(direction, 0.0)] * index
            M = np.zeros((k + 1, k + 1))
            if columns:
                B = np.array(columns).T
                M = B @ np.linalg.inv(B.T @ P @ B) @ B.T
            along = M @ P
            away = theta[free] - along @ theta[free]
            T = A @ along @ pick + np.eye(d) - A @ pick
            estimates = T @ theta
            scale = 0.0 if errors == "binary" else estimates[-1]
            rho = np.tanh(estimates[last])
            if errors == "two-step":
                sigma = np.sqrt(np.exp(2 * scale) + mean_delta * estimates[last] ** 2)
                rho = estimates[last] / sigma
            elif abs(rho) > most:
                # The form of a likelihood says nothing of rho near its bounds.
                continue
            if window is not None and not window[0] <= rho <= window[1]:
                continue
            q = j + 1 + corrected + index
            cost = away @ P @ away - excess * (not corrected)
            bic = cost + q * log(m)
            values = cost + 2 * q * m / (m - q - 1), bic, bic + 2 * log(comb(len(units), len(held)))
            state = np.append(own, [corrected, index])
            rows.append((state, values, estimates, T @ V @ T.T, rho))
    states, values, estimates, covariances, rho = zip(*rows, strict=True)
    criteria = dict(zip(("aic", "bic", "ebic"), np.array(values).T, strict=True))
    arrays = (np.array(part) for part in (estimates, covariances, rho))
    return Loop(np.array(states), criteria, free, *arrays)


def form_of(k, p, errors, rng, *, m=300.0, strength=0.2):
    """A form of k candidates and p selection features, of which the first are the same columns."""
    d = 3 + k + p + (errors != "binary")
    root = rng.normal(size=(2 * d, d))
    theta = strength * rng.normal(size=d) * np.where(rng.random(d) < 0.7, 1.0, 0.1)
    theta[2 + k : 2 + k + p] = 0.3 + 0.3 * rng.normal(size=p)
    V = root.T @ root / (2 * d) / m * 5.0
    return Form(tuple(range(k)), tuple(range(p)), max(k, p), m, errors, theta, V, 0.4)


def singles(k, n_features=None):
    return Choices(n_features or k, (), tuple((j,) for j in range(k)), k)


def loop_of(form, choices, **options):
    k, p = len(form.columns), len(form.selection)
    gamma = form.estimates[k + 2 : k + 2 + p]
    direction = np.array([gamma[j] if j < p else 0.0 for j in range(k)])
    limit = choices.max_features
    given = form.estimates, form.covariance, k, p, direction, form.n_selected, form.errors
    held = {"units": choices.units, "always": choices.always, "limit": limit}
    found = every_assignment(*given, mean_delta=form.mean_delta, **held, **options)
    return found, direction


def problem(seed):
    """A random form with forced and grouped candidates, a limit and sometimes a window."""
    rng = np.random.default_rng(seed)
    k, p = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    form = form_of(k, p, ERRORS[seed % 3], rng, m=float(rng.integers(30, 500)))
    units, always = [[j] for j in range(k)], ()
    if k > 3 and rng.random() < 0.5:
        units = [[0, k - 1], *([j] for j in range(1, k - 1))]
    if k > 2 and rng.random() < 0.4:
        always = tuple(units.pop(int(rng.integers(len(units)))))
    limit = k if rng.random() < 0.7 else max(len(always), 1, k // 2)
    choices = Choices(max(k, p), always, tuple(sorted(tuple(unit) for unit in units)), limit)
    correction = ("optional", "always", "never")[int(rng.integers(3))]
    window = (-0.3, 0.8) if rng.random() < 0.3 and correction == "optional" else None
    return form, choices, window, correction, WEIGHTINGS[seed // 3 % 4]


@pytest.mark.parametrize("part", range(4))
def test_equals_a_plain_loop_over_all_subsets(part):
    held = {"optional": (False, True), "always": (True,), "never": (False,)}
    for seed in range(part, 80, 4):
        form, choices, window, correction, kind = problem(seed)
        loop, direction = loop_of(form, choices, window=window, corrections=held[correction])
        found = average(form, choices, weights=kind, correction=correction, rho_range=window)
        k = len(form.columns)
        weight = loop.weights(kind)
        assert found.n_assignments == len(weight)
        places = {state.tobytes(): i for i, state in enumerate(loop.states)}
        states = found.component_states[:, [*form.columns, -2, -1]]
        rows = [places[state.tobytes()] for state in states]
        assert not found.components_drawn
        assert found.component_weights == pytest.approx(weight[rows], abs=1e-10)
        for each in WEIGHT_CRITERIA:
            # A group acts with the index if any of its columns does.
            of_unit = direction.copy()
            for unit in choices.units:
                of_unit[list(unit)] = np.abs(direction[list(unit)]).max()
            either, own = loop.shares(each, of_unit)
            assert found.shares[each][:k] == pytest.approx(either, abs=1e-10)
            assert found.alone[each][:k] == pytest.approx(own, abs=1e-10)
            held_by = loop.weights(each) @ loop.states[:, -2:]
            assert found.correction_share[each] == pytest.approx(held_by[0], abs=1e-10)
            assert found.index_share[each] == pytest.approx(held_by[1], abs=1e-10)
        mean = loop.mean(kind)
        assert found.free == pytest.approx(mean[loop.free], abs=1e-10)
        assert form.all_of(found.free) == pytest.approx(mean, abs=1e-10)
        assert found.rho == pytest.approx(weight @ loop.rho, abs=1e-10)
        effects = loop.estimates[:, 1 : k + 1]
        assert found.positive[:k] == pytest.approx(weight @ (effects > 1e-12), abs=1e-10)
        assert found.negative[:k] == pytest.approx(weight @ (effects < -1e-12), abs=1e-10)
        members = Members(form, found.component_states, found.component_weights)
        assert members.estimates == pytest.approx(loop.estimates[rows], abs=1e-10)
        (whole,) = members.gathered(np.arange(len(rows)))
        assert whole.covariance == pytest.approx(loop.covariance(kind, 0.0), abs=1e-10)


def terms_of(form, estimates):
    """What tables show, of one set of estimates, and its derivatives by differences."""
    last = form.correction

    def shown(theta):
        beta, scale = theta[last], theta[-1]
        if form.errors == "binary":
            return np.append(theta[:last], np.tanh(beta))
        if form.errors == "likelihood":
            ends = [np.tanh(beta) * np.exp(scale), np.tanh(beta), np.exp(scale)]
        else:
            sigma = np.sqrt(np.exp(2 * scale) + form.mean_delta * beta**2)
            ends = [beta, beta / sigma, sigma]
        return np.append(theta[:last], ends)

    step = 1e-6 * np.eye(len(estimates))
    slopes = [(shown(estimates + one) - shown(estimates - one)) / 2e-6 for one in step]
    return shown(estimates), np.array(slopes).T


@pytest.mark.parametrize("errors", ERRORS)
def test_terms_and_their_covariance_are_those_of_the_delta_method(errors):
    form = form_of(4, 5, errors, np.random.default_rng(3))
    loop, _ = loop_of(form, singles(4, 5))
    found = average(form, singles(4, 5), weights="bic")
    members = Members(form, found.component_states, found.component_weights)
    places = {state.tobytes(): i for i, state in enumerate(loop.states)}
    rows = [places[s.tobytes()] for s in found.component_states[:, [0, 1, 2, 3, -2, -1]]]
    shown, slopes = zip(*(terms_of(form, loop.estimates[row]) for row in rows), strict=True)
    within = [J @ loop.covariances[row] @ J.T for J, row in zip(slopes, rows, strict=True)]
    assert members.terms == pytest.approx(np.array(shown), abs=1e-9)
    errors_of = np.sqrt(np.maximum(np.einsum("nii->ni", within), 0.0))
    assert members.term_errors == pytest.approx(errors_of, abs=1e-7)
    weight = found.component_weights
    mean, covariance = members.term_covariance()
    away = np.array(shown) - weight @ np.array(shown)
    expected = np.einsum("n,nij->ij", weight, within) + away.T @ (weight[:, None] * away)
    assert mean == pytest.approx(weight @ np.array(shown), abs=1e-9)
    assert covariance == pytest.approx(expected, abs=1e-8)
    own = members.covariance(2)
    assert own == pytest.approx(loop.covariances[rows[2]], abs=1e-12)


def test_groups_of_assignments_keep_means_and_covariances():
    form = form_of(6, 6, "likelihood", np.random.default_rng(1))
    found = average(form, singles(6))
    members = Members(form, found.component_states, found.component_weights)
    (whole,) = members.gathered(np.arange(len(members.weights)))
    groups = members.groups(8)
    assert 1 < len(groups) <= 8
    assert sorted(itertools.chain(*(group.members for group in groups))) == list(
        range(len(members.weights))
    )
    mean = sum(group.weight * group.estimates for group in groups)
    assert mean == pytest.approx(whole.estimates, abs=1e-12)
    spread = sum(
        group.weight * (group.covariance + np.outer(group.estimates - mean, group.estimates - mean))
        for group in groups
    )
    assert spread == pytest.approx(whole.covariance, abs=1e-12)


def test_what_an_assignment_leaves_out_is_exactly_zero():
    form = form_of(5, 3, "two-step", np.random.default_rng(0))
    found = average(form, singles(5))
    members = Members(form, found.component_states, found.component_weights)
    states = members.states
    moved = form.drives
    acts = states[:, :5] | (states[:, -1:] & moved)
    assert np.array_equal(members.terms[:, 1:6] != 0.0, acts)
    assert np.array_equal(members.term_errors[:, 1:6] > 0.0, acts)
    without = ~states[:, -2]
    assert without.any()
    assert np.all(members.terms[without][:, [-3, -2]] == 0.0)
    assert np.all(members.term_errors[without][:, [-3, -2]] == 0.0)


def test_the_index_is_no_news_if_one_column_or_none_is_dropped():
    form = form_of(3, 1, "two-step", np.random.default_rng(0))
    assert not average(form, singles(3)).has_index
    form = form_of(3, 3, "two-step", np.random.default_rng(0))
    found = average(form, singles(3))
    held = found.component_states[found.component_states[:, -1]]
    assert len(held)
    assert held[:, :3].sum(axis=1).max() == 1


def test_a_named_exclusion_is_no_part_of_the_index():
    rng = np.random.default_rng(0)
    form = form_of(4, 5, "two-step", rng)
    (direction,) = form.directions
    assert len(direction) == 5
    assert direction[:-1] == pytest.approx(form.estimates[6:10])


def test_least_squares_averaged_alike_is_the_average_without_the_correction():
    form = form_of(6, 6, "two-step", np.random.default_rng(4))
    never = average(form, singles(6), weights="bic", correction="never")
    exact, share = without_correction(form, average(form, singles(6), weights="bic"))
    assert share == pytest.approx(never.shares["bic"], abs=1e-12)
    assert exact.weights @ exact.estimates[:, form.free] == pytest.approx(never.free, abs=1e-12)
    drawn = average(form, singles(6), weights="bic", max_units=0, random_state=0)
    members, share = without_correction(form, drawn)
    assert not members.states[:, -2].any()
    assert share == pytest.approx(never.shares["bic"], abs=0.03)
    assert members.weights @ members.estimates[:, form.free] == pytest.approx(never.free, abs=0.01)


def test_components_are_all_assignments_or_draws_by_weight_that_a_seed_repeats():
    form = form_of(9, 9, "two-step", np.random.default_rng(0))
    few = average(form, singles(9))
    assert not few.components_drawn
    assert few.n_assignments == len(few.component_weights) == 2**11 - 2 * 10
    form = form_of(13, 13, "two-step", np.random.default_rng(0), strength=0.02)
    many = average(form, singles(13), weights="aic", random_state=7)
    assert many.components_drawn
    assert len(many.leading_weight) == 10_000
    assert many.component_weights.sum() == pytest.approx(1.0, abs=1e-12)
    times = many.component_weights * 5_000
    assert times == pytest.approx(np.round(times), abs=1e-9)
    # Draws by weight hold each column as often as the weights say.
    held = many.component_weights @ many.component_masks
    assert held == pytest.approx(many.alone["aic"], abs=0.01)
    again = average(form, singles(13), weights="aic", random_state=7)
    assert np.array_equal(again.components, many.components)
    other = average(form, singles(13), weights="aic", random_state=8)
    assert not np.array_equal(other.components, many.components)
    assert np.array_equal(other.free, many.free)


def test_more_than_one_step_sums_to_the_same(monkeypatch):
    form = form_of(8, 8, "likelihood", np.random.default_rng(2))
    choices = Choices(8, (5,), ((0, 7), (1,), (2, 3, 4), (6,)), 8)
    whole = average(form, choices, weights="mean", rho_range=(-0.9, 0.9))
    monkeypatch.setattr(enumeration, "_INNER", 2)
    parts = average(form, choices, weights="mean", rho_range=(-0.9, 0.9))
    for name in ("free", "positive", "own_share", "leading_weight", "leading_rho", "rho", "sigma"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), abs=1e-12), name
    assert np.array_equal(parts.leading, whole.leading)


def test_many_columns_for_the_rows_weigh_nothing():
    form = form_of(8, 4, "two-step", np.random.default_rng(1), m=18.0)
    found = average(form, singles(8))
    assert found.leading_masks.sum(axis=1).max() == 6
    assert found.leading_weight.sum() == pytest.approx(1.0)
    for max_units in (22, 0):
        with pytest.raises(NoFeasibleAssignmentError, match=r"always holds 7 .* Name at most 6 in"):
            average(form, Choices(8, tuple(range(7)), ((7,),), 8), max_units=max_units)


def test_strange_weights_and_impossible_windows_are_refused():
    form = form_of(3, 3, "two-step", np.random.default_rng(0))
    with pytest.raises(InputError, match="'r2'"):
        average(form, singles(3), weights="r2")
    with pytest.raises(NoFeasibleAssignmentError, match=r"-0\.99.*-0\.98"):
        average(form, singles(3), rho_range=(-0.99, -0.98))
    with pytest.raises(InputError, match="rho_range"):
        average(form, singles(3), rho_range=(-0.5, 0.5), max_units=0)


def test_a_covariance_that_is_singular_or_unknown_is_refused():
    form = form_of(3, 3, "likelihood", np.random.default_rng(0))
    for bad in (np.nan, 0.0):
        covariance = form.covariance.copy()
        covariance[form.correction] = covariance[:, form.correction] = bad
        given = (form.columns, form.selection, 3, 300.0, "likelihood", form.estimates)
        with pytest.raises(NotIdentifiedError, match=r"all 3 features .* singular or not known"):
            Form(*given, covariance).check()


@pytest.fixture(scope="module")
def sixteen():
    """Sixteen candidates, their exact average, and one by the sampler."""
    form = form_of(16, 16, "two-step", np.random.default_rng(3), strength=0.35)
    exact = average(form, singles(16), weights="aic")
    drawn = {"max_units": 17, "max_sweeps": 400, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        return form, exact, average(form, singles(16), weights="aic", **drawn)


def test_the_sampler_agrees_with_the_enumeration_of_sixteen_features(sixteen):
    form, exact, sampled = sixteen
    assert exact.exhaustive
    assert not sampled.exhaustive
    assert sampled.disagreement <= 4 * gibbs.AGREEMENT
    for kind in WEIGHT_CRITERIA:
        assert sampled.shares[kind] == pytest.approx(exact.shares[kind], abs=0.02), kind
        assert sampled.alone[kind] == pytest.approx(exact.alone[kind], abs=0.02), kind
        assert sampled.correction_share[kind] == pytest.approx(
            exact.correction_share[kind], abs=0.02
        )
        assert sampled.index_share[kind] == pytest.approx(exact.index_share[kind], abs=0.02)
        assert sampled.best_weight[kind] == pytest.approx(exact.best_weight[kind], rel=0.2)
        assert sampled.n_half[kind] == pytest.approx(exact.n_half[kind], rel=0.4)
    assert sampled.positive == pytest.approx(exact.positive, abs=0.02)
    error = np.sqrt(np.diag(form.covariance))[form.free]
    assert sampled.free / error == pytest.approx(exact.free / error, abs=0.05)
    assert sampled.rho == pytest.approx(exact.rho, abs=0.01)
    assert sampled.sigma == pytest.approx(exact.sigma, abs=0.005)


def test_the_assignments_that_the_sampler_keeps_are_those_of_the_enumeration(sixteen):
    _, exact, sampled = sixteen
    assert np.array_equal(sampled.leading[:5], exact.leading[:5])
    assert sampled.leading_rho[:5] == pytest.approx(exact.leading_rho[:5], rel=1e-6)
    assert sampled.leading_cost[:5] == pytest.approx(exact.leading_cost[:5], rel=1e-8)
    assert sampled.leading_weight.sum() <= 1.0 + 1e-12
    assert sampled.component_weights.sum() == pytest.approx(1.0)
    assert len(sampled.component_weights) <= 5_000
    held = sampled.component_weights @ sampled.component_masks
    assert held == pytest.approx(exact.alone["aic"], abs=0.05)


def test_the_sampler_respects_groups_forced_features_and_limits():
    form = form_of(12, 12, "binary", np.random.default_rng(5))
    choices = Choices(12, (2, 5), ((0, 1), (3, 4, 6), (7,), (8, 9), (10,), (11,)), 9)
    exact = average(form, choices, weights="mean")
    sampled = average(form, choices, weights="mean", max_units=0, random_state=1)
    assert sampled.leading_masks.sum(axis=1).max() <= 9
    for kind in WEIGHT_CRITERIA:
        assert sampled.shares[kind] == pytest.approx(exact.shares[kind], abs=0.02), kind
    assert sampled.free == pytest.approx(exact.free, abs=0.01)
    places = {state.tobytes(): place for place, state in enumerate(exact.leading_states)}
    rows = [places[state.tobytes()] for state in sampled.leading_states]
    assert sampled.leading_weight == pytest.approx(exact.leading_weight[rows], abs=0.02)


def test_a_seed_repeats_the_sampler_and_chains_that_differ_are_reported(monkeypatch):
    form = form_of(9, 9, "two-step", np.random.default_rng(1))
    for name, value in (("LEAST_SWEEPS", 100), ("_STEPS", 0), ("_CHAINS", 2), ("_BURN_IN", 20)):
        monkeypatch.setattr(gibbs, name, value)
    monkeypatch.setattr(averages, "AGREEMENT", 1.0)
    first, other = (
        average(form, singles(9), weights="bic", max_units=0, random_state=seed) for seed in (4, 5)
    )
    assert not np.array_equal(first.free, other.free)
    monkeypatch.setattr(averages, "AGREEMENT", 0.0)
    with pytest.warns(Warning, match="halves of the sampled chains differ by up to 0.0"):
        again = average(form, singles(9), weights="bic", max_units=0, random_state=4)
    assert np.array_equal(first.free, again.free)
    assert np.array_equal(first.leading, again.leading)
    assert again.disagreement == first.disagreement > 0.0


def fitted(model, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(*given, **options)


def on_scales_of_the_form(model):
    """Estimates and covariance of a model of everything, with its correction last but one."""
    V, table = model.vcov().to_numpy(), model.tidy()
    rows = table["equation"] != "errors"
    theta, n = table.loc[rows, "estimate"].to_numpy(), int(rows.sum())
    if isinstance(model, HeckmanProbit):
        J = np.eye(n + 1)
        J[n, n] = 1 / (1 - model.rho_**2)
        return np.append(theta, np.arctanh(model.rho_)), J @ V @ J.T, "binary"
    if model.method == "ml":
        J = np.zeros((n + 2, n + 3))
        J[:n, :n] = np.eye(n)
        J[n, n + 1], J[n + 1, n + 2] = 1 / (1 - model.rho_**2), 1 / model.sigma_
        ends = [np.arctanh(model.rho_), np.log(model.sigma_)]
        return np.append(theta, ends), J @ V @ J.T, "likelihood"
    # The covariance of sigma is in no table of two steps: the rest does not need it.
    J = np.zeros((n + 2, n + 1))
    J[: n + 1] = np.eye(n + 1)
    return np.append(theta, [model.imr_coef_, 0.0]), J @ V @ J.T, "two-step"


CASES = {
    "two-step": (HeckmanAverage, Heckman, {"cov_type": "classical"}),
    "robust": (HeckmanAverage, Heckman, {"cov_type": "robust"}),
    "cluster": (HeckmanAverage, Heckman, {"cov_type": "cluster"}),
    "sampling": (HeckmanAverage, Heckman, {"cov_type": "robust", "weight_kind": "sampling"}),
    "ml": (HeckmanAverage, Heckman, {"method": "ml"}),
    "ml robust": (HeckmanAverage, Heckman, {"method": "ml", "cov_type": "robust"}),
    "probit": (HeckmanProbitAverage, HeckmanProbit, {}),
    "probit robust": (HeckmanProbitAverage, HeckmanProbit, {"cov_type": "robust"}),
}


@pytest.mark.parametrize("case", CASES)
def test_models_equal_a_plain_loop_over_the_estimates_of_all_features(case):
    average_model, all_features, options = CASES[case]
    kind = "binary" if "probit" in case else "linear"
    data = make_selection(500, 6, 2, outcome_kind=kind, correlation=0.3, random_state=1)
    rng = np.random.default_rng(0)
    given = {"groups": rng.integers(0, 60, 500)} if case == "cluster" else {}
    if case == "sampling":
        given = {"sample_weight": rng.uniform(0.5, 2.0, 500)}
    names = {"prediction_features": [0, 1, 2, 3, 4], **options}
    model = fitted(average_model("bic", **names), data.X, data.y, **given)
    whole = fitted(all_features(**names), data.X, data.y, **given)
    theta, V, errors = on_scales_of_the_form(whole)
    direction = whole.selection_coef_[:5]
    m = float(model.fit_.moments.n_selected)
    ratio = None
    if case in ("ml", "probit"):
        apart = fitted(all_features(**names, rho=0.0), data.X, data.y)
        ratio = 2 * (whole.log_likelihood_ - apart.log_likelihood_)
    loop = every_assignment(theta, V, 5, 6, direction, m, errors, ratio=ratio)
    either, own = loop.shares("bic", direction)
    table = model.inclusion_
    assert table["bic"].to_numpy()[:5] == pytest.approx(either, abs=1e-9)
    assert table["bic_alone"].to_numpy()[:5] == pytest.approx(own, abs=1e-9)
    weight = loop.weights("bic")
    assert table["bic"].to_numpy()[5] == pytest.approx(weight @ loop.states[:, -2], abs=1e-9)
    # Both equations, and beta_H of two steps.
    n = 13 + (errors == "two-step")
    shown = model.tidy().set_index(["equation", "term"])
    mean = loop.mean("bic")
    assert shown["estimate"].to_numpy()[:n] == pytest.approx(mean[:n], abs=1e-9)
    expected = loop.covariance("bic")[:n, :n]
    assert model.vcov().to_numpy()[:n, :n] == pytest.approx(expected, abs=1e-9)
    assert shown["std_error"].to_numpy()[:n] == pytest.approx(np.sqrt(np.diag(expected)), abs=1e-8)
    if errors != "two-step":
        assert model.rho_ == pytest.approx(weight @ loop.rho, abs=1e-9)


def test_no_selection_is_found_where_all_features_move_both_equations_alike():
    g = np.array([0.4, -0.3, 0.3, 0.4, -0.4, 0.3, 0.3, 0.5])
    rng = np.random.default_rng(5)
    found = []
    for _ in range(25):
        X = rng.normal(size=(1000, 8))
        selected = X @ g + rng.normal(size=1000) > 0
        y = np.where(selected, 1 + X @ (0.3 * g) + rng.normal(size=1000), np.nan)
        shares = fitted(HeckmanAverage(), X, y).inclusion_.set_index("feature")
        found.append(shares.loc["correction", ["aic", "bic"]].to_numpy(dtype=float))
    # With lambda in every assignment, more than 90% of the weight rejected rho = 0 in most draws.
    assert np.all(np.mean(np.array(found) >= 0.9, axis=0) <= 0.05)
    assert np.all(np.median(found, axis=0) < 0.65)


def test_an_interval_counts_every_assignment():
    data = load_mroz()
    columns = ["educ", "exper", "age", "kids5", "kids618", "nwifeinc", "unem", "city"]
    model = fitted(HeckmanAverage("bic"), data[columns], data["lwage"])
    assert model.fit_.average.mixture.component_weights.sum() == pytest.approx(1.0)
    assert len(model.fit_.average.mixture.component_weights) == model.n_assignments_ > 900

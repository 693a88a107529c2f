"""The corrected BIC and searches of quadratic forms, against every subset by plain algebra."""

import itertools

import numpy as np
import pytest

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso, compress
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    CollinearError,
    InputError,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    SearchWarning,
    TooFewRowsError,
)
from heckmanfa.model.normal import inverse_mills, mills
from heckmanfa.search import Goal, best_subset
from heckmanfa.search.best_subset import record
from heckmanfa.search.choices import Choices, all_features
from heckmanfa.search.form import Form, form_of_all
from heckmanfa.search.refitted_subset import best_of_form


def plain_form(data, probit, columns):
    """Estimates and Heckman's covariance of all columns from the rows, with beta_H clipped."""
    X, y = data.X[data.selected], data.y[data.selected]
    Z = np.column_stack([np.ones(len(X)), X])
    lam, delta = inverse_mills(Z @ probit.coef), mills(Z @ probit.coef)[1]
    W = np.column_stack([np.ones(len(X)), X[:, columns], lam])
    beta = np.linalg.lstsq(W, y, rcond=None)[0]
    sse = np.sum((y - W @ beta) ** 2)
    sigma = np.sqrt(sse / len(y) + beta[-1] ** 2 * delta.mean())
    imr = np.clip(beta[-1], -0.98 * sigma, 0.98 * sigma)
    inverse = np.linalg.inv(W.T @ W)
    cross = W.T @ (delta[:, None] * Z)
    middle = sigma**2 * W.T @ W - imr**2 * W.T @ (delta[:, None] * W)
    middle = middle + imr**2 * cross @ probit.covariance @ cross.T
    return beta[1:-1], (inverse @ middle @ inverse)[1:-1, 1:-1]


def wald(theta, covariance, dropped):
    part = covariance[np.ix_(dropped, dropped)]
    return theta[dropped] @ np.linalg.solve(part, theta[dropped]) if dropped else 0.0


def everything(choices, theta, covariance, columns, penalty):
    """Every assignment allowed with its value, best first."""
    found = []
    for inside in itertools.product([False, True], repeat=len(choices.units)):
        held = {*choices.always}
        for unit, use in zip(choices.units, inside, strict=True):
            held |= {*unit} if use else set()
        if len(held) <= choices.max_features:
            dropped = [place for place, column in enumerate(columns) if column not in held]
            value = wald(theta, covariance, dropped) + penalty * len(held)
            found.append((value, tuple(sorted(held))))
    return sorted(found)


def random_choices(rng, k):
    units = [[column] for column in range(k)]
    if k > 3 and rng.random() < 0.5:
        units = [[0, k - 1], *([column] for column in range(1, k - 1))]
        if k > 6:
            units = [[0, k - 1], [2, 3, 4], [1], *([column] for column in range(5, k - 1))]
    always = tuple(units.pop(int(rng.integers(len(units))))) if k > 2 and rng.random() < 0.3 else ()
    if k > 3 and rng.random() < 0.2:
        units.pop(int(rng.integers(len(units))))
    columns = len(always) + sum(len(unit) for unit in units)
    limit = columns if rng.random() < 0.7 else max(len(always), columns // 2)
    return Choices(k, always, tuple(sorted(tuple(unit) for unit in units)), limit)


def test_equals_brute_force_on_random_problems():
    checked = 0
    for seed in range(32):
        rng = np.random.default_rng(seed)
        k = 1 + seed % 8
        data = make_selection(
            int(rng.integers(150, 500)),
            k,
            int(rng.integers(0, k + 1)),
            rho=rng.uniform(-0.95, 0.95),
            correlation=rng.choice([0.0, 0.5, 0.9]),
            strength=rng.uniform(0.3, 1.0),
            random_state=rng,
        )
        held = compress(data.X, data.y)
        moments, choices = held.moments, random_choices(rng, k)
        names = [f"x{column}" for column in range(k)]
        columns = list(choices.columns)
        theta, covariance = plain_form(data, held.probit, columns)
        form = form_of_all(moments, columns, names)
        np.testing.assert_allclose(form.estimates[form.slopes[1]], theta, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(form.slope_covariance, covariance, rtol=1e-6, atol=1e-12)
        brute = everything(choices, theta, covariance, columns, np.log(moments.n_selected))
        window = None
        if seed % 3 == 0:
            middle = rng.uniform(-0.5, 0.5)
            window = (middle - 0.2, middle + 0.2)
        goal = Goal.of(moments, "corrected_bic", window, form)
        if window is not None:
            masks = np.array([np.isin(np.arange(k), held) for _, held in brute])
            rho = moments.solve(masks, exact=True).rho
            inside = (rho >= window[0]) & (rho <= window[1])
            brute = [item for item, use in zip(brute, inside, strict=True) if use]
        if not brute:
            with pytest.raises(NoFeasibleAssignmentError, match="assignments"):
                best_subset(moments, choices, goal, names=names)
            continue
        found = best_subset(moments, choices, goal, names=names)
        assert found.optimal, seed
        assert found.gap == 0.0
        assert tuple(np.flatnonzero(found.best)) == brute[0][1], seed
        assert found.values[0] == pytest.approx(brute[0][0], rel=1e-6)
        near = {held for value, held in brute if value <= brute[0][0] + 2.0}
        kept = {tuple(np.flatnonzero(mask)) for mask in found.masks[found.in_range]}
        assert near == kept, seed
        checked += 1
    assert checked >= 26


@pytest.mark.parametrize("kept", [5, 50])
def test_the_best_of_any_form_are_returned_in_order(kept, monkeypatch):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        k, m = 4 + seed % 5, 500.0
        root = rng.normal(size=(k, k + 2))
        slopes = 2.0 * rng.normal(size=k)
        choices = random_choices(rng, k)
        columns = list(choices.columns)
        slopes, covariance = slopes[columns], (root @ root.T)[np.ix_(columns, columns)]
        form = Form.of_slopes(columns, slopes, covariance, n_features=k, n_selected=m)
        if seed % 4 == 0:  # too collinear for the inverse: solved from the triangular factor
            monkeypatch.setattr(record, "_LARGEST_SLACK", 1e-30)
        brute = everything(choices, slopes, covariance, choices.columns, np.log(m))
        found = best_of_form(form, choices, n_best=kept)
        expected = brute[:kept]
        assert found.complete
        assert found.optimal
        np.testing.assert_allclose(found.values, [value for value, _ in expected], rtol=1e-9)
        assert [tuple(np.flatnonzero(mask)) for mask in found.masks] == [
            held for _, held in expected
        ]
        monkeypatch.undo()


def test_a_budget_ends_a_search_of_a_form_with_a_gap_that_holds():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(14, 16))
    slopes = 3.0 * rng.normal(size=14)
    form = Form.of_slopes(range(14), slopes, root @ root.T, n_features=14, n_selected=1000)
    choices = Choices(14, (), tuple((column,) for column in range(14)), 14)
    complete = best_of_form(form, choices)
    part = best_of_form(form, choices, max_nodes=2)
    assert not part.complete
    assert complete.values[0] >= part.values[0] - part.gap - 1e-9
    assert part.values[0] >= complete.values[0] - 1e-9


@pytest.fixture(scope="module")
def data():
    return make_selection(900, 6, 3, rho=0.7, correlation=0.4, random_state=4)


def best_by(theta, covariance, m):
    choices = Choices(len(theta), (), tuple((column,) for column in range(len(theta))), len(theta))
    return everything(choices, theta, covariance, range(len(theta)), np.log(m))[0]


@pytest.mark.parametrize("cov_type", ["robust", "cluster"])
def test_a_robust_covariance_is_that_of_the_model_of_all_features(data, cov_type):
    groups = np.arange(900) // 9 if cov_type == "cluster" else None
    with pytest.warns(NoExclusionWarning):
        full = Heckman(cov_type=cov_type).fit(data.X, data.y, groups=groups)
    covariance = full.vcov().to_numpy()[1:7, 1:7]
    value, held = best_by(full.coef_, covariance, full.n_selected_)
    model = HeckmanBestSubset("corrected_bic", cov_type=cov_type, tolerance=1e9)
    model.fit(data.X, data.y, groups=groups)
    assert tuple(model.prediction_features_) == held
    assert model.candidates_["corrected_bic"][0] == pytest.approx(value, rel=1e-8)
    assert len(model.candidates_) == 64
    repeated = model.bootstrap(data.X, data.y, 3, random_state=0, unit=groups)
    assert repeated is not None


def test_weights_are_rows(data):
    weight = np.random.default_rng(0).integers(1, 4, size=900)
    once = HeckmanBestSubset("corrected_bic", tolerance=20.0)
    once.fit(data.X, data.y, sample_weight=weight)
    rows = np.repeat(np.arange(900), weight)
    twice = HeckmanBestSubset("corrected_bic", tolerance=20.0).fit(data.X[rows], data.y[rows])
    assert once.candidates_["features"].tolist() == twice.candidates_["features"].tolist()
    for column in ("corrected_bic", "rho", "bic"):
        np.testing.assert_allclose(once.candidates_[column], twice.candidates_[column], rtol=1e-8)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_every_search_chooses_by_it(data):
    held = compress(data.X, data.y)
    theta, covariance = plain_form(data, held.probit, list(range(6)))
    m = held.moments.n_selected
    best = HeckmanBestSubset("corrected_bic").fit(data.X, data.y)
    assert best.optimal_
    assert tuple(best.prediction_features_) == best_by(theta, covariance, m)[1]
    for model in (
        HeckmanLasso("corrected_bic"),
        HeckmanFA("correlation", criterion="corrected_bic"),
        HeckmanFA("rank", criterion="corrected_bic", epochs=50, random_state=0),
        HeckmanFA(criterion="corrected_bic", epochs=50, random_state=0),
    ):
        table = model.fit(data.X, data.y).candidates_
        assert table["corrected_bic"].is_monotonic_increasing
        for held, value in zip(table["features"], table["corrected_bic"], strict=True):
            dropped = [column for column in range(6) if column not in held]
            expected = wald(theta, covariance, dropped) + len(held) * np.log(m)
            assert value == pytest.approx(expected, rel=1e-6)
    assert "corrected_bic" not in HeckmanBestSubset().fit(data.X, data.y).candidates_
    assert "corrected BIC" in str(best.summary())


def test_honest_halves_choose_by_it(data):
    model = HeckmanBestSubset("corrected_bic", honest=True, n_splits=4, random_state=0)
    model.fit(data.X, data.y)
    assert set(model.prediction_features_) >= set(np.flatnonzero(np.abs(data.coef) > 0.5))


def test_the_joint_test_of_dropped_features_is_their_wald_statistic(data):
    moments, names = compress(data.X, data.y).moments, [f"x{column}" for column in range(6)]
    with pytest.warns(NoExclusionWarning):
        full = Heckman().fit(data.X, data.y)
    assert abs(full.rho_) < 0.98
    support = np.array([True, False, True, False, True, True])
    form = form_of_all(moments, range(6), names)
    expected = full.wald_test(["x1 = 0", "x3 = 0"])
    assert form.dropped(support) == pytest.approx(expected.statistic, rel=1e-8)
    assert expected.df == 2
    assert form.dropped(np.ones(6, dtype=bool)) == 0.0


def test_what_cannot_be_fitted_together_is_refused(data):
    X = np.column_stack([data.X, data.X[:, 0] + data.X[:, 1]])
    for search in (HeckmanBestSubset, HeckmanLasso):
        model = search("corrected_bic", selection_features=range(6))
        with pytest.raises(CollinearError, match=r"'x6'.*'x0'.*'x1'"):
            model.fit(X, data.y)
    few = np.concatenate([np.flatnonzero(data.selected)[:8], np.flatnonzero(~data.selected)[:60]])
    with pytest.raises(TooFewRowsError, match="more than 8 selected rows; there are 8"):
        HeckmanBestSubset("corrected_bic", selection_features=[0]).fit(data.X[few], data.y[few])
    groups = np.arange(900) // 225
    model = HeckmanBestSubset("corrected_bic", cov_type="cluster")
    with pytest.raises(NotIdentifiedError, match="clusters"):
        model.fit(data.X, data.y, groups=groups)
    moments = compress(data.X, data.y).moments
    with pytest.raises(InputError, match="needs a form"):
        Goal.of(moments, "corrected_bic")


def test_a_budget_of_nodes_ends_the_search_with_a_gap_that_holds(data):
    moments = compress(data.X, data.y).moments
    names = [f"x{column}" for column in range(6)]
    goal = Goal.of(moments, "corrected_bic", None, form_of_all(moments, range(6), names))
    with pytest.warns(SearchWarning, match=r"max_nodes.*1"):
        part = best_subset(moments, all_features(moments), goal, names=names, max_nodes=1)
    complete = best_subset(moments, all_features(moments), goal, names=names)
    assert complete.values[0] >= part.values[0] - part.gap - 1e-9


def test_solving_for_rho_counts_in_the_budget():
    data = make_selection(500, 14, 6, rho=0.6, correlation=0.5, random_state=2)
    moments = compress(data.X, data.y).moments
    names = [f"x{column}" for column in range(14)]
    form = form_of_all(moments, range(14), names)
    goal = Goal.of(moments, "corrected_bic", (-0.2, 0.2), form)
    complete = best_subset(moments, all_features(moments), goal, names=names)
    assert complete.optimal
    budget = complete.n_nodes
    with pytest.warns(SearchWarning, match=f"stopped at max_nodes = {budget} nodes"):
        part = best_subset(moments, all_features(moments), goal, names=names, max_nodes=budget)
    assert part.n_nodes < budget
    assert complete.values[0] >= part.values[0] - part.gap - 1e-9

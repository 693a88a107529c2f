"""The best of all assignments, against looking at every one of them with plain least squares."""

import itertools
import math
import re
import signal
import sys

import numpy as np
import pytest

from heckmanfa import compress
from heckmanfa.datasets import make_selection
from heckmanfa.errors import NoFeasibleAssignmentError, SearchWarning
from heckmanfa.model.normal import inverse_mills, mills
from heckmanfa.search import Goal, best_subset
from heckmanfa.search.best_subset import tree
from heckmanfa.search.best_subset.record import Models
from heckmanfa.search.choices import Choices, all_features
from heckmanfa.text.option_words import told

CRITERIA = ("adjusted_r2", "bic", "aic", "ebic")


def everything(data, gamma, choices):
    """Every assignment allowed, each by least squares on the selected rows.

    Their triangular factor takes the place of the rows, which changes no solution; assignments
    with as many columns are solved together, by QR.
    """
    X, y = data.X[data.selected], data.y[data.selected]
    index = gamma[0] + X @ gamma[1:]
    lam, delta = inverse_mills(index), mills(index)[1].mean()
    m = len(y)
    root = np.linalg.qr(np.column_stack([np.ones(m), X, lam, y]), mode="r")
    scale = np.linalg.norm(root, axis=0)
    scaled, total = root / scale, np.sum((y - y.mean()) ** 2)
    by_size = {}
    for inside in itertools.product([False, True], repeat=len(choices.units)):
        chosen = itertools.compress(choices.units, inside)
        columns = tuple(sorted({*itertools.chain(*chosen), *choices.always}))
        if len(columns) <= choices.max_features and m > len(columns) + 2:
            ways = math.comb(len(inside), sum(inside))
            by_size.setdefault(len(columns), []).append((columns, 2 * math.log(ways)))
    names, found = ("columns", "rho", "adjusted_r2", "aic", "bic", "ebic"), []
    for j, sets in by_size.items():
        places = [[0, *(1 + column for column in columns), -2] for columns, _ in sets]
        q, r = np.linalg.qr(scaled[:, places].transpose(1, 0, 2))
        beta = np.linalg.solve(r, (q.transpose(0, 2, 1) @ root[:, -1])[..., None])
        sse = np.sum((root[:, -1] - (q @ (r @ beta))[..., 0]) ** 2, axis=1)
        imr = beta[:, -1, 0] / scale[-2]
        rho = imr / np.sqrt(sse / m + delta * imr**2)
        adjusted = 1 - sse / total * (m - 1) / (m - j - 1)
        aic, bic = (m * np.log(sse / m) + price * (j + 2) for price in (2, np.log(m)))
        for (columns, log_ways), *figures in zip(sets, rho, adjusted, aic, bic, strict=True):
            figures.append(figures[-1] + log_ways)
            found.append(dict(zip(names, (columns, *figures), strict=True)))
    return found


def worse(candidate, criterion):
    return -candidate[criterion] if criterion == "adjusted_r2" else candidate[criterion]


def problem(seed):
    """A random problem: features, criterion, window, forced and grouped features."""
    rng = np.random.default_rng(seed)
    k = 1 + seed % 12
    n = int(rng.integers(60, 300)) + 10 * k
    data = make_selection(
        n,
        k,
        int(rng.integers(0, k + 1)),
        rho=rng.uniform(-0.8, 0.8),
        correlation=rng.choice([0.0, 0.5, 0.9]),
        strength=rng.uniform(0.3, 1.0),
        random_state=rng,
    )
    if k > 2 and rng.random() < 0.3:  # nearly collinear columns, some of them very much so
        close = 10.0 ** rng.uniform(-7, -1)
        data.X[:, 1] = data.X[:, 0] + close * data.X[:, 1]
    units = [[column] for column in range(k)]
    always = ()
    if k > 3 and rng.random() < 0.4:
        units = [[0, k - 1], *([column] for column in range(1, k - 1))]
        if k > 6:
            units = [[0, k - 1], [2, 3, 4], [1], *([column] for column in range(5, k - 1))]
    if k > 2 and rng.random() < 0.25:
        always = tuple(units.pop(int(rng.integers(len(units)))))
    if k > 3 and rng.random() < 0.2:
        units.pop(int(rng.integers(len(units))))
    columns = len(always) + sum(len(unit) for unit in units)
    limit = columns if rng.random() < 0.8 else max(len(always), 1, columns // 2)
    choices = Choices(k, always, tuple(sorted(tuple(unit) for unit in units)), limit)
    window = None
    if rng.random() < 0.5:
        middle = rng.uniform(-0.5, 0.5)
        window = (middle - rng.uniform(0.02, 0.3), middle + rng.uniform(0.02, 0.3))
    return data, choices, CRITERIA[(seed // 12) % 4], window


@pytest.mark.parametrize(
    "part", [part if part < 5 else pytest.param(part, marks=pytest.mark.study) for part in range(9)]
)
def test_equals_brute_force_on_random_problems(part):
    checked = infeasible = 0
    for seed in range(part, 360, 9):
        data, choices, criterion, window = problem(seed)
        found = compress(data.X, data.y)
        goal = Goal.of(found.moments, criterion, window)
        brute = everything(data, found.probit.coef, choices)
        low, high = (-np.inf, np.inf) if window is None else window
        inside = [candidate for candidate in brute if low <= candidate["rho"] <= high]
        names = [f"x{column}" for column in range(choices.n_features)]
        if not inside:
            infeasible += 1
            with pytest.raises(NoFeasibleAssignmentError, match=f"none of the {len(brute)} "):
                best_subset(found.moments, choices, goal, names=names)
            continue
        search = best_subset(found.moments, choices, goal, names=names)
        best = min(worse(candidate, criterion) for candidate in inside)
        expected = [candidate for candidate in inside if worse(candidate, criterion) < best + 1e-8]
        expected = min(
            expected, key=lambda candidate: (len(candidate["columns"]), candidate["columns"])
        )
        assert search.optimal, seed
        assert tuple(np.flatnonzero(search.best)) == expected["columns"], seed
        assert search.values[0] == pytest.approx(expected[criterion], rel=1e-7, abs=1e-9)
        assert search.rho[0] == pytest.approx(expected["rho"], rel=1e-6, abs=1e-8)
        alone = best_subset(found.moments, choices, goal, names=names, only_best=True)
        assert (alone.best == search.best).all(), seed
        assert alone.values[0] == search.values[0]
        # Every assignment nearly as good is there.
        tolerance = 0.001 if criterion == "adjusted_r2" else 2.0
        near = {
            candidate["columns"]
            for candidate in inside
            if worse(candidate, criterion) <= best + tolerance
        }
        kept = {tuple(np.flatnonzero(mask)) for mask in search.masks[search.in_range]}
        assert near <= kept, seed
        checked += 1
    assert checked >= 25
    assert infeasible <= 15


def search_of(moments, criterion="bic", window=None, choices=None, **options):
    names = [f"x{column}" for column in range(moments.n_features)]
    goal = Goal.of(moments, criterion, window)
    return best_subset(moments, choices or all_features(moments), goal, names=names, **options)


@pytest.fixture(scope="module")
def moments():
    data = make_selection(600, 14, 6, rho=0.4, correlation=0.6, random_state=5)
    return compress(data.X, data.y).moments


def test_the_answer_does_not_depend_on_how_many_nodes_are_worked_on_at_once(moments, monkeypatch):
    expected = search_of(moments, "adjusted_r2", (0.1, 0.5))
    monkeypatch.setattr(tree, "_MOST_NODES_AT_ONCE", 3)
    monkeypatch.setattr(tree, "_FEWEST_NODES_AT_ONCE", 1)
    monkeypatch.setattr(tree, "_WAITING_BYTES", 0)
    again = search_of(moments, "adjusted_r2", (0.1, 0.5))
    np.testing.assert_array_equal(again.packed, expected.packed)
    np.testing.assert_array_equal(again.rho, expected.rho)


def test_the_order_of_columns_changes_nothing_but_their_places():
    data = make_selection(500, 9, 4, rho=0.3, correlation=0.5, random_state=8)
    order = np.random.default_rng(0).permutation(9)
    for criterion in CRITERIA:
        one = search_of(compress(data.X, data.y).moments, criterion)
        two = search_of(compress(data.X[:, order], data.y).moments, criterion)
        assert one.values[0] == pytest.approx(two.values[0], rel=1e-10)
        np.testing.assert_array_equal(one.best[order], two.best)


def test_the_scale_of_columns_changes_nothing():
    data = make_selection(500, 9, 4, rho=0.3, correlation=0.5, random_state=8)
    scale = 10.0 ** np.arange(-4, 5)
    one = search_of(compress(data.X, data.y).moments)
    two = search_of(compress(data.X * scale + 3.0, 1e6 * data.y).moments)
    np.testing.assert_array_equal(one.best, two.best)
    np.testing.assert_allclose(one.rho, two.rho, rtol=1e-6)


@pytest.mark.parametrize("window", [None, (0.1, 0.6)])
def test_a_budget_of_nodes_ends_the_search_with_a_gap_that_holds(window):
    data = make_selection(300, 16, 8, rho=0.4, sigma=4.0, correlation=0.8, random_state=5)
    moments = compress(data.X, data.y).moments
    complete = search_of(moments, "adjusted_r2", window)
    assert complete.optimal
    assert complete.gap == 0.0
    gaps = []
    assert complete.n_nodes > 40
    for budget in (1, 3, 10, 30):
        with pytest.warns(SearchWarning, match=f"stopped at max_nodes = {budget} nodes"):
            part = search_of(moments, "adjusted_r2", window, max_nodes=budget)
        assert part.n_nodes == budget
        assert told(part.early_stop) == f"The search stopped at max_nodes = {budget} nodes."
        # What was found plus the gap is never less than what there is.
        assert part.values[0] + part.gap >= complete.values[0] - 1e-12
        assert part.optimal == (part.gap == 0.0)
        gaps.append(part.gap)
    assert gaps[0] > 0


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.LeakageWarning")
def test_ties_go_to_fewer_features_and_then_to_column_order():
    data = make_selection(400, 4, prediction_features=[1], random_state=2)
    X = np.column_stack([data.X, data.X[:, 1]])
    X[~data.selected, 4] += np.random.default_rng(0).normal(size=np.sum(~data.selected))
    moments = compress(X, data.y).moments  # columns 1 and 4 are one where the outcome is seen
    for criterion in CRITERIA:
        found = search_of(moments, criterion, choices=Choices(5, (), ((1,), (4,)), 2))
        assert np.flatnonzero(found.best).tolist() == [1]
        assert [np.flatnonzero(mask).tolist() for mask in found.masks] == [[1], [4]]
    # A perfect fit cannot be improved: the smaller one wins.
    perfect = make_selection(400, 4, prediction_features=[1, 3], sigma=0.0, random_state=2)
    for criterion in CRITERIA:
        for only_best in (False, True):
            moments = compress(perfect.X, perfect.y).moments
            found = search_of(moments, criterion, only_best=only_best)
            assert np.flatnonzero(found.best).tolist() == [1, 3]


# The smallest eigenvalue is rounding, whose sign depends on the machine: some of many seeds give
# a small positive one anywhere.
@pytest.mark.parametrize("seed", range(12))
def test_assignments_that_cannot_be_solved_are_never_chosen(seed):
    data = make_selection(400, 6, 3, random_state=seed)
    X = data.X.copy()
    X[data.selected, 5] = X[data.selected, 0] + X[data.selected, 1]
    moments = compress(X, data.y).moments
    for criterion in CRITERIA:
        found = search_of(moments, criterion)
        assert (search_of(moments, criterion, only_best=True).best == found.best).all()
        every = np.array(list(itertools.product([False, True], repeat=6)))
        solved = moments.solve(every, exact=True)
        assert not solved.feasible[every[:, [0, 1, 5]].all(axis=1)].any()
        best = np.nanmax if criterion == "adjusted_r2" else np.nanmin
        values = solved.bic if criterion == "ebic" else getattr(solved, criterion)
        if criterion == "ebic":
            values = values + 2 * np.log([math.comb(6, size) for size in solved.n_features])
        assert found.values[0] == pytest.approx(best(values), rel=1e-9)
        assert moments.solve(found.best).feasible


def test_more_features_than_rows_can_tell_apart():
    data = make_selection(60, 26, 2, strength=0.2, random_state=3)
    rows = np.concatenate([np.flatnonzero(data.selected)[:12], np.flatnonzero(~data.selected)])
    moments = compress(
        data.X[rows], data.y[rows], selection_features=[0, 1], prediction_features=range(12)
    ).moments
    found = search_of(moments, "adjusted_r2")
    assert found.optimal
    assert found.n_features[0] < 10


def test_more_than_64_features():
    data = make_selection(3000, 68, 6, rho=0.5, random_state=3)
    choices = all_features(compress(data.X, data.y).moments)
    found = search_of(compress(data.X, data.y).moments, choices=choices)
    assert found.optimal
    np.testing.assert_array_equal(found.best, data.support)


def test_no_assignment_in_the_window_says_what_was_seen(moments):
    with pytest.raises(NoFeasibleAssignmentError) as caught:
        search_of(moments, "bic", (-0.99, -0.98))
    words = str(caught.value)
    assert re.search(r"16384 .*\[-0.99, -0.98\].*quartiles", words)
    assert words.count(" with x") == 3
    # The extremes and the nearest are those of all assignments, the quartiles nearly.
    every = np.array(list(itertools.product([False, True], repeat=14)))
    rho = moments.solve(every).rho
    away = np.maximum(-0.99 - rho, rho + 0.98)
    assert f"{rho[np.argmin(away)]:.4g} with" in words
    assert f"{rho.min():.4g} to {rho.max():.4g}" in words


def test_ctrl_c_returns_the_best_so_far(moments, monkeypatch):
    calls = []
    # Progress is told at every step, not a few times a second.
    monkeypatch.setattr(sys.modules["heckmanfa.search.best_subset.tree"], "EVERY", 0.0)

    def press(nodes, best, bound):
        calls.append((nodes, best, bound))
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(SearchWarning, match="was interrupted"):
        found = search_of(moments, "adjusted_r2", (0.1, 0.6), progress=press)
    complete = search_of(moments, "adjusted_r2", (0.1, 0.6))
    assert found.early_stop == "The search was interrupted."
    assert found.values[0] <= complete.values[0] + 1e-12
    assert found.values[0] + found.gap >= complete.values[0] - 1e-12
    assert all(best <= bound + 1e-12 for _, best, bound in calls)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_rounding_that_the_tree_allows_for_does_not_depend_on_the_unit_of_the_outcome(unit):
    data = make_selection(300, 5, 2, random_state=1)
    models = [
        Models(moments, all_features(moments), Goal.of(moments, "bic"))
        for moments in (compress(data.X, y).moments for y in (data.y, unit * data.y))
    ]
    for each in models:
        assert each.inverse is not None
    assert models[1].slack == pytest.approx(models[0].slack, rel=1e-6)
    assert models[1].sse == pytest.approx(unit**2 * models[0].sse, rel=1e-9)


def test_rounding_grows_with_the_condition_of_the_columns_and_the_fit():
    data = make_selection(300, 5, 2, random_state=1)
    X = np.array(data.X)
    X[:, 4] = X[:, 3] + 5e-3 * X[:, 4]
    moments = compress(X, data.y).moments
    models = Models(moments, all_features(moments), Goal.of(moments, "bic"))
    x, y = models.matrix[:, :-1], models.matrix[:, -1]
    lost = np.sum((y - x @ np.linalg.lstsq(x, y)[0]) ** 2) / np.sum(y**2)
    eps = np.finfo(float).eps
    expected = 64 * x.shape[1] * eps / (np.linalg.svd(x)[1][-1] ** 2 * lost)
    assert models.slack == pytest.approx(expected, rel=1e-4)
    assert models.slack > 1e-8


def test_nearly_collinear_columns_are_solved_from_the_triangular_factor():
    data = make_selection(300, 5, 2, random_state=1)
    X = np.array(data.X)
    X[:, 4] = X[:, 3] + 1e-7 * X[:, 4]
    moments = compress(X, data.y).moments
    assert Models(moments, all_features(moments), Goal.of(moments, "bic")).inverse is None

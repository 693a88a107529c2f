"""The perspective relaxation: its bounds against all assignments, and searches it must finish."""

import importlib
import itertools
from dataclasses import replace

import numpy as np
import pytest

from heckmanfa import compress
from heckmanfa.errors import SearchWarning
from heckmanfa.model.linalg import diagonal_below
from heckmanfa.search import Goal, best_subset
from heckmanfa.search.best_subset.branch_and_bound import warm_start
from heckmanfa.search.best_subset.relaxation import IN, OUT, Relaxation, _Boxes
from heckmanfa.search.best_subset.tree import Tree
from heckmanfa.search.choices import all_features
from heckmanfa.search.form import form_of_all
from heckmanfa.search.refitted_subset import best_of_form

from .test_best_subset import everything, problem, worse

relaxation = importlib.import_module("heckmanfa.search.best_subset.relaxation")


def hard(n, effect, k, n_effects, correlation, seed=0):
    """Features of equal correlation, and effects that are hard to tell from none."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    X = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(n, k))
    beta, gamma = np.zeros((2, k))
    beta[rng.choice(k, n_effects, replace=False)] = effect * rng.choice([-1, 1], n_effects)
    gamma[rng.choice(k, n_effects, replace=False)] = 0.2 * rng.choice([-1, 1], n_effects)
    u, v = rng.normal(size=(2, n))
    y = np.where(X @ gamma + u > -0.5, 1 + X @ beta + 0.5 * u + np.sqrt(0.75) * v, np.nan)
    return compress(X, y).moments


def tree_of(moments, choices, criterion, max_nodes=1000, start=None):
    goal = Goal.of(moments, criterion).among(choices)
    start = warm_start(moments, choices, goal)[0] if start is None else start
    return Tree(moments, choices, goal, tolerance=2.0, max_nodes=max_nodes, start=start)


def boxes_of(relaxed, rng, count, low, high):
    """Boxes in all strips, each with the same random units in and out in every strip."""
    frame = relaxed._frame
    n, c = frame.b.shape
    state = rng.choice([0, 0, IN, OUT], size=(count, len(frame.units))).astype(np.int8)
    state[0] = 0
    strip = np.tile(np.arange(n), count)
    return _Boxes(
        strip=strip,
        state=np.repeat(state, n, axis=0),
        low=np.full(len(strip), low),
        high=np.full(len(strip), high),
        factor=np.ones(len(strip)),
        bound=np.full(len(strip), -np.inf),
        z=rng.normal(size=(len(strip), c)),
        p=np.zeros((len(strip), c)),
    )


@pytest.mark.parametrize("part", range(2))
def test_no_bound_exceeds_any_assignment_of_its_box(part):
    checked = tight = 0
    rng = np.random.default_rng(part)
    for seed in range(part, 240, 2):
        data, choices, criterion, _ = problem(seed)
        if not 2 <= len(choices.units) <= 7:
            continue
        found = compress(data.X, data.y)
        # A start that is much worse than the best: more assignments are in the strips.
        tree = tree_of(found.moments, choices, criterion)
        tree = tree_of(found.moments, choices, criterion, start=tree.record.best + 0.1)
        relaxed = Relaxation.of(tree)
        if relaxed is None:
            continue
        frame, models = relaxed._frame, tree.models
        inside = np.array(list(itertools.product([False, True], repeat=len(choices.units))))
        masks = choices.masks(inside)
        sse = found.moments.solve(masks, exact=True).sse
        size = masks.sum(axis=1)
        near = (sse <= relaxed._limit[size]) & choices.allowed(inside)
        # The relaxation's units are the groups, then the single columns.
        order = [models.columns.index(unit[0]) for unit in choices.units]
        inside = inside[:, np.argsort(order)]
        boxes = boxes_of(relaxed, rng, 4, *relaxed._range)
        mu = relaxed._slopes(boxes.low, boxes.high) * rng.choice([0.3, 1.0, 3.0])
        for iterations in (1, 40):
            bound, cost = frame.bounds(boxes, mu, iterations)
            by_box = bound.reshape(4, -1).min(axis=1)
            for row in range(4):
                state = boxes.state[row * len(frame.b)]
                member = near & np.all(
                    np.where(state == IN, inside, np.where(state == OUT, ~inside, True)), axis=1
                )
                if not member.any():
                    continue
                value = (sse + mu[0] * (size - len(choices.always)))[member]
                assert by_box[row] <= value.min() * (1 + 1e-9), seed
                checked += 1
                tight += by_box[row] >= 0.9 * value.min()
                # Forcing a unit the other way raises the bound by its cost.
                for unit in np.flatnonzero(state == 0):
                    for way, sign in ((True, 1.0), (False, -1.0)):
                        forced = member & (inside[:, unit] == way)
                        if forced.any():
                            rows = slice(row * len(frame.b), (row + 1) * len(frame.b))
                            more = bound[rows] + np.maximum(sign * cost[rows, unit], 0.0)
                            least = (sse + mu[0] * (size - len(choices.always)))[forced].min()
                            assert more.min() <= least * (1 + 1e-9), seed
    assert checked > 100
    assert tight > checked / 4


@pytest.mark.parametrize(
    "part", [part if part < 2 else pytest.param(part, marks=pytest.mark.study) for part in range(4)]
)
def test_a_search_by_the_relaxation_alone_equals_brute_force(part, monkeypatch):
    monkeypatch.setattr(relaxation, "_FIRST", 0.0)
    monkeypatch.setattr(relaxation, "_FEWEST", 0)
    monkeypatch.setattr(relaxation, "_BOX", 0.0)
    monkeypatch.setattr(relaxation, "_FEW", 2)
    monkeypatch.setattr(relaxation, "_MOST_STRIPS", 8)
    finished = []
    run = Relaxation.run

    def watched(self, *arguments):
        run(self, *arguments)
        finished.append(self._tree.complete)

    monkeypatch.setattr(Relaxation, "run", watched)
    for seed in range(30 * part, 30 * part + 30):
        data, choices, criterion, _ = problem(seed)
        found = compress(data.X, data.y)
        brute = everything(data, found.probit.coef, choices)
        names = [f"x{column}" for column in range(choices.n_features)]
        search = best_subset(
            found.moments, choices, Goal.of(found.moments, criterion), names=names, max_nodes=3000
        )
        best = min(worse(candidate, criterion) for candidate in brute)
        assert search.optimal, seed
        assert worse({criterion: search.values[0]}, criterion) == pytest.approx(best, rel=1e-7)
        tolerance = 0.001 if criterion == "adjusted_r2" else 2.0
        near = {
            candidate["columns"]
            for candidate in brute
            if worse(candidate, criterion) <= best + tolerance
        }
        kept = [tuple(np.flatnonzero(mask)) for mask in search.masks]
        assert near <= {*kept}, seed
        assert len(kept) == len({*kept})
    assert np.mean(finished) > 0.8


def test_it_finishes_a_search_that_the_tree_does_not():
    moments = hard(1500, 0.17, 60, 12, 0.6)
    choices = all_features(moments)
    tree = tree_of(moments, choices, "bic", 12_000)
    tree.run()
    assert not tree.complete
    assert tree.goal.value(tree.record.best) - tree.goal.value(tree.bound) > 25.0
    names = [f"x{column}" for column in range(60)]
    found = best_subset(moments, choices, Goal.of(moments, "bic"), names=names, max_nodes=12_000)
    assert found.optimal
    assert found.gap == 0.0
    assert found.n_nodes < 12_000
    # Nothing better is next to it.
    every = np.concatenate([found.masks[:1], found.masks[0] ^ np.eye(60, dtype=bool)])
    assert moments.solve(every).bic.min() == pytest.approx(found.values[0], rel=1e-9)


def test_it_finishes_the_best_of_a_form():
    moments = hard(1500, 0.17, 60, 12, 0.6)
    names = [f"x{column}" for column in range(60)]
    form = replace(form_of_all(moments, range(60), names), n_selected=1000)
    found = best_of_form(form, all_features(moments), n_best=8, max_nodes=12_000)
    assert found.complete
    assert found.optimal
    assert len(found.values) == 8
    # Every neighbour of the best that is good enough is among them.
    neighbours = found.masks[0] ^ np.eye(60, dtype=bool)
    values = form.dropped(neighbours) + np.log(1000) * neighbours.sum(axis=1)
    kept = {mask.tobytes() for mask in found.masks}
    good = neighbours[values < found.values[-1] - 1e-6]
    assert len(good) > 0
    assert {mask.tobytes() for mask in good} <= kept
    assert found.beyond >= found.values[-1]


@pytest.mark.parametrize("step", [1, 2])
def test_interrupting_it_returns_the_best_so_far_with_a_gap_that_holds(step, monkeypatch):
    moments = hard(1500, 0.17, 60, 12, 0.6)
    names = [f"x{column}" for column in range(60)]
    goal, choices = Goal.of(moments, "bic"), all_features(moments)
    best = tree_of(moments, choices, "bic").record.best
    process, calls = Relaxation._process, []

    def press(self, boxes, iterations):
        calls.append(len(boxes))
        process(self, boxes, iterations)
        if len(calls) == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(Relaxation, "_process", press)
    with pytest.warns(SearchWarning, match="was interrupted"):
        found = best_subset(moments, choices, goal, names=names, max_nodes=12_000)
    assert found.interrupted
    assert found.values[0] - found.gap <= goal.value(best) + 1e-9
    assert found.gap < 60.0


def test_the_diagonal_is_below_the_matrix_and_not_far_from_it():
    rng = np.random.default_rng(0)
    for k in (1, 2, 5, 20):
        for decay in (0.1, 3.0):
            x = rng.normal(size=(3 * k, k)) * np.exp(-decay * rng.random(k))
            x += rng.normal(size=(3 * k, 1)) * decay
            gram = x.T @ x
            d = diagonal_below(gram)
            values = np.linalg.eigvalsh(gram - np.diag(d))
            assert values[0] >= -1e-9 * values[-1]
            # No smaller than the best multiple of the unit matrix.
            assert np.sum(np.log(d)) >= k * np.log(np.linalg.eigvalsh(gram)[0]) - 0.1

"""The best of all assignments, against looking at every one of them with plain least squares."""

import itertools

import numpy as np
import pytest

from heckmanfa import compress
from heckmanfa.choices import Choices
from heckmanfa.datasets import make_selection
from heckmanfa.errors import NoFeasibleAssignmentError
from heckmanfa.extraction import Goal, best_subset
from heckmanfa.normal import inverse_mills, mills_slope

CRITERIA = ("adjusted_r2", "bic", "aic")


def everything(data, gamma, choices):
    """Every assignment allowed, each by least squares on the selected rows."""
    X, y = data.X[data.selected], data.y[data.selected]
    index = gamma[0] + X @ gamma[1:]
    lam, delta = inverse_mills(index), mills_slope(index).mean()
    m = len(y)
    found = []
    for inside in itertools.product([False, True], repeat=len(choices.units)):
        columns = {
            one for unit, use in zip(choices.units, inside, strict=True) if use for one in unit
        }
        columns = sorted(columns | {*choices.always})
        if not 1 <= len(columns) <= choices.max_features or m <= len(columns) + 2:
            continue
        design = np.column_stack([np.ones(m), X[:, columns], lam])
        scale = np.linalg.norm(design, axis=0)
        beta, *_ = np.linalg.lstsq(design / scale, y, rcond=1e-15)
        sse = np.sum((y - design / scale @ beta) ** 2)
        imr = beta[-1] / scale[-1]
        rho = imr / np.sqrt(sse / m + delta * imr**2)
        j = len(columns)
        total = np.sum((y - y.mean()) ** 2)
        found.append(
            {
                "columns": tuple(columns),
                "rho": rho,
                "adjusted_r2": 1 - sse / total * (m - 1) / (m - j - 1),
                "aic": m * np.log(sse / m) + 2 * (j + 2),
                "bic": m * np.log(sse / m) + np.log(m) * (j + 2),
            }
        )
    return found


def worse(one, criterion):
    return -one[criterion] if criterion == "adjusted_r2" else one[criterion]


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
    units = [[one] for one in range(k)]
    always = ()
    if k > 3 and rng.random() < 0.4:
        units = [[0, k - 1], *([one] for one in range(1, k - 1))]
        if k > 6:
            units = [[0, k - 1], [2, 3, 4], [1], *([one] for one in range(5, k - 1))]
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
    return data, choices, CRITERIA[(seed // 12) % 3], window


@pytest.mark.parametrize("part", range(9))
def test_equals_brute_force_on_random_problems(part):
    checked = infeasible = 0
    for seed in range(part, 360, 9):
        data, choices, criterion, window = problem(seed)
        found = compress(data.X, data.y)
        goal = Goal.of(found.moments, criterion, window)
        brute = everything(data, found.probit.coef, choices)
        low, high = (-np.inf, np.inf) if window is None else window
        inside = [one for one in brute if low <= one["rho"] <= high]
        names = [f"x{one}" for one in range(choices.n_features)]
        if not inside:
            infeasible += 1
            with pytest.raises(NoFeasibleAssignmentError, match=f"none of the {len(brute)} "):
                best_subset(found.moments, choices, goal, names=names)
            continue
        search = best_subset(found.moments, choices, goal, names=names)
        best = min(worse(one, criterion) for one in inside)
        expected = [one for one in inside if worse(one, criterion) < best + 1e-8]
        expected = min(expected, key=lambda one: (len(one["columns"]), one["columns"]))
        assert search.optimal, seed
        assert tuple(np.flatnonzero(search.best)) == expected["columns"], seed
        assert search.values[0] == pytest.approx(expected[criterion], rel=1e-7, abs=1e-9)
        assert search.rho[0] == pytest.approx(expected["rho"], rel=1e-6, abs=1e-8)
        # Every assignment nearly as good is there.
        tolerance = {"adjusted_r2": 0.001, "bic": 2.0, "aic": 2.0}[criterion]
        near = {one["columns"] for one in inside if worse(one, criterion) <= best + tolerance}
        kept = {tuple(np.flatnonzero(mask)) for mask in search.masks[search.in_range]}
        assert near <= kept, seed
        checked += 1
    assert checked >= 25
    assert infeasible <= 15

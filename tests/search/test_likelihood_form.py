"""A likelihood's quadratic form: its best assignments, and refits beside it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import kendalltau, rankdata

import heckmanfa
from heckmanfa import HeckmanAverage, HeckmanBestSubset, HeckmanProbitBestSubset
from heckmanfa.datasets import make_selection
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form
from heckmanfa.search.refitted_subset import best_of_form
from heckmanfa.search.searched import ExactRefits

M = 500.0
K = 6
CHOICES = Choices(K, (), ((0, 1), *((column,) for column in range(2, K))), K)
MASKS = np.array(
    [CHOICES.masks(np.array(bits, bool)) for bits in itertools.product([0, 1], repeat=K - 1)]
)


def draw(seed: int) -> Form:
    random = np.random.default_rng(seed)
    root = random.normal(size=(K, K + 1))
    slopes = 0.3 * random.normal(size=K)
    return Form.of_slopes(range(K), slopes, root @ root.T / 200, n_features=K, n_selected=M)


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic"])
def test_the_best_by_each_criterion_is_that_of_brute_force(criterion: str) -> None:
    form = draw(1)
    units = MASKS[:, [unit[0] for unit in CHOICES.units]].sum(axis=1)
    u = len(CHOICES.units)
    ways = gammaln(u + 1) - gammaln(units + 1) - gammaln(u - units + 1)
    each = 2.0 if criterion == "aic" else np.log(M)
    value = form.dropped(MASKS) + each * MASKS.sum(axis=1)
    value = np.sort(value + (2.0 * ways if criterion == "ebic" else 0.0))
    found = best_of_form(form, CHOICES, criterion=criterion, n_best=7)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.values, value[:7], atol=1e-9)
    assert found.beyond == pytest.approx(value[7])
    assert best_of_form(form, CHOICES).beyond == np.inf


def test_a_tree_that_is_cut_short_knows_the_neighbours_of_its_best() -> None:
    random = np.random.default_rng(0)
    k = 30
    root = random.normal(size=(k, k)) + 4.0 * np.eye(k)
    estimates = np.where(np.arange(k) < 3, 3.0, 0.02 * random.normal(size=k))
    form = Form.of_slopes(range(k), estimates, root @ root.T / 500, n_features=k, n_selected=M)
    choices = Choices(k, (), tuple((column,) for column in range(k)), k)
    found = best_of_form(form, choices, n_best=k, max_nodes=1)
    assert not found.complete
    near = found.masks[0] ^ np.eye(k, dtype=bool)
    known = {mask.tobytes() for mask in found.masks}
    values = form.dropped(near) + np.log(M) * near.sum(axis=1)
    kept = values <= found.values[-1]
    assert kept.sum() > k // 2
    assert all(mask.tobytes() in known for mask in near[kept])


def test_agreement_of_two_orders() -> None:
    random = np.random.default_rng(4)
    exact = np.sort(random.normal(size=30))
    refits = ExactRefits(
        approximate=exact + 0.3 * random.normal(size=30),
        log_likelihood=-0.5 * exact,
        coef=np.zeros((30, 2)),
        beyond=exact[0] + 2.0,
        full_log_likelihood=0.0,
    )
    tau = kendalltau(exact, refits.approximate).statistic
    assert refits.same_order(exact) == pytest.approx(0.5 * (1.0 + tau))
    np.testing.assert_array_equal(refits.approximate_rank(), rankdata(refits.approximate))
    assert refits.best_is_same(exact) == (refits.approximate_rank()[0] == 1)
    assert refits.margin(exact) == pytest.approx(2.0)
    assert refits.largest_error(exact) == (refits.approximate - exact).max()
    np.testing.assert_allclose(refits.costs(), exact)
    exact[-1] = np.nan
    assert np.isfinite(refits.same_order(exact))


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
@pytest.mark.parametrize("name", ["average_ml", "corrected", "probit"])
def test_models_of_files_that_had_a_form_of_slopes_alone_are_read(name: str) -> None:
    """The version before wrote these; an average had parts of its form twice."""
    binary = name == "probit"
    kind: Any = {"outcome_kind": "binary"} if binary else {}
    size = (900, 5, 2) if binary else (400, 6, 3)
    data = make_selection(*size, random_state=1 + binary, **kind)
    models: Any = {
        "average_ml": HeckmanAverage(method="ml"),
        "corrected": HeckmanBestSubset("corrected_bic", never=[0]),
        "probit": HeckmanProbitBestSubset(n_refits=10),
    }
    again = models[name].fit(data.X, data.y)
    read: Any = heckmanfa.load(Path(__file__).parent / "files" / f"{name}.heckmanfa")
    assert str(read.summary()) == str(again.summary())
    if name == "average_ml":
        assert read.assignments_.to_string() == again.assignments_.to_string()
    else:
        assert str(read.search_report()) == str(again.search_report())

"""The main findings of docs/averaging_study.md, from draws that the page does not use.

`python -m benchmarks.averaging_study` makes the page; these draws have higher numbers, so they are
fresh ones of the same designs.
"""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from benchmarks.averaging_designs import COLUMNS, DESIGNS, draw
from benchmarks.averaging_figures import METHODS, class_ratios, mean_ratio, regrets, tally
from benchmarks.averaging_methods import averages, columns
from benchmarks.averaging_study import answer

from heckmanfa import compress

pytestmark = pytest.mark.study

FIRST = 10_000
DRAWS = 60
CLASSES = {
    kind: [name for name in DESIGNS if name.startswith(f"excess {kind} ")]
    for kind in ("few", "mixed", "many")
}


def drawn(names):
    """Fresh draws of some designs, by name."""
    tasks = [
        (DESIGNS[name].part, name, number)
        for name in names
        for number in range(FIRST, FIRST + DRAWS)
    ]
    found = {name: [] for name in names}
    for (_, name, _), one in joblib.Parallel(n_jobs=-1)(joblib.delayed(answer)(t) for t in tasks):
        assert "failure" not in one, one["failure"]
        found[name].append(one)
    return found


@pytest.fixture(scope="module")
def errors():
    return drawn([name for names in CLASSES.values() for name in names])


def test_an_average_with_bic_weights_beats_the_choice_by_bic(errors):
    for names in CLASSES.values():
        ratio = class_ratios(errors, names, mean_ratio)["bic weights"]
        assert ratio.value < 1 + 2 * ratio.error


def test_aic_weights_have_a_smaller_largest_regret_than_a_choice_or_all_features(errors):
    worst = {method: one[0].value for method, one in regrets(errors, errors, METHODS).items()}
    for other in ("chosen bic", "all, two-step", "least squares"):
        assert worst["aic weights"] < worst[other]


def test_few_strong_predictors_favour_bic_and_many_middling_ones_aic(errors):
    few = class_ratios(errors, CLASSES["few"], mean_ratio)
    many = class_ratios(errors, CLASSES["many"], mean_ratio)
    assert few["bic weights"].value < few["aic weights"].value < few["all, two-step"].value
    assert many["aic weights"].value < many["bic weights"].value
    assert many["all, ML"].value < many["aic weights"].value


def test_mixture_intervals_cover_where_those_of_the_chosen_model_do_not():
    names = ["coverage K = 8 2", "coverage K = 15 2"]
    found = drawn(names)
    draws = [one for name in names for one in found[name]]
    aic = {kind: tally(draws, "aic mixture", kind) for kind in ("strong", "weak")}
    assert aic["strong"].share > 0.9
    assert aic["weak"].share > 0.86
    assert tally(draws, "chosen", "weak").share < 0.6
    assert aic["weak"].width < tally(draws, "all features", "weak").width


def test_the_average_is_that_of_an_enumeration_with_its_own_weights():
    # Part 5 of the study solves every assignment and weighs it by itself.
    name = next(name for name in COLUMNS if COLUMNS[name].features == 10)
    for number in range(3):
        data = draw(name, number)
        found = averages(data, compress(data.X, data.y), name, number)
        plain = columns(name, number)["errors"]
        for kind, words in (("aic", "small-sample AIC"), ("bic", "BIC"), ("ebic", "EBIC")):
            ours = data.excess(found[kind].intercept, found[kind].coef)
            np.testing.assert_allclose(ours, plain[f"{words}, J up to m/3 weights"], rtol=1e-8)

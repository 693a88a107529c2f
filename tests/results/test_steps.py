"""One step for each feature: chosen by its spread, and of the same effect in every output."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.results.shared import fitted

from heckmanfa import Heckman, HeckmanAverage
from heckmanfa.datasets import load_mroz
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.naming import Naming
from heckmanfa.results.steps import more_of, round_step, step_text, whole_columns
from heckmanfa.text.labels import Labels, labelled

FEATURES = ["educ", "exper", "expersq", "kids5", "nwifeinc", "city"]


@pytest.fixture(scope="module")
def frame():
    return load_mroz()[[*FEATURES, "lwage", "wage"]]


@pytest.mark.parametrize(
    ("spread", "step"),
    [
        (2.0, 1.0),
        (2.28, 1.0),
        (50.0, 1.0),
        (50.1, 50.0),
        (81.0, 100.0),
        (26_000.0, 20_000.0),
        (1.99, 2.0),
        (1.5, 1.0),
        (0.97, 1.0),
        (0.5, 0.5),
        (0.144, 0.1),
        (0.16, 0.2),
        (3e-9, 2e-9),
        (7e20, 5e20),
        (0.0, 1.0),
        (float("nan"), 1.0),
    ],
)
def test_steps_are_one_unit_or_a_round_number_near_one_deviation(spread, step):
    assert round_step(spread) == step


@pytest.mark.parametrize("spread", 10.0 ** np.linspace(-12, 12, 241))
def test_a_round_step_is_near_one_deviation_and_has_one_digit(spread):
    step = round_step(float(spread))
    if not 2.0 <= spread <= 50.0:
        assert 0.49 <= step / spread <= 1.2501
    assert f"{step:e}"[0] in "125"
    assert float(f"{step:.0e}") == step


def test_whole_numbers_have_no_smaller_step_than_one():
    assert [round_step(spread, whole=True) for spread in (0.1, 0.52, 1.99, 300.0)] == [1, 1, 1, 200]
    # Unless weights hide which numbers are whole: then only small counts are taken for such.
    assert [round_step(spread, whole=None) for spread in (0.1, 0.39, 1.9)] == [0.1, 1.0, 1.0]


def test_columns_of_whole_numbers_are_found_without_rows():
    rng = np.random.default_rng(0)
    n = 800
    X = pd.DataFrame(
        {
            "count": rng.poisson(0.4, n),
            "year": 1975 + rng.integers(0, 5, n),
            "share": rng.uniform(0, 1, n),
            "rounded": np.round(rng.normal(size=n), 3),
            "minus": rng.integers(-3, 3, n),
        }
    ).astype(float)
    y = X["count"] + rng.normal(size=n)
    y[rng.normal(size=n) + X["share"] < 0.3] = np.nan
    fit = fitted(Heckman(["count"]), X, y).fit_
    assert whole_columns(fit.moments) == {0, 1, 4}
    steps = [Naming.of(fit).step_of(column) for column in range(5)]
    assert steps == [1.0, 1.0, 0.2, 1.0, 1.0]


def test_evidence_is_per_step_and_estimates_are_per_unit(frame):
    model = fitted(HeckmanAverage(), frame[FEATURES], frame["lwage"])
    table = model.tidy().query("equation == 'prediction'").set_index("term")
    steps = {feature.name: feature.step for feature in evidence_of(model.fit_).features}
    assert steps == dict.fromkeys(FEATURES, 1.0) | {"expersq": 200.0}
    for feature in evidence_of(model.fit_).features:
        row = table.loc[feature.name, ["estimate", "ci_low", "ci_high"]].to_numpy(float)
        effect = feature.effect
        found = (effect.estimate, effect.low, effect.high)
        assert found == pytest.approx(tuple(feature.step * row), rel=1e-12)


def test_a_feature_in_other_units_keeps_its_step_and_its_effect(frame):
    ends = []
    for times in (1.0, 1000.0, 1e-3):
        X = frame[FEATURES].assign(expersq=frame["expersq"] * times)
        found = evidence_of(fitted(HeckmanAverage(), X, frame["lwage"]).fit_)
        feature = next(one for one in found.features if one.name == "expersq")
        assert feature.step == pytest.approx(200.0 * times, rel=1e-12)
        ends.append((feature.effect.estimate, feature.least_squares.low))
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)
    assert ends[2] == pytest.approx(ends[0], rel=1e-6)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (1000.0, "1,000"),
        (0.1, "0.1"),
        (2.5, "2.5"),
        (0.0005, "0.0005"),
        (1234.5, "1,234.5"),
        (1e6, "1,000,000"),
        (1e-9, "1e-09"),
    ],
)
def test_steps_are_written_with_all_their_digits(step, text):
    assert step_text(step) == text
    assert float(text.replace(",", "")) == step


def test_steps_are_said_with_labels_and_units():
    naming = Naming(
        "wage",
        sources=("educ", "income", "ratio", "plain"),
        levels=("",) * 4,
        references=("",) * 4,
        switches=frozenset(),
        steps=(1.0, 10_000.0, 0.1, 20.0),
    )
    said = [str(naming.change_of(column)) for column in range(4)]
    assert said == ["one more educ", "10,000 more income", "0.1 more ratio", "20 more plain"]
    labels = Labels(
        {"educ": "Years of schooling", "income": "Household income", "ratio": "Debt ratio"},
        units={"educ": "years", "income": "dollars"},
    )
    with labelled(labels):
        said = [str(naming.change_of(column)) for column in range(4)]
        assert said == [
            "one more year (Years of schooling)",
            "10,000 dollars more (Household income)",
            "0.1 more in Debt ratio",
            "20 more plain",
        ]
        assert naming.step_words(1) == "10,000 dollars more"
        assert naming.step_words(0) == "one more year"
    assert more_of("income", 1.0) == "one more"

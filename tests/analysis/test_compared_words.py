"""What a comparison says of its estimates: what they rest on, and their bounds."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanOrdered,
    NaiveOLS,
)
from heckmanfa.analysis import Comparison, Question, compare_methods, load
from heckmanfa.analysis.treatment_comparison import compare_treatments
from heckmanfa.datasets import make_selection
from heckmanfa.errors import FrequencyWeightWarning, HeckmanfaWarning, InputError

FOLDS: dict[str, Any] = {"n_folds": 2, "n_repeats": 1}
MISSING_AT_RANDOM = "outcomes are missing at random given the features"


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, pd.Series]:
    """500 rows of four features, of which the first two predict a rating of 1 to 4."""
    data = make_selection(500, 4, 2, rho=0.5, outcome_kind="ordered", random_state=3)
    return pd.DataFrame(data.X, columns=list("abcd")), pd.Series(data.y, name="stars")


def compared(X: pd.DataFrame, y: Any, **options: Any) -> Comparison:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return compare_methods(X, y, **FOLDS | options)


def said(found: Comparison) -> str:
    return " ".join(str(found).split())


def test_the_naive_ordered_probit_assumes_missing_at_random(rows):
    found = compared(*rows, outcome_kind="ordered", never=["d"])
    assert found.assumptions["naive ordered probit"] == MISSING_AT_RANDOM
    assert "jointly normal, and 1 exclusion" in found.assumptions["all features"]
    assert f"naive ordered probit: {MISSING_AT_RANDOM}." in found.assumed()
    assert "doubly robust" not in said(found)


def test_a_rho_that_is_held_needs_no_exclusion(rows):
    X, y = rows
    held = {"zero": Heckman(["a"], rho=0.0), "half": Heckman(["a"], rho=0.5)}
    # Uncorrelated t errors are not independent.
    held["t"] = Heckman(["a"], rho=0.0, method="ml", errors="t")
    found = compared(X, y, estimators=held)
    assert found.assumptions["zero"] == MISSING_AT_RANDOM
    assert found.assumptions["half"].endswith("jointly normal, with a rho of 0.5")
    assert found.assumptions["t"].endswith("jointly t, with a rho of 0")


@pytest.mark.parametrize(("positive", "words"), [(None, "= 4)"), (3.0, "= 3 or higher)")])
def test_the_chance_of_a_class_stands_first_with_its_bounds(rows, positive, words):
    X, y = rows
    model = HeckmanOrdered(["a", "b"])
    found = compared(
        X, y, outcome_kind="ordered", estimators={"m": model, "n": model}, positive=positive
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        chances = pd.DataFrame(model.fit(X, y).predict_proba(X), columns=model.classes_)
    reached = [label for label in (1.0, 2.0, 3.0, 4.0) if label >= (positive or 4.0)]
    first = found.estimates.iloc[0]
    assert first["term"] == f"P(stars {words}"
    assert first["estimate"] == pytest.approx(chances[reached].sum(axis=1).mean(), rel=1e-9)
    known, gone = y.isin(reached).mean(), y.isna().mean()
    bounds = found.bounds.table.iloc[0]
    assert bounds["term"] == first["term"]
    assert bounds[["low", "high"]].tolist() == pytest.approx([known, known + gone])
    assert f"Without a model, P(stars {words} lies between" in said(found)
    assert "Mean of everyone" not in said(found)


def test_a_class_that_cannot_be_reached_is_refused(rows):
    for options, words in (
        ({"outcome_kind": "ordered", "positive": 1.0}, "above the lowest: 2.0, 3.0, 4.0; got 1.0"),
        ({"positive": 2.0}, "is for ordered outcomes"),
    ):
        with pytest.raises(InputError, match=words):
            compare_methods(*rows, **options)


def test_exclusions_that_were_named_are_not_said_to_be_chosen(rows):
    X, y = rows
    X = X.assign(e=X["d"] ** 2)
    abc = {"prediction_features": ["a", "b", "c"]}
    searches = {
        "named": HeckmanBestSubset(**abc, always=["a", "b", "c"]),
        "mixed": HeckmanBestSubset(**abc, max_features=1),
        "kept out": HeckmanBestSubset(never=["d", "e"], max_features=1),
        "chosen": HeckmanBestSubset(max_features=1),
    }
    found = compared(X, y, estimators=searches)
    ends = {name: words.split("and ")[-1] for name, words in found.assumptions.items()}
    assert ends == {
        "named": "2 exclusions hold",
        "mixed": "4 exclusions, 2 of which the data chose, hold",
        "kept out": "4 exclusions, 2 of which the data chose, hold",
        "chosen": "4 exclusions, which the data chose, hold",
    }


def test_errors_are_said_to_ignore_a_choice_where_they_do(rows):
    X, y = rows
    robust = DoublyRobust(["a"], random_state=0)
    average = compared(X, y, estimators={"mix": HeckmanAverage(), "dr": robust})
    assert average.beside == ["dr", "mix"]
    assert "Those of mix allow for the choice of features" in said(average)
    assert "as known" not in said(average)
    assert "the average prediction, but that of dr is an estimate of its own" in said(average)
    searched = compared(X, y, estimators={"best": HeckmanBestSubset(), "ols": NaiveOLS()})
    assert "Those of best take the features as known" in said(searched)
    assert "allow for the choice" not in said(searched)
    assert "is the average prediction." in said(searched)
    named = said(compared(X, y, estimators={"two": Heckman(["a"])}))
    assert "as known" not in named
    assert "choice of features" not in named


def workers(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    x, z, u, v = rng.normal(size=(4, n))
    d = 0.3 * x + z + u > 0
    return pd.DataFrame({"y": x + 0.5 * d + 0.4 * u + v, "x": x, "z": z, "d": d * 1.0})


def question(**options: Any) -> Question:
    return Question("t", "y", model="treatment", treated="d", select_only=("z",), **options)


def test_the_effect_of_a_treatment_has_bounds_without_a_model():
    """Outcomes under the other treatment are at an end of the range of those that are seen."""
    frame = workers()
    found = compare_treatments(load(question(), lambda words: None, frame))
    bottom, top = frame["y"].min(), frame["y"].max()
    treated = frame["d"] == 1
    highest = frame["y"].where(treated, top) - frame["y"].where(~treated, bottom)
    lowest = frame["y"].where(treated, bottom) - frame["y"].where(~treated, top)
    row = found.bounds.tidy().iloc[0]
    assert row[["low", "high"]].tolist() == pytest.approx([lowest.mean(), highest.mean()])
    sentence = "Without a model, the average effect of treatment on y lies between"
    assert sentence in " ".join(str(found).split())


def test_a_treatment_warns_of_weights_that_look_like_a_survey():
    frame = workers().assign(w=np.arange(400) + 50)
    loaded = load(question(weights="w"), lambda words: None, frame)
    with pytest.warns(FrequencyWeightWarning, match="400 rows count as 99,800"):
        found = compare_treatments(loaded)
    assert found.n_obs == 99_800
    with warnings.catch_warnings():
        warnings.simplefilter("error", FrequencyWeightWarning)
        compare_treatments(load(question(), lambda words: None, frame.drop(columns="w")))


def test_models_that_fail_for_the_same_reason_share_a_line():
    frame = workers()
    few = pd.concat([frame[frame["d"] == 1].head(3), frame[frame["d"] == 0]], ignore_index=True)
    found = compare_treatments(load(question(), lambda words: None, few))
    said_of = " ".join(str(found).split())
    assert "separate, two-step and separate, ML: the treated have an equation" in said_of
    assert said_of.count("equation of their own") == 1


def test_bounds_say_that_replicate_weights_do_not_give_their_errors():
    frame = workers().assign(w=1.0)
    for place in range(20):
        frame[f"jk{place}"] = np.where(np.arange(400) % 20 == place, 0.0, 20 / 19)
    design = {"weights": "w", "replicate_weights": ("jk*",), "replicate_kind": "jackknife"}
    found = compare_treatments(load(question(**design), lambda words: None, frame))
    assert "Replicate weights do not enter" in found.without_model[-1]
    assert "Replicate weights do not enter" in " ".join(str(found).split())

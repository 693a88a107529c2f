"""The command line on outcomes of two classes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from heckmanfa.analysis import refits

FEATURES = "educ,age,kids5"
# What only a linear outcome has.
LINEAR = ("least squares", "R2", "sigma", "residual", "lambda")


@pytest.fixture(autouse=True)
def few_folds(monkeypatch):
    """Scores are of two folds, each of which is searched again."""
    monkeypatch.setattr(refits, "N_FOLDS", 2)


@pytest.fixture
def paid(mroz):
    """mroz.csv with wage4: whether a wage is at least 4 dollars; the frame in it."""
    above = (mroz["lwage"] >= np.log(4)).astype(float).where(mroz["lwage"].notna())
    frame = mroz.drop(columns="lwage").assign(wage4=above)
    frame.to_csv("mroz.csv", index=False)
    return frame


def fit(shell, *options, data="mroz.csv", outcome="wage4"):
    """The results of a fit, and what it printed."""
    words = ("fit", data, "--outcome", outcome, "--features", FEATURES, "--force")
    text = shell.runs(*words, "--json", "j.json", *options)
    return shell.json("j.json"), text


def test_0_and_1_get_a_heckman_probit_and_its_answer_is_about_probabilities(shell, paid):
    found, text = fit(shell, "--save-table", "t.csv")
    assert "Heckman probit of P(wage4 = 1). For the other class, pass --positive 0" in text
    assert any("P(wage4 = 1)" in sentence for sentence in found["answer"]["sentences"])
    assert "percentage point" in text
    said = "Points: percentage points in P(wage4 = 1) for one more of a feature, or for the step"
    assert said in " ".join(text.split())
    assert "percentage points in P(wage4 = 1)" in found["may_write"][0]["paper"]
    assert not [words for words in LINEAR if words in text]
    assert found["model"] == {
        "outcome_kind": "binary",
        "estimator": "HeckmanProbitBestSubset",
        "outcome_transform": None,
        "classes": [0, 1],
        "positive": 1,
        "effects_are_on": "P(wage4 = 1)",
        "percents_are_of": None,
        "words": found["model"]["words"],
    }
    assert found["question"]["method"] == "ml"
    assert found["question"]["search"] == "best-subset"
    assert found["command"].endswith("--outcome-kind binary")
    assert found["sigma"] is None
    assert found["held_out"]["rows"] == 428
    assert 0.5 < found["held_out"]["auc"] < 1.0
    assert found["held_out"]["brier"] < found["held_out"]["brier_of_share"]
    assert "These rows are selected" in found["held_out"]["words"]
    table = pd.read_csv("t.csv")
    assert {"effect", "naive_probit", "naive_probit_low"} <= {*table.columns}
    assert table["effect"].dropna().abs().max() < 1.0


def test_two_texts_are_classes_that_predict_writes_and_positive_turns_around(shell, paid):
    words = paid["wage4"].map({1.0: "well paid", 0.0: "low"})
    paid.assign(wage4=words).to_csv("mroz.csv", index=False)
    given = ("--search", "none", "--select-only", "kids5,age")
    numbers, _ = fit(shell, *given, "--save", "m.heckmanfa")
    assert numbers["model"]["classes"] == ["low", "well paid"]
    other, text = fit(shell, *given, "--positive", "low")
    assert "Heckman probit of P(wage4 = 'low')" in text
    assert other["model"]["classes"] == ["well paid", "low"]
    assert other["rho"] == pytest.approx(-numbers["rho"], abs=1e-6)
    assert other["log_likelihood"] == pytest.approx(numbers["log_likelihood"])
    effects = [
        {one["feature"]: one["effect"] for one in each["roles"]} for each in (numbers, other)
    ]
    assert effects[1]["educ"] == pytest.approx(-effects[0]["educ"], abs=1e-6)
    # The saved model writes probabilities and the likelier class.
    text = shell.runs("predict", "m.heckmanfa", "mroz.csv", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    chance = found["probability_marginal"]
    assert ((found["low"] < chance) & (chance < found["high"])).all()
    likelier = np.where(chance > 0.5, "well paid", "low")
    np.testing.assert_array_equal(found["predicted_marginal"], likelier)
    assert {*likelier} == {"well paid", "low"}


def test_streamed_and_loaded_files_agree(shell, paid):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    words = paid["wage4"].map({1.0: "a high wage", 0.0: "b low wage"})
    paid.assign(wage4=words).to_parquet("mroz.parquet")
    options = ("--search", "none", "--select-only", "kids5", "--positive", "a high wage")
    loaded, _ = fit(shell, *options, data="mroz.parquet")
    streamed, _ = fit(shell, *options, "--stream-above", "0", data="mroz.parquet")
    assert streamed["streamed"]
    assert streamed["model"] == loaded["model"]
    for key in ("rho", "log_likelihood"):
        assert streamed[key] == pytest.approx(loaded[key], rel=1e-7)
    assert "memory" in streamed["held_out"]["words"]


def test_other_numbers_are_linear_with_a_hint(shell, paid):
    paid.assign(wage4=paid["wage4"] + 1).to_csv("mroz.csv", index=False)
    found, text = fit(shell, "--search", "none", "--select-only", "kids5")
    assert "pass --outcome-kind binary and --positive 2" in text
    assert found["model"]["outcome_kind"] == "linear"
    assert found["model"]["estimator"] == "Heckman"
    assert found["held_out"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--search", "lasso"), "--search lasso is for linear outcomes"),
        (("--method", "two-step"), "--method two-step is for linear outcomes"),
        (("--positive", "2"), "its classes are 0 and 1"),
        (("--outcome-kind", "linear", "--positive", "1"), "--positive is for binary outcomes"),
        (("--outcome-kind", "logit"), "--outcome-kind must be one of linear, binary"),
        (("--predict-with", "edcu"), "Did you mean 'educ'?"),
    ],
)
def test_options_that_do_not_fit_are_refused(shell, paid, options, words):
    said = shell.refuses("fit", "mroz.csv", "--outcome", "wage4", *options)
    assert words in said


def test_bad_outcomes_are_explained(shell, paid):
    typo = paid["wage4"].map({1.0: "yes", 0.0: "no"})
    typo.iloc[0] = "yse"
    seen = paid["wage4"].notna()
    tables = {
        "typo": typo,
        "ones": np.where(seen, 1, np.nan),
        "elsewhere": np.where(seen, 1, 0),
        "never": paid["wage4"].fillna(0.0),
    }
    frame = paid.drop(columns="wage4").assign(works=seen.astype(int), **tables)
    frame.to_csv("bad.csv", index=False)

    def refused(outcome, *options):
        words = ("fit", "bad.csv", "--outcome", outcome, "--features", FEATURES)
        return shell.refuses(*words, *options)

    assert "'yse' in 1. A binary outcome has two" in refused("typo")
    assert "holds 1 in all 428 rows" in refused("ones")
    said = refused("elsewhere", "--selected", "works")
    assert "one class" in said
    assert "only in rows that are not selected" in said
    assert "is never missing in 753 rows" in refused("never")


def test_compare_judges_probabilities_of_selected_rows(shell, paid):
    few = paid[["educ", "kids5", "wage4"]].assign(id=range(len(paid)))
    few.to_csv("mroz.csv", index=False)
    words = ("compare", "mroz.csv", "--outcome", "wage4")
    text = shell.runs(*words, "--repeats", "1", "--folds", "2", "--out", "c.csv")
    for said in ("AUC", "Brier", "log loss", "naive probit", "best subset", "held-out Brier score"):
        assert said in text
    assert "they say nothing about the others" in text
    assert "Left out: 'id' " in text
    assert "MSE" not in text
    table = pd.read_csv("c.csv").set_index("method")
    assert table["auc"].between(0.5, 1.0).all()
    assert (table["brier"] < 0.25).all()
    assert {"average by AIC", "average by BIC"} <= {*table.index}
    assert "--ru is for amounts" in shell.refuses(*words, "--ru")


def test_simulated_classes_can_be_fitted(shell):
    options = ("--rows", "400", "--features", "3", "--predicting", "1", "--truth", "t.json")
    shell.runs("simulate", "y.csv", "--outcome-kind", "binary", *options)
    assert shell.json("t.json")["outcome_kind"] == "binary"
    assert {*pd.read_csv("y.csv")["y"].dropna()} == {0.0, 1.0}
    said = shell.refuses("simulate", "z.csv", "--outcome-kind", "binary", "--sigma", "2")
    assert "--sigma is 2.0" in said


def test_a_rho_at_the_boundary_leaves_errors_empty_in_every_output(shell):
    rng = np.random.default_rng(0)
    X, errors = rng.normal(size=(400, 3)), rng.normal(size=(400, 2))
    errors[:, 1] = 0.9 * errors[:, 0] + np.sqrt(0.19) * errors[:, 1]
    y = (-2.2 + 0.5 * X[:, 0] + errors[:, 1] > 0).astype(float)
    y[X @ [0.5, 0.5, 0.7] + errors[:, 0] <= 0] = np.nan
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(out=y).to_csv("rare.csv", index=False)
    words = "fit", "rare.csv", "--outcome", "out", "--select-only", "c", "--search", "none"
    status, text = shell(*words, "--json", "j.json", "--report", "page.html")
    assert status in (0, 3), text
    assert "practically one" in text
    answer = json.loads((shell.folder / "j.json").read_text(), parse_constant=pytest.fail)
    assert answer["rho"] > 0.98
    estimates = {(one["equation"], one["term"]): one for one in answer["estimates"]}
    assert estimates["prediction", "a"]["std_error"] is None
    assert "practically one" in (shell.folder / "page.html").read_text(encoding="utf-8")

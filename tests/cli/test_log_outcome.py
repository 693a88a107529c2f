"""A log outcome on the command line: its name, its predictions, and the scales of others."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.analysis.predictions import scale_words
from heckmanfa.datasets import load_mroz

FEATURES = ["educ", "exper", "age", "kids5"]
PREDICT = ["educ", "exper"]


@pytest.fixture
def wages(shell):
    """Wages of Mroz's women, whose logarithm is ``lwage``."""
    mroz = load_mroz()
    table = mroz[FEATURES].assign(wage=np.exp(mroz["lwage"]))
    table.to_csv(shell.folder / "wages.csv", index=False)
    return table


def fit(shell, *options):
    words = ["wages.csv", "--outcome", "wage", "--search", "none", "--predict-with"]
    return shell.runs("fit", *words, ",".join(PREDICT), *options)


def test_a_log_outcome_is_named_and_explained_and_predicted_as_an_amount(shell, wages):
    files = ("--save", "m.heckmanfa", "--json", "j.json", "--report", "r.html")
    said = fit(shell, "--outcome-transform", "log", *files)
    educ = next(row for row in shell.json("j.json")["roles"] if row["feature"] == "educ")
    shares = [100 * math.expm1(educ[key]) for key in ("effect", "ci_low", "ci_high")]
    percents = "{:.1f}% more wage for one more educ. 95% interval {:.1f}% to {:.1f}%"
    assert percents.format(*shares) in " ".join(said.split())
    assert "The model is of log(wage); its predictions are means of wage itself." in said
    found = shell.json("j.json")
    assert found["model"]["outcome_transform"] == "log"
    assert found["model"]["effects_are_on"] == "log(wage)"
    assert found["command"].endswith("--outcome-transform log")
    scale = [one["sentence"] for one in found["caveats"] if one["key"] == "log_scale"]
    assert scale[0].startswith("The outcome is log(wage)")
    assert found["transform_ratio"] == pytest.approx(1.0, abs=0.1)
    page = (shell.folder / "r.html").read_text()
    assert "<title>log(wage): a selection model of wages.csv</title>" in page
    assert "percent more wage, with the step beside each name" in page
    # The same model as of a column that somebody took the logarithm of.
    logs = Heckman(PREDICT, on_collinear="drop").fit(wages[FEATURES], np.log(wages["wage"]))
    terms = {row["term"]: row["estimate"] for row in found["estimates"][:3]}
    assert terms["educ"] == pytest.approx(logs.coef_[0], rel=1e-9)
    model = logs.set_params(outcome_transform="log").fit(wages[FEATURES], wages["wage"])
    predict = ("predict", "m.heckmanfa", "wages.csv", "--out", "p.csv", "--force")
    for scale, words in (("response", "a mean of wage, not of"), ("link", "a mean of log(wage).")):
        said = shell.runs(*predict, "--kind", "selected", "--scale", scale)
        assert words in said
        np.testing.assert_allclose(
            pd.read_csv(shell.folder / "p.csv")["predicted_selected"],
            model.predict(wages[FEATURES], kind="selected", scale=scale),
            rtol=1e-9,
        )
    assert "scale must be 'response' or 'link'" in shell.refuses(*predict, "--scale", "log")


def test_the_words_about_scales_name_what_a_prediction_is_of():
    mroz = load_mroz()
    model = Heckman(PREDICT, outcome_transform="log")
    fitted = model.fit(mroz[FEATURES], np.exp(mroz["lwage"])).fit_
    said = "predicted_expected is a mean of {}, counted as 0 if not selected."
    assert scale_words(fitted, "wage", "expected", "response") == said.format("wage")
    assert scale_words(fitted, "wage", "expected", "link") == said.format("log(wage)")


def test_zeros_and_classes_have_no_logarithm(shell, wages):
    wages.assign(wage=wages["wage"].fillna(0)).to_csv(shell.folder / "zeros.csv", index=False)
    words = ["--outcome", "wage", "--search", "none", "--na-values", "wage=1"]
    said = shell.refuses("fit", "zeros.csv", *words, "--outcome-transform", "log")
    assert "--outcome-transform log needs outcomes above 0: 325 selected rows have 0" in said
    assert "use --outcome-transform log1p" in said
    assert "mark them missing (--na-values), or fit a column of whether there is one" in said
    assert "must be one of log, log1p" in shell.refuses(
        "fit", "wages.csv", *words, "--outcome-transform", "ln"
    )
    flags = wages.assign(wage=(wages["wage"] > 4).where(wages["wage"].notna()).astype(float))
    flags.to_csv(shell.folder / "flags.csv", index=False)
    said = shell.refuses("fit", "flags.csv", *words[:4], "--outcome-transform", "log")
    assert "--outcome-transform is for linear outcomes" in said


def test_the_index_of_selection_and_outcomes_with_zeros(shell, wages):
    fit(shell, "--save", "m.heckmanfa")
    model = Heckman(PREDICT).fit(wages[FEATURES], wages["wage"])
    predict = ("predict", "m.heckmanfa", "wages.csv", "--out", "p.csv", "--force", "--kind")
    shell.runs(*predict, "expected")
    found = pd.read_csv(shell.folder / "p.csv")
    values, ends = model.predict(wages[FEATURES], kind="expected", return_interval="confidence")
    np.testing.assert_allclose(found["predicted_expected"], values, rtol=1e-9)
    np.testing.assert_allclose(found[["low", "high"]], ends, rtol=1e-9)
    said = shell.refuses(*predict, "expected", "--interval", "prediction")
    assert "its distribution has a mass at 0" in said
    status, said = shell(*predict, "selection", "--scale", "link", "--interval", "confidence")
    assert "is the index of the selection equation" in said
    assert status == 0
    index, ends = model.predict_selection(
        wages[FEATURES], scale="link", return_interval="confidence"
    )
    found = pd.read_csv(shell.folder / "p.csv")
    np.testing.assert_allclose(found["predicted_selection"], index, rtol=1e-9)
    np.testing.assert_allclose(found[["low", "high"]], ends, rtol=1e-9)

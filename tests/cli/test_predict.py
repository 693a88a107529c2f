"""``heckmanfa predict``: the model's own predictions, row by row."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import heckmanfa
from heckmanfa import HeckmanAverage
from heckmanfa.analysis import load_model
from heckmanfa.analysis.model_file import pack, unpack
from heckmanfa.analysis.prediction_request import Request
from heckmanfa.analysis.predictions import usual_interval
from heckmanfa.datasets import load_mroz

FEATURES = ["educ", "exper", "age", "kids5", "kids618", "nwifeinc"]


@pytest.fixture
def saved(shell, mroz):
    shell.runs("fit", "mroz.csv", "--outcome", "lwage", "--save", "m.heckmanfa")
    return HeckmanAverage().fit(mroz[FEATURES], mroz["lwage"])


@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected", "selection"])
def test_every_kind_is_the_models(shell, mroz, saved, kind):
    text = shell.runs("predict", "m.heckmanfa", "mroz.csv", "--kind", kind, "--out", "p.csv")
    assert "753 rows written to p.csv" in text
    found = pd.read_csv("p.csv")
    ends = [] if kind == "selection" else ["low", "high"]
    assert list(found.columns) == [f"predicted_{kind}", *ends, "extrapolates"]
    X = mroz[FEATURES]
    expected = saved.predict_selection(X) if kind == "selection" else saved.predict(X, kind=kind)
    np.testing.assert_allclose(found[f"predicted_{kind}"], expected, rtol=1e-9)


def test_intervals_and_kept_columns(shell, mroz, saved):
    shell.runs(
        "predict", "m.heckmanfa", "mroz.csv", "--out", "p.parquet", "--interval", "prediction",
        "--keep-columns",
    )  # fmt: skip
    found = pd.read_parquet("p.parquet")
    named = ["predicted_marginal", "low", "high", "extrapolates"]
    assert list(found.columns) == [*mroz.columns, *named]
    _, interval = saved.predict(mroz[FEATURES], return_interval="prediction")
    np.testing.assert_allclose(found[["low", "high"]], interval, rtol=1e-9)


def test_intervals_come_unless_they_are_refused(shell, mroz, saved):
    _, interval = saved.predict(mroz[FEATURES], kind="selected", return_interval="prediction")
    options = ["predict", "m.heckmanfa", "mroz.csv", "--kind", "selected", "--out"]
    shell.runs(*options, "p.csv")
    np.testing.assert_allclose(pd.read_csv("p.csv")[["low", "high"]], interval, rtol=1e-9)
    shell.runs(*options, "q.csv", "--no-interval")
    assert list(pd.read_csv("q.csv").columns) == ["predicted_selected", "extrapolates"]
    said = shell.refuses(*options, "r.csv", "--no-interval", "--interval", "confidence")
    assert "contradict" in said


def test_rows_that_extrapolate_are_marked_and_counted_loaded_and_in_parts_alike(shell, mroz, saved):
    new = mroz[FEATURES].astype(float)
    new.loc[:2, "kids5"] = 9.0
    new.loc[3, "kids618"] = np.nan
    new.to_csv("new.csv", index=False)
    new.to_parquet("new.parquet")
    low, high = saved.fit_.index_range
    index = (new @ saved.selection_coef_ + saved.selection_intercept_).to_numpy()
    expected = (index < low - 1e-9) | (index > high + 1e-9)
    assert expected[:3].all()
    assert 3 < expected.sum() < 100
    text = shell.runs("predict", "m.heckmanfa", "new.csv", "--out", "p.csv")
    assert f"{expected.sum()} of 753 rows extrapolate: their chance of being selected" in text
    found = pd.read_csv("p.csv")["extrapolates"]
    assert found.isna().to_numpy().nonzero()[0].tolist() == [3]
    assert (found.fillna(False).astype(bool) == expected).all()
    parts = ["--stream-above", "0", "--no-interval"]
    _status, other = shell("predict", "m.heckmanfa", "new.parquet", "--out", "p.parquet", *parts)
    assert f"{expected.sum()} of 753 rows extrapolate" in other
    streamed = pd.read_parquet("p.parquet")["extrapolates"]
    assert streamed.isna().sum() == 1
    assert (streamed.fillna(False).astype(bool) == expected).all()


def test_a_rho_outside_its_range_leaves_the_interval_out_and_says_so(shell, mroz):
    options = ["--outcome", "lwage", "--search", "none", "--save", "m.heckmanfa"]
    shell.runs("fit", "mroz.csv", *options)
    saved = load_model("m.heckmanfa").model
    if abs(saved.rho_) < 1:
        saved._fit = saved.fit_.with_errors(rho=1.2)
    assert usual_interval(saved, Request("marginal")) == ("prediction", "")
    interval, why = usual_interval(saved, Request("selected"))
    assert interval is None
    assert "rho is estimated at" in why
    assert "--interval confidence" in why


def test_rows_keep_their_number_and_order(shell, mroz, saved):
    gaps = mroz.sample(frac=1.0, random_state=0).drop(columns="lwage")
    gaps.iloc[[4, 7], gaps.columns.get_loc("educ")] = np.nan
    gaps.to_csv("new.csv", index=False)
    text = shell.runs("predict", "m.heckmanfa", "new.csv", "--out", "p.csv")
    assert "2 of 753 rows lack a feature, and have no prediction: 'educ' (2 rows)" in text
    found = pd.read_csv("p.csv", skip_blank_lines=False)["predicted_marginal"]
    assert len(found) == len(gaps)
    assert [*np.flatnonzero(found.isna())] == [4, 7]
    complete = gaps.dropna()
    np.testing.assert_allclose(found.dropna(), saved.predict(complete[FEATURES]), rtol=1e-9)


def test_levels_and_columns_that_the_fit_did_not_have(shell, rich_table):
    options = ["--outcome", "wage", "--exclude", "town,weight,share,works", "--save", "m.heckmanfa"]
    shell.runs("fit", "towns.csv", *options)
    rich_table.replace({"region": {"west": "east"}}).to_csv("east.csv", index=False)
    said = shell.refuses("predict", "m.heckmanfa", "east.csv", "--out", "p.csv")
    assert "region" in said
    assert "east" in said
    rich_table.drop(columns=["educ", "age"]).to_csv("few.csv", index=False)
    said = shell.refuses("predict", "m.heckmanfa", "few.csv", "--out", "p.csv")
    assert "educ" in said
    assert "age" in said
    # A table with only some of the levels is fine, and gives what the whole table gives.
    some = rich_table[rich_table["region"] == "south"]
    some.to_csv("south.csv", index=False)
    for name in ("towns", "south"):
        shell.runs("predict", "m.heckmanfa", f"{name}.csv", "--out", f"{name}.p.csv")
    whole, part = (
        pd.read_csv(f"{name}.p.csv", skip_blank_lines=False) for name in ("towns", "south")
    )
    numbers = ["predicted_marginal", "low", "high"]
    np.testing.assert_allclose(whole.loc[some.index, numbers], part[numbers], rtol=1e-9)


def test_model_files_that_are_not_ours(shell, mroz, saved):
    (shell.folder / "text.heckmanfa").write_text("not a model")
    said = shell.refuses("predict", "text.heckmanfa", "mroz.csv", "--out", "p.csv")
    assert "text.heckmanfa" in said
    assert "Did you mean" in shell.refuses("predict", "n.heckmanfa", "mroz.csv", "--out", "p.csv")
    held = {
        name: bytes(content)
        for name, content in unpack((shell.folder / "m.heckmanfa").read_bytes()).items()
    }
    document = json.loads(held["model.json"])
    document["model"] = {"os.system": {"parameters": {}, "attributes": {}}}
    held["model.json"] = json.dumps(document).encode()
    (shell.folder / "evil.heckmanfa").write_bytes(pack(held))
    said = shell.refuses("predict", "evil.heckmanfa", "mroz.csv", "--out", "p.csv")
    assert "evil.heckmanfa" in said


def test_what_cannot_be_asked(shell, mroz, saved):
    said = shell.refuses(
        "predict", "m.heckmanfa", "mroz.csv", "--kind", "margina", "--out", "p.csv"
    )
    assert "Did you mean 'marginal'" in said
    said = shell.refuses(
        "predict", "m.heckmanfa", "mroz.csv", "--interval", "both", "--out", "p.csv"
    )
    assert "prediction or confidence" in said
    (shell.folder / "p.csv").write_text("mine")
    assert "--force" in shell.refuses("predict", "m.heckmanfa", "mroz.csv", "--out", "p.csv")
    shell.runs("predict", "m.heckmanfa", "mroz.csv", "--out", "p.csv", "--force")
    load_mroz().assign(predicted_marginal=1.0).to_csv("taken.csv", index=False)
    said = shell.refuses("predict", "m.heckmanfa", "taken.csv", "--out", "q.csv", "--keep-columns")
    assert "predicted_marginal" in said


def test_missing_error_refuses_loaded_and_in_parts_alike_and_writes_nothing(shell, mroz, saved):
    gaps = mroz.drop(columns="lwage").astype(float)
    gaps.loc[[4, 7], "educ"] = np.nan
    gaps.loc[7, "age"] = np.nan
    gaps.to_parquet("new.parquet")
    said = {
        shell.refuses(
            "predict", "m.heckmanfa", "new.parquet", "--out", "p.parquet", "--kind", "selected",
            "--missing", "error", "--stream-above", limit,
        )
        for limit in (1, 0)
    }  # fmt: skip
    assert len(said) == 1
    assert "'educ' (2 rows), 'age' (1 row): 2 of 753 rows cannot be predicted" in said.pop()
    refused = shell.refuses(
        "predict", "m.heckmanfa", "new.parquet", "--out", "p.parquet", "--missing", "x"
    )
    assert "--missing must be empty or error" in refused


def test_levels_that_the_fit_did_not_have_may_count_as_missing(shell):
    mroz = load_mroz()
    table = mroz[["lwage", "educ", "age", "kids5"]].assign(area=mroz["city"].map({1: "b", 0: "a"}))
    table.to_csv(shell.folder / "t.csv", index=False)
    asked = ("--outcome", "lwage", "--search", "none", "--predict-with", "educ,area")
    shell.runs("fit", "t.csv", *asked, "--save", "m.heckmanfa")
    table.loc[:9, "area"] = "moon"
    table.to_csv(shell.folder / "new.csv", index=False)
    table.to_parquet(shell.folder / "new.parquet")
    predict = ("predict", "m.heckmanfa")
    said = shell.refuses(*predict, "new.csv", "--out", "p.csv")
    assert "'moon' (10 rows, the first is row 1 of the data)" in said
    assert "or pass --unknown missing to count them as missing" in said
    # Partitions in any order of levels, read in passes.
    table.to_parquet(shell.folder / "hive", partition_cols=["area"])
    streamed = ("predict", "m.heckmanfa", "hive", "--out", "h.parquet", "--stream-above", "0")
    said = shell.runs(*streamed, "--unknown", "missing")
    found = pd.read_parquet(shell.folder / "h.parquet")["predicted_marginal"]
    assert found.isna().sum() == 10
    for data, out, above in (("new.csv", "p.csv", "1"), ("new.parquet", "p.parquet", "0")):
        said = shell.runs(
            *predict, data, "--out", out, "--unknown", "missing", "--stream-above", above
        )
        assert "area" in said
        read = pd.read_csv if out.endswith("csv") else pd.read_parquet
        found = read(shell.folder / out)["predicted_marginal"]
        assert found.isna().tolist() == [place < 10 for place in range(len(table))]
        # The loaded model takes the same rows in Python.
        model = heckmanfa.load(shell.folder / "m.heckmanfa")
        rows = table.drop(columns="lwage")
        np.testing.assert_allclose(found, model.predict(rows, unknown="missing", missing="nan"))
    said = shell.refuses(*predict, "new.csv", "--out", "q.csv", "--unknown", "drop")
    assert "--unknown must be error or missing" in said

"""``heckmanfa predict``: the model's own predictions, row by row."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from heckmanfa import HeckmanAverage
from heckmanfa.datasets import load_mroz

FEATURES = ["educ", "exper", "age", "kids5", "kids618", "nwifeinc"]


@pytest.fixture
def saved(shell, mroz):
    assert shell("fit", "mroz.csv", "--outcome", "lwage", "--save", "m.skops")[0] == 0
    return HeckmanAverage().fit(mroz[FEATURES], mroz["lwage"])


@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected", "selection"])
def test_every_kind_is_the_models(shell, mroz, saved, kind):
    status, text = shell("predict", "m.skops", "mroz.csv", "--kind", kind, "--out", "p.csv")
    assert status == 0
    assert "753 rows written to p.csv" in text
    found = pd.read_csv("p.csv")
    assert list(found.columns) == [f"predicted_{kind}"]
    X = mroz[FEATURES]
    expected = saved.predict_selection(X) if kind == "selection" else saved.predict(X, kind=kind)
    np.testing.assert_allclose(found[f"predicted_{kind}"], expected, rtol=1e-9)


def test_intervals_and_kept_columns(shell, mroz, saved):
    status, _ = shell(
        "predict", "m.skops", "mroz.csv", "--out", "p.parquet", "--interval", "prediction",
        "--keep-columns",
    )  # fmt: skip
    assert status == 0
    found = pd.read_parquet("p.parquet")
    assert list(found.columns) == [*mroz.columns, "predicted_marginal", "low", "high"]
    _, interval = saved.predict(mroz[FEATURES], return_interval="prediction")
    np.testing.assert_allclose(found[["low", "high"]], interval, rtol=1e-9)


def test_rows_keep_their_number_and_order(shell, mroz, saved):
    gaps = mroz.sample(frac=1.0, random_state=0).drop(columns="lwage")
    gaps.iloc[[4, 7], gaps.columns.get_loc("educ")] = np.nan
    gaps.to_csv("new.csv", index=False)
    status, text = shell("predict", "m.skops", "new.csv", "--out", "p.csv")
    assert status == 0
    assert "2 of 753 rows lack a feature, and have no prediction: 'educ' (2 rows)" in text
    found = pd.read_csv("p.csv", skip_blank_lines=False)["predicted_marginal"]
    assert len(found) == len(gaps)
    assert [*np.flatnonzero(found.isna())] == [4, 7]
    complete = gaps.dropna()
    np.testing.assert_allclose(found.dropna(), saved.predict(complete[FEATURES]), rtol=1e-9)


def test_levels_and_columns_that_the_fit_did_not_have(shell, rich_table):
    options = ["--outcome", "wage", "--exclude", "town,weight,share,works", "--save", "m.skops"]
    assert shell("fit", "towns.csv", *options)[0] == 0
    rich_table.replace({"region": {"west": "east"}}).to_csv("east.csv", index=False)
    said = shell.refuses("predict", "m.skops", "east.csv", "--out", "p.csv")
    assert "region" in said
    assert "east" in said
    rich_table.drop(columns=["educ", "age"]).to_csv("few.csv", index=False)
    said = shell.refuses("predict", "m.skops", "few.csv", "--out", "p.csv")
    assert "educ" in said
    assert "age" in said
    # A table with only some of the levels is fine, and gives what the whole table gives.
    some = rich_table[rich_table["region"] == "south"]
    some.to_csv("south.csv", index=False)
    for name in ("towns", "south"):
        assert shell("predict", "m.skops", f"{name}.csv", "--out", f"{name}.p.csv")[0] == 0
    whole, part = (
        pd.read_csv(f"{name}.p.csv", skip_blank_lines=False) for name in ("towns", "south")
    )
    np.testing.assert_allclose(whole.loc[some.index], part, rtol=1e-12)


def test_model_files_that_are_not_ours(shell, mroz, saved):
    (shell.folder / "text.skops").write_text("not a model")
    said = shell.refuses("predict", "text.skops", "mroz.csv", "--out", "p.csv")
    assert "text.skops" in said
    assert "Did you mean" in shell.refuses("predict", "n.skops", "mroz.csv", "--out", "p.csv")
    with zipfile.ZipFile("m.skops") as whole, zipfile.ZipFile("evil.skops", "w") as other:
        for name in whole.namelist():
            content = whole.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                schema["__module__"], schema["__class__"] = "os", "system"
                schema["__loader__"] = "ObjectNode"
                content = json.dumps(schema).encode()
            other.writestr(name, content)
    said = shell.refuses("predict", "evil.skops", "mroz.csv", "--out", "p.csv")
    assert "evil.skops" in said


def test_what_cannot_be_asked(shell, mroz, saved):
    said = shell.refuses("predict", "m.skops", "mroz.csv", "--kind", "margina", "--out", "p.csv")
    assert "Did you mean 'marginal'" in said
    said = shell.refuses("predict", "m.skops", "mroz.csv", "--interval", "both", "--out", "p.csv")
    assert "prediction or confidence" in said
    (shell.folder / "p.csv").write_text("mine")
    assert "--force" in shell.refuses("predict", "m.skops", "mroz.csv", "--out", "p.csv")
    assert shell("predict", "m.skops", "mroz.csv", "--out", "p.csv", "--force")[0] == 0
    load_mroz().assign(predicted_marginal=1.0).to_csv("taken.csv", index=False)
    said = shell.refuses("predict", "m.skops", "taken.csv", "--out", "q.csv", "--keep-columns")
    assert "predicted_marginal" in said


def test_missing_error_refuses_loaded_and_in_parts_alike_and_writes_nothing(shell, mroz, saved):
    gaps = mroz.drop(columns="lwage").astype(float)
    gaps.loc[[4, 7], "educ"] = np.nan
    gaps.loc[7, "age"] = np.nan
    gaps.to_parquet("new.parquet")
    said = {
        shell.refuses(
            "predict", "m.skops", "new.parquet", "--out", "p.parquet", "--kind", "selected",
            "--missing", "error", "--stream-above", limit,
        )
        for limit in (1, 0)
    }  # fmt: skip
    assert len(said) == 1
    assert "'educ' (2 rows), 'age' (1 row): 2 of 753 rows cannot be predicted" in said.pop()
    refused = shell.refuses(
        "predict", "m.skops", "new.parquet", "--out", "p.parquet", "--missing", "x"
    )
    assert "--missing must be empty or error" in refused

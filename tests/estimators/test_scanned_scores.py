"""Rows of a scan are scored without loading them, as the same rows in memory are."""

import duckdb
import numpy as np
import polars as pl
import pyarrow.dataset as ds
import pytest

from heckmanfa import Heckman, HeckmanProbit, NaiveOLS, scan
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, MissingValueError
from heckmanfa.estimators import rows_elsewhere
from heckmanfa.model_selection import joint_log_likelihood, observed_auc, observed_mse, observed_r2

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc", "town"]
EQUATION = ["educ", "exper", "town"]
SOURCES = {
    "files": lambda path: path,
    "lazy frame": pl.scan_parquet,
    "relation": lambda path: duckdb.sql(f"select * from read_parquet('{path}')"),
    "dataset": ds.dataset,
}


@pytest.fixture(scope="module")
def frame():
    mroz = load_mroz()
    works = mroz["lfp"] == 1
    return mroz.assign(
        town=np.where(mroz["city"] == 1, "city", "country"),
        filled=mroz["lwage"].fillna(0.0),
        weight=np.arange(len(mroz)) % 3,
        paid=np.where(works, np.where(mroz["lwage"] > 1.2, "well", "badly"), "NA"),
    )


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.to_parquet(path, row_group_size=100)
    return path


@pytest.fixture(scope="module")
def model(frame):
    return Heckman(EQUATION).fit(frame[FEATURES], frame["lwage"])


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    # Parts end neither with the files' row groups nor with all rows; one has weights of 0 alone.
    monkeypatch.setattr(rows_elsewhere, "part_rows", lambda columns: 64)


@pytest.mark.parametrize("source", SOURCES)
def test_a_scan_is_scored_as_the_same_rows_in_memory(source, path, frame, model):
    X, y, weight = frame[FEATURES], frame["lwage"], frame["weight"]
    asked = SOURCES[source](path)
    rows = scan(asked, "lwage", FEATURES)
    assert model.score(rows) == pytest.approx(model.score(X, y), rel=1e-12)
    assert observed_mse(model, rows) == pytest.approx(observed_mse(model, X, y), rel=1e-12)
    assert joint_log_likelihood(model, rows) == pytest.approx(
        joint_log_likelihood(model, X, y), rel=1e-12
    )
    weighted = scan(asked, "lwage", FEATURES, sample_weight="weight")
    assert model.score(weighted) == pytest.approx(model.score(X, y, weight), rel=1e-12)
    assert model.log_likelihood(weighted) == pytest.approx(
        model.log_likelihood(X, y, sample_weight=weight), rel=1e-12
    )


def test_a_part_whose_weights_are_zero_is_no_reason_to_refuse(frame, model, tmp_path):
    weight = np.r_[np.zeros(200), np.ones(len(frame) - 200)]
    frame.assign(weight=weight).to_parquet(tmp_path / "rows.parquet")
    rows = scan(tmp_path, "lwage", FEATURES, sample_weight="weight")
    rest = frame[200:]
    assert model.score(rows) == pytest.approx(model.score(rest[FEATURES], rest["lwage"]), rel=1e-12)
    assert model.log_likelihood(rows) == pytest.approx(
        model.log_likelihood(rest[FEATURES], rest["lwage"]), rel=1e-12
    )


def test_who_is_selected_comes_from_the_scan(path, frame):
    rows = scan(path, "filled", FEATURES, selected="lfp")
    model = Heckman(EQUATION).fit(rows)
    want = observed_r2(model, frame[FEATURES], frame["filled"], selected=frame["lfp"])
    assert model.score(rows) == pytest.approx(want, rel=1e-12)
    with pytest.raises(InputError, match="selected"):
        model.score(scan(path, "filled", FEATURES))


def test_classes_formulas_and_least_squares_are_scored_too(path, frame):
    X = frame[FEATURES]
    paid = frame["paid"].where(frame["lfp"] == 1)
    probit = HeckmanProbit(EQUATION).fit(X, paid)
    rows = scan(path, "paid", FEATURES)
    assert probit.score(rows) == pytest.approx(probit.score(X, paid), rel=1e-12)
    assert observed_auc(probit, rows) == pytest.approx(observed_auc(probit, X, paid), rel=1e-12)
    ols = NaiveOLS(EQUATION).fit(X, frame["lwage"])
    assert ols.score(scan(path, "lwage", FEATURES)) == pytest.approx(
        ols.score(X, frame["lwage"]), rel=1e-12
    )
    formulas = Heckman.from_formula("log(wage) ~ educ + town", "~ educ + age + kids5", frame)
    assert formulas.score(scan(path)) == pytest.approx(formulas.score(frame), rel=1e-12)


def test_rows_that_lack_a_feature_are_refused_or_left_out_as_the_scan_says(frame, model, tmp_path):
    holed = frame.assign(educ=frame["educ"].where(frame.index != 3))
    holed.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(MissingValueError, match="'educ'"):
        model.score(scan(tmp_path, "lwage", FEATURES))
    rest = frame.drop(index=3)
    assert model.score(scan(tmp_path, "lwage", FEATURES, missing="drop")) == pytest.approx(
        model.score(rest[FEATURES], rest["lwage"]), rel=1e-12
    )


def test_what_a_scan_cannot_be_scored_by_is_said(path, frame, model):
    with pytest.raises(InputError, match=r"neither.*outcome"):
        model.score(scan(path))
    with pytest.raises(InputError, match="already define y"):
        model.score(scan(path, "lwage", FEATURES), frame["lwage"])
    with pytest.raises(InputError, match="'town'"):
        model.score(scan(pl.scan_parquet(path).drop("town"), "lwage"))
    nobody = pl.scan_parquet(path).filter(pl.col("lfp") == 0)
    with pytest.raises(InputError, match="none of these 325 rows has an outcome"):
        model.score(scan(nobody, "lwage", FEATURES))

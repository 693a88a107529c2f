"""Predictions for rows that are not in memory are those of `predict`, wherever the rows are."""

import inspect

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from heckmanfa import (
    Heckman,
    HeckmanProbit,
    NaiveOLS,
    load,
    predict_batches,
    predict_parquet,
    save,
    scan,
)
from heckmanfa.analysis import prediction_batches
from heckmanfa.errors import InputError, InputTypeError, MissingFeaturesWarning, MissingValueError

N = 300


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.normal(size=N), "b": random.normal(size=N)})
    frame["g"] = random.choice(["u", "v", "w"], N)
    chosen = 0.3 + frame["a"] + (frame["g"] == "u") + random.normal(size=N) > 0
    frame["y"] = (1 + frame["b"] + (frame["g"] == "w") + random.normal(size=N)).where(chosen)
    return frame.assign(id=np.arange(N))


@pytest.fixture(scope="module")
def model(frame):
    return Heckman(["b", "g"], method="ml").fit(frame[["a", "b", "g"]], frame["y"])


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=70)
    return path


def together(batches):
    return pa.Table.from_batches(batches).to_pandas()


SOURCES = {
    "path": lambda path: path,
    "rows": lambda path: scan(path, outcome="y", features=["a", "b", "g"]),
    "unlabelled rows": lambda path: scan(path),
    "dataset": lambda path: ds.dataset(path),
    "lazy frame": lambda path: pl.scan_parquet(path),
    "relation": lambda path: duckdb.sql(f"select * from read_parquet('{path}')"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_batches_hold_what_predict_returns(source, path, frame, model, monkeypatch):
    # Batches are cut and joined, and rows keep their order.
    monkeypatch.setattr(prediction_batches, "_LEAST_ROWS", 64)
    monkeypatch.setattr(prediction_batches, "_MOST_ROWS", 64)
    asked = {"kind": "selected", "return_interval": "prediction", "conf_level": 0.8}
    batches = list(predict_batches(model, SOURCES[source](path), keep_columns=["id", "g"], **asked))
    assert max(batch.num_rows for batch in batches) <= 64 < N
    found = together(batches)
    values, ends = model.predict(frame[["a", "b", "g"]], **asked)
    assert list(found) == ["id", "g", "predicted_selected", "low", "high"]
    assert found["id"].tolist() == list(range(N))
    assert found["g"].tolist() == frame["g"].tolist()
    # Sums of products may round differently in blocks of other sizes.
    np.testing.assert_allclose(found["predicted_selected"], values, rtol=1e-12)
    np.testing.assert_allclose(found[["low", "high"]], ends, rtol=1e-8)


@pytest.mark.parametrize("source", ["rows", "dataset", "union"])
def test_what_a_source_reads_is_not_replaced(source, frame, model, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    made = ds.dataset([ds.dataset(path)]) if source == "union" else SOURCES[source](path)
    with pytest.raises(InputError, match="which source reads"):
        predict_parquet(model, made, path, force=True)
    assert pq.read_schema(path).names == list(frame)


def test_a_url_is_no_file_to_write_or_load_and_shows_no_password(model, path):
    address = "s3://me:hunter2@bucket/m.parquet"
    for call in (lambda: predict_parquet(model, path, address), lambda: load(address)):
        with pytest.raises(InputError, match="'s3://' cannot be used here") as caught:
            call()
        assert "hunter2" not in str(caught.value)
    with pytest.raises(InputError, match="'s3://' cannot be used here"):
        save(model, address)


def test_a_filter_is_the_engine_s(path, frame, model):
    source = ds.dataset(path).filter(ds.field("b") > 1)
    found = together(predict_batches(model, source, kind="expected"))
    kept = frame.loc[frame["b"] > 1, ["a", "b", "g"]]
    expected = model.predict(kept, kind="expected")
    np.testing.assert_allclose(found["predicted_expected"], expected, rtol=1e-12)
    empty = ds.dataset(path).filter(ds.field("b") > 99)
    assert list(predict_batches(model, empty)) == []


def test_a_file_has_the_columns_asked_for(path, frame, model, tmp_path):
    out = tmp_path / "out.parquet"
    source = pl.scan_parquet(path)
    assert predict_parquet(model, source, out, kind="selection", keep_columns=["id"]) == N
    found = pd.read_parquet(out)
    assert list(found) == ["id", "predicted_selection"]
    chance = model.predict_selection(frame[["a", "b", "g"]])
    np.testing.assert_allclose(found["predicted_selection"], chance, rtol=1e-12)


def test_classes_come_with_their_probabilities(path, frame):
    X = frame[["a", "b", "g"]]
    high = np.where(frame["y"].isna(), None, np.where(frame["y"] > 1, "high", "low"))
    model = HeckmanProbit(["b", "g"]).fit(X, high)
    found = together(predict_batches(model, path, return_interval="confidence"))
    assert list(found) == ["probability_marginal", "low", "high", "predicted_marginal"]
    assert found["predicted_marginal"].tolist() == model.predict(X).tolist()
    position = model.classes_.tolist().index(model.fit_.classes[1])
    chance = model.predict_proba(X)[:, position]
    np.testing.assert_allclose(found["probability_marginal"], chance, rtol=1e-12)


def test_an_unknown_level_is_named_with_its_place(frame, model, tmp_path):
    path = tmp_path / "moon.parquet"
    frame.assign(g=frame["g"].where(frame["id"] != 200, "moon")).to_parquet(path)
    with pytest.raises(
        InputError, match=r"moon.parquet, from row 1 on: .*'g'.*'moon' \(1 row, the"
    ):
        list(predict_batches(model, path))
    with pytest.warns(
        MissingFeaturesWarning, match=r"1 of 300 rows lacks a feature.*'g' \(1 row\)"
    ):
        found = together(predict_batches(model, path, unknown="missing"))
    assert np.flatnonzero(found["predicted_marginal"].isna()).tolist() == [200]


def test_rows_that_lack_a_feature_are_null_or_refused(frame, tmp_path):
    path, X = tmp_path / "gaps.parquet", frame[["a", "b"]]
    model = NaiveOLS().fit(X, frame["y"])
    frame.assign(b=frame["b"].where(frame["id"] > 1)).to_parquet(path)
    with pytest.warns(MissingFeaturesWarning, match="2 of 300 rows lack a feature"):
        found = together(predict_batches(model, path))
    assert found["predicted_marginal"].isna().sum() == 2
    with pytest.raises(MissingValueError, match="pass missing='nan'"):
        list(predict_batches(model, path, missing="error"))


def test_what_cannot_be_predicted_is_said_before_anything_is_read(path, frame, model):
    for source, options, words in (
        (frame, {}, r"a table in memory, which model\.predict\(X\) takes"),
        (path, {"kind": "nothing"}, "kind must be one of"),
        (path, {"keep_columns": ["zz"]}, "has no column 'zz'"),
        (path, {"keep_columns": "id"}, r"must be a list of names: write \['id'\]"),
        (path, {"conf_level": 2.0, "return_interval": "confidence"}, "conf_level"),
        (np.zeros((2, 3)), {}, "scan takes paths"),
    ):
        with pytest.raises(InputError, match=words):
            predict_batches(model, source, **options)
    with pytest.raises(InputTypeError, match="in memory"):
        predict_batches(model, frame)
    with pytest.raises(InputError, match=r"predict_parquet.*predict_batches") as caught:
        model.predict(scan(path), kind="selected")
    assert "kind='selected'" in str(caught.value)


def test_options_have_one_spelling_wherever_rows_are_predicted():
    taken = {
        call: set(inspect.signature(call).parameters)
        for call in (Heckman.predict, predict_parquet, predict_batches)
    }
    of_predict, of_files, of_batches = taken.values()
    assert of_predict - {"self", "X", "return_std"} <= of_files & of_batches
    assert of_files - of_batches == {"out", "encoding", "force"}
    assert of_batches <= of_files


def test_text_where_the_fit_had_numbers_is_read_or_refused_by_name(frame, tmp_path):
    y, frame = frame["y"], frame[["a", "b"]]
    plain = Heckman(["b"]).fit(frame, y)
    place = tmp_path / "t.parquet"
    frame.assign(b=frame["b"].map(repr)).to_parquet(place)
    found = together(predict_batches(plain, place))
    np.testing.assert_allclose(found["predicted_marginal"], plain.predict(frame), rtol=1e-12)
    frame.assign(b=["none of yours", *frame["b"].map(repr)[1:]]).to_parquet(place)
    with pytest.raises(InputError, match="column 'b': 1 of 300 values is not a number: row 1"):
        list(predict_batches(plain, place))

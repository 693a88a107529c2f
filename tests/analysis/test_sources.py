"""Files, URLs, queries and datasets give the model of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import scan
from heckmanfa.analysis import Question, analyse
from heckmanfa.data.scan.places import name_of
from heckmanfa.errors import InputError, InputTypeError

N = 240


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    x, u, v = rng.normal(size=(3, N))
    area = rng.choice(["town", "farm", "coast"], N, p=[0.6, 0.3, 0.1])
    size = pd.Categorical(rng.choice(["small", "large"], N), ["small", "large"])
    chosen = 0.4 + x + 0.5 * (area == "town") + u > 0
    wage = np.where(chosen, 2 + 0.5 * x + 0.3 * (size == "large") + 0.5 * u + v, np.nan)
    return pd.DataFrame({"wage": wage, "x": x, "area": area, "size": size, "code": v > 0.5})


def frame_of_polars(table, folder):
    pl = pytest.importorskip("polars")
    # Categories without a declared order, whose first level in the rows is not the first by name.
    types = {"area": pl.Categorical, "size": pl.Enum(["small", "large"])}
    return pl.from_pandas(table.astype({"size": "str"})).cast(types)


def lazy_frame(table, folder):
    return frame_of_polars(table, folder).lazy()


def relation(table, folder):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_df(table)


def dataset(table, folder):
    pa, ds = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    return ds.dataset(pa.Table.from_pandas(table, preserve_index=False))


def hive(table, folder):
    table.to_parquet(folder / "hive", partition_cols=["area"])
    return str(folder / "hive")


def feather(table, folder):
    table.to_feather(folder / "t.feather")
    return str(folder / "t.feather")


def url(table, folder):
    fsspec = pytest.importorskip("fsspec")
    table.to_parquet(folder / "t.parquet")
    with fsspec.open("memory://sources/t.parquet", "wb") as file:
        file.write((folder / "t.parquet").read_bytes())
    return "memory://sources/t.parquet"


def rows(table, folder):
    return scan(hive(table, folder), outcome="wage", features=["x", "area", "size", "code"])


def estimates(done):
    tidy = done.model.tidy().set_index(["equation", "term"]).sort_index()
    return tidy[["estimate", "std_error"]]


@pytest.mark.parametrize(
    "way", [frame_of_polars, lazy_frame, relation, dataset, hive, feather, url, rows]
)
def test_a_table_gives_one_model_loaded_or_in_passes(way, table, tmp_path):
    common = {"search": "none", "predict_with": ["x", "size"]}
    expected = analyse(table, outcome="wage", **common)
    source = way(table, tmp_path)
    asked = {} if way is rows else {"outcome": "wage"}
    for above in (1.0, 0.0)[: 1 if way is frame_of_polars else 2]:
        done = analyse(source, stream_above=above, **asked, **common)
        assert done.streamed == (above == 0.0)
        assert done.encoding.references == {"area": "coast", "size": "small"}
        found, known = estimates(done), estimates(expected)
        off = (found["estimate"] - known["estimate"]).abs() / known["std_error"]
        assert off.max() < 1e-8
        np.testing.assert_allclose(found["std_error"], known["std_error"], rtol=1e-8)


def test_scanned_rows_keep_what_the_user_said_of_their_columns(table, tmp_path):
    coded = table.assign(zip=np.where(table["code"], "12", "7"), group=np.arange(N) % 50)
    coded.to_parquet(tmp_path / "t.parquet")
    asked = {"outcome": "wage", "features": ["x", "zip", "code"], "groups": "group"}
    given = scan(tmp_path / "t.parquet", **asked, numeric=["zip"], categorical=["code"])
    done = analyse(given, search="none", predict_with=["x"])
    assert done.question.cluster == ("group",)
    assert {*done.encoding.levels} == {"code"}
    assert {*done.encoding.sources} == {"x", "zip", "code"}


def test_addresses_are_shown_without_passwords():
    question = Question("s3://me:secret@bucket/wages.parquet?token=secret", outcome="wage")
    assert question.called == "wages.parquet"
    assert question.command() == "heckmanfa fit s3://bucket/wages.parquet --outcome wage"
    assert repr(question).startswith("Question(data='s3://bucket/wages.parquet', outcome='wage', ")
    assert name_of("s3://me:sec/ret@bucket/a@b.csv") == "s3://b.csv"
    assert name_of("http://host:80/a@b.csv") == "http://host:80/a@b.csv"


def test_a_file_url_is_a_path_of_this_machine(table, tmp_path):
    file = tmp_path / "a b.csv"
    table.to_csv(file, index=False)
    done = analyse(file.as_uri(), outcome="wage", search="none", predict_with=["x"])
    assert done.question.data == str(file)
    assert done.files == (file,)


def test_what_is_not_a_table_is_refused(tmp_path):
    with pytest.raises(InputTypeError, match="a lazy frame, a relation, a dataset"):
        analyse(Question("t", outcome="wage"), frame=object())
    (tmp_path / "a.parquet").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"")
    with pytest.raises(InputError, match="neither a Parquet nor an Arrow file"):
        analyse(str(tmp_path / "*"), outcome="wage")


def test_a_query_without_a_stable_order_is_said_to_be_one(table):
    pl = pytest.importorskip("polars")
    lazy = pl.from_pandas(table).lazy()
    extra = pl.LazyFrame({"area": ["town", "farm", "coast"], "rent": [3.0, 1.0, 2.0]})
    joined = lazy.join(extra, on="area")
    done = analyse(joined, outcome="wage", search="none", stream_above=0.0, exclude=["area"])
    assert done.notes[0].startswith("The query gives its rows in no stable order")

"""Every pass of a fit must read the same rows, in any order: other rows are refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanProbit, scan
from heckmanfa.data.row_sources import RowSums
from heckmanfa.data.rows import Block
from heckmanfa.datasets import make_selection
from heckmanfa.errors import DataError

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

NUMBERS = ["x0", "x1", "x2"]


@pytest.fixture(scope="module")
def table():
    data = make_selection(3_000, 3, 2, prediction_features=[0], random_state=5)
    frame = pd.DataFrame(data.X, columns=NUMBERS).assign(y=data.y)
    frame["seen"] = frame["y"].notna()
    frame["weight"] = np.random.default_rng(6).integers(1, 4, len(frame)).astype(float)
    return frame


def changing(table):
    """Queries that Polars and DuckDB answer with other rows each time they run."""
    lazy = pl.from_pandas(table).lazy()
    connection = duckdb.connect()
    connection.register("people", pa.Table.from_pandas(table))
    row = pl.int_range(pl.len()).shuffle()
    return {
        "a sample in Polars": lazy.filter(row < 1_500),
        "a shuffled outcome in Polars": lazy.with_columns(pl.col("y").shuffle()),
        "shuffled columns in Polars": lazy.select(pl.all().shuffle()),
        "a shuffled feature in Polars": lazy.with_columns(pl.col("x1").shuffle()),
        "a share in DuckDB": connection.sql(
            "SELECT * FROM people USING SAMPLE 50 PERCENT (bernoulli)"
        ),
        "as many rows in DuckDB": connection.sql("SELECT * FROM people USING SAMPLE 1500 ROWS"),
        "a random column in DuckDB": connection.sql(
            "SELECT * REPLACE (random() AS x1) FROM people"
        ),
    }


@pytest.mark.parametrize("query", list(changing(pd.DataFrame({"y": [1.0], "x1": [1.0]}))))
def test_rows_that_change_between_passes_are_refused(table, query):
    rows = scan(changing(table)[query], "y", NUMBERS)
    with pytest.raises(DataError, match=r"same rows in every pass.*write it to a file"):
        Heckman(["x0"]).fit(rows)


@pytest.mark.parametrize("role", ["seen", "weight"])
def test_a_flag_or_a_weight_that_changes_between_passes_is_refused(table, role):
    lazy = pl.from_pandas(table).lazy()
    if role == "seen":
        # Selected rows without an outcome are left out, so as many rows are in no fit.
        lazy = lazy.with_columns(pl.col("y").fill_null(0.0).fill_nan(0.0))
    rows = scan(
        lazy.with_columns(pl.col(role).shuffle()),
        "y",
        NUMBERS,
        selected="seen",
        sample_weight="weight",
    )
    with pytest.raises(DataError, match="not the same in every pass"):
        Heckman(["x0"]).fit(rows)


def test_classes_that_change_between_passes_are_refused(table):
    lazy = pl.from_pandas(table).lazy()
    classes = (pl.col("y") > 0).cast(pl.Int8).shuffle()
    rows = scan(lazy.select(*NUMBERS, y=classes), "y", NUMBERS)
    with pytest.raises(DataError, match="not the same in every pass"):
        HeckmanProbit(["x0"]).fit(rows)


def test_another_order_and_other_rounding_are_not_other_rows(table):
    rng = np.random.default_rng(7)
    X, y = table[NUMBERS].to_numpy() * [1e-6, 1.0, 1e6] + [0.0, 1e3, 0.0], table["y"].to_numpy()
    selected = ~np.isnan(y)
    block = Block(X, y, selected, None, None)
    before = RowSums.of(block, with_squares=True)
    order = rng.permutation(len(y))
    noise = 1 + 1e-13 * rng.standard_normal(X.shape)
    later = [
        RowSums.of(Block((X * noise)[part], y[part], selected[part], None, None))
        for part in np.array_split(order, 7)
    ]
    before.refuse_others(sum(later, RowSums()), range(3), "rows", "")
    # One row that was read twice in place of another.
    order[0] = order[1]
    twice = RowSums.of(Block(X[order], y[order], selected[order], None, None))
    with pytest.raises(DataError, match="not the same in every pass"):
        before.refuse_others(twice, range(3), "rows", "")


def test_a_query_that_adds_up_in_any_order_can_be_fitted(table):
    people = pd.concat([table.assign(id=range(len(table)))] * 3)
    people["x1"] *= np.random.default_rng(8).uniform(0.5, 1.5, len(people))
    connection = duckdb.connect()
    connection.register("people", pa.Table.from_pandas(people))
    means = connection.sql(
        "SELECT avg(x0) x0, avg(x1) x1, avg(x2) x2, avg(y) y FROM people GROUP BY id"
    )
    assert Heckman(["x0"]).fit(scan(means, "y", NUMBERS)).n_obs_ == len(table)


def test_numbers_too_large_to_multiply_are_not_other_rows(table):
    X, y = table[NUMBERS].to_numpy() * 1e190, table["y"].to_numpy() * 1e130
    block = Block(X, y, ~np.isnan(y), None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = RowSums.of(block, with_squares=True)
        before.refuse_others(RowSums.of(block), range(3), "rows", "")


def test_partitions_of_dask_that_change_between_passes_are_refused(table):
    dd = pytest.importorskip("dask.dataframe")
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        collection = dd.from_pandas(table, npartitions=3)
        drawn = collection.map_partitions(lambda part: part.sample(frac=0.5), meta=table.iloc[:0])
        with pytest.raises(DataError, match=r"not the same in every pass.*persist"):
            Heckman(["x0"]).fit(drawn[NUMBERS], drawn["y"])
        kept = drawn.persist()
        assert Heckman(["x0"]).fit(kept[NUMBERS], kept["y"]).n_obs_ == 1_500

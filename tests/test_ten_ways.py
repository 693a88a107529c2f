"""One table with text, ten ways in: the same model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import heckmanfa
from heckmanfa import Heckman
from heckmanfa.cli import app

FEATURES = ["age", "kids", "union", "region", "sector", "grade"]
PREDICT = ["age", "union", "sector"]
CATEGORIES = ["region", "sector", "grade"]
N = 360


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Numbers, a boolean, two texts and a category of numbers; some rows have no outcome."""
    rng = np.random.default_rng(18)
    age = rng.normal(40.0, 10.0, N).round(2)
    kids, union = rng.integers(0, 4, N), rng.random(N) < 0.4
    region = rng.choice(["north", "south", "west"], N, p=[0.2, 0.5, 0.3])
    sector = rng.choice(["public", "private", "own, small"], N, p=[0.3, 0.5, 0.2])
    u, v = rng.normal(size=(2, N))
    selected = 0.3 - 0.3 * kids + 0.4 * union + 0.5 * (region == "south") + u > 0
    wage = 10 + 0.05 * age + 0.8 * union + 0.6 * (sector == "public") + 0.5 * u + v
    return pd.DataFrame(
        {
            "wage": np.where(selected, wage, np.nan),
            "age": age,
            "kids": pd.array(kids, dtype="Int64"),
            "union": union,
            "region": pd.array(region, dtype="str"),
            "sector": pd.array(sector, dtype="str"),
            "grade": pd.Categorical(rng.integers(9, 12, N)),
        }
    )


def of_numpy(table: pd.DataFrame, folder: Path) -> Heckman:
    X = table[FEATURES].astype(object).to_numpy()
    texts = [FEATURES.index(name) for name in CATEGORIES]
    model = Heckman([FEATURES.index(name) for name in PREDICT], categorical_features=texts)
    return model.fit(X, table["wage"].to_numpy())


def of_pandas(table: pd.DataFrame, folder: Path) -> Heckman:
    return Heckman(PREDICT).fit(table[FEATURES], table["wage"])


def of_polars(table: pd.DataFrame, folder: Path) -> Heckman:
    pl = pytest.importorskip("polars")
    # Polars has no category of numbers.
    frame = pl.from_pandas(table)
    return Heckman(PREDICT, categorical_features=CATEGORIES).fit(
        frame.select(FEATURES), frame["wage"]
    )


def of_arrow(table: pd.DataFrame, folder: Path) -> Heckman:
    pa = pytest.importorskip("pyarrow")
    rows = pa.Table.from_pandas(table, preserve_index=False)
    return Heckman(PREDICT).fit(rows.select(FEATURES), rows["wage"])


def scanned(source: Any, **told: Any) -> Heckman:
    return Heckman(PREDICT).fit(heckmanfa.scan(source, outcome="wage", features=FEATURES, **told))


def of_lazy_frame(table: pd.DataFrame, folder: Path) -> Heckman:
    pl = pytest.importorskip("polars")
    return scanned(pl.from_pandas(table).lazy(), categorical=["grade"])


def of_relation(table: pd.DataFrame, folder: Path) -> Heckman:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE wages AS SELECT * FROM given")
        return scanned(connection.table("wages"), categorical=["grade"])


def of_dataset(table: pd.DataFrame, folder: Path) -> Heckman:
    pa, ds = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    return scanned(ds.dataset(pa.Table.from_pandas(table, preserve_index=False)))


def of_hive(table: pd.DataFrame, folder: Path) -> Heckman:
    pytest.importorskip("pyarrow")
    table.to_parquet(folder / "wages", partition_cols=["region"])
    return scanned(folder / "wages")


def of_dask(table: pd.DataFrame, folder: Path) -> Heckman:
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    with dask.config.set(scheduler="synchronous"):
        rows = dd.from_pandas(table, npartitions=3)
        return Heckman(PREDICT).fit(rows[FEATURES], rows["wage"])


def of_command_line(table: pd.DataFrame, folder: Path) -> Heckman:
    data, saved = folder / "wages.csv", folder / "wages.heckmanfa"
    table.to_csv(data, index=False)
    options = ["--outcome", "wage", "--search", "none", "--predict-with", ",".join(PREDICT)]
    options += ["--categorical", "grade"]
    done = CliRunner().invoke(app, ["fit", str(data), *options, "--quiet", "--save", str(saved)])
    assert done.exit_code == 0, done.output
    return heckmanfa.load(saved)


@pytest.fixture(scope="module")
def by_hand(table: pd.DataFrame) -> tuple[pd.DataFrame, Heckman]:
    """Dummies that pandas makes, without the first level of each column, and their model."""
    dummies = pd.get_dummies(table[FEATURES], columns=CATEGORIES, drop_first=True, prefix_sep="[")
    names = [f"{name}]" if "[" in name else name for name in dummies]
    X = dummies.set_axis(names, axis="columns").astype(float)
    inside = [name for name in names if name.split("[")[0] in PREDICT]
    return X, Heckman(inside).fit(X, table["wage"])


WAYS: list[Callable[[pd.DataFrame, Path], Heckman]] = [
    of_numpy,
    of_pandas,
    of_polars,
    of_arrow,
    of_lazy_frame,
    of_relation,
    of_dataset,
    of_hive,
    of_dask,
    of_command_line,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_one_table_gives_one_model_in_ten_ways(way, table, by_hand, tmp_path):
    X, expected = by_hand
    model = way(table, tmp_path)
    rows, names = table[FEATURES], list(X)
    if way is of_numpy:
        rows = rows.astype(object).to_numpy()
        for place, name in enumerate(FEATURES):
            names = [label.replace(name, f"x{place}") for label in names]
    else:
        assert list(model.feature_names_in_) == FEATURES
    assert list(model.encoded_names_) == names
    assert model.n_features_in_ == len(FEATURES)
    assert model.support_.tolist() == [name in PREDICT for name in FEATURES]
    assert model.row_counts_["selected"] == table["wage"].notna().sum()
    found, known = model.tidy(), expected.tidy()
    errors = known["std_error"].fillna(1.0)
    np.testing.assert_allclose(
        found["estimate"] / errors, known["estimate"] / errors, rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(found["std_error"], known["std_error"], rtol=1e-8)
    # What was fitted in any way takes the raw columns in memory.
    predicted = model.predict(rows, kind="selected")
    np.testing.assert_allclose(predicted, expected.predict(X, kind="selected"), rtol=1e-9)

"""Columns of awkward types are the same numbers, levels and groups by every way in."""

from __future__ import annotations

import decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, scan, scan_parquet
from heckmanfa.errors import InputError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")
feather = pytest.importorskip("pyarrow.feather")
pl = pytest.importorskip("polars")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
N = 300
CLOSE = 1e-7


@pytest.fixture(scope="module")
def values():
    """Plain NumPy arrays: the numbers that every way in has to find."""
    rng = np.random.default_rng(11)
    whole = rng.integers(-9, 9, N)
    a, b = rng.normal(size=(2, N)).round(2)
    u, e = rng.normal(size=(2, N))
    y = (1 + a + 0.1 * whole + 0.6 * u + e).round(3)
    level = rng.integers(0, 3, N)
    return {
        "a": a,
        "b": b,
        "whole": whole,
        "flag": rng.random(N) < 0.5,
        # Integers that no float tells from their neighbours.
        "huge": 2**57 * rng.integers(-30, 30, N) + 1,
        "level": level,
        "other": rng.integers(0, 2, N),
        "y": np.where(0.4 + a - b + 0.3 * (level == 1) + u > 0, y, np.nan),
        "weight": rng.integers(1, 4, N),
        "team": rng.integers(0, 40, N),
    }


LEVELS, OTHERS = ["low", "mid", "top"], ["no", "yes"]


@pytest.fixture(scope="module")
def table(values):
    """The same values in types of Arrow."""
    v = values
    observed = ~np.isnan(v["y"])
    text = np.array(LEVELS, dtype=object)[v["level"]]
    decimals = [decimal.Decimal(f"{one:.2f}") for one in v["a"]]
    gaps = pa.array(["unused", *LEVELS, "never"])
    columns = {
        "a": pa.array(decimals, pa.decimal128(9, 2)),
        "b": pa.array(v["b"], pa.float64()),
        "whole": pa.array(v["whole"], pa.int8()),
        "flag": pa.array(v["flag"]),
        "huge": pa.array(v["huge"], pa.int64()),
        "level": pa.array(text, pa.large_string()),
        "gaps": pa.DictionaryArray.from_arrays(pa.array(v["level"] + 1, pa.int8()), gaps),
        "other": pa.DictionaryArray.from_arrays(v["other"].astype(np.int16), pa.array(OTHERS)),
        "y": pa.array(np.where(observed, v["y"], 0.0), pa.float64(), mask=~observed),
        "seen": pa.array(observed),
        "weight": pa.array(v["weight"], pa.uint16()),
        "team": pa.array([f"team {one:02}" for one in v["team"]]),
        "number": pa.array(v["team"] + 2**60, pa.int64()),
        "day": pa.array(v["team"].astype("datetime64[D]")),
        "packed": pa.array([f"team {one:02}" for one in v["team"]]).dictionary_encode(),
    }
    return pa.table(columns)


def _to_dask(table):
    # Dask makes text of objects, such as decimals.
    plain = table.set_column(0, "a", table["a"].cast(pa.float64()))
    return dd.from_pandas(plain.to_pandas(), npartitions=3)


def _in_files(table, folder):
    # Pieces of uneven size, one without rows, and row groups that cut them.
    for number, (low, high) in enumerate(((0, 7), (7, 7), (7, 131), (131, N))):
        pq.write_table(
            table.slice(low, high - low), folder / f"{number}.parquet", row_group_size=50
        )
    return folder


def _uneven(table):
    ends = [0, 3, 3, 140, N]
    slices = [table.slice(low, high - low) for low, high in pairwise(ends)]
    return pa.concat_tables(slices)


SCANS = {
    "parquet": lambda table, folder: _in_files(table, folder),
    "dataset": lambda table, folder: ds.dataset(_uneven(table)),
    "feather": lambda table, folder: _as_feather(table, folder),
    "lazy frame": lambda table, folder: pl.from_arrow(table).lazy(),
}


def _as_feather(table, folder):
    feather.write_feather(_uneven(table), folder / "t.feather", chunksize=37)
    return folder / "t.feather"


FRAMES = {
    "arrow": _uneven,
    "pandas": lambda table: table.to_pandas(),
    "pandas with arrow's types": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "dask": _to_dask,
}
WAYS = (*SCANS, *FRAMES)


def _fit(way, table, folder, features, predicting, **roles):
    options = {} if "groups" not in roles else {"cov_type": "cluster"}
    model = Heckman(predicting, **options)
    if way in SCANS:
        source = SCANS[way](table.select([*features, "y", *roles.values()]), folder)
        return model.fit(scan(source, "y", features, **roles))
    data = FRAMES[way](table)
    given = {role: data[name] for role, name in roles.items()}
    names = features if way != "arrow" and way != "polars" else None
    X = data[features] if names else data.select(features)
    with dask.config.set(scheduler="synchronous"):
        return model.fit(X, data["y"], **given)


def _agree(found, wanted, names):
    assert [*found.encoded_names_] == names
    mine, theirs = found.tidy(), wanted.tidy()
    assert len(mine) == len(theirs)
    np.testing.assert_allclose(mine["estimate"], theirs["estimate"], rtol=CLOSE, atol=1e-9)
    np.testing.assert_allclose(mine["std_error"], theirs["std_error"], rtol=CLOSE)


@pytest.mark.parametrize("way", WAYS)
def test_numbers_of_every_type_are_the_same_numbers(way, table, values, tmp_path):
    features = ["a", "b", "whole", "flag", "huge"]
    X = np.column_stack([values[name].astype(float) for name in features])
    wanted = Heckman([0, 2, 3]).fit(X, values["y"], sample_weight=values["weight"])
    found = _fit(way, table, tmp_path, features, ["a", "whole", "flag"], sample_weight="weight")
    _agree(found, wanted, features)
    assert found.n_obs_ == wanted.n_obs_ == values["weight"].sum()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["level", "gaps"])
def test_categories_of_every_type_have_the_levels_of_their_rows(name, way, table, values, tmp_path):
    features = ["a", name, "b", "other"]
    dummies = [values["level"] == 1, values["level"] == 2]
    X = np.column_stack([values["a"], *dummies, values["b"], values["other"] == 1]).astype(float)
    wanted = Heckman([0, 1, 2]).fit(X, values["y"], selected=~np.isnan(values["y"]))
    found = _fit(way, table, tmp_path, features, ["a", name], selected="seen")
    _agree(found, wanted, ["a", f"{name}[mid]", f"{name}[top]", "b", "other[yes]"])
    assert found.encoding_.references == {name: "low", "other": "no"}
    assert found.encoding_.level_rows[name] == (*np.bincount(values["level"]),)


@pytest.mark.parametrize(
    ("groups", "way"),
    [
        (groups, way)
        for groups in ("team", "number", "day", "packed")
        for way in WAYS
        # Dask takes longest, and has the types of pandas.
        if way != "dask" or groups in ("number", "packed")
    ],
)
def test_groups_of_every_type_are_the_same_groups(groups, way, table, values, tmp_path):
    X = np.column_stack([values["a"], values["b"]])
    wanted = Heckman([0], cov_type="cluster").fit(X, values["y"], groups=values["team"])
    found = _fit(way, table, tmp_path, ["a", "b"], ["a"], groups=groups)
    _agree(found, wanted, ["a", "b"])
    assert found.n_clusters_ == len({*values["team"]})


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_group_is_refused_by_every_way(way, table, tmp_path):
    for name in ("team", "number", "packed"):
        place = table.schema.get_field_index(name)
        gone = pa.array(np.arange(N) == 200)
        column = pa.compute.if_else(gone, None, table.column(name).combine_chunks())
        holed = table.set_column(place, name, column)
        (tmp_path / name).mkdir()
        with pytest.raises(InputError, match="groups is missing in 1 rows"):
            _fit(way, holed, tmp_path / name, ["a", "b"], ["a"], groups=name)


@pytest.mark.parametrize("way", WAYS)
def test_a_column_of_nothing_is_missing_by_every_way(way, table, tmp_path):
    for kind in (pa.float64(), pa.int32()):
        nothing = table.append_column("nothing", pa.nulls(N, kind))
        (tmp_path / str(kind)).mkdir()
        with pytest.raises(InputError, match="'nothing'"):
            _fit(way, nothing, tmp_path / str(kind), ["a", "b", "nothing"], ["a"])


def test_parquet_files_in_one_folder_are_read_in_the_order_of_their_names(table, values, tmp_path):
    rows = scan_parquet(_in_files(table, tmp_path), "y", ["a", "b"])
    assert rows.n_rows == len(rows) == N
    assert repr(rows) == f"<{N} rows of 4 Parquet files: 2 features>"

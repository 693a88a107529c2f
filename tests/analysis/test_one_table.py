"""One table gives one model, whichever way it comes in: the file's schema decides what is text."""

from __future__ import annotations

import json

import dask
import dask.dataframe as dask_frame
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from typer.testing import CliRunner

import heckmanfa
from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanFA, scan_parquet
from heckmanfa.analysis import Question, analyse
from heckmanfa.cli import app
from heckmanfa.errors import InputError, MissingValueError
from heckmanfa.estimators.searches import HeckmanLasso

N = 1500


@pytest.fixture(scope="module")
def table():
    """Numbers, words, text that spells numbers, booleans, integers, declared levels, and gaps."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=N)
    age = rng.integers(20, 60, N)
    union = rng.random(N) < 0.4
    region = rng.choice(["north", "south", "west"], N, p=[0.3, 0.5, 0.2])
    zip_ = rng.choice(["4012", "0815", "997", "1204"], N, p=[0.4, 0.3, 0.2, 0.1])
    size = rng.choice(["small", "middle", "large"], N)
    u, v = rng.normal(size=(2, N))
    chosen = 0.5 * x - 0.02 * (age - 40) + 0.6 * (region == "north") + 0.5 * union + u > 0
    wage = 1 + 0.8 * x + 0.9 * (zip_ == "0815") + 0.2 * (zip_ == "997") + 0.4 * (size == "large")
    frame = pd.DataFrame(
        {
            "wage": np.where(chosen, wage + 0.5 * u + 0.5 * v, np.nan),
            "x": x,
            "age": age,
            "union": union,
            "region": pd.array(region, dtype="str"),
            "zip": pd.array(zip_, dtype="str"),
            "size": pd.Categorical(size, ["small", "middle", "large"]),
            "grade": pd.Categorical(rng.integers(8, 11, N)),
        }
    )
    frame.loc[::50, "x"] = np.nan
    frame.loc[7::90, "region"] = None
    frame.loc[11::95, "zip"] = None
    return frame


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("one") / "table.parquet"
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, row_group_size=400)
    return path


def fitted(path, table, way, **options):
    """The model, how columns became features, and its groups."""
    if way == "frame":
        done = analyse(Question(data="table", outcome="wage", **options), frame=table)
    elif way == "scan":
        rows = scan_parquet(path, "wage", missing="drop", **options)
        tolerance = {"on_collinear": "drop"}
        return HeckmanAverage(**tolerance).fit(rows), rows.encoding
    else:
        stream_above = 0.0 if way == "streamed" else 100.0
        question = Question(str(path), outcome="wage", stream_above=stream_above, **options)
        done = analyse(question)
        assert done.streamed == (way == "streamed")
    return done.model, done.encoding


WAYS = ["loaded", "streamed", "scan", "frame"]


@pytest.mark.parametrize("asked", [{}, {"numeric": ("zip",)}, {"categorical": ("union",)}])
def test_one_table_gives_one_model_whichever_way_it_comes_in(path, table, asked):
    found = {way: fitted(path, table, way, **asked) for way in WAYS}
    model, encoding = found["loaded"]
    assert encoding.levels["region"][0] == "north"
    if not asked:
        assert encoding.levels["zip"] == ("0815", "997", "1204", "4012")
        assert encoding.levels["size"] == ("small", "middle", "large")
        assert encoding.levels["grade"] == ("8", "9", "10")
        assert "zip" in model.prediction_features_
    for other, others in found.values():
        assert others.columns == encoding.columns
        assert others.references == encoding.references
        assert others.groups == encoding.groups
        assert other.prediction_features_ == model.prediction_features_
        assert other.selection_features_ == model.selection_features_
        mine, theirs = model.tidy(), other.tidy()
        assert mine["term"].tolist() == theirs["term"].tolist()
        off = (mine["estimate"] - theirs["estimate"]).abs() / mine["std_error"]
        assert off.dropna().max() < 1e-8
        np.testing.assert_allclose(mine["std_error"], theirs["std_error"], rtol=1e-6)


def test_the_command_line_reads_a_text_column_as_the_schema_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = {}
    for above in ("100", "0"):
        words = f"fit {path} --outcome wage --stream-above {above} --json {above}.j"
        done = CliRunner().invoke(app, words.split())
        assert done.exit_code == 0, done.output
        said[above] = json.loads((tmp_path / f"{above}.j").read_text())
    assert said["0"]["reference_levels"]["zip"] == "0815"
    for what in ("reference_levels", "predict", "only_select", "columns_left_out"):
        assert said["0"][what] == said["100"][what]


@pytest.mark.parametrize("ending", ["feather", "dta", "csv"])
def test_types_of_other_files_decide_as_well_and_csv_has_none(table, tmp_path, ending):
    path = str(tmp_path / f"t.{ending}")
    table = table.drop(columns="grade")
    if ending == "dta":
        table.fillna({"region": "", "zip": ""}).to_stata(path, write_index=False, version=118)
    else:
        getattr(table, f"to_{ending}")(path, **({"index": False} if ending == "csv" else {}))
    encoding = analyse(Question(path, outcome="wage", search="none", exclude=("size",))).encoding
    expected = {"region": "north"} | ({} if ending == "csv" else {"zip": "0815"})
    assert encoding.references == expected


def test_a_category_that_may_not_predict_is_no_group_of_the_search(table):
    options = {"predict_with": ("x", "zip"), "search": "best-subset"}
    done = analyse(Question("table", outcome="wage", **options), frame=table)
    assert {*done.predicting} <= {"x", "zip"}
    assert "region" in done.kept_out


# Declared levels. ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    """Categories of text that spells numbers, of numbers, booleans and dates; some missing."""
    rng = np.random.default_rng(8)
    n = 400
    x = rng.normal(size=n)
    size = rng.integers(1, 4, n)
    frame = pd.DataFrame(
        {
            "wage": np.where(x + rng.normal(size=n) > 0, x + size + rng.normal(size=n), np.nan),
            "x": x,
            "code": pd.Categorical(np.array(["01", "02", "10"])[size - 1]),
            "size": pd.Categorical(size, [3, 2, 1]),
            "rate": pd.Categorical(size / 4, ordered=True),
            "union": pd.Categorical(rng.random(n) < 0.5),
            "gaps": pd.Categorical(np.where(np.arange(n) % 50, rng.integers(5, 9, n), None)),
            "day": pd.Categorical(pd.to_datetime("2020-01-01") + pd.to_timedelta(size, unit="D")),
        }
    )
    path = tmp_path_factory.mktemp("declared") / "declared.parquet"
    frame.to_parquet(path, row_group_size=150)
    return frame, path


def test_a_declared_category_is_one_whatever_its_values_are_and_wherever_it_is(declared, tmp_path):
    frame, path = declared
    frame.to_feather(tmp_path / "t.feather")
    common = {"outcome": "wage", "search": "none"}
    whole = pa.Table.from_pandas(frame)
    given = {
        "as it is": frame,
        "Arrow": whole,
        "Parquet as Arrow": pq.read_table(path),
        "feather as pandas": pd.read_feather(tmp_path / "t.feather"),
    }
    found = {
        name: analyse(Question("t", **common), frame=one).encoding for name, one in given.items()
    }
    found["loaded"] = analyse(Question(str(path), **common)).encoding
    found["streamed"] = analyse(Question(str(path), stream_above=0.0, **common)).encoding
    place = str(tmp_path / "t.feather")
    found["feather"] = analyse(Question(place, **common)).encoding
    found["feather streamed"] = analyse(Question(place, stream_above=0.0, **common)).encoding
    features = ["x", "code", "size", "rate", "union", "gaps"]
    found["scanned"] = scan_parquet(path, "wage", features).encoding
    found["feather scanned"] = heckmanfa.scan(place, "wage", features).encoding
    expected = {
        "code": ("01", "02", "10"),
        "size": ("3", "2", "1"),
        "rate": ("0.25", "0.5", "0.75"),
        "union": ("False", "True"),
        "gaps": ("5", "6", "7", "8"),
    }
    for name, encoding in found.items():
        # Parquet does not keep the order of declared numbers.
        in_parquet = name in ("Parquet as Arrow", "loaded", "streamed", "scanned")
        sizes = {"size": ("1", "2", "3")} if in_parquet else {}
        assert encoding.levels == expected | sizes, name
        assert encoding.sources == tuple(features), name
        if "scanned" not in name:
            assert "day" in encoding.left_out, name
    some = ["x", "size", "union"]
    for X in (frame[some], whole.select(some)):
        fit = Heckman(["x", "size"]).fit(X, frame["wage"])
        assert fit.encoding_.levels == {name: expected[name] for name in some[1:]}
    # A model of one route takes the rows of every other, also those of which nobody says so.
    frames = [frame, pd.read_parquet(path), pd.read_parquet(path, dtype_backend="pyarrow")]
    numbers = [found["loaded"].transform(one) for one in frames]
    for one in numbers[1:]:
        pd.testing.assert_frame_equal(one, numbers[0])


def test_a_declared_category_of_numbers_is_numbers_if_the_user_asks_for_them(declared):
    frame, path = declared
    common = {"outcome": "wage", "search": "none", "numeric": ("size",), "exclude": ("gaps",)}
    asked = analyse(Question("t", **common), frame=frame)
    assert "size" not in asked.encoding.levels
    for above in (100.0, 0.0):
        stored = analyse(Question(str(path), stream_above=above, **common))
        assert stored.encoding.columns == asked.encoding.columns
        np.testing.assert_allclose(stored.model.coef_, asked.model.coef_, rtol=1e-8)
    rows = scan_parquet(path, "wage", ["x", "size"], numeric=["size"])
    assert rows.names == ("x", "size")
    # An outcome is a number, whatever it is declared as.
    ranked = frame.assign(wage=pd.Categorical(frame["wage"].round(1))).drop(columns="gaps")
    ranked = analyse(Question("t", outcome="wage", search="none"), frame=ranked)
    assert ranked.target.family is asked.target.family


def test_a_category_of_numbers_in_some_files_only_is_none(declared, tmp_path):
    frame = declared[0][["wage", "x", "size"]]
    for first, second in (("a", "b"), ("b", "a")):
        frame[:200].to_parquet(tmp_path / f"{first}.parquet")
        frame[200:].astype({"size": int}).to_parquet(tmp_path / f"{second}.parquet")
        assert scan_parquet(tmp_path, "wage", ["x", "size"]).names == ("x", "size")


def test_a_dictionary_without_an_order_has_the_order_of_text_however_it_comes_in(tmp_path):
    rng = np.random.default_rng(2)
    text, x = rng.permutation(["b", "c", "a"] * 40), rng.normal(size=(2, 120))
    wage = np.where(x[0] > 0, x[1] + rng.normal(size=120), np.nan)
    codes = pa.array(text).dictionary_encode()
    frame = pa.table({"wage": wage, "x": x[1], "z": x[0] + rng.normal(size=120), "t": codes})
    pq.write_table(frame, tmp_path / "t.parquet")
    feather.write_feather(frame, tmp_path / "t.feather")
    features = ["x", "z", "t"]
    backed = frame.to_pandas(types_mapper=pd.ArrowDtype)
    loose = polars.from_arrow(frame).with_columns(polars.col("t").cast(polars.Categorical))
    with dask.config.set(scheduler="synchronous"):
        lazy = dask_frame.from_pandas(backed, npartitions=2)
        found = [Heckman(["x", "t"]).fit(lazy[features], lazy["wage"]).encoded_names_]
    for one in (frame, loose):
        found.append(Heckman(["x", "t"]).fit(one.select(features), one["wage"]).encoded_names_)
    found.append(Heckman(["x", "t"]).fit(backed[features], backed["wage"]).encoded_names_)
    lazy_sources = (tmp_path / "t.parquet", tmp_path / "t.feather", loose.lazy())
    found += [heckmanfa.scan(one, "wage", features).names for one in lazy_sources]
    question = Question("t", outcome="wage", search="none")
    found += [analyse(question, frame=one).encoding.columns for one in (frame, backed, loose)]
    assert {tuple(names) for names in found} == {("x", "z", "t[b]", "t[c]")}


# Groups. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "search",
    [
        HeckmanBestSubset(),
        HeckmanFA("correlation"),
        HeckmanFA("rank", epochs=20, rho_range=(-0.99, 0.99)),
    ],
)
def test_dummies_of_a_column_move_as_one_in_every_search_of_scanned_rows(path, search):
    rows = scan_parquet(path, "wage", missing="drop")
    search.fit(rows)
    # A column that is in as a whole goes by its own name.
    known = {*rows.encoding.sources}
    assert all({*features} <= known for features in search.candidates_["features"])


def test_what_the_user_says_of_single_dummies_wins(path):
    rows = scan_parquet(path, "wage", missing="drop")
    alone = [[name] for name in rows.encoding.groups["zip"]]
    found = HeckmanBestSubset(feature_groups=[*alone, ["x", "age"]], tolerance=200).fit(rows)
    sets = [{*one} for one in found.candidates_["features"]]
    zips = {*rows.encoding.groups["zip"]}
    assert any(one & zips and not zips <= one for one in sets)
    assert all(("x" in one) == ("age" in one) for one in sets)
    # Other columns of text still move as one.
    assert all(one.isdisjoint(rows.encoding.groups["region"]) for one in sets)
    apart = HeckmanBestSubset(never=["zip[1204]"], always=["zip[997]"], feature_groups=alone)
    found = apart.fit(rows)
    assert all(
        "zip[997]" in one and "zip[1204]" not in one for one in found.candidates_["features"]
    )


@pytest.mark.parametrize("role", ["always", "never"])
def test_some_dummies_of_a_column_are_not_forced_without_the_others(path, table, role):
    rows = scan_parquet(path, "wage", missing="drop")
    said = (
        rf"{role} names 'zip\[997\]', but not 'zip\[1204\]', 'zip\[4012\]' of the same column.*all"
    )
    with pytest.raises(InputError, match=said):
        HeckmanBestSubset(**{role: ["zip[997]"]}).fit(rows)
    kept = table.dropna(subset=["x", "region", "zip"])
    features = rows.encoding.transform(kept)
    groups = list(rows.encoding.groups.values())
    with pytest.raises(InputError, match="a group is in or out as a whole"):
        HeckmanBestSubset(**{role: ["zip[997]"]}, feature_groups=groups).fit(features, kept["wage"])


def test_the_name_of_a_text_column_stands_for_all_of_its_dummies(path):
    rows = scan_parquet(path, "wage", missing="drop")
    zips, regions = rows.encoding.groups["zip"], rows.encoding.groups["region"]
    whole = HeckmanBestSubset(always=["zip"], never=["region"]).fit(rows)
    listed = HeckmanBestSubset(always=zips, never=regions).fit(rows)
    assert whole.prediction_features_ == listed.prediction_features_
    assert "zip" in whole.prediction_features_
    assert {"region", *regions}.isdisjoint(whole.prediction_features_)
    named = Heckman(["x", "zip"], selection_features=["x", "age", "region", "zip"]).fit(rows)
    assert named.prediction_features_ == ["x", "zip"]
    assert {*named.selection_features_} == {"x", "age", "region", "zip"}
    with pytest.raises(InputError, match=r"always names 'region\[south\]' twice"):
        HeckmanBestSubset(always=["region", "region[south]"]).fit(rows)


# Infinite values. ---------------------------------------------------------------------------------


def test_infinite_values_are_refused_and_not_counted_as_missing(table, tmp_path):
    path = tmp_path / "infinite.parquet"
    odd = table.assign(x=table["x"].where(table.index % 400 != 3, np.inf))
    odd.to_parquet(path, row_group_size=400)
    said = {}
    common = {"outcome": "wage", "search": "none"}
    ways = {
        "loaded": (Question(str(path), **common), None),
        "streamed": (Question(str(path), stream_above=0.0, **common), None),
        "frame": (Question("t", **common), odd),
    }
    for way, (question, given) in ways.items():
        with pytest.raises(MissingValueError) as refused:
            analyse(question, frame=given)
        said[way] = str(refused.value)
    assert len({words.split(";")[0] for words in said.values()}) == 1
    assert said["frame"].startswith("column 'x' holds infinite values; correct them")
    features = ["x", "age", "union"]
    # Rows that lack the feature are left out, and the four infinite ones are no such rows.
    with pytest.raises(MissingValueError, match=r"'x' \(0 NaN, 4 inf\)"):
        Heckman(["x", "age"]).fit(scan_parquet(path, "wage", features, missing="drop"))
    some = odd.dropna(subset=features)
    with pytest.raises(MissingValueError, match=r"'x' \(0 NaN, 4 inf\)"):
        Heckman(["x", "age"]).fit(some[features], some["wage"])
    # Where rows are left out by any feature, those of the prediction equation count, too.
    unselected = odd["wage"].isna() & (odd["x"].abs() < 9)
    odd["x"] = table["x"].where(~unselected | (unselected.cumsum() > 2), -np.inf)
    odd.to_parquet(path, row_group_size=400)
    model = Heckman(["x", "age"], selection_features=["age", "union"])
    with pytest.raises(MissingValueError, match=r"'x' \(0 NaN, 2 inf\)"):
        model.fit(scan_parquet(path, "wage", features, missing="drop"))


def test_the_lasso_says_why_it_cannot_hold_dummies_together(path):
    rows = scan_parquet(path, "wage", missing="drop")
    with pytest.raises(InputError, match=r"the lasso chooses single columns.*feature_groups"):
        HeckmanLasso().fit(rows)
    alone = [[name] for group in rows.encoding.groups.values() for name in group]
    HeckmanLasso(feature_groups=alone).fit(rows)


# What scan_parquet is told. -----------------------------------------------------------------------


def test_scan_parquet_takes_what_the_user_decides_of_a_column(path):
    rows = scan_parquet(path, "wage", missing="drop", numeric=["zip"], categorical=["age"])
    assert "zip" in rows.names
    assert "age[22]" in rows.names
    with pytest.raises(InputError, match="'zip' is in both categorical and numeric"):
        scan_parquet(path, "wage", numeric=["zip"], categorical=["zip"])
    with pytest.raises(InputError, match="numeric names 'zipp', which is not among the features"):
        scan_parquet(path, "wage", numeric=["zipp"])
    with pytest.raises(InputError, match=r"column 'region'.*are not numbers: row 1 '"):
        scan_parquet(path, "wage", numeric=["region"])
    with pytest.raises(InputError, match="leave categorical and numeric out"):
        scan_parquet(path, "wage", numeric=["zip"], encoding=rows.encoding)


def test_a_column_that_counts_the_rows_is_no_feature_unless_it_is_named(table, tmp_path):
    path = tmp_path / "counted.parquet"
    table.assign(nr=np.arange(N), person=np.random.default_rng(0).permutation(N) + 1).to_parquet(
        path, row_group_size=400
    )
    for name in ("nr", "person"):
        rest = [one for one in (*table.columns, "nr", "person") if one not in ("wage", name)]
        assert scan_parquet(path, "wage", [name, "x"]).names == (name, "x")
        assert scan_parquet(path, "wage", rest).n_features
    with pytest.raises(InputError, match="column 'nr' counts the rows; name the features"):
        scan_parquet(path, "wage")
    left_out = analyse(Question(str(path), outcome="wage")).encoding.left_out
    assert left_out == {"nr": "counts the rows", "person": "counts the rows"}
    table.assign(person=np.random.default_rng(0).permutation(N) + 1).to_parquet(path)
    with pytest.raises(InputError, match="column 'person' counts the rows"):
        scan_parquet(path, "wage")


def test_a_report_of_a_frame_says_that_there_is_no_file(table):
    done = analyse(Question("table", outcome="wage", search="none"), frame=table)
    assert "table: not a file that can be read again" in str(done.reported().again)


def test_a_frame_needs_names_that_tell_its_columns_apart(table):
    twice = table.set_axis(
        ["wage", "x", "x", "union", "region", "zip", "size", "grade"], axis="columns"
    )
    with pytest.raises(InputError, match="several columns 'x'"):
        analyse(Question("table", outcome="wage"), frame=twice)

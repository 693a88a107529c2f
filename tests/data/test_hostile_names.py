"""A column is the one that has the name, even where another program reads names as patterns."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import heckmanfa
from heckmanfa import Heckman, load, predict_batches, save, scan, scan_parquet
from heckmanfa.analysis.loading import as_pandas
from heckmanfa.cli import app
from heckmanfa.errors import DataError

# Each looks like a pattern, a path, an expression or a quotation that means another column.
HOSTILE = (
    *("^secret$", "^.*$", "*", "a.b", ".a.b", 'q"uote', "it's", "{x}", "[0]", "`x`", "x; --"),
    *("$x", "count(*)", "x y", "x\\y", "@x", "x::int"),
)
DECOYS = ("secret", "q", "x", "x_y", "b", "0")
N = 400


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    columns = {name: rng.normal(size=N) for name in (*DECOYS, *HOSTILE, "z")}
    index = 0.5 + columns["z"] + columns["^secret$"] + rng.normal(size=N)
    outcome = (
        1.0
        + sum((place + 1) / 10 * columns[name] for place, name in enumerate(HOSTILE))
        + rng.normal(size=N)
    )
    order = rng.permutation(list(columns))
    frame = pd.DataFrame({name: columns[name] for name in order})
    frame["y"] = np.where(index > 0, outcome, np.nan)
    # As weights and groups, both columns would do.
    frame["^w$"], frame["w"] = rng.integers(1, 4, (2, N))
    frame["^g$"], frame["g"] = rng.integers(0, 60, (2, N))
    frame["^who$"] = index > 0
    frame["who"] = ~frame["^who$"]
    return frame


@pytest.fixture(scope="module")
def arrow(frame: pd.DataFrame):
    """The table with a struct, whose fields have the paths of other columns."""
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    inner = pa.StructArray.from_arrays([pa.array(frame["x"])], names=["b"])
    return table.add_column(0, "a", inner)


@pytest.fixture(scope="module")
def expected(frame: pd.DataFrame) -> Heckman:
    """The fit to the same columns by position."""
    return _model(range(len(HOSTILE))).fit(frame[[*HOSTILE, "z"]].to_numpy(), frame["y"].to_numpy())


def _model(features) -> Heckman:
    chosen = list(features)
    both = [*chosen, len(HOSTILE) if isinstance(chosen[0], int) else "z"]
    return Heckman(prediction_features=chosen, selection_features=both)


def _check(model: Heckman, expected: Heckman) -> None:
    names = {f"x{place}": name for place, name in enumerate([*HOSTILE, "z"])}
    want = expected.tidy()
    want["term"] = [names.get(term, term) for term in want["term"]]
    got = model.tidy().set_index(["equation", "term"])["estimate"]
    for key, value in want.set_index(["equation", "term"])["estimate"].items():
        assert got[key] == pytest.approx(value, rel=1e-7, abs=1e-9), key


def _source(way: str, arrow, folder):
    if way == "polars":
        return pytest.importorskip("polars").from_arrow(arrow).lazy()
    if way == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(arrow)
    if way == "dataset":
        import pyarrow.dataset as ds

        return ds.dataset(arrow)
    if way == "feather":
        from pyarrow import feather

        feather.write_feather(arrow, folder / "t.feather")
        return folder / "t.feather"
    import pyarrow.parquet as pq

    pq.write_table(arrow, folder / "t.parquet", row_group_size=150)
    return folder / "t.parquet"


def _table(way: str, data: pd.DataFrame):
    """The same columns as a table of another library."""
    if way == "polars":
        return pytest.importorskip("polars").from_pandas(data)
    if way == "pyarrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(data, preserve_index=False)
    return data


WAYS = ("polars", "duckdb", "dataset", "feather", "parquet", "parquet with a filesystem")


@pytest.mark.parametrize("way", WAYS)
def test_a_scan_reads_the_columns_that_have_the_names(way, arrow, frame, expected, tmp_path):
    source = _source(way, arrow, tmp_path)
    where = {}
    if "filesystem" in way:
        import pyarrow.fs as pafs

        where = {"filesystem": pafs.LocalFileSystem()}
        source = str(source)
    rows = scan(source, outcome="y", features=[*HOSTILE, "z"], **where)
    model = _model(HOSTILE).fit(rows)
    _check(model, expected)
    predicted = [
        batch.column(0).to_numpy()
        for batch in predict_batches(model, scan(source, features=[*HOSTILE, "z"], **where))
    ]
    want = expected.predict(frame[[*HOSTILE, "z"]].to_numpy())
    np.testing.assert_allclose(np.concatenate(predicted), want, rtol=1e-7)


@pytest.mark.parametrize("way", WAYS[:-1])
def test_a_role_is_that_of_the_column_with_the_name(way, arrow, frame, tmp_path):
    rows = scan(
        _source(way, arrow, tmp_path),
        outcome="y",
        features=["z", "^secret$"],
        selected="^who$",
        sample_weight="^w$",
        groups="^g$",
    )
    options = {"cov_type": "cluster", "weight_kind": "frequency"}
    got = Heckman(["z"], **options).fit(rows)
    want = Heckman(["z"], **options).fit(
        frame[["z", "^secret$"]],
        frame["y"],
        selected=frame["^who$"],
        sample_weight=frame["^w$"],
        groups=frame["^g$"],
    )
    pd.testing.assert_frame_equal(got.tidy(), want.tidy(), rtol=1e-7)


@pytest.mark.parametrize("way", ["pandas", "polars", "pyarrow", "dask"])
def test_a_table_in_memory_is_fitted_and_predicted_by_name(way, arrow, frame, expected):
    features = frame.drop(columns=["y", "^who$", "who"])
    y = frame["y"]
    if way == "polars":
        pl = pytest.importorskip("polars")
        features = pl.from_arrow(arrow).drop(["y", "who"])
    elif way == "pyarrow":
        features = arrow.drop_columns(["y", "^who$", "who"])
    elif way == "dask":
        dd = pytest.importorskip("dask.dataframe")
        features = dd.from_pandas(features, npartitions=2)
        y = dd.from_pandas(y, npartitions=2)
    model = _model(HOSTILE).fit(features, y)
    _check(model, expected)
    if way != "dask":
        want = expected.predict(frame[[*HOSTILE, "z"]].to_numpy())
        np.testing.assert_allclose(model.predict(features), want, rtol=1e-7)


@pytest.mark.parametrize("way", ["pandas", "polars", "pyarrow"])
def test_margins_over_a_column_leave_only_that_column_out(way, frame):
    names = ["z", "w", "secret", "^g$"]
    model = Heckman(["z"], ["z", "w", "secret"]).fit(frame[names[:3]], frame["y"])
    want = model.margins(frame[names], over="^g$").table
    got = model.margins(_table(way, frame[names]), over="^g$").table
    pd.testing.assert_frame_equal(got, want, rtol=1e-7)
    # As a pattern, this name would remove features, and keep itself.
    data = _table(way, frame[names].rename(columns={"^g$": "^(z|w)$"}))
    got = model.margins(data, over="^(z|w)$").table
    np.testing.assert_allclose(got["estimate"], want["estimate"], rtol=1e-7)


@pytest.mark.parametrize("way", ["pandas", "polars", "pyarrow"])
def test_a_formula_reads_the_column_in_backticks(way, frame):
    plain = {"^secret$": "one", "x y": "two", "a.b": "three"}
    want = Heckman.from_formula(
        "y ~ one + I(two**2) + exp(three) + x_y", "~ one + two + z + w", frame.rename(columns=plain)
    )
    data = _table(way, frame)
    got = Heckman.from_formula(
        "y ~ `^secret$` + I(`x y`**2) + exp(`a.b`) + x_y", "~ `^secret$` + `x y` + z + w", data
    )
    np.testing.assert_allclose(got.tidy()["estimate"], want.tidy()["estimate"], rtol=1e-9)
    np.testing.assert_allclose(
        got.predict(data), want.predict(frame.rename(columns=plain)), rtol=1e-9
    )


def test_a_column_whose_name_begins_another_is_not_part_of_a_formula(frame):
    """Its missing values cost no rows, and it need not exist."""
    data = frame[["y", "z", "w", "a.b"]]
    want = Heckman.from_formula("y ~ z + exp(`a.b`)", "~ z + w + `a.b`", data)
    decoy = data.assign(a=np.nan)
    got = Heckman.from_formula("y ~ z + exp(`a.b`)", "~ z + w + `a.b`", decoy)
    assert got.row_counts_ == want.row_counts_
    np.testing.assert_array_equal(got.tidy()["estimate"], want.tidy()["estimate"])
    np.testing.assert_array_equal(got.predict(decoy), want.predict(data))


def test_integers_of_128_bits_in_a_formula_are_those_of_their_column(frame):
    pl = pytest.importorskip("polars")
    data = pl.from_pandas(frame[["y", "z", "w"]])
    wide = pl.Series("^z$", np.arange(N) % 7).cast(pl.Int128)
    got = Heckman.from_formula("y ~ z", "~ z + `^z$` + w", data.with_columns(wide))
    plain = frame[["y", "z", "w"]].assign(other=np.arange(N) % 7)
    want = Heckman.from_formula("y ~ z", "~ z + other + w", plain)
    np.testing.assert_allclose(got.tidy()["estimate"], want.tidy()["estimate"], rtol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "parquet", "streamed parquet", "feather", "xlsx"])
def test_the_command_line_reads_the_column_that_has_the_name(
    ending, frame, arrow, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    some = ["^secret$", "*", "a.b", 'q"uote', "x y"]
    columns = [*some, *DECOYS, "z", "y"]
    if ending == "csv":
        frame[columns].to_csv("t.csv", index=False)
    elif ending == "xlsx":
        pytest.importorskip("openpyxl")
        frame[columns].to_excel("t.xlsx", index=False)
    else:
        _source(ending.split()[-1], arrow.select(["a", *columns]), tmp_path)
    name = f"t.{ending.split()[-1]}"
    asked = ",".join(f'"{column}"'.replace('q"u', 'q""u') for column in [*some, "z"])
    above = ["--stream-above", "0"] if "streamed" in ending else []
    fit = ["fit", name, "--outcome", "y", "--search", "none", "--features", asked]
    fit += ["--select-only", "z", "--save", "m.heckmanfa", *above]
    result = CliRunner().invoke(app, fit)
    assert result.exit_code == 0, result.output
    want = Heckman([*some], [*some, "z"]).fit(frame[[*some, "z"]], frame["y"])
    got = load("m.heckmanfa").tidy().set_index(["equation", "term"])["estimate"]
    for key, value in want.tidy().set_index(["equation", "term"])["estimate"].items():
        assert got[key] == pytest.approx(value, rel=1e-7)
    result = CliRunner().invoke(app, ["predict", "m.heckmanfa", name, "--out", "p.csv", *above])
    assert result.exit_code == 0, result.output
    predicted = pd.read_csv("p.csv")["predicted_marginal"]
    np.testing.assert_allclose(predicted, want.predict(frame[[*some, "z"]]), rtol=1e-7)


def test_a_range_in_a_footer_is_that_of_the_column_and_not_of_a_field_with_its_path(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    # The column a.b counts the rows, which is refused; the field b of a does not.
    fields = pa.StructArray.from_arrays([pa.array(np.zeros(N, dtype=int))], names=["b"])
    table = pa.table({"a.b": np.arange(N), "z": rng.normal(size=N), "y": rng.normal(size=N)})
    pq.write_table(
        table.append_column("a", fields).select(["a.b", "z", "y"]), tmp_path / "1.parquet"
    )
    pq.write_table(table.append_column("a", fields), tmp_path / "2.parquet")
    from heckmanfa.data.scan.parquet_files import store_of, value_ranges

    for name in ("1.parquet", "2.parquet"):
        file, _ = store_of(tmp_path / name)
        assert value_ranges([file], ["a.b"]) == ({"a.b": (0.0, N - 1.0, N)}, [])
    assert scan_parquet(tmp_path / "2.parquet", "y", ["z"]).names == ("z",)


def test_categories_of_polars_are_those_of_their_column_in_an_analysis(frame):
    """As a pattern, the name of the category would make text of the column z."""
    pl = pytest.importorskip("polars")
    level = pd.Series(np.where(frame["g"] > 30, "high", "low"))
    data = pl.from_pandas(frame[["y", "z", "w"]].assign(**{"^z$": level}))
    data = data.with_columns(data["^z$"].cast(pl.Categorical))
    taken = as_pandas(data)
    assert taken["z"].dtype == np.float64
    np.testing.assert_array_equal(taken["z"], frame["z"])
    assert list(taken["^z$"]) == list(level)


def test_a_model_of_such_names_is_saved_and_read(frame, expected, tmp_path):
    model = _model(HOSTILE).fit(frame[[*DECOYS, *HOSTILE, "z"]], frame["y"])
    save(model, tmp_path / "m.heckmanfa")
    _check(load(tmp_path / "m.heckmanfa"), expected)


def test_no_code_selects_columns_by_an_expression_of_names():
    """Polars takes a name in ``col`` for a pattern; positions and series are what they are."""
    for path in Path(heckmanfa.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # Few modules have a name of theirs, and to parse them all takes seconds.
        for node in ast.walk(ast.parse(text)) if re.search(r"\b(pl|nw)\b", text) else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in {("pl", "col"), ("nw", "col")}, path


@pytest.mark.parametrize(
    "metadata",
    [
        b"\xa2",
        b"[",
        b"[" * 100_000,
        b"[1]",
        b'{"columns": 1}',
        b'{"columns": [1]}',
        b'{"columns": [{"pandas_type": "categorical", "field_name": []}]}',
    ],
    ids=["bytes", "cut off", "deep", "list", "columns", "column", "name"],
)
def test_damaged_metadata_of_pandas_is_refused_by_name(metadata, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    y = np.where(generator.random(60) < 0.5, generator.random(60), np.nan)
    table = pa.table({"a": generator.random(60), "b": generator.random(60), "y": y})
    table = table.replace_schema_metadata({b"pandas": metadata})
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "t.parquet")
    with pytest.raises(DataError, match=r"pandas wrote of the columns of the table .* damaged"):
        Heckman(["a"]).fit(table.select(["a", "b"]), y)
    with pytest.raises(DataError, match=r"pandas wrote of the columns of .*t\.parquet .* damaged"):
        scan("t.parquet", outcome="y")
    for more in ([], ["--stream-above", "1"]):
        done = CliRunner().invoke(app, ["fit", "t.parquet", "--outcome", "y", *more])
        assert done.exit_code == 2, done.output
        assert "damaged" in " ".join(done.output.split())

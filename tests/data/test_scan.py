"""Rows of any engine: the model of memory, the same rows in every pass, and errors that help."""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanProbit, scan, scan_parquet
from heckmanfa.data.row_sources import Reading
from heckmanfa.data.scan import arrow_rows, engines
from heckmanfa.data.scan.parquet_rows import ParquetRows
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    CollinearError,
    DataError,
    DroppedFeaturesWarning,
    InputError,
    InputTypeError,
    MissingExtraError,
)

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
feather = pytest.importorskip("pyarrow.feather")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
fsspec = pytest.importorskip("fsspec")

NUMBERS = ["x0", "x1", "x2"]
FEATURES = [*NUMBERS, "city", "wave"]
PREDICT = ["x0", "city"]
# Of a standard error, or of a standard error's own size.
CLOSE = 1e-8
ENGINES = ("dataset", "lazy frame", "relation", "feather", "partitions", "memory")


@pytest.fixture(scope="module")
def frame():
    data = make_selection(600, 3, 2, prediction_features=[0, 1], rho=0.4, random_state=3)
    rng = np.random.default_rng(4)
    table = pd.DataFrame(data.X, columns=NUMBERS).assign(y=data.y)
    table["city"] = rng.choice(["york", "bath", "leeds"], len(table))
    table["wave"] = rng.integers(1, 4, len(table))
    table["weight"] = rng.integers(0, 3, len(table))
    table["village"] = rng.integers(0, 45, len(table)).astype(str)
    table["class"] = pd.Series(np.where(data.y > np.nanmedian(data.y), "yes", "no"), dtype=object)
    table.loc[table["y"].isna(), "class"] = None
    table["gap"] = table["x2"].where(rng.random(len(table)) < 0.97)
    # Every engine leaves these out with a filter of its own, or never sees them.
    table["kept"] = rng.random(len(table)) < 0.9
    return table


@pytest.fixture(scope="module")
def kept(frame):
    return frame[frame["kept"]].drop(columns="kept").reset_index(drop=True)


@pytest.fixture(scope="module")
def sources(frame, kept, tmp_path_factory):
    """The same rows in every engine, in files and in a store; some are filtered there."""
    folder = tmp_path_factory.mktemp("scan")
    whole, table = (pa.Table.from_pandas(rows, preserve_index=False) for rows in (frame, kept))
    feather.write_feather(table, folder / "rows.feather")
    by = ds.partitioning(pa.schema([("city", pa.string())]), flavor="hive")
    ds.write_dataset(table, folder / "parts", format="parquet", partitioning=by)
    store = fsspec.filesystem("memory")
    for file in (folder / "parts").rglob("*.parquet"):
        store.pipe(f"/scan/{file.relative_to(folder).as_posix()}", file.read_bytes())
    connection = duckdb.connect()
    connection.register("frame", whole)
    connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    return {
        "dataset": ds.dataset(whole).filter(ds.field("kept")),
        "lazy frame": pl.from_arrow(whole).lazy().filter(pl.col("kept")),
        "relation": connection.table("people").filter("kept"),
        "feather": folder / "rows.feather",
        "partitions": folder / "parts",
        "memory": "memory://scan/parts",
        "folder": folder,
        "connection": connection,
    }


def agree(found, expected):
    mine, theirs = found.tidy(), expected.tidy()
    assert mine["term"].tolist() == theirs["term"].tolist()
    distance = (mine["estimate"] - theirs["estimate"]) / theirs["std_error"]
    assert np.abs(distance).max() < CLOSE
    np.testing.assert_allclose(mine["std_error"], theirs["std_error"], rtol=CLOSE)


def dummies(table):
    """The features of these rows as pandas makes them: the first level is the reference."""
    made = table[[*NUMBERS, "wave"]].assign(
        **{f"city[{name}]": (table["city"] == name).astype(float) for name in ("leeds", "york")}
    )
    return made[[*NUMBERS, "city[leeds]", "city[york]", "wave"]]


# The same model. ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_memory(kept):
    X, predict = dummies(kept), ["x0", "city[leeds]", "city[york]"]
    weighted = Heckman(predict, cov_type="robust", weight_kind="sampling")
    clustered = Heckman(predict, cov_type="cluster")
    gaps = X.assign(x2=kept["gap"])[kept["gap"].notna()]
    classes = kept["class"].map({"yes": 1.0, "no": 0.0})
    return {
        "weights": weighted.fit(X, kept["y"], sample_weight=kept["weight"]),
        "clusters": clustered.fit(X, kept["y"], groups=kept["village"]),
        "classes": HeckmanProbit(predict[:1]).fit(X[NUMBERS], classes),
        "search": HeckmanBestSubset(feature_groups=[predict[1:]]).fit(X, kept["y"]),
        "missing": Heckman(predict).fit(gaps, kept["y"][gaps.index]),
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_model_of_memory(sources, in_memory, engine):
    source = sources[engine]
    rows = scan(source, "y", FEATURES, sample_weight="weight")
    assert rows.names == tuple(in_memory["weights"].feature_names_in_)
    model = Heckman(PREDICT, cov_type="robust", weight_kind="sampling")
    agree(model.fit(rows), in_memory["weights"])


@pytest.mark.parametrize("engine", ["dataset", "lazy frame", "relation"])
def test_clusters_classes_searches_and_gaps_work_through_engines(sources, in_memory, engine):
    source = sources[engine]
    rows = scan(source, "y", FEATURES, groups="village")
    agree(Heckman(PREDICT, cov_type="cluster").fit(rows), in_memory["clusters"])
    # How columns become features was learned before.
    found = HeckmanBestSubset().fit(scan(source, "y", encoding=rows.encoding))
    agree(found, in_memory["search"])
    found = HeckmanProbit(["x0"]).fit(scan(source, "class", NUMBERS))
    assert found.classes_.tolist() == ["no", "yes"]
    agree(found, in_memory["classes"])
    rows = scan(source, "y", ["x0", "x1", "gap", "city", "wave"], missing="drop")
    found = Heckman(["x0", "city"]).fit(rows)
    estimates = found.tidy()["estimate"].to_numpy()
    np.testing.assert_allclose(estimates, in_memory["missing"].tidy()["estimate"], rtol=1e-9)
    assert found.row_counts_["left_out_regressor_missing"] > 0


class Stream(engines.Engine):
    """A table as a stream, cut into batches in some way, and shuffled in every pass if asked."""

    described = "a stream"

    def __init__(self, table, cuts=(10**6,), shuffled=False):
        self.table, self.cuts, self.schema = table, cuts, table.schema
        self.order_is_stable = not shuffled
        self.rng = np.random.default_rng(0)
        self.passes = 0

    def read(self, columns, levels):
        self.passes += 1
        table = self.table.select(list(columns)).combine_chunks()
        if not self.order_is_stable:
            table = table.take(self.rng.permutation(len(table)))
        start = 0
        for rows in itertools.cycle(self.cuts):
            if start >= len(table):
                return
            yield from table.slice(start, rows).to_batches()
            start += rows


@pytest.fixture(scope="module")
def many():
    data = make_selection(9_000, 3, 2, prediction_features=[0], random_state=5)
    return pa.table({name: data.X[:, k] for k, name in enumerate(NUMBERS)} | {"y": data.y})


def test_bits_depend_neither_on_the_engines_batches_nor_on_threads(many, monkeypatch):
    monkeypatch.setattr(arrow_rows, "part_rows", lambda columns: 4096)
    fits = []
    for cuts, threads in (((10**6,), "1"), ((1, 5000, 0, 77), "3")):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
        fits.append(Heckman(["x0"], cov_type="robust").fit(scan(Stream(many, cuts), "y")))
    pd.testing.assert_frame_equal(fits[0].tidy(), fits[1].tidy(), check_exact=True)


def test_rows_in_another_order_in_every_pass_give_the_same_estimates(many, monkeypatch):
    # Samples that start a fit are then smaller than all rows.
    monkeypatch.setattr("heckmanfa.model.probit._LEAST_PILOT", 1000)
    rows = scan(Stream(many, shuffled=True), "y")
    assert "in no stable order" in repr(rows)
    table = many.to_pandas()
    model = Heckman(["x0"], method="ml", cov_type="robust")
    agree(model.fit(rows), clone(model).fit(table[NUMBERS], table["y"]))


# The same rows in every pass. --------------------------------------------------------------------


def test_a_pass_that_ends_at_another_row_is_refused(kept):
    connection = duckdb.connect()
    connection.register("kept", pa.Table.from_pandas(kept))
    connection.execute("CREATE TABLE people AS SELECT * FROM kept")
    rows = scan(connection.table("people"), "y", FEATURES)
    connection.execute("INSERT INTO people SELECT * FROM kept LIMIT 1")
    n = len(kept)
    said = rf"a DuckDB relation gave {n + 1} rows in this pass and {n} in an earlier one.*ORDER BY"
    with pytest.raises(DataError, match=said):
        Heckman(PREDICT).fit(rows)


def test_an_interrupted_pass_leaves_the_connection_free(sources):
    rows = scan(sources["relation"], "y", NUMBERS)
    left = rows.engine.batches(["x0"])
    next(left)
    assert Heckman(["x0"]).fit(rows).n_obs_ > 0
    left.close()


def test_a_file_in_a_store_that_changes_between_passes_is_refused(sources):
    store = fsspec.filesystem("memory")
    content = next((sources["folder"] / "parts").rglob("*.parquet")).read_bytes()
    store.pipe("/changing/a.parquet", content)
    rows = scan("memory://changing/*.parquet", "y", ["x0", "x1"])
    store.pipe("/changing/a.parquet", content + b"more")
    with pytest.raises(DataError, match=r"memory://changing/a.parquet changed since"):
        Heckman(["x0"]).fit(rows)


def test_whether_an_engine_keeps_the_order_of_rows_is_said(sources):
    frame, relation = sources["lazy frame"], sources["relation"]
    connection = sources["connection"]
    for source in (sources["dataset"], frame, relation, sources["feather"]):
        assert scan(source, "y", NUMBERS).order_is_stable
    joined = frame.join(frame.select("village").unique(), on="village")
    counted = frame.group_by("village").agg(pl.col("x0").mean(), pl.col("y").mean())
    query = "SELECT p.* FROM people p JOIN (SELECT DISTINCT wave FROM people) USING (wave)"
    for source in (joined, counted, connection.sql(query), connection.table("people").limit(9)):
        rows = scan(source, "y", ["x0"])
        assert not rows.order_is_stable
        assert "in no stable order" in repr(rows)
    connection.execute("SET preserve_insertion_order = false")
    assert not scan(relation, "y", NUMBERS).order_is_stable
    connection.execute("SET preserve_insertion_order = true")


def test_a_query_that_fails_is_named(sources):
    def fails(batch):
        raise RuntimeError("no such luck")

    frame = sources["lazy frame"].with_columns(
        pl.col("x0").map_batches(fails, return_dtype=pl.Float64)
    )
    with pytest.raises(DataError, match=r"a Polars LazyFrame cannot be read: .*no such luck"):
        Heckman(["x0"]).fit(scan(frame, "y", NUMBERS))
    plain = sources["lazy frame"].with_columns(
        pl.col("x0").map_batches(lambda values: values, return_dtype=pl.Float64)
    )
    assert Heckman(["x0"]).fit(scan(plain, "y", NUMBERS)).n_obs_ > 0


def test_a_query_that_breaks_off_is_not_taken_for_one_that_ended(kept, tmp_path):
    for place in range(2):
        kept.to_parquet(tmp_path / f"{place}.parquet")
    frame = pl.scan_parquet(tmp_path)
    rows = scan(frame, features=NUMBERS)
    # Polars panics, since it keeps the metadata of the first file.
    kept.iloc[:9][NUMBERS].to_parquet(tmp_path / "0.parquet")
    with pytest.raises(DataError, match=r"a lazy frame|a Polars LazyFrame cannot be read"):
        list(rows.engine.batches(NUMBERS))


# Columns. ---------------------------------------------------------------------------------------


def test_levels_are_in_their_declared_order_or_in_none_of_the_rows(kept):
    cities = ["york", "leeds", "bath"]
    frame = pl.from_pandas(kept[["x0", "x1", "y", "city"]]).lazy()
    declared = frame.with_columns(pl.col("city").cast(pl.Enum(cities)))
    loose = frame.with_columns(pl.col("city").cast(pl.Categorical))
    connection = duckdb.connect()
    connection.register("kept", pa.Table.from_pandas(kept))
    connection.execute("CREATE TYPE place AS ENUM ('york', 'leeds', 'bath')")
    relation = connection.sql("SELECT x0, x1, y, city::place AS city FROM kept")
    for source, names in (
        (declared, ("city[leeds]", "city[bath]")),
        (relation, ("city[leeds]", "city[bath]")),
        (frame, ("city[leeds]", "city[york]")),
        (loose, ("city[leeds]", "city[york]")),
        (loose.reverse(), ("city[leeds]", "city[york]")),
        (ds.dataset(loose.collect().to_arrow()), ("city[leeds]", "city[york]")),
    ):
        rows = scan(source, "y")
        assert rows.names == ("x0", "x1", *names)
        assert rows.encoding.references == {"city": "york" if names[1] == "city[bath]" else "bath"}


def test_numbers_that_count_the_rows_are_refused_unless_they_are_named(kept):
    frame = pl.from_pandas(kept[["x0", "x1", "y"]].assign(nth=np.arange(len(kept)))).lazy()
    with pytest.raises(InputError, match="column 'nth' counts the rows"):
        scan(frame, "y")
    assert scan(frame, "y", ["x0", "nth"]).names == ("x0", "nth")


def test_rows_without_an_outcome_learn_nothing_and_cannot_be_fitted(sources):
    stream = Stream(pa.table({"x0": [1.0, 2.0], "city": ["bath", "bath"]}))
    rows = scan(stream)
    assert (rows.names, rows.encoding, stream.passes) == (("x0", "city"), None, 0)
    with pytest.raises(InputError, match=r"rows of a stream have no outcome.*outcome="):
        Heckman(["x0"]).fit(rows)
    assert scan(sources["partitions"]).n_features == 10


def test_lazy_tables_are_not_fitted_without_a_scan(sources):
    for engine in ("lazy frame", "relation", "dataset"):
        with pytest.raises(InputError, match=r"heckmanfa\.scan\("):
            Heckman(["x0"]).fit(sources[engine], [0.0])
    with pytest.raises(InputTypeError, match=r"DuckDB relation; got pandas\.DataFrame"):
        scan(pd.DataFrame({"y": [1.0]}), "y")


# Files and stores. ------------------------------------------------------------------------------


def test_folders_are_columns_as_pyarrow_reads_them(tmp_path):
    table = pa.table({"x": [1.0, 2.0], "y": [1.0, None]})
    keys = [("1", "a%20b", "1.5"), ("02", "c", "2"), ("-3", "c", "__HIVE_DEFAULT_PARTITION__")]
    for n, (number, text, mixed) in enumerate(keys):
        folder = tmp_path / f"n={number}" / f"t={text}" / f"m={mixed}"
        folder.mkdir(parents=True)
        pa.parquet.write_table(table, folder / f"{n}.parquet")
    theirs = ds.dataset(tmp_path, partitioning="hive")
    names = ["x", "n", "t", "m"]
    for found in (
        scan_parquet(tmp_path, "y", names, categorical=["t", "m"]),
        scan(f"{tmp_path}/n=*/t=*/*/*.parquet", "y", names, categorical=["t", "m"]),
        scan(tmp_path.as_uri(), "y", names, categorical=["t", "m"]),
    ):
        assert isinstance(found, ParquetRows)
        for name in names:
            assert found.schema.field(name).type == theirs.schema.field(name).type
        batches = pa.Table.from_batches(found.engine.batches(names)).to_pylist()
        mine, other = (
            sorted(tuple(str(row[name]) for name in names) for row in rows)
            for rows in (batches, theirs.to_table(names).to_pylist())
        )
        assert mine == other
    named = scan(tmp_path / "n=1" / "t=a%20b" / "m=1.5" / "0.parquet", "y")
    assert named.names == ("x",)


def test_a_files_own_column_is_read_in_place_of_its_folders_name(tmp_path):
    (tmp_path / "x=9").mkdir()
    pa.parquet.write_table(pa.table({"x": [1.0], "y": [2.0]}), tmp_path / "x=9" / "a.parquet")
    rows = scan(tmp_path, "y")
    assert next(rows.engine.batches(["x"])).to_pydict() == {"x": [1.0]}


def test_files_are_found_by_what_they_hold_and_of_one_format(sources, tmp_path):
    content = sources["feather"].read_bytes()
    (tmp_path / "plain").write_bytes(content)
    assert "plain" in scan(tmp_path / "plain", "y", NUMBERS).described
    store = fsspec.filesystem("memory")
    store.pipe("/mixed/a.feather", content)
    store.pipe("/mixed/b.parquet", b"PAR1")
    with pytest.raises(InputError, match=r"memory://mixed/a.feather and .* different formats"):
        scan("memory://mixed", "y")
    with pytest.raises(InputError, match="no file or folder memory://nowhere/x"):
        scan("memory://nowhere/x", "y")
    with pytest.raises(InputError, match=r"memory://mixed/\*.csv, and no file matches"):
        scan("memory://mixed/*.csv", "y")
    with pytest.raises(DataError, match=r"memory://mixed/b.parquet cannot be read"):
        scan("memory://mixed/b.parquet", "y")
    rows = scan("mixed/a.feather", "y", NUMBERS, filesystem=store)
    assert Heckman(["x0"]).fit(rows).n_obs_ > 0


def test_files_whose_columns_differ_are_refused_and_integers_join_fractions(tmp_path):
    tables = [{"x": [1, 2]}, {"x": [0.5, 2.0]}, {"x": ["a", "b"]}]
    for n, columns in enumerate(tables):
        feather.write_feather(pa.table(columns | {"y": [1.0, 2.0]}), tmp_path / f"{n}.arrow")
    with pytest.raises(DataError, match=r"column 'x' is string in .*2.arrow, but int64"):
        scan(tmp_path, "y")
    rows = scan([tmp_path / "0.arrow", tmp_path / "1.arrow"], "y")
    values = [value for batch in rows.engine.batches(["x"]) for value in batch["x"].to_pylist()]
    assert values == [1.0, 2.0, 0.5, 2.0]


def test_a_category_of_one_level_is_a_constant_and_the_fit_decides(kept):
    frame = kept[[*NUMBERS, "y"]].assign(same="here")
    rows = scan(pl.from_pandas(frame).lazy(), "y")
    with pytest.raises(CollinearError, match=r"'same\[here\]' is constant"):
        Heckman(["x0"]).fit(rows)
    with pytest.warns(DroppedFeaturesWarning, match="same"):
        assert Heckman(["x0"], on_collinear="drop").fit(rows).n_obs_ == len(frame)


def test_a_column_that_the_user_named_is_to_be_left_out(kept):
    source = pl.from_pandas(kept.assign(odd=[[1]] * len(kept))).lazy()
    with pytest.raises(InputError, match=r"column 'odd' is .*; leave it out of `features`"):
        scan(source, "y", ["x0", "odd"])
    with pytest.raises(InputError, match=r"column 'odd' is .*; name the features to use"):
        scan(source.select("y", "x0", "odd"), "y")


def test_an_empty_name_is_not_the_current_folder():
    local = pytest.importorskip("pyarrow.fs").LocalFileSystem()
    for nothing in ("", []):
        with pytest.raises(InputError, match="no file is named"):
            scan(nothing, "y")
    for store in (local, fsspec.filesystem("memory")):
        with pytest.raises(InputError, match="no file is named"):
            scan([], "y", filesystem=store)


@pytest.mark.parametrize("engine", ENGINES)
def test_text_is_not_an_outcome_of_amounts(sources, engine):
    rows = scan(sources[engine], "class", ["x0", "x1"])
    with pytest.raises(InputError, match=r"outcome.*'class'.*HeckmanProbit fits an outcome of two"):
        Heckman(["x0"]).fit(rows)


class Leaky(fsspec.AbstractFileSystem):
    """A store whose errors repeat what they were given."""

    protocol = "leaky"

    def info(self, path, **options):
        raise OSError(f"denied {path} to {self.storage_options} at leaky://me:hunter2@host/x?sig=1")


def test_no_message_shows_a_password(monkeypatch):
    fsspec.register_implementation("leaky", Leaky, clobber=True)
    options = {"key": "AKIA-ME", "secret": "swordfish", "client": {"token": "open sesame"}}
    with pytest.raises(DataError, match=r"leaky://host/a\.parquet cannot be read") as caught:
        scan("leaky://user:hunter2@host/a.parquet", "y", storage_options=options)
    assert caught.value.__cause__ is None
    for secret in ("hunter2", "swordfish", "AKIA-ME", "open sesame", "sig=1"):
        assert secret not in str(caught.value)


def test_a_password_with_a_slash_is_not_taken_for_a_path():
    with pytest.raises(InputError, match=r"of s3://bucket/d has a slash.*%2F") as caught:
        scan("s3://AKIAME:tuna/carp@bucket/d", "y")
    assert not any(secret in str(caught.value) for secret in ("AKIAME", "tuna", "carp"))


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"'memory://' need fsspec.*heckmanfa\[fsspec\]"):
        scan("memory://scan/parts", "y")


def test_options_for_other_sources_are_refused(sources):
    with pytest.raises(InputError, match="filesystem and storage_options are for files"):
        scan(sources["dataset"], "y", storage_options={})
    with pytest.raises(InputError, match="storage_options are for URLs"):
        scan(sources["feather"], "y", storage_options={"key": "x"})
    with pytest.raises(InputTypeError, match="filesystem must be a file system"):
        scan("a.parquet", "y", filesystem="s3")
    with pytest.raises(InputError, match="one store at a time"):
        scan(["memory://scan/parts", str(sources["feather"])], "y")


def test_a_reference_is_a_dictionary(sources):
    with pytest.raises(InputTypeError, match=r"reference must be a dictionary of a level for each"):
        scan(sources["lazy frame"], "y", FEATURES, reference="bath")


def test_files_call_a_column_by_one_name(kept, tmp_path):
    one, two = (pa.table({"y": kept["y"], name: kept["x0"]}) for name in ("x", " x"))
    feather.write_feather(one, tmp_path / "a.feather")
    feather.write_feather(two, tmp_path / "b.feather")
    with pytest.raises(DataError, match=r"column 'x' is called ' x' in .*b\.feather, and 'x' in"):
        scan(tmp_path, "y")


def test_a_stream_that_ends_before_a_part_that_it_had_is_refused(kept):
    rows = scan(Stream(pa.table({"y": kept["y"], "x": kept["x0"]})), "y")
    heads = Reading((0,), 64, {0: 5, 1: 5})
    with pytest.raises(DataError, match="gave fewer rows in this pass than in an earlier one"):
        [*rows.run(lambda part, chunks: [*chunks], heads)]
    (first,) = rows.run(lambda part, chunks: [*chunks], Reading((0,), 2, {0: 5}))
    assert [chunk.start for chunk in first] == [0, 2, 4]
    np.testing.assert_array_equal(
        np.concatenate([chunk.features[:, 0] for chunk in first]), kept["x0"][:5]
    )


@pytest.mark.parametrize("part_rows", [10**6, 100])
def test_an_error_of_a_task_comes_out_as_it_is(kept, part_rows, monkeypatch):
    monkeypatch.setattr(arrow_rows.ArrowRows, "part_rows", part_rows)
    rows = scan(Stream(pa.table({"y": kept["y"], "x": kept["x0"]})), "y")

    def fails(part, chunks):
        raise ZeroDivisionError(f"in part {part}")

    with pytest.raises(ZeroDivisionError, match="in part 0"):
        [*rows.run(fails, Reading((0,), 64))]

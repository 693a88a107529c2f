"""Rows in Parquet files: the digits of a fit in memory, in little memory, and errors that help."""

import os
import pickle
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace
from datetime import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    NaiveOLS,
    compress,
    predict_parquet,
    scan_parquet,
)
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.paths import find_files
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.scan import parquet_rows
from heckmanfa.data.scan.engines import whole_blocks
from heckmanfa.data.scan.parquet_files import scan_files
from heckmanfa.data.scan.parquet_rows import (
    Batches,
    FilePart,
    KeptParts,
    file_parts,
    read_batches,
)
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    DataError,
    InputError,
    MissingFeaturesWarning,
    MissingValueError,
    NoExclusionWarning,
    UnknownFeatureError,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = [f"x{place}" for place in range(6)]
PREDICT = NAMES[:3]
MROZ = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
CUTS = [(0, 3), (3, 5), (5, 12), (12, 13), (13, 19)]
# Of a standard error, or of a standard error's own size.
CLOSE = 1e-8


def write(folder, frame, sizes, row_group_size, name="part"):
    """Cut a frame into files of so many rows each."""
    folder.mkdir(exist_ok=True)
    start = 0
    for place, size in enumerate(sizes):
        part = frame.iloc[start : start + size]
        part.to_parquet(
            folder / f"{name}-{place:02d}.parquet", index=False, row_group_size=row_group_size
        )
        start += size
    assert start == len(frame)
    return folder


def agree(found, expected):
    mine, theirs = found.tidy(), expected.tidy()
    assert mine["term"].tolist() == theirs["term"].tolist()
    distance = (mine["estimate"] - theirs["estimate"]) / theirs["std_error"]
    assert np.abs(distance).max() < CLOSE
    np.testing.assert_allclose(mine["std_error"], theirs["std_error"], rtol=CLOSE)
    assert found.row_counts_ | {"left_out_regressor_missing": 0} == expected.row_counts_ | {
        "left_out_regressor_missing": 0
    }
    assert (found.n_obs_, found.n_selected_) == (expected.n_obs_, expected.n_selected_)


@pytest.fixture(scope="module")
def frame():
    data = make_selection(16_000, 6, 3, prediction_features=[0, 1, 2], random_state=1)
    rng = np.random.default_rng(2)
    table = pd.DataFrame(data.X, columns=NAMES)
    table["y"] = data.y
    table["took_part"] = ~np.isnan(data.y)
    table["weight"] = rng.integers(0, 4, len(table))
    table["village"] = rng.integers(0, 40, len(table)) * 10**15 + 3
    # A row group of nobody who is selected, which the last of the first file is.
    table.loc[8_192:8_999, ["y", "took_part"]] = np.nan, False
    table["took_part"] = table["took_part"].astype(bool)
    # One who is selected and whose outcome is not known, and one who is not and whose is.
    table.loc[table.index[table["took_part"]][5], "y"] = np.nan
    table.loc[table.index[~table["took_part"]][5], "y"] = 99.0
    return table


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    """Row groups that do not divide the blocks (of 4,096 rows), and a file without rows."""
    # A pattern searches the folder above, which must not be that of every test.
    folder = tmp_path_factory.mktemp("simulated") / "rows"
    folder.mkdir()
    write(folder, frame.iloc[:9_000], [9_000], 8_192, "a")
    write(folder, frame.iloc[9_000:], [0, 6_000, 1_000], 4_999, "b")
    return folder


# The same digits. ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["two-step", "ml"])
@pytest.mark.parametrize(
    ("options", "weight", "groups"),
    [
        ({}, None, None),
        ({}, "weight", None),
        ({"cov_type": "robust"}, None, None),
        ({"cov_type": "robust", "weight_kind": "sampling"}, "weight", None),
        ({"cov_type": "cluster"}, None, "village"),
        ({"cov_type": "cluster", "weight_kind": "sampling"}, "weight", "village"),
    ],
)
def test_files_give_the_digits_of_memory(files, frame, method, options, weight, groups):
    model = Heckman(PREDICT, method=method, **options)
    rows = scan_parquet(
        files, "y", NAMES, selected="took_part", sample_weight=weight, groups=groups
    )
    found = model.fit(rows)
    expected = Heckman(PREDICT, method=method, **options).fit(
        frame[NAMES],
        frame["y"],
        selected=frame["took_part"],
        sample_weight=None if weight is None else frame[weight],
        groups=None if groups is None else frame[groups],
    )
    agree(found, expected)
    assert found.row_counts_["left_out_outcome_missing"] == 1


def test_who_has_an_outcome_is_selected_unless_a_column_says_so(files, frame):
    rows = scan_parquet(files, "y", NAMES)
    assert not rows.has_selected
    agree(Heckman(PREDICT).fit(rows), Heckman(PREDICT).fit(frame[NAMES], frame["y"]))


@pytest.mark.parametrize(
    ("row_group_size", "method"),
    [
        *((10, "two-step"), (753, "two-step"), (753, "ml")),
        pytest.param(10, "ml", marks=pytest.mark.study),
    ],
)
def test_mroz_in_files_gives_the_digits_of_memory(tmp_path, mroz, method, row_group_size):
    folder = write(tmp_path / "mroz", mroz, [1, 427, 0, 325], row_group_size)
    rows = scan_parquet(folder, "lwage", MROZ)
    model = Heckman(["educ", "exper", "expersq"], method=method)
    agree(model.fit(rows), Heckman(**model.get_params()).fit(mroz[MROZ], mroz["lwage"]))


@pytest.mark.parametrize(
    "search",
    [
        HeckmanBestSubset(),
        HeckmanBestSubset(method="ml"),
        HeckmanAverage(cov_type="robust"),
        HeckmanFA("correlation", rho_range=(-0.99, 0.99)),
        HeckmanFA("rank", epochs=60, rho_range=(-0.99, 0.99), random_state=3),
        HeckmanFA("sample", criterion="bic", epochs=60, n_draws=50, random_state=3),
    ],
    ids=["best subset", "best subset, ml", "average", "correlation", "rank", "sample"],
)
def test_searches_find_the_same_in_files_and_in_memory(files, frame, mroz, tmp_path, search):
    few = mroz[[*MROZ, "lwage"]]
    folder = write(tmp_path / "mroz", few, [400, 353], 101)
    for rows, X, y, selected in (
        (scan_parquet(folder, "lwage"), mroz[MROZ], mroz["lwage"], None),
        (
            scan_parquet(files, "y", NAMES, selected="took_part"),
            frame[NAMES],
            frame["y"],
            frame["took_part"],
        ),
    ):
        found = type(search)(**search.get_params()).fit(rows)
        expected = type(search)(**search.get_params()).fit(X, y, selected=selected)
        assert found.prediction_features_ == expected.prediction_features_
        agree(found, expected)


def test_ols_and_compression_take_rows_of_files(files, frame):
    rows = scan_parquet(files, "y", NAMES)
    np.testing.assert_allclose(
        NaiveOLS().fit(rows).coef_, NaiveOLS().fit(frame[NAMES], frame["y"]).coef_, rtol=1e-10
    )
    masks = np.eye(6, dtype=bool)
    found, expected = compress(rows), compress(frame[NAMES], frame["y"])
    np.testing.assert_allclose(
        found.moments.solve(masks).coef, expected.moments.solve(masks).coef, rtol=1e-8, atol=1e-12
    )


def test_words_may_say_who_is_selected(tmp_path, frame):
    table = frame.assign(took_part=np.where(frame["took_part"], "yes", "no"))
    folder = write(tmp_path / "words", table, [len(frame)], 9_000)
    expected = Heckman(PREDICT).fit(frame[NAMES], frame["y"], selected=frame["took_part"])
    agree(Heckman(PREDICT).fit(scan_parquet(folder, "y", NAMES, selected="took_part")), expected)


def test_blocks_do_not_move_where_a_reader_cuts_batches_short():
    batches = [pa.record_batch({"a": range(low, high)}) for low, high in CUTS]
    whole = [block.column("a").to_pylist() for block in whole_blocks(iter(batches), 4)]
    assert [len(block) for block in whole] == [4, 8, 4, 3]
    assert [value for part in whole for value in part] == list(range(19))


def test_one_large_row_group_gives_the_digits_of_memory(tmp_path, frame):
    folder = write(tmp_path / "one", frame, [len(frame)], len(frame))
    rows = scan_parquet(folder / "part-00.parquet", "y", NAMES)
    agree(Heckman(PREDICT).fit(rows), Heckman(PREDICT).fit(frame[NAMES], frame["y"]))


def test_the_bits_are_the_same_on_one_thread_and_on_two(files, tmp_path, frame, monkeypatch):
    whole = write(tmp_path / "one", frame, [len(frame)], len(frame))
    for folder, method in ((files, "ml"), (whole, "two-step")):
        models = []
        for threads in ("1", "2"):
            monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
            rows = scan_parquet(folder, "y", NAMES, sample_weight="weight", groups="village")
            models.append(Heckman(PREDICT, method=method, cov_type="cluster").fit(rows))
        one, two = (model.tidy() for model in models)
        pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_a_model_of_files_can_be_pickled_and_predicts(files, frame):
    model = pickle.loads(pickle.dumps(Heckman(PREDICT).fit(scan_parquet(files, "y", NAMES))))
    expected = Heckman(PREDICT).fit(frame[NAMES], frame["y"])
    np.testing.assert_allclose(
        model.predict(frame[NAMES], kind="selected"),
        expected.predict(frame[NAMES], kind="selected"),
        rtol=1e-9,
    )
    assert "Heckman" in str(model.summary())


# What is read. ------------------------------------------------------------------------------------


def test_only_the_columns_of_the_fit_are_read(files, monkeypatch):
    read = []
    original = pq.ParquetFile.iter_batches

    def spy(self, *args, **options):
        read.append(tuple(options["columns"]))
        return original(self, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    rows = scan_parquet(files, "y", NAMES)
    assert read == []
    Heckman(["x0"], selection_features=["x0", "x4"]).fit(rows)
    assert {name for names in read for name in names} == {"x0", "x4", "y"}


class _Counting(RowSource):
    """Rows that note what is asked of them."""

    def __init__(self, rows):
        self.rows, self.readings = rows, []
        for name in ("names", "n_features", "has_selected", "has_weight", "has_groups"):
            setattr(self, name, getattr(rows, name))

    @property
    def described(self):
        return self.rows.described

    def run(self, task, reading):
        self.readings.append(reading)
        return self.rows.run(task, reading)

    def re_encoded(self, encoding, unknown="missing"):
        return self


def test_heads_of_parts_cost_only_themselves(tmp_path, frame):
    large = pd.concat([frame] * 8, ignore_index=True)
    folder = write(tmp_path / "large", large, [len(large)], 60_000)
    home = _Counting(scan_parquet(folder, "y", NAMES))
    Heckman(PREDICT).fit(home)
    heads = [reading.heads for reading in home.readings if reading.heads is not None]
    assert heads
    assert min(sum(head.values()) for head in heads) < len(large) / 8
    seen = []

    def note(part, chunks):
        starts = [(chunk.start, len(chunk.outcome)) for chunk in chunks]
        seen.append(part)
        return starts

    reading = replace(home.readings[0], heads={1: 5_000})
    assert list(home.rows.run(note, reading)) == [[(0, 4_096), (4_096, 904)]]
    assert seen == [1]


def test_only_small_files_are_read_at_once(files, monkeypatch):
    rows = scan_parquet(files, "y", NAMES)
    sizes = sorted(path.stat().st_size for path in rows.paths)
    read = []
    content = parquet_rows._content

    def noted(stored):
        read.append(stored.size)
        return content(stored)

    monkeypatch.setattr(parquet_rows, "_content", noted)
    wanted = Heckman(PREDICT).fit(scan_parquet(files, "y", NAMES)).coef_
    assert {*read} >= {*sizes[1:3]}
    # At the size of a file it is small; a byte less, and it is not.
    for limit, small in ((sizes[1], {sizes[1]}), (sizes[1] - 1, set()), (sizes[-1], {*sizes[1:]})):
        read.clear()
        monkeypatch.setattr(parquet_rows, "_SMALL_FILE", limit)
        found = Heckman(PREDICT).fit(scan_parquet(files, "y", NAMES))
        np.testing.assert_array_equal(found.coef_, wanted)
        assert {*read} <= small
        assert bool(read) == bool(small)


def test_features_are_all_columns_without_another_role(files):
    rows = scan_parquet(files, "y", selected="took_part", sample_weight="weight")
    assert rows.names == (*NAMES, "village")
    assert rows.n_rows == len(rows) == 16_000
    assert [path.name for path in rows.paths] == [
        "a-00.parquet",
        "b-00.parquet",
        "b-01.parquet",
        "b-02.parquet",
    ]
    assert rows.schema.field("x0").type == pa.float64()
    assert rows.encoding is None
    assert "16,000 rows of 4 Parquet files" in repr(rows)


def test_files_folders_and_patterns_name_the_same_rows(files):
    ways = [
        files,
        str(files / "*.parquet"),
        str(files.parent / "**" / files.name / "*.parquet"),
        [files / "b-02.parquet", str(files / "a*.parquet"), files / "b-01.parquet", files / "b*"],
    ]
    paths = [scan_parquet(way, "y", NAMES).paths for way in ways]
    assert paths[0] == paths[1] == paths[2] == paths[3]


def test_numbers_of_any_type_are_read_as_in_memory(tmp_path, frame):
    folder = tmp_path / "types"
    folder.mkdir()
    kinds = [
        {"x0": "float64", "n": "int32", "t": bool},
        {"x0": "float32", "n": "int64", "t": "int8"},
        {"x0": "float64", "n": "float64", "t": bool},
    ]
    table = frame[[*NAMES, "y"]].copy()
    table["x0"] = table["x0"].astype("float32").astype("float64")
    table["n"] = (10 * table["x3"]).round()
    table["t"] = table["x4"] > 0
    table["d"] = (100 * table["x5"]).round() / 100
    wanted = ["x0", "x1", "n", "t", "d"]
    for place, types in enumerate(kinds):
        part = table.iloc[10_000 * place : 10_000 * (place + 1)].astype(types)
        decimals = part["d"].map(lambda one: Decimal(f"{one:.2f}"))
        part.assign(d=decimals).to_parquet(folder / f"{place}.parquet", row_group_size=3_333)
    rows = scan_parquet(folder, "y", wanted)
    expected = Heckman(["x0", "n"]).fit(table[wanted].astype(float), table["y"])
    agree(Heckman(["x0", "n"]).fit(rows), expected)


def test_row_labels_of_pandas_are_no_feature(tmp_path, frame):
    labelled = frame[[*NAMES, "y"]].set_index(np.arange(len(frame)) ** 2)
    labelled.to_parquet(tmp_path / "labelled.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "labelled.parquet").names
    assert scan_parquet(tmp_path / "labelled.parquet", "y").names == tuple(NAMES)


# Categories. --------------------------------------------------------------------------------------


def with_words(frame):
    """A category whose level "rare" is in the last file only, and numbers that are text."""
    table = frame[[*NAMES, "y"]].copy()
    words = np.array(["north", "south", "east"])[np.digitize(table["x5"], [-0.8, 0.9])]
    table["region"] = np.where(np.arange(len(table)) >= 15_000, "rare", words)
    table["size"] = pd.Categorical(
        np.array(["small", "middle", "large"])[np.digitize(table["x4"], [-1, 0.5])],
        ["small", "middle", "large"],
    )
    table["spelt"] = (10 * table["x3"]).round().map("{:.0f}".format)
    return table


WORDS = ["x0", "x1", "x2", "region", "size", "spelt"]


def test_a_category_seen_in_one_file_only_has_its_dummy(tmp_path, frame):
    table = with_words(frame)
    folder = write(tmp_path / "words", table, [9_000, 6_000, 1_000], 3_001)
    encoding, X = Encoding.learn(table, WORDS, numeric=["spelt"])
    rows = scan_parquet(folder, "y", WORDS, numeric=["spelt"])
    assert "region[rare]" in rows.names
    assert list(rows.names) == encoding.columns
    assert rows.encoding.levels == encoding.levels
    predict = ["x0", "region[rare]", "size[large]"]
    expected = Heckman(predict).fit(X, table["y"])
    found = Heckman(predict).fit(rows)
    agree(found, expected)
    again = rows.encoding.transform(table.iloc[-50:])
    np.testing.assert_allclose(found.predict(again), expected.predict(X.iloc[-50:]), rtol=1e-9)


@pytest.mark.parametrize("fill", ["drop", "mean"])
def test_a_given_encoding_is_used(tmp_path, frame, fill):
    table = with_words(frame)
    table.loc[::13, "region"] = None
    table.loc[::11, "x1"] = np.nan
    folder = write(tmp_path / "words", table, [9_000, 6_000, 1_000], 3_001)
    encoding, X = Encoding.learn(table, WORDS, missing=fill)
    rows = scan_parquet(folder, "y", missing="drop", encoding=encoding)
    predict = ["x0", "x1", "region[rare]"]
    complete = X.notna().all(axis=1)
    expected = Heckman(predict).fit(X[complete], table["y"][complete])
    found = Heckman(predict).fit(rows)
    assert found.row_counts_.pop("left_out_regressor_missing") == (~complete).sum()
    assert found.row_counts_.pop("total") == len(table)
    expected.row_counts_.pop("total")
    agree(found, expected)


def test_levels_that_an_encoding_does_not_know_are_refused_with_their_file(tmp_path, frame):
    table = with_words(frame)
    folder = write(tmp_path / "words", table, [9_000, 6_000, 1_000], 3_001)
    encoding, _ = Encoding.learn(table.iloc[:9_000], WORDS)
    rows = scan_parquet(folder, "y", encoding=encoding)
    with pytest.raises(InputError, match=r"part-02\.parquet, from row 1 on: .*'rare'"):
        Heckman(["x0"]).fit(rows)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([f"{place}st" for place in range(60)] * 10, "60 different values"),
        ([None] * 599 + [""], "has no values"),
        (pd.to_datetime(["2020-01-01", "2021-06-01"] * 300), "holds dates"),
        (["2020-01-01", "2021-06-01"] * 300, "holds dates"),
        (pd.to_timedelta([1, 5] * 300, unit="D"), "holds spans of time, .* such as days"),
        ([time(8), time(9)] * 300, "holds times of day, .* such as hours"),
        ([[1, 2]] * 600, "is list<"),
        ([f"{place}.5" for place in range(60)] * 10, "it is text that spells numbers.*`numeric`"),
        (np.random.default_rng(0).permutation(600), "counts the rows"),
    ],
    ids=[
        "many levels",
        "empty",
        "dates",
        "dates as text",
        "spans",
        "times",
        "lists",
        "numbers as text",
        "count",
    ],
)
def test_columns_that_are_no_features_are_refused_by_name(tmp_path, frame, column, said):
    table = frame.iloc[:600][["x0", "x1", "y"]].assign(odd=column)
    table.to_parquet(tmp_path / "odd.parquet", row_group_size=250)
    with pytest.raises(InputError, match=rf"column 'odd'.*{said}"):
        scan_parquet(tmp_path, "y")
    assert scan_parquet(tmp_path, "y", ["x0", "x1"]).names == ("x0", "x1")


def test_numbers_that_count_the_rows_are_found_without_statistics(tmp_path, frame):
    table = frame.iloc[:600][["x0", "x1", "y"]].assign(odd=np.arange(600))
    table.to_parquet(tmp_path / "odd.parquet", row_group_size=250, write_statistics=False)
    with pytest.raises(InputError, match="column 'odd' counts the rows"):
        scan_parquet(tmp_path, "y")


# Missing values. ----------------------------------------------------------------------------------


def test_rows_that_miss_a_feature_are_refused_or_counted(tmp_path, frame):
    table = frame[[*NAMES, "y"]].copy()
    table.loc[::10, "x0"] = np.nan
    table.loc[5::100, "x4"] = None
    folder = write(tmp_path / "holes", table, [9_000, 7_000], 4_999)
    with pytest.raises(MissingValueError, match=r"'x0' \(1600 NaN, 0 inf\), 'x4' \(160 NaN"):
        Heckman(PREDICT).fit(scan_parquet(folder, "y"))
    found = Heckman(PREDICT).fit(scan_parquet(folder, "y", missing="drop"))
    complete = table.dropna(subset=NAMES)
    expected = Heckman(PREDICT).fit(complete[NAMES], complete["y"])
    assert found.row_counts_.pop("left_out_regressor_missing") == 1_760
    assert found.row_counts_.pop("total") == 16_000
    expected.row_counts_.pop("total")
    agree(found, expected)
    with pytest.raises(InputError, match="missing must be 'error' or 'drop'"):
        scan_parquet(folder, "y", missing="mean")


def test_flags_groups_and_weights_with_holes_are_refused(tmp_path, frame):
    table = frame.iloc[:2_000].copy()
    table["took_part"] = table["took_part"].astype("boolean").mask(table.index == 7)
    table["village"] = table["village"].astype("Int64").mask(table.index < 3)
    table["weight"] = table["weight"].astype("Int64").mask(table.index < 2)
    table.to_parquet(tmp_path / "holes.parquet", row_group_size=999)
    with pytest.raises(InputError, match=r"selected must be boolean .* missing in 1 row$"):
        Heckman(PREDICT).fit(scan_parquet(tmp_path, "y", NAMES, selected="took_part"))
    with pytest.raises(InputError, match="groups is missing in 3 rows"):
        Heckman(PREDICT, cov_type="cluster").fit(
            scan_parquet(tmp_path, "y", NAMES, groups="village")
        )
    with pytest.raises(InputError, match="sample_weight holds 2 negative, missing"):
        Heckman(PREDICT).fit(scan_parquet(tmp_path, "y", NAMES, sample_weight="weight"))


def test_a_hole_in_a_group_costs_no_digits_of_the_others(tmp_path, frame):
    """As floats, the labels 2**60 and 2**60 + 1 would be the same."""
    table = frame.iloc[:3_000].copy()
    table["village"] = pd.array(2**60 + np.arange(3_000) % 50, dtype="Int64")
    # Only rows that take no part may have none.
    table.loc[table.index % 500 == 4, "weight"] = 0
    table.loc[table.index % 500 == 4, "village"] = pd.NA
    table.to_parquet(tmp_path / "groups.parquet", row_group_size=700)
    options = {"cov_type": "cluster", "weight_kind": "sampling"}
    rows = scan_parquet(tmp_path, "y", NAMES, sample_weight="weight", groups="village")
    kept = table[table["weight"] > 0]
    expected = Heckman(PREDICT, **options).fit(
        kept[NAMES],
        kept["y"],
        sample_weight=kept["weight"],
        groups=kept["village"].astype("int64"),
    )
    found = Heckman(PREDICT, **options).fit(rows)
    np.testing.assert_allclose(found.tidy()["std_error"], expected.tidy()["std_error"], rtol=1e-8)


# Errors. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "kind", "said"),
    [
        ({"outcome": "yy"}, UnknownFeatureError, r"a-00\.parquet .*'yy'.*Did you mean"),
        ({"features": ["x0", "xx1"]}, UnknownFeatureError, r"a-00\.parquet .*'xx1'.*Did you mean"),
        ({"groups": "villages"}, UnknownFeatureError, "'villages'.*'village'"),
        ({"features": ["x0"], "numeric": ["x3"]}, UnknownFeatureError, "numeric names 'x3'"),
        ({"features": ["x0", "x0"]}, InputError, "'x0' is named twice"),
        ({"features": ["x0", "y"]}, InputError, "'y' is the outcome"),
        ({"features": "x0"}, InputError, r"features must .* \['x0'\]"),
        ({"categorical": "x0"}, InputError, r"categorical must .* \['x0'\]"),
        ({"numeric": "x0"}, InputError, r"numeric must .* \['x0'\]"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused_by_name(files, wanted, kind, said):
    with pytest.raises(kind, match=said):
        scan_parquet(files, **{"outcome": "y", "features": NAMES} | wanted)


@pytest.mark.parametrize(
    ("role", "column", "said"),
    [
        # An outcome of words may have two classes, which a linear model cannot use.
        ("outcome", "word", "^outcome .*'word', which must hold numbers; .*string"),
        ("sample_weight", "word", "^sample_weight .*'word', which must hold numbers; .*string"),
        ("outcome", "lists", "'lists', which must hold numbers or two"),
        # Who is selected may be said in words, but not in any.
        ("selected", "word", "'word', which must hold true and false, .*'a'"),
        ("selected", "code", "500 rows .*'2'"),
        ("groups", "lists", "groups .*'lists', which must hold labels"),
    ],
)
def test_roles_of_the_wrong_type_are_refused(tmp_path, frame, role, column, said):
    table = frame.iloc[:500].assign(word="a", lists=[[1.0]] * 500, code=2)
    table.to_parquet(tmp_path / "roles.parquet")
    with pytest.raises(InputError, match=said):
        Heckman().fit(scan_parquet(tmp_path, **{"outcome": "y", role: column}, features=["x0"]))


def test_nothing_to_read_is_an_error(tmp_path, frame):
    with pytest.raises(InputError, match=r"there is no file .*\*\.parquet, and no file matches"):
        scan_parquet(tmp_path / "*.parquet", "y")
    with pytest.raises(InputError, match=r"holds no file that ends in .parquet"):
        scan_parquet(tmp_path, "y")
    with pytest.raises(InputError, match="no file is named"):
        scan_parquet([], "y")
    with pytest.raises(InputError, match="there is no folder"):
        scan_parquet(tmp_path / "nowhere" / "rows.parquet", "y")
    frame.iloc[:0].to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"no file .*row\.parquet.*Did you mean 'rows\.parquet'"):
        scan_parquet(tmp_path / "row.parquet", "y")
    (tmp_path / "row.json").touch()
    with pytest.raises(InputError, match=r"no file .*row\.parq$"):
        scan_parquet(tmp_path / "row.parq", "y")
    with pytest.raises(InputError, match=r"rows\.parquet has names of columns but no rows"):
        scan_parquet(tmp_path, "y")


@pytest.fixture
def two(tmp_path, frame):
    return write(tmp_path / "two", frame[[*NAMES, "y"]].iloc[:8_000], [4_000, 4_000], 1_000)


@pytest.mark.parametrize("kept", [0, 3, 400, 0.5, -10, b"x0,y\n1,2\n"])
def test_a_file_that_is_cut_off_or_something_else_is_an_error_at_the_scan(two, kept):
    path = two / "part-01.parquet"
    whole = path.read_bytes()
    if isinstance(kept, bytes):
        path.write_bytes(100 * kept)
    else:
        path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    with pytest.raises(DataError, match=r"part-01\.parquet .*(damaged|cut off)"):
        scan_parquet(two, "y")


def test_damage_in_the_middle_is_an_error_of_the_pass_that_meets_it(two):
    path = two / "part-01.parquet"
    whole = bytearray(path.read_bytes())
    first = pq.read_metadata(path).row_group(2).column(0)
    start = first.dictionary_page_offset or first.data_page_offset
    whole[start : start + 2_000] = bytes(2_000)
    path.write_bytes(whole)
    rows = scan_parquet(two, "y")
    with pytest.raises(DataError, match=r"part-01\.parquet cannot be read as Parquet"):
        Heckman(PREDICT).fit(rows)


def test_a_file_cut_off_while_it_is_read_is_an_error(two, monkeypatch):
    """It is as long as before when it is looked at, and shorter when it is read."""
    monkeypatch.setattr(parquet_rows, "_SMALL_FILE", 0)
    rows = scan_parquet(two, "y")
    path = two / "part-01.parquet"
    original = pq.ParquetFile.__init__

    def cut(self, source, *args, **options):
        original(self, source, *args, **options)
        if source == path:
            os.truncate(path, path.stat().st_size // 2)

    monkeypatch.setattr(pq.ParquetFile, "__init__", cut)
    with pytest.raises(DataError, match=r"part-01\.parquet (cannot be read|changed)"):
        Heckman(PREDICT).fit(rows)


def test_schemas_that_differ_are_refused_with_file_column_and_types(two, frame):
    other = frame[[*NAMES, "y"]].iloc[:100]
    path = two / "part-02.parquet"
    other.drop(columns="x3").to_parquet(path)
    with pytest.raises(DataError, match=r"part-02\.parquet has no column 'x3', which .*part-00"):
        scan_parquet(two, "y")
    assert scan_parquet(two, "y", ["x0", "x1"]).n_rows == 8_100
    other.assign(more=1.0).to_parquet(path)
    with pytest.raises(DataError, match=r"part-00\.parquet has no column 'more', which .*part-02"):
        scan_parquet(two, "y")
    other.assign(x3="word").to_parquet(path)
    with pytest.raises(
        DataError, match=r"'x3' is (large_)?string in .*part-02\.parquet, but double in .*part-00"
    ):
        scan_parquet(two, "y")


def test_a_column_that_is_empty_in_one_file_goes_with_any_type(tmp_path, frame):
    table = with_words(frame)[["x0", "x1", "region", "y"]]
    first = table.iloc[:1_000].assign(region=None)
    first.to_parquet(tmp_path / "a.parquet")
    assert pa.types.is_null(pq.read_schema(tmp_path / "a.parquet").field("region").type)
    table.iloc[1_000:].to_parquet(tmp_path / "b.parquet")
    rows = scan_parquet(tmp_path, "y", missing="drop")
    assert rows.encoding.levels == Encoding.learn(table.iloc[1_000:], ["region"])[0].levels
    found = Heckman(["x0"], method="ml").fit(rows)
    assert found.row_counts_["left_out_regressor_missing"] == 1_000
    table.iloc[:10].assign(region=1.5).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"'region' is double in .*c\.parquet, but .*b\.parquet"):
        scan_parquet(tmp_path, "y")


def test_rows_of_files_are_fitted_alone(files, frame):
    rows = scan_parquet(files, "y", NAMES)
    with pytest.raises(InputError, match="already define y"):
        Heckman(PREDICT).fit(rows, frame["y"])
    with pytest.warns(NoExclusionWarning):
        Heckman(NAMES).fit(rows)


# Predictions. -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(frame):
    return Heckman(PREDICT).fit(frame[NAMES], frame["y"], selected=frame["took_part"])


@pytest.mark.parametrize(
    ("kind", "interval"),
    [
        ("marginal", None),
        ("selected", "prediction"),
        ("unselected", "confidence"),
        ("selection", None),
    ],
)
def test_predictions_of_files_are_those_of_memory(tmp_path, files, frame, model, kind, interval):
    out = tmp_path / "predicted.parquet"
    assert predict_parquet(model, files, out, kind=kind, return_interval=interval) == 16_000
    found = pd.read_parquet(out)
    X = frame[NAMES]
    if kind == "selection":
        expected = [model.predict_selection(X)]
    elif interval is None:
        expected = [model.predict(X, kind=kind)]
    else:
        values, ends = model.predict(X, kind=kind, return_interval=interval)
        expected = [values, *ends.T]
    assert list(found.columns) == [f"predicted_{kind}", "low", "high"][: len(expected)]
    np.testing.assert_allclose(found.to_numpy(), np.column_stack(expected), rtol=1e-12)


def test_columns_stay_beside_predictions_and_rows_with_holes_have_none(tmp_path, frame, model):
    table = frame.iloc[:5_000].assign(word="a", when=pd.Timestamp("2020-01-01").as_unit("ms"))
    table["few"] = pd.Categorical(np.where(table["x0"] > 0, "up", "down"))
    table.loc[::9, "x5"] = np.nan
    folder = write(tmp_path / "holes", table, [2_000, 0, 3_000], 700)
    part = pd.read_parquet(folder / "part-02.parquet")
    part.astype({"weight": "int32"}).to_parquet(folder / "part-02.parquet")
    out = tmp_path / "predicted.parquet"
    with pytest.warns(MissingFeaturesWarning, match=r"556 of 5,000 rows lack a feature.*'x5'"):
        assert predict_parquet(model, folder, out, kind="selected", keep_columns=True) == 5_000
    found = pd.read_parquet(out)
    pd.testing.assert_frame_equal(found[list(table.columns)], table, check_categorical=False)
    predicted = found["predicted_selected"]
    assert predicted.isna().tolist() == table["x5"].isna().tolist()
    complete = table["x5"].notna()
    np.testing.assert_allclose(
        predicted[complete], model.predict(table.loc[complete, NAMES], "selected"), rtol=1e-12
    )
    footer = pq.read_metadata(out)
    empty = [
        footer.row_group(group).column(footer.num_columns - 1).statistics.null_count
        for group in range(footer.num_row_groups)
    ]
    assert sum(empty) == (~complete).sum()


def test_predictions_encode_categories_as_the_fit_did(tmp_path, frame):
    table = with_words(frame)
    folder = write(tmp_path / "words", table, [9_000, 6_000, 1_000], 3_001)
    rows = scan_parquet(folder, "y", WORDS, numeric=["spelt"])
    model = Heckman(["x0", "region[rare]", "size[large]"]).fit(rows)
    out = tmp_path / "predicted.parquet"
    predict_parquet(model, folder, out)
    assert list(model.feature_names_in_) == list(rows.encoding.sources)
    expected = model.predict(Encoding.learn(table, WORDS, numeric=["spelt"])[0].transform(table))
    np.testing.assert_allclose(pd.read_parquet(out)["predicted_marginal"], expected, rtol=1e-12)


def test_models_from_formulas_predict_for_files(tmp_path, files, frame):
    model = Heckman.from_formula(
        "y ~ x0 + x1 + x2 + np.exp(x1 / 4)",
        selection="took_part ~ x0 + x1 + x2 + x3 + x4 + x5",
        data=frame,
    )
    out = tmp_path / "predicted.parquet"
    predict_parquet(model, files, out, kind="selected")
    np.testing.assert_allclose(
        pd.read_parquet(out)["predicted_selected"],
        model.predict(frame, kind="selected"),
        rtol=1e-12,
    )


def test_predictions_are_written_whole_or_not_at_all(tmp_path, two, frame, model):
    out = tmp_path / "predicted.parquet"
    whole = (two / "part-01.parquet").read_bytes()
    start = pq.read_metadata(two / "part-01.parquet").row_group(3).column(0).data_page_offset
    (two / "part-01.parquet").write_bytes(whole[:start] + bytes(1_000) + whole[start + 1_000 :])
    with pytest.raises(DataError, match=r"part-01\.parquet cannot be read"):
        predict_parquet(model, two, out)
    assert [entry.name for entry in tmp_path.iterdir()] == ["two"]
    (two / "part-01.parquet").write_bytes(whole)
    predict_parquet(model, two, out)
    with pytest.raises(InputError, match="exists"):
        predict_parquet(model, two, out)
    predict_parquet(model, two, out, kind="selection", force=True)
    assert pd.read_parquet(out).columns.tolist() == ["predicted_selection"]


def test_predictions_that_cannot_be_made_are_refused(tmp_path, two, frame, model):
    out = tmp_path / "predicted.parquet"
    for said, options in (
        ("kind must be one of .*Did you mean 'selected'", {"kind": "selectd"}),
        ("return_interval must be prediction or confidence", {"return_interval": "both"}),
        ("about outcomes", {"kind": "selection", "return_interval": "prediction"}),
    ):
        with pytest.raises(InputError, match=said):
            predict_parquet(model, two, out, **options)
    with pytest.raises(InputError, match=r"must end in \.parquet"):
        predict_parquet(model, two, tmp_path / "predicted.csv")
    with pytest.raises(InputError, match="which is in the folder that source reads"):
        predict_parquet(model, two, two / "part-00.parquet", force=True)
    nameless = Heckman([0, 1]).fit(frame[NAMES].to_numpy(), frame["y"])
    with pytest.raises(InputError, match="features without names"):
        predict_parquet(nameless, two, out)
    predict_parquet(model, two, out)
    beside = pd.read_parquet(two / "part-00.parquet").assign(predicted_marginal=1.0)
    beside.to_parquet(tmp_path / "beside.parquet")
    with pytest.raises(InputError, match="already has a column 'predicted_marginal'"):
        predict_parquet(model, tmp_path / "beside.parquet", out, keep_columns=True, force=True)


# Memory. ------------------------------------------------------------------------------------------

MEASURED = """
    import resource
    import sys
    import pandas as pd
    import pyarrow.parquet as pq
    from heckmanfa import Heckman, scan_parquet
    from heckmanfa.datasets import load_mroz

    def bytes_of(what):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(what)) * 1024

    how, path, most = sys.argv[1:]
    names = [f"x{place}" for place in range(20)]
    # What is loaded when it is first used is no part of what rows take.
    mroz = load_mroz()
    Heckman(["educ", "exper"]).fit(mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"])
    pq.ParquetFile(path).close()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the largest so far
    before = bytes_of("VmHWM")
    model = Heckman(names[:10])
    if how == "files":
        # The kernel refuses to give more than this, used or not.
        limit = bytes_of("VmData") + int(most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        model.fit(scan_parquet(path, "y"))
    else:
        frame = pd.read_parquet(path)
    print(bytes_of("VmHWM") - before, model.coef_[0] if how == "files" else 1.0)
"""


@pytest.mark.study
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measures memory by Linux's /proc")
def test_many_rows_are_fitted_in_less_memory_than_they_take(tmp_path):
    rng = np.random.default_rng(0)
    n, k = 700_000, 20
    path = tmp_path / "many.parquet"
    writer = None
    for _ in range(20):
        X = rng.standard_normal((n // 20, k))
        errors = rng.standard_normal((n // 20, 2))
        chosen = X.sum(axis=1) / 3 + errors[:, 0] > 0
        y = X[:, :10].sum(axis=1) + 0.5 * errors[:, 0] + errors[:, 1]
        columns = {f"x{place}": X[:, place] for place in range(k)}
        table = pa.table(columns | {"y": pa.array(np.where(chosen, y, np.nan), from_pandas=True)})
        # Random numbers neither repeat nor compress.
        writer = writer or pq.ParquetWriter(
            path, table.schema, compression="none", use_dictionary=False
        )
        writer.write_table(table)
    writer.close()
    # Arrow's own allocators take addresses ahead of need, and wait where they get none.
    environment = os.environ | {
        "HECKMANFA_NUM_THREADS": "2",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    size = 8 * n * k
    grown = {}
    for how in ("files", "memory"):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(MEASURED), how, str(path), str(2 * size)],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
            timeout=120,
        )
        bytes_grown, coefficient = done.stdout.split()
        assert abs(float(coefficient) - 1.0) < 0.02
        grown[how] = int(bytes_grown)
    # To have the rows in memory, and do nothing with them yet, takes more than twice their size.
    assert grown["files"] < size, grown
    assert grown["memory"] > 2 * size, grown


def small_groups(tmp_path, frame, rows=70):
    """Write Hive folders as pandas does, with small row groups, and the same rows in one group."""
    rng = np.random.default_rng(11)
    table = (
        frame[[*NAMES, "y"]]
        .assign(
            region=rng.integers(0, 5, len(frame)),
            word=rng.choice(["a", "b", "c"], len(frame)),
        )
        .sort_values("region", kind="stable")
    )
    table.to_parquet(tmp_path / "folders", partition_cols=["region"], row_group_size=rows)
    table = table.assign(region=table["region"].astype("int32"))
    table.to_parquet(tmp_path / "one.parquet", row_group_size=len(table), index=False)
    return tmp_path / "folders", tmp_path / "one.parquet"


@pytest.mark.parametrize("categorical", [(), ("region",)])
def test_many_small_row_groups_are_read_as_a_large_one(tmp_path, frame, categorical):
    folders, one = small_groups(tmp_path, frame[:4_000])
    models = {}
    for path in (folders, one):
        rows = scan_parquet(path, "y", categorical=categorical)
        assert len(rows.engine.parts) == -(-len(rows) // 2**15)
        models[path] = Heckman([*NAMES[:2], "region", "word"]).fit(rows)
    keys = ["equation", "term"]
    table, other = (models[path].tidy().set_index(keys) for path in (folders, one))
    other = other.loc[table.index]
    error = other["std_error"].to_numpy()
    gap = (table["estimate"] - other["estimate"]).to_numpy() / error
    assert np.nanmax(np.abs(gap)) < 1e-8
    np.testing.assert_allclose(table["std_error"], error, rtol=1e-8)


def test_merged_row_groups_give_the_bits_of_any_number_of_workers(tmp_path, frame, monkeypatch):
    folders, _ = small_groups(tmp_path, pd.concat([frame, frame, frame]), rows=2_000)
    coefs = []
    for threads in ("1", "3"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
        coefs.append(
            Heckman(NAMES[:2]).fit(scan_parquet(folders, "y", categorical=["region"])).coef_
        )
    np.testing.assert_array_equal(*coefs)


def test_row_groups_merge_to_a_constant_size_and_not_across_types(tmp_path):
    sizes = [2_000] * 40 + [0, 40_000, 5]
    for number, size in enumerate(sizes):
        values = pa.array(np.arange(size), pa.int64() if number != 3 else pa.int32())
        words = pa.array([f"{number}{k % 3}" for k in range(size)]).dictionary_encode()
        table = pa.table({"x": values, "w": words, "y": pa.array(np.ones(size))})
        pq.write_table(table, tmp_path / f"part-{number:02}.parquet")
    files, _ = scan_files(find_files(tmp_path))
    parts = file_parts(files)
    assert [part.rows for part in parts] == [6_000, 2_000, 32_000, 32_000, 8_000, 40_000, 5]
    assert [part.start for part in parts] == [0, 6_000, 8_000, 40_000, 72_000, 80_000, 120_000]
    read = []
    for part in parts:
        batches = list(read_batches(part, Batches(("w", "x"), ("w",), 256, None, threads=False)))
        assert all(batch.num_rows % 256 == 0 for batch in batches[:-1])
        read += [pa.Table.from_batches([batch]).to_pandas() for batch in batches]
        head = Batches(("x",), (), 256, 3, threads=False)
        assert sum(batch.num_rows for batch in read_batches(part, head)) == 3
    words = np.concatenate([frame["w"].astype(str) for frame in read])
    numbers = np.concatenate([frame["x"] for frame in read])
    np.testing.assert_array_equal(numbers, np.concatenate([np.arange(size) for size in sizes]))
    expected = [f"{number}{k % 3}" for number, size in enumerate(sizes) for k in range(size)]
    np.testing.assert_array_equal(words, expected)


def opened(monkeypatch):
    """Count the files that pyarrow opens from now on."""
    original, count = pq.ParquetFile.__init__, []

    def counted(self, *args, **options):
        count.append(args[0])
        original(self, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "__init__", counted)
    return count


def test_small_row_groups_are_decoded_once_and_not_in_every_pass(tmp_path, frame, monkeypatch):
    folders, _ = small_groups(tmp_path, frame[:4_000])
    rows = scan_parquet(folders, "y", NAMES)
    count = opened(monkeypatch)
    first = Heckman(NAMES[:2]).fit(rows)
    assert len(count) == len(rows.paths) == 5
    assert Heckman(NAMES[:2]).fit(rows).rho_ == first.rho_
    assert len(count) == 5


def test_no_footer_is_read_twice_for_columns_of_numbers(tmp_path, frame, monkeypatch):
    folders, _ = small_groups(tmp_path, frame[:4_000])
    files, _ = scan_files(find_files(folders))
    (part,) = file_parts(files)
    count = opened(monkeypatch)
    for _ in read_batches(part, Batches(("x0", "region"), (), 256, None, threads=False)):
        pass
    assert len(count) == len(files)


@pytest.mark.parametrize("most", [0, 2**19, 2**21])
def test_what_is_kept_between_passes_has_its_bound_and_changes_no_bit(
    tmp_path, frame, monkeypatch, most
):
    folders, _ = small_groups(tmp_path, pd.concat([frame] * 5), rows=2_000)
    models = []
    for bytes_ in (2**27, most):
        monkeypatch.setattr(KeptParts.__init__, "__defaults__", (bytes_,))
        rows = scan_parquet(folders, "y", [*NAMES, "word", "region"])
        models.append(Heckman(NAMES[:2]).fit(rows))
        held = sum(
            batch.get_total_buffer_size()
            for kept in rows._kept._parts.values()
            for batch in kept.batches
        )
        assert held + rows._kept._free == bytes_
        assert rows._kept._free >= 0
    assert len(rows.engine.parts) > 2
    for name in ("coef_", "selection_coef_", "rho_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))


def test_other_columns_replace_those_that_are_kept(tmp_path, frame):
    folders, _ = small_groups(tmp_path, frame[:4_000])
    files, _ = scan_files(find_files(folders))
    (part,) = file_parts(files)
    kept = KeptParts(100_000)

    def read(*columns, levels=(), head=None):
        wanted = Batches(columns, levels, 256, head, threads=False)
        return pa.Table.from_batches(read_batches(part, wanted, kept)).to_pandas()

    whole = pd.concat(pd.read_parquet(file.path) for file in files).reset_index(drop=True)
    for columns in [("x0", "x1"), ("x1",), ("x2", "word"), ("word", "x2"), ("x0",)]:
        found = read(*columns)
        pd.testing.assert_frame_equal(found, whole[list(columns)], check_dtype=False)
        assert len(read(*columns, head=7)) == 7
    assert isinstance(read("word", levels=("word",))["word"].dtype, pd.CategoricalDtype)
    assert not isinstance(read("word")["word"].dtype, pd.CategoricalDtype)
    # More than fits is read, and not kept.
    read(*NAMES)
    assert kept._free == 100_000
    assert not kept._parts


def test_a_part_that_was_not_read_to_its_end_is_read_again(tmp_path, frame, monkeypatch):
    monkeypatch.setattr(parquet_rows, "_BATCH_ROWS", 1_024)
    folders, _ = small_groups(tmp_path, frame[:4_000])
    (part,) = file_parts(scan_files(find_files(folders))[0])
    kept = KeptParts()
    wanted = Batches(("x0",), (), 256, None, threads=False)
    with closing(read_batches(part, wanted, kept)) as batches:
        assert next(batches).num_rows == 1_024
    for _ in range(2):
        found = [batch.num_rows for batch in read_batches(part, wanted, kept)]
        assert sum(found) == 4_000
        assert kept.find(part, wanted) is not None


@pytest.mark.parametrize("change", ["lost", "changed"])
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_file_that_changes_is_refused_even_if_its_rows_are_kept(tmp_path, frame, change, is_kept):
    folders, _ = small_groups(tmp_path, frame[:4_000])
    rows = scan_parquet(folders, "y", NAMES)
    if is_kept:
        Heckman(NAMES[:2]).fit(rows)
    path = rows.paths[2]
    if change == "lost":
        path.unlink()
    else:
        os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match=rf"{path.name} (is gone|changed) since"):
        Heckman(NAMES[:2]).fit(rows)


def test_rows_travel_without_what_they_keep(tmp_path, frame):
    folders, _ = small_groups(tmp_path, frame[:4_000])
    rows = scan_parquet(folders, "y", NAMES)
    before = len(pickle.dumps(rows))
    model = Heckman(NAMES[:2]).fit(rows)
    stored = pickle.dumps(rows)
    assert len(stored) == before
    np.testing.assert_array_equal(Heckman(NAMES[:2]).fit(pickle.loads(stored)).coef_, model.coef_)


def test_a_file_that_ends_before_its_own_count_is_damaged(files):
    engine = scan_parquet(files, "y", ["x0"]).engine
    part = file_parts(engine.files)[0]
    wanted = Batches(("x0",), (), 4_096, None, threads=False)
    assert sum(batch.num_rows for batch in read_batches(part, wanted)) == part.rows
    longer = part.runs[-1]._replace(rows=part.runs[-1].rows + 1)
    with pytest.raises(DataError, match=r"ends 1 rows before its own count of them: it is damaged"):
        [*read_batches(FilePart((*part.runs[:-1], longer), part.rows + 1, part.start), wanted)]

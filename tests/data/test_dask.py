"""Rows in partitions of Dask: the digits of memory, on any cluster, whatever happens to it."""

import os
import pickle
import signal
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests import siblings

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    NaiveOLS,
    compress,
)
from heckmanfa.errors import (
    ClusterError,
    InputError,
    InputTypeError,
    MissingValueError,
    NoOutcomeError,
    TooFewRowsError,
    UnknownFeatureError,
)

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# A worker that was killed leaves sockets and threads to the garbage collector, which complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

NAMES = [f"x{place}" for place in range(5)]
PREDICTING = NAMES[:3]
MROZ = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
SECONDS = 20.0


@pytest.fixture(scope="module")
def frame():
    """Rows whose last feature is 1 in one run of rows only, with weights and groups."""
    random = np.random.default_rng(1)
    X = random.normal(size=(2400, 5))
    X[:, 4] = 0.0
    X[700:780, 4] = 1.0
    u, e = random.normal(size=(2, len(X)))
    table = pd.DataFrame(X, columns=NAMES)
    table["y"] = 1 + X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.6 * u + e
    table.loc[0.3 + X[:, 0] + 0.5 * X[:, 2] - X[:, 3] + X[:, 4] + u <= 0, "y"] = np.nan
    table["seen"] = table["y"].notna()
    table["weight"] = random.integers(0, 4, len(table)).astype(float)
    table["team"] = random.choice([f"team {number}" for number in range(45)], len(table))
    return table


@pytest.fixture
def here():
    """Dask without a cluster, on this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


def parted(table, *ends):
    """A Dask DataFrame of partitions that end at these rows, unknown divisions."""
    bounds = [0, *ends, len(table)]
    parts = [table.iloc[start:stop] for start, stop in pairwise(bounds)]
    return dd.from_map(lambda part: part, parts, meta=table.iloc[:0])


def same(found, expected):
    """Within 1e-8 standard errors, and the same standard errors to 1e-8."""
    mine, theirs = found.tidy(), expected.tidy()
    assert mine["term"].tolist() == theirs["term"].tolist()
    errors = theirs["std_error"].to_numpy()
    unit = np.where(np.isfinite(errors), errors, np.abs(theirs["estimate"]))
    distance = np.abs(mine["estimate"] - theirs["estimate"]) / unit
    assert distance.max() <= 1e-8
    np.testing.assert_allclose(mine["std_error"], errors, rtol=1e-8)
    assert found.row_counts_ == expected.row_counts_


def bits(model):
    return [float(estimate).hex() for estimate in model.tidy()["estimate"]]


# The same digits as in memory. --------------------------------------------------------------------

KINDS = {
    "two-step": ({}, ()),
    "ml": ({"method": "ml"}, ()),
    "robust": ({"cov_type": "robust"}, ()),
    "robust ml": ({"cov_type": "robust", "method": "ml"}, ()),
    "cluster": ({"cov_type": "cluster"}, ("groups",)),
    "frequencies": ({}, ("sample_weight",)),
    "sampling": ({"cov_type": "robust", "weight_kind": "sampling"}, ("sample_weight",)),
    "flags": ({}, ("selected",)),
    "everything": (
        {"cov_type": "cluster", "weight_kind": "sampling"},
        ("selected", "sample_weight", "groups"),
    ),
}
COLUMNS = {"groups": "team", "sample_weight": "weight", "selected": "seen"}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("kind", KINDS)
def test_every_estimate_of_simulated_rows_is_that_of_the_fit_in_memory(frame, kind):
    parameters, given = KINDS[kind]
    ddf = parted(frame, 400, 400, 1000, 1900)
    model = Heckman(PREDICTING, **parameters)
    found = clone(model).fit(ddf[NAMES], ddf["y"], **{role: ddf[COLUMNS[role]] for role in given})
    expected = model.fit(frame[NAMES], frame["y"], **{role: frame[COLUMNS[role]] for role in given})
    same(found, expected)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "kind",
    ["two-step", "cluster"]
    # These are tested with simulated rows.
    + [pytest.param(kind, marks=pytest.mark.study) for kind in ("ml", "robust", "frequencies")],
)
def test_every_estimate_of_mroz_is_that_of_the_fit_in_memory(mroz, kind):
    parameters, given = KINDS[kind]
    table = mroz.assign(team=np.arange(len(mroz)) % 45, weight=1.0 + mroz["kids618"], seen=True)
    ddf = dd.from_pandas(table, npartitions=3)
    model = Heckman(["educ", "exper", "expersq"], **parameters)
    found = clone(model).fit(
        ddf[MROZ], ddf["lwage"], **{role: ddf[COLUMNS[role]] for role in given}
    )
    others = {role: table[COLUMNS[role]] for role in given}
    same(found, model.fit(table[MROZ], table["lwage"], **others))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "model",
    [
        HeckmanBestSubset(),
        HeckmanAverage(),
        HeckmanFA(extraction="correlation"),
        HeckmanFA(extraction="rank", random_state=0, epochs=200, train_rows=10_000),
        HeckmanFA(extraction="sample", random_state=0, epochs=200, train_rows=10_000),
    ],
    ids=["best subset", "average", "correlation", "rank", "sample"],
)
@pytest.mark.parametrize("source", ["simulated", "mroz"])
def test_every_search_finds_what_it_finds_in_memory(frame, mroz, source, model):
    table, features, outcome = (
        (frame, NAMES, "y") if source == "simulated" else (mroz, MROZ, "lwage")
    )
    ddf = dd.from_pandas(table, npartitions=3)
    expected = clone(model).fit(table[features], table[outcome])
    found = clone(model).fit(ddf[features], ddf[outcome])
    assert found.prediction_features_ == expected.prediction_features_
    same(found, expected)


@pytest.mark.usefixtures("here")
def test_least_squares_and_compression_are_those_in_memory(mroz):
    ddf = dd.from_pandas(mroz, npartitions=3)
    found = NaiveOLS().fit(ddf[MROZ], ddf["lwage"])
    np.testing.assert_allclose(
        found.coef_, NaiveOLS().fit(mroz[MROZ], mroz["lwage"]).coef_, rtol=1e-10
    )
    mask = np.array([False, True, True, True, False, False, False])
    solved = compress(ddf[MROZ], ddf["lwage"]).moments.solve(mask)
    expected = compress(mroz[MROZ], mroz["lwage"]).moments.solve(mask)
    np.testing.assert_allclose(solved.coef, expected.coef, rtol=1e-9)


@pytest.mark.usefixtures("here")
def test_partitions_may_be_empty_or_unselected_and_a_dummy_may_be_in_one_alone(frame):
    """Partition 0 and 3 are empty, 1 has no selected row, and x4 is 1 in partition 4 alone."""
    order = np.argsort(frame["y"].notna().to_numpy(), kind="stable")
    table = frame.iloc[order].sort_values("x4", kind="stable").reset_index(drop=True)
    unselected = int(table["y"].notna().to_numpy().argmax())
    dummy = int((table["x4"] == 1).to_numpy().argmax())
    ddf = parted(table, 0, unselected, dummy, dummy)
    lengths = ddf.map_partitions(len).compute().tolist()
    assert lengths == [0, unselected, dummy - unselected, 0, len(table) - dummy]
    for method in ("two-step", "ml"):
        model = Heckman(PREDICTING, method=method)
        found = clone(model).fit(ddf[NAMES], ddf["y"])
        same(found, model.fit(table[NAMES], table["y"]))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "spread",
    ["known", "unknown", "columns", "other outcome chunks", "frame and array", "array and series"],
)
def test_arrays_with_any_chunks_agree_with_memory(frame, spread):
    ddf = parted(frame, 500, 500, 1500)
    X = da.from_array(frame[NAMES].to_numpy(), chunks=(700, 5))
    y = da.from_array(frame["y"].to_numpy(), chunks=700)
    if spread == "unknown":
        X, y = ddf[NAMES].to_dask_array(), ddf[["y"]].to_dask_array()
        assert np.isnan(X.chunks[0]).all()
    elif spread == "columns":
        X = X.rechunk((700, 2))
    elif spread == "other outcome chunks":
        y = y.rechunk(1000)
    elif spread == "frame and array":
        X, y = ddf[NAMES], ddf["y"].to_dask_array()
    elif spread == "array and series":
        X, y = ddf[NAMES].to_dask_array(), ddf["y"]
    chosen = PREDICTING if spread == "frame and array" else [0, 1, 2]
    expected = Heckman(PREDICTING).fit(frame[NAMES], frame["y"])
    found = Heckman(chosen, selection_features=[0, 1, 2, 3, 4]).fit(X, y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.vcov(), expected.vcov(), rtol=1e-7, atol=1e-12)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_nullable_columns_are_read_as_in_memory(frame, backend):
    table = frame.convert_dtypes(dtype_backend=backend)
    assert table["y"].isna().any()
    ddf = parted(table, 900)
    given = {role: COLUMNS[role] for role in ("selected", "sample_weight", "groups")}
    model = Heckman(PREDICTING, cov_type="cluster")
    found = clone(model).fit(
        ddf[NAMES], ddf["y"], **{role: ddf[name] for role, name in given.items()}
    )
    others = {role: frame[name] for role, name in given.items()}
    same(found, model.fit(frame[NAMES], frame["y"], **others))


@pytest.mark.usefixtures("here")
def test_tests_of_the_assumptions_read_the_partitions_again(mroz):
    ddf = dd.from_pandas(mroz, npartitions=3)
    model = Heckman(["educ", "exper", "expersq"]).fit(ddf[MROZ], ddf["lwage"])
    found = model.specification_tests(ddf[MROZ], ddf["lwage"])
    expected = model.specification_tests(mroz[MROZ], mroz["lwage"])
    pd.testing.assert_frame_equal(found.tidy(), expected.tidy(), rtol=1e-7)


@pytest.mark.usefixtures("here")
def test_what_needs_arrays_refuses_partitions(mroz):
    ddf = dd.from_pandas(mroz, npartitions=3)
    model = Heckman(["educ", "exper", "expersq"]).fit(ddf[MROZ], ddf["lwage"])
    with pytest.raises(InputError, match="needs the rows in memory"):
        model.bootstrap(ddf[MROZ], ddf["lwage"], 10)
    with pytest.raises(InputError, match=r"X\.compute\(\)"):
        model.margins(ddf[MROZ])
    with pytest.raises(InputError, match=r"X\.compute\(\)"):
        model.diagnostics(ddf[MROZ].to_dask_array())


# What is read. ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_a_pass_reads_every_partition_once_and_no_column_that_it_does_not_need(frame):
    read = []

    def part(number, columns=None):
        read.append((number, tuple(columns)))
        return frame.iloc[600 * number : 600 * (number + 1)][columns]

    ddf = dd.from_map(part, range(4), meta=frame.iloc[:0])
    Heckman(["x0", "x1"], ["x0", "x1", "x3"], method="ml").fit(ddf[NAMES], ddf["y"])
    assert {columns for _, columns in read} == {("x0", "x1", "x3", "y")}
    numbers = [number for number, _ in read]
    assert all(sorted(numbers[i : i + 4]) == [0, 1, 2, 3] for i in range(0, len(numbers), 4))


@pytest.mark.usefixtures("here")
def test_partitions_of_files_stay_apart_where_few_of_many_columns_are_read(frame, tmp_path):
    """Dask joins small partitions of Parquet files as it likes, by which columns are read."""
    wide = frame.assign(**{f"other{i}": np.arange(len(frame)) + i for i in range(30)})
    for number in range(6):
        part = wide.iloc[400 * number : 400 * (number + 1)]
        part.to_parquet(tmp_path / f"part.{number}.parquet")
    ddf = dd.read_parquet(tmp_path)
    assert ddf["y"].optimize().npartitions < ddf.npartitions
    found = Heckman(PREDICTING).fit(ddf[NAMES], ddf["y"])
    same(found, Heckman(PREDICTING).fit(frame[NAMES], frame["y"]))


@pytest.mark.usefixtures("here")
def test_a_fitted_model_keeps_nothing_of_the_partitions(frame):
    ddf = parted(frame, 900)
    model = Heckman(PREDICTING, method="ml").fit(ddf[NAMES], ddf["y"])
    assert b"dask" not in pickle.dumps(model)
    assert len(pickle.dumps(model)) < 20_000


# Refusals. ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_collections_that_do_not_go_together_are_refused_with_what_differs(frame):
    ddf, other = parted(frame, 900), parted(frame, 500, 900)
    moved = parted(frame, 901)
    X, y = ddf[NAMES], ddf["y"]
    array = da.from_array(frame[NAMES].to_numpy(), chunks=(800, 5))
    for arguments, kind, words in [
        ((X, other["y"]), InputError, "X has 2 partitions, and y 3"),
        ((X, moved["y"]), InputError, r"partition \d of 2 has \d+ rows of X, but \d+ of y:"),
        ((X, y, None, moved["weight"]), InputError, r"rows of X, but \d+ of sample_weight"),
        ((X, frame["y"]), InputTypeError, "X is a Dask collection, but y is a Series"),
        ((X, None), InputError, "y is None"),
        ((X, X), InputTypeError, "y must be a Dask Series"),
        ((X["x0"], y), InputTypeError, "X must be a Dask DataFrame or a Dask Array"),
        ((array[:, 0], y), InputError, "X must have two dimensions"),
        ((array, array), InputError, "y must have one dimension"),
        ((array, array[:-1, 0]), InputError, "X has 2400 rows, y 2399"),
        ((dask.delayed(frame[NAMES]), y), InputTypeError, "got a Dask Delayed"),
    ]:
        with pytest.raises(kind, match=words):
            Heckman(["x0"] if arguments[0] is X else [0]).fit(*arguments)


@pytest.mark.usefixtures("here")
def test_values_that_the_fit_in_memory_refuses_are_refused_alike(frame):
    ddf = parted(frame, 900)
    fit = Heckman(PREDICTING).fit
    text = ddf.assign(x1="a")
    with pytest.raises(InputError, match="column 'x1' does not hold numbers"):
        Heckman(PREDICTING, categorical_features=None).fit(text[NAMES], text["y"])
    kinds = text.assign(x1=text["x1"].astype("category"))
    with pytest.raises(InputError, match="column 'x1' does not hold numbers"):
        Heckman(PREDICTING, categorical_features=None).fit(kinds[NAMES], kinds["y"])
    gap = ddf.assign(x1=ddf["x1"].where(ddf["x1"] < 2))
    with pytest.raises(MissingValueError, match=r"'x1' \(\d+ NaN, 0 inf\)"):
        fit(gap[NAMES], gap["y"])
    with pytest.raises(InputError, match="selected must be"):
        fit(ddf[NAMES], ddf["y"], ddf["weight"])
    with pytest.raises(InputError, match="sample_weight holds 2,400 negative"):
        fit(ddf[NAMES], ddf["y"], None, -1 - ddf["weight"])
    with pytest.raises(NoOutcomeError, match="no row has an observed outcome"):
        fit(ddf[NAMES], ddf["y"] * np.nan)
    none = ddf[ddf["x0"] > 1e9]
    with pytest.raises(TooFewRowsError, match="rows of 2 Dask partitions are 0 rows"):
        fit(none[NAMES], none["y"])
    lost = ddf.assign(team=ddf["team"].where(ddf["team"] != "team 3"))
    with pytest.raises(InputError, match=r"groups is missing in \d+ rows"):
        Heckman(PREDICTING, cov_type="cluster").fit(lost[NAMES], lost["y"], groups=lost["team"])
    with pytest.raises(UnknownFeatureError, match="no column 'z'"):
        Heckman(["z"]).fit(ddf[NAMES], ddf["y"])
    twice = ddf[["x0", "x0", "y"]]
    with pytest.raises(InputError, match="two columns named 'x0'"):
        Heckman(["x0"]).fit(twice, ddf["y"])


@pytest.mark.usefixtures("here")
def test_a_partition_that_cannot_be_made_or_read_ends_with_our_error(frame, tmp_path):
    def broken(number):
        if number == 2:
            raise ZeroDivisionError("by nought")
        return frame.iloc[600 * number : 600 * (number + 1)]

    ddf = dd.from_map(broken, range(4), meta=frame.iloc[:0])
    with pytest.raises(ClusterError, match="of 4 failed with ZeroDivisionError: by nought"):
        Heckman(PREDICTING).fit(ddf[NAMES], ddf["y"])
    for name in ("0.parquet", "1.parquet"):
        frame.to_parquet(tmp_path / name)
    files = dd.read_parquet(tmp_path)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(ClusterError, match="could not be read"):
        Heckman(PREDICTING).fit(files[NAMES], files["y"])


# Prediction. --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected"])
def test_predictions_for_a_frame_are_a_series_with_its_index_and_divisions(frame, kind):
    ddf = dd.from_pandas(frame, npartitions=4)
    model = Heckman(PREDICTING).fit(frame[NAMES], frame["y"])
    found = model.predict(ddf[NAMES], kind=kind)
    assert isinstance(found, dd.Series)
    assert found.divisions == ddf.divisions
    expected = pd.Series(model.predict(frame[NAMES], kind=kind), frame.index, name="predicted")
    pd.testing.assert_series_equal(found.compute(), expected, rtol=1e-12)


@pytest.mark.usefixtures("here")
def test_selection_has_lazy_intervals_and_standard_errors(frame):
    model = Heckman([0, 1, 2]).fit(frame[NAMES].to_numpy(), frame["y"])
    X = frame[NAMES].to_numpy()
    asked = {"return_interval": "confidence", "return_std": True, "scale": "link"}
    expected = model.predict_selection(X, **asked)
    for lazy in (da.from_array(X, chunks=(1000, 2)), parted(frame[NAMES], 1000)):
        if not isinstance(lazy, da.Array):
            model = Heckman(NAMES[:3]).fit(frame[NAMES], frame["y"])
        found = model.predict_selection(lazy, **asked)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours.compute(), theirs, rtol=1e-9, atol=1e-12)
    assert (found[0].name, found[2].name) == ("index", "std_error")
    assert list(found[1].columns) == ["lower", "upper"]
    with pytest.raises(InputError, match="is a Dask collection"):
        model.margins(lazy, over=NAMES[0])
    _, std = model.predict_selection(lazy, return_std=True)
    assert std.divisions == lazy.divisions
    np.testing.assert_allclose(
        std.compute(), model.predict_selection(frame[NAMES], return_std=True)[1], rtol=1e-12
    )


@pytest.mark.usefixtures("here")
def test_predictions_for_an_array_are_an_array_with_its_chunks(frame):
    X = frame[NAMES].to_numpy()
    lazy = da.from_array(X, chunks=(1000, 2))
    model = Heckman([0, 1, 2]).fit(X, frame["y"])
    for found, expected in [
        (model.predict(lazy), model.predict(X)),
        (model.predict_selection(lazy), model.predict_selection(X)),
        (model.inverse_mills(lazy), model.inverse_mills(X)),
        (NaiveOLS().fit(X, frame["y"]).predict(lazy), NaiveOLS().fit(X, frame["y"]).predict(X)),
    ]:
        assert isinstance(found, da.Array)
        assert found.chunks == ((1000, 1000, 400),)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-12)


@pytest.mark.usefixtures("here")
def test_intervals_of_predictions_come_beside_them(frame):
    model = Heckman(PREDICTING).fit(frame[NAMES], frame["y"])
    values, interval = model.predict(frame[NAMES], return_interval="prediction", conf_level=0.8)
    ddf = parted(frame, 0, 900)
    options = {"return_interval": "prediction", "conf_level": 0.8}
    series, limits = model.predict(ddf[NAMES], **options)
    np.testing.assert_allclose(series.compute(), values, rtol=1e-12, atol=1e-12)
    assert limits.columns.tolist() == ["lower", "upper"]
    np.testing.assert_allclose(limits.compute(), interval, rtol=1e-12, atol=1e-12)
    numbered = Heckman([0, 1, 2]).fit(frame[NAMES].to_numpy(), frame["y"])
    array, limits = numbered.predict(ddf[NAMES].to_dask_array(), **options)
    np.testing.assert_allclose(array.compute(), values, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(limits.compute(), interval, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("here")
def test_predictions_are_of_the_model_as_it_was_and_scores_are_numbers(frame):
    ddf = parted(frame, 900)
    model = Heckman(PREDICTING).fit(frame[NAMES], frame["y"])
    expected, score = model.predict(frame[NAMES]), model.score(frame[NAMES], frame["y"])
    assert model.score(ddf[NAMES], ddf["y"]) == pytest.approx(score, rel=1e-12)
    plain = NaiveOLS().fit(frame[NAMES], frame["y"])
    assert plain.score(ddf[NAMES], ddf["y"]) == pytest.approx(
        plain.score(frame[NAMES], frame["y"]), rel=1e-12
    )
    lazy = model.predict(ddf[NAMES])
    model.fit(frame[NAMES], -frame["y"])
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-12)


@pytest.mark.usefixtures("here")
def test_predictions_for_other_columns_are_refused_before_anything_is_computed(frame):
    ddf = parted(frame, 900)
    model = Heckman(PREDICTING).fit(frame[NAMES], frame["y"])
    with pytest.raises(InputError, match="feature names"):
        model.predict(ddf[NAMES[::-1]])
    numbered = Heckman([0, 1, 2]).fit(frame[NAMES].to_numpy(), frame["y"])
    with pytest.raises(InputError, match="expecting 5 features"):
        numbered.predict(ddf[NAMES].to_dask_array()[:, :3])
    with pytest.raises(InputTypeError, match="got a Dask Series"):
        model.predict_selection(ddf["x0"])
    gap = ddf.assign(x1=ddf["x1"].where(ddf["x1"] < 2))
    with pytest.raises(MissingValueError, match="'x1'"):
        model.predict(gap[NAMES]).compute()


# A cluster. ---------------------------------------------------------------------------------------

MEGABYTES = 520
PARTS, ROWS, UNUSED = 40, 20_000, 256


def cluster_of(workers, **options):
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
        **options,
    )


@pytest.fixture(scope="module")
def client():
    """Two worker processes with little memory each; two deaths of one task are enough."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        cluster_of(2, processes=True, memory_limit=f"{MEGABYTES}MB") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def made(number, rows=3000, unused=0):
    """A partition from its number alone, on the worker."""
    random = np.random.default_rng(number)
    table = np.full((4 + unused, rows), float(number)).T
    table[:, 1:4] = X = random.normal(size=(rows, 3))
    u, e = random.normal(size=(2, rows))
    table[:, 0] = np.where(X.sum(axis=1) + u > 0, 1 + X[:, 0] - X[:, 1] + 0.5 * u + e, np.nan)
    names = ["y", "a", "b", "c", *(f"u{place}" for place in range(unused))]
    return pd.DataFrame(table, columns=names, copy=False)


def deadly(number, folder):
    """Kill the worker when partition 1 is read for the fourth time."""
    if number == 1:
        times = len(list(Path(folder).iterdir()))
        (Path(folder) / str(times)).touch()
        if times == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    return made(number)


def greedy(number):
    """Partition 1 takes more memory than a worker has, for long enough to be seen."""
    if number == 1:
        hoard = np.ones(2**20 * MEGABYTES // 8)
        time.sleep(SECONDS)
        assert hoard[-1] == 1
    return made(number)


def broken(number):
    if number == 2:
        raise ZeroDivisionError("by nought")
    return made(number)


def collection(function, parts=6, **options):
    return dd.from_map(function, range(parts), meta=made(0, rows=1).iloc[:0], **options)


def fitted(ddf):
    return Heckman(["a", "b"]).fit(ddf[["a", "b", "c"]], ddf["y"])


def leftovers(client):
    """Tasks that the scheduler still knows, once it had time to forget."""
    end = time.monotonic() + SECONDS
    while (
        left := client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    ) and time.monotonic() < end:
        time.sleep(0.05)
    return left


@pytest.fixture(scope="module")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return bits(fitted(collection(made)))


def test_two_workers_give_the_digits_of_memory_and_keep_nothing(client, expected):
    model = fitted(collection(made))
    assert bits(model) == expected
    table = pd.concat([made(number) for number in range(6)])
    same(model, Heckman(["a", "b"]).fit(table[["a", "b", "c"]], table["y"]))
    assert leftovers(client) == 0


def test_threads_of_this_process_give_the_same_bits(expected):
    with dask.config.set(scheduler="threads", num_workers=3):
        assert bits(fitted(collection(made))) == expected


def test_one_worker_gives_the_same_bits(client, expected):
    with (
        cluster_of(1, processes=False, protocol="tcp", memory_limit=0) as cluster,
        distributed.Client(cluster, set_as_default=False) as alone,
        dask.config.set(scheduler=alone),
    ):
        assert bits(fitted(collection(made))) == expected
        passes = alone.run_on_scheduler(
            lambda dask_scheduler: dask_scheduler.task_prefixes["heckmanfa_pass"].duration_average
        )
    assert passes > 0


@pytest.mark.study
def test_data_far_larger_than_the_memory_of_the_workers_is_fitted(client):
    """Every partition has columns that are not used, which make it forty megabytes."""
    size = PARTS * ROWS * (4 + UNUSED) * 8
    assert size > 3 * MEGABYTES * 1e6
    ddf = collection(made, PARTS, rows=ROWS, unused=UNUSED)
    model = fitted(ddf)
    assert model.row_counts_["total"] == PARTS * ROWS
    truth = np.array([1.0, -1.0, 0.0])
    np.testing.assert_allclose(model.coef_, truth, atol=0.01)


def test_an_error_on_a_worker_names_the_partition(client):
    with pytest.raises(ClusterError, match="partition 2 of 6 failed with ZeroDivisionError"):
        fitted(collection(broken))
    days = collection(made).assign(a=pd.Timestamp("2020-01-01"))
    with pytest.raises(InputError, match="column 'a' does not hold numbers"):
        fitted(days)
    assert leftovers(client) == 0


def test_levels_of_text_are_counted_and_encoded_on_the_workers(client):
    numbers = collection(made)
    words = numbers.assign(c=(numbers["c"] > 0).astype(str))
    found = fitted(words)
    assert found.encoded_names_.tolist() == ["a", "b", "c[True]"]
    assert leftovers(client) == 0
    with dask.config.set(scheduler="synchronous"):
        assert bits(fitted(words)) == bits(found)


def test_an_interruption_cancels_what_is_outstanding(client, monkeypatch):
    def interrupted(futures):
        raise KeyboardInterrupt

    monkeypatch.setattr(client, "gather", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(collection(made))
    monkeypatch.undo()
    assert leftovers(client) == 0


def test_predictions_are_made_on_the_workers(client):
    table = made(0)
    model = Heckman(["a", "b"]).fit(table[["a", "b", "c"]], table["y"])
    ddf = collection(made, 3)
    found = model.predict(ddf[["a", "b", "c"]]).compute()
    whole = pd.concat([made(number) for number in range(3)])
    np.testing.assert_allclose(found, model.predict(whole[["a", "b", "c"]]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.study) if name == "t errors" else name
        for name in siblings.MODELS
    ],
)
def test_other_models_are_fitted_on_the_workers(client, name):
    table = siblings.rows(500)
    lazy = dd.from_pandas(table, npartitions=2)
    found = siblings.fitted(name, lazy)
    same(found, siblings.fitted(name, table))
    assert leftovers(client) == 0


# Workers that die come last: the next test would wait for those in their place. ------------------


def test_a_worker_killed_in_the_middle_costs_time_and_not_a_bit(client, expected, tmp_path):
    assert bits(fitted(collection(deadly, folder=str(tmp_path)))) == expected
    assert len(list(tmp_path.iterdir())) > 4
    assert leftovers(client) == 0


# Twelve seconds of waiting; the test above kills a worker too.
@pytest.mark.study
def test_a_worker_killed_with_persisted_partitions_costs_time_and_not_a_bit(client, expected):
    ddf = collection(made).persist()
    distributed.wait(ddf)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    assert bits(fitted(ddf)) == expected


def test_a_partition_that_takes_too_much_memory_ends_with_what_to_do(client):
    with pytest.raises(ClusterError, match=r"partition \d of 6 died.* repartition"):
        fitted(collection(greedy))
    assert leftovers(client) == 0

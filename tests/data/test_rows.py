import warnings
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from formulaic import Formula

from heckmanfa import Heckman
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.formula.matrix import matrix_of
from heckmanfa.data.rows import ArrayRows, Matrix, total
from heckmanfa.data.threads import SharedContext, in_order


def count_and_sum(block, power):
    return len(block.outcome), (block.features**power).sum(axis=0)


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    n = 1000
    return ArrayRows(
        Matrix(rng.normal(size=(n, 4))),
        rng.normal(size=n),
        rng.random(n) < 0.6,
        weight=rng.random(n),
        block_rows=64,
    )


def test_map_gives_every_row_once_and_in_order(rows):
    seen = np.concatenate(list(rows.map(lambda block: block.outcome, columns=[0])))
    np.testing.assert_array_equal(seen, rows.outcome)


def test_only_the_columns_asked_for_are_handed_out_in_that_order(rows):
    n, sums = total(rows.map(count_and_sum, 1, columns=[3, 1]))
    assert n == 1000
    everything = rows.source.take(0, 1000, range(4))
    np.testing.assert_allclose(sums, everything[:, [3, 1]].sum(axis=0), rtol=1e-12)


def test_the_bits_do_not_depend_on_the_number_of_threads(rows, monkeypatch):
    monkeypatch.setattr("heckmanfa.data.rows._ROWS_FOR_THREADS", 0)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
        results.append(total(rows.map(count_and_sum, 3, columns=range(4)))[1].tobytes())
    assert len(set(results)) == 1


def test_a_fit_has_the_same_bits_on_one_and_two_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 5))
    y = np.where(
        X @ np.ones(5) + rng.normal(size=30_000) > 0, X[:, 0] + rng.normal(size=30_000), np.nan
    )
    fits = []
    for threads in ("1", "2"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
        model = Heckman([0, 1], method="ml").fit(X, y)
        fits.append((model.coef_.tobytes(), model.fit_.covariance.tobytes()))
    assert fits[0] == fits[1]


def test_an_error_in_a_block_function_reaches_the_caller(rows, monkeypatch):
    monkeypatch.setattr("heckmanfa.data.rows._ROWS_FOR_THREADS", 0)
    monkeypatch.setenv("HECKMANFA_NUM_THREADS", "2")

    def fail(block):
        raise ZeroDivisionError("in a block")

    with pytest.raises(ZeroDivisionError, match="in a block"):
        list(rows.map(fail, columns=[0]))


def test_without_leaves_rows_out_and_can_be_repeated(rows):
    fewer = rows.without(lambda block: block.features[:, 0] > 0, columns=[0])
    fewer = fewer.without(lambda block: ~block.selected, columns=[0])
    first = rows.source.take(0, 1000, [0])[:, 0]
    expected = rows.outcome[(first <= 0) & rows.selected]
    seen = np.concatenate(list(fewer.map(lambda block: block.outcome, columns=[])))
    np.testing.assert_array_equal(seen, expected)


def test_the_pilot_is_small_evenly_spread_and_all_rows_where_they_are_few(rows):
    assert rows.pilot(600) is rows
    n = 400_000
    large = ArrayRows(Matrix(np.arange(n, dtype=float)[:, None]), np.zeros(n), np.ones(n, bool))
    seen = np.concatenate(
        list(large.pilot(50_000).map(lambda block: block.features[:, 0], columns=[0]))
    )
    assert 45_000 < len(seen) < 60_000
    assert seen.min() < 0.05 * n
    assert seen.max() > 0.85 * n


def test_a_gathered_pilot_has_the_same_rows_in_fewer_blocks(rows):
    some = replace(rows, kept=rows.outcome > -1.0).pilot(300)
    together = some.gathered([2, 0])
    assert together.n_blocks == 1 < some.n_blocks

    def values(block):
        return np.column_stack((block.features, block.outcome, block.selected, block.weight))

    for columns in ([2, 0], [0]):
        seen, expected = (
            np.concatenate(list(part.map(values, columns=columns))) for part in (together, some)
        )
        np.testing.assert_array_equal(seen, expected)
    assert rows.gathered([0]) is rows


FRAMES = {
    "pandas": lambda X, y: (X, y),
    "polars": lambda X, y: (pl.from_pandas(X), pl.Series(y.to_numpy()).fill_nan(None)),
    "pyarrow": lambda X, y: (pa.Table.from_pandas(X), pa.chunked_array([pa.array(y.to_numpy())])),
    "pandas-nullable": lambda X, y: (X.convert_dtypes(), y.convert_dtypes()),
    "mixed dtypes": lambda X, y: (X.astype({"v5": bool}), y),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_kind_give_the_same_fit_with_their_names(kind, simulated):
    frame = pd.DataFrame(simulated.X.copy(), columns=[f"v{i}" for i in range(6)])
    frame["v5"] = (frame["v5"] > 0).astype(int)
    expected = Heckman(["v0", "v1"]).fit(frame, simulated.y)
    X, outcome = FRAMES[kind](frame, pd.Series(simulated.y))
    model = Heckman(["v0", "v1"]).fit(X, outcome)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-13)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.prediction_features_ == ["v0", "v1"]
    np.testing.assert_allclose(model.predict(X), expected.predict(frame), rtol=1e-12)


def test_a_null_in_a_polars_feature_is_a_missing_value(simulated):
    frame = pl.DataFrame({f"v{i}": simulated.X[:, i] for i in range(6)})
    frame = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col("v2")).alias("v2")
    )
    with pytest.raises(ValueError, match=r"'v2' \(1 NaN, 0 inf\)"):
        Heckman(["v0"]).fit(frame, simulated.y)


def test_float64_arrays_are_read_without_a_copy(simulated):
    table = read_features(simulated.X, "Heckman")
    block = table.source(range(6)).take(0, 10, range(6))
    assert np.shares_memory(block, simulated.X)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, object])
def test_other_dtypes_are_computed_in_double_precision(dtype):
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(500, 3)) > 0).astype(float)
    X[:, 0] = rng.integers(0, 2 if dtype is bool else 9, 500)
    y = np.where(rng.normal(size=500) + X[:, 1] > 0, X[:, 0] + rng.normal(size=500), np.nan)
    expected = Heckman([0]).fit(X, y)
    model = Heckman([0]).fit(X.astype(dtype), y)
    assert model.coef_.dtype == np.float64
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)


def test_a_shared_context_ends_when_the_last_thread_leaves():
    events = []

    @contextmanager
    def setting():
        events.append("start")
        yield
        events.append("end")

    shared = SharedContext(setting)
    for _ in range(2):
        with shared:
            with shared:
                events.append("inside")
            assert events == ["start", "inside"]
        assert events == ["start", "inside", "end"]
        events.clear()


def test_threads_that_evaluate_formulas_leave_the_warning_filters_alone():
    """A thread that restored its own copy could undo what the caller does about warnings."""
    frame = pd.DataFrame({"x": np.arange(9.0), "region": list("abcabcabc")})
    before = list(warnings.filters)
    for _ in in_order(
        lambda _: matrix_of(Formula("1 + x + region"), frame, "selection"), range(60), threads=6
    ):
        pass
    assert list(warnings.filters) == before

"""A Heckman probit has the same digits wherever its rows are and however classes are written."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from heckmanfa import HeckmanProbit, predict_parquet, scan_parquet, to_device
from heckmanfa.errors import InputError

NAMES = ["a", "b", "c"]
PREDICTION = ["a", "b"]


N = 410


def make_rows(n=N):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=NAMES)
    u, e = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=n).T
    seen = (0.3 + 0.8 * X["a"] + 0.7 * X["c"] + u > 0).to_numpy()
    true = (0.2 + X["a"] - 0.5 * X["b"] + e > 0).to_numpy()
    return X, true, seen


X, TRUE, SEEN = make_rows()
CODES = pd.Series(TRUE * 1.0).where(SEEN)
TEXT = pd.Series(np.where(TRUE, "yes", "no")).where(SEEN)
FRAME = X.assign(y=TEXT, code=CODES, flag=CODES.astype("boolean"))
# The last of the row groups below has no selected row.
FRAME.loc[400:, ["y", "code", "flag"]] = None
TENSOR = torch.from_numpy(X.to_numpy().copy())


@pytest.fixture(scope="module")
def reference():
    return HeckmanProbit(PREDICTION).fit(X, FRAME["code"])


def standard_errors(model):
    return np.sqrt(np.diag(model.vcov()))


def assert_same(model, reference, classes):
    difference = (
        np.abs(model.params_[:-1] - reference.params_[:-1]) / standard_errors(reference)[:-1]
    )
    assert difference.max() < 1e-8
    assert abs(model.rho_ - reference.rho_) < 1e-8 * standard_errors(reference)[-1]
    np.testing.assert_allclose(model.vcov(), reference.vcov(), rtol=1e-8, atol=1e-14)
    assert model.log_likelihood_ == pytest.approx(reference.log_likelihood_, rel=1e-13)
    # Formulas count rows that lack a regressor.
    assert model.row_counts_ | reference.row_counts_ == model.row_counts_
    assert model.classes_.tolist() == list(classes)


def by_partitions(y):
    lazy = dd.from_pandas(FRAME, npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        return HeckmanProbit(PREDICTION).fit(lazy[NAMES], lazy[y])


def by_chunks(y):
    features = da.from_array(X.to_numpy(), chunks=(350, 3))
    with dask.config.set(scheduler="synchronous"):
        return HeckmanProbit([0, 1]).fit(features, da.from_array(_objects(y), chunks=350))


def _objects(y):
    return FRAME[y].to_numpy(dtype=object, na_value=None)


ARROW, POLARS = pa.Table.from_pandas(FRAME), pl.from_pandas(FRAME)
WAYS = {
    "numpy": lambda y: HeckmanProbit([0, 1]).fit(X.to_numpy(), FRAME[y].to_numpy(dtype=object)),
    "polars": lambda y: HeckmanProbit(PREDICTION).fit(POLARS[NAMES], POLARS[y]),
    "arrow": lambda y: HeckmanProbit(PREDICTION).fit(ARROW.select(NAMES), ARROW[y]),
    "chunks": by_chunks,
    "torch": lambda y: HeckmanProbit([0, 1]).fit(TENSOR, _objects(y)),
    "formula": lambda y: HeckmanProbit.from_formula(f"{y} ~ a + b", "~ a + b + c", FRAME),
}
CLASSES = {"y": ("no", "yes"), "code": (0, 1), "flag": (False, True)}


@pytest.mark.parametrize(
    ("way", "y"), [*((way, "y") for way in WAYS), ("torch", "code"), ("formula", "flag")]
)
def test_rows_in_any_room_give_the_same_digits(way, y, reference):
    assert_same(WAYS[way](y), reference, CLASSES[y])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ways") / "rows.parquet"
    FRAME.to_parquet(path, row_group_size=200)
    return path


@pytest.mark.parametrize("y", ["code", "flag"])
def test_files_of_numbers_and_flags_give_the_same_digits(y, path, reference):
    model = HeckmanProbit(PREDICTION).fit(scan_parquet(path, y, NAMES))
    assert_same(model, reference, CLASSES[y])


def test_files_give_the_same_digits_on_any_number_of_threads(path, reference, monkeypatch):
    rows = scan_parquet(path, "y", NAMES)
    models = []
    for threads in ("1", "3"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", threads)
        models.append(HeckmanProbit(PREDICTION).fit(rows))
    assert_same(models[0], reference, ("no", "yes"))
    np.testing.assert_array_equal(models[0].params_, models[1].params_)
    np.testing.assert_array_equal(models[0].vcov(), models[1].vcov())
    # Inference reads the same rows again, by the classes of the fit.
    np.testing.assert_allclose(
        models[0].profile_rho(rows, grid=[0.0, 0.5]).tidy(),
        reference.profile_rho(X, FRAME["code"], grid=[0.0, 0.5]).tidy(),
        rtol=1e-9,
    )


def test_weights_clusters_and_who_is_selected_are_columns_of_files_too(tmp_path):
    rng = np.random.default_rng(1)
    table = FRAME.assign(
        chosen=FRAME["code"].notna(),
        weight=rng.uniform(0, 2, len(FRAME)) * (rng.random(len(FRAME)) < 0.95),
        village=rng.integers(0, 60, len(FRAME)),
    )
    # Selected rows without an outcome are left out, and labels of others are not classes.
    table.loc[table.index[table["chosen"]][:7], "y"] = None
    table.loc[~table["chosen"], "y"] = "not asked"
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    roles = {"selected": "chosen", "sample_weight": "weight", "groups": "village"}
    rows = scan_parquet(tmp_path / "rows.parquet", "y", NAMES, **roles)
    options = {"cov_type": "cluster", "weight_kind": "sampling"}
    there = HeckmanProbit(PREDICTION, **options).fit(rows)
    given = {name: table[column] for name, column in roles.items()}
    here = HeckmanProbit(PREDICTION, **options).fit(X, table["y"], **given)
    assert_same(there, here, ("no", "yes"))
    assert here.row_counts_["left_out_outcome_missing"] == 7
    assert here.row_counts_["left_out_zero_weight"] > 10


def test_partitions_give_the_same_digits_and_the_same_bits_on_threads(reference):
    alone = by_partitions("y")
    assert_same(alone, reference, ("no", "yes"))
    lazy = dd.from_pandas(FRAME, npartitions=3)
    with dask.config.set(scheduler="threads", num_workers=3):
        model = HeckmanProbit(PREDICTION).fit(lazy[NAMES], lazy["y"])
    np.testing.assert_array_equal(model.params_, alone.params_)


def test_tensors_of_booleans_and_tensors_with_names_are_rows_too(reference):
    y = torch.tensor(FRAME["code"].to_numpy())
    named = HeckmanProbit(PREDICTION).fit(to_device(X, "cpu"), y)
    assert_same(named, reference, (0, 1))
    seen = torch.tensor(FRAME["code"].notna().to_numpy())
    flags = HeckmanProbit([0, 1]).fit(TENSOR, torch.tensor(TRUE), selected=seen)
    assert_same(flags, reference, (False, True))


@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected"])
def test_dask_predicts_lazily(kind, reference):
    model, lazy = WAYS["numpy"]("y"), da.from_array(X.to_numpy(), chunks=(350, 3))
    frames = WAYS["polars"]("y")
    with dask.config.set(scheduler="synchronous"):
        chunked = model.predict_proba(lazy, kind)
        assert chunked.chunks == ((350, N - 350), (2,))
        np.testing.assert_allclose(chunked.compute(), reference.predict_proba(X, kind), rtol=1e-9)
        table = frames.predict_proba(dd.from_pandas(X, npartitions=3), kind)
        assert list(table.columns) == ["no", "yes"]
        words = frames.predict(dd.from_pandas(X, npartitions=3), kind).compute()
    assert words.index.equals(X.index)
    np.testing.assert_array_equal(words, frames.predict(X, kind))
    np.testing.assert_array_equal(model.predict(lazy, kind).compute(), frames.predict(X, kind))


def test_dask_gives_selection_both_and_scores(reference):
    lazy = dd.from_pandas(FRAME, npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        model = HeckmanProbit.from_formula("y ~ a + b", "~ a + b + c", FRAME)
        for method in ("predict_selection", "predict_joint"):
            given = getattr(model, method)(lazy).compute()
            np.testing.assert_allclose(given, getattr(reference, method)(X), rtol=1e-9)
        assert model.score(lazy) == reference.score(X, FRAME["code"])
        assert model.log_likelihood(lazy) == pytest.approx(reference.log_likelihood_, rel=1e-12)


@pytest.mark.parametrize("y", CLASSES)
def test_files_of_predictions_have_probabilities_and_classes(y, tmp_path, reference):
    table = FRAME.copy()
    table.loc[[1, 5], "a"] = np.nan
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=250)
    model = WAYS["polars"](y)
    given = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    with pytest.warns(UserWarning, match=f"2 of {N} rows"):
        predict_parquet(
            model, *given, kind="selected", return_interval="confidence", extrapolation=True
        )
    found = pd.read_parquet(given[1])
    names = ["probability_selected", "low", "high", "predicted_selected", "extrapolates"]
    assert list(found) == names
    assert found.index[found["probability_selected"].isna()].tolist() == [1, 5]
    assert found["predicted_selected"].isna().equals(found["probability_selected"].isna())
    whole = found.drop(index=[1, 5])
    rows = X.drop(index=[1, 5])
    probability = reference.predict_proba(rows, kind="selected")[:, 1]
    np.testing.assert_allclose(whole["probability_selected"], probability, rtol=1e-9)
    assert (whole["low"] < probability).all()
    assert (probability < whole["high"]).all()
    assert whole["predicted_selected"].tolist() == model.predict(rows, "selected").tolist()


def test_files_of_other_probabilities(tmp_path, reference):
    X.to_parquet(tmp_path / "rows.parquet")
    given = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    predict_parquet(reference, *given, kind="joint")
    assert list(pd.read_parquet(given[1])) == ["probability_joint"]
    np.testing.assert_allclose(
        pd.read_parquet(given[1])["probability_joint"], reference.predict_joint(X), rtol=1e-9
    )
    predict_parquet(reference, *given, kind="selection", force=True)
    assert list(pd.read_parquet(given[1])) == ["predicted_selection"]
    with pytest.raises(InputError, match="'prediction' has no meaning for a class"):
        predict_parquet(reference, *given, return_interval="prediction", force=True)

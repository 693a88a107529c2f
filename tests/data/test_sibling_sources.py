"""Treatments, ordered outcomes, t errors and series from any source: the model of memory."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.siblings import FEATURES, MODELS, clone, fitted, outcome_of, rows

import heckmanfa
from heckmanfa import scan
from heckmanfa.errors import InputError

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
duckdb = pytest.importorskip("duckdb")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
torch = pytest.importorskip("torch")

KINDS: dict[str, dict[str, Any]] = {
    "frequency": {"sample_weight": "weight"},
    "sampling and clusters": {
        "sample_weight": "weight",
        "groups": "team",
        "cov_type": "cluster",
        "weight_kind": "sampling",
    },
}
SCANS = ("parquet", "polars", "duckdb", "pyarrow")
ROLES = ("sample_weight", "groups")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return rows()


@functools.cache
def in_memory(name: str, kind: str) -> Any:
    return fitted(name, rows(), **KINDS[kind])


@pytest.fixture(scope="module")
def stored(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("siblings") / "rows.parquet"
    table.to_parquet(path, row_group_size=210)
    connection = duckdb.connect()
    connection.register("rows", table)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    return {
        "parquet": path,
        "polars": pl.from_pandas(table).lazy(),
        "duckdb": connection.sql("SELECT * FROM rows"),
        "pyarrow": ds.dataset(arrow),
        "connection": connection,
    }


def _scanned(stored: Any, name: str, kind: str) -> Any:
    roles = {role: KINDS[kind][role] for role in ROLES if role in KINDS[kind]}
    if name.startswith("treatment"):
        roles["selected"] = "d"
    return scan(stored, outcome_of(name), FEATURES, **roles)


def _parameters(kind: str) -> dict[str, Any]:
    return {key: value for key, value in KINDS[kind].items() if key not in ROLES}


def agree(found: Any, expected: Any) -> None:
    """Within 1e-8 standard errors, and the same standard errors to 1e-8."""
    for mine, theirs in (
        (found.tidy(), expected.tidy()),
        *([(found.effects(), expected.effects())] if hasattr(found, "effects") else []),
    ):
        errors = theirs["std_error"].to_numpy()
        unit = np.where(errors > 0, errors, np.abs(theirs["estimate"]))
        gap = (np.abs(mine["estimate"] - theirs["estimate"]) / unit).dropna()
        assert len(gap) >= 4
        assert gap.max() <= 1e-8
        np.testing.assert_allclose(mine["std_error"], errors, rtol=1e-8)
    assert list(found.row_counts_.values()) == list(expected.row_counts_.values())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("parquet", "frequency"),
        *((source, "sampling and clusters") for source in SCANS),
        # The same blocks of rows, without the column of groups.
        *(pytest.param(source, "frequency", marks=pytest.mark.study) for source in SCANS[1:]),
    ],
)
def test_scanned_rows_give_the_model_of_memory(
    stored: dict[str, Any], name: str, kind: str, source: str
) -> None:
    model = clone(MODELS[name]).set_params(**_parameters(kind))
    agree(model.fit(_scanned(stored[source], name, kind)), in_memory(name, kind))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_partitions_of_dask_give_the_model_of_memory(
    table: pd.DataFrame, name: str, kind: str
) -> None:
    with dask.config.set(scheduler="synchronous"):
        lazy = dd.from_pandas(table, npartitions=2)
        model = fitted(name, lazy, **KINDS[kind])
        agree(model, in_memory(name, kind))
        target = ("selected",) if name == "series" else ()
        predicted = model.predict(lazy[FEATURES], *target)
        assert isinstance(predicted, dd.Series)
        own = in_memory(name, kind).predict(table[FEATURES], *target)
        np.testing.assert_allclose(predicted.compute(), own, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_tensors_give_the_model_of_memory(
    table: pd.DataFrame, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tensor(columns: Any) -> Any:
        return torch.tensor(table[columns].to_numpy())

    options = _parameters(kind)
    roles = {role: tensor(KINDS[kind][role]) for role in ROLES if role in KINDS[kind]}
    if name.startswith("treatment"):
        roles["treated"] = tensor("d")
        options |= {"outcome_features": [0, 1], "treatment_features": [0, 2]}
    else:
        options["prediction_features"] = [0, 1]
    model = clone(MODELS[name]).set_params(**options)
    X, y = tensor(FEATURES), tensor(outcome_of(name))
    expected = in_memory(name, kind)
    target = ("selected",) if name == "series" else ()
    own = expected.predict(table[FEATURES], *target)

    def refuse(values: Any, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a tensor on a GPU is no array")

    # NumPy takes a tensor of this machine's memory in silence, and one on a GPU never.
    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    with pytest.raises(TypeError, match="no array"):
        np.exp(X)
    model.fit(X, y, **roles)
    predicted = model.predict(X, *target)
    if name.startswith("treatment"):
        model.effects(X, sample_weight=1)
    else:
        model.margins(X, sample_weight=1)
    monkeypatch.undo()
    agree(model, expected)
    np.testing.assert_allclose(np.asarray(predicted), own, rtol=1e-9)


def test_effects_of_rows_elsewhere_are_those_of_the_fit_or_refused(
    table: pd.DataFrame, stored: dict[str, Any]
) -> None:
    """`effects()` reads nothing again; other rows have to be in memory, and the error says so."""
    name = "treatment, separate, ML"
    source = _scanned(stored["parquet"], name, "frequency")
    model = clone(MODELS[name]).fit(source)
    with pytest.raises(InputError, match="not in memory"):
        model.effects(source, sample_weight=1)
    with dask.config.set(scheduler="synchronous"):
        lazy = dd.from_pandas(table, npartitions=2)
        with pytest.raises(InputError, match=r"X\.compute"):
            model.effects(lazy[FEATURES], sample_weight=1)
        own = model.predict(table[FEATURES], regime=1, given=0)
        there = model.predict(lazy[FEATURES], regime=1, given=0).compute()
    np.testing.assert_allclose(there, own, rtol=1e-12)
    # Files are predicted by the model of one regime.
    batches = heckmanfa.predict_batches(model.of_regime(1), stored["parquet"], kind="unselected")
    written = pa.Table.from_batches(batches).column("predicted_unselected").to_numpy()
    np.testing.assert_allclose(written, own, rtol=1e-12)

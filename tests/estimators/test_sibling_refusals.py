"""Rows that ordered outcomes, t errors and series cannot use: refused however they are passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.siblings import BOTH, FEATURES, MODELS, clone, fitted, outcome_of, rows

from heckmanfa import scan
from heckmanfa.errors import (
    AllObservedWarning,
    ConstantOutcomeError,
    InputError,
    NoOutcomeError,
    NotIdentifiedError,
    SeparationError,
    TooFewRowsError,
)

pl = pytest.importorskip("polars")

Change = Callable[[pd.DataFrame], pd.DataFrame]


def _formula(name: str, table: pd.DataFrame) -> Any:
    model = MODELS[name]
    options = {
        key: value for key, value in model.get_params().items() if key in ("method", "errors")
    }
    equations = f"{outcome_of(name)} ~ {' + '.join(BOTH)}", f"~ {' + '.join(FEATURES)}"
    return type(model).from_formula(*equations, table, **options)


def _scan(name: str, table: pd.DataFrame) -> Any:
    lazy = pl.from_pandas(table, nan_to_null=True).lazy()
    return clone(MODELS[name]).fit(scan(lazy, outcome_of(name), FEATURES))


WAYS: dict[str, Callable[[str, pd.DataFrame], Any]] = {
    "fit": fitted,
    "formula": _formula,
    "scan": _scan,
}


def _class_of_one(table: pd.DataFrame) -> pd.DataFrame:
    highest = table.index[table["rating"] == 4]
    return table.assign(rating=table["rating"].mask(table.index.isin(highest[1:]), 3.0))


def _decides(outcome: str) -> Change:
    def change(table: pd.DataFrame) -> pd.DataFrame:
        side = np.where(table[outcome].notna(), 1.0, -1.0)
        return table.assign(z=side + 0.1 * table["z"].abs())

    return change


def _few(table: pd.DataFrame) -> pd.DataFrame:
    seen = table["y"].notna()
    return pd.concat([table[~seen], table[seen][:4]], ignore_index=True)


BAD: list[tuple[str, str, Change, type[Exception], str]] = [
    ("a class of one row", "ordered", _class_of_one, TooFewRowsError, "class 4.*1 selected row"),
    (
        "one class",
        "ordered",
        lambda t: t.assign(rating=t["rating"] * 0 + 1),
        ConstantOutcomeError,
        "one class, 1",
    ),
    (
        "an amount",
        "ordered",
        lambda t: t.assign(rating=t["rating"] + 0.5 * t["x1"]),
        InputError,
        "use Heckman for an amount",
    ),
    (
        "everyone rated",
        "ordered",
        lambda t: t.assign(rating=t["rating"].fillna(1.0)),
        InputError,
        "no outcome is missing among the 500 rows",
    ),
    ("what decides who is rated", "ordered", _decides("rating"), SeparationError, "'z' separates"),
    *(
        case
        for name in ("t errors", "series")
        for case in (
            ("no outcome", name, lambda t: t.assign(y=np.nan), NoOutcomeError, "500 rows"),
            ("what decides", name, _decides("y"), SeparationError, "'z' separates"),
            ("few rows", name, _few, TooFewRowsError, "need more than 4 selected rows"),
            (
                "a constant",
                name,
                lambda t: t.assign(y=t["y"] * 0 + 3),
                ConstantOutcomeError,
                "is 3 in all",
            ),
        )
    ),
    (
        "nothing missing",
        "t errors",
        lambda t: t.assign(y=t["everyone"]),
        NotIdentifiedError,
        "no outcome is missing among the 500 rows",
    ),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "change", "error", "words"),
    [bad[1:] for bad in BAD],
    ids=[f"{bad[1]}: {bad[0]}" for bad in BAD],
)
def test_bad_rows_are_refused(
    way: str, name: str, change: Change, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"(?s){words}"):
        WAYS[way](name, change(rows(500)))


@pytest.mark.parametrize("way", WAYS)
def test_a_series_without_a_missing_outcome_is_least_squares_with_a_warning(way: str) -> None:
    with pytest.warns(AllObservedWarning, match="no outcome is missing among the 500 rows"):
        WAYS[way]("series", rows(500).assign(y=lambda t: t["everyone"]))

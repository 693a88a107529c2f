"""The bundled Mroz data are complete and unaltered."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa.datasets import load_mroz

# Column sums of Mroz87, of the R package sampleSelection; wage over the women who worked.
R_SUMS = {
    "lfp": 428,
    "hours": 557654,
    "kids5": 179,
    "kids618": 1019,
    "age": 32031,
    "educ": 9252,
    "wage": 1788.0477,
    "repwage": 1392.85,
    "hushrs": 1707255,
    "husage": 33976,
    "huseduc": 9406,
    "huswage": 5634.0806,
    "faminc": 17379688,
    "mtr": 511.184,
    "motheduc": 6966,
    "fatheduc": 6633,
    "unem": 6493.5,
    "city": 484,
    "exper": 8005,
    "nwifeinc": 15157.10966158,
}


def test_has_753_women_and_22_columns(mroz: pd.DataFrame) -> None:
    assert mroz.shape == (753, 22)
    assert list(mroz.columns) == [*R_SUMS, "lwage", "expersq"]


def test_wage_is_missing_exactly_where_a_woman_did_not_work(mroz: pd.DataFrame) -> None:
    worked = mroz["lfp"] == 1
    assert worked.sum() == 428
    for column in ("wage", "lwage"):
        assert (mroz[column].notna() == worked).all()
    assert ((mroz["hours"] > 0) == worked).all()


def test_nothing_else_is_missing(mroz: pd.DataFrame) -> None:
    others = mroz.drop(columns=["wage", "lwage"])
    assert np.isfinite(others.to_numpy(dtype=float)).all()


def test_every_column_is_numeric(mroz: pd.DataFrame) -> None:
    assert all(kind in "if" for kind in (dtype.kind for dtype in mroz.dtypes))


@pytest.mark.parametrize("column", R_SUMS)
def test_column_sums_are_those_of_r(mroz: pd.DataFrame, column: str) -> None:
    assert mroz[column].sum() == pytest.approx(R_SUMS[column], rel=1e-13)


def test_figures_carry_no_single_precision_noise(mroz: pd.DataFrame) -> None:
    for column in ("wage", "repwage", "huswage", "mtr"):
        observed = mroz[column].dropna()
        assert (observed == observed.round(4)).all()


def test_derived_columns_follow_from_the_others(mroz: pd.DataFrame) -> None:
    np.testing.assert_allclose(mroz["lwage"], np.log(mroz["wage"]), rtol=1e-15)
    assert (mroz["expersq"] == mroz["exper"] ** 2).all()
    earned = mroz["wage"].fillna(0.0) * mroz["hours"]
    np.testing.assert_allclose(mroz["nwifeinc"], (mroz["faminc"] - earned) / 1000, atol=4e-6)


def test_changing_what_was_loaded_does_not_change_the_next_load() -> None:
    first = load_mroz()
    first.loc[0, "age"] = 99
    assert load_mroz().loc[0, "age"] == 32


def test_is_found_with_the_documented_names() -> None:
    assert load_mroz.__doc__ is not None
    for column in load_mroz():
        assert f"| {column} " in load_mroz.__doc__

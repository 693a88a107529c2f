"""Subpopulations and replicate weights of rows that are read in passes, beside those in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from heckmanfa import (
    Heckman,
    Survey,
    scan,
)

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
FEATURES = ["educ", "exper"]
SUBPOP = Survey("region", "village", "w", fpc="n_villages", nest=True, subpop="old")
JACKKNIFE = Survey(weights="w", replicate_weights="rw*", replicate_kind="jackknife", mse=True)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """700 people in villages of regions, with jackknife weights, some of which are zero."""
    source, n = np.random.default_rng(8), 700
    region, village = source.integers(0, 4, n), source.integers(0, 3, n)
    x = source.normal(size=(n, 2))
    first = source.normal(size=n) + 0.4 * source.normal(size=(4, 3))[region, village]
    wage = 1.0 + x[:, 0] + 0.6 * first + source.normal(size=n)
    frame = pd.DataFrame(x, columns=FEATURES)
    frame["wage"] = np.where(x @ [0.8, 0.6] + 0.4 + first > 0, wage, np.nan)
    w = source.uniform(1, 3, n).round(2)
    # A village is outside of the subpopulation, and a few rows have no weight.
    old = (source.uniform(size=n) < 0.7) & ~((region == 1) & (village == 2))
    w[:5] = 0.0
    frame = frame.assign(region=region, village=village, w=w, n_villages=30 + region, old=old)
    for number in range(8):
        gone = (3 * region + village) % 8 == number
        # Rows without weight in the fit have some here, and are not used.
        frame[f"rw{number}"] = np.where(gone, 0.0, (w + (w == 0)) * 8 / 7)
    return frame


@pytest.fixture(scope="module")
def place(people, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    people.to_parquet(path, row_group_size=90)
    return str(path)


def agree(found, wanted) -> None:
    """Estimates and covariances differ by less than 1e-8 standard errors."""
    errors = np.sqrt(np.diag(wanted.fit_.covariance))
    gaps = found.fit_.covariance - wanted.fit_.covariance
    assert np.abs(gaps / np.outer(errors, errors)).max() < 1e-8
    for kind in ("coef_", "selection_coef_"):
        np.testing.assert_allclose(getattr(found, kind), getattr(wanted, kind), atol=1e-8)
    assert found.fit_.design == wanted.fit_.design
    assert found.row_counts_ == wanted.row_counts_
    assert found.fit_.n_obs == wanted.fit_.n_obs


BOTH = Survey(**{**vars(SUBPOP), "replicate_weights": "rw*", "replicate_kind": "bootstrap"})


@pytest.mark.parametrize("survey", [SUBPOP, JACKKNIFE, BOTH], ids=["subpop", "jackknife", "both"])
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_rows_in_passes_give_the_numbers_of_memory(survey, method, people, place):
    dd = pytest.importorskip("dask.dataframe")
    model = Heckman(["educ"], cov_type=survey, method=method)
    columns = survey.columns(people.columns)
    X = people[[*FEATURES, *columns]]
    wanted = clone(model).fit(X, people["wage"])
    assert ("left_out_subpopulation" in wanted.row_counts_) == (survey.subpop is not None)
    agree(clone(model).fit(scan(place, "wage", FEATURES, survey=survey)), wanted)
    parts = dd.from_pandas(people, npartitions=4)
    agree(clone(model).fit(parts[[*FEATURES, *columns]], parts["wage"]), wanted)
    frame = pl.from_pandas(people[[*columns, *FEATURES, "wage"]]).lazy()
    agree(clone(model).fit(scan(frame, "wage", survey=survey)), wanted)

"""Subpopulations and replicate weights of rows that are read in passes, beside those in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanOrdered,
    HeckmanProbit,
    Survey,
    TreatmentModel,
    scan,
)
from heckmanfa.errors import HeckmanfaError, InputError

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


BOTH = Survey(**vars(SUBPOP) | {"replicate_weights": "rw*", "replicate_kind": "bootstrap"})


def in_memory(people, model, y=None, **passed):
    columns = model.cov_type.columns(people.columns)
    return clone(model).fit(people[[*FEATURES, *columns]], people["wage"] if y is None else y)


@pytest.mark.parametrize("survey", [SUBPOP, JACKKNIFE, BOTH], ids=["subpop", "jackknife", "both"])
def test_rows_in_passes_give_the_numbers_of_memory(survey, people, place):
    model = Heckman(["educ"], cov_type=survey)
    wanted = in_memory(people, model)
    assert ("left_out_subpopulation" in wanted.row_counts_) == (survey.subpop is not None)
    agree(clone(model).fit(scan(place, "wage", FEATURES, survey=survey)), wanted)
    columns = survey.columns(people.columns)
    # Whatever the survey names is not a feature.
    frame = pl.from_pandas(people[[*columns, *FEATURES, "wage"]]).lazy()
    agree(clone(model).fit(scan(frame, "wage", survey=survey)), wanted)


@pytest.mark.parametrize("survey", [SUBPOP, BOTH], ids=["subpop", "both"])
def test_partitions_give_the_numbers_of_memory(survey, people):
    dd = pytest.importorskip("dask.dataframe")
    model = Heckman(["educ"], cov_type=survey)
    parts = dd.from_pandas(people, npartitions=3)
    X = parts[[*FEATURES, *survey.columns(people.columns)]]
    agree(clone(model).fit(X, parts["wage"]), in_memory(people, model))


def test_degrees_of_freedom_are_those_of_the_subpopulation(people, tmp_path):
    # Within it, two of the four replicates are the same.
    alike = people["rw1"].where(people["old"], people["rw2"])
    rows = people.assign(alike=alike)
    names = ("rw1", "rw2", "rw4", "alike")
    survey = Survey(weights="w", subpop="old", replicate_weights=names, replicate_kind="bootstrap")
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    model = Heckman(["educ"], cov_type=survey)
    wanted = in_memory(rows, model)
    assert wanted.fit_.design.df == 2
    agree(
        clone(model).fit(scan(tmp_path / "rows.parquet", "wage", FEATURES, survey=survey)), wanted
    )


MODELS = {
    "ml": Heckman(["educ"], method="ml"),
    "probit": HeckmanProbit(["educ"]),
    "ordered": HeckmanOrdered(["educ"]),
    "treatment": TreatmentModel(["educ"]),
    "best subset": HeckmanBestSubset(),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_reads_surveys_in_passes(kind, people, tmp_path):
    few = ("rw1", "rw2", "rw5")
    survey = Survey(weights="w", subpop="old", replicate_weights=few, replicate_kind="bootstrap")
    seen, passed = people["wage"].notna(), {}
    y = people["wage"]
    if kind == "probit":
        y = (people["wage"] > 1).where(seen).astype(float)
    if kind == "ordered":
        y = pd.cut(people["wage"], 3, labels=False)
    if kind == "treatment":
        y, passed = people["wage"].fillna(np.sin(people["rw1"])), {"selected": "seen"}
    rows = people.assign(wage=y, seen=seen)
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=250)
    model = clone(MODELS[kind]).set_params(cov_type=survey)
    X = rows[[*FEATURES, *survey.columns(rows.columns)]]
    wanted = clone(model).fit(X, y, **({"treated": seen} if passed else {}))
    found = clone(model).fit(
        scan(tmp_path / "rows.parquet", "wage", FEATURES, survey=survey, **passed)
    )
    ratio = np.sqrt(np.diag(found.fit_.covariance) / np.diag(wanted.fit_.covariance))
    np.testing.assert_allclose(ratio, 1.0, atol=1e-7)
    assert found.row_counts_ == wanted.row_counts_
    assert found.fit_.design == wanted.fit_.design


def test_other_models_than_the_fitted_one_are_said_to_be_linearized(people, place):
    model = Heckman(["educ"], cov_type=JACKKNIFE)
    rows = scan(place, "wage", FEATURES, survey=JACKKNIFE)
    found = clone(model).fit(rows)
    wanted = in_memory(people, model)
    X = people[[*FEATURES, *JACKKNIFE.columns(people.columns)]]
    for method in ("what_if", "uncertainty_interval"):
        made = getattr(found, method)(rows)
        assert "other standard errors are linearized" in " ".join(str(made).split())
        mine = made.tidy().select_dtypes("number")
        theirs = getattr(wanted, method)(X, people["wage"]).tidy()[mine.columns]
        # Five rows without weight are units in memory, of 700, and nothing in passes.
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize(
    ("changed", "survey", "match"),
    [
        ({"old": [None] * 3 + [True] * 697}, SUBPOP, "'old' must be boolean .* in 3 rows"),
        ({"old": 2}, SUBPOP, "'old' must be boolean .*700 rows hold something else, such as '2'"),
        ({"old": "maybe"}, SUBPOP, "subpop names the column 'old'.* it holds 'maybe'"),
        ({"old": False}, SUBPOP, "no row of the fit is in the subpopulation of 'old'"),
        ({"region": None}, SUBPOP, "'region' or 'n_villages' is missing in 700 rows"),
        ({"w": np.nan}, SUBPOP, "'w' holds 700 negative, missing"),
        ({"w": 0.0}, JACKKNIFE, "'w' is zero in every row"),
        ({"rw3": -1.0}, JACKKNIFE, "'rw3' holds 700 negative"),
        ({"rw3": 0.0}, JACKKNIFE, "'rw3' is zero in every row"),
        ({"rw3": "a"}, JACKKNIFE, "replicate_weights names the column 'rw3', which must hold num"),
        ({f"rw{k}": 1.0 for k in range(8)}, JACKKNIFE, "the 8 replicate weights are multiples of"),
        (
            {},
            Survey(strata="region", weights="w"),
            "the column of their units: name it as psu",
        ),
    ],
)
def test_rows_in_passes_whose_design_cannot_be_are_refused(
    changed, survey, match, people, tmp_path
):
    people.assign(**changed).to_parquet(tmp_path / "people.parquet", row_group_size=200)

    def fitted():
        rows = scan(tmp_path / "people.parquet", "wage", FEATURES, survey=survey)
        return Heckman(["educ"], cov_type=survey).fit(rows)

    with pytest.raises(HeckmanfaError, match=match):
        fitted()


def test_a_scan_with_a_survey_is_fitted_with_that_survey(place):
    rows = scan(place, "wage", FEATURES, survey=SUBPOP)
    for cov_type in (None, "robust"):
        with pytest.raises(InputError, match="scanned with the design of a survey"):
            Heckman(["educ"], cov_type=cov_type).fit(rows)
    with pytest.raises(InputError, match="the scan has to name the columns of the survey"):
        Heckman(["educ"], cov_type=JACKKNIFE).fit(rows)
    with pytest.raises(InputError, match="leave sample_weight out"):
        scan(place, "wage", FEATURES, survey=SUBPOP, sample_weight="w")
    with pytest.raises(InputError, match="'rw1' is a column of the survey's design"):
        scan(place, "wage", ["educ", "rw1"], survey=JACKKNIFE)

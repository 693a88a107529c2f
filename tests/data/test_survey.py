"""Columns of a survey's design: what may hold them, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from heckmanfa import Heckman, Survey
from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
N = 300
DESIGN = Survey("region", "village", "w", nest=True)
REPLICATED = Survey(weights="w", replicate_weights="rw*", replicate_kind="jackknife")


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    source = np.random.default_rng(4)
    x = source.normal(size=(N, 2))
    first = source.normal(size=N)
    wage = x[:, 0] + 0.6 * first + source.normal(size=N)
    frame = pd.DataFrame(x, columns=["educ", "exper"])
    frame["wage"] = np.where(x @ [0.4, 0.9] + first > 0, wage, np.nan)
    frame["region"], frame["village"] = source.integers(0, 3, (2, N))
    frame["w"] = source.integers(1, 4, N)
    unit = (3 * frame["region"] + frame["village"]) % 5
    weights = {f"rw{k}": np.where(unit == k, 0.0, frame["w"] * 1.25) for k in range(5)}
    return frame.assign(old=source.uniform(size=N) < 0.7, there=40, **weights)


def errors(people, survey=DESIGN, kind=lambda frame: frame, **passed):
    X = people[["educ", "exper", *survey.columns(people.columns)]]
    model = Heckman(["educ"], cov_type=survey).fit(kind(X), people["wage"], **passed)
    return model.tidy()["std_error"].to_numpy(dtype=float)


@pytest.mark.parametrize(
    "changed",
    [
        {"village": float},
        {"village": "Int64"},
        {"village": "category"},
        {"village": str},
        {"region": "string"},
        {"region": bool},
        {"w": "Float64"},
        {"w": "int64[pyarrow]"},
        {"w": "category"},
        {"old": "boolean"},
        {"old": int},
        {"old": "bool[pyarrow]"},
    ],
    ids=str,
)
def test_columns_of_any_type_hold_the_same_design(changed, people):
    people = people.assign(region=people["region"] > 0)
    survey = Survey("region", "village", "w", nest=True, subpop="old")
    np.testing.assert_allclose(
        errors(people.astype(changed), survey), errors(people, survey), rtol=1e-12
    )


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
@pytest.mark.parametrize("survey", [DESIGN, REPLICATED], ids=["design", "replicates"])
def test_frames_of_any_library_hold_the_same_design(kind, survey, people):
    np.testing.assert_allclose(errors(people, survey, kind), errors(people, survey), rtol=1e-12)


def test_tensors_have_replicate_weights(people):
    torch = pytest.importorskip("torch")
    X = torch.tensor(people[["educ", "exper"]].to_numpy())
    beside = people[[*REPLICATED.columns(people.columns)]]
    model = Heckman([0], cov_type=REPLICATED).fit(X, people["wage"].to_numpy(), groups=beside)
    found = model.tidy()["std_error"].to_numpy(dtype=float)
    np.testing.assert_allclose(found, errors(people, REPLICATED), rtol=1e-8)


@pytest.mark.parametrize("kind", ["float", "Int64", "category", "string", "datetime64[ns]"])
@pytest.mark.parametrize("name", ["region", "village"])
def test_a_missing_unit_or_stratum_is_refused_in_any_type(kind, name, people):
    gaps = people[name].astype(kind).where(people.index > 2)
    with pytest.raises(InputError, match=f"'{name}' is missing in 3 rows"):
        errors(people.assign(**{name: gaps}))


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"w": pd.Timestamp("2020-01-01")}, "'w' must hold numbers"),
        ({"w": pd.Timedelta(1, "D")}, "'w' must hold numbers"),
        ({"w": "2"}, "'w' must hold numbers"),
        ({"w": 1j}, "'w' must hold numbers"),
        ({"w": pd.NA}, "'w' holds 300 negative, missing"),
        ({"w": np.inf}, "'w' holds 300 negative, missing"),
    ],
)
def test_what_is_not_a_weight_is_refused(changed, match, people):
    with pytest.raises(HeckmanfaError, match=match):
        errors(people.assign(**changed))


def test_a_census_has_no_sampling_error(people):
    survey = Survey("region", "village", "w", fpc="there", nest=True)
    for drawn in (1.0, 3):
        with pytest.raises(InputError, match="every unit of every stratum was drawn"):
            errors(people.assign(there=drawn), survey)
    # One stratum drawn as a whole adds nothing; infinite ones are drawn with replacement.
    some = errors(people.assign(there=np.where(people["region"] == 0, 1.0, 0.1)), survey)
    assert np.isfinite(some[:5]).all()
    np.testing.assert_allclose(
        errors(people.assign(there=np.inf), survey), errors(people), rtol=1e-12
    )


def test_two_columns_of_one_name_are_refused(people):
    for name, what in (("w", "X"), ("educ", "X")):
        twice = pd.concat(
            [people[["educ", "exper", "region", "village", "w"]], people[[name]]], axis=1
        )
        with pytest.raises(InputError, match=f"{what} has two columns named '{name}'"):
            Heckman(["educ"], cov_type=DESIGN).fit(twice, people["wage"])
    beside = people[["region", "village", "w", "w"]]
    with pytest.raises(InputError, match="groups has two columns named 'w'"):
        Heckman(["educ"], cov_type=DESIGN).fit(
            people[["educ", "exper"]], people["wage"], groups=beside
        )


def test_a_design_of_other_rows_is_refused(people):
    beside = people[["region", "village", "w"]]
    X = people[["educ", "exper"]]
    for groups, match in (
        (beside.iloc[::-1], "groups has the row labels of X in another order"),
        (beside.iloc[:50], "groups has 50 rows, but X has 300"),
    ):
        with pytest.raises(InputError, match=match):
            Heckman(["educ"], cov_type=DESIGN).fit(X, people["wage"], groups=groups)
        with pytest.raises(InputError, match=match.replace("but X", "but .")):
            Heckman.from_formula(
                "wage ~ educ", "~ educ + exper", people, cov_type=DESIGN, groups=groups
            )


def test_a_pattern_does_not_stand_for_other_columns_of_the_design(people):
    renamed = people.rename(columns={"w": "rw"})
    found = errors(renamed, Survey(**vars(REPLICATED) | {"weights": "rw"}))
    np.testing.assert_allclose(found, errors(people, REPLICATED), rtol=1e-12)
    names = tuple(f"rw{k}" for k in range(5))
    for weights in (names, ["rw[0-2]", "rw3", "rw4"], ["rw4", "rw*"]):
        survey = Survey(**vars(REPLICATED) | {"replicate_weights": weights})
        np.testing.assert_allclose(errors(people, survey), found, rtol=1e-12)
        assert {*survey.replicate_columns(people.columns)} == {*names}
    # A name in brackets is a name where there is such a column.
    bracketed = people.rename(columns={"rw0": "rw[0]"})
    survey = Survey(**vars(REPLICATED) | {"replicate_weights": ["rw[0]", *names[1:]]})
    np.testing.assert_allclose(errors(bracketed, survey), found, rtol=1e-12)


def test_formulas_refuse_a_pattern_that_takes_their_variables(people):
    for wage, score in (("wage", "rwanda"), ("rwage", "educ")):
        frame = people.rename(columns={"wage": wage}).assign(rwanda=1.0 + people["old"])
        with pytest.raises(InputError, match=r"'rw(anda|age)'"):
            Heckman.from_formula(f"{wage} ~ educ", f"~ exper + {score}", frame, cov_type=REPLICATED)


def test_replicate_weights_that_do_not_vary_are_refused(people):
    same = people.assign(**{f"rw{k}": people["w"] * (k + 1.0) for k in range(5)})
    for survey in (REPLICATED, Survey(**vars(REPLICATED) | vars_of_design())):
        with pytest.raises(InputError, match="5 replicate weights are multiples of one column"):
            errors(same, survey)


def vars_of_design():
    return {"strata": "region", "psu": "village", "nest": True}


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"replicate_weights": ["rw1", "rw1"]}, InputError, "names 'rw1' twice"),
        ({"replicate_weights": []}, InputError, "names no column"),
        ({"replicate_weights": ["rw1", "w"]}, InputError, "names 'w', which is another column"),
        ({"replicate_weights": 5}, InputTypeError, "takes the names of columns"),
        ({"weights": None}, InputError, "replicate_weights need weights"),
        ({"rscales": ["a"] * 5}, InputTypeError, "rscales takes a number for each"),
        ({"rscales": [np.nan] * 5}, InputError, "rscales must be zero or more"),
        ({"rscales": 0.5}, InputTypeError, "rscales takes a number for each"),
        ({"replicate_kind": "brr", "fay": "a"}, InputTypeError, "fay must be a number"),
        ({"replicate_kind": "brr", "fay": np.nan}, InputError, "fay is a factor"),
        ({"scale": np.nan}, InputError, "scale must be above zero"),
        ({"mse": "no"}, InputTypeError, "mse must be True or False"),
        ({"nest": "no"}, InputTypeError, "nest must be True or False"),
    ],
)
def test_what_replicate_weights_cannot_be_is_refused(options, kind, match, people):
    with pytest.raises(kind, match=match):
        errors(people, Survey(**vars(REPLICATED) | options))

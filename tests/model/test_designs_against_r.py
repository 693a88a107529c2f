"""Covariances by the design of a survey and by two clusterings, against R's survey and sandwich."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, Survey

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.FewClustersWarning")
ROWS = Path(__file__).parents[1] / "oracles" / "r_survey_rows.csv.gz"
UNITS = {"strata": "stratum", "psu": "unit", "weights": "weight", "nest": True}
SURVEYS = {
    "strata and units": Survey(**UNITS),
    "finite populations": Survey(**UNITS, fpc="units_there"),
    "strata of rows": Survey(strata="stratum", weights="weight"),
    "single certainty": Survey("stratum", "lone", "weight", single_psu="certainty"),
    "single centered": Survey("stratum", "lone", "weight", single_psu="centered"),
    "subpopulation": Survey(**UNITS, fpc="units_there", subpop="rural"),
}
REPLICATES = {
    "jackknife": {"replicate_weights": "jackknife*", "replicate_kind": "jackknife"},
    "brr": {"replicate_weights": "brr*", "replicate_kind": "brr"},
    "fay": {"replicate_weights": "fay*", "replicate_kind": "brr", "fay": 0.3},
}
ABOUT = {"about the mean": False, "about the estimate": True}
COEFFICIENTS = [
    *(("selection", term) for term in ("Intercept", "x", "z")),
    *(("prediction", term) for term in ("Intercept", "x")),
]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.read_csv(ROWS)


def fit(rows, method, survey):
    columns = survey.columns(rows.columns)
    model = Heckman(["x"], ["x", "z"], method=method, cov_type=survey)
    return model.fit(rows[["x", "z", *columns]], rows["y"])


def compare(model, method, expected, tolerance):
    """Compare estimates in standard errors, covariances as correlations, and atanh rho."""
    terms = [*COEFFICIENTS, *([("errors", "imr")] if method == "two-step" else [])]
    n = len(terms)
    covariance = np.array(expected["vcov"])
    table = model.tidy().set_index(["equation", "term"])
    own = model.vcov().loc[terms, terms].to_numpy()
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(
        (table.loc[terms, "estimate"] - expected["estimate"][:n]) / scale[:n], 0, atol=1e-6
    )
    np.testing.assert_allclose(
        own / np.outer(scale[:n], scale[:n]), _correlations(covariance, n), atol=tolerance
    )
    if method == "ml":
        assert model.fit_.atanh_rho == pytest.approx(
            (expected["estimate"][6], scale[6]), rel=tolerance
        )


def _correlations(covariance, n):
    scale = np.sqrt(np.diag(covariance))
    return (covariance / np.outer(scale, scale))[:n, :n]


@pytest.mark.parametrize("method", ["ml", "two-step"])
@pytest.mark.parametrize("design", SURVEYS)
def test_the_covariance_of_a_design_equals_that_of_r(design, method, rows, oracle):
    expected = oracle("r_survey")[f"{method} {design}"]
    model = fit(rows, method, SURVEYS[design])
    compare(model, method, expected, 1e-6)
    assert model.fit_.design.df == expected["df"]


@pytest.mark.parametrize("method", ["ml", "two-step"])
@pytest.mark.parametrize("about", ABOUT)
@pytest.mark.parametrize("kind", REPLICATES)
def test_replicate_weights_give_the_covariance_of_r(kind, about, method, rows, oracle):
    numbers = oracle("r_survey")
    details = REPLICATES[kind] | {"mse": ABOUT[about]}
    if kind == "jackknife":
        details["rscales"] = numbers["rscales"]
    survey = Survey(weights="weight", **details)
    expected = numbers[f"{method} {kind} {about}"]
    model = fit(rows, method, survey)
    compare(model, method, expected, 1e-5)
    assert model.fit_.design.df == numbers["replicates df"][kind]


@pytest.mark.parametrize("method", ["ml", "two-step"])
def test_two_clusterings_give_the_covariance_of_sandwich(method, rows, oracle):
    expected = oracle("r_survey")[f"{method} two clusterings"]
    model = Heckman(["x"], ["x", "z"], method=method, cov_type="cluster")
    model.fit(rows[["x", "z"]], rows["y"], groups=rows[["firm", "year"]])
    compare(model, method, expected, 1e-6)

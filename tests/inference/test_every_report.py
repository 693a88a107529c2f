"""What every report of a fitted model promises: weights, formulas, rows, and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.errors import InputError, NotIdentifiedError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

PREDICTION = [0, 2, 3]
FORMULAS = (
    "lwage ~ educ + exper + I(exper**2)",
    "lfp ~ nwifeinc + educ + exper + I(exper**2) + age + kids5 + kids618",
)
SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
# Numbers of each report; a frame alone are the rows of a model with formulas.
REPORTS = {
    "uncertainty_interval": lambda model, *rows, **given: model.uncertainty_interval(
        (-0.2, 0.6)
    ).path(),
    "what_if": lambda model, *rows, **given: model.what_if(*rows, **given).coefficients(),
    "exclusion_test": lambda model, *rows, **given: model.exclusion_test(*rows, **given).tidy(),
    "exclusion_test, ml": lambda model, *rows, **given: model.exclusion_test(
        *rows, method="ml", **given
    ).tidy(),
    "specification_tests": lambda model, *rows, **given: model.specification_tests(
        *rows, **given
    ).tidy(),
    "profile_rho": lambda model, *rows, **given: model.profile_rho(*rows, grid=3, **given).tidy(),
    "profile": lambda model, *rows, **given: model.profile(
        *rows, term="educ" if "educ" in map(str, model.prediction_features_) else 0, grid=3, **given
    ).tidy(),
    "margins": lambda model, X, *_, **given: model.margins(X, **given).tidy(),
    "bootstrap": lambda model, *rows, **given: model.bootstrap(
        *rows, n_boot=3, random_state=0, **given
    ).tidy(),
}
OF_ROWS = [name for name in REPORTS if name not in ("uncertainty_interval", "margins")]


# Relative tolerance where two fits differ by rounding alone.
CLOSE = dict.fromkeys(REPORTS, 1e-8) | {"uncertainty_interval": 1e-9, "specification_tests": 1e-9}


def numbers(table: pd.DataFrame) -> np.ndarray:
    return table.select_dtypes("number").to_numpy(float)


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "bootstrap"])
def test_frequency_weights_are_repeated_rows(name, simulated):
    X, y = simulated.X, simulated.y
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    many = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    once = Heckman(PREDICTION).fit(X, y, sample_weight=weight)
    again = Heckman(PREDICTION).fit(*many)
    given = {} if name == "uncertainty_interval" else {"sample_weight": weight}
    found, expected = REPORTS[name](once, X, y, **given), REPORTS[name](again, *many)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=CLOSE[name], atol=1e-12)


@pytest.mark.parametrize("name", REPORTS)
def test_a_model_from_formulas_takes_its_frame_alone(name, mroz):
    formulas = Heckman.from_formula(*FORMULAS, mroz)
    X, y = mroz[SELECTION], mroz["lwage"]
    plain = Heckman(["educ", "exper", "expersq"]).fit(X, y)
    found = REPORTS[name](formulas, mroz)
    if name != "margins":  # Those of formulas are of their variables.
        expected = REPORTS[name](plain, X, y)
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=CLOSE[name], atol=1e-12)
    if name in OF_ROWS:
        with pytest.raises(InputError, match="frame"):
            REPORTS[name](formulas, mroz, y)


@pytest.mark.parametrize("name", [name for name in OF_ROWS if name != "what_if"])
def test_rows_that_are_not_those_of_the_fit_are_refused(name, simulated):
    model = Heckman(PREDICTION, cov_type="robust").fit(simulated.X, simulated.y)
    for rows in ((simulated.X[:-1], simulated.y[:-1]), (simulated.X, 2 * simulated.y)):
        with pytest.raises(InputError, match="rows"):
            REPORTS[name](model, *rows)


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "margins"])
def test_nothing_is_said_where_no_outcome_was_missing(name, simulated):
    model = Heckman(PREDICTION).fit(simulated.X, simulated.complete_y)
    with pytest.raises(NotIdentifiedError):
        REPORTS[name](model, simulated.X, simulated.complete_y)


# A bootstrap searches in every replicate.
@pytest.mark.parametrize("name", [name for name in REPORTS if name != "bootstrap"])
def test_a_search_is_reported_as_the_model_of_what_it_chose(name, simulated):
    X, y = simulated.X, simulated.y
    search = HeckmanBestSubset().fit(X, y)
    plain = Heckman(search.prediction_features_).fit(X, y)
    found, expected = REPORTS[name](search, X, y), REPORTS[name](plain, X, y)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=CLOSE[name], atol=1e-12)

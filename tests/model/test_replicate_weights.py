"""Replicate weights: the covariance of estimates over many fits with other weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import linalg

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanProbit, Survey
from heckmanfa.errors import HeckmanfaError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
FEATURES = ["educ", "exper"]
BRR = [f"brr{number}" for number in range(8)]
DELETED = [f"jk{number}" for number in range(12)]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """600 people in 2 units of each of 6 strata, with two sets of replicate weights."""
    source, n = np.random.default_rng(3), 600
    stratum, unit = source.integers(0, 6, n), source.integers(0, 2, n)
    x = source.normal(size=(n, 2))
    first = source.normal(size=n) + 0.4 * source.normal(size=(6, 2))[stratum, unit]
    wage = 1.0 + x[:, 0] + 0.6 * first + source.normal(size=n)
    frame = pd.DataFrame(x, columns=FEATURES)
    frame["wage"] = np.where(x @ [0.8, 0.6] + 0.4 + first > 0, wage, np.nan)
    frame = frame.assign(stratum=stratum, unit=unit, w=source.uniform(1, 3, n))
    half = linalg.hadamard(8)[:, 1:7]
    for number, name in enumerate(BRR):
        # In each stratum, one half counts twice and the other not.
        frame[name] = frame["w"] * (1 + half[number, stratum] * np.where(unit == 0, 1, -1))
    for number, name in enumerate(DELETED):
        own, other = stratum == number // 2, unit == number % 2
        frame[name] = frame["w"] * np.where(own, np.where(other, 0.0, 2.0), 1.0)
    return frame.assign(old=source.uniform(size=n) < 0.7)


def fit(people, survey, method="two-step", **options):
    columns = survey.columns(people.columns)
    model = Heckman(["educ"], cov_type=survey, method=method, **options)
    return model.fit(people[[*FEATURES, *columns]], people["wage"])


def estimates(people, weight, method, estimator=Heckman):
    """All estimates in the order of a covariance, from a fit with these weights."""
    used = weight > 0
    options = {"method": method} if estimator is Heckman else {}
    model = estimator(["educ"], cov_type="robust", weight_kind="sampling", **options)
    y = people["wage"] if estimator is Heckman else people["class"]
    model.fit(people.loc[used, FEATURES], y[used], sample_weight=weight[used])
    return model.tidy().dropna(subset="std_error")["estimate"].to_numpy()


@pytest.mark.parametrize("method", ["two-step", "ml"])
@pytest.mark.parametrize("mse", [False, True])
def test_brr_is_the_mean_square_over_a_loop_of_fits(method, mse, people):
    values = np.array([estimates(people, people[name], method) for name in BRR])
    centre = estimates(people, people["w"], method) if mse else values.mean(axis=0)
    expected = (values - centre).T @ (values - centre) / 8
    survey = Survey(weights="w", replicate_weights="brr*", replicate_kind="brr", mse=mse)
    model = fit(people, survey, method)
    np.testing.assert_allclose(model.fit_.covariance, expected, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(
        model.tidy().dropna(subset="std_error")["std_error"], np.sqrt(np.diag(expected)), rtol=1e-5
    )
    # The weights are a constant and six contrasts of strata.
    assert (model.fit_.design.n_replicates, model.fit_.design.df) == (8, 6)
    assert "8 replicate weights" in str(model.summary())


def test_the_interval_of_rho_comes_from_replicates_on_its_own_scale(people):
    values = np.arctanh([estimates(people, people[name], "ml")[-2] for name in BRR])
    survey = Survey(weights="w", replicate_weights="brr*", replicate_kind="brr")
    estimate, error = fit(people, survey, "ml").fit_.atanh_rho
    assert error == pytest.approx(values.std(), rel=1e-5)
    assert estimate == pytest.approx(np.arctanh(estimates(people, people["w"], "ml")[-2]), rel=1e-6)


def test_fay_scale_and_rscales_multiply_squares(people):
    plain = fit(people, Survey(weights="w", replicate_weights=BRR, replicate_kind="brr"))
    for options, factor in (
        ({"replicate_kind": "brr", "fay": 0.3}, 1 / 0.7**2),
        ({"replicate_kind": "bootstrap"}, 1.0),
        ({"replicate_kind": "jackknife"}, 7.0),
        ({"replicate_kind": "jackknife", "rscales": [0.5] * 8}, 4.0),
        ({"replicate_kind": "bootstrap", "scale": 2.0}, 16.0),
    ):
        model = fit(people, Survey(weights="w", replicate_weights=BRR, **options))
        np.testing.assert_allclose(
            model.fit_.covariance, plain.fit_.covariance * factor, rtol=1e-12
        )


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_the_jackknife_is_close_to_the_linearized_covariance(method, people):
    survey = Survey(
        *("stratum", "unit", "w"),
        nest=True,
        replicate_weights=DELETED,
        replicate_kind="jackknife",
        rscales=[0.5] * 12,
        mse=True,
    )
    replicated = fit(people, survey, method)
    linear = fit(people, Survey("stratum", "unit", "w", nest=True), method)
    ratio = replicated.tidy()["std_error"] / linear.tidy()["std_error"]
    np.testing.assert_allclose(ratio.dropna(), 1.0, atol=0.12)
    # The design is known, so it gives the degrees of freedom.
    assert replicated.fit_.design.df == linear.fit_.design.df == 6


def test_replicates_of_a_subpopulation_are_of_its_rows(people):
    survey = Survey(weights="w", replicate_weights="brr*", replicate_kind="brr", subpop="old")
    some = people[people["old"]]
    plain = Survey(weights="w", replicate_weights="brr*", replicate_kind="brr")
    np.testing.assert_allclose(
        fit(people, survey).fit_.covariance, fit(some, plain).fit_.covariance, rtol=1e-9
    )


def test_replicates_estimate_the_features_of_the_fit_in_every_family(people):
    survey = Survey(weights="w", replicate_weights=BRR, replicate_kind="brr")
    X = people[[*FEATURES, "w", *BRR]]
    binary = people.assign(**{"class": (people["wage"] > 1).where(people["wage"].notna())})
    values = np.array([estimates(binary, binary[name], "ml", HeckmanProbit) for name in BRR])
    about = values - values.mean(axis=0)
    model = HeckmanProbit(["educ"], cov_type=survey).fit(X, binary["class"])
    np.testing.assert_allclose(model.fit_.covariance, about.T @ about / 8, rtol=1e-4, atol=1e-8)
    best = HeckmanBestSubset(cov_type=survey).fit(X, people["wage"])
    named = Heckman(best.prediction_features_, cov_type=survey).fit(X, people["wage"])
    np.testing.assert_allclose(best.fit_.covariance, named.fit_.covariance, rtol=1e-9)


def test_replicate_weights_that_cannot_be_used_are_refused(people):
    for options, match in (
        ({"replicate_weights": "rw*"}, "no column is named like 'rw\\*'"),
        ({"replicate_weights": ["brr0"]}, "one column"),
        ({"replicate_weights": ["brr0", "brr9"]}, "'brr9'"),
        (
            {"replicate_weights": BRR, "rscales": [1.0]},
            "8 replicate",
        ),
    ):
        survey = Survey(**({"weights": "w", "replicate_kind": "brr"} | options))
        with pytest.raises(HeckmanfaError, match=match):
            Heckman(["educ"], cov_type=survey).fit(people.drop(columns="wage"), people["wage"])
    negative = people.assign(brr3=-1.0)
    survey = Survey(weights="w", replicate_weights=BRR, replicate_kind="brr")
    with pytest.raises(InputError, match="'brr3' holds 600 negative"):
        fit(negative, survey)
    # Nobody with a wage has a weight there.
    observed = people.assign(brr3=np.where(people["wage"].notna(), 0.0, 1.0))
    with pytest.raises(HeckmanfaError, match="with replicate weights 4"):
        fit(observed, survey)
    with pytest.raises(InputError, match="made of many"):
        HeckmanAverage(cov_type=survey).fit(people[[*FEATURES, "w", *BRR]], people["wage"])


def test_weights_of_fays_method_need_his_factor(people):
    half = people.assign(**{name: 0.5 * (people["w"] + people[name]) for name in BRR})
    survey = Survey(weights="w", replicate_weights="brr*", replicate_kind="brr")
    with pytest.raises(InputError, match=r"not those of plain BRR.*fay"):
        fit(half, survey)
    # Half as far from the weights, and four times the scale.
    fays = Survey(weights="w", replicate_weights="brr*", replicate_kind="brr", fay=0.5)
    ratio = fit(half, fays).tidy()["std_error"] / fit(people, survey).tidy()["std_error"]
    assert ratio.dropna().between(0.7, 1.4).all()


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_a_replicate_without_missing_outcomes_is_refused_by_its_number(method, people):
    spoiled = people.assign(brr3=people["brr3"].where(people["wage"].notna(), 0.0))
    survey = Survey(weights="w", replicate_weights="brr*", replicate_kind="brr")
    with pytest.raises(HeckmanfaError, match="with replicate weights 4"):
        fit(spoiled, survey, method)

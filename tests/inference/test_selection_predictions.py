"""Probabilities of selection with their errors, and expected outcomes, against other routes."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanProbit
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import AllObservedWarning, InputError, NotIdentifiedError

Z = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
MROZ = load_mroz()
X, Y = MROZ[Z], MROZ["lwage"]
HIGH = pd.Series(np.where(MROZ["wage"] >= 4, 1.0, 0.0)).where(MROZ["wage"].notna())
ROWS = X[:40]
WEIGHT = 1.0 + np.arange(len(X)) % 3


def by_hand(model, rows, quantile, terms=Z):
    """Index, its standard error and limits from the printed estimates and `vcov`."""
    table = model.tidy().set_index(["equation", "term"]).loc["selection"]
    design = np.column_stack([np.ones(len(rows)), rows[terms]])
    names = ["Intercept", *terms]
    index = design @ table.loc[names, "estimate"].to_numpy()
    covariance = model.vcov().loc["selection", "selection"].loc[names, names].to_numpy()
    error = np.sqrt(np.einsum("ij,jk,ik->i", design, covariance, design))
    return index, error, np.column_stack([index - quantile * error, index + quantile * error])


@pytest.mark.parametrize(
    ("cls", "options", "fit_options"),
    [
        (Heckman, {}, {}),
        (Heckman, {"method": "ml", "cov_type": "robust"}, {}),
        (Heckman, {"cov_type": "cluster"}, {"groups": np.arange(len(X)) % 50}),
        (
            Heckman,
            {"method": "ml", "cov_type": "robust", "weight_kind": "sampling"},
            {"sample_weight": WEIGHT},
        ),
        (HeckmanBestSubset, {"never": ["kids5"]}, {}),
        (HeckmanAverage, {"prediction_features": Z[1:4]}, {}),
        (HeckmanProbit, {}, {}),
    ],
)
def test_errors_of_the_index_carry_over_to_the_probability(cls, options, fit_options):
    options = {"prediction_features": Z[1:4], **options} if "never" not in options else options
    y = HIGH if cls is HeckmanProbit else Y
    model = cls(**options).fit(X, y, **fit_options)
    quantile = stats.norm.ppf(0.95)
    if options.get("cov_type") == "cluster":
        quantile = stats.t.ppf(0.95, model.n_clusters_ - 1)
    index, error, ends = by_hand(model, ROWS, quantile)
    asked = {"return_interval": "confidence", "return_std": True, "conf_level": 0.9}
    link = model.predict_selection(ROWS, scale="link", **asked)
    chance = model.predict_selection(ROWS, **asked)
    for ours, expected in zip(link, (index, ends, error), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-9)
    expected = (stats.norm.cdf(index), stats.norm.cdf(ends), stats.norm.pdf(index) * error)
    for ours, theirs in zip(chance, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_array_equal(chance[0], model.predict_selection(ROWS))
    values, std = model.predict_selection(ROWS, return_std=True)
    np.testing.assert_array_equal(std, chance[2])
    values, interval = model.predict_selection(ROWS, return_interval="confidence", conf_level=0.9)
    np.testing.assert_array_equal(interval, chance[1])
    assert values.shape == (40,)


def test_a_likelihood_averages_its_selection_equations():
    model = HeckmanAverage(prediction_features=Z[1:4], method="ml").fit(X, Y)
    members, rows = model.fit_.average.members, ROWS.to_numpy()
    expected = np.zeros(len(rows))
    for weight, one in zip(members.weights, members.estimates, strict=True):
        expected += weight * stats.norm.cdf(one[4] + rows @ one[5:12])
    found, ends = model.predict_selection(ROWS, return_interval="confidence")
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.all((ends[:, 0] < found) & (found < ends[:, 1]))


def test_an_average_has_the_expected_outcomes_of_each_assignment():
    """Each assignment's own covariance, with gradients by differences."""
    model = HeckmanAverage(prediction_features=Z[1:4]).fit(X, Y)
    mixture, rows = model.fit_.average.interval_members, ROWS[:6].to_numpy()
    # Intercept, three slopes, beta_H, then the selection equation, as the form has them.
    order = [0, 1, 2, 3, 12, *range(4, 12)]
    design = np.column_stack([np.ones(6), rows])
    place, step = [0, 2, 3, 4], 1e-5

    def value(theta):
        index = design @ theta[5:]
        mean = design[:, place] @ theta[:4]
        return stats.norm.cdf(index) * mean + theta[4] * stats.norm.pdf(index)

    def spread(values_of):
        found = []
        for i in range(len(mixture.weights)):
            theta = mixture.estimates[i, order]
            ups = [values_of(theta + step * unit) for unit in np.eye(len(theta))]
            downs = [values_of(theta - step * unit) for unit in np.eye(len(theta))]
            jacobian = (np.array(ups) - np.array(downs)).T / (2 * step)
            variance = np.einsum(
                "ij,jk,ik->i", jacobian, mixture.covariance(i)[np.ix_(order, order)], jacobian
            )
            found.append((values_of(theta), np.sqrt(variance)))
        return (np.array(part) for part in zip(*found, strict=True))

    values, errors = spread(value)
    _, ends = model.predict(ROWS[:6], "expected", "confidence")
    within = stats.norm.cdf(ends[None], values[..., None], errors[..., None])
    below = np.tensordot(mixture.weights, within, axes=1)
    # Rows take assignments together.
    np.testing.assert_allclose(below, np.tile([0.025, 0.975], (6, 1)), atol=3e-3)
    table = model.margins(ROWS[:6], kind="expected", features=["nwifeinc"]).tidy()

    def slope(theta):
        along = stats.norm.pdf(design @ theta[5:]) * theta[5 + 1]
        mean = design[:, place] @ theta[:4] - theta[4] * (design @ theta[5:])
        return np.array([np.mean(along * mean)])

    values, errors = spread(slope)
    within = stats.norm.cdf(table[["ci_low", "ci_high"]].to_numpy(), values, errors)
    np.testing.assert_allclose(mixture.weights @ within, [0.025, 0.975], atol=1e-3)


def test_binary_outcomes_have_the_interval_of_both_together():
    model = HeckmanProbit(Z[1:4]).fit(X, HIGH)
    values, limits = model.predict_joint(ROWS, "confidence")
    np.testing.assert_array_equal(values, model.predict_joint(ROWS))
    chance = model.predict_selection(ROWS) * model.predict_proba(ROWS, "selected")[:, 1]
    np.testing.assert_allclose(values, chance, rtol=1e-10)
    assert np.all((limits[:, 0] < values) & (values < limits[:, 1]))
    for method in (model.predict, model.predict_proba, model.predict_log_proba):
        with pytest.raises(InputError, match=r"use predict_joint\(X\)"):
            method(ROWS, kind="expected")
    with pytest.raises(InputError, match="meaning"):
        model.predict_joint(ROWS, "prediction")


def test_formulas_and_rows_without_a_regressor():
    model = Heckman.from_formula("lwage ~ educ", "lfp ~ educ + age + kids5", MROZ)
    holes = MROZ.assign(age=MROZ["age"].where(MROZ.index > 4))
    asked = {"return_interval": "confidence", "return_std": True}
    found = model.predict_selection(holes, missing="nan", **asked)
    _, _, ends = by_hand(model, MROZ, stats.norm.ppf(0.975), ["educ", "age", "kids5"])
    np.testing.assert_allclose(found[1][5:], stats.norm.cdf(ends)[5:], rtol=1e-9)
    assert all(np.isnan(part[:5]).all() for part in found)
    assert np.isnan(model.predict(holes, "expected", missing="nan")[:5]).all()
    assert model.missing_features(holes, "expected").n_missing == 5


def test_misuse_says_what_to_do():
    model = Heckman(Z[1:4]).fit(X, Y)
    for asked, words in (
        ({"scale": "lnik"}, r"'response'.*'link'.*'lnik'.*'link'"),
        ({"return_interval": "prediction"}, "selected"),
        ({"return_interval": "both"}, "'confidence'"),
        ({"return_std": True, "conf_level": 95}, "conf_level"),
    ):
        with pytest.raises(InputError, match=words):
            model.predict_selection(ROWS, **asked)
    with pytest.raises(InputError, match=r"0.*'confidence'"):
        model.predict(ROWS, "expected", "prediction")
    with pytest.warns(AllObservedWarning):
        plain = Heckman(Z[1:4]).fit(X, MROZ["educ"] + MROZ["age"] ** 2)
    assert (plain.predict_selection(ROWS) == 1).all()
    np.testing.assert_array_equal(plain.predict(ROWS, "expected"), plain.predict(ROWS))
    for asked in ({"scale": "link"}, {"return_std": True}, {"return_interval": "confidence"}):
        with pytest.raises(NotIdentifiedError, match="outcome"):
            plain.predict_selection(ROWS, **asked)

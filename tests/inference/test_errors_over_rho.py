"""Standard errors over rho, and beside a model, are of the model's own kind."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanProbit
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError
from heckmanfa.inference.assessment import diagnose_fit
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import effects_of

PREDICTION = [0, 1]
N = 600
KINDS = [
    {"cov_type": "robust"},
    {"cov_type": "cluster"},
    {"cov_type": "robust", "weight_kind": "sampling"},
    {"cov_type": "cluster", "weight_kind": "sampling"},
]


@pytest.fixture(scope="module")
def linear():
    return make_selection(N, 4, prediction_features=PREDICTION, rho=0.5, random_state=3)


@pytest.fixture(scope="module")
def binary():
    return make_selection(
        N, 4, prediction_features=PREDICTION, rho=0.5, outcome_kind="binary", random_state=3
    )


def rows_of(options):
    """Return the groups and weights that a kind of covariance needs."""
    rng = np.random.default_rng(0)
    groups, weight = rng.integers(0, 60, N), rng.uniform(0.5, 2, N)
    given = {"groups": groups} if options["cov_type"] == "cluster" else {}
    return given | ({"sample_weight": weight} if "weight_kind" in options else {})


def prediction_rows(model):
    table = model.tidy()
    return table[table["equation"] == "prediction"].reset_index(drop=True)


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_at_each_rho_they_are_those_of_a_fit_with_that_rho_held(linear, options, method):
    given = rows_of(options)
    model = Heckman(PREDICTION, method=method, **options).fit(linear.X, linear.y, **given)
    classical = Heckman(PREDICTION).fit(linear.X, linear.y)
    for rho in (-0.6, 0.0, 0.8):
        found = model.uncertainty_interval((rho, rho)).path()
        held = prediction_rows(
            Heckman(PREDICTION, rho=rho, **options).fit(linear.X, linear.y, **given)
        )
        for column in ("estimate", "std_error", "ci_low", "ci_high"):
            np.testing.assert_allclose(found[column], held[column], rtol=1e-9)
        other = classical.uncertainty_interval((rho, rho)).path()
        assert np.max(np.abs(found["std_error"] / other["std_error"] - 1)) > 0.01


@pytest.mark.parametrize("options", KINDS[:3], ids=str)
def test_those_of_a_binary_outcome_are_too(binary, options):
    given = rows_of(options)
    model = HeckmanProbit(PREDICTION, **options).fit(binary.X, binary.y, **given)
    found = model.uncertainty_interval(binary.X, binary.y, (-0.6, 0.8), n_grid=2, **given).path()
    for rho, rows in found.groupby("rho"):
        held = HeckmanProbit(PREDICTION, rho=rho, **options).fit(binary.X, binary.y, **given)
        for column in ("estimate", "std_error"):
            np.testing.assert_allclose(rows[column], prediction_rows(held)[column], rtol=1e-5)


def test_clusters_of_a_binary_outcome_must_be_passed(binary):
    given = rows_of(KINDS[1])
    model = HeckmanProbit(PREDICTION, **KINDS[1]).fit(binary.X, binary.y, **given)
    with pytest.raises(InputError, match=r"clusters.*groups"):
        model.uncertainty_interval(binary.X, binary.y)


@pytest.mark.parametrize("options", KINDS[:2], ids=str)
def test_a_conclusion_changes_where_the_interval_of_that_kind_touches_zero(mroz, options):
    groups = np.arange(len(mroz)) // 7 if options["cov_type"] == "cluster" else None
    X = mroz[["educ", "exper", "age", "kids5", "nwifeinc"]]
    model = Heckman(["educ", "exper", "age"], **options).fit(X, mroz["lwage"], groups=groups)
    table = model.uncertainty_interval((-0.9, 0.9)).tidy()
    changes = [(term, rho) for term, row in table.iterrows() for rho in row.iloc[-2:].dropna()]
    assert changes
    for term, rho in changes:
        row = model.uncertainty_interval((rho, rho)).path().iloc[term]
        assert min(abs(row["ci_low"]), abs(row["ci_high"])) < 1e-6 * row["std_error"]


def test_an_average_and_its_diagnostics_have_them(linear):
    model = HeckmanAverage(cov_type="robust").fit(linear.X, linear.y)
    features = [int(column) for column in np.flatnonzero(model.support_)]
    plain = Heckman(features, cov_type="robust").fit(linear.X, linear.y)
    pd.testing.assert_frame_equal(
        model.uncertainty_interval().tidy(), plain.uncertainty_interval().tidy(), rtol=1e-9
    )
    said = [
        one.value
        for one in diagnose_fit(plain.fit_, None, (), None).checks()
        if one.key == "uncertainty"
    ]
    assert "classical" not in said[0]


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_other_exclusions_have_them_given_the_rows(linear, options):
    given = rows_of(options)
    model = Heckman(PREDICTION, **options).fit(linear.X, linear.y, **given)
    without, found = model.what_if(), model.what_if(linear.X, linear.y, **given)
    assert "classical" in str(without)
    assert "classical" not in str(found)
    assert "classical" not in found.findings()[0].value
    for row in found.tidy().itertuples():
        if row.change == "put back":
            column = int(row.feature[1:])
            other = Heckman([*PREDICTION, column], **options).fit(linear.X, linear.y, **given)
            expected = other.tidy().set_index(["equation", "term"]).loc[("prediction", row.feature)]
            assert row.t == pytest.approx(expected["statistic"], rel=1e-9)
            assert row.p_value == pytest.approx(expected["p_value"], rel=1e-9)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_least_squares_beside_the_model_has_them(linear, options):
    given = rows_of(options)
    model = Heckman(PREDICTION, **options).fit(linear.X, linear.y, **given)
    seen = linear.selected
    x = np.column_stack([np.ones(seen.sum()), linear.X[seen][:, PREDICTION]])
    weight = given.get("sample_weight", np.ones(N))
    w = (weight / weight.mean())[seen]
    coef = np.linalg.solve(x.T @ (x * w[:, None]), x.T @ (w * linear.y[seen]))
    scores = x * (w * (linear.y[seen] - x @ coef))[:, None]
    n = N
    if "groups" in given:
        scores = pd.DataFrame(scores).groupby(given["groups"][seen]).sum().to_numpy()
        n = len(np.unique(given["groups"]))
    inverse = np.linalg.inv(x.T @ (x * w[:, None]))
    expected = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse) * n / (n - 1))
    beside = effects_of(model.fit_).least_squares
    found = np.asarray(beside.values)[PREDICTION]
    np.testing.assert_allclose(found[:, 0], coef[1:], rtol=1e-9)
    quantile = distribution_of(model.fit_).quantile(0.95)
    np.testing.assert_allclose((found[:, 2] - found[:, 0]) / quantile, expected[1:], rtol=1e-8)


def test_tests_of_the_assignments_of_an_average_have_them(linear):
    groups = np.arange(N) // 10
    model = HeckmanAverage("bic", cov_type="cluster").fit(linear.X, linear.y, groups=groups)
    plain = HeckmanAverage("bic").fit(linear.X, linear.y)
    found, other = (one.fit_.average.form for one in (model, plain))
    np.testing.assert_allclose(found.estimates, other.estimates, rtol=1e-9)
    errors = [np.sqrt(np.diag(form.covariance))[form.free] for form in (found, other)]
    assert np.max(np.abs(errors[0] / errors[1] - 1)) > 0.05

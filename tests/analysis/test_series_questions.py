"""A question answered by a series in the selection index: no rho and no normal errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

from heckmanfa import Heckman
from heckmanfa.analysis import analyse, compare_methods, methods_compared
from heckmanfa.cli.answer_json import as_json
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaError, InputError, NotIdentifiedError
from heckmanfa.report import render

PREDICT = ["educ", "exper", "expersq"]
FEATURES = [*PREDICT, "age", "kids5", "kids618", "nwifeinc"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return load_mroz()[[*FEATURES, "lwage"]]


def ask(table: Any, **options: Any) -> Any:
    given = {"outcome": "lwage", "method": "series", "predict_with": PREDICT, "n_terms": 3}
    return analyse(table, **(given | options))


@pytest.fixture(scope="module")
def analysis(table: pd.DataFrame) -> Any:
    return ask(table)


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> Heckman:
    fitted: Heckman = Heckman(PREDICT, method="series", n_terms=3)
    return fitted.fit(table[FEATURES], table["lwage"])


def covariance_of(model: Heckman, names: list[str]) -> np.ndarray:
    """The covariance of some error terms, from `vcov`."""
    whole = model.vcov()
    places = [list(whole.index).index(("errors", name)) for name in names]
    return whole.to_numpy()[np.ix_(places, places)]


def test_effects_are_the_coefficients_with_their_robust_errors(analysis, model):
    tidy = model.tidy().set_index(["equation", "term"]).loc["prediction"]
    roles = analysis.roles.set_index("feature")
    for name in PREDICT:
        step = roles.loc[name, "step"]
        assert roles.loc[name, "effect"] == pytest.approx(step * tidy.loc[name, "estimate"])
        assert roles.loc[name, "ci_low"] == pytest.approx(step * tidy.loc[name, "ci_low"])
    assert analysis.errors_kind == "robust"


def test_the_verdict_is_a_joint_test_of_the_terms(analysis, model):
    """A Wald test written out from the estimates and their covariance."""
    names = ["s1", "s2", "s3"]
    cov = covariance_of(model, names)
    values = model.tidy().set_index("term").loc[names, "estimate"].to_numpy()
    statistic = float(values @ np.linalg.solve(cov, values))
    judged = analysis.evidence.judgement
    assert judged.test.chi2 == pytest.approx(statistic, rel=1e-6)
    assert judged.test.p_value == pytest.approx(chi2.sf(statistic, 3), rel=1e-6)
    assert judged.kind == "unknown"
    assert not analysis.evidence.rho.known
    check = next(check for check in analysis.checks if check.key == "series_test")
    assert check.level == "ok"


def test_strong_selection_with_skewed_errors_is_found():
    source = np.random.default_rng(5)
    X = pd.DataFrame(source.normal(size=(2500, 3)), columns=["a", "b", "z"])
    u = source.normal(size=2500)
    error = 0.9 * (u**2 - 1) / 2**0.5 + 0.8 * u + 0.3 * source.normal(size=2500)
    seen = 0.2 + 0.5 * X["a"] + X["z"] + u > 0
    y = (1 + X["a"] + 0.5 * X["b"] + error).where(seen)
    found = analyse(X.assign(y=y), outcome="y", method="series", predict_with=["a", "b"], n_terms=3)
    assert found.evidence.judgement.kind == "yes"
    roles = found.roles.set_index("feature")
    assert roles.loc["a", "ci_low"] < 1 < roles.loc["a", "ci_high"]


def test_the_picture_is_the_series_beside_lambda_of_two_steps(analysis, model, table):
    """Its terms are lambda times Legendre polynomials of 2 Phi - 1; see Newey (2009)."""
    curve = analysis.pictures().correction
    coef = model.tidy().set_index("term").loc[["s1", "s2", "s3"], "estimate"].to_numpy()
    cov = covariance_of(model, ["s1", "s2", "s3"])
    two_steps = Heckman(PREDICT).fit(table[FEATURES], table["lwage"])
    for point in (curve.points[0], curve.points[40], curve.points[-1]):
        u, v = norm.ppf(point.chance), 2 * point.chance - 1
        mills = norm.pdf(u) / norm.cdf(u)
        terms = mills * np.array([1.0, v, (3 * v * v - 1) / 2])
        assert point.value == pytest.approx(float(terms @ coef), rel=1e-8)
        error = float(np.sqrt(terms @ cov @ terms))
        assert point.high - point.value == pytest.approx(norm.ppf(0.975) * error, rel=1e-6)
        assert point.normal == pytest.approx(two_steps.imr_coef_ * mills, rel=1e-8)


def test_levels_are_left_out_unless_the_intercept_is_identified(table, analysis, model):
    quantities = set(analysis.people["quantity"])
    assert quantities == {"selected", "selection"}
    assert "does not identify" in analysis.pictures().people.about
    profile = dict(zip(FEATURES, (12, 10, 100, 40, 1, 0, 20), strict=True))
    X = pd.DataFrame([profile]).astype(float)
    own = ask(table, profile=[profile]).people.set_index("quantity")["estimate"]
    assert own["selected"] == pytest.approx(model.predict(X, kind="selected")[0], rel=1e-9)
    whole = ask(table, intercept="at infinity")
    assert {"anyone", "selected"} <= set(whole.people["quantity"])
    assert next(c for c in whole.checks if c.key == "series_intercept").level == "caution"


def test_json_and_page_have_no_rho_and_the_terms(analysis, model):
    results = json.loads(json.dumps(as_json(analysis)))
    assert results["rho"] is None
    assert results["model"]["outcome_kind"] == "linear"
    assert results["series"]["terms"] == 3
    assert results["selection"]["p_value"] == pytest.approx(
        analysis.evidence.judgement.test.p_value
    )
    page = render(analysis)
    assert "R and Stata have no series estimator" in page
    assert "joint test of the terms of the series" in page


def test_errors_that_are_not_normal_name_the_series_and_t(table):
    """The check of normality of two steps says what to do, and both options can be asked for."""
    source = np.random.default_rng(2)
    n = 1500
    X = pd.DataFrame(source.normal(size=(n, 3)), columns=["a", "b", "z"])
    u = source.normal(size=n)
    error = 0.5 * u + source.standard_t(2.5, size=n)
    y = (1 + X["a"] + error).where(0.3 + X["z"] + u > 0)
    found = analyse(X.assign(y=y), outcome="y", search="none", predict_with=["a", "b"])
    check = next(one for one in found.checks if one.key == "normality_prediction")
    if check.level == "caution":
        words = " ".join(found.model.fit_.family.words.if_not_normal.split())
        assert "series" in words
        assert "errors" in words


REFUSED = {
    "no exclusion": ({"predict_with": FEATURES}, NotIdentifiedError, "needs an exclusion"),
    "too many terms": ({"n_terms": 51}, InputError, "1 to 50 terms"),
    "a search": ({"search": "best-subset"}, InputError, "search is none"),
    "rho held": ({"rho": 0.2}, InputError, "rho"),
    "a start": ({"start": 0.2}, InputError, "start"),
    "t errors": ({"errors": "t"}, InputError, "leave out method='series'"),
    "a logarithm": ({"outcome_transform": "log"}, InputError, "outcome_transform"),
    "classes": ({"outcome_kind": "binary"}, InputError, "two models"),
    "terms without a series": ({"method": "ml"}, InputError, "method='series'"),
    "a typo": ({"predict_with": ["edcu"]}, HeckmanfaError, "mean 'educ'"),
    "another intercept": ({"intercept": "here"}, InputError, "at infinity"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_series_does_not_have_is_refused_with_what_to_do(table, name):
    options, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        ask(table, **options)


def test_a_saved_series_predicts_as_before(table, analysis, model, tmp_path):
    import heckmanfa

    heckmanfa.save(analysis.model, tmp_path / "model.heckmanfa")
    read = heckmanfa.load(tmp_path / "model.heckmanfa")
    np.testing.assert_allclose(
        read.predict(table[FEATURES], kind="selected"),
        model.predict(table[FEATURES], kind="selected"),
        rtol=1e-12,
    )
    with pytest.raises(NotIdentifiedError, match="intercept"):
        read.predict(table[FEATURES])


def test_a_series_is_compared_where_a_feature_is_kept_out(table, monkeypatch):
    def brief(**options):
        found = methods(**options)
        for name in ("Heckman-FA", "Heckman-FA*"):
            found[name].set_params(epochs=20)
        return found

    # Training takes most of the time.
    methods = methods_compared.methods
    monkeypatch.setattr(methods_compared, "methods", brief)
    compared = compare_methods(
        table[FEATURES],
        table["lwage"],
        never=["age", "kids5"],
        estimators=None,
        n_folds=2,
        n_repeats=1,
    )
    row = compared.table.set_index("method").loc["series, all features"]
    assert np.isfinite(row["mse"])
    assert np.isnan(row["rho"])
    # A series does not say what is expected of anyone; others do.
    means = compared.estimates.query("term == 'Mean of everyone'").set_index("method")["estimate"]
    assert "series, all features" not in means.dropna()
    assert {"naive OLS", "two-step, all features"} <= {*means.dropna().index}
    others = [name for name in compared.features if not name.startswith("RU")]
    assert not any({"age", "kids5"} & {*compared.features[name]} for name in others)

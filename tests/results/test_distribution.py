"""What tests and intervals go by: normal, or t where the covariance is clustered."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from heckmanfa import Heckman, HeckmanBestSubset, errors
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import HeckmanfaWarning, InputError, NotIdentifiedError

COLUMNS = ["educ", "exper", "age", "kids5", "nwifeinc"]
PREDICT = COLUMNS[:2]


def clustered(n_clusters, **options):
    """Fit Mroz's data in so many clusters."""
    d = load_mroz()
    groups = np.arange(len(d)) % n_clusters
    model = Heckman(PREDICT, cov_type="cluster", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(d[COLUMNS], d["lwage"], groups=groups), d[COLUMNS], d["lwage"], groups


@pytest.mark.parametrize("method", ["two-step", "ml"])
@pytest.mark.parametrize("n_clusters", [3, 50])
def test_tests_and_intervals_of_coefficients_are_by_t_of_clusters_less_one(n_clusters, method):
    model, *_ = clustered(n_clusters, method=method)
    table = model.tidy(0.9)
    table = table[table["equation"] != "errors"]
    t, df = table["estimate"] / table["std_error"], n_clusters - 1
    np.testing.assert_allclose(table["p_value"], 2 * stats.t.sf(abs(t), df), rtol=1e-12)
    low, high = stats.t.interval(0.9, df, table["estimate"], table["std_error"])
    np.testing.assert_allclose(table[["ci_low", "ci_high"]], np.column_stack([low, high]))
    assert model.n_clusters_ == n_clusters


def test_intervals_of_rho_and_sigma_are_by_t_on_their_own_scales():
    model, *_ = clustered(10, method="ml")
    errors = model.tidy().set_index(["equation", "term"]).loc["errors"]
    centre, spread = model.fit_.atanh_rho
    reach = stats.t.ppf(0.975, 9)
    np.testing.assert_allclose(
        errors.loc["rho", ["p_value", "ci_low", "ci_high"]].to_numpy(float),
        [
            2 * stats.t.sf(abs(centre / spread), 9),
            np.tanh(centre - reach * spread),
            np.tanh(centre + reach * spread),
        ],
    )
    centre, spread = model.fit_.errors["sigma"].transformed
    assert errors.loc["sigma", "ci_high"] == pytest.approx(np.exp(centre + reach * spread))


def test_joint_tests_are_by_f_of_clusters_less_one():
    model, X, y, groups = clustered(12)
    test = model.wald_test("educ = 0, exper = 0, selection.age = 0")
    terms = [("prediction", "educ"), ("prediction", "exper"), ("selection", "age")]
    estimate = model.tidy().set_index(["equation", "term"]).loc[terms, "estimate"].to_numpy()
    covariance = model.vcov().loc[terms, terms].to_numpy()
    chi2 = estimate @ np.linalg.inv(covariance) @ estimate
    assert test.statistic == pytest.approx(chi2 / 3)
    assert test.p_value == pytest.approx(stats.f.sf(chi2 / 3, 3, 11))
    assert (test.df, test.df_denominator) == (3, 11)
    assert test.chi2 == pytest.approx(chi2)
    assert str(test).startswith("F(3, 11) = ")
    # One restriction is the square of a t test.
    one = model.wald_test("educ = 0")
    row = model.tidy().set_index(["equation", "term"]).loc[("prediction", "educ")]
    assert one.p_value == pytest.approx(row["p_value"])
    found = model.diagnostics()
    excluded = found.excluded_wald
    assert excluded.p_value == pytest.approx(stats.f.sf(excluded.statistic, 3, 11))
    table = model.exclusion_test(X, y, groups=groups).tidy()
    np.testing.assert_allclose(
        table["p_value"], stats.f.sf(table["statistic"], table["df"], 11), rtol=1e-12
    )
    assert (table["df_denominator"] == 11).all()


def test_without_clusters_tests_are_by_the_normal_and_chi_squared_distributions():
    d = load_mroz()
    for cov_type in (None, "robust"):
        model = Heckman(PREDICT, cov_type=cov_type).fit(d[COLUMNS], d["lwage"])
        table = model.tidy().dropna()
        z = table["estimate"] / table["std_error"]
        np.testing.assert_allclose(table["p_value"], 2 * stats.norm.sf(abs(z)), rtol=1e-12)
        test = model.wald_test("educ = 0, exper = 0")
        assert test.p_value == pytest.approx(stats.chi2.sf(test.statistic, 2))
        assert test.df_denominator is None
        assert model.n_clusters_ is None


def test_least_squares_in_clusters_has_the_textbook_t_test():
    # No outcome is missing: by hand, as in any text on least squares (CR0 times G / (G - 1)).
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 20)
    x = rng.normal(size=160) + rng.normal(size=8)[groups]
    y = 1 + 0.2 * x + rng.normal(size=8)[groups] + rng.normal(size=160)
    with pytest.warns() as said:
        model = Heckman(cov_type="cluster").fit(x[:, None], y, groups=groups)
    assert any(issubclass(one.category, errors.FewClustersWarning) for one in said)
    Z = np.column_stack([np.ones(160), x])
    bread = np.linalg.inv(Z.T @ Z)
    scores = Z * (y - Z @ (bread @ Z.T @ y))[:, None]
    sums = np.array([scores[groups == g].sum(axis=0) for g in range(8)])
    error = np.sqrt(np.diag(bread @ sums.T @ sums @ bread) * 8 / 7)
    table = model.tidy().iloc[:2]
    np.testing.assert_allclose(table["std_error"], error)
    t = (bread @ Z.T @ y) / error
    np.testing.assert_allclose(table["p_value"], 2 * stats.t.sf(abs(t), 7))


def test_margins_and_intervals_of_predictions_are_by_t():
    model, X, _, _ = clustered(5)
    table = model.margins(X, conf_level=0.9).tidy()
    table = table[table["std_error"] > 0]
    reach = stats.t.ppf(0.95, 4)
    np.testing.assert_allclose(
        table["ci_high"], table["estimate"] + reach * table["std_error"], rtol=1e-10
    )
    np.testing.assert_allclose(
        table["p_value"], 2 * stats.t.sf(abs(table["statistic"]), 4), rtol=1e-10
    )
    few = X.iloc[:4]
    normal, _, _, _ = clustered(5)
    # The same covariance, compared with the normal distribution.
    spec = replace(normal.fit_.spec, cov_type="robust")
    normal._fit = replace(normal.fit_, spec=spec)
    for kind in ("marginal", "selected"):
        _, by_t = model.predict(few, kind, "confidence")
        _, by_z = normal.predict(few, kind, "confidence")
        ratio = np.diff(by_t) / np.diff(by_z)
        np.testing.assert_allclose(ratio, stats.t.ppf(0.975, 4) / stats.norm.ppf(0.975))
        _, by_t = model.predict(few, kind, "prediction")
        _, by_z = normal.predict(few, kind, "prediction")
        assert np.all(np.diff(by_t) > np.diff(by_z))
        assert np.all(np.diff(by_t) < ratio * np.diff(by_z))


def test_uncertainty_what_if_and_honest_estimates_ask_for_the_same_reference():
    model, *_ = clustered(5)
    path = model.uncertainty_interval().path()
    reach = (path["ci_high"] - path["estimate"]) / path["std_error"]
    np.testing.assert_allclose(reach, stats.t.ppf(0.975, 4))
    table = model.what_if().tidy()
    np.testing.assert_allclose(table["p_value"], 2 * stats.t.sf(abs(table["t"]), 4))
    data = make_selection(400, 4, 2, random_state=1)
    honest = HeckmanBestSubset(cov_type="cluster", honest=True, n_splits=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        honest.fit(data.X, data.y, groups=np.arange(400) % 20)
    table = honest.honest_.tidy().dropna()
    reach = (table["ci_high"] - table["estimate"]) / table["std_error"]
    np.testing.assert_allclose(reach, stats.t.ppf(0.975, 19))


def test_few_clusters_warn_and_are_counted_everywhere():
    d = load_mroz()
    groups = np.arange(len(d)) % 39
    with pytest.warns(errors.FewClustersWarning, match="rests on 39 clusters"):
        Heckman(PREDICT, cov_type="cluster").fit(d[COLUMNS], d["lwage"], groups=groups)
    # Forty do not.
    Heckman(PREDICT, cov_type="cluster").fit(d[COLUMNS], d["lwage"], groups=np.arange(len(d)) % 40)
    model, *_ = clustered(39, method="ml")
    summary = model.summary()
    said = "With 39 clusters, tests and intervals use t(38), and joint tests F(q, 38). Stata"
    html, markdown = summary._repr_html_(), summary.to_markdown()
    assert said in html
    assert "<td>39</td>" in html
    assert "P&gt;|t|" in html
    assert said in markdown
    assert "| Clusters | 39 |" in markdown
    assert r"P\>\|t\|" in markdown
    text = str(summary)
    assert re.search(r"Clusters: +39\n|Clusters: +39 ", text)
    assert "P>|t|" in text
    assert "P>|z|" not in text
    assert "Log pseudolikelihood:" in text
    assert "$P>|t|$" in summary.to_latex()
    line = next(one for one in model.diagnostics().lines() if one[0] == "clusters")
    assert line[1].startswith("39;")
    assert line[2] == "caution"


def test_no_more_clusters_than_parameters_is_a_problem_and_too_many_restrictions_are_refused():
    model, *_ = clustered(3)
    found = model.diagnostics()
    line = next(one for one in found.lines() if one[0] == "clusters")
    assert line[2] == "problem"
    assert "rank 2 at most" in line[3]
    assert found.n_parameters == 10  # 3 + 6 coefficients, and that of lambda
    assert np.isnan(found.excluded_wald.p_value)
    assert "not tested: the covariance from 3 clusters has rank 2 at most" in str(found)
    with pytest.raises(NotIdentifiedError, match="rank 2 at most, too little for a joint test of"):
        model.wald_test("educ = 0, exper = 0, selection.age = 0")
    assert model.wald_test("educ = 0, exper = 0").df_denominator == 2
    enough, *_ = clustered(11)
    assert next(one for one in enough.diagnostics().lines() if one[0] == "clusters")[2] == "caution"
    just, *_ = clustered(10)  # the clusters' scores sum to zero: rank 9
    assert next(one for one in just.diagnostics().lines() if one[0] == "clusters")[2] == "problem"
    assert np.linalg.matrix_rank(just.vcov(), tol=1e-9 * np.linalg.norm(just.vcov(), 2)) == 9
    ml, *_ = clustered(12, method="ml")
    assert ml.diagnostics().n_parameters == 11  # lambda's is a function of rho and sigma


def test_clusters_whose_rows_are_left_out_are_not_counted():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    seen = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0
    y = np.where(seen, X[:, 0] + rng.normal(size=600), np.nan)
    groups = np.arange(600) % 45
    # Those with the last feature at 1 are all selected, and make a cluster of their own.
    decided = np.zeros(600)
    decided[np.flatnonzero(seen)[:20]] = 1.0
    groups[decided == 1] = 45
    model = Heckman([0], cov_type="cluster", on_separation="drop")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.column_stack([X, decided]), y, groups=groups)
        rest = decided == 0
        same = Heckman([0], cov_type="cluster").fit(X[rest], y[rest], groups=groups[rest])
    assert model.n_clusters_ == same.n_clusters_ == 45
    np.testing.assert_allclose(
        model.tidy()["std_error"], same.tidy()["std_error"], rtol=1e-6, equal_nan=True
    )


def test_one_cluster_is_refused():
    d = load_mroz()
    with pytest.raises(InputError, match="needs at least two groups; groups has 1"):
        Heckman(PREDICT, cov_type="cluster").fit(d[COLUMNS], d["lwage"], groups=np.zeros(len(d)))

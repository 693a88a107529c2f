"""The series estimator: against plain least squares with stacked estimating equations."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.polynomial.legendre import legval
from scipy import optimize, stats

import heckmanfa
from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA
from heckmanfa.analysis.comparison import compare_methods
from heckmanfa.errors import (
    AllObservedWarning,
    InputError,
    NotIdentifiedError,
    TooFewRowsError,
)

P = ["x1", "x2"]
SLOPES = np.array([1.0, -0.5])


def draw(n, seed, error="skewed"):
    """Return features and an outcome whose error is skewed, and shares a shock with selection."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x1", "x2", "z"])
    shock = rng.normal(size=n)
    if error == "skewed":
        # E[e | u] is not linear in the selection error, and e is a centred exponential.
        e = -np.log(stats.norm.sf(0.9 * shock + np.sqrt(0.19) * rng.normal(size=n))) - 1.0
        e = 2.0 * e
    else:
        e = 0.8 * shock + 0.6 * rng.normal(size=n)
    seen = -0.5 + X["x1"] + X["z"] + shock > 0
    y = 2.0 + X[P] @ SLOPES + e
    return X, y.where(seen).rename("y")


@pytest.fixture(scope="module")
def rows():
    return draw(1200, 3)


# The estimator, written out with NumPy. ------------------------------------------------------


def plain_basis(u, n_terms):
    ratio = np.exp(stats.norm.logpdf(u) - stats.norm.logcdf(u))
    t = 2.0 * stats.norm.cdf(u) - 1.0
    return np.column_stack([ratio * legval(t, np.eye(n_terms)[place]) for place in range(n_terms)])


def infinity_weight(u):
    low, high = stats.norm.ppf([0.9, 0.99])
    v = np.clip((u - low) / (high - low), 0.0, 1.0 - 1e-12)
    return np.where(u >= high, 1.0, 1.0 - np.exp(-v / (1.0 - v)))


class Plain:
    """Probit, then least squares with a series; the intercept at infinity; no formula in closed
    form for any standard error."""

    def __init__(self, X, y, n_terms, weight=None):
        self.seen = ~np.isnan(y.to_numpy())
        self.y = np.where(self.seen, y.to_numpy(), 0.0)
        self.z = np.insert(X[["x1", "x2", "z"]].to_numpy(), 0, 1.0, axis=1)
        self.x = X[P].to_numpy()
        self.n_terms = n_terms
        self.weight = np.ones(len(y)) if weight is None else weight
        sign = np.where(self.seen, 1.0, -1.0)
        best = optimize.minimize(
            lambda g: -self.weight @ stats.norm.logcdf(sign * (self.z @ g)),
            np.zeros(4),
            jac=lambda g: -self.weight @ self.scores_of_probit(g),
            method="BFGS",
            options={"gtol": 1e-9},
        )
        theta = self.second_step(best.x)
        self.theta = np.concatenate([best.x, theta])
        self.theta = np.append(self.theta, self.level(self.theta))

    def scores_of_probit(self, gamma):
        sign = np.where(self.seen, 1.0, -1.0)
        u = sign * (self.z @ gamma)
        return (sign * np.exp(stats.norm.logpdf(u) - stats.norm.logcdf(u)))[:, None] * self.z

    def design(self, gamma):
        basis = plain_basis(self.z @ gamma, self.n_terms)
        return np.column_stack([np.ones(len(self.y)), self.x, basis])

    def second_step(self, gamma):
        root = np.sqrt(self.weight[self.seen])
        design = self.design(gamma)[self.seen] * root[:, None]
        return np.linalg.lstsq(design, self.y[self.seen] * root, rcond=None)[0]

    def level(self, theta):
        share = infinity_weight(self.z @ theta[:4]) * self.seen * self.weight
        return share @ (self.y - self.x @ theta[5:7]) / share.sum()

    def equations(self, theta):
        """Estimating equations of each row, in the order of all parameters."""
        gamma, beta, level = theta[:4], theta[4:-1], theta[-1]
        design = self.design(gamma)
        second = design * (self.seen * (self.y - design @ beta))[:, None]
        share = infinity_weight(self.z @ gamma) * self.seen
        third = share * (self.y - self.x @ beta[1:3] - level)
        return np.column_stack([self.scores_of_probit(gamma), second, third])

    def covariance(self, groups=None, sampling=False):
        weight, step = self.weight, 1e-5
        slopes = [
            weight @ (self.equations(self.theta + move) - self.equations(self.theta - move))
            for move in step * np.eye(len(self.theta))
        ]
        inverse = np.linalg.inv(np.transpose(slopes) / (2.0 * step))
        scores = self.equations(self.theta)
        if groups is not None:
            scores = np.array([scores[groups == group].sum(axis=0) for group in np.unique(groups)])
            middle, n = scores.T @ scores, len(scores)
        elif sampling:
            scores = scores * weight[:, None]
            middle, n = scores.T @ scores, len(scores)
        else:
            middle, n = (scores * weight[:, None]).T @ scores, weight.sum()
        return inverse @ middle @ inverse.T * n / (n - 1.0)

    def reported(self, *, at_infinity, **options):
        """Estimates and standard errors as in tables: b, gamma, s0 to sL."""
        n = len(self.theta)
        jacobian = np.zeros((n, n))
        jacobian[1:3, 5:7] = np.eye(2)
        jacobian[3:7, :4] = np.eye(4)
        jacobian[7, 4] = 1.0
        jacobian[8:, 7:-1] = np.eye(self.n_terms)
        if at_infinity:
            jacobian[0, -1], jacobian[7, -1] = 1.0, -1.0
        covariance = jacobian @ self.covariance(**options) @ jacobian.T
        estimates, errors = jacobian @ self.theta, np.sqrt(np.diag(covariance))
        if not at_infinity:
            estimates[0] = errors[0] = np.nan
        return estimates, errors


def fitted(model):
    table = model.tidy()
    return table["estimate"].to_numpy(), table["std_error"].to_numpy()


@pytest.mark.parametrize("at_infinity", [False, True])
def test_estimates_and_errors_are_those_of_stacked_equations(rows, at_infinity):
    options = {"intercept": "at infinity"} if at_infinity else {}
    groups = np.arange(1200) // 8
    plain = Plain(*rows, 3)
    for kind, stacked in (("robust", {}), ("cluster", {"groups": groups})):
        model = Heckman(P, method="series", n_terms=3, cov_type=kind, **options)
        model.fit(*rows, groups=groups if kind == "cluster" else None)
        estimates, errors = plain.reported(at_infinity=at_infinity, **stacked)
        own = fitted(model)
        assert own[0] == pytest.approx(estimates, rel=1e-6, abs=1e-7, nan_ok=True)
        assert own[1] == pytest.approx(errors, rel=1e-5, nan_ok=True)
    assert np.isnan(model.intercept_) != at_infinity
    vcov = model.vcov()
    assert list(vcov.index[-4:]) == [("errors", f"s{place}") for place in range(4)]


def test_sampling_weights_are_those_of_the_weighted_equations(rows):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(rows[1]))
    weight = weight / weight.mean()
    model = Heckman(P, method="series", n_terms=2, weight_kind="sampling")
    estimates, errors = Plain(*rows, 2, weight).reported(at_infinity=False, sampling=True)
    own = fitted(model.fit(*rows, sample_weight=weight))
    assert own[0] == pytest.approx(estimates, rel=1e-6, abs=1e-7, nan_ok=True)
    assert own[1] == pytest.approx(errors, rel=1e-5, nan_ok=True)
    # Cross-validation leaves out a row with all of its weight.
    model = Heckman(P, method="series", weight_kind="sampling").fit(*rows, sample_weight=weight)
    plain = Plain(*rows, 2, weight)
    w, root = weight[plain.seen], np.sqrt(weight[plain.seen])
    design = plain.design(plain.theta[:4])[plain.seen]
    left = np.einsum("ij,ji->i", design * root[:, None], np.linalg.pinv(design * root[:, None]))
    residual = plain.y[plain.seen] - design @ plain.theta[4:-1]
    expected = w @ (residual / (1.0 - left)) ** 2 / w.sum()
    assert model.left_out_errors_[1] == pytest.approx(expected, rel=1e-6)


def test_one_term_is_the_normal_two_step_model(rows):
    series = Heckman(P, method="series", n_terms=1).fit(*rows)
    normal = Heckman(P, cov_type="robust").fit(*rows)
    assert series.coef_ == pytest.approx(normal.coef_, abs=1e-10)
    errors = series.fit_.error_values
    assert errors == pytest.approx({"s0": normal.intercept_, "s1": normal.imr_coef_}, abs=1e-10)
    one, other = series.tidy()["std_error"].to_numpy(), normal.tidy()["std_error"].to_numpy()
    # The constant and lambda are s0 and s1.
    assert one[[7, 1, 2, 3, 4, 5, 6, 8]] == pytest.approx(other[:8], rel=1e-8)
    assert series.predict(rows[0], "selected") == pytest.approx(
        normal.predict(rows[0], "selected"), abs=1e-10
    )


def test_cross_validation_leaves_each_row_out(rows):
    model = Heckman(P, method="series").fit(*rows)
    seen = rows[1].notna().to_numpy()
    y, gamma = rows[1].to_numpy()[seen], Plain(*rows, 1).theta[:4]
    errors = []
    for n_terms in range(1, 9):
        plain = Plain.__new__(Plain)
        plain.x, plain.n_terms = rows[0][P].to_numpy(), n_terms
        plain.y, plain.z = np.zeros(1200), np.insert(rows[0].to_numpy(), 0, 1.0, axis=1)
        design = plain.design(gamma)[seen]
        left = np.einsum("ij,ji->i", design, np.linalg.pinv(design))
        residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        errors.append(np.mean((residual / (1.0 - left)) ** 2))
    assert model.left_out_errors_ == pytest.approx(errors, rel=1e-6)
    assert model.n_terms_ == np.argmin(errors) + 1
    # The shortcut by leverages is what leaving rows out and fitting again gives.
    for row in range(5):
        kept = np.arange(len(y)) != row
        again = np.linalg.lstsq(design[kept], y[kept], rcond=None)[0]
        error = y[row] - design[row] @ again
        assert residual[row] / (1.0 - left[row]) == pytest.approx(error, rel=1e-5)
    given = Heckman(P, method="series", n_terms=model.n_terms_).fit(*rows)
    assert given.coef_ == pytest.approx(model.coef_, abs=1e-12)
    assert len(given.left_out_errors_) == 0


def test_slopes_are_right_where_errors_are_skewed_and_the_normal_model_is_not():
    rows = draw(40_000, 5)
    model = Heckman(P, method="series", intercept="at infinity").fit(*rows)
    error = model.tidy()["std_error"].to_numpy()[1:3]
    assert model.n_terms_ > 1
    assert np.abs(model.coef_[:2] - SLOPES) == pytest.approx(0.0, abs=3.0 * error.max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        normal = Heckman(P, method="ml", cov_type="robust").fit(*rows)
    assert abs(normal.coef_[0] - SLOPES[0]) > 5.0 * error[0]
    # With a chance of selection above 90%, little is left to correct for.
    assert model.intercept_ == pytest.approx(2.0, abs=0.15)
    # What normal errors give for one more term is not needed here: it is rejected.
    test = ", ".join(f"s{place} = 0" for place in range(2, model.n_terms_ + 1))
    assert model.wald_test(test).p_value < 1e-6


# Invariances. -------------------------------------------------------------------------------


def same(one, other, factor=1.0):
    for own, others in zip(fitted(one), fitted(other), strict=True):
        assert own * factor == pytest.approx(others, rel=1e-7, abs=1e-9, nan_ok=True)


def test_units_and_the_order_of_rows_do_not_matter(rows):
    X, y = rows
    # The number of terms is chosen again.
    model = Heckman(P, method="series").fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    same(model, Heckman(P, method="series").fit(X.iloc[order], y.iloc[order]))
    scaled = Heckman(P, method="series").fit(X * [1.0, 1.0, 1e4] + [0.0, 0.0, 7.0], 100.0 * y)
    assert scaled.coef_ == pytest.approx(100.0 * model.coef_, rel=1e-7)
    assert scaled.left_out_errors_ == pytest.approx(1e4 * model.left_out_errors_, rel=1e-7)
    values, others = (
        model.predict(X, "selected"),
        scaled.predict(X * [1, 1, 1e4] + [0, 0, 7], "selected"),
    )
    assert others == pytest.approx(100.0 * values, rel=1e-7)


@pytest.mark.parametrize("intercept", [None, "at infinity"])
def test_a_weight_of_two_is_the_row_twice(rows, intercept):
    X, y = rows
    weight = np.where(X["x2"] > 0, 2, 1)
    model = Heckman(P, method="series", intercept=intercept)
    weighted = model.fit(X, y, sample_weight=weight)
    double = np.repeat(np.arange(len(y)), weight)
    other = Heckman(P, method="series", intercept=intercept).fit(X.iloc[double], y.iloc[double])
    same(weighted, other)
    assert weighted.left_out_errors_ == pytest.approx(other.left_out_errors_, rel=1e-9)


# What a fitted model gives. -------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(rows):
    return Heckman(P, method="series", n_terms=3).fit(*rows)


@pytest.mark.parametrize("kind", ["selected", "expected"])
def test_predictions_need_no_intercept_and_have_intervals_by_the_delta_method(rows, model, kind):
    X, plain = rows[0][:50], Plain(*rows, 3)

    def expected(theta):
        u = np.insert(X.to_numpy(), 0, 1.0, axis=1) @ theta[:4]
        design = np.column_stack([np.ones(50), X[P], plain_basis(u, 3)])
        return design @ theta[4:-1] * (stats.norm.cdf(u) if kind == "expected" else 1.0)

    values, limits = model.predict(X, kind, return_interval="confidence")
    assert values == pytest.approx(expected(plain.theta), rel=1e-6)
    unit = 1e-6 * np.eye(len(plain.theta))
    slopes = np.transpose(
        [(expected(plain.theta + move) - expected(plain.theta - move)) / 2e-6 for move in unit]
    )
    error = np.sqrt(np.sum((slopes @ plain.covariance()) * slopes, axis=1))
    assert (limits[:, 1] - limits[:, 0]) / (2 * stats.norm.ppf(0.975)) == pytest.approx(
        error, rel=1e-5
    )


def test_what_is_said_of_selection_is_that_of_the_probit(rows, model):
    normal = Heckman(P, cov_type="robust").fit(*rows)
    for scale in ("response", "link"):
        options = {"scale": scale, "return_interval": "confidence", "return_std": True}
        numbers = (each.predict_selection(rows[0], **options) for each in (model, normal))
        for own, other in zip(*numbers, strict=True):
            assert own == pytest.approx(other, rel=1e-8)
    own, other = (each.margins(rows[0], kind="selection").tidy() for each in (model, normal))
    assert own["std_error"].to_numpy() == pytest.approx(other["std_error"].to_numpy(), rel=1e-8)


@pytest.mark.parametrize("kind", ["selected", "expected", "marginal"])
def test_margins_are_slopes_of_predictions(rows, kind):
    X, y = rows
    model = Heckman(P, method="series", n_terms=3, intercept="at infinity").fit(X, y)
    margins = model.margins(X, kind=kind)
    table, step = margins.tidy().set_index("term"), 1e-5

    def at(theta, X=X):
        """The mean over rows, with parameters as in `vcov`."""
        u = np.insert(X.to_numpy(), 0, 1.0, axis=1) @ theta[3:7]
        mean = theta[0] + X[P].to_numpy() @ theta[1:3]
        g = theta[7] + plain_basis(u, 3) @ theta[8:]
        chance = stats.norm.cdf(u)
        return np.mean(
            {"marginal": mean, "selected": mean + g, "expected": chance * (mean + g)}[kind]
        )

    theta = model.tidy()["estimate"].to_numpy()

    def slope(theta):
        moved = np.array([step, 0.0, 0.0])
        return (at(theta, X + moved) - at(theta, X - moved)) / (2 * step)

    assert table.loc["x1", "estimate"] == pytest.approx(slope(theta), rel=1e-6)
    moves = 1e-4 * np.eye(len(theta))
    gradient = np.array([(slope(theta + m) - slope(theta - m)) / 2e-4 for m in moves])
    error = np.sqrt(gradient @ model.vcov().to_numpy() @ gradient)
    assert table.loc["x1", "std_error"] == pytest.approx(error, rel=1e-4)
    means = model.margins(X, kind=kind, what="predictions").tidy()
    assert means["estimate"].item() == pytest.approx(np.mean(model.predict(X, kind)))


def test_tables_and_sentences_say_what_is_not_identified(rows, model):
    table = model.tidy().set_index(["equation", "term"])
    assert table.loc[("prediction", "Intercept")].isna().all()
    assert list(table.loc["errors"].index) == ["s0", "s1", "s2", "s3"]
    text = " ".join(str(model.summary()).split())
    assert "intercept is not identified" in text
    assert "atanh" not in text
    assert "Series of 3 terms" in text
    # An intercept that is not known does not spoil a test of others.
    b, v = table["estimate"], model.vcov()
    gap = np.array([b["prediction", "x1"] - 1.0, b["errors", "s2"]])
    terms = [("prediction", "x1"), ("errors", "s2")]
    chi2 = gap @ np.linalg.solve(v.loc[terms, terms].to_numpy(), gap)
    assert model.wald_test("x1 = 1, s2 = 0").statistic == pytest.approx(chi2)
    with pytest.raises(NotIdentifiedError, match=r"'Intercept'.*hypothesis"):
        model.wald_test("Intercept = 1")
    assert not hasattr(model, "rho_")
    assert not hasattr(model, "sigma_")
    assert np.isnan(model.intercept_)
    frame = model.diagnostics().to_frame()
    assert (frame["verdict"] == "ok").all()
    known = Heckman(P, method="series", n_terms=3, intercept="at infinity").fit(*rows)
    assert "at infinity" in str(known.summary())
    # The expectation of selected rows is the same, whoever has the constant.
    X = rows[0]
    assert known.predict(X, "selected") == pytest.approx(model.predict(X, "selected"), rel=1e-9)
    assert known.predict(X) == pytest.approx(known.intercept_ + X[P] @ known.coef_[:2])
    assert model.score(*rows) == pytest.approx(known.score(*rows))


def test_the_bootstrap_refits_both_steps_with_as_many_terms(rows, model):
    boot = model.bootstrap(*rows, n_boot=60, random_state=0, n_jobs=1).tidy()
    assert boot["term"].tolist()[-4:] == ["s0", "s1", "s2", "s3"]
    ratio = boot["std_error"] / model.tidy()["std_error"]
    assert np.all((ratio[1:3] > 0.7) & (ratio[1:3] < 1.4))
    assert np.isnan(boot["std_error"][0])


def test_categories_and_formulas(rows):
    X, y = rows
    data = X.assign(y=y, region=np.where(X["x2"] > 0.5, "north", "south"))
    model = Heckman.from_formula("y ~ x1 + region", "~ x1 + region + z", data, method="series")
    dummies = X[["x1", "z"]].assign(south=(data["region"] == "south") * 1.0)
    other = Heckman(["x1", "south"], method="series").fit(dummies[["x1", "south", "z"]], y)
    own = model.tidy()["estimate"].to_numpy()
    assert own == pytest.approx(other.tidy()["estimate"].to_numpy(), rel=1e-8, nan_ok=True)
    columns = data[["x1", "region", "z"]]
    third = Heckman(["x1", "region"], method="series").fit(columns, y)
    assert third.predict(columns[:9], "selected") == pytest.approx(
        model.predict(data[:9], "selected")
    )


def test_a_model_file_has_the_series(rows, model, tmp_path):
    chosen = Heckman(P, method="series", intercept="at infinity").fit(*rows)
    longest = Heckman(P, method="series", n_terms=50).fit(*rows)
    for saved in (model, chosen, longest):
        heckmanfa.save(saved, tmp_path / "series.heckmanfa", force=True)
        again = heckmanfa.load(tmp_path / "series.heckmanfa")
        assert again.tidy().equals(saved.tidy())
        assert np.array_equal(again.left_out_errors_, saved.left_out_errors_)
        own = saved.predict(rows[0], "selected", "confidence")
        for one, other in zip(own, again.predict(rows[0], "selected", "confidence"), strict=True):
            # With fifty terms, rounding may leave the variance of a few rows without a root.
            assert np.array_equal(one, other, equal_nan=True)


def test_rows_elsewhere_give_the_same(rows, tmp_path):
    X, y = rows
    model = Heckman(P, method="series", intercept="at infinity").fit(X, y)
    data = X.assign(y=y)
    data.to_parquet(tmp_path / "rows.parquet", row_group_size=350)
    scanned = heckmanfa.scan_parquet(tmp_path / "rows.parquet", outcome="y")
    same(model, Heckman(P, method="series", intercept="at infinity").fit(scanned))
    dd = pytest.importorskip("dask.dataframe")
    lazy = dd.from_pandas(data, npartitions=3)
    elsewhere = Heckman(P, method="series", intercept="at infinity").fit(lazy[list(X)], lazy["y"])
    same(model, elsewhere)
    predicted = elsewhere.predict(lazy[list(X)], "selected").compute()
    assert predicted.to_numpy() == pytest.approx(model.predict(X, "selected"), rel=1e-9)


def test_tensors_give_the_same(rows):
    torch = pytest.importorskip("torch")
    X, y = rows
    model = Heckman([0, 1], method="series", intercept="at infinity").fit(X.to_numpy(), y)
    tensors = torch.tensor(X.to_numpy()), torch.tensor(y.to_numpy())
    other = Heckman([0, 1], method="series", intercept="at infinity").fit(*tensors)
    same(model, other)
    predicted = other.predict(tensors[0], "selected")
    assert predicted.numpy() == pytest.approx(model.predict(X.to_numpy(), "selected"))


def test_a_comparison_has_a_row_for_it(rows):
    X, y = rows
    estimators = {"series": Heckman(P, method="series", n_terms=3), "two-step": Heckman(P)}
    table = compare_methods(X, y, estimators=estimators, n_folds=3, n_repeats=1).tidy()
    table = table.set_index("method")
    assert table["mse"]["series"] == pytest.approx(table["mse"]["two-step"], rel=0.1)
    assert table["mse"]["series"] != table["mse"]["two-step"]
    assert np.isnan(table["rho"]["series"])


# Refusals. ----------------------------------------------------------------------------------


def test_kinds_that_are_not_identified_are_refused(rows, model):
    X = rows[0]
    known = Heckman(P, method="series", intercept="at infinity").fit(*rows)
    with pytest.raises(NotIdentifiedError, match=r"kind='marginal'.*at infinity"):
        model.predict(X)
    with pytest.raises(NotIdentifiedError, match=r"kind='marginal'.*at infinity"):
        model.margins(X, kind="marginal", what="predictions")
    for call in (known.predict, known.margins):
        with pytest.raises(NotIdentifiedError, match="kind='unselected'"):
            call(X, kind="unselected")
    with pytest.raises(InputError, match="no distribution"):
        known.predict(X, return_interval="prediction")


def test_what_a_series_lacks_is_refused_in_a_sentence(rows, model):
    refused = [
        (lambda: model.log_likelihood(*rows), "no likelihood"),
        (lambda: model.what_if(*rows), "series model has no"),
        (lambda: model.uncertainty_interval(*rows), "series model has no"),
        (lambda: model.exclusion_test(*rows), "series model has no"),
        (lambda: model.specification_tests(*rows), "series model has no rho"),
        (lambda: model.profile_rho(*rows), "no likelihood to profile"),
        (lambda: model.profile(*rows, term="x1"), "no likelihood to profile"),
        (lambda: model.fit_.rho, "series model has no rho"),
    ]
    for call, words in refused:
        with pytest.raises(InputError, match=words):
            call()


def test_a_fitted_series_has_a_report_with_its_correction(rows, model, tmp_path):
    model.report(tmp_path / "series.html", *rows)
    page = (tmp_path / "series.html").read_text(encoding="utf-8")
    assert 'class="correction"' in page
    assert "joint test of the terms of the series" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_terms": 0}, "n_terms"),
        ({"n_terms": 2.5}, "n_terms"),
        ({"n_terms": 51}, "n_terms"),
        ({"method": "serie"}, "series"),
        ({"intercept": "zero"}, "at infinity"),
        ({"rho": 0.3}, "no rho"),
        ({"start": 0.3}, "maximum likelihood"),
        ({"cov_type": "classical"}, "no classical covariance"),
        ({"outcome_transform": "log"}, "logarithm"),
        ({"method": "ml", "n_terms": 2}, "n_terms"),
        ({"method": "two-step", "intercept": "at infinity"}, "intercept"),
    ],
)
def test_options_that_do_not_fit_are_refused(rows, options, words):
    with pytest.raises(InputError, match=words):
        Heckman(P, **({"method": "series"} | options)).fit(*rows)


def test_rows_that_do_not_carry_a_series_are_refused(rows):
    X, y = rows
    short = X[:60], y[:60]
    n = int(short[1].notna().sum())
    with pytest.raises(TooFewRowsError, match=f"{n} selected rows.*{n - 3} terms"):
        Heckman(P, method="series", n_terms=n - 3).fit(*short)
    with pytest.raises(NotIdentifiedError, match="needs an exclusion"):
        Heckman(method="series").fit(X, y)
    binary = (X > 0) * 1.0
    with pytest.raises(NotIdentifiedError, match=r"6 terms.*5 can be told apart"):
        Heckman(P, method="series", n_terms=6).fit(binary, y)
    few = Heckman(P, method="series").fit(binary, y)
    assert len(few.left_out_errors_) == 5
    hardly = y.where(X["x1"] + X["z"] < 1.0)
    with pytest.raises(NotIdentifiedError, match="selected rows have a chance"):
        Heckman(P, method="series", intercept="at infinity").fit(X, hardly)


@pytest.mark.parametrize("kind", [HeckmanFA, HeckmanBestSubset])
def test_searches_have_no_series(rows, kind):
    with pytest.raises(InputError, match=f"{kind.__name__} has no method='series'"):
        kind(method="series").fit(*rows)


def test_without_a_missing_outcome_it_is_least_squares(rows):
    X, y = rows[0], rows[1].fillna(0.0)
    for n_terms in (None, 3):
        with pytest.warns(AllObservedWarning):
            model = Heckman(P, method="series", n_terms=n_terms).fit(X, y)
        design = np.insert(X[P].to_numpy(), 0, 1.0, axis=1)
        plain = np.linalg.lstsq(design, y, rcond=None)[0]
        assert [model.intercept_, *model.coef_[:2]] == pytest.approx(plain)
        assert model.predict(X, "selected") == pytest.approx(design @ plain)
        assert "least squares" in str(model.summary()).lower()

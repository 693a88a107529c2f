"""An outcome on a log scale is read the same way wherever its rows are."""

import warnings

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.compose import TransformedTargetRegressor

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanLasso, scan_parquet
from heckmanfa.analysis import analyse
from heckmanfa.errors import AllObservedWarning, InputError
from heckmanfa.model_selection import joint_log_likelihood, observed_mse

PREDICTION = ["a", "b"]
OF = {"log": np.log, "log1p": np.log1p}


def make_rows(n=400):
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    u, e = rng.multivariate_normal([0, 0], [[1, 0.35], [0.35, 0.49]], size=n).T
    seen = (0.3 + 0.8 * X["a"] + 0.7 * X["c"] + u > 0).to_numpy()
    wage = np.exp(0.2 + 0.6 * X["a"] - 0.5 * X["b"] + e)
    return X, wage.where(seen).rename("wage"), seen


X, WAGE, SEEN = make_rows()
TENSOR = torch.from_numpy(X.to_numpy().copy())


def model(transform="log", **options):
    return Heckman(PREDICTION, outcome_transform=transform, **options)


def assert_same_bits(found, other):
    for name in ("coef", "selection_coef", "covariance"):
        np.testing.assert_array_equal(getattr(found.fit_, name), getattr(other.fit_, name))
    for name in ("intercept", "rho", "sigma", "aic", "bic", "adjusted_r2", "log_likelihood"):
        assert getattr(found.fit_, name) == getattr(other.fit_, name)
    assert found.row_counts_ == other.row_counts_


@pytest.mark.parametrize("transform", OF)
@pytest.mark.parametrize(
    "options", [{}, {"method": "ml"}, {"cov_type": "robust", "weight_kind": "sampling"}]
)
def test_a_fit_with_a_transform_is_the_fit_of_the_logarithm_to_the_bit(transform, options):
    weight = np.where(X["b"] > 1, 2.0, 1.0) if "weight_kind" in options else None
    logs = Heckman(PREDICTION, **options).fit(X, OF[transform](WAGE), sample_weight=weight)
    found = model(transform, **options).fit(X, WAGE, sample_weight=weight)
    assert_same_bits(found, logs)
    for kind in ("marginal", "selected", "unselected"):
        np.testing.assert_array_equal(
            found.predict(X, kind=kind, scale="link"), logs.predict(X, kind=kind)
        )
    assert found.log_likelihood(X, WAGE) == logs.log_likelihood(X, OF[transform](WAGE))


@pytest.mark.parametrize(
    "search", [HeckmanBestSubset(never=["c"]), HeckmanLasso(never=["c"]), HeckmanAverage()]
)
@pytest.mark.filterwarnings("ignore::heckmanfa.errors.NoExclusionWarning")
def test_searches_and_averages_read_the_logarithm(search):
    logs = search.fit(X, np.log(WAGE)).fit_
    found = search.set_params(outcome_transform="log").fit(X, WAGE).fit_
    np.testing.assert_array_equal(found.coef, logs.coef)
    np.testing.assert_array_equal(found.covariance, logs.covariance)


def test_outcomes_of_rows_that_are_not_in_the_fit_may_have_no_logarithm():
    filled = WAGE.fillna(-3.0)
    weight = np.ones(len(X))
    weight[np.flatnonzero(SEEN)[:2]] = 0.0
    filled.iloc[np.flatnonzero(SEEN)[:2]] = 0.0
    found = model().fit(X, filled, selected=SEEN, sample_weight=weight)
    logs = Heckman(PREDICTION).fit(X, np.log(WAGE), selected=SEEN, sample_weight=weight)
    assert_same_bits(found, logs)


@pytest.mark.parametrize(
    ("transform", "bad", "advice"),
    [("log", 0.0, "log1p.*NaN.*HeckmanProbit"), ("log1p", -1.0, "-1 or less.*NaN")],
)
def test_outcomes_without_a_logarithm_are_counted_and_refused(transform, bad, advice, tmp_path):
    wage = WAGE.copy()
    wage.iloc[np.flatnonzero(SEEN)[[3, 7, 20]]] = [bad, bad - 1, bad]
    message = f"(?s)outcome_transform='{transform}'.*3 selected rows have.*{advice}"
    fitted = model(transform).fit(X, WAGE)
    path = tmp_path / "rows.parquet"
    X.assign(wage=wage).to_parquet(path, row_group_size=120)
    for call in (
        lambda: model(transform).fit(X, wage),
        lambda: Heckman([0, 1], outcome_transform=transform).fit(
            TENSOR, torch.tensor(wage.to_numpy())
        ),
        lambda: model(transform).fit(scan_parquet(path, "wage")),
        lambda: fitted.log_likelihood(X, wage),
        lambda: fitted.bootstrap(X, wage, n_boot=2),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_every_way_in_gives_the_same_model(tmp_path):
    reference = model(cov_type="robust").fit(X, WAGE)
    path = tmp_path / "rows.parquet"
    frame = X.assign(wage=WAGE)
    frame.to_parquet(path, row_group_size=120)
    rows = dd.from_pandas(frame, npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        found = {
            "tensors": Heckman([0, 1], outcome_transform="log", cov_type="robust").fit(
                TENSOR, torch.tensor(WAGE.to_numpy())
            ),
            "parquet": model(cov_type="robust").fit(scan_parquet(path, "wage")),
            "dask": model(cov_type="robust").fit(rows[["a", "b", "c"]], rows["wage"]),
            "formula": Heckman.from_formula(
                *("wage ~ a + b", "~ a + b + c", frame),
                outcome_transform="log",
                cov_type="robust",
            ),
        }
        lazy = found["dask"].predict(rows[["a", "b", "c"]], kind="selected").compute()
    errors = np.sqrt(np.diag(reference.vcov()))
    for name, other in found.items():
        values = [np.sort(np.append(one.fit_.coef, one.rho_)) for one in (other, reference)]
        assert np.max(np.abs(values[0] - values[1])) < 1e-8 * errors.min(), name
        np.testing.assert_allclose(other.transform_ratio_, reference.transform_ratio_, rtol=1e-9)
    given = reference.predict(X, kind="selected")
    np.testing.assert_allclose(lazy, given, rtol=1e-9)
    np.testing.assert_allclose(found["tensors"].predict(TENSOR, kind="selected"), given, rtol=1e-9)
    np.testing.assert_allclose(found["formula"].predict(frame, kind="selected"), given, rtol=1e-9)
    assert found["formula"].score(frame) == pytest.approx(reference.score(X, WAGE))


def test_maximum_likelihood_has_the_same_mean_ratio_with_tensors():
    options = {"outcome_transform": "log1p", "method": "ml"}
    known = Heckman([0, 1], **options).fit(X, WAGE).transform_ratio_
    tensors = Heckman([0, 1], **options).fit(TENSOR, torch.tensor(WAGE.to_numpy()))
    np.testing.assert_allclose(tensors.transform_ratio_, known, rtol=1e-9)


def test_scores_are_on_the_scale_of_the_outcome():
    found = model().fit(X, WAGE)
    mean, wage = found.predict(X, kind="selected")[SEEN], WAGE[SEEN]
    squares = np.mean((wage - mean) ** 2)
    assert found.score(X, WAGE) == pytest.approx(1 - squares / np.var(wage))
    assert observed_mse(found, X, WAGE) == pytest.approx(-squares)
    logs = Heckman(PREDICTION).fit(X, np.log(WAGE))
    given = joint_log_likelihood(logs, X, np.log(WAGE))
    assert joint_log_likelihood(found, X, WAGE) == pytest.approx(given, rel=1e-14)


def test_methods_that_read_the_rows_again_take_the_outcome_as_the_fit_did():
    found, logs = model().fit(X, WAGE), Heckman(PREDICTION).fit(X, np.log(WAGE))
    for call in (
        lambda one, y: one.bootstrap(X, y, n_boot=3, random_state=0).tidy(),
        lambda one, y: one.specification_tests(X, y).tidy(),
    ):
        pd.testing.assert_frame_equal(call(found, WAGE), call(logs, np.log(WAGE)))
    with pytest.raises(InputError, match="not those of the fit"):
        found.specification_tests(X, np.log(WAGE) + 3)


def test_scikit_learns_own_wrapper_refuses_missing_outcomes_and_predicts_too_low():
    wrapped = TransformedTargetRegressor(Heckman(PREDICTION), func=np.log, inverse_func=np.exp)
    with pytest.raises(ValueError, match="NaN"):
        wrapped.fit(X, WAGE)
    seen = X[SEEN], WAGE[SEEN]
    with pytest.warns(AllObservedWarning):
        low = wrapped.fit(*seen).predict(X)
    with pytest.warns(AllObservedWarning):
        own = model().fit(*seen)
    np.testing.assert_allclose(own.predict(X) / low, np.exp(own.sigma_**2 / 2))


def test_pictures_and_diagnostics_of_a_log_outcome_take_the_rows_of_the_fit():
    found = model().fit(X, WAGE)
    assert found.pictures(X, WAGE).residuals.outcome == "log(wage)"
    assert found.diagnostics(X).transform_ratio == found.transform_ratio_
    with pytest.raises(InputError, match="not those of the fit"):
        _ = found.pictures(X, WAGE + 1).residuals


# A logarithm of a logarithm. ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "left",
    [
        "log(wage*100)",
        "np.log(wage)",
        "np.log1p(wage)",
        "log2(wage)",
        "np.log10(wage)",
        "I(log(wage)/2)",
        "I(100*log(wage))",
        "{log(wage) + 3}",
        "np.maximum(log(wage), 0.1)",
        'log(Q("wage"))',
        "np.sqrt(log(`wage`))",
    ],
)
@pytest.mark.parametrize("transform", OF)
def test_the_logarithm_of_a_logarithm_is_refused(left, transform):
    data = X.assign(wage=WAGE + 20)
    with pytest.raises(InputError, match=r"is a logarithm already.*outcome_transform"):
        Heckman.from_formula(f"{left} ~ a + b", "a + b + c", data, outcome_transform=transform)


@pytest.mark.parametrize(
    "left",
    ["I(wage * 100)", "I(wage / np.log(2))", "np.exp(log(wage))", "I(wage + (log(wage) > 3))"],
)
def test_an_amount_whose_formula_has_a_logarithm_in_it_is_an_amount(left):
    data = X.assign(wage=WAGE + 20)
    Heckman.from_formula(f"{left} ~ a + b", "a + b + c", data, outcome_transform="log")


def test_a_column_that_is_a_logarithm_by_its_name_is_refused(tmp_path):
    table = X.assign(**{"log(wage)": WAGE + 20})
    with pytest.raises(InputError, match=r"'log\(wage\)' is a logarithm already"):
        model().fit(X, table["log(wage)"])
    table.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"'log\(wage\)' is a logarithm already"):
        model().fit(scan_parquet(tmp_path / "rows.parquet", "log(wage)"))
    with pytest.raises(InputError, match=r"log\(wage\).*is a logarithm already"):
        model().from_formula("`log(wage)` ~ a + b", "a + b + c", table, outcome_transform="log")
    with pytest.raises(InputError, match=r"'log\(wage\)' is a logarithm already"):
        analyse(table, outcome="log(wage)", outcome_transform="log")
    # Names only begin like a logarithm, or are no expression.
    for name in ("log_wage", "logistics (2020)", "2log(", "wage`", "x" * 5000):
        model().fit(X, (WAGE + 20).rename(name))


@pytest.mark.parametrize("name", ["1or 2", "0x1for x", "log(", "a" * 5000])
def test_names_that_python_warns_about_are_not_logarithms(name, mroz):
    amount = pd.Series(np.exp(mroz["lwage"]), name=name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Heckman(["educ"], outcome_transform="log").fit(mroz[["educ", "kids5"]], amount)
    assert not caught
    assert model.n_selected_ == mroz["lwage"].notna().sum()


def test_a_logarithm_in_a_frame_of_one_column_is_not_taken_again(mroz):
    amount = pd.DataFrame({"log(wage)": np.exp(mroz["lwage"])})
    model = Heckman(["educ"], outcome_transform="log")
    for y in (amount["log(wage)"], amount, pl.from_pandas(amount), pa.Table.from_pandas(amount)):
        with pytest.raises(InputError, match=r"the outcome 'log\(wage\)' is a logarithm already"):
            model.fit(mroz[["educ", "kids5"]], y)
    found = model.fit(mroz[["educ", "kids5"]], amount.rename(columns={"log(wage)": "wage"}))
    assert found.fit_.origin.outcome == "wage"

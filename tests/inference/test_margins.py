"""Marginal effects: against differences of predictions, refits, the truth and another program."""

import copy
from dataclasses import replace

import mpmath as mp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from tests.moved import moved_model

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    AllObservedWarning,
    HeckmanfaWarning,
    InputError,
    MissingValueError,
    NotIdentifiedError,
    UnknownFeatureError,
)
from heckmanfa.model.normal import mills, mills_curve

KINDS = ("marginal", "selected", "unselected", "expected", "selection")
DISCRETE = (1, 4)
STEP = 1e-5


def draw(n, seed=0, rho=0.6):
    """Five features: 1 and 4 are dummies, 3 and 4 select alone; two-step needs no luck here."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X[:, DISCRETE] = X[:, DISCRETE] > 0.2
    X[:, 2] = 0.5 * X[:, 0] + X[:, 2]
    w, v = rng.standard_normal((2, n))
    index = 0.2 + X @ [0.5, 0.4, -0.4, 0.8, 0.6]
    y = 1.0 + X[:, :3] @ [1.0, -0.5, 0.7] + 1.2 * (rho * w + np.sqrt(1 - rho**2) * v)
    return X, np.where(index + w > 0, y, np.nan)


@pytest.fixture(scope="module")
def data():
    return draw(900)


@pytest.fixture(scope="module", params=["two-step", "ml"])
def model(request, data):
    return Heckman([0, 1, 2], method=request.param).fit(*data)


def value(model, X, kind):
    """What an effect is the effect on."""
    return model.predict_selection(X) if kind == "selection" else model.predict(X, kind=kind)


def with_column(X, column, values):
    X = X.copy()
    X[:, column] = values
    return X


def by_hand(model, X, kind, column, weight=None):
    """The average change of predictions when a column moves a little, or from 0 to 1."""
    if column in DISCRETE:
        high, low, distance = with_column(X, column, 1.0), with_column(X, column, 0.0), 1.0
    else:
        shifted = (with_column(X, column, X[:, column] + side * STEP) for side in (1, -1))
        (high, low), distance = shifted, 2 * STEP
    change = (value(model, high, kind) - value(model, low, kind)) / distance
    return np.average(change, weights=weight)


@pytest.mark.parametrize("at", ["average", "means"])
@pytest.mark.parametrize("weighted", [False, True])
def test_effects_are_differences_of_predictions_on_average_or_at_the_average_row(
    model, data, weighted, at
):
    X = data[0]
    weight = 1.0 + np.arange(len(X)) % 4 if weighted else None
    table = model.margins(X, kind=KINDS, at=at, sample_weight=weight).tidy()
    assert table["target"].unique().tolist() == list(KINDS)
    if at == "means":
        X, weight = np.average(X, axis=0, weights=weight)[None, :], None
    for kind, rows in table.groupby("target"):
        assert rows["term"].tolist() == ["x0", "x1", "x2", "x3", "x4"]
        assert rows["change"].tolist() == ["slope", "0 to 1", "slope", "slope", "0 to 1"]
        expected = [by_hand(model, X, kind, column, weight) for column in range(5)]
        np.testing.assert_allclose(rows["estimate"], expected, rtol=1e-8, atol=1e-10)


def numerical_covariance(model, effects):
    """J V J' with the Jacobian of a function of the model by central differences."""
    size = 3 + np.count_nonzero(model.support_) + len(model.fit_.probit.features)
    columns = []
    for term in model.fit_.terms[:size]:
        up, down = (effects(moved_model(model, term, side * STEP)) for side in (1, -1))
        columns.append((up - down) / (2 * STEP))
    jacobian = np.column_stack(columns)
    assert model.fit_.terms[size - 1] == ("errors", "imr")
    return jacobian @ model.fit_.covariance[:size, :size] @ jacobian.T


@pytest.mark.parametrize("at", ["average", "means"])
def test_the_covariance_is_that_of_a_numerical_jacobian(model, data, at):
    options = {"kind": KINDS, "at": at, "sample_weight": 1.0 + np.arange(900) % 3}
    result = model.margins(data[0], **options)
    numeric = numerical_covariance(
        model, lambda other: other.margins(data[0], **options).tidy()["estimate"].to_numpy()
    )
    np.testing.assert_allclose(result.vcov(), numeric, rtol=1e-6, atol=1e-9)
    table = result.tidy()
    np.testing.assert_allclose(table["std_error"], np.sqrt(np.diag(numeric)), atol=1e-8)
    assert result.vcov().index.names == ["target", "term", "change"]
    excluded = table[(table["target"] == "marginal") & table["term"].isin(["x3", "x4"])]
    assert (excluded[["estimate", "std_error"]] == 0).all(axis=None)
    assert excluded["p_value"].isna().all()


@pytest.mark.study
@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_standard_errors_agree_with_a_bootstrap_at_the_same_rows(method):
    X, y = draw(1500, seed=3)
    model = Heckman([0, 1, 2], method=method).fit(X, y)
    rng = np.random.default_rng(11)
    n_boot = 200 if method == "two-step" else 120
    estimates = []
    for _ in range(n_boot):
        rows = rng.integers(0, len(y), len(y))
        other = Heckman([0, 1, 2], method=method).fit(X[rows], y[rows])
        estimates.append(other.margins(X[:300], kind=KINDS).tidy()["estimate"].to_numpy())
    table = model.margins(X[:300], kind=KINDS).tidy()
    spread = np.std(estimates, axis=0, ddof=1)
    known = table["std_error"] > 0
    ratio = table["std_error"][known] / spread[known]
    # A standard deviation from 200 draws has a standard error of 5%, from 120 of 6.5%.
    assert np.all(np.abs(ratio - 1) < 0.2)
    assert abs(ratio.mean() - 1) < 0.06


def test_effects_agree_with_the_truth_of_simulated_data():
    truth = make_selection(
        20_000, 5, prediction_features=[0, 2, 3], rho=0.7, sigma=1.5, random_state=4
    )
    model = Heckman([0, 2, 3], method="ml").fit(truth.X, truth.y)
    index = truth.selection_intercept + truth.X @ truth.selection_coef
    g, b, imr = truth.selection_coef, truth.coef, truth.rho * truth.sigma
    expected = {
        "marginal": b,
        "selected": b - imr * mills(index)[1].mean() * g,
        "unselected": b - imr * mills(-index)[1].mean() * g,
        "expected": norm.cdf(index).mean() * b
        + np.mean(norm.pdf(index) * (truth.intercept + truth.X @ b - imr * index)) * g,
        "selection": norm.pdf(index).mean() * g,
    }
    table = model.margins(truth.X, kind=KINDS).tidy()
    for kind, part in table.groupby("target"):
        gap = part["estimate"].to_numpy() - expected[kind]
        error = part["std_error"].to_numpy()
        assert np.all(np.abs(gap) <= 3.5 * error)
        assert np.all(error < 0.04)


def test_statistics_and_intervals_follow_from_estimates(model, data):
    table = model.margins(data[0], conf_level=0.9).tidy()
    numbers = ["estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"]
    assert table.columns.tolist() == ["target", "term", "change", *numbers]
    assert table["target"].unique().tolist() == ["marginal", "selected", "selection"]
    z = table["estimate"] / table["std_error"]
    np.testing.assert_allclose(table["statistic"], z)
    np.testing.assert_allclose(table["p_value"], 2 * norm.sf(np.abs(z)))
    half = norm.ppf(0.95) * table["std_error"]
    np.testing.assert_allclose(table["ci_low"], table["estimate"] - half)
    np.testing.assert_allclose(table["ci_high"], table["estimate"] + half)


# get_margeff(dummy=True) of sm.Probit, statsmodels 0.15.0, on Mroz's 753 women.
MROZ = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618", "city"]
MARGEFF = {
    "average": """
        -0.003600723725   0.00147359801
        0.03940384057     0.007251762569
        0.03711785781     0.005167991646
        -0.0005683059747  0.0001777308656
        -0.0158806177     0.002377420763
        -0.261095956      0.03187661564
        0.01085131002     0.01306709841
        -0.001710130723   0.03378927415
    """,
    "means": """
        -0.004676063085   0.001931863158
        0.05117161391     0.009895633685
        0.04820293306     0.007346015289
        -0.0007380279056  0.0002354552971
        -0.02062329016    0.003330736989
        -0.3390710464     0.04637798252
        0.01409200319     0.01699609393
        -0.002220695279   0.04387339496
    """,
}


@pytest.mark.parametrize("at", ["average", "means"])
def test_effects_on_selection_are_those_of_another_program(at):
    mroz = load_mroz()
    model = Heckman(["educ", "exper", "expersq"]).fit(mroz[MROZ], mroz["lwage"])
    table = model.margins(mroz[MROZ], kind="selection", at=at).tidy()
    assert table["term"].tolist() == MROZ
    assert table["change"].tolist() == ["slope"] * 7 + ["0 to 1"]
    effects, errors = np.array(MARGEFF[at].split(), dtype=float).reshape(-1, 2).T
    np.testing.assert_allclose(table["estimate"], effects, rtol=1e-9)
    np.testing.assert_allclose(table["std_error"], errors, rtol=1e-8)


def test_a_robust_covariance_is_used_where_it_was_asked_for(data):
    X, y = data
    plain, robust = (Heckman([0, 1, 2], cov_type=one).fit(X, y) for one in (None, "robust"))
    ours, theirs = (one.margins(X, kind=KINDS) for one in (plain, robust))
    np.testing.assert_array_equal(ours.tidy()["estimate"], theirs.tidy()["estimate"])
    slope = theirs.tidy().set_index(["target", "term"]).loc[("marginal", "x0"), "std_error"]
    assert slope == pytest.approx(np.sqrt(robust.vcov().iloc[1, 1]), rel=1e-12)
    assert not np.allclose(ours.tidy()["std_error"], theirs.tidy()["std_error"], rtol=1e-3)


def test_a_covariance_that_is_not_known_stays_so(model, data):
    broken = copy.copy(model)
    broken._fit = replace(model.fit_, covariance=np.full_like(model.fit_.covariance, np.nan))
    result = broken.margins(data[0])
    assert np.isfinite(result.tidy()["estimate"]).all()
    # Features 3 and 4 select alone, so that E[y | x] does not depend on them, whatever is known.
    zero = (result.tidy()["target"] == "marginal") & result.tidy()["term"].isin(["x3", "x4"])
    unknown = result.tidy()[~zero]
    assert unknown[["std_error", "p_value", "ci_low", "ci_high"]].isna().all(axis=None)
    assert (result.tidy()[zero]["std_error"] == 0).all()
    assert "not known" in str(result)


def assert_no_part(rows):
    """An effect of zero by construction: no error, no test."""
    assert len(rows)
    assert (rows[["estimate", "std_error", "ci_low", "ci_high"]] == 0).all(axis=None)
    assert rows[["statistic", "p_value"]].isna().all(axis=None)


@pytest.mark.parametrize("at", ["average", "means"])
def test_what_does_not_depend_on_a_variable_has_effect_zero_and_no_test(mroz, at):
    # Splines end at the youngest and the most experienced: slopes there are one-sided.
    model = Heckman.from_formula(
        "lwage ~ bs(exper, df=4) + educ + poly(huseduc, 2) + C(region) + educ:urban",
        "lfp ~ bs(exper, df=4) + educ + bs(age, df=4) + poly(nwifeinc, 2) + kids5:urban + kids618",
        mroz,
    )
    result = model.margins(mroz, kind=KINDS, at=at)
    table = result.tidy().set_index("target")
    for target, out in (
        ("marginal", ["age", "nwifeinc", "kids5", "kids618"]),
        ("selection", ["huseduc", "region"]),
    ):
        rows = table.loc[target]
        assert_no_part(rows[rows["term"].isin(out)])
        others = rows[~rows["term"].isin(out)]
        assert (others["std_error"] > 0).all()
        assert others["p_value"].notna().all()
    for target in ("selected", "unselected", "expected"):
        assert (table.loc[target, "std_error"] > 0).all()
    said = " ".join(str(result).split())
    assert "(E[y | x]: age, nwifeinc, kids618 and kids5; P(s = 1 | x): huseduc" in said
    covariance = result.vcov().loc["marginal"]
    assert (covariance.loc["age"] == 0).all(axis=None)


def test_what_the_fit_left_out_has_effect_zero_and_no_test(mroz, data):
    frame = mroz.assign(twice=2.0 * mroz["educ"])
    with pytest.warns(HeckmanfaWarning, match="twice"):
        model = Heckman.from_formula(
            "lwage ~ educ + twice + bs(exper, df=4)",
            "lfp ~ educ + bs(exper, df=4) + bs(age, df=4)",
            frame,
            on_collinear="drop",
        )
    assert "twice" not in set(model.margins(frame).tidy()["term"])
    for at in ("average", "means"):
        assert_no_part(model.margins(frame, kind=KINDS, at=at, features=["twice"]).tidy())
    X, y = data
    search = HeckmanBestSubset().fit(np.column_stack([X, X[:, 0] ** 2]), y)
    X = np.column_stack([X, X[:, 0] ** 2])
    assert search.prediction_features_ == [0, 1, 2]
    assert_no_part(search.margins(X, kind="marginal", features=[3, 4, 5]).tidy())
    neither = Heckman([0, 1, 2], [0, 1, 2, 3]).fit(X, y)
    assert_no_part(neither.margins(X, kind=KINDS, features=[4, 5]).tidy())


def test_after_a_search_the_report_says_what_is_ignored(data):
    X, y = data
    model = HeckmanBestSubset(never=[4], criterion="bic").fit(X, y)
    result = model.margins(X)
    assert "window" not in str(result)
    expected = [by_hand(model, X, "selected", column) for column in range(5)]
    table = result.tidy()
    np.testing.assert_allclose(
        table["estimate"][table["target"] == "selected"], expected, rtol=1e-8, atol=1e-10
    )


def test_where_all_outcomes_are_observed_nothing_is_said_of_selection():
    X, _ = draw(200)
    y = X @ [1.0, -0.5, 0.7, 0.0, 0.0] + np.random.default_rng(0).standard_normal(200)
    with pytest.warns(AllObservedWarning):
        model = Heckman([0, 1, 2]).fit(X, y)
    result = model.margins(X)
    table = result.tidy()
    assert table["target"].unique().tolist() == ["marginal", "selected"]
    assert table["term"].unique().tolist() == ["x0", "x1", "x2"]
    halves = [table[table["target"] == one].drop(columns="target") for one in table.target.unique()]
    np.testing.assert_array_equal(halves[0].iloc[:, 2:], halves[1].iloc[:, 2:])
    np.testing.assert_allclose(halves[0]["estimate"], model.coef_[:3], rtol=1e-12)
    np.testing.assert_allclose(
        halves[0]["std_error"], np.sqrt(np.diag(model.vcov()))[1:], rtol=1e-10
    )
    for kind in ("selection", "unselected"):
        with pytest.raises(NotIdentifiedError, match="outcome"):
            model.margins(X, kind=["marginal", kind])


def test_features_are_named_as_the_data_names_them(model, data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = Heckman(["a", "b", "c"], method=model.method).fit(frame, y)
    table = named.margins(frame, features=["c", "e"]).tidy()
    assert table["term"].unique().tolist() == ["c", "e"]
    np.testing.assert_allclose(
        table["estimate"], model.margins(X, features=[2, 4]).tidy()["estimate"], rtol=1e-12
    )
    np.testing.assert_allclose(
        named.margins(pl.from_pandas(frame)).tidy()["estimate"],
        model.margins(X).tidy()["estimate"],
        rtol=1e-12,
    )
    # A feature that takes no part has no effect, and its missing values do no harm.
    part = Heckman([0, 1], [0, 1, 3]).fit(X, y)
    broken = with_column(X, 2, np.nan)
    none = part.margins(broken, features=[2, 3]).tidy()
    assert (none.loc[none["term"] == "x2", "estimate"] == 0).all()
    assert part.margins(X, kind="marginal").tidy()["term"].tolist() == ["x0", "x1"]
    assert part.margins(X, kind="selection").tidy()["term"].tolist() == ["x0", "x1", "x3"]


def test_misuse_says_what_to_do(model, data):
    X = data[0]
    for asked, error, words in (
        ({"kind": "selectd"}, InputError, "'selectd'.*'selected'"),
        ({"kind": ["marginal", "marginal"]}, InputError, "'marginal' twice"),
        ({"kind": []}, InputError, "kind is empty"),
        ({"at": "mean"}, InputError, "'mean'.*'means'"),
        ({"features": [7]}, UnknownFeatureError, "column 7"),
        ({"features": "x0"}, InputError, "columns"),
        ({"features": []}, InputError, "feature"),
        ({"sample_weight": [1, 2, 3]}, InputError, "sample_weight.*3"),
        ({"sample_weight": -np.ones(900)}, InputError, "weights"),
        ({"conf_level": 95}, InputError, "conf_level"),
    ):
        with pytest.raises(error, match=words):
            model.margins(X, **asked)
    with pytest.raises(MissingValueError, match="x3"):
        model.margins(with_column(X, 3, np.nan))


def test_the_report_prints_and_shows_as_html(model, data):
    result = model.margins(data[0], kind=KINDS)
    text = str(result)
    assert "900 rows" in text
    for part in ("E[y | x, s = 1]", "E[y | x, s = 0]", "P(s = 1 | x)", "delta method", "0 to 1"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 95
    assert "Effects expected: on P(s = 1 | x) E[y | x, s = 1]" in text
    assert result._repr_html_().count("<table") == 5
    assert "900 rows" in str(model.margins(data[0], at="means"))
    table = result.tidy()
    table["estimate"] = 0.0
    assert (result.tidy()["estimate"] != 0).any()


# Models from formulas. ------------------------------------------------------------------------

WAGE = "log(wage) ~ educ + exper + I(exper**2) + region + urban"
WORK = (
    "lfp ~ nwifeinc + educ + exper + I(exper**2) + bs(age, df=4) + kids5 + log(faminc) * urban"
    " + region + educ:region"
)


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    frame["region"] = np.array(["south", "north", "west"])[np.arange(753) % 3]
    frame["urban"] = frame["city"] == 1
    return frame


@pytest.fixture(scope="module")
def formula_model(mroz):
    return Heckman.from_formula(WAGE, WORK, mroz, method="ml")


def by_kind(model, mean, index):
    """What each kind of effect is the effect on, from both equations."""
    ratio, chance = model.imr_coef_ * norm.pdf(index), norm.cdf(index)
    return {
        "marginal": mean,
        "selected": mean + ratio / chance,
        "unselected": mean - ratio / norm.cdf(-index),
        "expected": chance * mean + ratio,
        "selection": chance,
    }


def equations(model, frame, weight=None):
    """x'beta and z'gamma of every row, or of their weighted average."""
    design = model.fit_.origin.design.transform(frame, prediction=True, selection=True).to_numpy()
    design = design if weight is None else weight @ design
    index = model.selection_intercept_ + design @ model.selection_coef_
    return model.intercept_ + design @ model.coef_, index


def differences(model, high, low, weight=None):
    """Changes of every kind between two data frames, whose formulas are evaluated once."""
    high, low = (by_kind(model, *equations(model, frame, weight)) for frame in (high, low))
    return {kind: high[kind] - low[kind] for kind in KINDS}


def test_effects_of_variables_go_through_the_formulas(formula_model, mroz):
    weight = 1.0 + np.arange(753) % 3
    table = formula_model.margins(mroz, kind=KINDS, sample_weight=weight).tidy()
    numbers = ["educ", "exper", "nwifeinc", "kids5", "faminc", "age"]
    assert set(table["term"]) == {*numbers, "region", "urban"}
    table = table.set_index(["target", "term", "change"])["estimate"]
    inner = mroz["age"].between(31, 59)
    ages = formula_model.margins(
        mroz[inner], kind=KINDS, features=["age"], sample_weight=weight[inner]
    )
    ages = ages.tidy().set_index("target")["estimate"]
    for name in numbers:
        step = 1e-4 * mroz[name].std() if name == "faminc" else 1e-4
        # A spline ends at the youngest and the oldest.
        moved = inner if name == "age" else np.ones(753, dtype=bool)
        up, down = (mroz[name].where(~moved, mroz[name] + side * step) for side in (1, -1))
        changes = differences(formula_model, *(mroz.assign(**{name: one}) for one in (up, down)))
        for kind in KINDS:
            expected = np.average(changes[kind][moved] / (2 * step), weights=weight[moved])
            estimate = ages[kind] if name == "age" else table[kind, name, "slope"]
            assert estimate == pytest.approx(expected, rel=2e-6, abs=1e-9)
    levels = ("urban", False, True), ("region", "north", "south"), ("region", "north", "west")
    for name, low, high in levels:
        frames = (mroz.assign(**{name: level}) for level in (high, low))
        changes = differences(formula_model, *frames)
        label = "0 to 1" if name == "urban" else f"{low} to {high}"
        for kind in KINDS:
            expected = np.average(changes[kind], weights=weight)
            assert table[kind, name, label] == pytest.approx(expected, rel=1e-9, abs=1e-12)


# Without formulas, both are tested above; a formula's derivatives have a test of their own.
@pytest.mark.study
@pytest.mark.parametrize("at", ["average", "means"])
def test_the_covariance_of_a_formula_model_is_that_of_a_numerical_jacobian(mroz, at):
    model = Heckman.from_formula(
        "log(wage) ~ educ + I(educ**2) + region", "lfp ~ log(educ) + kids5 + region", mroz
    )
    features = ["educ", "region"]

    def effects(other):
        result = other.margins(mroz[::9], kind=KINDS, at=at, features=features)
        return result.tidy()["estimate"].to_numpy()

    numeric = numerical_covariance(model, effects)
    result = model.margins(mroz[::9], kind=KINDS, at=at, features=features)
    np.testing.assert_allclose(
        result.tidy()["std_error"], np.sqrt(np.diag(numeric)), rtol=1e-5, atol=1e-7
    )


def test_at_the_means_numbers_are_at_theirs_and_categories_at_their_shares(formula_model, mroz):
    weight = 1.0 + np.arange(753) % 5
    share = weight / weight.sum()
    names = ["educ", "exper", "nwifeinc", "kids5", "faminc", "age"]
    centre = mroz.assign(**{name: share @ mroz[name] for name in names})

    table = formula_model.margins(mroz, kind=KINDS, at="means", sample_weight=weight).tidy()
    table = table.set_index(["target", "term", "change"])["estimate"]
    for name in names:
        step = 1e-4 * centre[name].iloc[0]
        frames = (centre.assign(**{name: centre[name] + side * step}) for side in (1, -1))
        changes = differences(formula_model, *frames, share)
        for kind in KINDS:
            expected = changes[kind] / (2 * step)
            assert table[kind, name, "slope"] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    for name, low, high, label in (
        ("region", "north", "west", "north to west"),
        ("urban", False, True, "0 to 1"),
    ):
        frames = (centre.assign(**{name: level}) for level in (high, low))
        changes = differences(formula_model, *frames, share)
        for kind in KINDS:
            assert table[kind, name, label] == pytest.approx(changes[kind], abs=1e-12)


def test_a_variable_and_its_square_move_together(mroz):
    model = Heckman.from_formula(
        "log(wage) ~ educ + exper + I(exper**2)", "lfp ~ educ + exper + I(exper**2) + kids5", mroz
    )
    table = model.margins(mroz, kind="marginal").tidy().set_index("term")
    names = model.prediction_features_
    b = dict(zip(names, model.coef_[model.support_], strict=True))
    slope = b["exper"] + 2 * b["I(exper ** 2)"] * mroz["exper"].mean()
    assert table["estimate"]["exper"] == pytest.approx(slope, rel=1e-9)
    v = model.vcov().loc["prediction", "prediction"]
    gradient = np.array([1.0, 2 * mroz["exper"].mean()])
    block = v.loc[["exper", "I(exper ** 2)"], ["exper", "I(exper ** 2)"]].to_numpy()
    error = np.sqrt(gradient @ block @ gradient)
    assert table["std_error"]["exper"] == pytest.approx(error, rel=1e-8)
    assert table["estimate"]["educ"] == pytest.approx(b["educ"], rel=1e-9)


def test_numerical_slopes_of_formulas_have_eight_digits(mroz):
    # A variable of large values and small spread is the hard case.
    frame = mroz.assign(year=2000.0 + mroz["kids618"])
    work = "log(age) + I(exper**3) + exp(huseduc / 10) + I((year - 2001)**2) + log(faminc)"
    model = Heckman.from_formula("log(wage) ~ educ", f"lfp ~ educ + {work}", frame)
    index = model.selection_intercept_ + (
        model.fit_.origin.design.transform(frame, prediction=False, selection=True)[
            model.selection_features_
        ]
        @ model.selection_coef_[list(model.fit_.probit.features)]
    )
    columns = ["log(age)", "I(exper ** 3)", "exp(huseduc / 10)", "I((year - 2001) ** 2)"]
    slopes = [1 / frame["age"], 3 * frame["exper"] ** 2, np.exp(frame["huseduc"] / 10) / 10]
    slopes += [2 * (frame["year"] - 2001), 1 / frame["faminc"]]
    names = ["age", "exper", "huseduc", "year", "faminc"]
    table = model.margins(frame, kind="selection").tidy().set_index("term")["estimate"]
    for name, column, slope in zip(names, [*columns, "log(faminc)"], slopes, strict=True):
        g = model.selection_coef_[model.fit_.labels.index(column)]
        expected = np.mean(norm.pdf(index) * g * slope)
        assert table[name] == pytest.approx(expected, rel=2e-8)


def test_at_the_edge_of_a_domain_slopes_are_one_sided(mroz):
    spline = "lfp ~ educ + bs(age, df=5) + kids5"
    model = Heckman.from_formula("log(wage) ~ educ", spline, mroz)
    for age, side in ((30, 1), (60, -1)):
        edge = mroz[mroz["age"] == age]
        estimate = model.margins(edge, kind="selection", features=["age"]).tidy()["estimate"].item()
        steps = [
            model.predict_selection(edge.assign(age=age + side * place * 1e-4)).mean()
            for place in range(3)
        ]
        expected = side * (-3 * steps[0] + 4 * steps[1] - steps[2]) / 2e-4
        assert estimate == pytest.approx(expected, rel=1e-6)
    # Beyond 60 years this power is not a number.
    power = "lfp ~ educ + kids5 + I((60 - age)**1.5)"
    model = Heckman.from_formula("log(wage) ~ educ", power, mroz)
    table = model.margins(mroz, kind="selection", features=["age"]).tidy()
    density = norm.pdf(norm.ppf(model.predict_selection(mroz)))
    g = model.selection_coef_[model.fit_.labels.index("I((60 - age) ** 1.5)")]
    expected = np.mean(density * g * -1.5 * np.sqrt(60 - mroz["age"]))
    assert table["estimate"].item() == pytest.approx(expected, rel=1e-4)
    assert np.isfinite(table["std_error"].item())
    # This one is defined at 40 years alone.
    spike = "lfp ~ educ + kids5 + I(log(40.0000001 - age) + log(age - 39.9999999))"
    with np.errstate(invalid="ignore"):
        odd = mroz.assign(age=np.where(mroz["age"] < 45, 40.0, 40.00000001))
        model = Heckman.from_formula("log(wage) ~ educ", spike, odd)
    with pytest.raises(InputError, match=r"'age'.*753"):
        model.margins(odd.assign(age=40.0), kind="selection", features=["age"])


def test_codings_of_categories_do_not_change_their_effects(mroz):
    frame = mroz.assign(
        kind=pd.Categorical(mroz["region"], categories=["west", "north", "south"]),
        number=np.arange(753) % 3,
    )
    wage = "log(wage) ~ educ + {}"
    work = "lfp ~ educ + kids5 + age + {}"
    tables = {}
    for text, name in (
        ("region", "region"),
        ("C(region, contr.treatment('south'))", "region"),
        ("C(region, contr.sum)", "region"),
        ("kind", "kind"),
        ("C(number)", "number"),
    ):
        model = Heckman.from_formula(wage.format(text), work.format(text), frame)
        part = model.margins(frame, kind="selection", features=[name]).tidy()
        tables[text] = dict(zip(part["change"], part["estimate"], strict=True))
    assert list(tables["region"]) == ["north to south", "north to west"]
    other = tables["C(region, contr.treatment('south'))"]
    assert list(other) == ["south to north", "south to west"]
    assert other["south to north"] == pytest.approx(-tables["region"]["north to south"])
    assert tables["C(region, contr.sum)"] == pytest.approx(tables["region"])
    assert list(tables["kind"]) == ["west to north", "west to south"]
    assert tables["kind"]["west to north"] == pytest.approx(-tables["region"]["north to west"])
    assert list(tables["C(number)"]) == ["0 to 1", "0 to 2"]
    assert tables["C(number)"]["0 to 1"] == pytest.approx(other["south to north"])


def test_rows_without_a_variable_are_left_out_and_counted(formula_model, mroz):
    holes = mroz.assign(educ=mroz["educ"].where(mroz.index > 8), age=mroz["age"].astype(float))
    holes.loc[700:, "age"] = np.nan
    weight = np.linspace(1, 2, 753)
    options = {"features": ["educ"]}
    result = formula_model.margins(holes, sample_weight=weight, **options)
    assert result.n_rows == 753 - 9 - 53
    assert "62 rows" in str(result)
    whole = formula_model.margins(mroz.iloc[9:700], sample_weight=weight[9:700], **options)
    pd.testing.assert_frame_equal(result.tidy(), whole.tidy())
    named = formula_model.margins(holes.assign(w=weight), sample_weight="w", **options)
    pd.testing.assert_frame_equal(named.tidy(), result.tidy())
    other = pl.from_pandas(mroz.iloc[9:700])
    polars = formula_model.margins(other, sample_weight=weight[9:700], **options)
    pd.testing.assert_frame_equal(polars.tidy(), result.tidy())
    with pytest.raises(InputError, match="no row is left"):
        formula_model.margins(mroz.assign(educ=np.nan))


def test_a_variable_without_a_slope_is_named(mroz):
    model = Heckman.from_formula(
        "log(wage) ~ educ", "lfp ~ educ + I(kids618 > 1) + C(kids5 > 0) + nwifeinc", mroz
    )
    result = model.margins(mroz, kind="selection")
    assert result.tidy()["term"].tolist() == ["educ", "nwifeinc"]
    assert "'kids618' is left out: it has no slope, since 'I(kids618 > 1)' jumps" in " ".join(
        str(result).split()
    )
    with pytest.raises(InputError, match=r"'kids5'.*'C\(kids5 > 0\)'"):
        model.margins(mroz, features=["kids5"])


def test_names_in_backticks_and_a_search_from_formulas(mroz):
    odd = mroz.rename(columns={"educ": "my educ", "age": "a.b", "exper": "my exper"})
    wage = "lwage ~ `my educ` + I(`my exper`**2) + city"
    work = "lfp ~ `my educ` + I(`my exper`**2) + `a.b` + kids5 + city"
    model = HeckmanBestSubset.from_formula(wage, work, odd, never=["city"])
    table = model.margins(odd, kind="selection").tidy()
    assert table["term"].tolist() == ["my educ", "my exper", "a.b", "kids5", "city"]
    marginal = model.margins(odd, kind="marginal").tidy()
    assert "city" not in marginal["term"].tolist()
    for asked, error, words in (
        ({"features": ["my edcu"]}, UnknownFeatureError, "'my edcu'.*'my educ'"),
        ({"features": ["hours"]}, UnknownFeatureError, "'hours'"),
        ({"features": ["kids5", "kids5"]}, InputError, "'kids5' twice"),
        ({"features": "kids5"}, InputError, "variables"),
        ({"sample_weight": "w"}, UnknownFeatureError, "sample_weight.*'w'"),
    ):
        with pytest.raises(error, match=words):
            model.margins(odd, **asked)


def test_the_derivative_of_delta_agrees_with_mpmath_in_the_far_tails():
    points = np.concatenate([-np.logspace(6, -6, 60), np.linspace(-6, 30, 73)])

    def exact(z):
        x = -mp.mpf(float(z))
        if x < 150:
            ratio = mp.sqrt(2 / mp.pi) * mp.exp(-x * x / 2) / mp.erfc(x / mp.sqrt(2))
        else:
            tail = x
            for term in range(200, 1, -1):
                tail = x + term / tail
            ratio = x + 1 / tail
        slope = ratio * (ratio - x)
        return ratio * (1 - slope) - slope * (ratio - x)

    with mp.workdps(60):
        error = [
            float(abs(mp.mpf(float(ours)) / exact(z) - 1))
            for z, ours in zip(points, mills_curve(points), strict=True)
        ]
    assert max(error) < 1e-11


def test_missing_values_of_pandas_own_kinds_and_frames_with_the_needed_columns_alone(mroz):
    frame = mroz.assign(
        number=mroz["kids618"].astype("Int64"), city=mroz["urban"].astype("boolean")
    )
    frame.loc[3, "number"] = frame.loc[5, "city"] = pd.NA
    work = "lfp ~ educ + kids5 + {}"
    model = Heckman.from_formula("lwage ~ educ", work.format("number + city"), frame)
    result = model.margins(frame, kind="selection")
    kept = mroz.drop(index=[3, 5])
    plain = Heckman.from_formula("lwage ~ educ", work.format("kids618 + urban"), kept)
    expected = plain.margins(kept, kind="selection").tidy()
    np.testing.assert_allclose(result.tidy()["estimate"], expected["estimate"], rtol=1e-9)
    assert result.tidy()["change"].tolist() == ["slope", "slope", "slope", "0 to 1"]
    assert result.n_rows == 751
    assert plain.margins(mroz[["educ"]], kind="marginal").tidy()["term"].tolist() == ["educ"]
    with pytest.raises(UnknownFeatureError, match="the data does not have"):
        plain.margins(mroz[["educ"]])
    one = plain.margins(mroz[40:41], kind="selected", at="means", features=["educ"])
    rest = plain.margins(mroz[40:41], kind="selected", features=["educ"])
    np.testing.assert_allclose(one.tidy()["estimate"], rest.tidy()["estimate"], rtol=1e-9)

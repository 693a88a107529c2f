"""Weighted estimates of surveys and of two clusterings, and what R says of their errors."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from tests.estimators.test_weighting import moment_conditions
from tests.leaving_out import effective

from heckmanfa import DoublyRobust, InverseProbabilityWeighted, Survey, scan
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, UnderdeterminedWarning

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "weighting.json").read_text())
X = ["a", "b"]
STRATIFIED = Survey(strata="region", psu="village", weights="w", nest=True)


class Known(RegressorMixin, ClassifierMixin, BaseEstimator):
    """The true outcome and chance of `people`, whatever it is fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return 1.0 + X[:, 0]

    def predict_proba(self, X):
        chance = norm.cdf(0.4 + X[:, 0])
        return np.column_stack([1 - chance, chance])


@pytest.fixture(scope="module")
def people():
    """600 people in 24 villages of three regions, and in 15 trades across villages."""
    rng, n = np.random.default_rng(7), 600
    region, village, trade = (rng.integers(0, size, n) for size in (3, 8, 15))
    shared = rng.normal(scale=0.4, size=(3, 8))[region, village]
    a, b = rng.normal(size=(2, n)) + shared
    seen = rng.normal(size=n) < 0.4 + a
    return pd.DataFrame({"a": a, "b": b}).assign(
        y=np.where(seen, 1.0 + a + shared + rng.normal(size=n), np.nan),
        region=region,
        village=village,
        trade=trade,
        w=rng.uniform(0.5, 3.0, n),
        n_villages=20 + 5 * region,
        old=rng.random(n) < 0.6,
        one=1,
        row=np.arange(n),
    )


def fit(kind, people, survey=None, **given):
    options = {"cov_type": survey} if survey is not None else {}
    if kind is DoublyRobust:
        options |= {"outcome_model": Known(), "selection_model": Known(), "random_state": 0}
    if "groups" in given:
        options["cov_type"] = "cluster"
    if "sample_weight" in given:
        options["weight_kind"] = "sampling"
    columns = [] if survey is None else [*survey.named]
    model = kind(["a"], X, **options)
    return model.fit(people[[*X, *columns]], people["y"], **given)


KINDS = pytest.mark.parametrize("kind", [InverseProbabilityWeighted, DoublyRobust])


# Against R. ---------------------------------------------------------------------------------------


@KINDS
def test_errors_are_those_of_r(kind):
    mroz = load_mroz()
    y, features = np.log(mroz["faminc"]), mroz[["educ", "exper"]]
    weight, age = 1.0 + mroz["kids618"], mroz["age"]

    def regression(**options):
        given = {name: options.pop(name) for name in ("sample_weight", "groups") if name in options}
        rows = features
        if "cov_type" in options and options["cov_type"] != "cluster":
            rows = features.assign(w=weight, age=age, city=mroz["city"])
        table = kind(["educ", "exper"], ["educ"], **options).fit(rows, y, **given).tidy()
        return table[table["equation"] == "prediction"]

    n = len(mroz)
    found = regression(weight_kind="sampling", sample_weight=weight)
    np.testing.assert_allclose(found["estimate"], ORACLE["coef"], rtol=1e-9)
    # R's HC3 has no factor; its CR3 has.
    np.testing.assert_allclose(
        found["std_error"], np.sqrt((n - 1) / n) * np.array(ORACLE["hc3"]), rtol=1e-9
    )
    found = regression(cov_type="cluster", groups=age)
    np.testing.assert_allclose(found["estimate"], ORACLE["plain_coef"], rtol=1e-9)
    np.testing.assert_allclose(found["std_error"], ORACLE["cr3"], rtol=1e-8)
    survey = Survey(strata="city", psu="age", weights="w", nest=True)
    found = regression(cov_type=survey)
    np.testing.assert_allclose(found["estimate"], ORACLE["coef"], rtol=1e-9)
    # The jackknife weighs the rest of a stratum up, where we only leave a unit out.
    np.testing.assert_allclose(found["std_error"], ORACLE["jkn"], rtol=1e-3)
    assert (found["std_error"] > 1.01 * np.array(ORACLE["linearized"])).all()


# Surveys. -----------------------------------------------------------------------------------------


@KINDS
def test_a_stratum_of_single_rows_gives_robust_errors(kind, people):
    survey = Survey(strata="one", psu="row", weights="w")
    found, robust = fit(kind, people, survey), fit(kind, people, sample_weight=people["w"])
    np.testing.assert_allclose(found.vcov(), robust.vcov(), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(found.tidy()["ci_low"], robust.tidy()["ci_low"], rtol=1e-9)
    assert "600 sampling units in one stratum" in str(found.summary())
    assert found.estimates().design.df == 599


def in_strata(totals, left, strata, fraction):
    """What units count for: totals about their stratum's mean, times the inverse of `left`."""
    pulls = np.zeros_like(totals)
    for stratum in np.unique(strata):
        own = strata == stratum
        n = own.sum()
        factor = np.sqrt((1 - fraction[stratum]) * n / (n - 1))
        for unit in np.flatnonzero(own):
            pulls[unit] = factor * left[unit] @ (totals[unit] - totals[own].mean(axis=0))
    n = len(totals)
    return pulls * (n - 1) / n


@pytest.mark.parametrize("fpc", [False, True])
@pytest.mark.parametrize("subpop", [False, True])
def test_a_survey_sums_squares_of_its_units_in_each_stratum(people, fpc, subpop):
    options = {"fpc": "n_villages"} if fpc else {}
    options |= {"subpop": "old"} if subpop else {}
    survey = Survey(strata="region", psu="village", weights="w", nest=True, **options)
    model = fit(InverseProbabilityWeighted, people, survey)
    inside = people["old"].to_numpy() if subpop else np.ones(600, dtype=bool)
    count = people["w"] * inside
    count = (count / count[inside].mean()).to_numpy()
    features, y = people[X].to_numpy(), people["y"].to_numpy()
    seen = ~np.isnan(y)
    gamma, beta = np.split(model.tidy()["estimate"].to_numpy()[[2, 3, 4, 0, 1]], [3])
    theta, filled = np.concatenate([gamma, beta]), np.nan_to_num(y)

    def conditions(theta):
        return moment_conditions(theta, features, [0], filled, seen, 50.0)

    derivative = np.column_stack(
        [
            count @ (conditions(theta + step) - conditions(theta - step)) / (2e-5)
            for step in 1e-5 * np.eye(5)
        ]
    )
    codes, strata = people.groupby(["region", "village"]).ngroup(), np.repeat([0, 1, 2], 8)
    totals = pd.DataFrame(conditions(theta) * count[:, None]).groupby(codes).sum().to_numpy()
    W = np.column_stack([np.ones(600), features[:, 0]])
    Z = np.column_stack([np.ones(600), features])
    weight = count * seen * np.minimum(1 / norm.cdf(Z @ gamma), 50.0)
    square = (W * weight[:, None]).T @ W
    left = []
    for unit in range(24):
        own = (codes == unit).to_numpy()
        rest = square - (W[own] * weight[own, None]).T @ W[own]
        left.append(np.eye(5))
        left[-1][3:, 3:] = square @ np.linalg.inv(rest)
    fraction = 8 / (20 + 5 * np.arange(3)) if fpc else np.zeros(3)
    pulls = in_strata(totals, left, strata, fraction) @ np.linalg.inv(derivative).T
    # A jackknife's factor is for the regression alone.
    pulls[:, :3] *= 24 / 23
    order = [3, 4, 0, 1, 2]
    expected = (pulls.T @ pulls)[np.ix_(order, order)]
    np.testing.assert_allclose(model.vcov(), expected, rtol=2e-5, atol=1e-9)
    table, df = model.tidy(), effective(pulls[:, order], 21)
    assert model.estimates().design.df == 21
    reach = student.ppf(0.975, df) * table["std_error"]
    np.testing.assert_allclose(table["ci_high"] - table["estimate"], reach, rtol=1e-4)
    assert model.row_counts_.get("left_out_subpopulation", 0) == (~inside).sum()


def test_doubly_robust_means_of_a_survey_are_those_of_its_units(people):
    model = fit(DoublyRobust, people, STRATIFIED)
    chance, expected = norm.cdf(0.4 + people["a"]), 1.0 + people["a"]
    residual = (people["y"] - expected).fillna(0.0)
    psi, w = expected + np.minimum(1 / chance, 50) * residual, people["w"]
    mean = np.average(psi, weights=w)
    assert model.mean_ == pytest.approx(mean)
    codes = people.groupby(["region", "village"]).ngroup()
    totals = (w * (psi - mean)).groupby(codes).sum().to_numpy()[:, None] / w.sum()
    share = w.groupby(codes).sum().to_numpy() / w.sum()
    left = 1 / (1 - share)[:, None, None]
    pulls = in_strata(totals, left, np.repeat([0, 1, 2], 8), np.zeros(3))
    assert model.tidy()["std_error"][0] == pytest.approx(np.sqrt((pulls**2).sum()))


@KINDS
def test_formulas_files_and_saved_models_know_the_survey(kind, people, reloaded, tmp_path):
    model = fit(kind, people, STRATIFIED)
    options = {name: model.get_params()[name] for name in ("cov_type",)}
    if kind is DoublyRobust:
        options |= {"outcome_model": Known(), "selection_model": Known(), "random_state": 0}
    found = kind.from_formula("y ~ a", "~ a + b", people, **options)
    np.testing.assert_allclose(found.vcov(), model.vcov(), rtol=1e-9)
    np.testing.assert_allclose(found.predict(people), model.predict(people[X]))
    assert found.score(people) == pytest.approx(
        model.score(people[X], people["y"], sample_weight=people["w"])
    )
    # Columns of the design may be there, as in the rows that were fitted.
    beside = people[[*X, *STRATIFIED.named]]
    np.testing.assert_array_equal(model.predict(beside), model.predict(people[X]))
    if kind is InverseProbabilityWeighted:
        again = reloaded(model)
        assert str(again.summary()) == str(model.summary())
        pd.testing.assert_frame_equal(again.tidy(), model.tidy())
        pytest.importorskip("pyarrow")
        unnested = people.assign(village=people["region"] * 8 + people["village"])
        unnested[[*X, "y", "w", "region", "village"]].to_parquet(tmp_path / "people.parquet")
        rows = scan(
            tmp_path / "people.parquet", "y", sample_weight="w", groups=["region", "village"]
        )
        survey = Survey(strata="region", psu="village", weights="w")
        far = kind(["a"], X, cov_type=survey).fit(rows)
        np.testing.assert_allclose(far.vcov(), model.vcov(), rtol=1e-8)


@KINDS
def test_replicate_weights_are_refused(kind, people):
    names = ("village", "n_villages")
    survey = Survey(weights="w", replicate_weights=names, replicate_kind="bootstrap")
    with pytest.raises(InputError, match="without replicate weights: name its strata, psu and"):
        fit(kind, people, survey)


# Two clusterings. ---------------------------------------------------------------------------------


@KINDS
def test_two_clusterings_add_both_and_subtract_their_cells(kind, people, reloaded):
    groups = people[["village", "trade"]]
    both = fit(kind, people, groups=groups)
    cells = groups.to_numpy() @ [100, 1]
    first, second, third = (
        fit(kind, people, groups=codes).vcov()
        for codes in (people["village"], people["trade"], cells)
    )
    np.testing.assert_allclose(both.vcov(), first + second - third, rtol=1e-9)
    assert both.estimates().cluster_counts == (8, 15)
    assert "8 and 15 clusters" in str(both.summary())
    if kind is InverseProbabilityWeighted:
        assert str(reloaded(both).summary()) == str(both.summary())
    # At most t(7).
    table = both.tidy()
    reach = (table["ci_high"] - table["estimate"]) / table["std_error"]
    assert (reach >= student.ppf(0.975, 7) - 1e-9).all()


def test_a_covariance_that_is_not_positive_is_repaired_and_says_so(people):
    # Four clusters of one kind, and seven estimates.
    groups = np.column_stack([people["trade"], people["trade"] // 5 + 3 * (people["row"] % 2)])
    both = fit(InverseProbabilityWeighted, people, groups=groups)
    assert np.linalg.eigvalsh(both.vcov()).min() > -1e-12
    assert "negative eigenvalues were set to zero" in " ".join(str(both.summary()).split())
    usual = fit(InverseProbabilityWeighted, people, groups=people[["village", "trade"]])
    assert "eigenvalues" not in str(usual.summary())


class Remembering(RegressorMixin, BaseEstimator):
    """Refuses to predict a row of a firm or a year that it has seen."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = [{*column} for column in X[:, :2].T]
        return self

    def predict(self, X):
        assert len(X)
        for seen, column in zip(self.seen_, X[:, :2].T, strict=True):
            assert seen.isdisjoint(column)
        return np.zeros(len(X))


def test_no_row_is_predicted_by_a_model_that_saw_either_of_its_clusters():
    rng = np.random.default_rng(0)
    firm, year = rng.integers(0, 12, (2, 800))
    rows = np.column_stack([firm, year, rng.normal(size=800)])
    y = np.where(rng.random(800) < 0.6, rng.normal(size=800), np.nan)
    model = DoublyRobust([2], outcome_model=Remembering(), cov_type="cluster", random_state=0)
    model.fit(rows, y, groups=rows[:, :2])
    assert model.tidy()["std_error"].gt(0).all()


# A row or a cluster alone. ------------------------------------------------------------------------


@pytest.mark.filterwarnings("default::heckmanfa.errors.UnderdeterminedWarning")
@pytest.mark.parametrize("groups", [None, "village", ["village", "trade"]])
@pytest.mark.parametrize("kind", [InverseProbabilityWeighted, DoublyRobust])
def test_what_a_single_row_or_cluster_determines_has_no_error(kind, groups, people):
    first = people["y"].notna().idxmax()
    alone = people["village"] == 3 if groups else people.index == first
    rows = people[X].assign(alone=alone.astype(float))
    # A shift of all outcomes may not turn up as noise.
    y = people["y"] + 1e6
    options = {} if groups is None else {"cov_type": "cluster"}
    if kind is DoublyRobust:
        options |= {"selection_model": Known(), "random_state": 0, "n_folds": 2}
    model = kind(["a", "alone"], X, **options)
    given = {} if groups is None else {"groups": people[groups]}
    one = "cluster or sampling unit" if groups else "row"
    with pytest.warns(UnderdeterminedWarning, match=f"single {one} determines 'alone'"):
        model.fit(rows, y, **given)
    table = model.tidy()
    unknown = table["term"] == "alone"
    assert unknown.sum() == 1
    assert table.loc[unknown, "std_error"].isna().all()
    assert table.loc[~unknown, ["std_error", "ci_low", "p_value"]].notna().all(axis=None)
    assert "alone" in str(model.summary())
    test = model.wald_test("alone = 0")
    assert np.isnan(test.p_value)
    assert "not known" in test.note
    if groups is None:
        # The other errors are those without the row.
        without = kind(["a"], X, **options).fit(people[X].drop(index=first), y.drop(index=first))
        if kind is InverseProbabilityWeighted:
            found, expected = (
                each.tidy().set_index("term")["std_error"]["a"].iloc[0] for each in (model, without)
            )
            assert found == pytest.approx(expected, rel=0.02)

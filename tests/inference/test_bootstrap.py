"""The bootstrap: refits by hand, the law of the draws, and the search inside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.fit import PassedRows
from heckmanfa.inference.replicates import Plan
from heckmanfa.inference.rows_of_fit import read_fit_rows

# Small resampled data give cause for many, which the fits here are not about.
pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

Z = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    return frame[Z], frame["lwage"]


@pytest.fixture(scope="module")
def wages(mroz):
    return Heckman(["educ", "exper", "expersq"]).fit(*mroz)


@pytest.fixture(scope="module")
def searched():
    data = make_selection(400, 6, 3, strength=0.4, random_state=3)
    frame = pd.DataFrame(data.X.copy(), columns=list("abcdef"))
    return HeckmanBestSubset().fit(frame, data.y), frame, data.y


def plan_of(model, X, y, codes=None, n_units=None, **weights):
    sample = read_fit_rows(model.fit_, PassedRows(X, y, **weights)).sample
    return Plan(model._refit(), sample, codes, n_units or len(sample.rows), ())


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_a_replicate_is_a_fit_to_the_rows_that_were_drawn(mroz, method):
    X, y = mroz
    model = Heckman(["educ", "exper"], method=method).fit(X, y)
    boot = model.bootstrap(X, y, 3, random_state=5)
    entropy = np.random.default_rng(5).integers(2**63, size=4).tolist()
    for seed, row in zip(
        np.random.SeedSequence(entropy).spawn(3), boot.replicates.estimates, strict=True
    ):
        drawn = plan_of(model, X, y).weights(np.random.default_rng(seed))
        assert drawn.sum() == len(X)
        rows = np.repeat(np.arange(len(X)), drawn.astype(int))
        copied = Heckman(["educ", "exper"], method=method).fit(X.iloc[rows], y.iloc[rows])
        expected = [copied.intercept_, *copied.coef_, copied.selection_intercept_]
        expected += [*copied.selection_coef_, copied.imr_coef_, copied.rho_, copied.sigma_]
        np.testing.assert_allclose(row, expected, rtol=1e-6, atol=1e-9)


def test_a_replicate_of_a_search_is_a_search_in_the_rows_that_were_drawn(searched):
    model, X, y = searched
    boot = model.bootstrap(X, y, 20, random_state=1)
    entropy = np.random.default_rng(1).integers(2**63, size=4).tolist()
    seeds = np.random.SeedSequence(entropy).spawn(20)
    plan = plan_of(model, X, y)
    for place, seed in enumerate(seeds):
        drawn = plan.weights(np.random.default_rng(seed)).astype(int)
        rows = np.repeat(np.arange(len(X)), drawn)
        copied = HeckmanBestSubset().fit(X.iloc[rows], y[rows])
        assert np.array_equal(boot.replicates.support[place], copied.support_)
        np.testing.assert_allclose(boot.replicates.estimates[place, 1:7], copied.coef_, rtol=1e-6)
    assert len(boot.assignments()) > 1
    assert boot.assignments()["count"].sum() == 20


@pytest.mark.parametrize(
    "search",
    [HeckmanBestSubset(), HeckmanFA(epochs=30, n_draws=20), HeckmanFA(epochs=30, random_state=4)],
)
def test_the_same_bits_for_any_number_of_processes(searched, search):
    _, X, y = searched
    model = search.fit(X, y)
    one, two = (
        model.bootstrap(X, y, 23, random_state=8, n_jobs=jobs).replicates for jobs in (None, 2)
    )
    assert np.array_equal(one.estimates, two.estimates)
    assert np.array_equal(one.support, two.support)
    assert one.failures == two.failures


def test_the_standard_errors_of_mroz_are_close_to_those_of_the_formula(mroz, wages):
    boot = wages.bootstrap(*mroz, 400, random_state=0)
    table = boot.tidy().merge(wages.tidy(), on=["equation", "term"], suffixes=("", "_formula"))
    known = table[table["std_error_formula"].notna()]
    ratio = known["std_error"] / known["std_error_formula"]
    assert ratio.between(0.8, 1.35).all()
    assert (table["percentile_low"] < table["estimate"]).all()
    assert (table["percentile_high"] > table["estimate"]).all()
    prediction = table[table["equation"] == "prediction"].iloc[1:]
    assert (prediction["chosen"] == 1).all()
    np.testing.assert_allclose(prediction["chosen_low"], prediction["percentile_low"])
    np.testing.assert_allclose(table["basic_low"], 2 * table["estimate"] - table["percentile_high"])
    np.testing.assert_allclose(np.sqrt(np.diag(boot.vcov())), boot.tidy()["std_error"], rtol=1e-12)


def test_intervals_of_a_search_are_quantiles_of_its_replicates(searched):
    model, X, y = searched
    boot = model.bootstrap(X, y, 60, random_state=2)
    table = boot.tidy(0.9).set_index(["equation", "term"])
    for place, name in enumerate("abcdef", start=1):
        row = table.loc[("prediction", name)]
        values = boot.replicates.estimates[:, place]
        held = boot.replicates.support[:, place - 1]
        assert row["chosen"] == held.mean()
        assert np.all(values[~held] == 0)
        np.testing.assert_allclose(
            row[["percentile_low", "percentile_high"]].astype(float),
            np.quantile(values, [0.05, 0.95]),
        )
        if held.any():
            np.testing.assert_allclose(
                row[["chosen_low", "chosen_high"]].astype(float),
                np.quantile(values[held], [0.05, 0.95]),
            )
    assert 0 < table["chosen"].min() < 1
    assert {("errors", "rho"), ("errors", "sigma")} <= {*table.index}


def test_groups_are_drawn_whole(mroz):
    X, y = mroz
    model = Heckman(["educ", "exper"]).fit(X, y)
    groups = np.arange(len(X)) % 50
    plan = plan_of(model, X, y, groups, 50)
    drawn = plan.weights(np.random.default_rng(0))
    for one in range(50):
        assert len({*drawn[groups == one]}) == 1
    assert drawn[groups == np.arange(50)[0]].size == np.count_nonzero(groups == 0)
    by_array = model.bootstrap(X, y, 6, unit=groups, random_state=0)
    by_name = model.bootstrap(X.assign(town=groups), y, 6, unit="town", random_state=0)
    by_polars = model.bootstrap(
        pl.DataFrame(X.assign(town=groups)), y, 6, unit="town", random_state=0
    )
    assert np.array_equal(by_array.replicates.estimates, by_name.replicates.estimates)
    assert np.array_equal(by_array.replicates.estimates, by_polars.replicates.estimates)
    assert by_array.n_units == 50
    # A column that is also a feature stays one.
    by_age = model.bootstrap(X, y, 6, unit="age", random_state=0)
    assert by_age.n_units == X["age"].nunique()


@pytest.mark.study
def test_correlated_groups_widen_the_errors_as_the_cluster_covariance_does():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(80), 12)
    n = len(groups)
    common, z = rng.standard_normal((80, 2)), rng.standard_normal(n)
    x = common[groups, 0] + 0.2 * rng.standard_normal(n)
    u = rng.standard_normal(n)
    y = 1 + x + common[groups, 1] + 0.5 * u + rng.standard_normal(n)
    y[0.5 * x + z + u < 0] = np.nan
    X = pd.DataFrame({"x": x, "z": z})
    model = Heckman(["x"], cov_type="cluster").fit(X, y, groups=groups)
    error = model.tidy().set_index(["equation", "term"]).loc[("prediction", "x"), "std_error"]
    rows, whole = (
        model.bootstrap(X, y, 200, unit=unit, random_state=0)
        .tidy()
        .set_index(["equation", "term"])
        .loc[("prediction", "x"), "std_error"]
        for unit in ("row", groups)
    )
    assert whole > 1.8 * rows
    assert whole == pytest.approx(error, rel=0.25)


def test_a_frequency_weight_of_two_is_two_rows_that_may_be_drawn(mroz):
    X, y = mroz
    weight = np.ones(len(X))
    weight[:100] = 3
    model = Heckman(["educ", "exper"]).fit(X, y, sample_weight=weight)
    plan = plan_of(model, X, y, sample_weight=weight)
    rng = np.random.default_rng(0)
    drawn = np.array([plan.weights(rng) for _ in range(400)])
    assert np.all(drawn.sum(axis=1) == weight.sum())
    assert drawn.mean(axis=0)[:100].mean() == pytest.approx(3, rel=0.02)
    # Poisson-like: three rows in one have the variance of three.
    assert drawn[:, :100].var(axis=0).mean() == pytest.approx(3, rel=0.1)
    boot = model.bootstrap(X, y, 5, sample_weight=weight, random_state=0)
    assert boot.n_failed == 0


def test_sampling_weights_go_with_their_rows(mroz):
    X, y = mroz
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = Heckman(["educ", "exper"], weight_kind="sampling", cov_type="robust")
    model.fit(X, y, sample_weight=weight)
    drawn = plan_of(model, X, y, sample_weight=weight).weights(np.random.default_rng(0))
    scaled = weight / weight.mean()
    counts = drawn / scaled
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-12)
    boot = model.bootstrap(X, y, 50, sample_weight=weight, random_state=0)
    merged = boot.tidy().merge(model.tidy(), on=["equation", "term"]).dropna()
    assert (merged["std_error_x"] / merged["std_error_y"]).between(0.6, 1.6).all()


def test_failures_are_counted_by_reason():
    data = make_selection(120, 3, 2, random_state=0)
    X = pd.DataFrame(data.X.copy(), columns=list("abc"))
    X["rare"] = 0.0
    X.loc[[3, 5, 8, 11], "rare"] = 1.0
    y = data.complete_y.copy()
    y[data.X[:, 0] < 0] = np.nan
    y[[3, 8]], y[[5, 11]] = 0.5, np.nan
    X["a"] += np.random.default_rng(1).standard_normal(120)
    model = Heckman(["a", "b"]).fit(X, y)
    boot = model.bootstrap(X, y, 60, random_state=0)
    assert boot.n_failed == sum(boot.replicates.failures.values()) > 0
    assert len(boot.replicates.estimates) == 60 - boot.n_failed
    words = " ".join(boot.replicates.failures)
    assert "collinear" in words or "separat" in words or "decide selection" in words
    assert all(f"Failed ({count})" in str(boot) for count in boot.replicates.failures.values())
    assert "replicates failed" in " ".join(str(boot).split())


def test_a_window_of_rho_is_said_and_kept(searched):
    _, X, y = searched
    model = HeckmanBestSubset(rho_range=(0.3, 0.6)).fit(X, y)
    boot = model.bootstrap(X, y, 30, random_state=0)
    rho = boot.replicates.estimates[:, -2]
    assert np.all((rho >= 0.3) & (rho <= 0.6))
    assert "window" in str(boot)
    empty = {"No assignment of prediction features satisfies the search's constraints."}
    assert {*boot.replicates.failures} <= empty


def test_formula_models_take_the_frame_alone():
    frame = load_mroz()
    model = Heckman.from_formula(
        "log(wage) ~ educ + exper + I(exper**2)",
        "~ nwifeinc + educ + exper + I(exper**2) + age + kids5 + kids618",
        frame.assign(wage=frame["wage"].where(frame["lwage"].notna())),
    )
    data = frame.assign(wage=frame["wage"].where(frame["lwage"].notna()))
    boot = model.bootstrap(data, n_boot=5, random_state=0)
    assert boot.n_failed == 0
    whole = model.bootstrap(data, n_boot=5, unit="age", random_state=0)
    assert whole.n_units == frame["age"].nunique()
    with pytest.raises(UnknownFeatureError, match="'age'"):
        model.bootstrap(data, n_boot=5, unit="agee")


def test_units_and_numbers_that_cannot_be_drawn_are_refused(mroz, wages):
    X, y = mroz
    with pytest.raises(UnknownFeatureError, match="'educ'"):
        wages.bootstrap(X, y, unit="edu")
    with pytest.raises(InputError, match=r"unit.*753"):
        wages.bootstrap(X, y, unit=[1, 2, 3])
    with pytest.raises(InputError, match="one group"):
        wages.bootstrap(X, y, unit=np.zeros(len(X)))
    for bad in (1, 2.5, "many"):
        with pytest.raises(InputError, match="n_boot"):
            wages.bootstrap(X, y, bad)


def test_it_prints_shows_and_goes_into_the_summary(searched):
    model, X, y = searched
    boot = model.bootstrap(X, y, 12, random_state=0)
    assert "<table" in boot._repr_html_()
    found = model.diagnostics(include=[boot])
    assert "bootstrap of the search" in set(found.to_frame()["diagnostic"])
    with pytest.raises(InputError, match="include takes"):
        model.summary(include=[3])


@pytest.mark.parametrize("kind", [Heckman, HeckmanBestSubset])
def test_replicates_that_miss_a_rare_level_are_counted_and_explained(kind):
    rng = np.random.default_rng(0)
    x, z, u, v = rng.normal(size=(4, 300))
    c = np.where(rng.random(300) < 0.5, "a", "b").astype(object)
    selected = x + z + u > -0.3
    c[:3], selected[:3] = "rare", [True, True, False]
    X = pd.DataFrame({"x": x, "z": z, "c": c})
    y = np.where(selected, x + (c == "b") + v, np.nan)
    model = kind(["x", "c"]) if kind is Heckman else kind(always=["x", "c"], never=["z"])
    answer = model.fit(X, y).bootstrap(X, y, n_boot=12, random_state=1)
    # Each of the three rows is missing from 37% of the samples.
    assert answer.n_failed == sum(answer.replicates.failures.values()) > 1
    assert "level" in str(answer)

"""Inverse probability weighting: standard errors, what large weights do, and what is said of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f, norm
from scipy.stats import t as student
from tests.leaving_out import effective, left_out

from heckmanfa import InverseProbabilityWeighted, NaiveOLS, save, scan_parquet
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import (
    AllObservedWarning,
    FewClustersWarning,
    InputError,
    NotIdentifiedError,
    UnknownFeatureError,
)

NAMES = ["age", "educ", "exper", "kids", "income", "city"]
PREDICTION = ["age", "exper", "kids"]


@pytest.fixture
def frame(simulated):
    return pd.DataFrame(simulated.X.copy(), columns=NAMES)


@pytest.fixture
def weights():
    return np.random.default_rng(5).integers(1, 4, 800).astype(float)


def moment_conditions(theta, X, places, y, selected, clip):
    """The probit's and the weighted regression's equations of each row, (n, p + j)."""
    p = X.shape[1] + 1
    gamma, beta = theta[:p], theta[p:]
    Z = np.column_stack([np.ones(len(X)), X])
    W = np.column_stack([np.ones(len(X)), X[:, places]])
    chance = norm.cdf(Z @ gamma)
    probit = (selected - chance) * norm.pdf(Z @ gamma) / (chance * (1 - chance))
    weight = np.minimum(1 / chance, clip)
    residual = np.where(selected, y - W @ beta, 0.0)
    return np.column_stack([Z * probit[:, None], W * (weight * residual)[:, None]])


def stacked_covariance(model, X, places, y, selected, *, count, power=1, groups=None, clip=50.0):
    """The sandwich of the stacked equations, and effective degrees of freedom.

    Derivatives are numerical. What a row or a cluster adds to the regression is how far the
    coefficients move without it.
    """
    p = X.shape[1] + 1
    values = model.tidy()["estimate"].to_numpy()
    theta = np.append(values[-p:], values[:-p])
    filled = np.where(selected, y, 0.0)

    def summed(theta):
        return count @ moment_conditions(theta, X, places, filled, selected, clip)

    steps = 1e-5 * np.maximum(np.abs(theta), 1e-2)
    derivative = np.column_stack(
        [
            (summed(theta + step) - summed(theta - step)) / (2 * step.max())
            for step in np.diag(steps)
        ]
    )
    rows = moment_conditions(theta, X, places, filled, selected, clip)
    Z, W = (np.column_stack([np.ones(len(X)), columns]) for columns in (X, X[:, places]))
    weight = selected * np.minimum(1 / norm.cdf(Z @ theta[:p]), clip)
    frequency = power == 1 and groups is None
    units = np.arange(len(y)) if groups is None else groups
    if frequency:
        moves = left_out(W, weight, filled, units, count)
    else:
        moves, rows = left_out(W, weight * count, filled, units), rows * count[:, None]
    totals = pd.DataFrame(rows).groupby(units).sum().to_numpy()
    totals = np.column_stack([totals[:, :p], moves])
    n = count.sum() if frequency else len(totals)
    shrink = np.where(np.arange(len(theta)) < p, 1.0, (n - 1) / n)
    pulls = totals @ np.linalg.inv(derivative).T * shrink
    times = count if frequency else np.ones(len(pulls))
    order = [*range(p, len(theta)), *range(p)]
    pulls = pulls[:, order]
    covariance = (pulls * times[:, None]).T @ pulls * n / (n - 1)
    return covariance, effective(pulls, n - 1, times)


@pytest.mark.parametrize("clip", [1.6, 50.0])
@pytest.mark.parametrize("kind", ["plain", "frequency", "sampling", "cluster"])
def test_standard_errors_are_those_of_the_stacked_equations(kind, clip, frame, simulated, weights):
    options, given, count, power, groups = {}, {}, np.ones(800), 1, None
    if kind in ("frequency", "sampling"):
        options, given = {"weight_kind": kind}, {"sample_weight": weights}
        count, power = (weights, 1) if kind == "frequency" else (weights / weights.mean(), 2)
    if kind == "cluster":
        groups = np.arange(800) // 16
        options, given = {"cov_type": "cluster"}, {"groups": groups}
    model = InverseProbabilityWeighted(PREDICTION, clip=clip, **options)
    model.fit(frame, simulated.y, **given)
    assert (model.n_clipped_ > 5) == (clip == 1.6)
    expected, df = stacked_covariance(
        *(model, simulated.X, [0, 2, 3], simulated.y, simulated.selected),
        count=count,
        power=power,
        groups=groups,
        clip=clip,
    )
    np.testing.assert_allclose(model.vcov(), expected, rtol=2e-5, atol=1e-9)
    table = model.tidy(0.9)
    np.testing.assert_allclose(table["std_error"], np.sqrt(np.diag(expected)), rtol=2e-5)
    np.testing.assert_allclose(
        table["ci_high"] - table["estimate"],
        student.ppf(0.95, df) * table["std_error"],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        table["p_value"], 2 * student.sf(abs(table["statistic"]), df), rtol=1e-4
    )
    assert table["equation"].tolist() == ["prediction"] * 4 + ["selection"] * 7
    assert table["term"].tolist() == ["Intercept", *PREDICTION, "Intercept", *NAMES]
    np.testing.assert_allclose(table["estimate"][1:4], model.coef_[[0, 2, 3]])


def test_standard_errors_are_near_those_of_a_bootstrap(simulated):
    X, y = simulated.X, simulated.y
    model = InverseProbabilityWeighted([0, 2, 3]).fit(X, y)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(250):
        rows = rng.integers(0, len(y), len(y))
        again = InverseProbabilityWeighted([0, 2, 3]).fit(X[rows], y[rows])
        draws.append([again.intercept_, *again.coef_[[0, 2, 3]]])
    spread = np.std(draws, axis=0)
    np.testing.assert_allclose(model.tidy()["std_error"][:4], spread, rtol=0.2)


def test_estimated_probabilities_give_no_larger_errors_than_known_ones():
    rng = np.random.default_rng(2)
    n = 4000
    x = rng.normal(size=n)
    index = 0.3 + 0.9 * x
    selected = rng.normal(size=n) < index
    y = np.where(selected, 1 + x + rng.normal(size=n), np.nan)
    # The mean of everyone, which the weights alone must balance.
    model = InverseProbabilityWeighted([], clip=1e6).fit(x[:, None], y)
    weight = 1 / norm.cdf(index[selected])
    mean = np.average(y[selected], weights=weight)
    known = np.sqrt(np.sum((weight * (y[selected] - mean)) ** 2)) / weight.sum()
    assert model.tidy()["std_error"][0] < 0.95 * known
    assert model.intercept_ == pytest.approx(1.0, abs=4 * model.tidy()["std_error"][0])


def test_clusters_of_one_row_give_robust_errors(frame, simulated):
    robust = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.y)
    single = InverseProbabilityWeighted(PREDICTION, cov_type="cluster")
    single.fit(frame, simulated.y, groups=np.arange(800))
    np.testing.assert_allclose(single.vcov(), robust.vcov(), rtol=1e-9)


def test_frequencies_are_rows_and_the_scale_of_sampling_weights_is_free(frame, simulated, weights):
    counted = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.y, sample_weight=weights)
    rows = np.repeat(np.arange(800), weights.astype(int))
    repeated = InverseProbabilityWeighted(PREDICTION).fit(frame.iloc[rows], simulated.y[rows])
    np.testing.assert_allclose(counted.vcov(), repeated.vcov(), rtol=1e-7)
    assert counted.effective_rows_ == pytest.approx(repeated.effective_rows_)
    sampled = InverseProbabilityWeighted(PREDICTION, weight_kind="sampling")
    first = sampled.fit(frame, simulated.y, sample_weight=weights).vcov()
    second = sampled.fit(frame, simulated.y, sample_weight=0.37 * weights).vcov()
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_without_missing_outcomes_errors_are_those_of_the_jackknife(frame, simulated):
    with pytest.warns(AllObservedWarning):
        model = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.complete_y)
    W = np.column_stack([np.ones(800), frame[PREDICTION]])
    moves = left_out(W, np.ones(800), simulated.complete_y, np.arange(800))
    pulls = moves @ np.linalg.inv(W.T @ W)
    np.testing.assert_allclose(model.vcov(), pulls.T @ pulls * 799 / 800, rtol=1e-8)
    assert model.diagnostics().to_frame().empty
    assert "no outcome is missing" in str(model.summary())


# Large weights. -----------------------------------------------------------------------------------


def test_overlap_is_what_the_weights_say(frame, simulated, weights):
    model = InverseProbabilityWeighted(PREDICTION, clip=1.6).fit(
        frame, simulated.y, sample_weight=weights
    )
    s, count = simulated.selected, weights[simulated.selected]
    index = model.selection_intercept_ + simulated.X[s] @ model.selection_coef_
    raw = 1 / norm.cdf(index)
    capped = np.minimum(raw, 1.6)
    overlap = model.diagnostics().overlap
    assert overlap.n_rows == count.sum()
    assert overlap.n_capped == model.n_clipped_ == np.count_nonzero(raw > 1.6)
    assert overlap.share_capped == pytest.approx(
        count[raw > 1.6] @ capped[raw > 1.6] / (count @ capped)
    )
    worth = (count @ capped) ** 2 / (count @ capped**2)
    assert model.effective_rows_ == overlap.effective == pytest.approx(worth)
    assert overlap.largest == model.max_weight_ == pytest.approx(raw.max())
    assert (overlap.lowest, overlap.highest) == pytest.approx((1 / raw.max(), 1 / raw.min()))
    # Without a cap, the largest 1% are distinct.
    free = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.y).diagnostics().overlap
    index = model.fit(frame, simulated.y).selection_intercept_ + simulated.X[s] @ (
        model.selection_coef_
    )
    raw = np.sort(1 / norm.cdf(index))[::-1]
    most = 0.01 * len(raw)
    whole = int(most)
    top = raw[:whole].sum() + (most - whole) * raw[whole]
    assert free.share_largest == pytest.approx(top / raw.sum(), rel=0.01)


def test_sampling_weights_multiply_the_weights_of_their_rows(frame, simulated, weights):
    weights = weights**4 / 10
    model = InverseProbabilityWeighted(PREDICTION, clip=1e6, weight_kind="sampling")
    overlap = model.fit(frame, simulated.y, sample_weight=weights).diagnostics().overlap
    s = simulated.selected
    index = model.selection_intercept_ + simulated.X[s] @ model.selection_coef_
    each = weights[s] / norm.cdf(index)
    assert overlap.n_rows == s.sum()
    assert overlap.effective == pytest.approx(each.sum() ** 2 / (each**2).sum())
    top = np.sort(each)[::-1]
    most = 0.01 * len(top)
    whole = int(most)
    share = (top[:whole].sum() + (most - whole) * top[whole]) / top.sum()
    assert overlap.share_largest == pytest.approx(share, rel=0.01)


def test_trimmed_rows_leave_the_regression_and_are_counted(frame, simulated):
    plain = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.y)
    chance = norm.cdf(plain.selection_intercept_ + simulated.X @ plain.selection_coef_)
    model = InverseProbabilityWeighted(PREDICTION, trim=0.4).fit(frame, simulated.y)
    s = simulated.selected & (chance >= 0.4)
    W = np.column_stack([np.ones(s.sum()), frame.loc[s, PREDICTION]])
    root = 1 / np.sqrt(chance[s])
    expected = np.linalg.lstsq(W * root[:, None], simulated.y[s] * root, rcond=None)[0]
    np.testing.assert_allclose([model.intercept_, *model.coef_[[0, 2, 3]]], expected, rtol=1e-8)
    n = np.count_nonzero(simulated.selected & (chance < 0.4))
    assert model.n_trimmed_ == n > 0
    overlap = model.diagnostics().overlap
    assert overlap.n_low == np.count_nonzero(chance < 0.4)
    raw = 1 / chance[simulated.selected]
    assert overlap.share_dropped == pytest.approx(raw[raw > 2.5].sum() / raw.sum())
    said = str(model.summary())
    assert f"{overlap.n_low} rows, of which {n} with an outcome" in said
    assert "below 0.4" in said
    assert "trimmed rows" in model.diagnostics().to_frame()["diagnostic"].tolist()


@pytest.mark.parametrize("trim", [0.0, 0.5, -0.1, 0.9])
def test_a_trim_outside_its_range_is_refused(trim, frame, simulated):
    with pytest.raises(InputError, match="trim"):
        InverseProbabilityWeighted(trim=trim).fit(frame, simulated.y)


def test_a_trim_that_leaves_no_row_is_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1))
    y = np.where(rng.random(3000) < 0.02, X[:, 0] + rng.normal(size=3000), np.nan)
    with pytest.raises(InputError, match="leaves no row"):
        InverseProbabilityWeighted(trim=0.4).fit(X, y)


def test_a_trim_that_leaves_too_few_rows_says_how_many():
    rng = np.random.default_rng(0)
    # Chances are 2/50 and 4/50.
    X = np.column_stack([np.repeat([1.0, 0.0], 50), rng.normal(size=(100, 2))])
    y = np.full(100, np.nan)
    y[[3, 7, 51, 60, 70, 80]] = rng.normal(size=6)
    model = InverseProbabilityWeighted(selection_features=[0], trim=0.06)
    with pytest.raises(InputError, match="leaves 4 rows with an outcome, too few for 4 coef"):
        model.fit(X, y)


def test_few_rows_with_most_of_the_weight_are_a_problem():
    rng = np.random.default_rng(3)
    x = rng.normal(size=1500)
    selected = rng.normal(size=1500) < 0.5 + 2.0 * x
    y = np.where(selected, x + rng.normal(size=1500), np.nan)
    model = InverseProbabilityWeighted(clip=1e6).fit(x[:, None], y)
    verdicts = model.diagnostics().to_frame().set_index("diagnostic")["verdict"]
    assert verdicts["largest weights"] in ("caution", "problem")
    assert verdicts["effective sample size"] in ("caution", "problem")


def test_rows_unlike_any_with_an_outcome_are_counted(frame, simulated):
    model = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.y)
    index = model.selection_intercept_ + simulated.X @ model.selection_coef_
    seen = index[simulated.selected]
    share = np.mean((index < seen.min()) | (index > seen.max()))
    found = model.diagnostics(frame).to_frame().set_index("diagnostic")["value"]
    assert found["rows beyond the overlap"] == f"{100 * share:.1f}%"


# Rows elsewhere, and what is refused. -------------------------------------------------------------


def test_files_and_dask_give_the_same_errors(frame, simulated, weights, tmp_path):
    pytest.importorskip("pyarrow")
    groups = np.arange(800) // 16
    model = InverseProbabilityWeighted(PREDICTION, cov_type="cluster", weight_kind="sampling")
    expected = model.fit(frame, simulated.y, sample_weight=weights, groups=groups)
    wanted, overlap = expected.vcov(), expected.diagnostics().overlap
    whole = frame.assign(y=simulated.y, w=weights, g=groups)
    whole.to_parquet(tmp_path / "rows.parquet", row_group_size=190)
    rows = scan_parquet(tmp_path / "rows.parquet", "y", sample_weight="w", groups="g")
    found = model.fit(rows)
    np.testing.assert_allclose(found.vcov(), wanted, rtol=1e-7, atol=1e-12)
    assert found.diagnostics().overlap.effective == pytest.approx(overlap.effective)
    dask = pytest.importorskip("dask.dataframe")
    lazy = dask.from_pandas(whole, npartitions=3)
    found = model.fit(lazy[NAMES], lazy["y"], sample_weight=lazy["w"], groups=lazy["g"])
    np.testing.assert_allclose(found.vcov(), wanted, rtol=1e-7, atol=1e-12)


def test_a_wald_test_is_the_quadratic_form_of_the_covariance(frame, simulated):
    model = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.y)
    V = model.vcov().to_numpy()[1:3, 1:3]
    b = model.coef_[[0, 2]]
    test = model.wald_test("age = 0, exper = 0")
    assert test.chi2 == pytest.approx(b @ np.linalg.solve(V, b))
    # F, with the fewer effective degrees of freedom of the two.
    table = model.tidy()
    least = max(
        (table["ci_high"] - table["estimate"])[place] / table["std_error"][place]
        for place in (1, 2)
    )
    assert student.ppf(0.975, test.df_denominator) == pytest.approx(least)
    assert test.p_value == pytest.approx(f.sf(test.statistic, 2, test.df_denominator))
    one = model.wald_test("age = 0")
    assert one.p_value == pytest.approx(table["p_value"][1])
    matrix = np.zeros((1, 11))
    matrix[0, 5] = 1.0
    z = model.tidy()["statistic"][5]
    assert model.wald_test(matrix).statistic == pytest.approx(z**2)
    assert model.wald_test("selection.age = 0").statistic == pytest.approx(z**2)
    with pytest.raises(UnknownFeatureError, match="rho"):
        model.wald_test("rho = 0")
    with pytest.warns(FewClustersWarning):
        few = InverseProbabilityWeighted(PREDICTION, cov_type="cluster").fit(
            frame, simulated.y, groups=np.arange(800) % 3
        )
    assert few.tidy()["p_value"].between(0, 1).all()
    with pytest.raises(NotIdentifiedError, match="rank 2"):
        few.wald_test("age = 0, exper = 0, kids = 0")


def test_fewer_clusters_than_the_study_had_are_warned_of(frame, simulated):
    model = InverseProbabilityWeighted(PREDICTION, cov_type="cluster")
    model.fit(frame, simulated.y, groups=np.arange(800) % 20)
    with pytest.warns(FewClustersWarning, match="rests on 19 clusters. With fewer than 20"):
        model.fit(frame, simulated.y, groups=np.arange(800) % 19)


def test_covariances_and_clusters_that_cannot_be_are_refused(frame, simulated):
    fit = InverseProbabilityWeighted
    with pytest.raises(InputError, match="no classical covariance"):
        fit(cov_type="classical").fit(frame, simulated.y)
    with pytest.raises(InputError, match="needs groups"):
        fit(cov_type="cluster").fit(frame, simulated.y)
    with pytest.raises(InputError, match="groups"):
        fit().fit(frame, simulated.y, groups=np.arange(800))
    with pytest.raises(InputError, match="two groups"):
        fit(cov_type="cluster").fit(frame, simulated.y, groups=np.zeros(800))


def test_a_summary_says_what_is_assumed_and_includes_others():
    mroz = load_mroz()
    z = mroz[["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]]
    model = InverseProbabilityWeighted(["educ", "exper"], clip=4).fit(z, mroz["lwage"])
    said = str(model.summary(0.9))
    assert "missing at random" in said
    assert "90%" in said
    assert "capped at 4" in said
    assert f"{model.effective_rows_:.1f}" in said
    assert "booktabs" not in said
    assert r"\toprule" in model.summary().to_latex()
    assert not hasattr(NaiveOLS(), "summary")


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("_estimates", {"covariance": -np.eye(11)}, "variance"),
        ("_estimates", {"n_clusters": 1}, "clusters"),
        ("_estimates", {"values": np.ones(3)}, "shape"),
        ("_overlap", {"n_rows": 0.0}, "on no row"),
    ],
)
def test_a_file_with_estimates_that_no_fit_has_is_refused(
    part, change, words, frame, simulated, tmp_path
):
    model = InverseProbabilityWeighted(PREDICTION).fit(frame, simulated.y)
    setattr(model, part, replace(getattr(model, part), **change))
    # What is written is read again, by what reads files from elsewhere.
    with pytest.raises(InputError, match=words):
        save(model, tmp_path / "m.heckmanfa")

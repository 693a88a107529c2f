"""Two-step against maximum likelihood, and equal variances: by refitting, and by definition."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

from heckmanfa import Heckman, HeckmanBestSubset, scan_parquet
from heckmanfa.analysis import Question, analyse, load_model, save_model
from heckmanfa.cli.answer_json import as_json
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.errors import ConvergenceWarning, HeckmanfaWarning, NoExclusionWarning
from heckmanfa.fit import PassedRows, fit_model
from heckmanfa.inference.rows_of_fit import read_fit_rows
from heckmanfa.results.fit_tests import equal_variance_test, hausman_test
from heckmanfa.text.option_words import at_command_line, told


def draw(n, seed, spread=0.0):
    """Two features that predict, one that drives selection alone; rho 0.6."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    v, h = rng.normal(size=(2, n))
    e = (0.6 * v + 0.8 * h) * np.exp(spread * X[:, 0])
    return X, np.where(0.3 + X @ [0.5, -0.4, 0.8] + v > 0, 1 + X[:, 0] - X[:, 1] + e, np.nan)


@pytest.fixture(scope="module")
def data():
    return draw(400, 1)


@pytest.fixture(scope="module")
def guards(data):
    return Heckman([0, 1], method="ml").fit(*data).fit_.guards


@pytest.fixture(scope="module")
def unequal():
    X, y = draw(1500, 2, spread=0.5)
    return Heckman([0, 1], method="ml").fit(X, y), X, y


def close(one, other, rtol=1e-7):
    for name in ("two_step", "difference", "variance"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=rtol, abs=1e-10), name
    # The rotation of the sums is free, their length is not.
    assert one.spread @ one.spread == pytest.approx(other.spread @ other.spread, rel=rtol)
    assert len(one.spread) == len(other.spread)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.FewClustersWarning")
def test_the_variance_of_the_difference_is_that_of_refitting_with_other_weights():
    """The infinitesimal jackknife: how the difference moves with the weight of each cluster."""
    X, y = draw(90, 6)
    two_step, likelihood = Heckman([0, 1]).fit(X, y), Heckman([0, 1], method="ml").fit(X, y)
    groups = np.arange(90) % 8
    options = {"cov_type": "cluster", "weight_kind": "sampling"}
    model = Heckman([0, 1], method="ml", **options)
    found = model.fit(X, y, groups=groups).fit_.guards
    assert found.two_step == pytest.approx(two_step.imr_coef_, rel=1e-10)
    assert found.difference == pytest.approx(two_step.imr_coef_ - likelihood.imr_coef_, rel=1e-8)
    moved = []
    for cluster in range(8):
        high, low = (
            model.fit(
                X, y, sample_weight=1 + step * (groups == cluster), groups=groups
            ).fit_.guards.difference
            for step in (1e-3, -1e-3)
        )
        moved.append((high - low) / 2e-3)
    assert found.variance == pytest.approx(np.sum(np.square(moved)) * 8 / 7, rel=1e-4)


def by_definition(X, y):
    """The test of equal variances, with derivatives by differences and plain least squares."""
    selected, n = ~np.isnan(y), len(y)
    Z = np.column_stack([np.ones(n), X])
    two_step = Heckman([0, 1]).fit(X, y)
    gamma = np.array([two_step.selection_intercept_, *two_step.selection_coef_])
    sign = np.where(selected, 1.0, -1.0)

    def ratio(index):
        return norm.pdf(index) / norm.cdf(index)

    def delta(index):
        return ratio(index) * (ratio(index) + index)

    index = Z @ gamma
    score = (sign * ratio(sign * index))[:, None] * Z
    of_gamma = score @ np.linalg.inv((Z * delta(sign * index)[:, None]).T @ Z)
    W = np.column_stack([Z[selected, :3], ratio(index[selected])])
    beta = np.linalg.lstsq(W, y[selected], rcond=None)[0]
    v = y[selected] - W @ beta

    def second_step(gamma):
        moved = W.copy()
        moved[:, -1] = ratio(Z[selected] @ gamma)
        return moved.T @ (y[selected] - moved @ beta)

    steps = 1e-6 * np.eye(4)
    slope = np.array([second_step(gamma + h) - second_step(gamma - h) for h in steps]).T / 2e-6
    scores = np.zeros((n, 4))
    scores[selected] = W * v[:, None]
    of_imr = ((scores + of_gamma @ slope.T) @ np.linalg.inv(W.T @ W))[:, -1]
    columns = np.column_stack([X[selected, :2], index[selected]])
    columns -= columns.mean(axis=0)

    def total(gamma, imr):
        return columns.T @ (v**2 + imr**2 * delta(Z[selected] @ gamma))

    in_imr = (total(gamma, beta[-1] + 1e-6) - total(gamma, beta[-1] - 1e-6)) / 2e-6
    in_gamma = np.array([total(gamma + h, beta[-1]) - total(gamma - h, beta[-1]) for h in steps])
    excess = v**2 + beta[-1] ** 2 * delta(index[selected])
    each = np.outer(of_imr, in_imr) + of_gamma @ in_gamma / 2e-6
    each[selected] += columns * (excess - excess.mean())[:, None]
    sums = total(gamma, beta[-1])
    raw = sums @ np.linalg.solve(each.T @ each * n / (n - 1), sums)
    return raw / (1 - raw / selected.sum())


def test_the_test_of_equal_variances_is_its_definition(data, guards):
    assert guards.per_feature
    assert len(guards.spread) == 3
    assert guards.spread @ guards.spread == pytest.approx(by_definition(*data), rel=1e-6)


def test_units_and_origins_do_not_matter(data, guards):
    X, y = data
    scale = np.array([1e-3, 40.0, 1.0])
    # A feature far from zero makes the coordinates other than the features themselves.
    moved = Heckman([0, 1], method="ml").fit(X * scale + [0, 2000, -5], 10 * y + 300).fit_.guards
    assert moved.difference == pytest.approx(10 * guards.difference, rel=1e-6)
    assert moved.variance == pytest.approx(100 * guards.variance, rel=1e-6)
    assert moved.spread @ moved.spread == pytest.approx(guards.spread @ guards.spread, rel=1e-6)


def test_weights_count_rows_and_single_rows_are_clusters(data, guards):
    X, y = data
    times = np.random.default_rng(0).integers(1, 4, len(y))
    model = Heckman([0, 1], method="ml")
    weighted = model.fit(X, y, sample_weight=times).fit_.guards
    close(weighted, model.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).fit_.guards)
    clustered = Heckman([0, 1], method="ml", cov_type="cluster")
    close(clustered.fit(X, y, groups=np.arange(len(y))).fit_.guards, guards, rtol=0.02)
    twice = np.tile(np.arange(len(y)), 2)
    pairs = clustered.fit(np.tile(X, (2, 1)), np.tile(y, 2), groups=twice).fit_
    # Every row twice, in one cluster, says no more than every row once.
    assert pairs.guards.variance == pytest.approx(guards.variance, rel=1e-6)
    assert str(hausman_test(pairs)).startswith("F(1, 399) = ")
    sampling = Heckman([0, 1], method="ml", cov_type="robust", weight_kind="sampling")
    same = sampling.fit(X, y, sample_weight=np.full(len(y), 3.0)).fit_.guards
    close(same, guards)


def test_files_and_tensors_give_the_digits_of_memory(data, guards, tmp_path):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
    model = Heckman(["a", "b"], method="ml")
    close(model.fit(scan_parquet(tmp_path / "rows.parquet", "y")).fit_.guards, guards)
    torch = pytest.importorskip("torch")
    close(Heckman([0, 1], method="ml").fit(torch.tensor(X), torch.tensor(y)).fit_.guards, guards)


def test_many_features_for_the_rows_are_tested_by_the_fitted_outcome():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 9))
    v, h = rng.normal(size=(2, 200))
    y = np.where(X[:, 0] + X[:, 8] + v > 0, X[:, :8].sum(axis=1) + 0.5 * v + h, np.nan)
    fit = Heckman(range(8), method="ml").fit(X, y).fit_
    assert not fit.guards.per_feature
    assert len(fit.guards.spread) == 2
    line = next(
        line
        for line in Heckman(range(8), method="ml").fit(X, y).diagnostics().lines()
        if line[0] == "equal variance, outcome"
    )
    assert "the fitted outcome or the selection index" in line[3]


def test_an_index_that_the_features_span_is_not_counted_twice(data):
    with pytest.warns(NoExclusionWarning):
        fit = Heckman(method="ml").fit(*data).fit_
    assert len(fit.guards.spread) == 3
    assert equal_variance_test(fit).df == 3


def test_without_a_proper_maximum_nothing_is_tested():
    rng = np.random.default_rng(3)
    X, u = rng.normal(size=(300, 2)), rng.normal(size=300)
    y = np.where(X.sum(axis=1) + u > 0, X[:, 0] + u, np.nan)
    with pytest.warns(ConvergenceWarning):
        model = Heckman([0], method="ml").fit(X, y)
    assert model.fit_.guards is None
    lines = {line[0]: line for line in model.diagnostics().lines()}
    for name in ("two-step against ML", "equal variance, outcome"):
        assert lines[name][1:3] == ("not tested: the likelihood did not converge", "caution")
    assert "Two-step against" not in str(model.summary())


def test_other_fits_have_no_guards(data):
    X, y = data
    two_step = Heckman([0, 1]).fit(X, y)
    assert two_step.fit_.guards is None
    assert hausman_test(two_step.fit_) is None
    assert "two-step against ML" not in str(two_step.diagnostics())
    model = Heckman([0, 1], method="ml").fit(X, y)
    read = read_fit_rows(model.fit_, PassedRows(X, y))
    refit = model._refit()
    assert fit_model(refit.spec, read.sample, refit.choose).guards is None


def test_with_few_clusters_the_test_says_so(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        fit = (
            Heckman([0, 1], method="ml", cov_type="cluster")
            .fit(X, y, groups=np.arange(len(y)) % 3)
            .fit_
        )
    assert equal_variance_test(fit).df <= 2
    assert np.isfinite(hausman_test(fit).p_value)


def test_a_right_model_is_ok_and_unequal_variances_are_a_finding(data, unequal):
    right = {
        check.key: check for check in Heckman([0, 1], method="ml").fit(*data).diagnostics().checks()
    }
    assert right["hausman"].verdict == right["equal_variance"].verdict == "ok"
    model, *_ = unequal
    diagnostics = model.diagnostics()
    assert diagnostics.equal_variance.p_value < 1e-4
    assert diagnostics.hausman.p_value < 0.05
    found = {check.key: check for check in diagnostics.checks()}
    assert found["hausman"].verdict == "problem"
    assert found["equal_variance"].verdict == "caution"
    for key in ("hausman", "equal_variance"):
        assert "Use method='two-step' with cov_type='robust'" in told(found[key].meaning)
    # A test of rho = 0 may reject because the model does not fit.
    assert found["rho_test"].verdict == "caution"
    said = re.sub(r"\s+", " ", str(model.summary()))
    assert "Two-step against maximum likelihood: beta_H" in said
    assert "Test of the outcome's variance: chi2(3)" in said
    test = diagnostics.hausman
    assert test.p_value == pytest.approx(chi2.sf(test.statistic, 1))


def test_a_model_file_keeps_them(unequal, tmp_path):
    model, X, y = unequal
    frame = pd.DataFrame(X, columns=list("abc"))
    encoding, encoded = Encoding.learn(frame, list(frame))
    named = Heckman(["a", "b"], method="ml").fit(encoded, y)
    save_model(tmp_path / "m.heckmanfa", named, encoding, {})
    again = load_model(tmp_path / "m.heckmanfa").model
    assert again.fit_.guards.variance == named.fit_.guards.variance
    assert str(again.diagnostics()) == str(named.diagnostics())
    assert again.diagnostics().equal_variance.statistic == pytest.approx(
        model.diagnostics().equal_variance.statistic
    )


def test_the_command_line_names_options(unequal, tmp_path):
    _, X, y = unequal
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    answer = analyse(Question(str(tmp_path / "rows.csv"), "y", select_only=("c",), method="ml"))
    in_python = as_json(answer)
    with at_command_line():
        at_prompt = as_json(answer)
    for said, use in (
        (in_python, "Use method='two-step' with robust=True."),
        (at_prompt, "Use --method two-step with --robust."),
    ):
        lines = {line["diagnostic"]: line for line in said["diagnostics"]}
        for name in ("two-step against ML", "equal variance, outcome"):
            assert lines[name]["meaning"].endswith(use)
        assert "differs from theirs by more than chance" in str(said)


def test_a_search_by_maximum_likelihood_has_them(data):
    X, y = data
    model = HeckmanBestSubset(method="ml", never=[2]).fit(X, y)
    assert model.fit_.guards is not None
    assert hausman_test(model.fit_).df == 1

import re

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from heckmanfa import Heckman
from heckmanfa.data.rows import ArrayRows, Matrix
from heckmanfa.errors import CollinearError, DroppedFeaturesWarning, SeparationError
from heckmanfa.model import equations, separation
from heckmanfa.model.equations import fit_selection
from heckmanfa.model.probit import fit_probit, selection_coordinates
from heckmanfa.model.separation import find_separation


def rows_of(X, s, weight=None):
    return ArrayRows(Matrix(np.asarray(X, dtype=float)), np.zeros(len(s)), np.asarray(s), weight)


def probit_of(X, s, weight=None):
    rows, features = rows_of(X, s, weight), list(range(X.shape[1]))
    return fit_probit(rows, features, selection_coordinates(rows, features, list("abcdefgh")))


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    return X, X @ [0.5, -1.0, 0.2] + 0.3 + rng.normal(size=600) > 0


def test_probit_maximises_the_likelihood_and_reports_convergence(data):
    X, s = data
    fit = probit_of(X, s)

    def minus(theta):
        index = theta[0] + X @ theta[1:]
        return -np.sum(norm.logcdf(np.where(s, index, -index)))

    other = minimize(minus, fit.coef + 0.01, method="BFGS", options={"gtol": 1e-10})
    assert fit.converged
    assert fit.certified
    assert fit.log_likelihood == pytest.approx(-minus(fit.coef), rel=1e-12)
    assert fit.log_likelihood >= -other.fun - 1e-9
    np.testing.assert_allclose(fit.coef, other.x, atol=1e-5)
    share = s.mean()
    null = len(s) * (share * np.log(share) + (1 - share) * np.log(1 - share))
    assert fit.null_log_likelihood == pytest.approx(null, rel=1e-12)


def test_probit_keeps_its_digits_with_wild_units_and_near_collinearity(data):
    X, s = data
    plain = probit_of(X, s)
    wild = X * [1e-6, 1.0, 1e8] + [0.0, 1.6e9, -3e12]
    fit = probit_of(wild, s)
    np.testing.assert_allclose(fit.coef[1:] * [1e-6, 1.0, 1e8], plain.coef[1:], rtol=1e-6)
    near = np.column_stack([X[:, 0], X[:, 0] + 1e-6 * X[:, 1], X[:, 2]])
    fit = probit_of(near, s)
    # x0 b0 + (x0 + 1e-6 x1) b1 is the plain index with b1 = 1e6 g1, b0 = g0 - b1.
    assert fit.converged
    assert fit.coef[2] * 1e-6 == pytest.approx(plain.coef[2], rel=1e-7)
    assert fit.coef[1] + fit.coef[2] == pytest.approx(plain.coef[1], rel=1e-3)
    assert np.sqrt(fit.covariance[2, 2]) * 1e-6 == pytest.approx(
        np.sqrt(plain.covariance[2, 2]), rel=1e-7
    )


def test_frequency_weights_equal_repeated_rows(data):
    X, s = data
    times = np.random.default_rng(2).integers(1, 4, len(s))
    weighted = probit_of(X, s, times.astype(float))
    repeated = probit_of(np.repeat(X, times, axis=0), np.repeat(s, times))
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-10)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-9)
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, rel=1e-12)


def test_large_data_starts_from_its_pilot_and_is_read_few_times():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300_000, 4))
    s = X @ np.ones(4) + rng.normal(size=300_000) > 0
    fit = probit_of(X, s)
    assert fit.converged
    assert fit.n_iterations <= 5
    small = ArrayRows(Matrix(X), np.zeros(len(s)), s, block_rows=200_000)  # no pilot
    features = [0, 1, 2, 3]
    cold = fit_probit(small, features, selection_coordinates(small, features, list("abcd")))
    error = np.sqrt(np.diag(cold.covariance))
    assert np.abs((fit.coef - cold.coef) / error).max() < 1e-8


def test_constant_and_collinear_selection_columns_are_refused_by_name(data):
    X, s = data
    wide = np.column_stack([X, np.full(len(s), 2.0), X[:, 0] - 2 * X[:, 1]])
    with pytest.raises(CollinearError, match=r"'d'.*'e'.*'a'.*'b'"):
        probit_of(wide, s)


def test_a_column_that_varies_in_rare_rows_only_is_not_called_constant():
    rng = np.random.default_rng(0)
    n = 300_000
    X = np.column_stack([rng.normal(size=n), np.zeros(n)])
    X[5000:5020, 1] = 1.0  # in no block of the pilot sample
    s = X[:, 0] + rng.normal(size=n) > 0
    s[5000:5020] = np.arange(20) % 2
    fit = probit_of(X, s)
    assert fit.converged
    assert abs(fit.coef[2]) < 2


def separation_of(X, s):
    rows, features = rows_of(X, s), list(range(X.shape[1]))
    return find_separation(rows, features, selection_coordinates(rows, features, list("abcdefgh")))


def test_complete_separation_names_the_columns_that_do_it(data):
    X, _ = data
    for side, columns in ((X[:, 1] > 0.3, (1,)), (X[:, 0] + X[:, 2] > 0, (0, 2))):
        found = separation_of(X, side)
        assert found.complete
        assert found.columns == columns


def test_quasi_complete_separation_by_a_dummy_is_found_with_its_rows(data):
    X, s = data
    dummy = (np.random.default_rng(3).random(len(s)) < 0.1).astype(float)
    s = s | (dummy == 1)
    found = separation_of(np.column_stack([X, dummy]), s)
    assert not found.complete
    assert found.columns == (3,)
    assert found.n_decided == dummy.sum()


def test_overlapping_data_is_not_called_separated(data):
    assert separation_of(*data) is None


def test_clean_data_needs_no_linear_program(data, monkeypatch):
    def never(*args):
        raise AssertionError("the program was called")

    monkeypatch.setattr(equations, "find_separation", never)
    X, s = data
    fit_selection(rows_of(X, s), [0, 1, 2], list("abc"))


# On the last four, rounding made an earlier form of the proof pass.
@pytest.mark.parametrize("seed", [*range(27), 171, 2019, 2808, 3117])
def test_the_certificate_never_passes_separated_data(seed):
    """Small, separated data: the fit's own proof and the linear program must not disagree."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 60)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, p)) if seed % 2 else rng.integers(0, 5, (n, p)).astype(float)
    s = rng.random(n) < 0.5
    if seed % 3 == 0:
        X[:, 0] = rng.random(n) < 0.3
        s = s | (X[:, 0] == 1)
    else:
        s = X.sum(axis=1) > np.median(X.sum(axis=1))
    rows, features = rows_of(X, s), list(range(p))
    coordinates = selection_coordinates(rows, features, list("abc"))
    fit = fit_probit(rows, features, coordinates)
    assert find_separation(rows, features, coordinates) is not None
    assert not fit.certified


def test_separation_on_many_rows_needs_few_constraints():
    rng = np.random.default_rng(9)
    n = 120_000
    X = rng.normal(size=(n, 5))
    dummy = (rng.random(n) < 0.001).astype(float)
    s = (X[:, 0] + rng.normal(size=n) > 0) & (dummy == 0)
    found = separation_of(np.column_stack([X, dummy]), s)
    assert found.columns == (5,)
    assert found.n_decided == dummy.sum()


def outcome(X, s):
    return np.where(s, X[:, 0] + np.random.default_rng(0).normal(size=len(s)), np.nan)


def test_the_estimator_refuses_separation_naming_the_column_and_the_count(data):
    X, s = data
    dummy = (np.arange(len(s)) % 20 == 0).astype(float)
    s = s & (dummy == 0)
    X = np.column_stack([X, dummy])
    with pytest.raises(SeparationError, match=r"'x3'.*30.*'drop'"):
        Heckman([0]).fit(X, outcome(X, s))
    with pytest.raises(SeparationError, match="'x1'"):
        Heckman([0], on_separation="drop").fit(X, outcome(X, X[:, 1] > 0))


@pytest.mark.parametrize("prediction", [[1], [0, 1]])
def test_dropping_separation_equals_leaving_out_the_column_and_its_rows(data, prediction):
    """The column leaves both equations."""
    X, s = data
    dummy = (np.arange(len(s)) % 20 == 0).astype(float)
    s = s & (dummy == 0)
    wide, y = np.column_stack([dummy, X]), outcome(X, s)
    with pytest.warns(DroppedFeaturesWarning) as caught:
        model = Heckman(prediction, on_separation="drop").fit(wide, y)
    said = [str(warning.message) for warning in caught]
    assert re.search("30 rows .*'x0'", said[0])
    assert "'x0'" in said[1]
    rest = dummy == 0
    expected = Heckman([0]).fit(X[rest], y[rest])
    np.testing.assert_allclose(model.coef_[1:], expected.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.fit_.covariance, expected.fit_.covariance, rtol=1e-9)
    assert model.prediction_features_ == [1]
    assert model.dropped_features_ == [0]
    assert model.row_counts_["left_out_separation"] == 30
    assert model.row_counts_["selected"] + model.row_counts_["unselected"] == rest.sum()


def test_dropping_collinear_columns_equals_leaving_them_out(data):
    X, s = data
    y = outcome(X, s)
    wide = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(len(s))])
    with pytest.raises(CollinearError, match=r"'x3'.*'x0'.*'x1'"):
        Heckman([0, 1, 3]).fit(wide, y)
    with pytest.warns(DroppedFeaturesWarning, match="'x3'"):
        model = Heckman([0, 1, 3], on_collinear="drop").fit(wide, y)
    expected = Heckman([0, 1]).fit(X, y)
    np.testing.assert_allclose(model.coef_[:3], expected.coef_, rtol=1e-10)
    assert sorted(model.dropped_features_) == [3, 4]


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_rows_sorted_by_selection_are_fitted_as_well(method):
    """Whole blocks, and much of the pilot sample, then hold one kind of row only."""
    rng = np.random.default_rng(6)
    n = 150_000
    X = rng.normal(size=(n, 3))
    u = rng.normal(size=n)
    y = np.where(X.sum(axis=1) - 3.2 + u > 0, 1 + X[:, 0] + 0.5 * u + rng.normal(size=n), np.nan)
    order = np.argsort(np.isnan(y), kind="stable")
    one = Heckman([0], method=method).fit(X, y)
    other = Heckman([0], method=method).fit(X[order], y[order])
    error = one.tidy()["std_error"].dropna().to_numpy()
    gap = (one.tidy()["estimate"] - other.tidy()["estimate"]).to_numpy()[: len(error)]
    assert np.abs(gap / error).max() < 1e-8


def test_very_many_separating_columns_are_left_out_many_at_a_time(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 70))
    selected = random.normal(size=150) + X[:, 0] > 0
    rows, features = rows_of(X, selected), range(70)
    coordinates = selection_coordinates(rows, features, [f"x{i}" for i in features])
    programs = []

    def counted(*args):
        programs.append(1)
        return solve(*args)

    solve = separation._solve
    monkeypatch.setattr(separation, "_solve", counted)
    monkeypatch.setattr(separation, "_ONE_BY_ONE", 10)
    found = find_separation(rows, features, coordinates)
    assert found is not None
    # One by one, there would be a program per column at least.
    assert 10 < len(found.columns) < 70
    assert len(programs) < 60
    standardized = (X - coordinates.mean) / coordinates.scale
    side = found.direction[0] + standardized @ found.direction[1:]
    assert np.all(np.where(selected, side, -side) > -1e-5)


def test_a_direction_that_is_wrong_in_one_row_does_not_separate():
    x = np.array([-2.0, -1.0, 1.0, 2.0, -1.5])[:, None]
    selected = np.array([False, False, True, True, True])
    assert separation_of(x, selected) is None
    x[-1] = 1.5
    assert separation_of(x, selected).complete


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 9])
@pytest.mark.parametrize("n_rows", [100, 10_000])
def test_a_refusal_names_the_separating_columns_while_they_are_few(n, n_rows):
    labels = [f"x{place}" for place in range(12)]
    found = separation.Separation(np.ones(13), tuple(range(n)), complete=False, n_decided=7)
    given = found, range(12), labels, n_rows, n_rows // 2, separation.SELECTION
    words = separation._separation_text(*given)
    named = n if n <= 8 else 3
    assert re.findall(r"'(x[0-9]+)'", words) == labels[:named]
    assert (f"and {n - named} more" in words) == (n > 8)
    assert ("separates" in words) == (n == 1)
    # Twelve features are many for fifty rows of a kind, and not for five thousand.
    assert ("none of them alone" in words) == (n > 3 and n_rows == 100)

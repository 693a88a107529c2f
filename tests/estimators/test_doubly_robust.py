"""Doubly robust estimates: closed forms, orthogonality, cross-fitting, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVC
from tests.leaving_out import effective, left_out

from heckmanfa import DoublyRobust, InverseProbabilityWeighted, NaiveOLS, save, scan_parquet
from heckmanfa.errors import (
    AllObservedWarning,
    CollinearError,
    DroppedFeaturesWarning,
    InputError,
    LeakageError,
    NoOutcomeError,
    SeparationError,
    TooFewRowsError,
)
from heckmanfa.inference.cross_fitting import assign_folds
from heckmanfa.inference.doubly_robust import pseudo_outcomes

NAMES = ["age", "educ", "exper", "kids", "income", "city"]
PREDICTION = ["age", "exper", "kids"]


class Outcome(RegressorMixin, BaseEstimator):
    """The true outcome of `draw`, plus a multiple of a function that is wrong."""

    def __init__(self, wrong=0.0):
        self.wrong = wrong

    def fit(self, X, y, sample_weight=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return 1.0 + X[:, 0] + self.wrong * (0.4 - X[:, 0])


class Selection(ClassifierMixin, BaseEstimator):
    """The true chance of `draw`, moved towards one half."""

    def __init__(self, wrong=0.0):
        self.wrong = wrong

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        chance = norm.cdf((1 - self.wrong) * (0.2 + 0.8 * X[:, 0]))
        return np.column_stack([1 - chance, chance])


def draw(n, seed, *, mar=True, slope=0.8):
    """An outcome 1 + x0 + e, whose selection depends on x0; the mean of everyone is 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    e, v = rng.normal(size=(2, n))
    if not mar:
        v = 0.8 * e + 0.6 * v
    selected = v > -(0.2 + slope * X[:, 0])
    return X, np.where(selected, 1.0 + X[:, 0] + e, np.nan)


@pytest.fixture
def frame(simulated):
    return pd.DataFrame(simulated.X.copy(), columns=NAMES)


def by_hand(X, y):
    """Pseudo-outcomes at the truth."""
    s = ~np.isnan(y)
    m, p = 1.0 + X[:, 0], norm.cdf(0.2 + 0.8 * X[:, 0])
    return m + np.where(s, np.nan_to_num(y) - m, 0.0) / p


# Closed forms. ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "frequency", "sampling", "cluster"])
def test_estimates_and_errors_are_those_of_the_influence_functions(kind):
    X, y = draw(600, 1)
    X[:, 1] = X[:, 1] > 0.3
    psi, n = by_hand(X, y), len(y)
    count = np.random.default_rng(4).integers(1, 4, n).astype(float)
    options, given, groups = {}, {}, None
    if kind in ("frequency", "sampling"):
        options, given = {"weight_kind": kind}, {"sample_weight": count}
    else:
        count = np.ones(n)
    if kind == "cluster":
        groups = np.arange(n) // 10
        options, given = {"cov_type": "cluster"}, {"groups": groups}
    model = DoublyRobust(
        over=1, outcome_model=Outcome(), selection_model=Selection(), clip=1e9, **options
    ).fit(X, y, **given)

    one = X[:, 1] == 1
    means = [np.average(psi[who], weights=count[who]) for who in (one | True, ~one, one)]
    W = np.column_stack([np.ones(n), X])
    root = np.sqrt(count)
    beta = np.linalg.lstsq(W * root[:, None], psi * root, rcond=None)[0]
    values = [*means, means[2] - means[1], *beta]
    table = model.tidy()
    np.testing.assert_allclose(table["estimate"], values, rtol=1e-9)
    assert table["equation"].tolist() == ["mean"] * 3 + ["difference"] + ["prediction"] * 3
    assert table["term"].tolist() == [
        *("Everyone", "x1[0]", "x1[1]", "x1[1]", "Intercept", "x0", "x1"),
    ]
    assert model.mean_ == pytest.approx(means[0])

    # What a row or a cluster adds is how far each regression moves without it.
    units = np.arange(n) if groups is None else groups
    frequency = kind == "frequency"
    given_weight, copies = (np.ones(n), count) if frequency else (count, None)
    pulls = []
    for design, member in [(np.ones((n, 1)), who) for who in (one | True, ~one, one)] + [
        (W, one | True)
    ]:
        moves = left_out(design, given_weight * member, psi, units, copies)
        square = (design * (count * member)[:, None]).T @ design
        pulls.append(moves @ np.linalg.inv(square))
    pulls.insert(3, pulls[2] - pulls[1])
    pulls = np.column_stack(pulls)
    size = count.sum() if frequency else len(pulls)
    times = count if frequency else np.ones(len(pulls))
    expected = (pulls * times[:, None]).T @ pulls * (size - 1) / size
    np.testing.assert_allclose(model.vcov(), expected, rtol=1e-8, atol=1e-14)
    reach = student.ppf(0.975, effective(pulls, size - 1, times)) * table["std_error"]
    np.testing.assert_allclose(table["ci_high"] - table["estimate"], reach, rtol=1e-8)


def test_without_missing_outcomes_it_is_the_plain_mean_and_least_squares(frame, simulated):
    y = simulated.complete_y
    with pytest.warns(AllObservedWarning):
        model = DoublyRobust(PREDICTION).fit(frame, y)
    table = model.tidy().set_index("term")
    assert model.mean_ == table["estimate"]["Everyone"] == pytest.approx(y.mean(), rel=1e-12)
    assert table["std_error"]["Everyone"] == pytest.approx(y.std(ddof=1) / np.sqrt(800))
    np.testing.assert_allclose(model.coef_, NaiveOLS(PREDICTION).fit(frame, y).coef_, atol=1e-10)
    with pytest.warns(AllObservedWarning):
        weighted = InverseProbabilityWeighted(PREDICTION).fit(frame, y)
    np.testing.assert_allclose(
        model.vcov().loc["prediction", "prediction"], weighted.vcov(), rtol=1e-8
    )
    assert "no outcome is missing" in str(model.summary())


def test_a_mean_is_the_projection_on_nothing_and_a_difference_that_on_a_dummy(frame, simulated):
    frame["group"] = np.where(frame["city"] > 0.2, "b", "a")
    options = {"outcome_model": LinearRegression(), "random_state": 3}
    model = DoublyRobust(["group"], over="group", **options).fit(frame, simulated.y)
    table = model.tidy().set_index(["equation", "term"])
    for column in ("estimate", "std_error"):
        assert table[column]["difference", "group[b]"] == pytest.approx(
            table[column]["prediction", "group[b]"]
        )
        assert table[column]["mean", "group[a]"] == pytest.approx(
            table[column]["prediction", "Intercept"]
        )
    assert "Difference from the mean of group[a]" in str(model.summary())
    other = DoublyRobust(["group"], over="group", reference={"group": "b"}, **options)
    turned = other.fit(frame, simulated.y).tidy().set_index(["equation", "term"])
    assert turned["estimate"]["difference", "group[a]"] == pytest.approx(
        -table["estimate"]["difference", "group[b]"], rel=1e-6
    )
    constant = DoublyRobust([], random_state=3).fit(frame, simulated.y).tidy()
    np.testing.assert_allclose(constant["estimate"][0], constant["estimate"][1])
    np.testing.assert_allclose(constant["std_error"][0], constant["std_error"][1])


# Robustness. --------------------------------------------------------------------------------------


def test_small_errors_of_either_model_do_not_move_the_mean_to_first_order():
    X, y = draw(400_000, 2)
    s, outcome = ~np.isnan(y), np.nan_to_num(y)
    m, p = 1.0 + X[:, 0], norm.cdf(0.2 + 0.8 * X[:, 0])
    h, g = np.cos(X[:, 0]), p * (1 - p) * np.tanh(X[:, 0])

    def slope(mean, step=1e-4):
        return (mean(step) - mean(-step)) / (2 * step)

    def robust(step):
        return pseudo_outcomes(outcome, s, m + step * h, 1 / (p + step * g)).mean()

    def weighted(step):
        return np.mean(s * outcome / (p + step * g))

    def imputed(step):
        return np.mean(m + step * h)

    noise = 4 * np.std(h * (1 - s / p) - s * g / p**2 * (outcome - m)) / np.sqrt(len(y))
    assert abs(slope(robust)) < noise
    assert abs(slope(weighted)) > 5 * noise
    assert abs(slope(imputed)) > 5 * noise


@pytest.mark.parametrize(
    ("outcome", "selection", "right"),
    [(0.0, 0.0, True), (0.7, 0.0, True), (0.0, 0.7, True), (0.7, 0.7, False)],
)
def test_one_right_model_is_enough(outcome, selection, right):
    X, y = draw(12_000, 5)
    model = DoublyRobust(
        outcome_model=Outcome(outcome), selection_model=Selection(selection), random_state=0
    ).fit(X, y)
    row = model.tidy().iloc[0]
    assert (abs(row["estimate"] - 1.0) < 3 * row["std_error"]) == right


def test_selection_on_the_error_is_not_corrected():
    X, y = draw(12_000, 5, mar=False)
    row = DoublyRobust(random_state=0).fit(X, y).tidy().iloc[0]
    assert row["estimate"] - 1.0 > 5 * row["std_error"]


def test_errors_are_those_of_repeated_samples():
    rows = []
    for seed in range(120):
        model = DoublyRobust([0], n_folds=3, random_state=seed).fit(*draw(300, seed, slope=0.3))
        rows.append(model.tidy()[["estimate", "std_error"]].to_numpy())
    estimates, errors = np.moveaxis(np.array(rows), 2, 0)
    np.testing.assert_allclose(errors.mean(axis=0), estimates.std(axis=0), rtol=0.2)
    np.testing.assert_allclose(estimates.mean(axis=0), [1.0, 1.0, 1.0], atol=0.04)


def test_forests_remove_the_bias_of_least_squares():
    rng = np.random.default_rng(8)
    X = rng.uniform(-2, 2, size=(3000, 2))
    selected = rng.random(3000) < np.where(X[:, 0] ** 2 > 1.5, 0.8, 0.25)
    y = np.where(selected, X[:, 0] ** 2 + rng.normal(size=3000), np.nan)
    forests = DoublyRobust(
        outcome_model=RandomForestRegressor(25, min_samples_leaf=10, random_state=0),
        selection_model=RandomForestClassifier(25, min_samples_leaf=20, random_state=0),
        random_state=0,
    ).fit(X, y)
    truth = np.mean(X[:, 0] ** 2)
    row = forests.tidy().iloc[0]
    assert abs(row["estimate"] - truth) < 3 * row["std_error"]
    linear = DoublyRobust(random_state=0).fit(X, y).tidy().iloc[0]
    assert linear["estimate"] - truth > 5 * linear["std_error"]


# Cross-fitting. -----------------------------------------------------------------------------------


class Remembering(RegressorMixin, BaseEstimator):
    """Predicts a row's outcome if it has seen the row, and refuses otherwise to be right."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = {*X[:, 0].tolist()}
        return self

    def predict(self, X):
        assert self.seen_.isdisjoint(X[:, 0].tolist())
        return np.zeros(len(X))


def test_no_row_is_predicted_by_a_model_that_saw_it_or_its_cluster():
    X, y = draw(300, 3)
    groups = np.arange(300) // 6
    X[:, 0] = groups
    model = DoublyRobust([1], outcome_model=Remembering(), cov_type="cluster", random_state=0)
    assert model.fit(X, y, groups=groups).tidy()["std_error"].gt(0).all()


def test_folds_are_even_and_clusters_whole():
    rng = np.random.default_rng(0)
    selected = rng.random(103) < 0.2
    folds = assign_folds(selected, None, 4, rng)
    assert np.ptp(np.bincount(folds)) <= 1
    assert np.ptp(np.bincount(folds[selected], minlength=4)) <= 1
    group = rng.integers(0, 12, 103)
    folds = assign_folds(selected, group, 4, rng)
    assert pd.Series(folds).groupby(group).nunique().max() == 1
    assert sorted({*folds.tolist()}) == [0, 1, 2, 3]


def test_a_seed_gives_the_same_bits_and_clusters_of_one_row_the_robust_errors(frame, simulated):
    first = DoublyRobust(PREDICTION, random_state=1).fit(frame, simulated.y)
    again = clone(first).fit(frame, simulated.y)
    np.testing.assert_array_equal(first.vcov(), again.vcov())
    other = DoublyRobust(PREDICTION, random_state=2).fit(frame, simulated.y)
    assert other.mean_ != first.mean_
    assert other.mean_ == pytest.approx(first.mean_, abs=first.tidy()["std_error"][0])
    X, y = draw(400, 0)
    known = {"outcome_model": Outcome(), "selection_model": Selection()}
    robust = DoublyRobust(**known).fit(X, y)
    single = DoublyRobust(cov_type="cluster", **known).fit(X, y, groups=np.arange(400))
    np.testing.assert_allclose(single.vcov(), robust.vcov(), rtol=1e-9)


# Large weights. -----------------------------------------------------------------------------------


def test_trimmed_rows_leave_every_mean(frame):
    X, y = draw(2000, 9)
    known = {"outcome_model": Outcome(), "selection_model": Selection()}
    model = DoublyRobust(trim=0.3, **known).fit(X, y)
    low = norm.cdf(0.2 + 0.8 * X[:, 0]) < 0.3
    assert model.n_trimmed_ == low.sum() > 0
    assert model.mean_ == pytest.approx(by_hand(X, y)[~low].mean())
    assert f"{low.sum()} rows" in str(model.summary())
    capped = DoublyRobust(clip=2.0, **known).fit(X, y)
    p = np.maximum(norm.cdf(0.2 + 0.8 * X[:, 0]), 0.5)
    s, m = ~np.isnan(y), 1 + X[:, 0]
    assert capped.mean_ == pytest.approx(np.mean(m + np.where(s, np.nan_to_num(y) - m, 0) / p))
    assert capped.n_clipped_ == np.count_nonzero(s & (norm.cdf(0.2 + 0.8 * X[:, 0]) < 0.5))
    with pytest.raises(InputError, match="leaves no row"):
        DoublyRobust(trim=0.49, selection_model=Zero()).fit(X, y)


class Zero(Selection):
    """Chances of zero and one."""

    def predict_proba(self, X):
        chance = np.where(X[:, 0] > 1e9, 1.0, 0.0)
        return np.column_stack([1 - chance, chance])


def test_chances_of_zero_are_capped_and_counted():
    X, y = draw(300, 0)
    model = DoublyRobust(selection_model=Zero(), random_state=0).fit(X, y)
    assert model.n_clipped_ == (~np.isnan(y)).sum()
    assert model.max_weight_ == np.inf
    assert "infinite" in str(model.summary())
    assert np.isfinite(model.tidy()["std_error"]).all()
    assert "100.0% of the weight" in str(model.diagnostics())


# What is refused, and what is saved. --------------------------------------------------------------


class Broken(Outcome):
    def predict(self, X):
        return np.full(len(X), np.nan)


class Short(Outcome):
    def predict(self, X):
        return np.zeros(len(X) - 1)


class Raising(Outcome):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no luck")


class OneClass(Selection):
    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0])
        return self

    def predict_proba(self, X):
        return np.ones((len(X), 1))


class Beyond(Selection):
    def predict_proba(self, X):
        return np.tile([-1.0, 2.0], (len(X), 1))


class Reversed(Selection):
    """The same chances with the classes in another order."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([1, 0])
        return self

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_the_order_of_the_classes_does_not_matter():
    X, y = draw(300, 0)
    first, second = (
        DoublyRobust(outcome_model=Outcome(), selection_model=kind()).fit(X, y).mean_
        for kind in (Selection, Reversed)
    )
    assert first == second


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"selection_model": SVC()}, "predict_proba"),
        ({"selection_model": LinearRegression()}, "predict_proba"),
        ({"outcome_model": RandomForestRegressor}, r"class RandomForestRegressor.*instance"),
        ({"outcome_model": "forest"}, "outcome_model"),
        ({"outcome_model": Broken()}, "outcome_model predicts .* not finite"),
        ({"outcome_model": KNeighborsRegressor(900)}, "outcome_model cannot be fitted"),
        ({"outcome_model": Short()}, "outcome_model predicts 159 values for 160 rows"),
        ({"outcome_model": Raising()}, "outcome_model cannot be fitted to a fold: no luck"),
        ({"selection_model": OneClass()}, r"selection_model .* the classes \[0\]"),
        ({"selection_model": Beyond()}, r"160 probabilities outside of \[0, 1\]"),
        ({"n_folds": 1}, "n_folds"),
        ({"trim": 0.5}, "trim"),
        ({"cov_type": "classical"}, "no classical covariance"),
        ({"over": "age"}, "'age'.*values"),
        ({"over": "towns"}, "towns"),
        ({"over": ["age"]}, "over"),
        ({"clip": 0.9}, "clip"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(options, match, frame, simulated):
    with pytest.raises(InputError, match=match):
        DoublyRobust(**options).fit(frame, simulated.y)


def test_groups_of_one_level_and_levels_that_decide_selection_are_refused(frame, simulated):
    with pytest.raises(InputError, match=r"over names 'all', which has a single value"):
        DoublyRobust(["age"], over="all").fit(frame.assign(all="a"), simulated.y)
    first = np.arange(800) == np.flatnonzero(simulated.selected)[0]
    rare = frame.assign(rare=np.where(first, "x", "y"))
    with pytest.raises(SeparationError, match="or pass a selection_model whose chances stay"):
        DoublyRobust(["age"], over="rare", random_state=0).fit(rare, simulated.y)


def test_weights_that_a_model_would_ignore_are_refused(frame, simulated):
    weight = np.ones(800)
    with pytest.raises(InputError, match=r"KNeighborsRegressor takes no sample_weight"):
        DoublyRobust(outcome_model=KNeighborsRegressor()).fit(
            frame, simulated.y, sample_weight=weight
        )


def test_folds_that_cannot_be_are_refused(frame, simulated):
    y = simulated.complete_y.copy()
    y[7] = np.nan
    with pytest.raises(TooFewRowsError, match="no outcome is missing outside fold"):
        DoublyRobust(random_state=0, selection_model=LogisticRegression()).fit(frame, y)
    with pytest.raises(TooFewRowsError, match="3 clusters"):
        DoublyRobust(cov_type="cluster").fit(frame, simulated.y, groups=np.arange(800) % 3)


def test_rows_that_cannot_be_are_refused(frame, simulated):
    with pytest.raises(NoOutcomeError):
        DoublyRobust().fit(frame, np.full(800, np.nan))
    y = np.where(frame["age"] > 0, 1.0 + frame["age"] + simulated.X[:, 1] ** 2, np.nan)
    with pytest.raises(SeparationError, match="age"):
        DoublyRobust(random_state=0).fit(frame, y)
    with pytest.raises(LeakageError, match="twin"):
        DoublyRobust().fit(frame.assign(twin=np.nan_to_num(simulated.complete_y)), simulated.y)
    holes = frame.copy()
    holes.loc[np.flatnonzero(~simulated.selected)[:3], "age"] = np.nan
    with pytest.raises(InputError, match="age"):
        DoublyRobust(["age"], ["educ"]).fit(holes, simulated.y)


def test_rows_that_are_not_in_memory_are_refused(frame, simulated, tmp_path):
    pytest.importorskip("pyarrow")
    frame.assign(y=simulated.y).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="in memory"):
        DoublyRobust().fit(scan_parquet(tmp_path / "rows.parquet", "y"))


def test_collinear_features_of_the_projection_are_refused_or_dropped(frame, simulated):
    frame["twice"] = 2 * frame["age"]
    with pytest.raises(CollinearError, match="twice"):
        DoublyRobust(random_state=0).fit(frame, simulated.y)
    with pytest.warns(DroppedFeaturesWarning, match="twice"):
        model = DoublyRobust(random_state=0, on_collinear="drop").fit(frame, simulated.y)
    assert model.dropped_features_ == ["twice"]
    # Models of outcome and selection need no such choice: their predictions are the same.
    plain = DoublyRobust(NAMES, random_state=0).fit(frame, simulated.y)
    without = DoublyRobust(random_state=0).fit(frame[NAMES], simulated.y)
    assert plain.mean_ == pytest.approx(without.mean_, rel=1e-6)


def test_a_file_holds_the_package_s_models_and_no_others(frame, simulated, tmp_path, reloaded):
    model = DoublyRobust(PREDICTION, over=None, random_state=0).fit(frame, simulated.y)
    again = reloaded(model)
    assert str(again.summary()) == str(model.summary())
    assert str(again.diagnostics()) == str(model.diagnostics())
    model = DoublyRobust(outcome_model=LinearRegression(), random_state=0)
    model.fit(frame, simulated.y)
    with pytest.raises(InputError, match=r"outcome_model holds a LinearRegression"):
        save(model, tmp_path / "model.heckmanfa")


def test_diagnostics_of_new_rows_are_refused(frame, simulated):
    model = DoublyRobust(random_state=0).fit(frame, simulated.y)
    with pytest.raises(InputError, match="without X"):
        model.diagnostics(frame)

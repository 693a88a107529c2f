"""HeckmanProbit: a classifier whose outcome is missing where a row is not selected."""

import pickle
import warnings
from math import log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from heckmanfa import Heckman, HeckmanProbit, NaiveOLS
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    AllObservedWarning,
    ConstantOutcomeError,
    HeckmanfaWarning,
    InputError,
    MissingValueError,
    NotIdentifiedError,
    TooFewRowsError,
)
from heckmanfa.model_selection import (
    SelectionKFold,
    joint_log_likelihood,
    observed_auc,
    observed_brier,
    observed_log_loss,
    observed_r2,
)

PREDICTION = [0, 2]


@pytest.fixture(scope="module")
def binary():
    return make_selection(
        500, 4, prediction_features=PREDICTION, rho=0.5, outcome_kind="binary", random_state=3
    )


@pytest.fixture(scope="module")
def model(binary):
    return HeckmanProbit(PREDICTION).fit(binary.X, binary.y)


def test_it_publishes_what_a_binary_outcome_has(model, binary):
    assert is_classifier(model)
    assert not is_regressor(model)
    assert model.classes_.tolist() == [0.0, 1.0]
    assert model.coef_.shape == model.selection_coef_.shape == (4,)
    assert model.support_.tolist() == [True, False, True, False]
    assert model.prediction_features_ == PREDICTION
    assert model.params_.shape == (3 + 5 + 1,)
    assert model.rho_ == pytest.approx(np.tanh(model.params_[-1]))
    assert (model.n_obs_, model.n_selected_) == (500, binary.selected.sum())
    assert model.aic_ == pytest.approx(-2 * model.log_likelihood_ + 2 * 9)
    assert model.bic_ == pytest.approx(-2 * model.log_likelihood_ + 9 * log(500))
    for name in ("imr_coef_", "sigma_", "adjusted_r2_"):
        assert not hasattr(model, name)


def test_probabilities_are_those_of_the_bivariate_normal_distribution(model, binary):
    X = binary.X[:5]
    v, u = (
        model.intercept_ + X @ model.coef_,
        model.selection_intercept_ + X @ model.selection_coef_,
    )

    def both(v, u, rho):
        normal = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
        return np.array([normal.cdf([a, b]) for a, b in zip(v, u, strict=True)])

    joint = both(v, u, model.rho_)
    np.testing.assert_allclose(model.predict_joint(X), joint, rtol=1e-6)
    expected = {
        "marginal": stats.norm.cdf(v),
        "selected": joint / stats.norm.cdf(u),
        "unselected": both(v, -u, -model.rho_) / stats.norm.cdf(-u),
    }
    for kind, positive in expected.items():
        found = model.predict_proba(X, kind=kind)
        np.testing.assert_allclose(found, np.column_stack([1 - positive, positive]), rtol=1e-6)
        np.testing.assert_allclose(model.predict_log_proba(X, kind=kind), np.log(found))
        np.testing.assert_array_equal(model.predict(X, kind=kind), positive > 0.5)


def test_probabilities_near_one_keep_the_digits_of_their_complement(model, binary):
    far = 12.0 * binary.X[:40]
    for kind in ("marginal", "selected", "unselected"):
        logarithms = model.predict_log_proba(far, kind=kind)
        assert np.isfinite(logarithms).all()
        assert logarithms.min() < -40
        np.testing.assert_allclose(np.exp(logarithms).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_log_proba(far)[:, 0],
        stats.norm.logcdf(-(model.intercept_ + far @ model.coef_)),
        rtol=1e-10,
    )


def test_intervals_hold_the_probability_of_the_positive_class(model, binary):
    values, limits = model.predict_proba(binary.X, "selected", "confidence", 0.9)
    np.testing.assert_array_equal(values, model.predict_proba(binary.X, "selected"))
    assert np.all((limits[:, 0] <= values[:, 1]) & (values[:, 1] <= limits[:, 1]))
    with pytest.raises(InputError, match="meaning"):
        model.predict_proba(binary.X, return_interval="prediction")


def test_probabilities_given_selection_and_not_average_to_the_marginal_ones(model, binary):
    p = model.predict_selection(binary.X)
    given_selection, given_none = (
        model.predict_proba(binary.X, kind=kind)[:, 1] for kind in ("selected", "unselected")
    )
    marginal = model.predict_proba(binary.X)[:, 1]
    np.testing.assert_allclose(p * given_selection + (1 - p) * given_none, marginal, rtol=1e-12)
    np.testing.assert_allclose(p * given_selection, model.predict_joint(binary.X), rtol=1e-12)


def test_the_likelihood_of_its_own_rows_is_the_maximum(model, binary):
    own = model.log_likelihood(binary.X, binary.y)
    assert own == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert joint_log_likelihood(model, binary.X, binary.y) == pytest.approx(own / 500)
    # Rows of weight zero are left out; a weight of 2 counts a row twice.
    twice = model.log_likelihood(binary.X, binary.y, sample_weight=np.where(binary.selected, 2, 0))
    s = binary.selected
    p = model.predict_joint(binary.X[s])
    p = np.where(binary.y[s] == 1, p, model.predict_selection(binary.X[s]) - p)
    assert twice == pytest.approx(2 * np.log(p).sum())


@pytest.mark.parametrize(
    ("labels", "kind", "gap"),
    [
        (["no", "yes"], "U", None),
        ([False, True], "b", None),
        ([3, 7], "i", np.nan),
        ([-1.5, 2.5], "f", np.nan),
    ],
)
def test_any_two_labels_come_back(model, binary, labels, kind, gap):
    y = np.full(500, None, dtype=object)
    seen = binary.selected
    y[seen] = np.array(labels, dtype=object)[binary.y[seen].astype(int)]
    labelled = HeckmanProbit(PREDICTION).fit(pd.DataFrame(binary.X), pd.Series(y))
    assert labelled.classes_.tolist() == labels
    np.testing.assert_allclose(labelled.params_, model.params_, rtol=1e-12)
    predicted = labelled.predict(binary.X)
    assert predicted.dtype.kind == kind
    np.testing.assert_array_equal(predicted == labels[1], model.predict(binary.X) == 1)
    assert labelled.score(pd.DataFrame(binary.X), y) == model.score(binary.X, binary.y)
    X = binary.X[:2].copy()
    X[0, 0] = np.nan
    with pytest.raises(MissingValueError):
        labelled.predict(X)
    first, second = labelled.predict(X, missing="nan")
    assert first is gap or np.isnan(first)
    assert second == predicted[1]
    assert np.isnan(labelled.predict_proba(X, missing="nan")[0]).all()
    with pytest.raises(InputError, match="'perhaps'"):
        labelled.score(binary.X, ["perhaps"] * 500)


def test_score_is_accuracy_over_selected_rows_given_selection(model, binary):
    s, probability = binary.selected, model.predict_proba(binary.X, kind="selected")[:, 1]
    weight = np.arange(500) % 3
    for weights in (None, weight):
        kept = None if weights is None else weights[s]
        args = (model, binary.X, binary.y, weights)
        y, p = binary.y[s], probability[s]
        right = accuracy_score(y, p > 0.5, sample_weight=kept)
        assert model.score(*args[1:]) == pytest.approx(right)
        assert observed_auc(*args) == pytest.approx(roc_auc_score(y, p, sample_weight=kept))
        assert observed_log_loss(*args) == pytest.approx(-log_loss(y, p, sample_weight=kept))
        assert observed_brier(*args) == pytest.approx(-brier_score_loss(y, p, sample_weight=kept))


def test_scorers_refuse_what_they_do_not_score(model, binary):
    linear = Heckman(PREDICTION).fit(
        binary.X, np.where(binary.selected, binary.X[:, 0] ** 3, np.nan)
    )
    for scorer in (observed_auc, observed_brier, observed_log_loss):
        with pytest.raises(InputError, match="predict_proba"):
            scorer(linear, binary.X, binary.y)
        with pytest.raises(InputError, match="none of these 500 rows has an outcome"):
            scorer(model, binary.X, np.full(500, np.nan))
    with pytest.raises(InputError, match="observed_log"):
        observed_r2(model, binary.X, binary.y)
    with pytest.raises(InputError, match="NaiveOLS"):
        joint_log_likelihood(NaiveOLS().fit(binary.X, binary.X[:, 0] ** 3), binary.X, binary.y)
    with pytest.raises(InputError, match="class"):
        observed_auc(model, binary.X, np.where(binary.y == 1, 1, np.nan))


def test_selected_decides_and_is_needed_again(model, binary):
    # Labels of rows that are not selected are ignored, whatever they are.
    y = np.where(binary.selected, binary.y, 7.0)
    chosen = HeckmanProbit(PREDICTION).fit(binary.X, y, selected=binary.selected)
    np.testing.assert_array_equal(chosen.params_, model.params_)
    assert chosen.score(binary.X, y, selected=binary.selected) == model.score(binary.X, binary.y)
    with pytest.raises(InputError, match="fitted with selected"):
        chosen.score(binary.X, y)
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            HeckmanProbit(PREDICTION),
            binary.X,
            y,
            params={"selected": binary.selected},
            cv=SelectionKFold(2),
            scoring={"auc": observed_auc, "joint": joint_log_likelihood},
            error_score="raise",
        )
    assert np.isfinite(found["test_auc"]).all()
    assert np.isfinite(found["test_joint"]).all()


def test_pipelines_and_grids(model, binary):
    pipe = make_pipeline(StandardScaler(), HeckmanProbit(PREDICTION)).fit(binary.X, binary.y)
    np.testing.assert_allclose(
        pipe.predict_proba(binary.X, kind="selected"),
        model.predict_proba(binary.X, kind="selected"),
        rtol=1e-6,
    )
    search = GridSearchCV(
        pipe,
        {"heckmanprobit__prediction_features": [[1], PREDICTION]},
        scoring=observed_log_loss,
        cv=SelectionKFold(2),
        error_score="raise",
    ).fit(binary.X, binary.y)
    assert search.best_params_["heckmanprobit__prediction_features"] == PREDICTION
    assert observed_auc(search, binary.X, binary.y) > 0.5
    assert clone(model).get_params() == model.get_params()
    assert list(model.get_params()) == sorted(HeckmanProbit().get_params())


def test_formulas_name_the_outcome():
    mroz = load_mroz()
    frame = mroz.assign(
        well=np.where(mroz["wage"].isna(), None, np.where(mroz["wage"] >= 5, "y", "n"))
    )
    model = HeckmanProbit.from_formula(
        "well ~ educ", "lfp ~ educ + age + kids5 + kids618 + nwifeinc", frame
    )
    # R, sampleSelection 1.2-12, Newton-Raphson.
    assert model.log_likelihood_ == pytest.approx(-653.203658061633, rel=1e-10)
    assert model.rho_ == pytest.approx(0.116389628852594, rel=1e-6)
    assert model.classes_.tolist() == ["n", "y"]
    assert 0.7 < model.score(frame) < 0.9
    assert model.log_likelihood(frame) == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert observed_brier(model, frame) > -0.25
    assert set(model.predict(frame)) == {"n", "y"}


def test_without_a_missing_outcome_it_is_a_plain_probit(binary):
    # A comparison with a missing value is false, a trap that the warning names.
    with pytest.warns(AllObservedWarning, match="comparison"):
        model = HeckmanProbit(PREDICTION).fit(binary.X, binary.complete_y)
    assert np.isnan(model.rho_)
    np.testing.assert_allclose(
        model.predict_proba(binary.X)[:, 1],
        stats.norm.cdf(model.intercept_ + binary.X @ model.coef_),
    )
    np.testing.assert_array_equal(
        model.predict_proba(binary.X, kind="selected"), model.predict_proba(binary.X)
    )
    with pytest.raises(NotIdentifiedError):
        model.predict_proba(binary.X, kind="unselected")
    with pytest.raises(NotIdentifiedError):
        model.log_likelihood(binary.X, binary.complete_y)


def test_bad_outcomes_are_refused_and_leave_the_model_as_it_was(model, binary):
    fitted = pickle.loads(pickle.dumps(model))
    for y, error, words in [
        (np.where(binary.selected, 1.0, np.nan), ConstantOutcomeError, "one class, 1.0, in all"),
        (np.where(binary.selected, binary.X[:, 0], np.nan), InputError, "use Heckman for an amou"),
        (np.where(binary.selected, np.arange(500) % 3, np.nan), InputError, "3 classes in select"),
        (
            np.where(
                np.arange(500) == np.argmax(binary.selected),
                5,
                np.where(binary.selected, 2, np.nan),
            ),
            TooFewRowsError,
            "only 1 selected row is of the class 5.0",
        ),
    ]:
        with pytest.raises(error, match=words):
            fitted.fit(binary.X, y)
    np.testing.assert_array_equal(fitted.params_, model.params_)
    with pytest.raises(ConstantOutcomeError, match=r"0.0 occurs only in rows .* or have no weight"):
        # Rows of weight zero are not there.
        fitted.fit(binary.X, binary.y, sample_weight=np.where(binary.y == 0, 0, 1))


def test_every_fold_keeps_both_classes_where_there_are_enough():
    y = np.full(60, None, dtype=object)
    y[:40], y[:8] = "often", "rarely"
    for groups in (None, np.arange(60) // 2):
        for _, test in SelectionKFold(4).split(np.zeros((60, 1)), y, groups):
            assert np.count_nonzero(y[test] == "rarely") == 2
            assert np.count_nonzero(pd.isna(y[test])) in (4, 5, 6)
    with pytest.raises(InputError, match="numbers"):
        next(SelectionKFold(4).split(np.zeros((60, 1)), [*("abc" * 10), *[None] * 30]))


# What algebra says must not change, for random data. --------------------------------------------

seeds = st.integers(0, 10**6)
# An eighth of the profile's examples: maximum likelihood of random data takes a while.
FEW = settings(max_examples=settings().max_examples // 8)


def data(seed, n=250):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ (np.eye(3) + 0.3 * rng.normal(size=(3, 3)))
    u = rng.normal(size=n)
    s = X @ [0.6, -0.5, 0.9] + 0.4 + u > 0
    e = 0.5 * u + np.sqrt(0.75) * rng.normal(size=n)
    return X, np.where(s, 0.2 + X[:, :2] @ [0.6, -0.4] + e > 0, np.nan)


def fit(X, y, prediction=(0, 1), **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return HeckmanProbit(list(prediction)).fit(X, y, **given)


def same(one, other, sign=1.0):
    """Compare two fits whose likelihoods are the same function."""
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(sign * other.coef_, one.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.selection_coef_, one.selection_coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sign * other.rho_, one.rho_, atol=1e-5)
    errors = [fitted.tidy()["std_error"].dropna().to_numpy() for fitted in (one, other)]
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-3, atol=1e-5)


@given(seeds)
@FEW
def test_permuting_rows_changes_nothing(seed):
    X, y = data(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    same(fit(X, y), fit(X[order], y[order]))


@given(seeds)
@FEW
def test_permuting_columns_permutes_coefficients(seed):
    X, y = data(seed)
    one, other = fit(X, y), fit(X[:, [2, 1, 0]], y, prediction=[2, 1])
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(other.coef_[::-1], one.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.rho_, one.rho_, atol=1e-5)


@given(seeds)
@FEW
def test_units_of_features_only_scale_coefficients(seed):
    X, y = data(seed)
    scale = np.array([1e6, 1e-4, 1.0])
    one, other = fit(X, y), fit(X * scale + [5e6, 0.0, -3.0], y)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-8)
    np.testing.assert_allclose(other.coef_ * scale, one.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.rho_, one.rho_, atol=1e-5)


@given(seeds)
@FEW
def test_flipping_the_classes_flips_the_prediction_equation_and_rho(seed):
    X, y = data(seed)
    one, other = fit(X, y), fit(X, 1.0 - y)
    same(one, other, sign=-1.0)
    np.testing.assert_allclose(
        other.predict_proba(X, kind="selected")[:, ::-1],
        one.predict_proba(X, kind="selected"),
        atol=1e-5,
    )

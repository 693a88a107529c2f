"""What a selection model is compared with: OLS, weighting, the adaptive lasso, RU regression."""

import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, lars_path
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heckmanfa
from heckmanfa import (
    Heckman,
    HeckmanLasso,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
)
from heckmanfa.data.random_state import generator
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    AllObservedWarning,
    CollinearError,
    ConvergenceWarning,
    DroppedFeaturesWarning,
    HeckmanfaError,
    HeckmanfaWarning,
    InputError,
    MissingExtraError,
    NoExclusionWarning,
    UnderdeterminedWarning,
)
from heckmanfa.model_selection import (
    SelectionKFold,
    joint_log_likelihood,
    observed_mae,
    observed_mse,
    observed_r2,
)

# Some models here are chosen or built badly, and say so; that is not what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.RhoOutsideWarning")

NAMES = ["age", "educ", "exper", "kids", "income", "city"]
PREDICTION = ["age", "exper", "kids"]
MODELS = {
    "ols": NaiveOLS(PREDICTION),
    "ipw": InverseProbabilityWeighted(PREDICTION),
    "lasso": HeckmanLasso(),
    "ru": RURegressor(PREDICTION, epochs=2, random_state=0),
}


@pytest.fixture(params=list(MODELS))
def model(request):
    if request.param == "ru":
        pytest.importorskip("torch", reason="RU regression needs Torch")
    return clone(MODELS[request.param])


@pytest.fixture
def frame(simulated):
    return pd.DataFrame(simulated.X.copy(), columns=NAMES)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="RU regression needs Torch")


# What all have in common. -------------------------------------------------------------------------


def test_rows_without_an_outcome_are_taken_and_scored_without(model, frame, simulated):
    model.fit(frame, simulated.y)
    s = simulated.selected
    assert model.n_selected_ == model.row_counts_["selected"] == s.sum()
    assert np.isfinite(model.predict(frame)).all()
    assert model.predict(frame).shape == (800,)
    kind = {"kind": "selected"} if isinstance(model, Heckman) else {}
    residual = simulated.y[s] - model.predict(frame[s], **kind)
    spread = np.sum((simulated.y[s] - simulated.y[s].mean()) ** 2)
    expected = 1 - np.sum(residual**2) / spread
    assert model.score(frame, simulated.y) == pytest.approx(expected, rel=1e-6)
    flagged = clone(model).fit(frame, simulated.complete_y, selected=s)
    np.testing.assert_array_equal(flagged.predict(frame), model.predict(frame))


# Least squares. -----------------------------------------------------------------------------------


def test_ols_is_least_squares_on_the_selected_rows(frame, simulated):
    model = NaiveOLS(PREDICTION).fit(frame, simulated.y)
    s = simulated.selected
    X, y = frame.loc[s, PREDICTION].to_numpy(), simulated.y[s]
    expected = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_[model.support_], expected.coef_, rtol=1e-10)
    assert model.intercept_ == pytest.approx(expected.intercept_, rel=1e-10)
    np.testing.assert_allclose(
        model.predict(frame), expected.predict(frame[PREDICTION].to_numpy()), rtol=1e-9
    )
    sse = np.sum((y - expected.predict(X)) ** 2)
    m = len(y)
    assert model.sigma_ == pytest.approx(np.sqrt(sse / (m - 4)), rel=1e-10)
    r2 = expected.score(X, y)
    assert model.adjusted_r2_ == pytest.approx(1 - (1 - r2) * (m - 1) / (m - 4), rel=1e-10)
    assert model.prediction_features_ == PREDICTION
    assert (model.coef_ != 0).tolist() == [name in PREDICTION for name in NAMES]
    assert model.dropped_features_ == []


def test_ols_needs_no_selection_features_to_be_there(frame, simulated):
    holes = frame.copy()
    holes.loc[::5, "city"] = np.nan
    expected = NaiveOLS(PREDICTION).fit(frame, simulated.y)
    np.testing.assert_array_equal(
        NaiveOLS(PREDICTION).fit(holes, simulated.y).coef_, expected.coef_
    )


@pytest.mark.parametrize("estimator", [NaiveOLS(), InverseProbabilityWeighted()])
def test_columns_collinear_among_the_selected_are_refused_by_name_or_dropped(
    estimator, frame, simulated
):
    frame.loc[simulated.selected, "city"] = 2 * frame.loc[simulated.selected, "age"]
    with pytest.raises(CollinearError, match=r"'city'.*'age'"):
        clone(estimator).fit(frame, simulated.y)
    model = clone(estimator).set_params(on_collinear="drop")
    with pytest.warns(DroppedFeaturesWarning, match="left out 'city'"):
        model.fit(frame, simulated.y)
    assert model.dropped_features_ == ["city"]
    assert model.prediction_features_ == NAMES[:-1]
    assert model.coef_[-1] == 0.0


# Inverse probability weighting. -------------------------------------------------------------------


def weighted_least_squares(X, y, weight):
    root = np.sqrt(weight)[:, None]
    design = np.column_stack([np.ones(len(X)), X])
    return np.linalg.lstsq(root * design, root[:, 0] * y, rcond=None)[0]


@pytest.mark.parametrize("clip", [1.2, 50.0])
def test_ipw_weighs_by_one_over_the_probability_up_to_the_clip(clip, frame, simulated):
    model = InverseProbabilityWeighted(PREDICTION, clip=clip).fit(frame, simulated.y)
    probit = Heckman(PREDICTION).fit(frame, simulated.y)
    np.testing.assert_allclose(model.selection_coef_, probit.selection_coef_, rtol=1e-10)
    assert model.selection_intercept_ == pytest.approx(probit.selection_intercept_, rel=1e-10)
    s = simulated.selected
    index = probit.selection_intercept_ + simulated.X[s] @ probit.selection_coef_
    weight = 1 / norm.cdf(index)
    expected = weighted_least_squares(
        frame.loc[s, PREDICTION].to_numpy(), simulated.y[s], np.minimum(weight, clip)
    )
    np.testing.assert_allclose(model.coef_[model.support_], expected[1:], rtol=1e-8)
    assert model.intercept_ == pytest.approx(expected[0], rel=1e-8)
    assert model.max_weight_ == pytest.approx(weight.max(), rel=1e-8)
    assert model.n_clipped_ == np.count_nonzero(weight > clip)
    assert (model.n_clipped_ > 0) == (clip == 1.2)


def test_ipw_probit_has_the_selection_features_it_was_given(frame, simulated):
    model = InverseProbabilityWeighted(PREDICTION, ["educ", "city"]).fit(frame, simulated.y)
    assert (model.selection_coef_ != 0).tolist() == [name in ("educ", "city") for name in NAMES]
    assert model.prediction_features_ == PREDICTION


def test_a_row_far_out_on_the_selection_index_does_no_harm(simulated):
    plain = InverseProbabilityWeighted().fit(simulated.X, simulated.y)
    k = int(np.argmax(np.abs(plain.selection_coef_)))
    X = simulated.X.copy()
    X[np.flatnonzero(~simulated.selected)[0], k] = -200 / plain.selection_coef_[k]
    model = InverseProbabilityWeighted().fit(X, simulated.y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.1)


@pytest.mark.parametrize("clip", [0.5, -1.0])
def test_a_clip_below_one_is_refused(clip, simulated):
    with pytest.raises(InputError, match="clip"):
        InverseProbabilityWeighted(clip=clip).fit(simulated.X, simulated.y)


def test_ipw_with_all_outcomes_says_so_and_is_ols(simulated):
    model = InverseProbabilityWeighted()
    with pytest.warns(AllObservedWarning, match="weights"):
        model.fit(simulated.X, simulated.complete_y)
    expected = NaiveOLS().fit(simulated.X, simulated.complete_y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert (model.n_clipped_, model.max_weight_) == (0, 1.0)
    assert not model.selection_coef_.any()


# The adaptive lasso. ------------------------------------------------------------------------------


def path_of(data, power, always=()):
    """Supports on the path of a lasso on rows from which all else is partialled out."""
    heckman = Heckman(PREDICTION).fit(pd.DataFrame(data.X, columns=NAMES), data.y)
    s = data.selected
    imr = heckman.inverse_mills(pd.DataFrame(data.X[s], columns=NAMES))
    columns = [one for one in range(data.X.shape[1]) if one not in always]
    first = np.column_stack([np.ones(s.sum()), imr, data.X[s][:, list(always)]])
    values = np.column_stack([data.X[s][:, columns], data.y[s]])
    values -= first @ np.linalg.lstsq(first, values, rcond=None)[0]
    features, outcome = values[:, :-1], values[:, -1]
    features = features / np.linalg.norm(features, axis=0)
    ordinary = np.linalg.lstsq(features, outcome, rcond=None)[0]
    _, _, path = lars_path(features * np.abs(ordinary) ** power, outcome, method="lasso")
    chosen = [[columns[one] for one in np.flatnonzero(point)] for point in path.T]
    return {tuple(sorted([*always, *one])) for one in chosen}


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_assignments_are_those_of_a_lasso_on_partialled_out_rows(power, seed):
    data = make_selection(500, 6, 3, rho=0.5, correlation=0.6, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = HeckmanLasso(power=power).fit(data.X, data.y)
    assert set(model.candidates_["features"]) == path_of(data, power)
    assert model.n_assignments_ == len(model.candidates_) >= 6


def test_features_that_are_always_in_are_partialled_out(simulated):
    model = HeckmanLasso(always=[1]).fit(simulated.X, simulated.y)
    assert set(model.candidates_["features"]) == path_of(simulated, 1, always=[1])
    assert 1 in model.prediction_features_
    with pytest.warns(NoExclusionWarning):
        everything = HeckmanLasso(always=range(6)).fit(simulated.X, simulated.y)
    assert everything.prediction_features_ == list(range(6))


def test_never_and_max_features_are_kept_to(simulated):
    model = HeckmanLasso(never=[0], max_features=2).fit(simulated.X, simulated.y)
    assert not any(0 in one for one in model.candidates_["features"])
    assert model.candidates_["n_features"].max() <= 2


@pytest.mark.parametrize("criterion", ["bic", "adjusted_r2", "aic"])
def test_the_best_of_the_path_is_a_heckman_of_its_features(criterion, frame, simulated):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoExclusionWarning)
        model = HeckmanLasso(criterion).fit(frame, simulated.y)
        plain = Heckman(model.prediction_features_).fit(frame, simulated.y)
    assert isinstance(model, Heckman)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)
    assert model.rho_ == pytest.approx(plain.rho_, rel=1e-12)
    pd.testing.assert_frame_equal(model.tidy(), plain.tidy())
    for kind in ("marginal", "selected"):
        np.testing.assert_allclose(
            model.predict(frame, kind), plain.predict(frame, kind), rtol=1e-12
        )
    values = model.candidates_[criterion]
    assert values[0] == (values.max() if criterion == "adjusted_r2" else values.min())
    report = model.search_report()
    assert report.criterion == criterion
    assert report.n_assignments == len(model.candidates_)
    assert "assignments" in str(report)


@pytest.mark.parametrize("seed", range(3))
def test_the_lasso_finds_the_truth_in_plenty_of_data(seed):
    data = make_selection(4000, 8, 3, random_state=seed)
    model = HeckmanLasso().fit(data.X, data.y)
    np.testing.assert_array_equal(model.support_, data.support)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e6])
def test_units_of_measurement_do_not_matter_to_the_lasso(scale, simulated):
    expected = HeckmanLasso().fit(simulated.X, simulated.y)
    model = HeckmanLasso().fit(simulated.X * [1, 1e3, 1, 1e-3, 1, 10] + 5, scale * simulated.y)
    assert model.candidates_["features"].tolist() == expected.candidates_["features"].tolist()


@pytest.mark.parametrize("power", [0, 0.5, 1, 2, 4, 8])
def test_strongly_correlated_features_give_a_path_at_every_power(crime, power):
    model = HeckmanLasso(power=power).fit(crime.X, crime.y)
    assert model.n_assignments_ > 3


def test_the_lasso_refuses_groups_and_columns_collinear_among_the_selected(frame, simulated):
    with pytest.raises(InputError, match="chooses"):
        HeckmanLasso(feature_groups=[["age", "educ"]]).fit(frame, simulated.y)
    frame.loc[simulated.selected, "city"] = frame.loc[simulated.selected, "age"]
    with pytest.raises(CollinearError, match=r"'city'.*'age'"):
        HeckmanLasso().fit(frame, simulated.y)
    assert HeckmanLasso(never=["city"]).fit(frame, simulated.y).n_assignments_ > 0


def test_the_lasso_takes_formulas():
    mroz = load_mroz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = HeckmanLasso.from_formula(
            "lwage ~ educ + exper + city", "lfp ~ educ + exper + city + kids5 + nwifeinc", mroz
        )
    assert set(model.prediction_features_) <= {"educ", "exper", "city"}


# Rockafellar-Uryasev regression. ------------------------------------------------------------------


def ru(**options):
    return RURegressor(**{"epochs": 3, "random_state": 0, **options})


@pytest.mark.parametrize("gamma", [1.0, 1.5, 2.0, 8.0])
def test_the_loss_is_the_papers(torch, gamma):
    target = np.array([0.0, 1.0, -2.0, 0.5, 3.0])
    predicted = np.array([0.5, 1.0, 1.0, -0.5, 2.0])
    alpha = np.array([0.1, 0.3, 20.0, -1.0, 1.0])
    networks = [
        lambda inputs: torch.from_numpy(predicted)[:, None],
        lambda inputs: torch.from_numpy(alpha)[:, None],
    ]
    found = RURegressor(gamma=gamma)._loss(torch, networks, None, torch.from_numpy(target))
    expected = []
    for y, h, a in zip(target, predicted, alpha, strict=True):
        error = (y - h) ** 2
        excess = max(error - a, 0.0)
        expected.append(error / gamma + (1 - 1 / gamma) * a + (gamma - 1 / gamma) * excess)
    assert float(found) == pytest.approx(np.mean(expected), rel=1e-12)
    if gamma == 1.0:
        assert float(found) == pytest.approx(np.mean((target - predicted) ** 2), rel=1e-12)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(torch, simulated):
    fitted = [ru(random_state=seed).fit(simulated.X, simulated.y) for seed in (0, 0, 1)]
    bits = [one.predict(simulated.X).tobytes() for one in fitted]
    assert bits[0] == bits[1] != bits[2]
    assert fitted[0].loss_ == fitted[1].loss_
    for kind in (np.random.default_rng, np.random.RandomState):
        one, two = (ru(random_state=kind(5)).fit(simulated.X, simulated.y) for _ in range(2))
        assert one.loss_ == two.loss_


def test_training_leaves_the_random_numbers_and_threads_of_others_alone(torch, simulated):
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    ru().fit(simulated.X, simulated.y)
    assert torch.equal(torch.rand(4), expected)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("batch_size", [None, 7, 50, 10_000])
def test_no_batch_has_one_row_alone(torch, batch_size):
    data = make_selection(351, 4, 2, random_state=0)  # 1 more than 7 * 50
    sizes = []

    class Watched(RURegressor):
        def _loss(self, torch, networks, inputs, target):
            sizes.append(len(target))
            return super()._loss(torch, networks, inputs, target)

    Watched(batch_size=batch_size, epochs=2, random_state=0).fit(data.X, data.complete_y)
    assert min(sizes) > 1
    assert sum(sizes) == 2 * 351
    if batch_size == 50:
        assert sizes == [50] * 6 + [51] + [50] * 6 + [51]
    if batch_size is None:
        assert sizes == [88, 88, 88, 87] * 2


def test_predictions_are_those_of_torch(torch, simulated):
    model = ru().fit(simulated.X, simulated.y)
    network = heckmanfa.estimators.ru._network(torch, 6)
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), model._network.weights, strict=True):
            parameter.copy_(torch.from_numpy(value))
        s = simulated.selected
        centre, scale = simulated.X[s].mean(axis=0), simulated.X[s].std(axis=0)
        inputs = torch.from_numpy((simulated.X - centre) / scale).float()
        forward = network(inputs).numpy()[:, 0]
    expected = simulated.y[s].mean() + simulated.y[s].std() * forward
    np.testing.assert_allclose(model.predict(simulated.X), expected, rtol=1e-4, atol=1e-5)
    per_network = 6 * 64 + 64 + 64 * 64 + 64 + 64 + 1
    assert model.n_parameters_ == 2 * per_network


def test_units_of_measurement_do_not_matter_to_ru(torch, simulated):
    expected = ru().fit(simulated.X, simulated.y).predict(simulated.X)
    X = simulated.X * [10, 1, 0.1, 4, 1, 1e3] + [1, 0, -3, 0, 5, 0]
    found = ru().fit(X, 40 * simulated.y - 3).predict(X)
    np.testing.assert_allclose(found, 40 * expected - 3, rtol=1e-3, atol=1e-2)


def test_ru_learns_what_is_there(torch):
    data = make_selection(1000, 3, 2, random_state=0)
    for gamma in (1.0, 2.0):
        model = RURegressor(gamma=gamma, learning_rate=0.01, random_state=0).fit(data.X, data.y)
        linear = NaiveOLS().fit(data.X, data.y)
        assert model.score(data.X, data.y) > linear.score(data.X, data.y) - 0.1
        assert np.isfinite(model.loss_)


def test_features_without_spread_among_the_selected_do_no_harm(torch, simulated):
    X = simulated.X.copy()
    X[simulated.selected, 2] = 1.0
    assert np.isfinite(ru().fit(X, simulated.y).predict(X)).all()


def test_ru_sees_only_its_prediction_features(torch, frame, simulated):
    model = ru(prediction_features=PREDICTION).fit(frame, simulated.y)
    other = frame.assign(city=0.0, educ=np.nan)
    np.testing.assert_array_equal(model.predict(other), model.predict(frame))
    assert model.prediction_features_ == PREDICTION


@pytest.mark.parametrize("option", [{"gamma": 0.9}, {"learning_rate": 0.0}, {"epochs": 0}])
def test_settings_of_ru_that_make_no_sense_are_refused(torch, option, simulated):
    with pytest.raises(InputError, match=next(iter(option))):
        ru(**option).fit(simulated.X, simulated.y)


def test_without_torch_the_extra_is_named_and_a_fitted_model_still_predicts(
    torch, monkeypatch, simulated
):
    model = ru().fit(simulated.X, simulated.y)
    expected = model.predict(simulated.X)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'heckmanfa\[torch\]'") as caught:
        RURegressor().fit(simulated.X, simulated.y)
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, HeckmanfaError)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(simulated.X), expected)


# Where baselines meet the rest. -------------------------------------------------------------------


@pytest.mark.parametrize("scorer", [observed_r2, observed_mse, observed_mae])
def test_the_scorers_of_selection_models_score_regressions_too(scorer, simulated):
    folds = SelectionKFold(3)
    for model in (NaiveOLS(), make_pipeline(StandardScaler(), InverseProbabilityWeighted())):
        scores = cross_val_score(model, simulated.X, simulated.y, cv=folds, scoring=scorer)
        assert np.isfinite(scores).all()
    with pytest.raises(InputError, match="NaiveOLS"):
        joint_log_likelihood(NaiveOLS().fit(simulated.X, simulated.y), simulated.X, simulated.y)


def test_more_features_than_rows_warn_whatever_the_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 4)), rng.normal(size=4)
    for weight in (None, [2, 2, 2, 2]):
        with pytest.warns(UnderdeterminedWarning, match="4 features and an intercept, but 4 rows"):
            model = NaiveOLS().fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(model.predict(X), y, atol=1e-9)


def test_the_lasso_drops_collinear_columns_where_asked(simulated):
    X = np.column_stack([simulated.X, 2 * simulated.X[:, 1]])
    options = {"selection_features": range(6)}
    with pytest.raises(CollinearError, match=r"'x6'.*'x1'"):
        HeckmanLasso(**options).fit(X, simulated.y)
    with pytest.warns(DroppedFeaturesWarning, match="left out 'x6'"):
        model = HeckmanLasso(**options, on_collinear="drop").fit(X, simulated.y)
    plain = HeckmanLasso().fit(simulated.X, simulated.y)
    assert model.prediction_features_ == plain.prediction_features_


def test_a_training_that_diverges_says_so(simulated):
    pytest.importorskip("torch")
    with pytest.warns(ConvergenceWarning, match="the training diverged"):
        RURegressor(learning_rate=1e18, epochs=20, random_state=0).fit(simulated.X, simulated.y)


@pytest.mark.parametrize("seed", [-1, "a"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InputError, match="random_state"):
        generator(seed)

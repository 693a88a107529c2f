"""The scikit-learn contract, on data with and without missing outcomes."""

import inspect
import pickle
import subprocess
import sys
import warnings
from collections import defaultdict

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import heckmanfa
from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    HeckmanOrderedAverage,
    HeckmanProbit,
    HeckmanProbitAverage,
    HeckmanProbitBestSubset,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
    TreatmentAverage,
    TreatmentModel,
)
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import AllObservedWarning, HeckmanfaWarning, InputError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.scoring import ScoredModel
from heckmanfa.model_selection import (
    SelectionKFold,
    joint_log_likelihood,
    observed_mae,
    observed_mse,
    observed_r2,
)

PREDICTION = [0, 2, 3]


@pytest.mark.parametrize(
    "model",
    [
        Heckman(),
        Heckman(method="ml"),
        Heckman(cov_type="robust"),
        Heckman(method="series"),
        HeckmanProbit(),
        pytest.param(HeckmanProbit(cov_type="robust"), marks=pytest.mark.study),
        HeckmanProbitBestSubset(),
        HeckmanFA(epochs=20, n_draws=50, random_state=0),
        HeckmanBestSubset(),
        HeckmanLasso(),
        HeckmanAverage(),
        HeckmanProbitAverage(),
        NaiveOLS(),
        InverseProbabilityWeighted(),
        DoublyRobust(),
        # One epoch learns something where steps are many and large.
        RURegressor(epochs=1, batch_size=8, learning_rate=0.05),
    ],
    ids=str,
)
def test_check_estimator_passes_with_no_expected_failure(model):
    if isinstance(model, RURegressor):
        pytest.importorskip("torch", reason="RU regression needs Torch")
    with warnings.catch_warnings():
        # Its data has no missing outcome, and some has collinear or too many columns.
        warnings.simplefilter("ignore", HeckmanfaWarning)
        results = check_estimator(model, on_fail=None, on_skip=None)
    failed = [one["check_name"] for one in results if one["status"] == "failed"]
    assert failed == []
    regression = not isinstance(model, SelectionModel)
    assert sum(one["status"] == "passed" for one in results) > (45 if regression else 50)
    assert not any(one["expected_to_fail"] for one in results)


CLASSES = [
    value
    for value in (getattr(heckmanfa, name) for name in heckmanfa.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]


OF_TREATMENT = {
    *("bootstrap", "bounds", "fit", "from_formula", "pictures", "predict", "report", "score"),
}


def depth(kind):
    """Return how many classes of the package a class rests on, one above the other."""
    bases = [base for base in kind.__bases__ if base.__module__.startswith("heckmanfa")]
    return 1 + max(map(depth, bases)) if bases else 0


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_estimator_is_one_base_class_and_mixins_no_deeper_than_three(kind):
    assert ScoredModel in kind.__mro__
    assert depth(kind) <= 3


def test_a_method_has_one_signature_in_every_estimator():
    signatures = defaultdict(set)
    for kind in CLASSES:
        for name, method in inspect.getmembers(kind, inspect.isroutine):
            if name[0] == "_" or not method.__module__.startswith("heckmanfa"):
                continue
            # A treatment has a name of its own, and regimes in place of kinds.
            if issubclass(kind, TreatmentModel) and name in OF_TREATMENT:
                continue
            # Of baselines, only these have other arguments: they have no kinds and no clusters.
            if issubclass(kind, SelectionModel) or name not in {"fit", "predict"}:
                parameters = inspect.signature(method).parameters.values()
                signatures[name].add(tuple((one.name, one.kind, one.default) for one in parameters))
    assert {"fit", "predict", "score", "what_if", "uncertainty_interval"} <= {*signatures}
    assert [name for name, kinds in signatures.items() if len(kinds) > 1] == []


def test_a_parameter_has_one_type_and_one_default_in_every_estimator():
    """Constructors repeat parameters, as scikit-learn reads signatures; they must not drift."""
    own = {
        ("criterion", HeckmanFA),
        ("random_state", HeckmanAverage),
        ("random_state", HeckmanOrderedAverage),
        ("random_state", HeckmanProbitAverage),
        ("random_state", TreatmentAverage),
        ("n_refits", HeckmanProbitBestSubset),
        ("epochs", RURegressor),
        ("learning_rate", RURegressor),
        # What weighs by probabilities has no design of a survey.
        ("cov_type", InverseProbabilityWeighted),
        ("cov_type", DoublyRobust),
    }
    declared = defaultdict(set)
    for kind in CLASSES:
        for name, parameter in inspect.signature(kind).parameters.items():
            if (name, kind) not in own:
                declared[name].add((str(parameter.annotation), repr(parameter.default)))
    assert len(declared) > 40
    assert {name: kinds for name, kinds in declared.items() if len(kinds) > 1} == {}


# The same invariances where outcomes are missing, which check_estimator never tries. -----------


@pytest.fixture(params=["two-step", "ml"])
def method(request):
    return request.param


def fit(data, method, X=None, y=None, **kwargs):
    X, y = data.X if X is None else X, data.y if y is None else y
    return Heckman(PREDICTION, method=method).fit(X, y, **kwargs)


def test_a_refit_on_other_data_forgets_the_first(simulated, method):
    model = fit(simulated, method)
    with pytest.warns(AllObservedWarning):
        model.fit(simulated.X, simulated.complete_y)
    assert np.isnan(model.rho_)
    assert "rho" not in model.tidy()["term"].tolist()
    model.fit(simulated.X, simulated.y)
    assert model.rho_ == fit(simulated, method).rho_


def test_the_three_predictions_average_to_the_marginal_one(simulated, method):
    model = fit(simulated, method)
    p = model.predict_selection(simulated.X)
    mixed = p * model.predict(simulated.X, kind="selected")
    mixed += (1 - p) * model.predict(simulated.X, kind="unselected")
    np.testing.assert_allclose(mixed, model.predict(simulated.X), rtol=1e-9, atol=1e-9)


def test_a_subclass_may_have_parameters_of_its_own():
    class Own(HeckmanLasso):
        def __init__(self, note="", criterion="aic"):
            super().__init__(criterion)
            self.note = note

    model = Own(note="a").set_params(criterion="bic")
    assert clone(model).get_params() == {"note": "a", "criterion": "bic"}
    assert model.power == 1.0


def test_a_formula_model_from_a_file_predicts_the_same(reloaded):
    mroz = load_mroz()
    mroz["region"] = np.array(["north", "south", "west"])[np.arange(753) % 3]
    model = Heckman.from_formula(
        "lwage ~ educ + center(exper) + region", "lfp ~ educ + center(exper) + region + kids5", mroz
    )
    again = reloaded(model)
    for kind in ("marginal", "selected"):
        np.testing.assert_array_equal(
            again.predict(mroz, kind=kind), model.predict(mroz, kind=kind)
        )
    part = mroz[mroz["region"] == "west"]
    np.testing.assert_array_equal(again.predict(part), model.predict(part))


def test_a_model_of_many_rows_pickles_small():
    data = make_selection(150_000, 30, 15, random_state=0)
    model = Heckman(np.flatnonzero(data.support)).fit(data.X, data.y)
    assert len(pickle.dumps(model)) < 100_000
    longest = max(
        (value.size for value in vars(model).values() if isinstance(value, np.ndarray)), default=0
    )
    assert longest < 10_000


def test_pipeline_and_grid_search_with_the_scorers(simulated):
    pipe = make_pipeline(StandardScaler(), Heckman(PREDICTION))
    pipe.fit(simulated.X, simulated.y)
    plain = Heckman(PREDICTION).fit(simulated.X, simulated.y)
    np.testing.assert_allclose(
        pipe.predict(simulated.X, kind="selected"),
        plain.predict(simulated.X, kind="selected"),
        rtol=1e-9,
    )
    grid = {"heckman__prediction_features": [[0], PREDICTION, [1, 4]]}
    for scorer in (observed_r2, observed_mse, observed_mae, joint_log_likelihood):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeckmanfaWarning)
            search = GridSearchCV(
                pipe,
                grid,
                scoring=scorer,
                cv=SelectionKFold(3, shuffle=True, random_state=0),
                error_score="raise",
            ).fit(simulated.X, simulated.y)
        assert search.best_params_["heckman__prediction_features"] == PREDICTION
        assert np.isfinite(search.cv_results_["mean_test_score"][1])


def test_scorers_look_at_observed_rows_with_predictions_given_selection(simulated):
    model = Heckman(PREDICTION).fit(simulated.X, simulated.y)
    s = simulated.selected
    residual = simulated.y[s] - model.predict(simulated.X[s], kind="selected")
    assert observed_mse(model, simulated.X, simulated.y) == pytest.approx(-np.mean(residual**2))
    assert observed_mae(model, simulated.X, simulated.y) == pytest.approx(
        -np.mean(np.abs(residual))
    )
    spread = np.sum((simulated.y[s] - simulated.y[s].mean()) ** 2)
    r2 = 1 - np.sum(residual**2) / spread
    assert observed_r2(model, simulated.X, simulated.y) == pytest.approx(r2)
    assert model.score(simulated.X, simulated.y) == pytest.approx(r2)
    assert cross_val_score(model, simulated.X, simulated.y, cv=SelectionKFold(4)).shape == (4,)
    for score in (observed_r2, lambda model, X, y: model.score(X, y)):
        with pytest.raises(InputError, match="none of these 800 rows has an outcome"):
            score(model, simulated.X, np.full(800, np.nan))


def test_every_fold_keeps_both_kinds_of_row():
    y = np.r_[np.ones(90), np.full(10, np.nan)]
    folds = list(SelectionKFold(5).split(np.zeros((100, 1)), y))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(100))
    for train, test in folds:
        assert np.isnan(y[test]).sum() == 2
        assert np.isnan(y[train]).sum() == 8
    assert SelectionKFold(5).get_n_splits() == 5
    with pytest.raises(InputError, match="there are 97 and 3"):
        next(SelectionKFold(5).split(None, np.r_[np.ones(97), np.full(3, np.nan)]))


def test_attributes_of_the_contract_are_all_there(simulated, method):
    model = fit(simulated, method)
    assert model.coef_.shape == model.selection_coef_.shape == model.support_.shape == (6,)
    assert (model.coef_ != 0).tolist() == model.support_.tolist()
    assert model.prediction_features_ == PREDICTION
    assert model.imr_coef_ == pytest.approx(model.rho_ * model.sigma_)
    assert model.n_obs_ == 800
    assert model.n_selected_ == simulated.selected.sum()
    assert (model.log_likelihood_ is None) == (method == "two-step")
    for name in ("intercept_", "selection_intercept_", "adjusted_r2_", "aic_", "bic_"):
        assert isinstance(getattr(model, name), float)
    assert model.n_features_in_ == 6
    assert not hasattr(model, "feature_names_in_")


def test_importing_the_package_loads_no_heavy_module():
    def loaded(statement, modules):
        code = f"{statement}; import sys; print(*[m for m in {modules} if m in sys.modules])"
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
        )
        return run.stdout.split()

    assert loaded("import heckmanfa", ["sklearn", "pandas", "scipy", "numpy"]) == []
    extras = ["torch", "dask", "matplotlib", "polars", "typer"]
    assert loaded("from heckmanfa import Heckman", extras) == []

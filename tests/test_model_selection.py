"""Scorers and the splitter: who is selected gets everywhere, and pipelines and searches are seen
through."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from heckmanfa import (
    DoublyRobust,
    Heckman,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    InverseProbabilityWeighted,
    NaiveOLS,
)
from heckmanfa.analysis.comparison import compare_methods
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning, InputError, InputTypeError
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.model_selection import (
    SelectionKFold,
    joint_log_likelihood,
    observed_mae,
    observed_mse,
    observed_r2,
)

MROZ = load_mroz()
FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
X, Y, S = MROZ[FEATURES], MROZ["lwage"], MROZ["lfp"] == 1
FILLED = Y.fillna(0.0)
WEIGHT = 1.0 + np.arange(len(Y)) % 3
TWO = ["educ", "exper"]

ESTIMATORS = {
    "heckman": lambda: Heckman(TWO),
    "ml": lambda: Heckman(TWO, method="ml"),
    "heckman-fa": lambda: HeckmanFA(epochs=5, n_draws=5, random_state=0),
    "best subset": lambda: HeckmanBestSubset(),
    "honest": lambda: HeckmanBestSubset(honest=True, n_splits=2, random_state=0),
    "lasso": lambda: HeckmanLasso(),
    "ols": lambda: NaiveOLS(TWO),
    "ipw": lambda: InverseProbabilityWeighted(TWO),
    "doubly robust": lambda: DoublyRobust(TWO, random_state=0),
}
METRICS = [
    (observed_r2, r2_score, 1),
    (observed_mse, mean_squared_error, -1),
    (observed_mae, mean_absolute_error, -1),
]
SCORERS = [observed_r2, observed_mse, observed_mae, joint_log_likelihood]


@pytest.fixture(autouse=True)
def _other_warnings_are_not_the_matter():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        yield


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def predict(model, rows):
    if isinstance(model, ObservedRegressor):
        return model.predict(rows)
    return model.predict(rows, kind="selected")


# Who is selected. ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_score_is_of_the_rows_that_are_selected(name):
    model = ESTIMATORS[name]().fit(X, FILLED, selected=S)
    predicted = predict(model, X[S])
    assert model.score(X, FILLED, selected=S) == pytest.approx(r2_score(Y[S], predicted))
    assert model.score(X, FILLED, WEIGHT, selected=S) == pytest.approx(
        r2_score(Y[S], predicted, sample_weight=WEIGHT[S])
    )
    for scorer, metric, sign in METRICS:
        assert scorer(model, X, FILLED, selected=S) == pytest.approx(sign * metric(Y[S], predicted))
        assert scorer(model, X, FILLED, WEIGHT, selected=S) == pytest.approx(
            sign * metric(Y[S], predicted, sample_weight=WEIGHT[S])
        )


def test_the_score_of_mroz_is_that_of_the_women_who_work():
    model = Heckman(TWO).fit(X, FILLED, selected=S)
    assert model.score(X, FILLED, selected=S) == pytest.approx(0.148, abs=5e-4)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_fitted_with_selected_refuses_to_score_without_it(name):
    model = ESTIMATORS[name]().fit(X, FILLED, selected=S)
    calls = [lambda: model.score(X, FILLED)]
    calls += [lambda scorer=scorer: scorer(model, X, FILLED) for scorer, *_ in METRICS]
    if not isinstance(model, ObservedRegressor):
        calls += [
            lambda: model.log_likelihood(X, FILLED),
            lambda: joint_log_likelihood(model, X, FILLED),
        ]
    for call in calls:
        with pytest.raises(InputError, match=r"fitted with selected.*enable_metadata_routing"):
            call()
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(InputError, match="fitted with selected"):
        again.score(X, FILLED)
    # It is about the last fit.
    assert np.isfinite(model.fit(X, Y).score(X, Y))


def test_selected_rows_without_an_outcome_are_not_scored():
    y = FILLED.copy()
    y[S & (np.arange(len(y)) % 7 == 0)] = np.nan
    model = Heckman(TWO).fit(X, y, selected=S)
    seen = S & y.notna()
    assert model.score(X, y, selected=S) == pytest.approx(
        r2_score(y[seen], predict(model, X[seen]))
    )
    rest = seen | ~S
    whole = joint_log_likelihood(model, X, y, selected=S)
    assert whole == pytest.approx(joint_log_likelihood(model, X[rest], y[rest], selected=S[rest]))
    with pytest.raises(InputError, match="none of these 753 rows is selected and has an outcome"):
        model.score(X, y, selected=np.zeros(753, dtype=bool))


def test_a_selection_formula_says_who_is_selected_in_a_score_too():
    data = MROZ.assign(lwage=FILLED)
    model = Heckman.from_formula("lwage ~ educ + exper", "lfp ~ educ + exper + kids5", data)
    told = model.score(data, data["lwage"], selected=S)
    assert told == pytest.approx(r2_score(Y[S], predict(model, data[S])))
    assert model.score(data, data["lwage"]) == told
    assert observed_r2(model, data, data["lwage"]) == told
    assert model.log_likelihood(data, data["lwage"]) == model.log_likelihood(
        data, data["lwage"], selected=S
    )
    with pytest.raises(InputError, match="lfp"):
        model.score(data.drop(columns="lfp"), data["lwage"])


def test_the_joint_likelihood_is_that_of_scipy_and_counts_weights():
    model = Heckman(TWO, method="ml").fit(X, FILLED, selected=S)
    mean = (
        model.predict(X).to_numpy() if hasattr(model.predict(X), "to_numpy") else model.predict(X)
    )
    index = X.to_numpy() @ model.selection_coef_ + model.selection_intercept_
    terms = norm.logsf(index)
    for row in np.flatnonzero(S):
        # log f(y) + log P(u > -index | y), from the joint law of (u, y).
        given = model.rho_ * (FILLED[row] - mean[row]) / model.sigma_
        terms[row] = norm.logpdf(FILLED[row], mean[row], model.sigma_) + norm.logcdf(
            (index[row] + given) / np.sqrt(1 - model.rho_**2)
        )
    assert model.log_likelihood(X, FILLED, S) == pytest.approx(terms.sum())
    assert model.log_likelihood(X, FILLED, S, sample_weight=WEIGHT) == pytest.approx(terms @ WEIGHT)
    assert joint_log_likelihood(model, X, FILLED, WEIGHT, selected=S) == pytest.approx(
        np.average(terms, weights=WEIGHT)
    )
    density = multivariate_normal(
        [0.0, mean[0]], [[1, c := model.rho_ * model.sigma_], [c, model.sigma_**2]]
    )
    grid = np.linspace(-index[0], 12.0, 4001)
    points = np.column_stack([grid, np.full_like(grid, FILLED[0])])
    assert terms[0] == pytest.approx(np.log(np.trapezoid(density.pdf(points), grid)), abs=1e-5)


def test_weights_of_a_score_are_checked():
    model = Heckman(TWO).fit(X, Y)
    for bad, words in [(-WEIGHT, "negative"), (WEIGHT[:5], "5 entries"), (0 * WEIGHT, "zero")]:
        for call in (model.score, lambda *a: observed_mse(model, *a)):
            with pytest.raises(InputError, match=words):
                call(X, Y, bad)


# Cross-validation. --------------------------------------------------------------------------------


def by_hand(make, metric, folds, y=FILLED, weight=None):
    scores = []
    for train, test in folds:
        options = {} if weight is None else {"sample_weight": weight[train]}
        model = make().fit(X.iloc[train], y.iloc[train], selected=S.iloc[train], **options)
        held = test[S.iloc[test]]
        scores.append(metric(Y.iloc[held], predict(model, X.iloc[held])))
    return scores


@pytest.mark.parametrize("name", ["heckman", "ols"])
@pytest.mark.parametrize(("scorer", "metric", "sign"), METRICS)
def test_selected_gets_to_fit_scorer_and_splitter(routing, name, scorer, metric, sign):
    folds = SelectionKFold(3, shuffle=True, random_state=1)
    scores = cross_val_score(
        ESTIMATORS[name](),
        X,
        FILLED,
        params={"selected": S},
        cv=folds,
        scoring=scorer,
        error_score="raise",
    )
    split = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, S))
    expected = [sign * one for one in by_hand(ESTIMATORS[name], metric, split)]
    assert scores == pytest.approx(expected)
    # The same as where y itself says who is selected.
    masked = cross_val_score(ESTIMATORS[name](), X, Y, cv=folds, scoring=scorer)
    assert scores == pytest.approx(masked)


def test_the_score_of_an_estimator_and_many_scorers_at_once_are_told_too(routing):
    folds = SelectionKFold(3)
    found = cross_validate(
        Heckman(TWO),
        X,
        FILLED,
        params={"selected": S},
        cv=folds,
        scoring={"r2": observed_r2, "joint": joint_log_likelihood},
        error_score="raise",
    )
    own = cross_val_score(Heckman(TWO), X, FILLED, params={"selected": S}, cv=folds)
    assert found["test_r2"] == pytest.approx(own)
    expected = [
        Heckman(TWO).fit(X.iloc[train], Y.iloc[train]).log_likelihood(X.iloc[test], Y.iloc[test])
        / len(test)
        for train, test in folds.split(X, Y)
    ]
    assert found["test_joint"] == pytest.approx(expected)


@pytest.mark.parametrize("scorer", [observed_mse, joint_log_likelihood])
def test_nested_cross_validation_of_a_pipeline(routing, scorer):
    grid = {"heckman__prediction_features": [[0], [0, 1]]}
    inner, outer = SelectionKFold(2), SelectionKFold(3)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Heckman([0])),
        grid,
        scoring=scorer,
        cv=inner,
        error_score="raise",
    )
    scores = cross_validate(
        search,
        X,
        FILLED,
        params={"selected": S},
        cv=outer,
        scoring=scorer,
        error_score="raise",
        return_estimator=True,
    )
    for (train, test), fitted, score in zip(
        outer.split(X, FILLED, selected=S), scores["estimator"], scores["test_score"], strict=True
    ):
        best = Heckman(
            [FEATURES[one] for one in fitted.best_params_["heckman__prediction_features"]]
        )
        best.fit(X.iloc[train], Y.iloc[train])
        # Scaling features changes no prediction.
        assert score == pytest.approx(scorer(best, X.iloc[test], Y.iloc[test]), rel=1e-6)


def test_scorers_look_into_pipelines_and_searches_without_routing_too():
    plain = Heckman(TWO).fit(X, Y)
    scaler = StandardScaler().set_output(transform="pandas")
    grid, folds = {"prediction_features": [TWO]}, SelectionKFold(2)
    search = GridSearchCV(Heckman(), grid, cv=folds, scoring=observed_r2)
    for estimator in (
        search,
        make_pipeline(scaler, search),
        GridSearchCV(
            make_pipeline(scaler, Heckman()),
            {"heckman__prediction_features": [TWO]},
            cv=folds,
            scoring=observed_r2,
        ),
        make_pipeline(Heckman(TWO)),
    ):
        fitted = clone(estimator).fit(X, Y)
        for scorer in SCORERS:
            with pytest.raises(NotFittedError):
                scorer(estimator, X, Y)
            assert scorer(fitted, X, Y) == pytest.approx(scorer(plain, X, Y), rel=1e-9)
            assert scorer(FrozenEstimator(fitted), X, Y) == scorer(fitted, X, Y)
    nested = cross_val_score(search, X, Y, cv=SelectionKFold(3), scoring=observed_r2)
    assert np.isfinite(nested).all()


def test_what_does_not_predict_given_selection_is_refused_by_name():
    other = LinearRegression().fit(X[S], Y[S])
    with pytest.raises(InputTypeError, match=r"observed_r2 scores models.*LinearRegression"):
        observed_r2(other, X, Y)


def test_without_routing_the_error_says_how_to_turn_it_on():
    params = {"selected": S}
    with pytest.raises(InputError, match="enable_metadata_routing"):
        cross_val_score(Heckman(TWO), X, FILLED, params=params, cv=SelectionKFold(3))
    for y, cv in ((FILLED, KFold(3)), (Y, SelectionKFold(3))):
        for scoring in (None, *SCORERS):
            with pytest.raises(InputError, match="enable_metadata_routing"):
                cross_val_score(
                    Heckman(TWO), X, y, params=params, cv=cv, scoring=scoring, error_score="raise"
                )
        search = GridSearchCV(
            Heckman(),
            {"prediction_features": [TWO]},
            cv=cv,
            scoring=observed_mse,
            error_score="raise",
        )
        with pytest.raises(InputError, match="enable_metadata_routing"):
            search.fit(X, y, selected=S)
    with pytest.raises(RuntimeError, match="enable_metadata_routing"):
        observed_r2.set_score_request(sample_weight=True)


def test_weights_are_scored_where_they_are_asked_for_and_never_by_chance(routing):
    params = {"selected": S, "sample_weight": WEIGHT}
    folds = SelectionKFold(3)
    model = Heckman(TWO).set_fit_request(sample_weight=True)
    with pytest.raises(UnsetMetadataPassedError, match=r"observed_mse\.score"):
        cross_val_score(model, X, FILLED, params=params, cv=folds, scoring=observed_mse)
    weighted = observed_mse.set_score_request(sample_weight=True)
    assert weighted is not observed_mse
    assert repr(weighted) == "observed_mse"
    scores = [
        cross_val_score(model, X, FILLED, params=params, cv=folds, scoring=one, error_score="raise")
        for one in (weighted, observed_mse.set_score_request(sample_weight=False))
    ]
    split = list(folds.split(X, FILLED, selected=S))
    assert -scores[1] == pytest.approx(
        by_hand(lambda: Heckman(TWO), mean_squared_error, split, weight=WEIGHT)
    )
    for (train, test), score in zip(split, scores[0], strict=True):
        fitted = Heckman(TWO).fit(X.iloc[train], Y.iloc[train], sample_weight=WEIGHT[train])
        held = test[S.iloc[test]]
        assert -score == pytest.approx(
            mean_squared_error(
                Y.iloc[held], predict(fitted, X.iloc[held]), sample_weight=WEIGHT[held]
            )
        )
    # A request is kept by copies, and the scorer of the module is as it was.
    again = pickle.loads(pickle.dumps(weighted))
    assert again.get_metadata_routing().score.requests["sample_weight"] is True
    assert observed_mse.get_metadata_routing().score.requests == {
        "selected": True,
        "sample_weight": None,
    }
    with pytest.raises(ValueError, match="should be either"):
        observed_mse.set_score_request(sample_weight=3.5)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_asks_for_selected_by_default(name):
    request = ESTIMATORS[name]().get_metadata_routing()
    assert request.fit.requests["selected"] is True
    assert request.score.requests == {"selected": True, "sample_weight": None}
    assert request.fit.requests["sample_weight"] is None


def test_groups_get_to_the_folds_and_to_a_fit_that_clusters_by_them(routing):
    groups = np.arange(len(Y)) // 4
    params = {"selected": S, "groups": groups}
    folds = SelectionKFold(3)
    for model in (
        Heckman(TWO),
        NaiveOLS(TWO),
        Heckman(TWO, cov_type="cluster"),
        make_pipeline(Heckman([0, 1], cov_type="cluster")),
    ):
        found = cross_validate(
            model,
            X,
            FILLED,
            params=params,
            cv=folds,
            scoring=observed_r2,
            error_score="raise",
            return_indices=True,
        )
        for test in found["indices"]["test"]:
            inside = np.isin(groups, groups[test])
            np.testing.assert_array_equal(np.flatnonzero(inside), test)
    asked = Heckman(TWO).set_fit_request(groups=True)
    with pytest.raises(InputError, match=r"cov_type.*'cluster'"):
        cross_val_score(asked, X, FILLED, params=params, cv=folds, error_score="raise")


# Folds. -------------------------------------------------------------------------------------------


def holds_both(kinds, folds):
    return all({0, 1} <= set(kinds[test].tolist()) for _, test in folds)


@pytest.mark.parametrize("shuffle", [True, False])
def test_folds_of_groups_are_whole_and_hold_both_kinds(shuffle):
    source = np.random.default_rng(5)
    for seed in range(20):
        n = 300
        groups = source.integers(0, 60, n)
        # Whole groups are nearly all of one kind.
        chosen = (source.uniform(size=60) < 0.8)[groups] ^ (source.uniform(size=n) < 0.02)
        cv = SelectionKFold(4, shuffle=shuffle, random_state=seed if shuffle else None)
        folds = list(cv.split(None, np.where(chosen, 1.0, np.nan), groups))
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(n))
        assert holds_both(chosen.astype(int), folds)
        for train, test in folds:
            assert not set(groups[train]) & set(groups[test])
            assert sorted([*train, *test]) == list(range(n))
            for kind in (True, False):
                share = np.mean(chosen[test] == kind) / np.mean(chosen == kind)
                assert 0.5 < share < 2.0
        again = list(cv.split(None, np.zeros(n), groups, selected=chosen))
        for one, other in zip(folds, again, strict=True):
            np.testing.assert_array_equal(one[1], other[1])


def test_folds_of_groups_are_refused_only_where_there_are_none():
    source = np.random.default_rng(11)
    refused = found = 0
    for _ in range(60):
        n_groups, k = int(source.integers(2, 7)), int(source.integers(2, 4))
        groups = np.repeat(np.arange(n_groups), source.integers(1, 4, n_groups))
        kinds = source.integers(0, 2, len(groups))
        if source.uniform() < 0.5:
            kinds = (source.integers(0, 2, n_groups))[groups]
        if kinds.min() == kinds.max():
            continue
        possible = any(
            all({0, 1} <= set(kinds[np.array(way)[groups] == fold].tolist()) for fold in range(k))
            for way in itertools.product(range(k), repeat=n_groups)
        )
        split = SelectionKFold(k).split(None, np.zeros(len(kinds)), groups, selected=kinds)
        if possible:
            assert holds_both(kinds, list(split))
            found += 1
        else:
            with pytest.raises(InputError, match=f"{k} folds of whole groups cannot all hold"):
                next(split)
            refused += 1
    assert min(refused, found) > 10


def test_rows_that_a_fit_leaves_out_are_spread_over_the_folds():
    y = np.r_[np.ones(40), np.full(20, np.nan)]
    chosen = np.r_[np.ones(52), np.zeros(8)]
    for shuffle in (True, False):
        cv = SelectionKFold(4, shuffle=shuffle, random_state=0 if shuffle else None)
        for _, test in cv.split(None, y, selected=chosen):
            assert np.sum(test < 40) == 10
            assert np.sum((test >= 40) & (test < 52)) == 3
            assert np.sum(test >= 52) == 2
    with pytest.raises(InputError, match="there are 40 and 8"):
        next(SelectionKFold(9).split(None, y, selected=chosen))


def test_folds_that_cannot_be_are_refused():
    y = np.r_[np.ones(5), np.full(5, np.nan)]
    with pytest.raises(InputError, match="n_splits"):
        next(SelectionKFold(1).split(None, y))
    with pytest.raises(InputError, match="shuffle"):
        next(SelectionKFold(2, random_state=0).split(None, y))
    with pytest.raises(InputError, match=r"10.*enable_metadata_routing"):
        next(SelectionKFold(2).split(None, np.ones(10)))
    with pytest.raises(InputError, match="groups"):
        next(SelectionKFold(2).split(None, y, np.r_[np.nan, np.ones(9)]))
    with pytest.raises(InputError, match="needs y"):
        next(SelectionKFold(2).split(None))
    with pytest.raises(InputError, match="1d"):
        next(SelectionKFold(2).split(None, 3.0))


# Other rooms. -------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [True, False])
def test_dask_collections_are_scored_as_arrays_are(array):
    dd = pytest.importorskip("dask.dataframe")
    frame = MROZ.assign(lwage=FILLED, weight=WEIGHT, chosen=S)
    lazy = dd.from_pandas(frame, npartitions=3)
    model = Heckman([0, 1] if array else TWO).fit(X.to_numpy() if array else X, FILLED, selected=S)
    rows = lazy[FEATURES]
    y, weight, chosen = lazy["lwage"], lazy["weight"], lazy["chosen"]
    if array:
        rows, y, weight, chosen = (
            one.to_dask_array(lengths=True) for one in (rows, y, weight, chosen)
        )
    plain = X.to_numpy() if array else X
    for scorer in SCORERS:
        expected = scorer(model, plain, FILLED, WEIGHT, selected=S)
        assert scorer(model, rows, y, weight, selected=chosen) == pytest.approx(expected, rel=1e-12)
        assert scorer(model, plain, y, weight, selected=chosen) == pytest.approx(expected)
    expected = model.score(plain, FILLED, WEIGHT, selected=S)
    assert model.score(rows, y, weight, selected=chosen) == pytest.approx(expected, rel=1e-12)
    folds = SelectionKFold(3)
    for one, other in zip(
        folds.split(X, y, selected=chosen), folds.split(X, FILLED, selected=S), strict=True
    ):
        np.testing.assert_array_equal(one[1], other[1])
    fitted = Heckman([0, 1] if array else TWO).fit(rows, y, selected=chosen)
    with pytest.raises(InputError, match="fitted with selected"):
        observed_r2(fitted, rows, y)
    expected = model.log_likelihood(plain, FILLED, S)
    assert fitted.log_likelihood(rows, y, chosen) == pytest.approx(expected)


def test_dask_frames_are_scored_by_formula_models_and_regressions():
    dd = pytest.importorskip("dask.dataframe")
    data = MROZ.assign(lwage=FILLED)
    lazy = dd.from_pandas(data, npartitions=3)
    model = Heckman.from_formula("lwage ~ educ + exper", "lfp ~ educ + exper + kids5", data)
    for scorer in SCORERS:
        expected = scorer(model, data, data["lwage"])
        assert scorer(model, lazy, lazy["lwage"]) == pytest.approx(expected)
    regression = NaiveOLS(TWO).fit(X, FILLED, selected=S)
    assert observed_r2(regression, lazy[FEATURES], lazy["lwage"], selected=lazy["lfp"]) == (
        pytest.approx(regression.score(X, FILLED, selected=S))
    )


def test_tensors_are_scored_as_arrays_are():
    torch = pytest.importorskip("torch")
    rows, y, chosen, weight = (
        torch.from_numpy(one.copy())
        for one in (X.to_numpy(), FILLED.to_numpy(), S.to_numpy(), WEIGHT)
    )
    model = Heckman([0, 1]).fit(rows, y, selected=chosen)
    for scorer in SCORERS:
        assert scorer(model, rows, y, weight, selected=chosen) == pytest.approx(
            scorer(model, X.to_numpy(), FILLED, WEIGHT, selected=S)
        )
    with pytest.raises(InputError, match="fitted with selected"):
        model.score(rows, y)
    test = next(SelectionKFold(3).split(rows, y, selected=chosen))[1]
    np.testing.assert_array_equal(test, next(SelectionKFold(3).split(X, FILLED, selected=S))[1])


def test_models_of_parquet_rows_that_name_who_is_selected_need_it_in_a_score(tmp_path):
    from heckmanfa import scan_parquet

    path = tmp_path / "mroz.parquet"
    pd.DataFrame({**X, "lwage": FILLED, "lfp": S}).to_parquet(path)
    model = Heckman(TWO).fit(scan_parquet(path, outcome="lwage", selected="lfp"))
    with pytest.raises(InputError, match="fitted with selected"):
        model.score(X, FILLED)
    expected = Heckman(TWO).fit(X, FILLED, selected=S).score(X, FILLED, selected=S)
    assert model.score(X, FILLED, selected=S) == pytest.approx(expected)


def test_a_model_that_asked_for_weights_is_saved_and_still_needs_selected(routing, tmp_path):
    from heckmanfa.analysis import load_model, save_model
    from heckmanfa.data.columns.encoding import Encoding

    model = Heckman(TWO).set_fit_request(sample_weight=True).fit(X, FILLED, selected=S)
    save_model(tmp_path / "m.heckmanfa", model, Encoding.learn(X, FEATURES)[0], {})
    again = load_model(tmp_path / "m.heckmanfa").model
    assert again.score(X, FILLED, selected=S) == model.score(X, FILLED, selected=S)
    with pytest.raises(InputError, match="fitted with selected"):
        again.score(X, FILLED)
    assert model.get_metadata_routing().fit.requests["sample_weight"] is True


def test_a_splitter_needs_y_or_selected():
    wanted = list(SelectionKFold(3).split(X, FILLED, selected=S))
    for (train, test), (mine, held) in zip(
        wanted, SelectionKFold(3).split(X, selected=S), strict=True
    ):
        np.testing.assert_array_equal(train, mine)
        np.testing.assert_array_equal(test, held)
    with pytest.raises(InputError, match="SelectionKFold") as caught:
        next(SelectionKFold(3).split(X))
    assert "estimator" not in str(caught.value)
    with pytest.raises(InputError, match="selected has 5 entries, but X has 753 rows"):
        next(SelectionKFold(3).split(X, selected=S[:5]))


def test_dask_features_are_neither_split_nor_compared():
    dd = pytest.importorskip("dask.dataframe")
    rows = dd.from_pandas(MROZ, npartitions=2)
    with pytest.raises(InputError, match="SelectionKFold"):
        cross_validate(Heckman(["educ"]), rows[FEATURES], rows["lwage"], cv=SelectionKFold(3))
    with pytest.raises(InputTypeError, match="DataFrame"):
        compare_methods(rows[FEATURES], rows["lwage"])
    with pytest.raises(InputTypeError, match="Dask"):
        Heckman(["educ"]).fit(X, rows["lwage"])

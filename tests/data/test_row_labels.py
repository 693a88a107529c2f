"""What belongs to the same rows has the same labels of pandas, or is refused, wherever it goes."""

import inspect
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heckmanfa
from heckmanfa import (
    Heckman,
    HeckmanProbit,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
    TreatmentModel,
    model_selection,
    plots,
)
from heckmanfa.analysis import compare_methods
from heckmanfa.data.row_labels import match_rows
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, RowLabelsWarning
from heckmanfa.model_selection import SelectionKFold, observed_mse

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
PREDICT = ["educ", "exper"]
ROLES = ("y", "selected", "sample_weight", "groups", "unit", "over")


@pytest.fixture(scope="module")
def rows():
    """Columns of 300 women by role, each labelled by the row it came from."""
    mroz = load_mroz().sample(300, random_state=1)
    rng = np.random.default_rng(2)
    made = {"sample_weight": rng.integers(1, 4, 300).astype(float), "groups": np.arange(300) % 60}
    found = {name: pd.Series(values, mroz.index) for name, values in made.items()}
    found |= {"X": mroz[FEATURES], "y": mroz["lwage"], "selected": mroz["lwage"].notna()}
    found["classes"] = (mroz["lwage"] > 1).astype(float).where(mroz["lwage"].notna())
    return found | {"unit": found["groups"], "over": found["groups"] % 3}


@pytest.fixture(scope="module")
def models(rows):
    """Models by the outcome and by what was passed beside it."""
    X, y, classes = rows["X"], rows["y"], rows["classes"]
    clustered = Heckman(PREDICT, cov_type="cluster").fit(X, y, groups=rows["groups"])
    weights = {"sample_weight": rows["sample_weight"]}
    return {
        "plain": Heckman(PREDICT).fit(X, y),
        "t": Heckman(PREDICT, method="ml", errors="t").fit(X, y),
        "t, selected": Heckman(PREDICT, method="ml", errors="t").fit(
            X, y, selected=rows["selected"]
        ),
        "t, sample_weight": Heckman(PREDICT, method="ml", errors="t").fit(X, y, **weights),
        "treatment": TreatmentModel(PREDICT).fit(
            X, y.fillna(rows["over"]), treated=rows["selected"]
        ),
        "treatment, sample_weight": TreatmentModel(PREDICT).fit(
            X, y.fillna(rows["over"]), treated=rows["selected"], **weights
        ),
        "groups": clustered,
        "sample_weight": Heckman(PREDICT).fit(X, y, **weights),
        "selected": Heckman(PREDICT).fit(X, y, selected=rows["selected"]),
        "probit": HeckmanProbit(PREDICT[:1]).fit(X, classes),
        "probit, sample_weight": HeckmanProbit(PREDICT[:1]).fit(X, classes, **weights),
        "probit, selected": HeckmanProbit(PREDICT[:1]).fit(X, classes, selected=rows["selected"]),
        "probit, groups": HeckmanProbit(PREDICT[:1], cov_type="cluster").fit(
            X, classes, groups=rows["groups"]
        ),
    }


def shuffled(values):
    return values.sample(frac=1, random_state=3)


# Every public callable that takes rows and something beside them. -------------------------------

FITTED = (Heckman, HeckmanProbit)
ESTIMATORS = (*FITTED, NaiveOLS, InverseProbabilityWeighted, RURegressor)
NO_ROWS = ("set_", "get_", "scan", "from_formula")
# Each takes y, and others that are as in these.
SCORERS = [name for name in model_selection.__all__ if name.islower()]


def calls():
    """Yield the callables by name, each with its arguments that have an entry per row."""
    for kind in ESTIMATORS:
        for name, method in inspect.getmembers(kind, callable):
            if not name.startswith(("_", *NO_ROWS)):
                yield f"{kind.__name__}.{name}", method
    for module in (heckmanfa, plots):
        for name in module.__all__:
            if callable(value := getattr(module, name)) and not inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
    for name in SCORERS:
        yield f"model_selection.{name}", getattr(model_selection, name)
    yield "SelectionKFold.split", SelectionKFold.split
    yield "analysis.compare_methods", compare_methods


CASES = [
    (name, role)
    for name, function in calls()
    for role in ROLES
    if not name.rpartition(".")[2].startswith(NO_ROWS)
    # The Heckman probit has no degrees of freedom.
    and name != "HeckmanProbit.profile_df"
    and role in inspect.signature(function).parameters
]


def test_there_are_methods_that_take_rows():
    assert len(CASES) > 60
    assert {role for _, role in CASES} == {*ROLES}


@pytest.mark.parametrize(("name", "role"), CASES)
def test_rows_in_another_order_are_refused(rows, models, name, role, tmp_path):
    owner, _, method = name.rpartition(".")
    binary = owner == "HeckmanProbit" or method in ("observed_auc", "observed_brier")
    binary = binary or method in ("observed_log_loss", "calibration")
    given = {"y": rows["classes" if binary else "y"]}
    if role != "y":
        given[role] = rows[role]
    treatment = dict.fromkeys(("treatment_effects", "treatment_overlap"), "treatment")
    own = {"profile_df": "t", **treatment}.get(method)
    own = "probit" if binary else own or "plain"
    fitted = models.get(role if own == "plain" else f"{own}, {role}", models.get(own))
    function = dict(calls())[name]
    takes = inspect.signature(function).parameters
    if owner in ("HeckmanProbit", "Heckman") and method != "fit":
        function = getattr(fitted, method)
    elif owner in (kind.__name__ for kind in ESTIMATORS):
        kind = next(kind for kind in ESTIMATORS if kind.__name__ == owner)
        options = {"cov_type": "cluster"} if role == "groups" else {}
        model = kind(**options)
        if method != "fit":
            model = NaiveOLS().fit(rows["X"], rows["y"])
        function = getattr(model, method)
    elif owner == "SelectionKFold":
        splitter = SelectionKFold(3)

        def function(X, **others):
            return list(splitter.split(X, **others))
    elif owner in ("model_selection", "heckmanfa.plots"):
        bound = function

        def function(X, **others):
            return bound(fitted, X, **others)

    given = {key: value for key, value in given.items() if key in takes}
    if method == "report":
        function = partial(function, tmp_path / "report.html")
    if method == "profile":
        given["term"] = "educ"
    if "treated" in takes:
        given["treated"] = rows["selected"]
    if method == "wild_test":
        function = partial(function, "educ = 0")
        given.setdefault("groups", rows["groups"])
    if method == "bootstrap":
        given |= {"n_boot": 2, "random_state": 0}
    given[role] = shuffled(given[role])
    if method == "pictures":
        # What pictures need is read when they are drawn.
        given["draw"] = "overlap"
    with pytest.raises(InputError, match=rf"{role} has the row labels of X in another order"):
        drawn(function, rows["X"], **given)


def drawn(function, X, *, draw=None, **given):
    found = function(X, **given)
    return found if draw is None else getattr(found, draw)


@pytest.mark.parametrize("role", ["sample_weight", "groups"])
def test_columns_beside_the_frame_of_formulas_are_matched_too(rows, role):
    data = rows["X"].assign(lwage=rows["y"])
    formulas = ("lwage ~ educ + exper", "educ + exper + age + kids5")
    options = {"cov_type": "cluster"} if role == "groups" else {}
    model = Heckman.from_formula(*formulas, data, **{role: rows[role]}, **options)
    other = {role: shuffled(rows[role])}
    with pytest.raises(InputError, match=rf"{role} has the row labels of data in another order"):
        Heckman.from_formula(*formulas, data, **other, **options)
    for method in ("exclusion_test", "margins") if role == "sample_weight" else ("exclusion_test",):
        with pytest.raises(InputError, match=rf"{role} has the row labels of \w+ in another"):
            getattr(model, method)(data, **other)
    with pytest.raises(InputError, match="over has the row labels of X in another order"):
        model.margins(data, over=shuffled(rows["over"]), sample_weight=1)


# Which labels are the same. ----------------------------------------------------------------------


def test_the_shuffled_outcome_of_the_example_is_refused_with_the_way_out():
    mroz = load_mroz()
    X, y = mroz[FEATURES], mroz["lwage"]
    with pytest.raises(InputError, match=r"y\.loc\[X\.index\] has the order of X") as refused:
        Heckman(PREDICT).fit(X, shuffled(y))
    assert "y.to_numpy()" in str(refused.value)
    expected = Heckman(PREDICT).fit(X, y).coef_
    np.testing.assert_array_equal(Heckman(PREDICT).fit(X, shuffled(y).loc[X.index]).coef_, expected)
    np.testing.assert_array_equal(Heckman(PREDICT).fit(shuffled(X), shuffled(y)).coef_.shape, (5,))


def test_other_labels_are_refused_by_name_and_row(rows):
    X, y = rows["X"].set_axis(range(1000, 1300)), rows["y"].set_axis(range(1001, 1301))
    with pytest.raises(InputError, match=r"other row labels than X: row 1 is 1000 in X and 1001"):
        Heckman(PREDICT).fit(X, y)
    # Also if X has no labels at all.
    with pytest.raises(InputError, match="selected has other row labels than y"):
        Heckman(PREDICT).fit(X.to_numpy(), rows["y"].set_axis(X.index), selected=y.notna())


@pytest.mark.parametrize("role", ["X", "y"])
def test_rows_without_labels_are_taken_by_position_with_a_warning(rows, role):
    given = {name: rows[name] for name in ("X", "y")}
    expected = Heckman(PREDICT).fit(**given).coef_
    # A range that begins elsewhere is a label: rows were taken from a longer table.
    assert not np.array_equal(given["X"].index, range(300))
    for index in (pd.RangeIndex(300), pd.Index(np.arange(300))):
        with pytest.warns(RowLabelsWarning, match=rf"rows of {role} are labelled 0 to n - 1"):
            model = Heckman(PREDICT).fit(**given | {role: given[role].set_axis(index)})
        np.testing.assert_array_equal(model.coef_, expected)


def test_equal_labels_of_any_kind_and_rows_without_labels_are_taken_in_silence(rows):
    X, y = rows["X"].to_numpy(), rows["y"].to_numpy()
    kinds = [
        pd.Index(np.arange(300) // 2),
        pd.MultiIndex.from_product([range(30), list("abcdefghij")]),
        pd.date_range("2020", periods=300, tz="UTC"),
        pd.Index([None, np.nan, *range(298)], dtype=object),
        pd.Index(["same"] * 300),
    ]
    for index in kinds:
        Heckman([0]).fit(pd.DataFrame(X, index), pd.Series(y, index.copy()))
        with pytest.raises(InputError, match="row labels"):
            match_rows({"X": pd.DataFrame(X, index), "y": pd.Series(y, range(7, 307))})
    for values in (y, pl.Series(y), list(y)):
        Heckman([0]).fit(pd.DataFrame(X, kinds[1]), values)
        Heckman([0]).fit(X, pd.Series(y, kinds[1]))


@pytest.mark.parametrize("duplicated", [False, True])
def test_another_order_of_labels_that_occur_several_times_is_refused(rows, duplicated):
    index = pd.MultiIndex.from_product([range(30), list("abcdefghij")])
    X, y = rows["X"].set_axis(index), rows["y"].set_axis(index)
    if duplicated:
        X, y = X.droplevel(1), y.droplevel(1)
    with pytest.raises(InputError, match="row labels of X in another order"):
        Heckman(PREDICT).fit(X, y.iloc[::-1])


# Those of scikit-learn, and of Dask. -------------------------------------------------------------


def test_folds_searches_and_pipelines_keep_labels_without_a_word(rows):
    X, y, weight = rows["X"], rows["y"], rows["sample_weight"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folds = SelectionKFold(3, shuffle=True, random_state=0)
        scores = cross_val_score(
            Heckman(PREDICT), X, y, cv=folds, scoring=observed_mse, params={"sample_weight": weight}
        )
        assert np.isfinite(scores).all()
        search = GridSearchCV(
            make_pipeline(StandardScaler().set_output(transform="pandas"), Heckman()),
            {"heckman__prediction_features": [PREDICT, FEATURES[:3]]},
            cv=folds,
            scoring=observed_mse,
        )
        assert np.isfinite(search.fit(X, y).best_score_)
        train, test, y_train, y_test = train_test_split(X, y, random_state=0)
        Heckman(PREDICT).fit(train, y_train).score(test, y_test)
        compare_methods(X, y, estimators={"naive": NaiveOLS(PREDICT)}, n_folds=2, n_repeats=1)
    with pytest.raises(InputError, match="y has the row labels of X in another order"):
        observed_mse(search, X, shuffled(y))


def test_partitions_of_dask_with_other_labels_are_refused(rows):
    dd = pytest.importorskip("dask.dataframe")
    dask = pytest.importorskip("dask")
    X, y = rows["X"].set_axis(range(1000, 1300)), rows["y"].set_axis(range(1000, 1300))
    with dask.config.set(scheduler="synchronous"):
        collection = dd.from_pandas(X, npartitions=3)
        outcome = dd.from_pandas(y, npartitions=3)
        assert Heckman(PREDICT).fit(collection, outcome).n_obs_ == 300
        turned = outcome.map_partitions(lambda part: part.iloc[::-1], meta=y.iloc[:0])
        with pytest.raises(InputError, match="y has the row labels of X in another order"):
            Heckman(PREDICT).fit(collection, turned)
        # Partitions that number their rows from 0 say nothing.
        plain = outcome.map_partitions(lambda part: part.reset_index(drop=True), meta=y.iloc[:0])
        assert Heckman(PREDICT).fit(collection, plain).n_obs_ == 300

"""A model with categories is the model with pandas' dummies, and goes by the columns of X."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanLasso,
    HeckmanProbit,
    InverseProbabilityWeighted,
    NaiveOLS,
    RURegressor,
    compress,
)
from heckmanfa.errors import (
    CollinearError,
    InputError,
    MissingValueError,
    SeparationError,
    TextNumbersWarning,
    UnknownFeatureError,
)
from heckmanfa.estimators.fitting import attach_encoding
from heckmanfa.model_selection import SelectionKFold

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
DUMMIES = ["a", "c[y]", "c[z]", "b", "d[hi]"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    n = 400
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "c": rng.choice(["x", "y", "z"], n, p=[0.2, 0.5, 0.3]),
            "b": rng.normal(size=n),
            "d": pd.Categorical(rng.choice(["lo", "hi"], n), categories=["lo", "hi"]),
        }
    )
    u = rng.normal(size=n)
    level = X["c"].map({"x": 0.0, "y": 1.0, "z": -1.0})
    y = 1 + X["a"] + level + 0.4 * (X["d"] == "hi") + 0.5 * u + rng.normal(size=n)
    return X, y.where(0.3 + 0.4 * X["a"] + X["b"] + 0.3 * level + u > 0)


@pytest.fixture(scope="module")
def dummies(data):
    made = pd.get_dummies(data[0], columns=["c", "d"], drop_first=True)
    made.columns = [name.replace("_", "[") + "]" if "_" in name else name for name in made.columns]
    return made[DUMMIES]


@pytest.fixture(scope="module")
def model(data):
    return Heckman(["a", "c", "d"]).fit(*data)


@pytest.mark.parametrize(
    ("make", "features"),
    [
        (lambda **asked: Heckman(**asked), ["a", "c", "d"]),
        (lambda **asked: Heckman(method="ml", cov_type="robust", **asked), ["a", "c", "d"]),
        (NaiveOLS, ["a", "c", "d"]),
        (InverseProbabilityWeighted, ["a", "c", "d"]),
        (RURegressor, ["a", "c", "d"]),
        (HeckmanAverage, None),
        (HeckmanBestSubset, None),
    ],
)
def test_every_estimator_gives_the_numbers_of_the_same_dummies(data, dummies, make, features):
    X, y = data
    columns = None if features is None else ["a", "c[y]", "c[z]", "d[hi]"]
    groups = {"feature_groups": [["c[y]", "c[z]"]]} if features is None else {}
    seed = {"random_state": 0, "epochs": 2} if make is RURegressor else {}
    found = make(prediction_features=features, **seed).fit(X, y)
    wanted = make(prediction_features=columns, **groups, **seed).fit(dummies, y)
    np.testing.assert_allclose(found.predict(X), wanted.predict(dummies), rtol=1e-12)
    if hasattr(wanted, "coef_"):
        np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-12)
        assert found.coef_.shape == found.encoded_names_.shape
    assert found.score(X, y) == pytest.approx(wanted.score(dummies, y), rel=1e-12)
    assert list(found.encoded_names_) == DUMMIES
    assert list(found.feature_names_in_) == ["a", "c", "b", "d"]
    assert found.n_features_in_ == 4
    assert found.support_.shape == (4,)
    assert [*X.columns[found.support_]] == found.prediction_features_
    assert wanted.encoding_ is None


def test_the_coding_is_formulaics_treatment_coding(data, model):
    X, y = data
    formula = Heckman.from_formula("y ~ a + c + d", "a + c + b + d", X.assign(y=y))
    mine = model.tidy().set_index(["equation", "term"])["estimate"]
    names = formula.tidy()["term"].str.replace("[T.", "[")
    theirs = formula.tidy().assign(term=names).set_index(["equation", "term"])["estimate"]
    pd.testing.assert_series_equal(mine.sort_index(), theirs.sort_index(), rtol=1e-10)


def test_scikit_learn_takes_the_same_values_of_categorical_features(data):
    X, _ = data
    codes = X.assign(c=X["c"].astype("category").cat.codes, d=X["d"].cat.codes)
    for asked in ("from_dtype", ["c", "d"], [1, 3], [False, True, False, True], None):
        theirs = HistGradientBoostingRegressor(categorical_features=asked, max_iter=1)
        theirs.fit(codes.astype({"c": "category", "d": "category"}), X["a"])
        mine = Heckman(["a", "c"], categorical_features=asked)
        frame = codes.astype({"c": "category"}) if asked == "from_dtype" else codes
        mine.fit(frame, data[1])
        are = theirs.is_categorical_
        expected = 0 if are is None else int(np.count_nonzero(are)) - (asked == "from_dtype")
        levels = {} if mine.encoding_ is None else mine.encoding_.levels
        assert len(levels) == expected


def test_names_positions_and_masks_are_of_columns_of_x(data, model):
    X, y = data
    for asked in ([0, 1, 3], [True, True, False, True], ["a", "c[y]", "c[z]", "d"]):
        np.testing.assert_allclose(Heckman(asked).fit(X, y).coef_, model.coef_, rtol=1e-12)
    part = Heckman(["a", "c[z]"]).fit(X, y)
    assert part.prediction_features_ == ["a", "c[z]"]
    assert part.selection_features_ == ["a", "c", "b", "d"]
    assert part.support_.tolist() == [True, True, False, False]
    with pytest.raises(UnknownFeatureError, match=r"'c\[q\]'"):
        Heckman(["c[q]"]).fit(X, y)
    with pytest.raises(InputError, match=r"names 'c\[y\]' twice"):
        Heckman(["c", "c[y]"]).fit(X, y)
    with pytest.raises(InputError, match="mask of 5 entries, but X has 4 columns"):
        Heckman([True] * 5).fit(X, y)
    array = Heckman([0, 1], categorical_features=[1, 3]).fit(X.to_numpy(dtype=object), y)
    assert array.prediction_features_ == [0, 1]
    assert array.encoded_names_[1] == "x1[y]"
    assert not hasattr(array, "feature_names_in_")
    np.testing.assert_allclose(array.coef_[:3], Heckman(["a", "c"]).fit(X, y).coef_[:3], rtol=1e-12)
    # Without names, what the model makes of the columns is known by its number of columns.
    matrix = array.encoding_.transform(X.set_axis(array.encoding_.sources, axis=1)).to_numpy()
    wanted = array.predict(X.to_numpy(dtype=object))
    with pytest.warns(UserWarning, match="feature"):
        found = array.predict(matrix)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_dummies_move_as_one_in_every_search(data):
    X, y = data
    whole = {"a", "b", "c", "d"}
    best = HeckmanBestSubset(tolerance=1e4, honest=True, n_splits=3, random_state=0).fit(X, y)
    trained = HeckmanFA(epochs=20, record_path=10, n_draws=50, random_state=0).fit(X, y)
    average = HeckmanAverage().fit(X, y)
    sets = [*best.candidates_["features"], *trained.candidates_["features"]]
    sets += [*average.assignments_["features"], *best.honest_.splits()["features"]]
    assert all({*features} <= whole for features in sets)
    assert {*average.inclusion_["feature"]} == {*whole, "correction"}
    assert trained.inclusion_prob_.shape == (4,)
    assert trained.path_["inclusion_prob"].shape == (2, 4)
    forced = HeckmanBestSubset(always=["c"], never=["d"], max_features=3, tolerance=1e4).fit(X, y)
    assert all("c" in features and "d" not in features for features in forced.candidates_.features)
    apart = HeckmanBestSubset(feature_groups=[["c[y]"], ["c[z]"]], tolerance=1e4).fit(X, y)
    assert any("c[y]" in features for features in apart.candidates_["features"])
    with pytest.raises(InputError, match=r"chooses.*group"):
        HeckmanLasso().fit(X, y)
    assert "c" in HeckmanLasso(feature_groups=[["c[y]"], ["c[z]"]]).fit(X, y).prediction_features_


def test_scores_leave_out_levels_that_count_as_missing(data):
    X, y = data
    seen = (X["c"] != "z").to_numpy()
    for lenient in (
        Heckman(["a", "c"], unknown="missing"),
        NaiveOLS(["a", "c"], unknown="missing"),
    ):
        lenient.fit(X[seen], y[seen])
        assert lenient.score(X, y) == pytest.approx(lenient.score(X[seen], y[seen]), rel=1e-12)
    strict = Heckman(["a", "c"]).fit(X[seen], y[seen])
    with pytest.raises(InputError, match="'z'"):
        strict.score(X, y)


def test_unseen_and_missing_levels(data, model):
    X, y = data
    rows = X.head(6).assign(c=["x", "new", None, "z", "y", "x"])
    known = ~np.isin(np.arange(6), [1, 2])
    methods = (model.predict, model.predict_selection, model.inverse_mills)
    for method in methods:
        with pytest.raises(InputError, match="'new'"):
            method(rows, missing="nan")
        with pytest.raises(MissingValueError, match=r"'c' \(2 rows\)"):
            method(rows, unknown="missing")
        found = method(rows, missing="nan", unknown="missing")
        assert (~np.isnan(found)).tolist() == known.tolist()
    assert model.missing_features(rows, unknown="missing").columns == {"c": 2}
    lenient = Heckman(["a", "c"], unknown="missing").fit(X, y)
    assert np.isnan(lenient.predict(rows, missing="nan")).sum() == 2
    with pytest.raises(InputError, match="'new'"):
        lenient.predict(rows, missing="nan", unknown="error")
    with pytest.raises(InputError, match=r"'error'.*'missing'.*'nan'"):
        model.predict(rows, unknown="nan")
    with pytest.raises(MissingValueError, match=r"'c' \(1 missing\)"):
        Heckman().fit(X.assign(c=X["c"].where(X.index != 3)), y)
    plain = NaiveOLS(["a", "c"]).fit(X, y)
    assert np.isnan(plain.predict(rows, missing="nan", unknown="missing")).sum() == 2
    formula = Heckman.from_formula("y ~ a + c", "a + b + c", X.assign(y=y))
    with pytest.raises(InputError, match="'new'"):
        formula.predict(rows)
    found = formula.predict(rows, missing="nan", unknown="missing")
    assert np.isnan(found).tolist() == (~known).tolist()
    assert formula.missing_features(rows, unknown="missing").columns == {"c": 2}


def test_a_binary_outcome_has_categories_too(data, dummies):
    X, y = data
    high = (y > 1).where(y.notna())
    found = HeckmanProbit(["a", "c", "d"]).fit(X, high)
    wanted = HeckmanProbit(["a", "c[y]", "c[z]", "d[hi]"]).fit(dummies, high)
    np.testing.assert_allclose(found.predict_proba(X), wanted.predict_proba(dummies), rtol=1e-12)
    rows = X.head(2).assign(c=["new", "x"])
    for method in (found.predict, found.predict_proba, found.predict_log_proba):
        made = method(rows, missing="nan", unknown="missing")
        assert np.all(pd.isna(made[0]))
        assert not np.any(pd.isna(made[1]))


def test_rows_that_a_fit_was_given_are_known_again(data, dummies, model):
    X, y = data
    wanted = Heckman(["a", "c[y]", "c[z]", "d[hi]"]).fit(dummies, y)
    found = model.bootstrap(X, y, n_boot=3, random_state=0)
    other = wanted.bootstrap(dummies, y, n_boot=3, random_state=0)
    pd.testing.assert_frame_equal(found.tidy(), other.tidy())
    assert found.assignments()["features"].tolist() == [("a", "c", "d")]
    mine, theirs = model.specification_tests(X, y).tidy(), wanted.specification_tests(dummies, y)
    pd.testing.assert_frame_equal(mine, theirs.tidy())
    assert "c[y]" in str(model.summary())
    narrow = Heckman(["a"]).fit(X, y)
    assert {*narrow.exclusion_test().tidy()["stays_out"]} == {("c",), ("b",), ("d",)}
    assert narrow.diagnostics().excluded_features == ("c", "b", "d")


def test_effects_of_a_category_are_contrasts_with_its_reference(data, model):
    X, _ = data
    table = model.margins(X, kind="marginal").tidy()
    rows = table[table["term"] == "c"]
    assert rows["change"].tolist() == ["x to y", "x to z"]
    np.testing.assert_allclose(rows["estimate"], model.coef_[1:3], rtol=1e-12)
    chance = model.margins(X, kind="selection", features=["c"]).tidy()["estimate"]
    levels = [model.predict_selection(X.assign(c=level)).mean() for level in "xyz"]
    np.testing.assert_allclose(chance, np.subtract(levels[1:], levels[0]), rtol=1e-9)


def test_scikit_learns_tools_take_text(data, model):
    X, y = data
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    scores = cross_val_score(copy, X, y, cv=SelectionKFold(3))
    assert np.isfinite(scores).all()
    pipeline = make_pipeline(clone(model)).fit(X, y)
    np.testing.assert_array_equal(pipeline.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.predict(pl.from_pandas(X)), model.predict(X))


def test_columns_that_are_not_read_may_hold_anything(data, model):
    X, y = data
    wide = X.assign(name=[f"person {row}" for row in range(len(X))])
    asked = {"prediction_features": ["a", "c", "d"], "selection_features": ["a", "b", "c", "d"]}
    found = Heckman(**asked).fit(wide, y)
    np.testing.assert_array_equal(found.predict(wide), model.predict(X))
    assert found.encoded_names_[-1] == "name"


def test_a_category_with_one_level_is_handled_as_a_constant(data):
    X, y = data
    constant = X.assign(k="same")
    with pytest.raises(CollinearError, match=r"'k\[same\]' is constant"):
        Heckman().fit(constant, y)
    assert Heckman(on_collinear="drop").fit(constant, y).dropped_features_ == ["k"]


def test_compressed_data_have_a_column_for_each_dummy(data, dummies):
    X, y = data
    mask = np.array([True, True, True, False, False])
    found = compress(X, y).moments.solve(mask)
    np.testing.assert_allclose(
        found.coef, compress(dummies, y).moments.solve(mask).coef, rtol=1e-12
    )


def test_a_model_of_encoded_columns_can_take_raw_ones(data, dummies, model):
    X, y = data
    encoded = Heckman(["a", "c[y]", "c[z]", "d[hi]"]).fit(dummies, y)
    attach_encoding(encoded, model.encoding_)
    assert encoded.prediction_features_ == model.prediction_features_
    np.testing.assert_allclose(encoded.predict(X), model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(encoded.predict(dummies), model.predict(X), rtol=1e-12)
    with pytest.raises(InputError, match="columns"):
        attach_encoding(Heckman(["a"]).fit(dummies[["a", "b", "c[z]"]], y), model.encoding_)


def test_columns_that_are_not_named_must_hold_numbers(data):
    X, y = data
    with pytest.raises(InputError, match=r"'d'.*categorical_features"):
        Heckman(["a"], categorical_features=["c"]).fit(X, y)
    with pytest.raises(InputError, match=r"'c'.*categorical_features"):
        Heckman(["a"], categorical_features=["d"]).fit(X, y)
    # A column of neither equation is not read.
    found = Heckman(["a", "c"], ["a", "b", "c"], categorical_features=["c"]).fit(X, y)
    assert found.encoded_names_.tolist() == ["a", "c[y]", "c[z]", "b", "d"]
    with pytest.raises(InputError, match=r"1.*categorical_feat"):
        Heckman([0]).fit(X[["a", "c", "b"]].to_numpy(dtype=object), y)


def test_marks_of_missing_levels_are_explained(data):
    X, y = data
    marked = X.assign(c=X["c"].mask(X.index < 3, ""))
    with pytest.raises(MissingValueError, match=r"'c'.*3"):
        Heckman(["a", "c"]).fit(marked, y)


def test_one_dummy_cannot_be_fixed_while_the_others_stay(data, model):
    with pytest.raises(InputError, match=r"'c'.*'y'"):
        model.margins(data[0], kind="selection", what="predictions", at={"c[y]": [0, 1]})


def test_a_category_counts_as_one_excluded_feature(data):
    X, y = data
    model = Heckman(["a", "d"]).fit(X, y)
    found = model.diagnostics()
    assert found.excluded_features == ("c", "b")
    assert (found.n_excluded, found.excluded_wald.df) == (3, 3)
    held = Heckman(["a", "d"], rho=0.2).fit(X, y).diagnostics()
    assert held.excluded_features == ("c", "b")
    with pytest.raises(InputError, match="'d'"):
        model.exclusion_test(features=["d"])


def test_a_level_that_is_an_interval_is_tested_by_its_name(data):
    X, y = data
    cut = X.assign(c=pd.cut(X["a"], [-9, -0.5, 0.5, 9]))
    model = Heckman(["a", "c"]).fit(cut, y)
    table = model.tidy().set_index(["equation", "term"])
    z = table.loc[("prediction", "c[(0.5, 9.0]]"), "statistic"]
    assert model.wald_test("c[(0.5, 9.0]] = 0").statistic == pytest.approx(z**2, rel=1e-9)
    assert model.wald_test("c[(-0.5, 0.5]] = c[(0.5, 9.0]], c[(0.5, 9.0]]").df == 2


def test_formulas_have_categories_of_their_own(data):
    X, y = data
    frame = X.assign(y=y, size=pd.Categorical(np.arange(len(X)) % 3))
    with pytest.raises(InputError, match=r"C\(region\)"):
        Heckman.from_formula("y ~ a", "a + b", frame, categorical_features=["a"])
    model = Heckman.from_formula("y ~ a + c", "a + b + c", frame)
    with pytest.raises(InputError, match=r"'new'.*'missing'"):
        model.predict(frame.assign(c="new"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", TextNumbersWarning)
        Heckman.from_formula("y ~ a + size", "a + b + size", frame)


@pytest.mark.parametrize(("level", "hint"), [("aa", "look at its reference, 'aa'"), ("zz", "")])
def test_a_rare_level_that_separates_is_named(data, level, hint):
    X, y = data
    rare = X.assign(c=X["c"].mask(X.index == np.flatnonzero(y.notna())[0], level))
    with pytest.raises(SeparationError, match="the selection of 1 row is certain") as caught:
        Heckman(["a", "c"]).fit(rare, y)
    named = "'c[x]', 'c[y]', 'c[z]' together separate" if hint else "'c[zz]' separates"
    assert str(caught.value).startswith(named)
    assert hint in str(caught.value)
    assert ("reference" in str(caught.value)) == bool(hint)

"""Text and categories in Dask collections: the model of memory, whatever the partitions."""

import pickle

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanProbit, NaiveOLS
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.dask_rows import dask_source
from heckmanfa.data.row_sources import Reading
from heckmanfa.errors import InputError, UnknownFeatureError

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

# Words, numbers spelled as text, and a declared order that is not that of the alphabet.
FEATURES = ["educ", "town", "grade", "size", "age", "kids5"]
PREDICTING = ["educ", "town", "size"]


@pytest.fixture(autouse=True)
def here():
    """Dask without a cluster, on this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def frame(mroz):
    random = np.random.default_rng(0)
    n = len(mroz)
    sizes = random.choice(["S", "M", "L"], n)
    return mroz.assign(
        town=random.choice(["b", "a", "d"], n),
        grade=random.choice(["10", "2", "3"], n),
        size=pd.Categorical(sizes, categories=["XS", "S", "M", "L"]),
        number=random.integers(0, 3, n),
        employed=np.where(mroz["lwage"].notna(), mroz["exper"] > 10, np.nan),
    )


@pytest.fixture(scope="module")
def expected(frame):
    return Heckman(PREDICTING).fit(frame[FEATURES], frame["lwage"])


@pytest.fixture(scope="module")
def fitted(frame):
    with dask.config.set(scheduler="synchronous"):
        ddf = parts(frame)
        return Heckman(PREDICTING).fit(ddf[FEATURES], ddf["lwage"])


def parts(frame, n=3):
    return dd.from_pandas(frame, npartitions=n, sort=False)


def levels(X, lists=(None,), categorical="from_dtype"):
    """The levels that a fit learns, from partitions or in memory."""
    if not isinstance(X, pd.DataFrame):
        y = X[X.columns[0]] if hasattr(X, "columns") else X[:, 0]
        X = dask_source(X, y, None, None, None)
    table = read_features(X, "Heckman", categorical=categorical, lists=lists)
    encoding = table.columns.encoding
    return None if encoding is None else encoding.levels


def test_a_fit_to_text_is_that_in_memory(fitted, expected):
    dummies = ["town[b]", "town[d]", "grade[3]", "grade[10]", "size[M]", "size[L]"]
    assert fitted.encoded_names_.tolist() == ["educ", *dummies, "age", "kids5"]
    assert fitted.feature_names_in_.tolist() == FEATURES
    mine, theirs = fitted.tidy(), expected.tidy()
    assert mine["term"].tolist() == theirs["term"].tolist()
    errors = theirs["std_error"].fillna(1.0)
    assert ((mine["estimate"] - theirs["estimate"]).abs() / errors).max() < 1e-12
    np.testing.assert_allclose(mine["std_error"], theirs["std_error"], rtol=1e-11)
    np.testing.assert_array_equal(fitted.support_, expected.support_)
    assert fitted.row_counts_ == expected.row_counts_
    assert fitted.prediction_features_ == PREDICTING


def test_a_model_predicts_raw_partitions_lazily(frame, fitted, expected):
    ddf = parts(frame)
    model = pickle.loads(pickle.dumps(fitted))
    lazy = model.predict(ddf[FEATURES])
    assert isinstance(lazy, dd.Series)
    np.testing.assert_allclose(lazy.compute(), expected.predict(frame[FEATURES]))
    dummies = parts(model.encoding_.transform(frame[FEATURES]))
    np.testing.assert_allclose(model.predict(dummies).compute(), expected.predict(frame[FEATURES]))
    new = parts(frame.assign(town=frame["town"].where(frame.index < 700, "z")))
    with pytest.raises(InputError, match=r"column 'town' holds levels .* 'z'"):
        model.predict(new[FEATURES]).compute()
    holes = model.predict(new[FEATURES], missing="nan", unknown="missing").compute()
    np.testing.assert_array_equal(holes.isna(), frame.index >= 700)


def unknown_categories(frame):
    ddf = parts(frame)
    return ddf.assign(town=ddf["town"].astype("category"), grade=ddf["grade"].astype("category"))


def objects(frame):
    with dask.config.set({"dataframe.convert-string": False}):
        ddf = parts(frame.astype({"town": object, "grade": object}))
        assert ddf.dtypes["town"].kind == "O"
        return ddf


WAYS = {
    "text": parts,
    "rows sorted by level": lambda frame: parts(frame.sort_values(["town", "size"]), 7),
    "objects": objects,
    "python strings": lambda frame: parts(frame.astype({"town": "string[python]"})),
    "known categories": lambda frame: parts(frame.astype({"town": "category"})),
    "unknown categories": unknown_categories,
}


@pytest.mark.parametrize("way", WAYS)
def test_levels_have_the_order_that_they_have_in_memory(frame, way):
    ddf = WAYS[way](frame)[FEATURES]
    found = levels(ddf)
    assert found == levels(ddf.compute())
    assert found["town"] == ("a", "b", "d")
    assert found["size"] == ("S", "M", "L")


def test_partitions_that_declare_different_levels_have_no_order_of_their_own(frame):
    # One partition holds d and b, the other a and b: appearance would make d or a the reference.
    later = frame.assign(town=np.where(frame.index < 400, "b", "d"))
    halves = [
        part.assign(town=part["town"].astype("category").cat.as_ordered())
        for part in (later.iloc[300:], frame[frame["town"] != "d"])
    ]
    for pair in (halves, halves[::-1]):
        ddf = dd.from_map(lambda part: part, pair, meta=halves[0].iloc[:0], enforce_metadata=False)
        assert levels(ddf[["town", "educ"]]) == {"town": ("a", "b", "d")}


def test_numbers_are_categories_if_they_are_named_by_label_or_position(frame):
    names = ["educ", "number", "age"]
    array = frame[names].to_numpy(float)
    X, y = (
        da.from_array(array, chunks=(400, 2)),
        da.from_array(frame["lwage"].to_numpy(), chunks=300),
    )
    found = NaiveOLS(categorical_features=[1]).fit(X, y)
    assert found.encoded_names_.tolist() == ["x0", "x1[1]", "x1[2]", "x2"]
    expected = NaiveOLS(categorical_features=[1]).fit(array, frame["lwage"])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
    np.testing.assert_allclose(found.predict(X).compute(), expected.predict(array))
    assert levels(X) is None
    assert levels(parts(frame)[names], categorical=["number"]) == {"number": ("0", "1", "2")}


def test_columns_that_cannot_be_categories_are_refused_by_name(frame):
    X = parts(frame.assign(label=[f"row {row}" for row in range(len(frame))]))[["educ", "label"]]
    with pytest.raises(InputError, match=r"'label' differs in .* name it in categorical_features"):
        levels(X)
    assert levels(X, [["educ"]]) is None
    assert len(levels(X, categorical=["label"])["label"]) == len(frame)
    with pytest.raises(UnknownFeatureError, match="categorical_features: X has no column 'lab'"):
        levels(X, categorical=["lab"])
    with pytest.raises(InputError, match="categorical_features must be 'from_dtype'"):
        levels(X, categorical="all")
    with pytest.raises(InputError, match=r"'label' does not hold numbers .*categorical_features"):
        NaiveOLS(categorical_features=None).fit(X, X["educ"])
    days = X.assign(label=pd.Timestamp("2020-01-01"))
    with pytest.raises(InputError, match=r"'label' does not hold numbers .*to the year"):
        NaiveOLS().fit(days, X["educ"])


def test_objects_that_are_not_text_in_every_partition_are_not_a_category(frame):
    mixed = frame["town"].astype(object).where(frame.index < 400, 1)
    with dask.config.set({"dataframe.convert-string": False}):
        ddf = parts(frame.assign(town=mixed, empty=pd.Series([None] * len(frame), dtype=object)))
        assert levels(ddf[["educ", "town", "empty"]]) is None
        with pytest.raises(InputError, match="column 'town' does not hold numbers"):
            NaiveOLS(["educ", "town"]).fit(ddf[["educ", "town"]], ddf["lwage"])


@pytest.mark.study
def test_every_estimator_and_the_tests_of_its_assumptions_read_text(frame, fitted, expected):
    ddf = parts(frame)
    for data in (ddf, frame):
        search = HeckmanBestSubset(max_features=2).fit(data[FEATURES], data["lwage"])
        assert search.prediction_features_ == ["educ"]
    probit = HeckmanProbit(["educ", "town"])
    lazy = probit.fit(ddf[FEATURES], ddf["employed"]).coef_
    memory = probit.fit(frame[FEATURES], frame["employed"]).coef_
    np.testing.assert_allclose(lazy, memory, rtol=1e-6)
    found = fitted.specification_tests(ddf[FEATURES], ddf["lwage"])
    in_memory = expected.specification_tests(frame[FEATURES], frame["lwage"])
    pd.testing.assert_frame_equal(found.tidy(), in_memory.tidy(), rtol=1e-7)


def _features_of(part, chunks):
    return np.concatenate([chunk.features for chunk in chunks])


@pytest.mark.parametrize("columns", [(2, 0), (2, 1, 0), (0, 2)])
def test_encoded_columns_come_in_the_order_asked_for(columns):
    raw = pd.DataFrame({"a": [1.0, 2.0], "g": ["u", "v"], "b": [3.0, 4.0]})
    lazy = parts(raw, 1)
    source = dask_source(lazy, lazy["a"], None, None, None)
    encoded = source.re_encoded(Encoding.plain(("a", "g", "b"), {"g": ("u", "v")}))
    (found,) = encoded.run(_features_of, Reading(columns, 10))
    expected = raw.assign(g=[0.0, 1.0]).to_numpy(dtype=float)[:, list(columns)]
    assert np.array_equal(found, expected)

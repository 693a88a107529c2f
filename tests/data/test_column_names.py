"""Columns whose names are not text: integers are never guessed to be names or positions."""

from __future__ import annotations

import enum
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanLasso,
    InverseProbabilityWeighted,
    NaiveOLS,
    compress,
    scan,
)
from heckmanfa.analysis import analyse
from heckmanfa.analysis.request import Question, feature_names
from heckmanfa.data.columns.column_names import refuse_absent, repeated, tidy_names
from heckmanfa.data.columns.kinds import asked_for
from heckmanfa.errors import InputError, InputTypeError, TooFewRowsError

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
AMBIGUOUS = "could be the name of a column or its position"
FIRST_TWO = [True, True, False, False, False]


@pytest.fixture(scope="module")
def y(mroz):
    return mroz["lwage"]


@pytest.fixture(scope="module")
def named(mroz):
    return lambda labels: mroz[FEATURES].set_axis(list(labels), axis=1)


class Place(enum.IntEnum):
    a, b, c, d, e = range(1, 6)


class Plain(enum.Enum):
    a, b, c, d, e = range(1, 6)


class Word(enum.StrEnum):
    a, b, c, d, e = "educ", "exper", "age", "kids5", "nwifeinc"


@pytest.mark.parametrize(
    "labels",
    [
        [1, 2, 3, 4, 5],
        np.arange(1, 6),
        [4, 3, 2, 1, 0],
        [0, 1, 2, 3, 5],
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [True, False, 2, 3, 4],
        list(Place),
    ],
    ids=["1-5", "numpy", "reversed", "gap", "floats", "booleans", "IntEnum"],
)
def test_integers_that_may_be_names_or_positions_are_refused(labels, named, y):
    X = named(labels)
    for features in ([1, 2], np.array([1, 2])):
        with pytest.raises(InputError, match=AMBIGUOUS):
            Heckman(features).fit(X, y)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: Heckman(selection_features=[1, 2]).fit(X, y),
        lambda X, y: HeckmanBestSubset(always=[1]).fit(X, y),
        lambda X, y: HeckmanBestSubset(never=[1]).fit(X, y),
        lambda X, y: HeckmanBestSubset(feature_groups=[[1, 2]]).fit(X, y),
        lambda X, y: HeckmanBestSubset(feature_groups={"both": [1, 2]}).fit(X, y),
        lambda X, y: HeckmanLasso(always=[1]).fit(X, y),
        lambda X, y: NaiveOLS([1, 2]).fit(X, y),
        lambda X, y: InverseProbabilityWeighted([1], [2, 3]).fit(X, y),
        lambda X, y: compress(X, y, prediction_features=[1]),
        lambda X, y: Heckman(FIRST_TWO).fit(X, y).exclusion_test(X, y, features=[3]),
        lambda X, y: Heckman(FIRST_TWO).fit(X, y).margins(X, features=[1]),
    ],
)
def test_wherever_columns_are_named_the_same_rule_holds(fit, named, y):
    with pytest.raises(InputError, match=AMBIGUOUS):
        fit(named([1, 2, 3, 4, 5]), y)


def test_a_mask_or_text_names_fit_what_was_meant(named, y):
    by_mask = Heckman(FIRST_TWO).fit(named([1, 2, 3, 4, 5]), y)
    by_text = Heckman(["1", "2"]).fit(named("12345"), y)
    by_name = Heckman(["educ", "exper"]).fit(named(FEATURES), y)
    np.testing.assert_allclose(by_mask.coef_, by_name.coef_, rtol=1e-12)
    np.testing.assert_allclose(by_text.coef_, by_name.coef_, rtol=1e-12)
    assert by_mask.prediction_features_ == [0, 1]


def test_columns_0_to_k_in_order_are_known_by_number(named, y):
    for labels in (range(5), [0.0, 1.0, 2.0, 3.0, 4.0]):
        model = Heckman([0, 1]).fit(named(labels), y)
        assert model.prediction_features_ == [0, 1]
        model.exclusion_test(named(labels), y, features=[2])


def test_labels_that_are_no_numbers_leave_positions_clear(named, y):
    dates = pd.date_range("2000-01-01", periods=5)
    assert Heckman([0, 1]).fit(named(dates), y).prediction_features_ == [0, 1]
    assert Heckman([0, 1]).fit(named(list(Plain)), y).prediction_features_ == [0, 1]


def test_a_name_that_is_not_text_is_refused_with_what_to_do(named, y):
    for labels, one in ((list(Plain), Plain.a), ([1.0, 2.0, 3.0, 4.0, 5.0], 1.0)):
        with pytest.raises(InputError, match="Names of columns have to be text: rename"):
            Heckman([one]).fit(named(labels), y)
    with pytest.raises(InputError, match="names that are not text"):
        Heckman(["1"]).fit(named([1, 2, 3, 4, 5]), y)
    with pytest.raises(InputError, match="could be a mask or names"):
        Heckman([True, False, False, False, False]).fit(named([True, False, 2, 3, 4]), y)


@pytest.mark.parametrize("labels", [["a", 1, 2, 3, 4], [1, 2, 3, 4, None, "x"][1:]])
def test_mixed_names_get_the_type_error_of_scikit_learn(labels, named, y):
    X = named(labels)
    for fit in (Heckman().fit, NaiveOLS().fit, compress):
        with pytest.raises(TypeError, match="Feature names are only supported if all") as caught:
            fit(X, y)
        assert isinstance(caught.value, InputTypeError)


def test_text_of_other_types_is_text(named, y):
    plain = Heckman(["educ"]).fit(named(FEATURES), y)
    for labels in ([np.str_(one) for one in FEATURES], list(Word)):
        for features in (["educ"], [np.str_("educ")], [Word.a]):
            model = Heckman(features).fit(named(labels), y)
            assert model.prediction_features_ == ["educ"]
            assert type(model.prediction_features_[0]) is str
            assert list(model.feature_names_in_) == FEATURES
            assert model.rho_ == pytest.approx(plain.rho_, rel=1e-12)


def test_two_columns_of_a_name_are_refused_in_one_sentence(named, y, mroz):
    X = named(["a", "a", "b", "c", "d"])
    table = pa.table([mroz[one] for one in FEATURES], names=list(X.columns))
    for one in (X, table):
        with pytest.raises(InputError, match="X has two columns named 'a'; rename one"):
            Heckman(["a"]).fit(one, y)
    with pytest.raises(InputError, match="two columns named 'a'"):
        Heckman.from_formula("lwage ~ a", "~ a + b", X.assign(lwage=y))


def test_other_frames_have_text_names_and_take_positions(named, y):
    X = named(FEATURES)
    wanted = Heckman(["educ", "exper"]).fit(X, y).coef_
    for one in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        np.testing.assert_allclose(Heckman([0, 1]).fit(one, y).coef_, wanted, rtol=1e-12)


def test_columns_in_another_order_than_in_the_fit_are_refused_whatever_their_names(named, y):
    for labels in ([1, 2, 3, 4, 5], range(5), list(Plain)):
        X = named(labels)
        model = Heckman(FIRST_TWO).fit(X, y)
        wrong = X[X.columns[::-1]]
        for ask in (model.predict, model.predict_selection, model.margins, model.diagnostics):
            ask(X)
            with pytest.raises(InputError, match="pass the columns of the fit in its order"):
                ask(wrong)
        # Without names there is nothing to compare.
        np.testing.assert_allclose(model.predict(X.to_numpy()), model.predict(X), rtol=1e-12)
    unnamed = pd.DataFrame(X.to_numpy())
    np.testing.assert_allclose(model.predict(unnamed), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("features", [3, b"ab", 2.5])
def test_what_is_no_list_of_columns_gets_our_type_error(features, named, y):
    X = named(FEATURES)
    model = Heckman(["educ", "exper"]).fit(X, y)
    for ask in (
        lambda: model.margins(X, features=features),
        lambda: model.exclusion_test(X, y, features=features),
        lambda: compress(X, y, selection_features=features),
        lambda: Heckman(features).fit(X, y),
    ):
        with pytest.raises(InputError, match=r"must be"):
            ask()


def test_dask_frames_follow_the_same_rule(named, y):
    dd = pytest.importorskip("dask.dataframe")
    outcome = dd.from_pandas(y, npartitions=2)
    for labels, kind, words in (
        ([1, 2, 3, 4, 5], InputError, AMBIGUOUS),
        (["a", 1, 2, 3, 4], InputTypeError, "Feature names are only supported if all"),
        (["a", "a", "b", "c", "d"], InputError, "two columns named 'a'"),
    ):
        X = dd.from_pandas(named(labels), npartitions=2)
        with pytest.raises(kind, match=words):
            Heckman([1, 2]).fit(X, outcome)
    X = dd.from_pandas(named([1, 2, 3, 4, 5]), npartitions=2)
    model = Heckman(FIRST_TWO).fit(X, outcome)
    with pytest.raises(InputError, match="in its order"):
        model.predict(X[[5, 4, 3, 2, 1]])


def wide(count, *, text=False):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, size=(30, count)).astype(float)
    X = pd.DataFrame(values, columns=[f"c{k}" for k in range(count)])
    y = np.where(np.arange(30) < 20, rng.normal(size=30), np.nan)
    return (X.replace({0.0: "a", 1.0: "b"}) if text else X), y


def _stored(X, y, place):
    table = X.assign(outcome=y)
    table.to_csv(place, index=False) if place.suffix == ".csv" else table.to_parquet(place)
    return place


def _halves(X):
    half = X.shape[1] // 2
    return {"always": [*X.columns[:half]], "never": [*X.columns[half:-1]]}


WAYS = {
    "formula": lambda X, y, folder: Heckman.from_formula(
        f"outcome ~ {' + '.join(X.columns)}", "~ c0", X.assign(outcome=y)
    ),
    "frame": lambda X, y, folder: Heckman().fit(X, y),
    "names": lambda X, y, folder: Heckman([*X.columns], [*X.columns]).fit(X, y),
    "array": lambda X, y, folder: Heckman([*range(X.shape[1])]).fit(X.to_numpy(), y),
    "polars": lambda X, y, folder: Heckman([*X.columns]).fit(pl.from_pandas(X), y),
    "arrow": lambda X, y, folder: Heckman([*X.columns]).fit(pa.Table.from_pandas(X), y),
    "search": lambda X, y, folder: HeckmanBestSubset(**_halves(X)).fit(X, y),
    "naive": lambda X, y, folder: NaiveOLS().fit(X, y),
    "weighted": lambda X, y, folder: InverseProbabilityWeighted().fit(X, y),
    "compressed": lambda X, y, folder: compress(X, y),
    "few selecting": lambda X, y, folder: Heckman(None, ["c0", "c1"]).fit(X, y),
    "table": lambda X, y, folder: analyse(
        X.assign(outcome=y), outcome="outcome", select_only=[*X.columns[:-1]]
    ),
    "csv": lambda X, y, folder: analyse(_stored(X, y, folder / "wide.csv"), outcome="outcome"),
    "scan": lambda X, y, folder: Heckman().fit(
        scan(_stored(X, y, folder / "wide.parquet"), "outcome", [*X.columns])
    ),
}


# A file is read to the table of "table".
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.study) if way == "csv" else way for way in WAYS]
)
def test_far_more_features_than_rows_are_refused_with_their_counts(way, tmp_path, monkeypatch):
    # A triangular factor of 3,000 columns takes seconds.
    monkeypatch.setattr("heckmanfa.data.arrays.lapack", None)
    with pytest.raises(TooFewRowsError, match=r"^3000 .*features .* (20|30)\b"):
        WAYS[way](*wide(3_000), tmp_path)


def test_far_more_columns_of_text_than_rows_are_refused_before_their_levels_are_read(monkeypatch):
    monkeypatch.setattr("heckmanfa.data.columns.encoded_frame.count_levels", None)
    with pytest.raises(TooFewRowsError, match=r"1001 features are far too many for 30 rows"):
        Heckman().fit(*wide(1_001, text=True))


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize(
    "read",
    [
        lambda names: refuse_absent([*map(Counted, names)], names),
        lambda names: repeated(names),
        lambda names: tidy_names(names, Path("wide.csv")),
        lambda names: asked_for(names[::2], names[1::2], names),
        lambda names: feature_names(
            Question("wide.csv", names[0], features=tuple(names[1:]), always=tuple(names[1:])),
            names,
        ),
    ],
)
def test_each_name_is_compared_a_few_times(read, monkeypatch):
    monkeypatch.setattr(Counted, "compared", 0)
    monkeypatch.setattr("heckmanfa.data.columns.column_names.label_of", Counted)
    names = [Counted(f"c{k}") for k in range(500)]
    read(names)
    # Half of the pairs would be 125,000.
    assert Counted.compared < 20 * len(names)

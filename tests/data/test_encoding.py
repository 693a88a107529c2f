"""The same rows give the same numbers, and rows unlike those of the fit are refused with words."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from heckmanfa import HeckmanBestSubset
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.fitted_levels import recoded
from heckmanfa.errors import InputError, UnknownFeatureError

FEATURES = ["id", "age", "region", "union", "spelt"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 60
    return pd.DataFrame(
        {
            "wage": rng.normal(size=n),
            "id": np.arange(n),
            "age": np.where(np.arange(n) % 10 == 0, np.nan, np.arange(n) % 7),
            "region": (["west", "north", "west", "south", None, "west"] * n)[:n],
            "union": np.arange(n) % 2 == 0,
            "spelt": [f"{one:.3f}" for one in rng.normal(size=n)],
        },
        index=np.arange(n) + 100,
    )


@pytest.fixture
def learned(frame):
    return Encoding.learn(frame, FEATURES, untyped=True)


def test_what_is_learned(frame, learned):
    encoding, encoded = learned
    assert encoding.sources == ("age", "region", "union", "spelt")
    assert encoding.columns == ["age", "region[south]", "region[west]", "union", "spelt"]
    assert list(encoded) == encoding.columns
    assert set(encoded.dtypes) == {np.dtype("float64")}
    assert encoding.groups == {"region": ["region[south]", "region[west]"]}
    assert encoding.references == {"region": "north"}
    assert encoding.left_out == {"id": "counts the rows"}
    assert encoding.n_missing == {"age": 6, "region": 10}
    missing = frame["region"].isna()
    assert encoded.loc[missing, encoding.groups["region"]].isna().all(axis=None)
    for level in ("south", "west"):
        np.testing.assert_array_equal(
            encoded.loc[~missing, f"region[{level}]"], (frame["region"] == level)[~missing]
        )
    np.testing.assert_array_equal(encoded["union"], frame["union"])
    np.testing.assert_array_equal(encoded["spelt"], frame["spelt"].astype(float))


def test_the_same_rows_come_out_the_same(frame, learned):
    encoding, encoded = learned
    pd.testing.assert_frame_equal(encoding.transform(frame), encoded)
    some = frame[frame["region"] == "north"].drop(columns=["wage", "id"]).iloc[::-1]
    pd.testing.assert_frame_equal(encoding.transform(some), encoded.loc[some.index])


def test_rows_that_come_as_other_types(frame, learned):
    encoding, encoded = learned
    as_text = frame.astype(
        {"age": object, "union": str, "region": "category", "spelt": "float64"}
    ).assign(age=[f" {one:g}" for one in frame["age"]])
    pd.testing.assert_frame_equal(encoding.transform(as_text), encoded)


def test_whole_numbers_as_categories_do_not_depend_on_how_they_are_stored():
    codes = pd.DataFrame({"code": [10, 2, 1, 2, 10, 10], "x": [0.5, 1, 2, 3, 4, 5]})
    encoding, encoded = Encoding.learn(codes, ["code", "x"], categorical=["code"])
    assert encoding.levels == {"code": ("1", "2", "10")}
    for kind in ("float64", "Int64", "str", "category"):
        pd.testing.assert_frame_equal(encoding.transform(codes.astype({"code": kind})), encoded)
    some = pd.DataFrame({"code": [2.0, np.nan], "x": [1, 2]})
    np.testing.assert_array_equal(
        encoding.transform(some), [[1.0, 0.0, 1.0], [np.nan, np.nan, 2.0]]
    )


def test_the_reference_is_the_first_level_that_occurs_in_any_order_of_rows():
    levels = ["b", "a", "b", "b", "c"] * 2
    frame = pd.DataFrame({"g": levels, "h": pd.Categorical(levels, ["z", "c", "b", "a"])})
    for rows in (frame, frame.iloc[::-1]):
        encoding, _ = Encoding.learn(rows, ["g", "h"])
        assert encoding.levels == {"g": ("a", "b", "c"), "h": ("c", "b", "a")}


def test_merged_levels_come_last_and_the_others_by_size():
    codes = [*["10"] * 5, *["2"] * 5, "1", "3"]
    encoding, _ = Encoding.learn(pd.DataFrame({"g": codes}), ["g"], min_level_rows=3)
    assert encoding.levels == {"g": ("2", "10", "(other)")}


def test_means_fill_what_is_missing(frame):
    encoding, encoded = Encoding.learn(frame, FEATURES, missing="mean", untyped=True)
    plain = Encoding.learn(frame, FEATURES, untyped=True)[1]
    assert not encoded.isna().any(axis=None)
    pd.testing.assert_frame_equal(encoded, plain.fillna(plain.mean()))
    assert encoding.means["region[west]"] == (frame["region"].dropna() == "west").mean()
    pd.testing.assert_frame_equal(encoding.transform(frame), encoded)
    # Later rows get the means of the fit, not their own.
    empty = frame.head(3).assign(age=np.nan, region=None, spelt="?")
    found = encoding.transform(empty)
    for name in ("age", "region[south]", "region[west]", "spelt"):
        assert found[name].tolist() == [encoding.means[name]] * 3


def test_columns_that_are_not_there(frame, learned):
    encoding, _ = learned
    with pytest.raises(UnknownFeatureError, match=r"the data has no columns 'age', 'union'$"):
        encoding.transform(frame.drop(columns=["age", "union"]))
    with pytest.raises(UnknownFeatureError, match=r"no column 'region'\. Did you mean 'regions'"):
        encoding.transform(frame.rename(columns={"region": "regions"}))
    with pytest.raises(UnknownFeatureError, match=r"no column 'agee'\. Did you mean 'age'"):
        Encoding.learn(frame, ["agee"])
    with pytest.raises(UnknownFeatureError, match="no column 'x'"):
        Encoding.learn(frame, ["age"], categorical=["x"])


def test_levels_never_seen(frame, learned):
    encoding, _ = learned
    rows = frame.assign(region=["west", "east", None, "east", "Up"] * 12)
    named = (
        r"'region' .*: 'east' \(24 rows, .* row 2 .*\), 'Up' \(12 rows, .* row 5 .*\); "
        r".*'north', 'south', 'west'\. .*unknown='missing'.*"
    )
    with pytest.raises(InputError, match=f"{named} no prediction"):
        encoding.transform(rows)
    (said,) = encoding.unseen(rows)
    assert re.match(r"'region' .* 36 rows.*: 'Up', 'east'\.", said)
    assert encoding.unseen(frame) == []
    filled = Encoding.learn(frame, FEATURES, untyped=True, missing="mean")[0]
    assert "the means of the fit" in filled.unseen(rows)[0]
    with pytest.raises(InputError, match=f"{named} the means of the fit"):
        filled.transform(rows)


def test_text_where_the_fit_had_numbers(frame, learned):
    encoding, _ = learned
    rows = frame.astype({"age": object})
    rows.loc[102, "age"] = "old"
    with pytest.raises(
        InputError, match=r"column 'age': 1 of 54 .*: row 3 'old' .*correct it or mark"
    ):
        encoding.transform(rows)


def test_what_cannot_be_learned(frame):
    with pytest.raises(InputError, match="no column is left to fit a model with: 'id' counts"):
        Encoding.learn(frame, ["id"])
    with pytest.raises(InputError, match="none was named"):
        Encoding.learn(frame, [])
    with pytest.raises(InputError, match="'age' is named twice"):
        Encoding.learn(frame, ["age", "age"])
    with pytest.raises(InputError, match="missing must be 'drop' or 'mean'; got 'median'"):
        Encoding.learn(frame, ["age"], missing="median")
    clash = frame.assign(**{"region[south]": frame["age"]})
    with pytest.raises(InputError, match=r"two features would be called 'region\[south\]'"):
        Encoding.learn(clash, ["region", "region[south]"])


def test_the_story(frame, learned):
    filled = Encoding.learn(frame, ["age", "id"], numeric=["id"], missing="mean")[0]
    for encoding, wanted in (
        (
            learned[0],
            [
                "4 columns .* 5 features: 3 numbers and 1 category",
                "'region' .* 2 dummies.*'north'",
                r"'age' \(6 rows\), 'region' \(10 rows\)",
                "'id' counts the rows",
                "numeric or categorical",
            ],
        ),
        (filled, ["2 columns .* 2 features: 2 numbers", r"mean.*'age' \(6 rows\)"]),
    ):
        for sentence, words in zip(encoding.explain(), wanted, strict=True):
            assert re.search(words, sentence)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_a_search_holds_dummies_together(simulated):
    frame = pd.DataFrame(simulated.X.copy(), columns=list("abcdef"))
    frame["g"] = np.array(["u", "v", "w"])[np.arange(len(frame)) % 3]
    encoding, encoded = Encoding.learn(frame, list(frame))
    model = HeckmanBestSubset(feature_groups=encoding.groups).fit(encoded, simulated.y)
    held = [one in model.prediction_features_ for one in encoding.groups["g"]]
    assert len(set(held)) == 1


def test_many_categories_take_one_sentence():
    rows = pd.DataFrame({f"c{i}": ["a", "a", "b"] * 10 for i in range(20)})
    encoding, _ = Encoding.learn(rows, list(rows.columns))
    said = [text for text in encoding.explain() if "its reference" in text]
    assert len(said) == 1
    assert "'c0' with 'a', " in said[0]
    assert said[0].endswith("more.")


@pytest.mark.parametrize(
    ("levels", "unit"),
    [
        (["1 years", "2 years", "3.5 years", "10 years"], "years"),
        (["1a", "2a", "3a", "4a"], ""),
        (["1 years", "2 years", "3 years", "none"], ""),
    ],
)
def test_levels_that_are_numbers_and_a_unit_are_said_to_be(levels, unit):
    rows = pd.DataFrame({"tenure": levels * 10, "x": range(40)})
    encoding, _ = Encoding.learn(rows, ["tenure"])
    said = " ".join(encoding.explain())
    assert ("are numbers and 'years'" in said) == bool(unit)


@pytest.mark.parametrize(
    ("n_numbers", "is_used"), [(60, False), (51, False), (50, True), (1, True)]
)
def test_text_that_is_mostly_numbers_does_not_become_a_category_of_the_rest(n_numbers, is_used):
    words = ["low", "top"] * 50
    text = [f"{row}.5" for row in range(n_numbers)] + words[: 100 - n_numbers]
    frame = pd.DataFrame({"t": text, "x": np.arange(100) % 7})
    encoding, _ = Encoding.learn(frame, ["t", "x"], untyped=True, min_level_rows=3)
    assert ("t" in encoding.sources) == is_used
    assert encoding.columns == ([*encoding.columns_of("t"), "x"] if is_used else ["x"])
    if n_numbers in (60, 51):
        assert f"though {n_numbers} of its 100 values are numbers" in encoding.left_out["t"]


@pytest.mark.parametrize("order", ["bac", "cab", "ba", "cb", "abc"])
def test_dummies_of_other_levels_are_those_of_the_column(order):
    frame = pd.DataFrame({"g": [*"abcabbc"], "x": np.arange(7.0)})
    before, encoded = Encoding.learn(frame, ["g", "x"])
    after = replace(before, levels={"g": (*order,)})
    known = frame["g"].isin([*order])
    wanted = {f"g[{level}]": (frame["g"] == level).where(known) * 1.0 for level in order[1:]}
    made = recoded(encoded, before, after)
    assert [*made] == [*wanted, "x"]
    for name, values in wanted.items():
        np.testing.assert_array_equal(made[name], values.astype(float))
    np.testing.assert_array_equal(made["x"], frame["x"])

"""Effects and predictions at fixed values and over groups, against rows changed by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanProbit
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning, InputError, UnknownFeatureError

KINDS = ["marginal", "selected", "expected", "selection"]
NUMBERS = ["estimate", "std_error", "p_value", "ci_low", "ci_high"]
MROZ = load_mroz().assign(
    region=lambda d: np.array(["north", "south", "west"])[d["kids618"].clip(upper=2)],
    weight=lambda d: 1.0 + d["age"] % 3,
)
Z = ["educ", "exper", "age", "kids5", "city"]
X, Y = MROZ[Z], MROZ["lwage"]
GROUP = np.where(MROZ["age"] > 45, "old", "young")
HIGH = pd.Series(np.where(MROZ["wage"] >= 4, 1.0, 0.0)).where(MROZ["wage"].notna())


@pytest.fixture(scope="module")
def model():
    return Heckman(["educ", "exper", "city"], method="ml", cov_type="robust").fit(X, Y)


@pytest.fixture(scope="module")
def formulas():
    return Heckman.from_formula(
        "lwage ~ educ * city + I(exper**2) + region", "lfp ~ educ * city + region + exper", MROZ
    )


def assert_same(ours, theirs, rtol=1e-9):
    np.testing.assert_allclose(ours[NUMBERS], theirs[NUMBERS], rtol=rtol, atol=1e-10)


@pytest.mark.parametrize("what", ["effects", "predictions"])
def test_fixed_columns_are_those_of_rows_changed_by_hand(model, what):
    asked = {"kind": KINDS, "what": what, "sample_weight": MROZ["weight"]}
    table = model.margins(X, at={"educ": [8, 12.5], "city": [1]}, **asked).tidy()
    assert table.columns[1:3].tolist() == ["at_educ", "at_city"]
    for educ in (8, 12.5):
        theirs = model.margins(X.assign(educ=educ, city=1), **asked).tidy()
        ours = table[table["at_educ"] == educ].reset_index(drop=True)
        assert (ours["at_city"] == 1).all()
        if what == "effects":
            # A column with a single value of 1 is 0 or 1 as before.
            assert ours["term"].tolist() == theirs["term"].tolist()
            assert ours["change"].tolist() == theirs["change"].tolist()
        assert_same(ours, theirs)


@pytest.mark.parametrize("what", ["effects", "predictions"])
@pytest.mark.parametrize("at", ["average", "means"])
def test_groups_are_subsets_of_the_rows(model, what, at):
    asked = {"kind": KINDS, "what": what, "at": at}
    if what == "effects":
        # In one of the groups kids5 is 0 or 1, and would have a discrete change by itself.
        asked["features"] = ["educ", "age", "city"]
    weight = MROZ["weight"].to_numpy()
    whole = model.margins(X.assign(who=GROUP), over="who", sample_weight=weight, **asked)
    given = model.margins(X, over=GROUP, sample_weight=weight, **asked)
    pd.testing.assert_frame_equal(whole.tidy(), given.tidy())
    assert whole.tidy()["over"].unique().tolist() == ["old", "young"]
    for label, part in whole.tidy().groupby("over"):
        rows = label == GROUP
        theirs = model.margins(X[rows], sample_weight=weight[rows], **asked)
        assert_same(part, theirs.tidy())
        place = np.flatnonzero(whole.tidy()["over"] == label)
        np.testing.assert_allclose(
            whole.covariance[np.ix_(place, place)], theirs.covariance, rtol=1e-9, atol=1e-13
        )


def test_formulas_are_evaluated_at_the_fixed_values(formulas):
    asked = {"kind": "selected", "features": ["exper", "region"]}
    at = {"exper": [20], "region": ["south"], "city": 1}
    table = formulas.margins(MROZ, at=at, over="city", **asked).tidy()
    assert table.columns[1:5].tolist() == ["over", "at_exper", "at_region", "at_city"]
    assert table["over"].unique().tolist() == [0, 1]
    part = table[table["over"] == 0]
    changed = MROZ[MROZ["city"] == 0].assign(exper=20, region="south", city=1)
    theirs = formulas.margins(changed, **asked).tidy()
    assert part["change"].tolist() == theirs["change"].tolist()
    assert_same(part, theirs, rtol=1e-5)
    levels = formulas.margins(MROZ, kind="expected", at={"educ": 12}, what="predictions").tidy()
    values = formulas.predict(MROZ.assign(educ=12), "expected")
    assert levels["estimate"].item() == pytest.approx(values.mean(), rel=1e-10)


def test_predictions_have_the_errors_of_the_delta_method(model):
    table = model.margins(X, kind=KINDS, what="predictions", at={"city": 0}).tidy()
    table = table.set_index("target")
    rows = X.assign(city=0)
    for kind in ("marginal", "selected", "expected"):
        assert table.loc[kind, "estimate"] == pytest.approx(model.predict(rows, kind).mean())
    design = np.column_stack([np.ones(len(X)), rows[["educ", "exper", "city"]]]).mean(axis=0)
    covariance = model.vcov().loc["prediction", "prediction"].to_numpy()
    error = np.sqrt(design @ covariance @ design)
    assert table.loc["marginal", "std_error"] == pytest.approx(error, rel=1e-10)
    density = stats.norm.pdf(model.predict_selection(rows, scale="link"))
    slope = np.mean(density[:, None] * np.column_stack([np.ones(len(X)), rows]), axis=0)
    covariance = model.vcov().loc["selection", "selection"].to_numpy()
    error = np.sqrt(slope @ covariance @ slope)
    assert table.loc["selection", "std_error"] == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize("pairs", ["all", "first"])
def test_differences_between_cells_are_contrasts_of_the_joint_covariance(model, pairs):
    cells = model.margins(X, kind=["selected", "selection"], at={"educ": [8, 12, 16]}, over=GROUP)
    found = cells.differences(pairs, conf_level=0.9)
    table = found.tidy()
    assert len(table) == 2 * 5 * (15 if pairs == "all" else 5)
    words = ["group = old, educ = 8", "group = old, educ = 12"]
    assert table.loc[0, ["before", "after"]].tolist() == words
    whole = cells.tidy().set_index(["target", "term", "over", "at_educ"])
    row = table[(table["term"] == "kids5") & (table["target"] == "selection")].iloc[-1]
    ends = [("selection", "kids5", *end) for end in (("old", 8), ("young", 16))]
    if pairs == "all":
        ends[0] = ("selection", "kids5", "young", 12)
    estimate = whole.loc[ends[1], "estimate"] - whole.loc[ends[0], "estimate"]
    contrast = np.zeros(len(whole))
    contrast[[whole.index.get_loc(end) for end in ends]] = [-1.0, 1.0]
    variance = contrast @ cells.covariance @ contrast
    assert row["estimate"] == pytest.approx(estimate, rel=1e-12)
    assert row["p_value"] == pytest.approx(stats.chi2.sf(estimate**2 / variance, 1), rel=1e-9)
    reach = stats.norm.ppf(0.95) * np.sqrt(variance)
    assert row["ci_high"] == pytest.approx(estimate + reach, rel=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(found.vcov())), table["std_error"], rtol=1e-12)
    assert "not adjusted" in str(found)
    assert found._repr_html_().count("<table") == 2


def test_the_difference_of_two_predictions_is_a_test_of_their_coefficient(model):
    cells = model.margins(X, kind="marginal", what="predictions", at={"educ": [10, 11]})
    (row,) = cells.differences().tidy().to_dict("records")
    wald = model.wald_test("educ = 0")
    assert row["estimate"] == pytest.approx(model.coef_[0], rel=1e-10)
    assert row["p_value"] == pytest.approx(wald.p_value, rel=1e-8)


def test_levels_of_a_category_are_compared_as_with_another_reference(formulas):
    effects = formulas.margins(MROZ, kind=["selected", "selection"], features=["region"])
    table = effects.differences().tidy()
    assert table.loc[0:2, "before"].tolist() == ["north", "north", "south"]
    assert table.loc[0:2, "after"].tolist() == ["south", "west", "west"]
    first = effects.differences("first").tidy()
    own = effects.tidy().query("term == 'region'")
    np.testing.assert_allclose(first[NUMBERS], own[NUMBERS], rtol=1e-12)
    # Codes of which the first is south.
    frame = MROZ.assign(region=MROZ["region"].replace("south", "a south"))
    rows = ["educ", "city", "exper", "region"]
    model, other = (
        Heckman(["educ", "region"]).fit(one[rows], Y).margins(one[rows], "selected")
        for one in (MROZ, frame)
    )
    theirs = other.tidy().query("change == 'a south to west'")
    ours = model.differences().tidy().query("before == 'south'")
    np.testing.assert_allclose(ours[NUMBERS], theirs[NUMBERS], rtol=1e-6)
    model = Heckman(["educ", "region"]).fit(MROZ[rows], Y)
    cells = model.margins(MROZ[rows], "selection", features=["region"], at={"city": [0, 1]})
    between = cells.differences(between="levels")
    assert between.tidy()["at_city"].tolist() == [0, 0, 0, 1, 1, 1]
    assert "city = 1" in str(between)


def test_searches_averages_and_binary_outcomes_have_cells():
    at = {"educ": [8, 16]}
    search = HeckmanBestSubset(never=["kids5"]).fit(X, Y)
    cells = search.margins(X, kind="selected", at=at, over=GROUP).tidy()
    assert len(cells.groupby(["over", "at_educ"])) == 4
    average = HeckmanAverage(never=["kids5"]).fit(X, Y)
    found = average.margins(X, kind=KINDS, at=at, what="predictions")
    for educ, part in found.tidy().groupby("at_educ"):
        rows = X.assign(educ=educ)
        expected = [average.predict(rows, kind).mean() for kind in KINDS[:3]]
        expected.append(average.predict_selection(rows).mean())
        np.testing.assert_allclose(part["estimate"], expected, rtol=1e-9)
    differences = found.differences().tidy().set_index("target")
    assert differences["p_value"].notna().tolist() == [False, False, False, True]
    assert (differences["std_error"] > 0).all()
    probit = HeckmanProbit(["educ", "exper"]).fit(X, HIGH)
    both = probit.margins(X, kind="expected", at=at, over=GROUP, what="predictions")
    for (label, educ), part in both.tidy().groupby(["over", "at_educ"]):
        chance = probit.predict_joint(X.assign(educ=educ)[label == GROUP])
        assert part["estimate"].item() == pytest.approx(chance.mean(), rel=1e-10)
    assert "Predictions expected: of P(y = 1, s = 1 | x)" in str(both)


def test_categories_of_x_have_contrasts_and_levels():
    names = ["educ", "age", "region"]
    rows = pl.from_pandas(MROZ[names])
    model = Heckman(["educ", "region"]).fit(rows, Y)
    formulas = Heckman.from_formula("lwage ~ educ + region", "educ + age + region", MROZ)
    asked = {"kind": ["selected", "expected"], "features": ["region"]}
    effects, theirs = model.margins(rows, **asked), formulas.margins(MROZ, **asked)
    assert effects.tidy()["change"].tolist() == ["north to south", "north to west"] * 2
    assert (effects.tidy()["term"] == "region").all()
    assert_same(effects.tidy(), theirs.tidy(), rtol=1e-5)
    assert_same(effects.differences().tidy(), theirs.differences().tidy(), rtol=1e-5)
    cells = {"kind": "selection", "what": "predictions", "at": {"region": ["west", "north"]}}
    found = model.margins(rows, over="region", **cells).tidy()
    assert found["over"].tolist() == ["north"] * 2 + ["south"] * 2 + ["west"] * 2
    for (group, level), part in found.groupby(["over", "at_region"]):
        changed = MROZ[MROZ["region"] == group][names].assign(region=level)
        assert part["estimate"].item() == pytest.approx(model.predict_selection(changed).mean())
    assert len(model.margins(rows, kind="selection", features=["region[west]"]).tidy()) == 1
    for level in ("wst", 3):
        with pytest.raises(InputError, match=r"'north'.*'south'.*'west'"):
            model.margins(rows, at={"region": level})
    with pytest.raises(InputError, match="'educ' twice"):
        model.margins(rows, at={"educ": 8, 0: 9})


def test_a_level_without_a_dummy_is_said_to_count_as_the_reference():
    # Its rows are fitted: another column says the same as its dummy.
    west = (MROZ["region"] == "west").astype(float)
    rows = MROZ[["educ", "age"]].assign(west=west, region=MROZ["region"])
    with pytest.warns(HeckmanfaWarning):
        model = Heckman(["educ", "west", "region"], on_collinear="drop").fit(rows, Y)
    assert model.dropped_features_ == ["region[west]"]
    said = str(model.margins(rows, kind="marginal", features=["region"]))
    assert "The fit dropped 'west' of 'region'" in " ".join(said.split())
    first = sorted(MROZ["region"].unique())[0]
    assert f"for the reference, '{first}', and effects compare with both" in " ".join(said.split())


def test_groups_have_the_order_of_their_type(model):
    asked = {"kind": "selection", "what": "predictions"}
    declared = pd.Categorical(GROUP, categories=["young", "none", "old"])
    frames = [
        X.assign(who=declared),
        pl.from_pandas(X).with_columns(pl.Series("who", GROUP, dtype=pl.Enum(["young", "old"]))),
    ]
    for frame in frames:
        table = model.margins(frame, over="who", **asked).tidy()
        assert table["over"].tolist() == ["young", "old"]
        expected = model.predict_selection(X)[GROUP == "young"].mean()
        assert table["estimate"][0] == pytest.approx(expected)
    numbers = model.margins(X, over=MROZ["kids5"], **asked).tidy()
    assert numbers["over"].tolist() == [0, 1, 2, 3]
    feature = model.margins(X, over="city", kind="selection").tidy()
    assert feature["over"].unique().tolist() == [0, 1]


def test_cells_can_be_read(model):
    both = model.margins(X, kind=KINDS, at={"educ": [8, 12.5]}, over=GROUP, features=["city"])
    text = str(both)
    assert "old educ = 12.5 city 0 to 1" in " ".join(text.split())
    assert "old 291, young 462" in text
    assert both.vcov().index.names == ["target", "over", "at_educ", "term", "change"]
    odd = X.rename(columns={"educ": "my_<b>educ"})
    other = Heckman(["my_<b>educ", "exper"]).fit(odd, Y)
    cells = other.margins(odd, at={"my_<b>educ": [8, 9]}, kind="selection", what="predictions")
    assert "my_<b>educ = 8" in str(cells)
    assert "my_&lt;b&gt;educ = 8" in cells._repr_html_()
    summary = other.summary(include=cells)
    assert "educ = 8 &" in summary.to_latex()


def test_misuse_says_what_to_do(model, formulas):
    for at, error, words in (
        ({}, InputError, "at is empty"),
        (3, InputError, "'average', 'means'"),
        ({"edcu": 8}, UnknownFeatureError, "'edcu'.*'educ'"),
        ({"educ": []}, InputError, "'educ' has no value"),
        ({"educ": [8, 8]}, InputError, "'educ' has the value 8 twice"),
        ({"educ": "high"}, InputError, "'educ' holds finite numbers; got 'high'"),
        ({"educ": np.nan}, InputError, "'educ' holds finite numbers; got nan"),
        ({"educ": None}, InputError, "'educ' holds finite numbers; got None"),
        ({"educ": 10**400}, InputError, "'educ' holds finite numbers"),
        ({"educ": 8, 0: 12}, InputError, "at names 'educ' twice"),
        ({"educ": range(9), "age": range(90), "exper": range(9)}, InputError, "at most 5,000"),
    ):
        with pytest.raises(error, match=words):
            model.margins(X, at=at)
    for at, words in (
        ({"region": "sooth"}, r"'sooth'.*'north', 'south', 'west'"),
        ({"hours": 8}, "at: the formulas use no variable 'hours'"),
    ):
        with pytest.raises(InputError, match=words):
            formulas.margins(MROZ, at=at)
    for over, words in (
        ("who", "over .*'who'"),
        (GROUP[:5], "one entry for each of the 753 rows"),
        ([None, *GROUP[1:]], "over is missing in 1 row"),
        (np.arange(753.0) // 0.5, "over has 753 groups|at most 5,000"),
        (2, "over .*got 2"),
    ):
        with pytest.raises(InputError, match=words):
            model.margins(X, over=over)
    with pytest.raises(InputError, match=r"over has 5 .* 753 rows"):
        formulas.margins(MROZ, over=GROUP[:5])
    for asked, words in (
        ({"over": GROUP, "sample_weight": (GROUP == "young").astype(float)}, "'old'"),
        ({"what": "level"}, "got 'level'"),
        ({"what": "predictions", "features": ["educ"]}, "drop features"),
    ):
        with pytest.raises(InputError, match=words):
            model.margins(X, **asked)
    plain = model.margins(X)
    for asked, words in (
        ({}, "differences"),
        ({"between": "cells"}, "differences"),
        ({"pairs": "frist"}, "'all'.*'first'.*'frist'"),
    ):
        with pytest.raises(InputError, match=words):
            plain.differences(**asked)

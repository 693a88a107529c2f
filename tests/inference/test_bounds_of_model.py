"""`model.bounds`: bounds of the rows of a fit, beside the model's own average of them."""

import re

import numpy as np
import pandas as pd
import pytest

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanOrdered,
    HeckmanProbit,
    TreatmentModel,
    bounds,
)
from heckmanfa.analysis import analyse
from heckmanfa.errors import InputError, NotIdentifiedError

PREDICT = ["educ", "exper"]
NAMES = ["educ", "exper", "age", "kids5", "city"]
ENDS = ["low", "high", "se_low", "se_high", "ci_low", "ci_high", "observed"]
MODEL = ["model", "model_low", "model_high"]


@pytest.fixture(scope="module", name="X")
def features(mroz):
    return mroz[NAMES]


@pytest.fixture(scope="module")
def y(mroz):
    return mroz["lwage"]


@pytest.fixture(scope="module")
def model(X, y):
    return Heckman(PREDICT).fit(X, y)


def test_bounds_are_those_of_the_same_rows_without_the_model(model, X, y):
    table = model.bounds(X, y).tidy()
    alone = bounds.mean(y).tidy()
    np.testing.assert_allclose(table[ENDS], alone[ENDS], rtol=1e-12)
    assert table["n_rows"].tolist() == [753]


def test_the_model_says_its_average_prediction_with_its_interval(model, X, y):
    """The same numbers as `margins` of predictions, by group and their difference."""
    table = model.bounds(X, y, "city").tidy()
    predicted = model.margins(X, "marginal", what="predictions", over="city")
    expected = predicted.tidy()[["estimate", "ci_low", "ci_high"]].to_numpy()
    means = table[table["quantity"] == "mean"][MODEL].to_numpy(dtype=float)
    np.testing.assert_allclose(means, expected, rtol=1e-9)
    apart = predicted.differences().tidy()[["estimate", "ci_low", "ci_high"]].to_numpy()
    np.testing.assert_allclose(table.loc[[0], MODEL].to_numpy(dtype=float), apart, rtol=1e-9)


def test_two_groups_have_worst_case_and_trimming_bounds_of_their_difference(model, X, y):
    table = model.bounds(X, y, "city", y_range=(-3, 4)).tidy()
    worst = bounds.difference(y, X["city"], y_range=(-3, 4)).tidy()
    lee = bounds.lee(y, X["city"]).tidy()
    np.testing.assert_allclose(table.loc[0, ENDS].tolist(), worst.loc[0, ENDS].tolist())
    np.testing.assert_allclose(table.loc[1, ENDS].tolist(), lee.loc[0, ENDS].tolist())
    three = model.bounds(X, y, np.minimum(X["kids5"], 2)).tidy()
    assert three["quantity"].tolist() == ["difference"] * 2 + ["mean"] * 3


def test_formulas_clusters_and_weights_are_those_of_the_fit(mroz):
    frame = mroz.assign(w=1.0 + mroz["kids618"], block=np.arange(len(mroz)) % 45)
    frame.loc[5, "educ"] = np.nan
    model = Heckman.from_formula(
        "lwage ~ educ + exper",
        "~ educ + exper + age + kids5",
        frame,
        cov_type="cluster",
        groups="block",
        weight_kind="sampling",
        sample_weight="w",
    )
    table = model.bounds(frame, group="city").tidy()
    kept = frame.drop(index=5)
    weights = {"sample_weight": kept["w"], "weight_kind": "sampling"}
    alone = bounds.mean(kept["lwage"], group=kept["city"], groups=kept["block"], **weights)
    np.testing.assert_allclose(
        table[table["quantity"] == "mean"][ENDS], alone.tidy()[ENDS], rtol=1e-10
    )


def test_bounds_of_a_logarithm_are_on_the_scale_that_is_fitted(mroz, X):
    model = Heckman(PREDICT, outcome_transform="log").fit(X, mroz["wage"])
    result = model.bounds(X, mroz["wage"])
    expected = bounds.mean(np.log(mroz["wage"])).tidy()
    np.testing.assert_allclose(result.tidy()[ENDS], expected[ENDS], rtol=1e-12)
    assert "log(wage)" in result.title


def test_classes_have_bounds_of_their_probabilities(mroz, X):
    high = (mroz["lwage"] > 1).where(mroz["lwage"].notna())
    model = HeckmanProbit(PREDICT).fit(X, high)
    table = model.bounds(X, high).tidy()
    share = bounds.share(mroz["lwage"], above=1).tidy()
    np.testing.assert_allclose(table[ENDS], share[ENDS], rtol=1e-12)
    assert table["model"][0] == pytest.approx(model.predict_proba(X)[:, 1].mean(), rel=1e-9)
    with pytest.raises(InputError, match="y_range"):
        model.bounds(X, high, y_range=(0, 1))


def test_ordered_classes_have_bounds_each(mroz, X):
    grade = pd.cut(mroz["lwage"], [-10, 0.8, 1.4, 10], labels=["low", "mid", "top"])
    model = HeckmanOrdered(PREDICT).fit(X, grade)
    table = model.bounds(X, grade).tidy()
    for place, level in enumerate(["low", "mid", "top"]):
        share = bounds.share(grade.astype(object), of=level).tidy()
        np.testing.assert_allclose(table.loc[place, ENDS].tolist(), share.loc[0, ENDS].tolist())
    np.testing.assert_allclose(table["model"], model.predict_proba(X).mean(axis=0), rtol=1e-9)


def test_an_average_says_its_average_prediction(X, y):
    model = HeckmanAverage().fit(X, y)
    table = model.bounds(X, y).tidy()
    expected = model.margins(X, "marginal", what="predictions").tidy()
    np.testing.assert_allclose(
        table[MODEL].to_numpy(dtype=float), expected[["estimate", "ci_low", "ci_high"]], rtol=1e-9
    )


def test_what_a_model_does_not_identify_is_left_out_and_said(mroz, X, y):
    series = Heckman(PREDICT, method="series").fit(X, y).bounds(X, y)
    assert "model" not in series._table()
    assert "does not identify" in str(series)
    only_seen = X.assign(exper=X["exper"].where(y.notna()))
    model = Heckman(PREDICT, ["educ", "age", "kids5"]).fit(only_seen, y)
    result = model.bounds(only_seen, y)
    np.testing.assert_allclose(result.tidy()[ENDS], bounds.mean(y).tidy()[ENDS], rtol=1e-12)
    assert "left out" in str(result)


def test_a_treatment_has_bounds_as_wide_as_the_range_beside_its_effect():
    rng = np.random.default_rng(0)
    X, u, v = rng.normal(size=(800, 2)), *rng.normal(size=(2, 800))
    d = X.sum(axis=1) + u > 0
    y = 1 + X[:, 0] + 2 * d + 0.8 * u + 0.6 * v
    model = TreatmentModel([0], [0, 1]).fit(X, y, treated=d)
    result = model.bounds(X, y, treated=d, y_range=(-12, 12))
    table = result.tidy().loc[0]
    assert table["high"] - table["low"] == pytest.approx(24, rel=1e-12)
    effects = model.effects().set_index("effect")
    assert table["model"] == pytest.approx(effects.loc["ate", "estimate"])
    alone = bounds.effect(y, d, y_range=(-12, 12)).tidy().loc[0]
    assert table[ENDS].tolist() == pytest.approx(alone[ENDS].tolist())
    with pytest.raises(InputError, match="one group"):
        model.bounds(X, y, group=d, treated=d)


def test_other_rows_one_group_and_nothing_missing_are_refused(model, X, y):
    with pytest.raises(InputError, match="rows given are not those of the fit"):
        model.bounds(X, y + 1)
    with pytest.raises(InputError, match="one group"):
        model.bounds(X, y, np.ones(len(X)))
    with pytest.raises(InputError, match="no column"):
        model.bounds(X, y, "town")
    full = y.fillna(0.0)
    with pytest.warns(match="missing"):
        plain = Heckman(PREDICT).fit(X, full)
    with pytest.raises(NotIdentifiedError):
        plain.bounds(X, full)


# The report. --------------------------------------------------------------------------------------


def numbers_in(words):
    return [
        float(it.replace("\N{MINUS SIGN}", "-"))
        for it in re.findall(r"[\N{MINUS SIGN}\d.]+\d", words)
    ]


def test_an_answer_says_what_is_known_without_a_model(mroz):
    answer = analyse(mroz[["lwage", *NAMES]], outcome="lwage", search="none")
    (check,) = [check for check in answer.checks if check.key == "without_model"]
    assert check.level == "note"
    low, high, *_ = numbers_in(check.words)
    expected = bounds.mean(mroz["lwage"]).tidy().loc[0]
    assert [low, high] == pytest.approx([expected["low"], expected["high"]], abs=0.006)
    assert "lwage" in check.words
    assert "43%" in check.do


def test_an_answer_says_the_difference_of_two_groups(mroz):
    """Of the first feature that is 0 or 1; a category of three levels has no two groups."""
    town = mroz["city"].map({0: "country", 1: "town"})
    grade = pd.cut(mroz["lwage"], [-10, 0.8, 1.4, 10], labels=["low", "mid", "top"])
    table = mroz[["lwage", "educ", "age"]].assign(kids=np.minimum(mroz["kids5"], 2).astype(str))
    common = {"search": "none", "select_only": ["age"]}
    worst = bounds.difference(mroz["lwage"], mroz["city"]).tidy().loc[0]
    for extra, called in (
        ({"city": mroz["city"]}, "city = 1 rather than 0"),
        ({"town": town}, "town"),
    ):
        answer = analyse(table.assign(**extra), outcome="lwage", **common)
        (check,) = [check for check in answer.checks if check.key == "without_model"]
        row = answer.bounds.tidy().iloc[-1]
        np.testing.assert_allclose(
            row[["low", "high", "observed"]].tolist(), worst[["low", "high", "observed"]].tolist()
        )
        assert row["quantity"] == "difference"
        assert called in row["group"]
        assert called in check.words
        X = answer.loaded.X
        side = X[[name for name in X if name.startswith(("city", "town"))]].to_numpy()[:, 0] == 1
        said = answer.model.predict(X)
        assert row["model"] == pytest.approx(said[side].mean() - said[~side].mean(), rel=1e-9)
        low, high, model = numbers_in(check.words.partition("The difference")[2])[-3:]
        expected = [worst["low"], worst["high"], row["model"]]
        assert [low, high, model] == pytest.approx(expected, rel=0.01)
    answer = analyse(table, outcome="lwage", **common)
    assert answer.bounds.tidy()["quantity"].tolist() == ["mean"]
    ordered = table.drop(columns="lwage").assign(grade=grade, city=mroz["city"])
    answer = analyse(ordered, outcome="grade", outcome_kind="ordered", **common)
    top = bounds.difference(grade.astype(object), mroz["city"], of="top").tidy().loc[0]
    row = answer.bounds.tidy().iloc[-1]
    assert row[["low", "high"]].tolist() == pytest.approx(top[["low", "high"]].tolist())


def test_a_model_beyond_its_bounds_is_a_caution():
    """Rows without an outcome have features far beyond the others, where the line runs on."""
    rng = np.random.default_rng(0)
    n = 600
    x, z = rng.uniform(0, 1, n), rng.normal(size=n)
    seen = z + rng.normal(size=n) > 0.5
    x = np.where(seen, x, x + 20)
    y = np.where(seen, 5 * x + 0.1 * rng.normal(size=n), np.nan)
    X = pd.DataFrame({"x": x, "z": z})
    result = Heckman(["x"], ["z"]).fit(X, y).bounds(X, y)
    (fact,) = result.findings()
    assert fact.level == "caution"
    assert fact.claim
    assert "average" in fact.claim


def test_a_report_of_a_model_has_the_check_where_its_rows_are_given(model, X, y, tmp_path):
    model.report(tmp_path / "with.html", X, y)
    model.report(tmp_path / "without.html")
    words = "check-without_model"
    assert words in (tmp_path / "with.html").read_text()
    both = Heckman([*PREDICT, "city"]).fit(X, y)
    both.report(tmp_path / "city.html", X, y)
    assert "city = 1 rather than 0" in (tmp_path / "city.html").read_text()
    assert words not in (tmp_path / "without.html").read_text()

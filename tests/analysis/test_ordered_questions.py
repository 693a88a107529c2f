"""A question about ordered classes, from a table as a user has it to answers, files and pages."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.stats import norm

from heckmanfa import HeckmanOrdered, load
from heckmanfa.analysis import analyse, check_table, compare_methods
from heckmanfa.cli.answer_json import as_json
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import InputError, InputTypeError, TooFewRowsError, UnknownFeatureError
from heckmanfa.model_selection import SelectionKFold
from heckmanfa.report import render

CLASSES = ["poor", "fair", "good"]
PREDICT = ["educ", "exper", "city"]
FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc", "city"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    mroz = load_mroz()
    places = np.digitize(mroz["wage"], [2.5, 4.5])
    rating = np.where(mroz["wage"].isna(), None, np.array(CLASSES, dtype=object)[places])
    return mroz[FEATURES].assign(rating=rating)


def ask(table: Any, **options: Any) -> Any:
    given = {"outcome": "rating", "outcome_kind": "ordered", "predict_with": PREDICT}
    return analyse(table, **(given | {"classes": CLASSES} | options))


@pytest.fixture(scope="module")
def analysis(table: pd.DataFrame) -> Any:
    return ask(table)


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> HeckmanOrdered:
    fitted: HeckmanOrdered = HeckmanOrdered(PREDICT, classes=CLASSES).fit(
        table[FEATURES], table["rating"]
    )
    return fitted


def brute_slopes(model: HeckmanOrdered, X: pd.DataFrame, params: np.ndarray) -> np.ndarray:
    """Average slopes of P(class or higher) by central differences of Phi, a row for each cut."""
    j = len(PREDICT)
    b, cuts = params[1 : 1 + j], np.concatenate([[0.0], np.cumsum(params[1 + j :])])
    values = X[PREDICT].to_numpy(float)
    slopes = np.empty((len(cuts), j))
    for place in range(j):
        for cut, at in enumerate(cuts):
            moved = np.zeros(j)
            moved[place] = 1e-5
            up, down = (norm.cdf(params[0] + (values + sign * moved) @ b - at) for sign in (1, -1))
            slopes[cut, place] = np.mean(up - down) / 2e-5
    return slopes


def test_effects_are_average_slopes_over_rows_with_an_outcome(analysis, model, table):
    """Written out by differences of Phi, with a delta method by differences of parameters."""
    seen = table[table["rating"].notna()]
    fit = model.fit_
    params = np.array([fit.intercept, *model.coef_[fit.equation], fit.errors["step2"].value])
    order = [FEATURES[column] for column in fit.equation]
    slopes = brute_slopes(
        model, seen.rename(columns=dict(zip(order, PREDICT, strict=True))), params
    )
    steps = {name: slopes[:, place] for place, name in enumerate(order)}
    rows = [*range(1 + len(PREDICT)), fit.terms.index(("errors", "step2"))]
    covariance = fit.covariance[np.ix_(rows, rows)]
    jacobian = np.empty((2, len(params)))
    for place in range(len(params)):
        moved = np.zeros(len(params))
        moved[place] = 1e-5
        frame = seen.rename(columns=dict(zip(order, PREDICT, strict=True)))
        up, down = (brute_slopes(model, frame, params + sign * moved)[:, 0] for sign in (1, -1))
        jacobian[:, place] = (up - down) / 2e-5
    errors = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T))
    roles = analysis.roles.set_index("feature")
    for name in PREDICT:
        assert roles.loc[name, "effect"] == pytest.approx(steps[name][1], rel=1e-6)
    low, high = roles.loc[order[0], ["ci_low", "ci_high"]]
    assert (high - low) / 2 / norm.ppf(0.975) == pytest.approx(errors[1], rel=1e-4)
    lower = ask(table, positive="fair").roles.set_index("feature")
    assert lower.loc[order[0], "effect"] == pytest.approx(steps[order[0]][0], rel=1e-6)
    low, high = lower.loc[order[0], ["ci_low", "ci_high"]]
    assert (high - low) / 2 / norm.ppf(0.975) == pytest.approx(errors[0], rel=1e-4)


def test_effects_by_class_are_those_of_margins_over_the_same_rows(analysis, model, table):
    seen = table[table["rating"].notna()]
    effects = model.margins(seen[FEATURES], kind="marginal", features=["educ", "exper"]).tidy()
    drawn = {(one.feature, one.named): one for one in analysis.pictures().class_effects.effects}
    for row in effects.to_dict("records"):
        one = drawn[row["term"], f"'{row['class']}'"]
        assert one.value == pytest.approx(100 * row["estimate"], rel=1e-9)
        assert one.low == pytest.approx(100 * row["ci_low"], rel=1e-6)
        assert one.high == pytest.approx(100 * row["ci_high"], rel=1e-6)
    total = sum(one.value for one in drawn.values() if one.feature == "educ")
    assert total == pytest.approx(0.0, abs=1e-9)


def test_the_naive_effect_is_that_of_an_ordered_probit_alone(analysis, table):
    """rho held at zero is that model, fitted by another path."""
    seen = table["rating"].notna()
    apart = HeckmanOrdered(PREDICT, classes=CLASSES, rho=0.0).fit(table[FEATURES], table["rating"])
    own = apart.margins(table.loc[seen, FEATURES], kind="marginal", features=["educ"]).tidy()
    row = own[own["class"] == "good"].iloc[0]
    naive = analysis.evidence.of_column(FEATURES.index("educ")).least_squares
    assert naive.estimate == pytest.approx(row["estimate"], rel=1e-6)
    assert naive.low == pytest.approx(row["ci_low"], rel=1e-4)


def test_shares_of_classes_are_averages_of_probabilities(analysis, model, table):
    seen = table["rating"].notna()
    chances = model.predict_proba(table.loc[seen, FEATURES], kind="selected")
    shares = analysis.pictures().class_shares.shares
    for place, label in enumerate(CLASSES):
        own = [one for one in shares if one.named == f"'{label}'"]
        rows = np.array([one.n_rows for one in own])
        assert rows.sum() == seen.sum()
        predicted = rows @ [one.predicted for one in own] / rows.sum()
        observed = rows @ [one.observed for one in own] / rows.sum()
        assert predicted == pytest.approx(chances[:, place].mean(), rel=1e-9)
        assert observed == pytest.approx((table.loc[seen, "rating"] == label).mean())


def test_people_have_the_probability_of_each_class(table, model):
    profile = {"educ": 16, "exper": 5, "age": 40, "kids5": 1, "nwifeinc": 20, "city": 0}
    people = ask(table, profile=[profile]).people.set_index("quantity")["estimate"]
    X = pd.DataFrame([profile])[FEATURES].astype(float)
    for place, label in enumerate(CLASSES):
        own = model.predict_proba(X)[0, place]
        assert people[f"class '{label}'"] == pytest.approx(own, rel=1e-9)
    given = model.predict_proba(X, kind="selected")[0, 2]
    assert people["selected"] == pytest.approx(given, rel=1e-6)


def test_json_and_page_have_the_numbers_of_the_estimator(analysis, model):
    results = json.loads(json.dumps(as_json(analysis)))
    assert results["model"]["outcome_kind"] == "ordered"
    assert results["model"]["classes"] == CLASSES
    assert results["model"]["positive"] == "good"
    assert results["rho"] == pytest.approx(model.rho_, rel=1e-9)
    cuts = [row["estimate"] for row in results["cut_points"]]
    assert cuts == pytest.approx(model.cut_points_.tolist(), rel=1e-9)
    estimates = pd.DataFrame(results["estimates"]).set_index(["equation", "term"])["estimate"]
    tidy = model.tidy().set_index(["equation", "term"])["estimate"]
    np.testing.assert_allclose(estimates[tidy.index], tidy, rtol=1e-9)
    page = render(analysis)
    assert f"{model.cut_points_[0]:.3f}" in page
    assert "heckoprobit outcome educ exper city" in page


def test_the_selection_verdict_is_that_of_the_test_of_rho(analysis, model):
    judged = analysis.evidence.judgement
    measured = model.diagnostics()
    assert judged.test.p_value == pytest.approx(measured.rho_lr.p_value)
    assert judged.kind == "unknown"
    # Where rho is 0.8, it says so.
    data = make_selection(
        1500, 4, 2, rho=0.8, outcome_kind="ordered", prediction_features=[0, 1], random_state=1
    )
    frame = pd.DataFrame(data.X, columns=list("abcd")).assign(rating=data.y)
    found = ask(frame, classes=(), predict_with=["a", "b"])
    assert found.target.classes == (1, 2, 3, 4)
    assert found.evidence.judgement.kind == "yes"
    assert found.evidence.rho.excludes_zero


def test_numbers_and_typed_categories_know_their_order(table, analysis, tmp_path):
    codes = table["rating"].map({label: place for place, label in enumerate(CLASSES)})
    numbers = ask(table.assign(rating=codes), classes=())
    assert numbers.target.classes == (0, 1, 2)
    category = pd.Categorical(table["rating"], CLASSES, ordered=True)
    typed = ask(table.assign(rating=category), classes=())
    assert typed.target.classes == tuple(CLASSES)
    pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    table.assign(rating=category).to_parquet(tmp_path / "rows.parquet")
    streamed = ask(str(tmp_path / "rows.parquet"), classes=(), stream_above=0.0)
    assert streamed.streamed
    for other in (numbers, typed, streamed):
        np.testing.assert_allclose(other.model.coef_, analysis.model.coef_, rtol=1e-6, atol=1e-9)
        effect = other.roles.set_index("feature").loc["educ", "effect"]
        assert effect == pytest.approx(analysis.roles.set_index("feature").loc["educ", "effect"])


def test_a_saved_model_predicts_every_class_in_a_file(table, analysis, model, tmp_path):
    heckmanfa = pytest.importorskip("heckmanfa")
    pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    heckmanfa.save(analysis.model, tmp_path / "model.heckmanfa")
    read = load(tmp_path / "model.heckmanfa")
    table[FEATURES].to_parquet(tmp_path / "rows.parquet")
    for kind in ("marginal", "selected", "unselected"):
        out = tmp_path / f"{kind}.parquet"
        heckmanfa.predict_parquet(read, tmp_path / "rows.parquet", out, kind=kind)
        frame = pd.read_parquet(out)
        names = [f"probability_{kind}_{label}" for label in CLASSES]
        assert list(frame) == [*names, f"predicted_{kind}"]
        own = model.predict_proba(table[FEATURES], kind=kind)
        np.testing.assert_allclose(frame[names], own, rtol=1e-9)
        assert (frame[f"predicted_{kind}"] == np.array(CLASSES)[own.argmax(axis=1)]).all()


REFUSED = {
    "texts without an order": ({"classes": ()}, InputTypeError, "classes="),
    "a typo in a class": ({"classes": ["poor", "fair", "goood"]}, InputError, "mean 'good'"),
    "a class too many": ({"classes": [*CLASSES, "great"]}, InputError, "'great'"),
    "a class too few": ({"classes": ["poor", "good"]}, InputError, "'fair'"),
    "a class twice": ({"classes": ["poor", "fair", "poor"]}, InputError, "twice"),
    "one class": ({"classes": ["poor"]}, InputError, "one class"),
    "the lowest class reached": ({"positive": "poor"}, InputError, "'fair'"),
    "no such class reached": ({"positive": "god"}, InputError, "mean 'good'"),
    "a typo in the outcome": ({"outcome": "ratin"}, UnknownFeatureError, "mean 'rating'"),
    "a search": ({"search": "lasso"}, InputError, "search is none or average or best-subset"),
    "two steps": ({"method": "two-step"}, InputError, "method is ml"),
    "a series": ({"method": "series"}, InputError, "two models"),
    "an amount": ({"outcome": "nwifeinc", "classes": ()}, InputError, "never missing|different"),
    "classes of an amount": ({"outcome_kind": "linear"}, InputError, "outcome_kind='ordered'"),
    "a window": ({"rho_range": (-0.5, 0.5)}, InputError, "rho_range"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_with_what_to_do(table, name):
    options, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        ask(table, **options)


def test_a_class_with_one_row_is_refused_by_its_name(table):
    rating = table["rating"].to_numpy(copy=True)
    rating[np.flatnonzero(table["rating"].notna())[0]] = "great"
    with pytest.raises(TooFewRowsError, match="'great' has 1 selected row"):
        ask(table.assign(rating=rating), classes=[*CLASSES, "great"])


def test_check_says_that_an_order_is_missing(table):
    found = check_table(table, outcome="rating", outcome_kind="ordered")
    words = " ".join(found.findings["found"])
    assert "nothing says which is lower" in words
    assert "classes" in words
    fine = check_table(table, outcome="rating", outcome_kind="ordered", classes=CLASSES)
    assert "problem" not in fine.findings["level"].tolist()


def ordered_probit(X: np.ndarray, codes: np.ndarray) -> Any:
    """Probabilities of three classes, by a maximiser that knows nothing of selection."""
    design = np.column_stack([np.ones(len(X)), X])

    def chances(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        index = np.column_stack([np.ones(len(rows)), rows]) @ theta[:-1]
        above = norm.cdf(np.column_stack([index, index - np.exp(theta[-1])]))
        return np.column_stack([1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]])

    def minus(theta: np.ndarray) -> float:
        own = chances(theta, X)[np.arange(len(X)), codes]
        return -float(np.sum(np.log(np.maximum(own, 1e-300))))

    start = np.zeros(design.shape[1] + 1)
    found = optimize.minimize(minus, start, method="BFGS", options={"gtol": 1e-6})
    return lambda rows: chances(found.x, rows)


def test_methods_are_compared_by_ranked_probabilities(table):
    """The naive row's score is written out from ordered probits of the folds."""
    may = ["educ", "exper", "nwifeinc", "city"]
    outcome = pd.Categorical(table["rating"], CLASSES, ordered=True)
    compared = compare_methods(
        table[FEATURES],
        outcome,
        outcome_kind="ordered",
        never=["kids5", "age"],
        n_folds=2,
        n_repeats=1,
    )
    searched = ["best subset", "average by AIC", "average by BIC"]
    assert compared.table["method"].tolist() == ["naive ordered probit", "all features", *searched]
    assert compared.table["rho"].isna().tolist() == [True, *[False] * 4]
    assert compared.features["all features"] == may
    codes = outcome.codes.astype(float)
    codes[codes < 0] = np.nan
    X, seen, scores = table[may].to_numpy(float), ~np.isnan(codes), []
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    folds = SelectionKFold(2, shuffle=True, random_state=0).split(X, codes, selected=seen)
    for train, test in folds:
        own, held = train[seen[train]], test[seen[test]]
        chances = ordered_probit(X[own], codes[own].astype(int))(X[held])
        below = np.cumsum(chances, axis=1)[:, :2]
        happened = codes[held, None] <= np.arange(2)
        scores += ((below - happened) ** 2).sum(axis=1).tolist()
    assert compared.table["rps"][0] == pytest.approx(np.mean(scores), rel=1e-4)
    assert compared.table["rps"][1] != pytest.approx(np.mean(scores), rel=1e-6)
    with pytest.raises(InputError, match="search_in is for searches in both equations"):
        compare_methods(
            table[FEATURES], outcome, outcome_kind="ordered", search_in="both", n_folds=2
        )


def test_the_ranked_probability_score_is_that_of_its_definition():
    from heckmanfa.analysis.method_scores import ORDERED_CLASSES, HeldFold

    predicted = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]])
    fold = HeldFold(0, np.array([1.0, 0.0]), predicted, np.array([1.0, 3.0]))
    first = (0.2 - 0) ** 2 + (0.5 - 1) ** 2
    second = (0.7 - 1) ** 2 + (0.9 - 1) ** 2
    expected = (first + 3 * second) / 4
    assert ORDERED_CLASSES.errors(fold) == pytest.approx(expected)
    rps, accuracy, log_loss = ORDERED_CLASSES.scores([fold])
    assert rps == pytest.approx(expected)
    assert accuracy == pytest.approx(0.75)
    assert log_loss == pytest.approx(-(np.log(0.3) + 3 * np.log(0.7)) / 4)


def test_ratings_are_cuts_of_the_linear_outcome():
    linear = make_selection(300, 4, 2, random_state=3)
    rated = make_selection(300, 4, 2, outcome_kind="ordered", random_state=3)
    expected = 1 + (linear.y[:, None] > np.array([0.0, 1.0, 2.0])).sum(axis=1)
    np.testing.assert_array_equal(rated.y[rated.selected], expected[rated.selected])
    assert np.isnan(rated.y[~rated.selected]).all()

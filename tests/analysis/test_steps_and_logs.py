"""Steps and percentages of an answer: options, and one number in every output."""

from __future__ import annotations

import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanAverage
from heckmanfa.analysis import Question, analyse
from heckmanfa.cli.answer_json import as_json
from heckmanfa.cli.answer_screen import role_lines
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning, InputError, InputTypeError, UnknownFeatureError
from heckmanfa.results.evidence_pictures import forest_of
from heckmanfa.results.logs import looks_logged, unlogged
from heckmanfa.text.labels import labelled
from heckmanfa.text.wording import percentages

COLUMNS = ["educ", "exper", "kids5", "nwifeinc", "city"]


@pytest.fixture(scope="module")
def table():
    mroz = load_mroz()
    frame = mroz[["lwage", *COLUMNS]].copy()
    frame["income"] = 1000.0 * frame.pop("nwifeinc")
    frame["wage"] = np.exp(frame["lwage"])
    frame["region"] = np.where(frame["educ"] > 12, "north", "south")
    return frame


def asked(table, outcome="lwage", **options):
    frame = table.drop(columns=[{"lwage": "wage", "wage": "lwage"}[outcome]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return analyse(frame, outcome=outcome, select_only=("kids5",), **options)


@pytest.fixture(scope="module")
def plain(table):
    return asked(table)


@pytest.fixture(scope="module")
def logged(table):
    return asked(table, "wage", outcome_transform="log", step={"educ": 4})


def effects_of(analysis):
    return {feature.name: feature for feature in analysis.evidence.features}


def test_an_income_has_a_step_of_thousands_and_every_output_says_it(plain, table):
    income = effects_of(plain)["income"]
    assert income.step == 10_000.0
    (role,) = [role for role in as_json(plain)["roles"] if role["feature"] == "income"]
    assert (role["step"], role["change"]) == (10_000.0, "10,000 more")
    assert role["effect"] == income.effect.estimate
    frame = plain.roles.set_index("feature")
    assert frame.loc["income", ["step", "effect"]].tolist() == [10_000.0, role["effect"]]
    lines = [line.text for line in role_lines(plain.evidence, 100)]
    assert any("income (10,000 more)" in line for line in lines)
    estimates = plain.estimates.set_index("term")["estimate"]
    assert income.effect.estimate == pytest.approx(10_000 * estimates["income"].iloc[0], rel=1e-12)


@pytest.mark.parametrize("given", [("income=1000",), {"income": 1000}, {"income": 1000.0}])
def test_a_step_that_is_given_counts_more_than_the_rule(table, plain, given):
    found = effects_of(asked(table, step=given))
    assert found["income"].step == 1000.0
    whole = effects_of(plain)["income"].effect
    assert found["income"].effect.estimate == pytest.approx(whole.estimate / 10, rel=1e-9)
    assert found["educ"].effect.estimate == effects_of(plain)["educ"].effect.estimate


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("incme=1000", UnknownFeatureError, "step.* no column 'incme'.*'income'"),
        ("lwage=1", InputError, "step: .*lwage.* is about features"),
        ("region=2", InputError, "'region' is a category"),
        ("city=2", InputError, "'city' holds only 0 and 1"),
        ("income=0", InputError, "'income' must be a number above 0, as in 1000; got '0'"),
        ("income=-5", InputError, "above 0.*got '-5'"),
        ("income=nan", InputError, "above 0"),
        ("income=inf", InputError, "above 0"),
        ("income=much", InputError, "above 0.*got 'much'"),
        ("income", InputError, "a column and a number, as in income=1000"),
        ("income=", InputError, "a column and a number"),
    ],
)
def test_steps_that_cannot_be_are_refused(table, given, error, words):
    with pytest.raises(error, match=words):
        asked(table, step=(given,))


def test_steps_are_part_of_the_command(table):
    question = Question(data="a.csv", outcome="y", step={"income": 1000}, log_outcome=True)
    assert question.command() == "heckmanfa fit a.csv --outcome y --log-outcome --step income=1000"


def test_effects_on_a_log_are_exp_of_the_step_minus_one_everywhere(logged):
    estimates = logged.estimates.query("equation == 'prediction'").set_index("term")
    per_unit = estimates.loc["educ", ["estimate", "ci_low", "ci_high"]].astype(float)
    expected = [100.0 * math.expm1(4.0 * value) for value in per_unit]
    (role,) = [role for role in as_json(logged)["roles"] if role["feature"] == "educ"]
    assert [role[name] for name in ("percent", "percent_low", "percent_high")] == pytest.approx(
        expected, rel=1e-12
    )
    assert role["effect"] == pytest.approx(4.0 * per_unit["estimate"], rel=1e-12)
    naive = 100.0 * math.expm1(role["least_squares"])
    assert role["least_squares_percent"] == pytest.approx(naive, rel=1e-12)
    assert logged.roles.set_index("feature").loc["educ", "percent"] == role["percent"]
    row = next(row for row in forest_of(logged.evidence).rows if row.name == "educ")
    own = row.estimates[0]
    assert (own.value, own.low, own.high) == pytest.approx(tuple(expected), rel=1e-12)
    size, low, high = percentages(*expected)
    assert row.estimates[0].words == (size, f"{low} to {high}")
    tile = logged.answer.how_much
    assert tile.title == f"{size} more wage for 4 more educ"
    assert f"{low} to {high}" in str(tile.words)
    assert percentages(naive)[0] in str(tile.words)
    assert f"{size} more wage" in str(logged.answer.may_write[0])
    assert any(size in line.text for line in role_lines(logged.evidence, 100))
    panel = next(one for one in logged.pictures().over_rho.panels if one.feature == "educ")
    curve = logged.pictures().over_rho
    assert (curve.axis, curve.percent_of, panel.detail) == ("percent", "wage", "4 more")
    assert panel.words(panel.at(0.0)).count("%") == 3
    assert "log points" not in json.dumps(as_json(logged))


def test_effects_over_rho_are_in_percent_for_the_step(logged, table):
    curve = logged.pictures().over_rho
    assert {*curve.features} == {"educ", "exper"}
    rows = table[table["wage"].notna()]
    design = np.column_stack([np.ones(len(rows)), rows[["educ", "exper"]]])
    # With rho = 0, least squares of the logarithm.
    coef = np.linalg.lstsq(design, np.log(rows["wage"]), rcond=None)[0]
    for panel, slope, step in zip(curve.panels, coef[1:], (4.0, 1.0), strict=True):
        point = panel.at(0.0)
        assert point.estimate == pytest.approx(100 * math.expm1(step * slope), rel=1e-8)
        middle = math.log1p(point.low / 100) + math.log1p(point.high / 100)
        assert middle / 2 == pytest.approx(step * slope, rel=1e-8)


def test_a_column_of_logs_says_the_same_as_the_transform(table, logged):
    stated = asked(table, log_outcome=True, step={"educ": 4})
    first, second = effects_of(stated), effects_of(logged)
    assert first["educ"].effect.estimate == pytest.approx(second["educ"].effect.estimate, rel=1e-9)
    assert stated.answer.how_much.title == logged.answer.how_much.title
    assert "predictions are of lwage" in stated.target.words
    assert as_json(stated)["model"]["outcome_transform"] is None
    unsaid = asked(table, step={"educ": 4})
    X = unsaid.loaded.X.head(3)
    assert stated.model.predict(X) == pytest.approx(unsaid.model.predict(X))


def test_a_name_alone_changes_no_number_but_gives_a_hint(plain):
    assert plain.answer.how_much.title.endswith("more lwage for one more educ")
    assert "percent" not in as_json(plain)["roles"][0]
    hint = "If lwage is a logarithm, log_outcome=True says effects in percent."
    assert hint in forest_of(plain.evidence).text().caption
    assert hint in str(plain.evidence.words.scale)


def test_a_log_cannot_be_said_of_classes_or_of_a_transform(table):
    with pytest.raises(InputError, match="holds logarithms already"):
        asked(table, "wage", outcome_transform="log", log_outcome=True)
    frame = table.drop(columns=["lwage"])
    frame["wage"] = (frame["wage"] > 3).astype(float).where(frame["wage"].notna())
    with pytest.raises(InputError, match=r"log_outcome.*is for linear outcomes"):
        analyse(frame, outcome="wage", log_outcome=True, select_only=("kids5",))


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("lwage", "wage"),
        ("lnwage", "wage"),
        ("log_wage", "wage"),
        ("ln_wage", "wage"),
        ("log(wage)", "wage"),
        ("Log of hourly wage", "hourly wage"),
        ("Hourly wage (log)", "Hourly wage"),
        ("y", "exp(y)"),
        ("loss", "exp(loss)"),
        ("length", "exp(length)"),
        ("logit", "exp(logit)"),
    ],
)
def test_what_a_logarithm_is_of_is_read_from_its_name_only_where_that_is_sure(name, of):
    assert unlogged(name) == of
    assert looks_logged(name) == (not of.startswith("exp("))


def test_formulas_of_logs_are_in_percent(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = Heckman.from_formula("np.log(wage) ~ educ", "~ educ + kids5 + exper", table)
    forest = model.pictures().forest
    estimate = model.tidy().query("equation == 'prediction' and term == 'educ'")["estimate"].item()
    assert forest.unit == "percent"
    assert forest.rows[0].estimates[0].value == pytest.approx(100 * math.expm1(estimate))


def test_reports_of_models_take_steps_and_logs(table, tmp_path):
    X, y = table[["educ", "exper", "kids5", "income", "city"]], table["lwage"]
    model = HeckmanAverage().fit(X, y)
    page = tmp_path / "page.html"
    model.report(page, X, y, steps={"educ": 2, "income": 500}, log_outcome=True)
    text = page.read_text()
    estimate = model.tidy().query("equation == 'prediction' and term == 'educ'")["estimate"].item()
    (size,) = percentages(100 * math.expm1(2 * estimate))
    words = re.sub(r"<[^>]+>", "", text)
    assert f"{size} more wage for 2 more educ" in words
    assert "500 more" in words
    for steps, error in (
        ({"edu": 1}, UnknownFeatureError),
        ({"city": 2}, InputError),
        ({"educ": "a"}, InputError),
        ({"educ": True}, InputError),
        ([1], InputTypeError),
    ):
        with pytest.raises(error, match="steps"):
            model.report(tmp_path / "other.html", steps=steps)
    moved = Heckman(["educ"], outcome_transform="log").fit(X, table["wage"])
    with pytest.raises(InputError, match="log_outcome"):
        moved.report(tmp_path / "other.html", log_outcome=True)


def test_labels_name_what_a_logarithm_is_of(table):
    found = asked(table, log_outcome=True, labels={"lwage": "Log of the hourly wage"})
    with labelled(found.labels):
        assert "more hourly wage for one more educ" in str(found.answer.how_much.title)


def test_bounds_of_a_log_are_in_percent_for_a_step(table):
    X = table[["educ", "exper"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = Heckman(outcome_transform="log").fit(X, table["wage"])
        found = analyse(
            pd.concat([X, table["wage"]], axis=1),
            outcome="wage",
            outcome_transform="log",
            search="none",
            step={"educ": 3, "exper": 3},
        )
    main = found.evidence.main
    bounds = model.uncertainty_interval((-0.3, 0.3)).tidy().set_index("term").loc[main.name]
    low, high = (100 * math.expm1(3 * bounds[end]) for end in ("ui_low", "ui_high"))
    first, last = percentages(low, high)
    assert found.answer.how_much.title == f"{first} to {last} more wage for 3 more {main.name}"

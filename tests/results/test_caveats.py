"""Each caveat is decided once, is true, and is the same in every output."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.base import clone
from tests.results.shared import on_one_line

from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanOrderedBestSubset,
    HeckmanProbitBestSubset,
    Survey,
    TreatmentBestSubset,
)
from heckmanfa.analysis import Question, analyse
from heckmanfa.cli.answer_json import as_json
from heckmanfa.cli.answer_screen import show
from heckmanfa.cli.console import output
from heckmanfa.datasets import load_mroz
from heckmanfa.results.checks import check_of

FEATURES = ["educ", "exper", "age", "kids5", "kids618", "nwifeinc", "motheduc", "huswage"]


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    return frame[FEATURES], frame["lwage"]


@pytest.fixture(scope="module")
def honest(mroz):
    return HeckmanBestSubset(honest=True, n_splits=15, random_state=0).fit(*mroz)


def test_an_honest_set_is_not_called_the_best_in_all_rows_unless_it_is(mroz, honest):
    best = HeckmanBestSubset().fit(*mroz)
    assert honest.prediction_features_ != best.prediction_features_
    for text in (str(honest.summary()), str(honest.search_report())):
        said = on_one_line(text)
        assert "they would be the best" not in said
        assert (
            f"In all rows, the search finds another set, {', '.join(best.prediction_features_)}: "
            "the best by BIC of all 256 assignments, proven optimal." in said
        )
    never = [name for name in FEATURES if name not in ("educ", "kids5")]
    same = HeckmanBestSubset(honest=True, never=never, always=["educ"], n_splits=5, random_state=0)
    same.fit(*mroz)
    assert same.prediction_features_ == ["educ"]
    assert "these features are the best by BIC of all 2 assignments, proven optimal" in on_one_line(
        str(same.summary())
    )


def test_margins_after_an_honest_search_do_not_say_that_errors_ignore_it(mroz, honest):
    said = on_one_line(str(honest.margins(mroz[0])))
    assert "ignore the search" not in said
    assert "standard errors account for the search" in said
    assert "The target of an honest estimate" in said
    # What goes back to all rows takes the features that were chosen in them as given.
    assert "A search chose the features" in on_one_line(str(honest.uncertainty_interval()))


def test_where_there_was_nothing_to_choose_no_search_is_ignored(mroz):
    model = HeckmanBestSubset(always=["educ", "exper"], never=FEATURES[2:]).fit(*mroz)
    plain = Heckman(["educ", "exper"]).fit(*mroz)
    np.testing.assert_array_equal(model.vcov(), plain.vcov())
    assert "ignore the search" not in str(model.summary())
    assert "search" not in str(model.margins(mroz[0]))
    assert "search" not in str(model.what_if())


def test_assignments_in_a_window_are_counted_in_the_window(mroz):
    model = HeckmanFA("correlation", criterion="bic", rho_range=(-0.3, 0.0)).fit(*mroz)
    inside = model.candidates_["in_range"].sum()
    assert inside < model.n_assignments_
    assert f"the best by BIC of {inside} assignments evaluated with rho from -0.3 to 0," in (
        on_one_line(str(model.summary()))
    )


def test_after_a_search_the_diagnostics_say_that_errors_ignore_it(mroz):
    names = HeckmanBestSubset().fit(*mroz).diagnostics().to_frame()["diagnostic"]
    assert "standard errors after the search" in set(names)
    assert "search" not in str(Heckman(["educ"]).fit(*mroz).diagnostics())


def test_a_summary_says_that_adjusted_r2_leaves_lambda_out(mroz):
    X, y = mroz
    model = Heckman(["educ", "exper"]).fit(X, y)
    words = "degrees of freedom of adjusted R2 leave lambda out"
    for text in (str(model.summary()), model.summary().to_markdown(), model.summary().to_latex()):
        assert words in on_one_line(text)
    assert words in on_one_line(str(HeckmanBestSubset().fit(X, y).search_report()))
    # As the sentence says: 2 regressors beside the constant, not 3.
    m = y.notna().sum()
    design = np.column_stack(
        [np.ones(m), X[["educ", "exper"]][y.notna()], model.inverse_mills(X)[y.notna()]]
    )
    observed = y[y.notna()].to_numpy()
    rest = observed - design @ np.linalg.lstsq(design, observed, rcond=None)[0]
    r2 = 1 - rest @ rest / np.sum((observed - observed.mean()) ** 2)
    assert model.adjusted_r2_ == pytest.approx(1 - (1 - r2) * (m - 1) / (m - 2 - 1), rel=1e-9)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    frame = load_mroz()[[*FEATURES, "lwage"]]
    frame["region"] = np.where(
        frame["age"] > 45, "north", np.where(frame["educ"] > 12, "east", "west")
    )
    frame["gaps"] = np.where(
        np.arange(753) % 12 == 0, np.nan, frame["kids618"] + 0.1 * frame["age"]
    )
    path = tmp_path_factory.mktemp("caveats") / "mroz.csv"
    frame.to_csv(path, index=False)
    return path


QUESTIONS = {
    "average": {"features": tuple(FEATURES)},
    "search": {"features": tuple(FEATURES), "search": "best-subset"},
    "none": {
        "search": "none",
        "predict_with": ("educ", "region"),
        "features": (*FEATURES[:4], "region", "gaps"),
    },
    "window": {"features": tuple(FEATURES), "rho_range": (-0.5, 0.5)},
    "no exclusion, ml": {"search": "none", "features": ("educ", "age", "kids5"), "method": "ml"},
    "honest": {"features": tuple(FEATURES[:5]), "honest": True},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_console_and_json_carry_the_same_caveats_and_diagnostics(name, table, capsys):
    analysis = analyse(Question(str(table), "lwage", **QUESTIONS[name]))
    lines = analysis.diagnostics.lines()
    assert "rows outside that range" in [line[0] for line in lines]
    found = json.loads(json.dumps(as_json(analysis)))
    assert [one["diagnostic"] for one in found["diagnostics"]] == [line[0] for line in lines]
    assert [one["verdict"] for one in found["diagnostics"]] == [line[2] for line in lines]
    caveats = analysis.caveats
    assert len({one.key for one in caveats}) == len(caveats)
    assert [one["key"] for one in found["caveats"]] == [one.key for one in caveats]
    assert found["not_to_be_claimed"] == [str(one) for one in analysis.claims]
    assert [one["title"] for one in found["checks"]] == [one.title for one in analysis.checks]
    show(analysis, output(), verbose=True)
    printed = on_one_line(capsys.readouterr().out)
    grave = [one for one in analysis.checks if one.level != "ok"]
    texts = [*analysis.answer.lines(), *(one.title.removesuffix(".") for one in grave)]
    texts += [f"Do: {one.do}" for one in grave if one.do]
    texts += [one.line for one in analysis.checks if one.level == "ok"]
    assert [text for text in texts if on_one_line(text) not in printed] == []


def test_every_model_level_caveat_of_a_table_is_in_the_summary(table):
    analysis = analyse(
        Question(
            str(table),
            "lwage",
            search="best-subset",
            features=tuple(FEATURES),
            rho_range=(-0.5, 0.5),
        )
    )
    summary = analysis.model.summary()
    for text in (str(summary), summary.to_markdown(), summary.to_latex(), summary._repr_html_()):
        plain = re.sub(r"\\(.)", r"\1", on_one_line(text))
        assert "rho was conditioned on" in plain
        assert "ignore the search" in plain
        assert "no evidence that" in plain


def test_the_demo_knows_the_file_of_its_report(tmp_path):
    from hashlib import sha256

    from typer.testing import CliRunner

    from heckmanfa.cli import app

    assert CliRunner().invoke(app, ["demo", str(tmp_path / "demo")]).exit_code == 0
    page = (tmp_path / "demo" / "mroz.html").read_text(encoding="utf-8")
    assert "no longer there" not in page
    assert sha256((tmp_path / "demo" / "mroz.csv").read_bytes()).hexdigest() in page


def searched(name, X, y):
    """A model with a search, and what it is fitted to."""
    if name == "probit":
        return HeckmanProbitBestSubset(), (X, (y > 1.1).where(y.notna()))
    if name == "ordered":
        return HeckmanOrderedBestSubset(), (X, y.clip(0, 2).round())
    if name == "treatment":
        return TreatmentBestSubset(), (
            X[["educ", "exper", "age"]],
            load_mroz()["nwifeinc"],
            X["kids5"] > 0,
        )
    if name == "survey":
        return HeckmanBestSubset(cov_type=Survey(psu="psu")), (X.assign(psu=X.index % 60), y)
    options = {"both": {"search_in": "both"}}.get(name)
    return HeckmanBestSubset(**(options | {"method": "ml"} if options else {})), (X, y)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
@pytest.mark.parametrize("name", ["linear", "probit", "ordered", "treatment", "both", "survey"])
def test_honest_halves_are_advised_where_a_search_can_have_them(name, mroz):
    model, rows = searched(name, mroz[0][FEATURES[:4]], mroz[1])
    model.fit(*rows)
    found = [fact for fact in model.diagnostics().facts if fact.key == "search_ignored"]
    (check,) = check_of(found[0], model.fit_, "lwage")
    advice = f"{check.do} {on_one_line(str(model.summary()))}"
    try:
        clone(model).set_params(honest=True, n_splits=2).fit(*rows)
    except ValueError:
        assert "honest" not in advice
    else:
        assert "honest" in advice

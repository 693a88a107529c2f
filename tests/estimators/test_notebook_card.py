"""What a notebook shows of a fitted search and of an analysis: the answer and a picture."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from sklearn import config_context

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanProbitBestSubset
from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


class Reader(HTMLParser):
    """The elements of a card, all of which must be closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self._open = [], "", []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.text += data


@pytest.fixture(scope="module")
def table():
    return load_mroz()[[*FEATURES, "lwage"]]


@pytest.mark.parametrize("kind", [HeckmanAverage, HeckmanBestSubset])
def test_a_fitted_search_shows_its_answer_and_an_unfitted_one_its_parameters(table, kind):
    model = kind()
    before = model._repr_mimebundle_()["text/html"]
    assert "sk-" in before
    assert "hfa card" not in before
    assert model._repr_html_() != ""
    model.fit(table[FEATURES], table["lwage"])
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"] == model._repr_html_()
    assert bundle["text/plain"] == repr(model)
    card = Reader(bundle["text/html"])
    assert card.tags.count("svg") >= 5
    assert "script" not in card.tags
    # The clearest coefficient is the one that tidy has.
    educ = model.tidy().set_index(["equation", "term"]).loc[("prediction", "educ"), "estimate"]
    told = re.search(r"(0\.\d+) more lwage for one more educ", card.text)
    assert float(told[1]) == pytest.approx(educ, abs=5e-4)
    assert len(bundle["text/html"]) < 60_000


def test_a_fitted_search_for_two_classes_shows_its_answer(table):
    well = (
        table["lwage"].gt(1.2).map({True: "<b>well", False: "badly"}).where(table["lwage"].notna())
    )
    model = HeckmanProbitBestSubset(n_refits=3).fit(table[FEATURES], well.rename("paid"))
    html = model._repr_html_()
    card = Reader(html)
    assert card.tags.count("svg") >= 5
    assert "<b>well" not in html
    assert "percentage points" in card.text


def test_scikit_learn_decides_whether_html_is_shown(table):
    model = HeckmanAverage().fit(table[FEATURES], table["lwage"])
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]
    given = Heckman(["educ"]).fit(table[FEATURES], table["lwage"])
    assert "sk-" in given._repr_html_()


def test_a_card_changes_nothing_else_in_a_notebook(table):
    model = HeckmanAverage().fit(table[FEATURES], table["lwage"])
    style = re.search(r"<style>(.*?)</style>", model._repr_html_(), re.DOTALL)[1]
    rules = re.sub(
        r"@(media|container)[^{]*\{", "", re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    )
    selectors = [part.strip() for part in re.findall(r"([^{}]+)\{[^{}]*\}", rules)]
    assert len(selectors) > 30
    for selector in selectors:
        for one in re.split(r",(?![^(]*\))", selector):
            assert ".hfa" in one, one


def test_an_analysis_shows_the_same_card(table, tmp_path):
    path = tmp_path / "mroz.csv"
    table.rename(columns={"exper": HOSTILE}).to_csv(path, index=False)
    analysis = analyse(Question(str(path), "lwage", search="none", predict_with=("educ", HOSTILE)))
    html = analysis._repr_html_()
    card = Reader(html)
    assert str(analysis.answer.headline) in card.text
    assert "<img" not in html
    assert "\u202e" not in html
    assert "&lt;img" in html


def test_a_card_that_fails_says_why_above_the_summary(table, monkeypatch):
    model = HeckmanBestSubset().fit(table[FEATURES], table["lwage"])
    analysis = analyse(table, outcome="lwage", search="none")

    def fail(*args, **kwargs):
        raise ZeroDivisionError("<no> answer")

    monkeypatch.setattr("heckmanfa.estimators.search_base.answer_of_facts", fail)
    monkeypatch.setattr("heckmanfa.analysis.pipeline.answer_of", fail)
    for shown, summary in [(model, model.summary()), (analysis, analysis.model.summary())]:
        html = shown._repr_html_()
        assert html.startswith("<p>The answer cannot be shown: &lt;no&gt; answer</p>")
        assert html.endswith(summary._repr_html_())
    assert model._repr_mimebundle_()["text/html"] == model._repr_html_()


def test_a_notebook_neither_bootstraps_nor_keeps_a_card(table, monkeypatch):
    model = HeckmanAverage().fit(table[FEATURES], table["lwage"])
    before = {*vars(model)}
    monkeypatch.setattr(HeckmanAverage, "bootstrap", None)
    monkeypatch.setattr(HeckmanAverage, "specification_tests", None)
    assert "hfa card" in model._repr_html_()
    assert {*vars(model)} == before


def test_the_style_of_a_notebook_does_not_reach_into_a_card(table):
    html = HeckmanAverage().fit(table[FEATURES], table["lwage"])._repr_html_()
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    # JupyterLab indents lists by a rule of two classes and an element, and Bootstrap has cards.
    assert ".hfa ul.legend.legend {" in style
    assert ".hfa ul.chips.chips {" in style
    assert re.search(r"\.hfa\.card \{ display: block;", style)
    for theme in ('[theme="dark"]', '[data-jp-theme-light="false"]', ".vscode-dark"):
        assert f"{theme} .hfa" in style

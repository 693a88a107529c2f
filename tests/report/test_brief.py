"""The brief: the first screen of a report and what may be written, on one sheet of paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.report.browsing import Visit, sheets
from tests.report.conftest import ALL, Page
from tests.report.test_browser import findings, fits

from heckmanfa import Heckman
from heckmanfa.errors import InputError
from heckmanfa.report import render, write_report
from heckmanfa.results.checks import named_first


@pytest.fixture(scope="module")
def brief_of(case, tmp_path_factory):
    """The file of the brief of a special case."""
    folder = tmp_path_factory.mktemp("briefs")

    def write(name):
        path = folder / f"{name.replace(' ', '-')}.html"
        write_report(case(name), path, brief=True)
        return path

    return write


# Others are opened by the studies.
SHOWN = ("average", "binary", "hostile", "long", "observed")


@pytest.mark.parametrize(
    "name",
    [
        name if name in SHOWN else pytest.param(name, marks=pytest.mark.study)
        for name in ALL
        if name != "wide"
    ],
)
def test_a_brief_prints_on_one_sheet_and_fits_a_phone(browser, brief_of, case, name):
    analysis = case(name)
    with Visit(browser, brief_of(name), 360, 780) as page:
        fits(page)
        (lines,) = sheets(page.pdf(prefer_css_page_size=True))
    text = " ".join(lines)
    assert "page 1 of 1" in text
    assert analysis.made_on in text
    for tile in (analysis.answer.which, analysis.answer.selection, analysis.answer.trust):
        assert tile.question.split()[0] in text


@pytest.mark.parametrize("name", ["average", "hostile", "observed", "binary"])
def test_a_brief_is_the_answer_the_forest_the_rows_trust_and_sentences(case, page_of, name):
    analysis, whole, page = case(name), page_of(name), Page(render(case(name), brief=True))
    assert [*page.sections] == ["answer"]
    # It has the parts of the report, in the same words.
    answer = analysis.answer
    for tile in (answer.which, answer.how_much, answer.selection, answer.trust):
        assert tile.question in page.said("answer")
        assert tile.question in whole.said("answer")
    assert str(answer.headline) in " ".join(page.lines)
    assert len(page.with_class("forest")) == 1
    assert page.with_class("funnel")
    assert ("What you may write" in page.said("answer")) == bool(answer.may_write)
    for check in named_first(analysis.checks):
        assert check.title in page.said("answer")
        assert str(check.do)[:20] in page.said("answer")
    # It links to nothing that it does not have.
    targets = {one["id"] for _, one in page.elements if "id" in one}
    links = [one["href"] for tag, one in page.elements if tag == "a"]
    assert {link.removeprefix("#") for link in links} <= targets
    assert "<nav" not in page.html
    assert len(page.html) < 0.7 * len(whole.html)


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.study), "dark"])
def test_axe_has_no_findings_in_a_brief(browser, brief_of, scheme):
    with Visit(browser, brief_of("hostile"), color_scheme=scheme) as page:
        assert findings(page) == []


def test_a_model_writes_its_brief(tmp_path):
    source = np.random.default_rng(0)
    X = pd.DataFrame(source.normal(size=(400, 3)), columns=["a", "b", "c"])
    y = (X["a"] + source.normal(size=400)).where(X["b"] + source.normal(size=400) > 0)
    model = Heckman(prediction_features=["a"]).fit(X, y)
    path = tmp_path / "brief.html"
    model.report(path, X, y, brief=True)
    assert [*Page(path.read_text(encoding="utf-8")).sections] == ["answer"]
    assert "<nav" not in path.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="exists"):
        model.report(path, X, y, brief=True)

"""Analyses to report on, from files as a user has them, and a reader of the pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from heckmanfa.analysis import Question, analyse, best_set
from heckmanfa.datasets import fetch_crime, load_mroz
from heckmanfa.estimators.searches import HeckmanBestSubset
from heckmanfa.report import render

FEATURES = [
    *["educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"],
    *["fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"],
]
HOSTILE = {
    "educ": "<script>alert(1)</script>",
    "exper": "a \"quoted\" & 'odd' <b>name</b>",
    "kids5": "$title %{x} @blue",
    "lwage": "wage & <i>more</i>",
}


@pytest.fixture(scope="session", autouse=True)
def few_samples():
    """Checks search again in a few samples of the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_set, "N_BOOT", 3)
        yield


@pytest.fixture(scope="session")
def mroz_file(tmp_path_factory):
    """Mroz's women, with columns of weights, groups, a category, gaps and an identifier."""
    frame = load_mroz()[[*FEATURES, "lwage", "lfp"]]
    source = np.random.default_rng(0)
    frame = frame.assign(
        weight=source.integers(1, 4, len(frame)),
        county=source.integers(0, 40, len(frame)),
        region=np.where(frame["unem"] > 9, "north", np.where(frame["city"] > 0, "south", "east")),
        person=[f"p{row:04d}" for row in range(len(frame))],
    )
    frame["gaps"] = source.normal(size=len(frame)).round(3)
    frame.loc[frame.index % 10 == 0, "gaps"] = np.nan
    path = tmp_path_factory.mktemp("report") / "mroz.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def ask(mroz_file):
    """An analysis of Mroz's women, fitted once for each question."""

    @cache
    def run(**options):
        options.setdefault("features", tuple(FEATURES))
        options.setdefault("search", "best-subset")
        return analyse(Question(str(mroz_file), "lwage", **options))

    return run


@pytest.fixture(scope="session")
def hostile(mroz_file):
    """An analysis of columns whose names would break a page that does not escape them."""
    frame = pd.read_csv(mroz_file)[[*FEATURES, "lwage"]].rename(columns=HOSTILE)
    path = mroz_file.parent / "a & <b>.csv"
    frame.to_csv(path, index=False)
    return analyse(Question(str(path), HOSTILE["lwage"], search="best-subset"))


@pytest.fixture(scope="session")
def crime_analysis(paper_files, tmp_path_factory):
    """UCI's Communities and Crime, with the 10,000 best assignments."""
    data = fetch_crime()
    path = tmp_path_factory.mktemp("crime") / "crime.csv"
    data.X.assign(crimes=data.y).to_csv(path, index=False)
    analysis = analyse(Question(str(path), "crimes", criterion="adjusted_r2"))
    rows = analysis.loaded
    model = HeckmanBestSubset("adjusted_r2", tolerance=0.01).fit(rows.X, rows.y)
    return replace(analysis, model=model)


class Page(HTMLParser):
    """What a page holds: its elements, its text by section, and its tables."""

    VOID = ("meta", "br", "hr", "img", "input", "link")

    def __init__(self, html):
        super().__init__()
        self.elements, self.scripts, self.tables = [], {}, {}
        self.sections, self.headings = {}, []
        self._open, self._table = [], None
        self._section = self._script = self._text = None
        self.feed(html)
        self.close()
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "section":
            self._section = attributes["id"]
            self.sections[self._section] = ""
        elif tag == "script":
            self._script = attributes.get("id", "page")
            self.scripts[self._script] = ""
        elif tag == "table":
            self._table = []
        elif tag == "caption":
            self.tables[attributes["id"]] = self._table
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        if tag in ("th", "td", "h1", "h2", "h3"):
            self._text = ""

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        if tag in ("th", "td"):
            self._table[-1].append(self._text)
        elif tag in ("h1", "h2", "h3"):
            self.headings.append((tag, self._text))
        elif tag == "section":
            self._section = None
        elif tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self.scripts[self._script] += data
            return
        if self._text is not None:
            self._text += data
        if self._section is not None:
            self.sections[self._section] += data

    @property
    def payload(self):
        return json.loads(self.scripts["report-data"])

    def said(self, section):
        """The text of a section, on one line."""
        return re.sub(r"\s+", " ", self.sections[section])


@pytest.fixture(scope="session")
def read_page():
    """Reads a page; the library's text, of megabytes, is left out."""
    from plotly.offline import get_plotlyjs

    return lambda html: Page(html.replace(get_plotlyjs(), "plotly"))


@pytest.fixture(scope="session")
def page_of(ask, read_page):
    """The page of a question about Mroz's women, made and read once."""
    return cache(lambda **options: read_page(render(ask(**options))))

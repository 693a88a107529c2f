"""Analyses to report on, from files as a user has them, and a reader of the pages."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from heckmanfa.analysis import Question, analyse, refits
from heckmanfa.datasets import load_mroz
from heckmanfa.report import render, write_report
from heckmanfa.search.averaging import gibbs

FEATURES = [
    *["educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"],
    *["fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"],
]
FEW = ("educ", "exper", "age", "kids5", "city", "nwifeinc")
TURN, ESCAPE = "\u202eabc", "a\x1b[2Jb"
HOSTILE = {
    "educ": "<script>alert(1)</script>",
    "exper": "a \"quoted\" & 'odd' <b>name</b>",
    "age": "=1+1",
    "kids5": "$title %{x} {0}",
    "city": f"c{TURN}",
    "nwifeinc": ESCAPE,
    "lwage": "wage & <i>more</i>",
}
LONG = {"educ": "years_of_education_completed_by_the_respondent_" * 6, "exper": "経験年数" * 12}

CASES = {
    "average": {},
    "none": {"search": "none", "predict_with": ("educ", "exper", "expersq")},
    "ml": {"search": "best-subset", "method": "ml", "features": FEW},
    "honest": {"honest": True, "features": FEW},
    "window": {"rho_range": (-0.4, 0.4), "features": FEW},
    "category": {"features": ("region", "educ", "exper", "age", "kids5", "gaps", "person")},
    "sampling": {"weights": "weight", "weight_kind": "sampling", "features": FEW},
    "no exclusion": {"search": "none", "features": FEW},
    "cluster": {"cluster": "county", "features": FEW},
    "series": {"method": "series", "n_terms": 2, "features": FEW, "select_only": ("age", "kids5")},
}
"""special cases of the page that are questions about Mroz's women"""
OTHERS = (
    *("observed", "streamed", "wide", "crowded", "hostile", "long", "clear", "binary"),
    "ordered",
)
"""and those that need tables of their own"""
ALL = (*CASES, *OTHERS)


@pytest.fixture(scope="module", autouse=True)
def few_samples():
    """Checks search again in a few samples of the rows, and scores in two folds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refits, "N_BOOT", 3)
        patch.setattr(refits, "N_FOLDS", 2)
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
        return analyse(Question(str(mroz_file), "lwage", **options))

    return run


def made_table(n, k, rho, seed=0):
    """Rows in which x0 and x1 predict, x0 and x2 drive selection, and rho is the correlation."""
    source = np.random.default_rng(seed)
    X = source.normal(size=(n, k))
    errors = source.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n)
    selected = 0.3 + 0.8 * X[:, 0] + 1.2 * X[:, 2] + errors[:, 0] > 0
    y = np.where(selected, 1 + X[:, 0] + 0.7 * X[:, 1] + errors[:, 1], np.nan)
    return pd.DataFrame(X, columns=[f"x{place}" for place in range(k)]).round(4).assign(y=y)


@pytest.fixture(scope="session")
def case(ask, mroz_file):
    """The analysis of a special case."""
    folder = mroz_file.parent

    def of_table(table, name, outcome="y", **options):
        path = folder / name
        table.to_csv(path, index=False)
        return analyse(Question(str(path), outcome, **options))

    @cache
    def run(name):
        if name in CASES:
            return ask(**CASES[name])
        mroz = pd.read_csv(mroz_file)[[*FEW, "lwage"]]
        if name == "observed":
            mroz["weight"] = mroz["lwage"].notna().astype(int)
            return of_table(mroz, "observed.csv", "lwage", weights="weight")
        if name == "binary":
            above = np.where(mroz["lwage"] >= np.log(4), "well <paid>", "low")
            table = mroz.assign(wage4=np.where(mroz["lwage"].notna(), above, ""))
            return of_table(table, "binary.csv", "wage4", features=("educ", "age", "kids5"))
        if name == "ordered":
            wage = mroz.pop("lwage")
            rating = np.array(["poor", "<fair>", "good"])[wage.gt(1).astype(int) + wage.gt(1.4)]
            table = mroz.assign(rating=np.where(wage.notna(), rating, ""))
            given = {"predict_with": ("educ", "exper"), "classes": ("poor", "<fair>", "good")}
            return of_table(table, "ordered.csv", "rating", outcome_kind="ordered", **given)
        if name == "log":
            table = mroz.assign(wage=np.exp(mroz.pop("lwage")))
            given = {"search": "none", "predict_with": ("educ", "exper")}
            return of_table(table, "log.csv", "wage", outcome_transform="log", **given)
        if name == "streamed":
            pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
            mroz.to_parquet(folder / "mroz.parquet")
            return analyse(Question(str(folder / "mroz.parquet"), "lwage", stream_above=0.0))
        if name in ("wide", "crowded"):
            # All drive selection; few may predict, which a sampler weighs in short chains.
            with pytest.MonkeyPatch.context() as patch:
                for constant, value in {"LEAST_SWEEPS": 40, "_STEPS": 0, "_BURN_IN": 10}.items():
                    patch.setattr(gibbs, constant, value)
                may = tuple(f"x{place}" for place in range(40))
                # 300 features take three times as long: `make study` has the page of them.
                n, k = (1500, 300) if name == "wide" else (800, 150)
                return of_table(made_table(n, k, 0.5), f"{name}.csv", predict_with=may)
        if name == "hostile":
            table = mroz.rename(columns=HOSTILE)
            return of_table(table, "a & <b>.csv", HOSTILE["lwage"])
        if name == "long":
            return of_table(mroz.rename(columns=LONG), f"{'long_' * 20}.csv", "lwage")
        return of_table(made_table(1500, 5, 0.8), "clear.csv")

    return run


class Page(HTMLParser):
    """What a page holds: its elements, its text by section, and its tables."""

    VOID = ("meta", "br", "hr", "img", "input", "link")
    # Elements at whose end a line ends; the cells of a row stay on one.
    LINES = (
        *("p", "li", "h1", "h2", "h3", "h4", "h5", "tr", "dt", "dd", "button"),
        *("figcaption", "summary", "caption", "pre", "legend", "label"),
    )

    def __init__(self, html):
        super().__init__()
        self.html = html
        self.elements, self.scripts, self.tables = [], [], {}
        self.sections, self.headings, self.lines = {}, [], [""]
        self._open, self._table, self._svg = [], None, 0
        self._section = self._text = None
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
            self.scripts.append("")
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
        if tag in (*self.LINES, "div", "section") and self.lines[-1]:
            self.lines.append("")
        elif tag in ("th", "td"):
            self.lines[-1] += " | "

    def handle_data(self, data):
        if "script" in self._open:
            self.scripts[-1] += data
            return
        # How code breaks into lines depends on the length of the folder's name.
        if not {"svg", "style"} & {*self._open} and not {"fieldset", "code"} <= {*self._open}:
            self.lines[-1] += data
        if self._text is not None:
            self._text += data
        if self._section is not None and "svg" not in self._open:
            self.sections[self._section] += data

    def said(self, section):
        """The text of a section, on one line; drawings are left out."""
        return re.sub(r"\s+", " ", self.sections[section])

    def with_class(self, name):
        """The attributes of the elements of a class."""
        return [one for _, one in self.elements if name in one.get("class", "").split()]


@pytest.fixture(scope="session")
def read_page():
    """Reads a page."""
    return Page


@pytest.fixture(scope="session")
def page_of(case):
    """The page of a special case, made and read once."""
    return cache(lambda name: Page(render(case(name))))


@pytest.fixture(scope="session")
def file_of(case, tmp_path_factory):
    """The file of the page of a special case."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def write(name):
        path = folder / f"{name.replace(' ', '-')}.html"
        write_report(case(name), path)
        return path

    return write


@pytest.fixture(scope="module")
def browser():
    """A browser without a window."""
    driver = pytest.importorskip(
        "playwright.sync_api", reason="no driver of a browser: pip install playwright"
    )
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next((shutil.which(name) for name in names if shutil.which(name)), None)
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    with driver.sync_playwright() as started:
        # Root may not use the sandbox, and a container's /dev/shm is small.
        flags = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        flags += ["--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"]
        try:
            opened = started.chromium.launch(executable_path=program, args=flags)
        except driver.Error as error:
            pytest.skip(f"{program} does not start: {str(error).splitlines()[0]}")
        yield opened
        opened.close()

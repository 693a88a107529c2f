"""The same in Python, R and Stata: the Python and R code of a report gives its numbers."""

from __future__ import annotations

import contextlib
import html
import io
import re
import shutil
import subprocess
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from tests.scenes import LEVELS, MROZ, TWO, WORKS, X, Y, earns

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanProbit
from heckmanfa.analysis import analyse
from heckmanfa.analysis.question_code import code_of
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.estimators.model_code import code_of_model
from heckmanfa.report import r_code as r_module
from heckmanfa.report.r_code import text as r_text
from heckmanfa.report.stata_code import stata_names
from heckmanfa.report.stata_code import text as stata_text
from heckmanfa.results.average_tables import all_features_terms

FEW = ("educ", "exper", "age", "kids5", "city", "nwifeinc")
GIVEN = {"search": "none", "predict_with": ("educ", "exper")}
WITH_REGION = ("educ", "region", "exper", "kids5")
EVIL = '"; rm -rf ~ #`$(x)`'

# Questions about the table below, beside those of conftest.py.
QUESTIONS = {
    "two steps": GIVEN,
    "ml": GIVEN | {"method": "ml"},
    "ml from another start": GIVEN | {"method": "ml", "start": -0.5},
    "average": {},
    "average by ml": {"method": "ml"},
    "average of both equations": {"search_in": "both"},
    "best subset": {"search": "best-subset"},
    "honest": {"honest": True},
    "log and category": {
        "outcome": "wage",
        "outcome_transform": "log",
        "features": WITH_REGION,
        "search": "none",
        "predict_with": ("educ", "region", "exper"),
        "reference": {"region": "south"},
    },
    "log of one more": GIVEN | {"outcome": "wage", "outcome_transform": "log1p"},
    "average of a category": {"features": WITH_REGION},
    "robust": GIVEN | {"robust": True},
    "cluster": GIVEN | {"cluster": "county"},
    "cluster by ml": GIVEN | {"cluster": "county", "method": "ml"},
    "frequencies": GIVEN | {"weights": "count"},
    "robust frequencies": GIVEN | {"weights": "count", "robust": True},
    "sampling": GIVEN | {"weights": "share", "weight_kind": "sampling"},
    "sampling by ml": GIVEN | {"weights": "share", "weight_kind": "sampling", "method": "ml"},
    "binary": GIVEN | {"outcome": "well_paid"},
    "binary clusters": GIVEN | {"outcome": "well_paid", "cluster": "county"},
    "binary best subset": {"outcome": "well_paid"},
    "who is selected": GIVEN | {"selected": "works"},
    "gaps": {"features": ("educ", "exper", "age", "gaps"), **GIVEN},
    "filled gaps": {"features": ("educ", "exper", "age", "gaps"), "missing": "mean", **GIVEN},
    "rare levels": {
        "features": ("educ", "exper", "kids5", "town"),
        "search": "none",
        "predict_with": ("educ", "town"),
        "min_level_rows": 30,
    },
    "levels in several cases": {
        "features": ("educ", "exper", "kids5", "cased"),
        "search": "none",
        "predict_with": ("educ", "cased"),
        "ignore_case": True,
    },
    "codes for missing": {
        "features": ("educ", "exper", "age", "coded"),
        "na_values": ("coded=-99",),
        **GIVEN,
    },
    "evil names": {
        "outcome": "lwage",
        "features": ("educ", "exper", "kids5", EVIL, "a b"),
        "search": "none",
        "predict_with": ("educ", EVIL),
    },
    "no outcome missing": GIVEN | {"weights": "observed"},
    "robust, no outcome missing": GIVEN | {"weights": "observed", "robust": True},
    "decimal commas": {"file": "european", **GIVEN},
    "titles and a total": {
        "file": "titled",
        "features": ("educ", "exper", "age", "kids5"),
        "header_row": 3,
        "drop_rows": ("place=Total",),
        **GIVEN,
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with Mroz's women as people's files have them."""
    folder = tmp_path_factory.mktemp("programs")
    source = np.random.default_rng(0)
    n = len(MROZ)
    frame = MROZ[[*FEW, "lwage", "unem"]].assign(
        count=source.integers(0, 4, n),
        share=source.uniform(0.5, 3, n).round(3),
        county=source.integers(0, 40, n),
        region=np.where(MROZ["unem"] > 9, "north", np.where(MROZ["city"] > 0, "south", "east")),
        town=source.choice([f"t{place}" for place in range(12)], n, p=[0.8, *[0.2 / 11] * 11]),
        cased=source.choice(["Yes", "yes", "no", "NO "], n),
        wage=np.exp(MROZ["lwage"]).round(4),
        works=np.where(WORKS, "yes", "no"),
        observed=np.where(WORKS, 2, 0),
        well_paid=np.where(WORKS, np.where(MROZ["lwage"] > np.log(4), "well", "low"), None),
        gaps=source.normal(size=n).round(3),
        place=[f"p{row % 400}" for row in range(n)],
    )
    frame["coded"] = frame["gaps"] * 10
    frame.loc[frame.index % 9 == 0, "coded"] = -99
    frame.loc[frame.index % 10 == 0, "gaps"] = np.nan
    frame[EVIL], frame["a\nb"] = frame["age"], frame["nwifeinc"]
    frame.to_csv(folder / "table.csv", index=False)
    plain = frame[[*FEW, "lwage", "place"]]
    plain.to_csv(folder / "european.csv", index=False, sep=";", decimal=",")
    total = plain.sum(numeric_only=True).to_frame().T.assign(place="Total")
    titled = pd.concat([plain, total]).to_csv(index=False)
    (folder / "titled.csv").write_text(f"Women, 1975\nSource: PSID\n{titled}", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def asked(folder):
    """The answer to one of the questions, with its code."""

    @cache
    def ask(name):
        options = {"outcome": "lwage", "features": FEW} | QUESTIONS[name]
        path = folder / f"{options.pop('file', 'table')}.csv"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return analyse(path, **options)

    return ask


PYTHON = (
    *("average", "two steps", "ml", "best subset", "honest", "log and category", "cluster"),
    *("sampling", "binary", "average of a category", "levels in several cases", "evil names"),
    *("decimal commas", "titles and a total", "codes for missing"),
)


def test_python_code_gives_the_numbers_of_the_report(asked):
    for name in PYTHON:
        analysis, scope, printed = asked(name), {}, io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(analysis.code.python, scope)
        again = scope["analysis"]
        assert again is not analysis
        for column in ("estimate", "std_error"):
            np.testing.assert_allclose(again.estimates[column], analysis.estimates[column], 1e-9)
        assert printed.getvalue().startswith(str(analysis))


MODELS = {
    "given": (Heckman(TWO, method="ml"), X, Y, {}),
    "arrays": (Heckman([0, 1]), X.to_numpy(), Y.to_numpy(), {}),
    "selected": (Heckman(TWO, cov_type="robust"), X, Y, {"selected": WORKS}),
    "weights": (Heckman(TWO), X, Y, {"sample_weight": np.arange(len(X)) % 3 + 1}),
    "groups": (Heckman(TWO, cov_type="cluster"), X, Y, {"groups": np.arange(len(X)) % 40}),
    "categories": (Heckman(["schooling", "exper"]), LEVELS, Y, {}),
    "classes": (HeckmanProbit(TWO), X, earns(3.0), {}),
    "average": (HeckmanAverage(never=["age"]), X, Y, {}),
    "search": (HeckmanBestSubset(criterion="aic"), X, Y, {}),
    "observed": (Heckman(TWO), X[WORKS], Y[WORKS], {}),
    "robust observed": (Heckman(TWO, cov_type="robust"), X[WORKS], Y[WORKS], {}),
}


def fitted(name):
    model, features, outcome, given = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(features, outcome, **given)


@pytest.mark.parametrize("name", MODELS)
def test_python_code_of_a_model_fits_it_again(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = fitted(name)
    _, features, outcome, given = MODELS[name]
    scope = {"X": features, "y": outcome, **given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        exec(code_of_model(model, "lwage").python, scope)
    again = scope["model"].tidy()
    np.testing.assert_allclose(again["estimate"], model.tidy()["estimate"], rtol=1e-12)
    assert capsys.readouterr().out.strip() == str(model.summary()).strip()
    assert len(pd.read_csv("rows.csv")) == len(features)


@pytest.mark.parametrize("estimator", [Heckman, HeckmanBestSubset])
def test_python_code_of_a_formula_fits_it_again(estimator):
    options = {"sample_weight": "count", "cov_type": "robust"}
    table = MROZ.assign(count=np.arange(len(MROZ)) % 3 + 1)
    model = estimator.from_formula(
        "lwage ~ educ + exper + I(exper**2)", "~ educ + exper + age + kids5", table, **options
    )
    code = code_of_model(model, "lwage")
    scope = {"table": table}
    exec(code.python, scope)
    pd.testing.assert_frame_equal(scope["model"].tidy(), model.tidy())
    # The formulas of the two others are not the same language.
    assert code.r.startswith("# ")
    assert code.stata.startswith("* ")


# R. ------------------------------------------------------------------------------------------


# Runs programs one after another, each with its own names and in its own folder, and keeps what
# went wrong with one of them, a warning included, beside its code.
MANY_IN_R = """
for (path in commandArgs(trailingOnly = TRUE)) {
  setwd(dirname(path))
  said <- capture.output(tryCatch(sys.source(path, new.env(parent = globalenv())),
    error = function(e) message(conditionMessage(e)),
    warning = function(w) message(conditionMessage(w))), type = "message")
  writeLines(said, paste0(path, ".said"))
}
"""
VALUES_IN_R = """
values <- if (exists("theta")) c(estimate, std_error) else
  c(b, if (exists("g")) g, sqrt(diag(V)), if (exists("g")) sqrt(diag(Vg)))
writeLines(sprintf("%.17g", values), "values.txt")
"""


def run_all_r(programs):
    """Run the program of each folder, in one process, for R takes long to start."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("R is not installed")
    for folder, code in programs.items():
        (folder / "code.R").write_text(code + VALUES_IN_R, encoding="utf-8")
    command = [program, "--vanilla", "-e", MANY_IN_R]
    command += [str(folder / "code.R") for folder in programs]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""


def r_values(folder):
    """The estimates and standard errors of a program that R ran."""
    assert (folder / "code.R.said").read_text(encoding="utf-8").strip() == ""
    return np.loadtxt(folder / "values.txt").reshape(2, -1)


def run_r(code, folder):
    """Run code in R, and return its estimates and standard errors."""
    run_all_r({folder: code})
    return r_values(folder)


def expected(fit, tidy):
    """The numbers of the report that R gives: of the model, or of all features of an average."""
    if fit.way.is_average:
        frame = pd.DataFrame(all_features_terms(fit), columns=["estimate", "std_error"])
        frame[["equation", "term"]] = list(fit.terms)
    else:
        frame = tidy
    is_error = frame["equation"] == "errors"
    if fit.spec.method == "ml":
        order = [term for term in ("sigma", "rho") if term in {*frame["term"][is_error]}]
        ends = frame[is_error].set_index("term").loc[order].reset_index()
        parts = [frame[~is_error], ends]
    else:
        of = {name: frame[frame["equation"] == name] for name in ("prediction", "selection")}
        parts = [of["prediction"], frame[frame["term"] == "imr"], of["selection"]]
    return pd.concat(parts)[["estimate", "std_error"]].to_numpy().T


@pytest.fixture(scope="module")
def asked_in_r(asked, tmp_path_factory):
    """The folder in which R ran the code of each question."""
    folders = {name: tmp_path_factory.mktemp("asked") for name in QUESTIONS}
    run_all_r({folder: asked(name).code.r for name, folder in folders.items()})
    return folders


@pytest.mark.parametrize("name", QUESTIONS)
def test_r_code_gives_the_numbers_of_the_report(asked, asked_in_r, name):
    analysis = asked(name)
    estimates, errors = r_values(asked_in_r[name])
    if name == "honest":
        # Beside honest estimates, the report has the estimates of all features.
        shown = analysis.coefficients.set_index("term")["all_features"]
        np.testing.assert_allclose(estimates[1:7], shown[list(FEW)], rtol=1e-6)
        return
    known = expected(analysis.model.fit_, analysis.estimates)
    np.testing.assert_allclose(estimates, known[0], rtol=1e-6)
    np.testing.assert_allclose(errors, known[1], rtol=1e-6)


def test_r_code_does_not_list_many_features_again(asked, folder, monkeypatch):
    few = asked("average of a category")
    monkeypatch.setattr(r_module, "_MANY", 3)
    code = code_of(few).r
    assert code.count("reformulate(features)") == 2
    np.testing.assert_allclose(run_r(code, folder), run_r(few.code.r, folder), rtol=1e-12)


@pytest.fixture(scope="module")
def models_in_r(tmp_path_factory):
    """The folder in which R ran the code of each model, on the rows that Python had saved there."""
    folders, programs = {name: tmp_path_factory.mktemp("model") for name in MODELS}, {}
    for name, folder in folders.items():
        model = fitted(name)
        _, features, outcome, given = MODELS[name]
        code = code_of_model(model, "lwage")
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            patch.chdir(folder)
            warnings.simplefilter("ignore", HeckmanfaWarning)
            exec(code.python, {"X": features, "y": outcome, **given})
        programs[folder] = code.r
    run_all_r(programs)
    return folders


@pytest.mark.parametrize("name", MODELS)
def test_r_code_of_a_model_reads_the_rows_that_python_saves(models_in_r, name):
    model = fitted(name)
    estimates, errors = r_values(models_in_r[name])
    known = expected(model.fit_, model.tidy())
    np.testing.assert_allclose(estimates, known[0], rtol=1e-6)
    np.testing.assert_allclose(errors, known[1], rtol=1e-6)


def test_r_code_stops_at_other_rows(asked, folder, tmp_path):
    lines = (folder / "table.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "table.csv").write_text("".join(lines[:-9]), encoding="utf-8")
    code = asked("two steps").code.r.replace(str(folder), str(tmp_path))
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    (tmp_path / "code.R").write_text(code, encoding="utf-8")
    run = subprocess.run(
        ["Rscript", "--vanilla", str(tmp_path / "code.R")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert "nrow(rows) == 753" in run.stderr


def test_texts_in_r_are_what_they_were(tmp_path):
    texts = ['"; quit() #', "back\\slash", "line\nbreak", "tab\t", "`x`", "\x1b[2J", "\u202eabc"]
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    vector = ", ".join(map(r_text, texts))
    code = f'cat(enc2utf8(c({vector})), sep = "\\r")'
    (tmp_path / "code.R").write_text(code, encoding="utf-8")
    run = subprocess.run(
        ["Rscript", "--vanilla", "--encoding=UTF-8", str(tmp_path / "code.R")],
        capture_output=True,
        check=False,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    assert run.stdout.decode() == "\r".join(texts), run.stderr


# Stata, which cannot be run here. ------------------------------------------------------------


def commands(code):
    """The commands of a do-file, without comments, each on one line."""
    joined = code.replace(" ///\n", " ")
    return [re.sub(" +", " ", line) for line in joined.splitlines() if not line.startswith("*")]


@pytest.mark.parametrize("name", QUESTIONS)
def test_stata_code_names_each_column_once_and_both_equations(asked, folder, name):
    analysis = asked(name)
    code = analysis.code.stata
    assert code.startswith("* ")
    lines = commands(code)
    weights = analysis.question.weights
    if not lines:
        # In two steps, and in a regression, Stata has other weights or none.
        assert weights is not None
        assert analysis.model.fit_.spec.method == "two-step"
        return
    assert "Stata 14 or later" in code
    places, names = re.search(r"rename \((.*)\) \((.*)\)", "\n".join(lines)).groups()
    names = names.split()
    above = 2 if analysis.question.drop_rows else 0
    header = pd.read_csv(
        analysis.question.data,
        nrows=1,
        sep=";" if name == "decimal commas" else ",",
        skiprows=above,
    ).rename(columns=lambda name: " ".join(name.split()))
    ranges = [place.replace("v", "").split("-") for place in places.split()]
    columns = [
        header.columns[place - 1]
        for first, *last in ranges
        for place in range(int(first), int(last[0] if last else first) + 1)
    ]
    roles = [*(name for _, name in analysis.question.roles_in(columns)), *analysis.encoding.sources]
    dropped = ["place"] if analysis.question.drop_rows else []
    assert sorted(columns) == sorted({*roles, *dropped})
    assert len({*names}) == len(names)
    known = dict(zip(columns, names, strict=True))
    last = lines[-1]
    fit = analysis.model.fit_
    command = "heckprobit" if fit.family.has_classes else "heckman"
    prediction, selection = re.match(
        rf"{command} outcome ?([^,\[]*?)(?: \[[a-z]+=\w+\])?, select\(selected = ([^)]*)\)", last
    ).groups()
    drives = {known[source] for source in analysis.encoding.sources}
    assert {term.removeprefix("ib1.") for term in selection.split()} <= drives
    if analysis.question.search_in != "both" and not fit.dropped:
        assert {term.removeprefix("ib1.") for term in selection.split()} == drives
    categories = {known[source] for source in analysis.encoding.levels}
    assert {term[4:] for term in selection.split() if term.startswith("ib1.")} == categories
    if analysis.question.predict_with:
        may = [known[column] for column in analysis.question.predict_with]
        assert sorted(term.removeprefix("ib1.") for term in prediction.split()) == sorted(may)
    assert ("twostep" in last) is (fit.spec.method == "two-step")
    if fit.spec.method == "ml" and analysis.question.cluster:
        assert "vce(cluster county)" in last
    if weights and analysis.question.weight_kind == "sampling":
        assert "[pweight=share]" in last
    assert f"assert _N == {analysis.code.r.split('nrow(rows) == ')[1].split(',')[0]}" in code


def test_without_missing_outcomes_stata_has_a_regression():
    assert commands(code_of_model(fitted("observed"), "lwage").stata)[-1] == (
        "regress outcome educ exper"
    )
    assert commands(code_of_model(fitted("robust observed"), "lwage").stata) == []


STATA_NAMES = {
    "educ": "educ",
    "Years of schooling": "years_of_schooling",
    "GDP (% change)": "gdp_change",
    "2020": "x_2020",
    "if": "if_2",
    "str12": "str12_2",
    "_n": "n",
    "selected": "selected_2",
    "Größe": "gr_e",
    "年収": "x",
    "月収": "x_2",
    EVIL: "rm_rf_x",
    "": "x_3",
    "a" * 40: "a" * 32,
    "A" * 40: f"{'a' * 30}_2",
    "Educ": "educ_2",
}


def test_columns_get_names_that_stata_takes():
    assert stata_names(list(STATA_NAMES)) == STATA_NAMES
    for name in STATA_NAMES.values():
        assert re.fullmatch(r"[a-z_][a-z0-9_]{0,31}", name)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("north", '"north"'),
        ("", '""'),
        ('a"b', '"a" + uchar(34) + "b"'),
        ("`=1+1'", 'uchar(96) + "=1+1\'"'),
        ("$HOME", 'uchar(36) + "HOME"'),
        ("a\nb", '"a" + uchar(10) + "b"'),
        ("Größe", '"Größe"'),
    ],
)
def test_texts_in_stata_hold_nothing_that_it_obeys(value, written):
    assert stata_text(value) == written


@pytest.mark.parametrize("language", ["python", "r", "stata"])
def test_names_are_never_code(asked, language):
    code = getattr(asked("evil names").code, language)
    assert "\x1b" not in code
    if language == "stata":
        # Neither a quote nor a macro can come from a name.
        assert not any(mark in code for mark in ("`", "$", "rm -rf"))
        assert code.count('"') % 2 == 0
    if language == "r":
        lines = [line for line in code.splitlines() if "rm -rf" in line]
        assert all(f'"\\{EVIL}"' in line or r_text(EVIL) in line for line in lines)
        assert "`" not in code.replace(r_text(EVIL), "").replace("Reduce(`+`", "")
    if language == "python":
        assert repr(EVIL) in code


# The page. -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["average", "hostile", "binary", "streamed"])
def test_the_page_shows_the_code_as_it_is(case, page_of, name):
    shown = re.findall(r'<code id="code-(\w+)">(.*?)</code>', page_of(name).html, re.DOTALL)
    code = {language: html.unescape(text) for language, text in shown}
    assert code == vars(case(name).code)
    assert code["python"].startswith("from heckmanfa.analysis import analyse\n")


def test_rows_that_are_not_in_a_plain_file_are_to_be_saved_first(case):
    for name in ("r", "stata"):
        assert "save the table as a plain CSV file" in re.sub(
            r"\n[#*] ", " ", getattr(case("streamed").code, name)
        )

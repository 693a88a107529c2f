"""The code in documents runs and prints what is shown under it.

Fences of ``python`` are run; a fence of ``text`` right after one is its output. In README.md and
the pages on the command line the same goes for fences of ``sh`` in which every line is a
``heckmanfa`` command; the output of a command that fails is the line of its error. The blocks of a
file run in order, and share their names and a folder.
"""

import contextlib
import doctest
import importlib
import io
import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from heckmanfa import Heckman
from heckmanfa.analysis import refits
from heckmanfa.cli import app
from heckmanfa.cli.run_fit import FEATURES
from heckmanfa.datasets import load_mroz

ROOT = Path(__file__).parents[1]
COMMAND_LINE = (
    *("docs/first_report.md", "docs/your_file.md", "docs/saving_and_predicting.md"),
    "docs/options.md",
)
PAGES = (
    *("docs/index.md", "docs/searching.md", "docs/search_study.md"),
    *("docs/paper_findings.md", "docs/claims.md", "docs/search_inference.md"),
    *("docs/specification_study.md", *COMMAND_LINE, "docs/rho_window.md", "docs/diagnostics.md"),
    *("docs/from_r.md", "docs/from_stata.md", "docs/reproduction.md", "docs/faq.md"),
    *("docs/how_far.md", "docs/binary.md", "docs/ordered.md", "docs/compas.md"),
    *("docs/not_normal.md", "docs/tables.md", "docs/surveys.md"),
    *("docs/probit_coverage.md", "docs/log_outcomes.md", "docs/data.md"),
    *("docs/serving.md", "docs/scikit_learn.md", "docs/should_i.md", "docs/features.md"),
    *("docs/studies.md", "docs/reading_the_report.md", "docs/accuracy.md", "docs/treatment.md"),
    *("docs/weighting.md", "docs/bounds.md"),
)
WITH_CODE = (
    *("README.md", "docs/index.md", "docs/searching.md", "docs/claims.md", *COMMAND_LINE),
    *("docs/rho_window.md", "docs/diagnostics.md", "docs/from_r.md", "docs/from_stata.md"),
    *("docs/faq.md", "docs/how_far.md", "docs/binary.md", "docs/log_outcomes.md"),
    *("docs/data.md", "docs/ordered.md", "docs/not_normal.md"),
    *("docs/serving.md", "docs/scikit_learn.md", "docs/should_i.md", "docs/features.md"),
    *("docs/treatment.md", "docs/tables.md", "docs/weighting.md", "docs/bounds.md"),
    "docs/surveys.md",
)
WITH_COMMANDS = (
    *("README.md", *COMMAND_LINE),
    *("docs/treatment.md", "docs/ordered.md", "docs/not_normal.md", "docs/surveys.md"),
    "docs/bounds.md",
)
BLOCK = re.compile(
    r"^```(python|sh)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
# Results are 110 columns wide and have no colours, whatever terminal the tests run in.
NO_TERMINAL = {"COLUMNS": "110", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
# Bootstrap samples of an answer as users have them, and where no document shows what they say.
N_BOOT, FEW = refits.N_BOOT, 3


def lines(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


def run_python(code, name, names):
    """What a block of Python prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), names)
    return printed.getvalue()


def commands(code):
    """The arguments of each command of a block; none if it holds other commands than heckmanfa."""
    said = code.replace("\\\n", " ").splitlines()
    if not all(line.startswith("heckmanfa ") for line in said):
        return []
    return [shlex.split(line)[1:] for line in said]


def run_command(arguments):
    """Whether a command succeeds, and what it prints: its error alone if it fails."""
    result = CliRunner().invoke(app, arguments, env=NO_TERMINAL)
    if result.exit_code == 0:
        return True, result.stdout
    if not isinstance(result.exception, SystemExit):
        raise result.exception
    # Lines that end in dots show progress.
    said = [line for line in result.stderr.splitlines() if not line.endswith(" ...")]
    return False, "".join(f"{line}\n" for line in said)


def write_tables():
    """Write the tables that README.md uses: the demo's, and the women without a wage."""
    table = load_mroz()[["lwage", *FEATURES]]
    table.to_csv("mroz.csv", index=False)
    table[table["lwage"].isna()].drop(columns="lwage").to_csv("women.csv", index=False)


def run_blocks(name):
    """Yield each block of a document that is run, the output shown below it, and its output."""
    names = {}
    if name == "README.md":
        write_tables()
    for block in BLOCK.finditer((ROOT / name).read_text(encoding="utf-8")):
        kind, code, shown = block.groups()
        refits.N_BOOT = N_BOOT if "bootstrap" in (shown or "") else FEW
        if kind == "python":
            yield block, shown or "", run_python(code, name, names)
        elif name in WITH_COMMANDS and commands(code):
            ends = [run_command(arguments) for arguments in commands(code)]
            printed = "".join(text for _, text in ends)
            # If no output is shown, only the files that the commands write matter.
            assert shown is not None or all(well for well, _ in ends), printed
            yield block, shown or "", printed if shown is not None else ""


# Bootstraps of the page on claims take as long as ten other pages.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.study) if name == "docs/claims.md" else name
        for name in WITH_CODE
    ],
)
@pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette")
@pytest.mark.usefixtures("mlflow")
def test_code_in_documents_prints_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(refits, "N_BOOT", N_BOOT)
    check_output(name)


@pytest.mark.usefixtures("paper_files")
def test_the_page_on_compas_prints_what_is_shown():
    check_output("docs/compas.md")


def check_output(name):
    shown_any = False
    for _, shown, printed in run_blocks(name):
        expected, found = lines(shown), lines(printed)
        if expected[-1:] == ["..."]:
            # The beginning of a longer output.
            expected.pop()
            found = found[: len(expected)]
        assert found == expected
        shown_any |= bool(shown)
    assert shown_any


def test_calls_beside_those_of_stata_run():
    page = (ROOT / "docs/from_stata.md").read_text(encoding="utf-8")
    tables = page.partition("## `predict`")[2].partition("## The same numbers")[0]
    calls = re.findall(r"`(m\.[^`]+)`", tables)
    assert len(calls) > 20
    d = load_mroz().assign(region=lambda d: np.where(d["kids618"] > 0, "north", "south"), w=1.0)
    formulas = Heckman.from_formula("lwage ~ educ + region", "lfp ~ educ + region + age", d)
    # Evaluating formulas takes time: calls that need none of their names run without.
    X = d[["educ", "city", "age", "kids5"]]
    arrays = Heckman(["educ"]).fit(X, d["lwage"])
    for call in calls:
        named = "region" in call or "sample_weight" in call
        names = {"m": formulas, "d": d} if named else {"m": arrays, "d": X}
        assert eval(call, names) is not None


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("docs/faq.md", "They have to fit into memory"),
        ("docs/claims.md", "10.9% higher"),
        ("docs/claims.md", "does not need the law"),
        ("docs/claims.md", "the test sees little"),
        ("docs/diagnostics.md", "trust the second"),
        ("docs/mathematics.md", "it should hold when the model is wrong"),
        ("docs/index.md", "which way least squares is off"),
        ("docs/claims.md", "is one of them does not depend on the sample"),
        ("docs/claims.md", "do not contradict one another"),
        ("docs/claims.md", "too heavy for a normal law"),
        ("docs/claims.md", "errors have heavier tails than"),
        ("docs/from_stata.md", "unless told otherwise (`rhosigma`)"),
        ("docs/diagnostics.md", "uses the higher one in any case"),
        ("docs/searching.md", "in 42.5% of them; without a window, after BIC, in 5.5%"),
        ("docs/search_study.md", "with no window it rejects in 4.5% to 5.5%"),
        ("docs/rho_window.md", "a stronger statement than any model in a window can make"),
        ("docs/benchmarks.md", "two to three times the two-step estimates"),
        ("docs/paper_findings.md", "Nearly all numbers come out"),
        ("README.md", "Every estimator takes Parquet"),
        ("SECURITY.md", "A file is written only where you ask for it"),
    ],
)
def test_what_was_found_untrue_does_not_come_back(page, wrong):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert wrong not in text


@pytest.mark.parametrize("page", ["docs/claims.md", "docs/faq.md"])
def test_pages_that_say_weights_are_found_name_the_method_that_refuses_them(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert "`specification_tests` refuses sampling weights" in text


def test_the_page_of_the_command_line_has_every_option_of_fit():
    fit = next(command for command in app.registered_commands if command.callback.__name__ == "fit")
    options = typer.main.get_command_from_info(
        fit, pretty_exceptions_short=True, rich_markup_mode=None
    ).params
    names = {
        name
        for option in options
        for name in option.opts
        if name.startswith("--") and name != "--help"
    }
    page = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    table = page.split("\n## fit\n")[1].split("\n### ")[0]
    assert len(names) > 20
    assert sorted(name for name in names if f"`{name}" not in table) == []


def test_relative_differences_are_not_log_points():
    text = " ".join((ROOT / "docs/claims.md").read_text(encoding="utf-8").split())
    found = re.findall(r"exp\(([0-9.]+)\) − 1 = ([0-9.]+)%", text)
    assert len(found) >= 2
    for points, percent in found:
        assert round(100 * math.expm1(float(points)), 1) == pytest.approx(float(percent), abs=0.051)


def test_the_picture_that_documents_show_is_there():
    for name in ("README.md", "docs/index.md", "docs/claims.md"):
        page = ROOT / name
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file()


@pytest.mark.parametrize("name", ["README.md", "SECURITY.md", *PAGES])
def test_headings_and_fences_have_blank_lines_around_them(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE)
    for block in blocks:
        text = text.replace(block, "# fence")
    for line in re.finditer(r"^#.*$", text, re.MULTILINE):
        assert text[: line.start()].endswith(("\n\n", "")[line.start() == 0]), line[0]
        assert text[line.end() :].startswith("\n\n") or not text[line.end() :].strip(), line[0]


def test_links_between_documents_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES):
        page = ROOT / name
        for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http", "#")):
                assert (page.parent / target.split("#")[0]).exists(), (name, target)


SOURCE = ROOT / "src"
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
    if re.search(r">>> (?!.*\+SKIP)", path.read_text(encoding="utf-8"))
)


def test_the_estimators_have_examples():
    assert {"heckmanfa.estimators.heckman", "heckmanfa.estimators.searches"} <= {*WITH_EXAMPLES}


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_print_what_is_shown(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted > 0


def test_files_that_documents_name_exist():
    pages = ("README.md", "SECURITY.md", *(f"docs/{page.name}" for page in ROOT.glob("docs/*.md")))
    named = {
        (page, path)
        for page in pages
        for path in re.findall(r"`((?:heckmanfa|tests)/[\w/.]+)`", (ROOT / page).read_text("utf-8"))
    }
    assert named
    for page, path in sorted(named):
        assert any((folder / path).exists() for folder in (ROOT, SOURCE)), (page, path)


def test_the_reference_shows_only_names_that_rooms_export():
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    shown = re.findall(r"^::: ([\w.]+)", page, re.MULTILINE)
    assert len(shown) > 40
    for path in shown:
        room, _, name = path.rpartition(".")
        room_shows = importlib.import_module(".".join(room.split(".")[:2])).__all__
        if name not in room_shows and name.islower():
            # A public module has names of its own.
            assert importlib.import_module(path).__all__
        else:
            assert name in room_shows, path

"""Names in a hostile table are shown, and nothing in them is obeyed, at any width."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heckmanfa import Heckman
from heckmanfa.cli import app
from heckmanfa.datasets import make_selection

ESCAPE, TURN, MARKUP = "a\x1b[2Jb", "c\u202ed\u200b", "[bold]e[/x]"
READABLE = "Größe 年収"
HUGE = "x" * 500_000
FILE = "in\x1b]0;t\x07[red]\u2066.csv"


@pytest.fixture
def table(shell):
    """A file of a hostile name, with hostile names and levels."""
    data = make_selection(300, 4, 2, random_state=0)
    frame = pd.DataFrame(data.X, columns=[ESCAPE, TURN, MARKUP, READABLE])
    levels = np.where(np.arange(300) % 3 == 0, "no\x1b[31mrth", "south\u202e")
    frame = frame.assign(**{"[y]\x9b": data.y, "region": levels})
    frame.to_csv(shell.folder / FILE, index=False)
    return frame


def harmless(text):
    return not [one for one in text if unicodedata.category(one)[0] == "C" and one not in "\n\t"]


def run(*words, **options):
    result = CliRunner().invoke(app, list(words), **options)
    said = result.stdout + result.stderr
    assert harmless(said), ascii(said)
    return result.exit_code, said


def quick_comparison(monkeypatch):
    """Compare two of the methods only."""
    import heckmanfa.analysis.methods_compared as module

    every = module.methods
    monkeypatch.setattr(module, "methods", lambda *given: dict(list(every(*given).items())[:2]))


FIT = ("fit", FILE, "--outcome", "[y]\x9b", "--search", "none")


def test_no_command_prints_what_a_terminal_obeys(shell, table, monkeypatch):
    status, text = run(*FIT, "--save", "m\x1b.heckmanfa", "--json", "j.json", "--report", "r.html")
    assert status == 0, text
    for one in (r"a\x1b[2Jb", r"c\u202ed\u200b", MARKUP, READABLE, r"region = south\u202e"):
        assert one in " ".join(text.split()), one
    assert r"m\x1b.heckmanfa" in text
    # What programs read keeps the names.
    found = shell.json("j.json")
    assert {ESCAPE, TURN, MARKUP} <= {one["term"] for one in found["estimates"]}
    status, text = run("predict", "m\x1b.heckmanfa", FILE, "--out", "p\x1b.csv", "--keep-columns")
    assert status == 0, text
    assert ESCAPE in pd.read_csv(shell.folder / "p\x1b.csv").columns
    quick_comparison(monkeypatch)
    status, text = run(
        "compare", FILE, "--outcome", "[y]\x9b", "--folds", "2", "--repeats", "1", "--no-ru"
    )
    assert status == 0, text
    assert r"a\x1b[2Jb" in text


def test_the_report_shows_names_and_obeys_none(shell, table):
    status, _ = run(*FIT[:4], "--search", "best-subset", "--report", "r.html")
    assert status == 0
    page = (shell.folder / "r.html").read_text(encoding="utf-8")
    assert harmless(page)
    assert r"<title>[y]\x9b: a selection model of in\x1b]0;t\x07[red]\u2066.csv</title>" in page
    assert r'data-f="a\x1b[2Jb"' in page


@pytest.mark.parametrize(
    "words",
    [
        ("--predict-with", "a\x1b[2J"),
        ("--features", "\u202e"),
        ("--weights", MARKUP),
        ("--selected", "region"),
        ("--numeric", "region"),
        ("--report", "no\x1b/r.html"),
    ],
)
def test_no_error_prints_what_a_terminal_obeys(shell, table, words):
    status, text = run(*FIT, *words)
    assert status == 2
    assert "error: " in text


def test_a_message_prints_a_line_of_a_huge_value(shell):
    data = make_selection(300, 2, 1, random_state=0)
    frame = pd.DataFrame(data.X, columns=["a", "b"]).assign(y=data.y, c="x")
    frame.loc[::2, "c"] = HUGE
    frame.loc[1::4, "c"] = "y"
    frame = frame.iloc[:6]
    frame.to_csv(shell.folder / "in.csv", index=False)
    for words in (("--numeric", "c"), ("--selected", "c"), ("--outcome", "c")):
        status, text = run("fit", "in.csv", "--outcome", "y", *words)
        assert status == 2
        assert len(max(text.splitlines(), key=len)) < 700, text[:2000]
    (shell.folder / "name.csv").write_text(f"{HUGE},y\n1,2\n3,\n")
    status, text = run("fit", "name.csv", "--outcome", "z")
    assert status == 2
    assert len(max(text.splitlines(), key=len)) < 700


def test_an_unseen_level_of_megabytes_takes_a_line(shell):
    data = make_selection(300, 2, 1, random_state=0)
    frame = pd.DataFrame(data.X, columns=["a", "b"]).assign(y=data.y)
    frame["c"] = np.where(np.arange(300) % 3 == 0, "north", "south")
    frame.to_csv("in.csv", index=False)
    status, text = run(
        "fit", "in.csv", "--outcome", "y", "--search", "none", "--save", "m.heckmanfa"
    )
    assert status == 0, text
    frame.loc[5, "c"] = HUGE
    frame.to_csv("new.csv", index=False)
    status, text = run("predict", "m.heckmanfa", "new.csv", "--out", "p.csv")
    assert status == 2
    assert "(500,000 characters)" in text
    assert len(text) < 1000


def test_a_model_s_own_words_are_printable(table):
    frame = table.drop(columns=["region"])
    X, y = frame.drop(columns="[y]\x9b"), frame["[y]\x9b"]
    model = Heckman([ESCAPE, TURN], method="ml").fit(X, y)
    summary = model.summary(include=[model.margins(X), model.uncertainty_interval()])
    for text in (
        str(summary),
        summary._repr_html_(),
        summary.to_latex(),
        summary.to_markdown(),
        str(model.diagnostics()),
        model.diagnostics()._repr_html_(),
        str(model.margins(X)),
        model.margins(X)._repr_html_(),
    ):
        assert harmless(text), ascii(text)
    assert r"a\x1b[2Jb" in str(summary)
    assert READABLE in str(summary)
    assert list(model.tidy()["term"])[1] == ESCAPE


def test_a_huge_name_takes_a_line_of_a_summary():
    data = make_selection(200, 2, 1, random_state=0)
    model = Heckman([HUGE]).fit(pd.DataFrame(data.X, columns=[HUGE, "b"]), data.y)
    for text in (str(model.summary()), model.summary()._repr_html_(), str(model.diagnostics())):
        assert len(text) < 10_000


def test_pictures_show_names_as_they_are(table):
    plots = pytest.importorskip("heckmanfa.plots")
    pytest.importorskip("matplotlib")
    frame = table.drop(columns=["region"]).rename(columns={TURN: "$x^2$ and $y"})
    model = Heckman([ESCAPE, "$x^2$ and $y"]).fit(frame.drop(columns="[y]\x9b"), frame["[y]\x9b"])
    panel = plots.coefficients(model)
    panel.figure.canvas.draw()
    assert [one.get_text() for one in panel.get_yticklabels()] == [
        r"a\x1b[2Jb",
        r"\$x^2\$ and \$y",
    ]
    import matplotlib.pyplot as plt

    plt.close(panel.figure)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_terms_stay_readable_where_there_is_little_room(shell, width):
    data = make_selection(300, 3, 2, random_state=0)
    long = "years of schooling completed by 1975"
    frame = pd.DataFrame(data.X, columns=[long, "exper", "b" * 90]).assign(y=data.y)
    frame.to_csv(shell.folder / "in.csv", index=False)
    words = ["fit", "in.csv", "--outcome", "y", "--search", "none"]
    status, text = run(*words, env={"COLUMNS": str(width)})
    assert status == 0, text
    assert max(map(len, text.splitlines())) <= width
    table = text[text.index("  feature") :].splitlines()
    head, names = table[0], [line[2:].split("  ")[0] for line in table[1:] if line[:3] == "  b"]
    assert any(line.startswith("  exper ") for line in table)
    # Names are cut in the middle, and keep both ends.
    assert len(names) == 1
    assert re.fullmatch(r"b{5,}…b{4,}", names[0])
    cut = next(line[2:].split("  ")[0] for line in table if line.startswith("  years"))
    assert cut == long if width >= 80 else re.fullmatch(r"years.*….*1975", cut)
    assert "effect" in head
    assert ("95% interval" in head) == (width >= 60)
    assert ("least squares" in head) == (width >= 60)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_columns_of_compare_are_left_out_by_importance(shell, monkeypatch, width):
    quick_comparison(monkeypatch)
    data = make_selection(200, 2, 1, random_state=0)
    pd.DataFrame(data.X, columns=["a", "b"]).assign(y=data.y).to_csv("in.csv", index=False)
    words = ["compare", "in.csv", "--outcome", "y", "--folds", "2", "--repeats", "1", "--no-ru"]
    status, text = run(*words, env={"COLUMNS": str(width)})
    assert status == 0, text
    assert max(map(len, text.splitlines())) <= width
    text, _, estimates = text.partition("Estimates for everyone")
    assert "naive OLS" in estimates
    head = text.split("┡")[0]
    assert all(one in head for one in ("method", "MSE", "R2"))
    cells = [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")]
    assert all(len(one) > 2 for one in cells if one)


def test_a_terminal_is_as_wide_as_it_says_and_a_file_as_wide_as_it_needs(monkeypatch):
    from heckmanfa.cli.console import output

    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert output().width == 110
    assert output(200).width == 200
    monkeypatch.setenv("COLUMNS", "72")
    assert output().width == 72


def test_a_forgotten_escape_is_caught_by_the_console(capsys):
    from heckmanfa.cli.console import Column, PrintableConsole, print_table

    console = PrintableConsole(width=60)
    console.print("a\x1b[2Jb\u202e", markup=False)
    console.rule("a\x1b[2Jb")
    print_table(console, "t\x1b", [Column("n\x1b", is_name=True), Column("x")], [["c\x1b", "1"]])
    said = capsys.readouterr().out
    assert "\x1b[2J" not in said
    assert harmless(re.sub(r"\x1b\[[0-9;]*m", "", said))


def test_a_check_that_names_a_feature_put_back_is_printable(table):
    X, y = table.drop(columns=["[y]\x9b", "region"]), table["[y]\x9b"]
    X = X.rename(columns={MARKUP: "a\x1bc", READABLE: "\u202ed"})
    (found,) = Heckman([ESCAPE, TURN]).fit(X, y).what_if().findings()
    assert "largest |t|" in found.value
    assert harmless(found.value), ascii(found.value)

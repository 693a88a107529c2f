"""What ``heckmanfa fit`` prints: the answer first, in any width, quietly, or as JSON."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from heckmanfa import HeckmanAverage, cli
from heckmanfa.cli import app, console
from heckmanfa.cli.answer_screen import MOST_ROWS, role_lines
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.results.evidence import evidence_of
from heckmanfa.search.averaging import gibbs
from heckmanfa.text import progress

FIT = ("fit", "mroz.csv", "--outcome", "lwage")
LONG = "years of schooling that the mother of the respondent completed"
HOSTILE = {"educ": LONG, "exper": "年収と経験年数の合計を表す変数", "age": "<b>=1+1\x1b[2J"}


def run(*words, **options):
    result = CliRunner().invoke(app, list(words), **options)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.usefixtures("mroz")
def test_the_answer_is_first_then_roles_then_checks_then_files():
    result = run(*FIT, "--json", "out.json", env={"COLUMNS": "100"})
    found = json.loads(Path("out.json").read_text(encoding="utf-8"))
    text = " ".join(result.stdout.split())
    first, how_much, _, trust = found["answer"]["sentences"]
    tile = found["answer"]["verdicts"]["selection"]
    # The numbers begin with the chance, which the words beside the title are.
    selection = f"{tile['question']} {tile['title']}. {tile['numbers'][:40]}"
    assert text.startswith(f"{first} {how_much} {trust}")
    places = [
        *(text.index(one) for one in (trust, "mroz.csv: 753 rows", " feature ", selection)),
        *(text.index(f"{one['level']} {one['title'][:20]}") for one in found["checks"][:1]),
        text.index("may not be claimed"),
        text.index("results written to out.json"),
    ]
    assert places == sorted(places)
    assert first.startswith(found["answer"]["headline"])
    best = found["best"]
    assert f"The best set, {' + '.join(best['features'])}, has {best['weight']:.0%}" in text
    roles = {one["feature"]: one for one in found["roles"]}
    inclusion = {one["feature"]: one["bic"] for one in found["inclusion"]}
    assert inclusion.pop("correction") == found["selection"]["chance"]
    assert {name: one["chance"] for name, one in roles.items()} == inclusion
    estimates = {one["term"]: one for one in found["estimates"] if one["equation"] == "prediction"}
    for name, one in roles.items():
        assert one["effect"] == pytest.approx(estimates[name]["estimate"])
        assert one["ci_high"] == pytest.approx(estimates[name]["ci_high"])
    levels = [one["level"] for one in found["checks"]]
    assert levels == sorted(levels, key=["problem", "caution", "note", "ok"].index)
    assert found["may_write"]
    assert [one["claim"].startswith("That ") for one in found["claims"]] == [True] * len(
        found["claims"]
    )


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_lines_fit_the_window_and_names_keep_both_ends(mroz, shell, width):
    mroz.rename(columns=HOSTILE).to_csv(shell.folder / "mroz.csv", index=False)
    said = run(*FIT, "--search", "none", env={"COLUMNS": str(width)}).stdout
    lines = said.splitlines()
    assert max(map(cell_len, lines)) <= min(width, 120)
    assert "\x1b" not in said
    assert r"\x1b[2J" in said
    names = [line[2:].split("  ")[0] for line in lines if line.startswith("  ")]
    assert any(name.startswith("years") and name.endswith("ted") for name in names)
    assert any(name.startswith("年収") and name.endswith("数") for name in names)
    if width >= 80:
        assert "least squares" in said


@pytest.mark.usefixtures("mroz")
def test_colours_follow_the_terminal_and_no_color():
    forced = {"FORCE_COLOR": "1", "NO_COLOR": None, "COLUMNS": "80", "TERM": "xterm"}
    search = ("--search", "none")
    assert "\x1b[1m" in run(*FIT, *search, env=forced).stdout
    plain = run(*FIT, *search, env={**forced, "NO_COLOR": "1"}).stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)
    piped = run(*FIT, *search, env={"FORCE_COLOR": None, "COLUMNS": "80"}).stdout
    assert "\x1b" not in piped


@pytest.mark.usefixtures("mroz")
def test_a_line_that_wraps_keeps_its_colour_to_the_end():
    forced = {"FORCE_COLOR": "1", "NO_COLOR": None, "COLUMNS": "60", "TERM": "xterm"}
    lines = run(*FIT, "--search", "none", "--verbose", env=forced).stdout.splitlines()
    begun = {"caution": "33", "ok": "32"}
    style, n_wrapped = "", 0
    for line in lines:
        codes, text = re.findall(r"\x1b\[([0-9;]+)m", line), re.sub(r"\x1b\[[0-9;]+m", "", line)
        assert text == text.rstrip()
        level = text[:9].strip()
        if level in begun:
            style = begun[level]
        elif not text.startswith(" " * 9):
            style = ""
        elif codes[:1] == ["2"]:
            style = "2"
        else:
            n_wrapped += style in begun.values()
        assert not style or codes == [style, "0"], line
    assert n_wrapped >= 2


@pytest.mark.usefixtures("mroz")
def test_notes_and_what_is_fine_are_counted_unless_asked_for():
    words = (*FIT, "--json", "out.json", "--force")
    brief, whole = (
        " ".join(run(*words, *more, env={"COLUMNS": "100"}).stdout.split())
        for more in ((), ("--verbose",))
    )
    checks = json.loads(Path("out.json").read_text(encoding="utf-8"))["checks"]
    n = {level: sum(one["level"] == level for one in checks) for level in ("note", "ok")}
    assert min(n.values()) >= 1
    assert f"--verbose shows {n['note']} note" in brief
    assert f"{n['ok']} checks that are fine." in brief
    for one in checks:
        begun = one["title"].removesuffix(".").split(":")[0]
        label = f" {one['level']} {begun}"
        assert label in whole
        assert (label in brief) == (one["level"] not in n)
    assert "--verbose shows" not in whole


@pytest.mark.usefixtures("mroz")
def test_the_answer_comes_again_where_it_scrolled_away():
    def first_lines(lines, **options):
        terminal = {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "100", "TERM": "xterm"}
        said = run(*FIT, "--search", "none", env={**terminal, "LINES": lines} | options).stdout
        plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
        first = plain.splitlines()[0]
        return plain.count(first), len(plain.splitlines()), plain, first

    times, n_lines, text, first = first_lines("20")
    assert times == 2
    # The last lines are the answer as it stands above.
    answer = text[: text.index("\n\n")]
    assert text.rstrip("\n").endswith(f"again:\n{answer}")
    assert answer.startswith(first)
    assert first_lines("200")[0] == 1
    alone = n_lines - len(answer.splitlines()) - 2
    assert [first_lines(str(height))[0] for height in (alone, alone + 1)] == [2, 1]
    # A pipe has no height, and a terminal may not tell its own.
    assert first_lines("20", FORCE_COLOR=None)[0] == 1
    assert first_lines(None)[0] == 1


@pytest.mark.usefixtures("mroz")
def test_quiet_prints_nothing_but_errors(shell):
    result = run(*FIT, "--search", "none", "--quiet", "--json", "out.json")
    assert (result.stdout, result.stderr) == ("", "")
    assert "out.json" in shell.files()
    refused = CliRunner().invoke(app, [*FIT[:3], "wages", "--quiet"])
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: ")


@pytest.mark.usefixtures("mroz")
def test_a_brief_is_written_beside_a_report_and_by_its_rules(shell):
    words = (*FIT, "--search", "none", "--brief", "brief.html")
    text = " ".join(run(*words, "--report", "report.html").stdout.split())
    assert "report written to report.html brief written to brief.html" in text
    brief, report = (
        Path(name).read_text(encoding="utf-8") for name in ("brief.html", "report.html")
    )
    assert "What you may write" in brief
    assert "<nav" in report
    assert "<nav" not in brief
    before = {name: Path(name).stat().st_mtime_ns for name in shell.files()}
    for more, why in (
        ((), "brief.html exists; pass --force"),
        (("--report", "./brief.html", "--force"), "--brief"),
        (("--brief", "mroz.csv", "--force"), "--brief"),
        (("--brief", "brief.pdf"), ".html"),
    ):
        refused = CliRunner().invoke(app, [*words, *more])
        assert refused.exit_code == 2
        assert why in refused.stderr
    assert {name: Path(name).stat().st_mtime_ns for name in shell.files()} == before
    run(*words, "--force")


@pytest.mark.usefixtures("mroz")
def test_json_on_standard_output_is_alone_there(shell):
    before = shell.files()
    result = run(*FIT, "--search", "none", "--json", "-")
    found = json.loads(result.stdout)
    assert found["command"].startswith("heckmanfa fit mroz.csv")
    assert all(line.endswith(" ...") for line in result.stderr.splitlines())
    assert shell.files() == before


def test_of_many_features_the_rest_is_counted():
    data = make_selection(900, 26, 3, random_state=1)
    X = pd.DataFrame(data.X, columns=[f"f{place}" for place in range(26)])
    evidence = evidence_of(HeckmanAverage(max_features=2).fit(X, data.y).fit_)
    lines = role_lines(evidence, 80)
    shown = [line.text.split()[0] for line in lines if line.kind == "feature"]
    likely = {one.name for one in evidence.features if (one.chance or 0.0) >= 0.1}
    assert set(shown) >= likely or len(shown) == MOST_ROWS
    assert len(shown) <= MOST_ROWS
    rest = [one.chance for one in evidence.features if one.name not in shown]
    assert lines[-1].kind == "rest"
    assert f"+{len(rest)} " in lines[-1].text
    assert "none above" in lines[-1].text
    assert max(rest) <= min(one.chance for one in evidence.features if one.name in shown)


# Progress. ----------------------------------------------------------------------------------------


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def monotonic(self):
        return self.now


def test_progress_says_what_how_far_and_about_how_long(monkeypatch):
    clock, said = Clock(), []
    monkeypatch.setattr(progress, "time", clock)
    with progress.telling(said.append):
        with progress.progress_line(0, "search", "nodes", 9_000_000, at_most=True) as show:
            show(0, "")
            clock.now += 0.01
            show(10, "too soon to say again")
            clock.now += 2.0
            show(1_200_000, "")
            with progress.progress_line(0, "inner", "steps", 3) as inner:
                assert inner is None
        with progress.progress_line(0, "average", "sweeps", 1600) as show:
            clock.now += 3.0
            show(400, "")
            show(1600, "done")
    assert said == [
        "search: 0 of at most 9.0 M nodes",
        "search: 1.2 M of at most 9.0 M nodes, 13 s left at most",
        "average: 400 of 1,600 sweeps, about 9 s left",
        "average: 1,600 of 1,600 sweeps; done",
    ]
    with progress.progress_line(0, "search", "nodes", None) as show:
        assert show is None


def test_a_pipe_gets_a_line_for_each_step_and_seldom_one_for_how_far(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(console, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with console.saying() as say:
        say("fitting 753 rows")
        with progress.progress_line(0, "average", "sweeps", 10) as show:
            for sweep in range(10):
                clock.now += 3.0
                progress.time.sleep(0.11)
                show(sweep, "")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fitting 753 rows ..."
    assert 2 <= len(lines) <= 4
    assert all(re.match(r"average: \d of 10 sweeps.* \.\.\.", line) for line in lines[1:])
    with console.saying(quiet=True) as say:
        say("nothing")
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.SearchWarning")
def test_a_wide_table_is_sampled_with_progress(monkeypatch):
    for constant, value in {"LEAST_SWEEPS": 40, "_STEPS": 0, "_BURN_IN": 10}.items():
        monkeypatch.setattr(gibbs, constant, value)
    data = make_selection(300, 24, 3, random_state=0)
    said = []
    with progress.telling(said.append):
        HeckmanAverage().fit(data.X, data.y)
    assert any(
        re.match(r"average: \d+ of at most [\d,]+ sweeps of the sampler", one) for one in said
    )
    assert np.all([one.startswith("average: ") for one in said])


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_terminal_without_a_minus_sign_gets_a_hyphen(tmp_path, encoding, monkeypatch):
    table = load_mroz()[["lwage", "educ", "kids5", "age"]].rename(columns={"kids5": "Größe年"})
    table.to_csv(tmp_path / "women.csv", index=False)
    command = ["fit", "women.csv", "--outcome", "lwage", "--search", "none"]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["heckmanfa", *command, "--predict-with", "educ"])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    out.flush()
    err.flush()
    printed = out.buffer.getvalue().decode(encoding)
    assert re.search(r"interval -0\.\d+ to ", printed)
    assert "\\u5e74" in printed
    assert "Traceback" not in err.buffer.getvalue().decode(encoding)

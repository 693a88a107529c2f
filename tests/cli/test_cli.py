"""The command line: what it prints, what it writes, and how it ends."""

import importlib.util
import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

import heckmanfa
from heckmanfa.cli import app
from heckmanfa.paper import TABLES, PaperTable, protocol
from heckmanfa.paper.protocol import COLUMNS, CRIME, Figure, Reason, Row


def call(*arguments):
    """The exit status and what was printed, without colours."""
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result.exit_code, re.sub(r"\x1b\[[0-9;]*m", "", result.output)


@pytest.fixture
def asked(monkeypatch):
    """Replace a table by one that keeps what it was asked for."""
    options = []

    def experiment(dataset, given):
        options.append(given)
        return [Figure("rho", 0.0423)]

    rows = (
        Row(CRIME, "a row", experiment, {"rho": 0.0423}, deterministic=True),
        Row(CRIME, "another row", lambda *_: [Figure("rho", 0.1)]),
    )
    monkeypatch.setitem(TABLES, "sampling", PaperTable("A stub", rows))
    return options


def test_help_says_what_there_is():
    status, text = call("--help")
    assert status == 0
    assert "reproduce" in text
    status, text = call("reproduce", "--help")
    assert status == 0
    for option in ("--quick", "--as-published", "--seeds", "--splits", "--no-ru", "--out"):
        assert option in text
    assert "HECKMANFA_DATA" in text


def test_no_command_shows_the_help():
    assert "reproduce" in call()[1]


def test_the_version_is_the_packages():
    assert call("--version") == (0, f"heckmanfa {heckmanfa.__version__}\n")


def test_a_quick_run_prints_our_figures_beside_the_printed_ones(paper_files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, text = call("reproduce", "--quick")
    assert status == 0
    for name in ("selfeatures", "sampling", "topjfeats", "moretopj"):
        assert f"{name}: {TABLES[name].title}" in text
    assert "significance" not in text
    lines = text.splitlines()
    words = "70 deterministic rows: 62 match the paper, 8 differ for a known reason and none is OFF"
    assert words in " ".join(text.split())
    assert "- 5 of the 8: the file's order, which the feature numbers follow" in lines
    assert any("rho" in line and line.count("0.0423") == 2 for line in lines)
    assert any("0.0200" in line and "0.0203" in line and "differs" in line for line in lines)
    assert any("Heckman-C, J = 12" in line and line.count("0.0524") == 2 for line in lines)
    assert text.count("OFF") == 1


def test_one_table_can_be_asked_for(paper_files):
    status, text = call("reproduce", "--quick", "--as-published", "topjfeats")
    assert status == 0
    assert "topjfeats" in text
    assert "sampling:" not in text
    assert any(line.count("0.3551") == 2 for line in text.splitlines())


def test_an_unknown_table_ends_with_a_suggestion():
    status, text = call("reproduce", "samplings")
    assert status == 2
    assert "there is no table 'samplings'. Did you mean 'sampling'" in text
    assert "moretopj" in text
    status, text = call("reproduce", "qqq")
    assert status == 2
    assert "there is no table 'qqq'. The tables: selfeatures," in text


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--splits", "1"], ["--nonsense"]])
def test_options_that_make_no_sense_are_refused(arguments):
    assert call("reproduce", *arguments)[0] == 2


def test_without_data_one_line_says_what_to_do(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("the network is unreachable\nin two lines")

    monkeypatch.setenv("HECKMANFA_DATA", str(tmp_path))
    monkeypatch.setattr("heckmanfa.datasets.paper_data.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(protocol, "_fetched", protocol._fetched.__wrapped__)
    monkeypatch.setattr("pooch.retrieve", fail)
    status, text = call("reproduce", "--quick")
    assert status == 2
    assert text.startswith("error: ")
    assert len(text.strip().splitlines()) == 1
    for words in ("communities.data", "could not be downloaded", "network", "HECKMANFA_DATA"):
        assert words in text
    assert list(tmp_path.iterdir()) == []


def test_a_deterministic_row_that_is_off_is_shown_and_fails(paper_files, monkeypatch):
    table = TABLES["sampling"]
    first, *others = table.rows
    wrong = replace(first, printed={**first.printed, "rho": 0.0424})
    monkeypatch.setitem(TABLES, "sampling", replace(table, rows=(wrong, *others)))
    status, text = call("reproduce", "--quick", "sampling")
    assert status == 1
    assert "and 1 is OFF" in " ".join(text.split())
    assert any("0.0423" in line and "0.0424" in line and "OFF" in line for line in text.split("\n"))


def test_tables_are_written_so_that_they_can_be_read_back(paper_files, tmp_path):
    folder = tmp_path / "new" / "tables"
    status, text = call("reproduce", "--quick", "sampling", "topjfeats", "--out", str(folder))
    assert status == 0
    assert "written to" in text
    assert sorted(one.name for one in folder.iterdir()) == sorted(
        f"{name}.{kind}" for name in ("sampling", "topjfeats") for kind in ("csv", "json", "md")
    )
    frame = pd.read_csv(folder / "sampling.csv")
    assert list(frame.columns) == COLUMNS
    record = json.loads((folder / "sampling.json").read_text())
    assert record["table"] == "sampling"
    assert record["title"] == TABLES["sampling"].title
    from_json = pd.DataFrame(record["rows"])[COLUMNS]
    pd.testing.assert_series_equal(from_json["ours"], frame["ours"], rtol=1e-8)
    assert from_json["quantity"].tolist() == frame["quantity"].tolist()
    lines = (folder / "sampling.md").read_text().splitlines()
    assert lines[0] == f"# sampling: {TABLES['sampling'].title}"
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert {len(row) for row in table} == {8}
    assert table[0][:5] == ["dataset", "row", "quantity", "ours", "printed"]
    assert set(table[1]) == {"---"}
    assert len(table) - 2 == len(frame)
    assert table[2][2:5] == ["rho", "0.0423", "0.0423"]


def test_options_reach_the_tables(asked):
    arguments = ["--seeds", "2", "--splits", "3", "--as-published", "--no-ru"]
    assert call("reproduce", "sampling", *arguments)[0] == 0
    (options,) = asked
    assert (options.seeds, options.splits, options.quick) == (2, 3, False)
    assert options.as_published
    assert not options.ru


def test_rows_beyond_the_paper_can_be_left_out(asked):
    assert "another row" in call("reproduce", "sampling", "--no-ru")[1]
    assert "another row" not in call("reproduce", "sampling", "--no-ru", "--no-beyond")[1]


@pytest.mark.parametrize("installed", [True, False])
def test_ru_is_run_where_torch_is_installed(installed, asked, monkeypatch):
    find_spec = importlib.util.find_spec

    def found(name, *args):
        if name == "torch":
            return object() if installed else None
        return find_spec(name, *args)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    status, text = call("reproduce", "sampling")
    assert status == 0
    assert asked[0].ru == installed
    assert ("pip install 'heckmanfa[torch]'" in text) == (not installed)
    assert "Torch" not in call("reproduce", "sampling", "--no-ru")[1]
    assert "Torch" not in call("reproduce", "sampling", "--quick")[1]


def test_a_folder_that_is_a_file_is_refused_before_anything_runs(asked, tmp_path):
    target = tmp_path / "taken"
    target.write_text("mine")
    status, text = call("reproduce", "sampling", "--out", str(target))
    assert status == 2
    assert "is a file" in text
    assert asked == []
    assert target.read_text() == "mine"


def test_asking_for_nothing_is_said(asked):
    for arguments in (["splits", "--quick"], ["beyond", "--no-beyond"]):
        status, text = call("reproduce", *arguments)
        assert status == 2
        assert "nothing is left to run" in text


def test_a_table_named_twice_is_run_once_and_rows_are_counted(asked):
    status, text = call("reproduce", "sampling", "sampling")
    assert status == 0
    assert len(asked) == 1
    assert "1 deterministic row: 1 matches the paper and none is OFF" in text


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_notes_are_whole_in_every_window_and_rows_that_differ_are_counted(monkeypatch, columns):
    note = "a reason that is far longer than what is left of eighty columns, up to its last word"
    found = [Figure("rho", 0.5), Figure("test MSE", 0.25), Figure("train MSE", 0.125)]
    row = Row(
        CRIME,
        "a row with a long name",
        lambda *_: found,
        {"rho": 0.5, "test MSE": 0.26, "train MSE": 0.124},
        {"test MSE": Reason(0.25, note)},
        deterministic=True,
    )
    monkeypatch.setitem(TABLES, "sampling", PaperTable("A stub", (row,)))
    monkeypatch.setenv("COLUMNS", columns)
    status, text = call("reproduce", "sampling")
    assert status == 1
    assert max(map(len, text.splitlines())) <= int(columns)
    words = " ".join(text.split())
    assert "no room for note" not in words
    assert f"[1] {note}" in words
    assert (
        "3 deterministic rows: 1 matches the paper, 1 differs for a known reason and 1 is OFF"
        in words
    )
    assert f"- 1 of the 1: {note}" in words
    assert any("differs" in line and "[1]" in line for line in text.splitlines())


def test_written_rows_keep_every_digit(monkeypatch, tmp_path):
    found = [Figure("p-value", 3.580001e-09)]
    row = Row(CRIME, "a row", lambda *_: found, {"p-value": 7.723e-11})
    monkeypatch.setitem(TABLES, "significance", PaperTable("A stub", (row,)))
    status, text = call("reproduce", "significance", "--out", str(tmp_path), "--no-ru")
    assert status == 0
    assert "no row here is deterministic" in text
    row = json.loads((tmp_path / "significance.json").read_text())["rows"][0]
    assert (row["ours"], row["printed"], row["spread"]) == (3.580001e-09, 7.723e-11, None)
    assert "7.723e-11" in (tmp_path / "significance.md").read_text()

"""What commands write: never over what they read, never over anything but files."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heckmanfa.cli import app, run_fit
from heckmanfa.datasets import make_selection

FIT = ("fit", "in.csv", "--outcome", "y", "--search", "none", "--predict-with", "x0")
KILLED = """
import sys, time, types
from pathlib import Path
from heckmanfa.cli import run_fit

def write_report(analysis, path, **options):
    Path(path).write_text("half")
    print("ready", flush=True)
    time.sleep(60)

run_fit.question_of = lambda options: types.SimpleNamespace(**options)
run_fit.analyse = lambda question, say: types.SimpleNamespace(answer="")
run_fit.write_report = write_report
sys.argv = ["heckmanfa", *sys.argv[1:]]
from heckmanfa.cli import main
main()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with in.csv, in.parquet, parts/ of Parquet files, and m.heckmanfa."""
    folder = tmp_path_factory.mktemp("made")
    data = make_selection(300, 3, 1, random_state=0)
    frame = pd.DataFrame(data.X, columns=["x0", "x1", "x2"]).assign(y=data.y)
    frame.to_csv(folder / "in.csv", index=False)
    frame.to_parquet(folder / "in.parquet")
    (folder / "parts").mkdir()
    for place, part in enumerate(np.array_split(np.arange(300), 2)):
        frame.iloc[part].to_parquet(folder / "parts" / f"{place}.parquet")
    words = [*FIT, "--save", str(folder / "m.heckmanfa")]
    words[1] = str(folder / "in.csv")
    assert CliRunner().invoke(app, words).exit_code == 0
    return folder


@pytest.fixture
def table(shell, made):
    """A copy of these in the folder of the shell."""
    shutil.copytree(made, shell.folder, dirs_exist_ok=True)


def nothing_is_read(monkeypatch):
    """Let the reading of tables and models fail: refusals come before any work."""

    def read(*args, **kwargs):
        raise AssertionError("nothing is to be read")

    for name in ("run_fit.analyse", "run_compare.load", "run_predict.load_model"):
        monkeypatch.setattr(f"heckmanfa.cli.{name}", read)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("predict m.heckmanfa in.csv --out in.csv", ("--out", "DATA")),
        ("predict m.heckmanfa in.csv --out ./link.csv", ("--out", "DATA")),
        ("predict m.parquet in.csv --out m.parquet", ("--out", "MODEL")),
        ("predict m.heckmanfa in.parquet --out in.parquet --stream-above 0", ("--out", "DATA")),
        ("predict m.heckmanfa parts --out parts/2.parquet", ("--out", "DATA")),
        ("predict m.heckmanfa parts/*.parquet --out parts/2.parquet", ("--out", "DATA")),
        ("fit in.csv --outcome y --json in.csv", ("--json", "DATA")),
        ("fit in.csv --outcome y --save hard.csv", ("--save", "DATA")),
        ("fit in.csv --outcome y --report ./in.csv", ("--report", "DATA")),
        ("fit in.csv --outcome y --report z --json z", ("--report", "--json")),
        ("fit in.csv --outcome y --report z --save ./z", ("--report", "--save")),
        ("compare in.csv --outcome y --out in.csv", ("--out", "DATA")),
        ("compare parts --outcome y --out parts/0.parquet", ("--out", "DATA")),
        ("simulate s.csv --truth s.csv", ("OUT", "--truth")),
        ("simulate s --files 2 --truth s", ("OUT", "--truth")),
    ],
)
def test_outputs_that_are_inputs_or_one_another_are_refused_before_any_work(
    shell, table, monkeypatch, words, said
):
    (shell.folder / "link.csv").symlink_to("in.csv")
    os.link("in.csv", "hard.csv")
    nothing_is_read(monkeypatch)
    before = {one: one.read_bytes() for one in shell.folder.rglob("*") if one.is_file()}
    error = shell.refuses(*words.split(), "--force")
    assert all(one in error for one in said)
    assert {one: one.read_bytes() for one in shell.folder.rglob("*") if one.is_file()} == before


@pytest.mark.parametrize(
    "words",
    [
        "fit in.csv --outcome y --report PLACE",
        "fit in.csv --outcome y --save PLACE",
        "fit in.csv --outcome y --json PLACE",
        "predict m.heckmanfa in.csv --out PLACE.csv",
        "predict m.heckmanfa in.parquet --out PLACE.parquet --stream-above 0",
        "compare in.csv --outcome y --out PLACE.csv",
        "simulate PLACE.csv",
        "simulate s.csv --truth PLACE",
        "simulate PLACE --files 2",
        "demo PLACE",
        "reproduce sampling --out PLACE",
    ],
)
def test_only_ordinary_files_are_replaced(shell, table, words):
    word = next(one for one in words.split() if one.startswith("PLACE"))
    os.mkfifo(word)
    before = os.lstat(word)
    error = shell.refuses(*words.split(), "--force")
    assert word in error
    after = os.lstat(word)
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)


def test_a_table_of_reproduce_is_written_to_an_ordinary_file(shell):
    (shell.folder / "out").mkdir()
    os.mkfifo("fifo")
    (shell.folder / "out" / "sampling.json").symlink_to("../fifo")
    error = shell.refuses("reproduce", "sampling", "--out", "out", "--force")
    assert "which is a FIFO" in error


def test_the_demo_does_not_write_through_a_link_to_a_fifo(shell):
    os.mkfifo("fifo")
    (shell.folder / "out").mkdir()
    (shell.folder / "out" / "mroz.html").symlink_to("../fifo")
    assert "which is a FIFO" in shell.refuses("demo", "out", "--force")


@pytest.mark.parametrize("option", ["--report", "--save", "--json"])
def test_with_the_disk_full_the_file_that_was_written_is_named(shell, table, monkeypatch, option):
    ending = {"--report": ".html", "--save": ".heckmanfa", "--json": ".json"}[option]

    def full(write):
        def written(self, *args, **kwargs):
            if self.name.endswith(ending):
                raise OSError(28, "No space left on device")
            return write(self, *args, **kwargs)

        return written

    for name in ("write_text", "write_bytes"):
        monkeypatch.setattr(Path, name, full(getattr(Path, name)))
    files = ("--json", "x.json", "--save", "x.heckmanfa", "--report", "x.html")
    error = shell.refuses(*FIT, *files)
    assert error == f"error: x{ending} cannot be written: No space left on device"


def test_with_the_disk_full_a_table_is_named(shell, table, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    said = "cannot be written: No space left on device"
    assert f"p.csv {said}" in shell.refuses("predict", "m.heckmanfa", "in.csv", "--out", "p.csv")
    error = shell.refuses("simulate", "s.csv", "--truth", "t.json")
    assert f"s.csv {said}" in error


def test_what_a_killed_run_left_is_removed_by_the_next_run(shell, table):
    before = shell.files()
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED, *FIT, "--report", "x.html", "--json", "x.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert run.stdout is not None
    try:
        assert run.stdout.readline() == "ready\n"
        assert len(shell.files()) > len(before)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait(60)
        run.stdout.close()
    shell.runs(*FIT, "--json", "y.json")
    assert shell.files() == before | {"y.json"}


def test_fit_writes_the_table_of_features_in_formats_of_tables(shell, table):
    shell.runs(*FIT, "--save-table", "features.csv")
    assert list(pd.read_csv("features.csv")["feature"]) == ["x0", "x1", "x2"]
    shell.runs(*FIT, "--save-table", "features.docx")
    before = shell.files()
    said = shell.refuses(*FIT, "--save-table", "features.pdf")
    assert "must end in .csv, .xlsx, .docx, .tex, .md or .parquet" in said
    assert "features.docx exists" in shell.refuses(*FIT, "--save-table", "features.docx")
    assert shell.files() == before


def test_a_full_standard_output_gets_one_sentence(shell, monkeypatch):
    def print_to_a_full_disk(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_fit, "show", print_to_a_full_disk)
    data = make_selection(200, 2, 1, random_state=0)
    frame = pd.DataFrame(data.X, columns=["x0", "x1"]).assign(y=data.y)
    frame.to_csv("in.csv", index=False)
    result = CliRunner().invoke(app, [*FIT])
    assert result.exit_code == 1
    said = result.stderr.splitlines()[-1]
    assert said == "error: standard output cannot be written: No space left on device"

"""``heckmanfa simulate``: the same rows in one file and in several, on any number of threads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import heckmanfa.cli.run_simulate as module
from heckmanfa import Heckman
from heckmanfa.datasets import make_selection
from heckmanfa.datasets.simulation import draw_rows, draw_truth


@pytest.fixture
def small(monkeypatch):
    """Blocks of 50 rows, so that a table has many."""
    monkeypatch.setattr(module, "BLOCK", 50)


def test_a_simulated_table_has_the_truth_it_says(shell):
    shell.runs(
        "simulate", "s.parquet", "--rows", 120_000, "--features", 4, "--predicting", 2, "--seed",
        7, "--truth", "t.json",
    )  # fmt: skip
    frame, truth = pd.read_parquet("s.parquet"), shell.json("t.json")
    assert frame.shape == (120_000, 5)
    assert frame["y"].notna().mean() == pytest.approx(0.5, abs=0.01)
    model = Heckman(truth["predict"]).fit(frame.drop(columns="y"), frame["y"])
    np.testing.assert_allclose(model.coef_, list(truth["coef"].values()), atol=0.03)
    assert model.rho_ == pytest.approx(truth["rho"], abs=0.03)
    # The truth is that of make_selection with the same seed.
    made = make_selection(10, 4, 2, random_state=7)
    np.testing.assert_allclose(made.coef, list(truth["coef"].values()))


def test_a_block_has_a_seed_of_its_own(shell, small):
    """The rows of a table are those of its blocks, drawn one by one."""
    shell("simulate", "s.parquet", "--rows", 170, "--features", 3, "--predicting", 1, "--seed", 4)
    frame = pd.read_parquet("s.parquet")
    truth = draw_truth(np.random.default_rng(4), 3, 1, rho=0.5, sigma=1.0, selection_rate=0.5)
    for block, rows in enumerate((50, 50, 50, 20)):
        X, y, selected = draw_rows(truth, rows, np.random.default_rng([4, block]))
        part = frame.iloc[50 * block : 50 * block + rows]
        np.testing.assert_array_equal(part[["x0", "x1", "x2"]], X)
        np.testing.assert_array_equal(part["y"], np.where(selected, y, np.nan))


def test_rows_do_not_depend_on_how_many_follow(shell, small):
    for rows, name in ((120, "a.csv"), (170, "b.csv")):
        shell.runs("simulate", name, "--rows", rows)
    a, b = pd.read_csv("a.csv"), pd.read_csv("b.csv")
    assert (len(a), len(b)) == (120, 170)
    pd.testing.assert_frame_equal(a.head(100), b.head(100))


def test_the_bits_are_the_same_on_one_and_two_threads(shell, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 5000)
    for count in ("1", "2"):
        monkeypatch.setenv("HECKMANFA_NUM_THREADS", count)
        shell("simulate", f"{count}.parquet", "--rows", 33_000, "--correlation", 0.3)
    one, two = ((shell.folder / f"{count}.parquet").read_bytes() for count in "12")
    assert one == two


def test_files_in_a_folder_hold_the_rows_of_one_file(shell, small):
    options = ("--rows", 333, "--features", 3, "--predicting", 2, "--truth")
    shell("simulate", "one.parquet", *options, "one.json")
    text = shell.runs("simulate", "many", *options, "many.json", "--files", 4)
    assert "333 rows written to 4 files in many" in text
    assert (shell.folder / "one.json").read_text() == (shell.folder / "many.json").read_text()
    parts = sorted((shell.folder / "many").iterdir())
    assert [part.name for part in parts] == [f"part-{place:03d}.parquet" for place in range(4)]
    frames = [pd.read_parquet(part) for part in parts]
    assert [len(frame) for frame in frames] == [83, 83, 83, 84]
    pd.testing.assert_frame_equal(
        pd.concat(frames, ignore_index=True), pd.read_parquet("one.parquet")
    )


def test_row_groups_can_be_read_one_by_one(shell, small):
    shell("simulate", "s.parquet", "--rows", 170)
    footer = pq.read_metadata("s.parquet")
    assert [footer.row_group(one).num_rows for one in range(4)] == [50, 50, 50, 20]


def test_simulate_refuses(shell):
    assert ".csv or .parquet" in shell.refuses("simulate", "s.xlsx")
    assert "rho" in shell.refuses("simulate", "s.csv", "--rho", 2)
    assert "--predicting must be at most --features" in shell.refuses(
        "simulate", "s.csv", "--predicting", 20
    )
    (shell.folder / "s.csv").write_text("mine")
    assert "--force" in shell.refuses("simulate", "s.csv")
    assert "--files must be at most --rows (3)" in shell.refuses(
        "simulate", "s", "--files", 4, "--rows", 3
    )
    assert "there is no folder" in shell.refuses("simulate", "no/s", "--files", 2)
    (shell.folder / "mine").mkdir()
    # What else is in a folder is not known, so that it is never replaced.
    for more in ((), ("--force",)):
        assert "mine exists" in shell.refuses("simulate", "mine", "--files", 2, *more)


@pytest.mark.parametrize("options", [("s.parquet",), ("s.csv",), ("s", "--files", 2)])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_interrupted_leaves_nothing(shell, small, monkeypatch, options, error):
    make = module.make_block

    def fails(truth, seed, block, n):
        if block == 5:
            raise error
        return make(truth, seed, block, n)

    monkeypatch.setattr(module, "make_block", fails)
    status, text = shell("simulate", *options, "--rows", 500, "--truth", "t.json")
    assert status == (130 if error is KeyboardInterrupt else 2)
    assert "interrupted" in text or "No space left" in text
    assert shell.files() == set()

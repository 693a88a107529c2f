"""A pattern finds what glob finds, and ends where links lead in circles."""

from __future__ import annotations

import glob
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, scan, scan_parquet
from heckmanfa.data.files.paths import matches, matching, refuse_clashes
from heckmanfa.errors import InputError

FILES = ("a.parquet", "x/b.parquet", "x/y/c.parquet", "x/y/d.txt", ".h/e.parquet", "x/.f.parquet")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("a")
    # One name among them looks like a pattern.
    Path("x", "[ab]").mkdir()
    Path("x", "[ab]", "g.parquet").write_text("a")
    return tmp_path


PATTERNS = (
    *("*.parquet", "**/*.parquet", "x/**/*.parquet", "**/y/*", "x/**", "**", "x/**/y/**/*.parquet"),
    *("**/**/c.parquet", ".h/**/*.parquet", "**/.f.parquet", "x/[[]ab]/*", "no/**/*", "?/y/**"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_without_links_a_pattern_finds_what_glob_finds(tree, pattern):
    for prefix in ("", f"{tree}/"):
        # Two neighbouring ** find a file more than once.
        matched = glob.glob(prefix + pattern, recursive=True)  # noqa: PTH207
        # The current folder has no name that glob could return.
        assert {*matching(prefix + pattern)} - {Path()} == {*map(Path, matched)}
    files = [Path(folder, name) for folder, _, names in os.walk(".") for name in names]
    visible = {file for file in files if matches(file.parts, Path(pattern).parts)}
    assert visible == {file for file in matching(pattern) if file.is_file()}


def test_a_link_to_a_folder_above_is_not_entered_by_two_stars(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=["y", "a", "b"])
    frame.loc[frame["b"] + rng.normal(size=90) < 0, "y"] = np.nan
    deep = tmp_path / "data" / "deep"
    deep.mkdir(parents=True)
    for number, (low, high) in enumerate(pairwise((0, 40, 90))):
        frame[low:high].to_parquet((deep if number else deep.parent) / "part.parquet")
    for number in range(3):
        (deep / f"up{number}").symlink_to(tmp_path / "data")
        (tmp_path / "data" / f"here{number}").symlink_to(".")
    visited = []
    scandir = os.scandir

    def counting(path="."):
        visited.append(path)
        # 3 links in either of 2 folders would be followed 40 deep.
        assert len(visited) < 60
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counting)
    pattern = tmp_path / "data" / "**" / "*.parquet"
    local = pytest.importorskip("pyarrow.fs").LocalFileSystem()
    ways = (
        lambda: scan_parquet(pattern, "y"),
        lambda: scan(pattern, "y"),
        lambda: scan(str(pattern), "y", filesystem=local),
        lambda: scan(str(tmp_path / "data"), "y", filesystem=local),
    )
    for way in ways:
        visited.clear()
        rows = way()
        assert rows.n_rows == len(frame)
    assert Heckman(["a"]).fit(rows).n_obs_ == len(frame)
    visited.clear()
    with pytest.raises(InputError, match="OUT would write"):
        refuse_clashes({"DATA": pattern}, {"OUT": deep / "part.parquet"})
    refuse_clashes({"DATA": pattern}, {"OUT": tmp_path / "other.parquet"})
    # Other wildcards do enter links.
    monkeypatch.undo()
    assert len([*matching(tmp_path / "data" / "here*" / "deep" / "*.parquet")]) == 3

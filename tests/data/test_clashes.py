"""What a call writes is never what it reads, nor what else it writes."""

from __future__ import annotations

import os

import pytest

from heckmanfa.data.files.paths import refuse_clashes
from heckmanfa.errors import InputError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("a")
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    for name in ("parts/a.parquet", "parts/deep/b.parquet", "elsewhere.parquet"):
        (tmp_path / name).write_text("a")
    (tmp_path / "parts" / "linked.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    (tmp_path / "link.csv").symlink_to("in.csv")
    (tmp_path / "folder").symlink_to("parts")
    os.link("in.csv", "hard.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("data", "out"),
    [
        ("in.csv", "in.csv"),
        ("in.csv", "./in.csv"),
        ("in.csv", "parts/../in.csv"),
        ("in.csv", "link.csv"),
        ("link.csv", "in.csv"),
        ("in.csv", "hard.csv"),
        ("parts", "parts/a.parquet"),
        ("parts", "parts/new.parquet"),
        ("parts", "folder/deep/new.parquet"),
        ("folder", "parts/new.PARQUET"),
        ("parts", "elsewhere.parquet"),
        ("parts/*.parquet", "parts/a.parquet"),
        ("parts/*.parquet", "parts/new.parquet"),
        ("parts/*.parquet", "elsewhere.parquet"),
        ("folder/*.parquet", "parts/new.parquet"),
        ("parts/**/*.parquet", "parts/deep/new.parquet"),
        ("par*", "parts/new.parquet"),
        ("*/[a-c].parquet", "parts/b.parquet"),
    ],
)
def test_what_is_read_is_not_written(here, data, out):
    with pytest.raises(InputError, match=r"--out would write .* DATA reads"):
        refuse_clashes({"MODEL": "m.heckmanfa", "DATA": data}, {"--out": out})
    with pytest.raises(InputError, match=r"--out would write .* DATA reads"):
        refuse_clashes(
            {"DATA": [here / "m.heckmanfa", data]}, {"--json": None, "--out": here / out}
        )


def test_a_file_that_a_url_names_is_not_written(here):
    for data, out in (("in.csv", "link.csv"), ("parts", "parts/new.parquet")):
        with pytest.raises(InputError, match=r"--out would write .* DATA reads"):
            refuse_clashes({"DATA": (here / data).as_uri()}, {"--out": out})


@pytest.mark.parametrize(
    ("data", "out"),
    [
        ("in.csv", "IN2.csv"),
        ("parts", "elsewhere2.parquet"),
        ("parts", "parts.parquet"),
        ("parts", "parts/report.html"),
        ("parts/*.parquet", "parts/deep/new.parquet"),
        ("parts/*.parquet", "parts/.new.parquet"),
        ("parts/?.parquet", "parts/new.parquet"),
        ("nothing.csv", "in.csv"),
        ("-", "in.csv"),
    ],
)
def test_what_is_not_read_may_be_written(here, data, out):
    refuse_clashes({"DATA": data, "MODEL": None}, {"--out": out})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("z", "z"),
        ("z", "./z"),
        ("in.csv", "hard.csv"),
        ("in.csv", "link.csv"),
        ("parts/z", "folder/z"),
        # One file on macOS and Windows.
        ("z.json", "Z.json"),
        ("gr\u00f6sse", "gro\u0308sse"),
    ],
)
def test_two_outputs_are_two_files(here, one, other):
    with pytest.raises(InputError, match=r"--report and --json (both )?name"):
        refuse_clashes({}, {"--report": one, "--save": "y", "--json": other})


def test_names_that_differ_in_case_only_are_said_to_be_one_file_on_many_systems(here):
    with pytest.raises(InputError, match=r"name z\.json and Z\.json, which many file systems take"):
        refuse_clashes({}, {"--report": "z.json", "--json": "Z.json"})


def test_a_minus_sign_is_for_input_only(here):
    with pytest.raises(InputError, match="name a file to write; '-' is for input only"):
        refuse_clashes({"DATA": "-"}, {"--out": "-"})


def test_an_empty_name_of_an_input_is_said_to_be_empty(here):
    with pytest.raises(InputError, match="DATA is empty"):
        refuse_clashes({"DATA": ""}, {})


def test_the_standard_input_is_not_written(here, monkeypatch):
    with (here / "in.csv").open() as file:
        monkeypatch.setattr("sys.__stdin__", file)
        with pytest.raises(InputError, match="standard input"):
            refuse_clashes({"DATA": "-"}, {"--out": "link.csv"})
        refuse_clashes({"DATA": "-"}, {"--out": "elsewhere.parquet"})

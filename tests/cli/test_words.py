"""What the command line says: in its own words, of the user's columns and files."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def base(shell):
    """base.csv: wage where people work, education that drives both, and more."""
    rng = np.random.default_rng(1)
    n = 400
    educ, kids, age = rng.normal(12, 2, n), rng.integers(0, 4, n), rng.integers(20, 60, n)
    u = rng.normal(size=n)
    works = 0.3 * (educ - 12) - 0.6 * (kids - 1) + u > 0
    wage = 1 + 0.1 * educ + 0.3 * u + 0.3 * rng.normal(size=n)
    table = pd.DataFrame(
        {
            "wage": np.where(works, wage, np.nan),
            "educ": educ.round(2),
            "kids": kids,
            "age": age,
            "region": rng.choice(["East", "West"], n),
        }
    )
    table.to_csv(shell.folder / "base.csv", index=False)
    return table


def test_a_warning_names_the_option_and_no_parameter(shell, base):
    said = shell.runs(
        *("fit", "base.csv", "--outcome", "wage", "--features", "educ", "--always", "educ"),
        *("--json", "a.json", "--report", "a.html"),
    )
    told = " ".join(shell.json("a.json")["warnings"])
    page = (shell.folder / "a.html").read_text()
    for text in (said, told):
        assert re.search("named? (it )?with --select-only", text)
    for text in (said, json.dumps(told), page):
        assert "never=" not in text
        assert "bootstrap()" not in text
        assert "what_if" not in text
        assert "search_report" not in text


@pytest.mark.parametrize(
    ("option", "value", "range_of"),
    [
        ("--rho", "1.5", "[-1, 1]"),
        ("--sigma", "-1.0", "[0, inf)"),
        ("--selection-rate", "1.2", "(0, 1)"),
        ("--correlation", "2.0", "[0, 1)"),
    ],
)
def test_simulate_names_the_option_that_is_out_of_range(shell, option, value, range_of):
    said = shell.refuses("simulate", "a.csv", option, value)
    assert all(word in said for word in (option, range_of, value))


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "base.csv", "--outcome", "wage", "--report", "-"),
        ("fit", "base.csv", "--outcome", "wage", "--save", "-"),
        ("predict", "a.heckmanfa", "base.csv", "--out", "-"),
        ("compare", "base.csv", "--outcome", "wage", "--out", "-"),
        ("table", "a.heckmanfa", "--out", "-"),
        ("simulate", "-"),
        ("simulate", "-", "--files", "2"),
        ("demo", "-"),
        ("reproduce", "sampling", "--out", "-"),
    ],
)
def test_no_command_writes_to_minus(shell, base, command):
    assert "name a file to write; '-'" in shell.refuses(*command)


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_an_empty_name_of_the_data_is_said_to_be_empty(shell, command):
    assert "DATA is empty" in shell.refuses(command, "", "--outcome", "wage")


def test_a_file_that_is_not_there_is_said_not_to_be_there_whatever_its_name(shell):
    said = shell.refuses("fit", "wages[1].csv", "--outcome", "wage")
    assert said.startswith("error: there is no file wages[1].csv")


def test_the_demo_reads_the_table_by_its_name(shell):
    said = shell.runs("demo", "here")
    assert "reading mroz.csv" in said
    assert ".heckmanfa-" not in said


@pytest.mark.parametrize(
    ("option", "name"), [("--outcome", "wage"), ("--weights", "age"), ("--cluster", "region")]
)
def test_a_column_with_a_role_cannot_be_excluded(shell, base, option, name):
    roles = {"--outcome": "wage"} | {option: name}
    words = [word for pair in roles.items() for word in pair]
    said = shell.refuses("fit", "base.csv", *words, "--exclude", name)
    assert f"--exclude names '{name}'" in said
    assert f"column of {option}" in said


def test_dates_and_constants_are_not_offered_as_numbers(shell, base):
    days = pd.date_range("2020-01-01", periods=len(base)).strftime("%Y-%m-%d")
    base.assign(day=days, one=1).to_csv("dates.csv", index=False)
    _, said = shell("fit", "dates.csv", "--outcome", "wage")
    assert "'day' holds dates" in said
    assert "--numeric" not in said
    base.assign(day=days, key=[f"w{i}" for i in range(len(base))]).to_csv("ids.csv", index=False)
    _, said = shell("fit", "ids.csv", "--outcome", "wage")
    assert "To use 'key' all the same, pass it to --numeric or --categorical." in said


@pytest.mark.parametrize("option", ["--outcome", "--weights"])
def test_text_where_numbers_are_needed_is_said_to_be_text(shell, base, option):
    roles = {"--outcome": "wage"} | {option: "region"}
    said = shell.refuses("fit", "base.csv", *[word for pair in roles.items() for word in pair])
    first, n_levels = base["region"].mode()[0], base["region"].nunique()
    if option == "--outcome":
        # Two texts are classes, but those of a binary outcome are missing in some rows.
        assert f"column 'region' is never missing in {len(base)} rows" in said
        return
    for word in (option, "column 'region'", f"'{first}'", f"{n_levels} categories"):
        assert word in said


def test_a_collinear_column_is_left_out_in_the_head_and_not_counted(shell, base):
    base.assign(age2=2 * base["age"]).to_csv("coll.csv", index=False)
    said = shell.runs(
        "fit", "coll.csv", "--outcome", "wage", "--search", "best-subset", "--json", "a.json"
    )
    head, rest = said.split(" feature chance ", 1)
    assert "4 columns became 4 features: 3 numbers and 1 category." in head
    lost = [name for name in ("age", "age2") if f"Left out: '{name}'" in head]
    assert len(lost) == 1
    assert "caution Some columns were left out" in rest
    told = shell.json("a.json")
    assert list(told["columns_left_out"]) == lost

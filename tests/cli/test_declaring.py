"""The options of the command line are the fields of `Question`, and are described there alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import MISSING, fields

import pytest
from typer.main import get_command

from heckmanfa.analysis import Question
from heckmanfa.analysis.options import OPTIONS
from heckmanfa.cli import app

RESULTS = {"report", "save", "json_out", "save_table", "quiet", "force"}


def parameters(command):
    return {
        parameter.name: parameter
        for parameter in get_command(app).commands[command].params
        if parameter.name != "help"
    }


def test_fit_has_an_option_for_every_field_of_a_question():
    made = parameters("fit")
    assert set(made) - RESULTS == {field.name for field in fields(Question)}
    for field in fields(Question):
        parameter = made[field.name]
        assert parameter.required == (field.default is MISSING)
        if field.name != "data":
            assert parameter.opts == ["--" + field.name.replace("_", "-")]
        if field.default not in (MISSING, ()):
            assert parameter.default == field.default
        assert bool(parameter.multiple) == (field.default == ())


def test_help_groups_the_options_of_fit(shell):
    titles = {about.about.group for about in OPTIONS.values()} - {"Table"} | {"Results"}
    assert titles >= {"Outcome", "Features", "Search", "Model", "Reading the table"}
    groups = {name: made.rich_help_panel for name, made in parameters("fit").items()}
    assert {groups[name] for name in RESULTS} == {"Results"}
    assert {group for name, group in groups.items() if name != "data"} == titles
    text = shell.runs("fit", "--help")
    assert all(f"─ {title} ─" in text for title in titles)


@pytest.mark.parametrize("option", ["--header-row 0", "--seed -1", "--min-level-rows -1"])
def test_a_number_below_the_least_is_refused(shell, option):
    status, text = shell("fit", "x.csv", "--outcome", "y", *option.split())
    assert status == 2
    assert "Usage" in text
    assert option.split()[0] in text


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("compare", {"folds", "repeats", "ru", "out", "force"}),
        (
            "predict",
            {"model", "data", "out", "kind", "interval", "no_interval", "scale", "keep_columns"}
            | {"missing", "unknown", "force"},
        ),
    ],
)
def test_what_other_commands_share_with_fit_is_the_same_option(command, own):
    made, of_fit = parameters(command), parameters("fit")
    shared = set(made) - own
    assert shared == {name for name in OPTIONS if command in OPTIONS[name].about.also_in}
    for name in shared:
        for what in ("opts", "default", "help", "metavar", "min", "multiple", "required"):
            assert getattr(made[name], what, None) == getattr(of_fit[name], what, None)


def test_help_imports_nothing_that_is_slow():
    code = (
        "import sys, heckmanfa.cli.commands; "
        "print([name for name in ('numpy', 'pandas', 'sklearn', 'scipy') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

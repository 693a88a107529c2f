"""The options of the command line are the fields of `Question`, and are described there alone."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import MISSING, fields

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from heckmanfa.analysis import Question
from heckmanfa.analysis.options import OPTIONS
from heckmanfa.cli import app
from heckmanfa.cli.topics import TOPICS
from heckmanfa.text.option_words import flag

RESULTS = {"report", "brief", "save", "json_out", "save_table", "quiet", "verbose", "force"}


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


def test_help_groups_the_options_of_fit():
    titles = {about.about.group for about in OPTIONS.values()} - {"Table"} | {"Results"}
    assert titles >= {"Outcome", "Features", "Search", "Model", "Reading the table"}
    groups = {name: made.rich_help_panel for name, made in parameters("fit").items()}
    assert {groups[name] for name in RESULTS} == {"Results"}
    assert {group for name, group in groups.items() if name != "data"} == titles
    assert set(TOPICS.values()) == titles


@pytest.mark.parametrize("command", ["fit", "check"])
def test_help_takes_two_screens_and_names_every_option(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "100")
    result = CliRunner().invoke(app, [command, "--help"])
    lines = result.output.splitlines()
    assert len(lines) <= 2 * 40
    assert max(map(len, lines)) <= 100
    named = set(re.findall(r"--[a-z][a-z-]+", result.output)) - {"--help"}
    assert named >= {made.opts[0] for made in parameters(command).values() if made.name != "data"}
    everyday, more = result.output.split("More options by topic:")
    for name, option in OPTIONS.items():
        short = option.about.brief
        # A line of help each, that does not wrap.
        assert not short or any(f" {short} " in line for line in lines), name
        if name != "data":
            assert (flag(name) in set(re.findall(r"--[a-z-]+", everyday))) == bool(short)
            assert (flag(name) in set(re.findall(r"--[a-z-]+", more))) != bool(short)
    for title in TOPICS.values():
        assert f"─ {title} ─" in everyday


def test_topics_have_the_full_help_of_their_options(shell):
    def heads_and_words(topic):
        text = CliRunner().invoke(app, ["help", topic]).output
        heads = re.findall(r"^│ [* ]{0,4}(--[a-z-]+)", text, re.MULTILINE)
        # The help of an option is the last column, whose lines are short.
        cells = re.findall(r"^│.* {2}(\S.*?) *│$", text, re.MULTILINE)
        return heads, " ".join(" ".join(cells).split())

    everything = []
    for topic, title in TOPICS.items():
        heads, words = heads_and_words(topic)
        inside = [
            made
            for made in parameters("fit").values()
            if made.name != "data" and made.rich_help_panel == title
        ]
        assert heads == [made.opts[0] for made in inside]
        for made in inside:
            assert made.help in words, made.name
        everything += heads
    assert sorted(heads_and_words("all")[0]) == sorted(everything)
    listed = shell.runs("help")
    assert all(f"heckmanfa help {topic}:" in listed for topic in (*TOPICS, "all"))
    assert "heckmanfa predict" in shell.runs("help", "predict")


def test_a_topic_that_does_not_exist_is_refused_with_the_nearest(shell):
    status, text = shell("help", "serach")
    assert status == 2
    assert "'serach'" in text
    assert "'search'" in text


def test_completion_offers_every_option_of_fit():
    fit = get_command(app).commands["fit"]
    with fit.make_context("heckmanfa fit", [], resilient_parsing=True) as context:
        offered = {item.value for item in fit.shell_complete(context, "--")}
    assert offered >= {made.opts[0] for made in parameters("fit").values() if made.name != "data"}


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
            | {"missing", "unknown", "force", "regime", "given"},
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
        "import sys, heckmanfa.cli.commands, heckmanfa.cli.run_help; "
        "print([name for name in ('numpy', 'pandas', 'sklearn', 'scipy') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

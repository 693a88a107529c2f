"""The work of ``heckmanfa fit``, and of ``heckmanfa demo``, which fits a table of its own."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from heckmanfa.analysis import Question, analyse, save_model
from heckmanfa.analysis.request import question_of
from heckmanfa.cli.answer_json import json_text
from heckmanfa.cli.answer_screen import show, wrap
from heckmanfa.cli.commands import DemoOptions, FitOptions
from heckmanfa.cli.console import MOST_WIDE, output, saying
from heckmanfa.data.files.outputs import (
    check_format,
    make_folder,
    outputs,
    write_table,
)
from heckmanfa.datasets import load_mroz
from heckmanfa.report import write_report
from heckmanfa.results.table_files import check_table_path
from heckmanfa.text.printable import called, shown

_STANDARD = Path("-")


def run(options: FitOptions, **asked: Any) -> None:
    """Answer the question that the options ask, write the files, and print the results."""
    question, quiet = question_of(asked), options.quiet
    report, save, json_out = options.report, options.save, options.json_out
    save_table = options.save_table
    piped = json_out == _STANDARD
    pages = {"--report": report, "--brief": options.brief}
    for name, path in pages.items():
        check_format(path, ".html", name)
    check_format(save, ".heckmanfa", "--save")
    check_format(None if piped else json_out, ".json", "--json")
    if save_table is not None:
        check_table_path(save_table)
    files = {**pages, "--save": save, "--save-table": save_table}
    files["--json"] = None if piped else json_out
    # Paths are checked before anything is computed, and all files are put in place together: a
    # failed run writes none.
    reads = {"DATA": question.data, "--labels": question.labels}
    with saying(quiet=quiet) as say, outputs(files, reads, force=options.force) as places:
        analysis = analyse(question, say)
        say("checking the answer")
        str(analysis.answer)  # made while progress is shown, and kept
        for name in pages:
            if name in places:
                say("writing the report")
                write_report(analysis, places[name].part, brief=name == "--brief")
        if "--save" in places:
            about = {"command": question.command(), "outcome": question.outcome}
            place = places["--save"].part
            save_model(place, analysis.model, analysis.encoding, about, force=True)
        if "--save-table" in places:
            say("writing the table")
            analysis.save_table(places["--save-table"].part)
        text = "" if json_out is None else json_text(analysis)
        if "--json" in places:
            with places["--json"].writing() as place:
                place.write_text(text, encoding="utf-8")
    if piped:
        typer.echo(text, nl=False)
    elif not quiet:
        console = output(most=MOST_WIDE)
        written = {
            "report": report,
            "brief": options.brief,
            "model": save,
            "table": save_table,
            "results": json_out,
        }
        said = [f"{what} written to {shown(path)}" for what, path in written.items() if path]
        lines = [line for words in said for line in wrap(console, words)]
        show(analysis, console, verbose=options.verbose, files=lines)


# Longer paths are cut in the middle.
_LONGEST = 300

FEATURES = (
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
)


def demo(options: DemoOptions) -> None:
    """Write the table, fit it, write the report, and print the results."""
    folder = options.folder
    make_folder(folder)
    table, page = folder / "mroz.csv", folder / "mroz.html"
    writes = {"the table": table, "the report": page}
    with saying() as say, outputs(writes, force=options.force) as places:
        with places["the table"].writing() as rows:
            write_table(load_mroz()[["lwage", *FEATURES]], rows)
        question = Question(data=str(table), outcome="lwage", features=FEATURES)

        def say_of(words: str) -> None:
            # The table is moved to its place at the very end.
            say(words.replace(rows.name, table.name))

        with called(rows, str(table)):
            analysis = analyse(replace(question, data=str(rows)), say_of)
        analysis = replace(analysis, question=question)
        say("checking the answer")
        str(analysis.answer)
        say("writing the report")
        write_report(analysis, places["the report"].part)
    console = output(most=MOST_WIDE)
    # A terminal can open a line of its own with one click, so some are not wrapped.
    uri = shown(page.resolve().as_uri(), _LONGEST)
    folder_name = shlex.quote(shown(folder))
    said = [
        Text(),
        *wrap(console, f"the table: {shown(table)}"),
        *wrap(console, f"the report: {shown(page)}"),
        Text(f"  open {uri}"),
        Text(
            f"  on a remote machine: python -m http.server --directory {folder_name}, then open "
            f"http://localhost:8000/{page.name}"
        ),
        *wrap(
            console, f"to do the same with your own table: {Question('DATA', 'COLUMN').command()}"
        ),
    ]
    show(analysis, console, files=said)

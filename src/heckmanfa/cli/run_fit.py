"""The work of ``heckmanfa fit``: answer a question, and put the answer where it was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from heckmanfa.analysis import analyse, save_model
from heckmanfa.analysis.pictures import feature_frame
from heckmanfa.analysis.request import question_of
from heckmanfa.cli.answer_json import json_text
from heckmanfa.cli.answer_screen import show
from heckmanfa.cli.console import MOST_WIDE, output, saying
from heckmanfa.data.files.outputs import check_ending, check_format, outputs, write_table
from heckmanfa.report import write_report
from heckmanfa.text.printable import shown

_STANDARD = Path("-")


def run(
    *,
    report: Path | None,
    save: Path | None,
    json_out: Path | None,
    save_table: Path | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Answer the question that the options ask, write the files, and print the results."""
    question = question_of(options)
    piped = json_out == _STANDARD
    check_format(report, ".html", "--report")
    check_format(save, ".heckmanfa", "--save")
    check_format(None if piped else json_out, ".json", "--json")
    if save_table is not None:
        check_ending(save_table)
    files = {"--report": report, "--save": save, "--save-table": save_table}
    files["--json"] = None if piped else json_out
    # Paths are checked before anything is computed, and all files are put in place together: a
    # failed run writes none.
    with saying(quiet=quiet) as say, outputs(files, {"DATA": question.data}, force=force) as places:
        analysis = analyse(question, say)
        say("checking the answer")
        str(analysis.answer)  # made while progress is shown, and kept
        if "--report" in places:
            say("writing the report")
            write_report(analysis, places["--report"].part)
        if "--save" in places:
            about = {"command": question.command(), "outcome": question.outcome}
            part = places["--save"].part
            save_model(part, analysis.model, analysis.encoding, about, force=True)
        if "--save-table" in places:
            with places["--save-table"].writing() as part:
                write_table(feature_frame(analysis.pictures()), part)
        text = "" if json_out is None else json_text(analysis)
        if "--json" in places:
            with places["--json"].writing() as part:
                part.write_text(text, encoding="utf-8")
    if piped:
        typer.echo(text, nl=False)
    elif not quiet:
        console = output(most=MOST_WIDE)
        show(analysis, console)
        written = {"report": report, "model": save, "table": save_table, "results": json_out}
        for what, path in written.items():
            if path is not None:
                console.print(f"{what} written to {shown(path)}")

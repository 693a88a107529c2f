"""The work of ``heckmanfa fit``: answer a question, and put the answer where it was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from heckmanfa.analysis import analyse, save_model
from heckmanfa.analysis.request import question_of
from heckmanfa.cli.answer_json import json_text
from heckmanfa.cli.answer_screen import show
from heckmanfa.cli.console import MOST_WIDE, output, saying
from heckmanfa.data.files.outputs import check_format, outputs
from heckmanfa.report import write_report
from heckmanfa.text.printable import shown

_STANDARD = Path("-")


def run(
    *,
    report: Path | None,
    save: Path | None,
    json_out: Path | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Answer the question that the options ask, write the files, and print the results."""
    question = question_of(options)
    piped = json_out == _STANDARD
    check_format(report, ".html", "--report")
    check_format(save, ".skops", "--save")
    check_format(None if piped else json_out, ".json", "--json")
    files = {"--report": report, "--save": save, "--json": None if piped else json_out}
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
        text = "" if json_out is None else json_text(analysis)
        if "--json" in places:
            with places["--json"].writing() as part:
                part.write_text(text, encoding="utf-8")
    if piped:
        typer.echo(text, nl=False)
    elif not quiet:
        console = output(most=MOST_WIDE)
        show(analysis, console)
        for path, what in ((report, "report"), (save, "model"), (json_out, "results")):
            if path is not None:
                console.print(f"{what} written to {shown(path)}")

"""The work of ``heckmanfa fit``: a question answered, and its files written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heckmanfa.analysis import Question, analyse, save_model
from heckmanfa.cli.common import saying
from heckmanfa.cli.console import output
from heckmanfa.cli.fit_json import write_json
from heckmanfa.cli.fit_text import show
from heckmanfa.cli.questions import question_of
from heckmanfa.data.files.outputs import outputs
from heckmanfa.report import write_report
from heckmanfa.text.printable import shown


def run(
    *, report: Path | None, save: Path | None, json_out: Path | None, force: bool, **options: Any
) -> None:
    """Answer the question that the options ask, write the files, and print the results."""
    question: Question = question_of(options)
    files = {"--report": report, "--save": save, "--json": json_out}
    # Paths are checked before anything is computed, and all files are put in place together: a
    # failed run leaves none.
    with saying() as say, outputs(files, {"DATA": question.data}, force=force) as places:
        analysis = analyse(question, say)
        if "--report" in places:
            say("writing the report")
            write_report(analysis, places["--report"].part)
        if "--save" in places:
            about = {"command": question.command(), "outcome": question.outcome}
            part = places["--save"].part
            save_model(part, analysis.model, analysis.encoding, about, force=True)
        if "--json" in places:
            with places["--json"].writing() as part:
                write_json(analysis, part)
    console = output()
    show(analysis, console)
    for path, what in ((report, "report"), (save, "model"), (json_out, "results")):
        if path is not None:
            console.print(f"{what} written to {shown(path)}", markup=False)

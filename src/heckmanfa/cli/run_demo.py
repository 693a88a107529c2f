"""The work of ``heckmanfa demo``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from heckmanfa.analysis import Question, analyse
from heckmanfa.cli.answer_screen import show
from heckmanfa.cli.console import MOST_WIDE, output, saying
from heckmanfa.data.files.outputs import make_folder, outputs, write_table
from heckmanfa.datasets import load_mroz
from heckmanfa.report import write_report
from heckmanfa.text.printable import called, shown

# Longer paths are cut in the middle.
_LONGEST = 300

FEATURES = (
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
)


def run(*, folder: Path, force: bool) -> None:
    """Write the table, fit it, write the report, and print the results."""
    make_folder(folder)
    table, page = folder / "mroz.csv", folder / "mroz.html"
    writes = {"the table": table, "the report": page}
    with saying() as say, outputs(writes, force=force) as places:
        with places["the table"].writing() as rows:
            write_table(load_mroz()[["lwage", *FEATURES]], rows)
        question = Question(data=str(table), outcome="lwage", features=FEATURES)

        def say_of(words: str) -> None:
            # The table is moved to its place at the very end.
            say(words.replace(rows.name, table.name))

        with called(rows, str(table)):
            found = analyse(replace(question, data=str(rows)), say_of)
        analysis = replace(found, question=question)
        say("checking the answer")
        str(analysis.answer)
        say("writing the report")
        write_report(analysis, places["the report"].part)
    console = output(most=MOST_WIDE)
    show(analysis, console)
    console.print()
    console.print(f"the table: {shown(table)}\nthe report: {shown(page)}")
    # A terminal can open a line of its own with one click, so it is not wrapped.
    console.print(f"  open {shown(page.resolve().as_uri(), _LONGEST)}", soft_wrap=True)
    console.print(
        f"  on a remote machine: python -m http.server --directory {shlex.quote(shown(folder))}, "
        f"then open http://localhost:8000/{page.name}",
        soft_wrap=True,
    )
    console.print(f"to do the same with your own table: {Question('DATA', 'COLUMN').command()}")

"""``heckmanfa demo``: from Mroz's table to a report, as one would do with one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heckmanfa.cli.common import output, saying
from heckmanfa.cli.options import Force
from heckmanfa.text.printable import called, shown

__all__ = ["demo"]

FEATURES = (
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
)


def demo(
    folder: Annotated[Path, typer.Argument(help="Where to write mroz.csv and mroz.html.")] = Path(
        "heckmanfa-demo"
    ),
    force: Force = False,
) -> None:
    """Write Mroz's table of 753 women, fit it, and write the report.

    Example: heckmanfa demo
    """
    with saying() as say:
        say("loading")
        from dataclasses import replace

        from heckmanfa.analysis import Question, analyse
        from heckmanfa.cli.fit_text import show
        from heckmanfa.data.files.outputs import make_folder, outputs
        from heckmanfa.data.files.table_files import write_table
        from heckmanfa.datasets import load_mroz
        from heckmanfa.report import write_report

        make_folder(folder)
        table, page = folder / "mroz.csv", folder / "mroz.html"
        writes = {"the table": table, "the report": page}
        with outputs(writes, force=force) as places:
            with places["the table"].writing() as rows:
                write_table(load_mroz()[["lwage", *FEATURES]], rows)
            question = Question(data=str(table), outcome="lwage", features=FEATURES)

            def say_of(words: str) -> None:
                # The table is not in its place before all is done.
                say(words.replace(rows.name, table.name))

            with called(rows, str(table)):
                found = analyse(replace(question, data=str(rows)), say_of)
            analysis = replace(found, question=question)
            write_report(analysis, places["the report"].part)
    console = output()
    show(analysis, console)
    console.print(f"the table: {shown(table)}\nthe report: {shown(page)}", markup=False)
    console.print(
        f"the same with your own table: {Question('DATA', 'COLUMN').command()}", markup=False
    )

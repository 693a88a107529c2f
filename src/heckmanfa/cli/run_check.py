"""The work of ``heckmanfa check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from heckmanfa.analysis import TableCheck, check_table
from heckmanfa.analysis.request import question_of
from heckmanfa.cli.commands import CheckOptions
from heckmanfa.cli.console import MOST_WIDE, output, saying
from heckmanfa.data.files.outputs import check_format, outputs
from heckmanfa.text.printable import shown

_STANDARD = Path("-")
_COLOURS = {"problem": "red", "caution": "yellow"}


def run(options: CheckOptions, **asked: Any) -> None:
    """Check the table, write the findings if they have a file, and print them."""
    question, out = question_of(asked), options.json_out
    piped = out == _STANDARD
    check_format(None if piped else out, ".json", "--json")
    files = {"--json": None if piped else out}
    with saying() as say, outputs(files, {"DATA": question.data}, force=options.force) as places:
        check = check_table(question, say)
        text = json.dumps(_as_json(check), indent=1) + "\n"
        if "--json" in places:
            with places["--json"].writing() as place:
                place.write_text(text, encoding="utf-8")
    if piped:
        typer.echo(text, nl=False)
        return
    console = output(most=MOST_WIDE)
    _show(check, console)
    if out is not None:
        console.print(f"findings written to {shown(out)}")


def _show(check: TableCheck, console: Console) -> None:
    console.print(Text(check.headline, style="bold"))
    for level, words in check.lines():
        console.print(Text.assemble((f"{level}: ", _COLOURS[level]), words))
    for note in check.notes:
        console.print(f"note: {note}")
    console.print(check.last_words)
    # A line that is copied must not be wrapped.
    console.print(f"  {check.command}", soft_wrap=True)


def _as_json(check: TableCheck) -> dict[str, Any]:
    return {
        "data": check.question.place,
        "outcome": check.question.outcome,
        "rows": check.n_rows,
        "columns": check.n_columns,
        "findings": check.records,
        "notes": list(check.notes),
        "blocked": check.is_blocked,
        "command": check.command,
    }

"""The work of ``heckmanfa help``: options by topic, with their full text."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from heckmanfa.cli.commands import HelpOptions, app
from heckmanfa.cli.console import tell
from heckmanfa.cli.topics import TOPICS, by_topic, of_topics
from heckmanfa.errors import InputError
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

_ALL = "all"


def run(options: HelpOptions) -> None:
    """Print the options of a topic, of all topics, or the help of a command."""
    program: Any = get_command(app)
    fit, asked = program.commands["fit"], options.topic
    if asked is None:
        tell("Options of heckmanfa fit by topic:")
        for topic, names in by_topic(fit.params):
            tell(f"  heckmanfa help {topic}: {names}")
        tell(f"  heckmanfa help {_ALL}: every option")
    elif asked in program.commands:
        _show(program.commands[asked], asked)
    elif asked in (_ALL, *TOPICS):
        _show(of_topics(fit, TOPICS if asked == _ALL else [asked]), "fit")
    else:
        known = [*TOPICS, *program.commands, _ALL]
        raise InputError(
            f"there is no help on {quoted(asked)}; heckmanfa help lists the topics"
            f"{nearest(asked, known)}"
        )


def _show(command: TyperCommand, name: str) -> None:
    """Print the help of a command, as ``--help`` does."""
    with command.make_context(f"heckmanfa {name}", [], resilient_parsing=True) as context:
        text = command.get_help(context)
    if text:
        typer.echo(text)

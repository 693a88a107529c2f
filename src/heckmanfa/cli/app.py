"""The application: its commands, and how errors end."""

from __future__ import annotations

import errno
import functools
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from heckmanfa import __version__
from heckmanfa.cli.commands import compare, demo, fit, predict, reproduce, simulate
from heckmanfa.errors import HeckmanfaError, OutOfMemoryError
from heckmanfa.text.option_names import in_options
from heckmanfa.text.option_words import at_command_line
from heckmanfa.text.printable import printable

_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_DEBUG = "--debug"
_debug = {"on": False}

app = typer.Typer(
    name="heckmanfa",
    epilog="Start with: heckmanfa demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"heckmanfa {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option(_DEBUG, help="Show where an error comes from (with any command).")
    ] = False,
) -> None:
    """Heckman selection models, and which features predict and which drive selection."""
    _debug["on"] = debug


def _with_exit_status(command: Callable[..., None]) -> Callable[..., None]:
    """Make errors end a command with one line and an exit status."""

    @functools.wraps(command)
    @at_command_line()
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            _within_memory(command, *args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt as error:
            typer.echo("interrupted", err=True)
            raise typer.Exit(_INTERRUPTED) from error
        except HeckmanfaError as error:
            if _debug["on"]:
                raise
            typer.echo(f"error: {_one_line(error)}", err=True)
            raise typer.Exit(_USAGE) from error
        except Exception as error:
            if _debug["on"]:
                raise
            if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
                # Files are written under their names; what has none is standard output.
                typer.echo(f"error: standard output cannot be written: {error.strerror}", err=True)
                raise typer.Exit(_FAILED) from error
            typer.echo(
                f"unexpected error ({type(error).__name__}: {_one_line(error)}); run the command "
                f"again with {_DEBUG} to see where it comes from",
                err=True,
            )
            raise typer.Exit(_FAILED) from error

    return run


def _within_memory(command: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Run a command; a lack of memory, wherever it is found, is one of our errors."""
    try:
        command(*args, **kwargs)
    except HeckmanfaError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(
            "there is not enough memory for this; name fewer columns with --features, write the "
            "table as Parquet and read it in passes (--stream-above 0), or use a larger machine"
        ) from error


def _one_line(error: Exception) -> str:
    return printable(" ".join(in_options(str(error)).split()))


for _command in (fit, predict, compare, simulate, demo, reproduce):
    app.command()(_with_exit_status(_command))


def main() -> None:
    """Run the command line; ``--debug`` may be anywhere in it."""
    words = [word for word in sys.argv[1:] if word != _DEBUG]
    app([_DEBUG, *words] if len(words) < len(sys.argv) - 1 else words)

"""The commands: classes that declare their options and help, how they run, and how errors end.

A command that asks a question about a table also gets options of `heckmanfa.analysis.options`,
which come before its own (`heckmanfa.cli.declaring`).
"""

from __future__ import annotations

import errno
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from heckmanfa import __version__
from heckmanfa.cli.bounds_options import BoundsOptions
from heckmanfa.cli.declaring import COMMANDS, command
from heckmanfa.cli.topics import RESULTS, TopicalCommand
from heckmanfa.errors import HeckmanfaError, OutOfMemoryError
from heckmanfa.text.option_words import at_command_line
from heckmanfa.text.printable import printable, take_any_encoding

Force = Annotated[bool, Option("--force", help="Replace existing files.")]


def _result(*names: str, help: str) -> Any:
    """Return an option about where the results go."""
    return Option(*names, help=help, rich_help_panel=RESULTS)


@command
@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Fit a selection model to a table, and say which features predict and which drive selection.

    Example: heckmanfa fit wages.csv --outcome y --report wages.html --save wages.heckmanfa

    (heckmanfa simulate wages.csv makes such a table.)
    """

    report: Annotated[Path | None, _result(help="Write an HTML report here.")] = None
    brief: Annotated[
        Path | None, _result(help="Write one HTML page here: the answer, to print on a sheet.")
    ] = None
    save: Annotated[
        Path | None, _result(help="Write the model here (.heckmanfa), for predict.")
    ] = None
    json_out: Annotated[
        Path | None,
        _result(
            "--json", help="Write the results here as JSON; - is standard output, and nothing else."
        ),
    ] = None
    save_table: Annotated[
        Path | None,
        _result(
            help="Write roles and coefficients here: .csv, .xlsx, .docx, .tex, .md or .parquet."
        ),
    ] = None
    quiet: Annotated[bool, _result("--quiet", "-q", help="Print nothing but errors.")] = False
    verbose: Annotated[
        bool, _result("--verbose", "-v", help="Print notes and checks that are fine, too.")
    ] = False
    force: Annotated[bool, _result("--force", help="Replace existing files.")] = False


@command
@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Name every problem of a table at once, and print the command that fits it.

    It takes the options of fit, and writes no file but that of --json.

    Example: heckmanfa check wages.csv --outcome y
    """

    json_out: Annotated[
        Path | None,
        _result(
            "--json", help="Write the findings here as JSON; - is standard output, nothing else."
        ),
    ] = None
    force: Annotated[bool, _result("--force", help="Replace existing files.")] = False


@command
@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Predict for every row of a table, in its order.

    From Parquet to Parquet, a table may be larger than memory: see --stream-above.

    Example: heckmanfa predict wages.heckmanfa wages.csv --kind selected --out predictions.csv
    """

    model: Annotated[Path, Argument(help="A model file that fit --save wrote.")]
    data: Annotated[
        str,
        Argument(
            help="A table with the columns of the fit; of Parquet and Arrow also a folder, a "
            "pattern in quotes, or a URL; - is CSV from standard input."
        ),
    ]
    out: Annotated[Path, Option(help="Where to write predictions: .csv or .parquet.")]
    kind: Annotated[
        str,
        Option(
            help="marginal (the outcome of anyone, or its probability if it is binary), selected "
            "or unselected (given that), expected (the outcome counted as 0 if not selected), "
            "selection (the probability of being selected), or joint (of a binary outcome: of the "
            "class and of being selected). Of a treatment model: marginal (see --regime and "
            "--given) or treatment (the probability of treatment)."
        ),
    ] = "marginal"
    regime: Annotated[
        int | None,
        Option(
            help="Of a treatment model: the outcome with treatment (1) or without (0); as observed "
            "unless given."
        ),
    ] = None
    given: Annotated[
        int | None,
        Option(help="Of a treatment model: of rows that are treated (1) or not (0)."),
    ] = None
    interval: Annotated[
        str | None,
        Option(
            help="What low and high are about: prediction (a new outcome; the default) or "
            "confidence (the mean, or the probability of a class, which has no other)."
        ),
    ] = None
    no_interval: Annotated[
        bool, Option("--no-interval", help="Leave out low and high, which takes less time.")
    ] = False
    scale: Annotated[
        str,
        Option(
            help="response (amounts, or the probability of being selected) or link (the scale of "
            "the fit: logarithms with --outcome-transform, or the index of --kind selection)."
        ),
    ] = "response"
    keep_columns: Annotated[
        bool, Option("--keep-columns", help="Also write the columns of the data.")
    ] = False
    missing: Annotated[
        str,
        Option(
            help="Rows that lack a feature: empty (their prediction is an empty cell, and they are "
            "counted) or error (nothing is written)."
        ),
    ] = "empty"
    unknown: Annotated[
        str | None,
        Option(
            help="Levels of a category that the fit did not have: error, or missing (count them as "
            "missing). Unless given, as the model has it, which is error."
        ),
    ] = None
    force: Force = False


@command
@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Compare all methods side by side, judged on held-out rows that have an outcome.

    Example: heckmanfa compare wages.csv --outcome y
    """

    folds: Annotated[int, Option(min=2, help="Folds of each repeat.")] = 5
    repeats: Annotated[int, Option(min=1, help="How many times rows are split into folds.")] = 3
    ru: Annotated[
        bool | None,
        Option("--ru/--no-ru", help="RU regression (run if Torch is installed, unless given)."),
    ] = None
    out: Annotated[Path | None, Option(help="Write the table here: .csv or .parquet.")] = None
    force: Force = False


command(BoundsOptions)


@command
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Set saved models side by side in a table for a paper, and print it.

    A row goes by its term, as in educ or selection.educ, or by a category's column.

    Example: heckmanfa table first.heckmanfa second.heckmanfa --out models.tex
    """

    models: Annotated[list[Path], Argument(help="Model files that fit --save wrote.")]
    names: Annotated[
        list[str] | None,
        Option(help="What stands above the columns, separated by commas; the files' names."),
    ] = None
    labels: Annotated[
        str | None, Option(help="A codebook: what readers call columns, and what levels mean.")
    ] = None
    equations: Annotated[
        list[str] | None,
        Option(help="Which to show, in this order, such as prediction,errors; all unless given."),
    ] = None
    keep: Annotated[list[str] | None, Option(help="Terms to show; all unless given.")] = None
    drop: Annotated[
        list[str] | None, Option(help="Terms, and rows of the lower part, to leave out.")
    ] = None
    order: Annotated[list[str] | None, Option(help="Rows that come first, in this order.")] = None
    digits: Annotated[int, Option(help="Significant digits.")] = 4
    under: Annotated[
        str, Option(help="What stands under an estimate: se, interval, t, p or none.")
    ] = "se"
    stars: Annotated[
        str | None,
        Option(
            help="What p-values with stars are below, such as 0.05,0.01; no stars unless given."
        ),
    ] = None
    conf_level: Annotated[float, Option(help="Confidence level of the intervals.")] = 0.95
    out: Annotated[
        Path | None,
        Option(help="Write the table here: .tex, .docx, .xlsx, .md, .html, .txt or .csv."),
    ] = None
    force: Force = False


@command
@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """Write a simulated table: features, an outcome y that is empty where not selected, the truth.

    With --model treatment, y is of everyone, and the column d says who is treated.

    Rows are made and written a block at a time, so the table may be larger than memory. They
    are the same in one file and in several, and on any number of threads.

    Example: heckmanfa simulate wages.csv --rows 10000 --features 8 --predicting 3
    """

    out: Annotated[
        Path, Argument(help="Where to write the table: .csv or .parquet; a folder with --files.")
    ]
    rows: Annotated[int, Option(min=1, help="How many rows.")] = 2000
    n_features: Annotated[
        int, Option("--features", min=1, help="How many features, all of which select.")
    ] = 10
    n_predicting: Annotated[
        int, Option("--predicting", min=0, help="How many of them also predict.")
    ] = 5
    outcome_kind: Annotated[
        str,
        Option(
            help="linear, binary (1 where the linear outcome is positive, else 0) or ordered (a "
            "rating from 1 to 4, cut at 0, 1 and 2)."
        ),
    ] = "linear"
    model: Annotated[
        str | None,
        Option(
            help="treatment: every row has an outcome, and d says who is treated, in place of who "
            "has one."
        ),
    ] = None
    effect: Annotated[
        float | None, Option(help="Effect of treatment on y, with --model treatment (1).")
    ] = None
    rho: Annotated[float, Option(help="Correlation of the errors.")] = 0.5
    sigma: Annotated[float, Option(help="Standard deviation of the outcome's error.")] = 1.0
    selection_rate: Annotated[float, Option(help="Share of rows with an outcome.")] = 0.5
    correlation: Annotated[float, Option(help="Correlation of the features.")] = 0.0
    seed: Annotated[
        int, Option(min=0, help="Seed of the random numbers: the truth and the rows.")
    ] = 0
    files: Annotated[
        int | None,
        Option(min=1, help="Write this many Parquet files into a new folder instead of one file."),
    ] = None
    truth: Annotated[
        Path | None, Option(help="Where to write the truth as JSON; printed unless given.")
    ] = None
    force: Force = False


@command
@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Write Mroz's table of 753 women, fit it, and write the report.

    Example: heckmanfa demo
    """

    folder: Annotated[Path, Argument(help="Where to write mroz.csv and mroz.html.")] = Path(
        "heckmanfa-demo"
    )
    force: Force = False


@command
@dataclass(frozen=True, kw_only=True)
class HelpOptions:
    """Show the options of fit on a topic, with all that can be said about each.

    Example: heckmanfa help search
    """

    topic: Annotated[
        str | None, Argument(help="A topic, a command, or all; the topics are listed unless given.")
    ] = None


@command
@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Rerun the tables of Mai and Wu's paper, with our figures beside the printed ones.

    All of them take two to three minutes on two cores. The data are read from the folder that
    HECKMANFA_DATA names, or from the cache, or are downloaded. The exit status is 1 if a
    deterministic row does not match.

    Example: heckmanfa reproduce --quick
    """

    tables: Annotated[
        list[str] | None,
        Argument(
            help="Tables by their label in the paper (sampling, topjfeats, moretopj, "
            "testingmsespi0, significance, executiontimes, selfeatures), and beyond and splits, "
            "which go further; all of them unless given."
        ),
    ] = None
    quick: Annotated[bool, Option("--quick", help="Only the deterministic rows, in seconds.")] = (
        False
    )
    as_published: Annotated[
        bool,
        Option(
            "--as-published",
            help="Judge as the published run did: lambda = 0 where Phi underflows, and the lost "
            "sign in Heckman-FA*'s sigma.",
        ),
    ] = False
    seeds: Annotated[
        int, Option(min=1, help="Runs of rows that depend on a seed (the t-tests have ten).")
    ] = 5
    splits: Annotated[int, Option(min=2, help="Random splits, beyond the paper.")] = 20
    ru: Annotated[bool, Option("--ru/--no-ru", help="Run RU regression, which needs Torch.")] = True
    beyond: Annotated[
        bool,
        Option(
            "--beyond/--no-beyond", help="Whether to run and show what the paper does not have."
        ),
    ] = True
    out: Annotated[
        Path | None, Option(help="A folder for each table as CSV, JSON and Markdown.")
    ] = None
    force: Force = False


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
            for note in getattr(error, "__notes__", ()):
                typer.echo(printable(note, None), err=True)
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
    return printable(" ".join(str(error).split()))


for _command in COMMANDS:
    _kind = TopicalCommand if _command.__name__ in ("fit", "check", "bounds") else None
    app.command(cls=_kind)(_with_exit_status(_command))


def main() -> None:
    """Run the command line; ``--debug`` may be anywhere in it."""
    take_any_encoding()
    words = [word for word in sys.argv[1:] if word != _DEBUG]
    app([_DEBUG, *words] if len(words) < len(sys.argv) - 1 else words)

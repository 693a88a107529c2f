"""The commands: what each has beside the options of a question, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from heckmanfa.analysis.options import MODEL, READING
from heckmanfa.cli.declaring import command

Force = Annotated[bool, Option("--force", help="Replace existing files.")]


def _result(*names: str, help: str) -> Any:
    """Return an option of ``fit`` about where the results go."""
    return Option(*names, help=help, rich_help_panel="Results")


@command
def fit(
    report: Annotated[Path | None, _result(help="Write an HTML report here.")] = None,
    save: Annotated[
        Path | None, _result(help="Write the model here (.heckmanfa), for predict.")
    ] = None,
    json_out: Annotated[
        Path | None,
        _result(
            "--json", help="Write the results here as JSON; - is standard output, and nothing else."
        ),
    ] = None,
    save_table: Annotated[
        Path | None,
        _result(help="Write chances, roles and effects of all features here: .csv or .parquet."),
    ] = None,
    quiet: Annotated[bool, _result("--quiet", "-q", help="Print nothing but errors.")] = False,
    force: Annotated[bool, _result("--force", help="Replace existing files.")] = False,
) -> None:
    """Fit a selection model to a table, and say which features predict and which drive selection.

    An outcome of two classes gets a Heckman probit: see --outcome-kind and --positive.

    Example: heckmanfa fit wages.csv --outcome y --report wages.html --save wages.heckmanfa

    (heckmanfa simulate wages.csv makes such a table.) Parquet files may be larger than memory: see
    --stream-above.
    """


@command
def predict(
    model: Annotated[Path, Argument(help="A model file that fit --save wrote.")],
    data: Annotated[
        str,
        Argument(
            help="A table with the columns of the fit; of Parquet and Arrow also a folder, a "
            "pattern in quotes, or a URL; - is CSV from standard input."
        ),
    ],
    out: Annotated[Path, Option(help="Where to write predictions: .csv or .parquet.")],
    kind: Annotated[
        str,
        Option(
            help="marginal (the outcome of anyone, or its probability if it is binary), selected "
            "or unselected (given that), expected (the outcome counted as 0 if not selected), "
            "selection (the probability of being selected), or joint (of a binary outcome: of the "
            "class and of being selected)."
        ),
    ] = "marginal",
    interval: Annotated[
        str | None,
        Option(
            help="What low and high are about: prediction (a new outcome; the default) or "
            "confidence (the mean, or the probability of a class, which has no other)."
        ),
    ] = None,
    no_interval: Annotated[
        bool, Option("--no-interval", help="Leave out low and high, which takes less time.")
    ] = False,
    scale: Annotated[
        str,
        Option(
            help="response (amounts, or the probability of being selected) or link (the scale of "
            "the fit: logarithms with --outcome-transform, or the index of --kind selection)."
        ),
    ] = "response",
    keep_columns: Annotated[
        bool, Option("--keep-columns", help="Also write the columns of the data.")
    ] = False,
    missing: Annotated[
        str,
        Option(
            help="Rows that lack a feature: empty (their prediction is an empty cell, and they are "
            "counted) or error (nothing is written)."
        ),
    ] = "empty",
    unknown: Annotated[
        str | None,
        Option(
            help="Levels of a category that the fit did not have: error, or missing (count them as "
            "missing). Unless given, as the model has it, which is error."
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        Option(
            help="Decimal mark of CSV and Excel files, . or , (that of the table of the fit unless "
            "given).",
            rich_help_panel=READING,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Predict for every row of a table, in its order.

    From Parquet to Parquet, a table may be larger than memory: see --stream-above.

    Example: heckmanfa predict wages.heckmanfa wages.csv --kind selected --out predictions.csv
    """


@command
def compare(
    weights: Annotated[
        str | None, Option(help="Column of frequency weights.", rich_help_panel=MODEL)
    ] = None,
    folds: Annotated[int, Option(min=2, help="Folds of each repeat.")] = 5,
    repeats: Annotated[int, Option(min=1, help="How many times rows are split into folds.")] = 3,
    ru: Annotated[
        bool | None,
        Option("--ru/--no-ru", help="RU regression (run if Torch is installed, unless given)."),
    ] = None,
    out: Annotated[Path | None, Option(help="Write the table here: .csv or .parquet.")] = None,
    force: Force = False,
) -> None:
    """Compare all methods side by side, judged on held-out rows that have an outcome.

    Example: heckmanfa compare wages.csv --outcome y
    """


@command
def simulate(
    out: Annotated[
        Path, Argument(help="Where to write the table: .csv or .parquet; a folder with --files.")
    ],
    rows: Annotated[int, Option(min=1, help="How many rows.")] = 2000,
    n_features: Annotated[
        int, Option("--features", min=1, help="How many features, all of which select.")
    ] = 10,
    n_predicting: Annotated[
        int, Option("--predicting", min=0, help="How many of them also predict.")
    ] = 5,
    outcome_kind: Annotated[
        str, Option(help="linear, or binary (1 where the linear outcome is positive, else 0).")
    ] = "linear",
    rho: Annotated[float, Option(help="Correlation of the errors.")] = 0.5,
    sigma: Annotated[float, Option(help="Standard deviation of the outcome's error.")] = 1.0,
    selection_rate: Annotated[float, Option(help="Share of rows with an outcome.")] = 0.5,
    correlation: Annotated[float, Option(help="Correlation of the features.")] = 0.0,
    seed: Annotated[
        int, Option(min=0, help="Seed of the random numbers: the truth and the rows.")
    ] = 0,
    files: Annotated[
        int | None,
        Option(min=1, help="Write this many Parquet files into a new folder instead of one file."),
    ] = None,
    truth: Annotated[
        Path | None, Option(help="Where to write the truth as JSON; printed unless given.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a simulated table: features, an outcome y that is empty where not selected, the truth.

    Rows are made and written a block at a time, so the table may be larger than memory. They
    are the same in one file and in several, and on any number of threads.

    Example: heckmanfa simulate wages.csv --rows 10000 --features 8 --predicting 3
    """


@command
def demo(
    folder: Annotated[Path, Argument(help="Where to write mroz.csv and mroz.html.")] = Path(
        "heckmanfa-demo"
    ),
    force: Force = False,
) -> None:
    """Write Mroz's table of 753 women, fit it, and write the report.

    Example: heckmanfa demo
    """


@command
def reproduce(
    tables: Annotated[
        list[str] | None,
        Argument(
            help="Tables by their label in the paper (sampling, topjfeats, moretopj, "
            "testingmsespi0, significance, executiontimes, selfeatures), and beyond and splits, "
            "which go further; all of them unless given."
        ),
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="Only the deterministic rows, in seconds.")
    ] = False,
    as_published: Annotated[
        bool,
        Option(
            "--as-published",
            help="Judge as the published run did: lambda = 0 where Phi underflows, and the lost "
            "sign in Heckman-FA*'s sigma.",
        ),
    ] = False,
    seeds: Annotated[
        int, Option(min=1, help="Runs of rows that depend on a seed (the t-tests have ten).")
    ] = 5,
    splits: Annotated[int, Option(min=2, help="Random splits, beyond the paper.")] = 20,
    ru: Annotated[
        bool, Option("--ru/--no-ru", help="Run RU regression, which needs Torch.")
    ] = True,
    beyond: Annotated[
        bool,
        Option(
            "--beyond/--no-beyond", help="Whether to run and show what the paper does not have."
        ),
    ] = True,
    out: Annotated[
        Path | None, Option(help="A folder for each table as CSV, JSON and Markdown.")
    ] = None,
    force: Force = False,
) -> None:
    """Rerun the tables of Mai and Wu's paper, with our figures beside the printed ones.

    All of them take two to three minutes on two cores. The data are read from the folder that
    HECKMANFA_DATA names, or from the cache, or are downloaded. The exit status is 1 if a
    deterministic row does not match.

    Example: heckmanfa reproduce --quick
    """

"""The commands with their options and help; the work of each is in a module ``run_<command>``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from heckmanfa.cli.table_options import (
    Categorical,
    Data,
    Dates,
    Decimal,
    Exclude,
    Features,
    Force,
    HeaderRow,
    MinLevelRows,
    Missing,
    Names,
    NaValues,
    Numeric,
    Outcome,
    OutcomeKind,
    Positive,
    Reference,
    Seed,
    Selected,
    Sheet,
    StreamAbove,
    Thousands,
)

# Options of `fit`.
OutcomeTransform = Annotated[
    str | None,
    Option(
        help="Fit the logarithm of an amount: log, or log1p for log(1 + y), which allows zeros. "
        "Predictions are still amounts."
    ),
]
PredictWith = Annotated[
    Names, Option(help="Columns that may predict; with --search none, those that do.")
]
Always = Annotated[Names, Option(help="Columns that the search must let predict.")]
SelectOnly = Annotated[
    Names, Option(help="Columns that drive selection and must not predict (exclusions).")
]
Search = Annotated[
    str | None,
    Option(
        help="Which features predict: average (over all assignments, unless given), best-subset "
        "(proven optimal), fa, fa-star or correlation (the paper's), lasso, or none. --honest and "
        "--criterion mean best-subset. A binary outcome has best-subset (unless given), average "
        "and none."
    ),
]
SearchIn = Annotated[
    str,
    Option(
        help="prediction (all features drive selection, as in the paper) or both: leave features "
        "out of the selection equation as well, by the joint likelihood. For average and "
        "best-subset."
    ),
]
SelectionAlways = Annotated[
    Names, Option(help="With --search-in both: columns that must stay in the selection equation.")
]
SelectionNever = Annotated[
    Names, Option(help="With --search-in both: columns that must not drive selection.")
]
Criterion = Annotated[
    str | None,
    Option(
        help="bic, ebic, aic, adjusted_r2 or corrected_bic: bic for best-subset and lasso, "
        "adjusted_r2 for the paper's. A binary outcome has bic, ebic and aic."
    ),
]
RhoRange = Annotated[
    tuple[float, float] | None,
    Option(help="Choose only assignments whose rho is between these.", metavar="LO HI"),
]
Method = Annotated[
    str | None, Option(help="two-step (unless given) or ml; a binary outcome is fitted by ml.")
]
Start = Annotated[
    float | None,
    Option(help="With maximum likelihood: the rho to start from, to fit another maximum."),
]
Rho = Annotated[
    float | None,
    Option(help="With --search none: hold rho at this value instead of estimating it."),
]
Weights = Annotated[str | None, Option(help="Column of weights.")]
WeightKind = Annotated[str, Option(help="frequency (they count rows) or sampling.")]
Cluster = Annotated[str | None, Option(help="Column of clusters, whose rows are dependent.")]
Robust = Annotated[bool, Option("--robust", help="Robust standard errors.")]
OnSeparation = Annotated[
    str,
    Option(
        help="If a column decides selection, or a binary outcome, for some rows: error, or drop "
        "(leave out the column and these rows)."
    ),
]
Honest = Annotated[
    bool, Option("--honest", help="Choose on one half of the rows, estimate on the other.")
]
Device = Annotated[str, Option(help="cpu, or a GPU as Torch names it: cuda, cuda:1 (needs Torch).")]
ReportFile = Annotated[Path | None, Option(help="Write an HTML report here.")]
SaveFile = Annotated[Path | None, Option(help="Write the model here (.heckmanfa), for predict.")]
JsonFile = Annotated[
    Path | None,
    Option(
        "--json", help="Write the results here as JSON; - is standard output, and nothing else."
    ),
]
TableFile = Annotated[
    Path | None,
    Option(help="Write chances, roles and effects of all features here: .csv or .parquet."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.")]


def fit(
    data: Data,
    outcome: Outcome,
    outcome_kind: OutcomeKind = None,
    positive: Positive = None,
    outcome_transform: OutcomeTransform = None,
    selected: Selected = None,
    features: Features = None,
    exclude: Exclude = None,
    predict_with: PredictWith = None,
    always: Always = None,
    select_only: SelectOnly = None,
    search: Search = None,
    search_in: SearchIn = "prediction",
    selection_always: SelectionAlways = None,
    selection_never: SelectionNever = None,
    criterion: Criterion = None,
    rho_range: RhoRange = None,
    method: Method = None,
    start: Start = None,
    rho: Rho = None,
    weights: Weights = None,
    weight_kind: WeightKind = "frequency",
    cluster: Cluster = None,
    robust: Robust = False,
    missing: Missing = "drop",
    on_separation: OnSeparation = "error",
    categorical: Categorical = None,
    numeric: Numeric = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    na_values: NaValues = None,
    dates: Dates = None,
    reference: Reference = None,
    min_level_rows: MinLevelRows = 0,
    honest: Honest = False,
    stream_above: StreamAbove = 1.0,
    device: Device = "cpu",
    seed: Seed = 0,
    report: ReportFile = None,
    save: SaveFile = None,
    json_out: JsonFile = None,
    save_table: TableFile = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fit a selection model to a table, and say which features predict and which drive selection.

    An outcome of two classes gets a Heckman probit: see --outcome-kind and --positive.

    Example: heckmanfa fit wages.csv --outcome y --report wages.html --save wages.heckmanfa

    (heckmanfa simulate wages.csv makes such a table.) Parquet files may be larger than memory: see
    --stream-above.
    """
    _run("fit", locals())


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
            "given)."
        ),
    ] = None,
    thousands: Thousands = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    stream_above: StreamAbove = 1.0,
    force: Force = False,
) -> None:
    """Predict for every row of a table, in its order.

    From Parquet to Parquet, a table may be larger than memory: see --stream-above.

    Example: heckmanfa predict wages.heckmanfa wages.csv --kind selected --out predictions.csv
    """
    _run("predict", locals())


def compare(
    data: Data,
    outcome: Outcome,
    outcome_kind: OutcomeKind = None,
    positive: Positive = None,
    selected: Selected = None,
    features: Features = None,
    exclude: Exclude = None,
    search_in: SearchIn = "prediction",
    selection_always: SelectionAlways = None,
    selection_never: SelectionNever = None,
    weights: Annotated[str | None, Option(help="Column of frequency weights.")] = None,
    missing: Missing = "drop",
    on_separation: OnSeparation = "error",
    categorical: Categorical = None,
    numeric: Numeric = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    na_values: NaValues = None,
    dates: Dates = None,
    min_level_rows: MinLevelRows = 0,
    folds: Annotated[int, Option(min=2, help="Folds of each repeat.")] = 5,
    repeats: Annotated[int, Option(min=1, help="How many times rows are split into folds.")] = 3,
    ru: Annotated[
        bool | None,
        Option("--ru/--no-ru", help="RU regression (run if Torch is installed, unless given)."),
    ] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="Write the table here: .csv or .parquet.")] = None,
    force: Force = False,
) -> None:
    """Compare all methods side by side, judged on held-out rows that have an outcome.

    Example: heckmanfa compare wages.csv --outcome y
    """
    _run("compare", locals())


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
    _run("simulate", locals())


def demo(
    folder: Annotated[Path, Argument(help="Where to write mroz.csv and mroz.html.")] = Path(
        "heckmanfa-demo"
    ),
    force: Force = False,
) -> None:
    """Write Mroz's table of 753 women, fit it, and write the report.

    Example: heckmanfa demo
    """
    _run("demo", locals())


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
    _run("reproduce", locals(), progress=False)  # it has a progress bar of its own


def _run(command: str, options: Mapping[str, Any], *, progress: bool = True) -> None:
    """Do the work of a command.

    Its module is imported only now: pandas and scikit-learn would slow the start and ``--help``.
    """
    from heckmanfa.cli.console import saying  # Rich would slow the start

    module = f"heckmanfa.cli.run_{command}"
    if progress:
        with saying(quiet=bool(options.get("quiet"))) as say:
            say("loading")
            import_module(module)
    import_module(module).run(**options)

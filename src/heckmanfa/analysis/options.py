"""The options of a question about a table: names, types, defaults, and what they mean.

They are the fields of `heckmanfa.analysis.Question`, and the command line makes its options from
them. Nothing heavy is imported here, so ``--help`` is fast.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, dataclass, fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from heckmanfa.analysis.option_help import (
    BOUNDS,
    COMPARE,
    FEATURES,
    MODEL,
    OUTCOME,
    PREDICT,
    READING,
    SEARCH,
    TABLE,
    WORDS,
    About,
    Names,
)
from heckmanfa.text.option_types import (
    Criterion,
    Errors,
    InterceptAt,
    Method,
    Missing,
    OnProblem,
    OutcomeTransform,
    Regimes,
    ReplicateKind,
    Search,
    SearchIn,
    SinglePsu,
    Unit,
    WeightKind,
)


@dataclass(frozen=True)
class Options:
    """The options of a question, in the order in which a command names them."""

    data: Annotated[
        str,
        About(
            "A table: CSV (commas, semicolons, tabs or bars), Parquet, Feather, Stata or Excel; "
            "of Parquet and Arrow also a folder, a pattern in quotes, or a URL such as "
            "s3://bucket/a; - is CSV from standard input.",
            TABLE,
            COMPARE | BOUNDS,
            brief="A table: CSV, Parquet, Feather, Stata or Excel.",
        ),
    ]
    outcome: Annotated[
        str,
        About(
            "Column of the outcome, empty where it is not observed.",
            OUTCOME,
            COMPARE | BOUNDS,
            brief="Column of the outcome, empty where not observed.",
        ),
    ]
    selected: Annotated[
        str | None,
        About(
            "Column of 0 and 1 (or yes and no) that says who is selected.",
            OUTCOME,
            COMPARE | BOUNDS,
            brief="Column of 0 and 1 that says who is selected.",
        ),
    ] = None
    model: Annotated[
        str | None,
        About(
            "treatment: everyone has an outcome, and a treatment that people choose moves it (see "
            "--treated). Unless given, outcomes are missing where rows are not selected.",
            OUTCOME,
            COMPARE,
            brief="treatment: the effect of what people choose.",
        ),
    ] = None
    treated: Annotated[
        str | None,
        About(
            "With --model treatment: column of 0 and 1 (or yes and no) that says who is treated.",
            OUTCOME,
            COMPARE,
            brief="With --model treatment: column of who is treated.",
        ),
    ] = None
    features: Annotated[
        Names,
        About(
            "Columns to use, separated by commas; all others unless given.",
            FEATURES,
            COMPARE,
            brief="Columns to use; all others unless given.",
        ),
    ] = ()
    exclude: Annotated[
        Names,
        About(
            "Columns not to use in either equation.", FEATURES, COMPARE, brief="Columns not to use."
        ),
    ] = ()
    predict_with: Annotated[
        Names,
        About(
            "Columns that may predict; with --search none, those that do. compare has it for "
            "treatments.",
            FEATURES,
            COMPARE,
            brief="Columns that may predict.",
        ),
    ] = ()
    always: Annotated[Names, About("Columns that the search must let predict.", FEATURES)] = ()
    select_only: Annotated[
        Names,
        About(
            "Columns that drive selection, or treatment, and must not predict (exclusions).",
            FEATURES,
            COMPARE,
            brief="Columns that must not predict (exclusions).",
        ),
    ] = ()
    search: Annotated[
        Search | None,
        About(
            "Which features predict: average (over all assignments, unless given), best-subset "
            "(proven optimal), fa, fa-star or correlation (the paper's), lasso, or none. --honest "
            "and --criterion mean best-subset. A binary outcome has best-subset (unless given), "
            "average and none; a treatment none (unless given) and best-subset; an ordered outcome "
            "none (unless given), average and best-subset; a series none.",
            SEARCH,
            brief="average, best-subset, fa, lasso or none.",
        ),
    ] = None
    search_in: Annotated[
        SearchIn,
        About(
            "prediction (all features drive selection, as in the paper) or both: leave features "
            "out of the selection equation as well, by the joint likelihood. For average and "
            "best-subset.",
            SEARCH,
            COMPARE,
        ),
    ] = "prediction"
    selection_always: Annotated[
        Names,
        About(
            "With --search-in both: columns that must stay in the selection equation.",
            SEARCH,
            COMPARE,
        ),
    ] = ()
    selection_never: Annotated[
        Names,
        About("With --search-in both: columns that must not drive selection.", SEARCH, COMPARE),
    ] = ()
    criterion: Annotated[
        Criterion | None,
        About(
            "bic, ebic, aic, adjusted_r2 or corrected_bic: bic for best-subset and lasso, "
            "adjusted_r2 for the paper's. A binary outcome has bic, ebic and aic.",
            SEARCH,
        ),
    ] = None
    rho_range: Annotated[
        tuple[float, float] | None,
        About("Choose only assignments whose rho is between these.", SEARCH, metavar="LO HI"),
    ] = None
    method: Annotated[
        Method | None,
        About(
            "two-step (unless given), ml, or series (Newey: slopes that need no normal errors), "
            "with features that are given; classes are fitted by ml.",
            MODEL,
            brief="two-step, ml or series.",
        ),
    ] = None
    n_terms: Annotated[
        int | None,
        About(
            "With --method series: its number of terms; cross-validation chooses it unless given.",
            MODEL,
            least=1,
        ),
    ] = None
    intercept: Annotated[
        InterceptAt | None,
        About(
            'With --method series: "at infinity" identifies the intercept by the rows that are '
            "almost surely selected. Unless given, it is not identified.",
            MODEL,
        ),
    ] = None
    regimes: Annotated[
        Regimes,
        About(
            "With --model treatment: common (treatment adds the same to every outcome) or separate "
            "(treated and untreated have an equation each: the switching regression).",
            MODEL,
        ),
    ] = "common"
    by: Annotated[
        str | None,
        About("With --model treatment: column of groups, for the effect on each.", MODEL),
    ] = None
    errors: Annotated[
        Errors,
        About(
            "normal, or t (heavier tails, their degrees of freedom estimated; Marchenko and "
            "Genton), with --search none and --method ml.",
            MODEL,
        ),
    ] = "normal"
    start: Annotated[
        float | None,
        About("With maximum likelihood: the rho to start from, to fit another maximum.", MODEL),
    ] = None
    rho: Annotated[
        float | None,
        About("With --search none: hold rho at this value instead of estimating it.", MODEL),
    ] = None
    weights: Annotated[
        str | None,
        About(
            "Column of weights; in compare they count rows, unless it is of a survey.",
            MODEL,
            COMPARE | BOUNDS,
            brief="Column of weights.",
        ),
    ] = None
    weight_kind: Annotated[
        WeightKind, About("frequency (they count rows) or sampling.", MODEL, BOUNDS)
    ] = "frequency"
    cluster: Annotated[
        Names,
        About(
            "Column of clusters, whose rows are dependent; or two, separated by a comma, if rows "
            "are dependent within either.",
            MODEL,
            BOUNDS,
            brief="Column of clusters, or two.",
        ),
    ] = ()
    strata: Annotated[
        str | None,
        About(
            "Column of a survey's strata: standard errors are by its design, and weights are "
            "sampling weights. compare has the design of a survey for treatments.",
            MODEL,
            COMPARE | BOUNDS,
            brief="Column of a survey's strata.",
        ),
    ] = None
    psu: Annotated[
        str | None,
        About(
            "Column of a survey's primary sampling units, such as villages; every row is one "
            "unless given.",
            MODEL,
            COMPARE | BOUNDS,
            brief="Column of a survey's sampling units.",
        ),
    ] = None
    fpc: Annotated[
        str | None,
        About(
            "Column of the number of units that a stratum has in the population, or of the share "
            "that was drawn.",
            MODEL,
            COMPARE | BOUNDS,
        ),
    ] = None
    nest: Annotated[
        bool,
        About("Labels of sampling units start again in each stratum.", MODEL, COMPARE | BOUNDS),
    ] = False
    single_psu: Annotated[
        SinglePsu,
        About(
            "What to do with a stratum of one unit: error (refuse it), certainty (it adds nothing) "
            "or centered (take its deviation from the mean of all units).",
            MODEL,
            COMPARE | BOUNDS,
        ),
    ] = "error"
    subpop: Annotated[
        str | None,
        About(
            "Column of 0 and 1 (or yes and no) that says who is in the subpopulation; others are "
            "not fitted, and count in the design.",
            MODEL,
            COMPARE | BOUNDS,
        ),
    ] = None
    replicate_weights: Annotated[
        Names,
        About(
            "Columns of a survey's replicate weights, or a pattern of their names in quotes: the "
            "model is estimated with each, and its covariance is that of the estimates. Needs "
            "--weights and --replicate-kind.",
            MODEL,
            COMPARE,
        ),
    ] = ()
    replicate_kind: Annotated[
        ReplicateKind | None,
        About("How replicate weights were made: brr, jackknife or bootstrap.", MODEL, COMPARE),
    ] = None
    fay: Annotated[float, About("With --replicate-kind brr: Fay's factor.", MODEL, COMPARE)] = 0.0
    replicate_scale: Annotated[
        float | None,
        About(
            "What the sum of squares over replicate weights is multiplied by, if the survey's "
            "documentation has another number than that of their kind.",
            MODEL,
            COMPARE,
        ),
    ] = None
    replicate_mse: Annotated[
        bool,
        About(
            "Take squares about the estimate itself, not about the mean of the replicates.",
            MODEL,
            COMPARE,
        ),
    ] = False
    robust: Annotated[
        bool, About("Robust standard errors.", MODEL, brief="Robust standard errors.")
    ] = False
    missing: Annotated[
        Missing,
        About(
            "Rows that lack a feature: drop, or mean (fill in the mean).",
            FEATURES,
            COMPARE,
            brief="Rows that lack a feature: drop or mean.",
        ),
    ] = "drop"
    on_separation: Annotated[
        OnProblem,
        About(
            "If a column decides selection, or a binary outcome, for some rows: error, or drop "
            "(leave out the column and these rows).",
            MODEL,
            COMPARE,
        ),
    ] = "error"
    categorical: Annotated[
        Names,
        About(
            "Columns to treat as categories.",
            FEATURES,
            COMPARE | BOUNDS,
            brief="Columns to treat as categories.",
        ),
    ] = ()
    numeric: Annotated[
        Names, About("Columns to treat as numbers.", FEATURES, COMPARE | BOUNDS)
    ] = ()
    honest: Annotated[
        bool,
        About(
            "Choose on one half of the rows, estimate on the other.",
            SEARCH,
            brief="Choose on half of the rows, estimate on the rest.",
        ),
    ] = False
    decimal: Annotated[
        str | None,
        About(
            "Decimal mark of CSV and Excel files, . or , (unless given, inferred from all "
            "values; predict takes that of the fit).",
            READING,
            COMPARE | PREDICT | BOUNDS,
        ),
    ] = None
    thousands: Annotated[
        str | None,
        About(
            "Thousands separator of such files: , or . or a blank or ' (or none).",
            READING,
            COMPARE | PREDICT | BOUNDS,
        ),
    ] = None
    sheet: Annotated[
        str | None,
        About(
            "Sheet of an Excel file, by name or number (the first that is not empty unless given).",
            READING,
            COMPARE | PREDICT | BOUNDS,
            brief="Sheet of an Excel file.",
        ),
    ] = None
    header_row: Annotated[
        int | None,
        About(
            "Line of a CSV file, or row of an Excel sheet, with the names of the columns; those "
            "above it are skipped (the first below any titles unless given).",
            READING,
            COMPARE | PREDICT | BOUNDS,
            least=1,
        ),
    ] = None
    na_values: Annotated[
        Names,
        About(
            "Values that mean missing, such as -99 or refused, in all columns; or in one of them, "
            "as in income=-99.",
            READING,
            COMPARE | BOUNDS,
            brief="Values that mean missing, such as -99.",
        ),
    ] = ()
    dates: Annotated[
        Unit | None,
        About(
            "Use dates as numbers: days or years since a column's earliest date.", FEATURES, COMPARE
        ),
    ] = None
    reference: Annotated[
        Names,
        About(
            "Level that the others of a category are compared with, as in region=north (the first "
            "that rows of the fit have, unless given).",
            FEATURES,
            BOUNDS,
            metavar="COLUMN=LEVEL",
            brief="Level that the others are compared with.",
        ),
    ] = ()
    """also a dictionary of levels by column"""
    min_level_rows: Annotated[
        int,
        About(
            "Merge the levels of a category that have fewer rows than this into one, (other).",
            FEATURES,
            COMPARE,
            least=0,
        ),
    ] = 0
    ignore_case: Annotated[
        bool,
        About(
            "Count levels that differ only in case or blanks, such as M and m, as one.",
            FEATURES,
            COMPARE,
        ),
    ] = False
    drop_rows: Annotated[
        Names,
        About(
            "Rows that are not data, such as totals: a column and what it holds there, as in "
            "region=Total, or last (the last row).",
            READING,
            COMPARE | BOUNDS,
            metavar="COLUMN=VALUE",
        ),
    ] = ()
    seed: Annotated[int, About("Seed of the random numbers.", MODEL, COMPARE | BOUNDS, least=0)] = 0
    stream_above: Annotated[
        float,
        About(
            "Parquet and Arrow files whose columns would take more gigabytes than this are read "
            "in passes, not loaded.",
            READING,
            PREDICT,
            least=0,
        ),
    ] = 1.0
    device: Annotated[
        str, About("cpu, or a GPU as Torch names it: cuda, cuda:1 (needs Torch).", MODEL)
    ] = "cpu"
    outcome_kind: Annotated[
        str | None,
        About(
            "linear (amounts), binary (two classes: a Heckman probit of the probability of one of "
            "them) or ordered (classes with an order, such as ratings). Unless given, 0 and 1, "
            "true and false, and two texts are binary; other numbers are amounts.",
            OUTCOME,
            COMPARE,
            brief="linear (amounts), binary or ordered (ratings).",
        ),
    ] = None
    positive: Annotated[
        str | float | None,
        About(
            "Class of a binary outcome whose probability is modelled (unless given: 1, true, yes, "
            "or the second in order); of an ordered one, the class that effects are on the "
            "probability of reaching: this class or a higher one (unless given, the highest).",
            OUTCOME,
            COMPARE,
            brief="Class whose probability is modelled.",
        ),
    ] = None
    classes: Annotated[
        Names,
        About(
            "All classes of an ordered outcome, separated by commas, the lowest first; numbers and "
            "ordered categories of typed files know their order.",
            OUTCOME,
            COMPARE,
            brief="Classes of an ordered outcome, the lowest first.",
        ),
    ] = ()
    outcome_transform: Annotated[
        OutcomeTransform | None,
        About(
            "Fit the logarithm of an amount: log, or log1p for log(1 + y), which allows zeros. "
            "Predictions are still amounts.",
            OUTCOME,
            brief="Fit the logarithm of an amount: log or log1p.",
        ),
    ] = None
    log_outcome: Annotated[
        bool,
        About(
            "Say that the outcome column already holds logarithms, as lwage does: effects are then "
            "said in percent, and nothing else changes.",
            OUTCOME,
            brief="The outcome is a logarithm; say effects in percent.",
        ),
    ] = False
    labels: Annotated[
        str | Any | None,
        About(
            "A codebook, such as codebook.csv: a table with column, and any of label, unit and "
            "levels (0=country; 1=city). Readers see labels in place of names.",
            WORDS,
            brief="A codebook: labels, units, levels.",
        ),
    ] = None
    """also a dictionary of labels by column, or a `heckmanfa.tables.Codebook`"""
    units: Annotated[
        Names,
        About(
            "Unit of a column, as in educ=years; it counts more than that of a codebook.",
            WORDS,
            metavar="COLUMN=UNIT",
        ),
    ] = ()
    """also a dictionary of units by column"""
    profile: Annotated[
        Names,
        About(
            "Somebody whose expected outcome the report shows, in place of typical rows, as in "
            '"educ=16,kids5=2"; may be repeated. What is not named is as in the typical row.',
            WORDS,
            metavar="COLUMN=VALUE,...",
            brief="Show somebody's expected outcome: educ=16,kids5=2.",
        ),
    ] = ()
    """also a dictionary of values by column, or several"""
    step: Annotated[
        Names,
        About(
            "Change of a column that effects are said of, as in income=1000, in its units. Unless "
            "given, one unit or a round number near one standard deviation.",
            WORDS,
            metavar="COLUMN=NUMBER",
            brief="Change that effects are said of, as income=1000.",
        ),
    ] = ()
    """also a dictionary of steps by column"""
    title: Annotated[
        str | None, About("Title of the report.", WORDS, brief="Title of the report.")
    ] = None


@dataclass(frozen=True)
class QuestionOption:
    """An option as a value, read off its field."""

    name: str
    kind: Any
    """type of its values: the first that the field declares"""
    words: Collection[str]
    """the values that it takes, if its type says so; see also `outcome_models.words_asking`"""
    default: Any
    """None if there is none"""
    is_required: bool
    about: About


def _options() -> dict[str, QuestionOption]:
    hints = get_type_hints(Options, include_extras=True)
    made = {}
    for field in fields(Options):
        hint, about = get_args(hints[field.name])
        # Literals, and unions with None.
        is_whole = isinstance(hint, type) or get_origin(hint) in (Literal, tuple)
        kind = hint if is_whole else next(kind for kind in get_args(hint) if kind is not NoneType)
        words = get_args(kind) if get_origin(kind) is Literal else ()
        is_required = field.default is MISSING
        made[field.name] = QuestionOption(
            name=field.name,
            kind=str if words else kind,
            words=words,
            default=None if is_required else field.default,
            is_required=is_required,
            about=about,
        )
    return made


OPTIONS = _options()
"""the options of a question, by name"""

"""Arguments and options of the commands, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Names = list[str] | None

# Of several commands: tables and how they are read.
Data = Annotated[
    str,
    typer.Argument(
        help="A table: CSV (commas, semicolons, tabs or bars), Parquet, Feather, Stata or Excel; "
        "of Parquet also a folder, or a pattern in quotes; - is CSV from standard input."
    ),
]
Outcome = Annotated[
    str, typer.Option(help="Column of the outcome, empty where it is not observed.")
]
Selected = Annotated[
    str | None, typer.Option(help="Column of 0 and 1 (or yes and no) that says who is selected.")
]
Features = Annotated[
    Names, typer.Option(help="Columns to use, separated by commas; all others unless given.")
]
Exclude = Annotated[Names, typer.Option(help="Columns not to use in either equation.")]
Missing = Annotated[
    str, typer.Option(help="Rows that miss a feature: drop, or mean (fill in the mean).")
]
Categorical = Annotated[Names, typer.Option(help="Columns to treat as categories.")]
Numeric = Annotated[Names, typer.Option(help="Columns to treat as numbers.")]
Decimal = Annotated[
    str | None,
    typer.Option(
        help="Decimal mark of CSV and Excel files, . or , (inferred from all values unless given)."
    ),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="Thousands separator of such files: , or . or a blank or ' (or none)."),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        help="Sheet of an Excel file, by name or number (the first that is not empty unless given)."
    ),
]
StreamAbove = Annotated[
    float,
    typer.Option(
        min=0,
        help="Parquet files whose columns would take more gigabytes than this are read in passes, "
        "not loaded.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]

# The model of `fit`.
PredictWith = Annotated[
    Names, typer.Option(help="Columns that may predict; with --search none, those that do.")
]
Always = Annotated[Names, typer.Option(help="Columns that the search must let predict.")]
SelectOnly = Annotated[
    Names, typer.Option(help="Columns that drive selection and must not predict (exclusions).")
]
Search = Annotated[
    str,
    typer.Option(
        help="How to find the prediction features: best-subset (proven optimal), fa, fa-star or "
        "correlation (the paper's), or none."
    ),
]
Criterion = Annotated[
    str | None,
    typer.Option(help="bic, aic or adjusted_r2: bic for best-subset, adjusted_r2 for the paper's."),
]
RhoRange = Annotated[
    tuple[float, float] | None,
    typer.Option(help="Choose only assignments whose rho is between these.", metavar="LO HI"),
]
Method = Annotated[str, typer.Option(help="two-step or ml.")]
Start = Annotated[
    float | None,
    typer.Option(help="With --method ml: the rho to start from, to fit another maximum."),
]
Weights = Annotated[str | None, typer.Option(help="Column of weights.")]
WeightKind = Annotated[str, typer.Option(help="frequency (they count rows) or sampling.")]
Cluster = Annotated[str | None, typer.Option(help="Column of clusters, whose rows are dependent.")]
Robust = Annotated[bool, typer.Option("--robust", help="Robust standard errors.")]
OnSeparation = Annotated[
    str,
    typer.Option(
        help="If a column decides selection for some rows: error, or drop (leave out the column "
        "and these rows)."
    ),
]
Honest = Annotated[
    bool,
    typer.Option("--honest", help="Choose on one half of the rows, estimate on the other."),
]
Device = Annotated[
    str, typer.Option(help="cpu, or a GPU as Torch names it: cuda, cuda:1 (needs Torch).")
]
ReportFile = Annotated[Path | None, typer.Option(help="Write an HTML report here.")]
SaveFile = Annotated[Path | None, typer.Option(help="Write the model here (.skops), for predict.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the results here as JSON.")]

# `compare`.
Folds = Annotated[int, typer.Option(min=2, help="Folds of each repeat.")]
Repeats = Annotated[int, typer.Option(min=1, help="How often rows are split into folds.")]
Ru = Annotated[
    bool | None,
    typer.Option("--ru/--no-ru", help="RU regression (run if Torch is installed, unless given)."),
]
FrequencyWeights = Annotated[str | None, typer.Option(help="Column of frequency weights.")]
TableFile = Annotated[Path | None, typer.Option(help="Write the table here: .csv or .parquet.")]

# `predict`.
ModelFile = Annotated[Path, typer.Argument(help="A model file that fit --save wrote.")]
NewData = Annotated[
    str,
    typer.Argument(
        help="A table with the columns of the fit; of Parquet also a folder, or a pattern in "
        "quotes; - is CSV from standard input."
    ),
]
PredictionFile = Annotated[Path, typer.Option(help="Where to write predictions: .csv or .parquet.")]
Kind = Annotated[
    str,
    typer.Option(
        help="marginal (the outcome of anyone), selected or unselected (given that), or "
        "selection (the probability of being selected)."
    ),
]
Interval = Annotated[
    str | None,
    typer.Option(
        help="Add low and high: prediction (of a new outcome) or confidence (of the mean)."
    ),
]
KeepColumns = Annotated[
    bool, typer.Option("--keep-columns", help="Also write the columns of the data.")
]
MissingPredictions = Annotated[
    str,
    typer.Option(
        help="Rows that miss a feature: empty (their prediction is an empty cell, and they are "
        "counted) or error (nothing is written)."
    ),
]
NewDecimal = Annotated[
    str | None,
    typer.Option(
        help="Decimal mark of CSV and Excel files, . or , (that of the table of the fit unless "
        "given)."
    ),
]

"""Options that several commands share: tables, how they are read, and what the outcome is."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

Names = list[str] | None

Data = Annotated[
    str,
    Argument(
        help="A table: CSV (commas, semicolons, tabs or bars), Parquet, Feather, Stata or Excel; "
        "of Parquet and Arrow also a folder, a pattern in quotes, or a URL such as s3://bucket/a; "
        "- is CSV from standard input."
    ),
]
Outcome = Annotated[str, Option(help="Column of the outcome, empty where it is not observed.")]
OutcomeKind = Annotated[
    str | None,
    Option(
        help="linear (amounts) or binary (two classes: a Heckman probit of the probability of one "
        "of them). Unless given, 0 and 1, true and false, and two texts are binary; other numbers "
        "are amounts."
    ),
]
Positive = Annotated[
    str | None,
    Option(
        help="Class of a binary outcome whose probability is modelled (unless given: 1, true, yes, "
        "or the second in order)."
    ),
]
Selected = Annotated[
    str | None, Option(help="Column of 0 and 1 (or yes and no) that says who is selected.")
]
Features = Annotated[
    Names, Option(help="Columns to use, separated by commas; all others unless given.")
]
Exclude = Annotated[Names, Option(help="Columns not to use in either equation.")]
Missing = Annotated[str, Option(help="Rows that lack a feature: drop, or mean (fill in the mean).")]
Categorical = Annotated[Names, Option(help="Columns to treat as categories.")]
Numeric = Annotated[Names, Option(help="Columns to treat as numbers.")]
Decimal = Annotated[
    str | None,
    Option(
        help="Decimal mark of CSV and Excel files, . or , (inferred from all values unless given)."
    ),
]
Thousands = Annotated[
    str | None, Option(help="Thousands separator of such files: , or . or a blank or ' (or none).")
]
Sheet = Annotated[
    str | None,
    Option(
        help="Sheet of an Excel file, by name or number (the first that is not empty unless given)."
    ),
]
HeaderRow = Annotated[
    int | None,
    Option(
        min=1,
        help="Line of a CSV file, or row of an Excel sheet, with the names of the columns; those "
        "above it are skipped (the first below any titles unless given).",
    ),
]
NaValues = Annotated[
    Names,
    Option(
        help="Values that mean missing, such as -99 or refused, in all columns; or in one of them, "
        "as in income=-99."
    ),
]
Dates = Annotated[
    str | None,
    Option(help="Use dates as numbers: days or years since a column's earliest date."),
]
Reference = Annotated[
    Names,
    Option(
        help="Level that the others of a category are compared with, as in region=north (the "
        "first that rows of the fit have, unless given).",
        metavar="COLUMN=LEVEL",
    ),
]
MinLevelRows = Annotated[
    int,
    Option(
        min=0,
        help="Merge the levels of a category that have fewer rows than this into one, (other).",
    ),
]
StreamAbove = Annotated[
    float,
    Option(
        min=0,
        help="Parquet and Arrow files whose columns would take more gigabytes than this are read "
        "in passes, not loaded.",
    ),
]
Seed = Annotated[int, Option(min=0, help="Seed of the random numbers.")]
Force = Annotated[bool, Option("--force", help="Replace existing files.")]

"""Words of the checks about rows, columns and what was not done; see `check_words`."""

from __future__ import annotations

from heckmanfa.results.check_kinds import CheckWords, Kind

# In reading order within each kind.
ROW_CHECK_WORDS: dict[str, CheckWords] = {
    "selection": CheckWords(
        Kind.ROWS,
        "missing outcomes",
        "No outcome is missing.",
        "Check that outcomes that were not observed are empty cells.",
        why="This is least squares: there is nothing to correct, and rho is not identified.",
    ),
    "rows_lost": CheckWords(
        Kind.ROWS,
        "rows that lack a feature",
        "Many rows were left out because they lack a feature.",
        "Leave out the columns with the gaps (--exclude), or fill them in (--missing mean).",
        titles={"few": "A few rows were left out because they lack a feature."},
    ),
    "rows_dropped": CheckWords(
        Kind.ROWS,
        "rows left out",
        "Some rows were left out of the fit.",
        "Look at these rows before you speak of the others.",
        gravest="note",
    ),
    "decided_rows": CheckWords(
        Kind.ROWS,
        "separation",
        "Rows were left out because a column decides them.",
        "Say so: the answer is not about such rows.",
        gravest="caution",
    ),
    "filled_in": CheckWords(
        Kind.ROWS,
        "missing cells",
        "Missing cells hold the average of their column.",
        "Compare with --missing drop.",
    ),
    "outside_range": CheckWords(
        Kind.ROWS,
        "rows outside the range of lambda",
        "Many rows lie beyond what the rows with an outcome cover.",
        "Say that predictions for these rows are extrapolated.",
        why="lambda was learned within the range of the fit and nowhere else.",
    ),
    "clusters": CheckWords(
        Kind.ROWS,
        "clusters",
        "The clusters are few.",
        "Report the number of clusters, and claim less. If a finer grouping keeps dependent rows "
        "together, name its column with --cluster.",
        titles={"too few": "There are no more clusters than parameters."},
    ),
    "dropped_features": CheckWords(
        Kind.ROWS,
        "columns",
        "Some columns were left out.",
        "Say so, or leave out the columns that they copy, with --exclude.",
    ),
    "frequency_weights": CheckWords(
        Kind.ROWS,
        "weights",
        "The weights may be sampling weights.",
        "If they are survey weights, use --weight-kind sampling.",
    ),
    "row_labels": CheckWords(
        Kind.ROWS,
        "row labels",
        "Rows without labels were matched by position.",
        "Give everything that belongs to the rows the same index.",
    ),
    "text_numbers": CheckWords(
        Kind.ROWS,
        "text columns",
        "A text column that holds numbers was taken as categories.",
        "If it is a number, name it with --numeric.",
    ),
    "underdetermined": CheckWords(
        Kind.INVALID,
        "rows for the coefficients",
        "The rows do not determine the coefficients.",
        "Use fewer features (--features, --exclude).",
    ),
    "fit_warning": CheckWords(
        Kind.ROWS,
        "warnings of the fit",
        "The fit gave a warning.",
        "Read it before you report the estimates.",
    ),
    "outcome_code": CheckWords(
        Kind.INVALID,
        "codes for missing in the outcome",
        "The outcome holds a number that may mean missing.",
        "If it means missing, name it with --na-values.",
    ),
    "feature_codes": CheckWords(
        Kind.ROWS,
        "codes for missing in features",
        "Features hold numbers that may mean missing.",
        "If they mean missing, name them with --na-values.",
        gravest="caution",
    ),
    "reference_rows": CheckWords(
        Kind.ROWS,
        "rows of reference levels",
        "Levels of a category are compared with one that few rows have.",
        "Name a level that many rows have with --reference.",
        gravest="caution",
    ),
    "level_spellings": CheckWords(
        Kind.ROWS,
        "spellings of levels",
        "Levels of a category differ only in case or blanks.",
        "If they mean the same, spell them in one way in the table: each has its own coefficient.",
        gravest="caution",
    ),
    "coded_numbers": CheckWords(
        Kind.ROWS,
        "numbers that may be codes",
        "A column that is named like one of codes is used as an amount.",
        "If its numbers name things, pass it to --categorical.",
        gravest="caution",
    ),
    "derived": CheckWords(
        Kind.ROWS,
        "columns made from others",
        "Some columns are squares or products of others.",
        "Keep them together with --always, or leave the derived ones out with --exclude. The "
        "picture of who is selected moves them together.",
        gravest="note",
    ),
    "not_run": CheckWords(
        Kind.ROWS,
        "checks that were not run",
        "Some checks were not run.",
        "Do not take for fine what was not checked.",
        gravest="note",
    ),
}

"""Words of the facts about rows, columns, and checks that were not run."""

from __future__ import annotations

from heckmanfa.results.distribution import FEW_CLUSTERS, FEW_UNITS
from heckmanfa.results.facts import (
    EXCLUDE,
    FactWords,
)
from heckmanfa.results.funnel import LACKING, NOT_DATA
from heckmanfa.text.option_words import instead, option

_FEW_CLUSTERS = (
    f"With fewer than {FEW_CLUSTERS} clusters, standard errors tend to be too small, and tests "
    "reject too often."
)
_FEW_UNITS = (
    f"With fewer than {FEW_UNITS} degrees of freedom, standard errors tend to be too small, and "
    "tests reject too often."
)
_UNITS = "{clusters} leave {rank} degrees of freedom for {parameters} parameters."
_LOW_RANK = (
    "The covariance has rank {rank} at most, and no more coefficients than that can be tested "
    "together. Do not rely on these standard errors."
)
REPAIRED = (
    "The sum of both clusterings' covariances less that of their cells was not positive definite: "
    "its negative eigenvalues were set to zero, which does not make standard errors smaller."
)
_USE = "Tests and intervals use {distribution}."
WILD = instead(
    " wild_test() tests coefficients with few clusters.",
    " In Python, wild_test() of the model tests coefficients with few clusters.",
)

ROWS: dict[str, FactWords] = {
    "selection": FactWords(
        "missing outcomes",
        "No outcome is missing.",
        "Check that outcomes that were not observed are empty cells.",
        why="This is {plain}: there is nothing to correct, and rho is not identified.",
        line="selection",
        meaning="No outcome was missing: nothing to diagnose.",
        sentence="No selection was corrected for, and rho is not identified.",
        claim="That selection was corrected for",
        because="no outcome is missing in the fit, and this is {plain}.",
    ),
    "rows_lost": FactWords(
        "rows that lack a feature",
        {
            "": "Rows were left out because they lack a feature.",
            "few": "A few rows were left out because they lack a feature.",
        },
        f"Leave out the columns with the gaps ({EXCLUDE}), or fill them in "
        f"({option('missing', 'mean')}).",
        meaning={"": "Rows left out: {rows}{advice}", "few": "{rows}"},
        sentence={"caution": "{meaning}"},
        claim={"caution": "That the rows left out are like the others"},
        because="{rows}",
    ),
    "many_rows_lost": FactWords(
        "rows that were read and not used",
        "{share} of the rows were left out.",
        {
            LACKING: "Leave out the columns that cost most rows ({leave_out}), or fill their gaps "
            f"in ({option('missing', 'mean')}), and compare the answers.",
            NOT_DATA: f"Check that {option('drop_rows')} names only rows that are not data.",
            "left_out_outcome_missing": "Find out why selected rows lack {outcome}, or leave out "
            f"{option('selected')}, so that rows without {{outcome}} count as not selected.",
            "left_out_zero_weight": "Check that these rows are meant to have a weight of zero.",
            "": "Say so: the answer is not about such rows.",
        },
        meaning="These were read and not used: {reasons}.{advice} The answer is about the others.",
        sentence="{value} rows were read and not used: {reasons}.{advice} The answer is about the "
        "others.",
        claim="That the rows left out are like the others",
        because="{value} rows ({share}) are left out: {reasons}.",
    ),
    "rows_dropped": FactWords(
        "rows left out",
        "Some rows were left out of the fit.",
        "Look at these rows before you draw conclusions about the others.",
        meaning="{words}",
    ),
    "decided_rows": FactWords(
        "separation",
        "Rows were left out because a column decides them.",
        "Say so: the answer is not about such rows.",
        line="separation",
        meaning="A column decides their {decided}, so the likelihood has no maximum with them. The "
        "estimates say nothing about such rows.",
    ),
    "filled_in": FactWords(
        "missing cells",
        "Missing cells hold the average of their column.",
        f"Compare with {option('missing', 'drop')}.",
        sentence="Missing cells hold the average of their column, and standard errors take the "
        "average as if it had been observed.",
        claim="That the filled-in values are the true ones",
        because="standard errors take the average as if it had been observed.",
    ),
    "outside_range": FactWords(
        "rows outside the range of the fit",
        "Many rows lie beyond what the rows with an outcome cover.",
        "Say that predictions for these rows are extrapolated.",
        why="The correction was learned within the range of the fit and nowhere else.",
        line="rows outside that range",
        meaning={
            "": "Predictions given selection extrapolate {correction} there.",
            "ok": "Predictions given selection stay within the range of the fit.",
        },
        claim={"caution": "That predictions hold for rows unlike any with an outcome"},
        because="{share} of the rows lie beyond what the selected rows cover.",
    ),
    "clusters": FactWords(
        {
            "": "clusters",
            **dict.fromkeys(("units", "few units", "too few units"), "design of the survey"),
        },
        {
            "": "The clusters are few.",
            "too few": "There are no more clusters than parameters.",
            "repaired": "The covariance of both clusterings is singular.",
            "few units": "The design has few degrees of freedom.",
            "too few units": "The design has fewer degrees of freedom than there are parameters.",
        },
        {
            "": "Report the number of clusters, and claim less. If a finer grouping keeps "
            f"dependent rows together, name its column with {option('cluster', ...)}.{{wild}}",
            **dict.fromkeys(
                ("few units", "too few units"), "Report the design ({clusters}), and claim less."
            ),
        },
        line="clusters",
        meaning={
            "": f"{_FEW_CLUSTERS} {_USE}",
            "too few": f"{_LOW_RANK} {_USE}",
            "repaired": f"{REPAIRED} {_USE}",
            "few units": f"{_FEW_UNITS} {_USE}",
            "too few units": f"{_LOW_RANK} {_USE}",
            "ok": _USE,
        },
        sentence={
            "": f"There are {{clusters}} clusters for {{parameters}} parameters. {_FEW_CLUSTERS}",
            "too few": "There are {clusters} clusters for {parameters} parameters. "
            f"{_LOW_RANK}",
            "repaired": "There are {clusters} clusters for {parameters} parameters. "
            f"{REPAIRED}",
            "few units": f"{_UNITS} {_FEW_UNITS}",
            "too few units": f"{_UNITS} {_LOW_RANK}",
            "ok": "",
        },
        claim={"": "That standard errors and p-values are reliable", "ok": ""},
        because={
            "": "they rest on {clusters} clusters.",
            **dict.fromkeys(("few units", "too few units"), "they rest on {clusters}."),
        },
    ),
    "dropped_features": FactWords(
        "columns",
        "Some columns were left out.",
        f"Say so, or leave out the columns that they copy, with {EXCLUDE}.",
        sentence="Columns left out as collinear, constant or separating: {names}.",
    ),
    "frequency_weights": FactWords(
        "weights",
        "The column that counts rows may come from a survey's design.",
        f"If they are survey weights, use {option('weight_kind', 'sampling')}.",
    ),
    "row_labels": FactWords(
        "row labels",
        "Rows without labels were matched by position.",
        "Give everything that belongs to the rows the same index.",
    ),
    "text_numbers": FactWords(
        "text columns",
        "A text column that holds numbers was taken as categories.",
        f"If it is a number, name it with {option('numeric', [...])}.",
    ),
    "fit_warning": FactWords(
        "warnings of the fit",
        "The fit gave a warning.",
        "Read it before you report the estimates.",
    ),
    "feature_codes": FactWords(
        "codes for missing in features",
        "Features hold numbers that may mean missing.",
        "{advice}",
    ),
    "reference_rows": FactWords(
        "rows of reference levels",
        "Levels of a category are compared with a reference that few rows have.",
        "{advice}",
    ),
    "level_spellings": FactWords(
        "spellings of levels",
        "Levels of a category differ only in case or blanks.",
        f"If they mean the same, spell them alike in the table, or pass "
        f"{option('ignore_case', True)}: each has its own coefficient.",
    ),
    "coded_numbers": FactWords(
        "numbers that may be codes",
        "A column whose name suggests codes is used as an amount.",
        "{advice}",
    ),
    "derived": FactWords(
        "columns made from others",
        "{made}.",
        {
            "": f"Keep them together with {option('always', [...])}, or leave the derived ones out "
            f"with {EXCLUDE}. The picture of who is selected moves them together.",
            "given": "Interpret their coefficients together, or leave the derived ones out with "
            f"{EXCLUDE}. The picture of who is selected moves them together.",
        },
    ),
    "not_run": FactWords(
        "checks that were not run",
        "{checks} not run.",
        "Do not assume that what was not checked is fine.",
    ),
}
"""the rows, the columns, and what was not done"""

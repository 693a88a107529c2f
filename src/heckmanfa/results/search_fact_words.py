"""Words of the facts about searches, averages, rows and columns; see `fact_words`."""

from __future__ import annotations

from heckmanfa.results.facts import UNTESTED, FactWords, Kind
from heckmanfa.text.chances import BY, LOW
from heckmanfa.text.option_words import IN_NEVER, instead, option

_AVERAGE = option("search", "average")
_BEST_SUBSET = option("search", "best-subset")
PREDICT_WITH = option("prediction_features", [...])
EXCLUDE = option("exclude", [...])
_SEED = option("random_state", ...)
_HONEST = option("honest", True)
_MIN_ROWS = option("min_level_rows", ...)
NEVER = option("never", [...])

STRONGER = (
    "Look for a feature that drives selection strongly and has no reason to predict, and name it "
    f"{IN_NEVER}."
)
FEWER = f"Use more rows, or fewer features: {PREDICT_WITH} names those that may predict."
_TOO_SMALL = (
    "they are those of a model whose features were known beforehand, and tend to be too small."
)
_NOT_A_TEST = "After a search this is descriptive, not a test."

# In reading order within each kind.
SEARCH_AND_ROW_WORDS: dict[str, FactWords] = {
    "best_set": FactWords(
        Kind.SEARCH,
        "best set",
        {
            "": "The best set changes with the sample.",
            "not drawn": "No set of features stands out.",
            "chosen": "The chosen set is not the best by BIC.",
        },
        {"": "Report the averaged numbers and the chance of each feature, not the best set alone."}
        | dict.fromkeys(
            ("chosen", "searched"),
            f"Report averaged numbers ({_AVERAGE}) and the chance of each feature, not this set "
            "alone.",
        ),
        line="BIC weight of the {which} assignment",
        meaning={
            "": "The data do not single it out.",
            "ok": "It outweighs all others together.",
            "chosen": "The best by BIC has {best}.",
            "drawn": "{drawn}",
            "searched": "{drawn}",
        },
        sentence={"": "{sentence}", "drawn": "", "searched": ""},
    ),
    "bootstrap_search": FactWords(
        Kind.SEARCH,
        "choice in bootstrap samples",
        "Other features are chosen from resampled data.",
        f"Report averaged numbers ({_AVERAGE}) and how often each feature is chosen.",
        line="bootstrap of the search",
        meaning={
            "": "Other features are chosen from resampled data: report how often each is.",
            "ok": "The choice is stable under resampling.",
        },
    ),
    "search": FactWords(
        Kind.SEARCH,
        "search",
        {"caution": "A better set of features may exist."},
        f"Use {_AVERAGE} or {_BEST_SUBSET}, or let fewer features predict ({PREDICT_WITH}).",
        sentence="{found}",
        claim={"caution": "That no assignment is better"},
        because="{doubt}",
    ),
    "search_ended": FactWords(
        Kind.SEARCH,
        "end of the search",
        "The search ended early.",
        f"Let fewer features predict ({PREDICT_WITH}, {EXCLUDE}), and search again.",
        sentence="{why}",
    ),
    "search_warning": FactWords(
        Kind.SEARCH,
        "search",
        "The search gave a warning.",
        f"Try another {_SEED}, or {_AVERAGE}.",
    ),
    "search_ignored": FactWords(
        Kind.SEARCH,
        "intervals after the search",
        "The intervals ignore the search.",
        f"Use {_AVERAGE}, whose intervals allow for it, or {_HONEST}.",
        why="The same rows choose the features and estimate them, so intervals are too narrow.",
        line="standard errors after the search",
        sentence={
            "": f"Standard errors, intervals and p-values ignore the search: {_TOO_SMALL} "
            + instead("bootstrap() repeats the search; ", "")
            + f"{_HONEST} estimates on rows that had no part in it.",
            # A search of both equations has no honest halves.
            "both": "Standard errors, intervals and p-values ignore the search of both equations: "
            f"{_TOO_SMALL}",
        },
    ),
    "near_ties": FactWords(
        Kind.SEARCH,
        "sets nearly as good",
        "Other sets of features are nearly as good.",
        f"Use {_AVERAGE}, and report the chance of each feature.",
        sentence="{ties} {report}",
        claim="That these features and no others predict",
        because="{ties}",
    ),
    "sampled": FactWords(
        Kind.SEARCH,
        "sampled assignments",
        "The chains of the sampler do not agree.",
        f"Round the chances, try another {_SEED}, or let fewer features predict ({PREDICT_WITH}).",
        line="sampler",
        sentence={
            "": "The chains of the sampler do not agree: a share differs by {differ}.",
            "ok": "The chains of the sampler agree: no share differs by more than {differ}.",
        },
        claim={"caution": "That the shares of weight are exact"},
        because="the chains of the sampler do not agree: a share differs by {differ}.",
    ),
    "outside_weight": FactWords(
        Kind.SEARCH,
        "weight with rho outside (-1, 1)",
        "Many assignments have a rho outside (-1, 1).",
        f"{STRONGER} Or keep rho in a window ({option('rho_range', ...)}).",
        line="BIC weight with |rho-hat| >= 1",
        meaning={
            "caution": "The data do not fit many assignments, or hardly identify rho in them.",
            "ok": "Nearly all of the weight has a rho that is a correlation.",
            "averaged": "",
        },
        sentence={
            "averaged": "Assignments with rho {where} carry {value}: the model does not fit them, "
            "or hardly identifies rho."
        },
        claim={"averaged": "That rho is a correlation in every assignment"},
        because="assignments with rho {where} carry {value}.",
    ),
    "honest_splits": FactWords(
        Kind.SEARCH,
        "honest splits",
        "Halves of the rows choose different features.",
        "Report in how many halves each feature was chosen, and claim less for the rarer ones.",
        line="honest splits",
        meaning={
            "": "Half of the rows do not always choose the same features.",
            "ok": "Half of the rows choose the same features.",
        },
    ),
    "honest_failures": FactWords(
        Kind.SEARCH,
        "halves that failed",
        "Some halves of the rows could not be fitted.",
        f"Let fewer features predict ({PREDICT_WITH}), or merge rare levels.",
        sentence="{splits} failed: {reason}",
    ),
    "bootstrap": FactWords(
        Kind.SEARCH,
        "bootstrap fits that failed",
        "Many bootstrap samples could not be fitted.",
        f"Merge rare levels of categories ({_MIN_ROWS}), let fewer features predict "
        f"({PREDICT_WITH}), or name stronger exclusions in {NEVER}.",
        line="bootstrap",
        meaning={
            "": "Replicates that cannot be fitted show how close the data are to not identifying "
            "the model.",
            "ok": "The model can be fitted to resampled data.",
        },
    ),
    "left_out": FactWords(
        Kind.SEARCH,
        "features left out, together",
        {
            "caution": "The features left out would improve the fit together.",
            UNTESTED: "All candidates cannot be fitted together.",
        },
        f"Use {_AVERAGE}, or compare with {option('search', 'none')} first.",
        line="features left out, in the model of all candidates",
        meaning={
            "caution": f"Together they would improve AIC. {_NOT_A_TEST}",
            "ok": f"Together they would not improve AIC. {_NOT_A_TEST}",
            UNTESTED: "All candidates cannot be fitted together, so there is no joint chi-squared "
            "of those left out.",
        },
        sentence={
            "": f"In the model of all candidates, the {{features}} left out {{have}} {{value}}. "
            f"{_NOT_A_TEST}",
            UNTESTED: "{meaning}",
        },
    ),
    "weight_kinds": FactWords(
        Kind.SEARCH,
        "features that depend on the kind of weights",
        "The chances of some features depend on the kind of weights.",
        f"Say that chances are by {BY}, and claim less for these features.",
        line="features that depend on the kind of weights",
        meaning={
            "": "{clauses}",
            "ok": "AIC, BIC and EBIC weights all favour the same features.",
        },
        levels=("note", "note"),
    ),
    "pseudo_weights": FactWords(
        Kind.SEARCH,
        "chances with sampling weights",
        "With sampling weights there are no chances.",
        "Report the averaged effects, and no chance. If the weights count rows, use "
        f"{option('weight_kind', 'frequency')}.",
        why="They leave only a pseudo-likelihood to weigh sets of features by.",
        sentence="Chances are rough: sampling weights leave only a pseudo-likelihood to weigh "
        "assignments by.",
        claim="That features have known chances to predict",
        because="sampling weights leave only a pseudo-likelihood to weigh assignments by.",
        levels=("note", "note"),
    ),
    "not_weighed": FactWords(
        Kind.SEARCH,
        "weights of the assignments",
        "How sure the choice is, was not computed.",
        f"Use {_AVERAGE}.",
        sentence="{why_not}",
        levels=("note", "note"),
    ),
    "trained_on_sample": FactWords(
        Kind.SEARCH,
        "rows of the training",
        "The training used a sample of the rows.",
        f"Compare with {_BEST_SUBSET} or {_AVERAGE}.",
        sentence="The training used a uniform sample of {rows} of the {selected} selected rows "
        f"({option('train_rows')}); everything else uses all rows.",
    ),
    "honest": FactWords(
        sentence="Honest estimates: features are chosen on one random half of the rows and "
        "estimated on the other. Those here were chosen in at least half of {splits} splits; "
        "estimates are medians over the splits that chose the feature, and standard errors account "
        "for the search."
    ),
    "honest_target": FactWords(
        sentence="The target of an honest estimate is the coefficient of the feature in the model "
        "that was chosen, not in a true model: the median over splits in which the feature was "
        "chosen.",
        claim="That the honest estimates are those of a true model",
        because="each is of the coefficient in the models that halves of the rows chose.",
    ),
    "honest_and_all_rows": FactWords(sentence="In all rows, {in_all}."),
    "honest_fit": FactWords(
        line="honest estimates",
        sentence={
            "": "{criteria} are those of these features fitted to all rows, not of the honest "
            "estimates.",
            "two-step rho": "{criteria} are those of these features fitted to all rows, not of the "
            "honest estimates. The two-step rho of that fit is {rho}"
            + instead("; what_if() uses it.", "."),
        },
    ),
    "honest_window": FactWords(
        sentence="In the halves that choose, only assignments whose two-step rho is in {window} "
        "were allowed ({share} of those evaluated); rho is estimated on the others, which had no "
        "part in that."
    ),
    "nothing_searched": FactWords(sentence="Nothing was searched: no outcome is missing."),
    "average": FactWords(
        line="average over assignments",
        sentence="Estimates are {averaged}. Intervals are quantiles of the mixture of their "
        "distributions, and allow for the choice of features. {coverage} There is no p-value of an "
        "average.",
        claim="That an interval covers with exactly its level",
        because="it allows for the choice of features. {coverage}",
    ),
    "no_choice": FactWords(
        sentence="No feature is chosen: each assignment leaves out other features. A chance below "
        f"{LOW} is no sign that a feature predicts; it does not show that it has no effect."
    ),
    "kept_out": FactWords(
        sentence={
            "": "Kept out of all assignments: {names}.",
            "none": "No feature is kept out of all assignments: what each leaves out identifies "
            "it.",
        }
    ),
    "selection": FactWords(
        Kind.ROWS,
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
        Kind.ROWS,
        "rows that lack a feature",
        {
            "": "Many rows were left out because they lack a feature.",
            "few": "A few rows were left out because they lack a feature.",
        },
        f"Leave out the columns with the gaps ({EXCLUDE}), or fill them in "
        f"({option('missing', 'mean')}).",
        meaning={"": "Rows left out: {rows}{advice}", "few": "{rows}"},
        sentence={"caution": "{meaning}"},
        claim={"caution": "That the rows left out are like the others"},
        because="{rows}",
    ),
    "rows_dropped": FactWords(
        Kind.ROWS,
        "rows left out",
        "Some rows were left out of the fit.",
        "Look at these rows before you speak of the others.",
        meaning="{words}",
    ),
    "decided_rows": FactWords(
        Kind.ROWS,
        "separation",
        "Rows were left out because a column decides them.",
        "Say so: the answer is not about such rows.",
        line="separation",
        meaning="A column decides their {decided}, so the likelihood has no maximum with them. The "
        "estimates say nothing about such rows.",
    ),
    "filled_in": FactWords(
        Kind.ROWS,
        "missing cells",
        "Missing cells hold the average of their column.",
        f"Compare with {option('missing', 'drop')}.",
        sentence="Missing cells hold the average of their column, and standard errors take the "
        "average as if it had been observed.",
        claim="That cells which were missing hold what was filled in",
        because="standard errors take the average as if it had been observed.",
    ),
    "outside_range": FactWords(
        Kind.ROWS,
        "rows outside the range of the fit",
        "Many rows lie beyond what the rows with an outcome cover.",
        "Say that predictions for these rows are extrapolated.",
        why="The correction was learned within the range of the fit and nowhere else.",
        line="rows outside that range",
        meaning={
            "": "Predictions given selection extrapolate {correction} there.",
            "ok": "Predictions given selection stay within the range of the fit.",
        },
        claim={"caution": "That predictions given selection hold for everyone"},
        because="{share} of the rows lie beyond what the selected rows cover.",
    ),
    "clusters": FactWords(
        Kind.ROWS,
        "clusters",
        {"": "The clusters are few.", "too few": "There are no more clusters than parameters."},
        "Report the number of clusters, and claim less. If a finer grouping keeps dependent rows "
        f"together, name its column with {option('cluster', ...)}.",
        line="clusters",
        meaning={
            "": "{judged} Tests and intervals use {distribution}.",
            "ok": "Tests and intervals use {distribution}.",
        },
        sentence={
            "": "There are {clusters} clusters for {parameters} parameters. {judged}",
            "ok": "",
        },
        claim={"": "That standard errors and p-values are reliable", "ok": ""},
        because="they rest on {clusters} clusters.",
    ),
    "dropped_features": FactWords(
        Kind.ROWS,
        "columns",
        "Some columns were left out.",
        f"Say so, or leave out the columns that they copy, with {EXCLUDE}.",
        sentence="Columns left out as collinear, constant or separating: {names}.",
    ),
    "frequency_weights": FactWords(
        Kind.ROWS,
        "weights",
        "The weights may be sampling weights.",
        f"If they are survey weights, use {option('weight_kind', 'sampling')}.",
    ),
    "row_labels": FactWords(
        Kind.ROWS,
        "row labels",
        "Rows without labels were matched by position.",
        "Give everything that belongs to the rows the same index.",
    ),
    "text_numbers": FactWords(
        Kind.ROWS,
        "text columns",
        "A text column that holds numbers was taken as categories.",
        f"If it is a number, name it with {option('numeric', [...])}.",
    ),
    "underdetermined": FactWords(
        Kind.INVALID,
        "rows for the coefficients",
        "The rows do not determine the coefficients.",
        f"Use fewer features ({option('selection_features', [...])}, {EXCLUDE}).",
    ),
    "fit_warning": FactWords(
        Kind.ROWS,
        "warnings of the fit",
        "The fit gave a warning.",
        "Read it before you report the estimates.",
    ),
    "outcome_code": FactWords(
        Kind.INVALID,
        "codes for missing in the outcome",
        "The outcome holds a number that may mean missing.",
        "{advice}",
    ),
    "feature_codes": FactWords(
        Kind.ROWS,
        "codes for missing in features",
        "Features hold numbers that may mean missing.",
        "{advice}",
    ),
    "reference_rows": FactWords(
        Kind.ROWS,
        "rows of reference levels",
        "Levels of a category are compared with one that few rows have.",
        "{advice}",
    ),
    "level_spellings": FactWords(
        Kind.ROWS,
        "spellings of levels",
        "Levels of a category differ only in case or blanks.",
        "If they mean the same, spell them in one way in the table: each has its own coefficient.",
    ),
    "coded_numbers": FactWords(
        Kind.ROWS,
        "numbers that may be codes",
        "A column that is named like one of codes is used as an amount.",
        "{advice}",
    ),
    "derived": FactWords(
        Kind.ROWS,
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
        Kind.ROWS,
        "checks that were not run",
        "{checks} not run.",
        "Do not take for fine what was not checked.",
    ),
}

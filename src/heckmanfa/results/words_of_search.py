"""Words of the facts about searches and averages."""

from __future__ import annotations

from heckmanfa.results.facts import (
    EXCLUDE,
    NEVER,
    PREDICT_WITH,
    STRONGER,
    UNTESTED,
    FactWords,
)
from heckmanfa.text.chances import BY, LOW
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.wording import PSEUDO_WEIGHTS, capitalised

_AVERAGE = option("search", "average")
_BEST_SUBSET = option("search", "best-subset")
_SEED = option("random_state", ...)
_HONEST = option("honest", True)
# Cases without honest halves: families that lack them, designs, which leave the bootstrap out as
# well, and searches of both equations.
_NOT_HALVED = ("no halves", "design", "both")
_MIN_ROWS = option("min_level_rows", ...)
_TOO_SMALL = (
    "they are those of a model whose features were known beforehand, and tend to be too small."
)
_NOT_A_TEST = "After a search this is descriptive, not a test."

SEARCH: dict[str, FactWords] = {
    "best_set": FactWords(
        "best set",
        {
            "": "The best set changes with the sample.",
            "not drawn": "No set of features stands out.",
            "chosen": "The chosen set of features is not the likeliest.",
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
        "search",
        {"caution": "A better set of features may exist."},
        f"Use {_AVERAGE} or {_BEST_SUBSET}, or let fewer features predict ({PREDICT_WITH}).",
        sentence="{judged}",
        claim={"caution": "That the best set of features was found"},
        because="{doubt}",
    ),
    "search_ended": FactWords(
        "end of the search",
        "The search ended early.",
        f"Let fewer features predict ({PREDICT_WITH}, {EXCLUDE}), and search again.",
        sentence="{why}",
    ),
    "search_warning": FactWords(
        "search",
        "The search gave a warning.",
        f"Try another {_SEED}, or {_AVERAGE}.",
    ),
    "search_ignored": FactWords(
        "intervals after the search",
        "The intervals ignore the search.",
        {
            "": f"Use {_AVERAGE}, whose intervals allow for it, or {_HONEST}.",
            **dict.fromkeys(_NOT_HALVED, f"Use {_AVERAGE}, whose intervals allow for it."),
            # No command has it.
            "treatment": "Use {averages} in Python, whose intervals allow for the search.",
            # An average is many models, and they estimate one again.
            "replicates": f"Say so, or name the features beforehand with {PREDICT_WITH}.",
        },
        why="The same rows choose the features and estimate effects, so intervals are too narrow.",
        line="standard errors after the search",
        sentence={
            "": f"Standard errors, intervals and p-values ignore the search: {_TOO_SMALL} "
            + instead("bootstrap() repeats the search; ", "")
            + f"{_HONEST} estimates on rows that had no part in it.",
            **dict.fromkeys(
                ("no halves", "treatment"),
                f"Standard errors, intervals and p-values ignore the search: {_TOO_SMALL}"
                + instead(" bootstrap() repeats the search.", ""),
            ),
            **dict.fromkeys(
                ("design", "replicates"),
                f"Standard errors, intervals and p-values ignore the search: {_TOO_SMALL}",
            ),
            "both": "Standard errors, intervals and p-values ignore the search of both equations: "
            f"{_TOO_SMALL}",
        },
        note=f"Standard errors, intervals and p-values ignore the search: {_TOO_SMALL}",
    ),
    "near_ties": FactWords(
        "sets nearly as good",
        "Other sets of features are nearly as good.",
        {
            "": f"Use {_AVERAGE}, and report the chance of each feature.",
            "replicates": "Report other sets that are nearly as good, too.",
        },
        sentence="{ties} {report}",
        claim="That these are exactly the features that predict",
        because="{ties}",
    ),
    "sampled": FactWords(
        "sampled assignments",
        "The chains of the sampler do not agree.",
        f"Round the chances, try another {_SEED}, or let fewer features predict ({PREDICT_WITH}).",
        line="sampler",
        meaning="Chances are known to about that.",
        sentence={
            "": "The chains of the sampler do not agree: a share differs by {differ}.",
            "ok": "The chains of the sampler agree: no share differs by more than {differ}.",
        },
        claim={"caution": "That the chances are exact"},
        because="the chains of the sampler do not agree: a share differs by {differ}.",
    ),
    "outside_weight": FactWords(
        "weight with rho outside (-1, 1)",
        "Many models imply an impossible strength of selection.",
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
        claim={"averaged": "That every model in the average is possible"},
        because="assignments with rho {where} carry {value}.",
    ),
    "honest_splits": FactWords(
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
        "halves that failed",
        "Some halves of the rows could not be fitted.",
        f"Let fewer features predict ({PREDICT_WITH}), or merge rare levels.",
        sentence="{splits} failed: {reason}",
    ),
    "bootstrap": FactWords(
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
        "features that depend on the kind of weights",
        "The chances of some features depend on how models are scored.",
        f"Say that chances are by {BY}, and claim less for these features.",
        line="features that depend on the kind of weights",
        meaning={
            "": "{clauses}",
            "ok": "AIC, BIC and EBIC weights all favour the same features.",
        },
        levels=("note", "note"),
    ),
    "pseudo_weights": FactWords(
        "chances with sampling weights",
        "With a survey's design there are no chances.",
        "Report the averaged effects, and no chance. If the weights count rows, use "
        f"{option('weight_kind', 'frequency')}.",
        why=f"{capitalised(PSEUDO_WEIGHTS)}.",
        sentence=f"Chances are rough: {PSEUDO_WEIGHTS}.",
        claim="That it is known how likely a feature is to predict",
        because=f"{PSEUDO_WEIGHTS}.",
        levels=("note", "note"),
    ),
    "not_weighed": FactWords(
        "weights of the assignments",
        "How certain the choice is was not computed.",
        f"Use {_AVERAGE}.",
        sentence="{why_not}",
        levels=("note", "note"),
    ),
    "trained_on_sample": FactWords(
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
        claim="That the honest estimates are the effects in the true model",
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
        note="{criteria} are those of these features fitted to all rows, not of the honest "
        "estimates.",
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
        note="Estimates are {averaged}. Standard errors are the standard deviations of mixtures of "
        "their distributions, and intervals the quantiles; both allow for the choice of features. "
        "There is no p-value of an average.",
        claim="That exactly 95 of 100 such intervals hold the true effect",
        because="they allow for the choice of features. {coverage}",
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
}
"""the choice of features is not stable"""

"""What each check is called, what it says if it is not fine, and what to do about it.

A check has the key of the finding or caveat that it is made from. Titles are whole sentences;
``{outcome}`` and ``{names}`` stand for the outcome and for the features that it is about.
"""

from __future__ import annotations

from heckmanfa.results.check_kinds import (
    FEWER_FEATURES,
    LITTLE,
    RELY,
    STRONGER,
    UNTESTED,
    CheckWords,
    Kind,
)
from heckmanfa.results.row_check_words import ROW_CHECK_WORDS
from heckmanfa.text.chances import BY

# In reading order within each kind: checks of one level and kind keep it.
CHECK_WORDS: dict[str, CheckWords] = {
    "convergence": CheckWords(
        Kind.INVALID,
        "convergence",
        "The iteration did not converge.",
        "Report none of these estimates. Leave out extreme features with --exclude, or use "
        "--method two-step.",
    ),
    "standard_errors": CheckWords(
        Kind.INVALID,
        "standard errors",
        "Some standard errors are missing.",
        "Report no test and no interval. Let fewer features predict (--predict-with).",
    ),
    "leakage": CheckWords(
        Kind.INVALID,
        "R2 of the outcome",
        "The features reproduce {outcome} almost exactly.",
        "Leave out the column that was made from {outcome}, with --exclude.",
        titles={"saturated": "There are as many coefficients as rows."},
    ),
    "rho": CheckWords(
        Kind.INVALID,
        "rho",
        "rho is outside (-1, 1).",
        "Do not report this rho as a correlation. Name stronger exclusions with --select-only, or "
        "compare with --method ml, which keeps rho inside.",
        titles={"near one": "rho is practically one.", "flat": "The likelihood is flat in rho."},
    ),
    "maxima": CheckWords(
        Kind.INVALID,
        "maxima of the likelihood",
        "The likelihood has two maxima.",
        "Fit the other one with --start, compare, and report both.",
        mildest="problem",
    ),
    "outside_window": CheckWords(
        Kind.INVALID,
        "rho and its window",
        "Maximum likelihood puts rho outside its window.",
        "Use --method two-step, whose rho is the one that the window is about.",
    ),
    "covariance": CheckWords(
        Kind.INVALID,
        "covariance",
        "The covariance of the estimates is not a valid one.",
        "Report no test and no interval. Let fewer features predict (--predict-with).",
    ),
    "normality_prediction": CheckWords(
        Kind.ASSUMPTION,
        "normality of the errors of {outcome}",
        "The errors of {outcome} are not normal.",
        "Do not lean on --method ml or on p-values near 5%. If {outcome} is skewed, transform it, "
        "and report the range over rho.",
        why="The correction assumes that they are.",
    ),
    "normality_selection": CheckWords(
        Kind.ASSUMPTION,
        "normality of selection",
        "The errors of the selection equation are not normal.",
        "Look at outliers and skewed features first: logarithms or squares of features may fix the "
        "selection equation. Report the range over rho beside the estimate.",
        why="lambda follows from a normal error: with another, it corrects for something else.",
    ),
    "heteroskedasticity_selection": CheckWords(
        Kind.ASSUMPTION,
        "equal variance of selection",
        "The variance of the selection equation's error changes with the features.",
        "Add squares or products of the features that drive selection, and report the range over "
        "rho beside the estimate.",
        why="A probit with one variance then gets lambda wrong.",
    ),
    "heteroskedasticity_prediction": CheckWords(
        Kind.ASSUMPTION,
        "equal variance of the errors of {outcome}",
        "The variance of the error behind {outcome} changes with the features.",
        "Add squares or products of the features that predict, and report the range over rho "
        "beside the estimate.",
        why="A probit with one variance then gets the probabilities wrong.",
    ),
    "correction_form": CheckWords(
        Kind.ASSUMPTION,
        "form of the correction",
        "The correction has another form than lambda.",
        "Do not rest a finding on the correction alone. Report least squares and the range over "
        "rho beside it.",
        why="The mean error among rows with an outcome is not a multiple of lambda.",
    ),
    "reset": CheckWords(
        Kind.ASSUMPTION,
        "RESET",
        "Powers or products of the features are missing from the prediction.",
        "Add squares, logarithms or products of the features as columns, and fit again.",
        why="A curve that a straight line leaves out may pass for selection.",
    ),
    "hausman": CheckWords(
        Kind.ASSUMPTION,
        "two steps against maximum likelihood",
        "Maximum likelihood and two steps disagree.",
        "Keep two steps (--method two-step) with --robust, and report those estimates.",
        why="Two steps need less: what only maximum likelihood needs does not hold.",
    ),
    "equal_variance": CheckWords(
        Kind.ASSUMPTION,
        "equal variance of {outcome}",
        "The variance of {outcome} changes with the features.",
        "Keep two steps (--method two-step) with --robust, and report those estimates.",
        why="Maximum likelihood takes such a change for selection.",
    ),
    "transform_ratio": CheckWords(
        Kind.ASSUMPTION,
        "the outcome over its predicted mean",
        "Predictions on the own scale of the outcome are off.",
        "Look for skewness and unequal variance in the errors of {outcome}. Until then, report "
        "effects and predictions on the log scale (--scale link).",
        why="The mean on that scale follows from normal errors with one variance.",
        titles={"few rows": "Means on the own scale of the outcome rest on a few rows."},
        whys={"few rows": "A few large outcomes make up most of any mean on that scale."},
        gravest="caution",
    ),
    "crowded": CheckWords(
        Kind.ASSUMPTION,
        "rows for the selection equation",
        "The selection equation has many features for its rows.",
        "Leave out features that have no reason to drive selection (--exclude).",
        why="Its coefficients are then too large, and the correction is too small.",
    ),
    "binary_outcome": CheckWords(
        Kind.ASSUMPTION,
        "values of {outcome}",
        "{outcome} holds only two values.",
        "Fit the Heckman probit (--outcome-kind binary), or read effects as changes in chance.",
        why="A linear model of two values will predict beyond them in some rows.",
    ),
    "events": CheckWords(
        Kind.ASSUMPTION,
        "rows of the rarer class",
        "One class of {outcome} has few rows for the coefficients.",
        "Let fewer features predict (--predict-with), and claim less.",
        why="Coefficients are then too large, and intervals may cover less often than they say.",
    ),
    "outcome_separation": CheckWords(
        Kind.INVALID,
        "columns that decide {outcome}",
        "{outcome} is decided by {names}.",
        "Leave these columns out with --exclude, or merge rare levels.",
        why="The likelihood rises without end there, so these coefficients mean nothing.",
    ),
    "refits": CheckWords(
        Kind.ASSUMPTION,
        "refits by maximum likelihood",
        "The averages rest on maximum likelihood, which needs normal errors.",
        "Compare with --method two-step.",
    ),
    "best_set": CheckWords(
        Kind.SEARCH,
        "best set",
        "The best set changes with the sample.",
        "Report the averaged numbers and the chance of each feature, not the best set alone.",
        dos=dict.fromkeys(
            ("chosen", "searched"),
            "Report averaged numbers (--search average) and the chance of each feature, not this "
            "set alone.",
        ),
        titles={
            "not drawn": "No set of features stands out.",
            "chosen": "The chosen set is not the best by BIC.",
        },
    ),
    "search": CheckWords(
        Kind.SEARCH,
        "search",
        "A better set of features may exist.",
        "Use --search average or --search best-subset, or let fewer features predict "
        "(--predict-with).",
    ),
    "search_ended": CheckWords(
        Kind.SEARCH,
        "end of the search",
        "The search ended early.",
        "Let fewer features predict (--predict-with, --exclude), and search again.",
    ),
    "search_warning": CheckWords(
        Kind.SEARCH,
        "search",
        "The search gave a warning.",
        "Try another --seed, or --search average.",
    ),
    "search_ignored": CheckWords(
        Kind.SEARCH,
        "intervals after the search",
        "The intervals ignore the search.",
        "Use --search average, whose intervals allow for it, or --honest.",
        why="The same rows choose the features and estimate them, so intervals are too narrow.",
    ),
    "near_ties": CheckWords(
        Kind.SEARCH,
        "sets nearly as good",
        "Other sets of features are nearly as good.",
        "Use --search average, and report the chance of each feature.",
    ),
    "sampled": CheckWords(
        Kind.SEARCH,
        "sampled assignments",
        "The chains of the sampler do not agree.",
        "Round the chances, try another --seed, or let fewer features predict (--predict-with).",
    ),
    "outside_weight": CheckWords(
        Kind.SEARCH,
        "weight with rho outside (-1, 1)",
        "Many assignments have a rho outside (-1, 1).",
        f"{STRONGER} Or keep rho in a window (--rho-range).",
    ),
    "honest_splits": CheckWords(
        Kind.SEARCH,
        "honest splits",
        "Halves of the rows choose different features.",
        "Report in how many halves each feature was chosen, and claim less for the rarer ones.",
    ),
    "honest_failures": CheckWords(
        Kind.SEARCH,
        "halves that failed",
        "Some halves of the rows could not be fitted.",
        "Let fewer features predict (--predict-with), or merge rare levels.",
    ),
    "bootstrap": CheckWords(
        Kind.SEARCH,
        "bootstrap fits that failed",
        "Many bootstrap samples could not be fitted.",
        "Merge rare levels of categories (--min-level-rows), let fewer features predict "
        "(--predict-with), or name stronger exclusions with --select-only.",
    ),
    "left_out": CheckWords(
        Kind.SEARCH,
        "features left out, together",
        "The features left out would improve the fit together.",
        "Use --search average, or compare with --search none first.",
        titles={UNTESTED: "All candidates cannot be fitted together."},
    ),
    "weight_kinds": CheckWords(
        Kind.SEARCH,
        "features that depend on the kind of weights",
        "The chances of some features depend on the kind of weights.",
        f"Say that chances are by {BY}, and claim less for these features.",
        gravest="note",
    ),
    "pseudo_weights": CheckWords(
        Kind.SEARCH,
        "chances with sampling weights",
        "With sampling weights there are no chances.",
        "Report the averaged effects, and no chance. If the weights count rows, use "
        "--weight-kind frequency.",
        why="They leave only a pseudo-likelihood to weigh sets of features by.",
        gravest="note",
    ),
    "not_weighed": CheckWords(
        Kind.SEARCH,
        "weights of the assignments",
        "How sure the choice is, was not computed.",
        "Use --search average.",
        gravest="note",
    ),
    "trained_on_sample": CheckWords(
        Kind.SEARCH,
        "rows of the training",
        "The training used a sample of the rows.",
        "Compare with --search best-subset or --search average.",
        gravest="note",
    ),
    "exclusions": CheckWords(
        Kind.IDENTIFICATION,
        "exclusions",
        "The exclusions are weak for their number.",
        RELY,
        dos={"none": f"{STRONGER} Until then, report the range over rho."},
        whys={"": LITTLE, "undriving": LITTLE},
        titles={
            "none": "No feature is excluded from the prediction.",
            "undriving": "There is no evidence that the exclusions drive selection.",
            UNTESTED: "Whether the exclusions drive selection was not tested.",
        },
    ),
    "less_likely": CheckWords(
        Kind.IDENTIFICATION,
        "drive of the features with less than half of the weight",
        "The features with less than half of the weight drive selection weakly for their number.",
        RELY,
        dos={"none": f"{STRONGER} Until then, report the range over rho."},
        whys={"": LITTLE, "undriving": LITTLE},
        titles={
            "none": "Every feature of the selection equation has at least half of the weight.",
            "undriving": "There is no evidence that the features with less than half of the weight "
            "drive selection.",
            UNTESTED: "Whether the features with less than half of the weight drive selection was "
            "not tested.",
        },
    ),
    "imr_r2": CheckWords(
        Kind.IDENTIFICATION,
        "lambda on the features",
        "lambda is almost a linear function of the prediction features.",
        "Let fewer features predict (--predict-with), or keep one that drives selection strongly "
        "out of the prediction (--select-only).",
        why="Its coefficient and theirs can hardly be separated.",
    ),
    "stand_ins": CheckWords(
        Kind.IDENTIFICATION,
        "features that stand in for lambda",
        "{names} and lambda stand in for each other.",
        "Decide by what you know about {names}: fit with --always and with --select-only, and "
        "report both.",
        why="What looks like selection may be the effect of {names}, or the other way round.",
        titles={"with": "Selection shows only where {names} predicts."},
    ),
    "imr_optional": CheckWords(
        Kind.IDENTIFICATION,
        "chance that selection mattered",
        "Whether selection mattered cannot be told.",
        "Report least squares beside the corrected estimates. A feature that drives selection and "
        "has no reason to predict, named with --select-only, would tell.",
        why="The features, or what drives selection as a whole, can take the correction's place.",
        gravest="note",
        titles={"unreliable": "The chance that selection mattered is not to be relied on."},
        whys={"unreliable": "It is a share of weight in a model that is not to be relied on."},
    ),
    "all_features_test": CheckWords(
        Kind.IDENTIFICATION,
        "test of rho = 0, all features",
        "The test of rho = 0 with all features is not to be relied on.",
        "Do not take it as evidence for selection, or against it.",
    ),
    "uncertainty": CheckWords(
        Kind.IDENTIFICATION,
        "signs over rho",
        "The sign of {names} depends on rho.",
        "Draw no conclusion from that sign alone, and report the range over rho.",
        why="Another rho in that range turns it.",
        dos={UNTESTED: FEWER_FEATURES},
    ),
    "window": CheckWords(
        Kind.IDENTIFICATION,
        "window of rho",
        "rho was kept in a window.",
        "Do not report a test of rho. To get one, leave out --rho-range.",
    ),
    "rho_test": CheckWords(
        Kind.IDENTIFICATION,
        "test of rho = 0",
        "The test of rho = 0 is not to be relied on.",
        "Do not take it as evidence for selection, or against it. Look at the checks above first.",
        titles={UNTESTED: "rho = 0 was not tested."},
    ),
    "rho_lr_test": CheckWords(
        Kind.IDENTIFICATION,
        "LR test of rho = 0",
        "The likelihood-ratio test of rho = 0 is not to be relied on.",
        "Report the two-step test (--method two-step --robust) in its place.",
        why="It rests on the same likelihood as the estimates.",
        titles={UNTESTED: "rho = 0 was not tested by the likelihood ratio."},
    ),
    "condition": CheckWords(
        Kind.IDENTIFICATION,
        "condition number",
        "Some prediction columns are nearly collinear.",
        "Leave out redundant features with --exclude, or interpret their coefficients together.",
        why="Small changes in the data move their coefficients, and standard errors are large.",
    ),
    "what_if": CheckWords(
        Kind.EXCLUSION,
        "excluded features put back",
        "An excluded feature asks to come back.",
        "Let it predict (--always), or argue why it should not, and compare.",
        why="A feature that improves the prediction is a doubtful exclusion.",
        dos={UNTESTED: FEWER_FEATURES},
    ),
    "exclusion_test": CheckWords(
        Kind.EXCLUSION,
        "joint test of the exclusions",
        "The exclusions contradict one another.",
        "Let those that you can defend least predict (--always), and compare.",
    ),
    **ROW_CHECK_WORDS,
}

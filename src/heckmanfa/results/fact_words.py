"""The words of every fact: what it is called, what it means, what to do, what may not be claimed.

Texts hold values of the fact in braces. ``{value}``, ``{names}``, ``{title}``, ``{meaning}`` and
``{outcome}`` are always there, and so are the words of the model's family, such as
``{correction}``; others are given where the fact is decided.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from heckmanfa.fit import Fit
from heckmanfa.results.facts import UNTESTED, Fact, FactWords, Kind, Level, Text
from heckmanfa.results.search_fact_words import (
    EXCLUDE,
    FEWER,
    NEVER,
    PREDICT_WITH,
    SEARCH_AND_ROW_WORDS,
    STRONGER,
)
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.wording import listed

_TWO_STEP = option("method", "two-step")
_ROBUST = option("cov_type", "robust")
_ML = option("method", "ml")
_ALWAYS = option("always", [...])
_LEAVE_OUT = instead("leave it out", f"leave it out with {EXCLUDE}")
_RELY = (
    "Rely on one or two features that drive selection strongly and have no reason to predict, and "
    f"name them in {NEVER}."
)
_TITLED = "{title} {meaning}"
_KEEP_TWO_STEPS = f"Keep two steps ({_TWO_STEP}) with {_ROBUST}, and report those estimates."
_BIASED = f"Robust standard errors do not remove that. Use {_TWO_STEP} with {_ROBUST}."
_NO_SELECTION = "That there is no selection on what was not observed"
_PROFILE = instead(" See profile() for intervals.", "")
_OVER_RHO = instead("; see uncertainty_interval().", "; see the picture over rho in the report.")
_PROFILE_RHO = instead(" See profile_rho().", "")

# In reading order within each kind: checks of one level and kind keep it.
FACT_WORDS: dict[str, FactWords] = {
    "convergence": FactWords(
        Kind.INVALID,
        "convergence",
        "The iteration did not converge.",
        f"Report none of these estimates. Leave out extreme features with {EXCLUDE}, or "
        "{other_estimates}.",
        line="convergence",
        meaning="The estimates are where the iteration stopped; do not trust them: {cure}.",
        sentence="THE ITERATION DID NOT CONVERGE: {value}. {meaning}",
        claim="That these are the estimates",
        because="the iteration did not converge, and they are where it stopped.",
    ),
    "standard_errors": FactWords(
        Kind.INVALID,
        "standard errors",
        "Some standard errors are missing.",
        f"Report no test and no interval. Let fewer features predict ({PREDICT_WITH}).",
        line="standard errors",
        meaning={
            "": "The variance of an estimate is negative or not a number: the model is hardly "
            "identified. Look for a stronger exclusion, or predict with fewer features.",
            "withheld": "The curvature of the likelihood at these estimates does not give standard "
            "errors of prediction and rho, so there are none. Those of the selection equation are "
            "of its probit alone. Look for a stronger exclusion, or predict with fewer "
            f"features.{_PROFILE}",
        },
        sentence=_TITLED,
        claim="That the precision of the estimates is known",
        because="a variance is negative or not a number.",
    ),
    "leakage": FactWords(
        Kind.INVALID,
        "R2 of the outcome",
        {
            "": "The features reproduce {outcome} almost exactly.",
            "saturated": "There are as many coefficients as rows.",
        },
        f"Leave out the column that was made from {{outcome}}, with {EXCLUDE}.",
        line="R2 of the outcome",
        meaning={
            "": "The features reproduce the outcome almost exactly. Look for one that was made "
            f"from the outcome, or is known only with it, and {_LEAVE_OUT}.",
            "saturated": "There are as many coefficients as rows, so any outcome would be "
            "reproduced: use fewer features.",
        },
        sentence="The R2 of the outcome is {value}. {meaning}",
        claim="That the features predict so well (R2 {value})",
        because="one of them is probably made from the outcome, or known only with it.",
    ),
    "rho": FactWords(
        Kind.INVALID,
        "rho",
        {
            "outside": "rho is outside (-1, 1).",
            "near one": "rho is practically one.",
            "flat": "The likelihood is flat in rho.",
        },
        {
            "": f"Report no effect from this fit. {STRONGER} Or let fewer features predict "
            f"({PREDICT_WITH}).",
            "outside": "Do not report this rho as a correlation. Name stronger exclusions in "
            f"{NEVER}, or compare with {_ML}, which keeps rho inside.",
        },
        line="rho",
        meaning={
            "": "Inside (-1, 1).",
            "outside": "Outside (-1, 1): the model does not fit, or is hardly identified.",
            "near one": "Beyond {limit}, practically one{near_one}",
            "flat": "The likelihood is flat in rho: the data do not tell it from other values. "
            f"Look for a stronger exclusion, or let fewer features predict.{_PROFILE_RHO} Standard "
            "errors are not given.",
            "held": "An assumption, not an estimate: nothing tests it, nor rho = 0.",
        },
        sentence={
            "": "rho is estimated at {value}, {lower}",
            "ok": "",
            "flat": "rho is estimated at {value}, but {lower}",
            "held": "rho is {value}, not estimated. Standard errors take it as known, and allow "
            "for the estimation of the selection equation{and_sigma}.",
        },
        claim={
            "": "That rho is estimated",
            "ok": "",
            "outside": "That rho is a correlation",
            "held": "That the data show how much selection on what was not observed there is",
        },
        because={
            "outside": "its estimate, {value}, is outside (-1, 1), so the model does not fit or "
            "the data hardly identify it.",
            "near one": "{value} is practically one, which usually means that the model does not "
            "fit.",
            "flat": "the likelihood is flat in rho, and the data do not tell it from other values.",
            "held": "rho is {value}, which is an assumption.",
        },
    ),
    "maxima": FactWords(
        Kind.INVALID,
        "maxima of the likelihood",
        "The likelihood has two maxima.",
        f"Fit the other one with {option('start', ...)}, compare, and report both.",
        line="maxima of the likelihood",
        meaning={
            "": "The estimates are at the {which} of two maxima. {ratio}A start of {other} fits "
            "{start}; report both. One near |rho| = 1 is often a sign of a model that does not "
            "fit.",
            "profiled": "They are at rho = {found}. A start at one of them fits it. One near "
            "|rho| = 1 is often a sign of misspecification.",
        },
        sentence="The likelihood has two maxima ({value}). {meaning}",
        claim={"problem": "That the likelihood is at its highest"},
        because="there is a higher maximum, at rho = {other}.",
        levels=("problem", "problem"),
    ),
    "outside_window": FactWords(
        Kind.INVALID,
        "rho and its window",
        "Maximum likelihood puts rho outside its window.",
        f"Use {_TWO_STEP}, whose rho is the one that the window is about.",
        sentence="Maximum likelihood puts rho at {value}, outside that window.",
    ),
    "covariance": FactWords(
        Kind.INVALID,
        "covariance",
        "The covariance of the estimates is not a valid one.",
        f"Report no test and no interval. Let fewer features predict ({PREDICT_WITH}).",
    ),
    "outcome_separation": FactWords(
        Kind.INVALID,
        "columns that decide {outcome}",
        "{outcome} is decided by {names}.",
        f"Leave these columns out with {EXCLUDE}, or merge rare levels.",
        why="The likelihood rises without end there, so these coefficients mean nothing.",
        line="columns that decide the outcome",
        meaning="A plain probit has no finite maximum there: the coefficients are where the "
        "iteration stopped, and have no standard errors. Leave these columns out, or merge rare "
        "levels.",
        sentence="The outcome is decided by {value}. {meaning}",
        claim="That every coefficient is an estimate",
        because="the outcome is decided by {value}, and the likelihood has no maximum.",
    ),
    "normality_prediction": FactWords(
        Kind.ASSUMPTION,
        "normality of the errors of {outcome}",
        "The errors of {outcome} are not normal.",
        "{if_not_normal}",
        why="The correction assumes that they are.",
    ),
    "normality_selection": FactWords(
        Kind.ASSUMPTION,
        "normality of selection",
        "The errors of the selection equation are not normal.",
        "Look at outliers and skewed features first: logarithms or squares of features may fix the "
        "selection equation. Report the range over rho beside the estimate.",
        why="The correction follows from normal errors: with others, it corrects for something "
        "else.",
    ),
    "heteroskedasticity_selection": FactWords(
        Kind.ASSUMPTION,
        "equal variance of selection",
        "The variance of the selection equation's error changes with the features.",
        "Add squares or products of the features that drive selection, and report the range over "
        "rho beside the estimate.",
        why="A probit with one variance then gets the correction wrong.",
    ),
    "heteroskedasticity_prediction": FactWords(
        Kind.ASSUMPTION,
        "equal variance of the errors of {outcome}",
        "The variance of the error behind {outcome} changes with the features.",
        "Add squares or products of the features that predict, and report the range over rho "
        "beside the estimate.",
        why="A probit with one variance then gets the probabilities wrong.",
    ),
    "correction_form": FactWords(
        Kind.ASSUMPTION,
        "form of the correction",
        "The correction has another form than lambda.",
        "Do not rest a finding on the correction alone. Report {naive} and the range over rho "
        "beside it.",
        why="The mean error among rows with an outcome is not a multiple of lambda.",
    ),
    "reset": FactWords(
        Kind.ASSUMPTION,
        "RESET",
        "Powers or products of the features are missing from the prediction.",
        "Add squares, logarithms or products of the features as columns, and fit again.",
        why="A curve that a straight line leaves out may pass for selection.",
    ),
    "hausman": FactWords(
        Kind.ASSUMPTION,
        "two steps against maximum likelihood",
        "Maximum likelihood and two steps disagree.",
        _KEEP_TWO_STEPS,
        why="Two steps need less: what only maximum likelihood needs does not hold.",
        line="two-step against ML",
        meaning={
            "": "The two estimates of beta_H differ by more than chance: maximum likelihood is "
            "biased, and its slopes with it. The errors are not normal, or their variance changes. "
            f"{_BIASED}",
            "ok": "The two estimates of beta_H differ by no more than chance.",
            UNTESTED: "Whether maximum likelihood is biased was not tested.",
        },
        sentence={
            "problem": "Two-step against maximum likelihood: {value}. {meaning}",
        },
        claim={"problem": "That the estimates of maximum likelihood are right"},
        because="the two-step estimate of beta_H differs from theirs by more than chance.",
    ),
    "equal_variance": FactWords(
        Kind.ASSUMPTION,
        "equal variance of {outcome}",
        "The variance of {outcome} changes with the features.",
        _KEEP_TWO_STEPS,
        why="Maximum likelihood takes such a change for selection.",
        line="equal variance, outcome",
        meaning={
            "": "Rejected at 5%: the variance changes with {what} or the selection index, which "
            f"biases the slopes and beta_H of maximum likelihood. {_BIASED}",
            "ok": "The variance is not seen to change with {what} or the selection index.",
            UNTESTED: "Whether the outcome's variance changes was not tested.",
        },
        sentence={
            "": "Test of the outcome's variance: {value}. {meaning}",
            "ok": "",
            UNTESTED: "",
        },
        claim={"": "That the outcome varies by the same amount everywhere", "ok": "", UNTESTED: ""},
        because="its variance changes, which biases maximum likelihood.",
    ),
    "transform_ratio": FactWords(
        Kind.ASSUMPTION,
        "the outcome over its predicted mean",
        {
            "": "Predictions on the own scale of the outcome are off.",
            "few rows": "Means on the own scale of the outcome rest on a few rows.",
        },
        "Look for skewness and unequal variance in the errors of {outcome}. Until then, report "
        f"effects and predictions on the log scale ({option('scale', 'link')}).",
        {
            "": "The mean on that scale follows from normal errors with one variance.",
            "few rows": "A few large outcomes make up most of any mean on that scale.",
        },
        line="outcome over its predicted mean",
        meaning={
            "": "{whose}The selected outcomes average that many times their predicted means, which "
            "would be 1 under the model: the errors are not normal with one variance on the log "
            "scale. Predictions on the outcome's own scale are off by about that factor; those of "
            f"its logarithm ({option('scale', 'link')}) do not need it.",
            "few rows": "{whose}It would be 1 under the model. Its standard error is large, so a "
            "few outcomes make up most of it, and of any mean on the outcome's own scale.",
            "ok": "{whose}Averaged over the selected rows; 1 under the model, so predictions on "
            "the outcome's own scale agree with the outcomes.",
        },
    ),
    "crowded": FactWords(
        Kind.ASSUMPTION,
        "rows for the selection equation",
        "The selection equation has many features for its rows.",
        f"Leave out features that have no reason to drive selection ({EXCLUDE}).",
        why="Its coefficients are then too large, and the correction is too small.",
    ),
    "binary_outcome": FactWords(
        Kind.ASSUMPTION,
        "values of {outcome}",
        "{outcome} holds only two values.",
        f"Fit the Heckman probit ({option('outcome_kind', 'binary')}), or read effects as changes "
        "in chance.",
        why="A linear model of two values will predict beyond them in some rows.",
    ),
    "events": FactWords(
        Kind.ASSUMPTION,
        "rows of the rarer class",
        "One class of {outcome} has few rows for the coefficients.",
        f"Let fewer features predict ({PREDICT_WITH}), and claim less.",
        why="Coefficients are then too large, and intervals may cover less often than they say.",
        line="rows of the rarer class",
        meaning={
            "": "A rule of thumb asks for {enough} for each coefficient. With fewer, coefficients "
            "tend to be too large, and intervals may cover less often than they say.",
            "ok": "A rule of thumb asks for {enough} for each coefficient.",
        },
        sentence={"caution": "Rows of the rarer class are few: {value}. {meaning}"},
        claim={"caution": "That 95% intervals hold the truth 95% of the time"},
        because="the rarer class has {short}, where a rule of thumb asks for {enough}.",
    ),
    "refits": FactWords(
        Kind.ASSUMPTION,
        "refits by maximum likelihood",
        "The averages rest on maximum likelihood, which needs normal errors.",
        f"Compare with {_TWO_STEP}.",
    ),
    "exclusions": FactWords(
        Kind.IDENTIFICATION,
        "exclusions",
        {
            "": "{excluded} drive selection weakly for their number.",
            "none": "No feature is excluded from the prediction.",
            "none, averaged": "Every feature of the selection equation has at least half of the "
            "weight.",
            "undriving": "There is no evidence that {excluded_inside} drive selection.",
            UNTESTED: "Whether {excluded_inside} drive selection was not tested.",
            "held": "",
        },
        {"": _RELY}
        | dict.fromkeys(
            ("none", "none, averaged"), f"{STRONGER} Until then, report the range over rho."
        ),
        {"": "Little then tells selection from prediction.", "none": "", "none, averaged": ""},
        line="excluded features",
        meaning={
            "": "{drives} weakly: little identifies the model.{profile}",
            "ok": "{drives} selection{valid}.",
            "none": "{only_normality}",
            "none, averaged": "Only normality tells the correction from the features.",
            "undriving": "There is no evidence that {drive} selection: little identifies the "
            "model.{profile}",
            UNTESTED: "Whether {drive} selection was not tested{see}.{profile}",
            "held": "A fixed rho needs no exclusion restriction.",
        },
        sentence={
            "": "{kept_out}",
            "none": _TITLED,
        },
        claim={
            "caution": "That the exclusions identify the model well",
            "none": "That the data alone tell selection from prediction",
            "none, averaged": "",
        },
        because={
            "": "they are weak ({size}, where 10 for each would be strong).",
            "undriving": "they are not shown to drive selection ({size}, {p}): little identifies "
            "the model.",
            UNTESTED: "they are not known to be strong: {note}.",
            "none": "every feature of the selection equation is also in the prediction equation. "
            "{meaning}",
        },
    ),
    "imr_r2": FactWords(
        Kind.IDENTIFICATION,
        "lambda on the features",
        "lambda is almost a linear function of the prediction features.",
        f"Let fewer features predict ({PREDICT_WITH}), or keep one that drives "
        f"selection strongly out of the prediction ({NEVER}).",
        why="Its coefficient and theirs can hardly be separated.",
        line="lambda on the features",
        meaning={
            "": "Lambda is almost a linear function of the prediction features.",
            "ok": "Lambda is not a linear function of the prediction features.",
        },
        claim={"caution": "That the coefficients are free of what lambda takes up"},
        because="lambda is almost a linear function of the prediction features (VIF {vif}).",
    ),
    "stand_ins": FactWords(
        Kind.IDENTIFICATION,
        "features that stand in for {correction}",
        {
            "": "{names} and {correction_subject} stand in for each other.",
            "with": "Selection shows only where {names} predicts.",
        },
        f"Decide by what you know about {{names}}: fit with {_ALWAYS} and with "
        f"{NEVER}, and report both.",
        "What looks like selection may be the effect of {names}, or the other way round.",
        line="features that stand in for {correction}",
        meaning={
            "": "{sentences}",
            "ok": "No feature that cannot be told takes the correction's place, or goes with it.",
        },
        sentence={"caution": "{first}"},
    ),
    "imr_optional": FactWords(
        Kind.IDENTIFICATION,
        "chance that selection mattered",
        {
            "": "Whether selection mattered cannot be told.",
            "unreliable": "The chance that selection mattered is not to be relied on.",
        },
        "Report {naive} beside the corrected estimates. A feature that drives selection and has no "
        f"reason to predict, named in {NEVER}, would tell.",
        {
            "": "The features, or what drives selection as a whole, can take the correction's "
            "place.",
            "unreliable": "It is a share of weight in a model that is not to be relied on.",
        },
        line="chance that selection mattered",
        meaning={
            "yes": "Selection mattered: neither a feature nor the index takes its place.",
            "no sign": "There is no sign that selection mattered; that proves nothing.",
            "unknown": "Whether selection mattered cannot be told.{rival}",
            "unreliable": "The model is not to be relied on, and so is this chance.",
        },
        sentence="Assignments with {correction} carry this much of the weight: {value}.",
        levels=("note", "note"),
    ),
    "all_features_test": FactWords(
        Kind.IDENTIFICATION,
        "test of rho = 0, all features",
        "The test of rho = 0 with all features is not to be relied on.",
        "Do not take it as evidence for selection, or against it.",
        line="test of rho = 0, all features",
        meaning="No search had a part in it: every candidate predicts.",
    ),
    "uncertainty": FactWords(
        Kind.IDENTIFICATION,
        "signs over rho",
        "The sign of {names} depends on rho.",
        {
            "": "Draw no conclusion from that sign alone, and report the range over rho.",
            UNTESTED: FEWER,
        },
        "Another rho in that range turns it.",
        line="signs over rho",
        meaning={
            "": "The sign of {names} depends on rho" + _OVER_RHO,
            "ok": "Every sign is the same for any rho in that range" + _OVER_RHO,
        },
    ),
    "window": FactWords(
        Kind.IDENTIFICATION,
        "window of rho",
        "rho was kept in a window.",
        f"Do not report a test of rho. To get one, leave out {option('rho_range', ...)}.",
        line="test of rho = 0",
        sentence={
            "": "rho was conditioned on: only assignments whose two-step rho is in {window} were "
            "allowed ({share} of those evaluated). It is no evidence of selection bias: it tests "
            "nothing, and no test of rho = 0 is reported.",
            "averaged": "rho was conditioned on: only assignments whose rho is in {window} have "
            "weight. It tests nothing, and has no interval.",
        },
        claim="That rho says whether there is selection bias",
        because={
            "": "the features were chosen so that rho is in {window}, and it tests nothing.",
            "averaged": "only assignments with rho in {window} have weight, and it tests nothing.",
        },
    ),
    "rho_test": FactWords(
        Kind.IDENTIFICATION,
        "test of rho = 0",
        {
            "": "The test of rho = 0 is not to be relied on.",
            UNTESTED: "rho = 0 was not tested.",
        },
        "Do not take it as evidence for selection, or against it. Look at the checks above first.",
        line="test of rho = 0",
        meaning="{found}",
        claim={"not rejected": _NO_SELECTION},
        because="rho = {rho} does not differ from zero at 5% ({p}), which does not show that it is "
        "zero.",
    ),
    "rho_lr_test": FactWords(
        Kind.IDENTIFICATION,
        "LR test of rho = 0",
        {
            "": "The likelihood-ratio test of rho = 0 is not to be relied on.",
            UNTESTED: "rho = 0 was not tested by the likelihood ratio.",
        },
        "{other_test}",
        "It rests on the same likelihood as the estimates.",
        line="LR test of rho = 0",
        meaning="{found}",
        claim={"not rejected": _NO_SELECTION},
        because="rho = {rho} does not differ from zero at 5% ({p}), which does not show that it is "
        "zero.",
    ),
    "rho_near_boundary": FactWords(
        sentence=f"The 95% interval of rho, {{value}}, nearly reaches the boundary, where such "
        f"intervals are unreliable.{_PROFILE_RHO}",
        claim="That the interval of rho is reliable",
        because="the 95% interval of rho, {value}, nearly reaches the boundary, where such "
        "intervals are unreliable.",
    ),
    "condition": FactWords(
        Kind.IDENTIFICATION,
        "condition number",
        "Some prediction columns are nearly collinear.",
        f"Leave out redundant features with {EXCLUDE}, or interpret their coefficients together.",
        why="Small changes in the data move their coefficients, and standard errors are large.",
        line="condition number",
        meaning={
            "": "Some columns are nearly collinear; standard errors will be large.",
            "ok": "The columns of the prediction equation are well apart.",
        },
    ),
    "what_if": FactWords(
        Kind.EXCLUSION,
        "excluded features put back",
        "An excluded feature appears to predict.",
        {
            "": f"Let it predict ({_ALWAYS}), or argue why it should not, and compare.",
            "given": f"Let it predict ({PREDICT_WITH}), or argue why it should not, and compare.",
            UNTESTED: FEWER,
        },
        "A feature that improves the prediction is a doubtful exclusion.",
        line="excluded features put back",
        meaning={
            "": "It may belong in the prediction equation" + instead("; see what_if().", "."),
            "ok": "None is significant, which proves no exclusion valid."
            + instead(" See what_if().", ""),
        },
    ),
    "exclusion_test": FactWords(
        Kind.EXCLUSION,
        "joint test of the exclusions",
        "The exclusions contradict one another.",
        {
            "": f"Let those that you can defend least predict ({_ALWAYS}), and compare.",
            "given": f"Let those that you can defend least predict ({PREDICT_WITH}), and compare.",
        },
        line="joint test of exclusions",
        meaning={
            "": "Some exclusions contradict others, or normality fails.",
            "ok": "The exclusions do not contradict one another, which proves none of them.",
        },
    ),
    "no_imr": FactWords(
        line="lambda on the features",
        meaning="A {model} has no term in lambda, so there is no R2 or VIF of it: "
        "exclusions tell selection from prediction.",
    ),
    "naive_probit": FactWords(
        line="{naive_short}",
        meaning="Of all average slopes of {target}, the correction moves this one most. Without "
        "it, {naive} takes rho to be zero.",
    ),
    "imr_range": FactWords(
        line="range of lambda in the fit",
        meaning={
            "": "The selection index runs from {low} to {high}.",
            "index": "The selected rows had a probability of selection of {chances}.",
        },
    ),
    "two_step_errors": FactWords(
        sentence="Standard errors account for the estimated inverse Mills ratio; the two-step rho "
        "and sigma have none."
    ),
    "rho_scale": FactWords(sentence="The interval and test of rho are on the scale of atanh rho."),
    "adjusted_r2": FactWords(
        sentence={
            "": "The degrees of freedom of adjusted R2 leave lambda out, as in the paper of Mai "
            "and Wu; those of AIC and BIC count it.",
            "likelihood": "Adjusted R2 is of the two-step estimates. The degrees of freedom of "
            "adjusted R2 leave lambda out, as in the paper of Mai and Wu. {criteria}",
            "held": "AIC and BIC do not count lambda: with rho held, its coefficient follows from "
            "sigma.",
        }
    ),
    "criteria": FactWords(sentence="{criteria}"),
    "slopes": FactWords(
        sentence="Coefficients are those of the index x'b of P(y = 1) = Phi(x'b), not changes of "
        "the probability" + instead("; margins() has these.", "; effects are in percentage points.")
    ),
    "log_scale": FactWords(
        sentence="The outcome is {outcome}. {log_points} Predictions and scores are on the "
        "outcome's own scale; likelihood, AIC, BIC and adjusted R2 are on that of the logarithm."
    ),
    "reference_distribution": FactWords(sentence="{value}"),
    "classical_beside": FactWords(
        sentence={
            "": "Intervals and tests of other sets of features are by classical standard errors.",
            "averaged": "Intervals of averaged least squares are by classical standard errors.",
        }
    ),
    "normal_law": FactWords(
        sentence="The correction for selection assumes normal errors.",
        claim="That the correction holds whatever the distribution of the errors",
        because={
            "": "it assumes that they are normal.",
            "rejected": "it rests on their being normal, and that is rejected here ({value}).",
        },
    ),
    "not_causal": FactWords(
        sentence="{effect} is an association, not a causal effect.",
        claim="That changing a feature would change {changes}",
        because="it is an association, not a causal effect.",
    ),
    "selected_scores": FactWords(
        sentence="Accuracy, AUC and Brier score are those of rows with an outcome, and say nothing "
        "about the others.",
        claim="That probabilities are as accurate for rows without an outcome",
        because="accuracy, AUC, Brier score and calibration can be computed only where the outcome "
        "is known, and those rows are selected.",
    ),
    **SEARCH_AND_ROW_WORDS,
}


def tell(
    fit: Fit | None,
    key: str,
    level: Level,
    value: str = "",
    *,
    case: str = "",
    name: str = "",
    names: tuple[str, ...] = (),
    short: str = "",
    claims: bool = True,
    **values: Any,
) -> Fact:
    """Put a fact into words.

    Parameters
    ----------
    fit : Fit or None
        Whose family has words that the texts may hold.
    key, level, value, case, names, short
        As in `Fact`.
    name : str
        Its label among the diagnostics, if not the usual one.
    claims : bool
        Whether it rules out a claim, as its words have it.
    **values
        What else the texts hold.
    """
    words, family = FACT_WORDS[key], {} if fit is None else asdict(fit.family.words)
    given = family | {"outcome": "the outcome", "short": short} | values
    given |= {"value": value, "names": listed(names)}

    def said(text: Text) -> str:
        return chosen(text, case, level).format(**given)

    given["meaning"] = said(words.meaning)
    given["lower"] = given["meaning"][:1].lower() + given["meaning"][1:]
    given["title"] = said(words.title) if "{title}" in str(words.sentence) else ""
    sentence = said(words.sentence)
    claim = said(words.claim) if claims else ""
    return Fact(
        key,
        level,
        value,
        meaning=given["meaning"] or sentence,
        name=name or words.line.format(**given),
        sentence=sentence,
        claim=claim,
        because=said(words.because) if claim else "",
        case=case,
        short=short,
        names=names,
        values={name: str(text) for name, text in (family | values).items()},
    )


def chosen(text: Text, case: str, level: Level) -> str:
    """Return the words of a case, or else of a level, or else those of all others."""
    if isinstance(text, str):
        return text
    return next((text[key] for key in (case, level, "") if key in text and key), text.get("", ""))

"""Words of the facts about estimates: faults, assumptions, and what the numbers are."""

from __future__ import annotations

from heckmanfa.results.facts import (
    EXCLUDE,
    NEVER,
    PREDICT_WITH,
    STRONGER,
    UNTESTED,
    FactWords,
)
from heckmanfa.text.option_words import instead, option

_TWO_STEP = option("method", "two-step")
_ML = option("method", "ml")
_LEAVE_OUT = instead("leave it out", f"leave it out with {EXCLUDE}")
_TITLED = "{title} {meaning}"
_KEEP_TWO_STEPS = f"Keep two steps ({_TWO_STEP}){{with_robust}}, and report those estimates."
_BIASED = f"Robust standard errors do not remove that. Use {_TWO_STEP}{{with_robust}}."
_PROFILE = instead(" See profile() for intervals.", "")
_PROFILE_RHO = instead(" See profile_rho().", "")

INVALID: dict[str, FactWords] = {
    "convergence": FactWords(
        "convergence",
        "The iteration did not converge.",
        f"Do not report these estimates. Leave out extreme features with {EXCLUDE}, or "
        "{other_estimates}.",
        line="convergence",
        meaning="The estimates are from where the iteration stopped, so do not trust them: {cure}.",
        sentence="THE ITERATION DID NOT CONVERGE: {value}. {meaning}",
        claim="That these numbers are estimates at all",
        because="the iteration did not converge, and they are from where it stopped.",
    ),
    "standard_errors": FactWords(
        "standard errors",
        "Some standard errors are missing.",
        f"Do not report tests or intervals. Let fewer features predict ({PREDICT_WITH}).",
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
        claim="That the features predict as well as it seems (R2 {value})",
        because="one of them is probably made from the outcome, or known only with it.",
    ),
    "rho": FactWords(
        "rho",
        {
            "outside": "The estimated strength of selection is impossible.",
            "near one": "The estimated strength of selection is at its limit.",
            "flat": "The data do not tell how strong selection is.",
        },
        {
            "": f"Do not report effects from this fit. {STRONGER} Or let fewer features predict "
            f"({PREDICT_WITH}).",
            "outside": "Do not report this rho as a correlation. Name stronger exclusions in "
            f"{NEVER}, or compare with {_ML}, which keeps rho inside.",
        },
        line="rho",
        meaning={
            "": "Inside (-1, 1).",
            "outside": "Outside (-1, 1): the model does not fit, or is hardly identified.",
            "near one": "Beyond {limit}, practically one{near_one}",
            "flat": "The likelihood is flat in rho: the data do not separate it from other values. "
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
            "": "That the data tell how strong selection is",
            "ok": "",
            "outside": "That the estimated strength of selection is possible",
            "held": "That the data show how strong selection is",
        },
        because={
            "outside": "its estimate, {value}, is outside (-1, 1), so the model does not fit or "
            "the data hardly identify it.",
            "near one": "{value} is practically one, which usually means that the model does not "
            "fit.",
            "flat": "the likelihood is flat in rho, and the data do not separate it from other "
            "values.",
            "held": "rho is {value}, which is an assumption.",
        },
    ),
    "maxima": FactWords(
        "maxima of the likelihood",
        "The likelihood has two maxima.",
        f"Fit the other one with {option('start', ...)}, compare, and report both.",
        line="maxima of the likelihood",
        meaning={
            "": "The estimates are at the {which} of two maxima. {ratio}A start of {other} fits "
            "{start}; report both. One near |rho| = 1 is often a sign of a model that does not "
            "fit.",
            "profiled": "They are at rho = {places}. A start at one of them fits it. One near "
            "|rho| = 1 is often a sign of misspecification.",
        },
        sentence="The likelihood has two maxima ({value}). {meaning}",
        claim={"problem": "That no other estimates fit the data better"},
        because="there is a higher maximum, at rho = {other}.",
        levels=("problem", "problem"),
    ),
    "outside_window": FactWords(
        "rho and its window",
        "Maximum likelihood puts the strength of selection outside its limits.",
        f"Use {_TWO_STEP}, whose rho is the one that the window is about.",
        sentence="Maximum likelihood puts rho at {value}, outside that window.",
    ),
    "covariance": FactWords(
        "covariance",
        "The covariance of the estimates is not valid.",
        f"Do not report tests or intervals. Let fewer features predict ({PREDICT_WITH}).",
    ),
    "outcome_separation": FactWords(
        "columns that decide {outcome}",
        "{outcome} is decided by {names}.",
        f"Leave these columns out with {EXCLUDE}, or merge rare levels.",
        why="The likelihood rises without end there, so these coefficients mean nothing.",
        line="columns that decide the outcome",
        meaning="A plain probit has no finite maximum there: the coefficients are where the "
        "iteration stopped, and have no standard errors. Leave these columns out, or merge rare "
        "levels.",
        sentence="The outcome is decided by {value}. {meaning}",
        claim="That every coefficient has a size",
        because="the outcome is decided by {value}, and the likelihood has no maximum.",
    ),
    "underdetermined": FactWords(
        "rows for the coefficients",
        "The rows do not determine the coefficients.",
        f"Use fewer features ({option('selection_features', [...])}, {EXCLUDE}).",
    ),
    "total_rows": FactWords(
        "totals among the rows",
        "The table holds rows that look like totals.",
        "{advice}",
    ),
    "outcome_code": FactWords(
        "codes for missing in the outcome",
        "The outcome holds a number that may mean missing.",
        "{advice}",
    ),
}
"""the estimates are not those of the model"""

ASSUMPTIONS: dict[str, FactWords] = {
    "normality_prediction": FactWords(
        "normality of the errors of {outcome}",
        "The errors of {outcome} are not normal.",
        "{if_not_normal}",
        why="The correction assumes that they are.",
    ),
    "normality_selection": FactWords(
        "normality of selection",
        "The errors of the selection equation are not normal.",
        "Look at outliers and skewed features first: logarithms or squares of features may fix the "
        "selection equation. Report the range over rho beside the estimate.",
        why="The correction follows from normal errors: with others, it corrects for something "
        "else.",
    ),
    "heteroskedasticity_selection": FactWords(
        "equal variance of selection",
        "The variance of the selection equation's error changes with the features.",
        "Add squares or products of the features that drive selection, and report the range over "
        "rho beside the estimate.",
        why="A probit with one variance then gets the correction wrong.",
    ),
    "heteroskedasticity_prediction": FactWords(
        "equal variance of the errors of {outcome}",
        "The variance of the error behind {outcome} changes with the features.",
        "Add squares or products of the features that predict, and report the range over rho "
        "beside the estimate.",
        why="A probit with one variance then gets the probabilities wrong.",
    ),
    "correction_form": FactWords(
        "form of the correction",
        "The correction has another form than the model assumes.",
        "Do not base a finding on the correction alone. Report {naive} and the range over rho "
        "beside it.",
        why="The mean error among rows with an outcome is not a multiple of lambda.",
    ),
    "reset": FactWords(
        "RESET",
        "Powers or products of the features are missing from the prediction.",
        "Add squares, logarithms or products of the features as columns, and fit again.",
        why="A curve that a straight line leaves out may pass for selection.",
    ),
    "hausman": FactWords(
        "two steps against maximum likelihood",
        "Maximum likelihood and two steps disagree.",
        _KEEP_TWO_STEPS,
        why="Two steps assume less: what only maximum likelihood assumes does not hold.",
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
        "equal variance of {outcome}",
        "The variance of {outcome} changes with the features.",
        _KEEP_TWO_STEPS,
        why="Maximum likelihood takes such a change for selection.",
        line="equal variance, outcome",
        meaning={
            "": "Rejected at 5%: the variance changes with {what} or the selection index, which "
            f"biases the slopes and beta_H of maximum likelihood. {_BIASED}",
            "ok": "There is no sign that the variance changes with {what} or the selection index.",
            UNTESTED: "Whether the outcome's variance changes was not tested.",
        },
        sentence={
            "": "Test of the outcome's variance: {value}. {meaning}",
            "ok": "",
            UNTESTED: "",
        },
        claim={"": "That the outcome is equally uncertain for all rows", "ok": "", UNTESTED: ""},
        because="its variance changes, which biases maximum likelihood.",
    ),
    "transform_ratio": FactWords(
        "the outcome over its predicted mean",
        {
            "": "Predictions on the outcome's own scale are off.",
            "few rows": "Means on the outcome's own scale rest on a few rows.",
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
        "rows for the selection equation",
        "The selection equation has many features for its rows.",
        f"Leave out features that have no reason to drive selection ({EXCLUDE}).",
        why="Its coefficients are then too large, and the correction is too small.",
    ),
    "binary_outcome": FactWords(
        "values of {outcome}",
        "{outcome} holds only two values.",
        f"Fit the Heckman probit ({option('outcome_kind', 'binary')}), or read effects as changes "
        "in chance.",
        why="A linear model of two values will predict beyond them in some rows.",
    ),
    "events": FactWords(
        "rows of the rarer class",
        "One class of {outcome} has few rows for the coefficients.",
        f"Let fewer features predict ({PREDICT_WITH}), and claim less.",
        why="Coefficients are then too large, and intervals may cover less often than their level.",
        line="rows of the rarer class",
        meaning={
            "": "A rule of thumb asks for {enough} for each coefficient. With fewer, coefficients "
            "tend to be too large, and intervals may cover less often than their level.",
            "ok": "A rule of thumb asks for {enough} for each coefficient.",
        },
        sentence={"caution": "Rows of the rarer class are few: {value}. {meaning}"},
        claim={"caution": "That 95% intervals hold the truth 95% of the time"},
        because="the rarer class has {short}, where a rule of thumb asks for {enough}.",
    ),
    "tails": FactWords(
        "tails of the errors",
        {
            "no mean": "The tails of the errors are so heavy that they have no mean.",
            "infinite": "The errors have no heavier tails than normal ones.",
            "normal": "Heavier tails than normal ones are not needed.",
        },
        {
            "": f"Compare with {option('errors', 'normal')}, which estimates one parameter less.",
            "no mean": "Look for outliers and errors of recording in the outcome first: there are "
            "no expectations to report.",
        },
        line="tails of the errors",
        meaning={
            "": "Heavier than normal ones: infinitely many degrees of freedom, the normal model, "
            "are rejected at 5%. The p-value is half that of chi-squared, since infinity is on the "
            "boundary.",
            "no mean": "With one degree of freedom or fewer, the errors have no mean, so given "
            "selection there is no expectation: predictions of it are NaN.",
            "infinite": "The likelihood is highest at infinitely many degrees of freedom: these "
            "are the estimates of the normal model.",
            "normal": "Infinitely many degrees of freedom, the normal model, are not rejected at "
            "5%. The p-value is half that of chi-squared, since infinity is on the boundary.",
            UNTESTED: "Estimated; whether they are infinite, as in the normal model, was not "
            "tested.",
        },
        sentence="Degrees of freedom: {value}. {meaning}",
        claim={
            "no mean": "That the outcome has an expectation given selection",
            "normal": "That the errors have heavier tails than normal ones",
            "infinite": "That the errors have heavier tails than normal ones",
        },
        because={
            "": "the likelihood does not tell them from normal ones ({value}).",
            "no mean": "the errors have {value} degrees of freedom, and so no mean.",
        },
        levels=("problem", "note"),
    ),
    "refits": FactWords(
        "refits by maximum likelihood",
        "The averages rest on maximum likelihood, which needs normal errors.",
        f"Compare with {_TWO_STEP}.",
    ),
}
"""what the model assumes is rejected"""

NUMBERS: dict[str, FactWords] = {
    "two_step_errors": FactWords(
        sentence="Standard errors account for the estimated inverse Mills ratio; the two-step rho "
        "and sigma have none."
    ),
    "series": FactWords(
        line="terms of the series",
        meaning={
            "": "The correction is s0 + s1 p1 + ... in the selection index, p1 being lambda, and "
            "supposes no distribution of the outcome's error; {how}. Standard errors take the "
            "number of terms as given.",
            "given": "The correction is s0 + s1 p1 + ... in the selection index, p1 being lambda, "
            "and supposes no distribution of the outcome's error.",
        },
        sentence="Series of {value}. {meaning}",
    ),
    "series_intercept": FactWords(
        "intercept",
        {
            "": "The intercept is not identified.",
            "at infinity": "The intercept is that of rows that are almost surely selected.",
        },
        {
            "": f"Where levels matter, {option('intercept', 'at infinity')} identifies it.",
            "at infinity": "Do not lean on levels: effects do not need the intercept.",
        },
        line="intercept",
        meaning={
            "": "A series does not tell the intercept from its own constant, s0, which has both. "
            "Slopes and expectations of selected rows do not need it.",
            "at infinity": "It is the mean of {value} that are selected with a chance above 90%, "
            "where there should be little left to correct for. What is left is its bias.",
        },
        sentence={
            "": "The intercept is not identified. {meaning}",
            "at infinity": "The intercept is identified at infinity. {meaning}",
        },
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
        sentence={
            "": "Coefficients are those of the index x'b of P(y = 1) = Phi(x'b), not changes of "
            "the probability"
            + instead("; margins() has these.", "; effects are in percentage points."),
            "ordered": "Coefficients are those of the latent outcome, whose error has variance "
            "one, not changes of a class's probability; margins() has these, for each class.",
        }
    ),
    "log_scale": FactWords(
        sentence="The outcome is {outcome}. {percents} Predictions and scores are on the "
        "outcome's own scale; likelihood, AIC, BIC and adjusted R2 are on that of the logarithm."
    ),
    "reference_distribution": FactWords(sentence="{value}"),
    "classical_beside": FactWords(
        sentence={
            "": "Intervals and tests of other sets of features use classical standard errors.",
            "averaged": "Intervals of averaged least squares use classical standard errors.",
        }
    ),
    "normal_law": FactWords(
        sentence={
            "": "The correction for selection assumes normal errors.",
            "t": "The correction for selection assumes t errors.",
            "series": "The correction for selection assumes a probit of who is selected, and no "
            "distribution of the outcome's error.",
        },
        claim={
            "": "That the correction works for errors of any shape",
            "series": "That the correction needs no assumption",
        },
        because={
            "": "it assumes that they are normal.",
            "t": "it assumes that they are t, with one number of degrees of freedom for both "
            "equations.",
            "series": "the chance of being selected must depend on the features through a probit's "
            "index, and so must the error of the selected rows.",
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
}
"""what the numbers are; none is a check"""

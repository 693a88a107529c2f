"""Words of the facts about identification: exclusions, lambda, and tests of rho."""

from __future__ import annotations

from dataclasses import replace

from heckmanfa.results.facts import (
    ALWAYS,
    EXCLUDE,
    FEWER,
    NEVER,
    PREDICT_WITH,
    STRONGER,
    UNTESTED,
    FactWords,
)
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.wording import NO_EXCLUSION, ONLY_NORMALITY, capitalised

_RELY = (
    "Rely on one or two features that drive selection strongly and have no reason to predict, and "
    f"name them in {NEVER}."
)
_OVER_RHO = instead("; see uncertainty_interval().", "; see the picture over rho in the report.")
_PROFILE_RHO = instead(" See profile_rho().", "")
_TITLED = "{title} {meaning}"
_RHO_TEST = FactWords(
    meaning={
        UNTESTED: "Whether there is selection on unobservables was not tested.{maximum}",
        "searched": "The data chose the exclusions, so this proves nothing: the chance that "
        "selection mattered decides.{maximum}",
        "not rejected": "rho = 0 is not rejected at 5%, which does not show that it is 0.{maximum}",
        "rejected": "rho = 0 is rejected at 5%, if what is excluded does not predict.{maximum}",
        "rejected, doubtful": "rho = 0 is rejected at 5%, which may come from a model that does "
        "not fit rather than from selection on unobservables.{maximum}",
        "rejected, no exclusion": f"rho = 0 is rejected at 5%, but {NO_EXCLUSION}: "
        f"{ONLY_NORMALITY}.{{maximum}}",
    },
    claim={"not rejected": "That selection did not matter"},
    because="rho = {rho} does not differ from zero at 5% ({p}), which does not show that it is "
    "zero.",
)

IDENTIFICATION: dict[str, FactWords] = {
    "exclusions": FactWords(
        "exclusions",
        {
            "": "{excluded} drive selection weakly for their number.",
            "none": f"{capitalised(NO_EXCLUSION)}.",
            "none, averaged": "Every feature that drives selection probably predicts as well.",
            "undriving": "There is no evidence that {excluded_inside} drive selection.",
            UNTESTED: "Whether {excluded_inside} drive selection was not tested.",
            "held": "",
        },
        {"": _RELY}
        | dict.fromkeys(
            ("none", "none, averaged"), f"{STRONGER} Until then, report the range over rho."
        ),
        {"": "Little then separates selection from prediction.", "none": "", "none, averaged": ""},
        line="excluded features",
        meaning={
            "": "{drives} weakly: little identifies the model.{profile}",
            "ok": "{drives} selection{valid}.",
            "none": "{only_normality}",
            "none, averaged": "Only normality separates the correction from the features.",
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
            "none": "That the data alone separate selection from prediction",
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
        "lambda on the features",
        "The correction can hardly be told apart from the features.",
        f"Let fewer features predict ({PREDICT_WITH}), or keep one that drives "
        f"selection strongly out of the prediction ({NEVER}).",
        why="Its coefficient and theirs can hardly be separated.",
        line="lambda on the features",
        meaning={
            "": "Lambda is almost a linear function of the prediction features.",
            "ok": "Lambda is not a linear function of the prediction features.",
        },
        claim={"caution": "That the data separate the correction from the features"},
        because="lambda is almost a linear function of the prediction features (VIF {vif}).",
    ),
    "stand_ins": FactWords(
        "features that stand in for {correction}",
        {
            "": "{names} and the correction stand in for each other.",
            "with": "Selection shows only where {names} predicts.",
        },
        f"Decide by what you know about {{names}}: fit with {ALWAYS} and with "
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
        "chance that selection mattered",
        {
            "": "Whether selection mattered cannot be told.",
            "unreliable": "The chance that selection mattered is not to be relied on.",
        },
        "Report {naive} beside the corrected estimates. A feature that drives selection and has no "
        f"reason to predict, named in {NEVER}, would settle it.",
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
            "unreliable": "The model is not to be relied on, and neither is this chance.",
        },
        sentence="Assignments with {correction} carry this much of the weight: {value}.",
        levels=("note", "note"),
    ),
    "all_features_test": FactWords(
        "test of rho = 0, all features",
        "The test of selection with all features is not to be relied on.",
        "Do not take it as evidence for selection, or against it.",
        line="test of rho = 0, all features",
        meaning="No search was involved: every candidate predicts.",
    ),
    "uncertainty": FactWords(
        "signs over rho",
        "The sign of {names} depends on how strong selection is.",
        {
            "": "Draw no conclusion from that sign alone, and report the range over rho.",
            UNTESTED: FEWER,
        },
        "Another rho in that range reverses it.",
        line="signs over rho",
        meaning={
            "": "The sign of {names} depends on rho" + _OVER_RHO,
            "ok": "Every sign is the same for any rho in that range" + _OVER_RHO,
        },
    ),
    "window": FactWords(
        "window of rho",
        "The strength of selection was kept within limits.",
        f"Do not report a test of rho. To get one, leave out {option('rho_range', ...)}.",
        line="test of rho = 0",
        sentence={
            "": "rho was conditioned on: only assignments whose two-step rho is in {window} were "
            "allowed ({share} of those evaluated). It is no evidence of selection bias: it tests "
            "nothing, and no test of rho = 0 is reported.",
            "averaged": "rho was conditioned on: only assignments whose rho is in {window} have "
            "weight. It tests nothing, and has no interval.",
        },
        claim="That the estimated rho tells whether selection mattered",
        because={
            "": "the features were chosen so that rho is in {window}, and it tests nothing.",
            "averaged": "only assignments with rho in {window} have weight, and it tests nothing.",
        },
    ),
    "rho_test": replace(
        _RHO_TEST,
        name="test of rho = 0",
        title={
            "": "The test of selection is not to be relied on.",
            UNTESTED: "Whether selection mattered was not tested.",
        },
        do="Do not take it as evidence for selection, or against it. Look at the checks above "
        "first.",
        line="test of rho = 0",
    ),
    "rho_lr_test": replace(
        _RHO_TEST,
        name="LR test of rho = 0",
        title={
            "": "The likelihood-ratio test of selection is not to be relied on.",
            UNTESTED: "Whether selection mattered was not tested by the likelihood ratio.",
        },
        do="{other_test}",
        why="It rests on the same likelihood as the estimates.",
        line="LR test of rho = 0",
    ),
    "series_test": FactWords(
        "joint test of the series",
        {UNTESTED: "Whether selection mattered was not tested."},
        line="joint test of the series",
        meaning={
            "": "Without selection on what was not observed, the series would be flat. Such a "
            "series would be rare.",
            "not rejected": "Without selection on what was not observed, the series would be flat. "
            "The data do not contradict that.",
            UNTESTED: "The covariance of the series is not known.",
        },
        claim={"not rejected": "That selection did not matter"},
        because="the joint test of the terms of the series does not reject that it is flat ({p}), "
        "which does not show that it is.",
        levels=("caution", "note"),
    ),
    "condition": FactWords(
        "condition number",
        "Some prediction columns are nearly collinear.",
        f"Leave out redundant features with {EXCLUDE}, or interpret their coefficients together.",
        why="Small changes in the data move their coefficients, and standard errors are large.",
        line="condition number",
        meaning={
            "": "Some columns are nearly collinear; standard errors will be large.",
            "ok": "The columns of the prediction equation are not collinear.",
        },
    ),
    "rho_near_boundary": FactWords(
        sentence=f"The 95% interval of rho, {{value}}, nearly reaches the boundary, where such "
        f"intervals are unreliable.{_PROFILE_RHO}",
        claim="That the range for the strength of selection is reliable",
        because="the 95% interval of rho, {value}, nearly reaches the boundary, where such "
        "intervals are unreliable.",
    ),
    "no_imr": FactWords(
        line="lambda on the features",
        meaning="A {model} has no term in lambda, so there is no R2 or VIF of it: "
        "exclusions separate selection from prediction.",
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
}
"""little tells selection from prediction"""

EXCLUSIONS: dict[str, FactWords] = {
    "what_if": FactWords(
        "excluded features put back",
        "An excluded feature appears to predict.",
        {
            "": f"Let it predict ({ALWAYS}), or argue why it should not, and compare.",
            "given": f"Let it predict ({PREDICT_WITH}), or argue why it should not, and compare.",
            UNTESTED: FEWER,
        },
        "A feature that improves the prediction is a doubtful exclusion.",
        line="excluded features put back",
        meaning={
            "": "It may belong in the prediction equation" + instead("; see what_if().", "."),
            "ok": "None is significant, which does not prove an exclusion valid."
            + instead(" See what_if().", ""),
        },
    ),
    "exclusion_test": FactWords(
        "joint test of the exclusions",
        "The exclusions contradict one another.",
        {
            "": f"Let the ones you can least defend predict ({ALWAYS}), and compare.",
            "given": f"Let the ones you can least defend predict ({PREDICT_WITH}), and compare.",
        },
        line="joint test of exclusions",
        meaning={
            "": "Some exclusions contradict others, or normality fails.",
            "ok": "The exclusions do not contradict one another, which does not prove them valid.",
        },
    ),
}
"""an exclusion is doubtful"""

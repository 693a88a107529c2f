"""Words of the facts that only treatment models have."""

from __future__ import annotations

from heckmanfa.results.facts import EXCLUDE, FactWords
from heckmanfa.text.option_words import instead, option

_INSTRUMENT = (
    "Look for a feature that moves treatment and has no other way to {outcome}, and leave it out "
    + instead("of outcome_features", f"of the outcome with {option('select_only', [...])}")
    + "."
)
_ALONE = "That the data tell the effect of treatment from who chose it"

TREATMENT: dict[str, FactWords] = {
    "regime_rho": FactWords(
        "correlation of the errors",
        {
            "outside": "The estimated selection into treatment is impossible.",
            "near one": "The estimated selection into treatment is at its limit.",
        },
        f"Do not report effects from this fit. Compare {option('method', 'two-step')} with "
        f"{option('method', 'ml')}. {_INSTRUMENT}",
        line="rho",
        meaning={
            "": "Inside (-1, 1).",
            "outside": "{short}, outside (-1, 1): the model does not fit, or hardly anything but "
            "normality identifies it.",
            "near one": "{short}, practically one: the model does not fit, or hardly anything but "
            "normality identifies it.",
        },
        sentence={"problem": "{meaning}"},
        claim={"problem": "That the effect is known"},
        because="{lower}",
    ),
    "instruments": FactWords(
        "what drives treatment alone",
        {
            "none": "No feature drives treatment alone.",
            "untested": "Whether {names} {drives} treatment was not tested.",
            "weak": "{names} {drives} treatment only weakly.",
            "idle": "There is no evidence that {names} {drives} treatment.",
        },
        _INSTRUMENT,
        line="instruments",
        meaning={
            "none": "Every feature that drives treatment is in the outcome, too: only normality "
            "tells the effect of treatment from the errors.",
            "untested": "Whether {names} {drives} treatment was not tested: {note}.",
            "strong": "{names} {drives} treatment. That {does} not move the outcome in any other "
            "way cannot be tested.",
            "weak": "{names} {drives} treatment, but weakly: a chi2 above {strong} would be "
            "strong. The effect leans on normality.",
            "idle": "There is no evidence that {names} {drives} treatment: the effect rests on "
            "normality.",
        },
        sentence="{meaning}",
        claim={"strong": "That {names} cannot move {outcome} in another way", "": _ALONE},
        because={
            "none": "nothing drives treatment alone, so only the normality of the errors does.",
            "untested": "whether {names} {drives} treatment was not tested.",
            "strong": "that treatment is the only way cannot be tested; if there is another, every "
            "effect here is wrong.",
            "weak": "{names} {drives} treatment weakly, so the normality of the errors does much "
            "of it.",
            "idle": "there is no evidence that {names} {drives} treatment, so only the normality "
            "of the errors does.",
        },
    ),
    "methods_apart": FactWords(
        "effect by the other method",
        "Two methods disagree about the effect.",
        "Believe neither before you know why: look for outliers and skewness in {outcome}, and for "
        "a stronger instrument.",
        meaning="The effect on everyone is {own} here, and {other} by {method}. If the errors are "
        "normal, both are about the same.",
    ),
    "chance_of_correction": FactWords(
        line="correction needed",
        meaning={
            "sure": "Treatment depends on what the outcome depends on: least squares is biased.",
            "no sign": "There is no sign that treatment is other than as by lot.",
            "": "It cannot be told whether treatment depends on what the outcome depends on.",
        },
        sentence="{meaning}",
    ),
    "rho_test_note": FactWords(sentence="{test}: {value}."),
    "overlap": FactWords(
        "probabilities of treatment in common",
        "Treated and untreated have few probabilities of treatment in common.",
        f"Report the effect on those at the margin, or leave rows without counterparts out, and "
        f"say so. A feature that almost decides treatment can be left out with {EXCLUDE}.",
        line="probability of treatment",
        meaning={
            "ok": "Treated and untreated have probabilities of treatment in common.",
            "": "Treated and untreated have few probabilities of treatment in common: what the "
            "one group would have in the other's place rests on the equations.",
            "outside": "{outside} have a probability of treatment that only one of both groups "
            "has: what they would have in the other's place rests on the equations.",
        },
        sentence={"caution": "{meaning}"},
        claim={"caution": "That the average over everyone holds for everyone"},
        because={
            "": "treated and untreated have few probabilities of treatment in common.",
            "outside": "{outside} have a probability of treatment that only one of both groups "
            "has.",
        },
    ),
    "few_in_regime": FactWords(
        "rows in the smaller group",
        "There are few rows in the smaller group.",
        "Use more rows, or fewer features.",
        meaning="{meaning_of}",
    ),
    "as_by_lot": FactWords(
        claim="That treatment is as if drawn by lot",
        because="that this is not rejected ({value}) does not show it: the test may have little "
        "power.",
    ),
    "treatment_normal": FactWords(
        claim="That the effects hold for errors of any shape",
        because="they assume that the errors are normal.",
    ),
    "no_spillover": FactWords(
        claim="That this would be the effect if everyone were treated",
        because="the model takes it that nobody's treatment changes another's outcome.",
    ),
    "effects_of_features": FactWords(
        claim="That the coefficients of features are effects as well",
        because="they are associations: only who is treated was allowed for.",
    ),
}

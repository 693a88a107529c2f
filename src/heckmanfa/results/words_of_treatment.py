"""Words of the facts that only treatment models have."""

from __future__ import annotations

from heckmanfa.results.facts import FactWords

TREATMENT: dict[str, FactWords] = {
    "instruments": FactWords(
        line="instruments",
        meaning={
            "none": "Every feature that drives treatment is in the outcome, too: only normality "
            "tells the effect of treatment from the errors.",
            "untested": "Whether {names} {drives} treatment was not tested: {note}.",
            "strong": "{names} {drives} treatment. That {does} not move the outcome in any other "
            "way cannot be tested.",
            "weak": "{names} {drives} treatment, but weakly: a chi2 above {strong} would be "
            "strong. The effect leans on normality.",
            "": "There is no evidence that {names} {drives} treatment: the effect rests on "
            "normality.",
        },
        sentence="{meaning}",
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
        line="probability of treatment",
        meaning={
            "ok": "Treated and untreated have probabilities of treatment in common.",
            "": "Treated and untreated have few probabilities of treatment in common: what the "
            "one group would have in the other's place rests on the equations.",
        },
        sentence={"caution": "{meaning}"},
    ),
}

"""What a chance says: one rule for every feature and for the correction.

A chance is a share of the weight of all assignments: of those in which a feature predicts, or of
those that hold the correction for selection. All outputs read the weights and the cuts from here;
docs/searching.md states them.
"""

from __future__ import annotations

from typing import Final, Literal

CHANCES_BY: Final[Literal["aic", "bic", "ebic"]] = "bic"
"""the weights that chances are shares of, whatever weighs the estimates"""

# By AIC, what has no effect has a share of 27% at least.
_CUTS: Final = {"aic": (0.3, 0.9), "bic": (0.1, 0.9), "ebic": (0.1, 0.9)}

NO_SIGN_BELOW: Final = _CUTS[CHANCES_BY][0]
SURE_FROM: Final = _CUTS[CHANCES_BY][1]

BY: Final = CHANCES_BY.upper()
"""the weights in words"""

LOW, HIGH = f"{NO_SIGN_BELOW:.0%}", f"{SURE_FROM:.0%}"
"""the cuts in words"""

# The study's figures (docs/averaging_study.md: BIC weights, half of those of intervals to all
# features). README, docs/faq.md, docs/searching.md and the docstring of HeckmanAverage repeat the
# first sentence, and a test holds them to it.
COVERAGE: Final = {
    "two-step": (
        "In simulations with normal errors and 500 rows or more, nominal 95% intervals cover 96% "
        "of the effects that are not zero, also where what drives selection moves the outcome too, "
        "and 88% in the worst design; with other errors they cover 95%."
    ),
    "likelihood": (
        "In simulations with normal errors and 500 rows or more, nominal 95% intervals of maximum "
        "likelihood cover 92% of the effects that are not zero, and 86% in the worst design; with "
        "other errors they may cover hardly any."
    ),
    "binary": (
        "In simulations with 500 rows or more, nominal 95% intervals of a binary outcome cover 89% "
        "of the effects that are not zero, and 69% in the worst design, which excludes nothing."
    ),
}
"""how far intervals of averages are to be believed, by the errors of their form"""

NOT_SIMULATED: Final = (
    "How often nominal 95% intervals of an average of this model cover has not been simulated; the "
    "model of all features has intervals that no choice moves."
)
"""the same of models that the study has not simulated"""

Says = Literal["sure", "unknown", "no sign"]


def says(chance: float) -> Says:
    """Return what a chance says: that it is so, that it cannot be told, or that no sign is seen."""
    if chance >= SURE_FROM:
        return "sure"
    return "no sign" if chance < NO_SIGN_BELOW else "unknown"

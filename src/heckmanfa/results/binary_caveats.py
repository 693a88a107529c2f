"""Caveats of a binary outcome, whose model has no lambda and no two steps."""

from __future__ import annotations

from heckmanfa.fit import Fit
from heckmanfa.results.binary_problems import (
    about_events,
    about_separation,
    has_few_events,
    rho_leans_on_boundary,
)
from heckmanfa.results.document import Caveat
from heckmanfa.results.effects import CONF_LEVEL, rho_of
from heckmanfa.results.estimates import tidy
from heckmanfa.text.wording import effects

ALL_OBSERVED = Caveat(
    "all_observed",
    "caution",
    "No selection was corrected for, and rho is not identified.",
    "That selection was corrected for",
    "no outcome is missing in the fit, and this is a plain probit.",
)
NO_EXCLUSION = Caveat(
    "no_exclusion",
    "problem",
    "No feature is excluded from the prediction equation: only normality of the errors identifies "
    "the model, and a binary outcome says little about their shape.",
    "That the data alone tell selection from prediction",
    "every feature of the selection equation is also in the prediction equation. Only normality of "
    "the errors identifies the model, and a binary outcome says little about their shape.",
)
NOT_CAUSAL = Caveat(
    "not_causal",
    "caution",
    "An effect on a probability is an association, not a causal effect.",
    "That changing a feature would change the probability by its average marginal effect",
    "it is an association, not a causal effect.",
)
SELECTED_SCORES = Caveat(
    "selected_scores",
    "caution",
    "Accuracy, AUC and Brier score are those of rows with an outcome, and say nothing about the "
    "others.",
    "That probabilities are as accurate for rows without an outcome",
    "accuracy, AUC, Brier score and calibration can be computed only where the outcome is known, "
    "and those rows are selected.",
)
CRITERIA = (
    "AIC and BIC are of the joint likelihood of both equations, and count every parameter that is "
    "estimated."
)
_SLOPES = Caveat(
    "slopes",
    "note",
    "Coefficients are those of the index x'b of P(y = 1) = Phi(x'b), not changes of the "
    "probability; margins() has these.",
)


def caveats_of_separation(fit: Fit) -> list[Caveat]:
    """Say that a column decides a binary outcome, so the likelihood has no maximum."""
    found = []
    for finding in [] if fit.binary is None else about_separation(fit):
        words = f"The outcome is decided by {finding.value}. {finding.meaning}"
        claim = "That every coefficient is an estimate"
        why = f"the outcome is decided by {finding.value}, and the likelihood has no maximum."
        found.append(Caveat("outcome_separation", "problem", words, claim, why))
    return found


def caveats_of_classes(fit: Fit) -> list[Caveat]:
    """Return what else limits the estimates of a binary outcome; nothing for other outcomes."""
    if fit.binary is None:
        return []
    found = []
    if has_few_events(fit):
        (finding,) = about_events(fit)
        words = f"Rows of the rarer class are few: {finding.value}. {finding.meaning}"
        claim = "That 95% intervals hold the truth 95% of the time"
        why = f"the rarer class has {finding.short}, where a rule of thumb asks for 10."
        found.append(Caveat("few_events", "caution", words, claim, why))
    return [*found, *_of_boundary(fit), _SLOPES, Caveat("criteria", "note", CRITERIA)]


def _of_boundary(fit: Fit) -> list[Caveat]:
    """Say that the interval of rho leans on the boundary."""
    # Other caveats say of such a rho that it is not estimated at all.
    if fit.probit is None or not fit.converged or fit.doubts:
        return []
    rho = rho_of(fit, tidy(fit, CONF_LEVEL))
    if not rho_leans_on_boundary((rho.low, rho.high)):
        return []
    low, high = effects(rho.low, rho.high)
    words = (
        f"the 95% interval of rho, {low} to {high}, nearly reaches the boundary, where such "
        "intervals are unreliable."
    )
    sentence = f"{words[0].upper()}{words[1:]} See profile_rho()."
    claim = "That the interval of rho is reliable"
    return [Caveat("rho_near_boundary", "caution", sentence, claim, words)]

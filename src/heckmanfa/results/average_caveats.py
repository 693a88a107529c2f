"""Caveats of estimates that are averages over assignments."""

from __future__ import annotations

from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import outcome_of
from heckmanfa.results.document import Caveat
from heckmanfa.text.wording import count, number, percent, true_minus

AGREE = 0.01
"""Chains of the sampler agree if no share of weight differs by more."""

_OFTEN_OUTSIDE = 0.05
# Percent of strong and of weak coefficients that 95% intervals cover: docs/averaging_study.md.
_COVERED = {"mean": (95, 85), "bic": (93, 66), "ebic": (93, 57)}
_NO_CHOICE = Caveat(
    "no_choice",
    "note",
    "No feature is chosen: each assignment leaves out other features. A chance below 10% is no "
    "sign that a feature predicts; it does not show that it has no effect.",
)


def weights_name(kind: str) -> str:
    """Name a kind of weights."""
    return "the mean of AIC and BIC" if kind == "mean" else kind.upper()


def describe_average(fit: Fit) -> str:
    """Say over which assignments the estimates are averaged."""
    found = outcome_of(fit).average
    how = f"weighted by {weights_name(found.weights)}"
    if found.exhaustive:
        if found.n_assignments == 1:
            return "those of the only assignment with weight"
        window = ""
        if found.rho_range is not None:
            low, high = found.rho_range
            window = true_minus(f" with rho in [{low:g}, {high:g}]")
        return f"averaged over all {count(found.n_assignments)} assignments{window}, {how}"
    return f"averaged over {count(found.n_assignments)} assignments that a sampler drew, {how}"


def caveats_of_average(fit: Fit) -> list[Caveat]:
    """Return the caveats of an average; none for a fit of one assignment."""
    if fit.average is None:
        return []
    found = fit.average.average
    words = f"Estimates are {describe_average(fit)}."
    covered, exactly = "about 90 to 95%", "exactly "
    if found.weights in _COVERED:
        strong, weak = _COVERED[found.weights]
        covered, exactly = f"{strong}% of strong and {weak}% of weak coefficients", ""
    caveats = [
        Caveat(
            "average",
            "caution",
            f"{words} Intervals are quantiles of the mixture of their distributions, and allow for "
            f"the choice of features: in simulations, 95% intervals cover {covered}. There is no "
            "p-value of an average.",
            f"That an interval covers with {exactly}its level",
            f"it allows for the choice of features, and 95% intervals cover {covered} in "
            "simulations.",
        ),
        _NO_CHOICE,
    ]
    if found.disagreement is not None:
        differ = number(found.disagreement, 2)
        if found.disagreement <= AGREE:
            words = f"The chains of the sampler agree: no share differs by more than {differ}."
            caveats.append(Caveat("sampled", "note", words))
        else:
            words = f"The chains of the sampler do not agree: a share differs by {differ}."
            claim, why = "That the shares of weight are exact", f"{words[0].lower()}{words[1:]}"
            caveats.append(Caveat("sampled", "caution", words, claim, why))
    if found.outside >= _OFTEN_OUTSIDE:
        words = f"Assignments with rho outside (-1, 1) carry {percent(found.outside, 0)}"
        caveats.append(
            Caveat(
                "outside_weight",
                "caution",
                f"{words} of the weight: the model does not fit them, or hardly identifies rho.",
                "That rho is a correlation in every assignment",
                f"{words[0].lower()}{words[1:]} of the weight.",
            )
        )
    if found.rho_range is not None:
        low, high = found.rho_range
        caveats.append(
            Caveat(
                "window",
                "caution",
                f"rho was conditioned on: only assignments whose rho is in [{low:g}, "
                f"{high:g}] have weight. It tests nothing, and has no interval.",
                "That rho says whether there is selection bias",
                f"only assignments with rho in [{low:g}, {high:g}] have weight, and it tests "
                "nothing.",
            )
        )
    return caveats

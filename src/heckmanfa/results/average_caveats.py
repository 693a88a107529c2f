"""Caveats of estimates that are averages over assignments."""

from __future__ import annotations

from collections.abc import Sequence

from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import OFTEN_OUTSIDE, outcome_of
from heckmanfa.results.document import Caveat
from heckmanfa.search.averaging.weights import ALL_FEATURES_SHARE
from heckmanfa.text.chances import BY, COVERAGE, HIGH, LOW
from heckmanfa.text.wording import count, number, percent, true_minus

AGREE = 0.01
"""Chains of the sampler agree if no share of weight differs by more."""

_LESS = (
    "With less than half of their weight for all features, 95% intervals cover fewer effects than "
    "they should where features are hard to tell apart."
)
# Caveats that a summary of an average has besides its four sentences.
_SUMMARIZED = frozenset(
    {
        *("window", "pseudo_weights", "sampled", "dropped_features"),
        *("few_clusters", "second_maximum", "hausman", "equal_variance"),
    }
)
_NO_CHOICE = Caveat(
    "no_choice",
    "note",
    "No feature is chosen: each assignment leaves out other features. A chance below "
    f"{LOW} is no sign that a feature predicts; it does not show that it has no effect.",
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


def _coverage(fit: Fit) -> str:
    """Say how far intervals are to be believed."""
    outcome = outcome_of(fit)
    if outcome.average.all_features_share < ALL_FEATURES_SHARE:
        return _LESS
    return COVERAGE[outcome.form.errors]


def caveats_of_average(fit: Fit) -> list[Caveat]:
    """Return the caveats of an average; none for a fit of one assignment."""
    if fit.average is None:
        return []
    found = fit.average.average
    words = f"Estimates are {describe_average(fit)}."
    covered = _coverage(fit)
    caveats = [
        Caveat(
            "average",
            "caution",
            f"{words} Intervals are quantiles of the mixture of their distributions, and allow for "
            f"the choice of features. {covered} There is no p-value of an average.",
            "That an interval covers with exactly its level",
            f"it allows for the choice of features. {covered}",
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
    if found.outside >= OFTEN_OUTSIDE:
        where = "outside (-1, 1)" if fit.average.form.errors == "two-step" else "near its bounds"
        words = f"Assignments with rho {where} carry {percent(found.outside, 0)}"
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


def summary_notes(fit: Fit, caveats: Sequence[Caveat]) -> list[str]:
    """Return what a summary of an average says below its table: what is grave, and four sentences.

    ``caveats`` are those of the fit.
    """
    grave = [item for item in caveats if item.severity == "problem" or item.key in _SUMMARIZED]
    correction = "rho" if fit.is_binary else "imr"
    return [
        *(item.sentence for item in grave if item.severity != "note"),
        f"Estimates are {describe_average(fit)}; a chance is the share of the {BY} weight in which "
        f"a feature predicts, on its own or as it drives selection, or which holds {correction}.",
        f"What has a chance of {HIGH} or more has the interval over the assignments that hold it; "
        "any other interval reaches zero.",
        _coverage(fit),
        "All features: the model in which everything predicts. tidy() also has the selection "
        "equation, inclusion_ the chances by other weights, and diagnostics() what to doubt.",
    ]

"""Why each diagnostic matters, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple


class Advice(NamedTuple):
    """A diagnostic in plain words."""

    why: str
    """why it matters"""
    ok: str
    """what to do if it is fine; empty for nothing"""
    otherwise: str
    """what to do if it is not"""


_NO_ADVICE = Advice("", "", "")

ADVICE = {
    "selection": Advice(
        "Without a missing outcome there is nothing to correct for.",
        "Read the estimates as least squares.",
        "Check that unobserved outcomes are empty cells.",
    ),
    "exclusions": Advice(
        "A feature that drives selection and does not predict lets the data, and not only the "
        "normality of the errors, tell selection from prediction.",
        "Say in words why these features should not predict: no test can.",
        "Look for a feature that drives selection strongly and has no reason to predict, and name "
        "it with --select-only; until then lean on the picture of coefficients over rho.",
    ),
    "imr_r2": Advice(
        "Where lambda is nearly a linear function of the prediction features, its coefficient and "
        "theirs can hardly be told apart.",
        "",
        "Add a feature that drives selection alone, or predict with fewer features.",
    ),
    "condition": Advice(
        "Nearly collinear columns make coefficients depend on small changes of the data.",
        "",
        "Leave out features that say the same, or read their coefficients together; centring a "
        "feature before squaring it often helps.",
    ),
    "rho": Advice(
        "rho is the correlation of what drives selection with what drives the outcome beyond the "
        "features; outside (-1, 1) it cannot be one.",
        "",
        "Where it is outside, use maximum likelihood (--method ml), which keeps rho inside; look "
        "for stronger exclusions, and do not report this rho as a correlation.",
    ),
    "convergence": Advice(
        "Estimates of an iteration that stopped on its way are not those of the method.",
        "",
        "Report none of these estimates.",
    ),
    "standard_errors": Advice(
        "Without them nothing can be said of how precise the estimates are.",
        "",
        "Report none of the tests and intervals.",
    ),
    "leakage": Advice(
        "A column that is made from the outcome predicts it perfectly, and says nothing about "
        "those whose outcome is missing.",
        "",
        "Leave such a column out with --exclude.",
    ),
    "maxima": Advice(
        "Estimates at two maxima of the likelihood may say different things, and both fit the "
        "data better than what is around them.",
        "",
        "Fit the other with --start, and compare.",
    ),
    "rho_test": Advice(
        "It asks whether selection on what was not observed is found at all.",
        "Report it with the exclusions it rests on; not to reject is no proof of rho = 0.",
        "Do not report a test of rho; fit without a window to have one.",
    ),
    "rho_lr_test": Advice(
        "The same question, answered by how much the likelihood falls without the correlation.",
        "It rests on errors that are normal with one variance: where they are not, it finds "
        "selection that is not there. The two-step test with --robust does so far less.",
        "Do not report a test of rho; fit without a window to have one.",
    ),
    "search_ignored": Advice(
        "The same rows chose the features and estimate their coefficients: those that were chosen "
        "look more certain than they are.",
        "",
        "Use --honest, or the bootstrap in Python, which repeats the search.",
    ),
    "imr_range": Advice(
        "The effect of lambda was learned within this range and nowhere else.",
        "",
        "Do not predict beyond it.",
    ),
    "outside_range": Advice(
        "For these rows a prediction given selection uses lambda beyond where it was seen.",
        "",
        "Rely on marginal predictions there, or say that these are extrapolated.",
    ),
    "clusters": Advice(
        "Standard errors of clusters learn from how clusters differ, however many rows each has.",
        "",
        "Say how many clusters there are, and claim less; where rows can be grouped more finely "
        "without breaking up what is dependent, name that column with --cluster.",
    ),
    "uncertainty": Advice(
        "A sign that stays the same for every plausible rho does not hang on the exclusions.",
        "Report the bounds beside the estimates.",
        "Do not draw a conclusion from the sign of these coefficients alone.",
    ),
    "what_if": Advice(
        "A feature that is wanted in the prediction equation is a doubtful exclusion.",
        "That none is wanted does not make the exclusions valid.",
        "Let this feature predict (--always), or argue why it should not, and compare both.",
    ),
    "honest_fit": Advice(
        "Estimates from rows that had no part in the choice are not those of the fit to all rows, "
        "which the other lines are about.",
        "Quote the honest estimates and their standard errors.",
        "Quote the honest estimates and their standard errors.",
    ),
    "honest_splits": Advice(
        "Features that only some halves of the rows choose may be chosen by luck.",
        "",
        "Report how often each feature was chosen, and claim less for the rarer ones.",
    ),
    "bootstrap": Advice(
        "Fits that fail on resampled rows show how near the data are to not identifying the model.",
        "",
        "Simplify the model, or look for stronger exclusions.",
    ),
    "bootstrap_search": Advice(
        "A choice that changes with the sample is not a finding.",
        "",
        "Report how often each feature is chosen.",
    ),
    "exclusion_test": Advice(
        "Exclusions that contradict one another cannot all be valid.",
        "That they agree proves none of them.",
        "Put back those you can defend least, and compare.",
    ),
}
"""By the key of the finding."""
# A window of rho takes the place of the test of rho = 0.
ADVICE["window"] = ADVICE["rho_test"]


def advice_for(key: str) -> Advice:
    """Return the advice on a finding; empty if there is none."""
    return ADVICE.get(key, _NO_ADVICE)

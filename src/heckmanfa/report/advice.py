"""Why each diagnostic matters, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """A diagnostic in plain words."""

    why: str = ""
    """why it matters"""
    otherwise: str = ""
    """what to do if it is not fine"""
    ok: str = ""
    """what to do if it is fine; empty for nothing"""


ADVICE = {
    "selection": Advice(
        "Without a missing outcome there is nothing to correct for.",
        "Check that unobserved outcomes are empty cells.",
        "Read the estimates as least squares.",
    ),
    "exclusions": Advice(
        "A feature that drives selection and does not predict lets the data, rather than only the "
        "normality of the errors, separate selection from prediction.",
        "Look for a feature that drives selection strongly and has no reason to predict, and name "
        "it with --select-only. Until then, rely on the picture of coefficients over rho.",
        "Say in words why these features should not predict: no test can.",
    ),
    "less_likely": Advice(
        "The less the features that an assignment leaves out drive selection, the more it rests on "
        "the normality of the errors.",
        "Look for a feature that drives selection strongly and has no reason to predict, and name "
        "it with --select-only.",
        "If you can argue that one of them has no effect of its own, name it with --select-only.",
    ),
    "imr_r2": Advice(
        "If lambda is nearly a linear function of the prediction features, its coefficient and "
        "theirs can hardly be separated.",
        "Add a feature that drives selection alone, or predict with fewer features.",
    ),
    "condition": Advice(
        "Nearly collinear columns make coefficients sensitive to small changes in the data.",
        "Leave out redundant features, or interpret their coefficients jointly; centring a "
        "feature before squaring it often helps.",
    ),
    "rho": Advice(
        "rho is the correlation of the errors of the two equations; outside (-1, 1) it is not a "
        "correlation.",
        "If it is outside, use maximum likelihood (--method ml), which keeps rho inside. Look for "
        "stronger exclusions, and do not report this rho as a correlation.",
    ),
    "convergence": Advice(
        "The estimates of an iteration that stopped early are not those of the method.",
        "Report none of these estimates.",
    ),
    "standard_errors": Advice(
        "Without them nothing is known about the precision of the estimates.",
        "Report none of the tests and intervals.",
    ),
    "leakage": Advice(
        "A column made from the outcome predicts it perfectly, and says nothing about rows whose "
        "outcome is missing.",
        "Leave such a column out with --exclude.",
    ),
    "maxima": Advice(
        "Estimates at two maxima of the likelihood may lead to different conclusions, and both "
        "fit better than anything near them.",
        "Fit the other with --start, and compare.",
    ),
    "rho_test": Advice(
        "It tests whether there is selection on unobservables.",
        "Do not report a test of rho; fit without a window to get one.",
        "Report it with the exclusions it relies on. Failing to reject rho = 0 does not prove it.",
    ),
    "rho_lr_test": Advice(
        "It answers the same question by how much the likelihood falls without the correlation.",
        "Do not report a test of rho; fit without a window to get one.",
        "It relies on normal errors with one variance: otherwise it finds selection that is not "
        "there. The two-step test with --robust does so far less often.",
    ),
    "hausman": Advice(
        "Two-step needs less than maximum likelihood: if they differ, what only maximum "
        "likelihood needs does not hold.",
        "Report the two-step estimates.",
        "That they agree does not prove that the errors are normal, least of all if rho is near "
        "zero, where both always agree.",
    ),
    "equal_variance": Advice(
        "Maximum likelihood takes a variance that changes with the features for selection.",
        "Report the two-step estimates with --robust.",
    ),
    "search_ignored": Advice(
        "The same rows choose the features and estimate their coefficients, so the chosen "
        "features look more certain than they are.",
        "Use --honest, or the bootstrap in Python, which repeats the search.",
    ),
    "assignment_weight": Advice(
        "A choice is only as sure as its weight: others that fit nearly as well may hold other "
        "features.",
        "Report how much weight each feature has, not only the best set.",
    ),
    "left_out": Advice(
        "Many weak predictors may matter together though a search leaves out each of them.",
        "Compare with the model of all features before you say that the others do not matter.",
        "Do not quote it as a test: the same rows chose the features.",
    ),
    "stand_ins": Advice(
        "If lambda takes up the effect of a feature left out, what looks like selection may be "
        "that effect, or the other way round.",
        "Decide by what you know about the feature, with --always or --select-only, and report "
        "both.",
    ),
    "outside_weight": Advice(
        "A rho outside (-1, 1) is not a correlation: such an assignment does not fit the model.",
        "Look for stronger exclusions, or use a window of rho (--rho-range).",
    ),
    "weight_kinds": Advice(
        "A small penalty (AIC) favours many features, a large one (BIC, EBIC) few. Where they "
        "differ, the data do not decide.",
        "Say which criterion you used, and claim less for these features.",
    ),
    "imr_optional": Advice(
        "Without lambda there is no correction for selection: this is how strongly the data ask "
        "for one.",
        "Report least squares beside the corrected estimates.",
        "Report it with the exclusions it relies on.",
    ),
    "imr_range": Advice(
        "The effect of lambda was learned within this range and nowhere else.",
        "Do not predict beyond it.",
    ),
    "outside_range": Advice(
        "For these rows, a prediction given selection uses lambda beyond the range of the fit.",
        "Rely on marginal predictions for them, or say that the predictions are extrapolated.",
    ),
    "clusters": Advice(
        "Clustered standard errors learn from the differences between clusters, however many rows "
        "each has.",
        "Report the number of clusters, and claim less. If a finer grouping keeps dependent rows "
        "together, name its column with --cluster.",
    ),
    "uncertainty": Advice(
        "A sign that stays the same for every plausible rho does not depend on the exclusions.",
        "Draw no conclusion from the sign of these coefficients alone.",
        "Report the bounds beside the estimates.",
    ),
    "what_if": Advice(
        "A feature that improves the prediction equation is a doubtful exclusion.",
        "Let this feature predict (--always), or argue why it should not, and compare both.",
        "That no feature improves it does not make the exclusions valid.",
    ),
    "honest_fit": Advice(
        "Estimates from rows that had no part in the choice differ from the fit to all rows, "
        "which the other lines describe.",
        "Quote the honest estimates and their standard errors.",
        "Quote the honest estimates and their standard errors.",
    ),
    "honest_splits": Advice(
        "Features that only some halves of the rows choose may be chosen by chance.",
        "Report how often each feature was chosen, and claim less for the rarer ones.",
    ),
    "bootstrap": Advice(
        "Fits that fail on resampled rows show how close the data are to not identifying the "
        "model.",
        "Simplify the model, or look for stronger exclusions.",
    ),
    "bootstrap_search": Advice(
        "A choice that changes with the sample is not a finding.",
        "Report how often each feature is chosen.",
    ),
    "exclusion_test": Advice(
        "Exclusions that contradict one another cannot all be valid.",
        "Let those that you can defend least predict, and compare.",
        "That they agree proves none of them valid.",
    ),
}
"""By the key of the finding."""
# A window of rho takes the place of the test of rho = 0.
ADVICE["window"] = ADVICE["rho_test"]


def advice_for(key: str) -> Advice:
    """Return the advice on a finding; empty if there is none."""
    return ADVICE.get(key, Advice())

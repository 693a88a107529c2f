"""The title and the facts at the top of a summary: rows, covariance, and the fit."""

from __future__ import annotations

from heckmanfa.fit import Fit
from heckmanfa.model.covariance import is_classical
from heckmanfa.results.average_tables import average_facts
from heckmanfa.results.effect_words import EffectWords, class_label
from heckmanfa.results.fit_facts import ratio_text
from heckmanfa.results.fit_tests import rho_lr, rho_wald
from heckmanfa.results.naming import outcome_of
from heckmanfa.results.probability_effects import class_counts
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import number, p_equals

_ROW_WORDS = {
    "left_out_outcome_missing": "selected, but the outcome is missing",
    "left_out_regressor_missing": "a regressor is missing",
    "left_out_zero_weight": "weight zero",
    "left_out_separation": "selection determined exactly",
}
# A fact has so much room for a name or a class of the user's.
_ROOM = 22


def rows_left_out(fit: Fit) -> dict[str, int]:
    """Count the rows left out, by why."""
    counts, said = fit.row_counts, dict(_ROW_WORDS)
    said["left_out_separation"] = f"{fit.family.words.separates} determined exactly"
    return {words: counts[key] for key, words in said.items() if counts.get(key)}


def summary_title(fit: Fit) -> str:
    """Name the model of a fit."""
    words = fit.family.words
    if fit.probit is None:
        return f"{words.plain_short[0].upper()}{words.plain_short[1:]} (no outcome is missing)"
    if len(fit.family.methods) == 1:
        return words.title
    how = "maximum likelihood" if fit.spec.method == "ml" else "two-step"
    return f"{words.title}, {how}{fit.way.words.title}"


def summary_facts(fit: Fit, n_left_out: int) -> list[tuple[str, str]]:
    """Return the facts of a summary, each with its label."""
    counts = fit.row_counts
    facts = [
        ("Rows given", str(counts["total"])),
        ("Selected", str(counts["selected"])),
        ("Not selected", str(counts["unselected"])),
        ("Left out", str(n_left_out)),
        *_class_facts(fit),
        *_log_facts(fit),
        ("Covariance", fit.spec.cov_type or "classical"),
        *([("Clusters", f"{fit.n_clusters:,}")] if fit.n_clusters is not None else []),
        *_criteria(fit),
    ]
    if fit.log_likelihood is not None:
        facts.append((likelihood_name(fit), f"{fit.log_likelihood:.4f}"))
    facts += _rho_facts(fit)
    if fit.weighted:
        facts.append(("Weights", fit.spec.weight_kind))
    if fit.n_obs != counts["selected"] + counts["unselected"]:
        facts.append(("Sum of weights", f"{fit.n_obs}"))
    return facts


def _class_facts(fit: Fit) -> list[tuple[str, str]]:
    """Say which class is modelled, and how many selected rows have each."""
    n_positive, n_negative = class_counts(fit)
    if n_positive is None or fit.classes is None:
        return []
    negative, positive = (shown(class_label(label), _ROOM) for label in fit.classes)
    outcome = shown(outcome_of(fit), _ROOM)
    target = str(EffectWords(outcome, fit.classes).target)
    if len(target) > _ROOM:
        target = f"P(y = {positive})"
    return [
        ("Modelled", target),
        (f"Selected, {positive}", f"{n_positive:,.10g}"),
        (f"Selected, {negative}", f"{n_negative:,.10g}"),
    ]


def _log_facts(fit: Fit) -> list[tuple[str, str]]:
    """Say on which scale an outcome is fitted, and how it compares with its means on its own."""
    if fit.spec.outcome_transform is None:
        return []
    found = [("Outcome", shown(outcome_of(fit), _ROOM))]
    if fit.transform_ratio is not None:
        found.append(("Outcome / mean", ratio_text(fit.transform_ratio)))
    return found


def _criteria(fit: Fit) -> list[tuple[str, str]]:
    aic, bic = f"{fit.aic:.2f}", f"{fit.bic:.2f}"
    judged = [("AIC", aic), ("BIC", bic)] if not fit.way.is_average else average_facts(fit)
    return [("Adjusted R2", f"{fit.adjusted_r2:.4f}"), *judged] if fit.family.has_imr else judged


def _rho_facts(fit: Fit) -> list[tuple[str, str]]:
    """Give the test of rho = 0 that a Heckman probit is read by, as Stata does.

    With a robust or cluster covariance there is no likelihood ratio, and Wald's test is given.
    """
    tested = fit.probit is not None and not fit.rho_is_conditioned and fit.held_rho is None
    if not fit.family.is_bounded or not tested or fit.way.is_average:
        return []
    ratio = rho_lr(fit)
    name, test = ("LR", ratio) if ratio is not None else ("Wald", rho_wald(fit))
    if test.note:
        return [(f"{name} test of rho = 0", "not known")]
    letter = "chi2" if test.df_denominator is None else "F"
    return [
        (f"{name} {letter}, rho = 0", number(test.statistic)),
        (f"{name} test of rho = 0", p_equals(test.p_value)),
    ]


def likelihood_name(fit: Fit) -> str:
    """Name what maximum likelihood maximised, as Stata does.

    A robust or cluster covariance, which sampling weights need, does not trust the model: what was
    maximised is then not a log-likelihood of the data.
    """
    return "Log-likelihood" if is_classical(fit.spec.cov_type) else "Log pseudolikelihood"

"""Caveats: what a reader must know before trusting an estimate. Each is decided here, once.

Summary, margins and the other reports print the sentence of a `Caveat`; the command line, its JSON
and the HTML report print the claim that it rules out.
"""

from __future__ import annotations

from dataclasses import dataclass

from heckmanfa.data.missing_features import LostRows
from heckmanfa.fit import Fit
from heckmanfa.model.likelihood import higher_maximum, rho_text
from heckmanfa.results import binary_caveats
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.assignment_words import caveats_of_weights, findings_of_weights
from heckmanfa.results.average_caveats import caveats_of_average
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.document import Caveat, Finding, Severity, Verdict
from heckmanfa.results.exclusion_strength import PROFILE_INSTEAD
from heckmanfa.results.exclusions import Exclusions, find_exclusions
from heckmanfa.results.held_rho_words import caveat_of_held_rho
from heckmanfa.results.log_words import caveats_of_log
from heckmanfa.results.problems import clusters_note, problems_of, r2_of
from heckmanfa.results.reference import LEVEL, Wald, n_parameters, reference_of
from heckmanfa.results.search_caveats import caveats_of_search
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import count, number, p_equals, percent, plural

_LARGE_SHARE = 0.05
_VERDICTS: dict[Severity, Verdict] = {"note": "ok", "caution": "caution", "problem": "problem"}
_ALL_OBSERVED = Caveat(
    "all_observed",
    "caution",
    "No selection was corrected for, and rho is not identified.",
    "That selection was corrected for",
    "no outcome is missing in the fit, and this is least squares.",
)
_NO_EXCLUSION = Caveat(
    "no_exclusion",
    "problem",
    "No feature is excluded from the prediction equation: only normality of the errors identifies "
    "the model.",
    "That the data alone tell selection from prediction",
    "every feature of the selection equation is also in the prediction equation, and only "
    "normality of the errors identifies the model.",
)
_TWO_STEP_ERRORS = Caveat(
    "two_step_errors",
    "note",
    "Standard errors account for the estimated inverse Mills ratio; the two-step rho and sigma "
    "have none.",
)
_RHO_SCALE = Caveat(
    "rho_scale", "note", "The interval and test of rho are on the scale of atanh rho."
)
_LEFT_OUT = "degrees of freedom of adjusted R2 leave lambda out, as in the paper of Mai and Wu"
_NORMALITY = Caveat(
    "normal_law",
    "caution",
    "The correction for selection assumes normal errors.",
    "That the correction holds whatever the distribution of the errors",
    "it assumes that they are normal.",
)
_NOT_CAUSAL = Caveat(
    "not_causal",
    "caution",
    "A coefficient is an association, not a causal effect.",
    "That changing a feature would change the outcome by its coefficient",
    "it is an association, not a causal effect.",
)


@dataclass(frozen=True)
class TableFacts:
    """What is known about a table beyond the model fitted to it."""

    n_rows: int
    n_missing: int
    """rows left out because they lack a feature"""
    filled: bool
    """whether missing cells were filled in"""
    exclusions: Exclusions
    """the features kept out of the prediction equation, the dummies of a column tested jointly"""
    lost: LostRows | None = None
    """the rows that lack a feature, counted by column"""


def caveats_of_fit(
    fit: Fit,
    table: TableFacts | None = None,
    *,
    weights: AssignmentWeights | str | None = None,
) -> list[Caveat]:
    """Return the caveats of a fitted model, the most serious first.

    If the table of the fit is given, they name its columns. Without the ``weights`` of all
    assignments, they leave out those that need them.
    """
    all_observed = binary_caveats.ALL_OBSERVED if fit.is_binary else _ALL_OBSERVED
    found = [*_of_problems(fit), *binary_caveats.caveats_of_separation(fit)]
    found += [all_observed] if fit.probit is None else []
    found += [*caveats_of_search(fit), *caveats_of_average(fit)]
    found += caveats_of_weights(fit, weights)
    if fit.dropped:
        names = ", ".join(shown(name) for name in fit.spec.feature_names(fit.dropped))
        words = f"Columns left out as collinear, constant or separating: {names}."
        found.append(Caveat("dropped_features", "caution", words))
    if fit.average is not None:
        found += [*_of_kept_out(fit), *_of_criteria(fit)]
    elif fit.held_rho is not None:
        kept_out = _of_exclusions(fit, table)
        found.append(caveat_of_held_rho(fit.held_rho, binary=fit.is_binary))
        found += _of_criteria(fit)
        # Without an exclusion, rho identifies the model.
        found += [kept_out] if kept_out.key == "kept_out" else []
    elif fit.probit is not None:
        found.append(_of_exclusions(fit, table))
        if fit.spec.method == "two-step":
            found.append(_TWO_STEP_ERRORS)
        elif not fit.rho_is_conditioned:
            found.append(_RHO_SCALE)
        found += _of_criteria(fit)
    if fit.search is not None or fit.average is not None or table is not None:
        found += _of_other_sets(fit)
    found += [*caveats_of_log(fit), *binary_caveats.caveats_of_classes(fit)]
    notes = reference_of(fit).notes(joint=True)
    return [*found, *(Caveat("reference_distribution", "note", note) for note in notes)]


def _of_other_sets(fit: Fit) -> list[Caveat]:
    """Say what has classical standard errors beside a model that has others."""
    if fit.probit is None or not fit.spec.errors_differ:
        return []
    words = "Intervals and tests of other sets of features are by classical standard errors."
    if fit.average is not None:
        words = "Intervals of averaged least squares are by classical standard errors."
    return [Caveat("classical_beside", "note", words)]


def _of_criteria(fit: Fit) -> list[Caveat]:
    """Say what the criteria of a linear outcome count."""
    if fit.is_binary:
        return []
    if fit.log_likelihood is None and fit.held_rho is not None:
        words = (
            "AIC and BIC do not count lambda: with rho held, its coefficient follows from sigma."
        )
        return [Caveat("held_criteria", "note", words)]
    if fit.log_likelihood is None:
        words = f"The {_LEFT_OUT}; those of AIC and BIC count it."
    else:
        words = (
            f"Adjusted R2 is of the two-step estimates. The {_LEFT_OUT}. {binary_caveats.CRITERIA}"
        )
    return [Caveat("adjusted_r2", "note", words)]


def caveats_of_table(
    fit: Fit,
    diagnostics: Diagnostics,
    table: TableFacts,
    weights: AssignmentWeights | str | None = None,
) -> list[Caveat]:
    """Return every caveat about the answer to a question, the most serious first.

    The diagnostics are those of the model for the rows of the table.
    """
    of_model = caveats_of_fit(fit, table, weights=weights)
    of_rows = _of_rows(diagnostics, table)
    not_causal = binary_caveats.NOT_CAUSAL if fit.is_binary else _NOT_CAUSAL
    if fit.probit is None:
        return [*of_model, *of_rows, not_causal]
    of_tests = [*_of_strength(diagnostics), *_of_rho_test(fit, diagnostics)]
    of_rows += [binary_caveats.SELECTED_SCORES] if fit.is_binary else []
    return [*of_model, *of_tests, *of_rows, _NORMALITY, not_causal]


def caveat_sentences(fit: Fit, *keys: str) -> list[str]:
    """Return the sentences of the caveats with these keys that a fitted model has."""
    return [caveat.sentence for caveat in caveats_of_fit(fit) if caveat.key in keys]


def search_findings(fit: Fit, weights: AssignmentWeights | str | None = None) -> list[Finding]:
    """Return the caveats about the search as lines of the diagnostics."""
    errors = "rho" if fit.is_binary else "rho, sigma"
    caveats = {caveat.key: caveat for caveat in caveats_of_fit(fit)}
    found = [
        Finding(
            key,
            name,
            value,
            _VERDICTS[caveats[key].severity],
            caveats[key].sentence,
            short="rho = 0 is not tested" if key == "window" else "",
        )
        for key, name, value in (
            ("window", "test of rho = 0", "none"),
            ("search_ignored", "standard errors after the search", "features taken as known"),
            ("honest_fit", "honest estimates", f"coefficients, {errors} and their tests"),
            ("average", "average over assignments", "intervals of mixtures, no p-values"),
            ("sampled", "sampler", "chains compared"),
            ("outside_weight", "rho outside (-1, 1)", _outside(fit)),
        )
        if key in caveats
    ]
    return [*found, *findings_of_weights(fit, weights)]


def _outside(fit: Fit) -> str:
    """Return the weight of assignments whose rho is outside (-1, 1)."""
    return "" if fit.average is None else f"{percent(fit.average.average.outside, 0)} of the weight"


def _of_problems(fit: Fit) -> list[Caveat]:
    """Add to each problem of a fit the claim that it rules out."""
    return [_of_problem(problem, fit) for problem in problems_of(fit)]


def _of_problem(problem: Finding, fit: Fit) -> Caveat:
    key, meaning, claim, why = problem.key, problem.meaning, "", ""
    if key == "convergence":
        key, words = "not_converged", f"THE ITERATION DID NOT CONVERGE: {problem.value}. {meaning}"
        claim = "That these are the estimates"
        why = "the iteration did not converge, and they are where it stopped."
    elif key == "standard_errors":
        key, words = "errors_missing", f"Some standard errors are missing. {meaning}"
        claim = "That the precision of the estimates is known"
        why = "a variance is negative or not a number."
    elif key == "leakage":
        words = f"The R2 of the outcome is {problem.value}. {meaning}"
        claim = f"That the features predict so well (R2 {r2_of(fit):.6f})"
        why = "one of them is probably made from the outcome, or known only with it."
    elif key == "clusters":
        assert fit.n_clusters is not None
        key, words = "few_clusters", clusters_note(fit.n_clusters, n_parameters(fit))
        claim = "That standard errors and p-values are reliable"
        why = f"they rest on {plural(fit.n_clusters, 'cluster')}."
    elif key == "maxima":
        key, words = "second_maximum", f"The likelihood has two maxima ({problem.value}). {meaning}"
        higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
        if higher is not None:
            claim = "That the likelihood is at its highest"
            why = f"there is a higher maximum, at rho = {rho_text(higher[1])}."
    elif key == "hausman":
        words = f"Two-step against maximum likelihood: {problem.value}. {meaning}"
        claim = "That the estimates of maximum likelihood are right"
        why = "the two-step estimate of beta_H differs from theirs by more than chance."
    elif key == "equal_variance":
        words = f"Test of the outcome's variance: {problem.value}. {meaning}"
        claim = "That the outcome varies by the same amount everywhere"
        why = "its variance changes, which biases maximum likelihood."
    else:
        key = "rho_at_bounds"
        but = "but " if problem.case == "flat" else ""
        words = f"rho is estimated at {problem.value}, {but}{meaning[0].lower()}{meaning[1:]}"
        claim = "That rho is estimated"
        why = (
            f"{rho_text(fit.rho)} is practically one, which usually means that the model does not "
            "fit."
        )
        if problem.case == "flat":
            why = "the likelihood is flat in rho, and the data do not tell it from other values."
        if not abs(fit.rho) < 1:
            claim = "That rho is a correlation"
            why = (
                f"its estimate, {number(fit.rho)}, is outside (-1, 1), so the model does not fit "
                "or the data hardly identify it."
            )
    return Caveat(key, "problem" if problem.verdict == "problem" else "caution", words, claim, why)


def _of_exclusions(fit: Fit, table: TableFacts | None) -> Caveat:
    exclusions = find_exclusions(fit) if table is None else table.exclusions
    if not exclusions.features:
        return binary_caveats.NO_EXCLUSION if fit.is_binary else _NO_EXCLUSION
    names = ", ".join(shown(str(name)) for name in exclusions.features)
    return Caveat(
        "kept_out",
        "caution",
        f"Only in the selection equation (excluded from prediction): {names}. {exclusions.words()}",
    )


def _of_kept_out(fit: Fit) -> list[Caveat]:
    """Name the selection features that no assignment of an average may hold."""
    assert fit.probit is not None
    held = {*fit.equation}
    out = [column for column in fit.probit.features if column not in held]
    names = ", ".join(shown(name) for name in fit.spec.feature_names(out))
    if not out:
        words = "No feature is kept out of all assignments: what each leaves out identifies it"
        return [Caveat("none_kept_out", "note", f"{words}.")]
    return [Caveat("kept_out", "caution", f"Kept out of all assignments: {names}.")]


def _of_strength(diagnostics: Diagnostics) -> list[Caveat]:
    caveats: list[Caveat] = []
    if diagnostics.rho_held:
        # Nothing rests on exclusions.
        return caveats
    if diagnostics.weak_exclusions:
        assert diagnostics.excluded_wald is not None
        words = _strength(diagnostics.excluded_wald, diagnostics.n_excluded)
        claim = "That the exclusions identify the model well"
        advice = f" {PROFILE_INSTEAD}" if diagnostics.rho_lr is not None else ""
        sentence = f"The exclusions are {words}{advice}"
        caveats.append(Caveat("weak_exclusions", "caution", sentence, claim, f"they are {words}"))
    if diagnostics.n_excluded and diagnostics.imr_collinear:
        vif = number(diagnostics.imr_vif, 3)
        words = f"is almost a linear function of the prediction features (VIF {vif})."
        claim, why = "That the coefficients are free of what lambda takes up", f"lambda {words}"
        caveats.append(Caveat("lambda_collinear", "caution", f"Lambda {words}", claim, why))
    return caveats


def _strength(test: Wald, n_excluded: int) -> str:
    """Describe exclusions that are not known to be strong."""
    if test.note:
        return f"not known to be strong: {test.note}."
    size = f"chi2 {number(test.chi2, 3)} for {plural(n_excluded, 'coefficient')}"
    if not test.p_value < LEVEL:
        return (
            f"not shown to drive selection ({size}, {p_equals(test.p_value)}): little identifies "
            "the model."
        )
    return f"weak ({size}, where 10 for each would be strong)."


def _of_rho_test(fit: Fit, diagnostics: Diagnostics) -> list[Caveat]:
    test = diagnostics.rho_lr or diagnostics.rho_wald
    if test is None or not test.p_value >= LEVEL or diagnostics.searched:
        return []
    words = (
        f"rho = {number(fit.rho, 3)} does not differ from zero at 5% ({p_equals(test.p_value)}), "
        "which does not show that it is zero."
    )
    claim = "That there is no selection on what was not observed"
    return [Caveat("rho_not_found", "caution", words, claim, words)]


def _of_rows(diagnostics: Diagnostics, table: TableFacts) -> list[Caveat]:
    caveats = []
    lost, total = table.n_missing, table.n_rows
    if lost > _LARGE_SHARE * total:
        words = f"{count(lost)} of {count(total)} ({percent(lost / total, 0)}) lack a feature."
        claim = "That the rows left out are like the others"
        advice = "" if table.lost is None else f" {table.lost.advice}"
        sentence = f"Rows left out: {words}{advice}".rstrip()
        caveats.append(Caveat("rows_lost", "caution", sentence, claim, words))
    if table.filled:
        words = "standard errors take the average as if it had been observed."
        sentence = f"Missing cells hold the average of their column, and {words}"
        claim = "That cells which were missing hold what was filled in"
        caveats.append(Caveat("filled_in", "caution", sentence, claim, words))
    share = diagnostics.share_outside
    if share is not None and share > _LARGE_SHARE:
        words = f"{percent(share, 0)} of the rows lie beyond what the selected rows cover."
        claim = "That predictions given selection hold for everyone"
        caveats.append(Caveat("extrapolated", "caution", words, claim, words))
    return caveats

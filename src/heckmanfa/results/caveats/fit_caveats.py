"""The caveats of a fitted model, and of the answer that it gives to a question about a table."""

from __future__ import annotations

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.model.maxima import higher_maximum, rho_text
from heckmanfa.results.caveats.caveat import Caveat, Severity, Table
from heckmanfa.results.caveats.search_caveats import of_search
from heckmanfa.results.diagnostics import Diagnostics
from heckmanfa.results.document import Finding, Verdict
from heckmanfa.results.exclusions import kept_out
from heckmanfa.results.problems import clusters_note, problems_of, r2_of
from heckmanfa.results.reference import LEVEL, Wald, n_parameters, reference_of
from heckmanfa.text.numbers import count, number, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import some

_LARGE_SHARE = 0.05


def of_fit(fit: Fit, table: Table | None = None) -> list[Caveat]:
    """Return the caveats that follow from a fitted model, the gravest first.

    Parameters
    ----------
    fit : Fit
    table : Table, optional
        Where the model was fitted to a table, whose columns are then named.

    Returns
    -------
    list of Caveat
    """
    found = [*of_search(fit), *_of_columns(fit)]
    if fit.probit is None:
        return [
            *_of_problems(fit),
            Caveat(
                "all_observed",
                "caution",
                "No selection was corrected for, and rho is not identified.",
                "That selection was corrected for: no outcome is missing in the fit, and this is "
                "least squares.",
            ),
            *found,
            *_of_reference(fit),
        ]
    return [
        *_of_problems(fit),
        *found,
        *_of_exclusions(fit, table),
        *_of_errors(fit),
        *_of_reference(fit),
    ]


def of_table(fit: Fit, diagnostics: Diagnostics, table: Table) -> list[Caveat]:
    """Return every caveat about the answer to a question, the gravest first.

    Parameters
    ----------
    fit : Fit
    diagnostics : Diagnostics
        Those of the model for the rows of the table.
    table : Table

    Returns
    -------
    list of Caveat
        Those of `of_fit`, of the diagnostics and of the table, and those of every such model.
    """
    causal = Caveat(
        "not_causal",
        "caution",
        "A coefficient says what goes together, and not what causes what.",
        "That changing a feature would change the outcome by its coefficient: it says what goes "
        "together, and not what causes what.",
    )
    of_model = of_fit(fit, table)
    if fit.probit is None:
        return [*of_model, *_of_rows(diagnostics, table), causal]
    normal = Caveat(
        "normal_law",
        "caution",
        "The correction for selection rests on errors that are normal.",
        "That the correction holds whatever the distribution of the errors: it rests on their "
        "being normal.",
    )
    return [
        *of_model,
        *_of_strength(diagnostics),
        *_of_rho_test(fit, diagnostics),
        *_of_rows(diagnostics, table),
        normal,
        causal,
    ]


def said(fit: Fit, *keys: str) -> list[str]:
    """Return the sentences of those of some caveats that a fitted model has."""
    return [one.sentence for one in of_fit(fit) if one.key in keys]


_VERDICTS: dict[Severity, Verdict] = {"note": "ok", "caution": "caution", "problem": "problem"}


def as_findings(fit: Fit) -> list[Finding]:
    """Return the caveats about the search as lines of the diagnostics."""
    has = {one.key: one for one in of_fit(fit)}
    return [
        Finding(
            key,
            name,
            value,
            _VERDICTS[has[key].severity],
            has[key].sentence,
        )
        for key, name, value in (
            ("window", "test of rho = 0", "none"),
            ("search_ignored", "standard errors after the search", "features taken as known"),
            ("honest_fit", "honest estimates", "coefficients, rho, sigma and their tests"),
        )
        if key in has
    ]


# The fit. ---------------------------------------------------------------------------------------


def _of_problems(fit: Fit) -> list[Caveat]:
    """Take in what `problems` finds wrong, with what may not be claimed because of it."""
    keys = {
        "convergence": "not_converged",
        "standard_errors": "errors_missing",
        "leakage": "leakage",
        "rho": "rho_at_bounds",
        "maxima": "second_maximum",
        "clusters": "few_clusters",
    }
    claims = {
        "convergence": "That these are the estimates: the iteration did not converge, and they are "
        "where it stopped.",
        "standard_errors": "That anything is known of how precise the estimates are: the variance "
        "of one is negative or not a number.",
        "leakage": f"That the features predict so well (R2 {r2_of(fit):.6f}): one of "
        "them is likely to be made from the outcome, or known only with it.",
        "rho": f"That rho is a correlation: its estimate, {number(fit.rho)}, is outside "
        "(-1, 1), so the model does not fit or the data hardly identify it."
        if not abs(fit.rho) < 1
        else f"That rho is estimated: {rho_text(fit.rho)} is as good as one, which is most "
        "often a sign of a model that does not fit.",
    }
    if fit.n_clusters is not None:
        claims["clusters"] = (
            "That standard errors and p-values are to be relied on: they rest on "
            f"{plural(fit.n_clusters, 'cluster')}."
        )
    higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    if higher is not None:
        claims["maxima"] = (
            "That the likelihood is at its highest: there is a higher maximum, at rho = "
            f"{rho_text(higher[1])}."
        )
    return [
        Caveat(
            keys[one.key],
            "problem" if one.verdict == "problem" else "caution",
            _as_note(one, fit),
            claims.get(one.key, ""),
        )
        for one in problems_of(fit)
    ]


def _as_note(problem: Finding, fit: Fit) -> str:
    """Put a problem of the diagnostics among the notes, in whole sentences."""
    if problem.key == "clusters" and fit.n_clusters is not None:
        return clusters_note(fit.n_clusters, n_parameters(fit))
    if problem.key == "standard_errors":
        return f"Not all standard errors can be given. {problem.meaning}"
    if problem.key == "leakage":
        return f"The R2 of the outcome is {problem.value}. {problem.meaning}"
    if problem.key == "maxima":
        return f"The likelihood has two maxima ({problem.value}). {problem.meaning}"
    if problem.key == "convergence":
        return f"THE ITERATION DID NOT CONVERGE: {problem.value}. {problem.meaning}"
    words = problem.meaning[0].lower() + problem.meaning[1:]
    return f"rho is estimated at {problem.value}, {words}"


def _of_columns(fit: Fit) -> list[Caveat]:
    if not fit.dropped_features:
        return []
    names = ", ".join(shown(name) for name in fit.dropped_features)
    words = f"Columns left out as collinear, constant or separating: {names}."
    return [Caveat("dropped_features", "caution", words)]


def _of_exclusions(fit: Fit, table: Table | None) -> list[Caveat]:
    out = kept_out(fit) if table is None else table.exclusions
    if not out.features:
        return [
            Caveat(
                "no_exclusion",
                "problem",
                "No feature is excluded from the prediction equation: only normality of the "
                "errors identifies the model.",
                "That the data alone tell selection from prediction: every feature of the "
                "selection equation is in the prediction equation, too, and only the normality of "
                "the errors identifies the model.",
            )
        ]
    names = [str(one) for one in out.features]
    sources = names if table is None else table.sources(out.features) or names
    outcome = "the outcome" if table is None else shown(table.outcome)
    several = len(sources) > 1
    searched = " That they were not chosen to predict is no evidence of it."
    return [
        Caveat(
            "kept_out",
            "caution",
            "Only in the selection equation (excluded from prediction): "
            f"{', '.join(map(shown, names))}. {out.words()}",
            f"That the exclusions are valid: the model assumes of {some(sources, 6)} that "
            f"{'they have' if several else 'it has'} no effect of {'their' if several else 'its'} "
            f"own on {outcome}, and no data can show that.{searched if fit.search else ''}",
        )
    ]


def _of_errors(fit: Fit) -> list[Caveat]:
    found = []
    if fit.spec.method == "two-step":
        found.append(
            Caveat(
                "two_step_errors",
                "note",
                "Standard errors account for the estimated inverse Mills ratio; the two-step rho "
                "and sigma have none.",
            )
        )
    elif not fit.rho_is_conditioned:
        found.append(
            Caveat(
                "rho_scale",
                "note",
                "The interval and test of rho are on the scale of atanh rho.",
            )
        )
    return [*found, ADJUSTED_R2]


def _of_reference(fit: Fit) -> list[Caveat]:
    notes = reference_of(fit).notes(joint=True)
    return [Caveat("reference_distribution", "note", one) for one in notes]


ADJUSTED_R2 = Caveat(
    "adjusted_r2",
    "note",
    "The degrees of freedom of adjusted R2 leave lambda out, as in the paper of Mai and Wu; those "
    "of AIC and BIC count it.",
)


# The table. -------------------------------------------------------------------------------------


def _of_strength(found: Diagnostics) -> list[Caveat]:
    caveats = []
    if found.weak_exclusions:
        assert found.excluded_wald is not None
        words = _strength(found.excluded_wald, found.n_excluded)
        caveats.append(
            Caveat(
                "weak_exclusions",
                "caution",
                f"The exclusions are {words}",
                f"That the exclusions identify the model well: they are {words}",
            )
        )
    if found.n_excluded and found.imr_collinear:
        words = (
            "lambda is almost a linear function of the prediction features (VIF "
            f"{number(found.imr_vif, 3)})."
        )
        caveats.append(
            Caveat(
                "lambda_collinear",
                "caution",
                words[0].upper() + words[1:],
                f"That the coefficients are free of what lambda takes up: {words}",
            )
        )
    return caveats


def _strength(test: Wald, n_excluded: int) -> str:
    """Say how strong exclusions are that are not strong."""
    if test.note:
        return f"not known to be strong: {test.note}."
    size = f"chi2 {number(test.chi2, 3)} for {plural(n_excluded, 'coefficient')}"
    if not test.p_value < LEVEL:
        return (
            f"not shown to drive selection ({size}, p = {number(test.p_value, 2)}): little "
            "identifies the model."
        )
    return f"weak ({size}, where 10 for each would be strong)."


def _of_rho_test(fit: Fit, found: Diagnostics) -> list[Caveat]:
    test = found.rho_lr or found.rho_wald
    if test is None or not np.isfinite(test.p_value) or test.p_value < 0.05:
        return []
    words = (
        f"rho = {number(fit.rho, 3)} does not differ from zero at 5% (p = "
        f"{number(test.p_value, 2)}), which does not show that it is zero."
    )
    claim = f"That there is no selection on what was not observed: {words}"
    return [Caveat("rho_not_found", "caution", words, claim)]


def _of_rows(found: Diagnostics, table: Table) -> list[Caveat]:
    caveats = []
    lost, total = table.n_missing, table.n_rows
    if lost > _LARGE_SHARE * total:
        words = f"{count(lost)} of {count(total)} ({100 * lost / total:.0f}%) miss a feature."
        caveats.append(
            Caveat(
                "rows_lost",
                "caution",
                f"Rows left out: {words}",
                f"That the rows left out are like the others: {words}",
            )
        )
    if table.filled:
        words = "standard errors take the average as if it had been observed."
        caveats.append(
            Caveat(
                "filled_in",
                "caution",
                f"Missing cells hold the average of their column, and {words}",
                f"That cells which were missing hold what was filled in: {words}",
            )
        )
    share = found.share_outside
    if share is not None and share > _LARGE_SHARE:
        words = f"{100 * share:.0f}% of the rows lie beyond what the selected rows cover."
        caveats.append(
            Caveat(
                "extrapolated",
                "caution",
                words,
                f"That predictions given selection hold for everyone: {words}",
            )
        )
    return caveats

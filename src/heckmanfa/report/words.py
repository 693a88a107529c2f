"""The answer in two sentences, and what may not be claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.extraction.criteria import NEARLY
from heckmanfa.extraction.search import KEPT
from heckmanfa.foreign import shown
from heckmanfa.problems import about_r2, higher_maximum, is_near_one, rho_text
from heckmanfa.report.comparison import compare_models
from heckmanfa.report.formats import CRITERIA, SHOWN, count, listed, number, plural, some

if TYPE_CHECKING:
    from heckmanfa.analysis import Analysis
    from heckmanfa.diagnostics import Diagnostics

__all__ = ["answer", "how_found", "not_to_claim"]

_LARGE_SHARE = 0.05


def answer(
    analysis: Analysis, diagnostics: Diagnostics | None = None
) -> tuple[str, str, list[str]]:
    """Say what was found, in plain text.

    Parameters
    ----------
    analysis : Analysis
    diagnostics : Diagnostics, optional
        Those of the model for the rows of the fit; computed unless given.

    Returns
    -------
    which : str
        Which features predict, and how that is known.
    how_much : str
        What one of them goes with, beside least squares.
    caveats : list of str
        What may not be claimed, each a sentence that begins with "That".
    """
    return _which(analysis), _how_much(analysis), not_to_claim(analysis, diagnostics)


def _which(analysis: Analysis) -> str:
    outcome = shown(analysis.question.outcome)
    predicting, selecting = analysis.predicting, analysis.selecting_only
    total = len(analysis._sources(analysis.encoding.columns))
    verb = "predict" if len(predicting) != 1 else "predicts"
    if analysis.question.search == "none":
        verb = "are taken to predict" if len(predicting) != 1 else "is taken to predict"
    found = how_found(analysis)
    found = f" ({found})" if found else ""
    if not predicting:
        return f"No feature {verb} {outcome}: the prediction equation is an intercept alone."
    head = f"Of {plural(total, 'feature')}, {some(predicting)} {verb} {outcome}"
    if len(predicting) == total:
        head = f"All {total} features {verb} {outcome}" if total > 1 else f"{predicting[0]} {verb}"
        head = head if total > 1 else f"{head} {outcome}"
    if analysis.model._probit is None:
        return f"{head}; no outcome is missing in the fit, so that no selection was modelled."
    if not selecting:
        others = "none is left to drive only who is selected"
    elif len(selecting) <= 3:
        verb = "drives" if len(selecting) == 1 else "drive"
        others = f"{listed(selecting)} only {verb} who is selected"
    elif len(selecting) + len(predicting) == total:
        which = "others" if len(predicting) <= SHOWN else f"other {len(selecting)}"
        others = f"the {which} only drive who is selected"
    else:
        others = f"{len(selecting)} others only drive who is selected"
    return f"{head}; {others}{found}."


def how_found(analysis: Analysis) -> str:
    """Say what the choice of the prediction features is the best of; empty without a search."""
    model: Any = analysis.model
    if not model._is_search:
        return ""
    if model._search is None:
        return "nothing was searched"
    search = model._search
    criterion = CRITERIA[search.goal.criterion]
    window = search.goal.rho_range
    inside = "" if window is None else f" with rho from {window[0]:g} to {window[1]:g}"
    if model.honest:
        splits = len(model.honest_.estimates)
        return f"chosen by {criterion} in at least half of {splits} random halves of the rows"
    if model._n_possible == 1:
        return "the only assignment that was allowed"
    best = f"best by {criterion} of"
    possible = count(model._n_possible)
    if search.optimal:
        return f"{best} all {possible} assignments{inside and ', among those' + inside}, by proof"
    n = count(search.n_in_range if inside else search.n_assignments)
    return f"{best} {n} assignments looked at{inside}, out of {possible}"


def _how_much(analysis: Analysis) -> str:
    model = analysis.model
    table = compare_models(analysis).table
    rows = table[(table["kind"] == "prediction") & (table["term"] != "Intercept")]
    if rows.empty:
        return "There is no coefficient to speak of."
    clearest = rows["statistic"].abs().fillna(-1.0).to_numpy()
    row = rows.iloc[int(np.argmax(clearest))]
    estimate, naive = float(row["estimate"]), float(row["least_squares"])
    outcome = shown(analysis.question.outcome)
    step = _step(analysis, str(row["term"]))
    notes = []
    if np.isfinite(row["ci_low"]) and np.isfinite(row["ci_high"]):
        notes.append(f"95% interval {number(row['ci_low'], 3)} to {number(row['ci_high'], 3)}")
    if len(rows) > 1:
        notes.append("the coefficient with the largest z value")
    said = f" ({'; '.join(notes)})" if notes else ""
    equal = " and the other features held equal" if len(rows) > 1 else ""
    if model._probit is None:
        start = "With the other features held equal, " if equal else ""
        text = f"{start}{step} goes with {_more(estimate)} {outcome}{said}."
        return text[0].upper() + text[1:]
    return (
        f"With selection accounted for{equal}, {step} goes with {_more(estimate)} "
        f"{outcome}{said}; least squares on the selected rows says {number(naive, 3)}."
    )


def _more(estimate: float) -> str:
    return f"{number(abs(estimate), 3)} {'more' if estimate >= 0 else 'less'}"


def _step(analysis: Analysis, term: str) -> str:
    """Say what one more of a term is."""
    for name, dummies in analysis.encoding.groups.items():
        reference = analysis.encoding.references.get(name)
        if term in dummies and reference is not None:
            return f"{shown(term)} rather than {shown(f'{name}[{reference}]')}"
    if term in analysis.binary:
        return f"{shown(term)} = 1 rather than 0"
    return f"one more {shown(term)}"


def not_to_claim(analysis: Analysis, diagnostics: Diagnostics | None = None) -> list[str]:
    """Say what the estimates do not show, the gravest first.

    Parameters
    ----------
    analysis : Analysis
    diagnostics : Diagnostics, optional
        Those of the model for the rows of the fit; computed unless given.

    Returns
    -------
    list of str
        Sentences that begin with "That".
    """
    model = analysis.model
    causal = (
        "That changing a feature would change the outcome by its coefficient: it says what goes "
        "together, and not what causes what."
    )
    if model._probit is None:
        found = model.diagnostics() if diagnostics is None else diagnostics
        return [
            *_about_leakage(found),
            "That selection was corrected for: no outcome is missing in the fit, and this is least "
            "squares.",
            causal,
        ]
    found = analysis.diagnostics() if diagnostics is None else diagnostics
    return [
        *_about_fit(model, found),
        *_about_search(analysis),
        *_about_exclusions(analysis, found),
        *_about_rho(model, found),
        *_about_rows(analysis, found),
        "That the correction holds whatever the law of the errors: it rests on their being normal.",
        causal,
    ]


def _about_leakage(found: Diagnostics) -> list[str]:
    if about_r2(found.r2) is None:
        return []
    return [
        f"That the features predict so well (R2 {found.r2:.6f}): one of them is likely to be made "
        "from the outcome, or known only with it."
    ]


def _about_fit(model: Any, found: Diagnostics) -> list[str]:
    said = _about_leakage(found)
    if not model.converged_:
        said.append(
            "That these are the estimates: the iteration did not converge, and they are where it "
            "stopped."
        )
    if found.rho_outside:
        said.append(
            f"That rho is a correlation: its estimate, {number(model.rho_)}, is outside (-1, 1), "
            "so that the model does not fit or the data hardly identify it."
        )
    if is_near_one(model.rho_):
        said.append(
            f"That rho is estimated: {rho_text(model.rho_)} is as good as one, which is most often "
            "a sign of a model that does not fit."
        )
    higher = higher_maximum(model.log_likelihood_, model._second_maximum)
    if higher is not None:
        said.append(
            "That the likelihood is at its highest: there is a higher maximum, at rho = "
            f"{rho_text(higher[1])}."
        )
    return said


def _about_search(analysis: Analysis) -> list[str]:
    model: Any = analysis.model
    if not model._is_search or model._search is None:
        return []
    search, said = model._search, []
    if model.honest:
        return [
            "That the honest estimates are those of a true model: each is of the coefficient in "
            "the models that halves of the rows chose."
        ]
    said.append(
        "That intervals and p-values account for the search: they are those of features known "
        "beforehand, and are too narrow. With --honest, features are estimated on rows that had "
        "no part in choosing them."
    )
    criterion = search.goal.criterion
    tolerance = NEARLY[criterion]
    if search.tolerance is not None:
        tolerance = min(tolerance, search.tolerance)
    near = search.nearly_best(tolerance)
    if near > 1:
        is_cut = near == KEPT or bool(search.ended)
        others = "assignment is" if near == 2 and not is_cut else "assignments are"
        said.append(
            f"That these features and no others predict: {count(near - 1)} "
            f"{'or more ' if is_cut else ''}other {others} within {tolerance:g} of the best in "
            f"{CRITERIA[criterion]}."
        )
    if not search.optimal and model._n_possible > 1:
        gap = f"; one better by {search.gap:.3g} may exist" if search.gap else ""
        said.append(
            f"That no assignment is better: {count(search.n_assignments)} of "
            f"{count(model._n_possible)} were looked at{gap}."
        )
    return said


def _about_exclusions(analysis: Analysis, found: Diagnostics) -> list[str]:
    if found.n_excluded == 0:
        return [
            "That the data alone tell selection from prediction: every feature that drives "
            "selection also predicts, and only the normal law of the errors identifies the model."
        ]
    names = some(analysis.selecting_only or [str(one) for one in found.excluded_features], 6)
    outcome = shown(analysis.question.outcome)
    searched = (
        " That they were not chosen to predict is no evidence of it."
        if analysis.model._is_search
        else ""
    )
    pronoun = "it has" if found.n_excluded == 1 else "they have"
    said = [
        f"That the exclusions are valid: the model assumes of {names} that {pronoun} no effect of "
        f"{'its' if found.n_excluded == 1 else 'their'} own on {outcome}, and no data can show "
        f"that.{searched}"
    ]
    weak = _verdict(found, "excluded features")
    if weak == "caution":
        assert found.excluded_wald is not None
        said.append(
            "That the exclusions identify the model well: they are weak (chi2 "
            f"{number(found.excluded_wald.statistic, 3)} for "
            f"{plural(found.n_excluded, 'coefficient')}, where 10 for each would be strong)."
        )
    if _verdict(found, "lambda on the features") == "caution":
        said.append(
            "That the coefficients are free of what lambda takes up: lambda is almost a linear "
            f"function of the prediction features (VIF {number(found.imr_vif, 3)})."
        )
    return said


def _verdict(found: Diagnostics, name: str) -> str | None:
    return next((line[2] for line in found.lines() if line[0] == name), None)


def _about_rho(model: Any, found: Diagnostics) -> list[str]:
    if found.rho_conditioned:
        low, high = model._window
        return [
            "That rho says whether there is selection bias: the features were chosen so that rho "
            f"is in [{low:g}, {high:g}], and it tests nothing."
        ]
    test = found.rho_lr or found.rho_wald
    if test is not None and np.isfinite(test.p_value) and test.p_value >= 0.05:
        return [
            f"That there is no selection on what was not observed: rho = {number(model.rho_, 3)} "
            f"does not differ from zero at 5% (p = {number(test.p_value, 2)}), which does not show "
            "that it is zero."
        ]
    return []


def _about_rows(analysis: Analysis, found: Diagnostics) -> list[str]:
    counts, said = analysis.row_counts, []
    lost = counts.get("left_out_regressor_missing", 0)
    total = counts["total"]
    if lost > _LARGE_SHARE * total:
        said.append(
            f"That the rows left out are like the others: {count(lost)} of {count(total)} "
            f"({100 * lost / total:.0f}%) miss a feature."
        )
    if analysis.question.missing == "mean":
        said.append(
            "That cells which were missing hold what was filled in: standard errors take the "
            "average as if it had been observed."
        )
    share = found.share_outside
    if share is not None and share > _LARGE_SHARE:
        said.append(
            f"That predictions given selection hold for everyone: {100 * share:.0f}% of the rows "
            "lie beyond what the selected rows cover."
        )
    return said

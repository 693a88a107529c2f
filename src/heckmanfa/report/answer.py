"""The answer in two sentences, and what may not be claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heckmanfa.results.reference import reference_of
from heckmanfa.results.search_caveats import describe_search
from heckmanfa.text.numbers import number, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import some

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis


def answer(analysis: Analysis) -> tuple[str, str, list[str]]:
    """Say what was found, in plain text.

    Returns
    -------
    which : str
        Which features predict, and how that is known.
    how_much : str
        What one of them goes with, beside least squares.
    caveats : list of str
        What may not be claimed, each a sentence that begins with "That".
    """
    return _which(analysis), _how_much(analysis), not_to_claim(analysis)


def _which(analysis: Analysis) -> str:
    outcome = shown(analysis.question.outcome)
    predicting = analysis.predicting
    total = len(analysis.feature_columns)
    verb = "predict" if len(predicting) > 1 else "predicts"
    if analysis.question.search == "none":
        verb = "are taken to predict" if len(predicting) > 1 else "is taken to predict"
    found = describe_search(analysis.model.fit_)
    found = f" ({found})" if found else ""
    if not predicting:
        return f"No feature {verb} {outcome}: the prediction equation is an intercept alone."
    head = f"Of {plural(total, 'feature')}, {some(predicting)} {verb} {outcome}"
    if len(predicting) == total:
        head = f"All {total} features {verb} {outcome}" if total > 1 else f"{predicting[0]} {verb}"
        head = head if total > 1 else f"{head} {outcome}"
    if not analysis.is_corrected:
        return f"{head}; no outcome is missing in the fit, so no selection was modelled."
    return f"{head}; {_others(analysis, total)}{found}."


def _others(analysis: Analysis, total: int) -> str:
    """Say what the features kept out of the prediction equation do, as far as the data show."""
    out, driving = analysis.kept_out, analysis.driving_selection
    if not out:
        return "none is kept out of the prediction equation"
    rest = analysis.without_evidence
    every = len(out) + len(analysis.predicting) == total
    those = "the others" if every and len(out) > 3 else some(out)
    if analysis.not_tested:
        return _partly_tested(analysis)
    if not driving:
        verb = "it drives" if len(out) == 1 else "they drive"
        return f"for {those} there is no evidence that {verb} who is selected"
    if not rest:
        verb = "drives" if len(out) == 1 else "drive"
        return f"{those} {verb} who is selected"
    verb = "drives" if len(driving) == 1 else "drive"
    others = some(rest) if len(rest) <= 3 else f"the other {len(rest)}"
    return (
        f"of those kept out, {some(driving)} {verb} who is selected, and for {others} there is no "
        "evidence of either"
    )


def _partly_tested(analysis: Analysis) -> str:
    """Say what the features kept out do if not all of them could be tested."""
    driving, rest, unknown = (
        analysis.driving_selection,
        analysis.without_evidence,
        analysis.not_tested,
    )
    parts = []
    if driving:
        parts.append(
            f"{some(driving)} {'drives' if len(driving) == 1 else 'drive'} who is selected"
        )
    if rest:
        verb = "it drives" if len(rest) == 1 else "they drive"
        parts.append(f"for {some(rest)} there is no evidence that {verb} who is selected")
    verb = "drives" if len(unknown) == 1 else "drive"
    parts.append(f"whether {some(unknown)} {verb} who is selected was not tested")
    return "; ".join(parts)


def _how_much(analysis: Analysis) -> str:
    model = analysis.model
    table = analysis.coefficients
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
        notes.append(f"the coefficient with the largest {reference_of(model.fit_).letter} value")
    said = f" ({'; '.join(notes)})" if notes else ""
    equal = " and the other features held equal" if len(rows) > 1 else ""
    if not analysis.is_corrected:
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
    return f"one unit more of {shown(term)}"


def not_to_claim(analysis: Analysis) -> list[str]:
    """Say what the estimates do not show: sentences that begin with "That", the gravest first."""
    return [caveat.claim for caveat in analysis.caveats if caveat.claim]

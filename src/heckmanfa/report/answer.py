"""The answer in two sentences, and what may not be claimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from heckmanfa.results.average_caveats import describe_average
from heckmanfa.results.average_tables import ALWAYS, NO_SIGN, PREDICTS, UNSURE
from heckmanfa.results.reference import reference_of
from heckmanfa.results.search_caveats import describe_search
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import number, plural, share_text, some

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis


def answer(analysis: Analysis) -> tuple[str, str, list[str]]:
    """Say what was found, in plain text.

    Returns
    -------
    which : str
        Which features predict, and how that is known.
    how_much : str
        The clearest coefficient, beside least squares.
    claims : list of str
        What may not be claimed, the most serious first, each a sentence that begins with "That".
    """
    return _which(analysis), _how_much(analysis), [str(claim) for claim in analysis.claims]


def _which(analysis: Analysis) -> str:
    outcome = shown(analysis.question.outcome)
    predicting = analysis.predicting
    total = len(analysis.feature_columns)
    if analysis.chances is not None:
        return _chances(analysis, analysis.chances)
    verb = "predict" if len(predicting) > 1 else "predicts"
    if analysis.question.searched == "none":
        verb = "are taken to predict" if len(predicting) > 1 else "is taken to predict"
    if not predicting:
        found = describe_search(analysis.model.fit_)
        if found:
            verb, found = "is chosen to predict", f" ({found})"
        return f"No feature {verb} {outcome}{found}: the prediction equation is an intercept alone."
    who = f"Of {plural(total, 'feature')}, {some(predicting)}"
    if len(predicting) == total:
        who = f"All {total} features" if total > 1 else shown(predicting[0])
    head = f"{who} {verb} {outcome}"
    if not analysis.is_corrected:
        return f"{head}; no outcome is missing in the fit, so no selection was modelled."
    found = describe_search(analysis.model.fit_)
    found = f" ({found})" if found else ""
    return f"{head}; {_others(analysis, total)}{found}."


def by_role(chances: pd.DataFrame) -> dict[str, list[str]]:
    """Return the features of each role, each with its chance, the likeliest first."""
    found: dict[str, list[str]] = {PREDICTS: [], UNSURE: [], NO_SIGN: []}
    for row in chances.sort_values("chance", ascending=False, kind="stable").to_dict("records"):
        chance = f"{shown(row['feature'])} ({share_text(row['chance'])})"
        found[PREDICTS if row["role"] == ALWAYS else row["role"]].append(chance)
    return found


def _chances(analysis: Analysis, chances: pd.DataFrame) -> str:
    """Say which features predict as far as an average can tell."""
    outcome = shown(analysis.question.outcome)
    roles = by_role(chances)
    sure, unsure, none = roles[PREDICTS], roles[UNSURE], roles[NO_SIGN]
    parts = [f"none surely predicts {outcome}"]
    if sure:
        parts = [f"{some(sure)} {'predict' if len(sure) > 1 else 'predicts'} {outcome}"]
    if unsure:
        parts.append(f"whether {some(unsure)} {_does(unsure)} cannot be told")
    if none:
        others = some(none) if len(none) <= 3 else f"the other {len(none)}"
        parts.append(f"there is no sign that {others} {_does(none)}")
    found = describe_average(analysis.model.fit_)
    total = plural(len(chances), "feature")
    return (
        f"Of {total}, {'; '.join(parts)}. Chances are shares of BIC weight; estimates are {found}."
    )


def _does(names: Sequence[str]) -> str:
    return "predicts" if len(names) == 1 else "predict"


def _others(analysis: Analysis, total: int) -> str:
    """Say what the features kept out of the prediction equation do, as far as the data show."""
    out = analysis.kept_out
    if not out:
        return "none is kept out of the prediction equation"
    driving, rest = analysis.driving_selection, analysis.without_evidence
    parts = [
        (driving, "{} who is selected"),
        (rest, "there is no evidence that {} who is selected"),
        (analysis.not_tested, "whether {} who is selected was not tested"),
    ]
    parts = [(names, text) for names, text in parts if names]
    said = []
    for names, text in parts:
        which = some(names)
        if len(parts) == 1 and len(out) > 3 and len(out) + len(analysis.predicting) == total:
            which = "the others"
        said.append(text.format(f"{which} {'drives' if len(names) == 1 else 'drive'}"))
    if driving and rest and len(parts) == 2:
        others = some(rest) if len(rest) <= 3 else f"the other {len(rest)}"
        does = "does" if len(rest) == 1 else "do"
        return f"of those kept out, {said[0]}, and there is no evidence that {others} {does}"
    return "; ".join(said)


def _how_much(analysis: Analysis) -> str:
    table = analysis.coefficients
    rows = table[(table["kind"] == "prediction") & (table["term"] != "Intercept")]
    if rows.empty:
        return "There is no coefficient to report."
    clearest = rows["statistic"].abs().fillna(-1.0).to_numpy()
    if analysis.chances is not None:
        chance = dict(zip(analysis.chances["feature"], analysis.chances["chance"], strict=True))
        size = (rows["estimate"] / rows["std_error"]).abs().fillna(0.0).to_numpy()
        likely = [chance.get(analysis.source_of(str(term)), 0.0) for term in rows["term"]]
        # Of the likeliest features, the clearest.
        clearest = np.round(likely, 2) * 1e6 + size
    row = rows.iloc[int(np.argmax(clearest))]
    estimate = float(row["estimate"])
    notes = []
    if np.isfinite(row["ci_low"]) and np.isfinite(row["ci_high"]):
        notes.append(f"95% interval {number(row['ci_low'], 3)} to {number(row['ci_high'], 3)}")
    if analysis.chances is not None:
        notes.append("the likeliest feature")
    elif len(rows) > 1:
        letter = reference_of(analysis.model.fit_).letter
        notes.append(f"the coefficient with the largest {letter} value")
    said = f" ({'; '.join(notes)})" if notes else ""
    more = f"{number(abs(estimate), 3)} {'more' if estimate >= 0 else 'less'}"
    effect = (
        f"{_step(analysis, str(row['term']))} goes with {more} "
        f"{shown(analysis.question.outcome)}{said}"
    )
    if not analysis.is_corrected:
        text = f"With the other features held equal, {effect}." if len(rows) > 1 else f"{effect}."
        return text[0].upper() + text[1:]
    equal = " and the other features held equal" if len(rows) > 1 else ""
    return (
        f"With selection accounted for{equal}, {effect}; least squares on the selected rows says "
        f"{number(float(row['least_squares']), 3)}."
    )


def _step(analysis: Analysis, term: str) -> str:
    """Describe a unit change in a term."""
    for name, dummies in analysis.encoding.groups.items():
        reference = analysis.encoding.references.get(name)
        if term in dummies and reference is not None:
            return f"{shown(term)} rather than {shown(f'{name}[{reference}]')}"
    if term in analysis.binary:
        return f"{shown(term)} = 1 rather than 0"
    return f"one more unit of {shown(term)}"

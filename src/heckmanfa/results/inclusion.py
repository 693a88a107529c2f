"""The table of chances of an average: of each feature in each equation, and of the correction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import (
    ALWAYS,
    UNSURE,
    selection_role,
    shares_frame,
    units_of,
)
from heckmanfa.results.document import Section
from heckmanfa.results.judgement import VerdictKind, judgement_of
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.averaging.weights import WEIGHT_CRITERIA, WeightCriterion
from heckmanfa.text.chances import CHANCES_BY
from heckmanfa.text.wording import share_text

NEVER = "never included"
CORRECTION = "correction"
"""the name of the correction's row among those of features"""
MATTERED = "selection mattered"
NOT_MATTERED = "no sign that selection mattered"

_ROLES: dict[VerdictKind, str] = {
    "yes": MATTERED,
    "unknown": UNSURE,
    "no sign": NOT_MATTERED,
    "unreliable": "not to be relied on",
    "not weighed": "not weighed",
    "not asked": "not asked",
}


def inclusion_frame(fit: Fit) -> pd.DataFrame:
    """Return `HeckmanAverage.inclusion_`."""
    mixture, units = fit.way.averaging.mixture, units_of(fit)
    table = shares_frame(fit, mixture, units)
    first = [unit[0] for unit in units]
    # The columns of a group have signs of their own.
    alone = np.array([len(unit) == 1 for unit in units], dtype=bool)
    for place, sign in enumerate(("positive", "negative")):
        shares = np.where(alone, getattr(mixture, sign)[first], np.nan)
        table.insert(1 + 3 * len(WEIGHT_CRITERIA) + place, sign, shares)
    table.loc[np.isin(first, mixture.choices.always), "role"] = ALWAYS
    if not mixture.searches_both:
        return pd.concat([table, _correction_row(fit, mixture)], ignore_index=True)
    equations = {"prediction": table, "selection": selection_frame(fit, mixture)}
    equations["errors"] = _correction_row(fit, mixture)
    parts = [part.assign(equation=equation) for equation, part in equations.items()]
    whole = pd.concat(parts, ignore_index=True)
    return whole[["equation", *table.columns]]


def selection_frame(fit: Fit, mixture: Average) -> pd.DataFrame:
    """Return the rows of the selection equation of `inclusion_frame`, if that was searched.

    It has no index beside a feature.
    """
    selecting, shares, signs = mixture.selecting, mixture.selection_shares, mixture.selection_signs
    assert selecting is not None
    assert shares is not None
    assert signs is not None
    rows = []
    for unit in sorted([*((column,) for column in selecting.always), *selecting.units]):
        names, first = fit.spec.feature_names(unit), unit[0]
        name = names[0] if len(names) == 1 else tuple(names)
        of_unit = {kind: float(shares[kind][first]) for kind in WEIGHT_CRITERIA}
        both = (signs[0, first], signs[1, first]) if len(unit) == 1 else (np.nan, np.nan)
        fixed = ALWAYS if first in selecting.always else None
        rows.append(_row(name, of_unit, both, fixed or selection_role(of_unit[CHANCES_BY])))
    return pd.DataFrame(rows)


def selection_sections(fit: Fit, mixture: Average) -> list[Section]:
    """Return the chances of each feature to drive selection; nothing if that was not searched."""
    if not mixture.searches_both:
        return []
    table = selection_frame(fit, mixture)
    shown = pd.DataFrame({"feature": [_joined(name) for name in table["feature"]]})
    for name, kind in (("chance", "bic"), ("by AIC", "aic"), ("by EBIC", "ebic")):
        shown[name] = table[kind].map(share_text)
    for name in ("positive", "negative"):
        shown[name] = table[name].map(share_text)
    shown["role"] = table["role"]
    return [Section("Chance that each feature drives selection", table=shown)]


def _joined(name: Any) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _correction_row(fit: Fit, mixture: Average) -> pd.DataFrame:
    """Return the row of the correction."""
    fixed = {"always": ALWAYS, "never": NEVER}.get(mixture.correction)
    role = fixed or _ROLES[judgement_of(fit).kind]
    return pd.DataFrame(
        [_row(CORRECTION, mixture.correction_share, mixture.correction_signs, role)]
    )


def _row(
    name: Any, shares: Mapping[WeightCriterion, float], signs: tuple[float, float], role: str
) -> dict[str, Any]:
    """Return a row of `inclusion_frame` of what has no index beside it."""
    return {
        "feature": name,
        **{str(kind): shares[kind] for kind in WEIGHT_CRITERIA},
        **{f"{kind}_alone": shares[kind] for kind in WEIGHT_CRITERIA},
        **{f"{kind}_index": 0.0 for kind in WEIGHT_CRITERIA},
        "positive": float(signs[0]),
        "negative": float(signs[1]),
        "role": role,
    }

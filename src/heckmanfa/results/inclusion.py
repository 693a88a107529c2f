"""The table of chances of an average: of each feature, and of the correction."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckmanfa.fit import Fit
from heckmanfa.results.average_tables import ALWAYS, UNSURE, outcome_of, shares_frame, units_of
from heckmanfa.results.judgement import VerdictKind, judgement_of
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.averaging.weights import KINDS

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
    found, units = outcome_of(fit).average, units_of(fit)
    table = shares_frame(fit, found, units)
    first = [unit[0] for unit in units]
    # The columns of a group have signs of their own.
    alone = np.array([len(unit) == 1 for unit in units], dtype=bool)
    for place, sign in enumerate(("positive", "negative")):
        shares = np.where(alone, getattr(found, sign)[first], np.nan)
        table.insert(1 + 3 * len(KINDS) + place, sign, shares)
    table.loc[np.isin(first, found.choices.always), "role"] = ALWAYS
    return pd.concat([table, _correction_row(fit, found)], ignore_index=True)


def _correction_row(fit: Fit, found: Average) -> pd.DataFrame:
    """Return the row of the correction: it has no feature's index beside it."""
    shares = found.correction_share
    fixed = {"always": ALWAYS, "never": NEVER}.get(found.correction)
    row: dict[str, object] = {
        "feature": CORRECTION,
        **{kind: shares[kind] for kind in KINDS},
        **{f"{kind}_alone": shares[kind] for kind in KINDS},
        **{f"{kind}_index": 0.0 for kind in KINDS},
        "positive": found.correction_signs[0],
        "negative": found.correction_signs[1],
        "role": fixed or _ROLES[judgement_of(fit).kind],
    }
    return pd.DataFrame([row])

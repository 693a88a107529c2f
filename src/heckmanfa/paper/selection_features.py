"""Table selfeatures: the features of each data set."""

from __future__ import annotations

import pandas as pd

from heckmanfa.paper.protocol import COMPAS, CRIME
from heckmanfa.paper.request import Options
from heckmanfa.paper.table_rows import Table

__all__ = ["selection_features"]

_PRINTED = {
    "CRIME": (
        *("householdsize", "racepctblack", "racePctWhite", "racePctAsian", "racePctHisp"),
        *("agePct12t21", "agePct12t29", "agePct16t24", "agePct65up", "numbUrban", "pctUrban"),
        *("medIncome", "pctWWage", "pctWFarmSelf", "pctWInvInc", "pctWSocSec", "pctWPubAsst"),
        *("pctWRetire", "medFamInc", "perCapInc", "whitePerCap", "HispPerCap", "blackPerCap"),
        *("indianPerCap", "AsianPerCap", "OtherPerCap"),
    ),
    "COMPAS": (
        *("sex", "age", "juv_fel_count", "juv_misd_count", "priors_count", "two_year_recid"),
        *("age_cat_25 - 45", "age_cat_Greater than 45", "race_Caucasian", "c_charge_degree_M"),
    ),
}
_ROWS = {"CRIME": (1395, 976), "COMPAS": (None, 2585)}


def selection_features(options: Options | None = None) -> pd.DataFrame:
    """Reproduce Table selfeatures, and the sizes of the data sets.

    Parameters
    ----------
    options : Options, optional

    Returns
    -------
    DataFrame
        A row for each feature, with its place among ours and in the paper, counted from 1. The
        paper lists HispPerCap before blackPerCap; in the file, whose order its feature numbers
        follow, it is the last.
    """
    del options  # nothing here takes time
    table = Table()
    for experiment in (CRIME, COMPAS):
        data = experiment.data()
        printed = _PRINTED[experiment.name]
        n, m = _ROWS[experiment.name]
        if n is None:
            table.beyond(experiment.name, "rows", "training rows", len(data.y))
        else:
            table.exact(experiment.name, "rows", "training rows", len(data.y), n, digits=0)
        table.exact(experiment.name, "rows", "selected rows", int(data.selected.sum()), m, digits=0)
        moved = printed.index("HispPerCap") if "HispPerCap" in printed else len(printed)
        for place, name in enumerate(data.feature_names, start=1):
            listed = printed.index(name) + 1 if name in printed else 0
            differs = listed > moved
            table.exact(
                experiment.name,
                name,
                "place",
                place,
                listed,
                expected=_in_file(name, listed, moved, len(printed)) if differs else None,
                digits=0,
                note="the file's order, which the feature numbers follow" if differs else "",
            )
    return table.frame()


def _in_file(name: str, listed: int, moved: int, last: int) -> int:
    """Place in the file of a feature that the paper lists with or after HispPerCap."""
    return last if listed == moved + 1 else listed - 1

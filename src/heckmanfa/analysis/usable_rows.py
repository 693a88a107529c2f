"""Refusals of a table whose rows cannot tell who is selected, or whose features give it away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.row_checks import explain_known_only
from heckmanfa.data.row_rules import FeatureCounts, decide_rows
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.model.leakage import refuse_partial_copies
from heckmanfa.text.printable import quoted

EXCLUDE = "Leave such columns out with --exclude."


def missing_advice(missing_counts: Mapping[str, int]) -> str:
    """Name the column with the most missing values, and the options for missing values."""
    advice = "Pass --missing mean, or --exclude the columns with the gaps."
    if not missing_counts:
        return advice
    worst = max(missing_counts, key=lambda name: missing_counts[name])
    return f"{quoted(worst)} is missing in {missing_counts[worst]}. {advice}"


def refuse_rows(
    *, n_rows: int, kept: int, selected: int, observed: int, missing_counts: Mapping[str, int]
) -> None:
    """Refuse a table whose complete rows say nothing about selection.

    Of ``n_rows`` rows, ``kept`` have every feature; ``selected`` of these are selected, and
    ``observed`` of those have an outcome.
    """
    if kept == 0:
        raise InputError(
            f"no row is left: every one of the {n_rows} rows misses a feature. "
            f"{missing_advice(missing_counts)}"
        )
    if selected == kept or observed == 0:
        what = (
            "no outcome is missing in" if selected == kept else "no outcome is observed in any of"
        )
        raise InputError(
            f"{what} the {kept} rows that miss no feature; {n_rows - kept} rows miss one. "
            f"{missing_advice(missing_counts)}"
        )


def refuse_leaks(
    encoding: Encoding,
    frame: pd.DataFrame,
    X: pd.DataFrame,
    outcome: Floats,
    selected: Mask | None,
) -> None:
    """Refuse columns with missing values that give away the selection or the outcome.

    Such a column is known for selected rows only, or copies the outcome wherever it is known. A
    fit cannot notice this once missing values are replaced with means.
    """
    chosen = decide_rows(outcome, selected).selected
    if chosen.all():
        return
    gaps = _gaps(encoding, frame, X)
    names = list(gaps)
    known_only = explain_known_only(names, FeatureCounts.of_gaps(list(gaps.values()), chosen))
    if known_only is not None:
        raise InputError(f"{known_only} {EXCLUDE}")
    observed = chosen & ~np.isnan(outcome)
    refuse_partial_copies(
        (name, X[name].to_numpy()[observed & ~gaps[name]], outcome[observed & ~gaps[name]])
        for name in names
        if name not in encoding.levels
    )


def _gaps(encoding: Encoding, frame: pd.DataFrame, X: pd.DataFrame) -> dict[str, Mask]:
    """Find the rows in which each column of the table is missing, whether or not it was filled."""
    first = {name: encoding.groups.get(name, [name])[0] for name in encoding.n_missing}
    first = {name: column for name, column in first.items() if column in X}
    if encoding.missing == "mean" and first:
        filled = {
            name: X[column].to_numpy() == encoding.means[column] for name, column in first.items()
        }
        if all(np.count_nonzero(filled[name]) == encoding.n_missing[name] for name in first):
            return filled
        # Some rows hold the mean itself.
        X = replace(encoding, missing="drop").transform(frame)
    return {name: np.isnan(X[column].to_numpy()) for name, column in first.items()}

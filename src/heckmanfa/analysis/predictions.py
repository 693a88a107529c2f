"""Predictions for new tables, which are encoded as the table of the fit was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_sources import source_columns
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import refuse_absent
from heckmanfa.data.columns.values import to_numbers
from heckmanfa.data.missing_features import Gaps
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.tables.reading import Table
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

KINDS = ("marginal", "selected", "unselected", "selection")
INTERVALS = ("prediction", "confidence")


def check_request(kind: str, interval: str | None, *, prefix: str = "") -> None:
    """Refuse a kind of prediction or interval that does not exist.

    ``prefix`` goes before the names of parameters: ``--`` on the command line.
    """
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(
            f"{prefix}kind must be one of {', '.join(KINDS)}; got {quoted(kind)}{hint}"
        )
    if interval not in (None, *INTERVALS):
        raise InputError(
            f"{prefix}interval must be {' or '.join(INTERVALS)}; got {quoted(interval)}"
        )
    if interval is not None and kind == "selection":
        raise InputError(f"{prefix}interval is about outcomes, but {prefix}kind is selection")


def predictions(
    model: Any, X: pd.DataFrame, kind: str, interval: str | None, encoding: Encoding | None = None
) -> tuple[pd.DataFrame, Gaps]:
    """Predict for each row of X: the features of the fit, or the columns that its formulas name.

    The table has a column ``predicted_<kind>``, NaN where a feature is missing, and with an
    interval ``low`` and ``high``. Gaps name the columns of the table if ``encoding`` made X.
    """
    name = f"predicted_{kind}"
    if not hasattr(model, "predict_selection"):
        if kind != "marginal" or interval is not None:
            raise InputError(
                f"{type(model).__name__} knows no selection and gives no intervals: its "
                "predictions are of kind 'marginal'"
            )
        found = pd.DataFrame({name: model.predict(X, missing="nan")})
    elif kind == "selection":
        found = pd.DataFrame({name: model.predict_selection(X, missing="nan")})
    elif interval is None:
        found = pd.DataFrame({name: model.predict(X, kind=kind, missing="nan")})
    else:
        values, ends = model.predict(X, kind=kind, return_interval=interval, missing="nan")
        found = pd.DataFrame({name: values, "low": ends[:, 0], "high": ends[:, 1]})
    gaps = Gaps(len(found))
    if found[name].isna().any():
        gaps = model.missing_features(X, kind)
        gaps = gaps.of_sources({} if encoding is None else source_columns(encoding))
    return found, gaps


def encode_new(table: Table, encoding: Encoding) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Encode a table as that of the fit; also return notes on numbers written differently."""
    try:
        refuse_absent(encoding.sources, table.frame.columns)
    except UnknownFeatureError as error:
        raise UnknownFeatureError(f"{error}{table.hint}") from error
    table.refuse_doubts([name for name in encoding.sources if name not in encoding.levels])
    # If columns have types, per cent signs are not part of their numbers.
    given = [name for name in encoding.sources if table.untyped and table.frame[name].notna().any()]
    _refuse_other_units(table, encoding, given)
    # The fit read 5% as 5, so plain numbers have its scale if they are written in the same way.
    notes = [
        f"{quoted(name)} has no per cent signs, as it had in the table of the fit: 5 was read as "
        "5%, and 0.05 as 0.05%."
        for name in encoding.percent
        if name in given and name not in table.percent
    ]
    return encoding.transform(table.frame), tuple(notes)


def _refuse_other_units(table: Table, encoding: Encoding, given: Sequence[str]) -> None:
    """Refuse columns whose per cent signs differ from those of the fit in a way that matters."""
    for name in given:
        if name in table.percent and name not in encoding.percent:
            raise InputError(
                f"column {quoted(name)} has per cent signs, and had none in the table of the fit; "
                "0.05 there may or may not be 5% here: write it as there, without signs"
            )
        if name in encoding.percent and name not in table.percent:
            values = to_numbers(table.frame[name], name)
            if np.nanmax(np.abs(values)) <= 1 < abs(encoding.means[name]):
                raise InputError(
                    f"column {quoted(name)} has no per cent signs, and had them in the table of "
                    f"the fit, where it was {encoding.means[name]:.3g}% on average; here it is at "
                    "most 1, as shares are: multiply it by 100, or write it with signs"
                )

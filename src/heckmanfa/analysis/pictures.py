"""Pictures of an analysis, with the names of its table, and what they show as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.prepared import Loaded, Prepared
from heckmanfa.data.columns.column_hints import MOST_ROWS, find_products
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.fit import Fit
from heckmanfa.inference.pictures import Pictures
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.plots.selection_rows import SelectionDriver
from heckmanfa.results.effects import UNKNOWN, Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence, LevelEvidence
from heckmanfa.results.naming import Naming, name_dummies


def naming_of(prepared: Prepared, fit: Fit) -> Naming:
    """Name the columns of X after the columns of the table that they encode."""
    encoding, question = prepared.encoding, prepared.question
    named = name_dummies(fit.labels, encoding)
    return Naming(
        outcome=question.fitted,
        sources=named.sources,
        levels=named.levels,
        references=named.references,
        switches=frozenset(
            place
            for place, label in enumerate(fit.labels)
            if label in prepared.switches and not named.levels[place]
        ),
        groups=named.groups,
        cluster=question.cluster or "",
    )


def derived_columns(X: pd.DataFrame, encoding: Encoding) -> dict[str, tuple[str, ...]]:
    """Find columns of numbers that follow from others; see `find_products`."""
    dummies = {column for columns in encoding.groups.values() for column in columns}
    names = [str(name) for name in X.columns if name not in dummies]
    # Of many rows, evenly spaced ones are read.
    step = max(len(X) // MOST_ROWS, 1)
    values = X[names].iloc[::step].to_numpy(dtype=np.float64)
    if encoding.missing == "mean":
        # An average that fills a gap follows from nothing.
        means = np.array(
            [encoding.means[name] if name in encoding.n_missing else np.nan for name in names]
        )
        values = values[~(values == means).any(axis=1)]
    return find_products(values, names)


def pictures_of(
    prepared: Prepared, evidence: Evidence, derived: Mapping[str, Sequence[str]]
) -> Pictures:
    """Return the pictures of a fit to prepared rows, in memory or streamed.

    ``derived`` are the squares and products among columns in memory.
    """
    fit, naming, rows = evidence.fit, evidence.naming, prepared.rows
    if isinstance(rows, Loaded):
        given = rows.X, prepared.outcome, rows.selected, rows.weight
        return Pictures(evidence, PictureRows(fit, naming, *given, derived=derived))
    return Pictures(evidence, PictureRows(fit, naming, rows))


def feature_frame(pictures: Pictures) -> pd.DataFrame:
    """Return a row for each feature, and for each level of a category.

    Features come in the order of `Analysis.roles`. Chances are shares of BIC, AIC and EBIC weight,
    and of BIC weight without lambda; effects are per unit, those on selection in percentage points
    for the change that the table names. Effects on a binary outcome are on its probability, from 0
    to 1, beside a naive probit in place of least squares.
    """
    margins, evidence = pictures.margins, pictures.evidence
    drivers = {} if margins is None else {driver.name: driver for driver in margins.drivers}
    naive = evidence.words.naive_short.replace(" ", "_")
    lines = [
        line
        for feature in evidence.ordered()
        for line in _lines(feature, drivers.get(feature.name), naive)
    ]
    return pd.DataFrame(lines)


def _lines(
    feature: FeatureEvidence, driver: SelectionDriver | None, naive: str
) -> list[dict[str, Any]]:
    """Return the lines of one feature: one, or one for each level of a category.

    ``naive`` names the model that ignores selection.
    """
    common = {
        "chance": feature.chance,
        "chance_aic": feature.by_aic,
        "chance_ebic": feature.by_ebic,
        f"chance_{naive}": feature.chance_least_squares,
        "role": feature.role,
    }
    items: tuple[FeatureEvidence | LevelEvidence, ...] = feature.levels or (feature,)
    changes = () if driver is None else driver.changes
    # Both are in the order of the columns, unless the selection equation lacks one of these.
    in_order = len(changes) == len(items)
    lines = []
    for place, item in enumerate(items):
        level = item.name if feature.levels else feature.level
        effects: list[Effect | None] = [item.effect, item.least_squares, item.all_features]
        line: dict[str, Any] = {"feature": feature.name, "level": level}
        line |= {"reference": feature.reference, **common}
        for name, effect in zip(("effect", naive, "all_features"), effects, strict=True):
            known = effect or UNKNOWN
            line |= {name: known.estimate, f"{name}_low": known.low, f"{name}_high": known.high}
        line["selection_p_value"] = feature.selection_p
        line["selection_chance"] = feature.selection_chance
        change = changes[place] if in_order else None
        line["selection_change"] = "" if change is None else change.words
        for end in ("estimate", "low", "high"):
            line[f"selection_points_{end}"] = getattr(change, end, float("nan"))
        lines.append(line)
    return lines

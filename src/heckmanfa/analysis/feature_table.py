"""Everything that the pictures of features show, as one table for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from heckmanfa.plots.selection_rows import SelectionDriver
from heckmanfa.results.effects import UNKNOWN, Effect
from heckmanfa.results.feature_evidence import FeatureEvidence, LevelEvidence

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis


def feature_frame(analysis: Analysis) -> pd.DataFrame:
    """Return a row for each feature, and for each level of a category.

    Features come in the order of `Analysis.roles`. Chances are shares of BIC, AIC and EBIC weight,
    and of BIC weight without lambda; effects are per unit, those on selection in percentage points
    for the change that the table names. Effects on a binary outcome are on its probability, from 0
    to 1, beside a naive probit in place of least squares.
    """
    margins = analysis.pictures().margins
    drivers = {} if margins is None else {driver.name: driver for driver in margins.drivers}
    naive = analysis.evidence.words.naive_short.replace(" ", "_")
    lines = [
        line
        for feature in analysis.evidence.ordered()
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

"""Coefficients for a rho that is assumed: what pictures of them show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckmanfa.plots.picture_text import PictureText
from heckmanfa.text.numbers import number, plural
from heckmanfa.text.printable import shown
from heckmanfa.text.table import Column, Table


@dataclass(frozen=True, eq=False)
class RhoCurves:
    """Each coefficient over rho, with its bounds within a range of rho."""

    path: pd.DataFrame
    """term, rho, estimate, ci_low and ci_high, the terms in the same order at each rho"""
    bounds: pd.DataFrame
    """a row for each term, as `UncertaintyInterval.tidy` returns them"""
    rho: tuple[float, float]
    """the range that the bounds are for"""
    conf_level: float
    rho_hat: float

    def curve(self, position: int) -> pd.DataFrame:
        """Return the path of a term by its position: names need not be distinct."""
        return self.path.iloc[position :: len(self.bounds)]

    def text(self, order: list[int]) -> PictureText:
        """Return the words around the curves of the terms at these positions."""
        low, high = self.rho
        bounds = self.bounds.iloc[order]
        first, name = bounds.iloc[0], shown(bounds["term"].iloc[0])
        n_turning = int(bounds["sign_change"].between(low, high).sum())
        turn = "changes" if 1 in (n_turning, len(order)) else "change"
        interval = f"{100 * self.conf_level:g}% interval"
        rows = [
            [
                shown(row["term"]),
                number(row["ols"]),
                f"{number(row['bound_low'])} to {number(row['bound_high'])}",
                f"{number(row['ui_low'])} to {number(row['ui_high'])}",
                "never" if np.isnan(row["sign_change"]) else number(row["sign_change"], 3),
            ]
            for row in bounds.to_dict("records")
        ]
        columns = (
            Column("Feature", False),
            Column("At rho = 0"),
            Column(f"Estimates, rho {low:g} to {high:g}"),
            Column(f"With {interval}s"),
            Column("Sign changes at rho"),
        )
        return PictureText(
            title="Coefficients for any rho",
            alt=(
                f"The coefficient of {name} is from {number(first['bound_low'], 3)} to "
                f"{number(first['bound_high'], 3)} for rho from {low:g} to {high:g}. "
                f"{n_turning} of {plural(len(order), 'coefficient')} {turn} sign in that range; "
                "all are in the table."
            ),
            caption=(
                "What each coefficient would be for a rho that is assumed rather than estimated, "
                f"with its {interval}: no exclusion is needed for this. rho = 0 is least squares "
                "on the selected rows."
            ),
            table=Table(columns, tuple(rows), "Coefficients over rho", "over-rho-table"),
        )

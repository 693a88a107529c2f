"""The inverse Mills ratio in fitting and in prediction: what pictures of it show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.plots.picture_text import PictureText
from heckmanfa.text.numbers import count, number, percent, plural
from heckmanfa.text.table import Column, Table

_LONG_TAIL = 4.0
_QUANTILES = {
    "Lowest": 0.0,
    "Lower quartile": 0.25,
    "Median": 0.5,
    "Upper quartile": 0.75,
    "Highest": 1.0,
}


@dataclass(frozen=True, eq=False)
class MillsRatios:
    """Ratios of the rows that the prediction equation was fitted to, and of others."""

    fitted: Floats
    """of the selected rows"""
    others: Floats
    """of the other rows, to predict for"""
    range: tuple[float, float]
    """the lowest and the highest in the fit"""
    share_outside: float
    """share of all rows that lies outside that range"""
    weight: Floats | None = None
    """of the selected rows"""

    @property
    def all(self) -> Floats:
        """Of all rows."""
        return np.concatenate([self.fitted, self.others])

    @property
    def top(self) -> float:
        """Where the picture ends: a long tail would leave one bar for all that was fitted."""
        return min(float(self.all.max()), _LONG_TAIL * self.range[1])

    def text(self) -> PictureText:
        """Return the words around the two distributions."""
        outside, top = percent(self.share_outside), self.top
        beyond = int(np.count_nonzero(self.all > top))
        others = ""
        if len(self.others):
            others = f"; of the {count(len(self.others))} others it is {_described(self.others)}"
        tail = (
            f" {plural(beyond, 'row')} with lambda above {number(top, 3)}, up to "
            f"{number(self.all.max(), 3)}, are counted in the last bar."
        )
        rows = [
            [name, count(len(part)), *map(number, np.quantile(part, list(_QUANTILES.values())))]
            for name, part in (
                ("Selected", self.fitted),
                ("Others", self.others),
                ("All", self.all),
            )
            if len(part)
        ]
        columns = (Column("Rows that are", False), Column("Rows"), *map(Column, _QUANTILES))
        return PictureText(
            title="Lambda in the fit and in prediction",
            alt=(
                f"Lambda of the {count(len(self.fitted))} selected rows is "
                f"{_described(self.fitted)}{others}. {outside} of all rows are outside the range "
                "of the fit."
            ),
            caption=(
                "Lambda is large where selection is unlikely. Its coefficient is learned from the "
                "selected rows, between the dotted lines; beyond them a prediction given "
                f"selection extrapolates ({outside} of all rows).{tail if beyond else ''}"
            ),
            table=Table(columns, tuple(rows), "Lambda by rows", "lambda-table"),
        )


def _described(values: Floats) -> str:
    return (
        f"from {number(values.min(), 3)} to {number(values.max(), 3)}, with median "
        f"{number(float(np.median(values)), 3)}"
    )

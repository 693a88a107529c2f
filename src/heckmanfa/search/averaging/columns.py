"""The columns of an average: what every model holds first, then the units, then the outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.linalg import DEPENDENT, column_norms, subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices


@dataclass(frozen=True, eq=False)
class Columns:
    """The centred columns [fixed, units, y] of the selected rows, scaled to length one.

    Fixed are lambda, if the models hold it, and the features that are always in. Groups of
    features come before single ones.
    """

    choices: Choices
    imr: bool
    """whether lambda is the first of the fixed columns"""
    order: tuple[int, ...]
    """the unit of the choices that each unit here is, (U,)"""
    positions: tuple[int, ...]
    """the column of X behind each column but lambda and y"""
    n_fixed: int
    matrix: Floats
    """(c + 1, c + 1) triangular factor of the c columns and y"""
    norms: Floats
    """(c + 1,) lengths before scaling"""
    least: Floats
    """(c,) a residual this short or shorter makes a column collinear"""

    @classmethod
    def of(cls, moments: Moments, choices: Choices, *, imr: bool = True) -> Columns:
        """Arrange the columns of the choices."""
        units = choices.units
        order = tuple(sorted(range(len(units)), key=lambda unit: (-len(units[unit]), unit)))
        positions = (*choices.always, *(column for unit in order for column in units[unit]))
        k = len(moments.columns)
        places = [k + 1] * imr + moments.places(positions) + [k + 2]
        r = subset_factor(moments.factor, [0, *places])
        centred = r[1:, 1:]
        norms, raw = column_norms(centred), column_norms(r[:, 1:])
        norms = np.where(norms > 0, norms, 1.0)
        return cls(
            choices=choices,
            imr=imr,
            order=order,
            positions=positions,
            n_fixed=imr + len(choices.always),
            matrix=centred / norms,
            norms=norms,
            least=np.maximum(DEPENDENT * raw[:-1] / norms[:-1], DEPENDENT),
        )

    @property
    def sizes(self) -> list[int]:
        """Number of columns of each unit, (U,)."""
        return [len(self.choices.units[unit]) for unit in self.order]

    def masks(self, inside: Mask) -> Mask:
        """Convert masks over the units in this order, (B, U), to masks over X, (B, K)."""
        units = np.empty_like(inside)
        units[:, list(self.order)] = inside
        return self.choices.masks(units)

    def slopes(self, scaled: Floats) -> Floats:
        """Undo the scaling of coefficients, (c,)."""
        return np.asarray(scaled * self.norms[-1] / self.norms[:-1])

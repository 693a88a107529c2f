"""The design behind a survey's covariance: units, strata, replicates and degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.group_cells import Cells
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.text.wording import plural


@dataclass(frozen=True)
class SurveyDesign:
    """What a covariance by the design of a survey is made of."""

    n_psu: int
    n_strata: int
    df: int
    """degrees of freedom"""
    n_single: int = 0
    """strata of a single unit"""
    n_empty: int = 0
    """strata without a row of the fit, which are not counted"""
    n_replicates: int = 0
    """replicate weights; without them, the covariance is linearized"""

    @property
    def words(self) -> str:
        """The design in words."""
        if self.n_replicates:
            return f"{self.n_replicates:,} replicate weights"
        strata = "one stratum" if self.n_strata == 1 else f"{self.n_strata:,} strata"
        return f"{self.n_psu:,} sampling units in {strata}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The design as pairs of a label and a number."""
        if self.n_replicates:
            return [("Replicate weights", f"{self.n_replicates:,}"), ("Design df", f"{self.df:,}")]
        return [
            ("Strata", f"{self.n_strata:,}"),
            ("Sampling units", f"{self.n_psu:,}"),
            ("Design df", f"{self.df:,}"),
        ]


def check_df(n_psu: int, n_strata: int) -> None:
    """Refuse a design without a degree of freedom."""
    if n_psu <= n_strata:
        raise InputError(
            f"the design has {plural(n_psu, 'primary sampling unit')} in "
            f"{n_strata:,} {'stratum' if n_strata == 1 else 'strata'}, which leaves no degree of "
            "freedom for a variance"
        )


def linearized_design(cells: Cells, seen: Mask) -> SurveyDesign:
    """Count the units and strata of a design; ``seen`` says which units have a row of the fit.

    As in Stata, strata without such a row are not counted.
    """
    assert cells.strata is not None
    counts = np.bincount(cells.strata)
    used = np.bincount(cells.strata, weights=seen) > 0
    n_psu, n_strata = int(counts[used].sum()), int(np.count_nonzero(used))
    check_df(n_psu, n_strata)
    alone = int(np.count_nonzero(used & (counts == 1)))
    return SurveyDesign(n_psu, n_strata, n_psu - n_strata, alone, int(np.count_nonzero(~used)))

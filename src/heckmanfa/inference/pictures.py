"""Pictures of a fitted model: the numbers of each, which know their scene."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.inference.fit_rows import FitRows
from heckmanfa.inference.imr_pictures import imr_estimates_of
from heckmanfa.inference.rho_pictures import over_rho_of, rho_by_assignment_of
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.plots.assignment_columns import AssignmentColumns
from heckmanfa.plots.assumed_rho import OverRho
from heckmanfa.plots.chance_bars import Chances, SelectionChances
from heckmanfa.plots.correction_pictures import ImrEstimates, RhoByAssignment
from heckmanfa.plots.fit_checks import CalibrationPicture, ResidualBars
from heckmanfa.plots.forest_intervals import Forest
from heckmanfa.plots.overlap_bars import SelectionOverlap
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.selection_rows import SelectionMargins, SelectionProfiles
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.evidence_pictures import (
    chances_of,
    columns_of,
    forest_of,
    selection_chances_of,
)

_OF_ROWS = frozenset({"margins", "profiles", "overlap", "residuals", "calibration"})


class Pictures:
    """The pictures of a fitted model, each made when it is first read.

    A picture that has nothing to show for this model is None. Each has ``text()``, the words
    around it with its numbers as a table; ``scene()``, these words with the marks that are drawn;
    ``svg(width)``, a drawing as text; and ``draw(ax)``, which draws it with Matplotlib.

    Parameters
    ----------
    evidence : Evidence
        The numbers of the first screen.
    rows : PictureRows, optional
        The rows of the fit. Without them, pictures that need them are refused.
    """

    def __init__(self, evidence: Evidence, rows: PictureRows | None = None) -> None:
        self.evidence = evidence
        self._rows = rows

    @cached_property
    def forest(self) -> Forest:
        """P1: effects of the likeliest features by up to three models, with intervals."""
        return forest_of(self.evidence)

    @cached_property
    def chances(self) -> Chances | None:
        """P2: how sure it is that each feature predicts; None without chances."""
        return chances_of(self.evidence)

    @cached_property
    def selection_chances(self) -> SelectionChances | None:
        """How sure it is that each feature drives selection; None if that was not searched."""
        return selection_chances_of(self.evidence)

    @cached_property
    def assignments(self) -> AssignmentColumns | None:
        """P3: the best assignments, each as wide as its weight; None without weights."""
        return columns_of(self.evidence)

    @cached_property
    def margins(self) -> SelectionMargins | None:
        """P4: what moves the probability of being selected; None if all are."""
        return self._needed("margins").margins()

    @cached_property
    def profiles(self) -> SelectionProfiles | None:
        """P5: rows with an outcome beside those without; None if all have one."""
        return self._needed("profiles").profiles()

    @cached_property
    def rho(self) -> RhoByAssignment | None:
        """P6: rho by assignment; None without weights."""
        return rho_by_assignment_of(self.evidence)

    @cached_property
    def over_rho(self) -> OverRho | None:
        """P7: coefficients, or average slopes, over an assumed rho; None if no outcome is missing.

        Those of a binary outcome need its rows, in memory.
        """
        if "compressed data" not in self.evidence.fit.family.supports:
            self._needed("over_rho")
        return over_rho_of(self.evidence, self._fit_rows)

    @cached_property
    def overlap(self) -> SelectionOverlap | None:
        """P8: probabilities of being selected; None if all are, or rows are not in memory."""
        return self._needed("overlap").overlap()

    @cached_property
    def imr(self) -> ImrEstimates | None:
        """P9: the coefficient of lambda in several ways.

        None if no outcome is missing, or if lambda has no coefficient, as of a binary outcome.
        """
        if not self.evidence.fit.family.has_imr:
            return None
        return imr_estimates_of(self.evidence, self._fit_rows)

    @cached_property
    def residuals(self) -> ResidualBars | None:
        """P10: residuals beside the normal curve.

        None if rows are not in memory, or if the outcome is binary, which has `calibration`.
        """
        if "residuals" not in self.evidence.fit.family.supports:
            return None
        return self._needed("residuals").residuals(self._best)

    @cached_property
    def calibration(self) -> CalibrationPicture | None:
        """P10 of a binary outcome: predicted probabilities beside what happened, in sample.

        None if rows are not in memory, or if the outcome is not binary.
        """
        if "calibration" not in self.evidence.fit.family.supports:
            return None
        return self._needed("calibration").calibration()

    def known(self, name: str) -> Picture | None:
        """Return a picture by its name; None if it needs rows that were not given."""
        needs_rows = name in _OF_ROWS or (
            name == "over_rho" and "compressed data" not in self.evidence.fit.family.supports
        )
        picture: Picture | None = None
        if self._rows is not None or not needs_rows:
            picture = getattr(self, name)
        return picture

    @property
    def _best(self) -> Mask | None:
        """The best assignment of an average; None if the model has a single one."""
        average = self.evidence.fit.average
        if average is None:
            return None
        if self.evidence.best is not None:
            return self.evidence.best.mask
        # Sampling weights leave no BIC, but the average has weights of its own.
        return np.asarray(average.mixture.leading_masks[0])

    def _needed(self, picture: str) -> PictureRows:
        """Return the rows of the fit; refuse a picture that needs them if they were not given."""
        if self._rows is None:
            raise InputError(
                f"the picture {picture!r} needs the rows of the fit: pass X and y (and selected, "
                "sample_weight) as they were passed to fit"
            )
        return self._rows

    @cached_property
    def _fit_rows(self) -> FitRows | None:
        """The rows as both equations have them; None if not given, or not in memory."""
        return None if self._rows is None else self._rows.fit_rows

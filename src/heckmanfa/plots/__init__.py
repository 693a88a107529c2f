"""Pictures of what models report, as scenes, and functions that draw them with Matplotlib.

That needs the extra ``plots``. Every function draws on the Axes given or, without any, on a new
figure, which usually fits a column of a journal. It returns the Axes, so a caller can add to
them, change them, or save the figure with ``ax.figure.savefig(...)``.

A ``source`` is a fitted model or an `Analysis`. ``X``, ``y``, ``selected`` and ``sample_weight``
are what was passed to `Heckman.fit`; an `Analysis` has them. For a model from formulas, ``X`` is
the data frame, and ``y`` is left out.
"""

from __future__ import annotations

from heckmanfa.plots.effect_intervals import treatment_effects
from heckmanfa.plots.forest_intervals import coefficients
from heckmanfa.plots.overlap_bars import imr_overlap
from heckmanfa.plots.public_pictures import (
    assignments,
    calibration,
    chances,
    forest,
    imr_estimates,
    over_rho,
    overlap,
    people,
    profiles,
    residuals,
    rho_by_assignment,
    selection_margins,
    treatment_overlap,
)
from heckmanfa.plots.rho_curves import rho_profile, uncertainty
from heckmanfa.plots.search_pictures import assignment_path, specification_curve

__all__ = [
    "assignment_path",
    "assignments",
    "calibration",
    "chances",
    "coefficients",
    "forest",
    "imr_estimates",
    "imr_overlap",
    "over_rho",
    "overlap",
    "people",
    "profiles",
    "residuals",
    "rho_by_assignment",
    "rho_profile",
    "selection_margins",
    "specification_curve",
    "treatment_effects",
    "treatment_overlap",
    "uncertainty",
]

"""Pictures of what models report, by Matplotlib (the extra ``plots``).

Every function returns its Axes, so that a caller can add to them, change them, or save the figure
with ``ax.figure.savefig(...)``. Those that are not given any draw on a new figure, most of them
one that fits a column of a journal as it is.
"""

from __future__ import annotations

from heckmanfa.plots._coefficients import coefficients
from heckmanfa.plots._overlap import imr_overlap
from heckmanfa.plots._profile import rho_profile
from heckmanfa.plots._search import specification_curve
from heckmanfa.plots._training import assignment_path
from heckmanfa.plots._uncertainty import uncertainty

__all__ = [
    "assignment_path",
    "coefficients",
    "imr_overlap",
    "rho_profile",
    "specification_curve",
    "uncertainty",
]

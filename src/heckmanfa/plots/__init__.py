"""Pictures of what models report: the data that a picture shows, and Matplotlib Axes of it.

Drawing needs the extra ``plots``. Every function returns its Axes, so a caller can add to them,
change them, or save the figure with ``ax.figure.savefig(...)``. Without Axes, a function draws on
a new figure, which usually fits a column of a journal.
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

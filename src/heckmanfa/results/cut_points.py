"""The cut points of an ordered outcome, as Stata has them, with their standard errors.

The prediction equation has an intercept b0, and the first cut point is zero: Stata's are -b0, and
-b0 plus the steps up to each.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.fit.ordered_cut import cuts_by
from heckmanfa.results.distribution import check_level, distribution_of
from heckmanfa.results.document import Section


def cut_values(fit: Fit) -> Floats:
    """(J - 1,) cut points on the scale of x'b without an intercept."""
    return np.asarray(cuts_by(fit.error_values) - fit.intercept)


def cut_points(fit: Fit, conf_level: float) -> pd.DataFrame:
    """Return cut points with standard errors and intervals; see `HeckmanOrdered.cut_points`."""
    classes = fit.ordered_classes
    if classes is None:
        raise InputError("this model has no cut points: its outcome has no ordered classes")
    check_level(conf_level)
    values = cut_values(fit)
    jacobian = np.zeros((len(values), len(fit.terms)))
    jacobian[:, fit.terms.index(("prediction", "Intercept"))] = -1.0
    for place in range(1, len(values)):
        jacobian[place:, fit.terms.index(("errors", f"step{place + 1}"))] = 1.0
    with np.errstate(invalid="ignore"):
        error = np.sqrt(np.diag(jacobian @ fit.covariance @ jacobian.T))
    reach = distribution_of(fit).quantile(conf_level) * error
    return pd.DataFrame(
        {
            "below": classes[:-1],
            "above": classes[1:],
            "estimate": values,
            "std_error": error,
            "ci_low": values - reach,
            "ci_high": values + reach,
        },
        index=pd.Index([f"cut{place}" for place in range(1, len(classes))], name="cut"),
    )


def cut_section(fit: Fit, conf_level: float) -> Section:
    """Return the part of a summary with the cut points."""
    note = (
        "On the scale of the prediction equation without its intercept, as in Stata: the first is "
        "minus the intercept, and the steps are the distances between neighbours."
    )
    return Section("Cut points", table=cut_points(fit, conf_level).reset_index(), notes=(note,))

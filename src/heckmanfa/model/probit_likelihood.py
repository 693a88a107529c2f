"""Full-information maximum likelihood of the Heckman probit, the model of a binary outcome.

The climb is that of `likelihood`. It starts from two separate probits, which are the maximum at
rho = 0, corrected to first order for a rho that one step from there or, with many rows, a sample
gives: all rows are then read three or four times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows
from heckmanfa.model.climbing import ascent, newton
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.joint_problem import JointProblem
from heckmanfa.model.likelihood import Doubt, JointMaximum, maximize, maximize_held
from heckmanfa.model.likelihood_starts import ProbitStarts, Start
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit, pilot_of
from heckmanfa.model.probit_likelihood_terms import ProbitProblem, mean_slopes
from heckmanfa.text.option_words import instead, option

_PICTURE = f"the picture over rho in the report ({option('report')})"
_PILOT_DECREMENT = 1e-3
_PILOT_ITERATIONS = 12
# A sample whose rho is closer to one than this says little about that of all rows.
_PILOT_ATANH = 2.0
BOUNDARY_ATANH = 5.0
"""Beyond this the likelihood is flat: a rho of .99991 is at the boundary, and no maximum. A climb
that stops there was on its way to |rho| = 1."""


@dataclass(frozen=True)
class ProbitMaximum(JointMaximum):
    """Maximum-likelihood estimates of the Heckman probit."""

    usual_start: ClassVar[str] = "two separate probits"
    # The likelihood is bounded: what is not its highest point is not the estimate.
    hiding: ClassVar[frozenset[Doubt]] = frozenset({"boundary", "flat", "lower"})
    mean_slopes: Floats
    """(2,) average of phi(x'beta) over the selected rows, and of the plain probit's phi(x'b)"""
    mean_slope_gradients: Floats
    """(1 + J, 2) their derivatives in beta and in b"""

    @property
    def instead(self) -> str:
        """What to do if the climb does not converge."""
        if abs(self.atanh_rho) < BOUNDARY_ATANH:
            return "use another set of features"
        return (
            "the likelihood rises up to |rho| = 1, as it often does with few rows: see "
            f"{instead('uncertainty_interval()', _PICTURE)} for what smaller rho would mean, or "
            "use another set of features"
        )

    @property
    def cures(self) -> str:
        """What to do if rho is practically one, or not known."""
        return (
            "Look for a stronger exclusion or let fewer features predict, and see "
            f"{instead('profile_rho() and uncertainty_interval(), which hold rho', _PICTURE)}."
        )

    @property
    def levelled_off(self) -> bool:
        """Whether the likelihood is level on its way to |rho| = 1, where it has no maximum.

        Where no row lies near both thresholds, it levels off so soon that steps along atanh rho no
        longer gain anything. A maximum has a curvature, which says where atanh rho is.
        """
        size = abs(self.atanh_rho)
        return size >= BOUNDARY_ATANH and not float(self.inner_covariance[-1, -1]) < size**2

    def reported_covariance(self) -> Floats:
        """Covariance of prediction, selection and rho, by the delta method."""
        jacobian = np.ones(len(self.covariance))
        jacobian[-1] = 1.0 - self.rho**2
        return np.asarray(self.covariance * jacobian * jacobian[:, None])


def fit_probit_likelihood(
    moments: Moments,
    probit: Probit,
    naive: Probit,
    kind: CovarianceKind,
    rows: Rows,
    start: Start = None,
    *,
    rho: float | None = None,
    alone: bool = False,
) -> ProbitMaximum:
    """Maximise the joint likelihood of selection and a binary outcome, one pass per iteration.

    ``naive`` is the plain probit of the selected rows, in the coordinates of the compressed data;
    it provides the prediction features. ``start`` may be a rho or a parameter vector. Other maxima
    are looked for unless the one reached is wanted ``alone``. With a ``rho``, all else is
    estimated at that value: given rho, the likelihood is concave. The classical covariance is the
    inverse observed information.
    """
    problem = ProbitProblem.build(moments, probit, naive.features)
    starts = ProbitStarts.build(moments, probit, naive, problem)
    if rho is None:
        usual = probit_start(rows, problem, starts)
        # A few rows say little about rho here: on them the likelihood may rise where it does not.
        some = pilot_of(rows)
        given = naive.features, kind, usual, starts, start, some
        found = maximize(rows, problem, *given, alone=alone)
    else:
        found = maximize_held(rows, problem, naive.features, kind, starts, rho)
    slopes = mean_slopes(rows, problem, found["inner_params"], naive.inner_coef)
    reached = ProbitMaximum(
        **found,
        index_range=slopes.index_range,
        mean_slopes=slopes.mean,
        mean_slope_gradients=solve_upper(problem.prediction_back, slopes.gradient, transposed=True),
    )
    # Replicates keep it: without those near |rho| = 1, intervals would be too short.
    levelled = rho is None and not alone and reached.levelled_off
    return replace(reached, converged=reached.converged and not levelled).reported()


def probit_start(rows: Rows, problem: JointProblem, starts: ProbitStarts) -> Floats:
    """Return the separate probits, corrected to first order for a rho from a few passes.

    The first rho comes from one Newton step at rho = 0. If there are many rows, a sample's optimum
    and one step on a larger sample improve it.
    """
    pilot = pilot_of(rows)
    theta = _corrected(pilot, problem, starts, 0.0)
    if pilot is rows:
        return theta
    state, _, converged = newton(
        pilot, problem, theta, tolerance=_PILOT_DECREMENT, max_iterations=_PILOT_ITERATIONS
    )
    if not converged or abs(state.theta[-1]) > _PILOT_ATANH:
        return theta
    return _corrected(rows.pilot(len(rows) // 4), problem, starts, float(state.theta[-1]))


def _corrected(rows: Rows, problem: JointProblem, starts: ProbitStarts, atanh_rho: float) -> Floats:
    """Take one Newton step from a value of atanh rho, and correct the probits for its rho."""
    state = problem.evaluate(rows, starts.at(atanh_rho))
    if not np.isfinite(state.log_likelihood):
        return starts.at(atanh_rho)
    return starts.at(float(state.theta[-1] + ascent(state, len(state.theta))[-1]))

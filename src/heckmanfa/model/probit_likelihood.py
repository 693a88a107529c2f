"""Full-information maximum likelihood of the Heckman probit, the model of a binary outcome.

With u = z'gamma, eta = x'beta and q = 2y - 1, a selected row contributes
log Phi2(q eta, u; q rho) and an unselected one log Phi(-u). The first derivatives in h = q eta, u
and t = atanh rho come with Phi2. Since the derivative of Phi2 in rho is its density, the second
ones are products of these: nothing else is integrated.

The likelihood is maximised as in `likelihood`. Newton's method starts from two separate probits,
which are the maximum at rho = 0, corrected to first order for a rho that one step from there or,
with many rows, a sample gives: all rows are then read three or four times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from heckmanfa.data.arrays import (
    Array,
    Floats,
    empty,
    highest,
    host,
    lowest,
    namespace,
)
from heckmanfa.data.rows import Block, Rows, total
from heckmanfa.model.bivariate_normal import log_cdf_and_slopes
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.error_terms import RHO, ErrorTerm
from heckmanfa.model.joint_problem import (
    SelectionProblem,
    State,
    unselected_terms,
    widest,
)
from heckmanfa.model.likelihood import Doubt, JointMaximum, maximize, maximize_held
from heckmanfa.model.linalg import Coordinates, Design, solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import ProbitStarts, Start, StartsByRho, newton, newton_step
from heckmanfa.model.probit import Probit, pilot_of
from heckmanfa.text.option_words import instead, option

_PICTURE = f"the picture over rho in the report ({option('report')})"
_PILOT_DECREMENT = 1e-3
_PILOT_ITERATIONS = 12
# A sample whose rho is closer to one than this says little about that of all rows.
_PILOT_ATANH = 2.0
BOUNDARY_ATANH = 5.0
"""Beyond this the likelihood is flat: a rho of .99991 is at the boundary, and no maximum. Newton's
method ends there on its way to |rho| = 1."""
_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


def average_slopes(
    coef: Floats, covariance: Floats, mean_slope: float, gradient: Floats
) -> tuple[Floats, Floats]:
    """Return average slopes of a probit, (J,), and their covariance, (J, J).

    Parameters
    ----------
    coef : array of shape (1 + J,)
        The intercept first.
    covariance : array of shape (1 + J, 1 + J)
    mean_slope : float
        Average of phi(x'coef).
    gradient : array of shape (1 + J,)
        Its derivative in the coefficients.
    """
    slopes = coef[1:] * mean_slope
    jacobian = np.outer(coef[1:], gradient)
    jacobian[:, 1:] += mean_slope * np.eye(len(slopes))
    return slopes, jacobian @ covariance @ jacobian.T


@dataclass(frozen=True)
class FlatMaximum(JointMaximum):
    """Maximum-likelihood estimates of an outcome of classes, whose likelihood is bounded."""

    # What is not the highest point of a bounded likelihood is not the estimate.
    hiding: ClassVar[frozenset[Doubt]] = frozenset({"boundary", "flat", "lower"})

    @property
    def instead(self) -> str:
        """What to do if Newton's method does not converge."""
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
        return size >= BOUNDARY_ATANH and not self.atanh_rho_variance < size**2

    def settled(self, *, free: bool) -> Self:
        """Return what is reported; a ``free`` rho that levelled off has not converged.

        Replicates keep it: without those near |rho| = 1, intervals would be too short.
        """
        levelled = free and self.levelled_off
        return replace(self, converged=self.converged and not levelled).reported()


@dataclass(frozen=True, eq=False)
class Apart:
    """Both equations apart, the maximum at rho = 0; and the joint likelihood, which starts there.

    J is the number of prediction features.
    """

    problem: SelectionProblem
    starts: StartsByRho
    features: tuple[int, ...]
    """those that predict"""
    coef: Floats
    """(1 + J,) of the model of the selected rows alone, intercept first"""
    covariance: Floats
    """(1 + J, 1 + J) its classical covariance"""
    log_likelihood: float
    """of both equations"""
    converged: bool

    def maximize(
        self, kind: CovarianceKind, rows: Rows, start: Start, *, rho: float | None, alone: bool
    ) -> dict[str, Any]:
        """Maximise the joint likelihood, or all else at a ``rho``; return fields of a maximum."""
        if rho is not None:
            return maximize_held(rows, self.problem, self.features, kind, self.starts, rho)
        usual = usual_start(rows, self.problem, self.starts)
        # A few rows say little about rho here: on them the likelihood may rise where it does not.
        options = self.features, kind, usual, self.starts, start, pilot_of(rows)
        return maximize(rows, self.problem, *options, alone=alone)


@dataclass(frozen=True, eq=False)
class ProbitsApart(Apart):
    """Two separate probits."""

    naive: Probit
    """that of the selected rows"""


def probits_apart(moments: Moments, probit: Probit, naive: Probit) -> ProbitsApart:
    """Set up the joint likelihood of two probits; ``naive`` gives the prediction features."""
    problem = ProbitProblem.build(moments, probit, naive.features)
    return ProbitsApart(
        problem,
        ProbitStarts.build(moments, probit, naive, problem),
        naive.features,
        naive.coef,
        naive.covariance,
        probit.log_likelihood + naive.log_likelihood,
        naive.converged,
        naive,
    )


@dataclass(frozen=True)
class ProbitMaximum(FlatMaximum):
    """Maximum-likelihood estimates of the Heckman probit."""

    usual_start: ClassVar[str] = "two separate probits"
    mean_slopes: Floats
    """(2,) average of phi(x'beta) over the selected rows, and of the plain probit's phi(x'b)"""
    mean_slope_gradients: Floats
    """(1 + J, 2) their derivatives in beta and in b"""


def fit_probit_likelihood(
    apart: ProbitsApart,
    kind: CovarianceKind,
    rows: Rows,
    start: Start = None,
    *,
    rho: float | None = None,
    alone: bool = False,
) -> ProbitMaximum:
    """Maximise the joint likelihood of selection and a binary outcome, one pass per iteration.

    ``start`` may be a rho or a parameter vector. Other maxima are looked for unless the one reached
    is wanted ``alone``. With a ``rho``, all else is estimated at that value: given rho, the
    likelihood is concave. The classical covariance is the inverse observed information.
    """
    problem = apart.problem
    assert isinstance(problem, ProbitProblem)
    estimates = apart.maximize(kind, rows, start, rho=rho, alone=alone)
    slopes = mean_slopes(rows, problem, estimates["inner_params"], apart.naive.inner_coef)
    reached = ProbitMaximum(
        **estimates,
        index_range=slopes.index_range,
        mean_slopes=slopes.mean,
        mean_slope_gradients=solve_upper(problem.prediction_back, slopes.gradient, transposed=True),
    )
    return reached.settled(free=rho is None and not alone)


def usual_start(rows: Rows, problem: SelectionProblem, starts: StartsByRho) -> Floats:
    """Return both equations apart, corrected to first order for a rho from a few passes.

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
    atanh_rho = float(state.theta[problem.place("rho")])
    if not converged or abs(atanh_rho) > _PILOT_ATANH:
        return theta
    return _corrected(rows.pilot(len(rows) // 4), problem, starts, atanh_rho)


def _corrected(
    rows: Rows, problem: SelectionProblem, starts: StartsByRho, atanh_rho: float
) -> Floats:
    """Take one Newton step from a value of atanh rho, and correct the probits for its rho."""
    state = problem.evaluate(rows, starts.at(atanh_rho))
    if not np.isfinite(state.log_likelihood):
        return starts.at(atanh_rho)
    place = problem.place("rho")
    return starts.at(float(state.theta[place] + newton_step(state)[place]))


@dataclass(frozen=True)
class ProbitProblem(SelectionProblem):
    """The model of a binary outcome, coded 0 and 1."""

    ends: ClassVar[tuple[ErrorTerm, ...]] = (RHO,)
    many_maxima: ClassVar[bool] = True

    @staticmethod
    def outcome_units(moments: Moments) -> tuple[float, float]:
        """Return 0 and 1: the error has variance one, so the outcome has no units."""
        return 0.0, 1.0

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scalars, others, other_gram, vectors, in_u, in_eta, across = total(
                rows.map(_terms, self, theta, columns=self.columns, merge=total)
            )
            value, n, d_t, d_tt = (float(term) for term in scalars)
            p, j = self.sizes
            # gamma is written on the first columns of the design, beta on all of them.
            to_beta = self.prediction
            gradient = np.concatenate([vectors[:p, 0] - others, to_beta.T @ vectors[:, 1], [d_t]])
            beta, rho = slice(p, p + j), self.place("rho")
            hessian = np.zeros((self.size, self.size))
            hessian[:p, :p] = -in_u - other_gram
            hessian[:p, beta] = across[:p] @ to_beta
            hessian[beta, beta] = -to_beta.T @ in_eta @ to_beta
            hessian[:p, rho] = vectors[:p, 2]
            hessian[beta, rho] = to_beta.T @ vectors[:, 3]
            hessian[rho, rho] = d_tt
        return State.of(theta, value, gradient, hessian, n, 1)

    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        """Log-likelihood and first derivatives of selected rows; see `JointProblem`."""
        sign = 2.0 * outcome - 1.0
        value, in_mean, in_u, in_rho = log_cdf_and_slopes(
            sign * mean, index, float(theta[self.place("rho")]), sign
        )
        return [value, sign * in_mean, in_u, in_rho]


@dataclass(frozen=True, eq=False)
class MeanSlopes:
    """What a last pass over the selected rows gives, at the estimates of two models."""

    index_range: tuple[float, float]
    """range of z'gamma"""
    mean: Floats
    """(2,) average of phi(x'beta), and of phi(x'b) of the plain probit"""
    gradient: Floats
    """(1 + j, 2) their derivatives in beta and in b, in the coordinates of beta"""


def mean_slopes(rows: Rows, problem: ProbitProblem, theta: Floats, naive: Floats) -> MeanSlopes:
    """Average phi(x'beta) over the selected rows, at theta and at the plain probit's ``naive``."""
    parts = list(
        rows.map(_slope_terms, problem, theta, naive, columns=problem.columns, merge=_merge_slopes)
    )
    (m, summed, moments), reach = _merge_slopes(parts)
    return MeanSlopes(reach, summed / m, -problem.prediction.T @ moments / m)


def outcome_slopes(rows: Rows, probit: Probit) -> tuple[float, Floats]:
    """Average phi(x'b) over the selected rows at a plain probit's b, and its gradient in b."""
    args = (probit.coordinates, probit.inner_coef)
    m, summed, moments = total(
        rows.map(_outcome_slope_terms, *args, columns=probit.features, merge=total)
    )
    back = probit.coordinates.back()
    return float(summed / m), solve_upper(back, -moments / m, transposed=True)


# Functions over one block of rows. -----------------------------------------------------------


def _terms(block: Block, problem: ProbitProblem, theta: Floats) -> tuple[Floats, ...]:
    """Sums over a block for the log-likelihood and its derivatives.

    First (4,) scalars: the log-likelihood, the number of rows, and derivatives in t and tt. Of
    unselected rows, lambda(-u) z and delta(-u) z z'. Of selected rows, (1 + k, 4), the design times
    derivatives in u, x'beta, ut and (x'beta)t; and products of the design times minus the
    derivatives in uu and in (x'beta)^2, and those in u x'beta.
    """
    p, _ = problem.sizes
    value, n, in_gamma, in_gammas = unselected_terms(block, problem, theta)
    chosen = block.only_selected()
    design, (u, eta) = problem.indices(chosen, theta)
    xp, t, sign = namespace(u), float(theta[problem.place("rho")]), 2.0 * chosen.outcome - 1.0
    h = sign * eta
    log_cdf, d_h, d_u, d_t = log_cdf_and_slopes(h, u, t, sign)
    rho, cosh2, both = float(np.tanh(t)), float(np.cosh(t)) ** 2, float(np.sinh(t) * np.cosh(t))
    # Density over probability, times rho of this row, and times q.
    tilt, dense = both * d_t, cosh2 * d_t
    from_h, from_u = h - rho * (sign * u), u - rho * (sign * h)
    in_uu = d_u * (u + d_u) + tilt
    in_hh = d_h * (h + d_h) + tilt
    in_tt = d_t * (sign * (h * u) - rho - rho * cosh2 * (h * from_h + u * from_u)) - d_t * d_t
    columns = empty(chosen.features, len(u), 4)
    columns[:, 0] = d_u
    columns[:, 1] = sign * d_h
    columns[:, 2] = -from_u * dense - d_u * d_t
    columns[:, 3] = -sign * (from_h * dense + d_h * d_t)
    mixed = dense - sign * (d_h * d_u)
    each = xp.stack((log_cdf, d_t, in_tt))
    if chosen.weight is None:
        m, summed = float(len(u)), host(each.sum(axis=1))
    else:
        m, summed = float(chosen.weight.sum()), host(each @ chosen.weight)
        columns *= chosen.weight[:, None]
        in_uu, in_hh, mixed = (chosen.weight * second for second in (in_uu, in_hh, mixed))
    # The likelihood is log-concave in both indices; rounding may say otherwise in far tails.
    in_uu, in_hh = (
        xp.where(second > 0, second, xp.zeros_like(second)) for second in (in_uu, in_hh)
    )
    return (
        np.array([value + summed[0], n + m, *summed[1:]]),
        in_gamma,
        in_gammas,
        design.pull(columns),
        design.gram(in_uu)[:p, :p],
        design.gram(in_hh),
        design.products(mixed),
    )


def _slope_terms(
    block: Block, problem: ProbitProblem, theta: Floats, naive: Floats
) -> tuple[tuple[float, Floats, Floats], tuple[float, float]]:
    """`_densities` of a block's selected rows at theta and at ``naive``, and the range of u."""
    block = block.only_selected()
    design, (u, *indices) = problem.indices(block, theta, naive)
    sums = _densities(block, design, namespace(u).stack(indices, axis=1))
    return sums, (lowest(u), highest(u))


def _outcome_slope_terms(
    block: Block, coordinates: Coordinates, coef: Floats
) -> tuple[float, Floats, Floats]:
    block = block.only_selected()
    design = coordinates.design(block.features)
    m, summed, moments = _densities(block, design, design.times(coef)[:, None])
    return m, summed[0], moments[:, 0]


def _densities(block: Block, design: Design, index: Array) -> tuple[float, Floats, Floats]:
    """Rows, and sums of phi and of the design times index phi, for indices (b, i)."""
    density = namespace(index).exp(-0.5 * index * index) / _ROOT_2PI
    m = float(len(index))
    if block.weight is not None:
        density *= block.weight[:, None]
        m = float(block.weight.sum())
    return m, host(density.sum(axis=0)), design.pull(index * density)


def _merge_slopes(
    parts: list[tuple[tuple[float, Floats, Floats], tuple[float, float]]],
) -> tuple[tuple[float, Floats, Floats], tuple[float, float]]:
    m, summed, moments = total(sums for sums, _ in parts)
    return (m, summed, moments), widest([reach for _, reach in parts])

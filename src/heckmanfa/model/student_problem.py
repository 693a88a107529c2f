"""The joint likelihood of Marchenko and Genton's selection-t model.

(u, e) of the two equations, e in units of sigma, are bivariate t with nu degrees of freedom and
correlation rho (Marchenko and Genton, 2012, "A Heckman selection-t model", Journal of the American
Statistical Association 107). With u = z'gamma, e = (y - x'beta) / sigma and w = 1 / nu, a selected
row contributes

    log t_nu(e) - log sigma + log T_(nu + 1)(a),
    a = sqrt((1 + w) / (1 + w e^2)) (u + rho e) / sqrt(1 - rho^2),

and an unselected one log T_nu(-u). The likelihood has nu as omega = nu^(-1/2). It is even and
smooth in omega, so the normal model, omega = 0, is a stationary point like any other: Newton's
method needs no bound, and has its highest point at 0 where tails are not heavier than normal ones.
Away from 0 it steps in w = omega^2, in which the likelihood is nearly a parabola up to 0. All
derivatives, those in nu included, are analytic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from heckmanfa.data.arrays import Array, Floats, host, like
from heckmanfa.data.rows import Block, Rows, total
from heckmanfa.model.error_terms import RHO, SIGMA, ErrorTerm, Transform
from heckmanfa.model.joint_problem import LinearProblem, State
from heckmanfa.model.linalg import Design
from heckmanfa.model.student import log_density, slope_of_ratio, student_sums

LARGEST_OMEGA = 3.2
"""beyond it, nu is below 0.1: the likelihood may rise without end where a few rows fit exactly"""


# What counts as 0, the least curvature of a saddle there, and where to go on from it.
_AT_ZERO, _RISES, _BEYOND = 1e-6, 1e-6, 0.1
# Where Newton's method steps in w: closer to 0, derivatives in w lose their digits.
_IN_W = 1e-4


def _to_df(omega: Any) -> Any:
    """Return nu; infinite where omega, or the end of an interval of it, is not positive."""
    omega = np.maximum(np.asarray(omega, dtype=np.float64), 0.0)
    with np.errstate(divide="ignore"):
        return (1.0 / np.square(omega))[()]


def _from_df(df: float) -> float:
    return 1.0 / float(np.sqrt(df))


def _slope_of_df(df: float) -> float:
    return -2.0 * float(df) * float(np.sqrt(df))


DF = ErrorTerm(
    "df", 0.0, transform=Transform(_from_df, _to_df, _slope_of_df, "1/sqrt"), tested=False
)
"""degrees of freedom, estimated on the scale of their root's inverse: 0 is the normal model"""


@dataclass(frozen=True)
class StudentProblem(LinearProblem):
    """The model of a linear outcome whose errors are t."""

    ends: ClassVar[tuple[ErrorTerm, ...]] = (DF, SIGMA, RHO)

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        """Log-likelihood, gradient and Hessian at theta, from sums over rows."""
        p, j = self.sizes
        if abs(theta[self.place("df")]) > LARGEST_OMEGA:
            nothing = np.zeros((self.size, self.size))
            return State(theta, -np.inf, nothing[0], nothing, 1.0, len(self.ends))
        with np.errstate(over="ignore", invalid="ignore"):
            scalars, vectors, grams = total(
                rows.map(_terms, self, theta, columns=self.columns, merge=total)
            )
            value, n, gradient_ends, ends = scalars[0], scalars[1], scalars[2:5], scalars[5:]
            to_beta = self.prediction
            in_u, in_mean = vectors[:, :4], to_beta.T @ vectors[:, 4:]
            gradient = np.concatenate([in_u[:p, 0], in_mean[:, 0], gradient_ends])
            hessian = np.zeros((self.size, self.size))
            beta, last = slice(p, p + j), slice(p + j, None)
            uu, across, both = grams
            hessian[:p, :p] = uu[:p, :p]
            hessian[:p, beta] = across[:p] @ to_beta
            hessian[beta, beta] = to_beta.T @ both @ to_beta
            hessian[:p, last] = in_u[:p, 1:]
            hessian[beta, last] = in_mean[:, 1:]
            hessian[last, last][np.triu_indices(3)] = ends
        return State.of(theta, float(value), gradient, hessian, float(n), len(self.ends))

    def beyond_saddle(self, state: State, free: Any) -> Floats | None:
        """Leave omega = 0, where the slope is always 0, if the likelihood rises from there."""
        place = self.place("df")
        along = np.eye(self.size) if free is None else np.asarray(free)
        moves = place in along if along.ndim == 1 else bool(np.any(along[place] != 0.0))
        at_zero = abs(float(state.theta[place])) < _AT_ZERO
        if not (moves and at_zero and state.hessian[place, place] > _RISES):
            return None
        beyond = state.theta.copy()
        beyond[place] = _BEYOND
        return beyond

    def stepping(self, state: State) -> State:
        """Return a state's derivatives in w in place of omega; in omega close to 0."""
        place = self.place("df")
        omega = float(state.theta[place])
        if abs(omega) < _IN_W:
            return state
        gradient, hessian = state.gradient.copy(), state.hessian.copy()
        slope = gradient[place] / (2.0 * omega)
        hessian[place, place] -= 2.0 * slope
        for part in (gradient, hessian, hessian.T):
            part[place] /= 2.0 * omega
        return replace(state, gradient=gradient, hessian=hessian)

    def moved(self, theta: Floats, step: Floats) -> Floats:
        """Return theta after a step in w, which ends at 0; in omega close to 0."""
        place, after = self.place("df"), theta + step
        omega = float(theta[place])
        if abs(omega) >= _IN_W:
            w = max(omega**2 + float(step[place]), 0.0)
            after[place] = np.copysign(np.sqrt(w), omega)
        return after

    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        """Log-likelihood and first derivatives of selected rows; see `JointProblem`."""
        e = self.standardized(mean, outcome, theta)
        terms = selected_terms(host(index), host(e), self._ends(theta), second=False)
        return [like(terms[name], index) for name in ("value", "m", "u", "o", "s", "t")]

    def row_scores(self, block: Block, theta: Floats) -> Array:
        """(b, d) derivative of each row's log-likelihood, before weights."""
        scores = super().row_scores(block, theta)
        p, _ = self.sizes
        z = self.unselected(block)[1]
        in_u, in_omega = self._unselected_slopes(z, theta)
        scores[~block.selected, :p] = z.scaled(in_u)
        scores[~block.selected, self.place("df")] = in_omega
        return scores

    def row_slopes(self, block: Block, theta: Floats, direction: Floats) -> Array:
        """(b,) `row_scores` times a direction, without the (b, d) scores."""
        slopes = super().row_slopes(block, theta, direction)
        p, _ = self.sizes
        z = self.unselected(block)[1]
        in_u, in_omega = self._unselected_slopes(z, theta)
        along = z.times(direction[:p])
        slopes[~block.selected] = in_u * along + in_omega * float(direction[self.place("df")])
        return slopes

    def _unselected_slopes(self, z: Design, theta: Floats) -> tuple[Array, Array]:
        """Derivatives of unselected rows in z'gamma and in omega."""
        index = z.times(theta[: self.sizes[0]])
        omega = float(theta[self.place("df")])
        terms = student_sums(-host(index), omega**2)
        return like(-terms.ratio, index), like(2.0 * omega * terms.in_w, index)

    def _ends(self, theta: Floats) -> tuple[float, float, float]:
        omega, log_sigma, atanh_rho = (float(end) for end in theta[-3:])
        return omega, log_sigma, atanh_rho

    def standardized(self, mean: Array, outcome: Array, theta: Floats) -> Array:
        """Return e of selected rows."""
        sigma = float(np.exp(theta[self.place("sigma")]))
        return ((outcome - self.centre) / self.scale - mean) / sigma


def selected_terms(
    u: Floats, e: Floats, ends: tuple[float, float, float], *, second: bool = True
) -> dict[str, Floats]:
    """Log-likelihood of selected rows, and its derivatives.

    They are in u, x'beta (m), omega (o), log sigma (s) and atanh rho (t): "u" is the first
    derivative, "uo" a second one. ``ends`` are omega, log sigma and atanh rho.
    """
    omega, log_sigma, atanh_rho = ends
    w, sigma = omega**2, float(np.exp(log_sigma))
    cosh, sinh = float(np.cosh(atanh_rho)), float(np.sinh(atanh_rho))
    next_w = w / (1.0 + w)
    square, in_w = e * e, 1.0 / (1.0 + w) ** 2
    q = 1.0 + w * square
    b, b_t = u * cosh + e * sinh, u * sinh + e * cosh
    g = np.sqrt((1.0 + w) / q)
    a = g * b
    log_t, l_w, l_ww = log_density(e, w)
    cdf = student_sums(a, next_w)
    ratio = cdf.ratio
    # First derivatives in u, e, t and w.
    kappa = 0.5 * (1.0 / (1.0 + w) - square / q)
    g_e, g_w = -g * w * e / q, g * kappa
    a_u, a_e, a_t, a_w = g * cosh, g_e * b + g * sinh, g * b_t, g_w * b
    l_e = -(1.0 + w) * e / q
    d_e, d_w = l_e + ratio * a_e, l_w + ratio * a_w + cdf.in_w * in_w
    terms = {
        "value": log_t + cdf.log_cdf - log_sigma,
        "u": ratio * a_u,
        "m": -d_e / sigma,
        "o": 2.0 * omega * d_w,
        "s": -e * d_e - 1.0,
        "t": ratio * a_t,
    }
    if not second:
        return terms
    slope = slope_of_ratio(a, ratio, next_w)
    ratio_w = slope * a_w + cdf.ratio_in_w * in_w
    g_ee = -w * g * (1.0 - 2.0 * w * square) / q**2
    g_ww = g * (kappa**2 + 0.5 * ((square / q) ** 2 - 1.0 / (1.0 + w) ** 2))
    g_ew = g_e * kappa - g * e / q**2
    uu = slope * a_u**2
    ue = slope * a_u * a_e + ratio * g_e * cosh
    ut = slope * a_u * a_t + ratio * g * sinh
    uw = ratio_w * a_u + ratio * g_w * cosh
    ee = slope * a_e**2 + ratio * (g_ee * b + 2.0 * g_e * sinh)
    ee = ee - (1.0 + w) * (1.0 - w * square) / q**2
    et = slope * a_e * a_t + ratio * (g_e * b_t + g * cosh)
    ew = ratio_w * a_e + ratio * (g_ew * b + g_w * sinh) + e * (square - 1.0) / q**2
    tt = slope * a_t**2 + ratio * a
    tw = ratio_w * a_t + ratio * g_w * b_t
    ww = l_ww + ratio_w * a_w + ratio * g_ww * b + cdf.ratio_in_w * in_w * a_w
    ww = ww + cdf.in_ww * in_w**2 - 2.0 * cdf.in_w / (1.0 + w) ** 3
    twice = 2.0 * omega
    return terms | {
        "uu": uu,
        "um": -ue / sigma,
        "mm": ee / sigma**2,
        "uo": twice * uw,
        "us": -e * ue,
        "ut": ut,
        "mo": -twice * ew / sigma,
        "ms": (ee * e + d_e) / sigma,
        "mt": -et / sigma,
        "oo": twice**2 * ww + 2.0 * d_w,
        "os": -twice * e * ew,
        "ot": twice * tw,
        "ss": e * (e * ee + d_e),
        "st": -e * et,
        "tt": tt,
    }


# Functions over one block of rows. -----------------------------------------------------------


def _terms(block: Block, problem: StudentProblem, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums over a block for the log-likelihood and its derivatives.

    First (11,) scalars: the log-likelihood, the number of rows, and derivatives in o, s, t, oo, os,
    ot, ss, st and tt. Then (1 + k, 8), the design times derivatives in u, uo, us, ut, x'beta, mo,
    ms and mt. Then (3, 1 + k, 1 + k), products of the design times those in uu, um and mm.
    """
    chosen = block.only_selected()
    design, (u, mean) = problem.indices(chosen, theta)
    e = problem.standardized(mean, chosen.outcome, theta)
    terms = selected_terms(host(u), host(e), problem._ends(theta))
    ends = ("o", "s", "t", "oo", "os", "ot", "ss", "st", "tt")
    along = ("u", "uo", "us", "ut", "m", "mo", "ms", "mt")
    weight = None if chosen.weight is None else host(chosen.weight)
    names = ("value", *ends, *along, "uu", "um", "mm")
    if weight is not None:
        terms = {name: weight * terms[name] for name in names}
    count = float(len(u)) if weight is None else float(weight.sum())
    scalars = np.array([terms["value"].sum(), count, *(terms[name].sum() for name in ends)])
    vectors = design.pull(like(np.column_stack([terms[name] for name in along]), u))
    grams = np.stack([design.products(like(terms[name], u)) for name in ("uu", "um", "mm")])
    _add_unselected(block, problem, theta, scalars, vectors, grams)
    return scalars, vectors, grams


def _add_unselected(
    block: Block,
    problem: StudentProblem,
    theta: Floats,
    scalars: Floats,
    vectors: Floats,
    grams: Floats,
) -> None:
    """Add the sums over the unselected rows: log T(-u), and its derivatives in u and omega."""
    p, _ = problem.sizes
    others, z = problem.unselected(block)
    index = z.times(theta[:p])
    omega = float(theta[problem.place("df")])
    terms = student_sums(-host(index), omega**2)
    slope = slope_of_ratio(-host(index), terms.ratio, omega**2)
    each = {
        "value": terms.log_cdf,
        "n": np.ones(len(terms.ratio)),
        "o": 2.0 * omega * terms.in_w,
        "oo": 4.0 * omega**2 * terms.in_ww + 2.0 * terms.in_w,
        "u": -terms.ratio,
        "uo": -2.0 * omega * terms.ratio_in_w,
        "uu": slope,
    }
    if others.weight is not None:
        each = {name: host(others.weight) * term for name, term in each.items()}
    for place, name in ((0, "value"), (1, "n"), (2, "o"), (5, "oo")):
        scalars[place] += each[name].sum()
    both = like(np.column_stack([each["u"], each["uo"]]), index)
    vectors[:p, :2] += z.pull(both)
    grams[0, :p, :p] += z.products(like(each["uu"], index))

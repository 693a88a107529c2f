"""The joint likelihoods of many assignments, maximised together: one pass over the rows serves all.

Every assignment is the model of all features with some coefficients held at zero, so its
parameters are theta = start + basis phi in the coordinates of that model. The information at the
estimates of all features is nearly right for each of them: quasi-Newton steps (BFGS) from there
need the likelihood and its gradient alone, which cost far less than Hessians.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats, empty, host
from heckmanfa.data.rows import Block, Rows, total
from heckmanfa.model.joint_problem import SelectionProblem, State
from heckmanfa.model.linalg import inverse_definite, solve_upper
from heckmanfa.model.normal import log_cdf_and_mills
from heckmanfa.model.probit_likelihood import BOUNDARY_ATANH

# Iteration ends when a step would raise the log-likelihood by less than half of this.
_DECREMENT = 1e-6
_PASSES = 15
_HALVINGS = 8
# An approximation whose atanh rho is larger, and larger than where it was made, says little of rho.
_TRUSTED_ATANH = 1.5
# Values of this many rows times parameter vectors are held at once.
_AT_ONCE = 2**18


@dataclass(frozen=True, eq=False)
class Refit:
    """Maximum likelihood of one assignment, as far as the iteration went."""

    theta: Floats
    """(d,) in the coordinates of the model of all features"""
    log_likelihood: float
    converged: bool

    def above(self, other: Refit) -> bool:
        """Whether this is a maximum that is at least as high as another."""
        return self.converged and self.log_likelihood >= other.log_likelihood


def free_directions(
    problem: SelectionProblem, kept: Sequence[int], selecting: Sequence[int] | None = None
) -> Floats:
    """Return a (d, f) basis of the parameters of an assignment.

    ``kept`` are places among the prediction features of the problem, and ``selecting`` among its
    selection features; the coefficients of the others are zero. The intercepts and the parameters
    of the errors are free, and all of gamma if ``selecting`` is None.
    """
    p, _ = problem.sizes
    gamma = np.eye(p) if selecting is None else _slopes(problem.selection_back, selecting)
    beta = _slopes(problem.prediction_back, kept)
    return np.asarray(sla.block_diag(gamma, beta, np.eye(len(problem.ends))))


def _slopes(back: Floats, kept: Sequence[int]) -> Floats:
    """Directions of the intercept and of some coefficients, in the coordinates of an equation."""
    inside = [0, *(place + 1 for place in kept)]
    directions = solve_upper(back, np.eye(len(back))[:, inside])
    return np.asarray(directions / np.linalg.norm(directions, axis=0))


def refit_together(
    rows: Rows,
    problem: SelectionProblem,
    full: State,
    bases: Sequence[Floats],
    progress: Callable[[int], None] | None = None,
    *,
    hold_rho: bool = False,
) -> list[Refit]:
    """Maximise the likelihood over each basis of free directions, from the state of all features.

    Each starts where the quadratic approximation at ``full`` has its maximum, with the rho of
    ``full`` if ``hold_rho``. Those that do not converge in a few passes say so. ``progress`` is
    called with the number that did.
    """
    runs = [_QuasiNewton.start(problem, full, basis, hold_rho=hold_rho) for basis in bases]
    for _ in range(_PASSES):
        active = [run for run in runs if not run.done]
        if progress is not None:
            progress(len(runs) - len(active))
        if not active:
            break
        values, gradients = evaluate_many(rows, problem, np.array([run.trial for run in active]))
        for run, value, gradient in zip(active, values, gradients, strict=True):
            run.learn(float(value), gradient)
    # The step that is left to take would gain half of its decrement.
    return [Refit(run.theta, run.value + 0.5 * run.decrement, run.converged) for run in runs]


def restricted_start(
    problem: SelectionProblem, state: State, basis: Floats, *, hold_rho: bool = False
) -> Floats | None:
    """Return where the quadratic approximation at a state is highest over free directions.

    With ``hold_rho``, or if the approximation moves rho close to the boundary, atanh rho stays as
    it is in the state. None if there is no maximum.
    """
    rho, zero = problem.place("rho"), np.zeros(len(state.theta))
    if not hold_rho:
        inverse = _inverse_over(state, basis)
        theta = None if inverse is None else _peak(state, basis, inverse, zero)
        if theta is not None and abs(theta[rho]) <= max(_TRUSTED_ATANH, abs(state.theta[rho])):
            return theta
    without = basis[:, basis[rho] == 0.0]
    inverse = _inverse_over(state, without)
    zero[rho] = state.theta[rho]
    return None if inverse is None else _peak(state, without, inverse, zero)


def _inverse_over(state: State, basis: Floats) -> Floats | None:
    """Inverse information over free directions; None if it is not positive definite."""
    return inverse_definite(-basis.T @ state.hessian @ basis)


def _peak(state: State, basis: Floats, inverse: Floats, held: Floats) -> Floats:
    """Where the quadratic approximation at a state is highest, with all else ``held``."""
    pull = basis.T @ (state.gradient - state.hessian @ (state.theta - held))
    return np.asarray(held + basis @ (inverse @ pull))


class _QuasiNewton:
    """Quasi-Newton steps that ask for one evaluation after another."""

    def __init__(self, rho: int, theta: Floats, basis: Floats, inverse: Floats) -> None:
        self._rho, self.theta, self._basis, self._inverse = rho, theta, basis, inverse
        self.value, self.decrement = -np.inf, 0.0
        self._gradient = np.zeros(basis.shape[1])
        self._step = np.zeros(basis.shape[1])
        self._n_halved = 0
        self.done = self.converged = False

    @classmethod
    def start(
        cls, problem: SelectionProblem, full: State, basis: Floats, *, hold_rho: bool
    ) -> _QuasiNewton:
        """Start at the maximum of the quadratic approximation at ``full``."""
        rho, inverse = problem.place("rho"), _inverse_over(full, basis)
        theta = restricted_start(problem, full, basis, hold_rho=hold_rho)
        if inverse is None or theta is None:
            failed = cls(rho, full.theta, basis, np.zeros((basis.shape[1],) * 2))
            failed.done = True
            return failed
        return cls(rho, theta, basis, inverse)

    @property
    def trial(self) -> Floats:
        """Where to evaluate the likelihood next."""
        return np.asarray(self.theta + self._basis @ self._step)

    def learn(self, value: float, gradient: Floats) -> None:
        """Take the likelihood and its gradient at the trial, and plan the next step."""
        inner = self._basis.T @ gradient
        slack = 1e-11 * (1.0 + abs(self.value)) if np.isfinite(self.value) else 0.0
        usable = np.isfinite(value) and np.all(np.isfinite(inner))
        if not usable or value < self.value - slack:
            self._n_halved += 1
            self._step = 0.5 * self._step
            # A start without a likelihood has no step to shorten.
            self.done = self._n_halved > _HALVINGS or not np.any(self._step)
            return
        self._n_halved = 0
        self._update(self._gradient - inner)
        self.theta, self.value, self._gradient = self.trial, value, inner
        step = self._inverse @ inner
        self.decrement = float(step @ inner)
        self.converged = self.decrement <= _DECREMENT
        inside = abs(self.theta[self._rho]) < BOUNDARY_ATANH
        self.converged = self.converged and inside
        self.done = self.converged or not inside
        self._step = step / max(1.0, abs(float(self._basis[self._rho] @ step)))

    def _update(self, change: Floats) -> None:
        """Update the inverse information by what the last step showed (BFGS)."""
        step = self._step
        curvature = float(step @ change)
        if not curvature > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            return
        along = self._inverse @ change
        scale = 1.0 + float(change @ along) / curvature
        cross = np.outer(step, along)
        self._inverse = self._inverse + (scale * np.outer(step, step) - cross - cross.T) / curvature


def evaluate_many(rows: Rows, problem: SelectionProblem, thetas: Floats) -> tuple[Floats, Floats]:
    """Log-likelihood, (R,), and gradient, (R, d), at many theta, in one pass over the rows."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values, others, inside, in_ends = total(
            rows.map(_terms, problem, thetas, columns=problem.columns, merge=total)
        )
        p, j = problem.sizes
        n = len(thetas)
        gradients = np.empty((n, problem.size))
        gradients[:, :p] = (inside[:p, :n] - others).T
        gradients[:, p : p + j] = (problem.prediction.T @ inside[:, n:]).T
        gradients[:, p + j :] = in_ends.T
    return np.asarray(values), gradients


# Functions over one block of rows. -----------------------------------------------------------


def _terms(
    block: Block, problem: SelectionProblem, thetas: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums over a block for R theta, as many at a time as memory allows.

    They are the log-likelihoods, (R,); lambda(-u) z of the unselected rows, (p, R); the design of
    the selected rows times derivatives in u and in x'beta, (1 + k, 2 R); derivatives in the E
    parameters of the errors, (E, R).
    """
    size = max(_AT_ONCE // max(len(block.selected), 1), 1)
    parts = [_some(block, problem, thetas[i : i + size]) for i in range(0, len(thetas), size)]
    values, others, in_u, in_mean, in_ends = zip(*parts, strict=True)
    return (
        np.concatenate(values),
        np.concatenate(others, axis=1),
        np.concatenate([*in_u, *in_mean], axis=1),
        np.concatenate(in_ends, axis=1),
    )


def _some(
    block: Block, problem: SelectionProblem, thetas: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    p, j = problem.sizes
    n = len(thetas)
    others, z = problem.unselected(block)
    value, ratio, _ = log_cdf_and_mills(-z.times(thetas[:, :p].T))
    if others.weight is not None:
        value, ratio = (others.weight[:, None] * each for each in (value, ratio))

    chosen = block.only_selected()
    design = problem.union.design(chosen.features)
    index = design.times(problem.on_design(thetas[:, :p].T, thetas[:, p : p + j].T))
    slopes = empty(chosen.features, len(chosen.outcome), 2 * n, columns_first=True)
    sums = np.empty((1 + len(problem.ends), n))
    for i, theta in enumerate(thetas):
        parts = problem.slopes_at(index[:, i], index[:, n + i], chosen.outcome, theta)
        if chosen.weight is not None:
            parts = [chosen.weight * slope for slope in parts]
        log_density, in_mean, in_u, *in_ends = parts
        slopes[:, i], slopes[:, n + i] = in_u, in_mean
        sums[:, i] = [float(each.sum()) for each in (log_density, *in_ends)]
    pulled = design.pull(slopes)
    return (
        host(value.sum(axis=0)) + sums[0],
        z.pull(ratio),
        pulled[:, :n],
        pulled[:, n:],
        sums[1:],
    )

"""The likelihood with everything in both equations, and its quadratic approximation.

A search of both equations needs it once, in either family: the approximation ranks all assignments
of prediction and of selection features, and every refit starts from it. Column c of the selection
equation is column K + c of an assignment, as in `heckmanfa.search.choices.join_equations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.model.climbing import newton
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.equations import Selection
from heckmanfa.model.joint_problem import JointProblem, State
from heckmanfa.model.likelihood import outer_estimates
from heckmanfa.model.likelihood_starts import starting_point
from heckmanfa.model.likelihood_terms import Problem
from heckmanfa.model.linalg import symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit_likelihood import BOUNDARY_ATANH
from heckmanfa.model.probit_together import Climbed, free_directions, restricted_start
from heckmanfa.model.two_step import LARGEST_RHO, fit_two_step
from heckmanfa.search.exact_refits import AllFeatures
from heckmanfa.search.form import Form
from heckmanfa.search.full_model import FullModel, fit_all, inverse_information
from heckmanfa.search.quadratic import QuadraticForm

# A refit ends when a step would raise the log-likelihood by less than half of this.
_DECREMENT = 1e-8
_ITERATIONS = 50


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The model of a linear outcome with everything in both equations, at its maximum."""

    columns: tuple[int, ...]
    """(k,) positions in X of the candidates that may predict, in order"""
    selection: tuple[int, ...]
    """(p,) positions in X of those that may drive selection"""
    problem: Problem
    state: State
    n_selected: float
    """m"""
    form: QuadraticForm
    """of both equations' coefficients, by the inverse information"""
    held_rho: None = None

    @property
    def log_likelihood(self) -> float:
        """At the maximum, for the outcome in its own units."""
        return self._own_units(self.state.log_likelihood)

    @property
    def n_fixed(self) -> int:
        """Parameters that every assignment has: two intercepts, sigma and rho."""
        return 4

    def refit(
        self, rows: Rows, masks: Mask, progress: Callable[[int], None] | None = None
    ) -> list[Climbed]:
        """Maximise the likelihood of some assignments, (N, 2 K), by Newton's method."""
        found = []
        for done, mask in enumerate(masks):
            if progress is not None:
                progress(done)
            found.append(self._climb(rows, mask))
        return found

    def _climb(self, rows: Rows, mask: Mask) -> Climbed:
        basis = directions(self.problem, mask, self.columns, self.selection)
        start = restricted_start(self.state, basis)
        if start is None:
            return Climbed(self.state.theta, self.log_likelihood, False)
        state, _, converged = newton(
            *(rows, self.problem, start),
            free=basis,
            tolerance=_DECREMENT,
            max_iterations=_ITERATIONS,
            largest_atanh=BOUNDARY_ATANH,
        )
        inside = converged and abs(state.theta[-1]) < BOUNDARY_ATANH
        return Climbed(state.theta, self._own_units(state.log_likelihood), inside)

    def _own_units(self, log_likelihood: float) -> float:
        return float(log_likelihood) - self.n_selected * float(np.log(self.problem.scale))

    def coef(self, theta: Floats, n_features: int) -> Floats:
        """Return the prediction coefficients of the columns of X, (K,), at some theta."""
        p, j = self.problem.sizes
        spread = np.zeros(n_features)
        slopes = (self.problem.prediction_back @ theta[p : p + j])[1:]
        spread[list(self.columns)] = self.problem.scale * slopes
        return spread

    def all_features(self, rows: Rows) -> AllFeatures | None:
        """Return nothing: only a binary outcome has average marginal effects of its own."""
        return None


def directions(
    problem: JointProblem, mask: Mask, columns: Sequence[int], selection: Sequence[int]
) -> Floats:
    """Return the free directions of an assignment of both equations, (2 K,)."""
    k = len(mask) // 2
    kept = [place for place, column in enumerate(columns) if mask[column]]
    selecting = [place for place, column in enumerate(selection) if mask[k + column]]
    return free_directions(problem, kept, selecting)


def fit_everything(
    moments: Moments, selection: Selection, columns: Sequence[int], *, binary: bool
) -> tuple[LinearModel | FullModel, Form]:
    """Fit the model with all ``columns`` and all selection features; return it with its form."""
    columns, chosen = tuple(sorted(columns)), tuple(selection.probit.features)
    if binary:
        full = fit_all(moments, selection, columns)
        if full.held_rho is not None:
            raise _no_maximum(columns, chosen)
        form = _form(moments, selection, full.problem, full.state, columns, chosen)
        return replace(full, selection=chosen, form=_both(form)), form
    rows, probit = selection.rows, selection.probit
    two_step = fit_two_step(moments, probit, columns, CLASSICAL, largest_rho=LARGEST_RHO)
    problem = Problem.build(moments, probit, two_step.features)
    start = starting_point(problem, probit, two_step)
    state, _, converged = newton(rows, problem, start, largest_atanh=BOUNDARY_ATANH)
    if not converged:
        raise _no_maximum(columns, chosen)
    form = _form(moments, selection, problem, state, columns, chosen)
    m = float(moments.n_selected)
    return LinearModel(columns, chosen, problem, state, m, _both(form)), form


def _form(
    moments: Moments,
    selection: Selection,
    problem: JointProblem,
    state: State,
    columns: tuple[int, ...],
    chosen: tuple[int, ...],
) -> Form:
    """Return the form of a maximum, by the inverse information."""
    inverse = inverse_information(state.hessian)
    if inverse is None:
        raise _no_maximum(columns, chosen)
    estimates, back = outer_estimates(problem, state.theta)
    covariance = back @ inverse @ back.T
    binary = len(problem.ends) == 1
    # atanh rho comes before log sigma in a form.
    last = len(estimates) - 1
    order = [*range(last + 1)] if binary else [*range(last - 1), last, last - 1]
    return Form(
        columns=columns,
        selection=chosen,
        n_features=moments.n_features,
        n_selected=float(selection.probit.n),
        errors="binary" if binary else "likelihood",
        estimates=estimates[order],
        covariance=symmetric(covariance[np.ix_(order, order)]),
        searched=chosen,
    ).check()


def _both(form: Form) -> QuadraticForm:
    """Return what it costs to drop features of either equation."""
    places = [place for place in form.free if place != form.correction]
    columns = (*form.columns, *(form.n_features + column for column in form.searched))
    order = np.argsort(columns)
    places = [places[i] for i in order]
    return QuadraticForm(
        tuple(columns[i] for i in order),
        form.estimates[places],
        form.covariance[np.ix_(places, places)],
    )


def _no_maximum(columns: Sequence[int], selection: Sequence[int]) -> NotIdentifiedError:
    return NotIdentifiedError(
        f"the likelihood with all {len(columns)} features that may predict and all "
        f"{len(selection)} that may drive selection has no maximum with rho inside (-1, 1), and a "
        "search of both equations starts from it. Name fewer in prediction_features or "
        "selection_features, or use search_in='prediction'."
    )

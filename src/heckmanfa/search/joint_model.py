"""The likelihood with everything in both equations, and its quadratic approximation.

A search of both equations needs it once, in either family: the approximation ranks all assignments
of prediction and of selection features, and every refit starts from it. Column c of the selection
equation is column K + c of an assignment, as in `heckmanfa.search.choices.join_equations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.rows import Rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.equations import Selection
from heckmanfa.model.joint_problem import JointProblem, LinearProblem, State
from heckmanfa.model.likelihood import outer_estimates
from heckmanfa.model.linalg import inverse_definite, symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import ProfileStarts, newton, starting_point
from heckmanfa.model.probit_likelihood import BOUNDARY_ATANH
from heckmanfa.model.two_step import LARGEST_RHO, fit_two_step
from heckmanfa.search.choices import Choices, join_equations
from heckmanfa.search.form import Form, QuadraticForm, wald_excess
from heckmanfa.search.full_model import FullModel, fit_all
from heckmanfa.search.goal import Goal
from heckmanfa.search.strategies import SearchProblem
from heckmanfa.text.option_types import Criterion
from heckmanfa.text.option_words import option


@dataclass(frozen=True, eq=False)
class Everything:
    """The model with everything in both equations, and what may be left out."""

    moments: Moments
    rows: Rows
    full: FullModel
    form: Form
    choices: Choices
    """of both equations as one"""

    def problem(self, criterion: Criterion, labels: Sequence[str]) -> SearchProblem:
        """Return the problem that a search of both equations solves."""
        goal = Goal.of_form(self.full.form, self.choices, criterion, self.form.n_selected)
        return SearchProblem(self.moments, self.rows, self.choices, goal, labels, None, self.full)


def everything(
    moments: Moments, selection: Selection, choices: Choices, selecting: Choices, *, binary: bool
) -> Everything:
    """Fit the model with everything in both equations.

    ``choices`` and ``selecting`` are those of the prediction and of the selection equation.
    """
    selecting = selecting.without_columns([*selection.dropped, *selection.separating])
    full, form = _fit(moments, selection, choices.columns, binary=binary)
    joint = join_equations(choices, selecting)
    return Everything(moments, selection.rows, full, form, joint)


def _fit(
    moments: Moments, selection: Selection, columns: Sequence[int], *, binary: bool
) -> tuple[FullModel, Form]:
    """Fit the model with all ``columns`` and all selection features; return it with its form."""
    columns, chosen = tuple(sorted(columns)), tuple(selection.probit.features)
    if binary:
        full = fit_all(moments, selection, columns)
        if full.held_rho is not None:
            raise _no_maximum(columns, chosen)
        ends = full.state, full.uncorrelated
        form = _form(moments, selection, full.problem, *ends, columns, chosen)
        return replace(full, selection=chosen, form=_both(form)), form
    rows, probit = selection.rows, selection.probit
    two_step = fit_two_step(moments, probit, columns, CLASSICAL, largest_rho=LARGEST_RHO)
    problem = LinearProblem.build(moments, probit, two_step.features)
    start = starting_point(problem, probit, two_step)
    state, _, converged = newton(rows, problem, start, largest_atanh=BOUNDARY_ATANH)
    if not converged:
        raise _no_maximum(columns, chosen)
    starts = ProfileStarts.build(moments, probit, two_step.features, problem)
    uncorrelated = problem.evaluate(rows, starts.at(0.0))
    form = _form(moments, selection, problem, state, uncorrelated, columns, chosen)
    full = FullModel(
        columns=columns,
        problem=problem,
        starts=starts,
        state=state,
        form=_both(form),
        uncorrelated=uncorrelated,
        held_rho=None,
        selection=chosen,
        offset=-float(moments.n_selected * np.log(problem.scale)),
    )
    return full, form


def _form(
    moments: Moments,
    selection: Selection,
    problem: JointProblem,
    state: State,
    uncorrelated: State,
    columns: tuple[int, ...],
    chosen: tuple[int, ...],
) -> Form:
    """Return the form of a maximum, by the inverse information; the other one has rho = 0."""
    inverse = inverse_definite(-state.hessian)
    if inverse is None:
        raise _no_maximum(columns, chosen)
    estimates, back = outer_estimates(problem, state.theta)
    covariance = back @ inverse @ back.T
    # atanh rho comes before log sigma in a form.
    ends = [*problem.correlations, *problem.scales]
    order = [*range(sum(problem.sizes)), *ends]
    return Form(
        columns=columns,
        selection=chosen,
        n_features=moments.n_features,
        n_selected=float(selection.probit.n),
        errors="likelihood" if problem.scales else "binary",
        estimates=estimates[order],
        covariance=symmetric(covariance[np.ix_(order, order)]),
        searched=chosen,
        correction_excess=wald_excess(
            state.theta[-1], inverse[-1, -1], state.log_likelihood, uncorrelated.log_likelihood
        ),
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
        f"search of both equations starts from it. Name fewer in {option('prediction_features')} "
        f"or {option('selection_features')}, or use {option('search_in', 'prediction')}."
    )

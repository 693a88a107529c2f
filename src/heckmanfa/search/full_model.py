"""The model of all candidates, and its likelihood's quadratic approximation.

A search of assignments needs it once: the approximation ranks all of them, and every refit starts
from it. Many features, or a selection equation that fits too well, leave the rho of the largest
model nearly unidentified, while smaller models still have one. The approximation then holds rho
where the best of them has it.

A search of both equations needs the model with everything in both of them, in either family. Column
c of the selection equation is then column K + c of an assignment, as in
`heckmanfa.search.choices.join_equations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import NotIdentifiedError, TooFewRowsError
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.equations import Selection, say_dropped, weighted_count
from heckmanfa.model.joint_problem import LinearProblem, SelectionProblem, State
from heckmanfa.model.likelihood import outer_estimates
from heckmanfa.model.linalg import (
    collinear_error,
    dependencies,
    inverse_definite,
    solve_upper,
    symmetric,
)
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import (
    ProfileStarts,
    StartsByRho,
    newton,
    starting_point,
)
from heckmanfa.model.outcome_probit import fit_outcome_probit
from heckmanfa.model.probit_likelihood import (
    BOUNDARY_ATANH,
    ProbitProblem,
    average_slopes,
    mean_slopes,
    probits_apart,
    usual_start,
)
from heckmanfa.model.refit_together import (
    Refit,
    free_directions,
    refit_together,
    restricted_start,
)
from heckmanfa.model.two_step import LARGEST_RHO, fit_two_step
from heckmanfa.search.best_subset.branch_and_bound import warm_start
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form, wald_excess
from heckmanfa.search.goal import Goal
from heckmanfa.search.searched import AllFeatures
from heckmanfa.text.option_types import Criterion, OnProblem
from heckmanfa.text.option_words import OR_DROP, option

_HELD_DECREMENT = 1e-6
# A log-likelihood this much below its approximation may be the lower of two maxima.
_FAR_BELOW = 1.0
_REFIT_DECREMENT = 1e-6
_REFIT_ITERATIONS = 30
# Refits that start again one by one: at least so many, and as many as this many multiplications
# allow, about ten seconds' work. If there are more, they share their passes first.
_ALONE = 5
_ALONE_WORK = 4e10
_PASSES_ALONE = 20
# Each round holds rho where the best assignment of the last one has it.
_ROUNDS = 4
# Held rho is given to two decimals; reports name it.
_DECIMALS = 2
_LARGEST = 0.98


@dataclass(frozen=True, eq=False)
class FullModel:
    """The model of all candidates, at the maximum of its likelihood."""

    problem: SelectionProblem
    starts: StartsByRho
    state: State
    form: Form
    """its estimates and the inverse information; if both equations are searched, masks are those of
    both, (..., 2 K)"""
    uncorrelated: State
    """the same model with rho = 0: two separate equations"""
    held_rho: float | None
    """rho at which rho is held, since the likelihood has no maximum inside (-1, 1)"""
    offset: float = 0.0
    """what the units of a linear outcome add to the log-likelihood of every state"""

    @property
    def log_likelihood(self) -> float:
        """At the maximum, in the outcome's own units."""
        return float(self.state.log_likelihood) + self.offset

    @property
    def n_fixed(self) -> int:
        """Parameters that criteria count and every assignment has.

        If both equations are searched, they are both intercepts and the parameters of the errors;
        otherwise there are none.
        """
        return 2 + len(self.problem.ends) if self.form.searched else 0

    def refit(
        self,
        rows: Rows,
        masks: Mask,
        progress: Callable[[int], None] | None = None,
    ) -> list[Refit]:
        """Maximise the likelihood of some assignments, (N, K), best first by the approximation.

        The first is maximised by Newton's method. The others resemble it, so they start from the
        quadratic approximation there, and share each pass over the rows. Those that reach no
        maximum, or one far below the approximation, start again from rho = 0: a few one by one,
        many together.
        """
        bases = [self._basis(mask) for mask in masks]
        if not bases:
            return []
        first, state = self._refit(rows, bases[0])
        if not first.converged:
            state = self.uncorrelated if self.held_rho is not None else self.state
        refits = [first, *refit_together(rows, self.problem, state, bases[1:], progress)]
        expected = self.state.log_likelihood - 0.5 * self.form.dropped(masks)
        places = [
            place
            for place, refit in enumerate(refits)
            if not refit.converged or refit.log_likelihood < expected[place] - _FAR_BELOW
        ]

        def take(place: int, refit: Refit) -> None:
            if refit.converged and not refits[place].above(refit):
                refits[place] = refit

        each = _PASSES_ALONE * len(rows) * len(self.state.theta) ** 2
        most = max(_ALONE, int(_ALONE_WORK / each))
        if len(places) > most:
            start = self.uncorrelated
            some = [bases[place] for place in places]
            again = refit_together(rows, self.problem, start, some, hold_rho=True)
            for place, refit in zip(places, again, strict=True):
                take(place, refit)
            places = [place for place in places if not refits[place].converged][:most]
        for place in places:
            take(place, self._newton(rows, bases[place], self.uncorrelated, hold=True)[0])
            if progress is not None:
                progress(place)
        return refits

    def refit_one(self, rows: Rows, mask: Mask) -> Refit:
        """Maximise the likelihood of one assignment, (K,), by Newton's method."""
        return self._refit(rows, self._basis(mask))[0]

    def held_at(self, rows: Rows, rho: float) -> FullModel | None:
        """Return the same model with rho held elsewhere; None if it cannot be fitted there."""
        held = _hold(rows, self.problem, self.starts, rho)
        if held is None:
            return None
        state, inverse = held
        estimates, covariance = _estimates(self.problem, state, inverse)
        form = replace(self.form, estimates=estimates, covariance=covariance)
        return replace(self, state=state, form=form, held_rho=rho)

    def rho_of(self, theta: Floats) -> float:
        """Return rho at some theta."""
        return float(np.tanh(theta[self.problem.place("rho")]))

    def coef(self, theta: Floats, n_features: int) -> Floats:
        """Return the coefficients of the columns of X, (K,), at some theta."""
        p, j = self.problem.sizes
        spread = np.zeros(n_features)
        slopes = (self.problem.prediction_back @ theta[p : p + j])[1:]
        spread[list(self.form.columns)] = self.problem.scale * slopes
        return spread

    def all_features(self, rows: Rows) -> AllFeatures | None:
        """Return its estimates, and its average marginal effects, in one more pass.

        None if the outcome is linear: then coefficients are marginal effects.
        """
        if not isinstance(self.problem, ProbitProblem):
            return None
        p, j = self.problem.sizes
        theta, beta = self.state.theta, slice(p, p + j)
        back, held = self.problem.prediction_back, self.held_rho is not None
        hessian = self.state.hessian
        rho = self.problem.place("rho")
        inverse = inverse_definite(-_without(hessian, rho) if held else -hessian)
        assert inverse is not None
        averages = mean_slopes(rows, self.problem, theta, theta[beta])
        gradient = solve_upper(back, averages.gradient[:, 0], transposed=True)
        coef, covariance = back @ theta[beta], back @ inverse[beta, beta] @ back.T
        slopes, of_slopes = average_slopes(coef, covariance, float(averages.mean[0]), gradient)
        error = float("nan") if held else float(np.sqrt(inverse[rho, rho]))
        return AllFeatures(
            columns=self.form.columns,
            coef=coef,
            atanh_rho=(float(theta[rho]), error),
            slopes=slopes,
            slope_errors=np.sqrt(np.diag(of_slopes)),
        )

    def _basis(self, mask: Mask) -> Floats:
        form, selecting = self.form, None
        kept = [place for place, column in enumerate(form.columns) if mask[column]]
        if form.searched:
            k = form.n_features
            selecting = [place for place, c in enumerate(form.searched) if mask[k + c]]
        return free_directions(self.problem, kept, selecting)

    def _refit(self, rows: Rows, basis: Floats) -> tuple[Refit, State]:
        """Fit one assignment from the model of all candidates or, if that fails, from rho = 0."""
        refit, state = self._newton(rows, basis, self.state, hold=self.held_rho is not None)
        if refit.converged:
            return refit, state
        return self._newton(rows, basis, self.uncorrelated, hold=True)

    def _newton(self, rows: Rows, basis: Floats, at: State, *, hold: bool) -> tuple[Refit, State]:
        """Fit one assignment by Newton's method, from the quadratic approximation at a state."""
        start = restricted_start(self.problem, at, basis, hold_rho=hold)
        if start is None:
            return Refit(at.theta, at.log_likelihood, False), at
        state, _, converged = newton(
            *(rows, self.problem, start),
            free=basis,
            tolerance=_REFIT_DECREMENT,
            max_iterations=_REFIT_ITERATIONS,
            largest_atanh=BOUNDARY_ATANH,
        )
        inside = converged and abs(state.theta[self.problem.place("rho")]) < BOUNDARY_ATANH
        return Refit(state.theta, state.log_likelihood, inside), state


def without_collinear(
    choices: Choices, moments: Moments, labels: Sequence[str], on_collinear: OnProblem
) -> Choices:
    """Refuse or drop candidates that are collinear where they are fitted.

    All candidates must fit into one model. Those that are always in come first, and stay.
    """
    for number in range(len(moments.designs(choices.columns))):
        free = [column for unit in choices.units for column in unit]
        columns = [*choices.always, *free]
        where, first, root = moments.designs(columns)[number]
        dependent = dependencies(root)
        if not dependent:
            continue
        error = collinear_error(
            dependent,
            [*first, *(labels[column] for column in columns)],
            columns,
            "the search fits all features that may predict at once, and they are collinear "
            f"{where}",
            f"Leave some out with {option('never', [...])}{OR_DROP}.",
        )
        if on_collinear != "drop":
            raise error
        say_dropped(error.columns, labels, error.reason)
        choices = choices.without_columns(error.columns)
    return choices


def fit_all(moments: Moments, selection: Selection, columns: Sequence[int]) -> FullModel:
    """Fit the Heckman probit with all ``columns`` of X as prediction features.

    They must not be collinear. If the likelihood rises towards |rho| = 1, rho is held at .98 in
    size, or at 0, and the others are estimated there.
    """
    columns, rows = tuple(sorted(columns)), selection.rows
    k = len(columns)
    if moments.n_selected <= k + 2:
        raise TooFewRowsError(
            f"the search fits all {k} features that may predict at once: with an intercept and "
            f"rho they need more than {k + 2} selected rows; there are "
            f"{weighted_count(moments.n_selected)}. Name fewer in {option('prediction_features')}."
        )
    naive = selection.outcome
    if naive is None or tuple(naive.features) != columns:
        naive = fit_outcome_probit(moments, rows, columns)
    apart = probits_apart(moments, selection.probit, naive)
    problem, starts = apart.problem, apart.starts
    uncorrelated = problem.evaluate(rows, starts.at(0.0))
    start = usual_start(rows, problem, starts)
    state, _, converged = newton(rows, problem, start, largest_atanh=BOUNDARY_ATANH)
    inverse = inverse_definite(-state.hessian)
    if converged and inverse is not None:
        form = _form(moments, problem, columns, state, inverse, uncorrelated)
        return FullModel(problem, starts, state, form, uncorrelated, None)
    reached = state.theta[problem.place("rho")]
    for rho in (float(np.copysign(LARGEST_RHO, reached)), 0.0):
        held = _hold(rows, problem, starts, rho)
        if held is not None:
            form = _form(moments, problem, columns, *held)
            return FullModel(problem, starts, held[0], form, uncorrelated, rho)
    raise NotIdentifiedError(
        f"the model of all {k} features that may predict cannot be fitted, not even with rho held "
        f"at 0, and the search starts from it. Name fewer in {option('prediction_features')}, or "
        f"leave some out with {option('never', [...])}."
    )


def fit_both(
    moments: Moments, selection: Selection, columns: Sequence[int], *, binary: bool
) -> FullModel:
    """Fit the model with all ``columns`` and all selection features, to search both equations."""
    columns, rows, probit = tuple(sorted(columns)), selection.rows, selection.probit
    if binary:
        full = fit_all(moments, selection, columns)
        problem, state, uncorrelated = full.problem, full.state, full.uncorrelated
        converged, offset = full.held_rho is None, 0.0
        starts = full.starts
    else:
        two_step = fit_two_step(moments, probit, columns, CLASSICAL, largest_rho=LARGEST_RHO)
        problem = LinearProblem.build(moments, probit, two_step.features)
        start = starting_point(problem, probit, two_step)
        state, _, converged = newton(rows, problem, start, largest_atanh=BOUNDARY_ATANH)
        starts = ProfileStarts.build(moments, probit, two_step.features, problem)
        uncorrelated = problem.evaluate(rows, starts.at(0.0))
        offset = -float(moments.n_selected * np.log(problem.scale))
    inverse = inverse_definite(-state.hessian) if converged else None
    if inverse is None:
        raise NotIdentifiedError(
            f"the likelihood with all {len(columns)} features that may predict and all "
            f"{len(probit.features)} that may drive selection has no maximum with rho inside "
            "(-1, 1), and a search of both equations starts from it. Name fewer in "
            f"{option('prediction_features')} or {option('selection_features')}, or use "
            f"{option('search_in', 'prediction')}."
        )
    form = _form(moments, problem, columns, state, inverse, uncorrelated, both=True).check()
    return FullModel(problem, starts, state, form, uncorrelated, None, offset)


def _hold(
    rows: Rows, problem: SelectionProblem, starts: StartsByRho, rho: float
) -> tuple[State, Floats] | None:
    """Maximise the likelihood with rho held; return the inverse information of all else as well."""
    theta = starts.at(float(np.arctanh(rho)))
    place = problem.place("rho")
    free = problem.all_but(place)
    state, _, converged = newton(rows, problem, theta, free=free, tolerance=_HELD_DECREMENT)
    inverse = inverse_definite(-_without(state.hessian, place))
    return None if not converged or inverse is None else (state, inverse)


def _without(matrix: Floats, place: int) -> Floats:
    """Return a square matrix without one row and column."""
    return np.delete(np.delete(matrix, place, axis=0), place, axis=1)


def _form(
    moments: Moments,
    problem: SelectionProblem,
    columns: tuple[int, ...],
    state: State,
    inverse: Floats,
    uncorrelated: State | None = None,
    *,
    both: bool = False,
) -> Form:
    """Return the likelihood at its maximum, to second order.

    ``inverse`` is that of the information: of all parameters, or of all but atanh rho if that is
    held. ``uncorrelated`` is the maximum with rho = 0.
    """
    probit = moments.probit
    assert probit is not None
    chosen, excess = tuple(probit.features), 0.0
    if uncorrelated is not None:
        likelihoods = state.log_likelihood, uncorrelated.log_likelihood
        rho = problem.place("rho")
        excess = wald_excess(float(state.theta[rho]), float(inverse[rho, rho]), *likelihoods)
    estimates, covariance = _estimates(problem, state, inverse)
    return Form(
        columns=columns,
        selection=chosen,
        n_features=moments.n_features,
        n_selected=float(probit.n if both else moments.n_selected),
        errors="likelihood" if problem.scales else "binary",
        estimates=estimates,
        covariance=covariance,
        knows_correction=uncorrelated is not None,
        correction_excess=excess,
        searched=chosen if both else (),
    )


def _estimates(problem: SelectionProblem, state: State, inverse: Floats) -> tuple[Floats, Floats]:
    """Return all estimates and their covariance, in the order of a form; see `_form`.

    A rho that is held is no estimate: on its own, it costs nothing and moves nothing.
    """
    theta, n = state.theta.copy(), problem.n_coefficients
    if len(inverse) < len(theta):
        rho = problem.place("rho")
        others, known = problem.all_but(rho), inverse
        theta[rho], inverse = 0.0, np.eye(len(theta))
        inverse[np.ix_(others, others)] = known
    estimates, back = outer_estimates(problem, theta)
    # atanh rho comes before log sigma in a form.
    order = [*range(n), *problem.correlations, *problem.scales]
    covariance = symmetric(back @ inverse @ back.T)
    return estimates[order], covariance[np.ix_(order, order)]


def centred(full: FullModel, rows: Rows, choices: Choices, criterion: Criterion) -> FullModel:
    """Hold rho at that of a good assignment, if the model of all candidates has none of its own.

    With rho held at either of two values, the best assignment by the approximation is fitted
    exactly; the better of the two gives the next rho, until it is the same again. If neither has a
    maximum inside (-1, 1), nothing changes.
    """
    if full.held_rho is None:
        return full
    fitted: dict[bytes, tuple[float, Refit]] = {}

    def look(at: FullModel) -> None:
        """Fit the best assignment by an approximation, unless it was before."""
        goal = Goal.of_form(at.form, choices, criterion)
        start = warm_start(at.form.as_moments(), choices, goal)
        if start is None or start[1].tobytes() in fitted:
            return
        mask = start[1]
        refit = at.refit_one(rows, mask)
        value = _criterion(goal, refit, mask) if refit.converged else np.inf
        fitted[mask.tobytes()] = value, refit

    look(full)
    uncorrelated = full.held_at(rows, 0.0)
    if uncorrelated is not None:
        look(uncorrelated)
    for _ in range(_ROUNDS):
        value, best = min(fitted.values(), key=lambda pair: pair[0], default=(np.inf, None))
        if best is None or np.isinf(value):
            return full
        rho = round(
            float(np.clip(np.tanh(best.theta[full.problem.place("rho")]), -_LARGEST, _LARGEST)),
            _DECIMALS,
        )
        if rho == full.held_rho:
            break
        nearer = full.held_at(rows, rho)
        if nearer is None:
            break
        full = nearer
        look(full)
    return full


def _criterion(goal: Goal, refit: Refit, mask: Mask) -> float:
    penalty = goal.penalty(mask.sum()) + goal.unit_penalty(goal.count_units(mask[None]))[0]
    return float(-2.0 * refit.log_likelihood + goal.value(penalty))

"""The best assignments by a likelihood's quadratic approximation, refitted and ranked exactly.

For a likelihood that compressed rows cannot give, its quadratic approximation at the estimates of
all features ranks the assignments. Branch and bound proves which are best by that. Maximum
likelihood fits these, and its own criterion chooses among them: -2 l + J log m, or 2 J in AIC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import NoFeasibleAssignmentError, SearchWarning, warn
from heckmanfa.model.equations import weighted_count
from heckmanfa.model.likelihood import likelihood_criteria
from heckmanfa.model.refit_together import Refit
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.best_subset.branch_and_bound import node_budget, warm_start
from heckmanfa.search.best_subset.relaxation import search
from heckmanfa.search.best_subset.tree import Tree
from heckmanfa.search.choices import Choices
from heckmanfa.search.fitted_form import FittedForm
from heckmanfa.search.form import Form
from heckmanfa.search.full_model import FullModel
from heckmanfa.search.goal import Goal, distinct, first_of_ties
from heckmanfa.search.searched import ExactRefits, Search
from heckmanfa.search.strategies import SearchProblem
from heckmanfa.text.option_types import Criterion
from heckmanfa.text.option_words import FEWER_SELECTING, NODE_LIMIT, instead, option
from heckmanfa.text.progress import progress_line
from heckmanfa.text.wording import plural

REPLICATE_REFITS = 5
"""Assignments that are refitted in each replicate of a bootstrap, and in each half of the rows."""

# With fewer rows of the rarer kind per selection feature, the selection equation overfits.
_ROWS_PER_FEATURE = 10


@dataclass(frozen=True, eq=False)
class BestOfForm:
    """The best N assignments by a quadratic form, best first."""

    masks: Mask
    """(N, K) over the columns of X"""
    values: Floats
    """(N,) the form plus the penalty"""
    optimal: bool
    """whether no other assignment is better than the first"""
    complete: bool
    """whether no other assignment is better than any of these"""
    gap: float
    """by how much another assignment could be better than the first"""
    n_nodes: int
    """nodes visited in the search tree"""
    n_assignments: int
    """assignments evaluated; bounds ruled out others"""
    beyond: float
    """lower bound on the value of every other assignment; infinite if there are no others"""
    interrupted: bool
    """whether the user stopped the search"""


def best_of_form(
    form: Form,
    choices: Choices,
    *,
    criterion: Criterion = "corrected_bic",
    n_best: int = 50,
    max_nodes: int | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> BestOfForm:
    """Find the ``n_best`` assignments that are allowed and have the least Q + penalty J.

    The form must hold every column of ``choices``; J counts columns. The penalty of a column is
    that of the ``criterion``, by default the log of the number of rows behind the form. EBIC also
    penalises units. ``max_nodes`` and ``progress`` are those of `best_subset`.
    """
    moments = form.as_moments()
    goal = Goal.of_form(form, choices, criterion)
    start = warm_start(moments, choices, goal)
    tree = Tree(
        *(moments, choices, goal),
        tolerance=np.inf,
        max_nodes=node_budget(choices) if max_nodes is None else max_nodes,
        start=np.inf if start is None else start[0],
        n_kept=n_best + 1,
    )
    known: Mask | None = None
    if start is not None:
        # A tree of many features begins deep down, far from the good assignments.
        known = np.concatenate([start[1][None], _neighbours(start[1], choices)])
    search(tree, progress, known)
    masks = tree.record.kept()
    if known is not None:
        masks = distinct(np.concatenate([masks, known[:1] if tree.complete else known]))
    loss = goal.loss(form.dropped(masks), masks.sum(axis=1), goal.count_units(masks))
    order = first_of_ties(loss, masks)
    values = goal.value(loss[order])
    bound = np.inf if tree.complete else float(goal.value(tree.bound))
    gap = max(float(values[0]) - bound, 0.0)
    return BestOfForm(
        masks=masks[order[:n_best]],
        values=values[:n_best],
        optimal=gap == 0.0,
        complete=tree.complete,
        gap=gap,
        n_nodes=tree.n_nodes,
        n_assignments=max(tree.record.n_assignments, len(masks)),
        beyond=min(float(values[n_best]), bound) if len(order) > n_best else bound,
        interrupted=tree.interrupted,
    )


def _neighbours(mask: Mask, choices: Choices) -> Mask:
    """Return the allowed assignments that differ from one, (K,), in a single unit."""
    inside = mask[[unit[0] for unit in choices.units]]
    moved = inside ^ np.eye(len(inside), dtype=bool)
    return choices.masks(moved[choices.allowed(moved)])


@dataclass(frozen=True)
class RefittedSubset:
    """The best of all assignments by the approximation, and the best of some by the likelihood."""

    n_refits: int = 50
    max_nodes: int | None = None
    verbose: int = 0

    def __call__(self, problem: SearchProblem) -> tuple[Search, None]:
        """Search the tree of all assignments, then refit the best of them."""
        full = problem.full
        assert full is not None
        most = node_budget(problem.choices) if self.max_nodes is None else self.max_nodes
        criterion = problem.goal.criterion
        with progress_line(self.verbose, "search", "nodes", most, at_most=True) as show:
            best = best_of_form(
                full.form,
                problem.choices,
                criterion=criterion,
                n_best=self.n_refits,
                max_nodes=most,
                progress=None
                if show is None
                else lambda nodes, best, bound: show(
                    nodes, f"best {criterion} {best:.6g}, bound {bound:.6g}, approximately"
                ),
            )
        if len(best.masks) == 0:
            if best.interrupted:
                raise KeyboardInterrupt
            raise NoFeasibleAssignmentError(
                f"no assignment was evaluated within max_nodes = {most} nodes; raise it"
            )
        if isinstance(full, FittedForm) and full.refit_of is None:
            return _by_form(problem, full.form, best, most), None
        total = len(best.masks)
        with progress_line(self.verbose, "maximum likelihood", "assignments", total) as show:
            refits = full.refit(
                problem.rows, best.masks, None if show is None else lambda done: show(done, "")
            )
        return _ranked(problem, full, best, refits, most), None

    def for_replicates(self) -> Self:
        """Return the same search with fewer refits."""
        return replace(self, n_refits=min(self.n_refits, REPLICATE_REFITS), verbose=0)


def _ranked(
    problem: SearchProblem,
    full: FullModel | FittedForm,
    best: BestOfForm,
    refits: list[Refit],
    max_nodes: int,
) -> Search:
    """Sort the assignments by the exact criterion; those without a maximum come last."""
    goal, masks = problem.goal, best.masks
    m, held = goal.n_selected, masks.sum(axis=1) + full.n_fixed
    k = problem.moments.n_features
    both = bool(full.form.searched)
    good = np.array([refit.converged for refit in refits], dtype=bool)
    fitted = np.array([refit.log_likelihood for refit in refits]) + full.offset
    if both:
        # With no feature in the selection equation, there is nothing to correct with.
        good &= masks[:, k:].any(axis=1)
    log_likelihood = np.where(good, fitted, np.nan)
    if not good.any():
        raise _no_maximum(problem, len(masks))
    units = goal.count_units(masks)
    penalty = goal.value(goal.penalty(held) + goal.unit_penalty(units))
    exact = -2.0 * log_likelihood + penalty
    order = first_of_ties(np.where(good, exact, np.inf) / m, masks)
    aic, bic = likelihood_criteria(log_likelihood, held, m)
    theta = [refit.theta for refit in refits]
    rho = np.where(good, [full.rho_of(point) for point in theta], np.nan)
    offset = -2.0 * full.log_likelihood + float(goal.value(goal.penalty(full.n_fixed)))
    coef = np.array([full.coef(point, k) for point in theta])
    coef = np.where(masks[:, :k], coef, 0.0)
    coef[~good] = np.nan
    result = Search(
        # Results name columns of X, and know the form of both equations on its own.
        goal=_over_columns(problem, both=both),
        packed=np.packbits(masks[order, :k], axis=1),
        n_columns=k,
        n_features=np.asarray(masks[order, :k].sum(axis=1)),
        selection_packed=np.packbits(masks[order, k:], axis=1) if both else None,
        joint_ebic=(bic + 2.0 * goal.log_ways(units))[order] if both else None,
        rho=rho[order],
        adjusted_r2=np.full(len(masks), np.nan),
        aic=aic[order],
        bic=bic[order],
        in_range=good[order],
        n_assignments=best.n_assignments,
        n_in_range=int(np.count_nonzero(good)),
        optimal=best.optimal,
        gap=best.gap,
        n_nodes=best.n_nodes,
        interrupted=best.interrupted,
        refits=ExactRefits(
            approximate=(best.values + offset)[order],
            log_likelihood=log_likelihood[order],
            coef=coef[order],
            beyond=best.beyond + offset,
            full_log_likelihood=full.log_likelihood,
            held_rho=full.held_rho,
            full=full.all_features(problem.rows),
        ),
    )
    return result if best.complete else _incomplete(result, max_nodes)


def _over_columns(problem: SearchProblem, *, both: bool) -> Goal:
    """Return the goal as results have it, whose units are columns of X.

    Results know the form of both equations on its own.
    """
    goal, k = problem.goal, problem.moments.n_features
    if both:
        return replace(goal, units=None, form=None)
    assert goal.units is not None
    return replace(goal, units=tuple(tuple(c for c in unit if c < k) for unit in goal.units))


def _by_form(problem: SearchProblem, form: Form, best: BestOfForm, max_nodes: int) -> Search:
    """Return the best assignments by a form of estimates that have no likelihood.

    Criteria are relative to the model of everything.
    """
    goal, k, masks = problem.goal, problem.moments.n_features, best.masks
    units, columns = goal.count_units(masks), masks.sum(axis=1)
    cost = form.dropped(masks)
    bic = cost + columns * np.log(goal.n_selected)
    states = np.column_stack([masks[:, :k], np.ones(len(masks)), np.zeros(len(masks))]).astype(bool)
    errors = form.error_terms(
        Members(form, states, np.full(len(masks), 1.0 / len(masks))).estimates
    )
    unknown = np.full(len(masks), np.nan)
    result = Search(
        goal=_over_columns(problem, both=False),
        packed=np.packbits(masks[:, :k], axis=1),
        n_columns=k,
        n_features=np.asarray(masks[:, :k].sum(axis=1)),
        joint_ebic=bic + 2.0 * goal.log_ways(units),
        rho=errors.get("rho", unknown),
        adjusted_r2=unknown,
        aic=cost + 2.0 * columns,
        bic=bic,
        in_range=np.ones(len(masks), dtype=bool),
        n_assignments=best.n_assignments,
        n_in_range=len(masks),
        optimal=best.optimal,
        gap=best.gap,
        n_nodes=best.n_nodes,
        interrupted=best.interrupted,
    )
    return result if best.complete else _incomplete(result, max_nodes)


def _no_maximum(problem: SearchProblem, n_refits: int) -> NoFeasibleAssignmentError:
    """Say that no assignment can be chosen, and what to change."""
    advice = (
        "Name features that drive selection alone in "
        f"{option('never', [...])}{instead(', or raise n_refits', '')}."
    )
    probit = problem.moments.probit
    assert probit is not None
    p, m = len(probit.features), problem.goal.n_selected
    fewest = min(m, probit.n - m)
    if fewest < _ROWS_PER_FEATURE * p:
        kind = "selected" if fewest == m else "unselected"
        advice = (
            f"{plural(p, 'selection feature')} for {weighted_count(fewest):,} {kind} rows fit "
            f"selection so closely that little is left to tell rho. {FEWER_SELECTING}: a common "
            f"rule is {_ROWS_PER_FEATURE} rows of the rarer kind per feature."
        )
    return NoFeasibleAssignmentError(
        "maximum likelihood has no maximum with rho inside (-1, 1) in any of the "
        f"{plural(n_refits, 'best assignment')} by the quadratic approximation. {advice}"
    )


def _incomplete(result: Search, max_nodes: int) -> Search:
    """Warn that the tree was not searched to its end."""
    reason = (
        "was interrupted" if result.interrupted else f"stopped at {NODE_LIMIT}{max_nodes} nodes"
    )
    gap = result.gap or 0.0
    warn(
        f"the search {reason}; by the quadratic approximation, "
        + (
            f"another assignment may be better than the best found by at most {gap:.3g} (gap_)."
            if gap
            else "none is better than the best found, but others nearly as good may be missing."
        ),
        SearchWarning,
    )
    return replace(result, early_stop=f"The search {reason}.")

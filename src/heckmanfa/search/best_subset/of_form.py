"""The best assignments by a quadratic form and a penalty per column, proven to be the best.

For a likelihood that compressed rows cannot give, its quadratic approximation at the estimates of
all features ranks the assignments; the few best can then be fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.search.best_subset.branch_and_bound import node_budget, warm_start
from heckmanfa.search.best_subset.relaxation import search
from heckmanfa.search.best_subset.tree import Tree
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Criterion, Goal, distinct, first_of_ties
from heckmanfa.search.quadratic import QuadraticForm


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
    """no assignment that is not among these has a lower value; infinite if there is none"""
    interrupted: bool
    """whether the user stopped the search"""


def best_of_form(
    form: QuadraticForm,
    choices: Choices,
    *,
    n_rows: float,
    criterion: Criterion = "corrected_bic",
    column_penalty: float | None = None,
    n_best: int = 50,
    max_nodes: int | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> BestOfForm:
    """Find the ``n_best`` assignments that are allowed and have the least Q + penalty J.

    The form must hold every column of ``choices``; J counts columns. The penalty of a column is
    that of the ``criterion``, log ``n_rows`` by default, the number of rows behind the form, unless
    ``column_penalty`` is given. EBIC also penalises units. ``max_nodes`` and ``progress`` are those
    of `best_subset`.
    """
    moments = form.as_moments(choices.n_features, n_rows)
    goal = replace(Goal.of_form(form, choices, criterion, n_rows), column_penalty=column_penalty)
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
    masks = tree.record.found()
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
    """Return the assignments that differ from one, (K,), in one unit, as far as allowed."""
    inside = mask[[unit[0] for unit in choices.units]]
    moved = inside ^ np.eye(len(inside), dtype=bool)
    return choices.masks(moved[choices.allowed(moved)])

"""The best assignments by a quadratic form and a penalty per column, proven to be the best.

For a likelihood that compressed rows cannot give, its quadratic approximation at the estimates of
all features ranks the assignments; the few best can then be fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.search.best_subset.branch_and_bound import node_budget, warm_start
from heckmanfa.search.best_subset.tree import Tree
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal, distinct, first_of_ties
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


def best_of_form(
    form: QuadraticForm,
    choices: Choices,
    *,
    n_rows: float,
    column_penalty: float | None = None,
    n_best: int = 50,
    max_nodes: int | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> BestOfForm:
    """Find the ``n_best`` assignments that are allowed and have the least Q + penalty J.

    The form must hold every column of ``choices``; J counts columns. The penalty of a column is
    log ``n_rows``, the number of rows behind the form, unless ``column_penalty`` is given.
    ``max_nodes`` and ``progress`` are those of `best_subset`.
    """
    moments = form.as_moments(choices.n_features, n_rows)
    goal = Goal(
        criterion="corrected_bic",
        rho_range=None,
        n_selected=n_rows,
        total_squares=moments.total_squares,
        units=choices.units,
        form=form,
        column_penalty=column_penalty,
    )
    start = warm_start(moments, choices, goal)
    tree = Tree(
        *(moments, choices, goal),
        tolerance=np.inf,
        max_nodes=node_budget(choices) if max_nodes is None else max_nodes,
        start=np.inf if start is None else start[0],
        n_kept=n_best,
    )
    tree.run(progress)
    masks = tree.record.found()
    if start is not None:
        masks = distinct(np.concatenate([masks, start[1][None]]))
    loss = goal.loss(form.dropped(masks), masks.sum(axis=1))
    order = first_of_ties(loss, masks)[:n_best]
    values = goal.value(loss[order])
    gap = 0.0 if tree.complete else max(float(values[0] - goal.value(tree.bound)), 0.0)
    return BestOfForm(masks[order], values, gap == 0.0, tree.complete, gap, tree.n_nodes)

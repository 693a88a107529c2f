"""The best of all assignments, by branch and bound: a result with a proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from heckmanfa.errors import SearchWarning, warn
from heckmanfa.model.moments import Moments
from heckmanfa.search.best_subset.tree import Tree
from heckmanfa.search.best_subset.warm_start import warm_start
from heckmanfa.search.candidates import KEPT, Search, distinct, evaluate, no_feasible
from heckmanfa.search.choices import Choices
from heckmanfa.search.criteria import NEARLY, Goal

__all__ = ["best_subset"]

# A node costs about as much as its matrix has entries. Unless the user says otherwise, the budget
# is so many entries, a minute's work or so.
_ENTRIES = 2_000_000_000


def best_subset(
    moments: Moments,
    choices: Choices,
    goal: Goal,
    *,
    names: Sequence[str],
    tolerance: float | None = None,
    max_nodes: int | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> Search:
    """Find the best assignment of all, and every one nearly as good.

    Parameters
    ----------
    names : sequence of str
        A label for each column of X, for messages.
    tolerance : float, optional
        Assignments worse by this much in the criterion are kept, too; 0.001 of adjusted R^2, or
        2 of AIC and BIC, unless given.
    max_nodes : int, optional
        The most nodes of the tree to visit: unless given, as many as make a minute's work or so,
        2e9 / (U + 1)^2 for U units.
    progress : callable, optional
        Called with the number of nodes, the best value so far and the bound on all others.

    Returns
    -------
    Search
        With ``optimal`` and ``gap``. `NoFeasibleAssignmentError` where none is in the window.

    Examples
    --------
    >>> from heckmanfa import compress
    >>> from heckmanfa.datasets import make_selection
    >>> from heckmanfa.search import Goal, all_features, best_subset
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> moments = compress(data.X, data.y).moments
    >>> goal = Goal.of(moments, "bic")
    >>> found = best_subset(moments, all_features(moments), goal, names=data.feature_names)
    >>> found.best.nonzero()[0].tolist(), found.optimal
    ([2, 3, 4], True)
    """
    if tolerance is None:
        tolerance = NEARLY[goal.criterion]
    if max_nodes is None:
        max_nodes = _ENTRIES // (len(choices.units) + 1) ** 2
    start = warm_start(moments, choices, goal)
    tree = Tree(
        moments,
        choices,
        goal,
        tolerance=tolerance,
        keep=KEPT,
        max_nodes=max_nodes,
        start=np.inf if start is None else start[0],
    )
    tree.run(None if progress is None else _in_words(goal, progress))
    masks = tree.ledger.found()
    reason = ""
    n_assignments, n_in_range = tree.ledger.n_assignments, tree.ledger.n_in_range
    if not tree.complete:
        reason = (
            "was interrupted" if tree.interrupted else f"stopped at max_nodes = {max_nodes} nodes"
        )
        if start is not None:
            known = len(masks)
            masks = distinct(np.concatenate([masks, start[1][None]]))
            n_assignments += len(masks) - known
            n_in_range += len(masks) - known
    if len(masks) == 0:
        if tree.interrupted:
            raise KeyboardInterrupt
        extra = "" if tree.complete else f" The search {reason}; raise it to look at more."
        rho, seen = tree.ledger.seen()
        raise no_feasible(goal, n_assignments, rho, seen, names, extra)
    found = evaluate(
        moments,
        goal,
        masks,
        names=names,
        counts=(n_assignments, n_in_range),
        n_nodes=tree.n_nodes,
        optimal=True,
        gap=0.0,
        tolerance=tolerance,
    )
    if tree.complete:
        return found
    best = float(found.values[0])
    possible = float(goal.value(tree.bound))
    gap = max(possible - best if goal.criterion == "adjusted_r2" else best - possible, 0.0)
    warn(
        f"the search {reason}; the best assignment found has {goal.criterion} {best:.6g}, and "
        + (
            f"one better by {gap:.3g} at most may exist (gap_)."
            if gap
            else "none is better, but not all that are nearly as good were found."
        ),
        SearchWarning,
    )
    return replace(
        found,
        gap=gap,
        optimal=gap == 0.0,
        ended=f"The search {reason}.",
        interrupted=tree.interrupted,
    )


def _in_words(
    goal: Goal, progress: Callable[[int, float, float], None]
) -> Callable[[int, float, float], None]:
    """Report losses as values of the criterion."""

    def report(n_nodes: int, best: float, bound: float) -> None:
        progress(n_nodes, float(goal.value(best)), float(goal.value(min(bound, best))))

    return report

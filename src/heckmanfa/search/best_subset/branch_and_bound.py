"""Best-subset search: warm start, tree search, and the report of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from heckmanfa.errors import SearchWarning, warn
from heckmanfa.model.moments import Moments
from heckmanfa.search.best_subset.tree import Tree
from heckmanfa.search.best_subset.warm_start import warm_start
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import NEARLY, Goal, Search, distinct, evaluate, no_feasible

# A node costs about as much as its matrix has entries. The default budget is this many entries,
# about a minute's work.
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
    """Find the best of all assignments, and every assignment nearly as good.

    ``tolerance`` and ``max_nodes`` are those of `HeckmanBestSubset`; ``names`` label the columns of
    X. ``progress`` is called with the number of nodes, the best value so far and the bound on the
    others.

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
    tolerance = NEARLY[goal.criterion] if tolerance is None else tolerance
    if max_nodes is None:
        max_nodes = _ENTRIES // (len(choices.units) + 1) ** 2
    start = warm_start(moments, choices, goal)
    best = np.inf if start is None else start[0]
    tree = Tree(moments, choices, goal, tolerance=tolerance, max_nodes=max_nodes, start=best)
    tree.run(None if progress is None else _in_criterion(goal, progress))
    masks = tree.record.found()
    n_assignments, n_in_range = tree.record.n_assignments, tree.record.n_in_range
    reason = "was interrupted" if tree.interrupted else f"stopped at max_nodes = {max_nodes} nodes"
    if not tree.complete and start is not None:
        known = len(masks)
        masks = distinct(np.concatenate([masks, start[1][None]]))
        n_assignments += len(masks) - known
        n_in_range += len(masks) - known
    if len(masks) == 0 and tree.interrupted:
        raise KeyboardInterrupt
    if len(masks) == 0:
        extra = "" if tree.complete else f" The search {reason}; raise it to evaluate more."
        raise no_feasible(goal, n_assignments, *tree.record.seen(), names, extra)
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
    return found if tree.complete else _incomplete(found, tree, reason)


def _incomplete(found: Search, tree: Tree, reason: str) -> Search:
    """Warn that the search stopped early, and state how far from optimal it may be."""
    goal = found.goal
    best = float(found.values[0])
    possible = float(goal.value(tree.bound))
    gap = max(possible - best if goal.criterion == "adjusted_r2" else best - possible, 0.0)
    warn(
        f"the search {reason}; the best assignment found has {goal.criterion} {best:.6g}, and "
        + (
            f"another may be better by at most {gap:.3g} (gap_)."
            if gap
            else "none is better, but others nearly as good may be missing."
        ),
        SearchWarning,
    )
    return replace(
        found,
        gap=gap,
        optimal=gap == 0.0,
        early_stop=f"The search {reason}.",
        interrupted=tree.interrupted,
    )


def _in_criterion(
    goal: Goal, progress: Callable[[int, float, float], None]
) -> Callable[[int, float, float], None]:
    """Report losses as values of the criterion."""

    def report(n_nodes: int, best: float, bound: float) -> None:
        progress(n_nodes, float(goal.value(best)), float(goal.value(min(bound, best))))

    return report

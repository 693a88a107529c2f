"""The same average without lambda: least squares on the selected rows, over the same assignments.

If all assignments were evaluated, they are evaluated again without lambda. Sampled ones are
weighed again instead: an assignment that was drawn by its weight with lambda counts as often as
its weight without lambda is larger. That ratio is bounded, since lambda never raises the SSE. If
few draws would count, all keep the weights that they have with lambda.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.model.least_squares import ManyRegressions, solve_many
from heckmanfa.model.moments import Moments
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.enumeration import enumerate_assignments
from heckmanfa.search.averaging.exhaustive import estimates_of, kept_of
from heckmanfa.search.averaging.result import Average, over_columns
from heckmanfa.search.averaging.weights import Kind, Rule, penalties

# Draws whose weights vary count less. If fewer than this share is left of the 1,600 or more, they
# say too little.
_LEAST_LEFT = 0.05
_SEED = 0


@dataclass(frozen=True, eq=False)
class Uncorrected:
    """An average over assignments without lambda."""

    coef: Floats
    """(K,) averages by own weights; a column counts as zero where it is absent"""
    share: Floats
    """(K,) BIC share of the assignments that hold each column; NaN if not known"""
    each: ManyRegressions
    """the C assignments that intervals use"""
    weights: Floats
    """(C,) summing to one"""


def average_uncorrected(
    moments: Moments, found: Average, by_bic: Average | None = None
) -> Uncorrected:
    """Average least squares over the assignments of an average.

    ``by_bic`` is the average by BIC weights if that is another, and assignments were sampled. A
    window of rho does not restrict models without lambda.
    """
    if not found.exhaustive:
        return _weighed_again(moments, found, by_bic or found)
    choices = found.choices
    columns = Columns.of(moments, choices, imr=False)
    rule = Rule.of(moments, choices, found.weights, imr=False)
    labels = [str(column) for column in range(choices.n_features)]
    with one_blas_thread():
        every = enumerate_assignments(columns, rule)
        kept = kept_of(every, labels, np.random.default_rng(_SEED))
    estimates = estimates_of(every)
    coef = np.zeros(choices.n_features)
    coef[list(columns.positions)] = columns.slopes(estimates.coef)
    share = over_columns(columns, estimates.inclusion["bic"])
    masks = np.unpackbits(kept.components, axis=1, count=choices.n_features).astype(bool)
    return Uncorrected(coef, share, solve_many(moments, masks), kept.component_weights)


def _weighed_again(moments: Moments, found: Average, by_bic: Average) -> Uncorrected:
    """Weigh sampled assignments as they would weigh without lambda."""
    own: Kind = "aic" if found.weights == "mean" else found.weights
    solved = solve_many(moments, found.component_masks)
    weights = _ratios(found, own, solved)
    if weights is None:
        weights = found.component_weights
    share = np.full(found.choices.n_features, np.nan)
    if by_bic.weights == "bic":
        again = solved if by_bic is found else solve_many(moments, by_bic.component_masks)
        of_bic = _ratios(by_bic, "bic", again)
        if of_bic is not None:
            share = of_bic @ by_bic.component_masks
    return Uncorrected(weights @ solved.coef, share, solved, weights)


def _ratios(found: Average, kind: Kind, solved: ManyRegressions) -> Floats | None:
    """Weights without lambda of the assignments drawn by their weights with it, (C,)."""
    masks, choices, m = found.component_masks, found.choices, found.n_selected
    held = masks.sum(axis=1)
    units = sum((masks[:, unit[0]].astype(int) for unit in choices.units), np.zeros_like(held))
    both, alone = (penalties(m, choices, imr=imr)[kind][held, units] for imr in (True, False))
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = m * np.log(solved.sse_with_imr / solved.sse)
    logs = np.nan_to_num(0.5 * (fit + both - alone), nan=-np.inf)
    ratio = found.component_weights * np.exp(logs - logs.max())
    ratio /= ratio.sum()
    left = 1.0 / float(np.sum(ratio**2 / found.component_weights))
    return ratio if left >= _LEAST_LEFT else None

"""What the spread of many assignments' estimates needs from the rows, gathered in one pass.

An assignment's estimates solve three sets of equations: the probit's scores, W'(y - W b) = 0 over
the selected rows with W = [1, X_S, lambda], and that of the errors' variance, Eq. sigmasq,

    sum of (e^2 + beta_H^2 delta - sigma^2) = 0.

The middle of a sandwich covariance is the sum of products of these scores. With the residuals e of
all candidate features it serves every assignment: an assignment's scores are some of the stored
columns, and its variance equation is a combination of two of them. It reads no rows afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from heckmanfa.data.arrays import Array, Floats, empty, like, namespace
from heckmanfa.data.rows import Block, Positions, Rows, pick
from heckmanfa.model.covariance import CovarianceKind, score_squares_and_sums
from heckmanfa.model.linalg import dependencies, solve_upper, subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import mills
from heckmanfa.model.option_types import CovType
from heckmanfa.model.probit import Probit, stacked_scores

# The residuals come from a model of at most this share of the selected rows' number of columns:
# those of more columns would be too small.
_MOST_COLUMNS = 1 / 3


class AlsoScored(Protocol):
    """One more score of each row, and sums over rows."""

    def __call__(self, block: Block) -> tuple[Array, tuple[Any, ...]]:
        """Return the scores (b,) of a block before weights, and its terms of the sums."""


@dataclass(frozen=True)
class WithMore:
    """Scores of a model, with one more."""

    scores: Callable[[Block], tuple[Array, tuple[Any, ...]]]
    also: AlsoScored

    def __call__(self, block: Block) -> tuple[Array, tuple[Any, ...]]:
        """Return all scores of each row of a block, and its terms of all sums."""
        scores, terms = self.scores(block)
        more, others = self.also(block)
        return namespace(scores).concat((scores, more[:, None]), axis=1), (*terms, *others)


@dataclass(frozen=True)
class ScoreMoments:
    """Sums over rows behind the covariances of all assignments of k candidate features.

    W is [1, X, lambda] over the candidates, centred and scaled to unit length over the selected
    rows; p is the number of selection features.
    """

    columns: tuple[int, ...]
    """positions in X of the k candidate features"""
    cov_type: CovType
    middle: Floats
    """(p + k + 5) squared, with the small-sample factor: the products of the probit's scores in
    its inner coordinates (1 + p), of W'e (k + 2), of e^2 / variance - 1, and of delta less its
    mean"""
    coef: Floats
    """(k + 2,) of the model behind the residuals; zero for dependent columns"""
    variance: float
    """mean of e^2"""
    residual_slope: Floats
    """(1 + p,) sum of delta e z, z in the probit's inner coordinates"""
    delta_slope: Floats
    """(1 + p,) derivative of the mean of delta with respect to the probit's inner coefficients"""

    def selection_covariance(self, probit: Probit) -> Floats:
        """Covariance of the probit's inner coefficients, (1 + p, 1 + p)."""
        inverse = probit.inner_covariance
        p = len(inverse)
        if self.cov_type == "classical":
            return inverse
        return np.asarray(inverse @ self.middle[:p, :p] @ inverse)


def gather_scores_and_more(
    moments: Moments,
    columns: Positions,
    rows: Rows,
    kind: CovarianceKind,
    also: AlsoScored | None,
) -> tuple[ScoreMoments, Floats, tuple[Any, ...]]:
    """Gather `ScoreMoments`, and from the same pass the products with one score more, and sums.

    ``also`` reads a block of the columns of ``moments``.

    ``rows`` are those of the probit, unselected ones included. The residuals are of all candidates,
    without those that depend on earlier ones. If the candidates are more than a third of the
    selected rows, those most correlated with the outcome are used.
    """
    probit = moments.probit
    assert probit is not None
    columns = tuple(int(column) for column in columns)
    coef, variance = _residual_model(moments, columns)
    read = list(moments.columns)
    places = moments.places(columns)
    means, (_, norms) = moments.means, moments.scaled()
    held = [*(place - 1 for place in places), len(read)]
    equations = _Equations(
        probit=probit,
        selection=[read.index(feature) for feature in probit.features],
        prediction=[place - 1 for place in places],
        centre=means[held],
        scale=norms[held],
        unit=float(moments.factor[0, 0]),
        coef=coef,
        variance=variance,
        mean_delta=moments.mean_delta,
    )
    p = len(probit.features) + 1
    scores, size = equations.scores, p + len(columns) + 4
    if also is not None:
        scores, size = WithMore(scores, also), size + 1
    whole, (residual_slope, delta_slope, *sums) = score_squares_and_sums(
        rows, kind, scores, columns=read, size=size
    )
    found = ScoreMoments(
        columns=columns,
        cov_type=kind.cov_type,
        middle=whole if also is None else whole[:-1, :-1],
        coef=coef,
        variance=variance,
        residual_slope=residual_slope,
        delta_slope=delta_slope / moments.n_selected,
    )
    return found, whole, tuple(sums)


def _residual_model(moments: Moments, columns: Positions) -> tuple[Floats, float]:
    """Coefficients of W for the outcome on all candidates, and the mean squared residual."""
    scaled, norms = moments.scaled()
    held = [*(place - 1 for place in moments.places(columns)), len(moments.columns)]
    constant = set(moments.constant_columns())
    order = [place for place, column in enumerate(columns) if column not in constant]
    most = int(moments.n_selected * _MOST_COLUMNS)
    if len(order) > most:
        products = np.abs(scaled[:, [held[place] for place in order]].T @ scaled[:, -1])
        order = sorted(order[at] for at in np.argsort(-products, kind="stable")[:most])
    order.append(len(columns))
    chosen = [held[place] for place in order]
    dependent = {item.column for item in dependencies(subset_factor(scaled, chosen))}
    kept = [place for at, place in enumerate(order) if at not in dependent]
    r = subset_factor(scaled, [*(held[place] for place in kept), -1])
    coef = np.zeros(len(columns) + 2)
    coef[0] = moments.factor[0, -1]
    coef[np.array(kept, dtype=np.intp) + 1] = solve_upper(r[:-1, :-1], r[:-1, -1]) * norms[-1]
    return coef, float((r[-1, -1] * norms[-1]) ** 2 / moments.n_selected)


@dataclass(frozen=True)
class _Equations:
    """All equations at the estimates, for a pass over blocks of rows."""

    probit: Probit
    selection: list[int]
    """positions of its features among a block's columns"""
    prediction: list[int]
    """likewise of the candidates"""
    centre: Floats
    """(k + 1,) of the candidates and lambda"""
    scale: Floats
    """(k + 1,) likewise"""
    unit: float
    """length of the constant"""
    coef: Floats
    variance: float
    mean_delta: float

    def scores(self, block: Block) -> tuple[Array, tuple[Floats, Floats]]:
        """Scores of each row of a block, and its terms of both slopes."""
        p, chosen = len(self.selection) + 1, block.selected
        scores, index = stacked_scores(block, self.probit, self.selection, p + len(self.coef) + 2)
        of_selected = block.only_selected()
        near = index[chosen]
        ratio, slope = mills(near)
        w = empty(of_selected.features, len(ratio), len(self.coef))
        centre, scale = like(self.centre, w), like(self.scale, w)
        w[:, 0] = 1.0 / self.unit
        w[:, 1:-1] = (pick(of_selected.features, self.prediction) - centre[:-1]) / scale[:-1]
        w[:, -1] = (ratio - centre[-1]) / scale[-1]
        residual = of_selected.outcome - w @ like(self.coef, w)
        scores[chosen, p:-2] = w * residual[:, None]
        # A perfect fit has no residuals to scale.
        scores[chosen, -2] = (residual / (self.variance or 1.0) ** 0.5) ** 2 - 1.0
        scores[chosen, -1] = slope - self.mean_delta
        # The derivative of delta = lambda (lambda + t), since that of lambda is -delta.
        bend = ratio * (1.0 - slope) - slope * (ratio + near)
        terms = (slope * residual, bend)
        if of_selected.weight is not None:
            terms = (terms[0] * of_selected.weight, terms[1] * of_selected.weight)
        of_design = self.probit.coordinates.design(pick(of_selected.features, self.selection))
        return scores, (of_design.pull(terms[0]), of_design.pull(terms[1]))

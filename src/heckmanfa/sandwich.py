"""The middle of sandwich covariances: sums of squared scores over rows or clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.errors import InputError
from heckmanfa.normal import Floats
from heckmanfa.rows import Block, Positions, Rows

__all__ = ["CovarianceKind", "score_squares"]


@dataclass(frozen=True)
class CovarianceKind:
    """Which covariance was asked for, and what the weights mean."""

    cov_type: str
    """'classical', 'robust' or 'cluster'"""
    sampling: bool
    """whether weights are sampling weights (else they count rows)"""
    n_groups: int = 0


def score_squares(
    rows: Rows,
    kind: CovarianceKind,
    scores: Callable[..., Floats],
    *args: Any,
    columns: Positions,
    size: int,
) -> Floats:
    """Sum of outer products of scores, with the usual small-sample factor.

    Parameters
    ----------
    rows : Rows
    kind : CovarianceKind
        'robust' sums over rows, times n / (n - 1); 'cluster' over the clusters' total scores,
        times G / (G - 1).
    scores : callable
        ``scores(block, *args)`` gives the (b, d) scores of a block, before weights.
    columns : sequence of int
        The columns that ``scores`` reads.
    size : int
        d.

    Returns
    -------
    (d, d) ndarray
    """
    if kind.cov_type == "cluster":
        if kind.n_groups < 2:
            raise InputError("cov_type='cluster' needs at least two groups; groups has 1")
        sums = np.zeros((kind.n_groups, size))
        for codes, parts in rows.map(_group_scores, scores, args, columns=columns):
            sums[codes] += parts
        return np.asarray(sums.T @ sums) * (kind.n_groups / (kind.n_groups - 1))
    n, middle = 0.0, np.zeros((size, size))
    for count, part in rows.map(_row_squares, scores, args, kind.sampling, columns=columns):
        n, middle = n + count, middle + part
    return middle * (n / (n - 1.0))


def _row_squares(
    block: Block, scores: Callable[..., Floats], args: tuple[Any, ...], sampling: bool
) -> tuple[float, Floats]:
    each = scores(block, *args)
    if block.weight is None:
        return float(len(each)), each.T @ each
    weight = block.weight if sampling else np.sqrt(block.weight)
    each = each * weight[:, None]
    return float(len(each) if sampling else block.weight.sum()), each.T @ each


def _group_scores(
    block: Block, scores: Callable[..., Floats], args: tuple[Any, ...]
) -> tuple[Any, Floats]:
    each = scores(block, *args)
    if block.weight is not None:
        each = each * block.weight[:, None]
    assert block.group is not None
    codes, inverse = np.unique(block.group, return_inverse=True)
    sums = np.zeros((len(codes), each.shape[1]))
    np.add.at(sums, inverse, each)
    return codes, sums

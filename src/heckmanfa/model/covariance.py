"""Sandwich covariances of any estimates, from the scores of rows and a bread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, Floats, add_at, host, namespace, zeros
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.rows import Block, Mask, Positions, Rows, total
from heckmanfa.model.linalg import symmetric
from heckmanfa.model.unit_totals import squares_of_totals
from heckmanfa.text.option_types import CovType, WeightKind


def is_classical(cov_type: CovType | None) -> bool:
    """Whether the covariance is the method's own, which None also requests."""
    return cov_type is None or cov_type == "classical"


def sums_groups(cov_type: CovType | None) -> bool:
    """Whether the covariance is one of the total scores of groups of rows."""
    return cov_type in ("cluster", "survey")


def errors_differ(cov_type: CovType | None, weight_kind: WeightKind) -> bool:
    """Whether a model's standard errors need rows: the compressed data give classical ones."""
    return not is_classical(cov_type) or weight_kind == "sampling"


@dataclass(frozen=True)
class CovarianceKind:
    """Which covariance to estimate, and what the weights mean."""

    cov_type: CovType
    sampling: bool
    """whether weights are sampling weights; otherwise they count rows"""
    cells: Cells | None = None
    """the units whose codes rows have; None without groups"""

    @property
    def n_groups(self) -> int:
        """Number of group codes, which start at 0."""
        return 0 if self.cells is None else self.cells.n

    @property
    def sums_groups(self) -> bool:
        """Whether the covariance is one of the total scores of groups of rows."""
        return sums_groups(self.cov_type)


CLASSICAL = CovarianceKind("classical", False)
"""reads no rows"""


def sandwich(
    rows: Rows,
    kind: CovarianceKind,
    bread: Floats,
    scores: Callable[..., Array],
    *args: Any,
    columns: Positions,
) -> Floats:
    """Return the robust or cluster covariance B M B' of estimates, (e, e).

    The bread B, (e, d), is how the estimates follow the sums of d scores: the inverse information,
    or that of each step of stacked equations. M is what `score_squares` returns.
    """
    middle = score_squares(rows, kind, scores, *args, columns=columns, size=bread.shape[1])
    return symmetric(bread @ middle @ bread.T)


def score_squares(
    rows: Rows,
    kind: CovarianceKind,
    scores: Callable[..., Array],
    *args: Any,
    columns: Positions,
    size: int,
) -> Floats:
    """Sum outer products of scores, (d, d), with the usual small-sample factor.

    'robust' sums over rows, times n / (n - 1); 'cluster' and 'survey' over the totals of units, as
    `heckmanfa.model.unit_totals` does. ``scores(block, *args)`` reads ``columns`` and returns the
    (b, d) scores of a block, before weights; d is ``size``.
    """
    return score_squares_and_sums(rows, kind, scores, *args, columns=columns, size=size)[0]


def score_squares_and_sums(
    rows: Rows,
    kind: CovarianceKind,
    scores: Callable[..., Any],
    *args: Any,
    columns: Positions,
    size: int,
) -> tuple[Floats, tuple[Any, ...]]:
    """Return what `score_squares` does, and totals over all blocks from the same pass.

    ``scores(block, *args)`` returns the scores of a block, and its terms of the totals if there are
    any; weights apply to the scores alone.
    """
    if kind.sums_groups:
        cells = kind.cells or Cells(0)
        totals, seen, also = total_scores(rows, cells, scores, *args, columns=columns, size=size)
        return squares_of_totals(cells, totals, seen), also
    n, middle, *rest = total(
        rows.map(_row_squares, scores, args, kind.sampling, columns=columns, merge=total)
    )
    return np.asarray(middle * (n / (n - 1.0))), tuple(rest)


def total_scores(
    rows: Rows,
    cells: Cells,
    scores: Callable[..., Any],
    *args: Any,
    columns: Positions,
    size: int,
) -> tuple[Floats, Mask, tuple[Any, ...]]:
    """Return the total scores of each unit, (n, d), which units have a row, and other totals."""
    sums, seen, also = np.zeros((cells.n, size)), np.zeros(cells.n, dtype=bool), []
    for codes, of_groups, terms in rows.map(
        _group_scores, scores, args, columns=columns, merge=_merge_groups
    ):
        sums[codes] += of_groups
        seen[codes] = True
        also.append(terms)
    return sums, seen, total(also)


def scores_and_terms(scored: Any) -> tuple[Array, tuple[Any, ...]]:
    """Return the scores of a block, and its terms of totals; none if it has scores alone."""
    return scored if isinstance(scored, tuple) else (scored, ())


def count_clusters(rows: Rows, cells: Cells) -> tuple[int, ...]:
    """Count the clusters that have at least one row, of each clustering."""
    return cells.counts(seen_cells(rows, cells))


def seen_cells(rows: Rows, cells: Cells) -> Mask:
    """Return which cells, (n,), have at least one row."""
    parts = rows.map(_codes, columns=(), merge=_merge_codes)
    seen = np.zeros(cells.n, dtype=bool)
    seen[np.unique(np.concatenate(list(parts)))] = True
    return seen


def _codes(block: Block) -> Any:
    return np.unique(host(block.group))


def _merge_codes(parts: list[Any]) -> Any:
    return np.unique(np.concatenate(parts))


def _row_squares(
    block: Block, scores: Callable[..., Any], args: tuple[Any, ...], sampling: bool
) -> tuple[Any, ...]:
    each, terms = scores_and_terms(scores(block, *args))
    if block.weight is None:
        return float(len(each)), host(each.T @ each), *terms
    weight = block.weight if sampling else block.weight**0.5
    each = each * weight[:, None]
    return float(len(each) if sampling else block.weight.sum()), host(each.T @ each), *terms


def _group_scores(
    block: Block, scores: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Any, Floats, tuple[Any, ...]]:
    each, terms = scores_and_terms(scores(block, *args))
    if block.weight is not None:
        each = each * block.weight[:, None]
    assert block.group is not None
    codes, sums = _by_group(block.group, each)
    return host(codes), host(sums), terms


def _by_group(groups: Array, each: Array) -> tuple[Array, Array]:
    """Sum the scores of each group."""
    xp = namespace(each)
    codes, inverse = xp.unique_inverse(groups)
    sums = zeros(each, codes.shape[0], each.shape[1])
    add_at(sums, inverse, each)
    return codes, sums


def _merge_groups(
    parts: list[tuple[Any, Floats, tuple[Any, ...]]],
) -> tuple[Any, Floats, tuple[Any, ...]]:
    codes, sums, terms = zip(*parts, strict=True)
    return *_by_group(np.concatenate(codes), np.concatenate(sums)), total(terms)

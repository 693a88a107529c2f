"""From the total scores of clusters or sampling units to the middle of a sandwich covariance.

One clustering sums outer products of its totals, times G / (G - 1). Two clusterings add those of
each and subtract those of their cells (Cameron, Gelbach and Miller, 2011), each with its own
factor. A survey sums, in each stratum, those of its primary sampling units about their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.rows import Groups, Mask
from heckmanfa.errors import InputError
from heckmanfa.model.linalg import symmetric
from heckmanfa.text.option_words import option

Settle = Callable[[Floats, Floats, int], Floats]
"""what n units count for, from their totals, (n, d), and other sums over their rows"""


def _as_they_are(totals: Floats, also: Floats, n: int) -> Floats:
    return totals


def squares_of_totals(cells: Cells, totals: Floats, seen: Mask) -> Floats:
    """Return the middle matrix, (d, d), given the (n, d) totals of cells.

    ``seen`` (n,) says which have a row of the fit. Those without one, in the other half of a split
    or left out, are not clusters, but they are units of a survey, with a total of zero.
    """
    return sum_of_squares(scaled_totals(cells, totals, seen))


def scaled_totals(
    cells: Cells,
    totals: Floats,
    seen: Mask,
    also: Floats | None = None,
    settle: Settle = _as_they_are,
) -> list[Floats]:
    """Return what the middle is made of: the totals of units, times the root of their factor.

    There is one array for a survey and for one clustering. There are three for two clusterings:
    those of each, and of their cells. ``settle`` may make other numbers of the totals, and of other
    sums over the rows of each cell, ``also`` (n, m).
    """
    also = np.zeros((len(totals), 0)) if also is None else also
    if cells.strata is not None:
        about, factor = _about_strata(cells, cells.strata, totals)
        return [settle(about, also, len(totals)) * factor[:, None]]
    numbers = [int(seen.sum()), *(len(np.unique(codes[seen])) for codes in cells.ways)]
    own, *ways = (
        settle(*sums, check_clusters(n)) * np.sqrt(n / (n - 1))
        for sums, n in zip(
            [(totals, also), *((_summed(totals, way), _summed(also, way)) for way in cells.ways)],
            numbers,
            strict=True,
        )
    )
    return [*ways, own]


def _summed(of_cells: Floats, codes: Groups) -> Floats:
    """Return the totals of clusters from those of their cells."""
    sums = np.zeros((int(codes.max()) + 1, of_cells.shape[1]))
    np.add.at(sums, codes, of_cells)
    return sums


def sum_of_squares(parts: Sequence[Floats]) -> Floats:
    """Return the middle that `scaled_totals` make: two clusterings less their cells."""
    if len(parts) == 1:
        return np.asarray(parts[0].T @ parts[0])
    first, second, both = (np.asarray(part.T @ part) for part in parts)
    return without_negative(first + second - both, np.diag(first + second))


def check_clusters(n: int) -> int:
    """Refuse a single cluster, which carries no information on how clusters vary."""
    if n < 2:
        raise InputError(
            f"{option('cov_type', 'cluster')} needs at least two groups; groups has {n}"
        )
    return n


def check_counts(counts: tuple[int, ...]) -> int:
    """Return the smallest number of clusters of any clustering; refuse a single one."""
    if len(counts) > 1 and min(counts) < 2:
        place = ("first", "second")[counts.index(min(counts))]
        raise InputError(
            f"{option('cov_type', 'cluster')}: the {place} of the two clusterings has a single "
            "group; both need at least two. Leave it out"
        )
    return check_clusters(min(counts))


def without_negative(squares: Floats, scale: Floats) -> Floats:
    """Set negative eigenvalues of a difference of covariances to zero.

    They are those of the matrix with every row and column divided by the root of its ``scale``,
    (d,), so that the units of features do not matter.
    """
    root = np.sqrt(np.where(scale > 0, scale, 1.0))
    values, vectors = np.linalg.eigh(symmetric(squares / np.outer(root, root)))
    if values.min(initial=0.0) >= 0.0:
        return squares
    kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return symmetric(kept * np.outer(root, root))


def _about_strata(cells: Cells, strata: Groups, totals: Floats) -> tuple[Floats, Floats]:
    """Return totals of units about their stratum's mean, and root((1 - f) n / (n - 1)) of each.

    A stratum of one unit adds nothing ("certainty"), or its square about the mean of all units.
    """
    counts = np.bincount(strata)
    centre = _summed(totals, strata) / counts[:, None]
    factor = np.where(counts > 1, counts / np.maximum(counts - 1, 1), 0.0)
    if cells.single_psu == "centered":
        alone = counts == 1
        centre[alone] = totals.mean(axis=0)
        factor[alone] = 1.0
    if cells.fraction is not None:
        factor = factor * (1.0 - cells.fraction)
    return totals - centre[strata], np.sqrt(factor)[strata]

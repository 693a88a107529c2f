"""Augmented inverse probability weighting: means, differences and linear projections of everyone.

With m(x) the expected outcome and p(x) the chance to be selected, each row's pseudo-outcome is

    psi = m(x) + s (y - m(x)) / p(x),

whose mean given x is E[y | x] if outcomes are missing at random and m or p is right (Robins,
Rotnitzky and Zhao, 1994). Small errors in both change its mean only by their product, so estimates
of m and p from other rows need no correction of the standard errors (Chernozhukov et al., 2018).
Linear coefficients are the projection of psi (Semenova and Chernozhukov, 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import ArrayRows, Block, Mask, Matrix
from heckmanfa.errors import InputError
from heckmanfa.inference.cross_fitting import KnownRows
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.inverse_probabilities import Bounds, Overlap, WeightSums
from heckmanfa.model.leverage import Regressions, Uncertainty, leveraged_sandwich
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.two_step import fit_least_squares


def pseudo_outcomes(outcome: Floats, selected: Mask, expected: Floats, weight: Floats) -> Floats:
    """Return m(x) + s w (y - m(x)), (n,); ``weight`` is one over the chance to be selected."""
    residual = np.where(selected, outcome - expected, 0.0)
    return np.asarray(expected + weight * residual)


@dataclass(frozen=True, eq=False)
class Pseudo:
    """Pseudo-outcomes of rows that are likely enough to be selected."""

    values: Floats
    kept: Mask
    """(n,) False where a row is left out, since it was unlikely to be selected"""
    overlap: Overlap | None

    @classmethod
    def of(
        cls,
        rows: KnownRows,
        expected: Floats,
        chance: Floats,
        bounds: Bounds,
        *,
        sampling: bool,
    ) -> Pseudo:
        """Weigh the residuals, within bounds of the weights."""
        with np.errstate(divide="ignore"):
            log_chance = np.log(chance)
        weight, _, low = bounds.weights(log_chance)
        sums = WeightSums.of(log_chance, rows.selected, rows.weight, bounds, sampling=sampling)
        values = pseudo_outcomes(rows.outcome, rows.selected, expected, weight)
        return cls(values, ~low, sums.overlap())


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """Groups of rows whose means are compared, the reference first."""

    names: tuple[str, ...] = ()
    members: tuple[Mask, ...] = ()
    """(n,) who is in each group"""


@dataclass(frozen=True, eq=False)
class Robust:
    """Estimates with their covariance: the mean, those of groups, differences, projection."""

    values: Floats
    uncertainty: Uncertainty
    projection: Floats
    """(1 + J,) intercept first, which the values end with"""


def estimate(
    rows: ArrayRows,
    moments: Moments,
    prediction: Sequence[int],
    groups: GroupMeans,
    kind: CovarianceKind,
) -> Robust:
    """Average and project pseudo-outcomes, which ``rows`` have as outcomes of everyone.

    ``moments`` are those of the rows. All estimates solve linear equations, and their covariance
    is that of the sums of each row's terms in them, which allows for leverage.
    """
    psi = np.asarray(rows.outcome)
    count = np.ones(len(psi)) if rows.weight is None else np.asarray(rows.weight)
    everyone = np.ones(len(psi), dtype=bool)
    sizes, means, terms, roots = [], [], [], []
    for name, member in zip(("everyone", *groups.names), (everyone, *groups.members), strict=True):
        size = float(count[member].sum())
        if not size:
            raise InputError(f"no row is left of {name}, so it has no mean")
        mean = float(count[member] @ psi[member]) / size
        sizes.append(size)
        means.append(mean)
        terms.append(np.where(member, psi - mean, 0.0))
        roots.append(member / np.sqrt(size))
    solved = fit_least_squares(moments, prediction)
    n = len(solved.coef)
    combined = _with_differences(len(groups.names), n)
    uncertainty = Uncertainty.unknown(len(combined))
    design = np.column_stack([np.ones(len(psi)), rows.source.take(0, len(psi), prediction)])
    if not solved.underdetermined:
        root = moments.subset(prediction, imr=False, outcome=False)
        inverse_root = solve_upper(root, np.eye(n))
        own = design @ inverse_root
        residual = psi - design @ solved.coef
        scores = np.column_stack([*terms, own * residual[:, None], *roots, own])
        bread = sla.block_diag(np.diag(1.0 / np.array(sizes)), inverse_root)
        scored = ArrayRows(Matrix(scores), rows.outcome, rows.selected, rows.weight, rows.group)
        # A mean is a regression on a constant.
        stacked = Regressions(_scores, (*(1 for _ in means), n), len(bread))
        uncertainty = leveraged_sandwich(
            scored, kind, combined @ bread, stacked, columns=range(scores.shape[1])
        )
    return Robust(combined @ np.append(means, solved.coef), uncertainty, solved.coef)


def _scores(block: Block) -> Floats:
    return np.array(block.features)


def _with_differences(n_groups: int, n_coef: int) -> Floats:
    """Return the matrix that adds differences from the first group to means and coefficients."""
    n_means = 1 + n_groups
    differences = np.zeros((max(n_groups - 1, 0), n_means + n_coef))
    for place in range(len(differences)):
        differences[place, [1, 2 + place]] = -1.0, 1.0
    identity = np.eye(n_means + n_coef)
    return np.vstack([identity[:n_means], differences, identity[n_means:]])

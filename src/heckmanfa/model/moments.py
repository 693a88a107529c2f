"""The compressed data: after one pass, no assignment of prediction features needs the rows.

The selection equation does not depend on which features predict. With gamma-hat fixed, the
selected rows of A = [1, X, lambda, y] enter the second step of Algorithm 1 only through their
triangular factor R, and its corrected covariance only through R_delta, the factor of
sqrt(delta) [1, X, lambda], delta = lambda (lambda + z'gamma).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from heckmanfa.data.arrays import Floats, empty, highest, lowest, namespace
from heckmanfa.data.rows import Block, Mapped, Mask, Positions, pick
from heckmanfa.errors import InputError
from heckmanfa.model.linalg import (
    DEPENDENT,
    Factor,
    Stacker,
    block_factor,
    column_norms,
    merge_factors,
    residual_share,
    solve_upper,
    subset_factor,
)
from heckmanfa.model.normal import mills
from heckmanfa.model.probit import Probit
from heckmanfa.text.option_words import OUT_OF_PREDICTION

# Batches use the Gram matrix of scaled columns if its smallest eigenvalue is above this: by
# interlacing no assignment is worse conditioned, and ten digits are kept.
_GRAM_EIGENVALUE = 1e-6
_BATCH_BYTES = 2**25
# With more columns than this, a batch solves systems of those that are held.
_FEW_COLUMNS = 32


@dataclass(frozen=True)
class Solutions:
    """Least-squares results for one assignment (0-d arrays) or for B of them (leading axis).

    An assignment that cannot be solved (a feature constant among the selected rows, collinear
    features, too few rows) has ``feasible`` False and NaN elsewhere.
    """

    coef: Floats
    """(..., K), zero for unassigned features"""
    intercept: Floats
    imr_coef: Floats
    """beta_H, the coefficient of lambda"""
    sse: Floats
    sigma: Floats
    """Eq. sigmasq"""
    rho: Floats
    """beta_H / sigma; not confined to (-1, 1)"""
    r2: Floats
    adjusted_r2: Floats
    """Eq. adjustedr2"""
    aic: Floats
    """m log(SSE/m) + 2 (J + 2)"""
    bic: Floats
    """m log(SSE/m) + (J + 2) log m"""
    n_features: Any
    """J"""
    feasible: Any


@dataclass(frozen=True)
class Moments:
    """The selected rows, compressed."""

    leave_out: ClassVar[str] = OUT_OF_PREDICTION
    """where to leave a feature that cannot predict"""
    columns: tuple[int, ...]
    """positions in X of the k compressed features"""
    n_features: int
    """K, the number of columns of X"""
    factor: Floats
    """(k + 3, k + 3) R of [1, X, lambda, y]"""
    factor_delta: Floats
    """(k + 2, k + 2) R of sqrt(delta) [1, X, lambda]"""
    n_selected: float
    """m, the sum of the weights of the selected rows"""
    mean_delta: float
    """average of delta over the selected rows"""
    index_range: tuple[float, float]
    """range of z'gamma among the selected rows"""
    probit: Probit | None
    """the selection equation behind lambda; None if every row is selected"""

    def places(self, features: Positions) -> list[int]:
        """Columns of the factor that hold features, given by their positions in X."""
        where = {column: place for place, column in enumerate(self.columns, start=1)}
        unknown = [feature for feature in features if feature not in where]
        if unknown:
            raise InputError(
                f"column {unknown[0]} of X is not among the compressed features; compress again "
                "with it in prediction_features or selection_features"
            )
        return [where[feature] for feature in features]

    def positions(self, features: Positions) -> list[int]:
        """Positions of features among the compressed ones, and so in blocks of these columns."""
        return [place - 1 for place in self.places(features)]

    def subset(self, features: Positions, *, imr: bool = True, outcome: bool = True) -> Floats:
        """Triangular factor of [1, X_S, lambda, y], or without its last columns."""
        tail = [len(self.columns) + 1] * imr + [len(self.columns) + 2] * outcome
        return subset_factor(self.factor, [0, *self.places(features), *tail])

    @property
    def mean_deltas(self) -> tuple[float, ...]:
        """Mean of delta of each outcome equation."""
        return (self.mean_delta,)

    def designs(self, features: Positions) -> list[tuple[str, list[str], Floats]]:
        """Return where each prediction equation is fitted, its first columns, and its factor.

        The first columns are named; the ``features`` follow.
        """
        root = self.subset(features, imr=False, outcome=False)
        return [("among the selected rows", ["constant"], root)]

    @property
    def n_fitted(self) -> float:
        """Weight of the rows behind the smallest prediction equation."""
        return self.n_selected

    @property
    def total_squares(self) -> float:
        """Sum of squares of the outcome about its mean."""
        return float(np.sum(self.factor[1:, -1] ** 2))

    def quality(self, sse: Any, n_features: Any, n_counted: Any) -> dict[str, Floats]:
        """Return R^2, adjusted R^2, AIC and BIC of regressions with these SSE.

        AIC and BIC count ``n_counted`` coefficients.
        """
        m = self.n_selected
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = 1.0 - sse / self.total_squares
            fit = m * np.log(sse / m)
        spare = np.where(m - n_features > 1, m - n_features - 1.0, np.nan)
        return {
            "r2": np.asarray(r2),
            "adjusted_r2": np.asarray(1.0 - (1.0 - r2) * (m - 1.0) / spare),
            "aic": np.asarray(fit + 2.0 * n_counted),
            "bic": np.asarray(fit + n_counted * np.log(m)),
        }

    def solve(self, assignments: ArrayLike, *, exact: bool = False) -> Solutions:
        """Fit the prediction equation for one assignment or for many at once.

        ``assignments``, (K,) or (B, K), are masks of the columns of X that predict. One assignment
        is solved by QR. A batch is solved from the Gram matrix of the centred, scaled columns if
        that keeps ten digits, unless ``exact``, and by QR otherwise.
        """
        masks = np.asarray(assignments)
        if masks.dtype != np.bool_ or masks.shape[-1:] != (self.n_features,) or masks.ndim > 2:
            raise InputError(
                f"assignments must be boolean with {self.n_features} entries (one for each column "
                f"of X) or an array of such rows; got {masks.dtype} of shape {masks.shape}"
            )
        held = np.zeros(self.n_features, dtype=bool)
        held[list(self.columns)] = True
        strange = (masks & ~held).reshape(-1, self.n_features).any(axis=0)
        self.places([int(column) for column in np.flatnonzero(strange)])
        if masks.ndim == 1:
            alone = self.solve(masks[None], exact=True)
            return Solutions(**{name: values[0] for name, values in vars(alone).items()})
        by_gram = not exact and self.gram_is_safe
        return self._finish(masks, *(self._by_gram(masks) if by_gram else self._by_qr(masks)))

    @property
    def means(self) -> Floats:
        """Means of the features, lambda and the outcome among the selected rows, (k + 2,)."""
        return np.asarray(self.factor[0, 1:] / self.factor[0, 0])

    def constant_columns(self) -> list[int]:
        """Positions in X of the features that do not vary among the selected rows."""
        return [self.columns[place] for place in np.flatnonzero(self._constant())]

    def _constant(self) -> Mask:
        """Which of the k features do not vary among the selected rows."""
        k = len(self.columns)
        raw = column_norms(self.factor[:, 1 : k + 1])
        centred = column_norms(self.factor[1:, 1 : k + 1])
        return np.asarray(centred <= DEPENDENT * np.where(raw > 0, raw, 1.0))

    def scaled(self) -> tuple[Floats, Floats]:
        """Centred factor of [X, lambda, y] with unit columns, and their lengths."""
        centred = self.factor[1:, 1:]
        norms = column_norms(centred)
        norms = np.where(norms > 0, norms, 1.0)
        return centred / norms, norms

    @cached_property
    def gram_is_safe(self) -> bool:
        """Whether the Gram matrix of the scaled columns keeps ten digits for every assignment."""
        usable = np.append(~self._constant(), True)
        columns = self.scaled()[0][:, :-1][:, usable]
        return bool(np.linalg.eigvalsh(columns.T @ columns)[0] > _GRAM_EIGENVALUE)

    def _by_gram(self, masks: Mask) -> tuple[Floats, Floats, Floats, Floats]:
        columns, norms = self.scaled()
        k = len(self.columns)
        gram = columns.T @ columns
        means = self.means
        slopes = np.full((len(masks), k + 1), np.nan)
        sse = np.full(len(masks), np.nan)
        held = masks[:, list(self.columns)]
        feasible: Mask = np.asarray(~(held & self._constant()).any(axis=1))
        solve = _solve_packed if k > _FEW_COLUMNS else _solve_masked
        width = int(held.sum(axis=1).max(initial=0)) if k > _FEW_COLUMNS else k
        chunk = max(_BATCH_BYTES // (8 * (width + 1) ** 2), 1)
        for start in range(0, len(masks), chunk):
            rows = np.flatnonzero(feasible[start : start + chunk]) + start
            solved = solve(gram, held[rows])
            residual = columns[:, -1] - solved @ columns[:, :-1].T
            sse[rows] = np.einsum("ij,ij->i", residual, residual) * norms[-1] ** 2
            slopes[rows] = solved * norms[-1] / norms[:-1]
        intercept = means[-1] - slopes @ means[:-1]
        return slopes[:, :k], slopes[:, k], intercept, sse

    def _by_qr(self, masks: Mask) -> tuple[Floats, Floats, Floats, Floats]:
        k = len(self.columns)
        slopes = np.zeros((len(masks), k))
        imr, intercept, sse = (np.full(len(masks), np.nan) for _ in range(3))
        for row, held in enumerate(masks[:, list(self.columns)]):
            chosen = [self.columns[place] for place in np.flatnonzero(held)]
            r = self.subset(chosen)
            design = r[:-1, :-1]
            if not np.all(residual_share(design) > DEPENDENT):
                slopes[row] = np.nan
                continue
            solved = solve_upper(design, r[:-1, -1])
            intercept[row], imr[row], sse[row] = solved[0], solved[-1], r[-1, -1] ** 2
            slopes[row, held] = solved[1:-1]
        return slopes, imr, intercept, sse

    def _finish(
        self, masks: Mask, slopes: Floats, imr: Floats, intercept: Floats, sse: Floats
    ) -> Solutions:
        m, j = self.n_selected, masks.sum(axis=1)
        feasible = np.isfinite(sse) & (m > j + 2)
        coef = np.zeros(masks.shape)
        coef[:, list(self.columns)] = slopes
        blank = np.where(feasible, 1.0, np.nan)
        sigma = np.sqrt(sse / m + imr**2 * self.mean_delta) * blank
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = imr / sigma
        quality = self.quality(sse * blank, j, j + 2)
        return Solutions(
            coef=coef * blank[:, None],
            intercept=intercept * blank,
            imr_coef=imr * blank,
            sse=sse * blank,
            sigma=sigma,
            rho=rho,
            **quality,
            n_features=j,
            feasible=feasible,
        )


def _solve_masked(gram: Floats, held: Mask) -> Floats:
    """Slopes of the scaled features and lambda, (B, k + 1), from the Gram matrix with y."""
    k = held.shape[1]
    use = np.ones((len(held), k + 1))
    use[:, :k] = held
    # Unassigned features get the equation b = 0, so all systems of the batch have one size.
    system = gram[:-1, :-1] * use[:, :, None] * use[:, None, :]
    diagonal = np.arange(k + 1)
    system[:, diagonal, diagonal] += 1.0 - use
    return np.asarray(np.linalg.solve(system, (use * gram[:-1, -1])[:, :, None])[:, :, 0])


def _solve_packed(gram: Floats, held: Mask) -> Floats:
    """Return the same from systems of the columns that are held, for few of many columns."""
    k = held.shape[1]
    width = int(held.sum(axis=1).max(initial=0))
    places = np.argsort(~held, axis=1, kind="stable")[:, :width]
    unused = ~np.take_along_axis(held, places, axis=1)
    at = np.column_stack([places, np.full(len(held), k)])
    use = np.column_stack([~unused, np.ones(len(held), dtype=bool)]).astype(np.float64)
    system = gram[at[:, :, None], at[:, None, :]] * use[:, :, None] * use[:, None, :]
    diagonal = np.arange(width + 1)
    system[:, diagonal, diagonal] += 1.0 - use
    solved = np.linalg.solve(system, (use * gram[at, -1])[:, :, None])[:, :, 0]
    spread = np.zeros((len(held), k + 1))
    np.put_along_axis(spread, at, solved, axis=1)
    return spread


def gather_moments(
    rows: Mapped, columns: Sequence[int], n_features: int, probit: Probit | None
) -> Moments:
    """Compress the k ``columns`` of the selected rows in one pass.

    ``n_features`` is K, the number of columns of X. Without a ``probit``, every row is selected and
    lambda is zero.
    """
    k = len(columns)
    at = {column: place for place, column in enumerate(columns)}
    places = [] if probit is None else [at[feature] for feature in probit.features]
    whole, delta = Stacker(k + 3), Stacker(k + 2)
    m = slope = 0.0
    low, high = np.inf, -np.inf
    blocks = rows.map(_moment_terms, probit, places, columns=columns, merge=_merge_terms)
    for plain, scaled, count, of_delta, lowest_index, highest_index in blocks:
        whole.add(plain)
        delta.add(scaled)
        m, slope = m + count, slope + of_delta
        low, high = min(low, lowest_index), max(high, highest_index)
    return Moments(
        columns=tuple(columns),
        n_features=n_features,
        factor=whole.result(),
        factor_delta=delta.result(),
        n_selected=float(m),
        mean_delta=float(slope / m),
        index_range=(float(low), float(high)),
        probit=probit,
    )


def _merge_terms(
    parts: list[tuple[Factor, Factor, float, float, float, float]],
) -> tuple[Factor, Factor, float, float, float, float]:
    whole, delta, m, slope, low, high = zip(*parts, strict=True)
    return (
        merge_factors(list(whole)),
        merge_factors(list(delta)),
        sum(m),
        sum(slope),
        min(low),
        max(high),
    )


def _moment_terms(
    block: Block, probit: Probit | None, places: Positions
) -> tuple[Factor, Factor, float, float, float, float]:
    """Factors of a block's selected rows, their count, sum of delta and range of the index."""
    block = block.only_selected()
    b, k = block.features.shape
    if probit is None:
        xp = namespace(block.outcome)
        index = xp.full_like(block.outcome, np.inf)
        ratio = slope = xp.zeros_like(block.outcome)
    else:
        index = probit.coordinates.design(pick(block.features, places)).times(probit.inner_coef)
        ratio, slope = mills(index)
    matrix = empty(block.features, b, k + 3, columns_first=True)
    matrix[:, 0] = 1.0
    matrix[:, 1 : k + 1] = block.features
    matrix[:, k + 1] = ratio
    matrix[:, k + 2] = block.outcome
    count: float = b
    if block.weight is not None:
        matrix *= (block.weight**0.5)[:, None]
        count = float(block.weight.sum())
        total_slope = float(block.weight @ slope)
    else:
        total_slope = float(slope.sum())
    scaled = matrix[:, :-1] * (slope**0.5)[:, None]
    return (
        block_factor(matrix),
        block_factor(scaled),
        count,
        total_slope,
        lowest(index),
        highest(index),
    )

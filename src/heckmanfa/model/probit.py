"""The selection equation: probit by Newton's method over blocks of rows (Algorithm 1, line 2).

The iteration runs in coordinates that are well conditioned on a pilot sample, so collinearity and
units cost no digits. It starts from the pilot's optimum, so large data are read three or four
times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg as sla

from heckmanfa.data.arrays import Array, Floats, empty, highest, signs, zeros
from heckmanfa.data.rows import Block, Positions, Rows, pick, total
from heckmanfa.model.covariance import CovarianceKind, sandwich
from heckmanfa.model.linalg import (
    Coordinates,
    Factor,
    block_factor,
    collinear_error,
    dependencies,
    inverse_definite,
    merge_factors,
    residual_share,
    stack,
)
from heckmanfa.model.normal import log_cdf_and_mills, mills
from heckmanfa.text.option_words import OR_DROP

_MAX_ITERATIONS = 40
# The Newton decrement is a squared distance in standard errors, and the covariance is taken one
# step before the end. At this decrement per row its relative error is at most 1e-8, and that of the
# estimates far less.
_DECREMENT_PER_ROW = 1e-16
_LEAST_PILOT = 2**13
_PILOT_DECREMENT = 1e-3
_PILOT_ITERATIONS = 12
# A smallest eigenvalue above this share of the largest is not rounding error.
_CLEAR_OF_ROUNDING = 1e-10
# A pilot sample this close to collinear does not give good coordinates.
_PILOT_SHARE = 1e-6


@dataclass(frozen=True)
class Probit:
    """A fitted selection equation over the columns ``features``, intercept first."""

    features: tuple[int, ...]
    """positions of the p selection features in X"""
    coef: Floats
    """(1 + p,) on the scale of the input"""
    covariance: Floats
    """(1 + p, 1 + p) inverse of the observed information"""
    log_likelihood: float
    null_log_likelihood: float
    """log-likelihood with an intercept alone"""
    n_iterations: int
    """passes over all rows"""
    n: float
    """rows, or the sum of their weights"""
    converged: bool
    certified: bool
    """whether the fit itself proves that the rows are not separated"""
    coordinates: Coordinates
    inner_coef: Floats
    """(1 + p,) in those coordinates"""
    inner_covariance: Floats
    """(1 + p, 1 + p) likewise"""


@dataclass(frozen=True)
class _State:
    coef: Floats
    log_likelihood: float
    gradient: Floats
    information: Floats
    n: float
    n_selected: float
    largest: float
    """the largest signed index, that of the best-predicted row"""
    squares: Floats
    """(1 + p,) sum of squares of each column of the design"""


def selection_coordinates(rows: Rows, features: Positions, names: Sequence[str]) -> Coordinates:
    """Find well-conditioned coordinates for some features, or refuse collinear ones by name."""
    width = len(features) + 1
    pilot = pilot_of(rows)
    r = stack(pilot.map(_design_factor, columns=features, merge=merge_factors), width)
    if pilot is not rows and residual_share(r).min() < _PILOT_SHARE:
        r = stack(rows.map(_design_factor, columns=features, merge=merge_factors), width)
    dependent = dependencies(r)
    if dependent:
        raise collinear_error(
            dependent,
            ["constant", *names],
            range(len(features)),
            "the selection features are collinear",
            f"Leave these columns out{OR_DROP}.",
        )
    return Coordinates.from_factor(r)


def fit_probit(rows: Rows, features: Positions, coordinates: Coordinates) -> Probit:
    """Fit P(selected) = Phi(gamma_0 + x gamma) by maximum likelihood (Eq. heckmangamma).

    ``rows`` include selected and unselected ones; ``coordinates`` are of `selection_coordinates`.
    """
    start = _pilot_start(rows, features, coordinates)
    likelihood = _Likelihood(rows, features, coordinates)
    state, passes, converged = likelihood.maximize(start, None, _MAX_ITERATIONS)
    inverse = _inverse(state.information)
    back = coordinates.back()
    last = state.coef + inverse @ state.gradient if converged else state.coef
    n, share = state.n, state.n_selected / state.n
    return Probit(
        features=tuple(features),
        coef=back @ last,
        covariance=back @ inverse @ back.T,
        log_likelihood=state.log_likelihood,
        null_log_likelihood=float(n * (share * np.log(share) + (1 - share) * np.log1p(-share))),
        n_iterations=passes,
        n=n,
        converged=converged,
        certified=converged and _overlap_is_certain(state),
        coordinates=coordinates,
        inner_coef=last,
        inner_covariance=inverse,
    )


def pilot_of(rows: Rows) -> Rows:
    """Return a sample that is small next to all rows, and large enough to represent them."""
    return rows.pilot(max(len(rows) // 32, _LEAST_PILOT))


def _pilot_start(rows: Rows, features: Positions, coordinates: Coordinates) -> Floats:
    """Start from a sample's optimum and one step on a larger sample, or from zero.

    This costs a fraction of a pass and saves several: from a few standard errors away, Newton's
    method needs three passes over all rows.
    """
    zero = np.zeros(len(features) + 1)
    pilot = pilot_of(rows)
    if pilot is rows:
        return zero
    likelihood = _Likelihood(pilot, features, coordinates)
    state, _, converged = likelihood.maximize(zero, _PILOT_DECREMENT, _PILOT_ITERATIONS)
    if not converged:
        return zero
    larger = _Likelihood(rows.pilot(len(rows) // 4), features, coordinates)
    state = larger.evaluate(state.coef)
    return state.coef + _newton_step(state)


def _overlap_is_certain(state: _State) -> bool:
    """Whether the fit proves that no direction separates the rows.

    Let d separate: a_i = q_i z_i'd >= 0 for every row, q_i = +1 or -1. With lambda_i and delta_i
    taken at t_i = q_i z_i'gamma, gradient'd = sum lambda_i a_i, and d'Hd = sum delta_i a_i^2
    = sum lambda_i (lambda_i + t_i) a_i^2 <= max(lambda_i + t_i) max(a_i) gradient'd
    <= (1 + max t_i) sqrt(sum |z_i|^2) |gradient| |d|^2. If the smallest eigenvalue of H is
    larger than that factor, there is no such d. Far out on separated data both sides vanish, so
    the eigenvalue must also exceed rounding.
    """
    # Any coordinates will do; with an information of unit diagonal the bound is tight.
    unit = 1.0 / np.sqrt(np.diag(state.information))
    eigenvalues = np.linalg.eigvalsh(state.information * unit * unit[:, None])
    slope = 1.0 + max(state.largest, 0.0)
    reach = np.sqrt(np.sum(unit**2 * state.squares))
    bound = 2.0 * slope * reach * np.linalg.norm(unit * state.gradient)
    return bool(eigenvalues[0] > bound + _CLEAR_OF_ROUNDING * eigenvalues[-1])


@dataclass(frozen=True)
class _Likelihood:
    """The likelihood of some rows, in well-conditioned coordinates."""

    rows: Rows
    features: Positions
    coordinates: Coordinates

    def maximize(
        self, start: Floats, tolerance: float | None, max_iterations: int
    ) -> tuple[_State, int, bool]:
        """Newton's method with step halving: the last state, passes, and whether it converged."""
        state = self.evaluate(start)
        passes = 1
        if tolerance is None:
            tolerance = _DECREMENT_PER_ROW * state.n
        while passes < max_iterations:
            step = _newton_step(state)
            decrement = float(step @ state.gradient)
            if not decrement > tolerance:
                return state, passes, np.isfinite(decrement)
            slack = 1e-10 * (1.0 + abs(state.log_likelihood))
            for _ in range(30):
                trial = self.evaluate(state.coef + step, state.squares)
                passes += 1
                if trial.log_likelihood >= state.log_likelihood - slack:
                    break
                step = 0.5 * step
            else:
                return state, passes, False
            state = trial
        return state, passes, False

    def evaluate(self, coef: Floats, squares: Floats | None = None) -> _State:
        """Evaluate the likelihood, and the sums of squares unless they are given."""
        args = (self.coordinates, coef, squares is None)
        parts = self.rows.map(_probit_terms, *args, columns=self.features, merge=_merge_terms)
        sums, largest = _merge_terms(list(parts))
        log_likelihood, n, n_selected, gradient, information, measured = sums
        return _State(
            coef=coef,
            log_likelihood=float(log_likelihood),
            gradient=gradient,
            information=information,
            n=float(n),
            n_selected=float(n_selected),
            largest=largest,
            squares=measured if squares is None else squares,
        )


def _newton_step(state: _State) -> Floats:
    """Solve for the next step; directions without information are left alone."""
    try:
        half = sla.cho_factor(state.information)
        return np.asarray(sla.cho_solve(half, state.gradient))
    except (np.linalg.LinAlgError, ValueError):
        return _inverse(state.information) @ state.gradient


def _inverse(information: Floats) -> Floats:
    """Inverse of an information matrix; zero in directions without information."""
    inverse = inverse_definite(information)
    if inverse is not None:
        return inverse
    if not np.all(np.isfinite(information)):
        return np.zeros_like(information)
    return np.asarray(np.linalg.pinv(information, hermitian=True))


def probit_covariance(rows: Rows, probit: Probit, kind: CovarianceKind) -> Floats:
    """Covariance of a probit's coefficients: the inverse information, or a sandwich of it."""
    if kind.cov_type == "classical":
        return probit.covariance
    bread = probit.coordinates.back() @ probit.inner_covariance
    return sandwich(rows, kind, bread, _scores, probit, columns=probit.features)


# Functions over one block of rows. -----------------------------------------------------------


def stacked_scores(
    block: Block, probit: Probit, places: Positions, width: int
) -> tuple[Array, Array]:
    """Scores of a block's rows, (b, width), and z'gamma: the probit's first, then zeros.

    ``places`` are those of the probit's features among the block's columns.
    """
    design = probit.coordinates.design(pick(block.features, places))
    index = design.times(probit.inner_coef)
    sign = signs(block.selected, block.features)
    scores = zeros(block.features, len(index), width)
    scores[:, : len(places) + 1] = design.scaled(sign * mills(sign * index)[0])
    return scores, index


def _scores(block: Block, probit: Probit) -> Array:
    places = range(len(probit.features))
    return stacked_scores(block, probit, places, len(probit.inner_coef))[0]


def _design_factor(block: Block) -> Factor:
    x = block.features
    matrix = empty(x, x.shape[0], x.shape[1] + 1, columns_first=True)
    matrix[:, 0] = 1.0
    matrix[:, 1:] = x
    return block_factor(matrix)


def _merge_terms(parts: list[tuple[tuple[Any, ...], float]]) -> tuple[tuple[Any, ...], float]:
    return total(sums for sums, _ in parts), float(max(high for _, high in parts))


def _probit_terms(
    block: Block, coordinates: Coordinates, coef: Floats, measure: bool
) -> tuple[tuple[float, float, float, Floats, Floats, Floats], float]:
    """Sums (log-likelihood, rows, selected rows, gradient, information, squares) and a maximum."""
    design = coordinates.design(block.features)
    sign = signs(block.selected, block.features)
    signed = sign * design.times(coef)
    value, ratio, slope = log_cdf_and_mills(signed)
    score = sign * ratio
    n: float = len(sign)
    n_selected: float = int(block.selected.sum())
    if block.weight is not None:
        score *= block.weight
        slope *= block.weight
        value *= block.weight
        n, n_selected = float(block.weight.sum()), float(block.weight[block.selected].sum())
    squares = design.squares() if measure else np.zeros(len(coef))
    likelihood = (float(value.sum()), n, n_selected, design.pull(score), design.gram(slope))
    return (*likelihood, squares), highest(signed)

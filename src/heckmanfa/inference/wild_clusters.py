"""The score (wild) cluster bootstrap, for tests with few clusters (Kline and Santos, 2012).

The model is estimated under the hypothesis R theta = r. The restrictions then move with the
clusters' total scores there by the sum over g of u_g = R H^-1 S_g. A draw multiplies each u_g by a
weight of mean zero and variance one, and the statistic D' M^-1 D, with D the sum and M that of the
squares about their mean, is compared with that of the data. No draw estimates anything again.

Kline, P., and A. Santos (2012), "A score based approach to wild bootstrap inference", Journal of
Econometric Methods 1. Webb, M. D. (2023), "Reworking wild bootstrap-based inference for clustered
errors", Canadian Journal of Economics 56.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats
from heckmanfa.data.group_cells import Cells, group_codes
from heckmanfa.data.random_state import generator
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.rows import ArrayRows, held, one_blas_thread
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.bootstrap import group_units
from heckmanfa.inference.profiler import Likelihood
from heckmanfa.inference.rows_of_fit import FitRows, read_fit_rows
from heckmanfa.model.covariance import CLASSICAL, total_scores
from heckmanfa.model.joint_problem import scores_of
from heckmanfa.model.likelihood import outer_estimates
from heckmanfa.model.newton import newton
from heckmanfa.model.two_step import Equations, fit_two_step, shift_of, stacked_bread
from heckmanfa.results.distribution import check_level
from heckmanfa.results.document import Section
from heckmanfa.results.estimates import estimates_in_order
from heckmanfa.results.hypotheses import restrictions_of
from heckmanfa.results.reports import Report
from heckmanfa.text.option_types import WildWeights
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import number, p_equals

_WEBB = np.sqrt([0.5, 1.0, 1.5])
# Equal draws differ by rounding.
_EQUAL = 1.0 - 1e-9
# An end of an interval is found to this share of a standard error, and looked for this far away.
_PRECISE, _FURTHEST = 1e-3, 64.0

Moves = Callable[[Floats], Floats]
"""given r, the (G, q) moves u_g of the restrictions by each cluster, at the estimates under them"""


@dataclass(frozen=True, repr=False, eq=False)
class WildTest(Report):
    """A test of linear restrictions by the score (wild) cluster bootstrap."""

    hypothesis: str
    statistic: float
    """D' M^-1 D of the data; for one restriction, a squared t"""
    p_value: float
    df: int
    """number of restrictions"""
    n_clusters: int
    n_draws: int
    enumerated: bool
    """whether the draws are all patterns of signs"""
    weights: WildWeights
    conf_level: float = 0.95
    interval: tuple[float, float] | None = None
    """of a single restriction: the values that the test does not reject; None if not asked for"""

    def sections(self) -> list[Section]:
        """Return the result and how it came about."""
        draws = f"{self.n_draws:,}"
        facts = [
            ("Hypothesis", self.hypothesis),
            ("Statistic", number(self.statistic)),
            ("p value", p_equals(self.p_value).removeprefix("p = ").removeprefix("p ")),
            ("Clusters", f"{self.n_clusters:,}"),
            ("Draws", f"{draws} patterns of signs, all" if self.enumerated else draws),
            ("Weights", self.weights),
        ]
        if self.interval is not None:
            low, high = map(number, self.interval)
            facts.append((f"{100 * self.conf_level:g}% interval", f"{low} to {high}"))
        return [Section("Wild cluster test", tuple(facts), notes=tuple(self._notes()))]

    def _notes(self) -> list[str]:
        notes = [
            "The scores of each cluster, at the estimates under the hypothesis, are multiplied by "
            "random weights; nothing is estimated again."
        ]
        if self.enumerated:
            least = 2.0 / self.n_draws
            notes.append(
                f"With {self.n_clusters} clusters there are {self.n_draws:,} patterns of signs, so "
                f"no p value is below {least:.2g}."
            )
        return notes


@dataclass(frozen=True, eq=False)
class _Draws:
    """Weights of G clusters in B draws."""

    weights: Floats
    """(B, G)"""
    enumerated: bool

    @classmethod
    def of(cls, kind: str, n_clusters: int, n_boot: int, random_state: Any) -> _Draws:
        if kind == "rademacher" and 2**n_clusters <= n_boot:
            patterns = np.arange(2**n_clusters)[:, None] >> np.arange(n_clusters) & 1
            return cls(np.asarray(1.0 - 2.0 * patterns, dtype=np.float64), True)
        source = generator(random_state)
        signs = source.choice([-1.0, 1.0], size=(n_boot, n_clusters))
        if kind == "webb":
            signs = signs * source.choice(_WEBB, size=signs.shape)
        return cls(signs, False)

    @cached_property
    def _squares(self) -> Floats:
        return np.asarray(self.weights**2)

    def p_value(self, moves: Floats) -> tuple[float, float]:
        """Return the statistic of the data and its p value."""
        n = len(moves)
        own = float(_statistics(np.ones((1, n)), np.ones((1, n)), moves)[0])
        drawn = _statistics(self.weights, self._squares, moves)
        above = int(np.count_nonzero(drawn >= own * _EQUAL))
        if self.enumerated:
            return own, above / len(drawn)
        return own, (above + 1) / (len(drawn) + 1)


def _statistics(weights: Floats, squares: Floats, moves: Floats) -> Floats:
    """Return D' M^-1 D of each draw, (B,)."""
    n, q = moves.shape
    total = weights @ moves
    outer = (moves[:, :, None] * moves[:, None, :]).reshape(n, q * q)
    middle = (squares @ outer).reshape(-1, q, q) - total[:, :, None] * total[:, None, :] / n
    # If all clusters pull one way alike, M is zero, and nothing is more extreme.
    flat = np.linalg.det(middle) <= 0
    middle[flat] = np.eye(q)
    values = np.einsum("bi,bi->b", total, np.linalg.solve(middle, total[:, :, None])[:, :, 0])
    return np.where(flat, np.inf, values)


def wild_test(
    fit: Fit,
    hypothesis: str | ArrayLike,
    passed: PassedRows,
    *,
    value: ArrayLike | None,
    weights: WildWeights,
    n_boot: int,
    random_state: Any,
    conf_level: float | None,
) -> WildTest:
    """Test linear restrictions with few clusters; see `Heckman.wild_test`."""
    if weights not in ("rademacher", "webb"):
        raise InputError(f"weights must be 'rademacher' or 'webb'; got {quoted(weights)}")
    if not isinstance(n_boot, Integral) or n_boot < 19:
        raise InputError(f"n_boot must be an integer of at least 19; got {quoted(n_boot)}")
    if fit.way.is_average or fit.way.halves_rows:
        raise InputError(
            "the estimates are averages over many models, and a score belongs to one: fit Heckman "
            "with the features that the question is about"
        )
    by_steps = fit.spec.method == "two-step" and "two steps" in fit.family.supports
    if not by_steps and not fit.family.can("profiles"):
        raise InputError(
            f"wild_test does not know the scores of the {fit.family.words.model}: use "
            f"{option('cov_type', 'cluster')}, whose tests have t(G - 1), and report G"
        )
    matrix, right = restrictions_of(fit, hypothesis, value)
    if conf_level is not None:
        check_level(conf_level)
        if len(matrix) > 1:
            raise InputError(
                f"an interval is about one restriction, and the hypothesis has {len(matrix)}: "
                "leave conf_level out"
            )
    rows, cells, read = _clustered(fit, passed)
    if cells.n <= len(matrix):
        raise InputError(
            f"{cells.n} clusters are too few for a test of {len(matrix)} restrictions: they tell "
            "less than one direction for each"
        )
    with one_blas_thread():
        build = _moves_of_steps if by_steps else _moves_of_likelihood
        moves = build(fit, read, rows, cells, matrix)
        draws = _Draws.of(weights, cells.n, int(n_boot), random_state)
        at = moves(right)
        statistic, p_value = draws.p_value(at)
        interval = None
        if conf_level is not None:
            error = float(np.sqrt(np.sum(at**2)))
            gap = float(matrix[0] @ np.nan_to_num(estimates_in_order(fit)))
            interval = _interval(moves, draws, gap, error, 1.0 - conf_level)
    return WildTest(
        hypothesis=hypothesis if isinstance(hypothesis, str) else _written(matrix, right),
        statistic=statistic,
        p_value=p_value,
        df=len(matrix),
        n_clusters=cells.n,
        n_draws=len(draws.weights),
        enumerated=draws.enumerated,
        weights=weights,
        conf_level=conf_level or 0.95,
        interval=interval,
    )


def _written(matrix: Floats, right: Floats) -> str:
    return f"{len(matrix)} restrictions" if len(matrix) > 1 else f"R b = {right[0]:g}"


def _clustered(fit: Fit, passed: PassedRows) -> tuple[ArrayRows, Cells, FitRows]:
    """Return the rows of a fit with the codes of their clusters."""
    match_rows({"X": passed.X, "groups": passed.groups})
    X, groups, _ = group_units(fit, passed.X, passed.groups, "groups")
    survey = fit.spec.survey
    if survey is not None and isinstance(passed.groups, str) and passed.groups in survey.named:
        # The design needs the column, too.
        X = passed.X
    if groups is None:
        raise InputError(
            "wild_test needs the clusters: pass groups, the name of a column or an entry for each "
            "row"
        )
    read = read_fit_rows(fit, passed._replace(X=X, groups=None))
    rows = held(read.rows, "a wild cluster test")
    if read.design is not None:
        groups = read.design.rows_of(passed.X, groups, "groups")
    codes, n = group_codes(groups, rows.used)
    if n < 2:
        raise InputError(f"groups has {n} group in the rows of the fit; a test needs two or more")
    return replace(rows, group=codes), Cells(n), read


def _moves_of_likelihood(
    fit: Fit, read: FitRows, rows: ArrayRows, cells: Cells, matrix: Floats
) -> Moves:
    """Return the moves of restrictions on coefficients of a model of maximum likelihood."""
    likelihood = Likelihood.build(fit, read.rows, held=True)
    if likelihood.top is None:
        raise NotIdentifiedError("maximum likelihood does not converge, so there are no scores")
    problem, theta, free = likelihood.problem, likelihood.top.theta, likelihood.free
    outer, back = outer_estimates(problem, theta)
    names = [name for name in problem.input_order for _ in problem.backs[name]]
    places = []
    for equation in dict.fromkeys(name for name, _ in fit.terms):
        places += [place for place, name in enumerate(names) if name == equation]
    coefficients = np.array([equation != "errors" for equation, _ in fit.terms])
    if matrix[:, ~coefficients].any():
        raise InputError(
            "wild_test is about coefficients of the equations; errors have profile_rho(), and "
            "two steps test 'imr = 0'"
        )
    on_theta = matrix[:, coefficients] @ back[places]
    shift = matrix[:, coefficients] @ (outer[places] - back[places] @ theta)
    inside = on_theta[:, free]
    basis = np.zeros((len(theta), len(free) - len(matrix)))
    basis[free] = sla.null_space(inside)

    def moves(right: Floats) -> Floats:
        start = theta.copy()
        gap = on_theta @ theta + shift - right
        start[free] -= np.linalg.lstsq(inside, gap, rcond=None)[0]
        state, _, converged = newton(read.rows, problem, start, free=basis)
        if not converged:
            raise NotIdentifiedError(
                "under the hypothesis, the likelihood has no maximum that Newton's method finds"
            )
        information = -state.hessian[np.ix_(free, free)]
        columns, size = problem.columns, len(theta)
        args = (scores_of, problem, state.theta)
        totals, _, _ = total_scores(rows, cells, *args, columns=columns, size=size)
        return np.asarray(np.linalg.solve(information, totals[:, free].T).T @ inside.T)

    return moves


def _moves_of_steps(
    fit: Fit, read: FitRows, rows: ArrayRows, cells: Cells, matrix: Floats
) -> Moves:
    """Return the moves of restrictions on the prediction equation of a two-step model.

    The second step is least squares under the restrictions; the first is as it is.
    """
    if fit.held_rho is not None:
        raise InputError(f"wild_test has no two steps with rho held; use {quoted('ml')} as method")
    second = np.array([name != "selection" for name, _ in fit.terms])
    if matrix[:, ~second].any():
        raise InputError(
            "of two steps, wild_test is about the prediction equation and 'imr'; use method='ml' "
            "for the selection equation"
        )
    moments, probit = read.moments, read.probit
    two_step = fit_two_step(moments, probit, fit.features, CLASSICAL)
    root = moments.subset(two_step.features, outcome=False)
    inverse_root = sla.solve_triangular(root, np.eye(len(root)))
    # Terms of the second step have the order of its coefficients: the last is that of lambda.
    own = matrix[:, second]
    spread = inverse_root @ inverse_root.T
    toward = spread @ own.T @ np.linalg.inv(own @ spread @ own.T)
    _, shift = shift_of(moments, probit, two_step.features, inverse_root)

    def moves(right: Floats) -> Floats:
        coef = two_step.coef - toward @ (own @ two_step.coef - right)
        equations = Equations.of(moments, probit, two_step.features, coef, inverse_root)
        bread = stacked_bread(equations, shift, rows, moments.columns)
        totals, _, _ = total_scores(
            rows, cells, equations.scores, columns=moments.columns, size=bread.shape[1]
        )
        return np.asarray(totals @ bread[: len(coef)].T @ own.T)

    return moves


def _interval(
    moves: Moves, draws: _Draws, centre: float, error: float, level: float
) -> tuple[float, float]:
    """Return the values around the estimate that the test does not reject.

    The ends are the nearest values that it rejects; one is infinite if none is found.
    """

    def rejects(value: float) -> bool:
        try:
            return draws.p_value(moves(np.array([value])))[1] <= level
        except NotIdentifiedError:
            return True

    def end(sign: float) -> float:
        inside, reach = centre, error
        while not rejects(centre + sign * reach):
            inside, reach = centre + sign * reach, 2.0 * reach
            if reach > _FURTHEST * error:
                return sign * float("inf")
        outside = centre + sign * reach
        while abs(outside - inside) > _PRECISE * error:
            middle = 0.5 * (inside + outside)
            inside, outside = (inside, middle) if rejects(middle) else (middle, outside)
        return 0.5 * (inside + outside)

    return end(-1.0), end(1.0)

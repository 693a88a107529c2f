"""The model with everything in it, from which every assignment follows.

With theta-hat its estimates and V their covariance, leaving some of them out costs the Wald
statistic theta_D' (V_DD)^-1 theta_D, and those that stay become theta_S - V_SD (V_DD)^-1 theta_D.
What may be left out, the free parameters, are the slopes of the candidates and the correction:
beta_H in two steps, atanh rho in a likelihood. With V^-1 = R'R for these, an assignment is a
regression of R theta-hat on the columns of R that it holds.

One more column may be held, the index R (g, 0), where g are the coefficients of the candidates in
the selection equation: what drives selection moves the outcome too, in the same proportions. Held
with coefficient b, it adds b g_j to the effect of every candidate j.

If both equations are searched, the slopes of the selection equation are free parameters as well.
The index then holds only what drives selection; its g are those of the model with everything in it.

A likelihood is not a quadratic form in atanh rho. So dropping the correction costs the likelihood
ratio where that is known, and assignments that come too near the bounds of rho weigh nothing.

A search that may leave out nothing but slopes asks for the form of these alone (`dropped`). Since
an assignment is a regression, any search of regressions searches it (`as_moments`): k rows stand
for all data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import NotIdentifiedError, TooFewRowsError
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.equations import weighted_count
from heckmanfa.model.linalg import (
    collinear_error,
    dependencies,
    inverse_root,
    is_singular,
    standardized,
    symmetric,
)
from heckmanfa.model.moments import Moments
from heckmanfa.model.two_step import LARGEST_RHO, fit_two_step
from heckmanfa.text.option_words import option

# How far the log scale of an assignment may lie from that of the model of everything.
_REACH = 20.0

Errors = Literal["two-step", "likelihood", "binary"]
"""what the last estimates of a form are: beta_H and log s, with sigma^2 = s^2 + beta_H^2 times the
mean of delta; atanh rho and log sigma; or atanh rho alone, since sigma is known, as that of a
binary outcome is"""
_BATCH_BYTES = 2**25


def wald_excess(estimate: float, variance: float, log_likelihood: float, apart: float) -> float:
    """Return by how much the correction's Wald statistic exceeds the likelihood ratio.

    ``apart`` is the log-likelihood with rho = 0, in which both equations are fitted apart.
    """
    return float(estimate**2 / variance - max(2.0 * (log_likelihood - apart), 0.0))


@dataclass(frozen=True, eq=False)
class Form:
    """Estimates of everything, theta-hat, and their covariance V.

    The d estimates are the prediction equation (intercept, k candidates), the selection equation
    (intercept, p features), the correction, and the scale of the errors unless that is known.
    """

    columns: tuple[int, ...]
    """(k,) positions in X of the candidates, in order"""
    selection: tuple[int, ...]
    """(p,) positions in X of the selection features"""
    n_features: int
    """K"""
    n_selected: float
    """m, or the number of all rows if both equations are searched: what penalties count"""
    errors: Errors
    estimates: Floats
    """(d,)"""
    covariance: Floats
    """(d, d)"""
    mean_delta: float = 0.0
    """mean of delta over the selected rows, of two steps"""
    knows_correction: bool = True
    """whether the correction was estimated: a likelihood may have no maximum in rho"""
    correction_excess: float = 0.0
    """by how much the correction's Wald statistic exceeds the likelihood ratio, in the model of
    everything: dropping the correction costs the ratio; zero if there is no ratio"""
    searched: tuple[int, ...] = ()
    """(s,) those of the selection features that may be left out, too: all of them, or none"""
    drivers: tuple[int, ...] | None = None
    """the candidates that the index may hold; None is all of them"""
    known_sigma: float | None = None
    """the scale of a numeric outcome's errors, where it is known; that of a binary one's is 1"""

    @classmethod
    def of_slopes(
        cls,
        columns: Sequence[int],
        slopes: Floats,
        covariance: Floats,
        *,
        n_features: int,
        n_selected: float,
        selection: Sequence[int] = (),
        errors: Errors = "binary",
    ) -> Form:
        """Return the form of slopes alone: all else is zero, and apart."""
        k = len(columns)
        d = k + len(selection) + (3 if errors == "binary" else 4)
        estimates, whole = np.zeros(d), np.eye(d)
        estimates[1 : k + 1], whole[1 : k + 1, 1 : k + 1] = slopes, covariance
        both = tuple(columns), tuple(selection)
        return cls(*both, n_features, n_selected, errors, estimates, whole)

    @property
    def knows_scale(self) -> bool:
        """Whether the scale of the errors is known, and not among the estimates."""
        return self.errors == "binary"

    @property
    def shows_imr(self) -> bool:
        """Whether beta_H is among the terms: that of a binary outcome would be rho."""
        return not self.knows_scale or self.known_sigma is not None

    @property
    def n_fixed(self) -> int:
        """Number of parameters that every assignment has, as criteria count them.

        It is the intercept of the prediction equation; if both equations are searched, that of the
        selection equation and the scale of the errors are counted, too.
        """
        return 1 if not self.searched else 2 + (not self.knows_scale)

    @property
    def correction(self) -> int:
        """Position of the correction among the estimates."""
        return len(self.columns) + len(self.selection) + 2

    @property
    def free(self) -> list[int]:
        """Positions of the f free parameters: k slopes, the correction, s selection slopes."""
        first = len(self.columns) + 2
        places = {column: first + place for place, column in enumerate(self.selection)}
        searched = [places[column] for column in self.searched]
        return [*range(1, first - 1), self.correction, *searched]

    def places_in(self, n_states: int) -> list[int]:
        """Where states of this length, as `Members` has them, hold each free parameter."""
        searched = [self.n_features + column for column in self.searched]
        return [*self.columns, n_states - 2, *searched]

    def state_of(self, mask: Mask, selecting: Mask | None = None) -> Mask:
        """Return the state, as `Members` has them, that holds some columns and the correction.

        ``mask`` and ``selecting``, (K,), are those of the equations; None is all selection
        features.
        """
        parts = [mask]
        if self.searched:
            every = np.isin(np.arange(self.n_features), self.selection)
            parts.append(every if selecting is None else selecting)
        return np.concatenate([*parts, [True, False]]).astype(bool)

    def everything(self, *, corrected: bool = True) -> Mask:
        """Return the state that holds every candidate, and the correction if ``corrected``."""
        state = self.state_of(np.isin(np.arange(self.n_features), self.columns))
        state[-2] = corrected
        return state

    @cached_property
    def direction(self) -> Floats:
        """(f,) of the index: selection coefficients of the drivers, and zero elsewhere."""
        first = len(self.columns) + 2
        of_selection = dict(zip(self.selection, self.estimates[first:], strict=False))
        drivers = self.columns if self.drivers is None else self.drivers
        slopes = [of_selection.get(c, 0.0) if c in drivers else 0.0 for c in self.columns]
        return np.array([*slopes, *[0.0] * (1 + len(self.searched))])

    @cached_property
    def root(self) -> Floats:
        """R, (f, f), with R'R the inverse of the free parameters' covariance."""
        return inverse_root(self.covariance[np.ix_(self.free, self.free)])

    @cached_property
    def response(self) -> Floats:
        """(d, f) how all estimates follow the free ones, by V: V_.f (V_ff)^-1."""
        follow = np.asarray(self.covariance[:, self.free] @ self.root.T @ self.root)
        follow[self.free] = np.eye(len(self.free))
        return follow

    @cached_property
    def moves(self) -> Floats:
        """(d, f) likewise, zero for those that stay: the probit's, in two steps."""
        moves = self.response.copy()
        if self.errors == "two-step":
            first = len(self.columns) + 1
            moves[first : self.correction] = 0.0
        return moves

    @cached_property
    def unmoved(self) -> Floats:
        """(d, d) the part of the covariance that all assignments share."""
        rest = np.eye(len(self.estimates))
        rest[:, self.free] -= self.moves
        return symmetric(rest @ self.covariance @ rest.T)

    def all_of(self, free: Floats) -> Floats:
        """Return all estimates, (..., d), given the free ones, (..., f)."""
        away = free - self.estimates[self.free]
        return np.asarray(self.estimates + away @ self.moves.T)

    def error_terms(self, correction: Floats, log_scale: Floats) -> tuple[Floats, Floats]:
        """Return rho and sigma, given the correction and the log scale (of any shape)."""
        log_scale = self._within_reach(log_scale)
        if self.errors == "two-step":
            sigma = np.sqrt(np.exp(2.0 * log_scale) + self.mean_delta * correction**2)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(correction / sigma), sigma
        return np.tanh(correction), np.exp(log_scale)

    def log_scale(self, estimates: Floats) -> Floats:
        """Return the log scale, (...,), of estimates (..., d)."""
        if self.knows_scale:
            return np.full(estimates.shape[:-1], np.log(self.known_sigma or 1.0))
        return self._within_reach(estimates[..., -1])

    def _within_reach(self, log_scale: Floats) -> Floats:
        """Keep the scale finite where nothing identifies the correction, which it follows."""
        if self.knows_scale:
            return log_scale
        own = self.estimates[-1]
        return np.asarray(np.clip(log_scale, own - _REACH, own + _REACH))

    def holds_at(self, rho: Floats) -> Mask:
        """Whether the form of a likelihood holds for assignments with these rho.

        Near the bounds of rho it does not, unless the model of everything lies there. That of two
        steps is a regression's, which has no bounds.
        """
        if self.errors == "two-step":
            return np.ones(np.shape(rho), dtype=bool)
        own = abs(np.tanh(self.estimates[self.correction]))
        return np.asarray(np.abs(rho) <= max(LARGEST_RHO, own * (1.0 + 1e-12)))

    def misfits(self, rho: Floats) -> Mask:
        """Whether these rho are not correlations, or the form does not hold for them."""
        return np.asarray((np.abs(rho) >= 1.0) | ~self.holds_at(rho))

    def terms(self, estimates: Floats) -> Floats:
        """Return what tables show, (..., T), given all estimates (..., d).

        They are both equations, then beta_H where it is shown, rho, and sigma unless it is known.
        """
        correction = estimates[..., self.correction]
        rho, sigma = self.error_terms(correction, self.log_scale(estimates))
        imr = correction if self.errors == "two-step" else rho * sigma
        ends = [imr] * self.shows_imr + [rho] + [sigma] * (not self.knows_scale)
        shown = estimates[..., : self.correction]
        return np.concatenate([shown, np.stack(ends, axis=-1)], axis=-1)

    def term_slopes(self, estimates: Floats) -> Floats:
        """Return derivatives of the last terms in the last estimates.

        (..., 3, 2); there is one column where the scale is known, and a row for what is shown.
        """
        correction = estimates[..., self.correction]
        rho, sigma = self.error_terms(correction, self.log_scale(estimates))
        zeros, ones = np.zeros_like(rho), np.ones_like(rho)
        if self.errors != "two-step":
            bend = 1.0 - rho**2
            rows = [[sigma * bend, rho * sigma], [bend, zeros], [zeros, sigma]]
        else:
            rest = np.exp(2.0 * self.log_scale(estimates)) / sigma
            in_rho = rest / sigma**2
            rows = [[ones, zeros], [in_rho, -correction * in_rho]]
            rows += [[self.mean_delta * correction / sigma, rest]]
        shown = rows[not self.shows_imr : 3 - self.knows_scale]
        width = 2 - self.knows_scale
        return np.stack([np.stack(row[:width], axis=-1) for row in shown], axis=-2)

    @cached_property
    def slopes(self) -> tuple[tuple[int, ...], list[int]]:
        """Columns whose slopes may be left out, in order, and their positions among the estimates.

        Column c of the selection equation is column K + c, as in `choices.join_equations`.
        """
        columns = (*self.columns, *(self.n_features + column for column in self.searched))
        places = [place for place in self.free if place != self.correction]
        order = np.argsort(columns, kind="stable")
        return tuple(columns[i] for i in order), [places[i] for i in order]

    @property
    def slope_covariance(self) -> Floats:
        """(s, s) of the slopes that may be left out."""
        places = self.slopes[1]
        return np.asarray(self.covariance[np.ix_(places, places)])

    def dropped(self, masks: Mask) -> Floats:
        """Return what each assignment costs, (...,), given masks over the columns, (..., K).

        It is the joint Wald statistic of the slopes that an assignment does not hold; all else
        stays. If both equations are searched, masks are those of both, (..., 2 K).
        """
        columns, places = self.slopes
        held = masks[..., list(columns)].reshape(-1, len(columns))
        scale, correlation = standardized(self.slope_covariance)
        ratios = self.estimates[places] / scale
        costs = np.empty(len(held))
        k = len(scale)
        step = max(_BATCH_BYTES // (8 * (k + 1) ** 2), 1)
        for start in range(0, len(held), step):
            batch = slice(start, start + step)
            out = (~held[batch]).astype(np.float64)
            # Features that are held get the equation x = 0, so all systems have one size.
            system = correlation * out[:, :, None] * out[:, None, :]
            system[:, np.arange(k), np.arange(k)] += 1.0 - out
            right = out * ratios
            solved = np.linalg.solve(system, right[:, :, None])[:, :, 0]
            costs[batch] = np.einsum("ij,ij->i", right, solved)
        return costs.reshape(masks.shape[:-1])

    def as_moments(self) -> Moments:
        """Return the regression of R theta-hat on the columns of R, as compressed rows.

        R is that of the slopes alone. The SSE of an assignment is `dropped`. The constant is
        orthogonal to all else, so it changes nothing; so is lambda.
        """
        columns, places = self.slopes
        k = len(columns)
        factor = np.eye(k + 3)
        factor[-1, -1] = 0.0
        factor[1 : k + 1, 1 : k + 1] = inverse_root(self.slope_covariance)
        factor[1 : k + 1, -1] = factor[1 : k + 1, 1 : k + 1] @ self.estimates[places]
        return Moments(
            columns=columns,
            n_features=self.n_features * (2 if self.searched else 1),
            factor=factor,
            factor_delta=np.zeros((k + 2, k + 2)),
            n_selected=self.n_selected,
            mean_delta=0.0,
            index_range=(np.inf, -np.inf),
            probit=None,
        )

    def check(self) -> Form:
        """Refuse a covariance that is not known, or singular in the free parameters."""
        if not is_singular(self.covariance[np.ix_(self.free, self.free)]):
            return self
        names, fewer = (
            "",
            f"{option('prediction_features')}, or leave some out with {option('never', [...])}",
        )
        if self.searched:
            names = f", of the {len(self.searched)} that may drive selection"
            fewer = f"{option('prediction_features')} or {option('selection_features')}"
        raise NotIdentifiedError(
            f"assignments are weighed by the covariance of all {len(self.columns)} features that "
            f"may predict{names} and of the correction, and it is singular or not known. Name "
            f"fewer in {fewer}; with {option('cov_type', 'cluster')} there must be more clusters "
            "than features."
        )


def form_of_all(
    moments: Moments,
    columns: Sequence[int],
    labels: Sequence[str],
    kind: CovarianceKind = CLASSICAL,
    rows: Rows | None = None,
) -> Form:
    """Return the form of the two-step estimates with all ``columns`` of X as prediction features.

    V is Heckman's covariance, with a beta_H of at most .98 sigma in size, or that of ``kind``,
    which takes a pass over ``rows``. Features that cannot be fitted together are refused;
    ``labels`` name the columns of X.
    """
    columns = tuple(sorted(columns))
    k = len(columns)
    if moments.n_selected <= k + 2:
        raise TooFewRowsError(
            f"{option('criterion', 'corrected_bic')} fits all {k} features that may predict at "
            f"once: with an intercept and the inverse Mills ratio they need more than {k + 2} "
            f"selected rows; there are {weighted_count(moments.n_selected)}. Name fewer in "
            f"{option('prediction_features')}, or use {option('criterion', 'bic')}."
        )
    dependent = dependencies(moments.subset(columns, outcome=False))
    if dependent:
        raise collinear_error(
            dependent,
            ["constant", *(labels[column] for column in columns), "inverse Mills ratio"],
            (*columns, -1),
            f"{option('criterion', 'corrected_bic')} fits all features that may predict at once, "
            "and they are collinear among the selected rows",
            f"Leave some out with {option('never', [...])}, or use {option('criterion', 'bic')}.",
        )
    form = two_step_form(moments, columns, kind, rows)
    if is_singular(form.slope_covariance):
        few = " There are fewer clusters than features." if kind.sums_groups else ""
        raise NotIdentifiedError(
            f"{option('criterion', 'corrected_bic')} needs the covariance of the {k} coefficients "
            f"of all features, and the {kind.cov_type} one is singular.{few} Use "
            f"{option('criterion', 'bic')}."
        )
    return form


def two_step_form(
    moments: Moments,
    columns: Sequence[int],
    kind: CovarianceKind = CLASSICAL,
    rows: Rows | None = None,
) -> Form:
    """Return the form of the two-step estimates of some columns, which can be fitted at once."""
    probit = moments.probit
    assert probit is not None
    fitted = fit_two_step(moments, probit, columns, kind, rows, largest_rho=LARGEST_RHO)
    k = len(fitted.features)
    # beta_H comes after both equations in a form, and before the scale, whose errors are not known.
    order = [*range(k + 1), *range(k + 2, len(fitted.covariance)), k + 1]
    covariance = np.zeros((len(order) + 1, len(order) + 1))
    covariance[:-1, :-1] = fitted.covariance[np.ix_(order, order)]
    sigma, imr_coef = float(fitted.solution.sigma), float(fitted.coef[-1])
    rest = max(sigma**2 - moments.mean_delta * imr_coef**2, np.finfo(float).tiny)
    return Form(
        columns=fitted.features,
        selection=tuple(probit.features),
        n_features=moments.n_features,
        n_selected=float(moments.n_selected),
        errors="two-step",
        estimates=np.array([*fitted.coef[:-1], *probit.coef, imr_coef, 0.5 * float(np.log(rest))]),
        covariance=covariance,
        mean_delta=moments.mean_delta,
    )

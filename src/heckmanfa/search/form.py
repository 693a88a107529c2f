"""The model with everything in it, from which every assignment follows.

With theta-hat its estimates and V their covariance, leaving some of them out costs the Wald
statistic theta_D' (V_DD)^-1 theta_D, and those that stay become theta_S - V_SD (V_DD)^-1 theta_D.
What may be left out, the free parameters, are the slopes of the candidates and the correction:
beta_H in two steps, atanh rho in a likelihood. With V^-1 = R'R for these, an assignment is a
regression of R theta-hat on the columns of R that it holds.

The correction may be several parameters, which come and go together: those of both regimes of a
switching regression, or the terms of a series. Of several outcome equations, a candidate has a
slope in each, and is in all of them or in none. All else is in every assignment, and follows the
free parameters: intercepts, an effect of treatment, scales, steps between cut points (`ends`).

One more column may be held, the index R (g, 0), where g are the coefficients of the candidates in
the selection equation: what drives selection moves the outcome too, in the same proportions. Held
with coefficient b, it adds b g_j to the effect of every candidate j. There is one for each outcome
equation, held together.

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
from itertools import pairwise
from typing import Any, Literal

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
from heckmanfa.search.ends import Ends, Errors
from heckmanfa.text.option_words import option

EquationColumns = Literal["prediction", "selection", "none"]
_BATCH_BYTES = 2**25


def wald_excess(estimate: Any, variance: Any, log_likelihood: float, apart: float) -> float:
    """Return by how much the correction's Wald statistic exceeds the likelihood ratio.

    ``estimate`` and ``variance`` may be those of several parameters, (c,) and (c, c). ``apart`` is
    the log-likelihood with rho = 0, in which both equations are fitted apart.
    """
    theta, own = np.atleast_1d(estimate), np.atleast_2d(variance)
    wald = float(theta @ np.linalg.solve(own, theta))
    return wald - max(2.0 * (log_likelihood - apart), 0.0)


@dataclass(frozen=True, eq=False)
class Form:
    """Estimates of everything, theta-hat, and their covariance V.

    The d estimates are the coefficients of all equations, such as the prediction equation
    (intercept, k candidates) and the selection equation (intercept, p features); the correction;
    and what follows it, such as the scale of the errors.
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
    equations: tuple[EquationColumns, ...] = ("prediction", "selection")
    """which columns each equation has: the candidates, the selection features, or none"""
    shown: tuple[str, ...] = ()
    """error terms that tables have; empty if they are those of a single outcome equation"""
    mean_deltas: tuple[float, ...] = ()
    """mean of delta of each regime, if there are several"""

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

    @cached_property
    def ends(self) -> Ends:
        """What the last estimates are."""
        deltas = self.mean_deltas or (self.mean_delta,)
        last = self.estimates[self.correction :]
        return Ends.of(self.errors, self.shown, deltas, self.known_sigma, last)

    @cached_property
    def spans(self) -> tuple[range, ...]:
        """Where the coefficients of each equation are among the estimates, intercept first."""
        sizes = {"prediction": len(self.columns), "selection": len(self.selection), "none": 0}
        ends = np.cumsum([0, *(1 + sizes[columns] for columns in self.equations)])
        return tuple(range(a, b) for a, b in pairwise(ends.tolist()))

    @property
    def outcomes(self) -> list[range]:
        """Where the outcome equations are: one, or one for each regime."""
        return self._spans_of("prediction")

    @property
    def selecting(self) -> range:
        """Where the selection equation is."""
        return self._spans_of("selection")[0]

    def _spans_of(self, columns: EquationColumns) -> list[range]:
        own = zip(self.equations, self.spans, strict=True)
        return [span for kind, span in own if kind == columns]

    @property
    def n_equations(self) -> int:
        """Number of outcome equations, r."""
        return self.equations.count("prediction")

    @property
    def n_corrections(self) -> int:
        """Number of parameters of the correction, c."""
        return len(self.ends.correction)

    @property
    def n_slopes(self) -> int:
        """Number of slopes of outcome equations, r k: the free parameters begin with these."""
        return self.n_equations * len(self.columns)

    @property
    def shares_selection(self) -> bool:
        """Whether all assignments have the same selection equation, fitted before."""
        return self.errors in ("two-step", "series")

    @property
    def n_fixed(self) -> int:
        """Number of parameters that every assignment has, as criteria count them.

        They are the intercepts of outcome equations, and an effect of treatment; if both equations
        are searched, that of the selection equation and other parameters of the errors are
        counted, too.
        """
        constants = len(self.equations) - 1
        return constants if not self.searched else constants + 1 + len(self.ends.others)

    @property
    def correction(self) -> int:
        """Position of the correction among the estimates: coefficients come before it."""
        return self.spans[-1].stop

    @cached_property
    def free(self) -> list[int]:
        """Positions of the f free parameters: r k slopes, the correction, s selection slopes."""
        slopes = [place for span in self.outcomes for place in span[1:]]
        corrections = range(self.correction, self.correction + self.n_corrections)
        places = dict(zip(self.selection, self.selecting[1:], strict=True))
        return [*slopes, *corrections, *(places[column] for column in self.searched)]

    def places_in(self, n_states: int) -> list[int]:
        """Where states of this length, as `Members` has them, hold each free parameter."""
        searched = [self.n_features + column for column in self.searched]
        corrections = [n_states - 2] * self.n_corrections
        return [*self.columns * self.n_equations, *corrections, *searched]

    def free_of(self, column: int) -> list[int]:
        """Which free parameters a column is: a slope in each outcome equation, or in selection.

        Column c of the selection equation is column K + c.
        """
        if column >= self.n_features:
            first = self.n_slopes + self.n_corrections
            return [first + self.searched.index(column - self.n_features)]
        place, k = self.columns.index(column), len(self.columns)
        return [equation * k + place for equation in range(self.n_equations)]

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
    def directions(self) -> Floats:
        """(r, f) of the indexes: selection coefficients of the drivers, and zero elsewhere."""
        slopes_of = self.estimates[self.selecting[1:]]
        of_selection = dict(zip(self.selection, slopes_of, strict=True))
        drivers = self.columns if self.drivers is None else self.drivers
        slopes = [of_selection.get(c, 0.0) if c in drivers else 0.0 for c in self.columns]
        directions, k = np.zeros((self.n_equations, len(self.free))), len(self.columns)
        for equation, own in enumerate(directions):
            own[equation * k : (equation + 1) * k] = slopes
        return directions

    @property
    def drives(self) -> Mask:
        """(k,) which candidates the index has."""
        return np.asarray(self.directions[0, : len(self.columns)] != 0.0)

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
        if self.shares_selection:
            moves[list(self.selecting)] = 0.0
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

    def error_terms(self, estimates: Floats) -> dict[str, Floats]:
        """Return all error terms by name, (...,), given all estimates, (..., d)."""
        return self.ends.values(estimates[..., self.correction :])

    def place_of(self, name: str) -> int:
        """Which of the terms an error term is."""
        return self.correction + self.ends.shown.index(name)

    def terms(self, estimates: Floats) -> Floats:
        """Return what tables show, (..., T), given all estimates (..., d).

        They are all equations, and the error terms.
        """
        at = self.correction
        shown = self.ends.shown_at(estimates[..., at:])
        return np.concatenate([estimates[..., :at], shown], axis=-1)

    def term_slopes(self, estimates: Floats) -> Floats:
        """Return derivatives of the last terms in the last estimates, (..., E, e)."""
        return self.ends.slopes_at(estimates[..., self.correction :])

    @cached_property
    def slopes(self) -> tuple[tuple[int, ...], list[int]]:
        """Columns whose slopes may be left out, in order, and their positions among the estimates.

        Column c of the selection equation, or of the second outcome equation, is column K + c, as
        in `choices.join_equations` and `choices.in_each_equation`.
        """
        after = [self.columns] * (self.n_equations - 1) + [self.searched]
        columns = (*self.columns, *(self.n_features + c for some in after for c in some))
        places = [place for place in self.free if place < self.correction]
        order = np.argsort(columns, kind="stable")
        return tuple(columns[i] for i in order), [places[i] for i in order]

    @property
    def n_searched(self) -> int:
        """Number of equations whose slopes may be left out."""
        return self.n_equations + bool(self.searched)

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
            n_features=self.n_features * self.n_searched,
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

"""Effects of each column of X in a fitted model, and in models beside it, with 95% intervals.

Effects on a continuous outcome are coefficients; those on a binary one are average slopes of the
probability of its positive class, and least squares is there a probit of the rows with an outcome.
P(y = 1 | x) = Phi(x'beta) has the slope phi(x'beta) beta_j in feature j. Its average over the rows
with an outcome is beta_j times the mean of phi(x'beta), which the fit knows, so nothing here reads
rows. Standard errors are by the delta method. The effect of a feature of 0 and 1 is a slope too,
not the difference of two predictions: `margins` has those. Honest estimates have the mean of phi of
their features in all rows, moved to the medians. Intervals of single assignments have classical
standard errors, unless an average gathered others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.fit.binary import BinaryOutcome
from heckmanfa.fit.full_form import form_of_two_steps
from heckmanfa.model.likelihood import likelihood_criteria
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit_likelihood import average_slopes
from heckmanfa.model.two_step import fit_least_squares
from heckmanfa.model.two_step_over_rho import TwoStepOverRho
from heckmanfa.results.average_tables import TermMixture
from heckmanfa.results.distribution import NullDistribution, distribution_of, tails
from heckmanfa.results.estimates import tidy
from heckmanfa.results.side_by_side import holds_all, may_predict, refits_of
from heckmanfa.search.averaging.averages import without_correction
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.form import Form


def probability_of(fit: Fit) -> BinaryOutcome | None:
    """Return what a fit knows of its classes and slopes; None unless it models probabilities."""
    return fit.details if isinstance(fit.details, BinaryOutcome) else None


def separating_columns(fit: Fit) -> tuple[int, ...]:
    """Return the columns that decide the outcome among the selected rows."""
    binary = probability_of(fit)
    return () if binary is None else binary.separated


def class_counts(fit: Fit) -> tuple[int | float | None, int | float | None]:
    """Count the selected rows of the positive and of the negative class; None without classes."""
    binary = probability_of(fit)
    return (None, None) if binary is None else (binary.n_positive, binary.n_negative)


def mean_slope(fit: Fit) -> float:
    """Return what turns a coefficient into an average effect: 1 unless it is on a probability."""
    binary = probability_of(fit)
    return 1.0 if binary is None else binary.mean_slope


def own_slopes(fit: Fit) -> tuple[Floats, Floats]:
    """Return the average slopes of the prediction features of a fit, and their covariance."""
    binary = probability_of(fit)
    assert binary is not None
    coef = np.array([fit.intercept, *fit.coef[fit.equation]])
    covariance = fit.covariance[: len(coef), : len(coef)]
    return average_slopes(coef, covariance, binary.mean_slope, binary.mean_slope_gradient)


def naive_slopes(fit: Fit) -> tuple[Floats, Floats]:
    """Return those of a probit of the rows with an outcome, which ignores selection."""
    binary = probability_of(fit)
    assert binary is not None
    return average_slopes(
        binary.naive_coef,
        binary.naive_covariance,
        binary.naive_mean_slope,
        binary.naive_mean_slope_gradient,
    )


CONF_LEVEL = 0.95
_QUANTILE = NullDistribution().quantile(CONF_LEVEL)


@dataclass(frozen=True)
class Effect:
    """An estimate with its interval; NaN where unknown."""

    estimate: float
    low: float
    high: float

    def times(self, step: float) -> Effect:
        """Return the effect of a step of so many units."""
        return Effect(step * self.estimate, step * self.low, step * self.high)

    def joined(self, other: Effect) -> Effect:
        """Return the estimate with an interval that holds those of both."""
        return Effect(self.estimate, min(self.low, other.low), max(self.high, other.high))

    @property
    def known(self) -> bool:
        """Whether there is an estimate."""
        return bool(np.isfinite(self.estimate))

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are known."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.has_interval and (self.low > 0.0 or self.high < 0.0)

    @property
    def std_error(self) -> float:
        """A quarter of the interval's width, about one standard error."""
        return (self.high - self.low) / (2.0 * _QUANTILE)

    @property
    def z(self) -> float:
        """The estimate over its standard error; zero if unknown."""
        error = self.std_error
        return self.estimate / error if self.known and error > 0.0 else 0.0


UNKNOWN = Effect(float("nan"), float("nan"), float("nan"))
"""no estimate"""


@dataclass(frozen=True, eq=False)
class Series:
    """Effects of all K columns of X by one model."""

    values: Floats
    """(K, 3) estimate and ends of the interval; NaN where the model has no such column"""

    @classmethod
    def on(cls, fit: Fit, columns: Sequence[int], estimates: Floats, errors: Floats) -> Series:
        """Spread estimates of some columns, with intervals by their standard errors."""
        reach = distribution_of(fit).quantile(CONF_LEVEL) * errors
        values = np.full((fit.n_features, 3), np.nan)
        values[list(columns)] = np.column_stack([estimates, estimates - reach, estimates + reach])
        return cls(values)

    @classmethod
    def of_slopes(cls, fit: Fit, slopes: Floats, covariance: Floats) -> Series:
        """Spread average slopes of the prediction features."""
        with np.errstate(invalid="ignore"):
            return cls.on(fit, fit.equation, slopes, np.sqrt(np.diag(covariance)))

    def of(self, column: int) -> Effect:
        """Return the effect of one column."""
        return Effect(*(float(value) for value in self.values[column]))


@dataclass(frozen=True, eq=False)
class Assignment:
    """One set of features, with its estimates by the form or those of a refit."""

    mask: Mask
    """(K,) which columns predict on their own"""
    bic: float
    """by the form, relative to what the model of everything costs"""
    rho: float
    rho_interval: tuple[float, float]
    imr: Effect
    coef: Series


@dataclass(frozen=True, eq=False)
class Effects:
    """What a fitted model, and one that ignores selection, say of every column."""

    table: pd.DataFrame
    """as `Heckman.tidy` returns it"""
    own: Series
    least_squares: Series
    """of a binary outcome, a probit of the rows with an outcome"""
    least_squares_share: Floats | None
    """(K,) BIC share of each column if the average leaves lambda out; None if not known"""
    imr: Effect
    rho: Effect


def effects_of(fit: Fit, whole: Fit | None = None) -> Effects:
    """Collect the effects of a fit, which may be a view of the ``whole`` that was estimated."""
    table = tidy(whole or fit, CONF_LEVEL)
    own = _own(fit, table)
    series, share = _least_squares(fit, own)
    return Effects(table, own, series, share, _errors_row(table, "imr"), rho_of(fit, table))


def rho_of(fit: Fit, table: pd.DataFrame) -> Effect:
    """Return rho with its interval, given the table of estimates."""
    rho = _errors_row(table, "rho")
    if not fit.family.can("single rho"):
        return rho
    of_two_steps = not fit.way.is_average and fit.atanh_rho is None and fit.family.has_imr
    if of_two_steps and not fit.rho_is_conditioned and fit.held_rho is None:
        return Effect(rho.estimate, *rho_ends(fit.moments, _errors_row(table, "imr"), fit.sigma))
    return rho


def _own(fit: Fit, table: pd.DataFrame) -> Series:
    if fit.family.has_classes and not fit.way.is_average:
        return Series.of_slopes(fit, *own_slopes(fit))
    values = np.full((fit.n_features, 3), np.nan)
    rows = table[table["equation"] == "prediction"].iloc[1:]
    ends = rows[["estimate", "ci_low", "ci_high"]].to_numpy(dtype=np.float64)
    # The average slope of a probability is proportional to the coefficient.
    values[fit.equation] = mean_slope(fit) * ends
    return Series(values)


def _errors_row(table: pd.DataFrame, term: str) -> Effect:
    row = table[(table["equation"] == "errors") & (table["term"] == term)]
    if row.empty:
        return UNKNOWN
    estimate, *ends = row[["estimate", "ci_low", "ci_high"]].to_numpy(dtype=np.float64)[0]
    return Effect(float(estimate), *(float(end) for end in ends))


def rho_ends(moments: Moments, imr: Effect, sigma: float) -> tuple[float, float]:
    """Turn the interval of lambda's coefficient into one of rho, given the SSE.

    rho rises with that coefficient, so both intervals hold zero, or neither does.
    """
    rest = max(sigma**2 - moments.mean_delta * imr.estimate**2, 0.0)
    ends = []
    for end in (imr.low, imr.high):
        spread = np.sqrt(rest + moments.mean_delta * end**2)
        ends.append(float(np.clip(end / spread, -1.0, 1.0)) if spread > 0.0 else float("nan"))
    return ends[0], ends[1]


def _least_squares(fit: Fit, own: Series) -> tuple[Series, Floats | None]:
    """Least squares on the same features, or averaged alike."""
    if fit.probit is None:
        return own, None
    if fit.family.has_classes:
        return Series.of_slopes(fit, *naive_slopes(fit)), None
    return _averaged_least_squares(fit) if fit.way.is_average else (_same_features(fit), None)


def _same_features(fit: Fit) -> Series:
    """Least squares on the features of a fit."""
    naive = fit_least_squares(fit.moments, fit.equation)
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(naive.covariance))
    if fit.rho_scores is not None:
        # Least squares is the model with rho held at zero.
        curve = TwoStepOverRho.build(fit.moments, fit.equation, scores=fit.rho_scores)
        errors = curve.std_error(np.zeros(1))[0]
    return Series.on(fit, fit.equation, naive.coef[1:], errors[1:])


def _averaged_least_squares(fit: Fit) -> tuple[Series, Floats | None]:
    """Least squares averaged alike, and the share of each column."""
    values, columns = np.full((fit.n_features, 3), np.nan), fit.equation
    form, mixture = fit.way.averaging.form, fit.way.averaging.mixture
    alike, share = without_correction(form, mixture)
    span = slice(1, 1 + len(columns))
    # The last of these is the model of all features, which only intervals count.
    mixed = alike.beside(form.everything(corrected=False), mixture.all_features_share)
    values[columns, 0] = alike.weights @ mixed.terms[:-1, span]
    terms = TermMixture(mixed.weights, mixed.terms[:, span], mixed.term_errors[:, span])
    chances = np.full(len(columns), np.nan) if share is None else share[columns]
    values[columns, 1:] = terms.intervals(tails(CONF_LEVEL), distribution_of(fit).df, chances)
    return Series(values), share


def assignments_of(fit: Fit, form: Form, states: Mask, own: Effects) -> list[Assignment]:
    """Estimate some assignments, (N, K + 2) states, by the form of the model of everything.

    A search that refitted sets has the refits of these; ``own`` are the effects of the fit.
    """
    if not len(states):
        return []
    has_imr = fit.family.has_imr
    if not has_imr and fit.search is not None and not form.searched:
        masks = states[:, : fit.n_features]
        near = zip(*_by_form(form, states), strict=True)
        return [_refitted(fit, own, mask, *row) for mask, row in zip(masks, near, strict=True)]
    members = Members(form, states, np.full(len(states), 1.0 / len(states)))
    masks = states[:, : fit.n_features]
    bic = members.costs + (form.n_fixed + states.sum(axis=1)) * np.log(form.n_selected)
    reach = distribution_of(fit).quantile(CONF_LEVEL) * members.term_errors
    ends = np.stack([members.terms, members.terms - reach, members.terms + reach], axis=2)
    place = form.correction
    assignments = []
    for row, state in enumerate(states):
        spread = np.full((fit.n_features, 3), np.nan)
        spread[list(form.columns)] = mean_slope(fit) * ends[row, 1 : 1 + len(form.columns)]
        spread[~masks[row] & ~state[-1]] = np.nan
        known = has_imr and state[-2]
        imr = Effect(*(float(end) for end in ends[row, place])) if known else UNKNOWN
        rho = np.full(3, np.nan)
        if "rho" in form.ends.shown:
            rho = ends[row, form.place_of("rho")]
        assignments.append(
            Assignment(
                mask=masks[row],
                bic=float(bic[row]),
                rho=float(rho[0]),
                rho_interval=(float(max(rho[1], -1.0)), float(min(rho[2], 1.0))),
                imr=imr,
                coef=Series(spread),
            )
        )
    return assignments


def _by_form(form: Form, states: Mask) -> tuple[Floats, Floats]:
    """Coefficients (N, K) and rho (N,) of sets with the correction; NaN if rho is not estimated."""
    corrected = states.copy()
    corrected[:, -2:] = True, False
    estimates = Members(form, corrected, np.ones(len(states))).estimates
    coef = np.full((len(states), form.n_features), np.nan)
    coef[:, list(form.columns)] = estimates[:, form.outcomes[0][1:]]
    known = form.knows_correction and "rho" in form.ends.shown
    nan = np.full(len(states), np.nan)
    return coef, form.error_terms(estimates)["rho"] if known else nan


def _refitted(fit: Fit, own: Effects, mask: Mask, coef: Floats, rho_hat: float) -> Assignment:
    """Return one set of features as a search by maximum likelihood refitted it.

    ``coef``, (K,), and ``rho_hat`` are taken where it was not. Refits have no standard errors. The
    slopes of other sets than the fitted one take its mean slope for theirs.
    """
    nan = float("nan")
    search = None if fit.search is None else fit.search.result
    place: list[int] = []
    if search is not None:
        place = np.flatnonzero((search.masks == mask).all(axis=1)).tolist()
    bic = float(search.bic[place[0]]) if search is not None and place else nan
    if np.array_equal(mask, fit.support):
        rho = own.rho
        if np.isnan(bic):
            # As of other sets: only the features count.
            _, bic = likelihood_criteria(fit.log_likelihood, len(fit.features), fit.n_selected)
        return Assignment(mask, bic, rho.estimate, (rho.low, rho.high), UNKNOWN, own.own)
    if search is not None and search.refits is not None and place:
        coef, rho_hat = search.refits.coef[place[0]], search.rho[place[0]]
    values = np.full((fit.n_features, 3), nan)
    values[mask, 0] = mean_slope(fit) * coef[mask]
    return Assignment(mask, bic, float(rho_hat), (nan, nan), UNKNOWN, Series(values))


def all_features_of(fit: Fit, own: Effects, never: Sequence[str] = ()) -> Assignment | None:
    """Estimate the model in which every feature that may predict does.

    None without a selection equation, if it cannot be solved, or if it is the fitted model. Where
    no compressed data has it, only a search knows it. ``own`` are the effects of the fit.
    """
    if fit.probit is None:
        return None
    columns = may_predict(fit, never)
    if not columns or holds_all(fit, columns):
        return None
    form = fit.way.form
    if form is None:
        if "compressed data" not in fit.family.supports:
            return _searched_all(fit)
        try:
            form = form_of_two_steps(fit, tuple(columns))
        except NotIdentifiedError:
            return None
    state = form.state_of(np.isin(np.arange(fit.n_features), form.columns))[None]
    return assignments_of(fit, form, state, own)[0]


def _searched_all(fit: Fit) -> Assignment | None:
    """Return the model of all candidates that a search by maximum likelihood started from."""
    refits = refits_of(fit)
    full = None if refits is None else refits.full
    if refits is None or full is None:
        return None
    columns, quantile = list(full.columns), distribution_of(fit).quantile(CONF_LEVEL)
    mask = np.zeros(fit.n_features, dtype=bool)
    mask[columns] = True
    centre, error = full.atanh_rho
    low, high = np.tanh(centre + quantile * error * np.array([-1.0, 1.0]))
    _, bic = likelihood_criteria(refits.full_log_likelihood, len(columns), fit.n_selected)
    rho, ends = float(np.tanh(centre)), (float(low), float(high))
    slopes = Series.on(fit, columns, full.slopes, full.slope_errors)
    return Assignment(mask, float(bic), rho, ends, UNKNOWN, slopes)

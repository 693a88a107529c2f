"""`Fit` and `fit_model`, which combine the model and the search.

`fit_model` is the only way to make a `Fit`. It fits the selection equation, compresses the selected
rows, lets ``choose`` pick the prediction features, and estimates their coefficients. A `Fit` holds
all results: reports, inference and plots read it, and nothing else of an estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FittedColumns, names_or_positions
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.rows import Mask, Positions, Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import AllObservedWarning, RhoOutsideWarning, warn
from heckmanfa.model.covariance import (
    CLASSICAL,
    CovarianceKind,
    check_clusters,
    count_clusters,
    errors_differ,
)
from heckmanfa.model.equations import (
    Selection,
    fit_selection,
    gather,
    refuse_leakage,
    weighted_count,
)
from heckmanfa.model.least_squares import fit_least_squares
from heckmanfa.model.likelihood import fit_likelihood, warn_of_likelihood
from heckmanfa.model.likelihood_guards import LikelihoodGuards, guard_likelihood
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.option_types import CovType, Method, OnProblem, WeightKind
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep, fit_two_step
from heckmanfa.search.averaging.average_outcome import AverageOutcome
from heckmanfa.search.outcome import SearchOutcome


@dataclass(frozen=True)
class Spec:
    """What to fit: the columns of both equations and the options of `Heckman`."""

    columns: FittedColumns
    """the K columns of X"""
    labels: tuple[str, ...]
    """(K,) their names in tables and messages"""
    selection: tuple[int, ...]
    """columns of the selection equation"""
    prediction: tuple[int, ...]
    """columns that may predict"""
    method: Method = "two-step"
    cov_type: CovType | None = None
    weight_kind: WeightKind = "frequency"
    on_collinear: OnProblem = "error"
    on_separation: OnProblem = "error"
    start: Any = None
    groups: tuple[tuple[int, ...], ...] = ()
    """columns that belong together, such as the dummies of one category"""
    guarded: bool = True
    """whether maximum likelihood is tested against the two-step estimates"""

    def covariance_kind(self, n_groups: int) -> CovarianceKind:
        """Return which covariance to estimate, with this many groups."""
        sampling = self.weight_kind == "sampling"
        return CovarianceKind(self.cov_type or "classical", sampling, n_groups)

    @property
    def errors_differ(self) -> bool:
        """Whether standard errors are other than those of compressed data."""
        return errors_differ(self.cov_type, self.weight_kind)

    def feature_names(self, columns: Positions) -> list[Any]:
        """Return the names of columns, or their positions if X has no names."""
        return names_or_positions(self.columns.names, columns)

    def for_replicates(self) -> Spec:
        """Return the same model for many fits of which only the estimates are used."""
        start = elsewhere(read_start(self.start, self.method))
        return replace(self, cov_type=None, start=start, guarded=False)


@dataclass(frozen=True)
class Origin:
    """How rows were passed to the fit, for methods that take rows later."""

    selected_given: bool = False
    """whether the user passed who is selected, so missing values of y do not tell"""
    design: FormulaDesign | None = None
    """how to make X from a data frame, if the model has formulas"""
    weight_column: str | None = None
    """column of the data frame that holds the weights"""
    group_column: str | None = None
    """column of the data frame that holds the clusters"""
    outcome: str | None = None
    """name of the outcome, if it came with one"""


@dataclass(frozen=True, eq=False)
class Fit:
    """All results of a fit, without any rows of data. K is the number of columns of X."""

    spec: Spec
    row_counts: dict[str, int]
    """every row given, by status"""
    n_obs: int | float
    n_selected: int | float
    moments: Moments
    dropped: tuple[int, ...]
    """columns left out"""
    support: Mask
    """(K,) which columns predict"""
    coef: Floats
    """(K,) zero where a column does not predict"""
    intercept: float
    imr_coef: float
    rho: float
    sigma: float
    selection_coef: Floats
    """(K,)"""
    selection_intercept: float
    """infinite if no outcome is missing"""
    adjusted_r2: float
    aic: float
    bic: float
    converged: bool
    terms: tuple[tuple[str, str], ...]
    """(equation, term) of each row of the covariance"""
    covariance: Floats
    index_range: tuple[float, float]
    """range of z'gamma among the selected rows"""
    log_likelihood: float | None = None
    """None for the two-step estimator"""
    params: Floats | None = None
    """parameters of maximum likelihood, in the order of its covariance"""
    atanh_rho: tuple[float, float] | None = None
    log_sigma: tuple[float, float] | None = None
    """maximum-likelihood estimates and their standard errors"""
    second_maximum: tuple[float, float] | None = None
    """log-likelihood and rho of another known maximum"""
    guards: LikelihoodGuards | None = None
    """maximum likelihood beside the two-step estimates; None unless it is at a proper maximum"""
    n_clusters: int | None = None
    """None unless the covariance is clustered"""
    weighted: bool = False
    """whether rows had weights"""
    search: SearchOutcome | None = None
    """None unless the estimator searches for the prediction features"""
    average: AverageOutcome | None = None
    """None unless the estimates are averages over assignments"""
    origin: Origin = field(default_factory=Origin)

    @property
    def probit(self) -> Probit | None:
        """The selection equation; None if every outcome was observed."""
        return self.moments.probit

    @property
    def n_features(self) -> int:
        """Number of columns of X, K."""
        return len(self.spec.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of X in tables and messages."""
        return self.spec.labels

    @property
    def features(self) -> list[int]:
        """Positions of the prediction features."""
        return [int(column) for column in np.flatnonzero(self.support)]

    @property
    def equation(self) -> list[int]:
        """Positions of the columns of the prediction equation, in the order of ``terms``.

        They are the prediction features, except in an average: its equation has every column that
        may predict, and its prediction features are those that probably do.
        """
        return self.features if self.average is None else list(self.average.columns)

    @property
    def feature_names(self) -> list[Any]:
        """Name of each column of X, or its position if X has no names."""
        return self.spec.feature_names(range(self.n_features))

    @property
    def prediction_features(self) -> list[Any]:
        """Names or positions of the prediction features."""
        return self.spec.feature_names(self.features)

    @property
    def selection_features(self) -> list[Any]:
        """Names or positions of the columns of the selection equation."""
        return [] if self.probit is None else self.spec.feature_names(self.probit.features)

    @property
    def rho_is_conditioned(self) -> bool:
        """Whether rho-hat was part of a choice, so no test of rho = 0 is valid."""
        # An honest rho is estimated on rows that had no part in the choice.
        if self.average is not None:
            return self.average.average.rho_range is not None
        return bool(self.search and self.search.window and self.search.honest is None)


class Fitted(Protocol):
    """A fitted estimator."""

    @property
    def fit_(self) -> Fit:
        """All results of the fit."""


@dataclass(frozen=True)
class Choice:
    """The prediction features of a fit, and how they were found."""

    features: tuple[int, ...]
    dropped: tuple[int, ...] = ()
    search: SearchOutcome | None = None
    average: AverageOutcome | None = None


class Choose(Protocol):
    """Chooses the prediction features."""

    def __call__(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        kind: CovarianceKind,
        random_state: Any,
    ) -> Choice:
        """Choose, from the selection equation and the compressed data."""

    def without_selection(self, spec: Spec) -> SearchOutcome | None:
        """Return the outcome of a search that did not run, since no outcome is missing."""
        return None

    def finish(self, fit: Fit) -> Fit:
        """Return the fit to report."""
        return fit


def fit_model(
    spec: Spec,
    sample: Sample,
    choose: Choose,
    random_state: Any = None,
    origin: Origin | None = None,
) -> Fit:
    """Fit both equations to a sample, with the prediction features that ``choose`` returns."""
    kind = spec.covariance_kind(sample.n_groups)
    n_clusters = check_clusters(sample.n_groups) if spec.cov_type == "cluster" else None
    if sample.all_selected:
        fit = _fit_all_observed(spec, sample, kind)
        search, average = choose.without_selection(spec), None
    else:
        selection, moments = compress_sample(spec, sample)
        if n_clusters is not None and selection.n_decided:
            n_clusters = check_clusters(count_clusters(selection.rows))
        choice = choose(spec, selection, moments, kind, random_state)
        search, average = choice.search, choice.average
        counts = sample.row_counts | selection.row_counts()
        fit = _fit_both_equations(spec, selection, moments, choice, kind, counts)
    fit = replace(
        fit,
        n_clusters=n_clusters,
        weighted=sample.rows.weighted,
        search=search,
        average=average,
        origin=origin or Origin(),
    )
    return fit if sample.all_selected else choose.finish(fit)


def compress_sample(spec: Spec, sample: Sample) -> tuple[Selection, Moments]:
    """Fit the selection equation and compress the selected rows."""
    selection = fit_selection(
        sample.rows,
        spec.selection,
        spec.labels,
        on_collinear=spec.on_collinear,
        on_separation=spec.on_separation,
    )
    prediction = [column for column in spec.prediction if column not in selection.separating]
    return selection, gather(selection, prediction, spec.labels, sample.row_counts["selected"])


def _fit_both_equations(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    choice: Choice,
    kind: CovarianceKind,
    counts: dict[str, int],
) -> Fit:
    """Estimate the prediction equation with the chosen features; the probit is fitted already."""
    probit, rows = selection.probit, selection.rows
    # These features have standard errors only if they are what is reported.
    passing = spec.method == "ml" or choice.average is not None
    first = CLASSICAL if passing else kind
    found = fit_two_step(moments, probit, choice.features, first, rows)
    solution = found.solution
    j = len(found.coef) - 1
    order = [*range(j), *range(j + 1, len(found.covariance)), j]
    fit = Fit(
        spec=spec,
        row_counts=counts,
        n_obs=_count(probit.n, counts["unselected"] + counts["selected"], kind),
        n_selected=_count(moments.n_selected, counts["selected"], kind),
        moments=moments,
        dropped=tuple(dict.fromkeys([*selection.dropped, *choice.dropped])),
        support=np.isin(np.arange(len(spec.labels)), found.features),
        coef=_spread(spec, found.features, found.coef[1:-1]),
        intercept=float(found.coef[0]),
        imr_coef=float(found.coef[-1]),
        rho=float(solution.rho),
        sigma=float(solution.sigma),
        selection_coef=_spread(spec, probit.features, probit.coef[1:]),
        selection_intercept=float(probit.coef[0]),
        adjusted_r2=float(solution.adjusted_r2),
        aic=float(solution.aic),
        bic=float(solution.bic),
        converged=probit.converged,
        terms=label_terms(spec, found.features, probit, ["imr"]),
        covariance=found.covariance[np.ix_(order, order)],
        index_range=moments.index_range,
    )
    if choice.average is not None:
        return fit
    if spec.method == "ml":
        return _maximize_likelihood(fit, found, probit, kind, rows)
    if not abs(fit.rho) < 1:
        warn(
            f"the two-step estimate of rho is {fit.rho:.4g}, outside (-1, 1): the data do not fit "
            "the model well, or only normality identifies it. See diagnostics(), or use "
            "method='ml'.",
            RhoOutsideWarning,
        )
    return fit


def _maximize_likelihood(
    fit: Fit, two_step: TwoStep, probit: Probit, kind: CovarianceKind, rows: Rows
) -> Fit:
    """Replace two-step estimates by those of maximum likelihood."""
    spec = fit.spec
    start = read_start(spec.start, spec.method)
    found = fit_likelihood(fit.moments, probit, two_step, kind, rows, start)
    warn_of_likelihood(found, start)
    given = fit.moments, probit, two_step, found, kind, rows, fit.n_selected
    return replace(
        fit,
        coef=_spread(spec, fit.features, found.coef[1:]),
        intercept=float(found.coef[0]),
        imr_coef=found.rho * found.sigma,
        rho=found.rho,
        sigma=found.sigma,
        selection_coef=_spread(spec, probit.features, found.selection_coef[1:]),
        selection_intercept=float(found.selection_coef[0]),
        log_likelihood=found.log_likelihood,
        params=found.params,
        converged=probit.converged and found.converged,
        terms=label_terms(spec, fit.features, probit, ["imr", "rho", "sigma"]),
        covariance=found.reported_covariance(),
        index_range=found.index_range,
        atanh_rho=(found.atanh_rho, float(np.sqrt(found.covariance[-1, -1]))),
        log_sigma=(found.log_sigma, float(np.sqrt(found.covariance[-2, -2]))),
        # If the climb stopped short, there is no first maximum either.
        second_maximum=found.second_maximum if found.converged else None,
        guards=guard_likelihood(*given) if spec.guarded else None,
    )


def _fit_all_observed(spec: Spec, sample: Sample, kind: CovarianceKind) -> Fit:
    """Fit ordinary least squares, since no outcome is missing."""
    k, counts = len(spec.labels), sample.row_counts
    moments = gather_moments(sample.rows, spec.prediction, k, None)
    refuse_leakage(moments, spec.labels, counts["selected"], missing=False)
    found = fit_least_squares(moments, spec.prediction, kind, sample.rows)
    extra = (
        f" The {len(spec.prediction)} features are collinear or more than the rows can identify: "
        "the coefficients are the minimum-norm ones."
        if found.underdetermined
        else ""
    )
    warn(
        f"no outcome is missing among the {counts['selected']} rows, so there is no selection to "
        f"correct for: ordinary least squares is fitted, and rho is not identified.{extra}",
        AllObservedWarning,
    )
    n = _count(moments.n_selected, counts["unselected"] + counts["selected"], kind)
    return Fit(
        spec=spec,
        row_counts=dict(counts),
        n_obs=n,
        n_selected=n,
        moments=moments,
        dropped=(),
        support=np.isin(np.arange(k), spec.prediction),
        coef=_spread(spec, sorted(spec.prediction), found.coef[1:]),
        intercept=float(found.coef[0]),
        imr_coef=float("nan"),
        rho=float("nan"),
        sigma=found.sigma,
        selection_coef=np.zeros(k),
        selection_intercept=float("inf"),
        adjusted_r2=found.adjusted_r2,
        aic=found.aic,
        bic=found.bic,
        log_likelihood=found.log_likelihood if spec.method == "ml" else None,
        converged=True,
        terms=label_terms(spec, spec.prediction, None, []),
        covariance=found.covariance,
        index_range=moments.index_range,
    )


def _count(weights: float, rows: int, kind: CovarianceKind) -> int | float:
    """Count rows: frequency weights are summed, sampling weights are not."""
    return weighted_count(rows if kind.sampling else weights)


def _spread(spec: Spec, columns: Positions, coef: Floats) -> Floats:
    """Return the coefficient of every column of X, given those of some."""
    spread = np.zeros(len(spec.labels))
    spread[list(columns)] = coef
    return spread


def label_terms(
    spec: Spec, features: Positions, probit: Probit | None, errors: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Label the rows of a covariance: both equations, then terms of the errors."""
    selecting = {} if probit is None else {"selection": list(probit.features)}
    equations = {"prediction": sorted(features)} | selecting
    terms = []
    for equation, columns in equations.items():
        terms += [(equation, "Intercept"), *((equation, spec.labels[column]) for column in columns)]
    return (*terms, *(("errors", term) for term in errors))

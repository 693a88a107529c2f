"""Fit and fit_model: where the model and the search meet.

`fit_model` is the one way to make a `Fit`: the selection equation is fitted, the selected rows are
compressed, ``choose`` settles the prediction features, and these are estimated. `Fit` is all that
a fitted model knows; reports, inference and pictures read it, and nothing else of an estimator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.feature_tables import FittedColumns
from heckmanfa.data.columns.features import names_or_positions
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.rows import Mask, Positions
from heckmanfa.data.sample import Sample
from heckmanfa.errors import (
    AllObservedWarning,
    NoExclusionWarning,
    RhoOutsideWarning,
    TooFewRowsError,
    warn,
)
from heckmanfa.model.covariance import CovarianceKind, check_clusters, count_clusters, errors_differ
from heckmanfa.model.equations import (
    Selection,
    check_prediction,
    fit_selection,
    gather,
    weighted_count,
)
from heckmanfa.model.leakage import refuse_leakage
from heckmanfa.model.least_squares import fit_least_squares
from heckmanfa.model.likelihood import MaximumLikelihood, fit_likelihood
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.maxima import warn_of_likelihood
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.option_types import CovType, Method, OnProblem, WeightKind
from heckmanfa.model.probit import Probit
from heckmanfa.model.two_step import TwoStep, fit_two_step
from heckmanfa.search.outcome import SearchOutcome


@dataclass(frozen=True)
class Spec:
    """What to fit: the columns of both equations and the options of `Heckman`."""

    columns: FittedColumns
    """the K columns of X"""
    labels: tuple[str, ...]
    """(K,) what tables and messages call them"""
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

    @property
    def clustered(self) -> bool:
        """Whether the covariance is clustered."""
        return self.cov_type == "cluster"

    @property
    def errors_differ(self) -> bool:
        """Whether standard errors are other than those of compressed data."""
        return errors_differ(self.cov_type, self.weight_kind)

    def feature_names(self, columns: Positions) -> list[Any]:
        """Return the names of columns, or their positions if X has no names."""
        return names_or_positions(self.columns.names, columns)

    def for_replicates(self) -> Spec:
        """Return the same model for many fits of which only the estimates are used."""
        return replace(self, cov_type=None, start=elsewhere(read_start(self.start, self.method)))


@dataclass(frozen=True)
class Origin:
    """How the rows reached the fit, for methods that are given rows later."""

    selected_given: bool = False
    """whether the user said who is selected, so y alone does not say it"""
    design: FormulaDesign | None = None
    """how to make X from a data frame, for a model from formulas"""
    weight_column: str | None = None
    """column of the data frame that holds the weights"""
    group_column: str | None = None
    """column of the data frame that holds the clusters"""


@dataclass(frozen=True, eq=False)
class Fit:
    """Everything a fitted model knows, without a row of data. K is the number of columns of X."""

    spec: Spec
    row_counts: dict[str, int]
    """every row given, by what became of it"""
    n_obs: int | float
    n_selected: int | float
    n_clusters: int | None
    """None unless the covariance is clustered"""
    weighted: bool
    """whether rows had weights"""
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
    log_likelihood: float | None
    """of maximum likelihood"""
    params: Floats | None
    """parameters of maximum likelihood, in the order of its covariance"""
    converged: bool
    terms: tuple[tuple[str, str], ...]
    """(equation, term) of each row of the covariance"""
    covariance: Floats
    index_range: tuple[float, float]
    """of z'gamma among the selected rows"""
    atanh_rho: tuple[float, float] | None = None
    """maximum likelihood's estimate and standard error"""
    log_sigma: tuple[float, float] | None = None
    """likewise"""
    second_maximum: tuple[float, float] | None = None
    """log-likelihood and rho of another maximum that is known"""
    search: SearchOutcome | None = None
    """None unless the estimator searches for the prediction features"""
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
        """What tables and messages call the columns of X."""
        return self.spec.labels

    @property
    def features(self) -> list[int]:
        """Positions of the prediction features."""
        return [int(column) for column in np.flatnonzero(self.support)]

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
    def dropped_features(self) -> list[Any]:
        """Names or positions of the columns left out."""
        return self.spec.feature_names(self.dropped)

    @property
    def rho_is_conditioned(self) -> bool:
        """Whether rho-hat was part of a choice, so no test of rho = 0 is valid."""
        search = self.search
        # An honest rho is estimated on rows that had no part in the choice.
        return search is not None and search.window is not None and search.honest is None


class Fitted(Protocol):
    """A fitted estimator."""

    @property
    def fit_(self) -> Fit:
        """Everything it knows."""
        ...


@dataclass(frozen=True)
class Choice:
    """The prediction features of a fit, and how they were found."""

    features: tuple[int, ...]
    dropped: tuple[int, ...] = ()
    search: SearchOutcome | None = None


class Choose(Protocol):
    """Chooses the prediction features."""

    def __call__(
        self, spec: Spec, selection: Selection, moments: Moments, random_state: Any
    ) -> Choice:
        """Choose, given the selection equation and the compressed data."""
        ...

    def without_selection(self, spec: Spec) -> SearchOutcome | None:
        """Return what to say about a search if no outcome is missing, so there was none."""
        ...

    def finish(self, fit: Fit) -> Fit:
        """Return the fit as it is reported."""
        ...


@dataclass(frozen=True)
class GivenFeatures:
    """All columns that may predict do: the choice of `Heckman`."""

    def __call__(
        self, spec: Spec, selection: Selection, moments: Moments, random_state: Any = None
    ) -> Choice:
        """Refuse or drop collinear columns, and warn if nothing is excluded."""
        prediction = [column for column in spec.prediction if column not in selection.separating]
        if moments.n_selected <= len(prediction) + 2:
            raise TooFewRowsError(
                f"{len(prediction)} prediction features, an intercept and the inverse Mills ratio "
                f"need more than {len(prediction) + 2} selected rows; there are "
                f"{weighted_count(moments.n_selected)}"
            )
        features, dropped = check_prediction(moments, prediction, spec.labels, spec.on_collinear)
        if set(selection.probit.features) <= set(features):
            warn(
                "every selection feature also predicts: with no excluded feature, only the "
                "normality of the errors identifies the model. Leave a feature that drives "
                "selection alone out of prediction_features.",
                NoExclusionWarning,
            )
        return Choice(tuple(features), tuple(dropped))

    def without_selection(self, spec: Spec) -> None:
        """Nothing is ever searched."""

    def finish(self, fit: Fit) -> Fit:
        """Report the fit as it is."""
        return fit


@dataclass(frozen=True)
class Refit:
    """Fits the same model, search included, to other rows; only the estimates are used."""

    spec: Spec
    choose: Choose

    def __call__(self, sample: Sample, source: np.random.Generator) -> Fit:
        """Fit to a sample; an interrupted search is passed on, since its estimates are partial."""
        fit = fit_model(self.spec, sample, self.choose, int(source.integers(2**31)))
        if fit.search is not None and fit.search.interrupted:
            raise KeyboardInterrupt
        return fit


def fit_model(
    spec: Spec,
    sample: Sample,
    choose: Choose,
    random_state: Any = None,
    origin: Origin | None = None,
) -> Fit:
    """Fit both equations to a sample.

    Parameters
    ----------
    spec : Spec
    sample : Sample
        Rows that the row rules were applied to.
    choose : Choose
        Settles the prediction features.
    random_state : int, Generator, RandomState or None
        For the search.
    origin : Origin, optional

    Returns
    -------
    Fit
    """
    kind = CovarianceKind(
        spec.cov_type or "classical", spec.weight_kind == "sampling", sample.n_groups
    )
    n_clusters = check_clusters(sample.n_groups) if spec.clustered else None
    known: dict[str, Any] = {
        "spec": spec,
        "weighted": sample.rows.weighted,
        "origin": origin or Origin(),
    }
    if sample.all_selected:
        fit = _fit_all_observed(spec, sample, kind, known | {"n_clusters": n_clusters})
        return replace(fit, search=choose.without_selection(spec))
    selection, moments = compress_sample(spec, sample)
    if spec.clustered and selection.n_decided:
        n_clusters = check_clusters(count_clusters(selection.rows))
    choice = choose(spec, selection, moments, random_state)
    dropped = [*selection.dropped, *(c for c in choice.dropped if c not in selection.dropped)]
    known |= {
        "n_clusters": n_clusters,
        "search": choice.search,
        "row_counts": sample.row_counts | selection.row_counts(),
        "dropped": tuple(dropped),
    }
    return choose.finish(_estimate(spec, selection, moments, choice.features, kind, known))


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


def _estimate(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    features: Positions,
    kind: CovarianceKind,
    known: Mapping[str, Any],
) -> Fit:
    """Estimate the prediction equation with settled features."""
    probit, rows = selection.probit, selection.rows
    first = CovarianceKind("classical", False) if spec.method == "ml" else kind
    two_step = fit_two_step(moments, probit, features, first, rows)
    solution = two_step.solution
    known = {
        **known,
        **_counts(probit.n, moments.n_selected, kind, known["row_counts"]),
        "moments": moments,
        "adjusted_r2": float(solution.adjusted_r2),
        "aic": float(solution.aic),
        "bic": float(solution.bic),
    }
    if spec.method == "two-step":
        return _two_step_fit(spec, two_step, moments, probit, known)
    start = read_start(spec.start, spec.method)
    found = fit_likelihood(moments, probit, two_step, kind, rows, start)
    warn_of_likelihood(found, start)
    return _likelihood_fit(spec, two_step.features, found, probit, known)


def _two_step_fit(
    spec: Spec, found: TwoStep, moments: Moments, probit: Probit, known: Mapping[str, Any]
) -> Fit:
    rho = float(found.solution.rho)
    if not abs(rho) < 1:
        warn(
            f"the two-step estimate of rho is {rho:.4g}, outside (-1, 1): the data do not fit the "
            "model well, or only normality identifies it. See diagnostics(), or use method='ml'.",
            RhoOutsideWarning,
        )
    j = len(found.coef) - 1
    order = [*range(j), *range(j + 1, len(found.covariance)), j]
    return Fit(
        **known,
        **_spread(spec, found.features, found.coef[:-1], probit, probit.coef),
        imr_coef=float(found.coef[-1]),
        rho=rho,
        sigma=float(found.solution.sigma),
        log_likelihood=None,
        params=None,
        converged=probit.converged,
        terms=_terms(spec, found.features, probit, ["imr"]),
        covariance=found.covariance[np.ix_(order, order)],
        index_range=moments.index_range,
    )


def _likelihood_fit(
    spec: Spec,
    features: Positions,
    found: MaximumLikelihood,
    probit: Probit,
    known: Mapping[str, Any],
) -> Fit:
    return Fit(
        **known,
        **_spread(spec, features, found.coef, probit, found.selection_coef),
        imr_coef=found.rho * found.sigma,
        rho=found.rho,
        sigma=found.sigma,
        log_likelihood=found.log_likelihood,
        params=found.params,
        converged=probit.converged and found.converged,
        terms=_terms(spec, features, probit, ["imr", "rho", "sigma"]),
        covariance=found.reported_covariance(),
        index_range=found.index_range,
        atanh_rho=(found.atanh_rho, float(np.sqrt(found.covariance[-1, -1]))),
        log_sigma=(found.log_sigma, float(np.sqrt(found.covariance[-2, -2]))),
        # If the climb stopped short, there is no first maximum either.
        second_maximum=found.second_maximum if found.converged else None,
    )


def _fit_all_observed(
    spec: Spec, sample: Sample, kind: CovarianceKind, known: Mapping[str, Any]
) -> Fit:
    """Fit ordinary least squares, since no outcome is missing."""
    counts = sample.row_counts
    moments = gather_moments(sample.rows, spec.prediction, len(spec.labels), None)
    refuse_leakage(moments, spec.labels, counts["selected"], missing=False)
    found = fit_least_squares(moments, spec.prediction, kind, sample.rows)
    extra = (
        f" The {len(spec.prediction)} features are collinear or more than the rows can tell apart: "
        "the coefficients are the minimum-norm ones."
        if found.underdetermined
        else ""
    )
    warn(
        f"no outcome is missing among the {counts['selected']} rows, so there is no selection to "
        f"correct for: ordinary least squares is fitted, and rho is not identified.{extra}",
        AllObservedWarning,
    )
    nan = float("nan")
    return Fit(
        **known,
        **_counts(moments.n_selected, moments.n_selected, kind, counts),
        **_spread(spec, spec.prediction, found.coef, None, None),
        row_counts=dict(counts),
        dropped=(),
        moments=moments,
        imr_coef=nan,
        rho=nan,
        sigma=found.sigma,
        adjusted_r2=found.adjusted_r2,
        aic=found.aic,
        bic=found.bic,
        log_likelihood=found.log_likelihood if spec.method == "ml" else None,
        params=None,
        converged=True,
        terms=_terms(spec, spec.prediction, None, []),
        covariance=found.covariance,
        index_range=moments.index_range,
    )


def _counts(
    n: float, n_selected: float, kind: CovarianceKind, row_counts: Mapping[str, int]
) -> dict[str, Any]:
    """Count rows, or what frequency weights say they stand for."""
    if kind.sampling:
        n_selected = row_counts["selected"]
        n = row_counts["unselected"] + n_selected
    return {"n_obs": weighted_count(n), "n_selected": weighted_count(n_selected)}


def _spread(
    spec: Spec,
    features: Positions,
    coef: Floats,
    probit: Probit | None,
    selection_coef: Floats | None,
) -> dict[str, Any]:
    """Spread both equations' coefficients (intercept first) over the columns of X."""
    k = len(spec.labels)
    support = np.zeros(k, dtype=bool)
    support[list(features)] = True
    spread, selecting, intercept = np.zeros(k), np.zeros(k), float("inf")
    spread[support] = coef[1:]
    if probit is not None and selection_coef is not None:
        selecting[list(probit.features)] = selection_coef[1:]
        intercept = float(selection_coef[0])
    return {
        "support": support,
        "coef": spread,
        "intercept": float(coef[0]),
        "selection_coef": selecting,
        "selection_intercept": intercept,
    }


def _terms(
    spec: Spec, features: Positions, probit: Probit | None, errors: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Label the rows of the covariance."""
    equations = {"prediction": sorted(features)}
    if probit is not None:
        equations["selection"] = list(probit.features)
    terms = []
    for equation, columns in equations.items():
        terms += [(equation, "Intercept"), *((equation, spec.labels[column]) for column in columns)]
    return (*terms, *(("errors", term) for term in errors))

"""`Fit`, which holds all results of a fit, and `Spec`, which says what to fit.

Reports, inference and plots read a `Fit`, and nothing else of an estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.missing_features import check_unknown
from heckmanfa.data.outcome_classes import Classes
from heckmanfa.data.rows import Mask, Positions, Rows
from heckmanfa.fit.family import Details, Family, family_named
from heckmanfa.fit.way import Way, way_of
from heckmanfa.model.covariance import CovarianceKind, errors_differ
from heckmanfa.model.equations import Selection, weighted_count
from heckmanfa.model.likelihood import Doubt, JointMaximum
from heckmanfa.model.likelihood_guards import LikelihoodGuards
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import elsewhere, read_start
from heckmanfa.model.own_scale import OwnScale
from heckmanfa.model.probit import Probit, probit_covariance
from heckmanfa.search.averaging.result import AverageOutcome
from heckmanfa.search.searched import SearchOutcome
from heckmanfa.text.option_types import CovType, Method, OnProblem, OutcomeTransform, WeightKind


@dataclass(frozen=True)
class Spec:
    """What to fit: the columns of both equations and the options of `Heckman`."""

    columns: FittedColumns
    """the columns of X, and how they become the K columns of the model"""
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
    """whether maximum likelihood is tested against the two-step estimates, that of a binary
    outcome looks for other maxima, and a fit on the log of an outcome has its `Fit.own_scale`"""
    outcome_kind: str = "linear"
    """name of the family, as model files have it"""
    outcome_transform: OutcomeTransform | None = None
    """the scale that a linear outcome is fitted on"""
    rho: float | None = None
    """a value at which rho is held; None estimates it"""
    unknown: Unknown = "error"
    """what to do with levels of a category that the fit did not have"""

    @property
    def family(self) -> Family:
        """Return what makes the model the one that it is."""
        return family_named(self.outcome_kind)

    def covariance_kind(self, n_groups: int) -> CovarianceKind:
        """Return which covariance to estimate, with this many groups."""
        sampling = self.weight_kind == "sampling"
        return CovarianceKind(self.cov_type or "classical", sampling, n_groups)

    @property
    def needs_own_scale(self) -> bool:
        """Whether a fit needs its `Fit.own_scale`."""
        return self.outcome_transform is not None and self.guarded

    @property
    def errors_differ(self) -> bool:
        """Whether standard errors are other than those of compressed data."""
        return errors_differ(self.cov_type, self.weight_kind)

    @property
    def required(self) -> list[int]:
        """Columns of equations that are about every row, so that none may miss them."""
        columns = {"prediction": self.prediction, "selection": self.selection}
        about_all = (equation for equation in self.family.equations if equation.rows == "all")
        return sorted({column for equation in about_all for column in columns[equation.columns]})

    @property
    def error_terms(self) -> tuple[str, ...]:
        """What is estimated of the errors, as tables name it."""
        return self.family.term_names

    @property
    def correction_terms(self) -> tuple[str, ...]:
        """What is estimated to correct the prediction equation, in words; nothing of a held rho."""
        return (self.family.words.correction_parameter,) if self.rho is None else ()

    def feature_names(self, columns: Positions) -> list[Any]:
        """Return the names of columns, or their positions if X has no names.

        A column of X stands for all of its dummies, if all of them are among the columns.
        """
        return self.columns.names_of(columns)

    def for_replicates(self, *, by_covariance: bool = False) -> Spec:
        """Return the same model for many fits of which only the estimates are used.

        ``by_covariance`` is whether these depend on the covariance, as `Choose` has it.
        """
        start = elsewhere(read_start(self.start, self.method))
        # A cluster that is drawn twice is two; its sandwich would take it for one, twice as heavy.
        cov_type: CovType | None = "robust" if by_covariance and self.errors_differ else None
        return replace(self, cov_type=cov_type, start=start, guarded=False)


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
    classes: Classes | None = None
    """of a binary outcome: the class coded 0 and the class coded 1, as plain Python values"""


@dataclass(frozen=True, eq=False)
class EquationEstimate:
    """Estimates of one equation. K is the number of columns of X."""

    coef: Floats
    """(K,) zero where a column is not in the equation"""
    intercept: float


@dataclass(frozen=True)
class ErrorEstimate:
    """The estimate of a parameter of the errors."""

    value: float
    transformed: tuple[float, float] | None = None
    """the estimate on the scale of its transform, and its standard error; None unless it was
    estimated there"""


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
    equations: dict[str, EquationEstimate]
    """by the names of the family's equations"""
    errors: dict[str, ErrorEstimate]
    """by name: the family's error terms, and what follows from these or is known beforehand"""
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
    doubts: tuple[Doubt, ...] = ()
    """why the likelihood says little about rho"""
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
    details: Details | None = None
    """what its family keeps beyond the estimates"""
    origin: Origin = field(default_factory=Origin)

    def reading(self, unknown: str | None) -> Fit:
        """Return a fit that treats levels it did not have in another way; None is its own."""
        if unknown is None:
            return self
        check_unknown(unknown)
        return replace(self, spec=replace(self.spec, unknown=cast("Unknown", unknown)))

    @property
    def family(self) -> Family:
        """Return what makes the model the one that it is."""
        return self.spec.family

    @property
    def way(self) -> Way:
        """How the prediction features and their estimates came about; see `heckmanfa.fit.way`."""
        probit = self.probit
        selection = None if probit is None else tuple(int(column) for column in probit.features)
        named = self.spec.prediction
        return way_of(tuple(self.features), selection, named, self.search, self.average)

    @property
    def classes(self) -> tuple[Any, Any] | None:
        """The negative and the positive class of a binary outcome."""
        return self.origin.classes

    @property
    def dependence(self) -> float:
        """What makes the outcome depend on selection: b_H, or rho where there is no b_H."""
        return self.error_estimates[self.spec.error_terms.index(self.family.dependence)]

    @property
    def error_estimates(self) -> list[float]:
        """Estimates of `Spec.error_terms`."""
        return [self.errors[term].value for term in self.spec.error_terms]

    @property
    def coef(self) -> Floats:
        """(K,) coefficients of the prediction equation, zero where a column does not predict."""
        return self.equations["prediction"].coef

    @property
    def intercept(self) -> float:
        """Intercept of the prediction equation."""
        return self.equations["prediction"].intercept

    @property
    def selection_coef(self) -> Floats:
        """(K,) coefficients of the selection equation."""
        return self.equations["selection"].coef

    @property
    def selection_intercept(self) -> float:
        """Intercept of the selection equation; infinite if no outcome is missing."""
        return self.equations["selection"].intercept

    @property
    def imr_coef(self) -> float:
        """b_H, or rho where there is no b_H."""
        return self.errors["imr"].value

    @property
    def rho(self) -> float:
        """The correlation of the errors."""
        return self.errors["rho"].value

    @property
    def sigma(self) -> float:
        """The scale of the outcome's error; 1 if it has none."""
        return self.errors["sigma"].value

    @property
    def atanh_rho(self) -> tuple[float, float] | None:
        """Its estimate by maximum likelihood, with its standard error."""
        return self.errors["rho"].transformed

    @property
    def own_scale(self) -> OwnScale | None:
        """What a fit on the log of an outcome knows of the outcome's own scale."""
        return getattr(self.details, "own_scale", None)

    @property
    def rho_scores(self) -> Floats | None:
        """What gives robust or cluster standard errors at any given rho; None if not known."""
        return getattr(self.details, "rho_scores", None)

    def with_errors(self, **values: float | ErrorEstimate) -> Fit:
        """Return the fit with other estimates of parameters of the errors."""
        changed = {
            name: value if isinstance(value, ErrorEstimate) else ErrorEstimate(value)
            for name, value in values.items()
        }
        return replace(self, errors=self.errors | changed)

    def with_equation(self, name: str, coef: Floats, intercept: float) -> Fit:
        """Return the fit with another estimate of an equation."""
        changed = {name: EquationEstimate(coef, intercept)}
        return replace(self, equations=self.equations | changed)

    @property
    def transform_ratio(self) -> tuple[float, float] | None:
        """Mean over the selected rows of the outcome over its mean given selection, and its error.

        It is 1 under the model; of 1 + y with "log1p". None without a transform, and for averages
        and honest searches, whose estimates are not those of one pass over all rows.
        """
        own = self.own_scale
        return (own.ratio, own.ratio_error) if own is not None and self.way.is_one_fit else None

    @property
    def sigma_covariance(self) -> Floats | None:
        """Covariance of sigma with each row of the covariance, then its variance; None if unknown.

        A two-step sigma has one in a fit on the log of an outcome.
        """
        if ("errors", "sigma") in self.terms:
            own = self.covariance[self.terms.index(("errors", "sigma"))]
            return np.append(own, own[self.terms.index(("errors", "sigma"))])
        if self.own_scale is None or self.own_scale.sigma_on is None:
            return None
        on, rest = self.own_scale.sigma_on[:-1], self.own_scale.sigma_on[-1]
        shared = self.covariance @ on
        return np.append(shared, on @ shared + rest)

    @property
    def probit(self) -> Probit | None:
        """The selection equation; None if every outcome was observed."""
        return self.moments.probit

    @property
    def n_features(self) -> int:
        """Number of columns of the model, K: those of X, with dummies in place of categories."""
        return len(self.spec.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the K columns in tables and messages."""
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
        return self.way.equation

    @property
    def feature_names(self) -> list[Any]:
        """Name of each of the K columns: a dummy's own, or X's, or positions if X has no names."""
        return self.spec.columns.each_name()

    @property
    def prediction_features(self) -> list[Any]:
        """Names or positions of the prediction features."""
        return self.spec.feature_names(self.features)

    @property
    def selection_features(self) -> list[Any]:
        """Names or positions of the columns that drive selection, as `driving` has them."""
        return self.spec.feature_names(self.driving)

    @property
    def driving(self) -> list[int]:
        """Positions of the columns that drive selection.

        They are those of the selection equation; in an average that searches it, those that
        probably do.
        """
        return self.way.driving

    @property
    def held_rho(self) -> float | None:
        """The value at which rho is held; None if it is estimated, or no outcome is missing."""
        return None if self.probit is None else self.spec.rho

    @property
    def rho_is_conditioned(self) -> bool:
        """Whether rho-hat was part of a choice, so no test of rho = 0 is valid."""
        return self.way.rho_window is not None


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
    everything: bool = False
    """whether the features are all that may predict, to be weighed after the fit"""
    selection: tuple[int, ...] | None = None
    """columns of the selection equation, if these were chosen as well; None is all of them"""
    rho: float | None = None
    """at a maximum that the search found, should maximum likelihood run past it to |rho| = 1"""


@dataclass(frozen=True)
class FirstStep:
    """The selection equation of a model and its compressed data, before features are chosen."""

    spec: Spec
    selection: Selection
    moments: Moments
    kind: CovarianceKind
    random_state: Any = None


class Choose(Protocol):
    """Chooses the prediction features."""

    @property
    def by_covariance(self) -> bool:
        """Whether what is chosen depends on the covariance of the estimates of all features."""
        return False

    def __call__(self, first: FirstStep) -> Choice:
        """Choose, from the selection equation and the compressed data."""

    def without_selection(self, spec: Spec) -> SearchOutcome | None:
        """Return the outcome of a search that did not run, since no outcome is missing."""
        return None

    def finish(self, fit: Fit, first: FirstStep) -> Fit:
        """Return the fit to report; ``first`` has the selection equation that was chosen."""
        return fit

    def for_replicates(self) -> Choose:
        """Return the same for many fits of which only the estimates are used."""
        return self


def count(weights: float, rows: int, kind: CovarianceKind) -> int | float:
    """Count rows: frequency weights are summed, sampling weights are not."""
    return weighted_count(rows if kind.sampling else weights)


def spread_over(spec: Spec, columns: Positions, coef: Floats) -> EquationEstimate:
    """Return the estimate of an equation, given its intercept and coefficients of some columns."""
    spread = np.zeros(len(spec.labels))
    spread[list(columns)] = coef[1:]
    return EquationEstimate(spread, float(coef[0]))


def error_estimates(imr: float, rho: float, sigma: float) -> dict[str, ErrorEstimate]:
    """Return estimates of the usual parameters of the errors."""
    return {"imr": ErrorEstimate(imr), "rho": ErrorEstimate(rho), "sigma": ErrorEstimate(sigma)}


def nothing_selected(spec: Spec) -> EquationEstimate:
    """Return the selection equation if no outcome is missing."""
    return EquationEstimate(np.zeros(len(spec.labels)), float("inf"))


def _n_obs(selection: Selection, kind: CovarianceKind, counts: dict[str, int]) -> int | float:
    return count(selection.probit.n, counts["unselected"] + counts["selected"], kind)


def fit_of_equations(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    choice: Choice,
    kind: CovarianceKind,
    counts: dict[str, int],
    *,
    features: Positions,
    coef: Floats,
    selection_coef: Floats,
    errors: dict[str, ErrorEstimate],
    **known: Any,
) -> Fit:
    """Return the fit of both equations, (1 + J,) and (1 + p,), and what else is known of it."""
    probit = selection.probit
    return Fit(
        spec=spec,
        row_counts=counts,
        n_obs=_n_obs(selection, kind, counts),
        n_selected=count(moments.n_selected, counts["selected"], kind),
        moments=moments,
        dropped=tuple(dict.fromkeys([*selection.dropped, *choice.dropped])),
        support=np.isin(np.arange(len(spec.labels)), features),
        equations={
            "prediction": spread_over(spec, features, coef),
            "selection": spread_over(spec, probit.features, selection_coef),
        },
        errors=errors,
        **known,
    )


def fit_of_maximum(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    choice: Choice,
    kind: CovarianceKind,
    counts: dict[str, int],
    found: JointMaximum,
) -> Fit:
    """Return the fit of maximum-likelihood estimates, by any family."""
    probit, features = selection.probit, found.features
    aic, bic = found.criteria(_n_obs(selection, kind, counts))
    return fit_of_equations(
        *(spec, selection, moments, choice, kind, counts),
        features=features,
        coef=found.coef,
        selection_coef=found.selection_coef,
        errors=_errors_of_maximum(spec, found),
        adjusted_r2=float("nan"),
        aic=aic,
        bic=bic,
        log_likelihood=found.log_likelihood,
        params=found.params,
        converged=probit.converged and found.converged,
        terms=label_terms(spec, features, probit, spec.error_terms),
        covariance=_likelihood_covariance(found, probit, kind, selection.rows),
        index_range=found.index_range,
        doubts=found.doubts,
        # If the maximization stopped short, there is no first maximum either.
        second_maximum=found.second_maximum if found.converged else None,
    )


def _errors_of_maximum(spec: Spec, maximum: JointMaximum) -> dict[str, ErrorEstimate]:
    """Return the estimates of the errors; a held rho was not estimated, and keeps its digits."""
    held, terms = spec.rho, spec.family.likelihood_terms
    rho = maximum.rho if held is None else held
    errors = error_estimates(maximum.rho * maximum.sigma, rho, maximum.sigma)
    spread = np.sqrt(np.diag(maximum.covariance))[-len(terms) :]
    for term, value, error in zip(terms, maximum.ends, spread, strict=True):
        if term.name != "rho" or held is None:
            transformed = float(value), float(error)
            errors[term.name] = replace(errors[term.name], transformed=transformed)
    return errors


def _likelihood_covariance(
    found: JointMaximum, probit: Probit, kind: CovarianceKind, rows: Rows
) -> Floats:
    """Return the covariance to report.

    If the curvature does not give it, only the selection equation has one: its probit alone, in
    which there is no rho.
    """
    covariance = found.reported_covariance()
    if not found.errors_hold:
        own = slice(len(found.coef), len(found.coef) + len(found.selection_coef))
        covariance[own, own] = probit_covariance(rows, probit, kind)
    return covariance


def rho_without_selection(spec: Spec) -> str:
    """Say what becomes of rho if no outcome is missing."""
    return "rho is not identified" if spec.rho is None else f"a rho of {spec.rho:g} changes nothing"


def label_terms(
    spec: Spec, features: Positions, probit: Probit | None, errors: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Label the rows of a covariance: the equations, then terms of the errors."""
    columns = {"prediction": sorted(features)}
    if probit is not None:
        columns["selection"] = list(probit.features)
    terms = []
    for equation in spec.family.equations:
        if equation.columns in columns:
            names = ["Intercept", *(spec.labels[column] for column in columns[equation.columns])]
            terms += [(equation.name, name) for name in names]
    return (*terms, *(("errors", term) for term in errors))

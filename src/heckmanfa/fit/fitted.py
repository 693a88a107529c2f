"""`Fit`, which holds all results of a fit, and `Spec`, which says what to fit.

Reports, inference and plots read a `Fit`, and nothing else of an estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.missing_features import check_unknown
from heckmanfa.data.ordered_classes import OrderedClasses
from heckmanfa.data.outcome_classes import Classes, Learn
from heckmanfa.data.rows import Mask, Positions
from heckmanfa.data.survey import Survey
from heckmanfa.data.survey_design import SurveyDesign
from heckmanfa.fit.family import Capability, Details, Family, family_named
from heckmanfa.fit.way import Way, way_of
from heckmanfa.model.covariance import CovarianceKind, errors_differ
from heckmanfa.model.likelihood import Doubt
from heckmanfa.model.likelihood_guards import LikelihoodGuards
from heckmanfa.model.links import Link
from heckmanfa.model.moments import Moments
from heckmanfa.model.newton import Start, elsewhere, read_start
from heckmanfa.model.own_scale import OwnScale
from heckmanfa.model.probit import Probit
from heckmanfa.search.averaging.result import AverageOutcome
from heckmanfa.search.searched import SearchOutcome
from heckmanfa.text.option_types import (
    CovType,
    InterceptAt,
    Method,
    OnProblem,
    OutcomeTransform,
    WeightKind,
)


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
    survey: Survey | None = None
    """the columns of a survey's design"""
    groups: tuple[tuple[int, ...], ...] = ()
    """columns that belong together, such as the dummies of one category"""
    guarded: bool = True
    """whether maximum likelihood is tested against the two-step estimates, that of a binary
    outcome looks for other maxima, and a fit on the log of an outcome has its `Fit.own_scale`"""
    outcome_kind: str = "linear"
    """name of the family, as model files have it"""
    outcome_transform: OutcomeTransform | None = None
    """the scale that a linear outcome is fitted on"""
    held: dict[str, float] = field(default_factory=dict)
    """values at which error terms are held, by name; all others are estimated"""
    unknown: Unknown = "error"
    """what to do with levels of a category that the fit did not have"""
    number: int | None = None
    """classes of an ordered outcome, or terms of a series; None before the data have told"""
    intercept: InterceptAt | None = None
    """where a series identifies the intercept; None is nowhere"""
    class_order: tuple[Any, ...] = ()
    """classes of an ordered outcome as the user lists them, the lowest first; empty if not"""

    @property
    def family(self) -> Family:
        """Return what makes the model the one that it is."""
        return family_named(self.outcome_kind, self.number)

    @property
    def learn_classes(self) -> Learn | None:
        """Return what tells the classes of an ordered outcome; None if it has no more than two."""
        return OrderedClasses(self.class_order).of if self.family.is_ordered else None

    def covariance_kind(self, cells: Cells | None) -> CovarianceKind:
        """Return which covariance to estimate, with these groups of rows."""
        sampling = self.weight_kind == "sampling"
        cov_type = self.cov_type or "classical"
        if cov_type == "survey" and cells is None:
            # Replicate weights need no units: every row is one.
            cov_type = "robust"
        return CovarianceKind(cov_type, sampling, cells)

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
        required: set[int] = set()
        for kind, columns in (("prediction", self.prediction), ("selection", self.selection)):
            about = {each.rows for each in self.family.equations if each.columns == kind}
            if "all" in about or about == {"selected", "unselected"}:
                required |= {*columns}
        return sorted(required)

    @property
    def error_terms(self) -> tuple[str, ...]:
        """What is estimated of the errors, as tables name it."""
        return self.family.term_names

    @property
    def correction_terms(self) -> tuple[str, ...]:
        """What is estimated to correct the prediction equation, in words; nothing if it is held."""
        return () if self.held else (self.family.words.correction_parameter,)

    def feature_names(self, columns: Positions) -> list[Any]:
        """Return the names of columns, or their positions if X has no names.

        A column of X stands for all of its dummies, if all of them are among the columns.
        """
        return self.columns.names_of(columns)

    @property
    def starting_point(self) -> Start:
        """Where maximum likelihood starts, as the user says; from a rho only if there is one."""
        start = read_start(self.start, self.method)
        if isinstance(start, float):
            self.family.require("single rho")
        return start

    @property
    def start_elsewhere(self) -> float | None:
        """Where it starts for other rows or features, which have other parameters."""
        return elsewhere(self.starting_point, self.family.rho_in_params)

    def for_replicates(self, *, by_covariance: bool = False) -> Spec:
        """Return the same model for many fits of which only the estimates are used.

        ``by_covariance`` is whether these depend on the covariance, as `Choose` has it.
        """
        # A cluster that is drawn twice is two; its sandwich would take it for one, twice as heavy.
        cov_type: CovType | None = "robust" if by_covariance and self.errors_differ else None
        return replace(
            self, cov_type=cov_type, survey=None, start=self.start_elsewhere, guarded=False
        )


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
    group_columns: tuple[str, ...] = ()
    """its columns that hold two clusterings"""
    outcome: str | None = None
    """name of the outcome, if it came with one"""
    classes: Classes | None = None
    """what the codes from 0 on stand for, as plain Python values; None if outcomes are amounts"""

    @property
    def clusterings(self) -> tuple[str, ...]:
        """Columns that hold the clusters, of one clustering or two; empty if they have no name."""
        return self.group_columns or (() if self.group_column is None else (self.group_column,))


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
class Part:
    """What a fit of one regime is taken from: an average, whose assignments have both regimes."""

    whole: Fit
    take: Callable[[Fit], Fit]
    """the same regime of another fit"""
    matrix: Floats
    """(T, W) from the terms of the whole to those of the part"""


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
    n_clusters: int | None = None
    """None unless the covariance is clustered; the fewer of two clusterings"""
    n_first_clusters: int | None = None
    """of the first clustering, if there are two"""
    n_second_clusters: int | None = None
    design: SurveyDesign | None = None
    """of a survey"""
    weighted: bool = False
    """whether rows had weights"""
    search: SearchOutcome | None = None
    """None unless the estimator searches for the prediction features"""
    average: AverageOutcome | None = None
    """None unless the estimates are averages over assignments"""
    details: Details | None = None
    """what its family keeps beyond the estimates"""
    origin: Origin = field(default_factory=Origin)
    part: Part | None = None
    """that of which this is one regime, if it is an average"""

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
        if self.origin.classes is None or not self.family.has_classes:
            return None
        negative, positive = self.origin.classes
        return negative, positive

    @property
    def ordered_classes(self) -> Classes | None:
        """All classes of an ordered outcome, the lowest first."""
        return self.origin.classes if self.family.is_ordered else None

    @property
    def dependence_terms(self) -> tuple[str, ...]:
        """Error terms that make the outcome depend on selection, as in `Family`."""
        return self.family.dependence

    @property
    def dependence(self) -> Any:
        """What makes the outcome depend on selection: b_H, or rho where there is no b_H.

        An array where `dependence_terms` are several.
        """
        values = [self.errors[term].value for term in self.dependence_terms]
        return values[0] if len(values) == 1 else np.array(values)

    @property
    def error_estimates(self) -> list[float]:
        """Estimates of `Spec.error_terms`."""
        return [self.errors[term].value for term in self.spec.error_terms]

    def require(self, capability: Capability) -> None:
        """Refuse what the fit does not have, and say what it has to use instead."""
        self.family.require(capability, averaged=self.way.is_average)

    @property
    def coef(self) -> Floats:
        """(K,) coefficients of the prediction equation, zero where a column does not predict."""
        self.require("single outcome equation")
        return self.equations["prediction"].coef

    @property
    def intercept(self) -> float:
        """Intercept of the prediction equation."""
        self.require("single outcome equation")
        return self.equations["prediction"].intercept

    @property
    def level(self) -> float:
        """The intercept; 0 where it is not identified (NaN), and an error term has its place."""
        return float(np.nan_to_num(self.intercept))

    @property
    def selection_coef(self) -> Floats:
        """(K,) coefficients of the selection equation."""
        return self.equations["selection"].coef

    @property
    def selection_intercept(self) -> float:
        """Intercept of the selection equation; infinite if no outcome is missing."""
        return self.equations["selection"].intercept

    @property
    def error_values(self) -> dict[str, float]:
        """All that is known of the errors, by name: estimated, held or known beforehand."""
        return {name: estimate.value for name, estimate in self.errors.items()}

    @property
    def imr_coef(self) -> float:
        """b_H; it follows from rho where it is not estimated."""
        return self.error_values.get("imr", self.rho * self.sigma)

    @property
    def rho(self) -> float:
        """The one correlation of the errors."""
        self.family.require("single rho")
        return self.errors["rho"].value

    @property
    def sigma(self) -> float:
        """The scale of the outcome's error; 1 if it has none."""
        return self.error_values.get("sigma", 1.0)

    @property
    def link(self) -> Link:
        """What the error of the selection equation makes of its index."""
        return self.family.link(self.error_values)

    @property
    def atanh_rho(self) -> tuple[float, float] | None:
        """Its estimate by maximum likelihood, with its standard error."""
        self.family.require("single rho")
        return self.errors["rho"].transformed

    @property
    def class_counts(self) -> tuple[float, ...] | None:
        """As in `Details`."""
        return None if self.details is None else self.details.class_counts

    @property
    def own_scale(self) -> OwnScale | None:
        """As in `Details`."""
        return None if self.details is None else self.details.own_scale

    @property
    def rho_scores(self) -> Floats | None:
        """As in `Details`."""
        return None if self.details is None else self.details.rho_scores

    @property
    def guards(self) -> LikelihoodGuards | None:
        """As in `Details`."""
        return None if self.details is None else self.details.guards

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
    def cluster_counts(self) -> tuple[int, ...]:
        """Clusters of each clustering, if there are two; empty otherwise."""
        if self.n_first_clusters is None or self.n_second_clusters is None:
            return ()
        return self.n_first_clusters, self.n_second_clusters

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
        return None if self.probit is None else self.spec.held.get("rho")

    @property
    def rho_is_conditioned(self) -> bool:
        """Whether rho-hat was part of a choice, so no test of rho = 0 is valid."""
        return self.way.rho_window is not None


class Fitted(Protocol):
    """A fitted estimator."""

    @property
    def fit_(self) -> Fit:
        """All results of the fit."""

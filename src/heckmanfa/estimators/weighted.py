"""Inverse probability weighting, and what models that weigh by probabilities report."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats, host, on_host
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.features import linear
from heckmanfa.data.fitted_levels import (
    LevelsChangedError,
    LevelsLeft,
    re_encode,
    references_asked,
    refuse_moved,
)
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.formula_levels import FactorsLeft
from heckmanfa.data.missing_features import explain_lost
from heckmanfa.data.rows import Rows, one_blas_thread
from heckmanfa.data.survey import Survey, kind_of_covariance, linearized_design
from heckmanfa.errors import AllObservedWarning, InputError, warn
from heckmanfa.estimators.baselines import LinearRegressor, RowsRead
from heckmanfa.estimators.fitting import publish, warn_of_few_clusters
from heckmanfa.estimators.formulas import FormulaModel
from heckmanfa.fit import Origin
from heckmanfa.inference.rows_of_fit import weight_column_of
from heckmanfa.model.covariance import CovarianceKind, count_clusters, seen_cells
from heckmanfa.model.equations import Selection, fit_selection
from heckmanfa.model.inverse_probabilities import (
    Bounds,
    Overlap,
    WeightedRows,
    measure_overlap,
    weighted_covariance,
)
from heckmanfa.model.leverage import Uncertainty, least_squares_covariance
from heckmanfa.model.unit_totals import check_counts
from heckmanfa.results.diagnostics import outside
from heckmanfa.results.distribution import Wald
from heckmanfa.results.overlap_report import (
    Described,
    OverlapDiagnostics,
    overlap_facts,
    summarize_weighted,
)
from heckmanfa.results.plain_estimates import PlainEstimates
from heckmanfa.results.reports import Report, read_reports
from heckmanfa.results.summary import Summary
from heckmanfa.text.option_types import CovType, OnProblem, WeightKind
from heckmanfa.text.wording import plural

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

_FEW_CLUSTERS = 20
"""with as many, intervals that allow for leverage still hold (docs/weighting.md)"""


class Weighing(FormulaModel):
    """Standard errors, tests and reports of a model that weighs by probabilities of selection."""

    clip: float
    trim: float | None
    cov_type: CovType | Survey | None
    weight_kind: WeightKind
    row_counts_: dict[str, int]
    _estimates: PlainEstimates
    _overlap: Overlap | None

    assumes: ClassVar[str]
    title: ClassVar[str]

    @classmethod
    def from_formula(
        cls,
        prediction: str,
        selection: str,
        data: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        **parameters: Any,
    ) -> Self:
        """Fit what two formulas describe, on a data frame.

        Parameters
        ----------
        prediction, selection, data, sample_weight, groups
            As in `Heckman.from_formula`.
        **parameters
            Those of the class, except the lists of features.

        Returns
        -------
        self
            Fitted; `predict` and other methods take data frames with the formulas' variables.
        """
        given = prediction, selection, data, sample_weight, groups
        return cls._of_formulas(*given, parameters)

    def _fit_rows(
        self,
        *rows: Any,
        design: FormulaDesign | None = None,
        weight_column: str | None = None,
        group_column: str | None = None,
        group_columns: tuple[str, ...] = (),
    ) -> None:
        origin = None
        if design is not None:
            if isinstance(self.cov_type, Survey):
                weight_column = self.cov_type.weights
            names = weight_column, group_column, group_columns
            origin = Origin(rows[2] is not None, design.without_data(), *names)
        with one_blas_thread(), explain_lost(None if design is None else design.lost):
            X, y, selected, sample_weight, groups = rows
            attributes = self._solved(X, y, selected, sample_weight, groups, design, origin)
        publish(self, attributes)

    @abstractmethod
    def _solved(
        self,
        X: Any,
        y: Any,
        selected: Any,
        sample_weight: Any,
        groups: Any = None,
        design: FormulaDesign | None = None,
        origin: Origin | None = None,
    ) -> dict[str, Any]:
        """Read the data, estimate, and return the attributes of the fit."""

    def _weights_in(self, X: Any) -> Any:
        return weight_column_of(self._known_origin, X) if self._estimates.weights else None

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Estimates, standard errors, tests and intervals as a data frame.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Columns equation, term, estimate, std_error, statistic, p_value, ci_low, ci_high, as in
            `Heckman.tidy`. The statistic is t, with the effective degrees of freedom of each
            estimate, and at most those of its clusters or survey.
        """
        return self.estimates().tidy(conf_level)

    def vcov(self) -> pd.DataFrame:
        """Joint covariance of all estimates, labelled (equation, term) as in `tidy`."""
        return self.estimates().vcov()

    def wald_test(self, hypothesis: str | ArrayLike, value: ArrayLike | None = None) -> Wald:
        """Wald test of linear restrictions, written as in `Heckman.wald_test`.

        Parameters
        ----------
        hypothesis : str or array_like
            Such as ``"educ = exper"``. Plain names refer to the prediction equation, and others
            begin with their equation: ``"selection.educ = 0"``. The test is F, with the fewest
            effective degrees of freedom of the estimates that it is about.
        value : array_like, optional
            Right-hand sides for a matrix; zero by default.
        """
        return self.estimates().wald_test(hypothesis, value)

    def summary(self, conf_level: float = 0.95, include: Report | Sequence[Report] = ()) -> Summary:
        """Estimates as a table, with row counts, weights and what is assumed.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.
        include : report or sequence of reports
            Other results to print below the table.
        """
        estimates = self.estimates()
        facts = overlap_facts(self._overlap, self._bounds, self.assumes)
        about = Described(self.title, self._headings(), self.row_counts_, facts, self._overlap)
        return summarize_weighted(estimates, about, conf_level, read_reports(include))

    def diagnostics(
        self, X: Any = None, include: Report | Sequence[Report] = ()
    ) -> OverlapDiagnostics:
        """How the weights are spread over the rows, and what is assumed.

        Parameters
        ----------
        X : array or data frame, optional
            Rows to predict for: the share whose probability of selection is outside the range of
            those with an outcome is added.
        include : report or sequence of reports
            Results whose findings are added.
        """
        self.estimates()
        beyond = None if X is None or self._overlap is None else self._share_beyond(X)
        facts = overlap_facts(self._overlap, self._bounds, self.assumes, beyond)
        facts += [fact for report in read_reports(include) for fact in report.findings()]
        return OverlapDiagnostics(tuple(facts), self._overlap)

    @abstractmethod
    def _headings(self) -> Mapping[str, str]:
        """Return what stands above the rows of each equation in a summary."""

    @abstractmethod
    def _share_beyond(self, X: Any) -> float:
        """Return the share of rows whose probability is unlike that of any row with an outcome."""

    def estimates(self) -> PlainEstimates:
        """Return the estimates and their covariance, as tables read them."""
        check_is_fitted(self)
        return self._estimates

    @property
    def _bounds(self) -> Bounds:
        return Bounds(float(self.clip), None if self.trim is None else float(self.trim))

    def _kind(self, read: RowsRead) -> CovarianceKind:
        """Return which covariance to estimate."""
        kind: CovType = kind_of_covariance(self.cov_type) or "robust"
        return CovarianceKind(kind, self._sampling, read.sample.cells)

    @property
    def _sampling(self) -> bool:
        """Whether weights are sampling weights, as those of a survey are."""
        return isinstance(self.cov_type, Survey) or self.weight_kind == "sampling"

    def _estimated(
        self, terms: Any, values: Floats, known: Uncertainty, kind: CovarianceKind, rows: Rows
    ) -> PlainEstimates:
        """Return estimates from these rows, and warn of few clusters."""
        n_clusters, design = None, None
        counts: tuple[int, ...] = ()
        if kind.cov_type == "survey":
            assert kind.cells is not None
            design = linearized_design(kind.cells, seen_cells(rows, kind.cells))
        elif kind.cells is not None:
            clusters = count_clusters(rows, kind.cells)
            n_clusters = check_counts(clusters)
            counts = clusters if len(clusters) > 1 else ()
        warn_of_few_clusters(n_clusters, counts, _FEW_CLUSTERS)
        return PlainEstimates(
            terms=tuple(terms),
            values=values,
            covariance=known.covariance,
            cov_type=kind.cov_type,
            n_clusters=n_clusters,
            weights=("sampling" if kind.sampling else "frequency") if rows.weighted else "",
            df=known.df,
            n_first_clusters=counts[0] if counts else None,
            n_second_clusters=counts[1] if counts else None,
            design=design,
        )


def without_levels(origin: Origin | None, lost: dict[str, list[Any]]) -> Origin | None:
    """Return formulas that no longer know levels of which separation left no row."""
    if origin is None or origin.design is None:
        return origin
    return replace(origin, design=replace(origin.design, dropped_levels=lost))


class InverseProbabilityWeighted(Weighing, LinearRegressor):
    """Least squares on the selected rows, weighted by one over their probability of selection.

    It is consistent if selection depends on the features alone (missing at random), every row has
    a chance to be selected, and the probit of selection is right. It does not correct for selection
    on unobservables.

    Parameters
    ----------
    prediction_features, selection_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns in each equation; None is all of them.
    clip : float
        The largest weight, at least 1. Larger weights are capped at it, and counted in
        ``n_clipped_``.
    trim : float, optional
        Rows with a smaller probability of selection, between 0 and 0.5, are left out of the
        regression; the estimates are then about the others. They are counted in ``n_trimmed_``.
    cov_type : {None, "robust", "cluster"} or Survey
        The covariance of the estimates. It allows for estimated probabilities and for leverage, and
        None is "robust"; "cluster" needs ``groups``, of one clustering or two. A
        `heckmanfa.Survey` is as in `Heckman`, but has no replicate weights.
    weight_kind : {"frequency", "sampling"}
        As in `Heckman`.
    on_collinear, on_separation : {"error", "drop"}
        As in `Heckman`.
    categorical_features, reference, unknown
        As in `Heckman`.

    Attributes
    ----------
    n_clipped_, n_trimmed_ : int
        Selected rows whose weight was capped, and those that were left out.
    max_weight_ : float
        The largest weight before clipping.
    effective_rows_ : float
        Number of equally weighted rows that the weighted ones are worth: the squared sum of the
        weights over the sum of their squares.
    selection_coef_, selection_intercept_ : ndarray of shape (K,), float
        Coefficients of the probit.

    Notes
    -----
    Other attributes are those of `NaiveOLS`; ``sigma_`` and ``adjusted_r2_`` describe the weighted
    regression, with weights as frequencies. Standard errors stack the equations of the probit and
    of the regression. That the probabilities are estimated usually makes them smaller than if they
    were known. They take it as given which rows are capped or left out.

    Residuals are divided by one less their leverage (HC3; CR3 for clusters and units of a survey),
    since rows with large weights draw the fit to themselves. Tests and intervals use t with
    effective degrees of freedom, 3 (sum u^2)^2 / sum u^4 for what each row or cluster adds to an
    estimate, u: fewer where few of them carry it.

    References
    ----------
    MacKinnon, J. G. and White, H. (1985). Some heteroskedasticity-consistent covariance matrix
    estimators with improved finite sample properties. Journal of Econometrics 29, 305-325.

    Wooldridge, J. M. (2007). Inverse probability weighted estimation for general missing data
    problems. Journal of Econometrics 141, 1281-1301.

    Examples
    --------
    >>> from heckmanfa import InverseProbabilityWeighted
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> z = mroz[["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]]
    >>> model = InverseProbabilityWeighted(["educ", "exper", "expersq"]).fit(z, mroz["lwage"])
    >>> model.n_clipped_
    0
    """

    n_clipped_: int
    n_trimmed_: int
    max_weight_: float
    effective_rows_: float
    selection_coef_: Floats
    selection_intercept_: float

    assumes: ClassVar[str] = (
        "outcomes are missing at random given the selection features, each row had a chance to be "
        "observed, and the probit of selection is right"
    )
    title: ClassVar[str] = "Inverse probability weighting"

    def __init__(
        self,
        prediction_features: Any = None,
        selection_features: Any = None,
        *,
        clip: float = 50.0,
        trim: float | None = None,
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def fit(
        self,
        X: Any,
        y: Any = None,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the probit and the weighted regression; arguments are as in `Heckman.fit`."""
        self._fit_rows(X, y, selected, sample_weight, groups)
        return self

    def _solved(
        self,
        X: Any,
        y: Any,
        selected: Any,
        sample_weight: Any,
        groups: Any = None,
        design: FormulaDesign | None = None,
        origin: Origin | None = None,
    ) -> dict[str, Any]:
        # Weights are computed in memory on the host.
        X, y, selected = on_host(X), on_host(y), on_host(selected)
        read = self._read(
            *(X, y, selected, on_host(sample_weight), self.selection_features),
            groups=on_host(groups),
            sampling=self._sampling,
            formulas=origin,
        )
        if read.sample.all_selected:
            return self._unweighted(read)
        read, fitted = self._select(read, design)
        probit, bounds, kind = fitted.probit, self._bounds, self._kind(read)
        overlap = measure_overlap(fitted.rows, probit, bounds, sampling=kind.sampling)
        prediction = [column for column in read.prediction if column not in fitted.separating]
        if overlap.n_dropped and overlap.n_rows <= len(prediction) + 1:
            left = plural(round(overlap.n_rows), "row") if overlap.n_rows else "no row"
            raise InputError(
                f"trim={self.trim} leaves {left} with an outcome, too few for "
                f"{plural(len(prediction) + 1, 'coefficient')}. Lower it."
            )
        weighted = WeightedRows(fitted.rows, probit, bounds)
        regression = self._regress(read, weighted, prediction, probit.features)
        values = np.append(regression.solved.coef, probit.coef)
        known = Uncertainty.unknown(len(values))
        if not regression.solved.underdetermined:
            known = weighted_covariance(
                *(fitted.rows, probit, bounds, regression.moments, regression.prediction),
                *(regression.solved.coef, kind),
            )
        terms = [
            *read.terms("prediction", regression.prediction),
            *read.terms("selection", probit.features),
        ]
        selection_coef = np.zeros(read.table.shape[1])
        selection_coef[list(probit.features)] = probit.coef[1:]
        return {
            **regression.attributes(),
            "_estimates": self._estimated(terms, values, known, kind, fitted.rows),
            "_overlap": overlap,
            "selection_coef_": selection_coef,
            "selection_intercept_": float(probit.coef[0]),
            "n_clipped_": overlap.n_capped,
            "n_trimmed_": overlap.n_dropped,
            "max_weight_": overlap.largest,
            "effective_rows_": overlap.effective,
            "row_counts_": read.counts | fitted.row_counts(),
        }

    def _unweighted(self, read: RowsRead) -> dict[str, Any]:
        """Return the attributes of least squares, as no outcome is missing."""
        warn(
            f"no outcome is missing among the {read.counts['selected']} rows, so all weights "
            "are one: ordinary least squares is fitted.",
            AllObservedWarning,
        )
        rows, kind = read.sample.rows, self._kind(read)
        regression = self._regress(read, rows, read.prediction)
        solved = regression.solved
        known = Uncertainty.unknown(len(solved.coef))
        if not solved.underdetermined:
            fitted = regression.moments, regression.prediction, solved.coef
            known = least_squares_covariance(rows, *fitted, kind)
        terms = read.terms("prediction", regression.prediction)
        return {
            **regression.attributes(),
            "_estimates": self._estimated(terms, solved.coef, known, kind, rows),
            "_overlap": None,
            "selection_coef_": np.zeros(read.table.shape[1]),
            "selection_intercept_": float("inf"),
            "n_clipped_": 0,
            "n_trimmed_": 0,
            "max_weight_": 1.0,
            "effective_rows_": float(regression.moments.n_selected),
        }

    def _select(self, read: RowsRead, design: FormulaDesign | None) -> tuple[RowsRead, Selection]:
        """Fit the probit; separation may take levels of categories away."""
        factors = None if design is None else FactorsLeft(design.factors or {})
        while True:
            left = LevelsLeft(read.columns, [*read.selection, *read.prediction])
            try:
                fitted = fit_selection(
                    read.sample.rows,
                    read.selection,
                    read.labels,
                    on_collinear=self.on_collinear,
                    on_separation=self.on_separation,
                    check_left=factors or left,
                )
            except LevelsChangedError as changed:
                asked = references_asked(read.table, self.reference)
                refuse_moved(read.table, changed, asked)
                table, sample = re_encode(read.table, read.sample, changed.encoding)
                read = self._resolved(table, sample, self.selection_features, read.selected_given)
                continue
            if factors is not None:
                return replace(read, formulas=without_levels(read.formulas, factors.lost)), fitted
            return replace(read, table=replace(read.table, columns=left.columns)), fitted

    def _headings(self) -> Mapping[str, str]:
        return {
            "prediction": "Prediction equation (outcome)",
            "selection": "Selection equation (probit)",
        }

    def _share_beyond(self, X: Any) -> float:
        assert self._overlap is not None
        table = self._table_of(X, prediction=False, selection=True)
        driving = [int(column) for column in np.flatnonzero(self.selection_coef_)]
        index = host(linear(table, driving, self.selection_coef_)) + self.selection_intercept_
        chances = ndtr(index[~np.isnan(index)])
        if not len(chances):
            return float("nan")
        return float(np.mean(outside(chances, self._overlap.lowest, self._overlap.highest)))

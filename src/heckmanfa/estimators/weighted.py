"""Inverse probability weighting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtr

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
from heckmanfa.data.survey import Survey
from heckmanfa.errors import AllObservedWarning, InputError, warn
from heckmanfa.estimators.baselines import LinearRegressor, RowsRead
from heckmanfa.estimators.weighing import Weighing
from heckmanfa.fit import Origin
from heckmanfa.model.equations import Selection, fit_selection
from heckmanfa.model.inverse_probabilities import (
    WeightedRows,
    measure_overlap,
    weighted_covariance,
)
from heckmanfa.model.leverage import Uncertainty, least_squares_covariance
from heckmanfa.results.diagnostics import outside
from heckmanfa.text.option_types import CovType, OnProblem, WeightKind
from heckmanfa.text.wording import plural


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

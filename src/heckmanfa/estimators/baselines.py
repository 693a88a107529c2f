"""Baselines: regressions on the selected rows, and what all of them share.

They take y with NaN where missing, as `Heckman` does, but do not correct for selection on
unobservables.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Array, Floats, is_dask
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import FeatureTable, FittedColumns, linear, resolve
from heckmanfa.data.fitted_levels import settle_levels
from heckmanfa.data.missing_features import (
    Gaps,
    check_missing,
    check_unknown,
    find_gaps,
    refuse_gaps,
)
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.rows import Mapped, Mask, Positions, one_blas_thread
from heckmanfa.data.sample import Sample, check_parameters, find_row_source, read_sample
from heckmanfa.data.survey import Survey, kind_of_covariance
from heckmanfa.data.survey_rows import survey_rows
from heckmanfa.errors import InputError, UnderdeterminedWarning, warn
from heckmanfa.estimators.fitting import check_groups, publish
from heckmanfa.estimators.formulas import FormulaModel
from heckmanfa.estimators.rows_elsewhere import map_rows
from heckmanfa.estimators.scoring import ScoredModel, ScoredRegressor
from heckmanfa.fit import Origin
from heckmanfa.inference.prediction import gaps_by_variable, known_levels
from heckmanfa.model.equations import check_prediction, refuse_leakage
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.two_step import LeastSquares, fit_least_squares
from heckmanfa.text.option_types import CovType, OnProblem
from heckmanfa.text.option_words import option


@dataclass(frozen=True)
class RowsRead:
    """The data of a fit, after the row rules."""

    table: FeatureTable
    sample: Sample
    selection: list[int]
    prediction: list[int]
    selected_given: bool
    formulas: Origin | None = None
    """the formulas that made the columns, without rows of data"""

    @property
    def counts(self) -> dict[str, int]:
        """Every row given, by status."""
        design = None if self.formulas is None else self.formulas.design
        counts = self.sample.row_counts
        return counts if design is None else counts | design.left_out

    @property
    def columns(self) -> FittedColumns:
        """The columns of X, and how they become numbers."""
        return self.table.columns

    @property
    def labels(self) -> list[str]:
        """A name for every column of the table."""
        return self.table.labels(range(self.table.shape[1]))

    def refuse_leakage(self, moments: Moments) -> None:
        """Refuse features from which the outcome can be computed."""
        missing = self.counts["unselected"] > 0
        refuse_leakage(moments, self.labels, self.counts["selected"], missing=missing)

    def terms(self, equation: str, columns: Positions) -> list[tuple[str, str]]:
        """Name the coefficients of an equation, its intercept first."""
        return [(equation, name) for name in ("Intercept", *self.table.labels(columns))]

    def attributes(self, prediction: Positions) -> dict[str, Any]:
        """Return the attributes that every regression has, for these prediction features."""
        columns = self.columns
        support = np.zeros(self.table.shape[1], dtype=bool)
        support[list(prediction)] = True
        return {
            "_columns": columns,
            "_selected_given": self.selected_given,
            "_origin": self.formulas,
            "_support": support,
            "support_": columns.of_x(support),
            "prediction_features_": columns.names_of(prediction),
            "row_counts_": self.counts,
            "n_selected_": self.counts["selected"],
            **columns.attributes(self.labels),
        }


class ObservedRegressor(ScoredRegressor, FormulaModel, ScoredModel):
    """The base of regressions on the rows with an outcome."""

    assumes: ClassVar[str] = "outcomes are missing at random given the features"
    """what its estimates rest on, in a clause"""
    _columns: FittedColumns
    _support: Mask
    """(K,) which columns predict, dummies included"""
    _selected_given: bool
    """whether who is selected was passed to `fit`"""
    _origin: Origin | None = None
    """the formulas of the fit, and where their data had its columns; None if there are none"""
    row_counts_: dict[str, int]
    n_selected_: int

    def _read(
        self,
        X: Any,
        y: Any,
        selected: Any,
        sample_weight: Any,
        selection_features: Any = (),
        *,
        groups: Any = None,
        sampling: bool | None = None,
        everywhere: bool = False,
        also: Any = (),
        formulas: Origin | None = None,
    ) -> RowsRead:
        """Check parameters, and apply the row rules to the data.

        ``groups`` and ``sampling`` are as in `read_sample`; ``everywhere`` says that every row
        needs all features, and those of ``also``. ``formulas`` made X, if there are any.
        """
        check_parameters(self)
        cov_type = getattr(self, "cov_type", None)
        survey = cov_type if isinstance(cov_type, Survey) else None
        if survey is not None:
            X, sample_weight, groups = survey_rows(survey, X, sample_weight, groups)
        source = find_row_source(X, y, selected, sample_weight, groups)
        if hasattr(self, "cov_type"):
            clusters = groups if source is None else source.has_groups or None
            check_cov_type(type(self).__name__, cov_type, clusters)
        table = read_features(
            X if source is None else source,
            type(self).__name__,
            # Formulas make numbers of their categories, and settle their levels.
            categorical=None if formulas else self.categorical_features,
            lists=(self.prediction_features, selection_features, also),
        )
        if survey is not None:
            table = replace(table, columns=replace(table.columns, beside=survey.named))
        selection = resolve(table, selection_features, "selection_features")
        prediction = resolve(table, self.prediction_features, "prediction_features")
        wanted = sorted({*selection, *resolve(table, also, "over")})
        sample = read_sample(
            table,
            y,
            selected=selected,
            sample_weight=sample_weight,
            groups=groups,
            sampling=sampling,
            selection=wanted,
            prediction=prediction,
            required=sorted({*wanted, *prediction}) if everywhere else None,
        )
        table, sample = settle_levels(table, sample, None if formulas else self.reference)
        selected_given = selected is not None if source is None else source.has_selected
        read = self._resolved(table, sample, selection_features, selected_given)
        return replace(read, formulas=formulas)

    def _resolved(
        self, table: FeatureTable, sample: Sample, selection_features: Any, selected_given: bool
    ) -> RowsRead:
        """Return rows with the columns of each equation, by the names that they have now."""
        return RowsRead(
            table,
            sample,
            resolve(table, selection_features, "selection_features"),
            resolve(table, self.prediction_features, "prediction_features"),
            selected_given,
        )

    @property
    def _known_origin(self) -> Origin:
        return self._origin or Origin(self._selected_given)

    def _lazily(self, X: Any, method: str, name: str | list[str], **options: Any) -> Any:
        # Formulas check their own variables.
        columns = self._columns if self._origin is None else None
        return map_rows(self, X, method, name, columns, **options)

    def columns_read(self) -> FittedColumns:
        """Return the columns of X that the model was fitted to."""
        return self._columns

    def take_columns(self, columns: FittedColumns) -> None:
        """Take other columns of X from now on, which become the same K columns."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        known = columns.attributes(columns.encoded_labels) | {
            "_columns": columns,
            "support_": columns.of_x(self._support),
            "prediction_features_": columns.names_of(np.flatnonzero(self._support).tolist()),
        }
        for name, value in known.items():
            setattr(self, name, value)

    def predict(self, X: Any, *, missing: str = "error", unknown: Unknown | None = None) -> Any:
        """Predict the outcome of each row, lazily for a Dask collection.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        missing : {"error", "nan"}
            What to do with rows that lack a feature: raise an error, or predict NaN.
        unknown : {None, "error", "missing"}
            As in `Heckman.predict`.
        """
        check_is_fitted(self)
        check_missing(missing)
        self = self._reading(unknown)
        refuse_rows(X, "")
        if is_dask(X):
            return self._lazily(X, "predict", "predicted", missing=missing)
        table, columns, gaps = self._read_prediction(X)
        if missing == "error":
            refuse_gaps(gaps)
        return self._predict(table, columns)

    def missing_features(
        self, X: Any, kind: str = "marginal", *, unknown: Unknown | None = None
    ) -> Gaps:
        """Count the rows of X that have no prediction, since they lack a feature.

        ``kind`` is ignored, since there is one kind of prediction; ``unknown`` is as in `predict`.
        """
        check_is_fitted(self)
        self = self._reading(unknown)
        return self._read_prediction(X)[2]

    def _reading(self, unknown: Unknown | None) -> Self:
        """Return the model with another ``unknown``; None is that of the constructor."""
        if unknown is None:
            return self
        check_unknown(unknown)
        model = copy(self)
        model.unknown = unknown
        return model

    def _read_prediction(self, X: Any) -> tuple[FeatureTable, list[int], Gaps]:
        """Return the table of X, the columns that predict, and the rows that lack one."""
        columns = [int(column) for column in np.flatnonzero(self._support)]
        design, needs = self._known_origin.design, {"prediction": True, "selection": False}
        table = self._table_of(X, **needs)
        if design is not None:
            X = known_levels(design, X, self.unknown)
        return table, columns, gaps_by_variable(find_gaps(table, columns), design, X, **needs)

    def _table_of(self, X: Any, *, prediction: bool, selection: bool) -> FeatureTable:
        """Return X as the columns of the fit, by its formulas if it has any."""
        design = self._known_origin.design
        if design is not None:
            frame = known_levels(design, X, self.unknown)
            X = design.transform(frame, prediction=prediction, selection=selection)
        return read_features(X, self._columns, unknown=self.unknown)

    @abstractmethod
    def _predict(self, table: FeatureTable, columns: list[int]) -> Array:
        """Predict from the columns that were read."""

    def _to_score(
        self, X: Any, y: Any, sample_weight: Any, selected: Any, *, drop: bool = False
    ) -> tuple[Any, ...]:
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        # As in selection models, formulas leave rows out, and a level that counts as missing has
        # no prediction to score.
        nan = drop or self.unknown == "missing" or self._origin is not None
        missing = "nan" if nan else "error"
        return self.predict(X, missing=missing), y, sample_weight, selected


@dataclass(frozen=True, eq=False)
class Regression:
    """Rows compressed for least squares, and the features that predict."""

    read: RowsRead
    moments: Moments
    prediction: Positions
    dropped: Positions

    @cached_property
    def solved(self) -> LeastSquares:
        """The coefficients, whose covariance takes weights as known."""
        return fit_least_squares(self.moments, self.prediction)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a linear regression."""
        coef = np.zeros(self.moments.n_features)
        coef[list(self.prediction)] = self.solved.coef[1:]
        return {
            **self.read.attributes(self.prediction),
            "dropped_features_": self.read.columns.names_of(self.dropped),
            "coef_": coef,
            "intercept_": float(self.solved.coef[0]),
            "sigma_": self.solved.sigma,
            "adjusted_r2_": self.solved.adjusted_r2,
        }


class LinearRegressor(ObservedRegressor):
    """A linear prediction equation fitted by least squares, possibly weighted."""

    coef_: Floats
    intercept_: float
    sigma_: float
    adjusted_r2_: float
    dropped_features_: list[Any]

    def fit(self, X: Any, y: Any = None, selected: Any = None, sample_weight: Any = None) -> Self:
        """Fit the regression on the selected rows.

        Arguments are as in `Heckman.fit`; ``sample_weight`` holds frequencies.
        """
        with one_blas_thread():
            attributes = self._solved(X, y, selected, sample_weight)
        publish(self, attributes)
        return self

    @abstractmethod
    def _solved(self, X: Any, y: Any, selected: Any, sample_weight: Any) -> dict[str, Any]:
        """Read the data, solve for the coefficients, and return the attributes of the fit."""

    def _regress(
        self, read: RowsRead, rows: Mapped, prediction: Positions, selection: Positions = ()
    ) -> Regression:
        """Regress on the rows, whose weights may differ from those read."""
        k = read.table.shape[1]
        n_selected = read.counts["selected"]
        moments = gather_moments(rows, sorted({*prediction, *selection}), k, None)
        read.refuse_leakage(moments)
        dropped: list[int] = []
        if len(prediction) < n_selected:
            prediction, dropped = check_prediction(
                moments, prediction, read.labels, self.on_collinear
            )
        else:
            warn(
                f"{len(prediction)} features and an intercept, but {n_selected} rows with an "
                "outcome: the coefficients are those of minimum norm. Use fewer features.",
                UnderdeterminedWarning,
            )
        return Regression(read, moments, prediction, dropped)

    def _predict(self, table: FeatureTable, columns: list[int]) -> Array:
        return linear(table, columns, self.coef_) + self.intercept_


class NaiveOLS(LinearRegressor):
    """Least squares on the rows that have an outcome, as if they were a random sample.

    Parameters
    ----------
    prediction_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns; None is all of them.
    on_collinear : {"error", "drop"}
        As in `Heckman`.
    categorical_features, reference, unknown
        As in `Heckman`.

    Attributes
    ----------
    coef_, intercept_, sigma_, adjusted_r2_, prediction_features_, dropped_features_, support_, \
row_counts_, n_selected_, n_features_in_, feature_names_in_
        As in `Heckman`, for the one equation.

    Examples
    --------
    >>> from heckmanfa import NaiveOLS
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> model = NaiveOLS().fit(mroz[["educ", "exper", "expersq"]], mroz["lwage"])
    >>> round(float(model.coef_[0]), 4)
    0.1075
    """

    assumes: ClassVar[str] = (
        "outcomes are missing at random given the prediction features, and their mean is linear in "
        "them"
    )

    def __init__(
        self,
        prediction_features: Any = None,
        *,
        on_collinear: OnProblem = "error",
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def _solved(self, X: Any, y: Any, selected: Any, sample_weight: Any) -> dict[str, Any]:
        read = self._read(X, y, selected, sample_weight)
        return self._regress(read, read.sample.rows, read.prediction).attributes()


def check_cov_type(estimator: str, cov_type: CovType | Survey | None, groups: Any) -> None:
    """Refuse a covariance that weighted rows do not have, and clusters without use."""
    if isinstance(cov_type, Survey) and cov_type.replicate_weights is not None:
        raise InputError(
            f"{estimator} takes a Survey without replicate weights: name its strata, psu and "
            "weights, or use a selection model, which is fitted again with each set of weights"
        )
    if cov_type == "classical":
        raise InputError(
            f"{estimator} has no classical covariance: weights make the errors differ between "
            f"rows. Use {option('cov_type', 'robust')} or {option('cov_type', 'cluster')}."
        )
    check_groups(kind_of_covariance(cov_type), groups)

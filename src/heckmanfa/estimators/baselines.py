"""What people use instead: regressions on the selected rows, plain and weighted.

All take y with NaN where the outcome is missing, as `Heckman` does, and have no correction for
selection on what is not observed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Array, Floats, is_dask
from heckmanfa.data.columns.feature_tables import FittedColumns, read_features
from heckmanfa.data.columns.features import (
    FeatureTable,
    linear,
    names_or_positions,
    resolve,
)
from heckmanfa.data.missing_features import Gaps, check_missing, find_gaps, refuse_gaps
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.rows import Block, Mapped, Merge, Positions, Rows, one_blas_thread, pick
from heckmanfa.data.sample import Sample, check_parameters, find_row_source, read_sample
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import AllObservedWarning, UnderdeterminedWarning, warn
from heckmanfa.estimators.dask_predict import map_rows
from heckmanfa.estimators.scoring import ScoredRegressor, ToScore, check_selected, publish
from heckmanfa.model.equations import check_prediction, fit_selection
from heckmanfa.model.leakage import refuse_leakage
from heckmanfa.model.least_squares import fit_least_squares
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.option_types import OnProblem
from heckmanfa.model.probit import Probit

_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class RowsRead:
    """The data of a fit after the row rules."""

    estimator: str
    table: FeatureTable
    sample: Sample
    selection: list[int]
    prediction: list[int]
    selected_given: bool

    @property
    def counts(self) -> dict[str, int]:
        """Rows, by what became of them."""
        return self.sample.row_counts

    @property
    def labels(self) -> list[str]:
        """A name for every column of X."""
        return self.table.labels(range(self.table.shape[1]))

    def refuse_leakage(self, moments: Moments) -> None:
        """Refuse features that the outcome can be computed from."""
        missing = self.counts["unselected"] > 0
        refuse_leakage(moments, self.labels, self.counts["selected"], missing=missing)

    def attributes(self, prediction: Positions) -> dict[str, Any]:
        """Return the attributes that every regression has, for these prediction features."""
        table, k = self.table, self.table.shape[1]
        support = np.zeros(k, dtype=bool)
        support[list(prediction)] = True
        known = {
            "_columns": FittedColumns(self.estimator, k, table.names, table.labels_given),
            "_selected_given": self.selected_given,
            "support_": support,
            "prediction_features_": names_or_positions(table.names, prediction),
            "row_counts_": self.counts,
            "n_selected_": self.counts["selected"],
            "n_features_in_": k,
        }
        if table.names is not None:
            known["feature_names_in_"] = np.array(table.names, dtype=object)
        return known


class ObservedRegressor(ScoredRegressor):
    """The base of regressions that learn from the rows with an outcome."""

    prediction_features: Any

    support_: Any
    prediction_features_: list[Any]
    row_counts_: dict[str, int]
    n_selected_: int
    n_features_in_: int
    _columns: FittedColumns
    _selected_given: bool
    """whether `fit` was told who is selected, so y alone does not say it"""

    def _read(
        self, X: Any, y: Any, selected: Any, sample_weight: Any, selection_features: Any = ()
    ) -> RowsRead:
        """Check parameters, and apply the row rules to the data."""
        check_parameters(self)
        source = find_row_source(X, y, selected, sample_weight, None)
        table = read_features(X if source is None else source, type(self).__name__)
        selection = resolve(table, selection_features, "selection_features")
        prediction = resolve(table, self.prediction_features, "prediction_features")
        sample = read_sample(
            table,
            y,
            selected=selected,
            sample_weight=sample_weight,
            groups=None,
            sampling=None,
            selection=selection,
            prediction=prediction,
        )
        given = selected is not None if source is None else source.has_selected
        return RowsRead(type(self).__name__, table, sample, selection, prediction, given)

    def predict(self, X: Any, *, missing: str = "error") -> Any:
        """Predict the outcome of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        missing : {"error", "nan"}
            Whether rows that miss a feature are refused, or their prediction is NaN.

        Returns
        -------
        ndarray of shape (n,)
            A Dask Series or Array, not yet computed, where X is a Dask collection.
        """
        check_is_fitted(self)
        check_missing(missing)
        refuse_rows(X, "predict_parquet(model, path, out)")
        if is_dask(X):
            return map_rows(self, X, "predict", "predicted", self._columns, missing=missing)
        table = read_features(X, self._columns)
        columns = [int(one) for one in np.flatnonzero(self.support_)]
        gaps = find_gaps(table, columns)
        if missing == "error":
            refuse_gaps(gaps)
        return self._predict(table, columns)

    def missing_features(self, X: Any, kind: str = "marginal") -> Gaps:
        """Count the rows of X that miss a feature, and so have no prediction.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        kind : str
            There is one kind of prediction.

        Returns
        -------
        Gaps
        """
        check_is_fitted(self)
        table = read_features(X, self._columns)
        return find_gaps(table, [int(one) for one in np.flatnonzero(self.support_)])

    @abstractmethod
    def _predict(self, table: FeatureTable, columns: list[int]) -> Array:
        """Predict from the columns that were read."""

    def _to_score(self, X: Any, y: Any, sample_weight: Any, selected: Any) -> ToScore:
        check_selected(type(self).__name__, selected, self._selected_given)
        # A regression that knows no selection has one kind of prediction.
        return ToScore(self.predict(X), y, sample_weight, selected)


class _LinearRegressor(ObservedRegressor):
    """A linear prediction equation fitted by least squares, perhaps with weights."""

    coef_: Floats
    intercept_: float
    sigma_: float
    adjusted_r2_: float
    on_collinear: OnProblem

    def fit(self, X: Any, y: Any = None, selected: Any = None, sample_weight: Any = None) -> Self:
        """Fit the regression on the selected rows.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
        y : array_like of shape (n,)
            The outcome, NaN where missing.
        selected : array_like of bool, optional
            Who is selected, as in `Heckman.fit`.
        sample_weight : array_like, optional
            Frequencies.

        Returns
        -------
        self
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
    ) -> dict[str, Any]:
        """Regress on the rows, perhaps with other weights than those read."""
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
        found = fit_least_squares(moments, prediction)
        coef = np.zeros(k)
        coef[list(prediction)] = found.coef[1:]
        return {
            **read.attributes(prediction),
            "dropped_features_": names_or_positions(read.table.names, dropped),
            "coef_": coef,
            "intercept_": float(found.coef[0]),
            "sigma_": found.sigma,
            "adjusted_r2_": found.adjusted_r2,
        }

    def _predict(self, table: FeatureTable, columns: list[int]) -> Array:
        return linear(table, columns, self.coef_) + self.intercept_


class NaiveOLS(_LinearRegressor):
    """Least squares on the rows that have an outcome, as if they were a random sample.

    Parameters
    ----------
    prediction_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns; None is all of them.
    on_collinear : {"error", "drop"}
        What to do with collinear columns: refuse, naming them, or leave out with a warning.

    Attributes
    ----------
    coef_ : ndarray of shape (K,)
        Zero where a feature does not predict.
    intercept_, sigma_, adjusted_r2_ : float
    prediction_features_, dropped_features_ : list
    support_ : ndarray of bool, shape (K,)
    row_counts_ : dict
    n_selected_, n_features_in_ : int

    Examples
    --------
    >>> from heckmanfa import NaiveOLS
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> model = NaiveOLS().fit(mroz[["educ", "exper", "expersq"]], mroz["lwage"])
    >>> round(float(model.coef_[0]), 4)
    0.1075
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "prediction_features": ["array-like", None],
        "on_collinear": [StrOptions({"error", "drop"})],
    }

    def __init__(
        self, prediction_features: Any = None, *, on_collinear: OnProblem = "error"
    ) -> None:
        self.prediction_features = prediction_features
        self.on_collinear = on_collinear

    def _solved(self, X: Any, y: Any, selected: Any, sample_weight: Any) -> dict[str, Any]:
        read = self._read(X, y, selected, sample_weight)
        return self._regress(read, read.sample.rows, read.prediction)


class InverseProbabilityWeighted(_LinearRegressor):
    """Least squares on the selected rows, weighted by one over their probability of selection.

    It is right where selection depends on the features alone (missing at random); selection on
    what is not observed stays uncorrected.

    Parameters
    ----------
    prediction_features, selection_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns in each equation; None is all of them.
    clip : float
        The largest weight, as a multiple of the smallest possible one, 1. Larger ones are cut to
        it, and counted in ``n_clipped_``.
    on_collinear, on_separation : {"error", "drop"}
        As in `Heckman`.

    Attributes
    ----------
    coef_ : ndarray of shape (K,)
    intercept_, sigma_, adjusted_r2_ : float
    n_clipped_ : int
        Selected rows whose weight was cut.
    max_weight_ : float
        The largest weight before it was cut.
    selection_coef_ : ndarray of shape (K,)
    selection_intercept_ : float
        Of the probit.

    Notes
    -----
    Other attributes are those of `NaiveOLS`; ``sigma_`` and ``adjusted_r2_`` are those of the
    weighted regression, which takes a weight for a number of rows. Standard errors are not given:
    those of least squares would ignore that the weights are estimated.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "prediction_features": ["array-like", None],
        "selection_features": ["array-like", None],
        "clip": [Interval(Real, 1, None, closed="left")],
        "on_collinear": [StrOptions({"error", "drop"})],
        "on_separation": [StrOptions({"error", "drop"})],
    }

    def __init__(
        self,
        prediction_features: Any = None,
        selection_features: Any = None,
        *,
        clip: float = 50.0,
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
    ) -> None:
        self.prediction_features = prediction_features
        self.selection_features = selection_features
        self.clip = clip
        self.on_collinear = on_collinear
        self.on_separation = on_separation

    def _solved(self, X: Any, y: Any, selected: Any, sample_weight: Any) -> dict[str, Any]:
        # Weights of rows are computed in memory, whatever the rows came as.
        X, y, selected = on_host(X), on_host(y), on_host(selected)
        read = self._read(X, y, selected, on_host(sample_weight), self.selection_features)
        weighting: dict[str, Any] = {
            "selection_coef_": np.zeros(read.table.shape[1]),
            "selection_intercept_": float("inf"),
            "n_clipped_": 0,
            "max_weight_": 1.0,
        }
        if read.sample.all_selected:
            warn(
                f"no outcome is missing among the {read.counts['selected']} rows, so all weights "
                "are one: ordinary least squares is fitted.",
                AllObservedWarning,
            )
            return weighting | self._regress(read, read.sample.rows, read.prediction)
        fitted = fit_selection(
            read.sample.rows,
            read.selection,
            read.labels,
            on_collinear=self.on_collinear,
            on_separation=self.on_separation,
        )
        probit = fitted.probit
        weighting["selection_coef_"][list(probit.features)] = probit.coef[1:]
        weighting["selection_intercept_"] = float(probit.coef[0])
        counted = fitted.rows.map(
            _count_weights, probit, float(self.clip), columns=probit.features, merge=_merge_counts
        )
        weighting["n_clipped_"], weighting["max_weight_"] = _merge_counts(list(counted))
        prediction = [column for column in read.prediction if column not in fitted.separating]
        weighted = _Weighted(fitted.rows, probit, float(self.clip))
        found = self._regress(read, weighted, prediction, probit.features)
        return weighting | found | {"row_counts_": read.counts | fitted.row_counts()}


@dataclass(frozen=True)
class _Weighted:
    """Rows whose weights are multiplied by one over the probability of being selected.

    The weights are worked out block by block in every pass, so that rows may be anywhere.
    """

    rows: Rows
    probit: Probit
    clip: float

    def map(
        self,
        function: Callable[..., Any],
        *args: Any,
        columns: Positions,
        merge: Merge | None = None,
    ) -> Iterator[Any]:
        columns = list(columns)
        read = [*columns, *(one for one in self.probit.features if one not in columns)]
        places = [read.index(one) for one in self.probit.features]
        weighting = (self.probit, self.clip, places, len(columns))
        return self.rows.map(_weigh, weighting, function, args, columns=read, merge=merge)


def _weigh(
    block: Block,
    weighting: tuple[Probit, float, list[int], int],
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    probit, clip, places, width = weighting
    inverse = _inverse_probabilities(replace(block, features=pick(block.features, places)), probit)
    weight = np.minimum(inverse, clip)
    if block.weight is not None:
        weight = weight * block.weight
    features = pick(block.features, list(range(width)))
    return function(replace(block, features=features, weight=weight), *args)


def _count_weights(block: Block, probit: Probit, clip: float) -> tuple[int, float]:
    """How many selected rows have a weight above the largest, and the largest there is."""
    inverse = _inverse_probabilities(block, probit)[block.selected]
    return int(np.count_nonzero(inverse > clip)), float(inverse.max(initial=1.0))


def _merge_counts(parts: list[tuple[int, float]]) -> tuple[int, float]:
    return sum(one for one, _ in parts), max(one for _, one in parts)


def _inverse_probabilities(block: Block, probit: Probit) -> Floats:
    """One over the probability of being selected of the selected rows; one for the others."""
    index = probit.coordinates.design(block.features).times(probit.inner_coef)
    # A weight beyond what a number can hold is cut in any case.
    inverse = np.exp(np.minimum(-log_cdf(index), _LARGEST_EXPONENT))
    return np.asarray(np.where(block.selected, inverse, 1.0))

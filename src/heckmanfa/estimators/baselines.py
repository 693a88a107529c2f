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
from heckmanfa.data.columns.features import (
    FeatureTable,
    linear,
    names_or_positions,
    resolve,
)
from heckmanfa.data.missing_features import Gaps, check_missing, find_gaps, refuse_gaps
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.rows import Block, Mapped, Merge, Positions, Rows, one_blas_thread, pick
from heckmanfa.data.sample import (
    Sample,
    check_parameters,
    find_row_source,
    read_features,
    read_sample,
)
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import AllObservedWarning, UnderdeterminedWarning, warn
from heckmanfa.estimators.refitting import whole_fit
from heckmanfa.estimators.scoring import ScoredRegressor
from heckmanfa.model.equations import check_prediction, fit_selection
from heckmanfa.model.leakage import refuse_leakage
from heckmanfa.model.least_squares import fit_least_squares
from heckmanfa.model.moments import Moments, gather_moments
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.option_types import OnProblem
from heckmanfa.model.probit import Probit

__all__ = ["InverseProbabilityWeighted", "NaiveOLS", "ObservedRegressor"]

_LARGEST_EXPONENT = 700.0


class ObservedRegressor(ScoredRegressor):
    """The base of regressions that learn from the rows with an outcome."""

    prediction_features: Any

    support_: Any
    prediction_features_: list[Any]
    row_counts_: dict[str, int]
    n_selected_: int
    n_features_in_: int

    _names: list[str]
    _column_labels: tuple[Any, ...] | None

    def _take_in(
        self, X: Any, y: Any, selected: Any, sample_weight: Any, selection_features: Any = ()
    ) -> tuple[FeatureTable, Sample, list[int], list[int]]:
        """Check parameters, take in the data, and set what it says about features and rows."""
        check_parameters(self)
        home = find_row_source(X, y, selected, sample_weight, None)
        table = read_features(self, X if home is None else home, reset=True)
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
        self._selected_given = selected is not None if home is None else home.has_selected
        self._names = table.labels(range(table.shape[1]))
        self.row_counts_ = sample.row_counts
        self.n_selected_ = sample.row_counts["selected"]
        self._set_features(table, prediction)
        return table, sample, selection, prediction

    def _set_features(self, table: FeatureTable, prediction: Positions) -> None:
        self.support_ = np.zeros(table.shape[1], dtype=bool)
        self.support_[list(prediction)] = True
        self.prediction_features_ = names_or_positions(table.names, prediction)

    def _refuse_leakage(self, moments: Moments) -> None:
        counts = self.row_counts_
        refuse_leakage(moments, self._names, counts["selected"], missing=counts["unselected"] > 0)

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
            from heckmanfa.estimators.dask_predict import map_rows

            return map_rows(self, X, "predict", "predicted", missing=missing)
        table = read_features(self, X, reset=False)
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
        table = read_features(self, X, reset=False)
        return find_gaps(table, [int(one) for one in np.flatnonzero(self.support_)])

    @abstractmethod
    def _predict(self, table: FeatureTable, columns: list[int]) -> Array:
        """Predict from the columns that were read."""

    def _predict_selected(self, X: Any) -> Any:
        # A regression that knows no selection has one kind of prediction.
        return self.predict(X)


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
        with whole_fit(self), one_blas_thread():
            self._fit(X, y, selected, sample_weight)
        return self

    @abstractmethod
    def _fit(self, X: Any, y: Any, selected: Any, sample_weight: Any) -> None:
        """Take in the data and solve for the coefficients."""

    def _solve(
        self, rows: Mapped, table: FeatureTable, prediction: Positions, selection: Positions = ()
    ) -> None:
        columns = sorted({*prediction, *selection})
        moments = gather_moments(rows, columns, table.shape[1], None)
        self._refuse_leakage(moments)
        if len(prediction) < self.n_selected_:
            prediction, dropped = check_prediction(
                moments, prediction, self._names, self.on_collinear
            )
            self.dropped_features_ = names_or_positions(table.names, dropped)
        else:
            self.dropped_features_ = []
            warn(
                f"{len(prediction)} features and an intercept, but {self.n_selected_} rows with an "
                "outcome: the coefficients are those of minimum norm. Use fewer features.",
                UnderdeterminedWarning,
            )
        fit = fit_least_squares(moments, prediction)
        self._set_features(table, prediction)
        self.coef_ = np.zeros(table.shape[1])
        self.coef_[self.support_] = fit.coef[1:]
        self.intercept_ = float(fit.coef[0])
        self.sigma_, self.adjusted_r2_ = fit.sigma, fit.adjusted_r2

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

    def _fit(self, X: Any, y: Any, selected: Any, sample_weight: Any) -> None:
        table, sample, _, prediction = self._take_in(X, y, selected, sample_weight)
        self._solve(sample.rows, table, prediction)


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

    def _fit(self, X: Any, y: Any, selected: Any, sample_weight: Any) -> None:
        # Weights of rows are made in memory, whatever the rows came as.
        table, sample, selection, prediction = self._take_in(
            on_host(X),
            on_host(y),
            on_host(selected),
            on_host(sample_weight),
            self.selection_features,
        )
        self.selection_coef_ = np.zeros(table.shape[1])
        self.selection_intercept_ = float("inf")
        self.n_clipped_, self.max_weight_ = 0, 1.0
        if sample.all_selected:
            warn(
                f"no outcome is missing among the {sample.row_counts['selected']} rows, so "
                "all weights are one: ordinary least squares is fitted.",
                AllObservedWarning,
            )
            self._solve(sample.rows, table, prediction)
            return
        fitted = fit_selection(
            sample.rows,
            selection,
            self._names,
            on_collinear=self.on_collinear,
            on_separation=self.on_separation,
        )
        probit = fitted.probit
        self.row_counts_ |= fitted.row_counts()
        self.selection_coef_[list(probit.features)] = probit.coef[1:]
        self.selection_intercept_ = float(probit.coef[0])
        counted = fitted.rows.map(
            _count_weights, probit, float(self.clip), columns=probit.features, merge=_merge_counts
        )
        self.n_clipped_, self.max_weight_ = _merge_counts(list(counted))
        prediction = [one for one in prediction if one not in fitted.separating]
        weighted = _Weighted(fitted.rows, probit, float(self.clip))
        self._solve(weighted, table, prediction, probit.features)


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

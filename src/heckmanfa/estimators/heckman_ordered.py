"""Ordered probit with sample selection: classes that have an order, seen for the selected only."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from heckmanfa.data.arrays import Array, Floats, host, is_dask, is_tensor, namespace
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.missing_features import check_missing
from heckmanfa.data.outcome_classes import encode_classes
from heckmanfa.data.rows import Mask
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.scoring import Metric, ScoredModel
from heckmanfa.fit import ORDERED, Family
from heckmanfa.inference.class_probabilities import check_class_kind, predict_classes
from heckmanfa.inference.prediction import IntervalKind, Kind, Missing, Scale
from heckmanfa.results.cut_points import cut_points
from heckmanfa.text.option_types import CovType, OnProblem, WeightKind


class HeckmanOrdered(ClassifierMixin, SelectionModel):
    """Ordered probit with sample selection: an ordered outcome, seen for selected rows only.

    A latent outcome y* = b0 + x'b + e lies between two cut points, which say the class of y. We
    observe y if g0 + z'g + u > 0, the selection equation. (u, e) are standard normal with
    correlation rho. Everything is estimated by full maximum likelihood, as Stata's ``heckoprobit``
    does. With two classes it is `HeckmanProbit`.

    The intercept b0 is estimated, and the first cut point is held at zero; Stata holds the
    intercept at zero instead. ``cut_points_`` are Stata's: minus the intercept, and so on up.

    Parameters
    ----------
    classes : sequence, optional
        All classes, the lowest first. None takes the order of numbers, booleans, or an ordered
        category (pandas or PyArrow; an Enum in Polars); other texts need it.
    prediction_features, selection_features, cov_type, weight_kind, on_collinear, start, \
categorical_features, reference, unknown
        As in `HeckmanProbit`.
    on_separation : {"error", "drop"}
        What to do with columns that determine selection, as in `Heckman`. Those that decide the
        class of selected rows are refused in either case.
    rho : float, optional
        A value inside (-1, 1) at which rho is held; None estimates it.

    Attributes
    ----------
    classes_ : ndarray of shape (J,)
        The lowest first.
    cut_points_ : ndarray of shape (J - 1,)
        Where x'b, without an intercept, begins to mean the next class: as in Stata. `cut_points`
        has them with standard errors.
    coef_, selection_coef_ : ndarray of shape (K,)
        Zero where a feature is not in the equation.
    intercept_, selection_intercept_ : float
        Of the latent outcome, minus the first cut point; and of selection.
    rho_ : float
    params_ : ndarray
        All parameters, to pass as ``start``: the prediction equation, then the selection equation
        (each intercept first), the logarithms of the steps between cut points, the last of them
        first, and atanh rho.
    aic_, bic_, log_likelihood_, n_obs_, n_selected_, n_clusters_, row_counts_, support_, \
prediction_features_, selection_features_, dropped_features_, converged_, n_features_in_, \
feature_names_in_
        As in `HeckmanProbit`.

    Examples
    --------
    >>> import numpy as np
    >>> from heckmanfa import HeckmanOrdered
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> band = np.digitize(mroz["wage"], [2.5, 4.5]).astype(float)
    >>> band[mroz["wage"].isna()] = np.nan
    >>> model = HeckmanOrdered(prediction_features=["educ"])
    >>> model = model.fit(mroz[["educ", "age", "kids5", "kids618", "nwifeinc"]], band)
    >>> model.predict_proba(mroz[model.feature_names_in_][:1]).round(2)
    array([[0.34, 0.41, 0.26]])
    """

    family: ClassVar[Family] = ORDERED

    classes_: NDArray[Any]
    cut_points_: Floats
    score = ScoredModel.score

    def __init__(
        self,
        prediction_features: Any = None,
        selection_features: Any = None,
        *,
        classes: Any = None,
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        rho: float | None = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def cut_points(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Cut points as Stata has them, with standard errors and intervals.

        Parameters
        ----------
        conf_level : float
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Columns below and above (the classes on its sides), estimate, std_error, ci_low and
            ci_high: the delta method, with the uncertainty of the intercept and all steps.
        """
        return cut_points(self.fit_, conf_level)

    # Prediction. ------------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        kind: Kind = "marginal",
        return_interval: IntervalKind | None = None,
        conf_level: float = 0.95,
        *,
        scale: Scale = "response",
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Predict the most likely class of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            A Dask collection gives a lazy one.
        kind : {"marginal", "selected", "unselected"}
            As in `predict_proba`.
        return_interval, conf_level, scale
            As in `Heckman.predict`, for code that takes either model: a class has none.
        missing : {"error", "nan"}
            What to do with rows that lack a feature they need: raise an error with counts by
            column, or predict NaN (None if classes are text or booleans).
        unknown : {None, "error", "missing"}
            As in `Heckman.predict`.

        Returns
        -------
        ndarray of shape (n,)
        """
        if return_interval is not None or scale != "response":
            raise InputError("a class has no interval and no scale: use predict_proba(X)")
        self = self._reading(unknown)
        self._check_prediction(kind, missing)
        labels = self._labels(missing)
        if is_dask(X):
            options = {"kind": kind, "missing": missing}
            return self._lazily(X, "predict", "predicted", dtype=labels.dtype, **options)
        logarithms = predict_classes(self.fit_, X, kind, missing)
        known = host(logarithms)
        codes = np.argmax(known, axis=1)
        # The last label is for rows without a probability.
        predicted = labels[np.where(np.isnan(known).any(axis=1), len(self.classes_), codes)]
        if is_tensor(logarithms) and labels.dtype.kind not in "OU":
            return namespace(logarithms).asarray(predicted, device=logarithms.device)
        return predicted

    def predict_proba(
        self,
        X: Any,
        kind: Kind = "marginal",
        return_interval: Literal["confidence"] | None = None,
        conf_level: float = 0.95,
        *,
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Probability of each class, for each row.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            Tensors give tensors on the same device. A Dask collection gives a lazy one, with a
            column for each class.
        kind : {"marginal", "selected", "unselected"}
            P(y = j | x), whether selected or not; P(y = j | x, s = 1), given selection; or
            P(y = j | x, s = 0), given that the row is not selected.
        return_interval, conf_level
            As in `HeckmanProbit.predict_proba`, for code that takes either model: rows have none
            here, and ``margins(X, what="predictions")`` has those of averages.
        missing : {"error", "nan"}
            What to do with rows that lack a feature they need: raise an error with counts by
            column, or return NaN.
        unknown : {None, "error", "missing"}
            As in `Heckman.predict`.

        Returns
        -------
        ndarray of shape (n, J)
            Columns in the order of ``classes_``.
        """
        if return_interval is not None:
            raise InputError(
                "probabilities of ordered classes have no intervals for single rows: margins(X, "
                "what='predictions') has those of their averages, at given values too"
            )
        return self._by_class(X, "_probabilities", kind, missing, unknown)

    def predict_log_proba(
        self,
        X: Any,
        kind: Kind = "marginal",
        *,
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Logarithm of `predict_proba`, exact where a probability is too small for a number."""
        return self._by_class(X, "_logarithms", kind, missing, unknown)

    def _by_class(
        self, X: Any, method: str, kind: str, missing: str, unknown: Unknown | None
    ) -> Any:
        self = self._reading(unknown)
        self._check_prediction(kind, missing)
        if is_dask(X):
            names = [str(label) for label in self.classes_.tolist()]
            return self._lazily(X, f"{method}_in_parts", names, kind=kind, missing=missing)
        return getattr(self, method)(X, kind, missing)

    def _logarithms(self, X: Any, kind: str, missing: str) -> Array:
        return predict_classes(self.fit_, X, kind, missing)

    def _probabilities(self, X: Any, kind: str, missing: str) -> Array:
        logarithms = predict_classes(self.fit_, X, kind, missing)
        return namespace(logarithms).exp(logarithms)

    def _logarithms_in_parts(self, X: Any, kind: str, missing: str) -> tuple[Array, ...]:
        return tuple(self._logarithms(X, kind, missing).T)

    def _probabilities_in_parts(self, X: Any, kind: str, missing: str) -> tuple[Array, ...]:
        return tuple(self._probabilities(X, kind, missing).T)

    def _check_prediction(self, kind: str, missing: str) -> None:
        check_missing(missing)
        check_class_kind(self.fit_, kind)

    def _labels(self, missing: str) -> NDArray[Any]:
        """Return the classes, and what to predict without a probability."""
        if missing == "error":
            return self.classes_
        if self.classes_.dtype.kind in "iuf":
            return np.array([*self.classes_, np.nan])
        return np.array([*self.classes_.tolist(), None], dtype=object)

    # Scores. ----------------------------------------------------------------------------------

    def _metric(self) -> Metric:
        return _accuracy

    def _numbers_of(self, y: Any, n: int, selected: Mask | None) -> Floats:
        return encode_classes(y, n, tuple(self.classes_.tolist()), selected)

    def _to_score(
        self, X: Any, y: Any, sample_weight: Any, selected: Any, *, drop: bool = False
    ) -> tuple[Any, ...]:
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        missing = "nan" if drop else self._missing_in_scores()
        codes = self._on_rows(X, "_likeliest_if_selected", "code", missing=missing)
        return codes, y, sample_weight, selected

    def _likeliest_if_selected(self, X: Any, missing: str) -> Floats:
        known = host(predict_classes(self.fit_, X, "selected", missing))
        codes = np.argmax(known, axis=1).astype(np.float64)
        return np.where(np.isnan(known).any(axis=1), np.nan, codes)


def _accuracy(outcome: Floats, predicted: Floats, sample_weight: Floats | None) -> float:
    return float(np.average(predicted == outcome, weights=sample_weight))

"""The Heckman probit: a selection model of an outcome of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Array, Floats, host, is_dask, is_tensor, namespace
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.missing_features import check_missing
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.scoring import ScoredClassifier
from heckmanfa.fit import BINARY, Family
from heckmanfa.inference.prediction import (
    IntervalKind,
    Kind,
    Missing,
    Scale,
    check_interval,
    check_kind,
)
from heckmanfa.inference.probabilities import (
    predict_log_probabilities,
    predict_probability,
    predict_with_limits,
)
from heckmanfa.text.option_types import CovType, OnProblem, WeightKind


def _in_columns(columns: Sequence[Array]) -> Array:
    """Put columns beside each other."""
    return namespace(columns[0]).concat([column[:, None] for column in columns], axis=1)


class HeckmanProbit(ScoredClassifier, SelectionModel):
    """The Heckman probit: an outcome of two classes, observed only for selected rows.

    The prediction equation (also called the outcome equation) says that y is the positive class if
    b0 + x'b + e > 0. We observe y if g0 + z'g + u > 0, the selection equation. (u, e) are standard
    normal with correlation rho. Intercepts are fitted, by full maximum likelihood.

    Parameters
    ----------
    prediction_features, selection_features : sequence of str, int or bool, optional
        Names, positions or a mask of X's columns in each equation; None is all of them. A
        feature may be in one equation only. Names are text: if a data frame's column names are
        integers other than 0 to K - 1 in order, integers are ambiguous and refused.
    cov_type : {None, "classical", "robust", "cluster"} or Survey
        None is "classical", the inverse of the observed information. "cluster" needs ``groups`` in
        `fit`; with G clusters, tests and intervals use t(G - 1), and joint tests F(q, G - 1). A
        `heckmanfa.Survey` names the columns of X that are the design of a survey.
    weight_kind : {"frequency", "sampling"}
        What ``sample_weight`` means. With "frequency", a weight of 2 is two rows (integers only).
        With "sampling", as in surveys, weights are rescaled to mean one and need ``cov_type``
        "robust" or "cluster".
    on_collinear, on_separation : {"error", "drop"}
        What to do with collinear columns, and with columns that determine selection, or the class
        of selected rows, exactly (and the rows they determine): raise an error that names them, or
        drop them with a warning.
    start : float or array_like, optional
        Where maximum likelihood starts: None is probits corrected to first order, a number in
        (-1, 1) is a rho (with all else at its best), and an array holds all parameters, as in
        ``params_`` of a model with the same columns in the same order. The fit reports the maximum
        reached from there, and warns if it knows another.
    categorical_features, reference, unknown
        As in `Heckman`.
    rho : float, optional
        A value inside (-1, 1) at which rho is held; None estimates it. Standard errors take it as
        known, and no exclusion is needed. It has a zero row in `vcov`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The negative and the positive class: in sorted order, or in that of the categories if y
        is an ordered category.
    coef_, selection_coef_ : ndarray of shape (K,)
        Zero where a feature is not in the equation.
    intercept_, selection_intercept_ : float
    rho_ : float
        Error correlation; NaN if no outcome is missing, and a plain probit is fitted.
    aic_, bic_ : float
        -2 log L + 2 k and -2 log L + k log n, L being the joint likelihood of the n rows of both
        equations and k the number of all its parameters. A rho that is held does not count.
    log_likelihood_ : float
        The log pseudolikelihood if the covariance is robust or clustered.
    params_ : ndarray
        All parameters on the scale of the input, to pass as ``start``: the prediction equation,
        then the selection equation (each intercept first, then features in the order of X's
        columns), and atanh rho. With formulas, X's columns are those of the selection formula, then
        those of the prediction formula alone.
    n_obs_, n_selected_ : int or float
        Rows in the fit (the sum of frequency weights).
    n_clusters_ : int or None
        Clusters in the fit, with ``cov_type="cluster"``.
    row_counts_ : dict
        Every row given, by status.
    prediction_features_, selection_features_, dropped_features_ : list
        Names, or positions if X has no names.
    support_ : ndarray of bool, shape (K,)
        Which features predict.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has names.

    Examples
    --------
    >>> from heckmanfa import HeckmanProbit
    >>> from heckmanfa.datasets import load_mroz
    >>> mroz = load_mroz()
    >>> above = (mroz["wage"] >= 5).where(mroz["wage"].notna())
    >>> model = HeckmanProbit(prediction_features=["educ"])
    >>> model = model.fit(mroz[["educ", "age", "kids5", "kids618", "nwifeinc"]], above)
    >>> model.predict_proba(mroz[model.feature_names_in_][:1]).round(2)
    array([[0.86, 0.14]])
    """

    family: ClassVar[Family] = BINARY

    def __init__(
        self,
        prediction_features: Any = None,
        selection_features: Any = None,
        *,
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
        """Predict the class of each row: the positive one if its probability is above one half.

        Parameters
        ----------
        X : array or data frame of shape (n, K)
            A Dask collection gives a lazy one. Tensors give tensors if classes are not text.
        kind : {"marginal", "selected", "unselected"}
            As in `predict_proba`.
        return_interval, conf_level, scale
            As in `Heckman.predict`, for code that takes either model: a class has no interval and
            no other scale. `predict_proba` and `predict_joint` have intervals.
        missing : {"error", "nan"}
            What to do with rows that lack a feature they need: raise an error with counts by
            column, or predict NaN (None if classes are text or booleans). Infinite values always
            raise an error.
        unknown : {None, "error", "missing"}
            As in `Heckman.predict`.

        Returns
        -------
        ndarray of shape (n,)
        """
        if return_interval is not None or scale != "response":
            raise InputError(
                "a class has no interval and no scale: use predict_proba(X, "
                "return_interval='confidence') or predict_joint"
            )
        self = self._reading(unknown)
        self._check_prediction(kind, missing)
        if is_dask(X):
            kinds = self._labels(missing).dtype
            return self._lazily(X, "predict", "predicted", dtype=kinds, kind=kind, missing=missing)
        probability = predict_probability(self.fit_, X, kind, missing)
        labels, chance = self._labels(missing), host(probability)
        # The last label is for rows without a probability.
        predicted = labels[np.where(np.isnan(chance), 2, chance > 0.5)]
        if is_tensor(probability) and labels.dtype.kind != "O" and labels.dtype.kind != "U":
            return namespace(probability).asarray(predicted, device=probability.device)
        return predicted

    @overload
    def predict_proba(
        self,
        X: Any,
        kind: Kind = ...,
        return_interval: None = ...,
        conf_level: float = ...,
        *,
        missing: Missing = ...,
        unknown: Unknown | None = ...,
    ) -> Floats: ...

    @overload
    def predict_proba(
        self,
        X: Any,
        kind: Kind = ...,
        return_interval: Literal["confidence"] = ...,
        conf_level: float = ...,
        *,
        missing: Missing = ...,
        unknown: Unknown | None = ...,
    ) -> tuple[Floats, Floats]: ...

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
            Tensors give tensors on the same device. A Dask collection gives a lazy one: a DataFrame
            with a column for each class, X's index and divisions, or an Array with X's chunks.
        kind : {"marginal", "selected", "unselected"}
            P(y | x), whether selected or not; P(y | x, s = 1), given selection; or
            P(y | x, s = 0), given that the row is not selected.
        return_interval : {None, "confidence"}
            Also return a confidence interval for the probability of the positive class: the delta
            method on the probit scale, with the uncertainty of both equations and rho.
        conf_level : float
            Confidence level of the interval.
        missing : {"error", "nan"}
            What to do with rows that lack a feature they need: raise an error with counts by
            column, or return NaN. Infinite values always raise an error.
        unknown : {None, "error", "missing"}
            As in `Heckman.predict`.

        Returns
        -------
        values : ndarray of shape (n, 2)
            Columns in the order of ``classes_``.
        interval : ndarray of shape (n, 2)
            Only with ``return_interval``: lower and upper limits for the second column, NaN if the
            covariance of the estimates is unknown. For a Dask DataFrame, a DataFrame of "lower"
            and "upper".
        """
        self = self._reading(unknown)
        self._check_prediction(kind, missing)
        options = {"kind": kind, "missing": missing}
        if return_interval is None:
            return self._beside_each_other(X, "_both_probabilities", **options)
        check_interval(return_interval, conf_level, "class")
        if is_dask(X):
            names = ["negative", "positive", "lower", "upper"]
            columns = self._lazily(X, "_with_limits", names, conf_level=conf_level, **options)
            if hasattr(columns, "columns"):
                # Labels may be any texts, such as "lower".
                labels = dict(zip(names, map(str, self.classes_.tolist()), strict=False))
                return columns[names[:2]].rename(columns=labels), columns[names[2:]]
            return columns[:, :2], columns[:, 2:]
        columns = self._with_limits(X, conf_level=conf_level, **options)
        return _in_columns(columns[:2]), _in_columns(columns[2:])

    def predict_log_proba(
        self,
        X: Any,
        kind: Kind = "marginal",
        *,
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Logarithm of `predict_proba`, exact where a probability is too small for a number."""
        self = self._reading(unknown)
        self._check_prediction(kind, missing)
        return self._beside_each_other(X, "_both_logarithms", kind=kind, missing=missing)

    def predict_joint(
        self,
        X: Any,
        return_interval: Literal["confidence"] | None = None,
        conf_level: float = 0.95,
        *,
        missing: Missing = "error",
        unknown: Unknown | None = None,
    ) -> Any:
        """Probability of being selected and of the positive class, P(y = 1, s = 1 | x).

        Parameters are as in `predict_proba`. Return (n,) values, and with ``return_interval`` also
        their (n, 2) limits; for a Dask collection both are lazy.
        """
        check_missing(missing)
        self = self._reading(unknown)
        if return_interval is not None:
            check_interval(return_interval, conf_level, "class")
        if is_dask(X):
            options = {"return_interval": return_interval, "conf_level": conf_level}
            return self._lazily(X, "predict_joint", "probability", missing=missing, **options)
        return predict_probability(self.fit_, X, "joint", missing, return_interval, conf_level)

    def _check_prediction(self, kind: str, missing: str) -> None:
        check_missing(missing)
        check_kind(self.fit_, kind)
        if kind == "expected":
            raise InputError(
                "kind='expected' is P(y = 1, s = 1 | x), which is not the probability of a class: "
                "use predict_joint(X)"
            )

    def _beside_each_other(self, X: Any, method: str, **options: Any) -> Any:
        """Return a column for each class, which a method gives; lazily for a Dask collection."""
        if is_dask(X):
            names = [str(label) for label in self.classes_.tolist()]
            return self._lazily(X, method, names, **options)
        return _in_columns(getattr(self, method)(X, **options))

    def _both_logarithms(self, X: Any, kind: str, missing: str) -> tuple[Array, Array]:
        return predict_log_probabilities(self.fit_, X, kind, missing)

    def _both_probabilities(self, X: Any, kind: str, missing: str) -> tuple[Array, ...]:
        """Return the probabilities of the negative and of the positive class."""
        both = self._both_logarithms(X, kind, missing)
        return tuple(namespace(logarithm).exp(logarithm) for logarithm in both)

    def _with_limits(self, X: Any, kind: str, missing: str, conf_level: float) -> tuple[Array, ...]:
        """Return `_both_probabilities`, and the limits of the second."""
        *both, limits = predict_with_limits(self.fit_, X, kind, missing, conf_level)
        return (*both, limits[:, 0], limits[:, 1])

    def _labels(self, missing: str) -> NDArray[Any]:
        """Return the two classes, and what to predict without a probability."""
        if missing == "error":
            return self.classes_
        if self.classes_.dtype.kind in "iuf":
            return np.array([*self.classes_, np.nan])
        return np.array([*self.classes_.tolist(), None], dtype=object)

    def _to_score(
        self, X: Any, y: Any, sample_weight: Any, selected: Any, *, drop: bool = False
    ) -> tuple[Any, ...]:
        y, sample_weight, selected = self._beside(X, y, sample_weight, selected)
        missing = "nan" if drop else self._missing_in_scores()
        probability = self._on_rows(X, "_positive_if_selected", "probability", missing=missing)
        return probability, y, sample_weight, selected

    def _positive_if_selected(self, X: Any, missing: str) -> Array:
        return predict_probability(self.fit_, X, "selected", missing)

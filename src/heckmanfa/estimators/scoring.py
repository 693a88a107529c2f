"""The rows that a score is about, and what every regression of the package is scored by."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats, compute_dask, host, is_dask
from heckmanfa.data.row_checks import refuse_infinite_outcomes
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.sample import read_rows
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import InputError, MissingValueError, NotIdentifiedError
from heckmanfa.model.normal import log_cdf

if TYPE_CHECKING:
    from heckmanfa.estimators.base import FittedSelectionModel

__all__ = ["ROUTING", "ScoredRegressor", "ScoredRows", "scored_rows", "sum_log_likelihood"]

ROUTING = (
    "in a cross-validation or a grid search, call sklearn.set_config("
    "enable_metadata_routing=True) first: selected then gets to fit, to the scorer and to "
    "SelectionKFold"
)


class ScoredRegressor(RegressorMixin, BaseEstimator):
    """A regression that learns from selected rows, and is scored on selected rows.

    Under scikit-learn's metadata routing, ``selected`` gets to `fit` and to `score` without a
    request.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"selected": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"selected": True}

    _selected_given: bool = False
    """whether `fit` was told who is selected, so that y alone does not say it"""

    @abstractmethod
    def _predict_selected(self, X: Any) -> Any:
        """Predict the outcomes of rows that are selected."""

    def _who_is_selected(self, X: Any, selected: Any) -> Any:
        """Return who is selected, None where y says it; refuse not to be told."""
        if selected is None and self._selected_given:
            raise InputError(
                f"this {type(self).__name__} was fitted with selected, and a score without it "
                f"would be one of other rows: pass selected=..., too ({ROUTING})"
            )
        return selected

    def _weights_to_score(self, X: Any, sample_weight: Any) -> Any:
        """Return the weights of rows; like those of scikit-learn, most models remember none."""
        return sample_weight

    def _outcome_to_score(self, X: Any, y: Any) -> Any:
        """Return the outcomes of rows, which a model from formulas finds in its data frame."""
        return y

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, selected: Any = None
    ) -> float:
        """R^2 over the rows that are selected and have an outcome.

        It is one of predictions given selection: ``predict(X, kind="selected")`` where a model
        has several kinds, because marginal predictions would be wrong for these rows by design.
        Rows of a model from formulas that miss a regressor cannot be predicted and are left out.

        Parameters
        ----------
        X : array or data frame
        y : array_like, optional
            NaN where missing. A model from formulas works it out from X by the left side of its
            prediction formula, unless it is given.
        sample_weight : array_like, optional
            Rows weigh the same unless it is given, as everywhere in scikit-learn; but a model
            from formulas that was fitted with weights takes their column from X.
        selected : array_like of bool, optional
            As in `fit`, and needed where `fit` was given it. A selection formula says it itself.

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        rows = scored_rows(self, X, y, sample_weight, selected)
        return float(r2_score(rows.outcome, rows.predicted, sample_weight=rows.weight))


@dataclass(frozen=True)
class ScoredRows:
    """The m rows that a score is about."""

    outcome: Floats
    """(m,)"""
    predicted: Floats
    """(m,)"""
    weight: Floats | None
    """(m,)"""


def scored_rows(
    model: ScoredRegressor, X: Any, y: Any, sample_weight: Any = None, selected: Any = None
) -> ScoredRows:
    """Predict for rows, and keep those that are selected and have an outcome and a prediction.

    Parameters
    ----------
    model : ScoredRegressor
        Fitted.
    X, y, sample_weight, selected
        As in `ScoredRegressor.score`; each may be a Dask collection, which is computed.

    Returns
    -------
    ScoredRows
    """
    check_is_fitted(model)
    refuse_rows(X)
    selected = model._who_is_selected(X, selected)
    sample_weight = model._weights_to_score(X, sample_weight)
    y = model._outcome_to_score(X, y)
    predicted = model._predict_selected(X)
    predicted, y, sample_weight, selected = compute_dask(predicted, y, sample_weight, selected)
    predicted = host(predicted)
    n = len(predicted)
    given = read_rows(y, n, selected, sample_weight)
    outcome, weight = given.outcome, given.weight
    rows = given.status.kept & given.status.selected & ~np.isnan(predicted)
    refuse_infinite_outcomes(int(np.count_nonzero(np.isinf(outcome[rows]))))
    if not rows.any():
        kind = "has an outcome" if selected is None else "is selected and has an outcome"
        raise InputError(
            f"none of these {n} rows {kind} to score on; where they are a fold of a "
            "cross-validation, split with heckmanfa.model_selection.SelectionKFold"
        )
    return ScoredRows(outcome[rows], predicted[rows], None if weight is None else weight[rows])


def sum_log_likelihood(
    model: FittedSelectionModel, X: Any, y: Any, selected: Any = None, sample_weight: Any = None
) -> tuple[float, float]:
    """Joint log-likelihood of selection and outcomes, and the number of rows it is a sum over.

    Parameters
    ----------
    model : FittedSelectionModel
        Fitted.
    X, y, selected, sample_weight
        As in `FittedSelectionModel.log_likelihood`; each may be a Dask collection.

    Returns
    -------
    total, count : float
        The sum over rows, each times its weight, and the sum of weights. Rows that are selected
        and have no outcome are left out, as in a fit.
    """
    check_is_fitted(model)
    refuse_rows(X)
    if model._probit is None:
        raise NotIdentifiedError(
            "no outcome was missing in the fit, so the joint likelihood is not known"
        )
    selected = model._who_is_selected(X, selected)
    sample_weight = model._weights_to_score(X, sample_weight)
    y = model._outcome_to_score(X, y)
    equations = _both_equations(model, X)
    equations, y, selected, sample_weight = compute_dask(equations, y, selected, sample_weight)
    index, mean = equations.T
    n = len(index)
    given = read_rows(y, n, selected, sample_weight)
    kept = given.status.kept
    seen = given.status.selected[kept]
    weight = np.ones(len(seen)) if given.weight is None else given.weight[kept]
    index, mean, outcome = index[kept], mean[kept], given.outcome[kept]
    refuse_infinite_outcomes(int(np.count_nonzero(np.isinf(outcome[seen]))))
    count = float(weight.sum())
    if not abs(model.rho_) < 1:
        return float("-inf"), count
    missing = ~np.isfinite(index) | (seen & ~np.isfinite(mean))
    if missing.any():
        raise MissingValueError(
            f"{np.count_nonzero(missing)} rows miss a regressor that the likelihood needs, or "
            "hold an infinite one; leave them out"
        )
    e = (outcome - mean)[seen] / model.sigma_
    shifted = (index[seen] + model.rho_ * e) / np.sqrt(1.0 - model.rho_**2)
    normal = -0.5 * e**2 - np.log(model.sigma_) - 0.5 * np.log(2.0 * np.pi)
    terms = log_cdf(-index)
    terms[seen] = log_cdf(shifted) + normal
    return float(weight @ terms), count


def _both_equations(model: FittedSelectionModel, X: Any) -> Any:
    """Return the selection index and the mean of every row, (n, 2); lazy where X is Dask."""
    if is_dask(X):
        from heckmanfa.estimators.dask_predict import map_rows

        return map_rows(model, X, "_both_equations", ["index", "mean"])
    return np.column_stack(model._both_equations(on_host(X)))

"""The rows that a score is about, and what every regression of the package is scored by."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats, compute_dask, host
from heckmanfa.data.row_checks import refuse_infinite_outcomes
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import flags, read_outcome, read_weights
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import InputError, MissingValueError
from heckmanfa.model.normal import log_cdf

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

    @abstractmethod
    def _to_score(self, X: Any, y: Any, sample_weight: Any, selected: Any) -> ToScore:
        """Predict for selected rows, and find what a score needs beside the predictions."""

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


def publish(estimator: BaseEstimator, attributes: dict[str, Any]) -> None:
    """Replace what an earlier fit left by the attributes of this one, at its very end."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)
    for name, value in attributes.items():
        setattr(estimator, name, value)


@dataclass(frozen=True)
class ToScore:
    """Predictions for rows and what they are compared with; each may be a Dask collection."""

    predicted: Any
    outcome: Any
    weight: Any = None
    selected: Any = None


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
    given = model._to_score(X, y, sample_weight, selected)
    predicted, y, sample_weight, selected = compute_dask(
        given.predicted, given.outcome, given.weight, given.selected
    )
    predicted = host(predicted)
    n = len(predicted)
    outcome, chosen = _outcomes(y, selected, n)
    rows = chosen & ~np.isnan(outcome) & ~np.isnan(predicted)
    weight = None
    if sample_weight is not None:
        weight = read_weights(on_host(sample_weight), n)
        rows &= weight > 0
    refuse_infinite_outcomes(int(np.count_nonzero(np.isinf(outcome[rows]))))
    if not rows.any():
        kind = "has an outcome" if selected is None else "is selected and has an outcome"
        raise InputError(
            f"none of these {n} rows {kind} to score on; where they are a fold of a "
            "cross-validation, split with heckmanfa.model_selection.SelectionKFold"
        )
    return ScoredRows(outcome[rows], predicted[rows], None if weight is None else weight[rows])


def check_selected(estimator: str, selected: Any, selected_given: bool) -> None:
    """Refuse to score without ``selected`` if the fit was given it."""
    if selected is None and selected_given:
        raise InputError(
            f"this {estimator} was fitted with selected, and a score without it would use other "
            f"rows: pass selected=... as well ({ROUTING})"
        )


def log_likelihood_of_rows(
    equations: Any, rho: float, sigma: float, y: Any, selected: Any, sample_weight: Any
) -> tuple[float, float]:
    """Sum the joint log-likelihood of selection and outcomes over rows.

    Parameters
    ----------
    equations : (n, 2) array
        Selection index and mean of each row.
    rho, sigma : float
    y, selected, sample_weight
        As in `SelectionModel.log_likelihood`; each may be a Dask collection.

    Returns
    -------
    total, count : float
        The sum over rows, each times its weight, and the sum of weights. Rows that are selected
        and have no outcome are left out, as in a fit.
    """
    equations, y, selected, sample_weight = compute_dask(equations, y, selected, sample_weight)
    index, mean = equations.T
    n = len(index)
    outcome, chosen = _outcomes(y, selected, n)
    seen = chosen & ~np.isnan(outcome)
    weight = np.ones(n) if sample_weight is None else read_weights(on_host(sample_weight), n)
    counted = (seen | ~chosen) & (weight > 0)
    seen, weight = seen[counted], weight[counted]
    index, mean, outcome = index[counted], mean[counted], outcome[counted]
    refuse_infinite_outcomes(int(np.count_nonzero(np.isinf(outcome[seen]))))
    count = float(weight.sum())
    if not abs(rho) < 1:
        return float("-inf"), count
    missing = ~np.isfinite(index) | (seen & ~np.isfinite(mean))
    if missing.any():
        raise MissingValueError(
            f"{np.count_nonzero(missing)} rows miss a regressor that the likelihood needs, or "
            "hold an infinite one; leave them out"
        )
    e = (outcome - mean)[seen] / sigma
    shifted = (index[seen] + rho * e) / np.sqrt(1.0 - rho**2)
    normal = -0.5 * e**2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
    terms = log_cdf(-index)
    terms[seen] = log_cdf(shifted) + normal
    return float(weight @ terms), count


def _outcomes(y: Any, selected: Any, n: int) -> tuple[Floats, Mask]:
    """Return the outcomes, NaN where missing, and who is selected."""
    outcome = read_outcome(y, n)
    return outcome, ~np.isnan(outcome) if selected is None else flags(on_host(selected), n)

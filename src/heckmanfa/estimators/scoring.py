"""The base of every regression of the package, and the rows that it is scored on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats, compute_dask, host, on_host
from heckmanfa.data.row_rules import refuse_infinite_outcomes
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import flags, read_outcome, read_weights
from heckmanfa.errors import InputError, MissingValueError
from heckmanfa.model.normal import log_cdf

ROUTING = (
    "in a cross-validation or a grid search, call sklearn.set_config("
    "enable_metadata_routing=True) first: fit, the scorer and SelectionKFold then receive selected"
)


class ScoredRegressor(RegressorMixin, BaseEstimator):
    """A regression that is fitted and scored on selected rows.

    Scikit-learn's metadata routing passes ``selected`` to `fit` and `score` without a request.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"selected": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"selected": True}

    def _keep(self, parameters: Mapping[str, Any]) -> None:
        """Set the parameters of a constructor, from its ``locals()``."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    @abstractmethod
    def _to_score(self, X: Any, y: Any, sample_weight: Any, selected: Any) -> tuple[Any, ...]:
        """Return predictions given selection, the outcome, weights and who is selected."""

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, selected: Any = None
    ) -> float:
        """R^2 over the rows that are selected and have an outcome.

        It judges predictions given selection, ``predict(X, kind="selected")`` if a model has
        several kinds: marginal predictions are not meant for these rows. For a model with
        formulas, rows that lack a regressor cannot be predicted and are left out.

        Parameters
        ----------
        X : array or data frame
        y : array_like, optional
            NaN where missing. By default, a model with formulas computes it from X.
        sample_weight : array_like, optional
            By default, rows weigh the same, as everywhere in scikit-learn; but a model with
            formulas that was fitted with weights takes their column from X.
        selected : array_like of bool, optional
            As in `fit`; required if it was passed to `fit`. A selection formula needs none.

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        return score_rows(self, r2_score, X, y, sample_weight, selected)


def score_rows(
    model: ScoredRegressor,
    metric: Callable[..., float],
    X: Any,
    y: Any,
    sample_weight: Any,
    selected: Any,
) -> float:
    """Apply a metric to the rows that are selected and have an outcome and a prediction.

    Arguments are as in `ScoredRegressor.score`; Dask collections are computed.
    """
    check_is_fitted(model)
    refuse_rows(X)
    predicted, y, sample_weight, selected = compute_dask(
        *model._to_score(X, y, sample_weight, selected)
    )
    predicted = host(predicted)
    n = len(predicted)
    outcome, chosen = _outcomes(y, selected, n)
    rows = chosen & ~np.isnan(outcome) & ~np.isnan(predicted)
    weight = None if sample_weight is None else read_weights(on_host(sample_weight), n)
    if weight is not None:
        rows &= weight > 0
        weight = weight[rows]
    refuse_infinite_outcomes(int(np.count_nonzero(np.isinf(outcome[rows]))))
    if not rows.any():
        kind = "has an outcome" if selected is None else "is selected and has an outcome"
        raise InputError(
            f"none of these {n} rows {kind} to score on; if they are a fold of a "
            "cross-validation, split with heckmanfa.model_selection.SelectionKFold"
        )
    return float(metric(outcome[rows], predicted[rows], sample_weight=weight))


def check_selected(estimator: str, selected: Any, selected_given: bool) -> None:
    """Refuse to score without ``selected`` if it was passed to the fit."""
    if selected is None and selected_given:
        raise InputError(
            f"this {estimator} was fitted with selected, and a score without it would use other "
            f"rows: pass selected=... as well ({ROUTING})"
        )


def log_likelihood_of_rows(
    equations: Any, rho: float, sigma: float, y: Any, selected: Any, sample_weight: Any
) -> tuple[float, float]:
    """Sum the joint log-likelihood of selection and outcomes over rows.

    ``equations`` (n, 2) holds the selection index and the mean of each row; the others are as in
    `SelectionModel.log_likelihood`, perhaps Dask collections. Returns the weighted sum and the sum
    of weights. Rows that are selected and have no outcome are left out, as in a fit.
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
            f"{np.count_nonzero(missing)} rows lack a regressor that the likelihood needs, or "
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

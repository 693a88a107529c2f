"""The base of every model of the package: what its parameters may be, and how it is scored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.arrays import Floats, compute_dask, host, on_host
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.outcome_classes import encode_classes
from heckmanfa.data.outcomes import refuse_infinite_outcomes
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import flags, read_outcome, read_weights
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.estimators.rows_elsewhere import frames_to_score
from heckmanfa.model.series import LONGEST
from heckmanfa.search.averaging.weights import CORRECTIONS, WEIGHTINGS
from heckmanfa.text.wording import CRITERIA

Metric = Callable[..., float]

ROUTING = (
    "in a cross-validation or a grid search, call sklearn.set_config("
    "enable_metadata_routing=True) first: fit, the scorer and SelectionKFold then receive selected"
)


def one_of(*choices: str) -> StrOptions:
    """Return scikit-learn's check of a parameter, whose message lists the choices in this order."""
    # A view of keys is a set that keeps its order.
    return StrOptions(dict.fromkeys(choices).keys())


# What every parameter may be; a name means the same in all estimators.
_COLUMNS = ["array-like", None]
_AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_CORRELATION = Interval(Real, -1, 1, closed="neither")

PARAMETERS: dict[str, list[Any]] = {
    # Of every model.
    "prediction_features": _COLUMNS,
    "selection_features": _COLUMNS,
    "method": [one_of("two-step", "ml", "series")],
    "outcome_features": _COLUMNS,
    "treatment_features": _COLUMNS,
    "regimes": [one_of("common", "separate")],
    "errors": [one_of("normal", "t")],
    "cov_type": [one_of("classical", "robust", "cluster"), Survey, None],
    "weight_kind": [one_of("frequency", "sampling")],
    "on_collinear": [one_of("error", "drop")],
    "on_separation": [one_of("error", "drop")],
    "start": [_CORRELATION, "array-like", None],
    "rho": [_CORRELATION, None],
    "n_terms": [Interval(Integral, 1, LONGEST, closed="both"), None],
    "intercept": [one_of("at infinity"), None],
    "classes": _COLUMNS,
    "outcome_transform": [one_of("log", "log1p"), None],
    "categorical_features": ["array-like", one_of("from_dtype"), None],
    "reference": [dict, None],
    "unknown": [one_of("error", "missing")],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    # Of searches and averages.
    "rho_range": _COLUMNS,
    "always": _COLUMNS,
    "never": _COLUMNS,
    "max_features": [_AT_LEAST_ONE, None],
    "feature_groups": ["array-like", dict, None],
    "search_in": [one_of("prediction", "both")],
    "selection_always": _COLUMNS,
    "selection_never": _COLUMNS,
    "criterion": [one_of(*CRITERIA)],
    "honest": ["boolean"],
    "n_splits": [_AT_LEAST_ONE],
    "max_nodes": [_AT_LEAST_ONE, None],
    "tolerance": [_NOT_NEGATIVE, None],
    "n_refits": [_AT_LEAST_ONE],
    "power": [_NOT_NEGATIVE],
    "weights": [one_of(*WEIGHTINGS)],
    "all_features_share": [Interval(Real, 0, 1, closed="left")],
    "correction": [one_of(*CORRECTIONS)],
    # Of training.
    "extraction": [one_of("sample", "rank", "correlation")],
    "init_prob": [Interval(Real, 0, 1, closed="neither")],
    "epochs": [_AT_LEAST_ONE],
    "learning_rate": [_POSITIVE],
    "temperature": [_POSITIVE],
    "n_draws": [_AT_LEAST_ONE],
    "standardize": ["boolean", one_of("features")],
    "step_on": [one_of("log_pi", "pi")],
    "record_path": [Interval(Integral, 0, None, closed="left")],
    "train_rows": [_AT_LEAST_ONE, None],
    # Of baselines.
    "clip": [Interval(Real, 1, None, closed="left")],
    "trim": [Interval(Real, 0, 0.5, closed="neither"), None],
    "over": [str, Integral, None],
    "outcome_model": [HasMethods(["fit", "predict"]), None],
    "selection_model": [HasMethods(["fit", "predict_proba"]), None],
    "n_folds": [Interval(Integral, 2, None, closed="left")],
    "gamma": [Interval(Real, 1, None, closed="left")],
    "batch_size": [_AT_LEAST_ONE, None],
}


class _ScoredPart(NamedTuple):
    """The rows of a part that can be scored."""

    outcome: Floats
    predicted: Floats
    weight: Floats | None
    n_rows: int
    """all rows of the part"""
    flagged: bool
    """whether a column says who is selected"""


class ScoredModel(BaseEstimator):
    """A model that is fitted and scored on selected rows.

    Scikit-learn's metadata routing passes ``selected`` to `fit` and `score` without a request.
    """

    prediction_features_: list[Any]
    support_: Mask
    row_counts_: dict[str, int]
    n_selected_: float
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    encoded_names_: NDArray[Any]
    encoding_: Encoding | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PARAMETERS
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"selected": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"selected": True}

    def _keep(self, parameters: Mapping[str, Any]) -> None:
        """Set the parameters of a constructor, from its ``locals()``."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn's metadata routing passes to each method.

        It passes ``selected`` always, ``groups`` with ``cov_type="cluster"``, and others that
        ``set_fit_request`` or ``set_score_request`` requests.
        """
        request: MetadataRequest = super().get_metadata_routing()
        cov_type = getattr(self, "cov_type", "")
        if cov_type != "" and request.fit.requests.get("groups") is None:
            request.fit.add_request(param="groups", alias=cov_type == "cluster")
        return request

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, selected: Any = None
    ) -> float:
        """R^2, or the accuracy of classes, over the rows that are selected and have an outcome.

        It judges predictions given selection, ``predict(X, kind="selected")`` if a model has
        several kinds: marginal predictions are not meant for these rows. For a model with
        formulas, or with ``unknown="missing"``, rows that lack a regressor cannot be predicted and
        are left out.

        Parameters
        ----------
        X : array or data frame
            Or rows of `heckmanfa.scan`, which name the outcome and the other columns themselves.
        y : array_like, optional
            The outcome, missing where it was not observed. By default, a model with formulas
            computes it from X.
        sample_weight : array_like, optional
            By default, rows weigh the same, as everywhere in scikit-learn; but a model with
            formulas that was fitted with weights takes their column from X.
        selected : array_like of bool, optional
            As in `fit`; required if it was passed to `fit`. A selection formula needs none.

        Returns
        -------
        float
        """
        return self._score_rows(self._metric(), X, y, sample_weight, selected)

    @abstractmethod
    def _metric(self) -> Metric:
        """Return the metric of `score`."""

    @abstractmethod
    def _to_score(
        self, X: Any, y: Any, sample_weight: Any, selected: Any, *, drop: bool = False
    ) -> tuple[Any, ...]:
        """Return predictions given selection, the outcome, weights and who is selected.

        With ``drop``, rows that lack a feature are not refused: their prediction is NaN.
        """

    def _score_rows(
        self, metric: Metric, X: Any, y: Any, sample_weight: Any, selected: Any
    ) -> float:
        """Apply a metric to the rows that are selected and have an outcome and a prediction.

        Arguments are as in `score`; Dask collections are computed. Rows of a scan are predicted
        part by part, and only their outcomes and predictions are in memory.
        """
        check_is_fitted(self)
        if isinstance(X, ArrowRows):
            frames = frames_to_score(self, X, y, sample_weight, selected)
            parts = [self._scored_part(*frame, drop=X.drops_missing) for frame in frames]
        else:
            refuse_rows(X)
            match_rows({"X": X, "y": y, "selected": selected, "sample_weight": sample_weight})
            parts = [self._scored_part(X, y, sample_weight, selected, whole=True)]
        if not any(len(part.outcome) for part in parts):
            n = sum(part.n_rows for part in parts)
            flagged = any(part.flagged for part in parts)
            kind = "is selected and has an outcome" if flagged else "has an outcome"
            raise InputError(
                f"none of these {n} rows {kind} to score on; if they are a fold of a "
                "cross-validation, split with heckmanfa.model_selection.SelectionKFold"
            )
        weights = [part.weight for part in parts if part.weight is not None]
        return float(
            metric(
                np.concatenate([part.outcome for part in parts]),
                np.concatenate([part.predicted for part in parts]),
                sample_weight=np.concatenate(weights) if weights else None,
            )
        )

    def _scored_part(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        selected: Any,
        *,
        drop: bool = False,
        whole: bool = False,
    ) -> _ScoredPart:
        """Predict rows; ``drop`` is as in `_to_score`; ``whole`` says that there are no others."""
        predicted, y, sample_weight, selected = compute_dask(
            *self._to_score(X, y, sample_weight, selected, drop=drop)
        )
        predicted = host(predicted)
        n = len(predicted)
        outcome, chosen = self._read_outcome(y, n, selected)
        rows = chosen & ~np.isnan(outcome) & ~np.isnan(predicted)
        weight = None
        if sample_weight is not None:
            weight = read_weights(on_host(sample_weight), n, some=whole)
            rows &= weight > 0
            weight = weight[rows]
        refuse_infinite_outcomes(int(np.count_nonzero(np.isinf(outcome[rows]))))
        return _ScoredPart(outcome[rows], predicted[rows], weight, n, selected is not None)

    def _read_outcome(self, y: Any, n: int, selected: Any) -> tuple[Floats, Mask]:
        """Return the outcomes of n rows, NaN where missing, and who is selected."""
        chosen = None if selected is None else flags(on_host(selected), n)
        outcome = self._numbers_of(y, n, chosen)
        return outcome, ~np.isnan(outcome) if chosen is None else chosen

    def _numbers_of(self, y: Any, n: int, selected: Mask | None) -> Floats:
        return read_outcome(y, n)


class ScoredRegressor(RegressorMixin):
    """A regression that is scored on selected rows."""

    score = ScoredModel.score

    def _metric(self) -> Metric:
        from sklearn.metrics import r2_score

        metric: Metric = r2_score
        return metric


class ScoredClassifier(ClassifierMixin):
    """A classifier of two classes that is scored on selected rows.

    What it scores are probabilities of the positive class, and outcomes of 0 and 1.
    """

    classes_: NDArray[Any]

    score = ScoredModel.score

    def _metric(self) -> Metric:
        return _accuracy

    def _numbers_of(self, y: Any, n: int, selected: Mask | None) -> Floats:
        negative, positive = self.classes_.tolist()
        return encode_classes(y, n, (negative, positive), selected)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _accuracy(outcome: Floats, probability: Floats, sample_weight: Floats | None) -> float:
    return float(np.average((probability > 0.5) == outcome, weights=sample_weight))


def check_selected(estimator: str, selected: Any, selected_given: bool) -> None:
    """Refuse to score without ``selected`` if it was passed to the fit."""
    if selected is None and selected_given:
        raise InputError(
            f"this {estimator} was fitted with selected, and a score without it would use other "
            f"rows: pass selected=... as well ({ROUTING})"
        )

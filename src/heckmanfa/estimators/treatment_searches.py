"""Treatment models that settle the features of the outcome themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.estimators.averaged import AverageModel
from heckmanfa.estimators.search_base import ProvenSearch, RefittingSearch
from heckmanfa.estimators.treatment import TreatmentModel
from heckmanfa.search.averaging.weights import (
    ALL_FEATURES_SHARE,
    Correction,
    Weighting,
)
from heckmanfa.text.option_types import (
    CovType,
    Criterion,
    Method,
    OnProblem,
    Regimes,
    WeightKind,
)


class TreatmentAverage(AverageModel, TreatmentModel):
    """A treatment model averaged over all assignments of outcome features.

    Which features move the outcome, and which only drive treatment? Each assignment has a weight
    proportional to exp(-criterion / 2), as in `HeckmanAverage`. The treatment itself is in every
    assignment. One may hold each feature or group on its own, the correction (the hazard of
    treatment), and the index: what drives treatment moves the outcome too, in the same
    proportions. With ``regimes="separate"``, a feature moves the outcomes of both regimes, by a
    slope in each, or neither; the correction are both hazards, and the index has a coefficient in
    each.

    Parameters
    ----------
    weights, all_features_share, correction, always, never, max_features, feature_groups, \
random_state, verbose
        As in `HeckmanAverage`, of the features of the outcome. All rows have an outcome, so m is
        their number. With separate regimes, a feature counts as two coefficients.
    outcome_features : sequence of str, int or bool, optional
        Columns that may move the outcome; None is all of them. All must fit into one model.
    treatment_features, method, regimes, cov_type, weight_kind, on_collinear, on_separation, \
start, categorical_features, reference, unknown
        As in `TreatmentModel`, for the model of all features. ``cov_type=None`` is "robust" after
        two steps, and "classical" after maximum likelihood.

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features_in_,)
        Columns of X that move the outcome in at least half of the BIC weight; also
        ``prediction_features_``.
    inclusion_ : DataFrame
        As in `HeckmanAverage`. A feature's effect counts as positive or negative with separate
        regimes if it is in both.
    assignments_ : DataFrame
        As in `HeckmanAverage`; with separate regimes, both rhos, and the joint test of both hazards
        in place of that of lambda.
    n_assignments_, exhaustive_
        As in `HeckmanAverage`.

    Notes
    -----
    A fitted model also has all other attributes and methods of `TreatmentModel`, but `of_regime`.
    `effects` and `predict` average over the assignments; their intervals are quantiles of the
    mixture, and so allow for the choice of features.

    Examples
    --------
    >>> import numpy as np
    >>> from heckmanfa import TreatmentAverage
    >>> rng = np.random.default_rng(0)
    >>> X, u, v = rng.normal(size=(2000, 3)), *rng.normal(size=(2, 2000))
    >>> d = X[:, 0] + X[:, 1] + u > 0
    >>> y = 1 + X[:, 0] + 2 * d + 0.8 * u + 0.6 * v
    >>> model = TreatmentAverage(method="ml").fit(X, y, treated=d)
    >>> model.prediction_features_
    [0]
    >>> model.effects().loc[0, ["estimate", "ci_low", "ci_high"]].astype(float).round(1).tolist()
    [2.1, 2.0, 2.2]
    """

    rho_range: ClassVar[None] = None

    def __init__(
        self,
        weights: Weighting = "bic",
        *,
        all_features_share: float = ALL_FEATURES_SHARE,
        correction: Correction = "optional",
        always: Any = (),
        never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        random_state: Any = 0,
        verbose: int = 0,
        outcome_features: Any = None,
        treatment_features: Any = None,
        method: Method = "two-step",
        regimes: Regimes = "common",
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())


class TreatmentBestSubset(RefittingSearch, ProvenSearch, TreatmentModel):
    """A treatment model with the best assignment of outcome features.

    Branch and bound covers all 2^K assignments of features and proves which are best by the
    quadratic form of the model of all features, with the treatment and the hazard in each. With
    ``method="ml"``, maximum likelihood refits these, and its own criterion chooses. Two steps have
    no likelihood to refit: the form itself, the Wald statistic of what an assignment leaves out
    plus the penalty, is the criterion, as the corrected BIC of `HeckmanBestSubset` is.

    Parameters
    ----------
    criterion : {"bic", "ebic", "aic"}
        Which assignment is best, with all rows in the penalty; a feature counts as two
        coefficients with separate regimes.
    n_refits : int
        With method "ml": how many of the best assignments by the form are refitted.
    max_nodes, always, never, max_features, feature_groups, verbose
        As in `HeckmanProbitBestSubset`, of the features of the outcome.
    outcome_features : sequence of str, int or bool, optional
        Columns that may move the outcome; None is all of them. All must fit into one model.
    treatment_features, method, regimes, cov_type, weight_kind, on_collinear, on_separation, \
start, categorical_features, reference, unknown
        As in `TreatmentModel`. ``cov_type`` is also that of the form; ``start`` is for the chosen
        model. Standard errors ignore the search: `TreatmentAverage` has intervals that allow for
        it.

    Attributes
    ----------
    optimal_, gap_, n_assignments_
        As in `HeckmanProbitBestSubset`.
    candidates_ : DataFrame
        The best assignments. After two steps, criteria are relative to the model of all features.

    Examples
    --------
    >>> import numpy as np
    >>> from heckmanfa import TreatmentBestSubset
    >>> rng = np.random.default_rng(0)
    >>> X, u, v = rng.normal(size=(2000, 3)), *rng.normal(size=(2, 2000))
    >>> d = X[:, 0] + X[:, 1] + u > 0
    >>> y = 1 + X[:, 0] + 2 * d + 0.8 * u + 0.6 * v
    >>> TreatmentBestSubset().fit(X, y, treated=d).prediction_features_
    [0]
    """

    def __init__(
        self,
        criterion: Criterion = "bic",
        *,
        n_refits: int = 20,
        max_nodes: int | None = None,
        always: Any = (),
        never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        verbose: int = 0,
        outcome_features: Any = None,
        treatment_features: Any = None,
        method: Method = "two-step",
        regimes: Regimes = "common",
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def search_report(self, tolerance: float | None = None) -> Any:
        """Refused: its tables are of one outcome equation."""
        raise InputError(
            "search_report() is about one outcome equation, and a treatment model has an outcome "
            "with and without treatment: candidates_ has the assignments, and TreatmentAverage "
            "their weights"
        )

"""Ordered probits with selection that settle their prediction features themselves."""

from __future__ import annotations

from typing import Any

from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.survey import Survey
from heckmanfa.estimators.averaged import AverageModel
from heckmanfa.estimators.heckman_ordered import HeckmanOrdered
from heckmanfa.estimators.search_base import ProvenSearch, RefittingSearch
from heckmanfa.search.averaging.weights import (
    ALL_FEATURES_SHARE,
    Correction,
    Weighting,
)
from heckmanfa.text.option_types import CovType, Criterion, OnProblem, SearchIn, WeightKind


class HeckmanOrderedAverage(AverageModel, HeckmanOrdered):
    """An ordered probit with selection, averaged over all assignments of prediction features.

    As `HeckmanProbitAverage` is for two classes: assignments follow from the maximum of the
    likelihood with every feature in it, and the correction is atanh rho. The cut points are in
    every assignment, and move with what it holds. Probabilities are averages of the assignments'
    probabilities.

    Parameters
    ----------
    weights, all_features_share, correction, search_in, rho_range, always, never, \
selection_always, selection_never, max_features, feature_groups, random_state, verbose, \
prediction_features
        As in `HeckmanAverage`.
    selection_features, classes, cov_type, weight_kind, on_collinear, on_separation, start, \
categorical_features, reference, unknown
        As in `HeckmanOrdered`, for the model of all features.

    Attributes
    ----------
    coef_, intercept_, rho_, cut_points_
        Averages, as in `HeckmanAverage`.
    support_, inclusion_, assignments_, n_assignments_, exhaustive_
        As in `HeckmanAverage`.

    Notes
    -----
    A fitted model also has all other attributes and methods of `HeckmanOrdered`. If the likelihood
    of all features has no maximum inside, the correction is left out, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from heckmanfa import HeckmanOrderedAverage
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(1500, 4, 2, random_state=0)
    >>> grade = np.digitize(data.y, np.nanquantile(data.y, [0.3, 0.7])).astype(float)
    >>> grade[np.isnan(data.y)] = np.nan
    >>> HeckmanOrderedAverage().fit(data.X, grade).prediction_features_
    [0, 1]
    """

    def __init__(
        self,
        weights: Weighting = "bic",
        *,
        all_features_share: float = ALL_FEATURES_SHARE,
        correction: Correction = "optional",
        search_in: SearchIn = "prediction",
        rho_range: Any = None,
        always: Any = (),
        never: Any = (),
        selection_always: Any = (),
        selection_never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        random_state: Any = 0,
        verbose: int = 0,
        prediction_features: Any = None,
        selection_features: Any = None,
        classes: Any = None,
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


class HeckmanOrderedBestSubset(RefittingSearch, ProvenSearch, HeckmanOrdered):
    """An ordered probit with selection, with the best assignment of prediction features.

    As `HeckmanProbitBestSubset` is for two classes: branch and bound proves which assignments are
    best by the quadratic form of the model of all features, and maximum likelihood refits these.
    Cut points are in every assignment.

    Parameters
    ----------
    criterion, max_nodes, always, never, max_features, feature_groups, verbose
        As in `HeckmanProbitBestSubset`.
    n_refits : int
        How many of the best assignments by the approximation are refitted, each on its own.
    prediction_features, selection_features, classes, cov_type, weight_kind, on_collinear, \
on_separation, start, categorical_features, reference, unknown
        As in `HeckmanOrdered`; ``start`` is for the chosen model.

    Attributes
    ----------
    optimal_, gap_, candidates_, n_assignments_
        As in `HeckmanProbitBestSubset`.

    Examples
    --------
    >>> import numpy as np
    >>> from heckmanfa import HeckmanOrderedBestSubset
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(1500, 4, 2, random_state=0)
    >>> grade = np.digitize(data.y, np.nanquantile(data.y, [0.3, 0.7])).astype(float)
    >>> grade[np.isnan(data.y)] = np.nan
    >>> model = HeckmanOrderedBestSubset().fit(data.X, grade)
    >>> model.prediction_features_, model.optimal_
    ([0, 1], True)
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
        prediction_features: Any = None,
        selection_features: Any = None,
        classes: Any = None,
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

"""The base of searches for prediction features: what may be chosen, and the story afterwards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from heckmanfa.data.columns.features import FeatureTable, names_or_positions
from heckmanfa.data.random_state import generator
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import Positions, held
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import (
    AllObservedWarning,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    NotSearchedError,
    SearchWarning,
    warn,
)
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.inference.honest import Honest, over_splits
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.moments import Moments
from heckmanfa.results import search_report
from heckmanfa.search import Goal, Search
from heckmanfa.search.choices import Choices, feasible_choices, read_choices
from heckmanfa.search.criteria import CRITERIA, check_window

if TYPE_CHECKING:
    import pandas as pd

    from heckmanfa.data.sample import Sample

__all__ = ["SearchedHeckman"]


class SearchedHeckman(Heckman):
    """What both searches share: the choices, the story, and a `Heckman` afterwards."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Heckman._parameter_constraints,
        "criterion": [StrOptions(set(CRITERIA))],
        "rho_range": ["array-like", None],
        "always": ["array-like", None],
        "never": ["array-like", None],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "feature_groups": ["array-like", dict, None],
        "honest": ["boolean"],
        "n_splits": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    _search: Search | None
    """None where every outcome was observed, so that nothing was searched"""
    _candidates: tuple[int, ...]
    """columns that the search could choose from"""
    honest_: Honest
    """what each split gave, where ``honest`` asks for it"""
    _n_possible: int
    """how many assignments of them there are"""

    def __init__(
        self,
        *,
        criterion: str,
        rho_range: Any,
        always: Any,
        never: Any,
        max_features: int | None,
        feature_groups: Any,
        honest: bool,
        n_splits: int,
        random_state: Any,
        verbose: int,
        **heckman: Any,
    ) -> None:
        super().__init__(**heckman)
        self.criterion = criterion
        self.rho_range = rho_range
        self.always = always
        self.never = never
        self.max_features = max_features
        self.feature_groups = feature_groups
        self.honest = honest
        self.n_splits = n_splits
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _look(self, moments: Moments, selection: Selection, choices: Choices, goal: Goal) -> Search:
        """Search, and return what was looked at."""

    def _fit(self, X: Any, y: Any, selected: Any, sample_weight: Any, groups: Any) -> Self:
        if self.honest:
            # Random halves are drawn in memory.
            X, y, selected = on_host(X), on_host(y), on_host(selected)
            sample_weight, groups = on_host(sample_weight), on_host(groups)
        return super()._fit(X, y, selected, sample_weight, groups)

    def _check_parameters(self, sample_weight: Any, groups: Any) -> None:
        super()._check_parameters(sample_weight, groups)
        check_window(self.rho_range)

    def _choose(
        self,
        moments: Moments,
        selection: Selection,
        prediction: Positions,
        table: FeatureTable,
    ) -> list[int]:
        """Search for the prediction features."""
        choices = feasible_choices(
            self._read_choices(table), moments, selection.separating, self._names
        )
        goal = Goal.of(moments, self.criterion, self.rho_range)
        if not choices.columns:
            raise NoFeasibleAssignmentError(
                "no feature can predict: all that may are constant or collinear among the "
                "selected rows, or were left out for separation"
            )
        self._search = self._look(moments, selection, choices, goal)
        self._candidates, self._n_possible = choices.columns, choices.n_assignments
        best = self._search.best
        if self.honest:
            self.honest_ = over_splits(self, table, held(selection.rows, "honest=True"))
            best = self.honest_.chosen
        features = [int(one) for one in np.flatnonzero(best)]
        if set(selection.probit.features) <= set(features):
            warn(
                "every selection feature is among those chosen to predict: with no excluded "
                "feature, only the normality of the errors identifies the model. A feature that "
                "drives selection alone, named in never=[...], would identify it.",
                NoExclusionWarning,
            )
        return features

    def _finish(
        self,
        moments: Moments,
        selection: Selection,
        features: Positions,
        kind: CovarianceKind,
        table: FeatureTable,
    ) -> None:
        super()._finish(moments, selection, features, kind, table)
        if self.honest:
            self._set_honest()
        window = check_window(self.rho_range)
        if self.method == "ml" and window is not None and not window[0] <= self.rho_ <= window[1]:
            warn(
                f"maximum likelihood puts rho at {self.rho_:.4g}, outside rho_range = "
                f"[{window[0]:g}, {window[1]:g}]: the search goes by the two-step estimate",
                SearchWarning,
            )

    def _settled_on(self, features: Positions) -> Heckman:
        """Return the model of some features that are no longer searched for."""
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[list(features)] = True
        names = [one for one in Heckman._get_param_names() if one != "prediction_features"]
        parameters = {one: getattr(self, one) for one in names}
        parameters["start"] = elsewhere(read_start(self.start, self.method))
        return Heckman(mask, **parameters)

    def _split_seed(self) -> list[int]:
        """Draw what the random halves start from, apart from what the search draws."""
        return [int(one) for one in generator(self.random_state).integers(2**31, size=4)] + [1]

    def _set_honest(self) -> None:
        """Put the medians over splits in place of the estimates, with their standard errors.

        Correlations are those of the fit to all rows. The intercept is such that the prediction
        at the average selected row is the median one.
        """
        honest, k = self.honest_, self.n_features_in_
        values, errors = honest.medians(), honest.std_errors()
        means = np.zeros(k)
        means[list(self._moments.columns)] = self._moments.means[:-2]
        inside = self.support_
        level = np.median(
            honest.estimates[:, 0] + np.nan_to_num(honest.estimates[:, 1 : k + 1]) @ means
        )
        self.coef_[inside] = values[1 : k + 1][inside]
        self.intercept_ = float(level - self.coef_ @ means)
        self.imr_coef_, self.rho_, self.sigma_ = (float(one) for one in values[k + 1 :])
        spread = np.sqrt(np.diag(self._covariance))
        honest_spread = spread.copy()
        places = {"Intercept": 0, "imr": k + 1, "rho": k + 2, "sigma": k + 3}
        places |= {self._names[int(one)]: 1 + int(one) for one in np.flatnonzero(inside)}
        for place, (equation, term) in enumerate(self._terms):
            if equation != "selection":
                honest_spread[place] = errors[places[term]]
        ratio = honest_spread / spread
        self._covariance = self._covariance * ratio * ratio[:, None]
        if self._atanh_rho is not None:
            self._atanh_rho = (
                float(np.arctanh(self.rho_)),
                float(errors[k + 2] / (1.0 - self.rho_**2)),
            )
            self._log_sigma = float(np.log(self.sigma_)), float(errors[k + 3] / self.sigma_)

    def _prediction(self, table: FeatureTable) -> list[int]:
        """Columns that an assignment may hold; those in ``never`` are not read."""
        return list(self._read_choices(table).columns)

    def _read_choices(self, table: FeatureTable) -> Choices:
        """Read what may be chosen."""
        return read_choices(
            table,
            super()._prediction(table),
            always=self.always,
            never=self.never,
            feature_groups=self.feature_groups,
            default_groups=table.native.feature_groups
            if isinstance(table.native, RowSource)
            else (),
            max_features=self.max_features,
        )

    def _fit_all_observed(
        self, table: FeatureTable, sample: Sample, prediction: Positions, kind: CovarianceKind
    ) -> None:
        """No outcome is missing: nothing tells selection features apart, so none is searched."""
        self._search, self._candidates = None, tuple(prediction)
        super()._fit_all_observed(table, sample, prediction, kind)
        if self.max_features is not None and self.max_features < len(prediction):
            warn(
                f"nothing was searched, so all {len(prediction)} features that may predict "
                f"do: max_features = {self.max_features} is not used",
                AllObservedWarning,
            )

    # The story. -----------------------------------------------------------------------------------

    @property
    def candidates_(self) -> pd.DataFrame:
        """The distinct assignments looked at, those in the window first, the best 10,000."""
        return self._searched().to_frame(self._feature_labels())

    @property
    def n_assignments_(self) -> int:
        """How many distinct assignments were looked at."""
        check_is_fitted(self)
        return 0 if self._search is None else self._search.n_assignments

    def search_report(self, tolerance: float | None = None) -> search_report.SearchReport:
        """Tell how the features were found, what came next, and how much the choice matters.

        Parameters
        ----------
        tolerance : float, optional
            How much worse in the criterion counts as nearly as good: unless given, the
            ``tolerance`` of the search, or 0.001 of adjusted R^2 and 2 of AIC and BIC.

        Returns
        -------
        SearchReport
            With the runner-ups, and how rho and each coefficient vary among the assignments
            nearly as good. A search by proof keeps every one of these; the others only know what
            they looked at.
        """
        self._searched()
        return search_report.report_search(self, tolerance)

    def _searched(self) -> Search:
        check_is_fitted(self)
        if self._search is None:
            raise NotSearchedError("no outcome was missing in the fit, so nothing was searched")
        return self._search

    def _feature_labels(self) -> list[Any]:
        names = getattr(self, "feature_names_in_", None)
        return names_or_positions(names, range(self.n_features_in_))

    @property
    def _is_search(self) -> bool:
        return True

    def _for_replicates(self) -> Self:
        model = super()._for_replicates()
        model.set_params(verbose=0)
        return model

    def _refuse_interrupted(self) -> None:
        if self._search is not None and self._search.interrupted:
            raise KeyboardInterrupt

    @property
    def _rho_is_conditioned(self) -> bool:
        # An honest rho is estimated on rows that had no part in the choice.
        return self._window is not None and not self.honest

    @property
    def _window(self) -> tuple[float, float] | None:
        """The window of rho that was searched in."""
        return None if self._search is None else self._search.goal.rho_range

    @classmethod
    def _with_terms(cls, parameters: dict[str, Any], terms: dict[str, list[str]]) -> dict[str, Any]:
        """Let terms of the prediction formula be named, and the columns of each move as one."""
        by_text = {text.replace(" ", ""): columns for text, columns in terms.items()}

        def columns_of(names: Any) -> Any:
            if names is None or isinstance(names, str):
                return names
            found: list[Any] = []
            for name in names:
                key = name.replace(" ", "") if isinstance(name, str) else name
                found += by_text.get(key, [name])
            return found

        parameters = dict(parameters)
        for role in ("always", "never"):
            if role in parameters:
                parameters[role] = columns_of(parameters[role])
        given = parameters.get("feature_groups") or []
        if isinstance(given, Mapping):
            given = list(given.values())
        if isinstance(given, str):
            return parameters
        groups = [columns_of(group) for group in given]
        taken = {name for group in groups if not isinstance(group, str) for name in group}
        groups += [
            columns for columns in terms.values() if len(columns) > 1 and not taken & {*columns}
        ]
        parameters["feature_groups"] = groups or None
        return parameters

    def _comparison(self) -> tuple[pd.DataFrame, list[str]] | None:
        return None if self._search is None else search_report.compare(self)

"""The base of searches for prediction features: what may be chosen, and the story afterwards."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from heckmanfa import search_report
from heckmanfa.choices import Choices, read_choices, settle
from heckmanfa.equations import Selection
from heckmanfa.errors import (
    InputError,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    warn,
)
from heckmanfa.estimators import Heckman
from heckmanfa.extraction import Goal, Search
from heckmanfa.extraction.criteria import CRITERIA, check_window
from heckmanfa.features import FeatureTable, names_or_positions
from heckmanfa.moments import Moments
from heckmanfa.rows import Positions
from heckmanfa.sandwich import CovarianceKind

if TYPE_CHECKING:
    import pandas as pd

    from heckmanfa.intake import Sample

__all__ = ["SearchedHeckman"]


class SearchedHeckman(Heckman):
    """What both searches share: the choices, the story, and a `Heckman` afterwards."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Heckman._parameter_constraints,
        "criterion": [StrOptions(set(CRITERIA))],
        "rho_range": ["array-like", None],
        "always": ["array-like"],
        "never": ["array-like"],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "feature_groups": ["array-like", dict, None],
        "verbose": ["verbose"],
    }

    _search: Search | None
    """None where every outcome was observed, so that nothing was searched"""
    _candidates: tuple[int, ...]
    """columns that the search could choose from"""
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
        self.verbose = verbose

    @abstractmethod
    def _look(self, moments: Moments, selection: Selection, choices: Choices, goal: Goal) -> Search:
        """Search, and return what was looked at."""

    def _check_parameters(self, sample_weight: Any, groups: Any) -> None:
        for role in ("always", "never"):
            one = getattr(self, role)
            if isinstance(one, str):
                raise InputError(f"{role} must be a list of columns: write [{one!r}], not {one!r}")
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
        choices = self._read_choices(table, selection.separating, prediction)
        choices = settle(choices, moments, selection.separating, self._names)
        goal = Goal.of(moments, self.criterion, self.rho_range)
        if not choices.columns:
            raise NoFeasibleAssignmentError(
                "no feature can predict: all that may are constant among the selected rows"
            )
        self._search = self._look(moments, selection, choices, goal)
        self._candidates, self._n_possible = choices.columns, choices.n_assignments
        features = [int(one) for one in np.flatnonzero(self._search.best)]
        if set(selection.probit.features) <= set(features):
            warn(
                "the search chose every selection feature: with no excluded feature, only the "
                "normality of the errors identifies the model. Force a feature that drives "
                "selection alone out with never=[...], or use criterion='bic'.",
                NoExclusionWarning,
            )
        return features

    def _read_choices(
        self, table: FeatureTable, separating: Positions, prediction: Positions
    ) -> Choices:
        """Read what may be chosen, before columns were left out for separation."""
        return read_choices(
            table,
            sorted({*prediction, *separating}),
            always=self.always,
            never=self.never,
            feature_groups=self.feature_groups,
            max_features=self.max_features,
        )

    def _fit_all_observed(
        self, table: FeatureTable, sample: Sample, prediction: Positions, kind: CovarianceKind
    ) -> None:
        """No outcome is missing: nothing tells selection features apart, so none is searched."""
        choices = self._read_choices(table, [], prediction)
        self._search, self._candidates = None, choices.columns
        super()._fit_all_observed(table, sample, choices.columns, kind)

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
            How much worse in the criterion counts as nearly as good: 0.001 of adjusted R^2, or 2
            of AIC and BIC, unless given.

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
            raise NotIdentifiedError(
                "no outcome was missing in the fit, so that nothing was searched"
            )
        return self._search

    def _feature_labels(self) -> list[Any]:
        names = getattr(self, "feature_names_in_", None)
        return names_or_positions(names, range(self.n_features_in_))

    @property
    def _rho_is_conditioned(self) -> bool:
        return self._search is not None and self._search.goal.rho_range is not None

    def _search_notes(self) -> list[str]:
        """What a reader of the estimates has to know about the search."""
        if self._search is None:
            return ["Nothing was searched: no outcome is missing."]
        search = self._search
        n = f"{search.n_assignments:,}"
        if search.optimal:
            notes = [
                f"The prediction features are the best by {self.criterion} of all "
                f"{self._n_possible:,} assignments, by proof; {n} were looked at, and the others "
                "ruled out by bounds."
            ]
        else:
            gap = "" if search.gap is None else f"; one better by {search.gap:.3g} may exist"
            notes = [
                f"The prediction features are the best by {self.criterion} of the {n} assignments "
                f"looked at, out of {self._n_possible:,}{gap}."
            ]
        notes.append(
            "Standard errors, intervals and p-values ignore the search: they are those of a model "
            "whose features were known beforehand, and are too small."
        )
        if search.goal.rho_range is not None:
            low, high = search.goal.rho_range
            share = search.n_in_range / search.n_assignments
            notes.append(
                f"rho was conditioned on: only assignments with rho in [{low:g}, {high:g}] were "
                f"allowed ({100 * share:.2g}% of those looked at). It is no evidence of selection "
                "bias, and no test of rho = 0 is reported."
            )
        if search.interrupted:
            notes.append("The search was interrupted.")
        return notes

    def _comparison(self) -> tuple[pd.DataFrame, list[str]] | None:
        return None if self._search is None else search_report.compare(self)

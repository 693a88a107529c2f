"""The search for prediction features as a step of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from heckmanfa.data.rows import Mask
from heckmanfa.errors import (
    AllObservedWarning,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    SearchWarning,
    warn,
)
from heckmanfa.fit import Choice, Fit, Spec
from heckmanfa.model.equations import Selection
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices, feasible_choices
from heckmanfa.search.evaluation import Goal
from heckmanfa.search.outcome import SearchOutcome
from heckmanfa.search.strategies import Problem, Strategy


@dataclass(frozen=True)
class Searching:
    """Chooses the prediction features by a search."""

    choices: Choices
    criterion: str
    rho_range: tuple[float, float] | None
    max_features: int | None
    strategy: Strategy

    def __call__(
        self, spec: Spec, selection: Selection, moments: Moments, random_state: Any
    ) -> Choice:
        """Search, and choose the best assignment."""
        outcome = self.search(spec, selection, moments, random_state)
        assert outcome.result is not None
        return choice_of(selection, outcome.result.best, outcome)

    def search(
        self, spec: Spec, selection: Selection, moments: Moments, random_state: Any
    ) -> SearchOutcome:
        """Evaluate assignments of the features that can predict."""
        choices = feasible_choices(self.choices, moments, selection.separating, spec.labels)
        goal = Goal.of(moments, self.criterion, self.rho_range)
        if not choices.columns:
            raise NoFeasibleAssignmentError(
                "no feature can predict: all that may are constant or collinear among the "
                "selected rows, or were left out for separation"
            )
        problem = Problem(moments, selection.rows, choices, goal, spec.labels, random_state)
        result, training = self.strategy(problem)
        return SearchOutcome(self.choices, choices.columns, result, choices.n_assignments, training)

    def without_selection(self, spec: Spec) -> SearchOutcome:
        """Say that nothing was searched, since no outcome is missing."""
        n = len(spec.prediction)
        if self.max_features is not None and self.max_features < n:
            warn(
                f"nothing was searched, so all {n} features that may predict do: max_features = "
                f"{self.max_features} is not used",
                AllObservedWarning,
            )
        return SearchOutcome(self.choices, spec.prediction)

    def finish(self, fit: Fit) -> Fit:
        """Warn if maximum likelihood left the window of rho."""
        window = self.rho_range
        outside = window is not None and not window[0] <= fit.rho <= window[1]
        if fit.spec.method == "ml" and window is not None and outside and fit.probit is not None:
            warn(
                f"maximum likelihood puts rho at {fit.rho:.4g}, outside rho_range = "
                f"[{window[0]:g}, {window[1]:g}]: the search goes by the two-step estimate",
                SearchWarning,
            )
        return fit

    def for_replicates(self) -> Self:
        """Return the same search for many fits of which only the estimates are used."""
        return replace(self, strategy=self.strategy.for_replicates())


def choice_of(selection: Selection, best: Mask, outcome: SearchOutcome) -> Choice:
    """Return an assignment as the choice of a search; warn if it excludes no feature."""
    features = tuple(int(column) for column in np.flatnonzero(best))
    if set(selection.probit.features) <= set(features):
        warn(
            "every selection feature is among those chosen to predict: with no excluded "
            "feature, only the normality of the errors identifies the model. A feature that "
            "drives selection alone, named in never=[...], would identify it.",
            NoExclusionWarning,
        )
    return Choice(features, search=outcome)

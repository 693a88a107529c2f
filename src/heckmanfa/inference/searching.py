"""How a fit gets its prediction features: as the user gives them, or by a search."""

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
    TooFewRowsError,
    warn,
)
from heckmanfa.fit import Choice, Choose, Fit, Spec
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection, check_prediction, weighted_count
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices, feasible_choices
from heckmanfa.search.form import QuadraticForm, form_of_all
from heckmanfa.search.full_model import FullModel, centred, fit_all, without_collinear
from heckmanfa.search.goal import Goal
from heckmanfa.search.joint_model import everything
from heckmanfa.search.searched import SearchOutcome
from heckmanfa.search.strategies import SearchProblem, Strategy
from heckmanfa.text.option_types import CovType, Criterion
from heckmanfa.text.option_words import IN_NEVER, OUT_OF_PREDICTION, option
from heckmanfa.text.wording import NO_EXCLUSION, ONLY_NORMALITY

COULD_IDENTIFY = f"A feature that drives selection alone, named {IN_NEVER}, would identify it."


def warn_no_exclusion(what: str, advice: str) -> None:
    """Warn that nothing is excluded; ``what`` says of every selection feature that it predicts."""
    warn(
        f"every selection feature {what}: {NO_EXCLUSION}, and {ONLY_NORMALITY}. {advice}",
        NoExclusionWarning,
    )


@dataclass(frozen=True)
class GivenFeatures(Choose):
    """Uses all columns that may predict: the choice of `Heckman`."""

    def __call__(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        kind: CovarianceKind,
        random_state: Any = None,
    ) -> Choice:
        """Refuse or drop collinear columns, and warn if nothing is excluded.

        A rho that is held at a value needs no exclusion.
        """
        prediction = [column for column in spec.prediction if column not in selection.separating]
        held = spec.rho is not None
        n_least = len(prediction) + (1 if held else 2)
        if moments.n_selected <= n_least:
            third = spec.family.words.correction_parameter
            what = " and an intercept" if held else f", an intercept and {third}"
            raise TooFewRowsError(
                f"{len(prediction)} prediction features{what} need more than {n_least} selected "
                f"rows; there are {weighted_count(moments.n_selected)}"
            )
        features, dropped = check_prediction(moments, prediction, spec.labels, spec.on_collinear)
        if not held and set(selection.probit.features) <= set(features):
            warn_no_exclusion(
                "also predicts", f"Leave a feature that drives selection alone {OUT_OF_PREDICTION}."
            )
        return Choice(tuple(features), tuple(dropped))


@dataclass(frozen=True)
class Searching:
    """Chooses the prediction features by a search."""

    choices: Choices
    criterion: Criterion
    rho_range: tuple[float, float] | None
    max_features: int | None
    strategy: Strategy
    cov_type: CovType | None = None
    """covariance of the estimates of all features in the corrected BIC; None is classical"""
    selecting: Choices | None = None
    """what may drive selection, if both equations are searched"""

    def __call__(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        kind: CovarianceKind,
        random_state: Any,
    ) -> Choice:
        """Search, and choose the best assignment."""
        outcome = self.search(spec, selection, moments, kind, random_state)
        assert outcome.result is not None
        return choice_of(selection, outcome.result.best, outcome)

    def search(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        kind: CovarianceKind,
        random_state: Any,
    ) -> SearchOutcome:
        """Evaluate assignments of the features that can predict."""
        choices = feasible_choices(
            self.choices, moments, selection.separating, selection.dropped, spec.labels
        )
        if not choices.columns:
            raise NoFeasibleAssignmentError(
                "no feature can predict: all that may are constant or collinear among the "
                "selected rows, or were left out for separation"
            )
        if self.selecting is not None:
            choices = without_collinear(choices, moments, spec.labels, spec.on_collinear)
            compressed = "compressed data" in spec.family.supports
            joint = everything(moments, selection, choices, self.selecting, binary=not compressed)
            result, _ = self.strategy(joint.problem(self.criterion, spec.labels))
            return SearchOutcome(
                *(self.choices, choices.columns, result, joint.choices.n_assignments),
                selecting=self.selecting,
                form=joint.form,
            )
        full: FullModel | None = None
        if "compressed data" not in spec.family.supports:
            choices = without_collinear(choices, moments, spec.labels, spec.on_collinear)
            m, rows = moments.n_selected, selection.rows
            full = fit_all(moments, selection, choices.columns)
            full = centred(full, rows, choices, self.criterion, m)
            goal = Goal.of_form(full.form, choices, self.criterion, moments.n_selected)
        else:
            form = self._form(spec, selection, moments, choices, kind)
            goal = Goal.of(moments, self.criterion, self.rho_range, form)
        problem = SearchProblem(
            moments, selection.rows, choices, goal, spec.labels, random_state, full
        )
        result, training = self.strategy(problem)
        return SearchOutcome(self.choices, choices.columns, result, choices.n_assignments, training)

    def _form(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        choices: Choices,
        kind: CovarianceKind,
    ) -> QuadraticForm | None:
        """Return the form of the corrected BIC; None for other criteria."""
        if self.criterion != "corrected_bic":
            return None
        # A fit of many knows no covariance but the classical; its search has the model's.
        cov_type = self.cov_type or "classical"
        if cov_type == "cluster" and not kind.n_groups:
            cov_type = "robust"  # a bootstrap weights rows, which have no groups then
        kind = replace(kind, cov_type=cov_type)
        return form_of_all(moments, choices.columns, spec.labels, kind, selection.rows)

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

    def finish(
        self, fit: Fit, selection: Selection, kind: CovarianceKind, random_state: Any
    ) -> Fit:
        """Warn if maximum likelihood left the window of rho."""
        window = self.rho_range
        outside = window is not None and not window[0] <= fit.rho <= window[1]
        if fit.spec.method == "ml" and window is not None and outside and fit.probit is not None:
            warn(
                f"maximum likelihood puts rho at {fit.rho:.4g}, outside {option('rho_range')} = "
                f"[{window[0]:g}, {window[1]:g}]: the search uses the two-step estimate",
                SearchWarning,
            )
        return fit

    @property
    def by_covariance(self) -> bool:
        """Whether the criterion depends on the covariance of the estimates of all features."""
        return self.criterion == "corrected_bic"

    def for_replicates(self) -> Self:
        """Return the same search for many fits of which only the estimates are used."""
        return replace(self, strategy=self.strategy.for_replicates())


def choice_of(selection: Selection, best: Mask, outcome: SearchOutcome) -> Choice:
    """Return an assignment as the choice of a search; warn if it excludes no feature."""
    features = tuple(int(column) for column in np.flatnonzero(best))
    result = outcome.result
    driving: tuple[int, ...] | None = None
    if result is not None and result.selecting is not None:
        driving = tuple(int(column) for column in np.flatnonzero(result.selecting[0]))
    if {*(selection.probit.features if driving is None else driving)} <= {*features}:
        warn_no_exclusion("is among those chosen to predict", COULD_IDENTIFY)
    rho = None
    if result is not None and result.refits is not None and np.array_equal(best, result.best):
        rho = float(result.rho[0])
    return Choice(features, search=outcome, selection=driving, rho=rho)

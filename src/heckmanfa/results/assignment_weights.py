"""What a choice hides: how the weight of all assignments is spread, behind the one chosen.

An assignment S weighs exp(-BIC_S / 2), with what it costs to drop the others by the `Form` of the
model in which everything is. The correction and the index compete with the features. The weights
say how much of what the data can tell about the features the chosen assignment holds. They follow
BIC here; shares of features are also given by AIC and EBIC. Nothing is kept: whoever needs weights
twice holds them, as `heckmanfa.results.evidence.Evidence` does.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import (
    CollinearError,
    InputError,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    SearchWarning,
    TooFewRowsError,
)
from heckmanfa.fit import Fit
from heckmanfa.fit.full_form import form_of_candidates
from heckmanfa.results.assignment_tests import StandIn, rho_mixture, stand_ins_of
from heckmanfa.results.average_tables import has_pseudo_weights
from heckmanfa.search.averaging import WEIGHT_CRITERIA, Average, WeightCriterion, average
from heckmanfa.search.averaging.averages import MOST_UNITS, with_drivers
from heckmanfa.search.averaging.gibbs import LEAST_SWEEPS
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import with_shares_of
from heckmanfa.search.averaging.weights import Correction
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form
from heckmanfa.text.chances import CHANCES_BY

QUICK_UNITS = 18
"""With more features or groups, weighing the assignments behind a search takes seconds."""

Effort = Literal["quick", "rough", "full"]
"""how long weighing may take: up to `QUICK_UNITS`; always, with short chains where assignments must
be sampled; or always, with long chains"""

# The same fit gets the same words.
_SEED = 0

_LATER = (
    "The weights of all assignments take a while to compute, so chances are not given here; "
    "search_report() has them."
)
_NO_WEIGHT = (
    "No assignment has weight: those that are feasible have more columns than a third of the "
    "selected rows."
)


@dataclass(frozen=True)
class LeftOut:
    """The candidates that do not predict, in the model in which all candidates do."""

    columns: tuple[int, ...]
    chi2: float
    """their joint Wald statistic; NaN if that model cannot be fitted. The covariance is Heckman's,
    or that of the search if it was by the corrected BIC"""

    @property
    def df(self) -> int:
        """Degrees of freedom."""
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class AssignmentWeights:
    """The weights of all assignments that a search or an average allows."""

    form: Form
    """the model of everything, from which they follow"""
    mixture: Average
    """by BIC weights"""
    chosen: float | None
    """BIC weight of the chosen features, with and without the correction; None if nothing was
    chosen, or what was chosen is not one of the assignments allowed, or far better than all that a
    sampler drew"""
    left_out: LeftOut | None
    """None if nothing was chosen, or nothing was left out"""
    stand_ins: tuple[StandIn, ...] | None
    """the largest difference first; None if they were not looked for: in a window of rho, or if the
    correction is not optional"""
    rho_interval: tuple[float, float] | None
    """where rho lies with 95%, by the mixture of the assignments; None in a window"""
    component_rho: Floats
    """(C,) rho of the average's components"""

    @property
    def correction(self) -> dict[WeightCriterion, float] | None:
        """Share of weight that holds the correction; None unless it is optional."""
        found = self.mixture
        judged = found.correction == "optional" and found.rho_range is None
        return found.correction_share if judged else None

    @property
    def corrected(self) -> float | None:
        """Chance that the correction is needed; None unless it is optional."""
        return None if self.correction is None else self.correction[CHANCES_BY]

    @property
    def index(self) -> dict[WeightCriterion, float] | None:
        """Share of weight that holds the index; None if it was not offered."""
        return self.mixture.index_share if self.mixture.has_index else None

    @property
    def best(self) -> float:
        """BIC weight of the heaviest assignment."""
        return self.mixture.best_weight["bic"]

    @property
    def chosen_is_best(self) -> bool:
        """Whether no assignment is heavier than the chosen one."""
        return self.chosen is not None and self.chosen >= self.best * (1.0 - 1e-8)

    @property
    def n_half(self) -> int:
        """How many of the heaviest assignments carry half of the BIC weight."""
        return self.mixture.n_half["bic"]

    @property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The features and groups that may be in or out."""
        return self.mixture.choices.units

    def share(self, unit: tuple[int, ...], kind: WeightCriterion = CHANCES_BY) -> float:
        """Share of weight that holds a feature or group."""
        return float(self.mixture.shares[kind][unit[0]])

    def moved(self) -> list[tuple[int, ...]]:
        """Features and groups that some kinds of weights rather hold, and others rather do not."""
        return [
            unit
            for unit in self.units
            if len({self.share(unit, kind) >= 0.5 for kind in WEIGHT_CRITERIA}) > 1
        ]


def weights_of(fit: Fit, effort: Effort = "full") -> AssignmentWeights | str | None:
    """Weigh the assignments behind a search or an average, or say in a sentence why not.

    None where nothing was searched, so that there is nothing to weigh.
    """
    if fit.probit is None or (fit.average is None and not (fit.search and fit.search.chose)):
        return None
    if has_pseudo_weights(fit):
        return (
            "With sampling weights there is no likelihood to weigh assignments by: how sure the "
            "choice is, is not said."
        )
    if fit.average is not None:
        return _weigh(fit)
    n_units = n_units_of(fit)
    if effort == "quick" and n_units > QUICK_UNITS:
        return _LATER
    rough = effort == "rough" and n_units > MOST_UNITS
    return _weigh(fit, max_sweeps=LEAST_SWEEPS if rough else None)


def choices_of(fit: Fit) -> Choices:
    """Return the assignments that could be chosen in the rows of the fit."""
    if fit.average is not None:
        return fit.average.mixture.choices
    assert fit.search is not None
    allowed, candidates = fit.search.choices, {*fit.search.candidates}
    return allowed.without_columns([c for c in allowed.columns if c not in candidates])


def selecting_of(fit: Fit) -> Choices | None:
    """Return which columns may drive selection; None if the selection equation is not searched."""
    if fit.average is not None:
        return fit.average.mixture.selecting
    search = fit.search
    if search is None or search.selecting is None or search.form is None:
        return None
    return search.selecting.without_columns(
        [column for column in search.selecting.columns if column not in search.form.searched]
    )


def n_units_of(fit: Fit) -> int:
    """Count the features and groups that may be in or out, in both equations if both may."""
    selecting = selecting_of(fit)
    return len(choices_of(fit).units) + (0 if selecting is None else len(selecting.units))


def _selecting(fit: Fit) -> Mask:
    """(K,) which columns the selection equation of a fit has."""
    return np.isin(np.arange(fit.n_features), fit.driving)


def _weigh(fit: Fit, max_sweeps: int | None = None) -> AssignmentWeights | str:
    """Weigh all assignments by BIC, or many that a sampler draws."""
    choices, selecting, window = choices_of(fit), selecting_of(fit), _window(fit)
    found: Average | None = None
    correction: Correction = "optional"
    if fit.average is not None:
        form, given = fit.average.form, fit.average.mixture
        correction = given.correction
        if given.exhaustive:
            found = given if given.weights == "bic" else None
        else:
            # The shares are known; the heaviest by BIC take a short run.
            max_sweeps = LEAST_SWEEPS
    else:
        try:
            form = form_of_candidates(fit, choices)
        except (CollinearError, NotIdentifiedError, TooFewRowsError) as error:
            return f"Assignments are not weighed: {error}"
        correction = "optional" if form.knows_correction else "never"
    if found is None:
        with warnings.catch_warnings():
            # The words about the weights say whether the sampler's chains agree.
            warnings.simplefilter("ignore", SearchWarning)
            try:
                if fit.average is None and selecting is not None:
                    form = with_drivers(form, selecting)
                found = average(
                    form,
                    choices,
                    weights="bic",
                    correction=correction,
                    rho_range=window,
                    random_state=_SEED,
                    max_sweeps=max_sweeps,
                    selecting=selecting,
                )
            except NoFeasibleAssignmentError:
                return _NO_WEIGHT
            except InputError as error:
                return str(error)
    if fit.average is not None and not found.exhaustive:
        found = with_shares_of(found, fit.average.mixture)
    rho = rho_mixture(form, found)
    judged = window is None and correction == "optional"
    chose = fit.average is None
    return AssignmentWeights(
        form=form,
        mixture=found,
        chosen=_chosen_weight(fit, form, found) if chose else None,
        left_out=_left_out(fit, form) if chose else None,
        stand_ins=stand_ins_of(found) if judged else None,
        rho_interval=None if window else rho.interval,
        component_rho=rho.rho,
    )


def _window(fit: Fit) -> tuple[float, float] | None:
    if fit.average is not None:
        return fit.average.mixture.rho_range
    return None if fit.search is None else fit.search.window


def _chosen_weight(fit: Fit, form: Form, found: Average) -> float | None:
    """BIC weight of the features of a fit, with and without the correction."""
    choices, own = found.joint, form.state_of(fit.support, _selecting(fit))
    inside = np.array([bool(own[unit[0]]) for unit in choices.units], dtype=bool)
    if not np.array_equal(choices.masks(inside), own[:-2]):
        return None
    held = {"optional": (False, True), "always": (True,), "never": (False,)}[found.correction]
    states = np.array([found.leading_states[0], *[own] * len(held)])
    states[1:, -2] = held
    members = Members(form, states, np.ones(len(states)))
    rho = members.terms[:, form.correction + (form.errors != "binary")]
    criterion = found.criteria(states, members.costs)["bic"]
    if found.rho_range is not None:
        low, high = found.rho_range
        criterion[(rho < low) | (rho > high)] = np.inf
    relative = np.exp(-0.5 * (criterion[1:] - criterion[0]))
    weight = float(found.best_weight["bic"] * relative.sum())
    # A sampler may have missed the assignment that a search found; then visits do not weigh it.
    return min(weight, 1.0) if found.exhaustive or weight <= 1.0 else None


def _left_out(fit: Fit, form: Form) -> LeftOut | None:
    """Describe jointly, in the model of all candidates, those that were not chosen."""
    away = tuple(column for column in form.columns if not fit.support[column])
    if not away:
        return None
    known = fit.search.result.goal.form if fit.search and fit.search.result else None
    if known is not None:
        return LeftOut(away, float(known.dropped(np.asarray(fit.support, dtype=bool))))
    own = form.state_of(fit.support)
    return LeftOut(away, float(Members(form, own[None], np.ones(1)).costs[0]))

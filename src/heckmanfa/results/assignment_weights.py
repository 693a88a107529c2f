"""What a choice hides: how the weight of all assignments is spread, behind the one chosen.

An assignment S weighs exp(-BIC_S / 2), with what it costs to drop the others by the `Form` of the
model in which everything is. The correction and the index compete with the features. The weights
say how much of what the data can tell about the features the chosen assignment holds. They follow
BIC here; shares of features are also given by AIC and EBIC. Nothing is kept: whoever needs weights
twice holds them, as `heckmanfa.results.evidence.Evidence` does.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import (
    CollinearError,
    InputError,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    SearchWarning,
    TooFewRowsError,
)
from heckmanfa.fit import Fit, Way
from heckmanfa.fit.full_form import form_of_candidates
from heckmanfa.results.average_tables import TermMixture, has_pseudo_weights
from heckmanfa.results.distribution import tails
from heckmanfa.search.averaging import WEIGHT_CRITERIA, Average, WeightCriterion, average
from heckmanfa.search.averaging.averages import MOST_UNITS, with_drivers
from heckmanfa.search.averaging.gibbs import LEAST_SWEEPS
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import with_shares_of
from heckmanfa.search.averaging.weights import Correction
from heckmanfa.search.form import Form
from heckmanfa.text.chances import CHANCES_BY, says
from heckmanfa.text.wording import PSEUDO_WEIGHTS, capitalised

STAND_IN = 0.5
"""A feature stands in for the correction if the share of weight that holds the correction differs
by this much between assignments with and without it."""


@dataclass(frozen=True)
class StandIn:
    """A feature or group with and without which the share of the correction differs."""

    columns: tuple[int, ...]
    corrected_with: float
    """share of weight that holds the correction, of the assignments that hold it"""
    corrected_without: float
    """likewise, of the others"""

    @property
    def difference(self) -> float:
        """How far the two shares are apart."""
        return abs(self.corrected_with - self.corrected_without)


def stand_ins_of(mixture: Average) -> tuple[StandIn, ...]:
    """Find features that cannot be told, with and without which the correction differs."""
    states, weight = mixture.component_states, mixture.component_weights
    corrected = states[:, -2].astype(np.float64)
    stand_ins = []
    for unit in mixture.choices.units:
        held = states[:, unit[0]]
        doubtful = says(float(mixture.shares[CHANCES_BY][unit[0]])) == "unknown"
        if not doubtful or not held.any() or held.all():
            continue
        inside, outside = (
            float(np.average(corrected[rows], weights=weight[rows])) for rows in (held, ~held)
        )
        stand_ins.append(StandIn(unit, inside, outside))
    stand_ins = [item for item in stand_ins if item.difference >= STAND_IN]
    return tuple(sorted(stand_ins, key=lambda item: -item.difference))


def interval_of(
    members: Members, place: int, chance: float, conf_level: float = 0.95
) -> tuple[float, float]:
    """Return where a term lies, by the mixture of the assignments behind intervals."""
    values, errors = members.terms[:, place], members.term_errors[:, place]
    mixture = TermMixture(members.weights, values[:, None], errors[:, None])
    low, high = mixture.intervals(tails(conf_level), None, np.array([chance]))[0]
    return float(low), float(high)


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
    members: Members
    """the C components of the average and, last, everything, by the weights of intervals"""

    @property
    def correction(self) -> dict[WeightCriterion, float] | None:
        """Share of weight that holds the correction; None unless it is optional."""
        judged = self.mixture.correction == "optional" and self.mixture.rho_range is None
        return self.mixture.correction_share if judged else None

    @property
    def corrected(self) -> float | None:
        """Chance that the correction is needed; None unless it is optional."""
        return None if self.correction is None else self.correction[CHANCES_BY]

    @property
    def component_rho(self) -> Floats:
        """(C,) rho of the average's components."""
        return np.asarray(self.members.terms[:-1, self.form.place_of("rho")])

    @cached_property
    def rho_interval(self) -> tuple[float, float] | None:
        """Where rho lies with 95%, by the mixture of the assignments; None in a window.

        None as well where there is not one rho.
        """
        if self.mixture.rho_range is not None or "rho" not in self.form.ends.shown:
            return None
        chance = math.nan if self.corrected is None else self.corrected
        low, high = interval_of(self.members, self.form.place_of("rho"), chance)
        return max(low, -1.0), min(high, 1.0)

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
    way = fit.way
    if not way.searched:
        return None
    if has_pseudo_weights(fit):
        return f"{capitalised(PSEUDO_WEIGHTS)}, so no chances are given."
    weighed = _of_average(way) if way.is_average else _of_search(fit, effort)
    return weighed if isinstance(weighed, str) else _described(fit, *weighed)


def n_units_of(fit: Fit) -> int:
    """Count the features and groups that may be in or out, in both equations if both may."""
    selecting = fit.way.selecting
    return len(fit.way.choices.units) + (0 if selecting is None else len(selecting.units))


def _of_average(way: Way) -> tuple[Form, Average] | str:
    """Return the form of an average, and its mixture by BIC weights."""
    own, form = way.averaging.mixture, way.averaging.form
    if own.exhaustive and own.weights == "bic":
        return form, own
    # If sampled, the shares are known; the heaviest by BIC take a short run.
    weighed = _weigh(form, way, own.correction, None if own.exhaustive else LEAST_SWEEPS)
    if isinstance(weighed, str) or weighed.exhaustive:
        return weighed if isinstance(weighed, str) else (form, weighed)
    return form, with_shares_of(weighed, own)


def _of_search(fit: Fit, effort: Effort) -> tuple[Form, Average] | str:
    """Weigh what a search could choose, by the form of the model of all candidates."""
    way, n_units = fit.way, n_units_of(fit)
    if effort == "quick" and n_units > QUICK_UNITS:
        return _LATER
    try:
        form = form_of_candidates(fit, way.choices)
    except (CollinearError, NotIdentifiedError, TooFewRowsError) as error:
        return f"Assignments are not weighed: {error}"
    correction: Correction = "optional" if form.knows_correction else "never"
    if way.selecting is not None:
        try:
            form = with_drivers(form, way.selecting)
        except NoFeasibleAssignmentError:
            return _NO_WEIGHT
        except InputError as error:
            return str(error)
    rough = effort == "rough" and n_units > MOST_UNITS
    weighed = _weigh(form, way, correction, LEAST_SWEEPS if rough else None)
    return weighed if isinstance(weighed, str) else (form, weighed)


def _weigh(form: Form, way: Way, correction: Correction, max_sweeps: int | None) -> Average | str:
    """Weigh all assignments by BIC, or many that a sampler draws."""
    with warnings.catch_warnings():
        # The words about the weights say whether the sampler's chains agree.
        warnings.simplefilter("ignore", SearchWarning)
        try:
            return average(
                form,
                way.choices,
                weights="bic",
                correction=correction,
                rho_range=way.searched_window,
                random_state=_SEED,
                max_sweeps=max_sweeps,
                selecting=way.selecting,
            )
        except NoFeasibleAssignmentError:
            return _NO_WEIGHT
        except InputError as error:
            return str(error)


def _described(fit: Fit, form: Form, mixture: Average) -> AssignmentWeights:
    """Return what the weights of all assignments say of those that matter."""
    chose = not fit.way.is_average
    judged = fit.way.searched_window is None and mixture.correction == "optional"
    members = mixture.interval_members(form)
    if fit.way.is_average and mixture is fit.way.averaging.mixture:
        members = fit.way.averaging.interval_members
    return AssignmentWeights(
        form=form,
        mixture=mixture,
        chosen=_chosen_weight(fit, form, mixture) if chose else None,
        left_out=_left_out(fit, form) if chose else None,
        stand_ins=stand_ins_of(mixture) if judged else None,
        members=members,
    )


def _chosen_weight(fit: Fit, form: Form, mixture: Average) -> float | None:
    """BIC weight of the features of a fit, with and without the correction."""
    selecting = np.isin(np.arange(fit.n_features), fit.driving)
    choices, own = mixture.joint, form.state_of(fit.support, selecting)
    inside = np.array([bool(own[unit[0]]) for unit in choices.units], dtype=bool)
    if not np.array_equal(choices.masks(inside), own[:-2]):
        return None
    held = {"optional": (False, True), "always": (True,), "never": (False,)}[mixture.correction]
    states = np.array([mixture.leading_states[0], *[own] * len(held)])
    states[1:, -2] = held
    members = Members(form, states, np.ones(len(states)))
    criterion = mixture.criteria(form, states, members.costs)["bic"]
    if mixture.rho_range is not None:
        low, high = mixture.rho_range
        rho = form.error_terms(members.estimates)["rho"]
        criterion[(rho < low) | (rho > high)] = np.inf
    relative = np.exp(-0.5 * (criterion[1:] - criterion[0]))
    weight = float(mixture.best_weight["bic"] * relative.sum())
    # A sampler may have missed the assignment that a search found; then visits do not weigh it.
    return min(weight, 1.0) if mixture.exhaustive or weight <= 1.0 else None


def _left_out(fit: Fit, form: Form) -> LeftOut | None:
    """Describe jointly, in the model of all candidates, those that were not chosen."""
    away = tuple(column for column in form.columns if not fit.support[column])
    if not away:
        return None
    known = fit.search.result.goal.form if fit.search and fit.search.result else None
    if known is not None and known.n_equations == 1:
        return LeftOut(away, float(known.dropped(np.asarray(fit.support, dtype=bool))))
    own = form.state_of(fit.support)
    return LeftOut(away, float(Members(form, own[None], np.ones(1)).costs[0]))

"""What a choice hides: how the weight of all assignments is spread, behind the one chosen.

An assignment S weighs exp(-BIC_S / 2). The weights say how much of what the data can tell about
the features the chosen assignment holds. They follow BIC here; shares of features are also given
by AIC and EBIC. All is computed from the compressed data, once for each fit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import (
    CollinearError,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    SearchWarning,
    TooFewRowsError,
)
from heckmanfa.fit import Fit
from heckmanfa.model.moments import Moments
from heckmanfa.results.assignment_tests import StandIn, form_tests, stand_ins_of, tests_of
from heckmanfa.search.averaging import KINDS, Average, ImrShares, Kind, average, imr_shares
from heckmanfa.search.averaging.averages import MOST_UNITS
from heckmanfa.search.averaging.gibbs import LEAST_SWEEPS
from heckmanfa.search.averaging.weights import Refitted, penalties
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal, Search
from heckmanfa.search.quadratic import QuadraticForm, joint_test

QUICK_UNITS = 18
"""With more features or groups than this, only `search_report` weighs the assignments."""

# The same fit gets the same words.
_SEED = 0

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

    average: Average
    """by BIC weights"""
    chosen: float | None
    """BIC weight of the chosen assignment; None if nothing was chosen, or what was chosen is not
    one of the assignments allowed, or far better than all that a sampler drew"""
    left_out: LeftOut | None
    """None if nothing was chosen, or nothing was left out"""
    stand_ins: tuple[StandIn, ...] | None
    """the largest difference first; None if they were not looked for: in a window of rho, or in an
    average that was sampled by other weights alone"""
    rejected: float | None
    """share of BIC weight whose test rejects rho = 0; None likewise"""
    rho_interval: tuple[float, float] | None
    """where rho lies with 95%, by the mixture of the assignments' two-step estimates; None
    likewise"""
    component_rho: Floats | None
    """(C,) rho of the average's components; None likewise"""
    imr_optional: ImrShares | None
    """shares of weight if lambda is optional; None in a window of rho, or in an average that was
    sampled"""

    @property
    def imr(self) -> dict[Kind, float] | None:
        """Share of weight that holds lambda, if lambda is optional."""
        return None if self.imr_optional is None else self.imr_optional.imr

    @property
    def best(self) -> float:
        """BIC weight of the heaviest assignment."""
        return self.average.best_weight["bic"]

    @property
    def chosen_is_best(self) -> bool:
        """Whether no assignment is heavier than the chosen one."""
        return self.chosen is not None and self.chosen >= self.best * (1.0 - 1e-8)

    @property
    def n_half(self) -> int:
        """How many of the heaviest assignments carry half of the BIC weight."""
        return self.average.n_half["bic"]

    @property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The features and groups that may be in or out."""
        return self.average.choices.units

    def share(self, unit: tuple[int, ...], kind: Kind = "bic") -> float:
        """Share of weight that holds a feature or group."""
        return float(self.average.shares[kind][unit[0]])

    def moved(self) -> list[tuple[int, ...]]:
        """Features and groups that some kinds of weights rather hold, and others rather do not."""
        return [
            unit
            for unit in self.units
            if len({self.share(unit, kind) >= 0.5 for kind in KINDS}) > 1
        ]


_weights: WeakKeyDictionary[Fit, AssignmentWeights | str] = WeakKeyDictionary()
_rough: WeakKeyDictionary[Fit, AssignmentWeights | str] = WeakKeyDictionary()


def weights_of(fit: Fit) -> AssignmentWeights | str:
    """Weigh the assignments behind a search or an average, or say in a sentence why not.

    The result is kept as long as the fit is.
    """
    if fit not in _weights:
        _weights[fit] = _weigh(fit)
    return _weights[fit]


def rough_weights_of(fit: Fit) -> AssignmentWeights | str:
    """Weigh the assignments in seconds: as `weights_of` does, unless they must be sampled.

    Then the chains of the sampler are short, and lambda is not optional.
    """
    if fit in _weights or fit.average is not None or len(choices_of(fit).units) <= MOST_UNITS:
        return weights_of(fit)
    if fit not in _rough:
        _rough[fit] = _weigh(fit, max_sweeps=LEAST_SWEEPS)
    return _rough[fit]


def are_known(fit: Fit) -> bool:
    """Whether the assignments were weighed before, or quickly can be."""
    return fit in _weights or len(choices_of(fit).units) <= QUICK_UNITS or has_pseudo_weights(fit)


def has_pseudo_weights(fit: Fit) -> bool:
    """Whether only a pseudo-likelihood could weigh the assignments."""
    return fit.weighted and fit.spec.weight_kind == "sampling"


def choices_of(fit: Fit) -> Choices:
    """Return the assignments that could be chosen in the rows of the fit."""
    if fit.average is not None:
        return fit.average.average.choices
    assert fit.search is not None
    allowed, candidates = fit.search.choices, {*fit.search.candidates}
    return allowed.without_columns([c for c in allowed.columns if c not in candidates])


def _weigh(fit: Fit, max_sweeps: int | None = None) -> AssignmentWeights | str:
    if has_pseudo_weights(fit):
        return (
            "With sampling weights there is no likelihood to weigh assignments by: how sure the "
            "choice is, is not said."
        )
    form = _form(fit)
    if form is not None:
        return _weigh_form(fit, form, max_sweeps)
    choices, window = choices_of(fit), _window(fit)
    given = None if fit.average is None else fit.average.average
    if given is not None and not given.exhaustive:
        # Sampling again would take as long as the fit.
        assert fit.average is not None
        found = fit.average.by_bic or given
        # Older model files have no draws by BIC.
        judged = window is None and found.weights == "bic"
        tests = tests_of(fit, found) if judged else None
        return AssignmentWeights(
            average=found,
            chosen=None,
            left_out=None,
            stand_ins=None if tests is None else stand_ins_of(found, tests),
            rejected=None if tests is None else tests.rejected_share,
            rho_interval=None if tests is None else tests.rho_interval,
            component_rho=None if tests is None else tests.rho,
            imr_optional=None,
        )
    if given is not None and given.weights == "bic":
        found = given
    else:
        try:
            found = _average(fit, fit.moments, choices, window, max_sweeps)
        except NoFeasibleAssignmentError:
            return _NO_WEIGHT
    tests = None if window else tests_of(fit, found)
    return AssignmentWeights(
        average=found,
        chosen=_chosen_weight(fit, found) if given is None else None,
        left_out=_left_out(fit, choices) if given is None else None,
        stand_ins=None if tests is None else stand_ins_of(found, tests),
        rejected=None if tests is None else tests.rejected_share,
        rho_interval=None if tests is None else tests.rho_interval,
        component_rho=None if tests is None else tests.rho,
        imr_optional=None
        if window or max_sweeps is not None
        else imr_shares(fit.moments, choices, random_state=_SEED),
    )


def _form(fit: Fit) -> QuadraticForm | None:
    """Return the likelihood's quadratic form, if a search of a binary outcome used one."""
    if not fit.is_binary or fit.search is None or fit.search.result is None:
        return None
    return fit.search.result.goal.form


def _weigh_form(fit: Fit, form: QuadraticForm, max_sweeps: int | None) -> AssignmentWeights | str:
    """Weigh the assignments by the quadratic approximation, and those refitted by themselves."""
    assert fit.search is not None
    choices, refitted = choices_of(fit), _refitted(fit.search.check_searched())
    moments = form.as_moments(fit.n_features, fit.moments.n_selected, with_rho=True)
    try:
        found = _average(fit, moments, choices, None, max_sweeps, form, refitted)
    except NoFeasibleAssignmentError:
        return _NO_WEIGHT
    tests = None if form.atanh_rho is None else form_tests(form, found)
    return AssignmentWeights(
        average=found,
        chosen=_chosen_weight(fit, found, form, refitted),
        left_out=_left_out(fit, choices),
        stand_ins=None if tests is None else stand_ins_of(found, tests),
        rejected=None if tests is None else tests.rejected_share,
        rho_interval=None if tests is None else tests.rho_interval,
        component_rho=None if tests is None else tests.rho,
        imr_optional=None
        if tests is None or max_sweeps is not None
        else imr_shares(moments, choices, random_state=_SEED, form=form),
    )


def _refitted(search: Search) -> Refitted | None:
    """Return what the refits cost, unless the model that they are compared with has no maximum."""
    refits = search.refits
    if refits is None or refits.held_rho is not None:
        return None
    good = np.isfinite(refits.log_likelihood)
    return Refitted(search.masks[good], refits.costs()[good])


def _average(
    fit: Fit,
    moments: Moments,
    choices: Choices,
    window: tuple[float, float] | None,
    max_sweeps: int | None,
    form: QuadraticForm | None = None,
    refitted: Refitted | None = None,
) -> Average:
    """Weigh all assignments by BIC, or many that a sampler draws."""
    with warnings.catch_warnings():
        # The words about the weights say whether the sampler's chains agree.
        warnings.simplefilter("ignore", SearchWarning)
        return average(
            moments,
            choices,
            weights="bic",
            rho_range=window,
            names=fit.labels,
            random_state=_SEED,
            max_sweeps=max_sweeps,
            form=form,
            refitted=refitted,
        )


def _window(fit: Fit) -> tuple[float, float] | None:
    if fit.average is not None:
        return fit.average.average.rho_range
    return None if fit.search is None else fit.search.window


def _chosen_weight(
    fit: Fit,
    found: Average,
    form: QuadraticForm | None = None,
    refitted: Refitted | None = None,
) -> float | None:
    """BIC weight of the prediction features of a fit."""
    choices, m = found.choices, found.n_selected
    support = np.asarray(fit.support, dtype=bool)
    inside = np.array([bool(support[unit[0]]) for unit in choices.units], dtype=bool)
    if not np.array_equal(choices.masks(inside), support):
        return None
    best = found.leading_masks[0]
    if form is None:
        solved, goal = fit.moments.solve(support), Goal.of(fit.moments, "bic")
        if found.rho_range is not None:
            low, high = found.rho_range
            if not low <= solved.rho <= high:
                return None
        costs = [float(m * goal.log_fit(sse)) for sse in (solved.sse, found.leading_sse[0])]
    else:
        # Sampled assignments are weighed by the approximation alone.
        exact = refitted if found.exhaustive else None
        costs = [_form_cost(form, support, exact), float(found.leading_sse[0])]
    by_size = penalties(m, choices)["bic"]
    n_units = sum(bool(best[unit[0]]) for unit in choices.units)
    criterion = costs[0] + by_size[int(support.sum()), int(inside.sum())]
    least = costs[1] + by_size[int(best.sum()), n_units]
    if not np.isfinite(criterion):
        return 0.0
    weight = float(found.best_weight["bic"] * np.exp(-0.5 * (criterion - least)))
    # A sampler may have missed the assignment that a search found; then visits do not weigh it.
    return min(weight, 1.0) if found.exhaustive or weight <= 1.0 else None


def _form_cost(form: QuadraticForm, support: Mask, refitted: Refitted | None) -> float:
    """Return what an assignment costs by its own refit, or else by the approximation."""
    if refitted is not None:
        same = np.flatnonzero((refitted.masks == support).all(axis=1))
        if len(same):
            return float(refitted.cost[same[0]])
    return float(form.dropped(support))


def _left_out(fit: Fit, choices: Choices) -> LeftOut | None:
    """Describe jointly, in the model of all candidates, those that were not chosen."""
    columns = choices.columns
    away = tuple(column for column in columns if not fit.support[column])
    if not away:
        return None
    form = fit.search.result.goal.form if fit.search and fit.search.result else None
    if form is not None:
        return LeftOut(away, float(form.dropped(np.asarray(fit.support, dtype=bool))))
    try:
        return LeftOut(away, joint_test(fit.moments, columns, fit.support, fit.labels)[0])
    except (CollinearError, NotIdentifiedError, TooFewRowsError):
        return LeftOut(away, float("nan"))

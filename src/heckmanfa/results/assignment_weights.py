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
from heckmanfa.model.mixture import mix_assignments
from heckmanfa.model.moments import Moments
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.model.score_moments import classical_scores
from heckmanfa.results.average_tables import UNSURE, role_of
from heckmanfa.results.reference import LEVEL, Reference, tails
from heckmanfa.search.averaging import KINDS, Average, ImrShares, Kind, average, imr_shares
from heckmanfa.search.averaging.averages import MOST_UNITS
from heckmanfa.search.averaging.gibbs import LEAST_SWEEPS
from heckmanfa.search.averaging.weights import penalties
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal
from heckmanfa.search.quadratic import joint_test

QUICK_UNITS = 18
"""With more features or groups than this, only `search_report` weighs the assignments."""

# The same fit gets the same words.
_SEED = 0

STAND_IN = 0.5
"""A feature stands in for lambda if the share of weight that rejects rho = 0 differs by this much
between assignments with and without it."""


@dataclass(frozen=True)
class StandIn:
    """A feature or group with and without which the test of lambda differs."""

    columns: tuple[int, ...]
    rejected_with: float
    """share of weight that rejects rho = 0, of the assignments that hold it"""
    rejected_without: float
    """likewise, of the others"""

    @property
    def difference(self) -> float:
        """How far the two shares are apart."""
        return abs(self.rejected_with - self.rejected_without)


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
    one of the assignments allowed"""
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
    choices, window = choices_of(fit), _window(fit)
    given = None if fit.average is None else fit.average.average
    if given is not None and not given.exhaustive:
        # Sampling again would take as long as the fit.
        assert fit.average is not None
        found = fit.average.by_bic or given
        # Older model files have no draws by BIC.
        judged = window is None and found.weights == "bic"
        tests = _tests(fit.moments, found) if judged else None
        return AssignmentWeights(
            average=found,
            chosen=None,
            left_out=None,
            stand_ins=None if tests is None else _stand_ins(found, tests),
            rejected=None if tests is None else tests.rejected_share,
            rho_interval=None if tests is None else tests.rho_interval,
            component_rho=None if tests is None else tests.rho,
            imr_optional=None,
        )
    if given is not None and given.weights == "bic":
        found = given
    else:
        try:
            found = _average(fit, choices, window, max_sweeps)
        except NoFeasibleAssignmentError:
            return (
                "No assignment has weight: those that are feasible have more columns than a third "
                "of the selected rows."
            )
    tests = None if window else _tests(fit.moments, found)
    return AssignmentWeights(
        average=found,
        chosen=_chosen_weight(fit, found) if given is None else None,
        left_out=_left_out(fit, choices) if given is None else None,
        stand_ins=None if tests is None else _stand_ins(found, tests),
        rejected=None if tests is None else tests.rejected_share,
        rho_interval=None if tests is None else tests.rho_interval,
        component_rho=None if tests is None else tests.rho,
        imr_optional=None
        if window or max_sweeps is not None
        else imr_shares(fit.moments, choices, random_state=_SEED),
    )


def _average(
    fit: Fit, choices: Choices, window: tuple[float, float] | None, max_sweeps: int | None
) -> Average:
    """Weigh all assignments by BIC, or many that a sampler draws."""
    with warnings.catch_warnings():
        # The words about the weights say whether the sampler's chains agree.
        warnings.simplefilter("ignore", SearchWarning)
        return average(
            fit.moments,
            choices,
            weights="bic",
            rho_range=window,
            names=fit.labels,
            random_state=_SEED,
            max_sweeps=max_sweeps,
        )


def _window(fit: Fit) -> tuple[float, float] | None:
    if fit.average is not None:
        return fit.average.average.rho_range
    return None if fit.search is None else fit.search.window


def _chosen_weight(fit: Fit, found: Average) -> float | None:
    """BIC weight of the prediction features of a fit."""
    choices, m = found.choices, found.n_selected
    support = np.asarray(fit.support, dtype=bool)
    inside = np.array([bool(support[unit[0]]) for unit in choices.units], dtype=bool)
    if not np.array_equal(choices.masks(inside), support):
        return None
    solved = fit.moments.solve(support)
    if found.rho_range is not None:
        low, high = found.rho_range
        if not low <= solved.rho <= high:
            return None
    by_size, goal = penalties(m, choices)["bic"], Goal.of(fit.moments, "bic")
    criterion = m * goal.log_fit(solved.sse) + by_size[int(support.sum()), int(inside.sum())]
    best = found.leading_masks[0]
    n_units = sum(bool(best[unit[0]]) for unit in choices.units)
    least = m * goal.log_fit(found.leading_sse[0]) + by_size[int(best.sum()), n_units]
    if not np.isfinite(criterion):
        return 0.0
    # A sampler may have missed the assignment that a search found.
    return float(min(found.best_weight["bic"] * np.exp(-0.5 * (criterion - least)), 1.0))


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


@dataclass(frozen=True, eq=False)
class _Tests:
    """The tests of rho = 0 in N assignments, by Heckman's covariance."""

    weights: Floats
    """(N,) summing to one"""
    rejected: Mask
    """(N,)"""
    rho: Floats
    """(N,)"""
    rho_errors: Floats
    """(N,)"""

    @property
    def rejected_share(self) -> float:
        return float(np.average(self.rejected, weights=self.weights))

    @property
    def rho_interval(self) -> tuple[float, float]:
        ends = mixture_quantiles(
            self.weights, self.rho[:, None], self.rho_errors[:, None], tails(0.95)
        )
        low, high = ends[0].clip(-1.0, 1.0)
        return float(low), float(high)


def _stand_ins(found: Average, tests: _Tests) -> tuple[StandIn, ...]:
    """Find features with 10 to 90% of the weight with and without which lambda's test differs."""
    doubtful = [
        unit
        for unit in found.choices.units
        if role_of(float(found.shares["bic"][unit[0]])) == UNSURE
    ]
    masks, weight = found.component_masks, found.component_weights
    stand_ins = []
    for unit in doubtful:
        held = masks[:, unit[0]]
        if not held.any() or held.all():
            continue
        inside, outside = (
            float(np.average(tests.rejected[part], weights=weight[part])) for part in (held, ~held)
        )
        stand_ins.append(StandIn(unit, inside, outside))
    stand_ins = [item for item in stand_ins if item.difference >= STAND_IN]
    return tuple(sorted(stand_ins, key=lambda item: -item.difference))


def _tests(moments: Moments, found: Average) -> _Tests:
    """Test lambda in each assignment that carries the weight."""
    columns = found.choices.columns
    masks, weights = found.component_masks, found.component_weights
    mixture = mix_assignments(moments, classical_scores(columns), masks, weights)
    imr = np.zeros((1, len(columns) + 2))
    imr[0, -1] = 1.0
    values, errors = mixture.linear(imr)
    sigma = mixture.sigma
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = values[:, 0] / errors[:, 0]
        # The derivative of rho by beta_H, given the SSE.
        slope = (sigma**2 - moments.mean_delta * mixture.imr_coef**2) / sigma**3
    return _Tests(
        weights=mixture.weights,
        rejected=Reference().p_value(statistics) < LEVEL,
        rho=mixture.rho,
        rho_errors=np.asarray(errors[:, 0] * slope),
    )

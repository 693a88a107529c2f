"""Tests of rho = 0 in the assignments behind a choice, and features that stand in for lambda."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.model.mixture import mix_assignments
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.model.score_moments import scores_for
from heckmanfa.results.average_tables import UNSURE, role_of
from heckmanfa.results.reference import LEVEL, Reference, reference_of, tails
from heckmanfa.search.averaging import Average
from heckmanfa.search.quadratic import QuadraticForm

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


@dataclass(frozen=True, eq=False)
class AssignmentTests:
    """The tests of rho = 0 in N assignments."""

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
        """Share of weight whose test rejects."""
        return float(np.average(self.rejected, weights=self.weights))

    @property
    def rho_interval(self) -> tuple[float, float]:
        """Where rho lies with 95%, by the mixture of the assignments."""
        ends = mixture_quantiles(
            self.weights, self.rho[:, None], self.rho_errors[:, None], tails(0.95)
        )
        low, high = ends[0].clip(-1.0, 1.0)
        return float(low), float(high)


def stand_ins_of(found: Average, tests: AssignmentTests) -> tuple[StandIn, ...]:
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


def tests_of(fit: Fit, found: Average) -> AssignmentTests:
    """Test lambda in each assignment that carries the weight.

    The covariance is that of the model if it is an average, which gathered it for every
    assignment; otherwise it is classical.
    """
    moments, masks, weights = fit.moments, found.component_masks, found.component_weights
    gathered = None
    if fit.average is not None and fit.spec.errors_differ:
        gathered = fit.average.scores
    scores, reference = scores_for(found.choices.columns, gathered), Reference()
    if scores is gathered:
        reference = reference_of(fit)
    mixture = mix_assignments(moments, scores, masks, weights)
    imr = np.zeros((1, len(scores.columns) + 2))
    imr[0, -1] = 1.0
    values, errors = mixture.linear(imr)
    sigma = mixture.sigma
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = values[:, 0] / errors[:, 0]
        # The derivative of rho by beta_H, given the SSE.
        slope = (sigma**2 - moments.mean_delta * mixture.imr_coef**2) / sigma**3
    return AssignmentTests(
        weights=mixture.weights,
        rejected=reference.p_value(statistics) < LEVEL,
        rho=mixture.rho,
        rho_errors=np.asarray(errors[:, 0] * slope),
    )


def form_tests(form: QuadraticForm, found: Average) -> AssignmentTests:
    """Test rho = 0 in each assignment that carries the weight, on the scale of atanh rho."""
    inside = form.restricted(found.component_masks)
    errors = np.sqrt(np.maximum(inside.atanh_rho_variance, 0.0))
    rho = np.tanh(inside.atanh_rho)
    return AssignmentTests(
        weights=found.component_weights,
        rejected=Reference().p_value(inside.atanh_rho / errors) < LEVEL,
        rho=rho,
        rho_errors=errors * (1.0 - rho**2),
    )

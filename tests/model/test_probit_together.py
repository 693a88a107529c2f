"""Quasi-Newton ascents that many assignments share, on functions whose maximum is known."""

from __future__ import annotations

import numpy as np
import pytest

from heckmanfa.model.probit_likelihood import BOUNDARY_ATANH
from heckmanfa.model.refit_together import _HALVINGS, _Climb

TOP = np.array([0.4, -0.7, 0.2])
CURVATURE = np.array([[3.0, 1.0, 0.3], [1.0, 2.0, 0.2], [0.3, 0.2, 1.0]])


def parabola(theta: np.ndarray) -> tuple[float, np.ndarray]:
    away = theta - TOP
    return float(-0.5 * away @ CURVATURE @ away), -CURVATURE @ away


def test_a_start_without_a_likelihood_has_no_step_to_shorten() -> None:
    climb = _Climb(np.zeros(3), np.eye(3), np.eye(3))
    climb.learn(float("nan"), np.zeros(3))
    assert climb.done
    assert not climb.converged


def test_a_step_that_does_not_rise_is_halved_a_few_times() -> None:
    # One direction is at its best already, and has no step.
    climb = _Climb(np.zeros(3), np.eye(3), 0.1 * np.eye(3))
    climb.learn(-1.0, np.array([1.0, 0.0, 2.0]))
    first = climb.trial - climb.theta
    assert np.any(first)
    for halved in range(1, _HALVINGS + 1):
        climb.learn(climb.value - 1.0, np.zeros(3))
        assert not climb.done
        np.testing.assert_allclose(climb.trial - climb.theta, first / 2**halved, rtol=1e-12)
    climb.learn(climb.value - 1.0, np.zeros(3))
    assert climb.done
    assert not climb.converged


def test_steps_learn_the_curvature() -> None:
    """After each step the inverse information maps what the gradient lost to the step (BFGS)."""
    climb = _Climb(np.zeros(3), np.eye(3), 0.2 * np.eye(3))
    climb.learn(*parabola(climb.trial))
    for _ in range(12):
        before, theta = parabola(climb.theta)[1], climb.theta
        climb.learn(*parabola(climb.trial))
        lost, step = before - parabola(climb.theta)[1], climb.theta - theta
        np.testing.assert_allclose(climb._inverse @ lost, step, atol=1e-10)
        if climb.done:
            break
    assert climb.converged
    assert climb.theta == pytest.approx(TOP, abs=1e-3)
    # The step that is left would gain half of its decrement.
    assert climb.value + 0.5 * climb.decrement == pytest.approx(0.0, abs=1e-6)


def test_a_climb_that_ends_beyond_the_boundary_of_rho_has_not_converged() -> None:
    climb = _Climb(np.array([0.0, 0.0, BOUNDARY_ATANH + 1.0]), np.eye(3), np.eye(3))
    climb.learn(-1.0, np.zeros(3))
    assert climb.done
    assert not climb.converged
    inside = _Climb(np.array([0.0, 0.0, BOUNDARY_ATANH - 1.0]), np.eye(3), np.eye(3))
    inside.learn(-1.0, np.zeros(3))
    assert inside.converged

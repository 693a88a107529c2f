"""Quasi-Newton ascents that many assignments share, on functions whose maximum is known."""

from __future__ import annotations

import numpy as np
import pytest

from heckmanfa.model.probit_likelihood import BOUNDARY_ATANH
from heckmanfa.model.refit_together import _HALVINGS, _QuasiNewton

TOP = np.array([0.4, -0.7, 0.2])
CURVATURE = np.array([[3.0, 1.0, 0.3], [1.0, 2.0, 0.2], [0.3, 0.2, 1.0]])


def parabola(theta: np.ndarray) -> tuple[float, np.ndarray]:
    away = theta - TOP
    return float(-0.5 * away @ CURVATURE @ away), -CURVATURE @ away


def test_a_start_without_a_likelihood_has_no_step_to_shorten() -> None:
    run = _QuasiNewton(2, np.zeros(3), np.eye(3), np.eye(3))
    run.learn(float("nan"), np.zeros(3))
    assert run.done
    assert not run.converged


def test_a_step_that_does_not_rise_is_halved_a_few_times() -> None:
    # One direction is at its best already, and has no step.
    run = _QuasiNewton(2, np.zeros(3), np.eye(3), 0.1 * np.eye(3))
    run.learn(-1.0, np.array([1.0, 0.0, 2.0]))
    first = run.trial - run.theta
    assert np.any(first)
    for halved in range(1, _HALVINGS + 1):
        run.learn(run.value - 1.0, np.zeros(3))
        assert not run.done
        np.testing.assert_allclose(run.trial - run.theta, first / 2**halved, rtol=1e-12)
    run.learn(run.value - 1.0, np.zeros(3))
    assert run.done
    assert not run.converged


def test_steps_learn_the_curvature() -> None:
    """After each step the inverse information maps what the gradient lost to the step (BFGS)."""
    run = _QuasiNewton(2, np.zeros(3), np.eye(3), 0.2 * np.eye(3))
    run.learn(*parabola(run.trial))
    for _ in range(12):
        before, theta = parabola(run.theta)[1], run.theta
        run.learn(*parabola(run.trial))
        lost, step = before - parabola(run.theta)[1], run.theta - theta
        np.testing.assert_allclose(run._inverse @ lost, step, atol=1e-10)
        if run.done:
            break
    assert run.converged
    assert run.theta == pytest.approx(TOP, abs=1e-3)
    # The step that is left would gain half of its decrement.
    assert run.value + 0.5 * run.decrement == pytest.approx(0.0, abs=1e-6)


def test_steps_that_end_beyond_the_boundary_of_rho_has_not_converged() -> None:
    run = _QuasiNewton(2, np.array([0.0, 0.0, BOUNDARY_ATANH + 1.0]), np.eye(3), np.eye(3))
    run.learn(-1.0, np.zeros(3))
    assert run.done
    assert not run.converged
    inside = _QuasiNewton(2, np.array([0.0, 0.0, BOUNDARY_ATANH - 1.0]), np.eye(3), np.eye(3))
    inside.learn(-1.0, np.zeros(3))
    assert inside.converged

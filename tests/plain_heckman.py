"""The likelihood of a Heckman model, written again without the package, for tests of covariances.

A frame has the columns educ, exper and wage; the wage is explained by educ, and its being observed
by both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize, stats


@dataclass
class ByHand:
    """Maximum likelihood of a Heckman model with sampling weights."""

    estimates: np.ndarray
    bread: np.ndarray
    scores: np.ndarray
    """(n, d), weighted"""

    def covariance(self, middle: np.ndarray) -> np.ndarray:
        return self.bread @ middle @ self.bread

    def totals(self, labels: np.ndarray) -> np.ndarray:
        return np.array([self.scores[labels == each].sum(axis=0) for each in np.unique(labels)])

    def clustered(self, labels: np.ndarray) -> np.ndarray:
        totals = self.totals(labels)
        return totals.T @ totals * len(totals) / (len(totals) - 1)


def by_hand(
    frame: pd.DataFrame, weight: np.ndarray, held: dict[int, float] | None = None
) -> ByHand:
    """Maximise the likelihood with SciPy, by b (2), gamma (3), atanh rho and log sigma.

    Parameters that are ``held``, by position, keep their values.
    """
    x = np.column_stack([np.ones(len(frame)), frame["educ"]])
    z = np.column_stack([np.ones(len(frame)), frame[["educ", "exper"]]])
    y, seen = frame["wage"].fillna(0).to_numpy(), frame["wage"].notna().to_numpy()

    def each(theta):
        rho, sigma, index = np.tanh(theta[5]), np.exp(theta[6]), z @ theta[2:5]
        residual = (y - x @ theta[:2]) / sigma
        given = stats.norm.logcdf((index + rho * residual) / np.sqrt(1 - rho**2))
        joint = given + stats.norm.logpdf(residual) - theta[6]
        return np.where(seen, joint, stats.norm.logcdf(-index))

    def scores(theta):
        columns = []
        for place in range(len(theta)):
            step = np.zeros(len(theta))
            step[place] = 1e-5
            columns.append((each(theta + step) - each(theta - step)) / 2e-5)
        return np.column_stack(columns) * weight[:, None]

    def curvature(theta):
        rows = []
        for place in range(len(theta)):
            step = np.zeros(len(theta))
            step[place] = 1e-4
            rows.append((scores(theta + step) - scores(theta - step)).sum(axis=0) / 2e-4)
        return np.array(rows)

    theta = np.array([1.0, 1.0, 0.4, 0.8, 0.6, 0.5, 0.2])
    free = np.array([place for place in range(7) if place not in (held or {})])
    for place, value in (held or {}).items():
        theta[place] = value

    def lost(some):
        whole = theta.copy()
        whole[free] = some
        return -weight @ each(whole)

    theta[free] = optimize.minimize(lost, theta[free], method="BFGS").x
    for _ in range(3):
        step = np.linalg.solve(
            curvature(theta)[np.ix_(free, free)], scores(theta).sum(axis=0)[free]
        )
        theta[free] -= step
    return ByHand(theta, -np.linalg.inv(curvature(theta)), scores(theta))

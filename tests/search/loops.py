"""Every assignment of a form in a plain loop, with NumPy alone."""

import itertools
from dataclasses import dataclass
from math import comb, log

import numpy as np


@dataclass
class Loop:
    """All assignments with a weight."""

    states: np.ndarray
    """(N, k + 2) candidates held on their own, the correction, the index"""
    criteria: dict
    free: list
    estimates: np.ndarray
    """(N, d)"""
    covariances: np.ndarray
    """(N, d, d)"""
    rho: np.ndarray

    def weights(self, kind):
        if kind == "mean":
            return (self.weights("aic") + self.weights("bic")) / 2
        values = self.criteria[kind]
        raw = np.exp(-(values - values.min()) / 2)
        return raw / raw.sum()

    def mean(self, kind):
        return self.weights(kind) @ self.estimates

    def covariance(self, kind):
        weight = self.weights(kind)
        away = self.estimates - weight @ self.estimates
        return np.einsum("n,nij->ij", weight, self.covariances) + away.T @ (weight[:, None] * away)

    def shares(self, kind, direction):
        """Shares of weight in which each candidate predicts: in either way, and on its own."""
        weight, own = self.weights(kind), self.states[:, :-2]
        either = own | (self.states[:, -1:] & (direction != 0.0))
        return weight @ either, weight @ own


def every_assignment(
    theta,
    V,
    k,
    p,
    direction,
    m,
    errors,
    *,
    mean_delta=0.0,
    units=None,
    always=(),
    limit=None,
    window=None,
    corrections=(False, True),
    odds=(1.0, 1.0),
):
    """Weigh all assignments of k candidates, given by position.

    ``theta`` and ``V`` are intercept, candidates, selection intercept, p selection features, the
    correction and, unless the errors are "binary", the log scale.
    """
    units = [(j,) for j in range(k)] if units is None else units
    d, last = len(theta), 2 + k + p
    free = [*range(1, k + 1), last]
    P = np.linalg.inv(V[np.ix_(free, free)])
    A = V[:, free] @ P
    if errors == "two-step":
        A[1 + k : last] = 0.0
    pick = np.eye(d)[free]
    offered = [j for unit in units for j in unit if direction[j] != 0.0]
    rows = []
    for inside in itertools.product([False, True], repeat=len(units)):
        held = [unit for unit, use in zip(units, inside, strict=True) if use]
        own = np.zeros(k, dtype=bool)
        own[[*always, *itertools.chain(*held)]] = True
        j = int(own.sum())
        if (limit is not None and j > limit) or j > m / 3:
            continue
        dropped = sum(not own[column] for column in offered)
        for corrected, index in itertools.product(corrections, [False, True]):
            if index and (dropped < 2 or len(offered) < 2):
                continue
            columns = [np.eye(k + 1)[place] for place in np.flatnonzero(own)]
            columns += [np.eye(k + 1)[k]] * corrected + [np.append(direction, 0.0)] * index
            M = np.zeros((k + 1, k + 1))
            if columns:
                B = np.array(columns).T
                M = B @ np.linalg.inv(B.T @ P @ B) @ B.T
            along = M @ P
            away = theta[free] - along @ theta[free]
            T = A @ along @ pick + np.eye(d) - A @ pick
            estimates = T @ theta
            scale = 0.0 if errors == "binary" else estimates[-1]
            rho = np.tanh(estimates[last])
            if errors == "two-step":
                sigma = np.sqrt(np.exp(2 * scale) + mean_delta * estimates[last] ** 2)
                rho = estimates[last] / sigma
            if window is not None and not window[0] <= rho <= window[1]:
                continue
            q = j + 1 + corrected + index
            cost = away @ P @ away - 2 * corrected * log(odds[0]) - 2 * index * log(odds[1])
            bic = cost + q * log(m)
            values = cost + 2 * q * m / (m - q - 1), bic, bic + 2 * log(comb(len(units), len(held)))
            state = np.append(own, [corrected, index])
            rows.append((state, values, estimates, T @ V @ T.T, rho))
    states, values, estimates, covariances, rho = zip(*rows, strict=True)
    criteria = dict(zip(("aic", "bic", "ebic"), np.array(values).T, strict=True))
    arrays = (np.array(part) for part in (estimates, covariances, rho))
    return Loop(np.array(states), criteria, free, *arrays)

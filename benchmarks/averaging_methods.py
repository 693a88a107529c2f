"""The engine of docs/averaging_study.md: what every assignment costs, and what it estimates.

It is plain NumPy and shares no code with the library, so it checks the library's engine as well.
The estimates theta-hat of the model with everything in it and their covariance V give, for the
units that an assignment keeps,

    Q = min (theta-hat - theta)' V^-1 (theta-hat - theta)  over the theta that it allows,

a regression on the columns of R and on R (gamma-hat, 0), the index, where V^-1 = R'R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

KINDS = ("aic", "bic")
BURN, SWEEPS, THIN, REFRESH = 60, 240, 2, 20
ODDS = 3.0
# A standard error below this share of the full model's is that of a fixed value.
_FIXED = 1e-9

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Form:
    """Estimates of the model with everything in it."""

    estimates: Floats
    """(p,)"""
    covariance: Floats
    """(p, p)"""
    units: tuple[tuple[int, ...], ...]
    """positions of each unit that may be dropped, the correction aside"""
    index_units: int
    """how many of them, the first ones, are of the prediction equation"""
    correction: int
    """position of the correction"""
    direction: Floats
    """(p,) gamma-hat of the features that may predict, zero elsewhere"""
    rows: float
    """m, or n if features may leave both equations"""

    def system(self) -> tuple[Floats, Floats, float, Floats]:
        """Gram matrix (p + 1, p + 1) and right side of the regression, its total, and its columns.

        The last column is the index. Columns, (p, p + 1), map back to theta's own scale.
        """
        scale = np.sqrt(np.diag(self.covariance))
        precision = np.linalg.inv(self.covariance / scale / scale[:, None])
        ratios = self.estimates / scale
        own = self.direction / scale
        columns = np.column_stack([np.eye(len(scale)), own / np.sqrt(own @ precision @ own)])
        product = precision @ columns
        gram = columns.T @ product
        right = product.T @ ratios
        return gram, right, float(ratios @ precision @ ratios), scale[:, None] * columns

    def penalty(self, kind: str) -> float:
        """Half of what a parameter costs."""
        return 1.0 if kind == "aic" else 0.5 * float(np.log(self.rows))


@dataclass(frozen=True, eq=False)
class Assignments:
    """N assignments, and what they estimate."""

    kept: Mask
    """(N, U)"""
    correction: Mask
    """(N,)"""
    index: Mask
    """(N,)"""
    cost: Floats
    """(N,) Q"""
    count: Floats
    """(N,) parameters that could have been dropped"""
    estimates: Floats
    """(N, p)"""
    values: Floats
    """(N, q) of the targets"""
    errors: Floats
    """(N, q) their standard errors; 0 if a target is fixed"""

    def weights(self, penalty: float, among: Mask, odds: float = 1.0) -> Floats:
        """Weigh the assignments; those with the correction ``odds`` times as much."""
        score = -0.5 * self.cost - penalty * self.count + np.log(odds) * self.correction
        score = np.where(among, score, -np.inf)
        weight = np.exp(score - score.max())
        return np.asarray(weight / weight.sum())


def enumerate_all(form: Form, targets: Floats) -> Assignments:
    """Evaluate every assignment, with and without the correction and the index.

    ``targets``, (q, p), are linear functions of theta.
    """
    gram, right, total, columns = form.system()
    p, U = len(form.estimates), len(form.units)
    kept = ((np.arange(2**U)[:, None] >> np.arange(U)) & 1).astype(bool)
    grid = [
        (kept[keep], np.full(keep.sum(), corrected), np.full(keep.sum(), indexed))
        for corrected in (False, True)
        for indexed in (False, True)
        for keep in [_dropped(form, kept) >= 2 if indexed else np.full(len(kept), True)]
    ]
    units, correction, index = (np.concatenate(part) for part in zip(*grid, strict=True))
    held = np.ones((len(units), p + 1), dtype=bool)
    for unit, places in enumerate(form.units):
        held[:, list(places)] = units[:, unit, None]
    held[:, form.correction], held[:, -1] = correction, index
    sizes = np.array([len(places) for places in form.units])
    goal = targets @ columns
    estimates, cost = np.empty((len(units), p)), np.empty(len(units))
    values, errors = np.empty((2, len(units), len(targets)))
    fixed = _FIXED * np.sqrt(np.einsum("qp,pr,qr->q", targets, form.covariance, targets))
    for start in range(0, len(units), 2048):
        part = slice(start, start + 2048)
        inverse = masked_inverse(gram, held[part])
        coef = inverse @ right
        cost[part] = total - coef @ right
        estimates[part] = coef @ columns.T
        values[part] = coef @ goal.T
        spread = np.sqrt(np.maximum(np.einsum("qk,nkq->nq", goal, inverse @ goal.T), 0.0))
        errors[part] = np.where(spread > fixed, spread, 0.0)
    count = units @ sizes + correction + index
    return Assignments(
        units, correction, index, cost, count.astype(np.float64), estimates, values, errors
    )


def _dropped(form: Form, kept: Mask) -> NDArray[np.int64]:
    """Count columns of the prediction equation that are dropped, (N,)."""
    sizes = [len(places) for places in form.units[: form.index_units]]
    return np.asarray(~kept[..., : form.index_units] @ np.array(sizes))


def masked_inverse(gram: Floats, held: Mask) -> Floats:
    """Inverse of the block of each mask, (N, k, k), with zeros elsewhere."""
    inside = held.astype(np.float64)
    system = gram * inside[:, :, None] * inside[:, None, :]
    place = np.arange(len(gram))
    system[:, place, place] += 1.0 - inside
    inverse = np.linalg.inv(system)
    inverse[:, place, place] -= 1.0 - inside
    return np.asarray(inverse)


def cdf(values: Floats, errors: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Probabilities of at most, and of less than, each point under each component."""
    fixed = errors == 0
    ratio = (at - values) / np.where(fixed, 1.0, errors)
    inside = ndtr(ratio)
    near = 1e-12 * (1.0 + np.abs(at))
    most = np.where(fixed, (at >= values - near).astype(np.float64), inside)
    less = np.where(fixed, (at > values + near).astype(np.float64), inside)
    return most, less


def covered(weights: Floats, parts: tuple[Floats, Floats], tail: float = 0.025) -> Mask:
    """Whether points lie between the quantiles of the mixture, from `cdf` of its components."""
    most, less = parts
    return np.asarray((weights @ most >= tail) & (weights @ less <= 1.0 - tail))


def quantile_width(weights: Floats, values: Floats, errors: Floats) -> Floats:
    """Width of the 95% intervals of a mixture, (q,), by bisection."""
    kept = weights > 1e-6
    weights, values, errors = weights[kept], values[kept], errors[kept]
    ends = []
    for level in (0.025, 0.975):
        low = (values - 9.0 * errors).min(axis=0) - 1e-9
        high = (values + 9.0 * errors).max(axis=0) + 1e-9
        for _ in range(32):
            middle = 0.5 * (low + high)
            below = weights @ cdf(values, errors, middle)[0] < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append(high)
    return np.asarray(ends[1] - ends[0])


@dataclass(frozen=True, eq=False)
class Sampled:
    """What Gibbs chains say of one kind of weights."""

    values: Floats
    """(N, q) of the targets; all components weigh the same"""
    errors: Floats
    """(N, q)"""
    estimates: Floats
    """(p,) mean"""
    own: Floats
    """(U,) chance that a unit is kept"""
    any: Floats
    """(U,) chance that it is kept or the index is there"""
    correction: float
    index: float
    disagreement: float
    """largest difference between the chances of the two chains"""


def sample(form: Form, targets: Floats, seed: list[int]) -> dict[tuple[str, str], Sampled]:
    """Sample by kind of weights, with the correction always, or optional with the index.

    Two chains for each; all chains are swept together, a unit at a time.
    """
    runs = [(kind, mode) for kind in KINDS for mode in ("always", "index") for _ in range(2)]
    rng = np.random.default_rng(seed)
    gram, right, total, columns = form.system()
    p, U, chains = len(form.estimates), len(form.units), len(runs)
    start = np.zeros((p + 2, p + 2))
    start[:-1, :-1], start[-1, -1] = gram, total
    start[:-1, -1] = start[-1, :-1] = right
    penalty = np.array([form.penalty(kind) for kind, _ in runs])
    free = np.array([mode == "index" for _, mode in runs])
    held = np.zeros((chains, p + 1), dtype=bool)
    units = [*form.units, (form.correction,), (p,)]
    fixed = sorted(set(range(p)) - {place for places in units for place in places})
    held[:, fixed] = True
    held[~free, form.correction] = True
    # One chain of each pair starts with all features, the other with none.
    held[::2, : p - 1] = True
    state = _swept(start, held)
    goal = targets @ columns
    own, both = np.zeros((2, chains, U))
    shares = np.zeros((2, chains))
    values: list[Floats] = []
    errors: list[Floats] = []
    coefs = np.zeros((chains, p))
    feature_sizes = np.array([len(places) for places in form.units[: form.index_units]])
    firsts = [places[0] for places in form.units[: form.index_units]]
    kept_sweeps = 0
    for sweep in range(BURN + SWEEPS):
        record = sweep >= BURN
        uniform = rng.random((U + 2, chains))
        for unit, places in enumerate(units):
            now = held[:, places[0]]
            gain = _gain(state, held, places)
            chance = 1.0 / (1.0 + np.exp(np.clip(penalty * len(places) - 0.5 * gain, -700, 700)))
            dropped = ~held[:, firsts] @ feature_sizes
            if unit == U + 1:
                chance = np.where(free & (dropped >= 2), chance, 0.0)
            elif unit == U:
                chance = np.where(free, chance, 1.0)
            elif unit < form.index_units:
                # The index needs two dropped columns.
                without = dropped - np.where(now, 0, len(places))
                chance = np.where(held[:, p] & (without < 2), 0.0, chance)
            flip = (uniform[unit] < chance) != now
            if flip.any():
                for place in places:
                    state[flip] = _sweep(state[flip], place)
                    held[flip, place] ^= True
            if record and unit < U:
                own[:, unit] += chance
                both[:, unit] += np.where(held[:, p], 1.0, chance)
            elif record:
                shares[unit - U] += chance
        if record:
            kept_sweeps += 1
            coef = np.where(held, state[:, :-1, -1], 0.0)
            coefs += coef @ columns.T
            if sweep % THIN == 0:
                inverse = state[:, :-1, :-1] * (held[:, :, None] & held[:, None, :])
                values.append(coef @ goal.T)
                spread = np.einsum("qk,nkq->nq", goal, inverse @ goal.T)
                errors.append(np.sqrt(np.maximum(spread, 0.0)))
        if sweep % REFRESH == REFRESH - 1:
            state = _swept(start, held)
    level = _FIXED * np.sqrt(np.einsum("qp,pr,qr->q", targets, form.covariance, targets))
    all_values, all_errors = np.array(values), np.array(errors)
    all_errors = np.where(all_errors > level, all_errors, 0.0)
    found = {}
    for run in dict.fromkeys(runs):
        mine = [number for number, other in enumerate(runs) if other == run]
        apart = np.abs(own[mine[0]] - own[mine[1]]).max() / kept_sweeps
        found[run] = Sampled(
            values=all_values[:, mine].reshape(-1, len(targets)),
            errors=all_errors[:, mine].reshape(-1, len(targets)),
            estimates=coefs[mine].mean(axis=0) / kept_sweeps,
            own=own[mine].mean(axis=0) / kept_sweeps,
            any=both[mine].mean(axis=0) / kept_sweeps,
            correction=float(shares[0, mine].mean() / kept_sweeps),
            index=float(shares[1, mine].mean() / kept_sweeps),
            disagreement=float(apart),
        )
    return found


def _gain(state: Floats, held: Mask, places: tuple[int, ...]) -> Floats:
    """What a unit takes off Q, (chains,), whether it is in or out."""
    if len(places) == 1:
        place = places[0]
        pivot = state[:, place, place]
        # The index adds nothing where every feature is kept.
        return np.asarray(state[:, place, -1] ** 2 / np.where(pivot > 1e-12, pivot, np.inf))
    trial = state
    for place in places:
        trial = _sweep(trial, place)
    return np.abs(trial[:, -1, -1] - state[:, -1, -1])


def _sweep(state: Floats, place: int) -> Floats:
    """Goodnight's sweep of a column, in or out, (chains, k, k)."""
    pivot = state[:, place, place].copy()
    row = state[:, place] / pivot[:, None]
    column = state[:, :, place].copy()
    swept = state - column[:, :, None] * row[:, None, :]
    swept[:, place] = row
    swept[:, :, place] = -column / pivot[:, None]
    swept[:, place, place] = 1.0 / pivot
    return np.asarray(swept)


def _swept(start: Floats, held: Mask) -> Floats:
    """Sweep the columns that each chain holds into the matrix of all."""
    state = np.repeat(start[None], len(held), axis=0)
    for place in range(held.shape[1]):
        rows = held[:, place]
        if rows.any():
            state[rows] = _sweep(state[rows], place)
    return state

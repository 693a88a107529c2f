"""Assignments one by one: their estimates and covariances, as the form has them.

With B the columns that assignment S holds, P the inverse covariance of the free parameters, and
C = B (B'PB)^-1/2, the free parameters of S are C C' P theta-hat, and their covariance is C C'. All
else follows from these: linear functions of the estimates, in every family, and by the delta method
any others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.linalg import symmetric
from heckmanfa.search.form import Form

_BLOCK_BYTES = 2**25
# In a sum of weights.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Gathered:
    """Some assignments taken together: with their mean, and all of their spread."""

    weight: float
    members: NDArray[np.intp]
    estimates: Floats
    """(d,)"""
    covariance: Floats
    """(d, d) within assignments and between them"""


@dataclass(frozen=True, eq=False)
class Members:
    """N assignments of a form, with their weights."""

    form: Form
    states: Mask
    """(N, K + 2) which columns of X are held on their own, the correction and the index; or
    (N, 2 K + 2) with the columns that the selection equation holds after the first K"""
    weights: Floats
    """(N,) summing to one"""

    def only(self, members: NDArray[np.intp]) -> Members:
        """Return some of the assignments, with the weights that they have."""
        return replace(self, states=self.states[members], weights=self.weights[members])

    def beside(self, state: Mask, share: float) -> Members:
        """Return the same with one more assignment, last, which gets a share of the weight."""
        states = np.concatenate([self.states, state[None]])
        return replace(self, states=states, weights=np.append((1 - share) * self.weights, share))

    @cached_property
    def estimates(self) -> Floats:
        """(N, d) all estimates of each assignment."""
        form = self.form
        pulled = form.root @ form.estimates[form.free]
        free = np.zeros((len(self.states), len(form.free)))
        for rows, factor in self._blocks():
            # C'R'R theta-hat: the columns of R C are orthonormal.
            along = np.einsum("nfj,f->nj", factor, form.root.T @ pulled)
            free[rows] = np.einsum("nfj,nj->nf", factor, along)
        held = self._design()[:, : len(form.free)]
        index = self.states[:, -1]
        acts = held | (index[:, None] & np.any(form.directions != 0.0, axis=0))
        # What an assignment does not hold is exactly zero.
        return form.all_of(np.where(acts, free, 0.0))

    @property
    def costs(self) -> Floats:
        """(N,) what each assignment costs: the Wald statistic of what it drops."""
        form = self.form
        away = self.estimates[:, form.free] - form.estimates[form.free]
        return np.asarray(np.sum((away @ form.root.T) ** 2, axis=1))

    @cached_property
    def terms(self) -> Floats:
        """(N, T) what tables show of each assignment."""
        return self.form.terms(self.estimates)

    def mean_of(self, name: str) -> float:
        """Average of an error term that tables show."""
        return float(self.weights @ self.terms[:, self.form.place_of(name)])

    def variances(self, gradients: Floats) -> Floats:
        """Variances, (N, q), of q linear functions of all estimates, (q, d).

        Gradients (N, q, d) differ by assignment.
        """
        (variances,) = self._variances(gradients)
        return variances

    def _variances(self, *functions: Floats) -> list[Floats]:
        """Return `variances` of several sets of functions; the assignments are factored once."""
        form = self.form
        sets = []
        for gradients in functions:
            moved, rest = gradients @ form.moves, gradients @ (form.response - form.moves)
            variances = np.empty((len(self.states), gradients.shape[-2]))
            variances[:] = np.einsum("...qi,ij,...qj->...q", gradients, form.unmoved, gradients)
            sets.append((moved, rest, variances))
        for rows, factor in self._blocks():
            for moved, rest, variances in sets:
                own = rows if moved.ndim == 3 else ...
                along, apart = moved[own] @ factor, rest[own] @ factor
                variances[rows] += np.sum(along * (along + 2.0 * apart), axis=2)
        return [np.maximum(variances, 0.0) for _, _, variances in sets]

    @cached_property
    def term_errors(self) -> Floats:
        """(N, T) standard errors of the terms; zero for what an assignment does not hold."""
        form, n = self.form, self.form.correction
        slopes = form.term_slopes(self.estimates)
        ends = np.zeros((len(slopes), slopes.shape[1], len(form.estimates)))
        ends[:, :, n:] = slopes
        errors = np.sqrt(np.hstack(self._variances(np.eye(len(form.estimates))[:n], ends)))
        slopes_at = [place for place in form.free if place < n]
        errors[:, slopes_at] *= self.terms[:, slopes_at] != 0.0
        return np.asarray(errors)

    def covariance(self, member: int) -> Floats:
        """Covariance of all estimates of one assignment, (d, d)."""
        only = replace(self, states=self.states[[member]], weights=np.ones(1))
        return only.gathered(np.array([0]))[0].covariance

    def gathered(self, *sets: NDArray[np.intp]) -> list[Gathered]:
        """Take the assignments of each of some disjoint sets together."""
        n_free = len(self.form.free)
        weights = [float(self.weights[members].sum()) for members in sets]
        place, share = np.full(len(self.weights), -1), np.zeros(len(self.weights))
        for number, (members, weight) in enumerate(zip(sets, weights, strict=True)):
            place[members] = number
            even = 1.0 / len(members)
            share[members] = self.weights[members] / weight if weight > 0.0 else even
        within = np.zeros((len(sets), n_free, n_free))
        for rows, factor in self._blocks(np.flatnonzero(place >= 0)):
            scaled = factor * np.sqrt(share[rows])[:, None, None]
            for number in np.unique(place[rows]):
                within[number] += _products(scaled[place[rows] == number])
        gathered = []
        for members, weight, spread in zip(sets, weights, within, strict=True):
            mean = share[members] @ self.estimates[members]
            apart = (self.estimates[members] - mean) * np.sqrt(share[members])[:, None]
            covariance = symmetric(self._within(spread) + apart.T @ apart)
            gathered.append(Gathered(weight, members, mean, covariance))
        return gathered

    def _within(self, spread: Floats) -> Floats:
        """Return the covariance within assignments, (d, d), given the mean of C C', (f, f)."""
        form = self.form
        crossed = form.moves @ spread @ (form.response - form.moves).T
        return np.asarray(form.unmoved + form.moves @ spread @ form.moves.T + crossed + crossed.T)

    def groups(self, count: int) -> list[Gathered]:
        """Take assignments together that have similar estimates and errors: ``count`` groups.

        Mean and covariance of every function that is linear in the estimates are kept. What a group
        loses is how its assignments differ, so the group in which one unit explains most is split
        by that unit, until there are so many.
        """
        size = np.sqrt(np.diag(self.form.covariance))
        both = [self.estimates, np.sqrt(self.variances(np.eye(len(size))))]
        described = np.concatenate([each / np.where(size > 0, size, 1.0) for each in both], axis=1)
        everything = np.arange(len(self.weights))
        sets = [(*self._split(everything, described), everything)]
        while len(sets) < count:
            most = max(range(len(sets)), key=lambda number: sets[number][0])
            gain, unit, members = sets[most]
            if gain <= 0.0:
                break
            held = self.states[members, unit]
            halves = members[held], members[~held]
            sets[most : most + 1] = [(*self._split(half, described), half) for half in halves]
        return self.gathered(*(members for _, _, members in sets))

    def _split(self, members: NDArray[np.intp], described: Floats) -> tuple[float, int]:
        """Return how much of the variance between assignments one unit explains, and which."""
        weights, states = self.weights[members], self.states[members]
        total = weights.sum()
        held = weights @ states
        rest = total - held
        divides = (held > _ROUNDING * total) & (rest > _ROUNDING * total)
        if not divides.any():
            return 0.0, 0
        apart = described[members] - weights @ described[members] / total
        moved = np.sum(((states * weights[:, None]).T @ apart) ** 2, axis=1)
        explained = np.zeros(len(held))
        np.divide(moved * total, held * rest, out=explained, where=divides)
        unit = int(np.argmax(explained))
        return float(explained[unit]), unit

    def term_covariance(self) -> tuple[Floats, Floats]:
        """Mean, (T,), and covariance, (T, T), of the terms: within assignments and between them."""
        form, n = self.form, self.form.correction
        mean = self.weights @ self.terms
        with np.errstate(invalid="ignore"):
            # Degrees of freedom may be infinite, in every assignment then.
            apart = np.nan_to_num(self.terms - mean) * np.sqrt(self.weights)[:, None]
        covariance = apart.T @ apart
        within = np.zeros((len(form.free), len(form.free)))
        slopes = form.term_slopes(self.estimates)
        last = np.eye(len(form.estimates))[n:]
        # W_S e for the last estimates e, weighted by how the terms follow them in S.
        weighted = self.weights[:, None, None] * slopes
        cross = np.einsum("nte,ei->it", weighted, last @ form.unmoved)
        ends = np.einsum("nte,ef,nuf->tu", weighted, last @ form.unmoved @ last.T, slopes)
        difference = form.response - form.moves
        moved, rest = last @ form.moves, last @ difference
        for rows, factor in self._blocks():
            within += _products(factor * np.sqrt(self.weights[rows])[:, None, None])
            own, other = moved @ factor, rest @ factor
            along = np.einsum("nte,nej->ntj", weighted[rows], own + other)
            spread = np.einsum("nfj,ntj->ft", factor, along)
            along = np.einsum("nte,nej->ntj", weighted[rows], own)
            spread_apart = np.einsum("nfj,ntj->ft", factor, along)
            cross += form.moves @ spread + difference @ spread_apart
            pairs = np.einsum("nej,ngj->neg", own, own + other)
            pairs += np.einsum("nej,ngj->neg", other, own)
            ends += np.einsum("nte,neg,nug->tu", weighted[rows], pairs, slopes[rows])
        covariance[:n, :n] += self._within(within)[:n, :n]
        covariance[:n, n:] += cross[:n]
        covariance[n:, :n] += cross[:n].T
        covariance[n:, n:] += ends
        return mean, symmetric(covariance)

    def _design(self) -> Mask:
        """(N, f + r) which free parameters are held, and the indexes."""
        last = self.states.shape[1] - 1
        return self.states[:, [*self.form.places_in(last + 1), *[last] * self.form.n_equations]]

    def _blocks(
        self, members: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[NDArray[np.intp], Floats]]:
        """Yield assignments of one size each: their positions, and C, (b, f, J)."""
        form = self.form
        design = np.column_stack([np.eye(len(form.free)), form.directions.T])
        columns = form.root @ design
        length = np.sqrt(np.sum(columns**2, axis=0))
        length[length == 0.0] = 1.0
        held = self._design()
        sizes = held.sum(axis=1)
        rows = np.arange(len(held)) if members is None else members
        for size in np.unique(sizes[rows]):
            same = rows[sizes[rows] == size]
            step = max(_BLOCK_BYTES // (16 * len(form.free) * max(int(size), 1)), 1)
            for start in range(0, len(same), step):
                block = same[start : start + step]
                chosen = np.nonzero(held[block])[1].reshape(len(block), size)
                scaled = (columns / length).T[chosen].transpose(0, 2, 1)
                triangle = np.asarray(np.linalg.qr(scaled, mode="r"))
                inverse = np.linalg.inv(triangle)
                yield block, (design / length).T[chosen].transpose(0, 2, 1) @ inverse


def _products(factors: Floats) -> Floats:
    """Return the sum of C C', (f, f), over some C, (b, f, J)."""
    flat = factors.transpose(1, 0, 2).reshape(factors.shape[1], -1)
    return np.asarray(flat @ flat.T)

"""Bootstrap samples of the rows of bounds, as weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.random_state import generator
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.inference.bounds.reading import Read
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

_FEWEST = 2


@dataclass(frozen=True, eq=False)
class Draws:
    """Numbers of bootstrap samples."""

    values: Floats
    """(b, q)"""
    n_failed: int

    @property
    def errors(self) -> Floats:
        """(q,) standard errors."""
        return np.asarray(self.values.std(axis=0, ddof=1))

    @property
    def notes(self) -> list[str]:
        """How many samples there are, in a sentence."""
        failed = f"; {self.n_failed} others lacked a group" if self.n_failed else ""
        return [f"Standard errors are from {plural(len(self.values), 'bootstrap sample')}{failed}."]


def resample(
    found: Read, compute: Callable[[Floats], Floats | None], n_boot: int, random_state: Any
) -> Draws:
    """Compute numbers of bootstrap samples; None of ``compute`` is a sample without a result.

    Clusters are drawn as a whole. ``compute`` is given the weights (n,) of a sample, zero for rows
    that are not in it.
    """
    values = [compute(weight) for weight in _samples(found, n_boot, random_state)]
    known = [value for value in values if value is not None]
    if len(known) < _FEWEST:
        raise NotIdentifiedError(
            f"{len(values) - len(known)} of {len(values)} bootstrap samples lack a group, and the "
            "others show no standard errors: use larger cells"
        )
    return Draws(np.array(known), len(values) - len(known))


def _samples(found: Read, n_boot: int, random_state: Any) -> Iterator[Floats]:
    weight, clusters = found.rows.weight, found.sampling.clusters
    random = generator(random_state)
    for _ in range(n_boot):
        if clusters is not None:
            n = found.sampling.n_clusters or 0
            yield random.multinomial(n, np.full(n, 1.0 / n))[clusters] * weight
        elif found.sampling.kind == "frequency":
            total = weight.sum()
            yield random.multinomial(int(total), weight / total).astype(np.float64)
        else:
            n = len(weight)
            yield random.multinomial(n, np.full(n, 1.0 / n)) * weight


def check_n_boot(n_boot: Any, least: int) -> int:
    """Return the number of bootstrap samples; refuse too few."""
    if isinstance(n_boot, bool) or not isinstance(n_boot, int) or (n_boot and n_boot < least):
        raise InputError(f"n_boot must be an integer of {least} or more; got {quoted(n_boot)}")
    return n_boot

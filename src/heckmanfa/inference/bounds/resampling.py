"""Bootstrap samples of the rows of bounds, as weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.inference.bounds.reading import CLUSTERS, Read
from heckmanfa.model.worst_case import Codes
from heckmanfa.text.option_words import option
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
        scale = np.abs(self.values).max() or 1.0
        return np.asarray(scale * (self.values / scale).std(axis=0, ddof=1))

    @property
    def notes(self) -> list[str]:
        """How many samples there are, in a sentence."""
        failed = f"; {self.n_failed} others lacked a group" if self.n_failed else ""
        return [f"Standard errors are from {plural(len(self.values), 'bootstrap sample')}{failed}."]


def resample(
    found: Read, compute: Callable[[Floats], Floats | None], n_boot: int, random_state: Any
) -> Draws:
    """Compute numbers of bootstrap samples; None of ``compute`` is a sample without a result.

    Clusters and units of a survey are drawn as a whole. ``compute`` is given the weights (n,) of a
    sample, zero for rows that are not in it.
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
    weight, units, cells = found.rows.weight, found.sampling.units, found.sampling.cells
    random = generator(random_state)
    if cells is not None:
        assert units is not None
        draw = _of_units(cells, found.sampling.seen)
        yield from (draw(random)[units] * weight for _ in range(n_boot))
        return
    for _ in range(n_boot):
        if found.sampling.kind == "frequency":
            total = weight.sum()
            yield random.multinomial(int(total), weight / total).astype(np.float64)
        else:
            n = len(weight)
            yield random.multinomial(n, np.full(n, 1.0 / n)) * weight


def _of_units(cells: Cells, seen: Mask) -> Callable[[np.random.Generator], Floats]:
    """Return what draws how often each unit, (n,), is in a sample."""
    if cells.ways:
        raise InputError(
            f"a bootstrap draws clusters of one kind, and {CLUSTERS} has two: pass one column"
        )
    if cells.strata is None:
        shares = seen / seen.sum()
        return lambda random: random.multinomial(int(seen.sum()), shares).astype(np.float64)
    return partial(_in_strata, cells, np.bincount(cells.strata))


def _in_strata(cells: Cells, counts: Codes, random: np.random.Generator) -> Floats:
    """Draw all units but one of each stratum, and rescale them (Rao, Wu and Yue, 1992).

    A stratum of one unit is not drawn from: it is in every sample.
    """
    assert cells.strata is not None
    if cells.single_psu == "centered" and (counts == 1).any():
        raise InputError(
            f"a bootstrap has no deviation of a stratum of one unit: merge such strata, or use "
            f"{option('single_psu', 'certainty')}"
        )
    factor = np.ones(cells.n)
    for stratum in np.flatnonzero(counts > 1):
        n = counts[stratum]
        drawn = random.multinomial(n - 1, np.full(n, 1.0 / n)) * (n / (n - 1.0))
        left = 1.0 if cells.fraction is None else 1.0 - cells.fraction[stratum]
        factor[cells.strata == stratum] = 1.0 + np.sqrt(left) * (drawn - 1.0)
    return factor


def check_n_boot(n_boot: Any, least: int) -> int:
    """Return the number of bootstrap samples; refuse too few."""
    if isinstance(n_boot, bool) or not isinstance(n_boot, int) or (n_boot and n_boot < least):
        raise InputError(
            f"{option('n_boot')} must be an integer of {least} or more; got {quoted(n_boot)}"
        )
    return n_boot

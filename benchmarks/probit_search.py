"""Time of the search of `HeckmanProbitBestSubset`, a part of `benchmarks.probit`."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

from benchmarks.common import judged
from benchmarks.run import SEED
from heckmanfa import HeckmanProbitBestSubset
from heckmanfa.datasets import make_selection
from heckmanfa.errors import HeckmanfaWarning

ROWS, FEATURES, SECONDS = 20_000, 40, 10.0
"""Size of the search, and the seconds that it may take"""
_STRENGTH = 0.3


@dataclass(frozen=True)
class Searched:
    """The quickest of some searches, and what it found."""

    seconds: float
    cpu_seconds: float
    n_nodes: int
    n_refits: int
    same_order: float
    found_truth: bool


def search(rounds: int) -> Searched:
    """Search simulated data in which half of the features predict, weakly."""
    half = FEATURES // 2
    data = make_selection(
        ROWS,
        FEATURES,
        prediction_features=range(half),
        correlation=0.3,
        strength=_STRENGTH,
        outcome_kind="binary",
        random_state=SEED,
    )
    found = []
    for _ in range(rounds):
        start, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeckmanfaWarning)
            model = HeckmanProbitBestSubset().fit(data.X, data.y)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        result = model.fit_.search.check_searched()
        found.append(
            Searched(
                seconds=seconds,
                cpu_seconds=cpu,
                n_nodes=result.n_nodes,
                n_refits=len(result.bic),
                same_order=result.refits.same_order(result.bic),
                found_truth=model.prediction_features_ == list(range(half)),
            )
        )
    return min(found, key=lambda item: item.seconds)


def target(found: Searched) -> str:
    """One line for the target, with its numbers."""
    truth = "the true features" if found.found_truth else "other than the true features"
    return judged(
        f"search of K = {FEATURES} at n = {ROWS:,} in at most {SECONDS:g} s on two cores",
        found.seconds <= SECONDS,
        f"{found.seconds:.1f} s ({found.cpu_seconds:.1f} s of processor time), {found.n_nodes:,} "
        f"nodes, {found.n_refits} refits, whose orders agree in {100 * found.same_order:.0f}% of "
        f"pairs; it found {truth}",
    )

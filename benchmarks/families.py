"""Time of each other model beside the linear maximum likelihood, and of ordered beside binary.

Everything runs in one process and on one thread, and the models take turns: what else the machine
does falls on all of them. A ratio is the median, over rounds, of two processor times of one round.
``python -m benchmarks.families --out docs/benchmarks.md`` writes the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Figures, OtherLoad, asked, judged, machine, publish
from benchmarks.run import SEED

N, K = 100_000, 10
ROUNDS, MOST = 7, 3.0
INSTALLED = ("heckmanfa", "numpy", "scipy", "scikit-learn", "pandas")
MARKS = (
    "<!-- figures of the families: made by `python -m benchmarks.families --out` -->",
    "<!-- end of the families' figures -->",
)
HEADER = ("model", "errors", "CPU s", "beside", "CPU s", "ratio")
# One thread for all, so that processor time does not depend on who waits for whom.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "HECKMANFA_NUM_THREADS": "1"}
LINEAR, BINARY = "linear ML", "Heckman probit"

Floats = NDArray[np.float64]
Fit = Callable[[], Any]


class Case(NamedTuple):
    """A model on some data, and the model that it is measured by."""

    model: str
    errors: str
    beside: str
    fit: Fit
    reference: Fit
    has_target: bool = True


def _errors(rng: np.random.Generator, df: float, rho: float = 0.5) -> tuple[Floats, Floats]:
    u, v = rng.normal(size=(2, N))
    scale = np.sqrt(rng.chisquare(df, N) / df) if np.isfinite(df) else 1.0
    return u / scale, (rho * u + np.sqrt(1.0 - rho**2) * v) / scale


def cases() -> list[Case]:
    """Simulate the data; all features select or drive treatment, and half of them predict."""
    from heckmanfa import Heckman, HeckmanOrdered, HeckmanProbit, TreatmentModel

    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(N, K)) @ np.linalg.cholesky(0.3 + 0.7 * np.eye(K)).T
    predicting = list(range(K // 2))
    beta, gamma = np.linspace(-1.0, 1.0, K // 2), np.linspace(0.4, -0.3, K)
    mean, index = 1.0 + X[:, predicting] @ beta, X @ gamma
    found = []

    def linear(y: Floats, **options: Any) -> Fit:
        return partial(Heckman(predicting, method="ml", **options).fit, X, y)

    # With normal errors, infinite degrees of freedom are the estimate in about half of all samples.
    for errors, df in (("t, ν = 5", 5.0), *[("normal", np.inf)] * 3):
        u, e = _errors(rng, df)
        y = np.where(index + u > 0, mean + e, np.nan)
        fit = linear(y, errors="t")
        if errors == "normal":
            degrees = fit().fit_.errors["df"].value
            errors += ", ν̂ = ∞" if np.isinf(degrees) else f", ν̂ = {degrees:,.0f}"
        found.append(Case("selection-t", errors, LINEAR, fit, linear(y)))
    u, e = _errors(rng, np.inf)
    y, treated = mean + e, index + u > 0
    seen = linear(np.where(treated, y, np.nan))
    for regimes in ("common", "separate"):
        model = TreatmentModel(predicting, regimes=regimes, method="ml")
        fit = partial(model.fit, X, y + 1.0 * treated, treated=treated)
        found.append(Case(f"treatment, {regimes} regimes", "normal", LINEAR, fit, seen))
    fit = partial(Heckman(predicting, method="series").fit, X, np.where(treated, y, np.nan))
    found.append(Case("series", "normal", LINEAR, fit, seen, False))
    binary = HeckmanProbit(predicting)
    beside = partial(binary.fit, X, np.where(treated, mean + e > 1.0, np.nan))
    for n_classes in (3, 5):
        cuts = np.linspace(-0.5, 2.5, n_classes - 1)
        classes = np.where(treated, np.digitize(mean + e, cuts), np.nan)
        fit = partial(HeckmanOrdered(predicting).fit, X, classes)
        found.append(Case(f"ordered, {n_classes} classes", "normal", BINARY, fit, beside))
    return found


def _measure(rounds: int) -> list[dict[str, Any]]:
    """Processor seconds of each case and of what it is measured by, round by round."""
    warnings.simplefilter("ignore")
    found = cases()
    seconds: list[list[tuple[float, float]]] = [[] for _ in found]
    for lap in range(rounds + 1):
        for place, case in enumerate(found):
            own, other = _seconds(case.fit), _seconds(case.reference)
            # The first lap warms up.
            if lap:
                seconds[place].append((own, other))
    return [
        {
            "case": case[:3],
            "has_target": case.has_target,
            "own": min(own for own, _ in pairs),
            "other": min(other for _, other in pairs),
            "ratio": float(np.median([own / other for own, other in pairs])),
        }
        for case, pairs in zip(found, seconds, strict=True)
    ]


def _seconds(fit: Fit) -> float:
    start = time.process_time()
    fit()
    return time.process_time() - start


def main() -> None:
    """Measure, print, and write the figures to a page if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--measure", type=int, help="rounds, in this process")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, help="page whose figures are replaced")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(_measure(options.measure)))
        return
    start, load = time.perf_counter(), OtherLoad()
    answer = asked(
        "families", "--measure", str(options.rounds), environment=os.environ | ONE_THREAD
    )
    rows = [
        (
            *found["case"][:2],
            f"{found['own']:.3f}",
            found["case"][2],
            f"{found['other']:.3f}",
            f"{found['ratio']:.2f}",
        )
        for found in answer
    ]
    title = f"{N:,} rows, {K} features, one thread"
    lines = {
        "machine": machine(load.share(), INSTALLED),
        "notes": [
            f"CPU seconds are the least of {options.rounds} rounds, in which the models take turns "
            "in one process. A ratio is the median over rounds.",
        ],
        "agreement": [],
        "targets": [
            judged(
                f"{model} ({errors}) takes at most {MOST:.0f} times as long as the {beside}",
                found["ratio"] <= MOST,
                f"{found['ratio']:.2f} times",
            )
            for found in answer
            if found["has_target"]
            for model, errors, beside in [found["case"]]
        ],
    }
    publish(
        Figures(title, HEADER, (0, 1, 3), rows),
        lines,
        time.perf_counter() - start,
        options.out,
        MARKS,
    )


if __name__ == "__main__":
    main()

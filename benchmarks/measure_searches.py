"""One measurement of the searches in a fresh interpreter, which prints one line of JSON.

`benchmarks.searches` starts this module with the number of threads in the environment, where
numerical libraries read it as they are loaded.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.crime import Data, load
from benchmarks.paper_loop import PaperLoop
from heckmanfa import HeckmanBestSubset, HeckmanFA, compress
from heckmanfa.datasets import make_selection
from heckmanfa.search import Goal, best_subset, sample
from heckmanfa.search.best_subset.branch_and_bound import warm_start
from heckmanfa.search.best_subset.tree import Tree
from heckmanfa.search.choices import all_features
from heckmanfa.search.training import train

Floats = NDArray[np.float64]

EPOCHS, DRAWS = 4_000, 1_000
LOOP_EPOCHS, LOOP_DRAWS = 50, 50
INIT_PROB, LEARNING_RATE = 0.75, 0.75
ROUNDS = 3
LSTSQ_FITS = 100
MILLION, MILLION_FEATURES = 1_000_000, 30
MILLION_EPOCHS = 8
LEAPS_LIMIT_S = 150.0
SEED = 0


@dataclass
class Training:
    """Training and draws, ours and the paper's loop; seconds are the best of the rounds."""

    n: int
    m: int
    k: int
    fit: float
    """`HeckmanFA.fit`: probit, all epochs, all draws, and the estimates"""
    epoch: float
    draw: float
    loop_epoch: float
    loop_draw: float
    pi_gap: float
    """largest difference of a probability after the loop's epochs, on the same noise"""
    draw_gap: float
    """largest difference of rho-hat or adjusted R^2 among the loop's draws"""

    @property
    def loop(self) -> float:
        """Seconds of the loop for all epochs and draws, scaled up."""
        return EPOCHS * self.loop_epoch + DRAWS * self.loop_draw


@dataclass
class Subset:
    """The best of all assignments; seconds are the best of the rounds."""

    m: int
    k: int
    criterion: str
    window: tuple[float, float] | None
    fit: float
    """`HeckmanBestSubset.fit`"""
    search: float
    """`extraction.best_subset` on the compressed data"""
    n_assignments: int
    optimal: bool
    adjusted_r2: float
    n_features: int
    criterion_gap: float
    """difference of adjusted R^2 from a least-squares fit with statsmodels' probit"""
    lstsq: float
    """one fit by NumPy of an assignment of half the features"""
    leaps: float | None
    """R's leaps, None where it is not installed or not asked"""


@dataclass
class Hard:
    """A search of correlated features with effects that are hard to tell from none."""

    n: int
    k: int
    effect: float
    correlation: float
    search: float
    """processor seconds of the search on the compressed data"""
    n_nodes: int
    optimal: bool
    gap: float
    tree_gap: float
    """gap of the tree alone after as many nodes"""


@dataclass
class Million:
    """An epoch on a million selected rows beside two plain products with them."""

    m: int
    k: int
    epoch: float
    products: float


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def training(data: Data) -> Training:
    """Let `HeckmanFA` and the loop take turns."""
    k = data.X.shape[1]
    squeezed = compress(data.X, data.y)
    moments, rows = squeezed.moments, squeezed.rows
    choices = all_features(moments)
    names = [str(column) for column in range(k)]
    goal = Goal.of(moments, "adjusted_r2")
    how = {"init_prob": INIT_PROB, "learning_rate": LEARNING_RATE, "standardize": "features"}
    model = HeckmanFA(
        "sample", rho_range=None, epochs=EPOCHS, n_draws=DRAWS, random_state=SEED, **how
    )
    generator = np.random.default_rng(SEED)
    noise = generator.gumbel(size=(LOOP_EPOCHS, 2, k))
    draw_noise = generator.gumbel(size=(LOOP_DRAWS, 2, k))

    def loop_of() -> PaperLoop:
        return PaperLoop(data.X, data.y, init_prob=INIT_PROB, learning_rate=LEARNING_RATE)

    HeckmanFA("sample", epochs=10, n_draws=10, random_state=SEED, **how).fit(data.X, data.y)
    loop_of().epoch(noise[0])
    log_pi = train(moments, rows, epochs=EPOCHS, random_state=SEED, **how).log_pi
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        loop = loop_of()
        draws: list[Any] = []
        works = {
            "fit": lambda: model.fit(data.X, data.y),
            "epoch": lambda: train(moments, rows, epochs=EPOCHS, random_state=SEED, **how),
            "draw": lambda: sample(
                moments, choices, goal, log_pi, names=names, n_draws=DRAWS, random_state=SEED
            ),
            "loop_epoch": lambda loop=loop: [loop.epoch(gumbel) for gumbel in noise],
            "loop_draw": lambda loop=loop, draws=draws: draws.extend(map(loop.draw, draw_noise)),
        }
        for name, work in works.items():
            times.setdefault(name, []).append(_seconds(work))
    best = {name: min(seconds) for name, seconds in times.items()}

    replayed = train(moments, rows, epochs=LOOP_EPOCHS, noise=noise, **how)
    masks, rho, adjusted = (np.array(part) for part in zip(*draws, strict=True))
    solved = moments.solve(masks)
    gaps = np.abs([solved.rho - rho, solved.adjusted_r2 - adjusted])
    return Training(
        n=len(data.y),
        m=int(moments.n_selected),
        k=k,
        fit=best["fit"],
        epoch=best["epoch"] / EPOCHS,
        draw=best["draw"] / DRAWS,
        loop_epoch=best["loop_epoch"] / LOOP_EPOCHS,
        loop_draw=best["loop_draw"] / LOOP_DRAWS,
        pi_gap=float(np.abs(np.exp(replayed.log_pi) - np.exp(loop.log_pi)).max()),
        draw_gap=float(gaps.max()),
    )


def subset(data: Data, criterion: str, window: tuple[float, float] | None) -> Subset:
    """Search by proof, with the probit and without it."""
    k = data.X.shape[1]
    model = HeckmanBestSubset(criterion, rho_range=window)
    moments = compress(data.X, data.y).moments
    choices, goal = all_features(moments), Goal.of(moments, criterion, window)
    names = [str(column) for column in range(k)]
    HeckmanBestSubset("bic", prediction_features=range(5)).fit(data.X, data.y)
    fits, searches = [], []
    for _ in range(ROUNDS):
        fits.append(_seconds(lambda: model.fit(data.X, data.y)))
        start = time.perf_counter()
        found = best_subset(moments, choices, goal, names=names)
        searches.append(time.perf_counter() - start)

    loop = PaperLoop(data.X, data.y, init_prob=INIT_PROB, learning_rate=LEARNING_RATE)
    _, ratio = loop.mills()
    y = data.y[~np.isnan(data.y)]
    m, size = len(y), int(found.n_features[0])
    half = loop.design(np.arange(k) < k // 2, ratio)
    lstsq = [
        _seconds(lambda: [np.linalg.lstsq(half, y) for _ in range(LSTSQ_FITS)])
        for _ in range(ROUNDS)
    ]
    chosen = loop.design(found.best, ratio)
    residual = y - chosen @ np.linalg.lstsq(chosen, y)[0]
    unexplained = (residual @ residual / (m - size - 1)) / np.var(y, ddof=1)
    everything = loop.design(np.ones(k, dtype=bool), ratio)[:, 1:]
    ask_leaps = window is None and criterion == "adjusted_r2"
    return Subset(
        m=m,
        k=k,
        criterion=criterion,
        window=window,
        fit=min(fits),
        search=min(searches),
        n_assignments=found.n_assignments,
        optimal=bool(found.optimal) and model.optimal_,
        adjusted_r2=float(found.adjusted_r2[0]),
        n_features=size,
        criterion_gap=abs(float(found.adjusted_r2[0]) - (1.0 - unexplained)),
        lstsq=min(lstsq) / LSTSQ_FITS,
        leaps=leaps_seconds(everything, y) if ask_leaps else None,
    )


def hard_data(n: int, effect: float, correlation: float) -> tuple[Floats, Floats]:
    """Simulate 100 features of equal correlation, 20 of them with effects of either sign."""
    generator, k, strong = np.random.default_rng(SEED), 100, 20
    common, own = generator.normal(size=(n, 1)), generator.normal(size=(n, k))
    X = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    beta, gamma = np.zeros((2, k))
    for coefficients, size in ((beta, effect), (gamma, 0.2)):
        signs = generator.choice([-1.0, 1.0], strong)
        coefficients[generator.choice(k, strong, replace=False)] = size * signs
    u, v = generator.normal(size=(2, n))
    outcome = 1.0 + X @ beta + 0.5 * u + np.sqrt(0.75) * v
    return X, np.where(X @ gamma + u > -0.5, outcome, np.nan)


def hard(n: int, effect: float, correlation: float) -> Hard:
    """Search by BIC, and by the tree alone with as many nodes."""
    X, y = hard_data(n, effect, correlation)
    k = X.shape[1]
    moments = compress(X, y).moments
    choices = all_features(moments)
    goal = Goal.of(moments, "bic").among(choices)
    start = time.process_time()
    found = best_subset(moments, choices, goal, names=[str(column) for column in range(k)])
    seconds = time.process_time() - start
    assert found.n_nodes is not None
    assert found.gap is not None
    first = warm_start(moments, choices, goal)
    tree = Tree(
        *(moments, choices, goal),
        tolerance=2.0,
        max_nodes=found.n_nodes,
        start=np.inf if first is None else first[0],
    )
    tree.run()
    tree_gap = float(goal.value(tree.record.best) - goal.value(min(tree.bound, tree.record.best)))
    proof = seconds, found.n_nodes, bool(found.optimal), found.gap, tree_gap
    return Hard(n, k, effect, correlation, *proof)


# The best of every size, which is the best by any criterion without a window.
_LEAPS = """
data <- as.matrix(read.csv(commandArgs(TRUE)[1], header = FALSE))
last <- ncol(data)
x <- data[, -last]
if (!requireNamespace("leaps", quietly = TRUE)) quit(status = 3)
seconds <- system.time(leaps::regsubsets(x, data[, last], force.in = ncol(x), nvmax = ncol(x),
                                         method = "exhaustive", really.big = TRUE))
cat(seconds[["elapsed"]], "\\n")
"""


def leaps_seconds(features: Floats, y: Floats) -> float | None:
    """R's leaps with the last column (the inverse Mills ratio) forced in."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        table, script = Path(name) / "data.csv", Path(name) / "leaps.R"
        np.savetxt(table, np.column_stack([features, y]), delimiter=",", fmt="%.17g")
        script.write_text(_LEAPS)
        try:
            done = subprocess.run(
                [rscript, str(script), str(table)],
                check=True,
                capture_output=True,
                text=True,
                timeout=LEAPS_LIMIT_S,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
    return float(done.stdout.split()[-1])


def million() -> Million:
    """Time epochs by the moments at which they ask for noise."""
    n = MILLION * 3 // 2
    drawn = make_selection(
        n, MILLION_FEATURES, 15, selection_rate=0.7, correlation=0.3, random_state=SEED
    )
    stop = int(np.flatnonzero(~np.isnan(drawn.y))[MILLION - 1]) + 1
    X, y = drawn.X[:stop], drawn.y[:stop]
    del drawn
    squeezed = compress(X, y)
    plain = np.ascontiguousarray(X[~np.isnan(y)])
    generator = np.random.default_rng(SEED)
    # The first epoch warms up, and the last is not seen to end.
    noise = generator.gumbel(size=(MILLION_EPOCHS + 2, 2, MILLION_FEATURES))
    beta, v = generator.normal(size=MILLION_FEATURES), generator.normal(size=len(plain))

    def stamped(marks: list[float]) -> Iterator[Floats]:
        for gumbel in noise:
            marks.append(time.perf_counter())
            yield gumbel

    def products() -> None:
        plain @ beta
        plain.T @ v

    epochs, both = [], []
    for _ in range(ROUNDS):
        marks: list[float] = []
        train(squeezed.moments, squeezed.rows, noise=stamped(marks), standardize="features")
        epochs.append(float(np.mean(np.diff(marks)[1:])))
        products()
        both.append(_seconds(lambda: [products() for _ in range(MILLION_EPOCHS)]) / MILLION_EPOCHS)
    return Million(len(plain), MILLION_FEATURES, min(epochs), min(both))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=["training", "subset", "hard", "million"])
    parser.add_argument("--features", type=int, default=26, metavar="K")
    parser.add_argument("--criterion", default="adjusted_r2")
    parser.add_argument("--window", type=float, nargs=2, metavar=("LOW", "HIGH"))
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--effect", type=float, default=0.15)
    parser.add_argument("--correlation", type=float, default=0.5)
    parser.add_argument("--simulate", action="store_true", help="even where CRIME's data are")
    asked = parser.parse_args()
    window = None if asked.window is None else tuple(asked.window)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if asked.what == "million":
            found: Any = million()
        elif asked.what == "hard":
            found = hard(asked.rows, asked.effect, asked.correlation)
        elif asked.what == "training":
            found = training(load(asked.features, asked.simulate))
        else:
            found = subset(load(asked.features, asked.simulate), asked.criterion, window)
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()

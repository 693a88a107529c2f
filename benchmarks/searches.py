"""Time of the searches for prediction features beside what else could do them: `make bench`.

Four parts: training and draws beside the loop that the paper describes, the best of all
assignments beside least-squares fits of all of them, searches of 100 correlated features beside the
tree without the relaxation, and an epoch on a million rows beside two plain products with these
rows. The data are CRIME by the paper's protocol where its files are
found (in HECKMANFA_DATA, or in shared/data beside the checkout), and simulated in its size
elsewhere. Every measurement is a process of its own (see `benchmarks.measure_searches`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import crime
from benchmarks.common import (
    Figures,
    OtherLoad,
    child,
    judged,
    machine,
    markdown,
    span,
    tell,
    write,
)
from benchmarks.measure_searches import (
    DRAWS,
    EPOCHS,
    LOOP_DRAWS,
    LOOP_EPOCHS,
    MILLION,
    MILLION_FEATURES,
    ROUNDS,
    Hard,
    Million,
    Subset,
    Training,
)

INSTALLED = ("heckmanfa", "numpy", "scipy", "scikit-learn", "pandas", "statsmodels")
WINDOW = (0.01, 0.1)
Search = tuple[int, str, tuple[float, float] | None]
"""K, criterion, window of rho"""
SEARCHES: tuple[Search, ...] = (
    (26, "adjusted_r2", WINDOW),
    (26, "adjusted_r2", None),
    (32, "adjusted_r2", None),
    (32, "bic", None),
    (40, "adjusted_r2", None),
    (40, "bic", None),
)
HARD: tuple[tuple[int, float, float], ...] = (
    (2_000, 0.15, 0.5),
    (2_000, 0.15, 0.7),
    (10_000, 0.08, 0.5),
    (10_000, 0.08, 0.7),
)
"""rows, size of the effects, correlation of the features"""
# What is known of CRIME beforehand: adjusted R^2 to six digits, and how many features.
KNOWN: dict[Search, tuple[float, int]] = {
    (26, "adjusted_r2", WINDOW): (0.484544, 12),
    (26, "adjusted_r2", None): (0.501171, 19),
    (32, "adjusted_r2", None): (0.508669, 21),
    (40, "adjusted_r2", None): (0.532185, 27),
}
SIX_DIGITS = 5.01e-7
AGREEMENT = 1e-6

LEAST_GAIN, MOST_EPOCH_US, MOST_PRODUCTS = 100.0, 40.0, 3.0
MOST_SECONDS: dict[Search, float] = {
    (26, "adjusted_r2", WINDOW): 3.0,
    (26, "adjusted_r2", None): 1.0,
    (40, "adjusted_r2", None): 30.0,
}
MOST_HARD_SECONDS = 60.0
THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "HECKMANFA_NUM_THREADS",
)
ONE_THREAD, DEFAULTS = "one thread", "defaults"
# Simulating a million rows takes 1.4 GB at its peak.
MILLION_BYTES = 2e9
SCALED_UP = f"measured over {LOOP_EPOCHS} epochs and {LOOP_DRAWS} draws, scaled up"

NOTES = (
    "All runs are on one thread, of the linear algebra too, but for the line of the million rows "
    f"that says otherwise. Seconds are the best of {ROUNDS} rounds, in which the two sides take "
    "turns where both are measured in full.",
    "The paper's loop fits statsmodels' Probit to all rows and its OLS to the selected ones in "
    f"every epoch and every draw; its seconds in all are {SCALED_UP}. heckmanfa's are those of "
    "`HeckmanFA.fit`, from data to estimates.",
    "A fit of the best subset holds the probit and the estimates afterwards; the search alone "
    "starts from compressed data.",
    "All by lstsq: the number of assignments, 2^K, times the time of one `numpy.linalg.lstsq` "
    "on the selected rows with half of the features, an intercept and the inverse Mills ratio. "
    "One fit is measured, the rest is arithmetic.",
    "R's leaps (Fortran) does the same search by branch and bound, without a window. Measured "
    "elsewhere on like machines, with the inverse Mills ratio forced in, on CRIME: 0.03 s at "
    "K = 26, 0.73 s at 32, 76 s at 40.",
    "The two products are `X @ beta` and `X.T @ v` with the selected rows as one array in memory; "
    "an epoch draws, fits, and reads the rows for the signs of their residuals. A mean over 8 "
    "epochs and 8 pairs of products.",
)

BEGIN = "<!-- figures of the searches: made by `python -m benchmarks.searches --out` -->"
END = "<!-- end of the searches' figures -->"


@dataclass
class Results:
    """Everything that one run measured."""

    real: bool
    """whether the data are CRIME's"""
    training: Training
    subsets: dict[Search, Subset]
    hard: list[Hard]
    millions: dict[str, Million]
    """empty where memory is short"""


def _ask(arguments: Sequence[str], threads: str = ONE_THREAD) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    if threads == ONE_THREAD:
        environment.update(dict.fromkeys(THREADS, "1"))
    printed = child(["-m", "benchmarks.measure_searches", *arguments], environment=environment)
    answer: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return answer


def _free_bytes() -> float:
    """Memory that can be had; infinite where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except OSError:
        pass
    return float("inf")


def measure(simulate: bool, progress: Console) -> Results:
    """Run all measurements, one after the other."""
    start = time.perf_counter()

    def tell(words: str) -> None:
        progress.print(f"{time.perf_counter() - start:4.0f} s: {words} ...", style="dim")

    data = ["--simulate"] if simulate else []
    tell("training and draws")
    training = Training(**_ask(["training", *data]))
    subsets = {}
    for search in SEARCHES:
        k, criterion, window = search
        tell(f"best subset of K = {k} by {criterion}{'' if window is None else ' in a window'}")
        arguments = ["subset", "--features", str(k), "--criterion", criterion, *data]
        if window is not None:
            arguments += ["--window", *map(str, window)]
        subsets[search] = Subset(**_ask(arguments))
    hard = []
    for rows, effect, correlation in HARD:
        tell(f"100 features with correlation {correlation:g}, {rows:,} rows")
        arguments = ["--rows", str(rows), "--effect", str(effect)]
        hard.append(Hard(**_ask(["hard", *arguments, "--correlation", str(correlation)])))
    millions = {}
    for threads in (ONE_THREAD, DEFAULTS):
        if _free_bytes() >= MILLION_BYTES:
            tell(f"an epoch on {MILLION:,} rows, {threads}")
            millions[threads] = Million(**_ask(["million"], threads))
    return Results(not simulate, training, subsets, hard, millions)


# What was found. ----------------------------------------------------------------------------------


def disagreements(found: Results) -> list[str]:
    """List what differs from another program or from an earlier proof."""
    wrong = []
    training = found.training
    if not training.pi_gap <= AGREEMENT:
        wrong.append(f"probabilities after {LOOP_EPOCHS} epochs differ by {training.pi_gap:.2g}")
    if not training.draw_gap <= AGREEMENT:
        wrong.append(f"rho or adjusted R^2 of {LOOP_DRAWS} draws differ by {training.draw_gap:.2g}")
    for search, best in found.subsets.items():
        name = f"best subset of K = {best.k} by {best.criterion}, window {best.window}"
        if not best.optimal:
            wrong.append(f"{name}: no proof")
        if not best.criterion_gap <= AGREEMENT:
            wrong.append(f"{name}: adjusted R^2 is off by {best.criterion_gap:.2g}")
        if found.real and search in KNOWN:
            value, size = KNOWN[search]
            if abs(best.adjusted_r2 - value) > SIX_DIGITS or best.n_features != size:
                wrong.append(
                    f"{name}: adjusted R^2 {best.adjusted_r2:.6f} with {best.n_features} features, "
                    f"not {value:.6f} with {size}"
                )
    return wrong


def agreement(found: Results, wrong: Sequence[str]) -> list[str]:
    """What the programs say about one another."""
    if wrong:
        return [f"RESULTS DISAGREE: {line}" for line in wrong]
    training = found.training
    gap = max(best.criterion_gap for best in found.subsets.values())
    known = (
        f"The {len(KNOWN)} best by adjusted R^2 are those known for CRIME, to six digits and the "
        "number of features."
        if found.real
        else "For simulated data no best is known beforehand."
    )
    return [
        f"Results agree: on the same noise, the probabilities after {LOOP_EPOCHS} epochs of the "
        f"paper's loop and of ours differ by {training.pi_gap:.1e} at most, rho and adjusted R^2 "
        f"of {LOOP_DRAWS} draws by {training.draw_gap:.1e}. Every best subset is proven; its "
        f"adjusted R^2 and that of a least-squares fit with statsmodels' probit differ by "
        f"{gap:.1e} at most. {known}"
    ]


def targets(found: Results) -> list[str]:
    """One line per target, with its numbers."""
    training = found.training
    ratio = training.loop / training.fit
    lines = [
        judged(
            f"T = {EPOCHS:,} epochs and B = {DRAWS:,} draws are at least {LEAST_GAIN:.0f} times as "
            "fast as the paper's loop",
            ratio >= LEAST_GAIN,
            f"{training.fit:.3f} s against {training.loop:.1f} s ({SCALED_UP}), {ratio:.0f} times",
        ),
        judged(
            f"an epoch takes {MOST_EPOCH_US:.0f} µs at most (m = {training.m:,}, K = {training.k})",
            1e6 * training.epoch <= MOST_EPOCH_US,
            f"{1e6 * training.epoch:.1f} µs",
        ),
    ]
    for search, most in MOST_SECONDS.items():
        best = found.subsets[search]
        window = "without a window" if best.window is None else "within the paper's window of rho"
        lines.append(
            judged(
                f"the best of all assignments of K = {best.k} by adjusted R^2 {window} is fitted "
                f"in {most:g} s at most",
                best.fit <= most,
                f"{best.fit:.3f} s (the search alone {best.search:.3f} s)",
            )
        )
    for each in found.hard:
        lines.append(
            judged(
                f"the best of {each.k} features with correlation {each.correlation:g} and effects "
                f"of {each.effect:g} in {each.n:,} rows is proven in {MOST_HARD_SECONDS:g} s",
                each.optimal and each.search <= MOST_HARD_SECONDS,
                f"{each.search:.1f} s, gap {each.gap:.3g}",
            )
        )
    for threads in (ONE_THREAD, DEFAULTS):
        words = (
            f"an epoch at m = {MILLION:,}, K = {MILLION_FEATURES} takes at most "
            f"{MOST_PRODUCTS:g} times one X @ beta and one X.T @ v ({threads} on both sides)"
        )
        if threads not in found.millions:
            lines.append(f"not measured: {words}: too little free memory")
            continue
        many = found.millions[threads]
        ratio = many.epoch / many.products
        numbers = f"{1e3 * many.epoch:.0f} ms against {1e3 * many.products:.0f} ms, {ratio:.2f}"
        lines.append(judged(words, ratio <= MOST_PRODUCTS, f"{numbers} times"))
    return lines


# Tables. ------------------------------------------------------------------------------------------


def tables(found: Results) -> Iterator[Figures]:
    name = "CRIME" if found.real else "Simulated"
    training = found.training
    in_all = f"s for {EPOCHS:,} + {DRAWS:,}"
    yield Figures(
        f"{name}, n = {training.n:,}, m = {training.m:,}, K = {training.k}: training and draws",
        ("program", "ms per epoch", "ms per draw", in_all, "× ours"),
        (0,),
        [
            (label, f"{1e3 * epoch:.3f}", f"{1e3 * draw:.3f}", f"{whole:.3f}", f"{ratio:.0f}")
            for label, epoch, draw, whole, ratio in (
                ("HeckmanFA", training.epoch, training.draw, training.fit, 1.0),
                (
                    "the paper's loop",
                    training.loop_epoch,
                    training.loop_draw,
                    training.loop,
                    training.loop / training.fit,
                ),
            )
        ],
    )
    with_leaps = any(best.leaps is not None for best in found.subsets.values())
    yield Figures(
        f"{name}, n = {training.n:,}: the best of all assignments",
        (
            *(
                "K",
                "criterion",
                "window",
                "fit s",
                "search s",
                "evaluated",
                "all by lstsq",
            ),
            *(["R leaps s"] if with_leaps else []),
            *("adjusted R²", "features"),
        ),
        (1, 2),
        [_row(best, with_leaps) for best in found.subsets.values()],
    )
    yield Figures(
        "Simulated, 100 correlated features, 20 middling effects: the best of all by BIC",
        ("n", "correlation", "effects", "search s", "nodes", "gap", "gap of the tree alone"),
        (),
        [
            (
                f"{each.n:,}",
                f"{each.correlation:g}",
                f"±{each.effect:g}",
                f"{each.search:.1f}",
                f"{each.n_nodes:,}",
                f"{each.gap:.3g}",
                f"{each.tree_gap:.0f}",
            )
            for each in found.hard
        ],
    )
    if found.millions:
        yield Figures(
            f"Simulated, m = {MILLION:,}, K = {MILLION_FEATURES}: an epoch",
            ("threads", "ms per epoch", "ms X @ beta, X.T @ v", "ratio"),
            (0,),
            [
                (
                    threads,
                    f"{1e3 * many.epoch:.1f}",
                    f"{1e3 * many.products:.1f}",
                    f"{many.epoch / many.products:.2f}",
                )
                for threads, many in found.millions.items()
            ],
        )


def _row(best: Subset, with_leaps: bool) -> tuple[str, ...]:
    leaps = ["" if best.leaps is None else f"{best.leaps:.2f}"] if with_leaps else []
    return (
        str(best.k),
        best.criterion,
        "" if best.window is None else "{:g} to {:g}".format(*best.window),
        f"{best.fit:.3f}",
        f"{best.search:.3f}",
        f"{best.n_assignments:,}",
        span(2**best.k * best.lstsq),
        *leaps,
        f"{best.adjusted_r2:.6f}",
        str(best.n_features),
    )


def main(arguments: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--simulate", action="store_true", help="even where CRIME's data are")
    parser.add_argument("--out", type=Path, help="a Markdown page to put the figures into")
    options = parser.parse_args(arguments)

    load, start = OtherLoad(), time.perf_counter()
    simulate = options.simulate or crime.folder() is None
    found = measure(simulate, Console(stderr=True))
    wrong = disagreements(found)
    source = (
        "The data are simulated in the size of CRIME, whose files were not used."
        if simulate
        else "The data are CRIME (UCI's Communities and Crime) by the paper's protocol; columns "
        "beyond the paper's 26 are population and those that follow in the file."
    )
    lines = {
        "machine": machine(load.share(), INSTALLED),
        "notes": [source, *NOTES],
        "agreement": agreement(found, wrong),
        "targets": targets(found),
    }
    figures = list(tables(found))
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    for table in figures:
        table.show(console)
    tell(console, lines, time.perf_counter() - start)
    if options.out is not None:
        write(
            options.out,
            markdown((table.markdown() for table in figures), lines, BEGIN, END),
            BEGIN,
            END,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

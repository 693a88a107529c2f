"""Figures of docs/averaging_study.md: from draws to ratios of errors, coverage and shares."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.averaging_designs import COLUMNS, COVERAGE, DESIGNS, EXCESS

METHODS = (
    *("all, two-step", "all, ML", "least squares", "bic weights", "aic weights"),
    *("ebic weights", "mean weights", "chosen bic", "chosen ebic"),
)
AVERAGES = ("aic weights", "bic weights", "ebic weights", "mean weights")
CHOSEN = "chosen bic"
NORMAL = [name for name, one in COVERAGE.items() if one.errors == "normal"]

Floats = NDArray[np.float64]
Draws = dict[str, list[dict[str, Any]]]


def file_name(part: str, design: str) -> str:
    """Return the name of the file that holds the draws of a design."""
    words = f"{part} of {design}".replace("=", " ").replace(",", " ").replace(".", "")
    return "_".join(words.split()) + ".jsonl"


def read_draws(folders: Sequence[Path], part: str, design: str) -> list[dict[str, Any]]:
    """Read the draws of a design, in order; a draw that several folders hold counts once."""
    found: dict[int, dict[str, Any]] = {}
    for folder in folders:
        path = folder / file_name(part, design)
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                one = json.loads(line)
                found.setdefault(one["draw"], one)
    return [found[number] for number in sorted(found)]


def read(folders: Sequence[Path]) -> tuple[Draws, Draws, dict[str, int]]:
    """Read the draws of all designs, the bootstrap's, and how many failed in each design."""
    main: Draws = {}
    bootstrap: Draws = {}
    failed: dict[str, int] = {}

    def whole(part: str, name: str) -> list[dict[str, Any]]:
        draws = read_draws(folders, part, name)
        fitted = [one for one in draws if "failure" not in one]
        if len(fitted) < len(draws):
            failed[name] = failed.get(name, 0) + len(draws) - len(fitted)
        return fitted

    for name, design in DESIGNS.items():
        draws = whole(design.part, name)
        if design.part == "recovery":
            corrected = {one["draw"]: one for one in whole("corrected", name)}
            draws = [one | corrected[one["draw"]] for one in draws if one["draw"] in corrected]
        if draws:
            main[name] = draws
        again = whole("bootstrap", name)
        if again:
            bootstrap[name] = again
    return main, bootstrap, failed


@dataclass(frozen=True)
class Ratio:
    """A ratio of two errors, with the standard error of its logarithm."""

    value: float
    error: float

    @property
    def above_one(self) -> float:
        """How many standard errors its logarithm is above zero."""
        return float(np.log(self.value) / self.error) if self.error > 0 else 0.0

    def __str__(self) -> str:
        """Format the ratio with two or three digits."""
        return digits(self.value)


def digits(value: float) -> str:
    """Format a ratio."""
    if value >= 99.5:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def mean_ratio(one: Floats, other: Floats) -> Ratio:
    """Ratio of the means of two errors in the same draws."""
    top, bottom = one.mean(), other.mean()
    spread = np.std(one / top - other / bottom, ddof=1) if len(one) > 1 else 0.0
    return Ratio(float(top / bottom), float(spread / np.sqrt(len(one))))


def median_ratio(one: Floats, other: Floats) -> Ratio:
    """Ratio of the medians of two errors."""
    return Ratio(float(np.median(one) / np.median(other)), 0.0)


def geometric(ratios: Sequence[Ratio]) -> Ratio:
    """Geometric mean of independent ratios."""
    error = np.sqrt(sum(one.error**2 for one in ratios)) / len(ratios)
    return Ratio(float(np.exp(np.mean(np.log([one.value for one in ratios])))), float(error))


def errors(draws: list[dict[str, Any]]) -> dict[str, Floats]:
    """Errors of each method over draws."""
    return {
        method: np.array([one["errors"][method] for one in draws]) for method in draws[0]["errors"]
    }


def by_class(main: Draws) -> dict[str, list[str]]:
    """Names of the designs of the first part that have draws, by class."""
    classes: dict[str, list[str]] = {}
    for name, design in EXCESS.items():
        if name in main:
            classes.setdefault(design.kind, []).append(name)
    return classes


def regrets(
    main: Draws, names: Iterable[str], methods: Sequence[str]
) -> dict[str, tuple[Ratio, str]]:
    """The largest regret of each method, and the design in which it occurs."""
    worst: dict[str, tuple[Ratio, str]] = {}
    for name in names:
        found = errors(main[name])
        best = min(methods, key=lambda method: found[method].mean())
        for method in methods:
            ratio = mean_ratio(found[method], found[best])
            if method not in worst or ratio.value > worst[method][0].value:
                worst[method] = ratio, name
    return worst


@dataclass(frozen=True)
class Tally:
    """Intervals of one kind: how many cover, and how wide they are."""

    share: float
    error: float
    """standard error of the share; intervals of one draw are not independent"""
    count: int
    width: float


def tally(draws: Iterable[dict[str, Any]], method: str, kind: str) -> Tally | None:
    """Pool the intervals of a method over draws."""
    parts = [one["tallies"].get(method, {}).get(kind) for one in draws]
    rows = np.array([part for part in parts if part is not None], dtype=float)
    if not len(rows):
        return None
    covered, count, width = rows.sum(axis=0)
    share = covered / count
    off = rows[:, 0] - share * rows[:, 1]
    return Tally(share, float(np.sqrt(np.sum(off**2)) / count), int(count), width / count)


def pooled(main: Draws, names: Iterable[str]) -> list[dict[str, Any]]:
    """The draws of several designs together."""
    return [one for name in names for one in main.get(name, [])]


@dataclass(frozen=True)
class Calibration:
    """Features of some designs by the BIC share of weight that holds them."""

    above: int
    above_predict: float
    below: int
    below_predict: float
    below_weak: float
    """share of those below that are weak ones, among those that predict"""
    between: float
    """share of all features that are neither"""
    null_aic: float
    null_bic: float
    expected_bic: float
    """1 / (1 + sqrt(m))"""


def calibration(main: Draws, names: Iterable[str]) -> Calibration | None:
    """Count features above 90% and below 10%."""
    draws = pooled(main, names)
    if not draws:
        return None
    kinds = np.array([kind for one in draws for kind in one["kinds"]])
    bic, aic = (
        np.array([share for one in draws for share in one["shares"][kind]])
        for kind in ("bic", "aic")
    )
    predicts, null = kinds != "zero", kinds == "zero"
    above, below = bic >= 0.9, bic < 0.1
    missed = below & predicts
    return Calibration(
        above=int(above.sum()),
        above_predict=float(predicts[above].mean()),
        below=int(below.sum()),
        below_predict=float(predicts[below].mean()),
        below_weak=float((kinds[missed] == "weak").mean()) if missed.any() else 0.0,
        between=float(np.mean(~above & ~below)),
        null_aic=float(aic[null].mean()),
        null_bic=float(bic[null].mean()),
        expected_bic=float(np.mean([1.0 / (1.0 + np.sqrt(one["m"])) for one in draws])),
    )


def calibrated(rows: int | None, *, normal: bool) -> list[str]:
    """Names of the designs of the first part that have features that do not predict."""
    return [
        name
        for name, one in EXCESS.items()
        if (rows is None or one.n == rows)
        and (one.errors == "normal") == normal
        and one.strong + one.middling + one.weak < one.features - one.excluded
    ]


def column_regrets(main: Draws) -> dict[str, tuple[Ratio, str]]:
    """The largest regret of each method of part 5."""
    methods = list(main[next(iter(COLUMNS))][0]["errors"])
    return regrets(main, COLUMNS, methods)


def class_ratios(
    main: Draws, names: list[str], ratio: Callable[[Floats, Floats], Ratio]
) -> dict[str, Ratio]:
    """Geometric means over designs of each method's error over that of the chosen assignment."""
    if not names:
        return {}
    found = [errors(main[name]) for name in names]
    return {
        method: geometric([ratio(one[method], one[CHOSEN]) for one in found])
        for method in ("true features", *METHODS)
    }


def refits(main: Draws, names: Iterable[str]) -> dict[str, Ratio]:
    """Error of ML refits over that of the two-step average with AIC weights, by design."""
    ratios = {}
    for name in names:
        draws = [one for one in main.get(name, []) if "refitted" in one]
        if draws:
            ratios[name] = mean_ratio(
                np.array([one["refitted"]["error"] for one in draws]),
                np.array([one["errors"]["aic weights"] for one in draws]),
            )
    return ratios


def exact(draws: list[dict[str, Any]], criterion: str) -> Floats:
    """Whether a criterion found exactly the truth, for each draw."""
    return np.array([float(one[criterion]["exact"]) for one in draws])


LABELS = {
    "bic weights": "BIC weights",
    "aic weights": "AIC weights",
    "ebic weights": "EBIC weights",
    "chosen bic": "chosen, BIC",
    "chosen ebic": "chosen, EBIC",
}


def label(method: str) -> str:
    """Return the name of a method in tables."""
    return LABELS.get(method, method)


def percent(share: float) -> str:
    """Format a share."""
    return f"{100 * share:.1f}%"


def points(gain: float) -> str:
    """Format a difference of shares in points."""
    return f"{100 * gain:+.0f}"

"""Figures of docs/averaging_study.md: from draws to rates, coverage and regrets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.averaging_designs import DESIGNS, GRID, LINEAR, SPECIAL, Design, truth_of

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
CRITICAL = float(stats.norm.ppf(0.975))
PROPORTIONAL = ("proportional", "part", "own", "rough")
NO_SIGN = {"aic": 0.3, "bic": 0.1, "half": 0.1}
"""chances below this are 'no sign'; AIC shares never fall below 27%"""
ENOUGH_ROWS = 500


def file_name(design: str) -> str:
    """Return the name of the file that holds the draws of a design."""
    return "_".join(design.replace(".", "p").split()) + ".jsonl"


def read_draws(folder: Path, design: str) -> list[dict[str, Any]]:
    """Read the draws of a design, in order."""
    path = folder / file_name(design)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return sorted((json.loads(line) for line in lines), key=lambda record: record["draw"])


@dataclass(frozen=True, eq=False)
class Drawn:
    """The draws of a design that could be fitted."""

    name: str
    design: Design
    records: list[dict[str, Any]]
    failed: int

    @property
    def is_null(self) -> bool:
        """Whether rho is 0."""
        return self.design.rho == 0

    @property
    def aimed(self) -> bool:
        """Whether the aim of 90% coverage is for this design."""
        return self.design.errors == "normal" and self.design.n >= ENOUGH_ROWS

    @cached_property
    def predicts(self) -> Mask:
        """Which units predict, (U,)."""
        truth = truth_of(self.name)
        return np.array([bool(truth.coef[list(unit)].any()) for unit in truth.units])

    @property
    def columns(self) -> int:
        """How many columns may predict."""
        return len(truth_of(self.name).candidates)

    def has(self, method: str) -> bool:
        """Whether the design has a method, ``robust aic index`` say."""
        return bool(self.records) and _of(self.records[0], "errors", method) is not None

    @cached_property
    def methods(self) -> list[str]:
        """All methods that have an error."""
        first = self.records[0]
        names = [
            f"{kind} {name}"
            for kind in ("classical", "robust")
            for name in first.get(kind, {}).get("errors", {})
        ]
        names += list(first.get("today", {}).get("errors", {}))
        return names + (["least squares"] if "least squares" in first else [])

    @cached_property
    def errors(self) -> dict[str, float]:
        """Mean error of every method."""
        return {
            method: float(np.mean([_of(record, "errors", method) for record in self.records]))
            for method in self.methods
        }

    def regret(self, method: str) -> float:
        """Error of a method over that of the best one."""
        return self.errors[method] / min(self.errors.values())

    def inside(self, method: str, kind: str) -> tuple[Floats, Floats]:
        """Targets of a kind that are covered, and targets, by draw."""
        tallies = [_of(record, "tallies", method).get(kind, [0, 0]) for record in self.records]
        table = np.array(tallies, dtype=np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def shares(self, key: str) -> Floats:
        """Chance of the correction by draw, with the weights of ``robust aic index``, say."""
        kind, _, name = key.partition(" ")
        return np.array([record[kind]["correction"][name] for record in self.records])

    def says_yes(self, verdict: str, cut: float = 0.9) -> Mask:
        """Whether a verdict is "Yes", by draw."""
        if verdict == "today":
            return np.array([record["today"]["yes"] for record in self.records])
        if verdict.endswith(" z"):
            kind = verdict.partition(" ")[0]
            return np.array([abs(record[kind]["z"]) > CRITICAL for record in self.records])
        return self.shares(verdict) >= cut


def _of(record: dict[str, Any], what: str, method: str) -> Any:
    if method.startswith("today"):
        return record.get("today", {}).get(what, {}).get(method)
    if method == "least squares":
        return record.get(method) if what == "errors" else None
    kind, _, name = method.partition(" ")
    return record.get(kind, {}).get(what, {}).get(name)


Study = dict[str, Drawn]


def read(folder: Path) -> Study:
    """Read all designs."""
    study = {}
    for name, design in DESIGNS.items():
        records = read_draws(folder, name)
        fitted = [record for record in records if "failure" not in record]
        if fitted:
            study[name] = Drawn(name, design, fitted, len(records) - len(fitted))
    return study


def of_parts(study: Study, *parts: str) -> list[Drawn]:
    """Return the designs of some parts."""
    return [one for one in study.values() if one.design.part in parts]


def two_step(study: Study) -> list[Drawn]:
    """Linear designs in two steps with at most 10 features."""
    return of_parts(study, LINEAR, GRID, SPECIAL)


@dataclass(frozen=True)
class Rate:
    """A rate over designs: pooled, and the design in which it is worst."""

    value: float
    error: float
    worst: float
    where: str
    beyond: tuple[str, ...]
    """designs beyond the bound"""
    clear: tuple[str, ...]
    """designs beyond it by more than two standard errors"""
    designs: int


def coverage(drawn: Iterable[Drawn], method: str, kind: str, bound: float = 0.9) -> Rate | None:
    """Return how often intervals of a method cover targets of a kind."""
    rows = []
    for one in drawn:
        if not one.has(method) or method == "least squares":
            continue
        inside, count = one.inside(method, kind)
        if count.sum():
            share = float(inside.sum() / count.sum())
            error = float(np.std(inside - share * count) * np.sqrt(len(count)) / count.sum())
            rows.append((one.name, share, error, inside.sum(), count.sum()))
    if not rows:
        return None
    names, shares, errors, inside_sums, counts = zip(*rows, strict=True)
    worst = int(np.argmin(shares))
    weight = np.array(counts) / np.sum(counts)
    return Rate(
        value=float(np.sum(inside_sums) / np.sum(counts)),
        error=float(np.sqrt(weight**2 @ np.array(errors) ** 2)),
        worst=shares[worst],
        where=names[worst],
        beyond=tuple(name for name, share in zip(names, shares, strict=True) if share < bound),
        clear=tuple(
            name
            for name, share, error in zip(names, shares, errors, strict=True)
            if share < bound - 2 * max(error, 1e-9)
        ),
        designs=len(rows),
    )


def yes_rate(
    drawn: Sequence[Drawn], verdict: str, cut: float = 0.9, bound: float = 0.05
) -> Rate | None:
    """Return how often a verdict is "Yes"; the worst design says it most often."""
    rows = [(one.name, one.says_yes(verdict, cut)) for one in drawn if _judges(one, verdict)]
    if not rows:
        return None
    shares = [float(said.mean()) for _, said in rows]
    limit = [bound + 2 * np.sqrt(bound * (1 - bound) / len(said)) for _, said in rows]
    worst = int(np.argmax(shares))
    total = np.concatenate([said for _, said in rows])
    return Rate(
        value=float(total.mean()),
        error=float(total.std() / np.sqrt(len(total))),
        worst=shares[worst],
        where=rows[worst][0],
        beyond=tuple(rows[i][0] for i, share in enumerate(shares) if share > bound),
        clear=tuple(rows[i][0] for i, share in enumerate(shares) if share > limit[i]),
        designs=len(rows),
    )


def _judges(one: Drawn, verdict: str) -> bool:
    if verdict == "today":
        return "today" in one.records[0]
    kind, _, name = verdict.partition(" ")
    own = one.records[0].get(kind, {})
    return ("z" in own) if name == "z" else name in own.get("correction", {})


def log_regret(drawn: Iterable[Drawn], method: str) -> tuple[float, float, str]:
    """Mean log regret, largest regret, and the design that has it."""
    regrets = {one.name: one.regret(method) for one in drawn if one.has(method)}
    worst = max(regrets, key=lambda name: regrets[name])
    return float(np.mean(np.log(list(regrets.values())))), regrets[worst], worst


def ratio(drawn: Iterable[Drawn], method: str, other: str) -> float:
    """Geometric mean over designs of the ratio of two methods' errors."""
    logs = [np.log(one.errors[method] / one.errors[other]) for one in drawn]
    return float(np.exp(np.mean(logs)))


@dataclass(frozen=True)
class Calibration:
    """How many units predict, by what is said of them."""

    above: int
    above_predict: float
    between: int
    between_predict: float
    below: int
    below_predict: float


def calibration(
    drawn: Iterable[Drawn], kind: str, weights: str, of: str = "any"
) -> Calibration | None:
    """Calibrate the chances of features, over designs that have features of both kinds."""
    chances, truths = [], []
    for one in drawn:
        if one.predicts.all() or not one.predicts.any():
            continue
        own = one.records[0].get(kind, {}).get("chances", {})
        if weights not in own:
            continue
        rows = np.array([record[kind]["chances"][weights][of] for record in one.records])
        chances.append(rows[:, : len(one.predicts)].ravel())
        truths.append(np.tile(one.predicts, len(rows)))
    if not chances:
        return None
    chance, truth = np.concatenate(chances), np.concatenate(truths)
    low = NO_SIGN[weights.partition(" ")[0]]
    parts = [chance >= 0.9, (chance < 0.9) & (chance >= low), chance < low]
    said = [
        (int(part.sum()), float(truth[part].mean()) if part.any() else np.nan) for part in parts
    ]
    return Calibration(*said[0], *said[1], *said[2])


def widths(drawn: Iterable[Drawn], kind: str, method: str) -> tuple[float, float]:
    """Mean width relative to all features' intervals: effects that are not zero, and zero ones."""
    found: tuple[list[float], list[float]] = ([], [])
    for one in drawn:
        truth = truth_of(one.name)
        nonzero = truth.coef[truth.candidates] != 0
        for record in one.records:
            own = record.get(kind, {}).get("widths")
            if own:
                relative = np.array(own[method]) / np.array(own["all features"])
                found[0].extend(relative[nonzero])
                found[1].extend(relative[~nonzero])
    return float(np.mean(found[0])), float(np.mean(found[1]))


def percent(value: float, digits: int = 1) -> str:
    """Format a share."""
    return "–" if np.isnan(value) else f"{100 * value:.{digits}f}%"


def number(value: float) -> str:
    """Format a ratio or a regret."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"

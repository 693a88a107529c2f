"""The tables of the second plan of docs/averaging_study.md, and what its rules decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.averaging_again import CHANCE, KINDS, SHARES
from benchmarks.averaging_designs import (
    AGAIN,
    AGAIN_BINARY,
    AGAIN_GRID,
    AGAIN_ML,
    AGAIN_SPECIAL,
    BREAKING,
    CROWDED,
    FLAT,
    LAST_BINARY,
    LAST_ML,
    SECOND,
    THIRD,
    Design,
    truth_of,
)
from benchmarks.averaging_details import table
from benchmarks.averaging_figures import ENOUGH_ROWS, number, percent, read_draws

TWO_STEP = (AGAIN, AGAIN_GRID, BREAKING, AGAIN_SPECIAL)
CANDIDATES = tuple(f"{kind} {share}" for kind in KINDS for share in SHARES)
NAMES = {"aic": "AIC", "half": "half and half", "bic": "BIC"}
LEVEL, CUT = 0.05, 0.9
RULES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "the chance alone": lambda seen: True,
    "unless the Hausman test rejects": lambda seen: not _rejects(seen["hausman"]),
    "unless that or the test of equal variance rejects": lambda seen: (
        not (_rejects(seen["hausman"]) or _rejects(seen["equal_variance"]))
    ),
    "both chances, ML and two-step": lambda seen: bool(seen["two-step"] >= CUT),
}


def _rejects(p_value: float | None) -> bool:
    return p_value is not None and p_value < LEVEL


@dataclass(frozen=True, eq=False)
class Drawn:
    """The draws of a design that could be fitted."""

    name: str
    design: Design
    records: list[dict[str, Any]]
    failed: int

    def yes(self, rule: str = "the chance alone", key: str = "correction") -> float:
        """Share of draws that say yes, by one of the chances that a record has."""
        said = [
            record[key] >= CUT and (RULES[rule](record["rules"]) if "rules" in record else True)
            for record in self.records
        ]
        return float(np.mean(said))

    def coverage(self, method: str, kind: str = "nonzero") -> tuple[float, float, int]:
        """Share of targets covered, its standard error, and the number of targets."""
        counts = np.array(
            [record["tallies"][method].get(kind, [0, 0]) for record in self.records], dtype=float
        )
        inside, count = counts.T
        if not count.sum():
            return np.nan, np.nan, 0
        share = inside.sum() / count.sum()
        error = np.std(inside - share * count) * np.sqrt(len(count)) / count.sum()
        return float(share), float(error), int(count.sum())

    def error(self, method: str) -> float:
        """Mean error of a method; NaN if it refused in more than half of the draws."""
        found = [record["errors"].get(method, np.nan) for record in self.records]
        return float(np.nanmean(found)) if np.isfinite(found).mean() > 0.5 else np.nan

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(name for record in self.records for name in record["errors"]))

    def regret(self, method: str) -> float:
        """Error of a method over that of the best one."""
        return self.error(method) / float(np.nanmin([self.error(name) for name in self.methods]))


def read(folder: Path, designs: dict[str, Design]) -> list[Drawn]:
    """Read all designs; refuse a study that is not complete."""
    study = []
    for name, design in designs.items():
        records = read_draws(folder, name)
        if len(records) != design.draws:
            raise SystemExit(f"{name} has {len(records)} of {design.draws} draws")
        fitted = [record for record in records if "failure" not in record]
        study.append(Drawn(name, design, fitted, len(records) - len(fitted)))
    return study


def _of(study: Sequence[Drawn], *parts: str) -> list[Drawn]:
    return [one for one in study if one.design.part in parts and one.records]


def _aimed(drawn: Sequence[Drawn]) -> list[Drawn]:
    return [one for one in drawn if one.design.errors == "normal" and one.design.n >= ENOUGH_ROWS]


def _pooled(drawn: Sequence[Drawn], method: str, kind: str = "nonzero") -> float:
    rows = [one.coverage(method, kind) for one in drawn]
    counts = np.array([row[2] for row in rows], dtype=float)
    shares = np.nan_to_num([row[0] for row in rows])
    return float(shares @ counts / counts.sum()) if counts.sum() else np.nan


def _below(
    drawn: Sequence[Drawn], method: str, kind: str = "nonzero"
) -> tuple[int, int, float, str]:
    """Designs below 90%, those clearly below it, the lowest coverage, and where."""
    rows = [(one.design.words, *one.coverage(method, kind)[:2]) for one in drawn]
    rows = [row for row in rows if np.isfinite(row[1])]
    lowest = min(rows, key=lambda row: row[1])
    clear = sum(share < 0.9 - 2 * error for _, share, error in rows)
    return sum(row[1] < 0.9 for row in rows), clear, lowest[1], lowest[0]


def _widths(drawn: Sequence[Drawn], method: str) -> tuple[float, float, float]:
    """Mean width relative to all features: of all effects, of those not zero, and of zero ones."""
    values, zero = [], []
    for one in drawn:
        truth = truth_of(one.name)
        none = truth.coef[truth.candidates] == 0
        for record in one.records:
            if record["widths"]:
                relative = np.array(record["widths"][method]) / record["widths"]["all features"]
                values.extend(relative)
                zero.extend(none)
    width, at = np.array(values), np.array(zero)
    return float(width.mean()), float(width[~at].mean()), float(width[at].mean())


def _log_regret(drawn: Sequence[Drawn], method: str) -> float:
    return float(np.mean([np.log(one.regret(method)) for one in drawn]))


def _label(candidate: str) -> str:
    kind, _, share = candidate.partition(" ")
    return NAMES[kind] if share == "0" else f"{NAMES[kind]}, {share} to all features"


def intervals_table(drawn: Sequence[Drawn]) -> str:
    """What every candidate covers."""
    aimed = _aimed(drawn)
    rows = []
    for method in (*CANDIDATES, "all features"):
        below, clear, lowest, _ = _below(aimed, method)
        wide = (
            "1 / 1"
            if method == "all features"
            else "{1:.2f} / {2:.2f}".format(*_widths(aimed, method))
        )
        outside = sum(
            record["outside"].get(method, 0) for one in drawn for record in one.records
        ) / max(sum(len(truth_of(one.name).candidates) * len(one.records) for one in drawn), 1)
        rows.append(
            [
                "all features" if method == "all features" else _label(method),
                f"{percent(_pooled(aimed, method))} ({percent(lowest, 0)})",
                f"{below}, {clear}",
                *(
                    percent(_pooled(aimed, method, kind))
                    for kind in ("zero", "correction", "expectation")
                ),
                wide,
                "–" if method == "all features" else f"{100 * outside:.2f}%",
            ]
        )
    return table(
        [
            "interval",
            "not zero (worst design)",
            "designs below 90%, clearly",
            "zero",
            "beta_H",
            "E[y given x]",
            "width: not zero / zero",
            "BIC estimate outside",
        ],
        rows,
    )


def coverage_by_truth(drawn: Sequence[Drawn], methods: Sequence[str]) -> str:
    """Coverage of the candidates by part, truth, errors and rows."""
    aimed = _aimed(drawn)
    groups: dict[str, list[Drawn]] = {
        "n = 1,000, β = .3 γ, with and without an exclusion": _of(aimed, AGAIN_GRID),
        "made to break: β = .3 γ, no exclusion": _of(aimed, BREAKING),
        "clusters and groups": _of(aimed, AGAIN_SPECIAL),
    }
    linear = _of(aimed, AGAIN)
    for truth in dict.fromkeys(one.design.truth for one in linear):
        groups[f"random, {truth}"] = [one for one in linear if one.design.truth == truth]
    others = [one for one in _of(drawn, AGAIN) if one.design.n >= ENOUGH_ROWS]
    for errors in ("t4", "skewed", "spread"):
        groups[f"errors: {errors}"] = [one for one in others if one.design.errors == errors]
    groups["n = 100 and 240"] = [one for one in _of(drawn, AGAIN) if one.design.n < ENOUGH_ROWS]
    rows = []
    for name, some in groups.items():
        if not sum(one.coverage(methods[0])[2] for one in some):
            continue
        cells = [f"{percent(_pooled(some, m))} ({percent(_below(some, m)[2], 0)})" for m in methods]
        rows.append([f"{name} ({len(some)})", *cells])
    heads = ["all features" if m == "all features" else _label(m) for m in methods]
    return table(["designs (worst in parentheses)", *heads], rows)


def regret_table(drawn: Sequence[Drawn]) -> str:
    """Mean log regret of estimates."""
    names = {
        "bic index": "BIC",
        "half index": "half and half",
        "aic index": "AIC",
        "today aic": "λ in every assignment, AIC",
        "today bic": "λ in every assignment, BIC",
        "all features": "all features",
        "least squares": "least squares",
    }
    rows = [
        [
            label,
            number(_log_regret(drawn, method)),
            number(max(one.regret(method) for one in drawn)),
        ]
        for method, label in names.items()
    ]
    return table(["estimates", "mean log regret", "largest regret"], rows)


_VERDICT_HEADS = ("ρ = 0", "to .5", ".8 and more", "worst with ρ = 0", "clearly above 5%")


def _verdict(some: Sequence[Drawn], rule: str, key: str = "correction") -> list[str]:
    """How often "Yes" is said, by the size of rho, with the worst design where it is zero."""
    null = [one for one in some if one.design.rho == 0]
    others = (
        [one for one in some if 0 < abs(one.design.rho) < 0.7],
        [one for one in some if abs(one.design.rho) > 0.7],
    )
    limits = [LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / len(one.records)) for one in null]
    said = [one.yes(rule, key) for one in null]
    means = [
        percent(float(np.mean([one.yes(rule, key) for one in group])), 0) if group else "–"
        for group in (null, *others)
    ]
    clear = sum(rate > limit for rate, limit in zip(said, limits, strict=True))
    return [*means, percent(max(said), 0) if said else "–", str(clear)]


def verdict_table(study: Sequence[Drawn]) -> str:
    """How often "Yes" is said, by part and rule."""
    rows = []
    for part in (*TWO_STEP, AGAIN_BINARY):
        some = _of(study, part)
        rows.append(
            [f"{part} ({len(some)})", "the chance alone", *_verdict(some, "the chance alone")]
        )
    for normal, label in ((True, "normal errors"), (False, "other errors")):
        some = _normal(_of(study, AGAIN_ML), normal=normal)
        rows += [
            [f"{AGAIN_ML}, {label} ({len(some)})", rule, *_verdict(some, rule)] for rule in RULES
        ]
    return table(["designs", "rule", *_VERDICT_HEADS], rows, 2)


def crowded_table(study: Sequence[Drawn], method: str) -> str:
    """What happens with few rows for each feature."""
    rows = []
    for m in (15, 20, 30, 40, 60, 100):
        some = [one for one in _of(study, CROWDED) if one.design.n == 2 * m]
        null = [one for one in some if one.design.rho == 0]
        failed = sum(
            one.failed for one in study if one.design.part == CROWDED and one.design.n == 2 * m
        )
        drawn = [one for one in some if len(one.records) >= 10]
        cells = [
            number(_log_regret(drawn, name))
            if all(np.isfinite(one.error(name)) for one in drawn) and drawn
            else "–"
            for name in (
                "bic index",
                "aic index",
                "all features",
                "least squares",
                "best subset",
                "lasso",
            )
        ]
        rows.append(
            [
                f"{m} ({10 / m:.2f})",
                percent(failed / (failed + sum(len(one.records) for one in some)), 0),
                percent(float(np.mean([one.yes() for one in null])), 1) if null else "–",
                percent(max(one.yes() for one in null), 0) if null else "–",
                f"{percent(_pooled(drawn, method))} ({percent(_below(drawn, method)[2], 0)})"
                if drawn
                else "–",
                *cells,
            ]
        )
    return table(
        [
            "selected rows (features per row)",
            "no fit of all features",
            '"Yes", ρ = 0',
            "worst",
            "coverage (worst)",
            "BIC",
            "AIC",
            "all features",
            "least squares",
            "best subset",
            "lasso",
        ],
        rows,
    )


def marks(plan: int) -> tuple[str, str]:
    """Return what stands around the tables of a plan."""
    return f"<!-- figures of plan {plan} -->", f"<!-- end of figures of plan {plan} -->"


def second_page(folder: Path) -> str:
    """Return all tables of the second plan."""
    study = read(folder, SECOND)
    drawn = _of(study, *TWO_STEP)
    failed = {
        part: sum(one.failed for one in study if one.design.part == part)
        for part in (*TWO_STEP, AGAIN_ML, AGAIN_BINARY, CROWDED)
    }
    total = sum(len(one.records) for one in study)
    planned = sum(design.draws for design in SECOND.values())
    shown = ["aic 0", "half 0", "bic 0", "bic 1/2", "aic 1/2", "all features"]
    left = ", ".join(f"{part} {count}" for part, count in failed.items() if count)
    parts = [
        f"{total:,} draws of {planned:,} planned, in {len(SECOND)} designs. Left out because a "
        f"model could not be fitted or had no covariance: {left}.",
        "#### Estimates",
        f"{len(drawn)} linear designs in two steps, robust V.",
        regret_table(drawn),
        "#### Intervals",
        f"Coverage of nominal 95% intervals in the {len(_aimed(drawn))} of them with normal errors "
        "and n ≥ 500; widths are relative to all features.",
        intervals_table(drawn),
        coverage_by_truth(drawn, shown),
        "#### Verdicts",
        f'"Yes" is a chance of at least 90% by {CHANCE.split()[0].upper()} weights.',
        verdict_table(study),
        "#### Crowded tables",
        "Ten candidates. Coverage is that of BIC intervals with half to all features; the last six "
        "columns are mean log regrets.",
        crowded_table(study, "bic 1/2"),
    ]
    return "\n\n".join(parts) + "\n"


def third_page(folder: Path) -> str:
    """Return all tables of the third plan."""
    study = read(folder, THIRD)
    groups = {
        "binary": _of(study, LAST_BINARY),
        "binary, made to be flat in ρ": _of(study, FLAT),
        "ML, normal errors": _normal(_of(study, LAST_ML), normal=True),
        "ML, other errors": _normal(_of(study, LAST_ML), normal=False),
    }
    rows, verdicts = [], []
    for name, some in groups.items():
        enough = [one for one in some if one.design.n >= ENOUGH_ROWS]
        cells = []
        for method in ("bic 1/2", "bounded 1/2", "all features"):
            lowest = percent(_below(enough, method)[2], 0)
            cells.append(f"{percent(_pooled(enough, method))} ({lowest})")
        regrets = [number(_log_regret(some, method)) for method in ("bic index", "bounded")]
        rows.append([f"{name} ({len(some)})", *cells, *regrets])
        for key, label in (("correction", "the form"), ("bounded", "ratio and bound")):
            for rule in (
                RULES if name.startswith("ML") and key == "bounded" else ["the chance alone"]
            ):
                verdicts.append([f"{name} ({len(some)})", label, rule, *_verdict(some, rule, key)])
    total = sum(len(one.records) for one in study)
    failed = sum(one.failed for one in study)
    parts = [
        f"{total:,} draws of {total + failed:,} planned, in {len(THIRD)} designs; in {failed} a "
        "model could not be fitted, or had no covariance.",
        table(
            ["designs", "weights", "rule", *_VERDICT_HEADS],
            verdicts,
            3,
        ),
        "Coverage of nominal 95% intervals, effects that are not zero and n ≥ 500, BIC weights "
        "with half to all features; the worst design in parentheses.",
        table(
            [
                "designs",
                "the form",
                "ratio and bound",
                "all features",
                "regret: the form",
                "ratio and bound",
            ],
            rows,
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _normal(drawn: Sequence[Drawn], *, normal: bool) -> list[Drawn]:
    return [one for one in drawn if (one.design.errors == "normal") == normal]


PAGES = {2: second_page, 3: third_page}

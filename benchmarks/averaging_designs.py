"""The designs of docs/averaging_study.md, as they were fixed before any result.

A design says how data are drawn, and `draw` draws them. The coefficients belong to the design: its
draws differ only in their rows. One seed, the name of the design and the number of the draw settle
everything, so a draw is the same whatever process or machine makes it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

SEED = 20261117
TRUTHS = {
    "few": "2 strong",
    "mixed": "2 strong, half of the others weak",
    "half": "half middling",
    "middling": "all middling",
    "strong": "all strong",
    "proportional": "proportional to gamma",
    "part": "half of them proportional to gamma, the others zero",
    "own": "proportional to gamma, and 2 strong ones of their own",
    "rough": "roughly proportional to gamma",
    "none": "nothing predicts",
}
"""what predicts, by the name of a truth"""
STRONG = (0.4, 0.8)
# Sizes of the other coefficients, in units of 1 / sqrt(m): about one standard error.
MIDDLING, WEAK = (2.0, 5.0), (1.0, 3.0)
SHARE = (0.2, 0.5)
"""beta / gamma of a proportional truth, in size"""
ROUGHNESS = 0.4
EXCLUDED = {"weak": 0.15, "strong": 0.7}
"""gamma of the feature that is excluded without being named"""
LEVELS = (0.4, 0.3, 0.2, 0.1)
CLUSTER_ROWS, CLUSTER_SHARE = 20, 0.2
SPREAD = 0.5
NEW_ROWS = 12

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Design:
    """How data are drawn, and with which model they are fitted."""

    part: str
    """the table that it is for"""
    draws: int
    truth: str
    n: int = 1000
    features: int = 8
    """candidates: numeric features and, last, categories with four levels"""
    rho: float = 0.0
    exclusion: str = "none"
    """none, weak or strong (one candidate, not named), or named"""
    instrument: float = 0.0
    """gamma of the named exclusion"""
    errors: str = "normal"
    """normal, t4, skewed or spread (heteroscedastic)"""
    binary: bool = False
    """whether half of the numeric features are 0 or 1"""
    correlation: float = 0.3
    """of neighbouring numeric features; that of others falls geometrically"""
    rate: float = 0.5
    """share of rows that are selected"""
    strength: float = 1.0
    """standard deviation of the part of the selection index that candidates explain"""
    share: float = 0.0
    """beta / gamma of a proportional truth; drawn if 0"""
    clustered: bool = False
    categories: int = 0
    """how many of the candidates are categories"""
    outcome: str = "linear"
    """linear or binary"""
    method: str = "two-step"
    """two-step or ml"""
    both: bool = False
    """whether features may leave the selection equation too; half of them are not in it"""

    @property
    def selected(self) -> float:
        """m, the expected number of selected rows."""
        return self.n * self.rate

    @property
    def words(self) -> str:
        """The design in a few words."""
        own = [f"n = {self.n:,}, K = {self.features}, rho = {self.rho:g}", self.truth]
        if self.exclusion == "named":
            own.append(f"named exclusion {self.instrument:g}")
        elif self.exclusion != "none":
            own.append(f"{self.exclusion} exclusion")
        own += [self.errors] if self.errors != "normal" else []
        own += ["binary features"] if self.binary else []
        own += ["clusters"] if self.clustered else []
        own += [f"{self.categories} categories"] if self.categories else []
        own += [self.outcome] if self.outcome != "linear" else []
        own += ["ML"] if self.method == "ml" and self.outcome == "linear" else []
        own += ["both equations"] if self.both else []
        return ", ".join(own)


@dataclass(frozen=True, eq=False)
class Truth:
    """The coefficients of a design, and the law of its features."""

    coef: Floats
    """(K,) of the prediction equation; a named exclusion is last, with 0"""
    selection: Floats
    """(K,) of the selection equation"""
    selection_intercept: float
    intercept: float
    units: tuple[tuple[int, ...], ...]
    """columns of each candidate"""
    mean: Floats
    """(K,) of the features in all rows"""
    covariance: Floats
    """(K, K) of the features in all rows"""
    points: Floats
    """(NEW_ROWS, K) rows at which expectations are asked"""

    @property
    def candidates(self) -> list[int]:
        """Columns that may predict."""
        return [column for unit in self.units for column in unit]

    def excess(self, intercept: float, coef: Floats) -> float:
        """Mean of (x'b-hat - x'b)² over new rows, selected or not; exact."""
        off = coef - self.coef
        return float(
            (intercept - self.intercept + off @ self.mean) ** 2 + off @ self.covariance @ off
        )


@dataclass(frozen=True, eq=False)
class Draw:
    """A data set."""

    X: Floats
    """(n, K)"""
    y: Floats
    """(n,) NaN where a row is not selected"""
    groups: NDArray[np.int64] | None
    """(n,) clusters, if rows are clustered"""


@cache
def truth_of(name: str) -> Truth:
    """Draw the coefficients of a design."""
    design = design_of(name)
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    X, units = _features(replace(design, n=NEW_ROWS), rng)
    mean, covariance = _law(design)
    K, own = X.shape[1], [column for unit in units for column in unit]
    named = design.exclusion == "named"
    free = [unit for unit in units if not (design.exclusion in EXCLUDED and unit == units[-1])]
    scale = np.sqrt(np.diag(covariance))

    pull = rng.uniform(0.5, 1.0, K) * rng.choice([-1.0, 1.0], K) / scale
    if design.both:
        pull[own[::2]] = 0.0
    inside = [column for unit in free for column in unit]
    block = covariance[np.ix_(inside, inside)]
    pull[inside] *= design.strength / np.sqrt(pull[inside] @ block @ pull[inside])
    if design.exclusion in EXCLUDED:
        pull[units[-1][0]] = EXCLUDED[design.exclusion]
    if named:
        pull[-1] = design.instrument
    spread = np.sqrt(1.0 + pull @ covariance @ pull)
    start = float(stats.norm.ppf(design.rate) * spread - mean @ pull)

    coef = np.zeros(K)
    share = design.share or rng.uniform(*SHARE) * rng.choice([-1.0, 1.0])
    order = [free[place] for place in rng.permutation(len(free))]
    sizes = _sizes(design.truth, len(order))
    if sizes is None:
        held = order[: (len(order) + 1) // 2] if design.truth == "part" else order
        for unit in held:
            rough = 1.0 + ROUGHNESS * rng.standard_normal(len(unit))
            coef[list(unit)] = share * pull[list(unit)] * (rough if design.truth == "rough" else 1)
        sizes = ["strong"] * 2 if design.truth == "own" else []
    small = (1.3 if design.outcome == "binary" else 1.0) / np.sqrt(design.selected)
    for unit, size in zip(order, sizes, strict=False):
        low, high = {"strong": STRONG, "middling": MIDDLING, "weak": WEAK}[size]
        values = rng.uniform(low, high, len(unit)) * rng.choice([-1.0, 1.0], len(unit))
        columns = list(unit)
        coef[columns] += values * (1.0 if size == "strong" else small) / scale[columns]
    return Truth(
        coef=coef,
        selection=pull,
        selection_intercept=start,
        intercept=0.3 if design.outcome == "binary" else 1.0,
        units=tuple(units),
        mean=mean,
        covariance=covariance,
        points=X,
    )


def _sizes(truth: str, units: int) -> list[str] | None:
    """Return sizes of the effects, the first units' first; None if they follow gamma."""
    return {
        "few": ["strong"] * 2,
        "mixed": ["strong"] * 2 + ["weak"] * ((units - 2) // 2),
        "half": ["middling"] * (units // 2),
        "middling": ["middling"] * units,
        "strong": ["strong"] * units,
        "none": [],
    }.get(truth)


def draw(name: str, number: int) -> Draw:
    """Draw the data set of a design that has this number."""
    design, truth = design_of(name), truth_of(name)
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), number])
    clusters = np.arange(design.n) // CLUSTER_ROWS if design.clustered else None
    X, _ = _features(design, rng)
    signal = X @ truth.selection
    centred = (signal - truth.mean @ truth.selection) / max(design.strength, 0.1)
    v, e = _errors(design, rng, centred, clusters)
    latent = truth.intercept + X @ truth.coef + e
    value = (latent > 0).astype(np.float64) if design.outcome == "binary" else latent
    selected = truth.selection_intercept + signal + v > 0
    return Draw(X, np.where(selected, value, np.nan), clusters)


def _numeric(design: Design) -> int:
    """Count numeric columns, a named exclusion (the last of all columns) aside."""
    return design.features - design.categories


def _features(design: Design, rng: np.random.Generator) -> tuple[Floats, list[tuple[int, ...]]]:
    """Draw the features and return the columns of each candidate."""
    numeric = _numeric(design)
    place = np.arange(numeric)
    root = np.linalg.cholesky(design.correlation ** np.abs(place[:, None] - place))
    rows = design.n
    latent = rng.standard_normal((rows, numeric))
    if design.clustered:
        # Every other feature is the same for all rows of a cluster.
        latent[:, ::2] = latent[(np.arange(rows) // CLUSTER_ROWS) * CLUSTER_ROWS, ::2]
    values = latent @ root.T
    if design.binary:
        values[:, 1::2] = values[:, 1::2] > 0
    if design.exclusion in EXCLUDED and not design.categories:
        # The excluded feature is unrelated to the others.
        values[:, -1] = rng.standard_normal(rows)
    parts: list[Any] = [values]
    units: list[tuple[int, ...]] = [(column,) for column in range(numeric)]
    for _ in range(design.categories):
        level = rng.choice(len(LEVELS), rows, p=LEVELS)
        start = units[-1][-1] + 1
        parts.append((level[:, None] == np.arange(1, len(LEVELS))).astype(np.float64))
        units.append(tuple(range(start, start + len(LEVELS) - 1)))
    if design.exclusion == "named":
        parts.append(rng.standard_normal((rows, 1)))
    return np.hstack(parts), units


def _law(design: Design) -> tuple[Floats, Floats]:
    """Mean and covariance of the features in all rows, from a large sample of them."""
    key = zlib.crc32(repr((_numeric(design), design.categories, design.exclusion)).encode())
    rng = np.random.default_rng([SEED, key])
    X, _ = _features(replace(design, n=100_000, clustered=False), rng)
    return X.mean(axis=0), np.cov(X.T)


def _errors(
    design: Design, rng: np.random.Generator, index: Floats, clusters: Any
) -> tuple[Floats, Floats]:
    """Draw the errors of selection and of the outcome; each has mean 0 and variance 1.

    ``index``, standardised, is what the spread of heteroscedastic errors depends on.
    """
    v, w = rng.standard_normal((2, design.n))
    if clusters is not None:
        common = rng.standard_normal((2, int(clusters[-1]) + 1))[:, clusters]
        v, w = np.sqrt(1 - CLUSTER_SHARE) * np.array([v, w]) + np.sqrt(CLUSTER_SHARE) * common
    rest = np.sqrt(1.0 - design.rho**2)
    e = design.rho * v + rest * w
    if design.errors == "t4":
        # A bivariate t: the selection equation is not a probit either.
        both = np.sqrt(2.0 / rng.chisquare(4, design.n))
        return v * both, e * both
    if design.errors == "skewed":
        return v, (stats.gamma.ppf(stats.norm.cdf(e), 2.0) - 2.0) / np.sqrt(2.0)
    if design.errors == "spread":
        return v, design.rho * v + rest * np.exp(SPREAD * index - SPREAD**2) * w
    return v, e


RHOS = (-0.9, -0.8, -0.5, -0.3, 0.3, 0.5, 0.8, 0.9)
LINEAR, ML, BINARY, BOTH, GRID, SPECIAL, LARGE = (
    *("linear", "ML", "binary outcome", "both equations"),
    *("exclusions", "clusters and groups", "many features"),
)


def _random(part: str, count: int, draws: int, **fixed: Any) -> dict[str, Design]:
    """Draw designs; every truth occurs with rho = 0 and with another rho."""
    rng = np.random.default_rng([SEED, zlib.crc32(part.encode())])
    found = {}
    for number in range(count):
        n = int(rng.choice([100, 240, 500, 1000, 2000, 4000, 10_000], p=_P_ROWS))
        exclusion = str(rng.choice(["none", "weak", "strong", "named"], p=[0.4, 0.2, 0.2, 0.2]))
        settings: dict[str, Any] = {
            "n": n,
            "features": int(rng.integers(5, 7 if n < 500 else 11)),
            "rho": 0.0 if (number // len(TRUTHS)) % 2 == 0 else float(rng.choice(RHOS)),
            "truth": list(TRUTHS)[number % len(TRUTHS)],
            "exclusion": exclusion,
            "instrument": float(rng.choice([0.3, 0.6, 1.0])) if exclusion == "named" else 0.0,
            "errors": str(
                rng.choice(["normal", "t4", "skewed", "spread"], p=[0.55, 0.15, 0.15, 0.15])
            ),
            "binary": bool(rng.integers(2)),
            "correlation": float(rng.choice([0.0, 0.3, 0.6])),
            "rate": float(rng.choice([0.5, 0.7] if n < 500 else [0.3, 0.5, 0.7])),
            "strength": float(rng.choice([0.5, 1.0, 1.5])),
        }
        found[f"{part} {number + 1}"] = Design(part, draws, **(settings | fixed))
    return found


_P_ROWS = [0.08, 0.08, 0.18, 0.26, 0.2, 0.12, 0.08]


def _grid(draws: int) -> dict[str, Design]:
    """The most ordinary design of wage data, with and without an exclusion that is named."""
    found = {}
    for size in (0.0, 0.3, 0.6, 1.0):
        for rho in (0.0, 0.5, 0.8):
            named: dict[str, Any] = {"exclusion": "named", "instrument": size}
            name = f"{GRID} {size:g} {rho:g}"
            found[name] = Design(
                GRID, draws, "proportional", rho=rho, share=0.3, **(named if size else {})
            )
    return found


def _special(draws: int) -> dict[str, Design]:
    found = {}
    for truth, rho in (("few", 0.0), ("proportional", 0.0), ("proportional", 0.5), ("half", 0.8)):
        one = Design(SPECIAL, draws, truth, n=2000, features=7, rho=rho, clustered=True)
        found[f"{SPECIAL} clusters {truth} {rho:g}"] = one
        two = Design(SPECIAL, draws, truth, n=2000, features=7, rho=rho, categories=2)
        found[f"{SPECIAL} groups {truth} {rho:g}"] = two
    return found


def _large() -> dict[str, Design]:
    rows = (
        (30, 2000, "few", 0.0, 20),
        (30, 2000, "proportional", 0.0, 20),
        (30, 2000, "proportional", 0.5, 20),
        (30, 4000, "half", 0.5, 20),
        (30, 1000, "mixed", -0.8, 20),
        (60, 4000, "proportional", 0.0, 12),
        (100, 10_000, "proportional", 0.0, 8),
        (100, 10_000, "few", 0.5, 8),
    )
    return {
        f"{LARGE} {K} {truth} {rho:g}": Design(LARGE, draws, truth, n=n, features=K, rho=rho)
        for K, n, truth, rho, draws in rows
    }


def _both(draws: int) -> dict[str, Design]:
    rows = (
        ("few", 0.0, 1000, "linear"),
        ("few", 0.5, 2000, "linear"),
        ("half", 0.8, 4000, "linear"),
        ("mixed", -0.5, 2000, "linear"),
        ("strong", 0.5, 2000, "linear"),
        ("none", 0.0, 2000, "linear"),
        ("few", 0.0, 2000, "binary"),
        ("few", 0.8, 4000, "binary"),
    )
    return {
        f"{BOTH} {number}": Design(
            BOTH, draws, truth, n=n, features=5, rho=rho, outcome=outcome, method="ml", both=True
        )
        for number, (truth, rho, n, outcome) in enumerate(rows, start=1)
    }


DESIGNS = {
    **_random(LINEAR, 120, 120),
    **_grid(120),
    **_special(120),
    **_random(ML, 20, 80, method="ml"),
    **_random(BINARY, 20, 80, method="ml", outcome="binary", errors="normal"),
    **_both(60),
    **_large(),
}

AGAIN, AGAIN_GRID, BREAKING, AGAIN_SPECIAL, AGAIN_ML, AGAIN_BINARY, CROWDED = (
    *("again linear", "again exclusions", "breaking", "again clusters and groups"),
    *("again ML", "again binary", "crowded"),
)


def _breaking(draws: int) -> dict[str, Design]:
    """Designs in which the index takes the place of a correction that is right."""
    rows = [
        (n, rho, strength)
        for n in (500, 1000, 4000)
        for rho in (-0.5, 0.5, 0.8)
        for strength in (0.5, 1.0)
    ]
    return {
        f"{BREAKING} {n} {rho:g} {strength:g}": Design(
            BREAKING, draws, "proportional", n=n, rho=rho, strength=strength, share=0.3
        )
        for n, rho, strength in rows
    }


def _crowded(draws: int) -> dict[str, Design]:
    """Ten candidates, and from 1.5 to 10 selected rows for each."""
    return {
        f"{CROWDED} {m} {truth} {rho:g}": Design(
            CROWDED, draws, truth, n=2 * m, features=10, rho=rho
        )
        for m in (15, 20, 30, 40, 60, 100)
        for truth in ("few", "middling", "proportional")
        for rho in (0.0, 0.5)
    }


def _renamed(part: str, designs: dict[str, Design], old: str) -> dict[str, Design]:
    """Return designs under another part: other names have other coefficients and other rows."""
    return {
        name.replace(old, part, 1): replace(design, part=part) for name, design in designs.items()
    }


SECOND = {
    **_random(AGAIN, 80, 120),
    **_renamed(AGAIN_GRID, _grid(240), GRID),
    **_breaking(200),
    **_renamed(AGAIN_SPECIAL, _special(120), SPECIAL),
    **_random(AGAIN_ML, 20, 100, method="ml"),
    **_random(AGAIN_BINARY, 12, 80, method="ml", outcome="binary", errors="normal"),
    **_crowded(60),
}
"""The designs of the second plan."""

LAST_ML, LAST_BINARY, FLAT = "last ML", "last binary", "flat"


def _flat(draws: int) -> dict[str, Design]:
    """Binary outcomes of a likelihood that is nearly flat in rho: no exclusion, weak selection."""
    return {
        f"{FLAT} {n} {truth} {rho:g}": Design(
            *(FLAT, draws, truth),
            n=n,
            features=7,
            rho=rho,
            binary=True,
            strength=0.5,
            outcome="binary",
            method="ml",
        )
        for n in (1000, 4000)
        for truth in ("middling", "few", "strong")
        for rho in (0.0, 0.5)
    }


THIRD = {
    **_random(LAST_ML, 20, 60, method="ml"),
    **_random(LAST_BINARY, 20, 60, method="ml", outcome="binary", errors="normal"),
    **_flat(60),
}
"""The designs of the third plan."""
ALL = DESIGNS | SECOND | THIRD


def design_of(name: str) -> Design:
    """Return a design of any plan."""
    return ALL[name]

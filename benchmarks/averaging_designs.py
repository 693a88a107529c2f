"""The designs of docs/averaging_study.md, as they were fixed before any result.

A design says how data are drawn; `draw` draws them. One seed, the name of the design and the number
of the draw settle everything, so a draw is the same whatever process or machine makes it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

SEED = 20261116
STRONG = (0.5, 1.0)
# Sizes of the other coefficients, in units of 1 / sqrt(m): about one standard error.
MIDDLING, WEAK = (2.0, 5.0), (1.0, 3.0)
SELECTION = (0.5, 1.0)
LEVELS = 4
HETEROSCEDASTIC = 0.5
BOOTSTRAP_DRAWS, REPLICATES = 200, 200

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Design:
    """How data are drawn."""

    part: str
    """excess, coverage, recovery or columns: the table that it is for"""
    kind: str
    """its class in that table"""
    words: str
    draws: int
    n: int = 2000
    features: int = 12
    """units: numeric features and, last, categories with four levels"""
    strong: int = 0
    middling: int = 0
    weak: int = 0
    rho: float = 0.5
    rate: float = 0.5
    """share of rows that are selected"""
    strength: float = 1.0
    """standard deviation of the part of the selection index that features explain"""
    correlation: float = 0.3
    """of neighbouring numeric features; that of others falls geometrically"""
    errors: str = "normal"
    """normal, t4, skewed, spread (heteroscedastic outcome) or spread all"""
    categories: int = 0
    """how many of the features are categories"""
    excluded: int = 0
    """how many features are known not to predict"""

    @property
    def selected(self) -> float:
        """m, the expected number of selected rows."""
        return self.n * self.rate


@dataclass(frozen=True, eq=False)
class Draw:
    """A data set and its truth."""

    X: Floats
    """(n, K)"""
    y: Floats
    """(n,) NaN where a row is not selected"""
    coef: Floats
    """(K,)"""
    intercept: float
    units: tuple[tuple[int, ...], ...]
    """columns of each feature that may predict"""
    kinds: tuple[str, ...]
    """of each of these features: strong, middling, weak or zero"""
    mean: Floats
    """(K,) of the features in all rows"""
    covariance: Floats
    """(K, K) of the features in all rows"""
    rho: float
    sigma: float

    @property
    def candidates(self) -> list[int]:
        """Columns that may predict."""
        return sorted(column for unit in self.units for column in unit)

    def excess(self, intercept: float, coef: Floats) -> float:
        """Mean of (x'b-hat - x'b)² over new rows, selected or not; exact."""
        off = coef - self.coef
        return float(
            (intercept - self.intercept + off @ self.mean) ** 2 + off @ self.covariance @ off
        )


def _generator(name: str, draw: int) -> np.random.Generator:
    return np.random.default_rng([SEED, zlib.crc32(name.encode()), draw])


def draw(name: str, number: int) -> Draw:
    """Draw the data set of a design that has this number."""
    design, rng = DESIGNS[name], _generator(name, number)
    X, units, mean, covariance = _features(design, rng)
    order = rng.permutation(design.features)
    # What is known not to predict is the first of the numeric features.
    away = tuple(int(unit) for unit in np.sort(order[order < design.features - design.categories]))
    away = away[: design.excluded]
    free = [int(unit) for unit in order if unit not in away]
    sizes = {"strong": STRONG, "middling": MIDDLING, "weak": WEAK}
    names = ["strong"] * design.strong + ["middling"] * design.middling + ["weak"] * design.weak
    coef, kinds = np.zeros(X.shape[1]), dict.fromkeys(free, "zero")
    for unit, kind in zip(free, names, strict=False):
        kinds[unit] = kind
        low, high = sizes[kind]
        scale = 1.0 if kind == "strong" else 1.0 / np.sqrt(design.selected)
        columns = list(units[unit])
        drawn = rng.uniform(low, high, len(columns)) * rng.choice([-1.0, 1.0], len(columns))
        # A dummy varies less than a numeric feature; its coefficient is larger in proportion.
        coef[columns] = scale * drawn / np.sqrt(np.diag(covariance)[columns])
    pull = rng.uniform(*SELECTION, X.shape[1]) * rng.choice([-1.0, 1.0], X.shape[1])
    pull *= design.strength / np.sqrt(pull @ covariance @ pull)
    start = stats.norm.ppf(design.rate) * np.sqrt(1.0 + design.strength**2)
    index = start + (X - mean) @ pull
    v, e = _errors(design, rng, (X - mean) @ pull / design.strength)
    y = np.where(index + v > 0, 1.0 + X @ coef + e, np.nan)
    numbered = sorted(free)
    return Draw(
        X=X,
        y=y,
        coef=coef,
        intercept=1.0,
        units=tuple(units[unit] for unit in numbered),
        kinds=tuple(kinds[unit] for unit in numbered),
        mean=mean,
        covariance=covariance,
        rho=design.rho,
        sigma=1.0,
    )


def new_rows(name: str, number: int, rows: int) -> Floats:
    """Draw features of new rows, selected or not, for a draw of a design."""
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), number, 2])
    return _features(replace(DESIGNS[name], n=rows), rng)[0]


def _features(
    design: Design, rng: np.random.Generator
) -> tuple[Floats, list[tuple[int, ...]], Floats, Floats]:
    """Draw the features; return their units, and their mean and covariance in all rows."""
    numeric = design.features - design.categories
    place = np.arange(numeric)
    block = design.correlation ** np.abs(place[:, None] - place)
    parts = [rng.standard_normal((design.n, numeric)) @ np.linalg.cholesky(block).T]
    units: list[tuple[int, ...]] = [(column,) for column in range(numeric)]
    dummies = LEVELS - 1
    K = numeric + design.categories * dummies
    mean, covariance = np.zeros(K), np.zeros((K, K))
    covariance[:numeric, :numeric] = block
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    for start in range(numeric, K, dummies):
        level = rng.choice(LEVELS, design.n, p=shares)
        parts.append((level[:, None] == np.arange(1, LEVELS)).astype(float))
        columns = list(range(start, start + dummies))
        units.append(tuple(columns))
        mean[columns] = shares[1:]
        covariance[np.ix_(columns, columns)] = np.diag(shares[1:]) - np.outer(
            shares[1:], shares[1:]
        )
    return np.hstack(parts), units, mean, covariance


def _errors(design: Design, rng: np.random.Generator, index: Floats) -> tuple[Floats, Floats]:
    """Draw the errors of selection and of the outcome; each has mean 0 and variance 1.

    ``index``, standardised, is what the spread of heteroscedastic errors depends on.
    """
    v, w = rng.standard_normal((2, design.n))
    rest = np.sqrt(1.0 - design.rho**2)
    e = design.rho * v + rest * w
    if design.errors == "t4":
        # A bivariate t: the selection equation is not a probit either.
        both = np.sqrt(2.0 / rng.chisquare(4, design.n))
        return v * both, e * both
    if design.errors == "skewed":
        return v, (stats.gamma.ppf(stats.norm.cdf(e), 2.0) - 2.0) / np.sqrt(2.0)
    spread = np.exp(HETEROSCEDASTIC * index - HETEROSCEDASTIC**2)
    if design.errors == "spread":
        return v, design.rho * v + rest * spread * w
    if design.errors == "spread all":
        return v, spread * e
    return v, e


def _make(
    part: str, kind: str, draws: int, *given: tuple[str, dict[str, Any]]
) -> dict[str, Design]:
    """Return designs of one class, named by their class and number."""
    return {
        f"{part} {kind} {number}": Design(part, kind, words, draws, **settings)
        for number, (words, settings) in enumerate(given, start=1)
    }


EXCESS = {
    **_make(
        "excess",
        "few",
        500,
        ("K = 8, n = 500", {"features": 8, "n": 500, "strong": 2, "rho": 0.6}),
        ("K = 12", {"strong": 3}),
        ("K = 12, n = 500, rho = -0.8", {"n": 500, "strong": 3, "rho": -0.8}),
        ("K = 15, correlation 0.7", {"features": 15, "strong": 4, "correlation": 0.7}),
        (
            "K = 15, strong selection, rho = 0.8",
            {"features": 15, "strong": 4, "strength": 2.0, "rho": 0.8},
        ),
        ("K = 12, weak selection", {"strong": 3, "strength": 0.4}),
        ("K = 12, rho = 0", {"strong": 3, "rho": 0.0}),
        ("K = 10, 20% selected", {"features": 10, "strong": 3, "rate": 0.2, "rho": 0.7}),
    ),
    **_make(
        "excess",
        "mixed",
        500,
        ("K = 12", {"strong": 3, "weak": 4}),
        ("K = 12, n = 500", {"n": 500, "strong": 3, "weak": 4, "rho": 0.7}),
        ("K = 15, correlation 0.7", {"features": 15, "strong": 3, "weak": 6, "correlation": 0.7}),
        (
            "K = 12, strong selection, rho = -0.6",
            {"strong": 3, "weak": 4, "strength": 2.0, "rho": -0.6},
        ),
    ),
    **_make(
        "excess",
        "many",
        500,
        ("all 10 strong", {"features": 10, "strong": 10}),
        ("all 10 strong, weak selection", {"features": 10, "strong": 10, "strength": 0.4}),
        ("10 of 12 middling, n = 500", {"middling": 10, "n": 500}),
        ("9 of 12 middling", {"middling": 9, "rho": 0.7}),
        (
            "all 15 predict: 3 strong, 6 middling, 6 weak",
            {"features": 15, "strong": 3, "middling": 6, "weak": 6},
        ),
        (
            "all 10 middling, n = 500, strong selection",
            {"features": 10, "middling": 10, "n": 500, "strength": 2.0},
        ),
        ("all 12 middling, rho = 0", {"middling": 12, "rho": 0.0}),
        ("6 of 12 middling, rho = 0.8, 20% selected", {"middling": 6, "rho": 0.8, "rate": 0.2}),
    ),
    **_make(
        "excess",
        "errors",
        500,
        ("t(4), 3 strong of 12", {"strong": 3, "errors": "t4"}),
        ("t(4), all 10 middling", {"features": 10, "middling": 10, "errors": "t4"}),
        ("skewed, 3 strong of 12", {"strong": 3, "errors": "skewed"}),
        ("skewed, all 10 middling", {"features": 10, "middling": 10, "errors": "skewed"}),
        ("heteroscedastic outcome, 3 strong of 12", {"strong": 3, "errors": "spread"}),
        (
            "heteroscedastic outcome, all 10 middling",
            {"features": 10, "middling": 10, "errors": "spread"},
        ),
        (
            "heteroscedastic in both parts, 3 strong and 4 weak of 12",
            {"strong": 3, "weak": 4, "errors": "spread all"},
        ),
    ),
    **_make(
        "excess",
        "groups",
        500,
        (
            "6 numeric, 3 categories; 3 strong",
            {"features": 9, "categories": 3, "strong": 3},
        ),
        (
            "6 numeric, 3 categories; 2 strong, 5 middling",
            {"features": 9, "categories": 3, "strong": 2, "middling": 5},
        ),
    ),
    **_make(
        "excess",
        "excluded",
        500,
        ("one known exclusion, 3 strong of 11", {"strong": 3, "excluded": 1}),
        ("one known exclusion, 3 strong and 4 weak", {"strong": 3, "weak": 4, "excluded": 1}),
        (
            "one known exclusion, all 9 others middling",
            {"features": 10, "middling": 9, "excluded": 1},
        ),
    ),
    **_make(
        "excess",
        "K = 30",
        120,
        ("5 strong", {"features": 30, "strong": 5}),
        ("5 strong, n = 500", {"features": 30, "strong": 5, "n": 500}),
        ("4 strong, 8 weak", {"features": 30, "strong": 4, "weak": 8}),
        ("20 middling", {"features": 30, "middling": 20}),
    ),
    **_make(
        "excess",
        "K = 100",
        40,
        ("6 strong, n = 10,000", {"features": 100, "strong": 6, "n": 10_000}),
        ("50 middling, n = 10,000", {"features": 100, "middling": 50, "n": 10_000}),
    ),
}

COVERAGE = _make(
    "coverage",
    "K = 8",
    300,
    ("n = 500", {"features": 8, "n": 500, "strong": 2, "weak": 3}),
    ("n = 2,000", {"features": 8, "strong": 2, "weak": 3}),
)
COVERAGE |= _make(
    "coverage",
    "K = 15",
    300,
    ("n = 500, rho = 0.7", {"features": 15, "n": 500, "strong": 3, "weak": 5, "rho": 0.7}),
    ("n = 2,000", {"features": 15, "strong": 3, "weak": 5}),
    (
        "n = 2,000, correlation 0.7",
        {"features": 15, "strong": 3, "weak": 5, "correlation": 0.7},
    ),
    ("n = 2,000, t(4)", {"features": 15, "strong": 3, "weak": 5, "errors": "t4"}),
    (
        "n = 2,000, heteroscedastic outcome",
        {"features": 15, "strong": 3, "weak": 5, "errors": "spread"},
    ),
)
COVERAGE |= _make(
    "coverage", "K = 30", 200, ("n = 2,000", {"features": 30, "strong": 4, "weak": 8})
)

RECOVERY = _make(
    "recovery",
    "sparse",
    300,
    ("K = 10, 4 strong", {"features": 10, "strong": 4, "n": 1000}),
    ("K = 20, 4 strong", {"features": 20, "strong": 4, "n": 1000}),
    ("K = 40, 4 strong", {"features": 40, "strong": 4, "n": 1000}),
    ("K = 40, 4 strong", {"features": 40, "strong": 4, "n": 4000}),
)
RECOVERY |= _make(
    "recovery",
    "sparse, rho 0.8",
    300,
    ("K = 10, 3 strong, rho = 0.8", {"features": 10, "strong": 3, "n": 1000, "rho": 0.8}),
    ("K = 20, 3 strong, rho = -0.8", {"features": 20, "strong": 3, "n": 1000, "rho": -0.8}),
)
RECOVERY |= _make(
    "recovery",
    "middling",
    300,
    ("K = 10, 2 strong, 3 middling", {"features": 10, "strong": 2, "middling": 3, "n": 1000}),
    ("K = 20, 2 strong, 5 middling", {"features": 20, "strong": 2, "middling": 5, "n": 1000}),
)

COLUMNS = _make(
    "columns",
    "m near 3 K",
    300,
    ("K = 14, m = 45, 3 strong", {"features": 14, "strong": 3, "n": 450, "rate": 0.1}),
    ("K = 14, m = 45, all strong", {"features": 14, "strong": 14, "n": 450, "rate": 0.1}),
    ("K = 10, m = 30, 2 strong", {"features": 10, "strong": 2, "n": 300, "rate": 0.1}),
    (
        "K = 14, m = 60, 3 strong, 5 middling",
        {"features": 14, "strong": 3, "middling": 5, "n": 300, "rate": 0.2},
    ),
    ("K = 14, m = 90, all middling", {"features": 14, "middling": 14, "n": 450, "rate": 0.2}),
)

DESIGNS = EXCESS | COVERAGE | RECOVERY | COLUMNS

"""Numbers to px: a straight scale, its round numbers, and words that keep clear of each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.isotonic import isotonic_regression

from heckmanfa.text.wording import signed as with_sign
from heckmanfa.text.wording import with_minus

_STEPS = (1, 2, 5)
# Axes from here on are written with exponents.
_SMALL, _LARGE = -5, 7


@dataclass(frozen=True)
class Tick:
    """A number on an axis."""

    value: float
    at: float
    """where it is, in px"""
    text: str


@dataclass(frozen=True)
class Scale:
    """A straight line from numbers to px.

    Limits that are equal are moved apart, and limits that are not finite replaced, so every scale
    has a width.
    """

    low: float
    high: float
    start: float
    """px of `low`"""
    end: float
    """px of `high`"""

    def __post_init__(self) -> None:
        low, high = _limits(float(self.low), float(self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @classmethod
    def over(
        cls,
        values: Iterable[float],
        start: float,
        end: float,
        *,
        pad: float = 0.0,
        include: Sequence[float] = (),
    ) -> Scale:
        """Return a scale over the finite values, and a share of their range beyond on each side.

        ``include`` are numbers that are in view too; nothing is added beyond them.
        """
        finite = [float(value) for value in values if math.isfinite(value)]
        if not finite:
            finite = list(include) or [0.0, 1.0]
        low, high = min(finite), max(finite)
        more = pad * (high / 2 - low / 2) * 2
        low, high = low - more, high + more
        return cls(min([low, *include]), max([high, *include]), start, end)

    def __call__(self, value: float) -> float:
        """Return where a number is, in px; NaN has no place."""
        # Halves and a common size keep differences of huge numbers finite.
        size = max(abs(self.low), abs(self.high))
        share = (value / size - self.low / size) / (self.high / size - self.low / size)
        return self.start + share * (self.end - self.start)

    def to_ticks(self, most: int = 6) -> Scale:
        """Return a scale that reaches the next tick on a side where that is less than half away."""
        count, step, power = self._steps(most)
        width = step * 10.0**power
        low, high = (count[0] - 1) * width, (count[-1] + 1) * width
        return replace(
            self,
            low=low if self.low - low < 0.5 * width else self.low,
            high=high if high - self.high < 0.5 * width else self.high,
        )

    def clipped(self, value: float) -> tuple[float, int]:
        """Return where a number is, at the ends at most, and on which side of them it lies."""
        if value < self.low:
            return self.start, -1
        if value > self.high:
            return self.end, 1
        return self(value), 0

    def ticks(self, most: int = 6, *, signed: bool = False, unit: str = "") -> tuple[Tick, ...]:
        """Return at most so many round numbers, all with the same number of decimals.

        ``signed`` writes a plus before positive ones; ``unit`` follows each, such as "%".
        """
        count, step, power = self._steps(max(most, 2))
        ticks: dict[str, Tick] = {}
        for factor in count:
            value = factor * step * 10.0**power
            text = with_minus(_written(factor * step, power))
            text = (with_sign(text) if signed else text) + unit
            ticks.setdefault(text, Tick(value, self(value), text))
        return tuple(ticks.values())

    def _steps(self, most: int) -> tuple[range, int, int]:
        """Return multiples of step * 10^power inside the limits."""
        power = math.floor(math.log10((self.high / most - self.low / most) or 5e-324)) - 1
        while True:
            for step in _STEPS:
                width = step * 10.0**power
                if width == 0.0 or not math.isfinite(self.high / width):
                    continue
                # Limits that are round but for rounding are ticks.
                first = math.ceil(self.low / width - 1e-9)
                last = math.floor(self.high / width + 1e-9)
                if last - first < most:
                    return range(first, last + 1), step, power
            power += 1


def _limits(low: float, high: float) -> tuple[float, float]:
    finite = [limit for limit in (low, high) if math.isfinite(limit)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    # Nearer limits would be one number after rounding.
    apart = 1e-12 * max(abs(low), abs(high), 1e-290)
    if high / 2 - low / 2 > apart:
        return low, high
    wide = 0.5 * max(abs(low), abs(high)) or 0.5
    return low - wide, high + wide


def _written(factor: int, power: int) -> str:
    if factor == 0:
        return "0"
    if power <= _SMALL or power >= _LARGE:
        return f"{factor}e{power}"
    return f"{factor * 10.0**power:,.{max(-power, 0)}f}"


def apart(
    a: float, b: float, half_a: float, half_b: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Place two words of these half widths at a and b, or beside them so that both can be read."""
    room = half_a + half_b + 12.0
    if b - a < room:
        middle = (a + b) / 2
        a, b = middle - room / 2, middle + room / 2
    moved = max(ends[0] + half_a - a, 0.0)
    a, b = a + moved, max(b, a + moved + room)
    moved = max(b + half_b - ends[1], 0.0)
    return min(a, b - moved - room), b - moved


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move heights apart by at least a gap, as little as possible, and within the limits."""
    places = np.asarray(heights, dtype=np.float64)
    n = len(places)
    # Of several at the same height the first stays the highest.
    order = np.lexsort((-np.arange(n), places))
    steps = min(gap, (high - low) / max(n - 1, 1)) * np.arange(n)
    moved = isotonic_regression(places[order] - steps)
    apart = np.empty(n)
    apart[order] = np.clip(moved, low, high - steps[-1]) + steps
    return apart.tolist()

"""Write logarithms of Phi2 from mpmath, at points that include the corners, and their slopes.

``python tests/oracles/bivariate_normal.py`` writes bivariate_normal.csv.gz (h, k, rho) and
bivariate_normal_slopes.csv (h, k, t = atanh rho) in some minutes. With r = tanh y, the identity of
Plackett (1954) is

Phi2(h, k; tanh t) = max(Phi(h) - Phi(-k), 0) + int_-inf^t phi2(h, k; tanh y) / cosh(y)^2 dy,

a sum of positive terms. The logarithm of the integrand is concave in y, so its range is found by
bisection. The difference has 70 digits, the integral 34 or 64, and the arguments are exact. Slopes
are central differences with steps of 1e-10 sqrt(1 - rho^2).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import mpmath as mp
import numpy as np
from mpmath.calculus.quadrature import GaussLegendre

TABLE = Path(__file__).with_suffix(".csv.gz")
SLOPES = Path(__file__).with_name("bivariate_normal_slopes.csv")
_DIGITS = 70
_INTEGRAL_DIGITS, _DIGITS_OF_PEAKS = 34, 64
_FALL = 70  # exp(-70) = 4e-31 of the largest value is left out
_RULE = GaussLegendre(mp.mp)
_DEGREE = 7  # 192 nodes on either side of the peak


def log_cdf(h: mp.mpf | float, k: mp.mpf | float, rho: mp.mpf | float) -> mp.mpf:
    """Logarithm of Phi2 to 25 digits."""
    with mp.workdps(_DIGITS):
        a, b, r = mp.mpf(h), mp.mpf(k), mp.mpf(rho)
        # Phi(h) - Phi(-k) from lower tails: 70 digits of 1 - 1e-170 would not do.
        base = mp.ncdf(min(a, b)) - mp.ncdf(-max(a, b)) if a + b > 0 else mp.mpf(0)
        if r == -1:
            return mp.log(base)
        if r == 1:
            return mp.log(mp.ncdf(min(a, b)))
        t = mp.log((1 + r) / (1 - r)) / 2
        # The integrand of large arguments is so narrow that its place needs more digits.
        large = max(abs(a), abs(b)) > 40
        with mp.workdps(_DIGITS_OF_PEAKS if large else _INTEGRAL_DIGITS):
            integral = _integral(a, b, t)
        return mp.log(base + integral)


def _integral(a: mp.mpf, b: mp.mpf, t: mp.mpf) -> mp.mpf:
    plus, minus = (a + b) ** 2 / 8, (a - b) ** 2 / 8

    def exponent(y: mp.mpf) -> mp.mpf:
        return -plus * (1 + mp.exp(-2 * y)) - minus * (1 + mp.exp(2 * y)) - mp.log(mp.cosh(y))

    def integrand(y: mp.mpf) -> mp.mpf:
        square = mp.exp(2 * y)
        fall = plus * (1 + 1 / square) + minus * (1 + square) + top
        return mp.exp(-fall) * 2 * mp.sqrt(square) / (1 + square)

    def slope(y: mp.mpf) -> mp.mpf:
        return 2 * plus * mp.exp(-2 * y) - 2 * minus * mp.exp(2 * y) - mp.tanh(y)

    peak = t if slope(t) > 0 else _crossing(lambda y: -slope(y), _left(slope, t), t)
    top = exponent(peak)

    def low(y: mp.mpf) -> mp.mpf:
        return exponent(y) - top + _FALL

    start = _crossing(low, _left(lambda y: -low(y), peak), peak)
    stop = t
    if low(t) < 0:
        stop = _crossing(lambda y: -low(y), peak, t)
    value = mp.mpf(0)
    for left, right in ((start, peak), (peak, stop)):
        if right > left:
            rule = _RULE.get_nodes(left, right, _DEGREE, mp.mp.prec)
            value += mp.fsum(weight * integrand(node) for node, weight in rule)
    return mp.exp(top) * value / (2 * mp.pi)


def _left(positive: object, y: mp.mpf) -> mp.mpf:
    """A point left of y where a function is positive."""
    step = mp.mpf(1)
    while not positive(y - step) > 0:  # type: ignore[operator]
        step *= 2
    return y - step


def _crossing(increasing: object, start: mp.mpf, stop: mp.mpf) -> mp.mpf:
    """Where a function turns positive, roughly; at the left end of the last bracket."""
    for _ in range(2 * mp.mp.dps):
        middle = (start + stop) / 2
        if increasing(middle) > 0:  # type: ignore[operator]
            stop = middle
        else:
            start = middle
    return start


def points() -> Iterator[tuple[float, float, float]]:
    """Arguments and correlations: corners first, then random ones of every size."""
    rng = np.random.default_rng(17)
    places = [0.0, 1e-8, 1e-3, 0.1, 0.5, 1.0, 2.0, 2.5, 3.0, 5.0, 8.0, 13.0, 20.0, 36.0]
    distances = [0.0, 1e-12, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1 - 1e-6, 1 - 1e-10, 1.0]
    for place in places:
        for distance in distances:
            h, k = rng.choice([-1.0, 1.0], 2) * place
            rho = rng.choice([-1.0, 1.0]) * distance
            yield h, h, rho
            yield h, -h, rho
            yield h, rng.choice([-1.0, 1.0]) * rng.choice(places), rho
            yield h, -rho * h, -rho
    for _ in range(1500):
        h, k = rng.choice([0.01, 1.0, 3.0, 10.0, 25.0]) * rng.normal(size=2)
        sizes = [rng.uniform(), 1.0 - 10.0 ** -rng.uniform(0, 10), 10.0 ** -rng.uniform(0, 10)]
        rho = rng.choice([-1.0, 1.0]) * rng.choice(sizes)
        near = rng.choice([-1.0, 1.0]) * h + rng.normal() * 10.0 ** -rng.uniform(0, 10)
        yield h, float(rng.choice([k, k, near])), rho
    for size in (50.0, 1e3, 1e5):
        for distance in distances[:-1]:
            for _ in range(4):
                h, k = size * rng.normal(size=2)
                yield h, float(rng.choice([h, k])), rng.choice([-1.0, 1.0]) * distance


def slopes(h: float, k: float, t: float) -> list[mp.mpf]:
    """Derivatives of the logarithm in h, k and t, to 15 digits and more."""
    found = []
    with mp.workdps(_DIGITS):
        # The logarithm bends within sqrt(1 - rho^2).
        step = mp.mpf(10) ** -10 / mp.cosh(t)
        for place in range(3):
            ends = []
            for move in (step, -step):
                at = [mp.mpf(h), mp.mpf(k), mp.mpf(t)]
                at[place] += move
                ends.append(log_cdf(at[0], at[1], mp.tanh(at[2])))
            found.append((ends[0] - ends[1]) / (2 * step))
    return found


def _write_slopes() -> None:
    rng = np.random.default_rng(18)
    with SLOPES.open("w") as file:
        file.write("h,k,t,log_cdf,d_h,d_k,d_t\n")
        for t in (-12.0, -4.0, -1.0, -1e-6, 0.2, 0.7, 2.0, 5.0, 12.0):
            for size in (0.1, 1.0, 3.0, 10.0, 25.0):
                h, k = (float(part) for part in size * rng.normal(size=2))
                if abs(t) > 4.0:
                    k = float(np.sign(t) * h + np.exp(-abs(t)) * rng.normal())
                with mp.workdps(_DIGITS):
                    rho = mp.tanh(mp.mpf(t))
                numbers = [log_cdf(h, k, rho), *slopes(h, k, t)]
                words = [repr(part) for part in (h, k, t)] + [mp.nstr(one, 17) for one in numbers]
                file.write(",".join(words) + "\n")


def main() -> None:
    _write_slopes()
    with gzip.GzipFile(TABLE, "wb", mtime=0) as file:
        file.write(b"h,k,rho,log_cdf\n")
        for h, k, rho in points():
            if rho == -1.0 and h + k <= 0.0:
                continue
            value = mp.nstr(log_cdf(h, k, rho), 25)
            file.write(f"{float(h)!r},{float(k)!r},{float(rho)!r},{value}\n".encode())


if __name__ == "__main__":
    main()

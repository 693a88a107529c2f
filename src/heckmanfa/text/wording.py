"""Numbers, lists of names and suggestions for misspelled ones, as people read them.

Pictures write numbers with true minus signs, and plus signs where both matter.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from heckmanfa.text.chances import NO_SIGN_BELOW, SURE_FROM
from heckmanfa.text.printable import quoted, shown

CRITERIA = {
    "adjusted_r2": "adjusted R2",
    "bic": "BIC",
    "aic": "AIC",
    "ebic": "EBIC",
    "corrected_bic": "corrected BIC",
}

CRITERION_ENDS = {
    "adjusted_r2": "the higher, the better",
    "bic": "the lower, the better; it favours few features",
    "aic": "the lower, the better",
    "ebic": "the lower, the better; it favours few features, or nearly all",
    "corrected_bic": "the lower, the better; what it costs to drop features from the model of all",
}
"""what a criterion favours"""

NO_EXCLUSION = "no feature is excluded from the prediction"
ONLY_NORMALITY = "only the normality of the errors identifies the model"
"""clauses that every output says of a model without an exclusion"""

PSEUDO_WEIGHTS = "sampling weights leave only a pseudo-likelihood to weigh sets of features by"
"""the clause that says why there are no chances"""

MAX_NAMES = 8
"""Sentences name this many at most; `some` cuts longer lists."""


def window_text(window: tuple[float, float]) -> str:
    """Format a window of rho."""
    return "[{:g}, {:g}]".format(*window)


def capitalised(words: str) -> str:
    """Begin a sentence with words that may begin with a small letter."""
    return words[:1].upper() + words[1:]


def listed(names: Sequence[str]) -> str:
    """Name all, as in 'a, b and c'."""
    names = [shown(name) for name in names]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def some(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """Name all, or only the first of a long list."""
    if len(names) <= most:
        return listed(names)
    first = [shown(name) for name in names[: most - 2]]
    return f"{', '.join(first)} and {len(names) - len(first)} more"


def weighing(kind: str, rows: int, total: float | None) -> str:
    """Say how weights change a number of rows: a phrase that begins with a comma, or nothing.

    ``total`` is the sum of the weights, None without weights.
    """
    if total is None:
        return ""
    if kind == "sampling":
        return ", weighted by the sampling weights"
    if total == rows:
        return ""
    return f", which the weights count as {total:,.0f}" if total.is_integer() else ", weighted"


# File names with at least this similarity are suggested.
_CLOSE_FILES = 0.7


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the closest names to one that does not exist."""
    return _suggested(difflib.get_close_matches(name, list(names), n=3, cutoff=0.6))


def nearest_file(name: str, names: Iterable[str]) -> str:
    """Suggest the files with the closest names and the same ending as one that does not exist."""
    stem, ending = Path(name).stem, Path(name).suffix.lower()
    files = {Path(file).stem: file for file in names if Path(file).suffix.lower() == ending}
    close = difflib.get_close_matches(stem, list(files), n=3, cutoff=_CLOSE_FILES)
    # One wrong letter is a large share of a short name.
    typos = [
        other
        for other in files
        if len(other) == len(stem) and sum(map(operator.ne, other, stem)) == 1
    ]
    return _suggested([files[other] for other in close or typos[:3]])


def _suggested(close: Sequence[str]) -> str:
    return f". Did you mean {' or '.join(quoted(name) for name in close)}?" if close else ""


# Outside this range a number is clearer with an exponent.
_SMALL, _LARGE = 1e-4, 1e7


def number(value: float, digits: int = 4) -> str:
    """Format a number with this many significant digits; empty if it is NaN.

    Trailing zeros stay, thousands are separated, and only very small and very large numbers get
    an exponent.
    """
    value = float(value)
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value == 0:
        return "0"
    size = abs(value)
    if size < _SMALL or size >= _LARGE:
        return f"{value:.{digits - 1}e}"
    # Rounding may carry into another digit: 9.9996 is 10.00 and not 10.000.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    return f"{value:,.{decimals}f}"


_MINUS = re.compile(r"(?<![\w.\-])-(?=\.?\d|infinite)|(?<=\de)-(?=\d)")


def true_minus(words: str) -> str:
    """Write the minus before a number, or its exponent, as the sign that typesetters use."""
    return _MINUS.sub("\u2212", words)


_CHI_SQUARED = re.compile(r"\bchi2\b(?!_)")


def typeset(words: str) -> str:
    """Write words about numbers as a page prints them: true minus signs, and χ² for chi2."""
    return _CHI_SQUARED.sub("\u03c7\u00b2", true_minus(words))


def p_value(value: float) -> str:
    """Format a p-value: three decimals, or ``<0.001``; empty if it is NaN."""
    if math.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def p_equals(value: float) -> str:
    """Format a p-value in a sentence: ``p = 0.012``, or ``p < 0.001``."""
    return "p < 0.001" if value < 0.001 else f"p = {p_value(value)}"


def percent(share: float, decimals: int = 1) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.{decimals}f}%"


# A share is a sum of weights: CPUs round it differently by about this much.
_CERTAIN = 1e-9


def share_text(share: float) -> str:
    """Format a share of weight; only certainty, up to rounding, is 0% or 100%, and NaN is empty."""
    if math.isnan(share):
        return ""
    if share > 1.0 - _CERTAIN:
        share = 1.0
    if 0.0 < share < 0.0005:
        return "<0.1%"
    if 0.995 < share < 1.0:
        return ">99%"
    return percent(share, 1 if 0.0 < share < 0.0995 else 0)


def count(value: int) -> str:
    """Format a count, rounded if it has too many digits to read."""
    return f"{value:,}" if value < 10**12 else f"about {value:.2g}"


def sets_count(value: int, *, sampled: bool) -> str:
    """Format a number of sets of features: two digits if it is an estimate from sampled ones."""
    if not sampled or value >= 10**12:
        return count(value)
    return f"about {float(f'{value:.1e}'):,.0f}"


def plural(value: int, noun: str, nouns: str | None = None) -> str:
    """Format a count with its noun."""
    return f"{count(value)} {noun if value == 1 else nouns or noun + 's'}"


# Digits of an effect in a sentence, and its decimals unless it is small or large.
_EFFECT_DIGITS = 3


def effects(*values: float) -> list[str]:
    """Format effects for a sentence, all with one number of decimals: three, or three digits.

    An exact zero is "0", and NaN is empty.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest and not _SMALL <= largest < _LARGE:
        return [number(value, _EFFECT_DIGITS).replace("-", "\u2212") for value in values]
    decimals = _EFFECT_DIGITS
    if largest >= 1.0 or 0.0 < largest < 0.01:
        rounded = float(f"{largest:.{_EFFECT_DIGITS - 1}e}")
        decimals = max(_EFFECT_DIGITS - 1 - math.floor(math.log10(rounded)), 0)
    return [_effect(value, decimals) for value in values]


def _effect(value: float, decimals: int) -> str:
    if not math.isfinite(value) or value == 0.0:
        return true_minus(number(value))
    text = f"{value:,.{decimals}f}"
    if not float(text.replace(",", "")):
        # No sign before what rounds to zero.
        text = text.removeprefix("-")
    return true_minus(text)


def points(*shares: float) -> list[str]:
    """Format differences of probabilities in percentage points, all with the same decimals.

    There is one decimal, and more where even the largest is below one point. NaN is empty.
    """
    return tenths(*(100.0 * share for share in shares))


def tenths(*values: float) -> list[str]:
    """Format percentage points or percentages: one decimal, or more if even the largest is small.

    There are none where one reaches a thousand. NaN is empty.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest >= _LARGE:
        return [number(value, _EFFECT_DIGITS).replace("-", "\u2212") for value in values]
    decimals = 1 if largest < 1000.0 else 0
    if 0.0 < largest < 1.0:
        decimals = min(1 - math.floor(math.log10(largest)), 6)
    return [_effect(value, decimals) for value in values]


def percentages(*values: float) -> list[str]:
    """Format numbers that are in percent, all with the same decimals; NaN is empty."""
    return [f"{text}%" if text else "" for text in tenths(*values)]


PERCENT = "percent"
"""the unit of effects on a logarithm"""


def written_in(unit: str) -> Callable[..., list[str]]:
    """Return how numbers in a unit are formatted: in percent, in points, or as `effects`."""
    if unit == PERCENT:
        return percentages
    return tenths if unit else effects


def chance_text(share: float) -> str:
    """Format a chance in whole percent; near certainty either way is ">99%" or "<1%".

    Rounding does not carry a chance over a cut, where its role changes.
    """
    if math.isnan(share):
        return ""
    if share < 0.01:
        return "<1%"
    if share > 0.99:
        return ">99%"
    below = any(share < cut <= round(share, 2) for cut in (NO_SIGN_BELOW, SURE_FROM))
    return percent(math.floor(100.0 * share) / 100.0 if below else share, 0)


def rest_text(n: int, most: float, cut: float) -> str:
    """Say how many features are not shown, and a chance that none of them exceeds.

    ``most`` is the largest of their chances, and ``cut`` the chance below which all of them are
    said to be, if they are.
    """
    bound = percent(math.ceil(100 * most - 1e-9) / 100, 0)
    if most >= cut:
        return f"+{n:,} more, none above {bound}"
    below = f"+{n:,} below {percent(cut, 0)}"
    return below if bound == percent(cut, 0) else f"{below}, none above {bound}"


MINUS = "\N{MINUS SIGN}"
"""a true minus, as wide as a plus"""


def with_minus(text: str) -> str:
    """Write the leading hyphen of a number as a true minus, and that of its exponent."""
    return text.replace("-", MINUS)


def figure(value: float) -> str:
    """Format a number as `effects` does; empty if it is NaN."""
    return effects(value)[0]


def signed(text: str) -> str:
    """Write a plus before a positive number that `figure` or an axis formatted."""
    if not text or text.startswith(MINUS) or not any(digit in text for digit in "123456789"):
        return text
    return "+" + text


def interval(low: float, high: float) -> str:
    """Format the ends of an interval: ``0.059 to 0.134``; empty if one is NaN."""
    return "" if math.isnan(low) or math.isnan(high) else " to ".join(effects(low, high))

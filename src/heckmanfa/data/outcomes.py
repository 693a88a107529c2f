"""The outcomes of selected rows: what is counted about them, and the scale of the fit.

The scale is the outcome's own, log(y) or log(1 + y). Every reader of rows passes through
`on_fit_scale`: rows in memory, on a GPU, in files and on workers. Outcomes are given, and
predicted, on their own scale.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Array, Floats, highest, lowest, namespace
from heckmanfa.data.rows import Mask
from heckmanfa.errors import (
    BinaryOutcomeWarning,
    ConstantOutcomeError,
    InputError,
    NoOutcomeError,
    TooFewRowsError,
    warn,
)
from heckmanfa.text.option_types import OutcomeTransform as OutcomeTransform
from heckmanfa.text.option_words import MISSING, instead, option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

# Outcomes are seldom two-valued, and a few of them show that they are not.
_GLANCE = 64
# So few amounts may take two values by accident.
_FEW = 10
# A class of a single row says nothing about its features.
_LEAST_OF_CLASS = 2
# The squares of outcomes in this range can be summed without overflow.
_SMALLEST, _LARGEST = 1e-140, 1e140


@dataclass(frozen=True)
class OutcomeCounts:
    """The outcomes of the selected rows of a fit; counts of several chunks add up."""

    rows: int = 0
    low: float = np.inf
    """range of the outcome"""
    high: float = -np.inf
    infinite: int = 0
    """infinite outcomes"""
    two_valued: bool = True
    """whether all are at an end of the range"""
    highest: int = 0
    """how many of two-valued outcomes are the higher one"""
    weight: float = 0.0
    """of all rows; their number without weights"""
    highest_weight: float = 0.0
    """of the rows counted in ``highest``"""

    @classmethod
    def of(cls, values: Array, weight: Array | None = None) -> OutcomeCounts:
        """Count the outcomes (n,) of some rows."""
        low, high = lowest(values), highest(values)
        infinite = int(namespace(values).isinf(values).sum())
        total = float(len(values) if weight is None else weight.sum())
        # A glance at a few values spares most outcomes a pass.
        if not all(
            bool(((part == low) | (part == high)).all()) for part in (values[:_GLANCE], values)
        ):
            return cls(len(values), low, high, infinite, two_valued=False, weight=total)
        at_high = values == high
        count = int(at_high.sum())
        heavy = float(count if weight is None else weight[at_high].sum())
        return cls(len(values), low, high, infinite, True, count, total, heavy)

    def __add__(self, other: OutcomeCounts) -> OutcomeCounts:
        low, high = min(self.low, other.low), max(self.high, other.high)
        ends = {self.low, self.high, other.low, other.high}
        two_valued = self.two_valued and other.two_valued and ends <= {low, high, np.inf, -np.inf}
        reaching = [part for part in (self, other) if two_valued and part.high == high]
        return OutcomeCounts(
            rows=self.rows + other.rows,
            low=low,
            high=high,
            infinite=self.infinite + other.infinite,
            two_valued=two_valued,
            highest=sum(part.highest for part in reaching),
            weight=self.weight + other.weight,
            highest_weight=sum(part.highest_weight for part in reaching),
        )


def check_outcomes(
    counts: OutcomeCounts, n_rows: int, classes: tuple[Any, ...] | None = None
) -> None:
    """Refuse outcomes that carry no information; warn about amounts that take only two values.

    ``n_rows`` is the number of rows given, selected or not. ``classes`` are what outcomes of 0, 1
    and so on stand for; None if outcomes are amounts. More than two are counted by the fit.
    """
    n, low, high = counts.rows, counts.low, counts.high
    if n == 0:
        raise NoOutcomeError(
            f"no row has an observed outcome ({n_rows} rows): y is missing in every selected "
            "row. Check the outcome column and `selected`."
        )
    refuse_infinite_outcomes(counts.infinite)
    if n == 1:
        raise TooFewRowsError(
            "only 1 sample has an observed outcome (n_selected = 1); a fit needs more"
        )
    if classes is not None:
        if len(classes) == 2:
            _check_classes(counts, classes)
        return
    if low == high:
        raise ConstantOutcomeError(
            f"the outcome is {low:g} in all {n} selected rows; there is nothing to predict. Check "
            "that y is the right column."
        )
    if not _SMALLEST < high - low < _LARGEST:
        raise InputError(
            f"the outcome runs from {low:g} to {high:g}: its squares cannot be represented. "
            "Change its unit."
        )
    if counts.two_valued and (n > _FEW or (low, high) == (0.0, 1.0)):
        warn(
            f"the outcome holds only {low:g} and {high:g}. A linear model of it is a linear "
            f"probability model: coefficients are changes in the probability of {high:g}"
            f"{'' if high - low == 1 else f', times {high - low:g}'}. Predictions may leave "
            f"[{low:g}, {high:g}], and errors cannot be normal, so the correction is approximate. "
            "HeckmanProbit is the selection model for two classes",
            BinaryOutcomeWarning,
        )


def _check_classes(counts: OutcomeCounts, classes: tuple[Any, ...]) -> None:
    """Refuse outcomes of 0 and 1 that are all of one class, or nearly."""
    positive = np.array([counts.highest, counts.highest_weight]) * (counts.high == 1)
    both = np.array([counts.rows, counts.weight])
    for label, (rows, weight) in zip(classes, (both - positive, positive), strict=True):
        if rows == 0:
            raise ConstantOutcomeError(
                f"none of the {counts.rows} selected rows in the fit is of the class "
                f"{quoted(label)}, and two classes are needed"
            )
        # A frequency weight may make several rows of one.
        if max(rows, weight) < _LEAST_OF_CLASS:
            raise TooFewRowsError(
                f"only 1 selected row is of the class {quoted(label)}; a fit needs at least "
                f"{_LEAST_OF_CLASS} of each class. Check the outcome for a typo, or collect more "
                "rows of that class"
            )


def refuse_infinite_outcomes(count: int) -> None:
    """Refuse selected rows with an infinite outcome."""
    if count:
        raise InputError(
            f"Input y contains infinity or a value too large for dtype('float64') in {count} "
            f"selected rows; correct these values, or mark them {MISSING}"
        )


_LOGARITHMS = frozenset(["log", "ln", "log2", "log10", "log1p", "logaddexp", "logaddexp2"])
_EXPONENTIALS = frozenset(["exp", "exp2", "exp10", "expm1"])
# Longer names are not expressions that somebody wrote.
_LONGEST = 1000


def on_fit_scale(outcome: Array, in_fit: Array, transform: OutcomeTransform | None) -> Array:
    """Return outcomes (n,) on the scale of the fit, NaN or -inf where they have no logarithm.

    Rows that are not ``in_fit`` (selected, and not left out) become NaN, whatever they hold.
    """
    if transform is None:
        return outcome
    xp = namespace(outcome)
    amounts = xp.where(in_fit, outcome, xp.full_like(outcome, np.nan))
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.log(amounts) if transform == "log" else xp.log1p(amounts)


def has_logarithm(values: Array) -> Array:
    """Tell which outcomes of the fit are in the domain of its transform, by `on_fit_scale`."""
    xp = namespace(values)
    return ~(xp.isnan(values) | (values == -np.inf))


def from_log(log_mean: Array, transform: OutcomeTransform) -> Array:
    """Return means on the outcome's own scale, given the logarithm of that of y or 1 + y."""
    xp = namespace(log_mean)
    with np.errstate(over="ignore"):
        return xp.exp(log_mean) if transform == "log" else xp.expm1(log_mean)


_WHETHER = instead(
    "model whether there is one with HeckmanProbit",
    f"fit a column of whether there is one ({option('outcome_kind', 'binary')})",
)


def refuse_without_logarithm(count: int, transform: OutcomeTransform | None) -> None:
    """Refuse outcomes of the fit that have no logarithm."""
    if not count or transform is None:
        return
    rows = f"{plural(count, 'selected row')} {'has' if count == 1 else 'have'}"
    if transform == "log1p":
        raise InputError(
            f"{option('outcome_transform', 'log1p')} needs outcomes above -1: {rows} -1 or less. "
            f"Correct these values or mark them {MISSING}, or fit without a transform"
        )
    raise InputError(
        f"{option('outcome_transform', 'log')} needs outcomes above 0: {rows} 0 or less. If zeros "
        f"are amounts, use {option('outcome_transform', 'log1p')}. If they stand for no amount, "
        f"mark them {MISSING}, or {_WHETHER}"
    )


def read_on_fit_scale(outcome: Floats, in_fit: Mask, transform: OutcomeTransform | None) -> Floats:
    """Return `on_fit_scale`; refuse outcomes of the fit that have no logarithm."""
    values = np.asarray(on_fit_scale(outcome, in_fit, transform))
    if transform is not None:
        refuse_without_logarithm(int(np.sum(in_fit & ~has_logarithm(values))), transform)
    return values


def refuse_logarithm(outcome: str | None, transform: OutcomeTransform | None) -> None:
    """Refuse to take the logarithm of an outcome that is one by its formula or name."""
    if outcome is not None and transform is not None and _is_logarithm(outcome):
        raise InputError(
            f"the outcome {quoted(outcome)} is a logarithm already, and "
            f"{option('outcome_transform', transform)} would take the logarithm of that. Leave "
            f"{option('outcome_transform')} out, or let the outcome be the amount itself"
        )


def _is_logarithm(text: str) -> bool:
    """Whether an expression, or the name of a column, adds up or multiplies logarithms."""
    bare = text.strip()
    if len(bare) > _LONGEST:
        return False
    name = re.fullmatch("`([^`]*)`", bare)
    bare = re.sub("`[^`]*`", "_", bare if name is None else name.group(1))
    try:
        with warnings.catch_warnings():
            # Python warns about numbers in front of letters, as in a name.
            warnings.simplefilter("ignore")
            return _has_logarithm(ast.parse(bare.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _has_logarithm(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return False
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func).rpartition(".")[2]
        if function in _EXPONENTIALS:
            return False
        # The logarithm of a number is a number: wage / log(2) is an amount.
        named = (part for value in node.args for part in ast.walk(value))
        if function in _LOGARITHMS and any(isinstance(part, ast.Name) for part in named):
            return True
    return any(_has_logarithm(child) for child in ast.iter_child_nodes(node))

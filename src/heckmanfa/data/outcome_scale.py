"""The scale that an outcome is fitted on: its own, log(y) or log(1 + y).

Every reader of rows passes through `on_fit_scale`: rows in memory, on a GPU, in files and on
workers. Outcomes are given, and predicted, on their own scale.
"""

from __future__ import annotations

import ast
import re
import warnings

import numpy as np

from heckmanfa.data.arrays import Array, Floats, namespace
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.text.option_types import OutcomeTransform as OutcomeTransform
from heckmanfa.text.option_words import MISSING, instead, option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

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

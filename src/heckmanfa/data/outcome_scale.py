"""The scale that an outcome is fitted on: its own, log(y) or log(1 + y).

Every reader of rows passes through `on_fit_scale`: rows in memory, on a GPU, in files and on
workers. Outcomes are given, and predicted, on their own scale.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from heckmanfa.data.arrays import Array, Floats, namespace
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.text.wording import plural

OutcomeTransform = Literal["log", "log1p"]
"""the scale that an outcome is fitted on; predictions are on its own"""


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


def refuse_without_logarithm(count: int, transform: OutcomeTransform | None) -> None:
    """Refuse outcomes of the fit that have no logarithm."""
    if not count or transform is None:
        return
    rows = f"{plural(count, 'selected row')} {'has' if count == 1 else 'have'}"
    if transform == "log1p":
        raise InputError(
            f"outcome_transform='log1p' needs outcomes above -1: {rows} -1 or less. Correct these "
            "values or mark them missing with NaN, or fit without a transform"
        )
    raise InputError(
        f"outcome_transform='log' needs outcomes above 0: {rows} 0 or less. If zeros are amounts, "
        "use outcome_transform='log1p'. If they stand for no amount, mark them missing with NaN, "
        "or model whether there is one with HeckmanProbit"
    )


def read_on_fit_scale(outcome: Floats, in_fit: Mask, transform: OutcomeTransform | None) -> Floats:
    """Return `on_fit_scale`; refuse outcomes of the fit that have no logarithm."""
    values = np.asarray(on_fit_scale(outcome, in_fit, transform))
    if transform is not None:
        refuse_without_logarithm(int(np.sum(in_fit & ~has_logarithm(values))), transform)
    return values

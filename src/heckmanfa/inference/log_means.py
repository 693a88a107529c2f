"""Means on an outcome's own scale, of a model that is fitted on its logarithm.

With v = x'b, u = z'gamma and b_H = rho sigma, the errors being normal,

    log E[exp(y) | x]        = v + sigma^2 / 2,
    log E[exp(y) | x, s = 1] = v + sigma^2 / 2 + log Phi(u + b_H) - log Phi(u),
    log E[exp(y) | x, s = 0] = v + sigma^2 / 2 + log Phi(-u - b_H) - log Phi(-u),
    log E[s exp(y) | x]      = v + sigma^2 / 2 + log Phi(u + b_H),

where y is the logarithm. All are differences of logarithms, so nothing underflows where selection
is unlikely. With log(1 + y) the same holds for 1 + y.
"""

from __future__ import annotations

from heckmanfa.data.arrays import Array, namespace
from heckmanfa.data.outcomes import OutcomeTransform, from_log
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.model.normal import log_cdf
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

SCALES = ("response", "link")


def check_scale(scale: str, *, binary: bool = False) -> None:
    """Refuse a scale that does not exist, or that a ``binary`` outcome does not have."""
    if scale not in SCALES:
        raise InputError(
            f"{option('scale')} must be 'response' or 'link'; got {quoted(scale)}"
            f"{nearest(str(scale), SCALES)}"
        )
    if binary and scale == "link":
        raise InputError(
            f"{option('scale', 'link')} is for outcomes that are fitted on their logarithm; "
            "effects on a binary outcome are effects on its probability"
        )


def transform_of(fit: Fit, scale: str) -> OutcomeTransform | None:
    """Return the transform that predictions on this scale undo; None if there is none to undo."""
    return fit.spec.outcome_transform if scale == "response" else None


def log_mean(
    kind: str, mean: Array, index: Array | None, imr_coef: float | Array, sigma: float | Array
) -> Array:
    """Return the logarithm of a mean on the outcome's own scale, by row.

    ``index`` is None if every outcome was observed: all rows are then selected.
    """
    level = mean + 0.5 * sigma**2
    if kind == "marginal" or index is None:
        return level
    if kind == "expected":
        return level + log_cdf(index + imr_coef)
    side = 1.0 if kind == "selected" else -1.0
    return level + (log_cdf(side * (index + imr_coef)) - log_cdf(side * index))


def own_scale_mean(
    transform: OutcomeTransform,
    kind: str,
    mean: Array,
    index: Array | None,
    imr_coef: float | Array,
    sigma: float | Array,
) -> Array:
    """Return a mean on the outcome's own scale, by row; arguments are those of `log_mean`."""
    values = log_mean(kind, mean, index, imr_coef, sigma)
    if kind == "expected" and transform == "log1p" and index is not None:
        # E[s (1 + y)] less P(s = 1).
        return from_log(values, "log") - namespace(index).exp(log_cdf(index))
    return from_log(values, transform)

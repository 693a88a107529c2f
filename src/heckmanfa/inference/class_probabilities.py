"""Probabilities of the classes of an ordered outcome, for rows of X.

With eta = x'b, u = z'gamma and X = -e, the row has class j if eta - c_(j+1) < X <= eta - c_j. Given
selection the probability is that of a strip of the bivariate normal over Phi(u), and given its
absence the same of (-u, -rho). Where u is beyond -1e4, quotients would lose their digits: Y given
Y <= u is then u + 1 / u to 1e-8, its mean, and X is normal with mean rho times that and variance
1 - rho^2.
"""

from __future__ import annotations

import numpy as np

from heckmanfa.data.arrays import Array, explain_out_of_memory, namespace
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.row_sources import refuse_rows
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.fit.ordered_cut import cuts_by
from heckmanfa.inference.average_effects import mixed
from heckmanfa.inference.prediction import prediction_index, read_rows, selection_index
from heckmanfa.inference.rows_of_fit import probit_of
from heckmanfa.model.bivariate_normal import log_between
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.rectangles import log_strip_probability
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import nearest

CLASS_KINDS = ("marginal", "selected", "unselected")
_FAR = -1e4
"""the index below which a quotient of probabilities would lose its digits"""


def check_class_kind(fit: Fit, kind: str) -> None:
    """Refuse a kind of probability that classes do not have."""
    if kind not in CLASS_KINDS:
        raise InputError(
            f"kind must be {', '.join(map(quoted, CLASS_KINDS))} for the probabilities of classes; "
            f"got {quoted(kind)}{nearest(str(kind), CLASS_KINDS)}"
        )
    if kind == "unselected":
        probit_of(fit, "nothing is known about unselected rows")


def predict_classes(fit: Fit, X: object, kind: str, missing: str) -> Array:
    """Return the logarithms of the probabilities of all classes, (n, J)."""
    with explain_out_of_memory():
        refuse_rows(X, f", kind={quoted(kind)}")
        table = read_rows(fit, X, prediction=True, selection=kind != "marginal", missing=missing)
        if not fit.way.is_average:
            return _log_of_table(fit, table, kind)
        chances = mixed(fit, lambda own: _exp(_log_of_table(own, table, kind)), linear=False)
        with np.errstate(divide="ignore"):
            return namespace(chances).log(chances)


def _log_of_table(fit: Fit, table: FeatureTable, kind: str) -> Array:
    """Return the logarithms of the probabilities of all classes, by one set of estimates."""
    mean = prediction_index(fit, table)
    index = None if kind == "marginal" else selection_index(fit, table)
    return log_probabilities(mean, index, fit.rho, cuts_by(fit.error_values).tolist(), kind)


def _exp(logarithms: Array) -> Array:
    return namespace(logarithms).exp(logarithms)


def log_probabilities(
    mean: Array, index: Array | None, rho: float, cuts: list[float], kind: str
) -> Array:
    """Return the logarithms of the probabilities of all classes, (n, J), given both indices."""
    xp = namespace(mean)
    infinite = xp.full_like(mean, np.inf)
    edges = [infinite, *(mean - cut for cut in cuts), -infinite]
    pairs = list(zip(edges[1:], edges[:-1], strict=True))
    if index is None:
        return xp.stack([_log_band(low, high) for low, high in pairs], axis=1)
    side = -1.0 if kind == "unselected" else 1.0
    u, rho = side * index, side * rho
    far = u < _FAR
    near = xp.where(far, xp.zeros_like(u), u)
    columns = [log_strip_probability(low, high, near, rho) - log_cdf(near) for low, high in pairs]
    if xp.any(far):
        beyond = xp.where(far, u, xp.full_like(u, _FAR))
        centre, r = rho * (beyond + 1.0 / beyond), ((1.0 - rho) * (1.0 + rho)) ** 0.5
        columns = [
            xp.where(far, _log_band((low - centre) / r, (high - centre) / r), own)
            for own, (low, high) in zip(columns, pairs, strict=True)
        ]
    # Rounding may leave a sure class a little above one.
    return xp.minimum(xp.stack(columns, axis=1), xp.zeros_like(mean)[:, None])


def _log_band(low: Array, high: Array) -> Array:
    """Log of Phi(high) - Phi(low), of which one may be infinite."""
    xp = namespace(high)
    if bool(xp.all(xp.isinf(low))):
        return log_cdf(high)
    if bool(xp.all(xp.isinf(high))):
        return log_cdf(-low)
    flip = low + high < 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        band = log_between(xp.where(flip, high, -low), xp.where(flip, -low, high))
    # A row that lacks a feature has no probability.
    return xp.where(xp.isnan(low), low, band)

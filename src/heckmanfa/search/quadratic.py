"""What it costs to drop features, as a quadratic form in the estimates of all of them.

With theta-hat the estimates of all features and V their covariance, an assignment S costs

    Q(S) = min (theta-hat - theta)' V^-1 (theta-hat - theta)  over theta that is zero outside S.

That is the Wald statistic of the dropped features: theta_D' (V_DD)^-1 theta_D, D being all but S.
With V^-1 = R'R it is also the squared error of a regression of R theta-hat on the columns of R that
S holds, so any search of regressions searches it: K rows stand for all data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import NotIdentifiedError, TooFewRowsError
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.equations import weighted_count
from heckmanfa.model.linalg import (
    collinear_error,
    dependencies,
    inverse_root,
    is_singular,
    standardized,
)
from heckmanfa.model.moments import Moments
from heckmanfa.model.two_step import LARGEST_RHO, fit_two_step
from heckmanfa.text.option_words import option

_BATCH_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class AtanhRho:
    """atanh rho in the model of all features."""

    estimate: float
    variance: float
    covariance: Floats
    """(k,) with the coefficients of the features"""
    excess: float = 0.0
    """what its Wald statistic has more than the likelihood ratio of rho = 0"""


@dataclass(frozen=True, eq=False)
class Restricted:
    """Estimates in N assignments, as the quadratic form has them: the others are zero."""

    coef: Floats
    """(N, k) of the form's columns"""
    variance: Floats
    """(N, k)"""
    atanh_rho: Floats
    """(N,); NaN if the form does not hold it"""
    atanh_rho_variance: Floats
    """(N,)"""


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """Estimates of all k features that a search may use, and their covariance."""

    columns: tuple[int, ...]
    """(k,) positions in X, in order"""
    estimates: Floats
    """(k,)"""
    covariance: Floats
    """(k, k), positive definite"""
    atanh_rho: AtanhRho | None = None
    """None unless the form is a likelihood's, with rho estimated"""

    def dropped(self, masks: Mask) -> Floats:
        """Return what each assignment costs, (...,), given masks over the columns of X, (..., K).

        It is the joint Wald statistic of the features that an assignment does not hold.
        """
        held = masks[..., list(self.columns)].reshape(-1, len(self.columns))
        scale, correlation = standardized(self.covariance)
        ratios = self.estimates / scale
        found = np.empty(len(held))
        k = len(scale)
        step = max(_BATCH_BYTES // (8 * (k + 1) ** 2), 1)
        for start in range(0, len(held), step):
            part = slice(start, start + step)
            out, system = _systems(correlation, held[part])
            right = out * ratios
            solved = np.linalg.solve(system, right[:, :, None])[:, :, 0]
            found[part] = np.einsum("ij,ij->i", right, solved)
        return found.reshape(masks.shape[:-1])

    def restricted(self, masks: Mask) -> Restricted:
        """Estimate the features of each assignment, (N, K), with the others at zero."""
        k = len(self.columns)
        scale, correlation = standardized(self.covariance)
        rho = self.atanh_rho
        last = np.full(k, np.nan) if rho is None else rho.covariance / scale
        right = np.column_stack([self.estimates / scale, correlation, last])
        held = masks[:, list(self.columns)]
        coef, variance = np.empty((2, len(held), k))
        rho_shift, rho_gain = np.empty((2, len(held)))
        step = max(_BATCH_BYTES // (8 * (k + 2) ** 2), 1)
        for start in range(0, len(held), step):
            part = slice(start, start + step)
            out, system = _systems(correlation, held[part])
            dropped = out[:, :, None] * right
            solved = np.linalg.solve(system, dropped)
            across = correlation * out[:, None, :]
            coef[part] = self.estimates - scale * (across @ solved[:, :, :1])[:, :, 0]
            gained = np.einsum("nij,nji->ni", across, solved[:, :, 1:-1])
            variance[part] = scale**2 * np.maximum(1.0 - gained, 0.0)
            both = solved[:, :, [0, -1]]
            rho_shift[part], rho_gain[part] = np.einsum("ni,nij->jn", dropped[:, :, -1], both)
        return Restricted(
            coef=np.where(held, coef, 0.0),
            variance=np.where(held, variance, 0.0),
            atanh_rho=(np.nan if rho is None else rho.estimate) - rho_shift,
            atanh_rho_variance=(np.nan if rho is None else rho.variance) - rho_gain,
        )

    def as_moments(self, n_features: int, n_selected: float) -> Moments:
        """Return the regression of R theta-hat on the columns of R, as compressed rows.

        Its SSE with an assignment is `dropped`. The constant is orthogonal to all else, so it
        changes nothing; so is lambda. X has ``n_features`` columns; ``n_selected`` is m.
        """
        k = len(self.columns)
        factor = np.eye(k + 3)
        factor[-1, -1] = 0.0
        factor[1 : k + 1, 1 : k + 1] = inverse_root(self.covariance)
        factor[1 : k + 1, -1] = factor[1 : k + 1, 1 : k + 1] @ self.estimates
        return Moments(
            columns=self.columns,
            n_features=n_features,
            factor=factor,
            factor_delta=np.zeros((k + 2, k + 2)),
            n_selected=n_selected,
            mean_delta=0.0,
            index_range=(np.inf, -np.inf),
            probit=None,
        )


def _systems(correlation: Floats, held: Mask) -> tuple[Floats, Floats]:
    """(N, k) 1 where an assignment drops a feature, and (N, k, k) correlations of those dropped.

    Features that are held get the equation x = 0, so all systems have one size.
    """
    out = (~held).astype(np.float64)
    system = correlation * out[:, :, None] * out[:, None, :]
    diagonal = np.arange(len(correlation))
    system[:, diagonal, diagonal] += 1.0 - out
    return out, system


def form_of_all(
    moments: Moments,
    columns: Sequence[int],
    labels: Sequence[str],
    kind: CovarianceKind = CLASSICAL,
    rows: Rows | None = None,
) -> QuadraticForm:
    """Return the form of the two-step estimates with all ``columns`` of X as prediction features.

    V is Heckman's covariance, with a beta_H of at most .98 sigma in size, or that of ``kind``,
    which takes a pass over ``rows``. Features that cannot be fitted together are refused;
    ``labels`` name the columns of X.
    """
    columns = tuple(sorted(columns))
    k = len(columns)
    if moments.n_selected <= k + 2:
        raise TooFewRowsError(
            f"{option('criterion', 'corrected_bic')} fits all {k} features that may predict at "
            f"once: with an intercept and the inverse Mills ratio they need more than {k + 2} "
            f"selected rows; there are {weighted_count(moments.n_selected)}. Name fewer in "
            f"{option('prediction_features')}, or use {option('criterion', 'bic')}."
        )
    found = dependencies(moments.subset(columns, outcome=False))
    if found:
        raise collinear_error(
            found,
            ["constant", *(labels[column] for column in columns), "inverse Mills ratio"],
            (*columns, -1),
            f"{option('criterion', 'corrected_bic')} fits all features that may predict at once, "
            "and they are collinear among the selected rows",
            f"Leave some out with {option('never', [...])}, or use {option('criterion', 'bic')}.",
        )
    assert moments.probit is not None
    fitted = fit_two_step(moments, moments.probit, columns, kind, rows, largest_rho=LARGEST_RHO)
    inside = slice(1, k + 1)
    form = QuadraticForm(columns, fitted.coef[inside], fitted.covariance[inside, inside])
    _refuse_singular(form, kind)
    return form


def _refuse_singular(form: QuadraticForm, kind: CovarianceKind) -> None:
    if not is_singular(form.covariance):
        return
    few = " There are fewer clusters than features." if kind.cov_type == "cluster" else ""
    raise NotIdentifiedError(
        f"{option('criterion', 'corrected_bic')} needs the covariance of the {len(form.columns)} "
        f"coefficients of all features, and the {kind.cov_type} one is singular.{few} Use "
        f"{option('criterion', 'bic')}."
    )

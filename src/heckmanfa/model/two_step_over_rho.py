"""Least squares corrected for a given rho, with standard errors from the compressed data.

The estimator is that of Genback, Stanghellini and de Luna (2015), "Uncertainty intervals for
regression parameters with non-ignorable missingness in the outcome", Statistical Papers 56; the
standard errors are not. With X = [1, X_S], m selected rows, J features, u = z'gamma and
delta = lambda (lambda + u),

    beta(rho)    = beta_OLS - kappa c,   kappa = rho sigma(rho),   c = (X'X)^-1 X'lambda,
    sigma(rho)^2 = s^2 / (1 - rho^2 A) = s^2 + A kappa^2,
    A            = (sum u lambda + lambda' P_X lambda) / (m - J),

where s^2 is the residual variance of least squares. If rho is right, y = X beta + kappa lambda + v
among the selected rows, and to first order

    beta(rho) - beta = (X'X)^-1 [X'v + kappa X'DZ (gamma-hat - gamma)]
                       - kappa / (2 s^2) c [ds^2 + kappa^2 dA],

D = diag(delta): the rows' errors, the probit's, and those of sigma(rho), which follow from
s^2 (ds^2, from the squares of v and from kappa lambda' M_X v) and from A (dA, through gamma-hat).
Given selection, v is kappa (t - lambda) plus an independent normal error, t a normal variable
truncated at -u. Its cumulants are derivatives of log Phi:

    variance sigma^2 - kappa^2 delta, third kappa^3 lambda'', fourth kappa^4 lambda'''.

As lambda' = -delta, the sums of these over rows are products of lambda, u and delta, and the
compressed data hold them. So the variance of a coefficient is a polynomial of third degree in
(kappa / s)^2, without approximation beyond first order, and the zeros of confidence limits are
roots of polynomials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyder, polyroots, polyval

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Positions
from heckmanfa.model.linalg import solve_upper
from heckmanfa.model.moments import Moments
from heckmanfa.model.probit import Probit

# Roots of a polynomial this close to the real axis are real, in relative terms.
_NEAR = 1e-7


@dataclass(frozen=True, eq=False)
class TwoStepOverRho:
    """Coefficients and their standard errors as functions of rho."""

    terms: tuple[str, ...]
    """intercept first"""
    least_squares: Floats
    """(1 + J,) coefficients at rho = 0"""
    of_lambda: Floats
    """(1 + J,) c, the coefficients of lambda regressed on the same features"""
    unit_variance: Floats
    """(1 + J,) diagonal of (X'X)^-1"""
    residual_variance: float
    """s^2 = SSE / (m - J - 1)"""
    shrinkage: float
    """A"""
    variance: Floats
    """(1 + J, 7) relative variances: coefficients of the powers 0 to 6 of kappa / s in a variance
    divided by s^2 and the unit variance; classical ones have even powers alone"""
    spread: RhoSpread
    """the joint classical covariance of coefficients, log sigma and the selection equation"""

    @classmethod
    def build(
        cls,
        moments: Moments,
        features: Positions,
        terms: Sequence[str] = (),
        scores: Floats | None = None,
    ) -> TwoStepOverRho:
        """Take the regressions of outcome and lambda on J features from the compressed data.

        Standard errors are classical or, given what `held_two_step.gather_rho_scores` returns, of
        the kind of these ``scores``.
        """
        assert moments.probit is not None
        r = moments.subset(features)
        m, j = moments.n_selected, len(features)
        design = r[: j + 1, : j + 1]
        solved = solve_upper(design, r[: j + 1, -2:])
        inverse_root = solve_upper(design, np.eye(j + 1))
        unit = np.sum(inverse_root**2, axis=1)
        # The sum of u lambda is that of delta less that of lambda^2, of which P_X lambda gives
        # back all but the residuals.
        shrinkage = (m * moments.mean_delta - float(r[-2, -2] ** 2)) / (m - j)
        sums = _Sums.gather(moments, moments.probit, features, inverse_root, r[: j + 2, -2])
        spread = sums.by_powers(solved[:, 0], shrinkage, m, j)
        variance = spread.classical() if scores is None else spread.sandwich(scores)
        return cls(
            terms=tuple(terms),
            least_squares=solved[:, 1],
            of_lambda=solved[:, 0],
            unit_variance=unit,
            residual_variance=float(np.sum(r[-2:, -1] ** 2)) / (m - j - 1.0),
            shrinkage=shrinkage,
            variance=variance / unit[:, None],
            spread=spread,
        )

    @property
    def at_zero(self) -> Floats:
        """(1 + J,) estimates at rho = 0, those of least squares."""
        return self.least_squares

    @property
    def zero_name(self) -> str:
        """What the estimate at rho = 0 is, as a column."""
        return "ols"

    def more_columns(self, rho: Floats) -> dict[str, Floats]:
        """Return what else depends on rho: sigma."""
        return {"sigma": self.sigma(rho)}

    @property
    def reach(self) -> float:
        """The |rho|, at most 1, below which sigma is defined."""
        return float(self.shrinkage**-0.5) if self.shrinkage > 1.0 else 1.0

    def sigma(self, rho: Floats) -> Floats:
        """Standard deviation of the outcome's error for each rho."""
        return np.asarray(np.sqrt(self.residual_variance / (1.0 - self.shrinkage * rho**2)))

    def estimate(self, rho: Floats) -> Floats:
        """Coefficients (R, 1 + J) for R values of rho."""
        return self.least_squares - np.outer(rho * self.sigma(rho), self.of_lambda)

    def std_error(self, rho: Floats) -> Floats:
        """Standard errors (R, 1 + J) for R values of rho."""
        k = rho / np.sqrt(1.0 - self.shrinkage * rho**2)
        relative = k[:, None] ** np.arange(7) @ self.variance.T
        return self._s * np.sqrt(relative * self.unit_variance)

    def sign_changes(self) -> Floats:
        """(1 + J,) rho at which each coefficient is zero; NaN if there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._rho_of(self.least_squares / self.of_lambda / self._s)

    def significance_changes(self, quantile: float) -> Floats:
        """(1 + J, 2) nearest rho below and above zero at which a confidence limit is zero.

        The limits are ``quantile`` standard errors from the estimate. NaN if there is none inside
        (-1, 1).
        """
        reach = quantile * np.sqrt(self.unit_variance)
        b, c = self.least_squares / (reach * self._s), self.of_lambda / reach
        changes = np.full((len(b), 2), np.nan)
        for place, variance in enumerate(self.variance):
            # In k = kappa / s: (b - k c)^2 less the relative variance, free of any units.
            polynomial = -variance
            polynomial[:3] += b[place] ** 2, -2.0 * b[place] * c[place], c[place] ** 2
            rho = self._rho_of(_real_roots(polynomial))
            below, above = rho[rho < 0], rho[rho > 0]
            changes[place] = below.max(initial=-np.inf), above.min(initial=np.inf)
        return np.where(np.isfinite(changes), changes, np.nan)

    @property
    def _s(self) -> float:
        return float(np.sqrt(self.residual_variance))

    def covariance(self, rho: float) -> Floats:
        """Covariance of the coefficients, gamma in the probit's coordinates, and log sigma."""
        kappa = rho * float(self.sigma(np.array(rho)))
        return self.spread.covariance(self._s, kappa / self._s)

    def _rho_of(self, k: Floats) -> Floats:
        """Solve rho sigma(rho) = k s for rho in (-1, 1); NaN if there is no solution."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = k / np.sqrt(1.0 + self.shrinkage * k**2)
        return np.where(np.abs(rho) < self.reach, rho, np.nan)


@dataclass(frozen=True, eq=False)
class RhoSpread:
    """Covariances of all estimates given rho, by powers of k = kappa / s.

    Those of the coefficients are divided by s^2. gamma stands in the probit's coordinates.
    """

    of_lambda: Floats
    """(1 + J,) c"""
    inverse_root: Floats
    """(1 + J, 1 + J) R^-1 of X'X = R'R"""
    corrected: Floats
    """(1 + J, 1 + J) covariance of the coefficients times k^2, with sigma(rho) as known; at k = 0
    it is (X'X)^-1"""
    lean: Floats
    """(1 + J,) covariance of these coefficients and log sigma(rho), times k^3"""
    log_sigma: Floats
    """(3,) variance of log sigma(rho): coefficients of the powers 0 to 2 of k^2"""
    of_selection: Floats
    """(1 + p, 1 + p) classical covariance of gamma-hat"""
    gamma_lean: Floats
    """(1 + J, 1 + p) derivative of the coefficients in gamma-hat with sigma(rho) known, over
    kappa"""
    slope: Floats
    """(1 + p,) derivative of A in gamma-hat"""
    spare: float
    """m - J - 1"""

    def classical(self) -> Floats:
        """(1 + J, 7) variances of the coefficients over s^2, by powers of k."""
        variance = np.zeros((len(self.of_lambda), 7))
        even = variance[:, ::2]
        even[:, 0] = np.sum(self.inverse_root**2, axis=1)
        even[:, 1] = np.diag(self.corrected)
        even[:, 2] = -2.0 * self.of_lambda * self.lean
        even[:, 1:] += np.outer(self.of_lambda**2, self.log_sigma)
        return variance

    def sandwich(self, middle: Floats) -> Floats:
        """Return the same, given the products of scores of `held_two_step.RhoScores`."""
        influence, _ = self.influences()
        variances = np.zeros((len(self.of_lambda), 7))
        for power, first in enumerate(influence):
            for other, second in enumerate(influence):
                variances[:, power + other] += np.sum((first @ middle) * second, axis=1)
        return variances

    def influences(self) -> tuple[Floats, Floats]:
        """Influence of these scores on the coefficients over s and on log sigma, by powers of k.

        (4, 1 + J, scores) and (4, scores).
        """
        p, j = len(self.of_selection), len(self.of_lambda)
        of_log = np.zeros((4, p + 2 * j + 2))
        of_log[0, -2] = of_log[2, -1] = 0.5 / self.spare
        of_log[2, :p] = 0.5 * self.slope @ self.of_selection
        influence = np.zeros((4, j, p + 2 * j + 2))
        influence[0, :, p : p + j] = self.inverse_root
        influence[1, :, p + j : p + 2 * j] = -self.inverse_root
        influence[1, :, :p] = self.gamma_lean @ self.of_selection
        # kappa is rho sigma: what moves log sigma moves them by one power more.
        influence[1:] -= self.of_lambda[:, None] * of_log[:3, None]
        return influence, of_log

    def covariance(self, s: float, k: float) -> Floats:
        """Covariance of the coefficients, gamma and log sigma, (J + p + 3) squared."""
        of_log = float(polyval(k**2, self.log_sigma))
        lean, c = self.lean * k**3, self.of_lambda * k
        both = np.outer(lean, c)
        coefficients = self.inverse_root @ self.inverse_root.T + k**2 * self.corrected
        coefficients += of_log * np.outer(c, c) - both - both.T
        gamma_log = 0.5 * k**2 * self.of_selection @ self.slope
        with_gamma = k * self.gamma_lean @ self.of_selection - np.outer(c, gamma_log)
        with_log = lean - of_log * c
        return np.block(
            [
                [s**2 * coefficients, s * with_gamma, s * with_log[:, None]],
                [s * with_gamma.T, self.of_selection, gamma_log[:, None]],
                [s * with_log[None], gamma_log[None], np.array([[of_log]])],
            ]
        )


@dataclass(frozen=True)
class _Sums:
    """Sums over the selected rows, in coordinates in which X'X is the identity.

    A selection feature z stands in the coordinates of the probit, in which V_gamma is ``spread``.
    """

    inverse_root: Floats
    """(1 + J, 1 + J) R^-1 of X'X = R'R"""
    x_delta_x: Floats
    """(1 + J, 1 + J) X'DX"""
    x_delta_z: Floats
    """(1 + J, 1 + p) X'DZ"""
    x_delta_residual: Floats
    """(1 + J,) X'D M_X lambda"""
    x_third: Floats
    """(1 + J,) X'lambda''"""
    slope: Floats
    """(1 + p,) derivative in gamma of sum delta - lambda' M_X lambda"""
    spread: Floats
    """(1 + p, 1 + p)"""
    delta: float
    delta_squared: float
    fourth: float
    """sum of lambda'''"""
    residual_third: float
    """(M_X lambda)'lambda''"""
    residual_squared: float
    """lambda' M_X lambda"""
    residual_delta: float
    """lambda' M_X D M_X lambda"""

    @classmethod
    def gather(
        cls,
        moments: Moments,
        probit: Probit,
        features: Positions,
        inverse_root: Floats,
        of_lambda: Floats,
    ) -> _Sums:
        """Form the sums from both factors.

        ``of_lambda``, (2 + J,), is c in the coordinates of X, and the length of M_X lambda.
        """
        of_lambda, length = of_lambda[:-1], of_lambda[-1]
        prediction = [0, *moments.places(features)]
        selection = [0, *moments.places(probit.features)]
        back, last = probit.coordinates.back(), len(moments.columns) + 1
        plain_z = moments.factor[:, selection] @ back
        ratio, index = moments.factor[:, last], plain_z @ probit.inner_coef
        x = moments.factor_delta[:, prediction] @ inverse_root
        z = moments.factor_delta[:, selection] @ back
        delta_ratio, delta_index = moments.factor_delta[:, last], z @ probit.inner_coef
        residual = delta_ratio - x @ of_lambda
        # lambda'' = delta (2 lambda + u) - lambda.
        bend = 2.0 * delta_ratio + delta_index
        residual_squared = float(length**2)
        delta = moments.n_selected * moments.mean_delta
        delta_squared = float(delta_ratio @ (delta_ratio + delta_index))
        return cls(
            inverse_root=inverse_root,
            x_delta_x=x.T @ x,
            x_delta_z=x.T @ z,
            x_delta_residual=x.T @ residual,
            x_third=x.T @ bend - of_lambda,
            slope=plain_z.T @ ratio - z.T @ bend + 2.0 * z.T @ residual,
            spread=probit.inner_covariance,
            delta=delta,
            delta_squared=delta_squared,
            fourth=float(ratio @ (2.0 * ratio + index) - bend @ bend)
            + 2.0 * (delta - delta_squared),
            residual_third=float(residual @ bend) - residual_squared,
            residual_squared=residual_squared,
            residual_delta=float(residual @ residual),
        )

    def by_powers(self, c: Floats, shrinkage: float, m: float, j: int) -> RhoSpread:
        """Collect the covariances by powers of kappa / s.

        ``c`` are the coefficients of lambda on the input's scale.
        """
        a, free = shrinkage, m - j - 1.0
        root, slope = self.inverse_root, self.slope / (m - j)
        rows = a * np.eye(len(root)) - self.x_delta_x
        probit = self.x_delta_z @ self.spread @ self.x_delta_z.T
        with_s2 = root @ (self.x_third - 2.0 * self.x_delta_residual) / free
        with_a = root @ self.x_delta_z @ self.spread @ slope
        # The variance of (m - J - 1) s^2 / s^2, by powers of (kappa / s)^2.
        of_s2 = [
            2.0 * m,
            4.0 * (a * m - self.delta + self.residual_squared),
            2.0 * (a * a * m - 2.0 * a * self.delta + self.delta_squared)
            + self.fourth
            + 4.0 * self.residual_third
            + 4.0 * (a * self.residual_squared - self.residual_delta),
        ]
        log_sigma = np.array(of_s2) / (4.0 * free**2)
        log_sigma[2] += float(slope @ self.spread @ slope) / 4.0
        return RhoSpread(
            of_lambda=c,
            inverse_root=root,
            corrected=root @ (rows + probit) @ root.T,
            lean=(with_s2 + with_a) / 2.0,
            log_sigma=log_sigma,
            of_selection=self.spread,
            gamma_lean=root @ self.x_delta_z,
            slope=slope,
            spare=free,
        )


def _real_roots(polynomial: Floats) -> Floats:
    """Real roots of a polynomial whose coefficients begin with the constant."""
    polynomial = np.trim_zeros(polynomial, "b")
    roots = polyroots(polynomial)
    real = np.real(roots[np.abs(np.imag(roots)) <= _NEAR * (1.0 + np.abs(roots))])
    slope = polyder(polynomial)
    for _ in range(2):
        with np.errstate(divide="ignore", invalid="ignore"):
            step = polyval(real, polynomial) / polyval(real, slope)
        # Newton's steps restore the digits that eigenvalues of the companion matrix lose.
        real = real - np.where(np.abs(step) <= _NEAR * (1.0 + np.abs(real)), step, 0.0)
    return np.asarray(real)

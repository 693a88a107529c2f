"""Moments of the outcome's error among selected rows, and the test that they are normal.

Among selected rows, e = rho w + sqrt(1 - rho^2) h, with w a standard normal above -u and h another
one. With Hermite polynomials H_k (H_2 = e^2 - 1, H_3 = e^3 - 3 e, ...),

    A_k = E[H_k(e) | s = 1] = rho^k lambda(u) H_{k-1}(-u),   A_0 = 1,

and a product of two polynomials is a sum of others. With a = (u + rho e) / sqrt(1 - rho^2),

    E[H_k(e) lambda(a) | s = 1] = sqrt(1 - rho^2) L_k,   L_k = rho^k lambda(u) H_k(-u),

and since e H_k = H_{k+1} + k H_{k-1}, the covariances of H_k with a row's score are

    u:      L_k - A_k lambda(u) = -rho^k (delta(u) H_{k-1}(-u) + (k - 1) lambda(u) H_{k-2}(-u)),
    x'beta: k A_{k-1} / sigma,
    s:      k A_k + k (k - 1) A_{k-2},
    t:      k (1 - rho^2) L_{k-1},

s = log sigma and t = atanh rho as in `model.likelihood_terms`. Nothing here is a difference of
large numbers except the variances, which lose u^4 units in the last place for u far below zero.

The information is that of the probit and the expected one of the outcome among selected rows. With
it the variance of the moments is always positive; with the observed information it need not be if
the model is wrong. It consists of D_j = E[delta(a) e^j | s = 1], which has no closed form. Since
phi(e) phi(a) = phi(u) phi((e + rho u) / sqrt(1 - rho^2)),

    D_j = sqrt(1 - rho^2) lambda(u) E[(lambda(a) + a) e^j],

where e is now normal with mean -rho u and variance 1 - rho^2, so quadrature is easy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Rows, total
from heckmanfa.fit import Fit
from heckmanfa.inference.rows_of_fit import FitRows
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.joint_problem import LinearProblem, standardized
from heckmanfa.model.likelihood import fit_likelihood, higher_maximum
from heckmanfa.model.linalg import Design
from heckmanfa.model.newton import inner_parameters
from heckmanfa.model.normal import inverse_mills, mills
from heckmanfa.model.two_step import fit_two_step

ORDERS = (3, 4)
# Beyond this lambda is zero: no row is truncated.
_NEVER_TRUNCATED = 40.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


def hermite(x: Floats, degree: int) -> list[Floats]:
    """Return the Hermite polynomials H_0 to H_degree of n numbers, (n,) each."""
    return list(np.polynomial.hermite_e.hermevander(x, degree).T)


def expected_hermite(u: Floats, rho: float, degree: int) -> list[Floats]:
    """Return A_0 to A_degree of selected rows with selection index u."""
    u = np.minimum(u, _NEVER_TRUNCATED)
    ratio = mills(u)[0]
    powers = hermite(-u, max(degree - 1, 1))
    return [np.ones_like(u), *(rho**k * (ratio * powers[k - 1]) for k in range(1, degree + 1))]


def variances(expected: list[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return var(H_3), cov(H_3, H_4) and var(H_4), from A_0 to A_8."""
    a = expected
    return (
        a[6] + 9.0 * a[4] + 18.0 * a[2] + 6.0 - a[3] ** 2,
        a[7] + 12.0 * a[5] + 36.0 * a[3] + 24.0 * a[1] - a[3] * a[4],
        a[8] + 16.0 * a[6] + 72.0 * a[4] + 96.0 * a[2] + 24.0 - a[4] ** 2,
    )


def score_covariances(u: Floats, rho: float, k: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the covariances of H_k, k > 1, with the derivatives of a selected row's log density.

    These are the derivatives in u, in x'beta / sigma, in log sigma and in atanh rho.
    """
    u = np.minimum(u, _NEVER_TRUNCATED)
    ratio, slope = mills(u)
    powers = hermite(-u, k)
    a = expected_hermite(u, rho, k)
    return (
        -(rho**k) * (slope * powers[k - 1] + (k - 1) * (ratio * powers[k - 2])),
        k * a[k - 1],
        k * a[k] + k * (k - 1) * a[k - 2],
        k * (1.0 - rho**2) * rho ** (k - 1) * (ratio * powers[k - 1]),
    )


def expected_slopes(u: Floats, rho: float) -> tuple[Floats, Floats, Floats]:
    """Return D_0 to D_2 of selected rows with selection index u."""
    u = np.minimum(u, _NEVER_TRUNCATED)
    r = np.sqrt(1.0 - rho**2)
    sums = np.zeros((3, len(u)))
    for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
        a, q = r * u + rho * node, r * node - rho * u
        excess = weight * np.maximum(inverse_mills(a) + a, 0.0)
        sums += [excess, excess * q, excess * q * q]
    first, second, third = sums * (r * mills(u)[0])
    return first, second, third


def normality_test(fit: Fit, read: FitRows) -> tuple[float, str]:
    """Test that the third and fourth moments of e are those of the selection model.

    The test is at the maximum-likelihood estimates, which are computed here unless the model has
    them. Returns a chi-squared statistic with two degrees of freedom, or NaN, and a note.
    """
    moments, probit, features, rows = read.moments, read.probit, fit.features, read.rows
    rho, sigma = (fit.errors[term].transformed for term in ("rho", "sigma"))
    if fit.spec.method == "ml" and rho is not None and sigma is not None:
        beta = np.array([fit.intercept, *fit.coef[features]])
        gamma = np.array([fit.selection_intercept, *fit.selection_coef[list(probit.features)]])
        log_sigma, atanh_rho = sigma[0], rho[0]
        proper = fit.converged and bool(np.isfinite(rho[1]))
        higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    else:
        start = fit_two_step(moments, probit, features, CLASSICAL, rows)
        maximum = fit_likelihood(moments, probit, start, CLASSICAL, rows)
        beta, gamma = maximum.coef, maximum.selection_coef
        log_sigma, atanh_rho = maximum.log_sigma, maximum.atanh_rho
        proper = maximum.converged and maximum.information_is_positive and probit.converged
        higher = higher_maximum(maximum.log_likelihood, maximum.second_maximum)
    if not proper:
        return float("nan"), (
            "maximum likelihood, at which the test is made, did not converge, or its information "
            "is not positive"
        )
    problem = LinearProblem.build(moments, probit, features)
    theta = inner_parameters(problem, np.concatenate([beta, gamma, [log_sigma, atanh_rho]]))
    statistic = _statistic(rows, problem, theta)
    if np.isnan(statistic):
        return statistic, "the variance of the moments is not positive"
    if higher is not None:
        return statistic, (
            "the likelihood has a higher maximum elsewhere; the test is at the one that maximum "
            "likelihood reports"
        )
    return statistic, ""


def _statistic(rows: Rows, problem: LinearProblem, theta: Floats) -> float:
    """Chi-squared of the moments at the maximum of the likelihood."""
    sums = rows.map(_sums, problem, theta, columns=problem.columns)
    gap, spread, cross, information = total(sums)
    try:
        half = sla.solve_triangular(np.linalg.cholesky(information), cross, lower=True)
        # The estimates explain part of the moments, which their variance must not count.
        root = np.linalg.cholesky(spread - half.T @ half)
        standard = sla.solve_triangular(root, gap, lower=True)
    except (np.linalg.LinAlgError, ValueError):
        return float("nan")
    return float(standard @ standard)


def _sums(
    block: Block, problem: LinearProblem, theta: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums over a block: moments, their variance, covariance with the scores, the information."""
    p, j = problem.sizes
    log_sigma, t = (float(theta[problem.place(name)]) for name in ("sigma", "rho"))
    sigma, rho = float(np.exp(log_sigma)), float(np.tanh(t))
    beta = slice(p, p + j)
    rest = block.keep(~block.selected)
    z = problem.union.design(rest.features[:, : p - 1])
    slope = mills(-z.times(theta[:p]))[1]
    others = z.gram(slope if rest.weight is None else slope * rest.weight)

    block = block.only_selected()
    design, u, e = standardized(block, problem, theta)
    weight = np.ones(len(e)) if block.weight is None else block.weight

    seen, expected = hermite(e, max(ORDERS)), expected_hermite(u, rho, 2 * max(ORDERS))
    gap = np.array([weight @ (seen[k] - expected[k]) for k in ORDERS])
    third, mixed, fourth = (float(weight @ variance) for variance in variances(expected))
    cross = np.empty((p + j + 2, len(ORDERS)))
    for column, k in enumerate(ORDERS):
        in_u, in_mean, *in_both = score_covariances(u, rho, k)
        cross[:, column] = _spread_out(problem, design, weight, in_u, in_mean / sigma, in_both)

    cosh, sinh = np.cosh(t), np.sinh(t)
    slopes = expected_slopes(u, rho)
    ratio = mills(np.minimum(u, _NEVER_TRUNCATED))[0]
    tilt = u * ratio
    # delta(a) a_t and delta(a) a_t e, a_t = u sinh t + e cosh t the derivative of a in t.
    bend, bend_e = (sinh * u * slopes[i] + cosh * slopes[i + 1] for i in (0, 1))
    information = np.zeros((p + j + 2, p + j + 2))
    gram, to_beta = design.gram(weight * slopes[0]), problem.prediction
    information[:p, :p] = cosh**2 * gram[:p, :p] + others
    information[:p, beta] = -cosh * sinh / sigma * gram[:p] @ to_beta
    squares = design.gram(weight)
    information[beta, beta] = to_beta.T @ (squares + sinh**2 * gram) @ to_beta / sigma**2
    information[:, problem.place("sigma")] = _spread_out(
        problem,
        design,
        weight,
        -cosh * sinh * slopes[1],
        (sinh**2 * slopes[1] + rho * ratio) / sigma,
        (sinh**2 * slopes[2] + 2.0 - rho**2 * tilt, -rho * tilt - sinh * bend_e),
    )
    information[:, problem.place("rho")] = _spread_out(
        problem,
        design,
        weight,
        cosh * bend - rho * ratio,
        (ratio - sinh * bend) / sigma,
        (-rho * tilt - sinh * bend_e, sinh * u * bend + cosh * bend_e - (1 - rho**2) * tilt),
    )
    lower = np.tril_indices(len(information), -1)
    information[lower] = information.T[lower]
    return gap, np.array([[third, mixed], [mixed, fourth]]), cross, information


def _spread_out(
    problem: LinearProblem,
    design: Design,
    weight: Floats,
    in_u: Floats,
    in_mean: Floats,
    in_both: Sequence[Floats],
) -> Floats:
    """Sum derivatives in u, x'beta, log sigma and atanh rho over rows, by parameter of theta."""
    pulled = design.pull(np.column_stack([weight * in_u, weight * in_mean]))
    in_errors = [weight @ derivative for derivative in in_both]
    return np.concatenate(
        [pulled[: problem.sizes[0], 0], problem.prediction.T @ pulled[:, 1], in_errors]
    )

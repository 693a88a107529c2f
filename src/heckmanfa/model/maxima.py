"""Maxima of the likelihood: which is higher, and what to warn of after maximum likelihood."""

from __future__ import annotations

from heckmanfa.errors import ConvergenceWarning, CovarianceWarning, SecondMaximumWarning, warn
from heckmanfa.model.likelihood import MaximumLikelihood
from heckmanfa.model.likelihood_starts import Start


def rho_text(rho: float) -> str:
    """Format a rho with three decimals, or as many as it takes to stay below one."""
    if not abs(rho) < 1:
        return f"{rho:.3f}"
    return next(text for n in range(3, 18) if abs(float(text := f"{rho:.{n}f}")) < 1 or n == 17)


def higher_maximum(
    log_likelihood: float | None, second: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the second maximum (log-likelihood, rho) if it is higher than the reported one."""
    if second is None or (log_likelihood is not None and second[0] <= log_likelihood):
        return None
    return second


def warn_of_likelihood(fit: MaximumLikelihood, start: Start) -> None:
    """Warn if the climb did not converge, or ended at a saddle or at the lower of two maxima."""
    if not fit.converged:
        cure = "Use method='two-step', or another set of features."
        if start is not None:
            known = fit.second_maximum
            where = "" if known is None else f" (there is a maximum at {rho_text(known[1])})"
            cure = (
                f"Start from another rho first{where}. If that does not converge either, use "
                "method='two-step', or another set of features."
            )
        warn(
            f"maximum likelihood did not converge in {fit.n_iterations} passes (rho = "
            f"{rho_text(fit.rho)}); do not trust its estimates. {cure}",
            ConvergenceWarning,
        )
        return
    if not fit.information_is_positive:
        warn(
            "the observed information is not positive definite at the maximum, so there are no "
            "standard errors",
            CovarianceWarning,
        )
    higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    if higher is not None:
        height, rho = higher
        origin = "the two-step estimates" if start is None else "the start given"
        warn(
            f"the likelihood has two maxima: the one reported, reached from {origin} "
            f"(log-likelihood {fit.log_likelihood:.4f}, rho {rho_text(fit.rho)}), and a higher one "
            f"(log-likelihood {height:.4f}, rho {rho_text(rho)}). A maximum near |rho| = 1 is "
            "often a sign of misspecification; neither is picked for you. A start of "
            f"{rho_text(rho)} fits the higher one.",
            SecondMaximumWarning,
        )

"""One replicate of a bootstrap: the same rows with other weights, and everything fitted anew.

A replicate's random numbers depend on its place alone, so that the result does not depend on how
many processes share the work.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import held, one_blas_thread
from heckmanfa.data.sample import Sample, reweighted
from heckmanfa.errors import ConvergenceWarning, HeckmanfaError, HeckmanfaWarning, sentence
from heckmanfa.fit import Choose, Fit, Spec, fit_model
from heckmanfa.text.progress import progress_line

# Replicates that a process does before it reports.
_AT_ONCE = 5
_NONE_MISSING = "No row without an outcome was drawn."
_OTHER_COLUMNS = "Other columns than in the fit had to be dropped."


@dataclass(frozen=True)
class Refit:
    """Fits the same model, search included, to other rows; only the estimates are used."""

    spec: Spec
    choose: Choose

    def __call__(self, sample: Sample, source: np.random.Generator) -> Fit:
        """Fit to a sample; raise KeyboardInterrupt again if it stopped the search."""
        fit = fit_model(self.spec, sample, self.choose, int(source.integers(2**31)))
        if fit.search is not None and fit.search.interrupted:
            raise KeyboardInterrupt
        return fit


@dataclass(frozen=True)
class Plan:
    """All that a process needs to make replicates."""

    refit: Refit
    sample: Sample
    codes: NDArray[np.intp] | None
    """(n,) groups that are drawn; None where rows are"""
    n_units: int
    """how many units are drawn, and from how many"""
    dropped: tuple[int, ...]
    """columns that the fit itself dropped"""

    def weights(self, source: np.random.Generator) -> Floats:
        """Draw units with replacement, and count how often each row comes up."""
        rows = held(self.sample.rows, "a bootstrap")
        kept = np.ones(len(rows), dtype=bool) if rows.kept is None else rows.kept
        given = np.ones(len(rows)) if rows.weight is None else rows.weight
        if self.codes is not None:
            drawn = np.bincount(
                source.integers(self.n_units, size=self.n_units), minlength=self.n_units
            )
            return np.asarray(given * kept * drawn[self.codes])
        weight = np.zeros(len(rows))
        if rows.weighted and self.refit.spec.weight_kind == "frequency":
            # A weight of 2 is two rows, each of which may be drawn.
            total = given[kept].sum()
            weight[kept] = source.multinomial(round(total), given[kept] / total)
        else:
            n = int(np.count_nonzero(kept))
            weight[kept] = np.bincount(source.integers(n, size=n), minlength=n) * given[kept]
        return weight


@dataclass(frozen=True)
class Replicates:
    """The estimates of B replicates that succeeded, and what became of the others."""

    estimates: Floats
    """(B, 2K + 5): prediction intercept and coefficients, selection intercept and coefficients,
    then beta_H, rho and sigma"""
    support: NDArray[np.bool_]
    """(B, K)"""
    failures: dict[str, int]
    """how many failed, by reason"""
    warnings: dict[str, int]
    """in how many of the B a warning was given, by its kind"""


def run(
    plan: Plan, seed: np.random.SeedSequence, n_boot: int, n_jobs: int | None, verbose: int
) -> Replicates:
    """Make replicates, shared among processes."""
    from joblib import Parallel, delayed  # scikit-learn requires it

    seeds = seed.spawn(n_boot)
    with progress_line(verbose, "replicates", n_boot) as show:

        def tasks() -> Any:
            for start in range(0, n_boot, _AT_ONCE):
                if show is not None:
                    show(start, "")
                yield delayed(_some)(plan, seeds[start : start + _AT_ONCE])

        parts = [one for part in Parallel(n_jobs=n_jobs)(tasks()) for one in part]
        if show is not None:
            show(n_boot, "")
    good = [part for part in parts if part.failure is None]
    k = len(plan.refit.spec.labels)
    return Replicates(
        estimates=np.array([part.values for part in good]).reshape(len(good), 2 * k + 5),
        support=np.array([part.support for part in good], dtype=bool).reshape(len(good), k),
        failures=dict(Counter(part.failure for part in parts if part.failure).most_common()),
        warnings=dict(Counter(one for part in good for one in part.warnings).most_common()),
    )


@dataclass(frozen=True)
class _Part:
    failure: str | None
    values: Floats | None = None
    support: NDArray[np.bool_] | None = None
    warnings: tuple[str, ...] = ()


def _some(plan: Plan, seeds: Sequence[np.random.SeedSequence]) -> list[_Part]:
    with one_blas_thread():
        return [_replicate(plan, seed) for seed in seeds]


def _replicate(plan: Plan, seed: np.random.SeedSequence) -> _Part:
    source = np.random.default_rng(seed)
    weight = plan.weights(source)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sample = reweighted(plan.sample, weight, n_selection=len(plan.refit.spec.selection))
            if sample.all_selected:
                return _Part(_NONE_MISSING)
            fit = plan.refit(sample, source)
    except HeckmanfaError as error:
        return _Part(sentence(type(error)))
    except np.linalg.LinAlgError as error:
        return _Part(f"Linear algebra failed: {error}.")
    if not fit.converged:
        return _Part(sentence(ConvergenceWarning))
    if {*fit.dropped} - {*plan.dropped}:
        return _Part(_OTHER_COLUMNS)
    kinds = {one.category for one in caught if issubclass(one.category, HeckmanfaWarning)}
    return _Part(
        failure=None,
        values=estimates_of(fit),
        support=fit.support,
        warnings=tuple(sorted(sentence(kind) for kind in kinds)),
    )


def estimates_of(fit: Fit) -> Floats:
    """Return the estimates of a fitted model in the order of `Replicates.estimates`."""
    return np.concatenate(
        [
            [fit.intercept],
            fit.coef,
            [fit.selection_intercept],
            fit.selection_coef,
            [fit.imr_coef, fit.rho, fit.sigma],
        ]
    )

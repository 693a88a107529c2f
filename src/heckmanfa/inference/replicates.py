"""Replicates of a bootstrap: the same rows with other weights, and everything fitted again.

A replicate's random numbers depend only on its number, so the result does not depend on how many
processes share the work.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import held, one_blas_thread
from heckmanfa.data.sample import Sample, reweighted
from heckmanfa.errors import ConvergenceWarning, HeckmanfaError, HeckmanfaWarning, sentence
from heckmanfa.fit import Choose, Fit, Spec, fit_model
from heckmanfa.text.progress import progress_line

# Replicates per task of a process.
_AT_ONCE = 5
_NONE_MISSING = "No row without an outcome was drawn."
_OTHER_COLUMNS = "Other columns than in the fit had to be dropped."

T = TypeVar("T")
_Estimates = tuple[Floats, NDArray[np.bool_], list[str]]


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
    """What a process needs to make replicates."""

    refit: Refit
    sample: Sample
    codes: NDArray[np.intp] | None
    """(n,) the groups that are drawn; None if rows are"""
    n_units: int
    """number of units, and of units drawn"""
    dropped: tuple[int, ...]
    """columns that the original fit dropped"""

    def weights(self, source: np.random.Generator) -> Floats:
        """Draw units with replacement, and count how often each row is drawn."""
        rows = held(self.sample.rows, "a bootstrap")
        kept = rows.used
        own_weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        if self.codes is not None:
            drawn = np.bincount(
                source.integers(self.n_units, size=self.n_units), minlength=self.n_units
            )
            return np.asarray(own_weight * kept * drawn[self.codes])
        weight = np.zeros(len(rows))
        if rows.weighted and self.refit.spec.weight_kind == "frequency":
            # A weight of 2 is two rows, each of which may be drawn.
            total = own_weight[kept].sum()
            weight[kept] = source.multinomial(round(total), own_weight[kept] / total)
        else:
            n = int(np.count_nonzero(kept))
            weight[kept] = np.bincount(source.integers(n, size=n), minlength=n) * own_weight[kept]
        return weight


@dataclass(frozen=True)
class Replicates:
    """The estimates of B replicates that succeeded, and why others failed."""

    estimates: Floats
    """(B, Q (K + 1) + E): intercept and coefficients of each of the family's Q equations, then the
    E `fit.Spec.error_terms`"""
    support: NDArray[np.bool_]
    """(B, K)"""
    failures: dict[str, int]
    """number that failed, by reason"""
    warnings: dict[str, int]
    """number of the B with a warning, by kind of warning"""


def count_facts(label: str, counts: dict[str, int]) -> list[tuple[str, str]]:
    """Return counts by reason as facts of a report."""
    return [(f"{label} ({count:,})", reason) for reason, count in counts.items()]


def count_text(counts: dict[str, int]) -> str:
    """Return counts by reason as the end of a message."""
    reasons = [f"{count} times: {reason.removesuffix('.')}" for reason, count in counts.items()]
    return "; ".join(reasons) + "."


def run(
    plan: Plan, seed: np.random.SeedSequence, n_boot: int, n_jobs: int | None, verbose: int
) -> Replicates:
    """Make replicates, shared among processes."""
    from joblib import Parallel, delayed  # scikit-learn requires it

    seeds = seed.spawn(n_boot)
    with progress_line(verbose, "bootstrap", "replicates", n_boot) as show:

        def tasks() -> Any:
            for start in range(0, n_boot, _AT_ONCE):
                if show is not None:
                    show(start, "")
                yield delayed(_batch)(plan, seeds[start : start + _AT_ONCE])

        results = [result for batch in Parallel(n_jobs=n_jobs)(tasks()) for result in batch]
        if show is not None:
            show(n_boot, "")
    good, failures = without_failures(results)
    spec = plan.refit.spec
    k = len(spec.labels)
    n_estimates = len(spec.family.equations) * (k + 1) + len(spec.error_terms)
    return Replicates(
        estimates=np.array([replicate[0] for replicate in good]).reshape(len(good), n_estimates),
        support=np.array([replicate[1] for replicate in good], dtype=bool).reshape(len(good), k),
        failures=failures,
        warnings=dict(Counter(kind for replicate in good for kind in replicate[2]).most_common()),
    )


def without_failures(results: Sequence[T | str]) -> tuple[list[T], dict[str, int]]:
    """Return the results, and the number of failures by reason."""
    failures = Counter(result for result in results if isinstance(result, str))
    return [result for result in results if not isinstance(result, str)], dict(
        failures.most_common()
    )


def _batch(plan: Plan, seeds: Sequence[np.random.SeedSequence]) -> list[_Estimates | str]:
    with one_blas_thread():
        return [_replicate(plan, seed) for seed in seeds]


def _replicate(plan: Plan, seed: np.random.SeedSequence) -> _Estimates | str:
    """Return estimates, support and warnings of a replicate, or why it failed."""
    source = np.random.default_rng(seed)
    weight = plan.weights(source)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sample = reweighted(plan.sample, weight, n_selection=len(plan.refit.spec.selection))
            if sample.all_selected:
                return _NONE_MISSING
            fit = plan.refit(sample, source)
    except HeckmanfaError as error:
        return sentence(type(error))
    except np.linalg.LinAlgError as error:
        return f"Linear algebra failed: {error}."
    if not fit.converged:
        return sentence(ConvergenceWarning)
    if {*fit.dropped} - {*plan.dropped}:
        return _OTHER_COLUMNS
    kinds = {
        warning.category for warning in caught if issubclass(warning.category, HeckmanfaWarning)
    }
    return estimates_of(fit), fit.support, sorted(sentence(kind) for kind in kinds)


def estimates_of(fit: Fit) -> Floats:
    """Return the estimates of a fitted model in the order of `Replicates.estimates`."""
    equations = [fit.equations[equation.name] for equation in fit.family.equations]
    coefficients = [[estimate.intercept, *estimate.coef] for estimate in equations]
    return np.concatenate([*coefficients, fit.error_estimates])

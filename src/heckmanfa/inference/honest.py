"""Honest estimates: features chosen on one half of the rows, estimates from the other.

The choice does not see the half that estimates, so its standard errors are as valid as with given
features, for the coefficients of the chosen model. One split wastes half of the rows; the median
over many does not.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_names import names_or_positions
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import ArrayRows, Mask, held
from heckmanfa.data.sample import Sample
from heckmanfa.errors import (
    ConvergenceWarning,
    HeckmanfaError,
    HeckmanfaWarning,
    InputError,
    NoFeasibleAssignmentError,
    sentence,
)
from heckmanfa.fit import Choice, Choose, FirstStep, Fit, Spec, fit_model
from heckmanfa.fit.fitted import ErrorEstimate
from heckmanfa.inference.choosing import GivenFeatures, Searching, choice_of
from heckmanfa.inference.replicates import Refit, count_facts, count_text, without_failures
from heckmanfa.model.covariance import CovarianceKind, count_clusters
from heckmanfa.model.unit_totals import check_counts
from heckmanfa.results.distribution import NullDistribution
from heckmanfa.results.document import Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.reports import Report
from heckmanfa.search.searched import HonestSplits, SearchOutcome, over_splits
from heckmanfa.text.option_words import option
from heckmanfa.text.progress import progress_line


@dataclass(frozen=True, repr=False, eq=False)
class Honest(HonestSplits, Report):
    """Estimates over splits of the rows into a half that chooses and a half that estimates.

    The terms are the intercept, each column of X, and E of the errors: K + 1 + E of them.
    """

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Return the estimates of every feature that a split chose.

        Returns
        -------
        DataFrame
            Columns term; chosen, the share of splits that chose the feature; estimate, the median
            over these; std_error, ci_low, ci_high; split_std_error, the median one of a single
            split; quartile_low and quartile_high, the spread of the estimates over splits.
        """
        k, n_errors = len(self.labels), len(self.error_terms)
        share = np.concatenate([[np.nan], self.support.mean(axis=0), np.full(n_errors, np.nan)])
        table = pd.DataFrame({"term": ["Intercept", *self.names, *self.error_terms]})
        table["chosen"] = share
        reference = NullDistribution(self.n_clusters)
        table = table.assign(
            **reference.columns(self.medians(), self.std_errors(), conf_level, tests=False)
        )
        table["split_std_error"] = np.sqrt(over_splits(np.nanmedian, self.variances))
        for name, level in (("quartile_low", 25), ("quartile_high", 75)):
            table[name] = over_splits(
                lambda part, axis, level=level: np.nanpercentile(part, level, axis=axis),
                self.estimates,
            )
        shown = [0, *(1 + column for column in self.candidates), *range(k + 1, k + 1 + n_errors)]
        return table.iloc[shown].reset_index(drop=True)

    def splits(self) -> pd.DataFrame:
        """Return a row for each split that succeeded: features, rho, sigma if there is one."""
        k, columns = len(self.labels), self.columns
        names_of = partial(names_or_positions, self.labels) if columns is None else columns.names_of
        return pd.DataFrame(
            {
                "features": [tuple(names_of(np.flatnonzero(row).tolist())) for row in self.support],
                **{
                    term: self.estimates[:, k + 1 + i]
                    for i, term in enumerate(self.error_terms)
                    if term != "imr"
                },
            }
        )

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        facts = [("Splits", f"{len(self.estimates):,} of {self.n_splits:,} succeeded")]
        facts += count_facts("Failed", self.failures)
        sets = len({tuple(row) for row in self.support.tolist()})
        facts.append(("Distinct assignments", f"{sets:,}"))
        target = tell(None, "honest_target", "caution").sentence
        return [
            Section("Honest estimates", facts=tuple(facts)),
            Section(table=self.tidy(), notes=(target, *NullDistribution(self.n_clusters).notes())),
        ]

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        share = self.support.mean(axis=0)
        if self.chosen.any():
            least = float(share[self.chosen].min())
            words = f"every feature chosen came up in at least {100 * least:.3g}%"
        else:
            most = float(share.max(initial=0.0))
            least, words = 1.0 - most, f"no feature came up in more than {100 * most:.3g}%"
        shaky = not least >= 0.8
        return [
            tell(
                None,
                "honest_splits",
                "caution" if shaky else "ok",
                f"{words} of {len(self.estimates):,} splits",
            )
        ]


@dataclass(frozen=True)
class HonestSearch(Choose):
    """Chooses the features that at least half of many random halves of the rows choose."""

    searching: Searching
    n_splits: int
    verbose: int

    def __call__(self, first: FirstStep) -> Choice:
        """Search in all rows, then choose on one random half and estimate on the other."""
        outcome = self.searching.search(first)
        rows = held(first.selection.rows, "honest=True")
        _refuse_shared(first.kind)
        honest = self._halves(first.spec, rows, first.random_state)
        return choice_of(first.selection, honest.chosen, replace(outcome, halves=honest))

    def without_selection(self, spec: Spec) -> SearchOutcome:
        """Say that nothing was searched, since no outcome is missing."""
        return self.searching.without_selection(spec)

    def finish(self, fit: Fit, first: FirstStep) -> Fit:
        """Put the honest estimates in place of those of all rows."""
        return self.searching.finish(_with_medians(fit), first)

    @property
    def by_covariance(self) -> bool:
        """Whether the search's criterion depends on a covariance."""
        return self.searching.by_covariance

    def for_replicates(self) -> Self:
        """Return the same choice for many fits of which only the estimates are used."""
        return replace(self, searching=self.searching.for_replicates(), verbose=0)

    def _halves(self, spec: Spec, rows: ArrayRows, random_state: Any) -> Honest:
        again = spec.for_replicates(by_covariance=self.by_covariance)
        search = Refit(again, self.searching.for_replicates())
        # The halves depend neither on the draws of the search nor on the search in all rows.
        seed = [int(part) for part in generator(random_state).integers(2**31, size=4)] + [1]
        streams = np.random.SeedSequence(seed).spawn(self.n_splits)
        splits: list[tuple[Floats, Floats] | str] = []
        with progress_line(self.verbose, "honest", "splits", self.n_splits) as show:
            for done, stream in enumerate(streams):
                if show is not None:
                    show(done, "")
                splits.append(_split(spec, search, rows, np.random.default_rng(stream)))
        good, failures = without_failures(splits)
        if 2 * len(good) < self.n_splits:
            raise NoFeasibleAssignmentError(
                f"only {len(good)} of {self.n_splits} splits into halves could be searched and "
                f"fitted, too few for honest estimates. {count_text(failures)}"
            )
        return Honest(
            labels=tuple(spec.columns.each_name()),
            columns=None if spec.columns.encoding is None else spec.columns,
            names=spec.labels,
            candidates=spec.prediction,
            n_splits=self.n_splits,
            estimates=np.array([split[0] for split in good]),
            variances=np.array([split[1] for split in good]),
            failures=failures,
            n_clusters=_count_clusters(spec, rows),
            error_terms=spec.error_terms,
        )


def _split(
    spec: Spec, search: Refit, rows: ArrayRows, source: np.random.Generator
) -> tuple[Floats, Floats] | str:
    """Return the estimates and variances of one split, or why there are none."""
    half = _half(rows, source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        try:
            first = search(_part(rows, half), source)
            chosen = replace(
                spec,
                prediction=tuple(first.features),
                start=spec.start_elsewhere,
            )
            second = fit_model(chosen, _part(rows, ~half), GivenFeatures())
        except HeckmanfaError as error:
            return sentence(type(error))
    if not (first.converged and second.converged):
        return sentence(ConvergenceWarning)
    return _estimates(second)


def _estimates(fit: Fit) -> tuple[Floats, Floats]:
    k, errors = fit.n_features, fit.spec.error_terms
    estimates, variances = (np.full(k + 1 + len(errors), np.nan) for _ in range(2))
    positions = np.append(0, 1 + np.flatnonzero(fit.support))
    variance = np.diag(fit.covariance)
    estimates[positions] = [fit.intercept, *fit.coef[fit.support]]
    variances[positions] = variance[: len(positions)]
    estimates[k + 1 :] = fit.error_estimates
    for i, term in enumerate(errors):
        if ("errors", term) in fit.terms:
            variances[k + 1 + i] = variance[fit.terms.index(("errors", term))]
    return estimates, variances


def _with_medians(fit: Fit) -> Fit:
    """Put the medians over splits in place of the estimates, with their standard errors.

    Correlations are those of the fit to all rows. The intercept makes the prediction at the
    average selected row the median one.
    """
    assert fit.search is not None
    honest, k = fit.search.halves, fit.n_features
    assert honest is not None
    values, errors = honest.medians(), honest.std_errors()
    means = np.zeros(k)
    means[list(fit.moments.columns)] = fit.moments.means[:-2]
    level = np.median(
        honest.estimates[:, 0] + np.nan_to_num(honest.estimates[:, 1 : k + 1]) @ means
    )
    coef = fit.coef.copy()
    coef[fit.support] = values[1 : k + 1][fit.support]
    terms = honest.error_terms
    positions = {"Intercept": 0} | {term: k + 1 + i for i, term in enumerate(terms)}
    spread = np.sqrt(np.diag(fit.covariance))
    honest_spread = spread.copy()
    positions |= {fit.labels[column]: 1 + column for column in fit.features}
    for i, (equation, term) in enumerate(fit.terms):
        if equation != "selection":
            honest_spread[i] = errors[positions[term]]
    ratio = honest_spread / spread
    before = np.array([fit.intercept, *fit.coef[fit.features]])
    # What has no estimate stays as it is known.
    estimates = {term: ErrorEstimate(float(values[positions[term]])) for term in terms}
    for parameter in fit.family.likelihood_terms:
        name, transform = parameter.name, parameter.transform
        # A rho that is held has no error, nor has one of two steps.
        if fit.errors[name].transformed is not None and transform is not None:
            value, error = estimates[name].value, float(errors[positions[name]])
            transformed = float(transform.to(value)), error / transform.slope(value)
            estimates[name] = ErrorEstimate(value, transformed)
    fit = replace(
        fit.with_equation("prediction", coef, float(level - coef @ means)).with_errors(**estimates),
        covariance=fit.covariance * ratio * ratio[:, None],
    )
    moved = np.array([fit.intercept, *fit.coef[fit.features]]) - before
    details = None if fit.details is None else fit.details.rescaled(ratio, moved)
    return replace(fit, details=details)


def _refuse_shared(kind: CovarianceKind) -> None:
    """Refuse rows of which no half is independent of the other, or a sample of its own."""
    cells = kind.cells
    if cells is None or not (cells.ways or cells.strata is not None):
        return
    if cells.strata is not None:
        raise InputError(
            f"{option('honest', True)} compares halves of the rows, and half of a survey is not a "
            f"sample of its design: leave it out, or use {option('cov_type', 'cluster')} with the "
            "primary sampling units as groups"
        )
    raise InputError(
        f"{option('honest', True)} needs halves that share no cluster, and those of two "
        "clusterings share many: pass one of them as groups"
    )


def _half(rows: ArrayRows, source: np.random.Generator) -> Mask:
    """Draw half of the selected and half of the other rows; groups stay whole."""
    half = np.zeros(len(rows), dtype=bool)
    if rows.group is not None:
        n_groups = int(rows.group.max()) + 1
        chosen = source.permutation(n_groups)[: n_groups // 2]
        return np.isin(rows.group, chosen)
    for side in (rows.selected, ~rows.selected):
        positions = np.flatnonzero(side & rows.used)
        half[source.permutation(positions)[: len(positions) // 2]] = True
    return half


def _part(rows: ArrayRows, chosen: Mask) -> Sample:
    kept = chosen & rows.used
    selected = int(np.count_nonzero(kept & rows.selected))
    counts = {"selected": selected, "unselected": int(np.count_nonzero(kept)) - selected}
    return Sample(replace(rows, kept=kept), counts, _cells(rows), False)


def _cells(rows: ArrayRows) -> Cells | None:
    """Return the clusters of rows, which are those of one clustering."""
    return None if rows.group is None else Cells(int(rows.group.max()) + 1)


def _count_clusters(spec: Spec, rows: ArrayRows) -> int | None:
    cells = _cells(rows)
    if spec.cov_type != "cluster" or cells is None:
        return None
    return check_counts(count_clusters(rows, cells))

"""Honest estimates after a search: features chosen on one half of the rows, estimated on the other.

The half that estimates has not been looked at when the features were chosen, so that its standard
errors are as right as those of features given beforehand, for what it estimates: the coefficient in
the model that was chosen. One split
wastes half of the rows and depends on luck; over many, the median is taken.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.rows import ArrayRows, Mask
from heckmanfa.data.sample import Sample
from heckmanfa.errors import (
    ConvergenceWarning,
    HeckmanfaError,
    HeckmanfaWarning,
    NoFeasibleAssignmentError,
    sentence,
)
from heckmanfa.results.caveats import HONEST_TARGET
from heckmanfa.results.document import Finding, Section
from heckmanfa.results.reference import Reference
from heckmanfa.results.reports import Report
from heckmanfa.text.progress import progress_line

if TYPE_CHECKING:
    from heckmanfa.estimators.search_base import SearchedHeckman

__all__ = ["Honest", "over_splits"]


@dataclass(frozen=True, repr=False, eq=False)
class Honest(Report):
    """Estimates over splits of the rows into a half that chooses and a half that estimates.

    The terms are the intercept, each column of X, beta_H, rho and sigma: K + 4 of them.
    """

    labels: tuple[Any, ...]
    """a name (or position) for each of the K columns of X"""
    names: tuple[str, ...]
    """what tables call them"""
    candidates: tuple[int, ...]
    """columns that may predict"""
    n_splits: int
    """splits asked for"""
    estimates: Floats
    """(R, K + 4) of the R splits that succeeded; NaN where a feature was not chosen"""
    variances: Floats
    """(R, K + 4) likewise; NaN for a two-step rho and sigma"""
    failures: dict[str, int]
    """how many splits failed, by reason"""
    n_clusters: int | None = None
    """of all rows; None unless the covariance is clustered"""

    @property
    def support(self) -> NDArray[np.bool_]:
        """(R, K) which features each split chose."""
        return ~np.isnan(self.estimates[:, 1 : len(self.labels) + 1])

    @property
    def chosen(self) -> NDArray[np.bool_]:
        """(K,) features that at least half of the splits chose; the most frequent at least."""
        share = self.support.mean(axis=0)
        return np.asarray(share >= min(0.5, share.max()))

    def medians(self) -> Floats:
        """(K + 4,) medians over the splits that chose a feature; NaN where none did."""
        return _over(np.nanmedian, self.estimates)

    def std_errors(self) -> Floats:
        """(K + 4,) standard errors of the medians.

        The variance of an estimate is that of its average over splits, given the data, plus the
        average of its variance among splits. The first is what many splits leave, so that the
        variance among splits is taken off that of a single one. No aggregate of halves is more
        precise than the whole: half of a single variance is the least.
        """
        single = _over(np.nanmedian, self.variances)
        with np.errstate(invalid="ignore"):
            count = np.sum(np.isfinite(self.estimates), axis=0)
            among = np.where(count > 1, _over(np.nanvar, self.estimates), 0.0)
            among = among * count / np.maximum(count - 1, 1)
            common = np.maximum(single - among, 0.5 * single)
            return np.asarray(np.sqrt(common + 0.5 * np.pi * among / np.maximum(count, 1)))

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Return the estimates of every feature that a split chose.

        Parameters
        ----------
        conf_level : float

        Returns
        -------
        DataFrame
            Columns term; chosen, the share of splits that chose the feature; estimate, the median
            over these; std_error, ci_low, ci_high; split_std_error, the median one of a single
            split; quartile_low and quartile_high, the spread of the estimates over splits.
        """
        reach = Reference(self.n_clusters).quantile(conf_level)
        k = len(self.labels)
        share = np.concatenate([[np.nan], self.support.mean(axis=0), np.full(3, np.nan)])
        table = pd.DataFrame({"term": ["Intercept", *self.names, "imr", "rho", "sigma"]})
        table["chosen"] = share
        table["estimate"], table["std_error"] = self.medians(), self.std_errors()
        table["ci_low"] = table["estimate"] - reach * table["std_error"]
        table["ci_high"] = table["estimate"] + reach * table["std_error"]
        table["split_std_error"] = np.sqrt(_over(np.nanmedian, self.variances))
        for name, level in (("quartile_low", 25), ("quartile_high", 75)):
            table[name] = _over(
                lambda part, axis, level=level: np.nanpercentile(part, level, axis=axis),
                self.estimates,
            )
        shown = [0, *(1 + one for one in self.candidates), *range(k + 1, k + 4)]
        return table.iloc[shown].reset_index(drop=True)

    def splits(self) -> pd.DataFrame:
        """Return a row for each split that succeeded: features, rho, sigma."""
        k = len(self.labels)
        return pd.DataFrame(
            {
                "features": [
                    tuple(self.labels[int(one)] for one in np.flatnonzero(row))
                    for row in self.support
                ],
                "rho": self.estimates[:, k + 2],
                "sigma": self.estimates[:, k + 3],
            }
        )

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        facts = [("Splits", f"{len(self.estimates):,} of {self.n_splits:,} succeeded")]
        facts += [(f"Failed ({count:,})", reason) for reason, count in self.failures.items()]
        sets = len({tuple(row) for row in self.support.tolist()})
        facts.append(("Distinct assignments", f"{sets:,}"))
        return [
            Section("Honest estimates", facts=tuple(facts)),
            Section(table=self.tidy(), notes=(HONEST_TARGET, *Reference(self.n_clusters).notes())),
        ]

    def findings(self) -> list[Finding]:
        """Return what the diagnostics of the model should say of it."""
        least = float(self.support.mean(axis=0)[self.chosen].min())
        shaky = not least >= 0.8
        return [
            Finding(
                "honest_splits",
                "honest splits",
                f"every feature chosen came up in at least {100 * least:.3g}% of "
                f"{len(self.estimates):,} splits",
                "caution" if shaky else "ok",
                "Half of the rows do not always choose the same features."
                if shaky
                else "Half of the rows choose the same features.",
            )
        ]


def over_splits(model: SearchedHeckman, table: FeatureTable, rows: ArrayRows) -> Honest:
    """Choose on one random half and estimate on the other, again and again.

    Parameters
    ----------
    model : SearchedHeckman
        With ``n_splits`` and the parameters of the search.
    table : FeatureTable
    rows : ArrayRows
        Those of both equations.

    Returns
    -------
    Honest
    """
    search = model._for_replicates().set_params(honest=False)
    # The halves do not depend on what the search draws, nor on how the whole was searched.
    streams = np.random.SeedSequence(model._split_seed()).spawn(model.n_splits)
    parts: list[tuple[Floats, Floats] | str] = []
    with progress_line(model.verbose, "splits", model.n_splits) as show:
        for done, stream in enumerate(streams):
            if show is not None:
                show(done, "")
            parts.append(_split(model, search, table, rows, np.random.default_rng(stream)))
    good = [part for part in parts if not isinstance(part, str)]
    failures = dict(Counter(part for part in parts if isinstance(part, str)).most_common())
    if 2 * len(good) < model.n_splits:
        reasons = "; ".join(f"{count} times: {why}" for why, count in failures.items())
        raise NoFeasibleAssignmentError(
            f"only {len(good)} of {model.n_splits} splits into halves could be searched and "
            f"fitted, too few for honest estimates. {reasons}"
        )
    return Honest(
        labels=tuple(model._feature_labels()),
        names=tuple(model._names),
        candidates=tuple(model._prediction(table)),
        n_splits=model.n_splits,
        estimates=np.array([part[0] for part in good]),
        variances=np.array([part[1] for part in good]),
        failures=failures,
        n_clusters=model.n_clusters_,
    )


def _split(
    model: SearchedHeckman,
    search: SearchedHeckman,
    table: FeatureTable,
    rows: ArrayRows,
    source: np.random.Generator,
) -> tuple[Floats, Floats] | str:
    """Return the estimates and variances of one split, or why there are none."""
    half = _half(rows, source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        try:
            chooser = search._like(table, source)
            chooser._fit_sample(table, _part(rows, half))
            chooser._refuse_interrupted()
            features = [int(one) for one in np.flatnonzero(chooser.support_)]
            second = model._settled_on(features)._like(table, source)
            second._fit_sample(table, _part(rows, ~half))
        except HeckmanfaError as error:
            return sentence(type(error))
    if not (chooser.converged_ and second.converged_):
        return sentence(ConvergenceWarning)
    return _estimates(second)


def _estimates(model: Any) -> tuple[Floats, Floats]:
    k = model.n_features_in_
    estimates, variances = np.full(k + 4, np.nan), np.full(k + 4, np.nan)
    places = np.append(0, 1 + np.flatnonzero(model.support_))
    variance = np.diag(model._covariance)
    estimates[places] = [model.intercept_, *model.coef_[model.support_]]
    variances[places] = variance[: len(places)]
    estimates[k + 1 :] = model.imr_coef_, model.rho_, model.sigma_
    for place, term in enumerate(("imr", "rho", "sigma")):
        if ("errors", term) in model._terms:
            variances[k + 1 + place] = variance[model._terms.index(("errors", term))]
    return estimates, variances


def _half(rows: ArrayRows, source: np.random.Generator) -> Mask:
    """Half of the selected and half of the other rows; groups stay whole."""
    half = np.zeros(len(rows), dtype=bool)
    if rows.group is not None:
        n_groups = int(rows.group.max()) + 1
        chosen = source.permutation(n_groups)[: n_groups // 2]
        return np.isin(rows.group, chosen)
    kept = np.ones(len(rows), dtype=bool) if rows.kept is None else rows.kept
    for side in (rows.selected, ~rows.selected):
        places = np.flatnonzero(side & kept)
        half[source.permutation(places)[: len(places) // 2]] = True
    return half


def _part(rows: ArrayRows, chosen: Mask) -> Sample:
    kept = chosen if rows.kept is None else chosen & rows.kept
    selected = int(np.count_nonzero(kept & rows.selected))
    counts = {"selected": selected, "unselected": int(np.count_nonzero(kept)) - selected}
    n_groups = 0 if rows.group is None else int(rows.group.max()) + 1
    return Sample(replace(rows, kept=kept), counts, n_groups, False)


def _over(function: Any, values: Floats) -> Floats:
    """Apply a function to the columns of a matrix that hold anything."""
    result = np.full(values.shape[1], np.nan)
    some = np.isfinite(values).any(axis=0)
    result[some] = function(values[:, some], axis=0)
    return result

"""The bootstrap with the search inside: how often each feature is chosen, and honest intervals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_numbers import as_table, entries
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.random_state import generator
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import ArrayRows, held
from heckmanfa.data.sample import group_codes
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.inference.fit_rows import read_again
from heckmanfa.inference.remembered import groups_of
from heckmanfa.inference.replicates import Plan, Refit, Replicates, estimates_of, run
from heckmanfa.results.document import Finding, Section
from heckmanfa.results.reference import check_level
from heckmanfa.results.reports import Report
from heckmanfa.results.search_caveats import search_notes
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import weighing

_SHOWN = 10


@dataclass(frozen=True, repr=False, eq=False)
class Bootstrap(Report):
    """What resampling says about a fitted model, the search for its features included."""

    n_boot: int
    """replicates asked for"""
    unit: str
    """what was drawn, in words"""
    n_units: int
    labels: tuple[Any, ...]
    """a name (or position) for each of the K columns of X"""
    estimates: Floats
    """(2K + 5,) of the fit, ordered as `Replicates.estimates`"""
    replicates: Replicates
    support: NDArray[np.bool_]
    """(K,) prediction features of the fit"""
    candidates: NDArray[np.bool_]
    """(K,) columns that may predict"""
    selecting: NDArray[np.bool_]
    """(K,) columns of the selection equation"""
    searched: bool
    """whether features were searched for"""
    caveats: tuple[str, ...]
    """caveats that bear on these estimates, as sentences"""
    weighing: str = ""
    """what weights make of what was drawn, in words"""

    @property
    def n_failed(self) -> int:
        """Replicates without estimates."""
        return sum(self.replicates.failures.values())

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Intervals for every coefficient, and how often each feature was chosen.

        Parameters
        ----------
        conf_level : float

        Returns
        -------
        DataFrame
            Columns equation and term as in `Heckman.tidy`; estimate, that of the fit; std_error,
            over the replicates; chosen, the share of replicates whose prediction equation holds
            the feature; percentile_low and percentile_high, of the coefficient with zero where it
            was not chosen; basic_low and basic_high, twice the estimate less those in reverse;
            chosen_low and chosen_high, percentiles over the replicates in which it was chosen.
        """
        check_level(conf_level)
        tail = np.array([0.5 - conf_level / 2.0, 0.5 + conf_level / 2.0])
        values, support = self.replicates.estimates, self.replicates.support
        low, high = np.quantile(values, tail, axis=0)
        rows = []
        for equation, term, place, column in self._places():
            given = (np.nan, np.nan)
            share = np.nan
            if column is not None:
                share = float(support[:, column].mean())
                if support[:, column].any():
                    given = np.quantile(values[support[:, column], place], tail)
            estimate = self.estimates[place]
            rows.append(
                {
                    "equation": equation,
                    "term": term,
                    "estimate": estimate,
                    "std_error": float(np.std(values[:, place], ddof=1)),
                    "chosen": share,
                    "percentile_low": low[place],
                    "percentile_high": high[place],
                    "basic_low": 2.0 * estimate - high[place],
                    "basic_high": 2.0 * estimate - low[place],
                    "chosen_low": given[0],
                    "chosen_high": given[1],
                }
            )
        return pd.DataFrame(rows)

    def assignments(self) -> pd.DataFrame:
        """The assignments that came up, the most frequent first: features, count, share."""
        support = self.replicates.support
        counted = Counter(tuple(np.flatnonzero(row).tolist()) for row in support)
        rows = [
            {
                "features": tuple(self.labels[one] for one in columns),
                "count": count,
                "share": count / len(support),
            }
            for columns, count in sorted(
                counted.items(), key=lambda item: (-item[1], len(item[0]), item[0])
            )
        ]
        return pd.DataFrame(rows, columns=["features", "count", "share"])

    def to_frame(self) -> pd.DataFrame:
        """The estimates of each replicate that succeeded, one column a term."""
        places = self._places()
        columns = pd.MultiIndex.from_tuples(
            [(equation, term) for equation, term, *_ in places], names=["equation", "term"]
        )
        values = self.replicates.estimates[:, [place for *_, place, _ in places]]
        return pd.DataFrame(values, columns=columns)

    def vcov(self) -> pd.DataFrame:
        """Covariance of the estimates over the replicates."""
        return self.to_frame().cov()

    def _places(self) -> list[tuple[str, str, int, int | None]]:
        """Equation, term, place in the estimates, and column of X for each row of the table."""
        k = len(self.labels)
        named = [f"x{one}" if isinstance(one, int) else str(one) for one in self.labels]
        places: list[tuple[str, str, int, int | None]] = [("prediction", "Intercept", 0, None)]
        places += [
            ("prediction", named[one], 1 + int(one), int(one))
            for one in np.flatnonzero(self.candidates)
        ]
        places.append(("selection", "Intercept", k + 1, None))
        places += [
            ("selection", named[one], k + 2 + int(one), None)
            for one in np.flatnonzero(self.selecting)
        ]
        return places + [
            ("errors", term, 2 * k + 2 + place, None)
            for place, term in enumerate(("imr", "rho", "sigma"))
        ]

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        facts = [
            ("Replicates", f"{self.n_boot - self.n_failed:,} of {self.n_boot:,} succeeded"),
            ("Resampled", f"{self.n_units:,} {self.unit}{self.weighing}"),
        ]
        facts += [
            (f"Failed ({count:,})", reason) for reason, count in self.replicates.failures.items()
        ]
        facts += [
            (f"With a warning ({count:,})", reason)
            for reason, count in self.replicates.warnings.items()
        ]
        table = self.tidy()
        if self.searched:
            # What is searched for comes first; the selection equation is in `tidy`.
            table = table[table["equation"] != "selection"]
        else:
            table = table.drop(columns=["chosen", "chosen_low", "chosen_high"])
        parts = [
            Section("Bootstrap", facts=tuple(facts)),
            Section("Estimates and 95% intervals", table=table, notes=tuple(self._notes())),
        ]
        if self.searched:
            came_up = self.assignments()
            words = f"The {len(came_up):,} assignments that came up"
            if len(came_up) > _SHOWN:
                words += f"; the {_SHOWN} most frequent"
            parts.append(Section(words, table=came_up.head(_SHOWN)))
        return parts

    def findings(self) -> list[Finding]:
        """Return what the diagnostics of the model should say of it."""
        many = self.n_failed > 0.05 * self.n_boot
        found = [
            Finding(
                "bootstrap",
                "bootstrap",
                f"{self.n_boot - self.n_failed:,} of {self.n_boot:,} replicates succeeded",
                "caution" if many else "ok",
                "Replicates that cannot be fitted show how near the data are to not identifying "
                "the model."
                if many
                else "The model can be fitted to resampled data.",
            )
        ]
        if self.searched:
            share = float(np.mean((self.replicates.support == self.support).all(axis=1)))
            rare = not share >= 0.5
            found.append(
                Finding(
                    "bootstrap_search",
                    "bootstrap of the search",
                    f"the features chosen came up in {100 * share:.3g}% of replicates",
                    "caution" if rare else "ok",
                    "Other features are chosen from resampled data: report how often each is."
                    if rare
                    else "The choice is stable under resampling.",
                )
            )
        return found

    def _notes(self) -> list[str]:
        notes = []
        if self.searched:
            notes.append(
                "Every replicate repeats the search. A coefficient counts as zero where its "
                "feature was not chosen; the last two columns are about the replicates in which "
                "it was."
            )
            notes.append(
                "After a search, use the percentile intervals: in simulations the basic ones, and "
                "those given that a feature was chosen, seldom cover a weak coefficient."
            )
        notes += self.caveats
        if self.n_failed:
            share = self.n_failed / self.n_boot
            notes.append(
                f"{100 * share:.2g}% of the replicates failed, and the intervals are of the "
                "others: they may be too short."
            )
        return notes


def bootstrap(
    fit: Fit,
    refit: Refit,
    X: Any,
    y: Any,
    *,
    n_boot: int,
    unit: Any,
    selected: Any,
    sample_weight: Any,
    random_state: Any,
    n_jobs: int | None,
    verbose: int,
) -> Bootstrap:
    """Resample the rows of a fit and fit again; see `Heckman.bootstrap`."""
    if not isinstance(n_boot, Integral) or n_boot < 2:
        raise InputError(f"n_boot must be a whole number of at least 2; got {quoted(n_boot)}")
    X, groups, words = _units(fit, X, unit)
    again = read_again(fit, X, y, selected=selected, sample_weight=sample_weight)
    sample = again.sample
    rows = held(sample.rows, "a bootstrap")
    kept = np.ones(len(rows), dtype=bool) if rows.kept is None else rows.kept
    codes, n_units = None, int(np.count_nonzero(kept))
    if groups is not None:
        if again.design is not None:
            groups = again.design.rows_of(X, groups, "unit")
        codes, n_units = group_codes(groups, kept, "unit")
        if n_units < 2:
            raise InputError(f"unit: {words} has one group in these rows; it needs two or more")
    plan = Plan(
        refit=refit,
        sample=sample,
        codes=codes,
        n_units=n_units,
        dropped=fit.dropped,
    )
    entropy = generator(random_state).integers(2**63, size=4).tolist()
    replicates = run(plan, np.random.SeedSequence(entropy), int(n_boot), n_jobs, verbose)
    if len(replicates.estimates) < 2:
        reasons = "; ".join(f"{count} times: {why}" for why, count in replicates.failures.items())
        raise InputError(
            f"{len(replicates.estimates)} of {n_boot} replicates could be fitted, too few to say "
            f"anything. {reasons}"
        )
    k = fit.n_features
    selecting = np.zeros(k, dtype=bool)
    assert fit.probit is not None
    selecting[list(fit.probit.features)] = True
    candidates = np.zeros(k, dtype=bool)
    candidates[list(fit.spec.prediction)] = True
    return Bootstrap(
        n_boot=int(n_boot),
        unit=words,
        n_units=n_units,
        labels=tuple(fit.feature_names),
        estimates=estimates_of(fit),
        replicates=replicates,
        support=np.asarray(fit.support),
        candidates=candidates if fit.search is not None else np.asarray(fit.support),
        selecting=selecting,
        searched=fit.search is not None,
        caveats=tuple(search_notes(fit, "bootstrap")),
        weighing=_weighing(fit, rows, kept, grouped=codes is not None),
    )


def _weighing(fit: Fit, rows: ArrayRows, kept: NDArray[np.bool_], *, grouped: bool) -> str:
    """Say what the weights make of the rows that are drawn, or that groups hold."""
    if rows.weight is None:
        return ""
    n = int(np.count_nonzero(kept))
    said = weighing(fit.spec.weight_kind, n, float(np.sum(np.asarray(rows.weight)[kept])))
    return f" ({n:,} rows{said})" if grouped and said else said


def _units(fit: Fit, X: Any, unit: Any) -> tuple[Any, Any, str]:
    """Return X without a column that only says the groups, the groups, and words for them."""
    if unit is None and not isinstance(X, RowSource):
        unit = groups_of(fit, X, None, "unit")
    if unit is None or (isinstance(unit, str) and unit == "row"):
        return X, None, "rows"
    if not isinstance(unit, str):
        return X, unit, "groups"
    words = f"groups of {quoted(unit)}"
    if fit.origin.design is not None:
        return X, unit, words
    frame = nw.from_native(as_table(X), eager_only=True, pass_through=True)
    columns = list(frame.columns) if isinstance(frame, nw.DataFrame) else []
    if unit not in columns:
        raise UnknownFeatureError(
            "unit must be 'row', a column of X or an entry for each row; X has no column "
            f"{quoted(unit)}" + nearest(unit, [str(one) for one in columns])
        )
    groups = entries(frame[unit].to_native(), "unit")
    if unit not in (fit.spec.columns.names or columns):
        return frame.drop(unit).to_native(), groups, words
    return X, groups, words

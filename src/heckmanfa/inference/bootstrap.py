"""The bootstrap, search included: how often each feature is chosen, and honest intervals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_numbers import entries
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.group_cells import group_codes
from heckmanfa.data.random_state import generator
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.rows import ArrayRows, held
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.fit.family import BOTH, Equation
from heckmanfa.inference.replicates import (
    Plan,
    Refit,
    Replicates,
    count_facts,
    count_text,
    estimates_of,
    run,
)
from heckmanfa.inference.rows_of_fit import groups_of, read_fit_rows, take_column
from heckmanfa.results.distribution import check_level
from heckmanfa.results.document import Section
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import Fact, Level
from heckmanfa.results.reports import Report
from heckmanfa.results.search_facts import search_notes
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import weighing

_SHOWN = 10


@dataclass(frozen=True, repr=False, eq=False)
class Bootstrap(Report):
    """Estimates of a model over resampled data, the search for its features included."""

    n_boot: int
    """replicates asked for"""
    unit: str
    """what was resampled, in words"""
    n_units: int
    columns: FittedColumns
    """the columns of X, and how they become the K columns of the model"""
    estimates: Floats
    """of the fit, ordered as `Replicates.estimates`"""
    replicates: Replicates
    support: NDArray[np.bool_]
    """(K,) prediction features of the fit"""
    candidates: NDArray[np.bool_]
    """(K,) columns that may predict"""
    selecting: NDArray[np.bool_]
    """(K,) columns of the selection equation"""
    searched: bool
    """whether features were searched for"""
    averaged: bool
    """whether the estimates are averages over assignments"""
    caveats: tuple[str, ...]
    """caveats about these estimates, as sentences"""
    weighing: str = ""
    """how weights count what was resampled, in words"""
    error_terms: tuple[str, ...] = ("imr", "rho", "sigma")
    """what is estimated of the errors"""
    equations: tuple[Equation, ...] = BOTH
    """of the model, in the order of the estimates"""

    @property
    def n_failed(self) -> int:
        """Replicates without estimates."""
        return sum(self.replicates.failures.values())

    def tidy(self, conf_level: float = 0.95) -> pd.DataFrame:
        """Return intervals for every coefficient, and how often each feature was chosen.

        Returns
        -------
        DataFrame
            Columns equation and term as in `Heckman.tidy`; estimate of the fit; std_error over
            the replicates; chosen, the share of replicates whose prediction equation has the
            feature (in an average: with a BIC share of at least one half); percentile_low and
            percentile_high of the coefficient, which is zero if not chosen; basic_low and
            basic_high, twice the estimate less those in reverse;
            chosen_low and chosen_high, percentiles over the replicates in which it was chosen.
        """
        check_level(conf_level)
        tail = np.array([0.5 - conf_level / 2.0, 0.5 + conf_level / 2.0])
        values, support = self.replicates.estimates, self.replicates.support
        terms = self._terms()
        positions = [i for *_, i, _ in terms]
        table = pd.DataFrame([term[:2] for term in terms], columns=["equation", "term"])
        estimate = self.estimates[positions]
        table["estimate"] = estimate
        # A rho that is held does not vary, to the last digit.
        table["std_error"] = np.std(values[:, positions] - estimate, axis=0, ddof=1)
        share = np.append(support.mean(axis=0), np.nan)
        table["chosen"] = [share[-1 if column is None else column] for *_, column in terms]
        low, high = np.quantile(values[:, positions], tail, axis=0)
        table["percentile_low"], table["percentile_high"] = low, high
        table["basic_low"], table["basic_high"] = 2.0 * estimate - high, 2.0 * estimate - low
        if_chosen = np.full((len(terms), 2), np.nan)
        for row, (*_, i, column) in enumerate(terms):
            if column is not None and support[:, column].any():
                if_chosen[row] = np.quantile(values[support[:, column], i], tail)
        table["chosen_low"], table["chosen_high"] = if_chosen.T
        return table

    def assignments(self) -> pd.DataFrame:
        """Return the assignments chosen, the most frequent first: features, count, share."""
        support = self.replicates.support
        counted = Counter(tuple(np.flatnonzero(row).tolist()) for row in support)
        rows = [
            {
                "features": tuple(self.columns.names_of(columns)),
                "count": count,
                "share": count / len(support),
            }
            for columns, count in sorted(
                counted.items(), key=lambda item: (-item[1], len(item[0]), item[0])
            )
        ]
        return pd.DataFrame(rows, columns=["features", "count", "share"])

    def to_frame(self) -> pd.DataFrame:
        """Return the estimates of each replicate that succeeded, one column per term."""
        terms = self._terms()
        columns = pd.MultiIndex.from_tuples(
            [(equation, term) for equation, term, *_ in terms], names=["equation", "term"]
        )
        values = self.replicates.estimates[:, [i for *_, i, _ in terms]]
        return pd.DataFrame(values, columns=columns)

    def vcov(self) -> pd.DataFrame:
        """Return the covariance of the estimates over the replicates."""
        return self.to_frame().cov()

    def _terms(self) -> list[tuple[str, str, int, int | None]]:
        """Return equation, term, position in the estimates, and column of X if it may predict."""
        k = len(self.support)
        names = [f"x{name}" if isinstance(name, int) else name for name in self.columns.each_name()]
        terms: list[tuple[str, str, int, int | None]] = []
        for place, equation in enumerate(self.equations):
            first, predicts = place * (k + 1), equation.columns == "prediction"
            terms.append((equation.name, equation.constant, first, None))
            if equation.columns == "none":
                continue
            for column in np.flatnonzero(self.candidates if predicts else self.selecting).tolist():
                chosen = column if predicts else None
                terms.append((equation.name, names[column], first + 1 + column, chosen))
        first = len(self.equations) * (k + 1)
        terms += [("errors", term, first + i, None) for i, term in enumerate(self.error_terms)]
        return terms

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        facts = [
            ("Replicates", f"{self.n_boot - self.n_failed:,} of {self.n_boot:,} succeeded"),
            ("Resampled", f"{self.n_units:,} {self.unit}{self.weighing}"),
            *count_facts("Failed", self.replicates.failures),
            *count_facts("With a warning", self.replicates.warnings),
        ]
        table = self.tidy()
        if self.searched or self.averaged:
            # Both are about the prediction equation; the other one is in `tidy`.
            table = table[table["equation"] != "selection"]
        if not self.searched:
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

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        many = self.n_failed > 0.05 * self.n_boot
        facts = [
            tell(
                None,
                "bootstrap",
                "caution" if many else "ok",
                f"{self.n_boot - self.n_failed:,} of {self.n_boot:,} replicates succeeded",
                short=f"{self.n_failed:,} of {self.n_boot:,}",
            )
        ]
        if self.searched:
            share = float(np.mean((self.replicates.support == self.support).all(axis=1)))
            value = f"the features chosen came up in {100 * share:.3g}% of replicates"
            level: Level = "ok" if share >= 0.5 else "caution"
            facts.append(tell(None, "bootstrap_search", level, value))
        return facts

    def _notes(self) -> list[str]:
        notes = []
        if self.searched:
            notes.append(
                "Every replicate repeats the search. A coefficient counts as zero if its "
                "feature was not chosen; the last two columns are about the replicates in which "
                "it was."
            )
            notes.append(
                "After a search, use the percentile intervals: in simulations the basic ones, and "
                "those given that a feature was chosen, seldom cover a weak coefficient."
            )
        if self.averaged:
            notes.append("Every replicate weighs all assignments again.")
        notes += self.caveats
        if self.n_failed:
            share = self.n_failed / self.n_boot
            notes.append(
                f"{100 * share:.2g}% of the replicates failed. The intervals describe the others, "
                "and may be too short."
            )
            if self.columns.encoding is not None and self.columns.encoding.levels:
                notes.append(
                    "A replicate fails if it draws no rows of a level of a category, or only "
                    "selected or only unselected ones: its dummy then has no estimate. Merge rare "
                    "levels."
                )
        return notes


def bootstrap(
    fit: Fit,
    refit: Refit,
    passed: PassedRows,
    *,
    n_boot: int,
    unit: Any,
    random_state: Any,
    n_jobs: int | None,
    verbose: int,
) -> Bootstrap:
    """Resample the rows of a fit and fit again; see `Heckman.bootstrap`."""
    if not isinstance(n_boot, Integral) or n_boot < 2:
        raise InputError(f"n_boot must be an integer of at least 2; got {quoted(n_boot)}")
    if fit.spec.survey is not None:
        raise InputError(
            "a bootstrap draws rows or groups alike, and a survey drew units in its strata: use "
            "its replicate weights (replicate_weights of Survey), which its producer made by the "
            "design"
        )
    match_rows({"X": passed.X, "unit": unit})
    X, groups, words = group_units(fit, passed.X, unit)
    read = read_fit_rows(fit, passed._replace(X=X))
    rows = held(read.sample.rows, "a bootstrap")
    codes, n_units = None, int(np.count_nonzero(rows.used))
    if groups is not None:
        if read.design is not None:
            groups = read.design.rows_of(X, groups, "unit")
        codes, n_units = group_codes(groups, rows.used, "unit")
        if n_units < 2:
            raise InputError(f"unit: {words} has one group in these rows; it needs two or more")
    plan = Plan(refit, read.sample, codes, n_units, fit.dropped)
    entropy = generator(random_state).integers(2**63, size=4).tolist()
    replicates = run(plan, np.random.SeedSequence(entropy), int(n_boot), n_jobs, verbose)
    if len(replicates.estimates) < 2:
        raise InputError(
            f"{len(replicates.estimates)} of {n_boot} replicates could be fitted, too few to say "
            f"anything. {count_text(replicates.failures)}"
        )
    searched, averaged = fit.search is not None, fit.way.is_average
    candidates = fit.spec.prediction if searched or averaged else fit.features
    return Bootstrap(
        n_boot=int(n_boot),
        unit=words,
        n_units=n_units,
        columns=fit.spec.columns,
        estimates=estimates_of(fit),
        replicates=replicates,
        support=np.asarray(fit.support),
        candidates=np.isin(range(fit.n_features), candidates),
        selecting=np.isin(range(fit.n_features), read.probit.features),
        searched=searched,
        averaged=averaged,
        caveats=tuple(search_notes(fit, "bootstrap")),
        weighing=_weighing(fit, rows, grouped=codes is not None),
        error_terms=fit.spec.error_terms,
        equations=fit.family.equations,
    )


def _weighing(fit: Fit, rows: ArrayRows, *, grouped: bool) -> str:
    """Say how the weights count the rows that are drawn, or the rows of the groups."""
    if rows.weight is None:
        return ""
    n = int(np.count_nonzero(rows.used))
    total = float(np.sum(np.asarray(rows.weight)[rows.used]))
    phrase = weighing(fit.spec.weight_kind, n, total)
    return f" ({n:,} rows{phrase})" if grouped and phrase else phrase


def group_units(fit: Fit, X: Any, unit: Any, what: str = "unit") -> tuple[Any, Any, str]:
    """Return X without a column that holds only the groups, the groups, and words for them."""
    if unit is None and not isinstance(X, RowSource):
        unit = groups_of(fit, X, None, what)
    if unit is None or (isinstance(unit, str) and unit == "row"):
        return X, None, "rows"
    if not isinstance(unit, str):
        return X, unit, "groups"
    words = f"groups of {quoted(unit)}"
    if fit.origin.design is not None:
        return X, unit, words
    X, groups = take_column(fit, X, unit, what, "'row', a column of X")
    return X, entries(groups, what), words

"""Features kept out of the prediction equation, and which of them the data show to drive selection.

A feature in the selection equation alone need not drive selection: its coefficient there may be
zero. A feature *drives selection* if the test that its selection coefficient is zero rejects at
5%; columns that belong together, such as the dummies of one category, are tested jointly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heckmanfa.data.columns.features import FeatureTable, resolve
from heckmanfa.fit import Fit
from heckmanfa.results.diagnostics import STRONG_CHI2, Diagnostics
from heckmanfa.results.distribution import (
    LEVEL,
)
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import UNTESTED, Fact, Level
from heckmanfa.results.fit_tests import selection_test
from heckmanfa.text.chances import BY
from heckmanfa.text.labels import said, said_all
from heckmanfa.text.option_words import instead
from heckmanfa.text.wording import listed, number, p_equals, plural

_PROFILE = instead(
    " See profile() for intervals of slopes, which cover better than standard errors.", ""
)


@dataclass(frozen=True)
class Exclusions:
    """The features of the selection equation that are not in the prediction equation."""

    features: tuple[Any, ...] = ()
    """names (or positions), in the order of X"""
    driving: tuple[Any, ...] = ()
    """those with evidence that they drive selection"""
    without_evidence: tuple[Any, ...] = ()
    """those that were tested, and have no such evidence"""
    not_tested: tuple[Any, ...] = ()
    """those that could not be tested"""
    why_not: str = ""
    """why they could not"""

    def words(self) -> str:
        """Say which of them drive selection, in whole sentences."""
        driving, others, unknown = map(
            _drive, (self.driving, self.without_evidence, self.not_tested)
        )
        parts = []
        if self.driving:
            do = "does" if len(self.without_evidence) == 1 else "do"
            names = listed([said(str(name)) for name in self.without_evidence])
            rest = f"; there is no evidence that {names} {do}" if names else ""
            parts.append(f"At {100 * LEVEL:g}%, {driving} selection{rest}.")
        elif self.without_evidence:
            if not self.not_tested:
                others = "it drives" if len(self.features) == 1 else "any of them drives"
            parts.append(f"At {100 * LEVEL:g}%, there is no evidence that {others} selection.")
        if self.not_tested:
            if not parts:
                unknown = "it drives" if len(self.features) == 1 else "they drive"
            parts.append(f"Whether {unknown} selection was not tested: {self.why_not}.")
        return " ".join(parts)


def _drive(features: Sequence[Any]) -> str:
    names = [said(str(name)) for name in features]
    return f"{listed(names)} {'drives' if len(names) == 1 else 'drive'}"


def find_exclusions(fit: Fit, groups: Iterable[Sequence[Any]] | None = None) -> Exclusions:
    """Test which features outside the prediction equation drive selection.

    ``groups`` holds names of columns that are tested jointly: by default the terms of the
    selection formula or the ``feature_groups`` of a search.
    """
    if fit.probit is None:
        return Exclusions()
    columns = [column for column in fit.driving if not fit.support[column]]
    together = _columns_together(fit, groups)
    driving: set[int] = set()
    unknown: dict[int, str] = {}
    for unit in {
        tuple(sorted({*together.get(column, (column,))} & {*columns})) for column in columns
    }:
        test = selection_test(fit, unit)
        if test.note:
            unknown |= dict.fromkeys(unit, test.note)
        elif test.p_value < LEVEL:
            driving.update(unit)
    tested = [column for column in columns if column not in unknown]
    names_of = fit.spec.feature_names
    return Exclusions(
        tuple(names_of(columns)),
        tuple(names_of([column for column in tested if column in driving])),
        tuple(names_of([column for column in tested if column not in driving])),
        tuple(names_of([column for column in columns if column in unknown])),
        "; ".join(dict.fromkeys(unknown[column] for column in columns if column in unknown)),
    )


def _columns_together(
    fit: Fit, groups: Iterable[Sequence[Any]] | None
) -> dict[int, tuple[int, ...]]:
    """Return the columns that each column is tested with, by position."""
    units = fit.spec.groups
    if groups is not None:
        table = FeatureTable.without_rows(fit.spec.columns)
        units = tuple(tuple(resolve(table, list(group), "groups")) for group in groups)
    return {column: unit for unit in units for column in unit}


def exclusion_fact(fit: Fit, measured: Diagnostics, exclusions: Exclusions | None = None) -> Fact:
    """Say whether there are excluded features, and how strongly they drive selection.

    An average excludes none: those with less than half of the weight are judged in their place.
    """
    averaged, test = measured.averaged, measured.excluded_wald
    which = "features with less than half of the weight" if averaged else "exclusions"
    values: dict[str, Any] = {
        "excluded": f"The {which}",
        "excluded_inside": f"the {which}",
        "kept_out": "" if averaged else _kept_out(exclusions or find_exclusions(fit)),
    }
    name = f"selection features with a {BY} share below 50%" if averaged else ""
    if fit.held_rho is not None:
        value = str(len(measured.excluded_features) or "none")
        return tell(fit, "exclusions", "ok", value, case="held", name=name, **values)
    if test is None:
        # The chance of the correction allows for what little identifies it.
        level: Level = "caution" if averaged else "problem"
        case = "none, averaged" if averaged else "none"
        return tell(fit, "exclusions", level, "none", case=case, name=name, **values)
    names, n = said_all(measured.excluded_features), measured.n_excluded
    single, strong, case = len(names) == 1, not measured.weak_exclusions, ""
    short, size = str(test), f"chi2 {number(test.chi2, 3)} for {plural(n, 'coefficient')}"
    drives = "It drives selection" if single else "For their number they drive selection"
    valid = ", and may predict"
    if strong:
        drives = "It drives" if single else "Together they drive"
    if strong and not averaged:
        does = "it does" if single else "they do"
        valid = f". That {does} not predict cannot be tested here"
    if test.note:
        case = UNTESTED
    elif not strong:
        case = "" if test.p_value < LEVEL else "undriving"
        features = "one feature" if single else f"{n} features"
        features = f"{n} coefficients" if n > len(names) else features
        would = f"{STRONG_CHI2 * n:,g} would be strong"
        short = f"chi2 = {number(test.chi2, 3)} for {features}; {would}"
    # That line says why a covariance from few clusters tests little.
    see = measured.n_clusters is not None and test.lacks_clusters
    return tell(
        fit,
        "exclusions",
        "ok" if strong else "caution",
        f"{len(names)} ({', '.join(names)}); {test}",
        case=case,
        name=name,
        short=short,
        drive="it drives" if single else "they drive",
        drives=drives,
        valid=valid,
        see=": see the line on clusters" if see else "",
        profile=_PROFILE if measured.rho_lr is not None and not strong else "",
        size=size,
        p=p_equals(test.p_value),
        note=test.note,
        **values,
    )


def _kept_out(exclusions: Exclusions) -> str:
    if not exclusions.features:
        return ""
    names = ", ".join(said(str(name)) for name in exclusions.features)
    words = exclusions.words()
    return f"Only in the selection equation (excluded from prediction): {names}. {words}"

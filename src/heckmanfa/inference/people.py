"""What a fitted model expects of typical rows and of rows that a user describes.

Expectations and their intervals are those of `Heckman.predict`, `HeckmanProbit.predict_proba` and
`predict_selection`. A row that a user describes takes what is not named from the medoid of all rows
or, of rows that are not in memory, from their averages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.matrix import to_pandas
from heckmanfa.data.outcomes import OutcomeTransform
from heckmanfa.data.rows import Rows, held
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.fit import Fit
from heckmanfa.inference import prediction
from heckmanfa.inference.class_probabilities import predict_classes
from heckmanfa.inference.expectations import is_known
from heckmanfa.inference.probabilities import predict_with_limits
from heckmanfa.inference.selection_moves import Product, means_of
from heckmanfa.inference.typical_rows import SomeRows
from heckmanfa.plots.people_intervals import Expected, People, Person, Quantity
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence
from heckmanfa.results.naming import Naming, said_class
from heckmanfa.text.labels import said, said_level, switch_levels, with_unit
from heckmanfa.text.option_words import option
from heckmanfa.text.passage import Name, passage
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import nearest, number, true_minus

Profiles = Sequence[Mapping[str, Any]]
"""rows that a user describes: values by column"""

_MOST_FEATURES = 6
_DIGITS = 3
_LISTED = 12
_KINDS: dict[Quantity, Literal["marginal", "selected", "unselected"]] = {
    "anyone": "marginal",
    "selected": "selected",
    "unselected": "unselected",
}


@dataclass(frozen=True, eq=False)
class PeopleRows:
    """The rows that people are taken from."""

    rows: Rows
    X: Any
    """as it was passed to the fit"""
    design: FormulaDesign | None
    products: Sequence[Product]
    """columns that are products of others"""


def people_of(evidence: Evidence, source: PeopleRows, profiles: Profiles = ()) -> People | None:
    """Return what the model expects of typical rows and of those described.

    None if the model has no single outcome, or if no row is in memory and none is described.
    """
    fit = evidence.fit
    if not fit.family.can("single outcome equation"):
        return None
    found = Finder(evidence, source)
    people = found.described(profiles) if profiles else found.typical()
    if not people:
        return None
    outcome = fit.origin.outcome or evidence.outcome
    measured, target = outcome, evidence.words.target
    if found.log is not None and found.are_amounts:
        measured, target = found.log.of, passage(Name(found.log.of))
    about, classes = found.about(described=bool(profiles)), fit.family.has_classes
    sure = evidence.judgement.kind == "yes"
    return People(outcome, measured, str(target), tuple(people), classes, about, sure)


class Finder:
    """Finds rows, and what the model expects of them."""

    def __init__(self, evidence: Evidence, source: PeopleRows) -> None:
        self.evidence, self.source = evidence, source
        fit = evidence.fit
        selecting = [] if fit.probit is None else [int(column) for column in fit.probit.features]
        self.columns = sorted({*fit.equation, *selecting})
        self.naming: Naming = evidence.naming
        self.log = evidence.words.log
        self.fit = of_numbers(fit)
        stated = self.log is not None and fit.spec.outcome_transform is None
        if self.log is not None and stated and fit.sigma_covariance is not None:
            # Its user says that the outcome holds logarithms, which amounts undo.
            transform: OutcomeTransform = "log1p" if self.log.plus_one else "log"
            self.fit = replace(self.fit, spec=replace(self.fit.spec, outcome_transform=transform))
        self.some: SomeRows | None = None
        if source.rows.in_memory:
            whole = source.design is not None
            some = SomeRows.read(source.rows, self.naming, self.columns, whole=whole)
            self.some = some if some.known.any() else None

    @property
    def are_amounts(self) -> bool:
        """Whether a logarithm is undone."""
        return self.fit.spec.outcome_transform is not None

    # Typical rows. ----------------------------------------------------------------------------

    def typical(self) -> list[Person]:
        """Return the medoids of halves of the rows with an outcome, and of the others."""
        some, fit = self.some, self.evidence.fit
        if some is None:
            return []
        expected = fit.level + some.features @ fit.coef
        some = some.seen_by([expected, self._index(some.features)])
        people: list[tuple[Floats, Person]] = []
        shown = self._that_matter()
        first, second = self._groups()
        groups: tuple[tuple[Literal["selected", "unselected"], str, Any], ...] = (
            ("selected", first, some.selected & some.known),
            ("unselected", second, ~some.selected & some.known),
        )
        for kind, name, group in groups:
            if not group.any():
                continue
            halves = some.halves(group, expected)
            ends = ("",) if len(halves) == 1 else ("lower half", "higher half")
            for half, end in zip(halves, ends, strict=True):
                row = some.features[some.medoid(half)]
                features = tuple((name, self._value(row, name)) for name in shown)
                people.append((row, Person(name, end, kind, features, {})))
        return self._with_expectations(people)

    def _groups(self) -> tuple[str, str]:
        """Name the rows that are selected, and the others."""
        outcome = said(self.evidence.fit.origin.outcome or self.evidence.outcome)
        return f"with {outcome}", f"without {outcome}"

    def _index(self, features: Floats) -> Floats:
        """Return the index of the selection equation; zero without one."""
        fit = self.evidence.fit
        if fit.probit is None:
            return np.zeros(len(features))
        return np.asarray(fit.selection_intercept + features @ fit.selection_coef)

    def _that_matter(self) -> list[str]:
        """Name the features that predict clearly, then those that clearly drive selection."""
        ordered = self.evidence.ordered()
        known = {self.naming.sources[column] for column in self.columns}
        chosen = {*self.evidence.fit.features} if self.evidence.way.is_one_fit else set()

        def predicts(feature: FeatureEvidence) -> bool:
            sure = feature.chance is None or feature.chance >= 0.9
            return bool({*feature.columns} & chosen) or (feature.chance is not None and sure)

        first = [feature for feature in ordered if predicts(feature)]
        driving = [feature for feature in ordered if feature.drives_selection]
        driving.sort(key=lambda feature: feature.selection_p)
        names = dict.fromkeys(
            self.naming.sources[feature.columns[0]] for feature in [*first, *driving, *ordered[:3]]
        )
        # What follows from others tells nothing more.
        known -= {self.naming.sources[product.column] for product in self.source.products}
        return [name for name in names if name in known][:_MOST_FEATURES]

    def _value(self, row: Floats, name: str) -> str:
        """Write what a row holds in a column, rounded and with its unit; of a category, a level."""
        naming = self.naming
        columns = [column for column in self.columns if naming.sources[column] == name]
        first = columns[0]
        if naming.levels[first]:
            held_levels = [naming.levels[column] for column in columns if row[column] > 0.5]
            level = held_levels[0] if held_levels else naming.references[first]
            return said_level(name, level, 30) if level else "another"
        if first in naming.switches and row[first] in (0.0, 1.0):
            return switch_levels(name)[0 if row[first] else 1]
        return with_unit(_rounded(float(row[first])), name)

    # Described rows. --------------------------------------------------------------------------

    def described(self, profiles: Profiles) -> list[Person]:
        """Return rows that a user describes."""
        people: list[tuple[Floats, Person]] = []
        for place, profile in enumerate(profiles, 1):
            if not profile:
                raise InputError(
                    f"{option('profile')} {place} is empty: name columns and their values, as in "
                    "educ=16,kids5=2"
                )
            row = self._row_of(profile)
            features = tuple((str(name), self._told(str(name), profile[name])) for name in profile)
            name = f"profile {place}" if len(profiles) > 1 else "profile"
            beyond = self._beyond(profile, row)
            people.append((row, Person("", name, "profile", features, {}, beyond)))
        return self._with_expectations(people)

    def _told(self, name: str, value: Any) -> str:
        """Write a value that a user gave."""
        columns = [column for column in self.columns if self.naming.sources[column] == name]
        if not columns or self.naming.levels[columns[0]]:
            return said_level(name, label_of(value), 30)
        if columns[0] in self.naming.switches and float(value) in (0.0, 1.0):
            return switch_levels(name)[0 if float(value) else 1]
        return with_unit(_rounded(float(value)), name)

    def _row_of(self, profile: Mapping[str, Any]) -> Floats:
        """Return the features of a described row."""
        if self.source.design is not None:
            return self._row_of_formulas(profile)
        row = self._usual()
        for name, value in profile.items():
            self._set(row, str(name), value)
        for product in self.source.products:
            moved = any(self.naming.sources[factor] in profile for factor in product.factors)
            if moved and self.naming.sources[product.column] not in profile:
                row[product.column] = math.prod(row[factor] for factor in product.factors)
        return row

    def _usual(self) -> Floats:
        """Return the medoid of all rows; of rows that are not in memory, their averages."""
        if self.some is not None:
            return np.array(self.some.features[self.some.medoid(self.some.known)])
        row = np.zeros(len(self.naming.sources))
        row[self.columns] = means_of(self.source.rows, self.columns).overall
        return row

    def _set(self, row: Floats, name: str, value: Any) -> None:
        """Put a value into a row."""
        naming = self.naming
        columns = [column for column in self.columns if naming.sources[column] == name]
        if not columns:
            known = list(dict.fromkeys(naming.sources[column] for column in self.columns))
            raise UnknownFeatureError(
                f"{option('profile')}: the model has no feature {quoted(name)}"
                f"{nearest(name, known) or f'; it has {quoted_list(known, _LISTED)}'}"
            )
        if naming.levels[columns[0]]:
            reference = naming.references[columns[0]]
            levels = [naming.levels[column] for column in columns]
            level = profile_level(name, value, [*([reference] if reference else []), *levels])
            row[columns] = [float(own == level) for own in levels]
            return
        row[columns[0]] = profile_number(name, value)

    def _row_of_formulas(self, profile: Mapping[str, Any]) -> Floats:
        """Return the columns that formulas make of a described row of their data frame."""
        design, some, fit = self.source.design, self.some, self.evidence.fit
        assert design is not None
        if some is None or design.kept is None:
            raise InputError(f"{option('profile')} needs the rows of the fit, in memory")
        frame = to_pandas(self.source.X)
        used = np.flatnonzero(design.kept)[held(self.source.rows, "a profile").used]
        row = frame.iloc[[int(used[some.medoid(some.known)])]].copy()
        known = [str(name) for name in design.variables([str(name) for name in frame.columns])]
        for name, value in profile.items():
            if name not in known:
                raise UnknownFeatureError(
                    f"{option('profile')}: the formulas have no variable {quoted(str(name))}"
                    f"{nearest(str(name), known) or f'; they have {quoted_list(known, _LISTED)}'}"
                )
            if pd.api.types.is_numeric_dtype(frame[name]):
                row[name] = profile_number(str(name), value)
            else:
                row[name] = pd.Series([value], row.index, dtype=frame[name].dtype)
        table = prediction.read_rows(fit, row, prediction=True, selection=True)
        columns = list(range(len(self.naming.sources)))
        values: Floats = np.array(table.source(columns).take(0, 1, columns), dtype=np.float64)
        return np.asarray(values[0])

    def _beyond(self, profile: Mapping[str, Any], row: Floats) -> tuple[str, ...]:
        """Say which values lie outside those of the rows of the fit."""
        some, naming, said_so = self.some, self.naming, []
        if some is None:
            return ()
        for column in self.columns:
            name = naming.sources[column]
            if name not in profile or naming.levels[column]:
                continue
            values = some.features[some.known, column]
            low, high = float(values.min()), float(values.max())
            if not low <= row[column] <= high:
                ends = f"{_rounded(low)} to {_rounded(high)}"
                said_so.append(
                    f"{said(name)} {_rounded(float(row[column]))} is beyond the rows of the fit "
                    f"({ends}), so this is extrapolated."
                )
        return tuple(said_so)

    # Expectations. ----------------------------------------------------------------------------

    def _with_expectations(self, people: Sequence[tuple[Floats, Person]]) -> list[Person]:
        """Give people what the model expects of their rows, with 95% intervals."""
        if not people:
            return []
        X: Any = np.array([row for row, _ in people])
        if self.fit.spec.columns.names is not None:
            X = pd.DataFrame(X, columns=list(self.fit.spec.columns.encoded_labels))
        numbers, by_class = self._numbers(X), self._by_class(X)
        return [
            replace(
                person,
                classes=by_class[place],
                expected={
                    quantity: Expected(float(values[place]), *map(float, ends[place]))
                    for quantity, (values, ends) in numbers.items()
                },
            )
            for place, (_, person) in enumerate(people)
        ]

    def _numbers(self, X: Any) -> dict[Quantity, tuple[Floats, Floats]]:
        """Return what is expected of rows, with its intervals."""
        fit = self.fit
        numbers: dict[Quantity, tuple[Floats, Floats]] = {}
        for quantity, kind in _KINDS.items():
            if (kind != "marginal" and fit.probit is None) or not is_known(fit, kind):
                continue
            if fit.family.has_classes:
                _, *found = predict_with_limits(fit, X, kind, "error", CONF_LEVEL)
            else:
                found = prediction.predict(fit, X, kind, "confidence", CONF_LEVEL, "error")
            numbers[quantity] = found[0], found[1]
        if fit.probit is not None:
            numbers["selection"] = prediction.predict_selection(
                fit, X, "error", return_interval="confidence", conf_level=CONF_LEVEL
            )
        return numbers

    def _by_class(self, X: Any) -> list[tuple[tuple[str, float], ...]]:
        """Return the probability of each class of an ordered outcome for anyone like each row."""
        whole, outcome = self.evidence.whole, self.evidence.outcome
        if whole.ordered_classes is None:
            return [()] * len(X)
        names = [said_class(outcome, label) for label in whole.ordered_classes]
        shares = np.exp(np.asarray(predict_classes(of_numbers(whole), X, "marginal", "error")))
        return [tuple(zip(names, map(float, row), strict=True)) for row in shares]

    def about(self, *, described: bool) -> str:
        """Say what rows these are, and how to read what is expected of them."""
        outcome = said(self.evidence.fit.origin.outcome or self.evidence.outcome)
        corrected = self.evidence.fit.probit is not None
        sentences = []
        if not described:
            groups = f"the rows with {outcome} and of those without" if corrected else "the rows"
            sentences.append(
                f"Each is the typical row of a half of {groups}, halved at the median of what is "
                "expected: the row nearest to its averages. Values are rounded."
            )
        else:
            at = "the typical row" if self.some is not None else "the average"
            sentences.append(f"What is not named is as in {at} of all rows.")
        sentences.append("Lines are 95% intervals of the expectation, not of single outcomes.")
        if self.log is not None and self.are_amounts:
            sentences.append(f"Amounts are means of {said(self.log.of)}, not of its logarithm.")
        elif self.log is not None:
            sentences.append(f"{outcome} is a logarithm, and so is what is expected.")
        if not is_known(self.fit, "marginal"):
            sentences.append(
                "What is expected of anyone, selected or not, needs the intercept, which a series "
                f"does not identify; {option('intercept', 'at infinity')} does."
            )
        if self.evidence.judgement.doubt:
            sentences.append(f"Read with care: {self.evidence.judgement.doubt}.")
        return " ".join(sentences)


def profile_level(name: str, value: Any, known: Sequence[str]) -> str:
    """Read a level of a category that a profile names."""
    level = label_of(value)
    if level not in known:
        raise InputError(
            f"{option('profile')}: {quoted(name)} has no level {quoted(level)} in the fit"
            f"{nearest(level, known) or f'; it has {quoted_list(known, _LISTED)}'}"
        )
    return level


def profile_number(name: str, value: Any) -> float:
    """Read a value of a column of numbers that a profile names."""
    try:
        number_given = float(value)
    except (TypeError, ValueError):
        number_given = math.nan
    if not math.isfinite(number_given):
        raise InputError(
            f"{option('profile')}: {quoted(name)} is a number; got {quoted(label_of(value))}"
        )
    return number_given


def _rounded(value: float) -> str:
    """Write a value with a few digits; integers in full."""
    if value.is_integer() and abs(value) < 1e6:
        return true_minus(f"{value:,.0f}")
    text = number(value, _DIGITS)
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return true_minus(text)


def of_numbers(fit: Fit) -> Fit:
    """Return a fit that takes its K columns, which are numbers."""
    columns, search = fit.spec.columns.encoded(), fit.search
    if search is not None and search.halves is not None:
        search = replace(search, halves=replace(search.halves, columns=columns))
    origin = replace(fit.origin, design=None)
    return replace(fit, spec=replace(fit.spec, columns=columns), search=search, origin=origin)

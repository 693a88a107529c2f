"""The report of tests of what a selection model assumes: names, results, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from heckmanfa.errors import InputError
from heckmanfa.results.document import Section
from heckmanfa.results.facts import UNTESTED, Fact, Level
from heckmanfa.results.reports import Report
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import number, p_equals


class About(NamedTuple):
    """Facts about a test that do not depend on the data."""

    title: str
    equation: str
    reference: str
    """who proposed it"""
    rejection: str
    """what a rejection means"""


_TESTS = {
    "normality_selection": About(
        "normality, selection",
        "selection",
        "Bera, Jarque and Lee (1984)",
        "the index's error is skewed or has other tails than a normal one, or the index has "
        "another form",
    ),
    "heteroskedasticity_selection": About(
        "equal variance, selection",
        "selection",
        "Davidson and MacKinnon (1984)",
        "the variance of the index's error depends on the selection features, or the index has "
        "another form",
    ),
    "normality_prediction": About(
        "normality, prediction",
        "prediction",
        "Newey (1985); Pagan and Vella (1989)",
        "the outcome's error is skewed or has other tails than a normal one; at the "
        "maximum-likelihood estimates",
    ),
    "correction_form": About(
        "form of the correction",
        "prediction",
        "Pagan and Vella (1989)",
        "the mean of the outcome's error among selected rows is not a multiple of the inverse "
        "Mills ratio",
    ),
    "reset": About(
        "RESET",
        "prediction",
        "Ramsey (1969)",
        "powers or products of the prediction features are missing from that equation",
    ),
}

_BINARY_TESTS = {
    "normality_selection": _TESTS["normality_selection"],
    "heteroskedasticity_selection": _TESTS["heteroskedasticity_selection"],
    "normality_prediction": About(
        "normality, prediction",
        "prediction",
        "Bera, Jarque and Lee (1984)",
        "the error behind the outcome is skewed or has other tails than a normal one, or powers or "
        "products of the prediction features are missing",
    ),
    "heteroskedasticity_prediction": About(
        "equal variance, prediction",
        "prediction",
        "Davidson and MacKinnon (1984)",
        "the variance of the error behind the outcome depends on the prediction features, or the "
        "equation has another form",
    ),
}


@dataclass(frozen=True)
class SpecificationTest:
    """One test: chi-squared under the model."""

    name: str
    statistic: float
    """NaN if it could not be computed"""
    df: int
    note: str = ""
    """why it could not be computed, or why it has fewer degrees of freedom than usual"""
    classes: bool = False
    """whether the outcome is binary"""

    @property
    def p_value(self) -> float:
        """Probability under the model of a statistic at least as large."""
        return float(stats.chi2.sf(self.statistic, self.df)) if self.df else float("nan")

    @property
    def about(self) -> About:
        """Facts about the test that do not depend on the data."""
        return (_BINARY_TESTS if self.classes else _TESTS)[self.name]

    @property
    def equation(self) -> str:
        """The equation tested: "selection" or "prediction"."""
        return self.about.equation

    @property
    def reference(self) -> str:
        """Who proposed it."""
        return self.about.reference

    @property
    def verdict(self) -> str:
        """The result in words, at 5%."""
        if np.isnan(self.p_value):
            return "not computed"
        return "rejected at 5%" if self.p_value < 0.05 else "not rejected"

    @property
    def result(self) -> str:
        """The statistic and its p-value, or why there is none."""
        if np.isnan(self.statistic):
            return f"not computed; {self.note}"
        return f"chi2({self.df}) = {number(self.statistic)}, {p_equals(self.p_value)}"

    def __str__(self) -> str:
        """Return the result as a line."""
        return f"{self.about.title}: {self.result}"


class AssumptionTests(Report):
    """Base of the tests of a fitted model's assumptions, by attribute or by name."""

    names: ClassVar[tuple[str, ...]]
    """the tests, in the order of the report"""
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> SpecificationTest:
        """Return a test by its name."""
        if name not in self.names:
            listed = ", ".join(self.names)
            raise InputError(f"there is no test {quoted(name)}; there are {listed}")
        test: SpecificationTest = getattr(self, name)
        return test

    def __iter__(self) -> Iterator[SpecificationTest]:
        """Iterate over the tests."""
        return (self[name] for name in self.names)

    def tidy(self) -> pd.DataFrame:
        """Return one row for each test.

        Returns
        -------
        DataFrame
            Columns test, equation ("selection" or "prediction"), statistic (chi-squared), df,
            p_value, reference, and note: why a test could not be computed, or has fewer degrees
            of freedom than usual.
        """
        names = ["equation", "statistic", "df", "p_value", "reference", "note"]
        return pd.DataFrame(
            [[test.name, *(getattr(test, name) for name in names)] for test in self],
            columns=["test", *names],
        )

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        rows, notes, meanings = [], [], []
        for test in self:
            title, _, reference, rejection = test.about
            rows.append((title, test.statistic, test.df, test.p_value, test.verdict))
            notes += [f"{title}: {test.note}."] if test.note else []
            meanings.append(f"{title}, by {reference}: {rejection}.")
        table = pd.DataFrame(rows, columns=["test", "chi2", "df", "p_value", "verdict"])
        return [
            Section("Specification tests", table=table, notes=(*notes, *self.notes)),
            Section("What a rejection means", notes=tuple(meanings)),
        ]

    def findings(self) -> list[Fact]:
        """Return its facts for the diagnostics of the model."""
        findings = []
        for test in self:
            flag: Level = "caution"
            case = ""
            if np.isnan(test.p_value):
                case, meaning = UNTESTED, "It could not be tested."
            elif test.p_value < 0.05:
                meaning = f"Rejected at 5%: {test.about.rejection}."
            else:
                flag, meaning = "ok", "Not rejected, which proves nothing."
            findings.append(
                Fact(test.name, flag, test.result, meaning, test.about.title, case=case)
            )
        return findings


@dataclass(frozen=True, repr=False, eq=False)
class SpecificationTests(AssumptionTests):
    """Tests of a fitted model's assumptions, by attribute or by name."""

    names: ClassVar[tuple[str, ...]] = tuple(_TESTS)
    normality_selection: SpecificationTest
    heteroskedasticity_selection: SpecificationTest
    normality_prediction: SpecificationTest
    correction_form: SpecificationTest
    reset: SpecificationTest
    notes: tuple[str, ...] = ()
    """notes on the tests for these data"""


@dataclass(frozen=True, repr=False, eq=False)
class BinarySpecificationTests(AssumptionTests):
    """Tests of the assumptions of a binary outcome's model, by attribute or by name."""

    names: ClassVar[tuple[str, ...]] = tuple(_BINARY_TESTS)
    normality_selection: SpecificationTest
    heteroskedasticity_selection: SpecificationTest
    normality_prediction: SpecificationTest
    heteroskedasticity_prediction: SpecificationTest
    notes: tuple[str, ...] = ()
    """notes on the tests for these data"""

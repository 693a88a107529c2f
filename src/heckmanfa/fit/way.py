"""The way in which the prediction features of a fit, and their estimates, came about: a `Way`.

Outputs read `Fit.way` and render what it says: which columns the equation has, what could be
chosen, in which window of rho, what a feature's share is called. None of them asks which kind of
fit it has. What only some ways have (`averaging`, `halves`, `choices`) is refused by the others;
`is_average`, `halves_rows` and `searched` say who has it. Words that differ by way are in
`WayWords`, one table for all outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from heckmanfa.errors import NotSearchedError
from heckmanfa.search.averaging.result import PROBABLE, AverageOutcome
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form
from heckmanfa.search.searched import HonestSplits, SearchOutcome
from heckmanfa.text.chances import CHANCES_BY

WayName = Literal["observed", "given", "chosen", "honest", "average"]
"""with no outcome missing; of features named beforehand, chosen in the same rows, or chosen in one
half of the rows and estimated in the other; averaged over assignments"""


@dataclass(frozen=True)
class WayWords:
    """How outputs speak of a way."""

    title: str = ""
    """what the title of a summary adds"""
    of_search: str = ""
    """what an interval does about the search, after it"""
    share: str = "chance"
    """what the share of a feature is called, above a column"""
    label: str = "this model"
    """a label for the estimates beside others"""
    note: str = ""
    """how they were made, beside the label"""
    shown: str = "this model"
    """the set of features whose coefficients are shown over rho"""
    verb: str = "is"
    """between the name of an estimate and its value"""
    predict: str = "Predict"
    """label of the columns of the prediction equation"""
    guarded: str = ""
    """where the guards of a likelihood were computed, after their value"""
    each: str = ""
    """of which models an equation holds, after it"""
    series: str = "this model"
    """the estimates in a legend"""
    alike: str = "same features"
    """the naive estimates in that legend, after their name"""
    estimates: str = "Estimates with 95% intervals."
    """what estimates and intervals are, in a caption"""
    beforehand: str = ""
    """why nothing was searched, in a sentence"""


@dataclass(frozen=True, eq=False)
class Way:
    """Features that were named beforehand, or the only ones that a search could choose."""

    features: tuple[int, ...]
    """columns that predict"""
    selection: tuple[int, ...]
    """columns of the selection equation"""
    named: tuple[int, ...]
    """columns that were named as possible predictors"""
    search: SearchOutcome | None = None

    name: ClassVar[WayName] = "given"
    words: ClassVar[WayWords] = WayWords(
        beforehand="This was said beforehand: nothing was searched, so there are no chances."
    )
    is_corrected: ClassVar[bool] = True
    """whether outcomes are missing, so there is selection to correct for"""
    is_average: ClassVar[bool] = False
    """whether estimates are averages over assignments: a mixture, with intervals and no tests"""
    halves_rows: ClassVar[bool] = False
    """whether estimates are medians over random halves of the rows"""

    @property
    def is_one_fit(self) -> bool:
        """Whether estimates are those of one set of features, fitted to all rows."""
        return not (self.is_average or self.halves_rows)

    @property
    def searched(self) -> bool:
        """Whether several sets of features were chosen from, or averaged."""
        return self.search is not None and self.search.chose

    @property
    def chose(self) -> bool:
        """Whether one set of several was chosen, in all rows or over halves of them."""
        return self.searched and not self.is_average

    @property
    def ignores_search(self) -> bool:
        """Whether intervals take the features for known, though the same rows chose them."""
        return self.chose and not self.halves_rows

    @property
    def equation(self) -> list[int]:
        """Columns of the prediction equation, in the order of `Fit.terms`."""
        return list(self.features)

    @property
    def driving(self) -> list[int]:
        """Columns that drive selection: those of the selection equation, unless it is averaged."""
        return list(self.selection)

    @property
    def allowed(self) -> tuple[int, ...]:
        """Columns that the user let predict."""
        return self.named if self.search is None else self.search.choices.columns

    @property
    def choices(self) -> Choices:
        """The assignments that could be chosen in these rows."""
        if self.search is None:
            raise NotSearchedError("nothing was searched: the features were named beforehand")
        allowed, candidates = self.search.choices, {*self.search.candidates}
        return allowed.without_columns([c for c in allowed.columns if c not in candidates])

    @property
    def selecting(self) -> Choices | None:
        """Which columns could drive selection; None if the selection equation was not searched."""
        if self.search is None or self.search.selecting is None or self.search.form is None:
            return None
        allowed, searched = self.search.selecting, self.search.form.searched
        return allowed.without_columns([c for c in allowed.columns if c not in searched])

    @property
    def candidates(self) -> tuple[int, ...] | None:
        """Columns that could predict in these rows; None if nothing says so but the question."""
        return None if self.search is None else self.search.candidates

    @property
    def form(self) -> Form | None:
        """The form of the model with everything in it; None if the fit does not hold one."""
        return None if self.search is None else self.search.form

    @property
    def form_of_both(self) -> Form | None:
        """The form of everything in both equations; None unless both were searched."""
        return self.form if self.form is not None and self.form.searched else None

    @property
    def searched_window(self) -> tuple[float, float] | None:
        """The window of rho in which sets of features competed."""
        return None if self.search is None else self.search.window

    @property
    def rho_window(self) -> tuple[float, float] | None:
        """The window in which the estimate of rho was kept, so no test of rho = 0 is valid."""
        return self.searched_window

    @property
    def averaging(self) -> AverageOutcome:
        """The mixture of assignments behind an average, and the form that it follows from."""
        raise NotSearchedError("the estimates are not averages over assignments")

    @property
    def n_halves(self) -> int:
        """Number of random halves of the rows that chose features; zero unless halves did."""
        return len(self.halves.estimates) if self.halves_rows else 0

    @property
    def halves(self) -> HonestSplits:
        """The estimates in random halves of the rows."""
        raise NotSearchedError("the estimates are not those of random halves of the rows")


@dataclass(frozen=True, eq=False)
class Observed(Way):
    """No outcome is missing, so there is nothing to search or to correct."""

    name: ClassVar[WayName] = "observed"
    words: ClassVar[WayWords] = WayWords(
        beforehand="No outcome is missing, so nothing was searched."
    )
    is_corrected: ClassVar[bool] = False

    @property
    def searched(self) -> bool:
        """Nothing was."""
        return False


@dataclass(frozen=True, eq=False)
class Chosen(Way):
    """Features that the same rows chose."""

    name: ClassVar[WayName] = "chosen"
    words: ClassVar[WayWords] = WayWords(
        of_search=", which ignores the search",
        label="chosen",
        shown="chosen assignment",
        estimates="Estimates for the chosen features, with 95% intervals that ignore the search.",
    )


@dataclass(frozen=True, eq=False)
class Halved(Way):
    """Features that random halves of the rows chose, estimated in the other halves."""

    name: ClassVar[WayName] = "honest"
    words: ClassVar[WayWords] = WayWords(
        of_search=", which allows for the search",
        share="halves",
        label="honest",
        note="split halves",
        shown="honest model",
        series="this model, honest halves",
        estimates=(
            "Estimates with 95% intervals, each of the coefficient in the models that halves chose."
        ),
    )
    halves_rows: ClassVar[bool] = True

    @property
    def rho_window(self) -> tuple[float, float] | None:
        """Rho is estimated in rows that had no part in the choice."""
        return None

    @property
    def halves(self) -> HonestSplits:
        """The estimates in random halves of the rows."""
        assert self.search is not None
        assert self.search.halves is not None
        return self.search.halves


@dataclass(frozen=True, eq=False)
class Averaged(Way):
    """Every feature that may predict, averaged over assignments.

    The equation has all of them; the prediction features are those that probably predict.
    """

    average: AverageOutcome | None = None

    name: ClassVar[WayName] = "average"
    words: ClassVar[WayWords] = WayWords(
        title=", averaged over assignments",
        of_search=", which allows for the search",
        label="averaged",
        shown="best assignment",
        verb="averages",
        predict="May predict",
        guarded=" (in the model of all features)",
        each=" in each assignment",
        series="this model, averaged",
        alike="averaged alike",
        estimates=(
            "Averages over sets of features; a set in which the feature does not predict counts as "
            "zero. 95% intervals of what predicts are over the sets in which it does; all others "
            "reach zero."
        ),
    )
    is_average: ClassVar[bool] = True

    @property
    def averaging(self) -> AverageOutcome:
        """The mixture of assignments behind an average, and the form that it follows from."""
        assert self.average is not None
        return self.average

    @property
    def searched(self) -> bool:
        """Every assignment competes."""
        return True

    @property
    def equation(self) -> list[int]:
        """Every column that may predict."""
        return list(self.averaging.columns)

    @property
    def driving(self) -> list[int]:
        """The columns that probably drive selection, if the selection equation is searched."""
        shares = self.averaging.mixture.selection_shares
        if shares is None:
            return list(self.selection)
        return [int(column) for column in np.flatnonzero(shares[CHANCES_BY] >= PROBABLE)]

    @property
    def allowed(self) -> tuple[int, ...]:
        """Columns that the user let predict."""
        return self.averaging.choices.columns

    @property
    def choices(self) -> Choices:
        """The assignments that were weighed."""
        return self.averaging.mixture.choices

    @property
    def selecting(self) -> Choices | None:
        """Which columns could drive selection; None if the selection equation was not searched."""
        return self.averaging.mixture.selecting

    @property
    def candidates(self) -> tuple[int, ...] | None:
        """Columns that could predict in these rows."""
        return self.averaging.columns

    @property
    def form(self) -> Form | None:
        """The form of the model with everything in it."""
        return self.averaging.form

    @property
    def searched_window(self) -> tuple[float, float] | None:
        """The window of rho in which assignments have weight."""
        return self.averaging.mixture.rho_range


def way_of(
    features: tuple[int, ...],
    selection: tuple[int, ...] | None,
    named: tuple[int, ...],
    search: SearchOutcome | None,
    average: AverageOutcome | None,
) -> Way:
    """Return the way of a fit; without a ``selection`` equation, no outcome is missing."""
    columns = features, selection or (), named
    if selection is None:
        return Observed(*columns, search)
    if average is not None:
        return Averaged(*columns, search, average)
    if search is None:
        return Way(*columns)
    if search.halves is not None:
        return Halved(*columns, search)
    return Chosen(*columns, search) if search.chose else Way(*columns, search)

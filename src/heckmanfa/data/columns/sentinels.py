"""Numbers that look like codes for missing values: -99 among incomes, 999 among ages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heckmanfa.data.columns.missing_codes import na_option
from heckmanfa.data.columns.tally import NumberTally
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import number, plural

# Small codes are also plain counts and temperatures, so they must be frequent.
_SMALL = 10.0
_OFTEN, _FEWEST = 0.02, 3
# A frequent code is this share of the others' range away from them; a rare one, all of it.
_NEAR = 0.1
_MOST_NOTES = 5


@dataclass(frozen=True)
class Suspicion:
    """A number in a column that may be a code for missing."""

    column: str
    code: float
    rows: int
    """rows that hold it"""
    n_rows: int
    """rows of the column that hold a number"""
    low: float
    """least of the column's other numbers"""
    high: float
    """greatest of the column's other numbers"""
    is_outcome: bool = False

    @property
    def option(self) -> str:
        """The option that makes it missing."""
        return told(na_option(self.column, [self.code]), keywords=True)

    @property
    def words(self) -> str:
        """What was found, as a sentence."""
        return (
            f"{'The outcome ' * self.is_outcome}{quoted(self.column)} holds {self.code:g} in "
            f"{self.rows:,} of {plural(self.n_rows, 'row')}, and {number(self.low)} to "
            f"{number(self.high)} elsewhere."
        )

    @property
    def do(self) -> str:
        """What to do about it, as a sentence."""
        counts = "these rows count as observed" if self.is_outcome else "it counts as a number"
        return f"If {self.code:g} means missing, pass {self.option}: as it is, {counts}."

    def __str__(self) -> str:
        return f"{self.words} {self.do}"


def find_suspicions(
    tallies: Mapping[str, NumberTally], outcome: str | None = None
) -> tuple[Suspicion, ...]:
    """Return the numbers that look like codes for missing, of the outcome first."""
    found = [
        Suspicion(name, code, rows, tally.n, tally.rest_low, tally.rest_high, name == outcome)
        for name, tally in tallies.items()
        for code, rows in tally.codes.items()
        if _is_suspicious(tally, code, rows)
    ]
    return tuple(sorted(found, key=lambda one: (not one.is_outcome, -one.rows)))


def _is_suspicious(tally: NumberTally, code: float, rows: int) -> bool:
    low, high = tally.rest_low, tally.rest_high
    if not low <= high or low <= code <= high:
        return False
    away = low - code if code < low else code - high
    spread = high - low
    often = rows >= max(_FEWEST, _OFTEN * tally.n)
    if abs(code) < _SMALL:
        # Such as -1 among counts; a scale from -1 to 1 is not.
        return code < 0 <= low and often and high >= 5 and tally.integers
    return away > spread or (code < 0 <= low) or (often and away > _NEAR * spread)


def notes_on_suspicions(found: tuple[Suspicion, ...]) -> list[str]:
    """Return a note on each of the gravest, and the number of the others."""
    notes = [str(suspicion) for suspicion in found[:_MOST_NOTES]]
    if len(found) > _MOST_NOTES:
        more = len(found) - _MOST_NOTES
        notes.append(
            f"{plural(more, 'more such code')} may mean missing: see {option('na_values')}."
        )
    return notes

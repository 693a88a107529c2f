"""The design of a survey that a question asks for, and its columns in a table in memory."""

from __future__ import annotations

from typing import Any

import pandas as pd

from heckmanfa.analysis.options import Options
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import FALSE_WORDS, TRUE_WORDS
from heckmanfa.data.survey import Survey, SurveyUnits
from heckmanfa.errors import InputError
from heckmanfa.text.labels import said
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted

_UNITS = ("strata", "psu")
# What else there is to say about strata and units.
_DETAILS = ("fpc", "single_psu", "nest", "subpop")
DESIGN = (*_UNITS, *_DETAILS)
"""the options that are about a survey's design"""
COLUMNS = ("strata", "psu", "fpc", "subpop")
"""those of them that name a column"""
_SINGLE = {
    "certainty": "a stratum of one unit adds nothing",
    "centered": "a stratum of one unit deviates from the mean of all units",
}


def survey_of(asked: Options) -> Survey | None:
    """Return the design that options ask for; None without strata and units."""
    if asked.strata is None and asked.psu is None:
        return None
    known = {name: getattr(asked, name) for name in DESIGN}
    return Survey(weights=asked.weights, **known)


def check_design(asked: Options) -> None:
    """Refuse options about a design that is not named, or that it contradicts."""
    if asked.strata is None and asked.psu is None:
        given = [name for name in _DETAILS if getattr(asked, name) not in (None, False, "error")]
        if given:
            raise InputError(
                f"{option(given[0])} is about the design of a survey: name its strata with "
                f"{option('strata')}, or its sampling units with {option('psu')}"
            )
        return
    named = option(next(name for name in _UNITS if getattr(asked, name) is not None))
    for name in ("cluster", "robust"):
        if getattr(asked, name):
            raise InputError(
                f"{named} and {option(name)} ask for two kinds of standard errors: those by the "
                "design of a survey are robust, and let rows of a sampling unit be dependent. "
                f"Leave {option(name)} out"
            )
    if asked.honest:
        raise InputError(
            f"{option('honest')} compares halves of the rows, and half of a survey is not a sample "
            f"of its design: leave it out, or name the sampling units with {option('cluster')}"
        )
    for name in _UNITS:
        if asked.nest and getattr(asked, name) is None:
            raise InputError(
                f"{option('nest')} says that labels of {option('psu')} start again in each of "
                f"{option('strata')}: name both"
            )


def read_units(
    survey: Survey, frame: pd.DataFrame, numbers: dict[str, Floats]
) -> tuple[SurveyUnits, Floats | None]:
    """Return the units of all rows of a table, and their weights; see `Survey.read`.

    ``numbers`` are the columns that were read as such, the weights and the finite populations.
    """
    columns: dict[str, Any] = {name: frame[name].to_numpy() for name in survey.design_columns}
    columns |= numbers
    if survey.subpop is not None:
        columns[survey.subpop] = _flags(frame[survey.subpop], survey.subpop)
    return survey.read(columns)


def _flags(series: pd.Series[Any], name: str) -> Any:
    """Return who is in the subpopulation, as 0 and 1; what is missing is None."""
    words = series.astype("string").str.strip().str.lower()
    strange = sorted({*words.dropna().unique()} - TRUE_WORDS - FALSE_WORDS)
    if strange:
        raise InputError(
            f"{option('subpop')}: column {quoted(name)} must hold 0 and 1 (or yes and no, true "
            f"and false); it holds {quoted(strange[0])}"
        )
    flags = words.isin(TRUE_WORDS).astype(float)
    return flags.where(words.notna()).to_numpy(dtype=float)


def design_words(asked: Options, df: int) -> str:
    """Name the columns of a design, in a sentence."""
    parts = [] if asked.strata is None else [f"strata {said(asked.strata)}"]
    if asked.psu is not None:
        again = " (labels start again in each stratum)" if asked.nest else ""
        parts.append(f"sampling units {said(asked.psu)}{again}")
    if asked.psu is None:
        parts.append("every row is a sampling unit")
    if asked.fpc is not None:
        parts.append(f"finite populations by {said(asked.fpc)}")
    if asked.subpop is not None:
        parts.append(f"subpopulation {said(asked.subpop)}")
    if asked.single_psu in _SINGLE:
        parts.append(_SINGLE[asked.single_psu])
    words = f"{', '.join(parts)}; {df:,} {'degree' if df == 1 else 'degrees'} of freedom."
    return words[0].upper() + words[1:]

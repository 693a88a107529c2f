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
from heckmanfa.text.wording import listed

_UNITS = ("strata", "psu")
# What else there is to say about strata and units, and about replicate weights.
_DETAILS = ("fpc", "single_psu", "nest", "subpop")
_OF_REPLICATES = ("replicate_kind", "fay", "replicate_scale", "replicate_mse")
NAMING = (*_UNITS, "replicate_weights")
"""the options that ask for a design; others say more about it"""
DESIGN = (*_UNITS, *_DETAILS, "replicate_weights", *_OF_REPLICATES)
"""the options that are about a survey's design"""
_IN_SURVEY = {"replicate_scale": "scale", "replicate_mse": "mse"}
"""what `Survey` calls them, if it has another name"""
COLUMNS = ("strata", "psu", "fpc", "subpop")
"""those of them that name a column each"""
_SINGLE = {
    "certainty": "a stratum of one unit adds nothing",
    "centered": "a stratum of one unit deviates from the mean of all units",
}


_KINDS = {
    "brr": "balanced repeated replication",
    "jackknife": "a jackknife",
    "bootstrap": "a bootstrap",
}


def survey_of(asked: Options) -> Survey | None:
    """Return the design that options ask for; None without strata, units and replicates."""
    if not _is_designed(asked):
        return None
    known = {_IN_SURVEY.get(name, name): getattr(asked, name) for name in DESIGN}
    replicates = asked.replicate_weights
    known["replicate_weights"] = replicates[0] if len(replicates) == 1 else replicates or None
    return Survey(weights=asked.weights, **known)


def _is_designed(asked: Options) -> bool:
    return any(getattr(asked, name) for name in NAMING)


def survey_options(survey: Survey) -> dict[str, Any]:
    """Return the options that ask for a design; refuse what has no option."""
    if survey.rscales is not None:
        raise InputError(
            "rscales have no option in a question about a table: fit a model with the Survey"
        )
    options = {name: getattr(survey, _IN_SURVEY.get(name, name)) for name in DESIGN}
    return {"weights": survey.weights} | options


def check_design(asked: Options) -> None:
    """Refuse options about a design that is not named, or that it contradicts."""
    about = [name for name in _OF_REPLICATES if getattr(asked, name) not in (None, False, 0)]
    if about and not asked.replicate_weights:
        raise InputError(
            f"{option(about[0])} is about replicate weights: name their columns with "
            f"{option('replicate_weights')}"
        )
    if not _is_designed(asked):
        given = [name for name in _DETAILS if getattr(asked, name) not in (None, False, "error")]
        if given:
            raise InputError(
                f"{option(given[0])} is about the design of a survey: name its strata with "
                f"{option('strata')}, or its sampling units with {option('psu')}"
            )
        return
    named = option(next(name for name in NAMING if getattr(asked, name)))
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
    scale = asked.replicate_scale
    if scale is not None and not scale > 0:
        raise InputError(f"{option('replicate_scale')} must be above zero; got {scale:g}")
    # What else cannot be is refused where the design is made.
    survey_of(asked)


def refuse_average(asked: Options) -> None:
    """Refuse replicate weights of an average, which is made of many models."""
    if asked.replicate_weights:
        raise InputError(
            f"{option('replicate_weights')} estimate one model again, and "
            f"{option('search', 'average')} is made of many: ask for one with "
            f"{option('search', 'none')} (and {option('predict_with')}) or "
            f"{option('search', 'best-subset')}"
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


def check_subpop(name: str, words: set[str]) -> None:
    """Refuse a column that does not say who is in the subpopulation, by its distinct values."""
    if strange := sorted(words - TRUE_WORDS - FALSE_WORDS):
        raise InputError(
            f"{option('subpop')}: column {quoted(name)} must hold 0 and 1 (or yes and no, true "
            f"and false); it holds {quoted(strange[0])}"
        )


def _flags(series: pd.Series[Any], name: str) -> Any:
    """Return who is in the subpopulation, as 0 and 1; what is missing is None."""
    words = series.astype("string").str.strip().str.lower()
    check_subpop(name, {*words.dropna().unique()})
    flags = words.isin(TRUE_WORDS).astype(float)
    return flags.where(words.notna()).to_numpy(dtype=float)


def design_words(asked: Options, df: int) -> str:
    """Name the columns of a design, in a sentence."""
    parts = []
    if asked.replicate_weights:
        parts.append(f"replicate weights {listed([*map(said, asked.replicate_weights)])}")
        parts.append(_KINDS[str(asked.replicate_kind)])
        if asked.fay:
            parts.append(f"Fay's factor {asked.fay:g}")
        if asked.replicate_scale is not None:
            parts.append(f"squares times {asked.replicate_scale:g}")
        if asked.replicate_mse:
            parts.append("squares about the estimate")
    parts += [] if asked.strata is None else [f"strata {said(asked.strata)}"]
    if asked.psu is not None:
        again = " (labels start again in each stratum)" if asked.nest else ""
        parts.append(f"sampling units {said(asked.psu)}{again}")
    if asked.psu is None and not asked.replicate_weights:
        parts.append("every row is a sampling unit")
    if asked.fpc is not None:
        parts.append(f"finite populations by {said(asked.fpc)}")
    if asked.subpop is not None:
        parts.append(f"subpopulation {said(asked.subpop)}")
    if asked.single_psu in _SINGLE:
        parts.append(_SINGLE[asked.single_psu])
    words = f"{', '.join(parts)}; {df:,} {'degree' if df == 1 else 'degrees'} of freedom."
    return words[0].upper() + words[1:]

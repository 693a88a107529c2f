"""The columns of a survey's design among the columns of the rows that are fitted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from heckmanfa.data.arrays import is_dask, on_host
from heckmanfa.data.columns.beside import frame_of, without_columns
from heckmanfa.data.columns.column_names import refuse_absent, refuse_same_labels
from heckmanfa.data.columns.column_numbers import entries
from heckmanfa.data.group_cells import Cells, unjoined
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_rules import RowCounts, refuse_bad_flags
from heckmanfa.data.row_sources import RowSource
from heckmanfa.data.survey import Survey, SurveyUnits, check_weights, refuse_unplaced
from heckmanfa.errors import InputError, InputTypeError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural


def survey_rows(survey: Survey, X: Any, sample_weight: Any, groups: Any) -> tuple[Any, Any, Any]:
    """Return X without the columns of a survey, its weights, and the units of the rows.

    The columns are those of X, or of a frame passed as ``groups``. Units that were read before are
    returned as they are, with the weights that were read with them.
    """
    if isinstance(groups, SurveyUnits):
        return X, sample_weight, groups
    if sample_weight is not None:
        raise InputError(
            f"a Survey names the column of its weights: leave {option('sample_weight')} out"
        )
    if isinstance(X, RowSource):
        return _of_source(survey, X), None, None
    if is_dask(X) or is_dask(groups):
        return _of_dask(survey, X, groups)
    if isinstance(groups, str):
        raise InputTypeError(
            f"a Survey names the columns of its units: leave {option('groups')} out, and name "
            f"{quoted(groups)} as psu if rows of it are dependent"
        )
    what, passed = ("X", X) if groups is None else ("groups", on_host(groups))
    match_rows({"X": X, "groups": groups})
    frame = frame_of(passed, what)
    if frame is None:
        raise InputTypeError(
            f"a Survey names columns of a data frame, and {what} is a "
            f"{type(X if groups is None else groups).__name__}: pass a frame that holds them as "
            "X or as groups"
        )
    n = X.shape[0] if hasattr(X, "shape") else len(frame if X is None else X)
    if len(frame) != n:
        raise InputError(f"groups has {plural(len(frame), 'row')}, but X has {n}")
    columns = survey.columns(frame.columns)
    refuse_absent(columns, frame.columns, "Survey: the data")
    units, weight = survey.read(
        # By position: Polars takes some names for patterns.
        {name: entries(frame[:, frame.columns.index(name)].to_native(), name) for name in columns}
    )
    return (without_columns(X, columns) if groups is None else X), weight, units


def cells_of_survey(survey: Survey, labels: NDArray[Any], names: Sequence[str]) -> Cells:
    """Return the units of rows that are elsewhere, given the distinct labels of their columns."""
    parts = unjoined(labels, len(names)) if len(names) > 1 else [labels]
    codes, cells = survey.cells(dict(zip(names, parts, strict=True)), len(labels))
    if len(labels) != cells.n:
        raise InputError(
            f"some units of {quoted(survey.psu)} have several values of {quoted(survey.fpc)}, "
            "which is about strata, and needs one value in each"
        )
    assert cells.strata is not None
    return replace(cells, strata=cells.strata[codes])


def refuse_modelled(survey: Survey, variables: Collection[str], data: Any) -> None:
    """Refuse replicate weights that formulas have as variables: a pattern has taken too many."""
    frame = frame_of(data, "the data")
    if survey.replicate_weights is None or frame is None:
        return
    for name in survey.replicate_columns(frame.columns):
        if name in variables:
            raise InputError(
                f"{option('replicate_weights')} names {quoted(name)}, which is in the formulas: "
                "name the columns of weights alone"
            )


def refuse_undesigned(survey: Survey, counts: RowCounts) -> None:
    """Refuse rows that are not in memory, by what was counted, if their design is not known."""
    refuse_bad_flags(counts.unplaced, counts.odd_place, quoted(survey.subpop))
    refuse_unplaced(counts.groupless, *survey.design_columns)
    if survey.weights is not None:
        some = counts.kept > 0 or not counts.zero_weight
        check_weights(survey.weights, counts.bad_weights, some)
    if counts.outside and not counts.kept:
        raise InputError(f"no row of the fit is in the subpopulation of {quoted(survey.subpop)}")


def _refuse_unnumbered(survey: Survey) -> None:
    """Refuse rows that are not in memory if nothing says of which unit they are."""
    if survey.psu is None and (survey.replicate_weights is None or survey.design_columns):
        raise InputError(
            "rows that are not in memory need the column of their units: name it as "
            f"{option('psu')}, which may be one that numbers the rows"
        )


def _of_source(survey: Survey, source: RowSource) -> RowSource:
    """Return scanned rows that know their survey; refuse other columns than it names."""
    _refuse_unnumbered(survey)
    declared = source.declared
    if declared is None and survey.subpop is None and survey.replicate_weights is None:
        # Its columns may also be named one by one.
        named = {*source.groupings}, getattr(source, "roles", {}).get("sample_weight")
        declared = survey if named == ({*survey.design_columns}, survey.weights) else None
    if declared != survey:
        raise InputError(
            "the scan has to name the columns of the survey: scan(..., survey=...) takes the "
            f"Survey that is {option('cov_type')} here"
        )
    if source.replicates:
        survey.check_scales(len(source.replicates))
    designed = copy(source)
    designed.survey = survey
    return designed


def _of_dask(survey: Survey, X: Any, groups: Any) -> tuple[Any, Any, Any]:
    from heckmanfa.data.dask_rows import DesignedFrame

    _refuse_unnumbered(survey)
    frame = X if groups is None else groups
    if not hasattr(frame, "columns"):
        raise InputTypeError("a Survey names columns of a data frame, and this is a Dask Array")
    refuse_same_labels(frame.columns, "the data of the survey")
    columns = survey.columns(frame.columns)
    refuse_absent(columns, list(frame.columns), "Survey: the data")
    if survey.replicate_weights is not None:
        survey.check_scales(len(survey.replicate_columns(frame.columns)))
    weight = None if survey.weights is None else frame[survey.weights]
    X = without_columns(X, columns) if groups is None else X
    return X, weight, DesignedFrame(frame[[*columns]], survey)

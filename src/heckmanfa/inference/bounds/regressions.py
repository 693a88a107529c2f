"""Worst-case bounds of a quantile, and of the coefficients of a linear projection."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats, host
from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.rows import Mask
from heckmanfa.data.survey import Survey
from heckmanfa.errors import CollinearError, InputError, MissingValueError, TooFewRowsError
from heckmanfa.inference.bounds.reading import (
    check_lengths,
    in_memory,
    read_conf_level,
    read_span,
)
from heckmanfa.inference.bounds.rows import (
    groups_given,
    read_given,
    row_of_ends,
)
from heckmanfa.model.linalg import dependencies, describe_dependencies, factor
from heckmanfa.model.worst_case import (
    SeenRows,
    projection_ends,
    quantile_ends,
)
from heckmanfa.results.bound_table import NOTHING, BoundRow, Bounds
from heckmanfa.results.imbens_manski import interval
from heckmanfa.text.option_types import WeightKind
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import listed

_SHOWN = 6


def quantile(
    y: Any,
    q: float = 0.5,
    *,
    group: Any = None,
    selected: Any = None,
    y_range: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    conf_level: float = 0.95,
) -> Bounds:
    """Bound a quantile, by default the median, of an outcome that is missing in some rows.

    Quantiles need no range: a bound is infinite only if so many outcomes are missing that the
    quantile may be one of them. Standard errors are by Woodruff's (1952) interval.

    Parameters
    ----------
    y : array_like of shape (n,)
    q : float
        Between 0 and 1.
    y_range : (float, float), optional
        Ends that replace infinite ones.
    group, selected, sample_weight, weight_kind, groups, survey, conf_level
        As in `mean`.

    Returns
    -------
    Bounds
    """
    if not isinstance(q, Real) or not 0 < q < 1:
        raise InputError(f"{option('q')} must lie between 0 and 1; got {quoted(q)}")
    level = read_conf_level(conf_level)
    given = in_memory(
        y=y, group=group, selected=selected, sample_weight=sample_weight, groups=groups
    )
    found = read_given(given, weight_kind, survey)
    by, rows = groups_given(given, found, None), found.rows
    span = (-math.inf, math.inf) if y_range is None else read_span(y_range, rows)
    quantity, lines = "median" if q == 0.5 else f"quantile {q:g}", []
    for place in range(1 if by is None else len(by.labels)):
        inside = None if by is None else by.mask(place)
        ends = quantile_ends(rows, inside, float(q), span, found.sampling)
        values, errors = (ends[0].value, ends[1].value), (ends[0].std_error, ends[1].std_error)
        seen = SeenRows(rows.outcome, rows.seen, rows.weight * rows.seen)
        known = quantile_ends(seen, inside, float(q), span, found.sampling)[0].value
        if inside is not None and found.sampling.n_draws(inside) < 2:
            errors = math.nan, math.nan
        reach = interval(values, errors, level, found.reference)
        counts, group_said = found.count(inside), "" if by is None else by.said(place)
        lines.append(
            BoundRow(
                *(quantity, NOTHING, values, errors, reach, counts, group_said),
                observed=known,
                noun=f"the {quantity} of {{outcome}}"
                if q == 0.5
                else f"the {q:g} quantile of {{outcome}}",
            )
        )
    return found.result(
        f"Bounds of the {quantity} of {shown(found.name)}",
        lines,
        level,
        None if y_range is None else span,
    )


def projection(
    X: Any,
    y: Any,
    *,
    selected: Any = None,
    y_range: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    categorical_features: Any = "from_dtype",
    conf_level: float = 0.95,
) -> Bounds:
    """Bound the coefficients of the best linear predictor of an outcome missing in some rows.

    Parameters
    ----------
    X : array or data frame of shape (n, K)
        Features, known in every row; an intercept is added. Categories become dummies.
    y : array_like of shape (n,)
    selected, y_range, sample_weight, weight_kind, groups, survey, conf_level
        As in `mean`.
    categorical_features
        As in `Heckman`.

    Returns
    -------
    Bounds
        A row for each coefficient, with that of least squares on the observed outcomes beside it.
        The bounds of one coefficient are sharp; not all coefficients can be at theirs at once.
    """
    level = read_conf_level(conf_level)
    given = in_memory(X=X, y=y, selected=selected, sample_weight=sample_weight, groups=groups)
    table = read_features(given.pop("X"), "bounds.projection", categorical=categorical_features)
    check_lengths({"X": range(table.n_rows), **given})
    found = read_given(given, weight_kind, survey)
    design, terms = _design(table, found.used)
    span = read_span(y_range, found.rows)
    seen = _least_squares(found.rows, design)
    rows = tuple(
        row_of_ends(
            *(ends, found, level),
            quantity=term,
            noun=f"the coefficient of {shown(term)} in the linear projection of {{outcome}}",
            observed=float(known),
        )
        for ends, term, known in zip(
            projection_ends(found.rows, design, span), terms, seen, strict=True
        )
    )
    note = "Each pair of bounds is sharp by itself; coefficients cannot all be at theirs at once."
    return found.result(
        f"Bounds of the linear projection of {shown(found.name)}",
        rows,
        level,
        span,
        observed=y_range is None,
        notes=(note,),
        told=min(1, len(rows) - 1),
    )


def _least_squares(rows: SeenRows, design: Floats) -> Floats:
    """Return the coefficients among rows with an outcome; NaN if these do not determine them."""
    root = np.sqrt(rows.weight[rows.seen])
    chosen = root[:, None] * design[rows.seen]
    if len(chosen) < design.shape[1] or len(dependencies(factor(chosen))):
        return np.full(design.shape[1], np.nan)
    return np.asarray(np.linalg.lstsq(chosen, root * rows.outcome[rows.seen], rcond=None)[0])


def _design(table: FeatureTable, used: Mask) -> tuple[Floats, list[str]]:
    """Return the design of the rows that are used, (n, 1 + k), and its terms."""
    columns = list(range(table.shape[1]))
    names = table.labels(columns)
    values = host(table.source(columns).take(0, table.n_rows, columns))[used]
    counts = (~np.isfinite(values)).sum(axis=0)
    missing = {name: int(n) for name, n in zip(names, counts, strict=True) if n}
    if missing:
        said = listed([f"{shown(name)} ({count:,})" for name, count in missing.items()][:_SHOWN])
        raise MissingValueError(
            f"features are missing or infinite in rows of the projection: {said}. Leave these "
            "columns or rows out; bounds fill in outcomes alone"
        )
    design = np.column_stack([np.ones(len(values)), values])
    if len(design) <= design.shape[1]:
        raise TooFewRowsError(
            f"{design.shape[1]} coefficients need more than {design.shape[1]} rows; there are "
            f"{len(design)}"
        )
    dependent = dependencies(factor(design.copy()))
    if dependent:
        said = "; ".join(describe_dependencies(dependent, ["constant", *names]))
        raise CollinearError(f"the features are collinear: {said}", "Leave these columns out.")
    return design, ["Intercept", *names]

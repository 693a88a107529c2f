"""Worst-case bounds of a mean, a share, a difference of groups and an effect of treatment."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import label_of
from heckmanfa.data.outcome_classes import labels_of
from heckmanfa.data.sample import read_outcome
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.inference.bounds.reading import (
    Read,
    check_lengths,
    in_memory,
    one_of,
    read_conf_level,
    read_span,
)
from heckmanfa.inference.bounds.rows import (
    RELATIONS,
    difference_rows,
    effect_row,
    groups_given,
    mean_rows,
    read_given,
    read_treated,
)
from heckmanfa.model.worst_case import (
    Relation,
)
from heckmanfa.results.bound_table import Bounds
from heckmanfa.text.option_types import WeightKind
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list, shown
from heckmanfa.text.wording import nearest

_SHOWN = 6
_SHARES = 0.0, 1.0


def mean(
    y: Any,
    *,
    group: Any = None,
    selected: Any = None,
    y_range: Any = None,
    selection: Relation | None = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    conf_level: float = 0.95,
) -> Bounds:
    """Bound the mean of an outcome that is missing in some rows.

    Parameters
    ----------
    y : array_like of shape (n,)
        The outcome, NaN where missing. Every row counts, with an outcome or without.
    group : array_like of shape (n,), optional
        Labels of groups, each of which has a mean of its own.
    selected : array_like of bool, optional
        Which rows have an outcome, where that is not those whose y is known.
    y_range : (float, float), optional
        The values that an outcome may have. By default those from the lowest to the highest that
        is observed, and the result says so.
    selection : {"higher", "lower"}, optional
        Assume that the mean of rows with an outcome is at least, or at most, that of the others.
        It is then an end of the bounds. By default nothing is assumed.
    sample_weight : array_like, optional
    weight_kind : {"frequency", "sampling"}
        Whether a weight of 2 is two rows, or a row that was half as likely to be drawn.
    groups : array_like of shape (n,), optional
        Clusters, which standard errors allow for; or two columns of them.
    survey : Survey, optional
        The design that standard errors are by. Its columns are those of a frame that is passed as
        ``groups``, and its weights are sampling weights.
    conf_level : float
        Confidence level of the interval of the mean itself (Imbens and Manski, 2004).

    Returns
    -------
    Bounds
        Prints, and has `tidy`, `picture`, `to_latex` and `to_markdown`.

    Examples
    --------
    >>> from heckmanfa import bounds
    >>> y = [1.0, 0.0, 1.0, None]
    >>> bounds.mean(y, y_range=(0, 1)).tidy()[["low", "high"]].to_numpy().tolist()
    [[0.5, 0.75]]
    """
    relation = one_of(selection, RELATIONS, "selection")
    level = read_conf_level(conf_level)
    given = in_memory(
        y=y, group=group, selected=selected, sample_weight=sample_weight, groups=groups
    )
    found = read_given(given, weight_kind, survey)
    by = groups_given(given, found, relation)
    span = read_span(y_range, found.rows)
    return found.result(
        f"Bounds of the mean of {shown(found.name)}",
        mean_rows(found, span, by, level, "mean", relation),
        level,
        span,
        observed=y_range is None,
    )


def share(
    y: Any,
    *,
    of: Any = None,
    above: float | None = None,
    group: Any = None,
    selected: Any = None,
    selection: Relation | None = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    conf_level: float = 0.95,
) -> Bounds:
    """Bound the share of rows whose outcome is a class, or is above a number.

    A share lies between 0 and 1, so these bounds need no range.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels, booleans or numbers, missing in some rows.
    of : label, optional
        The class whose share is wanted. By default the larger of two numbers, or True; texts need
        it.
    above : float, optional
        The share of outcomes above this number, in place of a class.
    group, selected, selection, sample_weight, weight_kind, groups, survey, conf_level
        As in `mean`.

    Returns
    -------
    Bounds
    """
    relation = one_of(selection, RELATIONS, "selection")
    level = read_conf_level(conf_level)
    given = in_memory(
        y=y, group=group, selected=selected, sample_weight=sample_weight, groups=groups
    )
    found = _read_share(given, of, above, weight_kind, survey)
    by = groups_given(given, found, relation)
    return found.result(
        f"Bounds of the share of {shown(found.name)}",
        mean_rows(found, _SHARES, by, level, "share", relation),
        level,
    )


def difference(
    y: Any,
    group: Any,
    *,
    reference: Any = None,
    of: Any = None,
    above: float | None = None,
    selected: Any = None,
    y_range: Any = None,
    selection: Relation | None = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    conf_level: float = 0.95,
) -> Bounds:
    """Bound the difference of groups' mean outcomes, or of their shares.

    Parameters
    ----------
    y : array_like of shape (n,)
    group : array_like of shape (n,)
        The group of each row: two or more.
    reference : label, optional
        The group that others are compared with; by default the first, as labels sort.
    of, above : optional
        As in `share`: the difference is then of shares, and needs no range.
    selected, y_range, selection, sample_weight, weight_kind, groups, survey, conf_level
        As in `mean`.

    Returns
    -------
    Bounds
    """
    relation = one_of(selection, RELATIONS, "selection")
    level = read_conf_level(conf_level)
    given = in_memory(
        y=y, group=group, selected=selected, sample_weight=sample_weight, groups=groups
    )
    of_shares = of is not None or above is not None
    if of_shares and y_range is not None:
        raise InputError(f"shares lie between 0 and 1: leave {option('y_range')} out")
    found = (
        _read_share(given, of, above, weight_kind, survey)
        if of_shares
        else read_given(given, weight_kind, survey)
    )
    by = groups_given(given, found, relation)
    if by is None or len(by.labels) < 2:
        raise InputError(f"a difference needs two groups or more: {option('group')} has one")
    span = _SHARES if of_shares else read_span(y_range, found.rows)
    quantity = "share" if of_shares else "mean"
    noun = f"the {quantity} of {{outcome}}"
    base = 0 if reference is None else by.place(reference, "reference")
    means = mean_rows(found, span, by, level, quantity, relation)
    return found.result(
        f"Bounds of the difference in {shown(found.name)}",
        (*difference_rows(found, span, by, base, level, relation, noun), *means),
        level,
        None if of_shares else span,
        observed=y_range is None,
    )


def effect(
    y: Any,
    treated: Any,
    *,
    y_range: Any = None,
    selected: Any = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = "frequency",
    groups: Any = None,
    survey: Survey | None = None,
    conf_level: float = 0.95,
) -> Bounds:
    """Bound the average effect of a treatment that anyone may have chosen for any reason.

    Everyone's outcome under the other treatment is unknown, so the bounds are as wide as the range
    of the outcome, whatever the rows say (Manski, 1990); missing outcomes widen them more.

    Parameters
    ----------
    y : array_like of shape (n,)
    treated : array_like of shape (n,)
        Who is treated: booleans, or 0 and 1.
    y_range, selected, sample_weight, weight_kind, groups, survey, conf_level
        As in `mean`.

    Returns
    -------
    Bounds
    """
    level = read_conf_level(conf_level)
    given = in_memory(
        y=y, treated=treated, selected=selected, sample_weight=sample_weight, groups=groups
    )
    found = read_given(given, weight_kind, survey)
    chosen = read_treated(given["treated"], found)
    span = read_span(y_range, found.rows)
    return found.result(
        f"Bounds of the effect of treatment on {shown(found.name)}",
        (effect_row(found, chosen, span, level),),
        level,
        span,
        observed=y_range is None,
    )


def _read_share(
    given: dict[str, Any],
    of: Any,
    above: Any,
    weight_kind: WeightKind,
    survey: Survey | None,
) -> Read:
    """Read rows whose outcome is whether it is of a class, or above a number."""
    n = check_lengths(given)
    if above is None:
        outcome, label = _indicator(given["y"], n, of)
    else:
        if of is not None:
            raise InputError(
                f"{option('of')} names a class, and {option('above')} a number: pass one of them"
            )
        if isinstance(above, bool) or not isinstance(above, Real) or not np.isfinite(float(above)):
            raise InputError(f"{option('above')} must be a finite number; got {quoted(above)}")
        values = read_outcome(given["y"], n)
        outcome, label = np.where(np.isnan(values), np.nan, values > above), ""
    found = read_given(given, weight_kind, survey, outcome)
    said = f"{found.name} = {label}" if above is None else f"{found.name} above {above:g}"
    return replace(found, name=said, averaged="such a share")


def _indicator(y: Any, n: int, of: Any) -> tuple[Floats, str]:
    """Return whether each outcome is of a class, NaN where it is missing, and the class."""
    labels = labels_of(y, n)
    spelled = [label_of(label) for label in labels.distinct]
    if of is None:
        numbers = [label for label in labels.distinct if isinstance(label, bool | int | float)]
        if not 0 < len(labels.distinct) <= 2 or len(numbers) != len(labels.distinct):
            raise InputError(
                f"{option('of')} names the class whose share is wanted, and the outcome does not "
                f"say which: it holds {quoted_list(spelled, _SHOWN)}. Pass {option('of', ...)}, or "
                f"{option('above', ...)} for amounts"
            )
        alone = len(numbers) == 1 and not numbers[0]
        of = 1 if alone else max(numbers)
    elif label_of(of) not in spelled:
        known = quoted_list(spelled, _SHOWN)
        raise InputError(
            f"{option('of')}: {quoted(of)} is not a class of the outcome, which holds {known}"
            + nearest(label_of(of), spelled)
        )
    chosen = np.array([*(label == label_of(of) for label in spelled), np.nan], dtype=np.float64)
    return chosen[labels.codes], label_of(of)

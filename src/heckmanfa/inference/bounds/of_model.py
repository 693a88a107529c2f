"""Bounds of the rows that a model was fitted to, beside what the model says of the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats, host
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.rows import ArrayRows, Mask, held, one_blas_thread
from heckmanfa.errors import HeckmanfaError, InputError, NotIdentifiedError
from heckmanfa.fit import Fit, PassedRows
from heckmanfa.inference.bounds.reading import (
    Groups,
    Read,
    read_conf_level,
    read_groups,
    read_span,
)
from heckmanfa.inference.bounds.rows import difference_rows, effect_row, mean_rows
from heckmanfa.inference.bounds.trimming import lee_row
from heckmanfa.inference.class_margins import class_effects
from heckmanfa.inference.expectations import Estimates, level_effect, refuse_unknown, with_ones
from heckmanfa.inference.margins import judged
from heckmanfa.inference.rows_of_fit import FitRows, column_or_values, read_fit_rows, take_column
from heckmanfa.inference.treatment_effects import average_effects
from heckmanfa.model.worst_case import Sampling, SeenRows, Span
from heckmanfa.results.bound_table import BoundRow, Bounds
from heckmanfa.results.distribution import LINEARIZED, distribution_of
from heckmanfa.results.naming import class_label, outcome_of
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import capitalised

_GAPS = "a feature of the prediction equation is missing in rows without an outcome"


def bounds_of_model(
    fit: Fit,
    passed: PassedRows,
    group: Any = None,
    y_range: Any = None,
    conf_level: float = 0.95,
    model: str = "the model",
    outcome_name: str = "",
    contrast: tuple[int, str] | None = None,
) -> Bounds:
    """Return bounds of the rows of a fit; see `Reported.bounds`.

    Without groups, those of a ``contrast`` add their difference: a column of X that is 0 or 1, and
    what the two are called.
    """
    level = read_conf_level(conf_level)
    if isinstance(group, str) and fit.origin.design is not None:
        group = column_or_values(passed.X, group, "group", keep=True)
    elif isinstance(group, str):
        X, group = take_column(fit, passed.X, group, "group", "the name of a column of X")
        passed = passed._replace(X=X)
    read = read_fit_rows(fit, passed, clusters=fit.spec.cov_type == "cluster")
    cells = read.sample.cells
    if fit.design is not None and not fit.design.n_psu:
        # Replicate weights tell no units.
        cells = None
    rows = held(read.rows, "bounds")
    if fit.family.sees_everyone:
        return _of_effect(fit, rows, cells, group, y_range, level, model)
    groups = _groups(fit, read, passed, rows, group)
    outcomes = list(_outcomes(fit, rows, cells, y_range))
    told, why_not = _model_says(fit, rows, groups, len(outcomes), level)
    lines: list[BoundRow] = []
    notes = [*([] if told is not None else [why_not]), *_linearized(fit)]
    for place, outcome in enumerate(outcomes):
        own, last = None if told is None else told.of(place), len(lines)
        lines += _lines(outcome, groups, level, own, notes)
    first, apart = outcomes[0], None
    if groups is None and contrast is not None:
        apart = _apart(fit, rows, outcomes, contrast, level)
    named = outcome_name or outcome_of(fit)
    of_classes = first.quantity != "mean"
    what = "probability" if of_classes else "mean"
    several = "probabilities" if of_classes else "means"
    about = f"the {what}" if len(lines) == 1 else several
    lines += [] if apart is None else [apart]
    result = replace(first.read, name=named).result(
        f"Bounds of {about} of {shown(named)}",
        lines,
        level,
        None if of_classes else first.span,
        observed=y_range is None and not of_classes,
        notes=notes,
    )
    # A page about an ordered outcome is about its highest class.
    return replace(result, model=model, told=last, has_contrast=apart is not None)


def _linearized(fit: Fit) -> list[str]:
    """Say that replicate weights do not give the standard errors of bounds, if a fit has them."""
    return [LINEARIZED] if fit.design is not None and fit.design.n_replicates else []


def bounds_or_none(
    fit: Fit,
    passed: PassedRows,
    model: str,
    outcome: str = "",
    contrast: tuple[int, str] | None = None,
) -> Bounds | None:
    """Return bounds of the rows of a fit, None where there are none to show."""
    if fit.probit is None or fit.family.sees_everyone:
        return None
    try:
        return bounds_of_model(fit, passed, model=model, outcome_name=outcome, contrast=contrast)
    except HeckmanfaError:
        return None


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The outcome, or one of its classes."""

    read: Read
    span: Span
    quantity: str
    noun: str
    """as in `BoundRow`"""


@dataclass(frozen=True, eq=False)
class _Told:
    """What a model says of groups, by class."""

    values: Floats
    """(c g,) ordered by class, then by group"""
    covariance: Floats
    limits: Floats | None
    """(c g, 2) of an average; None otherwise"""
    reach: float
    """half the width of an interval, in standard errors"""
    n_groups: int

    def of(self, place: int) -> _Told:
        """Return what it says of one class."""
        span = slice(place * self.n_groups, (place + 1) * self.n_groups)
        limits = None if self.limits is None else self.limits[span]
        return replace(
            self, values=self.values[span], covariance=self.covariance[span, span], limits=limits
        )

    def mean(self, group: int) -> tuple[float, float, float]:
        """Return what it says of a group, with an interval."""
        if self.limits is not None:
            low, high = map(float, self.limits[group])
            return float(self.values[group]), low, high
        return self._combined(np.eye(self.n_groups)[group])

    def difference(self, group: int, base: int) -> tuple[float, float, float]:
        """Return what it says of a difference of groups, with an interval."""
        identity = np.eye(self.n_groups)
        return self._combined(identity[group] - identity[base])

    def _combined(self, weights: Floats) -> tuple[float, float, float]:
        value = float(weights @ self.values)
        with np.errstate(invalid="ignore"):
            reach = self.reach * float(np.sqrt(weights @ self.covariance @ weights))
        return value, value - reach, value + reach


def _lines(
    outcome: _Outcome, groups: Groups | None, level: float, told: _Told | None, notes: list[str]
) -> Iterator[BoundRow]:
    """Yield the bounds of an outcome: of all rows, or of groups with their differences."""
    noun = outcome.noun
    means = mean_rows(outcome.read, outcome.span, groups, level, outcome.quantity, noun=noun)
    if groups is not None:
        others = difference_rows(outcome.read, outcome.span, groups, 0, level, noun=noun)
        for place, row in enumerate(others, start=1):
            known = row.model if told is None else told.difference(place, 0)
            yield replace(row, quantity=_less(outcome.quantity), model=known)
        if len(groups.labels) == 2:
            yield from _trimmed(outcome, groups, level, notes)
    for place, row in enumerate(means):
        yield row if told is None else replace(row, model=told.mean(place))


def _apart(
    fit: Fit,
    rows: ArrayRows,
    outcomes: Sequence[_Outcome],
    contrast: tuple[int, str],
    level: float,
) -> BoundRow | None:
    """Return the bounds of the difference of two groups, of the highest class if there are some.

    None if the rows of the fit do not have both groups.
    """
    column, said = contrast
    used = np.asarray(host(rows.used), dtype=bool)
    values = host(rows.source.take(0, len(used), [column]))[used, 0]
    second = values == 1.0
    if not (second | (values == 0.0)).all() or second.all() or not second.any():
        return None
    groups, outcome = Groups(second.astype(np.intp), ("0", "1")), outcomes[-1]
    told, _ = _model_says(fit, rows, groups, len(outcomes), level)
    (row,) = difference_rows(outcome.read, outcome.span, groups, 0, level, noun=outcome.noun)
    known = row.model if told is None else told.of(len(outcomes) - 1).difference(1, 0)
    return replace(row, quantity=_less(outcome.quantity), group=said, model=known)


def _less(quantity: str) -> str:
    """Return what a difference of means, or of probabilities, is called."""
    return "difference" if quantity == "mean" else f"difference in {quantity}"


def _trimmed(
    outcome: _Outcome, groups: Groups, level: float, notes: list[str]
) -> Iterator[BoundRow]:
    """Yield the trimming bounds of the difference of two groups."""
    second, rows = groups.mask(1), outcome.read.rows
    if not ((rows.seen & second).any() and (rows.seen & ~second).any()):
        return
    name = f"{groups.said(1)} less {groups.labels[0]}"
    sides = groups.said(1), groups.said(0)
    row, said = lee_row(outcome.read, second, None, None, level, group=name, sides=sides)
    notes += said
    yield replace(
        row,
        quantity=f"{_less(outcome.quantity)}, always observed",
        noun=f"the difference in {outcome.noun} among those observed in either group",
    )


def _read(fit: Fit, rows: ArrayRows, cells: Cells | None, outcome: Floats, seen: Mask) -> Read:
    """Return the rows of a fit as bounds need them."""
    used = np.asarray(host(rows.used), dtype=bool)
    weight = np.ones(len(used)) if rows.weight is None else np.asarray(host(rows.weight))
    units = None if rows.group is None else np.asarray(host(rows.group))[used]
    chosen = SeenRows(np.where(seen, outcome, 0.0)[used], seen[used], weight[used])
    return Read(chosen, Sampling(chosen.weight, fit.spec.weight_kind, units, cells), used)


def _outcomes(fit: Fit, rows: ArrayRows, cells: Cells | None, y_range: Any) -> Iterator[_Outcome]:
    """Yield the outcome of a fit, or whether it is of each class that there are bounds of."""
    outcome, seen = np.asarray(host(rows.outcome)), np.asarray(host(rows.selected), dtype=bool)
    classes: Sequence[Any] | None = fit.ordered_classes
    places = range(len(classes or ()))
    if classes is None and fit.classes is not None:
        classes, places = fit.classes, range(1, 2)
    if classes is None:
        read = _read(fit, rows, cells, outcome, seen)
        yield _Outcome(read, read_span(y_range, read.rows), "mean", "the mean of {outcome}")
        return
    if y_range is not None:
        raise InputError(f"probabilities lie between 0 and 1: leave {option('y_range')} out")
    for place in places:
        read = _read(fit, rows, cells, (outcome == place).astype(np.float64), seen)
        quantity = f"P(y = {class_label(classes[place])})"
        yield _Outcome(read, (0.0, 1.0), quantity, quantity)


def _groups(
    fit: Fit, read: FitRows, passed: PassedRows, rows: ArrayRows, group: Any
) -> Groups | None:
    """Read the groups of the rows of a fit."""
    if group is None:
        return None
    name = getattr(group, "name", None)
    if read.design is not None:
        group = read.design.rows_of(passed.X, group, "group")
    groups = read_groups(group, np.asarray(host(rows.used), dtype=bool))
    if len(groups.labels) < 2:
        raise InputError("group has one group in the rows of the fit: leave it out")
    return replace(groups, name=str(name) if isinstance(name, str) else groups.name)


def _model_says(
    fit: Fit, rows: ArrayRows, groups: Groups | None, n_outcomes: int, level: float
) -> tuple[_Told | None, str]:
    """Return E[y | x] averaged over the rows of each group, or why the model does not say it."""
    try:
        refuse_unknown(fit, "marginal")
    except NotIdentifiedError:
        return None, f"{capitalised(fit.family.words.model)}: it does not identify the mean."
    estimates = Estimates.of(fit, prediction=True, selection=False)
    used = np.asarray(host(rows.used), dtype=bool)
    columns = host(rows.source.take(0, len(used), estimates.columns))[used]
    if not np.isfinite(columns).all():
        return None, f"The model's estimate is left out: {_GAPS}."
    design = with_ones(columns)
    weight = np.ones(len(used)) if rows.weight is None else np.asarray(host(rows.weight))
    masks = [np.ones(len(design), dtype=bool)]
    if groups is not None:
        masks = [groups.mask(place) for place in range(len(groups.labels))]
    shares = [weight[used] * mask / weight[used][mask].sum() for mask in masks]

    def over(own: Estimates, targets: Sequence[str]) -> tuple[Floats, Floats]:
        sums = [
            level_effect(own.parts(target, design), design).average(share)
            for target in targets
            for share in shares
        ]
        return np.array([value for value, _ in sums]), np.array([slope for _, slope in sums])

    with one_blas_thread():
        if fit.ordered_classes is not None:
            values, _, limits, covariance = class_effects(
                fit, estimates, ["marginal"], over, whole=1.0, conf_level=level
            )
        else:
            values, _, limits, covariance = judged(
                fit, estimates, lambda own: over(own, ["marginal"]), conf_level=level
            )
    assert len(values) == n_outcomes * len(masks)
    reach = distribution_of(fit).quantile(level)
    return _Told(values, covariance, limits, reach, len(masks)), ""


def _of_effect(
    fit: Fit,
    rows: ArrayRows,
    cells: Cells | None,
    group: Any,
    y_range: Any,
    level: float,
    model: str,
) -> Bounds:
    """Return the bounds of a treatment's average effect, beside the model's."""
    if group is not None:
        raise InputError(
            "bounds of a treatment's effect are of all rows: pass the rows of one group to "
            "heckmanfa.bounds.effect"
        )
    outcome = np.asarray(host(rows.outcome))
    read = _read(fit, rows, cells, outcome, np.ones(len(outcome), dtype=bool))
    span = read_span(y_range, read.rows)
    treated = np.asarray(host(rows.selected), dtype=bool)[read.used]
    table = average_effects(fit, None, None, None, None, level, model)
    effect = table[table["effect"] == "ate"][["estimate", "ci_low", "ci_high"]].to_numpy()[0]
    told = float(effect[0]), float(effect[1]), float(effect[2])
    named = outcome_of(fit)
    result = replace(read, name=named).result(
        f"Bounds of the effect of treatment on {shown(named)}",
        (replace(effect_row(read, treated, span, level), model=told),),
        level,
        span,
        observed=y_range is None,
        notes=_linearized(fit),
    )
    return replace(result, model=model)

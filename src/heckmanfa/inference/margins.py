"""Marginal effects: what a change in a feature does to expected outcomes and to selection.

A feature in both equations moves E[y | x, s = 1] in two ways: through its coefficient, and through
who is selected. The delta method gives standard errors from the joint covariance of both equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.rows import Mask, one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.array_changes import array_rows
from heckmanfa.inference.average_effects import Functions, average_functions, is_averaged
from heckmanfa.inference.class_margins import class_effects, quantities_of
from heckmanfa.inference.effect_cells import (
    Blocks,
    Cell,
    Change,
    EffectBlock,
    EffectRows,
    Where,
    read_where,
)
from heckmanfa.inference.expectations import (
    TARGETS,
    Effect,
    Estimates,
    level_effect,
    refuse_unknown,
    slope_effect,
)
from heckmanfa.inference.formula_changes import formula_rows
from heckmanfa.inference.log_means import check_scale, transform_of
from heckmanfa.inference.margin_report import GROUP, MarginCell, Margins, quantity
from heckmanfa.inference.rows_of_fit import probit_of
from heckmanfa.model.expectation_parts import Parts
from heckmanfa.results.catalogue import sentences_of
from heckmanfa.results.distribution import check_level, distribution_of
from heckmanfa.results.naming import class_label, name_on_scale, scale_notes
from heckmanfa.results.search_facts import search_notes
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import listed, nearest, weighing

_DEFAULT = ("marginal", "selected", "selection")
# Numbers of one report: their covariance has the square of this many.
_MOST = 5000


def margins(
    fit: Fit,
    X: Any,
    kind: str | Sequence[str],
    at: Any,
    features: Sequence[Any] | None,
    *,
    sample_weight: Any,
    conf_level: float,
    over: Any = None,
    what: str = "effects",
    scale: str = "response",
) -> Margins:
    """Compute marginal effects of features; see `Heckman.margins`."""
    kinds, notes = _read_kinds(fit, kind)
    check_scale(scale, binary=fit.family.reads_labels)
    match_rows({"X": X, "over": over, "sample_weight": sample_weight})
    where = read_where(at, over, what)
    if where.predictions and features is not None:
        raise InputError("features have effects, not predictions: drop features, or what")
    for target in kinds:
        refuse_unknown(fit, target, level=where.predictions)
    reference = distribution_of(fit)
    check_level(conf_level)
    estimates = Estimates.of(
        fit,
        prediction=any(target != "selection" for target in kinds),
        selection=any(target != "marginal" for target in kinds),
        transform=transform_of(fit, scale),
    )
    read = array_rows if fit.origin.design is None else formula_rows
    # If every outcome was observed, all rows are selected.
    targets = kinds if fit.probit is not None else ["marginal"] * len(kinds)
    with one_blas_thread():
        rows = read(fit, X, estimates, where, features, sample_weight)
        # Of ordered classes, each but that of selection stands for as many numbers as classes.
        quantities = quantities_of(fit, kinds)
        _refuse_many(len(quantities) * len(rows.cells) * max(len(rows.changes), 1))
        if fit.ordered_classes is not None:
            predicted = 1.0 if where.predictions else 0.0
            effects, error, limits, covariance = class_effects(
                *(fit, estimates, targets, lambda own, asked: _over_cells(own, asked, rows)),
                whole=predicted,
                conf_level=conf_level,
            )
        else:
            effects, error, limits, covariance = judged(
                fit,
                estimates,
                lambda own: _over_cells(own, targets, rows),
                conf_level=conf_level,
            )
    targets = [quantity[0] for quantity in quantities_of(fit, targets)]
    no_effect = _without_effect(targets, rows, where, estimates)
    effects[no_effect], error[no_effect] = 0.0, 0.0
    covariance[no_effect], covariance[:, no_effect] = 0.0, 0.0
    table = _labelled(quantities, rows, where)
    labels = tuple(table.columns)
    table = table.assign(**reference.columns(effects, error, conf_level))
    if limits is not None:
        table[["ci_low", "ci_high"]] = np.where(no_effect[:, None], 0.0, limits)
        # What two-step fits do not average keeps its test.
        tested = (table["target"] == "selection") & (fit.spec.method == "two-step")
        table.loc[~tested, ["statistic", "p_value"]] = np.nan
    if rows.n_left_out:
        notes.append(f"{rows.n_left_out} rows lack a variable of the formulas, and are left out.")
    outcome = "y" if scale == "response" else name_on_scale("y", fit.spec.outcome_transform)
    said = _notes(fit, kinds, table, outcome, scale, where)
    notes += [*rows.notes, *said, *reference.notes()]
    return Margins(
        table=table,
        covariance=covariance,
        at="means" if where.means else "average",
        conf_level=float(conf_level),
        n_rows=rows.n_rows,
        notes=tuple(notes),
        weighing=weighing(fit.spec.weight_kind, rows.n_rows, rows.total),
        positive=_positive(fit),
        outcome=outcome,
        labels=labels,
        cells=tuple(_margin_cell(cell, rows.fixed, over) for cell in rows.cells),
        contrasts=tuple(change.contrast for change in rows.changes),
        predictions=where.predictions,
        reference=reference,
        averaged=limits is not None,
    )


def _without_effect(
    targets: Sequence[str], rows: EffectRows, where: Where, estimates: Estimates
) -> Mask:
    """Return which effects are zero, without error or test: the target does not use the feature."""
    if where.predictions:
        return np.zeros(len(targets) * len(rows.cells), dtype=bool)
    return np.array(
        [
            not change.moved & estimates.used_by(target)
            for target in targets
            for _ in rows.cells
            for change in rows.changes
        ]
    )


def _margin_cell(cell: Cell, names: Sequence[str], over: Any) -> MarginCell:
    fixed = tuple(zip(names, cell.fixed, strict=True))
    return MarginCell(fixed, cell.group, over if isinstance(over, str) else GROUP, cell.n_rows)


def _labelled(
    quantities: Sequence[tuple[Any, ...]], rows: EffectRows, where: Where
) -> pd.DataFrame:
    """Return the columns of a table that say which number is which.

    A quantity is a target, or a target and a class.
    """
    names = ["target", "class"][: len(quantities[0])]
    names += ["over"] if where.over is not None else []
    names += [f"at_{name}" for name in rows.fixed]
    names += [] if where.predictions else ["term", "change"]
    groups = where.over is not None
    lines = [
        (*quantity, *([cell.group] if groups else []), *cell.fixed, *change)
        for quantity in quantities
        for cell in rows.cells
        for change in ([()] if where.predictions else [change[:2] for change in rows.changes])
    ]
    return pd.DataFrame(lines, columns=names)


def _refuse_many(count: int) -> None:
    """Refuse more numbers than their joint covariance should have."""
    if count > _MOST:
        raise InputError(
            f"this asks for {count:,} numbers, and at most {_MOST:,} are given at once: fix fewer "
            "values in at, or name fewer features, kinds or groups"
        )


def _over_cells(
    estimates: Estimates, targets: Sequence[str], rows: EffectRows
) -> tuple[Floats, Floats]:
    """Do what `sum_effects` does in every cell; ordered by target, then by cell and change."""
    shape = (len(targets), max(len(rows.changes), 1))
    blocks = [cell.blocks() if rows.changes else _levels(cell.blocks()) for cell in rows.cells]
    sums = [sum_effects(estimates, targets, shape[1], own) for own in blocks]
    values = np.stack([effects.reshape(shape) for effects, _ in sums], axis=1)
    gradients = np.stack([slopes.reshape(*shape, -1) for _, slopes in sums], axis=1)
    return values.ravel(), gradients.reshape(-1, gradients.shape[-1])


def _levels(blocks: Blocks) -> Blocks:
    """Ask for expectations, where there are no changes to ask for."""
    for weight, design, _ in blocks:
        yield weight, design, iter([Change(after=design)])


def _positive(fit: Fit) -> str:
    """Return the positive class of a binary outcome as sentences write it; empty if linear.

    Of ordered classes, tables have a column of them.
    """
    if fit.ordered_classes is not None:
        return "class"
    return "" if fit.classes is None else class_label(fit.classes[1])


def judged(
    fit: Fit,
    estimates: Estimates,
    effects_at: Functions,
    *,
    conf_level: float,
) -> tuple[Floats, Floats, Floats | None, Floats]:
    """Return effects, standard errors, limits (None unless averaged) and their covariance."""
    if is_averaged(fit, estimates):
        return average_functions(fit, estimates, effects_at, conf_level)
    effects, gradients = effects_at(estimates)
    covariance = gradients @ estimates.covariance @ gradients.T
    with np.errstate(invalid="ignore"):
        return effects, np.sqrt(np.diag(covariance)), None, covariance


def sum_effects(
    estimates: Estimates, targets: Sequence[str], n_changes: int, blocks: Iterable[EffectBlock]
) -> tuple[Floats, Floats]:
    """Sum effects and their gradients over the rows, ordered by target, then by change."""
    values = np.zeros((len(targets), n_changes))
    gradients = np.zeros((len(targets), n_changes, len(estimates.covariance)))

    def parts_at(design: Floats) -> list[Parts]:
        return [estimates.parts(target, design) for target in targets]

    for weight, design, changes in blocks:
        base = parts_at(design)
        for i, change in enumerate(changes):
            for target, sign, effect in _terms(estimates, change, design, base, parts_at):
                value, gradient = effect.average(weight)
                values[target, i] += sign * value
                gradients[target, i] += sign * gradient
    return values.ravel(), gradients.reshape(-1, gradients.shape[-1])


def _terms(
    estimates: Estimates,
    change: Change,
    design: Floats,
    base: list[Parts],
    parts_at: Callable[[Floats], list[Parts]],
) -> Iterator[tuple[int, float, Effect]]:
    """Yield position of the target, sign and effect: a slope, or the levels after and before.

    A prediction is a level alone.
    """
    if change.slopes is not None:
        for target, parts in enumerate(base):
            yield target, 1.0, slope_effect(estimates, parts, design, change.slopes)
        return
    for sign, level in ((1.0, change.after), (-1.0, change.before)):
        if level is None:
            continue
        for target, parts in enumerate(parts_at(level)):
            yield target, sign, level_effect(parts, level)


def _read_kinds(fit: Fit, kind: Any) -> tuple[list[str], list[str]]:
    """Return the targets, and notes about those left out."""
    kinds = [kind] if isinstance(kind, str) else list(kind)
    if not kinds:
        raise InputError("kind is empty; name at least one of " + ", ".join(map(repr, TARGETS)))
    for target in kinds:
        if target not in TARGETS:
            raise InputError(
                f"kind must be some of {', '.join(map(quoted, TARGETS))}; got "
                f"{quoted(target)}{nearest(str(target), TARGETS)}"
            )
        if kinds.count(target) > 1:
            raise InputError(f"kind names {quoted(target)} twice")
    if fit.probit is not None:
        return kinds, []
    note = "No outcome was missing in the fit: nothing is known about selection."
    if tuple(kinds) == _DEFAULT:
        return ["marginal", "selected"], [note]
    if {"selection", "unselected"} & {*kinds}:
        probit_of(fit, "nothing is known about selection; ask for kind='marginal'")
    return kinds, [note]


def _notes(
    fit: Fit, kinds: list[str], table: pd.DataFrame, outcome: str, scale: str, where: Where
) -> list[str]:
    what = "Predictions" if where.predictions else "Effects"
    notes = ["Standard errors use the delta method, with these rows held fixed."]
    if {*kinds} - {"selection"}:
        notes += scale_notes(fit.spec.outcome_transform, scale, where.predictions)
    if fit.family.reads_labels:
        are = "are" if where.predictions else "are on"
        notes.append(f"{what} {are} probabilities: 0.01 is one percentage point.")
    if fit.way.is_average:
        notes.append(
            f"{what} {'of' if where.predictions else 'on'} the outcome are averaged over "
            "assignments: their intervals are quantiles of the mixture, and they have no p-value."
        )
    if "change" in table and (table["change"] != "slope").any():
        notes.append(
            "A feature that holds only 0 and 1 here, and each category, has a discrete change as "
            "its effect; others have a slope."
        )
    zero = table[table["std_error"] == 0]
    if "term" in table and len(zero):
        listings = []
        for target, rows in zero.groupby("target", sort=False):
            terms = listed([*dict.fromkeys(rows["term"].astype(str))])
            listings.append(f"{quantity(str(target), _positive(fit), outcome)}: {terms}")
        notes.append(
            "An effect of 0 with a standard error of 0 is not an estimate: its target does not "
            f"depend on the feature, and there is nothing to test ({'; '.join(listings)})."
        )
    if fit.probit is None:
        return notes
    notes += sentences_of(fit, "convergence", "search_ignored", "honest", "honest_target")
    if {"selected", "unselected", "expected"} & {*kinds}:
        notes += search_notes(fit, "margins")
    if table["std_error"].isna().any():
        notes.append(
            "The covariance of the estimates is not known, or not positive: see summary()."
        )
    return notes

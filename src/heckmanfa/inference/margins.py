"""Marginal effects: what a change in a feature does to expected outcomes and to selection.

A feature in both equations moves E[y | x, s = 1] in two ways: through its coefficient, and through
who is selected. The delta method gives standard errors from the joint covariance of both equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, one_blas_thread
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.average_effects import Functions, average_functions, is_averaged
from heckmanfa.inference.effect_rows import EffectBlock, array_rows, formula_rows
from heckmanfa.inference.expectation_parts import Parts
from heckmanfa.inference.expectations import (
    TARGETS,
    Effect,
    Estimates,
    level_effect,
    slope_effect,
)
from heckmanfa.inference.fit_rows import probit_of
from heckmanfa.inference.formula_variables import Change
from heckmanfa.inference.log_means import check_scale, transform_of
from heckmanfa.results.caveats import caveat_sentences
from heckmanfa.results.document import Section
from heckmanfa.results.effect_words import class_label
from heckmanfa.results.log_words import scale_notes
from heckmanfa.results.naming import name_on_scale
from heckmanfa.results.reference import check_level, reference_of
from heckmanfa.results.reports import Report
from heckmanfa.results.search_caveats import search_notes
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import listed, nearest, weighing

_DEFAULT = ("marginal", "selected", "selection")
_WORDS = {
    "marginal": ", {} with these features",
    "selected": ", given selection",
    "unselected": ", given that the row is not selected",
    "expected": "",
    "selection": "",
}
_GIVEN = {"marginal": "x", "selected": "x, s = 1", "unselected": "x, s = 0"}


def quantity(target: str, positive: str = "", outcome: str = "y") -> str:
    """Write what an effect is on; ``positive`` is the positive class of a binary outcome.

    ``outcome`` is a linear outcome on the scale of the effects.
    """
    if target == "selection":
        return "P(s = 1 | x)"
    if target == "expected":
        joint = f"P(y = {positive}, s = 1 | x)"
        return joint if positive else f"P(s = 1 | x) E[{outcome} | x, s = 1]"
    given = _GIVEN[target]
    return f"P(y = {positive} | {given})" if positive else f"E[{outcome} | {given}]"


@dataclass(frozen=True, repr=False, eq=False)
class Margins(Report):
    """Marginal effects of m features on expectations; see `Heckman.margins`."""

    table: pd.DataFrame
    """as `tidy` gives it"""
    covariance: Floats
    """covariance of all effects, in the order of ``table``"""
    at: str
    conf_level: float
    n_rows: int
    """rows at which the effects were evaluated"""
    notes: tuple[str, ...]
    weighing: str = ""
    """how weights count these rows, in words"""
    positive: str = ""
    """positive class of a binary outcome, whose probability has these effects"""
    outcome: str = "y"
    """a linear outcome on the scale of the effects: "y", or "log(y)" with ``scale="link"``"""

    def tidy(self) -> pd.DataFrame:
        """Return effects, standard errors, tests and intervals.

        Returns
        -------
        DataFrame
            Columns target ("marginal", "selected", "unselected", "expected", "selection"), term,
            change ("slope", "0 to 1", or from one category to another), estimate, std_error,
            statistic (z; t with a cluster covariance), p_value, ci_low, ci_high. If the target does
            not depend on the feature, the effect and its standard error are 0, and statistic and
            p-value are NaN.
        """
        return self.table.copy()

    def vcov(self) -> pd.DataFrame:
        """Return the joint covariance of all effects, labelled by target, term and change."""
        labels = pd.MultiIndex.from_frame(self.table[["target", "term", "change"]])
        return pd.DataFrame(self.covariance.copy(), index=labels, columns=labels)

    def sections(self) -> list[Section]:
        """Return the parts of the report: a table for each target, then the notes."""
        where = {
            "average": f"effects averaged over {self.n_rows:,} rows{self.weighing}",
            "means": f"effects at the average of {self.n_rows:,} rows{self.weighing}",
        }[self.at]
        parts = [Section(f"Marginal effects: {where}")]
        for target, rows in self.table.groupby("target", sort=False):
            table = rows.drop(columns="target").reset_index(drop=True)
            whose = "for anyone" if self.positive else "the outcome of anyone"
            words = _WORDS[str(target)].format(whose)
            what = f"{quantity(str(target), self.positive, self.outcome)}{words}"
            parts.append(Section(f"Effects {target}: on {what}", table=table))
        return [*parts, Section(notes=self.notes)]


def margins(
    fit: Fit,
    X: Any,
    kind: str | Sequence[str],
    at: str,
    features: Sequence[Any] | None,
    *,
    sample_weight: Any,
    conf_level: float,
    scale: str = "response",
) -> Margins:
    """Compute marginal effects of features; see `Heckman.margins`."""
    kinds, notes = _read_kinds(fit, kind)
    check_scale(scale, binary=fit.is_binary)
    if at not in ("average", "means"):
        raise InputError(
            "at must be 'average' or 'means'; got "
            f"{quoted(at)}{nearest(str(at), ['average', 'means'])}"
        )
    reference = reference_of(fit)
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
        rows = read(fit, X, estimates, at, features, sample_weight)
        effects, error, limits, covariance = judged(
            fit,
            estimates,
            lambda own: sum_effects(own, targets, len(rows.changes), rows.blocks()),
            apart=np.repeat([target == "selection" for target in targets], len(rows.changes)),
            conf_level=conf_level,
            multiplied="expected" in targets,
        )
    # A target that is not a function of a feature has an effect of zero, without error or test.
    no_effect = np.array(
        [not moved & estimates.used_by(target) for target in targets for moved in rows.moved]
    )
    effects[no_effect], error[no_effect] = 0.0, 0.0
    covariance[no_effect], covariance[:, no_effect] = 0.0, 0.0
    table = pd.DataFrame(
        [(target, *change) for target in kinds for change in rows.changes],
        columns=["target", "term", "change"],
    )
    table = table.assign(**reference.columns(effects, error, conf_level))
    if limits is not None:
        table[["ci_low", "ci_high"]] = np.where(no_effect[:, None], 0.0, limits)
        # What two-step fits do not average keeps its test.
        tested = (table["target"] == "selection") & (fit.spec.method == "two-step")
        table.loc[~tested, ["statistic", "p_value"]] = np.nan
    if rows.n_left_out:
        notes.append(f"{rows.n_left_out} rows lack a variable of the formulas, and are left out.")
    outcome = "y" if scale == "response" else name_on_scale("y", fit.spec.outcome_transform)
    said = _notes(fit, kinds, table, outcome, scale)
    notes += [*rows.notes, *said, *reference.notes()]
    how = weighing(fit.spec.weight_kind, rows.n_rows, rows.total)
    return Margins(
        table,
        covariance,
        at,
        float(conf_level),
        rows.n_rows,
        tuple(notes),
        how,
        _positive(fit),
        outcome,
    )


def _positive(fit: Fit) -> str:
    """Return the positive class of a binary outcome as sentences write it; empty if linear."""
    return class_label(fit.classes[1]) if fit.is_binary and fit.classes is not None else ""


def judged(
    fit: Fit,
    estimates: Estimates,
    effects_at: Functions,
    *,
    apart: Mask,
    conf_level: float,
    multiplied: bool = False,
) -> tuple[Floats, Floats, Floats | None, Floats]:
    """Return effects, standard errors, limits (None unless averaged) and their covariance.

    Effects marked as ``apart`` depend on the selection equation alone. ``multiplied`` says whether
    the probability of selection multiplies some outcome.
    """
    if is_averaged(fit, estimates):
        return average_functions(
            fit, estimates, effects_at, apart, conf_level, multiplied=multiplied
        )
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
    """Yield position of the target, sign and effect: a slope, or the levels after and before."""
    if change.slopes is not None:
        for target, parts in enumerate(base):
            yield target, 1.0, slope_effect(estimates, parts, design, change.slopes)
        return
    for sign, level in ((1.0, change.after), (-1.0, change.before)):
        assert level is not None
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


def _notes(fit: Fit, kinds: list[str], table: pd.DataFrame, outcome: str, scale: str) -> list[str]:
    notes = ["Standard errors use the delta method, with these rows held fixed."]
    if {*kinds} - {"selection"}:
        notes += scale_notes(fit.spec.outcome_transform, scale)
    if fit.is_binary:
        notes.append("Effects are on probabilities: 0.01 is one percentage point.")
    if fit.average is not None:
        notes.append(
            "Effects on the outcome are averaged over assignments: their intervals are quantiles "
            "of the mixture, and they have no p-value."
        )
    if (table["change"] != "slope").any():
        notes.append(
            "A feature that holds only 0 and 1 here, and each category, has a discrete change as "
            "its effect; others have a slope."
        )
    zero = table[table["std_error"] == 0]
    if len(zero):
        parts = []
        for target, rows in zero.groupby("target", sort=False):
            terms = listed([*dict.fromkeys(rows["term"].astype(str))])
            parts.append(f"{quantity(str(target), _positive(fit), outcome)}: {terms}")
        notes.append(
            "An effect of 0 with a standard error of 0 is not an estimate: its target does not "
            f"depend on the feature, and there is nothing to test ({'; '.join(parts)})."
        )
    if fit.probit is None:
        return notes
    notes += caveat_sentences(fit, "not_converged", "search_ignored", "honest", "honest_target")
    if {"selected", "unselected", "expected"} & {*kinds}:
        notes += search_notes(fit, "margins")
    if table["std_error"].isna().any():
        notes.append(
            "The covariance of the estimates is not known, or not positive: see summary()."
        )
    return notes

"""Marginal effects: what a change in a feature does to expected outcomes and to selection.

A feature in both equations moves E[y | x, s = 1] in two ways, by its coefficient and by whom it
selects. Standard errors are by the delta method from the joint covariance of both equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.inference.changes import Blocks, formula_rows, plain_rows
from heckmanfa.inference.targets import (
    TARGETS,
    Effect,
    Estimates,
    Parts,
    level_effect,
    parts_of,
    slope_effect,
)
from heckmanfa.inference.variables import Move
from heckmanfa.results.caveats import caveat_sentences
from heckmanfa.results.document import Section
from heckmanfa.results.reference import reference_of
from heckmanfa.results.reports import Report
from heckmanfa.results.search_caveats import search_notes
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import listed, weighing

_DEFAULT = ("marginal", "selected", "selection")
_WORDS = {
    "marginal": "marginal: on E[y | x], the outcome of anyone with these features",
    "selected": "selected: on E[y | x, s = 1], given selection",
    "unselected": "unselected: on E[y | x, s = 0], given that the row is not selected",
    "selection": "selection: on P(s = 1 | x)",
}
_QUANTITIES = {
    "marginal": "E[y | x]",
    "selected": "E[y | x, s = 1]",
    "unselected": "E[y | x, s = 0]",
    "selection": "P(s = 1 | x)",
}


@dataclass(frozen=True, repr=False, eq=False)
class Margins(Report):
    """Marginal effects of m features on expectations; see `Heckman.margins`."""

    table: pd.DataFrame
    """as `tidy` gives it"""
    covariance: Floats
    """of all effects, in the order of ``table``"""
    at: str
    conf_level: float
    n_rows: int
    """rows that effects were taken at"""
    notes: tuple[str, ...]
    weighing: str = ""
    """what weights make of these rows, in words"""

    def tidy(self) -> pd.DataFrame:
        """Effects, standard errors, tests and intervals as a data frame.

        Returns
        -------
        DataFrame
            Columns target ("marginal", "selected", "unselected", "selection"), term, change
            ("slope", "0 to 1", or from one category to another), estimate, std_error, statistic
            (z; t with a cluster covariance), p_value, ci_low, ci_high. Where the target does not
            depend on the feature, the effect and its standard error are 0, and there is no
            statistic or p-value (NaN).
        """
        return self.table.copy()

    def vcov(self) -> pd.DataFrame:
        """Joint covariance of all effects, labelled (target, term, change) as in `tidy`."""
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
            parts.append(Section(f"Effects {_WORDS[str(target)]}", table=table))
        return [*parts, Section(notes=self.notes)]


def margins(
    fit: Fit,
    X: Any,
    kind: str | Sequence[str] = _DEFAULT,
    at: str = "average",
    features: Sequence[Any] | None = None,
    *,
    sample_weight: Any = None,
    conf_level: float = 0.95,
) -> Margins:
    """Marginal effects of features; see `Heckman.margins`."""
    kinds, notes = _read_kinds(fit, kind)
    if at not in ("average", "means"):
        raise InputError(
            "at must be 'average' or 'means'; got "
            f"{quoted(at)}{nearest(str(at), ['average', 'means'])}"
        )
    reference = reference_of(fit)
    quantile = reference.quantile(conf_level)
    needs = {
        "prediction": any(one != "selection" for one in kinds),
        "selection": fit.probit is not None and any(one != "marginal" for one in kinds),
    }
    estimates = Estimates.of(fit, **needs)
    take_in = plain_rows if fit.origin.design is None else formula_rows
    # Where every outcome was observed, all are selected.
    targets = kinds if fit.probit is not None else ["marginal"] * len(kinds)
    with one_blas_thread():
        rows = take_in(fit, X, estimates, at, features, sample_weight, **needs)
        effects, gradients = _effects(estimates, targets, len(rows.changes), rows.blocks)
        covariance = gradients @ estimates.covariance @ gradients.T
    # What is not a function of a feature has an effect of zero by construction: it has no error,
    # and there is nothing to test.
    nothing = np.array(
        [not moved & estimates.used_by(one) for one in targets for moved in rows.moved]
    )
    effects[nothing] = 0.0
    covariance[nothing], covariance[:, nothing] = 0.0, 0.0
    table = pd.DataFrame(
        [(target, *change) for target in kinds for change in rows.changes],
        columns=["target", "term", "change"],
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.diag(covariance))
        table["estimate"], table["std_error"] = effects, error
        table["statistic"] = effects / error
        table["p_value"] = reference.p_value(effects / error)
    table["ci_low"], table["ci_high"] = effects - quantile * error, effects + quantile * error
    if rows.n_left_out:
        notes.append(f"{rows.n_left_out} rows miss a variable of the formulas, and are left out.")
    notes += [*rows.notes, *_notes(fit, kinds, table), *reference.notes()]
    how = weighing(fit.spec.weight_kind, rows.n_rows, rows.total)
    return Margins(table, covariance, at, float(conf_level), rows.n_rows, tuple(notes), how)


def _effects(
    estimates: Estimates, targets: Sequence[str], n_changes: int, blocks: Blocks
) -> tuple[Floats, Floats]:
    """Sum effects and their gradients over the rows: targets one after another, then changes."""
    values = np.zeros((len(targets), n_changes))
    gradients = np.zeros((len(targets), n_changes, len(estimates.covariance)))

    def parts_at(design: Floats) -> list[Parts]:
        index = design @ estimates.selection_coef
        return [parts_of(one, index, estimates.imr_coef) for one in targets]

    for weight, design, moves in blocks:
        base = parts_at(design)
        for change, move in enumerate(moves):
            for target, sign, effect in _terms(estimates, move, design, base, parts_at):
                value, gradient = effect.average(weight)
                values[target, change] += sign * value
                gradients[target, change] += sign * gradient
    return values.ravel(), gradients.reshape(-1, gradients.shape[-1])


def _terms(
    estimates: Estimates,
    move: Move,
    design: Floats,
    base: list[Parts],
    parts_at: Callable[[Floats], list[Parts]],
) -> Iterator[tuple[int, float, Effect]]:
    """Yield place of the target, sign and effect: a slope, or what is after and before."""
    if move.slopes is not None:
        for target, parts in enumerate(base):
            yield target, 1.0, slope_effect(estimates, parts, design, move.slopes)
        return
    for sign, level in ((1.0, move.after), (-1.0, move.before)):
        assert level is not None
        for target, parts in enumerate(parts_at(level)):
            yield target, sign, level_effect(estimates, parts, level)


def _read_kinds(fit: Fit, kind: Any) -> tuple[list[str], list[str]]:
    """Return the targets, and what there is to say about those left out."""
    kinds = [kind] if isinstance(kind, str) else list(kind)
    if not kinds:
        raise InputError("kind is empty; name at least one of " + ", ".join(map(repr, TARGETS)))
    for one in kinds:
        if one not in TARGETS:
            raise InputError(
                "kind must be some of 'marginal', 'selected', 'unselected' and 'selection'; got "
                f"{quoted(one)}{nearest(str(one), TARGETS)}"
            )
        if kinds.count(one) > 1:
            raise InputError(f"kind names {quoted(one)} twice")
    if fit.probit is not None:
        return kinds, []
    note = "No outcome was missing in the fit: nothing is known about selection."
    if tuple(kinds) == _DEFAULT:
        return ["marginal", "selected"], [note]
    unknown = [one for one in kinds if one in ("selection", "unselected")]
    if unknown:
        raise NotIdentifiedError(
            f"kind {quoted(unknown[0])}: no outcome was missing in the fit, so nothing is "
            "known "
            "about selection; ask for kind='marginal'"
        )
    return kinds, [note]


def _notes(fit: Fit, kinds: list[str], table: pd.DataFrame) -> list[str]:
    notes = ["Standard errors are by the delta method, with these rows held fixed."]
    if (table["change"] != "slope").any():
        notes.append(
            "A feature that holds only 0 and 1 here, and each category, has a discrete change as "
            "its effect; others have a slope."
        )
    zero = table[table["std_error"] == 0]
    if len(zero):
        parts = [
            f"{_QUANTITIES[str(target)]}: {listed([*dict.fromkeys(rows['term'].astype(str))])}"
            for target, rows in zero.groupby("target", sort=False)
        ]
        notes.append(
            "An effect of 0 with a standard error of 0 is not an estimate: what it is the effect "
            f"on does not depend on the feature, and there is nothing to test ({'; '.join(parts)})."
        )
    if fit.probit is None:
        return notes
    notes += caveat_sentences(fit, "not_converged", "search_ignored", "honest", "honest_target")
    if {"selected", "unselected"} & {*kinds}:
        notes += search_notes(fit, "margins")
    if table["std_error"].isna().any():
        notes.append(
            "The covariance of the estimates is not known, or not positive: see summary()."
        )
    return notes

"""Average effects of a treatment as a table, of the rows of the fit or of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats, host, on_host
from heckmanfa.data.group_cells import labelled_groups
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.rows import Mask
from heckmanfa.data.sample import known_flags, read_weights
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.fit.treatment_details import (
    AveragedTreatment,
    effect_estimates,
    gradient_in_terms,
    treatment_details,
)
from heckmanfa.inference.average_effects import group_fits, mixture_of
from heckmanfa.inference.prediction import read_rows
from heckmanfa.inference.rows_of_fit import column_or_values, take_column, weights_of
from heckmanfa.model.treatment_effects import (
    KINDS,
    EffectKind,
    average_effect,
    effect_sums,
    largest_log_weight,
)
from heckmanfa.plots.effect_intervals import EffectIntervals, EffectRow
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.naming import outcome_of
from heckmanfa.results.treatment_evidence import EffectOn

_Row = tuple[EffectKind, Any, float, Floats, float]


def average_effects(
    fit: Fit,
    X: Any,
    treated: Any,
    by: Any,
    sample_weight: Any,
    conf_level: float,
    model: str,
) -> pd.DataFrame:
    """Return the table of `TreatmentModel.effects`."""
    if X is None:
        passed = {"treated": treated, "by": by, "sample_weight": sample_weight}
        named = [name for name, value in passed.items() if value is not None]
        if named:
            raise InputError(f"{model}.effects needs X with {named[0]}: pass the rows as well")
    passed_rows = X, treated, by, sample_weight
    rows = [*(_of_fit(fit) if X is None else _of_rows(fit, *passed_rows))]
    table = pd.DataFrame({"effect": [kind for kind, *_ in rows]})
    if by is not None:
        table["group"] = [group for _, group, *_ in rows]
    numbers = _of_average if fit.way.is_average else _of_one_fit
    n_rows = [n for *_, n in rows]
    table = table.assign(**numbers(fit, rows, passed_rows, conf_level))
    return table.assign(n_rows=[round(n) if float(n).is_integer() else n for n in n_rows])


def _of_one_fit(fit: Fit, rows: list[_Row], passed: Any, conf_level: float) -> dict[str, Any]:
    """Return the columns of numbers of a table of effects, by the delta method."""
    estimate = np.array([value for _, _, value, _, _ in rows])
    variance = [gradient @ fit.covariance @ gradient for _, _, _, gradient, _ in rows]
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.array(variance))
    return distribution_of(fit).columns(estimate, errors, conf_level)


def _of_average(
    fit: Fit, rows: list[_Row], passed: tuple[Any, ...], conf_level: float
) -> dict[str, Any]:
    """Return the same of an average: quantiles of the mixture of its assignments, and no tests."""
    groups, parts = group_fits(fit), []
    details = treatment_details(fit)
    for place, group in enumerate(groups):
        if passed[0] is not None:
            own = [*_of_rows(group.fit, *passed)]
            values = np.array([value for _, _, value, _, _ in own])
            gradients = np.array([gradient for _, _, _, gradient, _ in own])
        else:
            assert isinstance(details, AveragedTreatment)
            values, gradients = details.group_effects[place], details.group_gradients[place]
        parts.append((values, gradients, gradients @ group.fit.covariance @ gradients.T))
    estimate, errors, limits, _ = mixture_of(fit, groups, parts, conf_level)
    nothing = np.full(len(estimate), np.nan)
    tests = {"statistic": nothing, "p_value": nothing}
    ends = {"ci_low": limits[:, 0], "ci_high": limits[:, 1]}
    return {"estimate": estimate, "std_error": errors, **tests, **ends}


def _of_fit(fit: Fit) -> Iterator[_Row]:
    """Yield the effects of the rows of the fit."""
    details = treatment_details(fit)
    known = details.effects, details.gradients, details.n_rows
    for kind, value, gradient, n in zip(KINDS, *known, strict=True):
        yield kind, None, float(value), gradient, n


_NAMES = {
    "ate": "Everyone (ATE)",
    "att": "The treated (ATT)",
    "atu": "The untreated (ATU)",
    "margin": "Those at the margin",
}


def effect_picture(
    fit: Fit, X: Any, treated: Any, by: Any, sample_weight: Any, model: str
) -> EffectIntervals:
    """Return the picture of the effects, with those of groups below, and naive ones last."""
    options = sample_weight, CONF_LEVEL, model
    rows = [*_rows_of(average_effects(fit, X, treated, None, *options)), *naive_rows(fit)]
    if by is not None:
        table = average_effects(fit, X, treated, by, *options)
        rows += _rows_of(table[table["effect"] == "ate"])
    return EffectIntervals(outcome_of(fit), tuple(rows))


def naive_rows(fit: Fit) -> list[EffectRow]:
    """Return what takes treatment as if it were drawn by lot, given the features and without."""
    details, quantile = treatment_details(fit), distribution_of(fit).quantile(CONF_LEVEL)
    naive = {"Least squares": details.least_squares, "Difference of means": details.means}
    n = float(details.n_rows[0])
    return [
        EffectRow(name, value, value - quantile * error, value + quantile * error, n, naive=True)
        for name, (value, error) in naive.items()
    ]


def effect_rows(effects: Iterable[EffectOn], head: str = "") -> list[EffectRow]:
    """Return the rows of average effects; those of groups are named by them, below a ``head``."""
    return [
        EffectRow(
            each.group or _NAMES[each.kind],
            *(each.effect.estimate, each.effect.low, each.effect.high, each.n_rows),
            group=head if each.group else "",
        )
        for each in effects
    ]


def _rows_of(table: pd.DataFrame) -> Iterator[EffectRow]:
    """Yield the rows of a picture; those of groups are named by them."""
    for row in table.to_dict("records"):
        ends = row["estimate"], row["ci_low"], row["ci_high"], row["n_rows"]
        name = _NAMES[row["effect"]] if "group" not in row else str(row["group"])
        yield EffectRow(name, *ends, group="By group" if "group" in row else "")


def _of_rows(fit: Fit, X: Any, treated: Any, by: Any, sample_weight: Any) -> Iterator[_Row]:
    """Yield the effects of rows that are passed, by group."""
    match_rows({"X": X, "treated": treated, "by": by, "sample_weight": sample_weight})
    labels, frame = None, X
    sample_weight = weights_of(fit, X, sample_weight, other_rows=True)
    sample_weight = column_or_values(frame, sample_weight, "sample_weight")
    if isinstance(by, str):
        if fit.origin.design is None:
            X, labels = take_column(fit, X, by, "by", "a column of X")
        else:
            labels = column_or_values(X, by, "by")
    elif by is not None:
        labels = by
    table = read_rows(fit, on_host(X), prediction=True, selection=True)
    assert fit.probit is not None
    n = table.n_rows
    if n == 0:
        raise InputError("X has no rows to average effects over")
    x, z = (
        np.column_stack([np.ones(n), host(table.source(columns).take(0, n, columns))])
        for columns in (fit.equation, [*fit.probit.features])
    )
    weight = np.ones(n) if sample_weight is None else read_weights(on_host(sample_weight), n)
    known, used = None, weight > 0
    if treated is not None:
        flags, unknown = known_flags(on_host(column_or_values(frame, treated, "treated")), n)
        known, used = flags.astype(np.float64), used & ~unknown
    groups: list[tuple[Any, Mask]] = [(None, used)]
    if labels is not None:
        codes, names = labelled_groups(on_host(labels), used, "by")
        groups = [(name, used & (codes == code)) for code, name in enumerate(names.tolist())]
    estimates = effect_estimates(fit)
    for group, chosen in groups:
        d = None if known is None else known[chosen]
        for kind in KINDS:
            own = x[chosen], z[chosen], weight[chosen]
            highest = largest_log_weight(kind, own[1] @ estimates.gamma, known=d is not None)
            sums = effect_sums(kind, estimates, *own, d, highest)
            effect = average_effect(sums, x.shape[1], z.shape[1])
            counted = own[2] if fit.spec.weight_kind == "frequency" else np.ones(len(own[2]))
            n_rows = _count(kind, d, counted)
            yield kind, group, effect.value, gradient_in_terms(fit, effect), n_rows


def _count(kind: EffectKind, treated: Floats | None, counted: Floats) -> float:
    """Count the rows that an effect is an average of, given how many rows each stands for."""
    if treated is None or kind in ("ate", "margin"):
        return float(counted.sum())
    return float(counted @ (treated if kind == "att" else 1.0 - treated))

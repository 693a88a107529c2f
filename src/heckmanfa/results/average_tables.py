"""What an average over assignments says: chances, roles, assignments, and intervals.

The distribution of an averaged estimate is a mixture: with the weight of assignment S, normal
about the estimate in S, and a point mass at zero if S does not hold the feature. Its quantiles are
the intervals. Chances and roles follow BIC weights, whatever weighs the estimates: under AIC, a
feature without any effect has a share of about 38%, under BIC typically of about
1 / (1 + sqrt(m)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.model.quantiles import mixture_quantiles
from heckmanfa.results.document import Section
from heckmanfa.results.reference import check_level, reference_of, tails
from heckmanfa.search.averaging.average_outcome import PROBABLE, AverageOutcome
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.averaging.weights import KINDS, Kind
from heckmanfa.text.wording import percent, share_text

PREDICTS = "predicts"
UNSURE = "cannot be told"
NO_SIGN = "no sign that it predicts"
ALWAYS = "always included"
NEVER = "never included"
CORRECTION = "correction"
"""the name of the correction's row among those of features"""
DRIVES_SELECTION = "drives selection"
NO_SIGN_OF_SELECTION = "no sign that it drives selection"
MATTERED = "selection mattered"
NOT_MATTERED = "no sign that selection mattered"

_CORRECTION_ROLES = {PREDICTS: MATTERED, UNSURE: UNSURE, NO_SIGN: NOT_MATTERED}

_PREDICTS_FROM, _NO_SIGN_BELOW = 0.9, 0.1
_MANY_ROWS = 100

_members: WeakKeyDictionary[Fit, Members] = WeakKeyDictionary()


def outcome_of(fit: Fit) -> AverageOutcome:
    """Return the average behind a fit."""
    assert fit.average is not None
    return fit.average


def role_of(chance: float) -> str:
    """Return the role of a feature with this BIC share."""
    if chance >= _PREDICTS_FROM:
        return PREDICTS
    return NO_SIGN if chance < _NO_SIGN_BELOW else UNSURE


def selection_role(chance: float) -> str:
    """Return the role in the selection equation of a feature with this BIC share."""
    return {PREDICTS: DRIVES_SELECTION, NO_SIGN: NO_SIGN_OF_SELECTION}.get(role_of(chance), UNSURE)


def on_their_own(fit: Fit) -> list[int]:
    """Return the columns that predict; of an average, probably and not only with the index."""
    if fit.average is None:
        return fit.features
    alone = fit.average.average.alone["bic"]
    return [column for column in fit.features if alone[column] >= PROBABLE]


def inclusion_frame(fit: Fit) -> pd.DataFrame:
    """Return `HeckmanAverage.inclusion_`."""
    found, units = outcome_of(fit).average, _units(fit)
    table = shares_frame(fit, found, units)
    first = [unit[0] for unit in units]
    # The columns of a group have signs of their own.
    alone = np.array([len(unit) == 1 for unit in units], dtype=bool)
    for place, sign in enumerate(("positive", "negative")):
        shares = np.where(alone, getattr(found, sign)[first], np.nan)
        table.insert(1 + 3 * len(KINDS) + place, sign, shares)
    table.loc[np.isin(first, found.choices.always), "role"] = ALWAYS
    if not found.searches_both:
        return pd.concat([table, _correction_row(found)], ignore_index=True)
    equations = {"prediction": table, "selection": selection_frame(fit, found)}
    equations["errors"] = _correction_row(found)
    parts = [part.assign(equation=equation) for equation, part in equations.items()]
    whole = pd.concat(parts, ignore_index=True)
    return whole[["equation", *table.columns]]


def selection_frame(fit: Fit, found: Average) -> pd.DataFrame:
    """Return the rows of the selection equation of `inclusion_frame`, if that was searched.

    It has no index beside a feature.
    """
    selecting, shares, signs = found.selecting, found.selection_shares, found.selection_signs
    assert selecting is not None
    assert shares is not None
    assert signs is not None
    rows = []
    for unit in sorted([*((column,) for column in selecting.always), *selecting.units]):
        names, first = fit.spec.feature_names(unit), unit[0]
        name = names[0] if len(names) == 1 else tuple(names)
        of_unit = {kind: float(shares[kind][first]) for kind in KINDS}
        both = (signs[0, first], signs[1, first]) if len(unit) == 1 else (np.nan, np.nan)
        fixed = ALWAYS if first in selecting.always else None
        rows.append(_row(name, of_unit, both, fixed or selection_role(of_unit["bic"])))
    return pd.DataFrame(rows)


def _correction_row(found: Average) -> pd.DataFrame:
    """Return the row of the correction."""
    shares = found.correction_share
    roles: dict[str, str] = {"always": ALWAYS, "never": NEVER}
    role = roles.get(found.correction) or _CORRECTION_ROLES[role_of(shares["bic"])]
    return pd.DataFrame([_row(CORRECTION, shares, found.correction_signs, role)])


def _row(
    name: Any, shares: Mapping[Kind, float], signs: tuple[float, float], role: str
) -> dict[str, Any]:
    """Return a row of `inclusion_frame` of what has no index beside it."""
    return {
        "feature": name,
        **{str(kind): shares[kind] for kind in KINDS},
        **{f"{kind}_alone": shares[kind] for kind in KINDS},
        **{f"{kind}_index": 0.0 for kind in KINDS},
        "positive": float(signs[0]),
        "negative": float(signs[1]),
        "role": role,
    }


def shares_frame(fit: Fit, found: Average, units: Sequence[Sequence[int]]) -> pd.DataFrame:
    """Return a row for each feature or group: its share by each kind of weights, and its role.

    The share by a kind is that in which it predicts, on its own ("aic_alone") or with the index
    ("aic_index").
    """
    named = [tuple(fit.spec.feature_names(unit)) for unit in units]
    ways = {"": found.shares, "_alone": found.alone, "_index": found.with_index}
    return pd.DataFrame(
        [
            {
                "feature": names[0] if len(names) == 1 else names,
                **{
                    f"{kind}{way}": float(of[kind][unit[0]])
                    for way, of in ways.items()
                    for kind in KINDS
                },
                "role": role_of(float(found.shares["bic"][unit[0]])),
            }
            for unit, names in zip(units, named, strict=True)
        ],
        columns=["feature", *(f"{kind}{way}" for way in ways for kind in KINDS), "role"],
    )


def _units(fit: Fit) -> list[tuple[int, ...]]:
    choices = outcome_of(fit).average.choices
    return sorted([*((column,) for column in choices.always), *choices.units])


def unit_names(fit: Fit, unit: Sequence[int]) -> list[str]:
    """Name a feature; a group by its column of X, its term in the formula, or its columns."""
    names = fit.spec.columns.labels_of(unit)
    design = fit.origin.design
    if design is not None and len(unit) > 1:
        for term, columns in design.selection_terms.items():
            if [*columns] == names:
                return [term]
    return names


def selection_sections(fit: Fit, found: Average) -> list[Section]:
    """Return the chances of each feature to drive selection; nothing if that was not searched."""
    if not found.searches_both:
        return []
    table = selection_frame(fit, found)
    shown = pd.DataFrame({"feature": [_joined(name) for name in table["feature"]]})
    for name, kind in (("chance", "bic"), ("by AIC", "aic"), ("by EBIC", "ebic")):
        shown[name] = table[kind].map(share_text)
    for name in ("positive", "negative"):
        shown[name] = table[name].map(share_text)
    shown["role"] = table["role"]
    return [Section("Chance that each feature drives selection", table=shown)]


def _joined(name: Any) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def inclusion_section(fit: Fit) -> Section:
    """Return the chances of each feature as a part of the summary."""
    table = inclusion_frame(fit)
    if "equation" in table:
        table = table[table["equation"] != "selection"].reset_index(drop=True)
    names = [*(", ".join(unit_names(fit, unit)) for unit in _units(fit)), CORRECTION]
    shown = pd.DataFrame({"feature": names, "chance": table["bic"].map(share_text)})
    for kind in ("aic", "ebic"):
        shown[f"by {kind.upper()}"] = table[kind].map(share_text)
    shown["positive"] = table["positive"].map(share_text)
    shown["negative"] = table["negative"].map(share_text)
    shown["role"] = table["role"]
    nothing = null_share(outcome_of(fit).average.n_selected)
    return Section(
        "Chance that each feature predicts",
        table=shown,
        notes=(
            "A feature predicts on its own or with the index of selection; the correction competes "
            "with both. Chances and roles follow BIC weights. A feature without any effect "
            f"typically has a chance of about {nothing}. Signs follow the weights of the "
            "estimates.",
        ),
    )


def null_share(m: float) -> str:
    """Say what share of weight a feature without any effect typically has, by BIC and by AIC."""
    by_bic = f"{percent(1.0 / (1.0 + np.sqrt(m)), 0)} here"
    # The small-sample term of AIC weights lowers it with fewer rows.
    return by_bic if m < _MANY_ROWS else f"{by_bic}, and of about 38% by AIC"


def average_facts(fit: Fit) -> list[tuple[str, str]]:
    """Return what a summary says of an average in place of AIC and BIC."""
    found = outcome_of(fit).average
    how = "all" if found.exhaustive else "sampled"
    weights = "AIC and BIC" if found.weights == "mean" else found.weights.upper()
    return [
        ("Assignments", f"{found.n_assignments:,}, {how}"),
        ("Weights by", weights),
        ("Best, BIC weight", percent(found.best_weight["bic"])),
        ("Half of it in", f"{found.n_half['bic']:,}"),
    ]


def assignments_frame(fit: Fit) -> pd.DataFrame:
    """Return `HeckmanAverage.assignments_`."""
    outcome = outcome_of(fit)
    found, form = outcome.average, outcome.form
    states, masks = found.leading_states, found.leading_masks
    named = [tuple(fit.spec.feature_names(np.flatnonzero(mask).tolist())) for mask in masks]
    frame = pd.DataFrame({"features": named, "n_features": masks.sum(axis=1)})
    if found.searches_both:
        selecting = states[:, fit.n_features : -2]
        frame["selection_features"] = [
            tuple(fit.spec.feature_names(np.flatnonzero(mask).tolist())) for mask in selecting
        ]
    frame["correction"], frame["index"] = states[:, -2], states[:, -1]
    frame["weight"] = found.leading_weight
    frame = frame.assign(**found.criteria(states, found.leading_cost))
    frame["rho"] = found.leading_rho
    # The test of the correction is made on its own scale: beta_H, or atanh rho.
    members = Members(form, states, found.leading_weight)
    gradient = np.eye(len(form.estimates))[[form.correction]]
    values, error = members.estimates[:, form.correction], members.variances(gradient)[:, 0] ** 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        if not fit.is_binary:
            frame["imr"] = members.terms[:, form.correction]
        frame["imr_statistic"] = np.where(states[:, -2], values / error, np.nan)
    frame["imr_p_value"] = reference_of(fit).p_value(frame["imr_statistic"].to_numpy())
    return frame


def members_of(fit: Fit) -> Members:
    """Return the assignments behind the intervals of an average, made once for a fit."""
    if fit not in _members:
        _members[fit] = outcome_of(fit).members()
    return _members[fit]


@dataclass(frozen=True, eq=False)
class TermMixture:
    """The estimates of N assignments, for each of the T terms that are averaged."""

    weight: Floats
    """(N,)"""
    centres: Floats
    """(N, T)"""
    errors: Floats
    """(N, T) zero where the feature is absent"""

    @classmethod
    def of(cls, fit: Fit) -> TermMixture:
        """Return the mixtures of the rows of ``fit.terms`` that `averaged_terms` marks."""
        members, averaged = members_of(fit), averaged_terms(fit)
        return cls(members.weights, members.terms[:, averaged], members.term_errors[:, averaged])

    @cached_property
    def std_errors(self) -> Floats:
        """Standard deviations of the mixtures, (T,)."""
        mean = self.weight @ self.centres
        within = self.weight @ self.errors**2
        return np.asarray(np.sqrt(within + self.weight @ (self.centres - mean) ** 2))

    def quantiles(self, levels: Floats, df: float | None) -> Floats:
        """Return quantiles of the mixtures, (T, levels)."""
        return mixture_quantiles(self.weight, self.centres, self.errors, levels, df)


def tidy_average(fit: Fit, estimates: Floats, conf_level: float) -> pd.DataFrame:
    """Return `Heckman.tidy` of an average: intervals of mixtures, and no tests.

    The selection equation of two-step fits is not averaged, so it keeps its tests.
    """
    check_level(conf_level)
    reference = reference_of(fit)
    table = pd.DataFrame(fit.terms, columns=["equation", "term"])
    table = table.assign(
        **reference.columns(estimates, np.sqrt(np.diag(fit.covariance)), conf_level)
    )
    mixture, averaged = TermMixture.of(fit), averaged_terms(fit)
    limits = mixture.quantiles(tails(conf_level), reference.df)
    # Quantiles may lie beyond any correlation, or below any deviation.
    rho = -1 if fit.is_binary else -2
    limits[rho] = limits[rho].clip(-1.0, 1.0)
    if not fit.is_binary:
        limits[-1] = limits[-1].clip(min=0.0)
    table.loc[averaged, ["statistic", "p_value"]] = np.nan
    table.loc[averaged, "std_error"] = mixture.std_errors
    table.loc[averaged, ["ci_low", "ci_high"]] = limits
    return table


def averaged_terms(fit: Fit) -> Mask:
    """Which rows of ``fit.terms`` are averages: all but the selection equation of two steps."""
    refitted = outcome_of(fit).form.errors != "two-step"
    return np.array([refitted or equation != "selection" for equation, _ in fit.terms])


def refuse_test(fit: Fit, matrix: Floats) -> None:
    """Refuse a Wald test of what was averaged."""
    if np.any(matrix[:, averaged_terms(fit)]):
        raise NotIdentifiedError(
            "an average over assignments has no Wald test: its estimates are mixtures with a point "
            "mass at zero. tidy() has their intervals, and inclusion_ the weight that holds each "
            "feature. To test, fit Heckman with features chosen beforehand."
        )

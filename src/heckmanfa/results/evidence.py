"""The numbers of a first screen: chances, roles and effects of features, lambda, and the best set.

Chances are shares of BIC weight, whatever weighs the effects. A feature *predicts* from 90% on,
cannot be told from 10% to 90%, and below that it may still drive selection. Without chances, roles
come from the question: what was taken, or chosen, to predict. Nothing here reads rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit
from heckmanfa.model.linalg import column_norms
from heckmanfa.results.assignment_weights import (
    AssignmentWeights,
    are_known,
    choices_of,
    has_pseudo_weights,
    weights_of,
)
from heckmanfa.results.average_tables import ALWAYS, PREDICTS, UNSURE, role_of
from heckmanfa.results.effects import (
    UNKNOWN,
    Assignment,
    Effect,
    Effects,
    Series,
    all_features_of,
    assignments_of,
    effects_of,
)
from heckmanfa.results.exclusions import selection_test
from heckmanfa.results.naming import Naming
from heckmanfa.results.reference import LEVEL
from heckmanfa.search.averaging import Average

Mode = Literal["average", "chosen", "given", "observed"]

DRIVES = "drives selection, no sign that it predicts"
NEITHER = "no sign of either"
TAKEN = "taken to predict"
MAY = "may predict"
CHOSEN = "chosen to predict"
NOT_CHOSEN_DRIVES = "drives selection, not chosen to predict"
NOT_CHOSEN = "not chosen to predict"
KEPT_OUT_DRIVES = "drives selection"
KEPT_OUT = "no sign that it drives selection"

ROLES = (
    *(PREDICTS, ALWAYS, CHOSEN, TAKEN, MAY, UNSURE),
    *(DRIVES, NOT_CHOSEN_DRIVES, KEPT_OUT_DRIVES, NEITHER, NOT_CHOSEN, KEPT_OUT),
)
"""every role, in the order in which features are listed"""

_LATER = (
    "The weights of all assignments take a while to compute, so chances are not given here; "
    "search_report() has them."
)


@dataclass(frozen=True)
class LevelEvidence:
    """One level of a category, compared with its reference."""

    name: str
    column: int
    effect: Effect
    least_squares: Effect
    all_features: Effect | None


@dataclass(frozen=True)
class FeatureEvidence:
    """What is known of one feature, or of one group of columns that move together."""

    name: str
    columns: tuple[int, ...]
    lead: int
    """the column whose effect is shown: of a category, the level furthest from its reference"""
    level: str
    """the level that it marks; empty unless it is a dummy of a category"""
    reference: str
    binary: bool
    """whether the lead is 0 or 1"""
    candidate: bool
    """whether it may predict"""
    in_model: bool
    """whether the fitted prediction equation holds it"""
    chance: float | None
    """share of BIC weight of the sets of features that hold it; of an honest search, the share of
    halves that chose it"""
    by_aic: float | None
    by_ebic: float | None
    chance_least_squares: float | None
    """the chance if no set holds lambda"""
    role: str
    effect: Effect
    """per unit of the lead, in the fitted model"""
    least_squares: Effect
    all_features: Effect | None
    scale: float
    """one standard deviation of the lead among the rows with an outcome; 1 if it is 0 or 1"""
    selection_p: float
    """p-value of the joint Wald test in the selection equation; NaN if not tested"""
    selection_z: float
    """signed statistic in the selection equation; NaN for groups"""
    positive: float
    """share of own weight in which the effect is above zero; NaN for groups"""
    negative: float
    levels: tuple[LevelEvidence, ...] = ()
    """of a group"""

    @property
    def drives_selection(self) -> bool:
        """Whether the test in the selection equation rejects at 5%."""
        return self.selection_p < LEVEL


@dataclass(frozen=True, eq=False)
class BestAssignment:
    """One of the best sets of features by BIC."""

    names: tuple[str, ...]
    mask: Mask
    """(K,) its columns"""
    weight: float
    """share of BIC weight"""
    bic: float
    rho: float
    rho_interval: tuple[float, float]
    imr: Effect
    coef: Series
    """of each column of X"""


@dataclass(frozen=True)
class StandInEvidence:
    """A feature with and without which the test of lambda differs."""

    name: str
    columns: tuple[int, ...]
    chance: float
    rejected_with: float
    """share of weight that rejects rho = 0, of the sets that hold it"""
    rejected_without: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """The numbers behind an answer. K is the number of columns of X."""

    fit: Fit
    naming: Naming
    mode: Mode
    features: tuple[FeatureEvidence, ...]
    """one for each feature or group of either equation, in the order of X"""
    imr: Effect
    rho: Effect
    honest: bool = False
    n_halves: int = 0
    """random halves of an honest search"""
    window: tuple[float, float] | None = None
    """in which rho was kept"""
    pseudo: bool = False
    """whether sampling weights leave no likelihood to weigh sets of features by"""
    n_assignments: int = 0
    """sets of features that were weighed"""
    exhaustive: bool = True
    """whether these were all"""
    best: BestAssignment | None = None
    second: BestAssignment | None = None
    n_half: int = 0
    """how many sets carry half of the BIC weight"""
    chosen: tuple[str, ...] = ()
    """features that a search chose"""
    chosen_weight: float | None = None
    """their BIC weight"""
    rejected: float | None = None
    """share of BIC weight whose test rejects rho = 0"""
    stand_in: StandInEvidence | None = None
    imr_weight: float | None = None
    """BIC weight of the sets with lambda, if lambda is optional"""
    rho_with_search: tuple[float, float] | None = None
    """95% interval of rho that allows for the search; None if there is none"""
    all_features: Assignment | None = None
    """the Heckman model of all features that may predict; None if it is the fitted one"""
    no_exclusion: bool = False
    """whether every feature of the selection equation predicts, so only normality identifies"""
    chances_missing: str = ""
    """why there are no chances, in a sentence; empty if there are"""

    @property
    def has_chances(self) -> bool:
        """Whether features have chances or shares of halves."""
        return any(feature.chance is not None for feature in self.features)

    @property
    def outcome(self) -> str:
        """Name of the outcome."""
        return self.naming.outcome

    @property
    def candidates(self) -> list[FeatureEvidence]:
        """Features that may predict."""
        return [feature for feature in self.features if feature.candidate]

    @property
    def main(self) -> FeatureEvidence | None:
        """The likeliest feature with an estimate; of equals, that with the largest z value."""
        found = [feature for feature in self.features if feature.effect.known]
        return max(found, key=_likeliest, default=None)

    def ordered(self) -> list[FeatureEvidence]:
        """Features by role, then by chance, then by the size of their z values."""
        return sorted(
            self.features,
            key=lambda feature: (
                ROLES.index(feature.role),
                -np.round(feature.chance or 0.0, 4),
                -abs(feature.effect.z),
                -abs(np.nan_to_num(feature.selection_z)),
            ),
        )

    def of_column(self, column: int) -> FeatureEvidence | None:
        """Return the feature that a column of X belongs to."""
        return next((item for item in self.features if column in item.columns), None)


def _likeliest(feature: FeatureEvidence) -> tuple[float, bool, float]:
    chance = 0.0 if feature.chance is None or feature.role == ALWAYS else feature.chance
    # Chances that print alike are equal.
    return round(chance, 2), feature.role != ALWAYS, abs(feature.effect.z)


def mode_of(fit: Fit) -> Mode:
    """Say how the prediction features of a fit came about."""
    if fit.probit is None:
        return "observed"
    if fit.average is not None:
        return "average"
    return "chosen" if fit.search is not None and fit.search.chose else "given"


def evidence_of(
    fit: Fit,
    naming: Naming | None = None,
    *,
    never: Sequence[str] = (),
    thorough: bool = True,
) -> Evidence:
    """Collect the numbers of a first screen from a fit.

    What takes time is computed once for each fit.

    Parameters
    ----------
    fit : Fit
    naming : Naming, optional
        How columns are called; by default as in the summary.
    never : sequence of str
        Columns that must not predict, as far as the fit does not know it.
    thorough : bool
        Whether the sets of features behind a search are weighed even if that takes seconds.
    """
    naming = naming or Naming.of(fit)
    mode, effects = mode_of(fit), effects_of(fit)
    weights = _weights(fit, mode, thorough=thorough)
    whole = all_features_of(fit, never)
    units = _units(fit, naming, mode)
    honest = fit.search.honest if fit.search is not None else None
    features = _Features(fit, naming, mode, effects, weights, whole)
    found = tuple(features.make(unit) for unit in units)
    missing = weights if isinstance(weights, str) else ""
    window = None
    if fit.average is not None:
        window = fit.average.average.rho_range
    elif fit.search is not None and honest is None:
        window = fit.search.window
    common = Evidence(
        fit=fit,
        naming=naming,
        mode=mode,
        features=found,
        imr=effects.imr,
        rho=effects.rho,
        honest=honest is not None,
        n_halves=0 if honest is None else len(honest.estimates),
        window=window,
        pseudo=has_pseudo_weights(fit),
        all_features=whole,
        no_exclusion=fit.probit is not None and {*fit.probit.features} <= {*fit.features},
        chosen=_names(naming, units, fit.support) if mode == "chosen" else (),
        chances_missing=missing,
        rho_with_search=_rho_with_search(mode, effects, weights, honest=honest is not None),
    )
    if not isinstance(weights, AssignmentWeights):
        return common
    return _with_weights(common, units, weights)


def _with_weights(
    evidence: Evidence, units: Sequence[tuple[int, ...]], weights: AssignmentWeights
) -> Evidence:
    """Add what the weights of all sets of features say."""
    average, naming = weights.average, evidence.naming
    leading = assignments_of(evidence.fit, average.leading_masks[:2])
    best = [
        BestAssignment(
            names=_names(naming, units, item.mask),
            mask=item.mask,
            weight=float(weight),
            bic=item.bic,
            rho=item.rho,
            rho_interval=item.rho_interval,
            imr=item.imr,
            coef=item.coef,
        )
        for item, weight in zip(leading, average.leading_weight[:2], strict=True)
    ]
    stand_in = None
    if weights.stand_ins:
        first = weights.stand_ins[0]
        stand_in = StandInEvidence(
            name=naming.name_of(first.columns),
            columns=first.columns,
            chance=weights.share(first.columns),
            rejected_with=first.rejected_with,
            rejected_without=first.rejected_without,
        )
    return _replaced(evidence, average, weights, best, stand_in)


def _replaced(
    evidence: Evidence,
    average: Average,
    weights: AssignmentWeights,
    best: list[BestAssignment],
    stand_in: StandInEvidence | None,
) -> Evidence:
    values = dict(vars(evidence)) | {
        "n_assignments": average.n_assignments,
        "exhaustive": average.exhaustive,
        "best": best[0] if best else None,
        "second": best[1] if len(best) > 1 else None,
        "n_half": weights.n_half,
        "chosen_weight": weights.chosen,
        "rejected": weights.rejected,
        "stand_in": stand_in,
        "imr_weight": None if weights.imr is None else weights.imr["bic"],
    }
    return Evidence(**values)


def _weights(fit: Fit, mode: Mode, *, thorough: bool) -> AssignmentWeights | str | None:
    """Weigh the sets of features, or say why not; None where there is nothing to weigh."""
    if mode in ("given", "observed"):
        return None
    if mode == "average" or thorough or are_known(fit):
        return weights_of(fit)
    return _LATER


def _rho_with_search(
    mode: Mode, effects: Effects, weights: AssignmentWeights | str | None, *, honest: bool
) -> tuple[float, float] | None:
    """Return the interval of rho that may be compared with what is too little to matter."""
    if mode == "chosen" and not honest:
        return weights.rho_interval if isinstance(weights, AssignmentWeights) else None
    return (effects.rho.low, effects.rho.high) if effects.rho.has_interval else None


def _units(fit: Fit, naming: Naming, mode: Mode) -> list[tuple[int, ...]]:
    """Columns of either equation by feature: what moves together in a search, then by name."""
    selecting = set() if fit.probit is None else {int(column) for column in fit.probit.features}
    units: list[tuple[int, ...]] = []
    if mode in ("average", "chosen"):
        choices = choices_of(fit)
        units = [*choices.units]
        together = _grouped(naming, choices.always)
        units += together
    taken = {column for unit in units for column in unit}
    rest = [int(column) for column in fit.equation if column not in taken]
    units += _grouped(naming, rest)
    taken |= {*rest}
    units += _grouped(naming, sorted(selecting - taken))
    return sorted(units)


def _grouped(naming: Naming, columns: Sequence[int]) -> list[tuple[int, ...]]:
    """Put columns that are one column of the table together."""
    left, units = list(columns), []
    for group in naming.groups:
        inside = tuple(column for column in group if column in left)
        if inside:
            units.append(inside)
            left = [column for column in left if column not in inside]
    return [*units, *((column,) for column in left)]


def _names(naming: Naming, units: Sequence[tuple[int, ...]], mask: Mask) -> tuple[str, ...]:
    return tuple(naming.name_of(unit) for unit in units if mask[unit[0]])


@dataclass(frozen=True, eq=False)
class _Features:
    """Makes the evidence of each feature."""

    fit: Fit
    naming: Naming
    mode: Mode
    effects: Effects
    weights: AssignmentWeights | str | None
    whole: Assignment | None

    def make(self, unit: tuple[int, ...]) -> FeatureEvidence:
        """Collect what is known of one feature or group."""
        fit, naming = self.fit, self.naming
        lead = self._lead(unit)
        average = self._average()
        candidate = self._is_candidate(unit)
        chance = self._chance(unit) if candidate else None
        share = self.effects.least_squares_share
        alone = len(unit) == 1
        p, z = self._selection(unit)
        positive, negative = self._signs(lead) if alone else (np.nan, np.nan)
        switch = naming.is_switch(lead)
        known = average is not None and candidate and not self._is_always(unit)
        return FeatureEvidence(
            name=naming.name_of(unit),
            columns=unit,
            lead=lead,
            level=naming.levels[lead],
            reference=naming.references[lead],
            binary=switch,
            candidate=candidate,
            in_model=any(column in fit.equation for column in unit),
            chance=chance,
            by_aic=float(average.shares["aic"][unit[0]]) if known and average else None,
            by_ebic=float(average.shares["ebic"][unit[0]]) if known and average else None,
            chance_least_squares=float(share[unit[0]]) if share is not None and known else None,
            role=self._role(unit, chance, p, candidate=candidate),
            effect=self.effects.own.of(lead),
            least_squares=self.effects.least_squares.of(lead),
            all_features=self._of_whole(lead),
            scale=1.0 if switch else self._deviation(lead),
            selection_p=p,
            selection_z=z,
            positive=positive,
            negative=negative,
            levels=() if alone else tuple(self._level(column) for column in unit),
        )

    def _average(self) -> Average | None:
        if not isinstance(self.weights, AssignmentWeights):
            return None
        return self.weights.average

    def _is_always(self, unit: tuple[int, ...]) -> bool:
        return self.mode in ("average", "chosen") and unit[0] in choices_of(self.fit).always

    def _is_candidate(self, unit: tuple[int, ...]) -> bool:
        if self.mode in ("average", "chosen"):
            return unit[0] in choices_of(self.fit).columns
        return unit[0] in self.fit.equation

    def _chance(self, unit: tuple[int, ...]) -> float | None:
        if self._is_always(unit):
            return None
        honest = self.fit.search.honest if self.fit.search is not None else None
        if honest is not None:
            return float(honest.support[:, unit].any(axis=1).mean())
        average = self._average()
        return None if average is None else float(average.shares["bic"][unit[0]])

    def _role(self, unit: tuple[int, ...], chance: float | None, p: float, *, candidate: bool) -> str:
        drives = p < LEVEL
        if not candidate:
            return KEPT_OUT_DRIVES if drives else KEPT_OUT
        if self._is_always(unit):
            return ALWAYS
        if self.mode in ("given", "observed"):
            return TAKEN
        honest = self.fit.search is not None and self.fit.search.honest is not None
        if chance is None and self.mode == "average":
            return MAY
        if chance is None or honest:
            if self.fit.support[unit[0]]:
                return CHOSEN
            return NOT_CHOSEN_DRIVES if drives else NOT_CHOSEN
        role = role_of(chance)
        if role in (PREDICTS, UNSURE):
            return role
        return DRIVES if drives else NEITHER

    def _lead(self, unit: tuple[int, ...]) -> int:
        """The column with the largest effect, in the first model that has one."""
        for series in (self.effects.own, None if self.whole is None else self.whole.coef):
            if series is None:
                continue
            size = np.abs(series.values[list(unit), 0])
            if np.isfinite(size).any():
                return unit[int(np.nanargmax(size))]
        return unit[0]

    def _selection(self, unit: tuple[int, ...]) -> tuple[float, float]:
        """P-value and signed statistic of a feature in the selection equation."""
        probit, nan = self.fit.probit, float("nan")
        inside = [] if probit is None else [column for column in unit if column in probit.features]
        if not inside:
            return nan, nan
        test = selection_test(self.fit, inside)
        if test.note:
            return nan, nan
        sign = np.sign(self.fit.selection_coef[inside[0]])
        return test.p_value, float(sign * np.sqrt(test.chi2)) if len(unit) == 1 else nan

    def _signs(self, column: int) -> tuple[float, float]:
        if self.mode == "average":
            assert self.fit.average is not None
            average = self.fit.average.average
            return float(average.positive[column]), float(average.negative[column])
        estimate = self.effects.own.of(column).estimate
        return float(estimate > 0.0), float(estimate < 0.0)

    def _deviation(self, column: int) -> float:
        return float(self._deviations()[column])

    def _deviations(self) -> Floats:
        """Standard deviations among the rows with an outcome, (K,)."""
        moments = self.fit.moments
        k, m = len(moments.columns), moments.n_selected
        # Sampling weights sum to anything.
        spare = m if has_pseudo_weights(self.fit) or m <= 1.0 else m - 1.0
        deviations = np.full(moments.n_features, np.nan)
        squares = column_norms(moments.factor[1:, 1 : k + 1]) ** 2
        deviations[list(moments.columns)] = np.sqrt(squares / spare)
        return deviations

    def _of_whole(self, column: int) -> Effect | None:
        if self.whole is None:
            return None
        effect = self.whole.coef.of(column)
        return effect if effect.known else UNKNOWN

    def _level(self, column: int) -> LevelEvidence:
        name = self.naming.levels[column] or self.naming.sources[column]
        return LevelEvidence(
            name=name,
            column=column,
            effect=self.effects.own.of(column),
            least_squares=self.effects.least_squares.of(column),
            all_features=self._of_whole(column),
        )

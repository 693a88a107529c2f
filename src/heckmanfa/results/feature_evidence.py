"""What is known of one feature: its chance, its role, and its effect by several models.

A feature *predicts*, cannot be told, or shows no sign of it, as its chance says. Without a sign
it may still drive selection. Without chances, roles come from the question: what was taken, or
chosen, to predict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.average_tables import (
    ALWAYS,
    DRIVES_SELECTION,
    NO_SIGN_OF_SELECTION,
    SURELY,
    UNSURE,
    UNTOLD,
    role_of,
    selection_role,
)
from heckmanfa.results.distribution import LEVEL
from heckmanfa.results.effects import UNKNOWN, Assignment, Effect, Effects
from heckmanfa.results.fit_tests import selection_test
from heckmanfa.results.naming import Naming
from heckmanfa.search.averaging import Average
from heckmanfa.text.chances import CHANCES_BY

DRIVES = "drives selection, no sign that it predicts"
NEITHER = "no sign of either"
TAKEN = "taken to predict"
MAY = "may predict"
CHOSEN = "chosen to predict"
NOT_CHOSEN_DRIVES = "drives selection, not chosen to predict"
NOT_CHOSEN = "not chosen to predict"
KEPT_OUT_DRIVES = DRIVES_SELECTION
KEPT_OUT = NO_SIGN_OF_SELECTION
MAY_DRIVE = "may drive selection, no sign that it predicts"
KEPT_OUT_MAY_DRIVE = "may drive selection"

ROLES = (
    *(*SURELY, ALWAYS, CHOSEN, TAKEN, MAY, *UNTOLD),
    *(DRIVES, NOT_CHOSEN_DRIVES, KEPT_OUT_DRIVES, MAY_DRIVE, KEPT_OUT_MAY_DRIVE),
    *(NEITHER, NOT_CHOSEN, KEPT_OUT),
)
"""every role, in the order in which features are listed"""


@dataclass(frozen=True)
class LevelEvidence:
    """One level of a category, compared with its reference, or one column of a group."""

    name: str
    column: int
    effect: Effect
    least_squares: Effect
    all_features: Effect | None


# An effect that ignoring selection moves by fewer standard errors hardly changes.
HARDLY = 0.5


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
    is_switch: bool
    """whether the lead is 0 or 1"""
    candidate: bool
    """whether it may predict"""
    in_model: bool
    """whether the fitted prediction equation holds it"""
    chance: float | None
    """share of the weight of the sets of features in which it predicts; of an honest search, the
    share of halves that chose it"""
    alone: float | None
    """share of that weight in which it predicts on its own, not only as it drives selection"""
    by_aic: float | None
    by_ebic: float | None
    chance_least_squares: float | None
    """the chance if no set holds lambda"""
    role: str
    effect: Effect
    """of a step of the lead, in the fitted model; as are those of the other models"""
    least_squares: Effect
    all_features: Effect | None
    step: float
    """the change of the lead that effects are of, in its units; 1 if it is 0 or 1"""
    selection_p: float
    """p-value of the joint Wald test in the selection equation; NaN if not tested"""
    selection_z: float
    """signed statistic in the selection equation; NaN for groups"""
    positive: float
    """share of own weight in which the effect is above zero; NaN for groups"""
    negative: float
    levels: tuple[LevelEvidence, ...] = ()
    """of a group"""
    selection_chance: float | None = None
    """share of BIC weight in which it drives selection, if both equations were searched"""

    @property
    def shift(self) -> float:
        """By how many standard errors ignoring selection moves its effect; 0 if not known."""
        own, other = self.effect, self.least_squares
        if not own.known or not other.known or not own.std_error > 0.0:
            return 0.0
        return abs(other.estimate - own.estimate) / own.std_error

    @property
    def drives_selection(self) -> bool:
        """Whether its chance to drive selection is 90% or more.

        If the selection equation was not searched: whether the test there rejects at 5%.
        """
        return _in_selection(self.selection_p, self.selection_chance) == DRIVES_SELECTION


def _in_selection(p: float, chance: float | None) -> str:
    """Say what a feature does in the selection equation, by its chance or else by its test."""
    if chance is not None:
        return selection_role(chance)
    return DRIVES_SELECTION if p < LEVEL else NO_SIGN_OF_SELECTION


@dataclass(frozen=True, eq=False)
class Features:
    """Makes the evidence of each feature."""

    fit: Fit
    naming: Naming
    effects: Effects
    weights: AssignmentWeights | str | None
    whole: Assignment | None
    """the model of all features that may predict"""
    share: Floats | None
    """(K,) BIC shares without lambda"""

    def make(self, unit: tuple[int, ...]) -> FeatureEvidence:
        """Collect what is known of one feature or group."""
        fit, naming = self.fit, self.naming
        lead = self._lead(unit)
        mixture = self._mixture
        candidate = self._is_candidate(unit)
        chance = self._chance(unit) if candidate else None
        share = self.share
        alone = len(unit) == 1
        p, z = self._selection(unit)
        selecting = self._selection_chance(unit)
        positive, negative = self._signs(lead) if alone else (np.nan, np.nan)
        switch = naming.is_switch(lead)
        known = chance is not None and not fit.way.halves_rows
        return FeatureEvidence(
            name=naming.name_of(unit),
            columns=unit,
            lead=lead,
            level=naming.levels[lead],
            reference=naming.references[lead],
            is_switch=switch,
            candidate=candidate,
            in_model=any(column in fit.equation for column in unit),
            chance=chance,
            alone=float(mixture.alone[CHANCES_BY][unit[0]]) if known and mixture else None,
            by_aic=float(mixture.shares["aic"][unit[0]]) if known and mixture else None,
            by_ebic=float(mixture.shares["ebic"][unit[0]]) if known and mixture else None,
            chance_least_squares=float(share[unit[0]]) if share is not None and known else None,
            role=self._role(unit, chance, _in_selection(p, selecting), candidate=candidate),
            effect=self._own(lead),
            least_squares=self._least_squares(lead),
            all_features=self._of_whole(lead),
            step=naming.step_of(lead),
            selection_p=p,
            selection_z=z,
            positive=positive,
            negative=negative,
            levels=() if alone else tuple(self._level(column) for column in unit),
            selection_chance=selecting,
        )

    @property
    def _mixture(self) -> Average | None:
        return self.weights.mixture if isinstance(self.weights, AssignmentWeights) else None

    def _is_always(self, unit: tuple[int, ...]) -> bool:
        return self.fit.way.searched and unit[0] in self.fit.way.choices.always

    def _is_candidate(self, unit: tuple[int, ...]) -> bool:
        way = self.fit.way
        return unit[0] in (way.choices.columns if way.searched else way.equation)

    def _chance(self, unit: tuple[int, ...]) -> float | None:
        if self._is_always(unit):
            return None
        if self.fit.way.halves_rows:
            return float(self.fit.way.halves.support[:, unit].any(axis=1).mean())
        mixture = self._mixture
        return None if mixture is None else float(mixture.shares[CHANCES_BY][unit[0]])

    def _role(
        self, unit: tuple[int, ...], chance: float | None, side: str, *, candidate: bool
    ) -> str:
        drives = side == DRIVES_SELECTION
        if not candidate:
            return KEPT_OUT_MAY_DRIVE if side == UNSURE else side
        if self._is_always(unit):
            return ALWAYS
        way = self.fit.way
        if not way.searched:
            return TAKEN
        if chance is None and way.is_average:
            return MAY
        if chance is None or way.halves_rows:
            if self.fit.support[unit[0]]:
                return CHOSEN
            return NOT_CHOSEN_DRIVES if drives else NOT_CHOSEN
        mixture = self._mixture
        assert mixture is not None
        role = role_of(chance, float(mixture.alone[CHANCES_BY][unit[0]]))
        if role in (*SURELY, *UNTOLD):
            return role
        return DRIVES if drives else MAY_DRIVE if side == UNSURE else NEITHER

    def _lead(self, unit: tuple[int, ...]) -> int:
        """The column with the largest effect, in the first model that has one."""
        for series in (self.effects.own, None if self.whole is None else self.whole.coef):
            if series is None:
                continue
            steps = np.array([self.naming.step_of(column) for column in unit])
            size = np.abs(series.values[list(unit), 0]) * steps
            if np.isfinite(size).any():
                return unit[int(np.nanargmax(size))]
        return unit[0]

    def _selection(self, unit: tuple[int, ...]) -> tuple[float, float]:
        """P-value and signed statistic of a feature in the selection equation."""
        probit, nan = self.fit.probit, float("nan")
        inside = [] if probit is None else [column for column in unit if column in probit.features]
        averaged = self.fit.way.is_average and self._selection_chance(unit) is not None
        if not inside or averaged:
            # A mixture with a point mass at zero has a chance, and no test.
            return nan, nan
        test = selection_test(self.fit, inside)
        if test.note:
            return nan, nan
        sign = np.sign(self.fit.selection_coef[inside[0]])
        return test.p_value, float(sign * np.sqrt(test.chi2)) if len(unit) == 1 else nan

    def _selection_chance(self, unit: tuple[int, ...]) -> float | None:
        """BIC share in which a feature drives selection; None if that was not searched.

        A feature that is always in the selection equation has a test, as without a search.
        """
        mixture = self._mixture
        if mixture is None or mixture.selection_shares is None or mixture.selecting is None:
            return None
        if not {*mixture.selecting.always}.isdisjoint(unit):
            return None
        return float(mixture.selection_shares[CHANCES_BY][list(unit)].max())

    def _signs(self, column: int) -> tuple[float, float]:
        if self.fit.way.is_average:
            mixture = self.fit.way.averaging.mixture
            return float(mixture.positive[column]), float(mixture.negative[column])
        estimate = self.effects.own.of(column).estimate
        return float(estimate > 0.0), float(estimate < 0.0)

    def _own(self, column: int) -> Effect:
        return self.effects.own.of(column).times(self.naming.step_of(column))

    def _least_squares(self, column: int) -> Effect:
        return self.effects.least_squares.of(column).times(self.naming.step_of(column))

    def _of_whole(self, column: int) -> Effect | None:
        if self.whole is None:
            return None
        effect = self.whole.coef.of(column)
        return effect.times(self.naming.step_of(column)) if effect.known else UNKNOWN

    def _level(self, column: int) -> LevelEvidence:
        name = self.naming.levels[column] or self.naming.sources[column]
        return LevelEvidence(
            name=name,
            column=column,
            effect=self._own(column),
            least_squares=self._least_squares(column),
            all_features=self._of_whole(column),
        )

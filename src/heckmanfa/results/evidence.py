"""The numbers of a first screen: chances, roles and effects of features, lambda, and the best set.

Chances are shares of the weight that `heckmanfa.text.chances` names, whatever weighs the effects.
Nothing here reads rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.fit import Fit, Way
from heckmanfa.results.assignment_weights import (
    AssignmentWeights,
    Effort,
    weights_of,
)
from heckmanfa.results.average_tables import ALWAYS, SURELY, UNTOLD, has_pseudo_weights
from heckmanfa.results.effects import (
    UNKNOWN,
    Assignment,
    Effect,
    Effects,
    all_features_of,
    assignments_of,
    effects_of,
)
from heckmanfa.results.feature_evidence import (
    CHOSEN,
    ROLES,
    FeatureEvidence,
    Features,
)
from heckmanfa.results.judgement import Judgement, judgement_of, lacks_exclusion
from heckmanfa.results.naming import EffectWords, Naming
from heckmanfa.search.averaging.averages import without_correction
from heckmanfa.text.passage import Passage
from heckmanfa.text.wording import chance_text


@dataclass(frozen=True, eq=False)
class BestAssignment(Assignment):
    """One of the best sets of features by BIC."""

    names: tuple[str, ...]
    corrected: bool
    """whether it holds the correction"""
    index: bool
    """whether the other features predict as they drive selection"""
    weight: float
    """share of BIC weight"""


@dataclass(frozen=True)
class StandInEvidence:
    """A feature with and without which the test of lambda differs."""

    name: str
    columns: tuple[int, ...]
    chance: float
    corrected_with: float
    """share of weight that holds the correction, of the sets that hold it"""
    corrected_without: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """The numbers behind an answer. K is the number of columns of X."""

    fit: Fit = field(repr=False)
    """what the answer is about: of an ordered outcome, the model of reaching one of its classes"""
    whole: Fit = field(repr=False)
    """what was fitted"""
    naming: Naming = field(repr=False)
    effects: Effects = field(repr=False)
    weights: AssignmentWeights | str | None = field(repr=False)
    """of all sets of features, or why there are none; None where there is nothing to weigh"""
    features: tuple[FeatureEvidence, ...]
    """one for each feature or group of either equation, in the order of X"""
    judgement: Judgement
    """whether selection mattered; `heckmanfa.results.headline` puts it into words"""
    held: float | None = None
    """the value at which rho was held"""
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
    stand_in: StandInEvidence | None = None
    rho_with_search: tuple[float, float] | None = None
    """95% interval of rho that allows for the search; None if there is none"""
    all_features: Assignment | None = None
    """the Heckman model of all features that may predict; None if it is the fitted one"""
    no_exclusion: bool = False
    """whether every feature of the selection equation predicts, so only normality identifies"""

    @property
    def way(self) -> Way:
        """How the features and their estimates came about."""
        return self.fit.way

    @property
    def window(self) -> tuple[float, float] | None:
        """In which rho was kept."""
        return self.way.rho_window

    @property
    def imr(self) -> Effect:
        """The coefficient of lambda."""
        return self.effects.imr

    @property
    def rho(self) -> Effect:
        """The correlation of the errors."""
        return self.effects.rho

    @property
    def gap(self) -> Effect:
        """How far rows without an outcome are from what is expected of anyone like them.

        The mean of E[y | x, s = 0] - E[y | x] over the unselected rows, -b_H mean(lambda(-u)). The
        probit's intercept makes the sum of lambda(-u) over them that of lambda(u) over the m
        selected rows, so it is -b_H mean(lambda) m / (n - m), and no rows are needed. After maximum
        likelihood lambda is that of the probit. The interval is that of b_H. Unknown for
        probabilities, of which only the sign is known without rows, and if rho is not estimated.
        """
        fit = self.fit
        normal = fit.family.can("normal errors")
        if fit.probit is None or not (fit.family.has_imr and normal) or not self.imr.known:
            return UNKNOWN
        spread = float(fit.moments.means[-2] * fit.n_selected / (fit.n_obs - fit.n_selected))
        imr = self.imr
        return Effect(-spread * imr.estimate, -spread * imr.high, -spread * imr.low)

    @property
    def chances_missing(self) -> str:
        """Why there are no chances, in a sentence; empty if there are."""
        return self.weights if isinstance(self.weights, str) else ""

    @property
    def has_chances(self) -> bool:
        """Whether features have chances or shares of halves."""
        return any(feature.chance is not None for feature in self.features)

    @property
    def outcome(self) -> str:
        """Name of the outcome."""
        return self.naming.outcome

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """What the outcome is called: as it is fitted, its column, and what it is the log of."""
        log = self.words.log
        names = {self.outcome, self.fit.origin.outcome or "", "" if log is None else log.of}
        return tuple(sorted(names - {"", *(feature.name for feature in self.features)}))

    @property
    def words(self) -> EffectWords:
        """How effects on the outcome are written."""
        return EffectWords.of(self.fit, self.outcome, self.naming.log)

    @property
    def candidates(self) -> list[FeatureEvidence]:
        """Features that may predict."""
        return [feature for feature in self.features if feature.candidate]

    @property
    def main(self) -> FeatureEvidence | None:
        """The likeliest feature with an estimate; of equals, that with the largest z value."""
        known = [feature for feature in self.features if feature.effect.known]
        return max(known, key=_likeliest, default=None)

    @property
    def contrast(self) -> tuple[int, str] | None:
        """The column of 0 and 1 that comes first, and its two groups in words; None without one.

        A category of three levels or more has no such column.
        """
        for feature in self.ordered():
            if feature.is_switch and len(feature.columns) == 1 and feature.effect.known:
                return feature.lead, str(self.naming.change_of(feature.lead))
        return None

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

    @property
    def weighed(self) -> list[FeatureEvidence]:
        """Features with a chance or a share of halves, in order; none is always included."""
        return [feature for feature in self.ordered() if feature.chance is not None]

    @property
    def chosen_by_halves(self) -> list[FeatureEvidence]:
        """Features that at least half of the halves of an honest search chose, in order."""
        return [feature for feature in self.weighed if feature.role == CHOSEN]

    def by_certainty(
        self,
    ) -> tuple[list[FeatureEvidence], list[FeatureEvidence], list[FeatureEvidence]]:
        """Return weighed features that predict, those that cannot be told, and the others."""
        sure = [feature for feature in self.weighed if feature.role in SURELY]
        unsure = [feature for feature in self.weighed if feature.role in UNTOLD]
        rest = [feature for feature in self.weighed if feature.role not in (*SURELY, *UNTOLD)]
        return sure, unsure, rest

    def amount(self, effect: Effect) -> Passage:
        """Say how much more or less of the outcome, or of its probability, an effect is."""
        return self.words.amount(effect.estimate, effect.low, effect.high)

    def weight_text(self, weight: float) -> str:
        """Format the weight of a set of features, which is an estimate if sets were sampled."""
        said = chance_text(weight)
        return said if self.exhaustive or said[0] in "<>" else f"about {said}"

    def share_words(self, feature: FeatureEvidence) -> str:
        """Write how sure a feature is to predict: a chance, or how many halves chose it."""
        if feature.chance is None:
            return ""
        n = self.way.n_halves
        return f"{round(feature.chance * n)} of {n}" if n else chance_text(feature.chance)

    @property
    def averaged_least_squares(self) -> dict[str, float] | None:
        """Coefficients of least squares averaged alike, by feature; None beside no average."""
        fit = self.fit
        if not fit.way.is_average or not fit.way.is_corrected or fit.family.has_classes:
            return None
        series = self.effects.least_squares
        return {label: series.of(column).estimate for column, label in enumerate(fit.labels)}

    def of_column(self, column: int) -> FeatureEvidence | None:
        """Return the feature that a column of X belongs to."""
        return next((item for item in self.features if column in item.columns), None)


def _likeliest(feature: FeatureEvidence) -> tuple[float, bool, float]:
    chance = 0.0 if feature.chance is None or feature.role == ALWAYS else feature.chance
    # Chances that print alike are equal.
    return round(chance, 2), feature.role != ALWAYS, abs(feature.effect.z)


def evidence_of(
    fit: Fit,
    naming: Naming | None = None,
    *,
    never: Sequence[str] = (),
    effort: Effort = "rough",
    place: int | None = None,
) -> Evidence:
    """Collect the numbers of a first screen from a fit, which are about one outcome equation.

    Parameters
    ----------
    fit : Fit
    naming : Naming, optional
        How columns are called; by default as in the summary.
    never : sequence of str
        Columns that must not predict, as far as the fit does not know it.
    effort : {"quick", "rough", "full"}
        How long weighing the sets of features behind a search may take.
    place : int, optional
        The class of an ordered outcome that effects are about, the lowest being 0; by default the
        highest.
    """
    fit.require("single outcome equation")
    fit.family.require("report")
    naming = naming or Naming.of(fit)
    whole_fit, fit = fit, fit.family.answered(fit, place)
    effects, weights = effects_of(fit, whole_fit), weights_of(fit, effort)
    whole = all_features_of(fit, effects, never)
    units = _units(fit, naming)
    share = _least_squares_share(fit, effects, weights)
    features = Features(fit, naming, effects, weights, whole, share)
    common = Evidence(
        fit=fit,
        whole=whole_fit,
        naming=naming,
        effects=effects,
        weights=weights,
        features=tuple(features.make(unit) for unit in units),
        judgement=judgement_of(fit, weights),
        held=fit.held_rho,
        pseudo=has_pseudo_weights(fit),
        all_features=whole,
        no_exclusion=lacks_exclusion(fit),
        chosen=_names(naming, units, fit.support) if fit.way.chose else (),
        rho_with_search=_rho_with_search(fit.way, effects, weights),
    )
    if not isinstance(weights, AssignmentWeights):
        return common
    return _with_weights(common, units, weights)


def _with_weights(
    evidence: Evidence, units: Sequence[tuple[int, ...]], weights: AssignmentWeights
) -> Evidence:
    """Add what the weights of all sets of features say."""
    mixture, naming = weights.mixture, evidence.naming
    leading = assignments_of(
        evidence.fit, weights.form, mixture.leading_states[:2], evidence.effects
    )
    best = [
        BestAssignment(
            **vars(item),
            names=_names(naming, units, item.mask),
            corrected=bool(state[-2]),
            index=bool(state[-1]),
            weight=float(weight),
        )
        for item, state, weight in zip(
            leading, mixture.leading_states[:2], mixture.leading_weight[:2], strict=True
        )
    ]
    if best and weights.chosen is not None and np.array_equal(best[0].mask, evidence.fit.support):
        # A set of features has the weight that it has with and without the correction.
        best[0] = replace(best[0], weight=weights.chosen)
    stand_in = None
    # Halves, not weights, say how sure an honest search is.
    if weights.stand_ins and not evidence.way.halves_rows:
        first = weights.stand_ins[0]
        stand_in = StandInEvidence(
            name=naming.name_of(first.columns),
            columns=first.columns,
            chance=weights.share(first.columns),
            corrected_with=first.corrected_with,
            corrected_without=first.corrected_without,
        )
    return replace(
        evidence,
        n_assignments=mixture.n_assignments,
        exhaustive=mixture.exhaustive,
        best=best[0] if best else None,
        second=best[1] if len(best) > 1 else None,
        n_half=weights.n_half,
        chosen_weight=weights.chosen,
        stand_in=stand_in,
    )


def _least_squares_share(
    fit: Fit, effects: Effects, weights: AssignmentWeights | str | None
) -> Floats | None:
    """BIC shares of the columns if no set of features holds lambda, (K,); None if not known."""
    if fit.way.is_average or not isinstance(weights, AssignmentWeights):
        return effects.least_squares_share
    if not fit.family.has_imr:
        return None
    return without_correction(weights.form, weights.mixture)[1]


def _rho_with_search(
    way: Way, effects: Effects, weights: AssignmentWeights | str | None
) -> tuple[float, float] | None:
    """Return the interval of rho that allows for the search."""
    if way.ignores_search:
        return weights.rho_interval if isinstance(weights, AssignmentWeights) else None
    return (effects.rho.low, effects.rho.high) if effects.rho.has_interval else None


def _units(fit: Fit, naming: Naming) -> list[tuple[int, ...]]:
    """Columns of either equation by feature: what moves together in a search, then by name."""
    selecting = set() if fit.probit is None else {int(column) for column in fit.probit.features}
    units: list[tuple[int, ...]] = []
    if fit.way.searched:
        selecting |= set() if fit.way.selecting is None else {*fit.way.selecting.columns}
        units = [*fit.way.choices.units, *_grouped(naming, fit.way.choices.always)]
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

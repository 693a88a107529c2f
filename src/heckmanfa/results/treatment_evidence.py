"""The numbers behind an answer about a treatment: its effects, on whom, and what ignores choice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from heckmanfa.fit import Fit
from heckmanfa.model.treatment_effects import EffectKind
from heckmanfa.results.distribution import LEVEL, Wald
from heckmanfa.results.effects import Effect
from heckmanfa.results.facts import Fact
from heckmanfa.results.judgement import clause_of
from heckmanfa.results.naming import EffectWords, Naming
from heckmanfa.results.treatment_report import TreatmentDiagnostics

Choice = Literal["yes", "unknown", "unreliable"]
"""whether who chose treatment differs from others in what the features do not hold"""


@dataclass(frozen=True)
class EffectOn:
    """The average effect on some rows."""

    kind: EffectKind
    effect: Effect
    n_rows: float
    """rows that it is an average of"""
    group: str = ""
    """the group that it is of; empty for all rows"""


@dataclass(frozen=True)
class Outside:
    """Rows whose probability of treatment only one of both groups has."""

    n_rows: int
    share: float
    """of all rows"""


@dataclass(frozen=True, eq=False)
class TreatmentEvidence:
    """The numbers behind an answer about a treatment."""

    fit: Fit = field(repr=False)
    naming: Naming = field(repr=False)
    treated: str
    """column that says who is treated"""
    effects: tuple[EffectOn, ...]
    """on everyone, the treated, the untreated and those at the margin"""
    gap: Effect
    """by how much the effect on the untreated is above that on the treated"""
    least_squares: Effect
    means: Effect
    """difference of mean outcomes"""
    measured: TreatmentDiagnostics
    words: EffectWords
    by: str = ""
    """column of the groups"""
    groups: tuple[EffectOn, ...] = ()
    """effects on each group"""
    outside: Outside | None = None
    """None without rows"""

    @property
    def outcome(self) -> str:
        """Name of what is fitted."""
        return self.naming.outcome

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the outcome, which are not marked as features are."""
        return (self.outcome, *([] if self.words.log is None else [self.words.log.of]))

    @property
    def is_separate(self) -> bool:
        """Whether treated and untreated have an equation each, so that effects differ."""
        return "effect" not in self.fit.equations

    def on(self, kind: EffectKind) -> EffectOn:
        """Return one of the average effects on rows of the fit."""
        return next(each for each in self.effects if each.kind == kind)

    @property
    def shown(self) -> tuple[EffectOn, ...]:
        """The effects that differ: with common regimes there is one."""
        return self.effects if self.is_separate else (self.on("ate"),)

    @property
    def shown_groups(self) -> tuple[EffectOn, ...]:
        """The effect on everyone in each group, if that can differ."""
        return tuple(each for each in self.groups if each.kind == "ate" and self.is_separate)

    @property
    def main(self) -> Effect:
        """The average effect on everyone."""
        return self.on("ate").effect

    @property
    def instruments(self) -> tuple[str, ...]:
        """Columns of the table that drive treatment alone."""
        fit = self.fit
        places = [column for column in fit.driving if not fit.support[column]]
        return tuple(dict.fromkeys(self.naming.sources[column] for column in places))

    @property
    def test(self) -> Wald:
        """The test that treatment is as if drawn by lot, given the features."""
        return self.measured.rho_lr or self.measured.rho_wald

    @property
    def doubt(self) -> str:
        """Why the model is not to be relied on, as a clause; empty if nothing is against it."""
        grave: list[Fact] = [fact for fact in self.measured.facts if fact.level == "problem"]
        if not grave:
            return ""
        return _DOUBTS.get((grave[0].key, grave[0].case)) or clause_of(grave[0])

    @property
    def choice(self) -> Choice:
        """Whether selection into treatment mattered."""
        if self.doubt:
            return "unreliable"
        return "yes" if not self.test.note and self.test.p_value < LEVEL else "unknown"


_DOUBTS = {
    ("instruments", "none"): "nothing drives treatment alone",
    ("instruments", "idle"): "what drives treatment alone hardly does",
    ("regime_rho", "outside"): "the estimated correlation of the errors is impossible",
    ("regime_rho", "near one"): "the estimated correlation of the errors is at its limit",
}

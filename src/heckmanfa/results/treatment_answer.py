"""The answer about a treatment: what the effect was, on whom, and whether choosing it mattered.

A first screen names no parameter of the model: its tiles hold these in their ``numbers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heckmanfa.results.answer import Answer, Tile, trust_tile
from heckmanfa.results.checks import Check
from heckmanfa.results.distribution import LEVEL
from heckmanfa.results.effects import Effect
from heckmanfa.results.headline import errors_kind
from heckmanfa.results.may_write import Sentence
from heckmanfa.results.treatment_evidence import TreatmentEvidence
from heckmanfa.text.labels import with_unit
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import MINUS, count, effects, number, p_equals

BY_LOT = "as if drawn by lot"
_KINDS = {"yes": "caution", "unknown": "unknown", "unreliable": "unknown"}
_TITLES = {"yes": "Yes", "unknown": "Cannot be told", "unreliable": "Not to be relied on"}
# Groups that a first screen has room for, and the instruments that a sentence names.
_GROUPS, _NAMED = 4, 3


@dataclass(frozen=True)
class TreatmentAnswer(Answer):
    """What was found about a treatment; ``which`` says for whom."""

    @property
    def tiles(self) -> dict[str, Tile]:
        """What the effect was, for whom, whether selection mattered, and trust."""
        return {
            "how_much": self.how_much,
            "whom": self.which,
            "selection": self.selection,
            "trust": self.trust,
        }


def answer_of_treatment(
    evidence: TreatmentEvidence,
    checks: Sequence[Check] = (),
    may_write: Sequence[Sentence] = (),
) -> Answer:
    """Put the numbers of a first screen into words; ``checks`` come the gravest first."""
    return TreatmentAnswer(
        headline=headline(evidence),
        lede=lede(evidence),
        which=_whom_tile(evidence),
        how_much=_effect_tile(evidence),
        selection=_choice_tile(evidence),
        trust=trust_tile(checks),
        may_write=tuple(may_write),
    )


def headline(evidence: TreatmentEvidence) -> Passage:
    """Say what treatment does to the outcome, or that this cannot be told."""
    t, y, effect = Name(evidence.treated), target_of(evidence), evidence.main
    if evidence.doubt:
        return passage("What ", t, " does to ", y, f" can hardly be told: {evidence.doubt}.")
    if not effect.excludes_zero:
        return passage("Whether ", t, " raises or lowers ", y, " cannot be told.")
    return passage(t, verb_of(effect), y, f" by {size_of(evidence, effect)} on average.")


def lede(evidence: TreatmentEvidence) -> Passage:
    """Say what ignoring who chose treatment would say, and what all of it rests on."""
    if evidence.doubt:
        said_by = interval_of(evidence, evidence.least_squares)
        return join(
            [
                passage(f"Least squares says {said_by}, but takes ", Name(evidence.treated)),
                passage(f"{BY_LOT}."),
            ]
        )
    return join([naive_words(evidence), condition_of(evidence)])


def naive_words(evidence: TreatmentEvidence) -> Passage:
    """Say how far the effect is from that of a treatment drawn by lot."""
    own, other, t = evidence.main, evidence.least_squares, Name(evidence.treated)
    mine, plain = evidence.words.numbers(own.estimate, other.estimate)
    if evidence.choice != "yes":
        return passage(
            *("Whether those who chose ", t, " differ from others in what no column holds cannot "),
            f"be told; {BY_LOT}, the effect would be {plain}.",
        )
    if mine == plain:
        return passage("Taking ", t, f" {BY_LOT} leaves the effect at {plain}.")
    verb = "overstates" if abs(other.estimate) > abs(own.estimate) else "understates"
    if own.estimate * other.estimate < 0.0:
        verb = "turns the sign of"
    return passage("Taking ", t, f" {BY_LOT} {verb} the effect: {plain} rather than {mine}.")


def condition_of(evidence: TreatmentEvidence) -> Passage:
    """Say what the effect rests on, which no data can show."""
    if not evidence.instruments:
        return passage()
    moves = " moves " if len(evidence.instruments) == 1 else " move "
    return passage(
        *("This holds if ", named(evidence.instruments, _NAMED), moves, target_of(evidence)),
        *(" through ", Name(evidence.treated), " alone, which no data can show."),
    )


# Numbers in words. --------------------------------------------------------------------------------


def target_of(evidence: TreatmentEvidence) -> Passage:
    """Name what there is more or less of: the wage, where its logarithm is fitted."""
    log = evidence.words.log
    return evidence.words.target if log is None else log.target


def verb_of(effect: Effect) -> str:
    """Say whether an effect is up or down, between blanks."""
    return " raises " if effect.estimate >= 0.0 else " lowers "


def size_of(evidence: TreatmentEvidence, effect: Effect) -> str:
    """Write how large an effect is, without its sign."""
    words = evidence.words
    ends = effect.estimate, effect.low, effect.high
    if words.log is not None:
        return words.numbers(*ends)[0].removeprefix(MINUS)
    return with_unit(effects(*ends)[0].removeprefix(MINUS), evidence.outcome)


def interval_of(evidence: TreatmentEvidence, effect: Effect) -> str:
    """Write an effect with its interval: '24.9% (19.0% to 31.0%)'."""
    value, low, high = evidence.words.numbers(effect.estimate, effect.low, effect.high)
    return f"{value} ({low} to {high})" if effect.has_interval else value


def ends_of(evidence: TreatmentEvidence) -> Passage:
    """Give the interval of the effect on everyone, and its kind."""
    effect = evidence.main
    if not effect.has_interval:
        return passage("interval not known")
    _, low, high = evidence.words.numbers(effect.estimate, effect.low, effect.high)
    kind = errors_kind(evidence.fit, evidence.naming)
    return passage(f"95% interval {low} to {high}", *kind)


# Tiles. -------------------------------------------------------------------------------------------


def _effect_tile(evidence: TreatmentEvidence) -> Tile:
    question, effect, words = "What was the effect?", evidence.main, evidence.words
    naive = interval_of(evidence, evidence.least_squares)
    plain = passage(f"Least squares says {naive}; it takes ", Name(evidence.treated), f" {BY_LOT}.")
    if evidence.doubt:
        own = interval_of(evidence, effect)
        why = passage(f"The estimate of {own} is not to be relied on: {evidence.doubt}.")
        return Tile(question, "No estimate to rely on", "", join([why, plain]))
    heading = passage(words.amount(effect.estimate, effect.low, effect.high), " on average")
    start = passage(
        ends_of(evidence), f", over all {count(round(evidence.on('ate').n_rows))} rows."
    )
    on_log = words.on_log(effect.estimate, effect.low, effect.high)
    said_all = join([start, plain, on_log])
    return Tile(question, str(heading), "", said_all, heading)


def _whom_tile(evidence: TreatmentEvidence) -> Tile:
    question = "For whom?"
    if evidence.doubt:
        return Tile(question, "Cannot be told", "unknown", passage("See what speaks against it."))
    if not evidence.is_separate:
        words = passage(
            "This model gives everyone one effect. With separate regimes, those of treated and "
            "untreated may differ."
        )
        return Tile(question, "Taken to be the same for everyone", "", words)
    gap = evidence.gap
    title = "No clear difference between treated and untreated"
    if gap.excludes_zero:
        title = f"{'More' if gap.estimate > 0.0 else 'Less'} for those who were not treated"
    lines = [
        f"Treated: {_of(evidence, 'att')}.",
        f"Untreated: {_of(evidence, 'atu')}.",
        f"Those whom a slight push would treat: {_of(evidence, 'margin')}.",
    ]
    return Tile(question, title, "", join([passage(" ".join(lines)), _by_group(evidence)]))


def _of(evidence: TreatmentEvidence, kind: str) -> str:
    return interval_of(evidence, next(e.effect for e in evidence.effects if e.kind == kind))


def _of_group(evidence: TreatmentEvidence, effect: Effect) -> str:
    return evidence.words.numbers(effect.estimate, effect.low, effect.high)[0]


def _by_group(evidence: TreatmentEvidence) -> Passage:
    """Name the effects on groups."""
    groups = evidence.shown_groups
    if not groups:
        return passage()
    first = ", ".join(
        f"{each.group} {_of_group(evidence, each.effect)}" for each in groups[:_GROUPS]
    )
    more = len(groups) - _GROUPS
    rest = f" and {more} more" if more > 0 else ""
    return passage("By ", Name(evidence.by), f": {first}{rest}.")


def _choice_tile(evidence: TreatmentEvidence) -> Tile:
    question, choice = "Did selection into treatment matter?", evidence.choice
    if choice == "unreliable":
        words = passage("A check says not to rely on this model.")
    else:
        p = p_equals(evidence.test.p_value)
        rare = "rare" if choice == "yes" else "nothing unusual"
        words = passage(f"Were treatment {BY_LOT}, data like these would be {rare} ({p}).")
        if evidence.test.note:
            words = passage("That was not tested.")
        words = join([words, _who_chose(evidence)])
    numbers = numbers_of(evidence)
    return Tile(question, _TITLES[choice], _KINDS[choice], words, numbers=numbers)


def _who_chose(evidence: TreatmentEvidence) -> Passage:
    """Say whether the treated would do better than others without treatment, if that is clear."""
    suffix = "0" if evidence.is_separate else ""
    clear = evidence.measured.rho_walds[f"rho{suffix}"].p_value < LEVEL
    if evidence.choice != "yes" or not clear:
        return passage()
    more = "more" if evidence.fit.errors[f"imr{suffix}"].value > 0.0 else "less"
    without = "without treatment" if evidence.is_separate else "treated or not"
    return passage(
        f"The treated would have {more} ",
        *(target_of(evidence), f" than others with the same features, {without}."),
    )


def numbers_of(evidence: TreatmentEvidence) -> Passage:
    """Give the correlations of the errors, and their test."""
    measured, errors = evidence.measured, evidence.fit.errors
    rhos = ", ".join(f"{name} {number(errors[name].value)}" for name in measured.rho_walds)
    kind = "Wald test" if measured.rho_lr is None else "LR test"
    zero = " = ".join(measured.rho_walds)
    return passage(f"{rhos}. {kind} of {zero} = 0: {evidence.test}.")

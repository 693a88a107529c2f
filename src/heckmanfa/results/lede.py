"""What selection means for a reader, in plain words: the second line of an answer, and its tile.

The verdict of `heckmanfa.results.judgement` is put into words that name no parameter of the model.
`heckmanfa.results.selection_numbers` has the numbers behind it.

A *yes* says how far those without an outcome are from the average of anyone with their features, as
far as the model knows it (`Evidence.gap`), and how far ignoring that moves the main effect.
"""

from __future__ import annotations

from dataclasses import dataclass

from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import HARDLY
from heckmanfa.results.judgement import VerdictKind
from heckmanfa.results.selection_numbers import rivals_of, without_correction
from heckmanfa.text.chances import HIGH, LOW
from heckmanfa.text.labels import with_unit
from heckmanfa.text.passage import Name, Passage, join, passage
from heckmanfa.text.wording import MINUS, capitalised, chance_text, p_equals, signed

_TITLES: dict[VerdictKind, str] = {
    "yes": "Yes",
    "no sign": "No sign of it",
    "unknown": "Cannot be told",
    "unreliable": "Not to be relied on",
    "not weighed": "Not examined",
    "nothing missing": "No outcome is missing: nothing to correct",
}


@dataclass(frozen=True)
class SelectionVerdict:
    """Whether selection mattered, in plain words."""

    title: str
    words: Passage
    """what stands behind it"""
    sentence: Passage
    """what it means for a reader"""


def verdict(evidence: Evidence) -> SelectionVerdict:
    """Put into words whether selection mattered."""
    title = _TITLES.get(evidence.judgement.kind) or f"Not asked: {assumed(evidence)}"
    return SelectionVerdict(title, _words(evidence), lede(evidence))


def without_outcome(evidence: Evidence) -> Passage:
    """Name the rows without an outcome: 'those without lwage'."""
    # A row lacks the column, not its logarithm.
    log = evidence.words.log
    fitted = evidence.outcome if log is None else log.of
    return passage("those without ", Name(evidence.fit.origin.outcome or fitted))


def differ(evidence: Evidence) -> Passage:
    """Say what selection on what was not observed is, as a clause."""
    return passage(without_outcome(evidence), " differ from others with the same features")


def assumed(evidence: Evidence) -> str:
    """Say what was taken as given about selection, as a clause."""
    if evidence.held is not None:
        return "how strong selection is was set beforehand"
    if evidence.window is not None:
        return "how strong selection is was kept within limits"
    never = evidence.way.averaging.mixture.correction == "never"
    return f"{'no' if never else 'every'} model allows for selection"


def lede(evidence: Evidence) -> Passage:
    """Say in a sentence or two what selection means for a reader."""
    judged, differing = evidence.judgement, differ(evidence)
    whether = passage("Whether ", differing)
    match judged.kind:
        case "nothing missing":
            return passage("No outcome is missing, so there is no selection to correct for.")
        case "not asked":
            return passage(whether, f" was not asked: {assumed(evidence)}.")
        case "not weighed":
            return passage(whether, " was not examined.")
        case "unreliable":
            return passage(whether, " is not known: this model is not to be relied on.")
        case "no sign":
            chance = "" if judged.chance is None else f" (chance {chance_text(judged.chance)})"
            said = passage("There is no sign that ", differing, f"{chance}.")
            return join([said, _moved(evidence)])
        case "yes":
            return join([_gap(evidence), _moved(evidence)])
    return _unknown(evidence)


def _gap(evidence: Evidence) -> Passage:
    """Say how those without an outcome differ from others with the same features."""
    gap, target, same = evidence.gap, evidence.words.target, " than average for their features"
    who = begin(passage(_condition(evidence), without_outcome(evidence)))
    if evidence.fit.family.has_classes and evidence.rho.excludes_zero:
        less = "lower" if evidence.rho.estimate > 0.0 else "higher"
        return passage(who, f" would have a {less} ", target, same, ".")
    if not gap.known and evidence.fit.family.has_imr and evidence.rho.excludes_zero:
        # How far they are apart follows from lambda of normal errors; the sign is that of rho.
        less = "less " if evidence.rho.estimate > 0.0 else "more "
        return passage(who, f" would have {less}", _outcome(evidence), same, ".")
    if not gap.excludes_zero:
        return passage(
            *(who, " differ from others with the same features, but whether they would have more"),
            *(" or less ", _outcome(evidence), " cannot be told."),
        )
    ends = passage(" (95% interval ", span(evidence, gap), ")")
    return passage(who, " would have about ", evidence.amount(gap), same, ends, ".")


def _condition(evidence: Evidence) -> str:
    """Say what a yes rests on, before a clause."""
    judged = evidence.judgement
    if judged.test is not None:
        return "If the excluded features have no effect of their own, "
    return "" if judged.exclusion_named else "If the errors are normal, "


def _moved(evidence: Evidence) -> Passage:
    """Say how far ignoring selection moves the main effect; empty if that is not known."""
    main, words = evidence.main, evidence.words
    if main is None or not main.least_squares.known or not main.effect.known:
        return passage()
    own, other = main.effect, main.least_squares
    # As the tile of the effect writes them.
    mine = words.numbers(own.estimate, own.low, own.high)[0]
    plain = words.numbers(other.estimate, other.low, other.high)[0]
    unit = f" {words.unit}" if words.unit else ""
    change = evidence.naming.change_of(main.lead)
    mattered = evidence.judgement.kind == "yes"
    start = "Ignoring that" if mattered else "Ignoring selection"
    if mine == plain:
        return passage(f"{start} leaves what goes with ", change, f" at {mine}{unit}.")
    instead = f": {plain} rather than {mine}{unit}."
    if main.shift < HARDLY:
        return passage(f"{start} hardly changes what goes with ", change, instead)
    if not mattered:
        would = f" at {plain} rather than {mine}{unit}."
        return passage(f"{start} would put what goes with ", change, would)
    verb = "overstates" if abs(other.estimate) > abs(own.estimate) else "understates"
    if own.estimate * other.estimate < 0.0:
        verb = "turns the sign of"
    return passage(f"{start} {verb} what goes with ", change, instead)


def _unknown(evidence: Evidence) -> Passage:
    """Say what cannot be told, and between which numbers the main effect is either way."""
    differing, tells = differ(evidence), ": these data do not tell which."
    rivals = plain_rivals(evidence)
    if rivals:
        return rivals + tells
    whether = passage("Whether ", differing, " cannot be told from these data.")
    main, judged = evidence.main, evidence.judgement
    left_out = judged.chance is None and evidence.way.is_average
    if main is None or not main.effect.has_interval or evidence.no_exclusion or left_out:
        return whether
    if judged.doubt:
        return whether
    change, effect, kind = evidence.naming.change_of(main.lead), main.effect, "95% interval"
    if not evidence.way.is_average:
        # The interval is that of one model, which corrects; an average has others among its own.
        if not main.least_squares.has_interval:
            return whether
        effect, kind = effect.joined(main.least_squares), "95% intervals of both models"
        kind += ", which ignore the search" if evidence.way.ignores_search else ""
    either = passage("Either way, ", change, " goes with ", _range(evidence, effect), f" ({kind}).")
    return join([whether, either])


def _range(evidence: Evidence, effect: Effect) -> Passage:
    """Say between which amounts of the outcome an effect lies."""
    words = evidence.words
    if words.unit:
        _, low, high = words.numbers(effect.estimate, effect.low, effect.high)
        return passage(f"{signed(low)} to {signed(high)} {words.unit} in ", words.target)
    more = " "
    if effect.excludes_zero:
        more = " more " if effect.low > 0.0 else " less "
    return passage(span(evidence, effect), more, _outcome(evidence))


def _outcome(evidence: Evidence) -> Passage:
    """Name what there is more or less of: the wage, where its logarithm is fitted."""
    log = evidence.words.log
    return evidence.words.target if log is None else log.target


def plain_rivals(evidence: Evidence) -> Passage:
    """Say what else may be behind the data, if selection cannot be told; empty otherwise.

    A sentence without its full stop.
    """
    if not rivals_of(evidence):
        return passage()
    y, either = Name(evidence.outcome), passage("Either ", differ(evidence))
    if evidence.judgement.rival == "index":
        return passage(either, ", or ", without_correction(evidence))
    stand_in = evidence.stand_in
    assert stand_in is not None
    name = Name(stand_in.name)
    if stand_in.corrected_without > stand_in.corrected_with:
        return passage(either, ", or ", name, " predicts ", y)
    return passage(either, " and ", name, " predicts ", y, ", or neither")


def _words(evidence: Evidence) -> Passage:
    """Say what stands behind the verdict."""
    judged = evidence.judgement
    match judged.kind:
        case "nothing missing":
            fitted = evidence.fit.family.words.plain
            return passage("Every row has ", Name(evidence.outcome), f", so {fitted} is fitted.")
        case "not asked":
            return passage("So these data say nothing about it.")
        case "unreliable":
            return passage("A check says not to rely on this model.")
        case "not weighed":
            return passage("How likely it is that selection mattered was not computed.")
    if judged.chance is not None:
        # Verdicts have the cuts that features have.
        cuts = f" A yes needs {HIGH}, and no sign of it less than {LOW}."
        cuts = cuts if judged.kind == "unknown" else ""
        return passage(f"The chance that it did is {chance_text(judged.chance)}.{cuts}")
    if evidence.no_exclusion:
        return passage(
            "No feature is excluded from the prediction, so these data do not separate selection "
            "from the effects of the features."
        )
    if judged.test is None or judged.test.note:
        return passage("These data do not tell how strong selection is.")
    p = p_equals(judged.test.p_value)
    if judged.kind == "yes":
        return passage(f"Without selection, data like these would be rare ({p}).")
    return passage(f"Without selection, data like these would be nothing unusual ({p}).")


def span(evidence: Evidence, effect: Effect) -> Passage:
    """Write an interval in plain words: '0.057 to 0.213', or '0.1 less to 0.2 more'.

    Of an interval below zero it has the sizes: the words around it say that it is less.
    """
    words = evidence.words
    _, low, high = words.numbers(effect.estimate, effect.low, effect.high)
    unit = f" {words.unit}" if words.unit else ""
    if not unit and words.log is None:
        unit = with_unit("", evidence.outcome)
    if effect.low >= 0.0:
        return passage(f"{low} to {high}{unit}")
    if effect.high <= 0.0:
        return passage(f"{_size(high)} to {_size(low)}{unit}")
    return passage(f"{_size(low)} less to {high} more{unit}")


def _size(number: str) -> str:
    return number.removeprefix(MINUS)


def begin(words: Passage) -> Passage:
    """Begin a sentence: with a capital, unless it begins with a name."""
    first, *rest = [part for part in words.parts if part]
    return Passage((capitalised(first) if isinstance(first, str) else first, *rest))

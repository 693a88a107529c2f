"""What may be written about a treatment: sentences for a paper and for a newspaper."""

from __future__ import annotations

from collections.abc import Sequence

from heckmanfa.results.checks import Check, badge
from heckmanfa.results.lede import begin
from heckmanfa.results.may_write import CARE, Sentence, fitting, gravest
from heckmanfa.results.treatment_answer import (
    BY_LOT,
    condition_of,
    ends_of,
    interval_of,
    naive_words,
    numbers_of,
    size_of,
    target_of,
    verb_of,
)
from heckmanfa.results.treatment_evidence import TreatmentEvidence
from heckmanfa.text.passage import Name, Passage, join, named, passage
from heckmanfa.text.wording import count, plural

_NAMED = 3


def may_write_of_treatment(
    evidence: TreatmentEvidence, checks: Sequence[Check] = ()
) -> tuple[Sentence, ...]:
    """Return what may be written about the effects of a treatment, a sentence for each claim."""
    if evidence.doubt or badge(checks)[0] == "problem":
        return _unreliable(evidence, checks)
    written = [Sentence("effect", _effect(evidence, checks), _effect_news(evidence, checks))]
    if evidence.is_separate:
        written.append(Sentence("whom", _whom(evidence), _whom(evidence)))
    return (*written, Sentence("selection", _choice(evidence), naive_words(evidence)))


def _rows(evidence: TreatmentEvidence) -> str:
    counts = evidence.fit.row_counts
    total = counts["selected"] + counts["unselected"]
    return f"{plural(total, 'row')}, {count(counts['selected'])} treated"


def _unreliable(evidence: TreatmentEvidence, checks: Sequence[Check]) -> tuple[Sentence, ...]:
    t, y = Name(evidence.treated), target_of(evidence)
    start = passage("The model of what ", t, " does to ", y)
    first = passage(start, f" ({_rows(evidence)}) is not to be relied on.")
    why = [passage(check.title) for check in checks if check.level == "problem"]
    last = passage("No estimate of it is reported as a finding.")
    paper = fitting(join([first, *why, last]), join([first, *why[:1], last]), join([first, last]))
    news = passage(
        "These data do not allow a reliable statement about what ", t, " does to ", y, "."
    )
    whether = passage("Whether those who chose ", t, " differ from others is not known.")
    return Sentence("effect", paper, news), Sentence("selection", whether, whether)


def _if_alone(evidence: TreatmentEvidence) -> Passage:
    """Say what the effect rests on, before a clause."""
    verb = " moves " if len(evidence.instruments) == 1 else " move "
    return passage(
        *("If ", named(evidence.instruments, _NAMED), verb, target_of(evidence), " through "),
        *(Name(evidence.treated), " alone, "),
    )


def _effect(evidence: TreatmentEvidence, checks: Sequence[Check]) -> Passage:
    """Give the effect with its interval, how it was found, and what ignores choice."""
    effect, care, spec = evidence.main, gravest(checks), evidence.fit.spec
    t, size = Name(evidence.treated), size_of(evidence, effect)
    past = verb_of(effect).replace("s ", "d ")
    start = passage(_if_alone(evidence), t, past, target_of(evidence), f" by {size} on average")
    how = "maximum likelihood" if spec.method == "ml" else "two steps"
    model = passage(f"{evidence.fit.family.words.model}, {how}")
    plain = passage(f"least squares: {evidence.words.numbers(evidence.least_squares.estimate)[0]}")
    ends, rows = ends_of(evidence), passage(_rows(evidence))
    details = ([ends, model, rows, plain], [ends, model, rows], [ends, rows], [ends])
    return fitting(
        *(join([passage(start, " (", join(inside, "; "), ")."), care]) for inside in details)
    )


def _effect_news(evidence: TreatmentEvidence, checks: Sequence[Check]) -> Passage:
    effect, words = evidence.main, evidence.words
    care = passage(CARE) if gravest(checks) else passage()
    t, y = Name(evidence.treated), target_of(evidence)
    _, low, high = words.numbers(effect.estimate, effect.low, effect.high)
    if not effect.excludes_zero:
        said = passage("Whether ", t, " raises or lowers ", y, " cannot be told from these data")
    else:
        size = size_of(evidence, effect)
        said = passage(t, verb_of(effect), y, f" by about {size} on average")
    unsure = f"; the true figure plausibly lies anywhere from {low} to {high}."
    whole = passage(begin(said), unsure)
    return fitting(
        join([whole, condition_of(evidence), care]), join([whole, condition_of(evidence)])
    )


def _whom(evidence: TreatmentEvidence) -> Passage:
    """Give the effects on the treated and on the untreated."""
    one, zero = (
        interval_of(evidence, evidence.on("att").effect),
        interval_of(evidence, evidence.on("atu").effect),
    )
    start = passage("The effect of ", Name(evidence.treated), " on ", target_of(evidence))
    return passage(
        start,
        f" was {one} for those who were treated, and would have been {zero} for the others.",
    )


def _choice(evidence: TreatmentEvidence) -> Passage:
    """Say whether treatment depends on what was not observed."""
    what, numbers = "selection into treatment on what was not observed", numbers_of(evidence)
    inside = passage(" (", Passage((str(numbers).rstrip("."),)), ")")
    if evidence.choice == "yes":
        return passage(_if_alone(evidence), what, " took place", inside, ".")
    return passage(
        f"The data do not tell whether treatment is {BY_LOT}, given the features", inside, "."
    )

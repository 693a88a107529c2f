"""The numbers behind the verdict on selection, for analysts: chance, lambda, rho, and tests.

`heckmanfa.results.lede` says in plain words what they mean. These stand below the first screen, on
the console and in JSON.
"""

from __future__ import annotations

from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.naming import held_in_words
from heckmanfa.text.chances import BY
from heckmanfa.text.passage import Name, Passage, join, passage
from heckmanfa.text.wording import (
    ONLY_NORMALITY,
    capitalised,
    chance_text,
    effects,
    p_equals,
    plural,
    true_minus,
    typeset,
    window_text,
)

LITTLE_RHO = 0.3
"""how far rho is let run either way where nothing but normality identifies it"""


def given_rho(evidence: Evidence) -> str:
    """Say in which window rho was kept, at which value it was held, or where the correction is."""
    if evidence.held is not None:
        return f"rho was {held_in_words(evidence.held)}"
    if evidence.window is not None:
        return f"rho was kept in {true_minus(window_text(evidence.window))}"
    never = evidence.way.averaging.mixture.correction == "never"
    return f"{'no' if never else 'every'} set of features has the correction"


def rivals_of(evidence: Evidence) -> Passage:
    """Say what the correction competes with, if it cannot be told; empty otherwise.

    A sentence without its full stop.
    """
    judged, y = evidence.judgement, Name(evidence.outcome)
    if judged.kind != "unknown" or judged.chance is None:
        return passage()
    if judged.rival == "index":
        return passage("Either selection mattered, or ", without_correction(evidence))
    stand_in = evidence.stand_in
    if stand_in is None:
        return passage()
    name = Name(stand_in.name)
    if stand_in.corrected_without > stand_in.corrected_with:
        return passage("Either selection mattered, or ", name, " predicts ", y)
    return passage("Either selection mattered and ", name, " predicts ", y, ", or neither")


def without_correction(evidence: Evidence) -> Passage:
    """Say what the data look like if the index takes the correction's place, as a clause."""
    y = Name(evidence.outcome)
    alone = (
        "the features that drive selection account for all of the difference between those with "
    )
    return passage(alone, y, " and those without")


def tested(evidence: Evidence) -> tuple[str, Effect]:
    """What carries the correction: rho if the outcome is binary or after ML, otherwise lambda."""
    if evidence.fit.spec.method == "ml":
        return "rho", evidence.rho
    return "lambda", evidence.imr


def _tested_interval(evidence: Evidence) -> tuple[str, Effect, str, bool]:
    """Return what carries the correction, its estimate and what its interval is called.

    Last, whether that interval allows for the search.
    """
    what, effect = tested(evidence)
    ends = evidence.rho_with_search if what == "rho" else None
    if not evidence.way.ignores_search or ends is None:
        return what, effect, "95% interval", not evidence.way.ignores_search
    # An interval of features known beforehand would read as a proof.
    return what, Effect(effect.estimate, *ends), "95% interval with the search", True


def correction_words(evidence: Evidence) -> str:
    """Give the estimate that carries the correction, with its interval, as a clause."""
    if not evidence.fit.family.can("single rho"):
        return series_words(evidence)
    what, effect, interval, _ = _tested_interval(evidence)
    value, low, high = effects(effect.estimate, effect.low, effect.high)
    of = {"lambda": "coefficient of lambda"}.get(what, what)
    if not effect.has_interval:
        return f"{of} {value}"
    return f"{of} {value}, {interval} {low} to {high}"


def series_words(evidence: Evidence) -> str:
    """Say what corrects in place of lambda, as a clause."""
    n_terms = len(evidence.fit.dependence_terms) - 1
    return f"a series of {plural(n_terms, 'term')} in the selection index"


def selection_numbers(evidence: Evidence) -> Passage:
    """Give the numbers behind the verdict on selection; empty if no outcome is missing."""
    judged = evidence.judgement
    match judged.kind:
        case "nothing missing":
            return passage()
        case "not asked":
            return passage(f"{given_rho(evidence)}, so rho tests nothing, and has no interval.")
    if judged.chance is None and judged.doubt and evidence.way.is_average:
        return passage(f"{capitalised(judged.doubt)}, so it was left out.")
    doubt = passage()
    if judged.kind == "unreliable":
        doubt = passage(f"The model is not to be relied on ({typeset(judged.doubt)}).")
    if evidence.no_exclusion and judged.chance is None:
        only = passage(f"{capitalised(ONLY_NORMALITY)}.")
        return join([_correction(evidence), _rho(evidence), only])
    weighed = passage()
    if judged.chance is not None:
        share = f"its share of the weight of all sets, by {BY}"
        weighed = passage(f"The correction has a chance of {chance_text(judged.chance)}: {share}.")
    elif judged.kind == "not weighed":
        weighed = passage(evidence.chances_missing or "Sets of features were not weighed.")
    return join([doubt, weighed, _correction(evidence), _rho(evidence), _with_all(evidence)])


def _correction(evidence: Evidence) -> Passage:
    """Give the estimate of the correction, and of which sets it is."""
    test, words = evidence.judgement.test, evidence.fit.family.words
    judged = passage()
    if test is not None and not test.note:
        judged = passage(f"The {words.test} has {p_equals(test.p_value)}.")
    if not evidence.fit.family.can("single rho"):
        said = passage(f"{capitalised(series_words(evidence))} corrects; it has no rho.")
        return join([said, judged])
    what, effect, interval, allows_for_search = _tested_interval(evidence)
    value, low, high = effects(effect.estimate, effect.low, effect.high)
    name = "The coefficient of lambda" if what == "lambda" else what
    if not effect.has_interval:
        said = passage(f"{name} is {value}; its interval is not known.")
    else:
        how = "" if allows_for_search else evidence.way.words.of_search
        held = evidence.way.is_average and evidence.judgement.kind == "yes"
        if held:
            how = " over the sets that hold it"
        said = passage(f"{name} is {value}, {interval} {low} to {high}{how}.")
        if held and not effect.excludes_zero:
            said = join([said, passage("Its sign cannot be told.")])
    return join([said, judged])


def _rho(evidence: Evidence) -> Passage:
    """Give rho beside the coefficient of lambda."""
    rho = evidence.rho
    if tested(evidence)[0] == "rho" or not rho.known:
        return passage()
    value, low, high = effects(rho.estimate, rho.low, rho.high)
    ends = f" (95% interval {low} to {high})" if rho.has_interval else ""
    return passage(f"rho is {value}{ends}.")


def _with_all(evidence: Evidence) -> Passage:
    """Give the test of the correction with all features, which no search had a part in."""
    whole = evidence.judgement.all_features
    if whole is None or whole.test.note:
        return passage()
    (value,), p = effects(whole.estimate), p_equals(whole.test.p_value)
    what = "rho" if tested(evidence)[0] == "rho" else "the coefficient of lambda"
    return passage(f"With all features {what} is {value}, and the test of rho = 0 has {p}.")

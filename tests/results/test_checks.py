"""Checks: how far to trust an answer, the gravest first."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import heckmanfa
from heckmanfa import Heckman
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results.checks import (
    FACTS_OF_WARNING,
    Check,
    badge,
    check_of,
    count_words,
    fine_lines,
    ordered_checks,
)
from heckmanfa.results.fact_words import FACT_WORDS, tell
from heckmanfa.results.facts import Fact
from heckmanfa.results.fit_facts import rho_fact
from heckmanfa.text.option_words import at_command_line, told

SOURCE = Path(heckmanfa.__file__).parent


def check(key, level, value=""):
    return Check(key, level, "A title.", value, "Words.", "Do it.", FACT_WORDS[key].name)


def keys_in_source():
    """Keys of the calls that make facts, where these are constants."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "Fact(" not in text and "tell(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                place = {"Fact": 0, "tell": 1}.get(node.func.id, 9)
                if len(node.args) > place and isinstance(node.args[place], ast.Constant):
                    found.add(node.args[place].value)
    return found


def test_every_fact_has_words_and_every_warning_a_fact():
    keys = keys_in_source()
    assert len(keys) > 40
    assert keys <= {*FACT_WORDS}
    assert {key for keys in FACTS_OF_WARNING.values() for key in keys} <= {*FACT_WORDS}
    assert {*HeckmanfaWarning.__subclasses__()} == {*FACTS_OF_WARNING}


def texts(text):
    return [text] if isinstance(text, str) else [*text.values()]


CHECKED = {key: about for key, about in FACT_WORDS.items() if about.name and texts(about.do)[0]}


@pytest.mark.parametrize("key", CHECKED)
def test_every_title_is_a_sentence_and_says_what_to_do(key):
    about = CHECKED[key]
    for title in filter(None, texts(about.title)):
        assert title.endswith(".")
        assert len(title.split()) < 25
        assert ": " not in title
    for do in texts(about.do):
        assert do.endswith((".", "}"))
    assert not any(name.endswith(".") for name in texts(about.name))
    for words in (about.title, about.do, about.why, about.meaning, about.sentence):
        for text in texts(words):
            for banned in ("only drive", "safe", "mend ", "the normal law", "would be none"):
                assert banned not in told(text)


def test_the_gravest_level_comes_first_and_in_a_level_the_gravest_kind():
    given = [
        check("derived", "note"),
        check("condition", "ok"),
        check("rows_lost", "caution"),
        check("what_if", "caution"),
        check("exclusions", "caution"),
        check("best_set", "caution"),
        check("normality_prediction", "caution"),
        check("rho", "problem"),
        check("clusters", "problem"),
    ]
    keys = [one.key for one in ordered_checks(given)]
    assert keys == [
        *("rho", "clusters", "normality_prediction", "best_set", "exclusions", "what_if"),
        *("rows_lost", "derived", "condition"),
    ]
    assert ordered_checks(reversed(given)) == ordered_checks(given)


def test_of_two_with_one_key_the_graver_stays():
    given = [check("clusters", "ok"), check("clusters", "caution"), check("clusters", "note")]
    assert [one.level for one in ordered_checks(given)] == ["caution"]


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        (["ok", "note", "caution", "problem"], ("problem", "Do not rely on it")),
        (["ok", "caution", "note"], ("caution", "Read with care")),
        (["ok", "note"], ("ok", "No warning found")),
        ([], ("ok", "No warning found")),
    ],
)
def test_the_badge_is_that_of_the_gravest_check(levels, found):
    keys = ["rho", "condition", "derived", "clusters"]
    assert badge([check(key, level) for key, level in zip(keys, levels, strict=False)]) == found


def test_checks_are_counted_and_those_that_are_fine_share_a_line():
    given = [
        check("exclusions", "caution"),
        check("best_set", "caution"),
        check("derived", "note"),
        check("rho", "ok", "0.1, inside (-1, 1)"),
        check("condition", "ok", "18.5"),
    ]
    assert count_words(given) == "2 cautions and 1 note; 2 checks are fine. The gravest first."
    assert fine_lines(given) == ["rho: 0.1, inside (-1, 1)", "condition number: 18.5"]
    assert count_words(given[3:4]) == "1 check is fine."
    assert fine_lines(given[:3]) == []


@pytest.fixture(scope="module")
def fit(simulated):
    return Heckman([0, 2, 3]).fit(simulated.X, simulated.y).fit_


def test_a_fact_becomes_a_check_with_true_minus_signs_and_the_name_of_the_outcome(fit):
    (found,) = check_of(rho_fact(fit.with_errors(rho=-1.2)), fit, "lwage")
    assert (found.key, found.level, found.value) == ("rho", "problem", "\u22121.200")
    assert found.words.startswith("Outside (\u22121, 1)")
    assert found.title == "The estimated strength of selection is impossible."
    assert "select_only=[...]" in found.do
    with at_command_line():
        assert "--select-only" in check_of(rho_fact(fit.with_errors(rho=-1.2)), fit, "lwage")[0].do
    fact = Fact("normality_prediction", "caution", "chi2(2) = 9", "Rejected.")
    (found,) = check_of(fact, fit, "pay\x1b[1m")
    assert found.title.startswith("The errors of pay")
    assert "\x1b" not in found.title


def test_a_second_maximum_is_a_problem_and_a_kind_of_weights_is_a_note(fit):
    maxima = Fact("maxima", "caution", "two", "The estimates are at the higher.")
    kinds = Fact("weight_kinds", "caution", "a", "AIC weights favour a.")
    levels = [check_of(fact, fit, "y")[0].level for fact in (maxima, kinds)]
    assert levels == ["problem", "note"]


def test_what_was_not_tested_is_a_note(fit):
    fact = Fact("reset", "caution", "not computed", "Not so.", case="untested")
    (found,) = check_of(fact, fit, "y")
    assert (found.level, found.words) == ("note", "Not so.")
    assert found.title == "Not tested: RESET."


def test_what_only_says_what_an_estimate_is_checks_nothing(fit):
    assert check_of(tell(fit, "two_step_errors", "note"), fit, "y") == []
    assert check_of(tell(fit, "search", "note", judged="The best of all."), fit, "y") == []

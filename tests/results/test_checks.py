"""Checks: how far to trust an answer, the gravest first."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import heckmanfa
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results.checks import Check, badge, count_words, fine_words, ordered_checks
from heckmanfa.results.facts import Kind

SOURCE = Path(heckmanfa.__file__).parent


def check(key, level, value=""):
    return Check(key, level, "A title.", value, "Words.", "Do it.", CHECK_WORDS[key].name)


def keys_in_source(*classes):
    """First arguments of the calls that make findings or caveats, where these are constants."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        if path.name in ("checks.py", "check_words.py", "check_keys.py"):
            continue
        text = path.read_text(encoding="utf-8")
        if not any(f"{name}(" in text for name in classes):
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in classes
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                found.add(node.args[0].value)
    return found


def test_every_finding_and_caveat_has_words_or_is_known_to_check_nothing():
    keys = keys_in_source("Finding", "Caveat")
    assert len(keys) > 40
    for key in keys:
        assert key in NO_CHECKS or CHECK_OF_CAVEAT.get(key, key) in CHECK_WORDS, key
    assert {*CHECK_OF_CAVEAT.values()} <= {*CHECK_WORDS}
    assert {key for keys in CHECKS_OF_WARNING.values() for key in keys} <= {*CHECK_WORDS}
    kinds = {*HeckmanfaWarning.__subclasses__()}
    assert kinds == {*CHECKS_OF_WARNING}
    assert NO_CHECKS.isdisjoint(CHECK_WORDS)
    assert NO_CHECKS.isdisjoint(CHECK_OF_CAVEAT)


@pytest.mark.parametrize("key", CHECK_WORDS)
def test_every_title_is_a_sentence_and_says_what_to_do(key):
    about = CHECK_WORDS[key]
    for title in (about.title, *about.titles.values()):
        assert title.endswith(".")
        assert len(title.split()) < 25
        assert ": " not in title
    assert about.do.endswith(".")
    assert about.name
    assert not about.name.endswith(".")
    for words in (about.title, about.do, about.why):
        for banned in ("only drive", "does not predict", "safe", "mend ", "the normal law"):
            assert banned not in words


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
    kinds = [CHECK_WORDS[key].kind for key in keys[2:7]]
    assert kinds == [*Kind][1:]


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
    assert fine_words(given) == "rho: 0.1, inside (-1, 1); condition number: 18.5"
    assert count_words(given[3:4]) == "1 check is fine."
    assert fine_words(given[:3]) == ""


def test_a_finding_becomes_a_check_with_true_minus_signs_and_the_name_of_the_outcome():
    finding = Finding("rho", "rho", "-1.2", "problem", "Outside (-1, 1): it does not fit.")
    found = check_of_finding(finding, "lwage")
    assert (found.level, found.value) == ("problem", "\u22121.2")
    assert found.words == "Outside (\u22121, 1): it does not fit."
    assert found.title == "rho is outside (\u22121, 1)."
    assert "--select-only" in found.do
    finding = Finding("normality_prediction", "normality", "chi2(2) = 9", "caution", "Rejected.")
    assert check_of_finding(finding, "pay\x1b[1m").title.startswith("The errors of pay")
    assert "\x1b" not in check_of_finding(finding, "pay\x1b[1m").title


def test_a_second_maximum_is_a_problem_and_a_kind_of_weights_is_a_note():
    finding = Finding("maxima", "maxima", "two", "caution", "The estimates are at the higher.")
    assert check_of_finding(finding, "y").level == "problem"
    finding = Finding("weight_kinds", "weights", "a", "caution", "AIC weights favour a.")
    assert check_of_finding(finding, "y").level == "note"


def test_what_was_not_tested_is_a_note():
    finding = Finding("reset", "RESET", "not computed", "caution", "Not so.", case="untested")
    found = check_of_finding(finding, "y")
    assert (found.level, found.words) == ("note", "Not so.")
    assert found.title == "Not tested: RESET."

"""Regular expressions take time in proportion to the text, whatever the text is."""

from __future__ import annotations

import ast
import importlib
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
from collections.abc import Iterator
from itertools import islice, permutations
from pathlib import Path
from typing import Any, NamedTuple

import heckmanfa
from heckmanfa.data.columns.values import as_number, shape_of
from heckmanfa.report.glossary import TERMS
from heckmanfa.results.hypotheses import _with_stand_ins

_SOURCE = Path(heckmanfa.__file__).parent
_METHODS = frozenset(["match", "search", "fullmatch", "sub", "split", "findall", "finditer"])
# The patterns of these calls are not literals; they are tested on their own below.
_MADE = {
    ("results/hypotheses.py", "'|'.join(patterns)"),
    ("report/glossary.py", "f'\\\\b(?:{self.pattern})\\\\b'"),
}

_LONG, _SLOW = 4000, 0.01
# A quadratic pattern takes sixteen times as long for a text of four times the length.
_TIMES, _MOST = 4, 10.0


class Use(NamedTuple):
    place: str
    pattern: re.Pattern[str]
    method: str


def _calls(tree: ast.AST) -> Iterator[tuple[str, str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder = node.func.value
            if isinstance(holder, ast.Name):
                yield holder.id, node.func.attr, node


def _uses() -> Iterator[Use]:
    """Every pattern in the package, with the methods that it is used with."""
    for path in sorted(_SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^(import|from) re\b", text, re.MULTILINE):
            continue
        assert not re.search(r"^from re\b|^import re as", text, re.MULTILINE), path
        place = path.relative_to(_SOURCE).as_posix()
        module = importlib.import_module("heckmanfa." + place.removesuffix(".py").replace("/", "."))
        named = {
            name: value for name, value in vars(module).items() if isinstance(value, re.Pattern)
        }
        used: set[str] = set()
        at_top = 0
        for holder, method, call in _calls(ast.parse(text)):
            if holder == "re" and method == "compile":
                at_top += (place, ast.unparse(call.args[0])) not in _MADE
            elif holder == "re" and method in _METHODS:
                if (place, ast.unparse(call.args[0])) not in _MADE:
                    flags = [
                        getattr(re, node.attr)
                        for node in ast.walk(call)
                        if isinstance(node, ast.Attribute) and node.attr.isupper()
                    ]
                    literal = ast.literal_eval(call.args[0])
                    yield Use(f"{place}:{call.lineno}", re.compile(literal, sum(flags)), method)
            elif holder in named:
                used.add(holder)
                yield Use(f"{place}: {holder}", named[holder], method)
        # A pattern that no module keeps under a name would not be tested.
        assert len(named) == at_top, place
        assert used == {*named}, place


def _letters(tree: Any) -> Iterator[str]:
    """Characters that the parts of a pattern match."""
    kinds = {
        sre.CATEGORY_DIGIT: "1",
        sre.CATEGORY_SPACE: " \n",
        sre.CATEGORY_WORD: "a",
        sre.CATEGORY_NOT_WORD: "-",
        sre.CATEGORY_NOT_SPACE: "a",
        sre.CATEGORY_NOT_DIGIT: "a",
    }
    for kind, value in tree:
        if kind is sre.LITERAL:
            yield chr(value)
        elif kind in (sre.ANY, sre.NOT_LITERAL, sre.NEGATE):
            yield from "a1"
        elif kind is sre.RANGE:
            yield chr(value[0])
        elif kind is sre.CATEGORY:
            yield from kinds[value]
        elif kind is sre.IN:
            # The first of a class that is negated is what it does not match.
            yield from list(_letters(value))[:4]
        else:
            for part in _parts(kind, value):
                yield from _letters(part)


def _parts(kind: Any, value: Any) -> list[Any]:
    """Patterns inside a part of a pattern."""
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        return [value[2]]
    if kind is sre.SUBPATTERN:
        return [value[3]]
    if kind is sre.BRANCH:
        return list(value[1])
    return [value[1]] if kind in (sre.ASSERT, sre.ASSERT_NOT) else []


def _example(tree: Any) -> str:
    """A text that a pattern may match."""
    made = ""
    for kind, value in tree:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            made += _example(value[2]) * max(value[0], 1)
        elif parts := _parts(kind, value):
            made += _example(parts[0])
        elif kind is sre.IN and value[0][0] is sre.NEGATE:
            made += "a"
        elif kind is not sre.AT:
            made += next(_letters([(kind, value)]), "")
    return made


def _starts(tree: Any, before: str = "") -> Iterator[str]:
    """What comes before the repetitions of a pattern, and inside them."""
    for kind, value in tree:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            yield before
        for part in _parts(kind, value):
            yield from _starts(part, "" if kind is sre.ASSERT else before)
        before += _example([(kind, value)])


def _pumped(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    tree = parser.parse(pattern.pattern, pattern.flags)
    letters = list(dict.fromkeys(_letters(tree)))
    letters = letters[:: max(len(letters) // 7, 1)]
    starts = list(islice(dict.fromkeys(["", *_starts(tree)]), 6))
    pairs = ["".join(pair) for pair in permutations(letters, 2)]
    for pump in dict.fromkeys(filter(None, [*letters, *pairs, *starts, _example(tree)])):
        for start in starts:
            for end in ("", "\0"):
                yield start + pump * (length // len(pump)) + end


def _seconds(use: Use, text: str, tries: int = 1) -> float:
    took = []
    for _ in range(tries):
        start = time.process_time()
        if use.method == "sub":
            use.pattern.sub("", text)
        else:
            found = getattr(use.pattern, use.method)(text)
            if use.method == "finditer":
                list(found)
        took.append(time.process_time() - start)
    return min(took)


def _refuse_slow(use: Use) -> None:
    text = max(_pumped(use.pattern, _LONG), key=lambda text: _seconds(use, text), default="")
    if _seconds(use, text, 3) < _SLOW:
        return
    # Either a long but linear pattern, or one that must be written in another way.
    short = text[: len(text) // _TIMES]
    growth = _seconds(use, text, 3) / max(_seconds(use, short, 3), 1e-5)
    assert growth < _MOST, f"{use.place}: {use.method} of {text[:20]!r}… grows {growth:.0f} times"


def test_every_pattern_takes_time_in_proportion_to_a_pumped_text():
    uses = list(_uses())
    assert len(uses) > 50
    for use in uses:
        _refuse_slow(use)


def _is_found(use: Use) -> bool:
    try:
        _refuse_slow(use)
    except AssertionError as error:
        return "grows" in str(error)
    return False


def test_a_quadratic_pattern_would_be_found(monkeypatch):
    # On a fast machine even these take little time, and a busy one hides how it grows.
    monkeypatch.setitem(globals(), "_SLOW", 0.0)
    for bad, method in ((r"[0-9.]*[0-9][0-9.]*", "fullmatch"), (r"[a-z]+:", "search")):
        use = Use("here", re.compile(bad), method)
        assert any(_is_found(use) for _ in range(10))


def test_patterns_made_of_foreign_names_do_so_too():
    names = ["a" * 300, "a b " * 50, "((" * 100, "x[T.a]" * 30, " ", "a:b:c:d", "`" * 50, "=" * 90]
    for pump in ("a", "a ", "((", "x[T.", "`", "=", ":", " "):
        start = time.process_time()
        _with_stand_ins(pump * (_LONG // len(pump)), names)
        assert time.process_time() - start < 2.0


def test_words_of_the_glossary_are_found_in_proportion_to_a_text():
    for term in TERMS:
        _refuse_slow(Use(term.name, re.compile(rf"\b(?:{term.pattern})\b", re.I), "search"))


def test_nothing_longer_than_400_characters_is_a_number():
    assert as_number("1" * 400) is not None
    assert shape_of("1" * 400) is not None
    for text in ("1" * 401, "0." + "0" * 400, "1 " * 300):
        assert as_number(text) is None
        assert shape_of(text) is None
    start = time.process_time()
    assert shape_of("1" * 1_000_000 + "x") is None
    assert as_number("1" * 1_000_000) is None
    assert time.process_time() - start < 0.5

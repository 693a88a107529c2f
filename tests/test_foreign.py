from __future__ import annotations

import pickle
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from heckmanfa import errors
from heckmanfa.foreign import LINE, printable, quoted, shown

NASTY = "a\x1b[2J\x9b31m\u202eb\u2066\u200b\ufeff\r\n\u2028\x00\x7f\ud800\U000e0041\u0378"


def _harmless(text: str) -> bool:
    return all(unicodedata.category(one)[0] != "C" and one not in "\u2028\u2029" for one in text)


@pytest.mark.parametrize("write", [shown, quoted, printable])
def test_no_control_format_or_unassigned_character_survives(write):
    every = map(chr, [*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFE00, 0x10000)])
    odd = [one for one in every if unicodedata.category(one)[0] == "C"]
    assert len(odd) > 2500
    for start in range(0, len(odd), 20):
        said = write("x" + "".join(odd[start : start + 20]))
        assert _harmless(said.replace("\n", "").replace("\t", ""))
    assert _harmless(write(NASTY).replace("\n", ""))


def test_nothing_breaks_a_line_in_a_shown_value():
    assert "\n" not in shown(NASTY)
    assert len(shown(NASTY).splitlines()) == len(quoted(NASTY).splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["Größe", "年収", "عمر السائق", "ηλικία", "имя", "a b", "x[y]", "e\u0301"]
)
def test_letters_of_all_scripts_stay(name):
    assert shown(name) == printable(name) == name
    assert quoted(name) == repr(name)


def test_escapes_can_be_read():
    assert shown("a\x1b[2Jb\u202ec") == "a\\x1b[2Jb\\u202ec"
    assert shown("a\nb") == "a\\nb"
    assert shown(Path("x\x1by.csv")) == "x\\x1by.csv"
    # A file name whose bytes are not UTF-8.
    assert shown("caf\udce9.csv") == "caf\\udce9.csv"


@pytest.mark.parametrize(
    "value", ["it's", 'say "x"', 'it\'s "x"', "a\\b", "a\tb", 3, None, 2.5, ()]
)
def test_quotes_are_those_of_repr(value):
    assert quoted(value) == repr(value)


def test_numbers_and_texts_of_numpy_are_quoted_without_their_type():
    assert quoted(np.int64(3)) == "3"
    assert quoted(np.str_("a")) == "'a'"


def test_five_megabytes_become_a_line():
    text = "begin" + "x" * 5_000_000 + "end"
    assert len(shown(text)) == LINE
    assert shown(text).startswith("begin")
    assert shown(text).endswith("end")
    assert quoted(text).endswith("end' (5,000,008 characters)")
    assert len(shown("\x1b" * LINE)) <= LINE
    assert shown("\x1b" * LINE).replace("\\x1b", "") == "…"
    assert len(shown("abc", limit=2)) == 2


def test_whole_messages_keep_their_lines_and_are_printable_once_and_for_all():
    text = f"two\nlines {NASTY}"
    assert printable(text).startswith("two\nlines a\\x1b")
    assert printable(printable(text)) == printable(text)
    assert len(printable("x" * 1_000_000)) <= 5000


def test_no_error_or_warning_says_what_a_terminal_obeys():
    kinds = [getattr(errors, name) for name in errors.__all__]
    kinds = [one for one in kinds if isinstance(one, type)]
    for kind in kinds:
        if issubclass(kind, Warning):
            with pytest.warns(kind) as caught:
                errors.warn(NASTY, kind)
            said = str(caught[0].message)
        else:
            said = str(kind(NASTY))
            assert str(pickle.loads(pickle.dumps(kind(NASTY)))) == said
        assert "\x1b" not in said
        assert "\u202e" not in said
        assert "\\x1b[2J" in said
    assert len(kinds) > 20

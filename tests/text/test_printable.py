from __future__ import annotations

import pickle
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from heckmanfa import errors
from heckmanfa.text.printable import LINE, printable, quoted, shown

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


@pytest.mark.parametrize(
    "name",
    [
        "น้ำหนักผู้ป่วย",  # Thai
        "क्षत्रिय वर्ष आयु ज़ँ",  # Devanagari
        "اَلسَّلَامُ عَلَيْكُمْ",  # Arabic with marks
        "שָׁלוֹם",
        "བསྒྲུབས",  # Tibetan
        "ကျွန်ုပ်",  # Burmese
        unicodedata.normalize("NFD", "Tuổi người được phỏng vấn"),
        unicodedata.normalize("NFD", "ᾧ"),
    ],
)
def test_scripts_that_put_marks_on_letters_stay_readable(name):
    assert shown(name) == printable(name) == name
    assert quoted(name) == repr(name)


@pytest.mark.parametrize("write", [shown, quoted, printable])
def test_characters_that_nobody_sees_become_escapes(write):
    selectors = [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), *range(0x180B, 0x1810)]
    fillers = [0x034F, 0x115F, 0x17B4, 0x2800, 0x3164, 0xFFA0, 0xFFFC, 0x16FE4, 0x1D159]
    formats = [0x00AD, 0x061C, 0x200D, 0x2060, 0xFEFF, 0x1BC9D, *range(0x1BCA0, 0x1BCA4), 0xE0061]
    for code in [*selectors, *fillers, *formats]:
        said = write(f"a{chr(code)}b")
        assert chr(code) not in said
        assert f"{code:x}b" in said
        assert write is quoted or write(said) == said
        assert said.strip("'").encode("ascii").decode("unicode_escape") == f"a{chr(code)}b"


@pytest.mark.parametrize("write", [shown, quoted, printable])
@pytest.mark.parametrize("mark", ["\u0301", "\u20dd", "\u0e49", "\U0001e944"])
def test_marks_do_not_heap_up(write, mark):
    said = write(f"a{mark * 8}b{mark * 4}c")
    escape = f"\\u{ord(mark):04x}" if ord(mark) < 0x10000 else f"\\U{ord(mark):08x}"
    assert f"a{mark * 4}{escape * 4}b{mark * 4}c" in said
    # Nor where the middle is left out.
    for text in (mark * 4000, "x" * 4000 + mark * 98, "年" * 3000 + mark * 3000):
        assert mark * 5 not in write(text)
    once = printable(f"é\n{mark * 9}", None)
    assert printable(once, None) == once
    assert mark * 5 not in once


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

"""Checks of categories, and of numbers that may be categories."""

from __future__ import annotations

from dataclasses import replace

from heckmanfa.analysis.prepared import Prepared
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.kinds import MOST_LEVELS
from heckmanfa.data.columns.tally import OTHER
from heckmanfa.results.checks import Check, plain_check
from heckmanfa.results.document import Level
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, quoted_list, shown
from heckmanfa.text.wording import count, listed, plural

# Comparisons with so few rows, or with so small a share of them, are hardly known.
_FEW_ROWS, _SMALL_SHARE = 10, 0.01
_LISTED, _LEVELS_LISTED = 3, 6


def checks_of_levels(prepared: Prepared, outcome: str) -> list[Check]:
    """Name references with few rows, levels that differ only in case, and numbers used as codes."""
    return [
        *_of_references(prepared.encoding, outcome),
        *_of_spellings(prepared.encoding, outcome),
        *_of_codes(prepared, outcome),
    ]


def _of_references(encoding: Encoding, outcome: str) -> list[Check]:
    said, dos = [], []
    level: Level = "note"
    for name, rows in encoding.level_rows.items():
        total, few = sum(rows), rows[0]
        if len(rows) < 2 or few >= max(_FEW_ROWS, _SMALL_SHARE * total):
            continue
        level = "caution" if few < _FEW_ROWS else level
        reference = encoding.levels[name][0]
        said.append(
            f"{plural(few, 'row')} of {count(total)} {'has' if few == 1 else 'have'} "
            f"{quoted(reference)}, which the other levels of {quoted(name)} are compared with."
        )
        most = max(range(len(rows)), key=rows.__getitem__)
        item = f"{name}={encoding.levels[name][most]}"
        dos.append(
            f"{option('reference', [item])} compares with a level of {plural(rows[most], 'row')}."
        )
    if not said:
        return []
    value = plural(len(said), "category", "categories")
    check = plain_check("reference_rows", level, " ".join(said[:_LISTED]), outcome, value)
    return [replace(check, do=told(" ".join(dos[:_LISTED]), keywords=True))]


def spellings(encoding: Encoding) -> dict[str, list[tuple[str, ...]]]:
    """Return the levels of each category that differ only in case or blanks, together."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in encoding.levels:
        alike: dict[str, list[str]] = {}
        for level in [*encoding.levels[name], *encoding.merged.get(name, ())]:
            if level != OTHER:
                alike.setdefault("".join(level.split()).casefold(), []).append(level)
        groups = [tuple(group) for group in alike.values() if len(group) > 1]
        if groups:
            found[name] = groups
    return found


def _of_spellings(encoding: Encoding, outcome: str) -> list[Check]:
    found = spellings(encoding)
    if not found:
        return []
    said = []
    for name, groups in list(found.items())[:_LISTED]:
        pairs = listed([quoted_list(group, _LEVELS_LISTED) for group in groups[:_LEVELS_LISTED]])
        said.append(f"{pairs} are different levels of {quoted(name)}.")
    value = listed([shown(name) for name in found])
    return [plain_check("level_spellings", "caution", " ".join(said), outcome, value)]


def _of_codes(prepared: Prepared, outcome: str) -> list[Check]:
    codes = prepared.coded_numbers
    if not codes:
        return []
    said = [
        f"{quoted(one.column)} holds {one.n_values:,} integers from {one.low:g} to {one.high:g}."
        for one in codes[:_LISTED]
    ]
    named = option("categorical", [one.column for one in codes[:_LISTED]])
    do = f"If its numbers name things, pass {named}."
    if any(one.n_values > MOST_LEVELS for one in codes):
        do += f" Merge rare levels with {option('min_level_rows')}."
    value = listed([shown(one.column) for one in codes])
    check = plain_check("coded_numbers", "caution", " ".join(said), outcome, value)
    return [replace(check, do=told(do, keywords=True))]

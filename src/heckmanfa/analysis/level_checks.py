"""Checks of categories, and of numbers that may be categories."""

from __future__ import annotations

import shlex

from heckmanfa.analysis.prepared import Prepared
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.kinds import MOST_LEVELS
from heckmanfa.data.columns.tally import OTHER
from heckmanfa.results.facts import Fact, Level
from heckmanfa.text.printable import quoted, quoted_list, shown
from heckmanfa.text.wording import count, listed, plural

# Comparisons with so few rows, or with so small a share of them, are hardly known.
_FEW_ROWS, _SMALL_SHARE = 10, 0.01
_LISTED, _LEVELS_LISTED = 3, 6


def level_facts(prepared: Prepared) -> list[Fact]:
    """Name references with few rows, levels that differ only in case, and numbers used as codes."""
    return [
        *_of_references(prepared.encoding),
        *_of_spellings(prepared.encoding),
        *_of_codes(prepared),
    ]


def _of_references(encoding: Encoding) -> list[Fact]:
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
        item = f'"{item}"' if "," in item else item
        dos.append(
            f"--reference {shown(shlex.quote(item))} compares with a level of "
            f"{plural(rows[most], 'row')}."
        )
    if not said:
        return []
    value = plural(len(said), "category", "categories")
    advice = {"advice": " ".join(dos[:_LISTED])}
    return [Fact("reference_rows", level, value, " ".join(said[:_LISTED]), values=advice)]


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


def _of_spellings(encoding: Encoding) -> list[Fact]:
    found = spellings(encoding)
    if not found:
        return []
    said = []
    for name, groups in list(found.items())[:_LISTED]:
        pairs = listed([quoted_list(group, _LEVELS_LISTED) for group in groups[:_LEVELS_LISTED]])
        said.append(f"{pairs} are different levels of {quoted(name)}.")
    value = listed([shown(name) for name in found])
    return [Fact("level_spellings", "caution", value, " ".join(said))]


def _of_codes(prepared: Prepared) -> list[Fact]:
    codes = prepared.coded_numbers
    if not codes:
        return []
    said = [
        f"{quoted(one.column)} holds {one.n_values:,} integers from {one.low:g} to {one.high:g}."
        for one in codes[:_LISTED]
    ]
    items = [f"--categorical {shown(shlex.quote(one.column))}" for one in codes[:_LISTED]]
    do = f"If its numbers name things, pass {' '.join(items)}."
    if any(one.n_values > MOST_LEVELS for one in codes):
        do += " Merge rare levels with --min-level-rows."
    value = listed([shown(one.column) for one in codes])
    return [Fact("coded_numbers", "caution", value, " ".join(said), values={"advice": do})]

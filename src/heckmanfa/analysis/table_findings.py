"""What is wrong with a table, found in one walk: every problem with what to do, as options.

Each finding that has options adds them to the question, and the walk goes on with the table as it
is then read. So a total row that made a column text does not hide that column's codes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import count_texts, number_tally, read_outcome, read_roles
from heckmanfa.analysis.labelling import codebook_of
from heckmanfa.analysis.loading import (
    blanked,
    find_codes,
    learn,
    load,
    open_text,
    take_frame,
    typed_table,
)
from heckmanfa.analysis.prepared import Prepared, decide_flagged, fit_question
from heckmanfa.analysis.request import Question, check_question, feature_names, refuse_text_options
from heckmanfa.analysis.targets import codes_beside_classes
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_names import repeats_in
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.missing_codes import na_option
from heckmanfa.data.columns.total_rows import find_total_rows, is_words
from heckmanfa.data.columns.values import (
    DECIMALS,
    in_one_case,
    is_plain_number,
    label_of,
    levels_of,
    one_case,
)
from heckmanfa.data.missing_features import GapCounts
from heckmanfa.data.row_rules import FeatureCounts, explain_known_only
from heckmanfa.data.rows import Mask
from heckmanfa.errors import (
    DataError,
    HeckmanfaError,
    InputError,
    SeparationError,
    UnknownFeatureError,
)
from heckmanfa.model.equations import is_copy
from heckmanfa.results.facts import Level
from heckmanfa.tables.reading import Table, find_names
from heckmanfa.tables.streamed import GIGABYTE, StoredTable, find_stored, stored_source
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import count, plural

# Levels with fewer rows are rare; some findings name so many levels and columns.
_RARE, _NAMED = 10, 5
# Texts among numbers that may be marks for missing, and the numbers that make a column one of them.
_FEW_WORDS, _FEWEST_NUMBERS = 3, 10
# Columns that separate are left out one at a time, at most so many.
_MOST_TRIES = 10
# Options of a search, without which a check fits all features.
_SEARCHES: dict[str, Any] = {
    "search": "none",
    "search_in": "prediction",
    "predict_with": (),
    "always": (),
    "select_only": (),
    "selection_always": (),
    "selection_never": (),
    "criterion": None,
    "rho_range": None,
    "rho": None,
    "start": None,
    "method": None,
    "n_terms": None,
    "intercept": None,
    "errors": "normal",
    "honest": False,
}
# Those that say which columns predict.
_ROLES = ("predict_with", "select_only")


@dataclass(frozen=True)
class Finding:
    """Something about a table that a fit refuses, or that makes its answer wrong or weaker."""

    key: str
    level: Level
    """problem (refused as it is, or wrong), or caution"""
    words: str
    """what was found, in sentences"""
    do: str = ""
    """what to do, in a sentence"""
    columns: tuple[str, ...] = ()
    rows: int | None = None
    """rows that it is about, if it is about some"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """fields of `Question` that the command gets"""

    @property
    def blocks(self) -> bool:
        """Whether no option helps, so the file must change first."""
        return self.level == "problem" and not self.options

    def is_told_in(self, text: str) -> bool:
        """Whether an error that a user reads names what this finding does."""
        named = [quoted(name) in text for name in self.columns]
        # A column tells findings apart, and the value of an option does where there is none.
        options = [
            told(option(name, None if named else value), keywords=True)
            for name, value in self.options.items()
        ]
        return bool(named or options) and all(named) and all(name in text for name in options)


def with_options(question: Question, options: Mapping[str, Any]) -> Question:
    """Return a question with more options; lists become longer."""
    new: dict[str, Any] = {
        name: tuple(dict.fromkeys([*getattr(question, name), *value]))
        if isinstance(value, tuple)
        else value
        for name, value in options.items()
    }
    return replace(question, **new)


@dataclass
class Walk:
    """The table of a question as far as it was looked at, with what was found so far."""

    question: Question
    frame: Any = None
    """the table, if it is not in files"""
    findings: list[Finding] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    """sentences about how the table is read"""
    n_rows: int = 0
    n_columns: int = 0

    def add(self, finding: Finding) -> None:
        """Keep a finding, and go on with its options."""
        self.findings.append(finding)
        self.question = with_options(self.question, finding.options)

    def run(self, tell: Callable[[str], None]) -> None:
        """Find everything; raise what is wrong with the question itself, as a misspelled name."""
        check_question(self.question)
        tell(f"reading {self.question.called}")
        stored = find_stored(self.question.data) if self.frame is None else None
        stored = stored_source(self.frame) if self.frame is not None else stored
        if stored is not None:
            self._set_stored(stored)
        elif self.frame is not None:
            self.frame = take_frame(self.frame)
        table = self._open()
        # Labels that name no column are refused as in a fit.
        codebook_of(self.question, [str(name) for name in table.frame.columns])
        tell("checking its rows and columns")
        for look in (self._totals, self._marks, self._words, self._numbers):
            if look(table):
                table = self._open()
        self.notes = table.notes
        self.n_rows, self.n_columns = table.frame.shape
        self._encoded(table)
        if not any(finding.blocks for finding in self.findings):
            tell("trying a fit")
            self._tried()

    def _set_stored(self, stored: StoredTable) -> None:
        """Load a table of Parquet or Arrow files, or of a query."""
        question = self.question
        refuse_text_options(vars(question), stored.format)
        size = stored.size(stored.columns)
        if size > GIGABYTE * question.stream_above:
            raise InputError(
                f"check needs the rows in memory, where they would take about "
                f"{size / GIGABYTE:.3g} GB: pass a larger {option('stream_above')}"
            )
        self.frame = stored.load(stored.columns)

    def _open(self) -> Table:
        """Read the table with the options so far."""
        if self.frame is not None:
            return typed_table(self.question, self.frame)
        error: HeckmanfaError | None = None
        try:
            table = open_text(self.question, number_repeats=True)
            if self.question.outcome in table.frame.columns:
                return self._named(table)
        except (InputError, DataError) as refused:
            # Rows below titles may have more fields than these.
            error = refused
        place = find_names(self.question.data, self.question.outcome, self.question.sheet)
        if place is None:
            if error is None:
                self._names(table)
            raise error or UnknownFeatureError(self.question.outcome)
        is_there = place["header_row"] == (self.question.header_row or 1)
        if error is not None and is_there and place.get("sheet") == self.question.sheet:
            raise error
        self._find_names(place)
        return self._named(open_text(self.question, number_repeats=True))

    def _find_names(self, place: dict[str, Any]) -> None:
        """Say where the names of the columns are, if that is not where they are looked for."""
        name = quoted(self.question.outcome)
        if place.get("sheet") not in (None, self.question.sheet):
            words = f"The column {name} is in the sheet {quoted(place['sheet'])}."
            do = f"Read it with {option('sheet', place['sheet'])}."
            options = {"sheet": place["sheet"]}
            self.add(Finding("sheet", "problem", words, do, options=options))
            try:
                table = open_text(self.question, number_repeats=True)
                if self.question.outcome in table.frame.columns:
                    return
            except InputError:
                # Titles are above the names, too.
                pass
        row = place["header_row"]
        words = f"The names of the columns, {name} among them, are in line {row}, below titles."
        do = f"Read them from there with {option('header_row', row)}."
        self.add(Finding("titles", "problem", words, do, options={"header_row": row}))

    def _named(self, table: Table) -> Table:
        """Name the columns that share a name, once."""
        shared = repeats_in([str(name) for name in table.frame.columns])
        for name, others in shared.items():
            said = [finding.key for finding in self.findings if name in finding.columns]
            if "repeated_names" in said:
                continue
            same = all(table.frame[other].equals(table.frame[name]) for other in others)
            words = f"{plural(len(others) + 1, 'column')} are called {quoted(name)}"
            words += ", with the same values." if same else ", with different values."
            do = "Delete all but one of them." if same else "Give each its own name."
            self.add(Finding("repeated_names", "problem", words, do, columns=(name,)))
        return table

    def _names(self, table: Table) -> list[str]:
        """Return the features, or refuse names that the table does not have."""
        try:
            return feature_names(self.question, [str(name) for name in table.frame.columns])
        except UnknownFeatureError as error:
            raise UnknownFeatureError(f"{error.words}{table.hint}") from error

    def _totals(self, table: Table) -> bool:
        totals = find_total_rows(table.frame)
        for total in totals:
            columns = () if total.column is None else (total.column,)
            options = {"drop_rows": (total.item,)}
            key = "notes_below" if total.is_note else "total_rows"
            do = f"Leave it out with {option('drop_rows', [total.item])}."
            self.add(Finding(key, "problem", total.words, do, columns, total.rows, options))
        return bool(totals)

    def _marks(self, table: Table) -> bool:
        """Choose a decimal mark for columns that can be read in two ways."""
        columns = [str(name) for name in table.frame.columns]
        used = [*self._names(table), *(name for _, name in self.question.roles_in(columns))]
        doubts = {name: words for name, words in table.doubts.items() if name in used}
        if not doubts:
            return False
        # Files in which the comma can be either are mostly from where it is the decimal mark.
        for mark in reversed(DECIMALS) if self.question.decimal is None else ():
            settled = replace(self.question, decimal=mark)
            if not {*open_text(settled, number_repeats=True).doubts} & {*used}:
                words = f"{quoted_list(list(doubts), _NAMED)} can be read in two ways."
                other = next(other for other in DECIMALS if other != mark)
                do = (
                    f"Say which mark is the decimal one: {option('decimal', mark)}, or "
                    f"{option('decimal', other)}."
                )
                options = {"decimal": mark}
                self.add(Finding("decimal", "problem", words, do, tuple(doubts), options=options))
                return True
        for name, words in doubts.items():
            self.add(Finding("numbers", "problem", f"{words}.", columns=(name,)))
        return False

    def _words(self, table: Table) -> bool:
        """Find texts among numbers, which may mean missing."""
        outcome, added = self.question.outcome, False
        known = {*self.question.categorical}
        for name in [outcome, *self._names(table)]:
            series = table.frame[name]
            if name in known or not is_words(series):
                continue
            counts, bad = count_texts(series)
            n_bad, n = sum(bad.values()), sum(counts.values())
            numbers = len(counts) - len(bad)
            enough = numbers >= _FEWEST_NUMBERS and (2 * n_bad <= n or name == outcome)
            if not bad or not enough or len(bad) > _FEW_WORDS:
                continue
            held = " and ".join(f"{quoted(label)} in {n:,}" for label, n in bad.items())
            words = f"{quoted(name)} holds {held} of {count(n)} rows, and numbers elsewhere."
            self.add(self._codes(name, [*bad], words, n_bad))
            added = True
        return added

    def _codes(self, name: str, codes: Sequence[object], words: str, rows: int) -> Finding:
        """Make a finding of values that may mean missing."""
        means = "it means" if len(codes) == 1 else "they mean"
        do = f"If {means} missing, pass {na_option(name, codes)}."
        options = {"na_values": tuple(f"{name}={label_of(code)}" for code in codes)}
        return Finding("missing_codes", "problem", words, do, (name,), rows, options)

    def _numbers(self, table: Table) -> bool:
        """Find numbers that look like codes for missing."""
        question, names = self.question, self._names(table)
        columns = [str(name) for name in table.frame.columns]
        frame = blanked(question, table, names, columns).frame
        numbers = [name for name in (question.outcome, *names) if is_plain_number(frame[name])]
        values = frame[numbers].astype(np.float64)
        plain = Encoding.plain([name for name in numbers if name not in question.categorical])
        outcome = (
            values.pop(question.outcome).to_numpy() if question.outcome in numbers else np.empty(0)
        )
        plain = plain.of_sources([name for name in plain.sources if name != question.outcome])
        suspicions, _ = find_codes(question, plain, values, outcome)
        by_column: dict[str, list[Any]] = {}
        for suspicion in suspicions:
            by_column.setdefault(suspicion.column, []).append(suspicion)
        for name, codes in by_column.items():
            words = " ".join(code.words for code in codes)
            rows = sum(code.rows for code in codes)
            self.add(self._codes(name, [code.code for code in codes], words, rows))
        if question.outcome not in by_column:
            few: Mapping[float, int] = number_tally(outcome).few or {}
            beside = codes_beside_classes(few)
            if beside:
                held = " and ".join(f"{code:g} in {plural(few[code], 'row')}" for code in beside)
                words = f"The outcome {quoted(question.outcome)} holds {held}, and 0 and 1."
                rows = sum(few[code] for code in beside)
                self.add(self._codes(question.outcome, beside, words, rows))
                return True
        return bool(by_column)

    def _encoded(self, table: Table) -> None:
        """Look at what columns become, and at what they say about the outcome."""
        names = self._names(table)
        columns = [str(name) for name in table.frame.columns]
        frame = blanked(self.question, table, names, columns).frame
        try:
            encoding, X = learn(self.question, frame, names, columns, untyped=table.untyped)
            self._spellings(encoding, frame[self.question.outcome])
            _, coded = find_codes(self.question, encoding, X, np.empty(0))
            for column in coded:
                words = (
                    f"{quoted(column.column)} holds {column.n_values:,} integers from "
                    f"{column.low:g} to {column.high:g}, and its name suggests codes."
                )
                do = f"If they name things, pass {option('categorical', [column.column])}."
                options = {"categorical": (column.column,)}
                named = (column.column,)
                self.add(Finding("codes_as_amounts", "caution", words, do, named, None, options))
            encoding, X = learn(self.question, frame, names, columns, untyped=table.untyped)
            selected, _, _ = read_roles(self.question, frame)
            outcome, _ = read_outcome(self.question, frame[self.question.outcome], selected)
        except InputError as error:
            self.add(Finding("refused", "problem", error.words))
            return
        everyone = self.question.family.sees_everyone
        chosen = decide_flagged(outcome, selected).selected
        if everyone:
            self._lacking(outcome, selected)
        self._copies(encoding, X, outcome, chosen)
        self._gaps(encoding, X, outcome, chosen)
        self._rare(encoding, X, chosen)

    def _spellings(self, encoding: Encoding, outcome: pd.Series[Any]) -> None:
        """Find levels that differ only in case or blanks."""
        alike = {name: _alike(levels) for name, levels in encoding.levels.items()}
        if is_words(outcome):
            levels = levels_of(outcome)
            counts = dict(zip(levels.labels, levels.counts().tolist(), strict=True))
            if len(counts) > len({*in_one_case(counts).values()}) == 2:
                alike[self.question.outcome] = _alike(levels.labels)
        alike = {name: groups for name, groups in alike.items() if groups}
        if not alike or self.question.ignore_case:
            return
        words = [
            f"{quoted_list(group, _NAMED)} are different levels of {quoted(name)}."
            for name, groups in list(alike.items())[:_NAMED]
            for group in groups[:_NAMED]
        ]
        do = f"If they mean the same, pass {option('ignore_case', True)}."
        options = {"ignore_case": True}
        self.add(Finding("mixed_case", "problem", " ".join(words), do, tuple(alike), None, options))

    def _lacking(self, outcome: Floats, treated: Any) -> None:
        """Count the rows without an outcome or a treatment, which a fit leaves out."""
        question = self.question
        lacks = {question.outcome: np.isnan(outcome), str(question.treated): np.isnan(treated)}
        lacks[str(question.treated)] &= ~lacks[question.outcome]
        rows = {name: int(np.count_nonzero(gap)) for name, gap in lacks.items()}
        said = [
            f"{plural(n, 'row')} {'lacks' if n == 1 else 'lack'} {quoted(name)}"
            for name, n in rows.items()
            if n
        ]
        if said:
            words = f"{' and '.join(said)}: a fit leaves them out, and counts them."
            named = tuple(name for name, n in rows.items() if n)
            self.add(Finding("left_out", "caution", words, "", named, sum(rows.values())))
        if not question.select_only and not question.predict_with:
            words = "No column drives treatment alone, so only normal errors tell its effect."
            do = "Name one that has no other way to the outcome, with "
            do += f"{option('select_only', [...])}."
            self.add(Finding("no_instrument", "caution", words, do))

    def _copies(self, encoding: Encoding, X: pd.DataFrame, outcome: Floats, chosen: Mask) -> None:
        """Find columns that are the outcome or the selection in another form."""
        numbers = [name for name in encoding.sources if name not in encoding.levels]
        gaps = {name: np.isnan(X[name].to_numpy()) for name in numbers}
        observed = chosen & ~np.isnan(outcome)
        out: dict[str, list[str]] = {"outcome_copies": [], "selection_copies": []}
        for name in numbers:
            rows = observed & ~gaps[name]
            if is_copy(X[name].to_numpy()[rows], outcome[rows]):
                out["outcome_copies"].append(name)
        for name in encoding.sources:
            values = X[encoding.columns_of(name)[0]].to_numpy()
            if len(encoding.columns_of(name)) == 1 and _splits(values, chosen):
                out["selection_copies"].append(name)
        flags = "treated" if self.question.family.sees_everyone else "selected"
        copies = ("copies the outcome, up to a constant and a factor.", f"says who is {flags}.")
        for (key, found), what in zip(out.items(), copies, strict=True):
            for name in found:
                self._leave_out(key, [name], f"{quoted(name)} {what}")
        known = {*out["outcome_copies"], *out["selection_copies"]}
        first = {name: encoding.columns_of(name)[0] for name in encoding.sources}
        missing = {
            name: np.isnan(X[column].to_numpy())
            for name, column in first.items()
            if name in encoding.n_missing and name not in known and encoding.missing == "drop"
        }
        counts = FeatureCounts.of_gaps(list(missing.values()), chosen)
        everyone = self.question.family.sees_everyone
        words = explain_known_only([*missing], counts, everyone=everyone) if missing else None
        if words:
            places = np.flatnonzero(counts.known_only()).tolist()
            self._leave_out("known_if_selected", [list(missing)[place] for place in places], words)

    def _leave_out(self, key: str, names: Sequence[str], words: str) -> None:
        do = f"Leave it out with {option('exclude', [*names])}."
        if key == "selection_copies" and not self.question.family.sees_everyone:
            do = f"{do[:-1]}, or name it with {option('selected')} if outcomes are never empty."
        options = {"exclude": tuple(names)}
        self.add(Finding(key, "problem", words, do, tuple(names), None, options))

    def _gaps(self, encoding: Encoding, X: pd.DataFrame, outcome: Floats, chosen: Mask) -> None:
        """Find columns that cost many rows; leave them out if too few rows would be left."""
        kept = [name for name in encoding.sources if name not in self.question.exclude]
        made = [(name, column) for name in kept for column in encoding.columns_of(name)]
        if not made:
            return
        gaps = X[[column for _, column in made]].isna().to_numpy(dtype=bool)
        lost = GapCounts.of(gaps).lost([name for name, _ in made])
        if not lost.are_many:
            return
        costly = tuple(name for name, _ in lost.columns[: lost.n_costly])
        complete = ~gaps.any(axis=1)
        observed = complete & chosen & ~np.isnan(outcome)
        is_refused = not observed.any() or not (complete & ~chosen).any()
        do = f"To keep these rows, pass {option('exclude', [*costly])} or "
        do += f"{option('missing', 'mean')}."
        self.add(
            Finding(
                "costly_columns",
                "problem" if is_refused else "caution",
                f"{lost.words} {lost.advice}",
                do,
                costly,
                lost.n_lost,
                {"exclude": costly} if is_refused else {},
            )
        )

    def _rare(self, encoding: Encoding, X: pd.DataFrame, chosen: Mask) -> None:
        """Find levels with few rows; merge them if one of them has only one kind of row."""
        rare: dict[str, dict[str, int]] = {}
        is_split = False
        for name, levels in encoding.levels.items():
            if name in self.question.exclude:
                continue
            dummies = X[encoding.columns_of(name)].to_numpy()
            known = ~np.isnan(dummies[:, 0])
            masks = {level: dummies[:, place] == 1 for place, level in enumerate(levels[1:])}
            masks[levels[0]] = known & ~(dummies == 1).any(axis=1)
            for level, rows in masks.items():
                n, n_chosen = np.count_nonzero(rows), np.count_nonzero(rows & chosen)
                if 0 < n < _RARE:
                    rare.setdefault(name, {})[level] = int(n)
                    is_split |= n_chosen in (0, n)
        if not rare:
            return
        said = []
        for name, levels_of_it in list(rare.items())[:_NAMED]:
            some = [f"{quoted(level)} ({n})" for level, n in list(levels_of_it.items())[:_NAMED]]
            more = f" and {len(levels_of_it) - _NAMED} more" * (len(levels_of_it) > _NAMED)
            said.append(f"Few rows have {', '.join(some)}{more} in {quoted(name)}.")
        words, do = " ".join(said), f"Merge rare levels with {option('min_level_rows', _RARE)}."
        if is_split:
            one, other = (words.lower() for words in self.question.family.words.rows)
            if not self.question.family.sees_everyone:
                one, other = "selected", "unselected"
            words += f" One of them has only {one} or only {other} rows, which stops a fit."
        rows = sum(n for levels in rare.values() for n in levels.values())
        options = {"min_level_rows": _RARE} if is_split else {}
        how: Level = "problem" if is_split else "caution"
        self.add(Finding("rare_levels", how, words, do, tuple(rare), rows, options))

    def _without_search(self) -> dict[str, Any]:
        """Return the options of a fit without a search; one that has none keeps its columns."""
        kept = _ROLES if self.question.searched == "none" else ()
        return {name: value for name, value in _SEARCHES.items() if name not in kept}

    def _tried(self) -> None:
        """Fit a model of all features with the options so far, and keep what it refuses."""
        prepared: Prepared | None = None
        for _ in range(_MOST_TRIES):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    question = replace(self.question, **self._without_search())
                    prepared = load(question, lambda words: None, self.frame)
                    fit_question(prepared)
                return
            except SeparationError as error:
                assert prepared is not None
                made_from = prepared.encoding.made_from
                names = list(dict.fromkeys(made_from[column] for column in error.columns))
                if len(names) != 1:
                    self.add(Finding("separation", "problem", error.words, "", tuple(names)))
                    return
                is_category = names[0] in prepared.encoding.levels
                options = {"on_separation": "drop"} if is_category else {"exclude": (names[0],)}
                self.add(
                    Finding("separation", "problem", error.words, "", (names[0],), None, options)
                )
            except HeckmanfaError as error:
                self.add(Finding("refused", "problem", error.words))
                return


def _alike(levels: Sequence[str]) -> list[list[str]]:
    """Group levels that differ only in case or blanks; a level of its own is in no group."""
    groups: dict[str, list[str]] = {}
    for level in levels:
        groups.setdefault(one_case(level), []).append(level)
    return [group for group in groups.values() if len(group) > 1]


def _splits(values: Floats, chosen: Mask) -> bool:
    """Whether two values of a column are exactly who is selected and who is not."""
    known = ~np.isnan(values)
    mine, others = values[known & chosen], values[known & ~chosen]
    if not len(mine) or not len(others):
        return False
    return bool((mine == mine[0]).all() and (others == others[0]).all() and mine[0] != others[0])

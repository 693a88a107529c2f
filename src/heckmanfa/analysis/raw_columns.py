"""Columns of a table as bounds take them: amounts, labels of groups, and features.

A table is read as for a fit, with the same options and the same errors; all of it in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.analysis.column_roles import count_texts, number_tally, numbers_in, read_roles
from heckmanfa.analysis.loading import blanked, learn, open_text, settle, typed_table
from heckmanfa.analysis.request import (
    Question,
    check_question,
    references_in,
    refuse_text_options,
    refuse_unknown,
)
from heckmanfa.data.columns.dropped_rows import columns_dropped_by
from heckmanfa.data.columns.missing_codes import (
    find_suspicions,
    notes_on_codes,
    notes_on_suspicions,
)
from heckmanfa.data.columns.total_rows import find_total_rows
from heckmanfa.data.columns.values import TRUE_WORDS, is_text
from heckmanfa.data.survey import groups_at
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.tables.reading import Table
from heckmanfa.tables.streamed import find_stored
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted
from heckmanfa.text.wording import plural

# More different texts are not classes.
_MANY = 20


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table in memory, whose columns are as they were stored."""

    question: Question
    frame: pd.DataFrame
    """missing where values mean that"""
    columns: list[str]
    """of the table; a frame of typed files has those that are needed"""
    untyped: bool
    roles: Mapping[str, Any]
    """keywords of functions of `heckmanfa.bounds`: who is selected, weights, clusters or units"""
    notes: tuple[str, ...]
    """sentences about how it was read"""

    def amounts(self) -> pd.Series[Any]:
        """Return the outcome as numbers; refuse classes, of which there are shares."""
        name = self.question.outcome
        series = self.frame[name]
        if is_text(series):
            counts, texts = count_texts(series)
            if counts and len(texts) == len(counts) <= _MANY:
                known = [text for text in texts if text.lower() in TRUE_WORDS]
                first = min(known or texts)
                raise InputError(
                    f"{option('outcome')}: column {quoted(name)} holds text such as "
                    f"{quoted(first)}, not amounts: for the share of a class, pass "
                    f"{option('of', first)}"
                )
        return pd.Series(numbers_in(series, name, "outcome"), name=name)

    def classes(self) -> pd.Series[Any]:
        """Return the outcome as it is stored."""
        return self.frame[self.question.outcome]

    def labels(self, role: str, name: str) -> pd.Series[Any]:
        """Return a column that every row needs."""
        missing = int(self.frame[name].isna().sum())
        if missing:
            raise InputError(
                f"{option(role)}: column {quoted(name)} is missing in {plural(missing, 'row')}, "
                "and every row needs it: write what it is there, such as unknown, or leave these "
                "rows out of the table"
            )
        return self.frame[name]

    def numbers(self, role: str, name: str) -> pd.Series[Any]:
        """Return a column of numbers that every row needs."""
        values = numbers_in(self.labels(role, name), name, role)
        return pd.Series(values, name=name)

    def treated(self, name: str) -> Any:
        """Return who is treated, (n,), NaN where that is not known."""
        asked = Question(self.question.data, self.question.outcome, model="treatment", treated=name)
        return read_roles(asked, self.frame)[0]

    def reference(self, name: str) -> str | None:
        """Return the group that others are compared with, if it is named."""
        return references_in(self.question, self.columns).get(name)

    def features(
        self, role: str, names: Sequence[str]
    ) -> tuple[pd.DataFrame, RawTable, tuple[str, ...]]:
        """Return columns as numbers, categories as dummies, and the rows that have all of them.

        The third is what to say about the other rows.
        """
        question = replace(self.question, features=tuple(names))
        encoding, X = learn(question, self.frame, [*names], self.columns, untyped=self.untyped)
        for name, why in encoding.left_out.items():
            raise InputError(f"{option(role)} names {quoted(name)}, which cannot be used: {why}")
        whole = np.array(X.notna().all(axis="columns"), dtype=bool)
        weight = self.roles["sample_weight"]
        X = settle(question, encoding, X, whole if weight is None else whole & (weight > 0))[1]
        whole &= np.asarray(X.notna().all(axis="columns"), dtype=bool)
        n_lost = int(np.count_nonzero(~whole))
        if n_lost == len(X):
            raise InputError(f"each of the {len(X):,} rows lacks one of {option(role)}")
        lacking = (
            f"{plural(n_lost, 'row')} left out for lack of a feature; bounds are of the others."
        )
        frame = self.frame.loc[whole].reset_index(drop=True)
        rest = replace(self, frame=frame, roles=_roles_at(self.roles, whole))
        return X.loc[whole].reset_index(drop=True), rest, (lacking,) * (n_lost > 0)


def _roles_at(roles: Mapping[str, Any], chosen: Any) -> dict[str, Any]:
    """Return the roles of some rows."""
    by_row = ("selected", "sample_weight", "groups")
    return {
        name: groups_at(values, chosen) if name in by_row else values
        for name, values in roles.items()
    }


def read_raw(
    question: Question, named: Mapping[str, Sequence[str]], tell: Callable[[str], None]
) -> RawTable:
    """Read the columns of a question, and others that ``named`` lists by the option they are of."""
    check_question(question)
    # No replicate weights are asked for here.
    wanted = [
        *question.roles_in(()),
        *((role, name) for role, names in named.items() for name in names),
    ]
    _refuse_twice(wanted)
    tell(f"reading {question.called}")
    table, columns = _open(question, wanted, tell)
    if table.n_blank:
        raise InputError(
            f"{plural(table.n_blank, 'row')} of {question.called} "
            f"{'has' if table.n_blank == 1 else 'have'} no value in any column, so nothing tells a "
            "missing outcome from a blank line: add a column that is filled in every row, such as "
            "a row number"
        )
    others = [name for names in named.values() for name in names]
    read = blanked(question, table, others, columns)
    references_in(question, columns)
    frame = read.frame.reset_index(drop=True)
    selected, weight, groups = read_roles(question, frame)
    notes = [
        *table.notes,
        *notes_on_codes(question.na_values, columns, table.blanked | read.counts),
        *map(str, find_total_rows(table.frame)),
    ]
    outcome = frame[question.outcome]
    if pd.api.types.is_numeric_dtype(outcome):
        tally = number_tally(outcome.to_numpy(dtype=float, na_value=np.nan))
        notes += notes_on_suspicions(find_suspicions({question.outcome: tally}, question.outcome))
    roles = {
        "selected": selected,
        "sample_weight": weight,
        "weight_kind": question.counts_as,
        "groups": groups,
        "survey": question.survey,
    }
    said = tuple(told(note, keywords=True) for note in notes)
    return RawTable(question, frame, columns, table.untyped, roles, said)


def _open(
    question: Question, wanted: Sequence[tuple[str, str]], tell: Callable[[str], None]
) -> tuple[Table, list[str]]:
    """Read a table that has the columns wanted; return it, and the names of all its columns."""
    stored = find_stored(question.data)
    if stored is not None:
        refuse_text_options(vars(question), stored.format)
        columns = stored.columns
        _refuse_absent(wanted, columns)
        needed = {name for _, name in wanted} | {*columns_dropped_by(question.drop_rows, columns)}
        loaded = stored.load([name for name in columns if name in needed])
        return typed_table(question, loaded), columns
    table = open_text(question, tell)
    columns = [str(name) for name in table.frame.columns]
    try:
        _refuse_absent(wanted, columns)
    except UnknownFeatureError as error:
        raise UnknownFeatureError(f"{error}{table.hint}") from error
    literal = {*question.categorical}
    table.refuse_doubts([name for _, name in wanted if name not in literal])
    return table, columns


def _refuse_absent(wanted: Sequence[tuple[str, str]], columns: Sequence[str]) -> None:
    """Refuse a column that the table does not have; one with another role is not suggested."""
    there = {*columns}
    for role, name in wanted:
        if name not in there:
            refuse_unknown(columns, name, role, {other for _, other in wanted} - {name})


def _refuse_twice(wanted: Sequence[tuple[str, str]]) -> None:
    """Refuse the outcome, or who has one, in another role."""
    first = {name: role for role, name in wanted if role in ("outcome", "selected")}
    for role, name in wanted:
        if name in first and role != first[name]:
            raise InputError(
                f"{option(role)} names {quoted(name)}, which is the column of {option(first[name])}"
            )

"""The table of all features, for other programs and for readers.

A file of it is one of `heckmanfa.results.table_files`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from heckmanfa.inference.pictures import Pictures
from heckmanfa.plots.selection_rows import SelectionDriver
from heckmanfa.report.content import coefficient_blocks, selection_blocks
from heckmanfa.report.reported import Reported
from heckmanfa.results.answer import in_percents
from heckmanfa.results.document import Block, Code, CodeTabs, Heading, Notes, PageBlock, Paragraph
from heckmanfa.results.effects import UNKNOWN, Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence, LevelEvidence
from heckmanfa.text.labels import Labels, label, said, with_name
from heckmanfa.text.table import Column, Table
from heckmanfa.text.wording import true_minus


def feature_frame(pictures: Pictures) -> pd.DataFrame:
    """Return a row for each feature, and for each level of a category.

    Features come in the order of `Analysis.roles`. Chances are shares of BIC, AIC and EBIC weight,
    and of BIC weight without lambda. Effects are of ``step`` more of a feature, in its units, or of
    the ``change`` to a level; those on selection are in percentage points, for the change that the
    table names. Effects on a logarithm are also in percent. Effects on a binary outcome are on its
    probability, from 0 to 1, beside a naive probit in place of least squares. Labels and units
    stand beside names if there are any.
    """
    margins, evidence = pictures.margins, pictures.evidence
    drivers = {} if margins is None else {driver.name: driver for driver in margins.drivers}
    naive = evidence.words.naive_short.replace(" ", "_")
    lines = [
        line
        for feature in evidence.ordered()
        for line in _lines(evidence, feature, drivers.get(feature.name), naive, pictures.labels)
    ]
    return pd.DataFrame(lines)


def _lines(
    evidence: Evidence,
    feature: FeatureEvidence,
    driver: SelectionDriver | None,
    naive: str,
    labels: Labels,
) -> list[dict[str, Any]]:
    """Return the lines of one feature: one, or one for each level of a category.

    ``naive`` names the model that ignores selection.
    """
    common = {
        "chance": feature.chance,
        "chance_aic": feature.by_aic,
        "chance_ebic": feature.by_ebic,
        f"chance_{naive}": feature.chance_least_squares,
        "role": feature.role,
    }
    items: tuple[FeatureEvidence | LevelEvidence, ...] = feature.levels or (feature,)
    changes = () if driver is None else driver.changes
    # Both are in the order of the columns, unless the selection equation lacks one of these.
    in_order = len(changes) == len(items)
    lines = []
    for place, item in enumerate(items):
        level = item.name if feature.levels else feature.level
        effects: list[Effect | None] = [item.effect, item.least_squares, item.all_features]
        line: dict[str, Any] = {"feature": feature.name, **_words_of(feature.name, labels)}
        line["level"] = level
        if labels.levels:
            line["level_label"] = labels.levels.get((feature.name, level), "")
        line |= {"reference": feature.reference, **common}
        column = _column(item)
        line["step"] = evidence.naming.step_of(column)
        line["change"] = evidence.naming.step_words(column)
        for name, effect in zip(("effect", naive, "all_features"), effects, strict=True):
            known = effect or UNKNOWN
            line |= {name: known.estimate, f"{name}_low": known.low, f"{name}_high": known.high}
        line |= in_percents(evidence.words, item, naive)
        line["selection_p_value"] = feature.selection_p
        line["selection_chance"] = feature.selection_chance
        change = changes[place] if in_order else None
        line["selection_change"] = "" if change is None else change.words
        for end in ("estimate", "low", "high"):
            line[f"selection_points_{end}"] = getattr(change, end, float("nan"))
        lines.append(line)
    return lines


def _column(item: FeatureEvidence | LevelEvidence) -> int:
    """Return the column of X whose effect is given."""
    return item.column if isinstance(item, LevelEvidence) else item.lead


def _words_of(name: str, labels: Labels) -> dict[str, str]:
    """Return the label and the unit of a column, if any column of the table has one."""
    known = {"label": labels.names, "unit": labels.units}
    return {kind: words.get(name, "") for kind, words in known.items() if words}


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Put the labels of terms beside them, if readers know any by a label."""
    if frame.empty:
        return frame
    terms = frame["term"].astype(str)
    labels = terms.map(label)
    if (labels == terms).all():
        return frame
    frame = frame.copy()
    frame.insert(list(frame.columns).index("term") + 1, "label", labels.where(labels != terms, ""))
    return frame


def table_blocks(page: Reported) -> list[Block]:
    """Return what a reader needs of an answer: its sentences, roles, and both equations."""
    answer, evidence = page.answer, page.evidence
    blocks: list[PageBlock] = [
        Heading(page.title),
        *map(Paragraph, answer.sentences),
        _roles_table(evidence),
        Notes((_roles_note(evidence),)),
        *coefficient_blocks(page),
        *selection_blocks(page),
    ]
    return list(readable(blocks))


def readable(blocks: Iterable[PageBlock]) -> Iterable[Block]:
    """Write numbers of tables with true minus signs, and leave out their empty columns."""
    for block in blocks:
        if isinstance(block, Table):
            rows = (
                row
                if isinstance(row, str)
                else [row[0], *(_written(cell, column) for cell, column in _rest(row, block))]
                for row in block.rows
            )
            yield replace(block, rows=tuple(rows)).without_empty()
        elif not isinstance(block, Code | CodeTabs):
            yield block


def _rest(row: Any, table: Table) -> Iterable[tuple[str, Column]]:
    return zip(row[1:], table.columns[1:], strict=True)


def _written(cell: str, column: Column) -> str:
    return true_minus(cell) if column.is_number else cell


def _roles_table(evidence: Evidence) -> Table:
    """Lay out chance, role and effect of every feature and level, beside a naive model."""
    words = evidence.words
    naive = f"{words.naive_short[0].upper()}{words.naive_short[1:]}"
    columns = (
        Column("Feature", is_number=False),
        Column("Change", is_number=False),
        Column("Chosen in halves" if evidence.way.halves_rows else "Chance"),
        Column("Role", is_number=False, is_long=True),
        *(
            Column(title, group=group)
            for group in ("This model", naive)
            for title in ("Effect", "95% interval")
        ),
    )
    rows = []
    for feature in evidence.ordered():
        for item in feature.levels or (feature,):
            change = evidence.naming.step_words(_column(item))
            line = [with_name(feature.name), change, evidence.share_words(feature), feature.role]
            for effect in (item.effect, item.least_squares):
                value, low, high = words.numbers(effect.estimate, effect.low, effect.high)
                line += [value, f"{low} to {high}" if low and high else ""]
            rows.append(line)
    unit = f", in {words.drawn_unit}" if words.drawn_unit else ""
    if words.log is not None:
        unit += f" of {words.log.target}"
    caption = f"Which features predict {said(evidence.outcome)}, and how much{unit}"
    return Table(columns, tuple(rows), caption, "roles-table")


def _roles_note(evidence: Evidence) -> str:
    held = "An effect goes with the change that is named."
    if not evidence.has_chances:
        return held
    return f"{held} A chance is the share of BIC weight of the sets in which the feature predicts."

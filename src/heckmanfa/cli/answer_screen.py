"""An answer on a console: its sentences, and every feature with its chance and effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from heckmanfa.analysis import Analysis
from heckmanfa.analysis.question_words import weights_counted
from heckmanfa.analysis.treatment_analysis import TreatmentAnalysis
from heckmanfa.cli.console import known_height
from heckmanfa.report.treatment_page import effects_table
from heckmanfa.results.checks import Check, count_words
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence
from heckmanfa.results.naming import EffectWords
from heckmanfa.text.chances import NO_SIGN_BELOW
from heckmanfa.text.labels import label, labelled, said, said_level
from heckmanfa.text.passage import join
from heckmanfa.text.printable import printable, shown
from heckmanfa.text.wording import chance_text, listed, plural, rest_text, true_minus

MOST_ROWS = 20
"""Of more features, only the likeliest are shown; the rest are counted."""

# Names are cut in the middle to fit, but never to fewer characters than this.
_SHORTEST_NAME = 10
_LONGEST_NAME = 36
_INDENT = 2
_GAP = 2


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    text: str
    kind: str
    """head, role, feature or rest"""


@dataclass(frozen=True)
class _Column:
    title: str
    cells: Sequence[str]
    spare: int = 0
    """the higher, the sooner it is left out if the console is narrow; 0 is never"""

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.title, *self.cells)))


def role_lines(evidence: Evidence, width: int) -> list[Line]:
    """Return the lines of the table for a console so wide, its head first."""
    ordered = evidence.ordered()
    chosen = ordered if len(ordered) <= MOST_ROWS else _likeliest(ordered)
    names = [_name(evidence, feature) for feature in chosen]
    columns = _kept(_columns(evidence, chosen), names, width)
    room = width - _INDENT - sum(column.width + _GAP for column in columns)
    longest = max([cell_len("feature"), *map(cell_len, names)])
    room = max(min(room, longest, _LONGEST_NAME), _SHORTEST_NAME)
    lines = [Line(_row("feature", [column.title for column in columns], columns, room), "head")]
    role = ""
    for place, feature in enumerate(chosen):
        if feature.role != role:
            role = feature.role
            lines.append(Line(role, "role"))
        cells = [column.cells[place] for column in columns]
        lines.append(Line(_row(fitted(names[place], room), cells, columns, room), "feature"))
    rest = [feature for feature in ordered if feature not in chosen]
    if rest:
        lines.append(Line(" " * _INDENT + _rest(rest), "rest"))
    return lines


def fitted(name: str, room: int) -> str:
    """Cut a printable name in the middle to so many cells; wide characters take two."""
    limit = room
    while cell_len(name) > room:
        name = shown(name, limit)
        limit -= 1
    return name


def _likeliest(ordered: Sequence[FeatureEvidence]) -> list[FeatureEvidence]:
    """Keep those that may predict, and of these the likeliest if they are too many."""
    chances = [feature.chance for feature in ordered if feature.chance is not None]
    if not chances:
        return [*ordered[:MOST_ROWS]]
    least = max(sorted(chances, reverse=True)[: MOST_ROWS + 1][-1], NO_SIGN_BELOW)
    kept = [feature for feature in ordered if feature.chance is None or feature.chance >= least]
    return kept[:MOST_ROWS]


def _rest(rest: Sequence[FeatureEvidence]) -> str:
    chances = [feature.chance for feature in rest if feature.chance is not None]
    if not chances:
        return f"+{len(rest)} more"
    return rest_text(len(rest), max(chances), NO_SIGN_BELOW)


def _name(evidence: Evidence, feature: FeatureEvidence) -> str:
    """Name a feature with the level whose effect is shown, or with a step that is not one."""
    if feature.level:
        is_is = " = " if label(feature.name) == feature.name else ": "
        return f"{said(feature.name)}{is_is}{said_level(feature.name, feature.level)}"
    if feature.step != 1.0:
        return f"{said(feature.name)} ({evidence.naming.step_words(feature.lead)})"
    return said(feature.name)


def _columns(evidence: Evidence, features: Sequence[FeatureEvidence]) -> list[_Column]:
    words = evidence.words
    values = [_cells(feature.effect, words) for feature in features]
    plain = [_cells(feature.least_squares, words)[0] for feature in features]
    columns = [
        _Column(words.title, [estimate for estimate, _ in values]),
        _Column("95% interval", [interval for _, interval in values], spare=1),
        _Column(words.naive_short, plain, spare=2),
    ]
    chances = [
        "" if feature.chance is None else chance_text(feature.chance) for feature in features
    ]
    if any(chances):
        columns.insert(0, _Column(evidence.fit.way.words.share, chances))
    if not evidence.fit.way.is_corrected:
        columns.pop()
    return columns


def _cells(effect: Effect, words: EffectWords) -> tuple[str, str]:
    if not effect.known:
        return "", ""
    estimate, low, high = words.numbers(effect.estimate, effect.low, effect.high)
    return estimate, f"{low} to {high}" if effect.has_interval else ""


def _kept(columns: Sequence[_Column], names: Sequence[str], width: int) -> list[_Column]:
    """Leave out the least important columns until names have room."""
    kept = [*columns]
    name = min(max(map(cell_len, names), default=0), _LONGEST_NAME // 2)
    while len(kept) > 1:
        spare = max(kept, key=lambda column: column.spare)
        needed = _INDENT + max(name, _SHORTEST_NAME) + sum(column.width + _GAP for column in kept)
        if needed <= width or not spare.spare:
            break
        kept.remove(spare)
    return kept


def _row(name: str, cells: Sequence[str], columns: Sequence[_Column], room: int) -> str:
    text = " " * _INDENT + name + " " * (room - cell_len(name))
    for cell, column in zip(cells, columns, strict=True):
        text += " " * (_GAP + column.width - cell_len(cell)) + cell
    return text.rstrip()


_LEVELS = {"problem": "bold red", "caution": "yellow", "note": "cyan", "ok": "green"}
_KINDS = {"head": "dim", "role": "bold", "feature": "", "rest": "dim"}
# The longest of these is "problem".
_LABEL = 7
_NARROWEST = 20


def show(
    analysis: Analysis, console: Console, *, verbose: bool = False, files: Sequence[Text] = ()
) -> None:
    """Print the answer first, then what it rests on, then lines about files that were written.

    The answer comes again at the end of a terminal from which it scrolled away. ``verbose`` prints
    notes and checks that are fine as well.
    """
    with labelled(analysis.labels):
        answer = _answer_lines(analysis, console)
        lines = [*answer, Text(), *_ground_lines(analysis, console, verbose), *files]
    height = known_height(console)
    # The prompt takes a line, too.
    if height is not None and len(lines) >= height:
        lines += [Text(), Text("The answer again:", style="dim"), *answer]
    for line in lines:
        console.print(line, soft_wrap=True)


def _answer_lines(analysis: Analysis, console: Console) -> list[Text]:
    first, *others = analysis.answer.lines()
    wrapped = wrap(console, first, "bold")
    return [*wrapped, *(line for words in others for line in wrap(console, words))]


def _ground_lines(analysis: Analysis, console: Console, verbose: bool) -> list[Text]:
    """Return what the answer rests on: rows, features, checks and claims."""
    lines = wrap(console, analysis.target.words) if analysis.target.words else []
    main = _MAIN_LINES.get(type(analysis), _feature_lines)
    lines += [*_row_lines(analysis, console), Text(), *main(analysis, console), Text()]
    lines += _check_lines(analysis.checks, console, verbose)
    n = len(analysis.claims)
    if n:
        claims = (
            f"{plural(n, 'thing')} may not be claimed: {'it is' if n == 1 else 'they are'} in the "
            "report (--report) and in the JSON (--json)."
        )
        lines += wrap(console, claims)
    return lines


def _row_lines(analysis: Analysis, console: Console) -> list[Text]:
    """Say how rows and columns were used; what was lost is not dim."""
    rows = f"{shown(analysis.question.called)}: {analysis.funnel.words}"
    notes = [f"{analysis.how_read[0].upper()}{analysis.how_read[1:]}."] if analysis.streamed else []
    notes += [*_weights_and_errors(analysis), *analysis.notes, *analysis.explain()]
    if not analysis.funnel.lost:
        return wrap(console, " ".join([rows, *notes]), "dim")
    return wrap(console, rows) + wrap(console, " ".join(notes), "dim")


def _weights_and_errors(analysis: Analysis) -> list[str]:
    """Say how rows are weighted, if at all, and which standard errors are used."""
    weights = weights_counted(analysis.question, analysis.model.n_obs_)
    return [*weights, f"Standard errors: {analysis.errors}."]


def _feature_lines(analysis: Analysis, console: Console) -> list[Text]:
    """Return the table of roles, what its chances are, and the verdict on selection."""
    lines = [
        Text(line.text, style=_KINDS[line.kind])
        for line in role_lines(analysis.evidence, console.width)
    ]
    answer = analysis.answer
    which = join([answer.which.words, answer.which.numbers])
    for words in (analysis.evidence.words.scale, which):
        lines += wrap(console, str(words), "dim") if words else []
    numbers = join([answer.selection.numbers, answer.how_much.numbers])
    # The numbers begin with the chance, if there is one.
    known = analysis.evidence.judgement.chance is not None
    title = f"{answer.selection.title}." if known else str(answer.selection)
    verdict = f"{answer.selection.question} {title} {numbers}"
    return lines + wrap(console, verdict.rstrip())


def _effect_lines(analysis: Any, console: Console) -> list[Text]:
    """Return the table of effects, on whom they are, and the verdict on who chose treatment."""
    table, answer = effects_table(analysis.treatment), analysis.answer
    rows = [row for row in table.rows if not isinstance(row, str)]
    values = _Column(table.columns[1].title.lower(), [true_minus(row[1]) for row in rows])
    columns = [values, _Column("rows", [row[2] for row in rows], spare=1)]
    names = [row[0] for row in rows]
    columns = _kept(columns, names, console.width)
    room = console.width - _INDENT - sum(column.width + _GAP for column in columns)
    longest = max([cell_len(table.columns[0].title), *map(cell_len, names)])
    room = max(min(room, longest, _LONGEST_NAME), _SHORTEST_NAME)
    head = [column.title for column in columns]
    lines = [Text(_row("effect on", head, columns, room), style=_KINDS["head"])]
    place = 0
    for row in table.rows:
        if isinstance(row, str):
            lines.append(Text(row, style=_KINDS["role"]))
            continue
        cells = [column.cells[place] for column in columns]
        lines.append(Text(_row(fitted(names[place], room), cells, columns, room)))
        place += 1
    unit = analysis.treatment.words.drawn_unit
    if unit:
        lines += wrap(
            console, f"Effects are in {unit} of {analysis.treatment.words.changed}.", "dim"
        )
    tile = answer.tiles["selection"]
    return lines + wrap(console, f"{tile.question} {tile.title}. {tile.numbers}".rstrip())


_MAIN_LINES: Mapping[type[Analysis], Callable[[Any, Console], list[Text]]] = {
    TreatmentAnalysis: _effect_lines
}
"""what an answer shows in place of features and their roles"""


def _check_lines(checks: Sequence[Check], console: Console, verbose: bool) -> list[Text]:
    """Return the checks by severity; notes, and those that are fine, only if all are asked for."""
    lines = wrap(console, f"Checks: {count_words(checks)}")
    grave = [check for check in checks if check.level in ("problem", "caution")]
    for check in checks if verbose else grave:
        if check.level == "ok":
            lines += _beside(console, "ok", check.line)
            continue
        lines += _beside(console, check.level, check.finding)
        for words in (check.words, f"Do: {check.do}" if check.do else ""):
            if words and words != check.title:
                lines += _beside(console, "", words, "dim")
    rest = [] if verbose else _folded(checks)
    if rest:
        lines += wrap(console, f"--verbose shows {listed(rest)}.", "dim")
    return lines


def _folded(checks: Sequence[Check]) -> list[str]:
    """Count the checks that are no warnings, by kind."""
    notes, fine = (sum(check.level == level for check in checks) for level in ("note", "ok"))
    counts = [plural(notes, "note")] if notes else []
    if fine:
        counts.append(f"{plural(fine, 'check')} that {'is' if fine == 1 else 'are'} fine")
    return counts


def _beside(console: Console, level: str, words: str, style: str = "") -> list[Text]:
    """Return words beside a label, which may be empty, in its colour; all begin in one column."""
    label = f"{level:>{_LABEL}}  "
    style = style or _LEVELS.get(level, "")
    lines = wrap(console, words, style, max(console.width - len(label), _NARROWEST))
    heads = [label, *[" " * len(label)] * (len(lines) - 1)]
    return [Text(head + line.plain, style) for head, line in zip(heads, lines, strict=True)]


def wrap(console: Console, words: str, style: str = "", width: int | None = None) -> list[Text]:
    """Return the lines that words take on a console; each has the style of its own."""
    lines = [*Text(printable(words, None), style=style).wrap(console, width or console.width)]
    for line in lines:
        line.rstrip()
    return lines

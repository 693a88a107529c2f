"""An answer on a console: its sentences, and every feature with its chance and effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from heckmanfa.analysis import Analysis
from heckmanfa.results.checks import Check, count_words, fine_words
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import FeatureEvidence
from heckmanfa.results.naming import EffectWords
from heckmanfa.text.chances import NO_SIGN_BELOW
from heckmanfa.text.labels import label, labelled, said, said_level
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import chance_text, plural, rest_text

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
    names = [_name(feature) for feature in chosen]
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


def _name(feature: FeatureEvidence) -> str:
    """Name a feature; of a category, with the level whose effect is shown."""
    if feature.level:
        is_is = " = " if label(feature.name) == feature.name else ": "
        return f"{said(feature.name)}{is_is}{said_level(feature.name, feature.level)}"
    return said(feature.name)


def _columns(evidence: Evidence, features: Sequence[FeatureEvidence]) -> list[_Column]:
    words = evidence.words
    values = [_cells(feature.effect, words) for feature in features]
    plain = [_cells(feature.least_squares, words)[0] for feature in features]
    columns = [
        _Column("points" if words.unit else "effect", [estimate for estimate, _ in values]),
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


def show(analysis: Analysis, console: Console) -> None:
    """Print the answer first, then what it rests on."""
    with labelled(analysis.labels):
        _show(analysis, console)


def _show(analysis: Analysis, console: Console) -> None:
    first, *others = analysis.answer.lines()
    console.print(Text(first, style="bold"))
    for line in others:
        console.print(Text(line))
    console.print()
    if analysis.target.words:
        console.print(Text(analysis.target.words))
    _show_rows(analysis, console)
    console.print()
    _show_roles(analysis, console)
    console.print()
    _show_checks(analysis.checks, console)
    n = len(analysis.claims)
    if n:
        console.print(
            f"{plural(n, 'thing')} may not be claimed: {'it is' if n == 1 else 'they are'} in the "
            "report (--report) and in the JSON (--json)."
        )


def _show_rows(analysis: Analysis, console: Console) -> None:
    """Say how rows and columns were used; what was lost is not dim."""
    counts = analysis.row_counts
    left_out = counts["total"] - counts["selected"] - counts["unselected"]
    rows = (
        f"{shown(analysis.question.called)}, {counts['total']:,} rows: {counts['selected']:,} "
        f"selected, {counts['unselected']:,} not, {left_out:,} left out."
    )
    lacking = [
        f"{plural(count, 'row')} left out {'lacks' if count == 1 else 'lack'} {said(name)}."
        for name, count in analysis.missing_counts.items()
    ]
    notes = [f"{analysis.how_read[0].upper()}{analysis.how_read[1:]}."] if analysis.streamed else []
    notes += [*_weights_and_errors(analysis), *analysis.notes, *analysis.explain()]
    if left_out:
        console.print(Text(" ".join([rows, *lacking])))
        console.print(Text(" ".join(notes), style="dim"))
    else:
        console.print(Text(" ".join([rows, *notes]), style="dim"))


def _weights_and_errors(analysis: Analysis) -> list[str]:
    """Say how rows are weighted, if at all, and which standard errors are used."""
    model, sentences = analysis.model, []
    if analysis.question.weights is not None:
        name = said(analysis.question.weights)
        sentences.append(
            f"Weights {name} count rows: {model.n_obs_:,} in all."
            if model.weight_kind == "frequency"
            else f"Weights {name} are sampling weights, rescaled to mean one."
        )
    return [*sentences, f"Standard errors: {analysis.errors}."]


def _show_roles(analysis: Analysis, console: Console) -> None:
    """Print the table of roles, what its chances are, and the verdict on selection."""
    for line in role_lines(analysis.evidence, console.width):
        console.print(Text(line.text, style=_KINDS[line.kind]), no_wrap=True, overflow="ignore")
    answer = analysis.answer
    for words in (analysis.evidence.words.scale, answer.which.words):
        if words:
            console.print(Text(str(words), style="dim"))
    console.print(Text(f"{answer.selection.question} {answer.selection}"))


def _show_checks(checks: tuple[Check, ...], console: Console) -> None:
    """Print the checks by severity, and those that are fine in one line."""
    console.print(Text(f"Checks: {count_words(checks)}"))
    for check in checks:
        if check.level == "ok":
            continue
        _print_beside(console, check.level, check.finding)
        for words in (check.words, f"Do: {check.do}" if check.do else ""):
            if words and words != check.title:
                _print_beside(console, "", words, "dim")
    fine = fine_words(checks)
    if fine:
        _print_beside(console, "ok", fine)


def _print_beside(console: Console, level: str, words: str, style: str = "") -> None:
    """Print words beside a label, which may be empty; all lines begin in one column."""
    label = Text(f"{level:>{_LABEL}}  ", style=_LEVELS.get(level, ""))
    room = max(console.width - len(label), _NARROWEST)
    for line in Text(words, style=style).wrap(console, room):
        line.rstrip()
        console.print(label + line, soft_wrap=True)
        label = Text(" " * len(label))

"""An analysis on the console: the answer, the roles of the features, the checks, and no more."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from heckmanfa.analysis import Analysis
from heckmanfa.cli.role_table import role_lines
from heckmanfa.results.checks import Check, count_words, fine_words
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import plural

_LEVELS = {"problem": "bold red", "caution": "yellow", "note": "cyan", "ok": "green"}
_KINDS = {"head": "dim", "role": "bold", "feature": "", "rest": "dim"}
# The longest of these is "problem".
_LABEL = 7
_NARROWEST = 20


def show(analysis: Analysis, console: Console) -> None:
    """Print the answer first, then what it rests on."""
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
        f"{plural(count, 'row')} left out {'lacks' if count == 1 else 'lack'} {shown(name)}."
        for name, count in _lacking(analysis)
    ]
    said = [f"{analysis.how_read[0].upper()}{analysis.how_read[1:]}."] if analysis.streamed else []
    said += [*_weights_and_errors(analysis), *analysis.notes, *analysis.explain()]
    if left_out:
        console.print(Text(" ".join([rows, *lacking])))
        console.print(Text(" ".join(said), style="dim"))
    else:
        console.print(Text(" ".join([rows, *said]), style="dim"))


def _lacking(analysis: Analysis) -> list[tuple[str, int]]:
    if analysis.question.missing != "drop":
        return []
    return list(analysis.missing_counts.items())


def _weights_and_errors(analysis: Analysis) -> list[str]:
    """Say how rows are weighted, if at all, and which standard errors are used."""
    model, sentences = analysis.model, []
    if analysis.question.weights is not None:
        name = shown(analysis.question.weights)
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

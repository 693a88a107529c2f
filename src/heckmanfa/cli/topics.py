"""Help by topic: everyday options on one screen or two, and the rest where a topic is asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

from typer.core import TyperCommand

from heckmanfa.analysis.option_help import TABLE
from heckmanfa.analysis.options import OPTIONS, QuestionOption

RESULTS = "Results"
"""title of the options about where results go"""
_GROUPS = [
    *dict.fromkeys(
        option.about.group for option in OPTIONS.values() if option.about.group != TABLE
    ),
    RESULTS,
]
TOPICS = {title.split()[0].lower(): title for title in _GROUPS}
"""titles of groups of options, by the word that asks for them"""


class TopicalCommand(TyperCommand):
    """A command with many options, whose help shows those of every day and names the others."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; typer prints it at once."""
        everyday = [_in_short(made) for made in self.params if _is_everyday(made)]
        others = [made for made in self.params if not _is_everyday(made)]
        more = ", ".join(f"heckmanfa help {topic} ({names})" for topic, names in by_topic(others))
        shown = TyperCommand(
            self.name, params=everyday, help=self.help, epilog=f"More options by topic: {more}."
        )
        shown.format_help(ctx, formatter)


def of_topics(command: TyperCommand, topics: Collection[str]) -> TyperCommand:
    """Return a command with the options of some topics alone, for its help."""
    titles = {TOPICS[topic] for topic in topics}
    params = [made for made in command.params if _group(made) in titles]
    return TyperCommand(command.name, params=params, add_help_option=False)


def by_topic(params: Sequence[Any]) -> list[tuple[str, str]]:
    """Name options by topic."""
    named = [
        (topic, ", ".join(made.opts[0] for made in params if _group(made) == title))
        for topic, title in TOPICS.items()
    ]
    return [(topic, names) for topic, names in named if names]


def _group(made: Any) -> str:
    return getattr(made, "rich_help_panel", None) or ""


def _shared(made: Any) -> QuestionOption | None:
    """Return the option of a question that this is; None of a command's own, whatever its name."""
    option = OPTIONS.get(made.name)
    return option if option is not None and option.about.help == made.help else None


def _is_everyday(made: Any) -> bool:
    option = _shared(made)
    return option is None or bool(option.about.brief)


def _in_short(made: Any) -> Any:
    option = _shared(made)
    if option is None:
        return made
    short = copy(made)
    short.help = option.about.brief
    return short

"""Options that messages name: parameters in Python, keywords of `analyse`, flags at a prompt.

A message holds an option as a value, not as words: ``f"leave it out with {option('exclude')}"``.
The value has its words for each reader, and `told` keeps those of whoever reads the text. Errors,
warnings and passages do so when they become text, so only other texts need the call.

>>> words = f"Name it in {option('never', [...])}, or use {option('method', 'ml')}."
>>> told(words)
"Name it in never=[...], or use method='ml'."
>>> told(words, keywords=True)
"Name it in select_only=[...], or use method='ml'."
>>> with at_command_line():
...     told(words)
'Name it in --select-only, or use --method ml.'
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from heckmanfa.text.printable import quoted, shown

# Parameters of estimators that have another name among the options of a question.
_ASKED = {
    "prediction_features": "predict_with",
    "selection_features": "features",
    "categorical_features": "categorical",
    "never": "select_only",
    "sample_weight": "weights",
    "random_state": "seed",
    "return_interval": "interval",
    "n_splits": "folds",
    "y_range": "range",
    "q": "quantile",
}
_COVARIANCES = {"robust": ("robust", True), "cluster": ("cluster", ...)}

# Private characters, which foreign text cannot hold: `shown` and `quoted` escape them.
_START, _NEXT, _END = "\ue000", "\ue001", "\ue002"
_WORDS = f"([^{_START}-{_END}]*)"
_MARKED = re.compile(f"{_START}{_WORDS}{_NEXT}{_WORDS}{_NEXT}{_WORDS}{_END}")
_PIECES = re.compile(f"({_START}[^{_START}{_END}]*{_END})")
_PARAMETERS, _KEYWORDS, _FLAGS = 1, 2, 3

_at_command_line: ContextVar[bool] = ContextVar("at_command_line", default=False)


def option(name: str, value: object = None) -> str:
    """Name an option in a message, by its parameter or by its field of `Question`.

    ``value`` is shown with it, unless it is None; ``...`` stands for any value, and ``[...]`` for
    any list.
    """
    asked, chosen = _ASKED.get(name, name), value
    if name == "cov_type" and isinstance(value, str):
        asked, chosen = _COVARIANCES[value]
    return _marked(_in_python(name, value), _in_python(asked, chosen), _flag(asked, chosen))


def instead(python: str, asked: str) -> str:
    """Word advice for users of estimators, and in another way for who asks about a table.

    What only Python has is left out at a prompt with an empty ``asked``.
    """
    return _marked(_pick(python, _PARAMETERS), _pick(asked, _KEYWORDS), _pick(asked, _FLAGS))


def only_flag(name: str, python: str) -> str:
    """Name an option that only the command line has; in Python, what does the same there."""
    return _marked(python, python, flag(name))


def told(text: str, *, keywords: bool = False) -> str:
    """Return a text in the words of its reader.

    These are parameters of estimators, or ``keywords`` of `analyse`; at the command line, flags.
    """
    if _at_command_line.get():
        return _pick(text, _FLAGS)
    return _pick(text, _KEYWORDS if keywords else _PARAMETERS)


@contextmanager
def at_command_line() -> Iterator[None]:
    """Let texts name flags: their reader runs a command."""
    before = _at_command_line.set(True)
    try:
        yield
    finally:
        _at_command_line.reset(before)


def flag(name: str) -> str:
    """Return the name of an option at the command line."""
    return "--" + name.replace("_", "-")


def _marked(*words: str) -> str:
    return _START + _NEXT.join(words) + _END


def _pick(text: str, reader: int) -> str:
    return _MARKED.sub(lambda match: match[reader], text)


def _in_python(name: str, value: object) -> str:
    if value is None:
        return name
    if value in (..., [...]):
        return f"{name}=..." if value is ... else f"{name}=[...]"
    if isinstance(value, list):
        return f"{name}=[{', '.join(map(quoted, value))}]"
    return f"{name}={quoted(value)}"


def _flag(name: str, value: object) -> str:
    if value is None or value is True or value in (..., [...]):
        return flag(name)
    if isinstance(value, list):
        # A comma would end an item of a list.
        value = ",".join(f'"{item}"' if "," in str(item) else str(item) for item in value)
    if isinstance(value, tuple):
        return " ".join([flag(name), *map(str, value)])
    # A lone mark, such as a decimal comma, would be taken for punctuation.
    text = str(value)
    plain = shown(shlex.quote(text)) if any(map(str.isalnum, text)) else quoted(text)
    return f"{flag(name)} {plain}"


def outside_options(write: Callable[[str], str], text: str) -> str:
    """Rewrite a text but for the options in it, which users copy."""
    pieces = _PIECES.split(text)
    return "".join(piece if piece.startswith(_START) else write(piece) for piece in pieces)


# Advice that estimators and questions about a table give in different words.
EXCLUDED = instead("", f" with {option('exclude')}")
FEWER_SELECTING = instead(
    "Leave features out of the selection equation",
    f"Leave features out with {option('exclude')}, or name those to use with {option('features')}",
)
FEWER_PREDICTING = instead(
    "Leave features out of the prediction equation",
    f"Let fewer features predict ({option('predict_with')})",
)
IN_NEVER = instead("in never=[...]", f"with {option('select_only', [...])}")
MISSING = instead("missing with NaN", f"missing ({option('na_values')})")
NODE_LIMIT = instead("max_nodes = ", "the limit of ")
OR_DROP = instead(", or pass on_collinear='drop'", "")
OUT_OF_BOTH = instead("out of both equations", f"out ({option('exclude')})")
OUT_OF_PREDICTION, OUT_OF_OUTCOME = (
    instead(f"out of {equation}_features", f"out of prediction ({option('select_only')})")
    for equation in ("prediction", "outcome")
)

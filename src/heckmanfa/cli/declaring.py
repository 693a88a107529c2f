"""How a command is made of a class that declares its options, and how it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer

from heckmanfa.analysis.option_help import Names
from heckmanfa.analysis.options import OPTIONS, QuestionOption
from heckmanfa.text.option_words import flag

_KIND = inspect.Parameter.KEYWORD_ONLY
COMMANDS: list[Callable[..., None]] = []
"""the commands, as functions that typer reads"""
_Declared = TypeVar("_Declared")


def command(declared: type[_Declared]) -> type[_Declared]:
    """Make a command of the class of its options; its work is in the module ``run_<command>``."""
    name = declared.__name__.removesuffix("Options").lower()
    own = inspect.signature(declared, eval_str=True).parameters
    asked = {
        option.name: _parameter(option)
        for option in OPTIONS.values()
        if name in ("fit", "check") or name in option.about.also_in
    }

    def made(**values: Any) -> None:
        _run(name, declared(**{option: values.pop(option) for option in own}), values)

    made.__name__, made.__doc__ = name, declared.__doc__
    parameters = [*asked.values(), *own.values()]
    if getattr(declared, "own_first", False):
        required = [made for made in asked.values() if made.default is inspect.Parameter.empty]
        parameters = list(dict.fromkeys([*required, *own.values(), *asked.values()]))
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    COMMANDS.append(made)
    return declared


def _parameter(option: QuestionOption) -> inspect.Parameter:
    """Return an option of a question as a parameter that typer reads."""
    about = option.about
    kind: Any = list[str] if option.kind == Names else option.kind
    default = None if option.default == () else option.default
    info: Any = typer.Argument(help=about.help)
    if option.name != "data":
        info = typer.Option(
            *([flag(option.name)] if kind is bool else []),
            help=about.help,
            rich_help_panel=about.group,
            min=about.least,
            metavar=about.metavar,
        )
    if option.is_required:
        default = inspect.Parameter.empty
    elif default is None:
        kind = kind | None
    annotation = Annotated[kind, info]
    return inspect.Parameter(option.name, _KIND, default=default, annotation=annotation)


def _run(name: str, options: Any, asked: dict[str, Any]) -> None:
    """Do the work of a command; ``asked`` are its options about a table.

    Its module is imported only now: pandas and scikit-learn would slow the start and ``--help``.
    """
    from heckmanfa.cli.console import saying  # Rich would slow the start

    # The demo is a fit, help is there at once, and `reproduce` has a progress bar of its own.
    module, function = ("run_fit", "demo") if name == "demo" else (f"run_{name}", "run")
    with saying(quiet=name in ("reproduce", "help") or getattr(options, "quiet", False)) as say:
        say("loading")
        run = getattr(import_module(f"heckmanfa.cli.{module}"), function)
    run(options, **asked)

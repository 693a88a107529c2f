"""Makes commands of declarations: functions that have options and help, and no body.

A command that asks a question about a table gets the options of `heckmanfa.analysis.options`; what
it declares itself comes after these, or replaces the one of the same name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

from heckmanfa.analysis.options import OPTIONS, Names, Option
from heckmanfa.text.option_words import flag

_KIND = inspect.Parameter.KEYWORD_ONLY


def command(declared: Callable[..., None]) -> Callable[..., None]:
    """Make a command of its declaration; its work is in the module ``run_<command>``."""
    name = declared.__name__
    own = inspect.signature(declared, eval_str=True).parameters
    asked = {
        option.name: _parameter(option)
        for option in OPTIONS.values()
        if name == "fit" or name in option.about.also_in
    }

    @functools.wraps(declared)
    def made(**options: Any) -> None:
        _run(name, options)

    parameters = [parameter.replace(kind=_KIND) for parameter in (asked | {**own}).values()]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


def _parameter(option: Option) -> inspect.Parameter:
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


def _run(name: str, options: dict[str, Any]) -> None:
    """Do the work of a command.

    Its module is imported only now: pandas and scikit-learn would slow the start and ``--help``.
    """
    from heckmanfa.cli.console import saying  # Rich would slow the start

    module = f"heckmanfa.cli.run_{name}"
    # `reproduce` has a progress bar of its own.
    with saying(quiet=bool(options.get("quiet")) or name == "reproduce") as say:
        say("loading")
        run = import_module(module).run
    run(**options)

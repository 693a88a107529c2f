"""The work of ``heckmanfa table``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from heckmanfa.analysis import load_model
from heckmanfa.analysis.request import split_names
from heckmanfa.cli.commands import TableOptions
from heckmanfa.cli.console import saying, tell
from heckmanfa.data.files.outputs import outputs
from heckmanfa.errors import InputError
from heckmanfa.estimators.etable import etable
from heckmanfa.estimators.fitting import with_fit
from heckmanfa.results.etable import check_model_table
from heckmanfa.text.option_types import Under
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import true_minus

_NOTHING = "none"


def run(options: TableOptions) -> None:
    """Read the models, write the table if it has a file, and print it."""
    out = options.out
    if out is not None:
        check_model_table(out)
    under: Any = None if options.under == _NOTHING else options.under
    if under is not None and under not in get_args(Under):
        kinds = ", ".join(get_args(Under))
        raise InputError(f"--under must be {kinds} or {_NOTHING}; got {quoted(under)}")
    reads = {"MODELS": [str(path) for path in options.models]}
    with saying(), outputs({"--out": out}, reads, force=options.force) as places:
        table = etable(
            [_model(path) for path in options.models],
            names=split_names(options.names) or [path.stem for path in options.models],
            labels=options.labels,
            equations=split_names(options.equations) or None,
            keep=split_names(options.keep) or None,
            drop=split_names(options.drop),
            order=split_names(options.order),
            digits=options.digits,
            under=under,
            stars=_thresholds(options.stars),
            conf_level=options.conf_level,
        )
        if out is not None:
            with places["--out"].writing() as place:
                table.save(place, force=True)
    tell(true_minus(str(table)))
    if out is not None:
        tell(f"written to {shown(out)}")


def _model(path: Path) -> Any:
    """Return a saved model, which knows the name of its outcome if its file does."""
    saved = load_model(path)
    outcome, fit = saved.about.get("outcome"), getattr(saved.model, "fit_", None)
    if fit is None or outcome is None or fit.origin.outcome is not None:
        return saved.model
    return with_fit(saved.model, replace(fit, origin=replace(fit.origin, outcome=str(outcome))))


def _thresholds(stars: str | None) -> list[float]:
    """Return what p-values with one star, two, ... are below."""
    try:
        return [float(most) for most in (stars or "").split(",") if most.strip()]
    except ValueError as error:
        raise InputError(
            f"--stars must be p-values such as 0.05,0.01; got {quoted(stars)}"
        ) from error

"""``heckmanfa demo``: from Mroz's table to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heckmanfa.cli.common import dispatch
from heckmanfa.cli.options import Force

FEATURES = (
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
)


def demo(
    folder: Annotated[Path, typer.Argument(help="Where to write mroz.csv and mroz.html.")] = Path(
        "heckmanfa-demo"
    ),
    force: Force = False,
) -> None:
    """Write Mroz's table of 753 women, fit it, and write the report.

    Example: heckmanfa demo
    """
    dispatch("demo", locals())

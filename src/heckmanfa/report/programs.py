"""The same model in Python, R and Stata: code that gives the numbers of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.survey import Survey
from heckmanfa.fit import Fit
from heckmanfa.report.plain_model import Reading, Roles, plain_model
from heckmanfa.report.r_code import r_code
from heckmanfa.report.stata_code import stata_code
from heckmanfa.results.document import CodeTabs

_LINE = 88


@dataclass(frozen=True)
class Programs:
    """Code in three languages. R and Stata may say instead why they cannot give the numbers."""

    python: str
    r: str
    stata: str

    def tabs(self) -> CodeTabs:
        """Return them as tabs of a page."""
        titles = {"Python": self.python, "R": self.r, "Stata": self.stata}
        return CodeTabs("The same in", tuple(titles.items()))


def programs_of(
    fit: Fit, encoding: Encoding, roles: Roles, reading: Reading | None, python: str
) -> Programs:
    """Return the code of a fit.

    Parameters
    ----------
    fit : Fit
    encoding : Encoding
        How the columns of the table became those of the model.
    roles : Roles
    reading : Reading, optional
        The file of the table; None if there is none, and one with the columns that are used is to
        be saved first.
    python : str
        The code in Python.
    """
    model = plain_model(fit, encoding, roles)
    if isinstance(model, str):
        return Programs(python, f"# {model}", f"* {model}")
    if reading is None:
        reading = Reading(
            "table.csv",
            tuple(model.used),
            first="First save the table as a plain CSV file, table.csv, with a header and points "
            "as decimal marks.",
        )
    return Programs(python, r_code(model, reading), stata_code(model, reading))


def call(function: str, *values: str, **options: str) -> str:
    """Write a call in Python: on one line if it is short, else with a line for each option."""
    items = [*values, *(f"{name}={value}" for name, value in options.items())]
    one = f"{function}({', '.join(items)})"
    if len(one) <= _LINE - 12:
        return one
    return "\n".join([f"{function}(", *(f"    {item}," for item in items), ")"])


def literal(value: Any) -> str | None:
    """Write a plain value as Python reads it; None if it is not plain."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float | str | Survey):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        known = [f"{key}: {item}" for key, item in pairs if key is not None and item is not None]
        return f"{{{', '.join(known)}}}" if len(known) == len(pairs) else None
    if isinstance(value, list | tuple):
        items = [literal(item) for item in value]
        known = [item for item in items if item is not None]
        return f"[{', '.join(known)}]" if len(known) == len(items) else None
    return None

"""Parameters of the errors: their names, their bounds, and the scales they are estimated on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Transform:
    """A scale without bounds on which a parameter is estimated."""

    to: Callable[[float], float]
    back: Callable[..., Any]
    slope: Callable[[float], float]
    """derivative of the parameter in its transform, at a value of the parameter"""
    name: str = ""
    """before that of the parameter"""


def _slope_of_tanh(rho: float) -> float:
    return 1.0 - rho**2


ATANH = Transform(np.arctanh, np.tanh, _slope_of_tanh, "atanh")
LOG = Transform(np.log, np.exp, float, "log")


@dataclass(frozen=True)
class ErrorTerm:
    """A parameter of the errors, as tables show it."""

    name: str
    lowest: float = -np.inf
    highest: float = np.inf
    transform: Transform | None = None
    """the scale on which the likelihood has it"""
    tested: bool = True
    """whether anyone tests that it is zero"""
    in_units: bool = False
    """whether it is a scale, in units of the outcome"""

    @property
    def is_correlation(self) -> bool:
        """Whether it is a correlation, estimated as its atanh."""
        return self.transform == ATANH

    def back(self, transformed: float) -> float:
        """Return its value, given that on the scale of the likelihood."""
        return transformed if self.transform is None else float(self.transform.back(transformed))

    def slope(self, value: float) -> float:
        """Return its derivative in its transform, at a value."""
        return 1.0 if self.transform is None else self.transform.slope(value)


IMR = ErrorTerm("imr")
RHO = ErrorTerm("rho", -1.0, 1.0, ATANH)
SIGMA = ErrorTerm("sigma", 0.0, transform=LOG, tested=False, in_units=True)


def single_correlation(terms: Iterable[ErrorTerm]) -> str | None:
    """Return the name of the one correlation; None if there are several or none."""
    names = [term.name for term in terms if term.is_correlation]
    return names[0] if len(names) == 1 else None

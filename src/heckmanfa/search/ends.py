"""The last estimates of a form: the correction, what follows it, and what tables show of them.

After two steps they are beta_H and log s of each regime, with sigma^2 = s^2 + beta_H^2 times the
mean of delta. In a likelihood they are the error terms on the scales on which it has them, the
correlations first. Those of a series are its coefficients, its constant last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.error_terms import ATANH, LOG, RHO, SIGMA, ErrorTerm, Transform
from heckmanfa.model.student_problem import DF
from heckmanfa.model.two_step import LARGEST_RHO

# How far the log scale of an assignment may lie from that of the model of everything.
_REACH = 20.0
# How far a parameter may that is a root's inverse, as a factor.
_FACTOR = 10.0

Errors = Literal["two-step", "likelihood", "binary", "series"]
"""what the last estimates of a form are: those of two steps, of a likelihood, of one whose scale is
known, as that of classes is, or of a series"""
_SHOWN: dict[Errors, tuple[str, ...]] = {
    "two-step": ("imr", "rho", "sigma"),
    "likelihood": ("imr", "rho", "sigma"),
}
# A form knows error terms by name, as files keep it; a name says the scale, and others have none.
_TERMS = {"rho": RHO, "sigma": SIGMA, "step": ErrorTerm("step", transform=LOG), "df": DF}


def transform_of(name: str) -> Transform | None:
    """Return the scale on which a likelihood has an error term; None is its own."""
    term = _TERMS.get(name.rstrip("0123456789"))
    return None if term is None else term.transform


def _suffix(name: str, of: str) -> str | None:
    """Return the regime of an error term such as ``rho1``; None if it is not one of these."""
    rest = name.removeprefix(of)
    return rest if name.startswith(of) and (not rest or rest.isdigit()) else None


@dataclass(frozen=True, eq=False)
class Ends:
    """What the last estimates are, and how tables follow from them."""

    errors: Errors
    shown: tuple[str, ...]
    """error terms that tables have"""
    mean_deltas: tuple[float, ...]
    """mean of delta in each regime, after two steps"""
    known_sigma: float | None
    own: Floats
    """(e,) those of the model of everything"""

    @classmethod
    def of(
        cls,
        errors: Errors,
        shown: tuple[str, ...],
        mean_deltas: tuple[float, ...],
        known_sigma: float | None,
        last: Floats,
    ) -> Ends:
        """Return the ends; without ``shown``, those of a single outcome equation."""
        usual = _SHOWN.get(errors, ("rho",) if known_sigma is None else ("imr", "rho"))
        return cls(errors, shown or usual, mean_deltas, known_sigma, last)

    @cached_property
    def regimes(self) -> tuple[str, ...]:
        """What ends the names of each regime's error terms."""
        of = "imr" if self.errors == "two-step" else "rho"
        found = [_suffix(name, of) for name in self.shown]
        return tuple(suffix for suffix in found if suffix is not None)

    @cached_property
    def correction(self) -> tuple[str, ...]:
        """Names of the parameters of the correction, which come and go together."""
        if self.errors == "series":
            return self.shown[1:]
        of = "imr" if self.errors == "two-step" else "rho"
        return tuple(f"{of}{suffix}" for suffix in self.regimes)

    @cached_property
    def others(self) -> tuple[str, ...]:
        """Names of the parameters that follow the correction, in every assignment."""
        if self.errors == "two-step":
            return tuple(f"sigma{suffix}" for suffix in self.regimes)
        held = {*self.correction, *(f"imr{suffix}" for suffix in self.regimes)}
        return tuple(name for name in self.shown if name not in held)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the last estimates."""
        return (*self.correction, *self.others)

    @cached_property
    def averaged(self) -> tuple[str, ...]:
        """Error terms of which averages are made: all but those that follow from others."""
        if self.errors == "two-step":
            return tuple(f"{name}{suffix}" for suffix in self.regimes for name in ("rho", "sigma"))
        return tuple(name for name in self.shown if _suffix(name, "imr") is None)

    def reached(self, last: Floats) -> Floats:
        """Keep what follows the correction finite where nothing identifies the correction."""
        kept = np.array(last, dtype=np.float64)
        first = len(self.correction)
        for place, name in enumerate(self.others, first):
            own, transform = self.own[place], transform_of(name)
            if self.errors == "two-step" or transform == LOG:
                kept[..., place] = np.clip(kept[..., place], own - _REACH, own + _REACH)
            elif transform == DF.transform:
                ends = own / _FACTOR, own * _FACTOR
                kept[..., place] = np.clip(kept[..., place], *ends)
        return kept

    def values(self, last: Floats) -> dict[str, Floats]:
        """Return all error terms by name, (...,), given the last estimates (..., e)."""
        at = dict(zip(self.names, np.moveaxis(self.reached(last), -1, 0), strict=True))
        if self.errors == "two-step":
            values = {name: at[name] for name in self.correction}
            for suffix, delta in zip(self.regimes, self.mean_deltas, strict=True):
                imr = at[f"imr{suffix}"]
                sigma = np.sqrt(np.exp(2.0 * at[f"sigma{suffix}"]) + delta * imr**2)
                with np.errstate(divide="ignore", invalid="ignore"):
                    values[f"rho{suffix}"] = np.asarray(imr / sigma)
                values[f"sigma{suffix}"] = sigma
            return values
        values = {}
        for name, value in at.items():
            transform = transform_of(name)
            values[name] = value if transform is None else np.asarray(transform.back(value))
        for suffix in self.regimes:
            sigma = values.get(f"sigma{suffix}", np.asarray(self.known_sigma or 1.0))
            values[f"imr{suffix}"] = np.asarray(values[f"rho{suffix}"] * sigma)
        return values

    def shown_at(self, last: Floats) -> Floats:
        """Return what tables show, (..., E), given the last estimates, (..., e)."""
        values = self.values(last)
        if not self.shown:
            return np.zeros((*last.shape[:-1], 0))
        return np.stack([values[name] for name in self.shown], axis=-1)

    def slopes_at(self, last: Floats) -> Floats:
        """Return derivatives of what tables show in the last estimates, (..., E, e)."""
        values, names = self.values(last), self.names
        slopes = {name: np.zeros(last.shape) for name in values}
        if self.errors == "two-step":
            reached = self.reached(last)
            for suffix, delta in zip(self.regimes, self.mean_deltas, strict=True):
                names_of = f"imr{suffix}", f"rho{suffix}", f"sigma{suffix}"
                imr, rho, sigma = (slopes[name] for name in names_of)
                first, scale = names.index(names_of[0]), names.index(names_of[2])
                correction, spread = values[names_of[0]], values[names_of[2]]
                rest = np.exp(2.0 * reached[..., scale]) / spread
                imr[..., first] = 1.0
                rho[..., first] = rest / spread**2
                rho[..., scale] = -correction * rest / spread**2
                sigma[..., first], sigma[..., scale] = delta * correction / spread, rest
        else:
            for place, name in enumerate(names):
                slopes[name][..., place] = _slope(name, values[name])
            for suffix in self.regimes:
                rho, own = values[f"rho{suffix}"], slopes[f"imr{suffix}"]
                sigma = values.get(f"sigma{suffix}", np.asarray(self.known_sigma or 1.0))
                own += sigma[..., None] * slopes[f"rho{suffix}"]
                if f"sigma{suffix}" in slopes:
                    own += rho[..., None] * slopes[f"sigma{suffix}"]
        if not self.shown:
            return np.zeros((*last.shape[:-1], 0, len(names)))
        return np.stack([slopes[name] for name in self.shown], axis=-2)

    def to_average(self, values: dict[str, Floats]) -> list[Floats]:
        """Return what means are taken of, for each of `averaged`.

        Degrees of freedom may be infinite, so theirs is that of their root's inverse.
        """
        return [
            np.asarray(1.0 / np.sqrt(values[name])) if name == DF.name else values[name]
            for name in self.averaged
        ]

    def from_means(self, means: Floats) -> dict[str, float]:
        """Return error terms by name, given the means of `to_average`."""
        found = dict(zip(self.averaged, map(float, means), strict=True))
        return {name: DF.back(mean) if name == DF.name else mean for name, mean in found.items()}

    def correlations(self, values: dict[str, Floats]) -> list[Floats]:
        """Return the correlations among error terms."""
        return [values[f"rho{suffix}"] for suffix in self.regimes]

    def holds_at(self, values: dict[str, Floats]) -> Mask:
        """Whether the form of a likelihood holds for assignments with these error terms.

        Near the bounds of rho it does not, unless the model of everything lies there. That of two
        steps is a regression's, which has no bounds.
        """
        holds = np.ones(np.shape(next(iter(values.values()))), dtype=bool)
        if self.errors not in ("likelihood", "binary"):
            return holds
        for place, rho in enumerate(self.correlations(values)):
            own = abs(np.tanh(self.own[place]))
            holds &= np.abs(rho) <= max(LARGEST_RHO, own * (1.0 + 1e-12))
        return holds

    def misfits(self, values: dict[str, Floats]) -> Mask:
        """Whether some rho is no correlation, or the form does not hold there."""
        misfits = ~self.holds_at(values)
        for rho in self.correlations(values):
            misfits |= np.abs(rho) >= 1.0
        return misfits


def _slope(name: str, value: Floats) -> Floats:
    """Return the derivative of an error term in its transform; zero where it is infinite."""
    transform = transform_of(name)
    if transform is None:
        return np.ones_like(value)
    if transform == ATANH:
        return np.asarray(1.0 - value**2)
    if transform == LOG:
        return value
    finite = np.isfinite(value)
    return np.where(finite, -2.0 * np.where(finite, value, 1.0) ** 1.5, 0.0)

"""What a reproduction is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Options"]


def _silent(what: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Options:
    """How much to run."""

    quick: bool = False
    """only what is deterministic"""
    as_published: bool = False
    """imitate the published run's underflow of lambda and lost sign"""
    seeds: int = 5
    """runs of whatever depends on a seed"""
    splits: int = 20
    """random splits, beyond the paper"""
    ru: bool = True
    """whether to run Rockafellar-Uryasev regression, which needs Torch"""
    say: Callable[[str], None] = _silent
    """is told what is being run"""

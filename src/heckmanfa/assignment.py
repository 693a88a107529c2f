"""The assignment function and its training, for people who train it themselves."""

from __future__ import annotations

from heckmanfa.search.training.assignment_function import (
    Trained,
    assign,
    relaxation,
    relaxation_slope,
    train,
)
from heckmanfa.search.training.gradient import psi_gradient

__all__ = ["Trained", "assign", "psi_gradient", "relaxation", "relaxation_slope", "train"]

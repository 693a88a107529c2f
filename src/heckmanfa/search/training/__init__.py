"""The assignment function and its training, for people who train it themselves.

``from heckmanfa import assignment`` gives this package. Training runs on the device that holds the
rows: `gradient` gathers the rows that epochs read and has the gradient of an assignment's loss;
`gpu` repeats steps without waiting, and reads a GPU's rows once per epoch.
"""

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

"""Data to try a selection model on: one bundled set, and a simulator that knows the truth."""

from __future__ import annotations

from heckmanfa.datasets._mroz import load_mroz
from heckmanfa.datasets._simulate import Selection, make_selection

__all__ = ["Selection", "load_mroz", "make_selection"]

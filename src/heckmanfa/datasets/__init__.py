"""Data to try a selection model on: bundled, simulated with a known truth, and the paper's."""

from __future__ import annotations

from heckmanfa.datasets.mroz import load_mroz
from heckmanfa.datasets.paper_data import PaperData, fetch_compas, fetch_crime
from heckmanfa.datasets.simulation import Selection, make_selection

__all__ = [
    "PaperData",
    "Selection",
    "fetch_compas",
    "fetch_crime",
    "load_mroz",
    "make_selection",
]

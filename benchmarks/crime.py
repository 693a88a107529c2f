"""Data for the search benchmarks: CRIME with the paper's protocol, or simulated at its size."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import ROOT
from heckmanfa.datasets import fetch_crime, make_selection
from heckmanfa.datasets.paper_data import crime_frame

Floats = NDArray[np.float64]

FILE = "communities.data"
N_ROWS, N_PAPER = 1_395, 26
"""training rows, and the paper's number of features"""
N_PREDICTING = 12
# Near the middle of the paper's window for rho, so a search within it finds something.
RHO, STRENGTH, SEED = 0.05, 2.0, 0


@dataclass(frozen=True)
class Data:
    """Features standardised by the selected rows, and an outcome that is NaN in the others."""

    X: Floats
    """(n, K)"""
    y: Floats
    """(n,)"""


def folder() -> Path | None:
    """Return the folder of CRIME's file, or None if it is not found."""
    for path in (os.environ.get("HECKMANFA_DATA"), ROOT.parent / "shared" / "data"):
        if path is not None and (Path(path) / FILE).exists():
            return Path(path)
    return None


def load(n_features: int, simulate: bool) -> Data:
    """K columns of CRIME, or simulated data of that size."""
    source = None if simulate else folder()
    X, y = _simulated(n_features) if source is None else _crime(source, n_features)
    seen = X[~np.isnan(y)]
    return Data((X - seen.mean(axis=0)) / seen.std(axis=0), y)


def _simulated(n_features: int) -> tuple[Floats, Floats]:
    data = make_selection(
        N_ROWS,
        n_features,
        N_PREDICTING,
        rho=RHO,
        selection_rate=0.7,
        strength=STRENGTH,
        correlation=0.3,
        random_state=SEED,
    )
    return data.X, data.y


def _crime(source: Path, n_features: int) -> tuple[Floats, Floats]:
    """The paper's 26 features first, then population and the columns that follow in the file."""
    os.environ["HECKMANFA_DATA"] = str(source)
    # The key that decides whose outcome is hidden is not a feature.
    features = crime_frame().drop(columns=["NumUnderPov", "ViolentCrimesPerPop"]).iloc[:N_ROWS]
    population, *others = features.columns
    names = [*others[:N_PAPER], population, *others[N_PAPER:]][:n_features]
    return features[names].to_numpy(float), fetch_crime().y

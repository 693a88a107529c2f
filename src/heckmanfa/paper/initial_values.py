"""Table testingmsespi0: test errors of Heckman-FA over the epochs T and the start c."""

from __future__ import annotations

import numpy as np
import pandas as pd

from heckmanfa.paper._features import searched
from heckmanfa.paper.protocol import COMPAS, CRIME, Experiment
from heckmanfa.paper.request import Options
from heckmanfa.paper.table_rows import Table, between

__all__ = ["initial_values"]

_EPOCHS = (100, 500, 1000, 2000)
_PRINTED = {
    "CRIME": {
        0.25: (0.0205, 0.0210, 0.0209, 0.0211),
        0.5: (0.0211, 0.0214, 0.0211, 0.0207),
        0.75: (0.0217, 0.0216, 0.0212, 0.0208),
    },
    "COMPAS": {
        0.25: (0.2514, 0.2506, 0.2530, 0.2507),
        0.5: (0.2502, 0.2505, 0.2502, 0.2502),
        0.75: (0.2502, 0.2502, 0.2506, 0.2502),
    },
}


def initial_values(options: Options | None = None) -> pd.DataFrame:
    """Reproduce Table testingmsespi0.

    Parameters
    ----------
    options : Options, optional

    Returns
    -------
    DataFrame
        Means over seeds and the standard deviation between them; the paper has one run.
    """
    options = Options() if options is None else options
    table = Table()
    if options.quick:
        return table.frame()
    for experiment in (CRIME, COMPAS):
        for start, values in _PRINTED[experiment.name].items():
            for epochs, printed in zip(_EPOCHS, values, strict=True):
                add_errors(
                    table,
                    experiment,
                    f"c = {start}, T = {epochs}",
                    printed,
                    options,
                    init_prob=start,
                    epochs=epochs,
                )
    return table.frame()


def add_errors(
    table: Table,
    experiment: Experiment,
    row: str,
    printed: float | None,
    options: Options,
    **settings: float,
) -> None:
    """Add the mean test error of searches over seeds."""
    found = searched(experiment, options, "sample", row, **settings)
    errors, marginal = [one.test for one in found], [one.test_marginal for one in found]
    table.random(
        experiment.name,
        row,
        "test MSE",
        float(np.mean(errors)) if errors else float("nan"),
        printed,
        spread=between(errors),
        note=f"{len(errors)} of {options.seeds} seeds have an assignment in the window",
    )
    table.beyond(
        experiment.name,
        row,
        "marginal test MSE",
        float(np.mean(marginal)) if marginal else float("nan"),
        spread=between(marginal),
    )

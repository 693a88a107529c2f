"""Table executiontimes: seconds and test errors of Heckman-FA over T and B."""

from __future__ import annotations

import time

import pandas as pd

from heckmanfa.paper.initial_values import add_errors
from heckmanfa.paper.protocol import COMPAS, CRIME
from heckmanfa.paper.request import Options
from heckmanfa.paper.table_rows import Table

__all__ = ["execution_times"]

_EPOCHS = (100, 500, 1000)
_PRINTED = {
    "CRIME": {
        100: ((5.32, 17.67, 29.33), (0.0209, 0.0206, 0.0210)),
        500: ((16.02, 26.06, 44.23), (0.0213, 0.0210, 0.0209)),
        1000: ((37.84, 56.87, 75.28), (0.0212, 0.0206, 0.0209)),
    },
    "COMPAS": {
        100: ((7.70, 21.30, 39.32), (0.2503, 0.2502, 0.2505)),
        500: ((22.16, 37.39, 54.05), (0.2506, 0.2506, 0.2503)),
        1000: ((49.72, 70.46, 97.64), (0.2502, 0.2506, 0.2502)),
    },
}


def execution_times(options: Options | None = None) -> pd.DataFrame:
    """Reproduce Table executiontimes.

    Parameters
    ----------
    options : Options, optional

    Returns
    -------
    DataFrame
        Seconds of one search here beside the printed ones (of another machine, with a GPU), and
        mean test errors over seeds.
    """
    options = Options() if options is None else options
    table = Table()
    if options.quick:
        return table.frame()
    for experiment in (CRIME, COMPAS):
        for draws, (seconds, errors) in _PRINTED[experiment.name].items():
            for place, epochs in enumerate(_EPOCHS):
                row = f"B = {draws}, T = {epochs}"
                start = time.perf_counter()
                add_errors(
                    table,
                    experiment,
                    row,
                    errors[place],
                    options,
                    epochs=epochs,
                    n_draws=draws,
                )
                taken = (time.perf_counter() - start) / options.seeds
                table.timed(experiment.name, row, "seconds", taken, seconds[place])
    return table.frame()

"""One fit in a fresh interpreter: how long it takes and how much memory beyond the data.

`benchmarks.run` starts this module as a process of its own for every single measurement, since
what an earlier fit left in the allocator would make the next one look cheaper. It prints one line
of JSON.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# First fits load modules on demand and start thread pools; that is no part of a fit.
WARM_UP_ROWS = 500


class Data(NamedTuple):
    X: Floats
    y: Floats
    n_prediction: int
    """the first so many features predict; all of them select"""


class Estimates(NamedTuple):
    values: list[float]
    """prediction equation: intercept, coefficients, then the inverse Mills ratio's (of a binary
    outcome: rho)"""
    std_errors: list[float] | None
    """None where the program gives none that allow for the first step"""


def heckmanfa_two_step(data: Data) -> Callable[[], Estimates]:
    return _heckmanfa(data, "two-step")


def heckmanfa_ml(data: Data) -> Callable[[], Estimates]:
    return _heckmanfa(data, "ml")


def _heckmanfa(data: Data, method: str) -> Callable[[], Estimates]:
    from heckmanfa import Heckman

    def fit() -> Estimates:
        model = Heckman(range(data.n_prediction), method=method).fit(data.X, data.y)
        return _told(model.tidy(), data, "imr")

    return fit


def _told(table: Any, data: Data, last: str) -> Estimates:
    """Pick the prediction equation and one term of the errors from a tidy table."""
    terms = list(zip(table["equation"], table["term"], strict=True))
    rows = [*range(data.n_prediction + 1), terms.index(("errors", last))]
    values, errors = table["estimate"].tolist(), table["std_error"].tolist()
    return Estimates([values[row] for row in rows], [errors[row] for row in rows])


def heckmanfa_probit(data: Data) -> Callable[[], Estimates]:
    from heckmanfa import HeckmanProbit

    def fit() -> Estimates:
        model = HeckmanProbit(range(data.n_prediction)).fit(data.X, data.y)
        return _told(model.tidy(), data, "rho")

    return fit


def statsmodels_two_step(data: Data) -> Callable[[], Estimates]:
    import statsmodels.api as sm
    from scipy.stats import norm

    selected = ~np.isnan(data.y)

    def fit() -> Estimates:
        Z = sm.add_constant(data.X)
        index = Z @ sm.Probit(selected.astype(float), Z).fit(disp=0).params
        ratio = norm.pdf(index[selected]) / norm.cdf(index[selected])
        W = np.column_stack([Z[selected][:, : data.n_prediction + 1], ratio])
        fitted = sm.OLS(data.y[selected], W).fit()
        # Its standard errors treat the inverse Mills ratio as data, so they are left out.
        return Estimates(fitted.params.tolist(), None)

    return fit


def statspai_two_step(data: Data) -> Callable[[], Estimates]:
    return _statspai(data, "twostep")


def statspai_ml(data: Data) -> Callable[[], Estimates]:
    return _statspai(data, "mle")


def _frame(data: Data) -> tuple[Any, list[str], list[str]]:
    """The data frame that StatsPAI asks for, the features that predict, and all features."""
    import pandas as pd

    names = [f"x{position}" for position in range(data.X.shape[1])]
    selected = (~np.isnan(data.y)).astype(int)
    frame = pd.DataFrame(data.X.copy(), columns=names).assign(y=data.y, selected=selected)
    return frame, names[: data.n_prediction], names


def _statspai(data: Data, method: str) -> Callable[[], Estimates]:
    import statspai

    frame, predicting, names = _frame(data)
    last = "lambda (IMR)" if method == "twostep" else "lambda"

    def fit() -> Estimates:
        result = statspai.heckman(
            frame, y="y", x=predicting, select="selected", z=names, method=method
        )
        rows = ["const", *predicting, last]
        return Estimates(result.params[rows].tolist(), result.std_errors.reindex(rows).tolist())

    return fit


def statspai_probit(data: Data) -> Callable[[], Estimates]:
    import statspai

    frame, predicting, names = _frame(data)

    def fit() -> Estimates:
        result = statspai.heckprobit(frame, y="y", x=predicting, select="selected", z=names)
        rows = ["const", *predicting, "rho"]
        return Estimates(result.params[rows].tolist(), result.std_errors.reindex(rows).tolist())

    return fit


PROGRAMS: dict[str, Callable[[Data], Callable[[], Estimates]]] = {
    "heckmanfa two-step": heckmanfa_two_step,
    "heckmanfa ML": heckmanfa_ml,
    "statsmodels two-step": statsmodels_two_step,
    "StatsPAI two-step": statspai_two_step,
    "StatsPAI ML": statspai_ml,
    "heckmanfa probit": heckmanfa_probit,
    "StatsPAI probit": statspai_probit,
}


def _trim() -> None:
    """Give memory that was freed back to the system, or reusing it would not be seen."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        # Another C library than glibc: a little of the peak may then be missed.
        return


def _forget_peak() -> bool:
    """Set the peak of resident memory to what is resident now; False where that cannot be."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _resident(key: str) -> int:
    """VmRSS (now) or VmHWM (peak) in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return 1024 * int(line.split()[1])
    raise ValueError(f"/proc/self/status has no {key}")


def measure(program: str, data: Data) -> dict[str, Any]:
    """Fit once; report both kinds of seconds, extra bytes at the peak (or None), estimates."""
    make = PROGRAMS[program]
    make(Data(data.X[:WARM_UP_ROWS], data.y[:WARM_UP_ROWS], data.n_prediction))()
    fit = make(data)
    _trim()
    can_see = _forget_peak()
    before = _resident("VmRSS") if can_see else 0
    start, cpu_start = time.perf_counter(), time.process_time()
    estimates = fit()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    extra = _resident("VmHWM") - before if can_see else None
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "extra_bytes": extra,
        **estimates._asdict(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("folder", type=Path, help="holds X.npy and y.npy")
    parser.add_argument("n_prediction", type=int)
    arguments = parser.parse_args()
    X, y = np.load(arguments.folder / "X.npy"), np.load(arguments.folder / "y.npy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure(arguments.program, Data(X, y, arguments.n_prediction))
    print(json.dumps(found))


if __name__ == "__main__":
    main()

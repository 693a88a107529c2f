"""Two-step, training and the Heckman probit on a graphics card, and the same on the processor.

Needs a CUDA card, and of installed packages Torch, SciPy, scikit-learn and pandas alone: with
`python -m benchmarks.gpu_bundle FOLDER` everything else goes into a folder that can be taken to a
machine without a network, where

    PYTHONPATH=FOLDER python -m benchmarks.gpu --out figures.md

measures and writes the table of docs/how_far.md. The other program is plain Torch on the same
card in the same run: two matrix-vector products an epoch, which is what an epoch reads and
multiplies at the least without a kernel of its own. ``--probit`` measures the Heckman probit alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

EPOCHS = 4000
TRAIN_SELECTED, TRAIN_FEATURES, MOST_TRAINING = 10_000_000, 100, 10.0
FIT_ROWS, FIT_FEATURES, MOST_FIT = 20_000_000, 50, 3.0
PROBIT_ROWS, PROBIT_FEATURES = 10_000_000, 50


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def _made(n: int, k: int, dtype: Any, selected_first: bool = False) -> tuple[Any, Any]:
    """Features and an outcome that half of the rows miss, on the card."""
    import torch

    source = torch.Generator("cuda").manual_seed(0)
    X = torch.empty(n, k, dtype=dtype, device="cuda").normal_(generator=source)
    slopes = torch.linspace(-0.3, 0.3, k, dtype=dtype, device="cuda")
    u = torch.empty(n, dtype=dtype, device="cuda").normal_(generator=source)
    e = 0.5 * u + 0.75**0.5 * torch.empty_like(u).normal_(generator=source)
    index = X @ slopes
    if selected_first:
        # Exactly half are selected, so training has exactly that many rows.
        cut = torch.quantile((index + u)[: 2**24].double()[::7], 0.5).to(dtype)
        order = index + u - cut
        X = X[torch.argsort(order, descending=True)]
        y = X[:, : k // 2].sum(dim=1) + e
        y[n // 2 :] = torch.nan
        return X, y
    y = X[:, : k // 2].sum(dim=1) + e
    y[index + u < 0] = torch.nan
    return X, y


def two_step(n: int, k: int, dtype_name: str, on_processor: bool) -> list[tuple[str, float]]:
    """Seconds of a fit, all checks among them."""
    import torch

    from heckmanfa import Heckman

    X, y = _made(n, k, getattr(torch, dtype_name))
    half = range(k // 2)
    Heckman(half).fit(X[: n // 20], y[: n // 20])
    seconds = [_timed(lambda: Heckman(half).fit(X, y))[0] for _ in range(3)]
    rows = [(f"two-step, {n:,} x {k}, {dtype_name}, card", min(seconds))]
    if on_processor:
        X, y = X.cpu().numpy(), y.cpu().numpy()
        rows.append(
            (
                f"two-step, {n:,} x {k}, {dtype_name}, processor",
                _timed(lambda: Heckman(half).fit(X, y))[0],
            )
        )
    return rows


def probit(n: int, k: int, on_processor: bool) -> list[tuple[str, float]]:
    """Seconds of a Heckman probit; and how far a tenth of the rows is from the processor's fit."""
    import torch

    from heckmanfa import HeckmanProbit

    X, y = _made(n, k, torch.float64)
    # The outcome's index has a standard deviation of one, beside an error of one.
    half = k // 2
    index = X[:, :half].sum(dim=1)
    noise = y - index
    y = torch.where(torch.isnan(noise), noise, (index / half**0.5 + noise > 0).to(torch.float64))
    del index, noise
    few = n // 10

    def fit(X: Any, y: Any) -> Any:
        return HeckmanProbit(range(half)).fit(X, y)

    fit(X[: n // 100], y[: n // 100])
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    seconds, model = _timed(lambda: fit(X, y))
    extra = (torch.cuda.max_memory_allocated() - held) / (8.0 * n * k)
    what = f"Heckman probit, {n:,} x {k}, float64"
    rows = [
        (f"{what}, card (rho {model.rho_:.4f}, {extra:.2f} of X beyond the data)", seconds),
        (f"Heckman probit, {few:,} x {k}, card", _timed(lambda: fit(X[:few], y[:few]))[0]),
    ]
    here = fit(X[:few], y[:few])
    on_host = X[:few].cpu().numpy(), y[:few].cpu().numpy()
    seconds, there = _timed(lambda: fit(*on_host))
    gap = float(np.max(np.abs(np.subtract(here.params_, there.params_))))
    rows.append((f"the same, processor (estimates differ by {gap:.1e} at most)", seconds))
    if on_processor:
        everything = X.cpu().numpy(), y.cpu().numpy()
        rows.append((f"{what}, processor", _timed(lambda: fit(*everything))[0]))
    return rows


def training(m: int, k: int, dtype_name: str, on_processor: bool) -> list[tuple[str, float]]:
    """Seconds of 4,000 epochs: as they are, by two products, plain Torch, on the processor."""
    import torch

    from heckmanfa import assignment, compress

    what = f"{EPOCHS:,} epochs, {m:,} x {k}, {dtype_name}"
    X, y = _made(2 * m, k, getattr(torch, dtype_name), selected_first=True)
    small = compress(X, y)
    assert round(small.moments.n_selected) == m

    def train(epochs: int, rows: Any = None) -> Any:
        return assignment.train(
            small.moments,
            small.rows if rows is None else rows,
            epochs=epochs,
            standardize=True,
            random_state=0,
        )

    train(5)
    rows = [(f"{what}, card", _timed(lambda: train(EPOCHS))[0])]
    with patch("heckmanfa.search.training.gradient.fused_pulls", lambda *given: None):
        few, more = (_timed(lambda count=count: train(count))[0] for count in (50, 450))
    rows.append((f"{what}, card without the kernel", few + (more - few) / 400 * (EPOCHS - 50)))
    contrast = torch.randn(k, dtype=X.dtype, device="cuda")
    part = X[:m]
    seconds, _ = _timed(lambda: [torch.sign(part @ contrast) @ part for _ in range(100)])
    rows.append((f"{what}, two products of plain Torch alone", seconds / 100 * EPOCHS))
    if on_processor:
        X, y = X.cpu().numpy(), y.cpu().numpy()
        del part
        host = compress(X, y)

        def on_host(epochs: int) -> Any:
            return assignment.train(
                host.moments, host.rows, epochs=epochs, standardize=True, random_state=0
            )

        few, more = (_timed(lambda count=count: on_host(count))[0] for count in (1, 4))
        rows.append((f"{what}, processor (from 3 epochs)", few + (more - few) / 3 * (EPOCHS - 1)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write the table")
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--no-processor", action="store_true", help="the card alone")
    parser.add_argument("--probit", action="store_true", help="the Heckman probit alone")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    size = 100 if given.small else 1
    beside = not given.no_processor
    rows = probit(PROBIT_ROWS // size, PROBIT_FEATURES, beside)
    print(*rows, sep="\n", flush=True)
    judged = [] if given.probit else _two_step_and_training(rows, size, beside)
    _tell(rows, judged, given.out)


def _two_step_and_training(rows: list[tuple[str, float]], size: int, beside: bool) -> list[str]:
    """Add the rows of both, and return the line of their targets."""
    import torch

    for n in (FIT_ROWS // 20, FIT_ROWS):
        torch.cuda.empty_cache()
        last = n == FIT_ROWS
        rows += two_step(n // size, FIT_FEATURES, "float64", beside and last)
        rows += two_step(n // size, FIT_FEATURES, "float32", False)
        print(*rows[-3:], sep="\n", flush=True)
    for m in (TRAIN_SELECTED // 10, TRAIN_SELECTED):
        torch.cuda.empty_cache()
        rows += training(m // size, TRAIN_FEATURES, "float32", beside and m == TRAIN_SELECTED)
        print(*rows[-4:], sep="\n", flush=True)
    torch.cuda.empty_cache()
    rows += training(TRAIN_SELECTED // 10 // size, TRAIN_FEATURES, "float64", False)
    fit = next(s for w, s in rows if w.startswith(f"two-step, {FIT_ROWS // size:,}"))
    train = next(s for w, s in rows if f"{TRAIN_SELECTED // size:,} x" in w and "epochs" in w)
    return [
        f"{'met' if fit <= MOST_FIT else 'NOT met'}: two-step at most {MOST_FIT:g} s: {fit:.2f} s. "
        f"{'Met' if train <= MOST_TRAINING else 'NOT met'}: training at most {MOST_TRAINING:g} s: "
        f"{train:.2f} s.",
        "",
    ]


def _tell(rows: list[tuple[str, float]], judged: list[str], out: Path | None) -> None:
    """Print the table, and write it to a page if one is given."""
    import torch

    lines = [
        "| what | seconds |",
        "| --- | ---: |",
        *(f"| {words} | {seconds:,.2f} |" for words, seconds in rows),
        "",
        *judged,
        f"{torch.cuda.get_device_name()}, {datetime.now(UTC):%Y-%m-%d}, Torch "
        f"{torch.__version__}, NumPy {np.__version__}, Python {platform.python_version()}; the "
        f"processor has {os.cpu_count()} cores.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if out is not None:
        out.write_text(text)


if __name__ == "__main__":
    main()

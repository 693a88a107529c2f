"""A process that runs cases, and tells the parent of each before and after."""

from __future__ import annotations

import resource
import shutil
import tempfile
import traceback
from pathlib import Path
from typing import Any

import fuzz.hostile  # noqa: F401  # its targets
from fuzz.cases import BrokenPromiseError, run_case

__all__ = ["MOST_MEMORY", "work"]

MOST_MEMORY = 2**30


def work(target: str, seeds: range, pipe: Any) -> None:
    """Run cases, and tell of each before and after."""
    for seed in seeds:
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        pipe.send(("start", seed))
        try:
            run_case(target, seed, folder)
        except BrokenPromiseError as error:
            pipe.send(("broken", f"{error}"))
        except BaseException:
            pipe.send(("broken", traceback.format_exc()))
        else:
            pipe.send(("fine", ""))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if used > MOST_MEMORY:
            pipe.send(("broken", f"used {used / 2**20:.0f} MB of memory"))
            return
    pipe.send(("done", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))

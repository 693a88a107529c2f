"""Rows of a reproduced table: our value, the printed one, and a word on the difference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Table", "between", "counted"]

COLUMNS = ["part", "dataset", "row", "quantity", "ours", "printed", "spread", "status", "note"]


def counted(number: int, what: str) -> str:
    """Say how many of something."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def between(values: Any) -> float | None:
    """Standard deviation between runs; None where there is but one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


@dataclass
class Table:
    """Collects the rows of one table.

    The status of a row: "match" and "OFF" for what is deterministic, to the printed digits;
    "differs" for what is known to differ, with the reason; "random" and "time" for what depends on
    seeds or machines; "beyond" for what the paper does not have.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)

    def exact(
        self,
        dataset: str,
        row: str,
        quantity: str,
        ours: float,
        printed: float | None,
        *,
        expected: float | None = None,
        digits: int = 4,
        note: str = "",
    ) -> None:
        """Add a value that must come out to its printed digits.

        ``expected`` is what it must be where the printed value is known to be something else.
        """
        target = printed if expected is None else expected
        right = target is None or round(ours, digits) == round(target, digits)
        if not right:
            status = "OFF"
        else:
            status = "match" if expected is None or expected == printed else "differs"
        self._add(dataset, row, quantity, ours, printed, None, status, note)

    def random(
        self,
        dataset: str,
        row: str,
        quantity: str,
        ours: float,
        printed: float | None,
        *,
        spread: float | None = None,
        note: str = "",
    ) -> None:
        """Add a value that depends on seeds, with the standard deviation between them."""
        self._add(dataset, row, quantity, ours, printed, spread, "random", note)

    def timed(self, dataset: str, row: str, quantity: str, ours: float, printed: float) -> None:
        """Add a time in seconds."""
        self._add(dataset, row, quantity, ours, printed, None, "time", "")

    def beyond(
        self,
        dataset: str,
        row: str,
        quantity: str,
        ours: float,
        *,
        spread: float | None = None,
        note: str = "",
    ) -> None:
        """Add a value that the paper does not have."""
        values = ("beyond", dataset, row, quantity, ours, None, spread, "beyond", note)
        self.rows.append(dict(zip(COLUMNS, values, strict=True)))

    def _add(
        self,
        dataset: str,
        row: str,
        quantity: str,
        ours: float,
        printed: float | None,
        spread: float | None,
        status: str,
        note: str,
    ) -> None:
        values = ("paper", dataset, row, quantity, ours, printed, spread, status, note)
        self.rows.append(dict(zip(COLUMNS, values, strict=True)))

    def frame(self) -> pd.DataFrame:
        """Return the rows as a tidy data frame."""
        frame = pd.DataFrame(self.rows, columns=COLUMNS)
        for name in ("ours", "printed", "spread"):
            frame[name] = pd.to_numeric(frame[name])
        return frame

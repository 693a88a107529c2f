"""What is to be predicted of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONF_LEVEL = 0.95


@dataclass(frozen=True)
class Request:
    """What to predict; the parameters are those of `heckmanfa.predict_parquet`."""

    kind: str = "marginal"
    interval: str | None = None
    scale: str = "response"
    conf_level: float = CONF_LEVEL
    unknown: str | None = None
    extrapolation: bool = False
    regime: int | None = None
    given: int | None = None

    @property
    def rule(self) -> dict[str, Any]:
        """How to treat unknown levels, as a parameter of models; empty leaves it to them."""
        return {} if self.unknown is None else {"unknown": self.unknown}

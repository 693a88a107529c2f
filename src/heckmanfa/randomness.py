"""Random numbers: what a user may pass as ``random_state``."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["generator"]


def generator(random_state: Any) -> np.random.Generator:
    """Turn None, a seed, a Generator or a RandomState into a Generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)

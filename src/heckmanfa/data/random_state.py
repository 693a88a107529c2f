"""Random numbers: what a user may pass as ``random_state``."""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option


def generator(random_state: Any) -> np.random.Generator:
    """Turn None, a seed, a Generator or a RandomState into a Generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{option('random_state')} must be None, a seed of at least 0 or a random generator; "
            f"got {random_state!r}"
        ) from error

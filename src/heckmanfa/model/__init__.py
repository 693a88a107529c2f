"""The mathematics of the model: functions over blocks of rows and small matrices."""

from __future__ import annotations

from heckmanfa.model.moments import Moments, Solutions

__all__ = ["Moments", "Solutions"]

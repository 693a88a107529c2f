"""Figures of docs/averaging_study.md: from draws to rates, coverage and regrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def file_name(design: str) -> str:
    """Return the name of the file that holds the draws of a design."""
    return "_".join(design.replace(".", "p").split()) + ".jsonl"


def read_draws(folder: Path, design: str) -> list[dict[str, Any]]:
    """Read the draws of a design, in order."""
    path = folder / file_name(design)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return sorted((json.loads(line) for line in lines), key=lambda record: record["draw"])

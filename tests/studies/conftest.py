"""What studies share: the page that their figures go to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- figures: made by `make study` -->", "<!-- end of figures -->"


def write(page: Path, text: str) -> None:
    """Replace the figures of a page and leave its other words alone."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


@pytest.fixture(scope="session")
def publish() -> Callable[[str, str], None]:
    """Print the figures of a page, and put them into it where that is asked for."""

    def show(page: str, text: str) -> None:
        print("\n" + text)
        if os.environ.get("HECKMANFA_WRITE_DOCS") == "1":
            write(DOCS / page, text)

    return show

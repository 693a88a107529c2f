"""What studies share: the page that their figures go to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- figures{}: made by `make study` -->", "<!-- end of figures -->"


def write(page: Path, text: str, part: str = "") -> None:
    """Replace the figures of a page, or of one part of it, and leave its other text alone."""
    begin = BEGIN.format(f" of {part}" if part else "")
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    assert found, f"{page.name} has no place for figures: {begin}"
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{begin}\n\n{text}\n{END}{after}", encoding="utf-8")


@pytest.fixture(scope="session")
def publish() -> Callable[..., None]:
    """Print the figures of a page, and write them to it if HECKMANFA_WRITE_DOCS is 1."""

    def show(page: str, text: str, part: str = "") -> None:
        # Parts of a page may each bring the blank line between them.
        text = re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
        print("\n" + text)
        if os.environ.get("HECKMANFA_WRITE_DOCS") == "1":
            write(DOCS / page, text, part)

    return show

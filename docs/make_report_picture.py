"""Draw docs/img/report.png, the README's picture of a report.

    python docs/make_report_picture.py

Needs Playwright and Chromium, as the report's tests do.
"""

from __future__ import annotations

import shutil
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from heckmanfa.analysis import Question, analyse
from heckmanfa.cli.run_demo import FEATURES
from heckmanfa.datasets import load_mroz
from heckmanfa.report import write_report

TARGET = Path(__file__).parent / "img" / "report.png"
HEIGHT, MARGIN, GAP = 1500, 24, 40


def part(page: Page, heading: str) -> Image.Image:
    """The page from a heading on."""
    box = page.locator("h2", has_text=heading).bounding_box()
    assert box is not None
    whole = Image.open(BytesIO(page.screenshot(full_page=True)))
    top, left = int(box["y"]) - MARGIN, int(box["x"]) - MARGIN
    return whole.crop((left, top, left + int(box["width"]) + 2 * MARGIN, top + HEIGHT))


def main() -> None:
    """Write the picture: the answer and the coefficients, and the first pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        table, report = Path(folder) / "mroz.csv", Path(folder) / "mroz.html"
        load_mroz()[["lwage", *FEATURES]].to_csv(table, index=False)
        write_report(analyse(Question(data=str(table), outcome="lwage")), report)
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto(report.as_uri())
        page.wait_for_timeout(10_000)
        left, right = part(page, "The answer"), part(page, "Pictures")
        browser.close()
    both = Image.new("RGB", (left.width + right.width + GAP, HEIGHT), "#c9ced6")
    both.paste(left, (0, 0))
    both.paste(right, (left.width + GAP, 0))
    small = both.resize((1400, round(1400 * HEIGHT / both.width)), Image.Resampling.LANCZOS)
    small.save(TARGET, optimize=True)


if __name__ == "__main__":
    main()

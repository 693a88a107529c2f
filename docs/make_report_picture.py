"""Draw docs/img/report.png, the README's picture of a report: its first screen.

    python docs/make_report_picture.py

Needs Playwright and Chromium, as the report's tests do.
"""

from __future__ import annotations

import shutil
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from heckmanfa.analysis import Question, analyse
from heckmanfa.cli.run_fit import FEATURES
from heckmanfa.datasets import load_mroz
from heckmanfa.report import write_report

TARGET = Path(__file__).parent / "img" / "report.png"
WIDTH, HEIGHT = 1200, 860
COLOURS = 128


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        table, report = Path(folder) / "mroz.csv", Path(folder) / "mroz.html"
        load_mroz()[["lwage", *FEATURES]].to_csv(table, index=False)
        write_report(analyse(Question(data=str(table), outcome="lwage")), report)
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(report.as_uri())
        screen = Image.open(BytesIO(page.screenshot())).convert("RGB")
        browser.close()
    screen.quantize(COLOURS).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()

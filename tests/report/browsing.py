"""A page opened in a browser, and its sheets on paper."""

from __future__ import annotations

import io
import re
import unicodedata

import pytest


class Visit:
    """A page as it was opened, and what it did on the way."""

    def __init__(self, browser, path, width=1200, height=860, **options):
        self.errors, self.requests = [], []
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )
        self.page.route("**/*", self._route)
        self.url = path.as_uri()
        self.page.goto(self.url)

    def _route(self, route):
        if route.request.url == self.url:
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def __enter__(self):
        return self.page

    def __exit__(self, *_):
        self.context.close()
        assert self.errors == []
        assert self.requests == []


def sheets(printed):
    """The lines of text on each sheet of a PDF file, its foot among them."""
    pypdf = pytest.importorskip("pypdf", reason="no reader of PDF files: pip install pypdf")
    reader = pypdf.PdfReader(io.BytesIO(printed))
    assert float(reader.pages[0].mediabox.width) == pytest.approx(595, abs=1)
    texts = (unicodedata.normalize("NFKC", sheet.extract_text()) for sheet in reader.pages)
    lines = ([re.sub(r"\s+", " ", line).strip() for line in text.splitlines()] for text in texts)
    return [[line for line in some if line] for some in lines]

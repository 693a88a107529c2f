"""The code in documents runs and prints what is shown under it.

A fence of ``python`` is run; where a fence of ``text`` follows it, that is its output. The blocks
of a file share their names, in order.
"""

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (
    *("docs/index.md", "docs/searching.md", "docs/search_study.md"),
    "docs/paper_findings.md",
)
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def lines(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/searching.md"])
def test_code_in_documents_prints_what_is_shown(name):
    blocks = BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert any(shown for _, shown in blocks)
    names = {}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), names)
        assert lines(printed.getvalue()) == lines(shown)


def test_the_picture_that_documents_show_is_there():
    for name in ("README.md", "docs/index.md"):
        page = ROOT / name
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file()


def test_links_between_documents_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES):
        page = ROOT / name
        for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http", "#")):
                assert (page.parent / target.split("#")[0]).exists(), (name, target)


@pytest.mark.parametrize(
    "name",
    [
        *("estimators", "searches", "assignment", "extraction.best_subset", "compressed"),
        *("datasets._mroz", "datasets._simulate"),
    ],
)
def test_examples_in_docstrings_print_what_is_shown(name):
    module = importlib.import_module(f"heckmanfa.{name}")
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted > 0

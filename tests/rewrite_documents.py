"""Put what the code in documents prints now under it; read the prose around it, and the diff.

python tests/rewrite_documents.py docs/searching.md [README.md ...]
"""

import contextlib
import sys
import tempfile
import warnings

from test_documents import ROOT, lines, run_blocks


def rewrite(name):
    """Replace outputs that differ, and leave those that are only the beginning of an output."""
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    # Later blocks first, so that places stay valid.
    for block, shown, printed in reversed(list(run_blocks(name))):
        expected, found = lines(shown), lines(printed)
        if not expected:
            continue
        rest = []
        if expected[-1] == "...":
            rest, found = ["..."], found[: len(expected) - 1]
        start, end = block.span(3)
        text = text[:start] + "\n".join([*found, *rest]) + "\n" + text[end:]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for page in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            rewrite(page)

"""How to cite a result, and how to run it again."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from heckmanfa import __version__
from heckmanfa.data.files.table_files import sha256_of
from heckmanfa.results.document import Block, Code, Heading, Notes
from heckmanfa.text.table import Column, Table

if TYPE_CHECKING:
    from heckmanfa.analysis.pipeline import Analysis

_PAPER = (
    "H. Mai and X. Wu (2023). On prediction feature assignment in the Heckman selection model. "
    "arXiv:2309.08043."
)
_HECKMAN = (
    "J. J. Heckman (1979). Sample selection bias as a specification error. Econometrica 47(1), "
    "153-161."
)
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def citation_blocks(analysis: Analysis) -> list[Block]:
    """Say how to cite this, the command to run it again, and with what it was made."""
    sources = (_PAPER, _HECKMAN, f"heckmanfa {__version__} (Python package).")
    what = "it" if len(analysis.files) == 1 else f"the {len(analysis.files)} files, joined"
    rows = [["Data file", analysis.question.data], [f"SHA-256 of {what}", _digest(analysis)]]
    if not analysis.files:
        rows = [["Data", f"{analysis.question.called}: not a file that can be read again"]]
    rows.append(["Seed", str(analysis.question.seed)])
    rows += [["Python", platform.python_version()], ["heckmanfa", __version__]]
    rows += [[name, _version(name)] for name in _PACKAGES]
    columns = (Column("What", False), Column("Which", False))
    return [
        Notes(sources),
        Heading("Run it again"),
        Code(analysis.question.command()),
        Table(columns, tuple(rows), "Made with", "versions-table"),
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not known"


def _digest(analysis: Analysis) -> str:
    if analysis.streamed:
        return "not computed: the rows were not loaded"
    # The demo moves its file to where it belongs once the report is written.
    read = [Path(file) for file in analysis.files]
    moved = [Path(analysis.question.data)] if len(read) == 1 else []
    for paths in (read, moved):
        if paths and all(path.is_file() for path in paths):
            return sha256_of(*paths)
    return "not known: the file was moved or removed after it was read"

"""Tables from a pipe, kept in a temporary file while they are read."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from heckmanfa.errors import DataError, InputError
from heckmanfa.text.printable import called, shown

STDIN = "-"
"""name of standard input"""

_PIECE = 2**20
_INPUTS = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
# Formats that are read from the end, by their first bytes.
_NOT_TEXT = {b"PAR1": "Parquet", b"PK\x03\x04": "Excel", b"ARROW1": "Arrow", b"<stata": "Stata"}


def is_piped(path: str | os.PathLike[str]) -> bool:
    """Whether a table comes through a pipe: standard input, or a named pipe."""
    return str(path) == STDIN or str(path) in _INPUTS or Path(path).is_fifo()


@contextmanager
def spooled(
    path: str | os.PathLike[str], tell: Callable[[str], None] | None = None
) -> Iterator[Path]:
    """Copy the contents of a pipe to a file, which is removed at the end.

    ``tell`` gets a few words about what it is waiting for. Errors name the pipe, not the file.
    """
    standard = str(path) == STDIN or str(path) in _INPUTS
    name = "standard input" if standard else f"the pipe {shown(path)}"
    with ExitStack() as stack:
        source: IO[bytes]
        if standard:
            source = _standard_input()
        else:
            if tell is not None:
                tell(f"waiting for a table from {name}")
            source = stack.enter_context(Path(path).open("rb"))
        if tell is not None:
            tell(f"reading {name}")
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heckmanfa-")))
            copy = folder / "table.csv"
            with copy.open("wb") as file:
                shutil.copyfileobj(source, file, _PIECE)
        except OSError as error:
            raise DataError(f"{name} cannot be read: {error.strerror or error}") from error
        with copy.open("rb") as file:
            head = file.read(8)
        if not head:
            raise InputError(f"{name} is empty")
        for first, what in _NOT_TEXT.items():
            if head.startswith(first):
                raise InputError(
                    f"{name} holds a table in {what}, and only delimited text can come through a "
                    "pipe; write it to a file, and name that"
                )
        if head.startswith(b"\x1f\x8b"):
            copy = copy.rename(folder / "table.csv.gz")
        with called(copy, name):
            yield copy


def _standard_input() -> IO[bytes]:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed; pipe a table into the command, or name a file")
    if sys.stdin.isatty():
        raise InputError(
            "standard input is a terminal, which provides no table; pipe a table into the command "
            "(cat wages.csv | heckmanfa fit - ...), or name a file"
        )
    return sys.stdin.buffer

"""Checks of files that are read, and tables that are written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from heckmanfa.data.files.clashes import refuse_standard_output
from heckmanfa.errors import InputError, needs_extra
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import nearest_file

_PIECE = 2**20
_NOT_FILES: tuple[tuple[Callable[[Path], bool], str], ...] = (
    (Path.is_fifo, "pipe"),
    (Path.is_socket, "socket"),
    (Path.is_char_device, "device"),
    (Path.is_block_device, "device"),
)


def existing(path: str | os.PathLike[str]) -> Path:
    """Return the path of an existing file; refuse anything else."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{shown(path)} is a folder; name a file in it")
    if path.is_file():
        return path
    # Reading from anything but a file may wait forever, or never end.
    for is_kind, what in _NOT_FILES:
        if is_kind(path):
            raise InputError(f"{shown(path)} is a {what}, not a file; name a file")
    if not path.parent.is_dir():
        raise InputError(f"there is no file {shown(path)}: there is no folder {shown(path.parent)}")
    names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    raise InputError(f"there is no file {shown(path)}{nearest_file(path.name, names)}")


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in lower case; ``.csv.gz`` counts as one ending."""
    endings = [suffix.lower() for suffix in path.suffixes]
    return "".join(endings[-2:] if endings[-1:] == [".gz"] else endings[-1:])


def words_of(error: Exception) -> str:
    """Return the first sentence of an error's message."""
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = message.strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table without its row labels to a ``.csv`` or ``.parquet`` file."""
    check_ending(path)
    path = Path(path)
    if ending_of(path) == ".csv":
        frame.to_csv(path, index=False)
        return
    with needs_extra(".parquet files need pyarrow", "parquet"):
        frame.to_parquet(path, index=False)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse to write a table in a format that `write_table` does not support."""
    refuse_standard_output(path)
    if ending_of(Path(path)) not in (".csv", ".parquet"):
        raise InputError(f"{shown(path)} must end in .csv or .parquet to be written")


def sha256_of(*paths: str | os.PathLike[str]) -> str:
    """Return the hexadecimal SHA-256 of the contents of files, in order."""
    total = hashlib.sha256()
    for path in paths:
        with existing(path).open("rb") as file:
            while piece := file.read(_PIECE):
                total.update(piece)
    return total.hexdigest()

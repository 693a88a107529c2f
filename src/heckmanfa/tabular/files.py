"""Tables in files: read from what spreadsheets and statistics programs write, written whole."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from heckmanfa.errors import DataError, HeckmanfaError, InputError, MissingExtraError
from heckmanfa.features import nearest
from heckmanfa.foreign import shown
from heckmanfa.tabular.delimited import read_delimited
from heckmanfa.tabular.headers import UNNAMED, check_wanted, tidy_names
from heckmanfa.tabular.values import MISSING_SPELLINGS

__all__ = ["check_ending", "existing", "is_untyped", "read_table", "sha256_of", "write_table"]

_PIECE = 2**20
_TEXT = (".csv", ".tsv", ".txt")
_EXCEL = (".xlsx", ".xls")
_KNOWN = (
    *_TEXT,
    *(f"{one}.gz" for one in _TEXT),
    ".parquet",
    ".feather",
    ".arrow",
    ".dta",
    *_EXCEL,
)


def read_table(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table, in a way that its name's ending tells.

    Text files (``.csv``, ``.tsv``, ``.txt``, also with ``.gz``) may be delimited by commas,
    semicolons, tabs or bars, and be UTF-8 or of Windows; numbers may have decimal commas where
    the delimiter is another. Of Excel files the first sheet is read. The others are ``.parquet``,
    ``.feather``, ``.arrow`` and Stata's ``.dta``.

    Parameters
    ----------
    path : str or path
    columns : sequence of str, optional
        Only these, in this order.

    Returns
    -------
    DataFrame
        With distinct names and at least one row. In text and Excel files, the usual marks for
        missing values are missing, columns without name or values are left out, and so are blank
        rows (for text files, unless ``columns`` are given).
    """
    path = existing(path)
    ending = _ending(path)
    if ending not in _KNOWN:
        said = (
            f"the ending {ending!r} of {path} is not known" if ending else f"{path} has no ending"
        )
        raise InputError(f"{said}; known are {', '.join(_KNOWN)}")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty")
    try:
        if ending.startswith(_TEXT):
            frame = read_delimited(path, columns)
            if columns is None:
                frame = _without_blanks(frame)
        elif ending in _EXCEL:
            frame = _read_excel(path, ending)
        elif ending == ".dta":
            frame = _read_stata(path)
        else:
            frame = _read_arrow(path, ending, columns)
    except (HeckmanfaError, MemoryError):
        raise
    # A damaged file can make a reader fail in any way.
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"{path} cannot be read: {_words(error)}") from error
        raise DataError(
            f"{path} cannot be read as {ending}: {_words(error)}; it is damaged, cut off, or "
            "something else than its name says"
        ) from error
    if columns is not None:
        check_wanted(columns, list(frame.columns), path)
        frame = frame[list(columns)]
    if len(frame) == 0:
        raise InputError(f"{path} has names of columns but no rows")
    return frame


def existing(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that is there, or say what is there instead."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it")
    if path.exists():
        return path
    if not path.parent.is_dir():
        raise InputError(f"there is no file {path}: there is no folder {path.parent}")
    names = [one.name for one in path.parent.iterdir() if one.is_file()]
    raise InputError(f"there is no file {path}{nearest(path.name, names)}")


def is_untyped(path: Path) -> bool:
    """Whether a file has cells only, and no types that say which of its columns are text."""
    return _ending(path).startswith((*_TEXT, *_EXCEL))


def _ending(path: Path) -> str:
    endings = [one.lower() for one in path.suffixes]
    return "".join(endings[-2:] if endings[-1:] == [".gz"] else endings[-1:])


def _words(error: Exception) -> str:
    """Return the first sentence of what an error says."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = said.strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__


def _without_blanks(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows without any value, and columns without name and values."""
    spare = [one for one in frame.columns if one.startswith(UNNAMED) and frame[one].isna().all()]
    if spare:
        frame = frame.drop(columns=spare)
    blank = frame.iloc[:, 0].isna() if frame.shape[1] else pd.Series([], dtype=bool)
    for name in frame.columns[1:]:
        if not blank.any():
            return frame
        blank &= frame[name].isna()
    return frame[~blank].reset_index(drop=True) if blank.any() else frame


def _read_excel(path: Path, ending: str) -> pd.DataFrame:
    engine: Literal["openpyxl", "xlrd"] = "openpyxl" if ending == ".xlsx" else "xlrd"
    try:
        with warnings.catch_warnings():
            # openpyxl tells of decorations that it leaves out.
            warnings.simplefilter("ignore", UserWarning)
            cells = pd.read_excel(
                path,
                header=None,
                dtype=object,
                engine=engine,
                keep_default_na=False,
                na_values=list(MISSING_SPELLINGS),
            )
    except ImportError as error:
        way_out = (
            "pip install 'heckmanfa[excel]'"
            if ending == ".xlsx"
            else "save the sheet as .xlsx, or pip install xlrd"
        )
        raise MissingExtraError(
            f"{ending} files need {engine}, which is not installed: {way_out}"
        ) from error
    cells = cells.dropna(how="all").dropna(how="all", axis="columns")
    if cells.empty:
        raise InputError(f"{path} is empty: there is nothing in its first sheet")
    frame = cells.iloc[1:].reset_index(drop=True)
    frame.columns = pd.Index(tidy_names(list(cells.iloc[0]), path))
    return frame.infer_objects()


def _read_stata(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_stata(path)
    except ValueError as error:
        if "not unique" not in str(error):
            raise
        # Two values of a column have the same label, so that only the values tell them apart.
        frame = pd.read_stata(path, convert_categoricals=False)
    frame.columns = pd.Index(tidy_names(list(frame.columns), path))
    return frame


def _read_arrow(path: Path, ending: str, columns: Sequence[str] | None) -> pd.DataFrame:
    try:
        import pyarrow as pa
        from pyarrow import feather, ipc, parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{ending} files need pyarrow, which is not installed: pip install 'heckmanfa[parquet]'"
        ) from error
    table: Any
    if ending == ".parquet":
        file = parquet.ParquetFile(path)
        raw = list(file.schema_arrow.names)
        names = _arrow_names(raw, path)
        if columns is not None:
            check_wanted(columns, list(names.values()), path)
            names = {one: name for one, name in names.items() if name in columns}
        table = file.read(columns=list(names))
    else:
        try:
            table = feather.read_table(path)
        except pa.ArrowInvalid:
            # Arrow has a format for files and one for streams.
            with path.open("rb") as stream:
                table = ipc.open_stream(stream).read_all()
        names = _arrow_names(list(table.schema.names), path)
        table = table.select(list(names))
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, date_as_object=False)
    return frame.rename(columns=names)


def _arrow_names(raw: list[str], path: Path) -> dict[str, str]:
    # pandas keeps its row labels in columns of such names.
    kept = [one for one in raw if not one.startswith("__index_level_")]
    return dict(zip(kept, tidy_names(kept, path), strict=True))


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table without its row labels.

    Parameters
    ----------
    frame : DataFrame
    path : str or path
        Ends in ``.csv`` or ``.parquet``.
    """
    check_ending(path)
    path = Path(path)
    if _ending(path) == ".csv":
        frame.to_csv(path, index=False)
        return
    try:
        frame.to_parquet(path, index=False)
    except ImportError as error:
        raise MissingExtraError(
            ".parquet files need pyarrow, which is not installed: pip install 'heckmanfa[parquet]'"
        ) from error


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse to write a table in a format that `write_table` does not have."""
    if _ending(Path(path)) not in (".csv", ".parquet"):
        raise InputError(f"{shown(path)} must end in .csv or .parquet to be written")


def sha256_of(*paths: str | os.PathLike[str]) -> str:
    """Return the sha256 of files, one after the other, in hexadecimal, read a piece at a time."""
    total = hashlib.sha256()
    for path in paths:
        with existing(path).open("rb") as file:
            while piece := file.read(_PIECE):
                total.update(piece)
    return total.hexdigest()

"""Tables as an Excel workbook: numbers as numbers, and text as text, never as a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.text.printable import printable

# Widths of columns, in characters.
_NARROWEST, _WIDEST = 9, 48
# Smaller numbers are clearer with an exponent.
_SMALL = 1e-3
# Excel holds no more characters in a cell.
_LONGEST = 32_767


def write_xlsx(sheets: Mapping[str, pd.DataFrame], path: Path) -> None:
    """Write a sheet for each table; the extra ``excel`` has the package that this needs."""
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font

    book = Workbook()
    book.remove(book.active)
    for title, frame in sheets.items():
        sheet = book.create_sheet(title)
        sheet.freeze_panes = "B2"
        for place, name in enumerate(frame.columns, start=1):
            head = sheet.cell(1, place)
            _fill(head, str(name), "")
            head.font, head.alignment = Font(bold=True), Alignment(wrap_text=True)
            texts = [str(name)]
            for row, value in enumerate(frame[name], start=2):
                cell = sheet.cell(row, place)
                _fill(cell, value, str(name))
                texts.append(cell.value if isinstance(cell.value, str) else "")
            width = min(max(_NARROWEST, *(len(text) + 2 for text in texts)), _WIDEST)
            sheet.column_dimensions[head.column_letter].width = width
    book.save(path)


def _fill(cell: Any, value: Any, name: str) -> None:
    """Put a value into a cell; what is missing leaves it empty."""
    if isinstance(value, int | float | np.number) and math.isfinite(value):
        cell.value = value
        if not isinstance(value, int):
            tiny = 0.0 < abs(float(value)) < _SMALL
            cell.number_format = "0.00E+00" if tiny else "0.0000"
        if "chance" in name:
            cell.number_format = "0.0%"
    elif not pd.isna(value) and value != "":
        text = "infinite" if value == math.inf else str(value)
        cell.value = printable(text, None)[:_LONGEST]
        # A text that begins with an equals sign would be a formula.
        cell.data_type = "s"

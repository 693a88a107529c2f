"""What hostile input is made of: tables that are fine, and ways to spoil them.

Everything is drawn from the generator it is given, so a seed stands for a case.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["HOSTILE_TEXT", "csv_bytes", "parquet_bytes", "pick", "spoil", "table"]

Source = np.random.Generator

HOSTILE_TEXT = (
    "",
    " ",
    "nan",
    "-inf",
    "1e999",
    "0x1F",
    "1_000",
    "٣",
    "١٢",
    "10.910",
    "10,910",
    "1.234,5",
    "72.1%",
    "$5",
    "=cmd|' /C calc'!A0",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\u202egnp.exe",
    "\u2066\u2069",
    "\u200b",
    "\x00",
    "\x9b2J",
    "a\nb",
    "a\rb",
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "[bold]markup[/]",
    "[/]",
    "%s%n",
    "\ufffe",
    "\ud83d".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    "x" * 5000,
    "educ",
    "Intercept",
    "imr",
    "__class__",
    "a:b",
    "C(a)",
    "`a`",
    "(Intercept)",
    "2026-11-15",
    "true",
    "yes",
    "-99",
)


def pick(source: Source, options: Any) -> Any:
    """One of some options."""
    return options[int(source.integers(len(options)))]


def table(source: Source, rows: int | None = None) -> pd.DataFrame:
    """A table with an outcome y that is missing in places, and columns of several kinds."""
    n = int(source.integers(40, 160)) if rows is None else rows
    frame = pd.DataFrame({"a": source.normal(size=n), "b": source.normal(size=n)})
    index = 0.4 + frame["a"] + source.normal(size=n)
    outcome = 1.0 + frame["b"] + 0.5 * frame["a"] + source.normal(size=n)
    frame.insert(0, "y", outcome.where(index > 0))
    if source.random() < 0.5:
        frame["c"] = source.integers(0, 9, n)
    if source.random() < 0.5:
        frame["g"] = np.array(["north", "south", "west"])[source.integers(0, 3, n)]
    if source.random() < 0.3:
        frame["flag"] = source.random(n) < 0.5
    if source.random() < 0.3:
        frame["works"] = np.where(index > 0, "yes", "no")
    if source.random() < 0.3:
        frame["w"] = source.integers(1, 4, n)
    if source.random() < 0.3:
        frame["when"] = pd.date_range("2020-01-01", periods=n).astype(str)
    if source.random() < 0.3:
        column = pick(source, frame.columns)
        frame[column] = frame[column].astype(object).where(source.random(n) > 0.1)
    if source.random() < 0.2:
        frame = frame.rename(columns={pick(source, frame.columns[1:]): pick(source, HOSTILE_TEXT)})
    if source.random() < 0.2:
        column = pick(source, frame.columns)
        values = frame[column].to_list()
        for row in source.integers(0, n, 3):
            values[row] = pick(source, HOSTILE_TEXT)
        frame[column] = pd.Series(values, dtype=object)
    return frame


def csv_bytes(source: Source, frame: pd.DataFrame) -> bytes:
    """A table as text, in one of the ways that programs write it."""
    sep = pick(source, [",", ",", ";", "\t", "|"])
    decimal = "," if sep != "," and source.random() < 0.5 else "."
    text = frame.to_csv(index=bool(source.random() < 0.2), sep=sep, decimal=decimal)
    if source.random() < 0.2:
        text = text.replace("\n", "\r\n")
    encoding = pick(source, ["utf-8", "utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16"])
    return text.encode(encoding, "replace")


def parquet_bytes(source: Source, frame: pd.DataFrame) -> bytes:
    """A table as Parquet, with column types that programs write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = pa.Table.from_pandas(
        frame.astype({name: str for name in frame if frame[name].dtype == object}),
        preserve_index=False,
    )
    n = arrow.num_rows
    extra: list[Any] = [
        pa.array([{"x": 1}] * n),
        pa.array([[1.0, 2.0]] * n),
        pa.nulls(n),
        pa.array(np.arange(n)).cast(pa.timestamp("ns")),
        pa.array(np.arange(n)).cast(pa.duration("s")),
        pa.array(np.arange(n) / 8).cast(pa.decimal128(20, 3)),
        pa.array([b"\x00\xff"] * n),
        pa.array([str(row % 4) for row in range(n)]).dictionary_encode(),
        pa.array(source.normal(size=n).astype("float16")),
        pa.array([2**63] * n, type=pa.uint64()),
        pa.array([pick(source, HOSTILE_TEXT) for _ in range(n)]),
    ]
    while source.random() < 0.4:
        arrow = arrow.append_column(f"extra{arrow.num_columns}", pick(source, extra))
    buffer = io.BytesIO()
    pq.write_table(
        arrow,
        buffer,
        row_group_size=pick(source, [7, 50, 10_000]),
        compression=pick(source, ["none", "snappy", "zstd"]),
    )
    return buffer.getvalue()


def spoil(source: Source, data: bytes) -> bytes:
    """Change bytes here and there, or not at all."""
    buffer = bytearray(data)
    for _ in range(int(source.choice([0, 0, 1, 1, 2, 4, 16]))):
        at = int(source.integers(len(buffer) + 1)) if buffer else 0
        how = int(source.integers(6))
        if how == 0 and at < len(buffer):
            buffer[at] = int(source.integers(256))
        elif how == 1:
            buffer[at:at] = pick(source, HOSTILE_TEXT).encode("utf-8", "surrogatepass")
        elif how == 2:
            del buffer[at : at + int(source.integers(1, 40))]
        elif how == 3:
            end = at + int(source.integers(1, 200))
            buffer[at:at] = bytes(buffer[at:end])
        elif how == 4:
            buffer[at:at] = pick(source, [b'"', b",", b";", b"\n", b"\x00", b"\xff\xfe", b'""'])
        elif source.random() < 0.2:
            del buffer[at:]
    return bytes(buffer)

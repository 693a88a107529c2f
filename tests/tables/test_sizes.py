"""Small files that would take the memory of large ones are refused before they do."""

from __future__ import annotations

import gzip
import io
import os
import re
import struct
import subprocess
import sys
import time
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heckmanfa.cli import app
from heckmanfa.data.files import sizes
from heckmanfa.data.scan import arrow_columns, parquet_rows
from heckmanfa.errors import DataError, OutOfMemoryError
from heckmanfa.tables import excel, read_table

# What a process may take beyond its libraries.
_MEMORY = 700 * 2**20


def _frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["y", "a", "b"])
    frame.loc[frame["b"] + rng.normal(size=n) < 0, "y"] = np.nan
    return frame


def _xlsx(path, sheet: bytes, strings: bytes = b"", repeats: int = 0) -> None:
    """Write a workbook whose sheet, or whose text ``repeats`` times a megabyte, is given."""
    buffer = io.BytesIO()
    _frame().to_excel(buffer, index=False, engine="openpyxl")
    with (
        zipfile.ZipFile(buffer) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            if name == "xl/sharedStrings.xml":
                continue
            if name == "xl/worksheets/sheet1.xml" and sheet:
                target.writestr(name, sheet)
            else:
                target.writestr(name, source.read(name))
        with target.open("xl/sharedStrings.xml", "w", force_zip64=True) as member:
            member.write(strings)
            for _ in range(repeats):
                member.write(b"x" * 2**20)


_SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    '<row r="1"><c r="A1" t="inlineStr"><is><t>y</t></is></c></row>{}</sheetData></worksheet>'
)
# As attributes may be written: with references, in other quotes, as a number with an exponent.
_FAR = {
    "one cell at the end": '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
    "by references": '<row r="&#49;048576"><c r="&#88;FD1048576"><v>1</v></c></row>',
    "in other quotes": "<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>",
    "beyond the end": '<row r="1e12"><c r="A1000000000000"><v>1</v></c></row>',
    "too many columns": "<row>" + "<c><v>1</v></c>" * 200 + "</row>",
    "many far cells": "".join(
        f'<row r="{row}"><c r="ZZ{row}"><v>1</v></c></row>' for row in range(2, 7000)
    ),
}


@pytest.mark.parametrize("how", _FAR)
def test_a_sheet_whose_cells_are_far_apart_is_refused(how, tmp_path, monkeypatch):
    if "columns" in how:
        monkeypatch.setattr(excel, "_MOST_COLUMNS", 150)
    path = tmp_path / "t.xlsx"
    _xlsx(path, _SHEET.format(_FAR[how]).encode())
    with pytest.raises(DataError, match="delete stray cells"):
        read_table(path)


def test_a_sheet_with_a_stray_cell_near_by_is_read(tmp_path):
    path = tmp_path / "t.xlsx"
    frame = _frame()
    frame.to_excel(path, index=False)
    pd.testing.assert_frame_equal(read_table(path), frame)
    _xlsx(path, _SHEET.format('<row r="900"><c r="A900"><v>1</v></c></row>').encode())
    assert read_table(path)["y"].tolist() == [1]


def test_a_sheet_of_xls_is_judged_by_its_rows_and_columns(tmp_path):
    path = tmp_path / "t.xls"
    path.write_bytes(b"x" * 1000)
    sheet = SimpleNamespace(nrows=65536, ncols=256)
    book = SimpleNamespace(book=SimpleNamespace(sheet_by_name=lambda name: sheet))
    with pytest.raises(DataError, match="row 65,536 and column 256"):
        excel._refuse_spread(book, "Sheet1", path)
    sheet.ncols = 3
    excel._refuse_spread(book, "Sheet1", path)


def _stata(path, rows: int, version: int = 118) -> None:
    _frame().to_stata(path, write_index=False, version=version)
    data = path.read_bytes()
    if version >= 117:
        at = data.index(b"<N>") + 3
        size = data.index(b"</N>") - at
        data = data[:at] + rows.to_bytes(size, "little") + data[at + size :]
    else:
        data = data[:6] + struct.pack("<I", rows) + data[10:]
    path.write_bytes(data)


@pytest.mark.parametrize(("version", "rows"), [(118, 2**40), (117, 2**31), (114, 2**30)])
def test_a_stata_file_that_claims_more_rows_than_it_holds_is_refused(version, rows, tmp_path):
    path = tmp_path / "t.dta"
    _stata(path, 60, version)
    assert len(read_table(path)) == 60
    _stata(path, rows, version)
    with pytest.raises(DataError, match=f"claims {rows:,} rows"):
        read_table(path)


def test_short_rows_under_a_long_header_are_refused(tmp_path):
    header = ",".join(f"c{column}" for column in range(2_000))
    for name, text in (
        ("t.csv", header + "\n" + "1\n" * 10_000),
        ("r.csv", header + "\r" + "1\r" * 10_000),
    ):
        (tmp_path / name).write_text(text, newline="")
        with pytest.raises(DataError, match="nearly all fields are missing"):
            read_table(tmp_path / name)
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(header + "\n" + "1\n" * 10_000)
    with pytest.raises(DataError, match="nearly all fields are missing"):
        read_table(tmp_path / "t.csv.gz")


def test_compressed_text_that_inflates_out_of_proportion_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(_frame().to_csv(index=False).encode())
        for _ in range(80):
            file.write(b"0,0,0\n" * 170_000)
    with pytest.raises(DataError, match="inflates to"):
        read_table(path)
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n1,")
        for _ in range(20):
            file.write(b"x" * 2**20)
    with pytest.raises(DataError, match="line 2 has more than"):
        read_table(path)


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory):
    """A text of a megabyte that 100,000 rows share, as several writers store it."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("long")
    n = 100_000
    rng = np.random.default_rng(0)
    shared = pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), pa.array(["x" * 10**6]))
    columns = {"y": rng.normal(size=n), "a": rng.normal(size=n)}
    table = pa.table({**columns, "t": shared})
    pq.write_table(table, folder / "plain.parquet", compression="zstd", store_schema=False)
    pq.write_table(table, folder / "category.parquet", compression="zstd")
    feather.write_feather(table, folder / "shared.feather", compression="zstd")
    few = pa.table({"y": columns["y"][:100], "t": ["x" * 10**5] * 100})
    encoding = {"t": "DELTA_BYTE_ARRAY", "y": "PLAIN"}
    pq.write_table(few, folder / "prefixed.parquet", use_dictionary=False, column_encoding=encoding)
    return folder


_LIMITED = """
import resource, sys
from typer.testing import CliRunner
from heckmanfa.cli import app
import pandas, pyarrow.parquet, pyarrow.dataset, pyarrow.feather, heckmanfa, openpyxl
import heckmanfa.tables, heckmanfa.analysis
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {more}, used + {more}))
result = CliRunner().invoke(app, sys.argv[1:])
print(result.output[-2000:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("peak", peak)
sys.exit(result.exit_code)
"""


def _limited(*arguments: str, more: int = _MEMORY) -> tuple[int, str]:
    """Run the command line in a process with little memory."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED.format(more=more), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(name, marks=pytest.mark.study)
            for name in ("plain.parquet", "shared.feather")
        ),
        "category.parquet",
    ],
)
def test_a_text_that_all_rows_share_is_not_copied_for_each(name, long_texts):
    # With the column, it is one level of a category, or refused; without it, nothing is different.
    status, said = _limited("fit", str(long_texts / name), "--outcome", "y", "--search", "none")
    assert status in (0, 2), said
    assert "not enough memory" not in said


def test_a_text_that_the_rows_of_several_batches_share_counts_once_for_each(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    n, texts = 70_000, pa.array(["x" * 400, "y" * 400])
    codes = pa.array(np.arange(n, dtype=np.int32) % 2)
    shared = pa.DictionaryArray.from_arrays(codes, texts)
    numbers = np.random.default_rng(0).normal(size=(3, n))
    y = np.where(numbers[0] > 0, numbers[1], np.nan)
    made = pa.table({"y": y, "a": numbers[0], "b": numbers[2], "t": shared})
    path = tmp_path / "t.parquet"
    pq.write_table(made, path, store_schema=False)
    monkeypatch.setattr(parquet_rows, "_FEW_TEXTS", 0)
    # A batch has 32,768 rows, with 13 MB of text.
    monkeypatch.setattr(arrow_columns, "_DECODED", 20 * 10**6)
    for above in ("0", "1"):
        given = ["fit", str(path), "--outcome", "y", "--search", "none", "--stream-above", above]
        done = CliRunner().invoke(app, given)
        assert done.exit_code == 2
        assert re.search(r"'t' holds 2\d,\d{3},\d{3} bytes of text or", done.output)
    monkeypatch.setattr(arrow_columns, "_DECODED", 10**9)
    assert len(read_table(path)) == n


def test_texts_stored_by_their_differences_are_refused_if_long(long_texts, monkeypatch):
    monkeypatch.setattr(parquet_rows, "_FEW_TEXTS", 2**20)
    assert (long_texts / "prefixed.parquet").stat().st_size < 2**17
    with pytest.raises(DataError, match="texts of more than"):
        read_table(long_texts / "prefixed.parquet")


def test_short_texts_stored_by_their_differences_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from heckmanfa import Heckman, scan_parquet

    frame = _frame(500).assign(t=[f"level {row % 5}" for row in range(500)])
    encoding = {"t": "DELTA_BYTE_ARRAY", "y": "PLAIN", "a": "PLAIN", "b": "PLAIN"}
    pq.write_table(
        pa.Table.from_pandas(frame, preserve_index=False),
        tmp_path / "t.parquet",
        use_dictionary=False,
        column_encoding=encoding,
    )
    got = Heckman(["a", "t"]).fit(scan_parquet(tmp_path / "t.parquet", "y"))
    want = Heckman(["a", "t"]).fit(frame[["a", "b", "t"]], frame["y"])
    np.testing.assert_allclose(got.tidy()["estimate"], want.tidy()["estimate"], rtol=1e-7)
    assert list(read_table(tmp_path / "t.parquet")["t"]) == list(frame["t"])


def test_shared_strings_that_inflate_to_gigabytes_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"
    # A tenth of what hostile files have, with a tenth of the limit.
    monkeypatch.setattr(sizes, "_INFLATED", sizes._INFLATED // 10)
    head = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>'
    _xlsx(path, b"", head, repeats=200)
    assert path.stat().st_size < 2**20
    with pytest.raises(DataError, match="inflates to"):
        read_table(path)


def test_a_lack_of_memory_is_one_of_our_errors_and_ends_a_command_with_2(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    _frame().to_csv(path, index=False)

    def fails(*args, **kwargs):
        raise MemoryError("Unable to allocate 8.00 PiB")

    monkeypatch.setattr(pd, "read_csv", fails)
    with pytest.raises(OutOfMemoryError, match="not enough memory to read"):
        read_table(path)
    result = CliRunner().invoke(app, ["fit", str(path), "--outcome", "y"])
    assert result.exit_code == 2
    assert "error: there is not enough memory" in result.output
    monkeypatch.undo()
    # Also where no file is read.
    monkeypatch.setattr(np.linalg, "qr", fails)
    result = CliRunner().invoke(app, ["fit", str(path), "--outcome", "y"])
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


def test_cells_with_thousands_of_digits_cost_no_time(tmp_path):
    frame = _frame().astype(str)
    for column, text in (("a", "1" * 100_000 + "x"), ("b", "1,"), ("b", "(" * 50_000)):
        frame.loc[3, column] = text * (50_000 if text == "1," else 1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    start = time.process_time()
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), "--outcome", "y"])
    assert time.process_time() - start < 10
    assert result.exit_code == 2


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("layout", ["file", "stream"])
def test_an_arrow_file_whose_batches_inflate_out_of_proportion_is_refused(
    compression, layout, tmp_path, monkeypatch
):
    pa = pytest.importorskip("pyarrow")
    from heckmanfa import scan

    def write(n: int) -> None:
        table = pa.table({"y": np.zeros(n), "a": np.zeros(n)})
        table = table.append_column("t", pa.array(["u"] * n).dictionary_encode())
        options = pa.ipc.IpcWriteOptions(compression=compression)
        make = pa.ipc.new_file if layout == "file" else pa.ipc.new_stream
        with make(tmp_path / "t.arrow", table.schema, options=options) as writer:
            writer.write_table(table)

    monkeypatch.setattr(sizes, "_INFLATED", 2**20)
    write(50)
    assert len(read_table(tmp_path / "t.arrow")) == 50
    write(500_000)
    with pytest.raises(DataError, match="inflates to"):
        read_table(tmp_path / "t.arrow")
    if layout == "file":
        with pytest.raises(DataError, match="inflates to"):
            scan(tmp_path / "t.arrow", "y")


def test_a_damaged_arrow_message_is_left_to_the_reader():
    from heckmanfa.data.files.sizes import _field, _inner

    # A table that refers four bytes back to its fields: their size, its own, and no offset of one.
    data = struct.pack("<HHHH", 6, 8, 0, 99) + struct.pack("<ii", 8, 4)
    assert _field(data, 8, 0) == 0
    assert _field(data, 8, 1) == 0
    for field in (0, 1):
        with pytest.raises(struct.error, match="a field is missing"):
            _inner(data, 8, field)
    there = struct.pack("<HHHH", 6, 8, 4, 99) + struct.pack("<ii", 8, 4)
    assert _field(there, 8, 0) == 12
    assert _inner(there, 8, 0) == 16


@pytest.mark.parametrize("name", ["plain.parquet", "category.parquet", "shared.feather"])
def test_groups_that_are_one_long_text_are_refused(name, long_texts, monkeypatch):
    from heckmanfa import Heckman, scan

    rows = scan(long_texts / name, "y", ["a"], groups="t")
    with pytest.raises(DataError, match=r"column 't' holds [\d,]+ bytes of text or more"):
        Heckman(["a"], cov_type="cluster").fit(rows)


def test_a_parquet_file_whose_pages_inflate_out_of_proportion_is_refused(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from heckmanfa import scan_parquet

    monkeypatch.setattr(sizes, "_INFLATED", 2**20)
    table = pa.table({"y": np.zeros(500_000), "a": np.zeros(500_000)})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(DataError, match="inflates to"):
        scan_parquet(path, "y")
    # A value that is stored once is no inflation.
    pq.write_table(table, path, compression="zstd")
    assert scan_parquet(path, "y", ["a"]).n_rows == 500_000


@pytest.mark.parametrize("few", [0, 2**28])
def test_texts_that_need_care_are_the_same_texts(few, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from heckmanfa import Heckman, scan_parquet

    monkeypatch.setattr(parquet_rows, "_FEW_TEXTS", few)
    frame = _frame(500)
    frame = frame.assign(
        t=[f"level {row % 5}" for row in range(500)],
        team=[f"team {row % 50}" for row in range(500)],
    )
    frame.to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")["t"]
    assert list(read) == list(frame["t"])
    # A category would declare its levels, which text does not.
    assert not isinstance(read.dtype, pd.CategoricalDtype)
    rows = scan_parquet(tmp_path / "t.parquet", "y", ["a", "b", "t"], groups="team")
    found = Heckman(["a", "t"], cov_type="cluster").fit(rows)
    wanted = Heckman(["a", "t"], cov_type="cluster").fit(
        frame[["a", "b", "t"]], frame["y"], groups=frame["team"]
    )
    np.testing.assert_allclose(found.tidy()["std_error"], wanted.tidy()["std_error"], rtol=1e-7)

"""Rows of Parquet files of any number and size, in parts that depend on nothing but the files.

A part is a row group, or several small ones. Passes read it a batch at a time, so memory does not
grow with the data; threads work on several parts at once. What small row groups hold is kept
between passes, up to a number of bytes. A file that is to be loaded is read in the same way, as one
table. Texts that need far more memory than their files are found before they are read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.row_sources import Reading
from heckmanfa.data.scan.arrow_columns import decoded, is_category, kind_of
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.data.scan.engines import Engine, Piece, Range, whole_blocks
from heckmanfa.data.scan.parquet_files import (
    StoredFile,
    arrow,
    explain_failures,
    footer_of,
    leaves_of,
    value_ranges,
)
from heckmanfa.data.scan.scan_columns import ScanColumns
from heckmanfa.data.threads import workers
from heckmanfa.errors import DataError
from heckmanfa.text.printable import shown

# A batch is large enough that decoding takes longer than opening, and small compared to memory.
_BATCH_ROWS, _BATCH_BYTES = 2**15, 2**24
# Smaller row groups are merged up to this number of rows: each costs as much as some thousand rows.
_PART_ROWS = 2**15
# Bytes of a file that is read at once, in less time than column by column.
_SMALL_FILE = 2**21
# Bytes of decoded rows of small row groups that are kept between passes.
_KEPT_BYTES = 2**27
# Bytes of each column read from disk at a time, fewer if columns are many.
_BUFFER, _LEAST_BUFFER, _ALL_BUFFERS = 2**16, 2**14, 2**24
# Texts of a row group that are bounded by this need no care.
_FEW_TEXTS = 2**28
# Texts that repeat the beginning of the one before are decoded this many at a time, and may have
# these bytes on average.
_PREFIXED_ROWS, _PREFIXED_BYTES = 64, 2**16
# Fewer rows are finished before threads have started.
_ROWS_FOR_THREADS = 2**14
_ROWS_AT_ONCE = 2**13
# Row groups that a sample is spread over.
_SAMPLE_GROUPS = 256


class Run(NamedTuple):
    """Adjacent row groups of a file."""

    file: StoredFile
    groups: tuple[int, ...]
    """their positions in the file"""
    rows: int


class FilePart(NamedTuple):
    """Adjacent row groups that are read as one: a large one, or many small ones of any files."""

    runs: tuple[Run, ...]
    rows: int
    start: int
    """its first row, counted over all files"""

    @property
    def merged(self) -> bool:
        """Whether it is more than one row group."""
        return len(self.runs) > 1 or len(self.runs[0].groups) > 1

    def place(self, row: int) -> str:
        """Say which row of which file one of its rows is."""
        for run in self.runs:
            if row < run.rows:
                break
            row -= run.rows
        before = sum(run.file.group_rows[: run.groups[0]])
        return f"{shown(run.file.path)}, from row {before + row + 1} on"


@dataclass(frozen=True)
class Batches:
    """Which rows and columns of a part to read, and in batches of how many rows."""

    columns: tuple[str, ...]
    """tidy names"""
    levels: tuple[str, ...]
    """columns to read as distinct values with a code per row"""
    block_rows: int
    """the rows of every batch but the last are a multiple of this"""
    head: int | None
    """number of first rows to read; None reads all"""
    threads: bool
    """whether columns are decoded on several threads"""
    whole: bool = False
    """whether all of a file is read as one table, which takes more memory and less time"""

    def batch_rows(self) -> int:
        """Rows to decode at a time."""
        fitting = min(_BATCH_BYTES // (8 * len(self.columns)), _BATCH_ROWS)
        rows = max(fitting // self.block_rows, 1) * self.block_rows
        return rows if self.head is None else min(rows, self.head)

    def buffer(self) -> int:
        """Bytes of a column to read from disk at a time; 0 for all of them."""
        if self.whole:
            return 0
        return max(min(_BUFFER, _ALL_BUFFERS // len(self.columns)), _LEAST_BUFFER)


def file_parts(files: Sequence[StoredFile], most: int = _PART_ROWS) -> list[FilePart]:
    """Return the parts that passes read, in the order of the rows.

    Row groups are merged up to ``most`` rows, of other files too if these store their columns in
    the same types. A part depends on nothing but the files.
    """
    parts: list[FilePart] = []
    start = 0
    for file in files:
        for number, rows in enumerate(file.group_rows):
            if rows:
                last = parts[-1] if parts else None
                if last is not None and _fits(last, file, rows, most):
                    parts[-1] = _extended(last, file, number, rows)
                else:
                    parts.append(FilePart((Run(file, (number,), rows),), rows, start))
            start += rows
    return parts


def _fits(part: FilePart, file: StoredFile, rows: int, most: int) -> bool:
    last = part.runs[-1].file
    same = last is file or last.types == file.types
    return same and part.rows + rows <= most


def _extended(part: FilePart, file: StoredFile, number: int, rows: int) -> FilePart:
    *before, last = part.runs
    if last.file is file:
        runs = (*before, Run(file, (*last.groups, number), last.rows + rows))
    else:
        runs = (*part.runs, Run(file, (number,), rows))
    return FilePart(runs, part.rows + rows, part.start)


def read_file(stored: StoredFile, columns: Sequence[str]) -> Any:
    """Return some columns of a file as a table, in the requested order, under tidy names."""
    pa, _ = arrow()
    groups = tuple(range(len(stored.group_rows)))
    wanted = Batches(tuple(columns), (), 1, head=None, threads=True, whole=True)
    rows = list(_run_batches(Run(stored, groups, sum(stored.group_rows)), wanted))
    return rows[0] if isinstance(rows[0], pa.Table) else pa.Table.from_batches(rows)


class _Texts(NamedTuple):
    """Columns of text whose values may take far more memory than they take in the file."""

    shared: list[str]
    """those to read as distinct values with a code per row"""
    plain: list[str]
    """those of them to decode afterwards"""
    prefixed: list[str]
    """those stored as differences to the value before"""
    decoded: dict[str, tuple[int, int]]
    """bytes of those decoded so far, in memory and in the file"""


def _texts(
    stored: StoredFile, groups: Iterable[int], raw: Sequence[str], levels: Sequence[str]
) -> _Texts:
    """Find the columns of text that need care; ``levels`` are to be read as distinct values."""
    texts = _Texts([], [], [], {})
    if stored.texts.isdisjoint(raw):
        return texts
    footer = footer_of(stored.path, stored.size, stored.changed)
    places = leaves_of(stored.path, stored.size, stored.changed)
    for name in raw:
        place, kind = places[name]
        if kind_of(kind) != "text":
            continue
        chunks = [footer.row_group(group).column(place) for group in groups]
        most = sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks)
        if any("DELTA_BYTE_ARRAY" in chunk.encodings for chunk in chunks):
            # pyarrow cannot read them as distinct values.
            if most > _FEW_TEXTS:
                texts.prefixed.append(name)
        elif name in levels:
            texts.shared.append(name)
        elif most > _FEW_TEXTS and not is_category(kind):
            texts.shared.append(name)
            texts.plain.append(name)
    return texts


def _bounded(batches: Iterator[Any], texts: _Texts) -> Iterator[Any]:
    """Refuse batches whose texts are too long on average."""
    for batch in batches:
        for name in texts.prefixed:
            if batch.column(name).nbytes > _PREFIXED_BYTES * _PREFIXED_ROWS:
                raise DataError(
                    f"column {shown(name)} holds texts of more than {_PREFIXED_BYTES:,} bytes on "
                    "average: leave the column out, or make its texts shorter"
                )
        yield batch


def _unshared(rows: Any, texts: _Texts) -> Any:
    """Return a table or a batch with plain text where it was read as distinct values."""
    for name in texts.plain:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, name, decoded(rows.column(place), name, texts.decoded))
    return rows


def _stored(stored: StoredFile, columns: Sequence[str]) -> list[str]:
    """Return the names, in the file, of the columns that are to be read from it."""
    return [stored.stored_names[name] for name in columns if name not in stored.constants]


def _with_constants(stored: StoredFile, rows: Any, columns: Sequence[str]) -> list[Any]:
    """Return columns of a table or a batch of a file, and those of its partitions among them."""
    pa, _ = arrow()
    return [
        pa.repeat(pa.scalar(*stored.constants[name]), rows.num_rows)
        if name in stored.constants
        else rows.column(stored.stored_names[name])
        for name in columns
    ]


class KeptParts:
    """Decoded rows of merged parts, kept between passes as long as they take few bytes.

    Decoding small row groups takes longer than using their rows. Of each part, the columns of the
    last pass that read all of it are kept. A copy in another process starts empty.
    """

    def __init__(self, most: int = _KEPT_BYTES) -> None:
        self._parts: dict[int, _KeptPart] = {}
        """by the first row"""
        self._free = most
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[KeptParts], tuple[()]]:
        return KeptParts, ()

    def find(self, part: FilePart, wanted: Batches) -> list[Any] | None:
        """Return all rows of a part as record batches; None if some columns are not kept."""
        with self._lock:
            kept = self._parts.get(part.start)
            if kept is None or kept.rows < part.rows or not kept.has(wanted):
                return None
            return [batch.select(list(wanted.columns)) for batch in kept.batches]

    def keep(self, part: FilePart, wanted: Batches, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the record batches of a part, and keep those that fit."""
        kept = _KeptPart(wanted)
        with self._lock:
            self._forget(part.start)
            self._parts[part.start] = kept
        for batch in batches:
            size = batch.get_total_buffer_size()
            with self._lock:
                # Another thread may have begun to keep the same part.
                if self._parts.get(part.start) is kept:
                    if size <= self._free:
                        self._free -= size
                        kept.add(batch, size)
                    else:
                        self._forget(part.start)
            yield batch

    def _forget(self, start: int) -> None:
        kept = self._parts.pop(start, None)
        if kept is not None:
            self._free += kept.size


@dataclass
class _KeptPart:
    """The rows of a part that were read so far."""

    wanted: Batches
    batches: list[Any] = field(default_factory=list)
    rows: int = 0
    size: int = 0
    """bytes"""

    def has(self, wanted: Batches) -> bool:
        """Whether the columns of a pass are among its own, and read in the same way."""
        levels = {*self.wanted.levels}.intersection(wanted.columns)
        return {*wanted.columns} <= {*self.wanted.columns} and levels == {*wanted.levels}

    def add(self, batch: Any, size: int) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.size += size


def read_batches(part: FilePart, wanted: Batches, kept: KeptParts | None = None) -> Generator[Any]:
    """Yield the record batches of a part; memory holds little more than one at a time.

    Their columns are in the requested order, under tidy names. So many small row groups are joined
    that batches are as large as those of a large one; ``kept`` holds them until the next pass.
    """
    left = part.rows if wanted.head is None else wanted.head
    with closing(_joined(part, wanted, kept)) as batches:
        for batch in batches:
            taken = batch.slice(0, left)
            left -= taken.num_rows
            yield taken
            if left <= 0:
                return


def _joined(part: FilePart, wanted: Batches, kept: KeptParts | None) -> Generator[Any]:
    """Yield batches of whole blocks, from memory if a pass before has kept them."""
    kept = kept if part.merged else None
    if kept is not None and (known := kept.find(part, wanted)) is not None:
        for run in part.runs:
            with explain_failures(run.file.path, scanned=True):
                _refuse_changed(run.file)
        yield from whole_blocks(iter(known), wanted.block_rows)
        return
    several = wanted.batch_rows() if part.merged else 1
    size = max(several // wanted.block_rows, 1) * wanted.block_rows
    stored = (batch for run in part.runs for batch in _run_batches(run, wanted))
    with closing(stored):
        batches: Iterator[Any] = whole_blocks(stored, size)
        if kept is not None and wanted.head is None:
            batches = kept.keep(part, wanted, batches)
        yield from batches


def _refuse_changed(stored: StoredFile) -> None:
    now = stored.path.stat()
    if (now.st_size, now.st_mtime_ns) != (stored.size, stored.changed):
        raise DataError(
            f"{shown(stored.path)} changed since the rows were scanned; wait until it is "
            "complete, and scan again"
        )


def _run_batches(run: Run, wanted: Batches) -> Generator[Any]:
    """Yield the record batches of row groups of a file, as they are stored, or one table."""
    pa, pq = arrow()
    stored = run.file
    raw = _stored(stored, wanted.columns)
    names = list(wanted.columns)
    left = run.rows
    with explain_failures(stored.path, scanned=True):
        _refuse_changed(stored)
        texts = _texts(stored, run.groups, raw, _stored(stored, wanted.levels))
        all_groups = len(run.groups) == len(stored.group_rows)
        # With a memory map, a file that is cut off while it is read would crash the process.
        small = all_groups and stored.size <= _SMALL_FILE
        with pq.ParquetFile(
            pa.BufferReader(_content(stored)) if small else stored.path,
            metadata=None if small else footer_of(stored.path, stored.size, stored.changed),
            read_dictionary=texts.shared,
            memory_map=False,
            pre_buffer=False,
            buffer_size=wanted.buffer(),
        ) as file:
            batches: Iterator[Any]
            if wanted.whole and not texts.prefixed:
                batches = iter([file.read(columns=raw, use_threads=wanted.threads)])
            else:
                batches = file.iter_batches(
                    _PREFIXED_ROWS if texts.prefixed else wanted.batch_rows(),
                    row_groups=list(run.groups),
                    columns=raw,
                    use_threads=wanted.threads,
                )
            for batch in _bounded(batches, texts):
                # Otherwise text that is not UTF-8, for example, would fail at its first use.
                batch.validate(full=True)
                batch = _unshared(batch, texts)
                left -= batch.num_rows
                columns = _with_constants(stored, batch, names)
                yield type(batch).from_arrays(columns, names=names)
    if left > 0:
        raise DataError(
            f"{shown(stored.path)} ends {left} rows before its own count of them: it is damaged. "
            "Write it again, or leave it out."
        )


def _content(stored: StoredFile) -> Any:
    """Return all bytes of a file, in memory that Arrow uses again."""
    pa, _ = arrow()
    with pa.OSFile(str(stored.path)) as file:
        return file.read_buffer()


class ParquetEngine(Engine):
    """Files as `scan_files` returns them."""

    n_rows: int

    def __init__(self, files: Sequence[StoredFile], schema: Any) -> None:
        self.files = tuple(files)
        """in the order of their rows"""
        self.local_files = [str(file.path) for file in files]
        self.schema = schema
        self.parts = file_parts(files)
        """the rows, in parts that passes read"""
        self.n_rows = sum(part.rows for part in self.parts)

    @property
    def described(self) -> str:
        """What the rows are from."""
        count = len(self.files)
        return f"{count} Parquet files" if count != 1 else shown(self.files[0].path)

    def read(self, columns: Sequence[str], levels: Sequence[str]) -> Generator[Any]:
        """Yield the batches of all parts."""
        for piece in self.pieces(columns, levels, _ROWS_AT_ONCE):
            yield from piece.batches

    def pieces(
        self,
        columns: Sequence[str],
        levels: Sequence[str],
        block_rows: int,
        rows: int | None = None,
        heads: Mapping[int, int] | None = None,
        kept: KeptParts | None = None,
    ) -> Generator[Piece]:
        """Yield the parts, none of which is read yet; their rows depend on the files alone.

        ``kept`` are rows of earlier passes; with them, the next batches of few parts are decoded
        while the caller works on one.
        """
        lengths = {part: stored.rows for part, stored in enumerate(self.parts)}
        if heads is not None:
            lengths = {part: head for part, head in sorted(heads.items()) if head}
        ahead = False
        if kept is not None and sum(lengths.values()) >= _ROWS_FOR_THREADS:
            # Asking the system for its cores takes time, too.
            threads = workers()
            ahead = threads > 1 and len(lengths) < 2 * threads
        for number, length in lengths.items():
            part, head = self.parts[number], None if heads is None else length
            wanted = Batches(tuple(columns), tuple(levels), block_rows, head, threads=ahead)
            batches = read_batches(part, wanted, kept)
            yield Piece(number, part.start, _ahead(batches) if ahead else batches)

    def load(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield whole files, which takes less time than all of their batches."""
        return (read_file(file, columns) for file in self.files)

    def sample(self, columns: Sequence[str], rows: int) -> list[Any]:
        """Return the first rows of some row groups; no other is read."""
        pa, _ = arrow()
        groups = file_parts(self.files, most=0)
        groups = groups[:: -(-len(groups) // _SAMPLE_GROUPS)]
        share = min(rows / sum(group.rows for group in groups), 1.0)
        parts: list[Any] = []
        for group in groups:
            wanted = Batches(tuple(columns), (), 1, max(int(share * group.rows), 1), threads=True)
            parts += [pa.Table.from_batches([batch]) for batch in read_batches(group, wanted)]
        return parts

    def ranges(self, names: Sequence[str]) -> dict[str, Range]:
        """Return what the footers know; only columns without statistics take a pass."""
        ranges, unknown = value_ranges(self.files, names)
        return ranges | super().ranges(unknown)


class ParquetRows(ArrowRows):
    """Rows in Parquet files; `scan` and `scan_parquet` make them."""

    engine: ParquetEngine
    reads_parts = True

    def __init__(
        self,
        engine: ParquetEngine,
        asked: ScanColumns,
        sources: Sequence[str],
        encoding: Encoding | None,
    ) -> None:
        super().__init__(engine, asked, sources, encoding)
        self.paths: tuple[Path, ...] = tuple(file.path for file in engine.files)
        """the files, in the order of their rows"""
        self._kept = KeptParts()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.engine.n_rows

    def __len__(self) -> int:
        return self.n_rows

    def _uses_threads(self, reading: Reading) -> bool:
        """Whether there are enough rows to be worth the start of threads."""
        heads = reading.heads
        rows = self.n_rows if heads is None else sum(heads.values())
        return rows >= _ROWS_FOR_THREADS and super()._uses_threads(reading)

    def _pieces(
        self, columns: Sequence[str], levels: Sequence[str], reading: Reading
    ) -> Generator[Piece]:
        block_rows, heads = reading.block_rows, reading.heads
        return self.engine.pieces(columns, levels, block_rows, heads=heads, kept=self._kept)

    def _edges(self, part: int) -> Sequence[int]:
        return list(accumulate(run.rows for run in self.engine.parts[part].runs))

    def _place(self, part: int, start: int) -> str:
        return self.engine.parts[part].place(start)


def _ahead(batches: Generator[Any]) -> Generator[Any]:
    """Decode the next batch in a thread while the caller works on one."""
    with closing(batches), ThreadPoolExecutor(1) as pool:
        upcoming = pool.submit(next, batches, None)
        while (batch := upcoming.result()) is not None:
            upcoming = pool.submit(next, batches, None)
            yield batch

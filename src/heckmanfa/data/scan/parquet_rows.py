"""Rows in Parquet files of any number and size, which every pass reads again.

A row group of a file is a part, or several small ones are. Threads work on several parts at once,
each a batch at a time, so memory does not grow with the data. `scan_parquet` reads footers and
columns of text; a fit reads the columns that it needs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import Any

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.found_files import PathLike, find_files
from heckmanfa.data.row_sources import Chunk, Reading, Task
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.data.scan.engines import Engine, Piece, Range
from heckmanfa.data.scan.parquet_files import StoredFile, arrow, scan_files, value_ranges
from heckmanfa.data.scan.parquet_parts import (
    Batches,
    KeptParts,
    file_parts,
    read_batches,
    read_columns,
)
from heckmanfa.data.scan.scan_columns import ScanColumns
from heckmanfa.data.threads import workers
from heckmanfa.text.printable import shown

# Fewer rows are finished before threads have started.
_ROWS_FOR_THREADS = 2**14


class ParquetRows(ArrowRows):
    """Rows in Parquet files; `scan` and `scan_parquet` make them."""

    engine: ParquetEngine

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
        self._parts = engine.parts
        self._kept = KeptParts()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.engine.n_rows

    def __len__(self) -> int:
        return self.n_rows

    def run(self, task: Task, reading: Reading) -> Iterator[Any]:
        """Yield ``task(part, chunks)`` for every part, in the order of the parts."""
        self._refuse_outcome()
        parts = [part for part in range(len(self._parts)) if reading.head(part) != 0]
        rows = sum(reading.head(part) or self._parts[part].rows for part in parts)
        threads = workers() if rows >= _ROWS_FOR_THREADS else 1
        # If parts are too few to keep all threads busy, one decodes while another works.
        ahead = threads > 1 and len(parts) < 2 * threads

        def work(part: int, stop: Event) -> Any:
            return task(part, self._chunks(part, reading, stop, ahead=ahead))

        yield from self._run(work, parts, threads=threads > 1 and len(parts) > 1)

    def _chunks(self, part: int, reading: Reading, stop: Event, *, ahead: bool) -> Iterator[Chunk]:
        """Read a part block by block."""
        sources = self._sources_read(reading)
        columns, levels = self._columns_read(sources)
        wanted = Batches(columns, levels, reading.block_rows, reading.head(part), threads=ahead)
        with ExitStack() as stack:
            source = read_batches(self._parts[part], wanted, self._kept)
            stack.callback(source.close)
            batches: Iterator[Any] = source
            if ahead:
                batches = _ahead(source, stack.enter_context(ThreadPoolExecutor(1)))
            yield from self._cut(part, batches, sources, reading, stop)

    def _edges(self, part: int) -> Sequence[int]:
        return list(accumulate(run.rows for run in self._parts[part].runs))

    def _place(self, part: int, start: int) -> str:
        return self._parts[part].place(start)


def _ahead(batches: Iterator[Any], pool: ThreadPoolExecutor) -> Iterator[Any]:
    """Decode the next batch in a thread while the caller works on one."""
    upcoming = pool.submit(next, batches, None)
    while True:
        batch = upcoming.result()
        if batch is None:
            return
        upcoming = pool.submit(next, batches, None)
        yield batch


def scan_parquet(
    path: PathLike | Sequence[PathLike],
    outcome: str,
    features: Sequence[str] | None = None,
    *,
    selected: str | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    missing: str = "error",
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    reference: Mapping[str, Any] | None = None,
    encoding: Encoding | None = None,
) -> ParquetRows:
    """Return the rows of Parquet files, which may be larger than memory, for a fit.

    It is `scan` for Parquet files of this machine, and returns the same rows.

    Parameters
    ----------
    path : str, path, or sequence of these
        Files, folders (whose files are found at any depth) and patterns such as
        ``"data/*.parquet"``. The files are read in sorted order, each once. Folders named
        ``key=value`` below a folder or a wildcard are columns (Hive partitions).
    outcome : str
        The column to predict; null or NaN where it was not observed. For `HeckmanProbit`, it
        may hold any two numbers, booleans, or two texts (where ``""``, ``"NA"``, ``"?"`` and the
        like are missing, as in other columns of text), which one pass finds.
    features : sequence of str, optional
        Columns of either equation; by default all columns without another role. The file's schema
        decides: booleans and decimals are numbers. Text and dictionaries, even if they spell
        numbers, become dummies named ``column[level]`` for each level but the first, in one pass
        over these columns. A search moves the dummies of a column together unless its
        ``feature_groups`` name some of them. Wherever a model names features, the column's name
        stands for all of its dummies.
    selected : str, optional
        Column that says who is selected: booleans, 0 and 1, or words such as yes and no. By
        default, rows with an outcome are selected.
    sample_weight, groups : str, optional
        Columns of weights, and of clusters for ``cov_type="cluster"``.
    missing : {"error", "drop"}
        Whether rows that lack a feature are refused, or left out and counted. Infinite values
        are always refused.
    categorical, numeric : sequence of str
        Columns to take as categories, or as numbers, whatever their type.
    reference : dict, optional
        The reference level of some categories, as in ``{"region": "north"}``.
    encoding : Encoding, optional
        How columns become features, if that was learned before.

    Returns
    -------
    ParquetRows
        The only argument of ``fit``. ``names`` are the features; ``encoding`` makes the same
        features from other tables.

    Examples
    --------
    >>> from heckmanfa import Heckman, scan_parquet  # doctest: +SKIP
    >>> rows = scan_parquet("wages/*.parquet", outcome="lwage")  # doctest: +SKIP
    >>> Heckman(["educ", "exper"]).fit(rows)  # doctest: +SKIP
    """
    asked = ScanColumns(
        outcome=outcome,
        features=features,
        selected=selected,
        sample_weight=sample_weight,
        groups=groups,
        missing=missing,
        categorical=categorical,
        numeric=numeric,
        reference=reference,
        encoding=encoding,
    )
    engine, sources, learned = asked.opened(
        lambda needed: ParquetEngine(*scan_files(find_files(path), needed))
    )
    return ParquetRows(engine, asked, sources, learned)


_ROWS_AT_ONCE = 2**13
_SAMPLE_GROUPS = 256


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
        self, columns: Sequence[str], levels: Sequence[str], block_rows: int
    ) -> Generator[Piece]:
        """Yield the parts, none of which is read yet."""
        wanted = Batches(tuple(columns), tuple(levels), block_rows, head=None, threads=False)
        for part in self.parts:
            yield Piece(part.start, read_batches(part, wanted))

    def load(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield whole files, which takes less time than all of their batches."""
        return (read_columns(file, columns) for file in self.files)

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

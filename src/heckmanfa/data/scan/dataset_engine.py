"""Datasets of pyarrow as an engine: somebody's own, or files anywhere that a scan has found."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from heckmanfa.data.arrow.engines import Engine, tidy_columns, tidy_schema
from heckmanfa.data.scan.places import FilePlaces
from heckmanfa.errors import needs_extra

# Few batches of one or two fragments are ready before they are asked for, so memory is bounded.
_BATCH_ROWS, _BATCHES_AHEAD, _FRAGMENTS_AHEAD = 2**15, 8, 2


class DatasetEngine(Engine):
    """A `pyarrow.dataset.Dataset`; its filter, if it has one, is applied in every pass."""

    steady = (
        "wait until nobody writes to its files, and make the dataset again, or write its rows to "
        "files of their own (pyarrow.dataset.write_dataset) and scan those"
    )

    def __init__(self, dataset: Any, places: FilePlaces | None = None) -> None:
        self._dataset = dataset
        self._places = places
        """the files, if a scan has found them"""
        self._stored = tidy_columns(dataset.schema.names, self.described)
        self.schema = tidy_schema(dataset.schema, self._stored)
        self.local_files = list(_local_files(dataset))

    @property
    def described(self) -> str:
        """What the rows are from."""
        return "a pyarrow dataset" if self._places is None else self._places.described

    def read(self, columns: Sequence[str], levels: Sequence[str]) -> Generator[Any]:
        """Yield the batches of a scanner."""
        if self._places is not None:
            self._places.refuse_changed()
        scanner = self._dataset.scanner(
            columns=[self._stored[name] for name in columns],
            batch_size=_BATCH_ROWS,
            batch_readahead=_BATCHES_AHEAD,
            fragment_readahead=_FRAGMENTS_AHEAD,
            fragment_scan_options=None if self._places is not None else _options(self._dataset),
        )
        for batch in scanner.to_batches():
            # Otherwise text that is not UTF-8, for example, would fail at its first use.
            batch.validate(full=True)
            yield batch.rename_columns(list(columns))


def _options(dataset: Any) -> Any:
    """Return how somebody's own dataset is read: row groups of Parquet files one after another.

    Otherwise pyarrow fetches all row groups of a file at once, and keeps them until its end.
    """
    import pyarrow.dataset as ds

    parts = getattr(dataset, "children", None) or [dataset]
    formats = [getattr(part, "format", None) for part in parts]
    if not all(isinstance(layout, ds.ParquetFileFormat) for layout in formats):
        return None
    return ds.ParquetFragmentScanOptions(pre_buffer=False)


def _local_files(dataset: Any) -> Iterator[str]:
    import pyarrow.fs as pafs

    for part in getattr(dataset, "children", ()):
        yield from _local_files(part)
    if isinstance(getattr(dataset, "filesystem", None), pafs.LocalFileSystem):
        yield from dataset.files


def is_dataset(source: Any) -> bool:
    """Whether a source is a dataset of pyarrow; it is not imported to find out."""
    if not type(source).__module__.startswith("pyarrow"):
        return False
    with needs_extra("datasets need pyarrow", "parquet"):
        import pyarrow.dataset as ds
    return isinstance(source, ds.Dataset)

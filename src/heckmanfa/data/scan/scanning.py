"""`scan`: rows from wherever they are, for a fit or for predictions."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from operator import and_
from pathlib import Path
from typing import Any

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.paths import FoundFile, PathLike, find_files
from heckmanfa.data.files.sizes import refuse_inflated_batches
from heckmanfa.data.scan.arrow_columns import (
    Needed,
    common_schema,
    kind_of,
    take_all,
    tidy_columns,
    tidy_schema,
)
from heckmanfa.data.scan.arrow_rows import ArrowRows
from heckmanfa.data.scan.engines import DuckDBEngine, Engine, PolarsEngine
from heckmanfa.data.scan.parquet_files import Constant, partition_columns, scan_files
from heckmanfa.data.scan.parquet_rows import ParquetEngine, ParquetRows
from heckmanfa.data.scan.places import (
    FilePlaces,
    PlacedFile,
    find_places,
    is_url,
    reaching,
)
from heckmanfa.data.scan.scan_columns import ScanColumns
from heckmanfa.data.survey import Survey
from heckmanfa.data.threads import in_order
from heckmanfa.errors import DataError, InputError, InputTypeError
from heckmanfa.text.printable import quoted, shown


def scan(
    source: Any,
    outcome: str | None = None,
    features: Sequence[str] | None = None,
    *,
    selected: str | None = None,
    sample_weight: str | None = None,
    groups: str | Sequence[str] | None = None,
    survey: Survey | None = None,
    missing: str = "error",
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    reference: Mapping[str, Any] | None = None,
    encoding: Encoding | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> ArrowRows:
    """Return the rows of files, a dataset, a lazy frame or a relation, for a fit or predictions.

    The rows may be larger than memory. Every pass asks the source again, so filters and joins are
    those of the source, and must read the same rows: one that ends at another row is refused.

    Parameters
    ----------
    source : str, path, sequence of these, Dataset, LazyFrame, or relation
        Parquet or Arrow IPC (Feather) files: paths, folders (whose files are found at any depth),
        patterns such as ``"data/*.parquet"``, and URLs such as ``"s3://bucket/folder"``. Files are
        read in sorted order, each once. Folders named ``key=value`` below a folder or a wildcard
        are columns (Hive partitions): integers if all values are, else text. Or a
        ``pyarrow.dataset.Dataset``, a ``polars.LazyFrame``, or a DuckDB relation.
    outcome : str, optional
        The column to predict; null or NaN where it was not observed. For `HeckmanProbit`, it may
        hold any two numbers, booleans, or two texts (``""``, ``"NA"``, ``"?"`` and the like are
        missing). Without an outcome, the rows can be predicted, but not fitted.
    features : sequence of str, optional
        Columns of either equation; by default all columns without another role. Booleans and
        decimals are numbers. Text, categories and dictionaries, even of numbers, become dummies
        named ``column[level]`` for each level but the reference, in one pass. A search moves the
        dummies of a column together unless its ``feature_groups`` name some of them; in a model,
        the column's name stands for all of its dummies.
    selected : str, optional
        Column of booleans, 0 and 1, or words such as yes and no; by default, who has an outcome.
    sample_weight : str, optional
        Column of weights.
    groups : str or sequence of str, optional
        Column of clusters for ``cov_type="cluster"``, or two of them.
    survey : Survey, optional
        The design of a survey, which names its weights and all other columns of the design. It is
        also the ``cov_type`` of the model.
    missing : {"error", "drop"}
        Whether rows that lack a feature are refused, or left out; infinite values are refused.
    categorical, numeric : sequence of str
        Columns to take as categories, or as numbers, whatever their type.
    reference : dict, optional
        The reference level of some categories, as in ``{"region": "north"}``.
    encoding : Encoding, optional
        How columns become features, if that was learned before: that of other rows or of a model.
    filesystem : pyarrow.fs.FileSystem or fsspec file system, optional
        Where the paths are; by default this machine, or what a URL says to pyarrow or fsspec.
    storage_options : dict, optional
        Options of the fsspec file system of a URL, such as a key and its secret.

    Returns
    -------
    ArrowRows
        The only argument of ``fit``. ``names`` are the features; ``encoding`` makes the same ones
        from other tables. If ``order_is_stable``, a fit has the same bits every time, on any number
        of threads. Otherwise, as after a join or an aggregation, estimates agree up to rounding,
        and what samples rows, such as `HeckmanFA`, draws other ones.

    Examples
    --------
    >>> import polars as pl  # doctest: +SKIP
    >>> from heckmanfa import Heckman, scan  # doctest: +SKIP
    >>> adults = pl.scan_parquet("wages/*.parquet").filter(pl.col("age") >= 18)  # doctest: +SKIP
    >>> Heckman(["educ", "exper"]).fit(scan(adults, outcome="lwage"))  # doctest: +SKIP
    """
    roles = (outcome, features, selected, sample_weight, groups)
    asked = ScanColumns(*roles, missing, categorical, numeric, reference, encoding, survey)
    engine, sources, learned = asked.opened(
        lambda needed: open_engine(
            source, needed, filesystem=filesystem, storage_options=storage_options
        )
    )
    if isinstance(engine, ParquetEngine):
        return ParquetRows(engine, asked, sources, learned)
    return ArrowRows(engine, asked, sources, learned)


def scan_parquet(
    path: PathLike | Sequence[PathLike],
    outcome: str,
    features: Sequence[str] | None = None,
    *,
    selected: str | None = None,
    sample_weight: str | None = None,
    groups: str | Sequence[str] | None = None,
    survey: Survey | None = None,
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
    sample_weight : str, optional
        Column of weights.
    groups : str or sequence of str, optional
        Column of clusters for ``cov_type="cluster"``, or two of them.
    survey : Survey, optional
        The design of a survey, which names its weights and all other columns of the design. It is
        also the ``cov_type`` of the model.
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
    roles = (outcome, features, selected, sample_weight, groups)
    asked = ScanColumns(*roles, missing, categorical, numeric, reference, encoding, survey)
    engine, sources, learned = asked.opened(
        lambda needed: ParquetEngine(*scan_files(find_files(path), needed))
    )
    return ParquetRows(engine, asked, sources, learned)


def open_engine(
    source: Any,
    needed: Needed = take_all,
    *,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Engine:
    """Return what gives the rows of a source of `scan`, or of an engine itself.

    ``needed`` gets the schema and the name of the first file, and returns the columns that matter,
    or None for all.
    """
    if _are_paths(source):
        return open_files(source, needed, filesystem, storage_options)
    if filesystem is not None or storage_options is not None:
        raise InputError("filesystem and storage_options are for files; this source is none")
    engine = _engine_of(source)
    needed(engine.schema, engine.described)
    return engine


def is_source(source: Any) -> bool:
    """Whether `scan` takes an object that is not a path."""
    return isinstance(source, Engine | ArrowRows) or _engine_class(source) is not None


def _are_paths(source: Any) -> bool:
    paths = source if isinstance(source, list | tuple | set | frozenset) else [source]
    return all(isinstance(path, str | os.PathLike) for path in paths)


def _engine_class(source: Any) -> Callable[[Any], Engine] | None:
    """Return the engine for somebody's own object; None if there is none.

    No library is imported to find out: whoever passes such an object has imported it.
    """
    library = type(source).__module__.split(".")[0].removeprefix("_")
    for module, name, engine in _ENGINES:
        if library == module.split(".")[0]:
            kind = getattr(import_module(module), name)
            return engine if isinstance(source, kind) else None
    return None


def _engine_of(source: Any) -> Engine:
    if isinstance(source, Engine):
        return source
    if isinstance(source, ArrowRows):
        return source.engine
    engine = _engine_class(source)
    if engine is not None:
        return engine(source)
    named = f"{type(source).__module__.split('.')[0]}.{type(source).__qualname__}"
    raise InputTypeError(
        f"scan takes paths and URLs of files, a pyarrow Dataset, a Polars LazyFrame or a DuckDB "
        f"relation; got {named}. Pass a table in memory to fit itself"
    )


def open_files(
    source: PathLike | Sequence[PathLike],
    needed: Needed,
    filesystem: Any,
    options: Mapping[str, Any] | None,
) -> Engine:
    """Return the engine of files; ``needed`` is as in `common_schema`."""
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    places = find_places(paths, filesystem, options)
    is_here = filesystem is None and not any(is_url(path) for path in paths)
    if is_here and places.format == "Parquet":
        located = [FoundFile(Path(file.path), file.keys) for file in places.files]
        return ParquetEngine(*scan_files(located, needed))
    if is_here:
        for file in places.files:
            refuse_inflated_batches(Path(file.path))
    return DatasetEngine(*_dataset(places, needed, options))


def _dataset(
    places: FilePlaces, needed: Needed, options: Mapping[str, Any] | None
) -> tuple[Any, FilePlaces]:
    """Return the files as a dataset, with one schema and their partitions as columns."""
    import pyarrow.dataset as ds

    layout = ds.ParquetFileFormat() if places.format == "Parquet" else ds.IpcFileFormat()
    partitions = partition_columns([file.keys for file in places.files])

    def opened(item: tuple[PlacedFile, Mapping[str, Constant]]) -> tuple[Any, Any]:
        file, keys = item
        with reaching(file.name, options):
            fragment = _fragment(layout, file, places.filesystem, keys)
            stored = fragment.physical_schema
            own = {name: column for name, column in keys.items() if name not in stored.names}
            if len(own) < len(keys):
                fragment = _fragment(layout, file, places.filesystem, own)
            return _row_groups(fragment), _with_keys(stored, own)

    made = list(in_order(opened, zip(places.files, partitions, strict=True)))
    names = [file.name for file in places.files]
    raw = [schema for _, schema in made]
    tidy = [tidy_columns(schema.names, name) for name, schema in zip(names, raw, strict=True)]
    schema = common_schema(
        (
            (name, tidy_schema(stored, columns, what=name))
            for name, stored, columns in zip(names, raw, tidy, strict=True)
        ),
        needed,
    )
    return ds.FileSystemDataset(
        [fragment for fragments, _ in made for fragment in fragments],
        _stored_schema(schema, raw, tidy, names),
        layout,
        places.filesystem,
    ), places


def _with_keys(stored: Any, keys: Mapping[str, Constant]) -> Any:
    import pyarrow as pa

    for name, (_, kind) in keys.items():
        stored = stored.append(pa.field(name, kind))
    return stored


def _row_groups(fragment: Any) -> list[Any]:
    """Return the row groups of a Parquet file, which are read one by one; else the file itself.

    Of a whole Parquet file, pyarrow fetches all row groups at once, which a store answers quickly
    and memory may not hold.
    """
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else list(split())


def _fragment(layout: Any, file: PlacedFile, store: Any, keys: Mapping[str, Constant]) -> Any:
    """Return a file as a fragment whose rows all have the values of its partitions."""
    import pyarrow.dataset as ds

    known = [
        ds.field(name).is_null() if value is None else ds.field(name) == value
        for name, (value, _) in keys.items()
    ]
    expression = reduce(and_, known) if known else None
    return layout.make_fragment(file.path, store, expression)


def _stored_schema(
    schema: Any, raw: Sequence[Any], tidy: Sequence[Mapping[str, str]], names: Sequence[str]
) -> Any:
    """Return a schema of tidy names under the names in the files, with types that fit all files."""
    import pyarrow as pa

    fields = []
    for field in schema:
        stored = [columns.get(field.name) for columns in tidy]
        other = next((index for index, name in enumerate(stored) if name != stored[0]), None)
        if other is not None and stored[other] is not None:
            raise DataError(
                f"column {quoted(field.name)} is called {quoted(stored[other])} in "
                f"{shown(names[other])}, and {quoted(stored[0])} in {shown(names[0])}; write it "
                "with one name"
            )
        types = {
            own.field(name).type for own, name in zip(raw, stored, strict=True) if name is not None
        }
        kind = field.type
        if len(types) > 1 and kind_of(kind) == "number":
            # Integers in one file and fractions in another are numbers in both.
            kind = pa.float64()
        first = next(name for name in stored if name is not None)
        fields.append(pa.field(first, kind, metadata=field.metadata))
    return pa.schema(fields)


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


_ENGINES: tuple[tuple[str, str, Callable[[Any], Engine]], ...] = (
    ("pyarrow.dataset", "Dataset", DatasetEngine),
    ("polars", "LazyFrame", PolarsEngine),
    ("duckdb", "DuckDBPyRelation", DuckDBEngine),
)
"""where the classes of objects are that `scan` takes, and their engines"""

"""`scan`: rows from wherever they are, for a fit or for predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.scan.arrow_columns import Needed, take_all
from heckmanfa.data.scan.arrow_rows import ArrowRows, EngineRows
from heckmanfa.data.scan.engines import Engine
from heckmanfa.data.scan.file_engines import DatasetEngine, is_dataset, open_files
from heckmanfa.data.scan.parquet_rows import ParquetEngine, ParquetRows
from heckmanfa.data.scan.query_engines import DuckDBEngine, PolarsEngine, is_lazy_frame, is_relation
from heckmanfa.data.scan.scan_columns import ScanColumns
from heckmanfa.errors import InputError, InputTypeError


def scan(
    source: Any,
    outcome: str | None = None,
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
    sample_weight, groups : str, optional
        Columns of weights, and of clusters for ``cov_type="cluster"``.
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
    return _rows_of(asked, source, filesystem=filesystem, storage_options=storage_options)


def _rows_of(asked: ScanColumns, source: Any, **where: Any) -> ArrowRows:
    """Return the rows that a scan asks for, of whatever engine opens their source."""
    engine, sources, learned = asked.opened(lambda needed: open_engine(source, needed, **where))
    if isinstance(engine, ParquetEngine):
        return ParquetRows(engine, asked, sources, learned)
    return EngineRows(engine, asked, sources, learned)


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
    known = isinstance(source, Engine | ArrowRows)
    return known or is_dataset(source) or is_lazy_frame(source) or is_relation(source)


def _are_paths(source: Any) -> bool:
    paths = source if isinstance(source, list | tuple | set | frozenset) else [source]
    return all(isinstance(path, str | os.PathLike) for path in paths)


def _engine_of(source: Any) -> Engine:
    if isinstance(source, Engine):
        return source
    if is_dataset(source):
        return DatasetEngine(source)
    if is_lazy_frame(source):
        return PolarsEngine(source)
    if is_relation(source):
        return DuckDBEngine(source)
    if isinstance(source, ArrowRows):
        return source.engine
    raise InputTypeError(
        f"scan takes paths and URLs of files, a pyarrow Dataset, a Polars LazyFrame or a DuckDB "
        f"relation; got {_named(source)}. Pass a table in memory to fit itself"
    )


def _named(source: Any) -> str:
    return f"{type(source).__module__.split('.')[0]}.{type(source).__qualname__}"

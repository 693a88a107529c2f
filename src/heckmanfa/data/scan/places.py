"""Where files are: on this machine, or in a store that pyarrow or fsspec can read.

A user names them by path, folder, pattern or URL. What is found is a list of files on one file
system of pyarrow. Passwords in URLs and options are for that file system alone: nothing here keeps
or shows them.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from heckmanfa.data.files.paths import (
    PARQUET_ENDINGS,
    PathLike,
    find_files,
    folders_below,
    is_hidden,
    keys_of,
    local_path,
    matches,
    refuse_empty_folder,
    refuse_no_match,
    refuse_other_format,
)
from heckmanfa.data.scan.engines import explained
from heckmanfa.errors import DataError, InputError, InputTypeError, needs_extra
from heckmanfa.text.printable import quoted, shown

Format = Literal["Parquet", "Arrow IPC"]

IPC_ENDINGS = (".arrow", ".feather", ".ipc")
"""endings of Arrow IPC files that are read from a folder"""
ENDINGS = (*PARQUET_ENDINGS, *IPC_ENDINGS)

_IPC_START = b"ARROW1"
# The second is that of encrypted footers.
_PARQUET_STARTS = (b"PAR1", b"PARE")
# What follows the path of a URL; other question marks are wildcards.
_PARAMETERS = re.compile(r"\?(?=[\w.-]+=)")
# A user and a password before the first slash, and more of the password after it; not a port.
_SPLIT_PASSWORD = re.compile(r"[^/@:]*:(?!\d*/)[^/@]*/.*@")


@dataclass(frozen=True)
class PlacedFile:
    """A file on some file system, as it was when it was found."""

    path: str
    """on its file system"""
    name: str
    """for messages: its path or URL, without user and password"""
    keys: Mapping[str, str | None]
    """values of its Hive partitions, as text"""
    size: int | None = None
    changed: int | None = None
    """when it was written, in nanoseconds, if its file system knows"""


@dataclass(frozen=True)
class FilePlaces:
    """Files of one format on one file system."""

    filesystem: Any
    """pyarrow.fs.FileSystem"""
    files: tuple[PlacedFile, ...]
    """in the order of their rows"""
    format: Format

    @property
    def described(self) -> str:
        """The files in a few words."""
        name = shown(self.files[0].name)
        return name if len(self.files) == 1 else f"{len(self.files)} {self.format} files"

    def refuse_changed(self) -> None:
        """Refuse files that are not as they were when they were found."""
        infos = self.filesystem.get_file_info([file.path for file in self.files])
        for file, info in zip(self.files, infos, strict=True):
            if not info.is_file:
                raise DataError(
                    f"{shown(file.name)} is gone since the rows were scanned: put it back, or scan "
                    "again without it"
                )
            if (info.size, info.mtime_ns) != (file.size, file.changed):
                raise DataError(
                    f"{shown(file.name)} changed since the rows were scanned; wait until it is "
                    "complete, and scan again"
                )


def is_url(path: PathLike) -> bool:
    """Whether a path names a file system other than that of this machine."""
    return isinstance(path, str) and "://" in path and not path.startswith("file://")


def is_ipc(path: PathLike) -> bool:
    """Whether a file of this machine is an Arrow IPC file; Feather's first version is none."""
    place = Path(path)
    if place.suffix.lower() not in IPC_ENDINGS or not place.is_file():
        return False
    with place.open("rb") as stream:
        return stream.read(len(_IPC_START)) == _IPC_START


def find_places(
    paths: Sequence[PathLike], filesystem: Any, options: Mapping[str, Any] | None
) -> FilePlaces:
    """Find files by paths, folders, patterns and URLs, in sorted order, each once."""
    with needs_extra("files need pyarrow", "parquet"):
        import pyarrow.fs as pafs
    if not paths:
        raise InputError("no file is named: pass a path, a folder, a pattern, or several of these")
    if filesystem is not None and options is not None:
        raise InputError("filesystem already has its options; leave storage_options out")
    here = isinstance(filesystem, pafs.LocalFileSystem | None)
    if here and not any(is_url(path) for path in paths):
        if options is not None:
            raise InputError("storage_options are for URLs, and these are paths of this machine")
        located = find_files([local_path(path) for path in paths], ENDINGS)
        local = pafs.LocalFileSystem()
        infos = local.get_file_info([str(file.path) for file in located])
        return _placed(
            local,
            [
                PlacedFile(info.path, info.path, file.keys, info.size, info.mtime_ns)
                for file, info in zip(located, infos, strict=True)
            ],
        )
    files: dict[str, PlacedFile] = {}
    used: Any = None
    for path in paths:
        store, place, prefix = _opened(path, filesystem, options)
        if used is not None and store != used:
            raise InputError(
                f"{name_of(path)} is in another store than the file named before it: scan files "
                "of one store at a time, or copy them to one place"
            )
        used = store
        with reaching(name_of(path), options):
            for file in _found(store, place, prefix):
                files.setdefault(file.path, file)
    return _placed(used, [files[name] for name in sorted(files)])


def reaching(name: str, options: Mapping[str, Any] | None = None) -> AbstractContextManager[None]:
    """Explain any failure to reach a file in a store."""
    return explained(
        name,
        options,
        ". Check the address, and that you may read it (filesystem, storage_options)",
    )


def name_of(path: PathLike) -> str:
    """Return a path or URL as it may be shown: without user, password and parameters."""
    if not (isinstance(path, str) and "://" in path):
        return shown(path)
    scheme, _, rest = path.partition("://")
    place = _PARAMETERS.split(rest)[0].lstrip("/")
    if _SPLIT_PASSWORD.match(place):
        # A slash in a password should be written as %2F, but not everybody knows.
        place = place.rpartition("@")[2]
    host, slash, inside = place.partition("/")
    return shown(f"{scheme}://{host.rpartition('@')[2]}{slash}{inside}")


def _opened(
    path: PathLike, filesystem: Any, options: Mapping[str, Any] | None
) -> tuple[Any, str, str]:
    """Return the file system of a path, the path there, and what a name there begins with."""
    import pyarrow as pa
    import pyarrow.fs as pafs

    text = os.fspath(path)
    scheme = text.partition("://")[0] + "://" if "://" in text else ""
    if _SPLIT_PASSWORD.match(text.partition("://")[2]):
        raise InputError(
            f"the password in the address of {name_of(text)} has a slash, which ends it: write %2F "
            "for the slash, or pass the user and the password in storage_options"
        )
    if filesystem is not None:
        return _as_arrow(filesystem), _plain(text.partition("://")[2] or text), scheme
    if "::" in text:
        raise InputError(
            f"{name_of(text)} chains file systems with '::', and a name from elsewhere could so "
            "unpack archives, keep copies or read other files: make the file system with fsspec, "
            "and pass it as filesystem"
        )
    if not scheme:
        raise InputError(
            f"{shown(text)} is a path of this machine, and other files are URLs: scan files of one "
            "store at a time"
        )
    if options is None:
        with reaching(name_of(text)):
            try:
                store, place = pafs.FileSystem.from_uri(text)
            except pa.ArrowInvalid:
                # Not one of pyarrow's own.
                pass
            else:
                return store, place, scheme
    with needs_extra(f"URLs that begin with {quoted(scheme)} need fsspec", "fsspec"):
        from fsspec.core import url_to_fs
    with reaching(name_of(text), options):
        try:
            other, place = url_to_fs(text, **(options or {}))
        except ImportError as error:
            raise InputError(
                f"fsspec cannot read {name_of(text)} yet: {shown(error, 200)}"
            ) from error
        # A path of this file system may be a whole URL.
        prefix = "" if "://" in place else scheme
        return _as_arrow(other), _plain(place), prefix


def _as_arrow(filesystem: Any) -> Any:
    """Return a file system of pyarrow or fsspec as one of pyarrow."""
    import pyarrow.fs as pafs

    if isinstance(filesystem, pafs.FileSystem):
        return filesystem
    if not hasattr(filesystem, "open") or not hasattr(filesystem, "info"):
        raise InputTypeError(
            "filesystem must be a file system of pyarrow or fsspec; got "
            f"{type(filesystem).__name__}"
        )
    return pafs.PyFileSystem(pafs.FSSpecHandler(filesystem))


def _plain(place: str) -> str:
    return place.rstrip("/") or place


def _found(store: Any, place: str, prefix: str) -> Iterator[PlacedFile]:
    """Yield the files that a path, a folder or a pattern names on a file system."""
    import pyarrow.fs as pafs

    info = store.get_file_info([place])[0]
    if info.is_file:
        yield _file(info, prefix, "")
    elif info.type == pafs.FileType.Directory:
        selector = pafs.FileSelector(place, recursive=True)
        files = [
            _file(inside, prefix, place)
            for inside in store.get_file_info(selector)
            if inside.is_file
            and _ending(inside.path) in ENDINGS
            and not is_hidden(PurePosixPath(inside.path).relative_to(place).parts)
        ]
        if not files:
            raise refuse_empty_folder(name_of(prefix + place), ENDINGS)
        yield from files
    elif glob.has_magic(place) and "://" not in place:
        parts = PurePosixPath(place).parts
        fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
        base = str(PurePosixPath(*parts[:fixed])) if fixed else ""
        selector = pafs.FileSelector(base, recursive=True, allow_not_found=True)
        files = [
            _file(inside, prefix, base)
            for inside in store.get_file_info(selector)
            if inside.is_file and matches(PurePosixPath(inside.path).parts, parts)
        ]
        if not files:
            raise refuse_no_match(name_of(prefix + place))
        yield from files
    else:
        raise InputError(
            f"there is no file or folder {name_of(prefix + place)}; check the address, and that "
            "you may list it"
        )


def _file(info: Any, prefix: str, base: str) -> PlacedFile:
    below = PurePosixPath(info.path)
    keys = keys_of(folders_below(below, PurePosixPath(base))) if base else {}
    return PlacedFile(info.path, name_of(prefix + info.path), keys, info.size, info.mtime_ns)


def _ending(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _placed(store: Any, files: Sequence[PlacedFile]) -> FilePlaces:
    """Return files of one format; refuse a mixture."""
    formats: dict[Format, PlacedFile] = {}
    for file in files:
        formats.setdefault(_format_of(store, file), file)
    if len(formats) > 1:
        first, second = formats.values()
        raise InputError(
            f"{shown(first.name)} and {shown(second.name)} are of different formats; scan files of "
            "one format at a time, for example with the pattern *.parquet"
        )
    return FilePlaces(store, tuple(files), next(iter(formats)))


def _format_of(store: Any, file: PlacedFile) -> Format:
    """Return the format of a file, by its ending or else its first bytes."""
    ending = _ending(file.path)
    if ending in ENDINGS:
        return "Parquet" if ending in PARQUET_ENDINGS else "Arrow IPC"
    with reaching(file.name), store.open_input_stream(file.path, compression=None) as stream:
        start = stream.read(len(_IPC_START))
    if start == _IPC_START:
        return "Arrow IPC"
    if not start.startswith(_PARQUET_STARTS):
        raise refuse_other_format(file.name)
    return "Parquet"

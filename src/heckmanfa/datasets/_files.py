"""Where the files of the paper's data sets come from: a folder, the cache, or a download."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from heckmanfa.data.files.outputs import make_folder, outputs
from heckmanfa.errors import DataError

__all__ = ["DataFile", "cache_folder", "find"]


@dataclass(frozen=True)
class DataFile:
    """A file that is not part of the package."""

    name: str
    url: str
    sha256: str
    """of what the source publishes"""
    stripped_sha256: str | None = None
    """of a copy without the columns that ``strip`` drops"""
    strip: Callable[[bytes], bytes] | None = None
    """what is done to a download before it is kept"""


def cache_folder() -> Path:
    """Where downloads are kept."""
    import pooch

    return Path(pooch.os_cache("heckmanfa"))


def find(file: DataFile) -> Path:
    """Return the path of a file, downloaded where it is neither in the folder nor in the cache.

    Parameters
    ----------
    file : DataFile

    Returns
    -------
    Path
        To a file that is known by its sha256.
    """
    known = {one for one in (file.sha256, file.stripped_sha256) if one is not None}
    folder = os.environ.get("HECKMANFA_DATA")
    if folder is not None and (Path(folder) / file.name).exists():
        return _checked(Path(folder) / file.name, file, known)
    cached = cache_folder() / file.name
    seal = cached.with_name(file.name + ".sha256")
    if not cached.exists() or not seal.exists():
        content = _download(file)
        if file.strip is not None:
            content = file.strip(content)
        make_folder(cached.parent)
        # Both or none: an interrupted download is never taken for the file.
        with outputs({"the file": cached, "its sha256": seal}, force=True) as places:
            with places["the file"].writing() as part:
                part.write_bytes(content)
            with places["its sha256"].writing() as part:
                part.write_text(hashlib.sha256(content).hexdigest(), encoding="utf-8")
    return _checked(cached, file, {seal.read_text(encoding="utf-8").strip()})


def _checked(path: Path, file: DataFile, known: set[str]) -> Path:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found not in known:
        raise DataError(
            f"{path} is not the file that was expected: its sha256 is {found}, not "
            f"{' or '.join(sorted(known))}. It is damaged, or another version. Remove it to have "
            f"it downloaded again, or put the file of {file.url} there."
        )
    return path


def _download(file: DataFile) -> bytes:
    import pooch

    advice = (
        f"Put a copy named {file.name} into a folder, and set the environment variable "
        "HECKMANFA_DATA to that folder."
    )
    with TemporaryDirectory() as folder:
        try:
            path = pooch.retrieve(
                file.url, known_hash=f"sha256:{file.sha256}", fname=file.name, path=folder
            )
        except ValueError as error:  # pooch's word for another hash
            raise DataError(
                f"the download of {file.url} is not the file that was expected, whose sha256 is "
                f"{file.sha256}: it is damaged, or the source has changed. Try again. {advice}"
            ) from error
        except Exception as error:  # what a network and a disk can do
            raise DataError(
                f"{file.name} could not be downloaded from {file.url} ({type(error).__name__}: is "
                f"there a network?). {advice}"
            ) from error
        return Path(path).read_bytes()

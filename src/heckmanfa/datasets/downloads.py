"""Files that are not part of the package: from the user's folder, the cache or a download."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from heckmanfa.data.files.outputs import make_folder, outputs
from heckmanfa.errors import DataError


@dataclass(frozen=True)
class DataFile:
    """A file to find or download."""

    name: str
    url: str
    sha256: str
    """hash of what the source publishes"""
    stripped_sha256: str | None = None
    """hash of a copy without the columns that ``strip`` drops"""
    strip: Callable[[bytes], bytes] | None = None
    """applied to a download before it is stored"""


def cache_folder() -> Path:
    """Return the folder of stored downloads."""
    # Imported here because most users never download.
    import pooch

    return Path(pooch.os_cache("heckmanfa"))


def find(file: DataFile) -> Path:
    """Return the path of a file whose hash is known.

    It is downloaded if it is neither in the folder that HECKMANFA_DATA names nor in the cache.
    """
    known = {hash_ for hash_ in (file.sha256, file.stripped_sha256) if hash_ is not None}
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
        # Both or neither: an interrupted download never passes for the file.
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
            f"{path} is not the expected file: its sha256 is {found}, not "
            f"{' or '.join(sorted(known))}. It is damaged or another version. Remove it to "
            f"download it again, or put a copy of {file.url} there."
        )
    return path


def _download(file: DataFile) -> bytes:
    import pooch

    advice = (
        f"Put a copy named {file.name} in a folder and set the environment variable "
        "HECKMANFA_DATA to that folder."
    )
    with TemporaryDirectory() as folder:
        try:
            path = pooch.retrieve(
                file.url, known_hash=f"sha256:{file.sha256}", fname=file.name, path=folder
            )
        except ValueError as error:  # pooch reports another hash so
            raise DataError(
                f"the download of {file.url} is not the expected file, whose sha256 is "
                f"{file.sha256}: it is damaged or the source has changed. Try again. {advice}"
            ) from error
        except Exception as error:  # networks and disks fail in many ways
            raise DataError(
                f"{file.name} could not be downloaded from {file.url} ({type(error).__name__}: is "
                f"there a network?). {advice}"
            ) from error
        return Path(path).read_bytes()

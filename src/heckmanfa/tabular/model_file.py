"""A fitted model in a file that runs nothing when it is read."""

from __future__ import annotations

import hashlib
import io
import json
import os
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import skops.io
from sklearn.base import BaseEstimator

import heckmanfa
from heckmanfa.errors import DataError, HeckmanfaError, InputError
from heckmanfa.outputs import replacing
from heckmanfa.tabular.encoding import Encoding
from heckmanfa.tabular.files import existing

__all__ = ["Saved", "load_model", "save_model"]

_FORMAT = 1
_MANIFEST = "heckmanfa.json"
_SCHEMA = "schema.json"
# What rebuilds plain data and objects by their attributes. Others of skops' call functions.
_LOADERS = frozenset(
    {
        "CachedNode",
        "DictNode",
        "JsonNode",
        "ListNode",
        "NdArrayNode",
        "ObjectNode",
        "RandomGeneratorNode",
        "RandomStateNode",
        "SetNode",
        "TupleNode",
        "TypeNode",
    }
)


@dataclass(frozen=True)
class Saved:
    """What a model file holds."""

    model: Any
    encoding: Encoding
    about: dict[str, Any]
    version: str
    """of heckmanfa, when it was written"""


def save_model(
    path: str | os.PathLike[str],
    model: Any,
    encoding: Encoding,
    about: dict[str, Any],
    *,
    force: bool = False,
) -> None:
    """Write a fitted model, with what is needed to predict for other tables.

    The file is one of skops', a zip of JSON and arrays, with a list of what is in it.

    Parameters
    ----------
    path : str or path
    model : estimator
        Fitted on what ``encoding`` makes of a table.
    encoding : Encoding
    about : dict
        Anything that JSON can say; tuples come back as lists.
    force : bool
        Whether a file that is there already may be replaced.
    """
    features = [str(one) for one in getattr(model, "feature_names_in_", [])]
    strange = [one for one in features if one not in encoding.columns]
    if strange or not features:
        said = f"{strange[0]!r} is none of the encoded columns" if strange else "it has no names"
        raise InputError(f"the model was not fitted on what the encoding makes: {said}")
    try:
        told = json.loads(json.dumps(about))
    except (TypeError, ValueError) as error:
        raise InputError(f"about must hold plain values only: {error}") from error
    try:
        data = skops.io.dumps(
            {"model": _at_rest(model), "encoding": encoding}, compression=ZIP_DEFLATED
        )
    # What skops cannot save fails in the way of its type.
    except Exception as error:
        raise InputError(f"the model cannot be saved: {error}") from error
    foreign = _foreign_types(data)
    if foreign:
        raise InputError(
            f"the model holds what cannot be saved safely: {', '.join(foreign)}; give parameters "
            "as plain lists and numbers"
        )
    buffer = io.BytesIO(data)
    with ZipFile(buffer, "a", compression=ZIP_DEFLATED) as archive:
        manifest = {
            "format": _FORMAT,
            "version": heckmanfa.__version__,
            "model": type(model).__name__,
            "features": features,
            "about": told,
            "sha256": _digest(archive),
        }
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))
    with replacing(path, force) as part:
        part.write_bytes(buffer.getvalue())


def load_model(path: str | os.PathLike[str]) -> Saved:
    """Read a model that `save_model` wrote, and nothing else.

    Only types that this package defines, and those that skops trusts, are made; a file that asks
    for another is refused before anything is. That a file was changed by accident is noticed;
    whoever means to change coefficients can, so take models from people you trust.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Saved
    """
    path = existing(path)
    try:
        return _load(path)
    except HeckmanfaError:
        raise
    except BadZipFile as error:
        raise DataError(
            f"{path} is not a model file, or is damaged; models are written by heckmanfa fit"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    # A file that was tampered with can make a reader fail in any way.
    except Exception as error:
        raise DataError(
            f"{path} cannot be loaded ({type(error).__name__}): it is damaged or was changed"
        ) from error


def _load(path: Path) -> Saved:
    data = path.read_bytes()
    with ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if _MANIFEST not in names or _SCHEMA not in names:
            raise DataError(f"{path} is not a model file of heckmanfa")
        manifest = json.loads(archive.read(_MANIFEST))
        _refuse_newer(manifest, path)
        foreign = _foreign_types(data)
        if foreign:
            raise DataError(
                f"{path} was not written by heckmanfa: it asks for {', '.join(foreign[:5])}, and "
                "nothing of it was loaded"
            )
        if len(set(names)) < len(names) or _digest(archive) != manifest["sha256"]:
            raise DataError(f"{path} was changed after it was written; nothing of it was loaded")
    content = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    model, encoding = content["model"], content["encoding"]
    if not (isinstance(model, BaseEstimator) and isinstance(encoding, Encoding)):
        raise DataError(f"{path} is not a model file of heckmanfa: it holds no model")
    return Saved(model, encoding, manifest["about"], manifest["version"])


def _at_rest(model: Any) -> Any:
    """Return a model without what its owner asked of scikit-learn's metadata routing.

    Such requests are about the code around a model, and refer back to it.
    """
    model = copy(model)
    vars(model).pop("_metadata_request", None)
    return model


def _refuse_newer(manifest: dict[str, Any], path: Path) -> None:
    theirs, ours = str(manifest["version"]), heckmanfa.__version__
    if int(theirs.split(".")[0]) > int(ours.split(".")[0]) or manifest["format"] > _FORMAT:
        raise DataError(
            f"{path} was written by heckmanfa {theirs}; this is {ours}: upgrade with pip install "
            "--upgrade heckmanfa"
        )


def _digest(archive: ZipFile) -> str:
    """Return the sha256 of every member but the manifest."""
    total = hashlib.sha256()
    for name in sorted({*archive.namelist()} - {_MANIFEST}):
        total.update(f"{name} {hashlib.sha256(archive.read(name)).hexdigest()}\n".encode())
    return total.hexdigest()


def _foreign_types(data: bytes) -> list[str]:
    """Return the types that a file asks for and nobody vouches for."""
    with ZipFile(io.BytesIO(data)) as archive:
        called = sorted(_called(json.loads(archive.read(_SCHEMA))))
    return called or [one for one in skops.io.get_untrusted_types(data=data) if not _is_ours(one)]


def _called(state: Any) -> set[str]:
    """Return what a file would call rather than rebuild."""
    if isinstance(state, list):
        return {one for part in state for one in _called(part)}
    if not isinstance(state, dict):
        return set()
    found = {one for part in state.values() for one in _called(part)}
    if state.get("__loader__", "JsonNode") not in _LOADERS:
        found.add(f"{state.get('__module__')}.{state.get('__class__')}")
    return found


def _is_ours(name: str) -> bool:
    """Whether a name is that of a class defined in this package.

    What a module of this package has merely imported, functions among it, is not.
    """
    module, _, last = name.rpartition(".")
    if module.split(".")[0] != "heckmanfa" or any(one.startswith("__") for one in name.split(".")):
        return False
    try:
        found = getattr(import_module(module), last)
    except (ImportError, AttributeError):
        return False
    return isinstance(found, type) and found.__module__ == module

"""A fitted model in a file that runs nothing when it is read."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import heckmanfa
from heckmanfa.analysis.archive import LARGEST_FILE, read_members
from heckmanfa.analysis.revival import MODELS, Revival, UnlistedError, UnsoundError
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.outputs import replacing
from heckmanfa.data.files.table_files import existing
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.stored_formulas import check_design
from heckmanfa.errors import DataError, FormulaError, HeckmanfaError, InputError, InputTypeError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import attributes
from heckmanfa.estimators.scoring import ScoredRegressor, publish
from heckmanfa.fit import Origin
from heckmanfa.text.printable import quoted, shown

_FORMAT = 1
# Characters of the names of all the columns that an encoding makes.
_LONGEST_NAMES = 2**25
_MANIFEST = "heckmanfa.json"
_SCHEMA = "schema.json"
_COLUMN_LISTS = ("prediction_features", "selection_features", "always", "never", "feature_groups")


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
    encoding: Encoding | None = None,
    about: dict[str, Any] | None = None,
    *,
    force: bool = False,
) -> None:
    """Write a fitted model, with what is needed to predict for other tables.

    The file has the format of skops, a zip of JSON and arrays, with a manifest.

    Parameters
    ----------
    path : str or path
    model : estimator
        Fitted on columns that have names.
    encoding : Encoding, optional
        The encoding that made these columns; None if the table held them as numbers.
    about : dict, optional
        Anything that JSON can say; tuples come back as lists.
    force : bool
        Whether a file that is there already may be replaced.
    """
    _refuse_no_model(path, model)
    design = _design(model)
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    if not names:
        raise InputError(
            "the model was fitted on columns without names, and a file goes by names: fit it on a "
            "data frame"
        )
    if design is not None:
        _check_formulas(design, names)
    encoding = _checked_encoding(encoding, names if design is None else design.variables(()))
    features = names if design is None else design.variables(encoding.columns)
    strange = [name for name in features if name not in encoding.columns]
    if strange:
        raise InputError(
            "the model was not fitted on what the encoding makes: "
            f"{quoted(strange[0])} is none of the encoded columns"
        )
    try:
        told = json.loads(json.dumps(about or {}))
    except (TypeError, ValueError) as error:
        raise InputError(f"about must hold plain values only: {error}") from error
    import skops.io  # takes longer to import than a table to read

    try:
        data = skops.io.dumps(
            {"model": _at_rest(model), "encoding": encoding}, compression=ZIP_DEFLATED
        )
    # What skops cannot save fails in the way of its type.
    except Exception as error:
        raise InputError(f"the model cannot be saved: {error}") from error
    buffer = io.BytesIO(data)
    with ZipFile(buffer, "a", compression=ZIP_DEFLATED) as archive:
        manifest = {
            "format": _FORMAT,
            "version": heckmanfa.__version__,
            "model": type(model).__name__,
            "features": names,
            "about": told,
            "sha256": _digest({name: archive.read(name) for name in archive.namelist()}),
        }
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))
    _check_readable(buffer.getvalue())
    with replacing(path, force) as part:
        part.write_bytes(buffer.getvalue())


def _refuse_no_model(path: Any, model: Any) -> None:
    """Refuse a path that is not one, and a model that is not fitted."""
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(
            f"path must be a text or a path; got a {type(path).__name__}: call "
            "save_model(path, model)"
        )
    if not isinstance(model, ScoredRegressor):
        raise InputTypeError(
            "save_model keeps fitted models of heckmanfa; got "
            + ("None" if model is None else f"a {type(model).__name__}")
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InputError(f"this {type(model).__name__} is not fitted: call fit first") from error


def _checked_encoding(encoding: Any, columns: list[str]) -> Encoding:
    """Return the encoding; without one, that which keeps the columns of the model."""
    if encoding is None:
        return Encoding.plain(columns)
    if isinstance(encoding, Encoding):
        return encoding
    if isinstance(encoding, tuple) and encoding and isinstance(encoding[0], Encoding):
        raise InputTypeError(
            "Encoding.learn returns an encoding and the encoded table: pass the first of them"
        )
    raise InputTypeError(f"encoding must be an Encoding or None; got a {type(encoding).__name__}")


def _check_formulas(design: FormulaDesign, names: list[str]) -> None:
    try:
        check_design(design, names)
    except FormulaError as error:
        raise InputError(
            f"the model cannot be saved: {error}. Make that column in the data before the fit, or "
            "keep the model by pickle"
        ) from error


def _check_readable(data: bytes) -> None:
    """Refuse to write a file that could not be read again."""
    try:
        _read(data, Path("the file"))
    except UnlistedError as error:
        raise InputError(
            f"the model holds what cannot be saved safely: {error}; give parameters as plain "
            "lists and numbers"
        ) from error
    except (UnsoundError, DataError) as error:
        raise InputError(f"the model cannot be saved: {error}") from error


def load_model(path: str | os.PathLike[str]) -> Saved:
    """Read a model that `save_model` wrote, and nothing else.

    Plain data, arrays and the classes that models are made of are put together by this package;
    a file that asks for anything else is refused before anything is made. A formula in it may
    call listed functions only, which is checked before it is evaluated. That a file was changed
    by accident is noticed; whoever means to change coefficients can, so take models from people
    you trust.

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
            f"{shown(path)} is not a model file, or is damaged; models are written by heckmanfa fit"
        ) from error
    except OSError as error:
        raise DataError(f"{shown(path)} cannot be read: {error.strerror or error}") from error
    # A file that was tampered with can make a reader fail in any way.
    except Exception as error:
        raise DataError(
            f"{shown(path)} cannot be loaded ({type(error).__name__}): it is damaged or was changed"
        ) from error


def _load(path: Path) -> Saved:
    if not path.is_file():
        raise DataError(f"{shown(path)} is not a model file: it is no regular file")
    # The size first: a reader makes room for what it is asked for, whether it is there or not.
    with path.open("rb") as stream:
        data = stream.read(min(path.stat().st_size, LARGEST_FILE) + 1)
    try:
        return _read(data, path)
    except UnlistedError as error:
        raise DataError(
            f"{shown(path)} was not written by heckmanfa: it asks for {error}, and nothing of it "
            "was loaded"
        ) from error
    except UnsoundError as error:
        raise DataError(f"{shown(path)} is damaged or was changed: {error}") from error


def _read(data: bytes, path: Path) -> Saved:
    """Take a file apart, check every part, and put the model together."""
    members = read_members(data, path, _MANIFEST, _SCHEMA)
    manifest = members.manifest
    _refuse_newer(manifest, path)
    content = Revival(members)
    content.refuse_unlisted()
    if _digest(members.raw) != manifest["sha256"]:
        raise DataError(f"{shown(path)} was changed after it was written; nothing of it was loaded")
    parts = content.make()
    model, encoding = parts["model"], parts["encoding"]
    if not (type(model).__name__ in MODELS and isinstance(encoding, Encoding)):
        raise DataError(f"{shown(path)} is not a model file of heckmanfa: it holds no model")
    _restore(model)
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if names != manifest["features"] or not isinstance(manifest["about"], dict):
        raise UnsoundError("it does not list the features of the model")
    design = _design(model)
    if design is not None:
        try:
            check_design(design, names)
        except FormulaError as error:
            raise DataError(
                f"{shown(path)} asks for more than a model file may: {error}; nothing of it was "
                "evaluated"
            ) from error
    _try_out(model, names)
    _check_names(encoding)
    _check_encoding(encoding, names if design is None else design.variables(encoding.columns))
    return Saved(model, encoding, manifest["about"], str(manifest["version"]))


def _design(model: Any) -> FormulaDesign | None:
    return model.fit_.origin.design if isinstance(model, SelectionModel) else None


def _restore(model: Any) -> None:
    """Set the public attributes of a model that was read, and refuse one without a fit."""
    if isinstance(model, SelectionModel):
        if "_fit" not in vars(model):
            raise UnsoundError("its model has no fit")
        spec = model.fit_.spec
        if spec.columns.names != spec.labels or spec.columns.n_features != len(spec.labels):
            raise UnsoundError("its columns are named in two ways")
        publish(model, attributes(model.fit_))


def _check_names(encoding: Encoding) -> None:
    """Refuse an encoding that names something twice: its columns would be any number."""
    named = [encoding.sources, *encoding.levels.values()]
    if any(len({*names}) < len(names) for names in named):
        raise UnsoundError("its encoding names something twice")
    # By arithmetic, before any name is made: each source, and each level, takes room in the file.
    length = sum(
        len(level) + len(name) + 2 for name, levels in encoding.levels.items() for level in levels
    )
    if length > _LONGEST_NAMES:
        raise UnsoundError("its encoding makes names that are too long")


def _check_encoding(encoding: Encoding, needed: list[str]) -> None:
    """Refuse an encoding that does not make what the model needs."""
    sound = (
        encoding.missing in ("drop", "mean")
        and {*encoding.levels} <= {*encoding.sources}
        and all(encoding.levels.values())
        and {*needed} <= {*encoding.columns}
        and (encoding.missing == "drop" or {*encoding.columns} <= {*encoding.means})
    )
    if not sound:
        raise UnsoundError("its encoding does not make the features of its model")


def _try_out(model: Any, names: list[str]) -> None:
    """Refuse a model whose parts do not fit together: it must predict and give its summary."""
    for name in ("support_", "coef_", "selection_coef_"):
        found = getattr(model, name, None)
        if found is not None and np.shape(found) != (len(names),):
            raise UnsoundError(f"{name} is not as long as the list of features")
    row = pd.DataFrame(np.zeros((1, len(names))), columns=names)
    plain = copy.copy(model)
    if _design(model) is not None:
        plain._fit = replace(model.fit_, origin=Origin())
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            plain.predict(row)
            if hasattr(plain, "predict_selection"):
                _unless_refused(lambda: plain.predict_selection(row))
            if hasattr(plain, "summary"):
                _unless_refused(lambda: str(plain.summary()))
            if hasattr(plain, "tidy"):
                _unless_refused(lambda: plain.tidy())
            if hasattr(plain, "diagnostics"):
                _unless_refused(lambda: str(plain.diagnostics()))
    # What does not fit together fails in any way.
    except Exception as error:
        raise UnsoundError(f"its parts do not fit together ({type(error).__name__})") from error


def _unless_refused(question: Callable[[], Any]) -> None:
    """Call something that some valid models refuse."""
    with suppress(HeckmanfaError):
        question()


def _at_rest(model: Any) -> Any:
    """Return a copy of a model that holds plain data.

    What its owner asked of scikit-learn's metadata routing is about the code around the model, and
    refers back to it. Columns may have been named by an index, a series or the like: the file has
    a list.
    """
    model = copy.copy(model)
    vars(model).pop("_metadata_request", None)
    if isinstance(model, SelectionModel):
        # All attributes follow from the fit, and are set from it when the file is read.
        for name in attributes(model.fit_).keys() - {"_fit"}:
            delattr(model, name)
    for name in _COLUMN_LISTS:
        if name in vars(model):
            setattr(model, name, _plain_list(vars(model)[name]))
    return model


def _plain_list(value: Any) -> Any:
    """Return what lists columns as lists; arrays, which a file may hold, and others as they are."""
    if hasattr(value, "as_py"):
        return value.as_py()
    plain = value is None or isinstance(value, str | bytes | np.ndarray | np.generic | dict)
    if plain or not isinstance(value, Iterable):
        return value
    items = [_plain_list(item) for item in value]
    return tuple(items) if isinstance(value, tuple) else items


def _refuse_newer(manifest: dict[str, Any], path: Path) -> None:
    theirs, ours = str(manifest["version"]), heckmanfa.__version__
    if int(theirs.split(".")[0]) > int(ours.split(".")[0]) or manifest["format"] > _FORMAT:
        raise DataError(
            f"{shown(path)} was written by heckmanfa {theirs}; this is {ours}: upgrade with pip "
            "install --upgrade heckmanfa"
        )


def _digest(members: Mapping[str, bytes]) -> str:
    """Return the sha256 of every member but the manifest."""
    total = hashlib.sha256()
    for name in sorted({*members} - {_MANIFEST}):
        total.update(f"{name} {hashlib.sha256(members[name]).hexdigest()}\n".encode())
    return total.hexdigest()

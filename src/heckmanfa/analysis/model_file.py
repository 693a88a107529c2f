"""A fitted model in a file that runs nothing when it is read."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import heckmanfa
from heckmanfa.analysis.archive import LARGEST_FILE, MANIFEST, NO_MODEL_FILE, read_members
from heckmanfa.analysis.revival import MODELS, Revival, UnlistedError, UnsoundError
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.outputs import check_format, existing, replacing
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.stored_formulas import check_design
from heckmanfa.errors import DataError, FormulaError, HeckmanfaError, InputError, InputTypeError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import attributes, publish
from heckmanfa.estimators.scoring import ScoredModel
from heckmanfa.fit import Origin
from heckmanfa.text.printable import quoted, shown

# Files name classes by their modules: format 1 had other modules.
_FORMAT = 2
# Characters of the names of all the columns that an encoding makes.
_LONGEST_NAMES = 2**25
# Days from 1970 to any date with four digits for its year are fewer.
_FAR = 1e7
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
        Anything that JSON can hold; tuples come back as lists.
    force : bool
        Whether an existing file may be replaced.
    """
    _refuse_no_model(path, model)
    check_format(path, ".skops", "save_model")
    design = _design(model)
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    if not names:
        raise InputError(
            "the model was fitted on columns without names, and a file needs names: fit it on a "
            "data frame"
        )
    if design is not None:
        try:
            check_design(design, names)
        except FormulaError as error:
            raise InputError(
                f"the model cannot be saved: {error}. Make that column in the data before the fit, "
                "or keep the model with pickle"
            ) from error
    encoding = _checked_encoding(encoding, names if design is None else design.variables(()))
    features = names if design is None else design.variables(encoding.columns)
    strange = [name for name in features if name not in encoding.columns]
    if strange:
        raise InputError(
            "the model was not fitted on what the encoding makes: "
            f"{quoted(strange[0])} is not an encoded column"
        )
    try:
        plain_about = json.loads(json.dumps(about or {}))
    except (TypeError, ValueError) as error:
        raise InputError(f"about must hold plain values only: {error}") from error
    import skops.io  # takes longer to import than a table to read

    try:
        data = skops.io.dumps(
            {"model": _at_rest(model), "encoding": encoding}, compression=ZIP_DEFLATED
        )
    # Each type that skops cannot save fails in its own way.
    except Exception as error:
        raise InputError(f"the model cannot be saved: {error}") from error
    buffer = io.BytesIO(data)
    with ZipFile(buffer, "a", compression=ZIP_DEFLATED) as archive:
        manifest = {
            "format": _FORMAT,
            "version": heckmanfa.__version__,
            "model": type(model).__name__,
            "features": names,
            "about": plain_about,
            "sha256": _digest({name: archive.read(name) for name in archive.namelist()}),
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
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
    if not isinstance(model, ScoredModel):
        raise InputTypeError(
            "save_model keeps fitted models of heckmanfa; got "
            + ("None" if model is None else f"a {type(model).__name__}")
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InputError(f"this {type(model).__name__} is not fitted: call fit first") from error


def _checked_encoding(encoding: Any, columns: list[str]) -> Encoding:
    """Return the encoding, or if it is None the one that keeps the model's columns."""
    if encoding is None:
        return Encoding.plain(columns)
    if isinstance(encoding, Encoding):
        return encoding
    if isinstance(encoding, tuple) and encoding and isinstance(encoding[0], Encoding):
        raise InputTypeError(
            "Encoding.learn returns an encoding and the encoded table: pass the first of them"
        )
    raise InputTypeError(f"encoding must be an Encoding or None; got a {type(encoding).__name__}")


def _check_readable(data: bytes) -> None:
    """Refuse to write a file that could not be read again."""
    try:
        _read(data, Path("the file"), ["tidy"])
    except UnlistedError as error:
        raise InputError(
            f"the model holds what cannot be saved safely: {error}; give parameters as plain "
            "lists and numbers"
        ) from error
    except (UnsoundError, DataError) as error:
        raise InputError(f"the model cannot be saved: {error}") from error


def load_model(path: str | os.PathLike[str]) -> Saved:
    """Read a model that `save_model` wrote, and nothing else.

    A file may hold plain data, arrays and the classes that models consist of; one that names
    anything else is refused before any object is made. Its formulas may call listed functions
    only, which is checked before they are evaluated. Accidental changes are detected, deliberate
    changes of coefficients are not: load models only from people you trust.
    """
    path = existing(path)
    try:
        if not path.is_file():
            raise DataError(f"{shown(path)} is not a model file: it is not a regular file")
        # The size first: a reader makes room for what it is asked for, whether it is there or not.
        with path.open("rb") as stream:
            data = stream.read(min(path.stat().st_size, LARGEST_FILE) + 1)
        return _read(data, path, ["summary", "tidy", "diagnostics"])
    except HeckmanfaError:
        raise
    except UnlistedError as error:
        raise DataError(
            f"{shown(path)} was not written by heckmanfa: it asks for {error}, and none of it "
            "was loaded"
        ) from error
    except UnsoundError as error:
        raise DataError(f"{shown(path)} is damaged or was changed: {error}") from error
    except BadZipFile as error:
        raise DataError(f"{shown(path)} {NO_MODEL_FILE}") from error
    except OSError as error:
        raise DataError(f"{shown(path)} cannot be read: {error.strerror or error}") from error
    # A file that was tampered with can make a reader fail in any way.
    except Exception as error:
        raise DataError(
            f"{shown(path)} cannot be loaded ({type(error).__name__}): it is damaged or was changed"
        ) from error


def _read(data: bytes, path: Path, reports: list[str]) -> Saved:
    """Check every part of a file, make the model, and try its predictions and some reports."""
    members = read_members(data, path)
    manifest = members.manifest
    _check_format(manifest, path)
    content = Revival(members)
    content.refuse_unlisted()
    if _digest(members.raw) != manifest["sha256"]:
        raise DataError(f"{shown(path)} was changed after it was written; none of it was loaded")
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
                f"{shown(path)} asks for more than a model file may: {error}; none of it was "
                "evaluated"
            ) from error
    _try_out(model, names, reports)
    _check_names(encoding)
    needed = names if design is None else design.variables(encoding.columns)
    sound = (
        encoding.missing in ("drop", "mean")
        and {*encoding.levels} <= {*encoding.sources}
        and all(encoding.levels.values())
        and {*needed} <= {*encoding.columns}
        and (encoding.missing == "drop" or {*encoding.columns} <= {*encoding.means})
        and {*encoding.dates} <= {*encoding.sources} - {*encoding.levels}
        and all(abs(scale.first) < _FAR for scale in encoding.dates.values())
    )
    if not sound:
        raise UnsoundError("its encoding does not make the features of its model")
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
        _check_classes(model)
        publish(model, attributes(model.fit_))


def _check_classes(model: SelectionModel) -> None:
    """Refuse a classifier without two classes, and any other model with them."""
    fit, classes, known = model.fit_, model.fit_.origin.classes, model.fit_.binary
    if {fit.is_binary, classes is not None, known is not None} != {is_classifier(model)}:
        raise UnsoundError("its model and its outcome are not of one kind")
    if classes is None or known is None:
        return
    size = 1 + len(fit.equation)
    gradients = (known.mean_slope_gradient, known.naive_mean_slope_gradient)
    shapes = {vector.shape for vector in (known.naive_coef, *gradients)}
    if shapes != {(size,)} or known.naive_covariance.shape != (size, size):
        raise UnsoundError("its plain probit does not have the features of its model")
    numbers = [label for label in classes if not isinstance(label, str)]
    mixed = len(numbers) == 1
    if mixed or classes[0] == classes[1] or not np.isfinite(np.array(numbers, dtype=float)).all():
        raise UnsoundError("its outcome does not have two classes")


def _check_names(encoding: Encoding) -> None:
    """Refuse an encoding with repeated names, which could make any number of columns."""
    named = [encoding.sources, *encoding.levels.values()]
    if any(len({*names}) < len(names) for names in named):
        raise UnsoundError("its encoding names something twice")
    # By arithmetic, before any name is made: each source, and each level, takes room in the file.
    length = sum(
        len(level) + len(name) + 2 for name, levels in encoding.levels.items() for level in levels
    )
    if length > _LONGEST_NAMES:
        raise UnsoundError("its encoding makes names that are too long")


def _try_out(model: Any, names: list[str], reports: list[str]) -> None:
    """Refuse a model whose parts do not fit together: it must predict and make these reports."""
    for name in ("support_", "coef_", "selection_coef_"):
        found = getattr(model, name, None)
        if found is not None and np.shape(found) != (len(names),):
            raise UnsoundError(f"{name} is not as long as the list of features")
    row = pd.DataFrame(np.zeros((1, len(names))), columns=names)
    plain = copy.copy(model)
    if _design(model) is not None:
        plain._fit = replace(model.fit_, origin=Origin(classes=model.fit_.classes))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            plain.predict(row)
            # Some valid models refuse the others.
            if hasattr(plain, "predict_selection"):
                with suppress(HeckmanfaError):
                    plain.predict_selection(row)
            for name in reports:
                if hasattr(plain, name):
                    with suppress(HeckmanfaError):
                        str(getattr(plain, name)())
    # Parts that do not fit together can fail in any way.
    except Exception as error:
        raise UnsoundError(f"its parts do not fit together ({type(error).__name__})") from error


def _at_rest(model: Any) -> Any:
    """Return a copy of a model that holds plain data.

    Requests of scikit-learn's metadata routing concern the code around the model, and are left out.
    An index or a series that lists columns becomes a list.
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
    """Return collections of column names as lists, and arrays and all else as they are."""
    if hasattr(value, "as_py"):
        return value.as_py()
    plain = value is None or isinstance(value, str | bytes | np.ndarray | np.generic | dict)
    if plain or not isinstance(value, Iterable):
        return value
    items = [_plain_list(item) for item in value]
    return tuple(items) if isinstance(value, tuple) else items


def _check_format(manifest: dict[str, Any], path: Path) -> None:
    """Refuse files of other formats, and of a newer major version."""
    number, theirs, ours = manifest["format"], str(manifest["version"]), heckmanfa.__version__
    if type(number) is not int:
        raise UnsoundError("its format is not an integer")
    if number > _FORMAT or int(theirs.split(".")[0]) > int(ours.split(".")[0]):
        raise DataError(
            f"{shown(path)} was written by heckmanfa {theirs}; this is {ours}: upgrade with pip "
            "install --upgrade heckmanfa"
        )
    if number < _FORMAT:
        raise DataError(
            f"{shown(path)} has format {number}, and this version reads format {_FORMAT} only: fit "
            "the model again and save it again"
        )


def _digest(members: Mapping[str, bytes]) -> str:
    """Return the sha256 of every member but the manifest."""
    total = hashlib.sha256()
    for name in sorted({*members} - {MANIFEST}):
        total.update(f"{name} {hashlib.sha256(members[name]).hexdigest()}\n".encode())
    return total.hexdigest()

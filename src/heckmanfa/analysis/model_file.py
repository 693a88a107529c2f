"""A fitted model in a file that runs nothing when it is read."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import heckmanfa
from heckmanfa.analysis.archive import LARGEST_FILE, MANIFEST, NO_MODEL_FILE, read_members
from heckmanfa.analysis.at_rest import at_rest
from heckmanfa.analysis.model_checks import check_encoding, design_of, restore, try_out
from heckmanfa.analysis.packing import pack
from heckmanfa.analysis.revival import MODELS, Revival, UnlistedError, UnsoundError
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.outputs import check_format, existing, replacing
from heckmanfa.data.formula.stored_formulas import check_design
from heckmanfa.errors import DataError, FormulaError, HeckmanfaError, InputError, InputTypeError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.estimators.fitting import attach_encoding, columns_of
from heckmanfa.estimators.scoring import ScoredModel
from heckmanfa.text.printable import quoted, shown

# Files name classes by their modules, and format 1 had other modules. In format 3, models have
# their encoding inside, and arrays are packed.
_FORMAT, _OLDEST = 3, 2


@dataclass(frozen=True)
class Saved:
    """What a model file holds."""

    model: Any
    encoding: Encoding
    """how columns of a table become those of the model; that of the model itself, if it has one"""
    about: dict[str, Any]
    version: str
    """of heckmanfa, when it was written"""


def save(
    model: Any, path: str | os.PathLike[str], *, candidates: bool = True, force: bool = False
) -> None:
    """Write a fitted model to a file that `load` reads.

    The file holds no rows of data, and no code: reading it runs nothing that it brings.

    Parameters
    ----------
    model : estimator
        Any fitted model of heckmanfa.
    path : str or path
        The file to write, such as ``"wages.skops"``.
    candidates : bool
        Whether to keep what is large and no prediction needs: ``candidates_`` of a search,
        ``assignments_`` of an average, ``path_`` of a training. An average by maximum likelihood
        has no intervals of predictions without the covariance of each refit.
    force : bool
        Whether an existing file may be replaced.
    """
    _refuse_no_path(path, "save(model, path)")
    _refuse_no_model(model, "save")
    _write(path, model, None, None, candidates=candidates, force=force, caller="save")


def load(path: str | os.PathLike[str]) -> SelectionModel | ObservedRegressor:
    """Read the model that `save` wrote, or ``heckmanfa fit --save``.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        As it was when it was saved: it predicts and reports as before, for new rows.

    Notes
    -----
    A file may hold plain data, arrays and the classes that models consist of. One that names
    anything else is refused before any object is made. Its formulas may call listed functions
    only, which is checked before they are evaluated. Accidental changes are detected, deliberate
    changes of coefficients are not: load models only from people you trust.
    """
    model: SelectionModel | ObservedRegressor = load_model(path).model
    return model


def save_model(
    path: str | os.PathLike[str],
    model: Any,
    encoding: Encoding | None = None,
    about: dict[str, Any] | None = None,
    *,
    candidates: bool = True,
    force: bool = False,
) -> None:
    """Write a fitted model, with what is needed to predict for other tables.

    The file is a zip of arrays and of JSON in the schema of skops, with a manifest.

    Parameters
    ----------
    path : str or path
    model : estimator
    encoding : Encoding, optional
        The encoding that made its columns, which becomes part of the model in the file; None if
        the table held them as numbers, or if the model encodes them itself.
    about : dict, optional
        Anything that JSON can hold; tuples come back as lists.
    candidates : bool
        As in `save`.
    force : bool
        Whether an existing file may be replaced.
    """
    _refuse_no_path(path, "save_model(path, model)")
    _refuse_no_model(model, "save_model")
    _write(path, model, encoding, about, candidates=candidates, force=force, caller="save_model")


def _write(
    path: str | os.PathLike[str],
    model: Any,
    encoding: Encoding | None,
    about: dict[str, Any] | None,
    *,
    candidates: bool,
    force: bool,
    caller: str,
) -> None:
    """Write a model file, and read it again before it is put in place."""
    check_format(path, ".skops", caller)
    labels = list(columns_of(model).encoded_labels)
    model, beside = _settled(model, _checked_encoding(model, labels, encoding))
    parts = {"model": at_rest(model, candidates=candidates), "encoding": beside}
    try:
        plain_about = json.loads(json.dumps(about or {}))
    except (TypeError, ValueError) as error:
        raise InputError(f"about must hold plain values only: {error}") from error
    import skops.io  # takes longer to import than a table to read

    try:
        members = pack(skops.io.dumps(parts))
    # Each type that skops cannot save fails in its own way.
    except Exception as error:
        raise InputError(f"the model cannot be saved: {error}") from error
    manifest = {
        "format": _FORMAT,
        "version": heckmanfa.__version__,
        "model": type(model).__name__,
        "features": labels,
        "about": plain_about,
        "sha256": _digest(members),
    }
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", compression=ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
    _check_readable(buffer.getvalue())
    with replacing(path, force) as part:
        part.write_bytes(buffer.getvalue())


def _checked_encoding(model: Any, labels: list[str], encoding: Any) -> Encoding | None:
    """Return an encoding that makes the columns of a model; refuse others, and formulas."""
    design = design_of(model)
    if design is not None:
        try:
            check_design(design, labels)
        except FormulaError as error:
            raise InputError(
                f"the model cannot be saved: {error}. Make that column in the data before the fit, "
                "or keep the model with pickle"
            ) from error
    if encoding is None:
        return None
    if isinstance(encoding, tuple) and encoding and isinstance(encoding[0], Encoding):
        raise InputTypeError(
            "Encoding.learn returns an encoding and the encoded table: pass the first of them"
        )
    if not isinstance(encoding, Encoding):
        raise InputTypeError(
            f"encoding must be an Encoding or None; got a {type(encoding).__name__}"
        )
    features = labels if design is None else design.variables(encoding.columns)
    strange = [name for name in features if name not in encoding.columns]
    if strange:
        raise InputError(
            "the model was not fitted on what the encoding makes: "
            f"{quoted(strange[0])} is not an encoded column"
        )
    return encoding


def _settled(model: Any, encoding: Encoding | None) -> tuple[Any, Encoding | None]:
    """Return a model that has its encoding inside, and what stays beside the model.

    The encoding of a table that formulas read stays beside them. So does one that only says how
    files write numbers, and one of which the model has some of the dummies of a category.
    """
    if encoding is None or model.encoding_ is not None:
        return model, None
    changes = encoding.levels or encoding.dates or encoding.missing_codes
    if design_of(model) is not None or not (changes or encoding.missing == "mean"):
        return model, encoding
    inside = copy.copy(model)
    try:
        attach_encoding(inside, encoding)
    except InputError:
        return model, encoding
    return inside, None


def _refuse_no_path(path: Any, call: str) -> None:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(
            f"path must be a text or a path; got a {type(path).__name__}: call {call}"
        )


def _refuse_no_model(model: Any, caller: str) -> None:
    """Refuse what is not a model, or is not fitted."""
    if not isinstance(model, ScoredModel):
        raise InputTypeError(
            f"{caller} keeps fitted models of heckmanfa; got "
            + ("None" if model is None else f"a {type(model).__name__}")
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InputError(f"this {type(model).__name__} is not fitted: call fit first") from error


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
    """Read a model that `save_model` or `save` wrote, and nothing else.

    What a file may hold is as in `load`.
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
    model, beside = parts["model"], parts["encoding"]
    if not (type(model).__name__ in MODELS and isinstance(beside, Encoding | None)):
        raise DataError(f"{shown(path)} is not a model file of heckmanfa: it holds no model")
    labels = manifest["features"]
    if not isinstance(manifest["about"], dict):
        raise UnsoundError("it does not say what it is about")
    restore(model, labels)
    design = design_of(model)
    if design is not None:
        try:
            check_design(design, labels)
        except FormulaError as error:
            raise DataError(
                f"{shown(path)} asks for more than a model file may: {error}; none of it was "
                "evaluated"
            ) from error
    try_out(model, labels, reports)
    if beside is not None:
        check_encoding(beside, labels if design is None else design.variables(beside.columns))
        # Files of format 2 had every encoding beside the model.
        model, beside = _settled(model, beside)
    plain = labels if design is None else design.variables(())
    encoding = model.encoding_ or beside or Encoding.plain(plain)
    return Saved(model, encoding, manifest["about"], str(manifest["version"]))


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
    if number < _OLDEST:
        raise DataError(
            f"{shown(path)} has format {number}, and this version reads formats {_OLDEST} and "
            f"{_FORMAT}: fit the model again and save it again"
        )


def _digest(members: Mapping[str, bytes]) -> str:
    """Return the sha256 of every member but the manifest."""
    total = hashlib.sha256()
    for name in sorted({*members} - {MANIFEST}):
        total.update(f"{name} {hashlib.sha256(members[name]).hexdigest()}\n".encode())
    return total.hexdigest()

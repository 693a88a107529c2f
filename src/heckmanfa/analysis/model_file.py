"""A fitted model in a file that is data: JSON and arrays, and nothing that runs.

The file is a zip of uncompressed members that has one spelling: it is what `pack` would write of
its members, to the byte, or it is refused. That leaves no room for compression, encryption,
comments, links, members listed twice, or bytes in between.
"""

from __future__ import annotations

import copy
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import heckmanfa
from heckmanfa.analysis.model_classes import ANYTHING, MODELS, MOST, Sizes, UnsoundError
from heckmanfa.analysis.model_state import (
    check_encoding,
    design_of,
    finish_model,
    read_model,
    write_model,
)
from heckmanfa.analysis.model_values import Reader, UnsavableError, Writer
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.files.outputs import check_format, replacing
from heckmanfa.data.files.paths import existing
from heckmanfa.data.formula.stored_formulas import check_design
from heckmanfa.errors import DataError, FormulaError, HeckmanfaError, InputError, InputTypeError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.baselines import ObservedRegressor
from heckmanfa.estimators.fitting import attach_encoding, columns_of, with_fit
from heckmanfa.estimators.scoring import ScoredModel
from heckmanfa.fit import Fit
from heckmanfa.text.printable import quoted, shown

Content = bytes | memoryview
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
# Version 2.0, no flags, no compression, and midnight of 1 January 1980.
_COMMON = struct.pack("<5H", 20, 0, 0, 0, 0x21)
_UNIX = struct.pack("<H", 3 << 8 | 20)
_LOCAL_SIZE = 30
_LONGEST_NAME = 20
_MOST_MEMBERS = 10_000


def pack(members: Mapping[str, Content]) -> bytes:
    """Return a zip of members, in their order; the same members give the same bytes."""
    parts: list[Content] = []
    directory: list[bytes] = []
    at = 0
    for name, content in members.items():
        text, size = name.encode("ascii"), len(content)
        entry = struct.pack("<3I2H", crc32(content), size, size, len(text), 0)
        parts += [_LOCAL + _COMMON + entry + text, content]
        # A plain file that its owner may read and write.
        made = struct.pack("<3H2I", 0, 0, 0, 0o100600 << 16, at)
        directory.append(_CENTRAL + _UNIX + _COMMON + entry + made + text)
        at += _LOCAL_SIZE + len(text) + size
    size, count = sum(map(len, directory)), len(directory)
    end = struct.pack("<4H2IH", 0, 0, count, count, size, at, 0)
    return b"".join([*parts, *directory, _END + end])


def unpack(data: bytes) -> dict[str, memoryview]:
    """Return the members of an archive that `pack` wrote; refuse any other."""
    members: dict[str, memoryview] = {}
    view, at = memoryview(data), 0
    while data[at : at + 4] == _LOCAL and len(members) < _MOST_MEMBERS:
        header: tuple[Any, ...] = struct.unpack("<2I2H", data[at + 18 : at + 30].ljust(12, b"\0"))
        _, size, length, _ = header
        start = at + _LOCAL_SIZE + length
        try:
            name = data[start - length : start].decode("ascii")
        except UnicodeDecodeError as error:
            raise UnsoundError("a member's name is not one of a model file") from error
        if length > _LONGEST_NAME or name in members:
            raise UnsoundError("a member's name is not one of a model file, or is there twice")
        members[name] = view[start : start + size]
        at = start + size
    if not members or pack(members) != data:
        raise UnsoundError("its archive is not as heckmanfa writes it")
    return members


# Formats 1 to 3 were files of skops.
_FORMAT = 4
_DOCUMENT = "model.json"
_KEYS = frozenset({"format", "version", "features", "model", "encoding", "about"})
_LARGEST_FILE, _LARGEST_DOCUMENT = 2**30, 2**26


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
        The file to write, such as ``"wages.heckmanfa"``. A name that ends like another format, such
        as ``.pkl``, is refused.
    candidates : bool
        Whether to keep what is large and no prediction needs: ``candidates_`` of a search,
        ``assignments_`` of an average, ``path_`` of a training. An average by maximum likelihood
        has no intervals of predictions without the covariance of each refit.
    force : bool
        Whether an existing file may be replaced.
    """
    _write(path, model, None, None, candidates=candidates, force=force, call="save(model, path)")


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
    A file is data: one JSON document and arrays. It may describe plain values and the classes that
    models consist of, each with the types and shapes of its fields; anything else is refused before
    it is made. Its formulas may call listed functions only, which is checked before they are
    evaluated. Accidental changes are detected, deliberate changes of coefficients are not: load
    models only from people you trust.
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

    The file is a zip of one JSON document and of arrays, none of them compressed. The same model
    gives the same bytes.

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
    call = "save_model(path, model)"
    _write(path, model, encoding, about, candidates=candidates, force=force, call=call)


def _write(
    path: str | os.PathLike[str],
    model: Any,
    encoding: Encoding | None,
    about: dict[str, Any] | None,
    *,
    candidates: bool,
    force: bool,
    call: str,
) -> None:
    """Write a model file, and read it again before it is put in place."""
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(
            f"path must be a text or a path; got a {type(path).__name__}: call {call}"
        )
    caller = call.partition("(")[0]
    _refuse_no_model(model, caller)
    check_format(path, ".heckmanfa", caller)
    labels = list(columns_of(model).encoded_labels)
    model, beside = _settled(model, _checked_encoding(model, labels, encoding))
    if isinstance(model, SelectionModel) and not candidates:
        model = with_fit(model, _without_candidates(model.fit_))
    writer = Writer()
    try:
        document = {
            "format": _FORMAT,
            "version": heckmanfa.__version__,
            "features": labels,
            "model": {type(model).__name__: write_model(model, writer)},
            "encoding": writer.write(beside, Encoding),
        }
    except UnsavableError as error:
        raise InputError(
            f"the model cannot be saved: {error}; give parameters as plain lists and numbers"
        ) from error
    try:
        text = json.dumps(document | {"about": about or {}}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"about must hold plain values only: {error}") from error
    arrays = {f"{index}.npy": content for index, content in enumerate(writer.arrays)}
    data = pack({_DOCUMENT: text.encode("ascii"), **arrays})
    try:
        # A file that could not be read again is not written.
        _read(data, Path("the file"))
    except (UnsoundError, DataError) as error:
        raise InputError(f"the model cannot be saved: {error}") from error
    with replacing(path, force) as place:
        place.write_bytes(data)


def _without_candidates(fit: Fit) -> Fit:
    """Return a fit without what is large: candidates, assignments, and paths of a training."""
    search, average = fit.search, fit.average
    return replace(
        fit,
        search=None if search is None else search.without_candidates(),
        average=None if average is None else average.without_candidates(),
    )


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


def _refuse_no_model(model: Any, caller: str) -> None:
    """Refuse what is not a model, or is not fitted."""
    if not isinstance(model, ScoredModel):
        raise InputTypeError(
            f"{caller} keeps fitted models of heckmanfa; got "
            + ("None" if model is None else f"a {type(model).__name__}")
        )
    if MODELS.get(type(model).__name__) != type(model).__module__:
        raise InputTypeError(
            f"{caller} keeps the classes of heckmanfa, and {type(model).__name__} is derived from "
            "one: keep the model with pickle"
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InputError(f"this {type(model).__name__} is not fitted: call fit first") from error


def load_model(path: str | os.PathLike[str]) -> Saved:
    """Read a model that `save_model` or `save` wrote, and nothing else.

    What a file may hold is as in `load`.
    """
    path = existing(path)
    try:
        # The size first: a reader makes room for what it is asked for, whether it is there or not.
        with path.open("rb") as stream:
            data = stream.read(min(path.stat().st_size, _LARGEST_FILE) + 1)
        _refuse_other_files(data, path)
        return _read(data, path)
    except HeckmanfaError:
        raise
    except UnsoundError as error:
        raise DataError(f"{shown(path)} is damaged or was changed: {error}") from error
    except OSError as error:
        raise DataError(f"{shown(path)} cannot be read: {error.strerror or error}") from error
    # A file that was tampered with can make a reader fail in any way.
    except Exception as error:
        raise DataError(
            f"{shown(path)} cannot be loaded ({type(error).__name__}): it is damaged or was changed"
        ) from error


def _refuse_other_files(data: bytes, path: Path) -> None:
    """Refuse files of other programs, and of versions that wrote them with skops."""
    if len(data) > _LARGEST_FILE:
        raise DataError(f"{shown(path)} has more than {_LARGEST_FILE:,} bytes; no model file has")
    if data[:2] != b"PK":
        raise DataError(
            f"{shown(path)} is not a model file, or is damaged; models are written by heckmanfa "
            "fit --save and heckmanfa.save"
        )
    if b"schema.json" in data[-(2**16) :]:
        raise DataError(
            f"{shown(path)} is a skops file, which earlier versions wrote, and this version reads "
            ".heckmanfa files: fit the model again and save it, or load it with the version that "
            "wrote it"
        )


def _read(data: bytes, path: Path) -> Saved:
    """Check every part of a file, and make the model."""
    members = unpack(data)
    if [*members] != [_DOCUMENT, *(f"{index}.npy" for index in range(len(members) - 1))]:
        raise UnsoundError("its archive has other members than a model file")
    text, *arrays = members.values()
    if len(text) > _LARGEST_DOCUMENT:
        raise UnsoundError(f"its description has {len(text):,} bytes")
    document = _parse(bytes(text))
    _check_format(document, path)
    if document.keys() != _KEYS:
        raise UnsoundError("its description has missing or unknown parts")
    labels = document["features"]
    reader = Reader(arrays, most_bits=len(labels) + 128)
    sizes = Sizes({"K": len(labels)}, MOST)
    labels = reader.read(labels, list[str], ANYTHING, sizes)
    model = read_model(document["model"], reader, sizes)
    beside = reader.read(document["encoding"], Encoding | None, ANYTHING, sizes)
    if len(reader.read_arrays) < len(arrays):
        raise UnsoundError("it has arrays that no part of the model names")
    if not isinstance(document["about"], dict):
        raise UnsoundError("it does not say what it is about")
    finish_model(model, labels)
    design = design_of(model)
    if design is not None:
        try:
            check_design(design, labels)
        except FormulaError as error:
            raise DataError(
                f"{shown(path)} asks for more than a model file may: {error}; none of it was "
                "evaluated"
            ) from error
    if beside is not None:
        check_encoding(beside, labels if design is None else design.variables(beside.columns))
    plain = labels if design is None else design.variables(())
    encoding = model.encoding_ or beside or Encoding.plain(plain)
    return Saved(model, encoding, document["about"], str(document["version"]))


def _parse(text: bytes) -> dict[str, Any]:
    """Read JSON; refuse numbers that JSON does not have."""

    def refuse(word: str) -> NoReturn:
        raise UnsoundError(f"{word} is not JSON")

    try:
        document = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise UnsoundError("its description is not JSON, or is nested too deeply") from error
    if not isinstance(document, dict):
        raise UnsoundError("its description is not a table")
    return document


def _check_format(document: dict[str, Any], path: Path) -> None:
    """Refuse files of other formats, and of a newer major version."""
    number, theirs, ours = document.get("format"), document.get("version"), heckmanfa.__version__
    if type(number) is not int or not isinstance(theirs, str):
        raise UnsoundError("its format is not an integer")
    if number > _FORMAT or int(theirs.split(".")[0]) > int(ours.split(".")[0]):
        raise DataError(
            f"{shown(path)} was written by heckmanfa {shown(theirs)}; this is {ours}: upgrade with "
            "pip install --upgrade heckmanfa"
        )
    if number < _FORMAT:
        raise UnsoundError(f"format {number} had no such files")

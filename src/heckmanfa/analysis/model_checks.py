"""What must hold of a model that was read from a file, before it is given to anyone."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from heckmanfa.analysis.revival import UnsoundError
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.errors import HeckmanfaError
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import attributes, encoded_model, publish, take_columns
from heckmanfa.fit import Origin

# Characters of the names of all the columns that an encoding makes.
_LONGEST_NAMES = 2**25
# Days from 1970 to any date with four digits for its year are fewer.
_FAR = 1e7


def design_of(model: Any) -> FormulaDesign | None:
    """Return the formulas of a model; None if it has none."""
    return model.fit_.origin.design if isinstance(model, SelectionModel) else None


def restore(model: Any, labels: Sequence[str]) -> None:
    """Set the public attributes of a model that was read; refuse one without a fit.

    The file lists ``labels``, the names of the K columns of the model.
    """
    state = vars(model)
    # Parameters that are newer than the file.
    for name, parameter in signature(type(model)).parameters.items():
        state.setdefault(name, parameter.default)
    if isinstance(model, SelectionModel):
        if "_fit" not in state:
            raise UnsoundError("its model has no fit")
        if list(model.fit_.labels) != list(labels):
            raise UnsoundError("it does not list the features of the model")
        _check_columns(model.fit_.spec.columns, labels)
        _check_classes(model)
        publish(model, attributes(model.fit_))
        return
    if "_columns" not in state:
        raise UnsoundError("its model has no fit")
    _check_columns(state["_columns"], labels)
    # Files of format 2 had no encoding, so one mask was enough.
    support = state.setdefault("_support", state.get("support_"))
    if not (isinstance(support, np.ndarray) and support.dtype == bool):
        raise UnsoundError("its model has no fit")
    if support.shape != (len(labels),):
        raise UnsoundError("support_ is not as long as the list of features")
    take_columns(model, state["_columns"])


def _check_columns(columns: FittedColumns, labels: Sequence[str]) -> None:
    """Refuse columns of X that do not become the K columns of a model."""
    encoding = columns.encoding
    if encoding is None:
        sources, made = tuple(labels), labels
    else:
        check_encoding(encoding, labels)
        sources, made = encoding.sources, encoding.columns
    if columns.n_features != len(sources) or list(made) != list(labels):
        raise UnsoundError("its columns are counted in two ways")
    unnamed = tuple(f"x{column}" for column in range(len(sources)))
    if sources != (unnamed if columns.names is None else columns.names):
        raise UnsoundError("its columns are named in two ways")


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


def check_encoding(encoding: Encoding, needed: Sequence[str]) -> None:
    """Refuse an encoding that does not make the columns that a model needs."""
    _check_names(encoding)
    sound = (
        encoding.missing in ("drop", "mean")
        and {*encoding.levels} <= {*encoding.sources}
        and all(encoding.levels.values())
        and {*encoding.level_rows} <= {*encoding.levels}
        and all(
            len(rows) == len(encoding.levels[name]) for name, rows in encoding.level_rows.items()
        )
        and {*needed} <= {*encoding.columns}
        and (encoding.missing == "drop" or {*encoding.columns} <= {*encoding.means})
        and {*encoding.dates} <= {*encoding.sources} - {*encoding.levels}
        and all(abs(scale.first) < _FAR for scale in encoding.dates.values())
    )
    if not sound:
        raise UnsoundError("its encoding does not make the features of its model")


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


def try_out(model: Any, labels: Sequence[str], reports: Sequence[str]) -> None:
    """Refuse a model whose parts do not fit together: it must predict and make these reports."""
    plain = copy.copy(encoded_model(model))
    for name in ("support_", "coef_", "selection_coef_"):
        found = getattr(plain, name, None)
        if found is not None and np.shape(found) != (len(labels),):
            raise UnsoundError(f"{name} is not as long as the list of features")
    row: Any = np.zeros((1, len(labels)))
    if hasattr(plain, "feature_names_in_"):
        row = pd.DataFrame(row, columns=list(labels))
    if design_of(model) is not None:
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

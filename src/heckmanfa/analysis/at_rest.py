"""A model as plain data, which a file can hold."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import attributes
from heckmanfa.fit import Fit

_COLUMN_LISTS = (
    "prediction_features",
    "selection_features",
    "always",
    "never",
    "feature_groups",
    "categorical_features",
)
# Attributes of a regression that follow from the columns it was fitted to.
_OF_COLUMNS = (
    "encoded_names_",
    "encoding_",
    "feature_names_in_",
    "n_features_in_",
    "prediction_features_",
    "support_",
)


def at_rest(model: Any, *, candidates: bool) -> Any:
    """Return a copy of a model that holds plain data, with or without the candidates of a search.

    Requests of scikit-learn's metadata routing concern the code around the model, and are left out.
    An index or a series that lists columns becomes a list.
    """
    model = copy.copy(model)
    vars(model).pop("_metadata_request", None)
    if isinstance(model, SelectionModel):
        # All attributes follow from the fit, and are set from it when the file is read.
        for name in attributes(model.fit_).keys() - {"_fit"}:
            delattr(model, name)
        if not candidates:
            model._fit = _without_candidates(model.fit_)
    else:
        for name in _OF_COLUMNS:
            vars(model).pop(name, None)
    for name in _COLUMN_LISTS:
        if name in vars(model):
            setattr(model, name, _plain_list(vars(model)[name]))
    return model


def _without_candidates(fit: Fit) -> Fit:
    """Return a fit without what is large: candidates, assignments, and paths of a training."""
    search, average = fit.search, fit.average
    return replace(
        fit,
        search=None if search is None else search.without_candidates(),
        average=None if average is None else average.without_candidates(),
    )


def _plain_list(value: Any) -> Any:
    """Return collections of column names as lists, and arrays and all else as they are."""
    if hasattr(value, "as_py"):
        return value.as_py()
    plain = value is None or isinstance(value, str | bytes | np.ndarray | np.generic | dict)
    if plain or not isinstance(value, Iterable):
        return value
    items = [_plain_list(item) for item in value]
    return tuple(items) if isinstance(value, tuple) else items

"""An estimator as JSON: its parameters, and the attributes that all others follow from."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar, Literal, get_args, get_origin

from heckmanfa.analysis.archive import UnsoundError
from heckmanfa.analysis.model_checks import check_model
from heckmanfa.analysis.model_classes import MODELS
from heckmanfa.analysis.model_values import Reader, Writer, hints_of
from heckmanfa.analysis.plain_values import UnsavableError, write_plain
from heckmanfa.analysis.shapes import ANYTHING, Sizes
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import attributes, publish, take_columns
from heckmanfa.text.printable import quoted

# Attributes of a regression that follow from the columns it was fitted to.
_OF_COLUMNS = frozenset(
    {
        "encoded_names_",
        "encoding_",
        "feature_names_in_",
        "n_features_in_",
        "prediction_features_",
        "support_",
    }
)


def stored_attributes(kind: type) -> list[str]:
    """Return the attributes of a model that a file keeps: all others follow from them."""
    if issubclass(kind, SelectionModel):
        return ["_fit"]
    hints = hints_of(kind)
    return [
        name
        for name, hint in hints.items()
        if name not in _OF_COLUMNS and get_origin(hint) is not ClassVar
    ]


def write_model(model: Any, writer: Writer) -> dict[str, Any]:
    """Return the parameters and the attributes of a model as JSON."""
    parameters, hints, kept = {}, hints_of(type(model)), stored_attributes(type(model))
    for name, value in model.get_params(deep=False).items():
        try:
            parameters[name] = write_plain(value)
        except UnsavableError as error:
            raise UnsavableError(f"{name} holds a {error}") from error
    follow = _OF_COLUMNS if not hasattr(model, "fit_") else attributes(model.fit_).keys()
    for name in vars(model).keys() - {*parameters, *kept, *follow}:
        # Requests of scikit-learn's metadata routing concern the code around the model.
        if not name.startswith("_"):
            raise UnsavableError(f"it has {quoted(name)}, which no fit sets")
    known = {name: writer.write(getattr(model, name), hints[name]) for name in kept}
    return {"parameters": parameters, "attributes": known}


def read_model(node: Any, reader: Reader, sizes: Sizes) -> Any:
    """Make an estimator with its parameters and the attributes that a file keeps."""
    if not (isinstance(node, dict) and len(node) == 1 and node.keys() <= MODELS.keys()):
        raise UnsoundError("it holds no model")
    ((name, content),) = node.items()
    kind = getattr(import_module(MODELS[name]), name)
    allowed, names = {*signature(kind).parameters}, stored_attributes(kind)
    given, kept = content["parameters"], content["attributes"]
    if not given.keys() <= allowed or kept.keys() != {*names} or len(content) > 2:
        raise UnsoundError(f"{name} has missing or unknown attributes")
    hints = hints_of(kind.__init__)
    parameters = {}
    for parameter, value in given.items():
        # Others may be of any type that scikit-learn's checks of them allow.
        hint = hints[parameter] if _has_words(hints.get(parameter)) else Any
        try:
            parameters[parameter] = reader.read(value, hint, ANYTHING, sizes)
        except UnsoundError as error:
            raise UnsoundError(f"{name}.{parameter}: {error}") from error
    model = kind(**parameters)
    for attribute, value in reader.attributes(kind, kept, names, sizes).items():
        setattr(model, attribute, value)
    return model


def _has_words(hint: Any) -> bool:
    return any(get_origin(part) is Literal for part in (hint, *get_args(hint)))


def finish_model(model: Any, labels: Sequence[str]) -> None:
    """Check a model that was read, and set the attributes that follow from it."""
    check_model(model, labels)
    if isinstance(model, SelectionModel):
        publish(model, attributes(model.fit_))
    else:
        take_columns(model, model.columns_read())

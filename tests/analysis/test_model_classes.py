"""The table of what a model file may hold is complete: every field has a declared shape."""

import dataclasses
import typing
from importlib import import_module

import numpy as np
import pytest

from heckmanfa.analysis.model_classes import FIELDS, MODELS, PARTS, class_named, parse_rule
from heckmanfa.analysis.model_state import stored_attributes
from heckmanfa.analysis.model_values import hints_of, options_of, rules_of


def fields_of(name):
    """Return the types of what a file keeps of a class."""
    kind = getattr(import_module((MODELS | PARTS)[name]), name)
    names = (
        [one.name for one in dataclasses.fields(kind)] if name in PARTS else stored_attributes(kind)
    )
    return {field: hints_of(kind)[field] for field in names}


def parts_of(hint):
    """Yield a type and those inside it."""
    yield hint
    inner = options_of(hint) if len(options_of(hint)) > 1 else typing.get_args(hint)
    if typing.get_origin(hint) not in (np.ndarray, typing.Literal):
        for part in inner:
            yield from parts_of(part)


@pytest.mark.parametrize("name", sorted(MODELS | PARTS))
def test_every_field_of_arrays_positions_or_anything_is_declared(name):
    for field, hint in fields_of(name).items():
        inside = [*parts_of(hint)]
        rule = rules_of(name).get(field)
        is_array = any(typing.get_origin(part) is np.ndarray for part in inside)
        counted = any(
            typing.get_origin(part) in (tuple, list) and int in typing.get_args(part)
            for part in inside
        )
        needs = is_array or counted or typing.Any in inside
        assert rule is not None or not needs, f"declare {name}.{field} in model_classes"
        if is_array:
            assert rule.shapes or rule.absent, f"declare the shape of {name}.{field}"
        # Rows of each level are counts, which `check_encoding` holds to the levels.
        if counted and field != "level_rows":
            assert rule.positions, f"declare what {name}.{field} are positions of"


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_only_fields_that_exist_are_declared(name):
    assert {*FIELDS[name]} <= {*fields_of(name)}


@pytest.mark.parametrize("name", sorted(MODELS | PARTS))
def test_every_class_that_a_field_may_hold_is_listed(name):
    plain = {int, float, bool, str, type(None), typing.Any, Ellipsis}
    for field, hint in fields_of(name).items():
        for part in parts_of(hint):
            is_class = typing.get_origin(part) is None and part not in plain
            if is_class and not rules_of(name).get(field, parse_rule("")).absent:
                listed = map(class_named, PARTS)
                kinds = [kind for kind in listed if issubclass(kind, part)]
                assert kinds, f"{name}.{field}: {part}"
                assert all(map(dataclasses.is_dataclass, kinds))


def test_what_is_not_a_declaration_is_refused():
    with pytest.raises(ValueError, match="is not a declaration"):
        parse_rule("[K] maybe")

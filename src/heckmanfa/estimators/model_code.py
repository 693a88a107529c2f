"""A fitted model in Python, R and Stata: code that fits it again."""

from __future__ import annotations

from inspect import signature
from typing import Any

from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.fit import Fit
from heckmanfa.report.plain_model import Reading, Roles
from heckmanfa.report.programs import Programs, call, literal, programs_of

_FIRST = "First save the rows as rows.csv: the Python code has the line."
# Parameters that formulas stand for.
_OF_FORMULAS = frozenset(
    {
        *("prediction_features", "selection_features", "feature_groups"),
        *("outcome_features", "treatment_features"),
    }
)


def code_of_model(model: Any, outcome: str) -> Programs:
    """Return code that fits a model again; ``outcome`` is the column of what it predicts."""
    fit: Fit = model.fit_
    encoding = fit.spec.columns.encoding or Encoding.plain(fit.labels)
    roles = _roles(fit, outcome, encoding.sources)
    reading = Reading("rows.csv", (*encoding.sources, *roles.names), first=_FIRST)
    return programs_of(fit, encoding, roles, reading, _python(model, roles, encoding.sources))


def _roles(fit: Fit, outcome: str, features: tuple[str, ...]) -> Roles:
    """Name columns for what was passed beside the features, as no feature is named."""
    wanted = {"outcome": outcome}
    flags = _flags(fit)
    wanted |= {"selected": flags} if fit.origin.selected_given else {}
    wanted |= {"weights": "sample_weight"} if fit.weighted and fit.spec.survey is None else {}
    wanted |= {"cluster": "groups"} if fit.spec.cov_type == "cluster" else {}
    taken, named = {*features}, {}
    for role, name in wanted.items():
        while name in taken:
            name += "_"
        taken.add(name)
        named[role] = name
    return Roles(**named)


def _flags(fit: Fit) -> str:
    """Name what `fit` takes to say who is selected, or treated."""
    return "treated" if fit.family.sees_everyone else "selected"


def _python(model: Any, roles: Roles, features: tuple[str, ...]) -> str:
    fit: Fit = model.fit_
    name = type(model).__name__
    parameters, passed = _parameters(model)
    design = fit.origin.design
    if design is not None:
        named = fit.origin.clusterings
        weights = None if fit.spec.survey is not None else fit.origin.weight_column
        columns = {"sample_weight": weights, "groups": [*named] if len(named) > 1 else None}
        columns |= {"groups": named[0]} if len(named) == 1 else {}
        given = {role: repr(column) for role, column in columns.items() if column is not None}
        kept = {key: value for key, value in parameters.items() if key not in _OF_FORMULAS}
        made = call(f"{name}.from_formula", *map(repr, design.texts), "table", **kept, **given)
        fitting = [f"model = {made}"]
    else:
        flags = _flags(fit)
        sources = {flags: roles.selected, "sample_weight": roles.weights}
        sources |= {"groups": roles.cluster}
        also = {role: role for role, column in sources.items() if column is not None}
        made = call(name, **parameters)
        fitting = [f"model = {made}", call("model.fit", "X", "y", **also)]
    also_used = ", Survey" if fit.spec.survey is not None else ""
    lines = [f"from heckmanfa import {name}{also_used}", ""]
    if passed:
        lines.append(f"# The objects that were passed as {' and '.join(passed)} are needed again.")
    lines += [*fitting, "print(model.summary())"]
    if design is None:
        lines += ["", "# The rows, for other programs.", *_saving(fit, roles, features)]
    return "\n".join(lines)


def _saving(fit: Fit, roles: Roles, features: tuple[str, ...]) -> list[str]:
    """Return the lines that save the rows."""
    flags = _flags(fit)
    columns = {roles.outcome: "y", roles.selected: flags}
    columns |= {roles.weights: "sample_weight", roles.cluster: "groups"}
    pairs = [f"{name!r}: {value}" for name, value in columns.items() if name is not None]
    names = "" if fit.spec.columns.names else f", columns={list(features)!r}"
    return [
        "import pandas as pd",
        "",
        f"rows = pd.DataFrame(X{names}).assign(**{{{', '.join(pairs)}}})",
        'rows.to_csv("rows.csv", index=False)',
    ]


def _parameters(model: Any) -> tuple[dict[str, str], list[str]]:
    """Return the parameters that are not their defaults, and which of them are objects."""
    defaults = {name: each.default for name, each in signature(type(model)).parameters.items()}
    written, passed = {}, []
    for name, value in model.get_params(deep=False).items():
        if value is defaults[name] or literal(value) == literal(defaults[name]) is not None:
            continue
        text = literal(value)
        if text is None:
            passed.append(name)
        written[name] = name if text is None else text
    return written, passed

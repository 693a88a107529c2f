"""An estimator as JSON: its parameters, and the attributes that all others follow from.

Shapes and positions are checked as they are read. What is checked at the end needs several parts:
which columns an equation has, what an encoding makes, how many parameters there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar, Literal, get_args, get_origin

import numpy as np
from sklearn.base import is_classifier

from heckmanfa.analysis.model_classes import (
    ANYTHING,
    MODELS,
    PARTS,
    Sizes,
    UnsoundError,
    class_named,
)
from heckmanfa.analysis.model_values import Reader, UnsavableError, Writer, hints_of, write_plain
from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.features import FittedColumns
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.estimators.base import SelectionModel
from heckmanfa.estimators.fitting import attributes, publish, take_columns
from heckmanfa.fit import Fit, label_terms
from heckmanfa.fit.family import is_family
from heckmanfa.model.inverse_probabilities import Overlap
from heckmanfa.model.linalg import column_norms
from heckmanfa.results.effects import probability_of
from heckmanfa.results.plain_estimates import PlainEstimates
from heckmanfa.search.choices import Choices
from heckmanfa.search.ends import Errors
from heckmanfa.search.form import Form
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
            is_part = type(value).__name__ in PARTS
            parameters[name] = writer.write(value, type(value)) if is_part else write_plain(value)
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
    kind = class_named(name)
    allowed, names = {*signature(kind).parameters}, stored_attributes(kind)
    # Files from before models had formulas of their own do not say that there are none.
    kept = {name: None for name in names if name == "_origin"} | content["attributes"]
    stated = content["parameters"]
    if not stated.keys() <= allowed or kept.keys() != {*names} or len(content) > 2:
        raise UnsoundError(f"{name} has missing or unknown attributes")
    hints = hints_of(kind.__init__)
    parameters = {}
    for parameter, value in stated.items():
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
    return any(get_origin(kind) is Literal for kind in (hint, *get_args(hint)))


def finish_model(model: Any, labels: Sequence[str]) -> None:
    """Check a model that was read, and set the attributes that follow from it."""
    check_model(model, labels)
    if isinstance(model, SelectionModel):
        publish(model, attributes(model.fit_))
    else:
        take_columns(model, model.columns_read())


# Characters of the names of all the columns that an encoding makes.
_LONGEST_NAMES = 2**25
# Days from 1970 to any date with four digits for its year are fewer.
_FAR = 1e7


def design_of(model: Any) -> FormulaDesign | None:
    """Return the formulas of a model; None if it has none."""
    design: FormulaDesign | None = model._known_origin.design
    return design


def check_model(model: Any, labels: Sequence[str]) -> None:
    """Refuse a model whose parts do not fit together; ``labels`` name its K columns."""
    if isinstance(model, SelectionModel):
        fit = model.fit_
        _require(list(fit.labels) == list(labels), "it does not list the features of the model")
        check_columns(fit.spec.columns, labels)
        _check_classes(model)
        _check_fit(fit)
        return
    check_columns(model.columns_read(), labels)
    _check_counts(model.row_counts_)
    if hasattr(model, "_estimates"):
        _check_estimates(model._estimates, model._overlap)
    if hasattr(model, "_network"):
        count = int(model._support.sum())
        _require(len(model._network.centre) == count, "its network has other features")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise UnsoundError(otherwise)


def check_columns(columns: FittedColumns, labels: Sequence[str]) -> None:
    """Refuse columns of X that do not become the K columns of a model."""
    encoding = columns.encoding
    if encoding is None:
        sources, made = tuple(labels), labels
    else:
        check_encoding(encoding, labels)
        sources, made = encoding.sources, encoding.columns
    counted = columns.n_features == len(sources) and list(made) == list(labels)
    _require(counted, "its columns are counted in two ways")
    unnamed = tuple(f"x{column}" for column in range(len(sources)))
    named = unnamed if columns.names is None else columns.names
    _require(sources == named, "its columns are named in two ways")


def check_encoding(encoding: Encoding, needed: Sequence[str]) -> None:
    """Refuse an encoding that does not make the columns that a model needs."""
    named = [encoding.sources, *encoding.levels.values()]
    twice = any(len({*names}) < len(names) for names in named)
    _require(not twice, "its encoding names something twice")
    # By arithmetic, before any name is made: each source, and each level, takes room in the file.
    length = sum(
        len(level) + len(name) + 2 for name, levels in encoding.levels.items() for level in levels
    )
    _require(length <= _LONGEST_NAMES, "its encoding makes names that are too long")
    sources = {*encoding.sources}
    sound = (
        {*encoding.levels} <= sources
        and all(encoding.levels.values())
        and {*encoding.level_rows} <= {*encoding.levels}
        and all(
            len(rows) == len(encoding.levels[name]) for name, rows in encoding.level_rows.items()
        )
        and {*needed} <= {*encoding.columns}
        and (encoding.missing == "drop" or {*encoding.columns} <= {*encoding.means})
        and {*encoding.dates} <= sources - {*encoding.levels}
        and all(abs(scale.first) < _FAR for scale in encoding.dates.values())
    )
    _require(sound, "its encoding does not make the features of its model")


def _check_classes(model: SelectionModel) -> None:
    """Refuse a classifier without two classes, and any other model with them."""
    fit, classes = model.fit_, model.fit_.origin.classes
    _require(is_family(fit.spec.outcome_kind, fit.spec.number), "its family is not known")
    known = probability_of(fit) is not None or fit.class_counts is not None
    kinds = {fit.family.reads_labels, classes is not None, known}
    _require(kinds == {is_classifier(model)}, "its model and its outcome are not of one kind")
    if classes is not None:
        numbers = [label for label in classes if not isinstance(label, str)]
        apart = len(classes) == len({*classes}) and len(numbers) in (0, len(classes))
        _require(apart, "its outcome does not have classes of one type")
        n_classes = 2 if fit.family.has_classes else len(fit.class_counts or ())
        _require(len(classes) == n_classes, "its outcome has another number of classes")


def _check_fit(fit: Fit) -> None:
    """Refuse a fit whose equations have other columns or parameters than its estimates."""
    named = fit.equations.keys() == {equation.name for equation in fit.family.equations}
    _require(named, "it has other equations")
    predicting = [each.name for each in fit.family.equations if each.columns == "prediction"]
    # A series does not identify it.
    series = len(fit.dependence_terms) > 1
    for name in predicting:
        intercept = fit.equations[name].intercept
        known = np.isfinite(intercept) or (series and np.isnan(intercept))
        _require(known, "its intercept is not finite")
    _require(fit.errors.keys() >= {*fit.spec.error_terms}, "an error term is missing")
    moments, equation = fit.moments, fit.equation
    selection = () if fit.probit is None else fit.probit.features
    known = {*moments.columns}
    _require(known.issuperset([*equation, *selection]), "its equations have unknown columns")
    terms = label_terms(fit.spec, equation, fit.probit, ())
    shown = fit.terms[len(terms) :]
    _require(fit.terms[: len(terms)] == terms, "its covariance has other terms")
    possible = [("errors", term) for term in fit.spec.error_terms]
    _require([*shown] == possible[: len(shown)], "its covariance has other terms of the errors")
    sizes = (1 + len(equation), 0 if fit.probit is None else 1 + len(selection))
    n_params = len(terms) + len(fit.family.likelihood_terms)
    if fit.params is not None:
        # A held rho is not a parameter.
        _require(0 <= n_params - len(fit.params) <= 1, "it has other parameters")
    probability = probability_of(fit)
    if probability is not None:
        _require(len(probability.naive_coef) == sizes[0], "its plain probit has other features")
    if fit.class_counts is not None:
        _require(len(fit.class_counts) == len(fit.spec.error_terms) + 1, "it has other cut points")
    if fit.rho_scores is not None:
        of_both = 2 * len(fit.features) + len(selection) + 5
        _require(len(fit.rho_scores) == of_both, "its scores have other parameters")
    _check_numbers(fit)
    _check_search(fit, known)
    _check_average(fit, known)


def _check_numbers(fit: Fit) -> None:
    """Refuse numbers that no data give: counts, lengths and standard errors of zero or less."""
    moments = fit.moments
    _check_counts(fit.row_counts)
    _require(min(fit.n_obs, fit.n_selected, moments.n_selected) >= 1, "it was fitted to no rows")
    used = column_norms(moments.factor)[[0, *moments.places(fit.equation)]]
    _require(bool((used > 0).all()), "its compressed features are zero")
    errors = [term.transformed[1] for term in fit.errors.values() if term.transformed is not None]
    _require(not any(error <= 0 for error in errors), "a standard error is not positive")


def _check_counts(counts: dict[str, int]) -> None:
    listed = {"total", "selected", "unselected"} <= counts.keys()
    _require(listed and counts["selected"] > 0, "it does not count its rows")


def _check_estimates(estimates: PlainEstimates, overlap: Overlap | None) -> None:
    """Refuse estimates that cannot be tabulated, and weights that are on no row."""
    variances = np.diag(estimates.covariance)
    _require(not (variances < 0).any(), "a variance of its estimates is negative")
    _require(estimates.df is None or not (estimates.df <= 0).any(), "a variance has no df")
    clusters = estimates.n_clusters
    _require(clusters is None or clusters > 1, "its covariance is of too few clusters")
    _require(overlap is None or overlap.n_rows > 0, "its weights are on no row")


def _check_choices(*choices: Choices) -> None:
    for allowed in choices:
        columns = allowed.columns
        _require(len({*columns}) == len(columns), "a column is in two units of its search")


def _check_search(fit: Fit, known: set[int]) -> None:
    search = fit.search
    if search is None:
        return
    _require(known.issuperset(search.candidates), "its search has unknown candidates")
    _check_choices(search.choices)
    form, selecting = search.form, search.selecting
    _require((form is None) == (selecting is None), "its search is of one equation and of both")
    if form is not None and selecting is not None:
        _check_choices(selecting)
        _check_form(fit, form, known)
        _require({*form.columns} == {*search.candidates}, "its form has other candidates")
        _require({*form.searched} <= {*selecting.columns}, "its form searches other columns")
    honest, result = search.halves, search.result
    if honest is not None:
        same = honest.names == fit.labels and honest.columns in (None, fit.spec.columns)
        _require(same, "its splits have other columns")
    if result is not None:
        _require(bool(result.in_range[:1].any()), "its search has no result")
        if result.goal.form is not None:
            _check_form(fit, result.goal.form, known)
        both = result.selection_packed is not None
        _require(both == (form is not None), "its search has no selection features")


def _check_form(fit: Fit, form: Form, known: set[int]) -> None:
    """Refuse a form of other columns or of another model."""
    _require(known.issuperset([*form.columns, *form.selection]), "its form has unknown columns")
    kinds = tuple(each.columns for each in fit.family.equations)
    _require(form.equations == kinds, "its form has other equations")
    size = form.correction + len(form.ends.names)
    _require(len(form.estimates) == size, "its form has other parameters")
    _require({*form.ends.shown} <= {*fit.spec.error_terms}, "its form is of another model")
    scaled = any(term.in_units for term in fit.family.error_terms)
    own = form.errors == "series" or (form.errors == "binary") != scaled
    _require(own, "its form is of another model")
    _require(form.searched in ((), form.selection), "its form searches other columns")
    variances = np.diag(form.covariance)[form.free]
    _require(bool((variances > 0).all()), "a variance of its form is not positive")


def _check_average(fit: Fit, known: set[int]) -> None:
    average = fit.average
    if average is None:
        return
    form, weighed = average.form, average.mixture
    _check_form(fit, form, known)
    _check_choices(average.choices, weighed.choices)
    _require({*weighed.choices.columns} == {*form.columns}, "its average has other columns")
    _require(len(weighed.free) == len(form.free), "its average has other parameters")
    selecting = weighed.selecting
    searched = () if selecting is None else selecting.columns
    _require({*searched} == {*form.searched}, "its average searched another selection equation")
    both = weighed.selection_shares is not None and weighed.selection_signs is not None
    _require(both == weighed.searches_both, "its average has other shares")
    width = 1 + -(-weighed.joint.n_features // 8)
    _require(weighed.leading.shape[1] == width, "its average has other assignments")
    some = len(weighed.leading) > 0 and weighed.component_weights.sum() > 0
    _require(bool(some), "its average has no assignments")


@dataclass(frozen=True, eq=False)
class AtanhRho:
    """atanh rho in the model of all features, as earlier files have it."""

    estimate: float
    variance: float
    covariance: Floats
    """(k,) with the slopes"""
    excess: float = 0.0


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """The form of a search as earlier files have it: the k slopes, and atanh rho."""

    now: ClassVar[type] = Form
    columns: tuple[int, ...]
    estimates: Floats
    covariance: Floats
    selection: tuple[int, ...]
    n_features: int
    n_selected: float
    errors: Errors
    atanh_rho: AtanhRho | None = None

    def as_now(self) -> Form:
        """Return a form whose other parameters, which nobody asks for, are zero."""
        form = Form.of_slopes(
            *(self.columns, self.estimates, self.covariance),
            n_features=self.n_features,
            n_selected=self.n_selected,
            selection=self.selection,
            errors=self.errors,
        )
        rho, at, own = self.atanh_rho, form.correction, slice(1, len(self.columns) + 1)
        if rho is None:
            return replace(form, knows_correction=self.errors == "two-step")
        form.estimates[at], form.covariance[at, at] = rho.estimate, rho.variance
        form.covariance[at, own] = form.covariance[own, at] = rho.covariance
        return replace(form, correction_excess=rho.excess)

"""From the arguments of ``fit`` to a fitted estimator, which changes only at the very end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from heckmanfa.data.arrays import explain_out_of_memory
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.feature_reading import frame_labels, read_features
from heckmanfa.data.columns.features import FeatureTable, FittedColumns, resolve
from heckmanfa.data.fitted_levels import (
    LevelsChangedError,
    re_encode,
    references_asked,
    refuse_moved,
    settle_levels,
)
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.formula_levels import FactorsLeft
from heckmanfa.data.missing_features import explain_lost
from heckmanfa.data.ordered_classes import plain_classes
from heckmanfa.data.outcomes import refuse_logarithm
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.data.sample import Sample, check_parameters, find_row_source
from heckmanfa.data.survey import Survey, kind_of_covariance
from heckmanfa.data.survey_rows import survey_rows
from heckmanfa.errors import FewClustersWarning, InputError, warn
from heckmanfa.fit import Choose, Family, Fit, Origin, PassedRows, Spec, fit_model, sample_of
from heckmanfa.model.covariance import is_classical, sums_groups
from heckmanfa.model.newton import read_start
from heckmanfa.results.cluster_facts import wild_advice
from heckmanfa.results.cut_points import cut_values
from heckmanfa.results.distribution import FEW_CLUSTERS, NullDistribution, clusters_text
from heckmanfa.text.option_types import CovType, Method
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted_list

Specify = Callable[[FeatureTable, FormulaDesign | None], tuple[Spec, Choose]]
"""makes the model that an estimator describes, and says how its features are chosen"""


def fit_estimator(
    estimator: Any,
    specify: Specify,
    X: Any,
    y: Any,
    selected: Any,
    sample_weight: Any,
    groups: Any,
    design: FormulaDesign | None = None,
    *,
    weight_column: str | None = None,
    group_column: str | None = None,
    group_columns: tuple[str, ...] = (),
) -> None:
    """Fit what ``specify`` makes of the columns; a fit that fails leaves the estimator as it was.

    A model with formulas passes its ``design``, and ``weight_column`` and ``group_column`` of its
    data frame.
    """
    selected_given, name = selected is not None, name_of(y)
    written = name if design is None else design.outcome_text
    encoding = None
    if isinstance(X, EncodedRows):
        X, encoding = X.rows, X.encoding
    survey = estimator.cov_type if isinstance(estimator.cov_type, Survey) else None
    if survey is not None:
        X, sample_weight, groups = survey_rows(survey, X, sample_weight, groups)
    source = find_row_source(X, y, selected, sample_weight, groups)
    if source is not None:
        selected_given = source.has_selected
        written = name or source.outcome_name
        X, y, selected = source, None, None
        sample_weight, groups = source.has_weight or None, source.has_groups or None
    _check_parameters(estimator, sample_weight, groups)
    with one_blas_thread(), explain_out_of_memory():
        table = read_features(
            X,
            type(estimator).__name__,
            # Formulas make numbers of their categories.
            categorical=estimator.categorical_features if design is None else None,
            lists=[getattr(estimator, role) for role in estimator.roles],
        )
        if survey is not None:
            table = replace(table, columns=replace(table.columns, beside=survey.named))
        if encoding is not None:
            columns = FittedColumns.of(encoding, type(estimator).__name__)
            table = replace(table, columns=columns)
        spec, choose = specify(table, design)
        refuse_logarithm(written, spec.outcome_transform)
        with explain_lost(None if design is None else design.lost):
            sample = sample_of(spec, table, PassedRows(X, y, selected, sample_weight, groups))
        # Formulas have settled the levels of theirs.
        reference = estimator.reference if design is None else None
        names = table.names
        table, sample = settle_levels(table, sample, reference)
        if table.names != names:
            if encoding is not None:
                raise LevelsChangedError(table.columns.encoding or encoding)
            specified = specify(table, design)
        else:
            specified = replace(spec, columns=table.columns), choose
        origin = Origin(
            selected_given,
            None if design is None else design.without_data(),
            weight_column if survey is None else survey.weights,
            group_column,
            group_columns,
            outcome=name,
            classes=sample.classes,
        )
        rows = table, sample, encoding is not None
        with explain_lost(sample.lost if design is None else design.lost):
            fit = _fit_settled(estimator, design, rows, specified, specify, origin)
    if design is not None:
        fit = replace(fit, row_counts=fit.row_counts | design.left_out)
    warn_of_few_clusters(fit.n_clusters, fit.cluster_counts, advice=wild_advice(fit))
    # Last: a warning may be an error, and a fit that fails changes nothing.
    publish(estimator, attributes(fit))


def warn_of_few_clusters(
    n_clusters: int | None,
    counts: tuple[int, ...] = (),
    *,
    few: int = FEW_CLUSTERS,
    advice: str = "",
) -> None:
    """Warn of a cluster covariance from few clusters; of two clusterings, ``counts`` has both."""
    if n_clusters is not None and n_clusters < few:
        n = clusters_text(n_clusters, counts)
        warn(
            f"the covariance rests on {n} clusters. With fewer than {few}, standard "
            "errors tend to be too small, and tests reject too often, even "
            f"with the {NullDistribution(n_clusters).name} distribution used here.{advice}",
            FewClustersWarning,
        )


def _fit_settled(
    estimator: Any,
    design: FormulaDesign | None,
    rows: tuple[FeatureTable, Sample, bool],
    specified: tuple[Spec, Choose],
    specify: Specify,
    origin: Origin,
) -> Fit:
    """Fit the model, with another reference where separation leaves no row of the first.

    ``rows`` end with whether their columns were encoded by the caller, who gets
    `LevelsChangedError`.
    """
    table, sample, fixed = rows
    spec, choose = specified
    random_state = getattr(estimator, "random_state", None)
    if design is not None:
        left = FactorsLeft(design.factors or {})
        fit = fit_model(spec, sample, choose, random_state, origin, left)
        formulas = replace(design.without_data(), dropped_levels=left.lost)
        return replace(fit, origin=replace(fit.origin, design=formulas))
    asked = references_asked(table, estimator.reference)
    tried: list[dict[str, str]] = []
    while True:
        try:
            return fit_model(spec, sample, choose, random_state, origin)
        except LevelsChangedError as changed:
            refuse_moved(table, changed, asked)
            if fixed:
                raise
            references = changed.encoding.references
            if references in tried:
                # Halves of an honest search may lose one level each.
                raise InputError(
                    f"{option('on_separation', 'drop')} leaves no level that every part of the "
                    f"rows has, so {quoted_list([*references], 3)} would have no reference; merge "
                    "rare levels"
                ) from changed
            tried.append(references)
            table, sample = re_encode(table, sample, changed.encoding)
            spec, choose = specify(table, None)


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows whose columns the caller encoded, and knows by their names.

    A fit to them raises `LevelsChangedError` if its rows need another encoding.
    """

    rows: Any
    """what `fit` takes as X"""
    encoding: Encoding


def _check_parameters(estimator: Any, sample_weight: Any, groups: Any) -> None:
    """Refuse invalid options and invalid combinations of options."""
    if estimator.start is not None:
        read_start(estimator.start, _method(estimator))
    check_parameters(estimator)
    if getattr(estimator, "errors", "normal") == "t":
        _check_errors(estimator)
    _check_method(estimator)
    if getattr(estimator, "rho", None) is not None:
        estimator._family.require("single rho")
    if estimator.start is not None and getattr(estimator, "rho", None) is not None:
        raise InputError(
            f"start and rho are both given: with rho held at {estimator.rho:g} the likelihood has "
            "one maximum, which needs no start. Leave one of them out."
        )
    kind = kind_of_covariance(estimator.cov_type)
    sampling = sample_weight is not None and estimator.weight_kind == "sampling"
    if sampling and is_classical(_cov_type(estimator)):
        raise InputError(
            f"sampling weights need {option('cov_type', 'robust')} or "
            f"{option('cov_type', 'cluster')}: the classical covariance takes a weight for a "
            "number of rows"
        )
    check_groups(kind, groups)


def check_groups(cov_type: CovType | None, groups: Any) -> None:
    """Refuse clusters that are missing, or not used."""
    if cov_type == "cluster" and groups is None:
        raise InputError(
            "cov_type='cluster' needs groups: fit(X, y, groups=...), or groups='column' in "
            "from_formula and scan_parquet, with the name of a column of the data"
        )
    if not sums_groups(cov_type) and groups is not None:
        raise InputError("groups are used with cov_type='cluster' only; set it, or drop groups")


def _check_method(estimator: Any) -> None:
    """Refuse a method that the model does not have, or options that the method does not take."""
    family: Family = estimator._family
    method = _method(estimator)
    if method not in family.methods:
        raise InputError(
            f"{type(estimator).__name__} has no {option('method', method)}: that is a method of "
            "Heckman, whose features are named, and of HeckmanAverage. Use "
            f"{option('method', family.methods[0])}."
        )
    if kind_of_covariance(estimator.cov_type) not in (None, *family.cov_types):
        raise InputError(
            f"the {family.words.model} has no classical covariance: its standard errors are "
            f"{option('cov_type', 'robust')}, as its errors need not have one variance, or "
            f"{option('cov_type', 'cluster')}"
        )
    for other in getattr(estimator, "_by_method", {}).values():
        for only in other.parameters - family.parameters:
            if getattr(estimator, only, None) is not None:
                raise InputError(
                    f"{option(only)} is about {other.words.correction}: use it with "
                    f"{option('method', other.methods[0])}"
                )
    for parameter, why in family.refuses.items():
        if getattr(estimator, parameter, None) is not None:
            raise InputError(why)


def _check_errors(estimator: Any) -> None:
    """Refuse t errors where only normal ones have what is asked for."""
    if estimator.method != "ml":
        raise InputError(
            f"{option('errors', 't')} needs {option('method', 'ml')}: two steps rest on lambda of "
            "a normal error, and a series on no distribution"
        )


def groups_of_columns(table: FeatureTable, design: FormulaDesign | None) -> list[list[str]]:
    """Return the columns that belong together: terms of a formula, dummies of a category."""
    if design is not None:
        return list(design.selection_terms.values())
    return [table.labels(group) for group in table.columns.groups]


def make_spec(
    estimator: Any, table: FeatureTable, prediction: Sequence[int], groups: Sequence[Any]
) -> Spec:
    """Return the model that an estimator describes, with its columns resolved."""
    driving = estimator.roles[1]
    return Spec(
        columns=table.columns,
        labels=table.columns.encoded_labels,
        selection=tuple(resolve(table, getattr(estimator, driving), driving)),
        prediction=tuple(prediction),
        method=_method(estimator),
        cov_type=_cov_type(estimator),
        weight_kind="sampling" if isinstance(estimator.cov_type, Survey) else estimator.weight_kind,
        survey=estimator.cov_type if isinstance(estimator.cov_type, Survey) else None,
        on_collinear=estimator.on_collinear,
        on_separation=estimator.on_separation,
        start=estimator.start,
        groups=tuple(tuple(resolve(table, list(group), "groups")) for group in groups),
        outcome_kind=estimator._family.name,
        # Some families have no transform, and searches hold nothing.
        outcome_transform=getattr(estimator, "outcome_transform", None),
        held={} if (rho := getattr(estimator, "rho", None)) is None else {"rho": float(rho)},
        unknown=estimator.unknown,
        number=getattr(estimator, "n_terms", None),
        intercept=getattr(estimator, "intercept", None),
        class_order=_class_order(estimator),
    )


def _class_order(estimator: Any) -> tuple[Any, ...]:
    """Return the classes of an ordered outcome as the user lists them; empty if not."""
    classes = getattr(estimator, "classes", None)
    return () if classes is None else plain_classes(classes)


def _method(estimator: Any) -> Method:
    """Return how a model is estimated; a search of both equations has no choice."""
    family: Family = estimator._family
    asked = getattr(estimator, "method", family.methods[0])
    both = getattr(estimator, "search_in", "prediction") == "both"
    if both and asked in family.methods and "ml" in family.methods:
        return "ml"
    return estimator.method if len(family.methods) > 1 else family.methods[0]


def _cov_type(estimator: Any) -> CovType | None:
    """Return the kind of covariance that a fit has."""
    if estimator.cov_type is None and _method(estimator) == "two-step":
        default: CovType | None = estimator.two_step_cov_type
        return default
    kind: CovType | None = kind_of_covariance(estimator.cov_type)
    usual: CovType = estimator._family.cov_types[0]
    return usual if kind is None and not is_classical(usual) else kind


def attributes(fit: Fit) -> dict[str, Any]:
    """Return the public attributes of a fitted model, and the fit itself."""
    columns, classes = fit.spec.columns, fit.origin.classes
    known = {
        "_fit": fit,
        "selection_coef_": fit.selection_coef,
        "selection_intercept_": fit.selection_intercept,
        "adjusted_r2_": fit.adjusted_r2,
        "aic_": fit.aic,
        "bic_": fit.bic,
        "log_likelihood_": fit.log_likelihood,
        "params_": fit.params,
        "n_obs_": fit.n_obs,
        "n_selected_": fit.n_selected,
        "n_clusters_": fit.n_clusters,
        "row_counts_": fit.row_counts,
        "prediction_features_": fit.prediction_features,
        "selection_features_": fit.selection_features,
        "dropped_features_": fit.spec.feature_names(fit.dropped),
        "support_": columns.of_x(fit.support),
        "converged_": fit.converged,
        **columns.attributes(fit.labels),
    }
    if fit.family.can("single outcome equation"):
        known |= {"coef_": fit.coef, "intercept_": fit.intercept}
    if fit.family.can("single rho"):
        known |= {"imr_coef_": fit.imr_coef, "rho_": fit.rho, "sigma_": fit.sigma}
    if fit.spec.outcome_transform is not None:
        known["transform_ratio_"] = fit.transform_ratio
    if fit.details is not None:
        known |= fit.details.public(fit)
    if classes is not None:
        known["classes_"] = np.array(classes)
        for name in ("imr_coef_", "sigma_", "adjusted_r2_"):
            del known[name]
    if fit.ordered_classes is not None:
        known["cut_points_"] = cut_values(fit)
    return known


def attach_encoding(model: Any, encoding: Encoding) -> None:
    """Let a model that was fitted to encoded columns take the raw ones, as if it had encoded them.

    Sources of which the model has no column are left out.
    """
    columns = columns_of(model)
    sources = [
        name
        for name in encoding.sources
        if {*encoding.columns_of(name)} & {*columns.encoded_labels}
    ]
    encoding = encoding.of_sources(sources)
    if tuple(encoding.columns) != columns.encoded_labels:
        raise InputError("the encoding does not make the columns that the model was fitted to")
    take_columns(model, FittedColumns.of(encoding, columns.estimator))


def encoded_model(model: Any) -> Any:
    """Return a copy of a fitted model that takes its encoded columns, which are numbers."""
    columns = columns_of(model)
    if columns.encoding is None:
        return model
    model = copy(model)
    take_columns(model, columns.encoded())
    return model


def columns_of(model: Any) -> FittedColumns:
    """Return the columns of X that a model was fitted to."""
    columns: FittedColumns = (
        model.fit_.spec.columns if hasattr(model, "fit_") else model.columns_read()
    )
    return columns


def take_columns(model: Any, columns: FittedColumns) -> None:
    """Let a fitted model take other columns of X, which become the same K columns."""
    if not hasattr(model, "fit_"):
        model.take_columns(columns)
        return
    fit: Fit = model.fit_
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    search = fit.search
    if search is not None and search.halves is not None:
        search = replace(search, halves=replace(search.halves, columns=columns))
    fit = replace(fit, spec=replace(fit.spec, columns=columns), search=search)
    for name, value in attributes(fit).items():
        setattr(model, name, value)


def name_of(y: Any) -> str | None:
    """Return the name of an outcome, which may be a frame of one column; None if it has none."""
    name = getattr(y, "name", None)
    if len(getattr(y, "shape", ())) == 2:
        labels = frame_labels(y)
        name = labels[0] if len(labels) == 1 else None
    return name if isinstance(name, str) else None


def name_outcome(model: Any, name: str) -> None:
    """Tell a fitted model what its outcome is called, if it came without a name."""
    fit: Fit = model.fit_
    publish(model, attributes(replace(fit, origin=replace(fit.origin, outcome=name))))


def with_fit(model: Any, fit: Fit) -> Any:
    """Return a copy of a fitted model with another fit."""
    model = copy(model)
    publish(model, attributes(fit))
    return model


def publish(estimator: BaseEstimator, attributes: dict[str, Any]) -> None:
    """Replace the attributes of an earlier fit with these, at the very end of a fit."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)
    for name, value in attributes.items():
        setattr(estimator, name, value)

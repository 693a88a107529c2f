"""The rows of a fit, taken in once more, for methods that a fitted model alone cannot answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from heckmanfa.data.columns.feature_tables import read_features
from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.data.sample import Sample, find_row_source, read_sample
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import HeckmanfaWarning, InputError, NotIdentifiedError
from heckmanfa.fit import Fit, compress_sample
from heckmanfa.inference.remembered import groups_of, weights_of
from heckmanfa.model.equations import Selection
from heckmanfa.model.moments import Moments

# Two fits to the same rows differ by rounding alone, unless these came in another order.
_SAME = 1e-6


@dataclass(frozen=True)
class Again:
    """What a fit made of its rows."""

    table: FeatureTable
    sample: Sample
    selection: Selection
    """the selection equation, with the rows that both equations were fitted to"""
    moments: Moments
    design: FormulaDesign | None
    """with the columns that the formulas made, for a model from formulas"""


def read_again(
    fit: Fit,
    X: Any,
    y: Any,
    *,
    selected: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    clusters: bool = False,
) -> Again:
    """Take in the rows that a model was fitted to, and refuse others.

    Parameters
    ----------
    fit : Fit
        Fitted.
    X, y, selected, sample_weight, groups
        As they were passed to `Heckman.fit`; for a model from formulas, X is the data frame, y
        and ``selected`` are None, and the other two are columns or arrays, or None where the
        model knows the columns.
    clusters : bool
        Whether the clusters of the fit are needed, too.

    Returns
    -------
    Again
    """
    if fit.probit is None:
        raise NotIdentifiedError(
            "no outcome was missing in the fit, so there is no selection to ask about"
        )
    with warnings.catch_warnings(), one_blas_thread():
        # All that there is to warn of was said by the fit.
        warnings.simplefilter("ignore", HeckmanfaWarning)
        design = None
        if fit.origin.design is not None:
            if y is not None or selected is not None:
                raise InputError(
                    "the formulas say what the outcome is and who is selected: pass the data "
                    "frame alone"
                )
            design = FormulaDesign.build(*fit.origin.design.texts, X)
            sample_weight = weights_of(fit, X, sample_weight, other_rows=False)
            groups = groups_of(fit, X, groups) if clusters else groups
            sample_weight = design.rows_of(X, sample_weight, "sample_weight")
            groups = design.rows_of(X, groups, "groups")
            X, y, selected = design.features, design.outcome, design.selected
        # What is asked after a fit is worked out by NumPy.
        X, y, selected = on_host(X), on_host(y), on_host(selected)
        home = find_row_source(X, y, selected, sample_weight, groups)
        if home is None or not home.has_weight:
            sample_weight = weights_of(fit, X, sample_weight, other_rows=False)
        if clusters and (home is None or not home.has_groups):
            groups = groups_of(fit, X, groups)
        if fit.spec.cov_type != "cluster" and groups is not None:
            raise InputError("groups are used with cov_type='cluster' only; drop groups")
        spec = fit.spec
        table = read_features(X if home is None else home, spec.columns)
        sample = read_sample(
            table,
            y,
            selected=selected,
            sample_weight=sample_weight,
            groups=groups,
            sampling=spec.weight_kind == "sampling",
            selection=spec.selection,
            prediction=spec.prediction,
        )
        if sample.all_selected:
            raise InputError(_another(fit, sample, "no outcome is missing in the rows given"))
        selection, moments = compress_sample(spec, sample)
    if not _same(moments, fit.moments):
        raise InputError(_another(fit, sample, "the rows given are not those of the fit"))
    return Again(table, sample, selection, moments, design)


def _same(one: Moments, other: Moments) -> bool:
    if one.columns != other.columns or one.factor.shape != other.factor.shape:
        return False
    lengths = np.linalg.norm(other.factor, axis=0)
    # A triangular factor is unique but for the signs of its rows.
    mine, theirs = (
        part.factor * np.where(np.diag(part.factor) < 0, -1.0, 1.0)[:, None]
        for part in (one, other)
    )
    return bool(np.all(np.abs(mine - theirs) <= _SAME * lengths))


def _another(fit: Fit, sample: Sample, what: str) -> str:
    given, fitted = sample.row_counts, fit.row_counts
    as_passed = (
        "pass X and y (and selected, sample_weight) as they were passed to fit"
        if fit.origin.design is None
        else "pass the data frame (and sample_weight) as it was passed to from_formula"
    )
    if all(given[kind] == fitted[kind] for kind in ("selected", "unselected")):
        return (
            f"{what}: as many rows are selected and not selected as in the fit, but their values "
            f"or weights differ. {as_passed[0].upper()}{as_passed[1:]}."
        )
    return (
        f"{what}: {as_passed}. Here "
        f"{given['selected']} rows are selected and {given['unselected']} are not; in the fit "
        f"{fitted['selected']} were and {fitted['unselected']} were not."
    )

"""The rows of a fit, taken in once more, for methods that a fitted model alone cannot answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.rows import one_blas_thread
from heckmanfa.data.sample import Sample, find_row_source, read_features
from heckmanfa.data.tensors import on_host
from heckmanfa.errors import HeckmanfaWarning, InputError, NotIdentifiedError
from heckmanfa.estimators.remembered import groups_of, weights_of
from heckmanfa.model.equations import Selection
from heckmanfa.model.moments import Moments

if TYPE_CHECKING:
    from heckmanfa.estimators.heckman import Heckman

__all__ = ["Again", "read_again"]

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
    model: Heckman,
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
    model : Heckman
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
    if model._probit is None:
        raise NotIdentifiedError(
            "no outcome was missing in the fit, so there is no selection to ask about"
        )
    with warnings.catch_warnings(), one_blas_thread():
        # All that there is to warn of was said by the fit.
        warnings.simplefilter("ignore", HeckmanfaWarning)
        design = None
        if model._design is not None:
            if y is not None or selected is not None:
                raise InputError(
                    "the formulas say what the outcome is and who is selected: pass the data "
                    "frame alone"
                )
            design = FormulaDesign.build(*model._design.texts, X)
            sample_weight = weights_of(model, X, sample_weight, other_rows=False)
            groups = groups_of(model, X, groups) if clusters else groups
            sample_weight = design.rows_of(X, sample_weight, "sample_weight")
            groups = design.rows_of(X, groups, "groups")
            X, y, selected = design.features, design.outcome, design.selected
        # What is asked after a fit is worked out by NumPy.
        X, y, selected = on_host(X), on_host(y), on_host(selected)
        home = find_row_source(X, y, selected, sample_weight, groups)
        if home is None or not home.has_weight:
            sample_weight = weights_of(model, X, sample_weight, other_rows=False)
        if clusters and (home is None or not home.has_groups):
            groups = groups_of(model, X, groups)
        if model.cov_type != "cluster" and groups is not None:
            raise InputError("groups are used with cov_type='cluster' only; drop groups")
        table = read_features(model, X if home is None else home, reset=False)
        sample = model._take_in(table, y, selected, sample_weight, groups)
        if sample.all_selected:
            raise InputError(_another(model, sample, "no outcome is missing in the rows given"))
        selection, moments = model._compress(table, sample)
    if not _same(moments, model._moments):
        raise InputError(_another(model, sample, "the rows given are not those of the fit"))
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


def _another(model: Heckman, sample: Sample, what: str) -> str:
    given, fitted = sample.row_counts, model.row_counts_
    as_passed = (
        "pass X and y (and selected, sample_weight) as they were passed to fit"
        if model._design is None
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

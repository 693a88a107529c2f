"""The estimator that answers a question."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from heckmanfa.analysis.column_roles import joint_groups
from heckmanfa.analysis.prepared import Model, Prepared
from heckmanfa.analysis.request import Question
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.fitted_levels import LevelsChangedError
from heckmanfa.errors import InputError
from heckmanfa.estimators.averaged import HeckmanAverage, HeckmanProbitAverage
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.heckman_probit import HeckmanProbit
from heckmanfa.estimators.probit_searches import HeckmanProbitBestSubset
from heckmanfa.estimators.searches import HeckmanBestSubset, HeckmanFA, HeckmanLasso
from heckmanfa.search.strategies import Extraction
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted

_EXTRACTIONS: dict[str, Extraction] = {
    "fa": "sample",
    "fa-star": "rank",
    "correlation": "correlation",
}
# With so few features and no range of rho, all assignments that are worse by at most this much are
# found quickly, and the report shows them.
_FEW_FEATURES = 26
_NEAR = dict.fromkeys(("bic", "aic", "ebic", "corrected_bic"), 10.0)
# Training steps that a plot shows.
_PATH_POINTS = 200


def model_of(question: Question, encoding: Encoding) -> Model:
    """Return the unfitted estimator of a question."""
    cov_type = None
    if question.cluster is not None:
        cov_type = "cluster"
    elif question.robust or question.weight_kind == "sampling":
        cov_type = "robust"
    candidates = _columns_of(encoding, question, "predict_with") or None
    never = _columns_of(encoding, question, "select_only")
    binary = question.outcome_kind == "binary"
    common: dict[str, Any] = {
        "start": question.start,
        "cov_type": cov_type,
        "weight_kind": question.weight_kind,
        "on_collinear": "drop",
        "on_separation": question.on_separation,
    }
    if not binary:
        common |= {"method": question.estimated, "outcome_transform": question.outcome_transform}
    if question.searched == "none":
        names = encoding.columns if candidates is None else candidates
        given = [name for name in names if name not in never]
        common["rho"] = question.rho
        return HeckmanProbit(given, **common) if binary else Heckman(given, **common)
    # Columns that must not predict are in no group.
    may = {*(encoding.columns if candidates is None else candidates)}
    groups = [group for group in joint_groups(encoding).values() if may.issuperset(group)]
    common |= {
        "prediction_features": candidates,
        "never": [name for name in never if candidates is None or name in candidates],
        "always": _columns_of(encoding, question, "always"),
        "feature_groups": groups or None,
        "random_state": question.seed,
    }
    common |= searched_equations(question, encoding)
    if binary and question.searched == "average":
        return HeckmanProbitAverage(**common)
    if binary:
        return HeckmanProbitBestSubset(
            question.criterion or "bic", honest=question.honest, **common
        )
    common["rho_range"] = question.rho_range
    if question.searched == "average":
        return HeckmanAverage(**common)
    common["honest"] = question.honest
    if question.searched == "lasso":
        return HeckmanLasso(question.criterion or "bic", **common)
    if question.searched == "best-subset":
        model = HeckmanBestSubset(question.criterion or "bic", **common)
        few = len(encoding.columns) <= _FEW_FEATURES and question.search_in != "both"
        if question.rho_range is None and few:
            model.set_params(tolerance=_NEAR.get(model.criterion))
        return model
    trained = HeckmanFA(_EXTRACTIONS[question.searched], **common)
    trained.set_params(record_path=max(trained.epochs // _PATH_POINTS, 1))
    if question.criterion is not None:
        trained.set_params(criterion=question.criterion)
    return trained


def searched_equations(question: Question, encoding: Encoding) -> dict[str, Any]:
    """Return the parameters of a search that leaves features out of both equations, if asked."""
    if question.search_in != "both":
        return {}
    named = ("selection_always", "selection_never")
    columns = {name: _columns_of(encoding, question, name) for name in named}
    return {"search_in": "both", **columns}


def fit_question(prepared: Prepared) -> tuple[Prepared, Model, list[warnings.WarningMessage]]:
    """Fit the model of a question, with the levels that the rows of the fit have.

    Returns the rows as the model took them, the model, and the warnings of its fit.
    """
    # Each time, a category has fewer levels, or another reference.
    for _ in range(len(prepared.encoding.columns) + 1):
        model = model_of(prepared.question, prepared.encoding)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                prepared.fit(model, settle=True)
            except LevelsChangedError as changed:
                prepared = prepared.with_encoding(changed.encoding)
                continue
        fitted = model.fit_.spec.columns.encoding
        if prepared.encoding.levels and fitted is not None:
            encoding = replace(prepared.encoding, level_rows=fitted.level_rows)
            prepared = replace(prepared, encoding=encoding)
        return prepared, model, caught
    raise InputError(
        f"{option('on_separation', 'drop')} leaves no level that every part of the rows has as a "
        f"reference; merge rare levels with {option('min_level_rows')}"
    )


def _columns_of(encoding: Encoding, question: Question, field: str) -> list[str]:
    """Return the encoded columns of those columns of the table that an option names."""
    found: list[str] = []
    for name in getattr(question, field):
        if name in encoding.left_out:
            raise InputError(
                f"{option(field)} names {quoted(name)}, which cannot be used: "
                f"{encoding.left_out[name]}"
            )
        found += encoding.groups.get(name, [name])
    return found

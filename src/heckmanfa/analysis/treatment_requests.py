"""Predictions of a treatment model: what can be asked of it, and what comes back."""

from __future__ import annotations

from typing import Any

from heckmanfa.analysis.prediction_request import Request
from heckmanfa.errors import InputError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown

TREATMENT = "treatment"
"""the kind that is the probability of treatment"""
_NAMES = {1: "treated", 0: "untreated"}


def is_treatment(model: Any) -> bool:
    """Whether a fitted model is one of a treatment."""
    return hasattr(model, "fit_") and model.fit_.family.sees_everyone


def check_regimes(request: Request) -> None:
    """Refuse a regime that does not exist."""
    for name in ("regime", "given"):
        value = getattr(request, name)
        if value not in (None, 0, 1):
            raise InputError(f"{option(name)} must be 0 or 1; got {quoted(value)}")
    if request.kind == TREATMENT:
        for name in ("regime", "given"):
            if getattr(request, name) is not None:
                raise InputError(
                    f"{option(name)} is about outcomes, and {option('kind', TREATMENT)} is the "
                    "probability of treatment: leave one of them out"
                )


def check_of_treatment(model: Any, request: Request) -> None:
    """Refuse what a treatment model does not predict."""
    kind = request.kind
    if kind not in ("marginal", TREATMENT):
        instead = {
            "selected": option("given", 1),
            "unselected": option("given", 0),
            "selection": option("kind", TREATMENT),
        }.get(kind, option("regime", 1))
        raise InputError(
            f"{option('kind', kind)} is for outcomes that some rows lack, and "
            f"{type(model).__name__} has those of everyone: use {instead}"
        )
    if request.interval is not None and mixes(request):
        raise InputError(
            f"{option('return_interval')} needs {option('regime')} or {option('given')}: the "
            "outcome as it is observed mixes both regimes, and has no interval"
        )


def refuse_regimes(model: Any, request: Request) -> None:
    """Refuse what only a treatment model predicts."""
    for name in ("regime", "given"):
        if getattr(request, name) is not None:
            raise InputError(
                f"{option(name)} is for treatment models, and this is a {type(model).__name__}"
            )
    if request.kind == TREATMENT:
        raise InputError(
            f"{option('kind', TREATMENT)} is for treatment models, and this is a "
            f"{type(model).__name__}: use {option('kind', 'selection')}"
        )


def mixes(request: Request) -> bool:
    """Whether the outcome of either regime is predicted, as it is observed."""
    return request.kind != TREATMENT and request.regime is None and request.given is None


def usual_of_treatment(model: Any, request: Request) -> tuple[str | None, str]:
    """Return the interval to give unless the user chooses, or None and why."""
    if request.kind == TREATMENT:
        return None, ""
    if mixes(request):
        return None, (
            "No interval is given: the outcome as it is observed mixes both regimes. "
            f"{option('regime', 1)} has one."
        )
    regime = request.given if request.regime is None else request.regime
    if request.given is not None and not abs(model.of_regime(regime).rho_) < 1:
        return "confidence", ""
    return "prediction", ""


def column_of(request: Request) -> str:
    """Return the column of the predictions."""
    if request.kind == TREATMENT:
        return "predicted_treatment"
    parts = ["predicted"]
    if request.regime is not None:
        parts.append(_NAMES[request.regime])
    if request.given is not None:
        parts.append(f"given_{_NAMES[request.given]}")
    return "_".join(parts) if len(parts) > 1 else "predicted_observed"


def words_of(request: Request, outcome: str) -> str:
    """Say what the column of predictions is of."""
    column = column_of(request)
    if request.kind == TREATMENT:
        return f"{column} is the probability of treatment."
    if mixes(request):
        return f"{column} is {shown(outcome)} as it is observed, treated or not."
    regime = request.given if request.regime is None else request.regime
    whom = "anyone" if request.given is None else f"a row that is {_NAMES[request.given]}"
    how = "with treatment" if regime else "without treatment"
    return f"{column} is {shown(outcome)} of {whom}, {how}."


def needs_of(request: Request) -> str:
    """Return the kind of a selection model that needs the same columns."""
    if request.kind == TREATMENT:
        return "selection"
    return "marginal" if request.given is None and request.regime is not None else "selected"


def predict_of_treatment(model: Any, X: Any, request: Request) -> Any:
    """Return the predictions of a treatment model, with the ends of their intervals if asked."""
    asked = {"return_interval": request.interval, "conf_level": request.conf_level}
    asked |= {"missing": "nan", **request.rule}
    if request.kind == TREATMENT:
        return model.predict_selection(X, scale=request.scale, **asked)
    return model.predict(X, regime=request.regime, given=request.given, **asked)

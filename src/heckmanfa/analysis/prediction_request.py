"""What can be asked of a model: kinds of predictions, their scales and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.inference.log_means import check_scale
from heckmanfa.inference.prediction import check_interval
from heckmanfa.inference.probabilities import check_probability_interval
from heckmanfa.results.naming import name_on_scale
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, shown
from heckmanfa.text.wording import nearest

KINDS = ("marginal", "selected", "unselected", "expected", "selection", "joint")
INTERVALS = ("prediction", "confidence")
CONF_LEVEL = 0.95


@dataclass(frozen=True)
class Request:
    """What to predict; the parameters are those of `heckmanfa.predict_parquet`."""

    kind: str = "marginal"
    interval: str | None = None
    scale: str = "response"
    conf_level: float = CONF_LEVEL
    unknown: str | None = None
    extrapolation: bool = False

    @property
    def rule(self) -> dict[str, Any]:
        """How to treat unknown levels, as a parameter of models; empty leaves it to them."""
        return {} if self.unknown is None else {"unknown": self.unknown}


def check_request(kind: str, interval: str | None, scale: str = "response") -> None:
    """Refuse a kind of prediction, an interval or a scale that does not exist."""
    if kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(
            f"{option('kind')} must be one of {', '.join(KINDS)}; got {quoted(kind)}{hint}"
        )
    if interval not in (None, *INTERVALS):
        raise InputError(
            f"{option('return_interval')} must be {' or '.join(INTERVALS)}; got {quoted(interval)}"
        )
    if interval == "prediction" and kind == "selection":
        raise InputError(
            f"{option('return_interval', 'prediction')} is about outcomes, but {option('kind')} is "
            "selection, whose interval is confidence"
        )
    check_scale(scale)


def usual_interval(model: Any, kind: str) -> tuple[str | None, str]:
    """Return the interval to give unless the user chooses, or None and a sentence that says why."""
    if kind == "selection":
        return None, ""
    if not hasattr(model, "predict_selection"):
        return None, f"No interval is given: {type(model).__name__} has none."
    fit = model.fit_
    if fit.is_binary or kind == "expected":
        return "confidence", ""
    if fit.probit is not None and fit.average is None and kind != "marginal" and abs(fit.rho) >= 1:
        return None, (
            f"No interval is given: rho is estimated at {fit.rho:.4g}, outside (-1, 1), so the "
            "distribution of an outcome given selection is not known. "
            f"{option('return_interval', 'confidence')} gives that of its mean."
        )
    return "prediction", ""


def check_model(model: Any, request: Request) -> None:
    """Refuse a kind of prediction, or an interval, that a model does not have."""
    kind, interval, scale = request.kind, request.interval, request.scale
    if not hasattr(model, "predict_selection"):
        if kind != "marginal" or interval is not None or scale != "response":
            raise InputError(
                f"{type(model).__name__} does not model selection and gives no intervals: its "
                "predictions are of kind 'marginal'"
            )
        return
    if kind == "selection":
        return
    if model.fit_.is_binary:
        if kind == "expected":
            raise InputError(
                "kind 'expected' of a binary outcome is the probability of a class together with "
                "selection: use kind 'joint'"
            )
        if scale != "response":
            raise InputError(
                "scale 'link' is for amounts and for kind 'selection': predictions of a binary "
                "outcome are probabilities"
            )
        if interval is not None:
            check_probability_interval(interval, request.conf_level)
    elif kind == "joint":
        raise InputError(
            "kind 'joint' is the probability of a class together with selection, and "
            f"{type(model).__name__} predicts amounts: use another kind, or fit a binary outcome"
        )
    elif interval is not None:
        check_interval(interval, request.conf_level, kind)


def has_range(model: Any) -> bool:
    """Whether a model has a selection equation, whose index shows which rows extrapolate."""
    return hasattr(model, "predict_selection") and model.fit_.probit is not None


def scale_words(fit: Fit | None, outcome: str, kind: str, scale: str) -> str:
    """Say what a column of predictions is of, if that is not the outcome as it was fitted."""
    if kind == "selection":
        index = "predicted_selection is the index of the selection equation, not a probability."
        return index if scale == "link" else ""
    transform = None if fit is None else fit.spec.outcome_transform
    if transform is None:
        return ""
    named = outcome if scale == "response" else name_on_scale(outcome, transform)
    if kind == "expected":
        return f"predicted_expected is a mean of {shown(named)}, counted as 0 if not selected."
    not_log = f", not of its logarithm ({option('scale', 'link')})" if scale == "response" else ""
    return f"predicted_{kind} is a mean of {shown(named)}{not_log}."

"""Sentences about an outcome that is fitted on its logarithm, and how its means are judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.document import Caveat, Finding
from heckmanfa.results.naming import outcome_of
from heckmanfa.text.option_types import OutcomeTransform
from heckmanfa.text.printable import shown

# A mean ratio is far from 1 if predictions are off by so much and chance hardly explains it.
_MUCH, _MANY_ERRORS = 0.05, 2.58
# Beyond this, a ratio that chance may explain rests on a few rows.
_VERY_MUCH = 0.2


def log_points(transform: OutcomeTransform | None) -> str:
    """Say what an effect on a logarithm means, in a sentence; empty on other scales."""
    if transform is None:
        return ""
    whole = "the outcome" if transform == "log" else "one plus the outcome"
    return f"Effects are in log points: 0.05 is about 5% of {whole}."


def scale_notes(
    transform: OutcomeTransform | None, scale: str, predictions: bool = False
) -> list[str]:
    """Say which scale effects, or predictions, are on, if there are two."""
    if transform is None:
        return []
    if scale == "link":
        return ["Predictions are of the logarithm." if predictions else log_points(transform)]
    return [
        f"{'Predictions' if predictions else 'Effects'} are on the outcome's own scale, by the "
        "model's formula for its mean: errors are normal on the log scale, and standard errors "
        "allow for sigma."
    ]


def caveats_of_log(fit: Fit) -> list[Caveat]:
    """Say what is on which scale, if the outcome is fitted on its logarithm."""
    transform = fit.spec.outcome_transform
    if transform is None:
        return []
    words = (
        f"The outcome is {shown(outcome_of(fit))}. {log_points(transform)} Predictions and scores "
        "are on the outcome's own scale; likelihood, AIC, BIC and adjusted R2 are on that of the "
        "logarithm."
    )
    return [Caveat("log_scale", "note", words)]


def ratio_text(ratio: tuple[float, float]) -> str:
    """Format a mean ratio with its standard error."""
    value, error = ratio
    return f"{value:.3f} (s.e. {error:.3f})"


def about_ratio(ratio: tuple[float, float] | None, best: str = "") -> list[Finding]:
    """Judge the mean over the selected rows of the outcome over its mean given selection.

    An average has none of its own. ``best`` names its best set, if the ratio is of that model.
    """
    if ratio is None:
        return []
    found = _judged(ratio)
    if best:
        meaning = f"This is of the best set alone, {best}: an average has none. {found.meaning}"
        found = replace(found, value=f"{found.value}, of the best set", meaning=meaning)
    return [found]


def _judged(ratio: tuple[float, float]) -> Finding:
    value, error = ratio
    name = "outcome over its predicted mean"
    short = ratio_text(ratio)
    apart = abs(value - 1.0)
    if not np.isfinite(value) or (apart > _MUCH and not apart <= _MANY_ERRORS * error):
        words = (
            "The selected outcomes average that many times their predicted means, which would be "
            "1 under the model: the errors are not normal with one variance on the log scale. "
            "Predictions on the outcome's own scale are off by about that factor; those of its "
            "logarithm (scale='link') do not need it."
        )
        return Finding("transform_ratio", name, short, "caution", words)
    if apart > _VERY_MUCH:
        words = (
            "It would be 1 under the model. Its standard error is large, so a few outcomes make "
            "up most of it, and of any mean on the outcome's own scale."
        )
        return Finding("transform_ratio", name, short, "caution", words, case="few rows")
    words = (
        "Averaged over the selected rows; 1 under the model, so predictions on the outcome's own "
        "scale agree with the outcomes."
    )
    return Finding("transform_ratio", name, short, "ok", words)

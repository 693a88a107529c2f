"""Sentences about an outcome that is fitted on its logarithm."""

from __future__ import annotations

from heckmanfa.fit import Fit
from heckmanfa.model.option_types import OutcomeTransform
from heckmanfa.results.naming import outcome_of
from heckmanfa.text.passage import Name, Passage, passage

LOG_POINTS = "an effect of .1 is about 10% more"
"""what an effect on a logarithm means"""


def scale_notes(transform: OutcomeTransform | None, scale: str) -> list[str]:
    """Say which scale effects are on, if there are two."""
    if transform is None:
        return []
    if scale == "response":
        return [
            "Effects are on the outcome's own scale: the errors are normal on the log scale, and "
            "standard errors allow for sigma."
        ]
    of = "the outcome" if transform == "log" else "1 + the outcome"
    return [f"Effects are in log points of {of}: {LOG_POINTS}."]


def log_note(fit: Fit) -> Passage | None:
    """Say what coefficients of a log outcome mean, and where its own scale is; None without one."""
    transform = fit.spec.outcome_transform
    if transform is None:
        return None
    of = "" if transform == "log" else " of 1 + the outcome"
    return passage(
        "The outcome is ",
        Name(outcome_of(fit)),
        f". Coefficients are in log points{of}: {LOG_POINTS}. Predictions and scores are on the "
        "outcome's own scale; likelihood, AIC, BIC and adjusted R2 are on that of the logarithm.",
    )

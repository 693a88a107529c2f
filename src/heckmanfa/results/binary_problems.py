"""What can be wrong with the fit of a binary outcome: few events, separation, and what it moves."""

from __future__ import annotations

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.document import Finding
from heckmanfa.results.effect_words import EffectWords, class_label
from heckmanfa.results.naming import outcome_of
from heckmanfa.results.probability_effects import naive_slopes, own_slopes
from heckmanfa.results.problems import ENOUGH_ROWS
from heckmanfa.text.printable import shown
from heckmanfa.text.wording import number, plural, points, some

ONLY_NORMALITY = (
    "Only normality identifies the model. A binary outcome says far less about the shape of the "
    "errors than a continuous one does: rho and all effects rest on an assumption that these data "
    "can hardly contradict."
)
"""what no exclusion means for a binary outcome"""

# Wald intervals of rho whose end is beyond this lean on the boundary.
_NEAR_BOUNDARY = 0.95


def binary_findings(fit: Fit) -> list[Finding]:
    """Return what only a binary outcome has to be asked; nothing for other outcomes."""
    if fit.binary is None:
        return []
    return [
        *about_events(fit),
        *about_separation(fit),
        *about_decided_rows(fit),
        *about_naive(fit),
    ]


def events_per_coefficient(fit: Fit) -> float:
    """Selected rows of the rarer class, for each coefficient that predicts."""
    assert fit.binary is not None
    rarer = min(fit.binary.n_positive, fit.binary.n_negative)
    return float(rarer) / len(fit.features) if fit.features else float("inf")


def has_few_events(fit: Fit) -> bool:
    """Whether the rarer class has fewer rows than the rule of thumb asks for."""
    return fit.binary is not None and events_per_coefficient(fit) < ENOUGH_ROWS


def about_events(fit: Fit) -> list[Finding]:
    """Compare the rows of the rarer class with the number of coefficients."""
    if fit.binary is None or fit.classes is None or not fit.features:
        return []
    found, each = fit.binary, events_per_coefficient(fit)
    rare_is_positive = found.n_positive <= found.n_negative
    n = found.n_positive if rare_is_positive else found.n_negative
    label = shown(class_label(fit.classes[1 if rare_is_positive else 0]), 40)
    amount = f"{each:,.0f}" if each >= 100.0 else f"{each:.1f}"
    value = (
        f"{n:,.10g} selected with {label} for {plural(len(fit.features), 'coefficient')}, "
        f"{amount} each"
    )
    short = f"{amount} for each coefficient"
    name = "rows of the rarer class"
    if not has_few_events(fit):
        words = f"A rule of thumb asks for {ENOUGH_ROWS} for each coefficient."
        return [Finding("events", name, value, "ok", words, short=short)]
    words = (
        f"A rule of thumb asks for {ENOUGH_ROWS} for each coefficient. With fewer, coefficients "
        "tend to be too large, and intervals may cover less often than they say."
    )
    return [Finding("events", name, value, "caution", words, short=short)]


def about_separation(fit: Fit) -> list[Finding]:
    """Name the columns that decide the outcome among the selected rows."""
    assert fit.binary is not None
    if not fit.binary.separated:
        return []
    names = tuple(str(name) for name in fit.spec.feature_names(fit.binary.separated))
    words = (
        "A plain probit has no finite maximum there: the coefficients are where the iteration "
        "stopped, and have no standard errors. Leave these columns out, or merge rare levels."
    )
    name = "columns that decide the outcome"
    return [Finding("outcome_separation", name, some(names), "problem", words, names=names)]


def about_decided_rows(fit: Fit) -> list[Finding]:
    """Say which rows were left out because a column decides their selection or their outcome."""
    assert fit.binary is not None
    n, deciding = fit.row_counts.get("left_out_separation", 0), fit.binary.deciding
    if not n:
        return []
    others = [column for column in fit.dropped if column not in deciding]
    which = {"outcome decided by": deciding, "columns left out": others}
    parts = [plural(n, "row") + " left out"]
    for words, columns in which.items():
        names = [str(name) for name in fit.spec.feature_names(columns)]
        parts += [f"{words} {some(names)}"] if names else []
    decided = "selection or outcome" if deciding else "selection"
    words = (
        f"A column decides their {decided}, so the likelihood has no maximum with them. The "
        "estimates say nothing about such rows."
    )
    return [Finding("decided_rows", "separation", "; ".join(parts), "caution", words)]


def about_naive(fit: Fit) -> list[Finding]:
    """Say how far the correction moves the average slopes of the probability."""
    if fit.probit is None or not fit.features:
        return []
    own, covariance = own_slopes(fit)
    naive, _ = naive_slopes(fit)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.abs(own - naive) / np.sqrt(np.diag(covariance))
    if not np.isfinite(moved).any():
        return []
    most = int(np.nanargmax(moved))
    column = fit.equation[most]
    mine, other = points(float(own[most]), float(naive[most]))
    target = EffectWords.of(fit, outcome_of(fit)).target
    value = (
        f"{shown(fit.labels[column])}: {mine} percentage points with the correction, {other} "
        f"without; {number(float(moved[most]), 2)} standard errors apart"
    )
    words = (
        f"Of all average slopes of {target}, the correction moves this one most. Without it, a "
        "probit of the selected rows takes rho to be zero."
    )
    return [Finding("naive_probit", "naive probit", value, "ok", words)]


def rho_leans_on_boundary(ends: tuple[float, float]) -> bool:
    """Whether an interval of rho reaches so far that its coverage is doubtful."""
    return bool(np.isfinite(ends).all()) and max(-ends[0], ends[1]) > _NEAR_BOUNDARY

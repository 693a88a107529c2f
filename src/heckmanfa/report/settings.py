"""Words of a page on how a model was estimated, and how its rows were used."""

from __future__ import annotations

import os
import platform
from datetime import UTC, date, datetime
from importlib.metadata import PackageNotFoundError, version

from heckmanfa.fit import Fit
from heckmanfa.results.distribution import ALL_AGAIN, LINEARIZED, clusters_text
from heckmanfa.results.funnel import Funnel
from heckmanfa.results.naming import held_in_words
from heckmanfa.text.table import Table, lay_out
from heckmanfa.text.wording import count, percent


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not known"


VERSION = _version("heckmanfa")
"""of this package; its root is above this room"""

# Of the year 9999, after which Python has no dates.
_LAST_SECOND = 253_402_300_799
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")
_METHODS = {
    "two-step": "Heckman's two steps: a probit for who is selected, then least squares with lambda "
    "(the inverse Mills ratio) among the features.",
    "ml": "Maximum likelihood of both equations together.",
}
_OF_TREATMENT = {
    "two-step": "Two steps: a probit for who is treated, then least squares with the hazard of "
    "treatment among the features.",
    "ml": "Maximum likelihood of treatment and outcome together.",
}
_HELD_TWO_STEP = (
    "Two-step: a probit for who is selected, then least squares, corrected for the selection bias "
    "that the rho held implies."
)
_CLASSES_OBSERVED = "A probit: no outcome is missing, so there is nothing to correct."
_OBSERVED = "Ordinary least squares: no outcome is missing, so there is nothing to correct."
_WEIGHTS = {
    "frequency": "a row counts as often as its weight says",
    "sampling": "a row represents that much of the population",
}


def estimation_words(fit: Fit) -> dict[str, str]:
    """Say how a model was estimated."""
    classes = fit.family.has_classes
    if fit.family.sees_everyone:
        return {"Estimation": _OF_TREATMENT[fit.spec.method]}
    if fit.probit is None:
        return {"Estimation": _CLASSES_OBSERVED if classes else _OBSERVED}
    said = {"Estimation": fit.family.words.estimation or _METHODS[fit.spec.method]}
    if fit.held_rho is not None:
        if fit.spec.method == "two-step":
            said["Estimation"] = _HELD_TWO_STEP
        said["rho"] = f"{held_in_words(fit.held_rho).capitalize()}, not estimated."
    return said


def errors_words(fit: Fit, groups: str, *, asked: bool) -> str:
    """Say what standard errors assume; ``asked`` is whether the user asked for robust ones."""
    if fit.spec.cov_type == "cluster":
        n = clusters_text(fit.n_clusters, fit.cluster_counts)
        word = "cluster" if fit.n_clusters == 1 else "clusters"
        return (
            f"Cluster: robust, with rows of the same {groups} allowed to be dependent; {n} {word}."
        )
    if fit.design is not None and fit.design.n_replicates:
        beside = fit.details is not None and fit.details.beside
        return f"Survey: by {fit.design.words}. {ALL_AGAIN if beside else LINEARIZED}"
    if fit.design is not None:
        return f"Survey: by the design, with {fit.design.words}."
    if fit.spec.cov_type == "robust":
        return (
            f"Robust{why_robust(fit, asked=asked)}: the variance of the errors may differ among "
            "rows."
        )
    return "Classical: the errors have one variance, and rows are independent."


def why_robust(fit: Fit, *, asked: bool) -> str:
    """Say why standard errors are robust if nobody asked for it; empty if somebody did."""
    if asked:
        return ""
    sampling = fit.spec.weight_kind == "sampling"
    if not sampling and fit.family.cov_types[0] == "robust":
        return ", as errors need not have one variance"
    return ", as sampling weights need" if sampling else ", the default of an average by two steps"


def weight_words(kind: str) -> str:
    """Say what a weight means."""
    return f"({kind}): {_WEIGHTS[kind]}."


def shares_table(
    title: str, counts: list[tuple[str, int]], total: int, caption: str, name: str
) -> Table:
    """Lay out counts of rows with their share of all rows."""
    rows = [[words, count(n), percent(n / total)] for words, n in counts]
    return lay_out([title], ["Rows", "Share"], rows, caption, name)


def rows_table(funnel: Funnel, every: str) -> Table:
    """Lay out how all rows were used; ``every`` is what they are called."""
    used = [*funnel.by_use(), (every, funnel.read)]
    return shares_table("Use", used, funnel.read, "Rows", "rows-table")


def versions() -> str:
    """Name the versions of everything that made a page."""
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    return f"heckmanfa {VERSION}, Python {platform.python_version()}, {packages}."


def today() -> str:
    """Return the date, as in 2026-11-18; builds that repeat set it by ``SOURCE_DATE_EPOCH``."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isascii() and epoch.isdigit() and int(epoch) <= _LAST_SECOND:
        return datetime.fromtimestamp(int(epoch), UTC).date().isoformat()
    return date.today().isoformat()

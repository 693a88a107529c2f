"""A treatment by both methods and both kinds of regimes, beside what takes it as drawn by lot."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from heckmanfa.analysis.estimates_compared import grouped
from heckmanfa.analysis.prepared import Model, Prepared, model_of
from heckmanfa.data.missing_features import explain_lost
from heckmanfa.data.sample import warn_of_frequencies
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.fit import Fit
from heckmanfa.fit.treatment_details import treatment_details
from heckmanfa.inference.treatment_effects import average_effects, naive_rows
from heckmanfa.results.average_tables import has_pseudo_weights
from heckmanfa.results.bound_table import Bounds
from heckmanfa.results.document import Section
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.reports import Report
from heckmanfa.text.wording import effects, listed

_METHODS = {"two-step": "two-step", "ml": "ML"}
_COLUMNS = ["model", "ate", "ci_low", "ci_high", "att", "atu", "rho", "bic", "seconds", "note"]
# Two methods disagree if their effects are further apart, in standard errors of the larger.
_APART = 2.0
_BY_ROWS = (
    "Replicate weights do not enter the interval of these bounds: it is by the strata and sampling "
    "units that are named, or else by rows."
)
CAUTION = (
    "Effects cannot be judged on held-out rows: nobody is seen with treatment and without. Models "
    "that agree may share an instrument that is wrong."
)
"""why no model is scored"""


@dataclass(frozen=True, repr=False, eq=False)
class TreatmentComparison(Report):
    """The effect of a treatment by several models of the same rows."""

    table: pd.DataFrame
    """a row for each model, as `tidy` returns it"""
    verdict: str
    """which of them differ, in a sentence or two"""
    n_obs: float
    """rows of the fits, each counted as often as its weight says"""
    bounds: Bounds | None
    """worst-case bounds of the effect, whatever drove the choice; None if there are none"""
    by_replicates: bool = False
    """whether errors of the models are by replicate weights, which those of bounds are not"""

    @property
    def failures(self) -> dict[str, list[str]]:
        """The models that failed for each reason."""
        notes = self.table.set_index("model")["note"]
        return grouped({str(name): str(why) for name, why in notes.items() if why})

    @property
    def without_model(self) -> list[str]:
        """Sentences on the bounds, if there are any."""
        if self.bounds is None:
            return []
        return [self.bounds.sentence, *([_BY_ROWS] if self.by_replicates else [])]

    def tidy(self) -> pd.DataFrame:
        """Return one row for each model.

        Returns
        -------
        DataFrame
            model; ate with its 95% interval, att and atu; rho, or rho1 and rho0, as text; bic by
            maximum likelihood; seconds of a fit; note, if it failed.
        """
        return self.table.copy()

    def sections(self) -> list[Section]:
        """Return the parts of the report, in reading order."""
        notes = [f"{listed(names)}: {why}" for why, names in self.failures.items()]
        return [
            Section(
                "Effects of treatment by model",
                table=self.table.drop(columns="note"),
                notes=(*notes, *self.without_model, CAUTION),
            ),
            Section("What they say together", notes=(self.verdict,)),
        ]


def compare_treatments(
    prepared: Prepared, say: Callable[[str], None] = lambda words: None
) -> TreatmentComparison:
    """Fit a treatment by both methods, with common and separate regimes, to the same rows.

    Parameters
    ----------
    prepared : Prepared
        What `heckmanfa.analysis.load` returns of a question about a treatment.
    say : callable, optional
        Called with a few words at each step.

    Raises
    ------
    HeckmanfaError
        If no model can be fitted.
    """
    question, first = prepared.question, None
    records: list[dict[str, Any]] = []
    fitted: dict[tuple[str, str], Model] = {}
    for regimes in ("common", "separate"):
        for method, name in _METHODS.items():
            called = f"{regimes}, {name}"
            say(called)
            asked: Any = {"regimes": regimes, "method": method, "start": None}
            start = time.perf_counter()
            try:
                model = _fitted(prepared, model_of(replace(question, **asked), prepared.encoding))
            except HeckmanfaError as error:
                first = first or error
                records.append({"model": called, "note": str(error)})
                continue
            seconds = time.perf_counter() - start
            fitted[regimes, method] = model
            records.append({"model": called, **_numbers(model), "seconds": seconds, "note": ""})
    if not fitted:
        assert first is not None
        raise first
    model = next(iter(fitted.values()))
    if question.weights is not None and question.counts_as == "frequency":
        counts = model.row_counts_
        warn_of_frequencies(counts["selected"] + counts["unselected"], model.n_obs_, own=False)
    for row in naive_rows(model.fit_):
        ends = {"ate": row.value, "ci_low": row.low, "ci_high": row.high}
        records.append({"model": row.name.lower(), **ends, "note": ""})
    table = pd.DataFrame(records, columns=_COLUMNS)
    design = model.fit_.design
    return TreatmentComparison(
        *(table, _verdict(fitted), model.n_obs_, _bounds(prepared, model)),
        by_replicates=design is not None and design.n_replicates > 0,
    )


def _bounds(prepared: Prepared, model: Model) -> Bounds | None:
    """Bound the effect in the rows of the models; None if their outcome shows no range."""
    rows = prepared.loaded
    assert rows is not None
    try:
        bounds: Bounds = model.bounds(rows.X, prepared.outcome, **rows.roles)
    except HeckmanfaError:
        return None
    return replace(bounds, outcome=prepared.question.outcome)


def _fitted(prepared: Prepared, model: Model) -> Model:
    with warnings.catch_warnings(), explain_lost(prepared.lost):
        warnings.simplefilter("ignore", HeckmanfaWarning)
        prepared.fit(model)
    return model


def _numbers(model: Model) -> dict[str, Any]:
    """Return the effects of a model, and what else tells it from others."""
    fit = model.fit_
    effects = average_effects(fit, None, None, None, None, CONF_LEVEL, type(model).__name__)
    by_kind = effects.set_index("effect")
    rhos = [term.name for term in fit.family.error_terms if term.is_correlation]
    return {
        "ate": by_kind.loc["ate", "estimate"],
        "ci_low": by_kind.loc["ate", "ci_low"],
        "ci_high": by_kind.loc["ate", "ci_high"],
        "att": by_kind.loc["att", "estimate"],
        "atu": by_kind.loc["atu", "estimate"],
        "rho": ", ".join(f"{fit.errors[name].value:.3g}" for name in rhos),
        "bic": fit.bic if _has_bic(fit) else float("nan"),
    }


def _verdict(fitted: dict[tuple[str, str], Model]) -> str:
    """Say whether methods agree, and which regimes fit better."""
    said = []
    for regimes in ("common", "separate"):
        pair = [fitted.get((regimes, method)) for method in _METHODS]
        known = [_effect(model) for model in pair if model is not None]
        if len(known) < 2:
            continue
        (own, error), (other, second) = known
        numbers = listed(effects(own, other))
        agree = abs(own - other) <= _APART * max(error, second)
        words = "agree" if agree else "disagree: believe neither before you know why"
        said.append(
            f"With {regimes} regimes, two steps and maximum likelihood {words} ({numbers})."
        )
    both = [fitted.get((regimes, "ml")) for regimes in ("common", "separate")]
    if None not in both and all(_has_bic(model.fit_) for model in both if model is not None):
        common, separate = (model.fit_.bic for model in both if model is not None)
        better = "separate" if separate < common else "common"
        said.append(f"BIC prefers {better} regimes ({common:.1f} and {separate:.1f}).")
    return " ".join(said)


def _has_bic(fit: Fit) -> bool:
    """Whether a fit has a likelihood: sampling weights leave it a pseudo-likelihood."""
    return fit.log_likelihood is not None and not has_pseudo_weights(fit)


def _effect(model: Model) -> tuple[float, float]:
    """Return the average effect on everyone, and its standard error."""
    fit = model.fit_
    details = treatment_details(fit)
    gradient = details.gradients[0]
    variance = float(gradient @ fit.covariance @ gradient)
    return float(details.effects[0]), max(variance, 0.0) ** 0.5

"""Pictures of a treatment model, and the numbers behind its answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import HeckmanfaError, InputError
from heckmanfa.fit import Fit
from heckmanfa.fit.treatment import fit_of_regime
from heckmanfa.fit.treatment_details import treatment_details
from heckmanfa.inference import prediction
from heckmanfa.inference.people import Finder, PeopleRows, Profiles, of_numbers
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.inference.treatment_effects import average_effects, effect_rows, naive_rows
from heckmanfa.plots.effect_intervals import EffectIntervals
from heckmanfa.plots.forest_intervals import Estimate, Forest, ForestRow, Series
from heckmanfa.plots.overlap_bars import TreatmentOverlap, treatment_overlap_of
from heckmanfa.plots.people_intervals import Quantity, TreatedPeople
from heckmanfa.plots.picture import Picture
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL, Effect
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.naming import EffectWords, Naming
from heckmanfa.results.treatment_evidence import EffectOn, Outside, TreatmentEvidence
from heckmanfa.results.treatment_report import diagnose_treatment
from heckmanfa.text.labels import Labels, in_labels, said

_REGIMES: tuple[tuple[int, Quantity], ...] = ((1, "treated"), (0, "untreated"))


def treatment_evidence(
    fit: Fit,
    naming: Naming,
    treated: str,
    rows: PictureRows | None = None,
    groups: pd.DataFrame | None = None,
    by: str = "",
) -> TreatmentEvidence:
    """Return the numbers behind an answer.

    Parameters
    ----------
    fit : Fit
    naming : Naming
    treated : str
        Column that says who is treated.
    rows : PictureRows, optional
        The rows of the fit: how many have no counterpart in the other group.
    groups : DataFrame, optional
        Effects by group, as `average_effects` returns them, of the groups of the column ``by``.
    """
    if fit.way.is_average:
        raise InputError(
            "a page about a treatment names the instruments, and in an average each feature is one "
            "with a chance only: use summary(), inclusion_ and effects(), or report a "
            "TreatmentBestSubset"
        )
    details, reach = treatment_details(fit), distribution_of(fit).quantile(CONF_LEVEL)
    effects = average_effects(fit, None, None, None, None, CONF_LEVEL, fit.family.words.model)
    slope = details.gradients[2] - details.gradients[1]
    gap = float(details.effects[2] - details.effects[1])
    variance = float(slope @ fit.covariance @ slope)
    error = math.sqrt(variance) if variance >= 0.0 else math.nan
    return TreatmentEvidence(
        fit=fit,
        naming=naming,
        treated=treated,
        effects=tuple(_effects(effects)),
        gap=Effect(gap, gap - reach * error, gap + reach * error),
        least_squares=_around(details.least_squares, reach),
        means=_around(details.means, reach),
        measured=diagnose_treatment(fit, []),
        words=EffectWords.of(fit, naming.outcome, naming.log),
        by=by,
        groups=() if groups is None else tuple(_effects(groups)),
        outside=None if rows is None or not rows.in_memory else _outside(rows),
    )


def _effects(table: pd.DataFrame) -> Iterable[EffectOn]:
    for row in table.to_dict("records"):
        effect = Effect(row["estimate"], row["ci_low"], row["ci_high"])
        group = str(row["group"]) if "group" in row else ""
        yield EffectOn(row["effect"], effect, row["n_rows"], group)


def _around(estimate: tuple[float, float], reach: float) -> Effect:
    value, error = estimate
    return Effect(value, value - reach * error, value + reach * error)


def _outside(rows: PictureRows) -> Outside:
    picture = _overlap(rows)
    return Outside(picture.n_outside, picture.share_outside)


def _overlap(rows: PictureRows) -> TreatmentOverlap:
    probability, treated, weight = rows.shares_of_treatment()
    return treatment_overlap_of(probability, treated, weight, rows.fit.spec.weight_kind)


class TreatmentPictures:
    """The pictures of a treatment model, each made when it is first read.

    Parameters
    ----------
    evidence : TreatmentEvidence
    rows : PictureRows, optional
        The rows of the fit, without which the pictures of rows are left out.
    labels : Labels, optional
        What readers call columns.
    profiles : sequence of mapping, optional
        Rows to predict for in place of typical ones, each a value by column.
    """

    def __init__(
        self,
        evidence: TreatmentEvidence,
        rows: PictureRows | None = None,
        labels: Labels | None = None,
        profiles: Profiles = (),
    ) -> None:
        self.evidence, self.labels = evidence, labels or Labels()
        self._rows, self._described = rows, profiles

    @cached_property
    @in_labels
    def effects(self) -> EffectIntervals:
        """Average effects, beside least squares and the difference of means, then by group."""
        evidence = self.evidence
        fit, log = evidence.fit, evidence.words.log
        rows = [*effect_rows(evidence.shown), *naive_rows(fit)]
        rows += effect_rows(evidence.shown_groups, f"By {said(evidence.by)}")
        outcome = evidence.outcome if log is None else evidence.words.changed
        unit = evidence.words.drawn_unit
        drawn = [row.drawn_by(evidence.words.drawn, unit) for row in rows]
        return EffectIntervals(outcome, tuple(drawn), evidence.treated, unit)

    @cached_property
    @in_labels
    def overlap(self) -> TreatmentOverlap | None:
        """Probabilities of treatment of both groups; None without rows in memory."""
        if self._rows is None or not self._rows.in_memory:
            return None
        return _overlap(self._rows)

    @cached_property
    @in_labels
    def people(self) -> TreatedPeople | None:
        """Expected outcomes of typical rows, or of those described, with treatment and without."""
        if self._rows is None:
            return None
        evidence = self.evidence
        found = _TreatedFinder(evidence, self._rows.people_rows)
        people = found.described(self._described) if self._described else found.typical()
        if not people:
            return None
        outcome = evidence.outcome
        about = found.about(described=bool(self._described))
        target = str(evidence.words.target)
        return TreatedPeople(
            outcome, outcome, target, tuple(people), about=about, treated=evidence.treated
        )

    @cached_property
    @in_labels
    def coefficients(self) -> Forest:
        """Coefficients of the outcome's equations: of both regimes, or beside least squares."""
        return _coefficients(self.evidence)

    def known(self, name: str) -> Picture | None:
        """Return a picture by its name; None if it needs rows that were not given."""
        picture: Picture | None = getattr(self, name)
        return picture


class _TreatedFinder(Finder):
    """Finds rows, and what both regimes expect of them."""

    def __init__(self, evidence: TreatmentEvidence, source: PeopleRows) -> None:
        self.treatment = evidence
        untreated = fit_of_regime(evidence.fit, 0)
        super().__init__(evidence_of(untreated, evidence.naming), source)
        self.log = None
        self.fit = of_numbers(untreated)

    def _groups(self) -> tuple[str, str]:
        return "treated", "untreated"

    def _numbers(self, X: Any) -> dict[Quantity, tuple[Floats, Floats]]:
        numbers: dict[Quantity, tuple[Floats, Floats]] = {}
        for regime, quantity in _REGIMES:
            own = of_numbers(fit_of_regime(self.treatment.fit, regime))
            found = prediction.predict(own, X, "marginal", "confidence", CONF_LEVEL, "error")
            numbers[quantity] = found[0], found[1]
        numbers["selection"] = prediction.predict_selection(
            self.fit, X, "error", return_interval="confidence", conf_level=CONF_LEVEL
        )
        return numbers

    def about(self, *, described: bool) -> str:
        """Say what rows these are, and how to read what is expected of them."""
        first = (
            "Each is the typical row of a half of the treated and of the untreated, halved at the "
            "median of what is expected without treatment: the row nearest to its averages. Values "
            "are rounded."
        )
        if described:
            first = "What is not named is as in the typical row of all rows."
        last = "Lines are 95% intervals of the expectation, not of single outcomes."
        doubt = self.treatment.doubt
        return " ".join([first, last, *([f"Read with care: {doubt}."] if doubt else [])])


def _coefficients(evidence: TreatmentEvidence) -> Forest:
    """Return the coefficients of features, for the step of each."""
    fit, naming, words = evidence.fit, evidence.naming, evidence.words
    reach = distribution_of(fit).quantile(CONF_LEVEL)
    columns = [*fit.features]
    if evidence.is_separate:
        series = [
            (Series("treated", "this", "circle"), _solved(fit, "regime1")),
            (Series("untreated", "ols", "diamond"), _solved(fit, "regime0")),
        ]
    else:
        naive = treatment_details(fit).naive[1:]
        series = [
            (Series("this model", "this", "circle"), _solved(fit, "outcome")),
            (Series("least squares", "ols", "diamond"), [(value, math.nan) for value in naive]),
        ]
    rows = []
    for place, column in enumerate(columns):
        step, found = naming.step_of(column), []
        for _, known in series:
            value, error = known[place]
            ends = (step * (value + side * reach * error) for side in (0.0, -1.0, 1.0))
            drawn, low, high = map(words.drawn, ends)
            found.append(Estimate(drawn, low, high, words.drawn_unit))
        level = naming.levels[column]
        change = naming.step_words(column)
        rows.append(ForestRow(naming.sources[column], change, tuple(found), level=level))
    what = "Coefficients of both regimes." if evidence.is_separate else "Coefficients."
    return Forest(
        words.changed,
        tuple(each for each, _ in series),
        tuple(rows),
        f"{what} They are associations, not effects.",
        order="first",
        unit=words.drawn_unit,
    )


def _solved(fit: Fit, equation: str) -> list[tuple[float, float]]:
    """Return the coefficients of an equation with their standard errors, without the intercept."""
    places = [i for i, (name, _) in enumerate(fit.terms) if name == equation]
    coef = fit.equations[equation].coef[[*fit.features]]
    variances = np.diag(fit.covariance)[places][1:]
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(variances)
    return list(zip(coef.tolist(), errors.tolist(), strict=True))


def effects_by(
    fit: Fit, X: Any, treated: Any, labels: Any, weight: Any, model: str
) -> pd.DataFrame:
    """Return the effects on groups of rows of a fit, whose columns are numbers already."""
    try:
        return average_effects(of_numbers(fit), X, treated, labels, weight, CONF_LEVEL, model)
    except HeckmanfaError as error:
        error.args = (f"effects by group: {error.words}", *error.args[1:])
        raise

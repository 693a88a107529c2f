"""Pictures of a fitted model: the numbers of each, which know their scene."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning, InputError
from heckmanfa.inference.people import Profiles
from heckmanfa.inference.rho_pictures import over_rho_of, rho_by_assignment_of, shown_model
from heckmanfa.inference.row_pictures import PictureRows
from heckmanfa.inference.rows_of_fit import FitRows
from heckmanfa.model.covariance import CLASSICAL, sums_groups
from heckmanfa.model.likelihood import fit_likelihood
from heckmanfa.model.two_step import fit_two_step
from heckmanfa.plots.assignment_columns import AssignmentColumns
from heckmanfa.plots.assumed_rho import OverRho
from heckmanfa.plots.chance_bars import Chances, SelectionChances
from heckmanfa.plots.class_pictures import ClassEffects, ClassShares
from heckmanfa.plots.correction_pictures import ImrEstimate, ImrEstimates, RhoByAssignment
from heckmanfa.plots.fit_checks import CalibrationPicture, ResidualBars
from heckmanfa.plots.forest_intervals import Forest
from heckmanfa.plots.overlap_bars import SelectionOverlap
from heckmanfa.plots.people_intervals import People
from heckmanfa.plots.picture import Picture
from heckmanfa.plots.selection_rows import SelectionMargins, SelectionProfiles
from heckmanfa.plots.series_picture import SeriesCurve
from heckmanfa.results.assignment_weights import AssignmentWeights, interval_of
from heckmanfa.results.class_numbers import class_effects_of
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.evidence_pictures import (
    chances_of,
    columns_of,
    forest_of,
    selection_chances_of,
)
from heckmanfa.results.series_numbers import series_curve_of
from heckmanfa.text.labels import Labels, in_labels

_OF_ROWS = frozenset(
    {"margins", "profiles", "overlap", "residuals", "calibration", "class_shares", "people"}
)


class Pictures:
    """The pictures of a fitted model, each made when it is first read.

    A picture that has nothing to show for this model is None. Each has ``text()``, the words
    around it with its numbers as a table; ``scene()``, these words with the marks that are drawn;
    ``svg(width)``, a drawing as text; and ``draw(ax)``, which draws it with Matplotlib.

    Parameters
    ----------
    evidence : Evidence
        The numbers of the first screen.
    rows : PictureRows, optional
        The rows of the fit. Without them, pictures that need them are refused.
    labels : Labels, optional
        What readers call columns.
    profiles : sequence of mapping, optional
        Rows to predict for in place of typical ones, each a value by column.
    """

    def __init__(
        self,
        evidence: Evidence,
        rows: PictureRows | None = None,
        labels: Labels | None = None,
        profiles: Profiles = (),
    ) -> None:
        self.evidence = evidence
        self.labels = labels or Labels()
        self._described = profiles
        self._rows = rows

    @cached_property
    @in_labels
    def forest(self) -> Forest:
        """P1: effects of the likeliest features by up to three models, with intervals."""
        return forest_of(self.evidence)

    @cached_property
    @in_labels
    def chances(self) -> Chances | None:
        """P2: how sure it is that each feature predicts; None without chances."""
        return chances_of(self.evidence)

    @cached_property
    @in_labels
    def selection_chances(self) -> SelectionChances | None:
        """How sure it is that each feature drives selection; None if that was not searched."""
        return selection_chances_of(self.evidence)

    @cached_property
    @in_labels
    def assignments(self) -> AssignmentColumns | None:
        """P3: the best assignments, each as wide as its weight; None without weights."""
        return columns_of(self.evidence)

    @cached_property
    @in_labels
    def margins(self) -> SelectionMargins | None:
        """P4: what moves the probability of being selected; None if all are."""
        return self._needed("margins").margins()

    @cached_property
    @in_labels
    def profiles(self) -> SelectionProfiles | None:
        """P5: rows with an outcome beside those without; None if all have one."""
        return self._needed("profiles").profiles()

    @cached_property
    @in_labels
    def people(self) -> People | None:
        """Expected outcomes of typical rows, or of those that profiles describe.

        None without rows in memory unless rows are described, or without a single outcome.
        """
        return self._needed("people").people(self.evidence, self._described)

    @cached_property
    @in_labels
    def rho(self) -> RhoByAssignment | None:
        """P6: rho by assignment; None without weights."""
        return rho_by_assignment_of(self.evidence)

    @cached_property
    @in_labels
    def over_rho(self) -> OverRho | None:
        """P7: coefficients, or average slopes, over an assumed rho; None if no outcome is missing.

        Those of a binary outcome need its rows, in memory. None if errors are not normal: at
        rho = 0 the equations are then not apart.
        """
        family = self.evidence.fit.family
        if not (family.can("normal errors") and family.can("single rho")):
            return None
        if "compressed data" not in self.evidence.fit.family.supports:
            self._needed("over_rho")
        return over_rho_of(self.evidence, self._fit_rows)

    @cached_property
    @in_labels
    def overlap(self) -> SelectionOverlap | None:
        """P8: probabilities of being selected; None if all are, or rows are not in memory."""
        return self._needed("overlap").overlap()

    @cached_property
    @in_labels
    def imr(self) -> ImrEstimates | None:
        """P9: the coefficient of lambda in several ways.

        None if no outcome is missing, or if lambda has no coefficient, as of a binary outcome.
        """
        if not self.evidence.fit.family.has_imr:
            return None
        return imr_estimates_of(self.evidence, self._fit_rows)

    @cached_property
    @in_labels
    def residuals(self) -> ResidualBars | None:
        """P10: residuals beside the normal curve.

        None if rows are not in memory, or if the outcome is binary, which has `calibration`.
        """
        if "residuals" not in self.evidence.fit.family.supports:
            return None
        return self._needed("residuals").residuals(self._best)

    @cached_property
    @in_labels
    def calibration(self) -> CalibrationPicture | None:
        """P10 of a binary outcome: predicted probabilities beside what happened, in sample.

        None if rows are not in memory, or if the outcome is not binary.
        """
        if "calibration" not in self.evidence.fit.family.supports:
            return None
        return self._needed("calibration").calibration()

    @cached_property
    @in_labels
    def correction(self) -> SeriesCurve | None:
        """The correction of a series beside that of normal errors; None for other models."""
        return series_curve_of(self.evidence)

    @cached_property
    @in_labels
    def class_effects(self) -> ClassEffects | None:
        """Effects on the probability of each class; None without three ordered classes."""
        return class_effects_of(self.evidence)

    @cached_property
    @in_labels
    def class_shares(self) -> ClassShares | None:
        """Predicted shares of ordered classes beside those observed, in sample.

        None if rows are not in memory, or without ordered classes.
        """
        if self.evidence.whole.ordered_classes is None:
            return None
        return self._needed("class_shares").class_shares()

    def known(self, name: str) -> Picture | None:
        """Return a picture by its name; None if it needs rows that were not given."""
        needs_rows = name in _OF_ROWS or (
            name == "over_rho" and "compressed data" not in self.evidence.fit.family.supports
        )
        picture: Picture | None = None
        if self._rows is not None or not needs_rows:
            picture = getattr(self, name)
        return picture

    @property
    def _best(self) -> Mask | None:
        """The features that are shown for an average; None if the model has one set of them."""
        return shown_model(self.evidence).mask if self.evidence.fit.way.is_average else None

    def _needed(self, picture: str) -> PictureRows:
        """Return the rows of the fit; refuse a picture that needs them if they were not given."""
        if self._rows is None:
            raise InputError(
                f"the picture {picture!r} needs the rows of the fit: pass X and y (and selected, "
                "sample_weight) as they were passed to fit"
            )
        return self._rows

    @cached_property
    def _fit_rows(self) -> FitRows | None:
        """The rows as both equations have them; None if not given, or not in memory."""
        return None if self._rows is None else self._rows.fit_rows


# The coefficient of lambda, estimated in several ways. --------------------------------------------


def imr_estimates_of(evidence: Evidence, read: FitRows | None) -> ImrEstimates | None:
    """Return the coefficient of lambda, several ways; None without selection, or if rho is held."""
    fit = evidence.fit
    if fit.probit is None or fit.held_rho is not None:
        return None
    note = ""
    if not fit.way.searched:
        ways = [
            _own(evidence, "this model"),
            *_other_method(evidence, None if read is None else read.rows),
        ]
    else:
        ways = _ways(evidence)
        several = len(ways) > 1 and not fit.way.is_average
        if several and fit.spec.method == "ml":
            note = "All but the first are two-step estimates."
        elif several and fit.spec.errors_differ:
            note = "All but the first have classical intervals."
        if evidence.window is None:
            untested = "Where the data chose the features, this is no test."
            note = " ".join(filter(None, (note, untested)))
    if evidence.window is not None:
        # An interval would reflect the window.
        ways = [replace(way, low=math.nan, high=math.nan) for way in ways]
    return ImrEstimates(tuple(ways), evidence.naming.outcome, evidence.window, note)


def _own(evidence: Evidence, label: str, detail: str = "") -> ImrEstimate:
    """Return the model's own coefficient."""
    features = None if detail else _names(evidence, np.asarray(evidence.fit.support, dtype=bool))
    imr = evidence.imr
    return ImrEstimate(label, imr.estimate, imr.low, imr.high, features, detail)


def _names(evidence: Evidence, mask: Mask) -> tuple[str, ...]:
    return tuple(feature.name for feature in evidence.features if mask[list(feature.columns)].any())


def _ways(evidence: Evidence) -> list[ImrEstimate]:
    """Return the ways of a model that chose or averaged."""
    way = evidence.fit.way
    note = way.words.note
    if way.is_average:
        note = "all assignments" if way.averaging.mixture.exhaustive else "a sample"
    ways = [_own(evidence, way.words.label, note)]
    masks = [np.asarray(evidence.fit.support, dtype=bool)] if way.is_one_fit else []
    if not way.is_average:
        ways += _averaged(evidence)
    alone = evidence.n_assignments == 1
    for label, best in (("best", evidence.best), ("second best", evidence.second)):
        # Without the correction, it has no coefficient.
        if best is None or alone or not best.corrected:
            continue
        if any(np.array_equal(best.mask, mask) for mask in masks):
            continue
        ends = best.imr.estimate, best.imr.low, best.imr.high
        ways.append(ImrEstimate(label, *ends, _names(evidence, best.mask)))
        masks.append(best.mask)
    return ways + _with_all(evidence, masks)


def _averaged(evidence: Evidence) -> list[ImrEstimate]:
    """Average over the assignments that a search allows, by BIC weights."""
    fit = evidence.fit
    if evidence.window is not None or fit.spec.errors_differ:
        return []
    weighed = evidence.weights
    if not isinstance(weighed, AssignmentWeights):
        return []
    place, members = weighed.form.correction, weighed.members
    mean = float(weighed.mixture.component_weights @ members.terms[:-1, place])
    chance = math.nan if weighed.corrected is None else weighed.corrected
    ends = interval_of(members, place, chance, CONF_LEVEL)
    return [ImrEstimate("averaged", mean, *ends, None, "BIC weights")]


def _with_all(evidence: Evidence, others: Sequence[Mask]) -> list[ImrEstimate]:
    """Estimate with every feature that may predict, unless that was done or cannot be."""
    whole, window = evidence.all_features, evidence.window
    same = whole is not None and any(np.array_equal(whole.mask, other) for other in others)
    if whole is None or same or evidence.n_assignments == 1:
        return []
    if window is not None and not window[0] <= whole.rho <= window[1]:
        return []
    count = len(_names(evidence, whole.mask))
    imr = whole.imr
    return [
        ImrEstimate(
            *("all features", imr.estimate, imr.low, imr.high),
            detail=f"{count} features" if count > 1 else "",
            sets_range=False,
        )
    ]


def _other_method(evidence: Evidence, rows: Rows | None) -> list[ImrEstimate]:
    """Estimate the same features by the method that the model did not use."""
    fit = evidence.fit
    assert fit.probit is not None
    kind = fit.spec.covariance_kind(None)
    ml = fit.spec.method == "two-step"
    # Clusters are not among what was read, and robust standard errors take a pass over the rows.
    if sums_groups(fit.spec.cov_type) or (rows is None and (ml or fit.spec.errors_differ)):
        return []
    features = fit.features
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        try:
            first = CLASSICAL if ml else kind
            two_step = fit_two_step(fit.moments, fit.probit, features, first, rows)
            place = 1 + len(features)
            estimate = float(two_step.coef[place])
            variance = float(two_step.covariance[place, place])
            if ml and rows is not None:
                maximum = fit_likelihood(fit.moments, fit.probit, two_step, kind, rows)
                if not maximum.converged:
                    return []
                estimate = maximum.rho * maximum.sigma
                variance = float(maximum.reported_covariance()[-3, -3])
        except HeckmanfaError:
            return []
    reach = distribution_of(fit).quantile(CONF_LEVEL) * math.sqrt(max(variance, 0.0))
    label, detail = ("ML" if ml else "two-step"), "same features"
    return [ImrEstimate(label, estimate, estimate - reach, estimate + reach, None, detail)]

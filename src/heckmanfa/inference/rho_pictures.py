"""The numbers behind the pictures of rho.

They are rho by assignment, and coefficients over an assumed rho. What the likelihood says of rho
needs the rows; without them, two-step intervals stand in.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, Rows, one_blas_thread
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.fit import Fit
from heckmanfa.inference.ml_over_rho import MLOverRho, OverRhoCurve
from heckmanfa.inference.profile_likelihood import profile_of
from heckmanfa.inference.profile_report import RhoProfile
from heckmanfa.inference.profiler import Likelihood
from heckmanfa.inference.rows_of_fit import FitRows
from heckmanfa.model.covariance import CLASSICAL, sums_groups
from heckmanfa.model.two_step_over_rho import TwoStepOverRho
from heckmanfa.plots.assumed_rho import MOST_PANELS, OverRho, RhoBar, RhoPanel, RhoPoint
from heckmanfa.plots.correction_pictures import RhoByAssignment, bins_of
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL, Assignment
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.evidence_pictures import weights_name
from heckmanfa.results.feature_evidence import FeatureEvidence

# The range of rho in the picture, and its share of what the data allow.
_WIDEST, _ALLOWED = 0.9, 0.98
# Values of rho on each side of zero: every 0.02.
_STEPS = 45
# Points of a likelihood profile; its maxima and the ends of its interval are found beside them.
_GRID = 15
# Rows times squared parameters, up to which a profile takes about a second.
_QUICK = 5e7
_COVARIANCES = {"robust": "robust", "cluster": "clustered", "survey": "survey"}


def rho_by_assignment_of(evidence: Evidence) -> RhoByAssignment | None:
    """Return rho by assignment; None if there is only one, no weights, or no rho."""
    weighed = evidence.weights
    if not (isinstance(weighed, AssignmentWeights) and evidence.fit.family.can("single rho")):
        return None
    mixture = weighed.mixture
    if mixture.n_assignments == 1:
        return None
    masks, weight = mixture.component_masks, mixture.component_weights
    rho = weighed.component_rho
    unit = None
    if evidence.stand_in is not None:
        unit = _telling_apart(mixture.choices.units, masks, weight, rho)
    held = np.ones(len(masks), dtype=bool) if unit is None else masks[:, unit[0]]
    split = {}
    if unit is not None:
        # The components may be a sample; shares are exact.
        share = float(mixture.alone["bic"][unit[0]])
        weight = weight * np.where(
            held, share / weight[held].sum(), (1.0 - share) / weight[~held].sum()
        )
        split = {
            "chance": share,
            "mean_inside": float(np.average(rho[held], weights=weight[held])),
            "mean_outside": float(np.average(rho[~held], weights=weight[~held])),
        }
    return RhoByAssignment(
        outcome=evidence.naming.outcome,
        bins=bins_of(rho, weight, held),
        weights=weights_name(mixture),
        n_assignments=len(masks),
        share=math.nan if mixture.components_drawn else 1.0,
        mean=float(np.average(rho, weights=weight)),
        is_approximate=not evidence.fit.family.can("two steps"),
        feature="" if unit is None else evidence.naming.name_of(unit),
        window=evidence.window,
        **split,
    )


def _telling_apart(
    units: Sequence[tuple[int, ...]], masks: Mask, weight: Floats, rho: Floats
) -> tuple[int, ...] | None:
    """Find the feature whose presence explains most of the variance of rho."""
    best, telling = 0.0, None
    for unit in units:
        held = masks[:, unit[0]]
        share = float(weight[held].sum())
        if held.all() or not held.any():
            continue
        apart = np.average(rho[held], weights=weight[held])
        apart -= np.average(rho[~held], weights=weight[~held])
        score = abs(apart) * math.sqrt(max(share * (1.0 - share), 0.0))
        if score > best:
            best, telling = score, unit
    return telling


# Coefficients over rho. ---------------------------------------------------------------------------


def over_rho_of(evidence: Evidence, read: FitRows | None) -> OverRho | None:
    """Return coefficients over an assumed rho; None without selection or without a feature.

    ``read`` are the rows of the fit; None if they are not in memory. Those of a binary outcome are
    needed for its average slopes: without them, or with too many, there is no picture.
    """
    fit = evidence.fit
    if fit.probit is None:
        return None
    rows = None if read is None else read.rows
    shown = shown_model(evidence)
    mask = shown.mask
    if "compressed data" not in fit.family.supports and (rows is None or _is_slow(fit, mask)):
        return None
    inside = [feature for feature in evidence.ordered() if mask[list(feature.columns)].any()]
    if not inside:
        return None
    columns = [int(column) for column in np.flatnonzero(mask)]
    curve, classical = _curve(fit, mask, rows)
    if curve is None:
        return None
    is_set = evidence.window is not None or evidence.held is not None
    profile = None if is_set else _profile(fit, mask, rows)
    rho_hat = _rho_hat(evidence, mask, profile)
    second = _second_maximum(fit, mask, profile)
    bars, missing = ((), "") if is_set else _bars(evidence, shown, profile, rows)
    reach = min(_WIDEST, _ALLOWED * curve.reach)
    shown_coef = _Coefficients(evidence, curve, tuple(columns), reach, (rho_hat, second))
    return OverRho(
        outcome=evidence.naming.outcome,
        model=shown.name,
        fitted=shown.fitted,
        features=tuple(feature.name for feature in inside),
        panels=tuple(shown_coef.panel(feature) for feature in inside[:MOST_PANELS]),
        rho_hat=rho_hat,
        hat="rho-hat" if evidence.held is None else "the rho held",
        bars=bars,
        no_bars=missing,
        window=evidence.window,
        second_maximum=second,
        classical=classical,
        of_many=fit.way.is_average,
        target=str(evidence.words.target) if fit.family.has_classes else "",
        percent_of="" if evidence.words.log is None else str(evidence.words.log.target),
    )


def _curve(fit: Fit, mask: Mask, rows: Rows | None) -> tuple[OverRhoCurve | None, bool]:
    """Return coefficients over rho, or the average slopes of a binary outcome; None if unknown.

    Also return whether their standard errors are classical, unlike those of the model: those of
    other assignments are, and those of a binary outcome for clusters, which are not at hand.
    """
    columns = [int(column) for column in np.flatnonzero(mask)]
    labels = [fit.labels[column] for column in columns]
    if "compressed data" in fit.family.supports:
        own = columns == fit.features
        scores = fit.rho_scores if own else None
        linear = TwoStepOverRho.build(fit.moments, columns, labels, scores)
        return linear, fit.spec.errors_differ and scores is None
    assert rows is not None
    clustered = sums_groups(fit.spec.cov_type)
    kind = CLASSICAL if clustered else fit.spec.covariance_kind(None)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        try:
            likelihood = Likelihood.build(_alone(fit, mask), rows)
            terms = ["", *labels]
            effects = fit.family.has_classes
            curve = MLOverRho.build(likelihood, terms, (0.0, 0.0), kind, effects=effects)
        except HeckmanfaError:
            return None, False
    return curve, clustered


def _alone(fit: Fit, mask: Mask) -> Fit:
    """Return the fit as one of these features that were given, for its likelihood."""
    same = bool(np.array_equal(mask, fit.support)) and not fit.way.is_average
    spec = fit.spec if same else replace(fit.spec, start=None)
    return replace(fit, spec=spec, support=mask, average=None, search=None)


@dataclass(frozen=True, eq=False)
class ShownModel:
    """The one model whose coefficients are shown."""

    name: str
    mask: Mask
    """(K,) its features"""
    fitted: str = ""
    """what it is called with the correction, if it is without"""
    assignment: Assignment | None = None
    """its estimates, if it is one of an average and holds the correction"""


def shown_model(evidence: Evidence) -> ShownModel:
    """Return the model whose coefficients are shown.

    Of an average it is the best assignment. If that holds the index, features predict that are not
    in its set, and the model of all features stands for it.
    """
    way, best, whole = evidence.fit.way, evidence.best, evidence.all_features
    if not way.is_average:
        return ShownModel(way.words.shown, np.asarray(evidence.fit.support, dtype=bool))
    mixture = way.averaging.mixture
    if whole is not None and (mixture.leading_states[0][-1] if best is None else best.index):
        return ShownModel("model of all features", np.asarray(whole.mask, dtype=bool), "", whole)
    if best is not None:
        name, mask = way.words.shown, np.asarray(best.mask, dtype=bool)
        if best.corrected:
            return ShownModel(name, mask, "", best)
        return ShownModel(name, mask, f"{name}, were it corrected")
    # Sampling weights leave no BIC, but the average has weights of its own.
    return ShownModel("heaviest assignment", np.asarray(mixture.leading_masks[0]))


@dataclass(frozen=True, eq=False)
class _Coefficients:
    """The coefficients of one model over rho."""

    evidence: Evidence
    curve: OverRhoCurve
    columns: tuple[int, ...]
    """of the model"""
    reach: float
    """the largest |rho|"""
    marked: tuple[float, float]
    """rho-hat, and rho at another maximum of the likelihood"""

    def panel(self, feature: FeatureEvidence) -> RhoPanel:
        """Return one coefficient over rho, and at the values that are marked."""
        # A model may lack columns of a group.
        held = [column for column in (feature.lead, *feature.columns) if column in self.columns]
        place = 1 + self.columns.index(held[0])
        grid = np.arange(-_STEPS, _STEPS + 1) / (_STEPS / _WIDEST)
        inside = grid[np.abs(grid) < self.reach]
        grid = np.round([-self.reach, *inside, self.reach], 12)
        at_hat, at_second = (
            self._points(np.array([rho]), held[0])[0] if abs(rho) <= self.reach else None
            for rho in self.marked
        )
        return RhoPanel(
            feature=feature.name,
            detail=self.evidence.naming.step_words(held[0]),
            points=tuple(self._points(grid, held[0])),
            at_hat=at_hat,
            sign_change=float(self.curve.sign_changes()[place]),
            at_second=at_second,
            column=held[0],
            unit=self.evidence.words.drawn_unit,
        )

    def _points(self, rho: Floats, column: int) -> list[RhoPoint]:
        """Return the effect of a step of one column at some values of rho."""
        fit, place = self.evidence.fit, 1 + self.columns.index(column)
        step, drawn = self.evidence.naming.step_of(column), self.evidence.words.drawn
        centre = step * self.curve.estimate(rho)[:, place]
        reach = step * distribution_of(fit).quantile(CONF_LEVEL)
        error = reach * self.curve.std_error(rho)[:, place]
        return [
            RhoPoint(float(r), drawn(float(c)), drawn(float(c - e)), drawn(float(c + e)))
            for r, c, e in zip(rho, centre, error, strict=True)
        ]


def _profile(fit: Fit, mask: Mask, rows: Rows | None) -> RhoProfile | None:
    """Profile the likelihood of some features over rho; None if that is not possible or slow."""
    if rows is None or _is_slow(fit, mask):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        try:
            return profile_of(_alone(fit, mask), rows, _GRID)
        except HeckmanfaError:
            return None


def _is_slow(fit: Fit, mask: Mask) -> bool:
    """Whether the passes over the rows of a profile would take seconds."""
    assert fit.probit is not None
    n_parameters = len(fit.probit.features) + int(mask.sum()) + 4
    n_rows = fit.row_counts["selected"] + fit.row_counts["unselected"]
    return n_rows * n_parameters**2 > _QUICK


def _rho_hat(evidence: Evidence, mask: Mask, profile: RhoProfile | None) -> float:
    fit = evidence.fit
    if not fit.way.is_average:
        return float(fit.rho)
    if fit.spec.method == "ml" and profile is not None and math.isfinite(profile.rho_hat):
        return profile.rho_hat
    return float(fit.moments.solve(mask).rho)


def _second_maximum(fit: Fit, mask: Mask, profile: RhoProfile | None) -> float:
    """Return rho at another maximum of the likelihood; NaN unless maximum likelihood has one."""
    if fit.spec.method != "ml":
        return math.nan
    if fit.second_maximum is not None and not fit.way.is_average:
        return float(fit.second_maximum[1])
    if profile is None:
        return math.nan
    others = profile.maxima[~profile.maxima["reported"].astype(bool)]
    return float(others["rho"].iloc[0]) if len(others) else math.nan


def _bars(
    evidence: Evidence, shown: ShownModel, profile: RhoProfile | None, rows: Rows | None
) -> tuple[tuple[RhoBar, ...], str]:
    """Return what is known of rho, and why the likelihood says nothing of it."""
    way = evidence.fit.way
    searched = way.searched
    label = "features known" if searched else "95% of rho"
    condition = "were the features known" if searched else ""
    bars = []
    known = _known_interval(evidence, shown, profile)
    if known is not None:
        bars.append(RhoBar(label, *known, condition))
    if searched and evidence.rho_with_search is not None:
        how = way.words.note or f"assignments by {_mixed_by(evidence)} weights"
        ends = evidence.rho_with_search
        bars.append(
            RhoBar("with the search", how, *ends, _searched_rho(evidence), "with the search")
        )
    return tuple(bars), _without_likelihood(evidence, shown.mask, profile, rows)


def _without_likelihood(
    evidence: Evidence, mask: Mask, profile: RhoProfile | None, rows: Rows | None
) -> str:
    """Say why there is no interval of rho by the likelihood; empty if there is one."""
    if evidence.pseudo:
        return "With sampling weights there is no likelihood, and no interval from one."
    kind = _COVARIANCES.get(evidence.fit.spec.cov_type or "")
    if kind is not None:
        return f"It has no likelihood interval: {kind} standard errors do not assume the model."
    if rows is None:
        return "Its likelihood interval is not shown: it needs all rows in memory."
    if _is_slow(evidence.fit, mask):
        return "Its likelihood interval is not shown: with so much data it takes long."
    if profile is None or not math.isfinite(profile.rho_hat):
        return "It has no likelihood interval: the likelihood has no maximum inside (\u22121, 1)."
    return ""


def _known_interval(
    evidence: Evidence, shown: ShownModel, profile: RhoProfile | None
) -> tuple[str, float, float, float] | None:
    """Return how an interval of rho for given features is known, its ends and rho-hat."""
    if profile is not None:
        low, high = profile.interval(CONF_LEVEL)
        # Without a maximum inside (-1, 1), the interval is of no use.
        if low < profile.rho_hat < high:
            return "likelihood", low, high, profile.rho_hat
    way, own = evidence.fit.way, shown.assignment
    # Without the correction, rho is 0.
    if way.halves_rows or (way.is_average and own is None):
        return None
    if own is not None:
        how, (low, high), rho = "two-step", own.rho_interval, own.rho
    else:
        how = "two-step" if evidence.fit.spec.method == "two-step" else "maximum likelihood, Wald"
        low, high, rho = evidence.rho.low, evidence.rho.high, evidence.rho.estimate
    return (how, low, high, rho) if math.isfinite(low) and math.isfinite(high) else None


def _mixed_by(evidence: Evidence) -> str:
    way = evidence.fit.way
    return weights_name(way.averaging.mixture) if way.is_average else "BIC"


def _searched_rho(evidence: Evidence) -> float:
    """Return the estimate of rho beside the interval that allows for the search."""
    weighed = evidence.weights if evidence.fit.way.ignores_search else None
    if not isinstance(weighed, AssignmentWeights):
        return evidence.rho.estimate
    return weighed.mixture.rho

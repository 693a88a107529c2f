"""Pictures of the evidence, which need no rows: effects, chances and the best assignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.plots.assignment_columns import (
    MIXED,
    MOST_DRAWS,
    NEGATIVE,
    POSITIVE,
    AssignmentColumns,
    n_drawn,
)
from heckmanfa.plots.chance_bars import ChanceRow, Chances, SelectionChances
from heckmanfa.plots.forest_intervals import MOST_ROWS, Estimate, Forest, ForestRow, Series
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.average_tables import ALWAYS, SURELY, UNTOLD, selection_role
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL, UNKNOWN, Effect, assignments_of
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.feature_evidence import CHOSEN, MAY, TAKEN, FeatureEvidence
from heckmanfa.search.averaging import Average
from heckmanfa.text.labels import said, said_level
from heckmanfa.text.wording import chance_text, true_minus

_SURE = (*SURELY, ALWAYS, TAKEN, CHOSEN, MAY)
# Sampled assignments with less weight than this in all are too few to tell anything.
_TELLING = 0.25
_UNTOLD = "whether it predicts cannot be told"
_NO_SIGN = "no sign that it predicts"


# P1. ------------------------------------------------------------------------------------------


def forest_of(evidence: Evidence) -> Forest:
    """Return what the forest shows: the likeliest features, by up to three models."""
    features = sorted(
        (item for item in evidence.ordered() if item.candidate),
        # What the fitted model does not hold has nothing of its own to show.
        key=lambda item: not item.effect.known,
    )
    series = _series(evidence, features)
    rows = [row for item in features for row in _forest_rows(evidence, item, len(series))]
    first = [item.role for item in features[:MOST_ROWS] if item.role not in _SURE]
    hollow = [words for words, some in _hollow(evidence, first).items() if some]
    return Forest(
        outcome=evidence.words.changed,
        unit=evidence.words.drawn_unit,
        series=tuple(series),
        rows=tuple(rows),
        about=_about(evidence),
        order=_order(evidence),
        hollow=", or ".join(hollow),
        halves=evidence.way.halves_rows,
    )


def _order(evidence: Evidence) -> str:
    if evidence.way.halves_rows:
        return "most often chosen"
    return "likeliest" if evidence.has_chances else "clearest"


def _hollow(evidence: Evidence, roles: Sequence[str]) -> dict[str, bool]:
    """Say what hollow marks of these roles mean."""
    halved = evidence.way.halves_rows
    if halved or not evidence.has_chances:
        words = "chosen by less than half of the halves" if halved else "not chosen"
        return {words: bool(roles)}
    return {
        _UNTOLD: any(role in UNTOLD for role in roles),
        _NO_SIGN: any(role not in UNTOLD for role in roles),
    }


def _series(evidence: Evidence, features: Sequence[FeatureEvidence]) -> list[Series]:
    """Name the models; one without any estimate is left out from the end."""
    naive = evidence.words.naive_short
    if not evidence.way.is_corrected:
        label = evidence.fit.family.words.plain_short
        return [Series(label, "this", "circle")]
    words = evidence.way.words
    series = [
        Series(words.series, "this", "circle"),
        Series(f"{naive}, {words.alike}", "ols", "diamond"),
    ]
    if any(item.all_features is not None for item in features):
        model = evidence.fit.family.words.short
        series.append(Series(f"{model}, all features", "all", "square"))
    elif not any(item.least_squares.known for item in features):
        series.pop()
    return series


def _about(evidence: Evidence) -> str:
    said = evidence.way.words.estimates
    if not evidence.words.averaged:
        return f"{said} {evidence.words.hint}".rstrip()
    averaged = evidence.words.averaged
    return f"{said} Average slopes of the probability{averaged}, in percentage points."


def _forest_rows(
    evidence: Evidence, feature: FeatureEvidence, n_series: int
) -> Iterator[ForestRow]:
    """Return the row of a feature, and those of the other levels of a category."""
    role, is_sure = feature.role, feature.role in _SURE
    share = evidence.share_words(feature)
    effects = (feature.effect, feature.least_squares, feature.all_features)
    yield ForestRow(
        name=feature.name,
        change=_change(evidence, feature),
        estimates=_estimates(evidence, effects, n_series),
        share=share,
        role=role,
        is_sure=is_sure,
        is_switch=feature.is_switch,
        level=said_level(feature.name, feature.level),
    )
    for level in feature.levels:
        if level.column == feature.lead:
            continue
        naming = evidence.naming
        is_level = bool(naming.levels[level.column])
        source = naming.sources[level.column]
        name = said_level(source, level.name) if is_level else said(level.name)
        change = naming.step_words(level.column)
        yield ForestRow(
            name=feature.name,
            change=change if is_level else f"{name}: {change}",
            estimates=_estimates(
                evidence, (level.effect, level.least_squares, level.all_features), n_series
            ),
            share=share,
            role=role,
            is_sure=is_sure,
            is_switch=naming.is_switch(level.column),
            level=name,
            is_leading=False,
        )


def _estimates(
    evidence: Evidence, effects: Sequence[Effect | None], n_series: int
) -> tuple[Estimate, ...]:
    """Return the first effects in the unit that readers see them in."""
    found = [UNKNOWN if effect is None else effect for effect in effects[:n_series]]
    words = evidence.words
    drawn, unit = words.drawn, words.drawn_unit
    return tuple(
        Estimate(drawn(effect.estimate), drawn(effect.low), drawn(effect.high), unit)
        for effect in found
    )


def _change(evidence: Evidence, feature: FeatureEvidence) -> str:
    """Say what the effect of a feature is of; of a group, name the column."""
    change = evidence.naming.step_words(feature.lead)
    if len(feature.columns) == 1 or feature.level:
        return change
    return f"{said(evidence.naming.sources[feature.lead])}: {change}"


# P2. ------------------------------------------------------------------------------------------


def chances_of(evidence: Evidence) -> Chances | None:
    """Return how sure it is that each feature predicts; None without chances."""
    if not evidence.has_chances:
        return None
    return Chances(
        rows=tuple(_chance_row(item) for item in _may_predict(evidence)),
        about=_about_chances(evidence),
        halves=evidence.way.n_halves,
    )


def selection_chances_of(evidence: Evidence) -> SelectionChances | None:
    """Return how sure it is that each feature drives selection; None if that was not searched."""
    rows = [
        ChanceRow(name=feature.name, role=selection_role(share), share=share)
        for feature in evidence.features
        if (share := feature.selection_chance) is not None
    ]
    if not rows:
        return None
    nothing = chance_text(1.0 / (1.0 + np.sqrt(evidence.fit.n_obs)))
    about = f"A feature that says nothing gets about {nothing} with {evidence.fit.n_obs:,.0f} rows."
    return SelectionChances(tuple(sorted(rows, key=lambda row: -row.share)), about)


def _may_predict(evidence: Evidence) -> list[FeatureEvidence]:
    return [item for item in evidence.ordered() if item.candidate]


def _chance_row(feature: FeatureEvidence) -> ChanceRow:
    return ChanceRow(
        name=feature.name,
        role=feature.role,
        share=1.0 if feature.chance is None else feature.chance,
        is_forced=feature.chance is None,
        least_squares=_number(feature.chance_least_squares),
        by_aic=_number(feature.by_aic),
        by_ebic=_number(feature.by_ebic),
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _about_chances(evidence: Evidence) -> str:
    """Say what a feature without any effect gets, and where chances come from."""
    if evidence.way.halves_rows:
        return "Each half chose features, and the other half estimated their effects."
    m = evidence.fit.moments.n_selected
    nothing = chance_text(1.0 / (1.0 + np.sqrt(m)))
    sentences = [f"A feature that says nothing gets about {nothing} on its own with {m:,.0f} rows."]
    if evidence.window is not None:
        low, high = (true_minus(f"{end:g}") for end in evidence.window)
        sentences.append(f"Only assignments with rho in [{low}, {high}] count.")
    if not evidence.exhaustive:
        sentences.append("The assignments are a sample.")
    return " ".join(sentences)


# P3. ------------------------------------------------------------------------------------------


def columns_of(evidence: Evidence) -> AssignmentColumns | None:
    """Return the best assignments; None if assignments have no weights."""
    if not evidence.has_chances:
        return None
    if evidence.way.halves_rows:
        return _of_halves(evidence)
    weights = evidence.weights
    return _of_weights(evidence, weights) if isinstance(weights, AssignmentWeights) else None


def _of_weights(evidence: Evidence, weights: AssignmentWeights) -> AssignmentColumns:
    mixture, features = weights.mixture, _may_predict(evidence)
    n = n_drawn(mixture.leading_weight)
    states, weight, is_draw = mixture.leading_states[:n], mixture.leading_weight[:n], False
    if not mixture.exhaustive and float(weight.sum()) < _TELLING:
        states, weight = _drawn(mixture, features)
        is_draw = True
    assignments = assignments_of(evidence.fit, weights.form, states, evidence.effects)
    masks = states[:, : evidence.fit.n_features]
    coef = np.array([item.coef.values[:, 0] for item in assignments])
    return AssignmentColumns(
        rows=tuple(_chance_row(item) for item in features),
        weight=weight,
        cells=_cells(features, coef, masks),
        bic=np.array([item.bic for item in assignments]),
        rho=np.array([item.rho for item in assignments]),
        imr_p=_imr_p(evidence, [item.imr for item in assignments]),
        n_others=max(mixture.n_assignments - len(masks), 0),
        n_half=weights.n_half,
        weights=weights_name(mixture),
        is_sampled=not mixture.exhaustive,
        is_draw=is_draw,
        best=weights.best,
    )


def weights_name(mixture: Average) -> str:
    """Return by which criteria assignments are weighed."""
    return "AIC and BIC" if mixture.weights == "mean" else mixture.weights.upper()


def _drawn(mixture: Average, features: Sequence[FeatureEvidence]) -> tuple[Mask, Floats]:
    """Draw assignments in proportion to their weights, and put those alike beside one another."""
    places = (np.arange(MOST_DRAWS) + 0.5) / MOST_DRAWS
    drawn = np.searchsorted(np.cumsum(mixture.component_weights), places)
    chosen, counts = np.unique(
        np.minimum(drawn, len(mixture.component_weights) - 1), return_counts=True
    )
    masks = mixture.component_states[chosen]
    # The likeliest feature decides first.
    likely = sorted(features, key=lambda feature: feature.chance or 1.0)
    order = np.lexsort([~masks[:, feature.columns[0]] for feature in likely])
    return masks[order], counts[order] / MOST_DRAWS


def _imr_p(evidence: Evidence, effects: Sequence[Effect]) -> Floats:
    """Return the p-values of lambda's coefficients, from their intervals."""
    reference = distribution_of(evidence.fit)
    reach = np.array([0.5 * (effect.high - effect.low) for effect in effects])
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = reach / reference.quantile(CONF_LEVEL)
        statistic = np.array([effect.estimate for effect in effects]) / errors
    return np.asarray(reference.p_value(statistic))


def _of_halves(evidence: Evidence) -> AssignmentColumns:
    """Return the assignments that halves chose, the most frequent first."""
    halves = evidence.way.halves
    features, total = _may_predict(evidence), evidence.way.n_halves
    masks, where, counts = np.unique(
        halves.support, axis=0, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    weight = counts[order] / total
    n = n_drawn(weight)
    k = len(halves.labels)
    means = np.full((n, halves.estimates.shape[1]), np.nan)
    for place, mask in enumerate(order[:n]):
        values = halves.estimates[where.ravel() == mask]
        known = np.isfinite(values).any(axis=0)
        means[place, known] = np.nanmean(values[:, known], axis=0)
    unknown = np.full(n, np.nan)
    return AssignmentColumns(
        rows=tuple(_chance_row(item) for item in features),
        weight=weight[:n],
        cells=_cells(features, means[:, 1 : k + 1], masks[order[:n]]),
        bic=unknown,
        rho=means[:, k + 1 + halves.error_terms.index("rho")],
        imr_p=unknown,
        n_others=len(order) - n,
        n_half=int(np.searchsorted(np.cumsum(weight), 0.5 - 1e-12)) + 1,
        halves=total,
    )


def _cells(features: Sequence[FeatureEvidence], coef: Floats, masks: Mask) -> NDArray[np.int8]:
    """Return the sign of each feature or group in each assignment, (features, N)."""
    cells = np.zeros((len(features), len(masks)), dtype=np.int8)
    for row, feature in enumerate(features):
        columns = list(feature.columns)
        held, own = masks[:, columns], coef[:, columns]
        above = ((own > 0) & held).any(axis=1)
        below = ((own < 0) & held).any(axis=1)
        signs = np.where(above, np.where(below, MIXED, POSITIVE), NEGATIVE)
        cells[row] = np.where(held.any(axis=1), signs, 0)
    return cells

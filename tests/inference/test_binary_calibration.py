"""Calibration of predicted probabilities: scores as scikit-learn has them, intervals as SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from heckmanfa.errors import InputError
from heckmanfa.inference.calibration import calibration_of, wilson_interval


def _rows(n=400, seed=3):
    rng = np.random.default_rng(seed)
    probability = np.round(rng.beta(2.0, 3.0, n), 2)
    outcome = (rng.random(n) < probability).astype(float)
    return probability, outcome, rng.integers(1, 4, n).astype(float)


def _picture(probability, outcome, weight=None, **options):
    names = {"positive": "yes", "outcome_name": "default"}
    return calibration_of(probability, outcome, weight, **names, **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(weighted):
    probability, outcome, weight = _rows()
    given = weight if weighted else None
    found = _picture(probability, outcome, given)
    ours = found.auc, found.brier, found.log_loss
    theirs = (
        metrics.roc_auc_score(outcome, probability, sample_weight=given),
        metrics.brier_score_loss(outcome, probability, sample_weight=given),
        metrics.log_loss(outcome, probability, sample_weight=given),
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_probability_of_one_or_zero_that_was_wrong_has_the_finite_loss_of_scikit_learn():
    probability, outcome = np.array([0.0, 1.0, 0.5]), np.array([1.0, 0.0, 1.0])
    theirs = metrics.log_loss(outcome, probability)
    assert _picture(probability, outcome).log_loss == pytest.approx(theirs, rel=1e-12)


def test_frequency_weights_count_as_repeated_rows():
    probability, outcome, weight = _rows()
    repeats = weight.astype(int)
    by_weight = _picture(probability, outcome, weight)
    repeated = _picture(np.repeat(probability, repeats), np.repeat(outcome, repeats))
    assert by_weight.n_rows == repeated.n_rows == weight.sum()
    for ours, theirs in zip(by_weight.points, repeated.points, strict=True):
        np.testing.assert_allclose(
            [ours.predicted, ours.observed, ours.observed_low, ours.n_rows],
            [theirs.predicted, theirs.observed, theirs.observed_low, theirs.n_rows],
            rtol=1e-12,
        )


def test_groups_hold_every_row_once_in_order_and_equal_probabilities_stay_together():
    probability, outcome, _ = _rows()
    found = _picture(probability, outcome)
    assert sum(point.n_rows for point in found.points) == len(probability)
    for left, right in zip(found.points[:-1], found.points[1:], strict=True):
        assert left.high < right.low
    constant = _picture(np.full(20, 0.3), np.tile([0.0, 1.0], 10))
    assert len(constant.points) == 1
    assert constant.auc == 0.5


def test_sampling_weights_widen_the_intervals_by_what_they_are_worth_in_rows():
    probability, outcome, weight = _rows()
    as_counts = _picture(probability, outcome, weight)
    as_sampled = _picture(probability, outcome, 7.0 * weight, weight_kind="sampling")
    assert as_sampled.n_rows == len(probability)
    assert as_sampled.brier == pytest.approx(as_counts.brier, rel=1e-12)
    for wide, thin in zip(as_sampled.points, as_counts.points, strict=True):
        assert wide.observed == pytest.approx(thin.observed, rel=1e-12)
        assert wide.observed_high - wide.observed_low > thin.observed_high - thin.observed_low


@pytest.mark.parametrize(("hits", "n"), [(0, 12), (3, 12), (12, 12), (431, 900)])
def test_intervals_of_shares_are_wilsons(hits, n):
    theirs = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson_interval(hits / n, n), theirs, rtol=1e-9, atol=1e-15)


def test_the_picture_says_whether_rows_were_held_out_and_that_they_are_selected():
    probability, outcome, _ = _rows()
    inside = _picture(probability, outcome).text().caption
    outside = _picture(probability, outcome, held_out="5 folds").text().caption
    assert "In sample" in inside
    assert "Held out" not in inside
    assert "Held out (5 folds)" in outside
    assert "In sample" not in outside


def test_one_class_has_no_auc_and_no_rows_are_refused():
    found = _picture(np.array([0.2, 0.4]), np.zeros(2))
    assert np.isnan(found.auc)
    assert "AUC none, with one class" in found.text().caption
    with pytest.raises(InputError, match="nothing to draw"):
        _picture(np.empty(0), np.empty(0))


def test_names_from_the_data_are_escaped_in_the_drawing():
    names = {"positive": "<b>&yes</b>", "outcome_name": "a<script>"}
    found = calibration_of(*_rows()[:2], **names)
    for width in (540, 358):
        drawn = found.svg(width)
        assert "<script" not in drawn
        assert "<b>" not in drawn
        assert drawn.count("<circle") == len(found.points)


def test_axes_zoom_in_on_rare_outcomes_and_show_all_otherwise():
    probability, outcome, _ = _rows()
    assert _picture(probability, outcome).limits == (0.0, 1.0)
    low, high = _picture(0.05 * probability, np.zeros(len(outcome))).limits
    assert low == 0.0
    assert 0.05 < high < 0.6
    low, high = _picture(1.0 - 0.05 * probability, np.ones(len(outcome))).limits
    assert high == 1.0
    assert 0.4 < low < 0.95

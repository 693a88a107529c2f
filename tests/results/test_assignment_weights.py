"""What a choice hides is counted as an average over all assignments counts it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.results.shared import fitted, on_one_line

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanProbitAverage,
    HeckmanProbitBestSubset,
)
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.results import assignment_weights
from heckmanfa.results.answer import answer_of
from heckmanfa.results.assignment_weights import QUICK_UNITS, weights_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.weight_facts import weight_facts
from heckmanfa.search.averaging import gibbs
from heckmanfa.text.wording import PSEUDO_WEIGHTS, share_text

K = 7
NOT_FEATURES = ["lfp", "hours", "wage", "repwage", "mtr", "faminc", "lwage"]


@pytest.fixture(scope="module")
def rows():
    data = make_selection(500, K, 3, rho=0.6, random_state=3)
    return data.X, data.y


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    return fitted(HeckmanBestSubset(), frame.drop(columns=NOT_FEATURES), frame["lwage"])


def averaged(X, y, **options):
    """The same rows averaged by BIC weights, which a plain loop checks elsewhere."""
    return fitted(HeckmanAverage("bic", cov_type="classical", **options), X, y)


def weight_of(average, features):
    """Weight of a set of features without the index, with and without the correction."""
    rows = average.assignments_
    same = rows["features"].map(set) == {*features}
    return float(rows.loc[same & ~rows["index"], "weight"].sum())


def test_weights_are_those_of_an_average_by_bic(rows):
    model = fitted(HeckmanBestSubset(), *rows)
    found, own = weights_of(model.fit_), averaged(*rows)
    table = own.inclusion_
    assert found.best == pytest.approx(own.assignments_["weight"].max(), rel=1e-9)
    assert found.chosen == pytest.approx(weight_of(own, model.prediction_features_), rel=1e-8)
    heavy = np.cumsum(own.assignments_["weight"].to_numpy())
    assert found.n_half == np.searchsorted(heavy, 0.5) + 1
    for kind in ("aic", "bic", "ebic"):
        shares = [found.share((column,), kind) for column in range(K)]
        assert shares == pytest.approx(table[kind].to_numpy()[:K], abs=1e-9)
        assert found.correction[kind] == pytest.approx(table[kind].iloc[-1], abs=1e-9)
    assert found.corrected == found.correction["bic"]
    X, y = pd.DataFrame(rows[0], columns=list("abcdefg")), rows[1]
    whole = fitted(Heckman(), X, y)
    away = [name for name, inside in zip(X, model.support_, strict=True) if not inside]
    test = whole.wald_test(", ".join(f"{name} = 0" for name in away))
    assert found.left_out.chi2 == pytest.approx(test.statistic, rel=1e-6)
    assert found.left_out.df == len(away)


def below(end, weight, rho, error):
    """Share of a mixture of normals and point masses below an end."""
    point = error == 0.0
    under = np.where(point, rho <= end, stats.norm.cdf((end - rho) / np.where(point, 1.0, error)))
    return np.average(under, weights=weight)


def test_the_interval_of_rho_is_that_of_the_mixture_of_all_models(rows):
    model = fitted(HeckmanBestSubset(), *rows)
    found = weights_of(model.fit_)
    members = found.mixture.interval_members(found.form)
    parts = members.weights, members.terms[:, -2], members.term_errors[:, -2]
    low, high = found.rho_interval
    assert -1 <= low < high <= 1
    # Assignments without the correction have rho = 0 exactly, where an end may lie.
    for end, level in ((low, 0.025), (high, 0.975)):
        assert below(end - 1e-6, *parts) <= level
        assert end == 1.0 or level <= below(end + 1e-6, *parts)


def test_the_weights_of_a_binary_outcome_follow_from_the_model_of_all_features():
    data = make_selection(600, 4, 1, outcome_kind="binary", rho=0.3, random_state=2)
    model = fitted(HeckmanProbitBestSubset(), data.X, data.y)
    found = weights_of(model.fit_)
    own = fitted(HeckmanProbitAverage("bic"), data.X, data.y)
    table = own.inclusion_
    shares = [found.share((column,)) for column in range(4)]
    assert shares == pytest.approx(table["bic"].to_numpy()[:4], abs=1e-3)
    assert found.corrected == pytest.approx(table["bic"].iloc[-1], abs=1e-3)
    assert found.chosen == pytest.approx(weight_of(own, model.prediction_features_), rel=0.02)


def test_stand_ins_differ_in_the_share_of_the_correction():
    # x0 drives selection and predicts a little, and it makes most of lambda.
    source = np.random.default_rng(16)
    X, u = source.standard_normal((500, 4)), source.standard_normal(500)
    y = X[:, 1] + 0.4 * X[:, 0] + 0.8 * source.standard_normal(500)
    y[1.2 * X[:, 0] + 0.4 * X[:, 2] + u < 0] = np.nan
    model = fitted(HeckmanBestSubset(), X, y)
    found = weights_of(model.fit_)
    rows = averaged(X, y).assignments_
    weight, corrected = rows["weight"].to_numpy(), rows["correction"].to_numpy()
    expected = {}
    for column in range(4):
        held = rows["features"].map(lambda features, column=column: column in features).to_numpy()
        if not 0.1 <= weight[held].sum() < 0.9:
            continue
        pair = [np.average(corrected[part], weights=weight[part]) for part in (held, ~held)]
        if abs(pair[0] - pair[1]) >= 0.5:
            expected[(column,)] = pytest.approx(tuple(pair), abs=1e-9)
    assert {
        item.columns: (item.corrected_with, item.corrected_without) for item in found.stand_ins
    } == expected
    # Without x0 there is a correction; with x2 there is one.
    (first, second), held = found.stand_ins, share_text
    assert (first.columns, second.columns) == ((0,), (2,))
    said = on_one_line(model.search_report())
    assert (
        f"x0 and lambda stand in for each other: without x0, {held(first.corrected_without)} of "
        f"the BIC weight holds the correction; with it, {held(first.corrected_with)}." in said
    )


def test_groups_and_forced_features_count_as_the_user_allowed(rows):
    options = {"always": [0], "never": [6], "feature_groups": [[1, 2]]}
    model, own = fitted(HeckmanBestSubset(**options), *rows), averaged(*rows, **options)
    found = weights_of(model.fit_)
    assert found.mixture.n_assignments == own.n_assignments_
    assert found.best == pytest.approx(own.assignments_["weight"].max(), rel=1e-9)
    assert model.search_report().shares["feature"].tolist() == [(1, 2), 3, 4, 5]
    assert found.left_out is None or not {0, 6} & {*found.left_out.columns}


def test_a_choice_by_another_criterion_has_its_own_weight(rows):
    model = fitted(HeckmanFA("correlation", criterion="adjusted_r2"), *rows)
    found = weights_of(model.fit_)
    expected = weight_of(averaged(*rows), model.prediction_features_)
    assert found.chosen == pytest.approx(expected, rel=1e-8)
    assert not found.chosen_is_best
    said = f"These features have {share_text(found.chosen)} of the BIC weight of all assignments"
    best = f"and the best by BIC has {share_text(found.best)}"
    assert f"{said}, {best}" in on_one_line(model.summary())


def test_after_the_corrected_bic_the_features_left_out_have_the_covariance_of_the_search(rows):
    X, y = pd.DataFrame(rows[0], columns=list("abcdefg")), rows[1]
    model = HeckmanBestSubset(criterion="corrected_bic", cov_type="robust")
    fitted(model, X, y)
    whole = fitted(Heckman(cov_type="robust"), X, y)
    away = [name for name in X if name not in model.prediction_features_]
    test = whole.wald_test(", ".join(f"{name} = 0" for name in away))
    found = weights_of(model.fit_)
    assert found.left_out.chi2 == pytest.approx(test.statistic, rel=1e-8)
    assert found.left_out.df == test.df


def test_in_a_window_only_its_assignments_weigh_and_lambda_is_not_tested(rows):
    model = fitted(HeckmanBestSubset(rho_range=(0.2, 0.7)), *rows)
    own = averaged(*rows, rho_range=(0.2, 0.7))
    found = weights_of(model.fit_)
    # Without the rows, sigma has no covariance that moves rho, so the window is cut otherwise.
    assert found.best == pytest.approx(own.assignments_["weight"].max(), abs=0.05)
    assert 0.2 <= found.component_rho.min() <= found.component_rho.max() <= 0.7
    assert found.correction is None
    assert found.stand_ins is None
    printed = on_one_line(model.summary()) + on_one_line(model.diagnostics())
    assert "of all assignments in the window" in printed
    assert "Assignments with lambda" not in printed
    assert "stand in" not in printed


def test_what_cannot_be_weighed_is_said_in_a_sentence(rows):
    X, y = rows
    weights = np.random.default_rng(0).uniform(1, 2, len(y))
    survey = HeckmanBestSubset(weight_kind="sampling", cov_type="robust")
    fitted(survey, X, y, sample_weight=weights)
    for printed in (survey.summary(), survey.search_report()):
        assert PSEUDO_WEIGHTS in on_one_line(printed).lower()
    assert survey.search_report().shares is None
    assert "BIC weight" not in str(survey.diagnostics())
    # The last column predicts as the sum of two others, and all three cannot together.
    more = np.column_stack([X, X[:, 0] + X[:, 1]])
    model = HeckmanBestSubset(selection_features=list(range(K)), never=[2, 3])
    fitted(model, more, y)
    assert "cannot be fitted at once to the selected rows" in on_one_line(model.summary())
    assert isinstance(weights_of(model.fit_), str)


def test_many_features_are_weighed_by_the_search_report_alone():
    data = make_selection(400, QUICK_UNITS + 1, 3, random_state=0)
    model = fitted(HeckmanBestSubset(), data.X, data.y)
    said = str(model.summary())
    assert "take a while to compute" in on_one_line(said)
    assert "BIC weight of the chosen" not in str(model.diagnostics())
    assert len(model.search_report().shares) == QUICK_UNITS + 1
    # What was asked in between changes nothing.
    assert str(model.summary()) == said


def test_sampled_assignments_have_about_the_same_weights(rows, monkeypatch):
    model = fitted(HeckmanFA("correlation", criterion="bic"), *rows)
    exact = weights_of(model.fit_)
    monkeypatch.setattr(
        assignment_weights, "average", partial(assignment_weights.average, max_units=3)
    )
    # A third of the sweeps is near enough.
    monkeypatch.setattr(gibbs, "_STEPS", 8_000)
    again = fitted(HeckmanFA("correlation", criterion="bic"), *rows)
    report = again.search_report()
    found = report.weights
    assert exact.mixture.exhaustive
    assert not found.mixture.exhaustive
    assert found.chosen == pytest.approx(exact.chosen, rel=0.05)
    assert found.corrected == pytest.approx(exact.corrected, abs=0.02)
    assert found.rho_interval == pytest.approx(exact.rho_interval, abs=0.03)
    said = on_one_line(report)
    assert f"BIC weight: about {share_text(found.chosen)}" in said
    assert "Assignments were sampled" in said
    (caveat, *_) = weight_facts(again.fit_, found)
    assert f"These features have about {share_text(found.chosen)}" in caveat.sentence
    # An average that was sampled keeps its shares; only the heaviest by BIC are drawn again.
    fit = fitted(HeckmanAverage(), *rows).fit_
    sampled = assignment_weights.average(
        fit.average.form, fit.average.mixture.choices, weights="aic", random_state=5
    )
    kept = weights_of(replace(fit, average=replace(fit.average, mixture=sampled)))
    assert kept.correction == sampled.correction_share
    assert kept.mixture.shares is sampled.shares
    assert kept.mixture.weights == "bic"


def test_an_honest_choice_is_weighed_in_all_rows(rows):
    model = fitted(HeckmanBestSubset(honest=True, n_splits=5, random_state=0), *rows)
    best = weights_of(fitted(HeckmanBestSubset(), *rows).fit_)
    found = weights_of(model.fit_)
    assert found.best == best.best
    assert "of the BIC weight of all assignments" in on_one_line(model.summary())


def test_on_mroz_the_proven_best_set_has_little_weight(mroz):
    report = mroz.search_report()
    found = report.weights
    assert found.chosen == pytest.approx(0.148, abs=0.001)
    assert found.best == pytest.approx(0.137, abs=0.001)
    assert found.mixture.leading_states[0, -2:].tolist() == [False, False]
    shares = report.shares.set_index("feature")
    assert shares.loc["educ", "bic"] > 0.99
    assert shares.loc["exper", "bic"] > 0.8
    said = on_one_line(mroz.summary())
    assert "These features have 15% of the BIC weight of all assignments, the most of any" in said
    for printed in (said, on_one_line(mroz.diagnostics()), on_one_line(report)):
        assert "descriptive, not a test" in printed
        assert "does not predict" not in printed
    # A statistic that describes has no p-value.
    (line,) = [check.value for check in mroz.diagnostics().checks() if check.key == "left_out"]
    assert line == "chi2(13) = 14.65"


def test_an_average_says_by_bic_weights_what_its_search_says(mroz):
    frame = load_mroz()
    average = HeckmanAverage(cov_type="classical")
    model = fitted(average, frame[[*mroz.feature_names_in_]], frame["lwage"])
    found, chosen = weights_of(model.fit_), weights_of(mroz.fit_)
    assert found.stand_ins == chosen.stand_ins
    assert found.correction == pytest.approx(chosen.correction, rel=1e-9)
    assert (found.chosen, found.left_out) == (None, None)
    share = share_text(found.correction["bic"])
    assert f"{share} by BIC" in on_one_line(model.diagnostics())
    (row,) = [line for line in str(model.summary()).splitlines() if line.startswith("imr ")]
    assert row.split()[1] == share


def test_chances_by_sampling_weights_are_called_rough(rows):
    X, y = rows
    model = HeckmanAverage(weight_kind="sampling", cov_type="robust")
    fitted(model, X, y, sample_weight=np.random.default_rng(0).uniform(1, 2, len(y)))
    assert PSEUDO_WEIGHTS in on_one_line(model.summary())
    assert "Assignments with lambda" not in on_one_line(model.summary())


def test_only_certainty_is_printed_as_0_or_100_percent():
    printed = [share_text(share) for share in (0.0, 1e-6, 0.002, 0.0994, 0.41, 0.9951, 1.0)]
    assert printed == ["0%", "<0.1%", "0.2%", "9.9%", "41%", ">99%", "100%"]


def test_an_assignment_that_the_sampler_missed_has_no_weight(rows, monkeypatch):
    sample = partial(assignment_weights.average, max_units=3)

    def missed(*args, **options):
        # As if the chains had not come near the best assignments.
        found = sample(*args, **options)
        worse = np.zeros_like(found.leading)
        return replace(found, leading=worse, leading_cost=found.leading_cost + 500.0)

    monkeypatch.setattr(assignment_weights, "average", missed)
    model = fitted(HeckmanBestSubset(), *rows)
    evidence = evidence_of(model.fit_)
    assert evidence.weights.chosen is None
    said = str(answer_of(evidence).which.numbers)
    assert "The best of these, the empty one, has " in said
    assert ", which the sampler did not draw." in said

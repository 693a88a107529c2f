"""What a choice hides is counted as a plain enumeration of all models counts it."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanFA,
    HeckmanProbit,
    HeckmanProbitBestSubset,
)
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results import assignment_weights
from heckmanfa.results.answer import answer_of
from heckmanfa.results.assignment_weights import QUICK_UNITS, weights_of
from heckmanfa.results.assignment_words import findings_of_weights
from heckmanfa.results.evidence import evidence_of
from heckmanfa.text.option_names import in_options
from heckmanfa.text.wording import share_text

K = 7
NOT_FEATURES = ["lfp", "hours", "wage", "repwage", "mtr", "faminc", "lwage"]


def on_one_line(printed):
    return re.sub(r"\s+", " ", str(printed))


def fitted(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(X, y, **more)


@pytest.fixture(scope="module")
def rows():
    data = make_selection(500, K, 3, rho=0.6, random_state=3)
    return data.X, data.y


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    return fitted(HeckmanBestSubset(), frame.drop(columns=NOT_FEATURES), frame["lwage"])


class Enumerated:
    """All models of the rows, each by least squares of its own."""

    def __init__(self, model, X, y, allowed, lambdas=(True,)):
        seen = np.isfinite(y)
        X = np.asarray(X, dtype=float)
        lam = model.inverse_mills(X)[seen]
        index = stats.norm.ppf(model.predict_selection(X))[seen]
        delta = lam * (lam + index)
        y, m = y[seen], seen.sum()
        ones = np.ones(m)
        Z = np.column_stack([ones, X[seen]])
        names = [term for term in model.vcov().index if term[0] == "selection"]
        V = model.vcov().loc[names, names].to_numpy()
        self.masks, self.criterion, self.rho, self.z = [], {"aic": [], "bic": []}, [], []
        self.held, self.coef, self.covariance, self.rho_error = [], [], [], []
        for mask, held in product(allowed, lambdas):
            design = np.column_stack([ones, X[seen][:, mask], *([lam] if held else [])])
            b = np.linalg.lstsq(design, y, rcond=None)[0]
            sse = np.sum((y - design @ b) ** 2)
            p = design.shape[1]
            self.masks.append(mask)
            self.held.append(held)
            self.criterion["bic"].append(m * np.log(sse / m) + p * np.log(m))
            self.criterion["aic"].append(m * np.log(sse / m) + 2 * p * m / (m - p - 1))
            self.coef.append(b)
            if not held:
                continue
            sigma = np.sqrt(sse / m + delta.mean() * b[-1] ** 2)
            self.rho.append(b[-1] / sigma)
            imr = np.clip(b[-1], -0.98 * sigma, 0.98 * sigma)
            bread = np.linalg.inv(design.T @ design)
            D = delta[:, None]
            inner = sigma**2 * design.T @ design - imr**2 * design.T @ (D * design)
            inner += imr**2 * (design.T @ (D * Z)) @ V @ (design.T @ (D * Z)).T
            covariance = bread @ inner @ bread
            self.covariance.append(covariance)
            self.z.append(b[-1] / np.sqrt(covariance[-1, -1]))
            # Of b / sqrt(SSE / m + mean(delta) b^2) in b.
            self.rho_error.append(np.sqrt(covariance[-1, -1]) * sse / m / sigma**3)
        self.masks, self.held = np.array(self.masks), np.array(self.held)
        self.rho, self.z = np.array(self.rho), np.array(self.z)
        self.rho_error = np.array(self.rho_error)

    def weight(self, kind="bic"):
        values = np.array(self.criterion[kind])
        weight = np.exp(-0.5 * (values - values.min()))
        return weight / weight.sum()


def everything(k=K):
    return [np.array(mask) for mask in product([False, True], repeat=k)]


def test_weights_agree_with_a_plain_enumeration(rows):
    model = fitted(HeckmanBestSubset(), *rows)
    found = weights_of(model.fit_)
    own = Enumerated(model, *rows, everything())
    weight = own.weight()
    assert found.best == pytest.approx(weight.max(), rel=1e-9)
    chosen = np.flatnonzero((own.masks == model.support_).all(axis=1))[0]
    assert found.chosen == pytest.approx(weight[chosen], rel=1e-8)
    assert found.chosen_is_best
    assert found.n_half == np.searchsorted(np.cumsum(np.sort(weight)[::-1]), 0.5) + 1
    assert found.average.outside == pytest.approx(weight[np.abs(own.rho) >= 1].sum(), abs=1e-12)
    for column in range(K):
        share = weight[own.masks[:, column]].sum()
        assert found.share((column,)) == pytest.approx(share, abs=1e-10)
    optional = Enumerated(model, *rows, everything(), (True, False))
    for kind in ("aic", "bic"):
        held = optional.weight(kind)[optional.held].sum()
        assert found.imr[kind] == pytest.approx(held, rel=1e-9)
        for column in range(K):
            share = optional.weight(kind)[optional.masks[:, column]].sum()
            assert found.imr_optional.features[kind][column] == pytest.approx(share, abs=1e-9)
    away = 1 + np.flatnonzero(~model.support_)
    whole = own.masks.all(axis=1).argmax()
    estimate, covariance = own.coef[whole][away], own.covariance[whole][np.ix_(away, away)]
    chi2 = estimate @ np.linalg.solve(covariance, estimate)
    assert found.left_out.chi2 == pytest.approx(chi2, rel=1e-6)
    assert found.left_out.df == len(away)


def below(end, weight, rho, error):
    """Share of a mixture of normals below an end."""
    return np.average(stats.norm.cdf((end - rho) / error), weights=weight)


def test_the_interval_of_rho_is_that_of_the_mixture_of_all_models(rows):
    model = fitted(HeckmanBestSubset(), *rows)
    own = Enumerated(model, *rows, everything())
    weight = own.weight()
    heavy = np.argsort(-weight)
    heavy = heavy[: np.searchsorted(np.cumsum(weight[heavy]), 0.99) + 1]
    low, high = weights_of(model.fit_).rho_interval
    parts = weight[heavy], own.rho[heavy], own.rho_error[heavy]
    assert -1 < low < high < 1
    assert below(low, *parts) == pytest.approx(0.025, abs=1e-6)
    assert below(high, *parts) == pytest.approx(0.975, abs=1e-6)


def test_the_interval_of_rho_of_a_binary_outcome_follows_from_the_model_of_all_features():
    data = make_selection(600, 3, 1, outcome_kind="binary", rho=0.3, random_state=2)
    model = fitted(HeckmanProbitBestSubset(), data.X, data.y)
    found = weights_of(model.fit_)
    whole = fitted(HeckmanProbit(), data.X, data.y)
    terms = [("prediction", term) for term in whole.vcov()["prediction"].columns[1:]]
    terms.append(("errors", "rho"))
    covariance = whole.vcov().loc[terms, terms].to_numpy(copy=True)
    # On the scale of atanh rho.
    covariance[-1] /= 1 - whole.rho_**2
    covariance[:, -1] /= 1 - whole.rho_**2
    estimates = np.array([*whole.coef_, np.arctanh(whole.rho_)])
    rho, error = [], []
    for mask in found.average.component_masks:
        away = np.flatnonzero(~mask)
        share = covariance[-1, away] @ np.linalg.inv(covariance[np.ix_(away, away)])
        rho.append(np.tanh(estimates[-1] - share @ estimates[away]))
        variance = covariance[-1, -1] - share @ covariance[away, -1]
        error.append(np.sqrt(variance) * (1 - rho[-1] ** 2))
    parts = found.average.component_weights, np.array(rho), np.array(error)
    low, high = found.rho_interval
    assert low < high
    # The mixture is cut off at -1 and 1.
    assert low == -1 or below(low, *parts) == pytest.approx(0.025, abs=1e-4)
    assert high == 1 or below(high, *parts) == pytest.approx(0.975, abs=1e-4)
    assert (low, high) != (-1, 1)


def test_stand_ins_agree_with_the_tests_of_every_model():
    # x0 drives selection and predicts a little, and it makes most of lambda.
    source = np.random.default_rng(2)
    X = source.standard_normal((500, 4))
    y = X[:, 1] + 0.25 * X[:, 0] + 0.8 * source.standard_normal(500)
    y[1.2 * X[:, 0] + 0.4 * X[:, 2] + source.standard_normal(500) < 0] = np.nan
    model = fitted(HeckmanBestSubset(), X, y)
    found = weights_of(model.fit_)
    own = Enumerated(model, X, y, everything(4))
    # Those with 99% of the weight are enough.
    weight = own.weight()
    order = np.argsort(-weight)
    count = np.searchsorted(np.cumsum(weight[order]), 0.99) + 1
    some = order[:count]
    rejected = 2 * stats.norm.sf(np.abs(own.z)) < 0.05
    expected = {}
    for column in range(4):
        if not 0.1 <= weight[own.masks[:, column]].sum() < 0.9:
            continue
        held = some[own.masks[some, column]]
        free = some[~own.masks[some, column]]
        pair = [np.average(rejected[part], weights=weight[part]) for part in (held, free)]
        if abs(pair[0] - pair[1]) >= 0.5:
            expected[(column,)] = pytest.approx(tuple(pair), abs=1e-9)
    assert (0,) in expected
    assert {
        item.columns: (item.rejected_with, item.rejected_without) for item in found.stand_ins
    } == expected


def test_groups_and_forced_features_count_as_the_user_allowed(rows):
    model = fitted(HeckmanBestSubset(always=[0], never=[6], feature_groups=[[1, 2]]), *rows)
    allowed = [mask for mask in everything() if mask[0] and not mask[6] and mask[1] == mask[2]]
    weight = Enumerated(model, *rows, allowed).weight()
    found = weights_of(model.fit_)
    assert found.average.n_assignments == len(allowed) == 16
    assert found.best == pytest.approx(weight.max(), rel=1e-9)
    assert model.search_report().shares["feature"].tolist() == [(1, 2), 3, 4, 5]
    assert found.left_out is None or not {0, 6} & {*found.left_out.columns}


def test_a_choice_by_another_criterion_has_its_own_weight(rows):
    model = fitted(HeckmanFA("correlation", criterion="adjusted_r2"), *rows)
    found = weights_of(model.fit_)
    own = Enumerated(model, *rows, everything())
    chosen = np.flatnonzero((own.masks == model.support_).all(axis=1))[0]
    assert found.chosen == pytest.approx(own.weight()[chosen], rel=1e-8)
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
    own = Enumerated(model, *rows, everything())
    inside = (own.rho >= 0.2) & (own.rho <= 0.7)
    weight = own.weight() * inside
    found = weights_of(model.fit_)
    assert found.best == pytest.approx(weight.max() / weight.sum(), rel=1e-9)
    assert found.average.n_assignments == inside.sum() < 2**K
    assert found.imr is None
    assert found.stand_ins is None
    printed = on_one_line(model.summary()) + on_one_line(model.diagnostics())
    assert "of all assignments in the window" in printed
    assert "lambda is optional" not in printed
    assert "stand in" not in printed


def test_what_cannot_be_weighed_is_said_in_a_sentence(rows):
    X, y = rows
    weights = np.random.default_rng(0).uniform(1, 2, len(y))
    survey = HeckmanBestSubset(weight_kind="sampling", cov_type="robust")
    fitted(survey, X, y, sample_weight=weights)
    for printed in (survey.summary(), survey.search_report()):
        assert "no likelihood to weigh assignments by" in on_one_line(printed)
    assert survey.search_report().shares is None
    assert "BIC weight" not in str(survey.diagnostics())
    # The last column predicts as the sum of two others, and all three cannot together.
    more = np.column_stack([X, X[:, 0] + X[:, 1]])
    model = HeckmanBestSubset(selection_features=list(range(K)), never=[2, 3])
    fitted(model, more, y)
    assert "All candidates cannot be fitted together" in on_one_line(model.summary())
    assert np.isnan(weights_of(model.fit_).left_out.chi2)


def test_many_features_are_weighed_by_the_search_report_alone():
    data = make_selection(400, QUICK_UNITS + 1, 3, random_state=0)
    model = fitted(HeckmanBestSubset(), data.X, data.y)
    said = on_one_line(model.summary())
    assert "takes a while to compute; see search_report()." in said
    assert "search_report" not in in_options(said)
    assert "BIC weight of the chosen" not in str(model.diagnostics())
    assert len(model.search_report().shares) == QUICK_UNITS + 1
    # Then it is known.
    assert "of the BIC weight of all assignments" in on_one_line(model.summary())


def test_sampled_assignments_have_about_the_same_weights(rows, monkeypatch):
    model = fitted(HeckmanFA("correlation", criterion="bic"), *rows)
    exact = weights_of(model.fit_)
    for name in ("average", "imr_shares"):
        function = getattr(assignment_weights, name)
        monkeypatch.setattr(assignment_weights, name, partial(function, max_units=3))
    again = fitted(HeckmanFA("correlation", criterion="bic"), *rows)
    report = again.search_report()
    found = report.weights
    assert exact.average.exhaustive
    assert not found.average.exhaustive
    assert found.chosen == pytest.approx(exact.chosen, rel=0.02)
    assert found.imr["bic"] == pytest.approx(exact.imr["bic"], abs=0.01)
    said = on_one_line(report)
    assert f"BIC weight: about {share_text(found.chosen)}" in said
    assert "Assignments were sampled" in said
    assert f"These features have about {share_text(found.chosen)}" in on_one_line(again.summary())
    # An average that was sampled by AIC is not sampled again by BIC.
    averaged = fitted(HeckmanAverage(), *rows).fit_
    outcome = replace(averaged.average, average=replace(found.average, weights="aic"))
    lines = {
        check.key: check.value for check in findings_of_weights(replace(averaged, average=outcome))
    }
    assert {*lines} == {"assignment_weight", "weight_kinds"}
    assert lines["assignment_weight"].startswith(f"about {share_text(found.best)}; ")
    # Its chains by BIC say as much about rho as a search does.
    kept = replace(averaged, average=replace(outcome, by_bic=found.average))
    assert weights_of(kept).rejected == found.rejected
    assert found.rejected == pytest.approx(exact.rejected, abs=0.02)
    assert found.rho_interval == pytest.approx(exact.rho_interval, abs=0.02)


def test_an_honest_choice_is_weighed_in_all_rows(rows):
    model = fitted(HeckmanBestSubset(honest=True, n_splits=5, random_state=0), *rows)
    best = weights_of(fitted(HeckmanBestSubset(), *rows).fit_)
    found = weights_of(model.fit_)
    assert found.best == best.best
    assert "of the BIC weight of all assignments" in on_one_line(model.summary())


def test_on_mroz_the_proven_best_set_has_little_weight(mroz):
    report = mroz.search_report()
    assert report.weights.chosen == pytest.approx(report.weights.best, rel=1e-10)
    assert report.weights.best == pytest.approx(0.076, abs=0.001)
    assert report.weights.n_half == 22
    shares = report.shares.set_index("feature")
    assert shares.loc["educ", "bic"] > 0.999
    assert shares.loc["exper", "bic"] == pytest.approx(0.41, abs=0.005)
    assert shares.loc[["educ", "exper", "unem"], "role"].tolist() == [
        "predicts",
        "cannot be told",
        "no sign that it predicts",
    ]
    said = on_one_line(mroz.summary())
    assert (
        "These features have 7.6% of the BIC weight of all assignments, the most of any; 22 carry "
        "half of it." in said
    )
    for printed in (said, on_one_line(mroz.diagnostics()), on_one_line(report)):
        assert (
            "exper and lambda stand in for each other: without exper, assignments find selection "
            "(96% of the BIC weight rejects rho = 0); with it, 0.2%." in printed
        )
        assert "it does not test" in printed
        assert "does not predict" not in printed
    assert "AIC weights favour huswage, motheduc and exper; BIC and EBIC weights do not." in (
        on_one_line(report)
    )
    # A statistic that describes has no p-value.
    (line,) = [check.value for check in mroz.diagnostics().checks() if check.key == "left_out"]
    assert line == "chi2(13) = 14.65"


def test_an_average_says_by_bic_weights_what_stands_in_for_lambda(mroz):
    frame = load_mroz()
    model = fitted(HeckmanAverage(), frame[[*mroz.feature_names_in_]], frame["lwage"])
    found, chosen = weights_of(model.fit_), weights_of(mroz.fit_)
    assert found.stand_ins == chosen.stand_ins
    assert found.imr == chosen.imr
    assert (found.chosen, found.left_out) == (None, None)
    said = on_one_line(model.summary())
    assert "exper and lambda stand in for each other" in said
    assert "If lambda is optional, assignments with it carry 17% of the BIC weight" in said
    lines = {check.key: check.value for check in model.diagnostics().checks()}
    assert lines["assignment_weight"] == "7.6%; 22 assignments carry half"
    assert lines["weight_kinds"] == "huswage, motheduc and exper"


def test_chances_by_sampling_weights_are_called_rough(rows):
    X, y = rows
    model = HeckmanAverage(weight_kind="sampling", cov_type="robust")
    fitted(model, X, y, sample_weight=np.random.default_rng(0).uniform(1, 2, len(y)))
    assert "Chances are rough: sampling weights leave only" in on_one_line(model.summary())
    assert "lambda is optional" not in on_one_line(model.summary())


def test_only_certainty_is_printed_as_0_or_100_percent():
    printed = [share_text(share) for share in (0.0, 1e-6, 0.002, 0.0994, 0.41, 0.9951, 1.0)]
    assert printed == ["0%", "<0.1%", "0.2%", "9.9%", "41%", ">99%", "100%"]


def test_an_assignment_that_the_sampler_missed_has_no_weight(rows, monkeypatch):
    sample = partial(assignment_weights.average, max_units=3)

    def missed(*args, **options):
        # As if the chains had not come near the best assignments.
        found = sample(*args, **options)
        worse = np.zeros_like(found.leading)
        return replace(found, leading=worse, leading_sse=found.leading_sse * 5)

    monkeypatch.setattr(assignment_weights, "average", missed)
    model = fitted(HeckmanBestSubset(), *rows)
    assert weights_of(model.fit_).chosen is None
    said = str(answer_of(evidence_of(model.fit_)).which)
    assert "The best of these, the empty one, has " in said
    assert ", which the sampler did not draw." in said

"""Checks of answers about tables: of their rows, of their columns, and of resampled rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.analysis import Question, analyse, refits
from heckmanfa.analysis.fitted_question import NOT_IN_MEMORY
from heckmanfa.analysis.refits import N_BOOT
from heckmanfa.cli.answer_json import as_json
from heckmanfa.datasets import load_mroz
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.results.checks import badge, fine_lines
from heckmanfa.results.fact_words import FACT_WORDS
from heckmanfa.results.facts import LEVELS
from heckmanfa.text.wording import chance_text, typeset

FEATURES = [
    *["educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"],
    *["fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"],
]
FEW = ["educ", "exper", "age", "kids5", "nwifeinc"]


def table(features=FEATURES):
    return load_mroz()[[*features, "lwage"]].astype(float)


def ask(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return analyse(Question("table", "lwage", **options), frame=frame)


def by_key(analysis):
    return {check.key: check for check in analysis.checks}


def test_the_checks_of_an_average_are_in_order_and_each_has_its_words(mroz):
    checks = mroz().checks
    order = [*FACT_WORDS]
    places = [(LEVELS.index(one.level), order.index(one.key)) for one in checks]
    assert places == sorted(places)
    assert len({one.key for one in checks}) == len(checks)
    for one in checks:
        assert one.title.endswith(".")
        assert one.name
        assert bool(one.do) == (one.level != "ok")
    assert badge(checks) == ("caution", "Read with care")


def test_a_feature_that_stands_in_for_lambda_is_a_caution_with_its_shares():
    source = np.random.default_rng(16)
    X, u = source.standard_normal((500, 4)), source.standard_normal(500)
    y = X[:, 1] + 0.4 * X[:, 0] + 0.8 * source.standard_normal(500)
    y[1.2 * X[:, 0] + 0.4 * X[:, 2] + u < 0] = np.nan
    analysis = ask(pd.DataFrame(X, columns=list("abcd")).assign(lwage=y))
    check = by_key(analysis)["stand_ins"]
    first = weights_of(analysis.model.fit_).stand_ins[0]
    assert check.level == "caution"
    assert check.title == "a and the correction stand in for each other."
    assert f"without it, {100 * first.corrected_without:.0f}% of the BIC weight" in check.value
    (claim,) = [str(one) for one in analysis.claims if one.key == "stand_in"]
    feature = analysis.evidence.of_column(0)
    assert claim.startswith("That these data settle whether a predicts:")
    for chance in (feature.chance, feature.chance_least_squares):
        assert chance_text(chance) in claim
    assert str(analysis.answer.lede) == (
        "Either those without lwage differ from others with the same features, or a predicts "
        "lwage: these data do not tell which."
    )


def test_an_average_of_a_log_outcome_has_the_mean_ratio_of_its_best_set():
    frame = table(FEW)
    frame["wage"] = np.exp(frame.pop("lwage"))
    asked = Question("table", "wage", outcome_transform="log")
    analysis = analyse(asked, frame=frame)
    best = Heckman(["educ", "exper"], outcome_transform="log").fit(frame[FEW], frame["wage"])
    value, error = best.transform_ratio_
    check = by_key(analysis)["transform_ratio"]
    assert check.value == f"{value:.3f} (s.e. {error:.3f}), of the best set"
    assert "This is of the best set alone, educ + exper" in check.words
    results = as_json(analysis)
    assert (results["transform_ratio"], results["transform_ratio_of"]) == (value, "best set")


def test_what_the_model_assumes_is_tested_at_the_best_assignment(mroz):
    analysis, frame = mroz(), table()
    model = Heckman(["educ", "exper"]).fit(frame[FEATURES], frame["lwage"])
    tests = model.specification_tests(frame[FEATURES], frame["lwage"])
    found = by_key(analysis)
    assert analysis.best_model.prediction_features_ == ["educ", "exper"]
    for test in tests:
        assert found[test.name].value == typeset(test.result)
        assert (found[test.name].level == "ok") == (test.p_value >= 0.05)
    assert found["normality_prediction"].title == "The errors of lwage are not normal."
    assert f"({typeset(tests.correction_form.result)})" in found["normality_prediction"].do
    chosen = mroz(search="best-subset")
    assert chosen.best_model is chosen.model


def test_the_share_of_samples_that_the_best_set_wins_is_that_of_a_bootstrap(monkeypatch):
    assert N_BOOT == 50
    monkeypatch.setattr(refits, "N_BOOT", 20)
    frame = table()
    model = HeckmanBestSubset("bic").fit(frame[FEATURES], frame["lwage"])
    drawn = model.bootstrap(frame[FEATURES], frame["lwage"], 20, random_state=0)
    sets = drawn.assignments()
    share = float(sets["share"][sets["features"] == ("educ", "exper")].iloc[0])
    analysis = ask(frame)
    check = by_key(analysis)["best_set"]
    assert check.title == "The best set changes with the sample."
    assert check.value == f"{len(sets)} different ones in 20 bootstrap samples"
    weight = 100 * weights_of(analysis.model.fit_).best
    assert f"educ + exper has {weight:.0f}% of the BIC weight" in check.words
    assert f"won in {100 * share:.0f}% of 20 bootstrap samples" in check.words
    assert f"bootstrap fits that failed: {drawn.n_failed} of 20" in fine_lines(analysis.checks)


def test_rho_is_fine_and_the_line_says_so(mroz):
    rho = mroz().model.rho_
    assert f"rho: \u2212{abs(rho):.3f}, inside (\u22121, 1)" in fine_lines(mroz().checks)


def test_no_two_checks_say_the_same(mroz):
    found = by_key(mroz(search="best-subset"))
    assert "near_ties" not in found
    assert found["exclusions"].title == "The exclusions drive selection weakly for their number."
    assert found["exclusions"].value == "χ² = 101 for 13 features; 130 would be strong"
    assert found["what_if"].title == "An excluded feature appears to predict."


def test_without_an_exclusion_the_answer_is_not_to_be_relied_on(mroz):
    analysis = mroz(search="none", few=True)
    first = analysis.checks[0]
    assert badge(analysis.checks) == ("problem", "Do not rely on it")
    assert (first.key, first.title) == (
        "exclusions",
        "No feature is excluded from the prediction.",
    )
    assert "select_only=[...]" in first.do
    # The warning of the fit says the same, so it is no check of its own.
    assert analysis.warnings
    assert "fit_warning" not in by_key(analysis)


def test_a_square_and_a_product_are_noticed_even_if_rounded(mroz):
    frame = table(FEW).assign(
        both=lambda one: one["educ"] * one["kids5"],
        squared=lambda one: (one["nwifeinc"] ** 2).round(1),
        cubed=lambda one: one["age"] ** 3,
    )
    analysis = ask(frame, search="none", select_only=("kids5",))
    assert analysis.derived_columns == {"both": ("educ", "kids5"), "squared": ("nwifeinc",)}
    check = by_key(analysis)["derived"]
    assert check.level == "note"
    assert "both is the product of educ and kids5; squared is the square of nwifeinc" in check.words
    one = by_key(mroz())["derived"]
    assert one.title == "expersq is the square of exper."
    assert one.words == "Both are columns here; the search takes them apart."


def test_dummies_copies_and_what_was_filled_in_are_made_from_nothing():
    frame = table(FEW).assign(
        place=lambda one: np.where(one["age"] > 45, "north", "south"),
        flag=lambda one: (one["educ"] > 12).astype(float),
    )
    frame["agesq"] = frame["age"] ** 2
    frame.loc[frame.index % 7 == 3, "agesq"] = np.nan
    analysis = ask(frame, search="none", select_only=("kids5",), missing="mean")
    assert analysis.derived_columns == {"agesq": ("age",)}
    assert by_key(analysis)["filled_in"].level == "caution"


@pytest.mark.parametrize(("step", "level"), [(10, "caution"), (50, "note")])
def test_rows_that_lack_a_feature_are_a_caution_if_they_are_many(step, level):
    frame = table(FEW)
    frame.loc[frame.index % step == 0, "educ"] = np.nan
    check = by_key(ask(frame, search="none", select_only=("kids5",)))["rows_lost"]
    assert check.level == level
    assert f"of {len(frame)}" in check.words
    assert f"{int((frame.index % step == 0).sum())} of" in check.words


def test_a_warning_that_no_check_says_becomes_one():
    frame = table(FEW)
    frame["lwage"] = (frame["lwage"] > 1.2).astype(float).where(frame["lwage"].notna())
    analysis = ask(frame, search="none", select_only=("kids5",), outcome_kind="linear")
    check = by_key(analysis)["binary_outcome"]
    assert check.title == "lwage holds only two values."
    assert check.words == "A linear model of two values will predict beyond them in some rows."
    assert any("holds only 0 and 1" in warning for warning in analysis.warnings)


def test_streamed_rows_say_how_many_checks_were_not_run(mroz, tmp_path):
    path = tmp_path / "mroz.parquet"
    table(FEW).to_parquet(path)
    analysis = analyse(Question(str(path), "lwage", stream_above=0.0))
    assert analysis.streamed
    assert analysis.derived_columns == {}
    check = by_key(analysis)["not_run"]
    assert (check.level, check.title) == ("note", "7 checks were not run.")
    assert check.words == f"{NOT_IN_MEMORY}."
    assert {"normality_prediction", "outside_range"}.isdisjoint(by_key(analysis))
    # In memory, these are the checks that it lacks.
    held = {one.key for one in mroz(few=True).checks}
    assert len({*held} - {one.key for one in analysis.checks} - {"bootstrap"}) <= 7


def test_honest_estimates_are_checked_by_their_halves(mroz):
    analysis = mroz(few=True, honest=True)
    found = by_key(analysis)
    assert "honest_splits" in found
    assert {"best_set", "search_ignored", "weight_kinds"}.isdisjoint(found)
    about_features = [one for one in analysis.checks if one.key not in ("imr_optional", "rho_test")]
    assert not any("chance" in f"{one.title} {one.words} {one.do}" for one in about_features)


def test_a_window_of_rho_is_a_caution_and_has_no_test(mroz):
    found = by_key(mroz(few=True, rho_range=(-0.9, -0.1)))
    assert found["window"].title == "The strength of selection was kept within limits."
    assert {"rho_test", "stand_ins", "imr_optional"}.isdisjoint(found)


def test_sampling_weights_leave_checks_out_and_say_so():
    frame = table(FEW).assign(w=1.0 + np.arange(753) % 3 / 2)
    analysis = ask(frame, weights="w", weight_kind="sampling")
    found = by_key(analysis)
    assert found["not_run"].title == "6 checks were not run."
    assert "sampling weights" in found["not_run"].words
    assert found["pseudo_weights"].level == "note"


def test_clusters_are_drawn_whole(monkeypatch):
    drawn = {}
    plain = HeckmanBestSubset.bootstrap

    def spy(self, X, y, n_boot, unit, **options):
        drawn["unit"], drawn["n"] = unit, n_boot
        return plain(self, X, y, 3, unit, **options)

    monkeypatch.setattr(HeckmanBestSubset, "bootstrap", spy)
    frame = table(FEW).assign(county=np.arange(753) % 50)
    assert "best_set" in by_key(ask(frame, cluster="county"))
    assert drawn["n"] == refits.N_BOOT
    assert (np.asarray(drawn["unit"]) == frame["county"]).all()


def test_hostile_names_stay_harmless_in_checks():
    odd = "x\u202e<b>\x1b[31m"
    frame = table(FEW).rename(columns={"exper": odd})
    frame["sq"] = frame[odd] ** 2
    analysis = ask(pd.DataFrame(frame), search="none", select_only=("kids5",))
    said = " ".join(f"{one.title} {one.value} {one.words} {one.do}" for one in analysis.checks)
    assert "sq is the square of" in said
    assert "\u202e" not in said
    assert "\x1b" not in said

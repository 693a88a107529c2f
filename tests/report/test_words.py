"""The words of a report: its settings, and the first screen of every special case."""

from __future__ import annotations

import re

import numpy as np
import pytest

from heckmanfa.report.settings import rows_by_use
from heckmanfa.results.answer import MOST_UNSURE
from heckmanfa.text.wording import chance_text, count, listed, number, p_value, plural, some

SPECIFIED = {"search": "none", "predict_with": ("educ", "exper", "expersq")}
SELECT_ONLY = ("kids5", "kids618", "nwifeinc")


def estimate(analysis, term, equation="prediction"):
    """A line of tidy."""
    return analysis.model.tidy().set_index(["equation", "term"]).loc[(equation, term)]


def settings_of(analysis):
    return analysis.reported().settings


def says(words, *values):
    """Whether words hold numbers, each rounded as it is written, one after another."""
    found = re.findall(r"\u2212?\d+(?:\.\d+)?", str(words))
    numbers = [(float(one.replace("\u2212", "-")), len(one.partition(".")[2])) for one in found]
    near = [
        all(
            abs(n - v) <= 0.5001 * 10.0**-places
            for (n, places), v in zip(part, values, strict=True)
        )
        for part in (numbers[at : at + len(values)] for at in range(len(numbers) - len(values) + 1))
    ]
    return any(near)


def ends(row):
    return row["ci_low"], row["ci_high"]


# The first screen of each special case, held to the model's own numbers. -------------------------


def test_an_average_names_what_surely_predicts_and_what_cannot_be_told(case):
    analysis = case("average")
    answer, chances = analysis.answer, analysis.model.inclusion_.set_index("feature")["bic"]
    correction = chances.pop("correction")
    sure = list(chances.index[chances >= 0.9])
    unsure = chances[(chances >= 0.1) & (chances < 0.9)].sort_values(ascending=False)
    assert sure == ["educ"]
    assert str(answer.headline) == (
        f"educ predicts lwage. For {len(unsure)} other features the data cannot say."
    )
    assert f"selection mattered cannot be told (chance {chance_text(correction)})" in str(
        answer.lede
    )
    assert [(chip.name, chip.chance) for chip in answer.unsure] == [
        (name, chance_text(value)) for name, value in unsure[:MOST_UNSURE].items()
    ]
    row = estimate(analysis, "educ")
    assert re.fullmatch(r"0\.\d+ more lwage for one more educ", answer.how_much.title)
    assert says(answer.how_much.title, row["estimate"])
    assert says(answer.how_much.words, *ends(row))
    row = estimate(analysis, "imr", "errors")
    assert answer.selection.title == "Cannot be told"
    assert says(answer.selection.words, row["estimate"], 95, *ends(row))
    assert answer.trust.title == "Read with care"


def test_without_a_search_there_are_no_chances(case):
    analysis = case("none")
    row = estimate(analysis, "educ")
    headline = str(analysis.answer.headline)
    assert headline.startswith("With selection accounted for, one more educ goes with 0.1")
    assert says(headline, row["estimate"])
    assert {chip.name for chip in analysis.answer.sure} == {"educ", "exper", "expersq"}
    assert all(chip.chance == "" for chip in analysis.answer.sure)
    assert "Taken to predict" in analysis.answer.sure_label
    assert analysis.roles["chance"].isna().all()


def test_maximum_likelihood_speaks_of_its_own_estimates(case):
    analysis = case("ml")
    main = analysis.evidence.main
    row = estimate(analysis, main.name)
    assert says(analysis.answer.how_much.title, abs(row["estimate"]))
    assert says(analysis.answer.how_much.words, *ends(row))
    assert dict(settings_of(analysis))["Estimation"].startswith("Maximum likelihood")


def test_if_nothing_is_missing_it_is_least_squares(case, page_of):
    analysis = case("observed")
    row = estimate(analysis, analysis.evidence.main.name)
    assert says(analysis.answer.headline, abs(row["estimate"]))
    assert "selection accounted for" not in str(analysis.answer.headline)
    assert "No outcome is missing" in f"{analysis.answer.selection}"
    assert ("Left out: the weight is zero", 325) in rows_by_use(
        analysis.model.fit_, analysis.row_counts
    )
    said = page_of("observed").said("answer")
    assert "lambda" not in said


def test_an_honest_search_counts_halves_and_knows_no_chance(case, page_of):
    analysis = case("honest")
    honest = analysis.model.honest_
    n = len(honest.estimates)
    said = f"{analysis.answer.headline} {analysis.answer.which} {analysis.answer.how_much}"
    assert "chance" not in said.lower()
    for chip in (*analysis.answer.sure, *analysis.answer.unsure):
        assert re.fullmatch(rf"\d+ of {n}", chip.chance)
    row = estimate(analysis, analysis.evidence.main.name)
    assert says(analysis.answer.how_much.title, abs(row["estimate"]))
    said = page_of("honest").said("claims")
    assert "each is of the coefficient in the models" in said


def test_a_window_of_rho_tests_nothing(case, page_of):
    analysis = case("window")
    assert "Not asked" in analysis.answer.selection.title
    assert "[\u22120.4, 0.4]" in f"{analysis.answer.selection}"
    assert "tests nothing" in page_of("window").said("claims")
    rho = analysis.model.assignments_["rho"]
    assert rho.between(-0.4, 0.4).all()


def test_a_category_is_one_feature_compared_with_its_reference(case, page_of):
    analysis = case("category")
    names = list(analysis.roles["feature"])
    assert names.count("region") == 1
    assert not any("[" in name for name in names)
    reference = analysis.encoding.references["region"]
    said = page_of("category").said("answer")
    assert f"rather than {reference}" in said
    table = [row[0] for row in page_of("category").tables["margins-table"]]
    assert table.count("region") + sum(name.startswith("region") for name in table) >= 1


def test_with_sampling_weights_chances_are_withheld(case):
    analysis = case("sampling")
    assert analysis.roles["chance"].isna().all()
    assert all(chip.chance == "" for chip in (*analysis.answer.sure, *analysis.answer.unsure))
    assert "sampling weights" in str(analysis.answer.which.words)
    assert ", robust" in str(analysis.answer.how_much.words)


def test_clusters_are_named(case):
    assert "clustered by county" in str(case("cluster").answer.how_much.words)


def test_without_an_exclusion_a_range_replaces_the_estimate(case):
    analysis = case("no exclusion")
    assert analysis.answer.trust.title == "Do not rely on it"
    assert analysis.answer.trust.kind == "problem"
    bounds = analysis.uncertainty.tidy().set_index("term")
    row = bounds.loc[analysis.evidence.main.name]
    assert says(analysis.answer.how_much.title, row["ui_low"], row["ui_high"])
    assert "from \u22120.3 to 0.3" in str(analysis.answer.how_much.words)


def test_details_are_those_of_the_case(case):
    told = {name: dict(settings_of(case(name))) for name in ("observed", "ml", "sampling")}
    assert "Search" not in told["observed"]
    assert told["observed"]["Estimation"].startswith("Ordinary least squares")
    assert "selection equation" not in told["observed"]["Features"]
    assert "follows from the model of all features" in told["ml"]["Chances"]
    assert "Chances" not in told["sampling"]
    window = dict(settings_of(case("window")))["Window of rho"]
    assert window.endswith("from \u22120.4 to 0.4.")


def test_what_may_be_written_says_which_assignments_and_says_it_once(case):
    assert "137 assignments with rho in [\u22120.4, 0.4]" in str(case("window").answer.may_write)
    assert str(case("observed").answer.may_write).lower().count("no outcome is missing") == 1


def test_what_to_do_is_possible_for_the_question(case):
    """--always is refused without a search, and an average needs no advice to average."""
    assert not [check.key for check in case("none").checks if "--always" in check.do]
    assert not [check.key for check in case("average").checks if "--search average" in check.do]


@pytest.mark.parametrize("name", ["average", "none", "ml", "honest", "observed", "no exclusion"])
def test_no_check_says_a_thing_twice_or_that_a_feature_has_no_effect(case, name):
    checks = [check for check in case(name).checks if check.level != "ok"]
    said = [
        sentence
        for check in checks
        for sentence in re.split(r"(?<=\.) ", f"{check.words} {check.do}")
        if len(sentence.split()) > 4
    ]
    assert len(said) == len(set(said))
    text = " ".join(
        f"{one.name} {one.title} {'' if one.level == 'ok' else one.words} {one.do}"
        for one in case(name).checks
    )
    assert not re.search("(do|does) not predict|only drives? selection|safe", text)

    assert "none" not in [check.value for check in checks]


def test_a_badge_without_a_warning_says_what_was_not_checked(case, page_of):
    assert str(case("sampling").answer.trust.words).endswith("6 checks were not run.")
    assert "No warning found6 checks were not run." in page_of("sampling").said("answer")


def test_too_many_features_for_the_rows_are_a_caution_and_no_reason_to_dismiss_selection(case):
    """The probit of 150 features overfits 361 rows, and makes the correction too small."""
    wide = case("crowded")
    found = {check.key: check for check in wide.checks}["crowded"]
    n, k = wide.row_counts["unselected"], len(wide.feature_columns)
    assert (found.level, k) == ("caution", 150)
    assert found.value.startswith(f"{n / k:.1f} rows without an outcome for each of 150")
    assert wide.answer.selection.title == "Not to be relied on"
    assert "crowded" not in {check.key for check in case("average").checks}


def test_streamed_rows_say_what_was_not_checked(case):
    analysis, loaded = case("streamed"), case("average")
    assert analysis.streamed
    assert any("not run" in check.title for check in analysis.checks)
    assert str(analysis.answer.headline).startswith("educ and exper predict lwage.")
    assert not loaded.streamed


def test_of_150_features_few_are_named(case, page_of):
    analysis, page = case("crowded"), page_of("crowded")
    assert len(analysis.roles) == 150
    assert len(page.with_class("chip")) <= 11
    rows = {one["data-f"] for one in page.with_class("row") if "data-f" in one}
    assert 15 <= len(rows) <= 60
    assert len(page.tables["margins-table"]) >= 150


def test_if_no_feature_stands_in_the_lede_is_the_verdict(case, page_of):
    analysis = case("clear")
    assert analysis.evidence.stand_in is None
    assert analysis.answer.selection.title.startswith("Yes")
    assert str(analysis.answer.headline).startswith("x1 and x0 predict y.")
    assert "Either" not in str(analysis.answer.lede)
    row = estimate(analysis, "imr", "errors")
    assert says(analysis.answer.selection.words, row["estimate"], 95, *ends(row))
    assert row["ci_low"] > 0
    assert "with x" not in page_of("clear").said("matter").split("rho, assignment")[1][:60]


# Settings. ----------------------------------------------------------------------------------------


def test_weights_and_clusters_are_told(ask):
    said = dict(settings_of(ask(weights="weight", **SPECIFIED)))
    assert said["Weights"] == "weight (frequency): a row counts as often as its weight says."
    said = dict(
        settings_of(ask(weights="weight", weight_kind="sampling", cluster="county", **SPECIFIED))
    )
    assert "that much of the population" in said["Weights"]
    assert "the same county" in said["Standard errors"]
    assert "Robust" in dict(settings_of(ask(robust=True, **SPECIFIED)))["Standard errors"]


def test_rows_that_miss_a_feature_are_counted_and_not_claimed_for(ask):
    analysis = ask(search="none", features=("educ", "kids5", "gaps"), predict_with=("educ",))
    fates = rows_by_use(analysis.model.fit_, analysis.row_counts)
    assert sum(n for _, n in fates) == 753
    assert ("Left out: a feature is missing", 76) in fates
    said = " ".join(map(str, analysis.claims))
    assert "the rows left out are like the others: 76 of 753 (10%) lack a feature" in said


def test_filled_in_means_are_not_claimed_for(ask):
    analysis = ask(
        search="none", features=("educ", "kids5", "gaps"), predict_with=("educ",), missing="mean"
    )
    assert sum(n for _, n in rows_by_use(analysis.model.fit_, analysis.row_counts)) == 753
    said = " ".join(map(str, analysis.claims))
    assert "standard errors take the average as if it had been observed" in said


def test_selected_by_a_column(ask):
    said = dict(settings_of(ask(selected="lfp", **SPECIFIED)))
    assert said["Who is selected"] == "The rows in which lfp says so."


def test_roles_are_told(ask):
    options = {"always": ("educ",), "select_only": SELECT_ONLY, "exclude": ("hushrs",)}
    said = dict(settings_of(ask(search="best-subset", **options)))
    assert said["Always predict"] == "educ."
    assert said["Kept out of prediction"] == "kids5, kids618 and nwifeinc."
    assert "but hushrs" in said["Features"]
    assert said["Window of rho"].startswith("None")
    assert said["Search"].startswith("Branch and bound")
    assert dict(settings_of(ask(**SPECIFIED)))["Predict"] == "Only educ, exper and expersq."


def test_comparison_is_that_of_the_summary(ask):
    analysis = ask(search="best-subset")
    table = analysis.coefficients
    beside = analysis.model.summary().comparison.set_index("term")
    ours = table.set_index("term")
    for term in beside.index:
        np.testing.assert_allclose(ours.loc[term, "all_features"], beside.loc[term, "all_features"])
        np.testing.assert_allclose(ours.loc[term, "least_squares"], beside.loc[term, "naive"])


def test_comparison_without_a_search(ask):
    analysis = ask(select_only=SELECT_ONLY, **SPECIFIED)
    found = analysis.comparison
    assert found.n_all == 12
    assert found.is_solved
    assert set(found.terms[found.terms["kind"] == "left out"]["term"]).isdisjoint(SELECT_ONLY)
    whole = ask(search="none")
    assert whole.comparison.is_whole
    assert whole.coefficients["all_features"].isna().all()


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.10386, 3, "0.104"),
        (9.9996, 4, "10.00"),
        (-1234.5, 3, "-1,234"),
        (0.0, 4, "0"),
        (float("nan"), 4, ""),
        (2.4e-6, 3, "2.40e-06"),
        (3.2e8, 3, "3.20e+08"),
        (float("inf"), 3, "infinite"),
    ],
)
def test_numbers(value, digits, text):
    assert number(value, digits) == text


def test_counts_and_lists():
    assert count(2**20 - 1) == "1,048,575"
    assert count(2**99) == "about 6.3e+29"
    assert plural(1, "row") == "1 row"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert some([str(one) for one in range(9)]) == "0, 1, 2, 3, 4, 5 and 3 more"
    assert p_value(0.0001) == "<0.001"
    assert p_value(float("nan")) == ""

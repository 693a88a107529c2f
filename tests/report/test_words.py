"""The words of a report: its settings, and the first screen of every special case."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.recorded import compare, flat

from heckmanfa.cli.answer_screen import role_lines
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


# The words are in `tests/records/pages`; here they are held to the model's own numbers. ----------

EFFECTS = ("average", "none", "ml", "observed", "honest", "clear")


@pytest.mark.parametrize("name", EFFECTS)
def test_the_first_screen_has_the_estimate_of_the_clearest_feature(case, name):
    analysis = case(name)
    row = estimate(analysis, analysis.evidence.main.name)
    assert says(analysis.answer.how_much.title, abs(row["estimate"]))
    if name != "clear":
        assert says(analysis.answer.how_much.words, *ends(row))


@pytest.mark.parametrize("name", ["average", "clear"])
def test_the_section_about_selection_has_the_coefficient_of_lambda(case, page_of, name):
    row = estimate(case(name), "imr", "errors")
    assert says(case(name).answer.selection.numbers, row["estimate"], 95, *ends(row))
    assert says(page_of(name).said("matter"), row["estimate"], 95, *ends(row))
    assert (row["ci_low"] > 0) == (name == "clear")


def test_an_average_names_what_surely_predicts_and_what_cannot_be_told(case):
    analysis = case("average")
    answer, chances = analysis.answer, analysis.model.inclusion_.set_index("feature")["bic"]
    del chances["correction"]
    assert [chip.name for chip in answer.sure] == list(chances.index[chances >= 0.9])
    unsure = chances[(chances >= 0.1) & (chances < 0.9)].sort_values(ascending=False)
    assert str(len(unsure)) in str(answer.headline)
    assert [(chip.name, chip.chance) for chip in answer.unsure] == [
        (name, chance_text(value)) for name, value in unsure[:MOST_UNSURE].items()
    ]


@pytest.mark.parametrize("name", ["none", "sampling"])
def test_without_a_search_or_with_sampling_weights_there_are_no_chances(case, name):
    analysis = case(name)
    assert all(chip.chance == "" for chip in (*analysis.answer.sure, *analysis.answer.unsure))
    assert analysis.roles["chance"].isna().all()
    if name == "none":
        assert {chip.name for chip in analysis.answer.sure} == {"educ", "exper", "expersq"}


def test_an_honest_search_counts_halves_and_knows_no_chance(case):
    answer, n = case("honest").answer, len(case("honest").model.honest_.estimates)
    assert "chance" not in f"{answer.headline} {answer.which} {answer.how_much}".lower()
    for chip in (*answer.sure, *answer.unsure):
        assert re.fullmatch(rf"\d+ of {n}", chip.chance)


def test_if_nothing_is_missing_nothing_is_said_of_selection(case, page_of):
    assert 325 in [n for _, n in case("observed").funnel.by_use()]
    assert "lambda" not in page_of("observed").said("answer")


def test_a_window_holds_what_is_weighed(case):
    assert "[\u22120.4, 0.4]" in f"{case('window').answer.selection.numbers}"
    assert case("window").model.assignments_["rho"].between(-0.4, 0.4).all()


def test_a_category_is_one_feature_compared_with_its_reference(case, page_of):
    analysis = case("category")
    names = list(analysis.roles["feature"])
    assert names.count("region") == 1
    assert not any("[" in name for name in names)
    assert analysis.encoding.references["region"] in page_of("category").said("answer")


def test_without_an_exclusion_a_range_replaces_the_estimate(case):
    analysis = case("no exclusion")
    assert analysis.answer.trust.kind == "problem"
    row = analysis.uncertainty.tidy().set_index("term").loc[analysis.evidence.main.name]
    assert says(analysis.answer.how_much.title, row["ui_low"], row["ui_high"])


def test_what_to_do_is_possible_for_the_question(case):
    """--always is refused without a search, and an average needs no advice to average."""
    assert not [check.key for check in case("none").checks if "always" in check.do]
    assert not [check.key for check in case("average").checks if "search='average'" in check.do]


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


def test_too_many_features_for_the_rows_are_a_caution_and_no_reason_to_dismiss_selection(case):
    """The probit of 150 features overfits 361 rows, and makes the correction too small."""
    wide = case("crowded")
    found = {check.key: check for check in wide.checks}["crowded"]
    n, k = wide.row_counts["unselected"], len(wide.feature_columns)
    assert (found.level, k) == ("caution", 150)
    assert f"{n / k:.1f} " in found.value
    assert wide.answer.selection.title == "Not to be relied on"
    assert "crowded" not in {check.key for check in case("average").checks}


def test_streamed_rows_say_what_was_not_checked(case):
    analysis, loaded = case("streamed"), case("average")
    assert analysis.streamed
    assert any("not run" in check.title for check in analysis.checks)
    assert [chip.name for chip in analysis.answer.sure] == ["educ", "exper"]
    assert not loaded.streamed


def test_of_150_features_few_are_named(case, page_of):
    analysis, page = case("crowded"), page_of("crowded")
    assert len(analysis.roles) == 150
    assert len(page.with_class("chip")) <= 12
    rows = {one["data-f"] for one in page.with_class("row") if "data-f" in one}
    assert 15 <= len(rows) <= 60
    assert len(page.tables["margins-table"]) >= 150


# Settings. ----------------------------------------------------------------------------------------

GAPS = {"search": "none", "features": ("educ", "kids5", "gaps"), "predict_with": ("educ",)}
SETTINGS = {
    "frequency weights": {"weights": "weight", **SPECIFIED},
    "sampling weights": {
        "weights": "weight",
        "weight_kind": "sampling",
        "cluster": "county",
        **SPECIFIED,
    },
    "robust": {"robust": True, **SPECIFIED},
    "selected": {"selected": "lfp", **SPECIFIED},
    "roles": {
        "search": "best-subset",
        "always": ("educ",),
        "select_only": SELECT_ONLY,
        "exclude": ("hushrs",),
    },
    "gaps": GAPS,
    "means": {**GAPS, "missing": "mean"},
}


def test_settings_and_claims_are_the_recorded_ones(ask, mroz_file):
    parts = []
    for name, options in SETTINGS.items():
        analysis = ask(**options)
        assert sum(n for _, n in analysis.funnel.by_use()) == analysis.funnel.read == 753
        parts += [f"== {name}", flat(dict(settings_of(analysis)), "setting")]
        parts += [
            flat(analysis.funnel.by_use(), "rows"),
            *map(str, analysis.claims),
        ]
    compare("settings", "\n".join(parts).replace(str(mroz_file.parent), "FOLDER"))


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


@pytest.mark.parametrize("name", ["average", "none", "category", "window", "binary", "honest"])
def test_a_page_has_one_minus_sign_and_writes_chi_squared(page_of, name):
    # Commands are copied, so their hyphens stay.
    lines = [line for line in page_of(name).lines if "heckmanfa fit" not in line]
    found = [line for line in lines if re.search(r"(?<![\w.-])-\.?\d|\de-\d|\bchi2\b", line)]
    assert found == []
    assert any("\N{MINUS SIGN}" in line for line in lines)
    # No table has a column without a cell.
    for title, rows in page_of(name).tables.items():
        body = [row for row in rows if len(row) == len(rows[-1])][1:]
        for place in range(len(rows[-1])):
            assert any(row[place].strip() for row in body), (title, place)


def cells_of(page, table, name, title):
    """The cells of a feature under a title, in the order of the columns."""
    rows = page.tables[table]
    head = next(row for row in rows if title in row)
    line = next(row for row in rows if row[0] == name and len(row) == len(head))
    return [
        float(line[place].replace("\u2212", "-")) for place, one in enumerate(head) if one == title
    ]


@pytest.mark.parametrize("name", ["average", "none", "ml", "honest", "window", "cluster"])
def test_least_squares_is_one_number_in_tile_tables_and_console(case, page_of, name):
    analysis, page = case(name), page_of(name)
    main = analysis.evidence.main
    told = re.search(r"says (\u2212?[\d.]+\d)", str(analysis.answer.how_much)).group(1)
    least = float(told.replace("\u2212", "-"))
    digits = 0.5001 * 10.0 ** -len(told.partition(".")[2])
    (column,) = main.columns
    step = analysis.evidence.naming.step_of(column)
    assert cells_of(page, "forest-table", main.name, "Estimate")[1] == least
    (coefficient,) = cells_of(page, "coefficients-table", main.name, "Least squares")
    assert coefficient * step == pytest.approx(least, abs=digits)
    if "best-table" in page.tables and analysis.evidence.way.is_average:
        # Its columns are the best assignment, least squares, and all features.
        best = cells_of(page, "best-table", main.name, "Estimate")[1]
        assert best * step == pytest.approx(least, abs=2 * digits)
    lines = [line.text for line in role_lines(analysis.evidence, 100)]
    assert next(line for line in lines if line.split()[0] == main.name).split()[-1] == told
    # Over rho stands one model, whose least squares is that of an average only by chance.
    head = next(title for title in page.tables["over-rho-table"][0] if "rho = 0" in title)
    assert ("assignment" in head) == analysis.evidence.way.is_average

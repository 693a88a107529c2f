"""The words of a first screen say what its numbers say, in every case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.results.shared import fitted

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset
from heckmanfa.analysis import Question, analyse
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.inference.uncertainty import bounds_of
from heckmanfa.results.answer import answer_of, opening, roles_frame
from heckmanfa.results.checks import Check
from heckmanfa.results.effects import Effect
from heckmanfa.results.evidence import StandInEvidence, evidence_of
from heckmanfa.results.headline import headline, interval_words
from heckmanfa.results.judgement import Judgement
from heckmanfa.results.lede import verdict
from heckmanfa.results.may_write import may_write
from heckmanfa.results.selection_numbers import rivals_of, selection_numbers
from heckmanfa.text.passage import Name, passage
from heckmanfa.text.wording import NO_EXCLUSION, ONLY_NORMALITY, chance_text, effects

FEATURES = [
    *("educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"),
    *("fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"),
]


@pytest.fixture(scope="module")
def rows():
    data = make_selection(600, 6, 3, rho=0.9, random_state=1)
    return np.asarray(data.X), pd.Series(np.asarray(data.y), name="wage")


@pytest.fixture(scope="module")
def averaged(rows):
    return evidence_of(fitted(HeckmanAverage(), *rows).fit_)


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    return fitted(HeckmanAverage(), frame[FEATURES], frame["lwage"])


def with_chances(evidence, *chances, roles=()):
    """Give features of an average other chances and the roles that follow."""
    names = {0.95: "predicts", 0.5: "cannot be told", 0.05: "no sign of either"}
    found = tuple(
        replace(feature, chance=chance, role=names[chance])
        for feature, chance in zip(evidence.features, chances, strict=False)
    )
    return replace(evidence, features=found, stand_in=None)


@pytest.mark.parametrize(
    ("chances", "words"),
    [
        ([0.95], "x0 predicts wage."),
        ([0.95, 0.5], "x0 predicts wage. For x1 the data cannot say."),
        ([0.95, 0.5, 0.5], "x0 predicts wage. For 2 other features the data cannot say."),
        ([0.95, 0.05], "x0 predicts wage. There is no sign that x1 does."),
        ([0.95, *[0.05] * 5], "x0 predicts wage. There is no sign that the other 5 do."),
        ([0.95, 0.95, 0.05], "x0 and x1 predict wage. There is no sign that x2 does."),
        ([0.95] * 3, "x0, x1 and x2 predict wage."),
        ([0.95] * 4, "All 4 features predict wage."),
        ([*[0.95] * 4, 0.5, 0.05], "4 of 6 features predict wage. For x4 the data cannot say."),
        ([0.5, 0.05], "No feature surely predicts wage; x0 is the likeliest (50%)."),
        (
            [0.05, 0.05],
            "There is no sign that any feature predicts wage; x0 is the likeliest (5%).",
        ),
        ([0.5], "Whether x0 predicts wage cannot be told (50%)."),
        ([0.05], "There is no sign that x0 predicts wage (5%)."),
    ],
)
def test_the_headline_has_the_right_grammar(averaged, chances, words):
    found = with_chances(averaged, *chances)
    # Of equal chances, the clearest effect comes first.
    flat = tuple(
        replace(feature, effect=Effect(1.0 - 0.1 * place, 0.0, 2.0))
        for place, feature in enumerate(found.features)
    )
    assert str(headline(replace(found, features=flat))) == words


def test_features_that_may_not_predict_are_not_counted(rows):
    found = with_chances(evidence_of(fitted(HeckmanAverage(never=[5]), *rows).fit_), *[0.95] * 5)
    kept_out = evidence_of(fitted(HeckmanAverage(never=[5]), *rows).fit_).features[-1]
    assert (kept_out.candidate, kept_out.chance) == (False, None)
    both = replace(found, features=(*found.features, kept_out))
    assert str(headline(both)) == "All 5 features that may predict wage do."


def test_mroz_gets_the_answer_of_the_design(mroz):
    answer = answer_of(evidence_of(mroz.fit_))
    assert str(answer.headline) == (
        "educ predicts lwage. For 14 other features the data cannot say."
    )
    educ = mroz.tidy().set_index("term").loc["educ"].iloc[0]
    assert str(answer.lede) == (
        "Whether those without lwage differ from others with the same features cannot be told from "
        f"these data. Either way, one more educ goes with {educ['ci_low']:.3f} to "
        f"{educ['ci_high']:.3f} more lwage (95% interval)."
    )
    assert [(chip.name, chip.chance) for chip in answer.sure] == [("educ", ">99%")]
    assert [(chip.name, chip.chance) for chip in answer.unsure] == [
        ("exper", "85%"),
        ("expersq", "48%"),
        ("huswage", "44%"),
        ("motheduc", "42%"),
        ("nwifeinc", "36%"),
        ("huseduc", "29%"),
        ("city", "27%"),
    ]
    assert (answer.more_sure, answer.more_unsure) == (0, 7)
    assert str(answer.which.words) == "Chance that it predicts, given these data."
    assert str(answer.which.numbers) == (
        "A chance is a share of the weight (by BIC) of all 131,040 models. "
        "The best set, educ + exper, has 7%."
    )
    table = mroz.tidy().set_index("term").loc["educ"].iloc[0]
    low, high = effects(table["ci_low"], table["ci_high"])
    assert answer.how_much.title == f"{table['estimate']:.3f} more lwage for one more educ"
    said = str(answer.how_much)
    assert f"95% interval {low} to {high}, robust, which allows for the search." in said
    assert answer.selection.title == "Cannot be told"
    assert str(answer.selection.words) == "The chance that it did is 15%, between 10% and 90%."
    assert str(answer.selection.numbers).endswith(
        "With all features the coefficient of lambda is 0.160, and the test of rho = 0 has "
        "p = 0.796."
    )
    # Names can be found again, and no hyphen stands for a minus.
    assert {Name("educ"), Name("lwage")} <= {*answer.headline.parts}
    assert "\u22120.04," in str(answer.selection.numbers)
    summary = " ".join(str(mroz.summary()).split())
    assert summary.startswith(f"{answer.headline} {answer.lede} Heckman selection model")


def test_a_summary_of_an_average_fits_on_a_screen(mroz):
    said = str(mroz.summary()).splitlines()
    assert len(said) <= 50
    assert max(map(len, said)) <= 82
    notes = " ".join(said).partition("==")[2].rpartition("==")[2]
    assert notes.count(" - ") == 4
    heads = next(line for line in said if "chance" in line and "estimate" in line)
    assert heads.split() == [
        *("chance", "estimate", "[95%", "interval]", "all", "features", "std.", "error")
    ]
    chances = mroz.tidy().set_index("term")["chance"]
    assert chances["imr"] == mroz.inclusion_.set_index("feature")["bic"]["correction"]
    assert np.isnan(chances["sigma"])


def test_summaries_without_a_search_open_with_their_title(rows):
    assert str(fitted(Heckman([0, 1]), *rows).summary()).startswith("Heckman selection model")


def test_the_clearest_names_get_chips_and_the_others_are_counted(averaged):
    many = tuple(
        replace(averaged.features[0], name=f"f{i}", chance=chance, role=role)
        for i, (chance, role) in enumerate(
            [*[(0.95, "predicts")] * 5, *[(0.5, "cannot be told")] * 9]
        )
    )
    answer = answer_of(replace(averaged, features=many))
    assert (len(answer.sure), answer.more_sure) == (3, 2)
    assert (len(answer.unsure), answer.more_unsure) == (7, 2)


def test_no_search_gives_an_effect_and_no_chance(rows):
    answer = answer_of(evidence_of(fitted(Heckman([2, 3]), *rows).fit_))
    assert str(answer.headline).startswith("With selection accounted for, one more x")
    assert answer.sure_label == "Taken to predict:"
    assert {chip.chance for chip in answer.sure} == {""}
    assert "which" not in str(answer.how_much.words).split(" Least squares")[0]
    assert "chance" not in str(answer.which).replace("no chances", "")


def test_maximum_likelihood_is_judged_by_rho(rows):
    model = fitted(Heckman([2, 3], method="ml"), *rows)
    found = evidence_of(model.fit_)
    limits = model.tidy().query("term == 'rho'").iloc[0]
    assert (found.rho.low, found.rho.high) == (limits["ci_low"], limits["ci_high"])
    assert str(selection_numbers(found)).startswith("rho is ")


def test_nothing_missing_is_about_least_squares(rows):
    X, y = rows
    seen = y.notna()
    found = evidence_of(fitted(HeckmanAverage(), X[seen], y[seen]).fit_)
    answer = answer_of(found)
    assert found.way.name == "observed"
    assert str(answer.headline).startswith("With the other features held equal, one more x")
    assert answer.selection.title == "No outcome is missing: nothing to correct"
    assert "Least squares, which" not in str(answer.how_much)


def test_an_honest_answer_counts_halves_that_chose_a_feature(rows):
    model = fitted(HeckmanBestSubset(honest=True, n_splits=6, random_state=0), *rows)
    answer = answer_of(evidence_of(model.fit_))
    assert "chance" not in f"{answer.headline} {answer.which}".lower()
    assert all(chip.chance.endswith(" of 6") for chip in answer.sure)
    assert "which allows for the search" in str(answer.how_much)


def test_a_window_is_not_asked_whether_selection_mattered(rows):
    model = fitted(HeckmanAverage(rho_range=(-0.9, 0.9)), *rows)
    answer = answer_of(evidence_of(model.fit_))
    assert answer.selection.title == "Not asked: how strong selection is was kept within limits"
    assert str(answer.selection.numbers).startswith("rho was kept in [\u22120.9, 0.9], so ")
    assert "models with rho in [\u22120.9, 0.9]." in str(answer.which.numbers)


def test_sampling_weights_withhold_chances(rows):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(rows[1]))
    options = {"weight_kind": "sampling", "cov_type": "robust"}
    for model in (HeckmanAverage(**options), HeckmanBestSubset(**options)):
        found = evidence_of(fitted(model, *rows, sample_weight=weight).fit_)
        answer = answer_of(found)
        assert found.pseudo
        assert not found.has_chances
        assert str(answer.headline).startswith("With selection accounted for, ")
        assert "was not computed" in str(answer.which)
        assert "no chances are given" in str(answer.which.numbers)
        assert ", robust" in str(answer.how_much)


def test_a_choice_says_that_its_interval_ignores_the_search(rows):
    answer = answer_of(evidence_of(fitted(HeckmanBestSubset(), *rows).fit_))
    assert "which ignores the search" in str(answer.how_much)
    # The best set by weight has the index in place of lambda.
    assert "The set that the search chose, x1 + x3 + x5, has " in str(answer.which.numbers)


def test_without_an_exclusion_there_is_a_range_and_no_estimate(rows):
    fit = fitted(Heckman(), *rows).fit_
    found = evidence_of(fit)
    bounds = bounds_of(fit, found.naming)
    answer = answer_of(found, bounds=bounds)
    bound = bounds[found.main.lead]
    low, high = effects(*sorted(abs(end) for end in (bound.low, bound.high)))
    more = "more" if bound.low > 0 else "less"
    assert bound.excludes_zero
    assert answer.how_much.title.startswith(f"{low} to {high} {more} wage for one more ")
    assert "for rho from \u22120.3 to 0.3" in str(answer.how_much.numbers)
    assert "can hardly be told" in str(answer.headline)
    assert str(answer.lede) == (
        "Whether those without wage differ from others with the same features cannot be told from "
        "these data."
    )
    assert found.judgement.kind == "unknown"


def judged(evidence, kind="unknown", chance=0.5, rival="", stand_in=None, **more):
    found = Judgement(kind, chance, rival, **more)
    return replace(evidence, judgement=found, stand_in=stand_in)


def test_the_verdict_says_what_its_chance_says(averaged):
    yes = verdict(judged(averaged, "yes", 0.95, exclusion_named=True))
    assert (yes.title, str(yes.words)) == ("Yes", "The chance that it did is 95%.")
    assert str(yes.sentence).startswith("Those without wage ")
    # Without an exclusion that was named, it rests on normality alone.
    alone = verdict(judged(averaged, "yes", 0.95))
    assert str(alone.sentence).startswith("If the errors are normal, those without wage ")
    took_place = "Selection on what was not observed took place"
    named = may_write(judged(averaged, "yes", 0.95, exclusion_named=True))
    assert took_place in " ".join(map(str, named))
    said = " ".join(map(str, may_write(judged(averaged, "yes", 0.95))))
    assert took_place not in said
    assert NO_EXCLUSION in said
    assert ONLY_NORMALITY in said
    seen = judged(averaged, "no sign", 0.05)
    none = verdict(seen)
    assert (none.title, rivals_of(seen)) == ("No sign of it", passage())
    assert str(none.sentence).startswith(
        "There is no sign that those without wage differ from others with the same features "
        "(chance 5%). Ignoring selection "
    )
    torn = verdict(judged(averaged))
    assert "cannot be told from these data. Either way, " in str(torn.sentence)
    assert str(torn.words) == "The chance that it did is 50%, between 10% and 90%."
    doubted = judged(averaged, "yes", 0.999)
    doubted = replace(doubted, judgement=doubted.judgement.doubted("rho: 1.2"))
    assert verdict(doubted).title == "Not to be relied on"
    assert "99%" not in f"{verdict(doubted).words} {verdict(doubted).sentence}"


def test_one_model_says_of_an_effect_what_holds_with_and_without_selection(rows):
    evidence = judged(evidence_of(fitted(Heckman([0, 1, 2]), *rows).fit_), chance=None)
    main = evidence.main
    # Least squares ignores selection: its interval reaches further than that of the model.
    low, high = main.least_squares.low - 0.5, main.least_squares.high + 0.5
    wide = Effect(main.least_squares.estimate, low, high)
    apart = tuple(replace(one, least_squares=wide) for one in evidence.features)
    both = replace(evidence, features=apart)
    assert both.main.least_squares == wide
    ends = [min(main.effect.low, low), max(main.effect.high, high)]
    said = str(verdict(both).sentence)
    assert "95% intervals of both models" in said
    assert all(effects(*ends)[place].removeprefix("\N{MINUS SIGN}") in said for place in (0, 1))


def test_a_verdict_that_cannot_be_told_names_what_competes(averaged):
    index = judged(averaged, rival="index")
    assert str(opening(index)).endswith(
        "Either those without wage differ from others with the same features, or the features that "
        "drive selection account for all of the difference between those with wage and those "
        "without: these data do not tell which."
    )
    without = StandInEvidence("x0", (0,), 0.5, corrected_with=0.01, corrected_without=0.95)
    assert str(opening(judged(averaged, stand_in=without))).endswith(
        "Either those without wage differ from others with the same features, or x0 predicts "
        "wage: these data do not tell which."
    )
    only = replace(without, corrected_with=0.82, corrected_without=0.25)
    assert str(opening(judged(averaged, stand_in=only))).endswith(
        "Either those without wage differ from others with the same features and x0 predicts "
        "wage, or neither: these data do not tell which."
    )
    # What is told does not compete.
    assert "x0" not in str(verdict(judged(averaged, "yes", 0.95, stand_in=without)).sentence)


def test_trust_names_the_two_gravest_checks(averaged):
    checks = [
        Check("rho", "problem", "rho is outside its bounds.", "1.3", ""),
        Check("normality", "caution", "The errors are not normal.", "chi2(2) = 9", ""),
        Check("rows", "caution", "Rows were left out.", "3", ""),
    ]
    trust = answer_of(averaged, checks).trust
    assert (trust.kind, trust.title) == ("problem", "Do not rely on it")
    assert str(trust.words) == "rho is outside its bounds. The errors are not normal."
    assert str(trust.numbers) == (
        "rho is outside its bounds: 1.3. The errors are not normal: chi2(2) = 9."
    )
    assert answer_of(averaged, [replace(checks[0], level="ok")]).trust.title == "No warning found"
    none = replace(checks[0], title="Nothing is excluded.", value="none")
    assert str(answer_of(averaged, [none]).trust.words) == "Nothing is excluded."
    answer = answer_of(averaged, checks)
    assert list(answer) == list(answer.sentences) == str(answer).split("\n")
    assert len(answer.lines()) == 3


def test_categories_are_compared_with_their_reference():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame({"a": rng.normal(size=n), "z": rng.normal(size=n)})
    frame["pl<b>ce"] = rng.choice(["north", "south", "west"], size=n, p=[0.4, 0.3, 0.3])
    frame["firm"] = rng.integers(0, 50, size=n)
    effect = frame["pl<b>ce"].map({"north": 0.0, "south": 0.3, "west": 4.0})
    common = rng.normal(size=n)
    frame["wage"] = 1 + 0.1 * frame["a"] + effect + 0.5 * common + rng.normal(size=n)
    frame.loc[frame["z"] + common + 0.3 < 0, "wage"] = np.nan
    question = Question("table", "wage", search="average", cluster="firm")
    found = analyse(question, frame=frame)
    answer = answer_of(found.evidence)
    assert answer.how_much.title.endswith("more wage for pl<b>ce = west rather than north")
    assert ", clustered by firm, which allows for the search." in str(answer.how_much)
    roles = found.roles
    assert [*roles] == ["feature", "chance", "role", "step", "effect", "ci_low", "ci_high"]
    assert roles["feature"][0] == "pl<b>ce"
    pd.testing.assert_frame_equal(roles, roles_frame(found.evidence))
    assert {*roles["feature"]} == {"a", "z", "pl<b>ce"}


def test_numbers_in_sentences_are_rounded_as_people_read_them():
    assert effects(0.0971, 0.0589, 0.134) == ["0.097", "0.059", "0.134"]
    assert effects(-0.25, 0.0, 0.0004) == ["\u22120.250", "0", "0.000"]
    assert effects(-0.0001, 12.34) == ["0.0", "12.3"]
    assert effects(0.001234, -0.00056) == ["0.00123", "\u22120.00056"]
    assert effects(1234.5, float("nan")) == ["1,234", ""]
    assert effects(3.4e-6) == ["3.40e\u221206"]
    assert [chance_text(share) for share in (0.0, 0.0099, 0.076, 0.41, 0.991, 1.0)] == [
        *("<1%", "<1%", "8%", "41%", ">99%", ">99%")
    ]


def test_an_honest_verdict_is_by_weights_since_the_data_chose_the_exclusions(rows):
    model = fitted(HeckmanBestSubset(honest=True, n_splits=10, random_state=0), *rows)
    plain = fitted(HeckmanBestSubset(), *rows)
    honest, same = (evidence_of(either.fit_).judgement for either in (model, plain))
    assert honest.chance == same.chance
    assert honest.kind == same.kind == "no sign"


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.896, "89%"), (0.9, "90%"), (0.0969, "9%"), (0.1, "10%"), (0.106, "11%"), (0.996, ">99%")],
)
def test_rounding_does_not_carry_a_chance_into_another_role(share, said):
    assert chance_text(share) == said


def test_what_predicts_with_an_interval_that_holds_zero_has_no_sign(averaged):
    feature = replace(averaged.features[0], role="predicts", effect=Effect(0.1, -0.1, 0.3))
    assert str(interval_words(averaged, feature)).endswith(", which does not tell its sign")
    for role, low in (("predicts", 0.01), ("cannot be told", -0.1)):
        feature = replace(feature, role=role, effect=Effect(0.1, low, 0.3))
        assert "sign" not in str(interval_words(averaged, feature))

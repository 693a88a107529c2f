"""Opening words of the sections: true to the numbers in every kind of model."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.plots.selection_rows import SelectionChange, SelectionDriver, SelectionMargins
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.results.evidence import StandInEvidence, evidence_of
from heckmanfa.results.judgement import Judgement
from heckmanfa.results.lede import verdict
from heckmanfa.results.section_words import (
    roles_rule,
    selection_words,
    which_words,
    who_words,
)
from heckmanfa.text.passage import Name
from heckmanfa.text.wording import PSEUDO_WEIGHTS, chance_text, effects

FEW = ["educ", "exper", "age", "kids5", "city", "huswage"]


def evidence(model, names=FEW, **more):
    frame = load_mroz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return evidence_of(model.fit(frame[names], frame["lwage"], **more).fit_)


@pytest.fixture(scope="module")
def averaged():
    return evidence(HeckmanAverage())


def names_in(passage):
    return {part.text for part in passage.parts if isinstance(part, Name)}


def everything(found, margins=None):
    """All words of the sections, as text."""
    parts = [which_words(found), roles_rule(found), *selection_words(found)]
    return " ".join(map(str, [*parts, who_words(found, margins)]))


def test_the_rival_has_the_weight_without_the_correction(averaged):
    share = 1.0 - weights_of(averaged.fit).correction["bic"]
    assert share >= 0.5
    assert str(selection_words(averaged)[1]) == (
        f"Least squares takes {chance_text(share)} of the weight, by BIC. This is no proof that "
        "rho is zero."
    )


def test_a_rival_that_loses_is_not_called_favoured(averaged):
    rival = str(selection_words(replace(averaged, judgement=Judgement("yes", 0.97)))[1])
    assert rival == "Least squares takes 3% of the weight, by BIC."


def stand_in(name, column):
    return StandInEvidence(name, (column,), 0.4, corrected_with=0.1, corrected_without=0.9)


def test_what_the_verdict_hangs_on(averaged):
    one = stand_in("exper", FEW.index("exper"))
    averaged = replace(averaged, judgement=Judgement("unknown", 0.5))
    found = replace(averaged, stand_in=one)
    assert str(selection_words(found)[0]).endswith(
        "It hangs on one feature: exper drives selection so strongly that it and lambda stand in "
        "for each other."
    )
    reverse = replace(one, corrected_with=0.9, corrected_without=0.1)
    turned = str(selection_words(replace(averaged, stand_in=reverse))[0])
    assert turned.endswith("It hangs on one feature: whether exper predicts.")
    assert "stand in" not in turned
    none = str(selection_words(replace(averaged, stand_in=None))[0])
    assert "It hangs on no single feature" in none
    index = replace(averaged, judgement=Judgement("unknown", 0.5, "index"))
    assert str(selection_words(index)[0]).endswith(
        "Either selection mattered, or the features that drive selection account for all of the "
        "difference between those with lwage and those without."
    )
    weak = tuple(
        replace(one, selection_p=0.5) if one.name == "exper" else one for one in averaged.features
    )
    assert "drives selection" not in str(selection_words(replace(found, features=weak))[0])


def test_a_section_does_not_repeat_its_tile(averaged):
    first, tile = str(selection_words(averaged)[0]), str(verdict(averaged).words)
    sentences = set(re.split(r"(?<=\.) ", first)) & set(re.split(r"(?<=\.) ", tile))
    assert sentences == set()
    for one in (averaged.imr, averaged.rho):
        assert all(text in first for text in effects(one.estimate, one.low, one.high))


def test_which_features_predict(averaged):
    words = str(which_words(averaged))
    chances = {one.name: one.chance for one in averaged.features}
    assert [name for name in FEW if chances[name] >= 0.9] == ["educ", "exper"]
    assert "educ and exper predict in nearly every assignment that counts." in words
    lower = tuple(
        replace(one, chance=0.5 * one.chance, role="cannot be told") for one in averaged.features
    )
    none = str(which_words(replace(averaged, features=lower)))
    half = chance_text(0.5 * chances["educ"])
    assert "No feature predicts in nearly every assignment that counts; " in none
    assert f"educ does in those with {half}" in none


def test_the_rule_says_what_a_feature_without_effect_has(averaged):
    rule = str(roles_rule(averaged))
    m = averaged.fit.n_selected
    assert f"about {100 / (1 + np.sqrt(m)):.0f}% on its own, 1 / (1 + √m)" in rule
    for words in ("at least 90%", "from 10% to 90%", "no sign of either"):
        assert words in rule


def test_honest_words_count_halves_and_name_no_chance():
    found = evidence(HeckmanBestSubset(honest=True, n_splits=4, random_state=0))
    words = everything(found)
    # Only the correction has one.
    assert "chance" not in f"{which_words(found)} {roles_rule(found)}"
    assert "Each of 4 random halves" in words
    chosen = max(found.features, key=lambda one: one.chance or 0.0)
    assert f"{chosen.name} was chosen by {round(4 * chosen.chance)} of 4" in words
    assert "at least half of the halves" in words


@pytest.mark.parametrize(
    ("model", "said", "never"),
    [
        (Heckman(prediction_features=["educ"]), "educ is taken to predict lwage", "chance"),
        (Heckman(), "age, kids5, city and huswage are taken to predict lwage", "chance"),
        (HeckmanAverage(rho_range=(-0.3, 0.3)), "rho tests nothing", "rival"),
        (HeckmanAverage(always=FEW), "always included", "A chance"),
    ],
)
def test_special_cases_have_words_of_their_own(model, said, never):
    words = everything(evidence(model))
    assert said in words
    assert never not in words
    assert "  " not in words


def test_sampling_weights_leave_no_chances():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 753)
    model = HeckmanAverage(cov_type="robust", weight_kind="sampling")
    found = evidence(model, sample_weight=weight)
    assert PSEUDO_WEIGHTS in str(which_words(found)).lower()
    assert str(roles_rule(found)).startswith("May predict: ")
    assert len(selection_words(found)) == 1


def test_nothing_missing_has_no_section_about_selection():
    frame = load_mroz().dropna(subset="lwage")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        found = evidence_of(Heckman().fit(frame[FEW], frame["lwage"]).fit_)
    assert selection_words(found) == ()
    assert not who_words(found, None)
    assert str(which_words(found)).endswith("taken to predict lwage; nothing was searched.")


def driver(name, estimate, kind="number", words="", spread=1.0):
    change = SelectionChange(words, estimate, estimate - spread, estimate + spread)
    return SelectionDriver(name, (change,), kind)


def test_who_is_selected_names_the_strongest_each_way(averaged):
    margins = SelectionMargins(
        (
            driver("exper", 20.0),
            driver("age", -15.0),
            driver("region", -12.0, "category", "south rather than north"),
            driver("city", 9.0, "binary"),
            driver("kids", -5.0),
            driver("educ", 4.0),
            driver("noise", 0.5),
        )
    )
    words = who_words(averaged, margins)
    counts = averaged.fit.row_counts
    share = counts["selected"] / (counts["selected"] + counts["unselected"])
    assert str(words) == (
        f"{chance_text(share)} of the rows have an outcome. More exper and city = 1 go with being "
        "selected; more age and region (south rather than north) with not being selected."
    )
    assert names_in(words) == {"exper", "city", "age", "region"}
    only = who_words(averaged, SelectionMargins((driver("city", -9.0, "binary"),)))
    assert str(only).endswith("outcome. city = 1 goes with not being selected.")
    nothing = str(who_words(averaged, SelectionMargins((driver("noise", 0.1),))))
    assert nothing.endswith("every 95% interval includes 0.")


def test_words_of_hostile_names_are_printable(averaged):
    name = "<b>\u202e\x1b[2J" + "x" * 300
    hostile = replace(
        averaged,
        features=tuple(replace(one, name=name) for one in averaged.features),
        stand_in=stand_in(name, 1),
    )
    words = everything(hostile, SelectionMargins((driver(name, 3.0, "category", name),)))
    assert "\x1b" not in words
    assert "\u202e" not in words
    assert not re.search("x{200}", words)

"""What may not be claimed about an answer, and what may be written, against its numbers."""

from __future__ import annotations

import re
import warnings

import pytest

from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.results.checks import badge, check_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.facts import Fact
from heckmanfa.results.may_write import may_write
from heckmanfa.text.passage import Name, passage

FEATURES = [
    *["educ", "exper", "expersq", "age", "kids5", "kids618", "city", "unem", "motheduc"],
    *["fatheduc", "nwifeinc", "huseduc", "husage", "hushrs", "huswage"],
]
FEW = ("educ", "exper", "age", "kids5", "nwifeinc")
MINUS = "\u2212"


def claims(analysis):
    return {claim.key: str(claim) for claim in analysis.claims}


def written(analysis):
    return " ".join(map(str, analysis.answer.may_write))


def percent(share):
    return f"{100 * share:.0f}%"


def names_of(passage):
    return {part.text for part in passage.parts if isinstance(part, Name)}


SPECIAL = {
    "average": {},
    "chosen": {"search": "best-subset"},
    "given": {"search": "none", "few": True, "select_only": ("kids5",)},
    "no exclusion": {"search": "none", "few": True},
    "honest": {"honest": True, "few": True},
    "window": {"rho_range": (-0.9, -0.1), "few": True},
    "sampling weights": {"weights": "w", "weight_kind": "sampling", "few": True},
    "clusters": {"cluster": "county", "few": True},
    "ml": {"method": "ml", "search": "none", "few": True, "select_only": ("kids5",)},
}


@pytest.mark.parametrize("name", SPECIAL)
def test_every_claim_has_a_lead_and_a_reason_and_none_comes_twice(mroz, name):
    analysis = mroz(**SPECIAL[name])
    assert analysis.claims
    for claim in analysis.claims:
        assert str(claim.lead).startswith("That ")
        assert str(claim.lead).endswith(":")
        assert str(claim.why).endswith(".")
        assert not re.search(r"(?<![\w.-])-\d", str(claim))
    keys = [claim.key for claim in analysis.claims]
    assert len({*keys}) == len(keys)
    assert keys[-1] == "not_causal"
    assert {"kept_out", "assignment_weight", "stand_ins"}.isdisjoint(keys)


@pytest.mark.parametrize("name", ["average", "chosen"])
def test_the_weight_of_the_best_set_is_that_of_the_weights_of_all(mroz, name):
    analysis = mroz(**SPECIAL[name])
    weights = weights_of(analysis.model.fit_)
    said = claims(analysis)["best_weight"]
    assert said.startswith("That only educ and exper predict:")
    own = weights.best if weights.chosen is None else weights.chosen
    assert f"has {percent(own)} of the weight" in said
    assert f"it takes {weights.n_half} sets to make up half of it" in said
    lead = next(claim.lead for claim in analysis.claims if claim.key == "best_weight")
    assert names_of(lead) == {"educ", "exper"}


def test_a_chance_is_given_by_three_kinds_of_weights(mroz):
    analysis = mroz()
    shares = weights_of(analysis.model.fit_).mixture.shares
    by = {kind: percent(shares[kind][FEATURES.index("exper")]) for kind in ("bic", "aic", "ebic")}
    said = claims(analysis)["chance"]
    assert said.startswith(
        f"That the chance of {by['bic']} for exper holds however it is computed:"
    )
    assert (
        f"With AIC it is {by['aic']}, with EBIC, which favours few features, {by['ebic']}" in said
    )
    assert min(shares[kind][0] for kind in by) > 0.99
    assert said.endswith("; for educ it stays above 99%.")


def test_intervals_of_the_best_set_and_of_the_average_stand_side_by_side(mroz):
    analysis = mroz()
    ends = analysis.evidence.best.coef.of(FEATURES.index("educ"))
    mixed = analysis.estimates.set_index(["equation", "term"]).loc[("prediction", "educ")]
    said = claims(analysis)["best_interval"]
    assert f"{ends.low:.3f} to {ends.high:.3f} for one more educ" in said
    assert f"Averaged, it is {mixed['ci_low']:.3f} to {mixed['ci_high']:.3f}." in said


def test_normality_that_is_rejected_stands_behind_the_claim_about_it(mroz):
    check = next(one for one in mroz().checks if one.key == "normality_prediction")
    assert check.level == "caution"
    assert f"that is rejected here ({check.value})" in claims(mroz())["normal_law"]


def test_exclusions_are_named_by_who_made_them(mroz):
    said = claims(mroz(**SPECIAL["given"]))["valid_exclusions"]
    assert "the model assumes that kids5 has no effect of its own on lwage" in said
    chosen = claims(mroz(**SPECIAL["chosen"]))["valid_exclusions"]
    assert "not chosen to predict is no evidence" in chosen
    assert "valid_exclusions" not in claims(mroz(**SPECIAL["no exclusion"]))


def test_honest_estimates_speak_of_halves_and_not_of_chances(mroz):
    analysis = mroz(**SPECIAL["honest"])
    said = " ".join(claims(analysis).values())
    assert "each is of the coefficient in the models that halves of the rows chose" in said
    assert "allow for the search" not in said
    # Only the correction has one: the data chose the exclusions.
    assert "however it is computed" not in said
    assert not re.search(r"(?<!observed)(?<!place) \(chance", written(analysis))
    assert re.search(r"was chosen in \d+ of 50 random halves", written(analysis))


def test_in_a_window_rho_tests_nothing_and_is_not_tested(mroz):
    analysis = mroz(**SPECIAL["window"])
    assert "it tests nothing" in claims(analysis)["window"]
    assert {"no_selection", "rho_not_found", "stand_in"}.isdisjoint(claims(analysis))
    assert f"rho was kept in [{MINUS}0.9, {MINUS}0.1]" in written(analysis)
    assert "coefficient of lambda" not in written(analysis)


# What may be written. ---------------------------------------------------------------------------


def test_the_paragraph_about_an_average_names_its_weights_and_numbers(mroz):
    analysis = mroz()
    table = analysis.estimates.set_index(["equation", "term"])
    educ, imr = table.loc[("prediction", "educ")], table.loc[("errors", "imr")]
    said, sentences = written(analysis), analysis.answer.may_write
    assert said.startswith(
        f"Allowing for selection, one more educ went with {educ['estimate']:.3f} more lwage (95% "
        f"interval {educ['ci_low']:.3f} to {educ['ci_high']:.3f}, robust; averaged over all "
        "131,040 assignments, weighted by BIC; 15 features; two steps; 753 rows, 428 with an "
        "outcome; least squares: "
    )
    plain = next(one for one in analysis.evidence.features if one.name == "educ").least_squares
    assert f"least squares: {plain.estimate:.3f})" in said
    assert "By BIC weights, educ (chance >99%) predicts lwage. Whether exper (85%)" in said
    ends = f"95% interval {MINUS}{abs(imr['ci_low']):.2f} to"
    assert f"lambda {MINUS}{abs(imr['estimate']):.2f}, {ends}" in said
    assert "The data do not tell whether selection on what was not observed took place (" in said
    assert "). The errors of lwage are not normal (χ²(2) = 299.4, p < 0.001). By BIC" in said
    assert {"educ", "exper", "lwage"} <= names_of(passage(*(item.paper for item in sentences)))
    assert [item.key for item in sentences] == ["effect", "features", "selection"]


def test_what_is_not_to_be_relied_on_has_no_estimate_in_its_paragraph(mroz):
    analysis = mroz(**SPECIAL["no exclusion"])
    assert badge(analysis.checks)[1] == "Do not rely on it"
    said = written(analysis)
    assert "is not to be relied on. No feature is excluded from the prediction." in said
    assert "No estimate of it is reported as a finding." in said
    educ = analysis.model.tidy().set_index(["equation", "term"]).loc[("prediction", "educ")]
    said += " ".join(str(item.news) for item in analysis.answer.may_write)
    assert not re.search(r"\d\.\d", said)
    assert f"{educ['estimate']:.3f}" not in said
    assert not re.search("went with|goes with \\d", said)
    # Any other problem does the same to an answer that was fine.
    stopped = Fact("convergence", "problem", meaning="It stopped.")
    (grave,) = check_of(stopped, analysis.model.fit_, "lwage")
    sentences = may_write(mroz().evidence, [grave, *mroz().checks])
    said = " ".join(f"{item.paper} {item.news}" for item in sentences)
    assert not re.search(r"\d\.\d", said)
    assert "The iteration did not converge." in said
    assert "went with" not in said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("chosen", "educ and exper chosen to predict, best by BIC of all 32,768 assignments"),
        ("given", "features chosen beforehand; two steps"),
        ("sampling weights", "weighted by BIC of a pseudo-likelihood, with sampling weights"),
        ("clusters", ", clustered by county; averaged over"),
        ("ml", "maximum likelihood; 753 rows"),
    ],
)
def test_the_paragraph_says_how_the_estimate_was_found(mroz, name, words):
    said = written(mroz(**SPECIAL[name]))
    assert words in said
    assert said.startswith("Allowing for selection, one more ")
    if name in ("given", "sampling weights", "ml"):
        assert "By BIC weights" not in said


def test_least_squares_allows_for_no_selection():
    frame = load_mroz().dropna(subset="lwage")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Heckman(list(FEW)).fit(frame[list(FEW)].astype(float), frame["lwage"])

    said = " ".join(map(str, may_write(evidence_of(model.fit_))))
    assert "llowing for selection" not in said
    assert said.startswith("By least squares, one more educ went with ")
    assert "; 428 rows)" in said
    assert said.endswith("No outcome is missing, so there is no selection to correct for.")
    assert "lambda" not in said

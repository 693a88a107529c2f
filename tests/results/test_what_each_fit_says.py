"""What each kind of fit is told about itself: every diagnostic and caveat, none more, in order."""

from __future__ import annotations

import warnings

import pytest
from tests.scenes import FITS

from heckmanfa.errors import HeckmanfaWarning

MARKS = {"ok": "", "note": "", "caution": "?", "problem": "!"}


def said(model):
    """Return the keys of all diagnostics, then of what the summary tells besides.

    They have ? for a caution, ! for a problem.
    """
    facts = model.diagnostics().facts
    keys = [
        f"{fact.key}{MARKS[fact.level]}{f'({fact.case})' if fact.case else ''}" for fact in facts
    ]
    pairs = list(zip(facts, keys, strict=True))
    others = [key for fact, key in pairs if fact.sentence and not fact.name]
    return " ".join(key for fact, key in pairs if fact.name), " ".join(others)


SAID = {
    "two-step": (
        "exclusions imr_r2 condition rho rho_test(not rejected) imr_range uncertainty what_if",
        "two_step_errors adjusted_r2",
    ),
    "ml": (
        "exclusions imr_r2 condition rho rho_test?(not rejected) rho_lr_test?(not "
        "rejected) hausman equal_variance? imr_range uncertainty what_if",
        "rho_scale adjusted_r2(likelihood)",
    ),
    "ml, robust": (
        "exclusions imr_r2 condition rho rho_test?(not rejected) hausman equal_variance? "
        "imr_range uncertainty what_if",
        "rho_scale adjusted_r2(likelihood)",
    ),
    "12 clusters": (
        "exclusions imr_r2 condition rho rho_test(not rejected) imr_range clusters? "
        "uncertainty what_if",
        "two_step_errors adjusted_r2 reference_distribution",
    ),
    "60 clusters": (
        "exclusions imr_r2 condition rho rho_test(not rejected) imr_range clusters "
        "uncertainty what_if",
        "two_step_errors adjusted_r2 reference_distribution",
    ),
    "5 clusters, ml": (
        "exclusions imr_r2 condition rho rho_test?(not rejected) hausman equal_variance? "
        "imr_range clusters!(too few) uncertainty what_if",
        "rho_scale adjusted_r2(likelihood) reference_distribution",
    ),
    "no exclusion": (
        "exclusions!(none) imr_r2? condition? rho rho_test(not rejected) imr_range uncertainty?",
        "two_step_errors adjusted_r2",
    ),
    "no exclusion, ml": (
        "exclusions!(none) imr_r2? condition? rho rho_test(not rejected) rho_lr_test(not "
        "rejected) hausman equal_variance imr_range uncertainty?",
        "rho_scale adjusted_r2(likelihood)",
    ),
    "weak exclusion": (
        "exclusions?(undriving) imr_r2? condition? rho!(outside) rho_test?(not rejected) "
        "imr_range uncertainty what_if",
        "two_step_errors adjusted_r2",
    ),
    "held": (
        "exclusions(held) condition rho(held) imr_range uncertainty",
        "adjusted_r2(held)",
    ),
    "held, ml": (
        "exclusions(held) condition rho(held) imr_range uncertainty",
        "adjusted_r2(likelihood)",
    ),
    "held, no exclusion": (
        "exclusions(held) condition rho(held) imr_range uncertainty?",
        "adjusted_r2(held)",
    ),
    "held, probit": (
        "exclusions(held) condition events naive_probit rho(held) imr_range(index)",
        "slopes criteria",
    ),
    "all observed": (
        "selection? condition",
        "",
    ),
    "all observed, probit": (
        "selection? events condition",
        "slopes criteria",
    ),
    "outcome decided": (
        "selection? events outcome_separation! condition",
        "slopes criteria",
    ),
    "column dropped": (
        "exclusions imr_r2 condition rho rho_test(rejected) imr_range uncertainty what_if?",
        "dropped_features? two_step_errors adjusted_r2",
    ),
    "boundary, ml": (
        "convergence! standard_errors!(withheld) exclusions?(untested) imr_r2 condition "
        "rho!(near one) rho_test?(untested) rho_lr_test?(untested) hausman?(untested) "
        "equal_variance?(untested) imr_range uncertainty what_if",
        "rho_scale adjusted_r2(likelihood)",
    ),
    "boundary, probit": (
        "standard_errors!(withheld) exclusions no_imr condition events? rho!(near one) "
        "rho_test?(untested) rho_lr_test?(not rejected) imr_range(index)",
        "rho_scale slopes criteria",
    ),
    "flat, probit": (
        "standard_errors!(withheld) exclusions!(none) no_imr condition events rho!(flat) "
        "rho_test?(untested) rho_lr_test?(not rejected) imr_range(index)",
        "rho_scale slopes criteria",
    ),
    "made from the outcome": (
        "leakage! exclusions imr_r2 condition rho rho_test(not rejected) imr_range "
        "uncertainty? what_if",
        "two_step_errors adjusted_r2",
    ),
    "unequal variances": (
        "exclusions imr_r2 condition rho rho_test?(rejected) rho_lr_test?(rejected) "
        "hausman! equal_variance? imr_range uncertainty? what_if",
        "rho_scale adjusted_r2(likelihood)",
    ),
    "lower maximum": (
        "exclusions? imr_r2 condition? rho maxima! rho_test?(not rejected) "
        "rho_lr_test?(rejected) hausman equal_variance imr_range uncertainty? what_if?",
        "rho_scale adjusted_r2(likelihood)",
    ),
    "higher maximum": (
        "exclusions?(undriving) imr_r2 condition? rho!(near one) maxima? "
        "rho_test?(rejected) rho_lr_test?(rejected) hausman! equal_variance imr_range "
        "uncertainty? what_if?",
        "rho_scale adjusted_r2(likelihood)",
    ),
    "two-step of two maxima": (
        "exclusions? imr_r2 condition? rho rho_test(not rejected) imr_range uncertainty? what_if?",
        "two_step_errors adjusted_r2",
    ),
    "log": (
        "transform_ratio exclusions imr_r2 condition rho rho_test(not rejected) imr_range "
        "uncertainty what_if",
        "two_step_errors adjusted_r2 log_scale",
    ),
    "probit": (
        "exclusions no_imr condition events naive_probit rho rho_test(not rejected) "
        "rho_lr_test(not rejected) imr_range(index)",
        "rho_scale slopes criteria",
    ),
    "probit, no exclusion": (
        "exclusions!(none) no_imr condition events naive_probit rho rho_test(not "
        "rejected) rho_lr_test(not rejected) imr_range(index)",
        "rho_scale slopes criteria",
    ),
    "probit, few events": (
        "exclusions no_imr condition events? naive_probit rho rho_test(not rejected) "
        "rho_lr_test(not rejected) imr_range(index)",
        "rho_scale rho_near_boundary? slopes criteria",
    ),
    "average": (
        "exclusions imr_r2 condition rho average? best_set(not drawn) stand_ins "
        "weight_kinds? imr_optional(no sign) all_features_test imr_range uncertainty",
        "no_choice kept_out(none) adjusted_r2 classical_beside(averaged)",
    ),
    "average, robust": (
        "exclusions imr_r2 condition rho average? best_set(not drawn) stand_ins "
        "weight_kinds? imr_optional(no sign) all_features_test imr_range uncertainty",
        "no_choice kept_out(none) adjusted_r2 classical_beside(averaged)",
    ),
    "search": (
        "exclusions imr_r2 condition rho rho_test(searched) search_ignored? best_set(not "
        "drawn) left_out stand_ins outside_weight weight_kinds? imr_optional(no sign) "
        "all_features_test imr_range uncertainty what_if",
        "search two_step_errors adjusted_r2",
    ),
    "search, robust": (
        "exclusions imr_r2 condition rho rho_test(searched) search_ignored? best_set(not "
        "drawn) left_out stand_ins outside_weight weight_kinds? imr_optional(no sign) "
        "all_features_test imr_range uncertainty what_if",
        "search two_step_errors adjusted_r2 classical_beside",
    ),
    "window": (
        "exclusions imr_r2 condition rho search_ignored? window? best_set?(chosen) "
        "left_out outside_weight weight_kinds? imr_range uncertainty what_if",
        "search? two_step_errors adjusted_r2",
    ),
    "window, ml": (
        "exclusions imr_r2 condition rho hausman equal_variance? search_ignored? window? "
        "best_set?(chosen) left_out outside_weight weight_kinds? imr_range uncertainty "
        "what_if",
        "search? adjusted_r2(likelihood)",
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_every_check_and_caveat_of_a_fit_and_none_more(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = FITS[name]()
    assert said(model) == SAID[name]

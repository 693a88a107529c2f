"""What each kind of fit is told about itself: every diagnostic and caveat, none more, in order."""

from __future__ import annotations

import warnings

import pytest
from tests.scenes import FITS

from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results.assignment_weights import weights_of

MARKS = {"ok": "", "note": "", "caution": "?", "problem": "!"}


def said(model):
    """Return the keys of all checks, then of all caveats, with ? for a caution, ! for a problem."""
    checks = [
        f"{check.key}{MARKS[check.verdict]}{f'({check.case})' if check.case else ''}"
        for check in model.diagnostics().checks()
    ]
    found = caveats_of_fit(model.fit_, weights=weights_of(model.fit_))
    caveats = [f"{caveat.key}{MARKS[caveat.severity]}" for caveat in found]
    return " ".join(checks), " ".join(caveats)


SAID = {
    "two-step": (
        "exclusions imr_r2 condition rho rho_test imr_range uncertainty what_if",
        "kept_out? two_step_errors adjusted_r2",
    ),
    "ml": (
        "exclusions imr_r2 condition rho rho_test? rho_lr_test? hausman equal_variance? "
        "imr_range uncertainty what_if",
        "equal_variance? kept_out? rho_scale adjusted_r2",
    ),
    "ml, robust": (
        "exclusions imr_r2 condition rho rho_test? hausman equal_variance? imr_range "
        "uncertainty what_if",
        "equal_variance? kept_out? rho_scale adjusted_r2",
    ),
    "12 clusters": (
        "exclusions imr_r2 condition rho rho_test imr_range clusters? uncertainty what_if",
        "few_clusters? kept_out? two_step_errors adjusted_r2 reference_distribution",
    ),
    "60 clusters": (
        "exclusions imr_r2 condition rho rho_test imr_range clusters uncertainty what_if",
        "kept_out? two_step_errors adjusted_r2 reference_distribution",
    ),
    "5 clusters, ml": (
        "exclusions imr_r2 condition rho rho_test? hausman equal_variance? imr_range "
        "clusters!(too few) uncertainty what_if",
        "few_clusters! equal_variance? kept_out? rho_scale adjusted_r2 reference_distribution",
    ),
    "no exclusion": (
        "exclusions!(none) imr_r2? condition? rho rho_test imr_range uncertainty?",
        "no_exclusion! two_step_errors adjusted_r2",
    ),
    "no exclusion, ml": (
        "exclusions!(none) imr_r2? condition? rho rho_test rho_lr_test hausman equal_variance "
        "imr_range uncertainty?",
        "no_exclusion! rho_scale adjusted_r2",
    ),
    "weak exclusion": (
        "exclusions?(undriving) imr_r2? condition? rho! rho_test? imr_range uncertainty what_if",
        "rho_at_bounds! kept_out? two_step_errors adjusted_r2",
    ),
    "held": (
        "exclusions condition rho imr_range uncertainty",
        "rho_held? held_criteria kept_out?",
    ),
    "held, ml": (
        "exclusions condition rho imr_range uncertainty",
        "rho_held? adjusted_r2 kept_out?",
    ),
    "held, no exclusion": (
        "exclusions condition rho imr_range uncertainty?",
        "rho_held? held_criteria",
    ),
    "held, probit": (
        "exclusions condition events naive_probit rho imr_range",
        "rho_held? kept_out? slopes criteria",
    ),
    "all observed": (
        "selection condition",
        "all_observed?",
    ),
    "all observed, probit": (
        "selection events condition",
        "all_observed? slopes criteria",
    ),
    "outcome decided": (
        "selection events outcome_separation! condition",
        "outcome_separation! all_observed? slopes criteria",
    ),
    "column dropped": (
        "exclusions imr_r2 condition rho rho_test imr_range uncertainty what_if?",
        "dropped_features? kept_out? two_step_errors adjusted_r2",
    ),
    "boundary, ml": (
        "convergence! standard_errors! exclusions?(untested) imr_r2 condition rho!(near one) "
        "rho_test?(untested) rho_lr_test?(untested) hausman?(untested) "
        "equal_variance?(untested) imr_range uncertainty what_if",
        "not_converged! errors_missing! rho_at_bounds! kept_out? rho_scale adjusted_r2",
    ),
    "boundary, probit": (
        "standard_errors! exclusions no_imr condition events? rho!(near one) "
        "rho_test?(untested) rho_lr_test? imr_range",
        "errors_missing! rho_at_bounds! kept_out? rho_scale few_events? slopes criteria",
    ),
    "flat, probit": (
        "standard_errors! exclusions!(none) no_imr condition events rho!(flat) "
        "rho_test?(untested) rho_lr_test? imr_range",
        "errors_missing! rho_at_bounds! no_exclusion! rho_scale slopes criteria",
    ),
    "made from the outcome": (
        "leakage! exclusions imr_r2 condition rho rho_test imr_range uncertainty? what_if",
        "leakage! kept_out? two_step_errors adjusted_r2",
    ),
    "unequal variances": (
        "exclusions imr_r2 condition rho rho_test? rho_lr_test? hausman! equal_variance? "
        "imr_range uncertainty? what_if",
        "hausman! equal_variance? kept_out? rho_scale adjusted_r2",
    ),
    "lower maximum": (
        "exclusions? imr_r2 condition? rho maxima! rho_test? rho_lr_test? hausman "
        "equal_variance imr_range uncertainty? what_if?",
        "second_maximum! kept_out? rho_scale adjusted_r2",
    ),
    "higher maximum": (
        "exclusions?(undriving) imr_r2 condition? rho!(near one) maxima? rho_test? "
        "rho_lr_test? hausman! equal_variance imr_range uncertainty? what_if?",
        "rho_at_bounds! second_maximum? hausman! kept_out? rho_scale adjusted_r2",
    ),
    "two-step of two maxima": (
        "exclusions? imr_r2 condition? rho rho_test imr_range uncertainty? what_if?",
        "kept_out? two_step_errors adjusted_r2",
    ),
    "log": (
        "transform_ratio exclusions imr_r2 condition rho rho_test imr_range uncertainty what_if",
        "kept_out? two_step_errors adjusted_r2 log_scale",
    ),
    "probit": (
        "exclusions no_imr condition events naive_probit rho rho_test rho_lr_test imr_range",
        "kept_out? rho_scale slopes criteria",
    ),
    "probit, no exclusion": (
        "exclusions!(none) no_imr condition events naive_probit rho rho_test rho_lr_test imr_range",
        "no_exclusion! rho_scale slopes criteria",
    ),
    "probit, few events": (
        "exclusions no_imr condition events? naive_probit rho rho_test rho_lr_test imr_range",
        "kept_out? rho_scale few_events? rho_near_boundary? slopes criteria",
    ),
    "average": (
        "less_likely imr_r2 condition rho average? assignment_weight(not drawn) stand_ins "
        "weight_kinds? imr_optional(no sign) all_features_test imr_range uncertainty",
        "average? no_choice imr_optional none_kept_out adjusted_r2 classical_beside",
    ),
    "average, robust": (
        "less_likely imr_r2 condition rho average? assignment_weight(not drawn) "
        "stand_ins weight_kinds? imr_optional(no sign) all_features_test imr_range uncertainty",
        "average? no_choice imr_optional none_kept_out adjusted_r2 classical_beside",
    ),
    "search": (
        "exclusions imr_r2 condition rho rho_test search_ignored? "
        "assignment_weight(not drawn) left_out stand_ins outside_weight weight_kinds? "
        "imr_optional(no sign) all_features_test imr_range uncertainty what_if",
        "search search_ignored? assignment_weight left_out imr_optional kept_out? "
        "two_step_errors adjusted_r2",
    ),
    "search, robust": (
        "exclusions imr_r2 condition rho rho_test search_ignored? "
        "assignment_weight(not drawn) left_out stand_ins outside_weight weight_kinds? "
        "imr_optional(no sign) all_features_test imr_range uncertainty what_if",
        "search search_ignored? assignment_weight left_out imr_optional kept_out? "
        "two_step_errors adjusted_r2 classical_beside",
    ),
    "window": (
        "exclusions imr_r2 condition rho window? search_ignored? assignment_weight?(chosen) "
        "left_out outside_weight weight_kinds? imr_range uncertainty what_if",
        "search? search_ignored? window? assignment_weight? left_out kept_out? "
        "two_step_errors adjusted_r2",
    ),
    "window, ml": (
        "exclusions imr_r2 condition rho hausman equal_variance? window? search_ignored? "
        "assignment_weight?(chosen) left_out outside_weight weight_kinds? imr_range "
        "uncertainty what_if",
        "equal_variance? search? search_ignored? window? assignment_weight? left_out "
        "kept_out? adjusted_r2",
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_every_check_and_caveat_of_a_fit_and_none_more(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = FITS[name]()
    assert said(model) == SAID[name]

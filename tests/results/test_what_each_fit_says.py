"""What each kind of fit is told about itself: every diagnostic and caveat, none more, in order."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanFA, HeckmanProbit
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results.caveats import caveats_of_fit

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
TWO = FEATURES[:2]
MROZ = load_mroz()
X, Y, WORKS = MROZ[FEATURES], MROZ["lwage"], MROZ["lfp"] == 1
PLACES = np.arange(len(MROZ))


def earns(wage):
    """Whether a wage is at least this, unknown where there is none."""
    return (MROZ["wage"] >= wage).astype(object).where(WORKS)


def to_the_boundary():
    """With e = u exactly, the likelihood rises until rho is one."""
    rng = np.random.default_rng(3)
    features, u = rng.normal(size=(300, 2)), rng.normal(size=300)
    return features, np.where(features.sum(axis=1) + u > 0, features[:, 0] + u, np.nan)


def unequal_variances():
    rng = np.random.default_rng(5)
    features, u = rng.normal(size=(1500, 3)), rng.normal(size=1500)
    e = 0.5 * u + (0.3 + np.exp(0.9 * features[:, 0])) * rng.normal(size=1500)
    y = np.where(features.sum(axis=1) + u > 0, features[:, 0] + e, np.nan)
    return pd.DataFrame(features, columns=list("abc")), y


def rare_ones():
    """9 of 199 selected rows are of the positive class: rho goes to one."""
    rng = np.random.default_rng(0)
    features, errors = rng.normal(size=(400, 3)), rng.normal(size=(400, 2))
    errors[:, 1] = 0.9 * errors[:, 0] + np.sqrt(0.19) * errors[:, 1]
    y = (-2.2 + 0.5 * features[:, 0] + errors[:, 1] > 0).astype(float)
    y[features @ [0.5, 0.5, 0.7] + errors[:, 0] <= 0] = np.nan
    return features, y


def flat():
    """One feature in both equations: the likelihood of a Heckman probit is flat in rho."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(400, 1))
    errors = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=400)
    y = (0.6 * features[:, 0] + errors[:, 1] > 0).astype(float)
    y[-0.8 + 0.8 * features[:, 0] + errors[:, 0] <= 0] = np.nan
    return features, y


def greene(**options):
    """Greene's model of wages, whose likelihood has a second maximum at rho 0.993."""
    kids = (MROZ["kids5"] + MROZ["kids618"] > 0) * 1
    rows = MROZ.assign(kids=kids, agesq=MROZ["age"] ** 2)
    who = "age + agesq + faminc + kids + educ"
    return Heckman.from_formula("wage ~ exper + expersq + educ + city", who, rows, **options)


FITS = {
    "two-step": lambda: Heckman(TWO).fit(X, Y),
    "ml": lambda: Heckman(TWO, method="ml").fit(X, Y),
    "ml, robust": lambda: Heckman(TWO, method="ml", cov_type="robust").fit(X, Y),
    "12 clusters": lambda: Heckman(TWO, cov_type="cluster").fit(X, Y, groups=PLACES % 12),
    "60 clusters": lambda: Heckman(TWO, cov_type="cluster").fit(X, Y, groups=PLACES % 60),
    "5 clusters, ml": lambda: Heckman(TWO, method="ml", cov_type="cluster").fit(
        X, Y, groups=PLACES % 5
    ),
    "no exclusion": lambda: Heckman(FEATURES).fit(X, Y),
    "no exclusion, ml": lambda: Heckman(FEATURES, method="ml").fit(X, Y),
    "weak exclusion": lambda: Heckman(["educ"]).fit(MROZ[["educ", "city"]], Y),
    "held": lambda: Heckman(TWO, rho=0.3).fit(X, Y),
    "held, ml": lambda: Heckman(TWO, rho=0.3, method="ml").fit(X, Y),
    "held, no exclusion": lambda: Heckman(FEATURES, rho=0.3).fit(X, Y),
    "held, probit": lambda: HeckmanProbit(TWO, rho=0.3).fit(X, earns(4)),
    "all observed": lambda: Heckman(TWO).fit(X, MROZ["hours"]),
    "all observed, probit": lambda: HeckmanProbit(TWO).fit(X, MROZ["lfp"]),
    "outcome decided": lambda: HeckmanProbit(["educ", "late"]).fit(
        X.assign(late=MROZ["lfp"] * 1.0), MROZ["lfp"]
    ),
    "column dropped": lambda: Heckman(["educ"], on_collinear="drop").fit(
        X.assign(twice=2 * X["age"]), Y
    ),
    "boundary, ml": lambda: Heckman([0], method="ml").fit(*to_the_boundary()),
    "boundary, probit": lambda: HeckmanProbit([0, 1]).fit(*rare_ones()),
    "flat, probit": lambda: HeckmanProbit().fit(*flat()),
    "made from the outcome": lambda: Heckman(["educ", "copy"]).fit(
        X.assign(copy=np.where(WORKS, Y, 1.0) + 0.001 * np.cos(PLACES)), Y
    ),
    "unequal variances": lambda: Heckman(["a", "b"], method="ml").fit(*unequal_variances()),
    "lower maximum": lambda: greene(method="ml"),
    "higher maximum": lambda: greene(method="ml", start=0.99),
    "two-step of two maxima": greene,
    "log": lambda: Heckman(TWO, outcome_transform="log").fit(X, MROZ["wage"].where(WORKS)),
    "probit": lambda: HeckmanProbit(TWO).fit(X, earns(4)),
    "probit, no exclusion": lambda: HeckmanProbit(FEATURES).fit(X, earns(4)),
    "probit, few events": lambda: HeckmanProbit(TWO).fit(X, earns(12)),
    "average": lambda: HeckmanAverage().fit(X, Y),
    "average, robust": lambda: HeckmanAverage(cov_type="robust").fit(X, Y),
    "search": lambda: HeckmanBestSubset().fit(X, Y),
    "search, robust": lambda: HeckmanBestSubset(cov_type="robust").fit(X, Y),
    "window": lambda: HeckmanFA("correlation", rho_range=(-0.9, 0.9)).fit(X, Y),
    "window, ml": lambda: HeckmanFA("correlation", rho_range=(-0.9, 0.9), method="ml").fit(X, Y),
}
MARKS = {"ok": "", "note": "", "caution": "?", "problem": "!"}


def said(model):
    """Return the keys of all checks, then of all caveats, with ? for a caution, ! for a problem."""
    checks = [
        f"{check.key}{MARKS[check.verdict]}{f'({check.case})' if check.case else ''}"
        for check in model.diagnostics().checks()
    ]
    caveats = [f"{caveat.key}{MARKS[caveat.severity]}" for caveat in caveats_of_fit(model.fit_)]
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
        "average? no_choice imr_optional none_kept_out adjusted_r2",
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

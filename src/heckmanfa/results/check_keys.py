"""Which check says what a finding, a caveat or a warning says, so that nothing is said twice."""

from __future__ import annotations

from heckmanfa.errors import (
    AllObservedWarning,
    BinaryOutcomeWarning,
    ConvergenceWarning,
    CovarianceWarning,
    DroppedFeaturesWarning,
    FewClustersWarning,
    FrequencyWeightWarning,
    HeckmanfaWarning,
    LeakageWarning,
    MissingFeaturesWarning,
    NoExclusionWarning,
    RhoOutsideWarning,
    RhoUncertainWarning,
    RowLabelsWarning,
    SearchWarning,
    SecondMaximumWarning,
    TextNumbersWarning,
    UnderdeterminedWarning,
)

CHECK_OF_CAVEAT = {
    "all_observed": "selection",
    "not_converged": "convergence",
    "errors_missing": "standard_errors",
    "few_clusters": "clusters",
    "second_maximum": "maxima",
    "rho_at_bounds": "rho",
    "no_exclusion": "exclusions",
    "weak_exclusions": "exclusions",
    "lambda_collinear": "imr_r2",
    "extrapolated": "outside_range",
    "few_events": "events",
    "assignment_weight": "best_set",
    "bootstrap_search": "best_set",
}
"""Findings and caveats that say what another check says."""

CHECKS_OF_WARNING: dict[type[HeckmanfaWarning], tuple[str, ...]] = {
    AllObservedWarning: ("selection",),
    NoExclusionWarning: ("exclusions", "less_likely"),
    LeakageWarning: ("leakage",),
    BinaryOutcomeWarning: ("binary_outcome",),
    TextNumbersWarning: ("text_numbers",),
    MissingFeaturesWarning: ("rows_lost",),
    UnderdeterminedWarning: ("underdetermined",),
    DroppedFeaturesWarning: ("dropped_features",),
    FrequencyWeightWarning: ("frequency_weights",),
    FewClustersWarning: ("clusters",),
    RowLabelsWarning: ("row_labels",),
    RhoOutsideWarning: ("rho",),
    RhoUncertainWarning: ("rho",),
    SecondMaximumWarning: ("maxima",),
    ConvergenceWarning: ("convergence",),
    SearchWarning: ("search_warning", "search_ended", "sampled", "outside_window", "search"),
    CovarianceWarning: ("covariance", "standard_errors"),
}
"""The checks that say what a warning of the fit says; without any, it becomes the first."""

NO_CHECKS = frozenset(
    {
        *(
            "adjusted_r2",
            "average",
            "classical_beside",
            "criteria",
            "honest",
            "honest_and_all_rows",
        ),
        "honest_fit",
        *("held_criteria", "honest_target", "imr_range", "rho_held"),
        *("honest_window", "kept_out", "naive_probit", "no_choice", "no_imr", "none_kept_out"),
        *("log_scale", "normal_law"),
        *("not_causal", "nothing_searched", "reference_distribution", "rho_near_boundary"),
        *("rho_not_found", "rho_scale", "selected_scores", "slopes"),
        "two_step_errors",
    }
)
"""Findings and caveats that say what an estimate is, and check nothing."""

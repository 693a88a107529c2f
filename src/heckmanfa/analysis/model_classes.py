"""The classes that a model file may hold, and the shapes of their fields.

A class that is not listed here is not made. A field of arrays, positions or values of any type is
declared in `FIELDS`, in the words of `shapes`; other fields need their annotation only.
"""

from __future__ import annotations

import re

MODELS = {
    "Heckman": "heckmanfa.estimators.heckman",
    "HeckmanAverage": "heckmanfa.estimators.averaged",
    "HeckmanBestSubset": "heckmanfa.estimators.searches",
    "HeckmanFA": "heckmanfa.estimators.searches",
    "HeckmanLasso": "heckmanfa.estimators.searches",
    "HeckmanProbit": "heckmanfa.estimators.heckman_probit",
    "HeckmanProbitAverage": "heckmanfa.estimators.averaged",
    "HeckmanProbitBestSubset": "heckmanfa.estimators.probit_searches",
    "InverseProbabilityWeighted": "heckmanfa.estimators.baselines",
    "NaiveOLS": "heckmanfa.estimators.baselines",
    "RURegressor": "heckmanfa.estimators.ru",
}
PARTS = {
    "AllFeatures": "heckmanfa.search.searched",
    "AtanhRho": "heckmanfa.search.form",
    "Average": "heckmanfa.search.averaging.result",
    "AverageOutcome": "heckmanfa.search.averaging.result",
    "BinaryOutcome": "heckmanfa.model.probit_likelihood",
    "Choices": "heckmanfa.search.choices",
    "Coordinates": "heckmanfa.model.linalg",
    "DateScale": "heckmanfa.data.columns.dates",
    "Encoding": "heckmanfa.data.columns.encoding",
    "Equation": "heckmanfa.data.formula.design",
    "ExactRefits": "heckmanfa.search.searched",
    "Fit": "heckmanfa.fit.fitted",
    "FittedColumns": "heckmanfa.data.columns.features",
    "Form": "heckmanfa.search.form",
    "FormulaDesign": "heckmanfa.data.formula.design",
    "Goal": "heckmanfa.search.goal",
    "Honest": "heckmanfa.inference.searching",
    "LikelihoodGuards": "heckmanfa.model.likelihood_guards",
    "Moments": "heckmanfa.model.moments",
    "Network": "heckmanfa.estimators.ru",
    "Origin": "heckmanfa.fit.fitted",
    "OwnScale": "heckmanfa.model.own_scale",
    "Probit": "heckmanfa.model.probit",
    "QuadraticForm": "heckmanfa.search.form",
    "Search": "heckmanfa.search.searched",
    "SearchOutcome": "heckmanfa.search.searched",
    "Spec": "heckmanfa.fit.fitted",
    "Trained": "heckmanfa.search.training.assignment_function",
}

# The most that sizes may be which arrays have twice, or which are not counted by other fields.
MOST = {
    "T": "2 K + 5",
    "P": "2 K + 4",
    "d": "2 K + 5",
    "q": "K + 2",
    "f": "2 K + 1",
    "b": "1 + 2 K/8",
    "s": "3 K + 5",
    "z": "K + 1",
    "j": "K",
}
_DECLARED = """
NaiveOLS: _support [K]; coef_ [K]; sigma_ ~; adjusted_r2_ ~; dropped_features_
InverseProbabilityWeighted: _support [K]; coef_ [K]; sigma_ ~; adjusted_r2_ ~;
    dropped_features_; selection_coef_ [K]; selection_intercept_ ~; max_weight_ ~
RURegressor: _support [K]; loss_ ~
AllFeatures: columns @K >k; coef [1 + k] ~; atanh_rho ~; slopes [k] ~; slope_errors [k] ~
AtanhRho: estimate ~; variance ~; covariance [k] ~; excess ~
Average: rho_range ~; shares [K]; alone [K]; correction_share ~; index_share ~; own_share [K];
    positive [K]; negative [K]; correction_signs ~; free [f]; rho ~; sigma ~; outside ~;
    best_weight ~; leading [N, b]; leading_weight [N] ~; leading_cost [N] ~; leading_rho [N] ~;
    components [C, b]; component_weights [C]; all_features_share ~; correction_excess ~;
    disagreement ~; selection_shares [K]; selection_signs [2, K]
AverageOutcome: two_step_chance ~
BinaryOutcome: independent_log_likelihood ~; naive_coef [z] ~; naive_covariance [z, z] ~;
    mean_slope ~; mean_slope_gradient [z] ~; naive_mean_slope ~; naive_mean_slope_gradient [z]
    ~; separated @K; deciding @K
Choices: n_features =K; always @K; units @K; max_features <=K; min_features <=K
Coordinates: centre [p]; transform [p, p]; mean [p]; scale [p]
Encoding: decimal #4; thousands #4; means ~; level_rows
Equation: transforms; encodings
ExactRefits: approximate [N] ~; log_likelihood [N] ~; coef [N, K] ~; beyond ~;
    full_log_likelihood ~
Fit: dropped @K; support [K]; coef [K]; imr_coef ~; rho ~; sigma ~; selection_coef [K];
    selection_intercept ~; adjusted_r2 ~; aic ~; bic ~; terms >T; covariance [T, T] ~;
    index_range ~; log_likelihood ~; params [P]; atanh_rho ~; log_sigma ~; second_maximum ~;
    rho_scores [s, s]
FittedColumns: labels_given
Form: columns @K >k; selection @K; n_features =K; estimates [d]; covariance [d, d]; mean_delta ~;
    correction_excess ~; searched @K; drivers @K
FormulaDesign: features !; outcome !; selected !; kept !; lost !; factors !; dropped_levels;
    reference
Goal: rho_range ~; units @K
Honest: labels #K; names #K; candidates @K; error_terms >E; estimates [R, K + 1 + E] ~;
    variances [R, K + 1 + E] ~
LikelihoodGuards: two_step ~; difference ~; variance ~; spread [q] ~
Moments: columns @K >k; n_features =K; factor [k + 3, k + 3]; factor_delta [k + 2, k + 2];
    index_range ~
Network: centre [j]; scale [j]; weights [64, j] [64] [64, 64] [64] [1, 64] [1]
Origin: classes -
OwnScale: ratio ~; ratio_error ~; sigma_on [T + 1] ~
Probit: features @K >p; coef [1 + p]; covariance [1 + p, 1 + p] ~; inner_coef [1 + p];
    inner_covariance [1 + p, 1 + p] ~
QuadraticForm: columns @K >k; estimates [k]; covariance [k, k]
Search: packed [N, K/8]; n_columns =K; n_features [N]; rho [N] ~; adjusted_r2 [N] ~; aic [N] ~;
    bic [N] ~; in_range [N]; gap ~; tolerance ~; corrected_bic [N] ~; selection_packed [N, K/8];
    joint_ebic [N] ~
SearchOutcome: candidates @K
Spec: labels #K; selection @K; prediction @K; groups @K; start
Trained: log_pi [2, K] ~; mae ~; path [E, K]; path_epochs [E]; path_mae [E] ~
"""


def _declared() -> dict[str, dict[str, str]]:
    """Read the declarations: a class, and its fields with theirs."""
    entries = re.findall(r"^(\w+): (.*(?:\n .*)*)", _DECLARED, re.MULTILINE)
    fields = {name: [part.split(maxsplit=1) for part in text.split(";")] for name, text in entries}
    return {name: {part[0]: " ".join(part[1:]) for part in parts} for name, parts in fields.items()}


FIELDS = _declared()

"""What the second and the third plan of docs/averaging_study.md compute in a draw.

They ask which intervals cover where AIC intervals did not, when a verdict after maximum likelihood
is to be believed, and how many rows an average needs for each feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from benchmarks.averaging_answers import (
    ROBUST,
    Record,
    Targets,
    excess,
    least_squares,
    public_form,
    rounded,
    targets_of,
    today,
    two_step_form,
    weightings,
)
from benchmarks.averaging_designs import CROWDED, Design, Draw, Truth, design_of, draw, truth_of
from benchmarks.averaging_methods import (
    Assignments,
    Floats,
    Form,
    cdf,
    covered,
    enumerate_all,
    quantile_width,
)
from heckmanfa import Heckman, HeckmanBestSubset, HeckmanLasso, HeckmanProbit, compress

KINDS = ("aic", "half", "bic")
SHARES = {"0": 0.0, "1/4": 0.25, "1/2": 0.5}
"""what the model with everything in it gets of an interval's weight"""
CHANCE = "bic index"
LARGEST_RHO = 0.98
WIDTH_DRAWS = 3
COMPARED = tuple(f"{kind} {mode}" for kind in KINDS for mode in ("always", "index", "never"))


def answer(name: str, number: int) -> Record:
    """Compute everything about a draw."""
    design, truth, data = design_of(name), truth_of(name), draw(name, number)
    record: Record = {"selected": int((~np.isnan(data.y)).sum()), "errors": {}}
    if design.method == "two-step":
        form, targets = _in_two_steps(design, truth, data, record)
    else:
        form = public_form(design, truth, data, "classical")
        targets = targets_of(design, truth, form, float(np.arctanh(design.rho)))
        if design.outcome == "linear":
            record["rules"] = _rules(design, truth, data)
    found = enumerate_all(form, targets.functions)
    weights = weightings(form, found)
    if design.method == "ml":
        weights["bounded"] = bounded_weights(design, truth, data, form, found)
        record["bounded"] = round(float(weights["bounded"] @ found.correction), 5)
        record["errors"]["bounded"] = excess(truth, weights["bounded"] @ found.estimates)
    record["correction"] = round(float(weights[CHANCE] @ found.correction), 5)
    record["predicts"] = rounded(
        weights[CHANCE] @ (found.kept[:, : form.index_units] | found.index[:, None])
    )
    for method in (*COMPARED, "all features"):
        record["errors"][method] = excess(truth, weights[method] @ found.estimates)
    record |= _intervals(truth, found, weights, targets, number < WIDTH_DRAWS)
    if design.part == CROWDED:
        record["errors"] |= _crowded(truth, data)
    return record


def _in_two_steps(design: Design, truth: Truth, data: Draw, record: Record) -> tuple[Form, Targets]:
    compressed = compress(data.X, data.y)
    form = (
        public_form(design, truth, data, "cluster")
        if design.clustered
        else two_step_form(design, truth, compressed, ROBUST)
    )
    everything = np.isin(np.arange(data.X.shape[1]), truth.candidates)
    moments = compressed.moments
    variance = float(moments.solve(everything).sse) / moments.n_selected
    rho_at = design.rho * np.sqrt(variance / (1.0 - design.rho**2 * moments.mean_delta))
    targets = targets_of(design, truth, form, float(rho_at))
    record["errors"]["least squares"] = least_squares(truth, compressed)
    if design.part != CROWDED:
        record["errors"] |= today(truth, compressed, data, targets)["errors"]
    return form, targets


def _intervals(
    truth: Truth,
    found: Assignments,
    weights: dict[str, Floats],
    targets: Targets,
    widths: bool,
) -> Record:
    """What the candidates for intervals cover, and how wide they are."""
    parts = cdf(found.values, found.errors, targets.truth)
    k, alone = len(truth.candidates), weights["all features"]
    record: Record = {"tallies": {}, "outside": {}, "widths": {}}
    mean = (weights["bic index"] @ found.estimates)[1 : k + 1]
    inner = cdf(found.values[:, :k], found.errors[:, :k], mean)
    averages = {kind: weights[f"{kind} index"] for kind in KINDS}
    averages |= {name: weights[name] for name in ("bounded",) if name in weights}
    for kind, own in averages.items():
        for label, share in SHARES.items():
            weight = (1.0 - share) * own + share * alone
            name = f"{kind} {label}"
            record["tallies"][name] = targets.tally(covered(weight, parts))
            record["outside"][name] = int((~covered(weight, inner)).sum())
            if widths:
                wide = quantile_width(weight, found.values[:, :k], found.errors[:, :k])
                record["widths"][name] = wide.tolist()
    record["tallies"]["all features"] = targets.tally(covered(alone, parts))
    if widths:
        full = found.errors[np.argmax(alone), :k]
        record["widths"]["all features"] = (2 * stats.norm.ppf(0.975) * full).tolist()
    return record


def bounded_weights(
    design: Design, truth: Truth, data: Draw, form: Form, found: Assignments
) -> Floats:
    """BIC weights in which dropping the correction costs the likelihood ratio of everything.

    No assignment puts rho closer to its bounds than .98, or than the model of everything does.
    """
    ends = []
    for options in ({}, {"rho": 0.0}):
        model: Any = (
            HeckmanProbit(truth.candidates, **options)
            if design.outcome == "binary"
            else Heckman(truth.candidates, method="ml", **options)
        )
        ends.append(float(model.fit(data.X, data.y).log_likelihood_))
    at = form.correction
    wald = form.estimates[at] ** 2 / form.covariance[at, at]
    odds = float(np.exp(0.5 * (max(2.0 * (ends[0] - ends[1]), 0.0) - wald)))
    rho = np.abs(np.tanh(found.estimates[:, at]))
    among = ~found.correction | (rho <= max(LARGEST_RHO, abs(np.tanh(form.estimates[at]))))
    return found.weights(form.penalty("bic"), among, odds)


def _rules(design: Design, truth: Truth, data: Draw) -> Record:
    """What the rules for verdicts after maximum likelihood look at."""
    model = Heckman(truth.candidates, method="ml").fit(data.X, data.y)
    diagnostics = model.diagnostics()
    tests: dict[str, Any] = {
        "hausman": diagnostics.hausman,
        "equal_variance": diagnostics.equal_variance,
    }
    record: Record = {
        name: None if test is None or np.isnan(test.p_value) else round(test.p_value, 6)
        for name, test in tests.items()
    }
    form = two_step_form(design, truth, compress(data.X, data.y), ROBUST)
    found = enumerate_all(form, np.eye(len(form.estimates))[:1])
    weight = weightings(form, found)[CHANCE]
    record["two-step"] = round(float(weight @ found.correction), 5)
    return record


def _crowded(truth: Truth, data: Draw) -> Record:
    """Errors of what could be advised where an average is refused; absent if it refuses too."""
    errors: Record = {}
    for name, model in (("best subset", HeckmanBestSubset()), ("lasso", HeckmanLasso())):
        try:
            model.fit(data.X, data.y)
        except Exception:
            continue
        errors[name] = float(f"{truth.excess(float(model.intercept_), model.coef_):.6g}")
    return errors

"""What docs/averaging_study.md computes in a single draw: fits, methods, and how right they are.

`answer` takes a design's name and the number of a draw, and returns figures that JSON can hold. It
depends on nothing that was computed before, so draws may be split over processes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.averaging_designs import LARGE, SEED, Design, Draw, Truth, design_of, draw, truth_of
from benchmarks.averaging_methods import (
    KINDS,
    ODDS,
    Assignments,
    Floats,
    Form,
    Mask,
    cdf,
    covered,
    enumerate_all,
    masked_inverse,
    quantile_width,
    sample,
)
from heckmanfa import Heckman, HeckmanProbit, compress
from heckmanfa.model.compressed import Compressed
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.two_step import LARGEST_RHO, fit_least_squares, fit_two_step

WIDTH_DRAWS = 10
MODES = ("always", "optional", "index", "never")
# A fit whose rho is beyond this has no covariance to speak of.
MOST_RHO = 0.9995
ROBUST = CovarianceKind("robust", False, 0)
Record = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Targets:
    """What intervals are to cover: coefficients, the correction, rho, expectations."""

    functions: Floats
    """(q, p)"""
    truth: Floats
    """(q,)"""
    kinds: tuple[str, ...]
    """of each: nonzero, zero, correction, rho or expectation"""

    def tally(self, inside: Mask) -> dict[str, list[int]]:
        """Count targets that are covered, and targets, by kind."""
        kinds = np.array(self.kinds)
        return {
            kind: [int(inside[kinds == kind].sum()), int((kinds == kind).sum())]
            for kind in dict.fromkeys(self.kinds)
        }


def targets_of(design: Design, truth: Truth, form: Form, rho_at: float) -> Targets:
    k = len(truth.candidates)
    p = len(form.estimates)
    coef = truth.coef[truth.candidates]
    points = truth.points[:, truth.candidates]
    functions = np.zeros((k + 2 + len(points), p))
    functions[:k, 1 : k + 1] = np.eye(k)
    functions[k : k + 2, form.correction] = 1.0
    functions[k + 2 :, 0] = 1.0
    functions[k + 2 :, 1 : k + 1] = points
    correction = design.rho if design.method == "two-step" else np.arctanh(design.rho)
    kinds = ["nonzero" if value else "zero" for value in coef]
    return Targets(
        functions,
        np.concatenate([coef, [correction, rho_at], truth.intercept + points @ coef]),
        (*kinds, "correction", "rho", *["expectation"] * len(points)),
    )


def _form(
    design: Design, truth: Truth, estimates: Floats, covariance: Floats, pull: Floats, rows: float
) -> Form:
    """Order: intercept, candidates, the selection equation if it is searched, the correction."""
    k, p = len(truth.candidates), len(estimates)
    places = {column: place for place, column in enumerate(truth.candidates, start=1)}
    units = [tuple(places[column] for column in unit) for unit in truth.units]
    direction = np.zeros(p)
    direction[1 : k + 1] = pull[truth.candidates]
    if design.both:
        units += [(k + 2 + place,) for place in range(k)]
    return Form(
        estimates=estimates,
        covariance=covariance,
        units=tuple(units),
        index_units=len(truth.units),
        correction=p - 1,
        direction=direction,
        rows=rows,
    )


def public_form(design: Design, truth: Truth, data: Draw, cov_type: str) -> Form:
    """Fit by the public classes, and read the estimates and their covariance."""
    settings: Record = {
        "prediction_features": truth.candidates,
        "cov_type": None if cov_type == "classical" else cov_type,
    }
    if design.outcome == "binary":
        model: Any = HeckmanProbit(**settings)
    else:
        model = Heckman(method="ml" if design.method == "ml" else "two-step", **settings)
    if cov_type == "cluster":
        model.fit(data.X, data.y, groups=data.groups)
    else:
        model.fit(data.X, data.y)
    table = model.vcov()
    names = [f"x{column}" for column in truth.candidates]
    labels = [("prediction", "Intercept"), *(("prediction", name) for name in names)]
    estimates = [model.intercept_, *model.coef_[truth.candidates]]
    if design.both:
        labels += [("selection", "Intercept"), *(("selection", name) for name in names)]
        estimates += [model.selection_intercept_, *model.selection_coef_[truth.candidates]]
    ml = design.method == "ml"
    labels.append(("errors", "rho" if ml else "imr"))
    covariance = table.loc[labels, labels].to_numpy(dtype=np.float64).copy()
    if ml:
        rho = float(model.rho_)
        if abs(rho) > MOST_RHO:
            raise ArithmeticError("rho at its bound")
        covariance[-1] /= 1.0 - rho**2
        covariance[:, -1] /= 1.0 - rho**2
        estimates.append(np.arctanh(rho))
    else:
        estimates.append(model.imr_coef_)
    if not np.isfinite(covariance).all() or np.linalg.eigvalsh(covariance).min() <= 0:
        raise ArithmeticError("the covariance is not positive definite")
    rows = float(model.n_obs_ if design.both else model.n_selected_)
    return _form(
        design, truth, np.array(estimates), covariance, np.asarray(model.selection_coef_), rows
    )


def two_step_form(
    design: Design, truth: Truth, compressed: Compressed, kind: CovarianceKind
) -> Form:
    """Fit all features in two steps; in the classical covariance |beta_H| is at most .98 sigma."""
    moments, probit = compressed.moments, compressed.probit
    fitted = fit_two_step(
        moments, probit, truth.candidates, kind, compressed.rows, largest_rho=LARGEST_RHO
    )
    p = len(fitted.coef)
    # `candidates` ascend, as the features of a fit do.
    covariance = np.asarray(fitted.covariance[:p, :p])
    pull = np.asarray(probit.coef[1:])
    return _form(design, truth, fitted.coef, covariance, pull, moments.n_selected)


def weightings(form: Form, found: Assignments) -> dict[str, Floats]:
    """Return the weights of every method that averages the assignments of a form."""
    every = np.full(len(found.cost), True)
    among = {
        "always": found.correction & ~found.index,
        "optional": ~found.index,
        "index": every,
        "never": ~found.correction & ~found.index,
    }
    weights: dict[str, Floats] = {}
    for kind in KINDS:
        for mode, mask in among.items():
            weights[f"{kind} {mode}"] = found.weights(form.penalty(kind), mask)
        weights[f"{kind} 3:1"] = found.weights(form.penalty(kind), every, ODDS)
    for mode in (*MODES, "3:1"):
        weights[f"half {mode}"] = 0.5 * (weights[f"aic {mode}"] + weights[f"bic {mode}"])
    alone = (found.kept.all(axis=1) & found.correction & ~found.index).astype(np.float64)
    weights["all features"] = alone
    weights["half all features"] = 0.5 * (alone + weights["aic index"])
    return weights


def _of_form(design: Design, truth: Truth, form: Form, targets: Targets, widths: bool) -> Record:
    """Figures of all methods that average by one form."""
    found = enumerate_all(form, targets.functions)
    weights = weightings(form, found)
    parts = cdf(found.values, found.errors, targets.truth)
    k = len(truth.candidates)
    own_units = found.kept[:, : form.index_units]
    record: Record = {"errors": {}, "tallies": {}, "correction": {}, "index": {}}
    means = {}
    for name, weight in weights.items():
        mean = weight @ found.estimates
        means[name] = mean
        record["errors"][name] = excess(truth, mean)
        record["tallies"][name] = targets.tally(covered(weight, parts))
        record["correction"][name] = round(float(weight @ found.correction), 5)
        record["index"][name] = round(float(weight @ found.index), 5)
    at = form.correction
    spread = np.sqrt(form.covariance[at, at])
    record["z"] = float(form.estimates[at] / spread)
    chances = {}
    for name in ("aic index", "bic index", "half index", "aic 3:1", "bic 3:1", "aic optional"):
        weight = weights[name]
        chances[name] = {
            "own": rounded(weight @ found.kept),
            "any": rounded(weight @ (own_units | found.index[:, None])),
        }
    record["chances"] = chances
    record["outside"] = {}
    for name in ("bic index", "half index"):
        inner = cdf(found.values[:, :k], found.errors[:, :k], means[name][1 : k + 1])
        record["outside"][name] = int((~covered(weights["aic index"], inner)).sum())
    record["best"] = {
        mode: _best(design, truth, form, found, mode) for mode in ("index", "optional", "always")
    }
    if widths:
        record["widths"] = {
            name: quantile_width(weights[name], found.values[:, :k], found.errors[:, :k]).tolist()
            for name in ("aic index", "bic index", "half index", "half all features")
        }
        full = 2 * stats.norm.ppf(0.975) * np.sqrt(np.diag(form.covariance)[1 : k + 1])
        record["widths"]["all features"] = full.tolist()
    return record


def _best(design: Design, truth: Truth, form: Form, found: Assignments, mode: str) -> Record:
    """Whether the best assignment by BIC is right."""
    mask = found.correction if mode == "always" else np.full(len(found.cost), True)
    mask = mask if mode == "index" else mask & ~found.index
    best = int(np.argmax(found.weights(form.penalty("bic"), mask)))
    kept = found.kept[best, : form.index_units] | found.index[best]
    predicts = np.array([bool(truth.coef[list(unit)].any()) for unit in truth.units])
    right: Record = {
        "prediction": bool((kept == predicts).all()),
        "correction": bool(found.correction[best] == (design.rho != 0)),
        "index": bool(found.index[best]),
    }
    if design.both:
        drives = truth.selection[truth.candidates] != 0
        right["selection"] = bool((found.kept[best, form.index_units :] == drives).all())
    return right


def rounded(values: Floats) -> list[float]:
    return [round(float(value), 5) for value in values]


def excess(truth: Truth, mean: Floats) -> float:
    coef = np.zeros(len(truth.coef))
    k = len(truth.candidates)
    coef[truth.candidates] = mean[1 : k + 1]
    return float(f"{truth.excess(float(mean[0]), coef):.6g}")


def today(truth: Truth, compressed: Compressed, data: Draw, targets: Targets) -> Record:
    """Averages with lambda in every assignment, by exact criteria and refits."""
    moments, probit = compressed.moments, compressed.probit
    U, K, m = len(truth.units), data.X.shape[1], moments.n_selected
    units = ((np.arange(2**U)[:, None] >> np.arange(U)) & 1).astype(bool)
    masks = np.zeros((len(units), K), dtype=bool)
    for unit, columns in enumerate(truth.units):
        masks[:, list(columns)] = units[:, unit, None]
    solved = moments.solve(masks)
    J = masks.sum(axis=1)
    allowed = solved.feasible & (m / 3 >= J) & (m - J - 3 > 0)
    fit = m * np.log(np.where(allowed, solved.sse, 1.0) / m)
    small = 2.0 * (J + 2) * m / np.where(allowed, m - J - 3, 1.0)
    weights = {}
    for kind, score in (("aic", fit + small), ("bic", fit + (J + 2) * np.log(m))):
        score = np.where(allowed, score, np.inf)
        weight = np.exp(-0.5 * (score - score.min()))
        weights[kind] = weight / weight.sum()
    own = truth.candidates
    estimates = np.nan_to_num(
        np.column_stack([solved.intercept, solved.coef[:, own], solved.imr_coef])
    )
    covariance = _assignment_covariances(truth, probit, data, masks, solved)
    values = estimates @ targets.functions.T
    inner = np.einsum("qi,nij,qj->nq", targets.functions, covariance, targets.functions)
    errors = np.sqrt(np.maximum(inner, 0.0))
    parts = cdf(values, errors, targets.truth)
    z = np.abs(estimates[:, -1]) / np.sqrt(np.maximum(covariance[:, -1, -1], 1e-300))
    share = float(weights["bic"] @ (z > stats.norm.ppf(0.975)))
    at = targets.kinds.index("correction")
    zero = cdf(values[:, [at]], errors[:, [at]], np.zeros(1))
    away = not covered(weights["aic"], zero)[0]
    record: Record = {"rejects": round(share, 5), "yes": bool(share >= 0.9 and away)}
    names = {"aic": "today aic", "bic": "today bic"}
    record["errors"] = {
        names[kind]: excess(truth, weight @ estimates) for kind, weight in weights.items()
    }
    record["tallies"] = {
        names[kind]: targets.tally(covered(weight, parts)) for kind, weight in weights.items()
    }
    predicts = np.array([bool(truth.coef[list(unit)].any()) for unit in truth.units])
    best = units[int(np.argmax(weights["bic"]))]
    record["best"] = bool((best == predicts).all())
    return record


def _assignment_covariances(
    truth: Truth, probit: Any, data: Draw, masks: Mask, solved: Any
) -> Floats:
    """Heckman's covariance of every assignment, (N, k + 2, k + 2), with zeros where it drops."""
    selected = ~np.isnan(data.y)
    own = truth.candidates
    Z = np.column_stack([np.ones(selected.sum()), data.X[selected]])
    index = Z @ probit.coef
    mills = np.exp(stats.norm.logpdf(index) - stats.norm.logcdf(index))
    delta = mills * (mills + index)
    W = np.column_stack([np.ones(len(Z)), data.X[selected][:, own], mills])
    scale = np.sqrt((W**2).sum(axis=0))
    W = W / scale
    held = np.column_stack([np.ones(len(masks)), masks[:, own], np.ones(len(masks))]).astype(bool)
    inverse = masked_inverse(W.T @ W, held)
    across = (W * delta[:, None]).T @ Z
    first_step = across @ probit.covariance @ across.T
    sigma = np.nan_to_num(np.asarray(solved.sigma))
    most = LARGEST_RHO * sigma
    beta_h = np.clip(np.nan_to_num(solved.imr_coef), -most, most)
    middle = first_step - (W * delta[:, None]).T @ W
    covariance = sigma[:, None, None] ** 2 * inverse
    covariance += (beta_h**2)[:, None, None] * (inverse @ middle @ inverse)
    return np.asarray(covariance / scale / scale[:, None])


def least_squares(truth: Truth, compressed: Compressed) -> float:
    fitted = fit_least_squares(compressed.moments, truth.candidates)
    return excess(truth, np.asarray(fitted.coef))


def full_form(name: str, number: int, cov_type: str = "classical") -> Form:
    """Return the estimates of everything in a draw, and their covariance."""
    return public_form(design_of(name), truth_of(name), draw(name, number), cov_type)


def answer(name: str, number: int) -> Record:
    """Compute everything about a draw."""
    design, truth, data = design_of(name), truth_of(name), draw(name, number)
    if design.part == LARGE:
        return _large(name, number)
    record: Record = {"selected": int((~np.isnan(data.y)).sum())}
    if design.method == "two-step":
        compressed = compress(data.X, data.y)
        moments = compressed.moments
        forms = {"classical": two_step_form(design, truth, compressed, CLASSICAL)}
        forms["robust"] = (
            public_form(design, truth, data, "cluster")
            if design.clustered
            else two_step_form(design, truth, compressed, ROBUST)
        )
        everything = np.isin(np.arange(data.X.shape[1]), truth.candidates)
        variance = float(moments.solve(everything).sse) / moments.n_selected
        rho_at = design.rho * np.sqrt(variance / (1.0 - design.rho**2 * moments.mean_delta))
        targets = targets_of(design, truth, forms["classical"], float(rho_at))
        record["today"] = today(truth, compressed, data, targets)
        record["least squares"] = least_squares(truth, compressed)
    else:
        forms = {kind: public_form(design, truth, data, kind) for kind in ("classical", "robust")}
        targets = targets_of(design, truth, forms["classical"], float(np.arctanh(design.rho)))
    for kind, form in forms.items():
        record[kind] = _of_form(design, truth, form, targets, number < WIDTH_DRAWS)
    return record


def _large(name: str, number: int) -> Record:
    """Sampled averages, by the robust form."""
    design, truth, data = design_of(name), truth_of(name), draw(name, number)
    compressed = compress(data.X, data.y)
    form = two_step_form(design, truth, compressed, ROBUST)
    targets = targets_of(design, truth, form, design.rho)
    sampled = sample(form, targets.functions, [SEED, zlib.crc32(name.encode()), number, 1])
    mine: Record = {"errors": {}, "tallies": {}, "correction": {}, "index": {}, "chances": {}}
    for mode in ("always", "index"):
        both = [sampled[kind, mode] for kind in KINDS]
        for kind in ("aic", "bic", "half"):
            used = both if kind == "half" else [sampled[kind, mode]]
            values = np.concatenate([one.values for one in used])
            errors = np.concatenate([one.errors for one in used])
            label = f"{kind} {mode}"
            parts = cdf(values, errors, targets.truth)
            even = np.full(len(values), 1.0 / len(values))
            mine["tallies"][label] = targets.tally(covered(even, parts))
            mean = np.mean([one.estimates for one in used], axis=0)
            mine["errors"][label] = excess(truth, mean)
            mine["correction"][label] = round(float(np.mean([one.correction for one in used])), 5)
            mine["index"][label] = round(float(np.mean([one.index for one in used])), 5)
            if mode == "index":
                mine["chances"][label] = {
                    "own": rounded(np.mean([one.own for one in used], axis=0)),
                    "any": rounded(np.mean([one.any for one in used], axis=0)),
                }
    spread = np.sqrt(
        np.einsum("qi,ij,qj->q", targets.functions, form.covariance, targets.functions)
    )
    parts = cdf((targets.functions @ form.estimates)[None], spread[None], targets.truth)
    mine["tallies"]["all features"] = targets.tally(covered(np.ones(1), parts))
    mine["errors"]["all features"] = excess(truth, form.estimates)
    mine["z"] = float(form.estimates[-1] / np.sqrt(form.covariance[-1, -1]))
    return {
        "selected": int((~np.isnan(data.y)).sum()),
        "robust": mine,
        "least squares": least_squares(truth, compressed),
        "disagreement": max(one.disagreement for one in sampled.values()),
    }

"""What the plan of docs/averaging_study.md said would contradict the defaults, checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.averaging_designs import COLUMNS, DESIGNS, RECOVERY
from benchmarks.averaging_figures import (
    AVERAGES,
    CHOSEN,
    METHODS,
    NORMAL,
    Draws,
    Floats,
    by_class,
    calibrated,
    calibration,
    class_ratios,
    column_regrets,
    digits,
    errors,
    exact,
    geometric,
    label,
    mean_ratio,
    percent,
    points,
    pooled,
    refits,
    regrets,
    tally,
)


@dataclass(frozen=True)
class Verdict:
    """A statement of the plan, whether it holds, and the figures behind that."""

    statement: str
    holds: bool
    figures: str


def verdicts(main: Draws) -> list[Verdict]:
    """Check every statement of the plan that has its draws."""
    found: list[Verdict] = []
    names = [name for names in by_class(main).values() for name in names]
    if names:
        found += _about_errors(main, names)
    if any(name in main for name in NORMAL):
        found += _about_intervals(main)
    found += _about_chances(main)
    if all(name in main for name in RECOVERY):
        found += _about_recovery(main)
    if all(name in main for name in COLUMNS):
        worst = {key: one[0].value for key, one in column_regrets(main).items()}
        product = worst.pop("small-sample AIC, J up to m/3 weights")
        plain = worst["AIC weights"]
        others = ("small-sample AIC weights", "AIC, J up to m/3 weights")
        found.append(
            Verdict(
                "The small-sample term and the limit of m/3 columns",
                all(product <= worst[key] * 1.001 for key in ("AIC weights", *others)),
                f"largest regret {digits(product)}, of plain AIC weights {digits(plain)}, "
                f"without the limit {digits(worst[others[0]])}, "
                f"without the term {digits(worst[others[1]])}",
            )
        )
    return found


def _about_errors(main: Draws, names: list[str]) -> list[Verdict]:
    worst = regrets(main, names, METHODS)
    aic = worst["aic weights"][0]
    smaller = [
        kind
        for kind in AVERAGES
        if worst[kind][0].value < 0.9 * aic.value
        and np.log(aic.value / worst[kind][0].value) > 2 * np.hypot(aic.error, worst[kind][0].error)
    ]
    beaten = [kind for kind in smaller if _covers_no_worse(main, kind.split()[0])]
    words = ", ".join(f"{kind.split()[0]} {worst[kind][0]}" for kind in AVERAGES)
    against = {
        name: mean_ratio(found["bic weights"], found[CHOSEN])
        for name in names
        for found in [errors(main[name])]
    }
    clear = [name for name, one in against.items() if one.value > 1.05 and one.above_one > 2]
    better = sum(one.value < 1 for one in against.values())
    top = max(against, key=lambda name: against[name].value)
    verdicts = [
        Verdict("AIC weights as the default, by regret", not beaten, f"largest regrets: {words}"),
        Verdict(
            "BIC weights are never clearly worse than choosing by BIC",
            not clear,
            f"better in {better} of {len(against)} designs; at worst {against[top]} "
            f"({DESIGNS[top].kind}: {DESIGNS[top].words})",
        ),
    ]
    for kind, method in (("few", "ebic weights"), ("many", "all, ML")):
        table = class_ratios(main, by_class(main).get(kind, []), mean_ratio)
        if table:
            best = min(METHODS, key=lambda one: table[one].value)
            verdicts.append(
                Verdict(
                    f"{label(method)} is best in the class '{kind}'",
                    best == method,
                    f"{label(best)} {table[best]}, {label(method)} {table[method]}",
                )
            )
    return [*verdicts, *_about_refits(main, names)]


def _about_refits(main: Draws, names: list[str]) -> list[Verdict]:
    normal = refits(main, [name for name in names if DESIGNS[name].errors == "normal"])
    skewed = refits(main, [name for name in names if DESIGNS[name].errors == "skewed"])
    if not normal or not skewed:
        return []
    better = sum(one.value < 1 for one in normal.values())
    words = ", ".join(str(one) for one in skewed.values())
    return [
        Verdict(
            "ML refits are better with normal errors and worse with skewed ones",
            geometric(list(normal.values())).value < 1
            and all(one.value > 1 for one in skewed.values()),
            f"better in {better} of {len(normal)} designs with normal errors (geometric mean "
            f"{geometric(list(normal.values()))}); with skewed errors {words} times the error",
        )
    ]


def _covers_no_worse(main: Draws, kind: str) -> bool:
    draws = pooled(main, NORMAL)
    for size in ("strong", "weak"):
        one, aic = tally(draws, f"{kind} mixture", size), tally(draws, "aic mixture", size)
        if one is None or aic is None or one.share < aic.share - 0.01:
            return False
    return True


def _about_intervals(main: Draws) -> list[Verdict]:
    draws = pooled(main, NORMAL)

    def share(method: str, kind: str) -> float:
        one = tally(draws, method, kind)
        assert one is not None
        return one.share

    def width(method: str, kind: str) -> float:
        one = tally(draws, method, kind)
        assert one is not None
        return one.width

    strong, weak = share("aic mixture", "strong"), share("aic mixture", "weak")
    others = [f"{kind} mixture" for kind in ("bic", "ebic", "mean")]
    low = strong < 0.92 or weak < 0.88
    higher = any(share(one, "strong") > strong and share(one, "weak") > weak for one in others)
    normal = share("aic mean and sd", "weak"), width("aic mean and sd", "weak")
    words = f"strong {percent(strong)}, weak {percent(weak)}"
    return [
        Verdict("AIC weights as the default, by coverage", not (low and higher), words),
        Verdict(
            "Coverage of about 90 to 95%",
            all(0.89 <= one <= 0.96 for one in (strong, weak)),
            words,
        ),
        Verdict(
            "Quantiles of the mixture, not mean ± 1.96 sd",
            not (normal[0] >= weak and normal[1] <= width("aic mixture", "weak")),
            f"weak coefficients: {percent(weak)} against {percent(normal[0])}, width ratio "
            f"{digits(width('aic mixture', 'weak') / normal[1])}",
        ),
    ]


def _about_chances(main: Draws) -> list[Verdict]:
    found = {
        rows: one
        for rows in (500, 2000)
        if (one := calibration(main, calibrated(rows, normal=True))) is not None
    }
    if not found:
        return []
    above = ", ".join(f"{percent(one.above_predict)} (n = {n:,})" for n, one in found.items())
    below = ", ".join(f"{percent(one.below_predict)} (n = {n:,})" for n, one in found.items())
    return [
        Verdict(
            "The cut at 90%",
            all(one.above_predict >= 0.9 for one in found.values()),
            f"of the features above it predict {above}",
        ),
        Verdict(
            "'No sign that it predicts' below 10%",
            all(one.below_predict <= 1 / 3 for one in found.values()),
            f"of the features below it predict {below}",
        ),
    ]


def _about_recovery(main: Draws) -> list[Verdict]:
    gains = {name: exact(main[name], "ebic") - exact(main[name], "bic") for name in RECOVERY}
    many = [name for name in RECOVERY if RECOVERY[name].features >= 40]
    few = [name for name in RECOVERY if RECOVERY[name].features <= 20]

    def loses(gain: Floats) -> bool:
        return bool(gain.mean() < -2 * gain.std(ddof=1) / np.sqrt(len(gain)))

    worst = min(few, key=lambda name: gains[name].mean())
    rho = [name for name in RECOVERY if abs(RECOVERY[name].rho) >= 0.8]
    other = [name for name in RECOVERY if RECOVERY[name].kind == "middling"]
    corrected = {
        name: (exact(main[name], "corrected_bic") - exact(main[name], "bic")).mean()
        for name in (*rho, *other)
    }
    gained = ", ".join(points(corrected[name]) for name in rho)
    lost = ", ".join(points(corrected[name]) for name in other)
    return [
        Verdict(
            "EBIC to find the exact set with many features",
            all(gains[name].mean() >= 0.1 for name in many)
            and not any(loses(gains[name]) for name in few),
            f"K = 40: {', '.join(points(gains[name].mean()) for name in many)}; "
            f"at worst, K ≤ 20: {points(gains[worst].mean())} points ({RECOVERY[worst].words})",
        ),
        Verdict(
            "Corrected BIC gains at rho = ±0.8 with sparse truth",
            all(corrected[name] > 0 for name in rho),
            f"{gained} points there; {lost} with middling coefficients",
        ),
    ]

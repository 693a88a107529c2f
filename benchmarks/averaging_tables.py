"""The tables of docs/averaging_study.md, from the draws that `benchmarks.averaging_study` made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.averaging_designs import (
    BOOTSTRAP_DRAWS,
    COLUMNS,
    COVERAGE,
    DESIGNS,
    EXCESS,
    RECOVERY,
    REPLICATES,
    SEED,
)
from benchmarks.averaging_figures import (
    METHODS,
    NORMAL,
    Draws,
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
    median_ratio,
    percent,
    points,
    pooled,
    read,
    refits,
    regrets,
    tally,
)
from benchmarks.averaging_verdicts import verdicts

PAGE = Path(__file__).resolve().parents[1] / "docs" / "averaging_study.md"
BEGIN = "<!-- figures: made by `python -m benchmarks.averaging_study` -->"
END = "<!-- end of figures -->"
CLASSES = {
    "few": "few strong predictors",
    "mixed": "strong and weak mixed",
    "many": "many middling or all predict",
    "errors": "other errors",
    "groups": "categorical groups",
    "excluded": "one known exclusion",
    "K = 30": "K = 30",
    "K = 100": "K = 100",
}
INTERVALS = {
    "chosen": "chosen model's own",
    "chosen, if chosen": "the same, of chosen features only",
    "aic mixture": "mixture, AIC weights",
    "bic mixture": "mixture, BIC weights",
    "ebic mixture": "mixture, EBIC weights",
    "mean mixture": "mixture, mean weights",
    "aic mixture, robust": "mixture, AIC weights, robust",
    "aic mean and sd": "AIC weights, mean ± 1.96 sd",
    "bootstrap": "bootstrap, BIC inside",
    "all features": "all features, two-step",
    "all features, robust": "all features, robust",
    "true features": "true features, two-step",
}


def write(path: Path, text: str) -> None:
    """Replace the figures of the page and leave its other text alone."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    before = before.rstrip("\n")
    path.write_text(f"{before}\n\n{BEGIN}\n\n{text}\n{END}\n{after.lstrip()}", encoding="utf-8")


def page(folders: Sequence[Path]) -> str:
    """Return every table that has its draws."""
    main, bootstrap, failed = read(folders)
    parts = [
        _head(main, failed),
        _verdicts(main),
        _classes(main),
        _regrets(main),
        _refits(main),
        _coverage(main, bootstrap),
        _recovery(main),
        _calibration(main),
        _columns(main),
        _designs(main),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Format a table whose first columns hold words, and the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _head(main: Draws, failed: dict[str, int]) -> str:
    done = sum(len(draws) for draws in main.values())
    planned = sum(design.draws for design in DESIGNS.values())
    short = {
        name: len(main.get(name, [])) / design.draws
        for name, design in DESIGNS.items()
        if len(main.get(name, [])) + failed.get(name, 0) < design.draws
    }
    text = f"{done:,} draws of {planned:,} planned; seed {SEED}."
    if short:
        low, high = min(short.values()), max(short.values())
        text += f" {len(short)} designs have fewer draws, {low:.0%} to {high:.0%} of the plan."
    if failed:
        words = "; ".join(f"{name}: {count}" for name, count in failed.items())
        text += f" Left out because a method could not be fitted: {words}."
    chains = [
        value
        for name in EXCESS
        for one in main.get(name, [])
        if not one["exhaustive"]
        for value in one["disagreement"].values()
        if value is not None
    ]
    if chains:
        over = np.mean(np.array(chains) > 0.01)
        text += (
            f" With K = 30 and 100 the averages are sampled: chains disagree by more than 0.01 in "
            f"{percent(float(over))} of them, by {max(chains):.3f} at most."
        )
    return "## The results\n\n" + text


def _verdicts(main: Draws) -> str:
    found = verdicts(main)
    if not found:
        return ""
    rows = [(one.statement, "holds" if one.holds else "**falls**", one.figures) for one in found]
    return "### What the plan asked\n\n" + table(["statement", "verdict", "figures"], rows, words=3)


def _classes(main: Draws) -> str:
    classes = by_class(main)
    if not classes:
        return ""
    shown = ("true features", *METHODS)
    parts = []
    for words, ratio in (("means", mean_ratio), ("medians", median_ratio)):
        rows = []
        for kind, names in classes.items():
            ratios = class_ratios(main, names, ratio)
            best = min(ratios[method].value for method in METHODS)
            cells = []
            for method in shown:
                cell = str(ratios[method])
                marked = method in METHODS and ratios[method].value == best
                cells.append(f"**{cell}**" if marked else cell)
            rows.append([f"{CLASSES[kind]} ({len(names)})", *cells])
        parts.append(
            f"Geometric means over designs, from {words} over draws:\n\n"
            + table(["truth", *(label(method) for method in shown)], rows)
        )
    title = "### Error of predictions, relative to the assignment chosen by BIC"
    return title + "\n\n" + "\n\n".join(parts)


def _regrets(main: Draws) -> str:
    names = [name for names in by_class(main).values() for name in names]
    if not names:
        return ""
    normal = [name for name in names if DESIGNS[name].errors == "normal"]
    worst, of_normal = (regrets(main, some, METHODS) for some in (names, normal))
    rows = [
        [
            label(method),
            f"{worst[method][0]} ({digits(worst[method][0].value * worst[method][0].error)})",
            f"{DESIGNS[worst[method][1]].kind}: {DESIGNS[worst[method][1]].words}",
            str(of_normal[method][0]),
        ]
        for method in sorted(METHODS, key=lambda method: worst[method][0].value)
    ]
    head = ["method", "largest regret (s.e.)", "in the design", "designs with normal errors only"]
    return "### Largest regret\n\n" + table(head, rows)


def _refits(main: Draws) -> str:
    names = [name for names in by_class(main).values() for name in names]
    found = refits(main, names)
    if not found:
        return ""
    rows = []
    for kind in CLASSES:
        own = {name: one for name, one in found.items() if EXCESS[name].kind == kind}
        if not own:
            continue
        if kind == "errors":
            rows += [[EXCESS[name].words, "1", str(one), ""] for name, one in own.items()]
            continue
        better = sum(one.value < 1 for one in own.values())
        mean = geometric(list(own.values()))
        rows.append([CLASSES[kind], str(len(own)), str(mean), f"{better} of {len(own)}"])
    words = (
        "Error with the 20 heaviest assignments refitted by ML, over that of the two-step average "
        "with AIC weights, in the same draws."
    )
    head = ["designs", "number", "ratio", "better in"]
    return f"### ML refits in an average\n\n{words}\n\n" + table(head, rows)


def _coverage(main: Draws, bootstrap: Draws) -> str:
    have = [name for name in COVERAGE if name in main]
    if not have:
        return ""
    groups = {"All designs with normal errors": [name for name in have if name in NORMAL]}
    for kind in dict.fromkeys(COVERAGE[name].kind for name in have):
        groups[f"{kind}, normal errors"] = [
            name for name in have if COVERAGE[name].kind == kind and name in NORMAL
        ]
    groups |= {
        f"{COVERAGE[name].kind}, {COVERAGE[name].words}": [name]
        for name in have
        if name not in NORMAL
    }
    text = (
        "### Coverage of nominal 95% intervals\n\n"
        "Widths of strong coefficients are relative to the chosen model's own intervals, those of "
        "weak ones to all features'. In parentheses: the standard error of a coverage, in points. "
        f"The bootstrap has {BOOTSTRAP_DRAWS} draws with {REPLICATES} replicates each, with K = 8 "
        "only."
    )
    for words, names in groups.items():
        if names:
            text += f"\n\n**{words}**\n\n" + _intervals(main, bootstrap, names)
    return text


def _intervals(main: Draws, bootstrap: Draws, names: list[str]) -> str:
    draws, extra = pooled(main, names), pooled(bootstrap, names)
    kinds = {
        "strong": "strong",
        "weak": "weak",
        "zero": "zero",
        "imr": "beta_H",
        "rho": "rho",
        "sigma": "sigma",
        "predicted": "E[y given x]",
    }
    used = [kind for kind in kinds if tally(draws, "aic mixture", kind) is not None]
    units = {
        "strong": tally(draws, "chosen", "strong"),
        "weak": tally(draws, "all features", "weak"),
    }
    rows = []
    for method, words in INTERVALS.items():
        if "robust" in method and tally(draws, method, "strong") is None:
            continue
        if method == "bootstrap" and (not extra or any(name not in bootstrap for name in names)):
            continue
        source = extra if method == "bootstrap" else draws
        cells = []
        for kind in used:
            one = tally(source, method, kind)
            cells.append(f"{percent(one.share)} ({100 * one.error:.1f})" if one else "")
        for kind, unit in units.items():
            one = tally(source, method, kind)
            cells.append(digits(one.width / unit.width) if one and unit else "")
        rows.append([words, *cells])
    head = ["interval", *(kinds[kind] for kind in used), "width, strong", "width, weak"]
    return table(head, rows)


def _recovery(main: Draws) -> str:
    rows = []
    for name, design in RECOVERY.items():
        if name not in main:
            continue
        found = {one: exact(main[name], one) for one in ("bic", "ebic", "corrected_bic")}
        cells = [percent(float(one.mean())) for one in found.values()]
        for other in ("ebic", "corrected_bic"):
            gain = found[other] - found["bic"]
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            cells.append(f"{points(gain.mean())} ({100 * error:.1f})")
        rows.append([f"{design.words}, n = {design.n:,}", *cells])
    if not rows:
        return ""
    head = ["design", "BIC", "EBIC", "corrected BIC", "EBIC − BIC (s.e.)"]
    head.append("corrected − BIC (s.e.)")
    words = (
        "The share of draws in which exactly the true features are found; differences in points."
    )
    return f"### Exact recovery\n\n{words}\n\n" + table(head, rows)


def _calibration(main: Draws) -> str:
    groups = {
        "n = 500": calibrated(500, normal=True),
        "n = 2,000": calibrated(2000, normal=True),
        "n = 10,000": calibrated(10_000, normal=True),
        "n = 2,000, other errors": calibrated(2000, normal=False),
    }
    rows = []
    for words, names in groups.items():
        one = calibration(main, names)
        if one is not None:
            rows.append(
                [
                    words,
                    f"{percent(one.above_predict)} ({one.above:,})",
                    f"{percent(one.below_predict)} ({one.below:,})",
                    percent(one.below_weak),
                    percent(one.between),
                    percent(one.null_aic),
                    percent(one.null_bic),
                    percent(one.expected_bic),
                ]
            )
    if not rows:
        return ""
    head = [
        *("designs", "of those with 90% or more, predict", "of those below 10%, predict"),
        *("of these, weak", "in between", "share of a null feature, AIC"),
        *("share of a null feature, BIC", "1 / (1 + √m)"),
    ]
    words = (
        "Features by their BIC share, in designs that have features that do not predict; in "
        "parentheses, how many there are. *In between* is the share of all features."
    )
    return f"### Calibration of chances\n\n{words}\n\n" + table(head, rows)


def _columns(main: Draws) -> str:
    have = [name for name in COLUMNS if name in main]
    if len(have) < len(COLUMNS):
        return ""
    worst = column_regrets(main)
    rows = []
    for method in sorted(worst, key=lambda one: worst[one][0].value):
        cells = []
        for name in have:
            found = errors(main[name])
            best = min(found.values(), key=lambda one: one.mean())
            cells.append(str(mean_ratio(found[method], best)))
        rows.append([method, *cells, f"{worst[method][0]}"])
    head = ["regret", *(COLUMNS[name].words for name in have), "largest"]
    return "### Many columns\n\n" + table(head, rows)


def _designs(main: Draws) -> str:
    names = [name for names in by_class(main).values() for name in names]
    if not names:
        return ""
    shown = ("true features", *METHODS)
    rows = []
    for name in names:
        found = errors(main[name])
        best = min(METHODS, key=lambda method: found[method].mean())
        cells = [
            f"**{found[method].mean():.4f}**" if method == best else f"{found[method].mean():.4f}"
            for method in shown
        ]
        words = f"{CLASSES[EXCESS[name].kind]}: {EXCESS[name].words}"
        rows.append([words, str(len(main[name])), *cells])
    head = ["design", "draws", *(label(method) for method in shown)]
    return "### Excess error, design by design\n\n" + table(head, rows)

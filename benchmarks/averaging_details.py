"""Tables of docs/averaging_study.md in detail: errors by truth, chances, single designs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.averaging_designs import BINARY, BOTH, LARGE, ML, TRUTHS
from benchmarks.averaging_figures import (
    Drawn,
    Study,
    calibration,
    coverage,
    log_regret,
    number,
    of_parts,
    percent,
    two_step,
)
from benchmarks.averaging_verdicts import LABELS, WEIGHTS, Defaults, exact


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Format a table whose first columns hold words, and the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def errors_by_truth(study: Study, chosen: Defaults) -> str:
    """Mean regret by truth, with and without selection."""
    drawn = two_step(study)
    v = chosen.covariance
    methods = {
        **{chosen.average(kind): f"{LABELS[kind]}, index" for kind in ("bic", "half", "aic")},
        f"{v} bic never": "BIC, never",
        f"{v} all features": "all features",
        "least squares": "least squares",
        "today aic": "today, AIC",
    }
    groups: dict[str, list[Drawn]] = {}
    for truth, words in TRUTHS.items():
        own = [one for one in drawn if one.design.truth == truth]
        groups[f"{words}, ρ = 0"] = [one for one in own if one.is_null]
        groups[f"{words}, ρ ≠ 0"] = [one for one in own if not one.is_null]
    groups["n = 100 and 240"] = [one for one in drawn if one.design.n < 500]
    groups["errors not normal"] = [one for one in drawn if one.design.errors != "normal"]
    groups["named exclusion"] = [one for one in drawn if one.design.exclusion == "named"]
    groups["all"] = drawn
    rows = []
    for words, own in groups.items():
        values = [float(np.exp(log_regret(own, method)[0])) for method in methods]
        shown = [
            f"**{number(value)}**" if value == min(values) else number(value) for value in values
        ]
        rows.append([f"{words} ({len(own)})", *shown])
    words = (
        "Geometric means, over linear designs in two steps, of the error relative to the best of "
        "all methods in a design."
    )
    return f"### Error by truth\n\n{words}\n\n" + table(["truth", *methods.values()], rows)


def calibrated_chances(study: Study, chosen: Defaults) -> str:
    """Share of features that predict, by their chance."""
    groups = {
        "n < 500": [one for one in two_step(study) if one.design.n < 500],
        "n = 500 and 1,000": [one for one in two_step(study) if 500 <= one.design.n <= 1000],
        "n ≥ 2,000": [one for one in two_step(study) if one.design.n >= 2000],
        "ML": of_parts(study, ML),
        "binary outcome": of_parts(study, BINARY),
        "30 features and more": of_parts(study, LARGE),
    }
    rows = []
    for words, drawn in groups.items():
        v = "robust" if "more" in words else chosen.covariance
        for kind in WEIGHTS:
            for of, share in (("any", "own or index"), ("own", "own")):
                found = calibration(drawn, v, f"{kind} index", of)
                if found is None:
                    continue
                rows.append(
                    [
                        words,
                        LABELS[kind],
                        share,
                        f"{percent(found.above_predict)} ({found.above:,})",
                        f"{percent(found.between_predict)} ({found.between:,})",
                        f"{percent(found.below_predict)} ({found.below:,})",
                    ]
                )
    words = (
        "The share of features that predict, by their chance, in designs that have both kinds; in "
        "parentheses, how many there are. The lower cut is 30% with AIC weights."
    )
    head = ["designs", "weights", "chance", "90% or more", "in between", "below 10% (AIC 30%)"]
    return f"### Calibration of chances\n\n{words}\n\n" + table(head, rows, words=3)


def recovered(study: Study, chosen: Defaults) -> str:
    """How often the best assignment is exactly right."""
    rows = []
    v = chosen.covariance
    for truth, words in TRUTHS.items():
        drawn = [
            one for one in two_step(study) if one.design.truth == truth and one.design.n >= 1000
        ]
        if not drawn:
            continue
        today = np.mean([np.mean([r["today"]["best"] for r in one.records]) for one in drawn])
        cells = [percent(float(today), 0)]
        for mode in ("always", "optional", "index"):
            share = np.mean([exact(one, v, mode, "prediction") for one in drawn])
            cells.append(percent(float(share), 0))
        both = np.mean([exact(one, v, "index", "prediction", "correction") for one in drawn])
        rows.append([f"{words} ({len(drawn)})", *cells, percent(float(both), 0)])
    head = ["truth", "today", "always", "optional", "index", "index: and the correction"]
    text = (
        "How often the best assignment by BIC holds exactly the features that predict, in linear "
        "designs with n ≥ 1,000; last, with the correction if and only if ρ ≠ 0.\n\n"
        + table(head, rows)
    )
    own = [
        [
            one.design.words,
            percent(exact(one, v, "index", "prediction"), 0),
            percent(exact(one, v, "index", "selection"), 0),
            percent(exact(one, v, "index", "correction"), 0),
            percent(exact(one, v), 0),
        ]
        for one in of_parts(study, BOTH)
    ]
    head = ["both equations", "prediction", "selection", "correction", "all of it"]
    return f"### Exact recovery\n\n{text}\n\n" + table(head, own)


def beyond_aims(study: Study, chosen: Defaults) -> str:
    """Designs that miss an aim."""
    judge, default = chosen.average(chosen.chances), chosen.average(chosen.intervals)
    rows = []
    for one in study.values():
        v = one.design.part == LARGE and chosen.covariance != "robust"
        verdict = judge.replace(chosen.covariance, "robust") if v else judge
        method = default.replace(chosen.covariance, "robust") if v else default
        if one.is_null:
            share = float(one.says_yes(verdict, chosen.cut).mean())
            if share > 0.05:
                rows.append(["1", one.design.part, one.design.words, percent(share)])
        if one.aimed:
            rate = coverage([one], method, "nonzero")
            if rate and rate.value < 0.9:
                clear = " (clearly)" if rate.clear else ""
                rows.append(["2", one.design.part, one.design.words, percent(rate.value) + clear])
    title = "### Designs beyond the aims\n\n"
    words = (
        'Every design with ρ = 0 and "Yes" in more than 5%, or, with normal errors and n ≥ 500, '
        "coverage below 90%."
    )
    return f"{title}{words}\n\n" + table(["aim", "part", "design", "rate"], rows, words=3)

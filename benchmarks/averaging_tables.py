"""The tables of docs/averaging_study.md, from the draws that `benchmarks.averaging_study` made."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.averaging_designs import (
    BINARY,
    BOTH,
    DESIGNS,
    GRID,
    LARGE,
    LINEAR,
    ML,
    SEED,
    SPECIAL,
    TRUTHS,
)
from benchmarks.averaging_details import (
    beyond_aims,
    calibrated_chances,
    errors_by_truth,
    recovered,
    table,
)
from benchmarks.averaging_figures import (
    NO_SIGN,
    Drawn,
    Rate,
    Study,
    coverage,
    log_regret,
    number,
    of_parts,
    percent,
    read,
    two_step,
    widths,
    yes_rate,
)
from benchmarks.averaging_verdicts import (
    LABELS,
    WEIGHTS,
    Defaults,
    adopted,
    aimed,
    decide,
    nulls,
    sure,
    verdicts,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "averaging_study.md"
MARKS = (
    "<!-- figures: made by `python -m benchmarks.averaging_study` -->",
    "<!-- end of figures -->",
)
MODES = {
    "always": "always",
    "optional": "optional",
    "index": "optional, index",
    "3:1": "optional 3 : 1, index",
    "never": "never",
}
TARGETS = {
    "nonzero": "not zero",
    "zero": "zero",
    "correction": "beta_H",
    "rho": "rho",
    "expectation": "E[y given x]",
}


def write(path: Path, text: str, marks: tuple[str, str] = MARKS) -> None:
    """Replace the figures of the page between two marks, and leave its other text alone."""
    begin, end = marks
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    before = before.rstrip("\n")
    page = f"{before}\n\n{begin}\n\n{text}\n{end}\n\n{after.lstrip()}"
    path.write_text(page, encoding="utf-8")


def page(folder: Path) -> str:
    """Return every table."""
    study = read(folder)
    decided = decide(study)
    chosen = adopted(decided)
    parts = [
        _head(study),
        _decided(decided),
        _statements(study, chosen, decided),
        _methods(study),
        _verdicts_by_truth(study, chosen),
        _exclusions(study, chosen),
        _coverage(study, chosen),
        _coverage_by(study, chosen),
        _parts(study, chosen),
        errors_by_truth(study, chosen),
        calibrated_chances(study, chosen),
        recovered(study, chosen),
        beyond_aims(study, chosen),
    ]
    return "\n\n".join(parts) + "\n"


def _shown(rate: Rate | None, digits: int = 1) -> str:
    """Format a rate and its worst design."""
    return f"{percent(rate.value, digits)} ({percent(rate.worst, 0)})" if rate else "–"


def _head(study: Study) -> str:
    done = sum(len(one.records) for one in study.values())
    planned = sum(design.draws for design in DESIGNS.values())
    failed = {one.name: one.failed for one in study.values() if one.failed}
    text = f"{done:,} draws of {planned:,} planned, in {len(study)} designs; seed {SEED}."
    if failed:
        by_part: dict[str, int] = {}
        for name, count in failed.items():
            part = DESIGNS[name].part
            by_part[part] = by_part.get(part, 0) + count
        words = ", ".join(f"{part} {count}" for part, count in by_part.items())
        most = max(failed, key=lambda name: failed[name] / DESIGNS[name].draws)
        share = failed[most] / DESIGNS[most].draws
        text += (
            f" Left out because a model could not be fitted or had no covariance: {words}; most in "
            f"{DESIGNS[most].words} ({percent(share, 0)})."
        )
    return "## The results\n\n" + text


def _decided(chosen: Defaults) -> str:
    head = ["default", "decision", "figures"]
    return "### What the rules decide\n\n" + table(head, chosen.reasons, words=3)


def _statements(study: Study, chosen: Defaults, decided: Defaults) -> str:
    head = ["statement", "verdict", "figures"]
    own, letter = (
        [
            (one.statement, "holds" if one.holds else "**falls**", one.figures)
            for one in verdicts(study, defaults)
        ]
        for defaults in (chosen, decided)
    )
    other = [row for row in letter if row not in own]
    return (
        f"### What the plan asked\n\n{table(head, own, words=3)}\n\n"
        f"With the chances that the letter of the plan decides, by {LABELS[decided.chances]}:\n\n"
        + table(head, other, words=3)
    )


def _by_rho(drawn: list[Drawn]) -> dict[str, list[Drawn]]:
    return {
        "0": nulls(drawn),
        ".3 and .5": [one for one in drawn if 0 < abs(one.design.rho) <= 0.5],
        ".8 and .9": [one for one in drawn if abs(one.design.rho) >= 0.8],
    }


def _methods(study: Study) -> str:
    drawn = two_step(study)
    rows = []
    names = {"today aic": "today, AIC", "today bic": "today, BIC"}
    for covariance in ("robust", "classical"):
        for mode, words in MODES.items():
            for kind in WEIGHTS:
                key = f"{covariance} {kind} {mode}"
                names[key] = f"{LABELS[kind]}, {words}; {covariance}"
        names[f"{covariance} all features"] = f"all features; {covariance}"
        names[f"{covariance} half all features"] = f"half all features; {covariance}"
    names["least squares"] = "least squares"
    for method, words in names.items():
        verdict = {"today bic": "today"}.get(method, method)
        if method.endswith("all features") and "half" not in method:
            verdict = method.partition(" ")[0] + " z"
        said = "–"
        mode = method.rpartition(" ")[2]
        if mode in ("optional", "index", "3:1") or verdict in ("today", "robust z", "classical z"):
            rates = [sure(yes_rate(part, verdict)) for part in _by_rho(drawn).values()]
            said = " / ".join(percent(rate.value, 0) for rate in rates)
            said += f" ({percent(rates[0].worst, 0)})"
        cover = coverage(aimed(drawn), method, "nonzero")
        below = f"{len(cover.beyond)}" if cover else "–"
        mean, worst, _ = log_regret(drawn, method)
        rows.append([words, said, _shown(cover), below, number(mean), number(worst)])
    head = [
        "weights, correction; V",
        '"Yes" with ρ = 0 / to .5 / .8 and more (worst design with ρ = 0)',
        "coverage, not zero (worst design)",
        "designs below 90%",
        "mean log regret",
        "largest regret",
    ]
    words = (
        f"Linear designs in two steps ({len(drawn)}); coverage in the {len(aimed(drawn))} with "
        'normal errors and n ≥ 500. "Yes" is a chance of 90%; that of all features, the z test.'
    )
    return f"### All methods\n\n{words}\n\n" + table(head, rows)


def _verdicts_by_truth(study: Study, chosen: Defaults) -> str:
    drawn, judge = two_step(study), chosen.average(chosen.chances)
    low = NO_SIGN[chosen.chances]
    groups = {
        words: [one for one in drawn if one.design.truth == truth]
        for truth, words in TRUTHS.items()
    }
    for exclusion in ("none", "weak", "strong", "named"):
        own = [one for one in drawn if one.design.exclusion == exclusion]
        groups[f"exclusion: {exclusion}"] = own
    rows = []
    for title, group in groups.items():
        cells = []
        for part in _by_rho(group).values():
            shares = np.concatenate([one.shares(judge) for one in part] or [np.full(1, np.nan)])
            yes, no = (shares >= chosen.cut).mean(), (shares < low).mean()
            cells.append(f"{percent(yes, 0)} / {percent(no, 0)} ({len(part)})" if part else "–")
        rows.append([title, *cells])
    words = (
        f'The chance of the correction by {LABELS[chosen.chances]} weights: how often it is "Yes" '
        f'(at least {chosen.cut:.0%}) / "no sign" (below {low:.0%}); the rest cannot be told. In '
        "parentheses: designs."
    )
    head = ["truth", "ρ = 0", "ρ = ±.3 and ±.5", "ρ = ±.8 and ±.9"]
    return f"### Verdicts by truth\n\n{words}\n\n" + table(head, rows)


def _exclusions(study: Study, chosen: Defaults) -> str:
    rows = []
    keys = {
        **{f"{LABELS[kind]}": chosen.average(kind) for kind in WEIGHTS},
        **{f"{LABELS[kind]}, 3 : 1": f"{chosen.covariance} {kind} 3:1" for kind in ("aic", "bic")},
        "z test": f"{chosen.covariance} z",
        "today": "today",
    }
    for words, key in keys.items():
        cells = []
        for size in (0.0, 0.3, 0.6, 1.0):
            said = [
                study[f"{GRID} {size:g} {rho:g}"].says_yes(key, chosen.cut).mean()
                for rho in (0.0, 0.5, 0.8)
            ]
            cells.append(" / ".join(percent(share, 0) for share in said))
        rows.append([words, *cells])
    words = (
        f'"Yes" (a chance of at least {chosen.cut:.0%}) with ρ = 0 / .5 / .8: n = 1,000, '
        "8 features, β = .3 γ. The index is made of the features that may predict."
    )
    head = ["chance by", "no exclusion", "named, γ = .3", "γ = .6", "γ = 1"]
    return f"### What a named exclusion restores\n\n{words}\n\n" + table(head, rows)


def _coverage(study: Study, chosen: Defaults) -> str:
    drawn = aimed(two_step(study))
    rows = []
    v = chosen.covariance
    names = {
        "today aic": "today, AIC",
        "today bic": "today, BIC",
        **{chosen.average(kind): f"{LABELS[kind]}, index" for kind in WEIGHTS},
        f"{v} half all features": "half all features",
        f"{v} all features": "all features",
    }
    for method, words in names.items():
        cells = []
        for kind in TARGETS:
            rate = sure(coverage(drawn, method, kind))
            cells.append(f"{percent(rate.value)} ({percent(rate.worst, 0)}; {len(rate.beyond)})")
        own = method.removeprefix(f"{v} ")
        if method.startswith("today"):
            cells.append("–")
        else:
            cells.append(" / ".join(number(one) for one in widths(drawn, v, own)))
        rows.append([words, *cells])
    words = (
        f"Linear designs in two steps with normal errors and n ≥ 500 ({len(drawn)}), {v} V. In "
        "parentheses: the worst design, and how many designs are below 90%. Widths are relative to "
        "those of all features: effects that are not zero / zero."
    )
    head = ["interval", *TARGETS.values(), "width"]
    return f"### Coverage of nominal 95% intervals\n\n{words}\n\n" + table(head, rows)


def _coverage_by(study: Study, chosen: Defaults) -> str:
    drawn = two_step(study)
    methods = {
        "today aic": "today",
        **{chosen.average(kind): LABELS[kind] for kind in WEIGHTS},
        f"{chosen.covariance} all features": "all features",
    }
    groups: dict[str, list[Drawn]] = {
        words: [one for one in aimed(drawn) if one.design.truth == truth]
        for truth, words in TRUTHS.items()
        if truth != "none"
    }
    enough = [one for one in drawn if one.design.n >= 500]
    for errors, words in (("t4", "t(4)"), ("skewed", "skewed"), ("spread", "heteroscedastic")):
        groups[f"errors: {words}"] = [one for one in enough if one.design.errors == errors]
    for low, high in ((100, 240), (500, 500), (1000, 1000), (2000, 10_000)):
        title = f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"
        groups[f"{title}, normal errors"] = [
            one for one in drawn if low <= one.design.n <= high and one.design.errors == "normal"
        ]
    groups["binary features"] = [one for one in aimed(drawn) if one.design.binary]
    rows = []
    for words, part in groups.items():
        cells = []
        for method in methods:
            cells.append(_shown(coverage(part, method, "nonzero")))
        rows.append([f"{words} ({len(part)})", *cells])
    words = (
        "Effects that are not zero; the worst design in parentheses. Truths with normal errors and "
        "n ≥ 500, other errors with n ≥ 500."
    )
    head = ["designs", *methods.values()]
    return f"### Coverage by truth, errors and rows\n\n{words}\n\n" + table(head, rows)


def _parts(study: Study, chosen: Defaults) -> str:
    rows = []
    groups = {
        part: of_parts(study, part) for part in (LINEAR, GRID, SPECIAL, ML, BINARY, BOTH, LARGE)
    }
    for normal, title in ((True, "ML, normal errors"), (False, "ML, other errors")):
        groups[title] = [one for one in groups[ML] if (one.design.errors == "normal") == normal]
    del groups[ML]
    for title, drawn in groups.items():
        if not drawn:
            continue
        part = drawn[0].design.part
        v = "robust" if part == LARGE else chosen.covariance
        names = {LABELS[kind]: f"{v} {kind} {chosen.correction}" for kind in WEIGHTS}
        names["all features, z test"] = f"{v} all features"
        for weights, method in names.items():
            verdict = method.replace("all features", "z")
            cells = [
                _shown(yes_rate(group, verdict, chosen.cut), 0) for group in _by_rho(drawn).values()
            ]
            cells += [
                _shown(coverage(aimed(drawn), method, target))
                for target in ("nonzero", "zero", "rho", "expectation")
            ]
            cells.append(number(log_regret(drawn, method)[0]))
            rows.append([f"{title} ({len(drawn)})", weights, *cells])
    words = (
        '"Yes" by the size of ρ, with the design that says it most often; coverage with normal '
        "errors and n ≥ 500, with the worst design. E[y given x] is a probability if the outcome "
        "is binary. Regret is against the methods that the part has."
    )
    head = ["designs", "weights", '"Yes", ρ = 0', "to .5", ".8 and more"]
    head += ["not zero", "zero", "rho", "E[y given x]", "mean log regret"]
    return f"### Part by part\n\n{words}\n\n" + table(head, rows, words=2)

"""Checks of an answer: how far to trust it, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heckmanfa.analysis.prepared import Model, Prepared
from heckmanfa.analysis.refits import (
    NOT_IN_MEMORY,
    QUICK_ROWS,
    Make,
    best_set_finding,
    ratio_model,
    resample,
    set_words,
)
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.kinds import MOST_LEVELS
from heckmanfa.data.columns.missing_codes import Suspicion
from heckmanfa.data.columns.tally import OTHER
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.fit import Fit
from heckmanfa.inference.searching import Honest
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.assignment_words import kinds_finding
from heckmanfa.results.average_tables import has_pseudo_weights
from heckmanfa.results.check_kinds import DO_WITHOUT_SEARCH, FEWER_FEATURES
from heckmanfa.results.checks import (
    Check,
    checks_of,
    checks_of_warnings,
    ordered_checks,
    plain_check,
)
from heckmanfa.results.document import Caveat, Finding, Level
from heckmanfa.results.log_words import about_ratio
from heckmanfa.results.problems import ENOUGH_ROWS, is_crowded, rows_per_feature
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, quoted_list, shown
from heckmanfa.text.wording import chance_text, count, listed, percent, plural

# Comparisons with so few rows, or with so small a share of them, are hardly known.
_FEW_ROWS, _SMALL_SHARE = 10, 0.01
_NAMED, _LEVELS_LISTED = 3, 6


def checks_of_levels(prepared: Prepared, outcome: str) -> list[Check]:
    """Name references with few rows, levels that differ only in case, and numbers used as codes."""
    return [
        *_of_references(prepared.encoding, outcome),
        *_of_spellings(prepared.encoding, outcome),
        *_of_coded_numbers(prepared, outcome),
    ]


def _of_references(encoding: Encoding, outcome: str) -> list[Check]:
    said, dos = [], []
    level: Level = "note"
    for name, rows in encoding.level_rows.items():
        total, few = sum(rows), rows[0]
        if len(rows) < 2 or few >= max(_FEW_ROWS, _SMALL_SHARE * total):
            continue
        level = "caution" if few < _FEW_ROWS else level
        reference = encoding.levels[name][0]
        said.append(
            f"{plural(few, 'row')} of {count(total)} {'has' if few == 1 else 'have'} "
            f"{quoted(reference)}, which the other levels of {quoted(name)} are compared with."
        )
        most = max(range(len(rows)), key=rows.__getitem__)
        item = f"{name}={encoding.levels[name][most]}"
        dos.append(
            f"{option('reference', [item])} compares with a level of {plural(rows[most], 'row')}."
        )
    if not said:
        return []
    value = plural(len(said), "category", "categories")
    check = plain_check("reference_rows", level, " ".join(said[:_NAMED]), outcome, value)
    return [replace(check, do=told(" ".join(dos[:_NAMED]), keywords=True))]


def spellings(encoding: Encoding) -> dict[str, list[tuple[str, ...]]]:
    """Return the levels of each category that differ only in case or blanks, together."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in encoding.levels:
        alike: dict[str, list[str]] = {}
        for level in [*encoding.levels[name], *encoding.merged.get(name, ())]:
            if level != OTHER:
                alike.setdefault("".join(level.split()).casefold(), []).append(level)
        groups = [tuple(group) for group in alike.values() if len(group) > 1]
        if groups:
            found[name] = groups
    return found


def _of_spellings(encoding: Encoding, outcome: str) -> list[Check]:
    found = spellings(encoding)
    if not found:
        return []
    said = []
    for name, groups in list(found.items())[:_NAMED]:
        pairs = listed([quoted_list(group, _LEVELS_LISTED) for group in groups[:_LEVELS_LISTED]])
        said.append(f"{pairs} are different levels of {quoted(name)}.")
    value = listed([shown(name) for name in found])
    return [plain_check("level_spellings", "caution", " ".join(said), outcome, value)]


def _of_coded_numbers(prepared: Prepared, outcome: str) -> list[Check]:
    codes = prepared.coded_numbers
    if not codes:
        return []
    said = [
        f"{quoted(one.column)} holds {one.n_values:,} integers from {one.low:g} to {one.high:g}."
        for one in codes[:_NAMED]
    ]
    named = option("categorical", [one.column for one in codes[:_NAMED]])
    do = f"If its numbers name things, pass {named}."
    if any(one.n_values > MOST_LEVELS for one in codes):
        do += f" Merge rare levels with {option('min_level_rows')}."
    value = listed([shown(one.column) for one in codes])
    check = plain_check("coded_numbers", "caution", " ".join(said), outcome, value)
    return [replace(check, do=told(do, keywords=True))]


# Tests of what a model assumes, and checks of a binary outcome that refit it.
_N_TESTS, _N_BINARY_TESTS, _N_REFITS = 5, 4, 2
# What a fit says of rows that it left out, by its count.
_LEFT_OUT = {
    "left_out_outcome_missing": "are selected but lack the outcome",
    "left_out_zero_weight": "have a weight of zero",
    "left_out_separation": "have a selection that a column decides exactly",
}
# Findings about a search in all rows, which honest estimates do not rest on.
_OF_ONE_SEARCH = frozenset({"assignment_weight", "left_out", "weight_kinds"})
# Derived columns that are listed one by one.
_LISTED = 4


@dataclass(frozen=True, eq=False)
class Subject:
    """What the checks of an answer are about."""

    prepared: Prepared
    model: Model
    best_model: Callable[[], Model]
    make: Make
    findings: Sequence[Finding]
    """lines of the diagnostics"""
    caveats: Sequence[Caveat]
    warned: Sequence[tuple[type[HeckmanfaWarning], str]]
    """warnings of the fit, with their kind"""
    row_counts: Mapping[str, int]
    weights: AssignmentWeights | str | None
    """of all sets of features, or why there are none"""
    derived: Mapping[str, tuple[str, ...]]
    """columns that are squares or products of others"""
    source_of: Callable[[str], str]
    """names the column of the table behind a column of X"""

    @property
    def outcome(self) -> str:
        """Name of what is fitted."""
        return self.prepared.question.fitted

    @property
    def fit(self) -> Fit:
        """The fit of the model."""
        return self.model.fit_

    def sources(self, columns: Sequence[str]) -> list[str]:
        """Name the columns of the table behind columns of X, each once."""
        return list(dict.fromkeys(self.source_of(str(column)) for column in columns))


@dataclass
class _Missed:
    """Checks that were not run."""

    n: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, n: int, reason: str) -> None:
        self.n += n
        if reason not in self.reasons:
            self.reasons.append(reason)


def checks_of_answer(subject: Subject) -> tuple[Check, ...]:
    """Return every check of an answer, the gravest first."""
    fit, outcome, missed = subject.fit, subject.outcome, _Missed()
    findings = [_in_table(finding, subject) for finding in subject.findings]
    caveats = [*subject.caveats]
    honest = None if fit.search is None else fit.search.honest
    if isinstance(honest, Honest):
        findings = [item for item in findings if item.key not in _OF_ONE_SEARCH]
        caveats = [caveat for caveat in caveats if caveat.key not in _OF_ONE_SEARCH]
        findings += honest.findings()
    if fit.probit is not None:
        findings += [*_specification(subject, missed), *_ratio_of_best(subject, missed)]
        findings = _with_best_set(subject, findings, missed)
        if subject.prepared.streamed:
            # The share of rows beyond the range of lambda.
            missed.add(1, NOT_IN_MEMORY)
    binary = fit.is_binary
    found = [*checks_of(findings, caveats, outcome, binary=binary)]
    found += [
        *_of_crowding(subject),
        *_of_rows(subject),
        *_of_codes(subject),
        *_of_derived(subject),
        *checks_of_levels(subject.prepared, outcome),
    ]
    found += [_not_run(missed, outcome)] if missed.n else []
    found = _with_form(found, ml=subject.prepared.question.estimated == "ml")
    dos = DO_WITHOUT_SEARCH if subject.prepared.question.searched == "none" else {}
    found = [
        replace(one, do=dos[one.key])
        if one.key in dos and one.do not in ("", FEWER_FEATURES)
        else one
        for one in found
    ]
    warned = checks_of_warnings(subject.warned, found, outcome, binary=binary)
    return ordered_checks([*found, *warned])


def _in_table(finding: Finding, subject: Subject) -> Finding:
    """Name the columns of the table in a finding about columns of X."""
    weights = subject.weights
    if finding.key == "weight_kinds":
        assert isinstance(weights, AssignmentWeights)
        return kinds_finding(subject.fit, weights, subject.sources)
    if not finding.names:
        return finding
    names = tuple(subject.sources(finding.names))
    if finding.key != "stand_ins":
        return replace(finding, names=names)
    assert isinstance(weights, AssignmentWeights)
    assert weights.stand_ins
    first = weights.stand_ins[0]
    without, inside = chance_text(first.corrected_without), chance_text(first.corrected_with)
    short = f"without it, {without} of the BIC weight holds the correction; with it, {inside}"
    return replace(finding, names=names, short=short)


def _specification(subject: Subject, missed: _Missed) -> list[Finding]:
    """Test what the model assumes, where its rows are in memory."""
    loaded, binary = subject.prepared.loaded, subject.fit.is_binary
    n_tests = _N_BINARY_TESTS if binary else _N_TESTS
    if loaded is None:
        missed.add(n_tests + _N_REFITS * binary, NOT_IN_MEMORY)
        return []
    if has_pseudo_weights(subject.fit):
        missed.add(n_tests, "Tests of normality and of forms are not known for sampling weights")
        return []
    if binary and len(loaded.y) > QUICK_ROWS:
        why = f"Checks that refit the model take too long with {len(loaded.y):,} rows"
        missed.add(n_tests + _N_REFITS, why)
        return []
    try:
        tests = subject.best_model().specification_tests(
            loaded.X,
            subject.prepared.outcome,
            selected=loaded.selected,
            sample_weight=loaded.weight,
        )
    except HeckmanfaError as error:
        missed.add(n_tests, f"The model cannot be tested: {str(error).rstrip('.')}")
        return []
    return tests.findings()


def _ratio_of_best(subject: Subject, missed: _Missed) -> list[Finding]:
    """Judge predictions of an averaged log outcome on its own scale, by those of the best set."""
    if subject.fit.average is None or subject.fit.spec.outcome_transform is None:
        return []
    best = ratio_model(subject.prepared, subject.model, subject.best_model)
    if isinstance(best, str):
        missed.add(1, best)
        return []
    return about_ratio(
        best.fit_.transform_ratio, set_words(subject.sources(best.prediction_features_))
    )


def _with_form(checks: list[Check], *, ml: bool) -> list[Check]:
    """Say of errors that are not normal whether the form of the correction holds all the same."""
    form = next((item for item in checks if item.key == "correction_form"), None)
    if form is None or form.level != "ok":
        return checks
    keep, lean = "Keep two steps", f"{option('method', 'ml')} or on "
    if ml:
        keep, lean = f"Use {option('method', 'two-step')}", ""
    do = told(
        f"{keep}: the form of the correction is not rejected ({form.value}). Do not lean on "
        f"{lean}p-values near 5%.",
        keywords=True,
    )
    return [
        replace(check, do=do)
        if check.key == "normality_prediction" and check.level == "caution"
        else check
        for check in checks
    ]


def _with_best_set(subject: Subject, findings: list[Finding], missed: _Missed) -> list[Finding]:
    """Say how often the best set wins in samples of the rows, in place of its weight alone."""
    fit = subject.fit
    chose = fit.search is not None and fit.search.chose and fit.search.honest is None
    if fit.average is None and not chose:
        return findings
    drawn = resample(subject.prepared, fit, subject.make)
    if isinstance(drawn, str):
        missed.add(1, drawn)
        return findings
    best = [fit.feature_names[int(column)] for column in np.flatnonzero(drawn.best)]
    said = best_set_finding(fit, subject.weights, drawn, subject.sources(best))
    others = [finding for finding in findings if finding.key != "assignment_weight"]
    if len(others) < len(findings) and said.verdict == "ok":
        # No sample contradicts it, but its weight may.
        weight = next(finding for finding in findings if finding.key == "assignment_weight")
        if weight.verdict != "ok":
            said = replace(weight, meaning=f"{weight.meaning} {said.meaning}")
    return [*others, said, *drawn.findings]


def _of_crowding(subject: Subject) -> list[Check]:
    """Say that the rows are few for the features of the selection equation."""
    fit = subject.fit
    if fit.probit is None or not is_crowded(fit):
        return []
    rarer = "with" if fit.row_counts["selected"] < fit.row_counts["unselected"] else "without"
    value = (
        f"{rows_per_feature(fit):.1f} rows {rarer} an outcome for each of "
        f"{plural(len(fit.probit.features), 'coefficient')}, where {ENOUGH_ROWS} would do"
    )
    return [plain_check("crowded", "caution", "", subject.outcome, value)]


def _of_rows(subject: Subject) -> list[Check]:
    """Count the rows that were left out, where no caveat does."""
    counts, outcome = subject.row_counts, subject.outcome
    total, found = counts["total"], []
    lost = counts.get("left_out_regressor_missing", 0)
    if lost and not any(caveat.key == "rows_lost" for caveat in subject.caveats):
        words = f"{count(lost)} of {count(total)} ({percent(lost / total)}) lack a feature."
        found.append(plain_check("rows_lost", "note", words, outcome, case="few"))
    others = {
        key: n
        for key, n in counts.items()
        if key.startswith("left_out_") and key != "left_out_regressor_missing" and n
    }
    if others:
        clauses = [f"{count(n)} {_LEFT_OUT[key]}" for key, n in others.items()]
        words = f"Of {count(total)} rows, {listed(clauses)}."
        found.append(plain_check("rows_dropped", "note", words, outcome))
    return found


def _of_codes(subject: Subject) -> list[Check]:
    """Name the numbers that look like codes for missing: in the outcome they spoil everything."""
    codes = subject.prepared.suspicions
    of_outcome = [code for code in codes if code.is_outcome]
    of_features = [code for code in codes if not code.is_outcome]
    found: list[Check] = []
    levels: tuple[tuple[str, Level, list[Suspicion]], ...] = (
        ("outcome_code", "problem", of_outcome),
        ("feature_codes", "caution", of_features),
    )
    for key, level, some in levels:
        if some:
            words = " ".join(code.words for code in some[:_LISTED])
            held = listed(
                [f"{code.code:g} in {plural(code.rows, 'row')}" for code in some[:_LISTED]]
            )
            check = plain_check(key, level, words, subject.prepared.question.outcome, held)
            found.append(replace(check, do=" ".join(code.do for code in some[:_LISTED])))
    return found


def _of_derived(subject: Subject) -> list[Check]:
    """Name the columns that are squares or products of others."""
    if not subject.derived:
        return []
    said = [_made_from(name, others) for name, others in subject.derived.items()]
    fit = subject.fit
    searched = fit.average is not None or (fit.search is not None and fit.search.chose)
    apart = "the search takes them apart" if searched else "each has a coefficient of its own"
    if len(said) == 1:
        all_of = "Both" if len(next(iter(subject.derived.values()))) == 1 else "All three"
        check = plain_check(
            "derived", "note", f"{all_of} are columns here; {apart}.", subject.outcome
        )
        return [replace(check, title=f"{said[0]}.")]
    more = f"; and {len(said) - _LISTED} more" if len(said) > _LISTED else ""
    words = f"{'; '.join(said[:_LISTED])}{more}. {apart[0].upper()}{apart[1:]}."
    return [plain_check("derived", "note", words, subject.outcome, f"{len(said)} columns")]


def _made_from(name: str, others: Sequence[str]) -> str:
    what = "square" if len(others) == 1 else "product"
    return f"{shown(name)} is the {what} of {listed(others)}"


def _not_run(missed: _Missed, outcome: str) -> Check:
    """Count the checks that were not run, and say why."""
    check = plain_check("not_run", "note", f"{'. '.join(missed.reasons)}.", outcome)
    were = "was" if missed.n == 1 else "were"
    return replace(check, title=f"{plural(missed.n, 'check')} {were} not run.")

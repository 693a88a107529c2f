"""Checks of an answer: how far to trust it, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from heckmanfa.analysis.fitted_question import NOT_IN_MEMORY, FittedQuestion
from heckmanfa.analysis.refits import best_set_finding, resample, set_words
from heckmanfa.data.columns.column_hints import CodedNumbers
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.data.columns.kinds import MOST_LEVELS
from heckmanfa.data.columns.tally import OTHER
from heckmanfa.data.columns.values import one_case
from heckmanfa.errors import HeckmanfaError
from heckmanfa.inference.assessment import QUICK_ROWS
from heckmanfa.inference.honest import Honest
from heckmanfa.results.assignment_weights import AssignmentWeights
from heckmanfa.results.average_tables import has_pseudo_weights
from heckmanfa.results.checks import Check, checks_of, checks_of_warnings, ordered_checks
from heckmanfa.results.facts import Fact, Level
from heckmanfa.results.fit_facts import ratio_facts
from heckmanfa.results.fit_tests import ENOUGH_ROWS, is_crowded, rows_per_feature
from heckmanfa.results.funnel import LACKING, NOT_DATA
from heckmanfa.results.weight_facts import kinds_fact
from heckmanfa.text.labels import label, level_label, said, said_all
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import chance_text, count, listed, plural

# Comparisons with so few rows, or with so small a share of them, are hardly known.
_FEW_ROWS, _SMALL_SHARE = 10, 0.01
_NAMED, _LEVELS_LISTED = 3, 6


def _of_references(encoding: Encoding) -> list[Fact]:
    """Name references with few rows."""
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
            f"{quoted(level_label(name, reference))}, which the other levels of "
            f"{quoted(label(name))} are compared with."
        )
        most = max(range(len(rows)), key=rows.__getitem__)
        item = f"{name}={encoding.levels[name][most]}"
        dos.append(
            f"{option('reference', [item])} compares with a level of {plural(rows[most], 'row')}."
        )
    if not said:
        return []
    value = plural(len(said), "category", "categories")
    advice = {"advice": " ".join(dos[:_NAMED])}
    return [Fact("reference_rows", level, value, " ".join(said[:_NAMED]), values=advice)]


def _of_spellings(encoding: Encoding) -> list[Fact]:
    """Name the levels of a category that differ only in case or blanks."""
    spellings: dict[str, list[list[str]]] = {}
    for name in encoding.levels:
        alike: dict[str, list[str]] = {}
        for level in [*encoding.levels[name], *encoding.merged.get(name, ())]:
            if level != OTHER:
                alike.setdefault(one_case(level), []).append(level)
        if groups := [group for group in alike.values() if len(group) > 1]:
            spellings[name] = groups
    if not spellings:
        return []
    said = []
    for name, groups in list(spellings.items())[:_NAMED]:
        pairs = listed([quoted_list(group, _LEVELS_LISTED) for group in groups[:_LEVELS_LISTED]])
        said.append(f"{pairs} are different levels of {quoted(label(name))}.")
    value = listed(said_all(list(spellings)))
    return [Fact("level_spellings", "caution", value, " ".join(said))]


def _of_coded_numbers(columns: Sequence[CodedNumbers]) -> list[Fact]:
    """Name columns of numbers that may be codes."""
    if not columns:
        return []
    first = columns[:_NAMED]
    said = [
        f"{quoted(label(column.column))} holds {column.n_values:,} integers from {column.low:g} to "
        f"{column.high:g}."
        for column in first
    ]
    named = option("categorical", [column.column for column in first])
    do = f"If its numbers name things, pass {named}."
    if any(column.n_values > MOST_LEVELS for column in columns):
        do += f" Merge rare levels with {option('min_level_rows')}."
    value = listed(said_all([column.column for column in columns]))
    return [Fact("coded_numbers", "caution", value, " ".join(said), values={"advice": do})]


# Tests of what a model assumes, without and with classes, and checks of classes that refit it.
_N_TESTS, _N_CLASS_TESTS, _N_REFITS = 5, 4, 2
# What a fit says of rows that it left out, by its count.
# Facts about a search in all rows, which honest estimates do not rest on.
_OF_ONE_SEARCH = frozenset({"best_set", "left_out", "weight_kinds"})
# Derived columns that are listed one by one.
_LISTED = 4


@dataclass
class _Missed:
    """Checks that were not run."""

    n: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, n: int, reason: str) -> None:
        self.n += n
        if reason not in self.reasons:
            self.reasons.append(reason)


def checks_of_answer(fitted: FittedQuestion) -> tuple[Check, ...]:
    """Return every check of an answer, the gravest first."""
    fit, outcome, missed = fitted.model.fit_, fitted.question.fitted, _Missed()
    facts = [_in_table(fact, fitted) for fact in fitted.facts]
    if fit.way.halves_rows:
        facts = [fact for fact in facts if fact.key not in _OF_ONE_SEARCH]
        halves = fit.way.halves
        facts += halves.findings() if isinstance(halves, Honest) else []
    if fit.probit is not None:
        facts += [*_specification(fitted, missed), *_ratio_of_best(fitted, missed)]
        facts = _with_best_set(fitted, facts, missed)
        if fitted.streamed:
            # The share of rows beyond the range of lambda.
            missed.add(1, NOT_IN_MEMORY)
    facts += [*_of_crowding(fitted), *facts_of_table(fitted)]
    if missed.n:
        n_checks = f"{plural(missed.n, 'check')} {'was' if missed.n == 1 else 'were'}"
        words = f"{'. '.join(missed.reasons)}."
        facts.append(Fact("not_run", "note", meaning=words, values={"checks": n_checks}))
    if fitted.question.searched == "none":
        # Advice about a search has no place if there is none.
        facts = [replace(fact, case=fact.case or "given") for fact in facts]
    checks = _with_form(checks_of(facts, fit, outcome), ml=fit.spec.method == "ml")
    return with_warnings(fitted, checks)


def facts_of_table(fitted: FittedQuestion) -> list[Fact]:
    """Return what may be wrong with the rows and columns behind an answer."""
    return [
        *_of_rows(fitted),
        *_of_codes(fitted),
        *_of_derived(fitted),
        *_of_references(fitted.encoding),
        *_of_spellings(fitted.encoding),
        *_of_coded_numbers(fitted.coded_numbers),
        *_of_totals(fitted),
    ]


def with_warnings(fitted: FittedQuestion, checks: Sequence[Check]) -> tuple[Check, ...]:
    """Add the warnings of the fit that no check says already."""
    fit, outcome = fitted.model.fit_, fitted.question.fitted
    warnings = list(zip(fitted.warning_kinds, fitted.warnings, strict=True))
    return ordered_checks([*checks, *checks_of_warnings(warnings, checks, fit, outcome)])


def _in_table(fact: Fact, fitted: FittedQuestion) -> Fact:
    """Name the columns of the table in a fact about columns of X."""
    if fact.key not in ("weight_kinds", "stand_ins"):
        return replace(fact, names=tuple(fitted.sources(fact.names)))
    weights = fitted.evidence.weights
    if not isinstance(weights, AssignmentWeights):
        return fact
    if fact.key == "weight_kinds":
        return kinds_fact(fitted.model.fit_, weights, fitted.sources)
    if not weights.stand_ins:
        return fact
    first = weights.stand_ins[0]
    without, inside = chance_text(first.corrected_without), chance_text(first.corrected_with)
    short = f"without it, {without} of the BIC weight holds the correction; with it, {inside}"
    return replace(fact, names=tuple(fitted.sources(fact.names)), short=short)


def _specification(fitted: FittedQuestion, missed: _Missed) -> list[Fact]:
    """Test what the model assumes, where its rows are in memory."""
    if not fitted.model.fit_.family.can("specification tests"):
        return []
    loaded, refitted = fitted.loaded, fitted.model.fit_.family.has_classes
    n_tests = _N_CLASS_TESTS if refitted else _N_TESTS
    if loaded is None:
        missed.add(n_tests + _N_REFITS * refitted, NOT_IN_MEMORY)
        return []
    if loaded.designed is not None:
        missed.add(n_tests, "Tests of normality and of forms are not known for surveys")
        return []
    if has_pseudo_weights(fitted.model.fit_):
        missed.add(n_tests, "Tests of normality and of forms are not known for sampling weights")
        return []
    if refitted and len(loaded.y) > QUICK_ROWS:
        why = f"Checks that refit the model take too long with {len(loaded.y):,} rows"
        missed.add(n_tests + _N_REFITS, why)
        return []
    try:
        tests = fitted.best_model.specification_tests(
            loaded.X,
            fitted.outcome,
            selected=loaded.selected,
            sample_weight=loaded.weight,
        )
    except HeckmanfaError as error:
        missed.add(n_tests, f"The model cannot be tested: {str(error).rstrip('.')}")
        return []
    return tests.findings()


def _ratio_of_best(fitted: FittedQuestion, missed: _Missed) -> list[Fact]:
    """Judge predictions of an averaged log outcome on its own scale, by those of the best set."""
    if not fitted.model.fit_.way.is_average or fitted.model.fit_.spec.outcome_transform is None:
        return []
    best = fitted.ratio_model
    if isinstance(best, str):
        missed.add(1, best)
        return []
    return ratio_facts(
        best.fit_.transform_ratio, set_words(fitted.sources(best.prediction_features_))
    )


def _with_form(checks: Sequence[Check], *, ml: bool) -> Sequence[Check]:
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


def _with_best_set(fitted: FittedQuestion, facts: list[Fact], missed: _Missed) -> list[Fact]:
    """Say how often the best set wins in samples of the rows, in place of its weight alone."""
    fit = fitted.model.fit_
    if not fit.way.searched or fit.way.halves_rows:
        return facts
    drawn = resample(fitted)
    if isinstance(drawn, str):
        missed.add(1, drawn)
        return facts
    said = best_set_finding(fitted, drawn)
    weight = next((fact for fact in facts if fact.key == "best_set"), said)
    if said.level == "ok" and weight.level != "ok":
        # No sample contradicts it, but its weight does.
        said = replace(weight, meaning=f"{weight.meaning} {said.meaning}")
    return [*(fact for fact in facts if fact.key != "best_set"), said, *drawn.findings]


def _of_crowding(fitted: FittedQuestion) -> list[Fact]:
    """Say that the rows are few for the features of the selection equation."""
    fit = fitted.model.fit_
    if fit.probit is None or not is_crowded(fit):
        return []
    rarer = "with" if fit.row_counts["selected"] < fit.row_counts["unselected"] else "without"
    value = (
        f"{rows_per_feature(fit):.1f} rows {rarer} an outcome for each of "
        f"{plural(len(fit.probit.features), 'coefficient')}, where {ENOUGH_ROWS} would do"
    )
    return [Fact("crowded", "caution", value)]


def _of_rows(fitted: FittedQuestion) -> list[Fact]:
    """Count the rows that were left out for other reasons than that they lack a feature."""
    funnel = fitted.funnel
    others = [loss for loss in funnel.left_out if loss.reason not in (LACKING, NOT_DATA)]
    # A large loss is a fact of its own, with every reason.
    if not others or funnel.is_large_loss:
        return []
    words = f"Of {plural(funnel.read, 'row')}, {listed([loss.words for loss in others])}."
    return [Fact("rows_dropped", "note", meaning=words)]


def _of_codes(fitted: FittedQuestion) -> list[Fact]:
    """Name the numbers that look like codes for missing: in the outcome they spoil everything."""
    facts: list[Fact] = []
    levels: tuple[tuple[str, Level, bool], ...] = (
        ("outcome_code", "problem", True),
        ("feature_codes", "caution", False),
    )
    for key, level, of_outcome in levels:
        codes = [code for code in fitted.suspicions if code.is_outcome is of_outcome]
        some = codes[:_LISTED]
        if some:
            words = " ".join(code.words for code in some)
            held = listed([f"{code.code:g} in {plural(code.rows, 'row')}" for code in some])
            advice = {"advice": " ".join(code.do for code in some)}
            facts.append(Fact(key, level, held, words, values=advice))
    return facts


def _of_totals(fitted: FittedQuestion) -> list[Fact]:
    """Name rows that look like totals, which are no data."""
    totals = [total for total in fitted.total_rows if not total.is_note][:_LISTED]
    if not totals:
        return []
    advice = {"advice": " ".join(total.do for total in totals)}
    value = plural(sum(total.rows for total in totals), "row")
    words = " ".join(total.words for total in totals)
    return [Fact("total_rows", "problem", value, words, values=advice)]


def _of_derived(fitted: FittedQuestion) -> list[Fact]:
    """Name the columns that are squares or products of others."""
    if not fitted.derived_columns:
        return []
    said = [_made_from(name, others) for name, others in fitted.derived_columns.items()]
    searched = fitted.model.fit_.way.searched
    apart = "the search takes them apart" if searched else "each has a coefficient of its own"
    if len(said) == 1:
        all_of = "Both" if len(next(iter(fitted.derived_columns.values()))) == 1 else "All three"
        words = f"{all_of} are columns here; {apart}."
        return [Fact("derived", "note", meaning=words, values={"made": said[0]})]
    more = f"; and {len(said) - _LISTED} more" if len(said) > _LISTED else ""
    words = f"{'; '.join(said[:_LISTED])}{more}. {apart[0].upper()}{apart[1:]}."
    made = {"made": "Some columns are squares or products of others"}
    return [Fact("derived", "note", f"{len(said)} columns", words, values=made)]


def _made_from(name: str, others: Sequence[str]) -> str:
    what = "square" if len(others) == 1 else "product"
    return f"{said(name)} is the {what} of {listed(said_all(others))}"

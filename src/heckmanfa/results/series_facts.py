"""Facts of a series in the selection index: how many terms it has, and what it says of a level."""

from __future__ import annotations

from heckmanfa.fit import Fit
from heckmanfa.results.distribution import LEVEL
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import UNTESTED, Fact
from heckmanfa.results.fit_tests import series_wald
from heckmanfa.text.wording import number, p_equals, plural


def series_facts(fit: Fit) -> list[Fact]:
    """Say what a series consists of, and whether the intercept is identified; of no other model."""
    terms = fit.dependence_terms
    if len(terms) < 2 or fit.details is None:
        return []
    n, errors = len(terms) - 1, fit.details.left_out_errors
    if len(errors):
        least, tried = number(float(min(errors))), len(errors)
        how = f"cross-validation chose among 1 to {tried}: its mean squared error is {least}"
        series = tell(fit, "series", "note", plural(n, "term"), how=how)
    else:
        series = tell(fit, "series", "note", plural(n, "term"), case="given")
    told = [series, _test(fit)]
    rows = fit.details.level_rows
    if rows is None:
        return [*told, tell(fit, "series_intercept", "note", "not identified", short="none")]
    level = tell(fit, "series_intercept", "caution", f"{rows:,.10g} rows", case="at infinity")
    return [*told, level]


def _test(fit: Fit) -> Fact:
    """Judge whether the series is flat."""
    test = series_wald(fit)
    if test.note:
        return tell(fit, "series_test", "caution", str(test), case=UNTESTED)
    case = "" if test.p_value < LEVEL else "not rejected"
    return tell(fit, "series_test", "ok", str(test), case=case, p=p_equals(test.p_value))

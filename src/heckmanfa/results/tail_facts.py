"""The fact about the tails of errors: whether t errors are needed, or the normal model does."""

from __future__ import annotations

import numpy as np

from heckmanfa.fit import Fit
from heckmanfa.results.distribution import LEVEL
from heckmanfa.results.fact_words import tell
from heckmanfa.results.facts import UNTESTED, Fact
from heckmanfa.results.fit_tests import normal_errors_lr
from heckmanfa.text.wording import number


def tail_facts(fit: Fit) -> list[Fact]:
    """Judge the degrees of freedom of t errors; nothing where errors are normal."""
    if fit.family.can("normal errors") or fit.probit is None:
        return []
    df, test = fit.error_values["df"], normal_errors_lr(fit)
    if df <= 1.0:
        return [tell(fit, "tails", "problem", number(df), case="no mean")]
    if np.isinf(df):
        return [tell(fit, "tails", "note", "infinite", case="infinite")]
    if test is None:
        return [tell(fit, "tails", "ok", number(df), case=UNTESTED)]
    case = "" if test.p_value < LEVEL else "normal"
    return [tell(fit, "tails", "note" if case else "ok", f"{number(df)}; {test}", case=case)]

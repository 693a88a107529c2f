"""Whether the excluded features drive selection, and how strongly, in words."""

from __future__ import annotations

from collections.abc import Sequence

from heckmanfa.results.document import Finding
from heckmanfa.results.reference import LEVEL, Wald
from heckmanfa.text.chances import BY
from heckmanfa.text.wording import number

PROFILE_INSTEAD = "See profile() for intervals of slopes, which cover better than standard errors."
"""what to do about weak exclusions after maximum likelihood"""

STRONG_CHI2 = 10.0
"""chi-squared of strong exclusions, for each of them"""


def about_exclusions(
    names: Sequence[str],
    n_excluded: int,
    test: Wald,
    *,
    strong: bool,
    clustered: bool,
    averaged: bool = False,
    profiled: bool = False,
) -> Finding:
    """Say whether the excluded features drive selection, as far as that was tested.

    ``names`` are theirs, of which a category has one; ``n_excluded`` counts their coefficients.
    ``strong`` is whether they do so for their number; ``clustered`` whether a finding about
    clusters follows; ``averaged`` whether they are only less likely than not to predict;
    ``profiled`` whether a profile of the likelihood has valid intervals.
    """
    single, case = len(names) == 1, ""
    drive = "it drives" if single else "they drive"
    if test.note:
        # That finding says why a covariance from few clusters tests little.
        see = ": see the line on clusters" if clustered and test.lacks_clusters else ""
        case, words = "untested", f"Whether {drive} selection was not tested{see}."
    elif strong:
        words = "Together they drive selection. That they do not predict cannot be tested here."
        if single:
            words = "It drives selection. That it does not predict cannot be tested here."
        if averaged:
            who = "It drives" if single else "Together they drive"
            words = f"{who} selection, and may predict."
    elif not test.p_value < LEVEL:
        case = "undriving"
        words = f"There is no evidence that {drive} selection: little identifies the model."
    elif single:
        words = "It drives selection weakly: little identifies the model."
    else:
        words = "For their number they drive selection weakly: little identifies the model."
    if profiled and not strong:
        words += f" {PROFILE_INSTEAD}"
    value = f"{len(names)} ({', '.join(names)}); {test}"
    key, name = exclusions_line(averaged=averaged)
    short = str(test)
    if not strong and not test.note:
        features = "one feature" if single else f"{n_excluded} features"
        if n_excluded > len(names):
            features = f"{n_excluded} coefficients"
        short = (
            f"chi2 = {number(test.chi2, 3)} for {features}; {STRONG_CHI2 * n_excluded:,g} would "
            "be strong"
        )
    return Finding(key, name, value, "ok" if strong else "caution", words, case=case, short=short)


def exclusions_line(*, averaged: bool) -> tuple[str, str]:
    """Return the key and the name of the finding about exclusions: an average has none."""
    if averaged:
        return "less_likely", f"selection features with a {BY} share below 50%"
    return "exclusions", "excluded features"

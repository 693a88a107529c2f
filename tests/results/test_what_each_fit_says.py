"""What each kind of fit is told about itself: every diagnostic and caveat, none more, in order."""

from __future__ import annotations

import warnings

import pytest
from tests.scenes import FITS

from heckmanfa.errors import HeckmanfaWarning

MARKS = {"ok": "", "note": "", "caution": "?", "problem": "!"}


def said(model):
    """Return the keys of all diagnostics, then of what the summary tells besides.

    They have ? for a caution, ! for a problem.
    """
    facts = model.diagnostics().facts
    keys = [
        f"{fact.key}{MARKS[fact.level]}{f'({fact.case})' if fact.case else ''}" for fact in facts
    ]
    pairs = list(zip(facts, keys, strict=True))
    others = [key for fact, key in pairs if fact.sentence and not fact.name]
    return " ".join(key for fact, key in pairs if fact.name), " ".join(others)


# The records hold the facts of all other fits.
SAID = {
    "5 clusters, ml": (
        "exclusions imr_r2 condition rho rho_test?(not rejected) hausman equal_variance? "
        "imr_range clusters!(too few) uncertainty what_if",
        "rho_scale adjusted_r2(likelihood) reference_distribution",
    ),
    "outcome decided": (
        "selection? events outcome_separation! condition",
        "slopes criteria",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_every_check_and_caveat_of_a_fit_and_none_more(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model = FITS[name]()
    assert said(model) == SAID[name]

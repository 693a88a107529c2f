"""Words of the checks where the outcome is binary, if these differ from those of other outcomes.

The Heckman probit has no two-step estimates and no lambda, and its searches are fewer.
"""

from __future__ import annotations

from dataclasses import replace

from heckmanfa.results.check_kinds import STRONGER, CheckWords
from heckmanfa.results.check_words import CHECK_WORDS

_CHANCES = "Report the chance of each feature, not this set alone."
_SET_CHANCES = {"chosen": _CHANCES, "searched": _CHANCES}


def check_words(key: str, *, binary: bool) -> CheckWords:
    """Return the words of a check."""
    return BINARY_CHECK_WORDS.get(key, CHECK_WORDS[key]) if binary else CHECK_WORDS[key]


BINARY_CHECK_WORDS: dict[str, CheckWords] = {
    "convergence": replace(
        CHECK_WORDS["convergence"],
        do="Report none of these estimates. Leave out extreme features with --exclude, or let "
        "fewer features predict (--predict-with).",
    ),
    "rho": replace(
        CHECK_WORDS["rho"],
        do="Report no effect from this fit. Name stronger exclusions with --select-only, or let "
        "fewer features predict (--predict-with).",
    ),
    "normality_selection": replace(
        CHECK_WORDS["normality_selection"],
        why="The correction follows from normal errors: with others, it corrects for something "
        "else.",
    ),
    "heteroskedasticity_selection": replace(
        CHECK_WORDS["heteroskedasticity_selection"],
        why="A probit with one variance then gets the correction wrong.",
    ),
    "normality_prediction": replace(
        CHECK_WORDS["normality_prediction"],
        title="The errors behind {outcome} are not normal.",
        do="Report the range over rho beside the estimate, and do not lean on p-values near 5%.",
        why="Probabilities and the correction for selection both assume that they are.",
    ),
    "best_set": replace(CHECK_WORDS["best_set"], do=_CHANCES, dos=_SET_CHANCES),
    "search": replace(
        CHECK_WORDS["search"], do="Let fewer features predict (--predict-with), and search again."
    ),
    "search_warning": replace(
        CHECK_WORDS["search_warning"],
        do="Let fewer features predict (--predict-with), and search again.",
    ),
    "search_ignored": replace(
        CHECK_WORDS["search_ignored"],
        do="Use --honest, which estimates on rows that had no part in the search.",
    ),
    "near_ties": replace(CHECK_WORDS["near_ties"], do="Report these sets too, or use --honest."),
    "left_out": replace(CHECK_WORDS["left_out"], do="Compare with --search none first."),
    "not_weighed": replace(
        CHECK_WORDS["not_weighed"],
        do="Let fewer features predict (--predict-with), or use --honest.",
    ),
    "exclusions": replace(
        CHECK_WORDS["exclusions"],
        dos={"none": f"{STRONGER} Until then, report the range over rho."},
        whys=dict(CHECK_WORDS["exclusions"].whys)
        | {
            "none": "Only normality then identifies the model, and a binary outcome says little "
            "about the shape of the errors."
        },
    ),
    "stand_ins": replace(
        CHECK_WORDS["stand_ins"],
        name="features that stand in for the correction",
        title="{names} and the correction for selection stand in for each other.",
    ),
    "imr_optional": replace(
        CHECK_WORDS["imr_optional"],
        do="Report a probit of the rows with an outcome beside the corrected estimates.",
    ),
    "rho_lr_test": replace(
        CHECK_WORDS["rho_lr_test"],
        do="Do not take it as evidence for selection, or against it. Look at the checks above "
        "first.",
    ),
    "selection": replace(
        CHECK_WORDS["selection"],
        why="This is a plain probit: there is nothing to correct, and rho is not identified.",
    ),
    "outside_range": replace(
        CHECK_WORDS["outside_range"],
        name="rows outside the range of the selection index",
        why="The correction was learned within the range of the fit and nowhere else.",
    ),
}
"""only the checks whose words differ"""

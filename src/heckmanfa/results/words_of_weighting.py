"""Words of the facts about weights of one over the probability of selection."""

from __future__ import annotations

from heckmanfa.results.facts import FactWords

_POOR = (
    "few rows speak for many that have no outcome, and the normal approximation behind the "
    "standard errors may be poor. Compare with other bounds of the weights, or ask about rows "
    "whose outcome is likely to be known."
)

WEIGHTING: dict[str, FactWords] = {
    "missing_at_random": FactWords(
        line="missing at random",
        meaning="Among rows with the same features, those without an outcome are assumed to be "
        "like those with one. No data without the missing outcomes can test that.",
        sentence="Assumes: {assumption}.",
    ),
    "largest_weights": FactWords(
        line="largest weights",
        meaning={
            "": "No row, and no 1% of the rows, carries much of the weight.",
            "caution": f"Much of the weight is on few rows: {_POOR}",
            "problem": f"Most of the answer comes from very few rows: {_POOR}",
        },
        sentence="Weights: the largest is {largest}, and the largest 1% carry {share}; the "
        "weighted rows are worth {effective} equally weighted ones.",
    ),
    "effective_rows": FactWords(
        line="effective sample size",
        meaning={
            "": "The sum of the weights squared over the sum of their squares.",
            "caution": "The weights differ so much that the rows are worth less than half their "
            "number.",
            "problem": "The weights differ so much that the rows are worth less than a tenth of "
            "their number.",
        },
    ),
    "capped_weights": FactWords(
        line="capped weights",
        meaning="Capped at {clip}, these rows speak for fewer than they stand for, which trades "
        "bias for variance. Standard errors do not show the bias.",
        sentence="The weights of {rows} were capped at {clip}; these rows carry {value}.",
    ),
    "trimmed_rows": FactWords(
        line="trimmed rows",
        meaning="Rows with a probability of selection below {trim} were left out: the estimates "
        "are about the others. Standard errors take it as given which rows these are.",
        sentence="Left out: {value}, whose probability of selection is below {trim}. The "
        "estimates are about the others.",
    ),
    "beyond_overlap": FactWords(
        line="rows beyond the overlap",
        meaning="Rows whose probability of selection is smaller or larger than that of every row "
        "with an outcome: nothing like them has been seen.",
    ),
}

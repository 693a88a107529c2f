"""Words of the facts about bounds that need no model."""

from __future__ import annotations

from heckmanfa.results.facts import FactWords

_BETWEEN = "Without any model {what} lies between {between}{span}."
_MODEL = " The model says {estimate}."
_APART = "{apart}"

BOUNDS: dict[str, FactWords] = {
    "without_model": FactWords(
        "bounds without a model",
        {
            "": "The model's estimate is one of many that the rows allow.",
            "caution": "The model's estimate is beyond what the rows allow.",
            "alone": "Without a model, the rows allow many answers.",
        },
        {
            "": "Say that the rest is the model's: {gap} of the rows have no outcome.",
            "caution": "Check the range of the outcome, and how far the model extrapolates.",
        },
        line="bounds without a model",
        meaning={"": _BETWEEN + _MODEL + _APART, "alone": _BETWEEN + _APART},
        claim={"caution": "That the average of the model holds for all rows"},
        because="without any model {what} lies between {between}, and the model says {estimate}.",
        levels=("caution", "note"),
    ),
}

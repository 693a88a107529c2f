"""The kinds of outcome that a question may have, and the estimators of each, by how they search.

A kind has the name of its `heckmanfa.fit.Family`, which says everything else about it. Nothing
heavy is imported here, so ``--help`` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from heckmanfa.text.option_types import Criterion, Search
from heckmanfa.text.option_words import option


@dataclass(frozen=True)
class OutcomeModel:
    """The estimators of one kind of outcome."""

    estimators: Mapping[Search, str]
    """the class for each search, the usual search first; `model_classes.MODELS` has its module"""
    criteria: tuple[str, ...] = get_args(Criterion)
    """criteria of its searches"""
    lacks: frozenset[str] = frozenset()
    """options of a question that it does not have"""

    @property
    def usual(self) -> Search:
        """The search, unless another is asked for."""
        return next(iter(self.estimators))


OUTCOME_MODELS = {
    "linear": OutcomeModel(
        {
            "average": "HeckmanAverage",
            "best-subset": "HeckmanBestSubset",
            "fa": "HeckmanFA",
            "fa-star": "HeckmanFA",
            "correlation": "HeckmanFA",
            "lasso": "HeckmanLasso",
            "none": "Heckman",
        },
        lacks=frozenset({"positive"}),
    ),
    "binary": OutcomeModel(
        {
            "best-subset": "HeckmanProbitBestSubset",
            "average": "HeckmanProbitAverage",
            "none": "HeckmanProbit",
        },
        criteria=("bic", "ebic", "aic"),
        lacks=frozenset({"rho_range", "outcome_transform", "log_outcome", "errors"}),
    ),
}
"""by the name of the family; the first is fitted unless the outcome or an option says otherwise"""

USUAL_KIND = next(iter(OUTCOME_MODELS))


def as_kind(kind: str) -> str:
    """Name the option that asks for a kind of outcome."""
    return option("outcome_kind", kind)

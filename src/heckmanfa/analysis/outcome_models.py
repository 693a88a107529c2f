"""What a question may be about, and the estimators of each kind, by how they search.

A kind has the name of its `heckmanfa.fit.Family`, which says everything else about it. Nothing
heavy is imported here, so ``--help`` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from heckmanfa.text.option_types import Criterion, Search
from heckmanfa.text.option_words import option

# Options of any model of an outcome that only selected rows have; of those with a rho; of searches;
# and of models whose features can be searched for.
_OF_SELECTION = frozenset({"selected", "profile", "step"})
_OF_RHO = _OF_SELECTION | {"rho", "start"}
_OF_SEARCHES = frozenset({"always", "honest", "search_in", "selection_always", "selection_never"})
_OF_SEARCH = _OF_RHO | _OF_SEARCHES
_OF_TREATMENT = frozenset({"model", "treated", "regimes", "by", "profile", "log_outcome", "always"})
_TREATED = {"treated": "the column of 0 and 1 that says who is treated"}


@dataclass(frozen=True)
class OutcomeModel:
    """The estimators of one kind of outcome."""

    estimators: Mapping[Search, str]
    """the class for each search, the usual search first; `model_classes.MODELS` has its module"""
    criteria: tuple[str, ...] = get_args(Criterion)
    """criteria of its searches"""
    has: frozenset[str] = _OF_SELECTION
    """options of a question that it has and some other kind lacks"""
    asked: Mapping[str, str] = field(default_factory=dict)
    """options that ask for it; empty if its name as the outcome kind does"""
    outcome: str = ""
    """the kind of outcome that it is fitted to; empty if its name is that kind"""
    decides: bool = False
    """whether the outcome may decide for it, where no option does"""
    plural: str = ""
    """what it is fitted to, in messages; by default "outcomes" after its name"""
    needs: Mapping[str, str] = field(default_factory=dict)
    """options that it cannot do without, and what they name"""

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
        has=_OF_SEARCH | {"rho_range", "outcome_transform", "log_outcome", "errors"},
        decides=True,
    ),
    "binary": OutcomeModel(
        {
            "best-subset": "HeckmanProbitBestSubset",
            "average": "HeckmanProbitAverage",
            "none": "HeckmanProbit",
        },
        criteria=("bic", "ebic", "aic"),
        has=_OF_SEARCH | {"positive"},
        decides=True,
    ),
    "ordered": OutcomeModel(
        {
            "none": "HeckmanOrdered",
            "average": "HeckmanOrderedAverage",
            "best-subset": "HeckmanOrderedBestSubset",
        },
        criteria=("bic", "ebic", "aic"),
        has=_OF_RHO | {"positive", "classes", "always"},
    ),
    "series": OutcomeModel(
        {"none": "Heckman"},
        criteria=(),
        has=_OF_SELECTION | {"log_outcome", "n_terms", "intercept"},
        asked={"method": "series"},
        outcome="linear",
        plural="outcomes with a series",
    ),
    "treatment": OutcomeModel(
        {
            # An answer about an average would have chances of instruments in place of instruments.
            "none": "TreatmentModel",
            "best-subset": "TreatmentBestSubset",
        },
        criteria=("bic", "ebic", "aic"),
        has=_OF_TREATMENT | {"start"},
        asked={"model": "treatment"},
        plural="treatments",
        needs=_TREATED,
    ),
    "switching": OutcomeModel(
        {
            # An answer about an average would have chances of instruments in place of instruments.
            "none": "TreatmentModel",
            "best-subset": "TreatmentBestSubset",
        },
        criteria=("bic", "ebic", "aic"),
        has=_OF_TREATMENT,
        asked={"model": "treatment", "regimes": "separate"},
        plural="treatments",
        needs=_TREATED,
    ),
}
"""by the name of the family; the first is fitted unless the outcome or an option says otherwise"""

USUAL_KIND = next(iter(OUTCOME_MODELS))


def asking(kind: str) -> Mapping[str, str]:
    """Return the options that ask for a kind, with their values."""
    return OUTCOME_MODELS[kind].asked or {"outcome_kind": kind}


def outcome_of(kind: str) -> str:
    """Return the kind of outcome that a kind of model is fitted to, as options name it."""
    return OUTCOME_MODELS[kind].outcome or kind


def asked_kind(asked: Any) -> str | None:
    """Return the kind that options ask for; None if that is left to the outcome."""
    # Of several, the one that needs most options, and more than the kind of outcome.
    return max(
        _all_asked(asked),
        key=lambda kind: (len(asking(kind)), "outcome_kind" not in asking(kind)),
        default=None,
    )


def _all_asked(asked: Any) -> list[str]:
    """Return every kind whose options are given."""
    return [
        kind
        for kind in OUTCOME_MODELS
        if all(getattr(asked, name) == value for name, value in asking(kind).items())
    ]


def rival_kinds(asked: Any) -> tuple[str, str] | None:
    """Return two kinds that options ask for at once, though no model is of both; usually none."""
    kind = asked_kind(asked)
    for other in _all_asked(asked):
        if kind is None or asking(other).items() <= asking(kind).items():
            continue
        # A model of its own may ask for an outcome of its kind as well.
        if asking(other) != {"outcome_kind": outcome_of(kind)}:
            return kind, other
    return None


def possible_kinds(asked: Any) -> list[str]:
    """Return the kinds that options leave: one, or those of which the outcome decides."""
    kind = asked_kind(asked)
    if kind is not None:
        return [kind]
    return [kind for kind, models in OUTCOME_MODELS.items() if models.decides]


def words_asking(name: str) -> list[str]:
    """Return the values of an option that ask for kinds, in their order."""
    asked = [asking(kind).get(name) for kind in OUTCOME_MODELS]
    return [value for value in dict.fromkeys(asked) if value is not None]


def as_kind(kind: str, instead_of: str = USUAL_KIND) -> str:
    """Name the options that ask for a kind in place of another."""
    before = {**asking(instead_of), "outcome_kind": ""}
    wanted = asking(kind).items()
    return " and ".join(option(name, value) for name, value in wanted if before.get(name) != value)


def changed_to(kind: str, instead_of: str) -> str:
    """Say how to ask for a kind in place of another, in an imperative."""
    there = {*asking(kind), "outcome_kind"}
    drop = [option(*each) for each in asking(instead_of).items() if each[0] not in there]
    if drop and outcome_of(instead_of) in (kind, instead_of):
        return f"leave out {' and '.join(drop)}"
    return f"pass {as_kind(kind, instead_of)}"


def called(kind: str) -> str:
    """Return what a kind is fitted to, in messages."""
    return OUTCOME_MODELS[kind].plural or f"{kind} outcomes"

"""What makes a model the model that it is: a `Family`.

Everything outside this room asks a family what it has or does, and never which family it is. The
families are in `linear` and `binary`; CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import InputError
from heckmanfa.model.error_terms import IMR, SIGMA, ErrorTerm, single_correlation
from heckmanfa.model.expectation_parts import Parts
from heckmanfa.model.joint_problem import SelectionProblem
from heckmanfa.model.likelihood import JointMaximum
from heckmanfa.model.likelihood_guards import LikelihoodGuards
from heckmanfa.model.links import Link, normal_link
from heckmanfa.model.newton import StartsByRho
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.own_scale import OwnScale
from heckmanfa.model.probit_likelihood import Apart
from heckmanfa.model.two_step import TwoStep
from heckmanfa.text.option_types import CovType, Method

Capability = Literal[
    "compressed data",
    "two steps",
    "residuals",
    "bounds of rho",
    "calibration",
    "lambda",
    "profiles",
    "refits",
    "single outcome equation",
    "single rho",
    "report",
    "programs",
    "specification tests",
    "normal errors",
    "profile of df",
    "shared refits",
    "honest halves",
]
"""what only some families support; see `Family.can`"""


@dataclass(frozen=True)
class Equation:
    """One equation of a model."""

    name: str
    """in tables and covariances"""
    heading: str
    """above its rows of a table; ``{outcome}`` stands for the name of the outcome"""
    columns: Literal["prediction", "selection", "none"]
    """which columns it has: those that predict, those that drive selection, or a constant alone"""
    rows: Literal["selected", "unselected", "all"]
    """which rows it is about: its columns must be known there"""
    constant: str = "Intercept"
    """name of its constant in tables and covariances"""


PREDICTION = Equation("prediction", "Prediction equation ({outcome})", "prediction", "selected")
SELECTION = Equation("selection", "Selection equation (probit)", "selection", "all")
BOTH = (PREDICTION, SELECTION)
"""the equations of a selection model"""


class Details:
    """What a family keeps of a fit beyond its estimates.

    A family fills what it has: outputs that need any of it ask whether it is there.
    """

    own_scale: OwnScale | None = None
    """what a fit on the log of an outcome knows of the outcome's own scale"""
    rho_scores: Floats | None = None
    """what gives robust or cluster standard errors at any given rho"""
    guards: LikelihoodGuards | None = None
    """maximum likelihood beside the two-step estimates; None unless it is at a proper maximum"""
    class_counts: tuple[float, ...] | None = None
    """selected rows of each class of an ordered outcome, the lowest first"""

    or_higher: bool = False
    """whether the positive of two classes stands for higher ones of an ordered outcome, too"""
    left_out_errors: tuple[float, ...] = ()
    """mean squared leave-one-out errors of series of 1, 2, ... terms; empty unless these chose"""
    level_rows: float | None = None
    """selected rows that identify the intercept at infinity; None if it is not identified there"""

    @property
    def naive_errors(self) -> Mapping[str, float]:
        """Error terms that the naive model has, too, by name."""
        return {}

    @property
    def beside(self) -> tuple[float, ...]:
        """Estimates beside the model's that have standard errors of their own."""
        return ()

    def with_errors_beside(self, errors: Floats) -> Details:
        """Return the same with other standard errors of the estimates ``beside``."""
        return self

    def public(self, fit: Any) -> dict[str, Any]:
        """Return attributes of fitted models that only this family has."""
        return {}

    normal_log_likelihood: float | None = None
    """of the same model with normal errors, where they are not assumed; NaN if it is not known"""

    def averaged(self) -> Details | None:
        """Return what remains if averages replace the estimates."""
        return self

    def rescaled(self, ratio: Floats, moved: Floats) -> Details:
        """Return the same for other estimates.

        ``ratio`` is that of their standard errors, in the order of the covariance; ``moved`` the
        change of the prediction equation, intercept first.
        """
        return self


@dataclass(frozen=True)
class FamilyWords:
    """How sentences speak of a family."""

    model: str
    """"Heckman model": what it is called, after an article"""
    title: str
    """what a summary calls it"""
    short: str
    """a label for it beside other models"""
    all_features_model: str
    """the model of all features that stands beside it, after an article"""
    naive: str
    """the model of the rows with an outcome that ignores selection"""
    naive_short: str
    """the same, as a label"""
    naive_of: str
    """"least squares on": the same, before the rows"""
    plain: str
    """what is fitted if no outcome is missing"""
    plain_short: str
    """the same, as a label"""
    by_naive: str
    """"By least squares": how the naive estimate opens a sentence"""
    correction: str
    """what corrects for selection"""
    correction_subject: str
    """the same, as the subject of a sentence"""
    correction_parameter: str
    """what the correction adds to the parameters of the prediction equation"""
    searches: str
    """the estimators that search for features"""
    weighing: str
    """the estimators that weigh assignments"""
    averages: str
    """the estimator that averages over them"""
    effect: str
    """what an effect is, at the start of a sentence"""
    changes: str
    """what a feature would change by its effect, if it were causal"""
    likelihood_cure: str
    """what to do about a likelihood that did not converge, in clauses"""
    near_one: str
    """what a rho near one means, after "practically one" """
    only_normality: str
    """what it means that nothing is excluded, in a sentence"""
    if_not_normal: str
    """what to do if the errors of the outcome are not normal"""
    other_estimates: str
    """what to do instead of trusting the estimates"""
    other_test: str
    """what to do instead of trusting a likelihood ratio"""
    lacking: Mapping[Capability, str] = field(default_factory=dict)
    """what the family does not have and what to use, by capability: how `Family.require` refuses"""
    lacking_averaged: Mapping[Capability, str] = field(default_factory=dict)
    """the same for averages over assignments, where these have something else to use"""
    unit: str = ""
    """what effects are in, after a number and a blank; empty in units of the outcome"""
    factor: float = 1.0
    """what turns an effect into that unit"""
    test: str = "test of rho = 0"
    """the test of whether a correction is needed"""
    law: str = ""
    """"t", or "series" if none is supposed: the law of its errors; empty if they are normal"""
    sources: tuple[str, ...] = ()
    """what to cite for it, beside Heckman"""
    estimation: str = ""
    """how it is estimated, in a sentence; empty if its method says so"""
    selection: str = "probit"
    """what the selection equation is"""
    separates: str = "selection"
    """what a separating feature decides"""
    rows: tuple[str, str] = ("Selected", "Not selected")
    """labels of the rows that are selected, and of the others"""
    assumes: str = "the errors of both equations are jointly normal"
    """what is assumed of the errors"""


@dataclass(frozen=True, eq=False)
class Beginning:
    """The joint likelihood of a fit, and where its maximization starts."""

    first: TwoStep | Apart
    """estimates of the first step, or of both equations apart"""
    problem: SelectionProblem
    starts: StartsByRho
    usual: Floats
    """the usual start"""


def itself(fit: Any, place: int | None = None) -> Any:
    """Return the fit: an answer about its outcome is about its own effects."""
    return fit


def log_not_selected(index: Floats, errors: Mapping[str, float]) -> Floats:
    """Log-likelihood of rows that are not selected, whose outcome says nothing."""
    return np.asarray(log_cdf(-index))


@dataclass(frozen=True, eq=False)
class Family:
    """One model: its parameters, how it is estimated, what it expects, and its words.

    Functions are called with what their comments say; `Spec` and `Fit` are those of
    `heckmanfa.fit.fitted`, `Inputs` those of `heckmanfa.fit.making`.
    """

    name: str
    """in model files, and as the kind of outcome"""
    words: FamilyWords
    equations: tuple[Equation, ...]
    """in the order of tables and covariances"""
    error_terms: tuple[ErrorTerm, ...]
    """parameters of the errors, as tables show them"""
    dependence: tuple[str, ...]
    """error terms on which expectations given selection depend: one, or those of a series"""
    methods: tuple[Method, ...]
    """how it can be estimated, the usual one first"""
    supports: frozenset[Capability]
    first_step: Callable[..., Any]
    """(spec, sample, check_left): the selection equation, and the compressed selected rows"""
    estimate: Callable[..., Any]
    """(inputs): the `Fit` of chosen features, given its `Inputs`"""
    estimate_alone: Callable[..., Any]
    """(spec, sample, kind): the `Fit` if no outcome is missing"""
    naive: Callable[..., tuple[Floats, float]]
    """(fit): coefficients of the model that ignores selection, intercept first, and the
    log-likelihood of both equations apart"""
    parts: Callable[..., Parts]
    """(kind, mean, index, dependence): an expectation with its derivatives"""
    log_density: Callable[..., Floats]
    """(index, mean, outcome, errors): log-likelihood of selected rows, given `Fit.error_values`"""
    log_missing: Callable[..., Floats] = log_not_selected
    """(index, errors): log-likelihood of rows that are not selected"""
    begin: Callable[..., Beginning] | None = None
    """(moments, probit, features, rows): the joint likelihood of some features, for profiles"""
    refit: Callable[..., JointMaximum | str] | None = None
    """(moments, probit, rows, features, kind, start, alone): other features by maximum likelihood,
    or the reason why not"""
    average_details: Callable[..., Details | None] | None = None
    """(fit, groups, first): what the family keeps of an average, given its assignments in groups;
    None if that follows from the estimates"""
    has_classes: bool = False
    """whether outcomes are labels of two classes, so that expectations are probabilities"""
    is_ordered: bool = False
    """whether outcomes are labels of ordered classes, so that expectations are of a latent one"""
    answered: Callable[..., Any] = itself
    """(fit, place): the fit whose effects an answer is about; of ordered classes, that of reaching
    the class at a place, the highest unless it is given"""
    of_number: Callable[[Family, int], Family] | None = None
    """(family, number): the family of so many classes of the outcome, or terms of a series, whose
    error terms vary by it; None if no number does"""
    link: Callable[..., Link] = normal_link
    """(errors): what the error of the selection equation makes of its index"""
    shape: str | None = None
    """an error term on which expectations depend as well, which ``parts`` then takes last; its
    derivatives are those of `Parts` in sigma"""
    needs_missing: bool = True
    """whether there is something to correct only if outcomes are missing"""
    cov_types: tuple[CovType, ...] = ("classical", "robust", "cluster", "survey")
    """covariances that it has, the usual one first"""
    parameters: frozenset[str] = frozenset()
    """parameters of its estimator that only it takes"""
    refuses: Mapping[str, str] = field(default_factory=dict)
    """parameters of its estimator that it has no use for, and why, in a sentence"""
    is_bounded: bool = False
    """whether the likelihood is bounded: only its highest point is then the estimate"""

    @property
    def reads_labels(self) -> bool:
        """Whether outcomes are labels of classes, two or more."""
        return self.has_classes or self.is_ordered

    @property
    def sees_everyone(self) -> bool:
        """Whether rows that are not selected have an outcome, too."""
        return any(
            each.columns == "prediction" and each.rows != "selected" for each in self.equations
        )

    @property
    def term_names(self) -> tuple[str, ...]:
        """Names of the error terms."""
        return tuple(term.name for term in self.error_terms)

    @property
    def likelihood_terms(self) -> tuple[ErrorTerm, ...]:
        """Error terms that the likelihood has as parameters, in its order: tables reverse it."""
        return tuple(term for term in reversed(self.error_terms) if term.transform is not None)

    @property
    def correlation(self) -> str | None:
        """Name of the one correlation of the errors; None if there are several or none."""
        return single_correlation(self.error_terms)

    @property
    def rho_in_params(self) -> int | None:
        """Where the parameters of the likelihood have that correlation, counted from their end."""
        names = [term.name for term in self.likelihood_terms]
        return None if self.correlation is None else names.index(self.correlation) - len(names)

    @property
    def has_imr(self) -> bool:
        """Whether the inverse Mills ratio has a coefficient in the prediction equation."""
        return IMR in self.error_terms

    @property
    def has_sigma(self) -> bool:
        """Whether the scale of the outcome's error is estimated."""
        return SIGMA in self.error_terms

    def can(self, capability: Capability) -> bool:
        """Whether the family declares a capability, or has what it takes."""
        follows = {
            "lambda": self.has_imr,
            "profiles": self.begin is not None,
            "refits": self.refit is not None,
            "single outcome equation": PREDICTION.name in {each.name for each in self.equations},
            "single rho": self.correlation is not None,
            # What every family has that does not say that it lacks it.
            "report": "report" not in self.words.lacking,
            "programs": "programs" not in self.words.lacking,
            "specification tests": "specification tests" not in self.words.lacking,
            "normal errors": self.shape is None,
        }
        return follows.get(capability, capability in self.supports)

    def require(self, capability: Capability, *, averaged: bool = False) -> None:
        """Refuse what only other families have, and say what to use, in an average if it is one."""
        if not self.can(capability):
            lacking = self.words.lacking.get(capability, f"no {capability}")
            if averaged:
                lacking = self.words.lacking_averaged.get(capability, lacking)
            raise InputError(f"the {self.words.model} has {lacking}")


_FAMILIES: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Let fits and model files know a family by its name."""
    _FAMILIES[family.name] = family
    return family


def is_family(name: str, number: int | None = None) -> bool:
    """Whether a family is registered under a name, and has so many classes or terms."""
    try:
        family_named(name, number)
    except InputError:
        return False
    return True


def family_named(name: str, number: int | None = None) -> Family:
    """Return a registered family, that of so many classes or terms once their number is known."""
    if name not in _FAMILIES:
        raise InputError(f"there is no family {name!r}; there are {', '.join(sorted(_FAMILIES))}")
    family = _FAMILIES[name]
    return family if number is None else _numbered(family, number)


@cache
def _numbered(family: Family, number: int) -> Family:
    """Return the family of so many classes or terms, the same one each time."""
    if family.of_number is None:
        raise InputError(f"the {family.words.model} has no number of classes or terms")
    return family.of_number(family, number)

"""Ways to search for prediction features, each with its options.

A strategy is called with the compressed data and what may be chosen, and returns the assignments
that it evaluated, best first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import Mask, Rows
from heckmanfa.errors import (
    CollinearError,
    InputError,
    NoFeasibleAssignmentError,
    SearchWarning,
    warn,
)
from heckmanfa.model.equations import say_dropped
from heckmanfa.model.linalg import collinear_error, dependencies, solve_upper, subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.search.best_subset.branch_and_bound import best_subset, node_budget
from heckmanfa.search.choices import Choices
from heckmanfa.search.fitted_form import FittedForm
from heckmanfa.search.full_model import FullModel
from heckmanfa.search.goal import Goal, distinct
from heckmanfa.search.searched import Search, evaluate
from heckmanfa.search.training.assignment_function import StepOn, Trained, assign, train
from heckmanfa.text.option_types import OnProblem, Standardize
from heckmanfa.text.option_words import OR_DROP, instead, option
from heckmanfa.text.printable import quoted
from heckmanfa.text.progress import progress_line

Extraction = Literal["sample", "rank", "correlation"]
_RETRAIN = instead(
    "Use fewer epochs or a smaller learning_rate.",
    f"Try another {option('seed')} or {option('search')}.",
)
_NO_GROUPS = instead(
    "use another search, such as HeckmanBestSubset, or name each of these columns in its own "
    "group in feature_groups",
    f"use another search, such as {option('search', 'best-subset')}, or leave the column out with "
    f"{option('exclude')}",
)


@dataclass(frozen=True)
class SearchProblem:
    """The problem that a search solves."""

    moments: Moments
    rows: Rows
    choices: Choices
    goal: Goal
    labels: Sequence[str]
    """a name for every column of X"""
    random_state: Any = None
    full: FullModel | FittedForm | None = None
    """the model of all candidates, unless compressed rows have all assignments"""


class Strategy(Protocol):
    """A way to search."""

    def __call__(self, problem: SearchProblem) -> tuple[Search, Trained | None]:
        """Search; return the training as well, if any."""
        ...

    def for_replicates(self) -> Self:
        """Return the same search without progress, and without what only reports need."""
        ...


@dataclass(frozen=True)
class BestSubset:
    """The best of all assignments, by branch and bound."""

    tolerance: float | None = None
    max_nodes: int | None = None
    verbose: int = 0
    only_best: bool = False

    def __call__(self, problem: SearchProblem) -> tuple[Search, None]:
        """Search the tree of all assignments."""
        criterion = problem.goal.criterion
        most = node_budget(problem.choices) if self.max_nodes is None else self.max_nodes
        with progress_line(self.verbose, "search", "nodes", most, at_most=True) as show:
            result = best_subset(
                problem.moments,
                problem.choices,
                problem.goal,
                names=problem.labels,
                tolerance=self.tolerance,
                max_nodes=self.max_nodes,
                only_best=self.only_best,
                progress=None
                if show is None
                else lambda nodes, best, bound: show(
                    nodes, f"best {criterion} {best:.6g}, bound {bound:.6g}"
                ),
            )
        return result, None

    def for_replicates(self) -> Self:
        """Return the same search without nearly best assignments."""
        return replace(self, tolerance=0.0, verbose=0, only_best=True)


@dataclass(frozen=True)
class AdaptiveLasso:
    """The assignments on the path of an adaptive lasso."""

    power: float = 1.0
    on_collinear: OnProblem = "error"

    def __call__(self, problem: SearchProblem) -> tuple[Search, None]:
        """Follow the path; collinear candidates are refused or dropped."""
        moments, choices, goal = problem.moments, problem.choices, problem.goal
        try:
            return lasso(moments, choices, goal, names=problem.labels, power=self.power), None
        except CollinearError as error:
            if self.on_collinear != "drop":
                raise
            away = [column for column in error.columns if column not in choices.always]
            if not away:
                raise
            say_dropped(away, problem.labels, error.reason)
            fewer = choices.without_columns(away)
            return lasso(moments, fewer, goal, names=problem.labels, power=self.power), None

    def for_replicates(self) -> Self:
        """Nothing changes."""
        return self


@dataclass(frozen=True)
class FeatureAssignment:
    """The paper's method: assignments proposed by a trained assignment function, or ranked."""

    extraction: Extraction
    init_prob: float
    epochs: int
    learning_rate: float
    temperature: float
    n_draws: int
    standardize: Standardize
    step_on: StepOn
    record_path: int
    train_rows: int | None
    verbose: int = 0

    def __call__(self, problem: SearchProblem) -> tuple[Search, Trained | None]:
        """Train, then draw or rank assignments (Algorithms 3 and 4)."""
        moments, choices, goal = problem.moments, problem.choices, problem.goal
        names = problem.labels
        if self.extraction == "correlation":
            return rank(moments, choices, goal, correlations(moments, choices), names=names), None
        source = generator(problem.random_state)
        trained = self._train(problem, source)
        if self.extraction == "rank":
            result = rank(moments, choices, goal, trained.log_pi[1], names=names)
        else:
            result = sample(
                moments,
                choices,
                goal,
                trained.log_pi,
                names=names,
                n_draws=self.n_draws,
                random_state=source,
            )
        if trained.interrupted:
            ended = (
                f"The training was interrupted after {trained.n_epochs} of {self.epochs} epochs."
            )
            result = replace(result, early_stop=ended, interrupted=True)
        return result, trained

    def for_replicates(self) -> Self:
        """Show no progress."""
        return replace(self, verbose=0)

    def _train(self, problem: SearchProblem, source: Any) -> Trained:
        with progress_line(self.verbose, "training", "epochs", self.epochs) as show:
            trained = train(
                problem.moments,
                problem.rows,
                init_prob=self.init_prob,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                temperature=self.temperature,
                step_on=self.step_on,
                standardize=self.standardize,
                choices=problem.choices,
                record_path=self.record_path,
                train_rows=self.train_rows,
                random_state=source,
                progress=None
                if show is None
                else lambda epoch, mae: show(epoch, f"mean absolute error {mae:.5g}"),
            )
        if trained.interrupted:
            warn(
                f"the training was interrupted after {trained.n_epochs} of {self.epochs} epochs; "
                "the assignment is chosen with the probabilities it had reached",
                SearchWarning,
            )
        if trained.n_unsolved:
            warn(
                f"{trained.n_unsolved} of {trained.n_epochs} epochs drew features that are "
                "collinear among the selected rows, or more than these can identify, and made "
                "no step",
                SearchWarning,
            )
        return trained


_DRAWS_AT_ONCE = 4096


def sample(
    moments: Moments,
    choices: Choices,
    goal: Goal,
    log_pi: Floats,
    *,
    names: Sequence[str],
    n_draws: int = 1000,
    noise: Floats | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Search:
    """Evaluate the distinct assignments among B = ``n_draws`` draws with the trained probabilities.

    A draw of more than ``max_features`` columns keeps those with the highest scores. ``log_pi``,
    (2, K), is that of `assignment.train`; Gumbel ``noise``, (B, 2, K), replays a run.
    """
    first = [unit[0] for unit in choices.units]
    unit_log_pi = log_pi[:, first]
    generator = np.random.default_rng(random_state)
    if noise is not None and (noise.ndim != 3 or noise.shape[1:] != log_pi.shape):
        raise InputError(f"noise must have the shape (B, 2, {log_pi.shape[1]}); got {noise.shape}")
    total = n_draws if noise is None else len(noise)
    drawn = np.zeros((0, len(first)), dtype=bool)
    for start in range(0, total, _DRAWS_AT_ONCE):
        size = min(_DRAWS_AT_ONCE, total - start)
        gumbel = (
            generator.gumbel(size=(size, 2, len(first)))
            if noise is None
            else noise[start : start + size, :, first]
        )
        inside = _cut(choices, assign(unit_log_pi, gumbel), unit_log_pi + gumbel)
        inside = inside[choices.allowed(inside)]
        drawn = distinct(np.concatenate([drawn, inside]))
    if len(drawn) == 0:
        raise NoFeasibleAssignmentError(
            f"each of the {total} draws is empty, and an empty assignment is not allowed: the "
            "training left every feature a probability of at most "
            f"{np.exp(unit_log_pi[1].max(initial=-np.inf)):.2g}. {_RETRAIN}"
        )
    return evaluate(moments, goal.among(choices), choices.masks(drawn), names=names)


def _cut(choices: Choices, inside: Mask, scores: Floats) -> Mask:
    """Keep the likeliest units of draws with more than ``max_features`` columns."""
    size = inside @ choices.sizes + len(choices.always)
    for row in np.flatnonzero(size > choices.max_features):
        lead = scores[row, 1] - scores[row, 0]
        room = choices.max_features - len(choices.always)
        for unit in np.argsort(-lead, kind="stable"):
            if inside[row, unit]:
                room -= choices.sizes[unit]
                inside[row, unit] = room >= 0
    return inside


def rank(
    moments: Moments, choices: Choices, goal: Goal, scores: Floats, *, names: Sequence[str]
) -> Search:
    """Evaluate the top J features by a score, (K,), for J from 0 to one less than all.

    Ties go in column order. A unit of several columns has the score of its first. ``names`` label
    the columns of X.
    """
    n_units = len(choices.units)
    order = np.argsort(-scores[[unit[0] for unit in choices.units]], kind="stable")
    # With all features only normality identifies the model; a single feature is evaluated anyway.
    longest = max(n_units - 1, min(n_units, 1))
    inside = np.zeros((longest + 1, n_units), dtype=bool)
    for length in range(1, longest + 1):
        inside[length:, order[length - 1]] = True
    inside = inside[choices.allowed(inside)]
    return evaluate(moments, goal.among(choices), choices.masks(inside), names=names)


def correlations(moments: Moments, choices: Choices) -> Floats:
    """Absolute correlation of each feature with the outcome among the selected rows, (K,).

    Columns of a unit share their multiple correlation; features that may not predict have zero.
    """
    strength = np.zeros(moments.n_features)
    for unit in choices.units:
        r = subset_factor(moments.factor, [0, *moments.places(unit), len(moments.columns) + 2])
        explained = float(np.sum(r[1:-1, -1] ** 2))
        strength[list(unit)] = np.sqrt(explained / moments.total_squares)
    return strength


_LENGTH = 1e6
_LIGHTEST = 1e-6


def lasso(
    moments: Moments, choices: Choices, goal: Goal, *, names: Sequence[str], power: float = 1.0
) -> Search:
    """Evaluate the assignments on the path of the adaptive lasso.

    Units must be single columns; columns that are always in are also partialled out. The weights
    are the least-squares coefficients to a ``power``. ``names`` label the columns of X.
    """
    group = next((unit for unit in choices.units if len(unit) > 1), None)
    if group is not None:
        raise InputError(
            "the lasso chooses single columns, and cannot keep a group together, such as that of "
            f"{quoted(names[group[0]])}: {_NO_GROUPS}"
        )
    columns = [unit[0] for unit in choices.units]
    if not columns:
        return evaluate(
            moments, goal.among(choices), choices.masks(np.zeros((1, 0), dtype=bool)), names=names
        )
    k = len(moments.columns)
    first = [0, k + 1, *moments.places(choices.always)]
    r = subset_factor(moments.factor, [*first, *moments.places(columns), k + 2])
    # The factor's rows below those of the partialled-out columns hold the residuals.
    rest = r[len(first) :, len(first) :]
    features, outcome = rest[:, :-1], rest[:, -1]
    scale = np.linalg.norm(features, axis=0)
    dependent = dependencies(r[:-1, :-1])
    if dependent:
        every = [*choices.always, *columns]
        raise collinear_error(
            dependent,
            ["constant", "inverse Mills ratio", *(names[column] for column in every)],
            every,
            "the features are collinear among the selected rows",
            "The adaptive lasso then has no least-squares weights; leave some out with "
            f"{option('never', [...])}{OR_DROP}",
        )
    # Rescaled: the path ends at a penalty of 1e-7 and treats shorter columns as collinear.
    features = features / scale
    outcome = outcome * (_LENGTH / (np.linalg.norm(outcome) or 1.0))
    ordinary = np.abs(solve_upper(features[: len(columns)], outcome[: len(columns)]))
    weight = (ordinary / (ordinary.max() or 1.0)) ** power
    entering = weight > _LIGHTEST
    weighted = (features * weight)[:, entering]
    from sklearn.linear_model import lars_path_gram  # slow to import

    _, _, path = lars_path_gram(
        weighted.T @ outcome, weighted.T @ weighted, n_samples=1, method="lasso"
    )
    inside = np.zeros((path.shape[1], len(columns)), dtype=bool)
    inside[:, entering] = path.T != 0.0
    inside = distinct(inside)
    inside = inside[choices.allowed(inside)]
    return evaluate(moments, goal.among(choices), choices.masks(inside), names=names)

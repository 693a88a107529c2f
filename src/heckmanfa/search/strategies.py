"""Ways to search for prediction features, each with its options.

A strategy is called with the compressed data and what may be chosen, and returns the assignments
that it evaluated, best first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import Rows
from heckmanfa.errors import CollinearError, SearchWarning, warn
from heckmanfa.model.equations import say_dropped
from heckmanfa.model.moments import Moments
from heckmanfa.model.option_types import OnProblem, Standardize
from heckmanfa.search.adaptive_lasso import lasso
from heckmanfa.search.best_subset.branch_and_bound import best_subset
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal, Search
from heckmanfa.search.extraction import correlations, rank, sample
from heckmanfa.search.training.assignment_function import StepOn, Trained, train
from heckmanfa.text.progress import progress_line

Extraction = Literal["sample", "rank", "correlation"]


@dataclass(frozen=True)
class Problem:
    """What a search is about."""

    moments: Moments
    rows: Rows
    choices: Choices
    goal: Goal
    labels: Sequence[str]
    """a name for every column of X"""
    random_state: Any = None


class Strategy(Protocol):
    """A way to search."""

    def __call__(self, problem: Problem) -> tuple[Search, Trained | None]:
        """Search; return the training as well if there was one."""
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

    def __call__(self, problem: Problem) -> tuple[Search, None]:
        """Search the tree of all assignments."""
        criterion = problem.goal.criterion
        with progress_line(self.verbose, "nodes", None) as show:
            found = best_subset(
                problem.moments,
                problem.choices,
                problem.goal,
                names=problem.labels,
                tolerance=self.tolerance,
                max_nodes=self.max_nodes,
                progress=None
                if show is None
                else lambda nodes, best, bound: show(
                    nodes, f"best {criterion} {best:.6g}, bound {bound:.6g}"
                ),
            )
        return found, None

    def for_replicates(self) -> Self:
        """Nearly best assignments are not needed either."""
        return replace(self, tolerance=0.0, verbose=0)


@dataclass(frozen=True)
class AdaptiveLasso:
    """The assignments on the path of an adaptive lasso."""

    power: float = 1.0
    on_collinear: OnProblem = "error"

    def __call__(self, problem: Problem) -> tuple[Search, None]:
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

    def __call__(self, problem: Problem) -> tuple[Search, Trained | None]:
        """Train, then draw or rank assignments (Algorithms 3 and 4)."""
        moments, choices, goal = problem.moments, problem.choices, problem.goal
        names = problem.labels
        if self.extraction == "correlation":
            return rank(moments, choices, goal, correlations(moments, choices), names=names), None
        source = generator(problem.random_state)
        trained = self._train(problem, source)
        if self.extraction == "rank":
            found = rank(moments, choices, goal, trained.log_pi[1], names=names)
        else:
            found = sample(
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
            found = replace(found, early_stop=ended, interrupted=True)
        return found, trained

    def for_replicates(self) -> Self:
        """Show no progress."""
        return replace(self, verbose=0)

    def _train(self, problem: Problem, source: Any) -> Trained:
        with progress_line(self.verbose, "epochs", self.epochs) as show:
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
                "collinear among the selected rows, or more than these can tell apart, and made "
                "no step",
                SearchWarning,
            )
        return trained

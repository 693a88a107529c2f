"""Heckman models that search for their prediction features.

The paper's trained assignment, the proven best subset, and the adaptive lasso.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError, NotSavedError
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.search_base import ProvenSearch, SearchModel
from heckmanfa.search.refitted_subset import RefittedSubset
from heckmanfa.search.strategies import AdaptiveLasso, BestSubset, Extraction, FeatureAssignment
from heckmanfa.search.training.assignment_function import StepOn, Trained
from heckmanfa.text.option_types import (
    CovType,
    Criterion,
    Errors,
    Method,
    OnProblem,
    OutcomeTransform,
    SearchIn,
    Standardize,
    WeightKind,
)
from heckmanfa.text.option_words import option
from heckmanfa.text.wording import listed

# Assignments that a likelihood refits one by one.
_REFITS = 20


class HeckmanFA(SearchModel, Heckman):
    """Heckman-FA: a selection model that learns which features predict (Mai and Wu).

    An assignment function is trained with Gumbel-Softmax draws (Algorithm 4). Its probabilities
    then propose assignments, and the best by a criterion is fitted as a `Heckman` model, whose
    attributes it also has.

    The parameters below come in three groups: the search (``extraction`` to ``verbose``), its
    training (``init_prob`` to ``record_path``), and the model (``prediction_features`` and after).

    Parameters
    ----------
    extraction : {"sample", "rank", "correlation"}
        How assignments are proposed: drawn from the trained probabilities (Algorithm 3), the J
        most probable features (Heckman-FA*), or the J features most correlated with the outcome,
        without training (Heckman-C).
    criterion : {"adjusted_r2", "bic", "ebic", "aic", "corrected_bic"}
        Which assignment is best, as in `HeckmanBestSubset`.
    n_draws : int
        Number of assignments that "sample" draws (B). A draw without features counts, unlike in
        the published code.
    rho_range, always, never, max_features, feature_groups, honest, n_splits, verbose
        As in `HeckmanBestSubset`.
    random_state : int, numpy.random.Generator or RandomState, optional
        Seed of the training, of the draws, and of the random halves of ``honest``.
    init_prob : float
        Initial inclusion probability of every feature (c).
    epochs, learning_rate, temperature : int, float, float
        The paper's T, alpha and tau.
    standardize : bool or "features"
        Train as if the selected rows' features and outcome were centred and scaled, so units do
        not matter. "features" leaves the outcome as it is, which is the paper's protocol; False
        leaves both. Coefficients are reported on the scale of the input.
    step_on : {"log_pi", "pi"}
        Take gradient steps on log pi, or on pi as printed in the paper.
    train_rows : int, optional
        Train on a uniform sample of at most this many selected rows, drawn once; everything else
        uses all rows. None is all rows in memory or on a GPU, and 200,000 of rows in files or on
        a cluster, which every epoch would read again.
    record_path : int
        Record the probabilities in ``path_`` every this many epochs; 0 records nothing.
    prediction_features, selection_features, method, cov_type, weight_kind, on_collinear, \
on_separation, start, outcome_transform, \
categorical_features, reference, unknown
        As in `HeckmanBestSubset`.

    Attributes
    ----------
    inclusion_prob_ : ndarray of shape (n_features_in_,)
        Trained probability of each column of X; NaN without training ("correlation").
    path_ : dict
        "epoch" (records,), "inclusion_prob" (records, n_features_in_) and "mae" (records,) of the
        training; empty without ``record_path``.
    candidates_, n_assignments_, honest_
        As in `HeckmanBestSubset`; candidates are the distinct assignments evaluated.

    Examples
    --------
    >>> from heckmanfa import HeckmanFA
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> model = HeckmanFA(criterion="bic", random_state=0).fit(data.X, data.y)
    >>> model.prediction_features_
    [2, 3, 4]
    """

    def __init__(
        self,
        extraction: Extraction = "sample",
        *,
        criterion: Criterion = "adjusted_r2",
        rho_range: Any = None,
        init_prob: float = 0.75,
        epochs: int = 4000,
        learning_rate: float = 0.1,
        temperature: float = 1.0,
        n_draws: int = 1000,
        standardize: Standardize = True,
        step_on: StepOn = "log_pi",
        always: Any = (),
        never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        honest: bool = False,
        n_splits: int = 50,
        record_path: int = 0,
        train_rows: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        prediction_features: Any = None,
        selection_features: Any = None,
        method: Method = "two-step",
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        outcome_transform: OutcomeTransform | None = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def _strategy(self) -> FeatureAssignment:
        return FeatureAssignment(
            extraction=self.extraction,
            init_prob=self.init_prob,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            temperature=self.temperature,
            n_draws=self.n_draws,
            standardize=self.standardize,
            step_on=self.step_on,
            record_path=self.record_path,
            train_rows=self.train_rows,
            verbose=self.verbose,
        )

    @property
    def inclusion_prob_(self) -> Floats:
        """Trained probability of each column of X; NaN without training."""
        trained, columns = self._trained(), self.fit_.spec.columns
        if trained is None:
            return np.full(self.n_features_in_, np.nan)
        return np.asarray(columns.highest(trained.inclusion_prob))

    @property
    def path_(self) -> dict[str, Any]:
        """Records of the training; empty without ``record_path``."""
        trained = self._trained()
        if trained is None or not self.record_path:
            return {}
        if not trained.path_saved:
            raise NotSavedError("path_")
        return {
            "epoch": trained.path_epochs,
            "inclusion_prob": self.fit_.spec.columns.highest(trained.path),
            "mae": trained.path_mae,
        }

    def _trained(self) -> Trained | None:
        outcome = self.fit_.search
        return None if outcome is None else outcome.training


class HeckmanBestSubset(ProvenSearch, Heckman):
    """A selection model with the best of all assignments of prediction features, proven optimal.

    Branch and bound covers all 2^K assignments without random draws or training, the empty one, in
    which no feature predicts, among them. It proves the result optimal, or bounds how much better
    another assignment could be.

    Parameters
    ----------
    criterion : {"bic", "ebic", "aic", "adjusted_r2", "corrected_bic"}
        Which assignment is best; ties go to fewer features, then to column order. "ebic" adds
        2 log C(U, u) to BIC, with u of U features or groups chosen. It guards against chance finds
        among many features, and favours few or nearly all of them. "corrected_bic" is the joint
        Wald statistic of the features left out, in the two-step model of all of them with its own
        covariance (``cov_type``), plus J log m for J columns. It gains 9 points of exact recovery
        at abs(rho) of .8 and more with few predictors, and loses 2 to 7 with middling coefficients.
        Features that cannot all be fitted together are refused.
    search_in : {"prediction", "both"}
        Which equations may leave features out. "prediction" keeps all selection features, as the
        paper has it. "both" searches the selection equation as well, by the joint likelihood: the
        criterion is -2 l + p log n with all p parameters and all n rows (2 p in AIC; EBIC counts
        the ways to choose among the units of both equations). A quadratic form at the maximum with
        everything in both equations ranks all assignments, and branch and bound proves its best;
        maximum likelihood refits the best 50, and the criterion chooses among them. A unit is a
        feature or group in one equation. "both" is always estimated by maximum likelihood, whatever
        ``method`` is; it has no ``rho_range``, ``max_features``, ``tolerance`` or ``honest``.
    rho_range : (float, float), optional
        Choose only assignments whose rho-hat lies in this window. Estimates of rho are then
        conditioned on it, and rho = 0 is not tested.
    max_nodes : int, optional
        The most nodes of the search tree to visit; by default 4e9 / (K + 1)^2, about a minute's
        work. A search that reaches it ends with the best assignment found, a bound on what could
        be better (``gap_``), and a warning. Other work counts as so many nodes: solutions for rho
        by "corrected_bic" in a window of rho, and the boxes of the relaxation of a hard search.
    tolerance : float, optional
        Also keep every assignment that is worse by at most this much in the criterion (the best
        10,000 of them); by default 0.001 of adjusted R^2, or 2 of the other criteria.
    always, never : sequence of str, int or bool
        Features forced into and out of the prediction equation.
    selection_always, selection_never : sequence of str, int or bool
        Features forced into and out of the selection equation, with ``search_in="both"``.
    max_features : int, optional
        The most prediction features.
    feature_groups : list of lists, or dict of lists, optional
        Columns that are in or out together, in each equation. The dummies of a category are a group
        unless one of them is named here.
    honest : bool
        Choose the features on one random half of the rows and estimate them on the other, over
        ``n_splits`` splits. The prediction features are those that at least half of the splits
        chose. Each coefficient is the median over the splits that chose it. Its target is the
        coefficient in the chosen model; its standard error accounts for the search.
    n_splits : int
        Number of random splits for ``honest``.
    random_state : int, numpy.random.Generator or RandomState, optional
        Seed of the random halves of ``honest``; nothing else is random.
    verbose : int
        Show progress on a terminal.
    prediction_features : sequence of str, int or bool, optional
        Columns that may predict; None is all of them.
    selection_features, method, errors, cov_type, weight_kind, on_collinear, on_separation, \
start, outcome_transform, categorical_features, reference, unknown
        As in `Heckman`. The search uses the two-step estimator; "ml" refits the chosen model, from
        ``start`` if given: a rho, or the parameters of the chosen features. With ``errors="t"``,
        the quadratic form of the likelihood of all features is searched instead, by "bic", "ebic"
        or "aic", and the 20 best assignments by it are refitted. Assignments of collinear features
        are never chosen. "drop" leaves a column that the selection equation dropped out of the
        search as well, where others that may predict make it up.

    Attributes
    ----------
    optimal_ : bool
        Whether the assignment is proven optimal.
    gap_ : float
        By how much the criterion of another assignment could be better; 0 if none can be.
    candidates_ : DataFrame
        The assignments nearly as good, best first: features, n_features, rho, adjusted_r2 (whose
        degrees of freedom ignore lambda, as in the paper), aic, bic and ebic (which count it),
        corrected_bic (only if it is the criterion), in_range. With ``search_in="both"``, the
        assignments refitted: features, n_features, selection_features, rho, log_likelihood, aic,
        bic, ebic, approximate, rank and approximate_rank.
    n_assignments_ : int
        Number of assignments evaluated; bounds ruled out all others.
    honest_ : Honest
        Results over the splits, with ``honest``: `tidy`, `splits`.

    Notes
    -----
    A fitted model also has all attributes of `Heckman`. See `search_report` for how the features
    were found.

    Examples
    --------
    >>> from heckmanfa import HeckmanBestSubset
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> model = HeckmanBestSubset().fit(data.X, data.y)
    >>> model.prediction_features_, model.optimal_
    ([2, 3, 4], True)
    """

    def __init__(
        self,
        criterion: Criterion = "bic",
        *,
        search_in: SearchIn = "prediction",
        rho_range: Any = None,
        max_nodes: int | None = None,
        tolerance: float | None = None,
        always: Any = (),
        never: Any = (),
        selection_always: Any = (),
        selection_never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        honest: bool = False,
        n_splits: int = 50,
        random_state: Any = None,
        verbose: int = 0,
        prediction_features: Any = None,
        selection_features: Any = None,
        method: Method = "two-step",
        errors: Errors = "normal",
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        outcome_transform: OutcomeTransform | None = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def _fit_rows(self, *rows: Any, **formulas: Any) -> None:
        if self.errors == "t":
            self._check_refitted()
        super()._fit_rows(*rows, **formulas)

    def _check_refitted(self) -> None:
        """Refuse what a search has only on compressed rows."""
        asked = {
            "criterion": self.criterion not in ("bic", "ebic", "aic"),
            "search_in": self.search_in == "both",
            "rho_range": self.rho_range is not None,
            "tolerance": self.tolerance is not None,
            "honest": self.honest,
        }
        given = [option(name, getattr(self, name)) for name, is_asked in asked.items() if is_asked]
        if given:
            raise InputError(
                f"{option('errors', 't')} searches the quadratic form of its likelihood and refits "
                f"the best, and has no {listed(given)}: leave that out, or use "
                f"{option('errors', 'normal')}"
            )

    def _strategy(self) -> BestSubset | RefittedSubset:
        if self.errors == "t":
            return RefittedSubset(_REFITS, self.max_nodes, self.verbose)
        if self.search_in == "both":
            return RefittedSubset(max_nodes=self.max_nodes, verbose=self.verbose)
        return BestSubset(self.tolerance, self.max_nodes, self.verbose)


class HeckmanLasso(SearchModel, Heckman):
    """A selection model whose excluded features are those that an adaptive lasso drops.

    After the probit, the inverse Mills ratio is partialled out of the selected rows' features and
    outcome. As its penalty grows, an adaptive lasso on the residuals drops one feature after
    another. The best assignment on its path by a criterion is fitted as a `Heckman` model, whose
    attributes it also has. The idea of choosing exclusions with an adaptive lasso is Farbmacher's.

    Parameters
    ----------
    criterion : {"bic", "ebic", "aic", "adjusted_r2", "corrected_bic"}
        Which point of the path is chosen, as in `HeckmanBestSubset`.
    power : float
        Each feature's penalty is divided by its least-squares coefficient to this power; 0 is
        the plain lasso.
    rho_range, always, never, max_features, feature_groups, honest, n_splits, random_state, \
verbose, prediction_features, selection_features, method, cov_type, weight_kind, on_collinear, \
on_separation, start, outcome_transform, \
categorical_features, reference, unknown
        As in `HeckmanBestSubset`, but groups of several columns are refused: name each dummy of
        a category in a group of its own.

    Attributes
    ----------
    candidates_, n_assignments_, honest_
        As in `HeckmanBestSubset`; candidates are the assignments on the path.

    Examples
    --------
    >>> from heckmanfa import HeckmanLasso
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> HeckmanLasso().fit(data.X, data.y).prediction_features_
    [2, 3, 4]
    """

    def __init__(
        self,
        criterion: Criterion = "bic",
        *,
        power: float = 1.0,
        rho_range: Any = None,
        always: Any = (),
        never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        honest: bool = False,
        n_splits: int = 50,
        random_state: Any = None,
        verbose: int = 0,
        prediction_features: Any = None,
        selection_features: Any = None,
        method: Method = "two-step",
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        outcome_transform: OutcomeTransform | None = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

    def _strategy(self) -> AdaptiveLasso:
        return AdaptiveLasso(self.power, self.on_collinear)

"""Heckman models whose prediction features are found: by the paper's method, and by proof."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from heckmanfa.data.columns.features import FeatureTable
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import Positions
from heckmanfa.errors import SearchWarning, warn
from heckmanfa.estimators.search_base import SearchedHeckman
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection
from heckmanfa.model.moments import Moments
from heckmanfa.model.option_types import CovType, Method, OnProblem, Standardize, WeightKind
from heckmanfa.search import Goal, Search, best_subset, correlations, rank, sample
from heckmanfa.search.choices import Choices
from heckmanfa.search.training.assignment_function import StepOn, Trained, train
from heckmanfa.text.progress import progress_line

if TYPE_CHECKING:
    from heckmanfa.data.sample import Sample

__all__ = ["HeckmanBestSubset", "HeckmanFA"]


class HeckmanFA(SearchedHeckman):
    """Heckman-FA: a selection model that learns which features predict (Mai and Wu).

    An assignment function is trained by Gumbel-Softmax draws (Algorithm 4); its probabilities
    then propose assignments, of which the best by a criterion is fitted as a `Heckman` model.

    Parameters
    ----------
    extraction : {"sample", "rank", "correlation"}
        How assignments are proposed: drawn from the trained probabilities (Algorithm 3), the top
        J by them (Heckman-FA*), or the top J by correlation with the outcome, without training
        (Heckman-C).
    criterion : {"adjusted_r2", "bic", "aic"}
        What makes an assignment good; ties go to fewer features, then to column order.
    rho_range : (float, float), optional
        Only assignments whose rho-hat is in this window are chosen; the estimates of rho are then
        conditioned on it, and rho = 0 is not tested.
    init_prob : float
        Probability that every feature starts with (c).
    epochs, learning_rate, temperature : int, float, float
        Of the training (T, alpha and tau).
    n_draws : int
        Assignments drawn by "sample" (B).
    standardize : bool or "features"
        Train as if features and outcome were centred and scaled by the selected rows, so that no
        unit matters; "features" leaves the outcome as it is, which is the paper's protocol; False
        trains on what is given. Coefficients are reported on the input's scale.
    step_on : {"log_pi", "pi"}
        Gradient steps on log pi, or on pi as the paper prints them.
    always, never : sequence of str, int or bool
        Features forced into and out of the prediction equation.
    max_features : int, optional
        The most prediction features.
    feature_groups : list of lists, or dict of lists, optional
        Columns that are in or out together, as the dummies of one category. Those of a text
        column of `scan_parquet` are a group unless one of them is named here.
    honest : bool
        Choose the features on one random half of the rows and estimate them on the other, over
        ``n_splits`` splits: the prediction features are those that at least half of the splits
        chose, and every coefficient is the median over the splits that chose it. Its target is
        the coefficient in the model that was chosen; its standard error accounts for the search.
    n_splits : int
        How many random splits ``honest`` makes.
    record_path : int
        Record the probabilities every so many epochs in ``path_``; 0 does not.
    train_rows : int, optional
        Run the epochs over a uniform sample of at most so many of the selected rows, drawn once;
        all else is over all rows. None takes all rows that are in memory or on a card, and
        200,000 where rows are in files or on a cluster, which would be read in every epoch.
    random_state : int, numpy.random.Generator or RandomState, optional
    verbose : int
        Show progress on a terminal.
    prediction_features : sequence of str, int or bool, optional
        Columns that may predict; None is all of them.
    selection_features, method, cov_type, weight_kind, on_collinear, on_separation, start
        As in `Heckman`. The search is by the two-step estimator; "ml" refits what it chose, from
        ``start`` where that is given: a rho, or the parameters of the features chosen.
        Assignments of collinear features cannot be solved and are never chosen, so that
        ``on_collinear`` is about the selection equation.

    Attributes
    ----------
    inclusion_prob_ : ndarray of shape (K,)
        Trained probability of each feature; NaN without training ("correlation").
    candidates_ : DataFrame
        The distinct assignments looked at: features, n_features, rho, adjusted_r2 (whose degrees
        of freedom leave lambda out, as in the paper), aic and bic (which count it), in_range.
    n_assignments_ : int
        How many distinct assignments were looked at.
    path_ : dict
        "epoch" (records,), "inclusion_prob" (records, K) and "mae" (records,) of the training;
        empty unless ``record_path`` asks for it.

    honest_ : Honest
        What the splits gave, where ``honest`` asks for them: `tidy`, `splits`.

    Notes
    -----
    All attributes of a fitted `Heckman` are there, too. See `search_report` for the story.

    Examples
    --------
    >>> from heckmanfa import HeckmanFA
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> model = HeckmanFA(criterion="bic", random_state=0).fit(data.X, data.y)
    >>> model.prediction_features_
    [2, 3, 4]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SearchedHeckman._parameter_constraints,
        "extraction": [StrOptions({"sample", "rank", "correlation"})],
        "init_prob": [Interval(Real, 0, 1, closed="neither")],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "standardize": ["boolean", StrOptions({"features"})],
        "step_on": [StrOptions({"log_pi", "pi"})],
        "record_path": [Interval(Integral, 0, None, closed="left")],
        "train_rows": [Interval(Integral, 1, None, closed="left"), None],
    }

    _trained_on: tuple[int, int]
    """how many selected rows the epochs ran over, and how many there are"""

    def __init__(
        self,
        extraction: str = "sample",
        *,
        criterion: str = "adjusted_r2",
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
        cov_type: CovType | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
    ) -> None:
        super().__init__(
            criterion=criterion,
            rho_range=rho_range,
            always=always,
            never=never,
            max_features=max_features,
            feature_groups=feature_groups,
            honest=honest,
            n_splits=n_splits,
            random_state=random_state,
            verbose=verbose,
            prediction_features=prediction_features,
            selection_features=selection_features,
            method=method,
            cov_type=cov_type,
            weight_kind=weight_kind,
            on_collinear=on_collinear,
            on_separation=on_separation,
            start=start,
        )
        self.extraction = extraction
        self.init_prob = init_prob
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.temperature = temperature
        self.n_draws = n_draws
        self.standardize = standardize
        self.step_on = step_on
        self.record_path = record_path
        self.train_rows = train_rows

    def _look(self, moments: Moments, selection: Selection, choices: Choices, goal: Goal) -> Search:
        names, source = self._names, generator(self.random_state)
        self.inclusion_prob_ = np.full(self.n_features_in_, np.nan)
        self.path_: dict[str, Any] = {}
        self._trained_on = (0, 0)
        if self.extraction == "correlation":
            return rank(moments, choices, goal, correlations(moments, choices), names=names)
        trained = self._train(moments, selection, choices, source)
        self.inclusion_prob_ = trained.inclusion_prob
        self._trained_on = (trained.n_rows, trained.n_selected)
        if self.record_path:
            self.path_ = {
                "epoch": trained.path_epochs,
                "inclusion_prob": trained.path,
                "mae": trained.path_mae,
            }
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
        if not trained.interrupted:
            return found
        ended = f"The training was interrupted after {trained.n_epochs} of {self.epochs} epochs."
        return replace(found, early_stop=ended, interrupted=True)

    def _train(
        self,
        moments: Moments,
        selection: Selection,
        choices: Choices,
        source: np.random.Generator,
    ) -> Trained:
        with progress_line(self.verbose, "epochs", self.epochs) as show:
            trained = train(
                moments,
                selection.rows,
                init_prob=self.init_prob,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                temperature=self.temperature,
                step_on=self.step_on,
                standardize=self.standardize,
                choices=choices,
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

    def _fit_all_observed(
        self, table: FeatureTable, sample: Sample, prediction: Positions, kind: CovarianceKind
    ) -> None:
        super()._fit_all_observed(table, sample, prediction, kind)
        self.inclusion_prob_, self.path_ = np.full(self.n_features_in_, np.nan), {}
        self._trained_on = (0, 0)


class HeckmanBestSubset(SearchedHeckman):
    """A selection model on the best of all assignments of prediction features, by proof.

    Branch and bound over all 2^K - 1 assignments: nothing is drawn or trained, and the result
    comes with a proof, or with a bound on what could still be better.

    Parameters
    ----------
    criterion : {"bic", "adjusted_r2", "aic"}
        What makes an assignment good; ties go to fewer features, then to column order.
    rho_range : (float, float), optional
        Only assignments whose rho-hat is in this window are chosen; the estimates of rho are then
        conditioned on it, and rho = 0 is not tested.
    max_nodes : int, optional
        The most nodes of the search tree to visit: unless given, 2e9 / (K + 1)^2, a minute's
        work or so. Reaching it ends the search with the best assignment found, a bound on
        what could be better (``gap_``), and a warning.
    tolerance : float, optional
        Every assignment worse by at most this much in the criterion is found and kept, too (the
        best 10,000 of them): 0.001 of adjusted R^2, or 2 of AIC and BIC, unless given.
    always, never : sequence of str, int or bool
        Features forced into and out of the prediction equation.
    max_features : int, optional
        The most prediction features.
    feature_groups : list of lists, or dict of lists, optional
        Columns that are in or out together, as the dummies of one category. Those of a text
        column of `scan_parquet` are a group unless one of them is named here.
    honest : bool
        Choose the features on one random half of the rows and estimate them on the other, over
        ``n_splits`` splits: the prediction features are those that at least half of the splits
        chose, and every coefficient is the median over the splits that chose it. Its target is
        the coefficient in the model that was chosen; its standard error accounts for the search.
    n_splits : int
        How many random splits ``honest`` makes.
    random_state : int, numpy.random.Generator or RandomState, optional
        Of the random halves of ``honest``; nothing else is random.
    verbose : int
        Show progress on a terminal.
    prediction_features : sequence of str, int or bool, optional
        Columns that may predict; None is all of them.
    selection_features, method, cov_type, weight_kind, on_collinear, on_separation, start
        As in `Heckman`. The search is by the two-step estimator; "ml" refits what it chose, from
        ``start`` where that is given: a rho, or the parameters of the features chosen.
        Assignments of collinear features cannot be solved and are never chosen, so that
        ``on_collinear`` is about the selection equation.

    Attributes
    ----------
    optimal_ : bool
        Whether the assignment is proven to be the best.
    gap_ : float
        By how much the criterion of another assignment could be better; 0 where none can be.
    candidates_ : DataFrame
        The assignments nearly as good, best first: features, n_features, rho, adjusted_r2 (whose
        degrees of freedom leave lambda out), aic and bic (which count it), in_range.
    n_assignments_ : int
        How many assignments were looked at; all others were ruled out by bounds.

    honest_ : Honest
        What the splits gave, where ``honest`` asks for them: `tidy`, `splits`.

    Notes
    -----
    All attributes of a fitted `Heckman` are there, too. See `search_report` for the story.

    Examples
    --------
    >>> from heckmanfa import HeckmanBestSubset
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> model = HeckmanBestSubset().fit(data.X, data.y)
    >>> model.prediction_features_, model.optimal_
    ([2, 3, 4], True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SearchedHeckman._parameter_constraints,
        "max_nodes": [Interval(Integral, 1, None, closed="left"), None],
        "tolerance": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        criterion: str = "bic",
        *,
        rho_range: Any = None,
        max_nodes: int | None = None,
        tolerance: float | None = None,
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
        cov_type: CovType | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
    ) -> None:
        super().__init__(
            criterion=criterion,
            rho_range=rho_range,
            always=always,
            never=never,
            max_features=max_features,
            feature_groups=feature_groups,
            honest=honest,
            n_splits=n_splits,
            random_state=random_state,
            verbose=verbose,
            prediction_features=prediction_features,
            selection_features=selection_features,
            method=method,
            cov_type=cov_type,
            weight_kind=weight_kind,
            on_collinear=on_collinear,
            on_separation=on_separation,
            start=start,
        )
        self.max_nodes = max_nodes
        self.tolerance = tolerance

    def _for_replicates(self) -> Self:
        model = super()._for_replicates()
        # Others nearly as good are not asked for.
        model.set_params(tolerance=0.0)
        return model

    @property
    def optimal_(self) -> bool:
        """Whether the assignment is proven to be the best."""
        return bool(self._searched().optimal)

    @property
    def gap_(self) -> float:
        """By how much the criterion of another assignment could be better."""
        return float(self._searched().gap or 0.0)

    def _look(self, moments: Moments, selection: Selection, choices: Choices, goal: Goal) -> Search:
        with progress_line(self.verbose, "nodes", None) as show:
            return best_subset(
                moments,
                choices,
                goal,
                names=self._names,
                tolerance=self.tolerance,
                max_nodes=self.max_nodes,
                progress=None
                if show is None
                else lambda nodes, best, bound: show(
                    nodes, f"best {self.criterion} {best:.6g}, bound {bound:.6g}"
                ),
            )

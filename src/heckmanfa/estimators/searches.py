"""Heckman models whose prediction features are found: by the paper's method, and proven optimal."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from heckmanfa.data.arrays import Floats
from heckmanfa.estimators.search_base import SearchModel
from heckmanfa.model.option_types import CovType, Method, OnProblem, Standardize, WeightKind
from heckmanfa.search.criteria import Criterion
from heckmanfa.search.strategies import BestSubset, Extraction, FeatureAssignment
from heckmanfa.search.training.assignment_function import StepOn, Trained


class HeckmanFA(SearchModel):
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
        **SearchModel._parameter_constraints,
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
        cov_type: CovType | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
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
        """Trained probability of each feature, (K,); NaN without training."""
        trained = self._trained()
        if trained is None:
            return np.full(self.fit_.n_features, np.nan)
        return trained.inclusion_prob

    @property
    def path_(self) -> dict[str, Any]:
        """Records of the training; empty unless ``record_path`` asks for it."""
        trained = self._trained()
        if trained is None or not self.record_path:
            return {}
        return {
            "epoch": trained.path_epochs,
            "inclusion_prob": trained.path,
            "mae": trained.path_mae,
        }

    def _trained(self) -> Trained | None:
        outcome = self.fit_.search
        return None if outcome is None else outcome.training


class HeckmanBestSubset(SearchModel):
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
        **SearchModel._parameter_constraints,
        "max_nodes": [Interval(Integral, 1, None, closed="left"), None],
        "tolerance": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        criterion: Criterion = "bic",
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
        self._keep(locals())

    def _strategy(self) -> BestSubset:
        return BestSubset(self.tolerance, self.max_nodes, self.verbose)

    @property
    def optimal_(self) -> bool:
        """Whether the assignment is proven to be the best."""
        return bool(self._result().optimal)

    @property
    def gap_(self) -> float:
        """By how much the criterion of another assignment could be better."""
        return float(self._result().gap or 0.0)

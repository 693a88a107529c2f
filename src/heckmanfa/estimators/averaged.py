"""A Heckman model that averages over assignments instead of choosing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from heckmanfa.errors import NotSavedError, NotSearchedError
from heckmanfa.estimators.fitting import fit_rows
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.search_base import ChoiceModel
from heckmanfa.inference.average_fit import Averaging
from heckmanfa.model.option_types import (
    CovType,
    Method,
    OnProblem,
    OutcomeTransform,
    Unknown,
    WeightKind,
    one_of,
)
from heckmanfa.results.average_tables import assignments_frame, inclusion_frame
from heckmanfa.search.averaging.average_outcome import AverageOutcome
from heckmanfa.search.averaging.weights import CORRECTIONS, WEIGHTINGS, Correction, Weighting
from heckmanfa.search.choices import Choices
from heckmanfa.search.rho_window import check_window

if TYPE_CHECKING:
    import pandas as pd


class HeckmanAverage(ChoiceModel, Heckman):
    """A selection model averaged over all assignments of prediction features.

    A search reports the best assignment as if it were known. Often others are almost as good. This
    model gives each assignment S, the empty and the full one included, a weight proportional to
    exp(-criterion_S / 2), and averages. Up to 22 features or groups, every assignment is evaluated;
    beyond that, a Gibbs sampler draws them.

    Parameters
    ----------
    weights : {"aic", "bic", "ebic", "mean"}
        The criterion behind the weights of estimates, predictions and intervals. "aic" is the
        small-sample form, m log(SSE/m) + 2 (J + 2) m / (m - J - 3), with J columns and m selected
        rows. It has the smallest largest regret, and the only intervals with tolerable coverage.
        "ebic" adds 2 log C(U, u) to BIC for u of U features or groups, and favours few or nearly
        all. "mean" is the mean of the AIC and the BIC weights. Chances and roles, in
        ``inclusion_``, follow BIC weights always.
    rho_range : (float, float), optional
        Give weight only to assignments whose rho-hat lies in this window.
    always, never, max_features, feature_groups
        As in `HeckmanBestSubset`.
    random_state : int, numpy.random.Generator or RandomState, optional
        Seed of the sampler, and of the assignments drawn for intervals.
    verbose : int
        Show progress on a terminal.
    prediction_features : sequence of str, int or bool, optional
        Columns that may predict; None is all of them.
    selection_features, method, cov_type, weight_kind, on_collinear, on_separation, start, \
outcome_transform, categorical_features, reference, unknown
        As in `Heckman`. Weights are those of two-step fits; "ml" refits the ``n_refits`` heaviest
        assignments. That is better if the errors are normal, and much worse if they are skewed.
        Assignments of collinear features weigh nothing. "drop" leaves a column that the selection
        equation dropped out of the average as well, where others that may predict make it up.

    Attributes
    ----------
    coef_, intercept_, imr_coef_, rho_, sigma_, adjusted_r2_
        Averages; a coefficient is zero in assignments without the feature. ``imr_coef_`` is the
        average beta_H, not rho times sigma.
    aic_, bic_ : float
        NaN: an average has none.
    support_ : ndarray of bool, shape (n_features_in_,)
        Columns of X with a BIC share of at least one half; also ``prediction_features_``.
    inclusion_ : DataFrame
        One row for each feature or group: the share of weight that holds it by AIC, BIC and EBIC
        weights, the share of the model's own weight with a positive and a negative coefficient,
        and its role.
    assignments_ : DataFrame
        The heaviest assignments, at most 10,000, best first: features, n_features, weight,
        criterion, rho, and lambda's coefficient with its z value and p-value.
    n_assignments_ : int
        Number of assignments with a weight; of those drawn, if they were sampled.
    exhaustive_ : bool
        Whether every assignment was evaluated; otherwise they were sampled.

    Notes
    -----
    A fitted model also has all other attributes and methods of `Heckman`. Predictions are averages
    of the assignments' predictions. Intervals are quantiles of the mixture of the assignments'
    normal distributions, with a point mass at zero for assignments without the feature; in
    simulations, 95% intervals cover about 90 to 95%. They use the assignments that carry 99% of the
    weight if these are at most 5,000, else 5,000 drawn by weight; of predictions, 1,000. Methods
    that need one set of features (`what_if`, `exclusion_test`, `uncertainty_interval`,
    `specification_tests`, `profile_rho`, `profile`) use ``prediction_features_``.

    Examples
    --------
    >>> from heckmanfa import HeckmanAverage
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> model = HeckmanAverage().fit(data.X, data.y)
    >>> model.prediction_features_
    [2, 3, 4]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Heckman._parameter_constraints,
        **ChoiceModel._parameter_constraints,
        "weights": [one_of(*WEIGHTINGS)],
        "correction": [one_of(*CORRECTIONS)],
    }

    def __init__(
        self,
        weights: Weighting = "aic",
        *,
        correction: Correction = "optional",
        rho_range: Any = None,
        always: Any = (),
        never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        random_state: Any = 0,
        verbose: int = 0,
        prediction_features: Any = None,
        selection_features: Any = None,
        method: Method = "two-step",
        cov_type: CovType | None = None,
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

    def fit(
        self,
        X: Any,
        y: Any = None,
        selected: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the selection equation and average over assignments; see `Heckman.fit`."""
        check_window(self.rho_range)
        fit_rows(self, X, y, selected, sample_weight, groups)
        return self

    def _choose(self, choices: Choices) -> Averaging:
        return Averaging(
            choices,
            weights=self.weights,
            correction=self.correction,
            rho_range=check_window(self.rho_range),
            verbose=self.verbose,
        )

    @property
    def inclusion_(self) -> pd.DataFrame:
        """Share of weight that holds each feature or group, its signs and its role."""
        self._outcome()
        return inclusion_frame(self.fit_)

    @property
    def assignments_(self) -> pd.DataFrame:
        """The heaviest assignments, at most 10,000, best first."""
        if self._outcome().average.has_few:
            raise NotSavedError("assignments_")
        return assignments_frame(self.fit_)

    @property
    def n_assignments_(self) -> int:
        """Number of assignments with a weight."""
        outcome = self.fit_.average
        return 0 if outcome is None else outcome.average.n_assignments

    @property
    def exhaustive_(self) -> bool:
        """Whether every assignment was evaluated."""
        return self._outcome().average.exhaustive

    def _outcome(self) -> AverageOutcome:
        outcome = self.fit_.average
        if outcome is None:
            raise NotSearchedError("no outcome was missing in the fit, so nothing was averaged")
        return outcome

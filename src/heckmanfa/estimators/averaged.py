"""Selection models that average over assignments instead of choosing one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.survey import Survey
from heckmanfa.errors import NotSavedError, NotSearchedError
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.estimators.heckman_probit import HeckmanProbit
from heckmanfa.estimators.search_base import ChoiceModel
from heckmanfa.fit import Family
from heckmanfa.inference.choosing import Averaging
from heckmanfa.results.average_tables import assignments_frame
from heckmanfa.results.search_report import inclusion_frame
from heckmanfa.search.averaging.result import AverageOutcome
from heckmanfa.search.averaging.weights import (
    ALL_FEATURES_SHARE,
    Correction,
    Weighting,
)
from heckmanfa.search.choices import Choices, check_window
from heckmanfa.text.option_types import (
    CovType,
    Errors,
    InterceptAt,
    Method,
    OnProblem,
    OutcomeTransform,
    SearchIn,
    WeightKind,
)

if TYPE_CHECKING:
    import pandas as pd


class AverageModel(ChoiceModel):
    """The choice and the tables that averages share."""

    two_step_cov_type: ClassVar[CovType | None] = "robust"

    def _choose(self, choices: Choices, selecting: Choices | None = None) -> Averaging:
        return Averaging(
            choices,
            weights=self.weights,
            all_features_share=float(self.all_features_share),
            correction=self.correction,
            rho_range=check_window(self.rho_range),
            verbose=self.verbose,
            selecting=selecting,
        )

    @property
    def inclusion_(self) -> pd.DataFrame:
        """Share of weight in which each feature or group predicts, its signs and its role."""
        self._outcome()
        return inclusion_frame(self.fit_)

    @property
    def assignments_(self) -> pd.DataFrame:
        """The heaviest assignments, at most 10,000, best first."""
        if self._outcome().mixture.has_few:
            raise NotSavedError("assignments_")
        return assignments_frame(self.fit_)

    @property
    def n_assignments_(self) -> int:
        """Number of assignments with a weight."""
        outcome = self.fit_.average
        return 0 if outcome is None else outcome.mixture.n_assignments

    @property
    def exhaustive_(self) -> bool:
        """Whether every assignment was evaluated."""
        return self._outcome().mixture.exhaustive

    def _outcome(self) -> AverageOutcome:
        outcome: AverageOutcome | None = self.fit_.average
        if outcome is None:
            raise NotSearchedError("no outcome was missing in the fit, so nothing was averaged")
        return outcome


class HeckmanAverage(AverageModel, Heckman):
    """A selection model averaged over all assignments of prediction features.

    A search reports the best assignment as if it were known. Often others are almost as good. This
    model gives each assignment S, the empty and the full one included, a weight proportional to
    exp(-criterion_S / 2), and averages. An assignment may hold each feature or group on its own,
    the correction for selection (lambda), and the index: one coefficient b for all of z'gamma, so
    that what drives selection moves the outcome too, in the same proportions. Lambda is nearly a
    straight line in that index, so without it lambda would find selection where there is none.

    All assignments follow from the model with every feature in it, fitted once: with theta-hat its
    estimates and V their covariance, dropping D costs theta_D' (V_DD)^-1 theta_D. Up to 22 features
    or groups, the correction and the index among them, every assignment is evaluated; beyond that,
    a Gibbs sampler draws them.

    Parameters
    ----------
    weights : {"bic", "aic", "ebic", "mean"}
        The criterion behind the weights of estimates, predictions and intervals: the cost, plus a
        penalty for the p coefficients of the prediction equation, with m selected rows. "aic" is
        the small-sample form, 2 p m / (m - p - 1); "bic" is p log m; "ebic" adds 2 log C(U, u) to
        BIC for u of U features or groups, and favours few or nearly all. "mean" is the mean of the
        AIC and the BIC weights. Chances and roles, in ``inclusion_``, follow BIC weights always.
    all_features_share : float
        What the model of all features gets of the weight of an interval, beside the average. With
        one half, a 95% interval contains that model's 90% interval. It does not enter estimates
        and chances, and is zero if ``max_features`` or ``rho_range`` rule that model out.
    correction : {"optional", "always", "never"}
        Whether lambda competes with the features, is in every assignment, or in none.
    search_in : {"prediction", "both"}
        Which equations may leave features out. "prediction" keeps all selection features, as the
        paper has it. "both" weighs assignments of both equations, by the form of the joint
        likelihood with everything in it: p counts all parameters, and m is the number of all rows.
        A unit is a feature or group in one equation. The index holds only features that drive
        selection in at least half of the BIC weight of that equation alone. "both" is always
        estimated by maximum likelihood, whatever ``method`` is.
    rho_range : (float, float), optional
        Give weight only to assignments whose rho lies in this window. Needs every assignment
        evaluated.
    always, never, selection_always, selection_never, max_features, feature_groups
        As in `HeckmanBestSubset`. A column in ``never`` is no part of the index either.
    random_state : int, numpy.random.Generator or RandomState, optional
        Seed of the sampler, and of the assignments drawn for intervals.
    verbose : int
        Show progress on a terminal.
    prediction_features : sequence of str, int or bool, optional
        Columns that may predict; None is all of them. All must fit into one model: there must be
        three selected rows for each, and collinear ones are refused, or dropped with
        ``on_collinear="drop"``.
    selection_features, method, errors, cov_type, weight_kind, on_collinear, on_separation, \
start, n_terms, intercept, outcome_transform, categorical_features, reference, unknown
        As in `Heckman`, for the model of all features: weights, estimates and intervals use its
        estimates by any method, and its covariance of any type. ``cov_type=None`` is "robust"
        after two steps or a series, and "classical" after maximum likelihood. The terms of a series
        are the correction, and come and go together; their number is that of the model of all
        features. The degrees of freedom of t errors are in every assignment.

    Attributes
    ----------
    coef_, intercept_, imr_coef_, rho_, sigma_, adjusted_r2_
        Averages. The coefficient of a feature in an assignment is its own, if the assignment holds
        it, plus what the index adds; zero otherwise. ``imr_coef_`` is the average beta_H, not rho
        times sigma.
    aic_, bic_ : float
        NaN: an average has none.
    support_ : ndarray of bool, shape (n_features_in_,)
        Columns of X that predict in at least half of the BIC weight, on their own or with the
        index; also ``prediction_features_``.
    selection_features_ : list
        The columns of the selection equation; with ``search_in="both"``, those that drive selection
        in at least half of the BIC weight.
    inclusion_ : DataFrame
        One row for each feature or group, and a last one for the correction: the share of weight in
        which it predicts by AIC, BIC and EBIC weights, on its own (``aic_alone``, ...) or with the
        index (``aic_index``, ...); the share of the model's own weight with a positive and a
        negative effect; and its role.
        With ``search_in="both"``, a column ``equation``, and a row for each feature or group in the
        selection equation: the share of weight in which it drives selection.
    assignments_ : DataFrame
        The heaviest assignments, at most 10,000, best first: features, n_features, whether the
        correction and the index are held, weight, criteria (relative to the model of everything),
        rho, and lambda's coefficient with its z value and p-value; selection_features with
        ``search_in="both"``.
    n_assignments_ : int
        Number of assignments with a weight; of those drawn, if they were sampled.
    exhaustive_ : bool
        Whether every assignment was evaluated; otherwise they were sampled.

    Notes
    -----
    A fitted model also has all other attributes and methods of `Heckman`. Predictions are averages
    of the assignments' predictions. Intervals are quantiles of the mixture of the assignments'
    normal distributions, with a point mass at zero for assignments in which a feature has no
    effect. What has a chance of at least 90% has the interval over the assignments that hold it;
    any other interval reaches zero. In simulations with normal errors and 500 rows or more, nominal
    95% intervals cover 96% of the effects that are not zero, also where what drives selection moves
    the outcome too, and 88% in the worst design; with other errors they cover 95%. Intervals use
    all assignments up to 5,000, else 5,000 drawn by weight; those of rows take assignments that
    agree on what is most in doubt together. Methods that need one set of features (`what_if`,
    `exclusion_test`, `uncertainty_interval`, `specification_tests`, `profile_rho`, `profile`) use
    ``prediction_features_``, with all selection features.

    Examples
    --------
    >>> from heckmanfa import HeckmanAverage
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=2)
    >>> model = HeckmanAverage().fit(data.X, data.y)
    >>> model.prediction_features_
    [1, 2, 3]
    """

    _by_method: ClassVar[Mapping[str, Family]] = Heckman._by_method

    def __init__(
        self,
        weights: Weighting = "bic",
        *,
        all_features_share: float = ALL_FEATURES_SHARE,
        correction: Correction = "optional",
        search_in: SearchIn = "prediction",
        rho_range: Any = None,
        always: Any = (),
        never: Any = (),
        selection_always: Any = (),
        selection_never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        random_state: Any = 0,
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
        n_terms: int | None = None,
        intercept: InterceptAt | None = None,
        outcome_transform: OutcomeTransform | None = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())


class HeckmanProbitAverage(AverageModel, HeckmanProbit):
    """A Heckman probit averaged over all assignments of prediction features.

    As `HeckmanAverage` is for a linear outcome: assignments follow from the maximum of the
    likelihood with every feature in it, and the correction is atanh rho. Probabilities are averages
    of the assignments' probabilities.

    Parameters
    ----------
    weights, all_features_share, correction, search_in, rho_range, always, never, \
selection_always, selection_never, max_features, feature_groups, random_state, verbose, \
prediction_features
        As in `HeckmanAverage`.
    selection_features, cov_type, weight_kind, on_collinear, on_separation, start, \
categorical_features, reference, unknown
        As in `HeckmanProbit`, for the model of all features.

    Attributes
    ----------
    coef_, intercept_, rho_
        Averages, as in `HeckmanAverage`.
    support_, inclusion_, assignments_, n_assignments_, exhaustive_
        As in `HeckmanAverage`.

    Notes
    -----
    A fitted model also has all other attributes and methods of `HeckmanProbit`. If the likelihood
    of all features rises towards a rho of 1 or -1, it has no covariance to weigh assignments by:
    the correction is then left out, with a warning.

    Examples
    --------
    >>> from heckmanfa import HeckmanProbitAverage
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(1000, 4, 2, outcome_kind="binary", random_state=0)
    >>> model = HeckmanProbitAverage().fit(data.X, data.y)
    >>> model.prediction_features_
    [0, 1, 2]
    """

    def __init__(
        self,
        weights: Weighting = "bic",
        *,
        all_features_share: float = ALL_FEATURES_SHARE,
        correction: Correction = "optional",
        search_in: SearchIn = "prediction",
        rho_range: Any = None,
        always: Any = (),
        never: Any = (),
        selection_always: Any = (),
        selection_never: Any = (),
        max_features: int | None = None,
        feature_groups: Any = None,
        random_state: Any = 0,
        verbose: int = 0,
        prediction_features: Any = None,
        selection_features: Any = None,
        cov_type: CovType | Survey | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
        categorical_features: Any = "from_dtype",
        reference: Any = None,
        unknown: Unknown = "error",
    ) -> None:
        self._keep(locals())

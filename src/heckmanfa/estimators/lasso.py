"""HeckmanLasso: prediction features by the adaptive lasso, the method in use today."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from heckmanfa.errors import CollinearError
from heckmanfa.estimators.search_base import SearchedHeckman
from heckmanfa.model.equations import Selection, say_dropped
from heckmanfa.model.moments import Moments
from heckmanfa.model.option_types import CovType, Method, OnProblem, WeightKind
from heckmanfa.search import Goal, Search
from heckmanfa.search.adaptive_lasso import lasso
from heckmanfa.search.choices import Choices

__all__ = ["HeckmanLasso"]


class HeckmanLasso(SearchedHeckman):
    """A selection model whose excluded features are those that an adaptive lasso drops.

    The probit is fitted on all rows; the inverse Mills ratio is partialled out of the features
    and the outcome of the selected rows; an adaptive lasso on what is left leaves features out,
    one after another as its penalty grows. Of the assignments on its path the best by a criterion
    is fitted as a `Heckman` model.

    Parameters
    ----------
    criterion : {"bic", "adjusted_r2", "aic"}
        Which point of the path is chosen.
    power : float
        Every feature's penalty is divided by its least-squares coefficient to this power; 0 is
        the plain lasso.
    rho_range, always, never, max_features, feature_groups, honest, n_splits, random_state, verbose
        As in `HeckmanBestSubset`; groups of several columns are refused.
    prediction_features, selection_features, method, cov_type, weight_kind, on_collinear, \
on_separation, start
        As in `HeckmanBestSubset`.

    Attributes
    ----------
    candidates_ : DataFrame
        The assignments on the path.
    n_assignments_ : int

    Notes
    -----
    All attributes of a fitted `Heckman` are there, too. See `search_report` for the story. The
    idea of choosing exclusions by an adaptive lasso is Farbmacher's.

    Examples
    --------
    >>> from heckmanfa import HeckmanLasso
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> HeckmanLasso().fit(data.X, data.y).prediction_features_
    [2, 3, 4]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SearchedHeckman._parameter_constraints,
        "power": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        criterion: str = "bic",
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
        self.power = power

    def _look(self, moments: Moments, selection: Selection, choices: Choices, goal: Goal) -> Search:
        try:
            return lasso(moments, choices, goal, names=self._names, power=self.power)
        except CollinearError as error:
            if self.on_collinear != "drop":
                raise
            away = [one for one in error.columns if one not in choices.always]
            if not away:
                raise
            say_dropped(away, self._names, error.reason)
            fewer = choices.without_columns(away)
            return lasso(moments, fewer, goal, names=self._names, power=self.power)

"""HeckmanLasso: prediction features by the adaptive lasso, the method in use today."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from heckmanfa.estimators.search_base import SearchModel
from heckmanfa.model.option_types import CovType, Method, OnProblem, WeightKind
from heckmanfa.search.criteria import Criterion
from heckmanfa.search.strategies import AdaptiveLasso


class HeckmanLasso(SearchModel):
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
        **SearchModel._parameter_constraints,
        "power": [Interval(Real, 0, None, closed="left")],
    }

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
        cov_type: CovType | None = None,
        weight_kind: WeightKind = "frequency",
        on_collinear: OnProblem = "error",
        on_separation: OnProblem = "error",
        start: Any = None,
    ) -> None:
        self._keep(locals())

    def _strategy(self) -> AdaptiveLasso:
        return AdaptiveLasso(self.power, self.on_collinear)

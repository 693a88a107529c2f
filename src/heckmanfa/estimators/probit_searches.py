"""The Heckman probit that searches for its prediction features."""

from __future__ import annotations

from typing import Any, ClassVar

from heckmanfa.data.columns.encoding import Unknown
from heckmanfa.data.survey import Survey
from heckmanfa.errors import InputError
from heckmanfa.estimators.heckman_probit import HeckmanProbit
from heckmanfa.estimators.scoring import PARAMETERS, one_of
from heckmanfa.estimators.search_base import ProvenSearch
from heckmanfa.search.refitted_subset import RefittedSubset
from heckmanfa.text.option_types import CovType, Criterion, OnProblem, SearchIn, WeightKind
from heckmanfa.text.option_words import option

_REFUSED = {
    "adjusted_r2": "a binary outcome has no sum of squares to compare",
    "corrected_bic": "it corrects the BIC of two-step estimates, and a binary outcome has maximum "
    "likelihood, whose BIC needs no correction",
}


class HeckmanProbitBestSubset(ProvenSearch, HeckmanProbit):
    """A Heckman probit with the best assignment of prediction features, refitted exactly.

    At the model of all features, the likelihood is approximated by a quadratic form, with every
    other parameter profiled out. Branch and bound covers all 2^K assignments, the empty one among
    them, and proves which are best by the approximation. Maximum likelihood refits these, and its
    own criterion chooses among them. What is proven is the approximation; what is exact are the
    refits. `search_report` says how far the two orders agree.

    Parameters
    ----------
    criterion : {"bic", "ebic", "aic"}
        Which assignment is best: -2 l + J log m, with l the log-likelihood, J prediction columns
        and m selected rows; 2 J in AIC. "ebic" adds 2 log C(U, u) to BIC, with u of U features or
        groups chosen. Ties go to fewer features, then to column order. Only the likelihood's own
        criteria exist here: there is no sum of squares for an adjusted R^2.
    search_in : {"prediction", "both"}
        As in `HeckmanBestSubset`: "both" may leave features out of the selection equation, too. The
        criterion is then -2 l + p log n, with all p parameters and all n rows, and the likelihood
        of all features must have a maximum inside (-1, 1).
    n_refits : int
        How many of the best assignments by the approximation are refitted. They share each pass
        over the rows; a fit takes about five passes more than that of one model. A bootstrap and
        the halves of ``honest`` refit at most 5.
    max_nodes : int, optional
        The most nodes of the search tree to visit; by default 4e9 / (K + 1)^2, about a minute's
        work. A search that reaches it ends with the best assignments found, a bound on what could
        be better (``gap_``), and a warning.
    always, never : sequence of str, int or bool
        Features forced into and out of the prediction equation.
    selection_always, selection_never : sequence of str, int or bool
        Features forced into and out of the selection equation, with ``search_in="both"``.
    max_features : int, optional
        The most prediction features.
    feature_groups : list of lists, or dict of lists, optional
        Columns that are in or out together, as in `HeckmanBestSubset`.
    honest : bool
        Choose the features on one random half of the rows and estimate them on the other, over
        ``n_splits`` splits, as in `HeckmanBestSubset`.
    n_splits : int
        Number of random splits for ``honest``.
    random_state : int, numpy.random.Generator or RandomState, optional
        Seed of the random halves of ``honest``; nothing else is random.
    verbose : int
        Show progress on a terminal.
    prediction_features : sequence of str, int or bool, optional
        Columns that may predict; None is all of them. All must fit into one model: collinear ones
        are refused, or dropped with ``on_collinear="drop"``, and those that decide the class among
        the selected rows with ``on_separation="drop"``.
    selection_features, cov_type, weight_kind, on_collinear, on_separation, start, \
categorical_features, reference, unknown
        As in `HeckmanProbit`. The search uses the information of the likelihood whatever
        ``cov_type`` is; ``start`` is for the chosen model. There is no ``rho_range``: the
        approximation knows a rho of each assignment only roughly, so a window of it would cut
        assignments that maximum likelihood puts inside.

    Attributes
    ----------
    optimal_ : bool
        Whether the assignments that were refitted are proven to hold the best of all by the
        approximation.
    gap_ : float
        By how much the approximate criterion of another assignment could be better than the best;
        0 if none can be.
    candidates_ : DataFrame
        The assignments refitted, best first by the exact criterion: features, n_features, rho,
        log_likelihood, aic, bic and ebic (which count prediction features and selected rows
        alone, unlike ``aic_`` and ``bic_`` of the chosen model), approximate (the criterion by the
        approximation), rank and approximate_rank. Those without a maximum come last, with NaN. With
        ``search_in="both"``, also selection_features, and criteria as ``aic_`` and ``bic_`` are.
    n_assignments_ : int
        Number of assignments that the approximation evaluated; bounds ruled out all others.
    honest_ : Honest
        Results over the splits, with ``honest``: `tidy`, `splits`.

    Notes
    -----
    A fitted model also has all attributes of `HeckmanProbit`. If the likelihood of all features
    rises towards a rho of 1 or -1, the approximation holds rho at that of a good assignment, or at
    .98 in size if none has a maximum inside; the refits estimate it.

    Examples
    --------
    >>> from heckmanfa import HeckmanProbitBestSubset
    >>> from heckmanfa.datasets import make_selection
    >>> data = make_selection(1000, 4, 2, outcome_kind="binary", random_state=0)
    >>> model = HeckmanProbitBestSubset().fit(data.X, data.y)
    >>> model.prediction_features_, model.optimal_
    ([0, 1], True)
    """

    rho_range: ClassVar[None] = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PARAMETERS | {
        "criterion": [one_of("bic", "ebic", "aic")]
    }

    def __init__(
        self,
        criterion: Criterion = "bic",
        *,
        search_in: SearchIn = "prediction",
        n_refits: int = 50,
        max_nodes: int | None = None,
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

    def _fit_rows(self, *rows: Any, **formulas: Any) -> None:
        why = _REFUSED.get(self.criterion) if isinstance(self.criterion, str) else None
        if why is not None:
            raise InputError(
                f"{option('criterion', self.criterion)} is for a linear outcome: {why}. Use "
                "'bic', 'ebic' or 'aic'."
            )
        super()._fit_rows(*rows, **formulas)

    def _strategy(self) -> RefittedSubset:
        return RefittedSubset(self.n_refits, self.max_nodes, self.verbose)

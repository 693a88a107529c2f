"""Cross-validation when some outcomes are missing: scorers and a splitter.

Scikit-learn's scorers fail on NaN outcomes or score the wrong rows, and its splitters may put all
unselected rows in one fold. These do neither, and work with pipelines and grid searches.

If you pass ``selected`` to fit, turn on scikit-learn's metadata routing
(``sklearn.set_config(enable_metadata_routing=True)``) and pass it once, as in
``cross_validate(model, X, y, params={"selected": s})`` or ``search.fit(X, y, selected=s)``: fit,
scorers and splitter all request it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNCHANGED, MetadataRequest
from sklearn.utils.validation import _num_samples, check_is_fitted

from heckmanfa.data.arrays import Floats, compute_dask, is_dask, on_host
from heckmanfa.data.group_cells import group_codes
from heckmanfa.data.outcome_classes import read_numbers_or_classes
from heckmanfa.data.outcomes import OutcomeCounts
from heckmanfa.data.row_labels import match_rows
from heckmanfa.data.row_rules import decide_rows
from heckmanfa.data.sample import flags, read_outcome
from heckmanfa.errors import InputError, InputTypeError
from heckmanfa.estimators.base import SelectionModel, mean_log_likelihood
from heckmanfa.estimators.scoring import ROUTING, ScoredClassifier, ScoredModel
from heckmanfa.text.printable import quoted

__all__ = [
    "SelectionKFold",
    "SelectionScorer",
    "joint_log_likelihood",
    "observed_auc",
    "observed_brier",
    "observed_log_loss",
    "observed_mae",
    "observed_mse",
    "observed_r2",
]

Request = bool | str | None

_REQUESTS: dict[str, Request] = {"selected": True, "sample_weight": None}


class SelectionScorer:
    """A scikit-learn scorer, larger is better: call it, or pass it as ``scoring``.

    It looks inside pipelines (whose earlier steps transform X) and fitted searches for the model.
    """

    def __init__(
        self,
        name: str,
        score: Callable[..., float],
        requests: Mapping[str, Request] = _REQUESTS,
    ) -> None:
        self._name, self._score, self._requests = name, score, requests

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        selected: Any = None,
    ) -> float:
        """Score a fitted estimator on rows.

        Parameters
        ----------
        estimator : estimator
            A model of this package, a pipeline that ends in one, or a fitted search for one.
        X : array or data frame
        y : array_like, optional
            NaN where missing. A model with formulas computes it from X.
        sample_weight : array_like, optional
        selected : array_like of bool, optional
            As in `fit`; required if it was passed to `fit`.
        """
        # Earlier steps of a pipeline may lose the row labels of X.
        match_rows({"X": X, "y": y, "selected": selected, "sample_weight": sample_weight})
        model, X = _last_model(estimator, X, self._name)
        return self._score(model, X, y, sample_weight, selected)

    def set_score_request(
        self, *, selected: Request = UNCHANGED, sample_weight: Request = UNCHANGED
    ) -> Self:
        """Return a copy of this scorer with other requests to scikit-learn's metadata routing.

        Parameters
        ----------
        selected, sample_weight : True, False, None or str
            Request it, ignore it, refuse it, or request it under another name. By default,
            ``selected`` is requested, and ``sample_weight`` is refused: you decide whether a score
            is weighted.
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request does nothing unless metadata routing is on: call "
                "sklearn.set_config(enable_metadata_routing=True) first"
            )
        asked = {"selected": selected, "sample_weight": sample_weight}
        changed = {name: request for name, request in asked.items() if request is not UNCHANGED}
        scorer = type(self)(self._name, self._score, {**self._requests, **changed})
        scorer.get_metadata_routing()
        return scorer

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn's metadata routing passes to this scorer."""
        request = MetadataRequest(owner=self._name)
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn calls this for scorers in a dict when routing is off.
        return True

    def __repr__(self) -> str:
        """Return its name in this module."""
        return self._name


def _score_observed(
    metric: Callable[..., float], sign: float, model: ScoredModel, *rows: Any
) -> float:
    """Score the rows that are selected and have an outcome, conditional on selection."""
    is_of_classes = metric in (_log_loss, _auc, _brier)
    if isinstance(model, ScoredClassifier) and not is_of_classes:
        raise InputError(
            f"{type(model).__name__} predicts a class and not an amount; use observed_log_loss, "
            "observed_auc or observed_brier"
        )
    if is_of_classes and not isinstance(model, ScoredClassifier):
        raise InputError(
            f"{type(model).__name__} has no predict_proba, so it has no probabilities to score; "
            "use observed_r2, observed_mse or observed_mae"
        )
    return sign * model._score_rows(metric, *rows)


def _log_loss(outcome: Floats, probability: Floats, sample_weight: Floats | None) -> float:
    return float(log_loss(outcome, probability, labels=[0, 1], sample_weight=sample_weight))


def _auc(outcome: Floats, probability: Floats, sample_weight: Floats | None) -> float:
    if outcome.min() == outcome.max():
        raise InputError(
            f"all {len(outcome)} rows to score on are of one class, and the area under the ROC "
            "curve compares two: score more rows, or use observed_log_loss"
        )
    return float(roc_auc_score(outcome, probability, sample_weight=sample_weight))


def _brier(outcome: Floats, probability: Floats, sample_weight: Floats | None) -> float:
    return float(np.average((probability - outcome) ** 2, weights=sample_weight))


def _score_likelihood(
    model: ScoredModel, X: Any, y: Any, sample_weight: Any, selected: Any
) -> float:
    """Average the joint log-likelihood of selection and outcomes over rows."""
    if not isinstance(model, SelectionModel):
        raise InputError(
            f"{type(model).__name__} has no selection equation, so it has no joint likelihood; "
            "use observed_r2, observed_mse or observed_mae"
        )
    return mean_log_likelihood(model, X, y, sample_weight, selected)


observed_r2 = SelectionScorer("observed_r2", partial(_score_observed, r2_score, 1.0))
"""R^2 over the rows that are selected and have an outcome, with ``kind="selected"``.

It is on the scale of y, as the other scores of predictions, also with ``outcome_transform``."""

observed_mse = SelectionScorer("observed_mse", partial(_score_observed, mean_squared_error, -1.0))
"""Minus the mean squared error over the same rows as `observed_r2`."""

observed_mae = SelectionScorer("observed_mae", partial(_score_observed, mean_absolute_error, -1.0))
"""Minus the mean absolute error over the same rows as `observed_r2`."""

observed_log_loss = SelectionScorer("observed_log_loss", partial(_score_observed, _log_loss, -1))
"""Minus the log loss of the classes over the same rows, with ``kind="selected"``."""

observed_auc = SelectionScorer("observed_auc", partial(_score_observed, _auc, 1.0))
"""Area under the ROC curve over the same rows as `observed_log_loss`."""

observed_brier = SelectionScorer("observed_brier", partial(_score_observed, _brier, -1.0))
"""Minus the Brier score over the same rows as `observed_log_loss`: the mean squared difference of
probability and outcome (0 or 1)."""

joint_log_likelihood = SelectionScorer("joint_log_likelihood", _score_likelihood)
"""Joint log-likelihood of selection and outcomes, averaged over rows. Unlike the others, it also
scores the selection equation, and uses every row. With ``outcome_transform``, it is the likelihood
of the logarithm."""


def _last_model(estimator: Any, X: Any, scorer: str) -> tuple[ScoredModel, Any]:
    """Return the model inside pipelines and searches, and X as transformed for it."""
    while not isinstance(estimator, ScoredModel):
        if isinstance(estimator, Pipeline):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            if hasattr(estimator, "fit"):
                check_is_fitted(estimator)
            raise InputTypeError(
                f"{scorer} scores models of heckmanfa, pipelines that end in one and fitted "
                f"searches for one; {type(estimator).__name__} is none of these, and its "
                "predictions need not be conditional on selection"
            )
    return estimator, X


class SelectionKFold(BaseCrossValidator):
    """K folds that each contain their share of selected and unselected rows.

    If the outcome takes two values, each fold also has its share of both, as far as there are
    enough rows.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2.
    shuffle : bool
        Whether to shuffle rows (or groups) first.
    random_state : int, RandomState or None
        Seed for shuffling.

    Notes
    -----
    Scikit-learn's metadata routing passes ``selected`` and ``groups`` to `split` without a
    request.
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"selected": True, "groups": True}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        # Here and not in `split`: scikit-learn's stacking sets random_state whatever shuffle says.
        if not isinstance(n_splits, Integral) or n_splits < 2:
            raise InputError(f"n_splits must be an integer of at least 2; got {quoted(n_splits)}")
        if random_state is not None and not shuffle:
            raise InputError(
                "random_state has no effect without shuffle=True; pass that, or drop random_state"
            )

    def split(
        self, X: Any, y: Any = None, groups: Any = None, *, selected: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the row indices for fitting and for testing, fold by fold.

        Parameters
        ----------
        X : array or data frame
        y : array_like
            NaN where missing; optional if ``selected`` is given.
        groups : array_like, optional
            Rows of a group stay in one fold.
        selected : array_like of bool, optional
            As in `fit`; by default the rows whose y is not NaN.
        """
        self._check(X, y, selected)
        match_rows({"X": X, "y": y, "selected": selected, "groups": groups})
        y, groups, selected = (on_host(values) for values in compute_dask(y, groups, selected))
        if y is None:
            outcome = np.zeros(len(selected) if X is None else _num_samples(X))
        else:
            n = len(y) if hasattr(y, "__len__") else 0
            numbers = read_numbers_or_classes(y, n)
            # What is neither is refused with advice.
            outcome = read_outcome(y, n) if numbers is None else numbers
        status = decide_rows(outcome, None if selected is None else flags(selected, len(outcome)))
        if selected is None and len(outcome) and status.selected.all():
            raise InputError(
                f"all {len(outcome)} rows have an outcome, so no fold can hold rows of both kinds. "
                "If selected says which rows are selected, it did not reach the splitter: pass "
                f"split(X, y, selected=...); {ROUTING}. If no outcome is missing, use KFold"
            )
        # A fit leaves out selected rows without an outcome: they count as neither kind.
        kinds = np.where(status.selected, np.where(status.kept, 1, 2), 0)
        counts = OutcomeCounts.of(outcome[kinds == 1])
        if counts.two_valued and self._are_enough(counts.highest, counts.rows - counts.highest):
            kinds[(kinds == 1) & (outcome == counts.high)] = 3
        if groups is None:
            folds = self._folds_of_rows(kinds, selected_given=selected is not None)
        else:
            codes, _ = group_codes(groups, np.ones(len(kinds), dtype=bool))
            order = check_random_state(self.random_state) if self.shuffle else None
            folds = _whole_groups(kinds, codes, int(self.n_splits), order)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def _check(self, X: Any, y: Any, selected: Any) -> None:
        """Refuse data that cannot be split by row number."""
        if is_dask(X):
            raise InputError(
                "SelectionKFold yields row numbers, and rows of a Dask collection cannot be taken "
                "by number: call X.compute() (and y.compute()) first"
            )
        if y is None and selected is None:
            raise InputError(
                "SelectionKFold needs y (NaN where an outcome is missing) or selected=..., to know "
                "which rows are selected"
            )

    def _are_enough(self, *counts: int) -> bool:
        """Whether every fold can have a row of each kind."""
        return min(counts) >= self.n_splits

    def _folds_of_rows(self, kinds: NDArray[np.intp], selected_given: bool) -> NDArray[np.intp]:
        """Return the fold of each row; kinds are as in `_whole_groups`."""
        counts = [int(np.isin(kinds, kind).sum()) for kind in ((1, 3), 0)]
        if not self._are_enough(*counts):
            few = f"at least {self.n_splits} rows"
            raise InputError(
                f"{self.n_splits} folds need {few} that are selected and have an outcome, and "
                f"{few} that are not selected; there are {counts[0]} and {counts[1]}"
                if selected_given
                else f"{self.n_splits} folds need {few} with and {self.n_splits} without an "
                f"outcome; there are {counts[0]} and {counts[1]}"
            )
        state = check_random_state(self.random_state) if self.shuffle else None
        stratified = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=state)
        folds = np.zeros(len(kinds), dtype=np.intp)
        in_fit = np.flatnonzero(kinds != 2)
        for fold, (_, test) in enumerate(stratified.split(in_fit, kinds[in_fit])):
            folds[in_fit[test]] = fold
        rest = np.flatnonzero(kinds == 2)
        folds[rest if state is None else state.permutation(rest)] = (
            np.arange(len(rest)) % self.n_splits
        )
        return folds

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, *, selected: Any = None
    ) -> int:
        """Return the number of folds."""
        return self.n_splits


def _whole_groups(
    kinds: NDArray[np.intp], groups: NDArray[np.intp], n_folds: int, order: Any = None
) -> NDArray[np.intp]:
    """Assign whole groups to folds, with a share of both kinds of row in each.

    Each group, the largest first, goes to the fold where its kinds of row are rarest so far, but
    never if another fold could then not get both kinds.

    ``kinds`` (n,) holds 0 (not selected), 1 (selected) and 3 (selected, with the higher of two
    outcomes), and 2 for rows that are in no fit. Every fold needs 0, and 1 or 3. ``groups`` (n,)
    are numbered from 0, and ``order``, a RandomState, shuffles them first. Returns the fold of
    each row.
    """
    n_groups = int(groups.max()) + 1
    counts = np.zeros((n_groups, 4))
    np.add.at(counts, (groups, kinds), 1)
    holds = np.column_stack([counts[:, 0] > 0, counts[:, [1, 3]].any(axis=1)])
    _refuse_too_many(holds, n_folds)
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    sequence = np.arange(n_groups) if order is None else order.permutation(n_groups)
    sequence = sequence[np.argsort(-shares[sequence].max(axis=1), kind="stable")]
    filled = np.zeros((n_folds, 4))
    has = np.zeros((n_folds, 2), dtype=bool)
    # How many of the remaining groups hold only kind 0, only kind 1, and both.
    left = np.array([holds @ [1, 2] == kind for kind in (1, 2, 3)]).sum(axis=1)
    fold_of = np.zeros(n_groups, dtype=np.intp)
    for group in sequence:
        kind = int(holds[group] @ [1, 2]) - 1
        if kind >= 0:
            left[kind] -= 1
        # Equal shares minimise the sum of squares. Adding a share d to a share p adds 2 p d to it,
        # plus a constant; ties go to the fold with the fewest rows.
        cost = filled @ shares[group]
        for fold in np.lexsort((filled.sum(axis=1), cost)):
            then = has.copy()
            then[fold] |= holds[group]
            if _can_be_filled(then, left):
                break
        has, filled[fold] = then, filled[fold] + shares[group]
        fold_of[group] = fold
    return fold_of[groups]


def _can_be_filled(has: NDArray[np.bool_], left: NDArray[np.intp]) -> bool:
    """Whether the remaining groups can give every fold both kinds of row."""
    first, second, both = (int(count) for count in left)
    lack_first = int(np.count_nonzero(~has[:, 0] & has[:, 1]))
    lack_second = int(np.count_nonzero(has[:, 0] & ~has[:, 1]))
    empty = int(np.count_nonzero(~has.any(axis=1)))
    needed = max(lack_first - first, 0) + max(lack_second - second, 0)
    pairs = min(max(first - lack_first, 0), max(second - lack_second, 0), empty)
    return needed + empty - pairs <= both


def _refuse_too_many(holds: NDArray[np.bool_], n_folds: int) -> None:
    """Refuse more folds than the groups can give both kinds of row."""
    both = int(np.count_nonzero(holds.all(axis=1)))
    other, selected = (int(np.count_nonzero(kind)) - both for kind in holds.T)
    most = both + min(other, selected)
    if most < n_folds:
        raise InputError(
            f"{n_folds} folds of whole groups cannot all hold selected and other rows: of "
            f"{len(holds)} groups, {both} hold both, {selected} only selected rows and {other} "
            f"only other rows. Use "
            + (f"{most} folds or fewer" if most > 1 else "larger groups, or none")
        )

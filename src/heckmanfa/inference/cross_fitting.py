"""Predictions of each row's outcome and selection by models that were fitted to other rows.

A row's own error is then not in its prediction, so flexible models do not overfit into the
estimates (Chernozhukov et al., 2018). Rows of one cluster stay in one fold. With two clusterings,
each has folds of its own, and a row is predicted from rows that are in another fold of both
(Chiang, Kato, Ma and Sasaki, 2022).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from heckmanfa.data.arrays import Floats
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.rows import ArrayRows, Block, Groups, Mask, Matrix, Rows, held
from heckmanfa.errors import DroppedFeaturesWarning, HeckmanfaError, InputError, TooFewRowsError
from heckmanfa.model.equations import fit_selection
from heckmanfa.model.moments import gather_moments
from heckmanfa.model.separation import SELECTION
from heckmanfa.model.two_step import fit_least_squares
from heckmanfa.text.option_words import option

_ROUNDING = 1e-9
"""how far beyond 0 and 1 a probability may be"""
_SEPARATED = replace(
    SELECTION,
    otherwise="pass a selection_model whose chances stay above zero, such as LogisticRegression()",
)


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows in memory: what both models read of them."""

    features: Floats
    """(n, k)"""
    outcome: Floats
    """(n,), arbitrary where the row is not selected"""
    selected: Mask
    weight: Floats | None
    group: Groups | None

    @classmethod
    def of(cls, rows: Rows, columns: Sequence[int]) -> KnownRows:
        """Collect the rows of a fit; refuse rows that are not in memory."""
        blocks = held(rows, "cross-fitting").map(_copied, columns=columns)
        features, outcome, selected, weight, group = zip(*blocks, strict=True)
        return cls(
            np.concatenate(features),
            np.concatenate(outcome),
            np.concatenate(selected),
            None if weight[0] is None else np.concatenate(weight),
            None if group[0] is None else np.concatenate(group),
        )

    def weights_of(self, rows: Mask) -> dict[str, Floats]:
        """Return the weights of some rows as a keyword; nothing if there are none."""
        return {} if self.weight is None else {"sample_weight": self.weight[rows]}


def _copied(block: Block) -> tuple[Any, ...]:
    return block.features.copy(), block.outcome, block.selected, block.weight, block.group


@dataclass(frozen=True)
class CrossFit:
    """How both models are fitted."""

    outcome_model: Any
    """any regressor; None is least squares"""
    selection_model: Any
    """any classifier with probabilities; None is a probit"""
    n_folds: int
    labels: Sequence[str]
    """names of the features"""

    def check(self, *, weighted: bool) -> None:
        """Refuse models that cannot be used."""
        models = {"outcome_model": self.outcome_model, "selection_model": self.selection_model}
        for name, model in models.items():
            if isinstance(model, type):
                raise InputError(
                    f"{name} is the class {model.__name__}: pass an instance, {model.__name__}()"
                )
            if weighted and model is not None and not has_fit_parameter(model, "sample_weight"):
                raise InputError(
                    f"{name}: fit of {type(model).__name__} takes no sample_weight, so it would "
                    "ignore the weights. Use a model that takes them, or leave the weights out."
                )

    def predict(
        self, rows: KnownRows, rng: np.random.Generator, cells: Cells | None = None
    ) -> tuple[Floats, Floats]:
        """Return each row's expected outcome and its chance to be selected, by other rows.

        ``cells`` are the units whose codes the rows have.
        """
        clusterings: list[Groups | None] = [rows.group]
        if cells is not None and cells.ways:
            clusterings = [codes[rows.group] for codes in cells.ways]
        folds = np.column_stack(
            [assign_folds(rows.selected, codes, self.n_folds, rng) for codes in clusterings]
        )
        expected, chance = np.empty(len(folds)), np.empty(len(folds))
        for fold in np.unique(folds, axis=0):
            test, train = (folds == fold).all(axis=1), (folds != fold).all(axis=1)
            self._refuse_one_kind(rows.selected[train], fold)
            seen = train & rows.selected
            expected[test] = self._expected(rows, seen, test)
            chance[test] = self._chance(rows, train, test)
        return expected, chance

    def _refuse_one_kind(self, selected: Mask, fold: NDArray[np.intp]) -> None:
        if selected.all() or not selected.any():
            what = "no outcome is missing" if selected.any() else "no outcome is known"
            which = " and ".join(f"{place + 1}" for place in fold)
            raise TooFewRowsError(
                f"{what} outside fold {which} of {self.n_folds}, so nothing can be learned "
                "about who is selected. Use other folds or fewer clusters per fold "
                f"({option('n_folds')}), or more rows."
            )

    def _expected(self, rows: KnownRows, seen: Mask, test: Mask) -> Floats:
        model = LeastSquares() if self.outcome_model is None else clone(self.outcome_model)

        def expected() -> Any:
            model.fit(rows.features[seen], rows.outcome[seen], **rows.weights_of(seen))
            return model.predict(rows.features[test])

        return _guarded("outcome_model", expected, test)

    def _chance(self, rows: KnownRows, train: Mask, test: Mask) -> Floats:
        model = self.selection_model
        model = ProbitModel(self.labels) if model is None else clone(model)

        def chances() -> Any:
            model.fit(
                rows.features[train], rows.selected[train].astype(int), **rows.weights_of(train)
            )
            both = np.asarray(model.predict_proba(rows.features[test]))
            classes = np.asarray(model.classes_).tolist()
            if 1 not in classes or both.ndim != 2 or both.shape[1] != len(classes):
                raise ValueError(
                    f"it has the classes {classes} and probabilities of shape {both.shape}, and "
                    "needs those of 0 and 1"
                )
            return both[:, classes.index(1)]

        chance = _guarded("selection_model", chances, test)
        n_bad = int(np.count_nonzero((chance < -_ROUNDING) | (chance > 1.0 + _ROUNDING)))
        if n_bad:
            raise InputError(
                f"selection_model predicts {n_bad:,} probabilities outside of [0, 1]; use another "
                "model"
            )
        return np.clip(chance, 0.0, 1.0)


def _guarded(name: str, predict: Callable[[], Any], test: Mask) -> Floats:
    """Return predictions of a user's model; say whose they are if they fail."""
    try:
        values = np.asarray(predict(), dtype=np.float64).reshape(-1)
    except (HeckmanfaError, MemoryError):
        raise
    except Exception as error:
        why = str(error) or type(error).__name__
        raise InputError(f"{name} cannot be fitted to a fold: {why}") from error
    n = int(np.count_nonzero(test))
    if len(values) != n:
        raise InputError(
            f"{name} predicts {len(values):,} values for {n:,} rows; use another model"
        )
    n_bad = int(np.count_nonzero(~np.isfinite(values)))
    if n_bad:
        raise InputError(f"{name} predicts {n_bad:,} values that are not finite; use another model")
    return values


def assign_folds(
    selected: Mask, group: Groups | None, n_folds: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Deal the rows out to folds at random: selected and other rows evenly, or whole clusters."""
    if group is not None:
        codes, inverse = np.unique(group, return_inverse=True)
        if len(codes) < n_folds:
            raise TooFewRowsError(
                f"{len(codes)} clusters cannot fill {n_folds} folds: set {option('n_folds')} to "
                f"{len(codes)} or less"
            )
        return np.asarray((rng.permutation(len(codes)) % n_folds)[inverse])
    folds = np.empty(len(selected), dtype=np.intp)
    start = 0
    for kind in (True, False):
        places = rng.permutation(np.flatnonzero(selected == kind))
        folds[places] = (start + np.arange(len(places))) % n_folds
        start += len(places)
    return folds


# The package's own models. ------------------------------------------------------------------------


class LeastSquares:
    """Least squares on all features; the minimum-norm solution if they are collinear."""

    def fit(self, X: Floats, y: Floats, sample_weight: Floats | None = None) -> Self:
        """Fit to rows with an outcome."""
        k = X.shape[1]
        rows = ArrayRows(Matrix(X), y, np.ones(len(y), dtype=bool), sample_weight)
        self.coef = fit_least_squares(gather_moments(rows, range(k), k, None), range(k)).coef
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the expected outcome of each row."""
        return np.asarray(self.coef[0] + X @ self.coef[1:])


class ProbitModel:
    """The package's probit on all features but collinear ones, which change no probability."""

    classes_ = (0, 1)

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels

    def fit(self, X: Floats, selected: Any, sample_weight: Floats | None = None) -> Self:
        """Fit to rows that are selected or not."""
        chosen = np.asarray(selected, dtype=bool)
        rows = ArrayRows(Matrix(X), np.zeros(len(chosen)), chosen, sample_weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DroppedFeaturesWarning)
            selection = fit_selection(
                rows, range(X.shape[1]), self.labels, on_collinear="drop", words=_SEPARATED
            )
        self.probit = selection.probit
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Return the chance not to be selected, and to be, (n, 2)."""
        index = self.probit.coef[0] + X[:, list(self.probit.features)] @ self.probit.coef[1:]
        return np.column_stack([ndtr(-index), ndtr(index)])
